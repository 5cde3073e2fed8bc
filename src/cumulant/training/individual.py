"""A budget for every record of a training loop: records that move little may take part longer.

The guarantee is one (epsilon, delta) for all, fixed before the first step, for one record added or removed. What is kept
of each record, and how many still take part, is raw data: nothing here returns an aggregate of it.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np

from cumulant.domains import COUNT, DELTA, POSITIVE, RATE, Domain, Exact, Number, one_of
from cumulant.errors import BudgetRefused, InputError, shown
from cumulant.filters.filter import GaussianSum
from cumulant.filters.individual import IndividualMixture
from cumulant.lock import Lock
from cumulant.mechanisms.gaussian import Gaussian
from cumulant.relation import Relation
from cumulant.sampling.poisson import Poisson
from cumulant.training.noise import UNITS, clipped, rounded_gaussian, secret_bytes

LEVELS = 64
"""Bounds are rounded up to this many equal levels (measured: 64 cost 2 % of the steps, a table of prices 3 s)."""

CHUNK = 2**16
"""Records that are looked at together (measured: temporary arrays of 20 MB, no slower than all at once)."""

_LEVELS = Domain(Fraction(1), Fraction(200), low_closed=True, high_closed=True, integer=True)
_PUBLIC = "public"
_DRAWN = "drawn"

Floats = np.ndarray[Any, np.dtype[np.float64]]


class Promise(NamedTuple):
    """The guarantee of the whole transcript: the same numbers for every outcome."""

    epsilon: float
    delta: float
    relation: str


class IndividualBudget:
    """Keep (epsilon, delta) for every record on its own: a step costs a record what it may move it by.

    Ask `bounds(wanted)` before a step, clip every record to its bound, add noise of `noise_multiplier` times `clip`,
    divide by a constant, then `charge(bounds)`. All records are charged, drawn or not. `wanted` may be computed from each
    record itself and from released outputs; with `bounds="drawn"` also from the record's own earlier draws, and then one
    order alone is used. `rate=None` means that every record takes part in every step.

    When the loop stops, which noise is used and how often may depend on released outputs only, never on these bounds.

    >>> budget = IndividualBudget(records=3, epsilon=2, delta="1e-6", noise_multiplier=3, clip=1, rate=None, levels=4)
    >>> bounds = budget.bounds([1.0, 0.2, 0.0])
    >>> bounds
    array([1.  , 0.25, 0.  ])
    >>> budget.charge(bounds)
    >>> budget.guarantee()
    Promise(epsilon=2.0, delta=1e-06, relation='add-remove')
    """

    def __init__(
        self,
        *,
        records: int,
        epsilon: Number,
        delta: Number,
        noise_multiplier: Number,
        clip: Number = 1,
        rate: Number | None,
        levels: int = LEVELS,
        bounds: str = _PUBLIC,
        relation: str = "add-remove",
    ) -> None:
        count = int(COUNT.check("records", records))
        self._epsilon, self._delta = POSITIVE.check("epsilon", epsilon), DELTA.check("delta", delta)
        if not 0 < self._delta < 1:
            raise InputError(f"delta={self._delta} must be in (0, 1): Gaussian noise is never pure")
        self._noise = POSITIVE.check("noise_multiplier", noise_multiplier)
        self._norm = POSITIVE.check("clip", clip)
        self._levels = int(_LEVELS.check("levels", levels))
        if relation != "add-remove":
            raise InputError(
                f"relation={shown(relation)}: individual budgets are about one record added or removed; a replaced record is "
                "one removed and one added, so state (2 epsilon, (1 + e^epsilon) delta) for it"
            )
        drawn = one_of("bounds", bounds, (_PUBLIC, _DRAWN)) == _DRAWN
        sampled = None if rate is None else RATE.check("rate", rate)
        self._drawn, self._rate = drawn, sampled
        self._rule: IndividualMixture | None = None
        self._most = 0
        if sampled is None:
            # Theorem 4b: SUM (level / levels)^2 / z^2 <= mu^2, in integers
            mu = GaussianSum.for_budget(Fraction(self._epsilon), Fraction(self._delta)).mu
            self._most = math.floor(mu**2 * self._noise**2 * self._levels**2)
            self._totals = np.full((count, 1), 0, dtype=np.int64)
        else:
            curves = [self._curve(level, sampled) for level in range(1, self._levels + 1)]
            self._rule = IndividualMixture.opened(
                Fraction(self._epsilon), Fraction(self._delta), curves, one_order=drawn
            )
            self._totals = np.full(
                (count, self._rule.width), 0, dtype=np.int64
            )  # memory is taken now, not in the first step
        self._last = np.zeros(count, dtype=np.int64)
        self._pending: Floats | None = None
        self._summed = False
        self._drawn_until: dict[str, int] = {}
        self._lock = Lock()
        self._process = os.getpid()

    def _curve(self, level: int, rate: Exact) -> Any:
        moved = Exact(Fraction(level, self._levels))
        run = Gaussian(sigma=self._noise, sensitivity=moved, relation=Relation.ADD_REMOVE) @ Poisson(rate=rate)
        return run.curve()

    @property
    def records(self) -> int:
        """The number of accounts, one for each record."""
        return len(self._last)

    @property
    def rate(self) -> Exact | None:
        """The sampling rate of every step; None if every record takes part in every step."""
        return self._rate

    @property
    def clip(self) -> float:
        """The largest norm of a record's gradient."""
        return float(self._norm)

    @property
    def by_own_draws(self) -> bool:
        """Return True if bounds may depend on a record's own earlier draws (`bounds="drawn"`)."""
        return self._drawn

    def bounds(self, wanted: Any) -> Floats:
        """Return how far each record may move the next step: the wanted bound rounded up to a level, less, or 0.

        The array is secret: it tells of single records. A wanted bound that is no number, or negative, counts as the clipping
        norm: an error would tell of that record.
        """
        asked = self._wanted(wanted)
        with self._lock:
            self._check_process()
            if self._pending is not None:
                raise BudgetRefused("the last bounds were not charged; call charge(bounds) after every step")
            levels = np.empty(len(asked), dtype=np.int64)
            for start in range(0, len(asked), CHUNK):
                part = slice(start, start + CHUNK)
                levels[part] = self._affordable(part, self._rounded(asked[part]))
            found: Floats = np.asarray(levels * (float(self._norm) / self._levels), dtype=np.float64)
            found.setflags(write=False)
            self._pending, self._summed = found, False
            return found

    def _check_process(self) -> None:
        if self._process != os.getpid():
            raise BudgetRefused(
                "a forked process may not spend the budget of its parent; make the budget in one process"
            )

    def charge(self, bounds: Any) -> None:
        """Charge every record for the bounds that were handed out, whether it was drawn or not."""
        with self._lock:
            self._check_process()
            if self._pending is None:
                raise BudgetRefused("there are no bounds to charge: call bounds(wanted) first, once for every step")
            given = np.asarray(bounds)
            if given.shape != self._pending.shape or not np.array_equal(given, self._pending):
                raise BudgetRefused("these are not the bounds that were handed out; charge exactly those")
            levels = np.rint(self._pending * (self._levels / float(self._norm))).astype(np.int64)
            for start in range(0, len(levels), CHUNK):
                part = slice(start, start + CHUNK)
                if self._rule is None:
                    self._totals[part, 0] += levels[part] ** 2
                else:
                    self._rule.add(self._totals[part], levels[part])
            self._pending = None

    def use_draw(self, mark: str, number: int) -> None:
        """Note that a step uses the draw of this number by the key of this mark; BudgetRefused if a step did already.

        The draws of one key are used in ascending order, whichever sampler makes them.
        """
        with self._lock:
            self._check_process()
            if number < self._drawn_until.get(mark, 0):
                raise BudgetRefused(
                    f"batch {number + 1} was drawn by the same key before, and a step used it. The same sample twice is no "
                    "fresh one. Go on with the sampler of the call before, or leave the key out"
                )
            self._drawn_until[mark] = number + 1

    def guarantee(self) -> Promise:
        """Return (epsilon, delta) for one record added or removed: fixed in advance, the same for every outcome."""
        return Promise(float(self._epsilon), float(self._delta), "add-remove")

    def noisy_sum(self, gradients: Any, bounds: Any, *, source: Callable[[int], bytes] = secret_bytes) -> Floats:
        """Clip each row to its own bound in integers, sum the rows and add exactly rounded Gaussian noise.

        There is one sum for every call of `bounds`, and `bounds` here are those of the records that take part, each of them
        once, as they were handed out. It is refused if more rows reach a level than bounds that were handed out. It does not
        see which record a row is of, nor a record that takes part twice while others do not. Rows that hold a number that is
        not finite count as 0. Divide the result by a constant, not by a number of records.
        """
        limits = np.asarray(bounds, dtype=np.float64)
        rows = np.asarray(gradients, dtype=np.float64)
        if rows.ndim != 2 or limits.shape != (len(rows),):
            raise InputError(f"gradients of shape {rows.shape} need one row for each of {limits.shape} bounds")
        with self._lock:
            self._check_process()
            if self._pending is None or self._summed:
                raise BudgetRefused(
                    "one call of bounds(wanted) allows one noisy sum; call charge(bounds), then bounds again"
                )
            levels, charged = self._levels_below(limits), self._levels_below(self._pending)
            # every row needs a record of its own with a bound at least as large: at each level, at most as many reach it
            reached, allowed = (self._numbers_from(each) for each in (levels, charged))
            if np.any(reached > allowed):
                raise BudgetRefused(
                    "these bounds are not those that were handed out, so nobody would be charged for them; give "
                    "bounds[batch], with each record of the batch once"
                )
            self._summed = True
        grid = Exact(self._norm / UNITS)
        total = np.zeros(rows.shape[1], dtype=np.int64)
        for level in np.unique(levels[levels > 0]):
            # a record at this level has at most this norm, in whole units of the grid
            norm = Exact(self._norm * Fraction(int(level), self._levels))
            total += clipped(rows[levels == level], norm, grid).sum(axis=0)
        noisy = rounded_gaussian(total, Exact(self._noise * UNITS), source=source)
        return np.asarray(noisy * float(grid), dtype=np.float64)

    def _levels_below(self, bounds: Floats) -> np.ndarray[Any, np.dtype[np.int64]]:
        """Return the largest level that each bound allows; 0 where it is no number."""
        with np.errstate(all="ignore"):
            share = np.where(bounds > 0, np.minimum(bounds / float(self._norm), 1.0), 0.0)  # never more than the norm
        return np.floor(share * self._levels * (1 + 2.0**-40)).astype(np.int64)

    def _numbers_from(self, levels: np.ndarray[Any, np.dtype[np.int64]]) -> np.ndarray[Any, np.dtype[np.int64]]:
        """Return for every level from 1 on how many records reach it."""
        numbers = np.bincount(levels, minlength=self._levels + 1)
        return np.asarray(np.cumsum(numbers[::-1])[::-1][1:], dtype=np.int64)

    # ---- one step

    def _wanted(self, wanted: Any) -> Floats:
        try:
            asked = np.asarray(wanted, dtype=np.float64)
        except (TypeError, ValueError) as error:
            raise InputError(f"wanted must be one number for each record: {error}") from None
        if asked.shape != self._last.shape:
            raise InputError(f"wanted has shape {asked.shape}; give one number for each of {len(self._last)} records")
        return asked

    def _rounded(self, asked: Floats) -> np.ndarray[Any, np.dtype[np.int64]]:
        """Return levels, rounded up; what is no number, negative or too large is the largest."""
        norm = float(self._norm)
        with np.errstate(all="ignore"):
            share = np.where((asked >= 0) & (asked <= norm), asked, norm) / norm
        return np.minimum(np.ceil(share * self._levels * (1 - 2.0**-50)), self._levels).astype(np.int64)

    def _affordable(
        self, part: slice, levels: np.ndarray[Any, np.dtype[np.int64]]
    ) -> np.ndarray[Any, np.dtype[np.int64]]:
        """Return the wanted levels, halved until they fit; 0 where none does."""
        levels = levels.copy()
        waiting = np.flatnonzero(levels)
        while waiting.size:
            fits = self._fits(part, waiting, levels[waiting])
            waiting = waiting[~fits]
            levels[waiting] //= 2
            waiting = waiting[levels[waiting] > 0]
        return levels

    def _fits(self, part: slice, which: np.ndarray[Any, Any], levels: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        totals = self._totals[part][which]
        if self._rule is None:
            return np.asarray(totals[:, 0] + levels**2 <= self._most)
        last = self._last[part][which]
        found = self._rule.fits(totals, levels, last)
        self._last[part][which] = last
        return found

    def __repr__(self) -> str:
        return f"IndividualBudget(epsilon={self._epsilon}, delta={self._delta}, relation='add-remove')"

    def __reduce__(self) -> Any:
        raise InputError("what is kept of each record is raw data and is not pickled; keep it where the data are kept")
