"""Random allocation: reference values, laws, and epochs enumerated from the definition, adaptive ones included."""

from __future__ import annotations

import itertools
import json
import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

import cumulant as cm
from cumulant.accounting import answer
from cumulant.accounting.question import DEFAULT_ACCURACY, Question
from cumulant.accounting.rounds import rounds_of
from cumulant.accounting.weaker_run import announced_run, least_value, shorter_runs
from cumulant.bounds.allocation import Added, Averaged, Removed, allocation
from cumulant.cli.app import app
from cumulant.domains import Exact
from cumulant.exact.grid import refine
from cumulant.exact.grid.allocation import Allocated, AllocatedBelow
from cumulant.numerics.arithmetic import BALLS
from cumulant.pairs.gaussian import GaussianPair
from tests.oracles.reference import load

ROWS = load("allocation")["values"]
ORDERS = np.array([1.0, 1.5, 2.0, 3.0, 8.0, 33.0, 100.5, 512.0, 1e4])
BASES = [cm.RandomizedResponse(p="0.6"), cm.RandomizedResponse(p="0.75"), cm.RandomizedResponse(p="0.95")]


def named(row: dict[str, Any]) -> str:
    return "-".join([*row["parameters"].values(), row["quantity"].replace(", ", "-"), *row["at"].values()])


@pytest.mark.parametrize("row", [row for row in ROWS if "rdp" in row["quantity"]], ids=named)
def test_reference_divergences(row: dict[str, Any]) -> None:
    sigma, steps = Fraction(row["parameters"]["sigma"]), int(row["parameters"]["steps"])
    pair, order, expected = GaussianPair(1 / sigma), float(row["at"]["order"]), float(row["value"])
    if "remove" in row["quantity"]:
        curve: Removed | Added = Removed(pair.curve(), steps)
        assert float(curve.rdp([order])[0]) == pytest.approx(expected, rel=1e-13)
        with BALLS.at(128):
            assert float(curve.cgf([Fraction(order) - 1], BALLS)[0].mid()) == pytest.approx(
                (order - 1) * expected, rel=1e-15
            )
        assert (cm.Gaussian(sigma=sigma) @ cm.RandomAllocation(steps)).rdp(order) == pytest.approx(expected, rel=1e-9)
    else:
        curve = Added(pair, steps)
        found = float(curve.rdp([order])[0])
        assert expected * (1 - 5e-7) <= found <= expected * (1 + 2e-5)  # the reference has seven digits


# ---- laws


def test_one_step_is_the_mechanism_and_more_steps_are_better() -> None:
    base = cm.Gaussian(sigma=1)
    assert base @ cm.RandomAllocation(steps=1) == base
    before = base.rdp(ORDERS)
    for steps in (2, 10, 1000):
        after = (base @ cm.RandomAllocation(steps=steps)).rdp(ORDERS)
        assert (after <= before * (1 + 1e-9)).all()
        before = after
    assert (np.diff(before) >= -1e-9 * before[1:]).all()


@pytest.mark.parametrize(
    "base", [cm.Laplace(scale=1), cm.PureDP(1), cm.ApproximateDP(1, "1e-6"), cm.ZeroConcentrated(rho="0.1")], ids=str
)
def test_never_above_the_mechanism(base: cm.Mechanism) -> None:
    epoch = base @ cm.RandomAllocation(steps=20)
    assert (epoch.rdp(ORDERS) <= base.rdp(ORDERS) * (1 + 1e-9)).all()
    assert epoch.relation is cm.Relation.ADD_REMOVE
    assert epoch.epsilon(1e-5, method="rdp") <= base.epsilon(1e-5, method="rdp") * (1 + 1e-9)


def test_adding_by_the_mean_of_ratios_is_not_below_the_integral() -> None:
    pair = GaussianPair(Fraction(1, 2))
    lam = np.array([0.1, 0.5, 1.0, 7.5, 40.0])
    assert (Added(pair, 12).cgf(lam) <= Averaged(pair.curve(), 12).cgf(lam) * (1 + 1e-9)).all()


def test_text_json_and_picks() -> None:
    run = cm.parse("Gaussian(sigma=1) @ RandomAllocation(steps=100) * 10 + Laplace(scale=3)")
    assert cm.parse(str(run)) == run
    accountant = cm.Accountant()
    accountant.compose(run)
    assert cm.Accountant.from_json(accountant.to_json()) == accountant
    base = cm.Gaussian(sigma=1)
    assert base @ cm.RandomAllocation(steps=12, picks=4) == base @ cm.RandomAllocation(steps=3, upper_bound=1) * 4
    assert base @ cm.RandomAllocation(steps=12, picks=4) != base @ cm.RandomAllocation(steps=3) * 4
    assert base @ cm.RandomAllocation(steps=5, picks=5) == base * 5
    parted = base @ cm.RandomAllocation(steps=11, picks=4)
    three, two = cm.RandomAllocation(steps=3, upper_bound=1), cm.RandomAllocation(steps=2, upper_bound=1)
    assert parted == base @ three * 3 + base @ two
    assert cm.parse(str(parted)) == parted
    assert str(cm.RandomAllocation(steps=11, picks=4)) == "RandomAllocation(steps=11, picks=4)"


@pytest.mark.parametrize(
    ("text", "message"),
    {
        "Gaussian(1) @ RandomAllocation(steps=0)": "steps=0 must be an integer",
        "Gaussian(1) @ RandomAllocation(steps=2.5)": "steps=2.5 must be an integer",
        "Gaussian(1) @ RandomAllocation(steps=3, picks=4)": "picks=4 must be at most steps=3",
        "Gaussian(1) @ RandomAllocation(steps=3, picks=0)": "picks=0 must be an integer",
        "KaryResponse(values=3, p=0.5) @ RandomAllocation(steps=3)": "makes add-remove statements",
        "KaryResponse(values=3, p=0.5) @ RandomAllocation(steps=1)": "makes add-remove statements",
        'Gaussian(sigma=1, relation="replace-one") @ RandomAllocation(steps=4, picks=2)': "makes add-remove statements",
        "Gaussian(1) @ RandomAllocation()": "needs steps",
    }.items(),
)
def test_what_is_refused(text: str, message: str) -> None:
    with pytest.raises(cm.CumulantError, match=message):
        cm.parse(text)


@pytest.mark.parametrize(
    "base",
    [
        cm.from_rdp(rdp=lambda a: a / 18, name="mine"),
        cm.from_masses(["1/2", "1/2"], ["1/4", "3/4"]),
        cm.Gaussian(sigma=2) @ cm.Poisson(rate="0.5"),
        cm.Gaussian(sigma=2) * 2 + cm.Laplace(scale=3),
        cm.ExponentialMechanism(epsilon=1),
        cm.DiscreteGaussian(sigma=2, dimension=1),
        cm.Gaussian(sigma="1e6"),
        cm.PureDP(0),
    ],
    ids=str,
)
def test_whatever_runs_in_the_steps(base: cm.Expression) -> None:
    epoch = base @ cm.RandomAllocation(steps=10)
    assert 0 <= epoch.epsilon(1e-5) <= base.epsilon(1e-5) * (1 + 1e-9)


def test_a_pair_that_is_not_symmetric_is_covered_in_both_roles() -> None:
    """Three steps of two answers, the record in the first or in the second role, enumerated."""
    run = cm.from_masses(["1/2", "1/2"], ["1/4", "3/4"]) @ cm.RandomAllocation(steps=3)
    needed = 0.0
    for p, q in (([0.5, 0.5], [0.25, 0.75]), ([0.25, 0.75], [0.5, 0.5])):
        law, other = [], []
        for answers in itertools.product((0, 1), repeat=3):
            other.append(math.prod(q[i] for i in answers))
            law.append(sum(other[-1] * p[i] / q[i] for i in answers) / 3)
        one, two = np.array(law), np.array(other)
        for x, y in ((one, two), (two, one)):
            needed = max(needed, float(np.maximum(x - math.exp(0.2) * y, 0).sum()))
    assert 0.9 * run.delta(epsilon="0.2") < needed <= run.delta(epsilon="0.2")


def test_theorems_about_samples_are_refused() -> None:
    epoch = cm.Gaussian(sigma=1) @ cm.RandomAllocation(steps=10)
    with pytest.raises(
        cm.HypothesisError, match="theorem9 does not apply to RandomAllocation samples; use one of caps"
    ):
        epoch.rdp(2, bound="theorem9")
    with pytest.raises(cm.HypothesisError, match="slack"):
        (cm.ApproximateDP(1, "1e-6") @ cm.RandomAllocation(steps=10)).rdp(2, bound="allocation")
    with pytest.raises(cm.HypothesisError, match="not known for RandomAllocation samples"):
        epoch.epsilon(1e-5, method="optimal")


def test_the_words_say_what_a_term_is() -> None:
    text = (cm.Gaussian(sigma=1) @ cm.RandomAllocation(steps=1000) * 10).guarantee(delta=1e-5, method="rdp").explain()
    assert "runs in all 1,000 steps of each of 10 whole epochs" in text
    assert "shuffled batches of a fixed size do not" in text


def test_the_shell_speaks_of_epochs_and_refuses_shuffled_batches() -> None:
    shell = CliRunner()
    run = "Gaussian(sigma=2) @ RandomAllocation(steps=50) * 3"
    found = shell.invoke(app, ["epsilon", run, "--delta", "1e-5", "--json"])
    assert found.exit_code == 0
    answer = json.loads(found.stdout)
    assert (answer["relation"], answer["rigour"]) == ("add-remove", "bounded")
    assert 0.999 * answer["epsilon"] < answer["lower"] <= answer["epsilon"]
    told = shell.invoke(app, ["epsilon", run, "--delta", "1e-5", "--explain"]).stdout
    assert "50 steps of each of 3 whole epochs" in " ".join(told.split())
    refused = shell.invoke(app, ["epsilon", "Gaussian(sigma=2) @ Shuffled(batch=64)", "--delta", "1e-5"])
    assert refused.exit_code != 0
    assert "RandomAllocation(steps=...)" in str(refused.exception)


def test_no_orders_at_all() -> None:
    assert (cm.Gaussian(sigma=1) @ cm.RandomAllocation(steps=9)).rdp([]).size == 0


def test_calibrate() -> None:
    found = cm.calibrate(
        "Gaussian(sigma=?) @ RandomAllocation(steps=50) * 5", epsilon=1, delta=1e-5, method="rdp", digits=2
    )
    assert (cm.parse("Gaussian(sigma=?) @ RandomAllocation(steps=50) * 5", unknown=found.value)).epsilon(
        1e-5, method="rdp"
    ) <= 1
    steps = cm.calibrate("Gaussian(sigma=1) @ RandomAllocation(steps=?)", epsilon=1, delta=1e-5, method="rdp")
    assert (cm.Gaussian(sigma=1) @ cm.RandomAllocation(steps=steps.value)).epsilon(1e-5, method="rdp") <= 1


# ---- epochs from the definition


def epochs(rng: np.random.Generator, odds: float, steps: int, count: int) -> tuple[Any, Any]:
    """Output laws of so many epochs with and without the record, each step a random map of a yes/no answer.

    The map of a step depends on all outputs before it; the first epoch publishes the answers themselves.
    """
    yes = odds / (1 + odds)
    p, q = np.array([yes, 1 - yes]), np.array([1 - yes, yes])
    laws = np.ones((count, steps + 1, 1))  # place of the record, or none; outputs so far
    for step in range(steps):
        shape = (count, laws.shape[2], 2)
        kernel = rng.dirichlet(np.full(3, rng.choice([0.2, 1.0])), shape)
        kernel[0] = np.eye(2, 3)
        with_record, without = np.einsum("i,coij->coj", p, kernel), np.einsum("i,coij->coj", q, kernel)
        here = np.where(np.arange(steps + 1)[:, None, None] == step, with_record[:, None], without[:, None])
        laws = (laws[..., None] * here).reshape(count, steps + 1, -1)
    return laws[:, :steps].mean(axis=1), laws[:, steps]


def divergences(p: Any, q: Any, order: float) -> Any:
    with np.errstate(divide="ignore", invalid="ignore"):
        terms = np.where(p > 0, np.exp(order * np.log(p) + (1 - order) * np.log(q)), 0.0)
    return np.log(terms.sum(axis=-1)) / (order - 1)


@pytest.mark.parametrize("base", BASES, ids=str)
def test_divergences_of_enumerated_epochs(base: cm.RandomizedResponse) -> None:
    rng = np.random.default_rng(21)
    odds = float(Fraction(base.p) / (1 - Fraction(base.p)))
    for steps in (2, 3, 4):
        there, without = epochs(rng, odds, steps, 60)
        epoch, fewer = (allocation(base.curve(), base.pair(), Fraction(1, n)) for n in (steps, steps + 1))
        for order in (1.5, 2.0, 3.0, 8.0):
            needed = np.maximum(divergences(there, without, order), divergences(without, there, order))
            claimed = float(epoch.rdp([order])[0])
            assert (needed <= claimed * (1 + 1e-9)).all()
            if order == int(order):
                assert needed[0] == pytest.approx(claimed, rel=1e-9)  # attained
                assert needed[0] > float(fewer.rdp([order])[0]) * (1 + 1e-6)  # what claims more than it may is found


def test_adding_a_record_is_enumerated() -> None:
    """For a pair the integral is the truth, at every real order."""
    for base, steps in itertools.product(BASES, (2, 5)):
        odds = float(Fraction(base.p) / (1 - Fraction(base.p)))
        count = np.arange(steps + 1)
        mass = np.array([math.comb(steps, int(k)) for k in count]) * odds ** (steps - count) / (1 + odds) ** steps
        mean = (count * odds + (steps - count) / odds) / steps
        pair = base.pair()
        for lam in (0.7, 1.0, 6.5, 30.0):
            exact = math.log(float((mass * mean**-lam).sum()))
            found = float(Added(pair, steps).cgf(np.array([lam]))[0])
            assert exact * (1 - 1e-12) <= found <= exact * (1 + 1e-9)
            assert found > math.log(float((mass * (mean * (steps + 1) / steps) ** -lam).sum()))


def test_picks_are_a_partition_with_one_pick_in_each_block() -> None:
    """Uniform k-subsets of t steps from blocks: every subset is as likely, by enumeration."""
    for steps, picks in ((4, 2), (5, 2), (5, 3), (6, 4)):
        short, longer = divmod(steps, picks)
        sizes = [short + 1] * longer + [short] * (picks - longer)
        counts: dict[tuple[int, ...], Fraction] = {}
        for order in itertools.permutations(range(steps)):
            starts = np.cumsum([0, *sizes])
            for chosen in itertools.product(*(range(size) for size in sizes)):
                subset = tuple(sorted(order[int(start) + place] for start, place in zip(starts, chosen, strict=False)))
                counts[subset] = counts.get(subset, Fraction(0)) + 1
        assert len(set(counts.values())) == 1
        assert len(counts) == math.comb(steps, picks)


# ---- the lattice


def lattice_delta(pair: Any, steps: int, direction: str, epsilon: float, times: int = 1) -> float:
    epoch = Allocated(pair.loss(), steps, direction)
    return refine.grid_delta(((epoch, times),), epsilon, 1e-4, upper=True).value


@pytest.mark.parametrize("row", [row for row in ROWS if "delta" in row["quantity"]], ids=named)
def test_reference_deltas(row: dict[str, Any]) -> None:
    steps, expected = int(row["parameters"]["steps"]), float(row["value"])
    run = cm.Gaussian(sigma=row["parameters"]["sigma"]) @ cm.RandomAllocation(steps)
    found = run.guarantee(epsilon=row["at"]["epsilon"])
    assert expected * (1 - 10.0 ** (1 - row["digits"])) <= found.delta <= expected * (1 + 1e-3)
    assert found.rigour == "bounded"
    assert found.lower is not None
    assert expected * (1 - 1e-3) <= found.lower <= expected * (1 + 10.0 ** (1 - row["digits"]))


def test_two_steps_by_quadrature() -> None:
    """delta = E (S/2 - e^eps)_+ with S = W_1 + W_2, one integral for each W_1: the inner one is a Gaussian's."""
    from scipy.special import ndtr

    z = np.linspace(-9, 9, 20_001)
    weight = np.exp(-z * z / 2) / math.sqrt(2 * math.pi) * (z[1] - z[0])
    for sigma, epsilon in ((1.0, 0.5), (1.0, 1.5), (3.0, 0.3)):
        t = 1 / sigma
        w = np.exp(t * z - t * t / 2)

        def call(strike: Any, t: float = t) -> Any:
            """E (W - k)_+."""
            x = np.log(np.maximum(strike, 1e-300)) / t
            return np.where(strike > 0, ndtr(t / 2 - x) - strike * ndtr(-t / 2 - x), 1 - strike)

        remove = float(np.sum(weight * call(2 * math.exp(epsilon) - w))) / 2
        limit = 2 * math.exp(-epsilon) - w
        add = math.exp(epsilon) / 2 * float(np.sum(weight * np.where(limit > 0, call(limit) - 1 + limit, 0.0)))
        pair = GaussianPair(Fraction(t))
        for direction, exact in (("remove", remove), ("add", add)):
            found = lattice_delta(pair, 2, direction, epsilon)
            assert exact * (1 - 1e-9) <= found <= exact * (1 + 1e-3), (sigma, epsilon, direction)


def test_a_large_jump_is_not_missed() -> None:
    """t = 100: largest-term Monte Carlo says 3.018e-7 +- 3e-10, plain Monte Carlo 3e-9."""
    pair = GaussianPair(Fraction(1))
    assert lattice_delta(pair, 100, "remove", 1.0) == pytest.approx(3.016e-7, rel=2e-3)
    below = AllocatedBelow(pair.loss(), 100, "add").own_delta(0.5, -48.0)  # type: ignore[arg-type]
    assert 5.87e-7 < below < 5.93e-7 < lattice_delta(pair, 100, "add", 0.5) < 5.99e-7


@pytest.mark.parametrize("base", BASES, ids=str)
def test_deltas_of_enumerated_epochs(base: cm.RandomizedResponse) -> None:
    rng = np.random.default_rng(22)
    odds = float(Fraction(base.p) / (1 - Fraction(base.p)))
    for steps in (2, 3, 4):
        there, without = epochs(rng, odds, steps, 60)
        for epsilon in (0.02 * math.log(odds), 0.3 * math.log(odds)):
            for direction, p, q in (("remove", there, without), ("add", without, there)):
                needed = np.maximum(p - math.exp(epsilon) * q, 0.0).sum(axis=1)
                claimed = lattice_delta(base.pair(), steps, direction, epsilon)
                assert (needed <= claimed * (1 + 1e-9)).all()
                assert needed[0] == pytest.approx(claimed, rel=2e-3)  # attained
                more = lattice_delta(base.pair(), steps + 1, direction, epsilon)
                assert needed[0] > more  # what claims more than it may is found


def test_two_epochs_are_composed() -> None:
    """Two epochs of two steps with yes/no answers, all sixteen outputs."""
    base = BASES[1]
    rng, epsilon = np.random.default_rng(1), 0.4
    there, without = epochs(rng, 3.0, 2, 1)
    p, q = np.multiply.outer(there[0], there[0]).ravel(), np.multiply.outer(without[0], without[0]).ravel()
    for direction, one, other in (("remove", p, q), ("add", q, p)):
        exact = float(np.maximum(one - math.exp(epsilon) * other, 0.0).sum())
        assert exact <= lattice_delta(base.pair(), 2, direction, epsilon, times=2) <= exact * (1 + 2e-3)


def test_what_a_base_fails_with_is_kept() -> None:
    """Of (1, 1/100)-DP releases a record is in one, so that an epoch fails as often."""
    run = cm.ApproximateDP(1, "1/100") @ cm.RandomAllocation(steps=20)
    found = run.delta(epsilon="0.9")
    assert 0.01 <= found <= 0.0101
    assert run.delta(epsilon="0.2") < cm.ApproximateDP(1, "1/100").delta(epsilon="0.2")


def test_too_little_noise_for_any_grid_is_bounded_by_the_mechanism() -> None:
    least = cm.Gaussian(sigma="1e-3")
    assert (least @ cm.RandomAllocation(steps=9)).epsilon(1e-5) <= least.epsilon(1e-5, method="rdp")


def test_ten_epochs_below_divergences() -> None:
    run = cm.Gaussian(sigma=1) @ cm.RandomAllocation(steps=100) * 10
    assert run.epsilon(1e-5) == pytest.approx(1.702, abs=2e-3)
    assert run.epsilon(1e-5, method="rdp") == pytest.approx(1.979, abs=2e-3)
    mixed = run + cm.Gaussian(sigma=4)
    assert 1.8 < mixed.epsilon(1e-5) < 0.95 * mixed.epsilon(1e-5, method="rdp")


def test_many_steps_of_yes_and_no_are_binomial() -> None:
    """S has the law of a binomial number of large ratios: 200 random epochs, both directions, none below."""
    from scipy.stats import binom

    rng = np.random.default_rng(23)
    for _ in range(100):
        e0, steps = float(np.round(10 ** rng.uniform(-1.5, 0.6), 3)), int(10 ** rng.uniform(0.31, 3))
        count = np.arange(steps + 1)
        mass = binom.pmf(count, steps, 1 / (1 + math.exp(e0)))
        mean = (count * math.exp(e0) + (steps - count) * math.exp(-e0)) / steps
        epsilon = float(rng.uniform(0.02, 1)) * e0 / math.sqrt(steps)
        pair = cm.PureDP(e0).pair()
        remove = float(np.sum(mass * np.maximum(mean - math.exp(epsilon), 0)))
        add = float(np.sum(mass * np.maximum(1 - math.exp(epsilon) * mean, 0)))
        for direction, exact in (("remove", remove), ("add", add)):
            found = lattice_delta(pair, steps, direction, epsilon)
            assert exact * (1 - 1e-10) <= found <= exact * 1.1 + 1e-8


# ---- fewer steps, and announced ones


def two_step_delta(sigma: float, epsilon: float) -> float:
    """The larger delta of an epoch of two steps by quadrature: E (S/2 - e^eps)_+ and E (1 - e^eps S/2)_+."""
    from scipy.special import ndtr

    t = 1 / sigma
    z = np.linspace(-12, 12 + t, 60_001)
    weight = np.exp(-z * z / 2) / math.sqrt(2 * math.pi) * (z[1] - z[0])
    w = np.exp(t * z - t * t / 2)

    def call(strike: Any) -> Any:
        x = np.log(np.maximum(strike, 1e-300)) / t
        return np.where(strike > 0, ndtr(t / 2 - x) - strike * ndtr(-t / 2 - x), 1 - strike)

    remove = float(np.sum(weight * call(2 * math.exp(epsilon) - w))) / 2
    limit = 2 * math.exp(-epsilon) - w
    add = math.exp(epsilon) / 2 * float(np.sum(weight * np.where(limit > 0, call(limit) - 1 + limit, 0.0)))
    return max(remove, add)


@pytest.mark.parametrize("sigma", ["0.3", "0.5"])
def test_more_steps_are_never_worse_than_fewer_or_announced_ones(sigma: str) -> None:
    base = cm.Gaussian(sigma=sigma)
    epsilons = [(base @ cm.RandomAllocation(steps)).epsilon("1e-6") for steps in (1, 2, 3, 5)]
    assert epsilons[0] == base.epsilon("1e-6")
    assert epsilons == sorted(epsilons, reverse=True)
    assert two_step_delta(float(sigma), epsilons[1]) <= 1e-6
    run = base @ cm.RandomAllocation(2)
    for epsilon in (5, 10):
        found = run.delta(epsilon=epsilon)
        assert two_step_delta(float(sigma), epsilon) <= found <= base.delta(epsilon=epsilon)
    three = run * 3
    assert three.epsilon("1e-6") <= (base * 3).epsilon("1e-6")
    assert three.epsilon(["1e-6", "1e-3"])[0] == three.epsilon("1e-6")
    assert run.epsilon_over([1, 3], delta="1e-6").tolist() == [run.epsilon("1e-6"), three.epsilon("1e-6")]
    mixed = run + cm.Gaussian(sigma=4)
    assert mixed.epsilon("1e-6") <= (base + cm.Gaussian(sigma=4)).epsilon("1e-6")


def test_an_answer_by_fewer_steps_is_verified_explained_and_read_back() -> None:
    found = (cm.Gaussian(sigma="0.02") @ cm.RandomAllocation(2)).guarantee(delta="1e-6")
    assert (found.route, found.rigour, found.lower) == ("fewer steps", "proved", None)
    assert found.verify().holds
    again = cm.Guarantee.from_json(found.to_json())
    assert again.verify().holds
    assert "or with one release per epoch, which is no more private" in again.explain()
    smaller = found.to_dict() | {"epsilon": found.epsilon * 0.999}
    assert not cm.Guarantee.from_json(json.dumps(smaller)).verify().holds


def test_fewer_steps_that_cannot_need_less_are_not_evaluated(monkeypatch: pytest.MonkeyPatch) -> None:
    """No grid reaches 1e-300, and divergences answer; the grids of nine runs with fewer steps took 10 of 12 s."""
    calls, evaluate = [], answer.by_losses

    def evaluate_and_note(*given: Any) -> Any:
        calls.append(given)
        return evaluate(*given)

    monkeypatch.setattr(answer, "by_losses", evaluate_and_note)
    assert (cm.Gaussian(sigma=1) @ cm.RandomAllocation(steps=1000)).epsilon(delta="1e-300") <= 30.6369
    assert len(calls) == 2  # all steps, and an announced one


@pytest.mark.parametrize("epochs", [1, 3])
@pytest.mark.parametrize("base", [cm.Gaussian(sigma="0.5"), cm.Gaussian(sigma=2), cm.PureDP(1)])
def test_what_a_run_with_fewer_steps_needs_at_least(base: cm.Mechanism, epochs: int) -> None:
    """What is known without a grid is below every answer of the run; near it where an announced step is strong."""
    run = (base @ cm.RandomAllocation(steps=100) * epochs + cm.Gaussian(sigma=3)).record()
    announced = announced_run(run)
    assert announced is not None
    for shorter in shorter_runs(run):
        rounds, _ = rounds_of(shorter)  # its curve stays that of all steps
        assert rounds is not None
        for asked, value in (("delta", "1e-12"), ("delta", "1e-4"), ("epsilon", "0.5"), ("epsilon", "4")):
            question = Question.parse_query("best", None, None, DEFAULT_ACCURACY, asked).with_value(Exact(value))
            assert least_value(shorter, announced, question) <= answer.by_losses(rounds, question).value


def test_more_steps_at_a_small_delta() -> None:
    """Noise of transforms once hid 1e-9 at 1,000 steps; divergences have more than 1, 512 steps have 0.6884."""
    fewer, more = (cm.Gaussian(sigma=1) @ cm.RandomAllocation(steps) for steps in (512, 1000))
    found = more.guarantee(delta="1e-9")
    assert found.epsilon <= fewer.epsilon("1e-9") < 0.7
    assert found.verify().holds
    assert more.epsilon("1e-9", method="rdp") > 1


@pytest.mark.parametrize("sigma", ["0.4", "1"])
def test_attacks_on_two_steps_are_never_better_than_on_announced_ones(sigma: str) -> None:
    base = cm.Gaussian(sigma=sigma)
    run = base @ cm.RandomAllocation(2)
    rates = ["0.001", "0.1"]
    assert (run.true_positive_rate(rates) <= base.true_positive_rate(rates)).all()
    assert run.advantage() <= base.advantage()
    assert two_step_delta(float(sigma), 0.0) <= run.advantage()  # the total variation distance


def test_what_is_stated_for_a_group_is_not_announced() -> None:
    """An epoch for one record is not bounded by what is stated for other data sets."""
    run = ((cm.Gaussian(sigma="0.5") @ cm.RandomAllocation(2)) @ cm.Group(size=2)).record()
    assert announced_run(run) is None


@pytest.mark.parametrize("sigma", [20, 1000, 10**6])
@pytest.mark.parametrize("steps", [2, 5, 100])
def test_weak_noise_of_few_steps_is_that_of_its_mean(sigma: int, steps: int) -> None:
    """Ratios near 1 have a mean that is Gaussian up to the square of a shift: delta(0) is that of the mean of all steps."""
    found = (cm.Gaussian(sigma=sigma) @ cm.RandomAllocation(steps=steps)).guarantee(epsilon=0)
    mean = math.erf(1 / (2 * sigma * math.sqrt(2 * steps)))
    assert found.lower is not None
    assert mean * (1 - 2e-3) <= found.lower <= found.delta <= mean * (1 + 1 / sigma + 1e-3)
    assert found.delta >= mean  # the mean of all steps is a post-processing


def test_blocks_of_picks_have_no_lower_end() -> None:
    """Blocks are less private than k of t steps: what they need is no lower end of what ran."""
    run = cm.Gaussian(sigma=1) @ cm.RandomAllocation(steps=4, picks=2)
    outputs = np.random.default_rng(7).standard_normal((400_000, 4))
    one = np.exp(outputs - 0.5)  # the ratio of a step with the record
    ratio = (one.sum(axis=1) ** 2 - (one**2).sum(axis=1)) / 12  # the mean over both orders of six pairs
    gains = np.maximum(ratio - math.exp(0.5), 0)
    truth, error = gains.mean(), gains.std() / math.sqrt(gains.size)
    found = run.guarantee(epsilon="0.5")
    assert truth + 5 * error < found.delta
    assert found.lower is None
    assert run.check(epsilon="0.5", delta="0.27").verdict == "open"
    blocks = cm.Gaussian(sigma=1) @ cm.RandomAllocation(steps=2) * 2
    assert blocks.guarantee(epsilon="0.5").lower == pytest.approx(found.delta, rel=1e-4)
    assert blocks.delta("0.5") == found.delta
    for around in (run * 3, run + cm.Laplace(scale=9), run @ cm.Group(size=2)):
        assert around.surrogate
        assert cm.parse(str(around)).guarantee(delta="1e-3").lower is None
    with pytest.raises(cm.InputError, match="upper_bound=2 must be 1"):
        cm.RandomAllocation(steps=4, upper_bound=2)
