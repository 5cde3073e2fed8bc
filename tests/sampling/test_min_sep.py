"""Secret steps at a minimum separation: every set of steps enumerated, both divergences by quadrature, and counts of steps."""

import itertools
import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import cumulant as cm

SIGMA, GRID = 1.5, np.linspace(-7, 7, 71)

Floats = np.ndarray[Any, np.dtype[np.float64]]


def sets_of_steps(steps: int, gap: int, rate: float, blocked: int) -> dict[tuple[int, ...], float]:
    """The law of the steps of one record, from the definition: coins in turn, none after a step, `blocked` none at first."""
    found: dict[tuple[int, ...], float] = {}
    for coins in itertools.product((0, 1), repeat=steps):
        wait, taken, chance = blocked, [], 1.0
        for t, coin in enumerate(coins):
            chance *= rate if coin else 1 - rate
            if coin and wait == 0:
                taken.append(t)
                wait = gap
            wait = max(wait - 1, 0)
        found[tuple(taken)] = found.get(tuple(taken), 0.0) + chance
    return found


def divergence(bands: list[float], steps: int, law: dict[tuple[int, ...], float], epsilon: float) -> float:
    """The larger hockey stick of the mixture of N(C 1_S) against N(0), by a sum over a grid of the space."""
    dense = np.array([[bands[i - t] if 0 <= i - t < len(bands) else 0.0 for t in range(steps)] for i in range(steps)])
    axes = np.meshgrid(*[GRID] * steps, indexing="ij")
    cell = ((GRID[1] - GRID[0]) / math.sqrt(2 * math.pi)) ** steps
    without = np.exp(-sum(x * x for x in axes) / 2) * cell
    ratio = np.zeros_like(without)
    for taken, chance in law.items():
        shift = dense[:, list(taken)].sum(axis=1) / SIGMA
        ratio += chance * np.exp(sum(s * x for s, x in zip(shift, axes, strict=True)) - (shift**2).sum() / 2)
    level = math.exp(epsilon)
    return max(float((without * np.maximum(each, 0)).sum()) for each in (ratio - level, 1 - level * ratio))


@pytest.mark.parametrize("bands", [[1.0], [1.0, 0.5], [1.0, 1.0], [1.0, 0.75, 0.5]], ids=str)
@pytest.mark.parametrize(("steps", "gap", "rate"), [(2, 2, 0.3), (3, 1, 0.2), (3, 2, 0.5)])
def test_the_truth_lies_between_both_ends(bands: list[float], steps: int, gap: int, rate: float) -> None:
    run = cm.MatrixMechanism(bands=bands, steps=steps, sigma=SIGMA) @ cm.MinSep(separation=gap, rate=rate)
    found = run.guarantee(epsilon="0.5")
    for blocked in range(gap):  # a cold start, and every wait of a warm one
        truth = divergence(bands, steps, sets_of_steps(steps, gap, rate, blocked), 0.5)
        assert truth <= found.delta * (1 + 2e-3)  # the sum over the grid is that accurate
        assert found.lower is None or found.lower <= truth * (1 + 2e-3)


def test_one_band_is_poisson_samples() -> None:
    """The steps are among those of independent coins; with separation 1 they are these steps, and nothing is lost."""
    run = cm.MatrixMechanism(bands=[2], steps=200, sigma=4) @ cm.MinSep(separation=1, rate="0.05")
    poisson = cm.Gaussian(sigma=2, relation=cm.Relation.ADD_REMOVE) @ cm.Poisson(rate="0.05") * 200
    assert run.epsilon("1e-5") == poisson.epsilon("1e-5")
    law, bands = sets_of_steps(3, 1, 0.2, 0), [1.0]
    exact = cm.Gaussian(sigma=SIGMA, relation=cm.Relation.ADD_REMOVE) @ cm.Poisson(rate="0.2") * 3
    assert divergence(bands, 3, law, 0.25) == pytest.approx(exact.delta("0.25"), rel=2e-3)


def test_two_bands_are_a_chain_of_two_links() -> None:
    """Announced steps cost 80.28 here, two links 1.241; nobody can prove less than 0.96."""
    run = cm.MatrixMechanism(bands=[1, "1/2"], steps=1000, sigma=2) @ cm.MinSep(separation=4, rate="0.01")
    found = run.guarantee(delta="1e-6")
    link = cm.Gaussian(sigma=2, squared_sensitivity="5/4", relation=cm.Relation.ADD_REMOVE) @ cm.Poisson("0.01") * 500
    # from the lemma itself: P(A) <= e^x (e^x R(A) + d) + d for the two halves of the steps
    x = found.epsilon / 2
    assert link.delta(Fraction(x)) * (1 + math.exp(x)) == pytest.approx(1e-6, rel=1e-4)
    assert found.lower is not None
    assert 0.96 < found.lower < found.epsilon < 1.241
    assert found.verify().holds
    assert "coin" in found.explain()


@pytest.mark.parametrize(("steps", "bands"), [(5, 2), (6, 2), (7, 3), (2, 2)])
def test_every_step_is_in_one_round_of_one_link(steps: int, bands: int) -> None:
    """A link has as many rounds as the largest class of steps modulo the bands, whose columns share no row."""
    run = cm.MatrixMechanism(bands=["1", "1/2", "1/4"][:bands], steps=steps, sigma=1)
    (chain,) = cm.MinSep(separation=4, rate="0.1").chains(run.factor)
    classes = [range(r, steps, bands) for r in range(bands)]
    assert (chain.links, chain.piece.times) == (len(classes), max(map(len, classes)))
    assert chain.piece.square == run.squared_sensitivity()


def test_repeated_runs_repeat_every_link() -> None:
    run = cm.MatrixMechanism(bands=[1, "1/2"], steps=100, sigma=2) @ cm.MinSep(separation=4, rate="0.02")
    once, thrice = run.epsilon("1e-6"), (run * 3).epsilon("1e-6")
    assert run.epsilon_over([1, 3], delta="1e-6").tolist() == [once, thrice]
    long = cm.MatrixMechanism(bands=[1, "1/2"], steps=300, sigma=2) @ cm.MinSep(separation=4, rate="0.02")
    assert thrice == pytest.approx(long.epsilon("1e-6"), rel=1e-9)  # 150 rounds for each link in both
    other = cm.MatrixMechanism(bands=[1, "-1/2"], steps=100, sigma=2) @ cm.MinSep(separation=4, rate="0.02")
    assert (run + other * 2).epsilon("1e-6") == pytest.approx(thrice, rel=1e-9)  # two matrices, the same link


def test_a_large_rate_is_as_if_announced() -> None:
    run = cm.MatrixMechanism(bands=[1, "1/2"], steps=20, sigma=8)
    secret, announced = run @ cm.MinSep(separation=2, rate=1), run @ cm.MinSep(separation=2, most=10)
    assert secret.epsilon("1e-5") == announced.epsilon("1e-5")


def test_the_number_of_steps_is_at_least_what_the_lower_end_takes() -> None:
    """The law of the number of steps by enumeration, first step blocked as long as a warm start may."""
    for gap, rate in ((2, 0.5), (3, 0.3)):
        run = cm.MatrixMechanism(bands=[1, "1/2"], steps=11, sigma=1)
        (seen,) = cm.MinSep(separation=gap, rate=rate).projections(run.factor)
        law = sets_of_steps(10, gap, rate, gap - 1)  # the last step has no whole column
        counts = {k: sum(chance for taken, chance in law.items() if len(taken) >= k) for k in range(11)}
        each = Fraction(3, 2) / Fraction(math.sqrt(11))
        tail = Fraction(1)
        for shift, weight in zip(seen.shifts, seen.weights, strict=True):
            assert tail <= Fraction(counts[round(shift / each)]) + Fraction(1, 10**9)
            tail -= weight
        assert sum(seen.weights) == 1


def test_calibration_finds_the_rate() -> None:
    found = cm.calibrate(
        "MatrixMechanism(bands=[1], steps=100, sigma=4) @ MinSep(separation=4, rate=?)",
        epsilon=1,
        delta="1e-5",
        digits=2,
    )
    assert 0.01 < float(found.value) < 1
