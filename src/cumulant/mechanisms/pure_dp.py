"""Any epsilon-DP mechanism."""

from __future__ import annotations

from cumulant.curves.closed_form import Response
from cumulant.curves.curve import Curve
from cumulant.domains import NONNEGATIVE
from cumulant.mechanisms.mechanism import Mechanism, register
from cumulant.pairs.pair import Pair
from cumulant.parameters import Real, parameter


@register
class PureDP(Mechanism):
    """Any epsilon-DP mechanism; the worst of them is randomized response with log-odds epsilon.

    >>> PureDP(0.1).epsilon(delta=0)
    0.1
    """

    loss: Real = parameter(NONNEGATIVE, alias="epsilon")

    def own_curve(self, bound: str) -> Curve:
        return Response(epsilon=self.loss)

    def pair(self) -> Pair:
        from cumulant.pairs.response import ResponsePair

        return ResponsePair(epsilon=self.loss)
