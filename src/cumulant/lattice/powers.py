"""The transforms of all rounds at the frequencies of one line, in balls: what every line is made of."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from cumulant.lattice.silence import Kind, Loud, Slow
from cumulant.numerics.arithmetic import BALLS
from cumulant.pairs.strip import whole_rule
from cumulant.pairs.transform import Rule, Transform

Kinds = Sequence[tuple[Transform, int]]

MOST_WORK = 1_000_000
"""Frequencies times nodes: about a second, with what their balls take."""


@dataclass(frozen=True, slots=True)
class Choice:
    """What floats have chosen: the order lam, the period T, the exponents b of silence and B of the images; a guess of epsilon.

    Every choice is valid; a bad one makes balls wide, or the proof of silence fail.
    """

    lam: float
    period: float
    silence: float
    images: float
    epsilon: float
    log_delta: float
    outer: float
    """The order t > lam by which images on the right are bounded."""

    bits: int
    cost: float = 0.0
    """About the number of its frequencies."""


def powers(
    known: Sequence[Kind], choice: Choice, width: Any, count: int, last: float, work: int
) -> tuple[list[Any], int]:
    """The product of all M_i(z_m)^k_i for m = 0, ..., count, and the number of nodes; `Slow` where that exceeds the work."""
    from flint import acb

    if count > work:
        raise Slow(f"a proof would take {count:,} frequencies")
    values, nodes = [acb(1)] * (count + 1), 0
    for kind in known:
        rule = _rule(kind, choice.lam, last, kind.log_mass - choice.silence - math.log(kind.times) - 6)
        nodes += rule.size
        if nodes * count > work:
            raise Slow(f"a proof would take {count:,} frequencies at {nodes:,} nodes")
        values = [value * one**kind.times for value, one in zip(values, transforms(rule, width, count), strict=True)]
    return values, nodes


def leaked(kinds: Kinds) -> Any:
    """The probability that some loss is infinite: 1 - PROD (1 - leak_i)^k_i."""
    from flint import arb

    leaks = [(each.leak(), times) for each, times in kinds if not each.leak().is_zero()]
    return -sum((times * (-leak).log1p() for leak, times in leaks), start=arb(0)).expm1()


def outer(kinds: Kinds, choice: Choice, square: Fraction) -> Any:
    """M(t) of all rounds as a ball, infinite where it is out of reach."""
    from flint import arb

    t = BALLS.number(choice.outer)
    total = ((t + t * t) * BALLS.number(square) / 2).exp()
    try:
        for each, times in kinds:
            if each.square is None:
                total *= _mass(each, choice.outer, -30.0 - math.log(times))[0] ** times
    except OverflowError:  # then nothing is known from below
        return arb("inf")
    return total


def right_tail(t: Any, mass: Any, epsilon: Any) -> Any:
    """c(t) M(t) e^{-t eps} >= d(eps),  c(t) = t^t / (1+t)^{1+t}."""
    return (t * t.log() - (1 + t) * (1 + t).log() - t * epsilon).exp() * mass


def squared(kinds: Kinds) -> Fraction:
    """SUM k t^2 of the Gaussians without a sample among the kinds."""
    return sum((each.square * times for each, times in kinds if each.square is not None), start=Fraction(0))


def found_kind(each: Transform, times: int, choice: Choice) -> Kind:
    """One kind of round at the order of the line."""
    mass, atoms = _mass(each, choice.lam, -choice.silence - math.log(times) - 6)
    if not (mass.is_finite() and mass > 0):
        raise Loud("the transform of one round is not finite")
    return Kind(times, mass, float(mass.log().mid()), each.mixture(), atoms)


def _mass(each: Transform, lam: float, log_error: float) -> tuple[Any, Rule | None]:
    """M(lam) as a ball, at a real order, and the atoms where it is made of them."""
    law = each.mixture()
    rule = each.atoms(lam, log_error) if law is None else whole_rule(law, lam, 0.0, log_error)
    if rule is None:
        raise Loud("a law without density and without atoms has no line")
    return rule.mass(), rule if law is None else None


def _rule(kind: Kind, lam: float, last: float, goal: float) -> Rule:
    """The law up to the last frequency."""
    if kind.law is not None:
        return whole_rule(kind.law, lam, last, goal)
    if kind.atoms is None:
        raise Loud("a law without density and without atoms has no line")
    return kind.atoms


def transforms(rule: Rule, width: Any, count: int) -> list[Any]:
    """M at lam + i m width for m = 0, ..., count: coarse times fine phases, in one product of matrices."""
    from flint import acb, acb_mat, arb

    error = rule.error
    blur = acb(error * arb(0, 1), error * arb(0, 1))
    fine = math.isqrt(count) + 1
    coarse = -(-(count + 1) // fine)
    losses = [loss for panel in rule.panels for loss in panel.losses]
    found = [acb(0)] * (coarse * fine)
    for side in ("plus", "minus"):
        weights = [weight for panel in rule.panels for weight in getattr(panel, side)]
        points = list(zip(losses, weights, strict=True)) if weights else []
        if side == "plus":
            points = points + rule.atoms
        if not points:
            continue
        steps = [acb(0, width * loss).exp() for loss, _ in points]
        leaps = [acb(0, width * fine * loss).exp() for loss, _ in points]
        rows: list[Any] = []
        at = [acb(weight) for _, weight in points]
        for _ in range(coarse):
            rows += at
            at = [a * leap for a, leap in zip(at, leaps, strict=True)]
        columns: list[Any] = []
        for one in steps:
            power = acb(1)
            for _ in range(fine):
                columns.append(power)
                power *= one
        product = acb_mat(coarse, len(points), rows) * acb_mat(len(points), fine, columns)
        entries = product.entries()
        if side == "minus":
            entries = [entry.conjugate() for entry in entries]
        found = [a + b for a, b in zip(found, entries, strict=True)]
    return [value + blur for value in found[: count + 1]]
