"""Filters: the certificate against the supremum it certifies, the doors, the odometer, and what adaptivity costs."""

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from scipy import optimize, stats

import cumulant as cm
from cumulant.filters.amounts import Amounts
from cumulant.filters.filter import UNIT, Filter, GaussianSum, Plan, Step, Tariff
from cumulant.filters.mixture import PARTS, Mixture
from cumulant.numerics.arithmetic import BALLS

E6 = Fraction(1, 10**6)


def step(mechanism: cm.Mechanism) -> Step:
    return Step(mechanism, str(mechanism), mechanism.curve(), mechanism.pair())


def charge(rule: Filter, run: cm.Expression) -> Amounts:
    return Tariff(rule).charge(run)


def fits(rule: Filter, run: cm.Expression, most: int = 10**9) -> int:
    prices = [(price.upper, times) for price, times in Tariff(rule).prices(run)]
    return rule.would_fit(rule.zero(), prices, most)


def log_supremum(rule: Mixture, cgf: list[float], pure: float = math.inf) -> float:
    """log sup_{L > epsilon} (1 - e^{epsilon - L}) / SUM w e^{lam L - K}, straight from the definition: by a scan and a
    bounded search around its best point."""
    lam, w = np.array(rule.orders, dtype=float), np.array(rule.weights, dtype=float)
    far = min(pure - float(rule.epsilon), 50.0)
    if far <= 0:
        return -math.inf

    def value(c: Any) -> Any:
        c = np.atleast_1d(c)
        exponents = np.log(w)[:, None] + np.outer(lam, float(rule.epsilon) + c) - np.array(cgf)[:, None]
        return np.log(-np.expm1(-c)) - np.logaddexp.reduce(exponents, axis=0)

    nodes = np.geomspace(1e-11 * far, far, 4001)
    best = int(np.argmax(value(nodes)))
    low, high = nodes[max(best - 1, 0)], nodes[min(best + 1, nodes.size - 1)]
    found = optimize.minimize_scalar(
        lambda c: -value(c)[0], bounds=(low, high), method="bounded", options={"xatol": 1e-14}
    )
    return float(max(value(nodes[best])[0], -found.fun))


def total_of(cgf: list[float], pure: float | None = None) -> Amounts:
    return Amounts.of([*(math.ceil(x * UNIT) for x in cgf), None if pure is None else math.ceil(pure * UNIT), 0])


def log_bound(rule: Mixture, total: Amounts, parts: tuple[int, ...]) -> float:
    with BALLS.at(128):
        return float(rule._log_bound(total, parts).upper())


def random_mixture(rng: np.random.Generator, spread: float = 1.0) -> tuple[Mixture, list[float]]:
    m = int(rng.integers(1, 14))
    orders = sorted({Fraction(f"{x:.4g}") for x in 10 ** rng.uniform(-spread, 2 * spread, m)})
    weights = rng.dirichlet(np.ones(len(orders)))
    epsilon = Fraction(f"{10 ** rng.uniform(-1, 1):.3g}")
    rule = Mixture(
        epsilon, E6, Fraction(0), tuple(orders), tuple(Fraction(f"{0.999 * w + 1e-12:.12f}") for w in weights)
    )
    assert sum(rule.weights) <= 1
    scale, power = 10 ** rng.uniform(-3, 0.5), rng.uniform(1, 2.2)
    cgf = [scale * float(lam) * (float(lam) + 1) ** (power - 1) * rng.uniform(0.9, 1.1) for lam in orders]
    return rule, cgf


@pytest.mark.parametrize("seed", range(200))
def test_the_certificate_is_the_supremum(seed: int) -> None:
    """Never below it, and above it by less than 1e-7; any other distribution only gives more."""
    rng = np.random.default_rng(seed)
    rule, cgf = random_mixture(rng, spread=1.0 if seed < 150 else 3.0)  # orders that are far apart, too
    pure = None if seed % 3 else float(rule.epsilon) * rng.uniform(1.001, 2)
    total = total_of(cgf, pure)
    supremum = log_supremum(rule, cgf, math.inf if pure is None else pure)
    found = log_bound(rule, total, rule._parts(total))
    assert supremum - 1e-9 <= found <= supremum + 1e-7
    assert rule._log_g(total) == pytest.approx(supremum, abs=1e-9)
    other = [int(x * PARTS) for x in rng.dirichlet(np.ones(len(cgf)))]
    other[0] += PARTS - sum(other)
    assert log_bound(rule, total, tuple(other)) >= supremum - 1e-9
    for factor, allowed in ((1.0001, True), (0.9999, False)) if abs(supremum) < 600 else ():
        at = Mixture(rule.epsilon, Fraction(math.exp(supremum) * factor), rule.slack, rule.orders, rule.weights)
        assert (at.certificate(total) is not None) is allowed


def test_a_point_mass_is_the_union_bound_and_one_order_is_the_conversion() -> None:
    rule = Mixture.for_budget(Fraction(1), E6)
    total = charge(rule, cm.Gaussian(sigma=9))
    for i, (lam, w) in enumerate(zip(rule.orders, rule.weights, strict=True)):
        a = float(lam) + 1  # CKS: log delta = K - lam eps + lam log(lam/a) - log a
        cks = float(lam) * a / 162 - float(lam) + float(lam) * math.log(float(lam) / a) - math.log(a)
        parts = tuple(PARTS if j == i else 0 for j in range(len(rule.orders)))
        assert log_bound(rule, total, parts) == pytest.approx(cks - math.log(w), rel=1e-12)
    single = Mixture(Fraction(1), E6, Fraction(0), (Fraction(21),), (Fraction(1),))
    by_order = math.exp(21 * 22 / 162 - 21 + 21 * math.log(21 / 22) - math.log(22))
    assert math.exp(single._log_g(charge(single, cm.Gaussian(sigma=9)))) == pytest.approx(by_order, rel=1e-12)


def test_the_default_mixture() -> None:
    for epsilon, delta, best in ((1.0, "1e-6", 20.98), (3.0, "1e-6", 7.93), (8.0, "1e-5", 2.87)):
        rule = Mixture.for_budget(Fraction(epsilon), Fraction(delta))
        assert float(rule.orders[0]) == pytest.approx(best, abs=0.005)
        assert len(rule.orders) == 13
        assert sum(rule.weights) <= 1
        assert rule.weights[0] == Fraction(1, 2)
    for epsilon, delta in ((0.0, "1e-6"), (1e-9, "1e-200"), (1000.0, "0.5"), (0.1, "0.999")):
        rule = Mixture.for_budget(Fraction(epsilon), Fraction(delta))
        assert all(lam > 0 for lam in rule.orders)
        assert rule.certificate(rule.zero()) == ()
        assert rule.odometer(rule.zero()) == 0.0


def test_more_is_never_more_allowed() -> None:
    rng = np.random.default_rng(5)
    for _ in range(40):
        rule, cgf = random_mixture(rng)
        low, high = cgf, [x * rng.uniform(1, 1.2) for x in cgf]
        assert rule._log_g(total_of(low)) <= rule._log_g(total_of(high)) + 1e-12
        if rule.certificate(total_of(high)) is not None:
            assert rule.certificate(total_of(low)) is not None


def test_counts() -> None:
    assert fits(Mixture.for_budget(Fraction(1), Fraction(1, 10**40)), cm.PureDP(0.01)) == 100
    assert fits(Mixture.for_budget(Fraction(1), Fraction(1, 10**12)), cm.PureDP(0.01)) == 217
    assert fits(Mixture.for_budget(Fraction(1), Fraction(0)), cm.PureDP(0.01)) == 100


def test_two_mechanisms_that_break_the_epsilon_of_the_history() -> None:
    rule, first = Mixture.for_budget(Fraction(1), E6), cm.Gaussian(sigma=7.75)
    assert rule.certificate(charge(rule, first)) is not None
    for second in (cm.RandomizedResponse(p="0.62"), cm.Gaussian(sigma=5.06)):
        assert (first + second).epsilon(delta="1e-6") < 1
        assert rule.certificate(charge(rule, first + second)) is None


SGD = cm.Gaussian(sigma=2) @ cm.Poisson(rate="0.004")


def nonadaptive(rule: Mixture, run: cm.Expression) -> int:
    """How many fit when all is fixed in advance: the best real order, the conversion of CKS."""
    lam = np.geomspace(0.05, 4000, 20_000)
    room = math.log(rule.delta) + lam * float(rule.epsilon) + lam * np.log1p(1 / lam) + np.log1p(lam)
    return int(np.max(room / np.asarray(run.curve().cgf(lam))))


@pytest.mark.parametrize(
    ("epsilon", "run"),
    [
        (1, cm.Gaussian(sigma=300)),
        (1, cm.PureDP(0.01)),
        (1, SGD),
        (3, cm.Gaussian(sigma=100)),
        (3, cm.Laplace(scale=40)),
        (3, cm.Gaussian(sigma=1) @ cm.Poisson(rate="0.001")),
    ],
    ids=str,
)
def test_adaptivity_costs_six_percent_at_most(epsilon: int, run: cm.Expression) -> None:
    rule = Mixture.for_budget(Fraction(epsilon), E6)
    free, careful = nonadaptive(rule, run), fits(rule, run)
    assert 0.94 * free <= careful <= free


def test_like_moves_the_weight() -> None:
    epsilon, delta = Fraction(8), Fraction(1, 10**5)
    run = cm.Gaussian(sigma="0.6") @ cm.Poisson(rate="0.004")
    default, like = Mixture.for_budget(epsilon, delta), Mixture.for_budget(epsilon, delta, like=run.curve())
    free = nonadaptive(default, run)
    assert fits(default, run) / free == pytest.approx(0.70, abs=0.02)
    assert fits(like, run) / free == pytest.approx(0.925, abs=0.01)
    floor = cm.Gaussian(sigma=1) @ cm.Poisson(rate="0.001")
    default, like = Mixture.for_budget(Fraction(1), E6), Mixture.for_budget(Fraction(1), E6, like=floor.curve())
    free = nonadaptive(default, floor)
    assert fits(default, floor) < 0.1 * free
    assert fits(like, floor) / free == pytest.approx(0.78, abs=0.02)


@pytest.mark.parametrize("run", [cm.Gaussian(sigma=20) * 10, cm.PureDP("0.1") * 9, cm.Laplace(scale=7) * 3], ids=str)
def test_the_odometer_at_the_budget_is_the_decision(run: cm.Expression) -> None:
    rule = Mixture.for_budget(Fraction(1), E6)
    total = charge(rule, run)
    odometer = Fraction(rule.odometer(total))
    by_definition = optimize.brentq(
        lambda e: (
            log_supremum(
                Mixture(Fraction(e), rule.delta, rule.slack, rule.orders, rule.weights),
                [float(x) / UNIT for x in total.values[:-2]],
                math.inf if total.at(-2) is None else float(total.values[-2]) / UNIT,
            )
            - math.log(1e-6)
        ),
        1e-6,
        0.9999 if total.at(-2) is None else min(0.9999, float(total.values[-2]) / UNIT * (1 - 1e-12)),
    )
    assert float(odometer) == pytest.approx(by_definition, rel=1e-6)
    for e, allowed in ((odometer * Fraction(100001, 100000), True), (odometer * Fraction(99999, 100000), False)):
        at = Mixture(e, rule.delta, rule.slack, rule.orders, rule.weights)
        assert (at.certificate(total) is not None) is allowed


def test_slack_has_its_own_share_of_delta() -> None:
    promise = cm.ApproximateDP("0.1", "1e-7")
    none = Mixture.for_budget(Fraction(1), E6)
    with pytest.raises(cm.BudgetRefused, match="may fail with probability 1e-07"):
        none.price(step(promise))
    some = Mixture.for_budget(Fraction(1), E6, slack=Fraction(3, 10**7))
    assert some.delta == Fraction(7, 10**7)
    assert fits(some, promise) == 3  # and not 4, though all four epsilons would pass the pure door
    assert not some.proves(charge(some, promise * 4), ())
    noise = cm.Gaussian(sigma=20)  # nor by the certificate of a sum that is not pure
    assert some.certificate(charge(some, promise * 3 + noise)) is not None
    assert some.certificate(charge(some, promise * 4 + noise)) is None
    assert 0.299 < some.odometer(charge(some, promise * 3)) <= 0.3


def test_infinite_charges_remove_their_order() -> None:
    rule = Mixture(Fraction(1), E6, Fraction(0), (Fraction(20), Fraction(40)), (Fraction(1, 2), Fraction(1, 2)))
    half = Amounts.of([10**17, None, None, 0])
    found = rule.certificate(half)
    assert found == (PARTS, 0)
    assert not rule.proves(half, (0, PARTS))
    assert not rule.proves(half, (PARTS // 2, PARTS // 2))
    none = Amounts.of([None, None, None, 0])
    assert rule.certificate(none) is None
    assert rule.odometer(none) == math.inf
    assert rule.certificate(none - none) == ()


@pytest.mark.parametrize("forged", [(), (1,), (PARTS, 1), (-1, PARTS + 1), (PARTS - 1, 0), (PARTS, 0, 0)])
def test_what_is_no_certificate(forged: tuple[int, ...]) -> None:
    rule = Mixture(Fraction(1), E6, Fraction(0), (Fraction(20), Fraction(40)), (Fraction(1, 2), Fraction(1, 2)))
    assert not rule.proves(Amounts.of([10**16, 10**16, None, 0]), forged)
    assert rule.proves(Amounts.of([10**16, 10**16, None, 0]), (PARTS, 0))


def test_charges_are_the_curve_rounded_up() -> None:
    rule = Mixture.for_budget(Fraction(1), E6)
    for run in (cm.Gaussian(sigma=3), cm.Laplace(scale=2), cm.RandomizedResponse(p="0.7"), SGD, SGD * 1000):
        total = charge(rule, run)
        for lam, value in zip(rule.orders, total.values, strict=False):
            exact = Fraction(run.cgf(float(lam)))
            assert abs(float(Fraction(value) / UNIT / exact) - 1) < 1e-9
    gaussian = charge(rule, cm.Gaussian(sigma=3) * 600_000)
    for lam, value in zip(rule.orders, gaussian.values, strict=False):
        assert 0 <= value - 600_000 * lam * (lam + 1) / 18 * UNIT <= 1
    assert charge(rule, cm.PureDP("0.01") * 100).values[-2] == UNIT
    price = rule.price(step(SGD))
    assert price.upper.covers(price.lower)


def test_estimates_are_refused() -> None:
    with pytest.raises(cm.HypothesisError, match="Python function"):
        Mixture.for_budget(Fraction(1), E6).price(step(cm.from_rdp(rdp=lambda order: order / 18)))


def gaussian_delta(mu: float, epsilon: float) -> float:
    phi = stats.norm.cdf
    return float(phi(mu / 2 - epsilon / mu) - math.exp(epsilon) * phi(-mu / 2 - epsilon / mu))


def test_gaussian_accounts() -> None:
    for epsilon, delta in ((1, 1e-6), (3, 1e-6), (8, 1e-5)):
        rule = GaussianSum.for_budget(Fraction(epsilon), Fraction(repr(delta)))
        mu = float(rule.mu)
        assert delta * (1 - 1e-8) <= gaussian_delta(mu, epsilon) <= delta * (1 + 1e-9)
        mixture = Mixture.for_budget(Fraction(epsilon), Fraction(repr(delta)))
        run = cm.Gaussian(sigma=300)
        assert fits(rule, run) == int(mu**2 * 300**2)
        assert fits(rule, run) > 1.1 * nonadaptive(mixture, run)
    rule = GaussianSum.for_budget(Fraction(1), E6)
    for e in (0.01, 0.3, 2.0):
        square, _ = charge(rule, cm.PureDP(e)).values
        mu = 2 * stats.norm.ppf(math.exp(e) / (1 + math.exp(e)))
        assert float(square) == pytest.approx(mu**2, rel=1e-9)
        # its trade-off curve lies above the Gaussian one: delta at every epsilon is at most the Gaussian's
        for x in np.linspace(0, e, 30)[:-1]:
            pure = (math.exp(e) - math.exp(x)) / (1 + math.exp(e))
            assert pure <= gaussian_delta(mu, x) * (1 + 1e-9)
    assert charge(rule, cm.Gaussian(sigma=7, sensitivity=3)).values[0] == Fraction(
        math.ceil(Fraction(9 * 10**18, 49)), 10**18
    )
    assert charge(rule, cm.Gaussian(sigma="1e10") * 10**6).values[0] == Fraction(
        1, 10**14
    )  # steps are not rounded to the unit
    for refused in (SGD, cm.ZeroConcentrated(rho="0.1")):
        with pytest.raises(cm.BudgetRefused, match="neither Gaussian noise nor purely private"):
            rule.price(step(refused))
    assert rule.certificate(charge(rule, cm.ApproximateDP("0.01", "1e-9"))) is None
    assert rule.odometer(charge(rule, cm.Gaussian(sigma=50))) == 1.0


def test_plans() -> None:
    rule = Plan(Fraction(1), ((cm.Gaussian(sigma=2), 3), (SGD, 1000)))
    assert fits(rule, SGD) == 1000
    assert fits(rule, cm.Gaussian(sigma=4, sensitivity=2) + SGD) == 3
    with pytest.raises(cm.BudgetRefused, match="not in the plan"):
        rule.price(step(cm.Gaussian(sigma=3)))
    assert rule.odometer(rule.zero()) == 0.0
    assert rule.odometer(charge(rule, SGD)) == 1.0


def test_accountant_with_a_limit() -> None:
    accountant = cm.Accountant(limit=(1, "1e-6"))
    accountant.compose(cm.Gaussian(sigma=7.75))
    before = accountant.to_json()
    for second in (cm.RandomizedResponse(p="0.62"), cm.Gaussian(sigma=5.06)):
        with pytest.raises(cm.BudgetRefused, match="0 of 1 would fit"):
            accountant.compose(second)
    assert accountant.to_json() == before
    again = cm.Accountant.from_json(before)
    assert again == accountant
    assert again.odometer == accountant.odometer == pytest.approx(0.6309, abs=1e-4)
    assert again != cm.Accountant.from_json('{"cumulant": 1, "terms": [["Gaussian(sigma=7.75)", 1]]}')
    with pytest.raises(cm.BudgetRefused) as refused:
        accountant.copy().compose(cm.PureDP(0.01) + cm.Gaussian(sigma=100), times=4000)
    assert 0 < refused.value.would_fit < refused.value.asked == 4000
    twin = accountant.copy()
    twin.compose(cm.PureDP(0.01) + cm.Gaussian(sigma=100), times=refused.value.would_fit)
    assert twin.odometer <= 1
    for wrong in (3, (1,), (1, 2, 3), "ab", (-1, 0.1)):
        with pytest.raises(cm.InputError):
            cm.Accountant(limit=wrong)  # type: ignore[arg-type]
    with pytest.raises(cm.InputError, match="no odometer"):
        _ = cm.Accountant().odometer


@pytest.mark.parametrize(
    "run",
    [
        cm.Gaussian(sigma=4, relation="add-remove") @ cm.RandomAllocation(steps=5),
        cm.MatrixMechanism(bands=[1, "1/2"], steps=20, sigma=4) @ cm.BallsInBins(bins=5),
    ],
    ids=["allocation", "balls in bins"],
)
def test_curves_without_balls_are_charged_from_above(run: cm.Expression) -> None:
    """The integral of a random allocation is bounded in floats only; a budget charges what Rényi divergences need."""
    needed = float(run.epsilon("1e-6", method="rdp"))
    rule = Mixture.for_budget(Fraction(round(1.3 * needed, 3)), Fraction(1, 10**6))
    assert fits(rule, run) == 1
    paid = charge(rule, run)
    for i, order in enumerate(rule.orders):
        divergence = float(run.rdp(float(1 + order))) * float(order)
        assert divergence * (1 - 1e-9) <= paid.values[i] / UNIT <= divergence * (1 + 1e-9)
    (price, _), *_ = Tariff(rule).prices(run)
    for low, high in zip(price.lower.values[:-2], price.upper.values[:-2], strict=True):
        assert low is not None
        assert high is not None
        assert high * (1 - 1e-9) <= low <= high  # a forged charge below it is refused
    assert fits(Mixture.for_budget(Fraction(round(0.9 * needed, 3)), Fraction(1, 10**6)), run) == 0
