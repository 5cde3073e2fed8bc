"""Dominating pairs of output laws, one file each: what is known about the loss of each."""
