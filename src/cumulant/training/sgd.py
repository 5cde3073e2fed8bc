"""DP-SGD in the words people use: batch, records, epochs, noise multiplier, and how batches are drawn."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from types import MappingProxyType
from typing import Any

from cumulant.accounting.guarantee import Guarantee
from cumulant.accounting.numbers import stated
from cumulant.calibrate import calibrate
from cumulant.domains import COUNT, DELTA, POSITIVE, Exact, Number, spelling
from cumulant.errors import CumulantError, InputError, shown
from cumulant.mechanisms.gaussian import Gaussian
from cumulant.mechanisms.mechanism import Expression
from cumulant.mechanisms.shuffled_batches import ShuffledBatches
from cumulant.relation import Relation
from cumulant.sampling.poisson import Poisson
from cumulant.sampling.random_allocation import RandomAllocation
from cumulant.sampling.without_replacement import WithoutReplacement

DIGITS = 6
"""Significant digits of a noise multiplier that is found: those of `calibrate`."""


@dataclass(frozen=True, slots=True)
class Loop:
    """One way to form batches: whose neighbours are compared, what the accounting assumes of the loop, and what ran."""

    relation: Relation
    assumes: str
    per_step: bool  # one term for each step; else one for each pass
    release: Callable[[NoisySGD], Expression]


def _fixed_size(sgd: NoisySGD) -> Expression:
    return sgd.noisy_sum @ WithoutReplacement(sample=sgd.batch, population=sgd.records)


def _poisson(sgd: NoisySGD) -> Expression:
    return sgd.noisy_sum @ Poisson(rate=spelling(Fraction(sgd.batch) / Fraction(sgd.records)))


def _balls_in_bins(sgd: NoisySGD) -> Expression:
    return sgd.noisy_sum @ RandomAllocation(steps=sgd.steps_of_a_pass)


def _shuffled(sgd: NoisySGD) -> Expression:
    return sgd.noisy_sum @ ShuffledBatches()


SAMPLINGS: Mapping[str, Loop] = MappingProxyType(
    {
        "fixed-size": Loop(
            Relation.REPLACE_ONE,
            "every step draws as many different records as a batch has, uniformly and afresh, and keeps secret which; the sum "
            "is divided by this fixed number (cumulant.training.FixedSizeSampler)",
            True,
            _fixed_size,
        ),
        "poisson": Loop(
            Relation.ADD_REMOVE,
            "every step takes each record independently with probability batch / records and keeps secret which, so that "
            "batches have random sizes; empty ones run too, and the sum is divided by a constant "
            "(cumulant.training.PoissonSampler; stock Opacus)",
            True,
            _poisson,
        ),
        "balls-in-bins": Loop(
            Relation.ADD_REMOVE,
            "in every epoch each record goes into one step, chosen uniformly, for it alone and in secret, so that batches have "
            "random sizes; an epoch has at least records // batch steps, empty ones run too, and the sum is divided by a "
            "constant; an epoch that was started counts as a whole one (a permutation cut into batches is not this)",
            False,
            _balls_in_bins,
        ),
        "shuffled": Loop(
            Relation.REPLACE_ONE,
            "every epoch visits each record once, in batches of fixed sizes, and no record twice (shuffle=True, or data-set "
            "order); no amplification is proved for it, so every pass that was started counts as one release "
            "(docs/shuffled-batches.md; balls-in-bins is the nearest loop that is amplified)",
            False,
            _shuffled,
        ),
    }
)
"""Every way to form batches that can be named, and what is proved about it."""


@dataclass(frozen=True, slots=True)
class NoisySGD:
    """DP-SGD: per-example gradients clipped to `clip_norm`, summed, with Gaussian noise of `noise_multiplier * clip_norm`.

    Give `epochs` or `steps`. `sampling` says how batches are formed and with that the neighbours that are compared:
    "fixed-size" and "shuffled" speak about replacing one record, where a sum of clipped gradients moves by up to twice the
    norm; "poisson" and "balls-in-bins" about adding or removing one, where it moves by up to the norm. Epsilons of different
    relations cannot be compared as they stand: replace-one is the stronger statement.

    `schedule` lets the noise change: pairs of a factor and a number of steps, in their order, where the noise is
    `noise_multiplier * factor`. It must be fixed before the first step, and says the steps itself. A noise that is chosen from
    earlier outputs is no schedule; it is charged by `Budget(adaptive=True)`.

    >>> sgd = NoisySGD(batch=64, records=1797, epochs=3, noise_multiplier=4)
    >>> sgd.run
    Gaussian(sigma=4, sensitivity=2, geometry="ball") @ WithoutReplacement(sample=64, population=1797) * 85
    >>> str(sgd.relation), sgd.epsilon(delta=1e-5)
    ('replace-one', 0.73)
    >>> poisson = NoisySGD(batch=64, records=1797, epochs=3, noise_multiplier=4, sampling="poisson")
    >>> str(poisson.relation), poisson.epsilon(delta=1e-5)
    ('add-remove', 0.29)
    >>> NoisySGD(
    ...     batch=64, records=1797, noise_multiplier=4, schedule=[("1.5", 40), (1, 45)], sampling="poisson"
    ... ).segments
    ((Exact('6'), 40), (Exact('4'), 45))
    """

    batch: int
    records: int
    noise_multiplier: Number
    epochs: Number | None = None
    steps: int | None = None
    clip_norm: Number = 1
    sampling: str = "fixed-size"
    schedule: Sequence[tuple[Number, int]] | None = None

    def __post_init__(self) -> None:
        self._set("batch", int(COUNT.check("batch", self.batch)))
        self._set("records", int(COUNT.check("records", self.records)))
        if self.batch > self.records:
            raise InputError(f"batch={self.batch} must be at most records={self.records}")
        self._set("noise_multiplier", POSITIVE.check("noise_multiplier", self.noise_multiplier))
        self._set("clip_norm", POSITIVE.check("clip_norm", self.clip_norm))
        if self.schedule is not None:
            self._plan_steps(self.schedule)
        if (self.epochs is None) == (self.steps is None):
            raise InputError("NoisySGD takes epochs=… or steps=…, one of them")
        if self.steps is not None:
            self._set("steps", int(COUNT.check("steps", self.steps)))
        else:
            self._set("epochs", POSITIVE.check("epochs", self.epochs))
        if not isinstance(self.sampling, str) or self.sampling not in SAMPLINGS:  # type: ignore[redundant-expr]
            raise InputError(f"sampling={shown(self.sampling)} is unknown; choose one of {', '.join(SAMPLINGS)}")

    def _set(self, name: str, value: Any) -> None:
        object.__setattr__(self, name, value)

    def _plan_steps(self, schedule: Sequence[tuple[Number, int]]) -> None:
        """Check a schedule and take the number of steps from it."""
        try:
            pairs = tuple(
                (POSITIVE.check("schedule", factor), int(COUNT.check("schedule", n))) for factor, n in schedule
            )
        except CumulantError:
            raise
        except (TypeError, ValueError) as error:
            raise InputError(
                f"schedule={shown(schedule)} must be pairs of a factor and a number of steps, such as [(2, 100), (1, 50)]"
            ) from error
        total = sum(count for _, count in pairs)
        if not pairs or self.epochs is not None or self.steps not in (None, total):
            raise InputError(f"a schedule of {total} steps says how many there are; leave epochs=… and steps=… out")
        self._set("schedule", pairs)
        self._set("steps", total)
        if self.sampling in SAMPLINGS and not self.loop.per_step:
            raise InputError(
                f"sampling={self.sampling!r} is accounted by whole passes, in which the noise must not change; use "
                '"fixed-size" or "poisson" with a schedule'
            )

    # ---- what ran

    @property
    def loop(self) -> Loop:
        """What the way to form batches says of itself."""
        return SAMPLINGS[self.sampling]

    @property
    def relation(self) -> Relation:
        """The neighbours that every statement compares."""
        return self.loop.relation

    @property
    def noisy_sum(self) -> Gaussian:
        """One noisy sum of clipped gradients, in units of the clipping norm: its sensitivity is 2 or 1."""
        return Gaussian.from_clipping(norm=1, noise=Exact(self.noise_multiplier), relation=self.relation)

    @property
    def total_steps(self) -> int:
        """The number of noisy steps; epochs that end within a batch are rounded up."""
        if self.steps is not None:
            return self.steps
        return math.ceil(Exact(self.epochs or 0) * self.records / self.batch)

    def passes(self, steps: int) -> int:
        """Passes over the data that so many steps start, at most; the last batch of a pass may have been dropped."""
        if self.epochs is not None and steps == self.total_steps:
            return math.ceil(Exact(self.epochs))
        return -(-steps // self.steps_of_a_pass)

    @property
    def steps_of_a_pass(self) -> int:
        """The steps of one pass, at least."""
        return max(1, self.records // self.batch)

    @property
    def run(self) -> Expression:
        """What is accounted, as an expression."""
        return self.after(self.total_steps)

    @property
    def segments(self) -> tuple[tuple[Exact, int], ...]:
        """Noise multipliers, and for how many steps in turn each of them is used."""
        noise = Exact(self.noise_multiplier)
        if self.schedule is None:
            return ((noise, self.total_steps),)
        return tuple((Exact(noise * Exact(factor)), int(count)) for factor, count in self.schedule)

    def after(self, steps: int) -> Expression:
        """Return the run after this many steps; a schedule says no more than its own steps."""
        count = int(COUNT.check("steps", steps))
        if self.schedule is None:
            return self.loop.release(self) * self._releases(count)
        if count > self.total_steps:
            raise InputError(f"steps={count} must be at most {self.total_steps}, the steps of the schedule")
        parts: list[Expression] = []
        for noise, planned in self.segments:
            if count > 0:
                one = replace(self, noise_multiplier=noise, schedule=None)
                parts.append(one.loop.release(one) * min(planned, count))
            count -= planned
        whole = parts[0]
        for part in parts[1:]:
            whole = whole + part
        return whole

    def _releases(self, steps: int) -> int:
        return steps if self.loop.per_step else self.passes(steps)

    # ---- questions

    def epsilon(self, delta: Number, method: str = "best") -> float:
        """The smallest epsilon that is known to hold at this delta."""
        return self.run.epsilon(delta, method)

    def guarantee(self, delta: Number, method: str = "best") -> Guarantee:
        """The epsilon with its lower end and what proves it; shuffled batches have no lower end."""
        return self.run.guarantee(delta, method)

    def per_epoch(self, delta: Number, method: str = "best") -> list[dict[str, Any]]:
        """Return what is spent after each epoch, as plain dicts of step, epsilon, epsilon_lower, delta and relation.

        The last epsilon is that of the whole run. All epochs share what they have in common, so lower ends are left out.

        >>> sgd = NoisySGD(batch=64, records=1797, epochs=2, noise_multiplier=4)
        >>> first, last = sgd.per_epoch(delta=1e-5)
        >>> first
        {'step': 29, 'epsilon': 0.438..., 'epsilon_lower': None, 'delta': 1e-05, 'relation': 'replace-one'}
        >>> last["epsilon"] == sgd.epsilon(delta=1e-5)
        True
        """
        last, per = self.total_steps, Fraction(self.records, self.batch)
        counts = [math.ceil(per * epoch) for epoch in range(1, math.ceil(last / per) + 1)]
        ends = list(dict.fromkeys(min(count, last) for count in counts))
        if self.schedule is not None:
            return [self.spent(end, delta, method) for end in ends]
        over = self.loop.release(self).epsilon_over([self._releases(end) for end in ends], delta, method)
        found = [*(float(epsilon) for epsilon in over[:-1]), self.epsilon(delta, method)]
        return [self._logged(end, epsilon, None, delta) for end, epsilon in zip(ends, found, strict=True)]

    def spent(self, steps: int, delta: Number, method: str = "rdp") -> dict[str, Any]:
        """What is spent after so many steps, as a plain dict to log."""
        found = self.after(steps).guarantee(delta, method)
        return self._logged(steps, found.epsilon, found.lower, delta)

    def _logged(self, step: int, epsilon: float, lower: float | None, delta: Number) -> dict[str, Any]:
        at = stated(DELTA.check("delta", delta))
        return {"step": step, "epsilon": epsilon, "epsilon_lower": lower, "delta": at, "relation": str(self.relation)}

    def calibrated(self, epsilon: Number, delta: Number, digits: int = DIGITS) -> NoisySGD:
        """Return this plan with the smallest noise multiplier that meets (epsilon, delta).

        The number is the answer of `calibrate` for the run of this plan: with one unit less in its last digit the epsilon
        that is known exceeds the target. The noise multiplier of `self` does not matter.

        >>> sgd = NoisySGD(batch=64, records=1797, steps=560, noise_multiplier=1).calibrated(epsilon=3, delta=1e-5)
        >>> sgd.epsilon(delta=1e-5) <= 3, sgd.noise_multiplier
        (True, Exact('2.88412'))
        """

        def at(noise: Any) -> Expression:
            return replace(self, noise_multiplier=noise).run

        target = POSITIVE.check("epsilon", epsilon)
        return replace(self, noise_multiplier=calibrate(at, target, delta, digits=digits).value)

    def steps_within(self, epsilon: Number, delta: Number) -> int:
        """How many steps the budget (epsilon, delta) allows, 0 if not one: a constant, to be found before the first step.

        Stopping there is not adaptive, for noise and rate are fixed in advance. Who stops earlier for a reason that was
        computed from the data reports the planned number of steps.

        >>> NoisySGD(batch=64, records=1797, steps=1, noise_multiplier=4).steps_within(epsilon=1, delta=1e-5)
        162
        """
        target = POSITIVE.check("epsilon", epsilon)

        def fits(steps: int) -> bool:
            if self.schedule is not None and steps > self.total_steps:
                return False
            return Fraction(self.after(steps).epsilon(delta)) <= target

        return largest(fits)

    def __str__(self) -> str:
        planned = ", then ".join(f"{noise} for {count:,} steps" for noise, count in self.segments)
        noise = self.noise_multiplier if self.schedule is None else planned
        return (
            f"DP-SGD with batches of {self.batch:,} of {self.records:,} records, {self.total_steps:,} steps, noise multiplier "
            f"{noise}, {self.sampling} batches, for {self.relation} neighbours"
        )


def largest(fits: Callable[[int], bool], most: int = 2**40) -> int:
    """The largest count up to `most` that fits, if all smaller ones do; 0 if not even one does.

    >>> largest(lambda steps: steps <= 141)
    141
    """
    if not fits(1):
        return 0
    low, high = 1, 2
    while high <= most and fits(high):
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if fits(middle) else (low, middle)
    return low
