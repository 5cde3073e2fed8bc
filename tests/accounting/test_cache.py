"""Answers are found once for what is data alone, and every time for what rests on a user's object."""

from typing import Any

import pytest

import cumulant as cm
from cumulant.accounting import answer as answering
from cumulant.exact import answer as two_sided

P = cm.Poisson


def counted(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    calls: list[int] = []
    found = answering._answer

    def count(*given: Any) -> Any:
        calls.append(1)
        return found(*given)

    monkeypatch.setattr(answering, "_answer", count)
    return calls


def test_equal_questions_about_equal_runs_are_answered_once(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = counted(monkeypatch)
    first = (cm.Gaussian(sigma=2) @ P(rate=0.01) * 500).epsilon(1e-6)
    again = (
        cm.Gaussian(sigma=4, sensitivity=2) @ P(rate="1/100") * 250 + cm.Gaussian(sigma=2) @ P(rate=0.01) * 250
    ).epsilon("1e-6")
    assert first == again
    assert len(calls) == 1
    for other in (1e-7, 2e-6):
        assert (cm.Gaussian(sigma=2) @ P(rate=0.01) * 500).epsilon(other) != first
    assert (cm.Gaussian(sigma=2) @ P(rate=0.01) * 501).epsilon(1e-6) > first
    assert (cm.Gaussian(sigma=2) @ P(rate=0.01) * 500).epsilon(1e-6, method="rdp") > first
    assert len(calls) == 5


def test_a_users_function_is_asked_every_time(monkeypatch: pytest.MonkeyPatch) -> None:
    calls, scale = counted(monkeypatch), [18.0]
    mine = cm.from_rdp(rdp=lambda order: order / scale[0], name="mine")
    before = (mine * 3).epsilon(1e-6)
    scale[0] = 9.0
    assert (mine * 3).epsilon(1e-6) > before
    assert len(calls) == 2


def test_an_array_may_be_changed_by_whoever_asked_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    run = cm.Gaussian(sigma=2) @ P(rate=0.01) * 5000
    found, deltas = run.epsilon([1e-6, 1e-5]), run.delta([1.0, 2.0])
    found[:] = deltas[:] = 0
    monkeypatch.setattr(two_sided, "upper_ends", None)  # nothing is composed again
    assert (run.epsilon([1e-6, 1e-5]) > 0).all()
    assert (run.delta([1.0, 2.0]) > 0).all()
