"""Theorem B: the k-fold composition of sampled Gaussians through a cone of test functions that the pair maximises.

f(rho) = (rho + 1) log rho - 2 (rho - 1) for rho > 1; E U(ratio) <= E U under the reference for U = f(y / y0), so

    delta(eps) <= C(R) E_P[ g(S - eps0); S > eps0 ],   g(d) = (1 + e^-d) d - 2 (1 - e^-d),   R = e^{eps - eps0},
    C(R) = max over rho > R of (rho - R) / f(rho).
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from cumulant.exact.cells import UNIT
from cumulant.exact.lattice import Composed
from cumulant.numerics.arithmetic import Array

_FAR = 60.0


def test_function(gap: Array) -> Array:
    """g(d) = e^-d f(e^d), without cancellation: (1 + e^-d) d - 2 (1 - e^-d) = d^3/6 - …"""
    small = np.minimum(gap, 0.5)
    # sum over n >= 3 of (-1)^{n+1} (n - 2) d^n / n!
    series = np.zeros_like(small)
    for n in range(17, 2, -1):
        series = series * small + (1 if n % 2 else -1) * (n - 2) / math.factorial(n)
    return np.where(gap < 0.5, series * small**3, (1 + np.exp(-gap)) * gap + 2 * np.expm1(-gap))


def log_expectation(sums: Composed, epsilon: float, tail: float) -> float:
    """log of an upper bound of E_P[g(S - eps0); S > eps0]; `tail` bounds what losses beyond the grid contribute."""
    if epsilon < sums.start:
        return math.inf
    lam, base = sums.lam, sums.cgf - sums.lam * epsilon
    first = math.floor((epsilon - sums.start) / sums.width) + 1
    last = min(sums.mass.size, first + 2 + math.ceil(_FAR / (lam * sums.width)))
    gap = sums.start + sums.width * np.arange(first, max(first, last), dtype=np.float64) - epsilon
    total = float(np.sum(sums.mass[first : max(first, last)] * np.exp(-lam * gap) * test_function(gap)))
    # the weights are at most d e^{-lam d}: their maximum is 1/(e lam), the integral of their square 1/(4 lam^3)
    peak = 1 / (math.e * lam)
    total += sums.outside * peak + sums.noise * math.sqrt(peak**2 + 1 / (4 * lam**3 * sums.width))
    total += 2 * math.exp(-_FAR) * _FAR / lam
    value = base + math.log(total) + sums.relative + UNIT * (64 + 4 * (abs(sums.cgf) + abs(base)))
    return float(np.logaddexp(value, math.log(tail))) if tail > 0 else value


def log_constant(log_ratio: float) -> float:
    """log C(R) at R = e^log_ratio > 1, rounded up."""
    # (rho - R)/f(rho) with rho = e^d: e^-d f(e^d) = g(d), so it is (1 - R e^-d) / g(d), unimodal in d
    low, high = log_ratio, log_ratio + 4 * max(log_ratio, 1.0) + 1
    for _ in range(9):
        d = np.linspace(low, high, 33)[1:-1]
        value = -np.expm1(log_ratio - d) / test_function(d)
        at = int(np.argmax(value))
        best = float(value[at])
        low, high = (low if at == 0 else float(d[at - 1])), (high if at == d.size - 1 else float(d[at + 1]))
    return math.log(best) + 1e-12


def epsilon(expectation: Callable[[float], float], log_delta: float, lam: float, start: float) -> tuple[float, float]:
    """The least epsilon, over eps0, at which the bound is this delta, and its eps0."""

    def at(gap: float) -> float:
        eps0 = start - gap / lam
        wanted = log_delta - expectation(eps0)  # log C(R) must not exceed it
        if not math.isfinite(wanted):
            return math.inf
        return eps0 + _inverse(wanted, gap / lam)

    gaps = [0.5, 1.0, 1.5, 2.0, 2.5, 3.0, 4.0, 6.0]
    found = [at(gap) for gap in gaps]
    best = int(np.argmin(found))
    low, high = gaps[max(best - 1, 0)], gaps[min(best + 1, len(gaps) - 1)]
    for _ in range(3):
        more = [low + (high - low) * i / 6 for i in range(1, 6)]
        values = [at(gap) for gap in more]
        i = int(np.argmin(values))
        if values[i] < found[best]:
            gaps.append(more[i])
            found.append(values[i])
            best = len(found) - 1
        low, high = (low if i == 0 else more[i - 1]), (high if i == 4 else more[i + 1])
    return found[best], start - gaps[best] / lam


def _inverse(log_value: float, guess: float) -> float:
    """A log R, nearly the least, with C(R) <= e^log_value: C falls in R, about like a power of log R."""
    where, value, slope = math.log(guess), log_constant(guess), -2.0
    for _ in range(30):
        move = (log_value - value) / slope
        if abs(move) <= 1e-12:
            break
        after = log_constant(math.exp(where + move))
        if math.isfinite(after) and after != value:
            slope = min((after - value) / move, -0.1)
        where, value = where + move, after
    while value > log_value:
        where += 1e-12
        value = log_constant(math.exp(where))
    return math.exp(where)
