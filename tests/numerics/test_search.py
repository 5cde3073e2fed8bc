"""Root finders: neighbouring floats around a root, few evaluations, and honest ends where nothing is proved."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable

import numpy as np
import pytest

import cumulant as cm
from cumulant.numerics import search
from cumulant.numerics.arithmetic import Array
from cumulant.numerics.search import invert_falling, least, locate_minimum


@pytest.mark.parametrize("root", [1e-200, 3e-7, 0.5, 1.0, math.pi, 700.0, 1e12])
@pytest.mark.parametrize(
    "shape", [lambda x, r: r - x, lambda x, r: math.log(r / x), lambda x, r: math.atan(r - x) ** 3]
)
def test_the_ends_are_neighbouring_floats_around_the_root(root: float, shape: Callable[[float, float], float]) -> None:
    asked = []

    def excess(x: float) -> tuple[bool, float]:
        asked.append(x)
        return x < root, shape(x, root)

    low, high = invert_falling(excess, 1.0, 1e-310, 2.0**60)
    assert high == root
    assert low == math.nextafter(root, 0.0)
    assert len(asked) <= 300


@pytest.mark.parametrize(
    ("function", "most"),
    [
        (lambda x: math.log(2 / (x * x)), 14),
        (lambda x: 20 - x * x, 14),
        (lambda x: math.exp(-x) - 1e-3, 21),
        (lambda x: 50 - x**3, 15),
        (lambda x: 1 - x - x * x, 12),
    ],
)
def test_a_smooth_function_takes_few_evaluations(function: Callable[[float], float], most: int) -> None:
    """Without the Illinois rule, on either side, one of them takes more."""
    asked = []

    def excess(x: float) -> tuple[bool, float]:
        asked.append(x)
        return function(x) > 0, function(x)

    low, high = invert_falling(excess, 1.0, 1e-310, 2.0**60)
    assert low is not None
    assert high is not None
    assert function(low) > 0 >= function(high)
    assert math.nextafter(low, high) == high
    assert len(asked) <= most


def test_ends_close_in_on_a_gap_in_which_nothing_is_proved() -> None:
    def excess(x: float) -> tuple[bool | None, float]:
        return (None, math.nan) if 2 < x < 5 else (x <= 2, 3 - x)

    low, high = invert_falling(excess, 1.0, 1e-310, 2.0**60)
    assert low is not None
    assert high is not None
    assert 2 * (1 - 1e-15) < low <= 2
    assert 5 <= high < 5 * (1 + 1e-15)


def test_an_end_that_is_nowhere_proved_is_none() -> None:
    low, high = invert_falling(lambda x: (True if x < 3 else None, 1.0), 1.0, 1e-310, 2.0**60)
    assert high is None
    assert low is not None
    assert 3 * (1 - 1e-15) < low < 3
    assert invert_falling(lambda x: (False, -1.0), 1.0, 1e-310, 2.0**60) == (None, 1e-310)
    assert invert_falling(lambda x: (None, 0.0), 1.0, 1e-310, 2.0**60) == (None, None)


def test_values_that_are_infinite_are_halved() -> None:
    low, high = invert_falling(lambda x: (x < 0.5, 0.5 - x if x < 0.5 else -math.inf), 1.0, 1e-310, 2.0**60)
    assert (low, high) == (math.nextafter(0.5, 0.0), 0.5)


@pytest.mark.parametrize("start", [1e-3, 0.2, 1.7, 400.0])
def test_the_bottom_of_a_valley_is_found(start: float) -> None:
    found = locate_minimum(lambda d: d + 3 / d, start)
    assert found == pytest.approx(math.sqrt(3), rel=1e-4)
    assert locate_minimum(lambda d: -d, 1.0) == 1.0  # there is none


def test_the_minimum_at_a_kink_is_found_to_1e_8() -> None:
    """A kink beside the divisions ended the search up to 1e-5 above it."""
    for kink in np.random.default_rng(5).uniform(0.6, 30.0, 200).tolist():

        def bent(x: Array, kink: float = kink) -> Array:
            return np.where(x < kink, 5 + 2 * (kink - x), 5 + (x - kink) / 3)[None, :]

        assert 5 <= least(bent, False).value[0] <= 5 * (1 + 1e-8)


def test_a_minimum_beside_a_wall_ends_the_search(monkeypatch: pytest.MonkeyPatch) -> None:
    """Vertices of parabolas crept towards a kink for 9,006 rounds; at a delta of 0.9 an epsilon took 100 s."""
    rounds = 0
    divide = search._divide

    def counted(nodes: Array, values: Array, integral: bool) -> Array:
        nonlocal rounds
        rounds += 1
        return divide(nodes, values, integral)

    monkeypatch.setattr(search, "_divide", counted)
    run = cm.Gaussian(sigma=5) @ cm.WithoutReplacement(rate=0.001)
    assert run.epsilon("0.3", method="rdp", conversion="classic") == pytest.approx(0.0035062039603578165, rel=1e-12)
    assert 0 < rounds < 100


@pytest.mark.parametrize(
    ("text", "delta"),
    [
        ('Gaussian(sigma=1, relation="add-remove") @ Poisson(rate=1e-20)', "1e-6"),
        ('Gaussian(sigma=1, relation="add-remove") @ Poisson(rate=1e-300)', "1e-6"),
        ('Gaussian(sigma=1e-8, relation="add-remove") @ Poisson(rate=1e-300)', "0.5"),
        ('MatrixMechanism(bands=[1, "1/2"], steps=60, sigma=2) @ MinSep(separation=4, rate=1e-6)', "1e-2"),
    ],
)
def test_a_record_that_is_hardly_ever_seen_takes_few_rounds(
    monkeypatch: pytest.MonkeyPatch, text: str, delta: str
) -> None:
    """The least epsilon is far below 0 beside a wall, to which vertices crept for up to 70 s; the answer is 0."""
    rounds: list[int] = []
    divide = search._divide

    def counted(nodes: Array, values: Array, integral: bool) -> Array:
        rounds.append(nodes.size)
        return divide(nodes, values, integral)

    monkeypatch.setattr(search, "_divide", counted)
    run = cm.parse(text)
    assert run.epsilon(delta, method="rdp") >= run.epsilon(delta) == 0
    assert 0 < len(rounds) < 200


def test_values_on_a_line_have_no_vertex() -> None:
    """No warning either, which a program may turn into an error."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert search._vertices(np.array([1.0, 2.0, 3.0]), np.ones((1, 3))).size == 0
