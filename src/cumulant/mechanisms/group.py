"""Groups of records."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from cumulant.accounting.run import Component
from cumulant.bounds.bound import Bound
from cumulant.curves.curve import Curve, Lowest
from cumulant.curves.group import grouped
from cumulant.domains import GROUP as SIZES
from cumulant.domains import Domain, Exact, Number
from cumulant.errors import HypothesisError
from cumulant.mechanisms.mechanism import Expression, Mechanism, Wrapper, run
from cumulant.pairs.pair import Pair
from cumulant.parameters import declared
from cumulant.relation import Relation
from cumulant.sampling.scheme import Scheme, register_scheme


@register_scheme
@dataclass(frozen=True, slots=True, init=False, eq=False, repr=False)
class Group(Scheme):
    """Statements for a group of records that change together, at most `size` of them.

    This is user-level or household-level privacy.

    Relation and mechanism stay as they are; under replace-one it is so many replacements. Noise is shifted so many times as
    far; what is known by its curve only goes by the doubling of Mironov 2017. It comes last, around everything that ran.
    See docs/mechanisms/group.md.

    >>> import cumulant as cm
    >>> (cm.Gaussian(sigma=10) @ Group(size=5)).epsilon(1e-6) == cm.Gaussian(sigma=2).epsilon(1e-6)
    True
    """

    size: Exact

    relation: ClassVar[Relation] = Relation.ANY
    bounds: ClassVar[Mapping[str, Bound]] = {}
    draws: ClassVar[bool] = False

    def __init__(self, size: Number) -> None:
        object.__setattr__(self, "size", SIZES.check("size", size))

    @classmethod
    def unknowns(cls, others: Mapping[str, str]) -> Mapping[str, Domain]:
        return {"size": SIZES}

    def wrap(self, inner: Any) -> Expression:
        for mechanism in inner.terms:
            if self.size > 1 and (refused := mechanism.ungrouped()):
                raise HypothesisError(f"{mechanism} for a group of {self.size}: {refused}")
        return self.chain(inner)

    def chain(self, inner: Expression) -> Expression:
        """Return the expression for data sets that so many neighbours join.

        It is stated for each step of the chain.
        """
        return run({_grouped(mechanism, int(self.size)): times for mechanism, times in inner.terms.items()})

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Group) and self.size == other.size

    def __hash__(self) -> int:
        return hash((Group, self.size))

    def __str__(self) -> str:
        return f"Group(size={self.size.notation})"

    def __repr__(self) -> str:
        return str(self)


def _grouped(mechanism: Mechanism, size: int) -> Mechanism:
    if isinstance(mechanism, Grouped):
        return _grouped(mechanism.inner, mechanism.size * size)
    if mechanism._slack() and mechanism.grouped_pair(size) is None:
        raise HypothesisError(
            f"{mechanism} may fail, and how often for a group is known of ApproximateDP only; state one (epsilon, delta) of it"
        )
    return Grouped(mechanism, size) if size > 1 else mechanism


@declared
class Grouped(Wrapper):
    """A mechanism, for data sets that differ in several records."""

    inner: Mechanism
    size: int

    @property
    def surrogate(self) -> bool:  # type: ignore[override]
        return self.inner.surrogate or not self.inner.grouped_attained

    @property
    def records_changed(self) -> int:
        return self.size * self.inner.records_changed

    def unsampled(self) -> str:
        return "a group enters a sample record by record; write the sample first and Group last"

    def own_curve(self, bound: str) -> Curve:
        found = self.inner.grouped_curve(self.size)
        own = self.inner.own_curve("best")
        if found is not None and (not self.inner.amplified or own.slack()):
            return found  # a chain says nothing of what may fail
        chain = grouped(own, self.size)
        return chain if found is None else Lowest((chain, found))

    def pair(self) -> Pair | None:
        return self.inner.grouped_pair(self.size)

    def rests_on_sensitivity(self) -> bool:
        return self._nested_sensitivity()

    def assumption(self) -> str:
        return self._nested_assumption()

    def part(self, times: int) -> Component:
        return replace(super().part(times), group=self.size, alone=self.inner.part(times))

    def _applied(self) -> str:
        return f"Group(size={self.size})"
