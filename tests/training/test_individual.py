"""Budgets for every record in a loop: what is charged, what is refused, and that nothing about a record gets out."""

from __future__ import annotations

import math
import os
import pickle
from typing import Any

import numpy as np
import pytest

import cumulant as cm
from cumulant.filters.filter import GaussianSum
from cumulant.training import IndividualBudget
from cumulant.training.individual import CHUNK

PLAN: dict[str, Any] = {"records": 4, "epsilon": 2, "delta": "1e-6", "noise_multiplier": 1, "clip": 1, "levels": 8}


def steps_of(budget: IndividualBudget, wanted: list[float]) -> list[int]:
    """In how many steps each record takes part, at the bounds that it wants, until none does."""
    taken = np.zeros(len(wanted), dtype=int)
    while True:
        bounds = budget.bounds(wanted)
        if not bounds.any():
            return list(taken)
        taken += bounds >= np.array(wanted)
        budget.charge(bounds)


def test_records_that_move_less_take_part_longer() -> None:
    budget = IndividualBudget(**PLAN, rate="0.01")
    found = steps_of(budget, [1.0, 0.5, 0.25, 0.0])
    assert found[0] == 464  # as `Mixture` allows for everybody
    assert found[0] * 3 < found[1] < found[2]


def test_without_sampling_the_squares_add_up_exactly() -> None:
    """Theorem 4b: SUM c^2 / sigma^2 <= mu^2, nothing is lost."""
    from fractions import Fraction

    mu = GaussianSum.for_budget(Fraction(2), Fraction(1, 10**6)).mu
    budget = IndividualBudget(**PLAN | {"noise_multiplier": 20}, rate=None)
    found = steps_of(budget, [1.0, 0.5, 0.25, 0.0])
    assert found[:3] == [math.floor(mu**2 * 400), math.floor(mu**2 * 1600), math.floor(mu**2 * 6400)]


def test_bounds_are_rounded_up_to_levels_and_never_above_the_norm() -> None:
    budget = IndividualBudget(**PLAN | {"noise_multiplier": 30, "clip": 2}, rate=None)
    wanted = [0.26, 2.0, 7.0, 0.0]
    assert budget.bounds(wanted).tolist() == [0.5, 2.0, 2.0, 0.0]


def test_a_record_without_a_number_gets_the_norm_and_no_error() -> None:
    """An error would tell of that one record."""
    budget = IndividualBudget(**PLAN | {"noise_multiplier": 30}, rate=None)
    assert budget.bounds([math.nan, math.inf, -1.0, -math.inf]).tolist() == [1.0] * 4


def test_everybody_is_charged_whether_drawn_or_not() -> None:
    """Nothing about draws can be said to a budget: the charge is a function of the bounds alone."""
    budget = IndividualBudget(**PLAN, rate="0.01")
    bounds = budget.bounds([1.0] * 4)
    budget.charge(bounds)
    assert (budget._totals == budget._totals[0]).all()
    assert (budget._totals > 0).all()


def test_charge_and_bounds_take_turns() -> None:
    budget = IndividualBudget(**PLAN, rate="0.01")
    with pytest.raises(cm.BudgetRefused, match="no bounds to charge"):
        budget.charge(np.ones(4))
    bounds = budget.bounds([1.0] * 4)
    with pytest.raises(cm.BudgetRefused, match="not charged"):
        budget.bounds([1.0] * 4)
    with pytest.raises(cm.BudgetRefused, match="not the bounds"):
        budget.charge(bounds * 0.5)
    with pytest.raises(cm.BudgetRefused, match="not the bounds"):
        budget.charge(bounds[:2])
    budget.charge(bounds)
    with pytest.raises(cm.BudgetRefused, match="no bounds to charge"):
        budget.charge(bounds)


def test_bounds_cannot_be_changed_in_place() -> None:
    budget = IndividualBudget(**PLAN, rate="0.01")
    bounds = budget.bounds([1.0] * 4)
    with pytest.raises(ValueError, match="read-only"):
        bounds[0] = 0.0


def test_nothing_about_records_gets_out() -> None:
    budget = IndividualBudget(**PLAN, rate="0.01")
    before = repr(budget), budget.guarantee()
    for _ in range(3):
        budget.charge(budget.bounds([1.0, 0.0, 0.3, 0.5]))
    assert (repr(budget), budget.guarantee()) == before
    assert budget.guarantee() == (2.0, 1e-6, "add-remove")
    with pytest.raises(cm.InputError, match="raw data"):
        pickle.dumps(budget)


def test_own_draws_need_one_order() -> None:
    drawn = IndividualBudget(**PLAN, rate="0.01", bounds="drawn")
    assert drawn._totals.shape == (4, 1)
    mixed = IndividualBudget(**PLAN, rate="0.01")
    assert mixed._totals.shape[1] > 1
    assert steps_of(drawn, [1.0] * 4)[0] > 100


def test_chunks_do_not_matter() -> None:
    """Records on both sides of the end of a chunk are treated alike."""
    records = CHUNK + 3
    budget = IndividualBudget(**PLAN | {"records": records}, rate="0.01")
    small = IndividualBudget(**PLAN, rate="0.01")
    wanted = np.random.default_rng(1).uniform(0, 1, records)
    for _ in range(3):
        bounds, some = budget.bounds(wanted), small.bounds(wanted[-4:])
        assert bounds[-4:].tolist() == some.tolist()
        budget.charge(bounds)
        small.charge(some)
    assert (budget._totals[-4:] == small._totals).all()


def noisy_sum(budget: IndividualBudget, rows: Any, bounds: Any) -> Any:
    """One step; the accounts are emptied before it, so that any number of steps fits."""
    budget._totals[:] = 0
    wanted = np.zeros(budget.records)
    wanted[: len(bounds)] = bounds
    handed_out = budget.bounds(wanted)
    found = budget.noisy_sum(rows, handed_out[: len(bounds)])
    budget.charge(handed_out)
    return found


@pytest.mark.parametrize("given", [[1.0, 0.0, 0.0, 0.0], [0.25, 0.25, 0.0, 0.0], [0.25, 0.25], [0.5]])
def test_a_sum_takes_no_bounds_that_nobody_is_charged_for(given: list[float]) -> None:
    """Records that wanted nothing paid nothing, and their rows moved the sum by the norm, in any number of steps."""
    budget = IndividualBudget(**PLAN, rate=None)
    bounds = budget.bounds([0.25, 0.0, 0.0, 0.0])
    with pytest.raises(cm.BudgetRefused, match="nobody would be charged"):
        budget.noisy_sum(np.ones((len(given), 2)), given)
    budget.noisy_sum(np.ones((2, 2)), bounds[[2, 0]])  # a batch in any order
    budget.charge(bounds)


def test_every_sum_needs_bounds_of_its_own() -> None:
    """A sum without bounds was charged to nobody, and two sums for the same bounds once."""
    budget, rows = IndividualBudget(**PLAN, rate=None), np.ones((4, 2))
    with pytest.raises(cm.BudgetRefused, match="allows one noisy sum"):
        budget.noisy_sum(rows, np.ones(4))
    bounds = budget.bounds(np.ones(4))
    with pytest.raises(cm.InputError, match="one row for each"):
        budget.noisy_sum(rows, bounds[:2])
    budget.noisy_sum(rows, bounds)
    with pytest.raises(cm.BudgetRefused, match="allows one noisy sum"):
        budget.noisy_sum(rows, bounds)
    budget.charge(bounds)
    with pytest.raises(cm.BudgetRefused, match="allows one noisy sum"):
        budget.noisy_sum(rows, bounds)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there are no forks")
def test_a_fork_may_not_go_on_with_bounds_that_were_handed_out() -> None:
    budget = IndividualBudget(**PLAN, rate=None)
    bounds = budget.bounds(np.ones(4))
    child = os.fork()
    if child == 0:
        refused = 0
        for asked in (lambda: budget.noisy_sum(np.ones((4, 2)), bounds), lambda: budget.charge(bounds)):
            try:
                asked()
            except cm.BudgetRefused:
                refused += 1
        os._exit(refused)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 2


def test_noisy_sums() -> None:
    """Every row is clipped to its own bound; rows without numbers are 0; the noise has the stated deviation."""
    budget = IndividualBudget(**PLAN | {"records": 5}, rate="0.01")
    bounds = np.array([1.0, 0.25, 0.0, 1.0, 0.5])
    rows = np.array([[3.0, 4.0], [30.0, 40.0], [1.0, 1.0], [math.nan, 1.0], [math.inf, 0.0]])
    exact = np.array([0.6 + 0.15, 0.8 + 0.2])
    draws = np.array([noisy_sum(budget, rows, bounds) for _ in range(300)])
    assert draws.mean(axis=0) == pytest.approx(exact, abs=0.25)
    assert draws.std(axis=0) == pytest.approx([1.0, 1.0], abs=0.2)
    quiet = IndividualBudget(**PLAN | {"records": 5, "noise_multiplier": "0.001", "epsilon": 10**6}, rate=None)
    found = noisy_sum(quiet, rows, bounds)
    assert found == pytest.approx(exact, abs=6e-3)
    assert np.hypot(*noisy_sum(quiet, rows[:1], bounds[:1])) <= 1 + 6e-3
    # bounds of the caller's own never move the sum by more than the norm
    quiet._totals[:] = 0
    for given, most in ((50.0, 1.0), (math.nan, 0.0)):
        handed_out = quiet.bounds(np.ones(5))
        assert np.hypot(*quiet.noisy_sum(rows[:1], [given])) <= most + 6e-3
        quiet.charge(handed_out)
    with pytest.raises(cm.InputError, match="one row for each"):
        budget.noisy_sum(rows, bounds[:2])


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"records": 0}, "records"),
        ({"epsilon": 0}, "epsilon"),
        ({"epsilon": math.inf}, "epsilon"),
        ({"delta": 0}, "delta"),
        ({"delta": 1}, "delta"),
        ({"noise_multiplier": 0}, "noise_multiplier"),
        ({"clip": math.nan}, "clip"),
        ({"rate": 2}, "rate"),
        ({"levels": 0}, "levels"),
        ({"levels": True}, "levels"),
        ({"bounds": "secret"}, "bounds"),
        ({"relation": "replace-one"}, "one removed and one added"),
    ],
)
def test_bad_input(changed: dict[str, Any], said: str) -> None:
    with pytest.raises(cm.InputError, match=said):
        IndividualBudget(**PLAN | {"rate": "0.01"} | changed)


@pytest.mark.parametrize("wanted", [[1.0], [], [[1.0] * 4], "many", [None] * 3, ["a"] * 4])
def test_bounds_of_the_wrong_shape(wanted: Any) -> None:
    with pytest.raises(cm.InputError, match="wanted"):
        IndividualBudget(**PLAN, rate=None).bounds(wanted)
