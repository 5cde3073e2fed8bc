"""What ran, as the exact layer sees it: one loss per mechanism, how it is sampled, and which neighbours are known to be bad."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction

from cumulant.bounds.gaussian import enclosed_delta
from cumulant.curves.discrete import DiscretePair
from cumulant.curves.gaussian import GaussianPair
from cumulant.curves.laplace import LaplacePair
from cumulant.curves.pair import Pair
from cumulant.curves.response import ResponsePair
from cumulant.exact.finite import Finite
from cumulant.exact.lattice import Terms
from cumulant.exact.losses import GaussianLoss, Loss
from cumulant.exact.steps import Mixture, Step
from cumulant.exact.witness import Triple


@dataclass(frozen=True, slots=True)
class Round:
    """One mechanism on one sample: the loss of its symmetric dominating pair, and the pair itself if that says more."""

    loss: Loss
    pair: Pair | None
    rate: Fraction
    poisson: bool = False

    @property
    def symmetric(self) -> bool:
        """Whether the pair and its reverse are the same up to names."""
        return self.pair is None or self.pair.symmetric

    def step(self, direction: str) -> Step:
        """The pair that sampling makes: of a Poisson sample the named direction, otherwise the symmetric one."""
        return Mixture(self.loss, float(self.rate), float(1 - self.rate), direction if self.poisson else "symmetric")

    def pair_step(self, direction: str) -> Step | None:
        """The pair of Proposition 11, or of the same form for a Poisson sample, in one direction."""
        if isinstance(self.pair, DiscretePair):
            return Finite.sampled(self.pair.p, self.pair.q, self.rate, direction)
        if self.pair is not None and self.pair.estimated:
            return None
        return Mixture(self.loss, float(self.rate), float(1 - self.rate), direction)

    def triple_step(self) -> Step | None:
        """Three values that are worse than the paper's two, where the description admits them; otherwise its pair."""
        if self.poisson or self.rate == 1:
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
    def poisson(self) -> bool:
        return any(one.poisson for one, _ in self.parts)

    def upper(self) -> Iterator[Terms]:
        """Compositions of which the largest is an upper bound: one for each direction of Poisson samples."""
        for direction in ("remove", "add") if self.poisson else ("symmetric",):
            yield tuple((one.step(direction), times) for one, times in self.parts)

    def lower(self) -> Iterator[tuple[str, Terms]]:
        """Explicit neighbouring data sets, by name."""
        for name, steps in (
            ("data sets with and without one record that counts (Proposition 11)", self._steps("remove")),
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
        if self.poisson or not all(isinstance(one.pair, GaussianPair) for one, _ in self.parts):
            return None
        if all(one.rate == 1 for one, _ in self.parts):
            return None
        terms: list[tuple[Step, int]] = []
        spread = 0.0
        for one, times in self.parts:
            terms.append((Mixture(one.loss, float(one.rate), float(1 - one.rate), "remove"), times))
            if isinstance(one.pair, GaussianPair) and one.pair.geometry == "diameter":
                spread += times * float(enclosed_delta(one.pair.shift, one.rate).upper())
        if spread > 0:
            terms.append((Mixture(GaussianLoss(math.sqrt(2 * spread)), 1.0, 0.0, "remove"), 1))
        return tuple(terms)
