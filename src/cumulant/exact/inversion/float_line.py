"""The inversion line in float64 with every error term, for any number of repetitions.

It bounds delta from above (docs/line.md, section 6).

Delta from above for any number of repetitions (docs/line.md, 6).

One-round transforms do not depend on how often rounds run: log phi_i at the frequencies is kept, with a bound of its error, and
a question multiplies both by its count.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np

from cumulant.exact.inversion.decay import DecayNotProved
from cumulant.exact.inversion.float_decay import (
    FloatRoundType,
    decay_frequency,
    next_power_of_two,
    rounded_up_frequency,
)
from cumulant.exact.inversion.line import Choice, FloatLine, gaussian_square
from cumulant.exact.inversion.settings import LINE
from cumulant.exact.rounds import RoundTypes
from cumulant.exact.test_functions import HOCKEY_STICK, THEOREM_B, TestFunction, theorem_b_constants
from cumulant.losses.float_rule import FloatRule, total
from cumulant.losses.strip_rule import float_whole_rule
from cumulant.losses.transform import DensityLaw
from cumulant.numerics.arithmetic import Array
from cumulant.numerics.rounding import MANY, U, raised

# Bounds on rounding errors, derived in docs/line.md, section 6; U = 2^-53 is half a unit in the last place.

_SECOND = 1 + 1e-6
"""Factor for products of relative errors, each of which is below a thousandth; derived."""

_MARGIN = 1e-9
"""Relative error of a dozen roundings of numbers below 1e5; derived."""

_PHASE = 36 * U
"""Error of the phase u L with its sine and cosine, relative to u |L|; derived."""

_LOGARITHM = 15 * U
"""Error of log phi, relative to its own size and to that of its parts; derived."""

_TERM = 80 * U
"""Relative error of one term of the sum: exponential, z (1 + z), product; derived."""

_GAUSSIAN = 16 * U
"""Error of the exponent of unsampled Gaussians, relative to each of its parts; derived."""

_CONSTANT = 1e-13
"""Relative error of log R and log C of Theorem L-cone; derived: both are computed without cancellation."""

_QUOTIENT = 4 * U
"""Relative error of the sum of the weights and of its quotient; derived."""

_POWER = 2 * U
"""Error of k log phi, relative to its size; derived."""

_TURN = 8 * U
"""Error of the phase u eps, relative to its size; derived."""

_ADDED = U
"""Error of a sum, per term and relative to the sizes; derived."""

_KIND = 2 * U
"""Error of a sum over round types, per type and relative to the sizes; derived."""

_OUTSIDE = 8 * U
"""Error of the logarithms outside of the sum, relative to the numbers in them; derived."""

_UNDERFLOW = 1e-300
"""Number that exceeds everything that underflow loses; derived."""


@dataclass(frozen=True, slots=True)
class TiltedTransform:
    """log phi of one round at the frequencies and its K at lam, each with an error bound."""

    log_phi: Array
    slack: Array
    cgf: float
    cgf_slack: float


@lru_cache(maxsize=512)
def _remembered_transform(
    law: DensityLaw, lam: float, top: float, goal: float, step: float, count: int
) -> tuple[TiltedTransform, int]:
    """Return one round type at the first frequencies, and its number of nodes.

    It is remembered, because it does not depend on the number of rounds.
    """
    rule = float_whole_rule(law, lam, top, goal)
    if rule.size * count > LINE.float_most_work:
        raise DecayNotProved("the line would take too long")
    return tilted_transform(rule, step * np.arange(count + 1)), rule.size


@np.errstate(divide="ignore", invalid="ignore")
def tilted_transform(rule: FloatRule, frequencies: Array) -> TiltedTransform:
    """Return log phi at the frequencies from phi - 1 = E[e^{iuL} - 1] under the tilted law.

    The parts -2 sin^2(uL/2) and sin(uL) do not cancel. Where phi is 0 in floats its error
    bound is +inf, and the caller gives up.
    """
    whole = total(rule.weights)
    weights, losses = rule.weights.mid, rule.losses.mid
    size = np.abs(losses) + rule.losses.radius
    # |phi - 1| <= u E|L|; each factor e^{iuL} - 1 errs by u (2 d + 36 u |L|), a dot product by n u, weights by their radius
    moved = float(weights @ (2 * rule.losses.radius + (_PHASE + 2 * whole.additions) * size))
    moved += float(rule.weights.radius @ size) + (whole.relative + _QUOTIENT) * float(weights @ size)
    # quadrature and ends err by E for M(lam + iu) and for M(lam), and |M(lam + iu)| <= M(lam)
    off = (frequencies * (moved / whole.sum) + 2 * rule.error / whole.sum) * _SECOND
    phase = frequencies[:, None] * losses
    a = -2 * (np.sin(phase / 2) ** 2 @ weights) / whole.sum
    b = np.sin(phase) @ weights / whole.sum
    # log phi = log1p(2a + a^2 + b^2)/2 + i atan2(b, 1 + a): a complex log1p would lose what a real one keeps
    gain = 2 * a + a * a + b * b
    log_phi = np.log1p(gain) / 2 + 1j * np.arctan2(b, 1 + a)
    rounding = _LOGARITHM * (np.abs(log_phi) + (2 * np.abs(a) + a * a + b * b) / (1 + gain))
    log_sum = math.log(whole.sum)
    cgf_slack = (whole.relative + rule.error / whole.sum) * _SECOND + _OUTSIDE * (abs(log_sum) + abs(rule.scale) + 1)
    return TiltedTransform(log_phi, off / np.sqrt(1 + gain) + rounding, rule.scale + log_sum, cgf_slack)


@dataclass(frozen=True, slots=True)
class FloatSpectrum:
    """All round types on one line, for one repetition.

    A question about k repetitions multiplies logarithms by k.
    """

    choice: Choice
    frequencies: Array
    log_phi: Array
    slack: Array
    cgf: float
    cgf_slack: float
    beta: float
    """Beyond the last frequency |M| <= e^{k (K - beta)} for every k that is at least `fewest`."""
    fewest: float
    log_kept: float
    """log(1 - leak), rounded down."""

    def weights(self, times: float, test: TestFunction) -> Array:
        """Return phi(u_m)^k / D(z_m), D the denominator of the test function's transform."""
        z = self.choice.lam + 1j * self.frequencies
        return np.asarray(np.exp(times * self.log_phi) / test.denominator(z))

    def line(self, times: float, test: TestFunction = HOCKEY_STICK) -> FloatLine:
        """Return a line in floats to search along, without error terms."""
        return FloatLine(
            self.choice.lam, self.choice.period, times * self.cgf, self.weights(times, test), self.frequencies
        )

    @np.errstate(all="ignore")
    def log_above(self, epsilons: Array, times: Array, test: TestFunction = HOCKEY_STICK) -> Array:
        """Return log of an upper bound on E_P[g(S - eps)] for the hockey stick or Theorem B.

        Returns +inf if unknown.

        The leak is not included.
        """
        lam, period, u = self.choice.lam, self.choice.period, self.frequencies
        weights = np.array([self.weights(float(k), test) for k in times])
        terms = (weights * np.exp(-1j * epsilons[:, None] * u)).real
        # |Pi phi_i^k_i - e^X| <= |e^X| expm1(SUM k_i slack_i); the phase u eps errs by 8 u, a term by 80 u, a sum by n u
        wrong = np.expm1(
            times[:, None] * (self.slack + _POWER * np.abs(self.log_phi)) + _TURN * np.abs(epsilons)[:, None] * u
        )
        errors = np.abs(weights) * (wrong + _TERM + u.size * _ADDED) * _SECOND
        terms[:, 1:] *= 2
        errors[:, 1:] *= 2
        # the tail: e^{-lam eps} S_N / ((q - 1) pi u_N^{q-1})
        odd = test.tail_power - 1
        tail = np.exp(-times * self.beta + _MARGIN) * period / (odd * math.pi * u[-1] ** odd)
        bracket = terms.sum(axis=1) + errors.sum(axis=1) * (1 + _MARGIN) + tail * (1 + _MARGIN) + _UNDERFLOW
        cgf = times * self.cgf
        moved = times * self.cgf_slack + _OUTSIDE * (np.abs(cgf) + np.abs(lam * epsilons) + abs(math.log(period)) + 16)
        found = cgf - lam * epsilons - math.log(period) + np.log(bracket) + moved * (1 + _MARGIN)
        return np.where(np.isfinite(found) & (bracket > 0) & (times >= self.fewest), found, np.inf)

    def log_leaks(self, times: Array) -> Array:
        """Return log of the probability that the loss of some round is infinite, rounded up.

        Returns -inf if there is no leak.
        """
        with np.errstate(divide="ignore"):
            return np.asarray(
                np.log(raised(-np.expm1(times * self.log_kept), MANY)) if self.log_kept else -np.inf * times
            )

    def log_upper(self, epsilons: Array, times: Array) -> Array:
        """Return log of an upper bound on delta(eps): images only add to the line; +inf if unknown."""
        found = self.log_above(epsilons, times)
        return np.logaddexp(found, self.log_leaks(times)) + _OUTSIDE if self.log_kept else found

    def log_theorem_b(self, epsilons: Array, times: Array, gaps: Array) -> Array:
        """Return log of an upper bound on delta(eps) by Theorem B at these gaps (Theorem L-cone).

        Returns +inf if unknown.
        """
        log_ratio, log_constant = theorem_b_constants(gaps)
        start = epsilons - log_ratio - _CONSTANT * (1 + gaps + np.abs(epsilons))
        return self.log_above(start, times, THEOREM_B) + log_constant + _CONSTANT


def float_spectrum(
    round_types: RoundTypes, choice: Choice, fewest: int, most: int, extra: Fraction = Fraction(0)
) -> FloatSpectrum:
    """Build the line of all round types in floats, for `fewest` to `most` repetitions.

    `choice.decay_exponent` is that for `fewest` repetitions. Raises DecayNotProved or OverflowError if floats do not bound the
    decay; the caller then tries a smaller order.
    """
    square = extra + gaussian_square(round_types)
    lam, step = choice.lam, 2 * math.pi / choice.period
    rounds = [
        FloatRoundType.prepare(
            _density_law(each),
            times * fewest,
            lam,
            choice.decay_exponent + math.log(next_power_of_two(-(-most // fewest))),
        )
        for each, times in round_types
        if each.square is None
    ]
    start = decay_frequency(rounds, lam, choice.decay_exponent, float(square) * fewest / 2 * (1 - _MARGIN), step)
    count = LINE.length_multiple * math.ceil(max(1, math.ceil(start / step * (1 + 1e-12))) / LINE.length_multiple)
    # the work below counts nodes, and a line of Gaussian rounds alone has none; numpy refuses 2^60 frequencies in its own words
    if count > LINE.float_most_work:
        raise DecayNotProved("the line would take too long")
    frequencies = step * np.arange(count + 1)
    last = rounded_up_frequency(float(frequencies[-1]))
    half = float(square) / 2
    # e^{(z + z^2) s / 2}
    log_phi = -half * frequencies**2 + 1j * (half * (1 + 2 * lam) * frequencies)
    slack = _GAUSSIAN * (half * frequencies**2 + half * (1 + 2 * lam) * frequencies)
    cgf, cgf_slack, sizes = half * (lam + lam * lam), _GAUSSIAN * half * (lam + lam * lam), np.abs(log_phi)
    work = 0
    for each in rounds:
        goal = (
            each.log_mass
            - choice.decay_exponent
            - math.log(next_power_of_two(each.times))
            - math.log(next_power_of_two(-(-most // fewest)))
            - 6
        )
        found, nodes = _remembered_transform(each.law, lam, last, goal, step, count)
        work += nodes * count
        if work > LINE.float_most_work:
            raise DecayNotProved("the line would take too long")
        times = each.times // fewest
        log_phi, slack = log_phi + times * found.log_phi, slack + times * found.slack
        cgf, cgf_slack = cgf + times * found.cgf, cgf_slack + times * found.cgf_slack
        sizes = sizes + times * np.abs(found.log_phi)
    # sums over kinds, in any order
    slack = (slack + (len(rounds) + 4) * _KIND * sizes) * _SECOND
    cgf_slack = (cgf_slack + (len(rounds) + 4) * _KIND * abs(cgf)) * _SECOND
    if not (math.isfinite(cgf) and np.isfinite(slack).all()):
        raise DecayNotProved("the transform is not finite")
    return FloatSpectrum(
        choice,
        frequencies,
        log_phi,
        slack,
        cgf,
        cgf_slack,
        choice.decay_exponent / fewest,
        fewest,
        _log_kept(round_types),
    )


def _density_law(each: Any) -> Any:
    """Return the density of a round type; raise DecayNotProved if its law has none."""
    law = each.density_law()
    if law is None:
        raise DecayNotProved("a law without a density does not decay")
    return law


def _log_kept(round_types: Sequence[tuple[Any, int]]) -> float:
    """Return log of the probability that no loss is infinite, rounded down."""
    found = 0.0
    for each, times in round_types:
        leak = each.leak()
        if not leak.is_zero():
            share = math.nextafter(float(leak.upper()), 1.0)
            found += times * math.log1p(-share) if share < 1 else -math.inf
    return found * (1 + 1e-12)
