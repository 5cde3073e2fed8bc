"""Rényi divergence from the privacy profile: any mechanism with a pair, every real order.

Sampling turns the profile d into d'(eps) = g d(log(1 + (e^eps - 1)/g)) (Lemma 3 used at every eps), which is the
profile of an explicit symmetric pair; K is the cumulant generating function of that pair.
"""

from __future__ import annotations

from fractions import Fraction

from cumulant.curves.curve import Curve
from cumulant.errors import HypothesisError
from cumulant.pairs.pair import Pair


def profile(pair: Pair, rate: Fraction) -> Curve:
    """K = log1p of E_Q[(w^lambda - 1)(w - w^-lambda); p > q], w = 1 - g + g p/q: no integers, no factor 4.

    Proved for every mechanism that the pair dominates. A pair that is not symmetric enters through the larger of its
    two profiles (for densities: through their sum, unless one leads throughout).

    >>> from cumulant.pairs.gaussian import GaussianPair
    >>> profile(GaussianPair(Fraction(1)), Fraction(1, 1000)).rdp([2, 2.5, 64])
    array([2.91078489e-06, 3.63858964e-06, 2.49825978e+01])
    """
    curve = pair.amplified()
    if curve is None:
        raise HypothesisError(f"the law of the loss of {type(pair).__name__} is not known in both directions together")
    return curve(rate)
