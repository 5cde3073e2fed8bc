"""Transforms of noise on a Poisson sample in which one record is replaced by its opposite.

Letters: c = distance of a record from an absent one in units of the noise, g = rate, z the output, which is the coordinate v.
The proofs are in docs/line.md, section 3.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np

from cumulant.losses.gaussian_transform import normal_tail
from cumulant.losses.subsampled import enclosed_loss, sampled_loss
from cumulant.losses.transform import LEAST_COSINE, LOG_MARGIN, ON_BALLS, ON_FLOATS, WIDEST_ANGLE, DensityLaw
from cumulant.numerics.arithmetic import BALLS, Array
from cumulant.numerics.enclosure import BOUNDED, Enclosure
from cumulant.numerics.rounding import U

LOG_ROOT = math.log(2 * math.pi) / 2
"""log sqrt(2 pi), the logarithm of the normal density's constant."""

FARTHEST = 80.0
"""Standard deviations up to which the span is looked for; e^-3200 is below all errors that are asked for."""

SPAN_STEP = 0.25
"""Standard deviations between the ends that are tried for the span; floats choose, balls bound what lies beyond."""


class _ReplacementLaw(DensityLaw):
    """A replaced record: the distance, the rate, and Lemma S3 by the slope of the density."""

    __slots__ = ()

    distance: Fraction
    rate: Fraction

    def _numbers(self, on: Any) -> tuple[Any, Any, Any]:
        """Return c, g and 1 - g."""
        return on.number(self.distance), on.number(self.rate), on.number(1 - self.rate)

    def _log_shape(self, sign: int, lam: Any, low: Any, high: Any, on: Any) -> tuple[Any, Any]:
        """Bound log f and |(log f)'| on low <= v <= high.

        f is the tilted density of L or -L as a function of v.
        """
        raise NotImplementedError

    def variation(self, lam: float, low: float, high: float) -> Any:
        from flint import arb

        exact, total = BALLS.number(lam), arb(0)
        edges = [arb(edge) for edge in self.cells(lam, low, high).tolist()]
        for sign in self.signs:
            for a, b in pairwise(edges):
                log_f, slope = self._log_shape(sign, exact, a, b, ON_BALLS)
                total += log_f.exp() * slope * (b - a)
            for edge in (edges[0], edges[-1]):
                total += self._log_shape(sign, exact, edge, edge, ON_BALLS)[0].exp()
        return total

    def float_variation(self, lam: float, low: float, high: float) -> tuple[float, float]:
        edges = self.cells(lam, low, high)
        parts, largest = [], 0.0
        for sign in self.signs:
            log_f, slope = self._log_shape(sign, lam, edges[:-1], edges[1:], ON_FLOATS)
            ends = self._log_shape(sign, lam, edges[[0, -1]], edges[[0, -1]], ON_FLOATS)[0]
            # the slope is a difference of numbers of the size of all that enters it
            parts += [log_f + np.log(np.diff(edges) * (slope + LOG_MARGIN)), ends]
            largest = max(largest, float(np.abs(log_f).max()), float(np.abs(ends).max()))
        largest += (lam + 2) * float(np.abs(self.float_point(edges[[0, -1]])[0]).max()) + float(
            np.abs(edges).max()
        ) ** 2
        largest += (lam + 3) * self.steepness
        return float(np.logaddexp.reduce(np.concatenate(parts))), largest


@dataclass(frozen=True, slots=True)
class GaussianReplacementLaw(_ReplacementLaw):
    """P = (1-g)N(0) + gN(c) against Q = (1-g)N(0) + gN(-c), 0 < g < 1.

    R(z) = 1 - g + g e^{cz - c^2/2}; the loss is L = log R(z) - log R(-z) and q = phi(z) R(-z).
    """

    distance: Fraction
    rate: Fraction

    @property
    def signs(self) -> tuple[int, ...]:
        return (1,)

    @property
    def steepness(self) -> float:
        return 2 * float(self.distance)

    def _log_ratio(self, z: Array) -> Array:
        """Return log R(z), in floats."""
        c, g, kept = self._numbers(ON_FLOATS)
        return sampled_loss(c * z - c * c / 2, g, kept)

    def float_point(self, v: Array) -> tuple[Array, Array]:
        backward = self._log_ratio(-v)
        return self._log_ratio(v) - backward, backward - v * v / 2 - LOG_ROOT

    def ball_point(self) -> Callable[[Any], tuple[Any, Any]]:
        from flint import arb

        c, g = BALLS.number(self.distance), BALLS.number(self.rate)
        half, log_root = c * c / 2, (2 * arb.pi()).log() / 2

        def point(z: Any) -> tuple[Any, Any]:
            forward, backward = ((g * (each - half).expm1()).log1p() for each in (c * z, -c * z))
            return forward - backward, backward - z * z / 2 - log_root

        return point

    def enclosed_point(self, v: Enclosure) -> tuple[Enclosure, Enclosure]:
        c, half = BOUNDED.number(self.distance), BOUNDED.number(self.distance**2 / 2)
        forward, backward = enclosed_loss(v * c - half, self.rate), enclosed_loss(-v * c - half, self.rate)
        return forward - backward, backward - v * v / 2 - Enclosure(LOG_ROOT, 2 * U)

    def span(self, lam: float, log_error: float) -> tuple[float, float]:
        c, g, kept = self._numbers(ON_FLOATS)
        beyond = np.arange(SPAN_STEP, FARTHEST + lam * c, SPAN_STEP)
        z = (lam + 1) * c + beyond
        turned = g * np.exp(-c * z - c * c / 2)
        gap = beyond - lam * c * turned / (kept + turned)
        loss, log_q = self.float_point(z)
        with np.errstate(invalid="ignore", divide="ignore"):
            fits = (gap > 0) & (log_q + (lam + 1) * loss - np.log(gap) <= log_error)
        left = (beyond**2) / 2 + LOG_ROOT >= -log_error
        if not (fits.any() and left.any()):
            raise OverflowError("the law of one round is too wide for the line")
        return -float(beyond[np.argmax(left)]), float(z[np.argmax(fits)])

    def beyond(self, lam: Any, edges: list[float]) -> Any:
        from flint import arb

        c, g, kept = self._numbers(ON_BALLS)
        low, high = arb(edges[0]), arb(edges[-1])
        turned = g * (-c * high - c * c / 2).exp()
        # (log)' = -z + (lam+1) c s(z) + lam c s(-z), and s(-z) falls
        gap = high - (lam + 1) * c - lam * c * turned / (kept + turned)
        if not (gap > 0 and low <= 0):
            return arb("inf")
        loss, log_q = self.ball_point()(high)
        # on the left R(z) and R(z)/R(-z) are at most 1
        return (log_q + (lam + 1) * loss).exp() / gap + normal_tail(-low)

    def tilted_atoms(self, lam: Any) -> list[tuple[Any, Any]]:
        return []

    def log_majorant(self, sign: int, lam: Any, top: float, centre: Any, half: Any, height: Any, on: Any) -> Any:
        c, g, kept = self._numbers(on)
        angle, low, high = c * height, centre - half, centre + half
        most, least = g * on.exp(c * high - c * c / 2), g * on.exp(-c * high - c * c / 2)
        swung = g * on.exp(-c * low - c * c / 2)
        # |R(z)| <= R(zr), and |R(-z)| >= R(-zr) cos(theta/2)
        log_power = (lam + 1) * on.log(kept + most) - lam * (on.log(kept + least) + on.log(on.cos(angle / 2)))
        # the arguments of R(z) and of 1/R(-z) have one sign, and add up
        turn = 2 * angle
        small = sum(on.atan(each * on.sin(angle) / (kept + each * on.cos(angle))) for each in (most, swung))
        turn = on.where(angle <= 1.5, small, turn)
        near = abs(centre) - half
        log_phi = (height * height - on.where(near > 0, near * near, 0 * near)) / 2 - on.log(on.number(2 * math.pi)) / 2
        found = log_phi + log_power + on.number(top) * turn
        return on.where(angle <= WIDEST_ANGLE, found, on.number(math.inf))

    def largest_log(self, low: Any, high: Any, on: Any) -> Any:
        # |L| <= |log R(z)| + |log R(-z)|, each with an argument of at most pi
        c, g, kept = self._numbers(on)
        total = 8
        for a, b in ((low, high), (-high, -low)):
            left, right = (on.log(kept + g * on.exp(c * each - c * c / 2)) for each in (a, b))
            total = total + on.maximum(abs(right), abs(left + on.log(on.number(LEAST_COSINE))))
        return total

    def _log_shape(self, sign: int, lam: Any, low: Any, high: Any, on: Any) -> tuple[Any, Any]:
        """Bound log f and |(log f)'|, f = phi(z) R(z)^{1+lam} R(-z)^-lam / (c s(z) + c s(-z)).

        s(z) = g e^{cz - c^2/2} / R(z). Every part is monotone in z, or largest where z is nearest to 0.
        """
        c, g, kept = self._numbers(on)
        ahead = [g * on.exp(c * each - c * c / 2) for each in (low, high)]
        behind = [g * on.exp(-c * each - c * c / 2) for each in (low, high)]
        near = on.where(low > 0, low, on.where(high < 0, -high, 0 * low))
        # s(z) + s(-z) = (2 g k (1-g) cosh(cz) + 2 g^2 k^2) / (R(z) R(-z)), k = e^{-c^2/2}
        small = g * on.exp(-c * c / 2)
        least = small * (kept * (on.exp(c * near) + on.exp(-c * near)) + 2 * small)
        log_f = -near * near / 2 - on.log(on.number(2 * math.pi)) / 2 - on.log(c) - on.log(least)
        log_f = log_f + (lam + 2) * on.log(kept + ahead[1])
        fewer = 1 - lam
        log_f = log_f + fewer * on.where(fewer >= 0, on.log(kept + behind[0]), on.log(kept + behind[1]))
        # (log f)' = -z + (2+lam) c s(z) - (1-lam) c s(-z) - c tau(z), tau = sinh(cz) / (cosh(cz) + g k / (1-g)), rising
        rise, fall = ([each / (kept + each) for each in side] for side in (ahead, behind))
        tau = [
            kept * (on.exp(c * each) - on.exp(-c * each)) / (kept * (on.exp(c * each) + on.exp(-c * each)) + 2 * small)
            for each in (low, high)
        ]
        first, last = on.where(fewer >= 0, fall[0], fall[1]), on.where(fewer >= 0, fall[1], fall[0])
        under = -high + (lam + 2) * c * rise[0] - fewer * c * first - c * tau[1]
        over = -low + (lam + 2) * c * rise[1] - fewer * c * last - c * tau[0]
        return log_f, on.maximum(abs(under), abs(over))


@dataclass(frozen=True, slots=True)
class LaplaceReplacementLaw(_ReplacementLaw):
    """Laplace noise of scale 1 around 0, and around c in P or -c in Q with probability g.

    T(z) = 1 - g + g e^{2z - c} and B = T(0); at z in [0, c] the loss is L = log T(z) - log B and q = B e^-z / 2. Beyond c the
    loss is constant, and reflection swaps the two laws.
    """

    distance: Fraction
    rate: Fraction

    @property
    def signs(self) -> tuple[int, ...]:
        return (1, -1)

    @property
    def steepness(self) -> float:
        return 2 * float(self.distance)

    def span(self, lam: float, log_error: float) -> tuple[float, float]:
        return 0.0, 1.0

    def _log_floor(self, on: Any) -> Any:
        """Return log B."""
        c, g, kept = self._numbers(on)
        return on.log(kept + g * on.exp(-c))

    def float_point(self, v: Array) -> tuple[Array, Array]:
        c, g, kept = self._numbers(ON_FLOATS)
        floor = float(self._log_floor(ON_FLOATS))
        near = np.log1p(g * np.exp(-c - floor) * np.expm1(np.minimum(2 * c * v, 30.0)))
        far = sampled_loss(2 * c * v - c, g, kept) - floor
        return np.where(2 * c * v < 1, near, far), floor - c * v + math.log(c / 2)

    def ball_point(self) -> Callable[[Any], tuple[Any, Any]]:
        c, g, _ = self._numbers(ON_BALLS)
        floor, log_half = self._log_floor(ON_BALLS), (c / 2).log()
        part = g * (-c - floor).exp()
        return lambda v: ((part * (2 * c * v).expm1()).log1p(), floor - c * v + log_half)

    def enclosed_point(self, v: Enclosure) -> tuple[Enclosure, Enclosure]:
        c = BOUNDED.number(self.distance)
        floor = enclosed_loss(-c, self.rate)
        loss = enclosed_loss(v * (2 * c) - c, self.rate) - floor
        return loss, floor - v * c + BOUNDED.log(c / 2)

    def beyond(self, lam: Any, edges: list[float]) -> Any:
        return BALLS.number(0 if (edges[0], edges[-1]) == (0.0, 1.0) else math.inf)

    def tilted_atoms(self, lam: Any) -> list[tuple[Any, Any]]:
        c, _, _ = self._numbers(ON_BALLS)
        top = self.ball_point()(BALLS.number(1))[0]
        below = (self._log_floor(ON_BALLS) - c).exp() / 2
        return [(top, below * ((1 + lam) * top).exp()), (-top, below * (-lam * top).exp())]

    def log_majorant(self, sign: int, lam: Any, top: float, centre: Any, half: Any, height: Any, on: Any) -> Any:
        c, g, kept = self._numbers(on)
        angle, floor = 2 * c * height, self._log_floor(on)
        left, right = (g * on.exp(2 * c * each - c) for each in (centre - half, centre + half))
        # |T| <= T(zr), and |T| >= T(zl) cos(theta/2)
        most = on.log(kept + right) - floor
        least = on.log(kept + left) + on.log(on.cos(angle / 2)) - floor
        log_power = (lam + 1) * most if sign > 0 else -lam * least
        slope = right * on.sin(angle) / (kept + right * on.cos(angle))
        turn = on.where(angle <= 1.5, on.atan(slope), angle)
        log_q = floor - c * (centre - half) + on.log(c / 2)
        found = log_q + log_power + on.number(top) * turn
        return on.where(angle <= WIDEST_ANGLE, found, on.number(math.inf))

    def largest_log(self, low: Any, high: Any, on: Any) -> Any:
        c, g, kept = self._numbers(on)
        left, right = (on.log(kept + g * on.exp(2 * c * each - c)) for each in (low, high))
        floor = self._log_floor(on)
        return on.maximum(abs(right - floor), abs(left - floor + on.log(on.number(LEAST_COSINE)))) + 4

    def _log_shape(self, sign: int, lam: Any, low: Any, high: Any, on: Any) -> tuple[Any, Any]:
        """Bound log f and |(log f)'|, f = q e^{pL} / L', p = lam + 1 or -lam.

        L' = 2 c s, s = g e^{2cv - c} / T, (log f)' = c (2 (p+1) s - 3), and s rises.
        """
        c, g, kept = self._numbers(on)
        power, floor = (lam + 1 if sign > 0 else -lam), self._log_floor(on)
        parts = [g * on.exp(2 * c * each - c) for each in (low, high)]
        logs = [on.log(kept + part) for part in parts]
        log_f = floor - c * low + on.log(c / 2) - on.log(2 * c * parts[0])
        log_f = log_f + (power + 1) * on.where(power + 1 >= 0, logs[1], logs[0]) - power * floor
        slopes = [abs(c * (2 * (power + 1) * part / (kept + part) - 3)) for part in parts]
        return log_f, on.maximum(*slopes)
