"""Theorem W: its test functions, its references against triples, its bounds against adversaries, and each part broken once."""

import math
from fractions import Fraction

import numpy as np
import pytest

import cumulant as cm
from cumulant.accounting.rounds import rounds_of
from cumulant.exact import test_functions
from cumulant.exact.adaptive import theorem_w
from cumulant.exact.adaptive.constraints import LaplaceConstraint, scaled_f
from cumulant.exact.adaptive.reference_law import Reference, reference
from cumulant.exact.grid.fft import tilted_law
from cumulant.exact.rounds import Rounds
from tests.oracles.triples import Laws, binned_laplace, random_l1_triples, random_pure_triples
from tests.oracles.triples import test_function as f

ORDERS = (0.5, 1.25, 2.0, 8.0, 40.0)


def rounds(run: cm.Expression) -> Rounds:
    found, _ = rounds_of(run.record())
    assert found is not None
    return found


@pytest.mark.parametrize("order", ORDERS)
def test_test_functions(order: float) -> None:
    """Against the integral; the tangent that gives C and R; g_n and its transform n / (z (z+1) (z+n))."""
    y = np.array([1.001, 1.3, 2.0, 9.0])
    s = np.linspace(0, 1, 20_001)
    for value in y:
        grid = 1 + (value - 1) * s
        integral = np.trapezoid((value - grid) * grid ** (-order - 1), grid)
        assert scaled_f(order, np.log(np.array([value])))[0] / order == pytest.approx(integral, rel=1e-4)
    ratios = np.geomspace(0.01, 1000, 4001)
    for gap in (0.01, 0.3, 2.0, 20.0):
        R = math.exp(float(test_functions.log_ratio(order, np.array([gap]))[0]))
        C = math.exp(float(test_functions.log_constant(order, np.array([gap]))[0]))
        assert (np.maximum(ratios - R, 0) <= C * order * f(order, ratios) * (1 + 1e-9) + 1e-9 * ratios).all()
        rho = math.exp(gap)
        assert rho - R == pytest.approx(C * order * float(f(order, np.array(rho))), rel=1e-6, abs=1e-12)
    d = np.linspace(0, 30, 30_001)
    values = theorem_w.test_function(order, d)
    assert values[1:] == pytest.approx(np.exp(-d[1:]) * order * f(order, np.exp(d[1:])), rel=1e-6, abs=1e-12)
    for z in (0.7, 3.0):
        assert np.trapezoid(values * np.exp(-z * d), d) == pytest.approx(order / (z * (z + 1) * (z + order)), rel=1e-4)


def lawful(found: Reference) -> tuple[Laws, Laws]:
    loss, log_p = found.outputs(0.0)
    p = np.exp(log_p)
    return p, p * np.exp(-loss)


@pytest.mark.parametrize("seed", range(4))
def test_adversaries_stay_below_the_reference(seed: int) -> None:
    """E f_n under twelve rounds in which one of a few plane triples is chosen anew, by recursion on a grid of log ratios.

    Ratios are rounded down to the grid, so that the adversary is a little weaker than it could be.
    """
    rng = np.random.default_rng(seed)
    shift, rate, order, times = Fraction(2), Fraction(1, 20), float(rng.choice([2.5, 8.0])), 12
    g = float(rate)
    constraint = LaplaceConstraint(shift, "vector", rate)
    found = reference(constraint, order, 4.0, 14, 120)
    assert found is not None
    _, q = lawful(found)
    loss, _ = found.outputs(0.0)
    step = found.width / 4
    span = int(times * loss[-1] / step) + 50
    grid = step * np.arange(-span, span + 1)

    def expected(value: Laws, places: Laws, mass: Laws) -> Laws:
        total = np.zeros_like(value)
        for place, weight in zip(places.astype(int), mass, strict=True):
            total += weight * np.interp(np.arange(value.size) + place, np.arange(value.size), value)
        return total

    triples = []
    for points in (*np.stack(random_l1_triples(rng, 2.0, 2, 2), axis=1), np.array([(0, 0), (1.0, 1.0), (1.0, -1.0)])):
        laws = binned_laplace(points, 12)
        a, b = (1 - g) * laws[0] + g * laws[1], (1 - g) * laws[0] + g * laws[2]
        where, group = np.unique(np.floor(np.log(a / b) / step + 1e-9), return_inverse=True)
        triples.append((where, np.asarray(np.bincount(group, b), dtype=np.float64)))
    ours = theirs = f(order, np.exp(grid))
    for _ in range(times):
        ours = expected(ours, np.round(loss / step), q)
        theirs = np.max([expected(theirs, *triple) for triple in triples], axis=0)
    middle = slice(span - 300, span + 50)
    assert (theirs[middle] <= ours[middle] * (1 + 1e-9)).all()


@pytest.mark.parametrize("order", [0.5, 2.0, 8.0])
def test_mixed_rounds_stay_below_references_of_one_order(order: float) -> None:
    """Reports, Laplace noise and Gaussian noise, known by its profile, four rounds of each, in an order that is drawn.

    E f_n by recursion on a grid of log ratios; the adversary chooses among triples of the kind that is due.
    """
    rng = np.random.default_rng(9)
    g, step, times = 0.05, 0.002, 4
    sample = cm.WithoutReplacement(rate=str(g))
    run = cm.PureDP(1) @ sample * 1000 + cm.Laplace(scale=1) @ sample * 1000 + cm.Gaussian(sigma=2) @ sample * 1000
    round_types = theorem_w._dominated_types(rounds(run))
    assert round_types is not None
    laws = theorem_w._laws(round_types, order, 4.0, theorem_w._fine_reference)
    assert laws is not None
    terms = theorem_w._terms(laws)
    grid = step * np.arange(-900, 901)

    def expected(value: Laws, losses: Laws, mass: Laws) -> Laws:
        return sum((m * np.interp(grid + loss, grid, value) for loss, m in zip(losses, mass, strict=True)), 0 * value)

    def on_grid(laws: Laws) -> tuple[Laws, Laws]:
        a, b = (1 - g) * laws[0] + g * laws[1], (1 - g) * laws[0] + g * laws[2]
        where, group = np.unique(np.floor(np.log(a / b) / step + 1e-9), return_inverse=True)
        return step * where, np.asarray(np.bincount(group, b), dtype=np.float64)

    ours: list[tuple[Laws, Laws]] = []
    for law, _ in terms:
        one = tilted_law(law, step, -60.0, 1e-12, upper=True)
        points = one.offset + step * (one.first + np.arange(one.weights.size))
        kept = one.weights > 1e-18
        ours.append((points[kept], (one.weights * np.exp(one.cgf - points))[kept]))
    z = np.linspace(-9, 9, 181)
    bell = np.array([np.exp(-((z - centre) ** 2) / 2) for centre in (0.0, 0.5, 0.0)])
    theirs = [
        [on_grid(np.stack(random_pure_triples(rng, 1.0, 1))[:, 0]) for _ in range(3)],
        [on_grid(binned_laplace(np.array([(0, 0), (0.5, 0.5), (0.5, -0.5)]), 12))]
        + [on_grid(binned_laplace(each, 8)) for each in np.stack(random_l1_triples(rng, 1.0, 2, 2), axis=1)],
        [on_grid((bell / bell.sum(axis=1, keepdims=True))[list(roles)]) for roles in ((0, 1, 2), (1, 1, 2))],
    ]
    most = least = f(order, np.exp(grid))
    for kind in rng.permutation(np.repeat(np.arange(3), times)):
        most = expected(most, *ours[kind])
        least = np.max([expected(least, *triple) for triple in theirs[kind]], axis=0)
    middle = slice(500, 950)
    assert (least[middle] <= most[middle] * (1 + 1e-9)).all()
    assert (least[middle] > 0.05 * most[middle])[-60:].all()


def test_the_last_step_by_a_contour() -> None:
    """From the masses of a reference to epsilon without a lattice: Laplace .5, rate .001, 1,000 rounds, delta 1e-8.

    With C = 1 and R = n/(n-1) alone orders near 64 would be best, and 0.370 the answer; any rho > 1 is allowed, and then small
    orders are better.
    """
    found = (cm.Laplace(scale="0.5") @ cm.WithoutReplacement(rate="0.001") * 1000).epsilon(delta="1e-8")
    lam, y = 70.0, np.linspace(0, 600, 12_001)
    log_delta, z = math.log(1e-8), lam + 1j * y

    def least(order: float, gaps: Laws) -> float:
        law = reference(LaplaceConstraint(Fraction(2), "vector", Fraction(1, 1000)), order, 64.0, 20, 280)
        assert law is not None
        losses, masses = law.width * np.array(law.places), np.array(law.masses)
        log_moment = 1000 * np.log(np.exp((z + 1)[:, None] * losses) @ masses)
        starts = np.linspace(0.30, 0.37, 141)
        with np.errstate(under="ignore"):
            logs = [
                math.log(
                    np.trapezoid(
                        (np.exp(log_moment - log_moment[0] - 1j * y * start) / (z * (z + 1) * (1 + z / order))).real, y
                    )
                    / math.pi
                )
                + log_moment[0].real
                - lam * start
                for start in starts
            ]
        C = 1 / (1 - np.exp(-order * gaps))
        R = order / (order - 1) * (1 - np.exp((1 - order) * gaps)) * C
        return float(np.min(np.interp(-(log_delta - np.log(C)), -np.array(logs), starts) + np.log(R)))

    gaps = np.geomspace(0.01, 0.1, 100)
    assert least(1.25, gaps) == pytest.approx(found, rel=1e-4)
    assert least(16.0, gaps) == pytest.approx(0.3560, rel=1e-3)
    assert least(64.0, np.array([20.0])) == pytest.approx(0.3706, rel=1e-3)


@pytest.mark.parametrize(
    ("mechanism", "rate", "times", "delta", "low", "high"),
    [
        (cm.PureDP(1), "0.001", 600_000, "1e-8", 4.9259, 4.947),
        (cm.Laplace(scale="0.5"), "0.001", 600_000, "1e-8", 10.340, 10.492),
        (cm.Laplace(scale="0.5", dimension=1), "0.001", 600_000, "1e-8", 9.402, 9.531),
        (cm.Laplace(scale="0.5"), "0.001", 1000, "1e-8", 0.3314, 0.3569),
        (cm.Laplace(scale="0.5"), "0.001", 10_000, "1e-8", 1.1068, 1.148),
        (cm.Laplace(scale="0.5"), "0.001", 100_000, "1e-8", 3.7925, 3.872),
        (cm.Laplace(scale=1), "0.01", 10_000, "1e-6", 4.645, 4.812),
        (cm.Laplace(scale=2), "0.001", 600_000, "1e-8", 1.9519, 1.992),
        (cm.Laplace(scale="0.25"), "0.001", 100_000, "1e-8", 13.713, 14.467),
        (cm.Laplace(scale="0.25"), "0.001", 10_000, "1e-8", 3.840, 4.054),
        (cm.RandomizedResponse(p="0.9"), "0.001", 600_000, "1e-8", 13.273, 13.390),
    ],
    ids=str,
)
def test_numbers_of_the_public_interface(
    mechanism: cm.Mechanism, rate: str, times: int, delta: str, low: float, high: float
) -> None:
    run = mechanism @ cm.WithoutReplacement(rate=rate) * times
    found = run.epsilon(delta=delta)
    assert low <= found <= high * 1.002
    stated = run.guarantee(delta=delta)
    assert (stated.epsilon, stated.route, stated.rigour) == (found, "order", "proved")
    assert run.delta(epsilon=str(found)) == pytest.approx(float(delta), rel=0.02)
    assert run.epsilon(delta=delta, method="exact", bound="profile") > found * 1.02


def test_what_a_guarantee_says() -> None:
    run = cm.Laplace(scale=2) @ cm.WithoutReplacement(rate="0.01") * 3000
    found = run.guarantee(delta=1e-6)
    assert (found.route, found.evidence.bound, found.rigour) == ("order", "test-order", "proved")
    assert found.verify().holds
    assert "Theorem W" in found.explain()
    assert cm.Guarantee.from_json(found.to_json()) == found


def test_kinds_share_one_order() -> None:
    """Different kinds, one of which is known by its profile only; not with Poisson samples, nor with few rounds."""
    sample = cm.WithoutReplacement(rate="0.01")
    laplace, gaussian, report = cm.Laplace(scale=1) @ sample, cm.Gaussian(sigma=2) @ sample, cm.PureDP(1) @ sample
    mixed = laplace * 2000 + gaussian * 500 + report * 2000
    found, profile = mixed.epsilon(1e-6, method="exact"), mixed.epsilon(1e-6, method="exact", bound="profile")
    assert (laplace * 2000 + report * 2000).guarantee(delta=1e-6).lower < found < 0.95 * profile  # type: ignore[operator]
    assert theorem_w._dominated_types(rounds(cm.Laplace(scale=1) @ cm.Poisson(rate="0.01") * 5000)) is None
    assert theorem_w._dominated_types(rounds(gaussian * 5000)) is None
    assert theorem_w._dominated_types(rounds(laplace * 100)) is None
    noisy = cm.NoisyMax(1) @ sample * 5000
    assert theorem_w._dominated_types(rounds(noisy)) is None


@pytest.mark.parametrize(
    ("text", "delta"),
    [
        ("RandomizedResponse(p=0.877) @ WithoutReplacement(rate=0.0903) * 386708", "1e-6"),
        ("RandomizedResponse(p=0.75) @ WithoutReplacement(rate=0.0962) * 10000000", "1e-300"),
        ("PureDP(epsilon=1) @ WithoutReplacement(rate=0.001) * 600000", "1e-290"),
    ],
)
def test_delta_is_found_far_below_that_of_the_pair(text: str, delta: str) -> None:
    """At these epsilons the pair that dominates one round, composed, needs a delta of 1, or of many times as much."""
    run = cm.parse(text)
    epsilon = run.epsilon(delta)
    assert run.delta(epsilon=str(epsilon)) == pytest.approx(float(delta), rel=1e-6)
