"""Posterior sampling: one draw from the posterior of a conjugate model (item 43).

The draw is itself a private release.
"""

from __future__ import annotations

from collections.abc import Sequence

from cumulant.curves.closed_form import Concentrated
from cumulant.curves.curve import Curve
from cumulant.domains import COUNT, NONNEGATIVE, POSITIVE, Number, Several
from cumulant.errors import InputError, shown
from cumulant.mechanisms.mechanism import Mechanism, register
from cumulant.pairs.pair import Pair
from cumulant.parameters import Real, Reals, parameter
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
    relation = Relation.REPLACE_ONE

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


@register
class DirichletPosterior(PosteriorSampling):
    """A draw of category probabilities from Dirichlet(prior + tempering * counts).

    Two categories are Beta-Bernoulli.

    >>> DirichletPosterior(prior=[2, 2], records=10).rdp([1, 2, 3])
    array([0.31512925, 0.78015856,        inf])
    """

    prior: Reals = parameter(Several(POSITIVE))
    records: Real = parameter(COUNT)
    tempering: Real = parameter(POSITIVE, default=1)

    def _validate(self) -> None:
        if len(self.prior) < 2:
            raise InputError(f"prior={self.prior.notation} must have at least two categories")

    def own_curve(self, bound: str) -> Curve:
        from cumulant.curves.posteriors import DirichletPosterior as DirichletCurve

        return DirichletCurve(self.prior, int(self.records), self.tempering)


@register
class GaussianMeanPosterior(PosteriorSampling):
    """A draw of a normal mean from its posterior: rdp(a) = a rho.

    rho = (t D/v)^2 / (2 (prior_precision + t n/v)).

    >>> GaussianMeanPosterior(diameter=1, variance=1, records=9, prior_precision=1).rdp([1, 2])
    array([0.05, 0.1 ])
    """

    diameter: Real = parameter(POSITIVE)
    variance: Real = parameter(POSITIVE)
    records: Real = parameter(COUNT)
    prior_precision: Real = parameter(NONNEGATIVE, default=0)
    tempering: Real = parameter(POSITIVE, default=1)

    def own_curve(self, bound: str) -> Concentrated:
        from cumulant.curves.posteriors import gaussian_mean_posterior

        return gaussian_mean_posterior(
            self.diameter, self.variance, int(self.records), self.prior_precision, self.tempering
        )

    def pair(self) -> Pair:
        """Return two normal laws of one covariance, as far apart as a record can move the mean."""
        from cumulant.pairs.gaussian import GaussianPair

        return GaussianPair.of_square(2 * self.own_curve("best").rho)
