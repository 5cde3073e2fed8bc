"""Any mu-GDP mechanism."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

from cumulant.curves.closed_form import Concentrated
from cumulant.curves.curve import Curve
from cumulant.domains import POSITIVE, Domain, Exact, Number, Several
from cumulant.errors import InputError, shown
from cumulant.mechanisms.mechanism import Mechanism, register
from cumulant.pairs.pair import Pair
from cumulant.relation import Relation


@register
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class GaussianDP(Mechanism):
    """Any mu-GDP mechanism.

    No test between neighbours is better than one between N(0, 1) and N(mu, 1).

    Its pair is that of Gaussian noise, its geometry is not: the theorems about values in a ball or of some diameter are
    about real noise and do not apply. See docs/mechanisms/promises.md. `assumed` says under which hypotheses a whole run
    is mu-GDP, as `last_iterate` writes it; such a run is refused on samples.

    >>> GaussianDP(mu="1/2").delta(epsilon=1)
    0.0068296
    """

    mu: Number
    relation: Relation = Relation.ANY
    assumed: str = ""

    domains: ClassVar[Mapping[str, Domain | Several]] = {"mu": POSITIVE}

    def __post_init__(self) -> None:
        Mechanism.__post_init__(self)
        object.__setattr__(self, "relation", Relation.read(self.relation))
        said: object = self.assumed
        if not isinstance(said, str) or '"' in said or "\\" in said or not (said.isprintable() or not said):
            raise InputError(f"assumed={shown(said)} must be a text on one line, without quotes")

    def key(self) -> Hashable:
        return Fraction(Exact(self.mu)), self.relation, self.assumed

    def arguments(self) -> Mapping[str, str]:
        stated = {} if self.relation is Relation.ANY else {"relation": f'"{self.relation}"'}
        said = {"assumed": f'"{self.assumed}"'} if self.assumed else {}
        return {**Mechanism.arguments(self), **stated, **said}

    def assumption(self) -> str:
        return self.assumed

    def unsampled(self) -> str:
        if not self.assumed:
            return ""
        return (
            "it is a whole run under hypotheses that a random sample breaks; account for the steps on samples instead"
        )

    def own_curve(self, bound: str) -> Curve:
        return Concentrated(rho=Exact(self.mu) ** 2 / 2)

    def pair(self) -> Pair:
        from cumulant.pairs.gaussian import GaussianPair

        return GaussianPair(Fraction(Exact(self.mu)), geometry="")
