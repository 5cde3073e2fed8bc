"""The worst pair of several (epsilon, delta) statements: its profile is a polygon."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import pairwise
from typing import Any

import numpy as np

from cumulant.numerics.arithmetic import BALLS, FLOATS, Arithmetic, Array
from cumulant.numerics.enclosure import BOUNDED
from cumulant.numerics.rounding import at_least
from cumulant.pairs.finite_losses import LossPair
from cumulant.pairs.pair import Pair

HULL_BITS = 512
"""Bits of the balls in which slopes are compared; neighbouring slopes may agree in all digits of a float."""


@dataclass(frozen=True, slots=True)
class PolygonPair(LossPair):
    """delta at epsilon >= 0 is linear in e^epsilon between corners, constant after the last.

    The last delta is the leak. The corners are convex (`convex_corners` makes them so). At each the slope jumps by the
    Q-mass; before the first it is that of the chord to the mirror image of the first corner, y -> (1/y, 1 - (1 -
    delta)/y), unless that is at epsilon = 0.
    """

    epsilons: tuple[Fraction, ...]
    deltas: tuple[Fraction, ...]
    attained: bool = True
    bounded: bool = False

    @property
    def promise(self) -> bool:
        return True

    @property
    def leak(self) -> Fraction:
        return self.deltas[-1]

    def losses(self, on: Arithmetic) -> tuple[Array, Array]:
        # searches over orders ask for floats thousands of times; those of 65 corners take 6 ms
        return _float_losses(self) if on is FLOATS else self._losses(on)

    def _losses(self, on: Arithmetic) -> tuple[Array, Array]:
        x = on.asarray([epsilon for epsilon in self.epsilons if epsilon])
        if not len(x):
            return x, x
        with BALLS.at(max(HULL_BITS, on.precision())):
            # slopes of neighbours may agree in all digits of a float
            log_p = [jump.log() + BALLS.number(e) for e, jump in zip(self.epsilons, self._jumps(), strict=True) if e]
        if on.exact:
            return x, np.array(log_p, dtype=object)
        return x, BOUNDED.of_balls(log_p) if on.enclosing else np.array([float(each.mid()) for each in log_p])

    def _jumps(self) -> list[Any]:
        """Return the Q-mass at each corner: the jump of the slope of delta in e^epsilon."""
        y = [BALLS.number(epsilon).exp() for epsilon in self.epsilons]
        # before the first: (1 - (1-d)/y - d) / (y - 1/y) = (1-d) / (y + 1)
        falls = [BALLS.number(1 - self.deltas[0]) / (y[0] + 1)]
        for i in range(1, len(y)):
            falls.append(BALLS.number(self.deltas[i - 1] - self.deltas[i]) / (y[i] - y[i - 1]))
        falls.append(BALLS.number(0))
        return [before - after for before, after in pairwise(falls)]

    def exact_unit(self) -> Fraction | None:
        whole = math.lcm(*(epsilon.denominator for epsilon in self.epsilons))
        return Fraction(math.gcd(*(int(epsilon * whole) for epsilon in self.epsilons)), whole) or None

    @property
    def equal(self) -> float:
        """The mass where p = q: 1 - leak - SUM q (1 + e^x)."""
        with BALLS.at(HULL_BITS):
            x, log_p = self.losses(BALLS)
            total = BALLS.number(1 - self.leak)
            for each, log_mass in zip(x, log_p, strict=True):
                total = total - log_mass.exp() * (1 + (-each).exp())
            return max(float(total.upper()), 0.0)


@lru_cache(maxsize=64)
def _float_losses(pair: PolygonPair) -> tuple[Array, Array]:
    """Return the losses and the logarithms of their P-masses in floats, read-only."""
    x, log_p = pair._losses(FLOATS)
    x.flags.writeable = log_p.flags.writeable = False
    return x, log_p


def convex_corners(
    epsilons: Sequence[Fraction], deltas: Sequence[Fraction]
) -> tuple[tuple[Fraction, ...], tuple[Fraction, ...]]:
    """Return the corners of the lower convex hull in y = e^epsilon of points and mirror images.

    The direction (+1, 0) belongs to the hull too: the profile is convex and does not rise. A statement about delta at
    epsilon is one about 1 - (1 - delta) / y at -epsilon.
    """
    best: dict[Fraction, Fraction] = {}
    for epsilon, delta in zip(epsilons, deltas, strict=True):
        best[epsilon] = min(delta, best.get(epsilon, delta))
    points: list[tuple[Fraction, Fraction]] = []
    for epsilon in sorted(best):
        if not points or best[epsilon] < points[-1][1]:
            points.append((epsilon, best[epsilon]))
    with BALLS.at(HULL_BITS):
        mirrored = [(1 / _exp(e), 1 - (1 - BALLS.number(d)) / _exp(e), None) for e, d in reversed(points) if e]
        here = [(_exp(e), BALLS.number(d), (e, d)) for e, d in points]
        kept: list[Any] = []
        for point in [*mirrored, *here]:
            while len(kept) > 1 and not _below(kept[-2], kept[-1], point):
                kept.pop()
            kept.append(point)
    found = [origin for _, _, origin in kept if origin is not None]
    return tuple(e for e, _ in found), tuple(d for _, d in found)


def _exp(epsilon: Fraction) -> Any:
    return BALLS.number(epsilon).exp()


def _below(a: Any, b: Any, c: Any) -> bool:
    """True if b lies strictly below the chord from a to c."""
    return bool((b[1] - a[1]) * (c[0] - a[0]) < (c[1] - a[1]) * (b[0] - a[0]))


def profile_above(pair: Pair, epsilons: Sequence[Fraction]) -> list[Fraction]:
    """Return fractions not below the profile of a pair at these epsilons."""
    with BALLS.at(128):
        return [min(max(at_least(pair.profile(x, BALLS).upper()), Fraction(0)), Fraction(1)) for x in epsilons]
