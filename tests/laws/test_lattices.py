"""Random finite pairs composed output by output: no bound is ever on the wrong side of the truth."""

import math
from fractions import Fraction

import numpy as np
import pytest

from cumulant.exact.grid import refine as search
from cumulant.exact.grid.fft import compose
from cumulant.losses.grid import Mixture, Terms
from cumulant.pairs.finite import Finite
from tests import effort
from tests.exact.brute import DIRECTIONS, RATES, Composed, Pairs, law_of, random_pair, sampled

EXACT = 1e-15  # the truth itself is known to 1e-17


def random_run(rng: np.random.Generator, most: int = 6) -> tuple[Terms, Composed]:
    """A sum of one to three sampled pairs under one direction, at most six rounds in all, and its composition."""
    direction = str(rng.choice(DIRECTIONS))
    terms, pairs, left = [], [], most
    for _ in range(int(rng.integers(1, 4))):
        times = int(rng.integers(1, left - 1)) if left > 2 else 1
        pair, rate = random_pair(rng), RATES[int(rng.integers(len(RATES)))]
        terms.append((Mixture(law_of(pair), float(rate), float(1 - rate), direction), times))
        pairs.append((sampled(pair, rate, direction), times))
        left -= times
        if not left:
            break
    return tuple(terms), Composed(pairs)


@pytest.mark.parametrize("seed", range(effort.drawn(2)))
def test_lattices_of_any_step_and_order_are_on_their_side_of_delta(seed: int) -> None:
    rng = np.random.default_rng(seed)
    informative = 0
    for _ in range(150):
        terms, truth = random_run(rng)
        if any(step.leak == 1 for step, _ in terms):
            continue  # nothing finite to put on a lattice
        largest = max(truth.largest(), 1e-12)
        longest = max(*(abs(end) for step, _ in terms for end in step.span(-40.0)), 1e-12)
        width = longest * float(rng.choice([0.7, 0.11, 0.013]))
        lam = float(rng.choice([0.01, 1.0, 30.0])) / largest
        epsilons = largest * np.array([0.0, 0.02, 0.3, 0.8, 0.99]) * rng.random()
        upper, lower = (compose(terms, width, -40.0, lam, side) for side in (True, False))
        for epsilon in epsilons.tolist():
            exact = truth.delta(epsilon)
            above, below = min(upper.log_delta(epsilon - upper.slip), 1.0), lower.log_delta(epsilon + lower.slip)
            assert exact <= np.exp(np.longdouble(above)) * (1 + EXACT), (terms, width, lam, epsilon)
            assert exact * (1 + EXACT) >= np.exp(np.longdouble(below)), (terms, width, lam, epsilon)
            informative += above < 0.5 * below if below < 0 else False
    assert informative > 100  # a bound of 1 or 0 proves nothing


@pytest.mark.parametrize("seed", range(effort.drawn(1)))
def test_searches_are_on_their_side_of_epsilon(seed: int) -> None:
    rng = np.random.default_rng(100 + seed)
    informative = 0
    for _ in range(40):
        terms, truth = random_run(rng)
        delta = float(rng.choice([0.5, 1e-2, 1e-6, 1e-12])) * float(rng.random())
        upper, lower = (search.grid_epsilon(terms, math.log(delta), 0.01, side) for side in (True, False))
        if math.isfinite(upper.value):
            assert truth.delta(upper.value) <= delta * (1 + EXACT), (terms, delta)
        else:
            assert truth.delta(truth.largest() * 2) > delta * (1 - 1e-6), (terms, delta)
        if lower.value > 0:
            assert truth.delta(lower.value) >= delta * (1 - EXACT), (terms, delta)
            informative += lower.value > 0.9 * upper.value
    assert informative > 4


@pytest.mark.parametrize("upper", [True, False])
def test_searches_for_delta_are_on_their_side(upper: bool) -> None:
    rng = np.random.default_rng(7)
    for _ in range(effort.drawn(10)):
        terms, truth = random_run(rng)
        epsilon = truth.largest() * float(rng.choice([0.0, 0.2, 0.7, 1.1]))
        found, exact = search.grid_delta(terms, epsilon, 0.01, upper).value, truth.delta(epsilon)
        assert (exact <= found * (1 + EXACT)) if upper else (exact * (1 + EXACT) >= found), (terms, epsilon)


def test_a_pair_that_is_not_symmetric_lies_between_its_own_lower_and_the_symmetric_upper() -> None:
    rng = np.random.default_rng(11)
    for _ in range(effort.drawn(10)):
        p, q = (_masses(rng, 4) for _ in range(2))
        rate, times = RATES[int(rng.integers(len(RATES)))], int(rng.integers(1, 6))
        dominating = Mixture(law_of(list(zip(p, q, strict=True))), float(rate), float(1 - rate), "symmetric")
        delta = float(rng.choice([0.1, 1e-3, 1e-6]))
        above = search.grid_epsilon(((dominating, times),), math.log(delta), 0.01, True).value
        for a, b in ((p, q), (q, p)):
            for direction in ("remove", "add"):
                actual: Pairs = [((1 - rate) * y + rate * x, y) for x, y in zip(a, b, strict=True)]
                actual = actual if direction == "remove" else [(y, x) for x, y in actual]
                truth = Composed([(actual, times)])
                if math.isfinite(above):
                    assert truth.delta(above) <= delta * (1 + EXACT)
                step = Finite.sampled(a, b, rate, direction)
                below = search.grid_epsilon(((step, times),), math.log(delta), 0.01, False).value
                assert below == 0 or truth.delta(below) >= delta * (1 - EXACT)


def _masses(rng: np.random.Generator, count: int) -> list[Fraction]:
    weights = [Fraction(int(v)) for v in rng.integers(0, 1000, count)]
    weights[0] += 1
    return [w / sum(weights) for w in weights]


def test_losses_on_a_lattice_of_their_own_cost_nothing() -> None:
    rng = np.random.default_rng(13)
    for _ in range(effort.drawn(10)):
        p = Fraction(int(rng.integers(51, 99)), 100)
        pair: Pairs = [(p, 1 - p), (1 - p, p)]
        rate, times = RATES[int(rng.integers(4))], int(rng.integers(1, 7))
        direction = str(rng.choice(DIRECTIONS))
        terms = ((Mixture(law_of(pair), float(rate), float(1 - rate), direction), times),)
        truth, delta = Composed([(sampled(pair, rate, direction), times)]), float(rng.choice([0.05, 1e-3, 1e-5]))
        upper, lower = (search.grid_epsilon(terms, math.log(delta), 1e-3, side).value for side in (True, False))
        assert truth.delta(upper) <= delta * (1 + EXACT)
        assert lower == 0 or truth.delta(lower) >= delta * (1 - EXACT)
        assert 0 <= upper - lower <= 1e-9 * upper
