"""Groups: chains of neighbours by definition, and the families that are closed under them."""

import dataclasses
import itertools
import math
from fractions import Fraction
from itertools import pairwise
from typing import Any, get_args

import numpy as np
import pytest
from scipy.stats import norm

import cumulant as cm
from cumulant.accounting import answer
from cumulant.accounting.choices import Method
from cumulant.curves.group import grouped
from tests import effort
from tests.mechanisms.brute import hockey_stick, renyi, violations

ORDERS = [1.5, 2, 7.3]


@pytest.mark.parametrize(
    ("one", "group"),
    [
        (cm.Gaussian(sigma=6), cm.Gaussian(sigma=2)),
        (cm.Laplace(scale=6), cm.Laplace(scale=2)),
        (cm.DiscreteLaplace(scale=6), cm.DiscreteLaplace(scale=6, sensitivity=3)),
        (cm.DiscreteGaussian(sigma=6, dimension=1), cm.DiscreteGaussian(sigma=6, sensitivity=3, dimension=1)),
        (cm.ExponentialMechanism("0.2"), cm.ExponentialMechanism("0.6")),
        (cm.PureDP("0.2"), cm.PureDP("0.6")),
        (cm.GaussianDP("0.2"), cm.GaussianDP("0.6")),
        (cm.ZeroConcentrated(rho="0.1"), cm.ZeroConcentrated(rho="0.9")),
        (cm.KaryResponse(values=4, p="0.4"), cm.KaryResponse(values=4, p="0.4")),
        (cm.RandomizedResponse(p="0.7"), cm.RandomizedResponse(p="0.7")),
    ],
    ids=str,
)
def test_families(one: cm.Mechanism, group: cm.Mechanism) -> None:
    three = one @ cm.Group(size=3)
    assert three.rdp([1.5, 2, 30]) == pytest.approx(group.rdp([1.5, 2, 30]), rel=1e-12)
    assert (three * 2).epsilon(1e-6) == pytest.approx((group * 2).epsilon(1e-6), rel=1e-9)
    assert one @ cm.Group(size=1) == one
    assert cm.parse(str(three * 5)) == three * 5


def test_chains_of_random_scores() -> None:
    """Two steps of the exponential mechanism, scores of sensitivity 1 each time."""
    rng = np.random.default_rng(4)
    for _ in range(effort.drawn(100)):
        epsilon, size = round(float(rng.uniform(0.05, 2)), 3), int(rng.integers(2, 5))
        scores = rng.uniform(-3, 3, int(rng.integers(2, 5)))
        laws = []
        for _ in range(size + 1):
            weights = np.exp(epsilon * (scores - scores.max()) / 2)
            laws.append(weights / weights.sum())
            scores = scores + rng.choice([-1, 1], scores.size)
        group = cm.ExponentialMechanism(epsilon) @ cm.Group(size=size)
        assert isinstance(group, cm.Mechanism)
        first, last = laws[0], laws[-1]
        assert not violations(group, [(first, last), (last, first)], [0.0, epsilon, 0.9 * size * epsilon], ORDERS)[0]


def test_chains_of_random_laws() -> None:
    """The doubling of Mironov, from the divergences of each single step."""
    rng = np.random.default_rng(6)
    for _ in range(effort.drawn(100)):
        p, q, r = (rng.dirichlet(np.full(4, 2.0)) for _ in range(3))
        order = float(rng.uniform(2, 6))
        steps = [(p, q), (q, p), (q, r), (r, q)]
        points = sorted({2 * order - 1, 2 * order})
        values = [max(renyi(a, b, x) for a, b in steps) for x in points]
        one = cm.from_rdp_points(points, [f"{v:.15f}" for v in values])
        claimed = (one @ cm.Group(size=2)).rdp(order)
        assert claimed >= max(renyi(p, r, order), renyi(r, p, order)) * (1 - 1e-9)


def test_approximate_privacy() -> None:
    """(3 epsilon, delta (1 + e^epsilon + e^(2 epsilon))): attained by a chain of the worst pair."""
    group = cm.ApproximateDP("0.2", "0.01") @ cm.Group(size=3)
    assert group.delta("0.6") == pytest.approx(0.01 * (1 + math.exp(0.2) + math.exp(0.4)), rel=1e-9)
    assert (cm.ApproximateDP(0, "0.01") @ cm.Group(size=3)).delta(0) == pytest.approx(0.03, rel=1e-9)
    rng = np.random.default_rng(8)
    for _ in range(effort.drawn(20)):
        laws = [rng.dirichlet(np.full(3, 3.0)) for _ in range(4)]
        steps = list(pairwise(laws))
        delta = max(max(hockey_stick(a, b, 0.2), hockey_stick(b, a, 0.2)) for a, b in steps)
        claimed = (cm.ApproximateDP("0.2", f"{delta * (1 + 1e-9):.15f}") @ cm.Group(size=3)).delta("0.6")
        assert claimed >= hockey_stick(laws[0], laws[-1], 0.6) * (1 - 1e-9)


def test_around_samples_and_sums() -> None:
    step = cm.Gaussian(sigma=5) @ cm.WithoutReplacement(rate="0.01")
    run = (step * 100 + cm.Laplace(scale=10)) @ cm.Group(size=2)
    assert run == step @ cm.Group(size=2) * 100 + cm.Laplace(scale=10) @ cm.Group(size=2)
    assert cm.parse(str(run)) == run
    assert (step * 100).epsilon(1e-6) < (step * 100 @ cm.Group(size=2)).epsilon(1e-6) < 1
    assert cm.Gaussian(sigma=1) @ cm.Group(size=2) @ cm.Group(size=3) == cm.Gaussian(sigma=1) @ cm.Group(size=6)
    with pytest.raises(cm.InputError, match="Group last"):
        cm.Gaussian(sigma=1) @ cm.Group(size=2) @ cm.Poisson(rate="0.1")
    with pytest.raises(cm.InputError, match="an integer"):
        cm.Group(size="1.5")
    with pytest.raises(cm.HypothesisError, match="may fail"):
        cm.PrivacyProfile([1], ["0.1"]) @ cm.Group(size=2)
    found = cm.calibrate("Gaussian(sigma=10) @ Group(size=?)", epsilon=2, delta="1e-6")
    assert found.guarantee.epsilon <= 2


@pytest.mark.parametrize("epsilon", ["0.1", "1", "3"])
def test_what_no_chain_attains_shows_nothing_from_below(epsilon: str) -> None:
    # the largest distance of laws two steps apart: on the event that tells them apart each step changes p by e^epsilon at most
    growth = math.exp(float(epsilon))
    between = np.linspace(0, 1, 10_001)
    most = np.minimum(growth * between, 1 - (1 - between) / growth)
    least = np.maximum(between / growth, 1 - growth * (1 - between))
    truth = float(np.max(most - least))
    for one in (cm.PureDP(epsilon), cm.ApproximateDP(epsilon=epsilon, delta="1e-12")):
        found = (one @ cm.Group(size=2)).guarantee(epsilon=0, method="exact")
        assert found.delta >= truth
        assert (found.lower or 0.0) <= truth + 1e-11
        assert (one @ cm.Group(size=2)).check(epsilon=0, delta=(truth + found.delta) / 2).verdict != "false"


def sampled_sum(rate: float, size: int, sigma: float) -> tuple[np.ndarray, np.ndarray]:
    """Binned laws of one Poisson sample of Gaussian noise around the number of `size` further records drawn, and of none."""
    edges = np.linspace(-9 * sigma, size + 9 * sigma, 40_001)
    cdf = [norm.cdf((edges - j) / sigma) for j in range(size + 1)]
    weights = [math.comb(size, j) * rate**j * (1 - rate) ** (size - j) for j in range(size + 1)]
    mixed = sum(w * np.diff(each) for w, each in zip(weights, cdf, strict=True))
    return np.asarray(mixed), np.diff(cdf[0])


@pytest.mark.parametrize(("rate", "size", "sigma"), [("0.1", 2, "1"), ("0.5", 3, "2"), ("0.01", 5, "1.1")])
@pytest.mark.parametrize("epsilon", ["0.3", "1.5"])
def test_the_group_lemma_is_above_the_sum_of_a_group(rate: str, size: int, sigma: str, epsilon: str) -> None:
    """Records of a group that all move the sum by 1 enter a Poisson sample by a binomial coin: the definition, binned."""
    run = cm.Gaussian(sigma=sigma) @ cm.Poisson(rate=rate) @ cm.Group(size=size)
    p, q = sampled_sum(float(rate), size, float(sigma))
    eps = float(epsilon)
    truth = max(np.maximum(p - math.exp(eps) * q, 0).sum(), np.maximum(q - math.exp(eps) * p, 0).sum())
    assert run.delta(epsilon) >= truth


@pytest.mark.parametrize(("size", "times", "most"), [(2, 100, 1.6), (5, 1000, 12.45)])
def test_the_group_lemma_asks_the_profile_of_the_whole_run(size: int, times: int, most: float) -> None:
    """The least k x with delta(x) (e^kx - 1) / (e^x - 1) <= delta: a smaller x fails; doubling alone gives 7401 for five."""
    alone = cm.Gaussian(sigma="1.1") @ cm.Poisson(rate="0.01") * times
    run = alone @ cm.Group(size=size)
    found = run.epsilon("1e-5")
    for x, enough in ((found / size * (1 - 1e-5), False), (found / size * (1 + 1e-9), True)):
        assert (alone.delta(x) * math.expm1(size * x) / math.expm1(x) <= 1e-5) is enough
    assert found < most < run.epsilon("1e-5", method="rdp")
    check = run.guarantee(delta="1e-5").verify()
    assert check.holds
    assert not dataclasses.replace(run.guarantee(delta="1e-5"), epsilon=0.9 * found).verify().holds
    assert run.delta(found) <= 1e-5
    assert run.epsilon(["1e-5", "1e-4"])[0] == found


@pytest.mark.parametrize(
    "one",
    [
        cm.Gaussian(sigma="0.3") @ cm.Poisson(rate="0.01"),
        cm.DiscreteLaplace(scale="1.5") @ cm.Poisson(rate="0.8") * 2,
        cm.DiscreteLaplace(scale="1.5") @ cm.Poisson(rate="0.3") @ cm.RepeatAndSelect(mean=3, number="poisson"),
    ],
)
@pytest.mark.parametrize("size", [3, 5])
def test_the_delta_of_a_group_never_rises_with_epsilon(one: cm.Expression, size: int) -> None:
    """The factor of the lemma grows with epsilon; where the profile is flat a smaller epsilon proves more."""
    run = one @ cm.Group(size=size)
    found = [run.delta(epsilon) for epsilon in ("0", "0.05", "0.3", "1", "2.5", "6", "10")]
    assert all(later <= earlier * (1 + 1e-3) for earlier, later in itertools.pairwise(found)), found
    assert found[0] <= size * one.delta(0) * (1 + 1e-12)
    assert run.guarantee(epsilon="2.5").verify().holds


def test_several_deltas_know_the_distance_that_one_knows() -> None:
    run = cm.DiscreteLaplace(scale="1.5") @ cm.Poisson(rate="0.3") @ cm.RepeatAndSelect(mean=3, number="poisson")
    assert run.delta(["0", "0.01"]) == pytest.approx([run.delta("0"), run.delta("0.01")], rel=1e-9)


def count_calls(monkeypatch: pytest.MonkeyPatch, name: str) -> list[Any]:
    """Return a list that grows with every call of a function of the answers."""
    calls, evaluate = [], getattr(answer, name)

    def evaluate_and_note(*given: Any) -> Any:
        calls.append(given[1])
        return evaluate(*given)

    monkeypatch.setattr(answer, name, evaluate_and_note)
    return calls


def test_several_deltas_ask_one_record_together(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each epsilon has up to 19 places, and nearby ones have the same; one epsilon at a time took 20 s for a polygon."""
    run = cm.Gaussian(sigma=4) @ cm.Poisson(rate="0.01") * 50 @ cm.Group(size=3)
    epsilons = [Fraction(i, 50) for i in range(1, 31)]
    alone = [run.delta(epsilon) for epsilon in epsilons[::10]]
    calls = count_calls(monkeypatch, "_own_deltas")
    found = run.delta(epsilons)
    assert len(calls) <= 4
    assert found[::10] == pytest.approx(alone, rel=1e-3)


def test_the_lemma_is_not_sought_next_to_what_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    """The lemma proves nothing below the largest loss of the group, which the curve knows; bisection asked 21 times."""
    laws = {"p": ["571/657134", "34553/34586", "28/328567"], "q": ["107433/107440", "3/53720", "1/107440"]}
    run = cm.from_masses(**laws) @ cm.Group(size=5) * 10**9
    calls = count_calls(monkeypatch, "by_losses")
    assert run.epsilon(delta="1e-6") <= 48959868815.99708
    assert len(calls) <= 4


def test_groups_of_several_sizes_have_no_lemma() -> None:
    one = cm.Gaussian(sigma=5) @ cm.Poisson(rate="0.01")
    both = one @ cm.Group(size=2) + one @ cm.Group(size=3)
    assert both.epsilon("1e-5") >= (one @ cm.Group(size=3)).epsilon("1e-5")


def test_a_sum_speaks_of_the_smallest_of_its_groups() -> None:
    """Two records move Gaussian(sigma=1) twice as far, which a sum with it does not know."""
    run = cm.PureDP(1) @ cm.Group(size=2) + cm.Gaussian(sigma=1)
    assert run.records_changed == 1
    assert ((cm.PureDP(1) + cm.Gaussian(sigma=1)) @ cm.Group(size=2)).records_changed == 2
    assert (cm.PureDP(1) @ cm.Group(size=2) + cm.PureDP(2) @ cm.Group(size=3)).records_changed == 2
    assert run.delta(0) < ((cm.PureDP(1) + cm.Gaussian(sigma=1)) @ cm.Group(size=2)).delta(0)
    with pytest.raises(cm.InputError, match="Group last"):
        cm.parallel(run, cm.PureDP(1))


def test_a_guarantee_by_the_group_lemma_is_read_back() -> None:
    run = (cm.Gaussian(sigma="1.1") @ cm.Poisson(rate="0.01") * 100) @ cm.Group(size=3)
    found = run.guarantee(delta="1e-5")
    assert found.route == "group lemma"
    assert cm.Guarantee.from_json(found.to_json()).verify().holds


@pytest.mark.parametrize(
    ("size", "rounds", "relation"), [(2, 1, "add-remove"), (3, 3, "add-remove"), (2, 1, "replace-special")]
)
def test_a_group_in_a_sample_may_fail(size: int, rounds: int, relation: str) -> None:
    """Whoever publishes the sample with probability 0.02, and else nothing, shows a group with 0.02 (1 - 0.6^size)."""
    seen = Fraction(2, 100) * (1 - Fraction(6, 10) ** size)
    needed = 1 - (1 - seen) ** rounds
    run = cm.ApproximateDP("0.5", "0.02") @ cm.Poisson(rate="0.4", relation=relation) @ cm.Group(size=size) * rounds
    for epsilon in ("0.7", "50"):
        assert min(run.delta(epsilon, method=method) for method in ("best", "exact", "rdp", "paper")) >= needed
        assert run.delta([epsilon, "60"])[0] >= needed
    for method in get_args(Method):
        assert run.epsilon(needed * Fraction(999, 1000), method=method) == math.inf
    assert run.epsilon(0) == run.gaussian_mu() == math.inf


def test_a_chain_refuses_a_curve_that_may_fail() -> None:
    with pytest.raises(cm.HypothesisError, match="may fail"):
        grouped(cm.ApproximateDP("0.5", "0.02").own_curve("best"), 2)
