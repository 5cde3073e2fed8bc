"""Privacy amplification by sampling: (curve or pair, rate) -> curve, one function per theorem, listed in one table."""
