"""A budget in the loop: it refuses the step that would exceed it."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

from cumulant.accountant import Accountant
from cumulant.accounting.numbers import rounded_up
from cumulant.domains import DELTA, EPSILON, Number, times
from cumulant.errors import BudgetRefused, InputError, shown
from cumulant.lock import Lock
from cumulant.mechanisms.mechanism import Expression
from cumulant.notation import parse
from cumulant.numerics.search import largest_integer
from cumulant.training.sgd import NoisySGD


class Budget:
    """An (epsilon, delta) that a training run keeps, in one of three ways.

    The way is chosen before the first step.

    Give the plan of a `NoisySGD` to `allow`, and each call counts one step of it. That is also right where a pass and not a
    step is accounted for ("balls-in-bins", "shuffled"): all steps of one pass are one release, charged at the first of them.
    An expression counts as one release at each call. Where it is about a whole pass, `allow(expression, per="pass")` once in
    each pass says so. Steps that share noise are one release too, and `allow(expression, per="run")` counts whole runs.

    One object of a plan is one loop. Give the same object before each step of a loop, and a new one to a second loop: it
    begins passes of its own, even if the plans are equal. A pass has records // batch steps here. A loop that keeps a short
    last batch, or breaks passes off, calls `allow(plan.after(1), per="pass")` instead. A copy of a budget, a pickle or a forked
    process begins the next pass, as our samplers do. It refuses to go on with correlated noise, of which it has not the state.
    A copy is for going on elsewhere: it knows nothing of what the original takes afterwards, so only one of them may go on.
    A loop that starts again from its first step needs a new budget, because what ran before it was released too.

    By default all steps are equal. How many fit is found once, at the first of them, and is a constant: stopping there is
    not adaptive. A step that differs is refused, because which steps run would then decide which history is composed.

    With `schedule=[(step, count), …]` the steps are planned in advance and have to come in this order; the whole plan must
    fit. With `adaptive=True` every step may be chosen from all earlier outputs: each is charged by the rule of
    `Accountant(limit=…)`, which costs a part of the budget.

    Threads may share a budget: a lock makes check and update one step.

    >>> import cumulant as cm
    >>> plan = cm.NoisySGD(batch=64, records=1797, steps=200, noise_multiplier=4)
    >>> budget = Budget(epsilon="0.3", delta=1e-5)
    >>> budget.allow(plan), budget.most(plan)
    (1, 12)
    >>> budget.allow(plan, 12)
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
        self._plan = None if schedule is None else _checked_schedule(schedule)
        self._step: Expression | NoisySGD | None = None
        self._fit = 0
        self._taken = 0
        self._loops: dict[tuple[int, int], tuple[NoisySGD, int]] = {}
        """The plan and the steps of each loop, by process and object; the plan is kept so that no other gets its id."""
        self._passes = 0
        """The passes that were begun by all loops, also by those that a copy does not know."""
        self._lock = Lock()
        if self._plan is not None:
            self._check_plan(self._plan)

    def __getstate__(self) -> dict[str, Any]:
        """Return the state for pickles and copies.

        It knows no loop, so that the next step begins a pass: a sampler that was copied begins one too.
        """
        with self._lock:
            return {**self.__dict__, "_loops": {}}

    @property
    def limit(self) -> tuple[float, float]:
        """Return epsilon and delta."""
        return float(self._epsilon), float(self._delta)

    @property
    def taken(self) -> int:
        """Return the number of steps that were allowed so far."""
        return self._taken

    def terms(self) -> dict[str, Any]:
        """Return how it was opened, as plain data for a checkpoint; not what was taken from it.

        >>> Budget(3, 1e-5).terms()
        {'epsilon': '3', 'delta': '1e-5', 'adaptive': False, 'schedule': None}
        """
        plan = None if self._plan is None else [[str(step), count] for step, count in self._plan]
        return {
            "epsilon": str(self._epsilon),
            "delta": str(self._delta),
            "adaptive": self._rule is not None,
            "schedule": plan,
        }

    @classmethod
    def from_terms(cls, terms: Mapping[str, Any]) -> Budget:
        """Open a new budget on the terms of another one.

        >>> Budget.from_terms(Budget(3, 1e-5).terms()).limit
        (3.0, 1e-05)
        """
        try:
            schedule = terms["schedule"]
            plan = None if schedule is None else [(parse(text), int(count)) for text, count in schedule]
            return cls(terms["epsilon"], terms["delta"], schedule=plan, adaptive=bool(terms["adaptive"]))
        except (KeyError, TypeError, ValueError) as error:
            raise InputError(f"these are not the terms of a budget ({error}); give what terms() returned") from error

    def allow(self, step: Expression | NoisySGD, count: int = 1, *, per: str = "step") -> int:
        """Count steps that are about to run and return how many ran then.

        BudgetRefused if they do not fit, all or none.

        With `per="pass"` the calls count whole passes, of which the expression is one, and with `per="run"` whole runs.

        >>> import cumulant as cm
        >>> plan = cm.NoisySGD(batch=10, records=100, epochs=2, noise_multiplier=4, sampling="balls-in-bins")
        >>> budget = Budget(epsilon=1, delta=1e-5)
        >>> [budget.allow(plan) for _ in range(20)][-1]  # 20 steps are two passes
        20
        >>> budget.allow(plan.after(1))
        Traceback (most recent call last):
        ...
        cumulant.errors.InputError: Gaussian(sigma=4, relation="add-remove") @ RandomAllocation(steps=10) is a whole pass, ...
        """
        new = times(count, "count")
        self._check_unit(step, per)
        if isinstance(step, NoisySGD) and step.schedule is not None and (self._rule or self._plan is not None):
            raise InputError(
                "this plan has a schedule of its own; open the budget without adaptive=True and schedule=…"
            )
        if isinstance(step, NoisySGD) and step.noise_bands is not None and (self._rule or self._plan is not None):
            raise InputError(
                "the noise of this plan is correlated, so all its steps are one release; call allow(plan.run, per='run') "
                "once for the whole run, or open the budget without adaptive=True and schedule=…"
            )
        if isinstance(step, NoisySGD) and step.loop.per_step and step.schedule is None:
            step = step.after(1)
        with self._lock:
            if self._rule is not None:
                self._compose(self._rule, step, new)
            elif self._plan is not None:
                if isinstance(step, NoisySGD):
                    raise InputError(
                        "a schedule counts passes of this plan, not steps; call allow(plan.after(1), per='pass') once in "
                        "each pass"
                    )
                self._follow(self._plan, step, new)
            else:
                self._constant(step, new)
            self._taken += new
            return self._taken

    def _check_unit(self, step: Expression | NoisySGD, per: str) -> None:
        """Refuse calls that leave open whether they count a step, a pass or a run."""
        if per not in ("step", "pass", "run"):
            raise InputError(f"per={shown(per)} must be 'step', 'pass' or 'run'")
        _check_step(step)
        if isinstance(step, NoisySGD):
            if per != "step":
                raise InputError("a plan counts its passes itself; call allow(plan) before each step, without per=…")
            return
        if per != "run" and step.spans_run:
            raise InputError(
                f"{step} is a whole run whose steps share noise, not a {per}. Call allow(plan) before each step, with the "
                "NoisySGD itself; or call allow(expression, per='run') once for each run"
            )
        if per == "step" and step.spans_pass:
            raise InputError(
                f"{step} is a whole pass, not a step. Call allow(plan) before each step, with the NoisySGD itself; or call "
                "allow(expression, per='pass') once in each pass"
            )

    def most(self, step: Expression | NoisySGD) -> int:
        """Return how many such steps fit in all, if no others run; 0 if not one does."""
        _check_step(step)

        def fits(count: int) -> bool:
            if isinstance(step, NoisySGD) and step.schedule is not None and count > step.total_steps:
                return False
            run = step.after(count) if isinstance(step, NoisySGD) else step * count
            reached = run.epsilon(self._delta)
            return reached < math.inf and Fraction(reached) <= self._epsilon

        return largest_integer(fits)

    def _compose(self, rule: Accountant, step: Expression | NoisySGD, new: int) -> None:
        """Charge steps by the rule for adaptive choices.

        A plan is charged where a step starts a pass of its own loop, whatever else ran in between.
        """
        if not isinstance(step, NoisySGD):
            rule.compose(step, new)
            return
        if self._step is not None and step != self._step:
            raise BudgetRefused(
                f"{step} is another plan than {self._step}, and a budget keeps the passes of one plan; open a new budget",
                requested=str(step),
            )
        started = self._started(step, new)
        if started:
            rule.compose(step.after(1), started)
        self._step = step
        self._count_loop(step, new)

    def _constant(self, step: Expression | NoisySGD, new: int) -> None:
        """Count equal steps up to the constant that fits."""
        if self._step is None:
            self._step, self._fit = step, self.most(step)
        elif step != self._step:
            raise BudgetRefused(
                f"{step} is another step than {self._step}, and a limit is kept for equal steps only; declare a schedule "
                "before the first step, or adaptive=True",
                requested=str(step),
            )
        left = max(0, self._fit - self.taken)
        if isinstance(step, NoisySGD):
            left = self._steps_left(step)
        if new > left:
            raise BudgetRefused(
                f"step {self.taken + left + 1} would exceed epsilon = {self._epsilon} at delta = {self._delta}: "
                f"{self._fit} steps of {step} fit; stop here, or train with more noise",
                requested=f"{new} steps of {step}" if isinstance(step, NoisySGD) else str(step * new),
                would_fit=left,
                asked=new,
            )
        if isinstance(step, NoisySGD):
            self._count_loop(step, new)

    # ---- loops of a plan

    def _loop_steps(self, plan: NoisySGD) -> int:
        """Return how many steps this object of a plan took in this process."""
        return self._loops.get((os.getpid(), id(plan)), (plan, 0))[1]

    def _started(self, plan: NoisySGD, new: int) -> int:
        """Return how many passes the next steps of a loop begin."""
        before = self._loop_steps(plan)
        return plan.passes(before + new) - plan.passes(before)

    def _count_loop(self, plan: NoisySGD, new: int) -> None:
        """Count steps that a loop is about to take."""
        self._passes += self._started(plan, new)
        self._loops[os.getpid(), id(plan)] = plan, self._loop_steps(plan) + new

    def _steps_left(self, plan: NoisySGD) -> int:
        """Return how many more steps of a loop fit: the rest of its pass, and the passes that are left.

        A schedule or correlated noise has no passes to count: its steps follow each other in one loop. A schedule goes on in a
        copy, whose steps draw afresh. Correlated noise does not: noise that is not that of the steps before is a new run.
        """
        if plan.noise_bands is not None and self.taken and (os.getpid(), id(plan)) not in self._loops:
            raise BudgetRefused(
                f"{plan} goes on in a copy of this budget, in another process or as a second object, which is a new run with "
                "noise of its own; count whole runs with allow(plan.run, per='run'), or open a new budget for it",
                requested=str(plan),
            )
        if plan.noise_bands is not None:
            return max(0, self._fit - self.taken)
        if plan.schedule is not None:
            if self._loops and all(known is not plan for known, _ in self._loops.values()):
                raise BudgetRefused(
                    f"{plan} is a second object of an equal plan, so a loop of its own; give the same object before each "
                    "step of one loop, and open a new budget for another",
                    requested=str(plan),
                )
            return max(0, self._fit - self.taken)
        before, length = self._loop_steps(plan), plan.steps_of_a_pass
        unused = plan.passes(before) * length - before
        return unused + max(0, plan.passes(self._fit) - self._passes) * length

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


def _check_step(step: object) -> None:
    """Raise InputError unless this is a plan or an expression."""
    if not isinstance(step, Expression | NoisySGD):
        raise InputError(f"step={shown(step)} must be a NoisySGD or an expression, such as Gaussian(sigma=2) * 3")


def _checked_schedule(schedule: Sequence[tuple[Expression, int]]) -> list[tuple[Expression, int]]:
    """Return the steps of a schedule with their counts; InputError if it is none."""
    try:
        pairs = [(step, count) for step, count in schedule]
    except (TypeError, ValueError):
        raise InputError("schedule must be pairs of an expression and how often it runs") from None
    found = [(step, times(count, "count")) for step, count in pairs]
    for step, _ in found:
        if not isinstance(step, Expression):
            raise InputError(
                f"schedule has {shown(step)}, which is no expression; give plan.after(1) for a step of a plan"
            )
    return found
