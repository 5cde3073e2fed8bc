"""The table of amplification bounds: each row a theorem, what it assumes, and the curve it proves."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from cumulant.bounds.binomial import BinomialSum
from cumulant.bounds.caps import JointConvexity, PureCap, WorstPure
from cumulant.bounds.theorem9 import pure_extras, theorem9
from cumulant.curves.curve import Curve, Lowest
from cumulant.curves.pair import Pair
from cumulant.errors import HypothesisError, InputError


@dataclass(frozen=True, slots=True)
class Bound:
    """One row: `curve(base, pair, rate)` is proved whenever `objection(base, pair)` is empty."""

    name: str
    statement: str
    assumptions: str
    citation: str
    curve: Callable[[Curve, Pair | None, Fraction], Curve]
    objection: Callable[[Curve, Pair | None], str]


def _needs_no_slack(base: Curve, pair: Pair | None) -> str:
    return "it is not proved for a mechanism that carries slack" if base.slack() > 0 else ""


def _needs_pure(base: Curve, pair: Pair | None) -> str:
    return _needs_no_slack(base, pair) or (
        "" if base.pure() < np.inf else "it needs pure DP, a finite epsilon at order infinity"
    )


def _needs_nothing(base: Curve, pair: Pair | None) -> str:
    return ""


def _caps(base: Curve, pair: Pair | None, rate: Fraction) -> Curve:
    """Both caps of E-11; they survive slack, which is then amplified like any delta (Lemma 3)."""
    joint = JointConvexity(base, rate)
    return Lowest((joint, PureCap(base, rate))) if base.pure() < np.inf else joint


def _best(base: Curve, pair: Pair | None, rate: Fraction) -> Curve:
    """The pointwise minimum of everything that applies."""
    curves: list[Curve] = [JointConvexity(base, rate)]
    if base.pure() < np.inf:
        curves.append(WorstPure(base, rate))
    if not base.slack() > 0:
        curves.insert(0, BinomialSum(base, rate, theorem9(base) + pure_extras(base)))
    return Lowest(tuple(curves))


_SAMPLER = "uniform sample without replacement, replace-one neighbours, the mechanism ignores the order of its sample"

BOUNDS: dict[str, Bound] = {
    row.name: row
    for row in (
        Bound(
            "theorem9",
            "eps'(a) <= log(1 + g^2 C(a,2) min{4(e^eps(2)-1), e^eps(2) min(2,E^2)} "
            "+ sum_{j>=3} g^j C(a,j) e^((j-1)eps(j)) min(2,E^j)) / (a-1)",
            _SAMPLER,
            "Wang, Balle, Kasiviswanathan 2019, Theorem 9",
            lambda base, pair, rate: BinomialSum(base, rate, theorem9(base)),
            _needs_no_slack,
        ),
        Bound(
            "pure-extras",
            "Theorem 9 with zeta(j)^j <= E^(j-2) (e^eps(2)-1) min(4, e^((j-1)eps(inf))) as further coefficients",
            _SAMPLER + "; pure DP",
            "Lemmas 17 and 32 of the paper",
            lambda base, pair, rate: BinomialSum(base, rate, theorem9(base) + pure_extras(base)),
            _needs_pure,
        ),
        Bound(
            "caps",
            "eps'(a) <= min{log(1 + g(e^((a-1)eps(a)) - 1)) / (a-1), log(1 + g(e^eps(inf) - 1))}",
            "uniform sample without replacement, replace-one neighbours",
            "joint convexity; Lemma 3 of the paper",
            _caps,
            _needs_nothing,
        ),
        Bound("best", "the smallest of all bounds that apply", _SAMPLER, "all of the above", _best, _needs_nothing),
    )
}


def row(name: str) -> Bound:
    """The row of this name.

    >>> row("theorem9").citation
    'Wang, Balle, Kasiviswanathan 2019, Theorem 9'
    """
    try:
        return BOUNDS[name]
    except (KeyError, TypeError):
        raise InputError(f"bound={name!r} is unknown; choose one of {', '.join(BOUNDS)}") from None


def amplified(base: Curve, pair: Pair | None, rate: Fraction, name: str, subject: str) -> Curve:
    """The curve of the mechanism with this curve and pair on a sample drawn at this rate; rate 1 changes nothing."""
    bound = row(name)
    if rate == 1:
        return base
    if objection := bound.objection(base, pair):
        raise HypothesisError(f'{name} does not apply to {subject}: {objection}; use bound="best"')
    return bound.curve(base, pair, rate)
