"""Unary encoding."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, ClassVar

from cumulant.curves.curve import Curve
from cumulant.domains import CHANCE, Domain, Exact, Less, Number, Several
from cumulant.mechanisms.mechanism import Mechanism, register
from cumulant.relation import Relation

if TYPE_CHECKING:
    from cumulant.pairs.local_reports import ThreePoints


@register
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class UnaryEncoding(Mechanism):
    """One bit for each value, drawn independently.

    The bit of the own value is 1 with probability p, each other with q < p.

    Two values that are exchanged change two bits, however many there are. One-time RAPPOR with parameter f is p = 1 - f/2,
    q = f/2, optimised unary encoding p = 1/2; Bloom filters and several hashes are not covered. Statements are for replace-one
    neighbours. Proof: docs/mechanisms/local-reports.md.

    >>> UnaryEncoding(p="1/2", q="1/5").pure()
    1.3863
    """

    p: Number
    q: Number

    domains: ClassVar[Mapping[str, Domain | Several]] = {"p": CHANCE, "q": CHANCE}
    joint: ClassVar[tuple[Less, ...]] = (Less("q", "p"),)

    @property
    def relation(self) -> Relation:
        return Relation.REPLACE_ONE

    def key(self) -> Hashable:
        return Exact(self.p), Exact(self.q)

    def own_curve(self, bound: str) -> Curve:
        return self.pair().curve()

    def pair(self) -> ThreePoints:
        from cumulant.pairs.local_reports import ThreePoints

        p, q = Fraction(Exact(self.p)), Fraction(Exact(self.q))
        return ThreePoints.of(p * (1 - q), p * (1 - q) / (q * (1 - p)))
