"""The binary pair: certified references and exact fractions."""

from __future__ import annotations

import json
import math
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from cumulant.curves.closed_form import Response
from cumulant.numerics.arithmetic import BALLS
from cumulant.pairs.finite import DiscretePair
from cumulant.pairs.response import ResponsePair

MOMENTS = json.loads((Path(__file__).parents[1] / "oracles" / "moments_and_queries.json").read_text())["moments"]


def test_moments_against_the_certified_table() -> None:
    rows = [row for row in MOMENTS if row["mechanism"] == "rr"]
    assert len(rows) == 16
    for row in rows:
        pair = ResponsePair(p=Fraction(row["value"]))
        for values, reference in ((pair.moments, row["log_abs"]), (pair.positive_moments, row["log_pos"])):
            assert values([row["l"]])[0] == pytest.approx(float(reference), rel=1e-12, abs=1e-12)
            with BALLS.at(128):
                assert float(values([row["l"]], BALLS)[0]) == pytest.approx(float(reference), rel=1e-15)


@pytest.mark.parametrize("p", ["0.5000001", "0.6", "0.9", "0.999999"])
def test_it_is_the_discrete_pair_of_two_points(p: str) -> None:
    exact = Fraction(p)
    binary, masses = ResponsePair(p=exact), DiscretePair((exact, 1 - exact), (1 - exact, exact))
    orders, epsilons = [1, 2, 3, 50, 1000], [0.0, 0.01, 0.3, 1.0, 50.0]
    assert binary.moments(orders) == pytest.approx(masses.moments(orders), rel=1e-12, abs=1e-12)
    assert binary.positive_moments(orders) == pytest.approx(masses.positive_moments(orders), rel=1e-12, abs=1e-12)
    assert binary.profile(epsilons) == pytest.approx(masses.profile(epsilons), rel=1e-9, abs=0)
    lam = np.array([1e-9, 1e-3, 0.5, 1, 30, 1e9])
    assert binary.curve().cgf(lam) == pytest.approx(masses.curve().cgf(lam), rel=1e-12)
    assert binary.curve().kl() == pytest.approx(masses.curve().kl(), rel=1e-13)
    assert binary.curve().pure() == pytest.approx(masses.curve().pure(), rel=1e-14)


def test_given_by_epsilon() -> None:
    pair = ResponsePair(epsilon=Fraction(1))
    p = math.e / (1 + math.e)
    assert pair.curve() == Response(epsilon=Fraction(1))
    assert pair.profile([0.0, 0.5, 1.0]) == pytest.approx([2 * p - 1, p - math.exp(0.5) * (1 - p), 0.0], rel=1e-13)
    assert not pair.one_bit
    assert ResponsePair(p=Fraction(3, 5), one_bit=True).one_bit


def test_large_epsilon_and_no_information() -> None:
    large = ResponsePair(epsilon=Fraction(10_000))
    assert large.positive_moments([1, 2, 10**6]) == pytest.approx([0.0, 1e4, 1e4 * (10**6 - 1)], abs=1e-9)
    assert large.profile([0.0, 5000.0]) == pytest.approx([1.0, 1.0])
    assert ResponsePair(epsilon=Fraction(0)).moments([1, 2]).tolist() == [-np.inf, -np.inf]
    assert ResponsePair(p=Fraction(1, 2)).profile([0.0]).tolist() == [0.0]
    assert ResponsePair(p=Fraction(1, 2)).positive_moments([1, 5]).tolist() == [-np.inf, -np.inf]


def test_exact_profile() -> None:
    with BALLS.at(128):
        balls = ResponsePair(p=Fraction(3, 4)).profile([Fraction(0), Fraction(1), Fraction(2)], BALLS)
        assert [float(ball) for ball in balls] == pytest.approx([0.5, 0.75 - math.e / 4, 0.0], rel=1e-14)
