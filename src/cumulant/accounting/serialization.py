"""A guarantee as data that outlives the process.

Fields, versions, exact inputs and the plan, as JSON values.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import fields
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

from cumulant.accounting.plan import Evidence, Plan, Term, contributions
from cumulant.accounting.question import BASELINES, Question
from cumulant.accounting.run import parse_record
from cumulant.accounting.text import RIGOUR, assumptions
from cumulant.conversion.certify import Certificate
from cumulant.conversion.failure import Failure, Reason
from cumulant.conversion.query import Answer
from cumulant.domains import DELTA, EPSILON
from cumulant.errors import InputError, shown
from cumulant.relation import Relation

if TYPE_CHECKING:
    from cumulant.accounting.guarantee import Guarantee

FORMAT = 2
"""The version of what is written. This library also reads format 1; it refuses a format that it does not know."""

_texts = ("method", "route", "rigour", "run", "witness", "note", "asked", "lower_rigour")
_fields_written = (
    "epsilon",
    "delta",
    "asked",
    "lower",
    "lower_rigour",
    "rigour",
    "route",
    "relation",
    "run",
    "method",
    "witness",
    "note",
)
_evidence = ("order", "bound", "terms", "bits", "radius")


def plain(value: Any) -> Any:
    """A field as a JSON value.

    >>> plain(math.inf), plain((1.5, None)), plain(Term("PureDP(epsilon=1)", 1, "", (), None))["times"]
    ('inf', [1.5, None], 1)
    """
    match value:
        case Term() | Evidence():
            return {each.name: plain(getattr(value, each.name)) for each in fields(value)}
        case tuple():
            return [plain(item) for item in value]
        case float() if math.isinf(value):
            return "inf"
        case float() if math.isnan(value):
            return None
        case str():
            return str(value)
    return value


def written(found: Guarantee) -> dict[str, Any]:
    """Return a guarantee as JSON values: versions, statement, assumptions, evidence, question and how it was answered."""
    known: dict[str, Any] = {"format": FORMAT, "cumulant": version("cumulant")}
    known |= {name: plain(getattr(found, name)) for name in _fields_written}
    known |= {"assumptions": list(found.assumptions), "evidence": plain(found.evidence)}
    return known | _exact_question(found.plan)


def _exact_question(plan: Plan | None) -> dict[str, Any]:
    """Return the exact question and the plan; None twice if the run has no text."""
    if plan is None or not plan.run.written:
        return {"question": None, "plan": None}
    question, found = plan.question, plan.answer
    asked = {
        "asked": question.asked,
        "value": question.value.text,
        "method": question.method,
        "bound": question.bound,
        "conversion": question.conversion,
        "accuracy": question.accuracy.text,
    }
    how = {
        "bound": found.bound,
        "route": found.way,
        "order": None if plan.order is None else str(plan.order),
        "width": found.width,
        "points": found.points,
    }
    return {"question": asked, "plan": how}


def read(text: str | bytes) -> tuple[dict[str, Any], Plan | None]:
    """Read the fields and the plan of a guarantee that was written.

    Every field is checked, and the run is read again.
    """
    try:
        state = json.loads(text)
    except (TypeError, ValueError, RecursionError) as error:
        raise InputError(f"this is not a guarantee ({error}); give the text of to_json()") from error
    if isinstance(state, dict) and "format" not in state and ("verdict" in state or "claim" in state):
        raise InputError(
            "this is a verdict, not a guarantee; use cumulant archive --claim to keep one that can be verified"
        )
    if isinstance(state, dict) and "format" not in state and "rows" in state:
        raise InputError(
            "this is the output of dpsgd or fedavg, not a guarantee; give one of its runs to cumulant epsilon --json"
        )
    if not isinstance(state, dict) or "epsilon" not in state:
        raise InputError("this is not a guarantee: it has no epsilon; give the text of to_json()")
    if state.get("format") not in (1, FORMAT):
        raise InputError(
            f"a guarantee of format {shown(state.get('format'))} is not known; this library reads formats 1 and {FORMAT}"
        )
    try:
        state = _upgrade(state) if state["format"] == 1 else state
        found, evidence = _fields(state), _read_evidence(state["evidence"])
        plan = _plan(state, found, evidence)
        if plan is not None:
            _check_provenance(state, found, evidence, plan)
            evidence |= {"terms": plan.terms, "bound": plan.bound}
        stored = {"written_run": found.pop("run"), "written_evidence": Evidence(**evidence)}
        return found | stored, plan
    except InputError:
        raise
    except (KeyError, IndexError, TypeError, AttributeError, ValueError, ArithmeticError) as error:
        raise InputError(f"this guarantee is incomplete or damaged ({error!r}); write it again by to_json()") from error


def _upgrade(state: Mapping[str, Any]) -> dict[str, Any]:
    """Return what format 1 says in format 2: `conversion` is the route, `lower_delta` the lower end of a delta."""
    known = dict(state)
    ends = {"delta": known.pop("lower"), "epsilon": known.pop("lower_delta")}
    known["lower"] = ends.pop(known["asked"])
    if list(ends.values()) != [None]:
        raise InputError("this guarantee has a lower end in the unit that was given; write it again by to_json()")
    known["route"] = known.pop("conversion")
    known["evidence"] = {name: known.pop(name) for name in _evidence}
    known.setdefault("lower_rigour", "")
    if known["plan"] is not None:
        how = dict(known["plan"])
        known["plan"] = how | {"route": how.pop("way")}
    return known


def _fields(state: Mapping[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = {name: _text(name, state[name]) for name in _texts}
    found |= {name: _number(name, state[name]) for name in ("epsilon", "delta")}
    found["lower"] = _maybe("lower", state["lower"])
    if found["rigour"] not in RIGOUR:
        raise InputError(f"rigour={shown(found['rigour'])} must be one of {', '.join(RIGOUR)}")
    if not isinstance(state["assumptions"], list):
        raise InputError(f"assumptions={shown(state['assumptions'])} of this guarantee must be a list of texts")
    assumed = tuple(_text("assumptions", each) for each in state["assumptions"])
    return found | {"relation": Relation.read(state["relation"]), "written_assumptions": assumed}


def _read_evidence(state: Mapping[str, Any]) -> dict[str, Any]:
    bits = state["bits"]
    if bits is not None and (type(bits) is not int or not 0 < bits < 10**6):
        raise InputError(f"bits={shown(bits)} of this guarantee must be a number of bits")
    return {
        "order": _maybe("order", state["order"]),
        "bound": _text("bound", state["bound"]),
        "terms": tuple(_term(each) for each in state["terms"]),
        "bits": bits,
        "radius": _maybe("radius", state["radius"]),
    }


def _check_provenance(
    state: Mapping[str, Any], found: Mapping[str, Any], evidence: Mapping[str, Any], plan: Plan
) -> None:
    """Raise InputError if a field contradicts the run and the plan.

    Verify proves the statement from these.
    """
    by_delta, answer, question = found["asked"] == "delta", plan.answer, plan.question
    epsilon, delta = (
        question.as_float if not by_delta else found["epsilon"],
        question.as_float if by_delta else found["delta"],
    )
    order = None if plan.order is None else str(plan.order)
    steps, points = answer.width, answer.points
    right = {
        "asked": state["question"]["asked"] == found["asked"],
        "method": question.method == found["method"],
        "epsilon": epsilon == found["epsilon"],
        "delta": delta == found["delta"],
        "route": answer.way == found["route"],
        "order": state["plan"]["order"] == order and (evidence["order"] is None or evidence["order"] > 1),
        "witness": plan.lower is not None or not (found["witness"] or found["lower_rigour"]),
        "lower_rigour": plan.lower is None or found["lower_rigour"] in RIGOUR,
        "radius": (evidence["bits"] is None) == (evidence["radius"] is None)
        and 0 <= (evidence["radius"] or 0) < math.inf,
        "points": answer.exact or points == 0,
        "width": steps is None or (answer.exact and 0 < steps < math.inf),
        "note": found["note"].isprintable() and found["witness"].isprintable(),
    }
    if not answer.exact:
        right["bound"] = answer.bound == ("lemma3" if answer.way in BASELINES else question.row)
    if state["cumulant"] == version("cumulant"):  # another release may say the same in other words
        right["assumptions"] = state["assumptions"] == assumptions(plan.run)
        right["terms"] = evidence["terms"] == plan.terms
        right["bound"] = right.get("bound", True) and evidence["bound"] == plan.bound
    for name, holds in right.items():
        if not holds:
            raise InputError(
                f"{name} of this guarantee is not what its run and its plan lead to; write it again by to_json()"
            )


def _term(state: Mapping[str, Any]) -> Term:
    times, value = state["times"], state["value"]
    if type(times) is not int or times < 1:
        raise InputError(f"times={shown(times)} of a term must be an integer of at least 1")
    nodes = tuple(_number("nodes", node) for node in state["nodes"])
    name, bound = _text("mechanism", state["mechanism"]), _text("bound", state["bound"])
    stated = state.get("round")  # absent in what earlier releases wrote
    if stated is not None:
        epsilon, delta = (_number("round", each) for each in stated)
        stated = epsilon, delta
    return Term(name, times, bound, nodes, None if value is None else _number("value", value), stated)


def _text(name: str, value: Any) -> str:
    if not isinstance(value, str):
        raise InputError(f"{name}={shown(value)} of this guarantee must be a text")
    return value


def _maybe(name: str, value: Any) -> float | None:
    return None if value is None else _number(name, value)


def _count(name: str, value: Any) -> int:
    if type(value) is not int or value < 0:
        raise InputError(f"{name}={shown(value)} of this guarantee must be a whole number")
    return value


def _number(name: str, value: Any) -> float:
    if value == "inf":
        return math.inf
    if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) < math.inf:
        raise InputError(f'{name}={shown(value)} of this guarantee must be a number or "inf"')
    return float(value)


def _plan(state: Mapping[str, Any], found: Mapping[str, Any], evidence: Mapping[str, Any]) -> Plan | None:
    """Return the plan, from the exact question and the text of the run.

    None where the run has no text.
    """
    if state["plan"] is None or state["question"] is None:
        return None
    run = parse_record(found["run"])
    listed = [(term.mechanism, term.times) for term in evidence["terms"]]
    if run.relation is not found["relation"] or [(part.name, part.times) for part in run.parts] != listed:
        raise InputError(
            "the relation or the terms of this guarantee are not those of its run; write it again by to_json()"
        )
    asked, how = state["question"], state["plan"]
    question = Question.parse_query(
        asked["method"], asked["bound"], asked["conversion"], asked["accuracy"], found["asked"]
    )
    given = (
        DELTA.check("delta", asked["value"]) if found["asked"] == "delta" else EPSILON.check("epsilon", asked["value"])
    )
    value = "epsilon" if found["asked"] == "delta" else "delta"
    proof = None
    if evidence["bits"] is not None and evidence["radius"] is not None:
        proof = Certificate(found[value], evidence["bits"], evidence["radius"])
    answer = Answer(
        found[value],
        evidence["order"],
        found["rigour"],
        proof,
        _text("bound", how["bound"]),
        _text("route", how["route"]),
        Failure(Reason.STORED, found["note"]) if found["note"] else None,
        None if how["width"] is None else _number("width", how["width"]),
        _count("points", how["points"]),
        tuple(each.round for each in evidence["terms"]),
    )
    ends = found["lower"], found["witness"], found["lower_rigour"]
    # what each part contributes follows from the run and the order: it is computed again and not believed
    known = contributions(run, answer)
    return Plan(run, question.with_value(given), answer, known, *ends, release=str(state["cumulant"]) or "unknown")
