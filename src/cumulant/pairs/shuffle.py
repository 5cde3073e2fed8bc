"""The pair of shuffled reports: the reports of others form a blanket that hides one of them.

See docs/mechanisms/shuffle.md.

Letters: E = e^e0, n reports, k values, o = 1 / (E + k - 1). Of the reports N, the own one among them, are on the blanket, each
of which is A, B or one of the other values alike; of a, b and d = N - a - b of them the ratio is (E a + b + d) / (a + E b + d).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np

from cumulant.errors import CertificateError
from cumulant.losses.atoms import AtomLoss
from cumulant.losses.cells import Grid, place_atoms
from cumulant.losses.grid import SMALLEST_LOSS, Loss
from cumulant.numerics.arithmetic import BALLS, Arithmetic, Array
from cumulant.numerics.enclosure import Enclosure
from cumulant.numerics.rounding import U
from cumulant.pairs.finite_losses import LossPair

LARGEST = 600
"""Largest e0 (nats); beyond it nothing is protected, shuffled or not."""

MOST_REPORTS = 10**8
"""Reports that are counted at most; more reports are never worse, so validity does not depend on it."""

_MOST_BALLS = 2 * 10**4
"""Reports up to which the profile of two values is summed in balls; chosen by hand, a bound of time."""

_MOST_SIZES = 1024
"""Blanket sizes up to which each is used; chosen by hand, fewer are never too small."""

_FEWER_SIZES = 512
"""Groups of blanket sizes if there are more; a group counts as its smallest size, which is worse."""

_MOST_TERMS = 5 * 10**6
"""Atoms beyond which the answers count as two, which dominates; a bound of time and memory."""

_FEW_TERMS = 5000
"""Terms up to which a sum over three counts is evaluated in balls; a bound of time."""

_CELLS = 1 << 13
"""Cells of the grid on which more losses are put by connect-the-dots, which dominates (docs/mechanisms/shuffle.md)."""

_TAIL = 75.0
"""Nats of the mass beyond a window in floats; e^-75 counts as the largest loss."""

_BALL_TAIL = 300
"""Nats of the mass beyond a window in balls; it is added to the ball."""

_NEGLIGIBLE = -60.0
"""Logarithm of the mass of the largest loss below which a grid takes it as a leak."""

_GUARD = 320
"""Bits beyond the working precision; the differences of the recurrence cancel."""

_NEAR = 1e-6
"""Distance of c N from an integer below which floats cannot tell the first term; the term is then added as a bound."""


@dataclass(frozen=True, slots=True)
class ShuffledPair(LossPair):
    """n shuffled reports of one randomizer, given by exact odds E or by epsilon = e0.

    The randomizer has `values` answers; 2 stands for any e0-DP randomizer.

    >>> ShuffledPair(1000, epsilon=Fraction(1)).profile([0.1])
    array([8.2...e-05])
    """

    reports: int
    odds: Fraction | None = None
    epsilon: Fraction = Fraction(0)
    values: int = 2

    attained = False

    def losses(self, on: Arithmetic) -> tuple[Array, Array]:
        known = _atoms(self)
        if on.exact and on is not BALLS:
            raise CertificateError("the losses of shuffled reports are not rational")
        if on.exact:
            from flint import arb

            x = [arb(each, known.slip) for each in known.loss.tolist()[:-1]]
            x.append(_odds(self).log() if self.odds is not None else BALLS.number(self.epsilon))
            return np.array(x, dtype=object), np.array(
                [arb(m, known.error) for m in known.log_mass.tolist()], dtype=object
            )
        if on.enclosing:
            radii = (np.full(known.loss.shape, radius) for radius in (known.slip, known.error))
            return tuple(
                Enclosure(mid, radius) for mid, radius in zip((known.loss, known.log_mass), radii, strict=True)
            )  # type: ignore[return-value]
        return known.loss, known.log_mass

    @property
    def equal(self) -> float:
        return _atoms(self).equal

    def loss(self) -> Loss | None:
        """Return the loss on a grid; what was left out is a leak, far above all other losses."""
        known = _atoms(self)
        x, log_q, top = known.loss[:-1], known.log_mass[:-1] - known.loss[:-1], float(known.log_mass[-1])
        if top > _NEGLIGIBLE or not x.size or x[0] <= SMALLEST_LOSS:
            return LossPair.loss(self)
        return AtomLoss(tuple(x.tolist()), tuple(log_q.tolist()), known.equal, math.exp(top) * (1 + known.error))

    @property
    def has_closed_form(self) -> bool:
        """True if the sums are short enough for balls."""
        if self.values == 2:
            return self.reports <= _MOST_BALLS
        return math.comb(self.reports + 3, 3) <= _FEW_TERMS

    @property
    def exact_labels(self) -> bool:
        """True unless more than two values have too many atoms, so that they count as two."""
        return _terms(self.reports, self.values) <= _MOST_TERMS

    def _exact_profile(self, epsilons: Array, on: Arithmetic) -> Array:
        """Return (1/n) E(a x+ + b x- + d x0)_+ over multinomial a, b, d, as balls.

        x+ = E - y, x- = 1 - E y, x0 = 1 - y, y = e^eps.
        """
        found = _pair_sum if self.values == 2 else _triple_sum
        return np.array([self._delta_ball(found, epsilon) for epsilon in epsilons], dtype=object)

    def _delta_ball(self, found: Any, epsilon: Fraction) -> Any:
        bits = BALLS.precision()
        with BALLS.at(bits + _GUARD):
            odds, y = _odds(self), BALLS.number(epsilon).exp()
            if not y < odds:
                return BALLS.number(0)
            return found(self.reports, self.values, odds, y).nonnegative_part()


def _odds(pair: ShuffledPair) -> Any:
    return BALLS.number(pair.epsilon).exp() if pair.odds is None else BALLS.number(pair.odds)


# ---- in balls


def _pair_sum(n: int, values: int, odds: Any, y: Any) -> Any:
    """Return delta for two values, by a recurrence over the size N of the blanket.

    Given N = a + b the sum over a >= m is (x+ - x-) [ (m/2) B(m) - (c - 1/2) N T(m) ], B the binomial, T its tail from
    m on; m is the first integer above c N, c = -x- / (x+ - x-). B and T go from one N to the next.
    """
    from flint import arb

    p = 2 / (1 + odds)
    c = (odds * y - 1) / ((odds - 1) * (1 + y))
    first, last, lost = _window(n, p, _BALL_TAIL)
    first = max(first, 1)
    weight = arb.bin_uiui(n, first) * p**first * (1 - p) ** (n - first)
    m = min(math.floor(float(c) * first) + 1, first)
    mass = arb.bin_uiui(first, m) / arb(2) ** first
    tail, term = arb(0), mass
    for a in range(m, first + 1):
        tail += term
        term = term * (first - a) / (a + 1)
    total, half, exact = arb(0), arb(1) / 2, float(c)
    for size in range(first, last + 1):
        total += weight * (mass * m / 2 - (c - half) * (size * tail))
        if abs(exact * size - round(exact * size)) < _NEAR:  # the sum may have begun one term too early or too late
            near = round(exact * size)
            gap = arb(near) - c * size
            if not (gap > 0 if near >= m else gap < 0):
                total += weight * abs(gap) * (mass if near >= m else mass * m / (size - m + 1))
        if size == last:
            break
        # from N to N + 1, then to the next m
        tail += mass * m / (2 * (size - m + 1))
        mass = mass * (size + 1) / (2 * (size + 1 - m))
        weight = weight * (n - size) / (size + 1) * p / (1 - p)
        if math.floor(exact * (size + 1)) + 1 > m:
            tail -= mass
            mass = mass * (size + 1 - m) / (m + 1)
            m += 1
    return (odds - 1) * (1 + y) * total / n + arb(0, 1) * lost * odds


def _window(n: int, p: Any, exponent: int) -> tuple[int, int, Any]:
    """Return the sizes between which Bin(n, p) lies, and a bound of the mass outside (Chernoff).

    The mass outside is at most twice e^-exponent, or 0.
    """
    rate = float(p)
    spread = math.sqrt(2 * exponent * n * rate * (1 - rate)) + exponent
    low, high = max(math.floor(n * rate - spread), 0), min(math.ceil(n * rate + spread), n)

    def beyond(size: int) -> Any:
        share = BALLS.number(Fraction(size, n))
        return (-n * (share * (share / p).log() + (1 - share) * ((1 - share) / (1 - p)).log())).exp()

    lost = BALLS.number(0)
    if low > 0:
        lost += beyond(low)
    if high < n:
        lost += beyond(high)
    return low, high, lost


def _triple_sum(n: int, values: int, odds: Any, y: Any) -> Any:
    """Return delta at e^epsilon = y as a ball, by the sum over the reports of three kinds."""
    from flint import arb

    share = 1 / (odds + values - 1)
    up, down, other = odds - y, 1 - odds * y, 1 - y
    rest, more = odds * share - share, (values - 2) * share  # off the blanket, and on it with another value
    total = arb(0)
    for a in range(1, n + 1):
        for b in range(min(a, n - a) + 1):
            here = arb.bin_uiui(n, a) * arb.bin_uiui(n - a, b) * share ** (a + b)
            for d in range(n - a - b + 1):
                value = (a * up + b * down + d * other).nonnegative_part()
                if value.is_zero():
                    break  # further ones only lower it
                total += here * arb.bin_uiui(n - a - b, d) * more**d * rest ** (n - a - b - d) * value
    return total / n


# ---- in floats


@dataclass(frozen=True, slots=True, eq=False)
class _Atoms:
    """Losses x > 0 with log of their P-masses, the errors of both, and the mass of p = q."""

    loss: Array
    log_mass: Array
    slip: float
    error: float
    equal: float


@lru_cache(maxsize=32)
def _atoms(pair: ShuffledPair) -> _Atoms:
    """Return the losses of the pair in floats, on cells if they are many."""
    with BALLS.at(128):
        odds = _odds(pair)
        e0, gain = float(odds.log().mid()), float((odds - 1).mid())
        values = pair.values if _terms(pair.reports, pair.values) <= _MOST_TERMS else 2
        sizes, log_weight, lost = _sizes(min(pair.reports, MOST_REPORTS), values, odds)
    parts = [_of_size(int(size), float(weight), values, gain) for size, weight in zip(sizes, log_weight, strict=True)]
    x, log_p = np.concatenate([part[0] for part in parts]), np.concatenate([part[1] for part in parts])
    lost += sum(part[2] for part in parts)
    steps = len(sizes) + max(part[3] for part in parts)
    equal = float(np.exp(log_p[x == 0]).sum())
    x, log_p = x[x > 0], log_p[x > 0]
    slip, error = 64 * U * (1 + e0), U * (64 + 16 * steps * _TAIL + 8 * float(np.max(np.abs(log_p), initial=0.0)))
    if x.size > _CELLS:
        x, log_p, more, moved, crowd = _on_cells(x, log_p)
        equal, slip, error = equal + more, slip + moved, error + crowd
    else:
        order = np.argsort(x, kind="stable")
        x, log_p = x[order], log_p[order]
    # the largest loss is that of b = d = 0, and what was left out counts as it
    largest = x > e0 * (1 - 64 * U)
    top = float(np.log(np.sum(np.exp(log_p[largest])) + lost + math.exp(-700.0)))
    x, log_p = np.append(x[~largest], e0), np.append(log_p[~largest], top)
    return _Atoms(x, log_p, slip, error, min(equal, 1.0))


def _terms(n: int, values: int) -> float:
    """Return about how many atoms there are."""
    if values == 2:
        return 0.0
    wide = 2 * math.sqrt(2 * _TAIL)
    return min(n, _few(values)) * math.prod(min(n, wide * math.sqrt(n / v) + _TAIL) for v in (values, 2 * values))


def _few(values: int) -> int:
    """Return the number of blanket sizes up to which every size is used."""
    return _MOST_SIZES if values == 2 else 64


def _sizes(n: int, values: int, odds: Any) -> tuple[Array, Array, float]:
    """Return the sizes N of the blanket, own report included, and log of their probabilities.

    N is 1 + Bin(n - 1, k o). Sizes nearby count as the smallest of them, because a larger blanket is never worse.
    """
    p = values / (odds + values - 1)
    low, high, lost = _window(n - 1, p, int(_TAIL)) if n > 1 else (0, 0, BALLS.number(0))
    count = np.arange(low, high + 1, dtype=np.float64)
    middle = min(max(math.floor((n - 1) * float(p)), low), high)
    steps = np.log(((n - 1) - count[:-1]) / count[1:]) + float((p / (1 - p)).log().mid())
    centre = _log_binomial(n - 1, middle) + middle * p.log() + (n - 1 - middle) * (1 - p).log()
    place = middle - low
    log_weight = np.empty(count.size)
    log_weight[place] = float(centre.mid())
    log_weight[place + 1 :] = log_weight[place] + np.cumsum(steps[place:])
    log_weight[:place] = (log_weight[place] - np.cumsum(steps[:place][::-1]))[::-1]
    fewer = max(64, min(_FEWER_SIZES, round(_MOST_TERMS / math.sqrt(_TAIL * n)))) if values == 2 else _few(values)
    stride = 1 if count.size <= _few(values) else -(-count.size // fewer)
    starts = np.arange(0, count.size, stride)
    top = float(log_weight.max())
    weight = np.add.reduceat(np.exp(log_weight - top), starts)
    there = weight > 0  # what underflows is far below what counts as the largest loss
    return count[starts][there] + 1, top + np.log(weight[there]), float(lost.upper())


def _of_size(size: int, log_weight: float, values: int, gain: float) -> tuple[Array, Array, float, int]:
    """Return losses and log P-masses of a blanket of this size where a >= b.

    Returns also the mass that was left out, and the length of the longest chain of factors.
    """
    found: list[tuple[Array, Array, float, int]] = []
    e = 1 + gain
    for both, log_share in _both(size, values):
        a, log_b, lost = _halves(both)
        b, d = both - a, size - both
        with np.errstate(divide="ignore"):
            # both of the labels A and B are as likely; the own report makes the one or the other law of the rest
            seen = np.log((e * a + b + d) * values / (size * (e + values - 1)))
        loss = np.log1p(gain * (a - b) / (a + e * b + d))
        found.append(
            (loss, log_weight + log_share + log_b + seen, math.exp(log_weight + log_share) * lost * values, a.size)
        )
    x, log_p = np.concatenate([each[0] for each in found]), np.concatenate([each[1] for each in found])
    return x, log_p, sum(each[2] for each in found), max(each[3] for each in found) + (size if values > 2 else 0)


def _both(size: int, values: int) -> list[tuple[int, float]]:
    """Return how many of a blanket are A or B, with log of the probability: Bin(size, 2/k)."""
    if values == 2:
        return [(size, 0.0)]
    share, count = 2 / values, np.arange(size + 1.0)
    steps = np.log((size - count[:-1]) / count[1:] * (share / (1 - share)))
    log_mass = size * math.log1p(-share) + np.append(0.0, np.cumsum(steps))
    return [(int(i), float(log_mass[int(i)])) for i in count[log_mass > -_TAIL]]


def _halves(size: int) -> tuple[Array, Array, float]:
    """Return a >= size / 2 with log of C(size, a) / 2^size, and the mass beyond (Hoeffding)."""
    start = -(-size // 2)
    reach = min(size, start + math.ceil(math.sqrt(_TAIL * size / 2)) + 1)
    a = np.arange(start, reach + 1, dtype=np.float64)
    with BALLS.at(128):
        centre = float((_log_binomial(size, start) - size * BALLS.number(2).log()).mid())
    log_b = centre + np.append(0.0, np.cumsum(np.log((size - a[:-1]) / a[1:])))
    lost = 0.0 if reach == size else math.exp(-2 * (reach + 1 - size / 2) ** 2 / size)
    return a, log_b, lost


def _log_binomial(n: int, k: int) -> Any:
    return (BALLS.number(n + 1)).lgamma() - BALLS.number(k + 1).lgamma() - BALLS.number(n - k + 1).lgamma()


def _on_cells(x: Array, log_p: Array) -> tuple[Array, Array, float, float, float]:
    """Put the losses on fewer points, split so that both laws keep their mass.

    Returns points, masses, the mass of 0, and both errors.
    """
    step = float(x.max()) / _CELLS
    grid = Grid(step, 0.0, 0, _CELLS + 2)
    left, right, atoms = (np.full(count, -np.inf) for count in (grid.count - 1, grid.count - 1, grid.count))
    moved, error = place_atoms(x, log_p, grid, left, right, atoms)
    log_mass = np.logaddexp(atoms, np.logaddexp(np.append(left, -np.inf), np.append(-np.inf, right)))
    there = (log_mass > -np.inf) & (np.arange(grid.count) > 0)
    # of a cell that begins at 0 a part of the mass goes there from both sides
    zero = 2 * math.exp(log_mass[0]) if log_mass[0] > -np.inf else 0.0
    return grid.points()[there], log_mass[there], zero, moved, error
