"""What ran, as the exact layer sees it: one loss per mechanism, how it is sampled, and which neighbours are known to be bad."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction

from cumulant.bounds.theorems_a_c import enclosed_delta
from cumulant.lattice.lattice import Terms
from cumulant.lattice.sampling import Sampling
from cumulant.pairs.gaussian_law import GaussianLaw
from cumulant.pairs.pair import Pair
from cumulant.pairs.step import Loss, Step

PAIR = "data sets with and without one record that counts (Proposition 11)"
"""The neighbours of every closed form."""

_RARELY = Fraction(1, 100)


@dataclass(frozen=True, slots=True)
class Round:
    """What runs on one sample: its dominating pair, and how the sample is drawn."""

    pair: Pair
    rate: Fraction
    sampling: Sampling

    @property
    def directions(self) -> tuple[str, ...]:
        """The pairs that sampling makes; without a sample there is one, the symmetric pair itself."""
        return self.sampling.directions if self.rate < 1 else ("symmetric",)

    def step(self, direction: str) -> Step:
        """The pair that sampling makes, in this direction if it has several."""
        found = self.pair.above(self.rate, direction if direction in self.directions else self.directions[0])
        if found is None:
            raise OverflowError("no grid can hold this loss")
        return found

    @property
    def law(self) -> Loss:
        """The loss, where a grid can hold it."""
        loss = self.pair.loss()
        if loss is None:
            raise OverflowError("no grid can hold this loss")
        return loss

    def triple(self) -> Step | None:
        """Three values that are worse than the paper's two, where the description admits them."""
        return self.pair.triple(self.rate) if self.sampling.triples and self.rate < 1 else None


@dataclass(frozen=True, slots=True)
class Rounds:
    """All that ran, in the order in which terms are added."""

    parts: tuple[tuple[Round, int], ...]

    @property
    def estimated(self) -> bool:
        return any(one.pair.estimated for one, _ in self.parts)

    @property
    def directed(self) -> bool:
        """Whether each pair of data sets has a direction for the whole run, as under Poisson sampling."""
        return any(len(one.directions) > 1 for one, _ in self.parts)

    def single(self) -> tuple[Pair, Fraction] | None:
        """Pair and rate of the only round, if there is just one and its profile is known in closed form."""
        forms = self._closed_forms()
        return forms[0][0] if forms is not None and len(forms) == 1 and forms[0][1] == 1 else None

    def single_below(self) -> tuple[Pair, Fraction] | None:
        """The same for a lower end."""
        if self.single() is None:
            return None
        ((one, _),) = self.parts
        return one.pair.dominated, one.rate

    def rare(self) -> list[tuple[tuple[Pair, Fraction], int]] | None:
        """Pair, rate and number of each round, if all have closed forms and hardly one of them sees the record."""
        if sum(times * one.rate for one, times in self.parts) > _RARELY:
            return None
        return self._closed_forms()

    def _closed_forms(self) -> list[tuple[tuple[Pair, Fraction], int]] | None:
        forms = [((one.pair, one.rate), times) for one, times in self.parts if one.pair.closed]
        return forms if len(forms) == len(self.parts) else None

    def upper(self) -> Iterator[Terms]:
        """Compositions of which the largest is an upper bound: one for each direction."""
        directions = dict.fromkeys(direction for one, _ in self.parts for direction in one.directions)
        if self.directed:
            directions.pop("symmetric", None)
        for direction in directions:
            yield tuple((one.step(direction), times) for one, times in self.parts)

    def lower(self) -> Iterator[tuple[str, Terms]]:
        """Explicit neighbouring data sets, by name."""
        for name, steps in (
            (PAIR, self._steps("remove")),
            ("data sets without and with one record that counts (Proposition 11)", self._steps("add")),
            ("data sets whose odd records and the rest are three values in general position", self._triples()),
        ):
            if steps is not None:
                yield name, steps

    def _steps(self, direction: str) -> Terms | None:
        if direction == "add" and all(one.pair.symmetric for one, _ in self.parts):
            return None  # of a symmetric pair the other direction is the larger one
        found = tuple((one.pair.below(one.rate, direction), times) for one, times in self.parts)
        return None if any(step is None for step, _ in found) else found  # type: ignore[return-value]

    def _triples(self) -> Terms | None:
        triples = [one.triple() for one, _ in self.parts]
        if all(triple is None for triple in triples):
            return None
        found = tuple(
            (triple or one.pair.below(one.rate, "remove"), times)
            for triple, (one, times) in zip(triples, self.parts, strict=True)
        )
        return None if any(step is None for step, _ in found) else found  # type: ignore[return-value]

    def cone(self) -> Terms | None:
        """The reference of Theorem B: Gaussian pairs, and for each diameter a Gaussian of squared shift 2 k Delta."""
        if not all(one.pair.gaussian_shift() is not None for one, _ in self.parts):
            return None
        if not all(one.rate == 1 or (one.sampling.cone and one.pair.geometry) for one, _ in self.parts):
            return None
        if all(one.rate == 1 for one, _ in self.parts):
            return None
        terms: list[tuple[Step, int]] = []
        spread = 0.0
        for one, times in self.parts:
            terms.append((one.law.mixture(one.rate, "remove"), times))
            if one.pair.geometry == "diameter":
                spread += times * float(enclosed_delta(one.pair.gaussian_shift(), one.rate).upper())
        if spread > 0:
            reference = GaussianLaw(Fraction(math.sqrt(2 * spread)))
            terms.append((reference.mixture(Fraction(1), "remove"), 1))
        return tuple(terms)
