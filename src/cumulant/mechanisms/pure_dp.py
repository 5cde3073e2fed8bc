"""Any epsilon-DP mechanism."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import ClassVar

from cumulant.curves.closed_form import Response
from cumulant.curves.curve import Curve
from cumulant.domains import NONNEGATIVE, Domain, Exact, Number, Several
from cumulant.mechanisms.mechanism import Mechanism, register
from cumulant.pairs.pair import Pair


@register
@dataclass(frozen=True, slots=True, eq=False, repr=False, init=False)
class PureDP(Mechanism):
    """Any epsilon-DP mechanism; the worst of them is randomized response with log-odds epsilon.

    >>> PureDP(0.1).epsilon(delta=0)
    0.1
    """

    loss: Exact

    domains: ClassVar[Mapping[str, Domain | Several]] = {"epsilon": NONNEGATIVE}
    attributes: ClassVar[Mapping[str, str]] = {"epsilon": "loss"}

    def __init__(self, epsilon: Number) -> None:
        self._set(epsilon=epsilon)

    def key(self) -> Hashable:
        return self.loss

    def own_curve(self, bound: str) -> Curve:
        return Response(epsilon=self.loss)

    def pair(self) -> Pair:
        from cumulant.pairs.response import ResponsePair

        return ResponsePair(epsilon=self.loss)
