"""Questions about runs, as functions of JSON values.

They run in worker processes, so that they can be stopped.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping
from typing import Any

from cumulant.accounting import attacks, text
from cumulant.accounting.gaussian_fit import DEFAULT_SLACK
from cumulant.accounting.guarantee import Guarantee
from cumulant.accounting.question import DEFAULT_ACCURACY, DEFAULT_METHOD
from cumulant.accounting.risk import risk
from cumulant.calibrate import calibrate
from cumulant.domains import DELTA, Exact
from cumulant.errors import BudgetRefused, CumulantError, InputError, LedgerBroken, LedgerError
from cumulant.notation import parse
from cumulant.plotting.charts import CHARTS
from cumulant.web.ledger_questions import LEDGER_QUESTIONS

_DRAWN = {"rounds": "rounds", "epsilon": "epsilon", "attack": "trade-off"}
"""The charts of the page, by the names of those of a picture."""


def epsilon(request: Mapping[str, Any]) -> dict[str, Any]:
    """Return the guarantee at a delta, as JSON values."""
    return _at_delta(request).to_dict()


def delta(request: Mapping[str, Any]) -> dict[str, Any]:
    """Return the guarantee at an epsilon."""
    run = parse(request["run"])
    return run.guarantee(method=request.get("method") or DEFAULT_METHOD, epsilon=request["epsilon"]).to_dict()


def check(request: Mapping[str, Any]) -> dict[str, Any]:
    """Check a claim."""
    return parse(request["run"]).check(epsilon=request["epsilon"], delta=request["delta"]).to_dict()


def calibration(request: Mapping[str, Any]) -> dict[str, Any]:
    """Find the value of a parameter, written '?', that just meets a target."""
    method = request.get("method") or DEFAULT_METHOD
    return calibrate(request["run"], epsilon=request["epsilon"], delta=request["delta"], method=method).to_dict()


def mu(request: Mapping[str, Any]) -> dict[str, Any]:
    """Return the mu of Gaussian privacy at a slack, with its sentence."""
    found = parse(request["run"]).gaussian_fit(slack=request.get("slack") or DEFAULT_SLACK)
    return {**found.to_dict(), "said": str(found)}


def risk_of(request: Mapping[str, Any]) -> dict[str, Any]:
    """Return the success of an attack from a prior, with its two sentences."""
    found = risk(parse(request["run"]).record(), request["kind"], request["prior"])
    return {**found.to_dict(), "said": [str(found), found.caveat]}


def explore(request: Mapping[str, Any]) -> dict[str, Any]:
    """Return the guarantee, its sentences, and the same question in Python and in the shell."""
    found = _at_delta(request)
    plan = found.proof
    told = [text.headline(plan), text.what_ran(plan.run)]
    if text.says_something(plan):
        reach = attacks.in_brief(plan.run, "0.01", found.method, found.epsilon, found.delta)
        told = [
            text.headline(plan),
            text.doubled(plan.run),
            text.interval(plan),
            *text.attacker(plan.run, *reach),
            text.what_ran(plan.run),
            text.proof(plan),
        ]
    given = DELTA.check("delta", request["delta"]).text
    return {
        "guarantee": found.to_dict(),
        "said": [each for each in told if each],
        "assumptions": text.assumptions(plan.run),
        "statement": found.explain(),
        "python": f"import cumulant as cm\n\nrun = cm.parse({found.run!r})\nprint(run.guarantee(delta='{given}').explain())\n",
        "shell": shlex.join(["cumulant", "epsilon", found.run, "--delta", given, "--explain"]),
    }


def chart(request: Mapping[str, Any]) -> dict[str, Any]:
    """Return one of the charts of a run as numbers."""
    if request["kind"] not in _DRAWN:
        raise InputError(f"kind={request['kind'][:40]!r} is unknown; choose one of {', '.join(_DRAWN)}")
    at = DELTA.check("delta", request["delta"])
    return CHARTS[_DRAWN[request["kind"]]](parse(request["run"]), at if 0 < at < 1 else Exact("1e-8"), "best").to_dict()


def _at_delta(request: Mapping[str, Any]) -> Guarantee:
    method, accuracy = request.get("method") or DEFAULT_METHOD, request.get("accuracy") or DEFAULT_ACCURACY
    return parse(request["run"]).guarantee(delta=request["delta"], method=method, accuracy=accuracy)


QUESTIONS: dict[str, Callable[[Mapping[str, Any]], dict[str, Any]]] = {
    "epsilon": epsilon,
    "delta": delta,
    "check": check,
    "calibrate": calibration,
    "mu": mu,
    "risk": risk_of,
    "explore": explore,
    "chart": chart,
    **LEDGER_QUESTIONS,
}
_CODES = ((BudgetRefused, 409), (InputError, 400), (LedgerBroken, 500), (LedgerError, 503), (CumulantError, 409))
"""The status of HTTP that each kind of error has; the first that fits."""


def answer_question(kind: str, request: Mapping[str, Any]) -> tuple[int, dict[str, Any]]:
    """Return the status of HTTP and the answer, whatever happens.

    An error is one sentence, and never a traceback.

    >>> answer_question("epsilon", {"run": "PureDP(1)", "delta": 0})[1]["epsilon"]
    1.0
    >>> answer_question("epsilon", {"run": "PureD(1)", "delta": 0})
    (400, {'error': "unknown name 'PureD' at position 0; did you mean 'PureDP'?", 'position': 0})
    """
    try:
        return 200, QUESTIONS[kind](request)
    except CumulantError as error:
        code = next(code for kind, code in _CODES if isinstance(error, kind))
        return code, {"error": str(error), "position": getattr(error, "position", None)}
    except MemoryError:
        return 413, {"error": "the question needs more memory than one question may have", "position": None}
    except Exception as error:
        return 500, {
            "error": f"unexpected {type(error).__name__}; please report it with the question",
            "position": None,
        }
