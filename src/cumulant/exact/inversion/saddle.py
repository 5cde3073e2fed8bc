"""Saddle line: delta in milliseconds by Laplace inversion in floats, not proved.

delta(eps) = (1/2pi) INT exp(K(lam+iu) - eps (lam+iu)) / ((lam+iu)(1+lam+iu)) du, for any lam > 0. The trapezoid rule with
step 2pi/T adds the images of the law shifted by multiples of T, which is an error upward.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from cumulant.exact.grid.fft import EXPONENTS
from cumulant.exact.inversion.line import FloatLine
from cumulant.exact.inversion.settings import SADDLE
from cumulant.exact.test_functions import HOCKEY_STICK, TestFunction
from cumulant.losses.grid import Step, Terms
from cumulant.numerics.arithmetic import LEAST_SHARE, Array
from cumulant.numerics.search import bracket_falling


@dataclass(frozen=True, slots=True)
class Line:
    """K of all rounds at lam and along lam + iu."""

    lam: float
    cgf: float
    frequencies: Array
    exponents: Array

    def floats(self, test: TestFunction) -> FloatLine:
        """Return the line with the weights e^K(z) / D(z) of a test function, relative to e^K(lam), to search along."""
        weights = np.exp(self.exponents) / test.denominator(self.lam + 1j * self.frequencies)
        period = 2 * math.pi / (self.frequencies[1] - self.frequencies[0])
        return FloatLine(self.lam, period, self.cgf, weights, self.frequencies)

    def coarser(self) -> Line:
        """Return the line of half the period: every other frequency."""
        return replace(self, frequencies=self.frequencies[::2], exponents=self.exponents[::2])

    def log_delta(self, epsilon: float) -> float:
        """Return log of the trapezoid sum for delta at this epsilon."""
        z = self.lam + 1j * self.frequencies
        terms = np.exp(self.exponents - 1j * self.frequencies * epsilon) / HOCKEY_STICK.denominator(z)
        step = self.frequencies[1] - self.frequencies[0]
        total = step / (2 * math.pi) * float(terms[0].real + 2 * np.sum(terms[1:].real))
        return self.cgf - self.lam * epsilon + math.log(total) if total > 0 else -math.inf


@dataclass(frozen=True, slots=True)
class Moments:
    """K and its first two derivatives at some real orders, all rounds together."""

    lam: Array
    cgf: Array
    mean: Array
    variance: Array


@np.errstate(over="ignore", divide="ignore", invalid="ignore")
def moments(terms: Terms, lam: Array) -> Moments:
    """Return K, K' and K'' at real lam > 0 from each step's quadrature nodes."""
    total = np.zeros((3, lam.size))
    for step, times in terms:
        loss, weight, cgf = tilted_law(step, lam)
        # about the mean at the order in the middle, so that little cancels at the others
        centre = float(weight[lam.size // 2] @ loss)
        apart = loss - centre
        mean = weight @ apart
        total += times * np.array([cgf, centre + mean, np.maximum(weight @ apart**2 - mean**2, 0.0)])
    return Moments(lam, *total)


@np.errstate(over="ignore", divide="ignore", invalid="ignore")
def cgf_values(terms: Terms, lam: Array) -> Array:
    """Return K at real orders, without derivatives."""
    total = np.zeros(lam.size)
    for step, times in terms:
        total += times * tilted_law(step, lam)[2]
    return total


def tilted_law(step: Step, lam: Array) -> tuple[Array, Array, Array]:
    """Return the losses of one step, its tilted law at each order, and K."""
    loss, log_p = step.nodes(float(lam.max(initial=0.0)))
    exponent = lam[:, None] * loss + log_p
    if not loss.size:  # every loss is infinite
        return loss, exponent, np.full(lam.size, -np.inf)
    top = exponent.max(axis=1)
    weight = np.exp(np.maximum(exponent - top[:, None], LEAST_SHARE))
    size = weight.sum(axis=1)
    cgf = top + np.log(size)
    if lam.size == 1 and abs(cgf[0]) < 0.5:  # where K is small, 1 is taken out before it is rounded away
        mass, lift = np.exp(log_p), lam * loss
        gain = np.where(lift < 1, mass * np.expm1(np.minimum(lift, 1.0)), np.exp(exponent[0]) - mass)
        cgf = np.log1p(np.sum(gain) - step.leak)[None]
    return loss, weight / size[:, None], cgf


def saddle_point(terms: Terms, *, log_delta: float | None = None, epsilon: float = 0.0) -> Moments | None:
    """Return the order whose saddle point approximation of delta is this delta, or whose saddle point is at this epsilon.

    Epsilon counts if there is no log delta. The order is found by nested subdivision. Returns None if there is none.
    """

    def excess(found: Moments) -> Array:
        """Return a rising function of the order that is 0 at the saddle point."""
        return epsilon_of(found) - epsilon if log_delta is None else log_delta - approximation(found)

    low, high = SADDLE.smallest_order, 16.0
    while True:
        grid = np.geomspace(low, high, 16)
        value = excess(moments(terms, grid))
        if value[-1] >= 0:
            break
        if not np.isfinite(value[-1]):
            return None
        if high >= SADDLE.largest_order:  # losses that are bounded, and almost as large as they can be
            return moments(terms, grid[-1:])
        low, high = high / 2, high * 8
    for _ in range(2):
        right = int(np.argmax(value >= 0))
        if right == 0:
            break
        grid = np.geomspace(grid[right - 1], grid[right], 7)
        value = excess(moments(terms, grid))
    return moments(terms, grid[int(np.argmin(np.abs(value)))][None])


def epsilon_of(found: Moments) -> Array:
    """Return the epsilon whose saddle point is at this order: K'(lam) = eps + 1/lam + 1/(1+lam)."""
    return found.mean - 1 / found.lam - 1 / (1 + found.lam)


def approximation(found: Moments) -> Array:
    """Return log delta at the saddle point, to first order."""
    curvature = found.variance + found.lam**-2.0 + (1 + found.lam) ** -2.0
    height = found.cgf - found.lam * epsilon_of(found) - np.log(found.lam) - np.log1p(found.lam)
    return np.asarray(height - np.log(2 * math.pi * curvature) / 2)


@np.errstate(over="ignore", divide="ignore", invalid="ignore")
def spread(terms: Terms, at: Moments) -> tuple[float, float]:
    """Return a window that holds all but e^-36 of the tilted sum, by Chernoff bounds with K."""
    lam, mean, deviation = float(at.lam[0]), float(at.mean[0]), math.sqrt(float(at.variance[0]))
    rate = math.sqrt(2 * SADDLE.tail) / max(deviation, 1e-300)
    up = lam + rate * EXPONENTS
    high = np.fmin.reduce((cgf_values(terms, up) - at.cgf[0] + SADDLE.tail) / (up - lam))
    down = lam - np.minimum(rate * EXPONENTS, lam + 1)
    low = np.fmax.reduce((at.cgf[0] - SADDLE.tail - cgf_values(terms, down)) / (lam - down))
    return min(low, mean - 4 * deviation), max(high, mean + 4 * deviation)


@np.errstate(over="ignore", divide="ignore", invalid="ignore")
def line(terms: Terms, at: Moments, window: tuple[float, float], finer: float = 1.0) -> Line | None:
    """Return K along lam + iu up to where e^K has decayed; None if it does not decay."""
    lam = float(at.lam[0])
    period = 1.05 * finer * (window[1] - window[0])
    if not 0 < period < math.inf:
        return None
    laws = []
    for step, times in terms:
        loss, log_p = step.nodes(lam)
        weight = np.exp(log_p + lam * loss - np.max(log_p + lam * loss))
        seen = weight > SADDLE.negligible_weight
        laws.append((loss[seen], weight[seen] / weight.sum(), times))
    deviation = math.sqrt(float(at.variance[0]))
    count = max(16, math.ceil(1.1 * math.sqrt(2 * SADDLE.tail) / max(deviation, 1e-300) * period / (2 * math.pi)))
    if count > SADDLE.most_frequencies:
        return None
    spacing = 2 * math.pi / period
    parts: list[Array] = []
    start = 0
    while start < SADDLE.most_frequencies:
        exponent = np.zeros(count, dtype=np.complex128)
        for loss, weight, times in laws:
            exponent += times * np.log1p(_turned(spacing * loss, weight, start, count))
        parts.append(exponent)
        start += count
        if np.max(exponent.real[-4:]) < -SADDLE.tail + 4:
            exponents = np.concatenate(parts)
            return Line(lam, float(at.cgf[0]), spacing * np.arange(start), exponents)
    return None


def _turned(angle: Array, weight: Array, start: int, count: int) -> Array:
    """Return E[e^{i n angle} - 1] for `count` numbers n from `start` on.

    Writing n = coarse + fine takes two small tables of sines and one product of matrices. No 1 is subtracted:
    ab - 1 = (a - 1)(b - 1) + (a - 1) + (b - 1).
    """
    width = math.isqrt(count - 1) + 1
    fine = _less_one(np.arange(width)[:, None] * angle)
    coarse = _less_one((start + width * np.arange(-(-count // width)))[:, None] * angle)
    weighted = coarse * weight
    both = weighted @ fine.T + weighted.sum(axis=1)[:, None] + fine @ weight
    return both.ravel()[:count]


def _less_one(phase: Array) -> Array:
    """Return e^{iy} - 1 = -2 sin^2(y/2) + i sin y."""
    return np.asarray(-2 * np.sin(phase / 2) ** 2 + 1j * np.sin(phase))


def saddle_epsilon(terms: Terms, log_delta: float) -> tuple[float, float] | None:
    """Return epsilon by the saddle line and by a line of twice the period.

    Returns None if the spectrum does not decay.
    """
    at = saddle_point(terms, log_delta=log_delta)
    if at is None:
        return None
    finer = line(terms, at, spread(terms, at), 2.0)
    if finer is None:
        return None
    start = float(epsilon_of(at)[0])
    answers = [bracket_falling(one.log_delta, -one.lam, log_delta, start)[1] for one in (finer.coarser(), finer)]
    return (answers[0], answers[1]) if all(map(math.isfinite, answers)) else None
