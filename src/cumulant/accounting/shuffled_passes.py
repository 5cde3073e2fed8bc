"""Runs with passes over shuffled batches: what their secret permutations save, and what they cannot save.

Every pass is replaced by a step that dominates it but for a slack. The steps of all passes and of everything else are composed,
and the slacks, times 1 + e^epsilon, are added once at the end (docs/shuffled-batches.md, several epochs).
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from fractions import Fraction

from cumulant.accounting.indirect_routes import SHUFFLED
from cumulant.accounting.question import Question
from cumulant.accounting.rounds import rounds as rounds_of
from cumulant.accounting.run import Component, RunRecord
from cumulant.conversion.query import Answer, Query
from cumulant.exact import answer
from cumulant.exact.limits import Limits, limits_of
from cumulant.exact.rounds import Round, Rounds, StatedSteps
from cumulant.exact.shuffled_batches import SHIFTS
from cumulant.losses.grid import Step, Terms
from cumulant.numerics.rounding import MANY, raised, rounded_down
from cumulant.pairs.pair import Pair

_ITERATIONS = 8
"""Tries to find an epsilon whose slack leaves enough of delta; the slack changes little from one to the next."""
_CLOSE = 2e-4
"""The part by which an epsilon is raised before its slack is taken: the next answer is then below it."""
_CHOICES = 4
"""Times that eps0 is chosen where epsilon is given; measured: the third one changes delta by a tenth at most."""
_NATS = 0.25
"""Nats between the slacks that are tried; chosen by hand: the least delta is flat."""
_MOST_NATS = 92.0
"""Nats of the smallest slack that is tried, about 1e-40; chosen by hand, for time."""
_TINY = 1e-30
"""Deltas below it are not searched further: laws that reach so far take seconds (measured)."""
_STRIDES = (8, 4, 2, 1)
"""Slacks by which the search moves; powers of two, because a plateau is left by the first one."""
_HALVINGS = 6
"""Times that epsilon is halved until a grid answers, far out in the tails; chosen by hand."""
_PLACES = 1024
"""Places of smaller epsilons from which a delta is carried over; finer ones change the sixth digit."""
_HOPELESS = Fraction(999, 1000)
"""A delta that is as good as 1: options that need more are not searched. With 10,000 passes that took minutes (measured)."""
_LARGEST_EXPONENT = 700.0
"""Epsilon in nats up to which floats hold e^epsilon; derived from their largest number, e^709."""
_FIRST_DELTA = 1e-8
"""The delta for which eps0 is chosen first where epsilon is given; the second choice is for what that gave."""


def amplified_answer(run: RunRecord, question: Question, below: float) -> Answer | None:
    """Return what shuffling proves if that is less than `below`; None where it proves no less, or nothing."""
    if not _limits(run).largest:  # no round has a finite loss above 0, so there is nothing to amplify
        return None
    find = _epsilon if question.asked == "delta" else _delta
    value = find(run, question, below)
    if value is None or not value < below:
        return None
    return Answer(value, None, "estimated" if run.estimated else "bounded", bound=question.row, way=SHUFFLED.name)


def _epsilon(run: RunRecord, question: Question, below: float) -> float | None:
    delta = question.value
    if not 0 < delta < 1:
        return None
    best, given = math.inf, rounded_down(delta)
    for rounds, slack in _options(run, math.log(given)):
        found = _fixed_point(rounds, slack, given, question, min(best, below))
        if best < math.inf and slack > 0 and not found < best:
            break  # eps0 only grows from here on
        best = min(best, found)
    return best if best < math.inf else None


def _fixed_point(rounds: Rounds, slack: float, delta: float, question: Question, most: float) -> float:
    """Return an epsilon with delta(epsilon) + (1 + e^epsilon) slack <= delta; +inf where none is found below `most`.

    The profile falls and the slack grows, so that the least such epsilon is the limit of a sequence that grows from 0.
    """
    guess = 0.0
    for _ in range(_ITERATIONS):
        rest = delta - _grown_slack(slack, guess)
        if not rest > 0:
            return math.inf
        exact = Fraction(rest * (1 - MANY))
        found = answer.upper_end(rounds, Query("delta", exact), float(question.accuracy), theorem_b=False).value
        if found <= guess:
            return found
        if slack == 0:
            return found
        guess = found * (1 + _CLOSE) + 1e-12
        if guess > most:
            return math.inf
    return math.inf


def _grown_slack(slack: float, epsilon: float) -> float:
    """Return slack (1 + e^epsilon), rounded up; inf where floats cannot hold e^epsilon.

    A slack below the smallest float of full precision counts as that one.
    """
    if slack == 0:
        return 0.0
    if epsilon > _LARGEST_EXPONENT:
        return math.inf
    return float(raised(max(slack, sys.float_info.min) * (1 + math.exp(epsilon)), MANY))


def confirmed_delta(run: RunRecord, question: Question, aim: float) -> float:
    """Return a delta at the epsilon of the question, with an eps0 that is chosen for a delta near `aim`."""
    epsilon, best = rounded_down(question.value), 1.0
    for each in (aim, aim / 2):
        for rounds, slack in _options(run, math.log(each)) if 0 < each < 1 else ():
            best = min(best, _Option(rounds, slack, float(question.accuracy)).delta(epsilon))
            if best <= aim:
                return best
    return min(best, _delta(run, question, best) or 1.0)


def _delta(run: RunRecord, question: Question, below: float) -> float | None:
    """Return the least delta over all eps0 at the epsilon of the question, or one that a smaller epsilon proves.

    Returns None if nothing below the known delta can be proved.
    """
    epsilon, known = rounded_down(question.value), _limits(run)
    search, best = _Search(run, float(question.accuracy)), 1.0
    if search.is_hopeless(epsilon):
        return None
    for first in (epsilon, epsilon / 2):  # where nothing is gained at epsilon a smaller one may still carry
        place = first
        for _ in range(_CHOICES):
            if (option := search.least(place)) is None:
                return None
            found, start = option.carried(epsilon, known)
            best = min(best, found)
            if start == place:
                break
            place = start
        if best < below:
            return best
    return None


@dataclass(slots=True)
class _Option:
    """The rounds of a run with its passes replaced, and the slack that is to be added, divided by 1 + e^epsilon."""

    rounds: Rounds
    slack: float
    accuracy: float
    _known: dict[float, float] = field(default_factory=dict)

    def delta(self, epsilon: float) -> float:
        """Return delta(epsilon) + (1 + e^epsilon) slack; where no grid answers, that of a smaller epsilon, which holds too."""
        if epsilon not in self._known:
            place, found = epsilon, 1.0
            for _ in range(_HALVINGS):
                found = answer.upper_end(
                    self.rounds, Query("epsilon", Fraction(place)), self.accuracy, theorem_b=False
                ).value
                if found < 1:
                    break
                place /= 2
            self._known[epsilon] = min(float(raised(found + _grown_slack(self.slack, place), MANY)), 1.0)
        return self._known[epsilon]

    def is_hopeless(self, epsilon: float) -> bool:
        """Return True if a delta beside the slack that is nearly 1 needs a larger epsilon."""
        query = Query("delta", _HOPELESS)
        return answer.upper_end(self.rounds, query, self.accuracy, theorem_b=False).value > epsilon

    def added(self, epsilon: float) -> float:
        """Return the part of delta that is slack."""
        return _grown_slack(self.slack, epsilon)

    def carried(self, epsilon: float, known: Limits) -> tuple[float, float]:
        """Return the least delta at epsilon that a smaller epsilon proves, and that smaller epsilon.

        delta is convex in e^epsilon, and it is at most the leak at the largest loss: chords to that point are bounds. As the
        slack grows with epsilon, the bound is convex too, and a bisection finds the best chord.
        """
        unit = known.largest if known.largest < math.inf else 2.0 ** math.ceil(math.log2(max(epsilon, 1e-300)))
        last = min(math.floor(epsilon / unit * _PLACES), _PLACES - 1)

        def chord(place: int) -> float:
            start = place * unit / _PLACES
            return known.chord(self.delta(start), start, epsilon) if start < epsilon else self.delta(epsilon)

        own = self.delta(epsilon)
        if last < 1 or own < _TINY or min(chord(last - last // 32), chord(last // 2)) >= own:
            return own, epsilon
        low, high = 0, last
        while low < high:
            middle = (low + high) // 2
            low, high = (low, middle) if chord(middle) <= chord(middle + 1) else (middle + 1, high)
        found = chord(low)
        return (found, low * unit / _PLACES) if found < own else (own, epsilon)


def _limits(run: RunRecord) -> Limits:
    """Return the largest loss of the run without amplification, and its leak."""
    rounds, _ = rounds_of(run)
    return Limits(1.0, math.inf, 1.0) if rounds is None else limits_of(rounds)


@dataclass(slots=True)
class _Search:
    """The search for the slack with the least delta, among slacks that are the same for every epsilon.

    A smaller slack means a larger eps0, fewer clones and a larger delta beside the slack.
    """

    run: RunRecord
    accuracy: float
    _found: dict[int, tuple[_Option, ...]] = field(default_factory=dict)
    _free: dict[tuple[Terms, ...], _Option] = field(default_factory=dict)
    _last: int = round(_MOST_NATS / _NATS)

    def least(self, epsilon: float) -> _Option | None:
        """Return the option with the least delta at epsilon; None if the passes have no option.

        Where the slack and the delta beside it are equal, their sum is at most twice the least one. The search starts there.
        """
        place = self._crossing(epsilon)
        best = None if place is None else self._best(place, epsilon)
        if place is None or best is None:
            return None
        for stride in _STRIDES:
            for step in (-stride, stride):
                while (other := self._better(place + step, epsilon, best)) is not None:
                    best, place = other, place + step
        return best

    def is_hopeless(self, epsilon: float) -> bool:
        """Return True if no slack leaves a delta clearly below 1.

        The largest slack has the most clones, so that the delta beside it is the least; without a slack it is another one.
        """
        options = self._options(1)
        return bool(options) and all(option.is_hopeless(epsilon) for option in options)

    def _crossing(self, epsilon: float) -> int | None:
        """Return the place of a slack that is about the delta beside it; None if the passes have no option."""
        low, high, place, stride = 0, self._last, round(-math.log(_FIRST_DELTA) / _NATS), 4 * _STRIDES[0]
        while high - low > _STRIDES[0]:
            option = self._best(place, epsilon)
            if option is None:
                return None
            if option.delta(epsilon) < 2 * option.added(epsilon):
                low = place
            else:
                high = place
            stride *= 2
            place = (
                min(low + stride, (low + high) // 2) if high == self._last else max(high - stride, (low + high) // 2)
            )
        return min(max(high, 1), self._last - 1)

    def _better(self, place: int, epsilon: float, best: _Option) -> _Option | None:
        """Return the option of another place if its delta is smaller, or None."""
        if not 0 < place < self._last or not best.delta(epsilon) > _TINY:
            return None
        other = self._best(place, epsilon)
        return other if other is not None and other.delta(epsilon) < best.delta(epsilon) else None

    def _best(self, place: int, epsilon: float) -> _Option | None:
        """Return the option of a place with the least delta; None if there is none."""
        return min(self._options(place), key=lambda option: option.delta(epsilon), default=None)

    def _options(self, place: int) -> tuple[_Option, ...]:
        """Return the options of a place; those without a slack are the same at many places, and have one delta."""
        if place not in self._found:
            found: list[_Option] = []
            for rounds, slack in _options(self.run, -place * _NATS, shifts=(0.0,)):
                option = _Option(rounds, slack, self.accuracy)
                found.append(option if slack > 0 else self._free.setdefault(tuple(rounds.upper()), option))
            self._found[place] = tuple(found)
        return self._found[place]


def _options(run: RunRecord, log_delta: float, shifts: tuple[float, ...] = SHIFTS) -> Iterator[tuple[Rounds, float]]:
    """Yield the rounds of the run with its passes replaced, and the sum of their slacks divided by 1 + e^epsilon.

    The n-th option of every pass is taken together; a pass that has fewer options takes its last one.
    """
    passes = [part for part in run.sorted if part.batches is not None]
    times = sum(part.times for part in passes)
    listed: dict[int, list[tuple[Step, float]]] = {}
    for part in passes:
        if part.batches is None or part.pair is None:
            return
        listed[id(part)] = []
        iterator = part.batches.options(part.pair, log_delta, times, shifts)
        listed[id(part)] = list(iterator)
        if not listed[id(part)]:
            return
    for place in range(max(len(options) for options in listed.values())):
        chosen = {key: options[min(place, len(options) - 1)] for key, options in listed.items()}

        def instead(part: Component, pair: Pair, chosen: dict[int, tuple[Step, float]] = chosen) -> Round | None:
            return Round(pair, StatedSteps((chosen[id(part)][0],))) if id(part) in chosen else None

        found, _ = rounds_of(run, instead)
        if found is not None:
            yield found, sum(part.times * chosen[id(part)][1] for part in passes)


def witnessed_rounds(run: RunRecord) -> Rounds | None:
    """Return the run with data sets that show what it needs; None where a part is not known to need anything."""
    if len(run.groups) > 1 or any(part.surrogate and part.batches is None for part in run.nested()):
        return None
    alone = replace(run, parts=tuple(replace(part, surrogate=False) for part in run.parts))

    def instead(part: Component, pair: Pair) -> Round | None:
        if part.batches is None:
            return None
        return Round(pair, StatedSteps(pair.unsampled_steps(), tuple(part.batches.witnesses(pair))))

    return rounds_of(alone, instead)[0]
