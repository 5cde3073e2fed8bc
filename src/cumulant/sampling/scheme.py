"""What a sampling scheme says of itself."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import ClassVar, TypeVar

from cumulant.bounds.bound import Bound, amplified
from cumulant.bounds.table import BOUNDS, row
from cumulant.curves.curve import Curve
from cumulant.domains import Exact, Number
from cumulant.errors import HypothesisError
from cumulant.lattice.sampling import Sampling
from cumulant.pairs.pair import Pair
from cumulant.relation import Relation


class Scheme(ABC):
    """A way to draw the sample that a mechanism sees."""

    __slots__ = ()

    relation: ClassVar[Relation]
    bounds: ClassVar[Mapping[str, Bound]]
    sampling: ClassVar[Sampling | None] = None  # what the exact layer may use; None: it is not asked
    assumed: ClassVar[str] = ""  # what must be true of the samples, and no theorem can know
    rate: Exact

    @abstractmethod
    def __init__(self, rate: Number) -> None:
        """Every scheme may be given by its rate."""

    @property
    def frozen(self) -> bool:
        """Whether it is data alone, as all are that the notation can spell."""
        return SCHEMES.get(type(self).__name__) is type(self)

    def theorem(self, bound: str) -> str:
        """The name of a row of its table; HypothesisError where that is no theorem about its samples."""
        name = row(bound).name
        if self.rate < 1 and name not in self.bounds:
            kind = type(self).__name__
            raise HypothesisError(f"{name} is not a theorem about {kind} samples; use one of {', '.join(self.bounds)}")
        return name

    def curve(self, base: Callable[[str], Curve], pair: Pair | None, bound: str, subject: str) -> Curve:
        """The curve on one sample of what has this curve by each bound and, if it is known, this dominating pair."""
        name = self.theorem(bound)
        rows = self.bounds if name in self.bounds else BOUNDS  # at rate 1 every theorem holds
        return amplified(rows, name, base(name if row(name).upper else "best"), pair, self.rate, subject)

    def by_lemma3(self) -> Exact:
        """The rate, for composition theorems that amplify by Lemma 3; HypothesisError where that is not about its samples."""
        self.theorem("lemma3")
        return self.rate

    def sizes(self) -> tuple[Exact | None, Exact | None]:
        """The sizes of the sample and of the data set, where they are fixed and public."""
        return None, None

    @abstractmethod
    def of(self, inner: Scheme) -> Scheme | None:
        """The single scheme that draws a sample by `inner` from a sample drawn by this one, if there is one."""


SCHEMES: dict[str, type[Scheme]] = {}
"""Every sampling scheme the notation knows, by name."""

S = TypeVar("S", bound=type[Scheme])


def known(scheme: S) -> S:
    """Make a scheme part of the notation and of the laws."""
    SCHEMES[scheme.__name__] = scheme
    return scheme
