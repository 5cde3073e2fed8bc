"""The symmetric pair of a finite one, against the definition of both profiles."""

from __future__ import annotations

import itertools
from fractions import Fraction

import numpy as np

from cumulant.pairs.finite import symmetrised
from tests import effort


def laws(rng: np.random.Generator, count: int, largest: int) -> list[list[Fraction]]:
    found = []
    for _ in range(2):
        weights = [int(weight) for weight in rng.integers(0, largest, count)]
        weights[0] += 1
        found.append([Fraction(weight, sum(weights)) for weight in weights])
    return found


def profile(p: list[Fraction], q: list[Fraction], v: Fraction) -> Fraction:
    return sum((max(x - v * y, Fraction(0)) for x, y in zip(p, q, strict=True)), start=Fraction(0))


def test_the_profile_is_the_larger_of_both_at_every_corner_between_and_beyond() -> None:
    rng = np.random.default_rng(23)
    for _ in range(effort.drawn(60)):
        p, q = laws(rng, int(rng.integers(1, 9)), int(rng.choice([3, 12, 1000])))
        law = symmetrised(p, q)
        assert law.equal is not None
        corners = sorted({Fraction(1), Fraction(10**6), *law.ratios})
        corners += [(left + right) / 2 for left, right in itertools.pairwise(corners)]
        for v in corners:
            tail = [mass * (ratio - v) for ratio, mass in zip(law.ratios, law.masses, strict=True) if ratio > v]
            assert law.leak + sum(tail, start=Fraction(0)) == max(profile(p, q, v), profile(q, p, v))
        assert all(mass > 0 for mass in law.masses)
        assert all(left < right for left, right in zip((Fraction(1), *law.ratios), law.ratios, strict=False))
        both = [mass * (1 + ratio) for ratio, mass in zip(law.ratios, law.masses, strict=True)]
        assert law.leak + law.equal + sum(both, start=Fraction(0)) == 1
        assert law.equal >= 0


def test_eight_thousand_points_are_no_burden() -> None:
    """Work that grows with the square of the number of points takes an hour here."""
    rng = np.random.default_rng(29)
    p, q = laws(rng, 8_000, 10**6)
    law = symmetrised(p, q)
    for v in (Fraction(1), Fraction(3, 2), Fraction(20)):
        tail = sum(float(m * (r - v)) for r, m in zip(law.ratios, law.masses, strict=True) if r > v)
        assert abs(float(law.leak) + tail - float(_largest(p, q, v))) <= 1e-12


def _largest(p: list[Fraction], q: list[Fraction], v: Fraction) -> float:
    sides = [np.array([float(x) for x in law]) for law in (p, q)]
    alpha = float(v)
    return max(float(np.sum(np.maximum(a - alpha * b, 0))) for a, b in (sides, sides[::-1]))
