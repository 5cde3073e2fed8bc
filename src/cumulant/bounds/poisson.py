"""The table of the theorems about Poisson samples, with their assumptions."""

from __future__ import annotations

from fractions import Fraction

from cumulant.bounds.binomial_sum import BinomialSum
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
from cumulant.curves.curve import Curve
from cumulant.errors import HypothesisError
from cumulant.losses.subsampled import PAIR
from cumulant.numerics.arithmetic import Arithmetic, Array
from cumulant.pairs.pair import Pair

# Poisson sampling, add/remove neighbours: every record is in the sample independently with probability q.
#
# One data set has a record that the other lacks. With R and T the output laws averaged over the samples of the other
# records, without and with that record, the run sees (1-q)R + qT against R when the record is removed and R against
# (1-q)R + qT when it is added. Both divergences are f-divergences of (T, R), so a dominating pair (P, Q) may take the place
# of (T, R) and convexity removes the average. The proofs are in docs/bounds/poisson.md.


def poisson(pair: Pair, rate: Fraction) -> Curve:
    """Return the larger of D((1-q)Q + qP || Q) and D(Q || (1-q)Q + qP) at every real order.

    It is exact for the class of the pair.

    A pair that is not symmetric enters in both roles. For a symmetric one the first divergence is the larger, and it is
    Proposition 11's.

    >>> from cumulant.pairs.gaussian import GaussianPair
    >>> poisson(GaussianPair(Fraction(1)), Fraction(1, 100)).rdp([2, 2.5, 64])
    array([1.71813422e-04, 2.17575332e-04, 2.73217319e+01])
    """
    curve = pair.poisson_curve()
    if curve is None:
        raise HypothesisError(f"the law of the loss of {type(pair).__name__} is not known in both roles")
    return curve(rate)


def poisson_sum(base: Curve, rate: Fraction) -> Curve:
    """Return the sum for every mechanism on a Poisson sample; chords between integers.

    e^{(a-1) eps'(a)} <= 1 + sum_{j>=2} C(a,j) q^j (e^{(j-1) eps(j)} - 1).

    It is eq. (9) with m_j = E|T/R - 1|^j <= e^{(j-1) eps(j)} - 1, because |r-1|^j <= r^j - 1 - j(r-1) for r >= 0, j >= 2.
    At large orders the chords of eq. (9)'s blocks are valid although log(e^K - 1) is not convex: log m_j is.
    """

    def moment(j: Array, on: Arithmetic) -> Array:
        # log(M_j - 1)
        return on.log_expm1(base.cgf(j - 1, on))

    return BinomialSum(base, rate, (moment,))


def pure_response(base: Curve, rate: Fraction) -> Curve:
    """Return the curve of sampled randomized response whose log-odds are the pure epsilon.

    Every other pure mechanism is a post-processing of it.

    With slack the promise is (epsilon, delta), and delta times the rate is the slack that remains.
    """
    from cumulant.pairs.response import ResponseLaw

    return ResponseLaw(base).sampled(base, rate, PAIR)


SAMPLER = "every record is sampled independently with the same probability, add/remove neighbours"
"""The assumptions of every row."""

PAIR_SAMPLER = SAMPLER + "; a dominating pair"
"""The assumptions of rows that need a pair."""

HERE = "docs/bounds/poisson.md"
"""The page with the proofs."""

POISSON: dict[str, Bound] = {
    row.name: row
    for row in (
        Bound(
            "caps",
            "eps'(a) <= min{log(1 + q(e^((a-1)eps(a)) - 1)) / (a-1), log(1 + q(e^eps(inf) - 1))}",
            SAMPLER,
            f"joint convexity; Lemma 3, {HERE}",
            lambda base, pair, rate: caps(base, rate),
            nothing,
        ),
        Bound(
            "lemma3",
            "the divergence of randomized response with log-odds log(1 + q(e^eps(inf) - 1))",
            SAMPLER + "; pure DP",
            f"Lemma 3, {HERE}; Bun, Steinke 2016",
            lambda base, pair, rate: WorstPure(base, rate),
            finite,
        ),
        Bound(
            "pure-response",
            "eps'(a) is at most that of sampled randomized response with log-odds eps(inf)",
            SAMPLER + "; pure DP",
            f"Kairouz, Oh, Viswanath 2015; {HERE}",
            lambda base, pair, rate: pure_response(base, rate),
            finite,
            dominates=over("lemma3"),
        ),
        Bound(
            "poisson-sum",
            "eps'(a) <= log(1 + sum_{j>=2} C(a,j) q^j (e^((j-1)eps(j)) - 1)) / (a-1)",
            SAMPLER,
            f"the expansion of Zhu, Wang 2019 without its factor 3, {HERE}",
            lambda base, pair, rate: poisson_sum(base, rate),
            no_slack,
        ),
        Bound(
            "poisson",
            "eps'(a) is that of (1-q)Q + qP against Q or of Q against (1-q)Q + qP, whichever is larger",
            PAIR_SAMPLER,
            f"Mironov, Talwar, Zhang 2019; Zhu, Dong, Wang 2022; {HERE}",
            lambda base, pair, rate: poisson(pair, rate),
            no_poisson,
            dominates=attained_over("lemma3", "pure-response", "poisson-sum"),
            worthless=out_of_reach,
            tight=True,
        ),
        Bound("best", "the smallest of all bounds that apply, projected", SAMPLER, "all of the above", None, nothing),
        Bound(
            "lower",
            "the exact curve of the sampled pair: no upper bound can go below it",
            "a pair of neighbouring output laws",
            HERE,
            lambda base, pair, rate: poisson(pair, rate),
            reachable_poisson,
            upper=False,
        ),
    )
}
"""The rows, from those that hold for every mechanism to those that know more: of rows that agree the last is named."""
