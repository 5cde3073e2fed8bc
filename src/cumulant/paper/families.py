"""Rényi divergences of natural exponential families (item 41, E-7).

p_eta(x) ~ exp(<eta, T(x)> - A(eta)).

Everything is built from the gap of the log-partition function, G(eta, h) = A(eta+h) - A(eta) - <h, grad A(eta)> >= 0:
with d = eta1 - eta2 the formula of the paper, in its difference form, is

    D_a(eta1 || eta2) = [A(eta1 + (a-1)d) - a A(eta1) + (a-1) A(eta2)] / (a-1) = G(eta1, (a-1)d) / (a-1) + G(eta1, -d),

a sum of non-negative terms; the second is KL. The ready families know their gap without cancellation.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import special

from cumulant.domains import orders as read_orders
from cumulant.numerics.arithmetic import FLOATS, Array
from cumulant.numerics.gaps import EDGE, log_gamma_gap, log_gap


class Family(ABC):
    """A natural exponential family; parameters are arrays whose last axis is the dimension of T."""

    __slots__ = ()

    @abstractmethod
    def gap(self, eta: Array, step: Array) -> Array:
        """Compute G(eta, step) = A(eta+step) - A(eta) - <step, grad A(eta)>.

        It is +inf where eta + step is outside.
        """

    @abstractmethod
    def difference(self, first: Array, second: Array) -> Array:
        """Compute A(first) - A(second)."""

    @abstractmethod
    def reach(self, direction: Array) -> Array:
        """Compute sup <direction, T(x)> over the support.

        There the privacy loss <d, T> - [A(eta1) - A(eta2)] ends.
        """

    def divergence(self, first: Any, second: Any, orders: Any) -> Any:
        """Compute D_a(eta1 || eta2) at orders in [0, inf].

        It is 0 at order 0, KL at 1, the largest privacy loss at inf.

        Order 0 is -log Pr_eta2[p_eta1 > 0], and the members of a family have one support. Between 0 and 1 the formula
        is the same. +inf where eta1 + (a-1)(eta1 - eta2) is outside the parameter space. `first` belongs to the family.

        >>> Bernoulli().divergence(Bernoulli.natural(0.3), Bernoulli.natural(0.6), 2)  # log(.3^2/.6 + .7^2/.4)
        0.3184537311185346
        """
        array, scalar = read_orders(orders, low=0.0)
        eta, other = np.atleast_1d(np.asarray(first, np.float64)), np.atleast_1d(np.asarray(second, np.float64))
        d = eta - other
        with np.errstate(all="ignore"):
            lam = np.where(np.isfinite(array) & (array != 1), array - 1, 1.0)
            kl = self.gap(eta, -d)
            value = self.gap(eta, lam[:, None] * d) / lam + kl
            value = np.where(array == 1, kl, np.where(array == 0, 0.0, value))
            largest = self.reach(d) - self.difference(eta, other) if np.any(array == np.inf) else np.inf
            value = np.where(array == np.inf, np.where(np.any(d != 0), largest, 0.0), value)
            value = np.where(np.isnan(value), np.inf, np.maximum(value, 0.0))
        return float(value[0]) if scalar else value

    def loss(self, first: Any, second: Any, statistic: Any) -> Any:
        """Compute the privacy loss log p_eta1(x)/p_eta2(x) at outputs x.

        It is <eta1 - eta2, T(x)> - [A(eta1) - A(eta2)].

        `statistic` is T(x), one number or vector, or an array of them along the first axis. Under eta1 the mean of the loss
        is the divergence of order 1.

        >>> Bernoulli().loss(Bernoulli.natural(0.3), Bernoulli.natural(0.6), [[0], [1]])  # log(.7/.4), log(.3/.6)
        array([ 0.559616, -0.693147])
        """
        eta, other = np.atleast_1d(np.asarray(first, np.float64)), np.atleast_1d(np.asarray(second, np.float64))
        seen = np.asarray(statistic, dtype=np.float64)
        value = np.sum((eta - other) * seen, axis=-1) if seen.ndim else float((eta - other)[0] * seen)
        value = value - self.difference(eta, other)
        return float(value) if np.ndim(value) == 0 else value


@dataclass(frozen=True, slots=True)
class LogPartition(Family):
    """Any family, from its log-partition function A and the gradient of A, the mean of T.

    `log_partition` and `mean` take one parameter vector; A is +inf outside the parameter space. `sup` is the support
    function of T, sup <direction, T(x)>; without it the divergence of order inf is reported as +inf.

    >>> geometric = LogPartition(
    ...     lambda eta: -np.log(-np.expm1(eta[0])) if eta[0] < 0 else np.inf,
    ...     lambda eta: np.array([1 / np.expm1(-eta[0])]),
    ... )
    >>> round(geometric.divergence(np.log(0.5), np.log(0.4), 2), 9), geometric.divergence(np.log(0.9), np.log(0.4), 2)
    (0.105360516, inf)
    """

    log_partition: Callable[[Array], float]
    mean: Callable[[Array], Array]
    sup: Callable[[Array], float] | None = None

    def gap(self, eta: Array, step: Array) -> Array:
        eta, step = np.broadcast_arrays(eta, step)
        rows = zip(eta.reshape(-1, eta.shape[-1]), step.reshape(-1, step.shape[-1]), strict=True)
        values = [self.log_partition(e + h) - self.log_partition(e) - h @ np.asarray(self.mean(e)) for e, h in rows]
        return np.array(values, dtype=np.float64).reshape(eta.shape[:-1])

    def difference(self, first: Array, second: Array) -> Array:
        return np.asarray(self.log_partition(first), np.float64) - np.asarray(self.log_partition(second), np.float64)

    def reach(self, direction: Array) -> Array:
        return np.asarray(np.inf if self.sup is None else self.sup(direction), dtype=np.float64)


@dataclass(frozen=True, slots=True)
class Multinomial(Family):
    """Counts of n trials: T = x, eta_i = log p_i up to a common constant, A = n log sum e^eta_i.

    >>> law = Multinomial(trials=3)
    >>> round(law.divergence(law.natural([0.2, 0.3, 0.5]), law.natural([0.3, 0.3, 0.4]), 2), 9)
    0.170086031
    """

    trials: int = 1

    @staticmethod
    def natural(probabilities: Any) -> Array:
        """Return the parameter of the law with these probabilities."""
        return np.log(np.asarray(probabilities, dtype=np.float64))

    def gap(self, eta: Array, step: Array) -> Array:
        # G = n log sum m_i e^{h_i - <m, h>}, whose first-order terms cancel
        mean = special.softmax(eta, axis=-1)
        centred = step - np.sum(mean * step, axis=-1, keepdims=True)
        near = np.log1p(np.sum(mean * FLOATS.excess(np.clip(centred, -1.0, 1.0)), axis=-1))
        far = FLOATS.log_sum_exp(centred + special.log_softmax(eta, axis=-1))
        return self.trials * np.asarray(np.where(np.max(np.abs(centred), axis=-1) < 1, near, far))

    def difference(self, first: Array, second: Array) -> Array:
        return self.trials * np.asarray(FLOATS.log_sum_exp(first) - FLOATS.log_sum_exp(second))

    def reach(self, direction: Array) -> Array:
        return np.asarray(self.trials * np.max(direction, axis=-1))


@dataclass(frozen=True, slots=True)
class Bernoulli(Family):
    """T = x in {0, 1}, eta = log(p/(1-p)), A = log(1 + e^eta).

    Two categories with parameters (0, eta).

    >>> Bernoulli().divergence(Bernoulli.natural(0.75), Bernoulli.natural(0.25), np.inf)  # log 3
    1.0986122886681
    """

    @staticmethod
    def natural(probability: Any) -> Array:
        """Return the parameter of the law with this success probability."""
        return np.atleast_1d(special.logit(np.asarray(probability, dtype=np.float64)))

    def gap(self, eta: Array, step: Array) -> Array:
        return Multinomial().gap(_with_zero(eta), _with_zero(step))

    def difference(self, first: Array, second: Array) -> Array:
        return Multinomial().difference(_with_zero(first), _with_zero(second))

    def reach(self, direction: Array) -> Array:
        return Multinomial().reach(_with_zero(direction))


@dataclass(frozen=True, slots=True)
class Poisson(Family):
    """T = x in {0, 1, …}, eta = log rate, A = e^eta.

    >>> round(Poisson().divergence(Poisson.natural(2), Poisson.natural(3), 2), 12)  # 4/3 - 2*2 + 3
    0.333333333333
    """

    @staticmethod
    def natural(rate: Any) -> Array:
        """Return the parameter of the law with this mean."""
        return np.atleast_1d(np.log(np.asarray(rate, dtype=np.float64)))

    def gap(self, eta: Array, step: Array) -> Array:
        return np.asarray(np.exp(eta[..., 0]) * FLOATS.excess(step[..., 0]))

    def difference(self, first: Array, second: Array) -> Array:
        return np.asarray(np.exp(second[..., 0]) * np.expm1(first[..., 0] - second[..., 0]))

    def reach(self, direction: Array) -> Array:
        return np.where(direction[..., 0] > 0, np.inf, 0.0)


@dataclass(frozen=True, slots=True)
class Gamma(Family):
    """T = (log x, x), eta = (shape - 1, -rate), A = log Gamma(shape) - shape log rate.

    shape > 0 and rate > 0.

    >>> round(Gamma().divergence(Gamma.natural(2, 1), Gamma.natural(3, 2), 1), 9)
    0.190921304
    """

    @staticmethod
    def natural(shape: float, rate: float) -> Array:
        """Return the parameter of the law with this shape and rate."""
        return np.array([shape - 1.0, -rate], dtype=np.float64)

    def gap(self, eta: Array, step: Array) -> Array:
        # G = g(k, h1) + k (u - log(1+u)) - h1 log(1+u), g the gap of log Gamma, 1 + u = new rate / rate
        shape, u = eta[..., 0] + 1, step[..., 1] / eta[..., 1]
        inside = (shape + step[..., 0] > EDGE * shape) & (u > EDGE - 1)
        value = log_gamma_gap(shape, step[..., 0], FLOATS) + shape * log_gap(u, FLOATS) - step[..., 0] * np.log1p(u)
        return np.where(inside, value, np.inf)

    def difference(self, first: Array, second: Array) -> Array:
        shape, other = first[..., 0] + 1, second[..., 0] + 1
        logs = special.gammaln(shape) - special.gammaln(other)
        return np.asarray(logs - shape * np.log(-first[..., 1]) + other * np.log(-second[..., 1]))

    def reach(self, direction: Array) -> Array:
        # sup_x d1 log x + d2 x = d1 log(d1 / -d2) - d1 for d1 > 0 > d2
        power, slope = direction[..., 0], direction[..., 1]
        peak = np.where(power > 0, power * (np.log(power / -slope) - 1), 0.0)
        return np.where((power == 0) & (slope <= 0), 0.0, np.where((power > 0) & (slope < 0), peak, np.inf))


@dataclass(frozen=True, slots=True)
class Exponential(Family):
    """T = x >= 0, eta = -rate < 0, A = -log(-eta): the gamma law of shape 1.

    >>> round(Exponential().divergence(Exponential.natural(1.0), Exponential.natural(1.2), 5), 9)
    0.220037921
    """

    @staticmethod
    def natural(rate: Any) -> Array:
        """Return the parameter of the law with this rate."""
        return np.atleast_1d(-np.asarray(rate, dtype=np.float64))

    def gap(self, eta: Array, step: Array) -> Array:
        u = step[..., 0] / eta[..., 0]
        return np.where(u > EDGE - 1, log_gap(u, FLOATS), np.inf)

    def difference(self, first: Array, second: Array) -> Array:
        return np.asarray(-np.log(first[..., 0] / second[..., 0]))

    def reach(self, direction: Array) -> Array:
        return np.where(direction[..., 0] > 0, np.inf, 0.0)


@dataclass(frozen=True, slots=True)
class GaussianMean(Family):
    """Normal laws of known variance, any dimension.

    eta = mean, T = x / sigma^2, A = |eta|^2 / (2 sigma^2).

    >>> GaussianMean(sigma=2).divergence([1.0, 0.0], [0.0, 0.0], 2)  # a |d|^2 / (2 sigma^2)
    0.25
    """

    sigma: float = 1.0

    @staticmethod
    def natural(mean: Any) -> Array:
        """Return the parameter of the law with this mean: the mean itself."""
        return np.atleast_1d(np.asarray(mean, dtype=np.float64))

    def gap(self, eta: Array, step: Array) -> Array:
        return np.asarray(np.sum((step / self.sigma) ** 2, axis=-1) / 2)

    def difference(self, first: Array, second: Array) -> Array:
        return np.asarray(np.sum((first - second) * (first + second), axis=-1) / (2 * self.sigma**2))

    def reach(self, direction: Array) -> Array:
        return np.where(np.any(direction != 0, axis=-1), np.inf, 0.0)


@dataclass(frozen=True, slots=True)
class Gaussian(Family):
    """Normal laws of unknown variance.

    T = (x, x^2), eta = (mu/v, -1/(2v)), A = mu^2/(2v) + log(v)/2.

    >>> round(Gaussian().divergence(Gaussian.natural(0, 1), Gaussian.natural(1, 2), 2), 9)
    0.47717437
    >>> Gaussian().divergence(Gaussian.natural(0, 2), Gaussian.natural(1, 1), 2)  # 2 v2 - v1 = 0 is outside
    inf
    """

    @staticmethod
    def natural(mean: float, variance: float) -> Array:
        """Return the parameter of the law with this mean and variance."""
        return np.array([mean / variance, -0.5 / variance], dtype=np.float64)

    def gap(self, eta: Array, step: Array) -> Array:
        # precision t = -2 eta2 becomes t (1 + u):  G = (h1 + 2 mu h2)^2 / (2 t (1+u)) + (u - log(1+u)) / 2
        precision, u = -2 * eta[..., 1], step[..., 1] / eta[..., 1]
        mean = eta[..., 0] / precision
        shift = step[..., 0] + 2 * mean * step[..., 1]
        return np.where(u > EDGE - 1, shift**2 / (2 * precision * (1 + u)) + log_gap(u, FLOATS) / 2, np.inf)

    def difference(self, first: Array, second: Array) -> Array:
        quadratic = first[..., 0] ** 2 / first[..., 1] - second[..., 0] ** 2 / second[..., 1]
        return np.asarray(-quadratic / 4 - np.log(first[..., 1] / second[..., 1]) / 2)

    def reach(self, direction: Array) -> Array:
        # sup_x d1 x + d2 x^2 = -d1^2 / (4 d2) for d2 < 0
        bent = direction[..., 1] < 0
        peak = direction[..., 0] ** 2 / (-4 * np.where(bent, direction[..., 1], -1.0))
        return np.where(bent, peak, np.where(np.all(direction == 0, axis=-1), 0.0, np.inf))


def _with_zero(eta: Array) -> Array:
    return np.concatenate([np.zeros_like(eta), eta], axis=-1)
