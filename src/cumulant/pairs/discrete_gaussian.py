"""The discrete Gaussian pair in one dimension: noise on the integers, shifted by one."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np

from cumulant.curves.curve import Curve
from cumulant.curves.discrete_gaussian import Theta
from cumulant.curves.gaussian_mixture import evaluate_by_octave
from cumulant.errors import CertificateError
from cumulant.losses.atoms import AtomLoss
from cumulant.losses.grid import LARGEST_LOSS, SMALLEST_LOSS, Loss, Step
from cumulant.losses.subsampled import enclosed_loss, sampled_loss
from cumulant.losses.transform import SLIGHTEST, STRONGEST, Lattice, Rule, Transform
from cumulant.numerics.arithmetic import BALLS, FLOATS, Arithmetic, Array, Scalar
from cumulant.numerics.differences import up_to
from cumulant.numerics.enclosure import BOUNDED, Enclosure
from cumulant.numerics.special import log_excess
from cumulant.numerics.theta import log_zero, log_zero_ball
from cumulant.pairs.finite_losses import log_terms
from cumulant.pairs.integer_noise_replacement import NoiseReplacementPair
from cumulant.pairs.pair import OnSample, Pair
from cumulant.pairs.public_choice import PublicChoiceCurve

# The curves of discrete Gaussian noise on samples: sums over the outputs, with a proved bound of what lies beyond them.
#
# Letters: m = shift, v = variance, r(x) = e^{-x^2/2v} / theta the noise, l(x) = m (2x - m) / 2v the loss without a sample,
# g = rate, a = lambda + 1. Beyond an output X >= a m the terms of every sum are at most r(x) e^{a l(x)} (1-g)^-lambda, and
#
#     SUM_{x >= X} r(x) e^{a l(x)} <= e^{lambda a m^2 / 2v} e^{-Z^2 / 2v} / (theta (1 - e^{-Z/v})),   Z = X - a m.


@dataclass(frozen=True, slots=True)
class DiscreteGaussianSettings:
    """Tuning constants of the discrete Gaussian pair.

    Tails are bounded and added, so validity does not depend on them.
    """

    most_outputs: int = 1 << 15
    """Outputs of a curve on samples beyond which joint convexity answers; convention, as for the nodes of mixtures."""

    most_balls: int = 1 << 11
    """Outputs beyond which no ball is evaluated; convention, as for the nodes of mixtures."""

    tail_digits: float = 45.0
    """Nats below the sum of what lies beyond the outputs; e^-45 is below the last bit of a float."""

    terms_at_once: int = 1 << 21
    """Orders times outputs that are in memory at once (16 MB an array)."""

    most_losses: int = 1 << 16
    """Outputs of a grid or a profile in floats; chosen by hand, beyond it the pair offers neither."""

    most_terms: int = 2_000
    """Outputs of a profile or a transform in balls; chosen by hand, beyond it the pair offers neither."""


SETTINGS = DiscreteGaussianSettings()
"""The settings in force; a test may replace them."""

MARGIN = 1e-6
"""Added to logarithms of bounds that floats evaluate, absolutely and relatively; far more than their rounding."""

LEAST_LAMBDA = Fraction(1, 2**100)
"""Smallest lambda by which the tail of KL is bounded; convention: far above the smallest float, every positive one is valid."""

WIDEST_VARIANCE = Fraction(10**6)
"""Variance beyond which joint convexity answers, because outputs are too many."""


@dataclass(frozen=True, slots=True)
class DiscreteGaussianCurve(Curve):
    """K of discrete Gaussian noise on a sample of this rate < 1.

    `whole` is the curve without a sample. The kind is "remove", a record removed from a Poisson sample; "profile", the
    amplified profile of both directions; or "replacement", a record of a Poisson sample that is replaced by its
    opposite.

    >>> from cumulant.curves.discrete_gaussian import Theta
    >>> curve = DiscreteGaussianCurve(1, Fraction(4), Fraction(1, 10), "remove", Theta(1, Fraction(4)))
    >>> round(float(curve.rdp(2)), 6)
    0.002836
    """

    shift: int
    variance: Fraction
    rate: Fraction
    kind: str
    whole: Curve

    enclosed = True

    def _cgf(self, lam: Array, on: Arithmetic) -> Array:
        return evaluate_by_octave(lam, self._at, on)

    def _at(self, lam: Array, floats: Array, on: Arithmetic) -> Array:
        ends = self._ends(floats, on)
        if ends is None:
            return PublicChoiceCurve((self.rate,), (self.whole,)).cgf(lam, on)
        low, high = ends
        if on.exact and high - low > SETTINGS.most_balls:
            raise CertificateError("the sum takes long in balls; its enclosure does not")
        log_p, loss = self._outputs(low, high, on)
        tail = self._log_tail(floats, low, high)
        rows = max(1, SETTINGS.terms_at_once // (high - low + 1))
        parts = [
            self._add_tail(self._sums(log_p, loss, lam[i : i + rows], on), tail[i : i + rows], on)
            for i in range(0, len(lam), rows)
        ]
        found: Any = np.concatenate(parts)
        return found

    def _ends(self, lam: Array, on: Arithmetic) -> tuple[int, int] | None:
        """Return the first and the last output of the sums; None if they are too many.

        On None joint convexity answers.
        """
        m, v, top = self.shift, float(min(self.variance, WIDEST_VARIANCE)), float(lam.max())
        digits = max(on.precision() * math.log(2) + 10 if on.exact else 0.0, SETTINGS.tail_digits)
        if self.variance >= WIDEST_VARIANCE or not top < SETTINGS.most_outputs:
            return None
        # the sum is at least about the variance of w, and the one output that is likeliest under the tilted law
        log_g, height = math.log(float(self.rate)), top * (top + 1) * m * m / (2 * v)
        size = 2 * log_g + min(math.log(m * m / v), 0.0) - 1 / v + math.log(min(float(lam.min()), 1.0) + 1e-300)
        own = max(height + (top + 1) * log_g, size)
        lifted = height - top * math.log(float(1 - self.rate)) if self.kind == "replacement" else height
        far = math.sqrt(2 * v * max(lifted - own + digits, digits)) + 2
        high = math.ceil((top + 1) * m + far) + 1
        low = -math.ceil(math.sqrt(2 * v * (digits - size + math.log(top + 2)))) - 2
        low = low if self.kind == "remove" else 1 if self.kind == "replacement" else m // 2 + 1
        return (low, high) if high - low <= SETTINGS.most_outputs else None

    def _outputs(self, low: int, high: int, on: Arithmetic) -> tuple[Array, Array]:
        """Return log of the P-masses of the outputs whose loss is not 0, and their losses."""
        m, v = self.shift, self.variance
        outputs = [x for x in range(low, high + 1) if 2 * x != m or self.kind == "replacement"]
        log_r = on.asarray(self._over_two_variances([-x * x for x in outputs], on)) - _log_theta(v, on)
        forward = self._mixed(self._over_two_variances([m * (2 * x - m) for x in outputs], on), on)
        if self.kind != "replacement":
            return log_r + forward, forward
        backward = self._mixed(self._over_two_variances([-m * (2 * x + m) for x in outputs], on), on)
        return log_r + forward, forward - backward

    def _over_two_variances(self, numbers: list[int], on: Arithmetic) -> list[Fraction] | list[float]:
        """Return each number over 2 v as a fraction, or for floats as the nearest float.

        A fraction for each of many thousand outputs took most of the time.
        """
        top, bottom = self.variance.denominator, 2 * self.variance.numerator
        if on.exact or on.enclosing:
            unit = Fraction(top, bottom)
            return [unit * each for each in numbers]
        return [each * top / bottom for each in numbers]

    def _mixed(self, losses: list[Fraction] | list[float], on: Arithmetic) -> Array:
        """Return log(1 - g + g e^l) for each loss l."""
        if on.exact:
            g = on.number(self.rate)
            return np.array([(g * on.number(each).expm1()).log1p() for each in losses], dtype=object)
        if on.enclosing:
            return enclosed_loss(on.asarray(losses), self.rate)
        return sampled_loss(on.asarray(losses), float(self.rate), float(1 - self.rate))

    def _sums(self, log_p: Array, loss: Array, lam: Array, on: Arithmetic) -> Array:
        """Return the logarithms of e^K - 1 without what lies beyond the outputs."""
        if self.kind != "remove":
            return on.log_sum_exp(log_terms(loss, log_p, lam, on))
        each = on.asarray(lam)[:, None]
        kernel = on.log_add_exp(log_excess(each * loss, on), on.log(each) + log_excess(-loss, on))
        return on.log_sum_exp(log_p + kernel)

    def _log_tail(self, lam: Array, low: int, high: int) -> Array:
        """Return log of a bound of what lies beyond the outputs, in floats with a margin."""
        m, v, a = self.shift, float(self.variance), lam + 1
        beyond = high + 1 - a * m
        lifted = lam * a * m * m / (2 * v) - (
            lam * math.log(float(1 - self.rate)) if self.kind == "replacement" else 0.0
        )
        with np.errstate(all="ignore"):
            right = np.where(beyond > 0, lifted - beyond**2 / (2 * v) - np.log(-np.expm1(-beyond / v)), np.inf)
            found = right
            if self.kind == "remove":  # below, the kernel is at most lambda
                left = np.log(lam) - (low - 1) ** 2 / (2 * v) - math.log(-math.expm1((low - 1) / v))
                found = np.logaddexp(right, left)
        return np.asarray(found + MARGIN * (1 + np.abs(found)))  # theta is at least 1

    def _add_tail(self, sums: Array, tail: Array, on: Arithmetic) -> Array:
        """Return log(1 + e^sum), to which the tail adds at most itself."""
        if on.exact:
            pairs = zip(sums, tail, strict=True)
            return np.array([(x.exp() + up_to(BALLS.number(float(t)).exp())).log1p() for x, t in pairs], dtype=object)
        if on.enclosing:
            part = np.exp(tail - sums.mid) * (1 + MARGIN)
            sums = Enclosure(sums.mid, np.where(part < 0.5, sums.radius + part, np.nan))
        return on.log1p_exp(sums)

    def kl(self, on: Arithmetic = FLOATS) -> Scalar:
        """Return the limit of (e^K - 1) / lambda; terms beyond it are at most those of any lambda."""
        # at lambda = 1 the tail of a shift of many deviations would be e^(m^2 / v), next to which KL = m^2 / 2v is lost
        lam = np.array([float(min(max(self.variance / self.shift**2, LEAST_LAMBDA), Fraction(1)))])
        ends = self._ends(lam, on)
        if ends is None:
            return on.number(self.rate) * self.whole.at_one(on)
        log_p, loss = self._outputs(*ends, on)
        kernel = log_excess(-loss, on) if self.kind == "remove" else on.log(loss) + on.log_expm1(loss) - loss
        terms = log_p + kernel
        tail = float(self._log_tail(lam, *ends)[0]) - math.log(lam[0]) * (1 + MARGIN)
        if on.exact:
            return on.log_sum_exp(terms).exp() + up_to(BALLS.number(tail).exp())
        found: Any = on.log_sum_exp(terms[None, :])[0]
        if not on.enclosing:
            return math.exp(found)
        part = float(np.exp(tail - float(found.mid))) * (1 + MARGIN)
        return BOUNDED.exp(Enclosure(found.mid, found.radius + (part if part < 0.5 else math.nan)))

    def pure(self, on: Arithmetic = FLOATS) -> Scalar:
        return on.number(np.inf)


def _log_theta(variance: Fraction, on: Arithmetic) -> Any:
    """Return log theta(0), the log of the normalising sum, in this arithmetic."""
    if on.exact:
        return log_zero_ball(variance)
    if not on.enclosing:
        return log_zero(float(variance))
    with BALLS.at(128):
        return BOUNDED.of_balls([log_zero_ball(variance)])[0]


REACH = 38.7
"""Standard deviations beyond which the mass is below e^-748, less than every float; derived: 38.7^2 / 2 = 748.8."""


@dataclass(frozen=True, slots=True)
class DiscreteGaussianPair(Pair):
    """Noise of mass ~ e^{-x^2 / 2v} on the integers, around the shift m and around 0.

    The output x has the loss m (2x - m) / 2v and the Q-mass e^{-x^2 / 2v} / theta(0)
    (docs/mechanisms/discrete-gaussian.md).

    >>> DiscreteGaussianPair(1, Fraction(1, 4)).profile([0, 1])
    array([0.78657071, 0.60320487])
    """

    shift: int
    variance: Fraction

    symmetric = True
    chained = True

    def curve(self) -> Theta:
        return Theta(self.shift, self.variance)

    def group_pair(self, size: int) -> DiscreteGaussianPair:
        return DiscreteGaussianPair(self.shift * size, self.variance)

    # ---- samples, by their divergences

    def _sampled(self, rate: Fraction, kind: str) -> Curve:
        if rate == 1 or not self.shift:
            return self.curve()
        whole = self.group_pair(2).curve() if kind == "replacement" else self.curve()
        return DiscreteGaussianCurve(self.shift, self.variance, rate, kind, whole)

    def mixture_curve(self) -> OnSample:
        return lambda rate: self._sampled(rate, "remove")

    def amplified_curve(self) -> OnSample:
        return lambda rate: self._sampled(rate, "profile")

    def replacement(self, rate: Fraction) -> Pair | None:
        if not self.shift or rate == 1:
            return self.group_pair(2)
        if not self._output_count() + 2 * self.shift <= SETTINGS.most_losses:
            return None
        return NoiseReplacementPair(self, rate, self._sampled(rate, "replacement"))

    def log_masses(self, on: Arithmetic) -> Array | None:
        far = self._output_count() + self.shift
        if not far <= SETTINGS.most_losses:
            return None
        outputs = range(math.ceil(far) + 2)
        if on is FLOATS:
            v, x = float(self.variance), np.arange(len(outputs))
            return np.asarray(-x * x / (2 * v) - log_zero(v))
        return on.asarray([Fraction(-x * x) / (2 * self.variance) for x in outputs]) - log_zero_ball(self.variance)

    @property
    def has_closed_form(self) -> bool:
        return self._output_count() <= SETTINGS.most_terms

    @property
    def has_grid(self) -> bool:
        """True if its outputs are few enough for a grid."""
        return self._output_count() <= SETTINGS.most_losses

    def _output_count(self) -> float:
        """Return the number of outputs that count on one side; +inf if the variance is huge."""
        return self.shift + REACH * math.sqrt(self.variance) if self.variance < 10**12 else math.inf

    def loss(self) -> Loss | None:
        return self._loss(leak=True)

    def lower_step(self, rate: Fraction, direction: str) -> Step | None:
        """Return the step without the mass that was cut off; None if no grid can hold it."""
        loss = self._loss(leak=False)
        return None if loss is None else loss.mixture(rate, direction)

    def transform(self, rate: Fraction, direction: str) -> Transform | None:
        """Return the transform without a sample; None on a sample, whose losses lie on no lattice."""
        unit = self.shift / self.variance
        return DiscreteGaussianTransform(self) if rate == 1 and SLIGHTEST <= unit <= STRONGEST else None

    def lower_transform(self, rate: Fraction, direction: str) -> Transform | None:
        return self.transform(rate, direction)

    def _loss(self, leak: bool) -> Loss | None:
        if not self.shift:
            return AtomLoss((), (), 1.0)
        if not self._output_count() <= SETTINGS.most_losses:
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
        """Return log of SUM q (e^x - e^eps)_+ and of the mass that was cut off."""
        if not self.shift:
            return np.full(epsilons.shape, -np.inf)
        if not self._output_count() <= SETTINGS.most_losses:
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
        """Return SUM_x (Q(x-m) - e^eps Q(x)) over the outputs whose loss is above eps.

        The loss m (2x - m) / 2v of an output is rational, so that the comparison is exact.
        """
        m, v = self.shift, self.variance
        if not m:
            return on.number(0)
        first = math.floor((epsilon * 2 * v / m + m) / 2) + 1
        # below e^{-bits} of the first term nothing counts; the mass falls from max(first - m, 0) on
        start = max(first - m, 0)
        last = start + math.isqrt(math.ceil(2 * v * (on.precision() + 40))) + 2
        half = 1 / (2 * v)

        def tail(begin: int, end: int) -> Any:
            """Return SUM e^{-x^2 / 2v}, each term from the one before."""
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
    """The transform: the output x has the loss m (2x - m) / 2v.

    Its P-mass is e^{-(x-m)^2 / 2v} / theta(0).
    """

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
        if 2 * reach > SETTINGS.most_terms:
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
    """Return outputs with a positive loss, log of their Q-masses, and the P-mass beyond.

    The P-mass beyond is rounded up to the least positive float.
    """
    v = float(variance)
    last = math.ceil(shift + REACH * math.sqrt(v)) + 1
    x = np.arange(shift // 2 + 1, last + 1, dtype=np.float64)
    return x, -x * x / (2 * v) - log_zero(v), 5e-324
