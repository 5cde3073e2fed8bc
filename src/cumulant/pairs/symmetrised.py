"""The one symmetric pair that has the larger of both profiles of a finite pair."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction

from cumulant.numerics.rationals import Quotient, by_size, common
from cumulant.pairs.atoms import AtomLaw


@dataclass(slots=True)
class _Line:
    """H(v) = SUM (x - v y)_+ between two ratios: X - v Y, sums over what has a larger ratio."""

    x: int
    y: int


def symmetrised(p: Sequence[Fraction], q: Sequence[Fraction]) -> AtomLaw:
    """The law of the ratio whose profile is max(H(P||Q), H(Q||P)) for epsilon >= 0, in exact arithmetic.

    Both are convex and piecewise linear in v = e^epsilon, so is their maximum; its slope jumps by the mass of v.

    >>> symmetrised((Fraction(3, 4), Fraction(1, 4)), (Fraction(1, 4), Fraction(3, 4)))
    AtomLaw(masses=(Fraction(1, 4),), ratios=(Fraction(3, 1),), leak=Fraction(0, 1), equal=Fraction(0, 1))
    """
    numerators, whole = common((*p, *q))
    pairs = list(zip(numerators[: len(p)], numerators[len(p) :], strict=True))
    pieces = list(_pieces(pairs))
    bends = [(at, before - after) for (_, before), (at, after) in itertools.pairwise(pieces) if before > after]
    distance = sum(x - y for x, y in pairs if x > y)
    # SUM mass is the slope at 1, SUM mass (v - 1) + leak the distance, and P is the leak and SUM mass (v + 1), elsewhere Q
    equal = whole - distance - 2 * pieces[0][1]
    leak = max(sum(x for x, y in pairs if not y), sum(y for x, y in pairs if not x))
    return AtomLaw(
        tuple(Fraction(mass, whole) for _, mass in bends),
        tuple(Fraction(*at) for at, _ in bends),
        Fraction(leak, whole),
        Fraction(equal, whole),
    )


def _pieces(pairs: Sequence[Quotient]) -> Iterator[tuple[Quotient, int]]:
    """Where each straight piece of the maximum starts, from v = 1 on, and its slope without the sign."""
    sides = [(pair for pair in pairs if pair[0] > pair[1]), ((y, x) for x, y in pairs if y > x)]
    above = [list(side) for side in sides]
    there, back = (_Line(sum(x for x, _ in side), sum(y for _, y in side)) for side in above)
    corners = [(ratio, line) for side, line in zip(above, (there, back), strict=True) for ratio in side if ratio[1]]
    order = by_size([ratio for ratio, _ in corners])
    at, gap = (1, 1), 0  # both directions have the same total variation distance
    for _, group in itertools.groupby(order, key=lambda entry: entry[0]):
        places = [place for _, place in group]
        following = corners[places[0]][0]
        # the two lines hold as far as the next corner, and may cross once on the way
        then = (there.x - back.x) * following[1] - following[0] * (there.y - back.y)
        leads, trails = (there, back) if (gap or then) > 0 else (back, there)
        yield at, leads.y
        if gap * then < 0:
            yield (abs(there.x - back.x), abs(there.y - back.y)), trails.y
        for place in places:
            (x, y), line = corners[place]
            line.x, line.y = line.x - x, line.y - y
        at, gap = following, then
    yield at, 0
