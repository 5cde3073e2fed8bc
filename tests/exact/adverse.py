"""Laws of a few points in floats, and what may be true of them: numbers moved by as much as they may be wrong."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from flint import acb, arb

from cumulant.losses.float_rule import FloatRule
from cumulant.numerics.arithmetic import Array
from cumulant.numerics.enclosure import Enclosure
from cumulant.numerics.rounding import U


def rule_of(
    losses: Any, weights: Any, moved: Any = 0.0, heavier: Any = 0.0, scale: float = 0.0, error: float = 0.0
) -> FloatRule:
    """Points with the radii of their losses and weights."""
    x, w = np.array(losses, dtype=np.float64), np.array(weights, dtype=np.float64)
    radii = [np.broadcast_to(np.asarray(each, dtype=np.float64), x.shape).copy() for each in (moved, heavier)]
    return FloatRule(Enclosure(x, radii[0]), Enclosure(w, radii[1]), np.arange(x.size) + 0.5, scale, error, error)


@dataclass(frozen=True)
class Wrong:
    """By how much of itself each number is wrong: phases, sines, sums over points, the whole mass, quotients, logarithms.

    Losses and weights are wrong by these parts of their radii, M(lam + iu) and M(lam) by this part of the error of the rule.
    """

    losses: float = 0.0
    weights: float = 0.0
    phase: float = 0.0
    sine: float = 0.0
    dots: float = 0.0
    whole: float = 0.0
    quotient: float = 0.0
    quadrature: float = 0.0
    logarithm: float = 0.0


def _signs(losses: Array) -> Iterator[Array]:
    """Directions in which points may be moved."""
    for pattern in (np.ones(losses.size), np.where(losses < 0, -1.0, 1.0)):
        yield pattern
        yield -pattern


def _transform(rule: FloatRule, u: float, wrong: Wrong, signs: Array) -> tuple[Any, Any]:
    """phi and M(lam) e^-scale, as they may be."""
    total, mass = acb(0), arb(0)
    for x, d, w, r, s in zip(
        rule.losses.mid, rule.losses.radius, rule.weights.mid, rule.weights.radius, signs, strict=True
    ):
        weight = arb(w) + arb(s) * wrong.weights * arb(r)
        y = arb(u) * (arb(x) + arb(s) * wrong.losses * arb(d)) * (1 + arb(s) * wrong.phase)
        sine, half = y.sin() * (1 + arb(s) * wrong.sine), (y / 2).sin() * (1 + arb(s) * wrong.sine)
        mass += weight
        total += weight * acb(-2 * half * half, sine) * (1 + arb(s) * wrong.dots)
    side = arb(signs[0])
    mass = mass * (1 - side * wrong.whole) - side * wrong.quadrature * arb(rule.error)
    value = total / mass * (1 + side * wrong.quotient)
    # M(lam + iu) = M(lam) + what was summed, and is wrong the other way
    return 1 + value + 2 * side * wrong.quadrature * arb(rule.error) / mass, mass


def farthest(rule: FloatRule, u: float, found: complex, wrong: Wrong) -> float:
    """The largest |phi e^-found - 1| over what phi may be."""
    worst = 0.0
    for signs in _signs(rule.losses.mid):
        phi, _ = _transform(rule, u, wrong, signs)
        if wrong.logarithm:
            a, b = phi.real - 1, phi.imag
            gain, side = 2 * a + a * a + b * b, arb(signs[0])
            size = 2 * abs(a) + a * a + b * b
            real = (gain.log1p() * (1 + side * wrong.logarithm) + side * 3 * U * size / (1 + gain)) / 2
            phi = acb(real, phi.log().imag * (1 + side * wrong.logarithm)).exp()
        off = abs(phi * acb(-found.real, -found.imag).exp() - 1)
        worst = max(worst, float(off.upper()))
    return worst


def mass_off(rule: FloatRule, cgf: float, wrong: Wrong) -> float:
    """The largest |log M(lam) - cgf| over what M may be."""
    return max(
        float(abs(arb(rule.scale) + _transform(rule, 0.0, wrong, signs)[1].log() - arb(cgf)).upper())
        for signs in _signs(rule.losses.mid)
    )


def log_sum(spectrum: Any, epsilon: float, times: float, power: int = 1, **wrong: float) -> float:
    """log of the sum along a line of exact numbers, each term as large as it may be."""
    lam, total = arb(spectrum.choice.lam), arb(0)
    for m, (u, phi) in enumerate(zip(spectrum.frequencies, spectrum.log_phi, strict=True)):
        z, found = acb(lam, arb(float(u))), []
        for s in (-1, 1):
            exponent = arb(times) * acb(arb(phi.real), arb(phi.imag)) * (1 + s * arb(wrong.get("exponent", 0.0)))
            turn = acb(0, -arb(float(u)) * arb(epsilon) * (1 + s * arb(wrong.get("turn", 0.0))))
            found.append(((exponent + turn).exp() / (z * (1 + z)) ** power).real)
        size = arb.max(*found)
        total += (1 if m == 0 else 2) * (size + abs(size) * arb(wrong.get("term", 0.0)))
    value = arb(times) * arb(spectrum.cgf) - lam * arb(epsilon) - arb(spectrum.choice.period).log() + total.log()
    assert value.rad() < 1e-20
    return math.nextafter(float(value.mid()), -math.inf)
