"""Dominating pairs (E-17), and everything that may be asked of one.

The sharper theorems need such a pair. A pair is one file. It must offer `curve`; a method that it does not override is
not offered, and nothing is claimed from it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from cumulant import domains
from cumulant.curves.curve import Curve
from cumulant.curves.maximum import Highest
from cumulant.errors import CertificateError, HypothesisError, InputError
from cumulant.losses.subsampled import PAIR, PROFILE
from cumulant.numerics.arithmetic import BALLS, FLOATS, Arithmetic, Array
from cumulant.numerics.enclosure import BOUNDED, UPPER

if TYPE_CHECKING:
    from cumulant.losses.grid import Loss, Step
    from cumulant.losses.law import Law
    from cumulant.losses.transform import Transform
    from cumulant.pairs.worst_triples import Extremes

OnSample = Callable[[Fraction], Curve]
"""A function from the rate g < 1 to the curve of the pair on a sample."""

MOMENT_BITS = 128
"""Bits of the balls from which enclosures of moments are rounded; 75 more than a float has."""


class Pair(ABC):
    """Laws (P, Q) such that every neighbouring pair of output laws is a post-processing of them.

    An ordered neighbouring pair is a post-processing of (P, Q) or of (Q, P). Every divergence of a neighbouring pair
    is then at most the larger of the two directions of (P, Q); each method below returns that larger value.
    """

    __slots__ = ()

    one_bit: bool = False
    """The output law sees one bit of the data only, so that the ternary divergence is the binary one (E-10)."""

    geometry: str = ""
    """The geometry, "diameter" or "ball", of the values that Gaussian noise is added to; empty for other noise."""

    query: str = ""
    """The query, "scalar" or "vector", that independent Laplace noise of one scale is added to; empty for other noise."""

    symmetric: bool = False
    """(P, Q) and (Q, P) are the same pair up to a bijection of the outputs."""

    chained: bool = False
    """`group_pair` follows from a chain of neighbours, each step dominated by this pair, wherever a group's records are."""

    attained: bool = True
    """Some neighbouring data sets have these two laws; otherwise they bound from above only."""

    rounded_curve: bool = False
    """The curve is above that of the two laws, so that it says nothing from below."""

    @property
    def whole_class(self) -> bool:
        """True if only the largest loss is known, so that every mechanism of that privacy is meant."""
        return False

    @property
    def promise(self) -> bool:
        """Return True if the pair states a promise about the mechanism.

        No fixed step with these two laws is known then.
        """
        return self.whole_class

    estimated: bool = False
    """The numbers are self-checked quadrature, not bounds: true for densities given as Python functions."""

    bounded: bool = False
    """Its numbers are answers in floats about other runs, so that no answer from its laws is proved."""

    @property
    def integrable(self) -> bool:
        """True if the quadrature can integrate over the loss."""
        return True

    @property
    def summable(self) -> bool:
        """True if sums over thousands of moments are fast enough."""
        return True

    def gaussian_shift(self) -> Fraction | None:
        """Return mu if the pair is N(mu, 1) against N(0, 1) up to a bijection; else None."""
        return None

    @abstractmethod
    def curve(self) -> Curve:
        """Return the Rényi divergence at every order, KL and pure included."""

    def taylor(self, at: Fraction, count: int) -> list[Any] | None:
        """Return K, K', K''/2, …, the Taylor coefficients of K at lambda; None if not offered.

        K(lambda) = log E_p (p/q)^lambda of the pair in its own order. The coefficients are balls at the working
        precision, at every real lambda, also between -1 and 0.
        """
        return None

    # ---- the law of its loss: Proposition 11, the profile, Poisson samples

    def laws(self) -> tuple[Law, ...] | None:
        """Return the law of log(p/q) under Q; if not symmetric also that of log(q/p) under P.

        Returns None if no law is offered.
        """
        return None

    def symmetric_law(self) -> Law | None:
        """Return the law of the symmetric pair whose profile is the larger of both directions.

        A symmetric pair returns its own law. Returns None if no such law is offered.
        """
        laws = self.laws()
        return laws[0] if laws is not None and self.symmetric else None

    def mixture_curve(self) -> OnSample | None:
        """Return K of (1-g)Q + gP against Q as a function of g, the larger of both directions.

        K is +inf where it is out of reach. Returns None if the pair offers no law.
        """
        laws = self.laws()
        return None if laws is None else lambda rate: _larger([law.sampled(self.curve(), rate, PAIR) for law in laws])

    def amplified_curve(self) -> OnSample | None:
        """Return K of the symmetric pair of the amplified profile, as a function of the rate g.

        The profile of a sample is g d(log(1 + (e^eps - 1)/g)), Lemma 3 at every eps. Returns None if it is not
        offered.
        """
        law = self.symmetric_law()
        return None if law is None else lambda rate: law.sampled(self.curve(), rate, PROFILE)

    def poisson_curve(self) -> OnSample | None:
        """Return K on a Poisson sample as a function of g, the largest over both directions.

        The two laws are (1-g)Q + gP and Q, in both orders; if the pair is symmetric, the first order is the larger
        one. Returns None if it is not offered.
        """
        return self.mixture_curve() if self.symmetric else None

    # ---- the grid

    def loss(self) -> Loss | None:
        """Return the loss of the symmetric pair whose profile is the larger of both directions.

        Returns None if no grid can hold it; the caller then uses Rényi divergences.
        """
        law = self.symmetric_law()
        return None if law is None else law.on_grid()

    @property
    def has_grid_loss(self) -> bool:
        """True if the pair offers the law of its loss in a form that a grid can use."""
        return type(self).loss is not Pair.loss or self.symmetric_law() is not None

    def upper_step(self, rate: Fraction, direction: str) -> Step | None:
        """Return a step that dominates the pair on a sample, in one direction of `Mixture`.

        Returns None if no grid can hold it.
        """
        loss = self.loss()
        return None if loss is None else loss.mixture(rate, direction)

    def unsampled_steps(self) -> tuple[Step, ...] | None:
        """Return the steps without a sample; None if no grid can hold them.

        One step serves both orders of neighbours; otherwise there are two, the record removed and added.
        """
        step = self.upper_step(Fraction(1), "symmetric")
        return None if step is None else (step,)

    def poisson_profile(self, rate: Fraction) -> tuple[Pair, Fraction]:
        """Return a pair d and a share g such that a Poisson round needs g d(log(1 + (e^eps - 1)/g)).

        The round needs no less than that, so the profile is exact.
        """
        return self, rate

    def lower_step(self, rate: Fraction, direction: str) -> Step | None:
        """Return (1-g)Q + gP against Q ("remove") or the two swapped ("add"), for lower ends.

        Neighbouring data sets have these output laws. Returns None if that is not known.
        """
        lower = self.lower_pair
        return lower.upper_step(rate, direction) if lower.symmetric and lower.attained and not lower.estimated else None

    def triple(self, rate: Fraction) -> Step | None:
        """Return the output laws of three values that need more than two do; None if not known.

        They belong to data sets that differ in one record, so they bound from below.
        """
        return None

    def triple_transform(self, rate: Fraction) -> Transform | None:
        """Return the transform of the step that `triple` returns; None if it is not offered."""
        return None

    def corners(self, rate: Fraction) -> tuple[Step, Step] | None:
        """Return the steps of three other values, in both orders of data sets; None if not known."""
        return None

    @property
    def lower_pair(self) -> Pair:
        """The pair that lower ends use: itself, or a slightly smaller one if this one was rounded."""
        return self

    def composed_pair(self, parts: Sequence[tuple[Pair | None, int]]) -> Pair | None:
        """Return the pair of all these parts together, itself one of them; None if it is not known.

        Each part occurs so many times, and may depend on the answers before it.
        """
        return None

    # ---- the line

    def transform(self, rate: Fraction, direction: str) -> Transform | None:
        """Return the transform of a round that dominates the pair on a sample, in balls.

        Returns None if it is not offered; the caller then uses the grid.
        """
        law = (
            self.symmetric_law() if type(self).loss is Pair.loss and type(self).upper_step is Pair.upper_step else None
        )
        return None if law is None else law.transform(rate, direction)

    def lower_transform(self, rate: Fraction, direction: str) -> Transform | None:
        """Return the transform of the output laws of `lower_step`; None if it is not offered.

        A pair that overrides `lower_step` must override this too.
        """
        lower = self.lower_pair
        if type(self).lower_step is not Pair.lower_step or type(lower).lower_step is not Pair.lower_step:
            return None
        return lower.transform(rate, direction) if lower.symmetric and lower.attained and not lower.estimated else None

    def group_pair(self, size: int) -> Pair | None:
        """Return the pair of data sets that differ in so many records; None if it is not known."""
        return None

    def replacement(self, rate: Fraction) -> Pair | None:
        """Return the pair of a Poisson sample in which one record is replaced; None if not known.

        The rate is above 0. This pair is then that of a record added or removed; with `geometry="ball"` it is that of
        a record replaced, and an absent record leaves the centre.
        """
        return None

    def shuffled_pair(self, reports: int) -> Pair | None:
        """Return the pair of so many shuffled reports of a randomizer; None if it is not known.

        This pair must dominate the randomizer.
        """
        return None

    def bounded_range(self) -> Fraction | None:
        """Return the length of an interval that holds the log ratios of all neighbours, or None."""
        return None

    def extremes(self) -> Extremes | None:
        """Return the triples on a sample of fixed size of which one is worst for every convex test.

        Returns None if they are not known.
        """
        return None

    def total_variation(self) -> Fraction | None:
        """Return the exact total variation distance, delta at epsilon 0; None if no known fraction."""
        return None

    # ---- moments and profile

    @property
    def has_moments(self) -> bool:
        """True if the pair offers its moments."""
        return type(self)._log_moments is not Pair._log_moments

    @property
    def has_closed_form(self) -> bool:
        """True if the pair offers its profile in balls, so that one round has a closed form."""
        return type(self)._exact_profile is not Pair._exact_profile and not self.estimated

    def moments(self, orders: Any, on: Arithmetic = FLOATS) -> Any:
        """Return log E_q |p/q - 1|^l at integer orders l >= 1; in floats at every real one."""
        return self._evaluate_moments(self._log_moments, orders, on)

    def positive_moments(self, orders: Any, on: Arithmetic = FLOATS) -> Any:
        """Return log E_q (p/q - 1)_+^l at integer orders l >= 1; in floats at every real one."""
        return self._evaluate_moments(self._log_positive_moments, orders, on)

    def log_profile(self, epsilons: Any) -> Any:
        """Return log delta(eps) at eps >= 0, in float64; -inf if delta is 0.

        The relative accuracy is full also where delta underflows.
        """
        epsilons = np.asarray(epsilons, dtype=np.float64)
        if not (epsilons >= 0).all():
            raise InputError(f"epsilon={epsilons[~(epsilons >= 0)].flat[0]:g} must be at least 0")
        value = self._log_profile(epsilons.ravel()).reshape(epsilons.shape)
        return value if value.ndim else float(value)

    def profile(self, epsilons: Any, on: Arithmetic = FLOATS) -> Any:
        """Return delta(eps) = E_q (p/q - e^eps)_+ at eps >= 0; on balls eps is exact."""
        if not on.exact:
            value = np.exp(self.log_profile(epsilons))
            return value if np.ndim(value) else float(value)
        epsilons = np.asarray(epsilons, dtype=object)
        value = self._exact_profile(epsilons.ravel(), on).reshape(epsilons.shape)
        return value if value.ndim else value[()]

    def _evaluate_moments(self, moments: Callable[[Array, Arithmetic], Array], orders: Any, on: Arithmetic) -> Any:
        """Return a number for a number and an array for a sequence of orders.

        Proofs about moments are at integer orders only; other orders are refused unless floats answer.
        """
        numbers, scalar = domains.orders(orders)
        whole = (numbers == np.floor(numbers)) & (numbers <= 2**53)
        if not whole.all():
            if on is not FLOATS or np.isinf(numbers).any():
                wrong = numbers[~whole][0]
                raise InputError(
                    f"order={wrong:g} must be an integer; in between and in floats every finite order has a moment"
                )
            value = moments(numbers, on)
            return value[0] if scalar else value
        integers = numbers.astype(np.int64)
        measured = on.enclosing and self.estimated
        value = BOUNDED.measured(moments(integers, FLOATS)) if measured else moments(integers, on)
        return value[0] if scalar else value

    def _log_moments(self, orders: Array, on: Arithmetic) -> Array:
        """Return the log moments at a flat array of integers."""
        raise HypothesisError(f"{type(self).__name__} offers no moments")

    def _log_positive_moments(self, orders: Array, on: Arithmetic) -> Array:
        """Return the log positive moments at a flat array of integers, or larger numbers."""
        return self._log_moments(orders, on)

    def _proved_moments(self, orders: Array, on: Arithmetic, both: bool) -> Array:
        """Return moments from balls, or a closed form if only upper ends are asked for."""
        if on is UPPER:
            return UPPER.above(self._log_envelope(orders, both))
        if on is BOUNDED:
            with BALLS.at(MOMENT_BITS):
                return BOUNDED.of_balls(self._exact_moments(orders, BALLS, both))
        if on is not BALLS:
            raise CertificateError(f"the moments of {type(self).__name__} are evaluated in balls only")
        return self._exact_moments(orders, on, both)

    def _exact_moments(self, orders: Array, on: Arithmetic, both: bool) -> Array:
        """Return the log positive moments in balls, or those of `both` sides."""
        raise NotImplementedError

    def _log_envelope(self, orders: Array, both: bool) -> Array:
        """Return floats above the log moments, in closed form."""
        raise NotImplementedError

    def _log_profile(self, epsilons: Array) -> Array:
        """Return log delta at a flat float64 array."""
        raise HypothesisError(f"{type(self).__name__} offers no profile")

    def _exact_profile(self, epsilons: Array, on: Arithmetic) -> Array:
        """Return delta at a flat array of exact numbers, as balls."""
        raise CertificateError(f"{type(self).__name__} offers no profile in balls")


def _larger(curves: Sequence[Curve]) -> Curve:
    return curves[0] if len(curves) == 1 else Highest(tuple(curves))
