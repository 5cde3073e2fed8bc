"""The curve of a group of records, from that of one."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from cumulant.curves.closed_form import Concentrated, Response
from cumulant.curves.curve import Curve, Lowest
from cumulant.errors import HypothesisError
from cumulant.numerics.arithmetic import FLOATS, Arithmetic, Array, Scalar
from cumulant.numerics.rounding import MANY, raised

_MOST_STEPS = 32
"""Each doubling asks for twice as many orders."""


@dataclass(frozen=True, slots=True)
class TwoSteps(Curve):
    """K(lambda) = (k(2 lambda + 1) + k(2 lambda)) / 2, k the curve of one step, lambda >= 1.

    That is Proposition 11 of Mironov 2017.

    Below order 2 it is the divergence at order 2, which is larger.
    """

    step: Curve

    enclosed = True

    @property
    def estimated(self) -> bool:  # type: ignore[override]
        return self.step.estimated

    def _cgf(self, lam: Array, on: Arithmetic) -> Array:
        if on.exact:
            small = np.array([Fraction(x) < 1 for x in lam])
            at = np.array([max(Fraction(x), Fraction(1)) for x in lam], dtype=object)
        else:
            small, at = lam < 1, np.maximum(lam, 1.0)
        value = (self.step.cgf(2 * at + 1, on) + self.step.cgf(2 * at, on)) / 2
        return np.where(small, value * on.asarray(lam), value)

    def kl(self, on: Arithmetic = FLOATS) -> Scalar:
        return self.cgf(np.ones(1, dtype=object) * Fraction(1) if on.exact else np.ones(1), on)[0]

    def pure(self, on: Arithmetic = FLOATS) -> Scalar:
        return 2 * self.step.at_infinity(on)


def grouped(curve: Curve, size: int) -> Curve:
    """Return the least known curve of a group of records, by a chain of neighbours.

    Candidates: steps doubled until there are enough, k^2 rho of concentration, k epsilon of pure privacy. Raises
    HypothesisError for a curve with slack: how often a chain fails is not the slack of one step.
    """
    if curve.slack():
        raise HypothesisError(
            "nothing is proved for a group of a mechanism that may fail; state one (epsilon, delta) of it"
        )
    found: list[Curve] = []
    if size <= _MOST_STEPS:
        steps, doubled = 1, curve
        while steps < size:
            steps, doubled = 2 * steps, TwoSteps(doubled)
        found.append(doubled)
    stated, pure = curve.concentration(), float(curve.pure())
    if stated is not None and not stated[0]:
        found.append(Concentrated(rho=stated[1] * size**2))
    if math.isfinite(pure):
        found.append(Response(epsilon=size * Fraction(raised(pure, MANY))))
    if not found:
        raise HypothesisError(f"nothing is proved for a group of {size} records; give at most {_MOST_STEPS}")
    return found[0] if len(found) == 1 else Lowest(tuple(found))
