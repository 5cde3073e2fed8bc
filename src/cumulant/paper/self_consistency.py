"""Self-consistency (Definition 26), checked at the vertices of a polytope.

The paper's remark suggests this.

Theorem 27 reads even |chi| moments off a Rényi curve: B(l) = Delta^(l)[e^{(.-1) eps(.)}](0). That is the moment of a pair only
if one pair attains the curve at every order up to l; a curve that is the largest of several pairs has differences that
belong to none of them, and B may be too small or negative (E-17).

For noise that is independent in each coordinate and a query whose differences f(X) - f(X') fill a polytope, K of a shift v is
the sum of the K of its coordinates. Each is convex and even in its coordinate for the Gaussian and the Laplace law, so K is
largest at a vertex, and the curve is the largest over the vertices. What is checked is whether the curve's B(l) covers the
moment of each vertex.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import reduce
from typing import Any

import numpy as np

from cumulant.domains import POSITIVE, Exact, Number
from cumulant.errors import HypothesisError, InputError
from cumulant.mechanisms.mechanism import Mechanism
from cumulant.numerics.arithmetic import BALLS, Array
from cumulant.numerics.differences import leading_differences
from cumulant.pairs.pair import Pair

Noise = Callable[[Exact], Mechanism]
"""The mechanism that adds the noise of one coordinate to a number that moves by this much."""

_BITS = 2048


def self_consistency(noise: Sequence[Noise], vertices: Sequence[Sequence[Number]], highest: int) -> dict[int, float]:
    """Return the largest E_q (p/q - 1)^l of a vertex over B(l) of the curve.

    For even l up to `highest`; above 1 is inconsistent.

    A curve with a ratio above 1, infinite where B(l) is not even positive, must not be used in Theorem 27.

    >>> import cumulant as cm
    >>> laplace = [lambda t: cm.Laplace(scale=1, sensitivity=t)] * 2
    >>> self_consistency(laplace, [(1, 0), (0, 1), (-1, 0), (0, -1)], 6)  # L1 sensitivity 1 in the plane
    {2: 1.0, 4: 1.0, 6: 1.0}
    >>> mixed = [lambda t: cm.Laplace(scale=1, sensitivity=t), lambda t: cm.Gaussian(sigma="1.56", sensitivity=t)]
    >>> found = self_consistency(mixed, [(1, 0), (0, 1)], 6)  # the worst coordinate depends on the order
    >>> found[2], found[4] > 1.9  # Theorem 27 would use about half of a moment that is attained
    (1.0, True)
    """
    if highest < 2 or not vertices:
        raise InputError(f"highest={highest} must be an order of at least 2, and there must be a vertex")
    with BALLS.at(_BITS):
        moments = [_moments(noise, vertex, highest) for vertex in vertices]
        curve = reduce(BALLS.maximum, moments)
        of_curve = leading_differences(curve, BALLS)
        of_vertices = [leading_differences(each, BALLS) for each in moments]
        found = {}
        for order in range(2, highest + 1, 2):
            largest = reduce(BALLS.maximum, [each[order] for each in of_vertices])
            positive = bool(of_curve[order] > 0)
            ratio = float(largest / of_curve[order]) if positive else math.inf
            found[order] = ratio if largest > 0 else 1.0
        return found


def _moments(noise: Sequence[Noise], vertex: Sequence[Number], highest: int) -> Array:
    """Return M_i = E_q (p/q)^i for i = 0 … highest at this vertex, as balls; M_0 = M_1 = 1.

    See E-17.
    """
    if len(vertex) != len(noise):
        raise InputError(f"a vertex of {len(vertex)} coordinates needs as many noises, not {len(noise)}")
    lam = np.array(range(1, highest), dtype=object)
    cgf: Any = BALLS.asarray(lam * 0)
    for law, shift in zip(noise, vertex, strict=True):
        size = abs(Exact(shift))
        if size:
            cgf = cgf + _pair(law(POSITIVE.check("shift", Exact(size)))).curve().cgf(lam, BALLS)
    return np.concatenate([BALLS.asarray([1, 1]), BALLS.exp(cgf)])


def _pair(mechanism: Mechanism) -> Pair:
    pair = mechanism.pair()
    if pair is None:
        raise HypothesisError(f"{mechanism} has no pair of output laws, whose moments could be compared")
    return pair
