"""Runs as mathematics sees them: components with curves, pairs and schemes.

Never a mechanism.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from importlib import import_module
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from cumulant.bounds.bound import Bound
from cumulant.bounds.table import row as bound_row
from cumulant.curves.cache import recall
from cumulant.curves.curve import Curve, compose
from cumulant.errors import HypothesisError
from cumulant.pairs.pair import Pair
from cumulant.relation import Relation
from cumulant.sampling.scheme import Scheme

if TYPE_CHECKING:
    from cumulant.exact.shuffled_batches import Batches
    from cumulant.exact.witnesses import Neighbours


MOST_ANSWERS = 4096
"""Answers that are remembered; a bound of memory."""

ANSWERS: dict[Hashable, Any] = {}
"""Every remembered answer, by the key of its run and the question."""

T = TypeVar("T")
"""An answer about a run."""


class Described(Protocol):
    """A mechanism, from which the texts about a component are written."""

    @property
    def scaled_to_norm(self) -> bool:
        """True if its noise is scaled to a norm, as sums of clipped vectors need it."""

    @property
    def attacked(self) -> str:
        """The plural of what a membership attack finds."""

    def rank(self) -> tuple[str, str]:
        """Return a place in the one order in which terms are added."""

    def description(self) -> str:
        """Describe the mechanism in a sentence."""

    def rests_on_sensitivity(self) -> bool:
        """Return True if its statement rests on a sensitivity."""

    def clipped_form(self) -> str:
        """Return the text of a sum of clipped vectors with the same noise over norm; empty if it is the same."""

    def assumption(self) -> str:
        """Say what must be true of it, and no theorem can know; empty if there is nothing."""

    def lower_end_hint(self) -> str:
        """Say how to describe it so that a lower end is known; empty if nothing more can be said."""


@dataclass(frozen=True, slots=True)
class Component:
    """One component of a run: all that is known of a mechanism, and how often it ran.

    `curve(bound)` is what this bound proves about one run of it. `pair` dominates what runs, on each sample if there is a
    `scheme`; only a single mechanism has one, because several on one sample may be adaptive within it. `inner` is what runs on
    each sample. Its texts are written when they are read.
    """

    source: Described
    """The mechanism from which its texts are written."""
    times: int
    curve: Callable[[str], Curve]
    pair: Pair | None = None
    scheme: Scheme | None = None
    estimated: bool = False
    inner: RunRecord | None = None
    key: Hashable = None
    """A value that is equal for equal components; None if it equals no other one."""
    alone: Component | None = None
    """The part for data sets that differ in one record, where this one is stated for groups."""
    data_independent: bool = False
    """True if its output does not depend on the data."""
    written: bool = True
    """True if its name is a text that can be read back; a Python function has none."""
    surrogate: bool = False
    """True for a surrogate: what ran may be more private, so that only an upper end is known."""
    bounded: bool = False
    """True if its curve uses answers in floats about other runs, so that no answer from the curve is proved."""
    batches: Batches | None = None
    """The cut of a fresh permutation into batches; None if it is no pass over such. Its other fields ignore the permutation."""
    witnesses: tuple[Neighbours, ...] = ()
    """Data sets that bound it from below, where the mechanism names them itself; else its scheme does."""
    group: int = 1
    """Number of steps from neighbour to neighbour between the data sets that its statements compare."""
    user: bool = False
    """True if those neighbours are the records of one user, which all join or all leave."""
    dominating: Callable[[], tuple[RunRecord, ...]] | None = None
    """Runs that each dominate it, in whose place it is evaluated; None where it is evaluated as it is."""
    dominated: Callable[[], tuple[RunRecord, ...]] | None = None
    """Runs that it dominates each, from which its lower end comes."""

    @property
    def name(self) -> str:
        """The text of the mechanism."""
        return str(self.source)

    def nested(self) -> Iterator[Component]:
        """Yield the component, then those that run on its samples."""
        yield self
        if self.inner is not None:
            yield from self.inner.nested()

    def row(self, bound: str) -> Bound:
        """The theorem of this name about the way in which its samples are drawn."""
        return (None if self.scheme is None else self.scheme.bounds.get(bound)) or bound_row(bound)

    def with_times(self, times: int) -> Component:
        """Return the component run so many times, `alone` in the same proportion."""
        alone = self.alone and replace(self.alone, times=self.alone.times * times // self.times)
        return replace(self, times=times, alone=alone)

    @property
    def lone(self) -> bool:
        """Return True if a single mechanism runs, on each sample if there is one."""
        return self.inner is None or (len(self.inner.parts) == 1 and self.inner.parts[0].times == 1)

    @property
    def base(self) -> Curve:
        """The curve of what runs on each sample, or of the part itself."""
        return self.curve("best") if self.inner is None else self.inner.curve()


@dataclass(frozen=True)
class RunRecord:
    """Everything that ran on one data set, frozen as it was when it was asked about."""

    parts: tuple[Component, ...]
    relation: Relation
    source: object
    """The expression that was asked about."""
    known: dict[str, Any] = field(default_factory=dict, init=False, repr=False, compare=False)
    """Facts about the run that were found once, by name; the record never changes."""

    @property
    def text(self) -> str:
        """The text of the run."""
        return str(self.source)

    @property
    def estimated(self) -> bool:
        """Return True if a number about it rests on a function that is only sampled in floats.

        Such a function is a user's Python function.
        """
        return any(part.estimated for part in self.parts)

    @property
    def groups(self) -> tuple[int, ...]:
        """Return the sizes of the groups that its parts speak about, smallest first.

        There is one size unless Group was not put last.
        """
        return tuple(sorted({part.group for part in self.parts})) or (1,)

    @property
    def user(self) -> bool:
        """True if some part speaks about a user who joins or leaves, and about no other change of several records."""
        return any(part.user for part in self.nested())

    @property
    def surrogate(self) -> bool:
        """True if some part is a surrogate, so that nothing is known from below."""
        found = len(self.parts) > 1 and len(self.groups) > 1
        for part in self.parts:
            found = found or part.surrogate or (part.inner is not None and part.inner.surrogate)
        return found

    @property
    def written(self) -> bool:
        """Return True if its text can be read back."""
        return all(part.written for part in self.nested())

    @cached_property
    def sorted(self) -> tuple[Component, ...]:
        """The parts in the order in which they are added."""
        return self.parts if len(self.parts) == 1 else tuple(sorted(self.parts, key=lambda part: part.source.rank()))

    @cached_property
    def key(self) -> Hashable:
        """Return a key of equal runs; None if it is not data alone, so that nothing about it may be remembered."""
        for part in self.parts:
            if not part.written or part.estimated or part.key is None:  # what runs on samples is written if the part is
                return None
        counted: list[Hashable] = []
        for part in self.sorted:
            counted += part.key, part.times
        return self.relation, tuple(counted)

    def answer(self, asked: Hashable, find: Callable[[], T]) -> T:
        """Return the answer to a question about this run, found once if the run is data alone."""
        return find() if self.key is None else recall(ANSWERS, (self.key, asked), find, MOST_ANSWERS)

    @cached_property
    def indirect(self) -> bool:
        """Return True if other runs may bound it better than its own curve and losses (`indirect_routes`)."""
        for part in self.parts:
            if part.dominating is not None or part.alone is not None or part.batches is not None:
                return True
            if part.bounded or (part.pair is not None and part.pair.bounded):
                return True
            if part.scheme is not None and (part.scheme.announced or part.scheme.blocks):
                return True
        return False

    def curve(self, bound: str = "best") -> Curve:
        """The sum of the curves of all parts, each amplified by this bound."""
        row = bound_row(bound)
        if not row.upper and self.surrogate:
            raise HypothesisError(f"{self.text} bounds what ran from above only, so no lower bound is known")
        name = row.name
        return compose((part.curve(name), part.times) for part in self.sorted)

    def nested(self) -> Iterator[Component]:
        """Every part, those that run on samples after the one that draws the sample."""
        for part in self.parts:
            yield from part.nested()

    def repeated(self, times: int) -> RunRecord:
        """Return the run repeated so many times."""
        return replace(self, parts=tuple(part.with_times(times * part.times) for part in self.parts))


_readers: list[Callable[[str], RunRecord]] = []


def reader(read: Callable[[str], RunRecord]) -> Callable[[str], RunRecord]:
    """Register the function that reads the text of a run.

    The notation, which imports this package, does so when it is imported.
    """
    _readers[:] = [read]
    return read


def parse_record(text: str) -> RunRecord:
    """Read the record of a run from its text, by the notation, which is above this package and loaded when needed."""
    if not _readers:
        import_module("cumulant.notation")
    return _readers[0](text)
