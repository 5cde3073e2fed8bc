"""Any (epsilon, delta)-DP mechanism."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import ClassVar

from cumulant.curves.closed_form import Response
from cumulant.curves.curve import Curve
from cumulant.domains import NONNEGATIVE, SLACK, Domain, Exact, Number, Several
from cumulant.mechanisms.mechanism import Mechanism, register
from cumulant.pairs.pair import Pair


@register
@dataclass(frozen=True, slots=True, eq=False, repr=False, init=False)
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

    loss: Exact
    failure: Exact

    domains: ClassVar[Mapping[str, Domain | Several]] = {"epsilon": NONNEGATIVE, "delta": SLACK}
    attributes: ClassVar[Mapping[str, str]] = {"epsilon": "loss", "delta": "failure"}

    def __init__(self, epsilon: Number, delta: Number) -> None:
        self._set(epsilon=epsilon, delta=delta)

    def key(self) -> Hashable:
        return self.loss, self.failure

    def own_curve(self, bound: str) -> Curve:
        return Response(epsilon=self.loss, leak=self.failure)

    def pair(self) -> Pair:
        from cumulant.pairs.response import PromisePair

        return PromisePair(epsilon=self.loss, leak=self.failure)
