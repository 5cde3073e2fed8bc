"""Pairs of output laws to two-sided (epsilon, delta): tilted lattices, the saddle line, lower bounds and their witnesses."""
