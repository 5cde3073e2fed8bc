"""Subset selection."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, ClassVar

from cumulant.curves.curve import Curve
from cumulant.domains import COUNT, MANY, NONNEGATIVE, Domain, Exact, Less, Number, Several
from cumulant.mechanisms.mechanism import Mechanism, register
from cumulant.relation import Relation

if TYPE_CHECKING:
    from cumulant.pairs.local_reports import ThreePoints


@register
@dataclass(frozen=True, slots=True, eq=False, repr=False, init=False)
class SubsetSelection(Mechanism):
    """A set of `size` out of `values`, more likely to hold the own value.

    Each set that holds it is e^epsilon times as likely as each that does not.

    With size 1 it is k-ary response. Statements are for replace-one neighbours. Proof: docs/mechanisms/local-reports.md.

    >>> SubsetSelection(values=10, size=3, epsilon=1).pure()
    1.0
    """

    values: Exact
    size: Exact
    loss: Exact

    domains: ClassVar[Mapping[str, Domain | Several]] = {"values": MANY, "size": COUNT, "epsilon": NONNEGATIVE}
    joint: ClassVar[tuple[Less, ...]] = (Less("size", "values"),)
    attributes: ClassVar[Mapping[str, str]] = {"epsilon": "loss"}

    def __init__(self, values: Number, size: Number, epsilon: Number) -> None:
        self._set(values=values, size=size, epsilon=epsilon)

    @property
    def relation(self) -> Relation:
        return Relation.REPLACE_ONE

    def key(self) -> Hashable:
        return self.values, self.size, self.loss

    def own_curve(self, bound: str) -> Curve:
        return self.pair().curve()

    def pair(self) -> ThreePoints:
        from cumulant.pairs.local_reports import ThreePoints

        k, w = self.values, self.size
        third = (k - w - 1) / (k - 2) if k > 2 else Fraction(1)
        return ThreePoints(w * (k - w) / (k - 1), epsilon=self.loss, base=k - w, weight=w, one_bit=k == 2, third=third)
