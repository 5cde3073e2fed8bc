"""A fixed order of the data: every record takes part once in each epoch, always at the same place."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

from cumulant.domains import COUNT, Domain, Exact, Number
from cumulant.errors import InputError
from cumulant.numerics.toeplitz import Range
from cumulant.sampling.participation import Factor, Participation
from cumulant.sampling.scheme import register_scheme


@register_scheme
@dataclass(frozen=True, slots=True, init=False, eq=False, repr=False)
class FixedOrder(Participation):
    """A record takes part at one step of the first epoch and at the same place of every later one; nothing is secret.

    Give the number of `epochs`, which divides the steps, or the length of an epoch as `every`. Nothing is amplified. With
    relation="replace-one" a record that is replaced keeps its steps. It goes around a MatrixMechanism.

    >>> import cumulant as cm
    >>> run = cm.MatrixMechanism(bands=[1, "1/2"], steps=100, sigma=40) @ FixedOrder(epochs=10)
    >>> run.squared_sensitivity
    Fraction(25, 2)
    """

    epochs: Exact | None
    every: Exact | None

    assumed: ClassVar[str] = (
        "each record takes part in at most one step of every epoch, always at the same place, and all others keep their steps "
        "if it is added, removed or replaced: a loader that closes the gap changes all later batches"
    )
    checked: ClassVar[str] = "each record takes part once in every epoch, at the same place"

    def __init__(self, epochs: Number | None = None, every: Number | None = None) -> None:
        if (epochs is None) == (every is None):
            raise InputError("FixedOrder takes epochs=… or every=…, one of them: FixedOrder(epochs=10)")
        object.__setattr__(self, "epochs", None if epochs is None else COUNT.check("epochs", epochs))
        object.__setattr__(self, "every", None if every is None else COUNT.check("every", every))

    @classmethod
    def unknowns(cls, others: Mapping[str, str]) -> Mapping[str, Domain]:
        return {"every": COUNT}

    def numbers(self) -> Mapping[str, Fraction]:
        return {"epochs": self.epochs} if self.epochs is not None else {"every": self.every or Exact(1)}

    def check(self, factor: Factor) -> None:
        if self.epochs is not None and factor.steps % int(self.epochs):
            raise InputError(
                f"epochs={self.epochs} must divide steps={factor.steps}; else write FixedOrder(every=...) with the steps of "
                "one epoch"
            )

    def square(self, factor: Factor) -> Range:
        return factor.periodic_square(
            factor.steps // int(self.epochs) if self.epochs is not None else int(self.every or 1)
        )

    def __str__(self) -> str:
        said = (
            f"epochs={self.epochs.notation}"
            if self.epochs is not None
            else f"every={(self.every or Exact(1)).notation}"
        )
        return f"FixedOrder({said})"
