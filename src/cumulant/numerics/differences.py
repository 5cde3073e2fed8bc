"""Finite differences: Delta^(l) f(x) = Delta^(l-1) f(x+1) - Delta^(l-1) f(x) (eq. 6 to 8).

Delta^(0) is the identity; E-17 is the erratum about its use.

The functions work on numbers of any kind: int, Fraction, float, ball. Alternating sums lose digits, so in float64 they
are for illustration; what is to be trusted is exact, or a ball whose precision is doubled until enough of it is good.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from fractions import Fraction
from operator import methodcaller
from typing import Any

import numpy as np

from cumulant.errors import CertificateError
from cumulant.numerics.arithmetic import BALLS, Arithmetic, Array
from cumulant.numerics.lazy_scipy import special
from cumulant.numerics.logspace import choose
from cumulant.numerics.rounding import LONG


@dataclass(frozen=True, slots=True)
class DifferenceSettings:
    """Tuning constants of finite differences in balls.

    The balls hold every error, so validity does not depend on them.
    """

    first_bits: int = 128
    """Bits of the first try."""

    most_bits: int = 1 << 16
    """Bits of the last try; beyond it the result is as wide as it is."""

    spare_bits: int = 16
    """Bits beyond those that must be good; they cover sums of many terms."""

    least_good_bits: int = 80
    """Bits of a result that must be good; 27 more than a float has."""

    terms_at_once: int = 1 << 22
    """Terms in memory at once (32 MB an array)."""

    most_products: float = 3e3
    """Products of a sum in balls, weighted by their bits / 1000; chosen by hand, a bound of time."""

    most_values: float = 5e5
    """Cost of evaluating f in balls, which grows with the square of the bits; chosen by hand, a bound of time."""


SETTINGS = DifferenceSettings()
"""The settings in force; a test may replace them."""


def stencil(order: int) -> tuple[int, ...]:
    """Return the filter of Delta^(order): (-1)^{l-i} C(l, i), i = 0 … l.

    The printed sign (-1)^i holds for even l only.

    It weighs f(x), f(x+1), … as it stands; as a convolution it would be shifted by l (E-26).

    >>> stencil(2), stencil(3), stencil(4)
    ((1, -2, 1), (-1, 3, -3, 1), (1, -4, 6, -4, 1))
    """
    return tuple((-1) ** (order - i) * math.comb(order, i) for i in range(order + 1))


def difference(order: int, values: Sequence[Any]) -> Any:
    """Delta^(order)[f](0) from f(0), f(1), …, by its filter.

    >>> difference(3, [0, 1, 8, 27, 64])
    6
    """
    return sum(
        (weight * value for weight, value in zip(stencil(order)[1:], values[1:], strict=False)),
        start=stencil(order)[0] * values[0],
    )


def table(values: Sequence[Any]) -> list[list[Any]]:
    """Row l holds Delta^(l)[f](0), Delta^(l)[f](1), …: n + 1 values of f, O(n^2) additions.

    >>> table([0, 1, 8, 27])
    [[0, 1, 8, 27], [1, 7, 19], [6, 12], [6]]
    """
    rows = [list(values)]
    while len(rows[-1]) > 1:
        rows.append([after - before for before, after in zip(rows[-1], rows[-1][1:], strict=False)])
    return rows


def newton(leading: Sequence[Any], x: Any) -> Any:
    """Evaluate eq. (8), f(x) = SUM_l C(x, l) Delta^(l)[f](0), by Horner's rule.

    It is exact at the integers 0 … len - 1.

    >>> newton([0, 1, 6, 6], 5)
    125
    """
    value = leading[-1] * 1
    for l in range(len(leading) - 1, 0, -1):  # noqa: E741
        # C(x, l) = C(x, l-1) (x - l + 1) / l
        value = leading[l - 1] + _quotient(value * (x - l + 1), l)
    return value


def _quotient(value: Any, divisor: int) -> Any:
    return value // divisor if isinstance(value, int) and value % divisor == 0 else value / divisor


def leading_differences(values: Array, on: Arithmetic) -> Array:
    """Delta^(l)[f](0) for every l at once from f(0) … f(n), in balls.

    SUM_l Delta^(l)[f](0) x^l / l! = e^-x SUM_i f(i) x^i / i!, so one product of polynomials does what the table does.
    """
    import flint

    size = len(values)
    reciprocal = [on.number(1)]
    for i in range(1, size):
        reciprocal.append(reciprocal[-1] / i)
    # not power series: python-flint cuts those at the process-wide ctx.cap, and the rest reads as exact zeros
    series = flint.arb_poly([v * r for v, r in zip(values, reciprocal, strict=True)])
    decay = flint.arb_poly([-r if i % 2 else r for i, r in enumerate(reciprocal)])
    product = series * decay
    return np.array([product[i] / r for i, r in enumerate(reciprocal)], dtype=object)


def differences(orders: Array, f: Callable[[Array], Array], log_f: Array, log_size: Array, on: Arithmetic) -> Array:
    """Return log Delta^(l)[f](0) at some orders l, as balls, |f(i)| <= e^{log_f(i)}.

    `log_size` is about the result; it only decides which terms matter.

    The floats decide how many bits the alternating sums cost and which of their terms matter; the others are bounded.
    NaN stands for an order that would take too long.
    """
    value = np.full(orders.shape, on.number(math.nan))
    i = np.arange(log_f.size)
    rows = max(SETTINGS.terms_at_once // i.size, 1)
    if orders.size > rows:
        parts = range(0, orders.size, rows)
        return np.concatenate([differences(orders[k : k + rows], f, log_f, log_size[k : k + rows], on) for k in parts])
    log_factorial, left = special.gammaln(i + 1.0), orders[:, None] - i
    log_terms = log_factorial[orders][:, None] - log_factorial - log_factorial[np.maximum(left, 0)] + log_f
    log_terms = np.where(left >= 0, log_terms, -np.inf)
    # far more than these logarithms are wrong by
    slack = 1 + LONG * float(np.max(log_factorial + np.abs(log_f)))
    lost = np.maximum((log_terms.max(axis=1) - log_size) / math.log(2), 0.0)

    def window(good: int) -> tuple[Array, Array]:
        """Return what may be left out of each sum for so many good bits, and which terms stay."""
        floor = log_size - (good + SETTINGS.spare_bits) * math.log(2)
        return floor, log_terms > (floor - slack)[:, None]

    # microseconds, roughly, of products and of values of f, at a precision that is always the same: so is what is known
    count, bits = window(SETTINGS.least_good_bits)[1].sum(axis=1), SETTINGS.least_good_bits + lost
    reached = (count * (1 + bits / 1000) <= SETTINGS.most_products) & (
        count * (5 + bits**2 / 60_000) <= SETTINGS.most_values
    )
    if not reached.any():
        return value
    good = good_bits(on)
    floor, kept = (each[reached] for each in window(good))
    orders, needed = orders[reached], math.ceil(good + SETTINGS.spare_bits + math.log2(i.size) + lost[reached].max())

    def evaluate() -> Array:
        if kept.sum() > i.size**2 / 8:
            return leading_differences(f(i[: orders.max() + 1]), on)[orders]
        columns = np.flatnonzero(kept.any(axis=0))
        values = dict(zip(columns.tolist(), f(columns), strict=True))
        sums = []
        for order, row, rest in zip(orders.tolist(), kept, on.exp(on.asarray(floor)) * i.size, strict=True):
            total, some = up_to(rest) - up_to(rest), np.flatnonzero(row).tolist()
            for k, count in zip(some, choose(order, some), strict=True):
                total += (-count if (order - k) % 2 else count) * values[k]
            sums.append(total)
        return np.array(sums, dtype=object)

    with suppress(CertificateError):  # where `log_size` is far off
        value[reached] = escalated(evaluate, on, on.log, bits=needed, most=4 * needed)
    return value


def up_to(x: Any) -> Any:
    """A ball that holds every number from 0 to x, a ball."""
    return x * type(x)(0.5, 0.5)


def chi(cgf: Callable[[Array, Arithmetic], Array], order: int, on: Arithmetic = BALLS) -> Array:
    """Return B(l) = Delta^(l)[e^{K(.-1)}](0) for l = 0 … order.

    For even l it is the |chi|^l divergence E_q (p/q - 1)^l (eq. 7).

    M_0 = M_1 = 1 are set, not evaluated: closed forms are 0/0 there and users' curves arbitrary. It is Delta of
    e^{K(.-1)}; Delta of e^K would be the same moment under p. The values mean something only if `cgf` is the *exact*
    CGF of one pair: an upper bound of K does not give an upper bound of B.

    >>> gaussian = lambda lam, on: on.asarray(lam) * (on.asarray(lam) + 1) / 50
    >>> print([float(b) for b in chi(gaussian, 2)][2])
    0.0408107741923882
    """
    lam = np.array([i - 1 for i in range(2, order + 1)], dtype=object)

    def evaluate() -> Array:
        ones = [on.number(1)] * min(order + 1, 2)
        return leading_differences(np.array(ones + list(on.exp(cgf(lam, on))), dtype=object), on)

    if on.exact:
        # B(0) = 1 and B(1) = 0 exactly, and no ball around zero has good bits: they are set
        fixed = [on.number(1), on.number(0)][: order + 1]
        return np.array(fixed + list(escalated(lambda: evaluate()[2:], on)), dtype=object)
    values = np.concatenate([np.ones(min(order + 1, 2)), np.exp(cgf(lam.astype(np.float64), on))])
    return np.array([row[0] for row in table(list(values))])


def escalated(
    evaluate: Callable[[], Array],
    on: Arithmetic,
    then: Callable[[Array], Array] | None = None,
    negligible: int | None = None,
    bits: int = 0,
    most: int = SETTINGS.most_bits,
) -> Array:
    """Return the balls of `evaluate` at a precision at which every one has 80 good bits.

    The precision is `bits` at first and is doubled until then.

    `then` is applied to them at the last precision. A ball within 2^-negligible of zero is taken as it is. A ball that
    stays wide at the most bits that are allowed is an error, not a number.
    """

    enough, least = good_bits(on), None if negligible is None else on.number(Fraction(1, 1 << negligible))
    bits = max(bits, on.precision(), SETTINGS.first_bits)
    while bits <= most:
        with BALLS.at(bits):
            values = evaluate()
            if _are_good(values, enough, least):
                values = values if then is None else then(values)
                if all(map(methodcaller("is_finite"), values.flat)):
                    return values
        bits *= 2
    raise CertificateError(f"a ball stayed too wide at {most} bits; ask for a smaller order")


def _are_good(balls: Array, bits: int, negligible: Any) -> bool:
    """Return True if every ball has so many good bits, or lies within `negligible` of zero."""
    for ball in balls.flat:
        if ball.rel_accuracy_bits() < bits and (negligible is None or not ball.abs_upper() < negligible):
            return False
    return True


def good_bits(on: Arithmetic) -> int:
    """Return how many bits of a ball must be good.

    These are more than half of the working precision, and always more than a float shows.

    >>> with BALLS.at(512):
    ...     good_bits(BALLS)
    272
    """
    return max(SETTINGS.least_good_bits, on.precision() // 2 + 16)
