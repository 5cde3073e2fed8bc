"""The index of the largest noisy score."""

from __future__ import annotations

from collections.abc import Hashable
from fractions import Fraction

from cumulant.curves.bounded_range import BoundedRange
from cumulant.curves.closed_form import LaplaceShift
from cumulant.curves.curve import Curve
from cumulant.domains import POSITIVE, TRUTH, Choice
from cumulant.mechanisms.mechanism import Mechanism, register
from cumulant.pairs.pair import Pair
from cumulant.parameters import Flag, Real, Word, parameter
from cumulant.relation import Relation

NOISES = ("exponential", "laplace", "gumbel")


@register
class NoisyMax(Mechanism):
    """The index, and nothing else, of the largest of scores with independent noise.

    The noise has this scale, and each score this sensitivity.

    Differences of scores move by up to twice the sensitivity R = 2 S; by S if the scores are `monotone`, all of them rising or
    all falling when one record is added, which is a fact about add/remove neighbours. Exponential and Laplace noise: dominated
    by Laplace noise of shift R / scale. Gumbel noise: the exponential mechanism of epsilon = R / scale. A published maximum,
    rounded noise and Gaussian noise are not covered. Proof: docs/mechanisms/noisy-max.md.

    >>> NoisyMax(scale=2).pure(), NoisyMax(scale=2, noise="gumbel", monotone=True).pure()
    (1.0, 0.5)
    """

    scale: Real = parameter(POSITIVE)
    noise: Word = parameter(Choice(NOISES), default=NOISES[0])
    sensitivity: Real = parameter(POSITIVE, default=1)
    monotone: Flag = parameter(TRUTH, default=False)

    @property
    def relation(self) -> Relation:
        return Relation.ADD_REMOVE if self.monotone else Relation.ANY

    def _epsilon(self) -> Fraction:
        return (1 if self.monotone else 2) * self.sensitivity / self.scale

    def key(self) -> Hashable:
        return self._epsilon(), self.noise, self.monotone

    def own_curve(self, bound: str) -> Curve:
        return BoundedRange(self._epsilon()) if self.noise == "gumbel" else LaplaceShift(self._epsilon())

    def pair(self) -> Pair:
        if self.noise == "gumbel":
            from cumulant.pairs.logistic import LogisticPair

            return LogisticPair(self._epsilon())
        from cumulant.pairs.laplace import LaplacePair

        return LaplacePair(self._epsilon(), attained=False)
