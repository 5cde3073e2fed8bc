"""Epochs of random allocation from both ends: reference intervals, epochs enumerated, quadrature, and no jump over delta."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import cumulant as cm
from cumulant.exact.grid import allocation
from cumulant.exact.grid.allocation import Allocated, AllocatedBelow, epoch_law
from cumulant.losses.grid import Loss
from cumulant.numerics.arithmetic import BALLS
from cumulant.pairs.gaussian import GaussianPair
from tests.oracles.reference import load

ROWS = [row for row in load("allocation_intervals")["values"] if row["kind"] == "allocation"]
CUT = -48.0


def of(pair: Any) -> Loss:
    loss = pair.loss()
    assert loss is not None
    return loss  # type: ignore[no-any-return]


def gaussian(sigma: str) -> Loss:
    return of(GaussianPair(1 / Fraction(sigma)))


def ends(loss: Loss, steps: int, direction: str, epsilon: float) -> tuple[float, float]:
    lower = AllocatedBelow(loss, steps, direction).own_delta(epsilon, CUT)
    return lower, Allocated(loss, steps, direction).own_delta(epsilon, CUT)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row['expression']}, {row['question']}, {row['direction']}")
def test_reference_intervals(row: dict[str, Any]) -> None:
    """Each direction of one epoch by itself; of several epochs the answer is the larger direction."""
    run = cm.parse(row["expression"])
    asked, value = row["question"].split(" at ")[0], row["question"].split("=")[1]
    both = [each for each in ROWS if (each["expression"], each["question"]) == (row["expression"], row["question"])]
    low, high = (max(each[end] for each in both) for end in ("lower", "upper"))
    found = run.guarantee(delta=value) if asked == "epsilon" else run.guarantee(epsilon=value)
    upper = found.epsilon if asked == "epsilon" else found.delta
    lower = found.lower
    assert lower is not None
    assert low <= upper <= high + row["tolerance"]
    assert low - row["tolerance"] <= lower <= high
    assert found.rigour == "bounded"
    if "*" not in row["expression"] and asked == "delta" and "Gaussian" in row["expression"]:
        sigma, steps = row["expression"].split("=")[1].split(")")[0], int(row["expression"].split("steps=")[1][:-1])
        below, above = ends(gaussian(sigma), steps, row["direction"], float(value))
        assert below <= row["upper"] * (1 + 1e-12)
        assert row["lower"] * (1 - 1e-12) <= above <= row["upper"] + row["tolerance"]


FINITE = {
    "yes or no": cm.RandomizedResponse(p="0.7"),
    "three losses": cm.from_masses(["1/2", "1/3", "1/6"], ["1/6", "1/3", "1/2"]),
    "discrete Laplace": cm.DiscreteLaplace(scale=1),
}


@pytest.mark.parametrize("name", FINITE)
@pytest.mark.parametrize("steps", [2, 3, 5])
def test_finite_ratios_enumerated(name: str, steps: int) -> None:
    """All outputs of an epoch, from the definition: the record in each of the steps, uniformly."""
    loss = of(FINITE[name].pair())
    x, log_q = loss.atoms()
    if loss.equal:
        x, log_q = np.append(x, 0.0), np.append(log_q, math.log(loss.equal))
    keep = log_q + np.maximum(x, 0) > -14  # the rest is less than 1e-5 of either law
    x, q = x[keep], np.exp(log_q[keep])
    p = q * np.exp(x)
    without = [math.prod(q[i] for i in outputs) for outputs in itertools.product(range(x.size), repeat=steps)]
    there = [
        sum(p[i] / q[i] for i in outputs) / steps * math.prod(q[i] for i in outputs)
        for outputs in itertools.product(range(x.size), repeat=steps)
    ]
    one, two = np.array(there), np.array(without)
    for epsilon in (0.05, 0.3, 0.6):
        for direction, first, second in (("remove", one, two), ("add", two, one)):
            exact = float(np.maximum(first - math.exp(epsilon) * second, 0).sum())
            lower, upper = ends(loss, steps, direction, epsilon)
            assert lower <= exact * (1 + 1e-9) + 1e-5 * steps
            assert exact * (1 - 1e-9) <= upper
            assert upper - lower <= 2e-4 * exact + 2e-5 * steps


@pytest.mark.parametrize(("sigma", "epsilon"), [("1", 0.5), ("3", 0.2), ("0.5", 2.0)])
def test_two_steps_by_quadrature(sigma: str, epsilon: float) -> None:
    from scipy.special import ndtr

    t, a = 1 / float(sigma), math.exp(epsilon)
    z = np.linspace(-10, 10 + 2 * t, 200_001)
    weight = np.exp(-z * z / 2) / math.sqrt(2 * math.pi) * (z[1] - z[0])
    w = np.exp(t * z - t * t / 2)
    # E (W - k)_+ in closed form for the second step
    k = 2 * a - w
    x = np.log(np.maximum(k, 1e-300)) / t
    exact = float(np.sum(weight * np.where(k > 0, ndtr(t / 2 - x) - k * ndtr(-t / 2 - x), 1 - k))) / 2
    lower, upper = ends(gaussian(sigma), 2, "remove", epsilon)
    assert lower <= exact * (1 + 1e-9)
    assert exact * (1 - 1e-9) <= upper <= lower * (1 + 2e-5)


@pytest.mark.parametrize("sigma", ["1", "3"])
@pytest.mark.parametrize("steps", [3, 40, 1000, 10**5])
def test_both_ends_keep_their_masses(sigma: str, steps: int) -> None:
    """From above masses and means are kept but for what leaks; from below nothing is counted twice."""
    loss = gaussian(sigma)
    above, below = epoch_law(loss, steps, CUT, True), epoch_law(loss, steps, CUT, False)
    assert float(above.m.sum()) == pytest.approx(1, abs=1e-8)
    assert float(above.p.sum()) == pytest.approx(1, abs=1e-8)
    assert float(below.m.sum()) <= 1 + 1e-8
    assert float(below.p.sum()) == pytest.approx(1, abs=1e-8)
    assert max(above.leak_p, above.leak_q) < 1e-20
    # E W^2 = e^(1/sigma^2): the variance of S/t is that of one ratio over t, and splitting only adds to it
    variance = math.expm1(1 / float(sigma) ** 2) / steps
    assert variance * (1 - 1e-9) <= float(np.sum(above.m * (np.exp(above.x) - 1) ** 2)) <= variance * 1.002
    assert float(np.sum((below.p - below.m) ** 2 / below.m)) <= variance * (1 + 1e-7)


@pytest.mark.parametrize("sigma", ["1", "0.5"])
def test_no_jump_over_delta(sigma: str) -> None:
    run = cm.Gaussian(sigma=sigma) @ cm.RandomAllocation(steps=1000) * 10
    deltas = [10.0**-k for k in np.linspace(3, 15, 9)]
    found = [run.epsilon(delta) for delta in deltas]
    assert found == sorted(found)
    slopes = np.diff(found) / np.diff(np.log(deltas))
    assert float(np.max(np.abs(np.diff(slopes) / slopes[1:]))) < 0.5


def test_more_epochs_and_steps() -> None:
    base = cm.Gaussian(sigma=1)
    over_steps = [(base @ cm.RandomAllocation(steps=t)).epsilon(1e-6) for t in (2, 3, 9, 10, 64, 65, 500, 1000, 10**6)]
    assert over_steps == sorted(over_steps, reverse=True)
    over_epochs = [(base @ cm.RandomAllocation(steps=100) * k).epsilon(1e-6) for k in (1, 2, 5, 20)]
    assert over_epochs == sorted(over_epochs)


def test_no_lower_end_where_no_step_attains_the_pair() -> None:
    for base in (cm.PureDP(1), cm.ApproximateDP(1, "1e-6"), cm.ZeroConcentrated(rho="0.1")):
        assert (base @ cm.RandomAllocation(steps=20)).guarantee(delta=1e-5).lower is None
    assert (cm.RandomizedResponse(p="0.7") @ cm.RandomAllocation(steps=20)).guarantee(delta=1e-5).lower is not None


def test_what_no_grid_holds_is_given_up() -> None:
    assert not allocation.fits(gaussian("0.02"), 9)
    with pytest.raises(OverflowError):
        epoch_law(gaussian("0.02"), 9, CUT, True)


@pytest.mark.parametrize("steps", [2, 40, 1000])
@pytest.mark.parametrize("sigma", ["0.7", "2"])
def test_what_is_left_out_is_counted(sigma: str, steps: int) -> None:
    """With a coarse cut the leaks are visible: without the own ratio, or those of the other steps, delta is too small."""
    loss = gaussian(sigma)
    for cut in (-3.0, -8.0):
        law = epoch_law(loss, steps, cut, True)
        for direction, first, second, leak in (
            ("remove", law.p, law.m, law.leak_p),
            ("add", law.m, law.p, law.leak_q),
        ):
            for epsilon in (0.0, 0.1, 1.0):
                found = float(np.maximum(first - math.exp(epsilon) * second, 0).sum()) * (1 + law.error) + leak
                assert AllocatedBelow(loss, steps, direction).own_delta(epsilon, CUT) <= found
        assert float(law.p.sum()) + law.leak_p >= 1 - 1e-9
        assert float(law.m.sum()) + law.leak_q >= 1 - 1e-9


# ---- the law of one ratio against balls


def ball_tail(x: Any) -> Any:
    """Phi(-x) as a ball."""
    return (x / BALLS.number(2).sqrt()).erfc() / 2


@pytest.mark.parametrize(
    ("sigma", "points", "cut"), [("1", 1 << 13, -64.0), ("0.5", 1 << 16, -48.0), ("4", 1 << 16, -80.0)]
)
def test_one_ratio_is_enclosed(sigma: str, points: int, cut: float) -> None:
    """Masses of labels and call prices of the split points, at many places, against balls of 200 bits.

    With the stated error of masses, misplacement of points and mass left out, labels contain the exact masses and the points
    are above the exact law in convex order. A share that lost digits by cancellation would be seen: the errors stated are
    below 1e-11.
    """
    one = allocation.ratio_law(gaussian(sigma), points, cut)
    assert one.error < 1e-13
    assert one.label_error < 1e-12
    assert one.slip < 1e-11
    with BALLS.at(200):
        shift = 1 / BALLS.number(Fraction(sigma))

        def left(x: float, offset: Any) -> Any:
            """Return the law of the loss below x, by the smaller tail: under Q with offset 1/2, under P with -1/2."""
            return ball_tail(-(BALLS.number(Fraction(x)) / shift + offset * shift))

        half = BALLS.number(Fraction(1, 2))
        chosen = np.unique(np.linspace(2, one.cell.size - 3, 120).astype(int))
        wide = Fraction(one.width)
        for i in chosen.tolist():
            low, high = (float(Fraction(float(one.cell[i])) + sign * wide / 2) for sign in (-1, 1))
            for mass, offset in ((one.cell_q[i], half), (one.cell_p[i], -half)):
                if low * float(shift) ** -1 > 1:  # differences of the upper tails keep their digits
                    exact = ball_tail(BALLS.number(Fraction(low)) / shift + offset * shift) - ball_tail(
                        BALLS.number(Fraction(high)) / shift + offset * shift
                    )
                else:
                    exact = left(high, offset) - left(low, offset)
                # the ends of a cell are floats, and a rounded end moves mass to the next cell
                moved = 2 * 2.0**-52 * max(abs(low), 1.0) / one.width
                assert abs(mass / float(exact) - 1) <= one.label_error + moved
        for i in np.unique(np.linspace(0, one.w.size - 1, 40).astype(int)).tolist():
            k = float(one.w[i])
            at = BALLS.number(Fraction(k)).log() / shift
            call = ball_tail(at - half * shift) - BALLS.number(Fraction(k)) * ball_tail(at + half * shift)
            exact = float(call)
            above = one.w > k * math.exp(-2 * one.slip)
            grown = one.q[above] * (1 + one.error) * (one.w[above] * (1 + one.slip) - k)
            price = math.fsum(np.maximum(grown, 0).tolist()) + one.out
            assert exact * (1 - 1e-13) <= price
            assert price <= exact * (1 + 1e-4) + 2 * one.slip * k + 2 * one.out


def test_rounding_widens_both_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    """With an error of a tenth masses are divided by 0.9 from above; from below p falls by 1.1 and losses by more."""
    loss, real = gaussian("1"), allocation.epoch_law
    exact = {upper: ends(loss, 7, "remove", 0.4)[upper] for upper in (0, 1)}
    allocation._losses.cache_clear()
    allocation._losses_below.cache_clear()
    monkeypatch.setattr(allocation, "epoch_law", lambda *asked: replace(real(*asked), error=0.05))
    lower, upper = ends(loss, 7, "remove", 0.4)
    allocation._losses.cache_clear()
    allocation._losses_below.cache_clear()
    assert upper == pytest.approx(exact[1] / 0.95, rel=1e-6)
    # true masses may be p / (1 + e) under P and m / (1 - e) under Q
    labels = real(loss, 7, CUT, False)
    assert lower <= float(np.maximum(labels.p / 1.05 - math.exp(0.4) * labels.m / 0.95, 0).sum()) < exact[0] / 1.05


def test_neither_direction_is_the_larger_one() -> None:
    """Laplace noise of scale 1, two steps, epsilon 0.1: 0.2439 removed, 0.2597 added; the answer is the larger."""
    run = cm.Laplace(scale=1) @ cm.RandomAllocation(steps=2)
    assert run.delta(epsilon="0.1") == pytest.approx(0.2597, abs=2e-4)
    removed, added = (ends(of(cm.Laplace(scale=1).pair()), 2, each, 0.1) for each in ("remove", "add"))
    assert removed[1] == pytest.approx(0.2439, abs=2e-4)
    assert added[1] == pytest.approx(0.2597, abs=2e-4)


def test_what_one_ratio_leaves_out_counts_in_every_step(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each of t steps may fall out of the grid, and under P the own one, too."""
    real = allocation.ratio_law
    monkeypatch.setattr(allocation, "ratio_law", lambda *asked: replace(real(*asked), out=1e-4))
    epoch_law.cache_clear()
    law = epoch_law(gaussian("1"), 30, CUT, True)
    epoch_law.cache_clear()
    assert law.leak_q >= 30 * 1e-4
    assert law.leak_p >= 31 * 1e-4
