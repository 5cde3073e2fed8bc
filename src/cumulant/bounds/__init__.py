"""Privacy amplification by sampling: (curve or pair, rate) -> curve.

There is one function per theorem, listed in one table.
"""
