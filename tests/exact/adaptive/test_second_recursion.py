"""The second evaluation of adaptive rounds: its laws, both its ends, what it shares with the first, and what it finds."""

import dataclasses
import json
import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import cumulant as cm
from cumulant.exact import answer
from cumulant.exact.adaptive import second_recursion, value_iteration
from cumulant.exact.adaptive.value_iteration import Value
from cumulant.numerics.arithmetic import BALLS
from cumulant.pairs.worst_triples import Extremes
from tests.oracles.reports import PAIRS, extremes_of, optimum, pure_rounds, rounds_of

W = cm.WithoutReplacement
RUNS = {
    "PureDP": cm.PureDP(1) @ W(rate="0.01") * 150,
    "RandomizedResponse": cm.RandomizedResponse(p="0.9") @ W(rate="0.01") * 200,
    "SubsetSelection": cm.SubsetSelection(values=6, size=2, epsilon=1) @ W(rate="0.2") * 60,
    "two kinds": cm.PureDP(1) @ W(rate="0.02") * 24 + cm.PureDP(2) @ W(rate="0.01") * 6,
    "large losses": cm.PureDP(6) @ W(rate="0.1") * 30,
}


def expected(ratios: np.ndarray, masses: np.ndarray, corners: np.ndarray) -> np.ndarray:
    """E (S - s)_+ at every corner; what the masses leave of 1 is at ratio 1."""
    return np.asarray(
        np.maximum(ratios - corners[:, None], 0) @ masses + (1 - masses.sum()) * np.maximum(1 - corners, 0)
    )


@pytest.mark.parametrize("name", PAIRS)
def test_laws_on_the_grid_lie_on_either_side(name: str) -> None:
    """In the convex order, of b/a under a, against the laws of the mechanism output by output; the mean stays 1."""
    values, size, odds = PAIRS[name][1]
    rate = 0.2
    truth = pure_rounds(odds, rate) if name == "PureDP" else rounds_of(values, size, odds, rate)
    corners = np.exp(np.linspace(-1.5, 1.5, 301))
    with BALLS.at(160):
        found = list(second_recursion.laws(extremes_of(name), Fraction(1, 5)))
        for law, (a, b) in zip(found, truth, strict=True):
            exact = np.asarray(np.maximum(b / a - corners[:, None], 0) @ a)
            ours = np.array([[float(ratio.mid()), float(mass.mid())] for ratio, mass in law]).T
            assert expected(ours[0], ours[1], corners) == pytest.approx(exact, rel=1e-9, abs=1e-14)
            for step in (Fraction(1, 50), Fraction(3, 101)):
                for replace, sign in ((second_recursion.split_to_grid, 1), (second_recursion.merge_to_grid, -1)):
                    weights = replace(law, step)
                    assert weights is not None
                    ratios = np.exp(float(step) * np.array(list(weights)))
                    masses = np.array(list(weights.values()))
                    assert masses.sum() == pytest.approx(1, abs=1e-12)
                    assert masses @ ratios == pytest.approx(1, abs=1e-11)
                    gain = sign * (expected(ratios, masses, corners) - exact)
                    assert gain.min() > -1e-13
                    assert gain.max() > 1e-5


@pytest.mark.parametrize("name", PAIRS)
@pytest.mark.parametrize("times", [2, 5, 12])
def test_both_ends_enclose_the_optimum(name: str, times: int) -> None:
    values, size, odds = PAIRS[name][1]
    rate = 0.2
    laws = pure_rounds(odds, rate) if name == "PureDP" else rounds_of(values, size, odds, rate)
    for epsilon in (Fraction(1, 7), Fraction(1, 2)):
        truth = optimum([(laws, times)], float(epsilon))
        found = second_recursion.enclosed_delta(((extremes_of(name), Fraction(1, 5), times),), epsilon, Fraction(truth))
        assert found is not None
        low, high, _ = found
        assert low <= truth * (1 + 1e-10) + 1e-15
        assert high >= truth * (1 - 1e-10)
        assert high - low <= 0.01 * truth + 1e-12
        assert high <= truth * (1 + 1e-4) + 1e-15


def refused(*_: Any, **__: Any) -> None:
    raise AssertionError("this is the code that is to be checked")


@pytest.mark.parametrize("question", [{"delta": "1e-6"}, {"epsilon": "1"}], ids=str)
@pytest.mark.parametrize("run", RUNS)
def test_what_is_honest_is_confirmed_and_what_is_less_is_refuted(
    monkeypatch: pytest.MonkeyPatch, run: str, question: dict[str, Any]
) -> None:
    """Without the recursion, its chords, its reading or the closed forms of the ratios."""
    found = RUNS[run].guarantee(**question)
    assert found.route == "adaptive"
    for home, name in (
        (value_iteration, "_value"),
        (value_iteration, "_recursion"),
        (value_iteration, "_split_to_grid"),
        (value_iteration, "_merge_to_grid"),
        (Value, "delta"),
        (Extremes, "triples"),
    ):
        monkeypatch.setattr(home, name, refused)
    check = found.verify()
    assert check, str(check)
    assert (check.arithmetic, check.quantity, check.independent) == ("recursion", "delta", True)
    assert check.lower <= check.upper <= found.delta
    assert check.upper >= found.delta * 0.97
    assert "from the other end" in str(check)
    monkeypatch.undo()
    for wrong in (
        dataclasses.replace(found, epsilon=0.995 * found.epsilon),
        dataclasses.replace(found, delta=0.9 * found.delta),
    ):
        told = wrong.verify()
        assert not told
        if run != "two kinds":  # between its orders nothing is refuted
            assert told.arithmetic == "recursion"
            assert "does not hold" in str(told)
            assert told.lower > told.delta


def test_what_was_stored_and_changed_is_noticed() -> None:
    state = RUNS["PureDP"].guarantee(delta="1e-6").to_dict()
    assert cm.Guarantee.from_json(json.dumps(state)).verify()
    assert not cm.Guarantee.from_json(json.dumps(state | {"epsilon": 0.995 * state["epsilon"]})).verify()
    with pytest.raises(cm.InputError, match="delta of this guarantee is not what its run and its plan lead to"):
        cm.Guarantee.from_json(json.dumps(state | {"delta": 0.9 * state["delta"]}))
    weaker = json.dumps(state).replace("epsilon=1)", "epsilon=1.1)")
    assert not cm.Guarantee.from_json(weaker).verify()


@pytest.mark.parametrize("run", ["PureDP", "RandomizedResponse"])
def test_a_mistake_of_the_first_recursion_is_found_while_it_is_still_there(
    monkeypatch: pytest.MonkeyPatch, run: str
) -> None:
    """Weights that are too small by 1e-6 each round: an epsilon that is too small by a few parts in 1e5."""
    honest = value_iteration._split_to_grid

    def smaller(*given: Any) -> dict[int, float]:
        return {at: weight * (1 - 1e-6) for at, weight in honest(*given).items()}

    monkeypatch.setattr(value_iteration, "_split_to_grid", smaller)
    monkeypatch.setattr(answer, "lower_end", lambda *_: None)
    value_iteration._value.cache_clear()
    found = RUNS[run].guarantee(delta="1.1e-6")
    value_iteration._value.cache_clear()
    check = found.verify()
    assert not check
    assert check.arithmetic == "recursion"


def test_without_the_third_triple_the_second_evaluation_would_be_too_small() -> None:
    full = extremes_of("PureDP")
    less = Extremes(full.epsilon, full.odds, full.two)
    truth = optimum([(pure_rounds(math.exp(1.2), 0.2), 12)], 0.5)
    short = second_recursion.enclosed_delta(((less, Fraction(1, 5), 12),), Fraction(1, 2), Fraction(truth))
    assert short is not None
    assert short[1] < truth


def test_what_takes_too_long_is_left_to_others() -> None:
    assert (
        second_recursion.enclosed_delta(
            ((extremes_of("PureDP"), Fraction(1, 1000), 10**6),), Fraction(5), Fraction(1, 100)
        )
        is None
    )
