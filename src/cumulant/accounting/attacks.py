"""Attacks on a run: the largest true positive rate at a false positive rate, the advantage.

The run's curve bounds both at its best order, which is cheap. Loss distributions, where the method has them, bound them by
(epsilon, delta) statements, each of which holds; so which epsilons are asked decides how tight a number is and never whether
it holds. Every false positive rate asks for its own epsilons, whatever other rates are asked about, and all share the answers.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np

from cumulant.accounting import answer
from cumulant.accounting.choices import Method
from cumulant.accounting.dominating_runs import dominating_runs
from cumulant.accounting.question import (
    CURVES,
    DEFAULT_ACCURACY,
    DEFAULT_METHOD,
    METHODS,
    Question,
    check_names,
    check_values,
    rows,
)
from cumulant.accounting.rounds import rounds_of
from cumulant.accounting.run import Component, RunRecord
from cumulant.accounting.weaker_run import announced_run
from cumulant.conversion import attacks, renyi_to_dp, tradeoff
from cumulant.domains import PROBABILITY, Exact, Number
from cumulant.numerics.arithmetic import BALLS, root
from cumulant.numerics.enclosure import BOUNDED
from cumulant.numerics.rounding import as_printed, at_least, rounded_down, rounded_up
from cumulant.relation import Relation

Floats = np.ndarray[Any, np.dtype[np.float64]]

RATES = np.geomspace(1e-8, 1.0, 65)
"""The false positive rates of a curve, unless others are asked for."""

_ACCURACY = 0.02
"""Part of epsilon that a grid may cost: about that much of the true positive rate, for a tenth of the time."""

_LOSS = 0.01
"""The part by which the epsilons around the best must cost more, times the square of the distance, when a search ends."""

_MOST = 40
"""Epsilons that a search asks for, at most."""

_FEW = 24
"""Epsilons of an answer in brief."""

_REFINED = 8
"""Rates up to which each is refined by single questions; for 65 they would take longer than the search (measured)."""

_ANCHORS = 4
"""Parts of a list of more rates, at whose ends statements about groups and shuffled passes are asked (measured: 2 to 4 s)."""

_SINGLE = 9
"""Single questions of a refinement, at most; they bring finite losses within 0.1 % of the search (measured)."""

_FLAT = 2e-3
"""The part by which the neighbours of the best epsilon may cost more when a refinement ends: less than 0.1 % is then left."""

_FURTHER = 1.3
"""The factor from the last epsilon to the next one while the best is the last (measured: fewest questions)."""

_HALVED = 5
"""Times that the way beyond the last epsilon is halved."""

_LARGEST = 700.0
"""Largest epsilon that is used; derived: e^700 is a float, e^710 is none."""

_FIXED = 40
"""Evaluations of R that a fixed point may take; 12 are usual (measured)."""

_CLOSE = Fraction(1, 10**7)
"""The part of the success by which a fixed point may be too large (far below what is printed)."""

_ALMOST = 1 - 2.0**-50
"""Largest distance whose quantile is taken; derived: floats near 1 end about there, and the quantile of 1 is infinite."""

_BITS = 128
"""Bits of the balls; convention: 75 more than a float has."""


@dataclass(frozen=True, slots=True, eq=False)
class TradeOffCurve:
    """The best attack on a run.

    None that has this false positive rate has more than this true positive rate.

    >>> import cumulant as cm
    >>> found = trade_off(cm.PureDP(1).record(), [0, 0.01, 0.1])
    >>> found.true_positive_rate, found.advantage
    (array([0.        , 0.02718282, 0.27182818]), 0.46211)
    """

    false_positive_rate: Floats
    true_positive_rate: Floats
    advantage: float


def trade_off(run: RunRecord, fpr: Iterable[Number] | None = None, method: Method = DEFAULT_METHOD) -> TradeOffCurve:
    """Bound the true positive rate at these false positive rates.

    By default at 65 from 1e-8 to 1, evenly spaced on a logarithmic axis.

    Of up to eight rates none gets a worse bound than alone; more are not refined, which costs up to 2 % of the bound.

    >>> import cumulant as cm
    >>> found = trade_off(cm.Gaussian(sigma=1).record())
    >>> float(found.false_positive_rate[16]), float(found.true_positive_rate[16])  # Phi(Phi^-1(1e-6) + 1) = 8.723e-5
    (1e-06, 8.73e-05)
    """
    asked = list(check_values("fpr", RATES if fpr is None else fpr, PROBABILITY)[0])
    rates = np.array([float(rate) for rate in asked])
    return TradeOffCurve(rates, _bounds(run, asked, method), advantage(run, method))


def true_positive_rate(
    run: RunRecord, fpr: Number | Iterable[Number], method: Method = DEFAULT_METHOD
) -> float | Floats:
    """The bound at one false positive rate, or at each of several.

    >>> import cumulant as cm
    >>> true_positive_rate(cm.Gaussian(sigma=1).record(), 0.01)  # Phi(Phi^-1(0.01) + 1) = 0.09236
    0.0924
    """
    check_names(method=method)
    asked, scalar = check_values("fpr", fpr, PROBABILITY)
    found = run.answer(("true positive rates", method, tuple(asked)), partial(_bounds, run, asked, method))
    return float(found[0]) if scalar else found.copy()


def advantage(run: RunRecord, method: Method = DEFAULT_METHOD) -> float:
    """Return the largest difference of true and false positive rate.

    A guess about a fair coin is right (1 + advantage) / 2 often.

    >>> import cumulant as cm
    >>> advantage(cm.Gaussian(sigma=1).record()), advantage(cm.PureDP(1).record())  # 2 Phi(1/2) - 1 and tanh(1/2)
    (0.3829, 0.4621)
    """
    if runs := _dominating(run, method):
        return min(advantage(each, method) for each in runs)
    by_curve, by_statements = _ways(run, method)
    found = attacks.curve_advantage(run.curve()) if by_curve else 1.0
    question = Question.parse_query(method, None, None, DEFAULT_ACCURACY, "epsilon")
    # at epsilon = 0 delta is the total variation distance; the exact layer knows it, and the lemma of groups bounds it
    if by_statements == "exact" or answer.has_indirect_answer(run, question):
        found = min(found, float(np.asarray(answer.delta(run, Exact(0), question))))
    if by_statements and by_statements != "exact":  # what conversions say about it is worth little
        known = _Statements(run, by_statements)
        known.search([_Halfway(known.scale())])
        found = min(found, tradeoff.advantage(*known.pair))
    announced = _announced(run, method)
    return found if announced is None else min(found, advantage(announced, method))


def _announced(run: RunRecord, method: Method) -> RunRecord | None:
    """Return the run with one release in place of each epoch, for the exact layer.

    None if the exact layer is not asked, or if the run has no epochs.
    """
    return announced_run(run) if run.indirect and method in METHODS and method not in CURVES else None


def _dominating(run: RunRecord, method: str) -> tuple[RunRecord, ...]:
    """Return the runs that stand in the place of this one, where the exact layer is asked."""
    check_names(method=method)
    return dominating_runs(run) if run.indirect and method in METHODS and method not in CURVES else ()


def bayes_risk(run: RunRecord, prior: Number) -> float:
    """Compute prior (1 - H), H the hockey-stick divergence at (1 - prior) / prior.

    See `Answers.bayes_risk`.
    """
    share = PROBABILITY.check("prior", prior)
    if not 0 < share < 1:
        return 0.0
    # a smaller epsilon has a larger divergence
    logarithm = float(BOUNDED.log(BOUNDED.number((1 - share) / share)).lower())
    question = Question.parse_query(DEFAULT_METHOD, None, None, DEFAULT_ACCURACY, "epsilon")
    needed = float(np.asarray(answer.delta(run, Exact(Fraction(logarithm)), question)))
    return rounded_down(share * (1 - Fraction(min(needed, 1.0))))


def gaussian(run: RunRecord) -> float:
    """The mu of Gaussian privacy that is known: see `Answers.gaussian_mu`."""
    squares = [(_square(part), part.times) for part in run.parts]
    whole = _of_pure(renyi_to_dp.proved_pure(run.curve(), run.estimated))
    if any(square is None for square, _ in squares):
        return whole
    total = sum((square * times for square, times in squares if square is not None), start=Fraction(0))
    return min(whole, rounded_up(root(total)[1]) if total else 0.0)


def _square(part: Component) -> Fraction | None:
    """Return mu squared of one round; None if the round is not known to be Gaussian-DP."""
    # a run that dominates has a larger test at every rate, in both directions, so that its mu holds here too
    known = [gaussian(each) for each in part.dominating()] if part.dominating is not None else []
    if part.inner is not None:
        # k copies of a record change what runs as a group of k does: k mu (Dong, Roth, Su 2022, Theorem 2.14)
        copies, found = None if part.scheme is None else part.scheme.copies, gaussian(part.inner)
        if copies is not None and math.isfinite(found):
            known.append(rounded_up(Fraction(found) * copies * _widened(part)))
    elif part.pair is not None and (shift := part.pair.gaussian_shift()) is not None:
        return shift**2
    known.append(_of_pure(renyi_to_dp.proved_pure(part.curve("best"), part.estimated)))
    least = min(known)
    return Fraction(least) ** 2 if math.isfinite(least) else None


def _widened(part: Component) -> int:
    """Return 2 if a record is replaced but the mechanism is stated for one added or removed.

    That is half as far. Else return 1.
    """
    stated = None if part.inner is None else part.inner.relation
    replaced = part.scheme is not None and part.scheme.relation is Relation.REPLACE_ONE
    return 2 if replaced and stated is Relation.ADD_REMOVE else 1


def _of_pure(epsilon: float) -> float:
    """Compute 2 Phi^-1(e^epsilon / (1 + e^epsilon)), rounded up.

    The corner of the trade-off of pure epsilon lies on that of mu.
    """
    if not epsilon > 0 or math.isinf(epsilon):
        return epsilon
    with BALLS.at(_BITS):
        tail = 1 / (1 + BALLS.number(Fraction(epsilon)).exp())  # the smaller mass, so that no digits are lost
        mu = 2 * BALLS.number(2).sqrt() * (2 * tail).erfcinv()
        return rounded_up(at_least(mu.upper())) if mu.is_finite() else math.inf


def in_brief(run: RunRecord, fpr: Number, method: Method, epsilon: float, delta: float) -> tuple[float, float]:
    """Bound true positive rate and advantage from a known statement and few others.

    For those who cannot wait.

    >>> import cumulant as cm
    >>> in_brief(cm.Gaussian(sigma=1).record(), 0.01, "best", 4.38, 1e-5)
    (0.0924, 0.3829)
    """
    if runs := _dominating(run, method):
        known_of = [in_brief(each, fpr, method, epsilon, delta) for each in runs]
        return min(caught for caught, _ in known_of), min(most for _, most in known_of)
    rate, pairs = PROBABILITY.check("fpr", fpr), ([Fraction(epsilon)], [Fraction(delta)])
    found, largest = tradeoff.true_positive_rate([rate], *pairs)[0], tradeoff.advantage(*pairs)
    by_curve, by_statements = _ways(run, method) if method in METHODS else (False, None)
    if by_statements == "exact" and (shift := _lone_gaussian(run)) is not None:
        found, by_curve, by_statements = min(found, _normal_power(rate, shift)), False, None
        largest = min(largest, advantage(run, "exact"))
    if by_statements:
        known = _Statements(run, by_statements)
        if by_statements == "exact":
            known.refine(float(rate))
            by_curve = known.deltas[0.0] >= 1  # else the loss distributions say more than a converted curve
        else:
            known.ask((epsilon * np.arange(_FEW) / _FEW).tolist())
        statements = known.pair
        found = min(found, tradeoff.true_positive_rate([rate], *statements)[0])
        largest = min(largest, tradeoff.advantage(*statements))
    if by_curve:
        found, largest = (
            min(found, attacks.curve_true_positive_rate(run.curve(), [rate])[0]),
            min(largest, attacks.curve_advantage(run.curve())),
        )
    if run.indirect and (indirect := _indirect_statements(run, method)) is not None:
        indirect.refine(float(rate))
        found = min(found, indirect.bounds([rate])[0])
        largest = min(largest, tradeoff.advantage(*indirect.pair))
    if (announced := _announced(run, method)) is not None:
        caught, most = in_brief(announced, fpr, method, epsilon, delta)
        return min(float(found), caught), min(largest, most)
    return float(found), largest


def _ways(run: RunRecord, method: Method) -> tuple[bool, Method | None]:
    """Return True if the curve's best order is used, and the method of statements.

    None is by none.
    """
    check_names(method=method)
    if method not in METHODS:
        rows(method, None, None)  # says what there is to choose
    if method in CURVES:
        return (True, None) if method == "rdp" else (False, method)
    known = rounds_of(run)[0] is not None
    return method == DEFAULT_METHOD or not known, "exact" if known else None


def _bounds(run: RunRecord, rates: Sequence[Exact], method: Method) -> Floats:
    """Return the true positive rate that no attack exceeds at each false positive rate."""
    if runs := _dominating(run, method):
        return np.asarray(np.minimum.reduce([_bounds(each, rates, method) for each in runs]))
    found = _own_bounds(run, rates, method)
    if rates and (statements := _indirect_statements(run, method)) is not None:
        few = rates if len(rates) <= _REFINED else [rates[len(rates) * i // _ANCHORS] for i in range(1, _ANCHORS)]
        for rate in few:
            statements.refine(float(rate))
        found = np.minimum(found, statements.bounds(rates))
    announced = _announced(run, method)
    return found if announced is None else np.minimum(found, _bounds(announced, rates, method))


def _indirect_statements(run: RunRecord, method: Method) -> _Statements | None:
    """Return a place for statements about groups and shuffled passes, which no losses give; None for other runs."""
    if not run.indirect or method != DEFAULT_METHOD or _announced(run, method) is not None:
        return None
    question = Question.parse_query(method, None, None, DEFAULT_ACCURACY, "epsilon")
    return _Statements(run, method) if answer.has_indirect_answer(run, question) else None


def _own_bounds(run: RunRecord, rates: Sequence[Exact], method: Method) -> Floats:
    """Return the bounds that the curve and the loss distributions of the run itself give."""
    by_curve, by_statements = _ways(run, method)
    if by_statements == "exact" and (shift := _lone_gaussian(run)) is not None:
        return np.array([_normal_power(rate, shift) for rate in rates])
    found = np.ones(len(rates))
    if by_curve:
        found = attacks.curve_true_positive_rate(run.curve(), rates)
    if by_statements:
        known = _Statements(run, by_statements)
        scale = known.scale()
        known.search([_Search(scale, float(rate)) for rate, most in zip(rates, found, strict=True) if most > 0])
        for rate in rates if by_statements == "exact" and len(rates) <= _REFINED else ():
            known.refine(float(rate))
        found = np.minimum(found, known.bounds(rates))
    return found


def named_success(run: RunRecord, prior: Exact, method: Method = DEFAULT_METHOD) -> float:
    """Bound p with p <= R(c (1 - p)), c = prior / (1 - prior), from above: one guess names one value, any two are neighbours.

    R is the least of lines, one or two for each (epsilon, delta), so that the bound is the least of one number for each line.

    >>> import cumulant as cm
    >>> named_success(cm.Gaussian(sigma=1).record(), Exact("1/2"))  # Phi(1/2)
    0.69146
    """
    odds, found = prior / (1 - prior), 1.0
    if (statements := _indirect_statements(run, method)) is not None:
        statements.refine(float(prior))
        found = statements.named(odds)
    by_curve, by_statements = _ways(run, method)
    if by_statements == "exact" and (shift := _lone_gaussian(run)) is not None:
        return min(found, _fixed_point(lambda x: _normal_power(x, shift), odds, prior, 1.0))
    if by_statements:
        known = _Statements(run, by_statements)
        known.search([_Named(known.scale(), odds)])
        found = min(found, known.named(odds))
    if by_curve:
        curve = run.curve()
        by_order = _fixed_point(lambda x: float(attacks.curve_true_positive_rate(curve, [x])[0]), odds, prior, found)
        found = min(found, by_order)
    announced = _announced(run, method)
    return found if announced is None else min(found, named_success(announced, prior, method))


def _fixed_point(power: Callable[[Exact], float], odds: Fraction, prior: Fraction, most: float) -> float:
    """Return p >= R(odds (1 - p)), nearly the least one: no success can exceed such a p, because R rises; 1 if above `most`.

    Between a p that fails and one that holds the secant chooses the next, and the middle where it does not help.
    """

    def excess(p: Fraction) -> Fraction:
        rate = Fraction(rounded_up(odds * (1 - p)))  # of a larger rate R is larger
        return p - Fraction(min(power(Exact(min(rate, Fraction(1)))), 1.0))

    low, high = Fraction(prior), Fraction(most)
    above = excess(high)
    if above < 0 or high <= low:
        return 1.0
    below = excess(low)
    if below >= 0:
        return rounded_up(low)
    for count in range(_FIXED):
        if high - low <= _CLOSE * high:
            break
        secant = high - above * (high - low) / (above - below) + _CLOSE * high / 4
        tried = Fraction(float((low + high) / 2 if count % 3 == 2 else min(max(secant, low), high)))
        if not low < tried < high:
            break
        value = excess(tried)
        low, below, high, above = (low, below, tried, value) if value >= 0 else (tried, value, high, above)
    return rounded_up(high)


def _lone_gaussian(run: RunRecord) -> Fraction | None:
    """Return mu if the run is N(mu, 1) against N(0, 1), all its rounds together; else None."""
    rounds = rounds_of(run)[0]
    single = None if rounds is None else rounds.single()
    return single[0].gaussian_shift() if single is not None and single[1] == 1 else None


def _normal_power(rate: Fraction, shift: Fraction) -> float:
    """Phi(Phi^-1(rate) + mu), rounded up: the most powerful test of two normal laws."""
    if not 0 < rate < 1:
        return float(rate)
    with BALLS.at(_BITS):
        root_two = BALLS.number(2).sqrt()
        place = -(2 * BALLS.number(rate)).erfcinv() * root_two + BALLS.number(shift)
        found = (-place / root_two).erfc() / 2
        return rounded_up(min(at_least(found.upper()), Fraction(1))) if found.is_finite() else 1.0


# ---- where to ask


@dataclass(slots=True)
class _Statements:
    """The run is (epsilon, delta)-DP for each epsilon that was asked about, by this method."""

    run: RunRecord
    method: Method
    deltas: dict[float, float] = field(default_factory=dict)

    @property
    def pair(self) -> tuple[list[float], list[Fraction]]:
        """Return the epsilons and the deltas of the statements.

        Epsilons mean the decimals they print as, which are what was asked; deltas are what was found.
        """
        return list(self.deltas), list(map(Fraction, self.deltas.values()))

    def ask(self, epsilons: Iterable[float]) -> None:
        """Learn delta at these."""
        missing = sorted({epsilon for epsilon in epsilons if epsilon < math.inf} - self.deltas.keys())
        if missing:
            question = Question.parse_query(self.method, None, None, _ACCURACY, "epsilon")
            found = np.asarray(answer.delta(self.run, missing, question))
            self.deltas.update(zip(missing, found.tolist(), strict=True))

    def ask_alone(self, epsilon: float) -> float:
        """Learn delta at one epsilon as a single question, by the engine that answered the run; return it."""
        question = Question.parse_query(self.method, None, None, DEFAULT_ACCURACY, "epsilon")
        found = answer.answer(self.run, question.with_value(Exact(epsilon))).value
        self.deltas[epsilon] = min(found, self.deltas.get(epsilon, 1.0))
        return self.deltas[epsilon]

    def refine(self, rate: float) -> None:
        """Ask single questions around the epsilon that suits this rate if the loss is Gaussian, until little can be gained.

        A parabola through the best epsilon and its neighbours proposes the next one. For finitely many losses the cost has
        corners in u = e^epsilon, so every second proposal is where two straight pieces meet.
        """
        shift = 2 * _quantile((1 + min(self.ask_alone(0.0), _ALMOST)) / 2)
        guess = abs(shift * (-_quantile(rate) - shift / 2))
        if not 0 < rate < 1 or not 0 < guess < _LARGEST:
            return
        own, wanted = [0.0], guess
        for count in range(_SINGLE):
            self.ask_alone(wanted)
            own.append(wanted)
            own.sort()
            u, cost = [], []
            for each in own:
                factor, delta = math.exp(each), self.deltas[each]
                u.append(factor)
                cost.append(min(delta + factor * rate, 1 - (1 - delta - rate) / factor, 1.0))
            best = cost.index(min(cost))
            if best + 1 == len(own):
                wanted = own[best] * _FURTHER
                continue
            if best == 0:
                wanted = own[1] / 2
                continue
            left, middle, right = own[best - 1 : best + 2]
            if best > 1 and max(cost[best - 1], cost[best + 1]) <= (1 + _FLAT) * cost[best]:
                return
            if count % 2:
                wanted = _corner(u, cost, best)
            else:
                down, up = cost[best] - cost[best + 1], cost[best] - cost[best - 1]
                below = 2 * ((middle - left) * down + (right - middle) * up)
                above = (middle - left) ** 2 * down - (right - middle) ** 2 * up
                wanted = middle - above / below if below else math.nan
            margin = (right - left) / 50
            if not left + margin < wanted < right - margin or abs(wanted - middle) < margin:
                wanted = (middle + (right if right - middle > middle - left else left)) / 2

    def scale(self) -> float:
        """An epsilon that is small for this run, a power of two."""
        self.ask([0.0, renyi_to_dp.proved_pure(self.run.curve(), self.run.estimated)])
        size = _shift(self.deltas[0.0]) if self.method == "exact" else self.half()
        return 2.0 ** math.floor(math.log2(size) - 2) if 0 < size < math.inf else 1.0

    def half(self) -> float:
        """Return the epsilon of the run at delta = 1/2."""
        question = Question.parse_query(self.method, None, None, DEFAULT_ACCURACY, "delta")
        return answer.answer(self.run, question.with_value(Exact("0.5"))).value

    def search(self, searches: Sequence[_Search]) -> None:
        """Ask for what each search wants, all at once, until none wants more."""
        while wanted := [epsilon for search in searches for epsilon in search.wanted(self.deltas)]:
            self.ask(wanted)

    def named(self, odds: Fraction) -> float:
        """Return the least p = 1 - (1 - delta) / (1 + a c) or 1 - (1 - delta) / (a + c), a = e^epsilon, rounded up."""
        best = Fraction(1)
        for epsilon, delta in zip(*self.pair, strict=True):
            if epsilon > _LARGEST or delta >= 1:
                continue
            a = Fraction(float(BOUNDED.exp(BOUNDED.number(as_printed(epsilon))).upper()))
            best = min(best, 1 - (1 - delta) / min(1 + a * odds, a + odds))
        return rounded_up(best)

    def bounds(self, rates: Sequence[Exact]) -> Floats:
        """Bound the true positive rate at each false positive rate by all statements together."""
        return tradeoff.true_positive_rate(rates, *self.pair)


@dataclass(slots=True)
class _Search:
    """A search for the epsilon that is best at one false positive rate.

    It is doubled until it is too large, then the cells around the best are halved until nothing more can be gained.

    What a statement costs is convex in e^epsilon, so a neighbour that costs little more leaves little to gain between. The
    search looks at its own epsilons only, so that other searches cannot lead it astray.
    """

    scale: float
    rate: float
    own: list[float] = field(default_factory=lambda: [0.0])

    def cost(self, epsilon: float, delta: float) -> float:
        """The true positive rate that this statement leaves."""
        rising = delta + math.exp(epsilon) * self.rate
        return min(rising, 1 - math.exp(-epsilon) * (1 - delta - self.rate), 1.0)

    def wanted(self, deltas: dict[float, float]) -> list[float]:
        """Return the epsilons to ask next; nothing where the search has ended."""
        own, last = sorted(self.own), max(self.own)
        costs = [self.cost(epsilon, deltas[epsilon]) for epsilon in own]
        best = max(i for i, cost in enumerate(costs) if cost <= min(costs))  # where none says anything, further out
        new = []
        if best + 2 >= len(own):
            new = self.beyond(last, costs[best])
        if not new and len(own) < _MOST:
            near = range(
                max(best - 2, 0), min(best + 3, len(own))
            )  # two on each side: the least may lie between two of them
            if any(costs[i] > (1 + _LOSS * (i - best) ** 2) * costs[best] for i in near):
                new = [(own[best] + own[i]) / 2 for i in near if abs(i - best) == 1]
        self.own += new
        return new

    def beyond(self, last: float, least: float) -> list[float]:
        """Return the double, or less where so large an epsilon would cost too much.

        It would even without a delta; the cost grows with both.
        """
        further = min(2 * last, _LARGEST) or self.scale
        for _ in range(_HALVED):
            if last < further and self.cost(further, 0.0) < least:
                return [further]
            further = (last + further) / 2
        return []


class _Named(_Search):
    """The search for the epsilon that is best where one guess names one value, at these odds."""

    __slots__ = ("odds",)

    def __init__(self, scale: float, odds: Fraction) -> None:
        super().__init__(scale, 1.0)
        self.odds = float(odds)

    def cost(self, epsilon: float, delta: float) -> float:
        a = math.exp(epsilon)
        return 1 - (1 - min(delta, 1.0)) / min(1 + a * self.odds, a + self.odds)


class _Halfway(_Search):
    """A search for the largest difference of the two rates."""

    __slots__ = ()

    def __init__(self, scale: float) -> None:
        super().__init__(scale, 1.0)

    def cost(self, epsilon: float, delta: float) -> float:
        return min(math.tanh(epsilon / 2) + 2 * delta / (1 + math.exp(epsilon)), 1.0)


def _shift(distance: float) -> float:
    """The shift of two Gaussians with this total variation distance."""
    return 2 * _quantile((1 + min(distance, _ALMOST)) / 2)


def _corner(u: Sequence[float], y: Sequence[float], middle: int) -> float:
    """Return log u where the straight pieces on both sides of the least point meet; NaN if there are too few points.

    One piece goes through that point and a neighbour, the other one through the next two points on the other side.
    """
    for i, j, gap in ((middle - 1, middle + 1, middle), (middle, middle - 2, middle - 1)):
        if j < 0 or j + 1 >= len(u) or u[i] == u[i + 1] or u[j] == u[j + 1]:
            continue
        one, two = (y[i + 1] - y[i]) / (u[i + 1] - u[i]), (y[j + 1] - y[j]) / (u[j + 1] - u[j])
        if one != two:
            meet = (y[i] - one * u[i] - y[j] + two * u[j]) / (two - one)
            if u[gap] < meet < u[gap + 1]:
                return math.log(meet)
    return math.nan


def _quantile(share: float) -> float:
    """Estimate the quantile of the normal law, only to choose where to ask."""
    from statistics import NormalDist

    return NormalDist().inv_cdf(share) if 0 < share < 1 else math.copysign(math.inf, share - 0.5)
