"""Many questions from few lines: against reference values, balls, and the same questions asked alone."""

import json
import math
import random
from fractions import Fraction
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import cumulant as cm
from cumulant.accounting import rounds as losses
from cumulant.conversion.query import Query
from cumulant.exact.inversion import batch, choose, solver
from cumulant.exact.inversion.float_line import float_spectrum
from cumulant.exact.rounds import Rounds
from cumulant.numerics.arithmetic import BALLS
from cumulant.numerics.rounding import U

REFERENCE = json.loads((Path(__file__).parents[2] / "oracles" / "line.json").read_text())["values"]
W, P = cm.WithoutReplacement, cm.Poisson
proved: Any = solver.side_end


def rounds(run: cm.Expression) -> Rounds:
    found, _ = losses.rounds(run.record())
    assert found is not None
    return found


def of_pairs(row: dict[str, Any]) -> tuple[cm.Expression, int]:
    """A run one of whose directions is the one of a reference value, and which."""
    first = row["pairs"][0]["pair"]
    scheme = W if first == "symmetric" else P
    parts = []
    for one in row["pairs"]:
        noise = one["noise_over_sensitivity"]
        base = cm.Gaussian(sigma=noise) if one["base"] == "gauss" else cm.Laplace(scale=noise)
        parts.append(base @ scheme(rate=one["rate"]) * one["rounds"])
    return sum(parts[1:], start=parts[0]), int(first == "add")


KNOWN = [
    row for row in REFERENCE if row["pairs"][0]["pair"] != "add" and row["pairs"][0]["base"] in ("gauss", "laplace")
]


@pytest.mark.parametrize("row", KNOWN, ids=lambda row: row["setting"][:40])
def test_reference_values_are_just_below(row: dict[str, Any]) -> None:
    run, _ = of_pairs(row)
    [found] = batch.float_ends(rounds(run), [(1, Query("delta", Fraction(row["delta"])))], 1e-3, theorem_b=False)
    if found is not None:
        truth = Fraction(row["epsilon_at_delta"])
        assert truth <= Fraction(found.value) <= truth * (1 + Fraction(1, 10**5))
    [back] = batch.float_ends(rounds(run), [(1, Query("epsilon", Fraction(row["epsilon"])))], 1e-3, theorem_b=False)
    if back is not None:
        size = Fraction(row["delta_at_epsilon"])
        assert size <= Fraction(back.value) <= size * (1 + Fraction(1, 10**4))
    assert found is not None or back is not None


def test_random_settings_are_between_proved_ends() -> None:
    generator, answered = random.Random(20), 0
    for _ in range(12):
        scheme = generator.choice((W, P))
        base = generator.choice((cm.Gaussian, cm.Laplace))(f"{10 ** generator.uniform(-0.2, 0.8):.3g}")
        run = base @ scheme(rate=f"{10 ** generator.uniform(-3, -0.5):.3g}") * int(10 ** generator.uniform(2, 5))
        delta = Fraction(f"{10 ** generator.uniform(-12, -2):.3g}")
        where = rounds(run)
        query = Query("delta", delta)
        [found] = batch.float_ends(where, [(1, query)], 1e-3, theorem_b=False)
        if found is None:
            continue
        sides = choose.sides(where, theorem_b=False)
        assert sides is not None
        ends = [(proved(one, query, 1e-6, upper=False), proved(one, query, 1e-6)) for one in sides[0]]
        needed = max((low.value for low, _ in ends if low is not None), default=0.0)
        enough = [up.value for _, up in ends if up is not None]
        answered += 1
        assert needed <= found.value
        if len(enough) == len(ends):
            assert found.value <= max(enough) * (1 + 1e-4)
    assert answered >= 7


@pytest.mark.parametrize(
    "run", [cm.Gaussian(sigma=1) @ P(rate="256/60000") * 23_400, cm.Gaussian(sigma=5) @ W(rate=0.001) * 60_000], ids=str
)
def test_an_array_is_no_looser_than_its_questions_asked_alone(run: cm.Expression) -> None:
    deltas = [10 ** (-3 - 7 * i) for i in range(5)]
    together, alone = run.epsilon(deltas), np.array([run.epsilon(each) for each in deltas])
    assert (np.abs(together / alone - 1) <= 1e-4).all()
    epsilons = [float(each) for each in together[::2]]
    assert (run.delta(epsilons) <= np.array(deltas[::2]) * (1 + 1e-3)).all()
    assert (run.delta(epsilons) >= np.array(deltas[::2]) * (1 - 1e-3)).all()


@pytest.mark.parametrize("step", [cm.Gaussian(sigma=1) @ P(rate=0.004), cm.Laplace(scale=2) @ W(rate=0.01)], ids=str)
def test_counts_share_what_one_round_is(step: cm.Expression) -> None:
    counts = [1, 900, 1000, 7000, 200_000]
    together = step.epsilon_over(counts, delta=1e-6)
    alone = [(step * k).epsilon(1e-6) for k in counts]
    assert np.abs(together / np.array(alone) - 1).max() <= 1e-3
    lower = (step * 7000).guarantee(delta=1e-6).lower
    assert lower is not None
    assert together[3] >= lower


def test_one_line_serves_counts_that_differ_by_thirty(monkeypatch: pytest.MonkeyPatch) -> None:
    built: list[int] = []

    def counted(*given: Any) -> Any:
        built.append(1)
        return float_spectrum(*given)

    monkeypatch.setattr(batch, "float_spectrum", counted)
    one = rounds(cm.Gaussian(sigma=1) @ P(rate="256/60000") * 1)
    found = batch.float_ends(one, [(780 * i, Query("delta", Fraction(1, 10**5))) for i in range(1, 31)], 1e-3)
    assert all(each is not None for each in found)
    assert len(built) <= 4  # two directions


@pytest.mark.parametrize(
    ("run", "delta", "needed"),
    [
        (cm.Gaussian(sigma="0.357") @ P(rate="0.00385") * 84_284, "4.89e-8", 287.0014284668683),
        (cm.Gaussian(sigma="0.584") @ P(rate="0.00444") * 16_439, "1e-70", 87.16716871944107),
    ],
    ids=str,
)
def test_a_direction_without_an_answer_leaves_none(run: cm.Expression, delta: str, needed: float) -> None:
    """The record removed needs far more than the record added, and floats may have a line for the latter only."""
    [found] = batch.float_ends(rounds(run), [(1, Query("delta", Fraction(delta)))], 1e-3, theorem_b=False)
    assert found is None or found.value >= needed


def test_what_floats_cannot_say_is_left_to_others() -> None:
    run = rounds(cm.RandomizedResponse(p=0.6) * 100)
    assert batch.float_ends(run, [(1, Query("delta", Fraction(1, 10**6)))], 1e-3) == [None]
    fine = rounds(cm.Gaussian(sigma=5) @ W(rate=0.001) * 600_000)
    assert batch.float_ends(fine, [(1, Query("delta", Fraction(1, 10**8)))], 1e-12) == [None]
    assert batch.float_ends(fine, [], 1e-3) == []
    [tiny] = batch.float_ends(fine, [(1, Query("epsilon", Fraction(10**5)))], 1e-3)
    assert tiny is None or 0 < tiny.value < 1e-300
    assert math.isfinite((cm.Gaussian(sigma=5) @ W(rate=0.001) * 600_000).epsilon([1e-8], accuracy="1e-12")[0])


def test_a_line_that_costs_more_than_the_accuracy_gives_way() -> None:
    """Far out the saddle point is a poor guess, and a line with room would take too long: the grid says a hundredth of it."""
    run = (cm.Gaussian(sigma="2.17") * 2) @ W(rate="0.00227") * 77
    whole = run + cm.Gaussian(sigma="10.4", geometry="ball") @ W(rate="0.000258") * 4304
    assert whole.delta(1) <= 7.15e-22


# ---- what is asked and what is told, rounded to the safe side


def test_logarithms_of_deltas_are_rounded_down(monkeypatch: pytest.MonkeyPatch) -> None:
    """A logarithm of floats that is too large by what it may be would ask for less than was asked for."""
    asked: list[Any] = []
    deltas = [Fraction(f"{d}e-{e}") for d in ("9.7", "3.3", "1") for e in (1, 6, 100, 300)]
    nothing: Any = batch._Answers.unanswered(len(deltas))

    def recorded(_: Any, questions: Any, *__: Any) -> Any:
        asked.append(questions.given)
        return nothing

    monkeypatch.setattr(batch, "_answers", recorded)
    monkeypatch.setattr(
        batch, "math", SimpleNamespace(log=lambda x: math.log(x) * (1 - 2 * U), inf=math.inf, isfinite=math.isfinite)
    )

    def covered() -> bool:
        queries = [(1, Query("delta", each)) for each in deltas]
        batch.float_ends(rounds(cm.Laplace(scale=2) @ W(rate=0.01)), queries, 1e-3)
        with BALLS.at(160):
            exact = [BALLS.number(each).log() for each in deltas]
            return all(BALLS.number(float(given)) <= each for given, each in zip(asked[-1], exact, strict=True))

    assert covered()
    monkeypatch.setattr(batch, "U", 0.0)
    assert not covered()


def test_deltas_are_rounded_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """An exponential that is too small by what it may be, of logarithms from -1 to -700."""
    logs = -np.geomspace(1.0, 700.0, 40)
    known = batch._Answers(logs, np.ones(40), np.ones(40, dtype=np.int64), np.zeros(40, dtype=bool))
    monkeypatch.setattr(batch, "_answers", lambda *_: known)
    low = SimpleNamespace(
        **{name: getattr(np, name) for name in ("array", "where", "minimum", "abs", "nan", "errstate")}
    )
    low.exp = lambda x: np.exp(x) * (1 - 2 * U)
    monkeypatch.setattr(batch, "np", low)
    run = rounds(cm.Laplace(scale=2) @ W(rate=0.01))

    def covered() -> bool:
        found = batch.float_ends(run, [(1, Query("epsilon", Fraction(1)))] * 40, 1e-3)
        with BALLS.at(160):
            pairs = zip(found, logs, strict=True)
            return all(
                one is not None and BALLS.number(one.value) >= BALLS.number(float(log)).exp() for one, log in pairs
            )

    assert covered()
    monkeypatch.setattr(batch, "U", 0.0)
    assert not covered()
