"""Questions about runs, as functions of JSON values.

They run in worker processes, so that they can be stopped.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable, Mapping
from typing import Any

from cumulant.accounting import attacks, text
from cumulant.accounting.gaussian_fit import DEFAULT_SLACK
from cumulant.accounting.guarantee import Guarantee
from cumulant.accounting.numbers import percent, rounded_down, rounded_up
from cumulant.accounting.question import DEFAULT_ACCURACY, DEFAULT_METHOD
from cumulant.accounting.risk import PRIOR, risk, share_text
from cumulant.accounting.run import RunRecord
from cumulant.calibrate import calibrate
from cumulant.domains import DELTA, Exact
from cumulant.errors import BudgetRefused, CumulantError, InputError, KeyConflict, LedgerBroken, LedgerError
from cumulant.ledger.entry import Receipt
from cumulant.notation import parse
from cumulant.plotting.charts import CHARTS
from cumulant.training.sgd import NoisySGD
from cumulant.web.ledger_questions import LEDGER_QUESTIONS

_DRAWN = {"rounds": "rounds", "epsilon": "epsilon", "attack": "trade-off"}
"""The charts of the page, by the names of those of a picture."""

MEMBERSHIP = "membership"
"""The attack that tells whether a record is in the data; its prior is the rate of false alarms."""


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
    lower = None if found.lower is None else rounded_down(found.lower)
    shown = {"mu": rounded_up(found.mu), "lower": lower, "slack": rounded_up(found.slack), "fit": found.fit_text}
    return {**found.to_dict(), "said": str(found), "shown": shown}


def risk_of(request: Mapping[str, Any]) -> dict[str, Any]:
    """Return the success of an attack from a prior, with its two sentences."""
    run = parse(request["run"])
    if request["kind"] == MEMBERSHIP:
        return _membership(run.record(), request["prior"])
    found = risk(run.record(), request["kind"], request["prior"])
    shown = {"success": percent(found.success), "prior": share_text(found.prior)}
    return {**found.to_dict(), "said": [str(found), found.caveat], "shown": shown}


def _membership(run: RunRecord, false_alarms: Any) -> dict[str, Any]:
    """Return the largest part of the members that an attack finds at this rate of false alarms."""
    share = PRIOR.check("prior", false_alarms)
    success = max(float(attacks.true_positive_rate(run, share)), float(share))
    found, alarms = percent(success), share_text(float(share))
    return {
        "success": success,
        "prior": float(share),
        "kind": MEMBERSHIP,
        "relation": str(run.relation),
        "said": [
            f"An attacker who accepts {alarms} false alarms finds at most {found} of the {text.attacked(run)}.",
            f"Blind guessing finds {alarms}.",
        ],
        "shown": {"success": found, "prior": alarms},
    }


def training(request: Mapping[str, Any]) -> dict[str, Any]:
    """Return the expression of a training run in the words of its loop, and the verdict on a claim about it.

    Batches that are accounted by passes need whole epochs: half a pass would have no lower end.

    The loop judges the claim, as in the shell: its expression does not say all that is known of it.
    """
    loop = dict(request)
    claim, delta = loop.pop("claim", None), loop.pop("delta", None)
    if (claim is None) != (delta is None):
        raise InputError("a claim is an epsilon at a delta; give claim=… and delta=…, or neither")
    sgd = NoisySGD(**loop)
    if not sgd.loop.per_step and Exact(sgd.epochs or 1).denominator != 1:
        raise InputError(
            f"epochs={request['epochs']} must be a whole number: an epoch that was started counts as a whole one"
        )
    run = sgd.run
    return {
        "run": run.notation(),
        "steps": sgd.total_steps,
        "relation": str(sgd.relation),
        "protects": text.protected(run.record()),
        "assumes": sgd.loop.assumes,
        "no_better_than": sgd.loop.no_better_than,
        "check": None if claim is None else sgd.check(epsilon=claim, delta=delta).to_dict(),
    }


def explore(request: Mapping[str, Any]) -> dict[str, Any]:
    """Return the guarantee, its sentences, and the same question in Python and in the shell."""
    found = _at_delta(request)
    plan = found.proof
    sentences = [text.headline(plan)]
    if text.says_something(plan):
        reach = attacks.in_brief(plan.run, "0.01", found.method, found.epsilon, found.delta)
        caught, advantage = reach
        sentences = [
            text.headline(plan),
            text.interval(plan),
            next(text.attacker(plan.run, caught, advantage)),
        ]
        if text.limits_attackers((1 + advantage) / 2):
            sentences.append(
                f"Whether {plan.run.relation.guessed_for(plan.run.groups[0])} was in the data is guessed right at most "
                f"{percent((1 + advantage) / 2)} of the time."
            )
    given = DELTA.check("delta", request["delta"]).text
    return {
        "guarantee": found.to_dict(),
        "shown": {
            "epsilon": rounded_up(found.epsilon),
            "lower": None if found.lower is None else rounded_down(found.lower),
            "delta": given,
        },
        "protects": text.protected(plan.run),
        "careful": text.doubled(plan.run),
        "said": [each for each in sentences if each],
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
    "training": training,
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
        found = {"error": str(error), "position": getattr(error, "position", None)}
        if isinstance(error, KeyConflict) and isinstance(error.receipt, Receipt):  # it was charged before
            found["receipt"] = json.loads(error.receipt.to_json())
        return code, found
    except MemoryError:
        return 413, {"error": "the question needs more memory than one question may have", "position": None}
    except Exception as error:
        return 500, {
            "error": f"unexpected {type(error).__name__}; please report it with the question",
            "position": None,
        }
