"""The table of the theorems about Poisson samples in which a record is replaced."""

from __future__ import annotations

from fractions import Fraction

from cumulant.bounds.bound import Bound, no_slack, over
from cumulant.bounds.without_replacement import WITHOUT_REPLACEMENT
from cumulant.curves.curve import Curve
from cumulant.pairs.pair import Pair

SAMPLER = (
    "every record is sampled independently with the same probability, replace-one neighbours; noise that one record moves by "
    "a bounded distance from where an absent record leaves it"
)
"""The assumptions of every row."""

HERE = "docs/samples.md"
"""The page with the proofs."""

_THREE_VALUES = {name: row for name, row in WITHOUT_REPLACEMENT.items() if row.upper and name != "best"}
"""Theorems about three values that are pairwise neighbours; here one of the values is the centre."""


def _replacement(base: Curve, pair: Pair | None, rate: Fraction) -> Curve:
    found = None if pair is None else pair.replacement(rate)
    assert found is not None  # the row objects otherwise
    return found.curve()


def _no_replacement(base: Curve, pair: Pair | None) -> str:
    """A pair that is known for a record that is replaced."""
    offered = pair is not None and pair.replacement(Fraction(1, 2)) is not None
    return no_slack(base, pair) or ("" if offered else "it needs a single mechanism with log-concave noise")


def _no_witness(base: Curve, pair: Pair | None) -> str:
    """A pair whose curve is that of two data sets."""
    found = None if pair is None else pair.replacement(Fraction(1, 2))
    exact = found is not None and found.attained and not found.rounded_curve
    return _no_replacement(base, pair) or ("" if exact else "it needs the exact curve of two data sets")


REPLACEMENT: dict[str, Bound] = {
    row.name: row
    for row in (
        Bound(
            "replacement",
            "eps'(a) is that of (1-q)R + qP against (1-q)R + qQ, the noise around the centre and at both ends",
            SAMPLER,
            f"{HERE}; for Gaussian noise Koskela, Jaelkoe, Honkela 2020",
            _replacement,
            _no_replacement,
            dominates=over(*_THREE_VALUES),
            tight=True,
        ),
        Bound("best", "the smallest of all bounds that apply", SAMPLER, "all of the above", None, _no_replacement),
        Bound(
            "lower",
            "the exact curve of the same pair: no upper bound can go below it",
            SAMPLER,
            HERE,
            _replacement,
            _no_witness,
            upper=False,
        ),
    )
}
"""Rows that hold for every such noise."""

BALL_REPLACEMENT: dict[str, Bound] = {**_THREE_VALUES, **REPLACEMENT}
"""Rows about Gaussian noise that is stated for a record replaced."""
