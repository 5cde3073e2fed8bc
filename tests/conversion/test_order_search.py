"""epsilon(delta) and delta(epsilon) against certified values and closed forms."""

import math
import tracemalloc
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from scipy import optimize
from scipy.stats import norm

import cumulant as cm
from cumulant.accounting.choices import Method
from cumulant.conversion import order_search as orders
from cumulant.conversion.conversions import CONVERSIONS
from cumulant.numerics.arithmetic import BALLS
from cumulant.numerics.search import Minima, least
from tests.oracles import reference

QUERIES = reference.load("moments_and_queries")["eps_query"]


@pytest.mark.parametrize("row", QUERIES, ids=lambda row: f"{row['mechanism']}-{row['value']}-{row['k']}-{row['delta']}")
@pytest.mark.parametrize("conversion", ["classic", "cks"])
def test_certified_queries(row: dict[str, str], conversion: str) -> None:
    step = reference.mechanism(row["mechanism"], row["value"]) @ cm.WithoutReplacement(rate=str(row["gamma"]))
    run = step * int(row["k"])
    if conversion == "classic":
        answer = run.guarantee(delta=str(row["delta"]), method="paper")
    else:
        answer = run.guarantee(delta=str(row["delta"]), bound="theorem9", conversion="cks")
    listed, order = float(row[conversion]), int(row[f"{conversion}_alpha"])
    if order == 4096:  # the reference stopped there
        assert answer.epsilon <= listed * (1 + 1e-11)
    else:
        assert answer.epsilon == pytest.approx(listed, rel=1e-11)
        assert answer.evidence.order == order


@pytest.mark.parametrize("sigma", [0.1, 1, 7.5, 1e6])
@pytest.mark.parametrize("delta", [1e-300, 1e-8, 0.1])
@pytest.mark.parametrize("times", [1, 13, 10**6])
def test_the_gaussian_matches_its_closed_forms(sigma: float, delta: float, times: int) -> None:
    """Item 12: epsilon = k/(2 s^2) + sqrt(2 k log(1/delta))/s, at lambda = s sqrt(2 log(1/delta)/k)."""
    run = cm.Gaussian(sigma=sigma) * times
    scale = sigma / math.sqrt(times)
    closed = 1 / (2 * scale**2) + math.sqrt(2 * math.log(1 / delta)) / scale
    assert run.epsilon(delta=delta, method="paper") == pytest.approx(closed, rel=1e-11)
    for epsilon in (closed, 2 * closed):
        exponent = -((epsilon - 1 / (2 * scale**2)) ** 2) * scale**2 / 2
        if exponent > -700:
            assert run.delta(epsilon=repr(epsilon), method="paper") == pytest.approx(math.exp(exponent), rel=1e-9)


def test_orders_below_two_are_searched() -> None:
    """E-14: lambda = 0.48 gives 98.0 where lambda >= 1 gives 111.5."""
    assert cm.Gaussian(sigma=0.1).guarantee(delta=1e-5, method="paper").evidence.order == pytest.approx(1.48, abs=0.01)
    assert cm.Gaussian(sigma=0.1).epsilon(delta=1e-5, method="paper") == pytest.approx(98.0, abs=0.05)


def test_curves_that_are_not_cgfs_do_not_trap_the_search() -> None:
    """E-14: doubling and bisection end at 6.93."""
    run = cm.Gaussian(sigma=5) @ cm.WithoutReplacement(rate=0.5) * 10
    assert run.epsilon(delta=1e-5, method="paper") == pytest.approx(5.71, abs=0.005)


def test_pure_dp_ends_at_infinity() -> None:
    """E-14: for few rounds eq. (3) decreases for ever; infinity is a candidate and the search stops."""
    for times in (1, 20):
        run = cm.Laplace(scale=2) * times
        answer = run.guarantee(delta=1e-8, method="paper")
        assert answer.evidence.order == math.inf
        assert answer.epsilon == times * 0.5


def test_the_ends() -> None:
    run = cm.Laplace(scale=2) @ cm.WithoutReplacement(rate=0.01)
    assert run.epsilon(delta=0) == pytest.approx(math.log1p(0.01 * math.expm1(0.5)), rel=1e-14)
    assert run.pure() == pytest.approx(run.epsilon(delta=0), rel=1e-14)
    assert run.epsilon(delta=1) == 0.0
    assert run.delta(epsilon=repr(run.pure() * 1.000001)) == 0.0
    assert cm.Gaussian(sigma=1).epsilon(delta=0) == math.inf
    assert 0 < cm.Gaussian(sigma=1).delta(epsilon=0) <= 1


def test_cks_is_never_worse_than_classic() -> None:
    for base in (cm.Gaussian(sigma=3), cm.Laplace(scale=3), cm.PureDP(0.1), cm.ZeroConcentrated(rho=0.1, xi=0.2)):
        for delta in (1e-12, 1e-3, 0.3):
            run = base @ cm.WithoutReplacement(rate=0.05) * 50
            assert run.epsilon(delta=delta) <= run.epsilon(delta=delta, conversion="classic")


def test_slack_is_taken_out_first() -> None:
    """Four promises hold together with probability 0.9^4 = 0.6561, and then the rest of delta is theirs."""
    run = cm.ApproximateDP(0.5, "0.1") * 4
    assert run.epsilon(delta="0.3438", method="rdp") == math.inf
    assert run.epsilon(delta="0.3439", method="rdp") == 2.0
    assert run.epsilon(delta="0.40951", method="rdp") == pytest.approx(
        (cm.PureDP(0.5) * 4).epsilon(delta="0.1", method="rdp"), rel=1e-12
    )
    assert run.delta(epsilon=2, method="rdp") == pytest.approx(0.3439, rel=1e-15)
    assert run.delta(epsilon=1, method="rdp") == pytest.approx(
        0.3439 + 0.6561 * (cm.PureDP(0.5) * 4).delta(epsilon=1, method="rdp"), rel=1e-12
    )


def test_many_deltas_at_once() -> None:
    run = cm.Gaussian(sigma=5) @ cm.WithoutReplacement(rate=0.001) * 600_000
    deltas = [1e-12, 1e-8, 1e-3, 1.0]
    assert run.epsilon(delta=deltas) == pytest.approx([run.epsilon(delta=delta) for delta in deltas], rel=1e-6)
    epsilons = [0.0, 0.5, 2.0]
    assert run.delta(epsilon=epsilons) == pytest.approx([run.delta(epsilon=epsilon) for epsilon in epsilons], rel=1e-7)


@pytest.mark.parametrize("asked", [{}, {"method": "exact"}, {"method": "rdp"}, {"method": "paper"}], ids=str)
@pytest.mark.parametrize("base", [cm.Gaussian(sigma=5), cm.Laplace(scale=2), cm.RandomizedResponse(p=0.9)], ids=str)
def test_many_round_counts_at_once(base: cm.Mechanism, asked: dict[str, Any]) -> None:
    step = base @ cm.WithoutReplacement(rate=0.001)
    counts = [1, 1000, 10, 10, 600_000]
    one_by_one = [(step * count).epsilon(delta=1e-8, **asked) for count in counts]
    assert step.epsilon_over(counts, delta=1e-8, **asked) == pytest.approx(one_by_one, rel=1e-6)


@pytest.mark.parametrize("asked", [{}, {"method": "rdp"}], ids=str)
def test_round_counts_with_slack_or_without_sampling(asked: dict[str, Any]) -> None:
    promise = cm.ApproximateDP(0.1, 1e-9)
    assert promise.epsilon_over([1, 5, 20], delta=1e-8, **asked) == pytest.approx(
        [(promise * k).epsilon(delta=1e-8, **asked) for k in (1, 5, 20)], rel=1e-12
    )
    assert cm.Gaussian(sigma=9).epsilon_over(np.array([1, 100]), delta=1e-6, **asked) == pytest.approx(
        [(cm.Gaussian(sigma=9) * k).epsilon(delta=1e-6, **asked) for k in (1, 100)], rel=1e-6
    )
    curve_only = cm.ZeroConcentrated(rho="0.1")
    assert curve_only.epsilon_over([1, 3], delta=1e-6, **asked) == pytest.approx(
        [(curve_only * k).epsilon(delta=1e-6, **asked) for k in (1, 3)], rel=1e-6
    )
    assert cm.Laplace(scale=2).epsilon_over([1, 3], delta=0) == pytest.approx([0.5, 1.5], rel=1e-12)


def test_a_delta_just_below_one_is_not_one() -> None:
    nothing = cm.from_masses([1, 0], [0, 1])
    almost = "0.99999999999999999999"
    assert nothing.epsilon(delta=almost) == math.inf
    assert nothing.epsilon(delta=[almost]).tolist() == [math.inf]
    assert nothing.epsilon_over([1], delta=almost).tolist() == [math.inf]
    assert cm.Gaussian(sigma="0.01").epsilon(delta=almost) > 4000


def test_slack_is_compared_exactly() -> None:
    for times in (1, 5, 45, 57):
        run = cm.ApproximateDP("0.125", "1e-6") * times
        failing, less = 1 - (1 - Fraction(1, 10**6)) ** times, Fraction(1, 10**400)
        assert run.epsilon(delta=failing, method="rdp") == 0.125 * times
        assert run.epsilon(delta=[failing], method="rdp") == pytest.approx([0.125 * times], rel=1e-15)
        assert run.epsilon(delta=failing - less, method="rdp") == math.inf
        assert run.epsilon(delta=[failing - less], method="rdp").tolist() == [math.inf]
        found = run.guarantee(delta=failing, method="rdp")
        assert found.verify().holds
    assert cm.ApproximateDP("0.1", "1e-6").epsilon(delta=0, method="rdp") == math.inf
    assert cm.ApproximateDP("0.1", 0).epsilon(delta=0, method="rdp") == 0.1


def test_huge_epsilons_are_not_infinite() -> None:
    assert cm.Gaussian(sigma=1).delta(epsilon="1e400") > 0
    assert cm.Gaussian(sigma=1).delta(epsilon=[10**400])[0] > 0
    assert cm.Gaussian(sigma=1).rdp("1e400") == math.inf


def test_rounded_up_whatever_the_spelling() -> None:
    """Laplace of scale 3 is 1/3-DP: no float is 1/3, so every answer must be above it."""
    third = Fraction(1, 3)
    laplace = cm.Laplace(scale=3)
    answers = [
        laplace.pure(),
        laplace.epsilon(delta=0),
        laplace.epsilon(delta=[0])[0],
        laplace.epsilon_over([1], delta=0)[0],
    ]
    for answer in [*answers, laplace.rdp(math.inf)]:
        assert third <= Fraction(float(answer)) <= third * (1 + Fraction(1, 10**12))


def test_a_value_does_not_depend_on_its_batch() -> None:
    points = cm.from_rdp_points([2, 4], [0.1, 0.3]) @ cm.WithoutReplacement(rate="0.12")
    assert points.rdp([3, 5], bound="theorem9")[0] == points.rdp(3, bound="theorem9") < 0.02


def test_a_delta_that_no_float_shows_is_not_looked_for_at_enormous_orders() -> None:
    """The best order here is 10^12, where one ball takes minutes; at the order that is taken delta is below 5e-324 too."""
    run = cm.Gaussian(sigma="1e6", geometry="ball") @ cm.WithoutReplacement(rate="0.5") * 30
    found = orders.best_delta(run.curve("best"), [Fraction(1)], CONVERSIONS["cks"])
    assert found.value[0] == 5e-324
    assert found.order[0] < 1e4
    for method in ("best", "rdp"):
        assert run.delta(1, method=method) == 5e-324
    assert (cm.Gaussian(sigma=2) @ cm.WithoutReplacement(rate="0.02") * 2).delta(1000) == 5e-324


@pytest.mark.parametrize(
    ("rho", "epsilon"), [("1e-13", "5e-30"), ("1e-30", "1e-14"), ("1e-200", "1e-100"), ("1e-5", "0.01")]
)
def test_the_order_of_concentrated_noise_is_found_wherever_it_is(rho: str, epsilon: str) -> None:
    """delta = min over lambda of e^{lambda (lambda+1) rho - lambda eps} (lambda/(lambda+1))^lambda / (lambda+1), in balls."""

    def log_delta(log_lam: float) -> float:
        with BALLS.at(2000):
            lam = BALLS.number(log_lam).exp()
            gain = lam * (lam + 1) * BALLS.number(Fraction(rho)) - lam * BALLS.number(Fraction(epsilon))
            return float(gain - lam * (1 / lam).log1p() - lam.log1p())

    centre = min(np.arange(-5.0, 500.0, 0.25), key=log_delta)
    found = optimize.minimize_scalar(
        log_delta, bounds=(centre - 0.3, centre + 0.3), method="bounded", options={"xatol": 1e-9}
    )
    delta = cm.ZeroConcentrated(rho).delta(epsilon, method="rdp", conversion="cks")
    assert delta == pytest.approx(math.exp(found.fun), rel=1e-9, abs=1e-320)


def test_the_best_order_may_lie_beyond_the_divergence_it_is_below() -> None:
    """At orders around 1/delta the conversion is below the divergence itself: a search that stops there misses them."""
    run = cm.RandomizedResponse(p="0.503") @ cm.WithoutReplacement(rate="0.025")
    deltas = [f"{8 + i / 2:.4g}e-5" for i in range(9)]
    found = [run.epsilon(delta, method="rdp") for delta in deltas]
    assert found == sorted(found, reverse=True)
    for delta, epsilon in zip(deltas, found, strict=True):
        orders = np.geomspace(2, 1e6, 400)
        terms = np.log1p(-1 / orders) - (math.log(float(delta)) + np.log(orders)) / (orders - 1)
        assert epsilon <= float(np.min(run.rdp(orders) + terms)) * (1 + 1e-9)


def test_no_order_is_asked_where_nothing_is_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two equal laws: epsilon is 0 at order infinity, and no search among orders can be below."""
    monkeypatch.setattr(orders, "least", lambda *_: pytest.fail("a search for what is known"))
    run = cm.from_masses(p=[0.5, 0.5], q=[0.5, 0.5]) @ cm.WithoutReplacement(rate=0.1)
    assert run.epsilon(1e-6, bound="theorem9") == 0.0
    assert run.epsilon([1e-6], bound="theorem9").tolist() == [0.0]


@pytest.mark.parametrize("method", ["best", "rdp"])
def test_many_questions_take_memory_in_proportion(method: Method) -> None:
    """The search of all questions at once looked at every order that any of them refined: memory grew with the square."""
    asked = np.linspace(0, 5, 600)
    tracemalloc.start()
    try:
        found = cm.Gaussian(sigma=1).delta(asked, method=method)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 16e6  # half a gigabyte before
    truth = norm.cdf(0.5 - asked) - np.exp(asked) * norm.cdf(-0.5 - asked)
    assert (found >= truth * (1 - 1e-9)).all()
    if method == "best":
        np.testing.assert_allclose(found, truth, rtol=1e-9)
    assert found[280] == pytest.approx(cm.Gaussian(sigma=1).delta(asked[280], method=method), rel=1e-12)


def test_deltas_that_no_float_holds_are_not_refined(monkeypatch: pytest.MonkeyPatch) -> None:
    """Such a delta has many best orders, and every round divided all of their cells: 500 epsilons took 12 seconds."""
    asked: list[int] = []

    def counted(objective: Callable[[Any], Any], *rest: Any) -> Minima:
        def noted(lam: Any) -> Any:
            asked.append(len(lam))
            return objective(lam)

        return least(noted, *rest)

    monkeypatch.setattr(orders, "least", counted)
    found = orders.best_delta(cm.Gaussian(sigma=1).curve(), [Fraction(x) for x in range(40, 50)], CONVERSIONS["cks"])
    assert (found.value == 5e-324).all()
    assert sum(asked) < 200


def test_small_deltas_are_refined() -> None:
    found = orders.best_delta(cm.Gaussian(sigma=1).curve(), [Fraction(30), Fraction(45)], CONVERSIONS["cks"])
    assert found.value[0] == pytest.approx(math.exp(-(29.5**2) / 2), rel=1)
    assert found.value[0] < math.exp(-(29.5**2) / 2)
    assert found.value[1] == 5e-324


def test_one_delta_alone_is_searched_as_far_as_among_others() -> None:
    """The search ended where a millionth was left to gain: alone this delta got 3e-8 more than beside a smaller one."""
    passes = cm.ExponentialMechanism(epsilon="9.193") @ cm.ShuffledBatches(batch=2, records=38)
    run = passes @ cm.RepeatAndSelect(mean=4, shape=2)
    beside = float(run.epsilon(["1e-30", "1e-12"], method="rdp")[1])
    assert run.epsilon("1e-12", method="rdp") <= beside * (1 + 1e-10)
    assert run.epsilon("1e-12") <= beside * (1 + 1e-10)


@pytest.mark.parametrize("epsilon", [10**300, 10**308, 10**309, 10**400])
def test_an_epsilon_beyond_the_largest_float_gives_a_delta_that_no_float_shows(epsilon: int) -> None:
    """Its product with an order was no float: delta was 0.131, the distance of the whole run, from 1e308 on."""
    run = cm.Gaussian(sigma="1.1", relation="add-remove") @ cm.Poisson(rate="1/37") * 77
    assert run.delta(epsilon, method="rdp") == orders.LEAST_FLOAT
    assert (cm.Gaussian(sigma=1) * 3).delta(epsilon, method="paper") == orders.LEAST_FLOAT


def test_pure_privacy_of_an_enormous_epsilon_needs_no_delta() -> None:
    run = cm.PureDP(Fraction(10) ** 200)
    assert run.delta(10**201, method="rdp") == 0
    assert run.delta(10**199, method="rdp") == 1
