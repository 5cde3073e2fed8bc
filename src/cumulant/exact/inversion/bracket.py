"""Move from a guessed epsilon to one that balls prove.

Because delta falls in epsilon, the last ball is the proof.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

from cumulant.exact.inversion.settings import SEARCH
from cumulant.numerics.arithmetic import BALLS
from cumulant.numerics.rounding import as_printed
from cumulant.numerics.search import invert_falling


def prove_epsilon(bound: Callable[[Any], Any], asked: Any, start: float, upper: bool = True) -> float | None:
    """Return the smallest float at which balls prove that a bound on delta is at most `asked`.

    From below it is the largest float at which they prove that the bound is larger. Either holds for the float and for the
    decimal that it prints as. Floats may have no digits left, so that balls are followed too. Returns None if nothing is
    proved.
    """
    weaker = min if upper else max

    def excess(epsilon: float) -> tuple[bool, float]:
        value = bound(BALLS.number(weaker(Fraction(epsilon), as_printed(epsilon))))
        part = value / asked
        followed = part.is_finite() and part > 0  # from below, images may be more than what is left: nothing to follow
        return not value <= asked if upper else bool(value > asked), float(part.log().mid()) if followed else math.nan

    if start <= 0 and upper and not excess(0.0)[0]:
        return 0.0
    guess, step = (start, SEARCH.first_step) if start > 0 else (1.0, 1.0)
    low, high = invert_falling(excess, guess, SEARCH.smallest, SEARCH.largest, step)
    return high if upper else low
