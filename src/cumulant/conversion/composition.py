"""Composition of (epsilon, delta) statements without curves (items 46 and 47, E-16).

These are the baselines of the paper.

Every function answers: k adaptive rounds, each (epsilon, delta)-DP; which epsilon holds for the whole at the given
total delta? +inf means that the rounds' own deltas leave nothing of the total. Rounding goes upward.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from cumulant.curves.closed_form import lemma3
from cumulant.domains import Exact, Number
from cumulant.numerics.arithmetic import Array
from cumulant.numerics.enclosure import BOUNDED
from cumulant.numerics.logspace import log_sum
from cumulant.numerics.rounding import FEW, FORMULA, LONG, U, raised, rounded_down, rounded_up

Round = tuple[Any, Any, int]
"""epsilon and delta of a round, as floats or as text, and how many such rounds there are."""

Method = Callable[[Iterable[Round], Number], float]
"""A composition theorem: (rounds, total delta) -> total epsilon."""

Step = tuple[Callable[[Array], Array], float, int, float]
"""A mechanism's epsilon at an array of deltas in [0, 1), the rate of the sample it runs on, how often it runs, and the least
delta at which it has an epsilon."""


def naive(rounds: Iterable[Round], delta: Number) -> float:
    """Basic composition: epsilons add, deltas add.

    >>> naive([(0.1, 1e-9, 10)], delta=1e-8)
    1.0000000000
    """
    rounds, delta = _numbers(rounds), _number(delta, up=False)
    if delta >= 1:
        return 0.0
    return _up(_sum(epsilon * times for epsilon, _, times in rounds)) if _within(rounds, delta) else math.inf


def theorem13(rounds: Iterable[Round], delta: Number) -> float:
    """Theorem 13 as printed: epsilon sqrt(2 k log(1/d)) + 2 k epsilon^2.

    The total delta is k delta_round + d.

    Valid for every epsilon, because Kairouz, Oh and Viswanath's k epsilon tanh(epsilon/2) is at most k epsilon^2 / 2.

    >>> round(theorem13([(0.01, 0, 1000)], delta=1e-6), 6)
    1.862258
    """
    return _azuma(rounds, delta, lambda epsilon: 2 * epsilon * epsilon)


def dwork_rothblum_vadhan(rounds: Iterable[Round], delta: Number) -> float:
    """Theorem 13 in its literature form: epsilon sqrt(2 k log(1/d)) + k epsilon (e^epsilon - 1).

    >>> round(dwork_rothblum_vadhan([(0.01, 0, 1000)], delta=1e-6), 6)
    1.76276
    """
    return _azuma(rounds, delta, lambda epsilon: epsilon * _expm1(epsilon))


def simplified(rounds: Iterable[Round], delta: Number) -> float:
    """Kairouz, Oh and Viswanath, Theorems 3.4 and 3.5: closed form, different rounds allowed.

    min{ S, T + sqrt(2 V log(e + sqrt(V)/d)), T + sqrt(2 V log(1/d)) }  with  S = sum epsilon,  V = sum epsilon^2,
    T = sum epsilon tanh(epsilon/2),  at the total delta 1 - (1-d) prod (1 - delta_round).

    >>> round(simplified([(0.01, 0, 1000)], delta=1e-6), 6)
    1.641491
    """
    rounds, delta = _numbers(rounds), _number(delta, up=False)
    if delta >= 1:
        return 0.0
    d = _remainder(rounds, delta)
    if d < 0:
        return math.inf
    total = _sum(epsilon * times for epsilon, _, times in rounds)
    if d == 0 or not math.isfinite(total):
        return _up(total)
    drift = _sum(times * epsilon * math.tanh(epsilon / 2) for epsilon, _, times in rounds)
    variance = _sum(times * epsilon * epsilon for epsilon, _, times in rounds)
    log_odds = min(math.log(math.e + math.sqrt(variance) / d), -math.log(d))
    return _up(min(total, drift + math.sqrt(2 * variance * log_odds)))


def optimal(rounds: Iterable[Round], delta: Number) -> float:
    """Kairouz, Oh and Viswanath, Theorem 3.3, between its grid points too.

    It is the least epsilon of these rounds.

    No better number follows from (epsilon, delta) alone: it is attained by a product of randomized responses. The exact
    answer for many different kinds of rounds is hard to compute (Murtagh and Vadhan: #P-complete). Where `is_exact` says
    no, this is `simplified`.

    >>> round(optimal([(0.01, 0, 1000)], delta=1e-6), 6)
    1.365447
    >>> optimal([(0.01, 0, 1)], delta=0.001) < 0.01
    True
    >>> mixed = [(0.01, 0, 1000), (0.3, 1e-8, 4)]
    >>> round(optimal(mixed, delta=1e-6), 4), round(simplified(mixed, delta=1e-6), 4)
    (2.4078, 3.7487)
    """
    rounds, delta = _kinds(_numbers(rounds)), _number(delta, up=False)
    if delta >= 1 or not is_exact(rounds, delta):
        return simplified(rounds, delta)
    d = _remainder(rounds, delta)
    if d < 0:
        return math.inf
    total = _sum(times * epsilon for epsilon, _, times in rounds)
    if d == 0 or total == 0 or not math.isfinite(total):
        return _up(total)
    if len(rounds) == 1:
        ((epsilon, _, times),) = rounds
        found = _log_largest_ratio(epsilon, times, d)
    else:
        found = _log_largest_product_ratio(rounds, d)
    return _up(total if math.isnan(found) else min(total, max(0.0, found)))  # max would turn NaN into 0


def is_exact(rounds: Iterable[Round], delta: Number) -> bool:
    """Return whether `optimal` computes the exact composition of these rounds.

    Otherwise it uses `simplified`.

    >>> is_exact([(0.01, 0, 600_000), (0.1, 0, 12)], delta=1e-6)
    True
    >>> is_exact([(0.1 + 0.01 * i, 0, 9) for i in range(20)], delta=1e-6)
    False
    """
    rounds, delta = _kinds(_numbers(rounds)), _number(delta, up=False)
    if sum(times for *_, times in rounds) > _MOST_TIMES or not all(math.isfinite(epsilon) for epsilon, *_ in rounds):
        return False
    if len(rounds) <= 1 or delta >= 1:
        return True
    d = _remainder(rounds, delta)
    return d <= 0 or (d >= _LEAST_DELTA and _outcomes(rounds, d) <= _MOST_OUTCOMES)


def _kinds(rounds: Iterable[Round]) -> tuple[Round, ...]:
    """The rounds with equal ones gathered: one entry for each (epsilon, delta)."""
    counts: dict[tuple[float, float], int] = {}
    for epsilon, round_delta, times in rounds:
        counts[epsilon, round_delta] = counts.get((epsilon, round_delta), 0) + times
    return tuple((epsilon, round_delta, times) for (epsilon, round_delta), times in counts.items())


def optimal_delta(epsilon: Number, round_delta: Number, times: int, total_epsilon: Number) -> float:
    """Return the total delta of k equal rounds at a total epsilon e.

    It is 1 - (1-delta)^k (1 - sum_l p_l (1 - e^e q_l/p_l)_+).

    >>> round(optimal_delta(0.01, 0, 1000, total_epsilon=1.365447) * 1e6, 4)
    1.0
    """
    epsilon, round_delta, total_epsilon = _number(epsilon), _number(round_delta), _number(total_epsilon, up=False)
    if not total_epsilon < times * epsilon * (1 + 2 * U):
        own = 0.0
    elif times > _MOST_TIMES or not math.isfinite(times * epsilon):
        return 1.0
    else:
        own = min(1.0, _excess_mass(epsilon, times, total_epsilon))
    # 1 - (1-delta)^k (1-s) = s + (1-s) (1 - (1-delta)^k)
    total = own + (1 - own) * -math.expm1(times * _log1m(round_delta))
    return _up(total) if total < 1 else 1.0


def optimised(steps: Iterable[Step], delta: Number, method: Method) -> float:
    """Item 47: the least total epsilon over the choice of the delta of each round.

    See `optimised_rounds`.

    >>> gaussian = lambda d: 1 / 50 + np.sqrt(2 * np.log(1 / d)) / 5  # eq. (3) at sigma = 5
    >>> round(optimised([(gaussian, 0.001, 1000, 0.0)], delta=1e-8, method=optimal), 3)
    0.396
    """
    return optimised_rounds(steps, delta, method)[0]


def optimised_rounds(steps: Iterable[Step], delta: Number, method: Method) -> tuple[float, tuple[Round, ...]]:
    """Return the least total epsilon with the rounds as they are stated on the data.

    `method(rounds, delta)` is that epsilon; there are no rounds if it is infinite.

    A round that is (e, d)-DP on a sample of rate g is (log(1 + g (e^e - 1)), g d)-DP on the data (Lemma 3). Every
    choice of d is valid. Rounds share alike what their least deltas leave of the total: nothing of it (pure DP), or from
    5e-5 of it to all, searched on a grid that is refined around its best point.

    >>> gaussian = lambda d: 1 / 50 + np.sqrt(2 * np.log(1 / d)) / 5
    >>> total, ((epsilon, round_delta, times),) = optimised_rounds([(gaussian, 0.001, 1000, 0.0)], 1e-8, optimal)
    >>> round(epsilon, 5), round(round_delta * times / 1e-8, 2), optimal([(epsilon, round_delta, times)], 1e-8) == total
    (0.0025, 0.53, True)
    """
    steps = tuple((curve, _number(rate), times, _number(own)) for curve, rate, times, own in steps)
    delta = _number(delta, up=False)
    if delta >= 1:
        return 0.0, ()
    count = sum(times for _, _, times, _ in steps)
    least_deltas = [(0.0, _scaled(own, rate), times) for _, rate, times, own in steps]
    if method(least_deltas, delta) == math.inf:
        return math.inf, ()
    # what the least deltas leave, alike for each round: by naive composition in sums, by the others in products
    rest = (
        delta - _sum(own * times for _, own, times in least_deltas)
        if method is naive
        else _remainder(least_deltas, delta)
    )

    def stated(logits: Array) -> list[tuple[Round, ...]]:
        # the share is 1 / (1 + e^-logit): logit -inf is pure DP, +inf spends everything on the rounds
        share = max(rest, 0.0) / (1 + np.exp(-logits)) / count * (1 - 16 * U)
        rows = []
        for (epsilon_of_delta, rate, times, own), (_, least_delta, _) in zip(steps, least_deltas, strict=True):
            round_delta = least_delta + (1.0 if method is naive else 1 - least_delta) * share
            rows.append((_amplified(epsilon_of_delta, rate, round_delta, own), round_delta, times))
        return [
            tuple((float(row[i]), float(spent[i]), times) for row, spent, times in rows) for i in range(logits.size)
        ]

    def totals(rounds: Iterable[tuple[Round, ...]]) -> list[tuple[float, tuple[Round, ...]]]:
        found = [(method(each, delta), each) for each in rounds]
        return [(value, each) if value >= 0 else (math.inf, each) for value, each in found]

    with np.errstate(all="ignore"):
        logits = np.array([-np.inf, *SHARE_LOGITS, np.inf]) if delta > 0 else np.array([-np.inf])
        found = totals(stated(logits))
        least, best = min(found), int(np.argmin([value for value, _ in found]))
        if best > 0 and delta > 0:
            best = min(max(best, 2), logits.size - 3)
            low, high = logits[best - 1], logits[best + 1]
            for _ in range(SHARE_REFINEMENTS):
                logits = np.linspace(low, high, 11)
                found = totals(stated(logits[1:-1]))
                centre = int(np.argmin([value for value, _ in found])) + 1
                low, high = logits[centre - 1], logits[centre + 1]
                least = min(least, *found)
        return least if least[0] < math.inf else (math.inf, ())


SHARE_LOGITS = (
    -10.0,
    -7.0,
    -5.0,
    -3.5,
    -2.5,
    -1.5,
    -0.75,
    0.0,
    0.75,
    1.5,
    2.5,
    3.5,
    5.0,
    7.0,
    10.0,
    14.0,
    18.0,
    22.0,
    28.0,
)
"""Logits of the shares of delta that are tried for the rounds; any choice is valid."""

SHARE_REFINEMENTS = 4
"""Refinements between the best share and its neighbours."""


def _numbers(rounds: Iterable[Round]) -> tuple[Round, ...]:
    """Return the rounds with epsilons and deltas as floats, whichever way they are written."""
    return tuple((_number(epsilon), _number(round_delta), times) for epsilon, round_delta, times in rounds)


def _number(value: Number, up: bool = True) -> float:
    """Return a float for a number that may be text.

    The float prints as the number, else it is the next one up, or down.
    """
    if isinstance(value, float):
        return value
    exact = Exact(value)
    nearest = float(exact)
    if Exact(nearest) == exact:
        return nearest
    return rounded_up(exact) if up else rounded_down(exact)


def _scaled(own: float, rate: float) -> float:
    """own * rate, rounded up; 0 and a product with 1 are exact."""
    return float(raised(own * rate, FEW)) if rate < 1 else own


def _amplified(epsilon_of_delta: Callable[[Array], Array], rate: float, round_delta: Array, least: float) -> Array:
    """Return Lemma 3, upward: epsilon on the data of a round that may spend round_delta there.

    round_delta is at least the least delta of its mechanism times the rate; the result is 0 if it is the rate.
    """
    own = np.minimum(np.maximum(round_delta / rate * (1 - 4 * U), least), 1.0)
    base = np.maximum(np.where(round_delta < rate, epsilon_of_delta(own), 0.0), 0.0)
    return lemma3(BOUNDED.asarray(base), BOUNDED.number(rate), BOUNDED).upper() if rate < 1 else base


def _azuma(rounds: Iterable[Round], delta: Number, drift: Callable[[float], float]) -> float:
    """Return sum drift(epsilon) + sqrt(2 log(1/d) sum epsilon^2).

    That is Azuma's inequality for losses bounded by epsilon.
    """
    rounds, delta = _numbers(rounds), _number(delta, up=False)
    if delta >= 1:
        return 0.0
    spent = _sum(round_delta * times for _, round_delta, times in rounds)
    d = (delta - spent) - 4 * U * (delta + spent)
    if not d > 0:
        return math.inf
    mean = _sum(times * drift(epsilon) for epsilon, _, times in rounds)
    variance = _sum(times * epsilon * epsilon for epsilon, _, times in rounds)
    return _up(mean + math.sqrt(2 * variance * -math.log(d)))


def _remainder(rounds: Iterable[Round], delta: float) -> float:
    """Return d with (1-d) prod (1 - delta_round) = 1 - delta, rounded down.

    It is negative if the rounds alone spend more.
    """
    rounds = tuple(rounds)
    if not any(round_delta for _, round_delta, _ in rounds):
        return delta
    # d = 1 - (1-delta) / prod (1-delta_round)
    log_keep, log_rest = math.log1p(-delta), _sum(times * _log1m(round_delta) for _, round_delta, times in rounds)
    d = -math.expm1(log_keep - log_rest) - 32 * U * (abs(log_keep) + abs(log_rest)) if log_keep < log_rest else -1.0
    if d >= 0:
        return d
    # too close for floats: the exact sum of the deltas decides, because prod (1-delta_round) >= 1 - sum delta_round
    return 0.0 if _within(rounds, delta) else -1.0


def _within(rounds: Iterable[Round], delta: float) -> bool:
    """True if the rounds' deltas sum to at most delta, exactly.

    Floats are the decimals they print as.
    """
    spent = [(round_delta, times) for _, round_delta, times in rounds]
    known = all(math.isfinite(round_delta) for round_delta, _ in spent)
    return known and sum(Exact(round_delta) * times for round_delta, times in spent) <= Exact(delta)


# --- k-fold randomized response: under p the flips l are binomial(k, 1/(1+e^epsilon)), and p_l/q_l = e^{(k-2l) epsilon}

_MOST_TIMES = 10**11
"""Above it the window of flips would not fit into memory, and the closed form is as good."""

_MOST_FLIPS = 2**24
"""The longest window that is summed term by term; a longer one reaches far into the tail, where Chernoff answers."""


def _log_masses(epsilon: float, times: int, low: int, high: int) -> Array:
    """log p_l - log p_low for l = low … high: cumulative sums of log((k-l)/(l+1)) - epsilon."""
    flips = np.arange(low, high, dtype=np.float64)
    return np.concatenate([[0.0], np.cumsum(np.log((times - flips) / (flips + 1)) - epsilon)])


def _reach(epsilon: float, times: int, log_tail: float) -> tuple[int, int]:
    """Return low with P(l < low) <= e^-log_tail (Chernoff), and high.

    high is at least nine standard deviations above the mean.
    """
    mean = times * math.exp(-float(np.logaddexp(0.0, epsilon)))
    low = math.floor(mean - math.sqrt(2 * mean * log_tail))
    return max(low, 0), min(math.ceil(mean + 9 * math.sqrt(mean) + 40), times)


def _log_largest_ratio(epsilon: float, times: int, d: float) -> float:
    """Return log max_m (P(l <= m) - d) / Q(l <= m).

    It is the least total epsilon whose delta is at most d.

    delta(e) = max_m P(l <= m) - e^e Q(l <= m) <= d for e at least that ratio at every m. The points (Q, P) lie on a
    concave curve, so the ratio has one maximum; P(l <= m) > d at it, so nothing below the window matters. What the
    window leaves out lowers Q and the norm, which errs upward, or lowers P by at most e^-40 d, which is added.
    """
    low, high = _reach(epsilon, times, 40 - math.log(d))
    while True:
        log_mass = _log_masses(epsilon, times, low, high)
        m = np.arange(high - low + 1, dtype=np.float64)
        top = float(log_mass.max())
        log_norm = float(log_sum(log_mass))
        log_p = np.logaddexp.accumulate(log_mass)
        log_q = np.logaddexp.accumulate(log_mass + 2 * epsilon * m) - 2 * epsilon * m  # times e^{(k-2m-2low) epsilon}
        error = 4 * U * (m.size * (1 + top + 2 * epsilon * m) - math.log(d))
        with np.errstate(all="ignore"):
            above = log_p - log_norm + error - math.log(d) + 4 * U
            ratio = math.log(d) + np.log(np.expm1(np.maximum(above, 0.0))) - (log_q - log_norm) + error
            ratio += (times - 2 * low - 2 * m) * epsilon
        best = int(np.argmax(ratio))
        if best < ratio.size - 1 or high == times:
            return float(ratio[best])
        high = min(times, 2 * high)


def _excess_mass(epsilon: float, times: int, total_epsilon: float) -> float:
    """Return sum_l p_l (1 - e^{e - (k-2l) epsilon})_+, every term positive.

    The first term of the window bounds those below it.
    """
    last = min(math.ceil((times * epsilon - total_epsilon) / (2 * epsilon)), times)
    low, high = _reach(epsilon, times, 80.0)
    low, high = min(low, max(0, last - math.ceil(math.sqrt(160.0 * last)))), max(high, last)
    if high - low > _MOST_FLIPS:
        mean = times * math.exp(-float(np.logaddexp(0.0, epsilon)))
        return math.exp(-(max(mean - last, 0.0) ** 2) / (2 * mean)) * (1 + LONG) + sys.float_info.min  # Chernoff
    log_mass = _log_masses(epsilon, times, low, high)
    top = float(log_mass.max())
    mass = np.exp(log_mass - top)
    loss = (times - 2 * np.arange(low, last + 1, dtype=np.float64)) * epsilon
    excess = -np.expm1(np.minimum(total_epsilon - loss, 0.0))
    error = 4 * U * mass.size * (1 + float(np.ptp(log_mass)))
    found = float(mass[: last - low + 1] @ excess) * (1 + error) + low * float(mass[0]) + sys.float_info.min
    return float(found / (float(mass.sum()) * (1 - error)))


_MOST_OUTCOMES = 2**18
"""The largest number of combinations of flips that is enumerated for rounds of several kinds.

Measured: about 25 ms for one answer, and the search for the delta of each round asks for about fifty."""

_PRODUCT_TAIL = 40.0
"""Flips are left out where their probability is below e^-40 of the delta that is left, which is added to the answer."""

_LEAST_DELTA = 1e-290
"""Below it the masses of the product would leave the range of floats; the closed form answers there."""

_BLOCK = 512
"""The length of the blocks of a cumulative sum: rounding grows with it and with the number of blocks, not with all terms."""

_WIDEST_BLOCK = 600.0
"""The range of logarithms in one block up to which its sum is taken in floats; derived: e^-745 is the least float.

Beyond it the first terms of a block would vanish beside its last one, and their sums with them."""


def _windows(rounds: tuple[Round, ...], d: float) -> list[tuple[int, int]]:
    """The smallest and the largest number of flips that count, for each kind of round."""
    log_tail = _PRODUCT_TAIL - math.log(d) + math.log(len(rounds))
    return [_reach(epsilon, times, log_tail) for epsilon, _, times in rounds]


def _outcomes(rounds: tuple[Round, ...], d: float) -> int:
    """The number of combinations of flips that are enumerated."""
    return math.prod(high - low + 1 for low, high in _windows(rounds, d))


def _log_largest_product_ratio(rounds: tuple[Round, ...], d: float) -> float:
    """Return log of the largest (P(A) - d) / Q(A) over sets A of large loss, rounded up.

    The l_i flips of k_i rounds have loss (k_i - 2 l_i) epsilon_i, and losses of different kinds add. Windows leave out
    few flips, by at most e^-40 d in P, which is added, and many flips, by an event K' of probability c'. A and the
    complement of K' fall with every l_i, so P(A) <= P(A | not K') (Harris), which costs -log(1 - c') in epsilon.
    """
    log_mass, loss, missing, widest = np.zeros(1), np.zeros(1), 0.0, 0.0
    for (epsilon, _, times), (low, high) in zip(rounds, _windows(rounds, d), strict=True):
        own = _log_masses(epsilon, times, low, high)
        own -= float(log_sum(own))
        log_mass = np.add.outer(log_mass, own).ravel()
        loss = np.add.outer(loss, (times - 2 * np.arange(low, high + 1, dtype=np.float64)) * epsilon).ravel()
        missing += _many_flips(epsilon, times, high)
        widest += U * (own.size * (1 + 2 * float(np.ptp(own))) + 4 * times * epsilon)
    order = np.argsort(-loss)
    log_mass, loss = log_mass[order], loss[order]
    log_p, log_q = _log_cumulative(log_mass), _log_cumulative(log_mass - loss)
    size = float(np.max(np.abs(log_mass)) + np.max(np.abs(loss)))
    # a wide block takes a step for each term
    steps = loss.size / _BLOCK + 8 + (_BLOCK if size > _WIDEST_BLOCK / 2 else 0)
    error = widest + 4 * U * (2 * _BLOCK + steps * (1 + size) - math.log(d))
    with np.errstate(all="ignore"):
        above = log_p + error + math.exp(-_PRODUCT_TAIL) - math.log(d)
        ratio = math.log(d) + np.log(np.expm1(np.maximum(above, 0.0))) - log_q + error
    return float(np.max(ratio)) + 2 * missing + error


def _many_flips(epsilon: float, times: int, high: int) -> float:
    """Return an upper bound of P(more than `high` flips in so many rounds) (Bernstein)."""
    if high >= times:
        return 0.0
    mean = times * math.exp(-float(np.logaddexp(0.0, epsilon)))
    beyond = high - mean
    return math.exp(-(beyond**2) / (2 * (mean + beyond / 3)))


def _log_cumulative(log_terms: Array) -> Array:
    """Return the logarithms of the cumulative sums of e^log_terms, block by block.

    Blocks keep the rounding small.

    A block that is wider than floats reach is summed in logarithms, term by term.
    """
    padded = np.full(-(-log_terms.size // _BLOCK) * _BLOCK, -np.inf)
    padded[: log_terms.size] = log_terms
    blocks = padded.reshape(-1, _BLOCK)
    top = blocks.max(axis=1, keepdims=True)
    with np.errstate(divide="ignore"):
        inside = np.log(np.cumsum(np.exp(blocks - top), axis=1)) + top
    wide = blocks.min(axis=1, where=blocks > -np.inf, initial=math.inf) < top[:, 0] - _WIDEST_BLOCK
    inside[wide] = np.logaddexp.accumulate(blocks[wide], axis=1)
    before = np.concatenate([[-np.inf], np.logaddexp.accumulate(inside[:, -1])[:-1]])
    return np.asarray(np.logaddexp(before[:, None], inside)).ravel()[: log_terms.size]


def _log1m(delta: float) -> float:
    return math.log1p(-delta) if delta < 1 else -math.inf


def _expm1(x: float) -> float:
    return math.expm1(x) if x < 700 else math.inf


def _up(x: float) -> float:
    """Return a number above the true value of a short formula; NaN becomes +inf.

    The formula has a few functions and operations, each wrong by 8u at most.
    """
    return float(raised(x, FORMULA)) if x < math.inf else math.inf


def _sum(terms: Iterable[float]) -> float:
    try:
        return math.fsum(terms)
    except OverflowError:
        return math.inf
