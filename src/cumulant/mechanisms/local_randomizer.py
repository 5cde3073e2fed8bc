"""A local randomizer that users bring by the law of the report for each input."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import field
from fractions import Fraction
from typing import TYPE_CHECKING

from cumulant.curves.curve import Curve
from cumulant.curves.maximum import Highest
from cumulant.domains import MANY, PROBABILITY, Several
from cumulant.errors import InputError
from cumulant.mechanisms.mechanism import Mechanism, register
from cumulant.pairs.pair import Pair
from cumulant.parameters import Real, Reals, parameter
from cumulant.relation import Relation

if TYPE_CHECKING:
    from cumulant.exact.shuffled_reports import Randomizer


_TWO = 2
"""Inputs of which all pairs are one pair; convention."""


@register
class LocalRandomizer(Mechanism):
    """A report of one person with finitely many outputs, one law for each of the inputs.

    `masses` lists the laws one after the other: all outputs of the first input, then those of the second, and so on. Each law
    must sum to 1 within 1e-9 and is normalised. All inputs that a person may have must be listed: the blanket that hides
    shuffled reports is the least mass of all of them. Statements are for replace-one neighbours.

    >>> LocalRandomizer(inputs=2, masses=["3/4", "1/4", "1/4", "3/4"]).pure()
    1.09861
    """

    inputs: Real = parameter(MANY)
    masses: Reals = parameter(Several(PROBABILITY))
    laws: tuple[tuple[Fraction, ...], ...] = field(init=False)

    relation = Relation.REPLACE_ONE

    def _validate(self) -> None:
        inputs, masses = int(self.inputs), [Fraction(each) for each in self.masses]
        if len(masses) % inputs:
            raise InputError(
                f"masses must have one law for each of {inputs} inputs, and {len(masses)} is no multiple of {inputs}"
            )
        size = len(masses) // inputs
        laws = tuple(_normalised(i, masses[i * size : (i + 1) * size]) for i in range(inputs))
        object.__setattr__(self, "laws", laws)

    def key(self) -> Hashable:
        return self.laws

    def own_curve(self, bound: str) -> Curve:
        from cumulant.pairs.finite import MassCurve

        pairs = [(p, q) for i, p in enumerate(self.laws) for q in self.laws[:i]]
        return Highest(tuple(MassCurve(p, q) for p, q in pairs))

    def pair(self) -> Pair | None:
        """Return the pair of both laws; None for more than two inputs, where no single pair is the worst."""
        from cumulant.pairs.finite import DiscretePair

        return DiscretePair(*self.laws) if len(self.laws) == _TWO else None

    def local_randomizer(self) -> Randomizer:
        from cumulant.exact.shuffled_reports import Randomizer

        return Randomizer.of_laws(self.laws)


def _normalised(number: int, law: Sequence[Fraction]) -> tuple[Fraction, ...]:
    """Divide the masses of one law by their sum, which is 1 but for rounding."""
    total = sum(law, Fraction(0))
    if abs(total - 1) * 10**9 > 1:
        raise InputError(f"the masses of input {number} must sum to 1, not to {float(total):.12g}")
    return tuple(mass / total for mass in law)
