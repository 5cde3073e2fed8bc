"""Each error term of the lattice by itself: steps and lattices in which that very error is the largest thing there is.

Without its term, each of these bounds is on the wrong side of what exact sums say.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from flint import arb, ctx, fmpq
from scipy import fft

from cumulant.exact.grid import fft as lattice
from cumulant.exact.grid import refine as search
from cumulant.exact.grid import theorem_b
from cumulant.exact.grid.fft import ComposedLaw, TiltedLaw, compose, escaping_mass, tilted_law
from cumulant.exact.grid.settings import GRID
from cumulant.losses import cells as cells_room
from cumulant.losses import grid as step_room
from cumulant.losses.atoms import AtomLoss
from cumulant.losses.cells import Cells, Grid
from cumulant.losses.gaussian_law import GaussianLaw
from cumulant.losses.grid import Mixture, Step, Terms
from cumulant.losses.subsampled import sampled_loss
from cumulant.numerics.rounding import U
from cumulant.pairs.finite import Finite
from tests.exact.brute import extended


@dataclass(frozen=True, eq=False)
class Given(Step):
    """A step that is whatever its cells say."""

    what: Cells
    leak = 0.0

    def nodes(self, lam: float) -> tuple[np.ndarray, np.ndarray]:
        there = self.what.atoms > -np.inf
        return self.what.grid.points()[there], self.what.atoms[there]

    def span(self, log_mass: float) -> tuple[float, float]:
        points = self.nodes(0.0)[0]
        return float(points[0]), float(points[-1])

    def cells(self, step: float, log_mass: float) -> Cells:
        return self.what


def given(masses: dict[int, float], width: float = 1.0, **fields: Any) -> Given:
    """P-masses at grid points."""
    first, count = min(masses) - 1, max(masses) - min(masses) + 3
    atoms = np.full(count, -np.inf)
    for place, mass in masses.items():
        atoms[place - first] = math.log(mass)
    none = np.full(count - 1, -np.inf)
    usual: dict[str, Any] = {"below": -np.inf, "above": -np.inf, "slip": 0.0, "error": 0.0}
    return Given(Cells(Grid(width, 0.0, first, count), none, none, atoms, **usual | fields))


def exact_delta(law: dict[float, float], times: int, epsilon: float) -> np.longdouble:
    """Two losses with their P-masses, k times: the binomial sum in extended precision."""
    (low, p_low), (high, p_high) = sorted(law.items())
    total = np.longdouble(0)
    for i in range(times + 1):
        loss = np.longdouble(high) * i + np.longdouble(low) * (times - i)
        if loss > epsilon:
            mass = extended(math.comb(times, i) * Fraction(p_high) ** i * Fraction(p_low) ** (times - i))
            total += mass * -np.expm1(np.longdouble(epsilon) - loss)
    return total


def is_above(sums: ComposedLaw, epsilon: float, truth: np.longdouble) -> bool:
    return bool(np.exp(np.longdouble(sums.log_delta(epsilon - sums.slip))) >= truth)


def is_below(sums: ComposedLaw, epsilon: float, truth: np.longdouble) -> bool:
    return bool(np.exp(np.longdouble(sums.log_delta(epsilon + sums.slip))) <= truth)


EVEN = {1: 0.6, -1: 0.4}
EVEN_LAW: dict[float, float] = {1.0: 0.6, -1.0: 0.4}

# ---- what a round brings along: masses that are wrong, losses that are misplaced, what lies beside the grid


@pytest.mark.parametrize("wrong", [1e-2, 1e-4])
def test_masses_that_are_wrong_by_a_part_of_themselves(wrong: float) -> None:
    """`relative`: k rounds are wrong by k times that part."""
    for epsilon in (0.0, 3.5, 9.0):
        truth = exact_delta(EVEN_LAW, 20, epsilon)
        less, more = (
            given({place: mass * factor for place, mass in EVEN.items()}, error=wrong * 1.01)
            for factor in (1 - wrong, 1 + wrong)
        )
        # slip apart, which the same error causes
        assert replace(compose(((less, 20),), 1.0, -40.0, 0.5, True), slip=0.0).log_delta(epsilon) >= np.log(truth)
        assert replace(compose(((more, 20),), 1.0, -40.0, 0.5, False), slip=0.0).log_delta(epsilon) <= np.log(truth)


@pytest.mark.parametrize("fields", [{"slip": 0.02}, {"error": 0.01}])
def test_losses_that_are_misplaced(fields: dict[str, float]) -> None:
    """`slip`: k rounds are misplaced by k times it; a ratio whose two masses are wrong by a part is wrong by both parts."""
    moved, times = 0.02, 20
    for epsilon in (0.1, 3.5, 9.0):
        for upper, sign in ((True, 1), (False, -1)):
            law = {loss + sign * moved: mass for loss, mass in EVEN_LAW.items()}
            truth = exact_delta(law, times, epsilon)
            sums = replace(compose(((given(EVEN, **fields), times),), 1.0, -40.0, 0.5, upper), relative=0.0)
            assert (is_above if upper else is_below)(sums, epsilon, truth)


def test_the_places_of_a_long_window_are_rounded() -> None:
    """`slip` covers start + width * i in floats."""
    width = 0.1
    step = Given(replace(given(EVEN, width).what, grid=Grid(width, 0.7, -2, 5)))
    sums = compose(((step, 10**7),), width, -40.0, 1e-5, True)
    origin = 10**7 * Fraction(0.7)
    first = round((Fraction(sums.start) - origin) / Fraction(width))
    places = np.arange(0, sums.mass.size, 97)
    found = sums.start + sums.width * places.astype(np.float64)
    exact = [origin + Fraction(width) * (first + int(i)) for i in places]
    wrong = max(abs(Fraction(float(x)) - y) for x, y in zip(found, exact, strict=True))
    assert 0 < wrong <= Fraction(sums.slip)


def test_tilted_masses_are_rounded() -> None:
    """`error` of a round: e^{lam l - K} of large exponents, against balls."""
    step = given({-900: 0.3, 1: 0.2, 700: 0.5})
    one, places = tilted_law(step, 1.0, -40.0, 1234.567, True), step.nodes(0.0)
    there, wrong = np.flatnonzero(one.weights), 0.0
    before, ctx.prec = ctx.prec, 200
    try:
        for weight, loss, log_p in zip(
            one.weights[there], places[0][-there.size :], places[1][-there.size :], strict=True
        ):
            numbers = [arb(fmpq(*float(x).as_integer_ratio())) for x in (weight, loss, log_p, 1234.567, one.cgf)]
            exact = (numbers[2] + numbers[3] * numbers[1] - numbers[4]).exp()
            wrong = max(wrong, abs(float(numbers[0] / exact) - 1))
    finally:
        ctx.prec = before
    assert 1e-13 < wrong <= one.error


def test_mass_below_the_grid_is_lifted_onto_it() -> None:
    """`below`: what was cut off at the low end has a loss of at most the third point of the grid."""
    step = given({-1: 0.1, 0: 0.3, 1: 0.4}, below=math.log(0.2))
    for lam in (0.3, 2.0):
        sums = compose(((step, 1),), 1.0, -40.0, lam, True)
        truth = 0.4 * -math.expm1(-2.5) + 0.3 * -math.expm1(-1.5) + 0.2 * -math.expm1(-1.5) + 0.1 * -math.expm1(-0.5)
        assert is_above(sums, -1.5, np.longdouble(truth))


def test_mass_above_the_grid_counts_as_infinite() -> None:
    """`lost` from above: k rounds lose k times it."""
    step = given({1: 0.5, -1: 0.49}, above=math.log(0.01))
    sums = compose(((step, 30),), 1.0, -40.0, 0.5, True)
    truth = np.longdouble(1 - 0.99**30)
    for epsilon in (0.0, 10.0, 29.5, 100.0):
        assert is_above(sums, epsilon, truth)


@pytest.mark.parametrize("times", [3, 10])
def test_mass_in_excess_of_a_dominated_pair_is_taken_off(monkeypatch: pytest.MonkeyPatch, times: int) -> None:
    """`lost` from below: with masses of 1 + x in all, k rounds have (1 + x)^k - 1 in excess."""
    excess = {1: 0.6, -1: 0.4, 40: 0.06}
    step = given(excess)
    monkeypatch.setattr(lattice, "dominated_law", lambda cells, log_mass: (cells.atoms, 0.06))
    lattice.remembered_dominated_law.cache_clear()
    sums = compose(((step, times),), 1.0, -40.0, 0.05, False)
    for epsilon in (0.0, 1.5, 9.0):
        assert is_below(sums, epsilon, exact_delta(EVEN_LAW, times, epsilon))
    lattice.remembered_dominated_law.cache_clear()


def test_an_infinite_loss_stays_on_its_side() -> None:
    law = AtomLoss((1.0,), (math.log(0.9 / (1 + math.e)),), 0.0, 0.1)
    terms = ((Mixture(law, 1.0, 0.0, "remove"), 4),)
    leak = 1 - Fraction(law.leak) ** 0 * (1 - Fraction(law.leak)) ** 4
    upper, lower = (compose(terms, 1.0, -40.0, 1.0, side) for side in (True, False))
    assert Fraction(math.exp(upper.log_delta(4.5))) >= leak
    assert leak * Fraction(999, 1000) <= Fraction(math.exp(lower.log_delta(4.5))) <= leak


# ---- aliasing: the window is too short, so that what lies outside of it is counted inside


@pytest.mark.parametrize("upper", [True, False])
def test_what_lies_outside_of_a_short_window(monkeypatch: pytest.MonkeyPatch, upper: bool) -> None:
    """`outside`: from above large losses are counted as small ones, from below also small ones as large ones."""
    times, said, window = 60, 0, (0.0, 0.0)
    monkeypatch.setattr(lattice, "_choose_window", lambda rounds, width: window)
    for middle, half in (
        (-40.0, 5.0),
        (-6.0, 5.0),
        (6.0, 5.0),
        (20.0, 5.0),
        (45.0, 5.0),
        (3.0, 13.0),
        (12.0, 13.0),
        (20.0, 13.0),
    ):
        window = (middle - half, middle + half)
        sums = compose(((given(EVEN), times),), 1.0, -40.0, 0.02, upper)
        assert sums.mass.size == (16 if half == 5 else 32)
        for epsilon in np.arange(max(sums.start, 0.0) + 0.5, sums.start + sums.mass.size - 1).tolist():
            truth = exact_delta(EVEN_LAW, times, epsilon)
            assert (is_above if upper else is_below)(sums, epsilon, truth), (middle, epsilon)
            said += sums.log_delta(epsilon) < 0 if upper else sums.log_delta(epsilon) > -np.inf
    assert said > 3


@pytest.mark.parametrize("lam", [0.0, 0.7])
def test_escaping_mass_is_bounded_on_each_side(lam: float) -> None:
    one, times = tilted_law(given(EVEN), 1.0, -40.0, lam, True), 50
    rounds: list[tuple[TiltedLaw, int]] = [(one, times)]
    there = np.flatnonzero(one.weights)
    p = Fraction(float(one.weights[there[1]])) / sum(Fraction(float(w)) for w in one.weights[there])
    law = {2 * i - times: math.comb(times, i) * p**i * (1 - p) ** (times - i) for i in range(times + 1)}
    middle = sum(float(mass) * loss for loss, mass in law.items())
    for gap in (4.0, 11.0, 21.0):
        low, high = middle - gap, middle + gap
        above = float(sum(mass for loss, mass in law.items() if loss > high))
        below = float(sum(mass for loss, mass in law.items() if loss < low))
        assert escaping_mass(rounds, 1.0, low, high, both=False) >= above
        assert escaping_mass(rounds, 1.0, low, 1e6, both=True) >= below
        assert escaping_mass(rounds, 1.0, low, high, both=True) >= above + below
        assert escaping_mass(rounds, 1.0, low, 1e6, both=False) < 1e-6


# ---- the noise of the transforms


def convolved(step: Given, lam: float, times: int, sums: ComposedLaw) -> np.ndarray:
    """The tilted law of the sum at the points of the window, in extended precision and without a transform."""
    one, law = tilted_law(step, 1.0, -40.0, lam, True), np.ones(1, dtype=np.longdouble)
    for _ in range(times):
        law = np.convolve(law, one.weights.astype(np.longdouble))
    places = times * one.first + np.arange(law.size) - round(sums.start)
    there = (places >= 0) & (places < sums.mass.size)
    exact = np.zeros(sums.mass.size, dtype=np.longdouble)
    exact[places[there]] = law[there]
    return exact


@pytest.mark.parametrize("upper", [True, False])
def test_numbers_below_the_noise_of_the_transforms(upper: bool) -> None:
    """`noise`: tilted to the wrong order, what is wanted is far below 1e-16 of what is transformed."""
    said = 0
    for times, lam in ((100, 0.01), (150, 0.05)):
        sums = compose(((given(EVEN), times),), 1.0, -40.0, lam, upper)
        for epsilon in np.arange(0.6 * times, times).tolist():
            truth = exact_delta(EVEN_LAW, times, epsilon)
            assert (is_above if upper else is_below)(sums, epsilon, truth), (times, epsilon)
            said += sums.log_delta(epsilon) > -np.inf
    assert said > 60 if upper else True


def test_the_noise_is_that_of_the_worst_transform(monkeypatch: pytest.MonkeyPatch) -> None:
    """A transform of the accuracy that is allowed for, its whole error in one frequency: powers of it, and its inverse."""
    unit = 1e-6
    monkeypatch.setattr(lattice, "U", unit)

    def worse(allowed: Callable[[int], float]) -> SimpleNamespace:
        def forward(x: np.ndarray) -> np.ndarray:
            found = fft.rfft(x)
            found[0] += allowed(x.size) * math.sqrt(x.size) * float(np.linalg.norm(x))
            return np.asarray(found)

        def back(x: np.ndarray, size: int) -> np.ndarray:
            found = fft.irfft(x, size)
            return np.asarray(found + allowed(size) * float(np.linalg.norm(found)) / math.sqrt(size))

        return SimpleNamespace(rfft=forward, irfft=back)

    monkeypatch.setattr(lattice, "fft", worse(lambda size: 6.7 * unit * math.log2(size)))
    for times in (1, 100, 1000):
        step = given(EVEN)
        sums = compose(((step, times),), 1.0, -40.0, 0.5, True)
        assert 0 < np.linalg.norm(sums.mass - convolved(step, 0.5, times, sums)) <= sums.noise


def test_the_noise_of_the_inverse_transform_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    unit = 1e-7
    monkeypatch.setattr(lattice, "U", unit)

    def back(x: np.ndarray, size: int) -> np.ndarray:
        found = fft.irfft(x, size)
        return np.asarray(found + 2 * 6.7 * unit * math.log2(size) * float(np.linalg.norm(found)) / math.sqrt(size))

    monkeypatch.setattr(lattice, "fft", SimpleNamespace(rfft=fft.rfft, irfft=back))
    step = given(EVEN)
    sums = compose(((step, 1),), 1.0, -40.0, 0.5, True)
    assert 0 < np.linalg.norm(sums.mass - convolved(step, 0.5, 1, sums)) <= sums.noise


def test_frequencies_that_count_as_zero(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lattice, "GRID", replace(GRID, negligible_log_spectrum=-2.0))
    step, times = given({0: 0.5, 1: 0.3, -1: 0.2}), 12
    sums = compose(((step, times),), 1.0, -40.0, 0.5, True)
    assert 1e-3 < np.linalg.norm(sums.mass - convolved(step, 0.5, times, sums)) <= sums.noise


# ---- the sum over a lattice that is as wrong as it says


def made(mass: np.ndarray, lam: float, **fields: Any) -> ComposedLaw:
    """A lattice of step 1/4 from 0 on with these tilted masses, and no error but the ones that are named."""
    usual: dict[str, Any] = dict.fromkeys(("start", "cgf", "outside", "noise", "relative", "leak", "slip"), 0.0)
    return ComposedLaw(**usual | {"lam": lam, "width": 0.25, "mass": mass, "upper": True} | fields)


LAMS = (0.02, 0.3, 1.0, 5.0)


def weights(lam: float, gap: np.ndarray, theorem_b_too: bool) -> np.ndarray:
    """What a unit of tilted mass so far above epsilon contributes to delta, or to the expectation of the cone."""
    share = theorem_b.test_function(gap) if theorem_b_too else -np.expm1(-gap)
    return np.asarray(np.exp(-lam * gap) * share)


def asked(sums: ComposedLaw, epsilon: float, theorem_b_too: bool) -> float:
    return theorem_b.log_expectation(sums, epsilon, -math.inf) if theorem_b_too else sums.log_delta(epsilon)


@pytest.mark.parametrize("theorem_b_too", [False, True])
@pytest.mark.parametrize("lam", LAMS)
def test_mass_outside_of_the_window_may_be_anywhere(lam: float, theorem_b_too: bool) -> None:
    epsilon, gap = 0.1, np.linspace(0, 10 / lam, 2000)
    most = float(np.max(weights(lam, gap, theorem_b_too)))
    found = asked(made(np.zeros(64), lam, outside=0.3), epsilon, theorem_b_too)
    assert found >= -lam * epsilon + math.log(0.3 * most)
    if not theorem_b_too:
        everything = made(np.eye(1, 64, 8)[0], lam, outside=0.3, upper=False)
        assert everything.log_delta(epsilon) <= -lam * epsilon + math.log(
            max(weights(lam, np.array([1.9]), False)[0] - 0.3, 1e-300)
        )


@pytest.mark.parametrize("theorem_b_too", [False, True])
@pytest.mark.parametrize("lam", LAMS)
def test_noise_may_be_aligned_with_the_weights(lam: float, theorem_b_too: bool) -> None:
    epsilon, count = 0.1, math.ceil(60 / lam / 0.25)
    gap = 0.25 * np.arange(1, count) - epsilon
    size = float(np.linalg.norm(weights(lam, gap, theorem_b_too)))
    found = asked(made(np.zeros(count), lam, noise=0.01), epsilon, theorem_b_too)
    assert found >= -lam * epsilon + math.log(0.01 * size)
    if not theorem_b_too:
        exact = 0.05 * size
        law = 0.05 * weights(lam, gap, False) / size
        below = made(np.concatenate([[0.0], law]), lam, noise=0.049, upper=False).log_delta(epsilon)
        assert below <= -lam * epsilon + math.log((0.05 - 0.049) * size) + 1e-9, exact


@pytest.mark.parametrize("theorem_b_too", [False, True])
@pytest.mark.parametrize("lam", LAMS)
def test_what_is_far_above_is_summed_as_one(monkeypatch: pytest.MonkeyPatch, lam: float, theorem_b_too: bool) -> None:
    """Losses whose weight is below e^-FAR are not looked at; here FAR is 3, and all of the mass is out there."""
    for room in (lattice, theorem_b):
        monkeypatch.setattr(room, "FAR", 3.0)
    epsilon = 0.1
    for far in (3.05, 4.0, 8.0):
        place = math.ceil((far / lam + epsilon) / 0.25) + 3
        mass = np.zeros(place + 1)
        mass[1], mass[place] = 1e-12, 1.0  # without anything near nothing would be claimed
        exact = weights(lam, np.array([0.25 * place - epsilon]), theorem_b_too)[0]
        assert asked(made(mass, lam), epsilon, theorem_b_too) >= -lam * epsilon + math.log(exact)


@pytest.mark.parametrize("upper", [True, False])
def test_exponents_are_rounded(upper: bool) -> None:
    """`remove_tilt`: K - lam epsilon is a small difference of large numbers."""
    rng, mass = np.random.default_rng(1), np.eye(1, 64, 8)[0]
    for _ in range(200):
        lam, epsilon = float(rng.uniform(1e7, 2e7)), float(rng.uniform(1, 1.9))
        sums = made(mass, lam, cgf=lam * 2.0 - float(rng.uniform(0, 50)), upper=upper)
        found = sums.remove_tilt(1.0, epsilon)
        exact = Fraction(sums.cgf) - Fraction(lam) * Fraction(epsilon)
        assert Fraction(found) >= exact if upper else Fraction(found) <= exact


@pytest.mark.parametrize("upper", [True, False])
def test_a_delta_is_moved_outward_from_its_logarithm(upper: bool) -> None:
    sums = made(np.zeros(64), 1.0, upper=upper)
    before, ctx.prec = ctx.prec, 128
    try:
        for log_delta in (*np.linspace(-744.9, -0.001, 300).tolist(), -745.2, -800.0):
            value = search._delta_bound(sums, log_delta).value
            exact = arb(fmpq(*log_delta.as_integer_ratio())).exp()
            number = arb(fmpq(*value.as_integer_ratio()))
            assert number >= exact if upper else number <= exact
    finally:
        ctx.prec = before


# ---- one round on the grid


def test_masses_of_cells_are_as_accurate_as_they_say(monkeypatch: pytest.MonkeyPatch) -> None:
    """`QUADRATURE` by its formula at panels ten times as wide, against differences of the normal distribution in balls."""
    assert Fraction(math.factorial(4) ** 4, 9 * math.factorial(8) ** 3) * Fraction(1, 5) ** 8 * Fraction(
        math.exp(0.2)
    ) <= Fraction(step_room.QUADRATURE)
    for panel, least in ((0.2, 0.0), (2.0, 1e-9)):
        quadrature = math.factorial(4) ** 4 / (9 * math.factorial(8) ** 3) * panel**8 * math.exp(panel)
        monkeypatch.setattr(step_room, "_PANEL", panel)
        monkeypatch.setattr(step_room, "QUADRATURE", max(quadrature, 2e-15))
        step = Mixture(GaussianLaw(Fraction(1.0)), 1.0, 0.0, "remove")
        cells = step.cells(0.5, -30.0)
        found = np.logaddexp(cells.left, cells.right)
        low, high = step._range(-30.0)
        edges = np.clip(cells.grid.points(), low, high)
        assert edges.size == found.size + 1
        wrong = 0.0
        before, ctx.prec = ctx.prec, 200
        try:
            for a, b, log_mass in zip(edges[:-1], edges[1:], found, strict=True):
                if b > a >= -1:
                    # x = z - 1/2 and z ~ N(1, 1) under P
                    u, v = ((arb(fmpq(*float(x).as_integer_ratio())) - 0.5) / arb(2).sqrt() for x in (a, b))
                    exact = (u.erfc() - v.erfc()) / 2
                    wrong = max(wrong, abs(float(arb(fmpq(*float(log_mass).as_integer_ratio())).exp() / exact) - 1))
        finally:
            ctx.prec = before
        assert least < wrong <= cells.error + 64 * U


def test_sums_of_many_atoms_carry_their_number() -> None:
    """`crowd`: atoms in one place are wrong by up to their number of units."""
    count = 3000
    losses = np.full(count, 0.3)
    grid = Grid(1.0, 0.0, 0, 3)
    left, right, atoms = np.full(2, -np.inf), np.full(2, -np.inf), np.full(3, -np.inf)
    _, error = cells_room.place_atoms(losses, np.full(count, -9.0), grid, left, right, atoms)
    assert error >= (count - 1) * U


def test_atoms_moved_onto_the_grid_are_misplaced_in_both_laws() -> None:
    """An atom 9e-9 of a step beside a point is put there: its loss is wrong by as much, and so is its mass under Q."""
    grid = Grid(0.5, 0.0, 0, 4)
    left, right, atoms = np.full(3, -np.inf), np.full(3, -np.inf), np.full(4, -np.inf)
    moved = 0.5 * 9e-9
    slip, _ = cells_room.place_atoms(np.array([1.0 + moved]), np.array([-1.0]), grid, left, right, atoms)
    assert atoms[2] == -1.0
    assert moved * (1 - 1e-6) <= slip <= moved * (1 + 1e-6)
    law = AtomLoss((1.0 + moved, 1.5), (-4.0, -3.0))
    for direction in ("symmetric", "add"):
        cells = Mixture(law, 1.0, 0.0, direction).cells(0.5, -40.0)
        assert cells.slip >= moved * (1 - 1e-6)
        assert cells.error >= moved * (1 - 1e-6)


def test_losses_of_samples_are_rounded() -> None:
    """`rounding_slip`: log(1 - g + g e^x) in floats against balls."""
    rng, wrong = np.random.default_rng(2), 0.0
    before, ctx.prec = ctx.prec, 200
    try:
        for _ in range(300):
            x, g = float(rng.uniform(-30, 30)), float(rng.random())
            found = float(sampled_loss(np.array([x]), g, 1 - g)[0])
            rate, kept = (arb(fmpq(*value.as_integer_ratio())) for value in (g, 1 - g))
            exact = (kept + rate * arb(fmpq(*x.as_integer_ratio())).exp()).log()
            off = abs(float(arb(fmpq(*found.as_integer_ratio())) - exact))
            wrong = max(wrong, off)
            assert off <= cells_room.rounding_slip(-abs(x), abs(x))
    finally:
        ctx.prec = before
    assert wrong > 0
    step = Mixture(GaussianLaw(Fraction(1.0)), 0.3, 0.7, "remove")
    assert step.cells(0.1, -30.0).slip >= cells_room.rounding_slip(*step._range(-30.0))


def test_logarithms_of_rational_masses_are_rounded() -> None:
    """`_ROUNDED`: masses and ratios of finite pairs as the lattice sees them."""
    p, q = ([Fraction(a, 10**9 + 9) for a in masses] for masses in ((7, 10**9 - 3, 5), (123_457, 999_876_543, 9)))
    step = Finite.sampled(p, q, Fraction(1, 3), "remove")
    cells = step.cells(0.01, -60.0)
    mixed = [Fraction(2, 3) * y + Fraction(1, 3) * x for x, y in zip(p, q, strict=True)]
    before, ctx.prec = ctx.prec, 200
    try:
        wrong = max(
            abs(float(arb(fmpq(*log_mass.as_integer_ratio())).exp() / arb(fmpq(x.numerator, x.denominator)) - 1))
            for log_mass, x in zip(step.log_masses, mixed, strict=True)
        )
    finally:
        ctx.prec = before
    assert 0 < wrong <= cells.error


# ---- the searches keep the terms


FEW: Terms = ((Mixture(GaussianLaw(Fraction(0.5)), 0.5, 0.5, "remove"), 30),)


def with_slip(monkeypatch: pytest.MonkeyPatch, slip: float) -> None:
    monkeypatch.setattr(search, "compose", lambda *given, **named: replace(compose(*given, **named), slip=slip))


@pytest.mark.parametrize("slip", [0.05, 0.3])
def test_every_search_moves_outward_by_the_slip(monkeypatch: pytest.MonkeyPatch, slip: float) -> None:
    log_delta = math.log(1e-5)
    upper, lower = (search.grid_epsilon(FEW, log_delta, 1e-3, side).value for side in (True, False))
    by_theorem_b = search.theorem_b_epsilon(FEW, log_delta, 1e-3).value
    deltas = [
        search.grid_delta(FEW, upper - slip, 1e-3, True).value,
        search.grid_delta(FEW, upper + slip, 1e-3, False).value,
    ]
    theorem_b_delta = search.theorem_b_delta(FEW, upper - slip, 1e-3).value
    with_slip(monkeypatch, slip)
    assert search.grid_epsilon(FEW, log_delta, 1e-3, True).value >= upper + 0.9 * slip
    assert search.grid_epsilon(FEW, log_delta, 1e-3, False).value <= lower - 0.9 * slip
    assert search.theorem_b_epsilon(FEW, log_delta, 1e-3).value >= by_theorem_b + 0.9 * slip
    assert search.grid_delta(FEW, upper, 1e-3, True).value >= deltas[0] * 0.95
    assert search.grid_delta(FEW, upper, 1e-3, False).value <= deltas[1] * 1.05
    assert search.theorem_b_delta(FEW, upper, 1e-3).value >= theorem_b_delta * 0.95


def test_losses_beyond_the_grid_of_the_cone(monkeypatch: pytest.MonkeyPatch) -> None:
    """The cut of `_cone`: with a grid that ends early, what lies beyond it is most of the expectation."""
    epsilon, rare = 4.0, ((Mixture(GaussianLaw(Fraction(2.0)), 0.01, 0.99, "remove"), 3),)
    needed = search.grid_delta(rare, epsilon, 1e-3, False).value
    for cut in (0.0, -8.0, -10.0, -12.0):
        monkeypatch.setattr(search, "GRID", replace(GRID, cut=cut))
        assert needed <= search.theorem_b_delta(rare, epsilon, 1e-3).value
        assert search.theorem_b_epsilon(rare, math.log(needed), 1e-3).value >= epsilon * (1 - 1e-3)


def test_losses_beyond_the_grid_count_more_below_zero() -> None:
    """E[S - eps0; beyond] <= mass (reach + 2 + max(-eps0, 0))."""
    mass, reach = math.exp(-3.0), 1.0
    sums = made(np.full(64, 1e-12), 1.0, start=-10.0)
    for epsilon in (0.0, -2.0, -7.0):
        found = theorem_b.log_expectation(sums, epsilon, math.log(mass * (2 + reach)))
        assert found >= math.log(mass * (reach + 2 - epsilon)) - 1e-12


def test_the_constant_of_the_cone_is_a_maximum() -> None:
    """C(R) in balls where it is largest in floats."""
    before, ctx.prec = ctx.prec, 300
    try:
        for log_ratio in np.geomspace(1e-3, 40, 120).tolist():
            low, high = log_ratio, 2 * log_ratio + 5
            for _ in range(90):  # the share rises and then falls
                one, other = low + (high - low) / 3, high - (high - low) / 3
                low, high = (one, high) if share(log_ratio, one) < share(log_ratio, other) else (low, other)
            found = arb(fmpq(*theorem_b.log_constant(log_ratio).as_integer_ratio()))
            assert found >= share(log_ratio, low).log()
    finally:
        ctx.prec = before


def share(log_ratio: float, gap: float) -> Any:
    """(1 - R e^-d) / g(d) as a ball."""
    d, r = (arb(fmpq(*value.as_integer_ratio())) for value in (gap, log_ratio))
    return (1 - (r - d).exp()) / ((1 + (-d).exp()) * d - 2 * (1 - (-d).exp()))
