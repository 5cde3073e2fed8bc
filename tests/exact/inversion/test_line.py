"""Smoothing against multinomials from the definition, and what it costs; each of its terms broken once."""

import dataclasses
import math
from fractions import Fraction
from typing import Any

import pytest

import cumulant as cm
from cumulant.accounting import rounds
from cumulant.exact.inversion import choose, line
from cumulant.exact.inversion.choose import Side
from cumulant.exact.inversion.line import Line
from cumulant.numerics.arithmetic import BALLS

P, Q = ["0.5", "0.3", "0.15", "0.05"], ["0.2", "0.2", "0.35", "0.25"]
TIMES = 12


def side() -> Side:
    """Four outputs, whose losses are on no lattice, seen as they are and not symmetrised."""
    run = cm.from_masses(P, Q) * TIMES
    found, _ = rounds.rounds(run.record())
    assert found is not None
    (_, terms, round_types), *_ = found.witnesses()
    assert round_types is not None
    return Side(terms, round_types)


def exact(epsilon: Fraction) -> Any:
    """SUM over all counts of the outputs, from the definition."""
    masses = [(BALLS.number(Fraction(p)), BALLS.number(Fraction(q))) for p, q in zip(P, Q, strict=True)]
    total, growth = BALLS.number(0), BALLS.number(epsilon).exp()
    for a in range(TIMES + 1):
        for b in range(TIMES + 1 - a):
            for c in range(TIMES + 1 - a - b):
                counts = (a, b, c, TIMES - a - b - c)
                ways = math.factorial(TIMES)
                p = q = BALLS.number(1)
                for (one, other), count in zip(masses, counts, strict=True):
                    ways //= math.factorial(count)
                    p, q = p * one**count, q * other**count
                total += ways * (p - growth * q).nonnegative_part()
    return total


def built(epsilon: float, smooth: str) -> Line:
    choice = choose.choose_line(side(), None, epsilon, 1e-6)
    assert choice is not None
    with BALLS.at(choice.bits):
        return line.build_line(side().round_types, choice, smooth=Fraction(smooth))


@pytest.mark.parametrize("epsilon", ["1", "5", "9"])
@pytest.mark.parametrize("smooth", ["1/100", "1/10"])
def test_smoothing_encloses_the_multinomial(epsilon: str, smooth: str) -> None:
    """Theorems L-upper and L-lower: 0 <= C_tau - delta <= tau^2 e^{tau^2/8} D_tau, of which about half is lost on each side."""
    found, at = built(float(epsilon), smooth), Fraction(epsilon)
    with BALLS.at(found.choice.bits):
        truth, here = exact(at), BALLS.number(at)
        assert found.lower(here) <= truth <= found.upper(here)
        added = found.upper(here) - truth
        price = found.smoothing_error(here)
        assert price / 4 <= added <= price
        # without its price the lower end is too high
        free = dataclasses.replace(found, smooth=Fraction(0), _cache={})
        assert free.lower(here) > truth


def test_the_other_form_from_below_holds_too() -> None:
    """delta >= C_tau - e^{3 tau^2/8} (C_2tau - C_tau)."""
    once, twice = built(5.0, "1/100"), built(5.0, "1/25")
    with BALLS.at(once.choice.bits):
        at = BALLS.number(5)
        low = once.ball(at) - once.images(at)
        other = low - BALLS.number(Fraction(3, 800)).exp() * (twice.upper(at) - low)
        truth = exact(Fraction(5))
        assert other <= truth
        assert other >= 0.9 * truth


def test_what_lies_beyond_the_last_frequency_is_in_the_price() -> None:
    """With half of the frequencies the sum of D_tau misses, and the bound of the rest takes that in."""
    found = built(5.0, "1/100")
    with BALLS.at(found.choice.bits):
        at, half = BALLS.number(5), len(found.values) // 2
        tau = BALLS.number(found.smooth)
        factor = tau * (tau / 8).exp()
        left = found.values[half:]
        short = dataclasses.replace(found, values=found.values[:half], beyond=max(abs(v) for v in left), _cache={})
        whole, part = factor * found.density_sum(at), factor * short.density_sum(at)
        assert abs(whole - part) > 1e-12 * whole
        assert short.smoothing_error(at) >= whole


def test_phases_that_are_turned_again_and_again_would_lose_all_digits() -> None:
    """A thousand frequencies: each phase is computed by itself, so that the ball stays as narrow as its summands."""
    found = built(5.0, "1/100000")
    assert found.frequencies > 300
    with BALLS.at(found.choice.bits):
        ball = found.partial_sum(BALLS.number(5))
        assert ball.rad() < ball * 1e-20
