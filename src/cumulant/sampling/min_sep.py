"""Minimum separation: two steps of one record are at least so many steps apart."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from typing import ClassVar

from cumulant.domains import COUNT, RATE, Domain, Exact, Number
from cumulant.errors import InputError
from cumulant.numerics.arithmetic import BALLS, root
from cumulant.numerics.binomials import upper_tail
from cumulant.numerics.matrices import short_below
from cumulant.numerics.toeplitz import Range
from cumulant.sampling.participation import Chain, Factor, Participation, Piece, Pieces, Projection
from cumulant.sampling.scheme import SCHEMES, register_scheme

_MOST_LINKS = 8
"""Bands up to which a chain is tried; measured: with more links the steps that are announced cost less."""

_PLACES = range(-6, 8)
"""Numbers of steps that the lower end tells apart, in half deviations from the usual one; measured: more add nothing."""

_TAIL_UNITS = 10**12
"""Units of the probabilities of the lower end; convention: the twelve digits that are printed of any number."""

_BITS = 128
"""Bits of the balls; convention: 75 more than a float has."""


@register_scheme
@dataclass(frozen=True, slots=True, init=False, eq=False, repr=False)
class MinSep(Participation):
    """Steps that use the same record are at least `separation` apart.

    With `most`, the largest number of such steps, any order is covered and nothing is secret. With `rate` each step takes the
    record with this probability, unless one of the last separation - 1 steps had it. The first steps may be left out as well (a
    warm start). That is no less private than Poisson samples of this rate. It goes around a MatrixMechanism.

    >>> import cumulant as cm
    >>> (cm.MatrixMechanism(bands=[1, "1/2"], steps=100, sigma=40) @ MinSep(separation=2, most=20)).squared_sensitivity
    Fraction(25, 1)
    >>> secret = cm.MatrixMechanism(bands=[1], steps=100, sigma=2) @ MinSep(separation=2, rate="0.01")
    >>> secret.epsilon(1e-6) == (cm.Gaussian(sigma=2, relation="add-remove") @ cm.Poisson("0.01") * 100).epsilon(1e-6)
    True
    """

    separation: Exact
    most: Exact | None
    rate: Exact | None

    checked: ClassVar[str] = "two steps with the same record are at least the separation apart"

    def __init__(self, separation: Number, most: Number | None = None, rate: Number | None = None) -> None:
        object.__setattr__(self, "separation", COUNT.check("separation", separation))
        if (most is None) == (rate is None):
            raise InputError(
                "MinSep takes most=… for any order, or rate=… for the secret sampler: MinSep(separation=8, most=20)"
            )
        object.__setattr__(self, "most", None if most is None else COUNT.check("most", most))
        object.__setattr__(self, "rate", None if rate is None else RATE.check("rate", rate))

    @property
    def assumed(self) -> str:  # type: ignore[override]
        """Return what must be true of the loop."""
        apart = "two steps in which one record takes part are at least the separation apart"
        if not self.secret:
            return f"{apart}, and all others keep their steps if it is added, removed or replaced"
        return (
            f"{apart}; every step decides by a secret coin, independent of other records and of all outputs, and batches have "
            "random sizes, which are not released; sums are divided by a constant"
        )

    @property
    def secret(self) -> bool:  # type: ignore[override]
        """Return True for the sampler, whose steps nobody learns."""
        return self.rate is not None

    @classmethod
    def unknowns(cls, others: Mapping[str, str]) -> Mapping[str, Domain]:
        return {
            "separation": COUNT,
            **({} if "rate" in others else {"most": COUNT}),
            **({} if "most" in others else {"rate": RATE}),
        }

    def numbers(self) -> Mapping[str, Fraction]:
        other = {"most": self.most} if self.most is not None else {"rate": self.rate or Exact(1)}
        return {"separation": self.separation, **other}

    def square(self, factor: Factor) -> Range:
        most = factor.steps if self.most is None else int(self.most)
        if self.secret:
            return Range(Fraction(0), factor.absolute().separated_square(int(self.separation), most).upper)
        return factor.separated_square(int(self.separation), most)

    def _sampled(self, square: Fraction, times: int) -> Piece:
        return Piece(square, SCHEMES["Poisson"](rate=self.rate), times)  # type: ignore[call-arg]

    def upper_pieces(self, factor: Factor) -> tuple[Pieces, ...]:
        """Return rounds of Poisson samples for a matrix of one band; none for more bands.

        The steps are among those of independent coins, so that all inner products of modes are smaller.
        """
        if not self.secret or factor.bands > 1:
            return ()
        return ((self._sampled(factor.column_square().upper, factor.steps),),)

    def chains(self, factor: Factor) -> tuple[Chain, ...]:
        """Return a path of p links for a matrix of p > 1 bands; none for one band.

        The coins of the steps r modulo p are one link, whose columns share no row.
        """
        links = factor.bands
        if not self.secret or not 1 < links <= min(_MOST_LINKS, factor.steps):
            return ()
        return (Chain(self._sampled(factor.column_square().upper, -(-factor.steps // links)), links),)

    def projections(self, factor: Factor) -> tuple[Projection, ...]:
        """The sum of all rows over the root of their number: each step with a whole column adds its sum."""
        if self.rate is None:
            return ()
        gap, steps = int(self.separation), factor.steps - factor.bands + 1
        usual = steps * float(self.rate) / (1 + (gap - 1) * float(self.rate))
        spread = math.sqrt(usual * (1 - float(self.rate))) + 1
        levels = sorted({max(1, round(usual + spread * i / 2)) for i in _PLACES})
        # at least k steps: after separation - 1 steps that may be left out, k coins fall within the steps that allow them
        chances = [_tail_below(steps - k * gap + k, k, Fraction(self.rate)) for k in levels]
        kept = [(k, chance) for k, chance in zip(levels, chances, strict=True) if chance > 0]
        if not kept:
            return ()
        each = factor.least_column_sum() / root(Fraction(factor.steps))[1]
        tails = [Fraction(1), *(chance for _, chance in kept), Fraction(0)]
        weights = tuple(a - b for a, b in pairwise(tails))
        return (Projection((Fraction(0), *(short_below(k * each) for k, _ in kept)), weights),)

    def __str__(self) -> str:
        other = f"most={self.most.notation}" if self.most is not None else f"rate={(self.rate or Exact(1)).notation}"
        return f"MinSep(separation={self.separation.notation}, {other})"


def _tail_below(count: int, least: int, rate: Fraction) -> Fraction:
    """Return a lower bound of P(Bin(count, rate) >= least) with few digits; 0 where it is smaller than they tell."""
    if least > count:
        return Fraction(0)
    with BALLS.at(_BITS):
        found = (upper_tail(count, rate, least) * _TAIL_UNITS).lower().floor().unique_fmpz()
    return Fraction(max(int(found), 0), _TAIL_UNITS) if found is not None else Fraction(0)
