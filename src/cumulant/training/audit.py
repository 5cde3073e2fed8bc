"""Audits: evidence from attacks on real runs against a claimed guarantee.

A claim is a list of epsilons and deltas that are said to hold together, such as `run.delta(epsilons)` of a run. No attack on
what satisfies them has a true positive rate above

    f(x) = min over k of { 1, d_k + e^{e_k} x, 1 - e^{-e_k} (1 - d_k - x) }

at the false positive rate x; any list is sound, and more points say more. An audit refutes a claim or is consistent with it; it
never verifies one. A p-value is about the code that was audited, in the configuration that was audited.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import special

from cumulant.domains import DELTA, EPSILON, Domain, Number, listed
from cumulant.errors import InputError, shown
from cumulant.numerics.rounding import rounded_down, rounded_up
from cumulant.numerics.search import bisect, bisect_rows

if TYPE_CHECKING:
    from cumulant.mechanisms.mechanism import Expression

Floats = np.ndarray[Any, np.dtype[np.float64]]

LEVEL = Domain(DELTA.low, DELTA.high, hint="the level is the probability of a false alarm")
LARGEST_EPSILON = 700.0
HALVINGS = 60
"""Halvings in which an epsilon is bracketed; derived: a float has 53 bits."""

LOG_HALVINGS = 36
"""Halvings in which the logarithm of a level is bracketed; convention."""

THRESHOLDS = 100
"""Scores that are tried as thresholds, evenly spaced among those of the first half of the runs."""

POINTS = 61
"""Epsilons of a claim that is read from a run."""

SAFE = 1 + 1e-11
"""Binomial tails are right to about 13 digits."""


# ---- claims


@dataclass(frozen=True, slots=True, eq=False)
class Claim:
    """Epsilons and deltas that are claimed together, and the error rates they allow an attack.

    >>> claim = Claim([0, 1], [0.5, 0])
    >>> claim.true_positive_rate(np.array([0.1])), claim.false_positive_rate(np.array([0.27182818]))
    (array([0.27182818]), array([0.1]))
    """

    epsilons: Floats
    deltas: Floats
    _grown: Floats  # e^epsilon
    _shrunk: Floats  # e^-epsilon

    def __init__(self, epsilons: Iterable[Number], deltas: Iterable[Number]) -> None:
        e = [rounded_up(EPSILON.check("epsilons", value)) for value in listed("epsilons", epsilons)]
        d = [rounded_up(DELTA.check("deltas", value)) for value in listed("deltas", deltas)]
        if not e or len(e) != len(d):
            raise InputError(f"{len(e)} epsilons and {len(d)} deltas: a claim has one delta for each epsilon")
        kept = [(x, y) for x, y in zip(e, d, strict=True) if x <= LARGEST_EPSILON] or [(0.0, 1.0)]
        points = np.array(kept)
        object.__setattr__(self, "epsilons", points[:, 0].copy())
        object.__setattr__(self, "deltas", points[:, 1].copy())
        object.__setattr__(self, "_grown", np.exp(self.epsilons))
        object.__setattr__(self, "_shrunk", np.exp(-self.epsilons))

    @classmethod
    def of(cls, run: Expression, delta: Number = "1e-9", points: int = POINTS) -> Claim:
        """Return the claim that is proved about a run, from epsilon 0 to the one at this delta.

        >>> import cumulant as cm
        >>> claim = Claim.of(cm.Gaussian(sigma=1), points=5)
        >>> float(claim.deltas[0])
        0.3829
        """
        largest = run.epsilon(delta)
        if not math.isfinite(largest):
            raise InputError(f"nothing finite is proved about {run} at delta={delta}, so there is no claim to audit")
        epsilons = np.linspace(0.0, largest, points)
        return cls(epsilons.tolist(), run.delta(epsilons.tolist()).tolist())

    def true_positive_rate(self, x: Floats) -> Floats:
        """Return f: the largest true positive rates at these false positive rates."""
        x = np.asarray(x)[..., None]
        most = np.minimum(self.deltas + self._grown * x, 1 - self._shrunk * (1 - self.deltas - x))
        return np.asarray(np.minimum(np.min(most, axis=-1), 1.0))

    def false_positive_rate(self, y: Floats) -> Floats:
        """Return the smallest false positive rates at these true positive rates, the inverse of f."""
        y = np.asarray(y)[..., None]
        least = np.maximum((y - self.deltas) * self._shrunk, 1 - self.deltas - self._grown * (1 - y))
        return np.asarray(np.maximum(np.max(least, axis=-1), 0.0))


# ---- one run with canaries


def one_run_p_value(*, canaries: int, guesses: int, correct: int, epsilon: Number, delta: Number) -> float:
    """Bound the probability of so many right guesses if each coin is (epsilon, delta)-private.

    There is one coin for each canary.

    Each of the canaries is in or out by a fair coin (under replace-one: one record or another in its place); the auditor
    guesses some of the coins, as many as was fixed in advance. Steinke, Nasr and Jagielski 2023, Theorem 5.2: with
    B ~ Bin(guesses, 1 / (1 + e^-epsilon)),

        P[>= c right] <= P[B >= c] + 2 m delta max over i of P[c > B >= c - i] / i.

    >>> one_run_p_value(canaries=1000, guesses=1000, correct=600, epsilon=0.2, delta=0)
    0.000765233
    """
    m, r, c = _counts(canaries, guesses, correct)
    asked = EPSILON.check("epsilon", epsilon), DELTA.check("delta", delta)
    return _steinke(m, r, c, rounded_up(asked[0]), rounded_up(asked[1]))


def one_run_epsilon(*, canaries: int, guesses: int, correct: int, delta: Number, level: Number) -> float:
    """Return the largest epsilon that so many right guesses refute at this delta.

    It is a lower bound with confidence 1 - level.

    >>> one_run_epsilon(canaries=1000, guesses=600, correct=600, delta=1e-5, level=0.05)
    5.270399
    """
    m, r, c = _counts(canaries, guesses, correct)
    d, alpha = rounded_up(DELTA.check("delta", delta)), rounded_down(LEVEL.check("level", level))
    # every epsilon that is refuted is a lower bound, for P[>= c right] is bounded by each of them
    low, high = 0.0, LARGEST_EPSILON
    if _steinke(m, r, c, low, d) > alpha:
        return 0.0
    return bisect(lambda epsilon: _steinke(m, r, c, epsilon, d) > alpha, low, high, halvings=HALVINGS)[0]


def one_run_curve_p_value(
    *, canaries: int, guesses: int, correct: int, epsilons: Iterable[Number], deltas: Iterable[Number]
) -> float:
    """Bound the probability of so many right guesses if the claimed curve holds.

    All the claimed epsilons and deltas hold together.

    The smaller of `greedy_p_value` and of Steinke's bound at every point: all bound the same probability.

    >>> claim = {"epsilons": [1], "deltas": [0]}
    >>> one_run_curve_p_value(canaries=40, guesses=40, correct=36, **claim)
    0.00826724
    """
    return p_value(Claim(epsilons, deltas), canaries=canaries, guesses=guesses, correct=correct)


def p_value(claim: Claim, *, canaries: int, guesses: int, correct: int) -> float:
    """Bound the probability of so many right guesses under a claim that was read before."""
    m, r, c = _counts(canaries, guesses, correct)
    points = zip(claim.epsilons.tolist(), claim.deltas.tolist(), strict=True)
    return min(_greedy(m, r, c, claim), *(_steinke(m, r, c, e, d) for e, d in points))


def greedy_p_value(
    *, canaries: int, guesses: int, correct: int, epsilons: Iterable[Number], deltas: Iterable[Number]
) -> float:
    """Bound the probability of so many right guesses by the whole claimed curve.

    See Mahloujifar, Melis, Chaudhuri 2024.

    With p_j = P[j right], every set V of counts has SUM_V (j/m) p_j <= f(SUM_V ((R-j+1)/m) p_{j-1}). The largest P[>= c]
    under all tails V = {j..R} puts its mass from c downwards, as little as is allowed at each count.

    >>> greedy_p_value(canaries=40, guesses=40, correct=36, epsilons=[1], deltas=[0])
    0.00866558
    """
    m, r, c = _counts(canaries, guesses, correct)
    return _greedy(m, r, c, Claim(epsilons, deltas))


def _counts(canaries: int, guesses: int, correct: int) -> tuple[int, int, int]:
    m, r, c = (
        _count(name, value) for name, value in (("canaries", canaries), ("guesses", guesses), ("correct", correct))
    )
    if not 0 <= c <= r <= m or m < 1:
        raise InputError(f"correct={c}, guesses={r}, canaries={m} must grow in this order, and canaries be at least 1")
    return m, r, c


def _count(name: str, value: Any) -> int:
    try:
        if isinstance(value, bool | np.bool_):
            raise TypeError
        return operator.index(value)
    except TypeError:
        raise InputError(f"{name}={shown(value)} must be a whole number") from None


def _steinke(m: int, r: int, c: int, epsilon: float, delta: float) -> float:
    if c == 0:
        return 1.0
    q = float(special.expit(epsilon))
    beta = float(special.betainc(c, r - c + 1, q))
    if delta > 0:
        below = np.arange(c - 1, -1, -1)
        log_pmf = (
            special.gammaln(r + 1)
            - special.gammaln(below + 1)
            - special.gammaln(r - below + 1)
            + special.xlogy(below, q)
            + special.xlogy(r - below, special.expit(-epsilon))
        )
        rounded = 1 + 1e-14 * r  # logarithms of factorials have some units of r in their last digit
        beta += 2 * m * delta * rounded * float(np.max(np.cumsum(np.exp(log_pmf)) / np.arange(1, c + 1)))
    return min(1.0, beta * SAFE)


def _greedy(m: int, guesses: int, correct: int, claim: Claim) -> float:
    """Halve from above to the smallest probability of `correct` right guesses.

    Below it the recursion leads to more than everything.
    """

    def contradicted(level: float) -> bool:
        r, h = level * correct / m, level * (guesses - correct) / m
        for j in range(correct - 1, -1, -1):
            grown = max(h, float(claim.false_positive_rate(np.array(r))))
            r, h = r + j / (guesses - j) * (grown - h), grown
            if r + h > SAFE * guesses / m:
                return True
        return False

    low, high = 0.0, 1.0
    if not contradicted(high):
        return 1.0
    while high - low > 1e-12 * high and high > 1e-300:
        middle = (low + high) / 2 if low > 0 else high / 16
        low, high = (low, middle) if contradicted(middle) else (middle, high)
    return min(1.0, high * SAFE)


# ---- many runs


@dataclass(frozen=True, slots=True)
class ManyRuns:
    """The result of many runs: counts on one half of them, and what follows from those.

    The other half was used to choose the threshold.
    """

    p_value: float
    refuted: bool
    confidence: float
    epsilon_lower: float
    threshold: float
    true_positives: int
    members: int
    false_positives: int
    others: int

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as JSON values; an infinite threshold is text."""
        fields = {name: getattr(self, name) for name in self.__slots__}
        return {**fields, "threshold": self.threshold if math.isfinite(self.threshold) else str(self.threshold)}


def many_runs(
    *, members: Iterable[Any], scores: Iterable[float], claim: Claim, delta: Number, level: Number = 0.05
) -> ManyRuns:
    """Test a whole claimed curve by many runs of the real code.

    Each run has a coin and a score.

    `members` says of each run whether the target was in it (under replace-one: which of two records), `scores` is larger
    where the auditor believes that it was. The threshold with the smallest p-value on the first half of the runs is used on
    the second half. Rates are bounded by Clopper and Pearson at half of the level each; the claim is refuted if the true
    positive rate is above what it allows at the false positive rate. `epsilon_lower` is what the same rates show at this
    delta, whatever ran.

    >>> rng = np.random.default_rng(1)
    >>> members = rng.integers(0, 2, 4000)
    >>> scores = members + rng.normal(size=4000)  # mu = 1 was run
    >>> epsilons = [0, 0.5, 1, 1.5]
    >>> import cumulant as cm
    >>> honest = Claim(epsilons, cm.Gaussian(sigma=1).delta(epsilons))
    >>> many_runs(members=members, scores=scores, claim=honest, delta=1e-3).refuted
    False
    >>> wrong = Claim(epsilons, cm.Gaussian(sigma=2).delta(epsilons))
    >>> many_runs(members=members, scores=scores, claim=wrong, delta=1e-3).refuted
    True
    """
    d, alpha = rounded_up(DELTA.check("delta", delta)), rounded_down(LEVEL.check("level", level))
    coins, values = trials(members, scores)
    half = len(coins) // 2
    threshold = _threshold(coins[:half], values[:half], claim)
    coins, guessed = coins[half:], values[half:] >= threshold
    found = int(np.sum(guessed & coins)), int(np.sum(coins)), int(np.sum(guessed & ~coins)), int(np.sum(~coins))
    p = float(_p_values(*(np.array([count]) for count in found), claim=claim)[0])
    lower = epsilon_from_rates(*found, delta=d, level=alpha)
    return ManyRuns(p, p <= alpha, 1 - alpha, lower, threshold, *found)


def trials(members: Iterable[Any], scores: Iterable[float]) -> tuple[np.ndarray[Any, np.dtype[np.bool_]], Floats]:
    """Return coins and scores as arrays, one of each per run or canary; else InputError."""
    try:
        coins, values = np.asarray(listed("members", members)), np.asarray(listed("scores", scores), dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InputError(f"members must be 0 or 1 and scores numbers: {error}") from error
    if coins.ndim != 1 or coins.shape != values.shape or len(coins) < 4:
        raise InputError(
            f"{coins.size} members and {values.size} scores: give one of each per run, for at least 4 runs"
        )
    if not np.all((coins == 0) | (coins == 1)) or np.any(np.isnan(values)):
        raise InputError("members must be 0 or 1, and scores numbers")
    return coins.astype(bool), values


def _threshold(coins: np.ndarray[Any, np.dtype[np.bool_]], values: Floats, claim: Claim) -> float:
    """Return the score with the smallest p-value, of some evenly spaced among all.

    Where all p-values are 1, the largest difference of rates decides.
    """
    candidates = np.unique(values)
    if len(candidates) > THRESHOLDS:
        candidates = candidates[np.linspace(0, len(candidates) - 1, THRESHOLDS).astype(int)]
    ins, outs = np.sort(values[coins]), np.sort(values[~coins])
    hits = len(ins) - np.searchsorted(ins, candidates)
    alarms = len(outs) - np.searchsorted(outs, candidates)
    p = _p_values(hits, np.full_like(hits, len(ins)), alarms, np.full_like(alarms, len(outs)), claim=claim)
    if np.all(p >= 1):
        p = -(hits / max(1, len(ins)) - alarms / max(1, len(outs)))
    return float(candidates[int(np.argmin(p))])


def _p_values(hits: Any, members: Any, alarms: Any, others: Any, *, claim: Claim) -> Floats:
    """Return the smallest level at which each pair of rates refutes the claim.

    The search halves its logarithm.
    """

    def refuted(level: Floats) -> Any:
        tpr, _ = _interval(hits, members, level / 2)
        _, fpr = _interval(alarms, others, level / 2)
        return tpr > SAFE * claim.true_positive_rate(fpr)

    low, high = np.full(len(hits), math.log(1e-300)), np.zeros(len(hits))
    possible = refuted(np.ones(len(hits)))
    high = bisect_rows(lambda log_level: refuted(np.exp(log_level)), low, high, LOG_HALVINGS)
    return np.where(possible, np.exp(high), 1.0)


# ---- rates


def clopper_pearson(successes: int, trials: int, level: Number) -> tuple[float, float]:
    """Return a lower and an upper end for a probability.

    Each is wrong with at most the probability `level`.

    >>> clopper_pearson(0, 100, 0.05)
    (0.0, 0.029513)
    """
    count, total = _count("successes", successes), _count("trials", trials)
    if not 0 <= count <= total:
        raise InputError(f"successes={count} must be between 0 and trials={total}")
    alpha = rounded_down(LEVEL.check("level", level))
    low, high = _interval(np.array([count]), np.array([total]), np.array([alpha]))
    return float(low[0]), float(high[0])


def _interval(successes: Any, trials: Any, level: Floats) -> tuple[Floats, Floats]:
    """Compute the ends of Clopper and Pearson: quantiles of beta laws."""
    k, n = np.asarray(successes, dtype=np.float64), np.asarray(trials, dtype=np.float64)
    some, missed = np.maximum(k, 1), np.maximum(n - k, 1)
    low = np.where(k > 0, special.betaincinv(some, n - some + 1, level), 0.0)
    # the complement is solved for, because 1 - level may round to 1
    high = np.where(k < n, 1 - special.betaincinv(missed, n - missed + 1, level), 1.0)
    return low, high


def epsilon_from_rates(
    true_positives: int, members: int, false_positives: int, others: int, *, delta: Number, level: Number
) -> float:
    """Return the epsilon at this delta that the rates of one attack show; 0 if none.

    It holds with confidence 1 - level.

    >>> epsilon_from_rates(950, 1000, 50, 1000, delta=1e-5, level=0.05)
    2.65974
    """
    d, alpha = rounded_up(DELTA.check("delta", delta)), LEVEL.check("level", level)
    tpr, _ = clopper_pearson(true_positives, members, alpha / 2)
    _, fpr = clopper_pearson(false_positives, others, alpha / 2)
    odds = [(tpr - d, fpr), (1 - fpr - d, 1 - tpr)]
    shown = [math.log(above / below) for above, below in odds if above > 0 and below > 0]
    return max(0.0, *shown) / SAFE if shown else 0.0
