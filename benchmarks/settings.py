"""Random settings: runs over every registered mechanism, shape and bound, and the questions they are asked.

Numbers are decimals of four digits, so that a setting can be written down.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, cast

import cumulant as cm
from cumulant.domains import spelling
from cumulant.sampling.rated import Rated
from cumulant.sampling.scheme import SCHEMES, Scheme


def decimal(rng: random.Random, low: float, high: float) -> str:
    """A number between powers of ten, all sizes alike."""
    exponent = rng.uniform(low, high)
    whole = math.floor(exponent)
    return f"{10 ** (exponent - whole):.3f}e{whole}"


def probabilities(rng: random.Random, size: int) -> list[Fraction]:
    """Masses of any size that sum to 1."""
    parts = [rng.randint(1, 10 ** rng.randint(1, 6)) for _ in range(size)]
    return [Fraction(part, sum(parts)) for part in parts]


def gaussian(rng: random.Random) -> cm.Mechanism:
    """Noise from 1e-3 to 1e6; the smallest has the slowest integrals and is drawn less often."""
    sigma = decimal(rng, *rng.choice(((-3, -1.5), *7 * ((-1.5, 6),))))
    return cm.Gaussian(sigma=sigma, geometry=rng.choice(("ball", "diameter")))


def points(rng: random.Random) -> cm.Mechanism:
    """A curve known at a few orders."""
    orders = sorted({1 + Fraction(decimal(rng, -2, 3)) for _ in range(rng.randint(1, 6))})
    scale = Fraction(decimal(rng, -4, 1))
    return cm.from_rdp_points(orders, [scale * order for order in orders])


def masses(rng: random.Random) -> cm.Mechanism:
    """A pair of laws on a few points."""
    size = rng.randint(2, 5)
    return cm.from_masses(probabilities(rng, size), probabilities(rng, size))


def posterior(rng: random.Random) -> cm.Mechanism:
    """A draw of category probabilities."""
    prior = [decimal(rng, -1, 3) for _ in range(rng.randint(2, 4))]
    return cm.DirichletPosterior(prior, rng.randint(1, 10**5), decimal(rng, -3, 1))


def gaussian_mean(rng: random.Random) -> cm.Mechanism:
    """A draw of a normal mean."""
    return cm.GaussianMeanPosterior(
        decimal(rng, -1, 1), decimal(rng, -1, 1), rng.randint(1, 10**6), decimal(rng, -2, 2), decimal(rng, -3, 0)
    )


def family(rng: random.Random) -> cm.Mechanism:
    """An exponential family known by one of its two constants."""
    limits = {"hessian": decimal(rng, -3, 1), "lipschitz": decimal(rng, -3, 1)}
    del limits[rng.choice(("hessian", "lipschitz"))]
    return cm.ExponentialFamilyMechanism(
        diameter=decimal(rng, -3, 0), radius=rng.choice((None, decimal(rng, 0, 3))), **limits
    )


def response(rng: random.Random) -> cm.Mechanism:
    """A coin from nearly fair to nearly certain."""
    return cm.RandomizedResponse(p=Fraction(1, 2) + Fraction(decimal(rng, -6, 0)) * Fraction(499, 1000))


def chance(rng: random.Random) -> Fraction:
    """A probability that is neither 0 nor 1."""
    return Fraction(decimal(rng, -6, 0)) * Fraction(999, 1000)


def unary(rng: random.Random) -> cm.Mechanism:
    """Two probabilities for a bit."""
    q, p = sorted((chance(rng), chance(rng)))
    return cm.UnaryEncoding(p if p > q else (1 + p) / 2, q)


def finite(rng: random.Random) -> cm.Mechanism:
    """Two or three inputs with laws of four outputs."""
    inputs, masses = rng.randint(2, 3), list[Fraction]()
    for _ in range(inputs):
        weights = [rng.randint(1, 99) for _ in range(4)]
        masses += [Fraction(weight, sum(weights)) for weight in weights]
    return cm.LocalRandomizer(inputs, masses)


def profile(rng: random.Random) -> cm.Mechanism:
    """A table of guarantees, in any order."""
    count = rng.randint(1, 4)
    epsilons = [decimal(rng, -3, 1) for _ in range(count)]
    return cm.PrivacyProfile(epsilons, [decimal(rng, -12, -0.1) for _ in range(count)])


def trade_off(rng: random.Random) -> cm.Mechanism:
    """The polygon of randomized response that leaks."""
    p, leak = Fraction(1, 2) + chance(rng) / 2, chance(rng) / 2
    end = 1 - leak
    return cm.TradeOff([0, end * (1 - p), end], [end, end * (1 - p), 0])


def bounded_laplace(rng: random.Random) -> cm.Mechanism:
    """Noise in an interval that is longer than the sensitivity, often by far."""
    scale, bound = decimal(rng, -2, 4), decimal(rng, 0, 5)
    return cm.BoundedLaplace(scale, bound)


def gaussian_mixture(rng: random.Random) -> cm.Mechanism:
    """A record that is there up to three times."""
    rate, count = chance(rng), rng.randint(1, 3)
    weights = [math.comb(count, k) * rate**k * (1 - rate) ** (count - k) for k in range(count + 1)]
    return cm.GaussianMixture(decimal(rng, -0.5, 2), list(range(count + 1)), weights)


DRAWS: dict[str, Callable[[random.Random], cm.Mechanism]] = {
    "Gaussian": gaussian,
    "BoundedLaplace": bounded_laplace,
    "Laplace": lambda rng: cm.Laplace(scale=decimal(rng, -2, 6)),
    "RandomizedResponse": response,
    "PureDP": lambda rng: cm.PureDP(decimal(rng, -6, 2)),
    "ApproximateDP": lambda rng: cm.ApproximateDP(decimal(rng, -6, 1), decimal(rng, -300, -1)),
    "ZeroConcentrated": lambda rng: cm.ZeroConcentrated(decimal(rng, -8, 3), rng.choice((0, decimal(rng, -8, 1)))),
    "from_rdp_points": points,
    "from_masses": masses,
    "ExponentialFamilyMechanism": family,
    "DirichletPosterior": posterior,
    "GaussianMeanPosterior": gaussian_mean,
    "KaryResponse": lambda rng: cm.KaryResponse(rng.randint(2, 50), chance(rng)),
    "UnaryEncoding": unary,
    "SubsetSelection": lambda rng: cm.SubsetSelection(rng.randint(6, 50), rng.randint(1, 5), decimal(rng, -4, 1)),
    "LocalRandomizer": finite,
    "DiscreteLaplace": lambda rng: cm.DiscreteLaplace(decimal(rng, -2, 5), rng.randint(1, 9)),
    "DiscreteGaussian": lambda rng: cm.DiscreteGaussian(
        decimal(rng, -0.7, 2), rng.randint(1, 3), rng.choice((None, 1))
    ),
    "Skellam": lambda rng: cm.Skellam(decimal(rng, -1, 3), rng.randint(1, 3), rng.choice((None, 1, 4))),
    "GaussianMixture": gaussian_mixture,
    "ExponentialMechanism": lambda rng: cm.ExponentialMechanism(decimal(rng, -4, 1)),
    "PermuteAndFlip": lambda rng: cm.PermuteAndFlip(decimal(rng, -4, 1)),
    "NoisyMax": lambda rng: cm.NoisyMax(decimal(rng, -1, 4), rng.choice(("exponential", "laplace", "gumbel"))),
    "GaussianDP": lambda rng: cm.GaussianDP(decimal(rng, -4, 1)),
    "PrivacyProfile": profile,
    "TradeOff": trade_off,
    "PartitionSelection": lambda rng: cm.PartitionSelection(decimal(rng, -3, 0.5), decimal(rng, -9, -2)),
    "SparseVector": lambda rng: cm.SparseVector(decimal(rng, -1, 4), decimal(rng, -1, 4), rng.randint(1, 5)),
}
"""How each registered mechanism is drawn."""

SLOW = ("DirichletPosterior",)
"""Drawn ten times less often than the others: its float curve takes milliseconds for each order."""


def mechanism(rng: random.Random) -> cm.Mechanism:
    """One of the registered mechanisms."""
    (name,) = rng.choices(tuple(DRAWS), [0.1 if name in SLOW else 1.0 for name in DRAWS])
    return DRAWS[name](rng)


@dataclass(frozen=True, slots=True)
class Ranges:
    """Powers of ten between which rates, repetitions and deltas are drawn."""

    rate: tuple[float, float]
    times: tuple[float, float]
    delta: tuple[float, float]


COMMON = Ranges(rate=(-4, -0.001), times=(2, 12), delta=(-12, -0.302))
EXTREME = Ranges(rate=(-12, -0.001), times=(0, 12), delta=(-300, -0.302))
"""Tiny rates and deltas have optimal orders up to 10^13, which take the search up to a second to find."""


def expression(rng: random.Random, bound: str, ranges: Ranges) -> cm.Expression:
    """A run to which the bound applies: one mechanism, a sum, several on one sample, or a sample of a sample."""

    def sample() -> Scheme:
        if bound == "allocation":
            return cm.RandomAllocation(steps=rng.randint(2, 1000))
        if bound == "with-replacement":
            return cm.WithReplacement(sample=rng.randint(1, 30), population=rng.randint(2, 10**4))
        if bound == "truncated-poisson":
            population = rng.randint(2, 1000)
            return cm.TruncatedPoisson(decimal(rng, -3, -0.01), rng.randint(1, population), population)
        scheme: Any = rng.choice([each for each in SCHEMES.values() if issubclass(each, Rated)])
        return cast(Scheme, scheme(rate=decimal(rng, *ranges.rate)))

    while True:
        try:
            replaced = bound == "replacement"
            run = _replaced(rng, ranges) if replaced else _shaped(rng, bound == "unsampled", sample)
            run.curve(row_of(bound))
        except cm.CumulantError:  # relations that do not mix, a bound that does not apply
            continue
        return run


def _replaced(rng: random.Random, ranges: Ranges) -> cm.Expression:
    """Log-concave noise on a Poisson sample of which a record is replaced, which its own row of the table is about."""
    kind: Any = rng.choice((cm.Gaussian, cm.Laplace, cm.DiscreteLaplace))
    sample: Any = cm.Poisson
    noise = kind(decimal(rng, -0.5, 2), relation="add-remove")
    return cast(cm.Expression, noise @ sample(rate=decimal(rng, *ranges.rate), relation="replace-one"))


def _shaped(rng: random.Random, unsampled: bool, sample: Callable[[], Scheme]) -> cm.Expression:
    first, second = mechanism(rng), mechanism(rng)
    shape = rng.random()
    if unsampled:
        return first if shape < 0.7 else first + second * rng.randint(1, 1000)
    if shape < 0.70:
        return first @ sample()
    if shape < 0.76:
        return first @ sample() + second
    if shape < 0.88:
        return first @ sample() + second @ sample() * rng.randint(1, 1000)
    if shape < 0.94:
        return (first + second * rng.randint(1, 5)) @ sample()
    return (first @ sample() * rng.randint(2, 100)) @ sample()


def row_of(bound: str) -> str:
    """The row of the table that accounts for it."""
    return "best" if bound == "unsampled" else bound


@dataclass(frozen=True, slots=True)
class Setting:
    """A run, the bound and conversion it is accounted for with, and the delta or epsilon that is asked for."""

    run: cm.Expression
    bound: str
    conversion: str
    question: str
    asked: Fraction

    def __str__(self) -> str:
        other = "delta" if self.question == "epsilon" else "epsilon"
        rows = f"bound={row_of(self.bound)!r}, conversion={self.conversion!r}"
        return f"cm.parse({str(self.run)!r}).{self.question}({other}={spelling(self.asked)!r}, {rows})"
