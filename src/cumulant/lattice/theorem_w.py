"""Theorem W: adaptive rounds judged by f_n, one order n per composition, between profiles and Renyi divergences.

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

import numpy as np

from cumulant.lattice import saddle
from cumulant.lattice.demands import Budget, Demand, Reports, bent
from cumulant.lattice.lattice import FAR, Composed, Terms, compose
from cumulant.lattice.reference import Reference, proposed, reference
from cumulant.lattice.rounds import Round, Rounds
from cumulant.numerics.arithmetic import Array
from cumulant.numerics.rounding import MANY, next_above
from cumulant.pairs.step import Step

_ORDERS = (0.5, 1.25, 2.0, 3.0, 5.0, 8.0, 16.0, 32.0, 64.0, 128.0)
_COARSE, _FINE = (14, 120), (20, 280)
"""Cells of the reference between 1 and the largest ratio, and rows on each of three stretches."""

Found = Callable[[Demand, float, float], Reference | None]
"""A reference for a demand, an order n and tails of this exponent."""

_CRITICAL = 0.5
"""The largest n at which (i) dominates (ii)."""

_FIRST = 3
_TRIES, _FARTHER, _LEAST = 3, 0.5, -690.0
_SMALL = 0.05
_FEWEST_ROUNDS, _MOST_KINDS = 300, 4
_CUT = 16.0
_GAPS = np.geomspace(0.05, 40.0, 60)


# ---- which rounds


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind of round: what its triples demand, or a step that dominates it in profiles, and so here.

    Of two inputs in both orders the first dominates alone up to the order n = 1/2: it is then the `step` besides a demand.
    """

    demand: Demand | None
    step: Step | None
    times: int

    def at(self, order: float, lam: float, found: Found) -> Step | None:
        """A law that dominates it at this order n, chosen for tails of exponent lam."""
        if self.step is not None and (self.demand is None or order <= _CRITICAL):
            return self.step
        return None if self.demand is None else found(self.demand, order, lam)


def _kind(one: Round, times: int) -> Kind | None:
    if one.triples is not None:
        extremes, law = one.pair.extremes(), one.pair.symmetrised()
        if extremes is not None:
            first = one.pair.above(one.triples, "remove") if extremes.against is extremes.for_it is None else None
            return Kind(Reports(extremes, one.triples), first, times)
        if one.pair.query and law is not None:
            return Kind(Budget(law.scale, one.pair.query, one.triples), None, times)
    return Kind(None, one.step(0), times) if one.steps is not None and len(one.steps) == 1 else None


def _kinds(rounds: Rounds) -> tuple[Kind, ...] | None:
    """All kinds; None where one of them is not known, or nothing is gained."""
    if sum(times for _, times in rounds.parts) < _FEWEST_ROUNDS or rounds.estimated:
        return None
    found = [_kind(one, times) for one, times in rounds.parts]
    kinds = tuple(kind for kind in found if kind is not None)
    demanding = sum(kind.demand is not None for kind in kinds)
    return kinds if len(kinds) == len(found) and 0 < demanding <= _MOST_KINDS else None


def _terms(kinds: tuple[Kind, ...], order: float, lam: float, found: Found) -> Terms | None:
    laws = [(kind.at(order, lam, found), kind.times) for kind in kinds]
    terms = tuple((step, times) for step, times in laws if step is not None)
    return terms if len(terms) == len(laws) else None


def _coarse(demand: Demand, order: float, lam: float) -> Reference | None:
    """For a guess."""
    return proposed(demand, order, lam, *_COARSE)


def _fine(demand: Demand, order: float, lam: float) -> Reference | None:
    """For a claim."""
    return reference(demand, order, lam, *_FINE)


# ---- from a reference to delta


def test_function(order: float, gap: Array) -> Array:
    """g_n(d) = e^-d n f_n(e^d) at increasing d >= 0; where it is small without cancellation."""
    near = int(np.searchsorted(gap, _SMALL))
    small, large = gap[:near], np.minimum(gap[near:], 700.0)
    less = order - 1
    plain = 1 - order / less * np.exp(-large) + np.exp(-np.minimum(order * large, 700.0)) / less
    return np.concatenate([np.exp(-small) * bent(order, small), plain])


def log_expectation(sums: Composed, order: float, start: float) -> float:
    """log of an upper bound of E_P[g_n(S - eps0); S > eps0], at this eps0; g_n is at most 1."""
    if not start >= sums.start:
        return math.inf
    gap, weight = sums.above(start)
    total = float(np.sum(weight * test_function(order, gap))) * (1 + MANY)
    total += sums.outside + sums.noise * math.sqrt(1 + 1 / (2 * sums.lam * sums.width)) + 2 * math.exp(-FAR)
    finite = sums.untilted(total, start) if total > 0 else math.inf
    return float(np.logaddexp(finite, math.log(sums.leak))) if sums.leak > 0 else finite


def log_ratio(order: float, gap: Array) -> Array:
    """log R = log[ n/(n-1) (1 - e^{(1-n)d}) / (1 - e^-nd) ]; it grows with d."""
    less = order - 1
    return np.asarray(np.log(-np.expm1(-less * gap) / less) + math.log(order) - np.log(-np.expm1(-order * gap)))


def log_constant(order: float, gap: Array) -> Array:
    """log C = -log(1 - e^-nd)."""
    return np.asarray(-np.log(-np.expm1(-order * gap)))


def _least_epsilon(sums: Composed, order: float, log_delta: float, guess: float) -> float:
    """The least epsilon over eps0, each of which is valid."""

    def at(start: float) -> float:
        wanted = log_delta - log_expectation(sums, order, start) - MANY  # log C must not exceed it
        if not (wanted > 0 and math.isfinite(wanted)):
            return math.inf
        gap = -math.log(-math.expm1(-wanted)) / order
        return start + float(log_ratio(order, np.array([gap]))[0]) + MANY if gap > 0 else start + MANY

    return _descended(at, guess, 1 / sums.lam)


def _least_delta(sums: Composed, order: float, epsilon: float) -> float:
    """log of the least delta over d, each of which is valid."""

    def at(log_gap: float) -> float:
        gap = np.array([math.exp(log_gap)])
        start = epsilon - float(log_ratio(order, gap)[0]) - MANY
        return float(log_constant(order, gap)[0]) + log_expectation(sums, order, start) + MANY

    return _descended(at, -math.log(sums.lam), 0.7)


def _descended(value: Callable[[float], float], start: float, scale: float) -> float:
    """The least of some values around a guess: a walk downhill with steps that shrink."""
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


@np.errstate(all="ignore")
def _guess(terms: Terms, order: float, log_delta: float) -> tuple[float, float]:
    """epsilon at this delta and the exponent, by saddle points: nothing is claimed from it."""
    lam = np.geomspace(0.05, 3000.0, 240)
    at = saddle.moments(terms, lam)
    eps0 = at.mean - 1 / lam - 1 / (1 + lam) - 1 / (order + lam)
    curvature = at.variance + lam**-2.0 + (1 + lam) ** -2.0 + (order + lam) ** -2.0
    value = at.cgf - lam * eps0 - np.log(lam * (1 + lam) * (1 + lam / order)) - np.log(2 * math.pi * curvature) / 2
    known = np.isfinite(value)
    lam, eps0, value = lam[known], eps0[known], value[known]
    if value.size < 2:
        return math.inf, math.nan
    asked = log_delta - log_constant(order, _GAPS / max(order, 1.0))
    starts = np.interp(-asked, -value, eps0, left=np.nan, right=np.nan)
    found = starts + log_ratio(order, _GAPS / max(order, 1.0))
    if not np.isfinite(found).any():
        return math.inf, math.nan
    best = int(np.nanargmin(found))
    return float(found[best]), float(np.interp(-asked[best], -value, lam))


def _chosen(kinds: tuple[Kind, ...], upper: Terms, log_delta: float) -> tuple[float, Terms, float, float] | None:
    """The order n, the reference, the exponent and a guess of epsilon: a scan with coarse references, then a fine one."""
    at = saddle.saddle(upper, log_delta)
    if at is None:
        return None
    lam = _rounded(float(at.lam[0]))

    @cache
    def guess(number: int) -> tuple[float, float]:
        terms = _terms(kinds, _ORDERS[number], lam, _coarse)
        return (math.inf, math.nan) if terms is None else _guess(terms, _ORDERS[number], log_delta)

    def around(number: int) -> list[int]:
        return [each for each in (number - 1, number, number + 1) if 0 <= each < len(_ORDERS)]

    best, before = _FIRST, -1
    while best != before:  # downhill
        before, best = best, min(around(best), key=lambda each: guess(each)[0])
    best = min((best, 0), key=lambda each: guess(each)[0])
    order, lam = _ORDERS[best], guess(best)[1]
    if not math.isfinite(guess(best)[0]):
        return None
    terms = _terms(kinds, order, _rounded(lam), _fine)
    if terms is None:
        return None
    epsilon, exponent = _guess(terms, order, log_delta)
    return (order, terms, exponent, epsilon) if math.isfinite(epsilon) else None


def _rounded(lam: float) -> float:
    """A round number nearby, so that questions nearby share their references."""
    return float(2.0 ** (round(4 * math.log2(lam)) / 4))


def _composed(terms: Terms, lam: float, log_delta: float) -> Composed:
    widths = [anchor for step, _ in terms if step.exact_lattice and (anchor := step.anchor())]
    cut = log_delta - math.log(sum(times for _, times in terms)) - _CUT
    return compose(terms, min(widths), cut, lam, upper=True)


@np.errstate(all="ignore")
def _prepared(rounds: Rounds, log_delta: float) -> tuple[float, Composed, float] | None:
    """The order n, the lattice of the reference and a guess of epsilon at this delta; None where Theorem W has no answer."""
    kinds = _kinds(rounds)
    upper = None if kinds is None else next(iter(rounds.upper()), None)
    if kinds is None or upper is None:
        return None
    try:
        chosen = _chosen(kinds, upper, log_delta)
        if chosen is None:
            return None
        order, terms, lam, guess = chosen
        sums = _composed(terms, lam, log_delta)
    except (ArithmeticError, MemoryError, ValueError):  # floats or the programme gave out: nothing is claimed
        return None
    return order, sums, guess


def epsilon(rounds: Rounds, log_delta: float) -> tuple[float, Composed] | None:
    """An epsilon that is enough at this delta, and the lattice; None where Theorem W has no answer."""
    prepared = _prepared(rounds, log_delta)
    if prepared is None:
        return None
    order, sums, guess = prepared
    found = _least_epsilon(sums, order, log_delta, guess - 2 / sums.lam)
    return (next_above(max(found, 0.0) + sums.slip), sums) if math.isfinite(found) else None


def delta(rounds: Rounds, asked: float, log_delta: float) -> tuple[float, Composed] | None:
    """A delta that is enough at this epsilon, where e^log_delta is known to be: by references for ever smaller ones."""
    best: tuple[float, Composed] | None = None
    for _ in range(_TRIES):
        log_delta = math.ceil(2 * log_delta) / 2  # the same whoever found the first one
        prepared = _prepared(rounds, log_delta)
        if prepared is None:
            return best
        order, sums, _ = prepared
        value = _least_delta(sums, order, asked - sums.slip)
        if not math.isfinite(value):
            return best
        found = math.exp(min(value, 0.0)) * (1 + MANY) + 5e-324
        if best is None or found < best[0]:
            best = found, sums
        if not _LEAST < value < log_delta - _FARTHER:
            return best
        log_delta = value
    return best
