"""What ran, as the exact layer sees it: for each round what a sample makes of its pair, from above and from below."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction

from cumulant.bounds.gaussian_theorems import enclosed_delta
from cumulant.exact.grid.fft import Terms
from cumulant.exact.witnesses import Neighbours
from cumulant.losses.cells import misplaced
from cumulant.losses.gaussian_law import GaussianLaw
from cumulant.losses.grid import Loss, Step
from cumulant.losses.transform import Transform
from cumulant.pairs.pair import Pair
from cumulant.pairs.worst_triples import Extremes

Kinds = Sequence[tuple[Transform, int]]
"""Transforms of one round each, and how often it runs."""

Reports = tuple[tuple[Extremes, Fraction, int], ...]
"""Inputs that rounds of reports may have, the rate of their samples, and how often one runs."""

_RARELY = Fraction(1, 100)

_DIRECTIONS = 2
"""The record removed, and the record added."""


@dataclass(frozen=True, slots=True)
class Round:
    """What runs on one sample: its dominating pair, and what the way in which the sample is drawn says about it.

    `steps` bound it from above, in each direction if there are two; None where no grid can hold them. `witnesses` bound it
    from below. `share` is the rate of a closed form, `cone` that of Theorem B; None where there is none. `row` is the bound
    that its steps are the sharp form of, `transforms` are those of the steps, where the line may be asked.
    """

    pair: Pair
    steps: tuple[Step, ...] | None
    witnesses: tuple[Neighbours, ...]
    share: Fraction | None
    cone: Fraction | None
    row: str = "best"
    transforms: tuple[Transform, ...] | None = None
    triples: Fraction | None = None
    """The rate at which a round is a triple of neighbouring laws, where it is."""
    drawn: bool = False
    """Whether the pair is that of the sample itself, and not of what runs on it."""
    records: Fraction | None = None
    """The number of records that its statement is for, where it is for one number only."""

    def transform(self, direction: int) -> Transform | None:
        """The transform of that step."""
        if self.transforms is None or self.steps is None or len(self.transforms) != len(self.steps):
            return None
        return self.transforms[direction % len(self.transforms)]

    def step(self, direction: int) -> Step:
        """The step of this direction, if it has several."""
        if self.steps is None:
            raise OverflowError("no grid can hold this loss")
        return self.steps[direction % len(self.steps)]

    @property
    def whole(self) -> bool:
        """Whether it sees all the data, so that nothing is sampled."""
        return self.share == 1 and not self.drawn

    @property
    def loss(self) -> Loss | None:
        """The loss of what runs, where a sample scales its tails by the share."""
        return None if self.share is None else self.pair.loss()

    def witness(self, name: str) -> Neighbours | None:
        """What it says of data sets of this name; without a sample any data sets will do."""
        named = [one for one in self.witnesses if one.name == name]
        return next(iter(named or (self.witnesses if self.whole else ())), None)


@dataclass(frozen=True, slots=True)
class Rounds:
    """All that ran, in the order in which terms are added."""

    parts: tuple[tuple[Round, int], ...]

    @property
    def estimated(self) -> bool:
        return any(one.pair.estimated for one, _ in self.parts)

    @property
    def row(self) -> str:
        """The bound that its compositions are the sharp form of: that of its samples, the profile where there are none."""
        rows = list(dict.fromkeys(one.row for one, _ in self.parts if not one.whole))
        return rows[0] if len(rows) == 1 else "mixed" if rows else "profile"

    def named(self, way: str) -> str:
        """The bound that an answer names which was reached in this way."""
        theorems = {"cone": "gaussian-cone", "adaptive": "extreme-triples", "order": "test-order"}
        return self.row if all(one.whole for one, _ in self.parts) and way != "cone" else theorems.get(way, self.row)

    @property
    def aligned(self) -> bool:
        """Whether all rounds that have directions have the same ones, so that they are composed one by one.

        Directions come in the same order: those of a data set that may be larger or smaller are twice those of others. Two
        numbers of records have no such order: 50 and one more is 51 and one less.
        """
        sizes = {one.records for one, _ in self.parts if len(one.steps or ()) > _DIRECTIONS}
        return len(sizes) <= 1 and all(self._directions() % (len(one.steps or ()) or 1) == 0 for one, _ in self.parts)

    def _directions(self) -> int:
        return max((len(one.steps or ()) for one, _ in self.parts), default=1)

    def single(self) -> tuple[Pair, Fraction] | None:
        """Pair and rate of the only round, if there is just one and its profile is known in closed form."""
        forms = self._closed_forms()
        return forms[0][0] if forms is not None and len(forms) == 1 and forms[0][1] == 1 else None

    def single_below(self) -> tuple[Pair, Fraction] | None:
        """The same for a lower end."""
        single = self.single()
        return (single[0].dominated, single[1]) if single is not None and single[0].dominated.attained else None

    @property
    def attained(self) -> bool:
        """Return True if neighbouring data sets reach the closed form of the only round: no valid bound is below it."""
        return self.single() is not None and self.single() == self.single_below()

    def single_directed(self) -> tuple[Pair, Fraction] | None:
        """Pair and rate of the only round, if it sees a record removed or added by a coin of its own."""
        single = self.single()
        if single is None or single[1] == 1 or self.parts[0][0].drawn or len(self.parts[0][0].steps or ()) != 2:
            return None
        return single

    def alike(self) -> tuple[Round, int] | None:
        """The only kind of round and how often it runs, if there is one kind and several rounds."""
        return self.parts[0] if len(self.parts) == 1 and self.parts[0][1] > 1 else None

    def reports(self) -> Reports | None:
        """Every kind of round, if several rounds run and each is a report on a sample of fixed size whose inputs are known."""
        found = [(one.pair.extremes(), one.triples, times) for one, times in self.parts]
        known = tuple((inputs, rate, times) for inputs, rate, times in found if inputs is not None and rate is not None)
        return known if len(known) == len(found) and sum(times for *_, times in found) > 1 else None

    def rare(self) -> list[tuple[tuple[Pair, Fraction], int]] | None:
        """Pair, rate and number of each round, if all have closed forms and hardly one of them sees the record."""
        forms = self._closed_forms()
        return forms if forms is not None and sum(times * rate for (_, rate), times in forms) <= _RARELY else None

    def _closed_forms(self) -> list[tuple[tuple[Pair, Fraction], int]] | None:
        forms = [
            ((one.pair, one.share), times) for one, times in self.parts if one.pair.closed and one.share is not None
        ]
        return forms if len(forms) == len(self.parts) else None

    def slip(self) -> float:
        """By how much rounding may misplace the sum of all losses on a grid, at least."""
        return sum(times for _, times in self.parts) * misplaced(0.0, 0.0)

    def upper(self) -> Iterator[Terms]:
        """Compositions of which the largest is an upper bound: one for each direction."""
        for direction in range(self._directions()):
            yield tuple((one.step(direction), times) for one, times in self.parts)

    def lines(self) -> Iterator[tuple[Terms, Kinds | None]]:
        """The same with the transforms of all rounds, or None where one of them is not offered."""
        for direction, terms in enumerate(self.upper()):
            yield terms, _offered([(one.transform(direction), times) for one, times in self.parts])

    def lower(self) -> Iterator[tuple[str, Terms]]:
        """Explicit neighbouring data sets, by name."""
        for name in dict.fromkeys(witness.name for one, _ in self.parts for witness in one.witnesses):
            found = [(one.witness(name), times) for one, times in self.parts]
            steps = [(witness.step, times) for witness, times in found if witness is not None]
            if len(steps) == len(found) and not all(witness is None or witness.covered for witness, _ in found):
                yield name, tuple(steps)

    def witnesses(self) -> Iterator[tuple[str, Terms, Kinds | None]]:
        """The same with the transforms of all rounds, where they are pairs that offer them."""
        for name, terms in self.lower():
            found = [(one.witness(name), times) for one, times in self.parts]
            yield name, terms, _offered([(None if each is None else each.transform, times) for each, times in found])

    def cone_transforms(self) -> tuple[Kinds, Fraction] | None:
        """The reference of Theorem B as transforms, and the squared shift 2 k Delta of its Gaussian, rounded up."""
        if self.cone() is None:
            return None
        found: list[tuple[Transform | None, int]] = []
        extra = Fraction(0)
        for one, times in self.parts:
            shift, rate = one.pair.gaussian_shift(), one.cone
            if shift is None or rate is None:
                return None
            found.append((one.pair.transform(rate, "remove"), times))
            if one.pair.geometry == "diameter":
                extra += 2 * times * Fraction(float(enclosed_delta(shift, rate).upper()))
        kinds = _offered(found)
        return None if kinds is None else (kinds, extra)

    def cone(self) -> Terms | None:
        """The reference of Theorem B: Gaussian pairs, and for each diameter a Gaussian of squared shift 2 k Delta."""
        terms: list[tuple[Step, int]] = []
        spread = 0.0
        for one, times in self.parts:
            shift = one.pair.gaussian_shift()
            step = None if shift is None or one.cone is None else one.pair.above(one.cone, "remove")
            if step is None:
                return None
            terms.append((step, times))
            if one.pair.geometry == "diameter":
                spread += times * float(enclosed_delta(shift, one.cone).upper())
        if all(one.whole for one, _ in self.parts) or not math.isfinite(spread):
            return None
        if spread > 0:
            terms.append((GaussianLaw(Fraction(math.sqrt(2 * spread))).mixture(Fraction(1), "remove"), 1))
        return tuple(terms)


def _offered(found: Sequence[tuple[Transform | None, int]]) -> Kinds | None:
    kinds = [(each, times) for each, times in found if each is not None]
    return tuple(kinds) if len(kinds) == len(found) else None
