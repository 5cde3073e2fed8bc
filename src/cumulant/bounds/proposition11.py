"""Proposition 11: what the pair (1-g)Q + gP against Q proves from below, at every real order.

Data sets x … x x' and x … x x: the sample contains the odd record with probability g, so the output laws are
(1-g)Q + gP and Q. Whatever bound is claimed, it cannot be below the Rényi divergence of this pair (E-12).
"""

from __future__ import annotations

from fractions import Fraction

from cumulant.curves.curve import Curve
from cumulant.errors import HypothesisError
from cumulant.pairs.pair import Pair


def proposition11(pair: Pair, rate: Fraction) -> Curve:
    """The Rényi divergence of (1-g)Q + gP against Q, the larger of both directions of the pair; +inf where its integral is
    out of reach.

    A lower bound for every mechanism of the class that the pair describes, at every real order, KL and pure included; with
    a symmetric pair it is all of a Poisson sample.

    >>> from cumulant.pairs.gaussian import GaussianPair
    >>> proposition11(GaussianPair(Fraction(1)), Fraction(1, 1000)).rdp([2, 2.5])
    array([1.71828035e-06, 2.15074243e-06])
    """
    curve = pair.dominated.mixed()
    if curve is None:
        raise HypothesisError(f"the law of the loss of {type(pair).__name__} is not known")
    return curve(rate)
