"""Balls in bins: every record goes into one bin for the whole run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

from cumulant.domains import COUNT, Domain, Exact, Number
from cumulant.errors import InputError
from cumulant.numerics.toeplitz import BinGram, Range
from cumulant.sampling.participation import Factor, Participation, Piece, Pieces, Projection
from cumulant.sampling.scheme import SCHEMES, register_scheme

_MOST_CLASSES = 64
"""Numbers of classes that are tried, until no product is left; convention: beyond it powers of two only."""

_CLEARLY_SMALLER = Fraction(49, 50)
"""A number of classes is kept if its largest product is 2 % below that of fewer classes; measured: the rest never won."""


@register_scheme
@dataclass(frozen=True, slots=True, init=False, eq=False, repr=False)
class BallsInBins(Participation):
    """One secret draw for the whole run: all epochs use a record in the same step.

    A record in bin j takes part in the steps j, j + bins, j + 2 bins and so on. Every record chooses its bin uniformly and for
    it alone, so that batches have random sizes. All epochs use the same draw; `RandomAllocation * epochs` draws afresh in each
    epoch, and is more private. It goes around a MatrixMechanism; statements are for add/remove neighbours, or for a record that
    is zeroed out. See docs/mechanisms/matrix.md.

    >>> import cumulant as cm
    >>> run = cm.MatrixMechanism(bands=[1, "1/2"], steps=1000, sigma=4) @ BallsInBins(bins=100)
    >>> run.delta(epsilon=1) < cm.MatrixMechanism(bands=[1, "1/2"], steps=1000, sigma=4).delta(epsilon=1)
    True
    """

    bins: Exact

    secret: ClassVar[bool] = True
    elsewhere: ClassVar[str] = (
        "write RandomAllocation(steps=bins) * epochs if every epoch draws afresh; one draw for all epochs is "
        "MatrixMechanism(bands=[1], ...)"
    )
    assumed: ClassVar[str] = (
        "each record is in one bin for the whole run, chosen uniformly, in secret and independently of other records and of "
        "all outputs, so that batches have random sizes, which are not released; sums are divided by a constant"
    )
    checked: ClassVar[str] = "each record is in one bin for the whole run, drawn uniformly and in secret"

    def __init__(self, bins: Number) -> None:
        object.__setattr__(self, "bins", COUNT.check("bins", bins))

    @classmethod
    def unknowns(cls, others: Mapping[str, str]) -> Mapping[str, Domain]:
        return {"bins": COUNT}

    def numbers(self) -> Mapping[str, Fraction]:
        return {"bins": self.bins}

    def check(self, factor: Factor) -> None:
        if self.bins > factor.steps:
            raise InputError(f"bins={self.bins} must be at most steps={factor.steps}: later bins would have no step")

    def square(self, factor: Factor) -> Range:
        """Return the largest squared norm of a mode of |C|: all bins may be announced."""
        found = factor.bins(int(self.bins))
        return Range(Fraction(0), found.diagonal)

    def upper_pieces(self, factor: Factor) -> tuple[Pieces, ...]:
        """Return the rounds of Algorithm A, one list for each number g of classes that gains.

        It announces j mod g; all products in a class are at most c, all squares at most d.

        The Gram matrix c 1 1^T + (d - c) I is at least that of each class in every entry, so that a Gaussian of squared
        sensitivity c beside an allocation of one of squared sensitivity d - c dominates the run. Classes have at least
        floor(b / g) bins, and more bins only help.
        """
        gram, count = factor.bins(int(self.bins)), int(self.bins)
        allocation = SCHEMES["RandomAllocation"]
        found: list[Pieces] = []
        least = gram.diagonal
        for classes in _numbers_of_classes(count):
            shared = gram.largest_product(classes)
            if shared > least * (_CLEARLY_SMALLER if found else 1) or shared >= gram.diagonal:
                continue
            least = shared
            rest = Piece(gram.diagonal - shared, allocation(steps=count // classes))  # type: ignore[call-arg]
            found.append((Piece(shared), rest) if shared else (rest,))
            if not shared:
                break  # more classes have fewer bins and no smaller product
        return tuple(found)

    def projections(self, factor: Factor) -> tuple[Projection, ...]:
        """The modes on the line of the first mode, and on that of their sum."""
        return tuple(_projection(each) for each in factor.bins(int(self.bins)).projections)

    def lower_pieces(self, factor: Factor) -> tuple[Pieces, ...]:
        """Return the rounds with the Gram matrix c 1 1^T + (d - c) I of the least entries, c at most d."""
        gram, count = factor.bins(int(self.bins)), int(self.bins)
        found: list[Pieces] = []
        common = min(gram.least_product, gram.least_diagonal)
        if count > 1 and gram.least_diagonal > common:
            allocation = SCHEMES["RandomAllocation"]
            rest = Piece(gram.least_diagonal - common, allocation(steps=count))  # type: ignore[call-arg]
            found.append((Piece(common), rest) if common else (rest,))
        elif common:
            found.append((Piece(common),))
        return tuple(found)

    def gram(self, factor: Factor) -> BinGram:
        """Return the inner products of the modes of all bins."""
        return factor.bins(int(self.bins))

    def __str__(self) -> str:
        return f"BallsInBins(bins={self.bins.notation})"


def _numbers_of_classes(bins: int) -> list[int]:
    """Return the numbers of classes worth trying, each of which has at least two bins."""
    most = bins // 2
    return [*range(1, min(most, _MOST_CLASSES) + 1), *(1 << i for i in range(7, most.bit_length()) if 1 << i <= most)]


def _projection(projection: tuple[tuple[Fraction, int], ...]) -> Projection:
    total = sum(number for _, number in projection)
    return Projection(
        tuple(shift for shift, _ in projection), tuple(Fraction(number, total) for _, number in projection)
    )
