"""The law of one round by equidistant points, if its density is analytic in a strip.

By Lemma T such a rule takes far fewer points than panels, which cannot use that the integrand is smooth at their ends:
what the trapezoid sum misses falls like e^{-2 pi d/h}, h the step and d the height of a strip in which everything is
analytic (docs/line.md, section 3).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import Any

import numpy as np

from cumulant.losses.float_rule import LARGEST, MARGIN, FloatRule, float_rule, weigh_points
from cumulant.losses.transform import ON_BALLS, ON_FLOATS, DensityLaw, Mixed, Panel, Rule
from cumulant.numerics.arithmetic import BALLS
from cumulant.numerics.enclosure import Enclosure

WIDEST_ANGLE = 0.95 * math.pi
"""Largest t d, the angle of w; derived: at pi w may be 0, and at 0.95 pi |w|^2 keeps all but two of its digits
(docs/line.md, section 6)."""

TRIED_HEIGHTS = np.geomspace(0.15, 1.0, 10)[:, None]
"""Heights of strips that are tried, as parts of the largest one."""


@dataclass(frozen=True, slots=True)
class StripSettings:
    """Tuning constants of the strip rule.

    Floats choose the strip, balls bound its error, so validity does not depend on them.
    """

    highest: float = 30.0
    """Largest height d of a strip, in units of v; chosen by hand: e^{d^2/2} grows faster than a wider strip gains."""

    cells: int = 12
    """Cells of the span on which the integrand along the strip is bounded; more give a smaller bound."""

    few_points: int = 160
    """Points up to which panels, of 32 nodes each, are not tried; five panels would take as many."""

    most_points: int = 4000
    """Points of a rule; beyond it the panels are asked."""


SETTINGS = StripSettings()
"""The settings in force; a test may replace them."""


@dataclass(frozen=True, slots=True)
class Strip:
    """Equidistant points from low to high, both included, and the height d of the strip."""

    low: float
    high: float
    steps: int
    height: float


def whole_rule(law: DensityLaw, lam: float, top: float, log_error: float) -> Rule:
    """Return the law tilted by e^{lam L} as points, good for all |u| <= top, in balls.

    The rule is good up to about e^log_error.
    """
    span = law.span(lam, log_error)
    smooth = law.strip_law()
    strip = None if smooth is None else _strip(smooth, lam, top, log_error, span)
    if smooth is None or strip is None:
        return law.rule(lam, top, log_error, list(span))
    return strip_rule(smooth, lam, top, strip)


@lru_cache(maxsize=1024)
def float_whole_rule(law: DensityLaw, lam: float, top: float, log_error: float) -> FloatRule:
    """Return the law tilted by e^{lam L} as points, good for all |u| <= top, in floats.

    The rule is good up to about e^log_error, and remembered.
    """
    span = law.span(lam, log_error)
    smooth = law.strip_law()
    strip = None if smooth is None else _strip(smooth, lam, top, log_error, span)
    if smooth is None or strip is None:
        return float_rule(law, lam, top, log_error, span)
    return float_strip_rule(smooth, lam, top, strip)


# ---- Lemma T: an error for all |u| <= top


class _Along:
    """Bounds of |q0 w^{1+z}| or |q0 w^-z| along v + i height for all |u| <= top, by logarithms."""

    def __init__(self, law: Mixed, lam: Any, top: Any, height: Any, on: Any) -> None:
        (self.sign,) = law.signs
        self.base, self.on, self.lam, self.top = law.base, on, lam, top
        self.t, self.g, self.kept = on.number(law.base.shift), on.number(law.rate), on.number(1 - law.rate)
        self.angle = self.t * height
        self.sine, self.cosine, self.least = on.sin(self.angle), on.cos(self.angle), on.cos(self.angle / 2)
        self.growth = law.base.growth(height, on)

    def log_integral(self, low: Any, high: Any) -> Any:
        """Return log of a bound of the integral between two v."""
        on, kept, half = self.on, self.kept, (high - low) / 2
        left, right = self.g * on.exp(self.t * low), self.g * on.exp(self.t * high)
        # |w|^2 = A^2 + 2 A B cos + B^2 is convex in B = g e^x: at most its larger end
        at_left = kept * kept + 2 * kept * left * self.cosine + left * left
        at_right = kept * kept + 2 * kept * right * self.cosine + right * right
        if self.sign > 0:
            log_power = (self.lam + 1) * on.log(on.maximum(at_left, at_right)) / 2
        else:
            # |w| >= (A + B) cos(angle/2), and |w| >= A + B cos(angle)
            real = kept + on.minimum(left * self.cosine, right * self.cosine)
            log_power = -self.lam * on.log(on.maximum((kept + left) * self.least, real))
        # the argument of w grows with B
        turn = 2 * on.atan(right * self.sine / (on.exp(on.log(at_right) / 2) + kept + right * self.cosine))
        log_q = self.base.log_top((low + high) / 2, half, 0 * half, on) + self.growth
        return log_q + log_power + self.top * turn + on.log(2 * half)

    def lift(self) -> Any:
        """Return log of the factor by which the ends contribute more at this height than at 0."""
        lift = self.growth + self.top * self.angle
        return lift if self.sign > 0 else lift - self.lam * self.on.log(self.least)


@np.errstate(all="ignore")
def _strip(law: Mixed, lam: float, top: float, log_error: float, span: tuple[float, float]) -> Strip | None:
    """Choose the strip that takes the fewest points; None if panels take fewer.

    The caller then uses panels.
    """
    highest = min(WIDEST_ANGLE / float(law.base.shift), math.sqrt(2 * abs(log_error)) + 4, SETTINGS.highest)
    heights = highest * TRIED_HEIGHTS
    sizes = _sizes(law, lam, top, span, heights)
    lift = _Along(law, lam, top, heights[:, 0], ON_FLOATS).lift() + log_error
    step = 2 * math.pi * heights[:, 0] / (np.logaddexp(sizes, lift) + math.log(2) - log_error)
    step = np.where(np.isfinite(step) & (step > 0), step, 0.0)
    best = int(np.argmax(step))
    if not step[best] * SETTINGS.most_points > span[1] - span[0]:
        return None
    steps = max(math.ceil((span[1] - span[0]) / float(step[best])), 4)
    if steps > SETTINGS.few_points:
        try:
            if law.panels(list(span), lam, top, log_error).points < steps:
                return None
        except OverflowError:
            pass
    return Strip(span[0], span[1], steps, float(heights[best, 0]))


def _sizes(law: Mixed, lam: float, top: float, span: tuple[float, float], heights: Any) -> Any:
    """Return log of the integral along each height between the ends, in floats."""
    edges = np.linspace(*span, SETTINGS.cells + 1)
    return np.logaddexp.reduce(_Along(law, lam, top, heights, ON_FLOATS).log_integral(edges[:-1], edges[1:]), axis=1)


def strip_rule(law: Mixed, lam: float, top: float, strip: Strip) -> Rule:
    """Return the points of a strip with their weights, in balls."""
    from flint import arb

    exact, height, (sign,) = BALLS.number(lam), BALLS.number(strip.height), law.signs
    t, g = BALLS.number(law.base.shift), BALLS.number(law.rate)
    low, step = arb(strip.low), (arb(strip.high) - arb(strip.low)) / strip.steps
    density, losses, weights = law.base.density(ON_BALLS), [], []
    power = 1 + exact if sign > 0 else -exact
    for i in range(strip.steps + 1):
        v = low + i * step
        L = (g * (t * v).expm1()).log1p()
        losses.append(L)
        weights.append(step * (density(v) + power * L).exp())
    ends = law.beyond(exact, [strip.low, strip.high])
    # Lemma T: 2 J / (e^{2 pi d/h} - 1), J along v + id
    edges = np.linspace(strip.low, strip.high, SETTINGS.cells + 1).tolist()
    along = _Along(law, exact, arb(top), height, ON_BALLS)
    size = ends * along.lift().exp()
    for a, b in pairwise(edges):
        size += along.log_integral(arb(a), arb(b)).exp()
    error = (
        arb((2 * size / (2 * arb.pi() * height / step).expm1()).upper())
        if t * height < WIDEST_ANGLE + 0.01
        else arb("inf")
    )
    plus, minus = (weights, []) if sign > 0 else ([], weights)
    whole = Panel(strip.low, strip.high, losses, plus, minus, error, arb("inf"))
    return Rule([whole], law.tilted_atoms(exact), ends)


@np.errstate(all="ignore")
def float_strip_rule(law: Mixed, lam: float, top: float, strip: Strip) -> FloatRule:
    """Return the points of a strip with their weights, in floats with radii."""
    step = (Enclosure(strip.high) - strip.low) / float(strip.steps)
    v = Enclosure(strip.low) + step * np.arange(strip.steps + 1.0)
    span, height = (strip.low, strip.high), strip.height
    lift = float(_Along(law, lam, top, height, ON_FLOATS).lift())
    size = float(_sizes(law, lam, top, span, np.array([[height]]))[0])
    turns = 2 * math.pi * height / float(step.mid) * (1 - MARGIN)
    if not (
        max(abs(lift), abs(size), turns) <= LARGEST
        and float(law.base.shift) * height < WIDEST_ANGLE + 0.01
        and turns > 1
    ):
        raise OverflowError("the numbers of one round are too large for floats")

    def errors(scale: float, ends: float) -> tuple[float, float]:
        # J and what lies beyond the ends, e^-scale of both; e^{2 pi d/h} - 1 >= e^{2 pi d/h} / 2
        missed = math.exp(size - scale - turns + MARGIN) + ends * math.exp(lift - turns + MARGIN)
        return 4 * missed * (1 + MARGIN), math.inf

    return weigh_points(law, lam, top, v, step, span, True, errors)
