"""Epsilon and delta by the lattice against closed forms and reference values."""

import json
import math
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cumulant.bounds.gaussian_theorems import delta as diameter_constant
from cumulant.exact.grid import refine as search
from cumulant.exact.grid.fft import compose
from cumulant.exact.inversion import saddle
from cumulant.exact.shuffled_batches import ClonedEpoch
from cumulant.losses.atoms import AtomLoss
from cumulant.losses.gaussian_law import GaussianLaw
from cumulant.losses.grid import Loss, Mixture, Terms
from cumulant.pairs.gaussian import GaussianPair, GaussianTriple
from cumulant.pairs.laplace import LaplaceLaw
from cumulant.pairs.response import ResponseTriple
from cumulant.pairs.worst_triples import LaplaceTriple, Triple

ROWS: list[dict[str, Any]] = json.loads((Path(__file__).parents[2] / "oracles" / "two_sided.json").read_text())[
    "values"
]
RATE = 256 / 60000
DP_SGD: Terms = ((Mixture(GaussianLaw(Fraction(1.0)), RATE, 1 - RATE, "remove"), 23_400),)
EPSILON = 3.741394737858


def exact_gaussian(shift: Fraction, log_delta: float) -> float:
    """The epsilon of a Gaussian pair from its closed-form profile, by bisection."""
    pair, low, high = GaussianPair(shift), 0.0, 1.0
    while pair.log_profile(high) > log_delta:
        high *= 2
    for _ in range(100):
        middle = (low + high) / 2
        low, high = (middle, high) if pair.log_profile(middle) > log_delta else (low, middle)
    return high


@pytest.mark.parametrize("delta", [1e-2, 1e-5, 1e-10, 1e-100, 1e-280])
@pytest.mark.parametrize(("shift", "times"), [(1, 1), (1, 10), (Fraction(1, 10), 1000), (Fraction(1, 500), 10**6)])
def test_gaussian_without_sampling_in_closed_form(shift: Fraction, times: int, delta: float) -> None:
    terms = ((Mixture(GaussianLaw(Fraction(float(shift))), 1.0, 0.0, "symmetric"), times),)
    exact = exact_gaussian(shift * round(math.sqrt(times) * 10**15) / 10**15, math.log(delta))
    upper, lower = (search.grid_epsilon(terms, math.log(delta), 1e-3, side).value for side in (True, False))
    assert lower <= exact * (1 + 1e-12)
    assert exact <= upper * (1 + 1e-12)
    assert upper <= exact * (1 + 1e-3)
    assert lower >= exact * (1 - 1e-3)


@pytest.mark.parametrize("upper", [True, False])
def test_more_accuracy_on_demand(upper: bool) -> None:
    terms = ((Mixture(GaussianLaw(Fraction(0.25)), 1.0, 0.0, "symmetric"), 16),)
    exact = exact_gaussian(Fraction(1), math.log(1e-6))
    found = search.grid_epsilon(terms, math.log(1e-6), 1e-5, upper).value
    assert 0 <= (found / exact - 1) * (1 if upper else -1) <= 1e-5


def test_poisson_training_run() -> None:
    first, second = saddle.saddle_epsilon(DP_SGD, math.log(1e-5)) or (math.nan, math.nan)
    assert first == pytest.approx(EPSILON, abs=1e-9)
    assert second == pytest.approx(EPSILON, abs=1e-9)
    lower, upper = (search.grid_epsilon(DP_SGD, math.log(1e-5), 1e-5, side).value for side in (False, True))
    assert EPSILON <= upper <= EPSILON * (1 + 1e-5)
    assert EPSILON * (1 - 1e-5) <= lower <= EPSILON
    delta = search.grid_delta(DP_SGD, EPSILON, 1e-3, True).value
    assert 1e-5 <= delta <= 1.02e-5
    assert 0.98e-5 <= search.grid_delta(DP_SGD, EPSILON, 1e-3, False).value <= 1e-5


def test_poisson_training_run_to_seven_digits() -> None:
    upper = search.grid_epsilon(DP_SGD, math.log(1e-5), 1e-7, True).value
    assert EPSILON <= upper <= EPSILON + 1e-6


def loss_of(row: dict[str, Any]) -> tuple[Loss, type[Triple], float]:
    match row["mechanism"]:
        case "gaussian":
            shift = 1 / row["params"]["sigma"]
            return GaussianLaw(Fraction(shift)), GaussianTriple, shift
        case "laplace":
            shift = 1 / row["params"]["b"]
            return LaplaceLaw(Fraction(shift)), LaplaceTriple, shift
    p = row["params"]["p"]
    shift = math.log(p / (1 - p))
    return AtomLoss((shift,), (math.log1p(-p),)), ResponseTriple, shift


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row['mechanism']}-{row['gamma']}-{row['k']}-{row['delta']}")
def test_reference_intervals(row: dict[str, Any]) -> None:
    law, kind, shift = loss_of(row)
    rate, times, log_delta = row["gamma"], row["k"], math.log(row["delta"])
    upper = search.grid_epsilon(((Mixture(law, rate, 1 - rate, "symmetric"), times),), log_delta, 1e-3, True).value
    contour = row.get("eps_contour_sym", row["eps_upper"])
    # eps_upper itself is up to 1e-4 above the value it bounds
    assert upper >= contour * (1 - (1e-9 if "eps_contour_sym" in row else 1e-4))
    assert upper <= contour * (1 + 1e-3)
    # of these pairs the direction "add" is the smaller one, which is seen where it is quick
    directions = ("remove", "add") if times <= 1000 else ("remove",)
    steps = [*(Mixture(law, rate, 1 - rate, way) for way in directions), kind(shift, rate, 1 - rate)]  # type: ignore[call-arg]
    remove, *others = (search.grid_epsilon(((step, times),), log_delta, 1e-3, False).value for step in steps)
    assert all(other <= remove * (1 + 1e-3) for other in others[:-1])
    assert max(remove, *others) <= upper
    assert remove >= row.get("eps_lower_paper_pair", row["eps_lower"]) * (1 - 1e-3)
    assert max(remove, *others) >= row["eps_lower"] * (1 - 1e-3)
    if "eps_contour_dir1" in row and (row["mechanism"], times) != ("laplace", 600_000):  # that one is not converged
        assert remove <= row["eps_contour_dir1"] * (1 + 1e-8)


@pytest.mark.parametrize(
    ("sigma", "times", "diameter", "ball"),
    [(1, 10_000, 0.7826, 0.7128), (1, 100_000, 2.557, 2.288), (1, 600_000, 6.757, 5.999), (5, 600_000, 0.807, 0.8028)],
)
def test_theorem_b(sigma: int, times: int, diameter: float, ball: float) -> None:
    shift, rate, log_delta = Fraction(1, sigma), Fraction(1, 1000), math.log(1e-8)
    pair = (Mixture(GaussianLaw(Fraction(float(shift))), 0.001, 0.999, "remove"), times)
    mu = math.sqrt(2 * times * diameter_constant(shift, rate))
    extra = (Mixture(GaussianLaw(Fraction(mu)), 1.0, 0.0, "remove"), 1)
    lowest = search.grid_epsilon((pair,), log_delta, 1e-3, False).value
    for terms, value in (((pair,), ball), ((pair, extra), diameter)):
        found = search.theorem_b_epsilon(terms, log_delta, 1e-3).value
        assert value * (1 - 2e-4) <= found <= value * 1.005
        assert found >= lowest
        assert search.theorem_b_delta(terms, found, 1e-3).value == pytest.approx(1e-8, rel=0.1)


def test_the_saddle_line_agrees_with_itself_and_with_the_lattice() -> None:
    for sigma, rate, times, delta in ((1.0, 0.01, 3000, 1e-6), (0.7, 0.001, 10**5, 1e-30), (4.0, 0.1, 1000, 1e-300)):
        terms = ((Mixture(GaussianLaw(Fraction(1 / sigma)), rate, 1 - rate, "symmetric"), times),)
        first, second = saddle.saddle_epsilon(terms, math.log(delta)) or (math.nan, math.nan)
        assert first == pytest.approx(second, rel=1e-10)
        assert second <= search.grid_epsilon(terms, math.log(delta), 1e-3, True).value <= second * 1.001


def test_windows_are_powers_of_two() -> None:
    for lam in (0.5, 4.0, 30.0):
        size = compose(DP_SGD, 2.0**-10, -60.0, lam, True).mass.size
        assert size & (size - 1) == 0


def test_extremes_are_bounds_and_never_nan() -> None:
    rng = np.random.default_rng(1)
    for _ in range(14):
        shift, rate = float(rng.choice([1e-6, 0.01, 0.3, 2.0, 20.0])), float(rng.choice([1.0, 0.999, 0.3, 1e-3, 1e-12]))
        law: Loss = GaussianLaw(Fraction(shift)) if rng.random() < 0.5 else LaplaceLaw(Fraction(shift))
        times, delta = int(rng.choice([1, 2, 30, 10**4])), float(rng.choice([0.9, 0.4, 1e-5, 1e-40, 1e-300]))
        terms = ((Mixture(law, rate, 1 - rate, "remove"), times),)
        lower, upper = (search.grid_epsilon(terms, math.log(delta), 0.02, side).value for side in (False, True))
        assert 0 <= lower <= upper, (terms, delta)
        if isinstance(law, LaplaceLaw):
            assert lower <= times * math.log1p(rate * math.expm1(shift)) * (1 + 1e-12)


def test_steps_that_leave_outputs_out_bound_from_below_only() -> None:
    terms = ((GaussianTriple(1.0, 0.01, 0.99), 10),)
    assert search.grid_delta(terms, 0.1, 1e-2, False).value > 0
    for ask in (
        lambda: search.grid_epsilon(terms, -10.0, 1e-2, True),
        lambda: search.grid_delta(terms, 0.1, 1e-2, True),
        lambda: search.theorem_b_epsilon(terms, -10.0, 1e-2),
        lambda: search.theorem_b_delta(terms, 0.1, 1e-2),
        lambda: compose(terms, 0.01, -40.0, 1.0, True),
    ):
        with pytest.raises(TypeError, match="Triple leaves outputs out, so it bounds from below only"):
            ask()


@pytest.mark.parametrize("trouble", [MemoryError, OverflowError, ZeroDivisionError, ValueError])
def test_where_floats_or_memory_give_out_nothing_is_claimed(
    monkeypatch: pytest.MonkeyPatch, trouble: type[Exception]
) -> None:
    few = ((Mixture(GaussianLaw(Fraction(1.0)), 0.01, 0.99, "remove"), 3),)
    lower, upper = (search.grid_epsilon(few, math.log(1e-6), 1e-3, side).value for side in (False, True))
    calls = []

    def limited(*arguments: Any, **named: Any) -> Any:
        calls.append(arguments)
        if len(calls) > allowed:
            raise trouble
        return compose(*arguments, **named)

    monkeypatch.setattr(search, "compose", limited)
    allowed = 0
    assert search.grid_epsilon(few, math.log(1e-6), 1e-3, True).value == math.inf
    assert search.grid_epsilon(few, math.log(1e-6), 1e-3, False).value == 0
    assert search.grid_delta(few, 1.0, 1e-3, True).value == 1
    assert search.grid_delta(few, 1.0, 1e-3, False).value == 0
    assert search.theorem_b_epsilon(few, math.log(1e-6), 1e-3).value == math.inf
    assert search.theorem_b_delta(few, 1.0, 1e-3).value == 1
    for side in (False, True):  # what one lattice said holds even if the next one fails
        calls.clear()
        allowed = 1
        found = search.grid_epsilon(few, math.log(1e-6), 1e-3, side).value
        assert len(calls) >= 2
        assert upper <= found < math.inf if side else 0 < found <= lower


def test_a_number_that_is_none_is_not_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    terms = ((Mixture(GaussianLaw(Fraction(1.0)), 0.5, 0.5, "remove"), 3),)
    monkeypatch.setattr("cumulant.exact.grid.theorem_b.least_epsilon", lambda *_: math.nan)
    monkeypatch.setattr("cumulant.exact.grid.theorem_b.log_delta", lambda *_: math.nan)
    assert search.theorem_b_epsilon(terms, -10.0, 1e-2).value == math.inf
    assert search.theorem_b_delta(terms, 1.0, 1e-2).value == 1


def test_questions_nearby_share_a_lattice(monkeypatch: pytest.MonkeyPatch) -> None:
    """40 deltas of a Gaussian in closed form, from 0.3 to 1e-30, on half as many lattices."""
    built: list[float] = []

    def counted(terms: Any, width: float, log_mass: float, lam: float, upper: bool) -> Any:
        built.append(lam)
        return compose(terms, width, log_mass, lam, upper)

    search._shared_composition.cache_clear()
    monkeypatch.setattr(search, "compose", counted)
    pair, terms = GaussianPair(Fraction(1)), ((Mixture(GaussianLaw(Fraction(0.01)), 1.0, 0.0, "symmetric"), 10_000),)
    epsilons = np.linspace(0.1, 11.5, 40).tolist()
    for epsilon in epsilons:
        found = search.grid_delta(terms, epsilon, 0.02, True).value
        assert math.exp(pair.log_profile(epsilon)) <= found * (1 + 1e-12)
        assert found <= math.exp(pair.log_profile(epsilon * (1 - 0.02)))
    assert len(built) <= 20
    search.grid_delta(terms, epsilons[3], 1e-3, True)  # more accuracy takes a lattice of its own
    search.grid_delta(terms, epsilons[3], 1e-3, True)
    assert len({*built[-2:]} - {2.0 ** (k / 3) for k in range(-60, 60)}) == 1


def test_delta_that_is_large_enough_needs_no_epsilon() -> None:
    terms = ((Mixture(GaussianLaw(Fraction(1.0)), 0.5, 0.5, "remove"), 1),)
    assert search.grid_epsilon(terms, math.log(0.3), 1e-3, True).value == 0
    assert search.grid_epsilon(terms, math.log(0.3), 1e-3, False).value == 0


def test_an_infinite_loss_cannot_be_bought_off() -> None:
    law = AtomLoss((1.0,), (math.log(0.9 / (1 + math.e)),), 0.0, 0.1)
    terms = ((Mixture(law, 0.5, 0.5, "symmetric"), 3),)
    leak = 1 - 0.95**3
    assert search.grid_epsilon(terms, math.log(leak * 0.999), 1e-3, True).value == math.inf
    assert search.grid_epsilon(terms, math.log(leak * 1.01), 1e-3, True).value < 3
    assert search.grid_delta(terms, 10.0, 1e-3, True).value == pytest.approx(leak, rel=1e-9)
    assert search.grid_delta(terms, 10.0, 1e-3, False).value == pytest.approx(leak, rel=1e-9)


def test_losses_that_are_rare_in_one_round_add_up_over_many() -> None:
    """One epoch has a loss above 0 with probability 0.44, so 0.6 of delta hide one epoch, and not a hundred."""
    law = AtomLoss((3.4572580827755477,), (-5.0729794246708915,), 0.794989016, 0.0)
    once, often = (((ClonedEpoch(law, 9, 3.4423828125), times),) for times in (1, 100))
    assert search.grid_epsilon(once, math.log(0.6), 1e-3, True).value == 0
    assert search.grid_delta(often, 1.0, 1e-3, False).value > 0.99
    assert search.grid_epsilon(often, math.log(0.6), 1e-3, True).value > 1
