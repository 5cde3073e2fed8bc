"""Permute and flip."""

from __future__ import annotations

from cumulant.curves.closed_form import LaplaceShift
from cumulant.curves.curve import Curve
from cumulant.domains import NONNEGATIVE
from cumulant.mechanisms.mechanism import Mechanism, register
from cumulant.pairs.pair import Pair
from cumulant.parameters import Real, parameter


@register
class PermuteAndFlip(Mechanism):
    """Candidates in random order, each accepted with a probability from its score.

    The probability is exp(epsilon (u - max u) / (2 Delta)).

    The same law as the largest of scores with exponential noise of scale 2 Delta / epsilon; the index is dominated by Laplace
    noise of shift epsilon, which is attained. rho = epsilon^2/8, right for the exponential mechanism, is not for this one.
    Proof: docs/mechanisms/noisy-max.md.

    >>> PermuteAndFlip(1).pure()
    1.0
    """

    loss: Real = parameter(NONNEGATIVE, alias="epsilon")

    def own_curve(self, bound: str) -> Curve:
        return LaplaceShift(self.loss)

    def pair(self) -> Pair | None:
        from cumulant.pairs.laplace import LaplacePair

        return LaplacePair(self.loss, attained=False) if self.loss else None
