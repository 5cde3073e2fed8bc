"""Attack Theorems A and C: random triangles, their divergence by quadrature that shares no code with the library.

    python benchmarks/hunt_triangles.py [settings] [seed]

A setting is a noise level and a rate, with ten triangles and ten orders. Prints the largest ratio of M - 1 to its bound
for each theorem and exits with 1 if one exceeds 1 by more than the quadrature error.
"""

from __future__ import annotations

import math
import sys
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from cumulant.bounds.gaussian_theorems import gaussian_ball, gaussian_diameter
from cumulant.pairs.gaussian import GaussianPair

Array = npt.NDArray[np.float64]
TOLERANCE = 1e-8
TRIANGLES = 10
MOST_POINTS = 250_000


@dataclass(frozen=True)
class Triangle:
    """The two values p and q of a record, measured from the value r of the record it replaces."""

    p: Array
    q: Array
    ball: bool


def triangle(random: np.random.Generator) -> Triangle:
    """A triple in a disc of diameter 1, or with all distances at most 1; many of them near an extreme one."""
    kind = random.integers(8)
    if kind < 4:
        points = random.normal(size=(3, 2))
        size = 0.5 * (random.uniform(size=(3, 1)) ** 0.5 if kind == 0 else 1.0)
        points *= size / np.linalg.norm(points, axis=1, keepdims=True)
        if kind == 2:  # p opposite r, q next to r
            points[1], points[2] = -points[0], points[0]
            points += 10 ** random.uniform(-4, -1) * random.normal(size=(3, 2))
            points *= 0.5 / np.maximum(np.linalg.norm(points, axis=1, keepdims=True), 0.5)
        if kind == 3:  # a line
            points[:, 1] = 0.0
        return Triangle(points[1] - points[0], points[2] - points[0], ball=True)
    if kind == 4:
        points = random.normal(size=(3, 2))
    elif kind == 5:  # near the equilateral one
        points = np.array([[0.0, 0.0], [1.0, 0.0], [0.5, 0.75**0.5]]) + 10 ** random.uniform(-5, -0.5) * random.normal(
            size=(3, 2)
        )
    elif kind == 6:  # the family (1, B, 1) on which the proof puts the supremum of KL
        angle = 2 * math.asin(random.uniform(0, 1) / 2)
        p = np.array([1.0, 0.0])
        points = np.array([[0.0, 0.0], p, p - np.array([math.cos(angle), math.sin(angle)])])
    else:  # two of the three nearly equal
        points = random.normal(size=(3, 2))
        first, second = random.permutation(3)[:2]
        points[first] = points[second] + 10 ** random.uniform(-5, -1) * random.normal(size=2)
    distances = [float(np.linalg.norm(points[i] - points[j])) for i, j in ((0, 1), (0, 2), (1, 2))]
    points = points / max(distances) * (1.0 if kind != 4 or random.uniform() < 0.5 else random.uniform())
    return Triangle(points[1] - points[0], points[2] - points[0], ball=False)


def log_mixture(x: Array, rate: float) -> Array:
    """log(1 - g + g e^x)."""
    return np.asarray(np.where(x < 600, np.log1p(rate * np.expm1(np.minimum(x, 600.0))), x + math.log(rate)))


def log_excess(order: float, rate: float, p: Array, q: Array) -> float | None:
    """log E_b[(a/b)^order - 1 - order (a/b - 1)] by the trapezoid rule on a box; None where the box is too large."""
    flat = abs(p[0] * q[1] - p[1] * q[0]) < 1e-14  # collinear with r: one dimension
    axis = p if p @ p >= q @ q else q
    first = axis / math.sqrt(axis @ axis)
    second = np.array([-first[1], first[0]])
    corners = []
    for in_a in (0.0, 1.0):  # stationary points are y = order P p - (order - 1) Q q with P, Q in [0, 1]
        for in_b in (0.0, 1.0):
            y = order * in_a * p - (order - 1) * in_b * q
            for _ in range(60):
                P = 1 / (1 + (1 - rate) / rate * math.exp(min(float(p @ p / 2 - p @ y), 600.0)))
                Q = 1 / (1 + (1 - rate) / rate * math.exp(min(float(q @ q / 2 - q @ y), 600.0)))
                y = 0.5 * y + 0.5 * (order * P * p - (order - 1) * Q * q)
            corners.append(y)

    def value(y: Array) -> Array:
        """log of the integrand at points y of shape (..., 2)."""
        la = log_mixture(y @ p - p @ p / 2, rate)
        lb = log_mixture(y @ q - q @ q / 2, rate)
        t = np.expm1(np.clip(la - lb, -600.0, 600.0))
        small = (
            order
            * (order - 1)
            / 2
            * t
            * t
            * (1 + (order - 2) / 3 * t * (1 + (order - 3) / 4 * t * (1 + (order - 4) / 5 * t)))
        )
        direct = np.exp(np.minimum(order * (la - lb), 600.0)) - 1 - order * t
        log_f = np.log(np.maximum(np.where(np.abs(order * t) < 3e-3, small, direct), 1e-320))
        log_f = np.where(order * (la - lb) > 500, order * (la - lb), log_f)
        return np.asarray(log_f + lb - np.sum(y * y, axis=-1) / 2)

    spots = np.array([*corners, *(c + d for c in corners for d in (first, -first, second, -second)), np.zeros(2)])
    top = float(np.max(value(spots)))
    alive = np.array([c for c in corners if max(value(np.stack([c, c + first, c - first]))) > top - 45] + [0 * p])
    reach = 8.5
    low = np.min(np.stack([alive @ first, alive @ second], axis=1), axis=0) - reach
    high = np.max(np.stack([alive @ first, alive @ second], axis=1), axis=0) + reach
    longest = max(math.sqrt(p @ p), math.sqrt(q @ q))
    # singularities of b^(1 - order) lie pi / |q| away, with a strength that grows with the order
    step = min(0.5, 2 * math.pi * (math.pi / 2 / longest) / (25 + 0.35 * order))
    ends = [low[0], high[0], low[1], high[1]]
    counts = [math.ceil((ends[1] - ends[0]) / step) + 1, 1 if flat else math.ceil((ends[3] - ends[2]) / step) + 1]
    if counts[0] * counts[1] > MOST_POINTS:
        return None
    u = ends[0] + step * np.arange(counts[0])
    v = np.zeros(1) if flat else ends[2] + step * np.arange(counts[1])
    y = u[:, None, None] * first + v[None, :, None] * second
    logs = value(y)
    peak = float(np.max(logs))
    edge = max(float(np.max(logs[[0, -1]])), -math.inf if flat else float(np.max(logs[:, [0, -1]])))
    if edge > peak - 24:
        return None
    volume = step / math.sqrt(2 * math.pi) if flat else step * step / (2 * math.pi)
    return peak + math.log(float(np.sum(np.exp(logs - peak))) * volume)


def hunt(settings: int, seed: int) -> tuple[int, dict[str, tuple[float, Any]]]:
    """The number of triangles measured, and for each theorem the largest ratio with where it was found."""
    random = np.random.default_rng(seed)
    worst: dict[str, tuple[float, Any]] = {"ball": (0.0, None), "diameter": (0.0, None)}
    measured = 0
    for _ in range(settings):
        sigma = Fraction(round(float(10 ** random.uniform(math.log10(0.2), 1)), 3)).limit_denominator(1000)
        rate = Fraction(round(float(10 ** random.uniform(-4, math.log10(0.9))), 5)).limit_denominator(100_000)
        orders = 1 + 10 ** random.uniform(-2, math.log10(59), size=TRIANGLES)
        bounds = {
            "ball": gaussian_ball(GaussianPair(1 / sigma, "ball"), rate).cgf(orders - 1),
            "diameter": gaussian_diameter(GaussianPair(1 / sigma), rate).cgf(orders - 1),
        }
        for k, order in enumerate(orders.tolist()):
            shape = triangle(random)
            p, q = shape.p / float(sigma), shape.q / float(sigma)
            if max(float(p @ p), float(q @ q)) < 1e-12:
                continue
            with np.errstate(all="ignore"):
                found = log_excess(order, float(rate), p, q)
            if found is None:
                continue
            measured += 1
            for theorem in ("ball", "diameter") if shape.ball else ("diameter",):
                K = float(bounds[theorem][k])
                log_bound = K + math.log(-math.expm1(-K))
                ratio = math.exp(found - log_bound)
                if ratio > worst[theorem][0]:
                    where = f"sigma={sigma} rate={rate} order={order!r} p={shape.p.tolist()} q={shape.q.tolist()}"
                    worst[theorem] = ratio, where
    return measured, worst


def main() -> int:
    """Hunt, report, and say whether a bound was exceeded."""
    settings = int(sys.argv[1]) if len(sys.argv) > 1 else 2800
    seed = int(sys.argv[2]) if len(sys.argv) > 2 else 1
    measured, worst = hunt(settings, seed)
    print(f"{measured} triangles")
    for theorem, (ratio, where) in worst.items():
        print(f"{theorem}: largest ratio of M - 1 to its bound {ratio:.12f} at {where}")
    return int(any(ratio > 1 + TOLERANCE for ratio, _ in worst.values()))


if __name__ == "__main__":
    sys.exit(main())
