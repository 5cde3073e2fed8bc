"""The best of a random number of runs: enumerated from the generating function, and the numbers of other accountants."""

import math
from fractions import Fraction

import numpy as np
import pytest

import cumulant as cm
from cumulant.curves.selected import by_divergences, by_poisson
from cumulant.mechanisms.repeat_and_select import covering
from tests.mechanisms.brute import Law, hockey_stick, renyi


def selected(p: Law, g: float, eta: float) -> Law:
    """The law of the largest of K outputs, K truncated negative binomial: f(F(y)) - f(F(y-)), f its generating function."""

    def generating(x: Law) -> Law:
        if eta == 0:
            return np.log1p(-(1 - g) * x) / math.log(g)
        return ((1 - (1 - g) * x) ** -eta - 1) / (g**-eta - 1)

    return np.diff(generating(np.append(0.0, np.cumsum(p))))


def expected(g: float, eta: float) -> float:
    return (1 / g - 1) / math.log(1 / g) if eta == 0 else eta * (1 - g) / (g * (1 - g**eta))


def drawn(rng: np.random.Generator) -> tuple[Law, Law]:
    size = int(rng.integers(2, 5))
    p = rng.dirichlet(np.full(size, 2.0)) + 1e-6
    q = p * np.exp(rng.uniform(-1, 1, size) * rng.uniform(0.05, 1.5))
    return p / p.sum(), q / q.sum()


def test_profile_of_enumerated_selections() -> None:
    rng = np.random.default_rng(11)
    share = 0.0
    for _ in range(1000):
        p, q = drawn(rng)
        g, eta = float(rng.uniform(0.02, 0.9)), float(rng.choice([0, 0.5, 1, 2]))

        def both(x: float, p: Law = p, q: Law = q) -> float:
            return max(hockey_stick(p, q, x), hockey_stick(q, p, x))

        moved, mean = (1 + eta) * covering(both, g, 40), expected(g, eta)
        one, other = selected(p, g, eta), selected(q, g, eta)
        for x in (moved, moved + 0.1, moved + float(rng.uniform(0, 1))):
            needed = max(hockey_stick(one, other, x), hockey_stick(other, one, x))
            claimed = mean * both(x - moved)
            assert needed <= claimed * (1 + 1e-9) + 1e-13
            share = max(share, needed / claimed) if claimed > 1e-6 else share
    assert share > 0.5


def test_divergences_of_enumerated_selections() -> None:
    rng = np.random.default_rng(12)
    for i in range(500):
        p, q = drawn(rng)
        g, eta = float(rng.uniform(0.02, 0.9)), float(rng.choice([0, 0.5, 1, 2]))
        masses = np.rint(np.stack([p, q]) * 10**6).astype(int) + 1
        base = cm.from_masses(*([f"{x}/{row.sum()}" for x in row.tolist()] for row in masses))
        p, q = (row / row.sum() for row in masses)
        if i % 2:
            exact = by_divergences(base.curve(), Fraction(expected(g, eta)), Fraction(eta), g)
            one, other = selected(p, g, eta), selected(q, g, eta)
        else:
            mean = round(1 / g, 3)
            exact = by_poisson(base.curve(), Fraction(mean), max(hockey_stick(p, q, 0), 0.0) * (1 + 1e-9))
            one, other = (np.diff(np.exp(-mean * (1 - np.append(0.0, np.cumsum(x)))), prepend=0.0) for x in (p, q))
        for order in (1.3, 2.0, 8.0):
            needed = max(renyi(one, other, order), renyi(other, one, order))
            assert needed <= float(exact.rdp([order])[0]) * (1 + 1e-9) + 1e-12


@pytest.mark.parametrize(
    ("sigma", "mean", "shape", "epsilon", "delta"),
    [
        (10, 10, 1, "0.5", 0.00021888367830898789349),
        (10, 10, 1, "1", 2.1841779602065862502e-17),
        (10, 100, "1/2", "1", 1.0802835014665354259e-12),
        (20, 1000, 0, "0.5", 1.3820874763572954158e-11),
        (5, 10, 2, "1", 0.0013830953602503092105),
    ],
)
def test_reference_deltas(sigma: int, mean: int, shape: float, epsilon: str, delta: float) -> None:
    run = cm.Gaussian(sigma=sigma) @ cm.RepeatAndSelect(mean=mean, shape=shape)
    assert run.delta(epsilon=epsilon) == pytest.approx(delta, rel=1e-5)


@pytest.mark.parametrize(
    ("sigma", "mean", "shape", "order", "value"),
    [
        (10, 10, 1, 2, 2.731778298251915131945),
        (10, 10, 1, 8, 0.7881339328284474027869),
        (10, 100, "1/2", 32, 0.7860723957058884473884),
        (5, 10, 2, 32, 1.782258621208227882086),
    ],
)
def test_reference_divergences(sigma: int, mean: int, shape: float, order: float, value: float) -> None:
    """Theorem 2 of Papernot and Steinke, or what it says at a larger order where that is less."""
    run = cm.Gaussian(sigma=sigma) @ cm.RepeatAndSelect(mean=mean, shape=shape)
    assert run.rdp(order) <= value * (1 + 1e-8)
    if order == 32:
        assert run.rdp(order) == pytest.approx(value, rel=1e-6)


def test_against_other_accountants() -> None:
    """0.898 and 0.499 from divergences alone."""
    assert (cm.Gaussian(sigma=10) @ cm.RepeatAndSelect(mean=10)).epsilon(1e-6) == pytest.approx(0.6273, abs=2e-4)
    assert (cm.Gaussian(sigma=20) @ cm.RepeatAndSelect(mean=1000, shape=0)).epsilon(1e-6) == pytest.approx(
        0.412, abs=1e-3
    )


def test_slack_and_count_are_never_dropped() -> None:
    """A base that fails once in a thousand, a thousand times."""
    run = cm.ApproximateDP("0.1", "1e-3") @ cm.RepeatAndSelect(mean=1000)
    assert run.delta(epsilon=5) > 0.5
    seldom = cm.ApproximateDP("0.1", "1e-6") @ cm.RepeatAndSelect(mean=10)
    assert 1e-5 <= seldom.delta(epsilon=1) <= 1.1e-5
    assert (seldom * 10).delta(epsilon=10) >= 0.99e-4


def test_pure_privacy_and_the_ends() -> None:
    run = cm.PureDP("0.5") @ cm.RepeatAndSelect(mean=10)
    assert run.epsilon(0) == pytest.approx(1.5, rel=1e-9)
    assert cm.PureDP(1) @ cm.RepeatAndSelect(mean=1) == cm.PureDP(1)
    assert cm.parse(str(run * 3)) == run * 3
    poisson = cm.Gaussian(sigma=10) @ cm.RepeatAndSelect(mean=10, number="poisson")
    assert cm.parse(str(poisson)) == poisson
    assert poisson.epsilon(1e-6) < 0.9
    assert poisson.guarantee(delta=1e-6).lower is None


def test_what_is_refused() -> None:
    with pytest.raises(cm.InputError, match="at least 1"):
        cm.RepeatAndSelect(mean="0.5")
    with pytest.raises(cm.InputError, match="has none"):
        cm.RepeatAndSelect(mean=2, shape=2, number="poisson")
    with pytest.raises(cm.InputError, match="choose one of"):
        cm.RepeatAndSelect(mean=2, number="fixed")
    with pytest.raises(cm.InputError, match="write the sample inside"):
        cm.Gaussian(sigma=1) @ cm.RepeatAndSelect(mean=2) @ cm.Poisson(rate="0.1")
