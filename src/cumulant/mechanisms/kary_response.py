"""k-ary randomized response."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Any

from cumulant.curves.curve import Curve
from cumulant.domains import CHANCE, MANY, NONNEGATIVE
from cumulant.errors import InputError
from cumulant.mechanisms.mechanism import Mechanism, register
from cumulant.numerics.rationals import enclosed_exp
from cumulant.parameters import OptionalReal, Real, parameter
from cumulant.relation import Relation

if TYPE_CHECKING:
    from cumulant.exact.shuffled_reports import Randomizer
    from cumulant.pairs.local_reports import ThreePoints


@register
class KaryResponse(Mechanism):
    """One of several answers: the true one with probability p, else another one.

    There are `values` answers, and the others are equally likely.

    Give p, or epsilon, the logarithm of the odds p (values - 1)/(1 - p) of the own value against each other one. A report of
    one person changes but does not vanish: statements are for replace-one neighbours. Proof: docs/mechanisms/local-reports.md.

    >>> import cumulant as cm
    >>> KaryResponse(values=4, p="1/2").pure()
    1.09861
    >>> KaryResponse(values=2, p="3/4").epsilon(0) == cm.RandomizedResponse(p="3/4").epsilon(0)
    True
    """

    values: Real = parameter(MANY)
    p: OptionalReal = parameter(CHANCE, default=None, free=True)
    loss: OptionalReal = parameter(NONNEGATIVE, default=None, alias="epsilon", kw_only=True)

    relation = Relation.REPLACE_ONE

    @classmethod
    def _prepare(cls, given: dict[str, Any]) -> dict[str, Any]:
        if (given["p"] is None) == (given["epsilon"] is None):
            raise InputError("KaryResponse takes values=… and p=…, or values=… and epsilon=…")
        return given

    def own_curve(self, bound: str) -> Curve:
        return self.pair().curve()

    def pair(self) -> ThreePoints:
        from cumulant.pairs.local_reports import ThreePoints

        binary = self.values == 2
        if self.p is None:
            one = Fraction(1)
            return ThreePoints(
                one,
                epsilon=Fraction(self.loss or 0),
                base=self.values - one,
                weight=one,
                one_bit=binary,
                third=one,
                values=int(self.values),
            )
        odds = self.p * (self.values - 1) / (1 - self.p)
        return ThreePoints.of(Fraction(self.p), odds, binary, Fraction(1), int(self.values))

    def local_randomizer(self) -> Randomizer:
        """Return sets of one value; below 1/values the report names the values that the record does not have."""
        from cumulant.exact.shuffled_reports import set_randomizer

        values = int(self.values)
        if self.p is None:
            return set_randomizer(values, 1, *enclosed_exp(Fraction(self.loss or 0)))
        odds = Fraction(self.p * (values - 1) / (1 - self.p))
        if odds >= 1:
            return set_randomizer(values, 1, odds, odds)
        return set_randomizer(values, values - 1, 1 / odds, 1 / odds)
