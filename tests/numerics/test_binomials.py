"""Binomial tails in balls, against exact sums."""

import math
import random
from fractions import Fraction

from cumulant.numerics.arithmetic import BALLS
from cumulant.numerics.binomials import mass, upper_tail


def test_every_ball_holds_the_exact_sum() -> None:
    rng = random.Random(1)
    for _ in range(100):
        count, rate = rng.randint(1, 60), Fraction(rng.randint(1, 99), 100)
        least = rng.randint(-1, count + 2)
        masses = [math.comb(count, k) * rate**k * (1 - rate) ** (count - k) for k in range(count + 1)]
        with BALLS.at(128):
            tail = upper_tail(count, rate, least)
            assert tail.contains(BALLS.number(sum(masses[max(least, 0) :], start=Fraction(0))))
            assert tail.rad() < 1e-30
            assert mass(count, rate, least).contains(
                BALLS.number(masses[least] if 0 <= least <= count else Fraction(0))
            )


def test_large_counts() -> None:
    with BALLS.at(128):
        tail = upper_tail(10**7, Fraction(1, 1000), 10**4)
        assert tail.rad() < 1e-25
        assert 0.5 < float(tail) < 0.51
