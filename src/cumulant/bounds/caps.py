"""Bounds in closed form at every real order: joint convexity and Lemma 3 (E-11).

Joint convexity needs no symmetry at all.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from cumulant.bounds.binomial_sum import Amplified
from cumulant.curves.closed_form import lemma3, response_cgf, response_kl
from cumulant.curves.curve import Curve, Lowest
from cumulant.numerics.arithmetic import FLOATS, Arithmetic, Array, Scalar


@dataclass(frozen=True, slots=True)
class JointConvexity(Amplified):
    """E-11 (ii): e^{K'(lambda)} <= 1 + g (e^{K(lambda)} - 1), every real lambda > 0.

    The two laws of the sampled mechanism share the part where the sample misses the record, and (p, q) -> p^a q^{1-a} is
    jointly convex.
    """

    def _cgf(self, lam: Array, on: Arithmetic) -> Array:
        return lemma3(self.base.cgf(lam, on), on.number(self.rate), on)

    def kl(self, on: Arithmetic = FLOATS) -> Scalar:
        return on.number(self.rate) * self.base.at_one(on)


@dataclass(frozen=True, slots=True)
class PureCap(Amplified):
    """E-11 (i): eps'(a) <= log(1 + g E), Lemma 3 at order infinity.

    It holds at every order, because the Rényi divergence grows with the order.
    """

    def _cgf(self, lam: Array, on: Arithmetic) -> Array:
        return on.asarray(lam) * self.pure(on)

    def kl(self, on: Arithmetic = FLOATS) -> Scalar:
        return self.pure(on)


@dataclass(frozen=True, slots=True)
class WorstPure(Amplified):
    """Lemma 3, then the worst log(1 + g E)-DP mechanism: randomized response (Bun, Steinke)."""

    def _cgf(self, lam: Array, on: Arithmetic) -> Array:
        return response_cgf(self.pure(on), lam, on)

    def kl(self, on: Arithmetic = FLOATS) -> Scalar:
        return response_kl(self.pure(on), on)


def caps(base: Curve, rate: Fraction) -> Curve:
    """Joint convexity, and Lemma 3 at order infinity where the mechanism is pure."""
    joint = JointConvexity(base, rate)
    return Lowest((joint, PureCap(base, rate))) if base.pure() < np.inf else joint
