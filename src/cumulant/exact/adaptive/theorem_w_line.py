"""Theorem W on an inversion line, in balls.

Floats choose the order n, the reference, the line and the gap d; one ball proves the answer.

delta(eps) <= C E_P[g_n(S - eps0); S > eps0],  eps0 = eps - log R,  S the sum of the losses of the reference, which is a
positive measure. g_n is a test function (exact/test_functions.py), so that every line encloses its expectation
(docs/test-orders.md).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction

from cumulant.conversion.query import Query
from cumulant.exact.adaptive import theorem_w
from cumulant.exact.adaptive.theorem_w import ReferenceChoice
from cumulant.exact.inversion.choose import Side, choose_best_order
from cumulant.exact.inversion.decay import DecayNotProved
from cumulant.exact.inversion.lattice_line import build_lattice_line
from cumulant.exact.inversion.line import Line, build_line, spacing_of
from cumulant.exact.inversion.settings import LINE
from cumulant.exact.inversion.solver import ProvedEnd, prove_end
from cumulant.exact.rounds import Rounds
from cumulant.numerics.arithmetic import BALLS


def build_reference_line(at: ReferenceChoice, again: bool = False) -> Line | None:
    """Build the line of a reference for the question it was chosen for.

    Returns None if no decay is proved.

    `again` builds a second line, of another period and with twice the bits. Losses on one lattice have a finite sum; others
    need a density, or are smoothed: a Gaussian more dominates in profiles, and so for Theorem W.
    """
    round_types = at.round_types()
    if round_types is None or at.order == 1:
        return None
    guess = at.guess
    choice = choose_best_order(
        Side(at.terms, round_types), guess.lam, guess.start, guess.size, LINE.lattice_accuracy, spacing_of(round_types)
    )
    if choice is None:
        return None
    if again:
        choice = replace(choice, period=LINE.second_period * choice.period, bits=2 * choice.bits)
    # Smoothing by tau^2 costs (lam + 1) tau^2 / 2 in epsilon.
    smooth = Fraction(2 * LINE.theorem_w_smoothing * max(guess.epsilon, LINE.smallest_epsilon) / (choice.lam + 1))
    builders: tuple[Callable[[], Line], ...] = (
        lambda: build_lattice_line(round_types, choice, omit_exponent=choice.decay_exponent),
        lambda: build_line(round_types, choice),
        lambda: build_line(round_types, choice, smooth=smooth, work=LINE.theorem_w_smoothing_work),
    )
    for build in builders:
        try:
            with BALLS.at(choice.bits):
                return build()
        except (DecayNotProved, ArithmeticError):
            continue
    return None


def upper_end(rounds: Rounds, query: Query, log_delta: float) -> ProvedEnd | None:
    """Return the smallest epsilon, or delta, found to suffice.

    Returns None if the line has no answer.

    `log_delta` is log of the given delta, or of a delta that is known to suffice at the given epsilon.
    """

    def ask(at: ReferenceChoice) -> tuple[float, ProvedEnd] | None:
        line = build_reference_line(at)
        found = None if line is None else end_along(line, at, query)
        return None if found is None else (found.value, found)

    return theorem_w.least_end(rounds, query, log_delta, ask)


def end_along(line: Line, at: ReferenceChoice, query: Query) -> ProvedEnd | None:
    """Return the smallest epsilon, or delta, over the gap on one line.

    Returns None if the leak reaches delta or balls fail.
    """
    target = float(query.value)
    if query.wants_epsilon:
        with BALLS.at(line.choice.bits):
            left = BALLS.number(query.value) - line.leak
            if not left > 0:
                return None
            target = float(left.log().mid())
    found = prove_end(line, at.test, query, target, LINE.lattice_accuracy)
    return None if found is None else replace(found, holds=at.proved)
