"""Proposition 11: what the pair (1-g)Q + gP against Q proves from below, at every real order.

Data sets x … x x' and x … x x: the sample contains the odd record with probability g, so the output laws are
(1-g)Q + gP and Q. Whatever bound is claimed, it cannot be below the Rényi divergence of this pair (E-12).
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import reduce
from typing import Any

from cumulant.curves.curve import Curve
from cumulant.errors import HypothesisError
from cumulant.numerics.arithmetic import FLOATS, Arithmetic, Array, Scalar
from cumulant.pairs.densities import DensityPair
from cumulant.pairs.gaussian import GaussianPair
from cumulant.pairs.laplace import LaplacePair
from cumulant.pairs.laws import AtomLaw, GaussianLaw, LaplaceLaw, Law, ResponseLaw
from cumulant.pairs.masses import Direction, DiscretePair
from cumulant.pairs.mixing import PAIR
from cumulant.pairs.pair import Pair
from cumulant.pairs.response import ResponsePair
from cumulant.pairs.sampled import SampledPair
from cumulant.pairs.sampled_densities import SampledDensities


@dataclass(frozen=True, slots=True)
class Highest(Curve):
    """The pointwise maximum of the exact curves of several pairs: what holds for the worst of them."""

    curves: tuple[Curve, ...]

    enclosed = True

    def _cgf(self, lam: Array, on: Arithmetic) -> Array:
        return self._largest([curve.cgf(lam, on) for curve in self.curves], on)

    def kl(self, on: Arithmetic = FLOATS) -> Scalar:
        return self._largest([curve.at_one(on) for curve in self.curves], on)

    def pure(self, on: Arithmetic = FLOATS) -> Scalar:
        return self._largest([curve.at_infinity(on) for curve in self.curves], on)

    def _largest(self, values: list[Any], on: Arithmetic) -> Any:
        # of two balls the one that ends higher contains the larger value; what is unknown of one is unknown of both
        return reduce(on.maximum, values)


def proposition11(pair: Pair, rate: Fraction) -> Curve:
    """The Rényi divergence of (1-g)Q + gP against Q, the larger of both directions of the pair; +inf where its integral is
    out of reach.

    A lower bound for every mechanism of the class that the pair describes, at every real order, KL and pure included; with
    a symmetric pair it is all of a Poisson sample.

    >>> proposition11(GaussianPair(Fraction(1)), Fraction(1, 1000)).rdp([2, 2.5])
    array([1.71828035e-06, 2.15074243e-06])
    """
    if isinstance(pair, DensityPair):
        return SampledDensities(pair, rate, PAIR, added=False)
    curves = tuple(SampledPair(law, pair.curve(), rate, PAIR) for law in laws(pair))
    return curves[0] if len(curves) == 1 else Highest(curves)


def laws(pair: Pair) -> tuple[Law, ...]:
    """The law of the loss log(p/q) under Q; for a pair that is not symmetric also that of log(q/p) under P."""
    match pair:
        case GaussianPair():
            return (GaussianLaw(pair.shift),)
        case LaplacePair():
            return (LaplaceLaw(pair.shift),)
        case ResponsePair():
            return (ResponseLaw(pair.curve()),)
        case DiscretePair():
            return tuple(atom_law(direction) for direction in pair.directions())
    raise HypothesisError(f"the law of the loss of {type(pair).__name__} is not known")


def atom_law(direction: Direction) -> AtomLaw:
    """The law of p/q under q."""
    seen = [(0, direction.missing)] * bool(direction.missing) + direction.points
    masses, ratios = (Fraction(y, direction.whole) for _, y in seen), (Fraction(x, y) for x, y in seen)
    return AtomLaw(tuple(masses), tuple(ratios), unbounded=direction.alone > 0)
