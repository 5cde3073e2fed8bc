"""Test functions against their definition: transforms by quadrature, lattice sums term by term, Theorem B on a lattice."""

import cmath
import dataclasses
import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from cumulant.exact.adaptive.reference_law import ReferenceTransform
from cumulant.exact.inversion.lattice_line import build_lattice_line
from cumulant.exact.inversion.line import Choice, Line
from cumulant.exact.test_functions import HOCKEY_STICK, THEOREM_B, TestFunction, theorem_w
from cumulant.numerics.arithmetic import BALLS

EVERY = [HOCKEY_STICK, THEOREM_B, theorem_w(0.5), theorem_w(2.0), theorem_w(16.0)]
NAMES = [test.name for test in EVERY]


def value(test: TestFunction, y: float) -> float:
    """g(y) as the theorems write it, not as its terms say."""
    if y <= 0:
        return 0.0
    if test is HOCKEY_STICK:
        return 1 - math.exp(-y)
    if test is THEOREM_B:
        return (1 + math.exp(-y)) * y - 2 * (1 - math.exp(-y))
    n = float(test.poles[1])
    return 1 - n / (n - 1) * math.exp(-y) + math.exp(-n * y) / (n - 1)


@pytest.mark.parametrize("test", EVERY, ids=NAMES)
def test_the_denominator_is_that_of_the_laplace_transform(test: TestFunction) -> None:
    nodes, weights = np.polynomial.legendre.leggauss(400)
    y = 30.0 * (nodes + 1)
    for z in (0.7 + 0.3j, 2.0 - 1.5j):
        transform = sum(w * 30.0 * value(test, v) * cmath.exp(-z * v) for v, w in zip(y, weights, strict=True))
        assert transform == pytest.approx(1 / test.denominator(z), rel=1e-9)
        with BALLS.at(128):
            from flint import acb

            assert complex(test.denominator(acb(z), BALLS.number)) == pytest.approx(test.denominator(z), rel=1e-14)


@pytest.mark.parametrize("test", EVERY, ids=NAMES)
def test_the_denominator_grows_as_the_tail_needs(test: TestFunction) -> None:
    for u in (0.1, 1.0, 30.0):
        assert abs(test.denominator(0.01 + 1j * u)) >= u**test.tail_power


@pytest.mark.parametrize("test", EVERY, ids=NAMES)
def test_lattice_sums_are_geometric_series(test: TestFunction) -> None:
    from flint import acb

    a, rest, z = 0.3, 0.11, 1.2 + 0.8j
    direct = sum(cmath.exp(-a * z * i) * value(test, rest + a * i) for i in range(400))
    with BALLS.at(128):
        spacing = BALLS.number(a)
        sums = test.lattice_sums((-spacing * acb(z)).exp(), spacing, test.column_decays(spacing))
        found = sum((f * s for f, s in zip(test.lattice_factors(BALLS.number(rest)), sums, strict=True)), start=acb(0))
        assert complex(found) == pytest.approx(direct, rel=1e-12)
        plain = [complex(each) for each in sums]
    factors, slopes = test.float_lattice_factors(np.array([rest, rest - 1e-6]))
    floats = [sum(f[i] * s for f, s in zip(factors, plain, strict=True)) for i in (0, 1)]
    assert floats[0] == pytest.approx(direct, rel=1e-12)
    slope = sum(f[0] * s for f, s in zip(slopes, plain, strict=True))
    assert (floats[1] - floats[0]) / 1e-6 == pytest.approx(slope, rel=1e-4)


LAW = ReferenceTransform(0.25, (-2, 0, 1, 3), (0.3, 0.3, 0.25, 0.15))
TIMES = 6


def expectation(test: TestFunction, start: float) -> float:
    """E_P[g(S - eps0)] by all outcomes: the first law has e^loss times the mass."""
    sums = {0: 1.0}
    for _ in range(TIMES):
        after: dict[int, float] = {}
        for place, mass in sums.items():
            for step, part in zip(LAW.places, LAW.masses, strict=True):
                after[place + step] = after.get(place + step, 0.0) + mass * part
        sums = after
    return sum(mass * math.exp(0.25 * place) * value(test, 0.25 * place - start) for place, mass in sums.items())


def line(law: ReferenceTransform = LAW) -> Line:
    with BALLS.at(160):
        return build_lattice_line(((law, TIMES),), Choice(3.0, 30.0, 60.0, 30.0, 0.0, 0.0, 4.0, 160))


@pytest.mark.parametrize("test", EVERY, ids=NAMES)
def test_one_line_encloses_every_expectation_on_a_lattice(test: TestFunction) -> None:
    """Theorem B folds as well: between two lattice points, at one, and far out."""
    found = line()
    for start in (0.1, 0.75, 2.6):
        with BALLS.at(160):
            ball = found.ball(BALLS.number(start), test)
        assert float(ball.mid()) == pytest.approx(expectation(test, start), rel=1e-11)
        logarithm, slope = found.floats(test).log_value(start + 0.01)
        assert logarithm == pytest.approx(math.log(expectation(test, start + 0.01)), rel=1e-10)
        after = math.log(expectation(test, start + 0.01 + 1e-6))
        assert slope == pytest.approx((after - logarithm) / 1e-6, rel=1e-3)


def test_a_wrong_term_is_noticed() -> None:
    wrong = dataclasses.replace(THEOREM_B, name="wrong")
    object.__setattr__(wrong, "terms", THEOREM_B.terms[:-1])  # which `TestFunction` itself refuses
    with BALLS.at(160):
        ball = line().ball(BALLS.number(0.1), wrong)
    assert abs(float(ball.mid()) / expectation(THEOREM_B, 0.1) - 1) > 0.01


class Leaking(ReferenceTransform):
    """A law beside which some loss is infinite."""

    __slots__ = ()

    def leak(self) -> Any:
        return BALLS.number(Fraction(1, 1000))


def test_theorem_b_claims_nothing_of_infinite_losses() -> None:
    """g is unbounded, so that a leak makes the expectation infinite; the hockey stick and Theorem W add it."""
    found = line(Leaking(LAW.width, LAW.places, LAW.masses))
    lost = 1 - 0.999**TIMES
    with BALLS.at(160):
        at = BALLS.number(0.1)
        assert found.upper(at, THEOREM_B, BALLS.number(1)) == BALLS.number(math.inf)
        for test in (HOCKEY_STICK, theorem_w(2.0)):
            assert float(found.ball(at, test).mid()) == pytest.approx(expectation(test, 0.1) + lost, rel=1e-11)


def test_a_function_whose_tail_would_be_too_small_is_refused() -> None:
    """1 - e^-3y has the pole 3 alone: its denominator is below u^2 by a factor of three."""
    three = tuple(dataclasses.replace(term, decay=term.decay * 3) for term in HOCKEY_STICK.terms)
    with pytest.raises(ValueError, match="one of them at most 1"):
        dataclasses.replace(HOCKEY_STICK, terms=three, poles=(Fraction(3),))
    with pytest.raises(ValueError, match="power 1 or 2"):
        dataclasses.replace(HOCKEY_STICK, multiplicity=3)


@pytest.mark.parametrize("pole", [Fraction(-1), Fraction(0)])
def test_a_pole_that_is_not_positive_is_refused(pole: Fraction) -> None:
    """e^y - 1 has the pole -1: it is not bounded, and its images were not."""
    with pytest.raises(ValueError, match="above 0"):
        dataclasses.replace(HOCKEY_STICK, poles=(pole,))


@pytest.mark.parametrize("test", EVERY, ids=NAMES)
def test_terms_and_poles_of_two_functions_are_refused(test: TestFunction) -> None:
    """Lines without a lattice use the poles alone, those on a lattice the terms alone."""
    first, *rest = test.terms
    with pytest.raises(ValueError, match="other poles"):
        dataclasses.replace(test, terms=(dataclasses.replace(first, coefficient=first.coefficient * 2), *rest))
    with pytest.raises(ValueError, match="other poles"):
        dataclasses.replace(test, poles=(*test.poles, Fraction(5)))


@pytest.mark.parametrize("test", EVERY, ids=NAMES)
def test_a_test_function_is_not_negative(test: TestFunction) -> None:
    assert all(value(test, y) >= 0 for y in np.geomspace(1e-3, 50, 200))
