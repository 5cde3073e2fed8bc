"""The exponential mechanism."""

from __future__ import annotations

from cumulant.curves.bounded_range import BoundedRange
from cumulant.curves.curve import Curve
from cumulant.domains import NONNEGATIVE
from cumulant.mechanisms.mechanism import Mechanism, register
from cumulant.pairs.pair import Pair
from cumulant.parameters import Real, parameter


@register
class ExponentialMechanism(Mechanism):
    """A choice r with probability ~ exp(epsilon u(r) / (2 Delta)): bounded range.

    Delta is the sensitivity of the scores u.

    The log ratios of the probabilities on two neighbouring data sets lie in an interval of length epsilon, which is all that is
    used; with scores that all move one way, exp(epsilon u(r) / Delta) has it too. The largest of scores with Gumbel noise of
    scale 2 Delta / epsilon is the same law, and the best k of them are `* k`. Proof: docs/mechanisms/exponential.md.

    >>> ExponentialMechanism(1).pure(), ExponentialMechanism(1).delta(epsilon=0)
    (1.0, 0.244919)
    """

    loss: Real = parameter(NONNEGATIVE, alias="epsilon")

    def own_curve(self, bound: str) -> Curve:
        return BoundedRange(self.loss)

    def pair(self) -> Pair:
        from cumulant.pairs.logistic import LogisticPair

        return LogisticPair(self.loss)
