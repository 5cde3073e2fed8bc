"""How long random searches in the tests go on: short in `make test`, long in `make hunt-long`.

A case that a person chose always runs. A search that draws its cases draws `drawn(n)` of them: n with `$CUMULANT_EFFORT`
unset, and that many times more with a larger one.
"""

import os

EFFORT = int(os.environ.get("CUMULANT_EFFORT", "1"))
"""Multiplies what is drawn; `make hunt-long` sets it to 5."""


def drawn(count: int) -> int:
    """Return how many cases a random search draws."""
    return count * EFFORT
