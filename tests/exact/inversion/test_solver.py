"""The line against reference values, closed forms and the lattice; each of its error terms left out once."""

import itertools
import json
import math
import random
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import cumulant as cm
from cumulant.accounting import rounds as losses
from cumulant.conversion.query import Query
from cumulant.exact.grid import refine, theorem_b
from cumulant.exact.inversion import decay, line, solver
from cumulant.exact.inversion.choose import Side, choose_line, guess, sides
from cumulant.exact.inversion.line import Choice, Line
from cumulant.exact.test_functions import THEOREM_B, theorem_b_ball_constants, theorem_b_constants
from cumulant.losses.transform import Mixed, Rule
from cumulant.numerics.arithmetic import BALLS
from cumulant.pairs.gaussian import GaussianPair
from cumulant.pairs.laplace import LaplacePair

ORACLES = Path(__file__).parents[2] / "oracles"
REFERENCE = json.loads((ORACLES / "line.json").read_text())["values"]
W, P = cm.WithoutReplacement, cm.Poisson


choose: Any = choose_line
rounds: Any = losses.rounds


def proved_epsilon(side: Any, delta: Fraction, *given: Any, **named: Any) -> Any:
    return solver.side_end(side, Query("delta", delta), *given, **named)


def proved_delta(side: Any, epsilon: Fraction, *given: Any, **named: Any) -> Any:
    return solver.side_end(side, Query("epsilon", epsilon), *given, **named)


def law_of(shift: str, rate: str, direction: str) -> Any:
    return GaussianPair(Fraction(shift)).transform(Fraction(rate), direction)


def base(name: str, noise: str) -> Any:
    shift = 1 / Fraction(noise)
    return GaussianPair(shift) if name == "gauss" else LaplacePair(shift)


def composed(row: dict[str, Any]) -> Side:
    """Exactly the pairs of a reference value, in their one direction."""
    terms: list[Any] = []
    round_types: list[Any] = []
    for one in row["pairs"]:
        pair, rate, direction = base(one["base"], one["noise_over_sensitivity"]), Fraction(one["rate"]), one["pair"]
        terms.append((pair.upper_step(rate, direction), one["rounds"]))
        round_types.append((pair.transform(rate, direction), one["rounds"]))
    return Side(tuple(terms), tuple(round_types))


def side(run: cm.Expression, direction: int = 0) -> Side:
    found, _ = rounds(run.record())
    terms, round_types = list(found.lines())[direction]
    return Side(terms, round_types)


def built(where: Side, delta: str = "1e-6", accuracy: float = 1e-3) -> tuple[Line, Choice]:
    choice = choose(where, math.log(Fraction(delta)), None, accuracy)
    assert choice is not None
    with BALLS.at(choice.bits):
        return line.build_line(where.round_types, choice, where.extra), choice


# ---- against the world


@pytest.mark.parametrize("row", REFERENCE, ids=lambda row: row["setting"][:40])
def test_public_answers_are_the_reference_values(row: dict[str, Any]) -> None:
    """The pairs that a reference value names are those of the larger direction, so the whole run needs as much."""
    scheme = W if row["pairs"][0]["pair"] == "symmetric" else P
    parts = []
    for one in row["pairs"]:
        noise, rate = one["noise_over_sensitivity"], one["rate"]
        noisy = cm.Gaussian(sigma=noise) if one["base"] == "gauss" else cm.Laplace(scale=noise)
        parts.append(noisy @ scheme(rate=rate) * one["rounds"])
    run, fine = sum(parts[1:], start=parts[0]), Fraction(1, 10**12)
    how: Any = {"method": "exact", "bound": "profile" if scheme is W else None, "accuracy": fine}
    truth = Fraction(row["epsilon_at_delta"])
    assert truth <= Fraction(run.epsilon(row["delta"], **how)) <= truth * (1 + fine)
    if scheme is P:  # the pairs are those of data sets
        found = run.guarantee(delta=row["delta"], **how)
        assert found.rigour == found.lower_rigour == "proved"
        assert found.lower is not None
        assert truth * (1 - fine) <= Fraction(found.lower) <= truth
    back = run.delta(row["epsilon"], **how)
    size = Fraction(row["delta_at_epsilon"])
    assert size <= Fraction(back) <= size * (1 + fine)


@pytest.mark.parametrize("row", REFERENCE, ids=lambda row: row["setting"][:40])
def test_reference_values_are_inside_the_proved_interval(row: dict[str, Any]) -> None:
    where, truth = composed(row), Fraction(row["epsilon_at_delta"])
    upper = proved_epsilon(where, Fraction(row["delta"]), 1e-12)
    lower = proved_epsilon(where, Fraction(row["delta"]), 1e-12, upper=False)
    assert Fraction(lower.value) <= truth <= Fraction(upper.value)
    assert upper.value - lower.value <= 1e-12 * upper.value
    size = Fraction(row["delta_at_epsilon"])
    upper = proved_delta(where, Fraction(row["epsilon"]), 1e-12)
    lower = proved_delta(where, Fraction(row["epsilon"]), 1e-12, upper=False)
    assert Fraction(lower.value) <= size <= Fraction(upper.value)
    assert upper.value - lower.value <= 1e-11 * upper.value


@pytest.mark.parametrize(
    ("run", "delta", "expected"),
    [
        (cm.Gaussian(sigma=5) @ W(rate=0.001) * 600_000, "1e-8", 0.80695120575712),
        (cm.Gaussian(sigma=5, geometry="ball") @ W(rate=0.001) * 600_000, "1e-8", 0.80276641417632),
        (cm.Gaussian(sigma=1) @ W(rate=0.001) * 600_000, "1e-8", 6.7561615524226),
        (cm.Gaussian(sigma=1, geometry="ball") @ W(rate=0.001) * 600_000, "1e-8", 5.9988400980564),
    ],
    ids=str,
)
def test_theorem_b_is_proved_along_the_line(run: cm.Expression, delta: str, expected: float) -> None:
    """The published numbers are bounds at one gap; a better gap gives less, and the expectation of floats not less."""
    found = run.guarantee(delta=delta, accuracy=1e-9)
    assert (found.route, found.rigour) == ("cone", "proved")
    assert expected * (1 - 1e-6) <= found.epsilon <= expected * (1 + 1e-9)
    on_grid = refine.theorem_b_epsilon(rounds(run.record())[0].theorem_b.terms, math.log(float(delta)), 1e-4)
    assert found.epsilon <= on_grid.value <= found.epsilon * (1 + 4e-4)


@pytest.mark.parametrize("delta", ["1e-4", "1e-8"])
def test_theorem_b_of_a_mixture_is_the_mean_over_the_reports(delta: str) -> None:
    """A report of two outputs shifts the Gaussian sum by +-log 3: E g(S + L - eps0) = SUM p E g(S - (eps0 - l))."""
    gaussians = cm.Gaussian(sigma=5) @ W(rate="0.01") * 20_000
    mixed = gaussians + cm.RandomizedResponse(p="3/4")
    found = mixed.guarantee(delta=delta, accuracy=1e-6)
    assert (found.route, found.rigour) == ("cone", "proved")
    offered = sides(rounds(gaussians.record())[0], theorem_b=True)
    assert offered is not None
    assert offered[1] is not None
    along, _ = built(offered[1], delta, 1e-12)
    shifts = [(math.log(3), Fraction(3, 4)), (-math.log(3), Fraction(1, 4))]
    bounds = []
    for gap in np.geomspace(0.04, 1.2, 240).tolist():
        with BALLS.at(256):
            log_ratio, constant = theorem_b_ball_constants(BALLS.number(gap))
            start = BALLS.number(found.epsilon) - log_ratio
            means = [BALLS.number(p) * along.ball(start - BALLS.number(loss), THEOREM_B) for loss, p in shifts]
            bounds.append(float((constant * sum(means[1:], start=means[0])).mid()))
    assert min(bounds) == pytest.approx(float(delta), rel=1e-4)
    assert found.lower is not None
    assert found.lower < found.epsilon < mixed.epsilon(delta, method="exact", bound="profile")


def test_both_ends_of_a_training_run_agree_to_twelve_digits() -> None:
    run = cm.Gaussian(sigma=1) @ P(rate="256/60000") * 23_400
    found = run.guarantee(delta="1e-5", accuracy=1e-12)
    assert (found.rigour, found.lower_rigour, found.route) == ("proved", "proved", "line")
    assert found.lower is not None
    assert found.lower <= 3.7413947378583146693 <= found.epsilon
    assert found.epsilon - found.lower < 1e-12 * found.epsilon
    assert run.epsilon("1e-5", accuracy=1e-12) == found.epsilon


def test_both_ends_agree_where_floats_have_no_digits_left() -> None:
    """Few rounds and a delta of 1e-92: forty nats cancel, and the saddle point is a poor guess."""
    scheme = P(rate="0.0174")
    run = cm.Gaussian(sigma="2.49") @ scheme * 302 + cm.Gaussian(sigma="6.21") @ P(rate="0.000659") * 96
    found = (run + cm.Gaussian(sigma="22.1")).guarantee(delta="5.9e-92", accuracy=1e-12)
    assert found.lower is not None
    assert (found.rigour, found.lower_rigour) == ("proved", "proved")
    assert found.lower <= found.epsilon <= found.lower * (1 + 1e-12)


@pytest.mark.parametrize(("shift", "epsilon"), [("1/2", "1"), ("2", "1/2"), ("3", "7"), ("1/5", "1/10")])
def test_gaussians_without_a_sample_have_a_closed_form(shift: str, epsilon: str) -> None:
    """Several closed transforms along the line against Phi(t/2 - eps/t) - e^eps Phi(-t/2 - eps/t)."""
    pair: Any = GaussianPair(Fraction(shift))
    parts: Any = GaussianPair(Fraction(shift) / 5)
    where = Side(((pair.upper_step(Fraction(1), "symmetric"), 1),), ((parts.transform(Fraction(1), "symmetric"), 25),))
    choice = choose(where, None, float(Fraction(epsilon)), 1e-12)
    with BALLS.at(choice.bits):
        found = line.build_line(where.round_types, choice)
        truth = pair.profile(Fraction(epsilon), BALLS)
        at = BALLS.number(Fraction(epsilon))
        assert found.lower(at) <= truth <= found.upper(at)
        assert found.upper(at) - found.lower(at) <= 1e-12 * truth


SETTINGS = random.Random(5)


def _random_run() -> tuple[cm.Expression, str]:
    rate = SETTINGS.choice(["0.001", "0.01", "0.1", "0.5"])
    scheme = SETTINGS.choice([W, P])
    noise = SETTINGS.choice(["0.6", "1", "2", "5"])
    mechanism = SETTINGS.choice([cm.Gaussian, cm.Laplace])(noise)
    run = mechanism @ scheme(rate=rate) * SETTINGS.choice([100, 1000, 30_000])
    if SETTINGS.random() < 0.3:
        run = run + cm.Gaussian(sigma=3) @ scheme(rate="0.02") * 300
    if SETTINGS.random() < 0.2:
        run = run + cm.Gaussian(sigma=4)
    return run, SETTINGS.choice(["1e-2", "1e-5", "1e-9", "1e-30"])


@pytest.mark.parametrize(("run", "delta"), [_random_run() for _ in range(16)], ids=str)
def test_the_lattice_never_crosses_the_line(run: cm.Expression, delta: str) -> None:
    """Each direction of each pair: the grid from above is above the line from below, and the other way round."""
    found, _ = rounds(run.record())
    for terms, round_types in found.lines():
        where = Side(terms, round_types)
        if guess(where, Query("delta", Fraction(delta))) is None:
            continue
        upper, lower = (proved_epsilon(where, Fraction(delta), 1e-6, upper=end) for end in (True, False))
        if upper is None or lower is None:
            continue
        above = refine.grid_epsilon(terms, math.log(float(delta)), 1e-3, True)
        below = refine.grid_epsilon(terms, math.log(float(delta)), 1e-3, False)
        assert below.value <= upper.value
        assert lower.value <= above.value
        assert lower.value <= upper.value <= lower.value * (1 + 1e-5) + 1e-9


# ---- the transform of one round


@pytest.mark.parametrize("direction", ["remove", "add", "symmetric"])
@pytest.mark.parametrize("name", ["gauss", "laplace"])
@pytest.mark.parametrize("rate", ["1/50", "1"])
def test_the_inner_transform_contains_an_adaptive_integral(name: str, direction: str, rate: str) -> None:
    """acb.integral of the defining integral at complex orders, atoms and ends included, lies inside the ball of the rule."""
    from flint import acb, arb

    law = Mixed(base(name, "1").transform(Fraction(1, 2), "remove").base, Fraction(rate), direction)
    lam, u = 2.5, 3.0
    with BALLS.at(128):
        span = law.span(lam, -60.0)
        rule = law.rule(lam, u, -60.0, list(span))
        (_, found) = line.transform_values(rule, arb(u), 1)
        g, kept, z = BALLS.number(law.rate), BALLS.number(1 - law.rate), acb(lam, u)

        def integrand(x: Any, _: bool) -> Any:
            w = kept + g * x.exp()
            q = (-((x + acb(1) / 2) ** 2) / 2).exp() / (2 * arb.pi()).sqrt()
            if name == "laplace":
                q = (-(x + 1) / 2).exp() / 4
            parts = {"remove": [1 + z], "add": [-z]}.get(direction, [1 + z, -z])
            return sum((q * w**power for power in parts), start=acb(0))

        start = 0 if direction == "symmetric" else (-1 if name == "laplace" else -40)
        total = acb.integral(integrand, acb(start), acb(1 if name == "laplace" else 40), rel_tol=arb(2) ** -100)
        points = [] if name == "gauss" else [(arb(1), (-arb(1)).exp() / 2)]
        if name == "laplace" and direction != "symmetric":
            points.append((arb(-1), arb(1) / 2))
        for x, mass in points:
            w = acb(kept + g * x.exp())
            for power in {"remove": [1 + z], "add": [-z]}.get(direction, [1 + z, -z]):
                total += mass * w**power
        if direction == "symmetric":
            distance = (1 / arb(8).sqrt()).erf() if name == "gauss" else 1 - (-arb(1) / 2).exp()
            total += kept * distance
        assert found.overlaps(total)
        assert abs(found - total).upper() < 1e-20
        # with order 0 the mass is 1: nothing leaks
        assert law.rule(0.0, 0.0, -60.0, list(law.span(0.0, -60.0))).mass().overlaps(arb(1))


# ---- decay


@pytest.mark.parametrize(
    "run",
    [
        cm.Gaussian(sigma=1) @ P(rate="0.01") * 1000,
        cm.Gaussian(sigma=2) @ W(rate="0.05") * 400,
        cm.Laplace(scale=1) @ W(rate="0.1") * 2000,
        cm.Laplace(scale=2) @ P(rate="0.02") * 3000 + cm.Gaussian(sigma=1) @ P(rate="0.01") * 200,
    ],
    ids=str,
)
@pytest.mark.parametrize("direction", [0, 1])
def test_nothing_beyond_the_last_frequency_is_larger_than_was_proved(run: cm.Expression, direction: int) -> None:
    try:
        where = side(run, direction)
    except IndexError:
        return  # a symmetric pair has one direction
    found, choice = built(where)
    step = 2 * math.pi / choice.period
    frequencies = step * (found.frequencies + 1) * np.geomspace(1, 40, 3000)
    exponent = np.zeros(frequencies.size)
    for terms, times in where.terms:
        loss, log_p = terms.nodes(choice.lam)
        weight = np.exp(log_p + choice.lam * loss)
        weight /= weight.sum()
        exponent += times * np.log(np.maximum(np.abs(np.exp(1j * frequencies[:, None] * loss) @ weight), 1e-300))
    largest = float(np.max(exponent))
    assert largest <= -choice.decay_exponent + 1e-6
    assert float((found.beyond / found.values[0].real).log().mid()) == pytest.approx(-choice.decay_exponent)


# ---- the theorem_b


@pytest.mark.parametrize("gap", ["1/1000", "1/20", "1/2", "2", "9"])
def test_the_constants_of_the_cone_are_the_tangent_of_its_function(gap: str) -> None:
    with BALLS.at(256):
        d = BALLS.number(Fraction(gap))
        log_ratio, constant = theorem_b_ball_constants(d)
        ratio, rho = log_ratio.exp(), d.exp()

        def f(y: Any) -> Any:
            return (y + 1) * y.log() - 2 * (y - 1)

        assert (constant * f(rho) - (rho - ratio)).contains(0)
        for factor in ("11/10", "9/10", "3", "1001/1000", "999/1000"):
            y = rho * BALLS.number(Fraction(factor))
            if y > 1:
                assert y - ratio <= constant * f(y)
        found = theorem_b_constants(np.asarray(float(Fraction(gap))))
        assert found[0] == pytest.approx(float(log_ratio.mid()), rel=1e-12)
        assert found[1] == pytest.approx(float(constant.log().mid()), rel=1e-12, abs=1e-12)
        assert theorem_b.log_constant(found[0]) >= found[1]


# ---- every term, left out once


def _ends(where: Side, delta: str, accuracy: float) -> tuple[float, float]:
    upper = proved_epsilon(where, Fraction(delta), accuracy)
    lower = proved_epsilon(where, Fraction(delta), accuracy, upper=False)
    return (math.inf if upper is None else upper.value), (-math.inf if lower is None else lower.value)


ROW = next(row for row in REFERENCE if row["setting"].startswith("Laplace"))


def test_without_the_quadrature_error_the_value_is_missed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Panels that are far too wide: the ball of M still holds the truth, and without its error term does not."""
    law = law_of("1", "1/10", "remove")
    with BALLS.at(128):
        span = list(law.span(3.0, -60.0))
        fine = law.rule(3.0, 5.0, -60.0, span)
        truth = line.transform_values(fine, BALLS.number(5), 1)[1]
        monkeypatch.setattr("cumulant.losses.transform.NODES", 4)
        monkeypatch.setattr("cumulant.losses.transform.legendre_balls", lambda *_: _gauss(4))
        coarse = law.rule(3.0, 5.0, -3.0, span)
        assert line.transform_values(coarse, BALLS.number(5), 1)[1].contains(truth.mid())
        monkeypatch.setattr(Rule, "error", property(lambda self: self.beyond))
        assert not line.transform_values(coarse, BALLS.number(5), 1)[1].overlaps(truth)


def _gauss(count: int) -> list[Any]:
    from flint import arb

    return [arb.legendre_p_root(count, k, weight=True) for k in range(count)]


def test_without_the_ends_the_mass_is_missed() -> None:
    law = law_of("1", "1/10", "remove")
    with BALLS.at(128):
        truth = law.rule(3.0, 0.0, -60.0, list(law.span(3.0, -60.0))).mass()
        near = law.rule(3.0, 0.0, -60.0, [-3.0, 5.0])
        assert near.mass().overlaps(truth)
        assert not law.rule(3.0, 0.0, -60.0, [-3.0, 5.0], beyond=False).mass().overlaps(truth)


def test_without_the_tail_half_of_the_frequencies_say_too_little_or_too_much() -> None:
    """Decay claimed where there is none: the sum of half the frequencies misses by more than the stated tail."""
    found, choice = built(composed(ROW), "1e-6", 1e-12)
    short = Line(choice, found.values[: len(found.values) // 2], found.beyond, found.leak, found.image_moment, 0)
    with BALLS.at(choice.bits):
        truth, at = Fraction(ROW["delta_at_epsilon"]), BALLS.number(Fraction(ROW["epsilon"]))
        exact = BALLS.number(truth)
        assert abs(short.partial_sum(at) - exact) > short.tail(at) + short.images(at) + 1e-19 * exact
        bounded = Line(
            choice,
            short.values,
            max(abs(v) for v in found.values[len(short.values) :]),
            found.leak,
            found.image_moment,
            0,
        )
        assert bounded.lower(at) <= exact <= bounded.upper(at)


def test_without_the_images_the_lower_end_is_too_high() -> None:
    """A period that is far too short: the line alone is above delta, and the bound of the images takes that back."""
    where = composed(ROW)
    choice = choose(where, math.log(1e-6), None, 1e-12)
    short = Choice(
        choice.lam,
        choice.period / 3,
        choice.decay_exponent,
        choice.image_exponent,
        choice.epsilon,
        choice.log_delta,
        choice.image_order,
        192,
    )
    with BALLS.at(192):
        found = line.build_line(where.round_types, short)
        exact, at = BALLS.number(Fraction(ROW["delta_at_epsilon"])), BALLS.number(Fraction(ROW["epsilon"]))
        assert found.partial_sum(at) - found.tail(at) > exact
        assert found.lower(at) <= exact <= found.upper(at)


@pytest.mark.parametrize("broken", ["least", "spread", "times", "variation"])
def test_decay_that_is_claimed_too_early_is_seen(monkeypatch: pytest.MonkeyPatch, broken: str) -> None:
    """Each constant of Lemmas S1 to S3 broken once: the claimed frequency then is too small, or no longer the same."""
    where = side(cm.Gaussian(sigma=1) @ W(rate="0.05") * 300)
    right, _ = built(where)
    window = decay._build_window
    if broken == "variation":
        variation = Mixed.variation
        monkeypatch.setattr(Mixed, "variation", lambda *given: variation(*given) * 0)
    else:
        import dataclasses

        def changed(*given: Any) -> Any:
            found = window(*given)
            if broken == "least":
                return dataclasses.replace(
                    found, least=BALLS.number(1), most=BALLS.number(1), numbers=(1.0, found.numbers[1])
                )
            if broken == "spread":
                return dataclasses.replace(
                    found, spread=found.spread / 1000, numbers=(found.numbers[0], found.numbers[1] / 1000)
                )
            return dataclasses.replace(found, times=10 * found.times)

        monkeypatch.setattr(decay, "_build_window", changed)
    wrong, _ = built(where)
    assert wrong.frequencies != right.frequencies


def test_an_atom_without_its_mass_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    truth = Fraction(ROW["epsilon_at_delta"])
    where = composed(ROW)
    low, high = _ends(where, ROW["delta"], 1e-12)[::-1]
    assert Fraction(low) <= truth <= Fraction(high)
    rule = Mixed.rule

    def lighter(*given: Any, **named: Any) -> Rule:
        found = rule(*given, **named)
        return Rule(
            found.panels,
            [(loss, mass * (1 - Fraction(1, 10**6).numerator / 10**6)) for loss, mass in found.atoms],
            found.beyond,
        )

    monkeypatch.setattr(Mixed, "rule", lighter)
    low, high = _ends(where, ROW["delta"], 1e-12)[::-1]
    assert not Fraction(low) <= truth <= Fraction(high)


# ---- what has no line says so


@pytest.mark.parametrize(
    "run",
    [
        cm.Gaussian(sigma=1) @ P(rate="0.001") * 5,
        cm.Laplace(scale=1) * 20,
        cm.from_densities(
            lambda x: -((x - 1) ** 2) / 2 - 0.9189385332046727, lambda x: -(x**2) / 2 - 0.9189385332046727
        )
        * 400,
    ],
    ids=["few rounds", "atoms", "densities"],
)
def test_where_there_is_no_line_another_way_answers(run: cm.Expression) -> None:
    found, _ = rounds(run.record())
    assert found is not None
    assert solver.upper_end(found, Query("delta", Fraction("1e-5")), 1e-3) is None
    assert run.guarantee(delta="1e-5", method="exact").rigour != "proved"


def test_a_few_rounds_of_few_losses_have_a_product_below_their_line() -> None:
    """The line is proved and close to the product, which is exact."""
    masses = ["0.5", "0.3", "0.15", "0.05"], ["0.2", "0.2", "0.35", "0.25"]
    run = cm.from_masses(*masses) * 3
    found, _ = rounds(run.record())
    assert found is not None
    line = solver.upper_end(found, Query("delta", Fraction("1e-5")), 1e-3)
    assert line is not None
    exact = run.guarantee(delta="1e-5", method="exact")
    assert exact.rigour == "proved"
    assert exact.epsilon <= line[0].value <= exact.epsilon * (1 + 1e-6)
    p, q = ([math.prod(map(float, each)) for each in itertools.product(law, repeat=3)] for law in masses)
    for epsilon, enough in ((exact.epsilon, True), (exact.epsilon - 1e-6, False)):
        delta = max(
            sum(max(0.0, x - math.exp(epsilon) * y) for x, y in zip(*laws, strict=True)) for laws in ((p, q), (q, p))
        )
        assert (delta <= 1e-5) == enough


def test_no_line_and_no_product_leave_a_grid() -> None:
    run = cm.from_masses(["0.5", "0.3", "0.15", "0.05"], ["0.2", "0.2", "0.35", "0.25"]) * 2 + cm.Laplace(scale=1)
    assert run.guarantee(delta="1e-5", method="exact").rigour == "bounded"


# ---- one spectrum, many questions


@pytest.mark.parametrize(
    "run", [cm.Gaussian(sigma=5) @ W(rate=0.001) * 600_000, cm.Laplace(scale=1) @ P(rate=0.05) * 2000], ids=str
)
def test_a_question_among_many_gets_the_answer_it_gets_alone(run: cm.Expression) -> None:
    """Shared spectra cost no more than the accuracy, far from the middle too, and never say less than a proved lower end."""
    deltas = ["1e-3", "1e-5", "1e-7", "1e-9", "1e-12", "0.1", "1e-40"]
    together, found = run.epsilon(deltas), rounds(run.record())[0]
    for delta, value in zip(deltas, together, strict=True):
        assert value == pytest.approx(run.epsilon(delta), rel=1e-4, abs=1e-9)
    epsilons = ["0.1", "0.4", "1", "3"]
    for epsilon, value in zip(epsilons, run.delta(epsilons), strict=True):
        assert value == pytest.approx(run.delta(epsilon), rel=1e-3)
    alone = solver.upper_end(found, Query("delta", Fraction("1e-12")), 1e-3)
    with solver.share_lines():
        assert solver.upper_end(found, Query("delta", Fraction("1e-7")), 1e-3) is not None
        among = solver.upper_end(found, Query("delta", Fraction("1e-12")), 1e-3)
    assert alone is not None
    assert among is not None
    assert among[0].value == pytest.approx(alone[0].value, rel=1e-5)


def test_where_the_outer_order_is_out_of_reach_a_grid_gives_the_lower_end(monkeypatch: pytest.MonkeyPatch) -> None:
    def run(noise: str) -> cm.Expression:
        return cm.Laplace(scale="1/2") @ cm.WithoutReplacement(rate="0.999999999") + cm.Gaussian(sigma=noise)

    ends = [run("20").guarantee(epsilon=1, method="exact")]
    monkeypatch.setattr(line, "moment_ball", lambda *_: BALLS.number(math.inf))
    ends.append(run("20.0000000001").guarantee(epsilon=1, method="exact"))  # nothing is remembered of it
    for found, rigour in zip(ends, ("proved", "bounded"), strict=True):
        assert (found.route, found.lower_rigour) == ("line", rigour)
        assert found.lower is not None
        assert found.lower <= 0.3936588534 <= found.delta


def test_the_outer_order_is_the_least_that_serves() -> None:
    """Of bounded losses all large ones serve, and the Gaussian that smooths a few rounds makes them useless."""
    run, delta = cm.Laplace(scale=1) * 20, Fraction(1, 10**6)
    found = rounds(run.record())[0]
    assert found is not None
    for terms, round_types in found.lines():
        assert round_types is not None
        side, effort = Side(terms, round_types), solver.Effort.unlimited()
        above, below = (proved_epsilon(side, delta, 1e-3, upper=end, effort=effort) for end in (True, False))
        assert above is not None
        assert below is not None
        assert below.value <= above.value <= below.value * (1 + 1e-4)


@pytest.mark.parametrize(
    ("run", "epsilon"),
    [
        (cm.Laplace(scale="0.02") @ cm.Poisson(rate="0.999999999999") * 10**6, "1e300"),
        (cm.Gaussian(sigma="0.01") @ cm.WithoutReplacement(rate="1e-300") * 3 + cm.Gaussian(sigma="0.01") * 5, "1"),
    ],
    ids=["far beyond the largest loss", "a constant of Theorem B beyond all floats"],
)
def test_far_out_nothing_overflows(run: cm.Expression, epsilon: str) -> None:
    assert 0 <= run.delta(epsilon=epsilon, method="exact") <= 1


def test_few_shared_lines_are_tried_for_a_question(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each of 258 questions tried the lines of all questions before, none of which served it."""
    calls = {"line_suffices": 0, "_shared_or_new_line": 0}

    def count(name: str) -> None:
        evaluate = getattr(solver, name)

        def evaluate_and_note(*given: Any) -> Any:
            calls[name] += 1
            return evaluate(*given)

        monkeypatch.setattr(solver, name, evaluate_and_note)

    for name in calls:
        count(name)
    run = cm.ApproximateDP(epsilon="1.22e-5", delta="7.899e-99") @ cm.RepeatAndSelect(mean=13, number="poisson")
    assert run.epsilon(delta="1e-6") < 0.01
    questions = calls["_shared_or_new_line"]
    assert questions > 100
    assert calls["line_suffices"] <= 18 * questions  # 16 shared ones, and its own
