"""The paper's claims about Figure 1, and about the bounds that it shows."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from cumulant.paper.comparisons import additive_gap
from cumulant.paper.figures.claim import Claim, each, judged, label, slope, split
from cumulant.paper.figures.series import Table
from cumulant.paper.figures.settings import DELTA, POPULATION, RATE, gaussian

_CONSTANT = 6.0
_PANEL_CONSTANT = 20.0
"""The ratio of two bounds that still counts as a constant factor on the panels that the paper draws."""
_CAPTION_SIGMA = 0.5
"""The sigma of panel d in the captions; Section 4, which states the levels, says 1."""
_CLOSE = 0.05
_GROWING = ("10", "20")


def claims(first: Sequence[Table]) -> tuple[Claim, ...]:
    """Judge every claim about the divergence of one round on the tables of Figure 1."""
    noisy, bounded = split(first)
    return (
        _base_epsilon(first),
        _levels(first),
        _constant_factor(first),
        _quadratic_constant(noisy),
        _additive_gap(first),
        _large_orders(noisy),
        _transition(noisy),
        _past_the_transition(noisy),
        _linear_then_flat(bounded),
        _flat_level(bounded),
        _bad_data(noisy),
        _good_data(noisy),
        _population_times_smaller(noisy),
        _earlier_bound(noisy),
    )


def _base_epsilon(first: Sequence[Table]) -> Claim:
    found = [table.panel.mechanism.epsilon(DELTA) for table in first]
    said = [0.5 if table.panel.letter in "abc" else 2.0 for table in first]
    return Claim(
        "Captions: the base mechanism has ε ≈ 0.5 in the top row and ε ≈ 2 in the bottom row",
        f"the smallest ε at δ = 1e-8: {each(first, found)}",
        "within a quarter of what is said",
        judged(first, [abs(x / y - 1) <= 0.25 for x, y in zip(found, said, strict=True)]),
    )


def _levels(first: Sequence[Table]) -> Claim:
    """Judge the Gaussian levels, which Section 4 states by the classical calibration.

    At sigma 5 and 1 (E-21, E-23).
    """
    first = [table for table in first if table.panel.sigma != _CAPTION_SIGMA]
    classical = math.sqrt(2 * math.log(1.25 / DELTA))
    said = {"a": classical / 5, "b": 0.5, "c": math.log(1.5), "e": 2.0, "f": math.log(9)}
    stated = [said.get(table.panel.letter, classical / (table.panel.sigma or 1)) for table in first]
    true = [table.panel.mechanism.epsilon(DELTA) for table in first]
    return Claim(
        "Section 4: the mechanisms are (ε, δ)-DP with ε = √(2 log(1.25/δ))/σ, 1/b and log(p/(1−p))",
        f"stated at δ = 1e-8: {each(first, stated)}; least that is true: {each(first, true)}",
        "the stated ε is at least the true one (rounded to 4 digits)",
        judged(first, [x >= y * (1 - 5e-4) for x, y in zip(stated, true, strict=True)]),
    )


def _constant_factor(first: Sequence[Table]) -> Claim:
    def worst(table: Table, column: str) -> float:
        return float(np.max(table.columns[column] / table.columns["lower"]))

    orders = np.arange(2, 1001).tolist()
    growing: dict[str, list[float]] = {"theorem9": [], "theorem27-min": []}
    for sigma in _GROWING:
        once = gaussian("a", sigma).once
        lower = once.rdp(orders, bound="lower")
        for name, found in growing.items():
            found.append(float(np.max(once.rdp(orders, bound=name) / lower)))
    literal, tight = ([worst(table, column) for table in first] for column in ("upper", "theorem27"))
    more = {name: f"{found[0]:.4g} at σ = 10, {found[1]:.4g} at σ = 20" for name, found in growing.items()}
    return Claim(
        "Upper and lower bound match up to a multiplicative constant at every order",
        f"largest upper/lower with Theorem 9: {each(first, literal)}; {more['theorem9']} (orders to 1000): it grows with σ. "
        f"With Theorem 27, term by term: {each(first, tight)}; {more['theorem27-min']}",
        f"largest ratio on the panels below {_PANEL_CONSTANT:g}; uniformly in σ: below {_CONSTANT:g}, at σ = 10 and 20 too",
        {
            f"on the panels ({max(literal):.1f})": max(*tight, *literal) < _PANEL_CONSTANT,
            "Theorem 27 uniformly in σ": max(*tight, *growing["theorem27-min"]) < _CONSTANT,
            "Theorem 9 uniformly in σ": max(*literal, *growing["theorem9"]) < _CONSTANT,
        },
    )


def _quadratic_constant(noisy: Sequence[Table]) -> Claim:
    """Judge the constant of both bounds, e^eps(2) - 1 (E-12)."""
    found = {table.panel.sigma or math.nan: table.at("lower", 2) for table in noisy}
    found |= {float(sigma): gaussian("a", sigma).once.rdp(2, bound="lower") for sigma in _GROWING}
    rate = float(RATE)
    said = {sigma: value / (rate**2 * 2 * math.exp(1 / sigma**2)) for sigma, value in sorted(found.items())}
    right = {sigma: value / (rate**2 * 2 * math.expm1(1 / sigma**2)) for sigma, value in sorted(found.items())}
    return Claim(
        "Before the transition both bounds are Θ(γ²α exp(ε(2)))",
        f"lower bound at order 2 over γ²α exp(ε(2)): {_by_sigma(said)}; over γ²α (exp(ε(2)) − 1): {_by_sigma(right)}",
        "the ratio varies by less than a factor 2 over these σ",
        {
            "γ²α exp(ε(2))": max(said.values()) < 2 * min(said.values()),
            "γ²α (exp(ε(2)) − 1)": max(right.values()) < 2 * min(right.values()),
        },
    )


def _additive_gap(first: Sequence[Table]) -> Claim:
    """Judge the gap at every order; Theorem 9 is at most the bound with 2 at every term."""
    shares = []
    for table in first:
        largest_gap = additive_gap(table.columns["order"], RATE)
        shares.append(float(np.max((table.columns["upper"] - table.columns["lower"]) / largest_gap)))
    return Claim(
        "The bounds differ by at most α/(α−1) log(1/(1−γ)) + log 2/(α−1)",
        f"largest difference over that, all orders: {each(first, shares)}",
        "at most 1",
        judged(first, [share <= 1 for share in shares]),
    )


def _large_orders(noisy: Sequence[Table]) -> Claim:
    gaps = [table.at("upper", 1000) - table.at("lower", 1000) for table in noisy]
    high, low = noisy[0].at("upper", 1000), noisy[0].at("lower", 1000)
    return Claim(
        "Gaussian: at large orders the bounds match up to an additive term",
        f"order 1000, σ = 5: {high:.4f} and {low:.4f}; differences {each(noisy, gaps)}",
        "less than 0.01 apart at order 1000",
        judged(noisy, [gap < 0.01 for gap in gaps]),
    )


def _transition(noisy: Sequence[Table]) -> Claim:
    found, holds = [], []
    for table in noisy:
        sigma = table.panel.sigma or math.nan
        orders = table.columns["order"]
        log_base = orders / (2 * sigma**2)
        # g a e^eps(a) = 1, as the paper says; eps(a) = log(1/g), where the last term of the sum takes over (E-13)
        said = float(np.interp(0.0, math.log(RATE) + np.log(orders) + log_base, orders))
        upper, lower = (_jump(table, column) for column in ("upper", "lower"))
        expected = 2 * sigma**2 * -math.log(RATE)
        found.append(
            f"{label(table.panel)}: said {said:.4g}, jump after order {upper} (lower bound {lower}), "
            f"2σ² log(1/γ) = {expected:.4g}"
        )
        holds.append(0.8 < said / upper < 1.25)
    return Claim(
        "Phase transition, in the upper and in the lower bound, where γ·α·exp(ε(α)) ≈ 1",
        "; ".join(found),
        "said over found within 0.8 to 1.25",
        judged(noisy, holds),
    )


def _jump(table: Table, column: str) -> int:
    values = table.columns[column]
    return int(table.columns["order"][np.argmax(values[1:] / values[:-1])])


def _past_the_transition(noisy: Sequence[Table]) -> Claim:
    below = [1000 / (2 * (table.panel.sigma or math.nan) ** 2) - table.at("upper", 1000) for table in noisy]
    return Claim(
        "Gaussian: past the transition the bounds converge to the curve of the base mechanism",
        f"ε(α) − ε'(α) at order 1000: {each(noisy, below)}; it tends to log(1/γ) = {-math.log(RATE):.4g}",
        "the difference is below 0.1",
        judged(noisy, [gap < 0.1 for gap in below]),
    )


def _linear_then_flat(bounded: Sequence[Table]) -> Claim:
    slopes = [slope(table, "upper", 2, 10) for table in bounded]
    flat = [slope(table, "upper", *table.columns["order"][[-20, -1]]) for table in bounded]
    return Claim(
        "Laplace and randomized response: linear in the order, then flat",
        f"log-log slope of Theorem 9 over orders 2 to 10: {each(bounded, slopes)}; at order 10,000: {each(bounded, flat)}",
        "slope within 0.05 of 1, then below 0.25",
        judged(bounded, [abs(s - 1) < 0.05 and level < 0.25 for s, level in zip(slopes, flat, strict=True)]),
    )


def _flat_level(bounded: Sequence[Table]) -> Claim:
    limits = [table.panel.once.pure() for table in bounded]
    pures = [table.panel.mechanism.pure() for table in bounded]
    reached = [table.at("lower", 10_000) / limit for table, limit in zip(bounded, limits, strict=True)]
    ratios = [limit / (float(RATE) * pure) for limit, pure in zip(limits, pures, strict=True)]
    return Claim(
        "They taper off at O(γ ε(∞))",
        f"the limit log(1 + γ(exp ε(∞) − 1)) over γ ε(∞): {each(bounded, ratios)}, which grows like (exp ε(∞) − 1)/ε(∞); "
        f"lower bound at order 10,000 over the limit: {each(bounded, reached)}",
        "limit below 2 γ ε(∞)",
        judged(bounded, [ratio < 2 for ratio in ratios]),
    )


def _bad_data(noisy: Sequence[Table]) -> Claim:
    found, holds = [], []
    for table, last in zip(noisy, (300, 3, 10), strict=True):  # the last order before the transition
        ratios = [table.at("bad", order) / table.at("lower", order) for order in (2, last)]
        found.append(f"{label(table.panel)}: {ratios[0]:.4g} at order 2, {ratios[1]:.4g} at {last}")
        holds.append(all(abs(ratio - 1) <= _CLOSE for ratio in ratios))
    return Claim(
        "The bad-data approximation matches the lower bound almost exactly in both regimes",
        "approximation (corrected) over lower bound: " + "; ".join(found),
        "within 5 % before the transition",
        judged(noisy, holds),
    )


def _good_data(noisy: Sequence[Table]) -> Claim:
    ratios = [table.at("good", 2) / table.at("lower", 2) for table in noisy]
    return Claim(
        "The good-data approximation is smaller, above all in the low-privacy regime",
        f"over the lower bound at order 2: {each(noisy, ratios)}",
        "below 1 in panel a and smaller still in panel d",
        {"all": ratios[0] < 1 and max(ratios[1:]) < ratios[0]},
    )


def _population_times_smaller(noisy: Sequence[Table]) -> Claim:
    said = float(RATE) * POPULATION
    ratios = [table.at("bad", 2) / table.at("good", 2) for table in noisy]
    return Claim(
        "Appendix C: the divergence of good data is γn times smaller than that of bad data",
        f"bad over good data at order 2, γn = {said:g}: {each(noisy, ratios)}",
        "within a factor 2 of γn",
        judged(noisy, [said / 2 < ratio < 2 * said for ratio in ratios]),
    )


def _earlier_bound(noisy: Sequence[Table]) -> Claim:
    """Judge the earlier bound of Abadi et al. 2016, Lemma 3.

    K <= g^2 l (l+1) / ((1-g) s^2) + O(g^3 l^3 / s^3), l the paper's lambda.

    It asks for s >= 1, g < 1/(16 s) and l <= s^2 log(1/(g s)).
    Their sampling is Poisson and their neighbours add/remove; the moments they integrate are Proposition 11's.
    """
    rate = float(RATE)
    some = [table for table in noisy if (table.panel.sigma or 0) >= 1]
    leading = [table.at("upper", 2) * (1 - rate) * (table.panel.sigma or 1) ** 2 / (2 * rate**2) for table in some]
    exact = [table.at("upper", 2) / table.at("lower", 2) for table in some]
    return Claim(
        "The bound is tighter than that of Abadi et al.",
        f"Theorem 9 over the leading term γ²α/((1−γ)σ²) of their Lemma 3, order 2: {each(some, leading)}; over the moments "
        f"they integrate: {each(some, exact)}. Their neighbours are add/remove and their samples Poisson, their remainder has "
        "no constant, and σ < 1 is outside their lemma; what Theorem 9 has over it is every mechanism, every order and a proof "
        "without integration",
        "Theorem 9 is the smaller one",
        judged(some, [ratio < 1 for ratio in leading]),
    )


def _by_sigma(values: dict[float, float]) -> str:
    return ", ".join(f"σ = {sigma:g} {value:.4g}" for sigma, value in values.items())
