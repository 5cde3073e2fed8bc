"""Minimum separation: two steps of one record are at least so many steps apart."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

from cumulant.domains import COUNT, RATE, Domain, Exact, Number
from cumulant.errors import InputError
from cumulant.numerics.toeplitz import Range
from cumulant.sampling.participation import Factor, Participation
from cumulant.sampling.scheme import known


@known
@dataclass(frozen=True, slots=True, init=False, eq=False, repr=False)
class MinSep(Participation):
    """Two steps of one record are at least `separation` apart: at most `most` steps, or sampled with probability `rate`.

    With `most` any order is covered and nothing is secret. With `rate` each step takes the record with this probability, unless
    one of the last separation - 1 steps had it; no amplification is proved for that, so it counts as if every allowed step were
    taken. It goes around a MatrixMechanism.

    >>> import cumulant as cm
    >>> (cm.MatrixMechanism(bands=[1, "1/2"], steps=100, sigma=40) @ MinSep(separation=2, most=20)).squared_sensitivity
    Fraction(25, 1)
    """

    separation: Exact
    most: Exact | None
    rate: Exact | None

    assumed: ClassVar[str] = "two steps in which one record takes part are at least the separation apart"

    def __init__(self, separation: Number, most: Number | None = None, rate: Number | None = None) -> None:
        object.__setattr__(self, "separation", COUNT.check("separation", separation))
        if (most is None) == (rate is None):
            raise InputError(
                "MinSep takes most=… for any order, or rate=… for the secret sampler: MinSep(separation=8, most=20)"
            )
        object.__setattr__(self, "most", None if most is None else COUNT.check("most", most))
        object.__setattr__(self, "rate", None if rate is None else RATE.check("rate", rate))

    @property
    def secret(self) -> bool:  # type: ignore[override]
        """Return True for the sampler, whose steps nobody learns."""
        return self.rate is not None

    @classmethod
    def unknowns(cls, others: Mapping[str, str]) -> Mapping[str, Domain]:
        return {"separation": COUNT, **({} if "rate" in others else {"most": COUNT})}

    def numbers(self) -> Mapping[str, Fraction]:
        other = {"most": self.most} if self.most is not None else {"rate": self.rate or Exact(1)}
        return {"separation": self.separation, **other}

    def square(self, factor: Factor) -> Range:
        most = factor.steps if self.most is None else int(self.most)
        if self.secret:
            return Range(Fraction(0), factor.absolute().apart(int(self.separation), most).upper)
        return factor.apart(int(self.separation), most)

    def __str__(self) -> str:
        other = f"most={self.most.notation}" if self.most is not None else f"rate={(self.rate or Exact(1)).notation}"
        return f"MinSep(separation={self.separation.notation}, {other})"
