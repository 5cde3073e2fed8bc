"""The privacy loss of a run as an object.

What holds for the loss of every pair of neighbours, in one direction or in both.

The loss log(p/q) is a random variable under the law p of one data set; a dominating pair bounds its hockey-stick divergences
and not its tails. So tails and quantiles come from divergences: for every e < x

    P(loss > x) <= delta(e) / (1 - e^{e - x}),   because (1 - e^{e - loss})_+ is at least 1 - e^{e - x} where loss > x
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from cumulant.accounting import answer
from cumulant.accounting.answer import below_zero
from cumulant.accounting.choices import DIRECTIONS
from cumulant.accounting.numbers import brief, rounded_up
from cumulant.accounting.question import DEFAULT_ACCURACY, DEFAULT_METHOD, Question, check_values
from cumulant.accounting.rounds import rounds_of
from cumulant.accounting.run import RunRecord
from cumulant.conversion import array_answers
from cumulant.domains import ANY_EPSILON, DELTA, PROBABILITY, Exact, Number, one_of
from cumulant.errors import RelationError
from cumulant.html_box import facts_box
from cumulant.numerics.enclosure import FAR
from cumulant.numerics.rounding import U, rounded_down
from cumulant.plot_registry import drawn
from cumulant.relation import Relation

Floats = np.ndarray[Any, np.dtype[np.float64]]

_SHARES = (0.97, 0.9, 0.8, 0.6, 0.3)
"""Parts of x at which e is tried for a bound of P(loss > x); chosen by hand, every e < x is valid."""

_BEYOND = (0.1, 0.5, 1.0)
"""Distances below x <= 0 at which e is tried for a bound of P(loss > x), in nats; chosen by hand."""

_PARTS = (0.1, 0.3, 0.6, 0.85)
"""Parts of a tail probability at which delta is taken for a bound of its quantile; chosen by hand, all are valid."""


@dataclass(frozen=True, slots=True, eq=False)
class PrivacyLoss:
    """The privacy loss log(p/q) under p, for every pair of neighbours.

    `direction` says which of the two is p.

    "remove": p is the data set with the record; "add": the one without it; "both": either. Numbers are rounded so that they
    hold: tails and hockey-stick divergences from above, `cdf` from below.

    >>> import cumulant as cm
    >>> loss = cm.PureDP(1).privacy_loss()
    >>> loss.hockey_stick(0), loss.tail(1), loss.quantile(0.5), loss.mean
    (0.462118, 0.0, 1.0, 0.462118)
    """

    run: RunRecord
    direction: str

    def __repr__(self) -> str:
        return f"PrivacyLoss(run={brief(self.run.text)!r}, direction={self.direction!r})"

    def _repr_html_(self) -> str:
        return facts_box(
            "Privacy loss",
            {
                "run": brief(self.run.text),
                "neighbours": str(self.run.relation),
                "direction": self.direction,
                "mean": f"at most {rounded_up(self.mean)}",
            },
        )

    @classmethod
    def of(cls, run: RunRecord, direction: str) -> PrivacyLoss:
        """The loss of a run in one of the directions."""
        way = one_of("direction", direction, DIRECTIONS)
        if way != "both" and run.relation is Relation.REPLACE_ONE:
            raise RelationError(
                f"direction={way!r} is about a record that is added or removed; {run.text} is stated for replace-one "
                'neighbours, and either of them may come first. Leave it at "both"'
            )
        return cls(run, way)

    def hockey_stick(
        self, epsilon: Number | Iterable[Number], *, accuracy: Number = DEFAULT_ACCURACY
    ) -> float | Floats:
        """Bound E (p - e^epsilon q)_+ from above at every real epsilon.

        It is the delta of statements about this direction alone.

        `accuracy` is that of `delta`: what a grid may add to epsilon, relatively.
        """
        asked, scalar = check_values("epsilon", epsilon, ANY_EPSILON)
        question = _question("epsilon", accuracy)
        if self.direction == "both":
            found = np.atleast_1d(answer.delta(self.run, asked, question))
        else:
            found = np.array([self._directed(each, question) for each in asked])
        return float(found[0]) if scalar else found

    def _directed(self, epsilon: Exact, question: Question) -> float:
        other = self._swapped()
        if epsilon < 0:
            return below_zero(epsilon, other._directed(Exact(-epsilon), question))
        whole = float(np.asarray(answer.delta(self.run, epsilon, question)))
        rounds = rounds_of(self.run)[0]
        if rounds is None:
            return whole  # what holds for both directions holds for each
        from cumulant.exact.answer import directed_end

        return min(
            whole, directed_end(rounds, self._place, question.with_value(epsilon).query, float(question.accuracy))
        )

    @property
    def _place(self) -> int:
        return int(self.direction == "add")

    def _swapped(self) -> PrivacyLoss:
        swapped = {"remove": "add", "add": "remove"}
        return PrivacyLoss(self.run, swapped.get(self.direction, self.direction))

    def epsilon(self, delta: Number, *, accuracy: Number = DEFAULT_ACCURACY) -> float:
        """The least epsilon that is proved at this delta, for this direction alone.

        >>> import cumulant as cm
        >>> run = cm.Gaussian(sigma=1) @ cm.Poisson(rate="0.5")
        >>> run.privacy_loss("add").epsilon(0), run.epsilon(0)  # log 2: half of all samples do not hold the record
        (0.69314..., inf)
        """
        asked, question = DELTA.check("delta", delta), _question("delta", accuracy)
        whole = float(np.asarray(answer.epsilon(self.run, asked, question)))
        rounds = rounds_of(self.run)[0]
        if self.direction == "both" or rounds is None or asked == 1:
            return whole
        from cumulant.exact.answer import directed_end, directed_largest

        whole = min(whole, directed_largest(rounds, self._place))
        if asked == 0:
            return whole
        return min(whole, directed_end(rounds, self._place, question.with_value(asked).query, float(question.accuracy)))

    def tail(self, x: Number | Iterable[Number]) -> float | Floats:
        """Bound P(loss > x) from above for every pair of neighbours.

        By the best of some hockey-stick divergences below x.
        """
        asked, scalar = check_values("x", x, ANY_EPSILON)
        places = [(each, e) for each in asked for e in _below(max(min(each, _FARTHEST), -_FARTHEST))]
        deltas = np.atleast_1d(self.hockey_stick([Exact(Fraction(e)) for _, e in places])) if places else np.ones(0)
        most = dict.fromkeys(asked, 1.0)
        largest = self._largest()
        for (each, e), delta in zip(places, deltas.tolist(), strict=True):
            gap = max(Fraction(e) - each, -_FARTHEST)
            less = -math.expm1(float(gap)) * (1 - FAR - 4 * U)  # of the gap as of its float
            most[each] = min(most[each], delta / less * (1 + 2 * U)) if less > 0 else most[each]
        found = np.array([0.0 if each >= largest else min(most[each], 1.0) for each in asked])
        return float(found[0]) if scalar else found

    def _largest(self) -> float:
        """Return a number that the loss never exceeds."""
        return (
            math.inf
            if self.run.curve().slack()
            else float(array_answers.rdp(self.run.curve(), np.array([np.inf]), True)[0])
        )

    def cdf(self, x: Number | Iterable[Number]) -> float | Floats:
        """P(loss <= x), at least."""
        found = 1 - np.asarray(self.tail(x))
        lower = np.maximum(np.nextafter(found, -np.inf), 0.0)
        lower = np.where(found == 1, 1.0, lower)
        return float(lower) if not lower.ndim else lower

    def quantile(self, share: Number) -> float:
        """An x with P(loss <= x) >= share for every pair of neighbours; +inf where none is known."""
        wanted = 1 - PROBABILITY.check("share", share)
        largest = self._largest()
        if wanted == 0:
            return largest
        # delta(e) <= part * wanted is enough for x = e - log(1 - part)
        parts = [(epsilon, -math.log1p(-part)) for part, epsilon in zip(_PARTS, self._epsilons(wanted), strict=True)]
        return min(largest, *((epsilon + gap) * (1 + FAR + 2 * U) for epsilon, gap in parts))

    def _epsilons(self, delta: Fraction) -> list[float]:
        asked = [Exact(rounded_down(delta * Fraction(part))) for part in _PARTS]
        if self.direction == "both":
            return [float(each) for each in np.atleast_1d(answer.epsilon(self.run, asked, _question("delta")))]
        return [self.epsilon(each) for each in asked]

    @property
    def mean(self) -> float:
        """Return the largest mean of the loss, which is the Kullback-Leibler divergence.

        Of both directions.
        """
        return float(array_answers.rdp(self.run.curve(), np.array([1.0]), True)[0])

    def plot(self, out: Any = None) -> Any:
        """Draw tail and hockey-stick divergence; needs cumulant[plot].

        A file `out` is written.
        """
        return drawn("loss", self, out)


_FARTHEST = Fraction(10**300)
"""Largest size of an epsilon, or of a gap of two, that is computed with; derived: floats end at 1.8e308."""


def _below(number: Fraction) -> list[float]:
    """Return the places below a number at which the divergence is computed."""
    x = float(number)
    return [x * share for share in _SHARES] if x > 0 else [x - gap for gap in _BEYOND]


def _question(asked: str, accuracy: Number = DEFAULT_ACCURACY) -> Question:
    return Question.parse_query(DEFAULT_METHOD, None, None, accuracy, asked)
