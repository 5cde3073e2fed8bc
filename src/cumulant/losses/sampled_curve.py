"""The curve of a sampled pair: K(lambda) = log1p(M - 1), an integral of positive terms."""

from __future__ import annotations

import math
from collections.abc import Hashable
from dataclasses import dataclass, field
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from cumulant.curves.cache import recall
from cumulant.curves.closed_form import lemma3
from cumulant.curves.curve import Curve
from cumulant.errors import CertificateError
from cumulant.losses.integrals import log_integral
from cumulant.losses.large_orders import LogGap, closed_form, closed_kl
from cumulant.losses.panels import SMALLEST, Line, enclosed_integral
from cumulant.losses.subsampled import BallTerm, Kernel, Rate, gain, log_kernel
from cumulant.numerics.arithmetic import BALLS, FLOATS, Arithmetic, Array, Scalar
from cumulant.numerics.enclosure import BOUNDED, Enclosure

if TYPE_CHECKING:
    from cumulant.losses.law import Law

LARGEST_SHIFT = 10**4
"""Sensitivity over noise; beyond it nothing is protected, and integrals over the loss span too many scales. Chosen by
hand; validity does not depend on it."""


@dataclass(frozen=True, slots=True)
class SampledCurveSettings:
    """Tuning constants of the curve of a sampled pair; validity does not depend on them."""

    orders_at_once: int = 512
    """Orders of one batch; a bound of memory."""

    cache_size: int = 8
    """Batches of orders that are remembered."""

    close: float = 1 - 1e-9
    """Part of the closed form below which the enclosure is better, and the certificate refuses to be worse."""

    largest_kl_shift: int = 300
    """Shift beyond which the KL divergence takes minutes in balls."""

    good_bits: int = 50
    """Relative bits of the short sum with which it is taken; the integral has no more use for a float."""


SETTINGS = SampledCurveSettings()
"""The settings in force; a test may replace them."""


@dataclass(frozen=True, slots=True)
class SampledPair(Curve):
    """K of one sampled law at every real order."""

    law: Law
    base: Curve
    rate: Fraction
    kernel: Kernel
    _cache: dict[Hashable, Any] = field(default_factory=dict, compare=False, repr=False)

    enclosed = True

    def out_of_reach(self) -> bool:
        """True if the noise is so small that only closed forms answer.

        Such noise protects nothing, and its integrals span too many scales.
        """
        return self.law.scale > LARGEST_SHIFT

    def log_excess(self, lam: Array) -> Array:
        """Return log(M(lambda) - 1) in floats, at orders that are not far."""

        def evaluated() -> Array:
            parts = [
                self._log_excess(lam[i : i + SETTINGS.orders_at_once])
                for i in range(0, lam.size, SETTINGS.orders_at_once)
            ]
            found = np.concatenate(parts) if parts else np.zeros(0)
            found.flags.writeable = False
            return found

        return np.asarray(recall(self._cache, lam.tobytes(), evaluated, SETTINGS.cache_size))

    def _log_excess(self, lam: Array) -> Array:
        value = self._on_one_grid(lam)
        slow = np.isnan(value)
        if slow.any():
            value[slow] = self._by_nodes(lam[slow])
        return value

    def _on_one_grid(self, lam: Array) -> Array:
        """Return log(M - 1) from one grid for all orders; NaN where no grid serves."""
        pair = self.law.log_excess(self.rate, lam)
        if pair is None:
            return np.full(lam.shape, np.nan)
        if self.kernel.whole:
            return np.where(np.isnan(pair.radius), np.nan, pair.mid)
        with np.errstate(all="ignore"):
            return pair.mid + np.log1p(self.law.profile_excess(self.rate, lam) * np.exp(-pair.mid))

    def _by_nodes(self, lam: Array) -> Array:
        with np.errstate(all="ignore"):
            nodes = self.law.nodes(lam, Rate.of(self.rate), lambda L: self.kernel.term(lam, L), self.kernel.whole)
            value = log_integral(nodes, self.kernel.term, lam)
        return np.where(np.isnan(value), np.inf, value)

    def enclosed_excess(self, lam: Array) -> Enclosure:
        """Return enclosures of log(M(lambda) - 1): atoms one by one, the density by panels."""
        parts: list[Any] = [
            self._enclosed_excess(lam[i : i + SETTINGS.orders_at_once])
            for i in range(0, lam.size, SETTINGS.orders_at_once)
        ]
        joined: Any = np.concatenate(parts) if parts else Enclosure(lam)
        return joined  # type: ignore[no-any-return]

    def _enclosed_excess(self, lam: Array) -> Enclosure:
        """Return enclosures of log(M - 1) for one batch; at lambda = 0 of log KL, the limit."""
        terms: list[Any] = []
        line, atoms = self.law.line(), self.law.enclosed_atoms(self.rate, self.kernel.whole)
        if line is not None:
            terms.append(self._enclosed_integral(line, lam)[:, None])
        if atoms is not None:
            log_mass, L = atoms
            each = Enclosure(lam[:, None])
            power = (each + 1) * gain(L)
            terms.append(log_mass + log_kernel(each, L, self.kernel.whole) + power)
        joined: Any = np.concatenate(terms, axis=1) if terms else Enclosure(np.full((lam.size, 1), -np.inf))
        return joined[:, 0] if joined.shape[1] == 1 else BOUNDED.log_sum_exp(joined)

    def _enclosed_integral(self, line: Line, lam: Array) -> Enclosure:
        known = self.law.log_excess(self.rate, lam) if self.kernel.whole and lam.all() else None
        if known is None:
            known = Enclosure(np.full(lam.shape, np.nan))
        slow = np.isnan(known.mid + known.radius)
        if slow.any():
            size = self.log_excess(lam[slow]) if lam.all() else np.array([self._log_kl()])
            known[slow] = enclosed_integral(line, self.rate, lam[slow], self.kernel.whole, size)
        return known

    def excess_ball(self, lam: Fraction) -> Scalar:
        """Return M(lambda) - 1 as a ball, at an order that is not far."""
        from flint import ctx

        short = self.law.excess(lam + 1, self.rate, _bits(ctx.prec)) if self.kernel.whole else None
        if short is not None and short.rel_accuracy_bits() >= SETTINGS.good_bits:
            return short
        size = float(self.log_excess(np.array([float(lam)]))[0])
        return self._ball(lambda point: self.kernel.ball_term(BALLS.number(lam), point), lam + 1, size)

    def _ball(self, term: BallTerm, order: Fraction, log_size: float) -> Scalar:
        from flint import ctx

        size = log_size if math.isfinite(log_size) else 0.0
        bits = _bits(ctx.prec)
        # the terms of size 1 cancel down to the size of the result
        with BALLS.at(ctx.prec + 32 + int(max(0.0, -size) / math.log(2))):
            return self.law.enclosure(term, order, self.rate, self.kernel.whole, size, bits)

    def _cgf(self, lam: Array, on: Arithmetic) -> Array:
        return self.log_moment(lam, on)

    def log_moment(self, lam: Array, on: Arithmetic, log_gap: LogGap | None = None) -> Array:
        """Return log(M + gap), the gap given by its logarithm.

        Nothing cancels where M is close to 1 and the gap to 0.
        """
        if on.exact:
            return np.array([self._log_moment_ball(Fraction(x), log_gap) for x in lam], dtype=object)
        if on.enclosing and not self.base.pure() > 0:
            return Enclosure(0 * lam)
        value, far = on.asarray(np.full(lam.shape, np.nan)), self.far_orders(lam)
        if not far.all():
            near = lam[~far]
            excess = self.enclosed_excess(near) if on.enclosing else self.log_excess(near)
            value[~far] = on.log1p_exp(excess if log_gap is None else on.log_add_exp(excess, log_gap(near)))
        if on.enclosing:
            far = far | np.isnan(value.mid + value.radius)
        if far.any():
            value[far] = closed_form(self.law, self.base, self.rate, lam[far], on, log_gap)
        return value

    def far_orders(self, lam: Array) -> Array:
        """Return the orders whose integrals are out of reach."""
        line = self.law.line()
        if line is None:
            return np.zeros(lam.shape, dtype=bool)
        if self.out_of_reach() or self._is_tiny():
            return np.ones(lam.shape, dtype=bool)
        return ~((lam + 1) * line.t <= line.farthest)

    def _log_moment_ball(self, lam: Fraction, log_gap: LogGap | None) -> Scalar:
        line, here = self.law.line(), np.array([lam], dtype=object)
        if line is not None and (
            self._slow_in_balls() or self.out_of_reach() or (lam + 1) * line.shift > line.farthest_ball
        ):
            found, point = closed_form(self.law, self.base, self.rate, here, BALLS, log_gap)[0], np.array([float(lam)])
            with np.errstate(all="ignore"):
                enclosed = (
                    math.inf
                    if self.far_orders(point)[0]
                    else float(self.log_moment(point, BOUNDED, log_gap).upper()[0])
                )
            if enclosed < SETTINGS.close * float(found.lower()):
                raise CertificateError("the integral takes minutes in balls; its enclosure does not, and says less")
            return found
        excess = self.excess_ball(lam)
        return (excess + log_gap(here)[0].exp() if log_gap else excess).log1p()

    def _is_tiny(self) -> bool:
        """True if M - 1, of the size of (rate times shift)^2, is below all floats."""
        return max(self.rate, SMALLEST) * max(self.law.scale, SMALLEST) < SMALLEST

    def _slow_in_balls(self) -> bool:
        """True if so many digits cancel that a ball takes minutes."""
        return self._is_tiny() or min(self.rate, 1 - self.rate, self.law.scale) < SMALLEST

    def kl(self, on: Arithmetic = FLOATS) -> Scalar:
        """Return the derivative of M at lambda = 0."""
        if self.law.line() is not None and (self.out_of_reach() or self._slow_in_balls()):
            return closed_kl(self.base, self.rate, on)
        if on.enclosing:
            with np.errstate(all="ignore"):
                return BOUNDED.exp(self._enclosed_excess(np.zeros(1)))[0] if self.base.pure() > 0 else Enclosure(0.0)
        log_value = self._log_kl()
        if math.isnan(log_value):
            return on.number(math.inf)
        if not on.exact:
            return math.exp(log_value)
        if self.law.scale > SETTINGS.largest_kl_shift:
            raise CertificateError(
                "the KL divergence of so little noise takes minutes in balls; its enclosure does not"
            )
        # the terms are at most w^2 - 1, and a g where x < 0: the tails of order 2
        return self._ball(self.kernel.ball_slope, Fraction(2), log_value)

    def _log_kl(self) -> float:
        with np.errstate(all="ignore"):
            nodes = self.law.nodes(np.zeros(1), Rate.of(self.rate), self.kernel.slope, self.kernel.whole)
            return float(log_integral(nodes, self.kernel.slope)[0])

    def pure(self, on: Arithmetic = FLOATS) -> Scalar:
        with np.errstate(divide="ignore"):  # pure = 0
            return lemma3(self.base.at_infinity(on), on.number(self.rate), on)

    def slack(self) -> Fraction:
        return self.rate * self.base.slack()


def _bits(precision: int) -> int:
    """Return how many bits a ball of an integral is asked to have."""
    return max(64, precision // 2)
