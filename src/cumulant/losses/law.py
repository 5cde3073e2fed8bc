"""The law of the privacy loss x = log(p/q) under Q: what integrals, certificates and grids ask of it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from cumulant.curves.curve import Curve
from cumulant.losses.grid import Loss
from cumulant.losses.integrals import Nodes
from cumulant.losses.panels import Line
from cumulant.losses.sampled_curve import SampledPair
from cumulant.losses.subsampled import BallTerm, Kernel, Point, Rate, Term
from cumulant.numerics.arithmetic import BALLS, Arithmetic, Array, Scalar
from cumulant.numerics.enclosure import Enclosure

if TYPE_CHECKING:
    from cumulant.losses.transform import Transform


class Law(ABC):
    """The law of x under Q; `whole` means all x, otherwise x > 0. Faces that are not overridden are not offered."""

    __slots__ = ()

    @abstractmethod
    def nodes(self, lam: Array, rate: Rate, term: Term, whole: bool) -> Nodes:
        """Nodes for the term, which is at most w^a, or a g where x < 0, at each order a = lambda + 1."""

    @abstractmethod
    def enclosure(
        self, term: BallTerm, order: Fraction, rate: Fraction, whole: bool, log_size: float, bits: int
    ) -> Scalar:
        """A ball that contains E_Q[term], good to about this many bits; log_size is its logarithm, roughly."""

    def excess(self, order: Fraction, rate: Fraction, bits: int) -> Scalar | None:
        """Such a ball of E_Q w^a - 1 by a shorter way than an integral, where there is one."""
        return None

    def line(self) -> Line | None:
        """Where x has a density, if it does."""
        return None

    def log_excess(self, rate: Fraction, lam: Array) -> Enclosure | None:
        """log E_Q[f_a(w)], Proposition 11's kernel, where one grid serves all orders; unknown at orders that it does not."""
        return None

    def profile_excess(self, rate: Fraction, lam: Array) -> Array:
        """By how much the profile's moment exceeds that of the pair, in floats; NaN where that is not known so quickly."""
        return np.full(lam.shape, np.nan)

    def enclosed_atoms(self, rate: Fraction, whole: bool) -> tuple[Enclosure, Enclosure] | None:
        """The logarithms of the Q-masses of the atoms, and L there, if there are any."""
        return None

    def on_grid(self) -> Loss | None:
        """The law as a grid takes it, if it is that of a symmetric pair and not too wide or narrow for one."""
        return None

    def transform(self, rate: Fraction, direction: str) -> Transform | None:
        """What `on_grid` makes of it on a sample, on the line: in balls; None where that is not offered."""
        return None

    @property
    def scale(self) -> Fraction:
        """The sensitivity over the noise; 1 where there is no noise whose scales an integral must span."""
        return Fraction(1)

    def log_top_mass(self, on: Arithmetic) -> Any:
        """log of the Q-mass of the largest x, or less."""
        return on.number(-np.inf)

    def far_cgf(self, rate: Fraction, lam: Array, on: Arithmetic) -> tuple[Array, Array] | None:
        """Where there is a closed form for log M to within its error, and that form."""
        return None

    def sampled(self, base: Curve, rate: Fraction, kernel: Kernel) -> SampledPair:
        """K of a pair with this law and this curve on a sample."""
        return SampledPair(self, base, rate, kernel)


def point(w: Any, L: Any, weight: Any, order: Fraction) -> Point:
    """What an exact kernel sees, where no power has to be taken apart."""
    return Point(w, L, weight, (BALLS.number(order) * L).exp() * weight)


def ball_exp(x: float) -> Any:
    """e^x as a ball, whatever its size."""
    from flint import arb

    return arb(x).exp()
