"""Any (epsilon, delta)-DP mechanism."""

from __future__ import annotations

from cumulant.curves.closed_form import Response
from cumulant.curves.curve import Curve
from cumulant.domains import NONNEGATIVE, SLACK
from cumulant.mechanisms.mechanism import Mechanism, register
from cumulant.pairs.pair import Pair
from cumulant.parameters import Real, parameter


@register
class ApproximateDP(Mechanism):
    """Any (epsilon, delta)-DP mechanism: epsilon-DP except with probability delta.

    The delta is carried as slack.

    All of k promises hold with probability (1 - delta)^k; epsilon(delta) is asked at what is left of delta, and is +inf where
    delta is less than their failures take. On a sample the promise becomes (log(1 + rate (e^epsilon - 1)), rate * delta),
    Lemma 3.

    >>> promise = ApproximateDP(0.1, 0.01)
    >>> promise.epsilon(delta=0.009), promise.epsilon(delta=0.01), (promise * 3).delta(epsilon=0.3)
    (inf, 0.1, 0.029701)
    """

    loss: Real = parameter(NONNEGATIVE, alias="epsilon")
    failure: Real = parameter(SLACK, alias="delta")

    def own_curve(self, bound: str) -> Curve:
        return Response(epsilon=self.loss, leak=self.failure)

    def pair(self) -> Pair:
        from cumulant.pairs.response import PromisePair

        return PromisePair(epsilon=self.loss, leak=self.failure)
