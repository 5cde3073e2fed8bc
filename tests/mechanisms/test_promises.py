"""Promises: what they say of themselves is returned unchanged, and no mechanism that keeps one needs more."""

import math
from fractions import Fraction

import numpy as np
import pytest

import cumulant as cm
from tests import effort
from tests.mechanisms.brute import Law, hockey_stick, product, renyi

TABLE = {"epsilons": [0, "0.5", 1, 3], "deltas": ["0.2", "0.05", "0.01", "1e-6"]}


def two_laws(rng: np.random.Generator) -> tuple[Law, Law]:
    size = int(rng.integers(2, 6))
    return rng.dirichlet(np.full(size, 0.7)) + 0, rng.dirichlet(np.full(size, 0.7)) + 0


def both(p: Law, q: Law, epsilon: float) -> float:
    return max(hockey_stick(p, q, epsilon), hockey_stick(q, p, epsilon))


def above(value: float) -> str:
    return f"{min(value * (1 + 1e-9) + 1e-12, 0.999999):.15f}"


def test_no_mechanism_that_keeps_a_profile_needs_more() -> None:
    """Random laws, the deltas that they have at a few epsilons, and every other epsilon."""
    rng = np.random.default_rng(3)
    tight = 0
    for i in range(effort.drawn(100)):
        p, q = two_laws(rng)
        epsilons = sorted(round(float(x), 3) for x in rng.uniform(0, 3, int(rng.integers(1, 5))))
        promise = cm.PrivacyProfile(epsilons=epsilons, deltas=[above(both(p, q, x)) for x in epsilons])
        asked = rng.uniform(0, 4, 6)
        for x, claimed in zip(asked, promise.polygon.profile(asked), strict=True):
            assert claimed >= both(p, q, x) * (1 - 1e-9)
        for x in epsilons:
            tight += promise.polygon.profile(x) <= both(p, q, x) * (1 + 1e-6) + 1e-9
        if i < effort.drawn(3):
            x = round(float(rng.uniform(0, 3)), 3)
            needed = max(hockey_stick(product(a), product(b), x) for a, b in (([p, p], [q, q]), ([p, q], [q, p])))
            assert (promise * 2).delta(epsilon=x) >= needed * (1 - 1e-9)
    assert tight > effort.drawn(200)


def test_a_profile_returns_its_points() -> None:
    table = cm.PrivacyProfile(**TABLE)  # type: ignore[arg-type]
    for epsilon, delta in zip(*TABLE.values(), strict=True):
        assert table.delta(epsilon=epsilon) == pytest.approx(float(delta), rel=1e-14)
    assert table.delta(epsilon="0.7") == pytest.approx(0.03634835833755089488853887, rel=1e-12)
    assert table.delta(epsilon=2) == pytest.approx(0.007310854727721418787632341, rel=1e-12)
    assert table.delta(epsilon=50) == pytest.approx(1e-6, rel=1e-12)
    added = table + cm.PrivacyProfile(epsilons=[5], deltas=[0])
    assert (table * 4).epsilon(1e-4) < 4 * table.epsilon("0.25e-4")
    assert cm.parse(str(added)) == added
    guarantee = (table * 4).guarantee(delta=1e-3)
    assert guarantee.lower is not None
    assert guarantee.lower <= guarantee.epsilon


def test_points_above_the_hull_say_nothing() -> None:
    table = cm.PrivacyProfile(epsilons=[0, 1, "1.5", 2], deltas=["0.3", "0.1", "0.2", "0.001"])
    assert table == cm.PrivacyProfile(epsilons=[2, 0, 1], deltas=["0.001", "0.3", "0.1"])
    assert table.delta(epsilon="1.5") < 0.07


def test_one_point_is_approximate_privacy() -> None:
    one, other = cm.PrivacyProfile(epsilons=["0.3"], deltas=["0.01"]), cm.ApproximateDP("0.3", "0.01")
    for times in (1, 3, 10):
        assert (one * times).delta("0.5") == pytest.approx((other * times).delta("0.5"), rel=1e-9)
        assert (one * times).epsilon("0.15") == pytest.approx((other * times).epsilon("0.15"), rel=1e-9)
    pure = cm.PrivacyProfile(epsilons=[1], deltas=[0])
    assert (pure * 3).epsilon(1e-3) == pytest.approx((cm.PureDP(1) * 3).epsilon(1e-3), rel=1e-9)
    assert pure.rdp(3) == pytest.approx(cm.PureDP(1).rdp(3), rel=1e-12)


def test_a_table_of_a_gaussian_is_above_it() -> None:
    gaussian = cm.Gaussian(sigma=2)
    epsilons = ["0", "0.2", "0.5", "1", "2", "3"]
    table = cm.PrivacyProfile(epsilons=epsilons, deltas=[repr(gaussian.delta(x)) for x in epsilons])
    for x in ("0.1", "0.35", "0.7", "1.5", "2.5"):
        assert table.delta(x) >= gaussian.delta(x)
    for x in epsilons:
        assert table.delta(x) == pytest.approx(gaussian.delta(x), rel=1e-12)


def polygon(masses: Law) -> list[tuple[Fraction, Fraction]]:
    """The lower convex hull of the trade-off functions of two laws in both orders: what both of them keep."""
    points = {(Fraction(0), Fraction(1)), (Fraction(1), Fraction(0))}
    for p, q in (masses, masses[::-1]):
        above_p = above_q = Fraction(0)
        for i in np.argsort(-(p / q)):
            above_p, above_q = above_p + Fraction(int(p[i]), int(p.sum())), above_q + Fraction(int(q[i]), int(q.sum()))
            points.add((above_q, 1 - above_p))
    hull: list[tuple[Fraction, Fraction]] = []
    for x, y in sorted(points):
        while len(hull) > 1 and (hull[-1][1] - hull[-2][1]) * (x - hull[-2][0]) >= (y - hull[-2][1]) * (
            hull[-1][0] - hull[-2][0]
        ):
            hull.pop()
        hull.append((x, y))
    return hull


def test_no_mechanism_that_keeps_a_trade_off_needs_more() -> None:
    rng = np.random.default_rng(5)
    for i in range(effort.drawn(100)):
        masses = rng.integers(1, 30, (2, int(rng.integers(2, 5))))
        p, q = (each / each.sum() for each in masses)
        hull = polygon(masses)
        if len(hull) < 3:
            continue
        promise = cm.TradeOff(alphas=[a for a, _ in hull], betas=[b for _, b in hull])
        for x in rng.uniform(0, 2, 4):
            assert promise.laws.profile(x) >= both(p, q, x) * (1 - 1e-9) - 1e-14
        assert promise.laws.profile(0.0) == pytest.approx(both(p, q, 0.0), rel=1e-9)
        assert promise.curve().rdp([2.0])[0] >= max(renyi(p, q, 2), renyi(q, p, 2)) * (1 - 1e-9)
        if i < 20:
            assert cm.parse(str(promise)) == promise


def test_symmetric_trade_offs_are_exact() -> None:
    response = cm.TradeOff(alphas=[0, "1/4", 1], betas=[1, "1/4", 0])
    for order in (1.5, 2, 30):
        assert response.rdp(order) == pytest.approx(cm.RandomizedResponse(p="3/4").rdp(order), rel=1e-12)
    leaking = cm.TradeOff(alphas=[0, "9/10"], betas=["9/10", 0])
    assert leaking.delta(epsilon=10) == pytest.approx(0.1, rel=1e-12)
    assert (leaking * 2).delta(epsilon=0) == pytest.approx(1 - 0.81, rel=1e-9)


def test_gaussian_privacy_is_gaussian_but_for_the_geometry() -> None:
    promise, noise = cm.GaussianDP(mu="1/2"), cm.Gaussian(sigma=2)
    for order in (1, 1.5, 8, 100):
        assert promise.rdp(order) == noise.rdp(order)
    assert (promise * 100).epsilon(1e-6) == pytest.approx((noise * 100).epsilon(1e-6), rel=1e-9)
    assert promise.delta(1) == pytest.approx(0.006829594983114575384235013, rel=1e-12)
    assert promise.delta(0) == pytest.approx(0.1974126513658474484817076, rel=1e-12)
    sampled = promise @ cm.WithoutReplacement(rate="1/100")
    assert sampled.delta("0.1") == pytest.approx(1.599633405186110014979861e-9, rel=1e-9)
    poisson = [m @ cm.Poisson(rate="0.01") * 100 for m in (promise, noise)]
    assert poisson[0].epsilon(1e-6) == pytest.approx(poisson[1].epsilon(1e-6), rel=1e-9)
    with pytest.raises(cm.HypothesisError, match="Gaussian noise"):
        sampled.rdp(2, bound="gaussian-diameter")
    run = sampled * 10 + cm.PureDP(1)
    assert cm.parse(str(run)) == run
    found = cm.calibrate("GaussianDP(mu=?) * 10", epsilon=1, delta="1e-6", digits=3)
    assert found.guarantee.epsilon <= 1


def test_truncated_concentration() -> None:
    """rho a below omega, nothing from there on."""
    whole, cut = cm.ZeroConcentrated(rho="0.1"), cm.ZeroConcentrated(rho="0.1", omega=5)
    assert cut.rdp([2, 4.9]).tolist() == whole.rdp([2, 4.9]).tolist()
    assert np.isinf(cut.rdp([5, 6, math.inf])).all()
    assert cut.epsilon(1e-6) > whole.epsilon(1e-6)
    assert cm.ZeroConcentrated(rho="0.1", omega=math.inf) == whole
    assert cm.parse(str(cut)) == cut != whole
    assert (cut @ cm.WithoutReplacement(rate="0.1")).rdp(3) < cut.rdp(3)
    assert (cut * 3).rdp(4) == pytest.approx(1.2, rel=1e-12)
    with pytest.raises(cm.InputError, match="omega=1 must be"):
        cm.ZeroConcentrated(rho="0.1", omega=1)


def test_what_is_refused() -> None:
    with pytest.raises(cm.InputError, match="same length, not 2 and 1"):
        cm.PrivacyProfile(epsilons=[1, 2], deltas=["0.1"])
    with pytest.raises(cm.InputError, match="not convex at vertex 1"):
        cm.TradeOff(alphas=[0, "1/2", 1], betas=[1, "0.9", 0])
    with pytest.raises(cm.InputError, match="must be 0"):
        cm.TradeOff(alphas=["0.1", 1], betas=["0.5", 0])
    with pytest.raises(cm.InputError, match="must be 0"):
        cm.TradeOff(alphas=[0, "0.5"], betas=["0.5", "0.1"])
    with pytest.raises(cm.InputError, match="increase"):
        cm.TradeOff(alphas=[0, 0, 1], betas=[1, "0.5", 0])
    with pytest.raises(cm.InputError, match="mu=0 must be"):
        cm.GaussianDP(mu=0)


def test_zero_concentrated_with_slack() -> None:
    """s-approximate rho-zCDP: (delta - s) / (1 - s) is left of delta for the curve, and k promises fail in 1 - (1-s)^k."""
    plain, slack = cm.ZeroConcentrated(rho="1/50"), cm.ZeroConcentrated(rho="1/50", slack="1e-6")
    for times in (1, 5):
        failed = 1 - (1 - Fraction(1, 10**6)) ** times
        left = (Fraction(1, 10**5) - failed) / (1 - failed)
        needed = (plain * times).epsilon(left)
        assert (slack * times).epsilon("1e-5") == pytest.approx(needed, rel=1e-9)
    assert slack.epsilon("1e-7") == slack.rdp(2) == slack.epsilon(0) == float("inf")
    assert cm.parse(str(slack)) == slack != plain
    sampled = slack @ cm.Poisson(rate="0.1")
    assert sampled.epsilon("1e-5") < slack.epsilon("1e-5")
    with pytest.raises(cm.InputError, match="slack=1 must be"):
        cm.ZeroConcentrated(rho=1, slack=1)
