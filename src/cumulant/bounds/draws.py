"""Tables of the theorems about samples with replacement and truncated Poisson samples."""

from __future__ import annotations

from cumulant.bounds.bound import Bound, no_slack
from cumulant.curves.curve import Curve
from cumulant.pairs.pair import Pair


def _no_group(base: Curve, pair: Pair | None) -> str:
    """A pair that is known for several records too."""
    return no_slack(base, pair) or (
        ""
        if pair is not None
        else "it needs a single mechanism with a pair that is also known for several records at once"
    )


REDRAWN = (
    "so many independent uniform draws from a data set of fixed size, replace-one neighbours, the mechanism ignores the order "
    "of its sample; a dominating pair for groups of records"
)
"""The assumptions of the theorems about samples with replacement."""

CUT = (
    "Poisson samples, cut to a uniform subset where they are larger than the limit, add/remove neighbours; a sum, or one "
    "divided by a public number; a dominating pair for one record and for two"
)
"""The assumptions of the theorems about truncated Poisson samples."""

WITH_REPLACEMENT: dict[str, Bound] = {
    row.name: row
    for row in (
        Bound(
            "with-replacement",
            "delta'(log(1 + g(e^eps - 1))) <= sum_k C(m,k) n^-k (1-1/n)^(m-k) delta_k(eps), delta_k for k records, "
            "g = 1-(1-1/n)^m",
            REDRAWN,
            "Balle, Barthe, Gaboardi 2018, Theorem 10, at every epsilon; docs/bounds/with-replacement.md",
            lambda base, pair, rate: pair.curve(),
            _no_group,
            tight=True,
        ),
        Bound("best", "the smallest of all bounds that apply", REDRAWN, "all of the above", None, _no_group),
    )
}
"""Rows about samples drawn with replacement."""

TRUNCATED_POISSON: dict[str, Bound] = {
    row.name: row
    for row in (
        Bound(
            "truncated-poisson",
            "delta <= (1-t) H[(1-q)Q + qP, Q] + t H[(1-q')Q + q'P2, Q], P2 for two records, t = P(Bin(n-1,q) >= B), "
            "q' = P(Bin(n,q) > B) B/(n t), the larger of n = N and N + 1, in each direction",
            CUT,
            "docs/bounds/truncated-poisson.md",
            lambda base, pair, rate: pair.curve(),
            _no_group,
            tight=True,
        ),
        Bound("best", "the smallest of all bounds that apply", CUT, "all of the above", None, _no_group),
    )
}
"""Rows about Poisson samples that are cut to a limit."""
