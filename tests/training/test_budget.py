"""A budget says no before it is exceeded, and keeps to how it was opened."""

import copy
import itertools
import math
import os
import pickle
from collections.abc import Callable
from fractions import Fraction

import pytest

import cumulant as cm
from cumulant.relation import Relation
from cumulant.training.budget import Budget
from cumulant.training.sgd import CORRELATED

STEP = cm.NoisySGD(batch=64, records=1797, steps=1, noise_multiplier=4).run
OTHER = cm.NoisySGD(batch=64, records=1797, steps=1, noise_multiplier=5).run
DELTA = Fraction(1, 10**5)


def test_equal_steps_stop_at_a_constant() -> None:
    budget = Budget("0.5", DELTA)
    most = budget.most(STEP)
    assert (STEP * most).epsilon(DELTA) <= 0.5 < (STEP * (most + 1)).epsilon(DELTA)
    assert budget.allow(STEP, most) == most
    with pytest.raises(cm.BudgetRefused) as refusal:
        budget.allow(STEP)
    assert (refusal.value.would_fit, refusal.value.asked) == (0, 1)
    assert budget.taken == most


def test_all_or_none() -> None:
    budget = Budget("0.5", DELTA)
    budget.allow(STEP, 10)
    with pytest.raises(cm.BudgetRefused):
        budget.allow(STEP, 10**6)
    assert budget.taken == 10


def test_another_step_is_refused() -> None:
    budget = Budget(3, DELTA)
    budget.allow(STEP)
    with pytest.raises(cm.BudgetRefused, match="another step"):
        budget.allow(OTHER)


def test_a_schedule_is_kept_in_its_order() -> None:
    budget = Budget(1, DELTA, schedule=[(STEP, 2), (OTHER, 1)])
    budget.allow(STEP)
    with pytest.raises(cm.BudgetRefused, match="step 2 was planned"):
        budget.allow(OTHER)
    budget.allow(STEP)
    budget.allow(OTHER)
    with pytest.raises(cm.BudgetRefused, match="ends after 3"):
        budget.allow(OTHER)
    with pytest.raises(cm.BudgetRefused, match="the schedule needs"):
        Budget("0.1", DELTA, schedule=[(STEP, 1000)])


def test_adaptive_steps_go_by_the_filter_and_cost_more() -> None:
    careful, plain = Budget("0.5", DELTA, adaptive=True), Budget("0.5", DELTA)
    while careful.taken < 4:
        careful.allow(OTHER if careful.taken % 2 else STEP)
    with pytest.raises(cm.BudgetRefused):
        careful.allow(STEP, plain.most(STEP) - 4)
    with pytest.raises(cm.BudgetRefused):
        careful.allow(OTHER, plain.most(OTHER))
    assert careful.taken == 4


def test_what_is_wrong_is_refused() -> None:
    with pytest.raises(cm.InputError, match="one of them"):
        Budget(1, DELTA, adaptive=True, schedule=[(STEP, 1)])
    with pytest.raises(cm.InputError, match="plans nothing"):
        Budget(1, DELTA, schedule=[])
    with pytest.raises(cm.InputError, match="count='x' must be an integer"):
        Budget(1, DELTA, schedule=[(STEP, "x")])  # type: ignore[list-item]
    with pytest.raises(cm.InputError, match="epsilon"):
        Budget(-1, DELTA)


@pytest.mark.parametrize(
    ("sampling", "adaptive"),
    [("balls-in-bins", False), ("shuffled", False), ("fixed-size", False), ("poisson", False), ("shuffled", True)],
)
def test_a_plan_is_counted_in_steps(sampling: str, adaptive: bool) -> None:
    """A plan of ten passes of twenty steps fits into its own epsilon: all 200 steps, and not one more."""
    plan = cm.NoisySGD(batch=10, records=200, steps=200, noise_multiplier=4, sampling=sampling)
    epsilon = 40 if adaptive else plan.epsilon(DELTA) * (1 + 1e-9)  # decimals of a float may lie below it
    budget = Budget(epsilon, DELTA, adaptive=adaptive)
    assert [budget.allow(plan) for _ in range(200)][-1] == 200
    if not adaptive:
        assert budget.most(plan) == 200
        with pytest.raises(cm.BudgetRefused, match="200 steps of") as refusal:
            budget.allow(plan, 2)
        assert (refusal.value.would_fit, refusal.value.asked) == (0, 2)


def test_plans_are_not_mixed() -> None:
    plan, other = (
        cm.NoisySGD(batch=10, records=200, steps=200, noise_multiplier=noise, sampling="shuffled") for noise in (4, 5)
    )
    for adaptive in (False, True):
        budget = Budget(40, DELTA, adaptive=adaptive)
        budget.allow(plan)
        with pytest.raises(cm.BudgetRefused, match="another"):
            budget.allow(other)
    with pytest.raises(cm.InputError, match="once in each pass"):
        Budget(40, DELTA, schedule=[(plan.after(1), 10)]).allow(plan)


@pytest.mark.parametrize(("sampling", "adaptive"), [("balls-in-bins", False), ("shuffled", False), ("shuffled", True)])
def test_an_expression_of_a_pass_is_not_a_step(sampling: str, adaptive: bool) -> None:
    """The expression after one step is a whole pass: asked at every step it would be refused at step 11 of 200."""
    plan = cm.NoisySGD(batch=10, records=200, steps=200, noise_multiplier=4, sampling=sampling)
    epsilon = 40 if adaptive else plan.epsilon(DELTA) * (1 + 1e-9)
    budget = Budget(epsilon, DELTA, adaptive=adaptive)
    with pytest.raises(cm.InputError, match="is a whole pass, not a step"):
        budget.allow(plan.after(1))
    assert budget.taken == 0
    assert [budget.allow(plan.after(1), per="pass") for _ in range(10)][-1] == 10
    if not adaptive:
        with pytest.raises(cm.BudgetRefused):
            budget.allow(plan.after(1), per="pass")


def test_a_plan_counts_its_passes_itself() -> None:
    plan = cm.NoisySGD(batch=10, records=200, steps=200, noise_multiplier=4, sampling="shuffled")
    with pytest.raises(cm.InputError, match="counts its passes itself"):
        Budget(40, DELTA).allow(plan, per="pass")
    with pytest.raises(cm.InputError, match="must be 'step', 'pass' or 'run'"):
        Budget(40, DELTA).allow(STEP, per="epoch")
    assert Budget(40, DELTA, schedule=[(plan.after(1), 2)]).allow(plan.after(1), per="pass") == 1


# ---- passes that are charged cover passes that were begun

BY_PASSES = ("balls-in-bins", "shuffled", "any-order")
LARGE = cm.NoisySGD(batch=10, records=100, epochs=5, noise_multiplier="0.5", sampling="balls-in-bins")


def charged(budget: Budget) -> int:
    """Return how many releases the rule of an adaptive budget has composed."""
    assert budget._rule is not None
    return sum(part.times for part in budget._rule.record().parts)


def test_a_release_before_a_loop_does_not_hide_its_first_pass() -> None:
    """The pass needs delta(1) = 0.17; nine of its ten steps were allowed under (1, 1e-5)."""
    budget = Budget(1, DELTA, adaptive=True)
    budget.allow(cm.Gaussian(sigma=50, relation="add-remove"))
    with pytest.raises(cm.BudgetRefused, match="does not fit"):
        budget.allow(LARGE)
    assert budget.taken == 1


@pytest.mark.parametrize("sampling", BY_PASSES)
@pytest.mark.parametrize(("batch", "records"), [(1, 3), (2, 5), (3, 4), (2, 2)])
def test_every_order_of_calls_is_charged_for_every_pass(sampling: str, batch: int, records: int) -> None:
    """All words of four calls: a step of either of two equal loops, two steps at once, or another release."""
    length = records // batch
    relation = "add-remove" if sampling == "balls-in-bins" else "replace-one"
    noise = cm.Gaussian(sigma=50, relation=relation)
    opened = Budget(100, DELTA, adaptive=True)
    for word in itertools.product("abAr", repeat=4):
        loops = {
            name: cm.NoisySGD(batch=batch, records=records, epochs=2, noise_multiplier=50, sampling=sampling)
            for name in "ab"
        }
        budget, steps, others = copy.copy(opened), {"a": 0, "b": 0}, 0  # of a budget from which nothing was taken
        budget._rule = cm.Accountant()  # it counts as the rule does, and asks for no epsilon
        for letter in word:
            if letter == "r":
                budget.allow(noise)
                others += 1
            else:
                count = 1 + letter.isupper()
                budget.allow(loops[letter.lower()], count)
                steps[letter.lower()] += count
            begun = sum(math.ceil(each / length) for each in steps.values())
            assert charged(budget) == begun + others, word
        assert budget.taken == others + sum(steps.values())


@pytest.mark.parametrize("adaptive", [False, True])
@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, lambda budget: pickle.loads(pickle.dumps(budget))])
def test_a_copied_budget_begins_the_next_pass(copied: Callable[[Budget], Budget], adaptive: bool) -> None:
    """A sampler that was copied leaves the rest of its pass out, so the next step is the first of a pass."""
    plan = cm.NoisySGD(batch=10, records=50, epochs=2, noise_multiplier=50, sampling="balls-in-bins")
    budget = Budget(plan.epsilon(DELTA) * (1 + 1e-9) if not adaptive else 100, DELTA, adaptive=adaptive)
    budget.allow(plan, 2)
    twin = copied(budget)
    assert (twin.taken, twin.allow(plan, 5)) == (2, 7)
    if adaptive:
        assert charged(twin) == 2
    else:
        with pytest.raises(cm.BudgetRefused) as refusal:
            twin.allow(plan)
        assert refusal.value.would_fit == 0
    assert budget.allow(plan, 8) == 10  # the loop itself goes on within its pass


def test_two_loops_of_equal_plans_share_a_constant_limit() -> None:
    first, second = (
        cm.NoisySGD(batch=10, records=50, epochs=3, noise_multiplier=4, sampling="shuffled") for _ in range(2)
    )
    assert first == second
    budget = Budget(first.epsilon(DELTA) * (1 + 1e-9), DELTA)
    for plan in (first, second, first, second):
        budget.allow(plan)  # two passes are begun
    budget.allow(first, 4)  # three
    with pytest.raises(cm.BudgetRefused, match="15 steps of") as refusal:
        budget.allow(second, 4)
    assert (refusal.value.would_fit, refusal.value.asked) == (3, 4)
    budget.allow(second, 3)
    budget.allow(first, 4)
    with pytest.raises(cm.BudgetRefused):
        budget.allow(first)


def test_a_second_loop_does_not_go_on_with_a_schedule() -> None:
    """Ten steps with little noise in each of two loops were counted as ten with little and ten with much."""
    first, second = (
        cm.NoisySGD(batch=10, records=50, noise_multiplier=20, schedule=[(1, 10), (10, 1000)], sampling="poisson")
        for _ in range(2)
    )
    budget = Budget(40, DELTA)
    budget.allow(first, 10)
    with pytest.raises(cm.BudgetRefused, match="second object of an equal plan"):
        budget.allow(second)
    assert budget.allow(first) == 11
    assert copy.deepcopy(budget).allow(second) == 12  # a loaded budget goes on with the loop that it is given


@pytest.mark.parametrize("sampling", list(CORRELATED))
def test_correlated_noise_does_not_go_on_elsewhere(sampling: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """All steps are one pass that fits; half and, after a pickle, half are two runs: 8e-4 for 1e-5 in ten steps of noise 4."""
    first, second = (
        cm.NoisySGD(batch=25, records=100, steps=4, noise_multiplier=40, noise_bands=[1, "0.5"], sampling=sampling)
        for _ in range(2)
    )
    budget = Budget("0.15", DELTA)
    budget.allow(first, 2)
    for again in (pickle.loads(pickle.dumps(budget)), copy.deepcopy(budget), copy.copy(budget)):
        for plan in (first, second):
            with pytest.raises(cm.BudgetRefused, match="a new run with noise of its own"):
                again.allow(plan)
        assert again.taken == 2
    with pytest.raises(cm.BudgetRefused, match="a new run with noise of its own"):
        budget.allow(second)
    assert budget.allow(first) == 3
    monkeypatch.setattr(os, "getpid", lambda: -1)
    with pytest.raises(cm.BudgetRefused, match="a new run with noise of its own"):
        budget.allow(first)


@pytest.mark.parametrize("sampling", list(CORRELATED))
def test_correlated_noise_is_not_charged_by_the_rule_for_adaptive_choices(sampling: str) -> None:
    """Every pass was charged as a run of one step."""
    plan = cm.NoisySGD(batch=10, records=50, epochs=2, noise_multiplier=20, noise_bands=[1, "0.5"], sampling=sampling)
    for budget in (Budget(40, DELTA, adaptive=True), Budget(40, DELTA, schedule=[(plan.run, 1)])):
        with pytest.raises(cm.InputError, match="correlated"):
            budget.allow(plan)
        assert budget.allow(plan.run, per="run") == 1


@pytest.mark.parametrize("sampling", list(CORRELATED))
def test_a_step_of_correlated_noise_is_not_a_run_of_one_step(sampling: str) -> None:
    """Ten steps in a fixed order need epsilon 2.95; as ten runs of one step they were allowed by 0.57."""
    plan = cm.NoisySGD(batch=10, records=50, epochs=2, noise_multiplier=20, noise_bands=[1, 10], sampling=sampling)
    one = plan.after(1)
    if sampling == "balls-in-bins, one draw":  # the first steps are a part of the epoch, and cost as much
        assert plan.epsilon(DELTA) <= (one * 10).epsilon(DELTA)
    else:
        assert plan.epsilon(DELTA) > 2 * (one * 10).epsilon(DELTA)
    twice = cm.parallel(one, one, by="value" if one.relation is Relation.ADD_REMOVE else "position")
    for step in (one, plan.after(4), one @ cm.Group(size=2), twice, twice @ cm.Group(size=2)):
        for per in ("step", "pass"):
            budget = Budget(40, DELTA)
            with pytest.raises(cm.InputError, match=f"a whole run whose steps share noise, not a {per}"):
                budget.allow(step, per=per)
            assert budget.taken == 0
    assert Budget(plan.epsilon(DELTA) * 1.0005, DELTA).allow(plan.run, per="run") == 1
    with pytest.raises(cm.InputError, match="counts its passes itself"):
        Budget(40, DELTA).allow(plan, per="run")


def test_rows_of_one_matrix_are_one_run() -> None:
    """A matrix is a whole run; a call for each step would charge each of them as a run of its own with fresh noise."""
    made = cm.Gaussian.from_matrix([[1, 0], ["0.5", 1]], sigma=9, relation="add-remove")
    for step in (made, cm.Gaussian.from_tree(steps=8, sigma=9), made | made, (made | made) @ cm.Group(size=2)):
        with pytest.raises(cm.InputError, match="a whole run whose steps share noise, not a step"):
            Budget(40, DELTA).allow(step)
    assert Budget(40, DELTA).allow(made, per="run") == 1


def test_a_pass_inside_of_another_expression_is_not_a_step() -> None:
    one = cm.NoisySGD(batch=10, records=50, epochs=1, noise_multiplier=20, sampling="balls-in-bins").run
    for step in (one, one | one, one @ cm.Group(size=2), (one | one) @ cm.Group(size=2), one + cm.PureDP("0.1")):
        with pytest.raises(cm.InputError, match="is a whole pass, not a step"):
            Budget(40, DELTA).allow(step)
    assert Budget(40, DELTA).allow(one, per="pass") == 1


@pytest.mark.parametrize("sampling", BY_PASSES)
def test_a_plan_of_epochs_fits_into_its_own_epsilon_and_not_one_step_more(sampling: str) -> None:
    """Step 57 of 2 epochs of 28 steps begins a third pass; it was allowed."""
    plan = cm.NoisySGD(batch=64, records=1797, epochs=2, noise_multiplier="0.7", sampling=sampling)
    budget = Budget(plan.epsilon(DELTA) * 1.0005, DELTA)
    assert budget.most(plan) == plan.total_steps == 56
    assert [budget.allow(plan) for _ in range(56)][-1] == 56
    with pytest.raises(cm.BudgetRefused, match="step 57 would exceed"):
        budget.allow(plan)


def test_an_adaptive_budget_goes_through_all_epochs() -> None:
    """Step 20 asked for -9 passes."""
    plan = cm.NoisySGD(batch=100, records=199, epochs=10, noise_multiplier=50, sampling="balls-in-bins")
    budget = Budget(100, DELTA, adaptive=True)
    for step in range(1, 25):
        assert budget.allow(plan) == step == charged(budget)


def test_a_forked_process_begins_the_next_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    plan = cm.NoisySGD(batch=10, records=50, epochs=2, noise_multiplier=50, sampling="balls-in-bins")
    budget = Budget(100, DELTA, adaptive=True)
    budget.allow(plan, 2)
    monkeypatch.setattr(os, "getpid", lambda: -1)
    budget.allow(plan)
    assert charged(budget) == 2


def test_a_step_that_no_budget_allows() -> None:
    """An output that one of two data sets never has with probability 0.9."""
    step = cm.from_masses(["0.9", "0.1"], ["1", "0"])
    assert cm.training.Budget(1, "0.01").most(step) == 0
