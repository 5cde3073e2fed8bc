"""The table of the theorems about uniform samples without replacement."""

from __future__ import annotations

from collections.abc import Callable, Collection
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from cumulant.bounds.binomial_sum import BinomialSum, Coefficient, PaperMaximum
from cumulant.bounds.bound import (
    Bound,
    ball,
    finite,
    gaussian,
    laplace,
    no_moments,
    no_profile,
    no_slack,
    nothing,
    one_bit,
    out_of_reach,
    over,
    pure,
    reachable,
)
from cumulant.bounds.caps import WorstPure, caps
from cumulant.curves.curve import Curve
from cumulant.curves.maximum import Highest
from cumulant.errors import HypothesisError
from cumulant.losses.subsampled import PAIR, PROFILE
from cumulant.numerics.arithmetic import Arithmetic, Array
from cumulant.pairs.pair import Pair

if TYPE_CHECKING:
    from cumulant.pairs.gaussian import GaussianPair
    from cumulant.pairs.laplace import LaplacePair


# Theorem 9, the main bound, and the sharper terms that its proof gives for pure DP (E-10).
#
# With M_j = e^{(j-1) eps(j)} and E = e^{eps(inf)} - 1, zeta(j)^j is at most each of the coefficients below.


def theorem9(curve: Curve) -> tuple[Coefficient, ...]:
    """zeta(2)^2 <= 4 (e^{eps(2)} - 1);   zeta(j)^j <= M_j min(2, E^j).

    Assumes that the curve holds for both orders of every replace-one pair (E-1) and that the sample reaches the mechanism
    in random order, or the mechanism ignores the order (E-3).
    """

    def second_moment(j: Array, on: Arithmetic) -> Array:
        # 4 (e^{eps(2)} - 1) at j = 2
        return np.where(j == 2, on.log(on.number(4)) + _log_chi_square(curve, on), on.number(np.inf))

    def twice_moment(j: Array, on: Arithmetic) -> Array:
        # 2 M_j
        return on.log(on.number(2)) + curve.cgf(j - 1, on)

    def pure_moment(j: Array, on: Arithmetic) -> Array:
        # E^j M_j
        return on.asarray(j) * on.log_expm1(curve.at_infinity(on)) + curve.cgf(j - 1, on)

    pure_known = curve.pure() < np.inf
    return (second_moment, twice_moment, pure_moment) if pure_known else (second_moment, twice_moment)


def pure_extras(curve: Curve) -> tuple[Coefficient, ...]:
    """Return eq. (9) with Lemma 17, and Lemma 32 with u = 1, for pure DP.

    zeta(j)^j <= E^{j-2} (e^{eps(2)} - 1) min(4, e^{(j-1) eps(inf)}).
    """
    if not curve.pure() < np.inf:
        return ()

    def chi_square(j: Array, on: Arithmetic) -> Array:
        # E^{j-2} (e^{eps(2)} - 1)
        log_e, log_chi = on.log_expm1(curve.at_infinity(on)), _log_chi_square(curve, on)
        return np.where(j == 2, log_chi, (on.asarray(j) - 2) * log_e + log_chi)

    def four_chi_square(j: Array, on: Arithmetic) -> Array:
        return on.log(on.number(4)) + chi_square(j, on)

    def pure_chi_square(j: Array, on: Arithmetic) -> Array:
        return (on.asarray(j) - 1) * curve.at_infinity(on) + chi_square(j, on)

    return four_chi_square, pure_chi_square


def _log_chi_square(curve: Curve, on: Arithmetic) -> Array:
    """log(e^{eps(2)} - 1)."""
    one = np.array([1], dtype=object if on.exact else np.float64)
    return on.log_expm1(curve.cgf(one, on))[0]


# Theorem 27 and the sharper coefficients that a dominating pair gives; each bounds zeta(j)^j (E-9, E-17).


def theorem27(curve: Curve, pair: Pair) -> tuple[Coefficient, ...]:
    """Return eq. (9) with Theorem 9 at j = 2 and Theorem 27 for j >= 3.

    zeta(j)^j <= 4 sqrt(B(2 floor(j/2)) B(2 ceil(j/2))), B(l) = E_q (p/q - 1)^l.
    """

    def even_moments(j: Array, on: Arithmetic) -> Array:
        whole = j.astype(np.int64)
        low, high = whole // 2 * 2, (whole + 1) // 2 * 2
        even = np.unique(np.concatenate([low, high]))
        moments = pair.moments(even, on)
        below, above = moments[np.searchsorted(even, low)], moments[np.searchsorted(even, high)]
        return np.where(j == 2, on.number(np.inf), on.log(on.number(4)) + (below + above) * 0.5)

    def at_two(coefficient: Coefficient) -> Coefficient:
        return lambda j, on: np.where(j == 2, coefficient(j, on), on.number(np.inf))

    return (*(at_two(coefficient) for coefficient in theorem9(curve)), even_moments)


def absolute_moment(pair: Pair) -> tuple[Coefficient, ...]:
    """zeta(j)^j <= 4 E_q |p/q - 1|^j: Lemma 17 without the Cauchy-Schwarz step."""
    return (lambda j, on: on.log(on.number(4)) + pair.moments(j.astype(np.int64), on),)


def positive_part(pair: Pair) -> tuple[Coefficient, ...]:
    """Return eq. (9) with zeta(j)^j <= 4 E_q (p/q - 1)_+^j.

    Each of the four events in the proof of Lemma 17 uses a positive part only.
    """
    return (lambda j, on: on.log(on.number(4)) + pair.positive_moments(j.astype(np.int64), on),)


def binary_moment(pair: Pair) -> tuple[Coefficient, ...]:
    """Return eq. (9) with zeta(j) = xi(j) = (E_q |p/q - 1|^j)^{1/j}.

    With one bit the third law is one of the first two (E-10).
    """
    return (lambda j, on: pair.moments(j.astype(np.int64), on),)


# Rényi divergence from the privacy profile: any mechanism with a pair, every real order.
#
# Sampling turns the profile d into d'(eps) = g d(log(1 + (e^eps - 1)/g)) (Lemma 3 used at every eps), which is the
# profile of an explicit symmetric pair; K is the cumulant generating function of that pair.


def profile(pair: Pair, rate: Fraction) -> Curve:
    """K = log1p of E_Q[(w^lambda - 1)(w - w^-lambda); p > q], w = 1 - g + g p/q.

    There are no integers and no factor 4.

    Proved for every mechanism that the pair dominates. A pair that is not symmetric enters through the larger of its
    two profiles (for densities: through their sum, unless one leads throughout).

    >>> from cumulant.pairs.gaussian import GaussianPair
    >>> profile(GaussianPair(Fraction(1)), Fraction(1, 1000)).rdp([2, 2.5, 64])
    array([2.91078489e-06, 3.63858964e-06, 2.49825978e+01])
    """
    curve = pair.amplified_curve()
    if curve is None:
        raise HypothesisError(f"the law of the loss of {type(pair).__name__} is not known in both directions together")
    return curve(rate)


# Proposition 11: what the pair (1-g)Q + gP against Q proves from below, at every real order.
#
# Data sets x … x x' and x … x x: the sample contains the odd record with probability g, so the output laws are
# (1-g)Q + gP and Q. Whatever bound is claimed, it cannot be below the Rényi divergence of this pair (E-12).


def proposition11(pair: Pair, rate: Fraction) -> Curve:
    """Return the Rényi divergence of (1-g)Q + gP against Q, the larger of both directions.

    It is +inf if its integral is out of reach.

    A lower bound for every mechanism of the class that the pair describes, at every real order, KL and pure included; with
    a symmetric pair it is all of a Poisson sample.

    >>> from cumulant.pairs.gaussian import GaussianPair
    >>> proposition11(GaussianPair(Fraction(1)), Fraction(1, 1000)).rdp([2, 2.5])
    array([1.71828035e-06, 2.15074243e-06])
    """
    curve = pair.lower_pair.mixture_curve()
    if curve is None:
        raise HypothesisError(f"the law of the loss of {type(pair).__name__} is not known")
    return curve(rate)


# Theorem P: the exact Rényi curve of all epsilon-DP mechanisms on samples of fixed size (docs/bounds/pure-triples.md).


def pure_triples(base: Curve, rate: Fraction) -> Curve:
    """K = log1p max{ [U(A) + c U(B)]/(1+c), [U(A) + A U(1/A)]/(2+c) }, c = e^epsilon.

    U(y) = y^a - 1 - a(y-1).

    A = 1 + g(c-1), B = 1 - g(1 - 1/c). Two answers, as Proposition 11 has them, or three inputs of 3-ary response: its second
    term is (A^lambda - 1)(A - A^-lambda)/(2+c), that of the profile with one more wrong answer. Attained at every order.

    >>> from cumulant.curves.closed_form import Response
    >>> pure_triples(Response(epsilon=Fraction(1)), Fraction(1, 100)).rdp([2, 64])
    array([0.00012409, 0.00400969])
    """
    from cumulant.pairs.response import ResponseLaw, TernaryLaw

    return Highest((ResponseLaw(base).sampled(base, rate, PAIR), TernaryLaw(base).sampled(base, rate, PROFILE)))


# ---- what a row proves; the integrals are imported where they are used, because importing the library must stay fast


def _sum(
    *coefficients: Callable[[Curve, Pair], tuple[Coefficient, ...]],
) -> Callable[[Curve, Pair, Fraction], Curve]:
    """Eq. (9) with the smallest of these coefficients at every j."""

    def curve(base: Curve, pair: Pair, rate: Fraction) -> Curve:
        return BinomialSum(base, rate, tuple(c for rule in coefficients for c in rule(base, pair)))

    return curve


def _profile(base: Curve, pair: Pair, rate: Fraction) -> Curve:

    return profile(pair, rate)


def _pure_triples(base: Curve, pair: Pair | None, rate: Fraction) -> Curve:

    return pure_triples(base, rate)


def _above_triples(base: Curve, pair: Pair | None) -> Collection[str]:
    """Return the rows that pure triples are below.

    Lemma 3 speaks of all mechanisms that are as private on the sample, of which those with the base's privacy are few.

    Where the pair is the worst one of the class, every other row holds for the whole class, of which this is the supremum.
    """
    return ("lemma3", *WHOLE_CLASS) if pair is not None and pair.whole_class else ("lemma3",)


WHOLE_CLASS = ("caps", "theorem9", "pure-extras", "profile")
"""Rows that hold for the whole class of mechanisms with the same pure epsilon."""


def _laplace_budget(base: Curve, pair: LaplacePair, rate: Fraction) -> Curve:
    from cumulant.bounds.laplace_budget import laplace_budget

    return laplace_budget(pair, rate)


def _gaussian_ball(base: Curve, pair: GaussianPair, rate: Fraction) -> Curve:
    from cumulant.bounds.gaussian_theorems import gaussian_ball

    return gaussian_ball(pair, rate)


def _gaussian_diameter(base: Curve, pair: GaussianPair, rate: Fraction) -> Curve:
    from cumulant.bounds.gaussian_theorems import gaussian_diameter

    return gaussian_diameter(pair, rate)


def _lower(base: Curve, pair: Pair, rate: Fraction) -> Curve:

    return proposition11(pair, rate)


def _above_profile(base: Curve, pair: Pair | None) -> Collection[str]:
    """Return the rows that `profile` is below: every sum of eq. (9) (docs/bounds/profile.md).

    Expanding w = 1 + u gives M - 1 <= sum_j C(a,j) E u_+^j + C(a,2) E u_+^2, half of what `positive-part` says or
    less.

    The sums of a curve stay where the pair is replaced by a larger symmetric one, if they are within reach, where the integral
    is not, and where no data sets have the pair, so that the curve may say less; joint convexity and Lemma 3 stay too.
    """
    moments = ("theorem27", "theorem27-min", "absolute-moment", "positive-part")
    lopsided = pair is None or (pair.summable and not pair.symmetric) or not (pair.integrable and pair.attained)
    return moments if lopsided else (*moments, "theorem9", "pure-extras")


SAMPLER = "uniform sample without replacement, replace-one neighbours, the mechanism ignores the order of its sample"
"""The assumptions of every row."""

PAIR_SAMPLER = SAMPLER + "; a dominating pair"
"""The assumptions of rows that need a pair."""

PAPER = "Wang, Balle, Kasiviswanathan 2019"
"""The paper."""


def _nine(base: Curve, pair: Pair) -> tuple[Coefficient, ...]:
    return theorem9(base)


WITHOUT_REPLACEMENT: dict[str, Bound] = {
    row.name: row
    for row in (
        Bound(
            "caps",
            "eps'(a) <= min{log(1 + g(e^((a-1)eps(a)) - 1)) / (a-1), log(1 + g(e^eps(inf) - 1))}",
            "uniform sample without replacement, replace-one neighbours; for the second term an ignored sample order",
            "joint convexity; Lemma 3 of the paper",
            lambda base, pair, rate: caps(base, rate),
            nothing,
            splits=True,
        ),
        Bound(
            "lemma3",
            "the divergence of randomized response with log-odds log(1 + g(e^eps(inf) - 1)), the worst mechanism of Lemma 3",
            SAMPLER + "; pure DP",
            f"{PAPER}, Lemma 3; Bun, Steinke 2016",
            lambda base, pair, rate: WorstPure(base, rate),
            finite,
            splits=True,
        ),
        Bound(
            "theorem9",
            "eps'(a) <= log(1 + g^2 C(a,2) min{4(e^eps(2)-1), e^eps(2) min(2,E^2)} "
            "+ sum_{j>=3} g^j C(a,j) e^((j-1)eps(j)) min(2,E^j)) / (a-1)",
            SAMPLER,
            f"{PAPER}, Theorem 9",
            _sum(_nine),
            no_slack,
            dominates=over("theorem9-max"),
        ),
        Bound(
            "theorem9-max",
            "Theorem 9 with the sum replaced by max + log(a), the paper's estimate for large orders",
            SAMPLER,
            f"{PAPER}, Appendix G",
            lambda base, pair, rate: PaperMaximum(base, rate, theorem9(base)),
            no_slack,
        ),
        Bound(
            "theorem27",
            "Theorem 9 with 4 sqrt(B(2 floor(j/2)) B(2 ceil(j/2))), B(l) = E_q(p/q-1)^l, for j >= 3",
            PAIR_SAMPLER,
            f"{PAPER}, Theorem 27",
            _sum(theorem27),
            no_moments,
        ),
        Bound(
            "theorem27-min",
            "term by term the smaller of Theorem 9 and Theorem 27",
            PAIR_SAMPLER,
            f"{PAPER}, Theorems 9 and 27",
            _sum(_nine, theorem27),
            no_moments,
        ),
        Bound(
            "absolute-moment",
            "term by term the smaller of Theorem 9 and 4 E_q|p/q-1|^j",
            PAIR_SAMPLER,
            f"{PAPER}, Lemma 17",
            _sum(_nine, lambda base, pair: absolute_moment(pair)),
            no_moments,
        ),
        Bound(
            "positive-part",
            "term by term the smaller of Theorem 9 and 4 E_q(p/q-1)_+^j",
            PAIR_SAMPLER,
            "the proof of Lemma 17 uses only positive parts (docs/bounds/positive-part.md)",
            _sum(_nine, lambda base, pair: positive_part(pair)),
            no_moments,
        ),
        Bound(
            "pure-extras",
            "term by term the smaller of Theorem 9 and E^(j-2) (e^eps(2)-1) min(4, e^((j-1)eps(inf)))",
            SAMPLER + "; pure DP",
            f"{PAPER}, Lemmas 17 and 32",
            _sum(_nine, lambda base, pair: pure_extras(base)),
            pure,
            dominates=over("theorem9"),
        ),
        Bound(
            "profile",
            "e^((a-1)eps'(a)) <= 1 + a(a-1)g^2 int [(1+g(e^t-1))^(a-2) + (1+g(e^t-1))^(-a-1)] e^t delta(t) dt",
            PAIR_SAMPLER,
            "Balle, Barthe, Gaboardi 2018, at every epsilon (docs/bounds/profile.md)",
            _profile,
            no_profile,
            dominates=_above_profile,
        ),
        Bound(
            "pure-triples",
            "e^((a-1)eps'(a)) <= 1 + max{[U(A) + c U(B)]/(1+c), [U(A) + A U(1/A)]/(2+c)}, U(y) = y^a - 1 - a(y-1), "
            "c = e^eps(inf), A = 1 + g(c-1), B = 1 - g(1-1/c)",
            SAMPLER + "; pure DP",
            "Theorem P, docs/bounds/pure-triples.md",
            _pure_triples,
            pure,
            dominates=_above_triples,
        ),
        Bound(
            "one-bit",
            "eps'(a) <= log(1 + sum_{j>=2} g^j C(a,j) E_q|p/q-1|^j) / (a-1)",
            PAIR_SAMPLER + "; the output law depends on one bit of the data",
            f"{PAPER}, eq. (9) with zeta = xi",
            _sum(lambda base, pair: binary_moment(pair)),
            one_bit,
        ),
        Bound(
            "laplace-budget",
            "e^((a-1)eps'(a)) <= 1 + a(a-1) {s1^(a-2) beta + int_{s>s1} (s^(a-2) - s1^(a-2)) H ds} for every s1 and a >= 2, "
            "H the time value of the profile, beta = g^2 V*/(2(1-g))",
            SAMPLER + "; one query with independent Laplace noise of one scale",
            "Theorem V, docs/bounds/laplace-budget.md",
            _laplace_budget,
            laplace,
            worthless=out_of_reach,
        ),
        Bound(
            "gaussian-diameter",
            "e^((a-1)eps'(a)) <= that of the pair + a(a-1) Delta",
            SAMPLER + "; Gaussian noise",
            "Theorem A, docs/bounds/gaussian-diameter.md",
            _gaussian_diameter,
            gaussian,
        ),
        Bound(
            "gaussian-ball",
            "eps'(a) is that of (1-g)N(0,1) + gN(1/sigma,1) against N(0,1)",
            SAMPLER + "; Gaussian noise on values in a ball whose diameter is the sensitivity",
            "Theorem C, docs/bounds/gaussian-ball.md",
            _gaussian_ball,
            ball,
            dominates=over("theorem9", "pure-extras", "profile", "one-bit", "gaussian-diameter"),
            worthless=out_of_reach,
            tight=True,
        ),
        Bound("best", "the smallest of all bounds that apply, projected", SAMPLER, "all of the above", None, nothing),
        Bound(
            "lower",
            "eps'(a) >= the divergence of (1-g)Q + gP against Q: no upper bound can go below it",
            "a pair of neighbouring output laws",
            f"{PAPER}, Proposition 11",
            _lower,
            reachable,
            upper=False,
        ),
    )
}
"""The rows, from those that hold for every mechanism to those that know more: of rows that agree the last is named."""
