"""The proof of a guarantee, as data: what ran, by which theorem, at which order, converted how; and what to do with it."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from cumulant.accounting import statement as words
from cumulant.accounting.answering import Asked, Outcome, Question
from cumulant.accounting.answers import Answers
from cumulant.accounting.guarantee import Guarantee, Term, rounded_down, rounded_up
from cumulant.accounting.question import CURVES, DISTANCE, GUIDE
from cumulant.conversion import scalars
from cumulant.conversion.attacks import distance_is_at_most
from cumulant.conversion.certify import FIRST_BITS
from cumulant.conversion.conversions import CONVERSIONS
from cumulant.conversion.scalars import rational_order
from cumulant.conversion.verify import Verification, verify, verify_delta
from cumulant.domains import Exact, spelling
from cumulant.errors import CertificateError, NotationError
from cumulant.mechanisms.mechanism import Expression, Mechanism
from cumulant.mechanisms.run import Run
from cumulant.mechanisms.run import run as run_of

if TYPE_CHECKING:
    from cumulant.lattice.rounds import Rounds

_LONG = 10**40
"""A denominator that nobody reads."""

RENYI = CURVES[GUIDE][1]
"""The conversion of the bound that encloses an exact answer from above."""

_DISTANCE_BITS = 256

RIGOUR = {
    "proved": "every step was enclosed, rounding included, so the exact value of the bound is at most this number",
    "bounded": "float64 with every analytic error term added, moved outward by far more than its rounding",
    "estimated": "the number rests on a Python function that can only be sampled, so nothing is proved",
}
"""What each level of rigour means."""


@dataclass(frozen=True, slots=True)
class Plan:
    """Everything that is needed to evaluate a guarantee again: `bound` at `order` (None is infinity), by `conversion`.

    The run is exact data, so no number needs to be kept. `bits` and `radius` say how the ball of the certificate came out;
    without them nothing was evaluated, or nothing could be.
    """

    run: Expression
    bound: str
    conversion: str
    order: Fraction | None
    asked: Asked
    rigour: str
    bits: int | None = None
    radius: float | None = None

    def verify(self, epsilon: float, delta: float) -> Verification:
        """The bound at the stored order, evaluated afresh; see `Guarantee.verify`."""
        if self.conversion == DISTANCE and self.rigour == "bounded":
            holds = distance_is_at_most(
                self.run.curve(self.bound), self.asked.exactly(epsilon, delta)[1], _DISTANCE_BITS
            )
            note = "the total variation distance, which bounds delta at every epsilon"
            return Verification(
                holds, epsilon, delta, "delta", 0.0, delta if holds else 1.0, 0.0, "balls", _DISTANCE_BITS, note
            )
        if self.conversion not in CONVERSIONS:
            raise CertificateError(
                f"method={self.conversion!r} is {RIGOUR['bounded']}; only a bound at one order can be verified, "
                'method="rdp" or "paper"'
            )
        if self.rigour != "proved":
            raise CertificateError(f"this guarantee is {self.rigour}, not proved, so there is nothing to verify")
        curve, conversion, bits = self.run.curve(self.bound), CONVERSIONS[self.conversion], self.bits or FIRST_BITS
        if self.asked.name == "epsilon":
            return verify_delta(curve, self.order, self.asked.exactly(epsilon, delta)[0], conversion, delta, bits)
        return verify(curve, self.order, self.asked.exactly(0.0, delta)[1], conversion, epsilon, bits)

    def explain(self, found: Guarantee) -> str:
        """The guarantee in words, one paragraph per line; see `Guarantee.explain`."""
        run = self.run
        return "\n".join(
            [
                f"{words.statement(found, self.asked.value)}, {words.relation(run)}.",
                words.what_ran(run),
                *self._theorems(found),
                f"Conversion: {self._converted(found)}.",
                f"Arithmetic: {self._arithmetic(found)}.",
                f"Exact inputs: {self._inputs()}.",
                words.assumed(run),
                f"Rigour: {found.rigour}, which means: {RIGOUR[found.rigour]}.",
            ]
        )

    def _theorems(self, found: Guarantee) -> Iterator[str]:
        if found.delta >= 1 or found.epsilon == math.inf:
            return
        for (mechanism, times), term in list(zip(self.run.terms.items(), found.terms, strict=True))[: words.MOST_TERMS]:
            yield f"{_counted(mechanism, times)}: {self._theorem(mechanism, term)}."
        if len(found.terms) > words.MOST_TERMS:
            yield f"And {len(found.terms) - words.MOST_TERMS:,} further mechanisms."

    def _theorem(self, mechanism: Mechanism, term: Term) -> str:
        inner, rate = mechanism.unsampled()
        curve = _first_sentence(inner) if isinstance(inner, Mechanism) else "Lemma 5, the curves of all that ran add up"
        if self.conversion == DISTANCE:
            return f"the whole curve of {curve}" + (f", on its sample by {term.bound}" if term.bound else "")
        if self.conversion not in CONVERSIONS:
            return f"{curve}; on its sample of rate {rate} by Lemma 3" if term.bound else curve
        if self.order is None:
            reached = f"epsilon = {term.value:.6g} at order infinity"
        else:
            reached = f"K = {term.value:.6g} at order {found_order(self.order)}"
        if not term.bound:
            return f"{reached}, from the curve of {curve}"
        theorem = words.row(mechanism, term.bound)
        return (
            f"{reached}, by {theorem.name}: {theorem.statement} ({theorem.citation}); it assumes {theorem.assumptions}; "
            f"the curve on the sample is that of {curve}"
        )

    def _converted(self, found: Guarantee) -> str:
        if found.delta >= 1:
            return "none, a delta of 1 holds for everything and protects nobody"
        if self.conversion not in CONVERSIONS:
            return f"none, {words.unconverted(self.conversion)}"
        if self.order is None:
            return "none, order infinity is pure differential privacy, which adds up"
        return f"{self.conversion}, at order {found_order(self.order)}, by {words.conversion(found)}"

    def _arithmetic(self, found: Guarantee) -> str:
        if self.bits is not None:
            return (
                f"the order was found in float64; there the bound was evaluated once, in balls of {self.bits} bits; the "
                f"ball has radius {self.radius:.2g}, and its upper end was rounded up to a float"
            )
        if found.rigour == "proved":
            return "exact, nothing had to be evaluated"
        return "float64, rounded outward"

    def _inputs(self) -> str:
        rates = dict.fromkeys(mechanism.unsampled()[1] for mechanism in words.nested(self.run) if mechanism.amplified)
        shown = [f"{self.asked.name} = {_fraction(self.asked.value)}"]
        if self.order is not None:
            shown.append(f"order = {_fraction(self.order)}")
        if self.conversion in CONVERSIONS and (slack := self.run.curve(self.bound).slack()):
            exact = slack.denominator < _LONG
            failing = _fraction(slack) if exact else f"{rounded_up(float(slack))} (rounded up)"
            shown.append(f"of delta, {failing} is what the promises in the run may fail with")
        shown += [f"rate = {_fraction(rate)}" for rate in rates]
        return "; ".join(shown) + "; every other number as it is written above"

    def __reduce__(self) -> tuple[Any, ...]:
        try:
            self.run.notation()
        except NotationError:
            return Lost, ()
        fields = self.bound, self.conversion, self.order, self.asked, self.rigour, self.bits, self.radius
        return Plan, (self.run, *fields)


@dataclass(frozen=True, slots=True)
class ExactPlan:
    """Everything that is needed to evaluate an answer of the exact layer again, by another route or on another grid."""

    run: Expression
    asked: Asked
    way: str
    question: Question
    rigour: str
    width: float | None
    points: int
    bits: int | None = None
    radius: float | None = None

    def verify(self, epsilon: float, delta: float) -> Verification:
        """By the closed form at more bits or along the saddle line, else on a finer grid; see `Guarantee.verify`."""
        if self.rigour == "estimated":
            raise CertificateError("this guarantee is estimated, not proved, so there is nothing to verify")
        from cumulant.accounting.answering import rounds_of
        from cumulant.lattice import other_route as verification

        if delta >= 1 or epsilon == math.inf:  # (0, 1) and (inf, 0) hold for everything
            return Verification(epsilon >= 0, epsilon, delta, self.asked.found, 0.0, math.inf, 0.0, "none", 0)
        rounds, _ = rounds_of(self.run)
        if rounds is None:
            raise CertificateError("the run is no longer one that the exact layer can take")
        statement = self.asked.exactly(epsilon, delta)
        found = verification.verify(rounds, self.way, *statement)
        if found is not None:
            return found
        return self._again(rounds, epsilon, delta, Exact(statement[0 if self.asked.name == "epsilon" else 1]))

    def _again(self, rounds: Rounds, epsilon: float, delta: float, value: Exact) -> Verification:
        """The same theorem on a grid of half the step, which must not need more than was stated.

        That shows no mistake of the code, so besides it there is only what encloses the answer: the Rényi bound, which is
        proved by other means, and the lower end.
        """
        from cumulant.accounting.answering import lower_end
        from cumulant.lattice import two_sided

        asked = Asked(self.asked.name, value)
        finer, cone, curve = self.question.fine() / 4, self.way == "cone", self.run.curve()
        if asked.name == "delta":
            stated, again = epsilon, two_sided.epsilon(rounds, asked.value, finer, cone)
            above = scalars.proved_epsilon(curve, asked.value, CONVERSIONS[RENYI])
        else:
            stated, again = delta, two_sided.delta(rounds, asked.value, finer, cone)
            above = scalars.proved_delta(curve, asked.value, CONVERSIONS[RENYI])
        witness = lower_end(rounds, asked, self.question.fine())
        low = 0.0 if witness is None else witness.value
        given = epsilon, delta, asked.found
        if above.value <= stated and above.proof is not None:
            note = "the Renyi bound alone is at most that"
            return Verification(True, *given, min(low, above.value), above.value, 0.0, "balls", above.proof.bits, note)
        note = (
            f"it lies between the lower end {rounded_down(low)} and the Renyi bound {rounded_up(above.value)}, and no "
            "independent route confirms it more closely"
        )
        ends = min(low, again.value), again.value
        gap = (stated - again.value) / math.ulp(stated) if stated else 0.0
        route = "lattice" if again.points else "sums"
        return Verification(low <= stated and again.value <= stated, *given, *ends, gap, route, again.points, note)

    def explain(self, found: Guarantee) -> str:
        """The guarantee in words; see `Guarantee.explain`."""
        low, lower = found.lower if self.asked.name == "delta" else found.lower_delta, ""
        if low is not None:
            lower = f" No claim below {rounded_down(low)} is true, shown by {found.witness}."
        grid = "balls of 256 bits" if self.way == "closed form" else "float64 with every error term added"
        if self.width is not None and found.order is not None:
            grid += f": a grid of step {self.width:.3g}, {self.points:,} points, tilted to order {found.order:.4g}"
        return "\n".join(
            [
                f"{words.statement(found, self.asked.value)}, {words.relation(self.run)}.{lower}",
                words.what_ran(self.run),
                f"Proved by {words.WAYS[self.way]}.",
                "Products of dominating pairs dominate adaptive composition (Zhu, Dong, Wang 2022).",
                f"Arithmetic: {grid}.",
                words.assumed(self.run),
                f"Rigour: {found.rigour}, which means: {RIGOUR[found.rigour]}.",
            ]
        )

    def __reduce__(self) -> tuple[Any, ...]:
        try:
            self.run.notation()
        except NotationError:
            return Lost, ()
        return ExactPlan, (self.run, self.asked, self.way, self.question, self.rigour, self.width, self.points)


@dataclass(frozen=True, slots=True)
class Lost:
    """What is left of a plan with a Python function in it once the guarantee was pickled: functions do not travel."""

    def verify(self, epsilon: float, delta: float) -> Verification:
        """There is nothing left to evaluate."""
        raise CertificateError("the run holds a Python function, which was not pickled; verify it where it was made")

    def explain(self, found: Guarantee) -> str:
        """What the guarantee says of itself."""
        return (
            f"{words.statement(found, found.epsilon if found.asked == 'epsilon' else found.delta)} for "
            f"{found.run}, by {found.bound} at order {found.order} and {found.conversion}.\n"
            "The run holds a Python function, which was not pickled with the guarantee; explain it where it was made.\n"
            f"Rigour: {found.rigour}, which means: {RIGOUR[found.rigour]}."
        )


def planned(expression: Answers, asked: Asked, found: Outcome, question: Question) -> Plan | ExactPlan:
    """The plan of an answer about an expression, frozen as it is now."""
    frozen = expression if isinstance(expression, Run | Mechanism) else run_of(expression.terms)
    answer = found.answer
    if found.exact:
        return ExactPlan(frozen, asked, found.way, question, answer.rigour, found.width, found.points)
    order = None if answer.order is None or math.isinf(answer.order) else rational_order(answer.order)
    bits, radius = (None, None) if answer.proof is None else (answer.proof.bits, answer.proof.radius)
    bound = found.bound if found.way not in CONVERSIONS else question.rows()[0]
    return Plan(frozen, bound, found.way, order, asked, answer.rigour, bits, radius)


def found_order(order: Fraction) -> str:
    """The order, as far as it helps to read it."""
    return spelling(order) if order < 2 else f"{float(order):g}"


def _counted(mechanism: Mechanism, times: int) -> str:
    return f"{words.name(mechanism)} * {times}" if times > 1 else words.name(mechanism)


def _first_sentence(mechanism: Mechanism) -> str:
    """What the class says it is."""
    text = " ".join((type(mechanism).__doc__ or "").split("\n\n")[0].split())
    return f"{type(mechanism).__name__} ({text.rstrip('.')})"


def _fraction(value: Fraction) -> str:
    return f"{value.numerator}/{value.denominator}" if value.denominator > 1 else str(value.numerator)
