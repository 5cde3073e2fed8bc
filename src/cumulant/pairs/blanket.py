"""The privacy blanket of a finite randomizer: what shuffled reports need at most.

Letters: n reports, laws r_x of one report, a = e^eps; b is at most every r_x, so every other report is drawn from b with the
probability of the mass of b. For the inputs (x0, x1), with Z = (r0 - a r1)/b under b and Z = 0 off the blanket,

    delta(eps) <= (1/n) E(Z_1 + ... + Z_n)_+ + SUM_{b = 0} (r0 - a r1)_+

(docs/mechanisms/shuffle.md). Each Z, and each partial sum, is split to the points of a lattice through 0, mass and mean kept,
so that the expectation only grows. All sums have positive terms.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from cumulant.losses.grid import Mixture, Step
from cumulant.numerics.arithmetic import Array
from cumulant.numerics.convolution import convolve_positive, without_dust
from cumulant.numerics.rounding import MANY, U, raised
from cumulant.pairs.polygon import PolygonPair, convex_corners

if TYPE_CHECKING:
    from cumulant.losses.transform import Transform

MOST_REPORTS = 10**8
"""Reports that are counted at most; more reports are never worse."""

_SINGLE_CELLS = 4096
"""Cells of the range of one Z. Derived: splitting adds at most 2e-8 of its squared range to the variance."""
_CELLS = 2048
"""Cells of a partial sum. Measured: twice as many lower delta by 0.3 % and take three times as long."""
_TRIM = 1e-30
"""Mass that one trimming may cut off, over all copies of a partial sum; all of it counts as the largest Z."""
_ROUNDED_UP = 2.0**-40
"""Cells by which a place is raised: more than its rounding, and a larger Z only raises the expectation."""

_SMALLEST_DELTA = 1e-17
"""Delta after which no more points of a profile are taken; the next one is that of the largest loss."""
_FALL = 0.5
"""Nats of delta from one point to the next. Derived: the chord is above the profile by at most 0.5^2/8 of it."""
_FEWEST_POINTS = 64
"""Points up to the largest loss: a few reports have profiles of few straight pieces."""
_LONGEST = 16.0
"""Nats over which points are spread where no loss is the largest."""
_MOST_POINTS = 160
"""Points of a profile; convention: nothing falls from 1 to 1e-17 in more."""


@dataclass(frozen=True, slots=True)
class Label:
    """Outputs with one ratio of all three masses: that of the blanket and those of two inputs."""

    blanket: Fraction
    own: Fraction
    other: Fraction


Labels = tuple[Label, ...]
"""A randomizer for one ordered pair of inputs; outputs that neither input has may be left out."""


def labels_of(blanket: Sequence[Fraction], own: Sequence[Fraction], other: Sequence[Fraction]) -> Labels:
    """Return the labels of two inputs; outputs with proportional masses are one label."""
    found: dict[tuple[Fraction, ...], Label] = {}
    for b, p, q in zip(blanket, own, other, strict=True):
        if p or q:
            key = (p / b, q / b) if b else (p, q, Fraction(-1), Fraction(len(found)))
            one = found.get(key, Label(Fraction(0), Fraction(0), Fraction(0)))
            found[key] = Label(one.blanket + b, one.own + p, one.other + q)
    return tuple(sorted(found.values(), key=lambda label: (label.blanket, label.own, label.other)))


def labels_of_laws(laws: Sequence[Sequence[Fraction]]) -> tuple[Labels, ...]:
    """Return the distinct labels of all ordered pairs of inputs.

    The blanket is the least mass of all inputs.

    >>> half, third = Fraction(3, 4), Fraction(1, 4)
    >>> labels_of_laws([[half, third], [third, half]])
    ((Label(blanket=Fraction(1, 4), own=Fraction(1, 4), other=Fraction(3, 4)), Label(blanket=Fraction(1, 4), ...
    """
    least = [min(column) for column in zip(*laws, strict=True)]
    found = {labels_of(least, p, q): None for i, p in enumerate(laws) for j, q in enumerate(laws) if i != j}
    return tuple(found)


def selection_labels(odds: Fraction, exactly_own: Fraction, both: Fraction, blanket: Fraction) -> Labels:
    """Return the labels of a report that is a set of values.

    A set is more likely by `odds` if it holds the own value. Of the blanket, `exactly_own` is the share of the sets with the
    one of two values and without the other, `both` the share of those with both.
    """
    neither = 1 - 2 * exactly_own - both
    one = Fraction(1)
    rows = [(exactly_own, odds, one), (exactly_own, one, odds), (both, odds, odds), (neither, one, one)]
    return tuple(Label(blanket * share, blanket * share * p, blanket * share * q) for share, p, q in rows if share)


def largest_ratio(labels: Iterable[Label]) -> Fraction | None:
    """Return the largest ratio of the two laws; None if it is infinite."""
    ratios = [label.own / label.other if label.other else None for label in labels if label.own]
    known = [ratio for ratio in ratios if ratio is not None]
    return max(known, default=Fraction(1)) if len(known) == len(ratios) else None


def shuffled_delta(labels: Labels, reports: int, grown: Fraction) -> float:
    """Return delta of shuffled reports from above, for one ordered pair of inputs.

    `grown` is a = e^eps.

    >>> response = labels_of_laws([[Fraction(3, 4), Fraction(1, 4)], [Fraction(1, 4), Fraction(3, 4)]])
    >>> round(shuffled_delta(response[0], 1, Fraction(1)), 6)
    0.5
    """
    alone = sum(
        (max(label.own - grown * label.other, Fraction(0)) for label in labels if not label.blanket), Fraction(0)
    )
    known = [label for label in labels if label.blanket]
    z = np.array([float((label.own - grown * label.other) / label.blanket) for label in known])
    mass = np.array([float(label.blanket) for label in known])
    off = float(1 - sum((label.blanket for label in known), Fraction(0)))
    if not z.size or z.max() <= 0:
        return float(raised(float(alone), MANY))
    found = _positive_part(z, mass, off, min(reports, MOST_REPORTS))
    return min(float(raised(found + float(alone), MANY)), 1.0)


def _positive_part(z: Array, mass: Array, off: float, n: int) -> float:
    """Return (1/n) E(Z_1 + ... + Z_n)_+ from above."""
    top = float(z.max())
    h = (top - min(float(z.min()), 0.0)) / _SINGLE_CELLS
    place = z / h
    place += _ROUNDED_UP * (1 + np.abs(place))
    cell = np.floor(place).astype(np.int64)
    share = place - cell
    first = min(int(cell.min()), 0)
    single = np.zeros(max(int(cell.max()) + 1, 1) - first + 1)
    np.add.at(single, cell - first, mass * (1 - share))
    np.add.at(single, cell + 1 - first, mass * share)
    single[-first] += off
    law = _Sum(first, single, h, (8 + z.size) * U)
    one, lost, copies = law, 0.0, 1 << (n.bit_length() - 1)
    for bit in bin(n)[3:]:
        copies //= 2
        law, one, cut = _fitted(law.plus(law), one, copies)
        lost += cut
        if bit == "1":
            law, one, cut = _fitted(law.plus(one), one, copies)
            lost += cut
    value = law.h * (law.first + np.arange(law.mass.size, dtype=np.float64))
    total = float(np.sum(law.mass * np.maximum(value, 0.0))) * (1 + law.error / max(1 - law.error, 0.5))
    # S/n is at most the largest Z; where the errors are no longer small nothing is claimed
    return total / n + (lost + 1e-280 * n) * top if law.error < 0.5 else 1.0


@dataclass(frozen=True, slots=True, eq=False)
class _Sum:
    """A law of a partial sum: masses at h (first + i), each with this relative error."""

    first: int
    mass: Array
    h: float
    error: float

    def plus(self, other: _Sum) -> _Sum:
        mass, error = convolve_positive(self.mass, other.mass)
        return _Sum(self.first + other.first, mass, self.h, self.error + other.error + error)

    def coarser(self) -> _Sum:
        """Return the law on twice the step: an odd point goes half to each neighbour."""
        odd = self.first % 2
        mass = np.pad(self.mass, (odd, (self.mass.size + odd) % 2))
        half = np.append(mass[1::2], 0.0) / 2
        there = np.append(mass[::2], 0.0) + half
        there[1:] += half[:-1]
        return _Sum((self.first - odd) // 2, without_dust(there), 2 * self.h, self.error + 2 * U)


def _fitted(law: _Sum, one: _Sum, copies: int) -> tuple[_Sum, _Sum, float]:
    """Trim a law, halve its resolution, and return what so many copies of it have lost."""
    allowed = _TRIM / copies
    low = int(np.searchsorted(np.cumsum(law.mass), allowed))
    high = int(np.searchsorted(np.cumsum(law.mass[::-1]), allowed))
    low, high = min(low, law.mass.size - 1), min(high, law.mass.size - 1 - min(low, law.mass.size - 1))
    kept = law.mass[low : law.mass.size - high]
    lost = float(law.mass[:low].sum() + law.mass[law.mass.size - high :].sum()) * copies
    law = _Sum(law.first + low, kept, law.h, law.error)
    while law.mass.size > _CELLS:
        law, one = law.coarser(), one.coarser()
    return law, one, 2 * lost


@lru_cache(maxsize=64)
def shuffled_profile(pairs: tuple[Labels, ...], reports: int) -> tuple[tuple[Fraction, ...], tuple[Fraction, ...]]:
    """Return epsilons and deltas of shuffled reports from above.

    Each delta is the largest of all ordered pairs of inputs. Between them the chord in e^eps is above the profile, which is
    convex. The last one is the largest loss, if there is one.
    """
    ratios = [largest_ratio(labels) for labels in pairs]
    finite = [ratio for ratio in ratios if ratio is not None]
    end = math.log(max(finite)) if len(finite) == len(ratios) else math.inf

    def delta(epsilon: float) -> float:
        grown = Fraction(math.exp(epsilon) * (1 - 8 * U))
        return max(shuffled_delta(labels, reports, max(grown, Fraction(1))) for labels in pairs)

    epsilons, deltas = [0.0], [delta(0.0)]
    most = min(end, _LONGEST) / _FEWEST_POINTS
    step = 0.5 * max(_deviation(labels) for labels in pairs) / math.sqrt(min(reports, MOST_REPORTS))
    while len(epsilons) < _MOST_POINTS and deltas[-1] > _SMALLEST_DELTA:
        epsilon = epsilons[-1] + min(max(step, 1e-12), most)
        if not epsilon < end:
            break
        epsilons.append(epsilon)
        deltas.append(min(delta(epsilon), deltas[-1]))
        fall = math.log(deltas[-2] / deltas[-1]) if deltas[-1] > 0 else math.inf
        step = min(step, most) * (min(max(_FALL / max(fall, 1e-3), 0.25), 2.0) if math.isfinite(fall) else 0.25)
    if math.isfinite(end):  # no loss is larger
        epsilons.append(float(raised(end, MANY)))
        deltas.append(0.0)
    return tuple(map(Fraction, epsilons)), tuple(map(Fraction, deltas))


def _deviation(labels: Labels) -> float:
    """Return the deviation of (r0 - r1)/b, by which steps of epsilon are chosen."""
    total = sum(float((label.own - label.other) ** 2 / label.blanket) for label in labels if label.blanket)
    return max(math.sqrt(total), 1e-6)


@dataclass(frozen=True, slots=True)
class BlanketPair(PolygonPair):
    """The pair of shuffled reports through their profile.

    Its corners are floats with all errors added. No data sets are known to have it, and nothing about it is proved in balls.
    """

    attained: bool = False

    @classmethod
    def of_labels(cls, pairs: tuple[Labels, ...], reports: int) -> BlanketPair:
        """Return the pair of so many shuffled reports of a randomizer.

        >>> two = labels_of_laws([[Fraction(3, 4), Fraction(1, 4)], [Fraction(1, 4), Fraction(3, 4)]])
        >>> BlanketPair.of_labels(two, 1000).profile([0.1]).round(6)
        array([0.000211])
        """
        return cls(*convex_corners(*shuffled_profile(pairs, reports)))

    @property
    def has_closed_form(self) -> bool:
        return False

    def transform(self, rate: Fraction, direction: str) -> Transform | None:
        return None

    def exact_unit(self) -> Fraction | None:
        return None

    def unsampled_steps(self) -> tuple[Step, ...] | None:
        loss = self.loss()
        return None if loss is None else (ProfileStep(loss, 1.0, 0.0, "symmetric"),)


@dataclass(frozen=True, slots=True)
class ProfileStep(Mixture):
    """The symmetric pair of finitely many losses; one round of it needs no grid."""

    def own_delta(self, epsilon: float, log_mass: float) -> float:
        x, log_q = self.law.atoms()
        gap = x - epsilon
        above = gap > 0
        total = float(np.sum(np.exp(log_q[above] + x[above]) * -np.expm1(-gap[above])))
        return min(float(raised(total + self.law.leak, MANY)), 1.0)
