"""A public random choice between subsampled mechanisms.

Revealing the choice cannot reduce the loss, so the mixture of profiles is an upper bound.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import reduce
from typing import Any

import numpy as np

from cumulant.curves.curve import Curve
from cumulant.curves.maximum import Highest
from cumulant.losses.cells import Cells, Grid, place_atoms
from cumulant.losses.grid import Step
from cumulant.losses.subsampled import unsampled_ball
from cumulant.numerics.arithmetic import BALLS, FLOATS, Arithmetic, Array, Scalar
from cumulant.numerics.rationals import enclosed_logs, log_rational
from cumulant.numerics.rounding import at_least, rounded_up
from cumulant.pairs.pair import Pair

LOG_LEAST_FLOAT = -745.0
"""Logarithm of the least positive float; no part is asked for less mass."""


@dataclass(frozen=True, slots=True)
class Branch:
    """With probability `weight` a symmetric pair runs on a sample of this rate.

    Both numbers may be rounded up.
    """

    weight: Fraction
    pair: Pair
    rate: Fraction


@dataclass(frozen=True, slots=True)
class PublicChoicePair(Pair):
    """delta = leak + SUM weight g d(log(1 + (e^eps - 1)/g)) over the branches of a choice.

    d is the profile of the pair of each branch. `directed` samples are Poisson ones, for which the record removed is
    the larger direction; the profile of others is amplified in both directions at once. The worst of several `cases`
    counts. It is not known whether data sets attain it, so there is no lower end. On a grid it is a mixture of the
    laws of its branches; it has no transform.
    """

    cases: tuple[tuple[Branch, ...], ...]
    directed: bool
    leak: Fraction = Fraction(0)
    beyond: tuple[Branch, ...] = ()
    """Branches that bound the leak from above; a curve without slack takes them in its place. Empty if none are known."""

    attained = False

    @property
    def has_grid_loss(self) -> bool:
        return True

    @property
    def has_closed_form(self) -> bool:
        return all(branch.pair.has_closed_form for case in self.cases for branch in case)

    def curve(self) -> Curve:
        found = tuple(self._choice_curve(case) for case in self.cases)
        return found[0] if len(found) == 1 else Highest(found)

    def _choice_curve(self, case: tuple[Branch, ...]) -> PublicChoiceCurve:
        """Return the curve of one case, given that nothing leaks: the leak is slack.

        e^K = 1 + SUM weight (e^K_i - 1) / (1 - leak).
        """
        curves = tuple(self._sampled(branch) for branch in case)
        every = PublicChoiceCurve(
            tuple(branch.weight for branch in (*case, *self.beyond)),
            (*curves, *(self._sampled(branch) for branch in self.beyond)),
        )
        weights = tuple(branch.weight / (1 - self.leak) for branch in case)
        return PublicChoiceCurve(weights, curves, self.leak, every if self.beyond else None)

    def _sampled(self, branch: Branch) -> Curve:
        if branch.rate == 1:
            return branch.pair.curve()
        known = branch.pair.poisson_curve() if self.directed else branch.pair.amplified_curve()
        return _Unknown() if known is None else known(branch.rate)

    # ---- the grid

    def unsampled_steps(self) -> tuple[Step, ...] | None:
        found = [self._step(case, each) for case in self.cases for each in self._directions()]
        steps = tuple(step for step in found if step is not None)
        return steps if len(steps) == len(found) else None

    def _directions(self) -> tuple[str, ...]:
        return ("remove", "add") if self.directed else ("symmetric",)

    def _step(self, case: tuple[Branch, ...], direction: str) -> Step | None:
        parts: list[tuple[float, Step]] = []
        for branch in case:
            step = branch.pair.upper_step(branch.rate, direction)
            if step is None:
                return None
            parts.append((rounded_up(branch.weight), step))
        return PublicChoiceStep(tuple(parts), rounded_up(self.leak))

    # ---- the profile

    def _log_profile(self, epsilons: Array) -> Array:
        found = []
        with np.errstate(divide="ignore", over="ignore"):
            for case in self.cases:
                total = np.full(epsilons.shape, np.log(FLOATS.number(self.leak)))
                for branch in case:
                    g = float(branch.rate)
                    base = np.where(
                        epsilons < 700, np.log1p(np.expm1(np.minimum(epsilons, 700.0)) / g), epsilons - math.log(g)
                    )
                    total = np.logaddexp(total, math.log(float(branch.weight) * g) + branch.pair.log_profile(base))
                found.append(total)
        return np.minimum(np.maximum.reduce(found), 0.0)

    def _exact_profile(self, epsilons: Array, on: Arithmetic) -> Array:
        def delta(epsilon: Any) -> Any:
            found = [self._delta(case, Fraction(epsilon), on) for case in self.cases]
            return reduce(lambda x, y: x.max(y), found)

        return np.asarray(np.frompyfunc(delta, 1, 1)(epsilons))

    def _delta(self, case: tuple[Branch, ...], epsilon: Fraction, on: Arithmetic) -> Any:
        total = on.number(self.leak)
        for branch in case:
            base = unsampled_ball(on.number(epsilon), branch.rate)
            # profiles fall, so one at a slightly smaller loss will do; it is at least epsilon
            least = max(-at_least(-base.lower()) if base.is_finite() else epsilon, epsilon)
            total += on.number(branch.weight * branch.rate) * branch.pair.profile(least, on)
        return total


@dataclass(frozen=True, slots=True)
class _Unknown(Curve):
    """The curve of which nothing is known: K is +inf at every order."""

    enclosed = True

    def _cgf(self, lam: Array, on: Arithmetic) -> Array:
        return on.asarray(lam) * 0 + on.number(np.inf)


def _log(weight: Fraction, on: Arithmetic) -> Any:
    """Return log of a weight, also of one below all floats."""
    if on.exact:
        return on.log(on.number(weight))
    return enclosed_logs([weight.as_integer_ratio()])[0] if on.enclosing else log_rational(weight)


@dataclass(frozen=True, slots=True)
class PublicChoiceCurve(Curve):
    """e^K = 1 + SUM w_i (e^K_i - 1): a public choice decides which of several curves holds.

    If the choice is not public, joint convexity gives the same bound.
    """

    weights: tuple[Fraction, ...]
    curves: tuple[Curve, ...]
    leak: Fraction = Fraction(0)
    every: PublicChoiceCurve | None = None
    """All branches, also those that the leak stands for, where they are known."""

    enclosed = True

    def _cgf(self, lam: Array, on: Arithmetic) -> Array:
        values = [curve.cgf(lam, on) for curve in self.curves]
        logs = [_log(w, on) + on.log_expm1(value) for w, value in zip(self.weights, values, strict=True)]
        found = on.log1p_exp(reduce(on.log_add_exp, logs))
        # never more than the largest of them, which stays known where their logarithms are not
        return on.minimum(found, reduce(on.maximum, values)) if sum(self.weights) <= 1 else found

    def kl(self, on: Arithmetic = FLOATS) -> Scalar:
        ends = [on.number(w) * curve.at_one(on) for w, curve in zip(self.weights, self.curves, strict=True)]
        return sum(ends[1:], start=ends[0])

    def pure(self, on: Arithmetic = FLOATS) -> Scalar:
        return reduce(on.maximum, [curve.at_infinity(on) for curve in self.curves])

    def slack(self) -> Fraction:
        return self.leak

    def strict(self) -> Curve:
        return self if self.every is None else self.every


@dataclass(frozen=True, slots=True)
class PublicChoiceStep(Step):
    """Steps with their weights, and a leak besides."""

    parts: tuple[tuple[float, Step], ...]
    own_leak: float

    @property
    def leak(self) -> float:
        return min(self.own_leak + sum(weight * step.leak for weight, step in self.parts), 1.0)

    def nodes(self, lam: float) -> tuple[Array, Array]:
        found = [(math.log(weight), step.nodes(lam)) for weight, step in self.parts if weight > 0]
        losses, masses = [x for _, (x, _) in found], [log_w + log_p for log_w, (_, log_p) in found]
        return np.concatenate(losses), np.concatenate(masses)

    def _kept(self, log_mass: float) -> list[tuple[float, float, Step]]:
        """Return log weight, log of what may be left out, and step of the parts that matter.

        A part matters if its weight is above what may be left out.
        """
        logs = [(math.log(weight), step) for weight, step in self.parts if weight > 0]
        shares = [(log_w, log_mass - log_w - math.log(len(logs)), step) for log_w, step in logs]
        kept = [each for each in shares if each[1] < -1]
        return kept or [max(shares, key=lambda each: each[0])]

    def span(self, log_mass: float) -> tuple[float, float]:
        ends = [step.span(max(least, LOG_LEAST_FLOAT)) for _, least, step in self._kept(log_mass)]
        return min(low for low, _ in ends), max(high for _, high in ends)

    def cells(self, step: float, log_mass: float) -> Cells:
        """Put all parts on one grid: each part's points are split again if they are not on it."""
        kept = self._kept(log_mass)
        found = [(log_w, part.cells(step, max(least, LOG_LEAST_FLOAT))) for log_w, least, part in kept]
        ends = [(cells.grid.points()[0], cells.grid.points()[-1]) for _, cells in found]
        first = min(math.floor(low / step) for low, _ in ends) - 1
        last = max(math.ceil(high / step) for _, high in ends) + 1
        grid = Grid(step, 0.0, first, last - first + 1)
        left, right, atoms = (np.full(count, -np.inf) for count in (grid.count - 1, grid.count - 1, grid.count))
        slip = error = 0.0
        lost = [log_w + cells.above for log_w, cells in found]
        lost += [log_w for log_w, least, _ in self._shares(log_mass) if least >= -1]
        for log_w, cells in found:
            law = _point_masses(cells)
            some = law > -np.inf
            moved, summed = place_atoms(cells.grid.points()[some], log_w + law[some], grid, left, right, atoms)
            slip, error = max(slip, cells.slip + moved), error + cells.error + summed
        above = float(np.logaddexp.reduce(lost)) if lost else -np.inf
        return Cells(grid, left, right, atoms, -np.inf, above, slip, error)

    def _shares(self, log_mass: float) -> list[tuple[float, float, Step]]:
        kept = {id(step) for _, _, step in self._kept(log_mass)}
        return [(math.log(w), 0.0, step) for w, step in self.parts if w > 0 and id(step) not in kept]


def _point_masses(cells: Cells) -> Array:
    """Return log of the P-masses on the grid points, from above.

    The mass below the grid goes to its third point.
    """
    law = np.logaddexp(cells.atoms, np.logaddexp(np.append(cells.left, -np.inf), np.append(-np.inf, cells.right)))
    law[2] = np.logaddexp(law[2], cells.below)
    return np.asarray(law)


def branches_of_copies(pair: Pair, rate: Fraction, weights: Sequence[Fraction]) -> tuple[Branch, ...] | None:
    """Return the branches of a coin that says how many copies of a record are in the sample.

    Records of a group count like copies. `rate` is the probability that any is there, `weights` those of 1, 2, ... of them,
    given that. Returns None if the pair of several is not known.
    """
    branches = []
    for count, weight in enumerate(weights, start=1):
        if not weight:
            continue
        many = pair if count == 1 else pair.group_pair(count)
        if many is None or not many.symmetric or (many.amplified_curve() is None and many.loss() is None):
            return None
        branches.append(Branch(weight, many, rate))
    return tuple(branches)


def count_pair(pair: Pair, counts: Sequence[Fraction]) -> PublicChoicePair | None:
    """Return the pair of a sample that reveals how many records of a group it has.

    `counts` is the law of that number, from 0 on. Returns None if the pair is not symmetric, the sample never has one of
    them, or the pair of several records is not known.
    """
    rate = 1 - counts[0]
    if not pair.symmetric or rate <= 0:
        return None
    branches = branches_of_copies(pair, rate, [each / rate for each in counts[1:]])
    return None if branches is None else PublicChoicePair((branches,), False)


def fraction_above(ball: Callable[[], Any]) -> Fraction:
    """Return a fraction that is not below a ball, at 192 bits."""
    with BALLS.at(192):
        return max(at_least(ball().upper()), Fraction(0))
