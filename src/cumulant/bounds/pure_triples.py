"""Theorem P: the exact Rényi curve of all epsilon-DP mechanisms on samples of fixed size (docs/bounds/pure-triples.md)."""

from __future__ import annotations

from fractions import Fraction

from cumulant.curves.curve import Curve
from cumulant.curves.highest import Highest
from cumulant.pairs.mixing import PAIR, PROFILE
from cumulant.pairs.response import ResponseLaw, TernaryLaw


def pure_triples(base: Curve, rate: Fraction) -> Curve:
    """K = log1p max{ [U(A) + c U(B)]/(1+c), [U(A) + A U(1/A)]/(2+c) }, U(y) = y^a - 1 - a(y-1), c = e^epsilon.

    A = 1 + g(c-1), B = 1 - g(1 - 1/c). Two answers, as Proposition 11 has them, or three inputs of 3-ary response: its second
    term is (A^lambda - 1)(A - A^-lambda)/(2+c), that of the profile with one more wrong answer. Attained at every order.

    >>> from cumulant.curves.closed import Response
    >>> pure_triples(Response(epsilon=Fraction(1)), Fraction(1, 100)).rdp([2, 64])
    array([0.00012409, 0.00400969])
    """
    return Highest((ResponseLaw(base).sampled(base, rate, PAIR), TernaryLaw(base).sampled(base, rate, PROFILE)))
