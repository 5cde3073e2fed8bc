"""|chi|^a privacy (items 25 to 29): how far apart p and q are, seen from a third law r.

    D_{|chi|^a}(p, q || r) = E_r |(p - q)/r|^a,
    zeta(a) = the largest a-th ROOT of it over neighbouring triples,   xi(a) = over pairs, r = q.

The roots are what scales: subsampling multiplies zeta by the rate (Proposition 16). The paper's "zeta(2) <= 4 (...)"
means zeta(2)^2 (E-24); here roots are called roots and moments are logarithms of E_r |(p - q)/r|^j = zeta(j)^j.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import permutations
from typing import Any

import numpy as np

from cumulant.domains import RATE
from cumulant.domains import orders as read_orders
from cumulant.errors import InputError, shown
from cumulant.numerics.arithmetic import FLOATS, Array


def ternary_root(p: Any, q: Any, r: Any, orders: Any) -> Any:
    """Compute (E_r |(p-q)/r|^a)^{1/a} of finite laws at orders in [1, inf].

    Order 1 is twice the total variation, inf the maximum.

    Above order 1 it is +inf where p and q differ outside the support of r.

    >>> ternary_root([0.9, 0.1], [0.6, 0.4], [0.5, 0.5], [1, 2, np.inf])
    array([0.6, 0.6, 0.6])
    """
    array, scalar = read_orders(orders)
    p, q, r = (_law(x) for x in (p, q, r))
    if not p.shape == q.shape == r.shape:
        raise InputError("laws of different lengths have no divergence; give the masses on one common list of outcomes")
    distance = np.abs(p - q)
    inside = r > 0
    with np.errstate(all="ignore"):
        ratio = distance[inside] / r[inside]
        largest = float(ratio.max())
        # scaled by the maximum, so that no power overflows
        power = np.sum(r[inside] * (ratio / largest) ** array[:, None], axis=-1) if largest else np.zeros_like(array)
        value = np.where(np.isinf(array), largest, largest * power ** (1 / array))
    if (distance[~inside] > 0).any():
        value = np.where(array > 1, np.inf, distance.sum())
    value = np.where(np.isnan(value), np.inf, value)
    return float(value[0]) if scalar else value


def binary_root(p: Any, q: Any, orders: Any) -> Any:
    """Compute (E_q |p/q - 1|^a)^{1/a}: the ternary root seen from q.

    Order 2 is the root of the chi-square divergence.

    >>> binary_root([0.5, 0.5], [0.8, 0.2], [1, 2])
    array([0.6 , 0.75])
    """
    return ternary_root(p, q, q, orders)


def ternary_divergence(p: Any, q: Any, r: Any, orders: Any) -> Any:
    """Compute eq. (5): E_r |(p-q)/r|^a at finite orders >= 1.

    >>> ternary_divergence([0.9, 0.1], [0.6, 0.4], [0.5, 0.5], 2)
    0.36
    """
    array, scalar = read_orders(orders)
    if np.isinf(array).any():
        raise InputError("order=inf has no power; use ternary_root, whose limit is the largest ratio")
    with np.errstate(over="ignore"):
        value = ternary_root(p, q, r, array) ** array
    return float(value[0]) if scalar else value


def binary_divergence(p: Any, q: Any, orders: Any) -> Any:
    """Compute E_q |p/q - 1|^a at finite orders >= 1.

    >>> binary_divergence([0.5, 0.5], [0.8, 0.2], 2)
    0.5625
    """
    return ternary_divergence(p, q, q, orders)


Root = Callable[[float], float]
"""An upper bound of a root, zeta or xi, at one order in [1, inf]."""


@dataclass(frozen=True, slots=True)
class Ternary:
    """Ternary |chi| privacy (Definition 14).

    `root(a)` bounds zeta(a) over all ordered neighbouring triples.

    `rate` is what subsampling has multiplied it with, kept exact.

    >>> bit = Ternary.of_laws([[0.75, 0.25], [0.25, 0.75]])
    >>> bit([2, np.inf]), bit.subsampled("0.01")(2)
    (array([1.15470054, 2.        ]), 0.0115470054...)
    """

    root: Root
    rate: Fraction = Fraction(1)

    @classmethod
    def of_laws(cls, laws: Any) -> Ternary:
        """Return the exact zeta of a mechanism with these output laws, all mutually neighbouring.

        Each row is one law.
        """
        rows = tuple(_law(row) for row in laws)
        if len(rows) == 1:
            rows *= 2
        triples = tuple((p, q, r) for p, q in permutations(rows, 2) for r in rows)
        return cls(lambda order: max(float(ternary_root(p, q, r, order)) for p, q, r in triples))

    def __call__(self, orders: Any) -> Any:
        return _roots(self.root, float(self.rate), orders)

    def subsampled(self, rate: Any) -> Ternary:
        """Return zeta on a uniform sample of a share `rate` of the records.

        Proposition 16: zeta is multiplied by the rate.

        Sampled laws are mixtures, and |x|^a / y^{a-1} is jointly convex (Lemma 20): a mixture of three laws is at most as far
        apart as the triples it mixes. Assumes replace-one neighbours and a mechanism that ignores the order of its sample,
        or a shuffled one (E-3).
        """
        return replace(self, rate=self.rate * RATE.check("rate", rate))

    def binary(self) -> Binary:
        """Return xi <= zeta: the pairs are the triples with r = q."""
        return Binary(lambda order: float(self(order)))

    def log_moments(self, j: Array) -> Array:
        """Return log zeta(j)^j before subsampling, at finite orders: the coefficients of eq. (9)."""
        with np.errstate(divide="ignore"):
            return np.asarray(j * np.log(_roots(self.root, 1.0, j)))


@dataclass(frozen=True, slots=True)
class Binary:
    """Binary |chi| privacy (Definition 15).

    `root(a)` bounds xi(a) over all ordered neighbouring pairs.

    >>> laplace = Binary(lambda order: math.expm1(0.5))  # |p/q - 1| <= e^eps - 1
    >>> round(laplace.ternary()(2), 6)  # Lemma 17: twice xi(2)
    1.297443
    """

    root: Root

    @classmethod
    def of_laws(cls, laws: Any) -> Binary:
        """Return the exact xi of a mechanism with these output laws, all mutually neighbouring.

        Each row is one law.
        """
        rows = tuple(_law(row) for row in laws)
        pairs = tuple(permutations(rows, 2)) or ((rows[0], rows[0]),)
        return cls(lambda order: max(float(binary_root(p, q, order)) for p, q in pairs))

    def __call__(self, orders: Any) -> Any:
        return _roots(self.root, 1.0, orders)

    def ternary(self) -> Ternary:
        """Return zeta by Lemma 17: zeta(a)^a <= 4 xi(a)^a."""
        return Ternary(lambda order: 4.0 ** (1 / order) * float(self(order)))


def ternary_from_binary(log_binary: Any) -> Any:
    """Bound log E_r |(p-q)/r|^j by Lemma 17.

    It is at most log 4 + the largest log E_y |x/y - 1|^j over pairs x, y of p, q, r; j >= 1.

    Where p >= q: if r >= q then r may become q in (p-q)^j / r^{j-1}, else q may become r; p < q likewise. Four
    events, each bounded by one pair.

    >>> round(ternary_from_binary(math.log(0.25)), 12)
    0.0
    """
    return math.log(4) + log_binary


def difference_moment(log_first: Any, log_second: Any) -> Any:
    """Bound log E |X-Y|^j by Lemma 18: log(E X^j + E Y^j) for X, Y >= 0 and j >= 1.

    Because |x-y|^j <= max(x, y)^j.

    >>> float(difference_moment(0.0, 0.0))
    0.693147180...
    """
    return np.logaddexp(log_first, log_second)


def close_difference_moment(log_second: Any, order: Any, epsilon: Any) -> Any:
    """Bound log E |X-Y|^j by Lemma 19: log E Y^j + j log(e^eps - 1), for j >= 1.

    It needs e^-eps Y <= X <= e^eps Y.

    >>> float(close_difference_moment(0.0, 2, math.log(3)))
    1.386294361...
    """
    with np.errstate(divide="ignore"):
        return log_second + order * FLOATS.log_expm1(epsilon)


def holder_moment(order: float, u: float, renyi: Callable[[float], float], root: Root) -> float:
    """Bound log E_r |(p-q)/r|^j by Lemma 32, with 1/u + 1/v = 1.

    It is at most (j-1) D_{(j-1)v+1}(q || r) + log D_{|chi|^{ju}}(p || q) / u.

    `renyi(a)` bounds D_a(q || r) and `root(a)` the binary root of p and q, both up to order inf; u in [1, inf], j > 1.
    u = 1 needs the largest loss of q from r, u = inf the largest |p/q - 1| (then it is Lemma 19).

    >>> round(holder_moment(2, 2, lambda a: a / 2, lambda a: 1.0), 12)  # (j-1) D_3
    1.5
    """
    if not 1 <= u <= math.inf:
        raise InputError(f"u={u} must be a number in [1, inf]; v is its conjugate")
    v = math.inf if u == 1 else 1.0 if u == math.inf else u / (u - 1)
    size = root(order * u)
    if size == 0:
        return -math.inf
    # D^{1/u} = (root at order ju)^j
    value = (order - 1) * renyi((order - 1) * v + 1) + order * math.log(size)
    return math.inf if math.isnan(value) else value


def _roots(root: Root, rate: float, orders: Any) -> Any:
    array, scalar = read_orders(orders)
    value = rate * np.array([root(float(order)) for order in array], dtype=np.float64)
    value = np.where(value >= 0, value, np.inf)
    return float(value[0]) if scalar else value


def _law(masses: Any) -> Array:
    law = np.asarray(masses, dtype=np.float64)
    if law.ndim != 1 or not (law >= 0).all() or not abs(law.sum() - 1) < 1e-9:
        raise InputError(f"{shown(masses)} must be a flat sequence of probabilities that sum to 1")
    return law
