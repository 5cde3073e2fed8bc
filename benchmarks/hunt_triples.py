"""Attack Theorems P, V and W: random triples from their definitions, and adversaries who choose anew in every round.

    python -m benchmarks.hunt_triples [settings] [seed]

A setting draws a privacy loss or a shift and a rate, and with them
  * a hundred triples of pure laws with up to six outputs against the Rényi curve of the class,
  * a hundred triples of values in one to five dimensions against V*, and one in bins against the curve of the budget,
  * an adversary who in up to four rounds chooses among random pure triples, all policies enumerated, against the value,
  * one who in up to twelve rounds chooses among random pure triples, on a grid that rounds down, against the value,
  * one who in up to twelve rounds chooses among extreme triples of reports, by recursion over exact ratios, against both ends,
    and against both ends of the second evaluation,
  * one who in up to twelve rounds chooses among triples in one to five dimensions, on such a grid, against Theorem W (every
    eighth setting).
Prints the largest quotient of each kind and how many there were, and exits with 1 if one exceeds 1.
"""

from __future__ import annotations

import math
import sys
from collections import Counter, defaultdict
from collections.abc import Callable
from fractions import Fraction
from functools import cache

import numpy as np

from cumulant.bounds.laplace_budget import laplace_budget, largest_square
from cumulant.bounds.without_replacement import pure_triples
from cumulant.curves.closed_form import Response
from cumulant.exact import test_functions
from cumulant.exact.adaptive import second_recursion, theorem_w, value_iteration
from cumulant.exact.adaptive.constraints import LaplaceConstraint
from cumulant.exact.adaptive.reference_law import reference
from cumulant.numerics.arithmetic import BALLS
from cumulant.pairs.laplace import LaplacePair
from cumulant.pairs.local_reports import ThreePoints
from cumulant.pairs.response import ResponsePair
from cumulant.pairs.worst_triples import Extremes
from tests.oracles.triples import Laws, binned_laplace, laplace_square, random_l1_triples, random_pure_triples

TOLERANCE = 1e-8
TRIPLES = 100

Quotients = dict[str, float]
"""The largest quotient of what was found and what was claimed, by kind."""

Attack = Callable[[np.random.Generator, Quotients], int]
"""One setting; how many triples or adversaries were tried, 0 where nothing is claimed."""


def exact(value: float, digits: int = 3) -> Fraction:
    """A short decimal, so that the library and the attack mean the same number."""
    return Fraction(f"{value:.{digits}g}")


def pure_divergences(rng: np.random.Generator, found: Quotients) -> int:
    """Theorem P as a Rényi curve."""
    epsilon, rate = exact(10 ** rng.uniform(-1.5, 0.8)), exact(10 ** rng.uniform(-3, -0.05))
    g = float(rate)
    r, p, q = random_pure_triples(rng, float(epsilon), TRIPLES)
    a, b = (1 - g) * r + g * p, (1 - g) * r + g * q
    order = np.array([1.1, 2.0, 3.5, 12.0, 50.0])
    limit = np.asarray(pure_triples(Response(epsilon=epsilon), rate).rdp(order))
    for each, most in zip(order, limit, strict=True):
        excess = np.sum(b * np.expm1(each * np.log(a / b)) - each * (a - b), axis=1)
        needed = np.log1p(np.maximum(excess, 0.0)) / (each - 1)
        found["pure divergence"] = max(found["pure divergence"], float(np.max(needed - 1e-15)) / most)
    return TRIPLES


def squares(rng: np.random.Generator, found: Quotients) -> int:
    """Theorem V: the budget in every dimension."""
    shift, dimension = exact(rng.uniform(0.4, 6.0), 2), int(rng.integers(1, 6))
    limit = largest_square(shift, query(dimension))
    if limit is None:
        return 0
    values = laplace_square(*random_l1_triples(rng, float(shift), TRIPLES, dimension))
    found["square"] = max(found["square"], float(np.max(values)) / limit)
    return TRIPLES


OUTPUTS = {1: 40, 2: 12, 3: 6, 4: 3, 5: 1}
"""Bins in each coordinate, besides the edges at the values, by dimension."""


def noisy(rng: np.random.Generator, shift: Fraction, rate: Fraction, dimension: int, bins: int) -> tuple[Laws, Laws]:
    """a and b of one triple of values, random or at equal distances, the outputs in bins, which only lose."""
    points = np.stack(random_l1_triples(rng, float(shift), 1, dimension), axis=1)[0]
    if dimension == 2 and rng.uniform() < 0.4:
        points = np.array([(0, 0), (0.5, 0.5), (0.5, -0.5)]) * float(shift)
    laws, g = binned_laplace(points, bins), float(rate)
    return (1 - g) * laws[0] + g * laws[1], (1 - g) * laws[0] + g * laws[2]


def query(dimension: int) -> str:
    """What the pair of Laplace noise says of values of this dimension."""
    return "scalar" if dimension == 1 else "vector"


def laplace_divergences(rng: np.random.Generator, found: Quotients) -> int:
    """Theorem V as a Rényi curve."""
    shift, rate = exact(rng.uniform(0.4, 6.0), 2), exact(10 ** rng.uniform(-3, -0.5), 2)
    dimension = int(rng.integers(1, 6))
    curve = laplace_budget(LaplacePair(shift, query=query(dimension)), rate)
    a, b = noisy(rng, shift, rate, dimension, 2 * OUTPUTS[dimension])
    for order in (1.5, 2.0, 3.0, 8.0, 20.0):
        needed = math.log(float(np.sum(b * (a / b) ** order))) / (order - 1)
        found["budget divergence"] = max(found["budget divergence"], (needed - 1e-14) / float(curve.rdp(order)))
    return 1


def policies(rng: np.random.Generator, found: Quotients) -> int:
    """Every policy over a few random pure triples, in up to four rounds."""
    epsilon, rate, times = exact(rng.uniform(0.1, 3), 2), exact(10 ** rng.uniform(-2, -0.1), 2), int(rng.integers(2, 5))
    value = value_iteration.optimum_from_above(((ResponsePair(epsilon=epsilon).extremes(), rate, times),), -20.0)
    if value is None:
        return 0
    a, b = pure_rounds(rng, epsilon, rate)
    x = float(rng.uniform(0, times * math.log1p(float(rate) * math.expm1(float(epsilon)))))

    def best(left: int, ratio: Laws) -> Laws:
        if not left:
            return np.asarray(np.maximum(ratio - math.exp(x), 0.0))
        return np.asarray((best(left - 1, ratio[..., None, None] * (a / b)) * b).sum(axis=-1).max(axis=-1))

    needed = float(best(times, np.array(1.0)))
    found["policies"] = max(found["policies"], (needed - 1e-14) / value.delta(x))
    return 1


def pure_rounds(rng: np.random.Generator, epsilon: Fraction, rate: Fraction) -> tuple[Laws, Laws]:
    """a and b of three pure triples with up to six outputs, one in each row: random, or of two or three answers."""
    laws, c, g = np.stack(random_pure_triples(rng, float(epsilon), 3)), math.exp(float(epsilon)), float(rate)
    binary, ternary = (np.tile(np.where(np.eye(n) > 0, c, 1.0), 6 // n) / (6 // n * (c + n - 1)) for n in (2, 3))
    for row, inputs in enumerate((binary[[1, 0, 1]], binary[[0, 0, 1]], ternary)):
        if rng.uniform() < 0.3:
            laws[:, row] = inputs
    r, p, q = laws
    return (1 - g) * r + g * p, (1 - g) * r + g * q


def walks(rng: np.random.Generator, found: Quotients) -> int:
    """The best policy over them in up to twelve rounds, on a grid of log ratios to which they are rounded down."""
    epsilon, rate, times = (
        exact(rng.uniform(0.1, 3), 2),
        exact(10 ** rng.uniform(-2, -0.1), 2),
        int(rng.integers(5, 13)),
    )
    value = value_iteration.optimum_from_above(((ResponsePair(epsilon=epsilon).extremes(), rate, times),), -20.0)
    if value is None:
        return 0
    step = math.log1p(float(rate) * math.expm1(float(epsilon))) / 40
    span = 42 * times
    grid = step * np.arange(-span, span + 1)
    triples = [on_grid(a, b, step) for a, b in zip(*pure_rounds(rng, epsilon, rate), strict=True)]
    sticks = np.maximum(np.expm1(grid), 0.0)
    for _ in range(times):
        sticks = np.max([expected(sticks, *each) for each in triples], axis=0)
    for cells in (0, span // 8, span // 4, span // 2):
        x = cells * step
        needed = math.exp(x) * float(sticks[span - cells])
        found["walks"] = max(found["walks"], (needed - 1e-13) / value.delta(x))
    return 1


def on_grid(a: Laws, b: Laws, step: float) -> tuple[Laws, Laws]:
    """The ratio of each output, rounded down to cells of this step, and its mass under b."""
    places, group = np.unique(np.floor(np.log(a / b) / step + 1e-9), return_inverse=True)
    return places, np.asarray(np.bincount(group, b), dtype=np.float64)


def expected(value: Laws, places: Laws, weights: Laws) -> Laws:
    """E of the value after one more round, at every point."""
    index = np.arange(value.size)
    return sum((w * np.interp(index + int(s), index, value) for s, w in zip(places, weights, strict=True)), 0 * value)


def optimum(extremes: Extremes, rate: Fraction, times: int, x: float) -> float:
    """delta of the best policy over the extreme triples: recursion over the powers of A and B that have occurred."""
    with BALLS.at(128):
        odds, g = extremes.odds_ball(), BALLS.number(rate)
        loss_a = float((g * (odds - 1)).log1p().mid())
        loss_b = float((-g * (1 - 1 / odds)).log1p().mid())
        move = {"A": (1, 0), "1/A": (-1, 0), "B": (0, 1), "1/B": (0, -1)}
        triples = [[(*move[name], float(m.mid())) for name, _, m in atoms] for atoms in extremes.triples(odds, g)]
    rests = [1 - sum(m for *_, m in atoms) for atoms in triples]

    @cache
    def value(left: int, i: int, j: int) -> float:
        if not left:
            return max(math.exp(i * loss_a + j * loss_b) - math.exp(x), 0.0)
        return max(
            sum(m * value(left - 1, i + di, j + dj) for di, dj, m in atoms) + rest * value(left - 1, i, j)
            for atoms, rest in zip(triples, rests, strict=True)
        )

    return value(times, 0, 0)


def reports(rng: np.random.Generator, found: Quotients) -> int:
    """Both ends of the value of reports, in up to twelve rounds."""
    epsilon, rate, times = (
        exact(rng.uniform(0.2, 3), 2),
        exact(10 ** rng.uniform(-2, -0.1), 2),
        int(rng.integers(2, 13)),
    )
    kind, values = int(rng.integers(3)), Fraction(int(rng.integers(3, 9)))
    size = Fraction(int(rng.integers(1, int(values))))
    many = ThreePoints(
        size * (values - size) / (values - 1),
        epsilon=epsilon,
        base=values - size,
        weight=size,
        third=(values - size - 1) / (values - 2),
    )
    pair = (ResponsePair(epsilon=epsilon), ResponsePair(epsilon=epsilon, one_bit=True), many)[kind]
    extremes = pair.extremes()
    assert extremes is not None
    above = value_iteration.optimum_from_above(((extremes, rate, times),), -20.0)
    below = value_iteration.optimum_from_below(((extremes, rate, times),), -20.0)
    x = float(rng.uniform(0, 0.8 * times * math.log1p(float(rate) * math.expm1(float(epsilon)))))
    truth = optimum(extremes, rate, times, x)
    if above is not None:
        found["value from above"] = max(found["value from above"], (truth - 1e-14) / above.delta(x))
    if below is not None and truth > 1e-12:
        found["value from below"] = max(found["value from below"], below.needed_delta(x) / truth)
    again = second_recursion.enclosed_delta(((extremes, rate, times),), Fraction(x), Fraction(1))
    if again is not None and truth > 1e-12:
        found["again from above"] = max(found["again from above"], (truth - 1e-14) / again[1])
        found["again from below"] = max(found["again from below"], again[0] / truth)
    return 1


def test_orders(rng: np.random.Generator, found: Quotients) -> int:
    """Theorem W: the expectation of its test function, and delta, under an adversary with values in up to five dimensions."""
    shift, rate = exact(rng.uniform(0.5, 4), 1), exact(10 ** rng.uniform(-2, -0.9), 1)
    order, times = float(rng.choice([0.5, 2.0, 5.0, 16.0])), int(rng.integers(2, 13))
    dimension = int(rng.integers(1, 6))
    law = reference(LaplaceConstraint(shift, query(dimension), rate), order, 4.0, 14, 120)
    if law is None:
        return 0
    loss, log_p = law.outputs(0.0)
    mass = np.exp(log_p - loss)
    step = law.width / 4
    span = int(times * loss.max() / step) + 60
    grid = step * np.arange(-span, span + 1)
    triples = [on_grid(*noisy(rng, shift, rate, dimension, OUTPUTS[dimension]), step) for _ in range(2)]
    ours = theirs = np.where(
        grid > 0, theorem_w.test_function(order, np.maximum(grid, 0.0)) * np.exp(np.maximum(grid, 0.0)), 0.0
    )
    sticks = np.maximum(np.expm1(grid), 0.0)  # (ratio - e^eps)_+ / e^eps
    for _ in range(times):
        ours = expected(ours, np.round(loss / step), mass)
        theirs = np.max([expected(theirs, *each) for each in triples], axis=0)
        sticks = np.max([expected(sticks, *each) for each in triples], axis=0)
    # from 30 cells above the middle down nothing reaches the ends of the grid
    seen = ours[: span + 30] > 1e-290
    found["test function"] = max(
        found["test function"], float(np.max((theirs / np.maximum(ours, 1e-290))[: span + 30][seen]))
    )
    # delta(eps) <= C n y0 E f_n at every d, read at grid points
    for gap in np.geomspace(0.02, 1.0, 8) * times * loss.max():
        log_R = float(test_functions.log_ratio(order, np.array([gap]))[0])
        C = math.exp(float(test_functions.log_constant(order, np.array([gap]))[0]))
        for cells in (0, span // 8, span // 4):
            start = -cells * step + log_R
            if start < grid[span + 30]:
                bound = C * math.exp(-log_R) * float(np.interp(start, grid, ours))
                needed = float(sticks[span - cells])
                found["delta by test orders"] = max(found["delta by test orders"], needed / max(bound, 1e-290))
    return 1


ATTACKS: tuple[Attack, ...] = (pure_divergences, squares, laplace_divergences, policies, walks, reports, test_orders)


def hunt(settings: int, seed: int) -> tuple[Quotients, Counter[str]]:
    """The largest quotients, and how many triples or adversaries each attack has tried."""
    rng, found, tried = np.random.default_rng(seed), defaultdict[str, float](float), Counter[str]()
    for number in range(settings):
        for attack in ATTACKS:
            if attack is not test_orders or number % 8 == 0:  # a linear programme each
                tried[attack.__name__] += attack(rng, found)
    return dict(found), tried


if __name__ == "__main__":
    settings, seed = (int(each) for each in (sys.argv[1:] + ["100", "1"][len(sys.argv) - 1 :])[:2])
    result, tried = hunt(settings, seed)
    for kind, quotient in result.items():
        print(f"{kind:22} {quotient:.9f}")
    print(", ".join(f"{name.replace('_', ' ')} {count}" for name, count in tried.items()))
    sys.exit(1 if max(result.values()) > 1 + TOLERANCE else 0)
