"""DP-SGD in the words people use.

Batch, records, epochs, noise multiplier, and how batches are drawn.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from fractions import Fraction
from types import MappingProxyType
from typing import Any

from cumulant.accounting.check import Check
from cumulant.accounting.choices import Method
from cumulant.accounting.guarantee import Guarantee
from cumulant.accounting.numbers import brief
from cumulant.calibrate import calibrate
from cumulant.domains import COUNT, DELTA, POSITIVE, Exact, Number, listed, one_of, quotient_spelling, spelling
from cumulant.errors import CumulantError, InputError, shown
from cumulant.html_box import facts_box
from cumulant.mechanisms.gaussian import Gaussian
from cumulant.mechanisms.group import Group
from cumulant.mechanisms.matrix_mechanism import MatrixMechanism
from cumulant.mechanisms.mechanism import Expression
from cumulant.mechanisms.shuffled_batches import ShuffledBatches
from cumulant.mechanisms.user import User
from cumulant.numerics.rounding import stated
from cumulant.numerics.search import largest_integer
from cumulant.relation import Relation
from cumulant.sampling.balls_in_bins import BallsInBins
from cumulant.sampling.cyclic_poisson import CyclicPoisson
from cumulant.sampling.fixed_order import FixedOrder
from cumulant.sampling.min_sep import MinSep
from cumulant.sampling.poisson import Poisson
from cumulant.sampling.random_allocation import RandomAllocation
from cumulant.sampling.scheme import Scheme
from cumulant.sampling.without_replacement import WithoutReplacement

DEFAULT_SAMPLING = "fixed-size"
"""The way to form batches where none is named; convention: the one that needs no secret key of its own."""

DIGITS = 6
"""Significant digits of a noise multiplier that is found: those of `calibrate`."""


@dataclass(frozen=True, slots=True)
class Loop:
    """One way to form batches: its neighbours, its assumptions about the loop, and its run."""

    relation: Relation
    assumes: str
    per_step: bool  # one term for each step; else one for each pass
    release: Callable[[NoisySGD], Expression]
    correlated: Callable[[NoisySGD], Scheme] | None = None
    """In which steps one record takes part, where the noise of the steps is correlated."""
    checked: str = "batches were formed as this way says"
    """The fact to check about the loop, in a few words."""
    brief: str = ""
    """The way to form batches, for one row of a table: at most 32 characters if a lower end stands beside it."""
    no_better_than: str = ""
    """A way to form batches that this one includes: what is false for that is false for this; empty if none is known."""
    fresh_steps: bool = False
    """True if every step draws by itself: an epoch is then records / batch steps, and not a pass."""


def _fixed_size(sgd: NoisySGD) -> Expression:
    if not sgd.several:
        return sgd.noisy_sum @ WithoutReplacement(sample=sgd.batch, population=sgd.records)
    scheme = WithoutReplacement(sample=sgd.batch, population=sgd.records, relation=Relation.ADD_REMOVE)
    return sgd.noisy_sum @ scheme @ User(records=sgd.records_per_user or 1)


def _poisson(sgd: NoisySGD) -> Expression:
    step = sgd.noisy_sum @ Poisson(rate=quotient_spelling(sgd.batch, sgd.records))
    return step @ User(records=sgd.records_per_user or 1)


def _balls_in_bins(sgd: NoisySGD) -> Expression:
    return sgd.noisy_sum @ RandomAllocation(steps=sgd.steps_of_a_pass) @ Group(size=sgd.records_per_user or 1)


def _shuffled(sgd: NoisySGD) -> Expression:
    records = sgd.records_per_user or 1
    if records > 1:  # nothing is proved for groups under a permutation
        return sgd.noisy_sum @ ShuffledBatches() @ Group(size=records)
    return sgd.noisy_sum @ ShuffledBatches(batch=sgd.batch, records=sgd.records)


def _any_order(sgd: NoisySGD) -> Expression:
    return sgd.noisy_sum @ ShuffledBatches() @ Group(size=sgd.records_per_user or 1)


ANY_ORDER = (
    "every epoch visits each record once, in batches of fixed sizes, and no record twice (shuffle=True, or data-set order); "
    "its order is not taken as secret, so every pass that was started counts as one release (docs/shuffled-batches.md)"
)
"""The assumption about passes whose batches did not come from ShuffledSampler: they are not amplified."""

SAMPLINGS: Mapping[str, Loop] = MappingProxyType(
    {
        "fixed-size": Loop(
            Relation.REPLACE_ONE,
            "every step draws as many different records as a batch has, uniformly and afresh, and keeps secret which; the sum "
            "is divided by this fixed number (cumulant.training.FixedSizeSampler)",
            True,
            _fixed_size,
            checked="every batch is a fresh uniform sample, in secret",
            brief="a fresh uniform sample each step",
            fresh_steps=True,
        ),
        "poisson": Loop(
            Relation.ADD_REMOVE,
            "every step takes each record independently with probability batch / records and keeps secret which, so that "
            "batches have random sizes; empty ones run too, and the sum is divided by a constant "
            "(cumulant.training.PoissonSampler; stock Opacus)",
            True,
            _poisson,
            checked="each record is sampled independently, in secret",
            brief="each record drawn independently",
            fresh_steps=True,
        ),
        "balls-in-bins": Loop(
            Relation.ADD_REMOVE,
            "in every epoch each record goes into one step, chosen uniformly, for it alone and in secret, so that batches have "
            "random sizes; an epoch has records // batch steps, empty ones run too, and the sum is divided by a "
            "constant; an epoch that was started counts as a whole one (a permutation cut into batches is not this)",
            False,
            _balls_in_bins,
            checked="each record goes to one random step of every epoch, in secret",
            brief="a fresh random step each epoch",
        ),
        "shuffled": Loop(
            Relation.REPLACE_ONE,
            "every epoch draws a fresh uniform permutation of the records in secret and cuts it into batches, a short last one "
            "kept (cumulant.training.ShuffledSampler); noise is on sums, no step sees a record's index, and a started epoch "
            "counts as a whole one; a loader of any other kind is ShuffledBatches(), which is not amplified",
            False,
            _shuffled,
            checked="every epoch cuts a fresh, secret permutation",
            brief="a fresh secret order each epoch",
        ),
        "any-order": Loop(
            Relation.REPLACE_ONE,
            ANY_ORDER,
            False,
            _any_order,
            checked="no record is twice in an epoch; DataLoader(shuffle=True), or any order",
            brief="any order, such as DataLoader(shuffle=True)",
            no_better_than="shuffled",
        ),
    }
)
"""Every way to form batches that can be named, and what is proved about it."""


def _one_draw(sgd: NoisySGD) -> Scheme:
    return BallsInBins(bins=sgd.steps_of_a_pass)


def _cyclic(sgd: NoisySGD) -> Scheme:
    cycle = len(sgd.noise_bands or (1,))
    rate = Fraction(sgd.batch * cycle, sgd.records)
    if rate > 1:
        raise InputError(
            f"batches of {sgd.batch} of {sgd.records} records are more than a group of 1/{cycle} of the data; use fewer bands"
        )
    return CyclicPoisson(cycle=cycle, rate=spelling(rate))


def _fixed_order(sgd: NoisySGD) -> Scheme:
    if sgd.records % sgd.batch == 0:
        return FixedOrder(every=sgd.steps_of_a_pass)
    # a short last batch may be a step of its own or dropped: an epoch is one of two lengths, and either may be worse
    return MinSep(separation=sgd.steps_of_a_pass, most=sgd.planned_passes)


def _min_sep(sgd: NoisySGD) -> Scheme:
    return MinSep(separation=len(sgd.noise_bands or (1,)), most=sgd.planned_passes)


def _whole_run(sgd: NoisySGD) -> Expression:
    scheme = sgd.loop.correlated
    if scheme is None or sgd.noise_bands is None:
        raise InputError(f"sampling={sgd.sampling!r} is for correlated noise; add noise_bands=[...]")
    sigma, relation, steps = Exact(sgd.noise_multiplier), sgd.loop.relation, sgd.total_steps
    if sgd.epochs is not None and scheme in (_fixed_order, _min_sep):
        # a loader may keep a short last batch as a step of its own: the matrix must cover the longer epochs too
        steps = math.ceil(Exact(sgd.epochs) * -(-sgd.records // sgd.batch))
    if scheme is _one_draw:  # a run that ends within its first epoch is a part of that epoch
        steps = max(steps, sgd.steps_of_a_pass)
    return MatrixMechanism(bands=sgd.noise_bands, steps=steps, sigma=sigma, relation=relation) @ scheme(sgd)


CORRELATED: Mapping[str, Loop] = MappingProxyType(
    {
        "balls-in-bins, one draw": Loop(
            Relation.ADD_REMOVE,
            "each record goes into one step of the epoch, chosen uniformly, for it alone and in secret, and all epochs use the "
            "same draw; an epoch has records // batch steps, and batches have random sizes",
            False,
            _whole_run,
            _one_draw,
            checked="each record goes to one random step, the same in all epochs, in secret",
            brief="one random step for all epochs",
        ),
        "cyclic-poisson": Loop(
            Relation.ADD_REMOVE,
            "each record is in one of as many groups as there are bands, for the whole run; step t takes each record of group "
            "t mod bands independently and in secret (cumulant.training.CyclicPoissonSampler)",
            False,
            _whole_run,
            _cyclic,
            checked="each record keeps its group and is sampled independently, in secret",
            brief="each record drawn in its group",
            fresh_steps=True,
        ),
        "fixed-order": Loop(
            Relation.REPLACE_SPECIAL,
            "every epoch visits the records in the same order, which may be public; a record that is zeroed out keeps its "
            "place, because without it all later batches would change; nothing is amplified (DP-FTRL)",
            False,
            _whole_run,
            _fixed_order,
            checked="every epoch visits the records in one order",
            brief="one order, which may be public",
        ),
        "min-sep": Loop(
            Relation.REPLACE_SPECIAL,
            "a record is used at most once in each pass, in any order, and never twice within as many steps as there are "
            "bands; a record that is zeroed out keeps its steps, so that others keep theirs; nothing is amplified",
            False,
            _whole_run,
            _min_sep,
            checked="steps with the same record are at least as far apart as there are bands",
            brief="any steps, as far apart as there are bands",
        ),
    }
)
"""Every way in which a record may take part where the noise is correlated, and what is proved about it."""

UNITS = ("record", "user")
"""The data that one neighbour adds or replaces: an example, or a person with all examples."""


def _spelled(value: Any) -> str:
    """Return a value as it is written in a call: exact numbers that a float holds without quotes."""
    if isinstance(value, Fraction):
        text = spelling(value)
        return text if Fraction(repr(float(value))) == value else repr(text)
    if isinstance(value, tuple):
        inner = ", ".join(map(_spelled, value))
        return f"({inner},)" if len(value) == 1 else f"({inner})"
    return repr(value)


def without_lower_end(found: Guarantee) -> Guarantee:
    """Return a guarantee of whole passes for a loop that broke one off: its upper end holds, its lower end may not."""
    plan = None if found.plan is None else replace(found.plan, lower=None, witness="")
    return replace(found, lower=None, plan=plan)


@dataclass(frozen=True, slots=True)
class NoisySGD:
    """DP-SGD: per-example gradients clipped to `clip`, summed, with Gaussian noise.

    The noise has the standard deviation `noise_multiplier * clip`.

    Give `epochs` or `steps`. `sampling` says how batches are formed and with that the neighbours that are compared:
    "fixed-size", "shuffled" and "any-order" speak about replacing one record, where a sum of clipped gradients moves by up to
    twice the norm; "poisson" and "balls-in-bins" about adding or removing one, where it moves by up to the norm. Epsilons of
    different relations cannot be compared as they stand: replace-one is the stronger statement. "shuffled" needs a fresh and
    secret order in every epoch; `DataLoader(shuffle=True)` promises none and is "any-order".

    `schedule` lets the noise change: pairs of a factor and a number of steps, in their order, where the noise is
    `noise_multiplier * factor`. It must be fixed before the first step, and says the steps itself. A noise that is chosen from
    earlier outputs is no schedule; it is charged by `Budget(adaptive=True)`.

    `unit="user"` is about people. If updates are clipped per user, `records` and `batch` count users, and the run is the same.
    If examples are sampled and clipped, `records_per_user` bounds those of one user, who joins or leaves as a whole.

    `noise_bands` correlates the noise of the steps: the first column of the matrix C of `MatrixMechanism`. The noise multiplier
    stays over `clip`; it is the `sigma` of `MatrixMechanism`, whose `noise_multiplier` is over the column norm. The ways to
    take part are then "balls-in-bins, one draw", "cyclic-poisson", "fixed-order" and "min-sep".

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
    clip: Number = 1
    sampling: str = DEFAULT_SAMPLING
    schedule: Sequence[tuple[Number, int]] | None = None
    unit: str = "record"
    records_per_user: int | None = None
    noise_bands: Sequence[Number] | None = None

    def __post_init__(self) -> None:
        self._check_unit()
        self._set("batch", int(COUNT.check("batch", self.batch)))
        self._set("records", int(COUNT.check("records", self.records)))
        if self.batch > self.records:
            raise InputError(f"batch={self.batch} must be at most records={self.records}")
        self._set("noise_multiplier", POSITIVE.check("noise_multiplier", self.noise_multiplier))
        self._set("clip", POSITIVE.check("clip", self.clip))
        if self.schedule is not None:
            self._plan_steps(self.schedule)
        if (self.epochs is None) == (self.steps is None):
            raise InputError("NoisySGD takes epochs=… or steps=…, one of them")
        if self.steps is not None:
            self._set("steps", int(COUNT.check("steps", self.steps)))
        else:
            self._set("epochs", POSITIVE.check("epochs", self.epochs))
        known = SAMPLINGS if self.noise_bands is None else CORRELATED
        if not isinstance(self.sampling, str) or self.sampling not in known:  # type: ignore[redundant-expr]
            names = ", ".join(map(repr, known))
            if self.noise_bands is not None and self.sampling == DEFAULT_SAMPLING:
                raise InputError(f"noise_bands=… needs sampling=…; choose one of {names}")
            kind = "" if self.noise_bands is None else " for correlated noise"
            raise InputError(f"sampling={shown(self.sampling)} is unknown{kind}; choose one of {names}")
        if self.noise_bands is not None:
            self._check_bands()

    def __repr__(self) -> str:
        given = ((each.name, getattr(self, each.name), each.default) for each in fields(self))
        arguments = (f"{name}={_spelled(value)}" for name, value, default in given if value != default)
        return f"NoisySGD({', '.join(arguments)})"

    def _repr_html_(self) -> str:
        return facts_box(
            f"DP-SGD: {self.total_steps:,} steps, batches of {self.batch:,} of {self.records:,} {self.unit}s",
            {
                "noise multiplier": ", ".join(
                    f"{spelling(noise)} for {count:,} steps" for noise, count in self.segments
                ),
                "clipping norm": _spelled(self.clip),
                "batches": self.sampling,
                "neighbours": str(self.relation),
                "run": brief(str(self.run)),
            },
        )

    def _check_unit(self) -> None:
        one_of("unit", self.unit, UNITS)
        if self.records_per_user is not None:
            if self.unit != "user":
                raise InputError('records_per_user=… is about users; add unit="user"')
            self._set("records_per_user", int(COUNT.check("records_per_user", self.records_per_user)))

    def _check_bands(self) -> None:
        bands = tuple(Exact(each) for each in listed("noise_bands", self.noise_bands))
        self._set("noise_bands", bands)
        if self.schedule is not None or self.several:
            raise InputError("correlated noise takes no schedule and one record per user; leave noise_bands=… out")

    @property
    def several(self) -> bool:
        """True if a user has several records, each of which is sampled and clipped by itself."""
        return (self.records_per_user or 1) > 1

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
        """Return the description of the way to form batches."""
        return (SAMPLINGS if self.noise_bands is None else CORRELATED)[self.sampling]

    @property
    def relation(self) -> Relation:
        """The neighbours that every statement compares; a user of several records joins or leaves, if samples allow it."""
        return Relation.ADD_REMOVE if self.several and self.sampling == "fixed-size" else self.loop.relation

    @property
    def noisy_sum(self) -> Gaussian:
        """One noisy sum of clipped gradients, in units of the clipping norm: its sensitivity is 2 or 1."""
        return Gaussian.from_clipping(norm=1, noise=Exact(self.noise_multiplier), relation=self.loop.relation)

    @property
    def total_steps(self) -> int:
        """Return the number of noisy steps; epochs that end within a batch are rounded up.

        An epoch has records / batch steps where every step draws by itself. Where epochs are passes, it has
        `steps_of_a_pass`: a short last batch is not counted as a step.

        >>> NoisySGD(batch=64, records=1797, epochs=2, noise_multiplier=1, sampling="poisson").total_steps
        57
        >>> NoisySGD(batch=64, records=1797, epochs=2, noise_multiplier=1, sampling="balls-in-bins").total_steps
        56
        """
        if self.steps is not None:
            return self.steps
        return math.ceil(Exact(self.epochs or 0) * self._steps_of_an_epoch)

    def passes(self, steps: int) -> int:
        """Return steps / `steps_of_a_pass`, rounded up: no loop starts more passes in so many steps.

        A loop that keeps a short last batch may start fewer. Stated epochs do not change the answer.

        >>> plan = NoisySGD(batch=64, records=1797, epochs=2, noise_multiplier=1, sampling="balls-in-bins")
        >>> [plan.passes(steps) for steps in (0, 1, 28, 29, 56, 57)]
        [0, 1, 1, 2, 2, 3]
        """
        return -(-steps // self.steps_of_a_pass)

    @property
    def planned_passes(self) -> int:
        """Return the number of passes of the whole run: the stated epochs, rounded up, or those that its steps start."""
        return self.passes(self.total_steps) if self.epochs is None else math.ceil(Exact(self.epochs))

    @property
    def steps_of_a_pass(self) -> int:
        """Return the number of steps of one pass, at least: the full batches of the data."""
        return max(1, self.records // self.batch)

    @property
    def _steps_of_an_epoch(self) -> Fraction:
        """Return the steps of an epoch: on average where every step draws by itself, else those of a pass."""
        return Fraction(self.records, self.batch) if self.loop.fresh_steps else Fraction(self.steps_of_a_pass)

    @property
    def run(self) -> Expression:
        """Return the accounted run as an expression."""
        return self.after(self.total_steps)

    def unamplified(self) -> Expression:
        """Return the run if the permutations of shuffled batches were known: one release for every pass."""
        return self.noisy_sum @ ShuffledBatches() * self.planned_passes

    @property
    def segments(self) -> tuple[tuple[Exact, int], ...]:
        """Return the noise multipliers, and for how many steps in turn each of them is used."""
        noise = Exact(self.noise_multiplier)
        if self.schedule is None:
            return ((noise, self.total_steps),)
        return tuple((Exact(noise * Exact(factor)), int(count)) for factor, count in self.schedule)

    def after(self, steps: int) -> Expression:
        """Return the run after this many steps; a schedule covers its own steps only.

        Where a pass is one release, a pass that was broken off counts as a whole one: the epsilon of the expression holds for
        the loop, and its lower end is that of whole passes. `check` and `spent` leave that lower end out.
        """
        count = int(COUNT.check("steps", steps))
        if self.noise_bands is not None:
            one = self if count == self.total_steps else replace(self, steps=count, epochs=None)
            return one.loop.release(one)
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

    def epsilon(self, delta: Number, *, method: Method = "best") -> float:
        """Return the smallest epsilon that is known to hold at this delta."""
        return self.run.epsilon(delta, method=method)

    def guarantee(self, *, delta: Number, method: Method = "best") -> Guarantee:
        """Return the epsilon with what proves it, and its lower end unless the last pass was broken off."""
        found = self.run.guarantee(delta=delta, method=method)
        return found if self._ends_with_a_pass else without_lower_end(found)

    def check(self, *, epsilon: Number, delta: Number) -> Check:
        """Judge the claim that the loop is (epsilon, delta)-differentially private.

        A pass that was broken off is accounted in full, which refutes nothing: the verdict is then "holds" or "open". What is
        false for a secret order is false for "any-order": a guarantee for every order holds for a random one. The check then
        names the run with the secret order, which is what its data sets refute.

        >>> NoisySGD(batch=64, records=1797, epochs=1, noise_multiplier=4).check(epsilon=1, delta=1e-5).verdict
        'holds'
        """
        found = self.run.check(epsilon=epsilon, delta=delta)
        if not self._ends_with_a_pass:
            return replace(found, verdict="holds" if found else "open", lower=None, witness="")
        if found.verdict == "open" and self.loop.no_better_than:
            included = replace(self, sampling=self.loop.no_better_than).check(epsilon=epsilon, delta=delta)
            if included.verdict == "false":
                return replace(found, verdict="false", lower=included.lower, witness=included.witness, run=included.run)
        return found

    @property
    def _ends_with_a_pass(self) -> bool:
        """Return True if every pass that is counted ran to its end, so that what passes need the loop needs too.

        Correlated noise of passes with a short last batch is accounted for both of their lengths at once, which no loop has.
        """
        if self.loop.correlated in (_fixed_order, _min_sep) and self.records % self.batch:
            return False
        if self.loop.per_step or self.steps is None:
            return self.loop.per_step or Exact(self.epochs or 1).denominator == 1
        return self._is_whole(self.steps)

    def _is_whole(self, steps: int) -> bool:
        """Return True if so many steps break no pass off."""
        return self.loop.per_step or (self.records % self.batch == 0 and steps % self.steps_of_a_pass == 0)

    def per_epoch(self, delta: Number, *, method: Method = "best") -> list[dict[str, Any]]:
        """Return the spent epsilon after each epoch, as plain dicts.

        They have epoch, step, epsilon, epsilon_lower, delta and relation.

        Epoch k of a loop that is accounted by passes counts k passes, in as many steps as their full batches. The last
        epsilon is that of the whole run. All epochs share what they have in common, so lower ends are left out.

        >>> sgd = NoisySGD(batch=64, records=1797, epochs=2, noise_multiplier=4)
        >>> first, last = sgd.per_epoch(delta=1e-5)
        >>> first
        {'epoch': 1, 'step': 29, 'epsilon': 0.438..., 'epsilon_lower': None, 'delta': 1e-05, 'relation': 'replace-one'}
        >>> last["epsilon"] == sgd.epsilon(delta=1e-5)
        True
        """
        last, per = self.total_steps, self._steps_of_an_epoch
        counts = [math.ceil(per * epoch) for epoch in range(1, math.ceil(last / per) + 1)]
        ends = list(dict.fromkeys(min(count, last) for count in counts))
        if self.schedule is not None or self.noise_bands is not None:
            return [{"epoch": k, **self.spent(end, delta=delta, method=method)} for k, end in enumerate(ends, start=1)]
        releases = [self._releases(end) for end in ends]
        over = self.loop.release(self).epsilon_over(releases, delta=delta, method=method)
        found = [*(float(epsilon) for epsilon in over[:-1]), self.epsilon(delta, method=method)]
        rows = [self._log_row(end, epsilon, None, delta) for end, epsilon in zip(ends, found, strict=True)]
        return [{"epoch": k, **row} for k, row in enumerate(rows, start=1)]

    def spent(self, steps: int, *, delta: Number, method: Method = "rdp") -> dict[str, Any]:
        """Return the spent epsilon after so many steps, as a plain dict to log."""
        found = self.after(steps).guarantee(delta=delta, method=method)
        whole = self._ends_with_a_pass if steps == self.total_steps else self._is_whole(steps)
        return self._log_row(steps, found.epsilon, found.lower if whole else None, delta)

    def _log_row(self, step: int, epsilon: float, lower: float | None, delta: Number) -> dict[str, Any]:
        at = stated(DELTA.check("delta", delta))
        return {"step": step, "epsilon": epsilon, "epsilon_lower": lower, "delta": at, "relation": str(self.relation)}

    def calibrated(self, *, epsilon: Number, delta: Number, digits: int = DIGITS) -> NoisySGD:
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
        return replace(self, noise_multiplier=calibrate(at, epsilon=target, delta=delta, digits=digits).value)

    def steps_within(self, *, epsilon: Number, delta: Number) -> int:
        """Return how many steps the budget (epsilon, delta) allows, 0 if not one.

        It is a constant, to be found before the first step.

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

        return largest_integer(fits)

    def __str__(self) -> str:
        planned = ", then ".join(f"{noise} for {count:,} steps" for noise, count in self.segments)
        noise = f"{self.noise_multiplier}" if self.schedule is None else planned
        if self.noise_bands is not None:
            noise += f", noise bands {', '.join(map(str, self.noise_bands))}"
        return (
            f"DP-SGD with batches of {self.batch:,} of {self.records:,} records, {self.total_steps:,} steps, noise multiplier "
            f"{noise}, {self.sampling} batches, for {self.relation} neighbours"
        )
