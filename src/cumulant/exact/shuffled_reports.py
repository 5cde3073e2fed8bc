"""Shuffled reports of a known randomizer: its blanket from above, counts of two kinds of reports from below.

Letters: n reports. A report is of kind A, of kind B or neither; `own` are the probabilities of both kinds for the value of the
record, `new` those for the value that replaces it, `others` those for the one value that all other users hold. The numbers
(a, b) of both kinds are a function of the shuffled reports, so they need no more than those. Under the multinomial law M of n
other users the two laws have the masses M(a, b) u and M(a, b) v, n u = a own_A/others_A + b own_B/others_B + (n-a-b) (rest).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np

from cumulant.exact.grid.allocation import on_grid, thinned
from cumulant.exact.witnesses import Neighbours
from cumulant.losses.cells import Cells, rounding_slip
from cumulant.losses.grid import Outputs
from cumulant.numerics.arithmetic import BALLS, Array
from cumulant.numerics.rounding import MANY, U
from cumulant.pairs.blanket import MOST_REPORTS, Labels, labels_of_laws, selection_labels

OTHERS_AS_NEW = "data sets in which all other users hold the new value of the record that is replaced"
"""Name of the neighbours whose other users hold one of the two values."""
OTHERS_AS_OLD = "data sets in which all other users hold the old value of the record that is replaced"
"""Name of those neighbours in the reverse direction."""
OTHERS_THIRD = "data sets in which all other users hold a third value"
"""Name of the neighbours whose other users hold neither of the two values."""
OTHERS_THIRD_SWAPPED = f"{OTHERS_THIRD}, the other way round"
"""Name of those neighbours in the reverse direction."""

_TAIL = 50.0
"""Nats of the mass that a window of counts leaves out; dropped outputs only lower the end."""
_MOST_OUTPUTS = 1 << 23
"""Pairs of counts that are added up, a second of work; beyond them only the number of A is kept."""
_BINS = 1 << 14
"""Bins of losses into which outputs are merged; four times as many change no digit shown."""
_LEAST_MASS = 1e-300
"""Outputs with less mass are dropped; products of denormal floats have no relative accuracy."""


Chances = tuple[Fraction, Fraction]
"""The probabilities of a report of kind A and of one of kind B."""


@dataclass(frozen=True, slots=True)
class Kinds:
    """The probabilities of two kinds of reports: for the own value, the new one, and that of all other users."""

    own: Chances
    new: Chances
    others: Chances

    @classmethod
    def of_laws(cls, own: Sequence[Fraction], new: Sequence[Fraction], others: Sequence[Fraction]) -> Kinds:
        """Return the reports that are likelier for the own value, and those likelier for the new one."""

        def chances(law: Sequence[Fraction]) -> Chances:
            rows = list(zip(law, own, new, strict=True))
            return (
                sum((mass for mass, p, q in rows if p > q), Fraction(0)),
                sum((mass for mass, p, q in rows if p < q), Fraction(0)),
            )

        return cls(chances(own), chances(new), chances(others))

    @property
    def has_ratios(self) -> bool:
        """Return True if all masses are positive that a ratio needs, and the two values differ."""
        return all(0 < each < 1 for each in (*self.own, *self.new, *self.others)) and self.own != self.new

    @property
    def gain(self) -> float:
        """Return the mean squared difference of both ratios, by which data sets are chosen."""
        return sum(float((p - q) ** 2 / r) for p, q, r in zip(self.own, self.new, self.others, strict=True) if r)


@dataclass(frozen=True, slots=True)
class Randomizer:
    """A local randomizer: labels of its blanket for pairs of inputs, and kinds of its reports on explicit data sets.

    `labels` may be those of a randomizer of which this one is a post-processing, `kinds` those of a post-processing of it.
    """

    labels: tuple[Labels, ...] = ()
    kinds: Kinds | None = None
    third: Kinds | None = None

    @classmethod
    def of_laws(cls, laws: Sequence[Sequence[Fraction]]) -> Randomizer:
        """Return the randomizer with this law of the report for each input."""
        size = range(len(laws))
        two = [Kinds.of_laws(laws[i], laws[j], laws[j]) for i in size for j in size if i != j]
        three = [
            Kinds.of_laws(laws[i], laws[j], laws[k]) for i in size for j in size for k in size if len({i, j, k}) == 3
        ]
        return cls(labels_of_laws(laws), _best(two), _best(three))

    def witnesses(self, reports: int) -> tuple[Neighbours, ...]:
        """Return the data sets whose counts of both kinds bound shuffled reports from below."""
        if reports > MOST_REPORTS:
            return ()
        named = ((self.kinds, OTHERS_AS_NEW, OTHERS_AS_OLD), (self.third, OTHERS_THIRD, OTHERS_THIRD_SWAPPED))
        return tuple(
            Neighbours(name, CountsBelow(reports, kinds, direction))
            for kinds, *names in named
            if kinds is not None and kinds.has_ratios
            for name, direction in zip(names, ("remove", "add"), strict=True)
        )


def set_randomizer(values: int, size: int, least: Fraction, most: Fraction) -> Randomizer:
    """Return a report that is a set of `size` of the values, likelier by e^epsilon if it holds the own one.

    e^epsilon lies between `least` and `most`. With smaller odds the report is a post-processing: a uniform set at times.
    """
    exactly_own, both = (Fraction(size * each, values * (values - 1)) for each in (values - size, size - 1))
    labels = selection_labels(most, exactly_own, both, 1 / (1 + (most - 1) * Fraction(size, values)))
    scale = 1 / (1 + (least - 1) * Fraction(size, values))  # of the law of a uniform set
    new = exactly_own * scale
    own, third = least * new, None
    if values > 2:
        with_third = Fraction(size - 1, values - 2)  # of the sets with the one value and without the other
        other = new * (1 + (least - 1) * with_third)
        third = Kinds((own, new), (new, own), (other, other))
    return Randomizer((labels,), Kinds((own, new), (new, own), (new, own)), third)


def _best(kinds: Sequence[Kinds]) -> Kinds | None:
    return max((each for each in kinds if each.has_ratios), key=lambda each: each.gain, default=None)


@dataclass(frozen=True, slots=True)
class CountsBelow(Outputs):
    """The numbers of reports of both kinds, from below; "remove" compares the own value with the new one."""

    reports: int
    kinds: Kinds
    direction: str

    @property
    def leak(self) -> float:
        return 0.0

    def nodes(self, lam: float) -> tuple[Array, Array]:
        return thinned(*self.outputs(0.0))

    def outputs(self, log_mass: float) -> tuple[Array, Array]:
        return _losses(self)[:2]

    def cells(self, step: float, log_mass: float) -> Cells:
        loss, log_p, error = _losses(self)
        return on_grid(loss, log_p, step, 0.0, 0.0, error)

    def own_delta(self, epsilon: float, log_mass: float) -> float:
        """Return delta at epsilon, rounded down.

        P-masses are divided by 1 + e and Q-masses by 1 - e, e their relative error: losses fall by at most 3 e.
        """
        loss, log_p, error = _losses(self)
        gap = loss - (epsilon + 3 * error + rounding_slip(float(loss[0]), float(loss[-1])))
        above = gap > 0
        total = float(np.sum(np.exp(log_p[above]) * -np.expm1(-gap[above])))
        return max(total / (1 + error) * (1 - MANY), 0.0)


@lru_cache(maxsize=32)
def _losses(step: CountsBelow) -> tuple[Array, Array, float]:
    """Return losses in increasing order, log P-masses, and the relative error of both masses."""
    p, q, error = _bins(step.reports, step.kinds)
    if step.direction == "add":
        p, q = q, p
    loss = np.log(p / q)
    order = np.argsort(loss, kind="stable")
    return loss[order], np.log(p)[order], error


@lru_cache(maxsize=16)
def _bins(n: int, kinds: Kinds) -> tuple[Array, Array, float]:
    """Return both masses of bins of losses, and their relative error; a bin is a function of the output."""
    single = sum(kinds.others) == 1 or _too_many(n, *kinds.others)
    rows = _single_counts(n, kinds) if single else _double_counts(n, kinds)
    farthest = max(abs(math.log(p / q)) for p, q in _all_chances(kinds, single)) * (1 + MANY)
    spread = max(math.sqrt(kinds.gain / n), 1e-12)
    p_bins, q_bins, most, error = np.zeros(_BINS), np.zeros(_BINS), 0.0, 0.0
    for mass, p, q, wrong in rows:
        kept = mass * np.minimum(p, q) > _LEAST_MASS
        mass, p, q = mass[kept], p[kept], q[kept]
        loss = np.clip(np.log(p / q), -farthest, farthest)
        # bins are finest near 0, where the losses of many reports are
        place = np.floor((np.arcsinh(loss / spread) / math.asinh(farthest / spread) + 1) / 2 * (_BINS - 1))
        place = place.astype(np.int64)
        p_bins += np.bincount(place, mass * p, _BINS)
        q_bins += np.bincount(place, mass * q, _BINS)
        most, error = most + float(np.max(np.bincount(place), initial=0)), max(error, wrong)
    there = (p_bins > 0) & (q_bins > 0)
    return p_bins[there], q_bins[there], error + (2 * most + 64) * U


def _all_chances(kinds: Kinds, single: bool) -> Iterator[Chances]:
    """Yield the probabilities of each kind of report for both values."""
    rest = 1 - kinds.own[0] - kinds.own[1], 1 - kinds.new[0] - kinds.new[1]
    yield kinds.own[0], kinds.new[0]
    yield (1 - kinds.own[0], 1 - kinds.new[0]) if single else (kinds.own[1], kinds.new[1])
    if not single and all(rest):
        yield rest


def _too_many(n: int, first: Fraction, second: Fraction) -> bool:
    """Return True if a window of both counts is beyond what is added up."""
    return _window(n, first + second)[1] * _window(n, first)[1] > _MOST_OUTPUTS


def _window(n: int, rate: Fraction) -> tuple[int, int]:
    """Return the first count of Bin(n, rate) that is kept, and how many are."""
    mean = n * float(rate)
    spread = math.sqrt(2 * _TAIL * mean * (1 - float(rate))) + _TAIL
    low, high = max(0, math.floor(mean - spread)), min(n, math.ceil(mean + spread))
    return low, high - low + 1


def _binomial(n: int, rate: Fraction) -> tuple[Array, Array, float]:
    """Return the counts of a window, their masses, and the relative error of these."""
    low, size = _window(n, rate)
    k = low + np.arange(size, dtype=np.float64)
    centre = min(max(math.floor(n * rate), low), low + size - 1)
    with BALLS.at(128):
        odds = BALLS.number(rate / (1 - rate)).log()
        top = _log_binomial(n, centre) + centre * odds + n * BALLS.number(1 - rate).log()
        ratio, log_top = float(odds.mid()), float(top.mid())
    steps = np.log((n - k[:-1]) / k[1:]) + ratio
    place = centre - low
    log_mass = np.empty(size)
    log_mass[place] = log_top
    log_mass[place + 1 :] = log_top + np.cumsum(steps[place:])
    log_mass[:place] = (log_top - np.cumsum(steps[:place][::-1]))[::-1]
    # every step errs by a few units of its two terms, and every sum by one unit of itself
    error = U * (16 + 8 * size * (1 + abs(ratio)) + size * float(np.max(np.abs(log_mass))))
    return k, np.exp(log_mass), error


def _log_binomial(n: int, k: int) -> Any:
    return BALLS.number(n + 1).lgamma() - BALLS.number(k + 1).lgamma() - BALLS.number(n - k + 1).lgamma()


_Row = tuple[Array, Array, Array, float]
"""Masses of n users like the others, both ratios to them, and the relative error of the masses."""


def _single_counts(n: int, kinds: Kinds) -> Iterator[_Row]:
    """Keep the number of A only: Bin(n, r), n u = a own/r + (n - a)(1 - own)/(1 - r)."""
    rate = kinds.others[0]
    a, mass, error = _binomial(n, rate)
    p, q = (
        a * float(each / rate / n) + (n - a) * float((1 - each) / (1 - rate) / n)
        for each in (kinds.own[0], kinds.new[0])
    )
    yield mass, p, q, error + 16 * U


def _double_counts(n: int, kinds: Kinds) -> Iterator[_Row]:
    """Keep the numbers of A and of B: s = a + b is binomial, and a given s is."""
    first, second = kinds.others
    s, mass_s, error = _binomial(n, first + second)
    share = first / (first + second)
    weights = [
        tuple(float(w) for w in (law[0] / first / n, law[1] / second / n, (1 - sum(law)) / (1 - first - second) / n))
        for law in (kinds.own, kinds.new)
    ]
    for both, mass in zip(s.astype(np.int64).tolist(), mass_s.tolist(), strict=True):
        a, mass_a, more = _binomial(both, share) if both else (np.zeros(1), np.ones(1), 0.0)
        p, q = (w[0] * a + w[1] * (both - a) + w[2] * (n - both) for w in weights)
        yield mass * mass_a, p, q, error + more + 32 * U
