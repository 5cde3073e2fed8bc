"""From a curve to zero-concentrated differential privacy and back (Remark 8, item 13).

(xi, rho)-zCDP says D_a <= xi + rho a at every order a > 1, that is K(lambda) <= lambda xi + lambda (lambda + 1) rho. Back: the
mechanism `ZeroConcentrated(rho, xi)`.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from cumulant.domains import NONNEGATIVE
from cumulant.errors import InputError
from cumulant.mechanisms.mechanism import Expression
from cumulant.numerics.arithmetic import Array
from cumulant.numerics.rounding import LONG, rounded_up

_FIRST = 2.0**-20
_STEP = 1.05
_FARTHEST = 2.0**13
_ROUNDS = 8
"""Rounds in which cells are split, at most; chosen by hand."""

_PARTS = 6
"""Parts that a cell is split into; chosen by hand."""

_MOST = 20_000
"""Nodes beyond which no cell is split; a bound of time."""

_EXCESS = 1e-7
_UP = 1 + LONG


def concentration(run: Expression, xi: Any = 0, up_to: float = math.inf, bound: str = "best") -> float:
    """Find a small rho such that D_a <= xi + rho a at every order 1 < a <= up_to.

    Returns +inf if none is proved.

    The true K is convex, so between orders it lies below the chord of what is proved there, and the largest ratio of a chord
    to lambda (lambda + 1) has a closed form: nothing is overlooked. Beyond the last order the pure loss decides, or what is
    known in closed form about all orders.

    On a sample of an unbounded mechanism rho is that of the mechanism itself: eps'(a) - eps(a) stays bounded as the order
    grows, so that no rate helps. `up_to` asks for the truncated statement instead.

    >>> import cumulant as cm
    >>> concentration(cm.Gaussian(sigma=5))  # 1 / (2 sigma^2)
    0.02
    >>> round(
    ...     concentration(cm.PureDP(1)), 6
    ... )  # epsilon tanh(epsilon/2) at order 1; Bun and Steinke's epsilon^2/2 is 0.5
    0.462118
    >>> sampled = cm.Gaussian(sigma=5) @ cm.WithoutReplacement(rate=0.001)
    >>> concentration(sampled), concentration(sampled, up_to=100) < 2.3e-8
    (0.02, True)
    """
    offset = float(NONNEGATIVE.check("xi", xi))
    if not up_to > 1:
        raise InputError(f"up_to={up_to} must be an order above 1, the last one the statement is about")
    known, pure = run.curve(bound).concentration(), run.pure()
    last, beyond = up_to - 1, 0.0
    if up_to == math.inf and pure < math.inf:
        last = max(_FARTHEST, 1e4 * pure)
        beyond = (pure - offset) / (last + 1)
    elif last > _FARTHEST:
        if known is None:
            return math.inf
        last = _FARTHEST
        beyond = rounded_up(known[1]) + max(rounded_up(known[0]) - offset, 0.0) / (last + 1)
    lam = np.append(np.arange(0.0, math.log(last / _FIRST) / math.log(_STEP)), math.inf)
    lam = np.unique(np.minimum(_FIRST * _STEP**lam, last))
    cgf = run.cgf(lam.tolist(), bound=bound)
    for _ in range(_ROUNDS):
        largest = _largest(lam, cgf, offset)
        least = max(float(np.max((cgf / lam - offset) / (lam + 1))), beyond)
        split = np.flatnonzero(largest > least + _EXCESS * abs(least))
        if not split.size or lam.size > _MOST:
            break
        nodes = np.append(0.0, lam)
        new = np.linspace(nodes[split], nodes[split + 1], _PARTS + 1)[1:-1].ravel()
        order = np.argsort(np.concatenate([lam, new]), kind="stable")
        cgf = np.concatenate([cgf, run.cgf(new.tolist(), bound=bound)])[order]
        lam = np.concatenate([lam, new])[order]
    found = max(float(np.max(_largest(lam, cgf, offset))), beyond, 0.0) * _UP
    if known is not None and known[0] <= offset:
        found = min(found, rounded_up(known[1]))
    return found if found < math.inf else math.inf


def _largest(lam: Array, cgf: Array, xi: float) -> Array:
    """Return the largest (K - lambda xi) / (lambda (lambda + 1)) under the chord of each cell.

    The first cell starts at 0.
    """
    low, high = np.append(0.0, lam[:-1]), lam
    value_low = np.append(0.0, cgf[:-1])
    with np.errstate(all="ignore"):
        slope = (cgf - value_low) / (high - low)
        height = value_low - slope * low
        slope = slope - xi
        # (y + m l) / (l (l + 1)) is stationary where m l^2 + 2 y l + y = 0
        root = np.sqrt(np.maximum(height * height - slope * height, 0.0))
        places = [low, high, *(np.clip((-height + sign * root) / slope, low, high) for sign in (1, -1))]
        values = [np.where(at > 0, (height / at + slope) / (at + 1), slope) for at in places]
        return np.nan_to_num(np.fmax.reduce(values), nan=math.inf, posinf=math.inf)
