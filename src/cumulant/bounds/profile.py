"""Rényi divergence from the privacy profile: any mechanism with a pair, every real order.

Sampling turns the profile d into d'(eps) = g d(log(1 + (e^eps - 1)/g)) (Lemma 3 used at every eps), which is the
profile of an explicit symmetric pair; K is the cumulant generating function of that pair.
"""

from __future__ import annotations

import itertools
from fractions import Fraction
from functools import lru_cache

from cumulant.bounds.densities import SampledDensities, one_direction_leads
from cumulant.bounds.kernels import PROFILE
from cumulant.bounds.laws import AtomLaw, Law
from cumulant.bounds.lower import laws
from cumulant.bounds.sampled import SampledPair
from cumulant.curves.curve import Curve
from cumulant.curves.density import DensityPair
from cumulant.curves.discrete import DiscretePair
from cumulant.curves.pair import Pair
from cumulant.errors import HypothesisError


def profile(pair: Pair | None, rate: Fraction) -> Curve:
    """K = log1p of E_Q[(w^lambda - 1)(w - w^-lambda); p > q], w = 1 - g + g p/q: no integers, no factor 4.

    Proved for every mechanism that the pair dominates. A pair that is not symmetric enters through the larger of its
    two profiles (for densities: through their sum, unless one leads throughout). Rate 1 is the base.

    >>> from cumulant.curves.gaussian import GaussianPair
    >>> profile(GaussianPair(Fraction(1)), Fraction(1, 1000)).rdp([2, 2.5, 64])
    array([2.91078489e-06, 3.63858964e-06, 2.49825978e+01])
    """
    if pair is None:
        raise HypothesisError("profile needs a dominating pair, and this mechanism carries none")
    if rate == 1:
        return pair.curve()
    if isinstance(pair, DensityPair):
        return SampledDensities(pair, rate, PROFILE, added=not one_direction_leads(pair))
    return SampledPair(_law(pair), pair.curve(), rate, PROFILE)


def _law(pair: Pair) -> Law:
    return symmetrised(pair.p, pair.q) if isinstance(pair, DiscretePair) else laws(pair)[0]


@lru_cache(maxsize=64)
def symmetrised(p: tuple[Fraction, ...], q: tuple[Fraction, ...]) -> AtomLaw:
    """The law of the ratio whose profile is max(H(P||Q), H(Q||P)) for eps >= 0.

    Both are convex and piecewise linear in v = e^eps, so is their maximum; its slope jumps by the mass of v.

    >>> symmetrised((Fraction(3, 4), Fraction(1, 4)), (Fraction(1, 4), Fraction(3, 4)))
    AtomLaw(masses=(Fraction(1, 4),), ratios=(Fraction(3, 1),), unbounded=False)
    """
    directions = [_hockey_stick(p, q), _hockey_stick(q, p)]
    knots = sorted({Fraction(1)} | {v for masses, _ in directions for v in masses})
    values = [_heights(masses, alone, knots) for masses, alone in directions]
    points: list[tuple[Fraction, Fraction]] = []
    for k, v in enumerate(knots):
        points.append((v, max(values[0][k], values[1][k])))
        if k + 1 < len(knots):
            gap, next_gap = values[0][k] - values[1][k], values[0][k + 1] - values[1][k + 1]
            if gap * next_gap < 0:  # the two lines cross inside the interval
                share = gap / (gap - next_gap)
                height = values[0][k] + share * (values[0][k + 1] - values[0][k])
                points.append((v + share * (knots[k + 1] - v), height))
    slopes = [(h1 - h0) / (v1 - v0) for (v0, h0), (v1, h1) in itertools.pairwise(points)] + [Fraction(0)]
    atoms = [(slopes[k] - slopes[k - 1], points[k][0]) for k in range(1, len(points)) if slopes[k] != slopes[k - 1]]
    return AtomLaw(
        tuple(mass for mass, _ in atoms),
        tuple(v for _, v in atoms),
        unbounded=any(alone > 0 for _, alone in directions),
    )


def _hockey_stick(p: tuple[Fraction, ...], q: tuple[Fraction, ...]) -> tuple[dict[Fraction, Fraction], Fraction]:
    """The q-mass of each ratio p/q > 1, and the p-mass where q = 0."""
    masses: dict[Fraction, Fraction] = {}
    alone = Fraction(0)
    for x, y in zip(p, q, strict=True):
        if x > y > 0:
            masses[x / y] = masses.get(x / y, Fraction(0)) + y
        elif y == 0:
            alone += x
    return masses, alone


def _heights(masses: dict[Fraction, Fraction], alone: Fraction, knots: list[Fraction]) -> list[Fraction]:
    """sum of mass * (ratio - v)_+ at each knot v, from the right: the height grows by the mass so far per unit of v."""
    heights, height, mass, previous = [], alone, Fraction(0), knots[-1]
    for v in reversed(knots):
        height += mass * (previous - v)
        mass += masses.get(v, Fraction(0))
        previous = v
        heights.append(height)
    return heights[::-1]
