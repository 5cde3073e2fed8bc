"""The binary pair P = (p, 1-p) against Q = (1-p, p).

It is the worst pair of pure differential privacy, and with a leak that of approximate privacy.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np

from cumulant.curves.closed_form import Response
from cumulant.curves.curve import Curve
from cumulant.losses.atom_transform import PointTransform, point_transform
from cumulant.losses.atoms import randomized_response_loss
from cumulant.losses.grid import Loss, Step
from cumulant.losses.integrals import Nodes, atoms
from cumulant.losses.law import Law, point
from cumulant.losses.subsampled import BallTerm, Rate, Term, enclosed_loss, mixed_ball
from cumulant.numerics.arithmetic import BALLS, FLOATS, Arithmetic, Array, Scalar
from cumulant.numerics.enclosure import BOUNDED, Enclosure
from cumulant.numerics.rounding import at_least, rounded_up
from cumulant.numerics.taylor import coefficients, exponential_sum, line
from cumulant.pairs.pair import Pair
from cumulant.pairs.shuffle import ShuffledPair
from cumulant.pairs.worst_triples import Extremes, Masses, Share, Triple


@dataclass(frozen=True, slots=True)
class ResponsePair(Pair):
    """Randomized response with the true answer with probability p = e^e0 / (1 + e^e0).

    Both directions agree. It is given by p, or by epsilon = e0. Every mechanism with privacy loss at most e0 is a
    post-processing of it, but only randomized response itself sees one bit of the data, which `one_bit` records.

    >>> ResponsePair(p=Fraction(3, 5)).moments([2, 4])
    array([-1.79175947, -3.42936826])
    >>> ResponsePair(epsilon=Fraction(1)).profile([0, 1])
    array([0.46211716, 0.        ])
    """

    p: Fraction | None = None
    epsilon: Fraction = Fraction(0)
    one_bit: bool = False
    attained: bool = True

    symmetric = True

    @property
    def whole_class(self) -> bool:
        return not self.one_bit

    @property
    def chained(self) -> bool:  # type: ignore[override]
        """True unless the pair sees one bit: two mechanisms report two bits about two records."""
        return not self.one_bit

    def curve(self) -> Response:
        return Response(p=self.p, epsilon=self.epsilon)

    def laws(self) -> tuple[Law, ...]:
        return (ResponseLaw(self.curve()),)

    def transform(self, rate: Fraction, direction: str) -> PointTransform | None:
        return point_transform(ResponsePoints(self.curve()), rate, direction)

    def group_pair(self, size: int) -> Pair | None:
        """Return the pair itself for one bit; otherwise the losses of a chain of records add up.

        No chain attains the sum: with two answers the data set in between would have the mass 1/cosh(epsilon) only.
        Returns None if the pair is given by p.
        """
        if self.one_bit:
            return self
        return ResponsePair(epsilon=self.epsilon * size, attained=False) if self.p is None else None

    def shuffled_pair(self, reports: int) -> Pair | None:
        if not self.curve().pure():
            return self
        return ShuffledPair(reports, None if self.p is None else self.p / (1 - self.p), self.epsilon)

    def triple(self, rate: Fraction) -> Step | None:
        """Return three values; None for one bit, whose third value is one of the first two."""
        return (
            None
            if self.one_bit or not self.attained
            else ResponseTriple(float(self.curve().pure()), float(rate), float(1 - rate))
        )

    def extremes(self) -> Extremes:
        """Return two answers, and three unless the pair sees only one bit (Theorem P)."""
        one = Fraction(1)
        odds = None if self.p is None else self.p / (1 - self.p)
        third = None if self.one_bit else Share(one, Fraction(2), one)
        return Extremes(self.epsilon, odds, Share(one, one, one), third)

    def taylor(self, at: Fraction, count: int) -> list[Any] | None:
        # e^K = p e^{lambda e0} + (1-p) e^{-lambda e0}, (1-p)/p = e^-e0
        e0 = self.curve().pure(BALLS)
        p = 1 / (1 + (-e0).exp())
        return coefficients(exponential_sum([p, p * (-e0).exp()], [e0, -e0], line(at, count)).log(), count)

    def _log_moments(self, orders: Array, on: Arithmetic) -> Array:
        """Return log of (2p-1)^l [(1-p)^{1-l} + p^{1-l}], written with e0."""
        e0, above = self.curve().pure(on), self._log_positive_moments(orders, on)
        # E_q (1 - p/q)_+^l = p (1 - e^-e0)^l = e^{-(l-1) e0} E_q (p/q - 1)_+^l
        return above + on.log1p_exp((1 - _numbers(orders, on)) * e0)

    def _log_positive_moments(self, orders: Array, on: Arithmetic) -> Array:
        """Return log of (1-p) (e^e0 - 1)^l."""
        e0, numbers = self.curve().pure(on), _numbers(orders, on)
        if self.p == Fraction(1, 2) or (self.p is None and self.epsilon == 0):
            return numbers * 0 + on.number(-np.inf)
        with np.errstate(divide="ignore"):
            return numbers * on.log_expm1(e0) - on.log1p_exp(e0)

    def _log_profile(self, epsilons: Array) -> Array:
        """Return log delta, delta = p (1 - e^{eps-e0})_+."""
        e0 = self.curve().pure()
        with np.errstate(divide="ignore"):
            gap = np.log(-np.expm1(np.minimum(epsilons - e0, 0.0)))
        return np.asarray(gap - FLOATS.log1p_exp(-e0))

    def total_variation(self) -> Fraction | None:
        return None if self.p is None else 2 * self.p - 1

    def _exact_profile(self, epsilons: Array, on: Arithmetic) -> Array:
        e0 = self.curve().pure(on)
        p = 1 / (1 + (-e0).exp())
        gap = on.asarray(epsilons) - e0
        return np.asarray(np.frompyfunc(lambda v: (-p * v.expm1()).nonnegative_part(), 1, 1)(gap))


def _numbers(orders: Array, on: Arithmetic) -> Array:
    return on.asarray(orders.astype(object if on.exact else np.float64))


# ---- the law of its loss


@dataclass(frozen=True, slots=True)
class ResponseLaw(Law):
    """The loss e0 with mass 1/(1+e^e0), -e0 with the rest; e0 is the pure epsilon of the curve."""

    curve: Curve

    others: ClassVar[int] = 1
    """Answers besides the own one."""

    def nodes(self, lam: Array, rate: Rate, term: Term, whole: bool) -> Nodes:
        e0 = float(self.curve.pure())
        x = np.array([e0, -e0] if whole else [e0])
        return atoms(-np.logaddexp(math.log(self.others), x), x, lam, rate)

    def enclosed_atoms(self, rate: Fraction, whole: bool) -> tuple[Enclosure, Enclosure]:
        e0 = self.curve.at_infinity(BOUNDED)
        x = BOUNDED.asarray([e0, -e0] if whole else [e0])
        return -BOUNDED.log_add_exp(BOUNDED.log(BOUNDED.number(self.others)), x), enclosed_loss(x, rate)

    def on_grid(self) -> Loss | None:
        return randomized_response_loss(float(self.curve.pure()))

    def enclosure(
        self, term: BallTerm, order: Fraction, rate: Fraction, whole: bool, log_size: float, bits: int
    ) -> Scalar:
        g, e0 = BALLS.number(rate), self.curve.pure(BALLS)

        def atom(x: Any) -> Any:
            w = mixed_ball(x, g)
            return term(point(w, w.log(), 1 / (self.others + x.exp()), order))

        return atom(e0) + atom(-e0) if whole else atom(e0)


@dataclass(frozen=True, slots=True)
class TernaryLaw(ResponseLaw):
    """The loss e0 with mass 1/(2+e^e0), that of each wrong answer out of three; x > 0 only."""

    others: ClassVar[int] = 2


@dataclass(frozen=True, slots=True)
class ResponsePoints:
    """The two answers in balls, given with probability 1 - leak."""

    curve: Response

    def exact_points(self) -> list[tuple[Scalar, Scalar]]:
        e0 = self.curve.pure(BALLS)
        return [] if e0.is_zero() else [(e0, BALLS.number(1 - self.curve.leak) / (1 + e0.exp()))]

    def exact_equal(self) -> Scalar:
        return BALLS.number(0)

    def exact_leak(self) -> Fraction:
        return self.curve.leak

    def exact_unit(self) -> Fraction | None:
        return self.curve.epsilon if self.curve.p is None else None


# ---- three values that are worse than two


@dataclass(frozen=True, slots=True)
class ResponseTriple(Triple):
    """Three inputs of 3-ary randomized response, log-odds t = shift of the own answer."""

    shift: float
    rate: float
    kept: float

    def masses(self, log_mass: float) -> Masses:
        """Return e^t / (e^t + 2) for the own answer, 1 / (e^t + 2) for each other one."""
        other = -np.logaddexp(self.shift, math.log(2))
        return tuple(np.where(np.arange(3) == own, other + self.shift, other) for own in range(3))

    def anchor(self) -> float | None:
        return self.largest()

    @property
    def exact_lattice(self) -> bool:
        return self.shift > 0


# ---- an answer with probability 1 - leak, otherwise the input


@dataclass(frozen=True, slots=True)
class PromisePair(Pair):
    """The worst pair of (epsilon, leak)-differential privacy.

    It is randomized response with log-odds epsilon with probability 1 - leak; otherwise it reveals the input. Its
    divergences are infinite; the curve carries the leak as slack.
    """

    epsilon: Fraction
    leak: Fraction
    attained: bool = True

    symmetric = True
    chained = True

    @property
    def promise(self) -> bool:
        return True

    def curve(self) -> Response:
        return Response(epsilon=self.epsilon, leak=self.leak)

    def group_pair(self, size: int) -> PromisePair:
        """Return the pair of (k epsilon, delta (e^{k epsilon} - 1) / (e^epsilon - 1)).

        The triangle inequality gives it, step by step.
        """
        with BALLS.at(128):
            e = BALLS.number(self.epsilon)
            factor = (size * e).expm1() / e.expm1() if self.epsilon else BALLS.number(size)
            grown = min(self.leak * at_least(factor.upper()), Fraction(1)) if factor.is_finite() else Fraction(1)
        return PromisePair(
            self.epsilon * size, Fraction(rounded_up(grown)) if self.leak else Fraction(0), attained=False
        )

    def loss(self) -> Loss | None:
        return randomized_response_loss(float(Response(epsilon=self.epsilon).pure()), self.leak)

    def transform(self, rate: Fraction, direction: str) -> PointTransform | None:
        return point_transform(ResponsePoints(self.curve()), rate, direction)
