"""The accountant: constant work per composition, one number however the run is written."""

import json
import pickle
import subprocess
import sys
from collections.abc import Callable
from fractions import Fraction

import pytest

import cumulant as cm

STEP = cm.Gaussian(sigma=5) @ cm.WithoutReplacement(rate=0.001)


def test_three_ways_to_say_60_000_rounds() -> None:
    one_by_one, at_once = cm.Accountant(), cm.Accountant()
    for _ in range(60_000):
        one_by_one.compose(STEP)
    at_once.compose(STEP, times=60_000)
    answers = {run.epsilon(delta=1e-8) for run in (one_by_one, at_once, 60_000 * STEP, STEP * 60_000)}
    assert len(answers) == 1


def test_space_counts_distinct_mechanisms_only() -> None:
    accountant = cm.Accountant()
    for times in (1, 10**6, 10**12):
        for sigma in range(1, 6):
            accountant.compose(cm.Gaussian(sigma=sigma) @ cm.WithoutReplacement(rate="0.01"), times=times)
    assert len(accountant.terms) == 5
    assert len(accountant.to_json()) < 600


def calls_of(action: Callable[[], object]) -> int:
    """How many Python functions and built-ins are called."""
    count = 0

    def seen(frame: object, event: str, argument: object) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    sys.setprofile(seen)
    try:
        action()
    finally:
        sys.setprofile(None)
    return count


def test_a_new_mechanism_costs_the_same_however_many_there_are() -> None:
    """Constant work, counted and not timed; the relation is asked without looking at the old mechanisms."""
    few, many = cm.Accountant(), cm.Accountant()
    for accountant, distinct in ((few, 3), (many, 3000)):
        for sigma in range(1, distinct + 1):
            accountant.compose(cm.Gaussian(sigma=sigma) @ cm.WithoutReplacement(rate="0.01"))
    new = [cm.Gaussian(sigma=Fraction(n, 7)) @ cm.WithoutReplacement(rate="0.01") for n in (10**6 + 1, 10**6 + 2)]
    new_to_few, new_to_many = (
        calls_of(lambda each=each, step=step: each.compose(step))  # type: ignore[misc]
        for each, step in zip((few, many), new, strict=True)
    )
    assert new_to_many == new_to_few < 200
    assert calls_of(lambda: many.relation) == calls_of(lambda: few.relation)
    assert len(many.terms) == 3001


def test_a_relation_is_remembered_and_a_refusal_changes_nothing() -> None:
    accountant = cm.Accountant()
    accountant.compose(cm.Laplace(scale=1))
    assert str(accountant.relation) == "any"
    accountant.compose(STEP)
    assert str(accountant.relation) == "replace-one"
    for _ in range(2):
        with pytest.raises(cm.RelationError, match="a run has one relation"):
            accountant.compose(cm.Gaussian(sigma=1) @ cm.Poisson(rate=0.1))
    assert len(accountant.terms) == 2
    twin = accountant.copy()
    with pytest.raises(cm.RelationError):
        twin.compose(cm.Gaussian(sigma=1) @ cm.Poisson(rate=0.1))
    assert cm.Accountant.from_json(accountant.to_json()).relation is cm.Relation.REPLACE_ONE
    fresh = cm.Accountant()
    with pytest.raises(cm.RelationError):
        fresh.compose(STEP + cm.Gaussian(sigma=1) @ cm.Poisson(rate=0.1))
    assert str(fresh.relation) == "any"


def test_composing_never_evaluates_a_curve() -> None:
    calls = []

    def rdp(order: float) -> float:
        calls.append(order)
        return order / 8

    accountant = cm.Accountant()
    accountant.compose(cm.from_rdp(rdp=rdp) @ cm.WithoutReplacement(rate=0.5), times=10**9)
    assert calls == []
    assert accountant.rdp(2) > 0
    assert calls


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (cm.Gaussian(sigma=0.5), cm.Gaussian(sigma="1/2")),
        (cm.Gaussian(sigma=2, sensitivity=2), cm.Gaussian(sigma="1.0")),
        (cm.Laplace(scale="0.50"), cm.Laplace(scale=1, sensitivity=2)),
        (STEP, cm.Gaussian(sigma=5) @ cm.WithoutReplacement(rate="60/60000")),
        (
            cm.Gaussian(sigma=5) @ cm.Poisson(rate="0.001"),
            cm.Gaussian(sigma=5) @ cm.Poisson(sample=60, population=60_000),
        ),
    ],
)
def test_equal_mechanisms_are_one_key(one: cm.Mechanism, other: cm.Mechanism) -> None:
    assert one == other
    assert hash(one) == hash(other)
    accountant = cm.Accountant()
    accountant.compose(one)
    accountant.compose(other, times=2)
    assert dict(accountant.terms) == {one: 3}


def test_a_copy_goes_its_own_way() -> None:
    accountant = cm.Accountant()
    accountant.compose(STEP)
    twin = accountant.copy()
    twin.compose(STEP)
    assert accountant.terms[STEP] == 1
    assert twin.terms[STEP] == 2


def test_the_questions_of_a_run() -> None:
    accountant = cm.Accountant()
    run = STEP * 1000 + cm.Laplace(scale=3) * 2
    accountant.compose(run)
    assert accountant.run() == run
    assert accountant.rdp([1, 2, 7.5]).tolist() == run.rdp([1, 2, 7.5]).tolist()
    assert accountant.cgf(3) == run.cgf(3)
    assert accountant.delta(epsilon=2) == run.delta(epsilon=2)
    assert (accountant.kl(), accountant.pure()) == (run.kl(), run.pure())
    assert accountant.guarantee(delta=1e-6) == run.guarantee(delta=1e-6)


def test_nothing_spent_is_zero() -> None:
    empty = cm.Accountant()
    assert empty.epsilon(delta=1e-6) == 0.0
    assert empty.epsilon(delta=0) == 0.0
    assert empty.delta(epsilon=0) == 0.0
    assert empty.rdp([1, 2, 50]).tolist() == [0, 0, 0]


@pytest.mark.parametrize("times", [0, -1, 1.5, True, "3", None, 10**40])
def test_bad_counts_change_nothing(times: object) -> None:
    accountant = cm.Accountant()
    accountant.compose(STEP)
    before = accountant.to_json()
    with pytest.raises(cm.InputError, match="times"):
        accountant.compose(STEP, times=times)  # type: ignore[arg-type]
    with pytest.raises(cm.InputError):
        accountant.compose("Gaussian(sigma=1)")  # type: ignore[arg-type]
    assert accountant.to_json() == before


def test_mixed_relations_change_nothing() -> None:
    accountant = cm.Accountant()
    accountant.compose(STEP)
    before = accountant.to_json()
    with pytest.raises(cm.RelationError, match="one relation"):
        accountant.compose(cm.Gaussian.from_clipping(norm=1, noise=1, relation="add-remove"))
    assert accountant.to_json() == before


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{}",
        "[]",
        '{"cumulant": 2, "terms": []}',
        '{"cumulant": 1, "terms": [["PureDP(1)"]]}',
        '{"cumulant": 1, "terms": ""}',
        '{"cumulant": 1, "terms": {}}',
        '{"cumulant": 1, "terms": null}',
        '{"cumulant": true, "terms": []}',
        '{"cumulant": 1, "terms": [[1, 1]]}',
        '{"cumulant": 1, "terms": [["PureDP(1)", true]]}',
        '{"format": 3, "terms": []}',
        '{"format": 0, "terms": []}',
        '{"format": "2", "terms": []}',
    ],
)
def test_broken_state_is_refused(text: str) -> None:
    with pytest.raises(cm.InputError):
        cm.Accountant.from_json(text)


def test_both_formats_are_read() -> None:
    accountant = cm.Accountant(limit=(2, "1e-5"))
    accountant.compose(STEP, 3)
    state = json.loads(accountant.to_json())
    assert state["format"] == 2
    assert state["cumulant"] == cm.__version__
    assert cm.Accountant.from_json(json.dumps(state)) == accountant
    del state["format"]
    assert cm.Accountant.from_json(json.dumps({**state, "cumulant": 1})) == accountant


def test_a_python_function_has_no_text() -> None:
    accountant = cm.Accountant()
    accountant.compose(cm.from_rdp(rdp=lambda order: order) @ cm.WithoutReplacement(rate=0.5))
    with pytest.raises(cm.NotationError, match="Python function"):
        accountant.to_json()


def test_state_is_plain_json() -> None:
    accountant = cm.Accountant()
    accountant.compose(STEP, times=sys.maxsize)
    assert json.loads(accountant.to_json())["terms"] == [[str(STEP), sys.maxsize]]


def test_totals_are_checked_before_anything_changes() -> None:
    accountant = cm.Accountant()
    accountant.compose(cm.Gaussian(sigma=1), times=10**30)
    with pytest.raises(cm.InputError, match="times"):
        accountant.compose(cm.Gaussian(sigma=1))
    assert accountant.terms[cm.Gaussian(sigma=1)] == 10**30
    assert (accountant @ cm.WithoutReplacement(rate="0.1")).rdp(2) > 0


def test_a_pickled_run_hashes_anew() -> None:
    code = "import pickle, sys, cumulant as cm; sys.stdout.buffer.write(pickle.dumps(cm.parse(sys.argv[1])))"
    text = "Gaussian(sigma=1) * 3 + Laplace(scale=2)"
    written = subprocess.run([sys.executable, "-c", code, text], capture_output=True, check=True).stdout
    assert pickle.loads(written) in {cm.parse(text)}


@pytest.mark.parametrize("text", ["[" * 100_000 + "]" * 100_000, '{"cumulant": ' * 100_000, "{" * 100_000])
def test_state_that_is_nested_too_deeply(text: str) -> None:
    with pytest.raises(cm.InputError, match="not the state of an accountant"):
        cm.Accountant.from_json(text)


def test_nothing_has_a_name_and_no_text() -> None:
    for nothing in (cm.Accountant(), cm.Accountant() * 3, cm.Accountant() + cm.Accountant()):
        assert str(nothing) == "nothing"
        with pytest.raises(cm.NotationError, match="nothing ran"):
            nothing.notation()
