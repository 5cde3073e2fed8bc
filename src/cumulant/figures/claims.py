"""What the paper says about its figures, the numbers found here, and whether they agree (item 50)."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from cumulant.accounting.guarantee import rounded_down, rounded_up
from cumulant.figures.panels import MOST_ROUNDS, RATE, Panel, gaussian
from cumulant.figures.series import Table, accountant, baseline

_CONSTANT = 6.0  # a ratio below it at every order counts as "a multiplicative constant"
_FIRST, _LAST = 100_000.0, float(MOST_ROUNDS)


@dataclass(frozen=True, slots=True)
class Claim:
    """A sentence of the paper, what was found, and for what it holds."""

    statement: str
    found: str
    holds: Mapping[str, bool]

    @property
    def verdict(self) -> str:
        """yes, no, or for what it holds and for what it does not."""
        if len(set(self.holds.values())) == 1:
            return "yes" if all(self.holds.values()) else "no"
        true, false = ([name for name, value in self.holds.items() if value is wanted] for wanted in (True, False))
        return f"yes: {', '.join(true)}; no: {', '.join(false)}"


def claims(first: Sequence[Table], second: Sequence[Table]) -> tuple[Claim, ...]:
    """Every claim, judged on the tables of Figure 1 and of Figure 2."""
    noisy, bounded = _split(first)
    noisy_runs, bounded_runs = _split(second)
    return (
        _constant_factor(first),
        _additive_gap(noisy),
        _transition(noisy),
        _linear_then_flat(bounded),
        _bad_data(noisy),
        _good_data(noisy),
        _square_root(second),
        _naive_is_linear(second),
        _initially_worse(noisy_runs),
        _one_order(noisy_runs[0]),
        _five_orders(noisy_runs[1:]),
        _same_or_better(bounded_runs),
        _limitation(second),
    )


def markdown(found: Iterable[Claim]) -> str:
    """The claims as a table."""
    rows = [f"| {claim.statement} | {claim.found} | {claim.verdict} |" for claim in found]
    return "\n".join(
        [
            "# The paper's claims about its figures",
            "",
            "Rate 1/1000; Figure 2 at delta = 1e-8, up to 600,000 rounds. Letters name the panels; panel d is drawn for",
            "both values of sigma that the paper gives for it, 0.5 in the captions and 1 in the text. RDP means the literal",
            "accountant of the paper (Theorem 9, eq. 3), strong composition the closed form of Kairouz, Oh and Viswanath",
            "with the best delta for each round.",
            "",
            "| claim | found here | holds |",
            "|---|---|---|",
            *rows,
            "",
        ]
    )


# --- Figure 1


def _constant_factor(first: Sequence[Table]) -> Claim:
    def worst(table: Table, column: str) -> float:
        return float(np.max(table.columns[column] / table.columns["lower"]))

    orders = np.arange(2, 1001).tolist()
    growing = {}
    for sigma in ("10", "20"):
        once = gaussian("a", sigma).once
        growing[sigma] = float(np.max(once.rdp(orders, bound="theorem9") / once.rdp(orders, bound="lower")))
    literal, tight = ([worst(table, column) for table in first] for column in ("upper", "theorem27"))
    return Claim(
        "Upper and lower bound match up to a multiplicative constant at every order",
        f"largest upper/lower with Theorem 9: {_each(first, literal)}; but {growing['10']:.3g} at σ = 10 and "
        f"{growing['20']:.3g} at σ = 20 (orders to 1000): it grows with σ. With Theorem 27, term by term: "
        f"{_each(first, tight)}",
        {"Theorem 27": max(tight) < _CONSTANT, "Theorem 9": max(*literal, *growing.values()) < _CONSTANT},
    )


def _additive_gap(noisy: Sequence[Table]) -> Claim:
    gaps = [table.at("upper", 1000) - table.at("lower", 1000) for table in noisy]
    high, low = noisy[0].at("upper", 1000), noisy[0].at("lower", 1000)
    return Claim(
        "Gaussian: at large orders the bounds match up to an additive term",
        f"order 1000, σ = 5: {high:.4f} and {low:.4f}; differences {_each(noisy, gaps)}",
        {_label(table.panel): gap < 0.01 for table, gap in zip(noisy, gaps, strict=True)},
    )


def _transition(noisy: Sequence[Table]) -> Claim:
    found, holds = [], {}
    for table in noisy:
        sigma = table.panel.sigma or math.nan
        orders, upper = table.columns["order"], table.columns["upper"]
        log_base = orders / (2 * sigma**2)
        # g a e^eps(a) = 1, as the paper says; eps(a) = log(1/g), where the last term of the sum takes over (E-13)
        said = float(np.interp(0.0, math.log(RATE) + np.log(orders) + log_base, orders))
        seen = int(orders[np.argmax(upper[1:] / upper[:-1])])
        expected = 2 * sigma**2 * -math.log(RATE)
        found.append(f"{_label(table.panel)}: said {said:.3g}, jump after order {seen}, 2σ² log(1/γ) = {expected:.4g}")
        holds[_label(table.panel)] = 0.8 < said / seen < 1.25
    return Claim("Phase transition where γ·α·exp(ε(α)) ≈ 1", "; ".join(found), holds)


def _linear_then_flat(bounded: Sequence[Table]) -> Claim:
    slopes = [_slope(table, "upper", 2, 10) for table in bounded]
    flat = [_slope(table, "upper", *table.columns["order"][[-20, -1]]) for table in bounded]
    caps = [table.panel.once.pure for table in bounded]
    limits = [table.at("lower", 10_000) / cap for table, cap in zip(bounded, caps, strict=True)]
    return Claim(
        "Laplace and randomized response: linear in the order, then flat",
        f"log-log slope of Theorem 9 over orders 2 to 10: {_each(bounded, slopes)}; at order 10,000: "
        f"{_each(bounded, flat)}; lower bound there over its limit log(1 + γ(exp ε(∞) − 1)): {_each(bounded, limits)}",
        {
            _label(table.panel): abs(slope - 1) < 0.05 and level < 0.25
            for table, slope, level in zip(bounded, slopes, flat, strict=True)
        },
    )


def _bad_data(noisy: Sequence[Table]) -> Claim:
    found, holds = [], {}
    for table, last in zip(noisy, (300, 3, 10), strict=True):  # the last order before the transition
        ratios = [table.at("bad", order) / table.at("lower", order) for order in (2, last)]
        found.append(f"{_label(table.panel)}: {ratios[0]:.3g} at order 2, {ratios[1]:.3g} at {last}")
        holds[_label(table.panel)] = all(0.8 < ratio < 1.25 for ratio in ratios)
    return Claim(
        "The bad-data approximation matches the lower bound almost exactly in both regimes",
        "approximation (corrected) over lower bound: " + "; ".join(found),
        holds,
    )


def _good_data(noisy: Sequence[Table]) -> Claim:
    ratios = [table.at("good", 2) / table.at("lower", 2) for table in noisy]
    return Claim(
        "The good-data approximation is smaller, above all in the low-privacy regime",
        f"over the lower bound at order 2: {_each(noisy, ratios)}",
        {"all": ratios[0] < 1 and max(ratios[1:]) < ratios[0]},
    )


# --- Figure 2


def _square_root(second: Sequence[Table]) -> Claim:
    rdp, strong = ([_slope(table, column, _FIRST, _LAST) for table in second] for column in ("upper", "strong"))
    return Claim(
        "RDP and strong composition grow like √k",
        f"log-log slope from k = 100,000 to 600,000, RDP: {_each(second, rdp)}; strong: {_each(second, strong)}",
        {"RDP": max(rdp) < 0.7} | {f"strong {_label(t.panel)}": s < 0.7 for t, s in zip(second, strong, strict=True)},
    )


def _naive_is_linear(second: Sequence[Table]) -> Claim:
    slopes = [_slope(table, "naive", _FIRST, _LAST) for table in second]
    return Claim(
        "Naive composition grows like k",
        f"log-log slope from k = 100,000 to 600,000: {_each(second, slopes)} (above 1 where the rounds' delta shrinks)",
        {"all": all(0.95 < slope < 1.25 for slope in slopes)},
    )


def _initially_worse(noisy: Sequence[Table]) -> Claim:
    turns = [_first_win(table.panel) for table in noisy]
    return Claim(
        "Gaussian: RDP is worse at first",
        f"the first k at which RDP ≤ naive: {_each(noisy, turns)}",
        {"all": min(turns) > 1},
    )


def _one_order(table: Table) -> Claim:
    rdp = table.at("upper", _LAST)
    ratios = {name: table.at(name, _LAST) / rdp for name in ("strong", "optimal", "naive")}
    return Claim(
        "Panel a: an order of magnitude better than strong composition at k = 600,000",
        f"RDP {rdp:.4g}; strong {table.at('strong', _LAST):.4g}, {ratios['strong']:.1f} times as much; exact optimal "
        f"composition {ratios['optimal']:.1f} times; naive {ratios['naive']:.0f} times",
        {"all": 5 < ratios["strong"] < 20},
    )


def _five_orders(low: Sequence[Table]) -> Claim:
    powers = {
        name: [math.log10(table.at(name, _LAST) / table.at("upper", _LAST)) for table in low]
        for name in ("strong", "naive")
    }
    return Claim(
        "Panel d: five orders of magnitude better at k = 600,000",
        f"log10 of strong/RDP: {_each(low, powers['strong'])}; of naive/RDP: {_each(low, powers['naive'])}",
        {_label(t.panel): round(power) == 5 for t, power in zip(low, powers["strong"], strict=True)},
    )


def _same_or_better(bounded: Sequence[Table]) -> Claim:
    found, holds = [], {}
    for table in bounded:
        many = table.columns["rounds"] >= 20
        literal, best = (table.columns["strong"][many] / table.columns[column][many] for column in ("upper", "best"))
        found.append(
            f"{_label(table.panel)}: {literal.min():.2f} to {literal.max():.2f}, with the best bound {best.min():.2f} "
            f"to {best.max():.2f}"
        )
        holds[_label(table.panel)] = bool(literal.min() > 0.95)
    return Claim(
        "Laplace and randomized response: RDP is about the same or better for all k",
        "strong/RDP over k ≥ 20: " + "; ".join(found),
        holds,
    )


def _limitation(second: Sequence[Table]) -> Claim:
    ratios = [table.at("upper", _LAST) / table.at("lower", _LAST) for table in second]
    naive, red = second[0].at("naive", 1), second[0].at("lower", 1)
    ends = [(table.at("true_lower", _LAST), table.at("true_upper", _LAST)) for table in second]
    true = [
        f"{_label(table.panel)} [{rounded_down(low, 3)}, {rounded_up(high, 3)}]"
        for table, (low, high) in zip(second, ends, strict=True)
    ]
    return Claim(
        "The lower curve, through eq. (3), certifies a limitation of RDP",
        f"upper/lower at k = 600,000: {_each(second, ratios)}. It limits what eq. (3) can give, not the true epsilon: at "
        f"σ = 5, k = 1 it says {red:.3g} where naive composition proves {naive:.3g}. The true epsilon at k = 600,000 is in "
        f"{', '.join(true)}",
        {"for eq. (3)": min(ratios) >= 1, "for the true (ε, δ)": red <= naive},
    )


# --- words and small computations


def _split(tables: Sequence[Table]) -> tuple[list[Table], list[Table]]:
    """Those with Gaussian noise, and the others."""
    return [t for t in tables if t.panel.sigma is not None], [t for t in tables if t.panel.sigma is None]


def _label(panel: Panel) -> str:
    return f"d (σ = {panel.sigma:g})" if panel.letter == "d" else panel.letter


def _each(tables: Sequence[Table], values: Sequence[float]) -> str:
    return ", ".join(f"{_label(table.panel)} {value:.3g}" for table, value in zip(tables, values, strict=True))


def _slope(table: Table, column: str, low: float, high: float) -> float:
    return math.log(table.at(column, high) / table.at(column, low)) / math.log(high / low)


def _first_win(panel: Panel) -> int:
    """The least number of rounds at which the accountant is at most naive composition: it wins from there on."""
    low, high = 0, 1024
    while high - low > 1:
        middle = np.array([(low + high) // 2])
        wins = accountant(panel, middle, "paper")[0] <= baseline(panel, middle, "naive")[0]
        low, high = (low, int(middle[0])) if wins else (int(middle[0]), high)
    return high
