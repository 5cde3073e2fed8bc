"""The table of the theorems about Poisson samples: what each says, what it assumes, what it proves."""

from __future__ import annotations

from cumulant.bounds.bound import (
    Bound,
    attained_over,
    finite,
    no_poisson,
    no_slack,
    nothing,
    out_of_reach,
    over,
    reachable_poisson,
)
from cumulant.bounds.caps import WorstPure, caps
from cumulant.bounds.poisson_theorems import poisson, poisson_sum, pure_response

_SAMPLER = "every record is sampled independently with the same probability, add/remove neighbours"
_PAIR = _SAMPLER + "; a dominating pair"
_HERE = "docs/bounds/poisson.md"

POISSON: dict[str, Bound] = {
    row.name: row
    for row in (
        Bound(
            "caps",
            "eps'(a) <= min{log(1 + q(e^((a-1)eps(a)) - 1)) / (a-1), log(1 + q(e^eps(inf) - 1))}",
            _SAMPLER,
            f"joint convexity; Lemma 3, {_HERE}",
            lambda base, pair, rate: caps(base, rate),
            nothing,
        ),
        Bound(
            "lemma3",
            "the divergence of randomized response with log-odds log(1 + q(e^eps(inf) - 1))",
            _SAMPLER + "; pure DP",
            f"Lemma 3, {_HERE}; Bun, Steinke 2016",
            lambda base, pair, rate: WorstPure(base, rate),
            finite,
        ),
        Bound(
            "pure-response",
            "eps'(a) is at most that of sampled randomized response with log-odds eps(inf)",
            _SAMPLER + "; pure DP",
            f"Kairouz, Oh, Viswanath 2015; {_HERE}",
            lambda base, pair, rate: pure_response(base, rate),
            finite,
            dominates=over("lemma3"),
        ),
        Bound(
            "poisson-sum",
            "eps'(a) <= log(1 + sum_{j>=2} C(a,j) q^j (e^((j-1)eps(j)) - 1)) / (a-1)",
            _SAMPLER,
            f"the expansion of Zhu, Wang 2019 without its factor 3, {_HERE}",
            lambda base, pair, rate: poisson_sum(base, rate),
            no_slack,
        ),
        Bound(
            "poisson",
            "eps'(a) is that of (1-q)Q + qP against Q or of Q against (1-q)Q + qP, whichever is larger",
            _PAIR,
            f"Mironov, Talwar, Zhang 2019; Zhu, Dong, Wang 2022; {_HERE}",
            lambda base, pair, rate: poisson(pair, rate),
            no_poisson,
            dominates=attained_over("lemma3", "pure-response", "poisson-sum"),
            worthless=out_of_reach,
            tight=True,
        ),
        Bound("best", "the smallest of all bounds that apply, projected", _SAMPLER, "all of the above", None, nothing),
        Bound(
            "lower",
            "the exact curve of the sampled pair: no upper bound can go below it",
            "a pair of neighbouring output laws",
            _HERE,
            lambda base, pair, rate: poisson(pair, rate),
            reachable_poisson,
            upper=False,
        ),
    )
}
"""The rows, from those that hold for every mechanism to those that know more: of rows that agree the last is named."""
