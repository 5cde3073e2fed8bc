"""Correlated Gaussian noise: the matrix mechanism, with the way in which one record takes part in its steps."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import lru_cache, partial
from typing import Any, ClassVar

from cumulant.accounting.run import Component, RunRecord
from cumulant.curves.curve import Curve, Lowest
from cumulant.curves.group import grouped
from cumulant.domains import COUNT, POSITIVE, Checked, Domain, Exact, ExactTuple, Number, Several, listed
from cumulant.errors import InputError, RelationError, shown
from cumulant.mechanisms.mechanism import MECHANISMS, Expression, Mechanism, Wrapper, register
from cumulant.numerics.arithmetic import root
from cumulant.numerics.dense_factor import dense_factor
from cumulant.numerics.matrices import short_above, short_below
from cumulant.numerics.rounding import rounded_up
from cumulant.numerics.toeplitz import BinGram, Range, ToeplitzFactor
from cumulant.pairs.pair import Pair
from cumulant.parameters import Neighbours, OptionalReal, OptionalReals, Parameter, declared, parameter
from cumulant.relation import RELATION, Relation
from cumulant.sampling.participation import Factor, Participation, Piece, Pieces, Projection

MOST_STEPS = 10**7
"""Steps of one run; convention: more are a mistake in a unit."""

_ENTRY = Domain(None, None)
_STEPS = replace(COUNT, high=Fraction(MOST_STEPS), hint="a run has at most 10 million steps")
_DECAY = Domain(Fraction(-1), Fraction(1), hint="the powers of a decay must fall")

TWO_RECORDS = "for add-remove or replace-special neighbours only: two records would move"

ASSUMED = (
    "the noise is drawn once, afresh and for this run alone; the matrix is lower triangular and fixed in advance; gradients "
    "are clipped to norm 1 in each step and depend on other records and on earlier outputs only"
)

Decays = Parameter[tuple[ExactTuple, ExactTuple] | None, Sequence[Sequence[Number]] | None]
Rows = Parameter[tuple[ExactTuple, ...] | None, Any]


def _read_blt(name: str, value: Any) -> tuple[ExactTuple, ExactTuple]:
    """Return the weights and the decays of a buffered linear Toeplitz matrix."""
    if isinstance(value, str | bytes) or not isinstance(value, Sequence) or len(value) != 2:
        raise InputError(
            f"{name}={shown(value)} must be two lists, the weights and the decays: blt=[[0.1, 0.2], [0.9, 0.5]]"
        )
    weights, decays = Several(_ENTRY).check("blt[0]", value[0]), Several(_DECAY).check("blt[1]", value[1])
    if len(weights) != len(decays):
        raise InputError(f"blt has {len(weights)} weights and {len(decays)} decays; give as many of both")
    return weights, decays


def _read_matrix(name: str, value: Any) -> tuple[ExactTuple, ...]:
    """Return the rows of a lower triangular matrix."""
    rows = tuple(tuple(listed(f"matrix[{i}]", row)) for i, row in enumerate(listed(name, value)))
    size = len(rows)
    if not size or any(len(row) != size for row in rows):
        raise InputError(
            f"matrix must be square, and has {size} rows of {', '.join(sorted({str(len(row)) for row in rows}))} numbers"
        )
    kept = tuple(
        ExactTuple(_ENTRY.check(f"matrix[{i}][{j}]", each) for j, each in enumerate(row)) for i, row in enumerate(rows)
    )
    for i, row in enumerate(kept):
        if any(row[i + 1 :]):
            raise InputError(f"matrix must be lower triangular, and row {i} has a number right of the diagonal")
        if not row[i]:
            raise InputError(f"matrix[{i}][{i}]=0 must not be 0: noise could not be computed from it")
    return kept


@register
class MatrixMechanism(Mechanism):
    """C x + sigma z for a lower triangular C: a whole run with correlated Gaussian noise (DP-FTRL, BandMF, BLT).

    Row t of x is the sum at step t of vectors clipped to norm 1, and z is standard normal. The mechanism releases C x + sigma
    z, or anything computed from it, such as x + sigma C^-1 z. Give C in one of three ways. `bands` is the first column of a
    Toeplitz matrix. `blt` has the weights w and decays th of c_i = SUM w_r th_r^(i-1), c_0 = 1. `matrix` has its rows. The
    first two need `steps`.

    `sigma` is the deviation over the clipping norm. `noise_multiplier` is the deviation over the clipping norm times the
    largest column norm, as in JAX Privacy. That of `NoisySGD` and `cumulant dpsgd` is over the clipping norm alone.

    `@ BallsInBins(...)`, `@ CyclicPoisson(...)`, `@ FixedOrder(...)` or `@ MinSep(...)` says in which steps one record takes
    part; alone it is one step. One term is the whole run, and `* k` is k runs with fresh noise. See docs/mechanisms/matrix.md.

    >>> MatrixMechanism(bands=[1, "1/2"], steps=100, sigma=4).epsilon(delta=1e-6)
    1.197
    >>> import cumulant as cm
    >>> run = MatrixMechanism(bands=[1, "1/2", "1/4"], steps=2000, sigma=4) @ cm.BallsInBins(bins=100)
    >>> run.squared_sensitivity, run.inner.column_norm
    (Fraction(105, 4), 1.14564...)
    """

    bands: OptionalReals = parameter(Several(_ENTRY), default=None, free=True)
    steps: OptionalReal = parameter(_STEPS, default=None, free=True)
    sigma: OptionalReal = parameter(POSITIVE, default=None, free=True)
    noise_multiplier: OptionalReal = parameter(POSITIVE, default=None)
    blt: Decays = parameter(Checked("Sequence[Sequence[Number]]", _read_blt), default=None)
    matrix: Rows = parameter(Checked("Any", _read_matrix), default=None)
    relation: Neighbours = parameter(RELATION, default=Relation.ADD_REMOVE)

    @classmethod
    def _prepare(cls, given: dict[str, Any]) -> dict[str, Any]:
        factors = [name for name in ("bands", "blt", "matrix") if given[name] is not None]
        if len(factors) != 1:
            raise InputError(
                f"MatrixMechanism takes one of bands=…, blt=… and matrix=…, not {' and '.join(factors) or 'none'}"
            )
        if (given["sigma"] is None) == (given["noise_multiplier"] is None):
            raise InputError(
                "MatrixMechanism takes sigma=… over the clipping norm, or noise_multiplier=… over the column norm"
            )
        if factors == ["matrix"] and given["steps"] is not None:
            raise InputError("matrix=… has as many steps as rows; leave steps=… out")
        if factors != ["matrix"] and given["steps"] is None:
            raise InputError(f"{factors[0]}=… needs steps=…, the number of rows of the matrix")
        return given

    def _validate(self) -> None:
        if self.relation is Relation.ANY:
            raise InputError('relation="any" does not say what a record moves; choose "add-remove" or "replace-one"')
        if self.bands is not None and not self.bands[0]:
            raise InputError("bands[0]=0 must not be 0: it is the diagonal of the matrix")

    # ---- the matrix

    @property
    def factor(self) -> Factor:
        """C, as numbers."""
        if self.matrix is not None:
            return dense_factor(self.matrix)
        steps = int(self.steps or 1)
        if self.blt is not None:
            return ToeplitzFactor.from_blt(*self.blt, steps)
        return ToeplitzFactor.from_bands(self.bands or (), steps)

    @property
    def column_norm(self) -> float:
        """The largest norm of a column of C, rounded up."""
        return rounded_up(root(self.factor.column_square().upper)[1])

    def squared_sensitivity(self, scheme: Participation | None = None) -> Fraction:
        """Return how far one record moves C x at most, squared, if it takes part as the scheme says; else once.

        >>> import cumulant as cm
        >>> MatrixMechanism(bands=[1, "1/2"], steps=100, sigma=4).squared_sensitivity(cm.FixedOrder(epochs=10))
        Fraction(25, 2)
        """
        return self.square(scheme).upper

    def square(self, scheme: Participation | None) -> Range:
        """Return the squared sensitivity, enclosed, under the relation of this mechanism."""
        found = self.factor.column_square() if scheme is None else scheme.square(self.factor)
        moved = self.relation.clipped(Exact(1)) ** 2
        return Range(found.lower * moved, found.upper * moved)

    def gram(self, scheme: Participation) -> BinGram:
        """Return the inner products of the modes of all bins, over the clipping norm squared.

        >>> import cumulant as cm
        >>> gram = MatrixMechanism(bands=[1, "1/2"], steps=6, sigma=4).gram(cm.BallsInBins(bins=3))
        >>> gram.diagonal, dict(gram.by_distance)
        (Fraction(5, 2), {1: Fraction(1, 1), 2: Fraction(1, 2)})
        """
        found = getattr(scheme, "gram", None)
        if found is None:
            raise InputError(f"{scheme} has no bins; ask gram(BallsInBins(bins=...))")
        gram: BinGram = found(self.factor)
        return gram

    def noise(self, square: Fraction, upper: bool = True) -> Expression:
        """Return Gaussian noise like that of the run on a query of this squared sensitivity, bounded from one side."""
        sigma, scaled = self.sigma, square
        if sigma is None:
            sigma, column = self.noise_multiplier, self.factor.column_square()
            scaled = short_above(square / column.lower) if upper else short_below(square / column.upper)
        gaussian = MECHANISMS["Gaussian"]
        return gaussian(sigma=sigma, squared_sensitivity=Exact(scaled), relation=self.relation)  # type: ignore[call-arg]

    # ---- what the run says of itself

    @classmethod
    def domain(cls, name: str, others: Mapping[str, Number]) -> Domain:
        return _ENTRY if name in ("blt", "matrix") else super().domain(name, others)

    def with_participation(self, scheme: Participation) -> MatrixRun:
        """Return the run in which a record takes part as the scheme says; refused where no theorem covers that."""
        if scheme.secret and self.relation is Relation.REPLACE_ONE:
            raise RelationError(f'{scheme} is {TWO_RECORDS}; leave relation="{self.relation}" out, or use FixedOrder')
        scheme.check(self.factor)
        return MatrixRun(self, scheme)

    def key(self) -> Hashable:
        bands = None if self.bands is None else _trimmed(self.bands, int(self.steps or 1))
        return bands, self.steps, self.blt, self.matrix, self.sigma, self.noise_multiplier, self.relation

    @property
    def spans_run(self) -> bool:
        return True

    def assumption(self) -> str:
        return ASSUMED

    scaled_to_norm = True

    def rests_on_sensitivity(self) -> bool:
        return True

    def own_curve(self, bound: str) -> Curve:
        return self.noise(self.square(None).upper).curve("best")

    def pair(self) -> Pair | None:
        (gaussian,) = self.noise(self.square(None).upper).terms
        return gaussian.pair()

    @property
    def surrogate(self) -> bool:  # type: ignore[override]
        return not self.square(None).exact

    def unsampled(self) -> str:
        return (
            "its steps share noise, and a sample of it is not a sample per step. Write MatrixMechanism(...) @ "
            "BallsInBins(bins=...), CyclicPoisson(cycle=..., rate=...), FixedOrder(epochs=...) or MinSep(...)"
        )

    def arguments(self) -> Mapping[str, str]:
        found = super().arguments()
        order = ("bands", "blt", "matrix", "steps", "sigma", "noise_multiplier", "relation")
        return {name: found[name] for name in order if name in found}


def _trimmed(bands: Sequence[Any], steps: int) -> tuple[Fraction, ...]:
    """The bands that the matrix has: those beyond its last row and zeros at the end are left out."""
    kept = list(bands[:steps])
    while len(kept) > 1 and not kept[-1]:
        kept.pop()
    return tuple(kept)


@declared
class MatrixRun(Wrapper):
    """A whole run with correlated noise, in which one record takes part as a scheme says."""

    inner: MatrixMechanism
    scheme: Participation

    amplified: ClassVar[bool] = True

    @property
    def surrogate(self) -> bool:  # type: ignore[override]
        return not self._plain and not any(self._below())

    @property
    def _plain(self) -> bool:
        """Return True for Gaussian noise on a query whose squared sensitivity is known and attained."""
        return not self.scheme.secret and self.inner.square(self.scheme).exact

    @property
    def squared_sensitivity(self) -> Fraction:
        """Return the square of the largest distance by which one record moves C x."""
        return self.inner.square(self.scheme).upper

    def with_participation(self, scheme: Participation) -> MatrixRun:
        """Refuse a second participation."""
        raise InputError(f"{self} already says in which steps a record takes part; leave one of the two out")

    def key(self) -> Hashable:
        return self.inner.key(), self.scheme

    def assumption(self) -> str:
        long = self.inner.bands is not None and len(self.inner.bands) > int(self.inner.steps or 1)
        said = [self.scheme.assumed, ASSUMED, "bands beyond the last step were left out" if long else ""]
        return "; ".join(each for each in said if each)

    def rests_on_sensitivity(self) -> bool:
        return True

    def part(self, times: int) -> Component:
        return replace(
            super().part(times),
            dominating=None if self._plain else partial(_dominating, self),
            dominated=None if self._plain else partial(_dominated, self),
        )

    def _whole(self) -> Expression:
        """Gaussian noise on a query of the squared sensitivity: what holds without any secrecy."""
        return self.inner.noise(self.squared_sensitivity)

    def _rounds(self, pieces: Pieces, upper: bool) -> Expression:
        # a record that is zeroed out has the pair of one that is removed, for which all schemes of pieces are stated
        stated = replace(self.inner, relation=Relation.ADD_REMOVE) if self.scheme.secret else self.inner
        parts = []
        for piece in pieces:
            one = stated.noise(piece.square, upper)
            parts.append((one if piece.scheme is None else one @ piece.scheme) * piece.times)
        return sum(parts[1:], start=parts[0])

    def dominating_runs(self) -> tuple[Expression, ...]:
        """Return runs that dominate this one, the last of which needs no secrecy."""
        return (*(self._rounds(each, True) for each in self.scheme.upper_pieces(self.inner.factor)), self._whole())

    def _below(self) -> tuple[tuple[Pieces, ...], tuple[Projection, ...]]:
        if not self.inner.factor.nonnegative:
            return (), ()
        return _known_below(self.inner, self.scheme)

    def dominated_runs(self) -> tuple[Expression, ...]:
        """Return runs that this one dominates; none where C has negative entries."""
        moved = self.inner.relation.clipped(Exact(1)) ** 2
        rounds, lines = self._below()
        scaled = [tuple(Piece(each.square * moved, each.scheme, each.times) for each in pieces) for pieces in rounds]
        return (*(self._rounds(each, False) for each in scaled), *(self._mixture(each) for each in lines))

    def _mixture(self, seen: Projection) -> Expression:
        (gaussian,) = self.inner.noise(Fraction(1), False).terms
        scale = root(Fraction(gaussian.pair().gaussian_shift() ** 2))[0]  # type: ignore[union-attr, operator]
        shifts = [Exact(short_below(shift * scale)) for shift in seen.shifts]
        made = MECHANISMS["GaussianMixture"]
        return made(sigma=1, shifts=shifts, weights=[Exact(weight) for weight in seen.weights])  # type: ignore[call-arg]

    def own_curve(self, bound: str) -> Curve:
        curves = tuple(each.curve() for each in _dominating(self))
        return curves[0] if len(curves) == 1 else Lowest(curves)

    def pair(self) -> Pair | None:
        (gaussian,) = self._whole().terms
        return gaussian.pair() if self._plain else None

    @property
    def grouped_attained(self) -> bool:
        return self._plain

    def grouped_pair(self, size: int) -> Pair | None:
        """Return the pair of the whole run as one Gaussian, shifted `size` times as far; it needs no secrecy."""
        (gaussian,) = self._whole().terms
        return gaussian.grouped_pair(size)

    def unsampled(self) -> str:
        return self.inner.unsampled()


@lru_cache(maxsize=256)
def _known_below(inner: MatrixMechanism, scheme: Participation) -> tuple[tuple[Pieces, ...], tuple[Projection, ...]]:
    return scheme.lower_pieces(inner.factor), scheme.projections(inner.factor)


@lru_cache(maxsize=256)
def _dominating(run: MatrixRun) -> tuple[RunRecord, ...]:
    chains = (_chained(run._rounds((each.piece,), True), each.links) for each in run.scheme.chains(run.inner.factor))
    return (*chains, *(each.record() for each in run.dominating_runs()))


def _chained(link: Expression, links: int) -> RunRecord:
    """A run with a path of so many links to the run without the record, each of which this expression dominates.

    The group lemma and the doubling of orders bound a path by one of its links; they use nothing else of it, so that the part
    has no pair of its own.
    """
    record = link.record()
    (alone,) = record.parts
    part = replace(
        alone,
        times=1,
        curve=lambda bound: grouped(record.curve(bound), links),
        pair=None,
        scheme=None,
        inner=None,
        key=("chain", links, alone.key, alone.times),
        alone=alone,
        surrogate=True,
        group=links,
    )
    return replace(record, parts=(part,))


@lru_cache(maxsize=256)
def _dominated(run: MatrixRun) -> tuple[RunRecord, ...]:
    return tuple(each.record() for each in run.dominated_runs())
