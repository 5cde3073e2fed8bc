"""The pair of local reports with many values: one loss, its negative, and 0."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from cumulant.losses.grid import Step
from cumulant.losses.transform import Transform
from cumulant.numerics.arithmetic import BALLS, FLOATS, Arithmetic, Array, Scalar
from cumulant.pairs.finite_losses import LossPair
from cumulant.pairs.pair import Pair
from cumulant.pairs.shuffle import ShuffledPair
from cumulant.pairs.worst_triples import Extremes, Share

_TWO = 2
"""Values of which the other one is the odd one, so that a negative loss is turned around; convention."""

_LARGEST_LOSS = 90
"""Loss (nats) up to which three answers are a witness; convention: beyond it one answer tells everything."""


@dataclass(frozen=True, slots=True)
class ThreePoints(LossPair):
    """The loss e0 with P-mass m, -e0 with P-mass m e^-e0, and 0 with the rest.

    It is given by exact odds e^e0 and m = top; or by epsilon = e0, where m e^-e0 = top / (base + weight e^e0)
    (docs/mechanisms/local-reports.md).

    >>> ThreePoints(odds=Fraction(3), top=Fraction(1, 2)).profile([0, 0.25])
    array([0.33333333, 0.28599576])
    """

    top: Fraction
    odds: Fraction | None = None
    epsilon: Fraction = Fraction(0)
    base: Fraction = Fraction(0)
    weight: Fraction = Fraction(0)
    one_bit: bool = False
    third: Fraction | None = None
    """For reports that are sets of a fixed size, each as likely if it holds the own value: of the sets that two
    values disagree on, the part that does not hold a third value; 1 if there is no third value. None means that the
    reports are not of this kind."""

    values: int = 0
    """The number of answers, of which the own one is e^e0 times as likely as each other one. 2 stands for any e0-DP
    report, 0 means that it is not known."""

    @classmethod
    def of(
        cls, top: Fraction, odds: Fraction, one_bit: bool = False, third: Fraction | None = None, values: int = 0
    ) -> ThreePoints:
        """Return the pair with P-mass `top` at the loss log(odds).

        A negative loss is turned around: the report then names the values that the record does not have.
        """
        if odds >= 1:
            return cls(top, odds, one_bit=one_bit, third=third, values=values)
        turned = None if third is None else 1 - third
        return cls(top / odds, 1 / odds, one_bit=one_bit, third=turned, values=values if values == _TWO else 0)

    def extremes(self) -> Extremes | None:
        if self.third is None:
            return None
        if self.odds is None:
            two = Share(self.top, self.base, self.weight)
        else:
            two = Share(self.top / self.odds, Fraction(1), Fraction(0))
        if self.one_bit:
            return Extremes(self.epsilon, self.odds, two)
        parts = [Share(two.top * part, two.base, two.weight) if part else None for part in (self.third, 1 - self.third)]
        return Extremes(self.epsilon, self.odds, two, *parts)

    def _three_values(self, rate: Fraction) -> ThreePoints | None:
        """Return (1-g)R + gP against (1-g)R + gQ for three answers; None if there are no three.

        With m = top and o = m / odds the answer p has the mass o + g (m - o) against o, the answer q the reverse, and on all
        others, that of R among them, both laws agree. If epsilon is given, the odds are rounded down: an answer that another
        one replaces a little more often is a post-processing, for all three values at once.
        """
        if self.third != 1 or self.one_bit or not self.losses(FLOATS)[0].size:
            return None
        odds, top = self.odds, self.top
        if odds is None:
            if self.epsilon > _LARGEST_LOSS:
                return None
            odds = Fraction(math.nextafter(float(BALLS.number(self.epsilon).exp().lower()), 0.0))
            if odds <= 1:
                return None
            top = self.top * odds / (self.base + self.weight * odds)
        other = top / odds
        own = other + rate * (top - other)
        return ThreePoints(own, own / other)

    def triple(self, rate: Fraction) -> Step | None:
        three = self._three_values(rate)
        return None if three is None else three.upper_step(Fraction(1), "symmetric")

    def triple_transform(self, rate: Fraction) -> Transform | None:
        three = self._three_values(rate)
        return None if three is None else three.transform(Fraction(1), "symmetric")

    def shuffled_pair(self, reports: int) -> Pair | None:
        if not self.values:
            return None
        if not self.losses(FLOATS)[0].size:
            return self
        found = ShuffledPair(reports, self.odds, self.epsilon, self.values)
        return found if found.exact_labels else None

    def group_pair(self, size: int) -> ThreePoints:
        """Return the pair itself: a report is about one record, so a group changes no more."""
        return self

    def losses(self, on: Arithmetic) -> tuple[Array, Array]:
        if (self.odds == 1) if self.odds is not None else not self.epsilon:
            return on.asarray(np.zeros(0)), on.asarray(np.zeros(0))
        if self.odds is not None:
            return on.asarray([on.log1p(on.number(self.odds - 1))]), on.asarray([on.log(on.number(self.top))])
        e0, top, share = on.number(self.epsilon), self.top / self.weight, self.base / self.weight
        return on.asarray([e0]), on.asarray([on.log(on.number(top)) - on.log1p_exp(on.log(on.number(share)) - e0)])

    def exact_equal(self) -> Scalar:
        if self.odds is not None:
            return BALLS.number(1 - self.top - self.top / self.odds)
        growth = BALLS.number(self.epsilon).exp()
        above = BALLS.number(self.base - self.top) + BALLS.number(self.weight - self.top) * growth
        return above / (BALLS.number(self.base) + BALLS.number(self.weight) * growth)

    def exact_unit(self) -> Fraction | None:
        return self.epsilon if self.odds is None else None

    @property
    def equal(self) -> float:
        if self.odds is not None:
            return float(1 - self.top - self.top / self.odds)
        # (base - top + (weight - top) e^e0) / (base + weight e^e0), all of them positive
        less = np.exp(-float(self.epsilon))
        above = float((self.base - self.top) / self.weight) * less + float((self.weight - self.top) / self.weight)
        return float(above / (float(self.base / self.weight) * less + 1))
