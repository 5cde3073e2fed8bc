"""Transforms of losses in [-t, t] of density ~ e^{-x/2} under Q0: Laplace, logistic noise."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from cumulant.losses.transform import ON_FLOATS, Base
from cumulant.numerics.arithmetic import BALLS, Scalar


@dataclass(frozen=True, slots=True)
class _ExponentialBase(Base):
    """v = x/t in [-1, 1] with the density c e^{-t(v+1)/2} under Q0."""

    t: Fraction

    @property
    def shift(self) -> Fraction:
        return self.t

    @abstractmethod
    def log_constant(self, on: Any) -> Any:
        """log c."""

    def density(self, on: Any) -> Callable[[Any], Any]:
        on = ON_FLOATS if on is np else on
        top, t = self.log_constant(on), on.number(self.t)
        return lambda v: top - t * (v + 1) / 2

    def log_top(self, centre: Any, half: Any, height: Any, on: Any) -> Any:
        return self.density(on)(centre - half)

    def span(self, lam: float, rate: float, kept: float, whole: bool, log_error: float) -> tuple[float, float]:
        return (-1.0 if whole else 0.0), 1.0

    def ends(self, lam: Scalar, rate: Fraction, span: tuple[float, float], whole: bool, sign: int) -> Scalar:
        complete = span == ((-1.0 if whole else 0.0), 1.0)
        return BALLS.number(0 if complete else math.inf)

    def peaks(self, power: float) -> int:
        # (log f)' = (p+1) s(x) - 3/2 is monotone: only the ends
        return 2


@dataclass(frozen=True, slots=True)
class LaplaceBase(_ExponentialBase):
    """Laplace noise: c = t/4, mass 1/2 at v = -1 and e^-t / 2 at v = 1."""

    def log_constant(self, on: Any) -> Any:
        return on.log(on.number(self.t) / 4)

    def distance(self) -> Scalar:
        # TV = 1 - e^{-t/2}
        return -(-BALLS.number(self.t) / 2).expm1()

    def atoms(self, whole: bool) -> list[tuple[Scalar, Scalar]]:
        t = BALLS.number(self.t)
        upper = (t, (-t).exp() / 2)
        return [upper, (-t, BALLS.number(Fraction(1, 2)))] if whole else [upper]


@dataclass(frozen=True, slots=True)
class LogisticBase(_ExponentialBase):
    """Logistic noise: c = t / (2 (1 - e^-t)), without atoms.

    delta(x) = (e^{t/2} - e^{x/2})^2 / (e^t - 1) has the second derivative q(x) / e^x in e^x.
    """

    def log_constant(self, on: Any) -> Any:
        t = on.number(self.t)
        return on.log(t / 2) - on.log(-on.expm1(-t))

    def distance(self) -> Scalar:
        # TV = delta(0) = tanh(t/4)
        return (BALLS.number(self.t) / 4).tanh()
