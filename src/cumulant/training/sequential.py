"""An audit that may stop at any time: bets against a claim that nobody can win on average if the claim is true.

Run after run a fair coin says whether the record was in, and an attack gives a score. The wealth W of the bets is at
least 1/level with probability at most `level`, at whatever run one stops (Ville). See docs/how-to-audit.md.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from cumulant.domains import DELTA, Number, listed
from cumulant.errors import InputError, shown
from cumulant.lock import Lock
from cumulant.numerics.rounding import rounded_down, rounded_up
from cumulant.training.audit import LARGEST_EPSILON, LEVEL, Claim

THRESHOLDS = 5
"""Thresholds, quantiles of the first scores (measured: more spread the wealth without finding more)."""

FIRST = 20
"""Runs whose scores choose the thresholds and on which nothing is bet (measured: fewer choose badly)."""

EPSILONS = np.round(np.geomspace(0.01, 20, 64), 6)
"""The epsilons of `epsilon_lower`, fixed in advance (convention: 64 from 0.01 to 20, an eighth apart)."""

ROUNDING = 1e-12
"""The part by which every factor is rounded down; a few operations on floats lose far less."""

HALVINGS = 24
"""Halvings of the interval in which the point of a line is searched (the point may be any; only the growth depends on it)."""

Floats = np.ndarray[Any, np.dtype[np.float64]]


@dataclass(frozen=True, slots=True, eq=False)
class Lines:
    """Bounds that claims put on an event: p <= slope q + offset, p with the record and q without it; one row for each claim."""

    slope: Floats
    offset: Floats

    @classmethod
    def of(cls, epsilons: Floats, deltas: Floats) -> Lines:
        """Return both lines of every (epsilon, delta): p <= e^eps q + delta, and the same about the other answer."""
        grown = np.exp(np.minimum(epsilons, LARGEST_EPSILON)) * (1 + 4e-16)
        shrunk = np.exp(-epsilons)
        # p <= 1 - e^-eps (1 - delta - q), rounded so that the line allows more
        offset = 1 - shrunk * (1 - deltas) * (1 - 1e-15)
        return cls(np.concatenate([grown, shrunk], axis=-1), np.concatenate([deltas, offset], axis=-1))


@dataclass(frozen=True, slots=True, eq=False)
class Bets:
    """Bets of one run, by claim and threshold: a wealth is multiplied by 1 + alpha (u - p0) or by 1 + beta (u - q0)."""

    p0: Floats
    q0: Floats
    alpha: Floats
    beta: Floats

    @classmethod
    def choose(cls, lines: Lines, p1: Floats, q1: Floats) -> Bets:
        """Choose for each claim and each pair of rates the line that they break most, its nearest point and the bet.

        The point minimises kl(p1, p0) + kl(q1, q0) on the line. alpha = 0 where no line is broken. Any choice is valid as long
        as p0 = slope q0 + offset and beta = -slope alpha; a better choice grows faster.
        """
        b, d = lines.slope[:, None, :], lines.offset[:, None, :]
        p1, q1 = p1[None, :], q1[None, :]
        member, other = p1[:, :, None], q1[:, :, None]
        with np.errstate(all="ignore"):
            low = np.zeros((len(b), p1.shape[1], b.shape[2]))
            high = np.minimum(1.0, (1 - d) / b) + low
            for _ in range(HALVINGS):
                q = (low + high) / 2
                p = b * q + d
                # the derivative of kl(p1, p(q)) + kl(q1, q) in q rises
                rising = b * (p - member) / (p * (1 - p)) + (q - other) / (q * (1 - q)) > 0
                low, high = np.where(rising, low, q), np.where(rising, q, high)
            q0 = (low + high) / 2
            p0 = b * q0 + d
            gain = _kl(member, p0) + _kl(other, q0)
            usable = (member > b * other + d) & (p0 > 0) & (p0 < 1) & (q0 > 0) & (q0 < 1) & np.isfinite(gain)
            gain = np.where(usable, gain, -1.0)
            best = np.argmax(gain, axis=2)[:, :, None]

            def at(values: Floats) -> Floats:
                return np.take_along_axis(np.broadcast_to(values, gain.shape), best, axis=2)[:, :, 0]

            p0, q0, slope = at(p0), at(q0), at(b)
            alpha = np.where(at(gain) > 0, (p1 - p0) / (p0 * (1 - p0)), 0.0)
            # alpha in [0, 1/p0] and beta = -slope alpha >= -1/(1 - q0): every factor is at least 0
            alpha = np.clip(alpha, 0.0, np.minimum(1 / p0, 1 / (slope * (1 - q0))) * (1 - 1e-9))
        alpha = np.where(np.isfinite(alpha), alpha, 0.0)
        bet = alpha > 0
        return cls(np.where(bet, p0, 0.5), np.where(bet, q0, 0.5), alpha, -slope * alpha)

    def log_factors(self, member: bool, above: Floats) -> Floats:
        """Return the logarithms of what each wealth is multiplied by, rounded down."""
        factor = 1 + (self.alpha * (above - self.p0) if member else self.beta * (above - self.q0))
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(np.maximum(factor * (1 - ROUNDING), 0.0)))


def _kl(x: Floats, y: Floats) -> Floats:
    """Return the divergence of two coins."""
    return x * np.log(x / y) + (1 - x) * np.log((1 - x) / (1 - y))


def _log_means(logs: Floats) -> Floats:
    """Return log of the mean of the wealths of each row: a mixture of bets is a bet."""
    top = np.maximum(logs.max(axis=1), -1e300)
    with np.errstate(divide="ignore"):
        return np.asarray(top + np.log(np.exp(logs - top[:, None]).mean(axis=1) * (1 - ROUNDING)))


class Sequential:
    """Bet against a claim, run after run; stop whenever you like.

    The coin of every run must be fair, drawn by the harness and independent of everything before: then P(the claim is
    refuted) is at most `level` if the claim is true. `thresholds` are fixed in advance, or quantiles of the first scores,
    on which nothing is bet. With `pairs=True` runs come in pairs, one with the record and one without; bets are fixed
    before the first of a pair, and both runs must be alike: the same mechanism, each with fresh noise.

    >>> import cumulant as cm
    >>> audit = Sequential(Claim.of(cm.PureDP("0.1")), thresholds=[0.5])
    >>> while not audit.refuted:
    ...     wealth = audit.see(True, 1.0), audit.see(False, 0.0)
    >>> audit.runs, audit.p_value <= 0.05
    (10, True)
    """

    def __init__(
        self,
        claim: Claim,
        thresholds: Iterable[Number] | None = None,
        level: Number = "0.05",
        first: int = FIRST,
        *,
        pairs: bool = False,
        delta: Number = "1e-5",
    ) -> None:
        if not isinstance(claim, Claim):
            raise InputError(f"claim={shown(claim)} must be a Claim, such as Claim.of(run)")
        if type(first) is not int or first < 2:
            raise InputError(f"first={shown(first)} must be a number of runs, at least 2")
        if type(pairs) is not bool:
            raise InputError(f"pairs={shown(pairs)} must be True or False: whether runs come as member and other")
        self.level = float(rounded_down(LEVEL.check("level", level)))
        self._delta = float(rounded_up(DELTA.check("delta", delta)))
        # the claim as a whole, and each of 64 epsilons alone at one delta
        single = EPSILONS[:, None]
        self._claims = (
            Lines.of(claim.epsilons[None, :], claim.deltas[None, :]),
            Lines.of(single, np.full_like(single, self._delta)),
        )
        self._lock = Lock()
        self._first, self._pairs = first, pairs
        self._scores: list[float] = []
        self._thresholds: Floats | None = None
        self._logs: tuple[Floats, ...] = ()
        self._counts = np.zeros((2, 1))  # scores above each threshold, of others and of members
        self._trials = [0, 0]
        self._bets: list[Bets] | None = None
        self._half: bool | None = None
        self.runs = 0
        self._log_largest = 0.0
        self._reached = np.zeros(len(EPSILONS), dtype=bool)
        if thresholds is not None:
            self._open([_score("thresholds", each) for each in listed("thresholds", thresholds)])

    def _open(self, thresholds: Sequence[float]) -> None:
        if not thresholds:
            raise InputError("thresholds=[] tests nothing; give at least one score, or None")
        self._thresholds = np.array(sorted(set(thresholds)))
        size = len(self._thresholds)
        self._logs = tuple(np.zeros((len(each.slope), size)) for each in self._claims)
        self._counts = np.zeros((2, size))

    def see(self, member: bool | int, score: float) -> float:
        """Take one run: whether the record was in, and the score of the attack. Return the wealth after it."""
        said: object = member
        if not isinstance(said, bool | int | np.integer | np.bool_) or said not in (0, 1):
            raise InputError(f"member={shown(member)} must be True or False: what the coin of this run said")
        with self._lock:
            return self._see(bool(member), _score("score", score))

    def _see(self, coin: bool, value: float) -> float:
        if self._pairs and self._half is not None and coin == self._half:
            raise InputError("a pair is one run with the record and one without it; this one repeats the last coin")
        self.runs += 1
        whole = not self._pairs or self._half is not None
        self._half = None if whole else coin
        if self._thresholds is None:
            self._scores.append(value)
            if len(self._scores) >= self._first and whole:
                shares = (np.arange(THRESHOLDS) + 1) / (THRESHOLDS + 1)
                self._open(np.quantile(self._scores, shares, method="nearest").tolist())
            return 1.0
        if self._bets is None:  # from earlier runs only, with half a success in one trial added
            q1, p1 = ((self._counts[i] + 0.5) / (self._trials[i] + 1) for i in (0, 1))
            self._bets = [Bets.choose(each, p1, q1) for each in self._claims]
        above = (value >= self._thresholds).astype(np.float64)
        for logs, bets in zip(self._logs, self._bets, strict=True):
            logs += bets.log_factors(coin, above)
        self._counts[int(coin)] += above
        self._trials[int(coin)] += 1
        if whole:
            self._bets = None
            self._log_largest = max(self._log_largest, float(_log_means(self._logs[0])[0]))
            self._reached |= _log_means(self._logs[1]) >= -math.log(self.level)
        return self.e_value

    @property
    def e_value(self) -> float:
        """The wealth now; 1 before the first bet. Within a pair it may be large and proves nothing yet."""
        return math.exp(min(float(_log_means(self._logs[0])[0]), 700.0)) if self._logs else 1.0

    @property
    def p_value(self) -> float:
        """min(1, 1 / the largest wealth so far): valid at every time one stops."""
        return min(1.0, rounded_up_float(math.exp(-self._log_largest)))

    @property
    def refuted(self) -> bool:
        """True once the wealth has reached 1 / level."""
        return self._log_largest >= -math.log(self.level)

    @property
    def epsilon_lower(self) -> float:
        """Return an epsilon that the run exceeds at this delta, with confidence 1 - level, whenever one stops; 0 if none.

        The largest of 64 epsilons such that the bets against it and against all smaller ones have reached 1 / level: an error
        then needs the one process of the least true epsilon.
        """
        count = int(np.argmin(np.append(self._reached, False)))
        return float(EPSILONS[count - 1]) if count else 0.0

    def to_dict(self) -> dict[str, Any]:
        """Return the result as JSON values."""
        return {
            "refuted": self.refuted,
            "p_value": self.p_value,
            "e_value": self.e_value,
            "runs": self.runs,
            "epsilon_lower": self.epsilon_lower,
            "confidence": 1 - self.level,
            "level": self.level,
        }


def rounded_up_float(value: float) -> float:
    """Return the next float, so that a p-value is never too small."""
    return math.nextafter(value * (1 + ROUNDING), math.inf)


def _score(name: str, value: Any) -> float:
    try:
        found = float(value)
    except (TypeError, ValueError):
        raise InputError(f"{name}={shown(value)} must be a number, the score of an attack") from None
    if isinstance(value, bool) or not math.isfinite(found):
        raise InputError(f"{name}={shown(value)} must be a finite number, the score of an attack")
    return found
