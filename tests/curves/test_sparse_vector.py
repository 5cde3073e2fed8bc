"""Gaussian sparse vectors: every cell against balls at points inside it, the recursion against balls, each term broken once."""

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from cumulant.curves import sparse_vector
from cumulant.curves.sparse_vector import _Largest, _log_tail, _log_value, _Tails
from cumulant.numerics.arithmetic import BALLS
from cumulant.numerics.enclosure import Enclosure
from cumulant.numerics.rounding import U

CASES = [(Fraction(3, 2), Fraction(1, 10)), (Fraction(10), Fraction(1, 5)), (Fraction(5), Fraction(2))]


def exact(x: Fraction, order: Fraction, u: Fraction) -> tuple[Any, Any]:
    """g(x) and F(x) from their definitions."""
    a, here, there = BALLS.number(order), _log_tail(BALLS.number(x)), _log_tail(BALLS.number(x + u))
    return (a * here + (1 - a) * there).exp(), -here.expm1()


def exceeded(order: Fraction, u: Fraction) -> int:
    """How often g(x) r + F(x) is larger than both ends of its cell say."""
    tails, rng, seen = _Tails(u, 9.5 + float((order - 1) * u)), np.random.default_rng(1), 0
    ends = [(g.upper(), h.upper()) for g, h in tails.cells(order)]
    with BALLS.at(200):
        for i in rng.integers(0, tails.middle.size, 150):
            for share in (-1.0, -0.4, 0.0, 0.7, 1.0):
                x = Fraction(float(tails.middle[i])) + Fraction(share * sparse_vector._WIDTH)
                g, f = exact(x, order, u)
                for r in (Fraction(0), Fraction(1), Fraction(1, 1000)):
                    most = max(Fraction(float(G[i])) * r + Fraction(float(H[i])) for G, H in ends)
                    seen += g * BALLS.number(r) + f > BALLS.number(most)
    return seen


@pytest.mark.parametrize(("order", "u"), CASES)
def test_cells(order: Fraction, u: Fraction) -> None:
    assert exceeded(order, u) == 0


def test_each_term_of_a_cell_is_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    order, u = CASES[1]
    with monkeypatch.context() as patch:
        patch.setattr(sparse_vector, "_second", lambda slope: slope * 0.0)
        assert exceeded(order, u) > 0
    with monkeypatch.context() as patch:  # the middle alone
        patch.setattr(Enclosure, "upper", lambda self: self.mid)
        assert exceeded(order, u) > 0


def test_beyond_the_cells() -> None:
    for order, u in CASES:
        tails = _Tails(u, 9.5 + float((order - 1) * u))
        (first, low), (last, high) = tails._ends(order)
        with BALLS.at(200):
            for away in (Fraction(1, 10**6), Fraction(1), Fraction(8)):
                g, f = exact(tails.start - away, order, u)
                assert g <= BALLS.number(Fraction(first))
                assert f <= BALLS.number(Fraction(low))
                g, f = exact(tails.end + away, order, u)
                assert g <= BALLS.number(Fraction(last))
                assert f <= high


def recursion(g: list[float], h: list[float], hits: int, queries: int) -> Any:
    """V in balls, the largest of all corners in every step."""
    corners = [(BALLS.number(Fraction(a)), BALLS.number(Fraction(b))) for a, b in zip(g, h, strict=True)]
    value = [BALLS.number(1)] * (hits + 1)
    for _ in range(queries):
        before = value.copy()
        for each in range(1, hits + 1):
            sums = [a * before[each - 1] + b * before[each] for a, b in corners]
            largest = sums[0]
            for one in sums[1:]:
                largest = one if one > largest else largest
            value[each] = largest
    return value[hits].log()


def test_the_recursion(monkeypatch: pytest.MonkeyPatch) -> None:
    def gaps() -> list[float]:
        found = []
        for order, u in CASES:
            g, h = (each[::40].tolist() for each in _Tails(u, 9.5 + float((order - 1) * u)).corners(order))
            g, h = [*g, 1.0], [*h, 1.0]
            for hits, queries in ((1, 7), (2, 5)):
                with BALLS.at(200):
                    value = _log_value(_Largest(np.array(g), np.array(h)), hits, queries)
                    found.append(float(BALLS.number(Fraction(value)) - recursion(g, h, hits, queries)))
        return found

    assert all(0 <= gap < 1e-3 for gap in gaps())
    monkeypatch.setattr(sparse_vector, "_APART", 2.0**-40)  # chords give nothing away, so that rounding shows
    assert all(0 <= gap < 1e-13 for gap in gaps())
    for name in ("U", "NEAR"):
        with monkeypatch.context() as patch:
            patch.setattr(sparse_vector, name, -1000 * getattr(sparse_vector, name))
            assert min(gaps()) < 0, name


def test_chords(monkeypatch: pytest.MonkeyPatch) -> None:
    """One corner is linear in r, so that its chord is exact."""
    monkeypatch.setattr(sparse_vector, "_APART", 1.0)

    def least() -> float:
        largest, found = _Largest(np.array([3.0]), np.array([0.5])), []
        with BALLS.at(200):
            for x in np.linspace(-3, 3, 101).tolist():
                truth = (3 * BALLS.number(Fraction(x)).exp() + BALLS.number(Fraction(1, 2))).log()
                found.append(float(BALLS.number(Fraction(largest.log(x))) - truth))
        return min(found)

    assert 0 <= least() < 1e-14
    monkeypatch.setattr(sparse_vector, "FAR", -20 * U)
    assert least() < 0
