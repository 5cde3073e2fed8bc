"""Every question about what ran, asked of its parts."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterable
from contextlib import suppress
from fractions import Fraction
from typing import TYPE_CHECKING, Any, overload

import numpy as np

from cumulant import domains
from cumulant.accounting import answer as answering
from cumulant.accounting import loss_cumulants as loss
from cumulant.accounting.choices import BoundName, ConversionName, Direction, Method
from cumulant.accounting.guarantee import Guarantee
from cumulant.accounting.plan import planned
from cumulant.accounting.question import DEFAULT_ACCURACY, DEFAULT_METHOD, Question, check_names, read_given
from cumulant.accounting.run import RunRecord
from cumulant.bounds.table import BOUNDS
from cumulant.bounds.table import row as bound_row
from cumulant.conversion import array_answers, renyi_to_dp
from cumulant.curves.cache import question
from cumulant.curves.curve import Curve
from cumulant.domains import PROBABILITY, Domain, Number
from cumulant.errors import HypothesisError

if TYPE_CHECKING:
    from cumulant.accounting.attacks import TradeOffCurve
    from cumulant.accounting.check import Check
    from cumulant.accounting.gaussian_fit import GaussianFit
    from cumulant.accounting.privacy_loss import PrivacyLoss
    from cumulant.accounting.risk import Risk


# Questions about what ran that an attacker would ask: the trade-off, the privacy loss, Bayes risk, Gaussian privacy.

Floats = np.ndarray[Any, np.dtype[np.float64]]


class Attacked(ABC):
    """Something that can be attacked, given what it is made of."""

    __slots__ = ()

    @abstractmethod
    def record(self) -> RunRecord:
        """Return the record of the run, frozen as it is now: all that a question needs."""

    @question()
    def trade_off(self, fpr: Iterable[Number] | None = None, *, method: Method = DEFAULT_METHOD) -> TradeOffCurve:
        """Return the best attack: the largest true positive rate at each false positive rate.

        See `attack.trade_off`.
        """
        from cumulant.accounting import attacks

        return attacks.trade_off(self.record(), fpr, method)

    @overload
    def true_positive_rate(self, fpr: Number, *, method: Method = ...) -> float: ...  # type: ignore[overload-overlap]
    @overload
    def true_positive_rate(self, fpr: Iterable[Number], *, method: Method = ...) -> Floats: ...
    @question()
    def true_positive_rate(self, fpr: Number | Iterable[Number], *, method: Method = DEFAULT_METHOD) -> float | Floats:
        """Return the largest part of the members that an attack finds.

        The attack has this false positive rate, one or several.

        >>> import cumulant as cm
        >>> cm.PureDP(1).true_positive_rate(0.01)
        0.02719
        """
        from cumulant.accounting import attacks

        return attacks.true_positive_rate(self.record(), fpr, method)

    @overload
    def membership(self, fpr: Number, *, method: Method = ...) -> float: ...  # type: ignore[overload-overlap]
    @overload
    def membership(self, fpr: Iterable[Number], *, method: Method = ...) -> Floats: ...
    @question()
    def membership(self, fpr: Number | Iterable[Number], *, method: Method = DEFAULT_METHOD) -> float | Floats:
        """Return the largest part of the members that an attack finds at this false positive rate: `true_positive_rate`.

        >>> import cumulant as cm
        >>> cm.PureDP(1).membership(0.01)
        0.02719
        """
        from cumulant.accounting import attacks

        return attacks.true_positive_rate(self.record(), fpr, method)

    @question()
    def attribute(self, prior: Number) -> Risk:
        """Bound the success of guessing an attribute, on average over what it may be.

        `prior` is the largest probability of one value for an attacker who knows all other attributes, all other records and
        everything public. Under replace-one neighbours the bound is sharper, because one guess names one value.

        >>> import cumulant as cm
        >>> print(cm.PureDP(1).attribute(prior="0.01"))
        Without the release, an attacker who knows everything else would guess the attribute with probability 1 %. With it, ...
        """
        from cumulant.accounting.risk import risk

        return risk(self.record(), "attribute", prior)

    @question()
    def reidentification(self, *, prior: Number | None = None, candidates: int | None = None) -> Risk:
        """Bound the success of naming the person of a record, among so many candidates or with this prior.

        >>> import cumulant as cm
        >>> cm.PureDP(1).reidentification(candidates=100).success  # at most e times the prior
        0.02719
        """
        from cumulant.accounting.risk import reidentification

        return reidentification(self.record(), prior, candidates)

    @question()
    def reconstruction(self, prior: Number) -> Risk:
        """Bound the success of reconstructing a record within a tolerance, on average over what it may be.

        `prior` is the best blind chance to be within the tolerance, for the best point of the whole domain.

        >>> import cumulant as cm
        >>> cm.PureDP(1).reconstruction(prior="0.1").success
        0.27183
        """
        from cumulant.accounting.risk import risk

        return risk(self.record(), "reconstruction", prior)

    @question()
    def singling_out(self, weight: Number, *, records: int = 1) -> Risk:
        """Bound the success of singling out a record by a description, on average over what the record may be.

        `weight` is the largest probability that the description fits to the record, given all other records. With
        `records=n` the description may fit to any of n records.

        >>> import cumulant as cm
        >>> cm.PureDP(1).singling_out(weight="0.001").success, cm.PureDP(1).singling_out("0.001", records=10).success
        (0.0027183, 0.027183)
        """
        from cumulant.accounting.risk import singling_out

        return singling_out(self.record(), weight, records)

    @question()
    def advantage(self) -> float:
        """Return the largest difference of true and false positive rate that any attack has.

        >>> import cumulant as cm
        >>> cm.PureDP(1).advantage()  # tanh(1/2)
        0.462118
        """
        from cumulant.accounting import attacks

        return attacks.advantage(self.record())

    @question()
    def bayes_risk(self, prior: Number = "1/2") -> float:
        """Return the least part of wrong guesses of any attack on a record, rounded down.

        The record is a member with this probability.

        It is prior (1 - delta(log((1 - prior) / prior))), the smallest sum of both kinds of errors.

        >>> import cumulant as cm
        >>> cm.PureDP(1).bayes_risk(), cm.PureDP(1).bayes_risk(prior=0.01)  # 1 / (1 + e), and who always says no
        (0.268941, 0.01)
        """
        from cumulant.accounting import attacks

        return attacks.bayes_risk(self.record(), prior)

    @question()
    def gaussian_mu(self, *, slack: Number = 0) -> float:
        """A mu for which it is mu-GDP, rounded up: every attack is one on N(mu, 1) against N(0, 1); +inf if none is known.

        Gaussian noise has its shift, pure epsilon 2 Phi^-1(e^epsilon / (1 + e^epsilon)), a sample what runs on it, and squares
        add. With slack 0 it is the strict one: the trade-off holds at every epsilon, so that samples of Gaussian noise gain
        nothing. With a slack such as 1e-6 it is the mu of `gaussian_fit`, which DP-SGD should report, always with its slack.

        >>> import cumulant as cm
        >>> (cm.Gaussian(sigma=2) * 4).gaussian_mu(), cm.ZeroConcentrated(rho=1).gaussian_mu()
        (1.0, inf)
        >>> run = cm.Gaussian(sigma="1.1") @ cm.Poisson(rate="0.01") * 1000
        >>> run.gaussian_mu(), run.gaussian_mu(slack="1e-6")  # the first is sqrt(1000) / 1.1, as if not sampled
        (28.748, 0.38858)
        """
        from cumulant.accounting import attacks, gaussian_fit

        if PROBABILITY.check("slack", slack) == 0:
            return attacks.gaussian(self.record())
        return gaussian_fit.mu_with_slack(self.record(), slack)

    @question()
    def gaussian_fit(self, *, slack: Number = "1e-6") -> GaussianFit:
        """Find the mu with delta(epsilon) <= delta_mu(epsilon) + slack at every epsilon, its lower end and its fit.

        A mu is comparable between runs only with its slack, so say both. See `GaussianFit`.

        >>> import cumulant as cm
        >>> found = cm.Laplace(scale=2).gaussian_fit(slack="1e-6")
        >>> found.mu, found.fit > 0.01  # a mu misleads about Laplace noise: report its profile
        (0.56176, True)
        """
        from cumulant.accounting import gaussian_fit

        return gaussian_fit.gaussian_fit(self.record(), slack)

    @question()
    def privacy_loss(self, direction: Direction = "both") -> PrivacyLoss:
        """Return the privacy loss of neighbours.

        Tails, quantiles and hockey-stick divergences of one direction or of both.

        >>> import cumulant as cm
        >>> run = cm.Gaussian(sigma=2) @ cm.Poisson(rate=0.1) * 10
        >>> run.privacy_loss("add").hockey_stick(1) < run.privacy_loss("remove").hockey_stick(1)
        True
        """
        from cumulant.accounting.privacy_loss import PrivacyLoss

        return PrivacyLoss.of(self.record(), direction)


_LAMBDA = Domain(Fraction(-1), Fraction(10**6), low_closed=True, high_closed=True)
"""Orders lambda of K and its derivatives; K(-1) = 0 is the lower end for laws of equal support."""

_FEW = Domain(Fraction(1), Fraction(64), low_closed=True, high_closed=True, integer=True)
"""Orders of a derivative of K; convention."""


class Answers(Attacked):
    """Something that answers questions, given what it is made of."""

    __slots__ = ()

    def curve(self, bound: str = "best") -> Curve:
        """Return the proved curve: the sum of the curves of its parts, each amplified by this bound.

        A curve keeps what it has computed. Where it rests on a Python object, ask for another one after that has changed.
        """
        return self.record().curve(bound)

    # ---- questions

    @overload
    def epsilon(  # type: ignore[overload-overlap]
        self,
        delta: Number,
        *,
        method: Method = ...,
        bound: BoundName | None = ...,
        conversion: ConversionName | None = ...,
        accuracy: Number = ...,
        prove: bool = ...,
    ) -> float: ...
    @overload
    def epsilon(
        self,
        delta: Iterable[Number],
        *,
        method: Method = ...,
        bound: BoundName | None = ...,
        conversion: ConversionName | None = ...,
        accuracy: Number = ...,
        prove: bool = ...,
    ) -> Floats: ...
    @question()
    def epsilon(
        self,
        delta: Number | Iterable[Number],
        *,
        method: Method = DEFAULT_METHOD,
        bound: BoundName | None = None,
        conversion: ConversionName | None = None,
        accuracy: Number = DEFAULT_ACCURACY,
        prove: bool = False,
    ) -> float | Floats:
        """The smallest epsilon that is known to hold at this delta, rounded up.

        `method="exact"` composes loss distributions on a grid that costs at most the relative `accuracy`; `method="rdp"`
        takes the best bound and conversion of Rényi divergences unless `bound=` and `conversion=` name rows of the tables;
        `method="best"` is the smaller of the two. `method="paper"` is the literal accountant of the paper (Theorem 9,
        eq. 3). The composition theorems the paper compares with are `method="naive"`, `"strong"` and `"optimal"`.

        The exact layer proves its answer in balls where that takes up to about a second, and otherwise bounds it; the note of
        the guarantee says why. `prove=True` asks for balls however long they take.

        >>> import cumulant as cm
        >>> run = cm.Gaussian(sigma=5) @ cm.WithoutReplacement(rate=0.001) * 600_000
        >>> run.epsilon(delta=1e-8, method="paper"), run.epsilon(delta=1e-8)
        (2.02701, 0.807)
        >>> cm.Laplace(scale=2).epsilon(delta=0)
        0.5
        """
        return answering.epsilon(
            self.record(), delta, Question.parse_query(method, bound, conversion, accuracy, "delta", prove)
        )

    @overload
    def delta(  # type: ignore[overload-overlap]
        self,
        epsilon: Number,
        *,
        method: Method = ...,
        bound: BoundName | None = ...,
        conversion: ConversionName | None = ...,
        accuracy: Number = ...,
        prove: bool = ...,
    ) -> float: ...
    @overload
    def delta(
        self,
        epsilon: Iterable[Number],
        *,
        method: Method = ...,
        bound: BoundName | None = ...,
        conversion: ConversionName | None = ...,
        accuracy: Number = ...,
        prove: bool = ...,
    ) -> Floats: ...
    @question()
    def delta(
        self,
        epsilon: Number | Iterable[Number],
        *,
        method: Method = DEFAULT_METHOD,
        bound: BoundName | None = None,
        conversion: ConversionName | None = None,
        accuracy: Number = DEFAULT_ACCURACY,
        prove: bool = False,
    ) -> float | Floats:
        """The smallest delta that is known to hold at this epsilon, rounded up (eq. 4).

        >>> import cumulant as cm
        >>> cm.Gaussian(sigma=2).delta(epsilon=1, method="paper"), cm.Gaussian(sigma=2).delta(epsilon=1)
        (0.216265, 0.0068)

        At a negative epsilon it is that of the hockey-stick divergence, 1 - e^epsilon (1 - delta(-epsilon)).

        >>> cm.PureDP(1).delta(epsilon=-1)
        0.632121
        """
        return answering.delta(
            self.record(), epsilon, Question.parse_query(method, bound, conversion, accuracy, "epsilon", prove)
        )

    @question()
    def guarantee(
        self,
        *,
        delta: Number | None = None,
        epsilon: Number | None = None,
        method: Method = DEFAULT_METHOD,
        bound: BoundName | None = None,
        conversion: ConversionName | None = None,
        accuracy: Number = DEFAULT_ACCURACY,
        prove: bool = False,
    ) -> Guarantee:
        """Return the epsilon at this delta, or the delta at this epsilon, with its proof.

        And with a bound from below.

        >>> import cumulant as cm
        >>> found = cm.Gaussian(sigma=1).guarantee(delta=1e-5)
        >>> found.lower <= found.epsilon, found.epsilon
        (True, 4.377)
        >>> found = cm.Gaussian(sigma=1).guarantee(epsilon=4.377)
        >>> found.lower <= found.delta, found.delta
        (True, 1e-05)
        """
        asked, value = read_given(delta, epsilon)
        question = Question.parse_query(method, bound, conversion, accuracy, asked, prove)
        return Guarantee.of(planned(self.record(), question.with_value(value)))

    @question()
    def check(self, *, epsilon: Number, delta: Number, accuracy: Number = DEFAULT_ACCURACY) -> Check:
        """Judge a claim: `verdict` is "holds", "false" or "open"; see `Check`.

        >>> import cumulant as cm
        >>> run = cm.Gaussian(sigma=5) @ cm.WithoutReplacement(rate=0.001) * 600_000
        >>> [run.check(epsilon=claim, delta=1e-8).verdict for claim in (1.74, 0.8, 0.5)]
        ['holds', 'open', 'false']
        """
        from cumulant.accounting.check import check_claim

        return check_claim(self.record(), epsilon, delta, accuracy)

    @question()
    def epsilon_over(
        self,
        times: Iterable[int],
        *,
        delta: Number,
        method: Method = DEFAULT_METHOD,
        bound: BoundName | None = None,
        conversion: ConversionName | None = None,
        accuracy: Number = DEFAULT_ACCURACY,
    ) -> Floats:
        """epsilon of `self * k` for every k in `times`.

        Each number is that of `(self * k).epsilon(delta)` with the same method, within the accuracy. Where the losses have a
        density and rounds are many, all counts share the transforms of one round; elsewhere each composes a grid of its
        own, and a bar on a terminal shows how far it is. By Rényi divergences, `method="rdp"`, all counts together are the
        lower envelope of one line in k per order.

        >>> import cumulant as cm
        >>> step = cm.Gaussian(sigma=5) @ cm.WithoutReplacement(rate=0.001)
        >>> step.epsilon_over([1000, 600_000], delta=1e-8)
        array([0.0289, 0.807 ])
        >>> step.epsilon_over([1000, 600_000], delta=1e-8, method="paper")
        array([0.119, 2.027])
        """
        return answering.epsilon_over(
            self.record(), times, delta, Question.parse_query(method, bound, conversion, accuracy, "delta")
        )

    @overload
    def rdp(self, order: Number, *, bound: BoundName = ...) -> float: ...  # type: ignore[overload-overlap]
    @overload
    def rdp(self, order: Iterable[Number], *, bound: BoundName = ...) -> Floats: ...
    @question()
    def rdp(self, order: Number | Iterable[Number], *, bound: BoundName = "best") -> float | Floats:
        """The Rényi divergence bound at orders in [1, inf]; order 1 is KL, inf is pure.

        It is infinite for promises that may fail, such as `ApproximateDP`: what leaks with some probability has no finite
        divergence. Their epsilons come from the curve of the rest, which `curve()` has.

        >>> import cumulant as cm
        >>> cm.Gaussian(sigma=5).rdp([1, 2, 64.5])
        array([0.02, 0.04, 1.29])
        """
        value, scalar = domains.orders(order)
        check_names(bound=bound)
        answer = array_answers.rdp(self.curve(bound), value, bound_row(bound).upper)
        return float(answer[0]) if scalar else answer

    @question()
    def rdp_table(self, orders: Iterable[Number]) -> dict[str, Floats]:
        """Return the Rényi divergence of every bound that applies, by its name: columns that pandas and polars take.

        >>> import cumulant as cm
        >>> found = (cm.Laplace(scale=2) @ cm.WithoutReplacement(rate=0.001)).rdp_table([2, 3])
        >>> "theorem9" in found, "gaussian-ball" in found
        (True, False)
        """
        asked, found = domains.listed("orders", orders), {}
        for name in BOUNDS:
            with suppress(HypothesisError):
                found[name] = self.rdp(asked, bound=name)
        return found

    @question()
    def gap(self, order: Number | Iterable[Number], *, bound: BoundName = "best") -> float | Floats:
        """Return a bound over the lower bound of Proposition 11; 1 means that it is exact.

        >>> import cumulant as cm
        >>> run = cm.Gaussian(sigma=5) @ cm.WithoutReplacement(rate=0.001)
        >>> run.gap(2, bound="theorem9"), run.gap(2, bound="profile")
        (4.0, 1.16)
        """
        value, scalar = domains.orders(order)
        upper = array_answers.rdp(self.curve(bound), value, bound_row(bound).upper)
        lower = array_answers.rdp(self.curve("lower"), value, upper=False)
        with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
            # a gap that rounding outward has made counts as none, and so do 0 / 0 and inf / inf
            answer: Floats = np.where(upper <= lower * (1 + 1e-12), 1.0, upper / lower)
        return float(answer[0]) if scalar else answer

    @overload
    def cgf(self, lam: Number, *, bound: BoundName = ...) -> float: ...  # type: ignore[overload-overlap]
    @overload
    def cgf(self, lam: Iterable[Number], *, bound: BoundName = ...) -> Floats: ...
    @question()
    def cgf(self, lam: Number | Iterable[Number], *, bound: BoundName = "best") -> float | Floats:
        """Compute K(lam) = lam * rdp(lam + 1) at lam >= -1.

        K is the cumulant generating function of the privacy loss.

        From 0 on it is an upper bound of every neighbouring pair's, rounded up. Between -1 and 0, where K is negative, it is
        that of the dominating pair, the smallest of all, to the nearest float; HypothesisError where no pair is known.
        K(-1) = K(0) = 0 (Lemma 36).

        >>> import cumulant as cm
        >>> cm.Gaussian(sigma=1).cgf([-1, -0.5, 0, 1])
        array([ 0.   , -0.125,  0.   ,  1.   ])
        """
        value, scalar = domains.orders(lam, "lam", low=-1.0)
        curve = self.curve(bound)
        answer = np.where(value == 0, 0.0, np.inf)
        inside = (value > 0) & np.isfinite(value)
        answer[inside] = array_answers.cgf(curve, value[inside], bound_row(bound).upper)
        for i in np.flatnonzero(value < 0):
            answer[i] = loss.derivative(self.record(), Fraction(value[i]), 0)
        return float(answer[0]) if scalar else answer

    @question()
    def cgf_derivative(self, lam: Number, *, order: int = 1) -> float:
        """Compute the derivative of K at lam >= -1 for the dominating pair.

        K' is the mean of the privacy loss, tilted by e^(lam loss).

        Exact to the nearest float, and a fact about that pair: no bound of another pair's. It increases with lam, because K is
        convex (Lemma 36). HypothesisError where no pair is known, as on samples.

        >>> import cumulant as cm
        >>> gaussian = cm.Gaussian(sigma=1)  # K = lam (lam + 1) / 2
        >>> gaussian.cgf_derivative(0), gaussian.cgf_derivative(2), gaussian.cgf_derivative(2, order=2)
        (0.5, 2.5, 1.0)
        """
        return loss.derivative(self.record(), _LAMBDA.check("lam", lam), int(_FEW.check("order", order)))

    @question()
    def loss_cumulants(self, count: int = 2) -> Floats:
        """Return the first cumulants of the privacy loss of the dominating pair.

        They are the derivatives of K at 0: mean, variance, ….

        The mean is KL. All of them add under composition. See `cgf_derivative`.

        >>> import cumulant as cm
        >>> (cm.Gaussian(sigma=1) * 4).loss_cumulants(3)
        array([2., 4., 0.])
        """
        found = loss.taylor(self.record(), Fraction(0), int(_FEW.check("count", count)) + 1)
        return np.array([float(each * math.factorial(i)) for i, each in enumerate(found)][1:])

    @question()
    def kl(self) -> float:
        """Return the divergence of order 1: the largest Kullback-Leibler divergence.

        >>> import cumulant as cm
        >>> cm.Gaussian(sigma=5).kl()
        0.02
        """
        return self.rdp(1)

    @question()
    def pure(self) -> float:
        """Return the divergence of order infinity: the epsilon of pure differential privacy.

        >>> import cumulant as cm
        >>> cm.Laplace(scale=2).pure(), cm.Gaussian(sigma=5).pure()
        (0.5, inf)
        """
        run = self.record()
        return renyi_to_dp.proved_pure(run.curve(), run.estimated)
