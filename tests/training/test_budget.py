"""A budget says no before it is exceeded, and keeps to how it was opened."""

from fractions import Fraction

import pytest

import cumulant as cm
from cumulant.training.budget import Budget

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
    with pytest.raises(cm.InputError, match="must be 'step' or 'pass'"):
        Budget(40, DELTA).allow(STEP, per="epoch")
    assert Budget(40, DELTA, schedule=[(plan.after(1), 2)]).allow(plan.after(1), per="pass") == 1
