"""Gaussian noise."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import InitVar
from fractions import Fraction
from typing import Any

from cumulant.curves.closed_form import Concentrated, Exposed
from cumulant.curves.curve import Curve
from cumulant.domains import COUNT, NONNEGATIVE, POSITIVE, TRUTH, Choice, Domain, Exact, Number
from cumulant.errors import InputError, RelationError, shown
from cumulant.mechanisms.mechanism import Expression, Mechanism, register
from cumulant.numerics.arithmetic import root
from cumulant.numerics.matrices import Matrix, Participation, largest_square
from cumulant.pairs.pair import Pair
from cumulant.parameters import Flag, Neighbours, OptionalReal, Real, Word, parameter
from cumulant.relation import RELATION, Relation

_UNSAID = ""
"""A sigma that is not given."""

GEOMETRIES = ("diameter", "ball")
"""The known shape of the values: only their distances, or a ball that holds them and whose diameter is the sensitivity."""


@register
class Gaussian(Mechanism):
    """f(X) + N(0, sigma^2 I) for this L2 sensitivity S of f: rdp(a) = a S^2 / (2 sigma^2).

    f is a scalar or a vector.

    sigma is the standard deviation of the noise, in the units of the sensitivity (E-20). The sensitivity is that of the
    relation the run is stated under: replace-one for sampling without replacement. For sums of clipped vectors use
    `from_clipping`.

    Without noise, sigma = 0, nothing is private; what no record moves, sensitivity = 0, is so whatever the noise.

    `geometry="ball"` says that the values lie in a ball whose diameter is the sensitivity, as clipped sums and scalar
    queries do; a sampled Gaussian is then accounted for exactly (Theorem C). Such a sensitivity is a replace-one one.

    `averaged_over=n` says that the noise is added to a mean: to the query of this sensitivity divided by the number n of
    records it is asked about. That is public and the same for neighbouring data sets, so these are replace-one ones; on a
    sample it is the size of the sample (E-20).

    `squared_sensitivity` says the square of the sensitivity where its root is not a fraction: PATE's noisy counts, where one
    vote moves two of them by 1, have 2. The square is what is kept; `sensitivity` is then rounded up.

    A training loop says its noise multiplier and the norm `clip` to which gradients are clipped; the deviation of the noise
    on their sum is the product. What a record moves then depends on the neighbours, so `relation` must be said (E-2).

    `correlated` marks what `from_matrix` and `from_tree` make: a whole run whose steps share noise. It may be repeated and
    added, and is refused on samples, because a sample of the run is not a sample per step.

    >>> Gaussian(noise_multiplier=1.1, clip=2, relation="add-remove") == Gaussian(sigma=1.1, relation="add-remove")
    True
    >>> Gaussian(noise_multiplier=1.1, relation="replace-one")
    Gaussian(sigma=1.1, sensitivity=2, geometry="ball")
    >>> Gaussian(sigma=10, sensitivity=2) == Gaussian(sigma=5)
    True
    >>> Gaussian(sigma=4, squared_sensitivity=2).rdp(2), Gaussian(sigma=4, squared_sensitivity=2) == Gaussian(sigma=4)
    (0.125, False)
    >>> Gaussian(sigma=5).rdp(2)
    0.04
    """

    sigma: Real = parameter(NONNEGATIVE, default=_UNSAID)
    sensitivity: Real = parameter(NONNEGATIVE, default=1)
    geometry: Word = parameter(Choice(GEOMETRIES), default="diameter")
    relation: Neighbours = parameter(RELATION, default=Relation.ANY)
    averaged_over: Real = parameter(COUNT, default=1, free=False)
    squared_sensitivity: OptionalReal = parameter(POSITIVE, default=None)
    noise_multiplier: InitVar[Number | None] = None
    clip: InitVar[Number | None] = None
    correlated: Flag = parameter(TRUTH, default=False)

    @classmethod
    def _prepare(cls, given: dict[str, Any]) -> dict[str, Any]:
        if given["noise_multiplier"] is not None or given["clip"] is not None:
            given |= cls._clipped(**given)
        elif given["sigma"] is _UNSAID:
            raise InputError("Gaussian needs sigma=…, or noise_multiplier=… with clip=… and relation=…")
        if given["squared_sensitivity"] is not None:
            given |= cls._squared(given["sensitivity"], given["squared_sensitivity"])
        return given

    def _validate(self) -> None:
        stated = self.relation.of_mean(int(self.averaged_over))
        if self.geometry == "ball" and stated.clipping == 1:
            raise RelationError(f'geometry="ball" is a fact about replace-one sensitivity; leave it out for {stated}')
        object.__setattr__(self, "relation", Relation.REPLACE_ONE if self.geometry == "ball" else stated)

    @staticmethod
    def _squared(sensitivity: Number, square: Number) -> dict[str, Exact | None]:
        """Return the sensitivity whose square is given, rounded up where it is no fraction."""
        if NONNEGATIVE.check("sensitivity", sensitivity) != 1:
            raise InputError("squared_sensitivity says what sensitivity is; leave one of them out")
        checked = POSITIVE.check("squared_sensitivity", square)
        least, most = root(checked)
        return {"squared_sensitivity": None if least == most else checked, "sensitivity": Exact(most)}

    @staticmethod
    def _clipped(
        *, noise_multiplier: Number | None, clip: Number | None, averaged_over: Number, relation: Relation, **given: Any
    ) -> dict[str, Exact | str]:
        """Return sigma and sensitivity from a noise multiplier and a clipping norm.

        Their meaning depends on the relation that is given with them.
        """
        if noise_multiplier is None:
            raise InputError(f"clip={shown(clip)} needs a noise_multiplier=… beside it, whose product is sigma")
        doubled = given["sigma"] is not _UNSAID or given["squared_sensitivity"] is not None
        if doubled or NONNEGATIVE.check("sensitivity", given["sensitivity"]) != 1:
            raise InputError("noise_multiplier and clip say what sigma and sensitivity are; leave those out")
        stated = Relation.read(relation)
        if stated is Relation.ANY:
            raise InputError(
                f"noise_multiplier={shown(noise_multiplier)} does not say who the neighbours are; add "
                'relation="add-remove" (Poisson samples, Opacus) or relation="replace-one" (batches of a fixed size)'
            )
        norm = POSITIVE.check("clip", 1 if clip is None else clip)
        factor = NONNEGATIVE.check("noise_multiplier", noise_multiplier)
        same = Gaussian.from_clipping(norm, factor if norm == 1 else factor * norm, stated, averaged_over)
        return {"sigma": same.sigma, "sensitivity": same.sensitivity, "geometry": same.geometry}

    @classmethod
    def domain(cls, name: str, others: Mapping[str, Number]) -> Domain:
        return POSITIVE if name in ("noise_multiplier", "clip") else super().domain(name, others)

    @classmethod
    def from_clipping(
        cls, norm: Number, noise: Number, relation: Relation | str, averaged_over: Number = 1
    ) -> Gaussian:
        """Return the noisy sum of vectors clipped to an L2 norm.

        `noise` is the standard deviation that is added to the sum.

        Replacing one record moves the sum by up to 2 * norm, adding or removing one by up to norm (E-2). With `averaged_over=n`
        the noise is added to the mean of n clipped vectors, as in eq. (1) of the paper: replacing one moves it by 2 * norm / n.

        >>> Gaussian.from_clipping(norm=1, noise=2, relation="replace-one")
        Gaussian(sigma=2, sensitivity=2, geometry="ball")
        >>> Gaussian.from_clipping(norm=1, noise=2, relation="add-remove")
        Gaussian(sigma=2, relation="add-remove")
        >>> import cumulant as cm
        >>> mean = Gaussian.from_clipping(norm=1, noise="0.02", relation="replace-one", averaged_over=256)
        >>> step = mean @ cm.WithoutReplacement(
        ...     sample=256, population=60_000
        ... )  # eq. (1); 0.02 * 256 / 2 is the multiplier
        >>> mean
        Gaussian(sigma=0.02, sensitivity=2, averaged_over=256, geometry="ball")
        """
        stated = Relation.read(relation)
        moved = stated.clipped(POSITIVE.check("norm", norm))
        geometry = "ball" if stated is Relation.REPLACE_ONE else "diameter"
        return cls(noise, moved, geometry, stated, averaged_over)

    @classmethod
    def from_tree(cls, sigma: Number, steps: Number, restarts: Number = 1) -> Expression:
        """Return binary tree aggregation over `steps` leaves, with Gaussian noise on every node.

        Each record is in one leaf.

        A record is in all nodes on the path from its leaf, of which floor(log2 T) + 1 are completed in a tree of T steps. After
        `restarts` trees of equal length no record is in two of them, so one path counts.

        Under replace-one the record keeps its leaf. It is a whole run: `* k` is k runs with fresh noise, and a sample of it is
        refused.

        >>> Gaussian.from_tree(sigma=5, steps=1000)
        Gaussian(sigma=5, correlated="yes") * 10
        """
        leaves, trees = COUNT.check("steps", steps), COUNT.check("restarts", restarts)
        return cls(sigma=sigma, correlated=True) * (-(-int(leaves) // int(trees))).bit_length()

    @classmethod
    def from_matrix(
        cls, matrix: Matrix, sigma: Number, participation: Participation = "once", *, relation: Relation | str
    ) -> Gaussian:
        """Return the matrix mechanism C x + sigma z, or x + sigma C^-1 z computed from it.

        z has unit deviation.

        Row t of x is what is summed at step t, of vectors clipped to norm 1; C is lower triangular, so that x may depend on
        what was released before. A record takes part `"once"`; or `("every", b)`, at one step of the first b and at every b-th
        after it; or `("apart", b, k)`, at most k times, at least b steps apart, for which C must be b-banded. A record that is
        replaced keeps its steps and moves it by twice as much. It is a whole run: `* k` is k runs with fresh noise, and a
        sample of it is refused. See docs/mechanisms/matrix.md.

        >>> Gaussian.from_matrix([[1, 0], ["1/2", 1]], sigma=2, relation="add-remove")
        Gaussian(sigma=2, squared_sensitivity=1.25, relation="add-remove", correlated="yes")
        """
        stated = Relation.read(relation)
        moved = stated.clipped(Exact(1))
        square = largest_square(matrix, participation) * moved**2
        return cls(sigma, relation=stated, squared_sensitivity=Exact(square), correlated=True)

    def key(self) -> Hashable:
        # a mark that is no part of equality is lost where equal terms are added
        return self._squared_shift(), self.geometry, self.relation, self.data_size(), self.correlated

    def data_size(self) -> Exact | None:
        return None if self.averaged_over == 1 else self.averaged_over

    scaled_to_norm = True

    def clipped_form(self) -> str:
        # a noise multiplier is the deviation over the clipping norm, and replacing a record moves the sum by twice the norm
        plain = self.geometry == "diameter" and self.relation.clipping != 1 and self.averaged_over == 1
        if not plain or self.sensitivity != 1 or self.squared_sensitivity is not None:
            return ""
        return str(Gaussian.from_clipping(norm=1, noise=self.sigma, relation=Relation.REPLACE_ONE))

    def _squared_shift(self) -> Fraction | None:
        """Return the squared shift; None if it is infinite: without noise nothing is private."""
        if self.data_independent:
            return Fraction(0)
        square = self.sensitivity**2 if self.squared_sensitivity is None else self.squared_sensitivity
        return square / (self.sigma * self.averaged_over) ** 2 if self.sigma else None

    @property
    def data_independent(self) -> bool:
        return self.sensitivity == 0

    def own_curve(self, bound: str) -> Curve:
        square = self._squared_shift()
        return Exposed() if square is None else Concentrated(rho=square / 2)

    def _implied(self) -> Mapping[str, Any]:
        replaced = self.geometry == "ball" or self.averaged_over != 1
        return {"relation": Relation.REPLACE_ONE if replaced else Relation.ANY}

    def arguments(self) -> Mapping[str, str]:
        found = Mechanism.arguments(self)
        said = "sensitivity" if self.squared_sensitivity is None else "squared_sensitivity"
        order = ("sigma", said, "averaged_over", "geometry", "relation", "correlated")
        return {name: found[name] for name in order if name in found}

    @property
    def spans_run(self) -> bool:
        return bool(self.correlated)

    def unsampled(self) -> str:
        if not self.correlated:
            return ""
        return (
            "Gaussian.from_matrix is one release of correlated rows; a sample of it is not a sample per step. Write "
            "MatrixMechanism(...) @ BallsInBins(bins=...), CyclicPoisson(cycle=..., rate=...) or FixedOrder(epochs=...)"
        )

    def pair(self) -> Pair | None:
        square = self._squared_shift()
        if square is None:
            from cumulant.pairs.disjoint_laws import DisjointPair

            return DisjointPair()
        if not square:
            return None
        from cumulant.pairs.gaussian import GaussianPair

        return GaussianPair.of_square(square, self.geometry)
