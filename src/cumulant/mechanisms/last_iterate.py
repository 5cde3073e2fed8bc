"""The last iterate of noisy gradient descent on a convex loss, as one mu-GDP mechanism (Bok, Su, Altschuler 2024).

w <- Proj(w - eta (grad F(w) + N(0, sigma^2 I))), F the mean of convex losses plus (m/2) |w|^2; only the last w is
released. One step shrinks distances by c = max(|1 - eta m|, |1 - eta M|) <= 1, so that early steps are forgotten. See
docs/mechanisms/last-iterate.md.
"""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np

from cumulant.domains import COUNT, NONNEGATIVE, POSITIVE, Domain, Exact, Number
from cumulant.errors import HypothesisError, InputError, shown
from cumulant.mechanisms.mechanism import MECHANISMS, Mechanism
from cumulant.numerics.arithmetic import BALLS
from cumulant.numerics.rounding import at_least, decimal_above
from cumulant.relation import Relation

BITS = 512
"""The precision of balls (derived: 1 - c^T keeps a hundred digits for c within 1e-30 of 1)."""

DIGITS = 12
"""Significant digits of mu, rounded up (convention of the specification of GaussianDP)."""

MOST_PLACES = 100_000
"""Steps times batches of a cyclic order that are looked at (measured: 10 s)."""

SCANNED = 1_000_000
"""Numbers of steps among which the best start inside the domain is searched; any of them gives a bound."""

_STEPS = Domain(Fraction(1), Fraction(10**12), low_closed=True, high_closed=True, integer=True)
"""Numbers of steps of one loop; convention."""

REFUSED = {
    "clip": "a clipped gradient is that of a convex loss only for generalised linear models: there clip the derivative of the "
    "scalar loss to C/|x| and give lipschitz=C",
    "momentum": "with momentum a step is no contraction of the weights alone",
    "optimizer": "Adam and other preconditioners are no gradient steps",
    "learning_rates": "one step size is needed for all steps",
    "averaging": "an average of iterates releases more than the last one",
    "checkpoints": "only the last iterate may be released",
    "early_stopping": "stopping or selecting on private data is another release",
    "sampling": "nothing is proved here for random batches; give batches= for a fixed cyclic order",
    "rate": "nothing is proved here for random batches; give batches= for a fixed cyclic order",
}
"""Additions to such a loop, each with the reason why nothing is proved then."""


def last_iterate(
    *,
    steps: int,
    step_size: Number,
    noise: Number,
    lipschitz: Number,
    smoothness: Number,
    records: int,
    relation: Relation | str,
    strong_convexity: Number = 0,
    diameter: Number | None = None,
    batches: int = 1,
    **other: Any,
) -> Mechanism:
    """Return the last of so many steps as `GaussianDP`, mu rounded up, with the hypotheses that it rests on.

    Losses f_i are convex, `lipschitz` and `smoothness` bound each of them; at most `records` of them are summed and
    divided by this constant. `noise` is the standard deviation on the mean gradient. `strong_convexity` is that of a
    public regulariser. `diameter` bounds the convex domain that is projected onto. `batches` are visited in a fixed
    cyclic order.

    >>> found = last_iterate(
    ...     steps=1000,
    ...     step_size=1,
    ...     noise="0.003",
    ...     lipschitz=1,
    ...     smoothness="0.25",
    ...     strong_convexity="0.01",
    ...     records=10_000,
    ...     relation="add-remove",
    ... )
    >>> float(found.mu)  # composition of all steps has 1.05409
    0.47020
    """
    for name in other:
        raise HypothesisError(f"{name}={shown(other[name])}: {REFUSED.get(name, 'last_iterate has no such word')}")
    stated = Relation.read(relation)
    if stated.clipping is None:
        raise InputError("relation='any' does not say what a record moves; choose 'add-remove' or 'replace-one'")
    count, eta = int(_STEPS.check("steps", steps)), POSITIVE.check("step_size", step_size)
    sigma, slope = POSITIVE.check("noise", noise), POSITIVE.check("lipschitz", lipschitz)
    smooth, convex = (
        NONNEGATIVE.check("smoothness", smoothness),
        NONNEGATIVE.check("strong_convexity", strong_convexity),
    )
    size, parts = int(COUNT.check("records", records)), int(COUNT.check("batches", batches))
    if size % parts:
        raise InputError(f"batches={parts} must divide records={size}: every batch is divided by the same constant")
    factor = max(abs(1 - eta * convex), abs(1 - eta * (convex + smooth)))
    if factor > 1:
        raise HypothesisError(
            f"step_size={eta} is more than 2 / (strong_convexity + smoothness): a step may drive weights apart; make it smaller"
        )
    shift = stated.clipping * eta * slope / Fraction(size, parts)
    deviation = eta * sigma
    whole = None if diameter is None else POSITIVE.check("diameter", diameter)
    if parts > 1 and whole is not None:
        raise HypothesisError("diameter= is proved for full batches only; leave it away, or give batches=1")
    with BALLS.at(BITS):
        if parts > 1:
            square = cyclic_square(factor, count, parts, shift)
        else:
            square = full_square(factor, count, shift)
            if whole is not None:
                square = min(square, bounded_square(factor, count, shift, whole), key=lambda ball: float(ball.upper()))
        mu = (square.sqrt() / BALLS.number(deviation)).upper()
        number = Exact(decimal_above(at_least(mu), DIGITS))
    said = (
        f"only the last of {count} gradient steps is released, each on the same convex losses divided by {size // parts}, with "
        f"lipschitz {slope}, smoothness {smooth}, strong convexity {convex} of a public regulariser, step size {eta}, noise "
        f"{sigma}, {_domain(whole)}{_order(parts)}; nothing is clipped, and the start is public"
    )
    return MECHANISMS["GaussianDP"](mu=number, relation=stated, assumed=said)  # type: ignore[call-arg]


def _domain(diameter: Exact | None) -> str:
    return "any domain" if diameter is None else f"a convex domain of diameter {diameter}"


def _order(batches: int) -> str:
    return "" if batches == 1 else f", {batches} batches in a fixed cyclic order that no record changes"


def full_square(c: Fraction, steps: int, shift: Fraction) -> Any:
    """mu^2 sd^2 = s^2 (1 - c^T)(1 + c) / ((1 + c^T)(1 - c)); T s^2 for c = 1."""
    square = BALLS.number(shift) ** 2
    if c == 1:
        return square * steps
    power = BALLS.number(c) ** steps
    return square * (1 - power) * BALLS.number(1 + c) / ((1 + power) * BALLS.number(1 - c))


def bounded_square(c: Fraction, steps: int, shift: Fraction, diameter: Fraction) -> Any:
    """(c^n D + s (1 - c^n) / (1 - c))^2 (1 - c^2) / (1 - c^{2n}) at a good n <= T; (D + s n)^2 / n for c = 1."""
    n = np.unique(np.geomspace(1, steps, min(steps, SCANNED)).round()).astype(np.float64)
    slow, s, d = float(c), float(shift), float(diameter)
    with np.errstate(all="ignore"):
        power = slow**n
        grown = s * n if c == 1 else s * (1 - power) / (1 - slow)
        spread = n if c == 1 else (1 - power**2) / (1 - slow**2)
        value = (power * d + grown) ** 2 / spread
    best = int(n[np.nanargmin(np.where(np.isfinite(value), value, np.inf))])
    s_ball, d_ball = BALLS.number(shift), BALLS.number(diameter)
    if c == 1:
        return (d_ball + s_ball * best) ** 2 / best
    exact = BALLS.number(c) ** best
    moved = exact * d_ball + s_ball * (1 - exact) / BALLS.number(1 - c)
    return moved**2 * BALLS.number(1 - c * c) / (1 - exact**2)


def cyclic_square(c: Fraction, steps: int, batches: int, shift: Fraction) -> Any:
    """Return the largest mu^2 sd^2 over the places of a record in a cyclic order.

    Noise may hide a shift later than it came, never earlier: SUM a^2 is least along the greatest convex minorant of the points
    (tau_k, S_k), tau_k = SUM c^{2(T-i)}, S_k = SUM c^{T-i} s_i over i <= k. Floats choose its corners, balls check all points.
    """
    if steps * batches > MOST_PLACES:
        raise InputError(
            f"steps times batches is {steps * batches}; at most {MOST_PLACES} are looked at, so give fewer"
        )
    one = BALLS.number(c)
    powers = [one**0]
    for _ in range(steps):
        powers.append(powers[-1] * one)
    weights = [powers[steps - i] for i in range(1, steps + 1)]  # c^{T-i}
    tau = _sums([w * w for w in weights])
    found = []
    for place in range(batches):
        moved = BALLS.number(shift)
        total = _sums([w * moved if i % batches == place else BALLS.number(0) for i, w in enumerate(weights)])
        found.append(_minorant_square(tau, total))
    return max(found, key=lambda ball: float(ball.upper()))


def _sums(values: list[Any]) -> list[Any]:
    sums = [BALLS.number(0)]
    for value in values:
        sums.append(sums[-1] + value)
    return sums


def _minorant_square(tau: list[Any], total: list[Any]) -> Any:
    """Return SUM (dS)^2 / d tau over the edges of the convex minorant; all points are checked to lie above it."""
    x, y = np.array([float(t) for t in tau]), np.array([float(t) for t in total])
    corners = _corners(x, y)
    while True:
        low = _below(corners, tau, total)
        if low is None:
            break
        corners = sorted({*corners, low})  # balls see a point below the edge that floats chose: it becomes a corner
    square = BALLS.number(0)
    for i, j in pairwise(corners):
        width = tau[j] - tau[i]
        if float(width.upper()) > 0:
            square += (total[j] - total[i]) ** 2 / width
    return square


def _corners(x: np.ndarray[Any, Any], y: np.ndarray[Any, Any]) -> list[int]:
    """Return the corners of the greatest convex minorant, in floats."""
    kept: list[int] = []
    for i in range(len(x)):
        if kept and x[i] <= x[kept[-1]] and i != len(x) - 1:
            continue
        while len(kept) > 1:
            a, b = kept[-2], kept[-1]
            if (y[b] - y[a]) * (x[i] - x[a]) >= (y[i] - y[a]) * (x[b] - x[a]):
                kept.pop()
            else:
                break
        kept.append(i)
    return kept


def _below(corners: list[int], tau: list[Any], total: list[Any]) -> int | None:
    """Return a point that is not proved to lie on or above the edges; None if there is none."""
    for a, b in pairwise(corners):
        for i in range(a + 1, b):
            edge = (total[b] - total[a]) * (tau[i] - tau[a]) - (total[i] - total[a]) * (tau[b] - tau[a])
            if float(edge.upper()) > 1e-60 * float(abs(total[b]).upper() + 1):
                return i
    return None
