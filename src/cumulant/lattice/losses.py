"""The privacy loss x = log(p/q) of a symmetric dominating pair (P, Q), in coordinates in which its law is smooth.

Swapping P and Q reflects x, so the law under P is the mirror image of the law under Q: everything is said about Q, and
P has the density e^x times that of Q.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from cumulant.curves.closed import Response
from cumulant.numerics.arithmetic import Array
from cumulant.numerics.rationals import log_quotients, log_rational, quotients
from cumulant.pairs.densities import DensityPair
from cumulant.pairs.gaussian import GaussianPair
from cumulant.pairs.laplace import LaplacePair
from cumulant.pairs.masses import DiscretePair
from cumulant.pairs.pair import Pair
from cumulant.pairs.response import ResponsePair
from cumulant.pairs.symmetrised import Symmetrised, symmetrised

LARGEST_SHIFT, LARGEST_LOSS = 300.0, 1e5
"""Of Gaussian noise the sensitivity over it, of the others the largest loss; beyond it no lattice spans all scales."""


_REACH = 100.0


class Loss(ABC):
    """The law of x under Q: a density in a coordinate y that increases with x, atoms, and what only one law can produce."""

    __slots__ = ()

    smooth: bool = True
    """Whether there is a density at all."""

    @abstractmethod
    def loss(self, y: Array) -> Array:
        """x at the coordinate y."""

    @abstractmethod
    def place(self, x: Array) -> Array:
        """The coordinate of the loss x."""

    @abstractmethod
    def log_density(self, y: Array) -> Array:
        """log of the density of Q at the coordinate y."""

    @abstractmethod
    def roughness(self, y: Array) -> Array:
        """A number r such that the eighth derivatives of the densities of P and Q are at most r^8 times those densities."""

    @abstractmethod
    def reach(self, log_mass: float) -> float:
        """A loss X with P(X < x < inf) and, the pair being symmetric, Q(-inf < x < -X), at most e^log_mass."""

    def lifted_reach(self, log_mass: float, lam: float) -> float:
        """The same for the law tilted by e^{lam x}."""
        return self.reach(log_mass)

    def atoms(self) -> tuple[Array, Array]:
        """The losses x != 0 that have positive probability, and log of their Q-masses."""
        return np.zeros(0), np.zeros(0)

    @property
    @abstractmethod
    def distance(self) -> float:
        """The total variation distance of P and Q, infinite losses left out."""

    @property
    def equal(self) -> float:
        """The mass where p = q."""
        return 0.0

    @property
    def leak(self) -> float:
        """The mass of P where Q has none."""
        return 0.0


@dataclass(frozen=True, slots=True)
class GaussianLoss(Loss):
    """x = t z - t^2/2 with z ~ N(0, 1) under Q and N(t, 1) under P; the coordinate is z."""

    shift: float

    def loss(self, y: Array) -> Array:
        return self.shift * y - self.shift * self.shift / 2

    def place(self, x: Array) -> Array:
        return x / self.shift + self.shift / 2

    def log_density(self, y: Array) -> Array:
        return -y * y / 2 - 0.5 * math.log(2 * math.pi)

    def roughness(self, y: Array) -> Array:
        # |He_8(z)| <= (|z| + 3)^8, coefficient by coefficient
        return np.maximum(np.abs(y), np.abs(y - self.shift)) + 3

    def reach(self, log_mass: float) -> float:
        # P(z > t + Z) <= e^{-Z^2/2} / 2
        return self.shift * self.shift / 2 + self.shift * math.sqrt(2 * max(-log_mass, 0.5))

    def lifted_reach(self, log_mass: float, lam: float) -> float:
        return self.reach(log_mass) + lam * self.shift * self.shift  # z moves to t + lam t

    @property
    def distance(self) -> float:
        return math.erf(self.shift / math.sqrt(8))


@dataclass(frozen=True, slots=True)
class LaplaceLoss(Loss):
    """Under Q: atoms 1/2 at -t and e^-t/2 at t, density e^{-(x+t)/2}/4 between them."""

    shift: float

    def loss(self, y: Array) -> Array:
        return y

    def place(self, x: Array) -> Array:
        return np.clip(x, -self.shift, self.shift)

    def log_density(self, y: Array) -> Array:
        return -(y + self.shift) / 2 - math.log(4)

    def roughness(self, y: Array) -> Array:
        return np.full_like(y, 0.5)

    def reach(self, log_mass: float) -> float:
        return self.shift

    def atoms(self) -> tuple[Array, Array]:
        return np.array([-self.shift, self.shift]), np.array([0.0, -self.shift]) - math.log(2)

    @property
    def distance(self) -> float:
        return -math.expm1(-self.shift / 2)


@dataclass(frozen=True, slots=True)
class AtomLoss(Loss):
    """Finitely many losses x > 0 with their Q-masses, their mirror images, the mass of p = q and the leak of one side."""

    losses: tuple[float, ...]
    log_masses: tuple[float, ...]
    same: float = 0.0
    alone: float = 0.0

    smooth = False

    def loss(self, y: Array) -> Array:
        return y

    def place(self, x: Array) -> Array:
        return x

    def log_density(self, y: Array) -> Array:
        return np.full_like(y, -np.inf)

    def roughness(self, y: Array) -> Array:
        return np.zeros_like(y)

    def reach(self, log_mass: float) -> float:
        return max(self.losses, default=0.0)

    def atoms(self) -> tuple[Array, Array]:
        x, log_q = np.array(self.losses), np.array(self.log_masses)
        return np.concatenate([-x[::-1], x]), np.concatenate([(log_q + x)[::-1], log_q])  # Q(-x) = P(x)

    @property
    def distance(self) -> float:
        x, log_q = np.array(self.losses), np.array(self.log_masses)
        return float(np.sum(-np.exp(log_q + x) * np.expm1(-x)))

    @property
    def equal(self) -> float:
        return self.same

    @property
    def leak(self) -> float:
        return self.alone


def loss_of(pair: Pair) -> Loss | None:
    """The loss of the symmetric pair whose profile is that of `pair`, both directions together; None if out of reach."""
    match pair:
        case GaussianPair():
            return GaussianLoss(float(pair.shift)) if 1e-100 < pair.shift <= LARGEST_SHIFT else None
        case LaplacePair():
            return LaplaceLoss(float(pair.shift)) if 1e-100 < pair.shift <= LARGEST_LOSS else None
        case ResponsePair():
            return response_loss(pair.curve())
        case DiscretePair():
            return atom_loss(pair.symmetrised())
        case DensityPair():
            return profile_loss(pair)
    return None


def response_loss(curve: Response, leak: Fraction = Fraction(0)) -> AtomLoss | None:
    """Randomized response with this log-odds, told only with probability 1 - leak: the worst (epsilon, leak)-DP pair."""
    e0 = float(curve.pure())
    if not 1e-100 < e0 <= LARGEST_LOSS:
        return AtomLoss((), (), float(1 - leak), float(leak)) if e0 == 0 else None
    return AtomLoss((e0,), (log_rational(1 - leak) - np.logaddexp(0.0, e0),), 0.0, float(leak))


def discrete_loss(p: Sequence[Fraction], q: Sequence[Fraction]) -> AtomLoss:
    """The loss of the symmetric pair with profile max(H(P||Q), H(Q||P))."""
    return atom_loss(symmetrised(p, q))


def atom_loss(law: Symmetrised) -> AtomLoss:
    """The same from the law of the ratio."""
    return AtomLoss(
        tuple(log_quotients(quotients(law.ratios)).tolist()),
        tuple(log_quotients(quotients(law.masses)).tolist()),
        float(law.equal),
        float(law.leak),
    )


def profile_loss(pair: Pair, cells: int = 4000) -> AtomLoss | None:
    """The symmetric pair whose profile is the chords of a profile that is known in floats only: estimated, not bounded."""
    reaches = 2.0 ** np.arange(math.ceil(math.log2(_REACH)) + 1)
    small = pair.log_profile(reaches) <= -80
    x = np.linspace(0.0, float(reaches[np.argmax(small)] if small.any() else reaches[-1]), cells)
    alpha, delta = np.exp(x), np.exp(pair.log_profile(x))
    if not np.isfinite(delta).all():
        return None
    delta = np.minimum.accumulate(delta)
    slopes = np.append(np.minimum(np.maximum.accumulate(np.diff(delta) / np.diff(alpha)), 0.0), 0.0)
    mass = np.diff(slopes)
    kept = mass > 0
    same = 1 - float(delta[-1]) - float(np.sum(mass * (1 + alpha[1:])))
    return AtomLoss(tuple(x[1:][kept].tolist()), tuple(np.log(mass[kept]).tolist()), max(same, 0.0), float(delta[-1]))
