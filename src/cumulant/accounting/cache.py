"""Curves and answers that are computed once.

Those of data are kept for good, those of a user's Python object for one question.
"""

from __future__ import annotations

from collections.abc import Hashable
from fractions import Fraction
from functools import lru_cache
from typing import Protocol

from cumulant.accounting.run import ANSWERS
from cumulant.bounds.bound import amplified
from cumulant.bounds.table import BOUNDS
from cumulant.bounds.table import row as bound_row
from cumulant.curves.cache import once
from cumulant.curves.cached_curve import Remembered
from cumulant.curves.curve import Curve
from cumulant.pairs.pair import Pair


def forget() -> None:
    """Forget all answers, and what the curves of mechanisms remember."""
    forget_answers()
    remembered_curve.cache_clear()


def forget_answers() -> None:
    """Forget all answers, as those do who change how answers are found."""
    ANSWERS.clear()


class Source(Hashable, Protocol):
    """An object that has a curve by each bound: a mechanism."""

    @property
    def frozen(self) -> bool:
        """Return True if it is data alone."""

    @property
    def amplified(self) -> bool:
        """Return True if it runs on a sample."""

    def own_curve(self, bound: str) -> Curve:
        """Return the proved curve of one run."""

    def pair(self) -> Pair | None:
        """Return the dominating pair of the mechanism, or None if none is known."""


def curve_of(mechanism: Source, bound: str) -> Curve:
    """Return the curve that this bound proves for one run of the mechanism.

    Without a sample every upper bound is its own curve.
    """
    name = bound if mechanism.amplified or not bound_row(bound).upper else ""
    if mechanism.frozen:
        return remembered_curve(mechanism, name)
    return once((mechanism, name), lambda: _new_curve(mechanism, name))


@lru_cache(maxsize=4096)
def remembered_curve(mechanism: Source, bound: str) -> Curve:
    """One curve object for all equal mechanisms, so that what it has computed serves them all."""
    return _new_curve(mechanism, bound)


def _new_curve(mechanism: Source, bound: str) -> Curve:
    """A curve that has computed nothing yet."""
    if mechanism.amplified or not bound:
        return Remembered(mechanism.own_curve(bound))
    own = mechanism.own_curve(bound)
    return Remembered(amplified(BOUNDS, bound, own, mechanism.pair(), Fraction(1), str(mechanism)))
