"""What ran, as the exact layer sees it: one loss per mechanism, how it is sampled, and which neighbours are known to be bad."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction

from cumulant.bounds.theorems_a_c import enclosed_delta
from cumulant.lattice.finite import Finite
from cumulant.lattice.lattice import Terms
from cumulant.lattice.losses import GaussianLoss, Loss
from cumulant.lattice.sampling import Sampling
from cumulant.lattice.step import Mixture, Step
from cumulant.lattice.witness import Triple
from cumulant.pairs.gaussian import GaussianPair
from cumulant.pairs.laplace import LaplacePair
from cumulant.pairs.masses import DiscretePair
from cumulant.pairs.pair import Pair
from cumulant.pairs.response import ResponsePair

PAIR = "data sets with and without one record that counts (Proposition 11)"
"""The neighbours of every closed form."""

_RARELY = Fraction(1, 100)


@dataclass(frozen=True, slots=True)
class Round:
    """What runs on one sample: its dominating pair, and the loss of the symmetric one, None where no grid can hold it.

    Several mechanisms on one sample may be adaptive within it, so the geometry of a pair is a fact about a `lone` one only.
    """

    loss: Loss | None
    pair: Pair | None
    rate: Fraction
    sampling: Sampling
    lone: bool = True
    below: Pair | None = None
    """A pair that the pair dominates, for the lower ends of closed forms: itself, or a little less where it was rounded."""

    @property
    def symmetric(self) -> bool:
        """Whether the pair and its reverse are the same up to names."""
        return self.pair is None or self.pair.symmetric

    @property
    def directions(self) -> tuple[str, ...]:
        """The pairs that sampling makes; without a sample there is one, the symmetric pair itself."""
        return self.sampling.directions if self.rate < 1 else ("symmetric",)

    def step(self, direction: str) -> Step:
        """The pair that sampling makes, in this direction if it has several."""
        return self.mixture(direction if direction in self.directions else self.directions[0])

    @property
    def law(self) -> Loss:
        """The loss, where a grid can hold it."""
        if self.loss is None:
            raise OverflowError("no grid can hold this loss")
        return self.loss

    def mixture(self, direction: str) -> Step:
        """One of the three pairs that sampling may make of a base pair."""
        return Mixture(self.law, float(self.rate), float(1 - self.rate), direction)

    def pair_step(self, direction: str) -> Step | None:
        """The pair of Proposition 11, or of the same form for a Poisson sample, in one direction."""
        if isinstance(self.pair, DiscretePair):
            return Finite.sampled(self.pair.p, self.pair.q, self.rate, direction)
        if self.pair is not None and self.pair.estimated:
            return None
        return self.mixture(direction)

    def triple_step(self) -> Step | None:
        """Three values that are worse than the paper's two, where the description admits them; otherwise its pair."""
        if not self.sampling.triples or not self.lone or self.rate == 1:
            return self.pair_step("remove")
        match self.pair:
            case GaussianPair(geometry="diameter"):
                kind, shift = "gaussian", float(self.pair.shift)
            case LaplacePair():
                kind, shift = "laplace", float(self.pair.shift)
            case ResponsePair(one_bit=False):
                kind, shift = "response", float(self.pair.curve().pure())
            case _:
                return self.pair_step("remove")
        return Triple(kind, shift, float(self.rate), float(1 - self.rate))


@dataclass(frozen=True, slots=True)
class Rounds:
    """All that ran, in the order in which terms are added."""

    parts: tuple[tuple[Round, int], ...]

    @property
    def estimated(self) -> bool:
        return any(one.pair is not None and one.pair.estimated for one, _ in self.parts)

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
        return None if one.below is None else (one.below, one.rate)

    def rare(self) -> list[tuple[tuple[Pair, Fraction], int]] | None:
        """Pair, rate and number of each round, if all have closed forms and hardly one of them sees the record."""
        if sum(times * one.rate for one, times in self.parts) > _RARELY:
            return None
        return self._closed_forms()

    def _closed_forms(self) -> list[tuple[tuple[Pair, Fraction], int]] | None:
        forms = [
            ((one.pair, one.rate), times)
            for one, times in self.parts
            if one.pair is not None and not one.pair.estimated
        ]
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
        if direction == "add" and all(one.symmetric for one, _ in self.parts):
            return None  # of a symmetric pair the other direction is the larger one
        found = tuple((one.pair_step(direction), times) for one, times in self.parts)
        return None if any(step is None for step, _ in found) else found  # type: ignore[return-value]

    def _triples(self) -> Terms | None:
        found = tuple((one.triple_step(), times) for one, times in self.parts)
        if not any(isinstance(step, Triple) for step, _ in found) or any(step is None for step, _ in found):
            return None
        return found  # type: ignore[return-value]

    def cone(self) -> Terms | None:
        """The reference of Theorem B: Gaussian pairs, and for each diameter a Gaussian of squared shift 2 k Delta."""
        if not all(one.rate == 1 or (one.sampling.cone and one.lone) for one, _ in self.parts):
            return None
        if not all(isinstance(one.pair, GaussianPair) for one, _ in self.parts):
            return None
        if all(one.rate == 1 for one, _ in self.parts):
            return None
        terms: list[tuple[Step, int]] = []
        spread = 0.0
        for one, times in self.parts:
            terms.append((one.mixture("remove"), times))
            if isinstance(one.pair, GaussianPair) and one.pair.geometry == "diameter":
                spread += times * float(enclosed_delta(one.pair.shift, one.rate).upper())
        if spread > 0:
            terms.append((Mixture(GaussianLoss(math.sqrt(2 * spread)), 1.0, 0.0, "remove"), 1))
        return tuple(terms)
