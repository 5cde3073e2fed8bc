"""Schemes with a rate: the probability with which a record is in the sample, which is all that their theorems ask for."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping
from fractions import Fraction

from cumulant.bounds.bound import amplified
from cumulant.bounds.table import BOUNDS, row
from cumulant.curves.curve import Curve
from cumulant.domains import Exact, Number
from cumulant.pairs.pair import Pair
from cumulant.sampling.scheme import Scheme


class Rated(Scheme):
    """A scheme whose theorems take the rate; at rate 1 the sample is all the data, and every theorem holds."""

    __slots__ = ()

    rate: Exact

    @abstractmethod
    def __init__(self, rate: Number) -> None:
        """Every such scheme may be given by its rate."""

    def numbers(self) -> Mapping[str, Fraction]:
        return {"rate": self.rate}

    def theorem(self, bound: str) -> str:
        return Scheme.theorem(self, bound) if self.rate < 1 else row(bound).name

    def curve(self, base: Callable[[str], Curve], pair: Pair | None, bound: str, subject: str) -> Curve:
        name = self.theorem(bound)
        rows = self.bounds if name in self.bounds else BOUNDS
        return amplified(rows, name, base(name if row(name).upper else "best"), pair, self.rate, subject)

    def by_lemma3(self) -> Fraction:
        self.theorem("lemma3")
        return self.rate
