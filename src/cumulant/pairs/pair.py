"""Dominating pairs: the fact that the sharper theorems ask for (E-17), and everything that may be asked of one.

A pair is one file. `curve` is all that it must say; what it does not override is not offered, and nothing is claimed from it.
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
"""What the pair is on a sample, by its rate g < 1."""

_BITS = 128


class Pair(ABC):
    """Laws (P, Q) such that every ordered neighbouring pair of output laws is a post-processing of (P, Q) or of (Q, P).

    Every divergence of a neighbouring pair is then at most the larger of the two directions of (P, Q); each method
    below returns that larger value.
    """

    __slots__ = ()

    one_bit: bool = False
    """The output law sees one bit of the data only, so that the ternary divergence is the binary one (E-10)."""

    geometry: str = ""
    """What is known of the values that Gaussian noise is added to, "diameter" or "ball"; empty for other noise."""

    query: str = ""
    """What independent Laplace noise of one scale is added to, "scalar" or "vector"; empty where that is not what it is."""

    symmetric: bool = False
    """(P, Q) and (Q, P) are the same pair up to a bijection of the outputs."""

    chained: bool = False
    """`grouped` follows from a chain of neighbours, each step dominated by this pair, wherever the records of a group are."""

    attained: bool = True
    """Some neighbouring data sets have these two laws; otherwise they bound from above only."""

    rounded_curve: bool = False
    """The curve is above that of the two laws, so that it says nothing from below."""

    @property
    def whole_class(self) -> bool:
        """Whether all that is known is the largest loss, so that every mechanism of that privacy is meant."""
        return False

    @property
    def promise(self) -> bool:
        """Return True if all that is known is a statement about the mechanism, and no fixed step that has these two laws."""
        return self.whole_class

    estimated: bool = False
    """The numbers are self-checked quadrature, not bounds: true for densities given as Python functions."""

    @property
    def integrable(self) -> bool:
        """Whether integrals over the loss are within reach of the quadrature."""
        return True

    @property
    def summable(self) -> bool:
        """Whether sums over thousands of its moments are within reach."""
        return True

    def gaussian_shift(self) -> Fraction | None:
        """mu if N(mu, 1) against N(0, 1) is the pair up to a bijection of the outputs; None where that is not said."""
        return None

    @abstractmethod
    def curve(self) -> Curve:
        """The Rényi divergence at every order, KL and pure included."""

    def taylor(self, at: Fraction, count: int) -> list[Any] | None:
        """K, K', K''/2, …, the coefficients of K(at + h) in h, K(lambda) = log E_p (p/q)^lambda of the pair in its own order.

        Balls at the working precision, at every real lambda, also between -1 and 0. None where it is not offered.
        """
        return None

    # ---- the law of its loss: Proposition 11, the profile, Poisson samples

    def laws(self) -> tuple[Law, ...] | None:
        """The law of the loss log(p/q) under Q; of a pair that is not symmetric also that of log(q/p) under P."""
        return None

    def symmetrised(self) -> Law | None:
        """The law of the symmetric pair whose profile is the larger of both directions: its own, if it is symmetric."""
        laws = self.laws()
        return laws[0] if laws is not None and self.symmetric else None

    def mixed(self) -> OnSample | None:
        """K of (1-g)Q + gP against Q, the larger of both directions of the pair; +inf where that is out of reach."""
        laws = self.laws()
        return None if laws is None else lambda rate: _larger([law.sampled(self.curve(), rate, PAIR) for law in laws])

    def amplified(self) -> OnSample | None:
        """K of the symmetric pair whose profile is that of a sample, g d(log(1 + (e^eps - 1)/g)), Lemma 3 at every eps."""
        law = self.symmetrised()
        return None if law is None else lambda rate: law.sampled(self.curve(), rate, PROFILE)

    def poisson(self) -> OnSample | None:
        """K of (1-g)Q + gP against Q or of Q against (1-g)Q + gP, the largest over both directions of the pair.

        Of a symmetric pair the first is the larger one.
        """
        return self.mixed() if self.symmetric else None

    # ---- the lattice

    def loss(self) -> Loss | None:
        """The loss of the symmetric pair whose profile is the larger of both directions; None where no grid can hold it."""
        law = self.symmetrised()
        return None if law is None else law.on_grid()

    @property
    def gridded(self) -> bool:
        """Whether it says anything about the law of its loss that a grid can use."""
        return type(self).loss is not Pair.loss or self.symmetrised() is not None

    def above(self, rate: Fraction, direction: str) -> Step | None:
        """A step that dominates the pair on a sample, in one of the directions of `Mixture`; None where no grid can hold it."""
        loss = self.loss()
        return None if loss is None else loss.mixture(rate, direction)

    def unsampled(self) -> tuple[Step, ...] | None:
        """What it is without a sample: one step for both orders of neighbours, or two, the record removed and added."""
        step = self.above(Fraction(1), "symmetric")
        return None if step is None else (step,)

    def drawn(self, rate: Fraction) -> tuple[Pair, Fraction]:
        """Pair d and share g such that one round on a Poisson sample needs g d(log(1 + (e^eps - 1)/g)), and no less."""
        return self, rate

    def below(self, rate: Fraction, direction: str) -> Step | None:
        """(1-g)Q + gP against Q ("remove"), or the two swapped ("add"): output laws that neighbouring data sets have."""
        lower = self.dominated
        return lower.above(rate, direction) if lower.symmetric and lower.attained and not lower.estimated else None

    def triple(self, rate: Fraction) -> Step | None:
        """Three values that need more than two do: output laws of data sets that differ in one record, from below."""
        return None

    def corners(self, rate: Fraction) -> tuple[Step, Step] | None:
        """Three other values, in both orders of the data sets, where they need more still."""
        return None

    @property
    def dominated(self) -> Pair:
        """What `attained` is asked of from below: itself, or a pair that is a little less where this one was rounded."""
        return self

    def composed(self, parts: Sequence[tuple[Pair | None, int]]) -> Pair | None:
        """The pair of all these together, each so many times and perhaps depending on what came before, itself one of them."""
        return None

    # ---- the line

    def transform(self, rate: Fraction, direction: str) -> Transform | None:
        """The transform of a round that dominates the pair on a sample, in balls; None where it is not offered."""
        law = self.symmetrised() if type(self).loss is Pair.loss and type(self).above is Pair.above else None
        return None if law is None else law.transform(rate, direction)

    def transform_below(self, rate: Fraction, direction: str) -> Transform | None:
        """The transform of output laws that neighbouring data sets have, as `below` names them.

        A pair that has its own way from below says its own transform too.
        """
        lower = self.dominated
        if type(self).below is not Pair.below or type(lower).below is not Pair.below:
            return None
        return lower.transform(rate, direction) if lower.symmetric and lower.attained and not lower.estimated else None

    def grouped(self, size: int) -> Pair | None:
        """The pair of data sets that differ in so many records, where it is known."""
        return None

    def replacement(self, rate: Fraction) -> Pair | None:
        """The pair of a Poisson sample of this rate > 0 in which one record is replaced by another, where it is known.

        This pair is then that of a record added or removed; of `geometry="ball"` that of a record replaced, with what an
        absent record leaves in the centre.
        """
        return None

    def shuffled(self, reports: int) -> Pair | None:
        """The pair of so many reports of one randomizer that is dominated by this one, in random order, where it is known."""
        return None

    def bounded_range(self) -> Fraction | None:
        """The length of an interval that holds the log ratios of every two neighbours, where that is what is known of them."""
        return None

    def extremes(self) -> Extremes | None:
        """The triples on a sample of fixed size of which one is worst for every convex test function; None if not known."""
        return None

    def total_variation(self) -> Fraction | None:
        """Return the exact total variation distance, which is delta at epsilon 0; None if it is not a known fraction."""
        return None

    # ---- moments and profile

    @property
    def has_moments(self) -> bool:
        """Whether it offers its moments."""
        return type(self)._log_moments is not Pair._log_moments

    @property
    def closed(self) -> bool:
        """Whether it offers its profile in balls, so that one round of it has a closed form."""
        return type(self)._exact_profile is not Pair._exact_profile and not self.estimated

    def moments(self, orders: Any, on: Arithmetic = FLOATS) -> Any:
        """log E_q |p/q - 1|^l at integer orders l >= 1; in floats at every real one."""
        return self._answered(self._log_moments, orders, on)

    def positive_moments(self, orders: Any, on: Arithmetic = FLOATS) -> Any:
        """log E_q (p/q - 1)_+^l at integer orders l >= 1; in floats at every real one."""
        return self._answered(self._log_positive_moments, orders, on)

    def log_profile(self, epsilons: Any) -> Any:
        """log delta(eps) at eps >= 0, in float64: full relative accuracy also where delta underflows; -inf for 0."""
        epsilons = np.asarray(epsilons, dtype=np.float64)
        if not (epsilons >= 0).all():
            raise InputError(f"epsilon={epsilons[~(epsilons >= 0)].flat[0]:g} must be at least 0")
        value = self._log_profile(epsilons.ravel()).reshape(epsilons.shape)
        return value if value.ndim else float(value)

    def profile(self, epsilons: Any, on: Arithmetic = FLOATS) -> Any:
        """delta(eps) = E_q (p/q - e^eps)_+ at eps >= 0; on balls eps is exact."""
        if not on.exact:
            value = np.exp(self.log_profile(epsilons))
            return value if np.ndim(value) else float(value)
        epsilons = np.asarray(epsilons, dtype=object)
        value = self._exact_profile(epsilons.ravel(), on).reshape(epsilons.shape)
        return value if value.ndim else value[()]

    def _answered(self, moments: Callable[[Array, Arithmetic], Array], orders: Any, on: Arithmetic) -> Any:
        """A number for a number, an array for a sequence; what is proved about moments is proved at whole orders."""
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
        """The moments at a flat array of integers."""
        raise HypothesisError(f"{type(self).__name__} offers no moments")

    def _log_positive_moments(self, orders: Array, on: Arithmetic) -> Array:
        """The positive moments at a flat array of integers, or others that are not smaller."""
        return self._log_moments(orders, on)

    def _proved_moments(self, orders: Array, on: Arithmetic, both: bool) -> Array:
        """From balls; from above in closed form where only upper ends are asked for."""
        if on is UPPER:
            return UPPER.above(self._log_envelope(orders, both))
        if on is BOUNDED:
            with BALLS.at(_BITS):
                return BOUNDED.of_balls(self._exact_moments(orders, BALLS, both))
        if on is not BALLS:
            raise CertificateError(f"the moments of {type(self).__name__} are evaluated in balls only")
        return self._exact_moments(orders, on, both)

    def _exact_moments(self, orders: Array, on: Arithmetic, both: bool) -> Array:
        """The positive moments in balls, or those of `both` sides."""
        raise NotImplementedError

    def _log_envelope(self, orders: Array, both: bool) -> Array:
        """Floats above their logarithms, in closed form."""
        raise NotImplementedError

    def _log_profile(self, epsilons: Array) -> Array:
        """log delta at a flat float64 array."""
        raise HypothesisError(f"{type(self).__name__} offers no profile")

    def _exact_profile(self, epsilons: Array, on: Arithmetic) -> Array:
        """delta at a flat array of exact numbers, as balls."""
        raise CertificateError(f"{type(self).__name__} offers no profile in balls")


def _larger(curves: Sequence[Curve]) -> Curve:
    return curves[0] if len(curves) == 1 else Highest(tuple(curves))
