"""Poisson sampling."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from fractions import Fraction
from typing import TYPE_CHECKING, ClassVar

from cumulant.bounds.bound import Bound
from cumulant.bounds.poisson_table import POISSON
from cumulant.bounds.without_replacement_table import WITHOUT_REPLACEMENT
from cumulant.domains import spelling
from cumulant.lattice.neighbours import Neighbours, proposition11
from cumulant.relation import Relation
from cumulant.sampling.rated import Sized
from cumulant.sampling.scheme import Scheme, known

if TYPE_CHECKING:
    from cumulant.pairs.pair import Pair
    from cumulant.pairs.step import Step
    from cumulant.pairs.transform import Transform


@known
class Poisson(Sized):
    """A Poisson sample: every record is in it independently with probability `rate`, so that its size is random.

    Give the rate, or by `sample` and `population` the quotient of the size that is expected and the number of records.

    Statements are for add/remove neighbours: data sets of which one has one record more. Sensitivities are add/remove
    too, C for sums of vectors clipped to norm C, and hold for samples of every size, the empty one included. With
    `relation="replace-one"` they are for a record that is replaced, and for sums of clipped vectors only (docs/samples.md).

    >>> import cumulant as cm
    >>> step = cm.Gaussian.from_clipping(norm=1, noise=1, relation="add-remove") @ cm.Poisson(rate=0.01)
    >>> step.rdp([2, 2.5])
    array([0.00017181, 0.00021758])
    >>> cm.Gaussian(sigma=1) @ Poisson(rate=0.1) @ Poisson(rate=0.1) == cm.Gaussian(sigma=1) @ Poisson(rate=0.01)
    True
    >>> Poisson(sample=256, population=60_000) == Poisson(rate="256/60000")
    True
    >>> step = cm.Gaussian.from_clipping(norm=1, noise=1, relation="replace-one")
    >>> step @ Poisson(rate=0.01, relation="replace-one")
    Gaussian(sigma=1, sensitivity=2, geometry="ball") @ Poisson(rate=0.01, relation="replace-one")
    """

    __slots__ = ()

    word: ClassVar[str] = "Poisson"
    relation: ClassVar[Relation] = Relation.ADD_REMOVE
    bounds: ClassVar[Mapping[str, Bound]] = POISSON
    sharpened: ClassVar[str] = "poisson"
    meant: ClassVar[str] = ", the size that is expected and all records"
    assumed: ClassVar[str] = "every record enters each Poisson sample independently of the others"

    def steps(self, pair: Pair) -> tuple[Step, ...] | None:
        """The record is there in one of the data sets, and the run sees it removed or added throughout."""
        if self.rate == 1:
            return pair.unsampled()
        found = [pair.above(self.rate, direction) for direction in self._directions()]
        steps = tuple(step for step in found if step is not None)
        return steps if len(steps) == len(found) else None  # one direction alone bounds nothing

    def transforms(self, pair: Pair) -> tuple[Transform, ...] | None:
        found = [pair.transform(self.rate, direction) for direction in self._directions()]
        transforms = tuple(each for each in found if each is not None)
        return transforms if len(transforms) == len(found) else None

    def _directions(self) -> tuple[str, ...]:
        return ("remove", "add") if self.rate < 1 else ("symmetric",)

    def witnesses(self, pair: Pair) -> Iterator[Neighbours]:
        return proposition11(pair, self.rate)

    def share(self) -> Fraction:
        return self.rate

    def seen(self, pair: Pair) -> tuple[Pair, Fraction | None]:
        seen, share = pair.drawn(self.rate)
        return seen, self.share() if seen is pair else share

    def cone(self, pair: Pair) -> Fraction | None:
        return self.rate if self.rate == 1 else None

    def of(self, inner: Scheme) -> Scheme | None:
        return type(self)(rate=spelling(self.rate * inner.rate)) if type(inner) is type(self) else None


class ReplacingPoisson(Poisson):
    """Poisson samples for a record that is replaced by another: Theorem C, for sums of clipped vectors.

    Given who else is in the sample the output is (1-g) N(s) + g N(s + v), v the record, on one data set, and with v' on the
    other. 0, v and v' lie in one ball, so that every theorem about three such values holds (docs/samples.md).
    """

    __slots__ = ()

    relation: ClassVar[Relation] = Relation.REPLACE_ONE
    bounds: ClassVar[Mapping[str, Bound]] = {name: row for name, row in WITHOUT_REPLACEMENT.items() if row.upper}
    sharpened: ClassVar[str] = "profile"
    assumed: ClassVar[str] = (
        "every record enters each Poisson sample independently of the others, and one that is absent adds the centre of the "
        "ball, 0, to the sum"
    )

    def refuses(self, pair: Pair | None) -> str:
        if pair is not None and pair.geometry == "ball":
            return ""
        return (
            "for a record that is replaced on a Poisson sample only sums of clipped vectors with Gaussian noise are covered, "
            'one on each sample; state it by Gaussian.from_clipping(norm, noise, relation="replace-one"), or leave relation out'
        )

    def steps(self, pair: Pair) -> tuple[Step, ...] | None:
        step = pair.above(self.rate, "symmetric")
        return None if step is None else (step,)

    def transforms(self, pair: Pair) -> tuple[Transform, ...] | None:
        found = pair.transform(self.rate, "symmetric")
        return None if found is None else (found,)

    def witnesses(self, pair: Pair) -> Iterator[Neighbours]:
        """The absent record is not one of the two, so that no data sets are known to need as much."""
        return iter(())

    def share(self) -> Fraction | None:  # type: ignore[override]
        return self.rate if self.rate == 1 else None

    def cone(self, pair: Pair) -> Fraction | None:
        return self.rate


Poisson.others = (ReplacingPoisson,)
