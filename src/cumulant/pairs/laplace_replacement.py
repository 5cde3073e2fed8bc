"""Laplace noise on a Poisson sample in which one record is replaced by its opposite.

The noise is discrete or continuous (docs/samples.md).

Letters: c = distance of a record from an absent one over the scale, g = rate, z the output, T(z) = 1 - g + g e^{2z - c} and
B = 1 - g + g e^{-c}. For 0 <= z <= c the loss is log(T(z)/B), beyond it is log(T(c)/B), and it is odd.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from cumulant.curves.curve import Curve
from cumulant.losses.grid import LARGEST_LOSS, SMALLEST_LOSS, Loss
from cumulant.losses.replacement_transform import LaplaceReplacementLaw
from cumulant.losses.subsampled import sampled_loss
from cumulant.losses.transform import SLIGHTEST, STRONGEST, Transform
from cumulant.numerics.arithmetic import BALLS, FLOATS, Arithmetic, Array, Scalar
from cumulant.numerics.differences import escalated
from cumulant.pairs.finite_losses import LossPair
from cumulant.pairs.pair import Pair


@dataclass(frozen=True, slots=True)
class ChordSettings:
    """The number of chords that replace the profile of continuous noise.

    Chords dominate it, so validity does not depend on them.
    """

    fewest: int = 256
    """Chords of the profile that bound the curve of continuous noise; measured: it is then 3e-6 too large, relatively."""

    per_scale: int = 64
    """Chords for each scale of the noise between the records; measured: the curve is then 1e-4 too large at most."""

    most: int = 1024
    """Chords at most, so that a curve takes milliseconds."""


SETTINGS = ChordSettings()
"""The settings in force; a test may replace them."""


@dataclass(frozen=True, slots=True)
class DiscreteLaplaceReplacementPair(LossPair):
    """Noise of mass tanh(t/2) e^{-t|x|} on the integers around 0 and around m or -m.

    t = unit and m = shift.

    `least` is a distance of continuous noise that is no worse, where unit and shift were rounded up.

    >>> DiscreteLaplaceReplacementPair(Fraction(1, 2), 1, Fraction(1, 4)).profile([0, 0.1])
    array([0.09836734, 0.06256684])
    """

    unit: Fraction
    shift: int
    rate: Fraction
    least: Fraction | None = None
    attained: bool = True

    @property
    def lower_pair(self) -> Pair:
        return self if self.least is None else LaplaceReplacementPair(self.least, self.rate)

    def losses(self, on: Arithmetic) -> tuple[Array, Array]:
        m, t, log_g = self.shift, on.number(self.unit), on.log(on.number(self.rate))
        x = on.asarray([Fraction(each) for each in range(1, m + 1)])
        log_kept = on.log(on.number(1 - self.rate))
        floor = on.log_add_exp(log_kept, log_g - t * m)
        # T/B - 1 = g e^{-tm} (e^{2tx} - 1) / B
        loss = on.log1p_exp(log_g - t * m + on.log_expm1(2 * t * x) - floor)
        # tanh(t/2) = (1 - e^-t) / (1 + e^-t), which the last one is without its numerator
        spread = on.log_expm1(t) - t
        log_base = on.asarray([spread] * (m - 1) + [on.number(0)]) - t * x - on.log1p_exp(-t)
        return loss, log_base + loss + floor

    @property
    def equal(self) -> float:
        return float(self.exact_equal())

    def exact_equal(self) -> Scalar:
        t = BALLS.number(self.unit)
        still = BALLS.number(1 - self.rate) + BALLS.number(self.rate) * (-t * self.shift).exp()
        return (t / 2).tanh() * still


@dataclass(frozen=True, slots=True)
class LaplaceReplacementPair(Pair):
    """Laplace noise of scale 1 around 0 and around c or -c, which reflection swaps.

    It dominates in any dimension with L1 sensitivity. The curve is that of chords of the profile, which is larger.

    >>> LaplaceReplacementPair(Fraction(1), Fraction(1, 10)).profile([0, 0.1])
    array([0.06321206, 0.02944643])
    """

    distance: Fraction
    rate: Fraction
    attained: bool = True

    symmetric = True
    rounded_curve = True
    has_closed_form = True

    def curve(self) -> Curve:
        count = min(max(SETTINGS.fewest, math.ceil(SETTINGS.per_scale * self.distance)), SETTINGS.most)
        return DiscreteLaplaceReplacementPair(self.distance / count, count, self.rate).curve()

    def loss(self) -> Loss | None:
        found = LaplaceReplacementLoss(FLOATS.number(self.distance), float(self.rate), float(1 - self.rate))
        return found if found.shift > SMALLEST_LOSS and SMALLEST_LOSS < found.top <= LARGEST_LOSS else None

    def transform(self, rate: Fraction, direction: str) -> Transform | None:
        """Return the transform of the two laws; None on a further sample."""
        offered = rate == 1 and self.rate < 1 and SLIGHTEST <= self.distance <= STRONGEST
        return LaplaceReplacementLaw(self.distance, self.rate) if offered else None

    def _log_profile(self, epsilons: Array) -> Array:
        c, g, kept = FLOATS.number(self.distance), float(self.rate), float(1 - self.rate)
        law = LaplaceReplacementLoss(c, g, kept)
        with np.errstate(all="ignore"):
            z = law.place(np.minimum(epsilons, law.top))
            p = kept * np.exp(-z) / 2 + g * (1 - np.exp(z - c) / 2)
            q = np.log(kept + g * np.exp(-c)) - z - math.log(2) + epsilons
            found = np.log(p) + np.log(-np.expm1(np.minimum(q - np.log(p), 0.0)))
        return np.where(np.isnan(found), 0.0, np.where(epsilons >= law.top, -np.inf, np.minimum(found, 0.0)))

    def _exact_profile(self, epsilons: Array, on: Arithmetic) -> Array:
        def evaluate() -> Array:
            c, g, kept = on.number(self.distance), on.number(self.rate), on.number(1 - self.rate)
            floor = kept + g * (-c).exp()
            found = []
            for epsilon in epsilons:
                growth = on.number(epsilon).exp()
                # any z <= c bounds delta from below, and the crossing attains it
                z = (((1 + (growth - 1) * floor / (g * (-c).exp())).log()) / 2).min(c)
                p = kept * (-z).exp() / 2 + g * (1 - (z - c).exp() / 2)
                found.append(p - growth * floor * (-z).exp() / 2)
            return np.array(found, dtype=object)

        return np.asarray(escalated(evaluate, on, np.frompyfunc(lambda v: v.nonnegative_part(), 1, 1), negligible=4096))


@dataclass(frozen=True, slots=True)
class LaplaceReplacementLoss(Loss):
    """The loss at the output z in [0, c] under Q, and the atom beyond c.

    The density of z is B e^-z / 2 there.
    """

    shift: float
    rate: float
    kept: float

    @property
    def _log_floor(self) -> float:
        return float(sampled_loss(np.array([-self.shift]), self.rate, self.kept)[0])

    @property
    def top(self) -> float:
        """The largest loss."""
        return float(self.loss(np.array([self.shift]))[0])

    def loss(self, y: Array) -> Array:
        c = self.shift
        near = self.rate * np.exp(-c - self._log_floor) * np.expm1(np.minimum(2 * y, 30.0))
        far = sampled_loss(2 * y - c, self.rate, self.kept) - self._log_floor
        return np.asarray(np.where(2 * y < 1, np.log1p(near), far))

    def place(self, x: Array) -> Array:
        # e^{2z} = 1 + (e^x - 1) B e^c / g, by logarithms where that may overflow
        log_factor = self._log_floor + self.shift - math.log(self.rate)
        with np.errstate(divide="ignore"):
            log_growth = np.where(
                x < 1, np.log(np.expm1(np.minimum(x, 1.0))), x + np.log(-np.expm1(-np.maximum(x, 1.0)))
            )
        return np.asarray(np.clip(np.logaddexp(0.0, log_growth + log_factor) / 2, 0.0, self.shift))

    def log_density(self, y: Array) -> Array:
        return np.asarray(self._log_floor - y - math.log(2))

    def roughness(self, y: Array) -> Array:
        return np.ones_like(y)

    def reach(self, log_mass: float) -> float:
        return self.top

    def atoms(self) -> tuple[Array, Array]:
        top, below = self.top, self._log_floor - self.shift - math.log(2)
        return np.array([-top, top]), np.array([below + top, below])

    @property
    def distance(self) -> float:
        # the loss is positive where z > 0
        return -self.rate * math.expm1(-self.shift)
