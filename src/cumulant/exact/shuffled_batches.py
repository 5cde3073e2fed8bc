"""One epoch of batches cut from a secret, fresh permutation: amplified from above (Theorems 2 and 3), witnessed from below.

Letters: n records in batches of m, t = floor(n/m) full ones, T released ones; (P, Q) the pair that dominates a step for every
two records, a = e^eps, A = e^eps0. Theorem 3: with eta = H_A(P || Q), L = 2p/(p+q) under M = (P+Q)/2 and a number
N = 1 + Bin(t-1, 1/A) that is announced, one epoch is the pair (X/N, (2N-X)/N) under M^N, X = L_1 + ... + L_N, but for the slack
(1+a)(T-1) eta/A. The slacks of several epochs add up. The proofs are in docs/shuffled-batches.md.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

import numpy as np

from cumulant.exact.grid.allocation import (
    AllocatedBelow,
    Gatherer,
    Ratio,
    attained_loss,
    binned,
    fits,
    on_grid,
    ratio_law,
    rounding_of,
    span_of,
    thinned,
)
from cumulant.exact.grid.ratio_sums import LinearGrid, Masses, Trimmer, power
from cumulant.exact.witnesses import PAIR, SWAPPED, Neighbours
from cumulant.losses.cells import Cells
from cumulant.losses.grid import Loss, Step
from cumulant.numerics.arithmetic import BALLS, Array
from cumulant.numerics.convolution import without_dust
from cumulant.numerics.rounding import MANY, U, at_least, raised, rounded_up
from cumulant.numerics.search import bisect
from cumulant.pairs.pair import Pair
from cumulant.pairs.shuffle import LARGEST, MOST_REPORTS, ShuffledPair

SHIFTS = (0.0, 0.1, 0.3, 0.6, 1.0)
"""Nats by which eps0 is tried above the least one whose slack is a quarter of delta. Convention: the optimum is flat."""
SLACK_SHARE = 0.25
"""The part of delta that the slack takes at the least eps0."""

_HALF_CELLS = 4096
"""Cells of L on [0, 2]; a power of two, so that the ends stay on the grid when its resolution is halved."""
_CELLS = 4096
"""Cells of a law of X. Measured: 8192 change epsilon by less than 1e-4 and take four times as long."""
_PER_GROUP = 128
"""Numbers N nearby count as the smallest of 1/128 of their mean, which costs about 0.2 % of epsilon."""
_DEVIATIONS = 3.0
"""Numbers N above their mean by so many deviations count as this one: a larger N is never worse."""
_MOST_GROUPS = 4000
"""Groups of numbers N beyond which the sum over N is given up, for time; chosen by hand."""
_TRIM = 1e-4
"""The part of what may be left out that goes to all trimmed tails and to small N."""
_FINE = 1 << 15
"""Cells of the law of one ratio before it is put on a coarser grid; chosen by hand."""
_FARTHEST = 60.0
"""The largest eps0 that is tried."""
_EPS0_WIDTH = 1e-3
"""Width at which the search for eps0 ends; chosen by hand: the slack changes little within it."""


@dataclass(frozen=True, slots=True)
class Batches:
    """The cut of a permutation: t full batches, T released ones, and the share of records that no batch has."""

    full: int
    released: int
    dropped: Fraction = Fraction(0)

    @property
    def uniform(self) -> bool:
        """Return True if all batches have one size."""
        return self.full == self.released

    def options(
        self, pair: Pair, log_delta: float, times: int, shifts: tuple[float, ...] = SHIFTS
    ) -> Iterator[tuple[Step, float]]:
        """Yield steps that dominate one epoch but for a slack, with that slack divided by 1 + e^epsilon.

        `log_delta` is the delta that is aimed at and `times` the number of epochs; every option holds whatever they are. The
        eps0 of an option is `shifts` above the least one that suits this delta.
        """
        loss = pair.loss()
        if loss is None or self.full < 2:
            return
        pure = pure_loss(pair)
        if pure is not None and 0 < pure <= LARGEST:
            found = ShuffledPair(min(self.full, MOST_REPORTS), epsilon=pure).unsampled_steps()
            if found is not None and len(found) == 1:
                yield found[0], 0.0
        start = _least_eps0(loss, (log_delta - math.log(times)), self.released)
        for shift in shifts if start is not None else ():
            eps0 = (start or 0.0) + shift
            if eps0 <= _FARTHEST:
                yield ClonedEpoch(loss, self.full, eps0), _slack(loss, eps0, self.released, log_delta - math.log(times))

    def witnesses(self, pair: Pair) -> Iterator[Neighbours]:
        """Yield data sets whose other records are all alike; the epoch is then a random allocation of one record.

        With a partial last batch that is kept the place is not uniform, and T uniform places need no more. With one that is
        dropped the record is nowhere with the dropped share.
        """
        loss = attained_loss(pair)
        count = self.full if self.dropped else self.released
        if loss is None or not fits(loss, count):
            return
        for name, direction in ((PAIR, "remove"), (SWAPPED, "add")):
            yield Neighbours(name, AllocatedBelow(loss, count, direction, rounded_up(self.dropped)))


def pure_loss(pair: Pair) -> Fraction | None:
    """Return a fraction above the largest loss of a pair; None if there is none, or a part of the mass has another loss."""
    curve = pair.curve()
    if curve.slack() or not math.isfinite(float(curve.pure())):
        return None
    with BALLS.at(128):
        return at_least(curve.pure(BALLS).upper())


# ---- the slack


@lru_cache(maxsize=64)
def _excess(loss: Loss, eps0: float, log_mass: float) -> float:
    """Return eta = H_A(P || Q) from above, A = e^eps0: the pair is symmetric, so both orders agree."""
    one = ratio_law(loss, _FINE, log_mass)
    gap = one.w * (1 + 4 * one.slip) - math.exp(eps0) * (1 - 4 * U)
    return float(raised(np.sum(one.q[gap > 0] * gap[gap > 0]) * (1 + one.error) + one.out + loss.leak, MANY))


def _slack(loss: Loss, eps0: float, released: int, log_delta: float) -> float:
    """Return (T-1) eta/A from above."""
    return float(raised((released - 1) * _excess(loss, eps0, _cut(log_delta)) * math.exp(-eps0), MANY))


def _cut(log_delta: float) -> float:
    return 16.0 * math.floor((log_delta - 30.0) / 16)


def _least_eps0(loss: Loss, log_delta: float, released: int) -> float | None:
    """Return the eps0 at which 2 (T-1) eta/A is a quarter of delta; None where that is beyond all that are tried."""
    aim = SLACK_SHARE * math.exp(log_delta) / 2

    def enough(eps0: float) -> bool:
        return _slack(loss, eps0, released, log_delta) <= aim

    low, high = 0.0, 1.0
    while not enough(high):
        low, high = high, 2 * high
        if high > _FARTHEST:
            return None
    return bisect(enough, low, high, width=_EPS0_WIDTH)[1]


# ---- the law of one epoch


@dataclass(frozen=True, slots=True)
class ClonedEpoch(Step):
    """One epoch of so many full batches by Theorem 3 at this eps0, without its slack; both orders of neighbours alike."""

    law: Loss
    batches: int
    eps0: float

    @property
    def leak(self) -> float:
        return 0.0

    def nodes(self, lam: float) -> tuple[Array, Array]:
        return thinned(*_losses(self, -48.0)[:2])

    def span(self, log_mass: float) -> tuple[float, float]:
        return span_of(*_losses(self, _rounded(log_mass))[:2], log_mass)

    def cells(self, step: float, log_mass: float) -> Cells:
        loss, log_p, lost, slip = _losses(self, _rounded(log_mass))
        return on_grid(loss, log_p, step, lost, slip, 8 * U)

    def own_delta(self, epsilon: float, log_mass: float) -> float:
        loss, log_p, lost, slip = _losses(self, _rounded(log_mass))
        gap = loss - (epsilon - slip)
        above = gap > 0
        return min(float(np.sum(np.exp(log_p[above]) * -np.expm1(-gap[above]))) * (1 + MANY) + lost, 1.0)


def _rounded(log_mass: float) -> float:
    return min(-48.0, 16.0 * math.floor(max(log_mass, -640.0) / 16))


@lru_cache(maxsize=32)
def _losses(epoch: ClonedEpoch, cut: float) -> tuple[Array, Array, float, float]:
    """Return the rising losses of an epoch from above, their log P-masses, the leak, and the slip of a loss.

    The masses contain their errors. Raises OverflowError if no grid holds the ratios.
    """
    with np.errstate(over="raise", invalid="raise", divide="ignore", under="ignore"):
        try:
            return _epoch_losses(epoch, cut)
        except FloatingPointError as error:
            raise OverflowError("no grid holds so large ratios") from error


def _epoch_losses(epoch: ClonedEpoch, cut: float) -> tuple[Array, Array, float, float]:
    """Return rising losses, log P-masses, leak and slip of an epoch, mixed over the number of clones."""
    allowed = _TRIM * math.exp(cut)
    numbers, weights, lost, error = _numbers(epoch.batches, epoch.eps0, allowed)
    one = ratio_law(epoch.law, _FINE, 16.0 * math.floor((cut - math.log(8 * epoch.batches)) / 16))
    sums = _sums(epoch.law, cut, int(numbers[0]), int(numbers[1] - numbers[0]) if numbers.size > 1 else 1, numbers.size)
    scale = max(float(np.sqrt(_variance(one) / numbers[0])), 1e-9) * 2
    gatherer = Gatherer.of_scale(scale, 800.0, upper=True)
    trimmed = 0.0
    for number, weight, (line, law, leak) in zip(numbers.tolist(), weights.tolist(), sums, strict=True):
        x, most = line.values(law), 2.0 * number
        finite = (x > 0) & (x < most) & (law.m > 0)
        q = weight * law.m * (most - x) / number
        trimmed += leak
        # a sum of 2 N has no Q-mass: an infinite loss, of P-mass 2 m
        lost += weight * 2 * float(np.sum(law.m[x >= most]))
        gatherer.add(np.log(x[finite] / (most - x[finite])), q[finite], q[finite])
        error = max(error, law.error)
    points, _, p_mass, gathered = gatherer.part(0.0)
    # each of N draws is out with probability `out`; the own one under P, and under Q likewise
    lost = raised(lost + 4 * trimmed + 2 * (epoch.batches + 1) * one.out + 1e-250, MANY)
    errors = error + gathered + _weight_error(numbers) + float(numbers[-1]) * (one.error + 64 * U)
    more = math.log1p(errors / (1 - errors)) if errors < 1 else math.inf
    slip = 4 * one.slip + 2**-40
    there = p_mass > 0
    return points[there], np.log(p_mass[there]) + more, min(lost, 1.0), slip


def _variance(one: Ratio) -> float:
    half = one.q * (1 + one.w) / 2
    return float(np.sum(half * (2 * one.w / (1 + one.w) - 1) ** 2))


def _weight_error(numbers: Array) -> float:
    return U * (256 + 64 * float(numbers[-1] - numbers[0] + 2))


def _numbers(batches: int, eps0: float, allowed: float) -> tuple[Array, Array, float, float]:
    """Return numbers N with their probabilities, grouped downwards, what was left out, and the relative error of them.

    N = 1 + Bin(t-1, 1/A). Small N whose probability is below what is allowed are left out; they count as infinite losses.
    """
    trials = min(batches, MOST_REPORTS) - 1
    with BALLS.at(128):
        p = (-BALLS.number(Fraction(eps0))).exp()
        odds = float((p / (1 - p)).log().mid())
        rate = float(p.mid())
        mean, deviation = trials * rate, math.sqrt(trials * rate * (1 - rate))
        reach = math.sqrt(-2 * math.log(allowed))
        low = max(0, math.floor(mean - reach * deviation))
        high = min(trials, math.ceil(mean + max(_DEVIATIONS * deviation, 2.0)))
        if high - low > _MOST_GROUPS * max(1, mean / _PER_GROUP):
            raise OverflowError("too many numbers of clones")
        centre = min(max(math.floor(mean), low), high)
        log_centre = float((_log_binomial(trials, centre) + centre * p.log() + (trials - centre) * (1 - p).log()).mid())
    k = np.arange(low, high + 1, dtype=np.float64)
    steps = np.log((trials - k[:-1]) / k[1:]) + odds if k.size > 1 else np.zeros(0)
    log_weight = np.empty(k.size)
    place = centre - low
    log_weight[place] = log_centre
    log_weight[place + 1 :] = log_centre + np.cumsum(steps[place:])
    log_weight[:place] = (log_centre - np.cumsum(steps[:place][::-1]))[::-1]
    weight = np.exp(log_weight)
    # what lies above goes to the last number, what lies below is left out (Chernoff)
    above = max(0.0, 1.0 - float(weight.sum()) * (1 - MANY))
    lost = _chernoff(low, trials, rate) if low > 0 else 0.0
    stride = max(1, 2 ** math.floor(math.log2(max(mean, 1.0) / _PER_GROUP))) if mean > _PER_GROUP else 1
    starts = np.arange(0, k.size, stride)
    grouped = np.add.reduceat(weight, starts)
    grouped[-1] += above
    kept = np.cumsum(grouped) > allowed
    first = int(np.argmax(kept))
    lost += float(grouped[:first].sum())
    return k[starts][first:] + 1, grouped[first:], float(raised(lost, MANY)), 0.0


def _chernoff(low: int, trials: int, rate: float) -> float:
    """Return a bound of the probability of less than `low` successes."""
    share = low / trials
    if not 0 < share < rate:
        return 1.0
    exponent = share * math.log(share / rate) + (1 - share) * math.log((1 - share) / (1 - rate))
    return math.exp(-trials * exponent * (1 - MANY) + 1e-9)


def _log_binomial(n: int, k: int) -> object:
    return BALLS.number(n + 1).lgamma() - BALLS.number(k + 1).lgamma() - BALLS.number(n - k + 1).lgamma()


_Sum = tuple[LinearGrid, Masses, float]


@lru_cache(maxsize=4)
def _singles(loss: Loss, cut: float) -> Masses:
    """Return L under M = (P+Q)/2 on a grid of [0, 2], cells split to their ends.

    Above 1 the place is counted from 2 down, so that 2 - L keeps its relative accuracy, too.
    """
    one = ratio_law(loss, _FINE, cut)
    half, step = one.q * (1 + one.w) / 2, 2.0 / _HALF_CELLS
    if loss.leak > 0:  # where P alone has mass L is 2
        half, w = np.append(half, loss.leak / 2), np.append(one.w, np.inf)
    else:
        w = one.w
    with np.errstate(over="ignore", invalid="ignore"):
        low = np.where(w <= 1, 2 * w / (1 + w), 0.0) / step
        high = np.where(w > 1, 2 / (1 + w), 0.0) / step
    cell = np.where(w <= 1, np.floor(low), _HALF_CELLS - 1 - np.floor(high)).astype(np.int64)
    up = np.where(w <= 1, low - np.floor(low), 1 - (high - np.floor(high)))
    order = np.argsort(cell, kind="stable")
    cell, up, half = cell[order], up[order], half[order]
    cell, up = np.where(cell < 0, 0, cell), np.where(cell < 0, 0.0, up)
    m = binned(cell, half * (1 - up), _HALF_CELLS + 2) + binned(cell + 1, half * up, _HALF_CELLS + 2)
    return Masses(0, without_dust(m[: _HALF_CELLS + 1]), None, 1, rounding_of(cell.size))


@lru_cache(maxsize=8)
def _sums(loss: Loss, cut: float, first: int, stride: int, count: int) -> tuple[_Sum, ...]:
    """Return the laws of X for N = first, first + stride, ..., each with what was trimmed of it."""
    last = first + stride * (count - 1)
    single = _singles(loss, 16.0 * math.floor((cut - math.log(8 * last)) / 16))
    allowed = _TRIM * math.exp(cut) / (4 * count + 64)
    trimmer = Trimmer(last, allowed)
    finest = LinearGrid(0.0, 2.0 / _HALF_CELLS)
    block_line, block, _ = power(finest, single, stride, trimmer, _CELLS)
    line, law, _ = power(finest, single, first, trimmer, _CELLS)
    found = [(line, law, trimmer.leak_q + trimmer.leak_p)]
    for _ in range(count - 1):
        while line.step < block_line.step:
            line, law = line.coarser(law)
        while block_line.step < line.step:
            block_line, block = block_line.coarser(block)
        line, law, block = trimmer.fitted(line, line.product(law, block), block, _CELLS)
        block_line = line
        found.append((line, law, 0.0))
    total = trimmer.leak_q + trimmer.leak_p
    return tuple((each[0], each[1], total if i == 0 else 0.0) for i, each in enumerate(found))
