"""What a run means for an attacker: the largest true positive rate at a false positive rate, and the advantage.

Every epsilon with its delta is a valid bound of both, so the searches below decide how tight a number is and never whether
it holds. Where to ask is found from the run's curve, whose deltas come cheaply in arrays; loss distributions, where the
method has them, are asked at a few places.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import special

from cumulant.conversion import tradeoff
from cumulant.domains import PROBABILITY, Exact, Number
from cumulant.mechanisms.questions import CURVES, DEFAULT_METHOD, METHODS, checked

if TYPE_CHECKING:
    from cumulant.mechanisms.answers import Answers

Floats = np.ndarray[Any, np.dtype[np.float64]]

RATES = np.geomspace(1e-8, 1.0, 65)
"""The false positive rates of a curve, unless others are asked for."""

_GUIDE, _FEW = 32, 24
"""Places on the curve that shows the way, and of those for an answer in brief."""

_FIRST, _MORE, _MOST, _LOSS = 12, 4, 32, 0.005
"""How many deltas of loss distributions a curve asks for at first, then each time, at most, and until what may be lost."""

_ACCURACY = 0.02
"""What a lattice may cost of epsilon: about that much of the true positive rate, for a tenth of the time."""

_SHARE, _LEAST = 1e-4, 1e-300
"""A delta that is this part of a false positive rate adds nothing to it; and the smallest that is asked for."""

_LARGEST = 700.0
"""Of epsilons, such that e^epsilon is a float."""


@dataclass(frozen=True, slots=True, eq=False)
class TradeOff:
    """The best attack on a run: none that has this false positive rate has more than this true positive rate.

    >>> import cumulant as cm
    >>> found = trade_off(cm.PureDP(1), [0, 0.01, 0.1])
    >>> found.true_positive_rate, found.advantage
    (array([0.        , 0.02718282, 0.27182818]), 0.46211)
    """

    false_positive_rate: Floats
    true_positive_rate: Floats
    advantage: float


def trade_off(run: Answers, fpr: Iterable[Number] | None = None, method: str = DEFAULT_METHOD) -> TradeOff:
    """The bound at these false positive rates, or at 65 from 1e-8 to 1, evenly spaced on a logarithmic axis.

    >>> import cumulant as cm
    >>> found = trade_off(cm.Gaussian(sigma=1))
    >>> float(found.false_positive_rate[16]), float(found.true_positive_rate[16])  # Phi(Phi^-1(1e-6) + 1) = 8.723e-5
    (1e-06, 8.8e-05)
    """
    asked = list(checked("fpr", RATES if fpr is None else fpr, PROBABILITY)[0])
    least = min(asked, key=float, default=Exact(1))
    known = _known(run, method, least)
    if method not in CURVES:
        places = np.unique(np.linspace(0, known.epsilon.size - 1, _FIRST).round().astype(int))
        exact = _statements(run, known.epsilon[places], method)
        while exact.epsilon.size < _MOST and (more := exact.between(float(least))).size:
            exact = exact.joined(_statements(run, more, method))
        known = exact.joined(known, method == DEFAULT_METHOD)
    rates = np.array([float(rate) for rate in asked])
    return TradeOff(rates, tradeoff.true_positive_rate(asked, *known.pair), tradeoff.advantage(*known.pair))


def true_positive_rate(run: Answers, fpr: Number | Iterable[Number], method: str = DEFAULT_METHOD) -> float | Floats:
    """The bound at one false positive rate, by a search for the best epsilon, or at each of several.

    >>> import cumulant as cm
    >>> true_positive_rate(cm.Gaussian(sigma=1), 0.01)  # Phi(Phi^-1(0.01) + 1) = 0.09236
    0.0924
    """
    asked, scalar = checked("fpr", fpr, PROBABILITY)
    if not scalar:
        return trade_off(run, asked, method).true_positive_rate
    known = _searched(run, asked[0], method, _known(run, method, asked[0]), 3)
    return float(tradeoff.true_positive_rate(asked, *known.pair)[0])


def advantage(run: Answers, method: str = DEFAULT_METHOD) -> float:
    """The largest difference of true and false positive rate: a guess about a fair coin is right (1 + advantage) / 2 often.

    >>> import cumulant as cm
    >>> advantage(cm.Gaussian(sigma=1)), advantage(cm.PureDP(1))  # 2 Phi(1/2) - 1 and tanh(1/2)
    (0.3829, 0.4621)
    """
    known = _known(run, method, Exact(1))
    if method not in CURVES:
        known = _statements(run, np.zeros(1), method).joined(known, method == DEFAULT_METHOD)
    return tradeoff.advantage(*known.pair)


def in_brief(run: Answers, fpr: Number, method: str, epsilon: float, delta: float) -> tuple[float, float]:
    """True positive rate and advantage from a statement that is known and few others, for those who cannot wait.

    >>> import cumulant as cm
    >>> in_brief(cm.Gaussian(sigma=1), 0.01, "best", 4.38, 1e-5)
    (0.0924, 0.3829)
    """
    rate, known = PROBABILITY.check("fpr", fpr), _Statements(np.array([epsilon]), np.array([delta]))
    if method in METHODS:
        below = _statements(run, epsilon * np.arange(_FEW) / _FEW, _curve(method))
        known = known.joined(_searched(run, rate, method, below, 0))
    return float(tradeoff.true_positive_rate([rate], *known.pair)[0]), tradeoff.advantage(*known.pair)


# ---- where to ask


@dataclass(frozen=True, slots=True, eq=False)
class _Statements:
    """The run is (epsilon[i], delta[i])-DP for every i; epsilons rise, and what holds at one holds at all that follow."""

    epsilon: Floats
    delta: Floats

    @property
    def pair(self) -> tuple[list[float], list[float]]:
        return self.epsilon.tolist(), self.delta.tolist()

    def joined(self, other: _Statements, wanted: bool = True) -> _Statements:
        """Both, or only these."""
        if not wanted:
            return self
        both = np.append(self.epsilon, other.epsilon)
        order = np.argsort(both, kind="stable")
        return _Statements(both[order], np.minimum.accumulate(np.append(self.delta, other.delta)[order]))

    def between(self, least: float) -> Floats:
        """Epsilons at which more can be gained, at false positive rates that are above this one.

        delta is convex in x = e^epsilon, so between two statements it is at least what the lines through the others say;
        two statements do worst at the false positive rate that is the slope between them.
        """
        x = np.exp(np.minimum(self.epsilon, _LARGEST))
        width = np.diff(x)
        slope = -np.diff(self.delta) / width
        before, after = np.append(1.0, slope[:-1]), np.append(slope[1:], 0.0)
        # the lines from both sides meet this far below the chord
        below = (before - slope) * (slope - after) / np.maximum(before - after, _LEAST) * width
        loss = np.where(before > least, below / (self.delta[:-1] + x[:-1] * slope), 0.0)
        chosen = np.argsort(loss)[-_MORE:]
        return np.sort((self.epsilon[:-1] + self.epsilon[1:])[chosen[loss[chosen] > _LOSS]] / 2)

    def around(self, rate: Exact, count: int) -> Floats:
        """Epsilons on both sides of the one that is best for this false positive rate."""
        best = int(np.argmin(tradeoff.by_statement([rate], *self.pair)[0]))
        low, middle = self.epsilon[max(best - 1, 0)], self.epsilon[best]
        high = self.epsilon[best + 1] if best + 1 < self.epsilon.size else 1.5 * middle
        parts = np.arange(1, count + 1) / (count + 1)
        return np.setdiff1d(np.append(low + (middle - low) * parts, middle + (high - middle) * parts), self.epsilon)


def _statements(run: Answers, epsilon: Floats, method: str) -> _Statements:
    """By the method, or of the best of two by loss distributions: what the curve says is known already, and joined later."""
    deltas = run.delta(epsilon.tolist(), method="exact" if method == DEFAULT_METHOD else method, accuracy=_ACCURACY)
    return _Statements(epsilon, np.minimum.accumulate(deltas))


def _curve(method: str) -> str:
    """The method that shows the way."""
    return method if method in CURVES else "rdp"


def _known(run: Answers, method: str, rate: Exact) -> _Statements:
    """What the curve says, at epsilons whose deltas spread over all that matter to this false positive rate."""
    curve = _curve(method)
    slack, least = float(run.curve().slack()), max(float(rate) * _SHARE, _LEAST)
    deltas = np.append(0.0, slack + np.geomspace(least, 0.9, _GUIDE))
    found = run.epsilon(deltas.tolist(), method=curve)
    return _statements(run, np.unique(np.append(0.0, found[np.isfinite(found)])), curve)


def _searched(run: Answers, rate: Exact, method: str, known: _Statements, rounds: int) -> _Statements:
    """Statements among which one is close to the best for this false positive rate; the first is about epsilon = 0."""
    found = known
    if method not in CURVES:
        found = _statements(run, np.zeros(1), method)
        best = known.epsilon[np.argmin(tradeoff.by_statement([rate], *known.pair)[0])]
        places = np.array([_gaussian(rate, found.delta[0]), *([best] if rounds else [])])
        found = found.joined(_statements(run, np.unique(places[np.isfinite(places) & (places > 0)]), method))
    for _ in range(rounds):
        found = found.joined(_statements(run, found.around(rate, 2 if method in CURVES else 1), method))
    return found.joined(known, method == DEFAULT_METHOD)


def _gaussian(rate: Exact, distance: float) -> float:
    """The epsilon that is best at this rate if the loss is Gaussian with this total variation distance, as sums tend to be."""
    shift = 2 * special.ndtri((1 + min(distance, 1.0)) / 2)
    return abs(float(shift * (-special.ndtri(float(rate)) - shift / 2)))
