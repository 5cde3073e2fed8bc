"""The Laplace pair on the line: v = x/t in [-1, 1] with the density t e^{-t(v+1)/2} / 4 under Q0, and atoms at both ends."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from cumulant.numerics.arithmetic import BALLS, Scalar
from cumulant.pairs.transform import Base


@dataclass(frozen=True, slots=True)
class LaplaceBase(Base):
    """x = t v; mass 1/2 at v = -1 and e^-t / 2 at v = 1."""

    t: Fraction

    @property
    def shift(self) -> Fraction:
        return self.t

    def distance(self) -> Scalar:
        # TV = 1 - e^{-t/2}
        return -(-BALLS.number(self.t) / 2).expm1()

    def log_density(self, v: Any, on: Any) -> Any:
        if on is np:
            return math.log(float(self.t) / 4) - float(self.t) * (v + 1) / 2
        t = on.number(self.t)
        return on.log(t / 4) - t * (v + 1) / 2

    def log_top(self, centre: Any, half: Any, height: Any, on: Any) -> Any:
        return self.log_density(centre - half, on)

    def span(self, lam: float, rate: float, kept: float, whole: bool, log_error: float) -> tuple[float, float]:
        return (-1.0 if whole else 0.0), 1.0

    def ends(self, lam: Scalar, rate: Fraction, span: tuple[float, float], whole: bool, sign: int) -> Scalar:
        complete = span == ((-1.0 if whole else 0.0), 1.0)
        return BALLS.number(0 if complete else math.inf)

    def atoms(self, whole: bool) -> list[tuple[Scalar, Scalar]]:
        t = BALLS.number(self.t)
        upper = (t, (-t).exp() / 2)
        return [upper, (-t, BALLS.number(Fraction(1, 2)))] if whole else [upper]

    def peaks(self, power: float) -> int:
        # (log f)' = (p+1) s(x) - 3/2 is monotone: only the ends
        return 2
