"""Eq. (9) in enclosures and in balls that take only the terms that matter, against balls of all terms; and what has no formula
in enclosures at all.
"""

import math
import random
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import cumulant as cm
from cumulant.bounds.binomial_sum import BinomialSum, PaperMaximum
from cumulant.bounds.bound import amplified
from cumulant.bounds.large_orders import _LARGEST, _SUM, _log_shares
from cumulant.bounds.without_replacement import WITHOUT_REPLACEMENT, theorem9
from cumulant.curves.closed_form import Concentrated
from cumulant.curves.curve import Composition, Curve
from cumulant.curves.posteriors import DirichletPosterior, SmoothFamily
from cumulant.curves.user_function import Function
from cumulant.numerics.arithmetic import BALLS, FLOATS
from cumulant.numerics.differences import differences, leading_differences, up_to
from cumulant.numerics.enclosure import BOUNDED, UPPER, Enclosure
from cumulant.numerics.logspace import log_binomials
from cumulant.numerics.rounding import MEASURED
from cumulant.pairs.densities import DensityPair
from cumulant.pairs.finite import DiscretePair
from cumulant.pairs.gaussian import GaussianPair
from cumulant.pairs.laplace import LaplacePair
from cumulant.pairs.pair import Pair
from cumulant.pairs.response import ResponsePair

RANDOM = random.Random(20250114)
WIDTH = 1e-12
ARGUMENTS = np.array([0.1, 1.0, 1.5, 2.0, 7.0, 31.25, 64.0, 255.0])
MOMENTS = ("theorem27", "theorem27-min", "absolute-moment", "positive-part", "one-bit")


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    """Unselected branches overflow, as in the library."""
    with np.errstate(all="ignore"):
        yield


def exponent(low: float, high: float) -> Fraction:
    return Fraction(f"{10 ** RANDOM.uniform(low, high):.6g}")


def masses(size: int) -> tuple[Fraction, ...]:
    parts = [RANDOM.randint(1, 1000) for _ in range(size)]
    return tuple(Fraction(part, sum(parts)) for part in parts)


def pairs() -> list[Pair]:
    return [
        GaussianPair(exponent(-2.5, 1)),
        LaplacePair(exponent(-3, 1.5)),
        ResponsePair(epsilon=exponent(-4, 1), one_bit=True),
        ResponsePair(p=Fraction(1, 2) + exponent(-6, -0.4), one_bit=True),
        DiscretePair(masses(4), masses(4)),
    ]


def sums(pair: Pair, *names: str) -> list[BinomialSum]:
    rate, base = exponent(-5, -0.1), pair.curve()
    rows = [WITHOUT_REPLACEMENT[name] for name in names]
    return [row.curve(base, pair, rate) for row in rows if not row.objection(base, pair)]  # type: ignore[misc]


def every_term(curve: BinomialSum, order: int, bits: int) -> Any:
    """Eq. (9) at an integer order with all its terms in balls, nothing left out."""
    with BALLS.at(bits):
        j = np.arange(2, order + 1).astype(object)
        logs = log_binomials(order, BALLS) + j * BALLS.number(curve.rate).log() + curve._least_coefficients(j, BALLS)
        if isinstance(curve, PaperMaximum):
            largest = BALLS.number(0)
            for each in logs:
                largest = largest.max(each)
            return largest + BALLS.number(order).log()
        return BALLS.log1p_sum_exp(logs)


def chord(curve: BinomialSum, lam: float, bits: int) -> Any:
    low, share = int(lam // 1), Fraction(lam) % 1
    left = every_term(curve, low + 1, bits) if low else BALLS.number(0)
    with BALLS.at(bits):
        right = every_term(curve, low + 2, bits) if share else left
        return BALLS.number(1 - share) * left + BALLS.number(share) * right


def excess(exact: Any, found: Enclosure, index: int) -> float:
    """How far the upper end lies above the value, relatively; the value must be inside."""
    with BALLS.at(600):
        low, high = BALLS.number(float(found.lower()[index])), BALLS.number(float(found.upper()[index]))
        assert low <= exact.lower(), (exact, found[index])
        assert exact.upper() <= high, (exact, found[index])
        return float((high - exact) / exact) if exact > 0 and high.is_finite() else 0.0


def checked(curve: BinomialSum, arguments: np.ndarray, bits: int = 300) -> list[float]:
    found = curve.cgf(arguments, BOUNDED)
    return [excess(chord(curve, x, bits), found, i) for i, x in enumerate(arguments.tolist())]


# ---- enclosures of sums over moments


def test_sums_over_moments_are_enclosed() -> None:
    widths = []
    for _ in range(5):
        for pair in pairs():
            for curve in sums(pair, *MOMENTS):
                assert curve.enclosed
                widths += checked(curve, ARGUMENTS)
    assert len(widths) > 600
    assert max(widths) < WIDTH


def test_the_estimate_of_the_paper_is_enclosed() -> None:
    widths = []
    for pair in [each for _ in range(4) for each in pairs()]:
        for curve in sums(pair, "theorem9-max"):
            widths += checked(curve, ARGUMENTS)
    for pair in pairs():  # above order 8192 by blocks, and every term here
        for curve in sums(pair, "theorem9-max"):
            far = excess(every_term(curve, 8200, 300), curve.cgf(np.array([8199.0]), BOUNDED), 0)
            widths.append(far)
    assert max(widths) < WIDTH


@pytest.mark.parametrize("shift", ["1/200", "1/5", "2"])
@pytest.mark.parametrize("rate", ["0.001", "0.4"])
def test_orders_in_the_thousands_are_enclosed(shift: str, rate: str) -> None:
    for pair in (GaussianPair(Fraction(shift)), LaplacePair(Fraction(shift))):
        base = pair.curve()
        for name in ("theorem27", "positive-part"):
            curve: Any = amplified(WITHOUT_REPLACEMENT, name, base, pair, Fraction(rate), "")
            order = np.array([1001.0])
            narrow = BALLS.number(0)
            with BALLS.at(300):
                narrow = curve._ball(1002, BALLS)
            assert narrow.rel_accuracy_bits() > 100
            assert excess(narrow, curve.cgf(order, BOUNDED), 0) < 1e-11


def test_many_orders_at_once_or_one_by_one_are_the_same_bits() -> None:
    pair = GaussianPair(Fraction(1, 5))
    names = ("theorem27", "positive-part")
    orders = np.arange(1.0, 120.0)
    for name in names:
        whole, curve = (amplified(WITHOUT_REPLACEMENT, name, pair.curve(), pair, Fraction(1, 50), "") for _ in range(2))
        enclosed = whole.cgf(orders, BOUNDED)
        for i in RANDOM.sample(range(orders.size), orders.size):
            one = curve.cgf(orders[i : i + 1], BOUNDED)
            assert one.upper()[0] == pytest.approx(enclosed.upper()[i], rel=2e-15, abs=0)


def test_moments_that_would_take_too_long_are_replaced_by_bounds() -> None:
    """A wide noise at an order in the thousands with a large rate: terms in the middle matter, and their sums cancel."""
    pair = GaussianPair(Fraction(1, 100))
    curve = amplified(WITHOUT_REPLACEMENT, "theorem27", pair.curve(), pair, Fraction(9, 10), "")
    lam = np.array([8000.0])
    floats, found = curve.cgf(lam)[0], curve.cgf(lam, BOUNDED)
    assert floats * (1 + 1e-5) <= found.upper()[0] <= floats * 1.001
    assert found.lower()[0] <= floats
    with BALLS.at(128):
        ball = curve.cgf(np.array([Fraction(8000)], dtype=object), BALLS)[0]
    assert floats * (1 - 1e-12) <= float(ball.upper()) <= floats * 1.001


# ---- balls of the terms that matter


@pytest.mark.parametrize("order", [49, 100, 300, 1000])
@pytest.mark.parametrize("rate", ["1e-6", "0.001", "0.2", "0.9"])
def test_balls_of_few_terms_hold_the_sum_of_all(order: int, rate: str) -> None:
    for pair in (GaussianPair(Fraction(1, 5)), GaussianPair(Fraction(2)), LaplacePair(Fraction(1, 2)), pairs()[2]):
        base = pair.curve()
        for name in ("theorem9", "theorem27", "positive-part", "theorem9-max"):
            curve: Any = amplified(WITHOUT_REPLACEMENT, name, base, pair, Fraction(rate), "")
            exact = every_term(curve, order, 600)
            for bits in (128, 512):
                with BALLS.at(bits):
                    found = curve._ball(order, BALLS)
                assert found.contains(exact.mid()), (pair, name)
                assert found.rel_accuracy_bits() >= bits // 2 + 8


def test_fewer_terms_are_evaluated_than_there_are() -> None:
    pair = GaussianPair(Fraction(1, 5))
    curve: Any = amplified(WITHOUT_REPLACEMENT, "theorem9", pair.curve(), pair, Fraction(1, 1000), "")
    with BALLS.at(128):
        logs, left_out, _ = curve._logs(300, BALLS, drop=60.0)
    assert logs.size + left_out == 299
    assert logs.size < 40


def test_samples_of_samples_of_thousands_of_terms_are_certified_soon() -> None:
    inner = BinomialSum(Concentrated(Fraction(1, 50)), Fraction(1, 10), theorem9(Concentrated(Fraction(1, 50))))
    outer: Any = BinomialSum(inner, Fraction(1, 20), theorem9(inner))
    with BALLS.at(128):
        found = outer._ball(2000, BALLS)
    assert found.rel_accuracy_bits() > 70
    assert excess(found, outer.cgf(np.array([1999.0]), BOUNDED), 0) < 1e-11


# ---- far orders


@pytest.mark.parametrize("order", [8193, 10**5, 10**9])
@pytest.mark.parametrize("rate", ["0.001", "0.3"])
def test_far_orders_are_enclosed(order: int, rate: str) -> None:
    cases = [
        (GaussianPair(Fraction(1, 5)), "theorem9"),
        (GaussianPair(Fraction(1, 5)), "theorem27"),
        (LaplacePair(Fraction(1, 2)), "pure-extras"),
        (LaplacePair(Fraction(1, 2)), "theorem27"),
        (ResponsePair(p=Fraction(3, 5), one_bit=True), "one-bit"),
    ]
    for pair, name in cases:
        curve: Any = amplified(WITHOUT_REPLACEMENT, name, pair.curve(), pair, Fraction(rate), "")
        lam = np.array([order - 1.0])
        with BALLS.at(256):
            exact = curve._ball(order, BALLS)
        assert excess(exact, curve.cgf(lam, BOUNDED), 0) < 1e-12
        assert float(exact) == pytest.approx(curve.cgf(lam)[0], rel=1e-12)


@pytest.mark.parametrize("upward", [True, False])
def test_the_share_of_a_block_is_above_the_sum_of_its_terms(upward: bool) -> None:
    generator = np.random.default_rng(8)
    for _ in range(200):
        order = int(generator.integers(70, 5000))
        start = int(generator.integers(2, order))
        end = int(generator.integers(start + 1, min(order, start + 40) + 1))
        tilt, bend, log_rate = generator.normal(0, 3), 10 ** generator.uniform(-6, 0), generator.uniform(-8, 0)
        log_c = {j: tilt * j + bend * (j - start) ** 2 / 2 for j in range(start, end + 1)}
        with BALLS.at(200):
            terms = [BALLS.number(log_c[j] + j * log_rate).exp() * math.comb(order, j) for j in range(start, end)]
            exact = sum(terms, start=BALLS.number(0)).log(), max(terms, key=float).log()
        blocks = np.array([[start], [end]], dtype=np.float64)
        ends = np.array([[log_c[start]], [log_c[end]]])
        for whole, truth in zip((_SUM, _LARGEST), exact, strict=True):
            share = float(_log_shares(blocks, ends, order, log_rate, upward, FLOATS, whole)[0])
            assert float(truth) <= share + 1e-9 * (1 + abs(share))
            if end == start + 1:
                assert share == pytest.approx(float(truth), rel=1e-12)


def test_a_block_is_above_the_sum_of_its_terms(monkeypatch: pytest.MonkeyPatch) -> None:
    for pair, name in ((GaussianPair(Fraction(1, 50)), "theorem9"), (LaplacePair(Fraction(1, 2)), "theorem27")):
        curve: Any = amplified(WITHOUT_REPLACEMENT, name, pair.curve(), pair, Fraction(1, 100), "")
        exact = every_term(curve, 3000, 400)
        monkeypatch.setattr("cumulant.bounds.binomial_sum.TERM_BY_TERM", 64)
        with BALLS.at(128):
            found = curve._ball(3000, BALLS)
        monkeypatch.undo()
        assert exact.upper() <= found.upper() <= exact * (1 + BALLS.number(1e-12))


# ---- upper bounds of moments in closed form


@pytest.mark.parametrize("shift", ["1e-6", "1/100", "1/5", "1", "3", "20", "500"])
def test_closed_forms_are_above_the_moments_and_not_far(shift: str) -> None:
    orders = np.array([2, 3, 4, 9, 25, 26, 80])
    for pair in (GaussianPair(Fraction(shift)), LaplacePair(Fraction(shift))):
        with BALLS.at(200):
            for exact, found in (
                (pair.moments(orders, BALLS), pair.moments(orders, UPPER)),
                (pair.positive_moments(orders, BALLS), pair.positive_moments(orders, UPPER)),
            ):
                for ball, upper in zip(exact, found.upper().tolist(), strict=True):
                    assert ball.upper() <= BALLS.number(upper) <= ball + BALLS.number(1.1)


def test_closed_forms_far_out_are_above_the_floats() -> None:
    orders = np.array([1000, 10**5, 10**9])
    for shift in ("1/1000", "1/5", "3"):
        for pair in (GaussianPair(Fraction(shift)), LaplacePair(Fraction(shift))):
            floats, upper = pair.moments(orders), pair.moments(orders, UPPER).upper()
            assert (upper >= floats * (1 - 1e-13 * np.sign(floats))).all()
            assert (upper <= floats + 1.1 + 1e-12 * np.abs(floats)).all()


# ---- alternating sums


def test_windows_of_alternating_sums_hold_the_whole_sum() -> None:
    t = Fraction(1, 3)

    def f(i: np.ndarray) -> Any:
        return BALLS.exp(BALLS.asarray(i.astype(object)) * (i - 1) * BALLS.number(t * t / 2))

    orders, i = np.array([60, 150, 151]), np.arange(152.0)
    log_f = i * (i - 1) * float(t) ** 2 / 2
    with BALLS.at(2000):
        exact = leading_differences(f(np.arange(152)), BALLS)[orders]
    with BALLS.at(128):
        found = differences(orders, f, log_f, log_f[orders], BALLS)
        for ball, whole in zip(found, exact, strict=True):
            assert ball.contains(whole.log().mid())
            assert ball.rel_accuracy_bits() > 80


def test_sums_that_would_take_too_long_are_not_known() -> None:
    def f(i: np.ndarray) -> Any:
        raise AssertionError("nothing is evaluated")

    orders = np.array([5000])
    with BALLS.at(128):
        assert differences(orders, f, np.zeros(5001), np.array([-1e6]), BALLS)[0].is_nan()
        assert GaussianPair(Fraction(1, 10**6)).moments([5000], BALLS)[0].is_nan()


def test_a_ball_up_to_a_number_holds_0_and_the_number() -> None:
    with BALLS.at(64):
        found = up_to(BALLS.number(Fraction(7, 3)))
        assert found.contains(BALLS.number(0))
        assert found.contains(BALLS.number(Fraction(7, 3)))


# ---- curves without a formula in enclosures


def plain_curves() -> list[Curve]:
    return [
        DirichletPosterior((Fraction(300), Fraction(500), Fraction(200)), 50),
        DirichletPosterior((Fraction(2), Fraction(3)), 10, Fraction(1, 100)),
        SmoothFamily(Fraction(1), None, lambda r: math.inf, lambda r: 1 / 7),
        SmoothFamily(Fraction(1, 5), Fraction(99, 100), lambda r: math.inf, lambda r: 1 / (1 - r) ** 2),
        Function(lambda order: order / 18 + (order + 1).log() / 100),
    ]


def test_curves_without_a_formula_get_their_radius_from_balls() -> None:
    for plain in plain_curves():
        assert not plain.enclosed
        nested = BinomialSum(plain, Fraction(1, 50), theorem9(plain))
        for curve in (plain, nested, Composition(((plain, 7), (nested, 1000)))):
            found = curve.cgf(ARGUMENTS, BOUNDED)
            with BALLS.at(300):
                for i, x in enumerate(ARGUMENTS.tolist()):
                    assert excess(curve.cgf(np.array([Fraction(x)], dtype=object), BALLS)[0], found, i) < WIDTH
                ends = [(curve.kl(BALLS), curve.at_one(BOUNDED)), (curve.pure(BALLS), curve.at_infinity(BOUNDED))]
            for exact, end in ends:
                assert excess(exact, Enclosure(np.array([end.mid]), np.array([end.radius])), 0) < WIDTH


class Refusing(Concentrated):
    """A curve whose balls cannot be had."""

    enclosed = False

    def _cgf(self, lam: Any, on: Any) -> Any:
        if on.exact:
            raise cm.CertificateError("none")
        return super()._cgf(lam, on)


def test_without_a_ball_nothing_is_known_unless_it_is_estimated() -> None:
    curve = Refusing(Fraction(1, 50))
    found = curve.cgf(np.array([1.0, 2.0]), BOUNDED)
    assert (found.upper() == math.inf).all()
    assert (found.lower() == -math.inf).all()
    assert BinomialSum(curve, Fraction(1, 10), theorem9(curve)).cgf(np.array([3.0]), BOUNDED).upper()[0] == math.inf


def test_what_rests_on_functions_of_floats_keeps_the_measured_radius() -> None:
    lam, square_root = np.array([1.0, 5.0, 100.0]), Function(math.sqrt)
    found = square_root.cgf(lam, BOUNDED)
    assert (found.radius == MEASURED * found.mid).all()
    assert found.mid.tolist() == square_root.cgf(lam).tolist()
    mixed = Function(lambda order: min(order / 18, 3.0))  # a ball below order 54, a float above
    radius = mixed.cgf(lam, BOUNDED).radius / mixed.cgf(lam)
    assert radius[:2].max() < 1e-15
    assert radius[2] == pytest.approx(MEASURED)
    for base in (square_root, mixed):
        curve = BinomialSum(base, Fraction(1, 100), theorem9(base))
        assert curve.estimated
        values, upper = curve.cgf(lam), curve.cgf(lam, BOUNDED).upper()
        assert (values <= upper).all()
        assert (upper <= values * (1 + 1e-11)).all()


def test_moments_of_densities_keep_the_measured_radius() -> None:
    normal = DensityPair(
        lambda x: -((x - 1) ** 2) / 2 - math.log(2 * math.pi) / 2, lambda x: -(x**2) / 2 - math.log(2 * math.pi) / 2
    )
    found = normal.moments([2, 5], BOUNDED)
    assert (found.radius == MEASURED * np.abs(found.mid)).all()
    exact = GaussianPair(Fraction(1)).moments([2, 5], BOUNDED)
    assert found.mid == pytest.approx(exact.mid, rel=1e-9)
    curve = amplified(WITHOUT_REPLACEMENT, "theorem27", normal.curve(), normal, Fraction(1, 10), "")
    assert curve.estimated


# ---- what is returned


@pytest.mark.parametrize("bound", ["theorem27", "positive-part", "absolute-moment", "theorem9-max"])
def test_arrays_are_above_the_certified_numbers(bound: str) -> None:
    run = cm.Gaussian(sigma=5) @ cm.WithoutReplacement(rate=0.001) * 1000
    orders = [2.0, 17.5, 64.0, 256.0]
    for order, value in zip(orders, run.rdp(orders, bound=bound).tolist(), strict=True):
        with BALLS.at(300):
            lam = Fraction(order) - 1
            exact = run.curve(bound).cgf(np.array([lam], dtype=object), BALLS)[0] / BALLS.number(lam)
            assert exact.upper() <= BALLS.number(value) <= exact * (1 + BALLS.number(WIDTH))
    found = run.guarantee(delta="1e-6", bound=bound)
    assert found.rigour == "proved"
    assert found.verify().holds
