"""Random allocation: an epoch in which every record goes into one step, balls in bins."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar

from cumulant.bounds.allocation import ALLOCATION
from cumulant.bounds.bound import Bound, proved
from cumulant.curves.curve import Curve, compose
from cumulant.domains import COUNT, Domain, Exact, Number, Switch
from cumulant.errors import InputError
from cumulant.exact.grid.allocation import Allocated, AllocatedBelow, attained_loss, fits
from cumulant.exact.grid.allocation_types import MOST_WORK, type_work
from cumulant.exact.witnesses import PAIR, SWAPPED, Neighbours
from cumulant.relation import Relation
from cumulant.sampling.scheme import Scheme, register_scheme

if TYPE_CHECKING:
    from cumulant.losses.grid import Step
    from cumulant.pairs.pair import Pair


@register_scheme
@dataclass(frozen=True, slots=True, init=False, eq=False, repr=False)
class RandomAllocation(Scheme):
    """One epoch, in which each record goes into one step that is drawn for it.

    The draw is uniform, and made for each record alone. `steps` says how many steps the epoch has. `picks` says into how many
    different ones each record goes, if not into one.

    The expression runs once in each step, on the records that are there: batches have random sizes, and empty ones run too.
    `* epochs` draws afresh for each epoch. Several picks are counted exactly where a step has few ratios (randomized response,
    `PureDP`); else epochs of fewer steps with one pick each bound them. Those are marked by `upper_bound=1`: they are less
    private than what ran, so there is no lower end.
    Statements are for add/remove neighbours. Shuffled batches of a fixed size are something else: `ShuffledBatches`.
    See docs/mechanisms/random-allocation.md.

    >>> import cumulant as cm
    >>> epoch = cm.Gaussian(sigma=1) @ RandomAllocation(steps=100)
    >>> epoch.rdp([2, 20])
    array([0.01703687, 5.3948304 ])
    >>> cm.Gaussian(sigma=1) @ RandomAllocation(steps=12, picks=4)
    Gaussian(sigma=1) @ RandomAllocation(steps=3, upper_bound=1) * 4
    """

    steps: Exact
    picks: Exact
    surrogate: bool  # type: ignore[misc]

    relation: ClassVar[Relation] = Relation.ADD_REMOVE
    bounds: ClassVar[Mapping[str, Bound]] = ALLOCATION
    sharpened: ClassVar[str] = "allocation"
    spans_pass: ClassVar[bool] = True

    def __init__(self, steps: Number, picks: Number = 1, *, upper_bound: Number = 0) -> None:
        many, some = COUNT.check("steps", steps), COUNT.check("picks", picks)
        surrogate = Switch("the epoch only bounds what ran").check("upper_bound", upper_bound)
        if some > many:
            raise InputError(f"picks={some} must be at most steps={many}: a record is in different steps of the epoch")
        object.__setattr__(self, "steps", many)
        object.__setattr__(self, "picks", some)
        object.__setattr__(self, "surrogate", surrogate)

    @property
    def announced(self) -> bool:  # type: ignore[override]
        """Return True if one step has the record: telling that step leaves one release."""
        return self.picks == 1

    @property
    def assumed(self) -> str:  # type: ignore[override]
        """Return what must be true of the loop."""
        where = "one of them" if self.picks == 1 else f"{self.picks} different ones of them"
        return (
            f"RandomAllocation is one whole epoch of all its steps, and each record is in {where}, chosen uniformly, in secret "
            "and independently of the other records, so that batches have random sizes; shuffled batches of a fixed size do not"
        )

    @property
    def checked(self) -> str:  # type: ignore[override]
        """Return what to check about the loop."""
        where = "one step" if self.picks == 1 else f"{self.picks} different steps"
        return f"each record goes to {where} of an epoch, drawn uniformly and in secret"

    @property
    def copies(self) -> int:
        """Return how many steps have the record."""
        return int(self.picks)

    @property
    def step_rate(self) -> Fraction:
        """Return k/t for k of t steps, as they are chosen uniformly."""
        return Fraction(self.picks) / self.steps

    @property
    def averaged(self) -> Fraction:
        """Return k^2/t for k of t steps: the sum of all steps moves k times as far, and has the noise of t steps."""
        return Fraction(self.picks**2) / self.steps

    @property
    def blocks(self) -> tuple[tuple[RandomAllocation, int], ...]:  # type: ignore[override]
        """Return the blocks of an epoch with several picks, each with one pick; () where a block would be one step."""
        if self.picks == 1 or 2 * self.picks > self.steps:
            return ()
        return tuple((RandomAllocation(size, upper_bound=1), times) for size, times in self._blocks())

    @property
    def shorter(self) -> RandomAllocation | None:
        """Return the allocation with the next smaller power of two of steps.

        More steps are more private, and epochs share these. Returns None if there is none, or for several picks.
        """
        fewer = 1 << (int(self.steps) - 1).bit_length() - 1
        return RandomAllocation(fewer) if self.picks == 1 and fewer > 1 else None

    @classmethod
    def unknowns(cls, others: Mapping[str, str]) -> Mapping[str, Domain]:
        most = {"picks": replace(COUNT, high=Fraction(Exact(others["steps"])))} if "steps" in others else {}
        return {"steps": replace(COUNT, low=Fraction(Exact(others.get("picks", 1)))), **most}

    def numbers(self) -> Mapping[str, Fraction]:
        return {"steps": self.steps, "picks": self.picks}

    def describe(self, ran: str, times: int) -> str:
        epochs = "one whole epoch" if times == 1 else f"each of {times:,} whole epochs"
        return f"{ran} runs in all {int(self.steps):,} steps of {epochs}, records allocated afresh by {self}"

    def wrap(self, inner: Any) -> Any:
        """Split k picks of t = k b + r steps into blocks with one pick each, unless all types of outputs can be counted.

        A random partition of the steps gives r blocks of b + 1 and k - r of b.
        """
        if (
            self.picks == 1 < self.steps or inner.relation is Relation.REPLACE_ONE
        ):  # which is refused, whatever the steps
            return None
        if self.picks == self.steps:
            return inner * int(self.steps)
        if [*inner.terms.values()] == [1] and self._counts_types(next(iter(inner.terms)).pair()):
            return None
        parts = [inner @ RandomAllocation(size, upper_bound=1) * times for size, times in self._blocks()]
        return parts[0] if len(parts) == 1 else parts[0] + parts[1]

    def _blocks(self) -> list[tuple[int, int]]:
        """Return sizes of blocks with one pick each, and how many blocks have that size."""
        short, longer = divmod(int(self.steps), int(self.picks))
        return [(size, times) for size, times in ((short + 1, longer), (short, int(self.picks) - longer)) if times]

    def _counts_types(self, pair: Pair | None) -> bool:
        """Return True if the types of all outputs of an epoch with several picks are few enough to be counted."""
        loss = None if pair is None else pair.loss()
        return loss is not None and type_work(loss, int(self.steps), int(self.picks)) <= MOST_WORK

    def curve(self, base: Callable[[str], Curve], pair: Pair | None, bound: str, subject: str) -> Curve:
        if self.picks > 1:
            return compose(
                [(RandomAllocation(size).curve(base, pair, bound, subject), times) for size, times in self._blocks()]
            )
        return proved(self.bounds, self.theorem(bound), base("best"), pair, Fraction(1) / self.steps, subject)

    def steps_of(self, pair: Pair) -> tuple[Step, ...] | None:
        """Return the steps with the record removed and with the record added in the whole run.

        One of the data sets has the record. Returns None if no grid can hold them.
        """
        loss, count, picks = pair.loss(), int(self.steps), int(self.picks)
        if loss is None or not (self._counts_types(pair) if picks > 1 else fits(loss, count)):
            return None
        return Allocated(loss, count, "remove", picks), Allocated(loss, count, "add", picks)

    def witnesses(self, pair: Pair) -> Iterator[Neighbours]:
        """Yield data sets with and without a record that counts; where a step attains its pair, so does the epoch."""
        loss, count, picks = None if self.surrogate else attained_loss(pair), int(self.steps), int(self.picks)
        if loss is None or not (self._counts_types(pair) if picks > 1 else fits(loss, count, upper=False)):
            return
        for name, direction in ((PAIR, "remove"), (SWAPPED, "add")):
            yield Neighbours(name, AllocatedBelow(loss, count, direction, picks=picks))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, RandomAllocation) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash((RandomAllocation, *self._key()))

    def _key(self) -> tuple[Exact, Exact, bool]:
        return self.steps, self.picks, self.surrogate

    def __str__(self) -> str:
        picks = "" if self.picks == 1 else f", picks={self.picks.notation}"
        return f"RandomAllocation(steps={self.steps.notation}{picks}{', upper_bound=1' if self.surrogate else ''})"

    def __repr__(self) -> str:
        return str(self)
