"""Passes over the data in batches of fixed sizes: amplified where the permutation is fresh and its batches are counted."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, ClassVar

from cumulant.accounting.run import Component
from cumulant.bounds.bound import Bound
from cumulant.curves.curve import Curve
from cumulant.domains import COUNT, Domain, Exact, Number, Switch
from cumulant.errors import HypothesisError, InputError, RelationError, shown
from cumulant.exact.shuffled_batches import Batches
from cumulant.mechanisms.mechanism import Expression, Mechanism, Wrapper, run
from cumulant.pairs.pair import Pair
from cumulant.parameters import declared
from cumulant.relation import Relation
from cumulant.sampling.scheme import Scheme, register_scheme

ASSUMED = (
    "every pass of ShuffledBatches cuts the data into batches of fixed sizes and uses no record twice; a pass that was "
    "started counts as a whole one"
)
PERMUTED = (
    "every pass of ShuffledBatches draws a fresh uniform permutation, keeps it secret and cuts it into batches of fixed, "
    "public sizes; noise is on sums; a step sees no record's index and keeps no raw state; a started pass counts as a whole one"
)
ONCE = (
    "one permutation for all passes is not amplified: every batch then runs once per pass on the same records; draw a fresh "
    "permutation in every pass, or write ShuffledBatches() without a number of batches"
)
GROUPED = (
    "the records of a group may be in several batches, and amplification is proved for one record; write "
    "ShuffledBatches() without a number of batches, which counts every pass as one release"
)
SAY_BATCHES = (
    "for DataLoader(shuffle=True) name the batches, ShuffledBatches(batch=, records=): false there is false here"
)


@register_scheme
@dataclass(frozen=True, slots=True, init=False, eq=False, repr=False)
class ShuffledBatches(Scheme):
    """One pass over the data in batches of fixed sizes.

    The expression runs on every batch, and no record is used twice.

    Say how the pass is cut: `batches`, where all have one size, or `batch`, `records` and `drop_last`. The pass must draw a
    fresh uniform permutation and keep it secret; then it is amplified (Theorems 2 and 3 of docs/shuffled-batches.md).
    Without a number nothing is assumed about the order, and a pass counts as one release on all the data; such a loop may be
    more private than that, so it has no lower end. `* passes` is the loop. Statements are for replace-one neighbours.

    >>> import cumulant as cm
    >>> noise = cm.Gaussian(noise_multiplier=4, relation="replace-one")
    >>> found = (noise @ ShuffledBatches(batches=1000)).guarantee(delta=1e-6)
    >>> round(found.epsilon, 3), round(found.lower, 3)
    (0.259, 0.059)
    >>> (noise @ ShuffledBatches()).epsilon(1e-6)
    2.254
    """

    batches: Exact | None
    batch: Exact | None
    records: Exact | None
    drop_last: bool

    relation: ClassVar[Relation] = Relation.REPLACE_ONE
    bounds: ClassVar[Mapping[str, Bound]] = {}
    assumed: ClassVar[str] = ASSUMED

    def __init__(
        self,
        batches: Number | None = None,
        *,
        batch: Number | None = None,
        records: Number | None = None,
        drop_last: Number = 0,
        fresh: Number = 1,
    ) -> None:
        if getattr(fresh, "ndim", 0) or fresh not in (True, "1"):  # an array has no truth value
            raise HypothesisError(f"ShuffledBatches(fresh={shown(fresh)}): {ONCE}")
        drops = Switch("a last batch that is not full is dropped").check("drop_last", drop_last)
        number, size, total = (
            None if value is None else COUNT.check(name, value)
            for name, value in (("batches", batches), ("batch", batch), ("records", records))
        )
        if number is not None and (size is not None or total is not None or drops):
            raise InputError("ShuffledBatches takes batches=…, or batch=… and records=… with drop_last=0 or 1")
        if (size is None) != (total is None):
            raise InputError(
                "ShuffledBatches needs batch=… and records=… together, to know whether the last batch is full"
            )
        if size is not None and total is not None and size > total:
            raise InputError(f"batch={size} must be at most records={total}")
        values = {"batches": number, "batch": size, "records": total, "drop_last": drops}
        for name, value in values.items():
            object.__setattr__(self, name, value)

    @classmethod
    def unknowns(cls, others: Mapping[str, str]) -> Mapping[str, Domain]:
        return {"batches": COUNT} if not others else {}

    def numbers(self) -> Mapping[str, Fraction]:
        named = (("batches", self.batches), ("batch", self.batch), ("records", self.records))
        return {name: value for name, value in named if value is not None}

    def cut(self) -> Batches | None:
        """Return how the permutation is cut; None where that is not said, so that nothing is amplified."""
        if self.batches is not None:
            return Batches(int(self.batches), int(self.batches))
        if self.batch is None or self.records is None:
            return None
        full, rest = divmod(int(self.records), int(self.batch))
        if rest and not self.drop_last:
            return Batches(full, full + 1)
        return Batches(full, full, Fraction(rest, int(self.records)))

    def wrap(self, inner: Any) -> Expression:
        if inner.relation.clipping == 1:
            removed = ": a record that is removed moves all later ones to other batches"
            reason = removed if inner.relation is Relation.ADD_REMOVE else ""
            raise RelationError(
                f"ShuffledBatches makes replace-one statements but {inner} is stated for {inner.relation}{reason}; state the "
                'mechanism with relation="replace-one"'
            )
        cut = self.cut()
        if cut is None:
            return run({ShuffledPass(mechanism, self): times for mechanism, times in inner.terms.items()})
        pair = inner.pair() if isinstance(inner, Mechanism) and not inner.amplified else None
        if pair is None or inner.records_changed > 1:
            raise HypothesisError(
                f"{inner} @ {self}: a shuffled pass is amplified for one mechanism per batch, with a known dominating pair. It "
                "has no sample and no group inside; write ShuffledBatches() without a number of batches"
            )
        return inner if cut.full == cut.released == 1 and not cut.dropped else ShuffledPass(inner, self)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ShuffledBatches) and self.cut() == other.cut()

    def __hash__(self) -> int:
        return hash((ShuffledBatches, self.cut()))

    def __str__(self) -> str:
        said = [f"{name}={value.notation}" for name, value in self.numbers().items() if isinstance(value, Exact)]
        return f"ShuffledBatches({', '.join([*said, *(('drop_last=1',) if self.drop_last else ())])})"

    def __repr__(self) -> str:
        return str(self)


@declared
class ShuffledPass(Wrapper):
    """A mechanism on every batch of one pass over the data."""

    inner: Mechanism
    scheme: ShuffledBatches = ShuffledBatches()

    relation, spans_pass, surrogate, sized = Relation.REPLACE_ONE, True, True, False
    amplified: ClassVar[bool] = True  # records of a group may be in several batches, so no pair of a group is claimed

    @property
    def data_independent(self) -> bool:
        return self.inner.data_independent

    def data_size(self) -> None:
        """Return None: the batches may have several sizes, and so has the data."""

    def part(self, times: int) -> Component:
        inner = self.inner.part(times)
        return replace(
            Mechanism.part(self, times),
            pair=inner.pair,
            scheme=inner.scheme,
            inner=inner.inner,
            batches=self.scheme.cut(),
        )

    def description(self) -> str:
        return self.inner.description()

    def rests_on_sensitivity(self) -> bool:
        return self.inner.rests_on_sensitivity()

    def clipped_form(self) -> str:
        return self.inner.clipped_form()

    def assumption(self) -> str:
        return ASSUMED if self.scheme.cut() is None else PERMUTED

    def lower_end_hint(self) -> str:
        return SAY_BATCHES if self.scheme.cut() is None else ""

    def ungrouped(self) -> str:
        return "" if self.scheme.cut() is None else GROUPED

    def unsampled(self) -> str:
        return "a pass sees all the data; write the sample inside, on every batch"

    def own_curve(self, bound: str) -> Curve:
        return self.inner.curve(bound)

    def pair(self) -> Pair | None:
        return self.inner.pair()
