"""The privacy loss of a run whose dominating pairs are known.

K at every real lambda, its derivatives, its cumulants.

Each is the exact value of the product of the pairs, in balls, rounded to the nearest float; of densities, self-checked. A pair
that dominates has the largest K above 0 and the smallest between -1 and 0, where x^{lambda+1} is concave. Derivatives and
cumulants belong to that pair alone: they bound nothing of other pairs, but the mean, which is KL.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

from cumulant.accounting.run import Component, RunRecord
from cumulant.errors import CertificateError, HypothesisError
from cumulant.numerics.arithmetic import BALLS

_BITS = (128, 512, 2048)
"""Bits of the balls, tried in turn; chosen by hand."""

_GOOD = 60
"""Bits that a derivative must have; derived: seven more than a float has."""

_TINY = 2.0**-1000
"""Size below which a derivative counts as 0; derived: just above the smallest normal float."""


def taylor(run: RunRecord, at: Fraction, count: int) -> list[Any]:
    """K and its derivatives over factorials at this lambda, as balls of 60 good bits at least."""
    for bits in _BITS:
        with BALLS.at(bits):
            parts = [_scaled(part, at, count) for part in run.parts]
            found = [sum(each, start=BALLS.number(0)) for each in zip(*parts, strict=True)]
            if all(_good(ball) for ball in found):
                return found
    raise CertificateError(
        f"the cumulant generating function at lambda = {at} takes more than {_BITS[-1]} bits; ask nearer to 0"
    )


def derivative(run: RunRecord, at: Fraction, times: int) -> float:
    """The derivative of K of this order; order 0 is K itself."""
    return float(taylor(run, at, times + 1)[times] * math.factorial(times))


def _good(ball: Any) -> bool:
    """Enough bits, or as good as 0, or infinite."""
    return bool(ball.rel_accuracy_bits() >= _GOOD or abs(ball) < _TINY or ball.lower() == math.inf)


def _scaled(part: Component, at: Fraction, count: int) -> list[Any]:
    found = part.pair.taylor(at, count) if part.pair is not None and part.scheme is None else None
    if found is None:
        raise HypothesisError(
            f"the privacy loss of {part.name} is not known by a dominating pair; below lambda = 0, and for derivatives and "
            "cumulants, ask Gaussian, Laplace, RandomizedResponse, PureDP, from_masses or from_densities, not on a sample"
        )
    return [part.times * each for each in found]
