"""Gaussian noise on a sum that one record moves by a random amount."""

from __future__ import annotations

from collections.abc import Hashable

from cumulant.curves.curve import Curve
from cumulant.curves.gaussian_mixture import Shifts
from cumulant.domains import NONNEGATIVE, POSITIVE, PROBABILITY, Exact, Several
from cumulant.errors import InputError, RelationError
from cumulant.mechanisms.mechanism import Mechanism, register
from cumulant.pairs.gaussian_mixture import GaussianMixturePair
from cumulant.parameters import Neighbours, Real, Reals, parameter
from cumulant.relation import RELATION, Relation


@register
class GaussianMixture(Mechanism):
    """A sum + Gaussian noise of deviation sigma that one record moves by a random amount.

    The amount is shifts[i] or less with probability weights[i].

    The coin is tossed in secret, and with the same law whatever the other records are: a record that several owners share, a
    user who has each of k records in a Poisson sample. Statements are for add/remove neighbours, or with
    `relation="replace-special"` for a record that one which adds nothing replaces; shifts are L2 norms, and weights sum to 1.
    On a Poisson sample it is a mixture again. See docs/mechanisms/gaussian-mixture.md.

    >>> GaussianMixture(sigma=1, shifts=[0, 1, 2], weights=["0.81", "0.18", "0.01"]).delta(epsilon="0.5")
    0.0145290
    """

    sigma: Real = parameter(POSITIVE)
    shifts: Reals = parameter(Several(NONNEGATIVE))
    weights: Reals = parameter(Several(PROBABILITY))
    relation: Neighbours = parameter(RELATION, default=Relation.ADD_REMOVE)

    def _validate(self) -> None:
        if self.relation.clipping != 1:
            raise RelationError(
                f"GaussianMixture says what one record adds, and nothing is proved for {self.relation} neighbours; choose "
                "'add-remove' or 'replace-special'"
            )
        if len(self.shifts) != len(self.weights):
            raise InputError(
                f"shifts and weights must have the same length, not {len(self.shifts)} and {len(self.weights)}"
            )
        if (total := sum(self.weights)) != 1:
            raise InputError(
                f'weights={self.weights.notation} must sum to 1, not {Exact(total)}; write thirds as "1/3"'
            )

    def _mixture(self) -> Shifts:
        return Shifts.of([shift / self.sigma for shift in self.shifts], self.weights)

    def key(self) -> Hashable:
        mixture = self._mixture()
        return mixture.shifts, mixture.weights, self.relation

    scaled_to_norm = True

    def own_curve(self, bound: str) -> Curve:
        return self.pair().curve()

    def pair(self) -> GaussianMixturePair:
        return GaussianMixturePair(self._mixture())
