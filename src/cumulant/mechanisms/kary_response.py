"""k-ary randomized response."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, ClassVar

from cumulant.curves.curve import Curve
from cumulant.domains import CHANCE, MANY, NONNEGATIVE, Domain, Exact, Number, Several
from cumulant.errors import InputError
from cumulant.mechanisms.mechanism import Mechanism, register
from cumulant.relation import Relation

if TYPE_CHECKING:
    from cumulant.pairs.local_reports import ThreePoints


@register
@dataclass(frozen=True, slots=True, eq=False, repr=False, init=False)
class KaryResponse(Mechanism):
    """One of `values` answers: the true one with probability p, else another one.

    The others are equally likely.

    Give p, or epsilon, the logarithm of the odds p (values - 1)/(1 - p) of the own value against each other one. A report of
    one person changes but does not vanish: statements are for replace-one neighbours. Proof: docs/mechanisms/local-reports.md.

    >>> import cumulant as cm
    >>> KaryResponse(values=4, p="1/2").pure()
    1.09861
    >>> KaryResponse(values=2, p="3/4").epsilon(0) == cm.RandomizedResponse(p="3/4").epsilon(0)
    True
    """

    values: Exact
    p: Exact | None
    loss: Exact | None

    domains: ClassVar[Mapping[str, Domain | Several]] = {"values": MANY, "p": CHANCE}

    def __init__(self, values: Number, p: Number | None = None, *, epsilon: Number | None = None) -> None:
        if (p is None) == (epsilon is None):
            raise InputError("KaryResponse takes values=… and p=…, or values=… and epsilon=…")
        object.__setattr__(self, "values", MANY.check("values", values))
        object.__setattr__(self, "p", None if p is None else CHANCE.check("p", p))
        object.__setattr__(self, "loss", None if epsilon is None else NONNEGATIVE.check("epsilon", epsilon))

    @classmethod
    def domain(cls, name: str, others: Mapping[str, Number]) -> Domain:
        return NONNEGATIVE if name == "epsilon" else super(cls, cls).domain(name, others)

    @property
    def relation(self) -> Relation:
        return Relation.REPLACE_ONE

    def key(self) -> Hashable:
        return self.values, self.p, self.loss

    def arguments(self) -> Mapping[str, str]:
        given = {"values": self.values, "p": self.p, "epsilon": self.loss}
        return {name: value.notation for name, value in given.items() if value is not None}

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
