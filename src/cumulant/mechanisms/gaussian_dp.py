"""Any mu-GDP mechanism."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

from cumulant.curves.closed_form import Concentrated
from cumulant.curves.curve import Curve
from cumulant.domains import POSITIVE, Domain, Exact, Number, Several
from cumulant.mechanisms.mechanism import Mechanism, register
from cumulant.pairs.pair import Pair


@register
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class GaussianDP(Mechanism):
    """Any mu-GDP mechanism: no test between neighbours is better than one between N(0, 1) and N(mu, 1).

    Its pair is that of Gaussian noise, its geometry is not: the theorems about values in a ball or of some diameter are about
    real noise and do not apply. See docs/mechanisms/promises.md.

    >>> GaussianDP(mu="1/2").delta(epsilon=1)
    0.0068296
    """

    mu: Number

    domains: ClassVar[Mapping[str, Domain | Several]] = {"mu": POSITIVE}

    def key(self) -> Hashable:
        return Fraction(Exact(self.mu))

    def own_curve(self, bound: str) -> Curve:
        return Concentrated(rho=Exact(self.mu) ** 2 / 2)

    def pair(self) -> Pair:
        from cumulant.pairs.gaussian import GaussianPair

        return GaussianPair(Fraction(Exact(self.mu)), geometry="")
