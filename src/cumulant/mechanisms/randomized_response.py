"""Randomized response."""

from __future__ import annotations

import math  # noqa: F401  (doctest)
from fractions import Fraction
from typing import TYPE_CHECKING

from cumulant.curves.closed_form import Response
from cumulant.curves.curve import Curve
from cumulant.domains import RESPONSE
from cumulant.mechanisms.mechanism import Mechanism, register
from cumulant.pairs.pair import Pair
from cumulant.parameters import Real, parameter

if TYPE_CHECKING:
    from cumulant.exact.shuffled_reports import Randomizer


@register
class RandomizedResponse(Mechanism):
    """A yes/no answer that is true with probability p and flipped otherwise: log(p/(1-p))-DP.

    1/2 <= p < 1.

    >>> round(RandomizedResponse(p=0.75).pure(), 12) == round(math.log(3), 12)
    True
    """

    p: Real = parameter(RESPONSE)

    def own_curve(self, bound: str) -> Curve:
        return Response(p=self.p)

    def pair(self) -> Pair:
        from cumulant.pairs.response import ResponsePair

        return ResponsePair(p=self.p, one_bit=True)

    def local_randomizer(self) -> Randomizer:
        from cumulant.exact.shuffled_reports import Kinds, Randomizer

        p = Fraction(self.p)
        return Randomizer(kinds=Kinds((p, 1 - p), (1 - p, p), (1 - p, p)))
