"""xi and zeta of mechanisms with continuous outputs, at every real order.

Item 27, Definitions 14 and 15.

xi is exact: a dominating pair has the largest E_q |p/q - 1|^a, because |x - 1|^a is convex. zeta, over triples of laws, is
bounded by what is known about all pairs: the proofs and the numbers are in docs/chi.md.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from cumulant.domains import orders as read_orders
from cumulant.errors import HypothesisError, InputError
from cumulant.losses.density_integrals import LogDensity
from cumulant.mechanisms.mechanism import Expression
from cumulant.numerics.arithmetic import FLOATS, Array
from cumulant.numerics.quadrature import log_integrals
from cumulant.numerics.rounding import LONG
from cumulant.pairs.densities import DensityPair
from cumulant.pairs.pair import Pair
from cumulant.paper.chi import Binary, Ternary

_UP = 1 + LONG
"""More than the quadrature of a moment can be wrong by, 6e-14 of its logarithm."""


def binary_chi(mechanism: Expression) -> Binary:
    """Compute xi(a), the largest (E_q |p/q - 1|^a)^{1/a} over neighbouring pairs, rounded up.

    At orders in [1, inf].

    Exact for every mechanism with a dominating pair: Gaussian, Laplace, randomized response, finite laws, pure DP (as a
    class) and densities, whose numbers are self-checked and not proved.

    >>> import cumulant as cm
    >>> xi = binary_chi(cm.Gaussian(sigma=5))
    >>> xi([1, 2, 2.5])  # twice the total variation; sqrt(e^{1/25} - 1)
    array([0.15931135, 0.20201677, 0.22179774])
    >>> binary_chi(cm.Laplace(scale=2))(np.inf)  # e^{1/2} - 1
    0.64872127...
    """
    pair = _pair(mechanism)
    return Binary(lambda order: _root(pair, order, both=True))


def ternary_chi(mechanism: Expression) -> Ternary:
    """Bound zeta(a) over neighbouring triples from above, at orders in [1, inf].

    It is the least of all proved bounds, rounded up.

    Where the output depends on one bit of the data zeta = xi. At order 1 the third law cancels, and zeta = xi. Otherwise
    zeta(a)^a <= 4 E_q (p/q - 1)_+^a, as the four events of Lemma 17's proof show, and for pure DP it is at most the exact
    value of that class, `pure_ternary_root`; at order inf that is xi(inf).

    >>> import cumulant as cm
    >>> zeta = ternary_chi(cm.Laplace(scale=2))
    >>> zeta([1, 2, 64.5, np.inf])
    array([0.44239843, 0.50522463, 0.64270238, 0.64872127])
    >>> ternary_chi(cm.RandomizedResponse(p="0.6"))(2) == binary_chi(cm.RandomizedResponse(p="0.6"))(2)
    True
    """
    pair = _pair(mechanism)
    if pair.one_bit:
        return Ternary(lambda order: _root(pair, order, both=True))
    pure = float(pair.curve().pure())

    def root(order: float) -> float:
        if order == 1:
            return _root(pair, order, both=True)
        within_class = float(pure_ternary_root(pure, order)) * _UP if pure < math.inf else math.inf
        if order == math.inf:
            return within_class
        return min(4 ** (1 / order) * _root(pair, order, both=False), within_class)

    return Ternary(root)


def pure_ternary_root(epsilon: float, orders: Any) -> Any:
    """Compute the largest zeta(a) of all mechanisms with privacy loss at most epsilon = log c.

    It is attained, at every order in [1, inf].

    zeta(a)^a = (c-1)^a max{ (1 + c^{1-a}) / (1+c), 2 / (2+c), 2 c^{1-a} / (1+2c) }.

    >>> pure_ternary_root(np.log(2), [1, 2, np.inf])  # 2 (c-1)/(c+1); c > 2 is where three inputs become the worst
    array([0.66666667, 0.70710678, 1.        ])
    """
    array, scalar = read_orders(orders)
    c = math.exp(epsilon)
    # the weights of the corners (p/r, q/r) = (c, 1), (1/c, 1); (c, 1), (1, c), (1/c, 1/c); (1, 1/c), (1/c, 1), (c, c)
    finite = np.where(np.isinf(array), 2.0, array)
    shrunk = np.exp((1 - finite) * epsilon)
    weight = np.maximum(np.maximum((1 + shrunk) / (1 + c), 2 / (2 + c)), 2 * shrunk / (1 + 2 * c))
    value = math.expm1(epsilon) * np.where(np.isinf(array), 1.0, weight ** (1 / finite))
    return float(value[0]) if scalar else value


def density_root(
    log_p: LogDensity,
    log_q: LogDensity,
    log_r: LogDensity,
    orders: Any,
    support: tuple[float, float] = (-np.inf, np.inf),
) -> Any:
    """Compute (E_r |(p-q)/r|^a)^{1/a} of three densities on an interval.

    At finite real orders >= 1, by quadrature that checks itself.

    It is +inf where the quadrature does not converge; nothing is proved about functions that are only sampled.

    >>> def normal(mean):
    ...     return lambda x: -((x - mean) ** 2) / 2 - math.log(2 * math.pi) / 2
    >>> density_root(normal(1), normal(-1), normal(0), 2) ** 2  # 2e - 2/e
    4.70080477...
    """
    array, scalar = read_orders(orders)
    if np.isinf(array).any():
        raise InputError("order=inf is a supremum, which no quadrature finds; it is at most e^{eps(inf)} - 1")
    first, third = DensityPair(log_p, log_q, support), DensityPair(log_r, log_q, support)

    def log_f(s: Array, rows: Array) -> Array:
        log_one, log_two, log_jacobian = first.losses(s)
        log_three, order = third.losses(s)[0], array[rows, None]
        above = np.maximum(log_one, log_two)
        log_gap = above + np.log(-np.expm1(-np.abs(log_one - log_two)))
        log_gap = np.where((above == -np.inf) | (log_one == log_two), -np.inf, log_gap)
        weight = np.where(order == 1, 0.0, (1 - order) * log_three)
        return np.where(log_gap == -np.inf, -np.inf, order * log_gap + weight + log_jacobian)

    value = np.exp(log_integrals(log_f, array.size, np.union1d(first.scan(), third.scan())) / array)
    return float(value[0]) if scalar else value


def _root(pair: Pair, order: float, both: bool) -> float:
    """Compute (E_q |p/q - 1|^a)^{1/a}, or of the positive part, rounded up.

    At order inf it is the largest ratio less 1.
    """
    if order == math.inf:
        pure = float(pair.curve().pure())
        return math.expm1(pure) * _UP if pure < 700 else math.inf
    log_moment = pair.moments(order) if both else pair.positive_moments(order)
    value = float(FLOATS.known(np.asarray(log_moment))) / order
    return math.exp(value) * _UP if value < 700 else math.inf


def _pair(mechanism: Expression) -> Pair:
    terms = list(mechanism.terms.items())
    pair = terms[0][0].pair() if len(terms) == 1 and terms[0][1] == 1 else None
    if pair is None:
        raise HypothesisError(
            f"{mechanism} has no dominating pair, from which xi and zeta are read; ask for one mechanism that runs once, "
            "and for its sample use ternary_chi(…).subsampled(rate)"
        )
    return pair
