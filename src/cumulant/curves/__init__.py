"""Curves: a bound of the CGF at every order, and the two ends, KL and pure."""
