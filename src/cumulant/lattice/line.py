"""Exact answers along a vertical line, proved: floats search and choose, one evaluation in balls answers (docs/line.md).

None means that the line has no answer, or none in reasonable time, and that another way must give it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from fractions import Fraction
from functools import partial
from typing import Any

from cumulant.lattice.choosing import (
    Side,
    chosen,
    cone_delta,
    cone_epsilon,
    delta_guess,
    epsilon_guess,
    root,
    serves,
    sharing,
)
from cumulant.lattice.folded import folded, spacing_of
from cumulant.lattice.lattice import Terms, leak_of
from cumulant.lattice.rounds import Rounds
from cumulant.lattice.silence import Loud
from cumulant.lattice.spectrum import Enclosing, Kinds, spectrum
from cumulant.numerics.arithmetic import BALLS
from cumulant.numerics.rounding import at_least, rounded_down, rounded_up

_TRIES, _SECANTS = 40, 12
_LOOSER = math.exp(6.0)
"""Half of the margin of the exponent, which a guess may be wrong by."""

_SPARE = 20.0
"""What a spectrum that is shared may cancel beyond its own question."""

_FOLDED = 1e-9
"""The accuracy of a finite sum, which costs hardly more than a coarse one."""

_LARGEST = 10**6
"""Of epsilons; beyond it no line is worth its frequencies."""


@dataclass(frozen=True, slots=True)
class _Shared:
    """What several questions have in common: spectra by side, and at which number which side says less."""

    spectra: list[tuple[Side, Enclosing]] = field(default_factory=list)
    decisions: list[tuple[list[Side], Side | None, float, bool]] = field(default_factory=list)


_shared: ContextVar[_Shared | None] = ContextVar("shared", default=None)


@contextmanager
def shared() -> Iterator[None]:
    """Questions asked inside share their spectra: what one of them had built serves all that it is accurate enough for."""
    token = _shared.set(_Shared())
    try:
        with sharing():
            yield
    finally:
        _shared.reset(token)


@dataclass(frozen=True, slots=True)
class Proved:
    """A proved end, the order lam + 1 of the line, the number of its frequencies and the bits of its balls."""

    value: float
    order: float
    frequencies: int
    bits: int


def line_epsilon(rounds: Rounds, delta: Fraction, accuracy: float, cone: bool = True) -> tuple[Proved, bool] | None:
    """The least epsilon at this delta in (0, 1), proved from above, and whether Theorem B gave it."""
    return _least(
        rounds,
        cone,
        float(delta),
        lambda side: epsilon_guess(side, delta),
        lambda side: _epsilon(side, delta, accuracy),
    )


def line_delta(rounds: Rounds, epsilon: Fraction, accuracy: float, cone: bool = True) -> tuple[Proved, bool] | None:
    """The least delta at this epsilon, proved from above, and whether Theorem B gave it."""
    if epsilon > _LARGEST:
        return None
    return _least(
        rounds,
        cone,
        float(epsilon),
        lambda side: delta_guess(side, epsilon),
        lambda side: _delta(side, epsilon, accuracy),
    )


def line_lower_epsilon(rounds: Rounds, terms: Terms, kinds: Kinds, delta: Fraction, accuracy: float) -> Proved | None:
    """The epsilon that these neighbours need at this delta, proved from below; None where the line has no answer."""
    side = Side(terms, kinds)
    if rounds.estimated or not (_certain(side) or epsilon_guess(side, delta) is not None):
        return None
    return _epsilon(side, delta, accuracy, upper=False)


def line_lower_delta(rounds: Rounds, terms: Terms, kinds: Kinds, epsilon: Fraction, accuracy: float) -> Proved | None:
    """The delta that these neighbours need at this epsilon, proved from below."""
    side = Side(terms, kinds)
    if epsilon > _LARGEST or rounds.estimated or not (_certain(side) or delta_guess(side, epsilon) is not None):
        return None
    return _delta(side, epsilon, accuracy, upper=False)


def _least(
    rounds: Rounds,
    cone: bool,
    asked: float,
    guess: Callable[[Side], float | None],
    proved: Callable[[Side], Proved | None],
) -> tuple[Proved, bool] | None:
    """Of the profile, in all its directions, and Theorem B the one that floats say to be less, in balls."""
    profile, by_cone = _profile(rounds), _by_cone(rounds) if cone else None
    if profile is None or rounds.estimated:
        return None
    winner = _decided(profile, by_cone, asked, guess)
    if winner is None:
        return None
    if winner and by_cone is not None:
        found = proved(by_cone)
        return None if found is None else (found, True)
    results = [proved(side) for side in profile]
    known = [each for each in results if each is not None]
    return (max(known, key=lambda each: each.value), False) if known and len(known) == len(results) else None


def _decided(
    profile: list[Side], by_cone: Side | None, asked: float, guess: Callable[[Side], float | None]
) -> bool | None:
    """Whether Theorem B says less; None where floats see no line.

    Every decision is valid. Of questions that share, one between two that were decided alike is decided with them.
    """
    shared = _shared.get()
    decisions = [] if shared is None else [each[2:] for each in shared.decisions if each[:2] == (profile, by_cone)]
    below = max((each for each in decisions if each[0] <= asked), default=None)
    above = min((each for each in decisions if each[0] >= asked), default=None)
    if below is not None and above is not None and below[1] == above[1]:
        return below[1]
    if by_cone is None and all(_certain(side) for side in profile):
        return False
    guesses = [guess(side) for side in profile]
    least = None if by_cone is None else guess(by_cone)
    if any(each is None for each in guesses) or (by_cone is not None and least is None):
        return None
    found = least is not None and least < max(each for each in guesses if each is not None)
    if shared is not None:
        shared.decisions.append((profile, by_cone, asked, found))
    return found


def _certain(side: Side) -> bool:
    """Whether there is a line, however few rounds there are: a finite sum, or the decay of a Gaussian without a sample."""
    return bool(spacing_of(side.kinds)) or any(each.square for each, _ in side.kinds)


def _profile(rounds: Rounds) -> list[Side] | None:
    found = [(terms, kinds) for terms, kinds in rounds.lines()]
    return None if any(kinds is None for _, kinds in found) else [Side(terms, kinds or ()) for terms, kinds in found]


def _by_cone(rounds: Rounds) -> Side | None:
    terms, reference = rounds.cone(), rounds.cone_transforms()
    return None if terms is None or reference is None else Side(terms, *reference, cone=True)


# ---- what balls prove


def _built(side: Side, log_delta: float | None, epsilon: float | None, accuracy: float) -> Enclosing | None:
    """A spectrum that is accurate enough for the question: a shared one, or a new one."""
    shared = _shared.get()
    for where, found in () if shared is None else shared.spectra:
        if where == side and serves(side, found, log_delta, epsilon, accuracy):
            return found
    fine = accuracy if shared is None else accuracy * math.exp(-_SPARE)
    built = _new(side, log_delta, epsilon, fine)
    if built is not None and not serves(side, built, log_delta, epsilon, accuracy * _LOOSER):
        # the saddle point was a poor guess, as with few rounds or far out: once more, with room
        built = _new(side, log_delta, epsilon, fine * math.exp(-_SPARE)) or built
    if built is not None and shared is not None:
        shared.spectra.append((side, built))
    return built


def _new(side: Side, log_delta: float | None, epsilon: float | None, accuracy: float) -> Enclosing | None:
    spacing = 0.0 if side.cone else spacing_of(side.kinds)
    choice = chosen(side, log_delta, epsilon, min(accuracy, _FOLDED) if spacing else accuracy, spacing)
    if choice is None:
        return None
    try:
        with BALLS.at(choice.bits):
            if spacing:
                return folded(side.kinds, choice)
            return spectrum(side.kinds, choice, side.extra)
    except (Loud, ArithmeticError):
        return None


def _bounded_images(found: Enclosing) -> bool:
    """Whether the transform at the outer order, which a lower end asks for and keeps, is within reach."""
    try:
        with BALLS.at(found.choice.bits):
            return bool(found.images(BALLS.number(0)).is_finite())
    except ArithmeticError:
        return False


def _epsilon(side: Side, delta: Fraction, accuracy: float, upper: bool = True) -> Proved | None:
    leak = leak_of(side.terms)
    target = rounded_down(delta) - leak
    if not target > 0:
        return None
    found = _built(side, math.log(target), None, accuracy)
    if found is None or not (upper or _bounded_images(found)):
        return None
    choice = found.choice
    with BALLS.at(choice.bits):
        asked = BALLS.number(delta)
        if side.cone:
            start, gap = cone_epsilon(found.floats(2), math.log(target))
            exact = BALLS.number(gap)
            known = partial(found.cone, gap=exact)
        else:
            guess = root(found.floats(), math.log(target))
            start = math.nan if guess is None else guess
            known = partial(found.upper if upper else found.lower)
        start = _polished(known, start, asked, choice.lam)
        if not math.isfinite(start):
            return None
        if upper:
            value = _enough(lambda e: known(e) <= asked, start, choice.lam, accuracy)
        else:
            value = _needed(lambda e: known(e) > asked, start)
    return None if value is None else Proved(value, choice.lam + 1, found.frequencies, choice.bits)


def _polished(known: Callable[[Any], Any], start: float, asked: Any, lam: float) -> float:
    """Where the ball is at the number that is asked for, by secants: floats have no digits left where much cancels."""
    epsilon, before, slope = start, (math.nan, math.nan), -lam
    for _ in range(_SECANTS):
        if not math.isfinite(epsilon):
            return math.nan
        part = known(BALLS.number(epsilon)) / asked
        off = float(part.log().mid()) if part > 0 else math.nan
        if not math.isfinite(off):
            return epsilon
        if epsilon != before[0] and math.isfinite(before[1]) and off != before[1]:
            slope = min((off - before[1]) / (epsilon - before[0]), -lam / 16)
        before = epsilon, off
        after = max(epsilon - off / slope, 0.0)
        if abs(after - epsilon) <= 4e-16 * epsilon:
            break
        epsilon = after
    return epsilon


def _enough(holds: Callable[[Any], bool], start: float, lam: float, accuracy: float) -> float | None:
    """The least of some epsilons from a guess on of which balls say that it is enough, as a float."""
    if start <= 0:
        return 0.0 if holds(BALLS.number(0)) else _enough(holds, 1e-12 / lam, lam, accuracy)
    step = 2.0**-50
    epsilon = start
    for _ in range(_TRIES):
        if holds(BALLS.number(epsilon)):
            return epsilon
        epsilon, step = start + max(step * start, math.ulp(start)), 4 * step
        if step > max(accuracy, 1e-3):
            break
    return None


def _needed(holds: Callable[[Any], bool], start: float) -> float | None:
    """The largest of some epsilons from a guess down of which balls say that it is not enough; 0 where none is needed."""
    step = 2.0**-50
    epsilon = start
    for _ in range(_TRIES):
        if epsilon <= 0:
            return 0.0
        if holds(BALLS.number(epsilon)):
            return epsilon
        epsilon, step = start - max(step * start, math.ulp(start)), 4 * step
        if step > 1:
            break
    return None


def _delta(side: Side, epsilon: Fraction, accuracy: float, upper: bool = True) -> Proved | None:
    found = _built(side, None, float(epsilon), accuracy)
    if found is None or not (upper or _bounded_images(found)):
        return None
    choice = found.choice
    with BALLS.at(choice.bits):
        exact = BALLS.number(epsilon)
        if side.cone:
            _, gap = cone_delta(found.floats(2), float(epsilon))
            end = found.cone(exact, BALLS.number(gap))
        else:
            end = found.upper(exact) if upper else found.lower(exact)
        if not end.is_finite():
            return None
        value = rounded_up(at_least(end)) if upper else rounded_down(max(-at_least(-end), Fraction(0)))
    if not value > 0:  # from above nothing that floats can hold, from below nothing shown
        return None
    return Proved(min(value, 1.0), choice.lam + 1, found.frequencies, choice.bits)
