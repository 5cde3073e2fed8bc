"""The curve of Gaussian noise on the integers."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from cumulant.curves.curve import Curve
from cumulant.numerics.arithmetic import FLOATS, Arithmetic, Array, Scalar
from cumulant.numerics.enclosure import Enclosure
from cumulant.numerics.theta import log_ratio, log_ratio_ball

_SMOOTH = 16
"""From this variance on the integers change K by less than e^-310, which is far below its rounding."""


@dataclass(frozen=True, slots=True)
class Theta(Curve):
    """K(lambda) = lambda (lambda+1) m^2 / 2v + log(theta(a m) / theta(0)), m the shift.

    theta(c) = SUM_x e^{-(x-c)^2 / 2v}.

    The second summand is 0 where a m is an integer and negative elsewhere (docs/mechanisms/discrete-gaussian.md).
    """

    shift: int
    variance: Fraction

    enclosed = True

    def _cgf(self, lam: Array, on: Arithmetic) -> Array:
        x, rho = on.asarray(lam), on.number(Fraction(self.shift**2) / (2 * self.variance))
        gaussian = x * (x + 1) * rho
        if on.exact:
            return np.array([one + log_ratio_ball(_fraction(Fraction(each) * self.shift), self.variance)
                             for one, each in zip(gaussian, lam, strict=True)], dtype=object)  # fmt: skip
        if on.enclosing:
            if self.variance >= _SMOOTH:
                return gaussian + Enclosure(np.zeros(lam.shape), np.full(lam.shape, 1e-130))
            between = np.remainder(lam * self.shift, 1.0) != 0
            if between.any():
                gaussian[between] = self._from_balls(
                    self._balls(lam[between]), lambda missing: np.full(missing.sum(), np.inf)
                )
            return gaussian
        c = lam * self.shift
        return gaussian + log_ratio(c - np.rint(c), FLOATS.number(self.variance))

    def kl(self, on: Arithmetic = FLOATS) -> Scalar:
        return on.number(Fraction(self.shift**2) / (2 * self.variance))

    def pure(self, on: Arithmetic = FLOATS) -> Scalar:
        return on.number(np.inf if self.shift else 0)

    def concentration(self) -> tuple[Fraction, Fraction] | None:
        return Fraction(0), Fraction(self.shift**2) / (2 * self.variance)


def _fraction(c: Fraction) -> Fraction:
    """The distance to the nearest integer, with its sign."""
    return c - round(c)
