"""Poisson sampling, add/remove neighbours: every record is in the sample independently with probability q.

One data set has a record that the other lacks. With R and T the output laws averaged over the samples of the other
records, without and with that record, the run sees (1-q)R + qT against R when the record is removed and R against
(1-q)R + qT when it is added. Both divergences are f-divergences of (T, R), so a dominating pair (P, Q) may take the place
of (T, R) and convexity removes the average. The proofs are in docs/bounds/poisson.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from cumulant.bounds.binomial import BinomialSum
from cumulant.bounds.bound import Bound, finite, no_pair, no_slack, nothing
from cumulant.bounds.caps import JointConvexity, WorstPure, caps
from cumulant.curves.curve import Curve, Lowest
from cumulant.numerics.arithmetic import Arithmetic, Array
from cumulant.numerics.rationals import common
from cumulant.pairs.pair import Pair


def poisson(pair: Pair, rate: Fraction) -> Curve:
    """The larger of D((1-q)Q + qP || Q) and D(Q || (1-q)Q + qP), at every real order: exact for the class of the pair.

    A pair that is not symmetric enters in both roles. For a symmetric one the first divergence is the larger, and it is
    Proposition 11's.

    >>> from cumulant.pairs.gaussian import GaussianPair
    >>> poisson(GaussianPair(Fraction(1)), Fraction(1, 100)).rdp([2, 2.5, 64])
    array([1.71813422e-04, 2.17575332e-04, 2.73217319e+01])
    """
    from cumulant.bounds.proposition11 import Highest, proposition11
    from cumulant.pairs.densities import DensityPair
    from cumulant.pairs.masses import DiscretePair, MassCurve
    from cumulant.pairs.sampled_densities import PoissonDensities

    match pair:
        case DensityPair():
            return PoissonDensities(pair, rate) if rate < 1 else pair.curve()
        case DiscretePair(p, q):
            # a curve of masses is itself the larger of its two directions
            return Highest((MassCurve(_mixed(p, q, rate), q), MassCurve(_mixed(q, p, rate), p)))
    return proposition11(pair, rate)


def _mixed(p: Sequence[Fraction], q: Sequence[Fraction], rate: Fraction) -> tuple[Fraction, ...]:
    """(1-q)Q + qP."""
    numerators, whole = common((*p, *q))
    g, one = rate.as_integer_ratio()
    mixed = zip(numerators[: len(p)], numerators[len(p) :], strict=True)
    return tuple(Fraction((one - g) * y + g * x, one * whole) for x, y in mixed)


def poisson_sum(base: Curve, rate: Fraction) -> Curve:
    """e^{(a-1) eps'(a)} <= 1 + sum_{j>=2} C(a,j) q^j (e^{(j-1) eps(j)} - 1) for every mechanism; chords between integers.

    It is eq. (9) with m_j = E|T/R - 1|^j <= e^{(j-1) eps(j)} - 1, because |r-1|^j <= r^j - 1 - j(r-1) for r >= 0, j >= 2.
    At large orders the chords of eq. (9)'s blocks are valid although log(e^K - 1) is not convex: log m_j is.
    """

    def moment(j: Array, on: Arithmetic) -> Array:
        # log(M_j - 1)
        return on.log_expm1(base.cgf(j - 1, on))

    return BinomialSum(base, rate, (moment,))


def pure_response(base: Curve, rate: Fraction) -> Curve:
    """Sampled randomized response whose log-odds are the pure epsilon: every other pure mechanism is a post-processing.

    With slack the promise is (epsilon, delta), and delta times the rate is the slack that remains.
    """
    from cumulant.pairs.laws import ResponseLaw
    from cumulant.pairs.mixing import PAIR
    from cumulant.pairs.sampled import SampledPair

    return base if rate == 1 else SampledPair(ResponseLaw(base), base, rate, PAIR)


def _poisson(base: Curve, pair: Pair | None, rate: Fraction) -> Curve:
    return poisson(pair, rate)  # type: ignore[arg-type]


def _lower(base: Curve, pair: Pair | None, rate: Fraction) -> Curve:
    from cumulant.bounds.proposition11 import reachable

    return poisson(reachable(pair), rate)


def _best(base: Curve, pair: Pair | None, rate: Fraction) -> Curve:
    """With a pair the exact curve, unless its integral is out of reach; joint convexity stays for the farthest orders."""
    joint = JointConvexity(base, rate)
    if pair is not None and pair.integrable and not no_pair(base, pair):
        return Lowest((poisson(pair, rate), joint))
    curves: list[Curve] = [joint]
    if not finite(base, pair):
        curves.append(pure_response(base, rate))
    if not no_slack(base, pair):
        curves.append(poisson_sum(base, rate))
    return Lowest(tuple(curves)).projected()


_SAMPLER = "every record is sampled independently with the same probability, add/remove neighbours"
_PAIR = _SAMPLER + "; a dominating pair"
_HERE = "docs/bounds/poisson.md"

POISSON: dict[str, Bound] = {
    row.name: row
    for row in (
        Bound(
            "poisson",
            "eps'(a) is that of (1-q)Q + qP against Q or of Q against (1-q)Q + qP, whichever is larger",
            _PAIR,
            f"Mironov, Talwar, Zhang 2019; Zhu, Dong, Wang 2022; {_HERE}",
            _poisson,
            no_pair,
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
            "pure-response",
            "eps'(a) is at most that of sampled randomized response with log-odds eps(inf)",
            _SAMPLER + "; pure DP",
            f"Kairouz, Oh, Viswanath 2015; {_HERE}",
            lambda base, pair, rate: pure_response(base, rate),
            finite,
        ),
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
        Bound("best", "the smallest of all bounds that apply, projected", _SAMPLER, "all of the above", _best, nothing),
        Bound(
            "lower",
            "the exact curve of the sampled pair: no upper bound can go below it",
            "a pair of neighbouring output laws",
            _HERE,
            _lower,
            no_pair,
            upper=False,
        ),
    )
}
"""The theorems about Poisson samples."""
