"""Unary encoding."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, ClassVar

from cumulant.curves.curve import Curve
from cumulant.domains import CHANCE, Less
from cumulant.mechanisms.mechanism import Mechanism, register
from cumulant.parameters import Real, parameter
from cumulant.relation import Relation

if TYPE_CHECKING:
    from cumulant.exact.shuffled_reports import Randomizer
    from cumulant.pairs.local_reports import ThreePoints


@register
class UnaryEncoding(Mechanism):
    """One bit for each value, drawn independently.

    The bit of the own value is 1 with probability p, each other with q < p.

    Two values that are exchanged change two bits, however many there are. One-time RAPPOR with parameter f is p = 1 - f/2,
    q = f/2, optimised unary encoding p = 1/2; Bloom filters and several hashes are not covered. Statements are for replace-one
    neighbours. Proof: docs/mechanisms/local-reports.md.

    >>> UnaryEncoding(p="1/2", q="1/5").pure()
    1.3863
    """

    p: Real = parameter(CHANCE)
    q: Real = parameter(CHANCE)

    relation = Relation.REPLACE_ONE
    joint: ClassVar[tuple[Less, ...]] = (Less("q", "p"),)

    def own_curve(self, bound: str) -> Curve:
        return self.pair().curve()

    def pair(self) -> ThreePoints:
        from cumulant.pairs.local_reports import ThreePoints

        p, q = Fraction(self.p), Fraction(self.q)
        return ThreePoints.of(p * (1 - q), p * (1 - q) / (q * (1 - p)))

    def local_randomizer(self) -> Randomizer:
        """Return the labels of both bits, and the reports with one of them; a third value may not exist."""
        from cumulant.exact.shuffled_reports import Kinds, Randomizer
        from cumulant.pairs.blanket import selection_labels

        p, q = Fraction(self.p), Fraction(self.q)
        odds, own, new = p * (1 - q) / (q * (1 - p)), p * (1 - q), q * (1 - p)
        labels = selection_labels(odds, q * (1 - q), q * q, (1 - p) / (1 - q))
        return Randomizer((labels,), Kinds((own, new), (new, own), (new, own)))
