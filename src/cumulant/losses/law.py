"""The law of the privacy loss x = log(p/q) under Q, and everything that may be asked of it."""

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
    """The law of x under Q; `whole` means all x, otherwise x > 0.

    A method that a subclass does not override is not offered.
    """

    __slots__ = ()

    @abstractmethod
    def nodes(self, lam: Array, rate: Rate, term: Term, whole: bool) -> Nodes:
        """Return nodes for the term at each order a = lambda + 1.

        The term is at most w^a, or a g where x < 0.
        """

    @abstractmethod
    def enclosure(
        self, term: BallTerm, order: Fraction, rate: Fraction, whole: bool, log_size: float, bits: int
    ) -> Scalar:
        """Return a ball that contains E_Q[term], good to about this many bits.

        log_size is about the logarithm of the integral; it only sets the precision.
        """

    def excess(self, order: Fraction, rate: Fraction, bits: int) -> Scalar | None:
        """Return a ball of E_Q w^a - 1 by a shorter way than an integral; None if there is none."""
        return None

    def line(self) -> Line | None:
        """Return the density of x as a `Line`; None if x has no density."""
        return None

    def log_excess(self, rate: Fraction, lam: Array) -> Enclosure | None:
        """Return log E_Q[f_a(w)], Proposition 11's kernel, from one grid for all orders.

        It is NaN at orders that the grid does not serve. Returns None if the law offers no such grid.
        """
        return None

    def profile_excess(self, rate: Fraction, lam: Array) -> Array:
        """Return the profile's moment less the pair's, in floats; NaN where no fast way is known."""
        return np.full(lam.shape, np.nan)

    def enclosed_atoms(self, rate: Fraction, whole: bool) -> tuple[Enclosure, Enclosure] | None:
        """Return the logarithms of the Q-masses of the atoms and L there; None without atoms."""
        return None

    def on_grid(self) -> Loss | None:
        """Return the law for a grid; None unless the pair is symmetric and the grid can hold it."""
        return None

    def transform(self, rate: Fraction, direction: str) -> Transform | None:
        """Return the transform of the pair on a sample, in balls; None if it is not offered."""
        return None

    @property
    def scale(self) -> Fraction:
        """The sensitivity over the noise; 1 if there is no noise whose scales an integral must span."""
        return Fraction(1)

    def log_top_mass(self, on: Arithmetic) -> Any:
        """Return log of the Q-mass of the largest x, or less."""
        return on.number(-np.inf)

    def far_cgf(self, rate: Fraction, lam: Array, on: Arithmetic) -> tuple[Array, Array] | None:
        """Return where a closed form for log M holds within its error, and the form; or None."""
        return None

    def sampled(self, base: Curve, rate: Fraction, kernel: Kernel) -> SampledPair:
        """Return K of a pair with this law and this curve on a sample of this rate."""
        return SampledPair(self, base, rate, kernel)


def point(w: Any, L: Any, weight: Any, order: Fraction) -> Point:
    """Return the arguments of an exact kernel at one loss, w^a being e^{aL}."""
    return Point(w, L, weight, (BALLS.number(order) * L).exp() * weight)


def ball_exp(x: float) -> Any:
    """Return e^x as a ball, whatever its size."""
    from flint import arb

    return arb(x).exp()
