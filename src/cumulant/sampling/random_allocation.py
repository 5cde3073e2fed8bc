"""Random allocation: an epoch in which every record goes into one step, balls in bins."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar

from cumulant.bounds.allocation import ALLOCATION
from cumulant.bounds.bound import Bound, proved
from cumulant.curves.curve import Curve
from cumulant.domains import COUNT, Domain, Exact, Number
from cumulant.errors import InputError
from cumulant.exact.grid.allocation import Allocated, AllocatedBelow, attained_loss, fits
from cumulant.exact.witnesses import PAIR, SWAPPED, Neighbours
from cumulant.relation import Relation
from cumulant.sampling.scheme import Scheme, known

if TYPE_CHECKING:
    from cumulant.losses.grid import Step
    from cumulant.pairs.pair import Pair


@known
@dataclass(frozen=True, slots=True, init=False, eq=False, repr=False)
class RandomAllocation(Scheme):
    """One epoch of `steps` releases in which every record goes into one step.

    The step is chosen uniformly, and for each record alone.

    The expression runs once in each step, on the records that are there: batches have random sizes, and empty ones run too.
    `* epochs` draws afresh for each epoch. With `picks` every record is in so many different steps; that is bounded by epochs
    of fewer steps with one pick each. Statements are for add/remove neighbours. Shuffled batches of a fixed size are something
    else, and nothing is proved for them. See docs/mechanisms/random-allocation.md.

    >>> import cumulant as cm
    >>> epoch = cm.Gaussian(sigma=1) @ RandomAllocation(steps=100)
    >>> epoch.rdp([2, 20])
    array([0.01703687, 5.3948304 ])
    >>> cm.Gaussian(sigma=1) @ RandomAllocation(steps=10, picks=3)
    Gaussian(sigma=1) @ RandomAllocation(steps=4) + Gaussian(sigma=1) @ RandomAllocation(steps=3) * 2
    """

    length: Exact
    picks: Exact

    relation: ClassVar[Relation] = Relation.ADD_REMOVE
    bounds: ClassVar[Mapping[str, Bound]] = ALLOCATION
    sharpened: ClassVar[str] = "allocation"
    announced: ClassVar[bool] = True
    spans_pass: ClassVar[bool] = True
    assumed: ClassVar[str] = (
        "RandomAllocation is one whole epoch of all its steps, and each record is in one of them, chosen uniformly, in secret "
        "and independently of the other records, so that batches have random sizes; shuffled batches of a fixed size do not"
    )
    checked: ClassVar[str] = "each record goes to one step of an epoch, drawn uniformly and in secret"

    def __init__(self, steps: Number, picks: Number = 1) -> None:
        many, some = COUNT.check("steps", steps), COUNT.check("picks", picks)
        if some > many:
            raise InputError(f"picks={some} must be at most steps={many}: a record is in different steps of the epoch")
        object.__setattr__(self, "length", many)
        object.__setattr__(self, "picks", some)

    @property
    def copies(self) -> int:
        """Return 1: only one step has the record."""
        return 1

    @property
    def shorter(self) -> RandomAllocation | None:
        """Return the allocation with the next smaller power of two of steps.

        More steps are more private, and epochs share these.
        """
        fewer = 1 << (int(self.length) - 1).bit_length() - 1
        return RandomAllocation(fewer) if self.picks == 1 and fewer > 1 else None

    @classmethod
    def unknowns(cls, others: Mapping[str, str]) -> Mapping[str, Domain]:
        most = {"picks": replace(COUNT, high=Fraction(Exact(others["steps"])))} if "steps" in others else {}
        return {"steps": replace(COUNT, low=Fraction(Exact(others.get("picks", 1)))), **most}

    def numbers(self) -> Mapping[str, Fraction]:
        return {"steps": self.length, "picks": self.picks}

    def said(self, ran: str, times: int) -> str:
        epochs = "one whole epoch" if times == 1 else f"each of {times:,} whole epochs"
        return f"{ran} runs in all {int(self.length):,} steps of {epochs}, records allocated afresh by {self}"

    def around(self, inner: Any) -> Any:
        """Split k picks of t = k b + r steps into blocks with one pick each.

        A random partition of the steps gives r blocks of b + 1 and k - r of b.
        """
        if (
            self.picks == 1 < self.length or inner.relation is Relation.REPLACE_ONE
        ):  # which is refused, whatever the steps
            return None
        if self.picks == self.length:
            return inner * int(self.length)
        short, longer = divmod(int(self.length), int(self.picks))
        blocks = {short + 1: longer, short: int(self.picks) - longer}
        parts = [inner @ RandomAllocation(size) * times for size, times in blocks.items() if times]
        return parts[0] if len(parts) == 1 else parts[0] + parts[1]

    def curve(self, base: Callable[[str], Curve], pair: Pair | None, bound: str, subject: str) -> Curve:
        return proved(self.bounds, self.theorem(bound), base("best"), pair, Fraction(1) / self.length, subject)

    def steps(self, pair: Pair) -> tuple[Step, ...] | None:
        """Return the steps with the record removed and with the record added in the whole run.

        The record is there in one of the data sets.
        """
        loss, count = pair.loss(), int(self.length)
        if loss is None or not fits(loss, count):
            return None
        return Allocated(loss, count, "remove"), Allocated(loss, count, "add")

    def witnesses(self, pair: Pair) -> Iterator[Neighbours]:
        """Data sets with and without a record that counts; where a step attains its pair, so does the epoch."""
        loss, count = attained_loss(pair), int(self.length)
        if loss is None or not fits(loss, count):
            return
        for name, direction in ((PAIR, "remove"), (SWAPPED, "add")):
            yield Neighbours(name, AllocatedBelow(loss, count, direction))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, RandomAllocation) and (self.length, self.picks) == (other.length, other.picks)

    def __hash__(self) -> int:
        return hash((RandomAllocation, self.length, self.picks))

    def __str__(self) -> str:
        picks = "" if self.picks == 1 else f", picks={self.picks.notation}"
        return f"RandomAllocation(steps={self.length.notation}{picks})"

    def __repr__(self) -> str:
        return str(self)
