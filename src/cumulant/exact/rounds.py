"""The rounds of a run as the exact engines see them.

Each round has laws that bound it from above and from below.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar, Protocol, TypeAlias

from cumulant.losses.cells import rounding_slip
from cumulant.pairs.pair import Pair

if TYPE_CHECKING:
    from cumulant.exact.witnesses import Neighbours
    from cumulant.losses.atom_transform import Points
    from cumulant.losses.grid import Step, Terms
    from cumulant.losses.transform import Transform
    from cumulant.pairs.worst_triples import Extremes

RoundTypes: TypeAlias = "Sequence[tuple[Transform, int]]"
"""The transform of each round type, and how often that type runs."""

Reports: TypeAlias = "tuple[tuple[Extremes, Fraction, int], ...]"
"""The inputs that the reports of each round type may have, the rate of their samples, and how often the type runs."""

_THEOREMS = {"cone": "gaussian-cone", "adaptive": "extreme-triples", "order": "test-order"}
"""The theorem that a route cites in the place of the bound that it sharpens; convention."""

_ROUNDED_SHIFT = Fraction(1, 2**40)
"""Part by which the shift of a Gaussian may exceed an attained one; convention: roots are rounded by far less."""

_DIRECTIONS = 2
"""Directions of add-remove neighbours: the record removed, and the record added; convention."""


class Sampling(Protocol):
    """The statements of a sampling scheme about one round; see `sampling.Scheme`."""

    sharpened: ClassVar[str]

    def closed_form(self, pair: Pair) -> tuple[Pair, Fraction | None]:
        """Return the pair and the share of the closed form; the share is None if there is none."""

    def steps_of(self, pair: Pair) -> tuple[Step, ...] | None:
        """Return the steps that bound the round from above; None if no grid can hold them."""

    def transforms_of(self, pair: Pair) -> tuple[Transform, ...] | None:
        """Return the transforms of the steps; None if the line may not be asked."""

    def witnesses(self, pair: Pair) -> Iterator[Neighbours]:
        """Yield the neighbours that bound the round from below."""

    def theorem_b_rate(self, pair: Pair) -> Fraction | None:
        """Return the rate of Theorem B; None if its hypotheses do not hold."""

    def triples(self) -> Fraction | None:
        """Return the rate at which a round is a triple of neighbouring laws; None if it is no such triple."""

    def sizes(self) -> tuple[Fraction | None, Fraction | None]:
        """Return the sizes of the sample and of the data set, each None if it is not fixed and public."""


@dataclass(frozen=True, slots=True)
class StatedSteps:
    """A scheme that states steps and witnesses of one round, and nothing else."""

    stated: tuple[Step, ...] | None
    neighbours: tuple[Neighbours, ...] = ()

    sharpened: ClassVar[str] = "best"

    def closed_form(self, pair: Pair) -> tuple[Pair, Fraction | None]:
        """Return the pair, and None: no closed form is claimed."""
        return pair, None

    def steps_of(self, pair: Pair) -> tuple[Step, ...] | None:
        """Return the stated steps; None if none were stated."""
        return self.stated

    def transforms_of(self, pair: Pair) -> tuple[Transform, ...] | None:
        """Return None: the line is not asked."""
        return None

    def witnesses(self, pair: Pair) -> Iterator[Neighbours]:
        """Yield the stated neighbours."""
        return iter(self.neighbours)

    def theorem_b_rate(self, pair: Pair) -> Fraction | None:
        """Return None: Theorem B is not claimed."""
        return None

    def triples(self) -> Fraction | None:
        """Return None: no triples are claimed."""
        return None

    def sizes(self) -> tuple[Fraction | None, Fraction | None]:
        """Return None twice: the statement holds for every size."""
        return None, None


class Round:
    """One mechanism on one sample: its dominating pair and the theorems of its scheme.

    `base` is the pair of the mechanism, `pair` that of the closed form, and `share` its rate; None if there is none. `drawn` is
    True if the pair is that of the sample itself, not of the mechanism that runs on it, and `whole` if the round sees all the
    data, so that nothing is sampled. Everything else is asked of the scheme when it is needed, once.
    """

    def __init__(self, base: Pair, scheme: Sampling, named: tuple[Neighbours, ...] = ()) -> None:
        self.base, self.scheme, self.named = base, scheme, named
        self.pair, self.share = scheme.closed_form(base)
        self.drawn = self.pair is not base
        self.whole = self.share == 1 and not self.drawn

    @cached_property
    def steps(self) -> tuple[Step, ...] | None:
        """Return the steps that bound it from above, one per direction; None if no grid holds them."""
        return self.scheme.steps_of(self.base)

    @cached_property
    def transforms(self) -> tuple[Transform, ...] | None:
        """Return the transforms of the steps; None if the line may not be asked."""
        return self.scheme.transforms_of(self.base)

    @cached_property
    def witnesses(self) -> tuple[Neighbours, ...]:
        """Return the neighbours that bound it from below, of the mechanism or else of the scheme."""
        return self.named or tuple(self.scheme.witnesses(self.base))

    @cached_property
    def theorem_b_rate(self) -> Fraction | None:
        """Return the rate of Theorem B, which names Gaussian noise only; None if it does not name the round."""
        return None if self.pair.gaussian_shift() is None else self.scheme.theorem_b_rate(self.base)

    def reference(self) -> tuple[Step | None, Transform | None, float]:
        """Return step and transform in Theorem B's reference, None for one that is not known, and Delta of Theorem A.

        They are Proposition 11's pair if the theorem names the round, else the pair that dominates it. Delta is rounded up; it
        is 0 unless a diameter bounds a Gaussian round.
        """
        from cumulant.bounds.gaussian_theorems import enclosed_delta

        shift, rate = self.pair.gaussian_shift(), self.theorem_b_rate
        if shift is None or rate is None:
            return *self._dominating(), 0.0
        spread = float(enclosed_delta(shift, rate).upper()) if self.pair.geometry == "diameter" else 0.0
        return self.pair.upper_step(rate, "remove"), self.pair.transform(rate, "remove"), spread

    def _dominating(self) -> tuple[Step | None, Transform | None]:
        """Return step and transform of a pair that dominates the round; None twice if none does.

        A round with two directions has none, and a leak would make the unbounded test function infinite.
        """
        if self.steps is None or len(self.steps) != 1 or self.steps[0].leak > 0:
            return None, None
        transform = self.transform(0)
        return (None, None) if transform is None or not transform.leak().is_zero() else (self.steps[0], transform)

    @property
    def records(self) -> Fraction | None:
        """Return the number of records that the statement is for; None if it holds for every number."""
        return self.scheme.sizes()[1]

    def transform(self, direction: int) -> Transform | None:
        """Return the transform of the step of this direction; None if the line may not be asked."""
        if self.transforms is None or self.steps is None or len(self.transforms) != len(self.steps):
            return None
        return self.transforms[direction % len(self.transforms)]

    def step(self, direction: int) -> Step:
        """Return the step of this direction, modulo the number of steps."""
        if self.steps is None:
            raise OverflowError("no grid can hold this loss")
        return self.steps[direction % len(self.steps)]

    def witness(self, name: str) -> Neighbours | None:
        """Return the output laws on data sets of this name; without a sample any data sets serve.

        Returns None if there are none.
        """
        for one in self.witnesses:
            if one.name == name:
                return one
        return self.witnesses[0] if self.whole and self.witnesses else None


@dataclass(frozen=True, slots=True)
class Reference:
    """The reference of Theorem B: pairs of all rounds, and one Gaussian pair for all diameters."""

    terms: Terms
    """Its steps, the Gaussian included."""
    round_types: RoundTypes | None
    """The transforms of the rounds; None if a round offers none."""
    extra: Fraction
    """The squared shift 2 k Delta of the Gaussian, rounded up."""


@dataclass(frozen=True)
class Rounds:
    """All rounds of a run, in the order in which the components are added."""

    parts: tuple[tuple[Round, int], ...]

    @property
    def estimated(self) -> bool:
        """Return True if the law of some round was estimated, so that no answer is proved."""
        found = False
        for one, _ in self.parts:
            found = found or one.pair.estimated
        return found

    def bound_name(self, way: str) -> str:
        """Return the name of the bound that an answer by this route cites.

        It is the theorem of the route, or what the compositions sharpen: the bound of the samples, else the profile.
        """
        rows = set()
        for one, _ in self.parts:
            if not one.whole:
                rows.add(one.scheme.sharpened)
        if way in _THEOREMS and (way == "cone" or rows):
            return _THEOREMS[way]
        return rows.pop() if len(rows) == 1 else "mixed" if rows else "profile"

    @property
    def aligned(self) -> bool:
        """Return True if all rounds share their directions; each direction is composed by itself.

        Directions come in the same order: those of a data set that may be larger or smaller are twice those of others. Two
        numbers of records have no such order: 50 and one more is 51 and one less.
        """
        sizes = set()
        for one, _ in self.parts:
            directions = len(one.steps or ())
            if self._directions % (directions or 1) != 0:
                return False
            if directions > _DIRECTIONS:
                sizes.add(one.records)
        return len(sizes) <= 1

    @cached_property
    def _directions(self) -> int:
        """Return the largest number of directions of a round; 1 if there is no round."""
        most = 0 if self.parts else 1
        for one, _ in self.parts:
            most = max(most, len(one.steps or ()))
        return most

    @cached_property
    def adaptive(self) -> bool:
        """Return True if `exact.adaptive` may bound a round for queries that adapt.

        The mechanism has bounded range, or a scheme of fixed size makes triples of its reports or of its Laplace noise.
        """
        for one, _ in self.parts:
            if one.pair.bounded_range() is not None:
                return True
            if one.scheme.triples() is not None and (one.pair.query or one.pair.extremes() is not None):
                return True
        return False

    def single(self) -> tuple[Pair, Fraction] | None:
        """Return pair and rate of the only round if its profile has a closed form; None otherwise.

        A few rounds of finitely many losses are one round of their product.
        """
        if len(self.parts) != 1 or self.parts[0][1] != 1:
            return None if self._product is None else (self._product, Fraction(1))
        one = self.parts[0][0]
        return (one.pair, one.share) if one.share is not None and one.pair.has_closed_form else None

    @cached_property
    def _product(self) -> Pair | None:
        """Return the product of all rounds; None if there are many, or one is sampled, named or adaptive."""
        for one, _ in self.parts:
            if one.named or not one.whole:
                return None
        if not self.parts or self.adaptive:
            return None
        from cumulant.pairs.product import product_pair

        factors: list[tuple[Points, int]] = []
        for one, times in self.parts:
            transform = None if one.pair.estimated or len(one.transforms or ()) != 1 else one.transform(0)
            points = None if transform is None else transform.unsampled_points
            if points is None:
                return None
            factors.append((points, times))
        # the larger of two profiles is a pair that no neighbours have
        attained = all(
            one.pair.symmetric and one.pair.attained and one.pair.lower_pair is one.pair for one, _ in self.parts
        )
        return product_pair(factors, attained)

    def single_below(self) -> tuple[Pair, Fraction] | None:
        """Return pair and rate of the only round for a lower bound.

        Returns None if no data sets attain its closed form. It is the larger of both orders of the two laws, but a record that
        has its own sampling coin has one of them: only symmetric laws attain it then.
        """
        single = self.single()
        if single is None or not single[0].lower_pair.attained:
            return None
        if self.single_directed() is not None and not single[0].lower_pair.symmetric:
            return None
        return single[0].lower_pair, single[1]

    @property
    def attained(self) -> bool:
        """Return True if neighbours reach the closed form of the only round, up to a rounded shift.

        No valid bound is clearly below it.
        """
        single, below = self.single(), self.single_below()
        if single is None or below is None or single == below:
            return below is not None
        shift, least = single[0].gaussian_shift(), below[0].gaussian_shift()
        return shift is not None and least is not None and shift - least <= _ROUNDED_SHIFT * least

    @property
    def has_only_named_witnesses(self) -> bool:
        """Return True if no data sets attain the closed form, but named ones bound it from below."""
        return self.single_below() is None and any(one.witnesses for one, _ in self.parts)

    def single_directed(self) -> tuple[Pair, Fraction] | None:
        """Return pair and rate of the only round if each record has its own sampling coin.

        Returns None otherwise.
        """
        single = self.single()
        if single is None or single[1] == 1 or self.parts[0][0].drawn or len(self.parts[0][0].steps or ()) != 2:
            return None
        return single

    def repeated_round(self) -> tuple[Round, int] | None:
        """Return the only round type and how often it runs.

        Returns None if there are several types or a single round.
        """
        return self.parts[0] if len(self.parts) == 1 and self.parts[0][1] > 1 else None

    def reports(self) -> Reports | None:
        """Return all round types if every round is a report with known inputs; None otherwise.

        Several rounds must run, each on a sample of fixed size.
        """
        found = [(one.pair.extremes(), one.scheme.triples(), times) for one, times in self.parts]
        known = tuple((inputs, rate, times) for inputs, rate, times in found if inputs is not None and rate is not None)
        return known if len(known) == len(found) and sum(times for *_, times in found) > 1 else None

    def slip(self) -> float:
        """Return a lower bound on how far rounding may misplace the sum of all losses on a grid."""
        return sum(times for _, times in self.parts) * rounding_slip(0.0, 0.0)

    def upper(self) -> Iterator[Terms]:
        """Yield one composition per direction; their largest delta is an upper bound."""
        for direction in range(self._directions):
            yield tuple((one.step(direction), times) for one, times in self.parts)

    def lines(self) -> Iterator[tuple[Terms, RoundTypes | None]]:
        """Yield the composition of each direction with its transforms.

        The transforms are None if a round offers none; the line then has no answer.
        """
        for direction in range(self._directions):
            terms: list[tuple[Step, int]] = []
            transforms: list[tuple[Transform | None, int]] = []
            for one, times in self.parts:
                terms.append((one.step(direction), times))
                transforms.append((one.transform(direction), times))
            yield tuple(terms), _all_transforms(transforms)

    def witnesses(self) -> Iterator[tuple[str, Terms, RoundTypes | None]]:
        """Yield explicit neighbours by name, with their composition and its transforms.

        The transforms are None if a round offers none; a grid then gives the lower bound.
        """
        names: dict[str, None] = {}
        for one, _ in self.parts:
            for witness in one.witnesses:
                names[witness.name] = None
        for name in names:
            terms: list[tuple[Step, int]] = []
            transforms: list[tuple[Transform | None, int]] = []
            covered = True
            for one, times in self.parts:
                found = one.witness(name)
                if found is None:
                    break  # one round has no data sets of this name
                terms.append((found.step, times))
                transforms.append((found.transform, times))
                covered = covered and found.covered
            else:
                if not covered:
                    yield name, tuple(terms), _all_transforms(transforms)

    @property
    def theorem_b_on_grid(self) -> Terms | None:
        """Return the reference of Theorem B for grids; None if it does not apply.

        Grids bound the losses beyond their ends for Gaussian pairs only.
        """
        reference = self.theorem_b if all(one.theorem_b_rate is not None for one, _ in self.parts) else None
        return None if reference is None else reference.terms

    @cached_property
    def theorem_b(self) -> Reference | None:
        """Return the reference of Theorem B; None if it does not apply.

        It consists of Gaussian pairs, of the pairs that dominate other rounds, and of a Gaussian of squared shift 2 k Delta for
        each diameter. Without a Gaussian on a sample it would gain nothing.
        """
        from cumulant.losses.gaussian_law import GaussianLaw

        for one, _ in self.parts:
            if one.theorem_b_rate is not None and not one.whole:
                break
        else:
            return None
        terms: list[tuple[Step, int]] = []
        transforms: list[tuple[Transform | None, int]] = []
        spread, extra = 0.0, Fraction(0)
        for one, times in self.parts:
            step, transform, delta = one.reference()
            if step is None or not math.isfinite(delta):
                return None
            terms.append((step, times))
            transforms.append((transform, times))
            spread += times * delta
            extra += 2 * times * Fraction(delta)
        if not math.isfinite(spread):
            return None
        if spread > 0:
            terms.append((GaussianLaw(Fraction(math.sqrt(2 * spread))).mixture(Fraction(1), "remove"), 1))
        return Reference(tuple(terms), _all_transforms(transforms), extra)


def _all_transforms(found: Sequence[tuple[Transform | None, int]]) -> RoundTypes | None:
    """Return the transforms if every round offers one; None otherwise."""
    round_types = []
    for each, times in found:
        if each is None:
            return None
        round_types.append((each, times))
    return tuple(round_types)
