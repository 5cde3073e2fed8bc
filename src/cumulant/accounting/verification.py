"""A plan, carried out again by another route than the one that found its answer."""

from __future__ import annotations

import math
from dataclasses import replace
from importlib.metadata import version
from typing import TYPE_CHECKING

from cumulant.accounting.answer import answer, by_losses, lower, lower_end
from cumulant.accounting.answer import delta as delta_of
from cumulant.accounting.dominating_runs import dominating_answer
from cumulant.accounting.group_lemma import best_place, grown_delta, one_record
from cumulant.accounting.indirect_routes import DOMINATING_RUN, FEWER_STEPS, GROUP_LEMMA, SHUFFLED
from cumulant.accounting.numbers import rounded_down, rounded_up
from cumulant.accounting.plan import Plan, planned
from cumulant.accounting.question import (
    CURVES,
    DISTANCE,
    GUIDE,
    Question,
)
from cumulant.accounting.rounds import rounds_of
from cumulant.accounting.text import RIGOUR
from cumulant.accounting.weaker_run import weaker_answer
from cumulant.conversion import renyi_to_dp
from cumulant.conversion.attacks import distance_is_at_most
from cumulant.conversion.certify import FIRST_BITS
from cumulant.conversion.conversions import CONVERSIONS
from cumulant.conversion.verify import Verification, verify, verify_delta
from cumulant.domains import Exact
from cumulant.errors import CertificateError
from cumulant.exact.witnesses import REPLACED

if TYPE_CHECKING:
    from cumulant.exact.rounds import Rounds

RENYI = CURVES[GUIDE][1]
"""The conversion of the bound that encloses an exact answer from above."""

_PROOFS = ("decimal", "balls", "fractions", "none")
"""Arithmetics of a second evaluation that proves the statement by itself, whatever its first rigour was; derived."""

_DISTANCE_BITS = 256
"""Bits of the balls that check a total variation distance; convention."""

_SAME_ORDER = 1e-3
"""Largest relative difference of the orders that one release finds on two machines; convention."""

_SAME_LOWER = 1e-9
"""Largest relative difference of a lower end between two machines; convention."""


def verified(plan: Plan, epsilon: float, delta: float) -> Verification:
    """Check this epsilon and delta by a second evaluation.

    The one that was given means its exact value.
    """
    if (by_other_run := _BY_OTHER_RUNS.get(plan.answer.way)) is not None:
        found = by_other_run(plan, epsilon, delta)
    else:
        found = _by_losses(plan, epsilon, delta) if plan.answer.exact else _by_curve(plan, epsilon, delta)
    if not found.holds or not plan.release or found.arithmetic in _PROOFS or _rigour_found_again(plan):
        return found
    note = _TOO_MUCH_RIGOUR[plan.answer.rigour]
    return Verification(False, epsilon, delta, found.quantity, 0.0, math.inf, 0.0, "none", 0, note)


_TOO_MUCH_RIGOUR = {
    "proved": "it says proved, and no proof of this number was found",
    "bounded": "it says bounded, and the run can only be estimated",
}
"""The note about a guarantee that was read and says more than its rigour."""


def _rigour_found_again(plan: Plan) -> bool:
    """Ask the question of a plan that was read anew: return False if the answer has less rigour than the plan says.

    A file does not keep `prove=True`, so an answer that says "proved" may need it. Another release may prove as much by another
    route.
    """
    if plan.answer.rigour != "proved":
        return not plan.run.estimated
    ours = plan.release == version("cumulant")
    anew = (answer(plan.run, replace(plan.question, prove=prove)) for prove in (False, True))
    proved = (each for each in anew if each.rigour == "proved")
    return any(each.way == plan.answer.way or (not ours and each.value <= plan.answer.value) for each in proved)


def _by_shuffling(plan: Plan, epsilon: float, delta: float) -> Verification:
    """The delta of the passes is evaluated at the stated epsilon, where the question had asked the other way round."""
    from cumulant.accounting.shuffled_passes import confirmed_delta

    stated, most = plan.question.exact_statement(epsilon, delta)
    finer = replace(plan.question, asked="epsilon", accuracy=Exact(plan.question.accuracy / 4)).with_value(
        Exact(stated)
    )
    upper = confirmed_delta(plan.run, finer, float(most))
    note = "by the same theorems about shuffled passes; no independent route confirms it"
    return Verification(upper <= most, epsilon, delta, "delta", 0.0, upper, 0.0, "sums", 0, note)


def _by_group_lemma(plan: Plan, epsilon: float, delta: float) -> Verification:
    """Verify the statement for one record at the best x <= epsilon / k.

    Its delta is grown by the lemma once more.
    """
    alone = one_record(plan.run)
    if alone is None:
        raise CertificateError("the run is no longer one for a group of records")
    one, size = alone
    if delta >= 1 or epsilon == math.inf:  # (0, 1) and (inf, 0) hold for everything
        return Verification(epsilon >= 0, epsilon, delta, "delta", 0.0, 1.0, 0.0, "none", 0)
    stated, most = plan.question.exact_statement(epsilon, delta)
    asked = replace(plan.question, asked="epsilon")
    x, _ = best_place(one, size, asked.with_value(Exact(stated)), delta_of)
    base = planned(one, asked.with_value(x))
    check = verified(base, *base.statement)
    upper = grown_delta(base.answer.value, x, size)
    note = f"by the group lemma from delta = {base.answer.value!r} for one record at epsilon = {float(x)!r}"
    holds = check.holds and upper <= most
    return Verification(holds, epsilon, delta, "delta", 0.0, upper, 0.0, check.arithmetic, check.precision, note)


_FEWER = "for fewer steps, which are no more private; "
"""The beginning of a note about a run with fewer steps."""


def _by_fewer_steps(plan: Plan, epsilon: float, delta: float) -> Verification:
    """Verify the statement for the run with fewer steps.

    That run is found again and is no more private.
    """
    weaker = weaker_answer(plan.run, plan.question, answer, by_losses)
    if weaker is None:
        raise CertificateError("the run is no longer one of epochs with several steps")
    run, found = weaker
    check = verified(replace(plan, run=run, answer=found, contributions=(), lower=None, witness=""), epsilon, delta)
    note = check.note.removeprefix(_FEWER)  # blocks of several picks have fewer steps, and fewer still may answer
    return replace(check, note=f"{_FEWER}{note}".removesuffix("; "))


def _by_dominating_run(plan: Plan, epsilon: float, delta: float) -> Verification:
    """The statement is verified for the run with the larger Gram matrix, which is found again."""
    best = dominating_answer(plan.run, plan.question, answer)
    if best is None:
        raise CertificateError("the run is no longer one with correlated noise")
    run, found = best
    check = verified(replace(plan, run=run, answer=found, contributions=(), lower=None, witness=""), epsilon, delta)
    return replace(check, note=f"for a run that dominates it; {check.note}".removesuffix("; "))


_BY_OTHER_RUNS = {
    DOMINATING_RUN.name: _by_dominating_run,
    FEWER_STEPS.name: _by_fewer_steps,
    GROUP_LEMMA.name: _by_group_lemma,
    SHUFFLED.name: _by_shuffling,
}
"""The second evaluation of each indirect route."""


def lower_confirmed(plan: Plan) -> bool | None:
    """Check that the lower end, or a larger one, is found again; a finer grid or a proof is tried too.

    None where there is none.
    """
    if plan.lower is None:
        return None
    stated = max(plan.answer.value, plan.lower)  # a stated 0 would ask for the lower end of data sets that lose nothing
    # guarantees that earlier releases wrote have the names of added records where records are replaced
    names = plan.witness, REPLACED.get(plan.witness)
    finer = replace(plan.question, accuracy=Exact(plan.question.accuracy / 4))
    # a file does not keep prove=True, which may have found it
    for question in (plan.question, finer, replace(plan.question, prove=True)):
        found, witness, rigour = lower(plan.run, question, stated)
        near = found is not None and found >= plan.lower * (1 - _SAME_LOWER)
        if near and witness in names and (rigour == "proved" or plan.lower_rigour != "proved"):
            return True
    return False


def refuting_lower_end(plan: Plan) -> float | None:
    """Return the lower end that the run has and that lies above the stated number; None if there is none."""
    stated = plan.answer.value
    found, _, _ = lower(plan.run, plan.question, max(stated, 1.0))
    return found if found is not None and found > stated else None


def _by_curve(plan: Plan, epsilon: float, delta: float) -> Verification:
    """The bound at the stored order, evaluated afresh."""
    question, found = plan.question, plan.answer
    if found.way == DISTANCE and found.rigour == "bounded":
        holds = distance_is_at_most(
            plan.run.curve(found.bound), question.exact_statement(epsilon, delta)[1], _DISTANCE_BITS
        )
        note = "the total variation distance, which bounds delta at every epsilon"
        return Verification(
            holds, epsilon, delta, "delta", 0.0, delta if holds else 1.0, 0.0, "balls", _DISTANCE_BITS, note
        )
    if found.way not in CONVERSIONS:
        raise CertificateError(
            f"method={found.way!r} is {RIGOUR['bounded']}; only a bound at one order can be verified, "
            'method="rdp" or "paper"'
        )
    if found.rigour != "proved" and found.proof is None:
        raise CertificateError(f"this guarantee is {found.rigour}, not proved, so there is nothing to verify")
    curve, conversion = plan.run.curve(question.row), CONVERSIONS[found.way]
    bits = FIRST_BITS if found.proof is None else found.proof.bits
    if question.asked == "epsilon":
        return verify_delta(curve, plan.order, question.exact_statement(epsilon, delta)[0], conversion, delta, bits)
    return verify(curve, plan.order, question.exact_statement(0.0, delta)[1], conversion, epsilon, bits)


def _by_losses(plan: Plan, epsilon: float, delta: float) -> Verification:
    """Verify by the closed form at more bits, another line or another recursion.

    Or the saddle line, else on a finer grid.
    """
    if plan.answer.rigour == "estimated":
        raise CertificateError("this guarantee is estimated, not proved, so there is nothing to verify")
    from cumulant.exact import verification

    question = plan.question
    if delta >= 1 or epsilon == math.inf:  # (0, 1) and (inf, 0) hold for everything
        return Verification(epsilon >= 0, epsilon, delta, question.wanted, 0.0, math.inf, 0.0, "none", 0)
    rounds, _ = rounds_of(plan.run)
    if rounds is None:
        raise CertificateError(
            'method="exact" does not answer for this run any more; ask again and write a new guarantee'
        )
    if plan.answer.bound != rounds.bound_name(plan.answer.way):
        note = f"it names the bound {plan.answer.bound!r}, and {rounds.bound_name(plan.answer.way)!r} is the one that answers"
        return Verification(False, epsilon, delta, question.wanted, 0.0, math.inf, 0.0, "none", 0, note)
    if plan.release == version("cumulant") and not _order_found_again(plan):
        note = f"it names the order {plan.answer.order!r}, and the question leads to another one"
        return Verification(False, epsilon, delta, question.wanted, 0.0, math.inf, 0.0, "none", 0, note)
    statement = question.exact_statement(epsilon, delta)
    proved = plan.answer.rigour == "proved"
    found = verification.verify(rounds, plan.answer.way, *statement, float(question.accuracy), proved)
    if found is not None:
        return found
    given = question.with_value(Exact(statement[0 if question.asked == "epsilon" else 1]))
    return _again(plan, rounds, given, epsilon, delta)


def _order_found_again(plan: Plan) -> bool:
    """Ask the question of a plan that was read anew and compare the orders.

    No other route depends on them.

    Another route of the same answer has another order, and says nothing about this one.
    """
    anew, order = answer(plan.run, plan.question), plan.answer.order
    if anew.way != plan.answer.way or anew.order is None or order is None:
        return anew.way != plan.answer.way or anew.order == order
    return math.isclose(anew.order, order, rel_tol=_SAME_ORDER)


def _again(plan: Plan, rounds: Rounds, question: Question, epsilon: float, delta: float) -> Verification:
    """Verify by the same theorem on a grid of half the step.

    It must not need more than was stated.

    That shows no mistake of the code, so besides it there is only what encloses the answer: the Rényi bound, which is
    proved by other means, and the lower end.
    """
    from cumulant.exact.answer import pure_epsilon

    theorem_b = plan.answer.way in ("cone", "adaptive", "order")
    pure = question.asked == "delta" and question.value == 0  # the sum of the largest losses, and no grid
    finer = (
        pure_epsilon(rounds)
        if pure
        else by_losses(rounds, replace(question, accuracy=Exact(question.accuracy / 4), theorem_b=theorem_b))
    )
    stated, ask = (
        (epsilon, renyi_to_dp.proved_epsilon) if question.asked == "delta" else (delta, renyi_to_dp.proved_delta)
    )
    above = ask(plan.run.curve(), question.value, CONVERSIONS[RENYI])
    witness = None if pure else lower_end(rounds, question)
    low = 0.0 if witness is None else witness.value
    given = epsilon, delta, question.wanted
    if above.value <= stated and above.proof is not None:
        note = "the Rényi bound alone is at most that"
        return Verification(True, *given, min(low, above.value), above.value, 0.0, "balls", above.proof.bits, note)
    note = (
        f"it lies between the lower end {rounded_down(low)} and the Rényi bound {rounded_up(above.value)}, and no "
        "independent route confirms it more closely"
    )
    ends = min(low, finer.value), finer.value
    gap = (stated - finer.value) / math.ulp(stated) if stated else 0.0
    route = "lattice" if finer.points else "sums"
    return Verification(low <= stated and finer.value <= stated, *given, *ends, gap, route, finer.points, note)
