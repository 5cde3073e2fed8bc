"""Any mu-GDP mechanism."""

from __future__ import annotations

from fractions import Fraction

from cumulant.curves.closed_form import Concentrated
from cumulant.curves.curve import Curve
from cumulant.domains import LINE, POSITIVE
from cumulant.mechanisms.mechanism import Mechanism, register
from cumulant.pairs.pair import Pair
from cumulant.parameters import Neighbours, Real, Word, parameter
from cumulant.relation import RELATION, Relation


@register
class GaussianDP(Mechanism):
    """Any mu-GDP mechanism.

    No test between neighbours is better than one between N(0, 1) and N(mu, 1).

    Its pair is that of Gaussian noise, its geometry is not: the theorems about values in a ball or of some diameter are
    about real noise and do not apply. See docs/mechanisms/promises.md. `assumed` says under which hypotheses a whole run
    is mu-GDP, as `last_iterate` writes it; such a run is refused on samples.

    >>> GaussianDP(mu="1/2").delta(epsilon=1)
    0.0068296
    """

    mu: Real = parameter(POSITIVE)
    relation: Neighbours = parameter(RELATION, default=Relation.ANY)
    assumed: Word = parameter(LINE, default="")

    def assumption(self) -> str:
        return self.assumed

    def unsampled(self) -> str:
        if not self.assumed:
            return ""
        return (
            "it is a whole run under hypotheses that a random sample breaks; account for the steps on samples instead"
        )

    def own_curve(self, bound: str) -> Curve:
        return Concentrated(rho=self.mu**2 / 2)

    def pair(self) -> Pair:
        from cumulant.pairs.gaussian import GaussianPair

        return GaussianPair(Fraction(self.mu), geometry="")
