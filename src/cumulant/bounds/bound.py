"""One row of a table of amplification bounds, and `best`, the fold of the rows of a table.

The functions at the top are the hypotheses that a row may ask for.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from cumulant.curves.curve import Curve, Lowest
from cumulant.errors import HypothesisError
from cumulant.losses.sampled_curve import LARGEST_SHIFT
from cumulant.pairs.pair import Pair

# ---- objections of a row to a curve and a pair: why its theorem does not apply, empty if it does


def nothing(base: Curve, pair: Pair | None) -> str:
    """Object to nothing: any mechanism will do."""
    return ""


def no_slack(base: Curve, pair: Pair | None) -> str:
    """Object to a guarantee that may fail."""
    return "it is not proved for a mechanism that carries slack" if base.slack() > 0 else ""


def finite(base: Curve, pair: Pair | None) -> str:
    """Object to an infinite epsilon at order infinity; slack is allowed."""
    return "" if base.pure() < np.inf else "it needs pure DP, a finite epsilon at order infinity"


def pure(base: Curve, pair: Pair | None) -> str:
    """Object to everything but pure differential privacy."""
    return no_slack(base, pair) or finite(base, pair)


def no_pair(base: Curve, pair: Pair | None) -> str:
    """Object to several mechanisms together, and to one without a dominating pair."""
    return no_slack(base, pair) or ("" if pair is not None else "it needs a single mechanism with a dominating pair")


def no_moments(base: Curve, pair: Pair | None) -> str:
    """Object to a pair that does not offer its moments."""
    offered = pair is not None and pair.has_moments
    return no_pair(base, pair) or ("" if offered else "it needs the moments of the pair")


def no_profile(base: Curve, pair: Pair | None) -> str:
    """Object to a pair that does not offer the law of its loss, both directions together."""
    offered = pair is not None and pair.amplified_curve() is not None
    return no_pair(base, pair) or ("" if offered else "it needs the law of the loss of the pair")


def reachable(base: Curve, pair: Pair | None) -> str:
    """Object to a pair whose integrals cannot be evaluated: +inf would give nothing from below."""
    far, offered = pair is not None and not pair.integrable, pair is not None and pair.mixture_curve() is not None
    return (
        no_pair(base, pair)
        or (
            ""
            if pair is None or pair.attained
            else "it needs laws that neighbouring data sets have, not ones above them"
        )
        or (f"it needs noise of at least 1/{LARGEST_SHIFT} of the sensitivity" if far else "")
        or ("" if offered else "it needs the law of the loss of the pair")
    )


def no_poisson(base: Curve, pair: Pair | None) -> str:
    """Object to a pair that does not offer the law of its loss in both of its roles."""
    offered = pair is not None and pair.poisson_curve() is not None
    return no_pair(base, pair) or ("" if offered else "it needs the law of the loss of the pair in both roles")


def reachable_poisson(base: Curve, pair: Pair | None) -> str:
    """Object to a pair whose integrals on Poisson samples cannot be evaluated."""
    return reachable(base, pair) or no_poisson(base, pair)


def one_bit(base: Curve, pair: Pair | None) -> str:
    """Object to an output that depends on more than one bit of the data."""
    seen = pair is not None and pair.one_bit and pair.has_moments
    return no_slack(base, pair) or ("" if seen else "it needs an output that depends on one bit of the data only")


def gaussian(base: Curve, pair: Pair | None) -> str:
    """Object to all but Gaussian noise."""
    return no_slack(base, pair) or ("" if pair is not None and pair.geometry else "it needs Gaussian noise")


def ball(base: Curve, pair: Pair | None) -> str:
    """Object to all but Gaussian noise on values in a ball whose diameter is the sensitivity."""
    inside = pair is not None and pair.geometry == "ball"
    return no_slack(base, pair) or ("" if inside else 'it needs Gaussian noise with geometry="ball"')


def laplace(base: Curve, pair: Pair | None) -> str:
    """Object to all but independent Laplace noise on one query."""
    offered = pair is not None and pair.query and pair.symmetric_law() is not None
    return no_pair(base, pair) or ("" if offered else "it needs one query with independent Laplace noise of one scale")


# ---- which rows `best` need not evaluate

Domination = Callable[[Curve, Pair | None], Collection[str]]
"""Returns the names of the rows of its table that a row is never above, for this curve and pair."""


def none(base: Curve, pair: Pair | None) -> Collection[str]:
    """Return no names: no row is known to be above this one."""
    return ()


def over(*names: str) -> Domination:
    """Return a function that names these rows, which are never below this one."""
    return lambda base, pair: names


def attained_over(*names: str) -> Domination:
    """Return `over` if some data sets have the pair; otherwise no row.

    Without such data sets the curve of the mechanism may be below that of the pair.
    """
    return lambda base, pair: names if pair is not None and pair.attained else ()


def never(base: Curve, pair: Pair | None) -> bool:
    """Return False: the row is worth evaluating wherever it applies."""
    return False


def out_of_reach(base: Curve, pair: Pair | None) -> bool:
    """Return True if the row is an integral that cannot be evaluated, without a closed form."""
    return pair is not None and not pair.integrable


@dataclass(frozen=True, slots=True)
class Bound:
    """One row: `curve(base, pair, rate)` is proved for rates below 1 if `objection` is empty.

    `best` has no curve of its own: it is the fold of the rows. For its sake a row may say which rows of its table it
    `dominates`, so that they need not be evaluated, and where it is `worthless` although it applies. A `tight` row is the
    curve of the worst mechanism itself, so that nothing is gained by projecting. A row that `splits` takes the slack out of
    the laws in its own way, so that there need be no one CGF below it and the other rows (docs/bounds/caps.md).

    >>> import cumulant as cm
    >>> cm.BOUNDS["theorem9"].upper, cm.BOUNDS["lower"].upper
    (True, False)
    """

    name: str
    statement: str
    assumptions: str
    citation: str
    curve: Callable[[Curve, Any, Fraction], Curve] | None
    objection: Callable[[Curve, Pair | None], str]
    upper: bool = True
    dominates: Domination = none
    worthless: Callable[[Curve, Pair | None], bool] = never
    tight: bool = False
    splits: bool = False

    def useful(self, base: Curve, pair: Pair | None) -> bool:
        """True if the row is an upper bound of its own that applies and gives a finite value."""
        own = self.upper and self.curve is not None
        return own and not self.objection(base, pair) and not self.worthless(base, pair)


def amplified(
    rows: Mapping[str, Bound], name: str, base: Curve, pair: Pair | None, rate: Fraction, subject: str
) -> Curve:
    """Return the curve of a mechanism on a sample of this rate, by a row of a scheme's table.

    The only place that knows of rate 1: it changes nothing.
    """
    if rate < 1:
        return proved(rows, name, base, pair, rate, subject)
    if rows[name].upper:
        return base
    _check(rows[name], base, pair, subject)
    # from below only a pair says anything
    return base if pair is None else pair.curve()


def proved(rows: Mapping[str, Bound], name: str, base: Curve, pair: Pair | None, rate: Fraction, subject: str) -> Curve:
    """Return the curve that a row of a scheme's table proves, or raise HypothesisError.

    This is the only place that asks whether a theorem applies.
    """
    bound = rows[name]
    _check(bound, base, pair, subject)
    return best(rows, base, pair, rate) if bound.curve is None else bound.curve(base, pair, rate)


def _check(bound: Bound, base: Curve, pair: Pair | None, subject: str) -> None:
    if objection := bound.objection(base, pair):
        other = "" if bound.name == "best" else '; use bound="best"'
        raise HypothesisError(f"{bound.name} does not apply to {subject}: {objection}{other}")


def best(rows: Mapping[str, Bound], base: Curve, pair: Pair | None, rate: Fraction) -> Curve:
    """Return the pointwise minimum of all rows that apply and are not dominated, projected."""
    useful = [row for row in rows.values() if row.useful(base, pair)]
    dominated = {name for row in useful for name in row.dominates(base, pair)}
    kept = [row for row in useful if row.name not in dominated]
    if not kept:
        raise HypothesisError("no bound applies to this mechanism on this sample; run it on all the data")
    curves = tuple(row.curve(base, pair, rate) for row in kept if row.curve)
    lowest = Best(curves, tuple(row.name for row in kept), "lemma3" if "lemma3" in rows else "")
    split = base.slack() > 0 and any(row.splits for row in kept)
    return lowest if split or any(row.tight for row in kept) else lowest.projected()


@dataclass(frozen=True, slots=True)
class Best(Lowest):
    """The fold of the rows of a table.

    If Lemma 3 is one of them, it gives the value at order infinity (E-18).
    """

    at_the_end: str = ""

    def winner(self, order: float) -> str:
        return (self.at_the_end if order == np.inf else "") or Lowest.winner(self, order)
