"""Decay of the moment function in float64.

It applies Lemmas S1 to S3 of docs/line.md with every rounding added (section 6 there), to the windows of `decay`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

import numpy as np

from cumulant.exact.inversion.decay import (
    DecayNotProved,
    Profile,
    TiltedType,
    omitted_mass,
    reachable_frequency,
    select_for_decay,
    tilted_profile,
)
from cumulant.exact.inversion.settings import DECAY
from cumulant.losses.float_rule import FloatRule, Total, float_rule, float_variation, total
from cumulant.losses.strip_rule import float_whole_rule
from cumulant.losses.transform import DensityLaw
from cumulant.numerics.arithmetic import BALLS, Array
from cumulant.numerics.rounding import U
from cumulant.numerics.search import falling_threshold

# Bounds on rounding errors, derived in docs/line.md, section 6; U = 2^-53 is half a unit in the last place.

_MARGIN = 1e-9
"""Relative error of a dozen roundings of numbers below 1e5; derived."""

_LEFT = 1e-14
"""Error of a few sums of numbers near 1 and of their logarithm; derived."""

_TURN = 8 * U
"""Error of the phase v L, relative to its size; derived."""

_ADDED = 2 * U
"""Error of a sum of sines or cosines, per term and relative to the sizes; derived."""

_SCALE = 8 * U
"""Error of the logarithm of a mass, relative to its size; derived."""


@dataclass(frozen=True, slots=True)
class FloatRoundType:
    """One round type at the order lam in floats: its law, count, M(lam), and Lemma S3 window."""

    law: DensityLaw
    times: int
    rule: FloatRule
    whole: Total
    profile: Profile
    window: tuple[float, float]

    @classmethod
    def prepare(cls, law: DensityLaw, times: int, lam: float, exponent: float) -> FloatRoundType:
        """Prepare a round type for this order; types with nearby counts share the remembered work."""
        return cls(law, times, *_prepare(law, next_power_of_two(times), lam, exponent))

    @property
    def log_mass(self) -> float:
        """Return log M(lam) in floats."""
        return self.rule.scale + math.log(self.whole.sum)

    @property
    def relative_error(self) -> float:
        """Return a bound on the relative error of e^log_mass as M(lam)."""
        return self.whole.relative + self.rule.error / self.whole.sum + _SCALE * (4 + abs(self.rule.scale))

    def share(self, rule: FloatRule) -> float:
        """Return the factor that turns weights of another rule into parts of M(lam)."""
        return math.exp(rule.scale - self.log_mass)


def next_power_of_two(times: int) -> int:
    """Return the next power of two, so that nearby counts share remembered work.

    A larger count is always valid.
    """
    return 1 << (times - 1).bit_length()


@lru_cache(maxsize=1024)
def _prepare(
    law: DensityLaw, times: int, lam: float, exponent: float
) -> tuple[FloatRule, Total, Profile, tuple[float, float]]:
    """Return rule, mass, profile and Lemma S3 window for up to this many rounds."""
    goal = -exponent - math.log(times) - 6
    seen = tilted_profile(TiltedType(times, None, 0.0), law, lam, exponent)
    seen = seen.scaled(float(seen.mass.sum()) + _jumps(law, lam))
    rule = float_whole_rule(law, lam, 0.0, goal)
    return rule, total(rule.weights), seen, seen.densest_window(exponent, times)


@dataclass(frozen=True, slots=True)
class Window:
    """The law of one round type without its largest losses, for Lemma S2.

    It has a from both sides, and s_A from above.
    """

    times: int
    losses: Array
    weights: Array
    error: float
    slope: float
    """|phi_A(v)| is known up to error + v slope."""
    least: float
    most: float
    spread: float

    @np.errstate(divide="ignore", invalid="ignore")
    def bounds(self, frequencies: Array, halves: Array) -> Array:
        """Return log of a bound on |phi| over each [v - h, v + h]; 0 if Lemma S2 does not apply."""
        phase = frequencies[:, None] * self.losses
        f = np.hypot(np.cos(phase) @ self.weights, np.sin(phase) @ self.weights)
        f = f + self.error + frequencies * self.slope
        move = self.spread * halves
        # Lemma S2: a from below where the lemma is tested, from above where it is used
        usable = (f < self.least) & (np.sqrt(np.maximum(self.least**2 - f * f, 0.0)) >= move)
        squared = f * f + 2 * move * np.sqrt(np.maximum(self.most**2 - f * f, 0.0)) - move * move
        # Lemma S1
        bound = (1 - self.least) + np.sqrt(np.maximum(squared, 0.0) + _LEFT) * (1 + _LEFT)
        return np.where(usable & (bound < 1), np.log(np.where(bound < 1, bound, 1.0)) + _LEFT, 0.0)


def decay_frequency(rounds: Sequence[FloatRoundType], lam: float, exponent: float, slow: float, step: float) -> float:
    """Return a frequency u with |M(lam + iv)| <= M(lam) e^-exponent for all v >= u.

    Floats bound it with every rounding. The Gaussians alone give e^{-slow v^2}.
    """
    profiles = [each.profile for each in rounds]
    round_types = [TiltedType(each.times, None, each.log_mass, each.law) for each in rounds]
    selected = select_for_decay(round_types, profiles, exponent)
    round_types, rounds = [round_types[i] for i in selected], [rounds[i] for i in selected]
    top = _last_check_point(rounds, lam, exponent, slow)
    try:
        return _extend_decay(rounds, round_types, lam, exponent, slow, step, top, (0.0,))
    except OverflowError:  # far out a window that leaves out a tenth of the law takes fewer nodes
        return _extend_decay(rounds, round_types, lam, exponent, slow, step, top, (0.1, 0.0))


def _extend_decay(
    rounds: Sequence[FloatRoundType],
    round_types: Sequence[TiltedType],
    lam: float,
    exponent: float,
    slow: float,
    step: float,
    top: float,
    stages: tuple[float, ...],
) -> float:
    """Return a frequency <= `top` down to which Lemmas S1 and S2 bound the decay.

    Returns `top` if they bound nothing.
    """
    profiles = [each.profile for each in rounds]
    for cut in stages:
        if top <= DECAY.fewest_frequencies * step or not rounds:
            break
        if (
            not reachable_frequency(round_types, profiles, exponent, Fraction(slow), cut)
            <= top - DECAY.float_worth_intervals * DECAY.fewest_frequencies * step
        ):
            continue
        windows = [_build_window(each, lam, top, exponent, cut) for each in rounds]
        top = _cover_downwards(windows, top, exponent, slow, step)
    return top


def rounded_up_frequency(top: float) -> float:
    """Return a frequency slightly above `top`, so that nearby questions share remembered rules."""
    return float(2.0 ** (math.ceil(4 * math.log2(top) + _MARGIN) / 4))


def _jumps(law: DensityLaw, lam: float) -> float:
    """Return the tilted mass of losses with positive probability, in floats."""
    with BALLS.at(64):
        return sum(float(mass.mid()) for _, mass in law.tilted_atoms(BALLS.number(lam)))


def _last_check_point(rounds: Sequence[FloatRoundType], lam: float, exponent: float, slow: float) -> float:
    """Return the frequency beyond which Lemma S3 and the Gaussians bound the decay."""
    known = []
    for each in rounds:
        try:
            log_variation = float_variation(each.law, lam, *each.window) - each.log_mass
            rule = float_rule(each.law, lam, 0.0, each.log_mass + DECAY.coarse_log_error, each.window, beyond=False)
            part = total(rule.weights_between(*each.window))
        except OverflowError:
            continue  # a factor of at most 1
        wrong = each.relative_error + part.relative + _LEFT
        rest = 1 - each.share(rule) * (part.sum * (1 - wrong) - rule.error)
        if math.isfinite(log_variation):
            known.append((each.times, math.exp(log_variation + each.relative_error + _MARGIN), rest + _LEFT))

    def log_bound(u: float) -> float:
        return sum(times * math.log(min(1.0, rest + v / u)) for times, v, rest in known) - slow * u * u

    last = falling_threshold(log_bound, -exponent * (1 + _MARGIN) - 1e-6)
    if last == math.inf:
        raise DecayNotProved("the law of the losses has no density that fades out")
    return last


def _build_window(each: FloatRoundType, lam: float, top: float, exponent: float, cut: float) -> Window:
    """Return the law without its largest losses as points, accurate up to the frequency `top`."""
    times = next_power_of_two(each.times)
    edges = float(each.profile.v[0]), each.profile.upper_quantile(max(omitted_mass(exponent, times), cut))
    goal = each.log_mass + math.log(1e-3 * min(1.0, exponent / times)) - 4
    rule = float_rule(each.law, lam, rounded_up_frequency(top), goal, edges, beyond=False)
    share, part = each.share(rule), total(rule.weights)
    weights, losses, radius = share * rule.weights.mid, rule.losses.mid, rule.losses.radius
    mass = share * part.sum
    wrong = part.relative + each.relative_error + _LEFT
    off = mass * wrong + share * rule.error
    centre = float(weights @ losses) / mass
    second = float(weights @ (np.abs(losses - centre) + radius + _LEFT * np.abs(losses)) ** 2) * (1 + wrong)
    second += share * rule.square_error * (1 + centre * centre)
    spread = math.sqrt((mass + off) * second) * (1 + _LEFT)
    # e^{ivL}: what its phase, its sine and cosine and their sums lose
    slope = float(weights @ (radius + _TURN * np.abs(losses))) * (1 + _MARGIN)
    error = off + _ADDED * (losses.size + 64) * mass
    return Window(each.times, losses, weights, error, slope, mass - off, mass + off, spread)


def _cover_downwards(windows: list[Window], last: float, exponent: float, slow: float, step: float) -> float:
    """Cover frequencies downwards from `last` with intervals on which |phi|^k <= e^-exponent.

    Returns the lowest end.
    """
    top = last
    for _ in range(DECAY.most_intervals):
        for steps in (
            DECAY.interval_halves[: DECAY.long_intervals],
            DECAY.interval_halves[DECAY.long_intervals :],
        ):  # short ones only where no long one will do
            halves = np.minimum(steps * top, top / 2)
            centres = top - halves
            wider = halves * (1 + 2.0**-30)  # what the rounding of the centres may have left between two intervals
            found = sum(window.times * window.bounds(centres, wider) for window in windows)
            found = found - slow * np.maximum(centres - wider, 0.0) ** 2 * (1 - _MARGIN)
            passing = np.flatnonzero(found <= -exponent * (1 + _MARGIN) - 1e-6)
            if passing.size:
                break
        if not passing.size or 2 * halves[passing[0]] < DECAY.fewest_frequencies * step:
            return top
        top = float(centres[passing[0]] - halves[passing[0]])
        top = math.nextafter(top, math.inf)
        if top <= DECAY.fewest_frequencies * step:
            return top
    raise DecayNotProved("the decay takes too many intervals")
