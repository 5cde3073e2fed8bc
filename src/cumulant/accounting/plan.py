"""The proof of a guarantee, as data.

What ran, what was asked, what was found, and what each part contributed.
"""

from __future__ import annotations

import math
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np

from cumulant.accounting import answer as answering
from cumulant.accounting.question import Question
from cumulant.accounting.run import RunRecord
from cumulant.conversion.query import Answer
from cumulant.conversion.renyi_to_dp import rational_order
from cumulant.errors import CertificateError
from cumulant.numerics.rounding import stated


@dataclass(frozen=True, slots=True)
class Term:
    """One component of a run and what it contributed.

    That is K at the chosen order, all repetitions together.

    `round` is the (epsilon, delta) at which a composition theorem states each repetition, on the data and not on its sample:
    the choice that makes the total least (item 47). None where no such theorem was used.

    >>> import cumulant as cm
    >>> (term,) = (cm.PureDP(1) * 3).guarantee(delta=0).evidence.terms
    >>> term.mechanism, term.times
    ('PureDP(epsilon=1)', 3)
    """

    mechanism: str
    times: int
    bound: str
    nodes: tuple[float, ...]
    value: float | None  # None where no order is involved
    round: tuple[float, float] | None = None


@dataclass(frozen=True, slots=True)
class Evidence:
    """The numbers behind a guarantee: Rényi order, amplification bound, components, and the ball that proved the value.

    `order` is None if no order is involved. `bound` is "mixed" if several theorems amplified. `bits` and `radius` are the
    precision and the radius of the ball; None if floats bounded the value.

    >>> import cumulant as cm
    >>> found = cm.Gaussian(sigma=1).guarantee(delta=1e-5, method="rdp").evidence
    >>> found.order, found.bound, [term.times for term in found.terms]
    (5.44, 'best', [1])
    """

    order: float | None
    bound: str
    terms: tuple[Term, ...]
    bits: int | None = field(default=None, compare=False)
    radius: float | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class Plan:
    """Everything that is needed to evaluate an answer again and to explain it.

    The run is exact data, so no number of the search needs to be kept. `lower` is what the number cannot be below, shown by the
    data sets that `witness` names; None where none are known. `lower_rigour` says how that is known.
    """

    run: RunRecord
    question: Question
    answer: Answer
    contributions: tuple[tuple[str, float], ...]
    """The theorem of each part and its K at the order, all repetitions together; () if no order is involved."""
    lower: float | None
    witness: str
    lower_rigour: str = ""
    release: str = ""
    """The release that wrote a plan which was read; empty for one that was made here."""

    @property
    def order(self) -> Fraction | None:
        """The exact order that the curve is asked at; None is infinity, or that there is none."""
        order = self.answer.order
        return None if order is None or math.isinf(order) else rational_order(order)

    @property
    def terms(self) -> tuple[Term, ...]:
        """Each part of the run and what it contributed; its text is written when it is read."""
        rounds = self.answer.rounds or (None,) * len(self.run.parts)
        nodes = (self.answer.order,) if self.contributions and self.answer.order is not None else ()
        found = []
        for i, (part, one) in enumerate(zip(self.run.parts, rounds, strict=True)):
            name, value = self.contributions[i] if nodes else (self.answer.bound if part.scheme else "", None)
            found.append(Term(part.name, part.times, name, nodes, value, one))
        return tuple(found)

    @property
    def bound(self) -> str:
        """The theorem that amplified, "mixed" where several did."""
        used = {term.bound for term in self.terms if term.bound}
        return "mixed" if len(used) > 1 else next(iter(used), self.answer.bound)

    @property
    def statement(self) -> tuple[float, float]:
        """epsilon and delta, one of them given and the other one found."""
        given, found = stated(self.question.value), self.answer.value
        return (given, found) if self.question.asked == "epsilon" else (found, given)


def planned(run: RunRecord, question: Question) -> Plan:
    """The answer with everything that proves it, and the lower end where it is known."""
    shared: AbstractContextManager[None] = nullcontext()
    if question.two_sided and not answering.has_closed_form(run):
        from cumulant.exact.inversion.solver import share_lines

        shared = share_lines(spare=0.0)  # neighbours that need most often are the pair that bounds
    with shared:
        found = answering.answer(run, question)
        lower, witness, lower_rigour = answering.lower(run, question, found.value)
    if lower is not None and lower > found.value:
        raise CertificateError(
            f"the run needs at least {lower!r} and {found.value!r} was found to be enough; please report it"
        )
    return Plan(run, question, found, contributions(run, found), lower, witness, lower_rigour)


def contributions(run: RunRecord, found: Answer) -> tuple[tuple[str, float], ...]:
    """Return for each component the theorem that amplified it, and its K at the order of the answer.

    Returns () if no order is involved.
    """
    order = found.order
    if found.exact or order is None:
        return ()
    known = []
    for part in run.parts:
        curve = part.curve(found.bound)
        value = float(curve.pure() if order == np.inf else curve.cgf(np.array([order - 1]))[0])
        name = "" if part.scheme is None else curve.winner(order) or found.bound
        known.append((name, part.times * value))
    return tuple(known)
