"""Theorem W along a line: against sums over all outcomes, the lattice and all policies, and each of its terms broken once."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import cumulant as cm
from cumulant.accounting.rounds import rounds_of
from cumulant.conversion.query import Query
from cumulant.exact import answer as two_sided
from cumulant.exact import test_functions
from cumulant.exact.adaptive import theorem_w, theorem_w_line
from cumulant.exact.adaptive.constraints import Constraint, LaplaceConstraint, ReportConstraint
from cumulant.exact.adaptive.reference_law import Reference, ReferenceTransform, reference
from cumulant.exact.adaptive.theorem_w import Law, ReferenceChoice
from cumulant.exact.inversion import saddle, solver
from cumulant.exact.inversion.lattice_line import build_lattice_line, without_small_values
from cumulant.exact.inversion.line import Choice, Line, SearchLine, build_line
from cumulant.exact.rounds import Rounds, RoundTypes
from cumulant.exact.test_functions import TestFunction, theorem_w_ball_constants
from cumulant.exact.test_functions import theorem_w as order_function
from cumulant.losses.transform import Lattice, Rule, Transform
from cumulant.numerics.arithmetic import BALLS
from tests import effort

BITS = 192
ORDERS = (0.5, 0.75, 1.25, 2.0, 8.0, 128.0)
Sums = dict[int, Any]


def law(width: float, places: Sequence[int], masses: Sequence[float]) -> ReferenceTransform:
    return ReferenceTransform(width, tuple(places), tuple(masses))


def drawn(rng: np.random.Generator, size: int) -> ReferenceTransform:
    """Some losses on both sides of 0 and their masses, which need not sum to 1: any positive measure will do."""
    places = sorted({0, 3, *rng.integers(-6, 9, size=size - 2).tolist()})
    masses = rng.dirichlet(np.ones(len(places))) * rng.uniform(1.0, 1.1)
    return law(float(rng.uniform(0.01, 0.3)), places, masses.tolist())


def summed(one: ReferenceTransform, times: int) -> Sums:
    """The masses of all sums of places, by multiplying out."""
    found: Sums = {0: BALLS.number(1)}
    for _ in range(times):
        after: Sums = {}
        for place, mass in found.items():
            for step, part in zip(one.places, one.masses, strict=True):
                after[place + step] = after.get(place + step, BALLS.number(0)) + mass * BALLS.number(part)
        found = after
    return found


def kernel(order: float, gap: Any) -> Any:
    """g_n(d) = 1 - n/(n-1) e^-d + e^-nd/(n-1), as it is written."""
    n = BALLS.number(order)
    return 1 - n / (n - 1) * (-gap).exp() + (-n * gap).exp() / (n - 1) if gap > 0 else BALLS.number(0)


def expected(order: float, parts: Sequence[tuple[ReferenceTransform, int]], start: Any) -> Any:
    """E_P[g_n(S - eps0); S > eps0] by all outcomes."""
    sums = [(BALLS.number(0), BALLS.number(1))]
    for one, times in parts:
        width = BALLS.number(one.width)
        added = [(place * width, mass) for place, mass in summed(one, times).items()]
        sums = [(a + b, p * q) for a, p in sums for b, q in added]
    return sum((mass * loss.exp() * kernel(order, loss - start) for loss, mass in sums), start=BALLS.number(0))


def choice(lam: float, period: float, exponent: float = 80.0) -> Choice:
    return Choice(lam, period, exponent, 30.0, 0.0, 0.0, lam + 1, BITS)


@dataclass(frozen=True)
class OrderLine:
    """A line and the order n of the test function whose expectation it encloses."""

    line: Line
    order: float

    @property
    def frequencies(self) -> int:
        return self.line.frequencies

    def ball(self, eps0: Any) -> Any:
        return self.line.ball(eps0, order_function(self.order))

    def upper(self, epsilon: Any, gap: Any) -> Any:
        return self.line.upper(epsilon, order_function(self.order), gap)

    def floats(self) -> SearchLine:
        return self.line.floats(order_function(self.order))


def on_lattice(round_types: RoundTypes, order: float, lam: float, period: float, exponent: float = 80.0) -> OrderLine:
    with BALLS.at(BITS):
        return OrderLine(build_lattice_line(round_types, choice(lam, period, exponent), omit_exponent=exponent), order)


# ---- the sum itself


@pytest.mark.parametrize("order", ORDERS)
def test_the_sum_is_the_expectation_and_its_images(order: float) -> None:
    """A short period, whose images are seen, and a long one, beside which nothing is left of them."""
    rng = np.random.default_rng(int(8 * order))
    for _ in range(4):
        one, times = drawn(rng, 5), int(rng.integers(1, 7))
        lam, width = float(rng.uniform(0.5, 30)), one.width
        short = on_lattice(((one, times),), order, lam, 7 * width)
        long = on_lattice(((one, times),), order, lam, (40 / lam) + 2 * 9 * 7 * width)
        with BALLS.at(BITS):
            # between points, at one, next to one, far below and beyond the largest sum
            at = width * times
            for start in (0.37 * at, 2 * width, math.nextafter(2 * width, 9.0), -5.3 * width, 9.5 * at):
                eps0 = BALLS.number(start)
                truth = expected(order, [(one, times)], eps0)
                upper = long.ball(eps0)
                assert upper.upper() >= truth.lower()
                size = long.line.values[0].real * (-BALLS.number(lam) * eps0).exp() + 2
                assert upper <= truth + size * BALLS.number(1e-12)
                period = BALLS.number(width) * short.line.folds
                images = sum(
                    (
                        (BALLS.number(lam) * j * period).exp() * expected(order, [(one, times)], eps0 + j * period)
                        for j in range(-math.ceil(15 / (lam * width)), 4 + 2 * times)
                    ),
                    start=BALLS.number(0),
                )
                assert abs(images - short.ball(eps0)) <= BALLS.number(1e-30) * images + BALLS.number(1e-35)


def test_losses_beside_the_lattice_of_zero() -> None:
    """An offset, as the first triple of randomized response has one."""
    rounds = rounds_of((cm.RandomizedResponse(p="0.9") @ cm.WithoutReplacement(rate="0.1") * 6).record())[0]
    assert rounds is not None
    [(one, times)] = rounds.parts
    found = theorem_w._dominated_type(one, times)
    assert found is not None
    assert found.transform is not None
    line = on_lattice(((found.transform, times),), 0.5, 4.0, 30.0)
    with BALLS.at(BITS):
        g, p = BALLS.number(Fraction(1, 10)), BALLS.number(Fraction(9, 10))
        up, down = (1 - p) * (1 - g) + p * g, p * (1 - g) + (1 - p) * g
        atoms = [((up / (1 - p)).log(), up), ((down / p).log(), down)]
        for start in (0.05, 0.3, 0.9):
            eps0 = BALLS.number(start)
            truth = sum(
                (
                    math.comb(times, j)
                    * atoms[0][1] ** j
                    * atoms[1][1] ** (times - j)
                    * kernel(0.5, j * atoms[0][0] + (times - j) * atoms[1][0] - eps0)
                    for j in range(times + 1)
                ),
                start=BALLS.number(0),
            )
            assert abs(line.ball(eps0) - truth) <= truth * BALLS.number(1e-25)


def test_far_out_and_often() -> None:
    """A delta of 1e-300 against the sum of all outcomes; 1e12 rounds on lines of two orders and periods."""
    one = law(0.25, (-1, 0, 4), (0.2, 0.8 - 1e-9, 1e-9))
    line = on_lattice(((one, 40),), 2.0, 22.0, 70.0, 90.0)
    with BALLS.at(BITS):
        eps0 = BALLS.number(34.1)
        truth = expected(2.0, [(one, 40)], eps0)
        assert truth < BALLS.number(10) ** -290
        assert truth <= line.ball(eps0).upper()
        assert line.ball(eps0) <= truth * (1 + BALLS.number(1e-9))
    often = law(1e-7, (-10, -3, 0, 3, 10), (0.1, 0.2, 0.4, 0.2, 0.1))
    values = []
    for lam, period in ((4.0, 25.0), (3.5, 33.0)):
        line = on_lattice(((often, 10**12),), 8.0, lam, period, 60.0)
        assert line.frequencies < 200
        with BALLS.at(BITS):
            values.append(line.ball(BALLS.number(0.5)))
    assert values[0].overlaps(values[1]) or abs(values[0] - values[1]) <= values[0] * 1e-12
    assert values[0] > 0


@pytest.mark.parametrize("order", [0.5, 2.0, 16.0])
def test_laws_on_different_lattices_are_smoothed(order: float) -> None:
    """From above, and hardly so; the factor e^{(z + z^2) tau^2/2} is one Gaussian more."""
    rng = np.random.default_rng(5)
    parts = [(drawn(rng, 4), 3), (drawn(rng, 4), 2)]
    tau = Fraction(1, 10**5)
    with BALLS.at(BITS):
        line = OrderLine(build_line(tuple(parts), choice(6.0, 40.0, 40.0), smooth=tau, work=10**7), order)
        for start in (0.1, 0.33):
            eps0 = BALLS.number(start)
            truth, upper = expected(order, parts, eps0), line.ball(eps0)
            assert truth <= upper.upper()
            assert upper <= truth * (1 + BALLS.number(2e-3))
        # floats follow it
        value, slope = line.floats().log_value(0.33)
        assert value == pytest.approx(float(line.ball(BALLS.number(0.33)).log().mid()), rel=1e-9)
        after = float(line.ball(BALLS.number(0.3301)).log().mid())
        assert slope == pytest.approx((after - value) / 1e-4, rel=1e-2)


@pytest.mark.parametrize("order", ORDERS)
def test_floats_follow_the_line(order: float) -> None:
    one = drawn(np.random.default_rng(8), 5)
    line = on_lattice(((one, 5),), order, 7.0, 20.0)
    for start in (0.11, 0.4):
        value, slope = line.floats().log_value(start)
        with BALLS.at(BITS):
            exact = float(line.ball(BALLS.number(start)).log().mid())
            after = float(line.ball(BALLS.number(start + 1e-6)).log().mid())
        assert value == pytest.approx(exact, rel=1e-9)
        assert slope == pytest.approx((after - exact) / 1e-6, rel=1e-4)


@pytest.mark.parametrize("order", ORDERS)
def test_constants(order: float) -> None:
    """(y - R)_+ <= C n f_n(y), with equality at e^d; as floats say them."""
    with BALLS.at(BITS):
        n = BALLS.number(order)
        for d in (1e-3, 0.2, 3.0):
            log_ratio, constant = theorem_w_ball_constants(order, BALLS.number(d))
            assert float(log_ratio.mid()) == pytest.approx(
                float(test_functions.log_ratio(order, np.array([d]))[0]), rel=1e-8
            )
            assert float(constant.log().mid()) == pytest.approx(
                float(test_functions.log_constant(order, np.array([d]))[0]), rel=1e-9, abs=1e-12
            )
            for log_y in (-1.0, 0.5 * d, d, 1.5 * d, d + 2):
                y = BALLS.number(log_y).exp()
                value = y - n / (n - 1) + y ** (1 - n) / (n - 1) if log_y > 0 else BALLS.number(0)
                gain = (y - log_ratio.exp()).nonnegative_part()
                assert gain <= constant * value * (1 + BALLS.number(1e-40))
                if log_y == d:
                    assert abs(gain - constant * value) <= BALLS.number(1e-40)


# ---- each term broken once


def strained() -> tuple[ReferenceTransform, OrderLine]:
    """A line of which many frequencies are left out although they are not small."""
    one = law(0.02, (-3, -1, 0, 2, 5), (0.2, 0.25, 0.15, 0.3, 0.11))
    return one, on_lattice(((one, 30),), 2.0, 6.0, 16.0, 4.0)


def beyond(line: OrderLine, one: ReferenceTransform) -> int:
    """At how many of some eps0 the ball does not hold the expectation."""
    missed = 0
    with BALLS.at(BITS):
        for start in np.linspace(0.1, 0.6, 9):
            eps0 = BALLS.number(float(start))
            missed += not line.ball(eps0).overlaps(expected(2.0, [(one, 30)], eps0))
    return missed


def test_what_is_left_out_is_needed() -> None:
    one, line = strained()
    assert line.frequencies < line.line.folds / 4
    assert beyond(line, one) == 0
    assert beyond(OrderLine(replace(line.line, beyond=line.line.beyond * 1e-6), 2.0), one) > 0


def test_small_frequencies_are_counted() -> None:
    """Those between large ones are in the bound of what is not summed."""
    one = law(0.05, (-8, 0, 8, 9), (0.3, 0.4, 0.3, 0.02))
    with BALLS.at(BITS):
        whole = build_lattice_line(((one, 60),), choice(5.0, 20.0, 6.0))
        short = without_small_values(whole, 6.0)
        assert short.indices is not None
        assert len(whole.values) - len(short.values) > 10
        total = sum((2 * abs(value) for m, value in enumerate(whole.values) if m not in short.indices))
        assert whole.beyond + total <= short.beyond


def test_leaving_out_a_part_of_the_kernel_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    one = law(0.02, (-3, -1, 0, 2, 5), (0.2, 0.25, 0.15, 0.3, 0.11))
    line = on_lattice(((one, 30),), 2.0, 6.0, 60.0)
    assert beyond(line, one) == 0
    monkeypatch.setattr(TestFunction, "lattice_factors", lambda self, rest: [1, -2 * (-rest).exp(), (-rest).exp()])
    assert beyond(line, one) > 0


def test_another_order_is_noticed() -> None:
    """g_n grows with n: with a smaller n, or with the constants of another one, less is claimed than holds."""
    one = law(0.02, (-3, -1, 0, 2, 5), (0.2, 0.25, 0.15, 0.3, 0.11))
    line = on_lattice(((one, 30),), 2.0, 6.0, 60.0)
    wrong = on_lattice(((one, 30),), 1.25, 6.0, 60.0)
    with BALLS.at(BITS):
        for start in (0.1, 0.4):
            assert wrong.ball(BALLS.number(start)) < expected(2.0, [(one, 30)], BALLS.number(start))
            gap = BALLS.number(0.3)
            assert wrong.upper(BALLS.number(start), gap) != line.upper(BALLS.number(start), gap)


class Shifted(Transform):
    """A law that claims to lie on a lattice and does not."""

    __slots__ = ()

    def atoms(self, lam: float, log_error: float) -> Rule:
        losses = [(BALLS.number(loss), BALLS.number(mass)) for loss, mass in ((-0.02, 0.5), (0.013, 0.4), (0.04, 0.12))]
        return Rule([], [(x, m * ((1 + BALLS.number(lam)) * x).exp()) for x, m in losses], BALLS.number(0))

    def lattice(self) -> Lattice:
        return Lattice(Fraction(0.02), Fraction(0))


def test_a_lattice_that_is_none_is_noticed() -> None:
    line = on_lattice(((Shifted(), 1),), 2.0, 6.0, 60.0)
    with BALLS.at(BITS):
        eps0 = BALLS.number(0.005)
        truth = sum(
            (
                BALLS.number(m * math.exp(x)) * kernel(2.0, BALLS.number(x) - eps0)
                for x, m in ((0.013, 0.4), (0.04, 0.12))
            ),
            start=BALLS.number(0),
        )
        assert not abs(line.ball(eps0) - truth) <= truth * BALLS.number(1e-6)


# ---- against the lattice


def reports(mechanism: cm.Mechanism, rate: str) -> ReportConstraint:
    pair = mechanism.pair()
    extremes = None if pair is None else pair.extremes()
    assert extremes is not None
    return ReportConstraint(extremes, Fraction(rate))


DEMANDS: dict[str, tuple[Constraint, float, float]] = {
    "pure": (reports(cm.PureDP(1), "0.001"), 16.0, 6.0),
    "pure, strong": (reports(cm.PureDP(3), "0.01"), 2.0, 8.0),
    "response": (reports(cm.RandomizedResponse(p="0.9"), "0.002"), 3.0, 4.0),
    "many answers": (reports(cm.KaryResponse(values=4, p="0.6"), "0.01"), 5.0, 10.0),
    "vector": (LaplaceConstraint(Fraction(2), "vector", Fraction(1, 1000)), 2.0, 4.0),
    "scalar": (LaplaceConstraint(Fraction(1), "scalar", Fraction(1, 100)), 1.25, 8.0),
    "slight": (LaplaceConstraint(Fraction(1, 2), "vector", Fraction(1, 500)), 64.0, 90.0),
}


def referred(name: str) -> tuple[Reference, float, float]:
    constraint, order, lam = DEMANDS[name]
    found = reference(constraint, order, lam, 14, 120)
    assert found is not None
    return found, order, lam


@pytest.mark.parametrize("name", DEMANDS)
def test_never_more_than_the_lattice_and_as_much_up_to_its_accuracy(name: str) -> None:
    """The same reference and order, from 300 rounds to a million: 56 settings and more in all."""
    found, order, lam = referred(name)
    rng, compared = np.random.default_rng(11), 0
    for _ in range(effort.drawn(11)):
        times = int(10 ** rng.uniform(2.5, 6))
        log_delta = -float(10 ** rng.uniform(0.7, 1.9))
        laws = (Law(found, found.transform(), True, times),)
        upper = ((found, times),)
        exponent = saddle.saddle_point(upper, log_delta=log_delta)
        guess = theorem_w._guess_epsilon(upper, order, log_delta, lam if exponent is None else float(exponent.lam[0]))
        at = ReferenceChoice(order, laws, guess)
        if not 1e-3 < guess.epsilon < 300:
            continue
        line, sums = theorem_w_line.build_reference_line(at), theorem_w._compose_laws(at, log_delta)
        if line is None or sums is None:
            assert sums is None or not math.isfinite(
                theorem_w._least_epsilon(sums, order, log_delta, guess.epsilon - 2 / sums.lam)
            )
            continue
        delta = Fraction(math.exp(log_delta))
        ours = theorem_w_line.end_along(line, at, Query("delta", delta))
        theirs = theorem_w._least_epsilon(sums, order, log_delta, guess.epsilon - 2 / sums.lam) + sums.slip
        assert ours is not None
        assert ours.holds
        assert ours.value <= theirs * (1 + 1e-9)
        assert ours.value >= theirs * (1 - 1e-3)
        # and back
        back = theorem_w_line.end_along(line, at, Query("epsilon", Fraction(ours.value)))
        assert back is not None
        assert back.value == pytest.approx(float(delta), rel=1e-6)
        compared += 1
    assert compared >= effort.drawn(8)


# ---- against adversaries


def optimum(constraint: ReportConstraint, times: int, y: Any) -> Any:
    """sup E (y t_1 ... t_k - 1)_+ over all policies at every y, by trying each triple after each past."""
    with BALLS.at(BITS):
        atoms = [[(float(t.mid()), float(m.mid())) for t, m in each] for each in constraint._triples()]
    triples = [(np.exp([t for t, _ in each]), np.array([m for _, m in each])) for each in atoms]

    def value(products: Any, left: int) -> Any:
        if left == 0:
            return np.maximum(products - 1, 0.0)
        each = []
        for ratios, masses in triples:
            rest = max(1 - float(masses.sum()), 0.0)
            total = rest * value(products, left - 1)
            for ratio, mass in zip(ratios, masses, strict=True):
                total = total + mass * value(products * ratio, left - 1)
            each.append(total)
        return np.max(each, axis=0)

    return value(y, times)


@pytest.mark.parametrize(
    "mechanism", [cm.PureDP(1), cm.RandomizedResponse(p="0.8"), cm.KaryResponse(values=3, p="0.6")], ids=str
)
def test_never_below_what_a_policy_reaches(mechanism: cm.Mechanism) -> None:
    """All policies of up to four rounds; with another law than the reference the bound would be broken."""
    broken = 0
    for rate, order in (("0.05", 0.75), ("0.3", 3.0), ("0.1", 40.0)):
        constraint = reports(mechanism, rate)
        found = reference(constraint, order, 4.0, 14, 120)
        assert found is not None
        slack = replace(
            found, masses=tuple(m if p == 0 else 0.8 * m for p, m in zip(found.places, found.masses, strict=True))
        )
        for times in (2, 4):
            line, less = (on_lattice(((one.transform(), times),), order, 6.0, 12.0) for one in (found, slack))
            epsilons = np.array([0.1, 0.4, 0.8]) * times * constraint.top
            truths = np.exp(epsilons) * optimum(constraint, times, np.exp(-epsilons))
            for epsilon, truth in zip(epsilons.tolist(), truths.tolist(), strict=True):
                with BALLS.at(BITS):
                    at, gaps = BALLS.number(epsilon), [BALLS.number(gap) for gap in (0.02, 0.2, 1.0)]
                    bound, lower = (min(float(one.upper(at, gap)) for gap in gaps) for one in (line, less))
                assert bound >= truth * (1 - 1e-9)
                broken += lower < truth
    assert broken > 0


# ---- the answers of the library


def rounds(run: cm.Expression) -> Rounds:
    found, _ = rounds_of(run.record())
    assert found is not None
    return found


def test_one_number_however_it_is_asked() -> None:
    run = cm.RandomizedResponse(p="0.9") @ cm.WithoutReplacement(rate="0.001") * 300_000
    found = run.guarantee(delta=1e-8)
    assert (found.route, found.rigour) == ("order", "proved")
    assert found.epsilon == run.epsilon(1e-8) == run.epsilon([1e-8, 1e-6])[0] == run.epsilon(1e-8, prove=True)
    assert run.delta(epsilon=9) == run.guarantee(epsilon=9).delta == run.delta([9, 8])[0]
    assert run.delta(epsilon=str(found.epsilon)) == pytest.approx(1e-8, rel=1e-6)
    assert found.lower is not None
    assert found.lower < found.epsilon < found.lower * 1.02
    assert cm.Guarantee.from_json(found.to_json()) == found
    assert found.verify().holds


def test_a_proof_is_not_replaced_by_less(monkeypatch: pytest.MonkeyPatch) -> None:
    """Who asks for a proof gets a reference that balls have shown, or another way."""
    run = rounds(cm.RandomizedResponse(p="0.9") @ cm.WithoutReplacement(rate="0.001") * 250_000)
    query = Query("delta", Fraction(1, 10**7))
    honest = theorem_w_line.upper_end(run, query, math.log(1e-7))
    assert honest is not None
    monkeypatch.setattr(theorem_w_line, "upper_end", lambda *_: replace(honest, holds=False))
    assert two_sided.upper_end(run, query, 1e-3).rigour == "bounded"
    proved = two_sided.upper_end(run, query, 1e-3, prove=True)
    assert (proved.way, proved.rigour) == ("line", "proved")
    assert proved.value > honest.value
    # and where the line has no answer the lattice has one
    monkeypatch.setattr(theorem_w_line, "upper_end", lambda *_: None)
    again = two_sided.upper_end(run, query, 1e-3)
    assert (again.way, again.rigour) == ("order", "bounded")
    assert honest.value <= again.value <= honest.value * 1.0001


def test_kinds_on_lattices_of_their_own_and_with_densities() -> None:
    sample = cm.WithoutReplacement(rate="0.01")
    laplace, gaussian, report = cm.Laplace(scale=1) @ sample, cm.Gaussian(sigma=2) @ sample, cm.PureDP(1) @ sample
    asked = Query("delta", Fraction(1, 10**6)), math.log(1e-6)
    for run in (laplace * 2000 + report * 2000, laplace * 2000 + gaussian * 500 + report * 2000):
        ours, theirs = (
            theorem_w_line.upper_end(rounds(run), *asked),
            theorem_w.upper_end(rounds(run), *asked),
        )
        assert ours is not None
        assert theirs is not None
        assert theirs[0] * 0.999 <= ours.value <= theirs[0] * (1 + 1e-9)
    assert _line(laplace * 2000 + report * 2000).lattice is None
    assert _line(laplace * 2000).lattice is not None


def _line(run: cm.Expression) -> Line:
    at = theorem_w.choose_reference(rounds(run), math.log(1e-6))
    assert at is not None
    line = theorem_w_line.build_reference_line(at)
    assert line is not None
    return line


def test_where_theorem_w_says_nothing_the_line_says_nothing() -> None:
    """Poisson samples, several queries on one sample, few rounds, mechanisms of which no triple is known; a leak too large."""
    sample = cm.WithoutReplacement(rate="0.01")
    asked, more_delta = ((Query("delta", Fraction(1, 10**n)), -n * math.log(10)) for n in (6, 4))
    laplace = cm.Laplace(scale=1)
    for run in (
        laplace @ cm.Poisson(rate="0.01") * 5000,
        laplace @ sample * 100,
        cm.Gaussian(sigma=2) @ sample * 5000,
    ):
        assert theorem_w_line.upper_end(rounds(run), *asked) is None
        assert theorem_w_line.upper_end(rounds(run), Query("epsilon", Fraction(1)), -5.0) is None
    assert rounds_of(((3 * laplace) @ sample * 5000).record())[0] is None
    leaking = laplace @ sample * 3000 + cm.ApproximateDP(1, "1e-6") @ sample * 1000
    assert theorem_w_line.upper_end(rounds(leaking), *asked) is None
    more = theorem_w_line.upper_end(rounds(leaking), *more_delta)
    alone = theorem_w_line.upper_end(rounds(laplace @ sample * 3000), *more_delta)
    assert alone is not None
    assert more is None or more.value > alone.value


# ---- what else an answer rests on


def test_what_lies_beyond_the_last_frequency_is_counted() -> None:
    one, times = law(0.02, (-3, -1, 0, 2, 5), (0.2, 0.25, 0.15, 0.3, 0.11)), 30
    whole = on_lattice(((one, times),), 2.0, 6.0, 16.0, 200.0).line
    assert 2 * whole.frequencies + 1 == whole.folds
    with BALLS.at(BITS):
        largest = max((abs(value) for value in whole.values[9:]), key=lambda each: float(each.mid()))
        assert whole.indices is not None
        short = replace(whole, values=whole.values[:9], indices=whole.indices[:9], beyond=(whole.folds - 17) * largest)
        assert beyond(OrderLine(short, 2.0), one) == 0
        assert beyond(OrderLine(replace(short, beyond=BALLS.number(0)), 2.0), one) > 0
        found = build_line(((one, times),), choice(6.0, 16.0, 40.0), smooth=Fraction(1, 10**6), work=10**7)
        # no |M(lam + iu)| is larger than M(lam)
        line = OrderLine(replace(found, values=found.values[:6], beyond=found.values[0].real), 2.0)
        eps0 = BALLS.number(0.3)
        assert line.ball(eps0).overlaps(expected(2.0, [(one, times)], eps0))
        sharp = replace(line.line, beyond=BALLS.number(0))
        assert not OrderLine(sharp, 2.0).ball(eps0).overlaps(expected(2.0, [(one, times)], eps0))


class Leaking(ReferenceTransform):
    """The same law, beside which something has an infinite loss."""

    __slots__ = ()

    def leak(self) -> Any:
        return BALLS.number(Fraction(1, 100))


def test_what_leaks_is_added() -> None:
    """1 - (1 - 1/100)^3, on a lattice and beside one."""
    masses = (0.3, 0.4, 0.3)
    plain, leaking = law(0.1, (-1, 0, 2), masses), Leaking(0.1, (-1, 0, 2), masses)
    with BALLS.at(BITS):
        eps0, lost = BALLS.number(0.05), BALLS.number(1 - Fraction(99, 100) ** 3)
        sure, more = (on_lattice(((one, 3),), 2.0, 5.0, 12.0).ball(eps0) for one in (plain, leaking))
        assert abs(more - sure - lost) <= BALLS.number(1e-20)
        smoothed = [
            OrderLine(
                build_line(((one, 3),), choice(5.0, 12.0, 40.0), smooth=Fraction(1, 10**4), work=10**7), 2.0
            ).ball(eps0)
            for one in (plain, leaking)
        ]
        assert abs(smoothed[1] - smoothed[0] - lost) <= BALLS.number(1e-12)


def test_an_epsilon_is_shown_whatever_floats_guess(monkeypatch: pytest.MonkeyPatch) -> None:
    """A guess that is too small is moved until balls say that it is enough; a law that is not proved proves nothing."""
    found, order, lam = referred("vector")
    guess, delta = theorem_w._guess_epsilon(((found, 5000),), order, -16.0, lam), Fraction(1, 10**7)
    values, prove_epsilon = [], solver.prove_epsilon
    for shown, less in ((True, 0.0), (False, 0.0), (True, 1e-6)):
        monkeypatch.setattr(
            solver,
            "prove_epsilon",
            lambda bound, asked, start, upper, less=less: prove_epsilon(bound, asked, start * (1 - less), upper),
        )
        at = ReferenceChoice(order, (Law(found, found.transform(), shown, 5000),), guess)
        line = theorem_w_line.build_reference_line(at)
        answer = None if line is None else theorem_w_line.end_along(line, at, Query("delta", delta))
        assert answer is not None
        assert answer.holds is shown
        values.append(answer.value)
    assert values[0] == values[1]
    assert values[0] == values[2]
