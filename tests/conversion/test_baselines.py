"""The baselines of Figure 2 against the reference columns, from the mechanisms' own curves."""

import math
from fractions import Fraction

import pytest
from scipy import optimize

import cumulant as cm
from cumulant.accounting.numbers import rounded_up
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
    assert optimal < strong < naive  # two kinds of rounds are few enough for the exact product
    many = [step(cm.Laplace(scale=2 + i).curve(), Fraction(1), 9) for i in range(20)]
    assert baseline_epsilon(many, 1e-6, "optimal") == baseline_epsilon(many, 1e-6, "strong")
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


def recomposed(epsilon: float, round_delta: float, times: int, delta: float) -> float:
    """Kairouz, Oh and Viswanath, Theorem 3.4, by hand."""
    left = -math.expm1(math.log1p(-delta) - times * math.log1p(-round_delta))
    drift, variance = times * epsilon * math.tanh(epsilon / 2), times * epsilon**2
    log_odds = min(math.log(math.e + math.sqrt(variance) / left), -math.log(left))
    return min(times * epsilon, drift + math.sqrt(2 * variance * log_odds))


@pytest.mark.parametrize(("sigma", "times"), [(5.0, 600_000), (5.0, 1000), (1.0, 600_000)])
def test_the_guarantee_names_the_round_that_was_chosen(sigma: float, times: int) -> None:
    """Item 47: the choice, found here by a search of its own over the share of delta that the rounds spend."""
    rate, delta = 0.001, 1e-8

    def stated(share: float) -> tuple[float, float]:
        own = share * delta / times / rate
        alone = 1 / (2 * sigma**2) + math.sqrt(2 * math.log(1 / own)) / sigma  # eq. (3)
        return math.log1p(rate * math.expm1(alone)), own * rate

    best = optimize.minimize_scalar(
        lambda share: recomposed(*stated(share), times, delta), bounds=(1e-4, 1 - 1e-4), method="bounded"
    )
    run = cm.Gaussian(sigma=sigma) @ cm.WithoutReplacement(rate=rate) * times
    found = run.guarantee(delta=delta, method="strong")
    (term,) = found.evidence.terms
    assert term.round is not None
    epsilon, round_delta = term.round
    assert found.epsilon <= float(best.fun) * (1 + 1e-4)
    assert found.epsilon == pytest.approx(recomposed(epsilon, round_delta, times, delta), rel=1e-9)
    share = round_delta * times / delta
    assert epsilon == pytest.approx(stated(share)[0], rel=1e-9)
    assert 0.5 < share < 1
    # it is in the words and in the JSON, and comes back
    assert f"each time ({rounded_up(epsilon)}, {rounded_up(round_delta)})-DP" in found.explain()
    assert cm.Guarantee.from_json(found.to_json()).evidence.terms == found.evidence.terms


def test_rounds_of_other_answers() -> None:
    mixed = (cm.Gaussian(sigma=5) * 3 + cm.Laplace(scale=2) * 10).guarantee(delta=1e-6, method="naive")
    spent = [(term.round or (math.nan, math.nan))[1] * term.times for term in mixed.evidence.terms]
    assert sum(spent) == pytest.approx(1e-6, rel=1e-9)  # naive composition spends everything on the rounds
    total = sum((term.round or (math.nan, math.nan))[0] * term.times for term in mixed.evidence.terms)
    assert mixed.epsilon == pytest.approx(total, rel=1e-9)
    for method in ("best", "rdp", "paper"):
        assert all(
            term.round is None for term in cm.Gaussian(sigma=1).guarantee(delta=1e-6, method=method).evidence.terms
        )
    assert (
        cm.Gaussian(sigma=1).guarantee(delta=0, method="naive").evidence.terms[0].round is None
    )  # no finite epsilon, no round


def test_every_baseline_has_a_name_that_questions_know() -> None:
    from cumulant.accounting.question import BASELINES as NAMES
    from cumulant.accounting.text import COMPOSITIONS

    assert tuple(BASELINES) == NAMES == tuple(COMPOSITIONS)
