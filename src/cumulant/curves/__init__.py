"""What can be proved about a mechanism: its CGF at every order, and the two ends, KL and pure."""
