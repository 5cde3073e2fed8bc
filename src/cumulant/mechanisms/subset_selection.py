"""Subset selection."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, ClassVar

from cumulant.curves.curve import Curve
from cumulant.domains import COUNT, MANY, NONNEGATIVE, Less
from cumulant.mechanisms.mechanism import Mechanism, register
from cumulant.numerics.rationals import enclosed_exp
from cumulant.parameters import Real, parameter
from cumulant.relation import Relation

if TYPE_CHECKING:
    from cumulant.exact.shuffled_reports import Randomizer
    from cumulant.pairs.local_reports import ThreePoints


@register
class SubsetSelection(Mechanism):
    """A random set of values, more likely to hold the own value.

    It has `size` of the `values`. Each set that holds the own value is e^epsilon times as likely as each that does not.

    With size 1 it is k-ary response. Statements are for replace-one neighbours. Proof: docs/mechanisms/local-reports.md.

    >>> SubsetSelection(values=10, size=3, epsilon=1).pure()
    1.0
    """

    values: Real = parameter(MANY)
    size: Real = parameter(COUNT)
    loss: Real = parameter(NONNEGATIVE, alias="epsilon")

    relation = Relation.REPLACE_ONE
    joint: ClassVar[tuple[Less, ...]] = (Less("size", "values"),)

    def own_curve(self, bound: str) -> Curve:
        return self.pair().curve()

    def pair(self) -> ThreePoints:
        from cumulant.pairs.local_reports import ThreePoints

        k, w = self.values, self.size
        third = (k - w - 1) / (k - 2) if k > 2 else Fraction(1)
        return ThreePoints(w * (k - w) / (k - 1), epsilon=self.loss, base=k - w, weight=w, one_bit=k == 2, third=third)

    def local_randomizer(self) -> Randomizer:
        """Return labels for e^epsilon rounded up, and kinds for it rounded down: less of it is a post-processing."""
        from cumulant.exact.shuffled_reports import set_randomizer

        return set_randomizer(int(self.values), int(self.size), *enclosed_exp(self.loss))
