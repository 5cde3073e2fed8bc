"""The rounding bounds of docs/rounding.md against balls: each operation, each family, and the arrays that are returned."""

import math
import random
from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import cumulant as cm
from cumulant.accounting.choices import ConversionName
from cumulant.bounds.binomial_sum import BinomialSum
from cumulant.bounds.caps import JointConvexity, PureCap, WorstPure
from cumulant.bounds.without_replacement import pure_extras, theorem9
from cumulant.conversion.conversions import CONVERSIONS
from cumulant.curves.closed_form import Concentrated, LaplaceShift, Response
from cumulant.curves.curve import Composition, Curve, Lowest
from cumulant.curves.points import Points
from cumulant.numerics.arithmetic import BALLS, FLOATS
from cumulant.numerics.enclosure import BOUNDED, EXCESS, FAR, NEAR, SUMMED, Enclosure
from cumulant.numerics.logspace import BINOMIAL, log_binomials
from cumulant.numerics.rounding import U
from cumulant.pairs.finite import MassCurve
from tests.effort import drawn

RANDOM = random.Random(20240517)
WIDTH = 1e-12


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    """Unselected branches overflow, as in the library, which asks for enclosures with the same warnings off."""
    with np.errstate(all="ignore"):
        yield


def ball(x: Any) -> Any:
    return BALLS.number(x)


def inside(exact: Any, found: Enclosure, index: int) -> bool:
    """Whether the narrow ball lies between the ends."""
    low, high = float(found.lower()[index]), float(found.upper()[index])
    if math.isinf(high):
        return True
    return bool(exact.lower() >= ball(low)) and bool(exact.upper() <= ball(high))


# ---- the model: elementary functions


def spread(low: float, high: float, smallest: float = 1e-300, count: int = 20_000) -> np.ndarray:
    """Random arguments of every magnitude in (low, high), of both signs if the interval has both."""
    generator = np.random.default_rng(1)
    size = np.exp(generator.uniform(math.log(smallest), math.log(max(abs(low), abs(high))), count))
    plain = generator.uniform(low, high, count)
    both = np.concatenate([size, -size, plain])
    return both[(both > low) & (both < high)]


ELEMENTARY: dict[str, tuple[Callable[[Any], Any], Callable[[Any], Any], np.ndarray, float]] = {
    "exp": (np.exp, lambda x: x.exp(), spread(-700, 700), NEAR),
    "log": (np.log, lambda x: x.log(), np.append(spread(0, 1e300), 1 + spread(-0.5, 0.5, 1e-16)), NEAR),
    "expm1": (np.expm1, lambda x: x.expm1(), spread(-700, 700), FAR),
    "log1p": (np.log1p, lambda x: x.log1p(), spread(-1, 1e300), FAR),
    "tanh": (np.tanh, lambda x: x.tanh(), spread(-40, 40), FAR),
    "sinh": (np.sinh, lambda x: x.sinh(), spread(-1, 1), FAR),
    "log1p_exp": (FLOATS.log1p_exp, lambda x: x.exp().log1p(), spread(-700, 700), SUMMED),
    "excess": (FLOATS.excess, lambda x: x.expm1() - x, spread(-700, 700, 1e-140), EXCESS),
}


@pytest.mark.parametrize("name", ELEMENTARY)
def test_the_platform_keeps_the_assumed_accuracy(name: str) -> None:
    function, exact, arguments, allowed = ELEMENTARY[name]
    found = function(arguments)
    with BALLS.at(1200 if name == "excess" else 300):
        worst = 0.0
        for x, y in zip(arguments.tolist(), found.tolist(), strict=True):
            value = exact(ball(x))
            if abs(y) > 1e-290:
                worst = max(worst, float(abs((ball(y) - value) / value).upper()))
    assert 0 < worst <= allowed


def test_sums_go_through_few_additions() -> None:
    # ones and a part of an ulp: every addition that touches the large term loses the small one, never more than assumed
    for size in (7, 100, 1000, 8191, 100_000):
        for rows in (1, 3):
            terms = np.random.default_rng(size).uniform(0.5, 1.0, (rows, size))
            exact = [sum(map(Fraction, row)) for row in terms.tolist()]
            for found, total in zip(np.sum(terms, axis=-1).tolist(), exact, strict=True):
                assert abs(Fraction(found) - total) <= Fraction((28 + math.log2(size)) * U) * total


# ---- the operations


def enclosure(generator: np.random.Generator, count: int, low: float, high: float) -> tuple[Enclosure, list[Fraction]]:
    """Random enclosures with midpoints in [low, high], and for each a number inside, often at its end."""
    mid = generator.uniform(low, high, count)
    radius = np.abs(mid) * 10 ** generator.uniform(-17, -3, count)
    share = [Fraction(float(s)) for s in np.clip(generator.normal(0, 2, count), -1, 1)]
    return Enclosure(mid, radius), [Fraction(m) + s * Fraction(r) for m, s, r in zip(mid, share, radius, strict=True)]


OPERATIONS: dict[str, tuple[Callable[..., Any], Callable[..., Any], tuple[tuple[float, float], ...]]] = {
    "add": (lambda x, y: x + y, lambda x, y: x + y, ((-3, 3), (-3, 3))),
    "subtract": (lambda x, y: x - y, lambda x, y: x - y, ((1, 1.001), (1, 1.001))),
    "multiply": (lambda x, y: x * y, lambda x, y: x * y, ((-3, 3), (-1e9, 1e9))),
    "divide": (lambda x, y: x / y, lambda x, y: x / y, ((-3, 3), (0.01, 7))),
    "exp": (BOUNDED.exp, lambda x: x.exp(), ((-50, 50),)),
    "log": (BOUNDED.log, lambda x: x.log(), ((0.5, 1.5),)),
    "expm1": (BOUNDED.expm1, lambda x: x.expm1(), ((-50, 5),)),
    "log1p": (BOUNDED.log1p, lambda x: x.log1p(), ((-0.99, 2),)),
    "tanh": (BOUNDED.tanh, lambda x: x.tanh(), ((-3, 3),)),
    "sinh": (BOUNDED.sinh, lambda x: x.sinh(), ((-3, 3),)),
    "excess": (BOUNDED.excess, lambda x: x.expm1() - x, ((-5, 5),)),
    "log_expm1": (BOUNDED.log_expm1, lambda x: x.expm1().log(), ((0.01, 50),)),
    "log_cosh": (BOUNDED.log_cosh, lambda x: x.cosh().log(), ((-4, 4),)),
    "log_excess": (BOUNDED.log_excess, lambda x: (x.expm1() - x).log(), ((-5, 60),)),
    "log1p_exp": (BOUNDED.log1p_exp, lambda x: x.exp().log1p(), ((-60, 60),)),
    "log_add_exp": (BOUNDED.log_add_exp, lambda x, y: (x.exp() + y.exp()).log(), ((-9, 9), (-9, 9))),
}


@pytest.mark.parametrize("name", OPERATIONS)
def test_an_operation_encloses_what_it_is_given(name: str) -> None:
    operation, exact, ranges = OPERATIONS[name]
    generator = np.random.default_rng(3)
    arguments = [enclosure(generator, drawn(700), *each) for each in ranges]
    found = operation(*(each for each, _ in arguments))
    assert np.isfinite(found.radius).mean() > 0.9
    with BALLS.at(300):
        for i, points in enumerate(zip(*(points for _, points in arguments), strict=True)):
            assert inside(exact(*map(ball, points)), found, i), (name, points)


def test_sums_of_exponentials_enclose() -> None:
    generator = np.random.default_rng(5)
    for size, scale in ((3, 1.0), (50, 30.0), (3000, 300.0)):
        mid = generator.uniform(-scale, scale, (1, size))
        radius = np.abs(mid) * 10 ** generator.uniform(-16, -8, (1, size))
        found = BOUNDED.log1p_sum_exp(Enclosure(mid, radius))
        for sign in (-1, 1):
            with BALLS.at(300):
                total = ball(0)
                for m, r in zip(mid[0].tolist(), radius[0].tolist(), strict=True):
                    total += ball(Fraction(m) + sign * Fraction(r)).exp()
                assert inside(total.log1p(), found, 0)


def test_exact_zeros_and_infinities_stay() -> None:
    nothing = BOUNDED.number(Fraction(0))
    assert float((nothing * 7).upper()) == 0
    assert float(BOUNDED.log1p_exp(BOUNDED.log(nothing)).upper()) == 0
    assert float((BOUNDED.number(np.inf) * 3 + 1).upper()) == math.inf
    unknown = BOUNDED.log(BOUNDED.number(Fraction(1)) - 1.0)  # 0 ± 0 is exact, 0 ± r is not
    assert float(unknown.upper()) in (-math.inf, math.inf)
    assert float(BOUNDED.log(Enclosure(0.0, 1e-20)).upper()) == math.inf
    assert cm.PureDP(0).rdp([2, math.inf]).tolist() == [0, 0]


def test_binomials_keep_their_relative_accuracy() -> None:
    for order in (2, 3, 4, 5, 17, 100, 999, 4096, 8192):
        found = log_binomials(order)
        with BALLS.at(200):
            for j in {2, 3, order // 3, order // 2, order // 2 + 1, order - 1} & set(range(2, order)):
                exact = ball(math.comb(order, j)).log()
                assert float(abs((ball(float(found[j - 2])) - exact) / exact).upper()) <= BINOMIAL
        assert found[-1] == 0


# ---- the families


def exponent(low: float, high: float) -> Fraction:
    return Fraction(f"{10 ** RANDOM.uniform(low, high):.6g}")


def masses(size: int) -> tuple[Fraction, ...]:
    parts = [RANDOM.randint(1, 1000) for _ in range(size)]
    return tuple(Fraction(part, sum(parts)) for part in parts)


def bases() -> list[Curve]:
    return [
        Concentrated(exponent(-6, 2), exponent(-6, 1)),
        Concentrated(exponent(-4, 0)),
        LaplaceShift(exponent(-6, 2)),
        Response(p=Fraction(1, 2) + exponent(-8, -0.4)),
        Response(epsilon=exponent(-8, 2)),
        Response(epsilon=exponent(-4, 1), rate=exponent(-6, -1)),
        MassCurve(masses(4), masses(4)),
        Points(
            (Fraction(3, 2), Fraction(4), Fraction(9)), (Fraction(1, 7), Fraction(1, 3), Fraction(2)), None, Fraction(3)
        ),
    ]


def sampled(base: Curve) -> list[Curve]:
    rate = exponent(-6, -0.5)
    found: list[Curve] = [JointConvexity(base, rate), BinomialSum(base, rate, theorem9(base))]
    if base.pure() < np.inf:
        found += [PureCap(base, rate), WorstPure(base, rate)]
        found.append(BinomialSum(base, rate, theorem9(base) + pure_extras(base)))
    return found


def families(rounds: int) -> list[Curve]:
    found = []
    for _ in range(rounds):
        for base in bases():
            found += [base, *sampled(base)]
        found.append(Composition(tuple((curve, RANDOM.randint(1, 10**6)) for curve in RANDOM.sample(found, 3))))
        low = RANDOM.choice(bases())
        found.append(Lowest(tuple(sampled(low))).projected())
        inner = BinomialSum(low, exponent(-3, -1), theorem9(low))
        found.append(BinomialSum(inner, exponent(-3, -1), theorem9(inner)))
    return found


ARGUMENTS = np.array([2.0**-30, 0.1, 1.0, 1.5, 2.0, 7.0, 31.25, 64.0, 255.0])


def check(curve: Curve, arguments: np.ndarray, bits: int = 400) -> list[float]:
    """Assert that each enclosure holds the exact value; the relative widths."""
    found = curve.cgf(arguments, BOUNDED)
    widths = []
    with BALLS.at(bits):
        for i, x in enumerate(arguments.tolist()):
            exact = curve.cgf(np.array([Fraction(x)], dtype=object), BALLS)[0]
            assert inside(exact, found, i), (curve, x, exact, found[i])
            if np.isfinite(found.mid[i]) and exact > 0:
                widths.append(float(found.upper()[i] / found.mid[i] - 1))
        for end, value in ((curve.kl(BALLS), curve.at_one(BOUNDED)), (curve.pure(BALLS), curve.at_infinity(BOUNDED))):
            assert inside(end, Enclosure(np.array([value.mid]), np.array([value.radius])), 0), (curve, end, value)
    return widths


def test_every_proved_family_is_enclosed() -> None:
    widths = []
    for curve in families(4):
        assert curve.enclosed, curve
        widths += check(curve, ARGUMENTS)
    assert len(widths) > 900
    assert max(widths) < WIDTH


def test_extreme_settings_are_enclosed() -> None:
    tiny, huge = Fraction(1, 10**200), Fraction(10) ** 8
    for base in (
        Concentrated(tiny),
        Concentrated(huge),
        LaplaceShift(tiny),
        LaplaceShift(huge),
        Response(epsilon=tiny),
        Response(epsilon=Fraction(600)),
        Response(p=1 - Fraction(1, 10**250)),
        MassCurve((tiny, 1 - tiny), (Fraction(1, 2), Fraction(1, 2))),
    ):
        for rate in (Fraction(1, 10**9), 1 - Fraction(1, 10**9)):
            for curve in (base, JointConvexity(base, rate), BinomialSum(base, rate, theorem9(base))):
                check(curve, np.array([2.0**-40, 1.0, 2.5, 40.0, 500.0]), bits=3000)


def test_large_orders_are_enclosed() -> None:
    for base in (Concentrated(Fraction(1, 50)), LaplaceShift(Fraction(1, 10)), Response(p=Fraction(11, 20))):
        curve = BinomialSum(base, Fraction(1, 100), theorem9(base))
        check(curve, np.array([1000.0, 4095.5, 8000.0]))


# ---- what is returned

STEPS = [
    cm.Gaussian(sigma=5) @ cm.WithoutReplacement(rate=0.001),
    cm.Laplace(scale=2) @ cm.WithoutReplacement(rate=0.01),
    cm.RandomizedResponse(p=0.6) @ cm.WithoutReplacement(rate=0.1),
    cm.Gaussian(sigma=3) * 10 + cm.Laplace(scale=9),
    cm.ApproximateDP(0.1, "1e-9") * 3,
]


@pytest.mark.parametrize("run", STEPS[:-1], ids=str)  # a promise that may fail has no finite divergence
@pytest.mark.parametrize("bound", ["theorem9", "best"])
def test_arrays_of_divergences_are_above_the_balls(run: cm.Expression, bound: str) -> None:
    orders = [1.25, 2.0, 3.0, 17.5, 64.0]
    found, summed = run.rdp(orders, bound=bound), run.cgf([order - 1 for order in orders], bound=bound)
    with BALLS.at(200):
        for order, value, product in zip(orders, found.tolist(), summed.tolist(), strict=True):
            lam = Fraction(order) - 1
            exact = run.curve(bound).cgf(np.array([lam], dtype=object), BALLS)[0]
            assert exact / ball(lam) <= ball(value) <= exact / ball(lam) * (1 + ball(WIDTH))
            assert exact <= ball(product) <= exact * (1 + ball(WIDTH))


@pytest.mark.parametrize("run", STEPS, ids=str)
@pytest.mark.parametrize("conversion", CONVERSIONS)
def test_arrays_of_epsilons_and_deltas_are_above_the_certificates(
    run: cm.Expression, conversion: ConversionName
) -> None:
    deltas = ["1e-8", "1e-5", "0.01", "0.3", "0.9"]
    many = run.epsilon(deltas, conversion=conversion)
    for delta, value in zip(deltas, many.tolist(), strict=True):
        assert value == pytest.approx(run.epsilon(delta, conversion=conversion), rel=2e-12, abs=1e-300)
        assert value >= run.epsilon(delta, conversion=conversion) * (1 - 1e-13)
    epsilons = ["0.01", "0.5", "3"]
    for epsilon, value in zip(epsilons, run.delta(epsilons, conversion=conversion).tolist(), strict=True):
        one = run.delta(epsilon, conversion=conversion)
        assert value == pytest.approx(one, rel=1e-10)
        assert value >= one * (1 - 1e-13)


def test_many_counts_are_above_the_certificates() -> None:
    step, counts = STEPS[0], [1000, 20_000, 600_000]
    many = step.epsilon_over(counts, delta="1e-8", method="paper")
    for count, value in zip(counts, many.tolist(), strict=True):
        one = (step * count).epsilon("1e-8", method="paper")
        assert one <= value <= one * (1 + WIDTH)


def test_lower_bounds_move_down() -> None:
    base = cm.Gaussian(sigma=1)
    with BALLS.at(200):
        exact = base.curve("lower").cgf(np.array([Fraction(1, 3)], dtype=object), BALLS)[0]
        found = base.curve("lower").cgf(np.array([1 / 3]), BOUNDED)
    assert ball(float(found.lower()[0])) <= exact * (1 + ball(1e-15))
    assert base.rdp([2.0], bound="lower")[0] <= 1.0 <= base.rdp([2.0])[0]


@pytest.mark.parametrize("run", STEPS[:3], ids=str)
def test_every_bound_of_a_sample_is_enclosed(run: cm.Expression) -> None:
    """What is measured rests on a Python function (docs/rounding.md)."""
    (step,) = run.terms
    for bound in cm.BOUNDS:
        try:
            curve = step.own_curve(bound)
        except (cm.HypothesisError, KeyError):  # another mechanism's bound, or one of another way to sample
            continue
        assert curve.enclosed, bound
        assert not curve.estimated
