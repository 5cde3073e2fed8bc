"""Answers of both directions of Poisson samples: the larger one, against sums over all outputs."""

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import cumulant as cm
from cumulant.accounting.choices import Method
from cumulant.exact.grid import refine
from cumulant.exact.inversion import batch, solver
from cumulant.sampling.rated import Rated
from tests.exact.brute import Composed, Pairs, sampled


def directions(pair: Pairs, rate: Fraction, times: int) -> tuple[Composed, Composed]:
    remove, add = (Composed([(sampled(pair, rate, direction), times)]) for direction in ("remove", "add"))
    return remove, add


RESPONSE: Pairs = [(Fraction(9, 10), Fraction(1, 10)), (Fraction(1, 10), Fraction(9, 10))]
WITH_A_THIRD: Pairs = [
    (Fraction(6, 10), Fraction(1, 10)),
    (Fraction(1, 10), Fraction(6, 10)),
    (Fraction(3, 10), Fraction(3, 10)),
]


@pytest.mark.parametrize("method", ["exact", "best"])
@pytest.mark.parametrize("rate", ["0.5", "0.1"])
@pytest.mark.parametrize("pair", [RESPONSE, WITH_A_THIRD])
def test_a_poisson_sample_is_as_bad_as_its_worse_direction(pair: Pairs, rate: str, method: Method) -> None:
    """The direction of a neighbour is fixed for all rounds, and either may be the one that the data sets have."""
    times = 6
    run = cm.from_masses([p for p, _ in pair], [q for _, q in pair]) @ cm.Poisson(rate=rate) * times
    truths = directions(pair, Fraction(rate), times)
    differ = 0
    for epsilon in np.linspace(0.05, 0.9, 8) * truths[0].largest():
        exact = [float(truth.delta(epsilon)) for truth in truths]
        found = run.delta(float(epsilon), method=method)
        assert found >= max(exact) * (1 - 1e-14)
        differ += max(exact) > 1.1 * min(exact)
        if exact[0] > 1e-9:
            claimed = run.epsilon(exact[0], method=method)
            assert max(truth.delta(claimed) for truth in truths) <= exact[0] * (1 + 1e-12)
    assert differ > 4


def test_the_directions_of_gaussian_noise_differ_and_the_larger_one_is_answered() -> None:
    """One round: P(S) - e^eps Q(S) on a half-line S, for each direction, by the error function."""
    rate, epsilon = 0.4, 0.3
    run = cm.Gaussian(sigma=1) @ cm.Poisson(rate="0.4")

    def tail(x: float) -> float:
        return math.erfc(x / math.sqrt(2)) / 2

    x = math.log1p(math.expm1(epsilon) / rate) + 0.5
    remove = (1 - rate) * tail(x) + rate * tail(x - 1) - math.exp(epsilon) * tail(x)
    y = math.log1p(math.expm1(-epsilon) / rate) + 0.5
    add = tail(-y) - math.exp(epsilon) * ((1 - rate) * tail(-y) + rate * tail(1 - y))
    assert remove > 2 * add > 0
    for method in ("exact", "best"):
        assert remove * (1 - 1e-12) <= run.delta("0.3", method=method) <= remove * 1.01
        assert run.epsilon(remove, method=method) >= epsilon * (1 - 1e-12)


@pytest.mark.parametrize("scheme", [cm.WithoutReplacement, cm.Poisson])
def test_rounds_that_hardly_ever_see_the_record_add_up(scheme: type[Rated]) -> None:
    """At a rate of 1e-12 two rounds never matter together: n rounds at delta are one at delta / n, n times."""
    one = cm.Gaussian(sigma=4) @ scheme(rate="1.25e-12")
    run, most = one * 4, 4 * 1.25e-12 * math.erf(0.25 / math.sqrt(8))
    epsilons = []
    for part in (0.02, 0.5, 0.99, 0.99999):
        delta = f"{part * most:.12g}"
        found = run.guarantee(delta=delta)
        assert one.epsilon(delta) <= found.epsilon
        assert found.epsilon <= 4 * one.epsilon(Fraction(delta) / 4) * (1 + 1e-12)
        assert found.verify()
        epsilons.append(found.epsilon)
        assert run.delta(found.epsilon) <= float(delta) * (1 + 1e-6)
    assert epsilons == sorted(epsilons, reverse=True)
    assert epsilons[0] < 1e-10


@pytest.mark.parametrize("scheme", [cm.WithoutReplacement, cm.Poisson])
def test_promises_that_hardly_ever_fail_need_no_more_than_their_epsilons(scheme: type[Rated]) -> None:
    run = cm.ApproximateDP("1e-4", "1e-90") @ scheme(rate="0.1") * 3
    largest = 3 * math.log1p(0.1 * math.expm1(1e-4))
    for delta in ("1e-80", "1e-10", "2e-6"):
        assert run.epsilon(delta, method="exact") <= largest * (1 + 1e-9)
    assert run.epsilon("2e-91", method="exact") == math.inf
    assert 2.9e-91 <= run.delta(largest * 1.001, method="exact") <= 3.1e-91


def test_a_promise_that_hardly_ever_fails_is_composed_like_one_that_never_does() -> None:
    """The loss of a failure is 25,000 times the others, so that a grid that holds it sees them at a few of its points."""
    asked: dict[str, Any] = {"method": "exact", "accuracy": "1e-3"}
    for delta in ("1e-20", "1e-9", "1e-3"):
        never = (cm.PureDP("4e-5") @ cm.Poisson(rate="0.05") * 770_000).epsilon(delta, **asked)
        hardly = (cm.ApproximateDP("4e-5", "1e-150") @ cm.Poisson(rate="0.05") * 770_000).epsilon(delta, **asked)
        assert hardly == pytest.approx(never, rel=2e-3)


def test_many_deltas_that_floats_leave_to_others(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of so few rounds there is no line in floats: it is looked for once, and the answers are those of single questions."""
    run = cm.Gaussian(sigma=2) @ cm.WithoutReplacement(rate="0.1") * 10
    asked, calls, in_floats = [0.1 * i for i in range(12)], 0, batch.float_ends
    alone = np.array([run.delta(x) for x in asked])

    def counted(*given: Any) -> Any:
        nonlocal calls
        calls += 1
        return in_floats(*given)

    monkeypatch.setattr(batch, "float_ends", counted)
    assert run.delta(asked) == pytest.approx(alone, rel=1e-3)
    assert calls == 1


def test_a_direction_above_the_distance_is_the_last_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """The distance 1 - (1 - rate)^1000 bounds both directions; the grids of the second one were a waste of 10 s."""
    calls, evaluate = [], refine.grid_delta

    def evaluate_and_note(*given: Any, **more: Any) -> Any:
        calls.append(given)
        return evaluate(*given, **more)

    monkeypatch.setattr(refine, "grid_delta", evaluate_and_note)
    run = cm.Gaussian(sigma="0.01", relation="add-remove") @ cm.Poisson(rate="1e-12") * 1000
    assert run.delta(epsilon="1e-9") <= 9.999999995025001e-10
    assert len(calls) == 1


def test_beyond_the_largest_loss_no_grid_is_made(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any, **__: Any) -> None:
        raise AssertionError("a grid is made")

    monkeypatch.setattr(refine, "grid_delta", refuse)
    run = cm.from_masses(p=["1/10", "9/10"], q=["9/10", "1/10"]) @ cm.Poisson(rate="0.5") * 10**6
    assert run.delta(epsilon=10**7) == 0
    assert run.delta(epsilon=[10**7, 2 * 10**7]).tolist() == [0, 0]


def test_a_rough_line_answers_where_a_grid_is_worse() -> None:
    """Few strong rounds among many weak ones: the grid alone says 1.32e-10 and 3.6e-12, and balls prove less."""
    few = (cm.Gaussian(sigma="2.17") * 2) @ cm.WithoutReplacement(rate="0.00227") * 77
    run = few + cm.Gaussian(sigma="10.4", geometry="ball") @ cm.WithoutReplacement(rate="0.000258") * 4304
    for epsilon, most in (("0.125", 1.02e-10), ("0.2", 2.66e-13), ("0.4", 1.94e-17), ("1", 7.15e-22)):
        assert 0 < run.delta(epsilon) <= most
    for epsilon in ("0.125", "1"):
        assert run.delta(epsilon) <= run.guarantee(epsilon=epsilon, prove=True).delta


def test_more_accuracy_than_a_line_affords_is_no_worse() -> None:
    """Floats follow these rounds to 1e-3 and no farther, and a grid alone would say 2 % more; balls say 0.12508313."""
    few = (cm.Gaussian(sigma="2.17") * 2) @ cm.WithoutReplacement(rate="0.00227") * 77
    run = few + cm.Gaussian(sigma="10.4", geometry="ball") @ cm.WithoutReplacement(rate="0.000258") * 4304
    rough, fine = (run.epsilon("1e-10", method="exact", accuracy=accuracy) for accuracy in ("1e-3", "1e-5"))
    assert 0.1250831283 <= fine <= rough <= 0.1251


@pytest.mark.parametrize("delta", ["1e-6", "1e-8"])
@pytest.mark.parametrize(
    ("sigma", "rate", "times", "left_out"), [("5", "0.001", 600_000, "line"), ("2", "0.1", 30, "grid")]
)
def test_neighbours_that_need_less_by_floats_are_not_evaluated(
    sigma: str, rate: str, times: int, left_out: str, delta: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two neighbours bound the run from below, one along the line and three values on a grid; the larger is enough."""
    asked: list[str] = []

    def count(owner: Any, name: str, engine: str) -> None:
        evaluate = getattr(owner, name)

        def evaluate_and_note(*given: Any, **more: Any) -> Any:
            asked.append(engine)
            return evaluate(*given, **more)

        monkeypatch.setattr(owner, name, evaluate_and_note)

    count(solver, "lower_end", "line")
    count(refine, "grid_end", "grid")

    def lower(noise: str) -> float | None:
        return (cm.Gaussian(sigma=noise) @ cm.WithoutReplacement(rate=rate) * times).guarantee(delta=delta).lower

    found = lower(sigma)
    assert asked == [{"line": "grid", "grid": "line"}[left_out]]
    monkeypatch.setattr(solver, "guessed_end", lambda *_: math.inf)
    again = lower(f"{sigma}.000000000001")  # nothing is remembered of it
    assert sorted(asked[1:]) == ["grid", "line"]
    assert again == pytest.approx(found, rel=1e-9)
