"""The numbers behind a picture of one run.

Epsilon against delta and rounds, its Rényi divergences, the best attack.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import reduce
from typing import Any

import numpy as np

from cumulant.bounds.table import BOUNDS
from cumulant.domains import Exact
from cumulant.errors import HypothesisError
from cumulant.mechanisms.mechanism import Expression
from cumulant.mechanisms.mechanism import run as run_of
from cumulant.numerics.arithmetic import Array

ACCURACY = 0.01
"""Part of epsilon that the grid of the exact layer may cost: less than a line is wide."""

_ENDS = 11
"""Intervals that a panel shows; convention."""

_ALONG = 81
"""Points of a curve; convention."""

_SHOWN = ("theorem9", "best", "lower")
"""The bounds that matter to most: that of the paper, what is proved here, and what no bound can undercut."""

_LARGEST_ORDER = 1e5
"""Larger used orders are not marked: the panel would be empty up to them. Convention."""

_PAST_THE_ORDER = 4.0
"""The panel of divergences ends at so many times the used order; convention."""

_LEAST_ORDERS = 7.0
"""The panel shows orders up to 1 plus this at least; convention."""

_ABOVE_THE_ORDER = 20.0
"""The panel ends at so many times the divergence of the used order; larger ones prove nothing. Convention."""

_MOST_TIMES = 1000
"""Repetitions of a run that has no rounds of its own; convention."""


@dataclass(frozen=True, slots=True, eq=False)
class Curve:
    """One line: the coordinates of its points."""

    x: Array
    y: Array


@dataclass(frozen=True, slots=True, eq=False)
class Chart:
    """One panel: its axes and its curves by name.

    `upper` and `lower` are the ends of an interval.
    """

    title: str
    across: str
    up: str
    curves: Mapping[str, Curve]
    logarithmic: bool = field(default=True, kw_only=True)  # the vertical axis; the horizontal one always is
    marked: tuple[float, float] | None = field(default=None, kw_only=True)  # the point that was asked about
    mark_text: str = field(default="", kw_only=True)  # the label of that point; empty: epsilon
    ceiling: float | None = field(default=None, kw_only=True)  # where the vertical axis ends; None: with the curves

    def to_dict(self) -> dict[str, Any]:
        """Return the drawn numbers as JSON values; infinity is the text "inf"."""
        return {
            "title": self.title,
            "x": self.across,
            "y": self.up,
            "curves": {name: {"x": _plain(c.x), "y": _plain(c.y)} for name, c in self.curves.items()},
            "marked": None if self.marked is None else _plain(np.array(self.marked)),
        }


def by_delta(run: Expression, delta: Exact, bounds: str = "best") -> Chart:
    """Return epsilon against delta, from far below this one up to 0.1.

    >>> import cumulant as cm
    >>> chart = by_delta(cm.PureDP(1), Exact("1e-5"))
    >>> list(chart.curves), float(chart.curves["rdp"].y[0])
    (['rdp', 'upper', 'lower'], 1.0)
    """
    least = min(max(float(delta) * 1e-4, 1e-300), 1e-2) if delta > 0 else 1e-12
    deltas = np.geomspace(least, 0.1, _ALONG)
    places = np.unique(np.append(np.geomspace(least, 0.1, _ENDS), float(delta) if 0 < delta < 1 else 0.1))
    curves = {"rdp": Curve(deltas, run.epsilon(deltas.tolist(), method="rdp"))}
    ends = [_ends(run, each) for each in places.tolist()]
    both = _interval(places, ends)
    at = float(delta)
    marked = (at, float(np.interp(at, places, both["upper"].y))) if 0 < at < 1 else None
    return Chart("ε against δ", "δ", "ε, nats", curves | both, logarithmic=False, marked=marked)


def by_rounds(run: Expression, delta: Exact, bounds: str = "best") -> Chart:
    """Return epsilon at this delta against the number of rounds, up to those of the run.

    Where the terms of a run have a common number of repetitions, that many rounds are drawn; any other run is repeated.

    >>> import cumulant as cm
    >>> chart = by_rounds(cm.PureDP(1) * 100 + cm.Gaussian(sigma=9) * 200, Exact("1e-5"))
    >>> chart.across, float(chart.curves["rdp"].x[-1])
    ('rounds of PureDP(epsilon=1) + Gaussian(sigma=9) * 2', 100.0)
    """
    most = reduce(math.gcd, run.terms.values())
    once = run_of({mechanism: times // most for mechanism, times in run.terms.items()})
    most = most if most > 1 else _MOST_TIMES
    counts, places = (np.unique(np.geomspace(1, most, number).round()) for number in (_ALONG, _ENDS))
    whole = [int(k) for k in counts]
    curves = {"rdp": Curve(counts, once.epsilon_over(whole, delta=delta, method="rdp"))}
    ends = [_ends(once * int(k), delta) for k in places]
    return Chart(
        f"ε at δ = {delta} against rounds", f"rounds of {_short(once)}", "ε, nats", curves | _interval(places, ends)
    )


def by_order(run: Expression, delta: Exact, bounds: str = "best") -> Chart:
    """Return the Rényi divergence against the order by three bounds: best, paper's, lower.

    On request by all bounds that apply.

    Of `bounds="all"` those are shown that apply and say something of their own.

    >>> import cumulant as cm
    >>> run = cm.Laplace(scale=2) @ cm.WithoutReplacement(rate=0.001)
    >>> sorted(by_order(run, Exact("1e-5")).curves)
    ['best', 'lower', 'theorem9']
    >>> chart = by_order(run, Exact("1e-5"), "all")
    >>> {"theorem9", "theorem27"} <= set(chart.curves), "gaussian-ball" in chart.curves
    (True, False)
    """
    order = run.guarantee(delta=delta, method="rdp").evidence.order
    used = order is not None and 1 < order < _LARGEST_ORDER
    top = max(_PAST_THE_ORDER * (order - 1), _LEAST_ORDERS) if used and order is not None else 64.0
    orders = 1 + np.geomspace(0.1, top, _ALONG)
    if used and order is not None:  # so that the marked point lies on the drawn line
        orders = np.unique(np.append(orders, order))
    best = run.rdp(orders.tolist())
    curves = {}
    for name in BOUNDS if bounds == "all" else _SHOWN:
        try:
            found = run.rdp(orders.tolist(), bound=name)
        except HypothesisError:
            continue
        if name in ("best", "lower") or not np.allclose(found, best, rtol=1e-9, atol=0.0):
            curves[name] = Curve(orders, found)
    if not used or order is None:
        return Chart("Rényi divergence", "order α", "ε(α), nats", curves)
    value = float(np.asarray(run.rdp(order)))
    return Chart(
        "Rényi divergence",
        "order α",
        "ε(α), nats",
        curves,
        marked=(order, value) if 0 < value < math.inf else None,
        mark_text=f"order {order:.4g} is used",
        ceiling=_ABOVE_THE_ORDER * value if _ABOVE_THE_ORDER * value < float(np.max(best)) else None,
    )


def by_false_alarms(run: Expression, delta: Exact, bounds: str = "best") -> Chart:
    """Return the true positive rate of the best attack against its false positive rate.

    >>> import cumulant as cm
    >>> attack = by_false_alarms(cm.Gaussian(sigma=1), Exact("1e-5")).curves["attack"]
    >>> bool((attack.y >= attack.x).all())
    True
    """
    found = run.trade_off()
    rates = found.false_positive_rate
    curves = {"attack": Curve(rates, found.true_positive_rate), "guess": Curve(rates, rates)}
    title = f"best attack; advantage at most {math.ceil(1000 * found.advantage) / 10:g} %"
    return Chart(title, "false positive rate", "true positive rate", curves)


CHARTS: dict[str, Callable[[Expression, Exact, str], Chart]] = {
    "epsilon": by_delta,
    "rounds": by_rounds,
    "rdp": by_order,
    "trade-off": by_false_alarms,
}
"""The charts of a run, by name."""


CLAIM = "claim"
"""The name of the curve of a claimed epsilon."""

CLAIMED = ("epsilon", "rounds")
"""Panels whose vertical axis is epsilon, so that a claim is a line in them."""


def with_claim(name: str, chart: Chart, claim: Exact | None) -> Chart:
    """Return the panel of this name with a line at the claimed epsilon, if it shows epsilons and there is a claim.

    >>> import cumulant as cm
    >>> chart = with_claim("epsilon", by_delta(cm.PureDP(1), Exact("1e-5")), Exact("0.5"))
    >>> chart.curves["claim"].y.tolist()
    [0.5, 0.5]
    """
    if claim is None or name not in CLAIMED:
        return chart
    ends = np.array([chart.curves["rdp"].x[0], chart.curves["rdp"].x[-1]])
    return replace(chart, curves={**chart.curves, CLAIM: Curve(ends, np.full(2, float(claim)))})


def _ends(run: Expression, delta: Exact | float) -> tuple[float, float]:
    """Return the two ends of epsilon; the lower one is NaN if none is known, as where it is 0 below a positive upper end."""
    found = run.guarantee(delta=delta, accuracy=ACCURACY)
    return found.epsilon, math.nan if found.lower is None or found.lower <= 0 < found.epsilon else found.lower


def _interval(places: Array, ends: list[tuple[float, float]]) -> dict[str, Curve]:
    upper, lower = np.array(ends).T
    both = {"upper": Curve(places, upper)}
    known = ~np.isnan(lower)
    return both | {"lower": Curve(places[known], lower[known])} if known.any() else both


def _short(run: Expression, longest: int = 110) -> str:
    text = str(run)
    return text if len(text) <= longest else text[: longest - 1] + "…"


def _plain(values: Array) -> list[float | str]:
    return ["inf" if math.isinf(value) else value for value in values.tolist()]
