"""The grid that serves all orders: what it says is what balls say, and each of its error terms is needed."""

import dataclasses
import math
import random
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from cumulant.losses import gaussian_moments
from cumulant.losses.gaussian_law import GaussianLaw
from cumulant.losses.sampled_curve import SampledPair
from cumulant.losses.subsampled import PAIR, PROFILE, Kernel
from cumulant.numerics.arithmetic import BALLS, Array
from cumulant.numerics.enclosure import Enclosure
from cumulant.pairs.gaussian import GaussianPair

SHIFT, RATE = Fraction(1, 5), Fraction(1, 1000)
LAM = np.array([1e-6, 0.3, 1.0, 7.5, 40.0, 255.0, 600.0])


@pytest.fixture(autouse=True)
def forgotten() -> None:
    gaussian_moments._latest.clear()


def sampled(shift: Fraction, rate: Fraction, kernel: Kernel) -> SampledPair:
    return GaussianLaw(shift).sampled(GaussianPair(shift).curve(), rate, kernel)


def ball(shift: Fraction, rate: Fraction, lam: float, kernel: Kernel = PAIR) -> Any:
    """From an adaptive integral, which knows nothing of grids."""
    curve = sampled(shift, rate, kernel)
    size = float(curve._by_nodes(np.array([lam]))[0])
    with BALLS.at(160):
        exact = BALLS.number(Fraction(lam))
        return curve._ball(lambda point: kernel.ball_term(exact, point), Fraction(lam) + 1, size).log()


TRUTH = [ball(SHIFT, RATE, lam) for lam in LAM]


def misses(found: Enclosure, truth: list[Any]) -> Array:
    """The distance of each truth from the midpoint, in radii."""
    with BALLS.at(160):
        away = [
            abs(float(each - BALLS.number(Fraction(mid)))) for each, mid in zip(truth, found.mid.tolist(), strict=True)
        ]
    return np.array(away) / found.radius


def test_what_the_grid_says_holds_the_ball() -> None:
    generator = random.Random(14)
    seen = 0
    for _ in range(40):
        shift = Fraction(f"{10 ** generator.uniform(-5, 0.3):.6e}")
        rate = Fraction(f"{10 ** generator.uniform(-9, -0.001):.6e}")
        top = min(3.0, math.log10(900 / float(shift)))
        lam = np.array([10 ** generator.uniform(-7, top) for _ in range(2)])
        found = gaussian_moments.log_excess(shift, rate, lam)
        known = np.isfinite(found.mid + found.radius)
        truth = [ball(shift, rate, each) for each in lam[known].tolist()]
        assert (misses(found[known], truth) < 1).all(), (shift, rate, lam)
        seen += int(known.sum())
    assert seen > 70


def test_it_is_narrow() -> None:
    found = gaussian_moments.log_excess(SHIFT, RATE, np.arange(1.0, 256.0))
    assert found.radius.max() < 5e-14


def test_an_order_is_answered_alike_whatever_else_is_asked() -> None:
    together = gaussian_moments.log_excess(SHIFT, RATE, LAM)
    for i in range(LAM.size):
        gaussian_moments._latest.clear()
        alone = gaussian_moments.log_excess(SHIFT, RATE, LAM[i : i + 1])
        assert (alone.mid[0], alone.radius[0]) == (together.mid[i], together.radius[i])
    some = gaussian_moments.log_excess(SHIFT, RATE, LAM[[6, 1, 1]])  # one remembered, one new, in any order
    assert some.mid.tolist() == together.mid[[6, 1, 1]].tolist()
    assert gaussian_moments._latest[SHIFT, RATE].shape == (3, 2)


def test_the_memory_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gaussian_moments, "SETTINGS", replace(gaussian_moments.SETTINGS, most_orders=3))
    first = gaussian_moments.log_excess(SHIFT, RATE, LAM[:2])
    again = gaussian_moments.log_excess(SHIFT, RATE, LAM[1:3])
    assert gaussian_moments._latest[SHIFT, RATE].shape == (3, 2)
    assert again.mid[0] == first.mid[1]
    monkeypatch.setattr(gaussian_moments, "SETTINGS", replace(gaussian_moments.SETTINGS, most_pairs=1))
    gaussian_moments.log_excess(SHIFT, Fraction(1, 7), LAM[:1])
    assert list(gaussian_moments._latest) == [(SHIFT, Fraction(1, 7))]


def loosened(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gaussian_moments, "SETTINGS", replace(gaussian_moments.SETTINGS, largest_cut=1.0))
    monkeypatch.setattr(gaussian_moments, "SETTINGS", replace(gaussian_moments.SETTINGS, widest_radius=0.9))


@pytest.mark.parametrize("forgets", [False, True])
def test_the_error_of_the_rule_counts(monkeypatch: pytest.MonkeyPatch, forgets: bool) -> None:
    loosened(monkeypatch)
    step = 1.25
    honest = math.log(2) - 2 * math.pi**2 / step**2 - math.log1p(-math.exp(-4 * math.pi**2 / step**2))
    monkeypatch.setattr(gaussian_moments, "_trapezoid_step", lambda t, need: (step, -math.inf if forgets else honest))
    shift, rate, lam = Fraction(1, 2), Fraction(1, 20), np.array([20.0, 25.0])
    found = gaussian_moments.log_excess(shift, rate, lam)
    away = misses(found, [ball(shift, rate, each) for each in lam.tolist()])
    assert (away > 1).all() if forgets else (away < 1).all()


@pytest.mark.parametrize("forgets", [False, True])
@pytest.mark.parametrize("what", ["left", "right", "blocks"])
def test_all_that_is_left_out_counts(monkeypatch: pytest.MonkeyPatch, what: str, forgets: bool) -> None:
    loosened(monkeypatch)
    changed: dict[str, Any] = {"block_digits" if what == "blocks" else "end_digits": 3.0}
    monkeypatch.setattr(gaussian_moments, "SETTINGS", replace(gaussian_moments.SETTINGS, **changed))
    rule, summed = gaussian_moments._trapezoid_step, gaussian_moments._sum_blocks
    monkeypatch.setattr(gaussian_moments, "_trapezoid_step", lambda t, need: rule(t, 90.0))
    nothing = np.full(LAM.shape, -np.inf)

    def forgetful(grid: Any, lam: Array, end: Array, row: Array, block: Array, *left_out: Any) -> Any:
        dropped, (left, right), *rest = left_out
        if what == "blocks":
            dropped = dropped[0][:0], dropped[1][:0]
        beyond = nothing if what == "left" else left, nothing if what == "right" else right
        return summed(grid, lam, end, row, block, dropped, beyond, *rest)

    if forgets:
        monkeypatch.setattr(gaussian_moments, "_sum_blocks", forgetful)
    away = misses(gaussian_moments.log_excess(SHIFT, RATE, LAM), TRUTH)
    assert np.nanmax(away) > 1 if forgets else np.nanmax(away) < 1


@pytest.mark.parametrize(("name", "error"), [("loss", "loss_error"), ("log_weight", "error"), ("weight", "error")])
def test_the_errors_of_the_nodes_reach_the_answer(monkeypatch: pytest.MonkeyPatch, name: str, error: str) -> None:
    """Each number of the grid is moved as far as its error allows: the answer stays within its radius, and not by chance."""
    before = gaussian_moments.log_excess(SHIFT, RATE, LAM)
    gaussian_moments._latest.clear()
    grid = gaussian_moments._node_grid

    def moved(*where: Any) -> Any:
        found = grid(*where)
        value, part = getattr(found, name), getattr(found, error)
        return dataclasses.replace(found, **{name: value + part if name == "log_weight" else value * (1 + part)})

    monkeypatch.setattr(gaussian_moments, "_node_grid", moved)
    after = gaussian_moments.log_excess(SHIFT, RATE, LAM)
    away = np.abs(after.mid - before.mid) / before.radius
    assert (away < 1).all()
    assert away.max() > 0.1


def test_the_error_of_what_all_orders_share_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    before = gaussian_moments.log_excess(SHIFT, RATE, LAM)
    gaussian_moments._latest.clear()
    grid = gaussian_moments._node_grid

    def moved(*where: Any) -> Any:
        found = grid(*where)
        return dataclasses.replace(
            found, linear_part=Enclosure(found.linear_part.mid + found.linear_part.radius, found.linear_part.radius)
        )

    monkeypatch.setattr(gaussian_moments, "_node_grid", moved)
    away = np.abs(gaussian_moments.log_excess(SHIFT, RATE, LAM).mid - before.mid) / before.radius
    assert (away < 1).all()
    assert away[0] > 0.1  # a third of the moment at orders near 1


def test_unknown_where_it_would_be_too_fine_or_too_long() -> None:
    for shift, rate, lam in (
        (3, RATE, 1.0),
        (SHIFT, RATE, 1e5),
        (SHIFT, Fraction(1, 10**120), 1.0),
        (SHIFT, RATE, 1e-110),
    ):
        found = gaussian_moments.log_excess(Fraction(shift), rate, np.array([lam]))
        assert np.isnan(found.mid + found.radius).all()
        assert np.isfinite(sampled(Fraction(shift), rate, PAIR).log_excess(np.array([lam]))).all()


@pytest.mark.parametrize("shift", ["1/1000", "1/5", "1"])
@pytest.mark.parametrize("rate", ["1/10000000", "1/20", "9/10"])
def test_what_the_profile_has_beyond_the_pair(shift: str, rate: str) -> None:
    t, g, lam = Fraction(shift), Fraction(rate), np.array([1e-4, 1.0, 12.0, 50.0])
    extra = gaussian_moments.profile_excess(t, g, lam)
    for each, value in zip(lam.tolist(), extra.tolist(), strict=True):
        whole, folded = (ball(t, g, each, kernel).exp() for kernel in (PAIR, PROFILE))
        assert abs(float((folded - whole - BALLS.number(Fraction(value))) / folded)) < 1e-12


def test_the_profile_is_not_claimed_where_it_is_steep() -> None:
    assert np.isnan(gaussian_moments.profile_excess(Fraction(1), Fraction(1, 2), np.array([1000.0]))).all()
    assert np.isnan(gaussian_moments.profile_excess(Fraction(2), Fraction(1, 2), np.array([1.0]))).all()
