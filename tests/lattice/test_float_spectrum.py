"""The line in floats against balls: each transform within its slack, silence, and each error term left out once."""

import math
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import cumulant as cm
from cumulant.accounting import losses
from cumulant.lattice import choosing, float_silence, float_spectrum, spectrum
from cumulant.lattice.choosing import Side
from cumulant.lattice.powers import transforms
from cumulant.lattice.silence import Loud
from cumulant.numerics.arithmetic import BALLS
from cumulant.numerics.rounding import U
from cumulant.pairs.float_rule import float_rule

W, P = cm.WithoutReplacement, cm.Poisson
RUNS = [
    (cm.Gaussian(sigma=1) @ P(rate="256/60000") * 23_400, "1e-5"),
    (cm.Gaussian(sigma=5) @ W(rate=0.001) * 600_000, "1e-8"),
    (cm.Laplace(scale=2) @ W(rate=0.01) * 1000, "1e-6"),
    (cm.Gaussian(sigma=1) @ P(rate=0.1) * 50 + cm.Gaussian(sigma=8), "1e-6"),
]


def side(run: cm.Expression, direction: int = 0) -> Side:
    found, _ = losses.rounds(run.ran())
    assert found is not None
    terms, kinds = list(found.lines())[direction]
    assert kinds is not None
    return Side(terms, kinds)


def built(run: cm.Expression, delta: str) -> tuple[Side, Any, Any]:
    where = side(run)
    choice = choosing.chosen(where, math.log(Fraction(delta)), None, 1e-3)
    assert choice is not None
    return where, choice, float_spectrum.float_spectrum(where.kinds, choice, 1, 1)


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
    law, u = where.kinds[0][0].mixture(), found.frequencies
    assert law is not None
    goal = -choice.silence - 30
    edges, top = list(law.span(choice.lam, goal)), float(u[-1]) * (1 + 1e-9)
    one = float_spectrum.tilted(float_rule(law, choice.lam, top, goal, tuple(edges)), u)
    with BALLS.at(160):
        from flint import arb

        exact = law.rule(choice.lam, top, goal, edges)
        mass = exact.mass()
        values = transforms(exact, 2 * arb.pi() / arb(choice.period), u.size - 1)
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


# ---- silence


@pytest.mark.parametrize(("run", "delta"), RUNS, ids=str)
def test_nothing_is_louder_than_what_is_claimed(run: cm.Expression, delta: str) -> None:
    where, choice, found = built(run, delta)
    u = np.linspace(float(found.frequencies[-1]), 40 * float(found.frequencies[-1]), 4001)
    exponent = np.zeros(u.size)
    for terms, times in where.terms:
        loss, log_p = terms.nodes(choice.lam)
        weight = np.exp(log_p + choice.lam * loss)
        size = np.abs(np.exp(1j * u[:, None] * loss) @ (weight / weight.sum()))
        exponent += times * np.log(np.maximum(size, 1e-300))
    assert float(exponent.max()) <= -choice.silence + 1e-6
    assert float(exponent.max()) > -40 * choice.silence  # and it is not claimed for nothing


def test_each_part_of_the_lemmas_is_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Windows whose spread, left out part or error is forgotten claim silence where a dense scan is louder."""
    where, choice, _ = built(*RUNS[0])
    law, times = where.kinds[0][0].mixture(), where.kinds[0][1]
    assert law is not None
    one = float_silence.Round.of(law, times, choice.lam, choice.silence)
    window = float_silence._window(one, choice.lam, 40.0, choice.silence, 0.1)
    centre, half = np.array([20.0]), np.array([10.0])
    inside = np.linspace(10.0, 30.0, 801)
    loudest = float(window.bounds(inside, np.zeros(801)).max())
    assert window.bounds(centre, half)[0] >= loudest
    assert replace(window, spread=0.0).bounds(centre, half)[0] < loudest  # Lemma S2
    assert replace(window, least=1.0, most=1.0).bounds(inside, np.zeros(801)).max() < loudest  # Lemma S1
    assert replace(window, error=0.5).bounds(centre, half)[0] > window.bounds(centre, half)[0]
    monkeypatch.setattr(float_silence, "float_variation", lambda *_: math.inf)
    with pytest.raises(Loud):  # Lemma S3
        float_silence.silent_from([one], choice.lam, choice.silence, 0.0, 1.0)


# ---- the sum


@pytest.mark.parametrize(("run", "delta"), RUNS, ids=str)
def test_floats_are_above_balls_by_no_more_than_they_say(run: cm.Expression, delta: str) -> None:
    where, choice, found = built(run, delta)
    with BALLS.at(choice.bits):
        exact = spectrum.spectrum(where.kinds, choice, where.extra)
        for factor in (0.7, 1.0, 1.3):
            epsilon = factor * choice.epsilon
            above = float(found.log_upper(np.array([epsilon]), np.array([1.0]))[0])
            ball, below = exact.line(BALLS.number(epsilon)), exact.lower(BALLS.number(epsilon))
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
    loud = replace(short, beta=-float(found.log_phi[count - 1].real))
    assert (loud.log_upper(at, one) >= exact - 1e-9).all()
    silent = replace(short, beta=math.inf)
    assert (silent.log_upper(at, one) < exact - 1e-9).any()


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


def test_fewer_repetitions_than_silence_was_shown_for_are_refused() -> None:
    where = side(cm.Gaussian(sigma=1) @ P(rate=0.01) * 1)
    repeated = Side(where.terms, tuple((one, 2000 * times) for one, times in where.kinds))
    terms = tuple((step, 2000 * times) for step, times in where.terms)
    choice = choosing.chosen(replace(repeated, terms=terms), math.log(1e-6), None, 1e-3)
    assert choice is not None
    found = float_spectrum.float_spectrum(where.kinds, choice, 2000, 4000)
    many = found.log_upper(np.array([1.0, 1.0, 1.0]), np.array([1999.0, 2000.0, 4000.0]))
    assert many[0] == math.inf
    assert many[1] < many[2] < 0


def test_a_leak_is_part_of_the_answer() -> None:
    _, choice, found = built(*RUNS[0])
    leaking = replace(found, log_kept=math.log1p(-1e-3))
    at, one = np.array([choice.epsilon]), np.array([1.0])
    assert leaking.log_upper(at, one)[0] >= math.log(1e-3 + math.exp(found.log_above(at, one)[0]))
    assert leaking.log_leaks(np.array([2.0]))[0] >= math.log(1 - (1 - 1e-3) ** 2)
