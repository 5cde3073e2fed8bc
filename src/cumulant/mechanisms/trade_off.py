"""Any mechanism with a piecewise linear trade-off function."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import field
from fractions import Fraction
from itertools import pairwise
from typing import TYPE_CHECKING

from cumulant.curves.curve import Curve
from cumulant.domains import PROBABILITY, Exact, Several
from cumulant.errors import InputError
from cumulant.mechanisms.mechanism import Mechanism, register
from cumulant.pairs.pair import Pair
from cumulant.parameters import Reals, parameter

if TYPE_CHECKING:
    from cumulant.pairs.finite import DiscretePair

Vertex = tuple[Fraction, Fraction]


@register
class TradeOff(Mechanism):
    """Any mechanism whose trade-off function is at least a convex polygon, at every alpha.

    These are the vertices of the polygon.

    alpha is the false positive rate of a test between neighbours and beta the least false negative rate. The polygon goes from
    alpha = 0 to a vertex with beta = 0; a list of points on a smooth curve is not such a promise, because chords lie above a
    convex curve. For neighbours in both orders it and its inverse hold. See docs/mechanisms/promises.md.

    >>> TradeOff(alphas=[0, "1/4", 1], betas=[1, "1/4", 0]).epsilon(delta=0)
    1.09861
    """

    alphas: Reals = parameter(Several(PROBABILITY))
    betas: Reals = parameter(Several(PROBABILITY))
    laws: DiscretePair = field(init=False)

    def _validate(self) -> None:
        if len(self.alphas) != len(self.betas):
            raise InputError(
                f"alphas and betas must have the same length, not {len(self.alphas)} and {len(self.betas)}"
            )
        vertices = [(Fraction(a), Fraction(b)) for a, b in zip(self.alphas, self.betas, strict=True)]
        _check(vertices)
        from cumulant.pairs.finite import DiscretePair

        object.__setattr__(self, "laws", DiscretePair(*_laws(_symmetric(vertices))))

    def key(self) -> Hashable:
        return self.laws

    def own_curve(self, bound: str) -> Curve:
        return self.laws.curve()

    def pair(self) -> Pair:
        return self.laws


def _check(vertices: list[Vertex]) -> None:
    """Raise InputError if this is no polygon that a trade-off function can have."""
    for i, ((a, b), (c, d)) in enumerate(pairwise(vertices)):
        if not (a < c and b >= d):
            raise InputError(
                f"alphas must increase and betas not rise, unlike vertex {i + 1}, ({Exact(c)}, {Exact(d)})"
            )
    if vertices[0][0] != 0:
        raise InputError(f"alphas[0]={Exact(vertices[0][0])} must be 0: the polygon is promised at every alpha")
    if vertices[-1][1] != 0:
        raise InputError(f"betas[-1]={Exact(vertices[-1][1])} must be 0: the polygon is promised at every alpha")
    for i, ((a, b), (c, d), (e, f)) in enumerate(zip(vertices, vertices[1:], vertices[2:], strict=False)):
        if (d - b) * (e - c) > (f - d) * (c - a):
            raise InputError(
                f"the polygon is not convex at vertex {i + 1}, ({Exact(c)}, {Exact(d)}); give its lower convex hull"
            )
    if any(a + b > 1 for a, b in vertices):
        raise InputError("alpha + beta must be at most 1: no test is worse than a coin")


def _symmetric(vertices: list[Vertex]) -> list[Vertex]:
    """Return the larger of the polygon and its inverse.

    A mechanism has to obey it for neighbours in both orders.
    """
    inverse = sorted((b, a) for a, b in vertices)
    places = {a for a, _ in vertices} | {a for a, _ in inverse}
    lines = [_segments(vertices), _segments(inverse)]
    for x0, x1, y0, y1 in lines[0]:
        for u0, u1, v0, v1 in lines[1]:  # where two segments cross
            one, other = (y1 - y0) / (x1 - x0), (v1 - v0) / (u1 - u0)
            if one != other:
                x = (v0 - y0 + one * x0 - other * u0) / (one - other)
                if max(x0, u0) < x < min(x1, u1):
                    places.add(x)
    found = [(x, max(_value(vertices, x), _value(inverse, x))) for x in sorted(places) if x <= 1]
    last = next(i for i, (_, b) in enumerate(found) if b == 0)
    return found[: last + 1]


def _segments(vertices: list[Vertex]) -> list[tuple[Fraction, Fraction, Fraction, Fraction]]:
    return [(a, c, b, d) for (a, b), (c, d) in pairwise(vertices) if a < c]


def _value(vertices: list[Vertex], x: Fraction) -> Fraction:
    """Return the polygon at x; 0 behind its end, and its largest value where it drops."""
    for x0, x1, y0, y1 in _segments(vertices):
        if x0 <= x <= x1:
            return y0 + (x - x0) * (y1 - y0) / (x1 - x0)
    return Fraction(0)


def _laws(vertices: list[Vertex]) -> tuple[tuple[Fraction, ...], tuple[Fraction, ...]]:
    """Return two laws, with each edge as an output.

    Its Q-mass is the step in alpha, its P-mass the fall of beta; the drop at 0 is P's alone.
    """
    p = [1 - vertices[0][1], *(b - d for (_, b), (_, d) in pairwise(vertices)), Fraction(0)]
    q = [Fraction(0), *(c - a for (a, _), (c, _) in pairwise(vertices)), 1 - vertices[-1][0]]
    return tuple(p), tuple(q)
