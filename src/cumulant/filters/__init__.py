"""Adaptive budgets: which step may still run when its parameters are chosen from earlier answers."""
