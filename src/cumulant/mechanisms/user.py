"""Users: one person who joins or leaves with several records."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, ClassVar

from cumulant.accounting.run import Component
from cumulant.bounds.bound import Bound
from cumulant.curves.curve import Curve
from cumulant.domains import COUNT, Domain, Exact, Number
from cumulant.errors import HypothesisError
from cumulant.mechanisms.mechanism import Expression, Mechanism, Wrapper, run
from cumulant.numerics.binomials import MOST_COUNTED
from cumulant.pairs.pair import Pair
from cumulant.parameters import declared
from cumulant.relation import Relation
from cumulant.sampling.scheme import SCHEMES, Scheme, register_scheme

RECORDS = replace(COUNT, high=Fraction(MOST_COUNTED), hint="bound the records of a user before training")


@register_scheme
@dataclass(frozen=True, slots=True, init=False, eq=False, repr=False)
class User(Scheme):
    """Statements for a user with several records, who joins or leaves as a whole.

    `records` is the largest number of records of a user. On Poisson samples, and on samples of a fixed size with
    relation="add-remove", each record is sampled as any other: Gaussian noise is then shifted by a random number of records,
    which is attained. Users whose records change are a `Group`, because additions and removals may be mixed there. It comes
    last, around everything that ran. See docs/mechanisms/user.md.

    >>> import cumulant as cm
    >>> step = cm.Gaussian(noise_multiplier=2, clip=1, relation="add-remove") @ cm.Poisson(rate="0.01")
    >>> (step @ User(records=5)).delta(epsilon=1) < (step @ cm.Group(size=5)).delta(epsilon=1)
    True
    """

    records: Exact

    relation: ClassVar[Relation] = Relation.ANY
    bounds: ClassVar[Mapping[str, Bound]] = {}
    draws: ClassVar[bool] = False

    def __init__(self, records: Number) -> None:
        object.__setattr__(self, "records", RECORDS.check("records", records))

    @classmethod
    def unknowns(cls, others: Mapping[str, str]) -> Mapping[str, Domain]:
        return {"records": RECORDS}

    def wrap(self, inner: Any) -> Expression:
        if self.records == 1:
            expression: Expression = inner
            return expression
        return run({_user(mechanism, int(self.records)): times for mechanism, times in inner.terms.items()})

    def __eq__(self, other: object) -> bool:
        return isinstance(other, User) and self.records == other.records

    def __hash__(self) -> int:
        return hash((User, self.records))

    def __str__(self) -> str:
        return f"User(records={self.records.notation})"

    def __repr__(self) -> str:
        return str(self)


def _user(mechanism: Mechanism, records: int) -> Mechanism:
    """The mechanism for a user; refused where no pair of a user is known."""
    if mechanism.records_changed > 1:
        raise HypothesisError(f"{mechanism} is about several records already; write User or Group once, and last")
    if not mechanism.amplified:
        (made,) = SCHEMES["Group"](size=records).wrap(mechanism).terms  # type: ignore[call-arg]
        grouped: Mechanism = made
        return grouped
    if mechanism.relation is Relation.REPLACE_ONE:
        raise HypothesisError(
            f"{mechanism} for a user of {records} records: a user joins or leaves, and it is stated for a record that is "
            f'replaced. Draw samples with relation="add-remove", or write Group(size={records}) for records that change'
        )
    if mechanism.user_pair(records) is None:
        raise HypothesisError(
            f"{mechanism} for a user of {records} records: User takes one mechanism with symmetric noise on Poisson samples. "
            "It also takes samples of a fixed size with sample=…, population=… and enough other records; else write "
            f"Group(size={records})"
        )
    return UserMechanism(mechanism, records)


@declared
class UserMechanism(Wrapper):
    """A mechanism on samples, for a user who joins or leaves with several records."""

    inner: Mechanism
    records: int

    amplified: ClassVar[bool] = True  # several users are not several records of one

    @property
    def surrogate(self) -> bool:  # type: ignore[override]
        return self.inner.surrogate or not self.inner.user_attained

    @property
    def records_changed(self) -> int:
        return self.records

    def data_size(self) -> Exact | None:
        return self.inner.data_size()

    def unsampled(self) -> str:
        return "a user enters a sample record by record; write the sample first and User last"

    def ungrouped(self) -> str:
        return "it is stated for one user who joins or leaves; several users or changed records are not covered"

    def own_curve(self, bound: str) -> Curve:
        pair = self.pair()
        if pair is None:  # `around` asked for it
            raise HypothesisError(f"{self} has no pair of a user")
        return pair.curve()

    def pair(self) -> Pair | None:
        return self.inner.user_pair(self.records)

    def rests_on_sensitivity(self) -> bool:
        return self._nested_sensitivity()

    def assumption(self) -> str:
        own = f"every user has at most {self.records} records, each clipped by itself, and joins or leaves as a whole"
        inside = self._nested_assumption()
        return f"{inside}; {own}" if inside else own

    def part(self, times: int) -> Component:
        return replace(super().part(times), group=self.records, user=True)

    def _applied(self) -> str:
        return f"User(records={self.records})"
