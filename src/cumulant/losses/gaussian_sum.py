"""Proposition 11's moment of Gaussian noise as a ball: a trapezoid sum for all orders.

M = E w^a, w = 1 - g + g e^x, x = t z - t^2/2, z ~ N(0, 1), and f = density times w^a. In the strip |Im z| < pi/t w is never
0 or negative, so f is analytic, and |w(z)| <= w(Re z) makes the integral of |f| along Im z = c at most e^{c^2/2} M. So the sum
h SUM f(jh) over all integers is M (1 + e), |e| <= 2 e^{d^2/2} / (e^{2 pi d/h} - 1) for every d <= pi/t (Trefethen, Weideman
2014, Theorem 5.1). Past the first node, where x < 0, w < 1, and h SUM density is at most the integral up to the node, because
the density rises there. Past the last one, Z >= a t, w <= q e^x with q = g + (1-g) e^-x(Z), and the density of N(at, 1) falls:
what is left out is at most q^a e^{a(a-1)t^2/2} P(N(at, 1) > Z).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

from cumulant.numerics.arithmetic import BALLS, Scalar
from cumulant.numerics.quadrature import strip_step


@dataclass(frozen=True, slots=True)
class TrapezoidSumSettings:
    """Tuning constants of the sum in balls.

    The ball holds every error, so validity does not depend on them.
    """

    needs_multiple: int = 16
    """Steps are chosen for needs, and precisions for losses, rounded up to a multiple of 16 nats or bits: then few of
    them serve all orders."""

    most_nodes: int = 600
    """Nodes of a sum; chosen by hand, beyond it acb.integral answers."""

    smallest: float = 1e-12
    """Least shift, rate, 1 - rate and lambda; chosen by hand: below it many digits cancel."""

    largest_shift: float = 16.0
    """Largest shift; beyond it the strip of height pi/t is too narrow for few nodes."""

    farthest: float = 1e4
    """Largest order times shift; beyond it the nodes reach too far."""

    guard_bits: int = 32
    """Bits beyond those that cancel; they cover the roundings of a few hundred terms."""


SETTINGS = TrapezoidSumSettings()
"""The settings in force; a test may replace them."""


def excess(shift: Fraction, rate: Fraction, order: Fraction, bits: int) -> Scalar | None:
    """Return M - 1 as a ball, good to about this many bits; None if it takes too many nodes.

    On None the caller integrates with acb.integral.
    """
    from flint import ctx

    t, g, a = float(shift), float(rate), float(order)
    if min(t, g, 1 - g, a - 1) < SETTINGS.smallest or t > SETTINGS.largest_shift or a * t > SETTINGS.farthest:
        return None
    # M - 1 is about a(a-1) g^2 E(e^x - 1)^2 / 2: more at orders above 2, less below, where w^a grows slower than w^2
    bent = math.log(a * (a - 1) / 2) + 2 * math.log(g) + math.log(math.expm1(t * t))
    lost = max(max(2 - a, 0.0) * math.log1p(g * math.exp(1.5 * t * t)) - bent, 0.0)
    need = math.ceil((bits * math.log(2) + lost + 2) / SETTINGS.needs_multiple) * SETTINGS.needs_multiple
    step = _step(t, need)
    first, last = _ends(t, g, a, need, step)
    if last - first >= SETTINGS.most_nodes or step * last <= order * shift:
        return None
    more = math.ceil(lost / math.log(2) / SETTINGS.needs_multiple) * SETTINGS.needs_multiple + SETTINGS.guard_bits
    with BALLS.at(ctx.prec + more):
        losses, weights = _nodes(shift, rate, step, first, _rounded(last), ctx.prec)
        order_ball = BALLS.number(order)
        total = BALLS.number(0)
        for L, log_weight in zip(losses[: last - first + 1], weights, strict=False):
            total += (order_ball * L + log_weight).exp()
        return _enclosed(total, shift, rate, order, step, first, last) - 1


def _step(t: float, need: float) -> Fraction:
    """Return a step at which the trapezoid rule errs by at most e^-need."""
    return Fraction(math.floor(strip_step(math.pi / t, need) * 256), 256) or Fraction(1, 256)


def _ends(t: float, g: float, a: float, need: float, step: Fraction) -> tuple[int, int]:
    """Return the first and the last node, so far out that about e^-need lies beyond them."""
    h = float(step)
    first = -math.ceil(math.sqrt(2 * need) / h)
    height, Z = a * (a - 1) * t * t / 2, a * t + 1
    for _ in range(8):
        lowered = a * math.log(g + (1 - g) * math.exp(-max(t * Z - t * t / 2, 0.0)))
        Z = a * t + math.sqrt(2 * max(need + height + lowered, 1.0))
    return first, math.ceil(Z / h) + 1


def _rounded(last: int) -> int:
    return math.ceil(last / SETTINGS.needs_multiple) * SETTINGS.needs_multiple


@lru_cache(maxsize=256)
def _nodes(
    shift: Fraction, rate: Fraction, step: Fraction, first: int, last: int, precision: int
) -> tuple[list[Scalar], list[Scalar]]:
    """Return L and log(h times the density) at the nodes, in balls of this precision.

    The precision must be the one in force; it is an argument only because the cache needs it.
    """
    t, g, h = BALLS.number(shift), BALLS.number(rate), BALLS.number(step)
    factor = g * (-t * t / 2).exp()
    log_scale = (h / (2 * h.pi()).sqrt()).log()
    losses, weights = [], []
    for j in range(first, last + 1):
        z = BALLS.number(step * j)
        losses.append((1 - g + factor * (t * z).exp()).log())
        weights.append(log_scale - z * z / 2)
    return losses, weights


def _enclosed(
    total: Scalar, shift: Fraction, rate: Fraction, order: Fraction, step: Fraction, first: int, last: int
) -> Scalar:
    """Return the ball of M from the sum of the nodes from first to last."""
    from flint import arb

    t, g, a, h = (BALLS.number(each) for each in (shift, rate, order, step))
    pi, root = arb.pi(), arb(2).sqrt()
    left = (-BALLS.number(step * first) / root).erfc() / 2
    Z = BALLS.number(step * last)
    lowered = a * (g + (1 - g) * (t * t / 2 - t * Z).exp()).log() + a * (a - 1) * t * t / 2
    right = lowered.exp() * ((Z - a * t) / root).erfc() / 2
    whole = total + (left + right) * arb(0.5, 0.5)
    d = arb.min(2 * pi / h, pi / t)
    wrong = 2 * (d * d / 2).exp() / (2 * pi * d / h).expm1()
    return whole / (1 + wrong * arb(0, 1))
