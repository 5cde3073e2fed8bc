"""Decay of the moment function.

Balls prove a frequency beyond which |M(lam + iu)| <= M(lam) e^-b (docs/line.md, Lemmas S1 to S3).

Floats choose the windows, the last check point and the intervals; balls certify each of them. A window is a part of the tilted
law of one round type, and the mass that it leaves out is added to the bound, so every window is valid. There are two:

* Lemma S3 proves the decay beyond the last check point from `Profile.densest_window` (setting `window_cuts`);
* Lemmas S1 and S2 prove it on intervals below from `_Window` (settings `omitted_rounds`, `omitted_share`, `stage_cuts`).

`float_decay` proves the same in rounded floats. It shares the settings, `Profile.densest_window` and `omitted_mass`; only its
`_build_window` and `_cover_downwards` are its own, because there every rounding is added.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from cumulant.exact.inversion.settings import DECAY
from cumulant.losses.transform import DensityLaw, Rule
from cumulant.numerics.arithmetic import BALLS, Array
from cumulant.numerics.search import falling_threshold


class DecayNotProved(Exception):
    """Raised when we cannot bound the characteristic function; the caller falls back to a grid."""


class DecayTooSlow(DecayNotProved):
    """Raised when a proof may exist but would take too long.

    The caller tells the user that prove=True asks for it.
    """


@dataclass(frozen=True, slots=True)
class TiltedType:
    """One round type at the order of the line.

    It has a count, the mass M(lam) of its tilted law, and a density or atoms.
    """

    times: int
    mass: Any
    log_mass: float
    law: DensityLaw | None = None
    atoms: Rule | None = None


@dataclass(frozen=True, slots=True)
class _Window:
    """The tilted law of one round type without its largest losses (Lemma S1), as points.

    It holds the constants of Lemma S2.
    """

    times: int
    points: list[tuple[Any, Any]]
    error: Any
    least: Any  # the mass a of the window, from below
    most: Any  # and from above
    spread: Any  # s_A, from above
    losses: Array
    weights: Array
    numbers: tuple[float, float]  # a and s_A

    def bound(self, frequency: Any, half: Any) -> Any | None:
        """Return log of a bound on |phi| over [v - h, v + h]; None if Lemma S2 does not apply."""
        from flint import acb, arb

        total = acb(0)
        for loss, weight in self.points:
            total += weight * acb(0, frequency * loss).exp()
        f = arb(abs(total).upper()) + self.error
        # Lemma S2: a from below where the lemma is tested, from above where it is used
        if not f < self.least or not (self.least**2 - f**2).sqrt() >= self.spread * half:
            return None
        move = self.spread * half
        squared = f**2 + 2 * move * (self.most**2 - f**2).sqrt() - move**2
        # Lemma S1
        return (1 - self.least + arb(squared.upper()).sqrt()).log()

    @np.errstate(divide="ignore")
    def estimates(self, frequencies: Array, halves: Array) -> Array:
        """Return log of the bound on |phi| over each [v - h, v + h] in floats, to choose intervals.

        Returns 0 where Lemma S2 does not apply.
        """
        a, s = self.numbers
        f = np.abs(np.exp(1j * frequencies[:, None] * self.losses) @ self.weights)
        r, move = np.sqrt(np.maximum(a * a - f * f, 0.0)), s * halves
        bound = 1 - a + np.sqrt(np.maximum(f * f + 2 * move * r - move * move, 0.0))
        return np.where((r > move) & (f < a), np.log(np.minimum(bound, 1.0)), 0.0)


def decay_frequency(
    round_types: Sequence[TiltedType], lam: float, exponent: float, gauss: Fraction, step: float
) -> float:
    """Return a frequency u with |M(lam + iv)| <= M(lam) e^-exponent for all v >= u.

    Balls prove it. The Gaussians alone give e^{-gauss v^2}.

    `step` is the distance of the frequencies that are summed anyway.
    """
    profiles: list[Profile | None] = []
    for round_type in round_types:
        law = round_type.law
        profiles.append(None if law is None else tilted_profile(round_type, law, lam, exponent))
    if len(round_types) > 1:
        selected = select_for_decay(round_types, profiles, exponent)
        round_types, profiles = [round_types[i] for i in selected], [profiles[i] for i in selected]
    top = _last_check_point(round_types, profiles, lam, exponent, gauss)
    return extend_decay(round_types, profiles, lam, exponent, gauss, step, top)


def extend_decay(
    round_types: Sequence[TiltedType],
    profiles: Sequence[Profile | None],
    lam: float,
    exponent: float,
    gauss: Fraction,
    step: float,
    top: float,
) -> float:
    """Return a frequency <= `top` down to which Lemmas S1 and S2 prove the decay.

    Returns `top` if they prove nothing.
    """
    # Far out a part of the law proves the decay, and a part needs fewer nodes; further in all but the rarest losses count.
    # Any part is valid by Lemma S1, because the omitted mass is added to the bound.
    for cut in DECAY.stage_cuts:
        if top <= DECAY.fewest_frequencies * step or not round_types:
            break
        if (
            not reachable_frequency(round_types, profiles, exponent, gauss, cut)
            <= top - DECAY.worth_intervals * DECAY.fewest_frequencies * step
        ):
            continue
        windows: list[_Window] = []
        for round_type, profile in zip(round_types, profiles, strict=True):
            windows.append(_build_window(round_type, profile, lam, top, exponent, cut))
        top = _cover_downwards(windows, top, exponent, gauss, step)
    return top


def select_for_decay(
    round_types: Sequence[TiltedType], profiles: Sequence[Profile | None], exponent: float
) -> list[int]:
    """Select the round types whose decay we prove.

    The others are bounded by |phi| <= 1 and need no windows.
    """
    spread = [
        math.inf if one is None else round_type.times * one.variance(omitted_mass(exponent, round_type.times))
        for round_type, one in zip(round_types, profiles, strict=True)
    ]
    wanted = DECAY.variance_share * sum(each for each in spread if each < math.inf)
    kept, kept_variance = [], 0.0
    for i in sorted(range(len(spread)), key=lambda i: -spread[i]):
        if kept_variance < wanted or spread[i] == math.inf:
            kept.append(i)
            kept_variance += spread[i] if spread[i] < math.inf else 0.0
    return sorted(kept)


def reachable_frequency(
    round_types: Sequence[TiltedType], profiles: Sequence[Profile | None], exponent: float, gauss: Fraction, cut: float
) -> float:
    """Return an estimate of the lowest frequency down to which windows prove the decay.

    The windows leave out the rarest `cut`. Laws count as normal ones. Returns 0 for atoms.
    """
    bend = 2 * float(gauss)
    for round_type, one in zip(round_types, profiles, strict=True):
        if one is None:
            return 0.0
        bend += round_type.times * one.variance(max(omitted_mass(exponent, round_type.times), cut))
    return math.sqrt(2 * exponent / bend) if bend > 0 else 0.0


# ---- Lemma S3: beyond the last check point


def _last_check_point(
    round_types: Sequence[TiltedType], profiles: Sequence[Profile | None], lam: float, exponent: float, gauss: Fraction
) -> float:
    """Return the frequency beyond which Lemma S3 and the Gaussians prove the decay."""
    alone = math.inf
    if gauss > 0:
        alone = math.sqrt(exponent / float(gauss)) * (1 + 1e-9)
        if not BALLS.number(gauss) * BALLS.number(alone) ** 2 >= exponent:
            alone = math.inf
    known, numbers = [], []
    for round_type, profile in zip(round_types, profiles, strict=True):
        if round_type.law is None or profile is None:
            continue  # atoms: a factor of at most 1
        low, high = profile.densest_window(exponent, round_type.times)
        try:
            variation = round_type.law.variation(lam, low, high) / round_type.mass
            rule = round_type.law.rule(
                lam, 0.0, round_type.log_mass + DECAY.coarse_log_error, [low, high], beyond=False
            )
        except OverflowError:
            continue  # a factor of at most 1
        if variation.is_finite():
            rest = 1 - rule.smooth() / round_type.mass
            known.append((round_type.times, variation, rest))
            numbers.append((round_type.times, float(variation.upper()), float(rest.upper())))
    slow = float(gauss)

    def log_bound(u: float) -> float:
        total = 0.0
        for times, most, left in numbers:
            total += times * math.log(min(1.0, left + most / u))
        return total - slow * u * u

    last = falling_threshold(log_bound, -exponent * (1 + 1e-9) - DECAY.margin)
    if min(alone, last) == math.inf:
        raise DecayNotProved("the law of the losses has no density that fades out")
    if alone <= last:
        return alone
    total = -BALLS.number(gauss) * BALLS.number(last) ** 2
    for times, variation, rest in known:
        part = rest + variation / BALLS.number(last)
        if part < 1:
            total += times * part.log()
    if not total <= -exponent:
        raise DecayNotProved("the last check point is not far enough")
    return last


@dataclass(frozen=True, slots=True)
class Profile:
    """The tilted law on a fine grid of v, in floats.

    It has the density of the loss, and the mass of each point's cell.
    """

    v: Array
    density: Array
    mass: Array
    by_sign: tuple[tuple[Array, Array], ...]
    """For each sign the losses and their masses."""

    def densest_window(self, exponent: float, times: int) -> tuple[float, float]:
        """Return both ends of the Lemma S3 window whose bound decays first."""
        cumulated = np.cumsum(self.mass)
        goal, whole = math.exp(-exponent / times), float(cumulated[-1])
        last = np.searchsorted(cumulated, (1 - DECAY.window_cuts) * whole)
        last = np.where(DECAY.window_cuts > 0, np.minimum(last, len(self.v) - 1), len(self.v) - 1)
        best = (math.inf, float(self.v[0]), float(self.v[-1]))
        for first in np.searchsorted(cumulated, DECAY.window_cuts * whole).tolist():
            left = np.where(last > first + 1, goal - (1 - (cumulated[last] - cumulated[first])), 0.0)
            highest = np.maximum.accumulate(self.density[first:])[np.maximum(last - first, 0)]
            found = np.where(left > 0, highest / np.where(left > 0, left, 1.0), np.inf)
            least = int(np.argmin(found))
            if found[least] < best[0]:
                best = (float(found[least]), float(self.v[first]), float(self.v[last[least]]))
        return best[1:]

    def scaled(self, whole: float) -> Profile:
        """Return the profile divided by the mass of the whole law."""
        by_sign = tuple((loss, mass / whole) for loss, mass in self.by_sign)
        return Profile(self.v, self.density / whole, self.mass / whole, by_sign)

    def variance(self, rare: float) -> float:
        """Return the variance of the law without its largest losses of mass `rare`, in floats."""
        kept = self.v <= self.upper_quantile(rare)
        whole = mean = square = 0.0
        for loss, mass in self.by_sign:
            whole += float(mass[kept].sum())
            mean += float(mass[kept] @ loss[kept])
            square += float(mass[kept] @ loss[kept] ** 2)
        return max(square - mean * mean / whole, 0.0) if whole > 0 else 0.0

    def upper_quantile(self, rare: float) -> float:
        """Return the v above which at most the mass `rare` lies."""
        above = np.cumsum(self.mass[::-1])[::-1]
        return float(self.v[max(int(np.argmax(above <= rare)), 1)] if above[-1] <= rare else self.v[-1])


def tilted_profile(round_type: TiltedType, law: DensityLaw, lam: float, exponent: float) -> Profile:
    """Return the tilted law of one round type on a grid, in floats."""
    low, high = law.span(lam, round_type.log_mass - exponent - math.log(round_type.times) - 6)
    v = np.linspace(low, high, DECAY.profile_points)
    L, log_f = law.log_tilted(v, lam)
    slope = np.abs(np.gradient(L, v))
    density, mass = np.zeros_like(v), np.zeros_like(v)
    parts: list[tuple[Array, Array]] = []
    with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
        for sign, each in log_f.items():
            f = np.exp(each - round_type.log_mass)
            density += f / slope
            parts.append((sign * L, f * (v[1] - v[0])))
            mass += parts[-1][1]
    return Profile(v, np.where(np.isfinite(density), density, np.inf), mass, tuple(parts))


# ---- Lemmas S1 and S2: the window, and intervals that cover what lies between


def _build_window(
    round_type: TiltedType, profile: Profile | None, lam: float, top: float, exponent: float, cut: float
) -> _Window:
    """Return the law without its largest losses as points, accurate up to the frequency `top`."""
    from flint import arb

    if round_type.law is None or profile is None:
        rule = round_type.atoms or Rule([], [], arb(0))
    else:
        rare = max(omitted_mass(exponent, round_type.times), cut)
        # all v but the largest, which have at most the mass `rare`
        edges = [float(profile.v[0]), profile.upper_quantile(rare)]
        goal = round_type.log_mass + math.log(1e-3 * min(1.0, exponent / round_type.times)) - 4
        rule = round_type.law.rule(lam, top, goal, edges, beyond=False)
    centre = arb(_centre(rule))
    total, second = arb(0), arb(0)
    points, floats = [], []
    for loss, weight in rule.points():
        share = weight / round_type.mass
        points.append((loss, share))
        floats.append((float(loss.mid()), float(share.mid())))
        total += share
        second += share * (loss - centre) ** 2
    error = rule.error / round_type.mass
    least, most = arb((total - error).lower()), arb((total + error).upper())
    for panel in rule.panels:
        second += panel.square_error * (1 + centre * centre) / round_type.mass
    # s_A^2 = a INT_A (L - c)^2
    spread = arb((most * second).upper()).sqrt().upper()
    losses, weights = np.array(floats).reshape(-1, 2).T
    seen = weights > DECAY.negligible_weight
    numbers = float(least), float(spread)
    return _Window(
        round_type.times, points, arb(error.upper()), least, most, spread, losses[seen], weights[seen], numbers
    )


def omitted_mass(exponent: float, times: int) -> float:
    """Return the mass that a window may leave out and still prove the decay."""
    return min(DECAY.omitted_rounds / times, DECAY.omitted_share * math.exp(-exponent / times))


def _centre(rule: Rule) -> float:
    """Return the mean loss of the points, in floats; every centre is valid in Lemma S2."""
    total = moment = 0.0
    for loss, weight in rule.points():
        total += float(weight.mid())
        moment += float(weight.mid()) * float(loss.mid())
    return moment / total if total > 0 else 0.0


def _cover_downwards(windows: list[_Window], last: float, exponent: float, gauss: Fraction, step: float) -> float:
    """Cover frequencies downwards from `last` with intervals on which |phi|^k <= e^-exponent.

    Returns the lowest end.
    """
    top, slow = last, float(gauss)
    for _ in range(DECAY.most_intervals):
        halves = np.minimum(DECAY.interval_halves * top, top / 2)
        centres = top - halves
        found = np.zeros_like(centres)
        for window in windows:
            found = found + window.times * window.estimates(centres, halves)
        found = found - slow * (centres - halves) ** 2
        passing = np.flatnonzero(found <= -exponent * (1 + DECAY.margin) - DECAY.margin)
        if not passing.size or 2 * halves[passing[0]] < DECAY.fewest_frequencies * step:
            return top
        for i in passing[: DECAY.ball_tries]:
            half, centre = BALLS.number(float(halves[i])), BALLS.number(float(centres[i]))
            if _decay_is_proved(windows, centre, half, exponent, gauss):
                break
        else:
            return top
        # the interval that balls have covered reaches down to centre - half, and up to at least the one before
        below = float((centre - half).upper())
        top = math.nextafter(below, math.inf)
    raise DecayTooSlow("the decay takes too many intervals")


def _decay_is_proved(windows: list[_Window], centre: Any, half: Any, exponent: float, gauss: Fraction) -> bool:
    """Return True if balls prove |phi|^k <= e^-exponent on the whole interval."""
    from flint import arb

    half = half * (1 + arb(2) ** -30)  # what the rounding of the centre may have left between two intervals
    least = centre - half
    total = -BALLS.number(gauss) * arb(least.lower()) ** 2 if least > 0 else arb(0)
    for window in windows:
        bound = window.bound(centre, half)
        if bound is not None and bound < 0:
            total += window.times * bound
    return bool(total <= -exponent)
