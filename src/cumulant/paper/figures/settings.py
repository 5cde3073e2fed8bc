"""The panels of both figures: which mechanism, on which samples (items 48 and 49)."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from cumulant.mechanisms.gaussian import Gaussian
from cumulant.mechanisms.laplace import Laplace
from cumulant.mechanisms.mechanism import Expression, Mechanism
from cumulant.mechanisms.randomized_response import RandomizedResponse
from cumulant.sampling.without_replacement import WithoutReplacement

RATE = Fraction(1, 1000)
DELTA = 1e-8
MOST_ROUNDS = 600_000
POPULATION = 100_000.0
"""n = 100 / rate, the size at which the paper draws the good and bad data sets."""


@dataclass(frozen=True, slots=True)
class Panel:
    """One mechanism of the figures.

    `sigma` is set for Gaussian noise, where the paper also draws approximations.
    """

    letter: str
    name: str
    title: str
    mechanism: Mechanism
    sigma: float | None = None

    @property
    def once(self) -> Expression:
        """Return one round: the mechanism on a fresh sample."""
        return self.mechanism @ WithoutReplacement(rate=RATE)


def gaussian(letter: str, sigma: str) -> Panel:
    """Return a panel of Gaussian noise."""
    title = f"({letter}) Gaussian, σ = {sigma}"
    return Panel(letter, f"{letter}_gaussian_sigma{sigma}", title, Gaussian(sigma=sigma), float(sigma))


def _laplace(letter: str, scale: str) -> Panel:
    title = f"({letter}) Laplace, b = {scale}"
    return Panel(letter, f"{letter}_laplace_b{scale}", title, Laplace(scale=scale))


def _response(letter: str, p: str) -> Panel:
    title = f"({letter}) randomized response, p = {p}"
    return Panel(letter, f"{letter}_randresp_p{p}", title, RandomizedResponse(p=p))


PANELS = (
    gaussian("a", "5"),
    _laplace("b", "2"),
    _response("c", "0.6"),
    gaussian("d", "0.5"),
    gaussian("d", "1"),
    _laplace("e", "0.5"),
    _response("f", "0.9"),
)
"""Panel d twice: the captions say sigma = 0.5, the text says 1 (E-21)."""
