"""Results of the paper that no answer uses."""
