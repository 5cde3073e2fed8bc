"""The base of schemes by which one record takes part in the steps of a run with correlated noise."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar, Protocol

from cumulant.bounds.bound import Bound
from cumulant.errors import InputError
from cumulant.numerics.toeplitz import BinGram, Range
from cumulant.relation import Relation
from cumulant.sampling.scheme import Scheme


class Factor(Protocol):
    """The matrix C of a run: row i of what is released is SUM_t C_it x_t with Gaussian noise."""

    @property
    def steps(self) -> int: ...
    @property
    def bands(self) -> int: ...
    @property
    def nonnegative(self) -> bool: ...
    def column_square(self) -> Range: ...
    def periodic_square(self, gap: int) -> Range: ...
    def separated_square(self, gap: int, most: int) -> Range: ...
    def full_columns(self, gap: int) -> int: ...
    def least_column_sum(self) -> Fraction: ...
    def bins(self, count: int) -> BinGram: ...
    def absolute(self) -> Factor: ...


@dataclass(frozen=True, slots=True)
class Piece:
    """Gaussian noise on a query of this squared sensitivity, on samples of a scheme if there is one, run several times."""

    square: Fraction
    scheme: Scheme | None = None
    times: int = 1


@dataclass(frozen=True, slots=True)
class Chain:
    """A path of so many links from the run with a record to the run without it; each link is dominated by one piece."""

    piece: Piece
    links: int


@dataclass(frozen=True, slots=True)
class Projection:
    """The modes of a run on one line: with each weight a shift, in units of the clipping norm."""

    shifts: tuple[Fraction, ...]
    weights: tuple[Fraction, ...]


Pieces = tuple[Piece, ...]
"""Rounds that together have one pair."""


class Participation(Scheme):
    """The steps in which one record takes part; it goes around a MatrixMechanism and nothing else.

    `square(factor)` encloses the squared sensitivity, which needs no secrecy. A scheme that keeps the steps `secret` also says
    which rounds dominate the run (`upper_pieces`) and which are dominated by it (`lower_pieces`), by Theorem K
    (docs/mechanisms/matrix.md).
    """

    __slots__ = ()

    relation: ClassVar[Relation] = Relation.ANY
    bounds: ClassVar[Mapping[str, Bound]] = {}
    draws: ClassVar[bool] = False  # `wrap` refuses what is no MatrixMechanism, with the right spelling

    secret: ClassVar[bool] = False
    """True if nobody learns the steps, so that statements are for a record that is added or removed."""

    elsewhere: ClassVar[str] = "it says in which steps of a MatrixMechanism one record takes part"
    """The spelling that a refusal of another sample names."""

    def wrap(self, inner: Any) -> Any:
        make = getattr(inner, "with_participation", None)
        if make is not None:
            return make(self)
        for mechanism in inner.terms:
            if getattr(mechanism, "with_participation", None) is not None:
                raise InputError(
                    f"{inner} @ {self}: write the participation first, (MatrixMechanism(...) @ {self}) * k"
                )
            if refused := mechanism.unsampled():
                raise InputError(f"{mechanism} on a {self.called} sample: {refused}")
        raise InputError(f"{inner} @ {self}: {self.elsewhere}")

    def check(self, factor: Factor) -> None:
        """Raise InputError if the scheme does not fit to the matrix."""

    def square(self, factor: Factor) -> Range:
        """Return the squared sensitivity for one record that is added or removed."""
        raise NotImplementedError

    def upper_pieces(self, factor: Factor) -> tuple[Pieces, ...]:
        """Return rounds of which each list has a pair that dominates the run, besides the squared sensitivity."""
        return ()

    def chains(self, factor: Factor) -> tuple[Chain, ...]:
        """Return paths between the two laws of the run whose links are dominated by a piece."""
        return ()

    def projections(self, factor: Factor) -> tuple[Projection, ...]:
        """Return what an observer of one line sees; C has no negative entries."""
        return ()

    def lower_pieces(self, factor: Factor) -> tuple[Pieces, ...]:
        """Return rounds of which each list has a pair that the run dominates; C has no negative entries."""
        found = self.square(factor).lower
        return ((Piece(found),),) if found > 0 and not self.secret else ()

    def __hash__(self) -> int:
        return hash((type(self), *self.numbers().items()))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Participation) and type(other) is type(self) and other.numbers() == self.numbers()

    def __repr__(self) -> str:
        return str(self)
