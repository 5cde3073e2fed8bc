"""Posterior sampling: one draw from the posterior of a conjugate model (item 43).

The draw is itself a private release.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from cumulant.curves.closed_form import Concentrated
from cumulant.curves.curve import Curve
from cumulant.domains import COUNT, NONNEGATIVE, POSITIVE, Domain, Exact, ExactTuple, Number, Several
from cumulant.errors import InputError, shown
from cumulant.mechanisms.mechanism import Mechanism, register
from cumulant.pairs.pair import Pair
from cumulant.relation import Relation


class PosteriorSampling(Mechanism):
    """One draw theta from the posterior of a conjugate model, published instead of the data.

    The curve is the exact supremum over all replace-one neighbours of `records` records, so it depends on how many there
    are: on a sample `records` is the size of the sample. The likelihood may be tempered, raised to the power `tempering`;
    below 1 that is more private. The prior and all the parameters are public.

    >>> PosteriorSampling.beta_bernoulli(prior=(2, 2), records=10).rdp(2)
    0.780158
    >>> PosteriorSampling.gaussian_mean(diameter=1, variance=1, records=9, prior_precision=1).rdp(2)
    0.1
    """

    __slots__ = ()
    records: Exact

    @staticmethod
    def beta_bernoulli(prior: tuple[Number, Number], records: Number, tempering: Number = 1) -> PosteriorSampling:
        """Return a draw for coin flips with prior Beta(a, b) on heads, prior = (a, b).

        >>> PosteriorSampling.beta_bernoulli(prior=("0.5", "0.5"), records=1000, tempering="0.1")
        DirichletPosterior(prior=[0.5, 0.5], records=1000, tempering=0.1)
        """
        checked = DirichletPosterior(prior, records, tempering)
        if len(checked.prior) > 2:
            raise InputError(f"prior={shown(prior)} must be the two parameters of a beta law; for more use dirichlet")
        return checked

    @staticmethod
    def dirichlet(prior: Sequence[Number], records: Number, tempering: Number = 1) -> PosteriorSampling:
        """Return a draw for records of K categories with a Dirichlet prior.

        >>> PosteriorSampling.dirichlet(prior=[1, 1, 1], records=50).rdp(1.5)
        1.71409
        """
        return DirichletPosterior(prior, records, tempering)

    @staticmethod
    def gaussian_mean(
        diameter: Number, variance: Number, records: Number, prior_precision: Number = 0, tempering: Number = 1
    ) -> PosteriorSampling:
        """Return a draw for records N(mu, variance) of known variance with a normal prior on mu.

        In any dimension.

        `diameter` is the largest distance of two records: high - low for numbers in [low, high], 2 C for vectors clipped
        to norm C. `prior_precision` is one over the variance of the prior; 0 is the flat prior.

        >>> clipped = PosteriorSampling.gaussian_mean(diameter=2, variance=4, records=100)
        >>> clipped.rdp(2)  # rho = t D^2 / (2 v n)
        0.01
        """
        return GaussianMeanPosterior(diameter, variance, records, prior_precision, tempering)

    @property
    def relation(self) -> Relation:
        return Relation.REPLACE_ONE


@register
@dataclass(frozen=True, slots=True, eq=False, repr=False, init=False)
class DirichletPosterior(PosteriorSampling):
    """A draw of category probabilities from Dirichlet(prior + tempering * counts).

    Two categories are Beta-Bernoulli.

    >>> DirichletPosterior(prior=[2, 2], records=10).rdp([1, 2, 3])
    array([0.31512925, 0.78015856,        inf])
    """

    prior: ExactTuple
    records: Exact
    tempering: Exact

    domains: ClassVar[Mapping[str, Domain | Several]] = {
        "prior": Several(POSITIVE),
        "records": COUNT,
        "tempering": POSITIVE,
    }
    defaults: ClassVar[Mapping[str, Number]] = {"tempering": 1}

    def __init__(self, prior: Sequence[Number], records: Number, tempering: Number = 1) -> None:
        self._set(prior=prior, records=records, tempering=tempering)
        if len(self.prior) < 2:
            raise InputError(f"prior={self.prior.notation} must have at least two categories")

    def key(self) -> Hashable:
        return self.prior, self.records, self.tempering

    def own_curve(self, bound: str) -> Curve:
        from cumulant.curves.posteriors import DirichletPosterior as DirichletCurve

        return DirichletCurve(self.prior, int(self.records), self.tempering)


@register
@dataclass(frozen=True, slots=True, eq=False, repr=False, init=False)
class GaussianMeanPosterior(PosteriorSampling):
    """A draw of a normal mean from its posterior: rdp(a) = a rho.

    rho = (t D/v)^2 / (2 (prior_precision + t n/v)).

    >>> GaussianMeanPosterior(diameter=1, variance=1, records=9, prior_precision=1).rdp([1, 2])
    array([0.05, 0.1 ])
    """

    diameter: Exact
    variance: Exact
    records: Exact
    prior_precision: Exact
    tempering: Exact

    domains: ClassVar[Mapping[str, Domain | Several]] = {
        "diameter": POSITIVE,
        "variance": POSITIVE,
        "records": COUNT,
        "prior_precision": NONNEGATIVE,
        "tempering": POSITIVE,
    }
    defaults: ClassVar[Mapping[str, Number]] = {"prior_precision": 0, "tempering": 1}

    def __init__(
        self,
        diameter: Number,
        variance: Number,
        records: Number,
        prior_precision: Number = 0,
        tempering: Number = 1,
    ) -> None:
        self._set(
            diameter=diameter,
            variance=variance,
            records=records,
            prior_precision=prior_precision,
            tempering=tempering,
        )

    def key(self) -> Hashable:
        return self.diameter, self.variance, self.records, self.prior_precision, self.tempering

    def own_curve(self, bound: str) -> Concentrated:
        from cumulant.curves.posteriors import gaussian_mean_posterior

        return gaussian_mean_posterior(
            self.diameter, self.variance, int(self.records), self.prior_precision, self.tempering
        )

    def pair(self) -> Pair:
        """Return two normal laws of one covariance, as far apart as a record can move the mean."""
        from cumulant.pairs.gaussian import GaussianPair

        return GaussianPair.of_square(2 * self.own_curve("best").rho)
