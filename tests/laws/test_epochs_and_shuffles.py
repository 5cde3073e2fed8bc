"""Laws over every registered mechanism in epochs of random allocation, and in shuffled reports where that is offered."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import cumulant as cm
from tests.effort import drawn
from tests.laws.strategies import mechanisms

ORDERS = np.array([1.0, 1.5, 2.0, 3.0, 33.0, 1e3, np.inf])
law = settings(max_examples=drawn(8), deadline=None)
LOCAL = ("PureDP", "RandomizedResponse", "KaryResponse")
fitting = mechanisms.filter(lambda m: m.relation is not cm.Relation.REPLACE_ONE and not m.unsampled())


@law
@given(fitting, st.integers(2, 10**6), st.integers(1, 50))
def test_an_epoch_is_written_and_never_above_the_mechanism(base: cm.Mechanism, steps: int, times: int) -> None:
    run = base @ cm.RandomAllocation(steps=steps) * times
    assert cm.parse(str(run)) == run
    assert run.relation is cm.Relation.ADD_REMOVE
    found, most = run.rdp(ORDERS), times * base.rdp(ORDERS)
    assert not np.isnan(found).any()
    assert (found >= 0).all()
    assert (found <= most * (1 + 1e-9)).all()
    finite = found[np.isfinite(found)]
    assert (np.diff(finite) >= -1e-9 * finite[1:] - 1e-300).all()


@settings(law, max_examples=drawn(3))
@given(fitting, st.integers(2, 1000))
def test_more_steps_are_more_private(base: cm.Mechanism, steps: int) -> None:
    few, many = ((base @ cm.RandomAllocation(steps=n)).rdp([1.5, 2, 9]) for n in (steps, 3 * steps))
    assert (many <= few * (1 + 1e-9) + 1e-300).all()


@settings(law, max_examples=drawn(4))
@given(mechanisms, st.integers(2, 400))
def test_reports_are_shuffled_or_refused_in_words(base: cm.Mechanism, reports: int) -> None:
    if base.relation.clipping == 1:
        with pytest.raises(cm.RelationError):
            base @ cm.Shuffle(reports=reports)
        return
    if 600 < base.pure() < np.inf:
        with pytest.raises(cm.InputError, match="nobody"):
            base @ cm.Shuffle(reports=reports)
        return
    if base.pure() == np.inf and (base.pair() is None or base.unsampled()) and base.local_randomizer() is None:
        with pytest.raises(cm.HypothesisError, match="RandomAllocation"):
            base @ cm.Shuffle(reports=reports)
        return
    if base.unsampled():
        with pytest.raises(cm.HypothesisError, match="RandomAllocation"):
            base @ cm.Shuffle(reports=reports)
        return
    run = base @ cm.Shuffle(reports=reports)
    assert run == base or cm.parse(str(run)) == run
    assert run.relation is cm.Relation.REPLACE_ONE
    if base.name() in LOCAL:
        assert (run.rdp([2, 9, np.inf]) <= base.rdp([2, 9, np.inf]) * (1 + 1e-9)).all()
        assert 0 <= run.delta(epsilon="0.1") <= base.delta(epsilon="0.1") * (1 + 1e-9)


EXTREMES: list[cm.Mechanism] = [
    cm.PureDP(0),
    cm.PureDP("1e-12"),
    cm.PureDP(600),
    cm.RandomizedResponse(p="1/2"),
    cm.RandomizedResponse(p="0.999999999"),
    cm.KaryResponse(values=10**6, epsilon=1),
    cm.KaryResponse(values=3, p="1/3"),
]


@pytest.mark.parametrize("base", EXTREMES, ids=str)
def test_extreme_reports(base: cm.Mechanism) -> None:
    run = base @ cm.Shuffle(reports=50)
    assert 0 <= run.delta(epsilon=0) <= base.delta(epsilon=0) * (1 + 1e-9)
    assert 0 <= run.epsilon(1e-6) <= base.epsilon(1e-6) * (1 + 1e-9)
    assert not np.isnan(run.rdp(ORDERS)).any()
