"""What users bring: their objects may change, raise, refuse to be hashed, or say what no divergence can be."""

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import cumulant as cm
from cumulant.accounting import text
from cumulant.curves.user_function import Function
from cumulant.mechanisms.mechanism import Mechanism
from tests.effort import share

SAMPLE = cm.WithoutReplacement(rate=0.1)


class Noise:
    """A user's object: Gaussian noise whose sigma changes; it cannot be hashed, and says that it equals all others."""

    __hash__ = None  # type: ignore[assignment]

    def __init__(self, sigma: float = 5.0) -> None:
        self.sigma = sigma

    def __eq__(self, other: object) -> bool:
        return True

    def __call__(self, order: Any) -> Any:
        return order / (2 * self.sigma**2)

    def rdp(self, order: Any) -> Any:
        return self(order)

    def log_density(self, x: Any) -> Any:
        return -((x / self.sigma) ** 2) / 2 - math.log(2 * math.pi * self.sigma**2) / 2

    def shifted(self, x: Any) -> Any:
        return self.log_density(x - 1)

    def hessian(self, radius: float) -> float:
        return 1 / self.sigma**2


def accounted(mechanism: cm.Mechanism) -> cm.Expression:
    accountant = cm.Accountant()
    accountant.compose(mechanism @ SAMPLE, times=3)
    return accountant


RUNS: dict[str, Callable[[cm.Mechanism], cm.Expression]] = {
    "alone": lambda mine: mine,
    "in a sum": lambda mine: mine * 3 + cm.Laplace(scale=100),
    "on a sample": lambda mine: mine @ SAMPLE,
    "on one sample with others": lambda mine: (mine + cm.Laplace(scale=100)) @ SAMPLE * 2,
    "on a Poisson sample": lambda mine: mine @ cm.Poisson(rate=0.1),
    "in an accountant": accounted,
}
QUESTIONS: dict[str, Callable[[cm.Expression], float]] = {
    "epsilon": lambda run: run.epsilon(delta=1e-5),
    "epsilon by the curve": lambda run: float(run.epsilon(delta=[1e-5], method="rdp")[0]),
    "the paper's": lambda run: run.epsilon(delta=1e-5, bound="caps"),
    "delta": lambda run: run.delta(epsilon=0.5),
    "guarantee": lambda run: run.guarantee(delta=1e-5).epsilon,
    "epsilon_over": lambda run: float(run.epsilon_over([7], delta=1e-5)[0]),
    "rdp": lambda run: run.rdp(3),
    "cgf": lambda run: run.cgf(2.5),
    "kl": lambda run: run.kl(),
    "true_positive_rate": lambda run: run.true_positive_rate(0.01),
}
FUNCTIONS: dict[str, Callable[[Noise], cm.Mechanism]] = {
    "method": lambda noise: cm.from_rdp(noise.rdp),
    "object": lambda noise: cm.from_rdp(noise),
    "hessian": lambda noise: cm.ExponentialFamilyMechanism(diameter=1, hessian=noise.hessian),
}


def taken(made: str, placed: str) -> list[str]:
    """Return the questions that are asked of this function in this run: four of ten, in a hunt all."""
    return share(list(QUESTIONS), len(RUNS) * list(FUNCTIONS).index(made) + list(RUNS).index(placed), 4)


def test_every_question_is_taken() -> None:
    """By every kind of function and in every kind of run."""
    for made in FUNCTIONS:
        assert {name for placed in RUNS for name in taken(made, placed)} == set(QUESTIONS)
    for placed in RUNS:
        assert {name for made in FUNCTIONS for name in taken(made, placed)} == set(QUESTIONS)


@pytest.mark.parametrize("made", FUNCTIONS)
@pytest.mark.parametrize("placed", RUNS)
def test_a_question_after_a_change_is_about_what_is_there_now(made: str, placed: str) -> None:
    noise, fresh = Noise(5.0), Noise(2.0)
    run, expected = RUNS[placed](FUNCTIONS[made](noise)), RUNS[placed](FUNCTIONS[made](fresh))
    asked = {name: QUESTIONS[name] for name in taken(made, placed)}
    before = {name: ask(run) for name, ask in asked.items()}
    noise.sigma = 2.0
    for name, ask in asked.items():
        assert ask(run) == ask(expected) > before[name], name


def test_densities_that_change() -> None:
    noise = Noise(4.0)
    mine = cm.from_densities(noise.shifted, noise.log_density)
    assert mine.rdp(2) == pytest.approx(1 / 16)
    before = (mine @ SAMPLE).rdp(2, bound="profile")
    noise.sigma = 2.0
    assert mine.rdp(2) == pytest.approx(1 / 4)
    again = cm.from_densities(noise.shifted, noise.log_density)
    assert (mine @ SAMPLE).rdp(2, bound="profile") == (again @ SAMPLE).rdp(2, bound="profile") > before


def test_densities_are_checked_at_every_question() -> None:
    noise = Noise(4.0)
    mass = [1.0]
    mine = cm.from_densities(noise.shifted, lambda x: noise.log_density(x) + math.log(mass[0]))
    mass[0] = 0.5
    with pytest.raises(cm.InputError, match=r"log_q integrates to 0\.5"):
        mine.rdp(2)


def test_a_guarantee_does_not_confirm_what_has_changed() -> None:
    noise = Noise(5.0)
    found = cm.from_rdp(noise.rdp).guarantee(delta=1e-5)
    assert found.rigour == "proved"
    assert found.verify().holds
    noise.sigma = 2.0
    assert not found.verify().holds


def test_a_function_may_ask_the_library_after_changing_something() -> None:
    """What a user's function asks is a question of its own, although it is asked within another."""
    noise = Noise(1.0)
    inner = cm.from_rdp(noise.rdp)

    def rdp(order: float) -> float:
        noise.sigma = 1.0 if order < 3 else 0.5
        return float(inner.rdp(2)) + float(order)

    assert cm.from_rdp(rdp).rdp([2.0, 2.5, 4.0]) == pytest.approx([1 + 2, 1 + 2.5, 4 + 4])


def test_a_curve_is_built_once_in_a_question() -> None:
    calls: list[Any] = []

    def rdp(order: Any) -> float:
        calls.append(order)
        return math.sqrt(order)

    cm.from_rdp(rdp).guarantee(delta=1e-5)
    floats = [order for order in calls if isinstance(order, float)]
    assert len(floats) == len(set(floats))


def test_what_no_one_vouches_for_is_not_remembered() -> None:
    """A mechanism of one's own that holds an object, and does not say so in its key."""

    class Mine(Mechanism):
        __slots__ = ("noise",)

        def __init__(self, noise: Noise) -> None:
            self.noise = noise

        def key(self) -> str:
            return "mine"

        def own_curve(self, bound: str) -> Function:
            return Function(self.noise.rdp)

    noise = Noise(5.0)
    mine = Mine(noise)
    before = mine.epsilon(delta=1e-5), (mine @ SAMPLE).epsilon(delta=1e-5)
    noise.sigma = 1.0
    assert mine.epsilon(delta=1e-5) > before[0]
    assert (mine @ SAMPLE).epsilon(delta=1e-5) > before[1]
    assert cm.Gaussian(sigma=1).frozen
    assert (cm.Gaussian(sigma=1) @ SAMPLE * 3 + cm.Laplace(scale=1)).frozen
    assert not (mine @ SAMPLE).frozen
    with pytest.raises(cm.NotationError, match="cannot be written as text"):
        (mine @ SAMPLE * 2).notation()


def test_callables_are_told_apart_by_identity() -> None:
    one, other = Noise(1.0), Noise(9.0)
    assert one == other
    both = cm.from_rdp(one) + cm.from_rdp(other)
    assert len(both.terms) == 2
    assert both.rdp(2) == pytest.approx(1 + 1 / 81)
    assert cm.from_rdp(one.rdp) == cm.from_rdp(one.rdp)
    assert cm.from_rdp(one.rdp) != cm.from_rdp(other.rdp)
    assert cm.from_rdp(one).guarantee(delta=1e-5).rigour == "proved"
    assert cm.from_densities(one.shifted, one.log_density) == cm.from_densities(one.shifted, one.log_density)


# ---- what a function may not say


@pytest.mark.parametrize("run", RUNS)
@pytest.mark.parametrize(
    "rdp",
    [lambda a: 1 / a, lambda a: 1 / math.sqrt(a), lambda a: max(0.0, 1 - a / 100), lambda a: 2.0 if a < 40 else 1.0],
    ids=["balls", "floats", "to zero", "one step"],
)
def test_a_function_that_falls(rdp: Any, run: str) -> None:
    with pytest.raises(cm.InputError, match="never falls with the order"):
        RUNS[run](cm.from_rdp(rdp)).epsilon(delta=1e-5)
    with pytest.raises(cm.InputError, match="never falls with the order"):
        cm.from_rdp(rdp).rdp([2, 100])


def test_rounding_is_no_fall() -> None:
    def response(order: float) -> float:
        """Randomized response as one would write it: near order 1 it is noise."""
        return math.log(0.6**order * 0.4 ** (1 - order) + 0.4**order * 0.6 ** (1 - order)) / (order - 1)

    mine = cm.from_rdp(lambda a: response(a) if a < 500 else math.log(1.5), pure=Fraction("0.405465108108164382"))
    assert mine.epsilon(delta=1e-3) >= cm.RandomizedResponse(p="0.6").epsilon(delta=1e-3, method="rdp") * (1 - 1e-6)
    flat = cm.from_rdp(lambda a: 0.5 * (1 + 4e-10 * math.sin(1e6 * a)))
    assert flat.epsilon(delta=1e-3) <= 0.5 * (1 + 1e-9)
    unknown = cm.from_rdp(lambda a: math.inf if a < 3 or a > 9 else a / 50)
    assert unknown.epsilon(delta=1e-3) < math.inf


@pytest.mark.parametrize(
    ("said", "sentence"),
    [
        (-1.0, "never negative"),
        (math.nan, "returned nan; return math.inf"),
        (np.nan, "returned nan"),
        (None, "is not a number"),
        ("0.5", "is not a number"),
        (True, "is not a number"),
        (1j, "is not a number"),
        (np.complex128(1j), "is not a number"),
        ([0.5], "is not a number"),
        (np.array([0.5]), "is not a number"),
        ({}, "is not a number"),
        (object(), "is not a number"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_what_is_no_divergence(said: Any, sentence: str) -> None:
    for run in RUNS.values():
        with pytest.raises(cm.InputError, match=sentence):
            run(cm.from_rdp(lambda order: said)).epsilon(delta=1e-5)


@pytest.mark.parametrize(
    "error", [ZeroDivisionError, KeyError, RuntimeError, AttributeError, TypeError, RecursionError]
)
def test_what_a_function_raises_is_chained(error: type[Exception]) -> None:
    def raises(*_: Any) -> Any:
        raise error("mine")

    for run in RUNS.values():
        with pytest.raises(cm.InputError, match="mine") as caught:
            run(cm.from_rdp(raises)).epsilon(delta=1e-5)
        assert isinstance(caught.value.__cause__, error)
    with pytest.raises(cm.InputError, match="mine") as caught:
        cm.from_densities(raises, Noise().log_density)
    assert isinstance(caught.value.__cause__, error)
    with pytest.raises(cm.InputError, match="mine") as caught:
        cm.ExponentialFamilyMechanism(diameter=1, hessian=raises).epsilon(delta=1e-5)
    assert isinstance(caught.value.__cause__, error)
    with pytest.raises(cm.InputError, match="mine") as caught:
        cm.calibrate(raises, epsilon=1, delta=1e-5)
    assert isinstance(caught.value.__cause__, error)


def test_an_overflow_is_unknown() -> None:
    mine = cm.from_rdp(lambda order: math.exp(order) / 100)
    assert math.isfinite(mine.epsilon(delta=1e-5))
    assert mine.rdp(1e4) == math.inf


# ---- tables


def test_a_table_is_a_set_of_bounds() -> None:
    """A value at a later order also bounds every earlier one."""
    falling = cm.from_rdp_points([2, 3, 5, 8], [0.5, 0.2, 0.3, 0.25])
    rising = cm.from_rdp_points([2, 3, 5, 8], [0.2, 0.2, 0.25, 0.25])
    orders = [1, 1.5, 2, 2.5, 3, 4, 5, 7, 8]
    assert falling.rdp(orders).tolist() == rising.rdp(orders).tolist()
    assert falling.epsilon(delta=1e-5) == rising.epsilon(delta=1e-5)
    assert falling.rdp(9) == math.inf
    assert cm.parse(str(falling)) == falling


def test_points_name_what_they_assume() -> None:
    """The card said of stated values only that all parameters were fixed in advance."""
    run = cm.from_rdp_points([2, 4], ["0.1", "0.3"]).record()
    said = "the values bound the divergence of every pair of neighbours, in both directions"
    assert said in text.short_assumptions(run)
    assert said in text.assumed(run)


@pytest.mark.parametrize(
    "stated",
    [
        cm.from_rdp_points([2, 4], ["0.1", "0.3"]),
        cm.from_masses([0.75, 0.25], [0.25, 0.75]),
        cm.from_rdp(lambda order: order / 18),
        cm.from_densities(lambda x: -abs(x - 1) / 2 - math.log(4), lambda x: -abs(x) / 2 - math.log(4)),
    ],
    ids=["points", "masses", "rdp", "densities"],
)
def test_what_has_no_sensitivity_is_not_said_to_state_one(stated: cm.Expression) -> None:
    """It was "one record, as the sensitivities are stated"."""
    assert text.protected(stated.record()) == "one record, under the neighbours that you mean"
    assert text.relation(stated.record()) == "for neighbours under the relation that you mean"
    mixed = stated + cm.Gaussian(sigma=5)
    assert text.protected(mixed.record()) == "one record, as the sensitivities are stated"


@pytest.mark.parametrize("make", [cm.from_rdp_points, cm.from_masses])
@pytest.mark.parametrize("value", [2, 0.5, None, "12", b"12", {2: 3}, object(), 1j])
def test_lists_that_are_none(make: Any, value: Any) -> None:
    for arguments in ((value, [1]), ([2], value), (value, value)):
        with pytest.raises(cm.InputError, match="must be a list of numbers"):
            make(*arguments)


def noisy(order: Any) -> Any:
    """An upper bound of the Gaussian's order / 18 that falls again and again: at most 30 % above it."""
    return order / 18 * (1 + 0.3 * (math.sin(40 * float(order)) ** 2))


def test_a_noisy_upper_bound_is_projected_and_never_below_the_truth() -> None:
    with pytest.raises(cm.InputError, match="add upper_bound=True"):
        cm.from_rdp(noisy).epsilon(1e-6)
    bounded, exact = cm.from_rdp(noisy, upper_bound=True), cm.Gaussian(sigma=3)
    orders = np.geomspace(1.01, 500, 400)
    found = bounded.rdp(orders)
    assert (found >= exact.rdp(orders) * (1 - 1e-12)).all()
    assert (found <= [noisy(order) * (1 + 1e-12) for order in orders]).all()
    assert (found < [noisy(order) * (1 - 1e-3) for order in orders]).mean() > 0.3  # chords help
    for delta in (1e-3, 1e-6, 1e-12):
        assert exact.epsilon(delta, method="rdp") <= bounded.epsilon(delta) <= exact.epsilon(delta, method="rdp") * 1.05


def test_a_falling_upper_bound_is_at_most_its_values_at_larger_orders() -> None:
    """Proposition 35: the divergence at an order is at most every bound of one at a larger order."""
    falling = cm.from_rdp(lambda order: order / 18 + 1 / order, upper_bound=True)
    least = 2 / math.sqrt(18)
    assert falling.rdp(1.5) == pytest.approx(least, rel=1e-2)
    assert falling.rdp(1.5) >= least * (1 - 1e-12)
    assert falling.rdp(30) == pytest.approx(30 / 18 + 1 / 30, rel=1e-12)
    guarantee = falling.guarantee(delta="1e-6")
    assert guarantee.rigour == "proved"
    assert guarantee.verify().holds
    sampled = falling @ cm.WithoutReplacement(rate="0.01") * 100
    assert sampled.epsilon("1e-6") >= (cm.Gaussian(sigma=3) @ cm.WithoutReplacement(rate="0.01") * 100).epsilon("1e-6")


def test_an_upper_bound_is_no_excuse_for_a_negative_number() -> None:
    with pytest.raises(cm.InputError, match="never negative"):
        cm.from_rdp(lambda order: 0.5 - order / 18, upper_bound=True).epsilon(1e-6)
    with pytest.raises(cm.InputError, match="must be True or False"):
        cm.from_rdp(noisy, upper_bound=1)  # type: ignore[arg-type]
    assert cm.from_rdp(noisy, upper_bound=True) != cm.from_rdp(noisy)
