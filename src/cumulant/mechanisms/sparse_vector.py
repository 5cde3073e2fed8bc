"""The sparse vector technique."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

from cumulant.curves.closed_form import LaplaceShift, Raised, Response
from cumulant.curves.curve import Curve, Lowest
from cumulant.domains import COUNT, FEW, POSITIVE, Domain, Exact, Number, Several, one_of, truth
from cumulant.errors import InputError
from cumulant.mechanisms.mechanism import Mechanism, register
from cumulant.pairs.pair import Pair
from cumulant.relation import Relation

NOISES = ("laplace", "gaussian")
_POINTS = 64
_MOST_STEPS = 10**6


@register
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class SparseVector(Mechanism):
    """AboveThreshold: one bit per query, until `hits` of them are above the threshold.

    The bit says only whether the query with noise is above a threshold with noise.

    `threshold` and `query` are the scales of the noise, standard deviations for Gaussian noise; the threshold is drawn once for
    all hits. With a fresh one after each hit it is `SparseVector(..., hits=1) * hits`. Gaussian noise needs the number of
    `queries`. Queries are `monotone` if all move the same way when one record is added. See docs/mechanisms/sparse-vector.md.

    >>> SparseVector(threshold=2, query=4).pure()
    1.0
    """

    threshold: Number
    query: Number
    hits: Number = 1
    noise: str = "laplace"
    queries: Number | None = None
    sensitivity: Number = 1
    monotone: bool | str = False

    domains: ClassVar[Mapping[str, Domain | Several]] = {
        "threshold": POSITIVE,
        "query": POSITIVE,
        "hits": FEW,
        "sensitivity": POSITIVE,
    }
    defaults: ClassVar[Mapping[str, Number]] = {"hits": 1, "sensitivity": 1}

    def __post_init__(self) -> None:
        Mechanism.__post_init__(self)
        object.__setattr__(self, "noise", one_of("noise", self.noise, NOISES))
        object.__setattr__(self, "monotone", truth("monotone", self.monotone))
        if self.queries is not None:
            object.__setattr__(self, "queries", COUNT.check("queries", self.queries))
        if self.noise == "gaussian" and (self.queries is None or Exact(self.queries) > 10**5):
            raise InputError(
                "Gaussian noise needs queries=…, how many there are at most, up to 100000; or use Laplace noise"
            )
        if self.noise == "gaussian" and Exact(self.queries or 1) * Exact(self.hits) > _MOST_STEPS:
            raise InputError(
                f"hits={self.hits} times queries={self.queries} must be at most {_MOST_STEPS} with Gaussian noise; with a "
                "fresh threshold after each hit write SparseVector(..., hits=1) * hits"
            )

    @property
    def relation(self) -> Relation:
        return Relation.ADD_REMOVE if self.monotone else Relation.ANY

    def _shifts(self) -> tuple[Fraction, Fraction]:
        """Return the shift of the threshold, and of each answer that is above it."""
        sensitivity = Exact(self.sensitivity)
        moved = sensitivity if self.monotone else 2 * sensitivity
        return sensitivity / Exact(self.threshold), moved / Exact(self.query)

    def key(self) -> Hashable:
        queries = None if self.noise == "laplace" else self.queries
        return self._shifts(), Exact(self.hits), self.noise, queries, self.monotone

    def arguments(self) -> Mapping[str, str]:
        words = {} if self.noise == NOISES[0] else {"noise": f'"{self.noise}"'}
        queries = {} if self.queries is None else {"queries": Exact(self.queries).notation}
        return {**Mechanism.arguments(self), **words, **queries, **({"monotone": '"yes"'} if self.monotone else {})}

    def own_curve(self, bound: str) -> Curve:
        threshold, query = self._shifts()
        if self.noise == "gaussian":
            from cumulant.curves.sparse_vector import gaussian_sparse_vector

            return gaussian_sparse_vector(threshold, query, int(Exact(self.hits)), int(Exact(self.queries or 1)))
        added = query * Exact(self.hits)
        return Lowest((Raised(LaplaceShift(threshold), added), Response(epsilon=threshold + added)))

    def pair(self) -> Pair | None:
        """Return the pair of the Laplace noise on the threshold, shifted by the other answers.

        delta(x) <= that of Laplace noise on the threshold at x less what the answers above it cost.
        """
        threshold, query = self._shifts()
        moved = query * Exact(self.hits)
        if self.noise == "gaussian" or threshold + moved > 250:
            return None
        from cumulant.pairs.laplace import LaplacePair
        from cumulant.pairs.polygon import PolygonPair, convex_corners, profile_above
        from cumulant.pairs.selection import SelectedPair

        base = LaplacePair(threshold)
        steps = [threshold * Fraction(i, _POINTS) for i in range(_POINTS + 1)]
        polygon = PolygonPair(*convex_corners([moved + step for step in steps], profile_above(base, steps)))
        return SelectedPair(polygon, base, moved, Fraction(1))
