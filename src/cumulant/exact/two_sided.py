"""The exact answer from both sides: an epsilon or delta that is certainly enough, and one that is certainly needed."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

from cumulant.conversion.certificate import at_least
from cumulant.exact import search
from cumulant.exact.rounds import Round, Rounds
from cumulant.exact.search import Bound
from cumulant.numerics.arithmetic import BALLS
from cumulant.numerics.rounding import rounded_down, rounded_up

_CLOSED = "closed form"
_LATTICE = "lattice"
_CONE = "cone"
_QUICK = 16
_FARTHEST = Fraction(10**6)


@dataclass(frozen=True, slots=True)
class Found:
    """A number, how it was reached (closed form, lattice or cone), the order of the tilting and the lattice."""

    value: float
    way: str
    rigour: str
    order: float | None = None
    width: float | None = None
    points: int = 0


@dataclass(frozen=True, slots=True)
class Witness:
    """A number that no smaller claim can undercut, and the neighbouring data sets that show it."""

    value: float
    name: str


def epsilon(rounds: Rounds, delta: Fraction, accuracy: float, cone: bool = True) -> Found:
    """The least epsilon of what is known at this exact delta in (0, 1); `cone` admits Theorem B."""
    log_delta = math.log(rounded_down(delta))
    single = _single(rounds)
    if single is not None:
        return _closed_epsilon(single, delta)
    if _distance(rounds) <= rounded_down(delta):  # the total variation distance adds up
        return Found(0.0, _LATTICE, _rigour(rounds))
    best = search.NOTHING
    for terms in rounds.upper():
        other = search.epsilon(terms, log_delta, accuracy * (_QUICK if best.value > 0 else 1), True)
        if other.value > best.value > 0:  # a coarse grid did not show that this direction is the smaller one
            other = search.epsilon(terms, log_delta, accuracy, True)
        best = max(best, other, key=lambda bound: bound.value)
    found = _found(best, _LATTICE, rounds)
    if _pure(rounds) < found.value:
        found = Found(_pure(rounds), _LATTICE, _rigour(rounds))
    reference = rounds.cone() if cone else None
    if reference is not None:
        by_cone = _found(search.cone_epsilon(reference, log_delta, accuracy), _CONE, rounds)
        found = min(found, by_cone, key=lambda one: one.value)
    return found


def delta(rounds: Rounds, epsilon: Fraction, accuracy: float) -> Found:
    """The least delta of what is known at this exact epsilon."""
    single = _single(rounds)
    if single is not None:
        return Found(_closed_delta(single, epsilon), _CLOSED, "proved")
    asked = rounded_down(epsilon)
    bounds = [search.delta(terms, asked, accuracy, True) for terms in rounds.upper()]
    found = _found(max(bounds, key=lambda bound: bound.value), _LATTICE, rounds)
    reference = rounds.cone()
    if reference is not None:
        by_cone = _found(search.cone_delta(reference, asked, accuracy), _CONE, rounds)
        found = min(found, by_cone, key=lambda one: one.value)
    most = min(_distance(rounds), 1.0)
    return found if found.value <= most else Found(most, _LATTICE, _rigour(rounds))


def lower_epsilon(rounds: Rounds, delta: Fraction, accuracy: float) -> Witness | None:
    """The largest epsilon that explicit neighbouring data sets need at this delta."""
    log_delta = math.log(rounded_up(delta))
    single = _single(rounds)
    if single is not None:
        found = _closed_epsilon(single, delta).value
        if math.isinf(found):
            return Witness(found, next(rounds.lower())[0])
        value = math.nextafter(found * (1 - 1e-9), 0.0)
        while value > 0 and _closed_delta(single, Fraction(value)) * (1 - 1e-12) <= delta:
            value = value * (1 - 1e-6) if value > 1e-300 else 0.0
        return Witness(value, next(rounds.lower())[0])
    best: Witness | None = None
    for name, terms in rounds.lower():
        value = search.epsilon(terms, log_delta, accuracy, False).value
        value = value if math.isfinite(value) else 0.0
        if best is None or value > best.value:
            best = Witness(value, name)
    return best


def _pure(rounds: Rounds) -> float:
    """The sum of the largest losses of all rounds, rounded up; +inf where a loss is unbounded."""
    if any(one.loss.leak for one, _ in rounds.parts):
        return math.inf
    largest = [(one.loss.reach(-math.inf), one.rate, times) for one, times in rounds.parts]
    return (1 + 1e-12) * sum(
        times * math.log1p(float(rate) * math.expm1(min(x, 700.0))) if x < 700 else math.inf
        for x, rate, times in largest
    )


def _found(bound: Bound, way: str, rounds: Rounds) -> Found:
    return Found(bound.value, way, _rigour(rounds), bound.order, bound.width, bound.points)


def _rigour(rounds: Rounds) -> str:
    return "estimated" if rounds.estimated else "bounded"


def _distance(rounds: Rounds) -> float:
    """The sum of the total variation distances of all rounds, rounded up."""
    return (1 + 1e-12) * sum(
        times * float(one.rate) * (one.loss.distance + one.loss.leak) for one, times in rounds.parts
    )


# ---- one round: delta = g d(e0) at epsilon = log(1 + g (e^e0 - 1))


def _single(rounds: Rounds) -> Round | None:
    """The only round, if there is just one and its profile is known in closed form."""
    ((one, times),) = rounds.parts if len(rounds.parts) == 1 else ((None, 0),)
    if one is None or times != 1 or one.poisson or one.pair is None or one.pair.estimated:
        return None
    return one


def _closed_epsilon(one: Round, delta: Fraction) -> Found:
    """The root of the profile in floats, moved up until balls say that delta is kept."""
    from cumulant.exact.saddle import solve

    pair, rate = one.pair, one.rate
    assert pair is not None
    room = math.log(rounded_down(delta / rate)) if delta < rate else 0.0
    start = solve(lambda e0: pair.log_profile(e0), -1.0, room, 1.0)[1] if room < 0 else 0.0
    if not math.isfinite(start):
        return Found(math.inf, _CLOSED, "proved")
    e0 = Fraction(start)
    for _ in range(60):
        with BALLS.at(256):
            kept = delta >= rate * max(at_least(pair.profile(e0, BALLS).upper()), Fraction(0))
            if kept:
                epsilon = (1 + BALLS.number(rate) * BALLS.number(e0).expm1()).log()
                return Found(rounded_up(max(at_least(epsilon.upper()), Fraction(0))), _CLOSED, "proved")
        e0 = e0 * (1 + Fraction(1, 2**50)) + Fraction(1, 2**1000)
    return Found(math.inf, _CLOSED, "proved")


def _closed_delta(one: Round, epsilon: Fraction) -> float:
    pair, rate = one.pair, one.rate
    assert pair is not None
    with BALLS.at(256):
        e0 = (1 + BALLS.number(epsilon).expm1() / BALLS.number(rate)).log()
        # e0 >= epsilon, and the profile falls: less will do where e^epsilon has no ball
        low = min(-at_least(-e0.lower()) if e0.is_finite() else epsilon, _FARTHEST)
        value = at_least((BALLS.number(rate) * pair.profile(max(low, Fraction(0)), BALLS)).upper())
        return min(rounded_up(max(value, Fraction(0))), 1.0)
