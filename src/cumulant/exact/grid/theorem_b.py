"""Theorem B on grids: composed sampled Gaussians through a cone of test functions.

f(rho) = (rho + 1) log rho - 2 (rho - 1) for rho > 1; E U(ratio) <= E U under the reference for U = f(y / y0), so

    delta(eps) <= C(R) E_P[ g(S - eps0); S > eps0 ],   g(d) = (1 + e^-d) d - 2 (1 - e^-d),   R = e^{eps - eps0},
    C(R) = max over rho > R of (rho - R) / f(rho).
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from cumulant.exact.grid.fft import FAR, ComposedLaw
from cumulant.exact.test_functions import theorem_b_constants
from cumulant.numerics.arithmetic import Array

_SERIES = 0.25
"""Gap below which series replace formulas that cancel; derived: 14 terms give all digits there."""

# Distances of eps0 below epsilon, in quarters of 1/lam; every eps0 is valid.

_NEAREST = 3
"""Smallest distance that is tried; chosen by hand."""

_MOSTLY = 8
"""Distance at which the search begins; measured: it is mostly near the best."""

_FARTHEST = 16
"""Largest distance that is tried; chosen by hand."""


def test_function(gap: Array) -> Array:
    """Return g(d) = e^-d f(e^d) at increasing d >= 0, without cancellation.

    (1 + e^-d) d - 2 (1 - e^-d) = d^3/6 - …
    """
    near = int(np.searchsorted(gap, _SERIES))
    small, large = gap[:near], gap[near:]
    series = np.zeros_like(small)
    for n in range(14, 2, -1):  # sum over n >= 3 of (-1)^{n+1} (n - 2) d^n / n!
        series *= small
        series += (1 if n % 2 else -1) * (n - 2) / math.factorial(n)
    return np.concatenate([series * small**3, (1 + np.exp(-large)) * large + 2 * np.expm1(-large)])


def log_expectation(sums: ComposedLaw, epsilon: float, tail: float) -> float:
    """Return log of an upper bound on E_P[g(S - eps0); S > eps0].

    e^tail bounds the contribution of losses beyond the grid at eps0 >= 0. Returns +inf if the grid says nothing at eps0.
    """
    if epsilon < sums.start:
        return math.inf
    lam = sums.lam
    gap, weight = sums.points_above(epsilon)
    total = float(np.sum(weight * test_function(gap)))
    # the weights are at most d e^{-lam d}: their maximum is 1/(e lam), the integral of their square 1/(4 lam^3)
    peak = 1 / (math.e * lam)
    total += sums.outside * peak + sums.noise * math.sqrt(peak**2 + 1 / (4 * lam**3 * sums.width))
    total += 2 * math.exp(-FAR) * FAR / lam
    if not total > 0:
        return math.inf
    return float(np.logaddexp(sums.remove_tilt(total, epsilon), tail + math.log1p(max(-epsilon, 0.0))))


def log_constant(log_ratio: float) -> float:
    """Return log C(R) at R = e^log_ratio > 1, rounded up."""
    low, high = log_ratio, 3 * log_ratio + 1  # d is 3/2 log R for R near 1, log R + log log R far out
    gap = min(1.5 * log_ratio, high)
    for _ in range(100):  # R grows with d
        found = float(theorem_b_constants(gap)[0])
        if abs(found - log_ratio) <= 1e-14 * log_ratio:
            break
        low, high = (gap, high) if found < log_ratio else (low, gap)
        after = gap * log_ratio / found
        gap = after if low < after < high else (low + high) / 2
    # log R is known to a few units of its larger summands, and C falls like the square of it near 1
    return float(theorem_b_constants(gap)[1]) + 1e-12 + 4e-15 / log_ratio


def least_epsilon(expectation: Callable[[float], float], log_delta: float, lam: float, start: float) -> float:
    """Return the smallest epsilon over eps0 at which Theorem B gives this delta.

    Every eps0 is valid.
    """

    def epsilon_at(gap: float) -> float:
        eps0 = start - gap / lam
        wanted = log_delta - expectation(eps0)  # log C(R) must not exceed it
        if not math.isfinite(wanted):
            return math.inf
        return eps0 + _inverse(wanted, gap / lam)

    found = {gap: epsilon_at(gap) for gap in (1.0, 1.6, 2.2, 3.0, 4.0)}
    for width in (0.6, 0.6, 0.6, 0.3, 0.1, 0.03):  # with few rounds the best one may be far from where it mostly is
        best = min(found, key=lambda gap: found[gap])
        if width < 0.6 or best in (min(found), max(found)):
            found |= {gap: epsilon_at(gap) for gap in (best / (1 + width), best * (1 + width))}
    return min(found.values())


def log_delta(expectation: Callable[[float], float], epsilon: float, lam: float) -> float:
    """Return log of the smallest bound on delta over some eps0 below this epsilon.

    The search runs downhill from the eps0 that is usually best.
    """
    found: dict[int, float] = {}

    def log_delta_at(place: int) -> float:
        if place not in found:
            gap = place / (4 * lam)
            found[place] = log_constant(gap) + expectation(epsilon - gap)
        return found[place]

    best, before = _MOSTLY, 0
    while best != before:
        before = best
        best = min(
            (max(best - 1, _NEAREST), best, min(best + 1, _FARTHEST)), key=log_delta_at
        )  # infinite ones far from epsilon
    return log_delta_at(best)


def _inverse(log_value: float, guess: float) -> float:
    """Return a log R, nearly the smallest, with C(R) <= e^log_value.

    C falls in R, about like a power of log R.
    """
    where, value, slope = math.log(guess), log_constant(guess), -2.0
    for _ in range(30):
        move = (log_value - value) / slope
        if abs(move) <= 1e-12:
            break
        after = log_constant(math.exp(where + move))
        if math.isfinite(after) and after != value:
            slope = min((after - value) / move, -0.1)
        where, value = where + move, after
    move = 1e-12
    while not value <= log_value:
        where, move = where + move, 2 * move
        value = log_constant(math.exp(where))
    return math.exp(where)
