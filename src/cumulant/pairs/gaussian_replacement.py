"""Gaussian noise on a Poisson sample in which one record is replaced by its opposite.

See docs/samples.md.

Letters: c = distance of a record from an absent one over sigma, g = rate, R(z) = 1 - g + g e^{cz - c^2/2}, and the loss
L(z) = log R(z) - log R(-z), which is odd and increasing. Its inverse is z = (L/2 + asinh(A sinh(L/2))) / c with
A = (1-g) e^{c^2/2} / g.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from cumulant.curves.gaussian_replacement import ReplacementCurve
from cumulant.losses.gaussian_transform import normal_tail
from cumulant.losses.grid import Loss
from cumulant.losses.replacement_transform import GaussianReplacementLaw
from cumulant.losses.subsampled import sampled_loss
from cumulant.losses.transform import SLIGHTEST, STRONGEST, Transform
from cumulant.numerics.arithmetic import Arithmetic, Array
from cumulant.numerics.differences import escalated
from cumulant.numerics.lazy_scipy import special
from cumulant.pairs.pair import Pair


@dataclass(frozen=True, slots=True)
class ReplacementSettings:
    """Limits of the Gaussian replacement pair.

    Beyond them less is offered, so validity does not depend on them.
    """

    smallest_distance: Fraction = Fraction(1, 10**100)
    """Distance over sigma at and below which no grid is offered; convention, as for mixtures."""

    largest_distance: Fraction = Fraction(150)
    """Distance over sigma above which no grid is offered; half of what mixtures take, because two records are
    compared."""

    farthest_distance: int = 10**6
    """Distance over sigma beyond which nothing is protected and delta is 1."""

    largest_loss: float = 1e6
    """Loss (nats) beyond which floats report the profile at this loss, which is larger."""


SETTINGS = ReplacementSettings()
"""The settings in force; a test may replace them."""

FARTHEST = 39.0
"""Standard deviations beyond which the normal law has less mass than any float; derived: 39^2 / 2 > 745."""

LOG_LEAST_FLOAT = -745.0
"""Logarithm of the least positive float."""

LOG_LARGE = 20.0
"""log x beyond which asinh x is log 2x to the last bit; derived: 1 / (4 x^2) is below 2^-53."""

LOG_ROOT = math.log(2 * math.pi) / 2
"""log sqrt(2 pi), the logarithm of the normal density's constant."""


@dataclass(frozen=True, slots=True)
class GaussianReplacementPair(Pair):
    """P = (1-g)N(0) + gN(c) against Q = (1-g)N(0) + gN(-c); reflection swaps them.

    It dominates every Poisson sample in which a record at distance c or less from an absent one is replaced by another such
    record, in every dimension. Records at c and -c have these laws. `least` is a distance below c where c was rounded up.

    >>> GaussianReplacementPair(Fraction(1), Fraction(1, 10)).profile([0, 0.1])
    array([0.06826895, 0.03399638])
    """

    distance: Fraction
    rate: Fraction
    least: Fraction | None = None

    symmetric = True

    def curve(self) -> ReplacementCurve:
        return ReplacementCurve.of(self.distance, self.rate)

    @property
    def lower_pair(self) -> Pair:
        return self if self.least is None else GaussianReplacementPair(self.least, self.rate)

    @property
    def has_closed_form(self) -> bool:
        return self.distance <= SETTINGS.farthest_distance

    def loss(self) -> Loss | None:
        offered = SETTINGS.smallest_distance < self.distance <= SETTINGS.largest_distance
        return ReplacementLoss(float(self.distance), float(self.rate), float(1 - self.rate)) if offered else None

    def transform(self, rate: Fraction, direction: str) -> Transform | None:
        """Return the transform of the two laws; None on a further sample."""
        offered = rate == 1 and self.rate < 1 and SLIGHTEST <= self.distance <= STRONGEST
        return GaussianReplacementLaw(self.distance, self.rate) if offered else None

    def _log_profile(self, epsilons: Array) -> Array:
        if self.distance > SETTINGS.farthest_distance:
            return np.zeros(epsilons.shape)
        c, g, kept = float(self.distance), float(self.rate), float(1 - self.rate)
        size = np.minimum(epsilons, SETTINGS.largest_loss)
        with np.errstate(all="ignore"):
            z = ReplacementLoss(c, g, kept).place(size)
            still = math.log(kept) + special.log_ndtr(-z) if kept else np.full(z.shape, -np.inf)
            p = np.logaddexp(still, math.log(g) + special.log_ndtr(c - z))
            q = size + np.logaddexp(still, math.log(g) + special.log_ndtr(-c - z))
            found = p + np.log(-np.expm1(np.minimum(q - p, 0.0)))
        return np.where(np.isnan(found), 0.0, np.minimum(found, 0.0))

    def _exact_profile(self, epsilons: Array, on: Arithmetic) -> Array:
        if self.distance > SETTINGS.farthest_distance:
            return np.array([on.number(1) for _ in epsilons], dtype=object)

        def evaluate() -> Array:
            c, g, kept = on.number(self.distance), on.number(self.rate), on.number(1 - self.rate)
            found = []
            for epsilon in epsilons:
                half = on.number(epsilon) / 2
                z = (half + (kept / g * (c * c / 2).exp() * half.sinh()).asinh()) / c
                p, q = (kept * normal_tail(z) + g * normal_tail(z - shift) for shift in (c, -c))
                found.append(p - (2 * half).exp() * q)
            return np.array(found, dtype=object)

        return np.asarray(escalated(evaluate, on, np.frompyfunc(lambda v: v.nonnegative_part(), 1, 1), negligible=4096))


@dataclass(frozen=True, slots=True)
class ReplacementLoss(Loss):
    """The loss L at the output z under Q, whose density is that of N(0, 1) times R(-z)."""

    shift: float
    rate: float
    kept: float

    def loss(self, y: Array) -> Array:
        c, size = self.shift, np.abs(y)
        # w - 1 = 2 g k sinh(cz) / R(-z), k = e^{-c^2/2}, keeps its digits near 0; the exponential may overflow far out
        below = sampled_loss(-c * size - c * c / 2, self.rate, self.kept)
        near = self.rate * np.exp(-c * c / 2 - below) * 2 * np.sinh(np.minimum(c * size, 30.0))
        far = sampled_loss(c * size - c * c / 2, self.rate, self.kept) - below
        return np.asarray(np.sign(y) * np.where(c * size < 1, np.log1p(near), far))

    def place(self, x: Array) -> Array:
        c, half = self.shift, np.abs(x) / 2
        with np.errstate(divide="ignore"):
            log_sinh = np.where(
                half < 1, np.log(np.sinh(np.minimum(half, 1.0))), half + np.log(-np.expm1(-2 * half) / 2)
            )
            log_a = (math.log(self.kept) if self.kept else -math.inf) - math.log(self.rate) + c * c / 2
            log_arg = log_sinh + log_a
            turned = np.where(log_arg > LOG_LARGE, log_arg + math.log(2), np.arcsinh(np.exp(np.minimum(log_arg, 30.0))))
        ends = FARTHEST + c
        return np.asarray(np.clip(np.sign(x) * (half + turned) / c, -ends, ends))

    def log_density(self, y: Array) -> Array:
        c = self.shift
        return np.asarray(-y * y / 2 - LOG_ROOT + sampled_loss(-c * y - c * c / 2, self.rate, self.kept))

    def roughness(self, y: Array) -> Array:
        # |He_8(z)| <= (|z| + 3)^8, for every part of P and Q
        return np.abs(y) + self.shift + 3

    def reach(self, log_mass: float) -> float:
        return self.lifted_reach(log_mass, 0.0)

    def lifted_reach(self, log_mass: float, lam: float) -> float:
        """Return a loss X beyond which the law tilted by e^{lam x} has at most e^log_mass.

        P(z > c + Z) is at most e^{-Z^2/2} / 2. It is +inf if e^log_mass is below all floats.
        """
        if log_mass < LOG_LEAST_FLOAT:
            return math.inf
        far = (1 + 2 * lam) * self.shift + math.sqrt(2 * max(-log_mass, 0.5))
        return float(self.loss(np.array([far]))[0])

    @property
    def distance(self) -> float:
        # L > 0 where z > 0
        return self.rate * math.erf(self.shift / math.sqrt(2))
