"""The adaptive optimum of the exponential mechanism: floats against the same recursion in balls, and each error term gone."""

import itertools
import math
from dataclasses import replace
from fractions import Fraction
from typing import Any

import pytest

from cumulant.exact.adaptive import value_iteration
from cumulant.exact.adaptive import value_iteration as value
from cumulant.exact.adaptive.settings import RECURSION
from cumulant.exact.adaptive.value_iteration import Value
from cumulant.numerics.arithmetic import BALLS


def cells(monkeypatch: pytest.MonkeyPatch, n: int, times: int) -> None:
    monkeypatch.setattr(value_iteration, "RECURSION", replace(RECURSION, range_most_cells=n * times))
    value_iteration._optimum.cache_clear()


def recursion(epsilon: Fraction, times: int, n: int) -> list[Any]:
    """W_k at e^{i epsilon/n}, i <= 0, with chords, the bend included, in balls of 200 bits."""
    with BALLS.at(200):
        e, step, reach = BALLS.number(epsilon), epsilon / n, (times + 1) * n
        whole = e.expm1()
        one = BALLS.number(step).expm1()
        value = {i: BALLS.number(max(i, 0) * step).expm1() for i in range(-2 * reach, 2 * reach + 1)}
        for j in range(1, times + 1):
            found = {}
            for i in range(-reach, reach + 1):
                if i <= -j * n or i >= j * n:
                    found[i] = BALLS.number(max(i, 0) * step).expm1()
                    continue
                best, before = BALLS.number(0), None
                for m in range(n + 1):
                    x = BALLS.number(m * step)
                    up, low = value[i + n - m], value[i - m]
                    ends = (x.expm1() * up + x.exp() * BALLS.number(epsilon - m * step).expm1() * low) / whole
                    if before is None:
                        top = ends
                    else:
                        was, up_was, low_was = before
                        bend = one * one * (low - up) + one * ((up_was - up) - (low_was - low))
                        added = bend * x.exp() / (4 * whole) if bend > 0 else BALLS.number(0)
                        top = (ends if ends > was else was) + added
                    best = top if top > best else best
                    before = ends, up, low
                found[i] = best
            value = {**{i: BALLS.number(max(i, 0) * step).expm1() for i in value}, **found}
        return [value[i] for i in range(-reach, 1)]


SETTINGS = [(Fraction(1), 4, 6), (Fraction(3), 3, 5), (Fraction(1, 50), 5, 4), (Fraction(17, 2), 3, 4)]


@pytest.mark.parametrize(("epsilon", "times", "n"), SETTINGS)
def test_floats_are_not_below_the_recursion(
    epsilon: Fraction, times: int, n: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    cells(monkeypatch, n, times)
    found, exact = value_iteration._optimum(epsilon, times), recursion(epsilon, times, n)
    assert len(exact) == found.values.size
    with BALLS.at(200):
        assert all(BALLS.number(Fraction(float(a))) >= b for a, b in zip(found.values, exact, strict=True))
    highest = itertools.accumulate((float(each) for each in exact), max)
    assert found.values == pytest.approx(list(highest), rel=1e-11, abs=1e-290)


@pytest.mark.parametrize("gone", ["U", "FAR", "NEAR", "all"])
def test_without_the_error_terms_they_are(gone: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A negative term must be noticed whichever it is; with none at all floats fall below by themselves."""
    for name in ("U", "FAR", "NEAR"):
        if gone in (name, "all"):
            monkeypatch.setattr(value_iteration, name, 0.0 if gone == "all" else -50 * getattr(value_iteration, name))
    seen = 0
    for epsilon, times, n in SETTINGS:
        cells(monkeypatch, n, times)
        found, exact = value_iteration._optimum(epsilon, times), recursion(epsilon, times, n)
        with BALLS.at(200):
            seen += sum(BALLS.number(Fraction(float(a))) < b for a, b in zip(found.values, exact, strict=True))
    value_iteration._optimum.cache_clear()
    assert seen > 0


def test_chords_between_the_points(monkeypatch: pytest.MonkeyPatch) -> None:
    """delta = e^x times the chord in y of the values, in balls; and with no error terms some are below it."""
    values = value_iteration._optimum(Fraction(2), 3).values
    step, first = Fraction(2, 128), -4 * 128

    def below() -> int:
        together, seen = Value(step, first, values), 0
        for i in range(400):
            x = float(Fraction(i * 37 % 5000, 1000))
            with BALLS.at(200):
                place, above = divmod(-Fraction(x), step)
                j = int(place) - first
                low, high = (BALLS.number(Fraction(float(values[min(k, values.size - 1)]))) for k in (j, j + 1))
                chord = low + BALLS.number(above).expm1() / BALLS.number(step).expm1() * (high - low)
                seen += BALLS.number(Fraction(together.delta(x))) < BALLS.number(Fraction(x)).exp() * chord
        return seen

    assert below() == 0
    monkeypatch.setattr(value, "U", 0.0)
    monkeypatch.setattr(value, "FAR", 0.0)
    monkeypatch.setattr(value, "NEAR", 0.0)
    assert below() > 0


def test_ends() -> None:
    optimum = value_iteration.bounded_range_optimum(Fraction(1), 3)
    assert optimum is not None
    assert optimum.delta(0.0) < 1
    assert optimum.delta(-0.1) == optimum.delta(1000.0) == 1
    assert optimum.delta(3.5) == pytest.approx(0, abs=1e-290)
    assert math.isinf(optimum.epsilon(0.0)) or optimum.epsilon(0.0) >= 3
    assert value_iteration.bounded_range_optimum(Fraction(50), 20) is None
