"""Silence: a frequency beyond which |M(lam + iu)| <= M(lam) e^-b, proved in balls (docs/line.md, Lemmas S1 to S3).

Floats choose the window, the last check point and the intervals; balls decide about each.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from cumulant.numerics.arithmetic import BALLS, Array
from cumulant.pairs.transform import Mixed, Rule

_CUTS = (0.0, 1e-4, 1e-3, 0.01, 0.05, 0.1, 0.2, 0.3)
"""Parts of the law that the densest and the rarest end of the window of Lemma S3 may leave out."""

_RARE, _SPARE = 4.0, 0.1
_FEWEST = 5
"""An interval that holds fewer frequencies is summed instead."""

_MARGIN = 1e-6
_MOST_INTERVALS = 400
_STEPS = 0.5 * 0.75 ** np.arange(30)


class Loud(Exception):
    """No decay is shown, or showing it takes too long: another way must answer."""


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind of round on the line: its law, how often it runs, and the mass M(lam) of its tilted law."""

    law: Mixed
    times: int
    mass: Any
    log_mass: float


@dataclass(frozen=True, slots=True)
class _Window:
    """The law of one kind where the rarest part is left out (Lemma S1), for Lemma S2; and the constants of Lemma S3."""

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
        """log of a bound of |phi| on [v - h, v + h]; None where the lemma says nothing."""
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

    def estimates(self, frequencies: Array, halves: Array) -> Array:
        """The same in floats."""
        a, s = self.numbers
        f = np.abs(np.exp(1j * frequencies[:, None] * self.losses) @ self.weights)
        r, move = np.sqrt(np.maximum(a * a - f * f, 0.0)), s * halves
        bound = 1 - a + np.sqrt(np.maximum(f * f + 2 * move * r - move * move, 0.0))
        return np.where((r > move) & (f < a), np.log(np.minimum(bound, 1.0)), 0.0)


def silent_from(kinds: Sequence[Kind], lam: float, exponent: float, gauss: Fraction, step: float) -> float:
    """A frequency u with |M(lam + iv)| <= M(lam) e^-exponent for all v >= u; the Gaussians alone give e^{-gauss v^2}.

    `step` is the distance of the frequencies that are summed anyway.
    """
    alone = math.inf
    if gauss > 0:
        alone = math.sqrt(exponent / float(gauss)) * (1 + 1e-9) if gauss < 10**300 else math.inf
        if not BALLS.number(gauss) * BALLS.number(alone) ** 2 >= exponent:
            alone = math.inf
    windows, last = _last(kinds, lam, exponent, gauss, alone)
    if not windows:
        return last
    return _covered(windows, last, exponent, gauss, step)


# ---- Lemma S3: beyond the last check point


def _last(
    kinds: Sequence[Kind], lam: float, exponent: float, gauss: Fraction, alone: float
) -> tuple[list[_Window], float]:
    """The windows of all kinds, and the frequency beyond which Lemma S3 and the Gaussians are enough."""
    chosen, slow = [_chosen(kind, lam, exponent) for kind in kinds], float(gauss)
    variations = []
    for kind, (low, high, _) in zip(kinds, chosen, strict=True):
        try:
            variations.append(kind.law.variation(lam, low, high) / kind.mass)
        except OverflowError:
            variations.append(None)
    known = [
        (kind.times, float(variation.upper()), 1 - share)
        for kind, variation, (_, _, share) in zip(kinds, variations, chosen, strict=True)
        if variation is not None and variation.is_finite()
    ]

    def log_bound(u: float) -> float:
        total = sum(times * math.log(min(1.0, rest + v / u)) for times, v, rest in known)
        return total - slow * u * u

    last = _falling(log_bound, -exponent * (1 + 1e-9) - _MARGIN)
    if alone <= last:
        if alone == math.inf:
            raise Loud("the law of the losses has no density that fades out")
        if not kinds:
            return [], alone
        last = alone
    windows = [_window(kind, lam, last, exponent, place) for kind, place in zip(kinds, chosen, strict=True)]
    if last != alone:
        total = -BALLS.number(gauss) * BALLS.number(last) ** 2
        for kind, variation, (window, inner) in zip(kinds, variations, windows, strict=True):
            if variation is None or not variation.is_finite():
                continue
            part = 1 - inner + variation / BALLS.number(last)
            if part < 1:
                total += kind.times * part.log()
        if not total <= -exponent:
            raise Loud("the last check point is not far enough")
    return [window for window, _ in windows], last


def _falling(log_bound: Any, target: float) -> float:
    """The least u, up to a per mille, from which a falling function is at most the target."""
    low, high = 1e-12, 1e-12
    while not log_bound(high) <= target:
        low, high = high, 8 * high
        if high > 1e15:
            return math.inf
    while high > 1.001 * low:
        middle = math.sqrt(low * high)
        low, high = (low, middle) if log_bound(middle) <= target else (middle, high)
    return high


def _chosen(kind: Kind, lam: float, exponent: float) -> tuple[float, float, float]:
    """Both ends of the window of Lemma S3 and its share of the tilted law, in floats: the one that fades out first."""
    v, L, density, mass = _profile(kind, lam, exponent)
    cumulated = np.cumsum(mass)
    enough = math.exp(-exponent / kind.times)
    best = (math.inf, float(v[0]), float(v[-1]), float(cumulated[-1]))
    for left in _CUTS:
        for right in _CUTS:
            i = int(np.searchsorted(cumulated, left * cumulated[-1]))
            j = int(np.searchsorted(cumulated, (1 - right) * cumulated[-1]))
            if right == 0:
                j = len(v) - 1
            if j <= i + 1:
                continue
            share = float(cumulated[j] - cumulated[i])
            room = enough - (1 - share)
            if room > 0 and (found := float(np.max(density[i : j + 1])) / room) < best[0]:
                best = (found, float(v[i]), float(v[j]), share)
    return best[1:]


def _profile(kind: Kind, lam: float, exponent: float) -> tuple[Array, Array, Array, Array]:
    """On a fine grid of v: L, the density of the tilted loss, and the tilted mass up to each point's cell."""
    low, high = kind.law.span(lam, kind.log_mass - exponent - math.log(kind.times) - 6)
    v = np.linspace(low, high, 2001)
    L, log_f = kind.law.log_tilted(v, lam)
    slope = np.abs(np.gradient(L, v))
    density, mass = np.zeros_like(v), np.zeros_like(v)
    with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
        for each in log_f.values():
            f = np.exp(each - kind.log_mass)
            density += f / slope
            mass += f * (v[1] - v[0])
    density = np.where(np.isfinite(density), density, np.inf)
    return v, L, density, mass


# ---- Lemmas S1 and S2: the window, and intervals that cover what lies between


def _window(
    kind: Kind, lam: float, top: float, exponent: float, place: tuple[float, float, float]
) -> tuple[_Window, Any]:
    """The window of Lemma S2 as points, and the mass, from below, of the part that Lemma S3 uses."""
    from flint import arb

    v, _, _, mass = _profile(kind, lam, exponent)
    rare = min(_RARE / kind.times, _SPARE * math.exp(-exponent / kind.times))
    above = np.cumsum(mass[::-1])[::-1]
    kept = int(np.argmax(above <= rare)) if (above <= rare).any() else len(v) - 1
    high = float(v[max(kept, 1)])
    high = v[-1] if kept == 0 else max(high, place[1])
    edges = sorted({float(v[0]), place[0], place[1], float(high)})
    goal = kind.log_mass + math.log(1e-3 * min(1.0, exponent / kind.times)) - 4
    rule = kind.law.rule(lam, top, goal, edges, beyond=False)
    part = _inside(rule, place[0], place[1]) / kind.mass
    centre = arb(_centre(rule))
    total, second = arb(0), arb(0)
    points = []
    for loss, weight in rule.points():
        share = weight / kind.mass
        points.append((loss, share))
        total += share
        second += share * (loss - centre) ** 2
    error = rule.error / kind.mass
    least, most = arb((total - error).lower()), arb((total + error).upper())
    for panel in rule.panels:
        second += panel.square_error * (1 + centre * centre) / kind.mass
    spread = arb((most * arb(second.upper())).upper()).sqrt()
    losses = np.array([float(loss.mid()) for loss, _ in points])
    weights = np.array([float(weight.mid()) for _, weight in points])
    numbers = float(least.mid()), float(spread.upper())
    return _Window(
        kind.times, points, arb(error.upper()), least, most, arb(spread.upper()), losses, weights, numbers
    ), arb(part.lower())


def _inside(rule: Rule, low: float, high: float) -> Any:
    """The mass of the panels between two of its edges, from below: atoms are not in it."""
    from flint import arb

    total = arb(0)
    for panel in rule.panels:
        if panel.low >= low and panel.high <= high:
            total += sum(panel.plus, start=arb(0)) + sum(panel.minus, start=arb(0)) - panel.error
    return total


def _centre(rule: Rule) -> float:
    total = moment = 0.0
    for loss, weight in rule.points():
        total += float(weight.mid())
        moment += float(weight.mid()) * float(loss.mid())
    return moment / total if total > 0 else 0.0


def _covered(windows: list[_Window], last: float, exponent: float, gauss: Fraction, step: float) -> float:
    """Intervals downwards from the last check point, on each of which |phi|^k is at most e^-exponent."""
    top, slow = last, float(gauss)
    for _ in range(_MOST_INTERVALS):
        halves = np.minimum(_STEPS * top, top / 2)
        centres = top - halves
        found = sum(window.times * window.estimates(centres, halves) for window in windows)
        found = found - slow * (centres - halves) ** 2
        passing = np.flatnonzero(found <= -exponent * (1 + _MARGIN) - _MARGIN)
        if not passing.size or 2 * halves[passing[0]] < _FEWEST * step:
            return top
        for i in passing[:3]:
            half, centre = BALLS.number(float(halves[i])), BALLS.number(float(centres[i]))
            if _hushed(windows, centre, half, exponent, gauss):
                break
        else:
            return top
        # the interval that balls have covered reaches down to centre - half, and up to at least the one before
        below = float((centre - half).upper())
        top = math.nextafter(below, math.inf)
    raise Loud("silence takes too many check points")


def _hushed(windows: list[_Window], centre: Any, half: Any, exponent: float, gauss: Fraction) -> bool:
    from flint import arb

    half = half * (1 + arb(2) ** -30)  # what the rounding of the centre may have left between two intervals
    least = centre - half
    total = -BALLS.number(gauss) * arb(least.lower()) ** 2 if least > 0 else arb(0)
    for window in windows:
        bound = window.bound(centre, half)
        if bound is not None and bound < 0:
            total += window.times * bound
    return bool(total <= -exponent)
