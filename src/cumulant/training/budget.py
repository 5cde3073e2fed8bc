"""A budget in the loop: says no before the step that would exceed it."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from cumulant.accountant import Accountant
from cumulant.accounting.printed import rounded_up
from cumulant.domains import DELTA, EPSILON, Number, times
from cumulant.errors import BudgetRefused, InputError
from cumulant.lock import Lock
from cumulant.mechanisms.mechanism import Expression
from cumulant.training.sgd import largest


class Budget:
    """An (epsilon, delta) that a training run keeps, in one of three ways, to be chosen before the first step.

    By default all steps are equal. How many fit is found once, at the first of them, and is a constant: stopping there is
    not adaptive. A step that differs is refused, because which steps run would then decide which history is composed.

    With `schedule=[(step, count), …]` the steps are planned in advance and have to come in this order; the whole plan must
    fit. With `adaptive=True` every step may be chosen from all earlier outputs: each is charged by the rule of
    `Accountant(limit=…)`, which costs a part of the budget.

    Threads may share a budget: a lock makes check and update one step.

    >>> import cumulant as cm
    >>> step = cm.NoisySGD(batch=64, records=1797, steps=1, noise_multiplier=4).run
    >>> budget = Budget(epsilon="0.3", delta=1e-5)
    >>> budget.allow(step), budget.most(step)
    (1, 12)
    >>> budget.allow(step, 12)
    Traceback (most recent call last):
    ...
    cumulant.errors.BudgetRefused: step 13 would exceed epsilon = 0.3 at delta = 1e-5: 12 steps of ... fit; ...
    """

    def __init__(
        self,
        epsilon: Number,
        delta: Number,
        *,
        schedule: Sequence[tuple[Expression, int]] | None = None,
        adaptive: bool = False,
    ) -> None:
        self._epsilon, self._delta = EPSILON.check("epsilon", epsilon), DELTA.check("delta", delta)
        if adaptive and schedule is not None:
            raise InputError("give schedule=… or adaptive=True, one of them: a plan is not chosen from outputs")
        self._rule = Accountant(limit=(self._epsilon, self._delta)) if adaptive else None
        self._plan = None if schedule is None else [(step, times(count)) for step, count in schedule]
        self._step: Expression | None = None
        self._fit = 0
        self._taken = 0
        self._lock = Lock()
        if self._plan is not None:
            self._check_plan(self._plan)

    @property
    def limit(self) -> tuple[float, float]:
        """Epsilon and delta."""
        return float(self._epsilon), float(self._delta)

    @property
    def taken(self) -> int:
        """Steps that were allowed so far."""
        return self._taken

    def allow(self, step: Expression, count: int = 1) -> int:
        """Count steps that are about to run and return how many ran then; BudgetRefused if they do not fit, all or none."""
        new = times(count)
        with self._lock:
            if self._rule is not None:
                self._rule.compose(step, new)
            elif self._plan is not None:
                self._follow(self._plan, step, new)
            else:
                self._constant(step, new)
            self._taken += new
            return self._taken

    def most(self, step: Expression) -> int:
        """How many such steps fit in all, if no others run; 0 if not one does."""
        return largest(lambda count: Fraction((step * count).epsilon(self._delta)) <= self._epsilon)

    def _constant(self, step: Expression, new: int) -> None:
        if self._step is None:
            self._step, self._fit = step, self.most(step)
        elif step != self._step:
            raise BudgetRefused(
                f"{step} is another step than {self._step}, and a limit is kept for equal steps only; declare a schedule "
                "before the first step, or adaptive=True",
                requested=str(step),
            )
        if self.taken + new > self._fit:
            raise BudgetRefused(
                f"step {max(self.taken, self._fit) + 1} would exceed epsilon = {self._epsilon} at delta = {self._delta}: "
                f"{self._fit} steps of {step} fit; stop here, or train with more noise",
                requested=str(step * new),
                would_fit=max(0, self._fit - self.taken),
                asked=new,
            )

    def _follow(self, plan: list[tuple[Expression, int]], step: Expression, new: int) -> None:
        before = 0
        for planned, count in plan:
            if self.taken < before + count:
                if step == planned and self.taken + new <= before + count:
                    return
                raise BudgetRefused(
                    f"step {self.taken + 1} was planned as {planned}, not as {new} of {step}; keep to the schedule",
                    requested=str(step),
                )
            before += count
        raise BudgetRefused(f"the schedule ends after {before} steps", requested=str(step))

    def _check_plan(self, plan: list[tuple[Expression, int]]) -> None:
        if not plan:
            raise InputError("schedule=[] plans nothing; give pairs of a step and how often it runs")
        whole = plan[0][0] * plan[0][1]
        for step, count in plan[1:]:
            whole = whole + step * count
        reached = whole.epsilon(self._delta)
        if not Fraction(reached) <= self._epsilon if reached < float("inf") else True:
            raise BudgetRefused(
                f"the schedule needs epsilon = {rounded_up(reached)} at delta = {self._delta}, more than {self._epsilon}",
                requested=str(whole),
            )
