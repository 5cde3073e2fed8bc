"""Theorem W: adaptive rounds through a test function f_n, one order n per composition.

If a reference law T* has G* >= G of every triple at every x0, then E f_n(ratio / y0) <= E f_n(T*_1 ... T*_k / y0) for k
adaptive rounds and all y0, and (rho - R)_+ <= C n f_n(rho), so

    delta(eps) <= C E_P[ g_n(S - eps0); S > eps0 ],   g_n(d) = 1 - n/(n-1) e^-d + e^-nd/(n-1),   eps0 = eps - log R,
    C = 1/(1 - e^-nd),   R = n/(n-1) (1 - e^{(1-n)d}) C,   every d > 0        (docs/test-orders.md).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import TypeVar

import numpy as np

from cumulant.conversion.query import Query
from cumulant.exact import test_functions
from cumulant.exact.adaptive.constraints import Constraint, LaplaceConstraint, ReportConstraint, scaled_f
from cumulant.exact.adaptive.reference_law import Reference, propose_reference, reference
from cumulant.exact.adaptive.settings import THEOREM_W
from cumulant.exact.grid.fft import FAR, ComposedLaw, compose
from cumulant.exact.inversion import saddle
from cumulant.exact.rounds import Round, Rounds, RoundTypes
from cumulant.exact.test_functions import TestFunction, log_constant, log_ratio
from cumulant.losses.grid import Step, Terms
from cumulant.losses.transform import Transform
from cumulant.numerics.arithmetic import Array
from cumulant.numerics.rounding import MANY, next_above, rounded_down

ReferenceSearch = Callable[[Constraint, float, float], Reference | None]
"""Returns a reference for a constraint, an order n and tails of this exponent; None if it finds none."""

Found = TypeVar("Found")


# ---- which rounds


@dataclass(frozen=True, slots=True)
class Law:
    """The law that dominates one round type.

    `step` has its losses in floats, `transform` in balls if they are offered.

    `proved`: balls, not only floats, show that it dominates.
    """

    step: Step
    transform: Transform | None
    proved: bool
    times: int


@dataclass(frozen=True, slots=True)
class DominatedType:
    """One round type.

    It has the constraint of its triples, or a step that dominates it in profiles, and so for Theorem W.

    For two inputs in both orders the first dominates alone up to the order n = 1/2: then it is the `step`, beside a constraint.
    """

    constraint: Constraint | None
    step: Step | None
    transform: Transform | None
    """The transform of the step; None if it offers none."""
    times: int

    def law_at(self, order: float, lam: float, search: ReferenceSearch) -> Law | None:
        """Return a law that dominates at this order n, chosen for tails of exponent lam.

        Returns None if none is found.
        """
        if self.step is not None and (self.constraint is None or order <= THEOREM_W.critical_order):
            return Law(self.step, self.transform, True, self.times)
        found = None if self.constraint is None else search(self.constraint, order, lam)
        return None if found is None else Law(found, found.transform(), found.proved, self.times)


def _dominated_type(one: Round, times: int) -> DominatedType | None:
    """Return one round type; None if neither its triples nor a single step are known."""
    rate = one.scheme.triples()
    if rate is not None:
        extremes, law = one.pair.extremes(), one.pair.symmetric_law()
        if extremes is not None:
            constraint = ReportConstraint(extremes, rate)
            if extremes.against is extremes.for_it is None:
                pair, way = one.pair, "remove"
                return DominatedType(constraint, pair.upper_step(rate, way), pair.transform(rate, way), times)
            return DominatedType(constraint, None, None, times)
        if one.pair.query and law is not None:
            return DominatedType(LaplaceConstraint(law.scale, one.pair.query, rate), None, None, times)
    single = one.steps is not None and len(one.steps) == 1
    return DominatedType(None, one.step(0), one.transform(0), times) if single else None


def _dominated_types(rounds: Rounds) -> tuple[DominatedType, ...] | None:
    """Return all round types; None if one is unknown, or Theorem W would gain nothing."""
    if sum(times for _, times in rounds.parts) < THEOREM_W.fewest_rounds or rounds.estimated:
        return None
    found = [_dominated_type(one, times) for one, times in rounds.parts]
    round_types = tuple(round_type for round_type in found if round_type is not None)
    demanding = sum(round_type.constraint is not None for round_type in round_types)
    return round_types if len(round_types) == len(found) and 0 < demanding <= THEOREM_W.most_types else None


def _laws(
    round_types: tuple[DominatedType, ...], order: float, lam: float, search: ReferenceSearch
) -> tuple[Law, ...] | None:
    """Return a dominating law per round type; None if one of them has none."""
    found = [round_type.law_at(order, lam, search) for round_type in round_types]
    laws = tuple(law for law in found if law is not None)
    return laws if len(laws) == len(found) else None


def _terms(laws: tuple[Law, ...]) -> Terms:
    """Return the steps of the laws and how often each runs."""
    return tuple((law.step, law.times) for law in laws)


def _fine_reference(constraint: Constraint, order: float, lam: float) -> Reference | None:
    """Return a proved reference on a fine lattice, for the final answer; None if none is proved."""
    return reference(constraint, order, lam, *THEOREM_W.fine_reference)


# ---- from a reference to delta


def test_function(order: float, gap: Array) -> Array:
    """Return g_n(d) = e^-d n f_n(e^d) at increasing d >= 0.

    Small d use a form that does not cancel.
    """
    near = int(np.searchsorted(gap, THEOREM_W.small_gap))
    small, large = gap[:near], np.minimum(gap[near:], 700.0)
    less = order - 1
    plain = 1 - order / less * np.exp(-large) + np.exp(-np.minimum(order * large, 700.0)) / less
    return np.concatenate([np.exp(-small) * scaled_f(order, small), plain])


def log_expectation(sums: ComposedLaw, order: float, start: float) -> float:
    """Return log of an upper bound on E_P[g_n(S - eps0); S > eps0].

    Returns +inf if the grid says nothing at eps0. g_n is at most 1.
    """
    if not start >= sums.start:
        return math.inf
    gap, weight = sums.points_above(start)
    total = float(np.sum(weight * test_function(order, gap))) * (1 + MANY)
    total += sums.outside + sums.noise * math.sqrt(1 + 1 / (2 * sums.lam * sums.width)) + 2 * math.exp(-FAR)
    finite = sums.remove_tilt(total, start) if total > 0 else math.inf
    return float(np.logaddexp(finite, math.log(sums.leak))) if sums.leak > 0 else finite


def _least_epsilon(sums: ComposedLaw, order: float, log_delta: float, guess: float) -> float:
    """Return the smallest epsilon over eps0, each of which is valid; +inf if none is finite."""

    def epsilon_at(start: float) -> float:
        wanted = log_delta - log_expectation(sums, order, start) - MANY  # log C must not exceed it
        if not (wanted > 0 and math.isfinite(wanted)):
            return math.inf
        gap = -math.log(-math.expm1(-wanted)) / order
        return start + float(log_ratio(order, np.array([gap]))[0]) + MANY if gap > 0 else start + MANY

    return _minimise(epsilon_at, guess, 1 / sums.lam)


def _least_delta(sums: ComposedLaw, order: float, epsilon: float) -> float:
    """Return log of the smallest delta over the gap d, each of which is valid."""

    def log_delta_at(log_gap: float) -> float:
        gap = np.array([math.exp(log_gap)])
        start = epsilon - float(log_ratio(order, gap)[0]) - MANY
        return float(log_constant(order, gap)[0]) + log_expectation(sums, order, start) + MANY

    return _minimise(log_delta_at, -math.log(sums.lam), 0.7)


def _minimise(value: Callable[[float], float], start: float, scale: float) -> float:
    """Return the smallest of some values around a guess: walk downhill with shrinking steps."""
    found = {start + i * scale: value(start + i * scale) for i in range(-4, 3)}
    step = scale
    for _ in range(8):
        best = min(found, key=lambda each: found[each])
        step /= 2 if best not in (min(found), max(found)) else 1
        for each in (best - step, best + step):
            if each not in found:
                found[each] = value(each)
    return min(found.values())


# ---- choosing, by floats alone


@dataclass(frozen=True, slots=True)
class Guess:
    """Epsilon at some delta by saddle points.

    Nothing is claimed from it. `size` is log E[g_n(S - eps0)] at eps0 = `start`.
    """

    epsilon: float = math.inf
    lam: float = math.nan
    start: float = math.nan
    size: float = math.nan


@dataclass(frozen=True, slots=True)
class ReferenceChoice:
    """The order n, laws that dominate all rounds at it, and about where the answer is."""

    order: float
    laws: tuple[Law, ...]
    guess: Guess

    @property
    def terms(self) -> Terms:
        """Return the steps of the laws and how often each runs."""
        return _terms(self.laws)

    @property
    def proved(self) -> bool:
        """Return True if balls prove every law to dominate."""
        return all(law.proved for law in self.laws)

    def round_types(self) -> RoundTypes | None:
        """Return the transforms of all rounds; None if one of them is not offered."""
        found = [(law.transform, law.times) for law in self.laws]
        round_types = tuple((each, times) for each, times in found if each is not None)
        return round_types if len(round_types) == len(found) else None

    @property
    def test(self) -> TestFunction:
        """Return the test function of the order n."""
        return test_functions.theorem_w(self.order)


Asking = Callable[[ReferenceChoice], tuple[float, Found] | None]


@np.errstate(all="ignore")
def _guess_epsilon(terms: Terms, order: float, log_delta: float, near: float) -> Guess:
    """Return epsilon by saddle points for tails with an exponent not far from `near`.

    Returns infinite if none is found.
    """
    lam = near * THEOREM_W.nearby_orders
    at = saddle.moments(terms, lam)
    eps0 = at.mean - 1 / lam - 1 / (1 + lam) - 1 / (order + lam)
    curvature = at.variance + lam**-2.0 + (1 + lam) ** -2.0 + (order + lam) ** -2.0
    value = at.cgf - lam * eps0 - np.log(lam * (1 + lam) * (1 + lam / order)) - np.log(2 * math.pi * curvature) / 2
    known = np.isfinite(value)
    lam, eps0, value = lam[known], eps0[known], value[known]
    if value.size < 2:
        return Guess()
    asked = log_delta - log_constant(order, THEOREM_W.gaps / max(order, 1.0))
    starts = np.interp(-asked, -value, eps0, left=np.nan, right=np.nan)
    found = starts + log_ratio(order, THEOREM_W.gaps / max(order, 1.0))
    if not np.isfinite(found).any():
        return Guess()
    best = int(np.nanargmin(found))
    at_best = float(np.interp(-asked[best], -value, lam))
    return Guess(float(found[best]), at_best, float(starts[best]), float(asked[best]))


def _choose_reference(round_types: tuple[DominatedType, ...], upper: Terms, log_delta: float) -> ReferenceChoice | None:
    """Return the best order by a scan with coarse references, with a fine reference.

    Returns None if none is proved.
    """
    at = saddle.saddle_point(upper, log_delta=log_delta)
    if at is None:
        return None
    lam = _rounded_order(float(at.lam[0]))

    @cache
    def guess(number: int) -> Guess:
        laws = _laws(
            round_types,
            THEOREM_W.orders[number],
            lam,
            lambda constraint, n, exponent: propose_reference(constraint, n, exponent, *THEOREM_W.coarse_reference),
        )
        return Guess() if laws is None else _guess_epsilon(_terms(laws), THEOREM_W.orders[number], log_delta, lam)

    def around(number: int) -> list[int]:
        return [each for each in (number - 1, number, number + 1) if 0 <= each < len(THEOREM_W.orders)]

    best, before = THEOREM_W.first_order, -1
    while best != before:  # downhill
        before, best = best, min(around(best), key=lambda each: guess(each).epsilon)
    best = min((best, 0, 1), key=lambda each: guess(each).epsilon)
    order, coarse = THEOREM_W.orders[best], guess(best)
    laws = (
        _laws(round_types, order, _rounded_order(coarse.lam), _fine_reference)
        if math.isfinite(coarse.epsilon)
        else None
    )
    if laws is None:
        return None
    found = _guess_epsilon(_terms(laws), order, log_delta, lam)
    return ReferenceChoice(order, laws, found) if math.isfinite(found.epsilon) else None


def _rounded_order(lam: float) -> float:
    """Return a round number nearby, so that nearby questions share their references."""
    return float(2.0 ** (round(4 * math.log2(lam)) / 4))


@np.errstate(all="ignore")
def choose_reference(rounds: Rounds, log_delta: float) -> ReferenceChoice | None:
    """Return the order and laws that floats choose for this delta.

    Returns None if Theorem W has no answer.
    """
    round_types = _dominated_types(rounds)
    upper = None if round_types is None else next(iter(rounds.upper()), None)
    if round_types is None or upper is None:
        return None
    try:
        return _choose_reference(round_types, upper, log_delta)
    except (ArithmeticError, MemoryError, ValueError):  # floats or the programme gave out: nothing is claimed
        return None


@np.errstate(all="ignore")
def choose_second_reference(rounds: Rounds, log_delta: float, part: float) -> ReferenceChoice | None:
    """Return other laws at this part of the chosen order.

    They have another lattice, other rows and other tails. Returns None if none is proved.
    """
    first, round_types = choose_reference(rounds, log_delta), _dominated_types(rounds)
    if first is None or round_types is None:
        return None
    order, lam = part * first.order, THEOREM_W.second_exponent * first.guess.lam
    laws = _laws(
        round_types,
        order,
        lam,
        lambda constraint, n, exponent: reference(constraint, n, exponent, *THEOREM_W.second_reference),
    )
    if laws is None:
        return None
    found = _guess_epsilon(_terms(laws), order, log_delta, lam)
    return ReferenceChoice(order, laws, found) if math.isfinite(found.epsilon) else None


def least_end(rounds: Rounds, query: Query, log_delta: float, ask: Asking[Found]) -> Found | None:
    """Return the result with the smallest epsilon, or delta; None if there is none.

    A reference is built for the given delta. If epsilon is given, references are built for ever smaller deltas.
    """
    if query.wants_epsilon:
        at = choose_reference(rounds, log_delta)
        found = None if at is None else ask(at)
        return None if found is None else found[1]
    if not (epsilon := rounded_down(query.value)) < THEOREM_W.largest_epsilon:
        return None
    best: tuple[float, Found] | None = None
    log_delta, at = _locate_log_delta(rounds, epsilon, log_delta)
    for _ in range(THEOREM_W.tries):
        found = None if at is None else ask(at)
        if found is None:
            break
        if best is None or found[0] < best[0]:
            best = found
        after = math.log(max(found[0], 5e-324))
        if not THEOREM_W.smallest_log_delta < after < log_delta - THEOREM_W.log_delta_step:
            break
        at = choose_reference(rounds, log_delta := _rounded_log_delta(after))
    return None if best is None else best[1]


def _rounded_log_delta(log_delta: float) -> float:
    """Return log delta rounded up to a half, so that every caller asks for the same references."""
    return min(math.ceil(2 * log_delta) / 2, -THEOREM_W.log_delta_step)


def _locate_log_delta(rounds: Rounds, epsilon: float, log_delta: float) -> tuple[float, ReferenceChoice | None]:
    """Return about log delta at this epsilon and the choice there, by tangents.

    Log delta mostly lies below its tangents; this only guides the search. The choice is None if no reference is known there.
    """
    at = choose_reference(rounds, log_delta := _rounded_log_delta(log_delta))
    for _ in range(THEOREM_W.tangents):
        after = math.nan if at is None else log_delta - at.guess.lam * (epsilon - at.guess.epsilon)
        if not THEOREM_W.smallest_log_delta < log_delta - THEOREM_W.log_delta_step > after:
            break
        at = choose_reference(rounds, log_delta := _rounded_log_delta(max(after, THEOREM_W.smallest_log_delta)))
    return log_delta, at


# ---- on the lattice


@np.errstate(all="ignore")
def _compose_laws(at: ReferenceChoice, log_delta: float) -> ComposedLaw | None:
    """Return the sum of all losses on the reference's lattice; None if it is too large."""
    terms = at.terms
    widths = [anchor for step, _ in terms if step.exact_lattice and (anchor := step.anchor())]
    cut = log_delta - math.log(sum(times for _, times in terms)) - THEOREM_W.cut
    try:
        return compose(terms, min(widths), cut, at.guess.lam, upper=True)
    except (ArithmeticError, MemoryError, ValueError):
        return None


def upper_end(rounds: Rounds, query: Query, log_delta: float) -> tuple[float, ComposedLaw] | None:
    """Return an upper bound on epsilon, or delta, by Theorem W on a grid, and the grid.

    Returns None if Theorem W has no answer.

    `log_delta` is log of the given delta, or of a delta that is known to suffice at the given epsilon.
    """

    def ask(at: ReferenceChoice) -> tuple[float, tuple[float, ComposedLaw]] | None:
        sums = _compose_laws(at, log_delta)
        if sums is None:
            return None
        if query.wants_epsilon:
            value = _least_epsilon(sums, at.order, log_delta, at.guess.epsilon - 2 / sums.lam)
            found = next_above(max(value, 0.0) + sums.slip)
        else:
            value = _least_delta(sums, at.order, rounded_down(query.value) - sums.slip)
            found = math.exp(min(value, 0.0)) * (1 + MANY) + 5e-324
        return (found, (found, sums)) if math.isfinite(value) else None

    return least_end(rounds, query, log_delta, ask)
