"""Adaptive budgets: filters that decide which step may still run.

The parameters of a step may be chosen from earlier answers.
"""
