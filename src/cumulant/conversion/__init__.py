"""From a curve to (epsilon, delta)."""
