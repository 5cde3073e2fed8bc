"""The paper's claims about Figure 2: composition over up to 600,000 rounds."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from cumulant.accounting.numbers import rounded_down, rounded_up
from cumulant.numerics.search import bisect_integers
from cumulant.paper.figures.claim import Claim, each, judged, label, slope, split
from cumulant.paper.figures.series import Table, accountant, baseline
from cumulant.paper.figures.settings import MOST_ROUNDS, Panel

_FIRST = 100_000.0
"""Rounds from which on slopes are measured; convention."""

_LAST = float(MOST_ROUNDS)
"""Rounds up to which slopes are measured: all of the figure."""

_SAME = 0.95


def claims(second: Sequence[Table]) -> tuple[Claim, ...]:
    """Judge every claim about many rounds on the tables of Figure 2."""
    noisy, bounded = split(second)
    return (
        _square_root(second),
        _naive_is_linear(second),
        _initially_worse(noisy),
        _one_order(noisy[0]),
        _five_orders(noisy[1:]),
        _same_or_better(bounded),
        _limitation(second),
    )


def _square_root(second: Sequence[Table]) -> Claim:
    rdp, strong = ([slope(table, column, _FIRST, _LAST) for table in second] for column in ("upper", "strong"))
    return Claim(
        "RDP and strong composition grow like √k",
        f"log-log slope from k = 100,000 to 600,000, RDP: {each(second, rdp)}; strong: {each(second, strong)}",
        "slope below 0.7",
        {"RDP": max(rdp) < 0.7} | {f"strong {label(t.panel)}": s < 0.7 for t, s in zip(second, strong, strict=True)},
    )


def _naive_is_linear(second: Sequence[Table]) -> Claim:
    slopes = [slope(table, "naive", _FIRST, _LAST) for table in second]
    return Claim(
        "Naive composition grows like k",
        f"log-log slope from k = 100,000 to 600,000: {each(second, slopes)} (above 1 where the rounds' delta shrinks)",
        "slope between 0.95 and 1.25",
        {"all": all(0.95 < value < 1.25 for value in slopes)},
    )


def _initially_worse(noisy: Sequence[Table]) -> Claim:
    turns = [_first_win(table.panel) for table in noisy]
    return Claim(
        "Gaussian: RDP is worse at first",
        f"the first k at which RDP ≤ naive: {each(noisy, turns)}",
        "that k is above 1",
        {"all": min(turns) > 1},
    )


def _one_order(table: Table) -> Claim:
    rdp = table.at("upper", _LAST)
    ratios = {name: table.at(name, _LAST) / rdp for name in ("strong", "optimal", "naive")}
    return Claim(
        "Panel a: an order of magnitude better than strong composition at k = 600,000",
        f"RDP {rdp:.4g}; strong {table.at('strong', _LAST):.4g}, {ratios['strong']:.1f} times as much; exact optimal "
        f"composition {ratios['optimal']:.1f} times; naive {ratios['naive']:.0f} times",
        "strong/RDP between 5 and 20",
        {"all": 5 < ratios["strong"] < 20},
    )


def _five_orders(low: Sequence[Table]) -> Claim:
    powers = {
        name: [math.log10(table.at(name, _LAST) / table.at("upper", _LAST)) for table in low]
        for name in ("strong", "naive")
    }
    return Claim(
        "Panel d: five orders of magnitude better at k = 600,000",
        f"log10 of strong/RDP: {each(low, powers['strong'])}; of naive/RDP: {each(low, powers['naive'])}",
        "log10 of strong/RDP rounds to 5",
        judged(low, [round(power) == 5 for power in powers["strong"]]),
    )


def _same_or_better(bounded: Sequence[Table]) -> Claim:
    found, holds = [], []
    for table in bounded:
        literal, best = (table.columns["strong"] / table.columns[column] for column in ("upper", "best"))
        worst = int(table.columns["rounds"][np.argmin(literal)])
        found.append(
            f"{label(table.panel)}: {literal.min():.2f} (k = {worst}) to {literal.max():.2f}, with the best bound "
            f"{best.min():.2f} to {best.max():.2f}"
        )
        holds.append(literal.min() >= _SAME)
    return Claim(
        "Laplace and randomized response: RDP is about the same or better for all k",
        "strong/RDP over all k from 1 on: " + "; ".join(found),
        f"at least {_SAME:g} at every k",
        judged(bounded, holds),
    )


def _limitation(second: Sequence[Table]) -> Claim:
    ratios = [table.at("upper", _LAST) / table.at("lower", _LAST) for table in second]
    naive, red = second[0].at("naive", 1), second[0].at("lower", 1)
    ends = [(table.at("true_lower", _LAST), table.at("true_upper", _LAST)) for table in second]
    true = [
        f"{label(table.panel)} [{rounded_down(low, 3)}, {rounded_up(high, 3)}]"
        for table, (low, high) in zip(second, ends, strict=True)
    ]
    return Claim(
        "The lower curve, through eq. (3), certifies a limitation of RDP",
        f"upper/lower at k = 600,000: {each(second, ratios)}. It limits what eq. (3) can give, not the true epsilon: at "
        f"σ = 5, k = 1 it says {red:.3g} where naive composition proves {naive:.3g}. The true epsilon at k = 600,000 is in "
        f"{', '.join(true)}",
        "upper/lower at least 1; for the true ε, that the curve is never above what is proved",
        {"for eq. (3)": min(ratios) >= 1, "for the true (ε, δ)": red <= naive},
    )


def _first_win(panel: Panel) -> int:
    """Return the least number of rounds at which the accountant is at most naive composition.

    It wins from there on.
    """

    def wins(count: int) -> object:
        rounds = np.array([count])
        return accountant(panel, rounds, "paper")[0] <= baseline(panel, rounds, "naive")[0]

    return bisect_integers(wins, 0, 1024)
