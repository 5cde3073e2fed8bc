"""Cyclic Poisson sampling: fixed groups take turns, and each step takes a Poisson sample of one group."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

from cumulant.domains import COUNT, RATE, Domain, Exact, Number
from cumulant.errors import InputError
from cumulant.numerics.toeplitz import Range
from cumulant.sampling.participation import Factor, Participation, Piece, Pieces
from cumulant.sampling.scheme import SCHEMES, register_scheme


@register_scheme
@dataclass(frozen=True, slots=True, init=False, eq=False, repr=False)
class CyclicPoisson(Participation):
    """Poisson samples from groups of the data that take turns, one group in each step.

    There are `cycle` groups, and a record stays in its group for the whole run. The groups may be public; who is sampled is
    secret. `rate` is the probability inside of the group, `cycle` times that over all data. The matrix has at most `cycle`
    bands, so that no two steps of a record share noise. It goes around a MatrixMechanism; statements are for add/remove
    neighbours, or for a record that is zeroed out.

    >>> import cumulant as cm
    >>> run = cm.MatrixMechanism(bands=[1, "1/2"], steps=100, sigma=4) @ CyclicPoisson(cycle=2, rate="0.02")
    >>> same = cm.Gaussian(sigma=4, squared_sensitivity="5/4", relation="add-remove") @ cm.Poisson(rate="0.02") * 50
    >>> run.epsilon(delta=1e-6) == same.epsilon(delta=1e-6)
    True
    """

    cycle: Exact
    rate: Exact

    secret: ClassVar[bool] = True
    elsewhere: ClassVar[str] = (
        "it says in which steps of a MatrixMechanism one record takes part; for independent noise write "
        "... @ Poisson(rate=...) * ceil(steps / cycle)"
    )
    assumed: ClassVar[str] = (
        "each record is in one group for the whole run, independently of the other records, and enters every sample of its "
        "group independently and in secret; groups of equal size are for a record that is zeroed out, not for one removed"
    )
    checked: ClassVar[str] = "each record keeps its group and is sampled independently, in secret"

    def __init__(self, cycle: Number, rate: Number) -> None:
        object.__setattr__(self, "cycle", COUNT.check("cycle", cycle))
        object.__setattr__(self, "rate", RATE.check("rate", rate))

    @classmethod
    def unknowns(cls, others: Mapping[str, str]) -> Mapping[str, Domain]:
        return {"rate": RATE}

    def numbers(self) -> Mapping[str, Fraction]:
        return {"cycle": self.cycle, "rate": self.rate}

    def check(self, factor: Factor) -> None:
        if self.cycle < factor.bands:
            raise InputError(
                f"cycle={self.cycle} must be at least the {factor.bands} bands of the matrix: two steps of one record would "
                f"share noise, and no amplification is proved. Write FixedOrder(every={self.cycle}), or use fewer bands"
            )

    def square(self, factor: Factor) -> Range:
        """Every sample may be announced: the record then takes part in each step of its group."""
        found = factor.absolute().periodic_square(int(self.cycle))
        return found if self.rate == 1 else Range(Fraction(0), found.upper)

    def _rounds(self, factor: Factor) -> int:
        return -(-factor.steps // int(self.cycle))

    def upper_pieces(self, factor: Factor) -> tuple[Pieces, ...]:
        """Return rounds of Poisson samples: columns a cycle apart are orthogonal, so that the ratio is a product."""
        return ((self._sampled(factor.column_square().upper, self._rounds(factor)),),)

    def lower_pieces(self, factor: Factor) -> tuple[Pieces, ...]:
        full = factor.full_columns(int(self.cycle))
        return ((self._sampled(factor.column_square().lower, full),),) if full else ()

    def _sampled(self, square: Fraction, times: int) -> Piece:
        return Piece(square, SCHEMES["Poisson"](rate=self.rate), times)  # type: ignore[call-arg]

    def __str__(self) -> str:
        return f"CyclicPoisson(cycle={self.cycle.notation}, rate={self.rate.notation})"
