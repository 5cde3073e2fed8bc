"""The extreme triples of reports on a sample of fixed size: for every convex test function one of them is worst (Theorem P).

Letters: g = rate, c = e^epsilon, A = 1 + g(c-1), B = 1 - g(1 - 1/c); a round is a = (1-g)R + gP against b = (1-g)R + gQ.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from cumulant.numerics.arithmetic import BALLS


@dataclass(frozen=True, slots=True)
class Share:
    """The probability top / (base + weight c)."""

    top: Fraction
    base: Fraction
    weight: Fraction

    def of(self, odds: Any) -> Any:
        """At these odds c, a ball."""
        return BALLS.number(self.top) / (BALLS.number(self.base) + BALLS.number(self.weight) * odds)


Atoms = list[tuple[str, Any, Any]]
"""Name of the ratio a/b, the ratio and its mass under b; the rest of the mass is at 1."""


@dataclass(frozen=True, slots=True)
class Extremes:
    """Two inputs in both orders, and three different ones if there are three.

    `two` is the probability that only the first of two inputs speaks for the output, the other one being the rest's; of three
    inputs the rest speaks against such an output with probability `against`, for it with c times `for_it`.
    """

    epsilon: Fraction
    odds: Fraction | None
    two: Share
    against: Share | None = None
    for_it: Share | None = None

    def odds_ball(self) -> Any:
        """c."""
        return BALLS.number(self.epsilon).exp() if self.odds is None else BALLS.number(self.odds)

    def triples(self, odds: Any, rate: Any) -> Iterator[Atoms]:
        """The atoms of each triple at these odds and this rate, as balls."""
        up, down = 1 + rate * (odds - 1), 1 - rate * (1 - 1 / odds)
        mass = self.two.of(odds)
        yield [("A", up, mass), ("B", down, odds * mass)]
        yield [("1/A", 1 / up, up * mass), ("1/B", 1 / down, odds * down * mass)]
        third: Atoms = []
        if self.against is not None:
            mass = self.against.of(odds)
            third += [("A", up, mass), ("1/A", 1 / up, up * mass)]
        if self.for_it is not None:
            mass = odds * self.for_it.of(odds)
            third += [("B", down, mass), ("1/B", 1 / down, down * mass)]
        if third:
            yield third
