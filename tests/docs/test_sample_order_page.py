"""E-3: a mechanism that depends on the order of its sample breaks Theorem 9 and Lemma 3 unless the sample is shuffled.

The mechanism publishes a K-ary randomized response of each of two records, in the order in which it gets them. A record is
told truly with odds c to 1 against each other answer: it is log(c)-DP, and its order-2 divergence is that of one response. The
data are one record and then blocks of the classes 1 … K. All laws are integers over one denominator.
"""

from __future__ import annotations

import itertools
import math
import re
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import cumulant as cm

PAGE = Path(__file__).parents[2] / "docs" / "bounds" / "sample-order.md"

SETTINGS: dict[str, tuple[int, list[int]]] = {
    "K = 3, c = 55, blocks of 2": (55, [2] * 3),
    "K = 6, c = 1000, blocks of 8^i": (1000, [8**i for i in range(6)]),
    "K = 10, c = 1000, blocks of 5^i": (1000, [5**i for i in range(10)]),
    "K = 30, c = 22026, blocks of 2^i": (22026, [2**i for i in range(30)]),
}


def response(classes: int, odds: int) -> Any:
    """The answers of each class, times (odds + classes - 1)."""
    rows = np.full((classes, classes), 1, dtype=object)
    rows[np.diag_indices(classes)] = odds
    return rows


def laws(odds: int, sizes: list[int], shuffled: bool) -> list[Any]:
    """The law of both answers for each class of the first record, as integers: samples counted by the classes they hold."""
    classes = len(sizes)
    answers, pairs = response(classes, odds), np.zeros((classes, classes), dtype=object)
    for a, b in itertools.combinations_with_replacement(range(classes), 2):
        pairs[a, b] = sizes[a] * sizes[b] if a < b else math.comb(sizes[a], 2)
    without = answers.T.dot(pairs).dot(answers)
    found = [without + np.outer(answers[u], np.array(sizes, dtype=object).dot(answers)) for u in range(classes)]
    return [law + law.T for law in found] if shuffled else found


def divergences(found: list[Any]) -> tuple[float, float]:
    """The largest order-2 divergence and the largest privacy loss over both orders of every pair."""
    second, largest = 0.0, Fraction(1)
    for p, q in itertools.permutations(found, 2):
        gap, whole = (p - q).ravel(), int(np.sum(q))
        moving = np.flatnonzero(gap)
        below = q.ravel()[moving]
        square = math.fsum(float(Fraction(int(x * x), int(y) * whole)) for x, y in zip(gap[moving], below, strict=True))
        second = max(second, math.log1p(square))
        largest = max(largest, max(Fraction(int(x + y), int(y)) for x, y in zip(gap[moving], below, strict=True)))
    return second, math.log1p(float(largest - 1))


def claimed(odds: int, sizes: list[int]) -> tuple[float, float, float]:
    """What Theorem 9 says at order 2, what Lemma 3 says, and what joint convexity says at order 2; by hand."""
    classes, rate = len(sizes), Fraction(2, 1 + sum(sizes))
    moment = (Fraction(odds**2) + Fraction(1, odds) + classes - 2) / (odds + classes - 1)  # e^eps(2)
    theorem9 = rate**2 * min(4 * (moment - 1), moment * min(2, (odds - 1) ** 2))
    return tuple(math.log1p(float(x)) for x in (theorem9, rate * (odds - 1), rate * (moment - 1)))  # type: ignore[return-value]


def test_counting_is_enumerating() -> None:
    """All 21 samples of two of seven records, one by one, in data-set order and in both orders."""
    odds, sizes = SETTINGS["K = 3, c = 55, blocks of 2"]
    answers = response(3, odds)
    for first in range(3):
        data = [first, 0, 0, 1, 1, 2, 2]
        kept = sum(np.outer(answers[x], answers[y]) for x, y in itertools.combinations(data, 2))
        both = sum(np.outer(answers[x], answers[y]) for x, y in itertools.permutations(data, 2))
        assert (laws(odds, sizes, shuffled=False)[first] == kept).all()
        assert (laws(odds, sizes, shuffled=True)[first] == both).all()


def rows() -> dict[str, list[float]]:
    lines = [line for line in PAGE.read_text(encoding="utf-8").splitlines() if line.startswith("| K = ")]
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    return {line[0]: [float(re.sub("[*,]", "", cell)) for cell in line[2:]] for line in cells}


@pytest.mark.parametrize("name", SETTINGS)
def test_the_page_says_what_is_true(name: str) -> None:
    odds, sizes = SETTINGS[name]
    theorem9, lemma3, convexity = claimed(odds, sizes)
    kept, shuffled = divergences(laws(odds, sizes, shuffled=False)), divergences(laws(odds, sizes, shuffled=True))
    numbers = (kept[0] / theorem9, kept[1] / lemma3, shuffled[0] / theorem9, shuffled[1] / lemma3)
    assert rows()[name] == pytest.approx(numbers, rel=2e-3)
    assert numbers[1] > 1  # Lemma 3 fails in data-set order
    assert (numbers[0] > 1) == (len(sizes) > 3)  # and Theorem 9 does from K = 6 on
    assert max(numbers[2:]) <= 1  # both hold on shuffled samples
    assert kept[0] <= convexity  # joint convexity needs no order (E-11)


def test_on_equal_records_the_shuffled_mechanism_attains_lemma_3() -> None:
    """The others all of one class: order does not matter, and the output (2, 2) has the ratio 1 - g + g c."""
    odds, n = 55, 7
    answers = response(2, odds)
    others = math.comb(n - 1, 2) * np.outer(answers[0], answers[0])
    p, q = (others + (n - 1) * np.outer(answers[u], answers[0]) for u in (1, 0))
    largest = max(Fraction(int(x), int(y)) for x, y in zip((p + p.T).ravel(), (q + q.T).ravel(), strict=True))
    assert largest == 1 + Fraction(2, n) * (odds - 1)


def test_the_library_claims_what_is_called_claimed() -> None:
    """The same numbers from the table of bounds, for one K-ary response on a sample of two."""
    odds, sizes = SETTINGS["K = 6, c = 1000, blocks of 8^i"]
    classes, whole = len(sizes), odds + len(sizes) - 1
    masses = [Fraction(odds, whole), Fraction(1, whole)], [Fraction(1, whole), Fraction(odds, whole)]
    rest = [Fraction(1, whole)] * (classes - 2)
    one = cm.from_masses(masses[0] + rest, masses[1] + rest)
    sampled = one @ cm.WithoutReplacement(sample=2, population=1 + sum(sizes))
    theorem9, lemma3, _ = claimed(odds, sizes)
    assert sampled.rdp(2, bound="theorem9") == pytest.approx(theorem9, rel=1e-9)
    assert sampled.rdp(math.inf, bound="theorem9") == pytest.approx(lemma3, rel=1e-9)
