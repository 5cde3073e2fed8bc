"""Parallel composition: each record is seen by one part only."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterator
from dataclasses import replace
from fractions import Fraction
from functools import lru_cache, partial
from itertools import islice

from cumulant.accounting.answer import has_closed_form
from cumulant.accounting.dominating_runs import dominated_runs, dominating_runs, has_dominating_runs
from cumulant.accounting.run import Component
from cumulant.curves.curve import Curve
from cumulant.curves.maximum import Highest
from cumulant.domains import one_of
from cumulant.errors import InputError, RelationError
from cumulant.mechanisms.mechanism import COMBINATORS, Expression, Mechanism
from cumulant.pairs.pair import Pair
from cumulant.parameters import declared
from cumulant.relation import Relation, agreed
from cumulant.sampling.scheme import SCHEMES

WAYS = ("value", "position")
ASSUMED = "the part of every record is fixed before the mechanisms of that part start"
_POINTS = 48
"""Intervals between the points of a profile through which the polygon goes; chosen by hand, any number is valid."""

_SMALLEST = 1e-14
"""Delta up to whose epsilon the points of the profile reach; chosen by hand, any delta is valid."""

_MOST_SPREADS = 12
"""Ways to spread a group over the parts that are composed; measured: each takes 20 to 100 ms, beyond it the chain answers."""

_MOST_CHANGES = 12
"""Changes of a group that are spread; convention: partitions of larger numbers are too many anyway."""


def parallel(*parts: Expression, by: str = "value", relation: Relation | str | None = None) -> Parallel:
    """Return runs on disjoint parts of the data, `a | b`: each record is seen by one of them.

    `by="value"`: which one is a fixed function of the record, so that a replaced record may leave one part and enter another;
    the statement is for add/remove neighbours, or with `relation="replace-one"` for those, the parts being stated for
    add/remove. `by="position"`: a public function of its place, so that a replaced record stays; the statement is for
    replace-one neighbours, or replace-special ones if the parts are stated for them, because a record that is removed moves
    all later ones. The part of a record is fixed before the mechanisms of that part start. See docs/mechanisms/parallel.md.

    >>> import cumulant as cm
    >>> (cm.PureDP(1) | cm.PureDP("0.5")).epsilon(delta=0)
    1.0
    >>> cm.parallel(cm.PureDP(1), cm.PureDP("0.5"), relation="replace-one").epsilon(delta=0)
    2.0
    """
    if len(parts) < 2 or not all(isinstance(part, Expression) for part in parts):
        raise InputError("parallel takes two runs or more, such as parallel(Laplace(2), Laplace(3))")
    way = one_of("by", by, WAYS)
    wanted = None if relation is None else Relation.read(relation)
    if way == "position" and relation is not None:
        raise InputError('by="position" makes replace-one statements; leave relation out')
    if wanted is Relation.REPLACE_SPECIAL:
        raise InputError(
            'parts by="value" make add-remove or replace-one statements; for replace-special neighbours say by="position"'
        )
    replaced = wanted is Relation.REPLACE_ONE
    flat = [
        each
        for part in parts
        for each in (part.parts if isinstance(part, Parallel) and (part.by, part.moved) == (way, False) else (part,))
    ]
    return Parallel(tuple(flat), way, replaced)


@declared
class Parallel(Mechanism):
    """Runs on disjoint parts of the data.

    >>> import cumulant as cm
    >>> (cm.PureDP(1) | cm.PureDP(2)).epsilon(delta=0)
    2.0
    """

    parts: tuple[Expression, ...]
    by: str
    moved: bool = False
    """True if the statement is for a record that is replaced, so that it may move from one part to another."""

    def _validate(self) -> None:
        stated = agreed(self.parts)[0]
        if self.by == "position" and stated is Relation.ADD_REMOVE:
            raise RelationError(
                'by="position" is for replace-one neighbours: a record that is removed moves all later ones to other places; '
                'state the parts for replace-one, or say by="value" if the record itself decides'
            )
        if self.by == "value" and stated is Relation.REPLACE_ONE:
            raise RelationError(
                "a replaced record may leave one part and enter another, which is a removal and an addition; state the parts "
                'for add-remove neighbours and say parallel(..., relation="replace-one"), or by="position" if its place decides'
            )
        if self.by == "value" and stated is Relation.REPLACE_SPECIAL:
            raise RelationError(
                "a special record has no value that puts it into a part; state the parts for add-remove neighbours, or say "
                'by="position" if its place decides'
            )
        for part in self.parts:
            if any(mechanism.records_changed > 1 for mechanism in part.terms):
                raise InputError(
                    f"{part} is about a group of records, which may lie in several parts; write Group last, around all parts"
                )
        if self.moved:
            self._parts_twice()  # refuses parts of which nothing is known for two records

    @property
    def relation(self) -> Relation:
        if self.by == "value":
            return Relation.REPLACE_ONE if self.moved else Relation.ADD_REMOVE
        special = any(part.relation is Relation.REPLACE_SPECIAL for part in self.parts)
        return Relation.REPLACE_SPECIAL if special else Relation.REPLACE_ONE

    @property
    def partitioned(self) -> bool:
        return True

    def cases(self) -> tuple[Expression, ...]:
        """Return the runs that one change of the data may affect.

        That is one part; two parts if a record moves, and one part twice if it stays.
        """
        if not self.moved:
            return self.parts
        pairs = dict.fromkeys(frozenset((i, j)) for i in range(len(self.parts)) for j in range(i))
        sums = [self.parts[min(each)] + self.parts[max(each)] for each in pairs]
        return tuple(dict.fromkeys([*self._parts_twice(), *sums]))

    def _parts_twice(self) -> list[Expression]:
        """Return each part for a group of two records: one leaves it and one enters it."""
        two = SCHEMES["Group"](size=2)  # type: ignore[call-arg]
        return [two.chain(part) for part in dict.fromkeys(self.parts)]  # type: ignore[attr-defined]

    @property
    def estimated(self) -> bool:  # type: ignore[override]
        return any(part.estimated for part in self.parts)

    @property
    def surrogate(self) -> bool:  # type: ignore[override]
        return any(part.surrogate for part in self.parts)

    @property
    def rests_on_floats(self) -> bool:  # type: ignore[override]
        return any(part.rests_on_floats for part in self.parts)

    @property
    def spans_pass(self) -> bool:
        return any(part.spans_pass for part in self.parts)

    @property
    def spans_run(self) -> bool:
        return any(part.spans_run for part in self.parts)

    @property
    def frozen(self) -> bool:
        return all(part.frozen for part in self.parts)

    @property
    def sized(self) -> bool:
        return any(part.sized for part in self.parts)

    def key(self) -> Hashable:
        # a group may lie in several parts, so their number matters
        return frozenset(Counter(self.parts).items()), self.by, self.moved

    def lower_end_hint(self) -> str:
        hints = (mechanism.lower_end_hint() for part in self.parts for mechanism in part.terms)
        return next(filter(None, hints), "")

    def assumption(self) -> str:
        return ASSUMED

    def ungrouped(self) -> str:
        if self.moved and self.sized:
            return "its parts are stated for one size each, and records that move from one part to another change both sizes"
        terms = (mechanism for part in self.parts for mechanism in part.terms)
        return next((refused for mechanism in terms if (refused := mechanism.ungrouped())), "")

    def unsampled(self) -> str:
        return "the parts are of all the data; put the sample into each part"

    def own_curve(self, bound: str) -> Curve:
        return Highest(tuple(part.curve("best") for part in self.cases()))

    @property
    def _only_part(self) -> Expression | None:
        """Return the run that every part is, if a changed record stays in its part; else None.

        A change is one of one part, and the other parts are alike on both data sets: what is known of a part is known of all.
        """
        return self.parts[0] if not self.moved and len(set(self.parts)) == 1 else None

    @property
    def _one_indirect(self) -> bool:
        """Return True if all parts are one run that only other runs bound, and a changed record stays in its part."""
        return (only := self._only_part) is not None and has_dominating_runs(only.record())

    def part(self, times: int) -> Component:
        if isinstance(only := self._only_part, Mechanism):
            return replace(only.part(times), source=self, key=self)
        found = super().part(times)
        if only is None or not self._one_indirect:
            return found
        one = only.record()
        return replace(found, dominating=partial(dominating_runs, one), dominated=partial(dominated_runs, one))

    def pair(self) -> Pair | None:
        return None if not self.frozen or self.estimated or self._one_indirect else _cached_pair(self)

    def grouped_pair(self, size: int) -> Pair | None:
        """Return the pair of a group, by a chain of neighbours or by all spreads of its records; else None."""
        pair = self.pair()
        if pair is not None and pair.chained:
            return pair.group_pair(size)
        return None if not self.frozen or self.estimated else _cached_spread(self, size)

    def grouped_curve(self, size: int) -> Curve | None:
        pair = self.pair()
        if pair is not None and pair.chained:
            many = pair.group_pair(size)
            return None if many is None else many.curve()
        # the pair is a polygon with a leak; curves of the runs themselves have none
        cases = None if not self.frozen or self.estimated else self._spreads(size)
        return None if cases is None else Highest(tuple(case.curve("best") for case in cases))

    def _spreads(self, size: int) -> tuple[Expression, ...] | None:
        """Return the runs that a group may affect, one for each way to spread its records.

        Of records that move, each leaves a part and enters one, so they count twice. Returns None if there are too many ways,
        if a part may fail, or if it has no symmetric pair: records may join one part and leave another, which mixes directions.
        """
        mechanisms = [mechanism for part in self.parts for mechanism in part.terms]
        pairs = [None if mechanism.amplified else mechanism.pair() for mechanism in mechanisms]
        if not all(pair is not None and pair.symmetric for pair in pairs) or self._slack():
            return None
        kinds = Counter(self.parts)
        changes = 2 * size if self.moved else size
        ways = list(islice(_ways(changes, tuple(kinds.values())), _MOST_SPREADS + 1))
        if changes > _MOST_CHANGES or len(ways) > _MOST_SPREADS:
            return None
        found = []
        for way in ways:
            terms = [
                SCHEMES["Group"](size=share).chain(part)  # type: ignore[call-arg, attr-defined]
                for part, shares in zip(kinds, way, strict=True)
                for share in shares
            ]
            found.append(sum(terms[1:], start=terms[0]))
        if any(_directed(part) for case in found for part in case.record().nested()):
            return None
        return tuple(dict.fromkeys(found))

    def _pair(self) -> Pair | None:
        """Return the polygon through points of the larger profile, which is convex.

        If all parts are equal, it is the pair of that part. Returns None if losses have a direction, or the
        profile is out of reach.
        """
        if isinstance(only := self._only_part, Mechanism) and not only.amplified:
            return only.pair()
        cases = self.cases()
        if not self.moved:
            return _largest(cases)
        # between equal parts a move is a chain of two neighbours like any other, of which Group(size=2) is stated
        unlike = len(set(self.parts)) > 1
        nested = [part for case in cases for part in case.record().nested()]
        if any(_directed(part) or (unlike and part.dominating is not None) for part in nested):
            return None  # a removal beside an addition, and profiles add two removals or two additions
        return _largest(cases)

    def __str__(self) -> str:
        texts = sorted(str(part) for part in self.parts)
        if self.by == "value" and not self.moved:
            return "(" + " | ".join(texts) + ")"
        inside = sorted(str(part) if isinstance(part, Mechanism) else f"({part})" for part in self.parts)
        stated = 'relation="replace-one"' if self.moved else f'by="{self.by}"'
        return f"parallel({', '.join(inside)}, {stated})"


def _directed(part: Component) -> bool:
    """Return True if its losses have a direction, as those of samples."""
    return part.scheme is not None or (part.pair is not None and len(part.pair.unsampled_steps() or ()) > 1)


def _largest(cases: tuple[Expression, ...]) -> Pair | None:
    """Return the polygon through points of the largest profile of some runs; None if it is out of reach."""
    from cumulant.pairs.polygon import PolygonPair, convex_corners

    spans = [case.epsilon(delta=_SMALLEST) for case in cases]
    far = min(max((span for span in spans if span < 250), default=0.0), 250.0)
    if not far or any(span >= 250 for span in spans):
        return None
    steps = [Fraction(far) * Fraction(i, _POINTS) for i in range(_POINTS + 1)]
    found = [case.delta(epsilon=steps) for case in cases]
    deltas = [max(Fraction(float(each)) for each in at) for at in zip(*found, strict=True)]
    if min(deltas) >= 1:
        return None
    points = [(step, delta) for step, delta in zip(steps, deltas, strict=True) if delta < 1]
    bounded = not all(has_closed_form(case.record()) for case in cases)
    return PolygonPair(*convex_corners(*zip(*points, strict=True)), attained=False, bounded=bounded)


def _ways(changes: int, counts: tuple[int, ...]) -> Iterator[tuple[tuple[int, ...], ...]]:
    """Yield all ways to spread so many changes over parts of several kinds, with their numbers."""
    if not counts:
        if not changes:
            yield ()
        return
    for used in range(changes + 1):
        for shares in _partitions(used, counts[0], used):
            for rest in _ways(changes - used, counts[1:]):
                yield shares, *rest


def _partitions(total: int, most: int, largest: int) -> Iterator[tuple[int, ...]]:
    """Yield the partitions of a number into at most so many parts, each at most `largest`."""
    if not total:
        yield ()
    for first in range(min(total, largest), 0, -1) if most else ():
        for rest in _partitions(total - first, most - 1, first):
            yield first, *rest


COMBINATORS["parallel"] = parallel


@lru_cache(maxsize=64)
def _cached_pair(run: Parallel) -> Pair | None:
    return run._pair()


@lru_cache(maxsize=64)
def _cached_spread(run: Parallel, size: int) -> Pair | None:
    cases = run._spreads(size)
    return None if cases is None else _largest(cases)
