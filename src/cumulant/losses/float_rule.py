"""The tilted law of one round as points in float64, with a radius for each loss and weight.

The panels, formulas and error terms are those of the rule in balls; `BOUNDED` follows the rounding (docs/line.md,
section 6).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from cumulant.losses.transform import NODES, DensityLaw
from cumulant.numerics.arithmetic import BALLS, Array
from cumulant.numerics.enclosure import BOUNDED, Enclosure
from cumulant.numerics.quadrature import legendre_balls


@dataclass(frozen=True, slots=True)
class FloatRuleSettings:
    """Tuning constants of the rule in floats.

    Radii follow every rounding, so validity does not depend on them.
    """

    ball_bits: int = 96
    """Bits of the balls from which nodes, atoms and ends are rounded; 43 more than a float has."""

    pieces: int = 4
    """Pieces into which the span is cut before halving; chosen by hand: floats are cheap, and fewer rounds of halving
    follow."""

    widest_error: float = 1e-3
    """Relative error of the sum of weights beyond which second orders would count; the float line then gives up."""


SETTINGS = FloatRuleSettings()
"""The settings in force; a test may replace them."""

MARGIN = 1e-9
"""Added to every logarithm of an error term; derived: more than a dozen roundings of numbers below `LARGEST`
(docs/line.md, section 6)."""

LARGEST = 1e5
"""Largest exponent for which `MARGIN` holds; derived: 12 u times it is below 1e-9 (docs/line.md, section 6)."""


@dataclass(frozen=True, slots=True)
class FloatRule:
    """Signed losses with their tilted weights; weights and errors are divided by e^scale.

    `error` bounds for every |u| <= top what quadrature and the ends add to M(lam + iu); `square_error` times 1 + c^2 what
    they add to the integral of (L - c)^2.
    """

    losses: Enclosure
    weights: Enclosure
    places: Array
    """The v of each point, NaN for atoms."""
    scale: float
    error: float
    square_error: float

    @property
    def size(self) -> int:
        return self.losses.size

    def weights_between(self, low: float, high: float) -> Enclosure:
        """Return the weights of the points between two edges of panels."""
        return self.weights[(self.places > low) & (self.places < high)]


@lru_cache(maxsize=1024)
def float_rule(
    law: DensityLaw, lam: float, top: float, log_error: float, edges: tuple[float, ...], beyond: bool = True
) -> FloatRule:
    """Return the law tilted by e^{lam L} between the edges as points in floats; remembered.

    Each panel is wrong by about e^log_error at most. Raises OverflowError if numbers are so large that the margins of
    their logarithms would not hold.
    """
    panels = law.panels(list(edges), lam, top, log_error, SETTINGS.pieces if top > 0 else 1)
    nodes, sizes = _legendre()
    r, centre = (Enclosure(panels.high) - panels.low) * 0.5, (Enclosure(panels.low) + panels.high) * 0.5

    def errors(scale: float, ends: float) -> tuple[float, float]:
        # Lemma Q for the worse sign, of each sign
        each = len(law.signs) * np.exp(panels.log_error + MARGIN - scale)
        # |L - c|^2 <= 2 R^2 + 2 c^2
        square = each * (2 * law.farthest(panels) ** 2 + 2) * (1 + MARGIN)
        return float(each.sum()) * (1 + MARGIN), float(square.sum()) * (1 + MARGIN)

    return weigh_points(law, lam, top, centre[:, None] + r[:, None] * nodes, r[:, None] * sizes, edges, beyond, errors)


def weigh_points(
    law: DensityLaw,
    lam: float,
    top: float,
    v: Enclosure,
    widths: Enclosure,
    edges: tuple[float, ...],
    beyond: bool,
    errors: Callable[[float, float], tuple[float, float]],
) -> FloatRule:
    """Turn the points v of a rule into losses and tilted weights.

    `errors(scale, ends)` returns by how much the rule errs for all |u| <= top, and for squares, both divided by
    e^scale; `ends` is what lies beyond the edges.
    """
    loss, log_q = law.enclosed_point(v)
    exponents = {
        sign: log_q + loss * (Enclosure(1.0) + lam) if sign > 0 else log_q - loss * Enclosure(lam) for sign in law.signs
    }
    largest = (lam + 2) * float(np.abs(loss.mid).max()) + float(np.abs(log_q.mid).max()) + math.pi * top
    if not largest <= LARGEST:
        raise OverflowError("the numbers of one round are too large for floats")
    scale = max(float(each.mid.max()) for each in exponents.values())
    found = [(sign * loss.mid, loss.radius, widths * BOUNDED.exp(e - scale)) for sign, e in exponents.items()]
    losses = [np.concatenate([mid.ravel() for mid, _, _ in found]), np.concatenate([d.ravel() for _, d, _ in found])]
    weights = [np.concatenate([each.mid.ravel() for _, _, each in found])]
    weights.append(np.concatenate([each.radius.ravel() for _, _, each in found]))
    places = np.concatenate([v.mid.ravel()] * len(found))
    with BALLS.at(SETTINGS.ball_bits):
        down = (-BALLS.number(scale)).exp()
        atoms = law.tilted_atoms(BALLS.number(lam))
        ends = float((law.beyond(BALLS.number(lam), list(edges)) * down).upper()) if beyond else 0.0
        if atoms:
            x, mass = BOUNDED.of_balls(x for x, _ in atoms), BOUNDED.of_balls(mass * down for _, mass in atoms)
            losses = [np.concatenate([losses[0], x.mid]), np.concatenate([losses[1], x.radius])]
            weights = [np.concatenate([weights[0], mass.mid]), np.concatenate([weights[1], mass.radius])]
            places = np.concatenate([places, np.full(len(atoms), np.nan)])
    error, square = errors(scale, ends)
    return FloatRule(
        Enclosure(*losses), Enclosure(*weights), places, scale, error + math.nextafter(ends, math.inf), square
    )


@dataclass(frozen=True, slots=True)
class Total:
    """The mass of the tilted law: M(lam) e^-scale is within `relative` of `sum`.

    The error of the quadrature is not part of `relative`.
    """

    sum: float
    relative: float
    additions: float


def total(weights: Enclosure) -> Total:
    """Sum all weights; n terms in any order err by n u times the sum of their sizes."""
    additions = (weights.size + 8) * 1.01 * 2.0**-53
    whole = float(weights.mid.sum())
    relative = float(weights.radius.sum()) / whole * (1 + MARGIN) + additions if whole > 0 else math.inf
    if not relative < SETTINGS.widest_error:
        raise OverflowError("the mass of one round is not known in floats")
    return Total(whole, relative, additions)


@np.errstate(all="ignore")
def float_variation(law: DensityLaw, lam: float, low: float, high: float) -> float:
    """Return log of a bound of the total variation of the tilted densities (Lemma S3).

    The densities are those of L and -L, not normalised. Raises OverflowError if floats cannot hold the numbers.
    """
    found, largest = law.float_variation(lam, low, high)
    if not largest <= LARGEST:
        raise OverflowError("the numbers of one round are too large for floats")
    return found + MARGIN


@lru_cache(maxsize=1)
def _legendre() -> tuple[Enclosure, Enclosure]:
    """Return nodes and weights of the Gauss rule, each rounded once from its ball."""
    with BALLS.at(SETTINGS.ball_bits):
        points: list[Any] = legendre_balls(NODES, SETTINGS.ball_bits)
        nodes, weights = BOUNDED.of_balls(x for x, _ in points), BOUNDED.of_balls(w for _, w in points)
    assert nodes.size == NODES
    return nodes, weights
