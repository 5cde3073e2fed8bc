"""The line in floats against balls: each transform within its slack, decay, and each error term left out once."""

import math
from dataclasses import replace
from fractions import Fraction
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from flint import arb

import cumulant as cm
from cumulant.accounting import rounds as losses
from cumulant.exact.inversion import choose, float_decay, float_line
from cumulant.exact.inversion import line as spectrum
from cumulant.exact.inversion.choose import Side
from cumulant.exact.inversion.decay import DecayNotProved
from cumulant.exact.inversion.line import Choice, transform_values
from cumulant.exact.inversion.settings import LINE
from cumulant.exact.test_functions import HOCKEY_STICK, THEOREM_B, theorem_b_ball_constants
from cumulant.exact.test_functions import theorem_b_constants as constants
from cumulant.losses.float_rule import FloatRule, Total, float_rule, total
from cumulant.numerics.arithmetic import BALLS
from cumulant.numerics.rounding import U
from tests.exact.adverse import Wrong, farthest, log_sum, mass_off, rule_of

W, P = cm.WithoutReplacement, cm.Poisson
RUNS = [
    (cm.Gaussian(sigma=1) @ P(rate="256/60000") * 23_400, "1e-5"),
    (cm.Gaussian(sigma=5) @ W(rate=0.001) * 600_000, "1e-8"),
    (cm.Laplace(scale=2) @ W(rate=0.01) * 1000, "1e-6"),
    (cm.Gaussian(sigma=1) @ P(rate=0.1) * 50 + cm.Gaussian(sigma=8), "1e-6"),
]


def side(run: cm.Expression, direction: int = 0) -> Side:
    found, _ = losses.rounds(run.record())
    assert found is not None
    terms, round_types = list(found.lines())[direction]
    assert round_types is not None
    return Side(terms, round_types)


def built(run: cm.Expression, delta: str) -> tuple[Side, Any, Any]:
    where = side(run)
    choice = choose.choose_line(where, math.log(Fraction(delta)), None, 1e-3)
    assert choice is not None
    return where, choice, float_line.float_spectrum(where.round_types, choice, 1, 1)


# ---- the model


def test_sines_and_angles_are_within_the_model() -> None:
    generator = np.random.default_rng(3)
    size = np.exp(generator.uniform(math.log(1e-12), math.log(1e5), 3000))
    a, b = generator.uniform(-0.9, 0.9, 3000), size * 1e-6
    sine, cosine, angle = np.sin(size), np.cos(size), np.arctan2(b, 1 + a)
    worst = 0.0
    with BALLS.at(200):
        for i in range(size.size):
            x = BALLS.number(float(size[i]))
            y, z = BALLS.number(float(b[i])), BALLS.number(float(1 + a[i]))
            exact = (x.sin(), x.cos(), (y / z).atan())
            for found, number in zip((sine[i], cosine[i], angle[i]), exact, strict=True):
                worst = max(worst, float((abs(BALLS.number(float(found)) / number - 1)).mid()))
    assert 0.4 * U < worst <= 8 * U


# ---- one round


@pytest.mark.parametrize(("run", "delta"), RUNS[:3], ids=str)
def test_transforms_are_within_their_slack_and_not_without_it(run: cm.Expression, delta: str) -> None:
    where, choice, found = built(run, delta)
    law, u = where.round_types[0][0].density_law(), found.frequencies
    assert law is not None
    goal = -choice.decay_exponent - 30
    edges, top = list(law.span(choice.lam, goal)), float(u[-1]) * (1 + 1e-9)
    one = float_line.tilted_transform(float_rule(law, choice.lam, top, goal, tuple(edges)), u)
    with BALLS.at(160):
        from flint import arb

        exact = law.rule(choice.lam, top, goal, edges)
        mass = exact.mass()
        values = transform_values(exact, 2 * arb.pi() / arb(choice.period), u.size - 1)
        off = abs(BALLS.number(one.cgf) - mass.log())
        assert 0 < off <= one.cgf_slack
        outside = 0
        for m in range(1, u.size):
            log_phi = (values[m] / mass).log()
            wrong = float(abs(complex(log_phi) - complex(one.log_phi[m])))
            error = float((exact.error / mass).upper())
            assert wrong <= one.slack[m] + 2 * error + 4 * U * abs(complex(log_phi))
            outside += wrong > 0.01 * U * abs(one.log_phi[m])
        assert outside > u.size / 2


# ---- decay


@pytest.mark.parametrize(("run", "delta"), RUNS, ids=str)
def test_nothing_is_larger_than_what_is_claimed(run: cm.Expression, delta: str) -> None:
    where, choice, found = built(run, delta)
    u = np.linspace(float(found.frequencies[-1]), 40 * float(found.frequencies[-1]), 4001)
    exponent = np.zeros(u.size)
    for terms, times in where.terms:
        loss, log_p = terms.nodes(choice.lam)
        weight = np.exp(log_p + choice.lam * loss)
        size = np.abs(np.exp(1j * u[:, None] * loss) @ (weight / weight.sum()))
        exponent += times * np.log(np.maximum(size, 1e-300))
    assert float(exponent.max()) <= -choice.decay_exponent + 1e-6
    assert float(exponent.max()) > -40 * choice.decay_exponent  # and it is not claimed for nothing


def test_each_part_of_the_lemmas_is_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Windows whose spread, left out part or error is forgotten claim decay where a dense scan sees none."""
    where, choice, _ = built(*RUNS[0])
    law, times = where.round_types[0][0].density_law(), where.round_types[0][1]
    assert law is not None
    one = float_decay.FloatRoundType.prepare(law, times, choice.lam, choice.decay_exponent)
    window = float_decay._build_window(one, choice.lam, 40.0, choice.decay_exponent, 0.1)
    centre, half = np.array([20.0]), np.array([10.0])
    inside = np.linspace(10.0, 30.0, 801)
    largest = float(window.bounds(inside, np.zeros(801)).max())
    assert window.bounds(centre, half)[0] >= largest
    assert replace(window, spread=0.0).bounds(centre, half)[0] < largest  # Lemma S2
    assert replace(window, least=1.0, most=1.0).bounds(inside, np.zeros(801)).max() < largest  # Lemma S1
    assert replace(window, error=0.5).bounds(centre, half)[0] > window.bounds(centre, half)[0]
    monkeypatch.setattr(float_decay, "float_variation", lambda *_: math.inf)
    with pytest.raises(DecayNotProved):  # Lemma S3
        float_decay.decay_frequency([one], choice.lam, choice.decay_exponent, 0.0, 1.0)


# ---- the sum


@pytest.mark.parametrize(("run", "delta"), RUNS, ids=str)
def test_floats_are_above_balls_by_no_more_than_they_say(run: cm.Expression, delta: str) -> None:
    where, choice, found = built(run, delta)
    with BALLS.at(choice.bits):
        exact = spectrum.build_line(where.round_types, choice, where.extra)
        for factor in (0.7, 1.0, 1.3):
            epsilon = factor * choice.epsilon
            above = float(found.log_upper(np.array([epsilon]), np.array([1.0]))[0])
            ball, below = exact.partial_sum(BALLS.number(epsilon)), exact.lower(BALLS.number(epsilon))
            assert above >= float(ball.log().lower()) - 1e-9  # at the same frequencies, or a few more
            assert above >= float(below.log().lower())
            assert above <= float(exact.upper(BALLS.number(epsilon)).log().upper()) + 1e-5


def test_without_its_tail_a_short_line_misses() -> None:
    _, choice, found = built(*RUNS[3])
    count = found.frequencies.size // 3
    short = replace(
        found, frequencies=found.frequencies[:count], log_phi=found.log_phi[:count], slack=found.slack[:count]
    )
    at, one = np.linspace(0.5, 1.5, 41) * choice.epsilon, np.ones(41)
    exact = found.log_upper(at, one)
    bounded = replace(short, beta=-float(found.log_phi[count - 1].real))
    assert (bounded.log_upper(at, one) >= exact - 1e-9).all()
    unbounded = replace(short, beta=math.inf)
    assert (unbounded.log_upper(at, one) < exact - 1e-9).any()


def test_without_its_slack_a_line_of_wrong_transforms_misses() -> None:
    """Transforms that are moved by what their slack allows: the sum stays above, and without the slack does not."""
    _, choice, found = built(*RUNS[0])
    slack = np.full(found.slack.shape, 1e-3)
    at, one = np.array([choice.epsilon]), np.array([1.0])
    truth = found.log_upper(at, one)[0]
    moved = replace(found, log_phi=found.log_phi - slack * (np.arange(slack.size) > 0), slack=slack)
    assert moved.log_upper(at, one)[0] >= truth
    assert replace(moved, slack=0 * slack).log_upper(at, one)[0] < truth
    lower = replace(found, cgf=found.cgf - 1e-3, cgf_slack=1e-3 + found.cgf_slack)
    assert lower.log_upper(at, one)[0] >= truth
    assert replace(lower, cgf_slack=0.0).log_upper(at, one)[0] < truth


def test_fewer_repetitions_than_decay_was_proved_for_are_refused() -> None:
    where = side(cm.Gaussian(sigma=1) @ P(rate=0.01) * 1)
    repeated = Side(where.terms, tuple((one, 2000 * times) for one, times in where.round_types))
    terms = tuple((step, 2000 * times) for step, times in where.terms)
    choice = choose.choose_line(replace(repeated, terms=terms), math.log(1e-6), None, 1e-3)
    assert choice is not None
    found = float_line.float_spectrum(where.round_types, choice, 2000, 4000)
    many = found.log_upper(np.array([1.0, 1.0, 1.0]), np.array([1999.0, 2000.0, 4000.0]))
    assert many[0] == math.inf
    assert many[1] < many[2] < 0


def test_a_leak_is_part_of_the_answer() -> None:
    _, choice, found = built(*RUNS[0])
    leaking = replace(found, log_kept=math.log1p(-1e-3))
    at, one = np.array([choice.epsilon]), np.array([1.0])
    assert leaking.log_upper(at, one)[0] >= math.log(1e-3 + math.exp(found.log_above(at, one)[0]))
    assert leaking.log_leaks(np.array([2.0]))[0] >= math.log(1 - (1 - 1e-3) ** 2)


# ---- every constant alone: what it is for is moved by as much as it may be, and only with it the truth is inside

ROUNDINGS = (
    "_PHASE",
    "_LOGARITHM",
    "_TERM",
    "_GAUSSIAN",
    "_QUOTIENT",
    "_POWER",
    "_TURN",
    "_ADDED",
    "_KIND",
    "_OUTSIDE",
)
WORST = 0.99
LOSSES, WEIGHTS = np.array([-0.7, -0.1, 0.05, 0.3, 1.1]), np.array([0.2, 1.0, 0.7, 0.4, 0.1])
PLAIN = rule_of(LOSSES, WEIGHTS)
UPWARD = rule_of([0.1, 0.3, 1.1], [1.0, 0.7, 0.2])
LONG = rule_of(np.linspace(0.1, 0.4, 4000), np.linspace(1.0, 2.0, 4000))


def only(monkeypatch: pytest.MonkeyPatch, *kept: str) -> None:
    """Nothing is lost by any operation but these."""
    for name in ROUNDINGS:
        if name not in kept:
            monkeypatch.setattr(float_line, name, 0.0)


def summed(relative: bool = False, additions: bool = False, radius: bool = False) -> Any:
    """The mass of a law, of whose errors only some are told."""

    def told(weights: Any) -> Total:
        whole, extra = total(weights), (weights.size + 8) * 1.01 * U
        share = (whole.relative - extra if radius else 0.0) + (extra if relative else 0.0)
        return Total(whole.sum, max(share, 0.0), extra if additions else 0.0)

    return told


def inside(rule: FloatRule, wrong: Wrong) -> bool:
    """Whether phi is within the slack at low and high frequencies, however its numbers are wrong."""
    u = np.array([0.0, 1e-3, 0.4, 2.0])
    found = float_line.tilted_transform(rule, u)
    return all(farthest(rule, u[m], found.log_phi[m], wrong) <= math.expm1(found.slack[m]) for m in range(1, u.size))


def left_out(rule: FloatRule, **fields: Any) -> FloatRule:
    return replace(rule, **fields)


ALONE: list[tuple[str, FloatRule, Wrong, tuple[str, ...], dict[str, bool]]] = [
    ("phases and sines", PLAIN, Wrong(phase=4.1 * U, sine=8 * U), ("_PHASE",), {}),
    ("quotients", UPWARD, Wrong(quotient=2 * U), ("_QUOTIENT",), {}),
    ("logarithms", UPWARD, Wrong(logarithm=8 * U), ("_LOGARITHM",), {}),
    ("sums over points", LONG, Wrong(dots=4000 * U), (), {"additions": True}),
    ("the sum of all weights", LONG, Wrong(whole=4000 * U), (), {"relative": True}),
]


@pytest.mark.parametrize(("rule", "wrong", "kept", "told"), [row[1:] for row in ALONE], ids=[row[0] for row in ALONE])
def test_each_rounding_of_one_round_is_covered_by_its_constant_alone(
    monkeypatch: pytest.MonkeyPatch, rule: FloatRule, wrong: Wrong, kept: tuple[str, ...], told: dict[str, bool]
) -> None:
    with BALLS.at(160):
        only(monkeypatch, *kept)
        monkeypatch.setattr(float_line, "total", summed(**told))
        assert inside(rule, wrong)
        only(monkeypatch)
        monkeypatch.setattr(float_line, "total", summed())
        assert not inside(rule, wrong)


def test_each_radius_of_one_round_is_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Losses, weights of rare losses, weights of the others, quadrature: each forgotten once, all else kept."""
    far, near = [1.0, 1e-9, -1e-9], [1e-3, 1.0, 1.0]
    with BALLS.at(160):
        moved = rule_of(LOSSES, WEIGHTS, moved=1e-8)
        assert inside(moved, Wrong(losses=WORST))
        rare = rule_of(far, near, heavier=[1e-6, 0.0, 0.0])
        assert inside(rare, Wrong(weights=WORST))
        common = rule_of(far, near, heavier=[0.0, 1e-4, 1e-4])
        assert inside(common, Wrong(weights=WORST))
        wide = rule_of(LOSSES, WEIGHTS, error=1e-7)
        assert inside(wide, Wrong(quadrature=WORST))
        every = rule_of(LOSSES, WEIGHTS, 1e-8, 1e-8, 0.0, 1e-8)
        assert inside(every, Wrong(WORST, WORST, 4 * U, 8 * U, 5 * U, 5 * U, 2 * U, WORST, 8 * U))
        # a truth that lies within radii which the rule does not tell
        u = 0.4
        for rule, untold, wrong, known in (
            (moved, PLAIN, Wrong(losses=WORST), total),
            (wide, PLAIN, Wrong(quadrature=WORST), total),
            (rare, rule_of(far, near), Wrong(weights=WORST), lambda _: total(rare.weights)),
            (common, common, Wrong(weights=WORST), lambda _: total(rule_of(far, near).weights)),
        ):
            monkeypatch.setattr(float_line, "total", known)
            found = float_line.tilted_transform(untold, np.array([0.0, u]))
            assert farthest(rule, u, found.log_phi[1], wrong) > math.expm1(found.slack[1])


def test_each_part_of_the_mass_is_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    """log M(lam): radii, sums, quadrature, and the digits that a large scale takes."""
    heavy, wide = rule_of(LOSSES, WEIGHTS, heavier=1e-8), rule_of(LOSSES, WEIGHTS, error=1e-8)
    scaled = [rule_of(LOSSES, WEIGHTS + i / 7, scale=7e4 + 0.1 * i) for i in range(16)]

    def covered(rule: FloatRule, wrong: Wrong, told: FloatRule | None = None) -> bool:
        found = float_line.tilted_transform(told or rule, np.array([0.0, 1.0]))
        return mass_off(rule, found.cgf, wrong) <= found.cgf_slack

    with BALLS.at(160):
        assert covered(heavy, Wrong(weights=WORST))
        assert covered(wide, Wrong(quadrature=WORST))
        assert covered(LONG, Wrong(whole=4000 * U))
        assert all(covered(each, Wrong()) for each in scaled)
        assert not covered(heavy, Wrong(weights=WORST), PLAIN)
        assert not covered(wide, Wrong(quadrature=WORST), PLAIN)
        monkeypatch.setattr(float_line, "_OUTSIDE", 0.0)
        assert not all(covered(each, Wrong()) for each in scaled)
        monkeypatch.setattr(float_line, "total", summed())
        assert not covered(LONG, Wrong(whole=4000 * U))


# ---- all rounds


def of_terms(log_phi: Any, frequencies: Any, lam: float = 2.0, cgf: float = 0.0) -> float_line.FloatSpectrum:
    """A line whose numbers are exact, and which is 0 behind its last frequency."""
    choice, size = Choice(lam, 4.0, 1.0, 1.0, 0.0, 0.0, 2 * lam, 128), len(frequencies)
    phi, u = np.array(log_phi, dtype=np.complex128), np.array(frequencies, dtype=np.float64)
    return float_line.FloatSpectrum(choice, u, phi, np.zeros(size), cgf, 0.0, math.inf, 1, 0.0)


COUNT = 4096
SUMS = {
    # numbers of few bits: products are exact, and what is wrong is what is moved
    "_TERM": (of_terms([0, -0.5], [0, 0.5]), 0.0, 1.0, {"term": 79 * U}),
    "_POWER": (of_terms([0, -(2.0**-12) + 0.5j], [0, 0.5]), 0.0, 4097.0, {"exponent": 1.9 * U}),
    "_TURN": (of_terms([0, -0.125 + 0.75j], [0, 0.25], 0.0625, 4096.0), 65536.0, 1.0, {"turn": 7.9 * U}),
    "_ADDED": (of_terms(np.zeros(COUNT), np.arange(COUNT) / 8192), 0.0, 1.0, {"term": (COUNT - 8) * U}),
}


@pytest.mark.parametrize("name", SUMS)
def test_each_rounding_of_the_sum_is_covered_by_its_constant_alone(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    line, epsilon, times, wrong = SUMS[name]
    at, k = np.array([epsilon]), np.array([times])
    with BALLS.at(200):
        for power, test in ((1, HOCKEY_STICK), (2, THEOREM_B)):
            truth = log_sum(line, epsilon, times, power, **wrong)
            assert line.log_above(at, k, test)[0] >= truth  # among all
            with monkeypatch.context() as one:
                only(one, name)
                assert line.log_above(at, k, test)[0] >= truth
                only(one)
                assert line.log_above(at, k, test)[0] < truth


def test_what_stands_before_the_sum_loses_digits(monkeypatch: pytest.MonkeyPatch) -> None:
    """A hundred million rounds: K and lam eps are of the size 1e7, and nearly cancel."""
    generator, times = np.random.default_rng(7), 1e8
    lines = [of_terms([0, -1.0], [0, 1.0], 3.0 + i / 9, float(generator.uniform(0.1, 0.2))) for i in range(24)]
    epsilons = [times * one.cgf / one.choice.lam + 1.0 for one in lines]

    def covered() -> list[bool]:
        pairs = zip(lines, epsilons, truths, strict=True)
        return [bool(one.log_above(np.array([e]), np.array([times]))[0] >= truth) for one, e, truth in pairs]

    with BALLS.at(200):
        truths = [log_sum(one, e, times) for one, e in zip(lines, epsilons, strict=True)]
        assert all(covered())
        monkeypatch.setattr(float_line, "_OUTSIDE", 0.0)
        assert not all(covered())


def test_gaussians_without_a_sample_lose_what_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """Their exponents are computed by a few products: within 16 u, and not exactly."""
    where = side(cm.Gaussian(sigma="0.37") * 3 + cm.Gaussian(sigma="1.9"))
    choice = Choice(1.3, 7.7, 40.0, 1.0, 0.0, 0.0, 2.6, 128)

    def covered() -> bool:
        found = float_line.float_spectrum(where.round_types, choice, 1, 1)
        square = sum(((each.square or 0) * times for each, times in where.round_types), start=Fraction(0))
        half, lam = BALLS.number(square) / 2, arb(choice.lam)
        fine = abs(half * (lam + lam * lam) - arb(found.cgf)) <= found.cgf_slack
        for m in range(1, found.frequencies.size):
            u = 2 * arb.pi() * m / arb(choice.period)
            off = (half * u * u + arb(found.log_phi[m].real)) ** 2
            off += (half * (1 + 2 * lam) * u - arb(found.log_phi[m].imag)) ** 2
            fine = fine and off.sqrt() <= found.slack[m]
        return bool(fine)

    with BALLS.at(160):
        assert covered()
        monkeypatch.setattr(float_line, "_KIND", 0.0)
        assert covered()
        monkeypatch.setattr(float_line, "_GAUSSIAN", 0.0)
        assert not covered()


def test_kinds_that_are_lost_in_a_sum_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """One kind and hundreds that are each less than its last digit: floats add nothing."""
    count, small = 300, 0.99 * U

    class Kind:
        square = None

        def __init__(self, size: float) -> None:
            self.size = size

        def density_law(self) -> Any:
            return self

        def leak(self) -> Any:
            return BALLS.number(0)

    def transformed(law: Kind, *_: Any) -> Any:
        return float_line.TiltedTransform(
            np.array([0, -law.size + 0j]), np.zeros(2), law.size, 0.0
        ), 1  # two frequencies

    monkeypatch.setattr(float_line, "_remembered_transform", transformed)
    monkeypatch.setattr(float_line, "decay_frequency", lambda *_: 0.9)
    monkeypatch.setattr(float_line, "LINE", replace(LINE, length_multiple=1))
    monkeypatch.setattr(
        float_line,
        "FloatRoundType",
        SimpleNamespace(prepare=lambda law, times, *_: SimpleNamespace(law=law, times=times, log_mass=0.0)),
    )
    round_types: Any = [(Kind(1.0), 1)] + [(Kind(small), 1) for _ in range(count)]
    choice = Choice(1.0, 2 * math.pi, 1.0, 1.0, 0.0, 0.0, 2.0, 128)

    def covered() -> tuple[bool, bool]:
        found = float_line.float_spectrum(round_types, choice, 1, 1)
        wanted = Fraction(1) + count * Fraction(small)
        real = abs(Fraction(found.log_phi[1].real) + wanted) <= Fraction(found.slack[1])
        return real, abs(Fraction(found.cgf) - wanted) <= Fraction(found.cgf_slack)

    assert covered() == (True, True)
    monkeypatch.setattr(float_line, "_KIND", 0.0)
    assert covered() == (False, False)


def test_constants_of_theorem_b_may_be_wrong_by_what_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    gaps = np.geomspace(1e-5, 200.0, 400)
    with BALLS.at(200):
        for gap, log_ratio, log_constant in zip(gaps, *constants(gaps), strict=True):
            ratio, constant = theorem_b_ball_constants(BALLS.number(float(gap)))
            assert abs(ratio - arb(log_ratio)) <= 1e-13 * (1 + gap)
            assert abs(constant.log() - arb(log_constant)) <= 1e-13
    line = of_terms([0, -0.5], [0, 0.5], 50.0)
    at, one, gap = np.array([1.0]), np.array([1.0]), np.array([0.06])
    for ratio_off, constant_off in ((0.9e-13, 0.0), (0.0, 0.9e-13)):
        with monkeypatch.context() as moved:
            moved.setattr(float_line, "_OUTSIDE", 0.0)
            moved.setattr(float_line, "_CONSTANT", 0.0)
            truth = line.log_theorem_b(at, one, gap)[0]
        with monkeypatch.context() as moved:
            wrong = constants(gap)[0] - ratio_off * (1 + gap), constants(gap)[1] - constant_off
            moved.setattr(float_line, "theorem_b_constants", lambda _, wrong=wrong: wrong)
            moved.setattr(float_line, "_OUTSIDE", 0.0)
            assert line.log_theorem_b(at, one, gap)[0] >= truth
            moved.setattr(float_line, "_CONSTANT", 0.0)
            assert line.log_theorem_b(at, one, gap)[0] < truth


def test_leaks_are_rounded_up(monkeypatch: pytest.MonkeyPatch) -> None:
    line = replace(of_terms([0, -0.5], [0, 0.5]), log_kept=math.log1p(-1e-12))
    times = np.floor(10 ** np.linspace(0.0, 9.0, 60))

    def covered() -> bool:
        found = line.log_leaks(times)
        exact = [-(arb(line.log_kept) * arb(k)).expm1() for k in times]
        return all(arb(value) >= each.log() for value, each in zip(found, exact, strict=True))

    with BALLS.at(160):
        assert covered()
        monkeypatch.setattr(float_line, "MANY", 0.0)
        assert not covered()


@pytest.mark.parametrize("sample", [P(rate=1), W(rate=1)])
def test_gaussian_rounds_with_too_many_frequencies_are_left_to_others(sample: Any) -> None:
    assert (cm.Gaussian(sigma=1) @ sample * 2).delta("1e13") <= 1e-300
