"""What Theorem W demands: kernels and balls against the definition, and random triples that never demand more."""

import math
from fractions import Fraction

import numpy as np
import pytest

import cumulant as cm
from cumulant.exact.adaptive import constraints
from cumulant.exact.adaptive.constraints import (
    BITS,
    Constraint,
    LaplaceConstraint,
    ReportConstraint,
    integrals,
    kernels,
)
from cumulant.exact.adaptive.reference_law import rows_between
from cumulant.numerics.arithmetic import BALLS
from tests.oracles.triples import Laws, binned_laplace, demanded, random_l1_triples, random_pure_triples

ORDERS = (0.5, 1.25, 2.0, 8.0, 40.0)


def reports(mechanism: cm.Mechanism, rate: str) -> ReportConstraint:
    pair = mechanism.pair()
    extremes = None if pair is None else pair.extremes()
    assert extremes is not None
    return ReportConstraint(extremes, Fraction(rate))


def asked(constraint: Constraint, order: float, starts: Laws) -> Laws:
    with BALLS.at(BITS):
        found = constraint.required_integrals(order, starts)
        assert found is not None
        return np.array([float(each.upper()) for each in found])


@pytest.mark.parametrize("order", ORDERS[:4])
def test_kernels_are_what_a_triple_demands(order: float) -> None:
    """In floats, and in balls, which hold what floats say."""
    rng = np.random.default_rng(1)
    r, p, q = random_pure_triples(rng, 2.0, 20)
    a, b = 0.8 * r + 0.2 * p, 0.8 * r + 0.2 * q
    starts = np.array([-0.9, -0.5, -0.2, -0.01, 0.0, 0.02, 0.3, 0.7])
    for i, j in zip(a, b, strict=True):
        truth = [float(demanded(order, float(x0), i, j)) for x0 in starts]
        assert kernels(order, starts, np.log(i / j)) @ j == pytest.approx(truth, rel=1e-7, abs=1e-12)
        with BALLS.at(BITS):
            atoms = [
                ((BALLS.number(float(m)) / BALLS.number(float(w))).log(), BALLS.number(float(w)))
                for m, w in zip(i, j, strict=True)
            ]
            found = integrals(order, starts, atoms)
            assert [float(each.mid()) for each in found] == pytest.approx(truth, rel=1e-7, abs=1e-12)
            assert all(float(each.rad()) < 1e-30 for each in found)


def test_balls_of_losses_demand_at_least_their_share() -> None:
    """A ball does not tell on which side of x0 its loss is: the sum is enough for every loss in it."""
    starts = np.array([-0.5, -0.26, -0.25, -0.21, 0.0, 0.21, 0.25, 0.26, 0.5])
    with BALLS.at(BITS):
        for sign in (1, -1):
            ball = BALLS.number(sign * 0.2).union(BALLS.number(sign * 0.3))
            enough = integrals(3.0, starts, [(ball, BALLS.number(1))])
            for loss in np.linspace(0.2, 0.3, 11):
                exact = integrals(3.0, starts, [(BALLS.number(float(sign * loss)), BALLS.number(1))])
                assert all(more.upper() >= less.lower() for more, less in zip(enough, exact, strict=True))


def dominated(constraint: Constraint, order: float, a: Laws, b: Laws) -> float:
    """The largest quotient of what these triples demand and what is said, on some rows of a check."""
    rows = rows_between(constraint.top, 40)
    wanted = asked(constraint, order, rows)[:-2]
    relevant = wanted > 1e-9 * wanted[0]
    found = np.array([demanded(order, float(x0), a, b).max() for x0 in rows[:-2]])
    return float(np.max(found[relevant] / wanted[relevant]))


@pytest.mark.parametrize("order", ORDERS)
def test_no_pure_triple_demands_more(order: float) -> None:
    rng = np.random.default_rng(2)
    for epsilon, rate in ((1.0, "0.05"), (3.0, "0.3")):
        r, p, q = random_pure_triples(rng, epsilon, 400)
        g = float(rate)
        constraint = reports(cm.PureDP(Fraction(str(epsilon))), rate)
        assert dominated(constraint, order, (1 - g) * r + g * p, (1 - g) * r + g * q) <= 1 + 1e-6


@pytest.mark.parametrize("order", [2.5, 8.0, 40.0])
def test_the_star_of_the_plane_comes_close(order: float) -> None:
    for shift, rate in (("1", "0.05"), ("4", "0.01")):
        g = float(rate)
        constraint = LaplaceConstraint(Fraction(shift), "vector", Fraction(rate))
        laws = binned_laplace(np.array([(0, 0), (0.5, 0.5), (0.5, -0.5)]) * float(shift), 40)
        a, b = (1 - g) * laws[0] + g * laws[1], (1 - g) * laws[0] + g * laws[2]
        assert 0.7 < dominated(constraint, order, a[None], b[None]) <= 1.0


def test_a_demand_that_is_too_small_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """With a budget of one dimension the star of the plane demands more than is said."""
    laws = binned_laplace(np.array([(0, 0), (1.0, 1.0), (1.0, -1.0)]), 60)
    a, b = 0.99 * laws[0] + 0.01 * laws[1], 0.99 * laws[0] + 0.01 * laws[2]
    assert dominated(LaplaceConstraint(Fraction(2), "vector", Fraction(1, 100)), 2.5, a[None], b[None]) <= 1
    assert dominated(LaplaceConstraint(Fraction(2), "scalar", Fraction(1, 100)), 2.5, a[None], b[None]) > 1
    monkeypatch.setattr(constraints, "largest_square", lambda shift, query: 0.9 * 4.669)
    assert dominated(LaplaceConstraint(Fraction(2), "vector", Fraction(1, 100)), 2.5, a[None], b[None]) > 1


@pytest.mark.parametrize("order", [0.5, 3.0, 32.0])
def test_the_best_filling(order: float) -> None:
    """Against the supremum itself: the profile's H from x0 on, until the budget is used up, by sums over fine cells."""
    shift, rate, square = 2.0, 0.01, 4.668790
    beta = rate**2 * square / (2 * (1 - rate))
    top = math.log1p(rate * math.expm1(shift))
    rows = rows_between(top * (1 + 1e-12), 280)
    wanted = asked(LaplaceConstraint(Fraction(2), "vector", Fraction(1, 100)), order, rows)
    for j in (0, 100, 200, 270, 300, 400, 500):
        x = np.linspace(rows[j], top, 400_001)
        middle, step = (x[:-1] + x[1:]) / 2, x[1] - x[0]
        s = 1 + np.expm1(np.abs(middle)) / rate
        H = rate * np.maximum(1 - np.exp((np.log(s) - shift) / 2), 0) * np.exp(np.minimum(middle, 0))
        kept = np.cumsum(np.exp(middle) * H) * step <= beta
        truth = float(np.sum((np.exp(-order * middle) * H)[kept])) * step
        # the budget is certified to 3e-4
        assert truth * (1 - 1e-5) <= wanted[j] <= truth * (1 + 4e-4)


def test_unknown_budgets_demand_nothing_that_could_be_met() -> None:
    with BALLS.at(BITS):
        assert (
            LaplaceConstraint(Fraction(50), "vector", Fraction(1, 10**20)).required_integrals(
                2.0, np.array([-1.0, 0.0, 1.0])
            )
            is None
        )
        assert (
            LaplaceConstraint(Fraction(1), "", Fraction(1, 100)).required_integrals(2.0, np.array([-1.0, 0.0, 1.0]))
            is None
        )


@pytest.mark.parametrize("dimension", [1, 2, 3])
def test_no_laplace_triple_demands_more(dimension: int) -> None:
    """Random values, outputs in boxes, which only lose."""
    rng = np.random.default_rng(30 + dimension)
    query = "scalar" if dimension == 1 else "vector"
    starts = np.linspace(-1.0, 0.98, 12)
    worst = 0.0
    for number, triple in enumerate(np.stack(random_l1_triples(rng, 1.0, 70, dimension), axis=1)):
        shift, rate = (("1", "0.05"), ("4", "0.01"), ("2", "0.2"), ("0.5", "0.1"))[number % 4]
        order, g = (*ORDERS, 128.0, 0.1)[number % 7], float(rate)
        laws = binned_laplace(triple * float(shift), (200, 30, 8)[dimension - 1])
        a, b = (1 - g) * laws[0] + g * laws[1], (1 - g) * laws[0] + g * laws[2]
        constraint = LaplaceConstraint(Fraction(shift), query, Fraction(rate))
        rows = np.unique(np.concatenate([rows_between(constraint.top, 60), starts * constraint.top]))
        wanted = asked(constraint, order, rows)[np.searchsorted(rows, starts * constraint.top)]
        found = np.array([float(demanded(order, x0, a, b)) for x0 in starts * constraint.top])
        worst = max(worst, float(np.max(found / wanted)))
    assert 0.8 < worst <= 1.0
