"""The baselines of Figure 2 against the reference columns, from the mechanisms' own curves."""

import math
from fractions import Fraction

import pytest

import cumulant as cm
from cumulant.conversion.baselines import BASELINES, baseline_epsilon, step
from tests.oracles.reference import load, panel

FIGURE2 = load("figure2")
RATE, DELTA = Fraction("0.001"), FIGURE2["delta"]
COLUMNS = {"naive": "naive", "strong": "strong_simplified", "optimal": "strong_exact"}


@pytest.mark.parametrize("name", FIGURE2["panels"])
@pytest.mark.parametrize("method", BASELINES)
def test_figure2(name: str, method: str) -> None:
    curve = panel(name).curve()
    for times, row in FIGURE2["panels"][name]["k"].items():
        found = baseline_epsilon([step(curve, RATE, int(times))], DELTA, method)
        # the reference search stops 1.1e-3 above the optimum at sigma 5, k 600,000
        assert found == pytest.approx(row[COLUMNS[method]], rel=1e-6 if method == "naive" else 1.2e-3)


@pytest.mark.parametrize("name", FIGURE2["panels"])
def test_rdp_columns(name: str) -> None:
    """Eq. (3) on Theorem 9: the listed number at the listed order, and the search of all orders ends at or below it."""
    once = panel(name) @ cm.WithoutReplacement(rate=RATE)
    reference = FIGURE2["panels"][name]
    for times, row in reference["k"].items():
        order = row["rdp_upper_alpha"]
        there = int(times) * once.rdp(order, bound="theorem9") - math.log(DELTA) / (order - 1)
        assert there == pytest.approx(row["rdp_upper"], rel=1e-9)
        found = (once * int(times)).epsilon(delta=DELTA, method="paper")
        assert found <= min(row["rdp_upper"], row.get("eps_inf_k", math.inf)) * (1 + 1e-9)
        if order < reference["alpha_max_arb"] and row["rdp_upper"] < row.get("eps_inf_k", math.inf):
            assert found == pytest.approx(row["rdp_upper"], rel=1e-9 if order < 400 else 1e-4)


def test_the_order_of_the_baselines() -> None:
    steps = [step(cm.Gaussian(sigma=5).curve(), RATE, 1000), step(cm.Laplace(scale=2).curve(), Fraction(1, 50), 40)]
    naive, strong, optimal = (baseline_epsilon(steps, 1e-6, method) for method in BASELINES)
    assert optimal == strong < naive  # rounds of different kinds take the closed form
    one = [steps[0]]
    assert (
        baseline_epsilon(one, 1e-6, "optimal")
        < baseline_epsilon(one, 1e-6, "strong")
        < baseline_epsilon(one, 1e-6, "naive")
    )


def test_pure_rounds_add_at_delta_zero() -> None:
    for method in BASELINES:
        steps = [step(cm.Laplace(scale=2).curve(), Fraction(1), 3), step(cm.PureDP(1).curve(), Fraction(1, 3), 2)]
        by_hand = 3 * 0.5 + 2 * math.log1p(math.expm1(1) / 3)
        found = baseline_epsilon(steps, 0.0, method)
        assert by_hand <= found <= by_hand * (1 + 1e-12)
        assert baseline_epsilon([step(cm.Gaussian(sigma=1).curve(), Fraction(1), 1)], 0.0, method) == math.inf


def test_the_delta_of_a_promise_is_respected() -> None:
    promise = cm.ApproximateDP(0.1, 1e-6).curve()
    for method in BASELINES:
        assert baseline_epsilon([step(promise, Fraction(1), 10)], 0.9e-5, method) == math.inf
        assert baseline_epsilon([step(promise, Fraction(1), 10)], 1.2e-5, method) <= 1.0 + 1e-9
        # on a sample of one in ten the promise fails one time in ten as often (Lemma 3)
        assert baseline_epsilon([step(promise, Fraction(1, 10), 10)], 0.9e-6, method) == math.inf
        assert baseline_epsilon([step(promise, Fraction(1, 10), 10)], 1.2e-6, method) < 0.2


def test_unknown_method() -> None:
    with pytest.raises(cm.InputError, match="choose one of naive, strong, optimal"):
        baseline_epsilon([], 1e-6, "best")
