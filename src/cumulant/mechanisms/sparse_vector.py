"""The sparse vector technique."""

from __future__ import annotations

from collections.abc import Hashable
from fractions import Fraction

from cumulant.curves.closed_form import LaplaceShift, Raised, Response
from cumulant.curves.curve import Curve, Lowest
from cumulant.domains import COUNT, FEW, POSITIVE, TRUTH, Choice
from cumulant.errors import InputError
from cumulant.mechanisms.mechanism import Mechanism, register
from cumulant.pairs.pair import Pair
from cumulant.parameters import Flag, OptionalReal, Real, Word, parameter
from cumulant.relation import Relation

NOISES = ("laplace", "gaussian")
_POINTS = 64
"""Intervals between the points of a profile through which the polygon goes; chosen by hand, any number is valid."""

_MOST_STEPS = 10**6
"""Queries of all hits with Gaussian noise, at most; a bound of time."""


@register
class SparseVector(Mechanism):
    """AboveThreshold: one bit per query, until enough of them are above the threshold.

    It ends after `hits` of them. The bit says only whether the query with noise is above a threshold with noise.

    `threshold` and `query` are the scales of the noise, standard deviations for Gaussian noise; the threshold is drawn once for
    all hits. With a fresh one after each hit it is `SparseVector(..., hits=1) * hits`. Gaussian noise needs the number of
    `queries`. Queries are `monotone` if all move the same way when one record is added. See docs/mechanisms/sparse-vector.md.

    >>> SparseVector(threshold=2, query=4).pure()
    1.0
    """

    threshold: Real = parameter(POSITIVE)
    query: Real = parameter(POSITIVE)
    hits: Real = parameter(FEW, default=1)
    noise: Word = parameter(Choice(NOISES), default=NOISES[0])
    queries: OptionalReal = parameter(COUNT, default=None)
    sensitivity: Real = parameter(POSITIVE, default=1)
    monotone: Flag = parameter(TRUTH, default=False)

    def _validate(self) -> None:
        if self.noise == "gaussian" and (self.queries is None or self.queries > 10**5):
            raise InputError(
                "Gaussian noise needs queries=…, how many there are at most, up to 100000; or use Laplace noise"
            )
        if self.noise == "gaussian" and (self.queries or 1) * self.hits > _MOST_STEPS:
            raise InputError(
                f"hits={self.hits} times queries={self.queries} must be at most {_MOST_STEPS} with Gaussian noise; with a "
                "fresh threshold after each hit write SparseVector(..., hits=1) * hits"
            )

    @property
    def relation(self) -> Relation:
        return Relation.ADD_REMOVE if self.monotone else Relation.ANY

    def _shifts(self) -> tuple[Fraction, Fraction]:
        """Return the shift of the threshold, and of each answer that is above it."""
        moved = self.sensitivity if self.monotone else 2 * self.sensitivity
        return self.sensitivity / self.threshold, moved / self.query

    def key(self) -> Hashable:
        queries = None if self.noise == "laplace" else self.queries
        return self._shifts(), self.hits, self.noise, queries, self.monotone

    def own_curve(self, bound: str) -> Curve:
        threshold, query = self._shifts()
        if self.noise == "gaussian":
            from cumulant.curves.sparse_vector import gaussian_sparse_vector

            return gaussian_sparse_vector(threshold, query, int(self.hits), int(self.queries or 1))
        added = query * self.hits
        return Lowest((Raised(LaplaceShift(threshold), added), Response(epsilon=threshold + added)))

    def pair(self) -> Pair | None:
        """Return the pair of the Laplace noise on the threshold, shifted by the other answers.

        delta(x) is at most that of Laplace noise on the threshold at x less the cost of the answers above it. Returns None for
        Gaussian noise, and if the privacy loss is beyond all grids.
        """
        threshold, query = self._shifts()
        moved = query * self.hits
        if self.noise == "gaussian" or threshold + moved > 250:
            return None
        from cumulant.pairs.laplace import LaplacePair
        from cumulant.pairs.polygon import PolygonPair, convex_corners, profile_above
        from cumulant.pairs.selection import SelectedPair

        base = LaplacePair(threshold)
        steps = [threshold * Fraction(i, _POINTS) for i in range(_POINTS + 1)]
        polygon = PolygonPair(*convex_corners([moved + step for step in steps], profile_above(base, steps)))
        return SelectedPair(polygon, base, moved, Fraction(1))
