"""How an expression is asked for epsilon and delta: the curve, the exact layer, or the smaller of the two."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from cumulant import domains
from cumulant.accounting.guarantee import Guarantee, stated
from cumulant.accounting.proof import term
from cumulant.accounting.question import DISTANCE, EXACT_BOUNDS, checked, exact_cone, named, rows, two_sided_method
from cumulant.conversion import arrays, attacks, baselines, scalars
from cumulant.conversion.conversions import conversion as conversion_row
from cumulant.conversion.scalars import Answer
from cumulant.domains import Exact, Number
from cumulant.errors import CertificateError, InputError
from cumulant.numerics.arithmetic import outward
from cumulant.numerics.rounding import rounded_down
from cumulant.progress import watched

if TYPE_CHECKING:
    from cumulant.accounting.answers import Answers
    from cumulant.lattice.rounds import Rounds
    from cumulant.lattice.two_sided import Found, Witness

Floats = np.ndarray[Any, np.dtype[np.float64]]


@dataclass(frozen=True, slots=True)
class Question:
    """What is asked besides delta or epsilon: the method, the rows it was narrowed to, and how fine a grid may be."""

    method: str
    bound: str | None
    conversion: str | None
    accuracy: Number

    def __post_init__(self) -> None:
        named(method=self.method, bound=self.bound, conversion=self.conversion)

    @property
    def two_sided(self) -> bool:
        """Whether the exact layer takes part."""
        return two_sided_method(self.method, self.bound, self.conversion)

    def fine(self) -> float:
        """The accuracy, checked."""
        return float(domains.ACCURACY.check("accuracy", self.accuracy))

    @property
    def whole_curve(self) -> bool:
        """Whether the curve may be used at all its orders together, no conversion being named."""
        return self.conversion is None and self.method in ("best", "rdp", "exact")

    def rows(self) -> tuple[str, str]:
        """The bound and conversion of the curve."""
        if self.two_sided:
            return rows("rdp", self.bound if self.method == "exact" and self.bound in EXACT_BOUNDS else None, None)
        return rows("rdp" if self.method == "best" else self.method, self.bound, self.conversion)


@dataclass(frozen=True, slots=True)
class Asked:
    """Which of the two numbers of a statement was given, and its exact value; the other one is what was found."""

    name: str
    value: Exact

    @classmethod
    def one_of(cls, delta: Number | None, epsilon: Number | None) -> Asked:
        """The one that was given, checked."""
        if epsilon is None and delta is not None:
            return cls("delta", domains.DELTA.check("delta", delta))
        if delta is None and epsilon is not None:
            return cls("epsilon", domains.EPSILON.check("epsilon", epsilon))
        raise InputError(
            f"a guarantee is asked for with exactly one of delta and epsilon, not {'both' if delta is not None else 'none'}: "
            "guarantee(delta=1e-6) finds epsilon, guarantee(epsilon=1) finds delta"
        )

    @property
    def found(self) -> str:
        """The name of the other number."""
        return "delta" if self.name == "epsilon" else "epsilon"

    @property
    def stated(self) -> float:
        """The value as a float that claims no more."""
        return stated(self.value)

    def statement(self, found: float) -> tuple[float, float]:
        """epsilon and delta, one of them given and the other one found."""
        return (self.stated, found) if self.name == "epsilon" else (found, self.stated)

    def exactly(self, epsilon: float, delta: float) -> tuple[Fraction, Fraction]:
        """The finite epsilon and the delta that these floats state: the one that was given means its exact value."""
        given, found = (epsilon, delta) if self.name == "epsilon" else (delta, epsilon)
        value = self.value if given == self.stated else Fraction(repr(given))
        return (value, Fraction(found)) if self.name == "epsilon" else (Fraction(found), value)


@dataclass(frozen=True, slots=True)
class Outcome:
    """A number and what proves it; `way` is the conversion of a curve, or how the exact layer found it."""

    answer: Answer
    bound: str
    way: str
    note: str = ""
    width: float | None = None
    points: int = 0

    @property
    def exact(self) -> bool:
        """Whether the exact layer gave it."""
        return self.way in ("closed form", "lattice", "cone")


def epsilon(run: Answers, delta: Number | Iterable[Number], question: Question) -> float | Floats:
    """epsilon at one delta, or at each of several."""
    value, scalar = checked("delta", delta, domains.DELTA)
    if scalar:
        return outcome(run, value[0], question).answer.value
    if question.two_sided or question.method in baselines.BASELINES:
        return np.array([outcome(run, each, question).answer.value for each in value])
    bound, conversion = question.rows()
    found = arrays.least_epsilons(run.curve(bound), value, conversion_row(conversion))
    largest = max((rounded_down(each) for each in value if 0 < each < 1), default=0.0)
    distance = _distance(run, question, largest) if found.max(initial=0.0) > 0 else 1.0
    return np.where([0 < each < 1 and distance <= each for each in value], 0.0, found)


def delta(run: Answers, epsilon: Number | Iterable[Number], question: Question) -> float | Floats:
    """delta at one epsilon, or at each of several."""
    bound, conversion = question.rows()
    value, scalar = checked("epsilon", epsilon, domains.EPSILON)
    if scalar:
        return delta_outcome(run, value[0], question).answer.value
    found = np.ones(len(value))
    rounds = rounds_of(run)[0] if question.two_sided else None
    if rounds is not None:
        found = np.array([_exact_delta(rounds, each, question).answer.value for each in value])
    if rounds is None or question.method != "exact":
        found = np.minimum(found, arrays.least_deltas(run.curve(bound), value, conversion_row(conversion)))
    return np.minimum(found, _distance(run, question, found.max(initial=0.0)) if rounds is None else 1.0)


def outcome(run: Answers, asked: Exact, question: Question) -> Outcome:
    """epsilon at this delta by the method that is asked for."""
    if question.method in baselines.BASELINES:
        value = float(outward(np.array([_baseline(run, asked, question)]))[0])
        return Outcome(Answer(value, None, "estimated" if run.estimated else "bounded"), "lemma3", question.method)
    bound, conversion = question.rows()
    rounds, note = rounds_of(run) if question.two_sided and 0 < asked < 1 else (None, "")
    exact = _exact(rounds, asked, question) if rounds is not None else None
    if exact is not None and question.method == "exact":
        return exact
    known = math.inf if exact is None else exact.answer.value
    by_curve = scalars.proved_epsilon(run.curve(bound), asked, conversion_row(conversion), run.estimated, below=known)
    if exact is not None and exact.answer.value < by_curve.value:
        return exact
    if exact is not None and math.isinf(exact.answer.value):
        note = "no grid gave a finite answer, so it comes from Renyi divergences"
    if by_curve.value > 0 and 0 < asked < 1 and _distance(run, question, rounded_down(asked)) <= asked:
        return Outcome(Answer(0.0, None, "estimated" if run.estimated else "bounded"), bound, DISTANCE, note)
    return Outcome(by_curve, bound, conversion, note)


def delta_outcome(run: Answers, asked: Exact, question: Question) -> Outcome:
    """delta at this epsilon by the method that is asked for."""
    bound, conversion = question.rows()
    rounds, note = rounds_of(run) if question.two_sided else (None, "")
    exact = _exact_delta(rounds, asked, question) if rounds is not None else None
    if exact is not None and question.method == "exact":
        return exact
    known = math.inf if exact is None else exact.answer.value
    by_curve = scalars.proved_delta(run.curve(bound), asked, conversion_row(conversion), run.estimated, below=known)
    if exact is not None and exact.answer.value < by_curve.value:
        return exact
    if (distance := _distance(run, question, by_curve.value)) < by_curve.value:
        return Outcome(Answer(distance, None, "estimated" if run.estimated else "bounded"), bound, DISTANCE, note)
    return Outcome(by_curve, bound, conversion, note)


def _distance(run: Answers, question: Question, below: float) -> float:
    """The total variation distance that the whole curve leaves, if it may be asked for and can be below this; else 1."""
    if not question.whole_curve:
        return 1.0
    return attacks.total_variation(run.curve(question.rows()[0]), below)


def rounds_of(run: Answers) -> tuple[Rounds | None, str]:
    """What the exact layer composes, or None and the reason."""
    from cumulant.accounting.rounds import rounds

    return rounds(run)


def _exact(rounds: Rounds, asked: Fraction, question: Question) -> Outcome:
    from cumulant.lattice import two_sided

    return _outcome(rounds, two_sided.epsilon(rounds, asked, question.fine(), exact_cone(question.bound)))


def _exact_delta(rounds: Rounds, asked: Fraction, question: Question) -> Outcome:
    from cumulant.lattice import two_sided

    return _outcome(rounds, two_sided.delta(rounds, asked, question.fine(), exact_cone(question.bound)))


def _outcome(rounds: Rounds, found: Found) -> Outcome:
    order = found.order if found.order is not None and math.isfinite(found.order) else None
    bound = "poisson" if rounds.directed else "profile" if found.way != "cone" else "gaussian-cone"
    return Outcome(Answer(found.value, order, found.rigour), bound, found.way, "", found.width, found.points)


def guarantee(run: Answers, delta: Number | None, epsilon: Number | None, question: Question) -> Guarantee:
    """The number at the one that is given, with everything that proves it, and the lower end where it is known."""
    from cumulant.accounting.plan import planned

    asked = Asked.one_of(delta, epsilon)
    found = (outcome if asked.name == "delta" else delta_outcome)(run, asked.value, question)
    answer = found.answer
    order = None if found.exact else answer.order
    parts = tuple(term(mechanism, times, found.bound, order) for mechanism, times in run.terms.items())
    used = {part.bound for part in parts if part.bound}
    plan = planned(run, asked, found, question)
    lower, witness = _lower(run, asked, answer.value, question)
    if lower is not None and lower > answer.value:
        raise CertificateError(
            f"the run needs at least {lower!r} and {answer.value!r} was found to be enough; please report it"
        )
    at_epsilon, at_delta = asked.statement(answer.value)
    return Guarantee(
        epsilon=at_epsilon,
        delta=at_delta,
        lower=lower if asked.name == "delta" else None,
        order=answer.order,
        method=question.method,
        bound="mixed" if len(used) > 1 else next(iter(used), found.bound),
        conversion=found.way,
        rigour=answer.rigour,
        relation=run.relation,
        run=str(run),
        terms=parts,
        witness=witness,
        note=found.note,
        asked=asked.name,
        lower_delta=lower if asked.name == "epsilon" else None,
        bits=plan.bits,
        radius=plan.radius,
        plan=plan,
    )


def _lower(run: Answers, asked: Asked, answer: float, question: Question) -> tuple[float | None, str]:
    """What the number cannot be below, and the data sets that show it."""
    if not question.two_sided or (asked.name == "delta" and not 0 < asked.value < 1):
        return None, ""
    if answer == 0:
        return 0.0, "any data sets"
    rounds, _ = rounds_of(run)
    found = None if rounds is None else lower_end(rounds, asked, question.fine())
    return (None, "") if found is None else (found.value, found.name)


def lower_end(rounds: Rounds, asked: Asked, accuracy: float) -> Witness | None:
    """The largest epsilon, or delta, that explicit neighbouring data sets need."""
    from cumulant.lattice import two_sided

    if asked.name == "delta":
        return two_sided.lower_epsilon(rounds, asked.value, accuracy)
    return two_sided.lower_delta(rounds, asked.value, accuracy)


def _baseline(run: Answers, delta: Exact, question: Question) -> float:
    """A composition theorem on the (epsilon, delta) of each round, amplified by Lemma 3."""
    if question.bound or question.conversion:
        raise InputError(f"method={question.method!r} takes no bound and no conversion")
    parts = [(*mechanism.by_lemma3(), times) for mechanism, times in run.terms.items()]
    steps = [baselines.step(inner.curve(), rate, times) for inner, rate, times in parts]
    return baselines.baseline_epsilon(steps, rounded_down(delta), question.method)


def epsilon_over(run: Answers, times: Iterable[int], delta: Number, question: Question) -> Floats:
    """epsilon of `run * k` for every k: by the envelope of a curve, and by one lattice per count."""
    counts = [domains.times(k) for k in domains.listed("times", times)]
    asked = domains.DELTA.check("delta", delta)
    bound, conversion = question.rows()
    by_curve = arrays.epsilon_over(run.curve(bound), counts, asked, conversion_row(conversion))
    if not (question.two_sided and 0 < asked < 1):
        return by_curve
    known = {k: _exact_of(run * k, asked, question) for k in watched(list(dict.fromkeys(counts)), "counts")}
    exact = [known[k] for k in counts]
    if question.method == "exact":
        return np.array([curve if each is None else each for each, curve in zip(exact, by_curve, strict=True)])
    return np.minimum([math.inf if each is None else each for each in exact], by_curve)


def _exact_of(run: Answers, asked: Fraction, question: Question) -> float | None:
    """epsilon by the exact layer, None where that cannot take the run."""
    rounds, _ = rounds_of(run)
    return None if rounds is None else _exact(rounds, asked, question).answer.value
