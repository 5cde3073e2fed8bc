"""The pointwise maximum of curves."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import reduce
from typing import Any

from cumulant.curves.curve import Curve
from cumulant.numerics.arithmetic import FLOATS, Arithmetic, Array, Scalar


@dataclass(frozen=True, slots=True)
class Highest(Curve):
    """The pointwise maximum of the exact curves of several pairs: the worst pair counts."""

    curves: tuple[Curve, ...]

    enclosed = True

    def _cgf(self, lam: Array, on: Arithmetic) -> Array:
        return self._largest([curve.cgf(lam, on) for curve in self.curves], on)

    def kl(self, on: Arithmetic = FLOATS) -> Scalar:
        return self._largest([curve.at_one(on) for curve in self.curves], on)

    def pure(self, on: Arithmetic = FLOATS) -> Scalar:
        return self._largest([curve.at_infinity(on) for curve in self.curves], on)

    def slack(self) -> Fraction:
        return max(curve.slack() for curve in self.curves)

    @property
    def estimated(self) -> bool:  # type: ignore[override]
        return any(curve.estimated for curve in self.curves)

    def _largest(self, values: list[Any], on: Arithmetic) -> Any:
        # of two balls the one that ends higher contains the larger value; what is unknown of one is unknown of both
        return reduce(on.maximum, values)
