"""Reports of local randomizers in random order: the shuffle model."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, ClassVar

from cumulant.accounting.run import Component
from cumulant.bounds.bound import Bound
from cumulant.curves.curve import Curve
from cumulant.domains import COUNT, Domain, Exact, Number
from cumulant.errors import HypothesisError, InputError, RelationError
from cumulant.exact.shuffled_batches import Batches
from cumulant.hints import BATCHES
from cumulant.mechanisms.mechanism import Expression, Mechanism, Wrapper
from cumulant.numerics.arithmetic import BALLS
from cumulant.numerics.rounding import at_least
from cumulant.pairs.blanket import BlanketPair
from cumulant.pairs.pair import Pair
from cumulant.pairs.response import ResponsePair
from cumulant.pairs.shuffle import LARGEST, ShuffledPair
from cumulant.parameters import declared
from cumulant.relation import Relation
from cumulant.sampling.scheme import Scheme, register_scheme

ASSUMED = (
    "all users of Shuffle use the same randomizer, on one record each, and the order of the reports is uniform, drawn after "
    "all of them and kept secret"
)
SAMPLED = (
    "all reports are shuffled together; a sample around Shuffle(reports=m) must be WithoutReplacement(sample=m, population=…), "
    "whose m users send the reports"
)
BY_PAIR = "these reports are amplified with a slack, of which nothing is known on a sample"


@register_scheme
@dataclass(frozen=True, slots=True, init=False, eq=False, repr=False)
class Shuffle(Scheme):
    """Reports of so many users, published in random order.

    Each is made by the same local randomizer from one record.

    For every randomizer that is stated for replace-one neighbours: `RandomizedResponse`, `KaryResponse`, `UnaryEncoding`,
    `SubsetSelection` and `LocalRandomizer` by their blanket, others that are epsilon-DP as `PureDP(epsilon)`, and those with a
    dominating pair alone as `ShuffledBatches`. All users use the same one, each sends one report, and the order is drawn after
    all reports. Statements are for replace-one neighbours: one user's record is another one. See docs/mechanisms/shuffle.md.

    >>> import cumulant as cm
    >>> (cm.PureDP(1) @ Shuffle(reports=1000)).delta(epsilon="0.1")
    8.2...e-05
    """

    reports: Exact

    relation: ClassVar[Relation] = Relation.REPLACE_ONE
    bounds: ClassVar[Mapping[str, Bound]] = {}
    draws: ClassVar[bool] = False

    def __init__(self, reports: Number) -> None:
        object.__setattr__(self, "reports", COUNT.check("reports", reports))

    @classmethod
    def unknowns(cls, others: Mapping[str, str]) -> Mapping[str, Domain]:
        return {"reports": COUNT}

    def wrap(self, inner: Any) -> Expression:
        lone = inner if isinstance(inner, Mechanism) and not inner.amplified and not inner.unsampled() else None
        if lone is None or lone.records_changed > 1:
            raise HypothesisError(
                f"Shuffle is about one report of each user by one local randomizer, and {inner} is not one; several messages "
                f"per user take one Shuffle each; {BATCHES}"
            )
        if lone.relation.clipping == 1:
            raise RelationError(f"Shuffle makes replace-one statements but {inner} is stated for {lone.relation}")
        pair, pure = lone.pair(), lone.pure()
        if LARGEST < pure < math.inf:
            raise InputError(
                f"reports of {inner} protect nobody, shuffled or not; epsilon of one report must be at most {LARGEST}"
            )
        if self.reports == 1:
            return lone
        if (pure < math.inf and not lone.curve().slack()) or lone.local_randomizer() is not None:
            return Shuffled(lone, self)
        if pair is None or not pair.has_grid_loss:
            raise HypothesisError(
                f"nothing is known of shuffled reports of {inner}, which is not known to be epsilon-DP; write a "
                f"report that is proved to be so as PureDP(epsilon=…); {BATCHES}"
            )
        return ShuffledByPair(lone, self)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Shuffle) and self.reports == other.reports

    def __hash__(self) -> int:
        return hash((Shuffle, self.reports))

    def __str__(self) -> str:
        return f"Shuffle(reports={self.reports.notation})"

    def __repr__(self) -> str:
        return str(self)


@declared
class Shuffled(Wrapper):
    """Reports of one local randomizer, the same for all users, one report each, in random order."""

    inner: Mechanism
    scheme: Shuffle

    relation = Relation.REPLACE_ONE

    def assumption(self) -> str:
        return ASSUMED

    attacked = "changed reports"  # everybody reports, so that nobody is a member

    def part(self, times: int) -> Component:
        randomizer = self.inner.local_randomizer()
        named = () if randomizer is None else randomizer.witnesses(int(self.scheme.reports))
        return replace(Mechanism.part(self, times), witnesses=named)

    def unsampled(self) -> str:
        return SAMPLED

    def refused_sample(self, scheme: Scheme) -> str:
        """Allow a sample of exactly the users that report, for replace-one neighbours."""
        covered = scheme.fixed and scheme.relation is Relation.REPLACE_ONE and scheme.sizes()[0] == self.scheme.reports
        return "" if covered else SAMPLED

    def own_curve(self, bound: str) -> Curve:
        return self._pair().curve()

    def pair(self) -> Pair | None:
        return self._pair()

    def _pair(self) -> Pair:
        return _shuffled(self.inner, int(self.scheme.reports))


@declared
class ShuffledByPair(Shuffled):
    """Reports of which a dominating pair alone is known: a pass over batches of one record each (Theorem 3)."""

    amplified: ClassVar[bool] = True  # its pair is that of one report, which says nothing of a group

    @property
    def surrogate(self) -> bool:  # type: ignore[override]
        return True

    def part(self, times: int) -> Component:
        reports = int(self.scheme.reports)
        return replace(Mechanism.part(self, times), pair=self.inner.pair(), batches=Batches(reports, reports))

    def description(self) -> str:
        return self.inner.description()

    def rests_on_sensitivity(self) -> bool:
        return self.inner.rests_on_sensitivity()

    def clipped_form(self) -> str:
        return self.inner.clipped_form()

    def refused_sample(self, scheme: Scheme) -> str:
        return f"{BY_PAIR}; state the report as PureDP(epsilon=…), or leave out the sample"

    def ungrouped(self) -> str:
        return "the records of a group are several reports, and amplification is proved for one of them"

    def _pair(self) -> Pair:
        pair = self.inner.pair()
        assert pair is not None
        return pair

    def own_curve(self, bound: str) -> Curve:
        return self.inner.curve(bound)


@lru_cache(maxsize=256)
def _shuffled(inner: Mechanism, reports: int) -> Pair:
    """Return the pair of shuffled reports: by the blanket of a known randomizer, else by clones of any epsilon-DP one."""
    pair, randomizer = inner.pair(), inner.local_randomizer()
    found = None if pair is None else pair.shuffled_pair(reports)
    if found is not None:
        return found
    if randomizer is not None and randomizer.labels:
        return BlanketPair.of_labels(randomizer.labels, reports)
    with BALLS.at(128):
        pure = at_least(inner.curve().pure(BALLS).upper())
    return ShuffledPair(reports, epsilon=pure) if pure else ResponsePair()  # such reports say nothing
