"""The Gaussian mixture pair: noise around a random shift against the noise itself.

The data set with the record has the random shift.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from cumulant.curves.curve import Curve
from cumulant.curves.gaussian_mixture import MixtureCurve, Shifts
from cumulant.curves.maximum import Highest
from cumulant.losses.gaussian_transform import normal_tail
from cumulant.losses.grid import Loss, Step
from cumulant.numerics.arithmetic import FLOATS, Arithmetic, Array
from cumulant.numerics.differences import escalated
from cumulant.numerics.lazy_scipy import special
from cumulant.numerics.rounding import rounded_up
from cumulant.pairs.pair import OnSample, Pair
from cumulant.pairs.public_choice import PublicChoiceStep


@dataclass(frozen=True, slots=True)
class MixtureSettings:
    """Limits of the Gaussian mixture pair.

    Beyond them less is offered, so validity does not depend on them.
    """

    largest_shift: Fraction = Fraction(300)
    """Shift in standard deviations beyond which no grid is offered; its weight then counts as a leak."""

    smallest_shift: Fraction = Fraction(1, 10**100)
    """Shift in standard deviations at and below which no grid is offered; squares would underflow."""

    no_shift: Fraction = Fraction(1, 10**9)
    """Shift that stands for none beside a leak; a larger shift dominates, at a loss of about 1e-9."""

    farthest_shift: int = 10**6
    """Shift in standard deviations beyond which nothing is protected and delta is 1."""


SETTINGS = MixtureSettings()
"""The settings in force; a test may replace them."""

FARTHEST = 39.0
"""Standard deviations beyond which there is less mass than any float; derived: 39^2 / 2 > 745."""

LOG_LEAST_FLOAT = -745.0
"""Logarithm of the least positive float."""


@dataclass(frozen=True, slots=True)
class GaussianMixturePair(Pair):
    """P = SUM w_i N(c_i, 1), the data set with the record, against Q = N(0, 1).

    It is for add/remove neighbours only. The two directions are different, and a run has one of them throughout: steps
    come in twos, and answers are the larger one. The ratio p/q increases with the output, so that one root and normal
    tails give the profile. It offers its loss on a grid, and no transform (docs/mechanisms/gaussian-mixture.md).

    >>> pair = GaussianMixturePair(Shifts.of((0, 1), (Fraction(9, 10), Fraction(1, 10))))
    >>> pair.profile([0, 0.1])
    array([0.03829249, 0.01847193])
    """

    law: Shifts

    @property
    def directions(self) -> tuple[MixtureCurve, MixtureCurve]:
        """The curves of the record removed and of the record added."""
        return MixtureCurve(self.law, "remove"), MixtureCurve(self.law, "add")

    def curve(self) -> Curve:
        return Highest(self.directions)

    def _on(self, rate: Fraction) -> GaussianMixturePair:
        return self if rate == 1 else GaussianMixturePair(self.law.mixed(rate))

    # ---- samples: a mixture again

    def poisson_curve(self) -> OnSample:
        return lambda rate: self._on(rate).curve()

    def poisson_profile(self, rate: Fraction) -> tuple[Pair, Fraction]:
        return self._on(rate), Fraction(1)

    @property
    def has_closed_form(self) -> bool:
        return self.law.largest <= SETTINGS.farthest_shift

    def loss(self) -> Loss | None:
        largest = self.law.largest
        return MixtureLoss(self.law) if SETTINGS.smallest_shift < largest <= SETTINGS.largest_shift else None

    def upper_step(self, rate: Fraction, direction: str) -> Step | None:
        pair = self._on(rate)
        loss = None if direction == "symmetric" else pair.loss()
        if loss is not None:
            return loss.mixture(Fraction(1), direction)
        return pair._leaking(direction) if direction != "symmetric" else None

    def _leaking(self, direction: str) -> Step | None:
        """Return the near shifts, with the weight w of all far ones as a leak.

        Returns None if no shift is far, or if all are.

        P = (1-w) P' + w F with F the far part. *Proof* that w + (1-w) H(P'||Q) and w + (1-w) H(Q||P') bound the two
        directions, H at any e^eps >= 1. Removed: P - e^eps Q <= w F + (1-w) (P' - e^eps Q), and F has mass 1. Added:
        Q - e^eps P <= w Q + (1-w) (Q - e^eps P'), and Q has mass 1. They are the profiles of a public coin: with
        probability w everything leaks, otherwise the near shifts are seen. So these pairs dominate, and compose. QED
        """
        law = self.law
        near = [
            (shift, weight)
            for shift, weight in zip(law.shifts, law.weights, strict=True)
            if shift <= SETTINGS.largest_shift
        ]
        kept = sum((weight for _, weight in near), Fraction(0))
        if not 0 < kept < 1:
            return None
        found = Shifts.of([shift for shift, _ in near], [weight / kept for _, weight in near])
        if found.largest <= SETTINGS.smallest_shift:
            found = Shifts.of([SETTINGS.no_shift], [Fraction(1)])
        step = GaussianMixturePair(found).upper_step(Fraction(1), direction)
        return None if step is None else PublicChoiceStep(((rounded_up(kept), step),), rounded_up(1 - kept))

    def unsampled_steps(self) -> tuple[Step, ...] | None:
        found = [self.upper_step(Fraction(1), direction) for direction in ("remove", "add")]
        steps = tuple(step for step in found if step is not None)
        return steps if len(steps) == len(found) else None

    def lower_step(self, rate: Fraction, direction: str) -> Step | None:
        # what leaks in place of a far shift is more than data sets have
        return None if self._on(rate).loss() is None else self.upper_step(rate, direction)

    # ---- the profile

    def _log_profile(self, epsilons: Array) -> Array:
        if not self.law.largest:
            return np.full(epsilons.shape, -np.inf)
        if self.law.largest > SETTINGS.farthest_shift:
            return np.zeros(epsilons.shape)
        c, log_w = np.array([float(x) for x in self.law.shifts]), np.log([float(w) for w in self.law.weights])
        size = np.minimum(epsilons, 1e6)
        with np.errstate(all="ignore"):
            z = self.law.crossings(size)
            p, q = FLOATS.log_sum_exp(log_w + special.log_ndtr(c - z[:, None])), size + special.log_ndtr(-z)
            removed = p + np.log(-np.expm1(np.minimum(q - p, 0.0)))
            z = self.law.crossings(-size)
            q, p = special.log_ndtr(z), size + FLOATS.log_sum_exp(log_w + special.log_ndtr(z[:, None] - c))
            added = q + np.log(-np.expm1(np.minimum(p - q, 0.0)))
        added = np.where(np.isnan(added), -np.inf, added)
        return np.where(np.isnan(removed), 0.0, np.minimum(np.maximum(removed, added), 0.0))

    def _exact_profile(self, epsilons: Array, on: Arithmetic) -> Array:
        if not 0 < self.law.largest <= SETTINGS.farthest_shift:
            return np.array([on.number(int(self.law.largest > 0)) for _ in epsilons], dtype=object)
        return np.asarray(np.frompyfunc(lambda epsilon: self._delta(Fraction(epsilon), on), 1, 1)(epsilons))

    def _delta(self, epsilon: Fraction, on: Arithmetic) -> Any:
        c, w = self.law.shifts, self.law.weights

        def removed() -> Array:
            z = self._crossing(epsilon, on)
            gained = sum(
                (on.number(b) * normal_tail(z - on.number(a)) for a, b in zip(c, w, strict=True)), on.number(0)
            )
            return np.array([gained - on.number(epsilon).exp() * normal_tail(z)], dtype=object)

        def added() -> Array:
            z = self._crossing(-epsilon, on)
            lost = sum((on.number(b) * normal_tail(on.number(a) - z) for a, b in zip(c, w, strict=True)), on.number(0))
            return np.array([normal_tail(-z) - on.number(epsilon).exp() * lost], dtype=object)

        def settled(evaluate: Callable[[], Array]) -> Any:
            parts = np.frompyfunc(lambda v: v.nonnegative_part(), 1, 1)
            return escalated(evaluate, on, parts, negligible=4096)[0]

        found = settled(removed)
        return found if self._moved(-epsilon, on) <= 0 else found.max(settled(added))  # the ratio may never be so small

    def _moved(self, height: Fraction, on: Arithmetic) -> Any:
        """Return the part of R that shifts above zero add where log R is `height`.

        Nothing is lost beside 1.
        """
        weight = sum((b for a, b in zip(self.law.shifts, self.law.weights, strict=True) if a), Fraction(0))
        return on.number(height).expm1() + on.number(weight)

    def _crossing(self, height: Fraction, on: Arithmetic) -> Any:
        """Return a ball that holds the output at which log(p/q) is `height`.

        The signs on both sides of it prove that; NaN if no signs do.
        """
        # the logarithm of that part is convex, with slopes between the smallest and the largest shift: Newton's steps find it
        moved = [(on.number(a), on.number(b)) for a, b in zip(self.law.shifts, self.law.weights, strict=True) if a]
        target = self._moved(height, on).log()

        def log_ratio(z: Any) -> tuple[Any, Any]:
            terms = [(a, b * (a * z - a * a / 2).exp()) for a, b in moved]
            total = sum((each for _, each in terms), on.number(0))
            return total.log() - target, sum((a * each for a, each in terms), on.number(0)) / total

        z = on.number(self.law.crossing(float(height)))
        for _ in range(64):
            value, slope = log_ratio(z)
            step = (value / slope).mid()
            z = (z - step).mid()
            if abs(step) <= (abs(z) + 1) * on.number(2) ** (8 - on.precision()):
                break
        size = (abs(z) + 1) * on.number(2) ** (16 - on.precision())
        for _ in range(8):
            if log_ratio(z - size)[0] < 0 < log_ratio(z + size)[0]:
                return (z - size).union(z + size)
            size = size * 256
        return on.number(math.nan)


@dataclass(frozen=True, slots=True)
class MixtureLoss(Loss):
    """The loss L = log R(y) at the output y ~ N(0, 1) under Q.

    Beyond 39 standard deviations there is less mass than any float.
    """

    law: Shifts

    @property
    def _ends(self) -> tuple[float, float]:
        return -FARTHEST, FARTHEST + float(self.law.largest)

    def loss(self, y: Array) -> Array:
        return np.asarray(self.law.log_ratio(np.ravel(y), FLOATS).reshape(np.shape(y)))

    def place(self, x: Array) -> Array:
        return np.clip(self.law.crossings(np.asarray(x, dtype=np.float64)), *self._ends)

    def log_density(self, y: Array) -> Array:
        return -y * y / 2 - 0.5 * math.log(2 * math.pi)

    def roughness(self, y: Array) -> Array:
        # |He_8(z)| <= (|z| + 3)^8, for every part of P
        return np.maximum(np.abs(y), np.abs(y - float(self.law.largest))) + 3

    def reach(self, log_mass: float) -> float:
        return self.lifted_reach(log_mass, 0.0)

    def lifted_reach(self, log_mass: float, lam: float) -> float:
        """Return a loss X beyond which the law tilted by e^{lam x} has at most e^log_mass.

        P(y > c + Y) and Q(y < -Y) are at most e^{-Y^2/2} / 2. It is +inf if e^log_mass is below all floats.
        """
        if log_mass < LOG_LEAST_FLOAT:
            return math.inf
        far = (1 + lam) * float(self.law.largest) + math.sqrt(2 * max(-log_mass, 0.5))
        return float(self.loss(np.array([far]))[0])

    def least(self) -> float:
        # R is at least the weight of no shift
        return math.log(float(self.law.weights[0])) if not self.law.shifts[0] else -math.inf

    def lowest(self, log_mass: float) -> float:
        return float(self.loss(np.array([-math.sqrt(2 * max(min(-log_mass, -LOG_LEAST_FLOAT), 0.5))]))[0])

    @property
    def distance(self) -> float:
        # R crosses 1 once
        z = self.law.crossing(0.0)
        c, w = [float(x) for x in self.law.shifts], [float(x) for x in self.law.weights]
        return math.fsum(b * (special.ndtr(a - z) - special.ndtr(-z)) for a, b in zip(c, w, strict=True))
