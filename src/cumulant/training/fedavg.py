"""Federated averaging in the words of its loop: clients, clients per round, a clip per client, and who adds the noise."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from types import MappingProxyType
from typing import Any

from cumulant.accounting.check import Check
from cumulant.accounting.guarantee import Guarantee
from cumulant.calibrate import calibrate
from cumulant.domains import COUNT, POSITIVE, Exact, Number, one_of, quotient_spelling
from cumulant.errors import InputError
from cumulant.mechanisms.discrete_gaussian import DiscreteGaussian
from cumulant.mechanisms.gaussian import Gaussian
from cumulant.mechanisms.mechanism import Expression
from cumulant.mechanisms.skellam import Skellam
from cumulant.relation import Relation
from cumulant.sampling.poisson import Poisson
from cumulant.sampling.without_replacement import WithoutReplacement
from cumulant.training.sgd import DIGITS, without_lower_end

SAMPLINGS: Mapping[str, tuple[Relation, str]] = MappingProxyType(
    {
        "poisson": (
            Relation.ADD_REMOVE,
            "every round takes each client independently with probability clients_per_round / clients, in secret; rounds "
            "without clients run too",
        ),
        "fixed-size": (
            Relation.REPLACE_ONE,
            "every round takes as many different clients as clients_per_round says, uniformly and in secret",
        ),
    }
)
"""Ways to sample clients, each with its neighbouring relation and its assumption."""

NOISES = ("gaussian", "discrete-gaussian", "skellam")
"""Laws of the noise on the sum of updates; the last two are integers, for secure aggregation."""

ASSUMES = (
    "every client's update is clipped as a whole, weights are fixed numbers or part of what is clipped, and the sum is divided "
    "by a constant"
)
ASSUMES_INTEGERS = "an update is rounded to the grid before it is clipped, or clipped again after that"
ASSUMES_SHARES = (
    "at least {} honest clients add their share in each round; who takes part or drops out does not depend on data, and those "
    "who see the sum do not learn it"
)


@dataclass(frozen=True, slots=True)
class FedAvg:
    """Federated averaging with one noisy sum of clipped client updates in each round; a neighbour is one client.

    `noise_multiplier` is the deviation of the noise on the sum over `clip`. With `survivors` every client adds a share and
    the multiplier is that of one share: what counts is the noise of the honest clients that stay to the end, at the least. A
    server that receives fewer must refuse the round. `grid` is the unit of integer noise, in units of `clip` itself and at most
    `clip`; `dimension` is the number of integers in an update, with which integer noise needs less.

    >>> fed = FedAvg(clients=60_000, clients_per_round=256, rounds=1000, noise_multiplier=2)
    >>> fed.run
    Gaussian(sigma=2, relation="add-remove") @ Poisson(rate="256/60000") * 1000
    """

    clients: int
    clients_per_round: int
    rounds: int
    noise_multiplier: Number
    clip: Number = 1
    sampling: str = "poisson"
    noise: str = "gaussian"
    survivors: int | None = None
    grid: Number | None = None
    dimension: int | None = None

    def __post_init__(self) -> None:
        for name in ("clients", "clients_per_round", "rounds", "survivors", "dimension"):
            if (value := getattr(self, name)) is not None:
                object.__setattr__(self, name, int(COUNT.check(name, value)))
        for name in ("noise_multiplier", "clip"):
            object.__setattr__(self, name, POSITIVE.check(name, getattr(self, name)))
        one_of("sampling", self.sampling, tuple(SAMPLINGS))
        one_of("noise", self.noise, NOISES)
        if self.clients_per_round > self.clients:
            raise InputError(f"clients_per_round={self.clients_per_round} must be at most clients={self.clients}")
        if self.survivors is not None and self.survivors > self.clients_per_round:
            raise InputError(
                f"survivors={self.survivors} must be at most clients_per_round={self.clients_per_round}: count those who are "
                "honest and do not drop out"
            )
        if self.survivors is not None and self.sampling == "poisson":
            raise InputError(
                "shares of noise need a number of clients that is known in every round; use sampling='fixed-size'"
            )
        if self.survivors is not None and self.noise == "discrete-gaussian":
            raise InputError(
                "a sum of discrete Gaussian shares is no discrete Gaussian; use noise='skellam' for shares"
            )
        if (self.grid is not None) == (self.noise == "gaussian"):
            raise InputError(
                "integer noise needs grid=…, its unit as a part of the clipping norm; Gaussian noise has none"
            )
        if self.grid is not None:
            object.__setattr__(self, "grid", POSITIVE.check("grid", self.grid))
            if Exact(self.grid) > Exact(self.clip):
                raise InputError(
                    f"grid={self.grid} must be at most clip={self.clip}: every clipped update would be rounded to 0"
                )

    @property
    def relation(self) -> Relation:
        """The neighbours that are compared: one client more or less, or one replaced."""
        return SAMPLINGS[self.sampling][0]

    @property
    def assumes(self) -> str:
        """Return the assumptions about the loop that no theorem can check."""
        said = [SAMPLINGS[self.sampling][1], ASSUMES]
        if self.grid is not None:
            said.append(ASSUMES_INTEGERS)
        if self.survivors is not None:
            said.append(ASSUMES_SHARES.format(self.survivors))
        return "; ".join(said)

    @property
    def noisy_sum(self) -> Expression:
        """One noisy sum of clipped updates, of which a round may see a sample."""
        moved, shares = Fraction(self.relation.clipped(Exact(1))), self.survivors or 1
        multiplier = Fraction(Exact(self.noise_multiplier))
        if self.grid is None:
            if shares == 1:
                return Gaussian.from_clipping(norm=1, noise=Exact(multiplier), relation=self.relation)
            square = Exact(moved**2 / shares)
            return Gaussian(sigma=Exact(multiplier), squared_sensitivity=square, relation=self.relation)
        units = self._units
        reached = math.floor(units) if self.dimension == 1 else units  # one integer below the clip, or their norm
        if self.noise == "skellam":
            variance = Exact((multiplier * units) ** 2 * shares)
            return Skellam(variance, Exact(moved * reached), self.dimension, self.relation)
        return DiscreteGaussian(Exact(multiplier * units), Exact(moved * reached), self.dimension, self.relation)

    @property
    def _units(self) -> Fraction:
        """Return the clipping norm in units of the grid."""
        return Fraction(Exact(self.clip)) / Fraction(Exact(self.grid or self.clip))

    @property
    def _reaches_clip(self) -> bool:
        """Return True if some update has the norm that noise is made for, so that what the run needs the loop needs."""
        return self.dimension == 1 or self._units.denominator == 1

    @property
    def run(self) -> Expression:
        """All rounds, as an expression."""
        if self.sampling == "poisson":
            scheme: Poisson | WithoutReplacement = Poisson(rate=quotient_spelling(self.clients_per_round, self.clients))
        else:
            scheme = WithoutReplacement(sample=self.clients_per_round, population=self.clients)
        return self.noisy_sum @ scheme * self.rounds

    def epsilon(self, delta: Number) -> float:
        """Return the epsilon that is known to hold at this delta for one client."""
        return self.run.epsilon(delta)

    def guarantee(self, *, delta: Number) -> Guarantee:
        """Return the epsilon with its lower end and what proves it.

        There is no lower end if the clipping norm is no multiple of the grid: no update of integers may be as long as that.
        """
        found = self.run.guarantee(delta=delta)
        return found if self._reaches_clip else without_lower_end(found)

    def check(self, *, epsilon: Number, delta: Number) -> Check:
        """Judge the claim that the rounds are (epsilon, delta)-differentially private for one client.

        >>> FedAvg(clients=1000, clients_per_round=20, rounds=50, noise_multiplier=1).check(
        ...     epsilon=9, delta="1e-5"
        ... ).verdict
        'holds'
        """
        found = self.run.check(epsilon=epsilon, delta=delta)
        if self._reaches_clip:
            return found
        return replace(found, verdict="holds" if found else "open", lower=None, witness="")

    def calibrated(self, *, epsilon: Number, delta: Number, digits: int = DIGITS) -> FedAvg:
        """Return this plan with the smallest noise multiplier that meets (epsilon, delta).

        >>> fed = FedAvg(clients=1000, clients_per_round=20, rounds=50, noise_multiplier=1)
        >>> fed.calibrated(epsilon=2, delta="1e-5", digits=3).epsilon("1e-5") <= 2
        True
        """

        def at(noise: Any) -> Expression:
            return replace(self, noise_multiplier=noise).run

        return replace(self, noise_multiplier=calibrate(at, epsilon=epsilon, delta=delta, digits=digits).value)
