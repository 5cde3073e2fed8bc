"""The discrete Gaussian pair in one dimension: noise on the integers, shifted by one."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np

from cumulant.curves.curve import Curve
from cumulant.curves.integers import Theta
from cumulant.numerics.arithmetic import BALLS, FLOATS, Arithmetic, Array
from cumulant.numerics.differences import up_to
from cumulant.numerics.theta import log_zero, log_zero_ball
from cumulant.pairs.atoms import AtomLoss
from cumulant.pairs.discrete_gaussian_curve import DiscreteGaussianCurve
from cumulant.pairs.noise_replacement import NoiseReplacementPair
from cumulant.pairs.pair import OnSample, Pair
from cumulant.pairs.step import LARGEST_LOSS, SMALLEST_LOSS, Loss, Step
from cumulant.pairs.transform import SLIGHTEST, STRONGEST, Lattice, Rule, Transform

_REACH = 38.7
"""Standard deviations beyond which the mass is below e^-748, less than every float."""

_MOST_LOSSES = 1 << 16
_MOST_TERMS = 2_000


@dataclass(frozen=True, slots=True)
class DiscreteGaussianPair(Pair):
    """Mass ~ e^{-x^2 / 2v} on the integers, around the shift m and around 0 (docs/mechanisms/discrete-gaussian.md).

    The output x has the loss m (2x - m) / 2v and the Q-mass e^{-x^2 / 2v} / theta(0).

    >>> DiscreteGaussianPair(1, Fraction(1, 4)).profile([0, 1])
    array([0.78657071, 0.60320487])
    """

    shift: int
    variance: Fraction

    symmetric = True
    chained = True

    def curve(self) -> Theta:
        return Theta(self.shift, self.variance)

    def grouped(self, size: int) -> DiscreteGaussianPair:
        return DiscreteGaussianPair(self.shift * size, self.variance)

    # ---- samples, by their divergences

    def _sampled(self, rate: Fraction, kind: str) -> Curve:
        if rate == 1 or not self.shift:
            return self.curve()
        whole = self.grouped(2).curve() if kind == "replacement" else self.curve()
        return DiscreteGaussianCurve(self.shift, self.variance, rate, kind, whole)

    def mixed(self) -> OnSample:
        return lambda rate: self._sampled(rate, "remove")

    def amplified(self) -> OnSample:
        return lambda rate: self._sampled(rate, "profile")

    def replacement(self, rate: Fraction) -> Pair | None:
        if not self.shift or rate == 1:
            return self.grouped(2)
        if not self._far() + 2 * self.shift <= _MOST_LOSSES:
            return None
        return NoiseReplacementPair(self, rate, self._sampled(rate, "replacement"))

    def log_masses(self, on: Arithmetic) -> Array | None:
        far = self._far() + self.shift
        if not far <= _MOST_LOSSES:
            return None
        outputs = range(math.ceil(far) + 2)
        if on is FLOATS:
            v, x = float(self.variance), np.arange(len(outputs))
            return np.asarray(-x * x / (2 * v) - log_zero(v))
        return on.asarray([Fraction(-x * x) / (2 * self.variance) for x in outputs]) - log_zero_ball(self.variance)

    @property
    def closed(self) -> bool:
        return self._far() <= _MOST_TERMS

    def _far(self) -> float:
        """The outputs that count, on one side."""
        return self.shift + _REACH * math.sqrt(self.variance) if self.variance < 10**12 else math.inf

    def loss(self) -> Loss | None:
        return self._loss(leak=True)

    def below(self, rate: Fraction, direction: str) -> Step | None:
        """Without the mass that was cut off."""
        loss = self._loss(leak=False)
        return None if loss is None else loss.mixture(rate, direction)

    def transform(self, rate: Fraction, direction: str) -> Transform | None:
        """Without a sample; the losses of a sample are on no lattice."""
        unit = self.shift / self.variance
        return DiscreteGaussianTransform(self) if rate == 1 and SLIGHTEST <= unit <= STRONGEST else None

    def transform_below(self, rate: Fraction, direction: str) -> Transform | None:
        return self.transform(rate, direction)

    def _loss(self, leak: bool) -> Loss | None:
        if not self.shift:
            return AtomLoss((), (), 1.0)
        if not self._far() <= _MOST_LOSSES:
            return None
        x, log_q, tail = _outputs(self.shift, self.variance)
        losses = self._losses(x)
        if not (losses[0] > SMALLEST_LOSS and losses[-1] <= LARGEST_LOSS):
            return None
        v = float(self.variance)
        same = 0.0 if self.shift % 2 else math.exp(-((self.shift // 2) ** 2) / (2 * v) - log_zero(v))
        unit = self.shift / v / (2 if self.shift % 2 else 1)
        return AtomLoss(tuple(losses.tolist()), tuple(log_q.tolist()), same, tail if leak else 0.0, unit)

    def _losses(self, x: Array) -> Array:
        return np.asarray(self.shift * (2 * x - self.shift) / (2 * float(self.variance)))

    def _log_profile(self, epsilons: Array) -> Array:
        """log SUM q (e^x - e^eps)_+, and what was cut off."""
        if not self.shift:
            return np.full(epsilons.shape, -np.inf)
        if not self._far() <= _MOST_LOSSES:
            return np.zeros(epsilons.shape)
        x, log_q, tail = _outputs(self.shift, self.variance)
        losses = self._losses(x)
        value = np.empty(epsilons.shape)
        with np.errstate(divide="ignore"):
            for i, epsilon in enumerate(epsilons):
                gap = np.log(-np.expm1(np.minimum(epsilon - losses, 0.0)))
                value[i] = np.logaddexp(math.log(tail), FLOATS.log_sum_exp(log_q + losses + gap))
        return np.minimum(value, 0.0)

    def _exact_profile(self, epsilons: Array, on: Arithmetic) -> Array:
        return np.asarray(np.frompyfunc(lambda epsilon: self._delta(Fraction(epsilon), on), 1, 1)(epsilons))

    def _delta(self, epsilon: Fraction, on: Arithmetic) -> Any:
        """SUM_x (Q(x-m) - e^eps Q(x)) over the outputs whose loss m (2x - m) / 2v is above eps, which is exact."""
        m, v = self.shift, self.variance
        if not m:
            return on.number(0)
        first = math.floor((epsilon * 2 * v / m + m) / 2) + 1
        # below e^{-bits} of the first term nothing counts; the mass falls from max(first - m, 0) on
        start = max(first - m, 0)
        last = start + math.isqrt(math.ceil(2 * v * (on.precision() + 40))) + 2
        half = 1 / (2 * v)

        def tail(begin: int, end: int) -> Any:
            """SUM e^{-x^2 / 2v}, each term from the one before."""
            term, ratio = on.number(-half * begin * begin).exp(), on.number(-half * (2 * begin + 1)).exp()
            shrink, total = on.number(-2 * half).exp(), on.number(0)
            for _ in range(begin, end + 1):
                total, term, ratio = total + term, term * ratio, ratio * shrink
            return total + up_to(term / (1 - ratio))  # term is that of end + 1, and ratios fall from there on

        own, other = tail(first - m, last), tail(first, max(last, first) + m)
        theta = log_zero_ball(v).exp()
        return (own - on.number(epsilon).exp() * other) / theta


@dataclass(frozen=True, slots=True)
class DiscreteGaussianTransform(Transform):
    """The output x has the loss m (2x - m) / 2v and the P-mass e^{-(x-m)^2 / 2v} / theta(0)."""

    pair: DiscreteGaussianPair

    def lattice(self) -> Lattice:
        m, v = self.pair.shift, self.pair.variance
        return Lattice(m / v, Fraction(0) if m % 2 == 0 else m / (2 * v))

    def atoms(self, lam: float, log_error: float) -> Rule:
        from flint import arb

        m, v = self.pair.shift, self.pair.variance
        order, exact = BALLS.number(lam), BALLS.number(v)
        # P(x) e^{lam l} = e^{(lam + lam^2) m^2 / 2v} e^{-y^2 / 2v} / theta(0), y = x - (1 + lam) m
        log_top = (order + order * order) * (m * m) / (2 * exact) - log_zero_ball(v)
        far = 2 * float(v) * (float(log_top.mid()) - log_error)
        reach = math.ceil(math.sqrt(max(far, 1.0))) + 1
        if 2 * reach > _MOST_TERMS:
            raise OverflowError("noise this wide has too many outputs for the line")
        middle = round((1 + lam) * m)
        found = []
        for x in range(middle - reach - 1, middle + reach + 2):
            y = x - (1 + order) * m
            found.append((BALLS.number(Fraction(m * (2 * x - m)) / (2 * v)), (log_top - y * y / (2 * exact)).exp()))
        # beyond |y| >= R on either side: SUM_j e^{-(R+j)^2 / 2v} <= e^{-R^2 / 2v} / (1 - e^{-R/v})
        radius = arb(reach)
        beyond = 2 * (log_top - radius * radius / (2 * exact)).exp() / -(-radius / exact).expm1()
        return Rule([], found, beyond)


@lru_cache(maxsize=32)
def _outputs(shift: int, variance: Fraction) -> tuple[Array, Array, float]:
    """Outputs with a positive loss, log of their Q-masses, and the P-mass of those beyond, rounded up."""
    v = float(variance)
    last = math.ceil(shift + _REACH * math.sqrt(v)) + 1
    x = np.arange(shift // 2 + 1, last + 1, dtype=np.float64)
    return x, -x * x / (2 * v) - log_zero(v), 5e-324
