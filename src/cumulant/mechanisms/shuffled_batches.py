"""Passes over the data in batches of fixed sizes, shuffled or in order: an upper bound and nothing more."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from cumulant.accounting.run import Component
from cumulant.bounds.bound import Bound
from cumulant.curves.curve import Curve
from cumulant.errors import RelationError
from cumulant.mechanisms.mechanism import Expression, Mechanism, run
from cumulant.pairs.pair import Pair
from cumulant.relation import Relation
from cumulant.sampling.scheme import Scheme, known

ASSUMED = (
    "every pass of ShuffledBatches cuts the data into batches of fixed sizes and uses no record twice; a pass that was "
    "started counts as a whole one"
)


@known
@dataclass(frozen=True, slots=True, init=False, eq=False, repr=False)
class ShuffledBatches(Scheme):
    """One pass over the data in batches of fixed sizes: the expression runs on every batch, and no record is used twice.

    The order may be shuffled (shuffle=True) or that of the data. No amplification is proved for it, so a pass counts as one
    release on all the data; `* passes` is the loop. The loop may be more private than that: it has no lower end, and a claim
    below the bound is open. Statements are for replace-one neighbours. See docs/shuffled-batches.md.

    >>> import cumulant as cm
    >>> loop = cm.Gaussian(noise_multiplier=2, relation="replace-one") @ ShuffledBatches() * 2
    >>> found = loop.guarantee(delta=1e-5)
    >>> found.epsilon, found.lower, loop.check(epsilon=1, delta=1e-5).verdict
    (6.573, None, 'open')
    """

    relation: ClassVar[Relation] = Relation.REPLACE_ONE
    bounds: ClassVar[Mapping[str, Bound]] = {}
    assumed: ClassVar[str] = ASSUMED

    def around(self, inner: Any) -> Expression:
        if inner.relation.clipping == 1:
            removed = ": a record that is removed moves all later ones to other batches"
            reason = removed if inner.relation is Relation.ADD_REMOVE else ""
            raise RelationError(
                f"ShuffledBatches makes replace-one statements but {inner} is stated for {inner.relation}{reason}; state the "
                'mechanism with relation="replace-one"'
            )
        return run({ShuffledPass(mechanism): times for mechanism, times in inner.terms.items()})

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ShuffledBatches)

    def __hash__(self) -> int:
        return hash(ShuffledBatches)

    def __str__(self) -> str:
        return "ShuffledBatches()"

    def __repr__(self) -> str:
        return str(self)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class ShuffledPass(Mechanism):
    """A mechanism on every batch of one pass over the data."""

    inner: Mechanism

    amplified: ClassVar[bool] = True  # records of a group may be in several batches, so no pair of a group is claimed

    @property
    def spans_pass(self) -> bool:
        return True

    @property
    def relation(self) -> Relation:
        return Relation.REPLACE_ONE

    @property
    def estimated(self) -> bool:
        return self.inner.estimated

    @property
    def frozen(self) -> bool:
        return self.inner.frozen

    @property
    def surrogate(self) -> bool:
        return True

    @property
    def silent(self) -> bool:
        return self.inner.silent

    def data_size(self) -> None:
        """The batches may have several sizes, and so has the data."""

    def key(self) -> Hashable:
        return self.inner

    def part(self, times: int) -> Component:
        inner = self.inner.part(times)
        return replace(
            Mechanism.part(self, times),
            pair=inner.pair,
            scheme=inner.scheme,
            inner=inner.inner,
            described=inner.described,
            sensitive=inner.sensitive,
            clipped=inner.clipped,
            assumed=ASSUMED,
        )

    def unsampled(self) -> str:
        return "a pass sees all the data; write the sample inside, on every batch"

    def own_curve(self, bound: str) -> Curve:
        return self.inner.curve(bound)

    def pair(self) -> Pair | None:
        return self.inner.pair()

    def arguments(self) -> Mapping[str, str]:
        return {}

    def __str__(self) -> str:
        return f"{self.inner} @ ShuffledBatches()"
