"""Losses on a lattice: the finite sum against multinomials from the definition, and each of its terms broken once."""

import cmath
import dataclasses
import math
from collections.abc import Sequence
from decimal import Decimal, localcontext
from fractions import Fraction
from typing import Any

import pytest
from flint import acb

import cumulant as cm
from cumulant.accounting import rounds
from cumulant.conversion.query import Query
from cumulant.exact.inversion import choose, lattice_line, line, solver
from cumulant.exact.inversion.choose import Side
from cumulant.exact.inversion.line import Choice, Line, spacing_of
from cumulant.losses.transform import Lattice
from cumulant.numerics.arithmetic import BALLS

W, P = cm.WithoutReplacement, cm.Poisson
RR = cm.RandomizedResponse
Law = Sequence[tuple[Any, Any]]


def sides(run: cm.Expression) -> list[Side]:
    found, _ = rounds.rounds(run.record())
    assert found is not None
    return [Side(terms, round_types or ()) for terms, round_types in found.lines()]


def built(where: Side, epsilon: float, accuracy: float = 1e-9) -> Line:
    choice = choose.choose_line(where, None, epsilon, accuracy, spacing_of(where.round_types))
    assert choice is not None
    with BALLS.at(choice.bits):
        return lattice_line.build_lattice_line(where.round_types, choice)


def composed(laws: Sequence[tuple[Law, int]], epsilon: Any) -> Any:
    """E[(1 - e^{eps - S})_+] by all numbers of outputs, given the losses of each kind and their P-masses."""
    sums: list[tuple[Any, Any]] = [(BALLS.number(0), BALLS.number(1))]
    for law, times in laws:
        powers: list[tuple[Any, Any]] = []
        for counts in _counts(len(law), times):
            ways = math.factorial(times)
            loss, mass = BALLS.number(0), BALLS.number(1)
            for (one, part), count in zip(law, counts, strict=True):
                ways //= math.factorial(count)
                loss, mass = loss + count * one, mass * part**count
            powers.append((loss, mass * ways))
        sums = [(a + b, p * q) for a, p in sums for b, q in powers]
    return sum((mass * (-(epsilon - loss).expm1()).nonnegative_part() for loss, mass in sums), start=BALLS.number(0))


def _counts(round_types: int, times: int) -> list[tuple[int, ...]]:
    if round_types == 1:
        return [(times,)]
    return [(i, *rest) for i in range(times + 1) for rest in _counts(round_types - 1, times - i)]


def outputs(p: Sequence[Any], q: Sequence[Any]) -> Law:
    """Losses and P-masses of two laws on the same outputs."""
    return [((BALLS.number(a) / BALLS.number(b)).log(), BALLS.number(a)) for a, b in zip(p, q, strict=True) if a and b]


def told(epsilon: str, leak: str = "0") -> tuple[Any, Any]:
    """The masses of the two answers of the worst (epsilon, leak) pair."""
    odds, kept = BALLS.number(Fraction(epsilon)).exp(), BALLS.number(1 - Fraction(leak))
    return kept * odds / (1 + odds), kept / (1 + odds)


def mixed(p: Sequence[Fraction], q: Sequence[Fraction], rate: str) -> list[Fraction]:
    g = Fraction(rate)
    return [(1 - g) * b + g * a for a, b in zip(p, q, strict=True)]


HEADS, TAILS = [Fraction(3, 5), Fraction(2, 5)], [Fraction(2, 5), Fraction(3, 5)]


def _laws(name: str) -> tuple[cm.Expression, list[list[tuple[Law, int]]], Fraction]:
    """A run, the laws of its rounds in each direction from the definition, and the leak of all rounds."""
    if name == "answers":
        return RR(p="3/5") * 40, [[(outputs(HEADS, TAILS), 40)]], Fraction(0)
    if name == "pure of two kinds":
        round_types = []
        for epsilon, times in (("1/4", 12), ("1/10", 9)):
            high, low = told(epsilon)
            round_types.append((outputs([high, low], [low, high]), times))
        return cm.PureDP("1/4") * 12 + cm.PureDP("1/10") * 9, [round_types], Fraction(0)
    if name == "leaks":
        high, low = told("1/3", "1/1000")
        left = 1 - (1 - Fraction(1, 1000)) ** 25
        return cm.ApproximateDP("1/3", "1/1000") * 25, [[(outputs([high, low], [low, high]), 25)]], left
    if name == "poisson":
        one = mixed(HEADS, TAILS, "1/10")
        return (
            RR(p="3/5") @ P(rate="1/10") * 30,
            [[(outputs(one, TAILS), 30)], [(outputs(TAILS, one), 30)]],
            Fraction(0),
        )
    if name == "profile":
        # g d(log(1 + (e^eps - 1)/g)) at one epsilon: the loss L with 1 + g (e^e0 - 1), and the rest at 0
        g, odds, q = Fraction(1, 10), Fraction(3, 2), Fraction(2, 5)
        w = 1 + g * (odds - 1)
        found = [(BALLS.number(w).log(), BALLS.number(q * w)), (-BALLS.number(w).log(), BALLS.number(q))]
        rest = 1 - q * w - q
        return RR(p="3/5") @ W(rate="1/10") * 20, [[([*found, (BALLS.number(0), BALLS.number(rest))], 20)]], Fraction(0)
    if name == "sampled leaks":
        g, leak = Fraction(1, 10), Fraction(1, 1000)
        odds, low = BALLS.number(Fraction(1, 3)).exp(), told("1/3", "1/1000")[1]
        w = 1 + BALLS.number(g) * (odds - 1)
        rest = 1 - BALLS.number(g * leak) - low * w - low
        law: Law = [(w.log(), low * w), (-w.log(), low), (BALLS.number(0), rest)]
        return cm.ApproximateDP("1/3", leak) @ W(rate=g) * 15, [[(law, 15)]], 1 - (1 - g * leak) ** 15
    # k-ary randomized response with 4 values: the own one with odds 3 against each other
    own, other, rest = Fraction(3, 6), Fraction(1, 6), Fraction(2, 6)
    kary = outputs([own, other, rest], [other, own, rest])
    return cm.KaryResponse(values=4, p="1/2") * 12, [[(kary, 12)]], Fraction(0)


NAMES = ["answers", "pure of two kinds", "leaks", "poisson", "profile", "sampled leaks", "many values"]


@pytest.mark.parametrize("name", NAMES)
def test_the_finite_sum_is_the_multinomial_of_the_definition(name: str) -> None:
    with BALLS.at(256):
        run, directions, leak = _laws(name)
        for where, laws in zip(sides(run), directions, strict=True):
            for epsilon in ("1/10", "7/10", "2"):
                at = BALLS.number(Fraction(epsilon))
                truth = BALLS.number(leak) + composed(laws, at)
                found = built(where, float(Fraction(epsilon)), 1e-12)
                with BALLS.at(found.choice.bits):
                    low, high = found.lower(at), found.upper(at)
                assert low <= truth <= high
                assert high - low <= 1e-11 * truth + 1e-40  # beyond the largest loss it is 0


def test_the_answers_of_a_run_are_proved_from_both_sides() -> None:
    for name in NAMES[:4]:
        with BALLS.at(256):
            run, directions, leak = _laws(name)
            found = run.guarantee(delta="1/20", accuracy=1e-12)
            assert (found.rigour, found.lower_rigour, found.route) == ("proved", "proved", "line")
            assert found.lower is not None
            truths = [
                [BALLS.number(leak) + composed(laws, BALLS.number(end)) for laws in directions]
                for end in (found.epsilon, found.lower)
            ]
            asked = BALLS.number(Fraction(1, 20))
            assert all(each <= asked for each in truths[0])
            assert any(each > asked for each in truths[1])
            assert found.epsilon <= found.lower * (1 + 1e-12)
            assert run.epsilon("1/20", accuracy=1e-12) == found.epsilon


def test_noise_on_the_integers_sums_to_noise_on_the_integers() -> None:
    """Discrete Gaussian noise, twice: the sum of both losses is that of a two-dimensional lattice, term by term."""
    run = cm.DiscreteGaussian(sigma=2, dimension=1) * 2
    (where,) = sides(run)
    with BALLS.at(160):
        weights = [(-BALLS.number(Fraction(x * x, 8))).exp() for x in range(-60, 61)]
        theta = sum(weights, start=BALLS.number(0))
        law = [(BALLS.number(Fraction(2 * x + 1, 8)), weights[x + 60] / theta) for x in range(-40, 41)]
        at = BALLS.number(Fraction(3, 2))
        truth = BALLS.number(0)
        for a, p in law:
            truth += sum(
                (p * q * (-(at - a - b).expm1()).nonnegative_part() for b, q in law if not a + b < at),
                start=BALLS.number(0),
            )
        found = built(where, 1.5, 1e-12)
        with BALLS.at(found.choice.bits):
            assert found.lower(at) <= truth + 1e-30
            assert truth - 1e-30 <= found.upper(at)
            assert found.upper(at) - found.lower(at) < 1e-11 * truth


def test_epsilon_at_a_point_of_the_lattice() -> None:
    """Where balls cannot tell on which side of a point epsilon lies, it is moved by a hair."""
    run = RR(p="3/5") * 40
    (where,) = sides(run)
    found = built(where, 4 * math.log(1.5))
    with BALLS.at(found.choice.bits):
        at = 4 * BALLS.number(Fraction(3, 2)).log()
        truth = composed([(outputs(HEADS, TAILS), 40)], at)
        assert found.lower(at) <= truth <= found.upper(at)
        assert found.upper(at) - found.lower(at) < 1e-8 * truth


# ---- broken once


RUN = RR(p="3/5") * 400


def test_without_the_tail_half_of_the_frequencies_are_not_enough() -> None:
    (where,) = sides(RUN)
    found = built(where, 30.0)
    assert 2 * found.frequencies + 1 < found.folds
    with BALLS.at(found.choice.bits):
        at = BALLS.number(30)
        truth = composed([(outputs(HEADS, TAILS), 400)], at)
        assert found.lower(at) <= truth <= found.upper(at)
        half = dataclasses.replace(found, values=found.values[: len(found.values) // 2], _cache={})
        assert abs(half.partial_sum(at) - truth) > half.tail(at) + half.images(at) + 1e-15 * truth
        bounded = dataclasses.replace(
            half,
            beyond=(half.folds - 1 - 2 * half.frequencies) * max(abs(v) for v in found.values[len(half.values) :]),
            _cache={},
        )
        assert bounded.lower(at) <= truth <= bounded.upper(at)


def test_what_is_left_out_is_bounded_term_by_term() -> None:
    """Far out on a steep lattice the bound of the tail is almost the sum of the sizes that it stands for."""
    from flint import acb, arb

    choice = Choice(3.0, 21.0, 1.0, 1.0, 0.0, 0.0, 5.0, 128)
    with BALLS.at(128):
        lattice = Lattice(arb(1), arb("0.25"))
        found = Line(choice, [acb(1)] * 3, arb(16), arb(0), lambda: arb(1), 0, lattice=lattice, folds=21)
        rest = arb("0.125")
        epsilon = arb("0.25") + 5 - rest
        sizes = arb(0)
        for m in range(3, 11):
            z = acb(3, 2 * arb.pi() * m / 21)
            # l = o + (n + 1) a
            term = (-z * (arb("0.25") + 5)).exp() * (1 / (1 - (-z).exp()) - (-rest).exp() / (1 - (-(1 + z)).exp()))
            sizes += 2 * abs(term) / 21
        bound = found.tail(epsilon)
        assert sizes <= bound
        # |F(z)| <= F(lam) = SUM_i e^{-3i} (1 - e^{-(r + i)}), term by term
        whole = sum(((-arb(3 * i)).exp() * -(-(rest + i)).expm1() for i in range(60)), start=arb(0))
        most = (-3 * (arb("0.25") + 5)).exp() * 16 / 21 * whole
        assert abs(bound - most) < 1e-20


def test_without_the_images_the_lower_end_is_too_high() -> None:
    (where,) = sides(RUN)
    choice = choose.choose_line(where, None, 30.0, 1e-9, spacing_of(where.round_types))
    assert choice is not None
    with BALLS.at(choice.bits):
        at = BALLS.number(30)
        short = lattice_line.build_lattice_line(
            where.round_types, dataclasses.replace(choice, period=choice.period / 3)
        )
        truth = composed([(outputs(HEADS, TAILS), 400)], at)
        assert short.partial_sum(at, down=False) - short.tail(at, down=False) > truth
        assert short.lower(at) <= truth <= short.upper(at)


def test_a_leak_that_is_not_taken_out_of_the_masses_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """M(0) = 1 - leak, in balls: otherwise there is no line, and another way answers."""
    from cumulant.pairs.response import ResponsePoints

    run = cm.ApproximateDP("1/3", "1/1000") * 25
    (where,) = sides(run)
    query = Query("delta", Fraction(1, 10))
    assert solver.upper_end(rounds.rounds(run.record())[0], query, 1e-3) is not None  # type: ignore[arg-type]
    monkeypatch.setattr(ResponsePoints, "exact_leak", lambda self: Fraction(0))
    assert solver.upper_end(rounds.rounds(run.record())[0], query, 1e-3) is None  # type: ignore[arg-type]
    with BALLS.at(128), pytest.raises(ArithmeticError, match="do not add up"):
        where.round_types[0][0].atoms(1.0, -40.0)


def hockey_stick_of_coins_and_a_subset(epsilon: float, coins: int) -> Decimal:
    """Return delta of so many coins of log-odds 7.486e-5 and one subset of 4 of 43 values, from its outputs."""
    with localcontext() as context:
        context.prec = 60
        coin, report, asked = Decimal("7.486e-5"), Decimal("2.733e-3"), Decimal(repr(epsilon))
        heads = coin.exp() / (1 + coin.exp())
        inside = 4 * report.exp() / (4 * report.exp() + 39)  # the subset holds the true value
        true, other = inside * 39 / 42, (1 - inside) * 4 / 42  # it holds one of the two values that are compared
        subset = ((true, report), (other, -report), (1 - true - other, Decimal(0)))
        total = Decimal(0)
        for k in range(coins + 1):
            ways = math.comb(coins, k) * heads**k * (1 - heads) ** (coins - k)
            for mass, loss in subset:
                above = (2 * k - coins) * coin + loss - asked
                total += ways * mass * (1 - (-above).exp()) if above > 0 else 0
        return total


def test_phases_of_many_frequencies_keep_their_digits() -> None:
    """168,000 frequencies: balls that were multiplied by one phase per step had no digit left, and a grid answered."""
    run = cm.parse("PureDP(epsilon=7.486e-5) * 100 + SubsetSelection(values=43, size=4, epsilon=2.733e-3)")
    found = run.guarantee(delta="1e-6")
    assert (found.rigour, found.route) == ("proved", "line")
    assert found.lower is not None
    assert hockey_stick_of_coins_and_a_subset(found.epsilon, 100) <= Decimal("1e-6")
    assert hockey_stick_of_coins_and_a_subset(found.lower, 100) >= Decimal("1e-6")
    assert found.epsilon - found.lower < 1e-14


def test_powers_of_a_phase_stay_narrow() -> None:
    with BALLS.at(128):
        phase = acb(0, BALLS.number(Fraction(1, 3))).exp()
        powers = line._powers(phase, 1000)
        assert [complex(each) for each in powers] == pytest.approx(
            [cmath.exp(1j * m / 3) for m in range(1000)], abs=1e-12
        )
        assert max(float(each.rad()) for each in powers) < 1e-33


def test_a_cell_of_the_lattice_is_summed_once() -> None:
    """Within a cell only the factors move, so that sums at two epsilons agree with sums that start anew."""
    found = built(sides(cm.PureDP(epsilon=1) * 10)[0], 3.0)
    with BALLS.at(found.choice.bits):
        for epsilon in ("1.3", "1.4", "3.2", "1.35", "5.1", "1.3"):
            fresh = dataclasses.replace(found, _cache={})
            kept, anew = (each.partial_sum(BALLS.number(Fraction(epsilon))) for each in (found, fresh))
            assert kept.overlaps(anew)
            assert kept.rad() < 1e-20
