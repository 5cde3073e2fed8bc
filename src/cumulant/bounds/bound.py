"""A row of the tables of amplification bounds, and what a row may ask for."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from cumulant.curves.curve import Curve
from cumulant.pairs.pair import Pair


@dataclass(frozen=True, slots=True)
class Bound:
    """One row: `curve(base, pair, rate)` is proved whenever `objection(base, pair)` is empty."""

    name: str
    statement: str
    assumptions: str
    citation: str
    curve: Callable[[Curve, Pair | None, Fraction], Curve]
    objection: Callable[[Curve, Pair | None], str]
    upper: bool = True


def nothing(base: Curve, pair: Pair | None) -> str:
    """Any mechanism will do."""
    return ""


def no_slack(base: Curve, pair: Pair | None) -> str:
    """A guarantee that never fails."""
    return "it is not proved for a mechanism that carries slack" if base.slack() > 0 else ""


NOT_PURE = "it needs pure DP, a finite epsilon at order infinity"


def finite(base: Curve, pair: Pair | None) -> str:
    """A finite epsilon at order infinity, slack or not."""
    return "" if base.pure() < np.inf else NOT_PURE


def pure(base: Curve, pair: Pair | None) -> str:
    """Pure differential privacy."""
    return no_slack(base, pair) or finite(base, pair)


def no_pair(base: Curve, pair: Pair | None) -> str:
    """A single mechanism with a dominating pair."""
    return no_slack(base, pair) or ("" if pair is not None else "it needs a single mechanism with a dominating pair")
