"""Searches between remembered orders: a question never gets a looser answer than when it is asked alone."""

import math
import random
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction

import numpy as np
import pytest

import cumulant as cm
from cumulant.accounting.cache import forget, forget_answers
from cumulant.conversion import order_search
from cumulant.conversion.conversions import conversion
from cumulant.curves import interpolation as module
from cumulant.curves.cached_curve import Remembered
from cumulant.curves.closed_form import Concentrated, LaplaceShift, Response, Truncated
from cumulant.curves.curve import Curve, Lowest, compose
from cumulant.curves.interpolation import ChebyshevCurve, chebyshev_curve
from cumulant.numerics.search import SCAN
from tests.effort import drawn

SEQUENCES = drawn(20)


def mechanisms(draw: random.Random) -> list[cm.Expression]:
    """A few kinds, on samples and not, some of which switch between bounds or are linear between integers."""
    sample = cm.WithoutReplacement(rate=draw.choice(["0.001", "0.02", "0.3"]))
    scale = f"{draw.uniform(0.6, 6):.3f}"
    kinds: list[cm.Expression] = [
        cm.Gaussian(sigma=scale) @ sample,
        cm.Gaussian(sigma=scale),
        cm.Laplace(scale=scale) @ sample,
        cm.Laplace(scale=scale),
        cm.RandomizedResponse(p="0.6") @ sample,
        cm.PureDP("0.1"),
        cm.ApproximateDP("0.05", "1e-12"),
    ]
    return draw.sample(kinds, draw.randint(1, 3))


Asked = Callable[[cm.Expression], float]


def sequence(seed: int) -> list[tuple[cm.Expression, Asked]]:
    """What was composed at each of a few questions to one accountant, and the question."""
    draw, accountant = random.Random(seed), cm.Accountant()
    kinds, asked = mechanisms(draw), []
    for each in kinds:
        accountant.compose(each, times=10 ** draw.randint(0, 3))
    for _ in range(3):
        accountant.compose(draw.choice(kinds), times=draw.randint(1, 20))
        delta, epsilon = Fraction(1, 10 ** draw.randint(3, 11)), Fraction(draw.randint(1, 40), 8)
        by_delta: Asked = lambda run, delta=delta: run.epsilon(delta, method="rdp")  # type: ignore[misc]  # noqa: E731
        by_epsilon: Asked = lambda run, epsilon=epsilon: run.delta(epsilon, method="rdp")  # type: ignore[misc]  # noqa: E731
        asked.append((accountant.run(), by_delta if draw.random() < 0.7 else by_epsilon))
    return asked


def test_no_question_gets_a_looser_answer_than_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    sequences = [sequence(seed) for seed in range(SEQUENCES)]
    together = [[ask(run) for run, ask in each] for each in sequences]
    for seed in range(0, SEQUENCES, 4):  # from empty memories to the last bit
        forget()
        run, ask = sequences[seed][-1]
        assert ask(run) == together[seed][-1], (seed, str(run))
    monkeypatch.setattr(order_search, "chebyshev_curve", lambda curve: None)
    forget_answers()
    for seed, (each, found) in enumerate(zip(sequences, together, strict=True)):
        (run, ask), value = each[-1], found[-1]
        alone = ask(run)  # by a search that evaluates the curve at every order
        assert value <= alone * (1 + 1e-9), (seed, str(run))


def test_none_is_below_a_proved_lower_end() -> None:
    for seed in (3, 50, 120, 170):
        run, _ = sequence(seed)[-1]
        found = run.guarantee(delta="1e-6")
        assert found.lower is None or run.epsilon("1e-6", method="rdp") >= found.lower, (seed, str(run))


def test_arrays_are_no_looser_either(monkeypatch: pytest.MonkeyPatch) -> None:
    deltas: list[int | str]
    epsilons: list[int | str]
    deltas, epsilons = ["1e-4", "1e-7", "1e-30", 0, 1], [0, "0.5", 3, 50]
    runs = [sequence(seed)[0][0] for seed in range(0, SEQUENCES, 2)]
    found = [(run.epsilon(deltas, method="rdp"), run.delta(epsilons, method="rdp")) for run in runs]
    monkeypatch.setattr(order_search, "chebyshev_curve", lambda curve: None)
    forget_answers()
    for run, (by_delta, by_epsilon) in zip(runs, found, strict=True):
        assert (by_delta <= run.epsilon(deltas, method="rdp") * (1 + 1e-9)).all(), str(run)
        assert (by_epsilon <= run.delta(epsilons, method="rdp") * (1 + 1e-9)).all(), str(run)


def test_threads_get_the_same_bits() -> None:
    asked = [each for seed in range(12) for each in sequence(seed)]
    forget()
    alone = [ask(run) for run, ask in asked]
    forget()
    with ThreadPoolExecutor(max_workers=8) as pool:
        assert list(pool.map(lambda each: each[1](each[0]), asked)) == alone


def test_what_changes_is_asked_again() -> None:
    rho = 0.1
    mine = cm.from_rdp(rdp=lambda order: rho * order, name="mine")
    accountant = cm.Accountant()
    accountant.compose(cm.Gaussian(sigma=3), times=4)
    accountant.compose(mine)
    assert chebyshev_curve(accountant.curve()) is None
    before = accountant.epsilon("1e-6", method="rdp")
    rho = 0.4
    assert accountant.epsilon("1e-6", method="rdp") > 1.2 * before


@pytest.mark.parametrize(
    "curve",
    [
        Concentrated(Fraction(1, 50)),
        LaplaceShift(Fraction(1, 3)),
        Response(epsilon=Fraction(1, 5)),
        compose([(Concentrated(Fraction(1, 10**6)), 7), (LaplaceShift(Fraction(2)), 3)]),
    ],
    ids=["Gaussian", "Laplace", "Response", "Composition"],
)
def test_smooth_curves_are_interpolated(curve: Curve) -> None:
    table = ChebyshevCurve(curve)
    lam = np.geomspace(0.3, 4000, 400)
    for each in lam[::10].tolist():
        while not table.settled(each):
            pass
    found, known = table.cgf(lam[::10]), curve.cgf(lam[::10])
    assert np.abs(found / known - 1).max() < 1e-11
    assert np.array_equal(table.cgf(SCAN), curve.cgf(SCAN))


class Counting(Concentrated):
    """Counts how often it is asked in floats."""

    __slots__ = ()
    asked = 0

    def _cgf(self, lam: object, on: object) -> object:
        Counting.asked += 1
        return Concentrated._cgf(self, lam, on)  # type: ignore[arg-type]


def test_a_second_question_asks_nothing_new_of_its_kinds() -> None:
    curve = compose([(Remembered(Counting(Fraction(1, 100 + i))), 5) for i in range(3)])

    def search(delta: Fraction) -> order_search.Minimum:
        return order_search.located(curve, lambda on: order_search.best_epsilon(on, [delta], conversion("cks")))

    search(Fraction(1, 10**6))
    before = Counting.asked
    found = search(Fraction(101, 10**8))
    assert Counting.asked == before
    exact = order_search.best_epsilon(curve, [Fraction(101, 10**8)], conversion("cks"))
    assert found.value[0] == pytest.approx(exact.value[0], rel=1e-11)
    assert Counting.asked > before


def test_a_kink_between_two_nodes_is_found() -> None:
    """The smaller of two bounds, which changes in the middle of a cell of the scan, and a curve that ends in one."""
    steep, flat = Concentrated(Fraction(1, 10**4)), Concentrated(Fraction(0), xi=Fraction(37, 10**4))
    for curve in (Lowest((steep, flat)), Truncated(steep, omega=Fraction("23.7"))):
        remembered = Remembered(curve)
        for exponent in range(1, 14):
            delta = Fraction(1, 3**exponent)

            def search(on: Curve, delta: Fraction = delta) -> order_search.Minimum:
                return order_search.best_epsilon(on, [delta], conversion("classic"))

            found, known = order_search.located(remembered, search), search(curve)
            assert found.value[0] <= known.value[0] * (1 + 1e-9)
            if math.isinf(found.order[0]):
                continue
            here = (curve.cgf([found.order[0] - 1])[0] - math.log(delta)) / (found.order[0] - 1)
            assert here <= known.value[0] * (1 + 1e-9)


def test_a_promise_that_is_not_kept_is_searched_again(monkeypatch: pytest.MonkeyPatch) -> None:
    run = cm.Gaussian(sigma=2) * 3 + cm.Laplace(scale=4)
    known = run.epsilon("1e-6", method="rdp"), run.epsilon(["1e-6"], method="rdp")[0], run.delta(2, method="rdp")
    divergence = module._Panel.divergence
    # too low around an order that is far from the best
    monkeypatch.setattr(
        module._Panel, "divergence", lambda self, lam: divergence(self, lam) * np.where((lam > 2) & (lam < 3), 0.01, 1)
    )
    forget()
    again = run.epsilon("1e-6", method="rdp"), run.epsilon(["1e-6"], method="rdp")[0], run.delta(2, method="rdp")
    assert again == pytest.approx(known, rel=1e-9)
