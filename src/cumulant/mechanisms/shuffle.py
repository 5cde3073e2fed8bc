"""Reports of local randomizers in random order: the shuffle model."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, ClassVar

from cumulant.bounds.bound import Bound
from cumulant.curves.curve import Curve
from cumulant.domains import COUNT, Domain, Exact, Number
from cumulant.errors import HypothesisError, InputError, RelationError
from cumulant.hints import BATCHES
from cumulant.mechanisms.mechanism import Expression, Mechanism, Wrapper
from cumulant.pairs.pair import Pair
from cumulant.pairs.shuffle import LARGEST
from cumulant.parameters import declared
from cumulant.relation import Relation
from cumulant.sampling.scheme import Scheme, known

ASSUMED = (
    "all users of Shuffle use the same randomizer, on one record each, and the order of the reports is uniform, drawn after "
    "all of them and kept secret"
)


@known
@dataclass(frozen=True, slots=True, init=False, eq=False, repr=False)
class Shuffle(Scheme):
    """Reports of so many users, published in random order.

    Each is made by the same local randomizer from one record.

    For `PureDP`, which is any epsilon-DP randomizer, `RandomizedResponse` and `KaryResponse`; all users use the same one, each
    sends one report, and the order is drawn after all reports. Statements are for replace-one neighbours: one user's record is
    another one. See docs/mechanisms/shuffle.md.

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

    def around(self, inner: Any) -> Expression:
        lone = inner if isinstance(inner, Mechanism) and not inner.amplified and not inner.unsampled() else None
        pair = None if lone is None else lone.pair()
        if lone is None or pair is None or pair.shuffled(2) is None:
            raise HypothesisError(
                f"Shuffle is about reports of one local randomizer, PureDP, RandomizedResponse or KaryResponse, and {inner} is "
                f"not one of them; a report that is proved to be epsilon-DP is PureDP(epsilon=…); {BATCHES}"
            )
        if lone.relation.clipping == 1:
            raise RelationError(f"Shuffle makes replace-one statements but {inner} is stated for {lone.relation}")
        if lone.pure() > LARGEST:
            raise InputError(
                f"reports of {inner} protect nobody, shuffled or not; epsilon of one report must be at most {LARGEST}"
            )
        return lone if self.reports == 1 else Shuffled(lone, self)

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

    def unsampled(self) -> str:
        return "all reports are shuffled together; how many there are is part of the statement"

    def own_curve(self, bound: str) -> Curve:
        return self._pair().curve()

    def pair(self) -> Pair | None:
        return self._pair()

    def _pair(self) -> Pair:
        return _shuffled(self.inner, int(self.scheme.reports))


@lru_cache(maxsize=256)
def _shuffled(inner: Mechanism, reports: int) -> Pair:
    pair = inner.pair()
    found = None if pair is None else pair.shuffled(reports)
    if found is None:
        raise HypothesisError(f"nothing is known of shuffled reports of {inner}")
    return found
