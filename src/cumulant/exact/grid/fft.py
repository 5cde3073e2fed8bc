"""Compose k rounds on a grid by FFT of tilted laws, with every error term.

Each round's law on the grid is multiplied by e^{lam l - K(lam)} before it is transformed, so that the answer is a sum of
numbers of size 1 whatever delta is; without that an FFT says nothing below 1e-12.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from cumulant.exact.grid.dominated import Law, dominated_law
from cumulant.exact.grid.settings import GRID
from cumulant.losses.cells import Cells
from cumulant.losses.grid import Step, Terms, leak_of
from cumulant.numerics.arithmetic import Array
from cumulant.numerics.lazy_scipy import fft
from cumulant.numerics.logspace import log_sum
from cumulant.numerics.rounding import MANY, U, lowered, next_above, raised

EXPONENTS = np.array([0.01, 0.03, 0.1, 0.2, 0.4, 0.7, 1.0, 1.4, 2.0])
"""Exponents of Chernoff bounds, in units of the best one for a normal law; chosen by hand, each is valid."""

TRANSFORM = 6.7
"""Rounding error of a radix-2 transform, in units of U times log2 of its length; derived (docs/rounding.md)."""

POWER = 12.0
"""Rounding error of the logarithm and angle of a power, in units of U; derived (docs/rounding.md)."""

FAR = 60.0
"""Nats: weights of e^-60 and less are summed as one; derived, the remainder is added."""


@lru_cache(maxsize=8)
def remembered_cells(step: Step, width: float, log_mass: float) -> Cells:
    """Return the cells of a step, remembered: they serve every number of rounds and every order."""
    return step.cells(width, log_mass)


@lru_cache(maxsize=8)
def remembered_dominated_law(step: Step, width: float, log_mass: float) -> Law:
    """Return the dominated law of a step, remembered for every number of rounds and every order."""
    return dominated_law(remembered_cells(step, width, log_mass), log_mass)


@dataclass(frozen=True, slots=True)
class TiltedLaw:
    """One round on the grid.

    It holds weights that sum to 1, log of their divisor, and the error they carry.
    """

    weights: Array
    cgf: float
    first: int
    offset: float
    lost: float
    error: float
    slip: float


def tilted_law(step: Step, width: float, log_mass: float, lam: float, upper: bool) -> TiltedLaw:
    """Return the dominating (upper) or the dominated law of one round, times e^{lam l}."""
    cells = remembered_cells(step, width, log_mass)
    grid, points = cells.grid, cells.grid.points()
    if upper:
        log_p = np.logaddexp(cells.atoms, np.logaddexp(np.append(cells.left, -np.inf), np.append(-np.inf, cells.right)))
        log_p[2] = np.logaddexp(log_p[2], cells.below)  # the second cell may begin below the least loss that was kept
        lost = min(next_above(math.exp(cells.above)), 1.0) if cells.above > -math.inf else 0.0
    else:
        log_p, lost = remembered_dominated_law(step, width, log_mass)
    exponent = log_p + lam * points
    cgf = float(log_sum(exponent))
    finite = np.isfinite(log_p)
    size = float(np.max(np.abs(log_p[finite]) + np.abs(lam * points[finite]))) + abs(cgf)
    return TiltedLaw(
        np.exp(exponent - cgf),
        cgf,
        grid.first,
        grid.offset,
        lost,
        cells.error + U * (64 + 8 * size),
        cells.slip + 2 * cells.error,  # a ratio p/q that is wrong by a factor is a loss that is misplaced
    )


@dataclass(frozen=True, slots=True)
class ComposedLaw:
    """The tilted law of the sum of all rounds on a window of the grid, with its error bounds."""

    lam: float
    width: float
    start: float
    mass: Array
    cgf: float
    outside: float
    noise: float
    relative: float
    leak: float
    slip: float
    upper: bool

    def log_delta(self, epsilon: float) -> float:
        """Return log of an upper (lower) bound on delta at this epsilon.

        Returns +inf (-inf) if floats give NaN.
        """
        value = self._log_delta(epsilon)
        return value if not math.isnan(value) else math.inf if self.upper else -math.inf

    def _log_delta(self, epsilon: float) -> float:
        """Return log of a bound on delta at this epsilon; NaN if floats overflow."""
        if self.upper and epsilon < self.start:
            return math.inf  # the window says nothing there
        gap, weight = self.points_above(epsilon)
        total = float(np.sum(weight * -np.expm1(-gap)))
        if not self.upper:
            total -= self._error_mass()
            finite = self.remove_tilt(total, epsilon)
            if self.leak >= 0:
                return float(np.logaddexp(finite, math.log(self.leak))) if self.leak > 0 else finite
            left = -math.expm1(math.log(-self.leak) - finite) if total > 0 else 0.0
            return finite + math.log(left) if left > 0 else -math.inf
        total += self._error_mass() + 2 * math.exp(-FAR)
        if not total > 0:
            return math.inf
        finite = self.remove_tilt(total, epsilon)
        return float(np.logaddexp(finite, math.log(self.leak))) if self.leak > 0 else finite

    def _error_mass(self) -> float:
        """Return the mass outside the window plus the noise of the transforms.

        The noise enters through an inner product with the weights.
        """
        return self.outside + self.noise * math.sqrt(1 + 1 / (2 * self.lam * self.width))

    def points_above(self, epsilon: float) -> tuple[Array, Array]:
        """Return the distances of the points above epsilon, and mass times e^{-lam distance}.

        Points beyond a weight of e^-60 are left out.
        """
        first = max(math.floor((epsilon - self.start) / self.width) + 1, 0)
        last = max(first, min(self.mass.size, first + 2 + math.ceil(FAR / (self.lam * self.width))))
        gap = self.start + self.width * np.arange(first, last, dtype=np.float64) - epsilon
        return gap, self.mass[first:last] * np.exp(-self.lam * gap)

    def remove_tilt(self, total: float, epsilon: float) -> float:
        """Return log of total e^{K - lam epsilon}, rounded outward; -inf if total is not positive."""
        if not total > 0:
            return -math.inf
        base = self.cgf - self.lam * epsilon
        moved = self.relative + U * (64 + 4 * (abs(self.cgf) + abs(base)))
        return base + math.log(total) + (moved if self.upper else -moved)


@np.errstate(over="ignore", divide="ignore", invalid="ignore")
def compose(terms: Terms, width: float, log_mass: float, lam: float, upper: bool) -> ComposedLaw:
    """Compose all rounds on a window that holds nearly all of the tilted sum.

    Raises OverflowError if it is too long.
    """
    check_side(terms, upper)
    rounds = [(tilted_law(step, width, log_mass, lam, upper), times) for step, times in terms]
    window = _choose_window(rounds, width)
    wanted = (window[1] - window[0]) / width + 4
    if not wanted <= GRID.longest_window:
        raise OverflowError("the window is too long for its grid")
    size = 1 << max(4, math.ceil(math.log2(wanted)))
    origin = sum(times * one.offset for one, times in rounds)
    middle = (window[0] + window[1]) / 2
    first = math.floor((middle - origin) / width) - size // 2
    start = origin + width * first
    mass, noise = convolution(rounds, size, first)
    outside = escaping_mass(rounds, width, start, start + width * (size - 1), both=not upper)
    leak = leak_of(terms)
    lost = sum(times * one.lost for one, times in rounds)
    if not upper:  # (1 + lost)^k: the masses of the other rounds may exceed 1 by as much
        lost = lost * math.exp(lost) if lost < 1 else math.inf
    return ComposedLaw(
        lam=lam,
        width=width,
        start=start,
        mass=mass,
        cgf=sum(times * one.cgf for one, times in rounds),
        outside=outside,
        noise=noise,
        relative=sum(times * one.error for one, times in rounds),
        leak=min(1.0, raised(leak + lost, MANY)) if upper else lowered(leak, MANY) - raised(lost, MANY),
        slip=sum(times * one.slip for one, times in rounds) + 4 * U * (abs(origin) + abs(start) + width * size),
        upper=upper,
    )


def convolution(rounds: Sequence[tuple[TiltedLaw, int]], size: int, first: int) -> tuple[Array, float]:
    """Return the law of the sum on a window, and the norm of its noise."""
    log_spectrum_size = np.zeros(size // 2 + 1)
    angle = np.zeros(size // 2 + 1)
    noise, least, constant = 0.0, math.inf, TRANSFORM * U * math.log2(size)
    for one, times in rounds:
        weights = wrap_weights(one, size)
        spectrum = fft.rfft(weights)
        log_spectrum_size += times * np.log(np.abs(spectrum))
        angle += np.remainder(times * np.angle(spectrum), 2 * math.pi)
        norm = float(np.linalg.norm(weights))
        noise += times * (constant + POWER * U) * norm
        least = min(least, norm)
    # powers of a perturbed spectrum: (1 + d)^k with d the largest error of a coefficient
    growth = math.exp(noise * math.sqrt(size)) if noise * math.sqrt(size) < 700 else math.inf
    noise = growth * (noise + 2 * constant * least) + math.exp(GRID.negligible_log_spectrum)
    kept = log_spectrum_size > GRID.negligible_log_spectrum
    product = np.zeros(size // 2 + 1, dtype=np.complex128)
    product[kept] = np.exp(log_spectrum_size[kept] + 1j * angle[kept])
    return np.roll(fft.irfft(product, size), -(first % size)), noise


def check_side(terms: Terms, upper: bool) -> None:
    """Raise TypeError if an upper bound is asked of a step that leaves outputs out."""
    for step, _ in terms:
        if upper and not step.complete:
            raise TypeError(f"{type(step).__name__} leaves outputs out, so it bounds from below only; use upper=False")


def _choose_window(rounds: Sequence[tuple[TiltedLaw, int]], width: float) -> tuple[float, float]:
    """Return a window for all but e^-40 of the tilted sum, by Chernoff bounds on a thinned law.

    `escaping_mass` proves it later.
    """
    laws, mean, variance, low, high = [], 0.0, 0.0, 0.0, 0.0
    for one, times in rounds:
        there = np.flatnonzero(one.weights)  # a law of few atoms is not thinned
        points, weights = one.offset + width * (one.first + there.astype(np.float64)), one.weights[there]
        starts = np.arange(0, points.size, -(-points.size // GRID.thinned_points))
        mass = np.add.reduceat(weights, starts)
        place = np.add.reduceat(weights * points, starts) / mass
        laws.append((place, np.log(mass), times))
        average = float(mass @ place)
        mean += times * average
        variance += times * float(mass @ (place - average) ** 2)
        low, high = low + times * points[0], high + times * points[-1]
    rate = math.sqrt(2 * GRID.tail) / max(math.sqrt(variance), 1e-300)
    ends = []
    for sign in (1.0, -1.0):
        t = sign * rate * EXPONENTS
        cgf = np.zeros(t.size)
        for place, log_mass, times in laws:
            lifted = log_mass + t[:, None] * place
            cgf += times * log_sum(lifted)
        ends.append(np.min((cgf + GRID.tail) / np.abs(t)))
    margin = 8 * width
    return max(float(-ends[1]), low) - margin, min(float(ends[0]), high) + margin


def wrap_weights(one: TiltedLaw, size: int) -> Array:
    """Return the weights at their places modulo `size`."""
    place = one.first % size
    count = -(-(place + one.weights.size) // size) * size
    padded = np.zeros(count)
    padded[place : place + one.weights.size] = one.weights
    return np.asarray(padded.reshape(-1, size).sum(axis=0))


def escaping_mass(rounds: Sequence[tuple[TiltedLaw, int]], width: float, low: float, high: float, both: bool) -> float:
    """Return a bound on the tilted mass above the window, and below it if `both`.

    It is the Chernoff bound at the best of some exponents.
    """
    laws, mean, variance = [], 0.0, 0.0
    for one, times in rounds:
        there = np.flatnonzero(one.weights)
        points, weights = one.offset + width * (one.first + there.astype(np.float64)), one.weights[there]
        average = float(weights @ points)
        mean += times * average
        variance += times * float(weights @ (points - average) ** 2)
        laws.append((points, np.log(weights), times))

    def beyond(edge: float, sign: float) -> float:
        if sign * (edge - mean) <= 0:
            return 1.0
        best = 0.0
        gap = edge - mean
        for t in (20 / gap, 40 / gap, 80 / gap, gap / max(variance, 1e-300)):
            exponent = -t * edge + 4 * U * abs(t * edge)
            for points, log_weights, times in laws:
                lifted = log_weights + t * points
                exponent += times * (float(log_sum(lifted)) + U * (16 + 4 * abs(float(np.max(lifted)))))
            best = min(best, exponent)
        return math.exp(best) * 1.001

    return min(beyond(high, 1.0) + (beyond(low, -1.0) if both else 0.0), 1.0)
