"""Guarantees that are written, read back in another process, tampered with, and checked against the schema."""

import json
import math
import subprocess
import sys
from importlib.resources import files
from pathlib import Path
from typing import Any

import jsonschema
import pytest

import cumulant as cm
from cumulant.accounting.choices import METHOD_NAMES
from cumulant.accounting.text import RIGOUR
from cumulant.errors import CertificateError, InputError

W, P = cm.WithoutReplacement, cm.Poisson
FIRST_FORMAT = Path(__file__).with_name("guarantees-format-1.jsonl").read_text(encoding="utf-8").splitlines()
"""Guarantees in format 1, as builds before the first release wrote them."""

SECOND_FORMAT = Path(__file__).with_name("guarantees-format-2.jsonl").read_text(encoding="utf-8").splitlines()
"""Guarantees in format 2, as release candidate 1 of version 1.0.0 wrote them."""

SCHEMA = json.loads((files("cumulant.accounting") / "guarantee.schema.json").read_text())
GUARANTEES = {
    "closed form": cm.Gaussian(sigma="1/3").guarantee(delta="1/7"),
    "cone": (cm.Gaussian(sigma=5) @ W(rate=0.001) * 6000).guarantee(delta=1e-8),
    "lattice": (cm.Laplace(scale=2) @ P(rate="0.01") * 100).guarantee(delta="1e-6"),
    "one order": (cm.Laplace(scale=2) @ W(sample=256, population=60_000) * 900).guarantee(delta=1e-6, method="rdp"),
    "paper": (cm.Gaussian(sigma=5) @ W(rate=0.001) * 6000).guarantee(delta=1e-8, method="paper"),
    "pure": (cm.PureDP(1) + cm.RandomizedResponse(p=0.6)).guarantee(delta=0),
    "infinite": cm.Gaussian(sigma=1).guarantee(delta=0),
    "one": cm.Gaussian(sigma=1).guarantee(delta=1),
    "delta": (cm.Gaussian(sigma=2) * 4).guarantee(epsilon="3/2"),
    "distance": cm.ZeroConcentrated(rho="1e-13").guarantee(epsilon="5e-30"),
    "several on a sample": ((cm.Gaussian(sigma=1) + cm.Laplace(scale=2)) @ W(rate=0.1) * 3).guarantee(delta=1e-5),
    "slack": (cm.ApproximateDP(0.1, 1e-9) * 3).guarantee(delta=1e-6, method="rdp"),
    "replace-special": cm.Gaussian(sigma=1, relation="replace-special").guarantee(delta="1e-6"),
    "composed": (cm.Gaussian(sigma=5) @ W(rate=0.001) * 100).guarantee(delta=1e-6, method="optimal"),
}


@pytest.mark.parametrize("name", GUARANTEES)
def test_written_and_read_back_it_is_the_same_and_fits_the_schema(name: str) -> None:
    found = GUARANTEES[name]
    jsonschema.validate(found.to_dict(), SCHEMA)
    twin = cm.Guarantee.from_json(found.to_json())
    assert twin == found
    assert twin.to_json() == found.to_json()
    assert twin.explain() == found.explain()


@pytest.mark.parametrize("name", [name for name in GUARANTEES if name != "composed"])
def test_what_was_read_is_verified_as_what_was_written(name: str) -> None:
    found = GUARANTEES[name]
    assert cm.Guarantee.from_json(found.to_json()).verify() == found.verify()
    assert found.verify().holds


def test_another_process_verifies_it_from_the_text_alone() -> None:
    code = "import sys, cumulant as cm; print(cm.Guarantee.from_json(sys.stdin.read()).verify().holds)"
    text = GUARANTEES["cone"].to_json()
    done = subprocess.run([sys.executable, "-c", code], input=text, capture_output=True, text=True, check=True)
    assert done.stdout == "True\n"


@pytest.mark.parametrize("name", ["closed form", "cone", "lattice", "one order", "paper", "several on a sample"])
def test_a_smaller_number_is_not_confirmed(name: str) -> None:
    state = GUARANTEES[name].to_dict()
    assert not cm.Guarantee.from_json(json.dumps(state | {"epsilon": 0.9 * state["epsilon"]})).verify().holds
    with pytest.raises(InputError, match="delta of this guarantee is not what"):
        cm.Guarantee.from_json(json.dumps(state | {"delta": 0.5 * state["delta"]}))


def test_another_run_is_noticed() -> None:
    state = GUARANTEES["cone"].to_dict()
    with pytest.raises(InputError, match="not those of its run"):
        cm.Guarantee.from_json(json.dumps(state | {"run": "Gaussian(sigma=9) @ WithoutReplacement(rate=0.001) * 6000"}))
    weaker = json.loads(json.dumps(state).replace("sigma=5", "sigma=4"))
    assert not cm.Guarantee.from_json(json.dumps(weaker)).verify().holds


@pytest.mark.parametrize("name", ["closed form", "cone", "lattice", "one order", "paper", "pure", "distance", "slack"])
@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("assumptions", []),
        ("assumptions", ["nothing"] * 9),
        ("evidence.bound", "theorem27"),
        ("plan.bound", "invented"),
        ("evidence.order", 7.25),
        ("evidence.order", 0.5),
        ("plan.order", "2"),
        ("method", "paper"),
        ("route", "magic"),
        ("plan.route", "magic"),
        ("witness", "two data sets that nobody has seen"),
        ("lower_rigour", "certain"),
        ("evidence.terms.0.bound", "theorem27"),
        ("evidence.terms.0.nodes", [3.5]),
        ("evidence.terms.0.value", 1e-9),
        ("question.value", "0.5"),
        ("plan.points", -1),
        ("plan.points", 1.5),
        ("plan.width", -1),
        ("evidence.radius", -1.0),
    ],
)
def test_what_is_said_besides_the_number_is_not_believed(name: str, path: str, value: Any) -> None:
    """Refused when it is read, or not confirmed: fields that the statement was not proved with."""
    state = json.loads(GUARANTEES[name].to_json())
    *outer, last = path.split(".")
    place: Any = state
    for step in outer:
        place = place[int(step) if step.isdigit() else step]
    if place[last] == value:
        return
    place[last] = value
    if path in ("evidence.order", "plan.order") and value in (7.25, "2"):
        state["plan"]["order"], state["evidence"]["order"] = "8", 8.0  # both of them alike
    try:
        found = cm.Guarantee.from_json(json.dumps(state))
    except InputError:
        return
    assert not found.verify().holds or found.lower_confirmed() is False


@pytest.mark.parametrize(
    "run",
    [
        cm.Laplace(scale=2) @ P(rate="0.01") * 100,
        cm.Gaussian(sigma=2) @ cm.RandomAllocation(steps=100) * 3,
        cm.ExponentialMechanism(epsilon=1) * 10,
    ],
)
def test_a_rigour_that_was_raised_is_not_confirmed(run: cm.Expression) -> None:
    """A bounded number is not proved because its file says so."""
    found = run.guarantee(delta=1e-5)
    assert found.rigour == "bounded"
    assert found.verify().holds
    raised = cm.Guarantee.from_json(json.dumps(found.to_dict() | {"rigour": "proved"})).verify()
    assert not raised.holds
    assert raised.note == "it says proved, and no proof of this number was found"


def test_the_rigour_of_a_lower_end_that_was_raised_is_not_confirmed() -> None:
    found = (cm.Laplace(scale=2) @ W(rate=0.1) * 20).guarantee(delta=1e-5)
    assert (found.lower_rigour, found.lower_confirmed()) == ("bounded", True)
    raised = cm.Guarantee.from_json(json.dumps(found.to_dict() | {"lower_rigour": "proved"}))
    assert raised.lower_confirmed() is False


def test_a_proof_that_was_asked_for_is_still_confirmed() -> None:
    """A file does not say prove=True; its answer is proved again all the same."""
    found = (cm.Laplace(scale=2) @ W(rate=0.1) * 20).guarantee(delta=1e-5, prove=True)
    assert (found.rigour, found.lower_rigour) == ("proved", "proved")
    again = cm.Guarantee.from_json(found.to_json())
    assert again.verify().holds
    assert again.lower_confirmed()


@pytest.mark.parametrize("huge", [10**400, -(10**400), "1" * 5000, 1e308, "inf", -1, 0, None, [], {}, True, "1/0"])
def test_no_value_of_any_field_raises_anything_else(huge: Any) -> None:
    def everywhere(value: Any) -> Any:
        yield huge
        if isinstance(value, dict):
            for name in value:
                for new in everywhere(value[name]):
                    yield value | {name: new}
        if isinstance(value, list):
            for number in range(len(value)):
                for new in everywhere(value[number]):
                    yield [*value[:number], new, *value[number + 1 :]]

    for name in ("one order", "pure", "distance"):
        for state in everywhere(json.loads(GUARANTEES[name].to_json())):
            try:
                found = cm.Guarantee.from_json(json.dumps(state))
                found.verify()
                found.explain()
            except (InputError, CertificateError):
                continue


def test_a_python_function_stays_behind() -> None:
    found = cm.from_rdp(rdp=lambda order: order / 18, name="mine").guarantee(delta=1e-6)
    jsonschema.validate(found.to_dict(), SCHEMA)
    twin = cm.Guarantee.from_json(found.to_json())
    assert twin == found
    with pytest.raises(CertificateError, match="where it was made"):
        twin.verify()


@pytest.mark.parametrize("text", FIRST_FORMAT, ids=lambda text: json.loads(text)["run"])
def test_the_first_format_is_still_read(text: str) -> None:
    old, found = json.loads(text), cm.Guarantee.from_json(text)
    known = {"inf": math.inf}
    for name in ("epsilon", "delta", "rigour", "run", "method", "witness", "note", "asked"):
        assert getattr(found, name) == known.get(old[name], old[name]), name
    assert found.lower == old["lower" if old["asked"] == "delta" else "lower_delta"]
    assert (found.route, found.evidence.bound) == (old["conversion"], old["bound"])
    assert (found.evidence.bits, found.evidence.radius) == (old["bits"], old["radius"])
    assert len(found.evidence.terms) == len(old["terms"])
    assert found.to_dict()["format"] == 2
    jsonschema.validate(found.to_dict(), SCHEMA)
    assert cm.Guarantee.from_json(found.to_json()) == found
    if found.plan is None:
        assert list(found.assumptions) == old["assumptions"] != []
    elif found.method != "optimal":
        assert found.verify().holds


@pytest.mark.parametrize("text", SECOND_FORMAT, ids=lambda text: json.loads(text)["run"])
def test_the_second_format_is_still_read(text: str) -> None:
    old = json.loads(text) | {"cumulant": "1.0.0rc0"}  # another release may say the same in other words
    jsonschema.validate(old, SCHEMA)
    found = cm.Guarantee.from_json(json.dumps(old))
    now = found.to_dict()
    rewritten = {"cumulant", "assumptions", "evidence"}
    assert {name: now[name] for name in now.keys() - rewritten} == {name: old[name] for name in old.keys() - rewritten}
    for name in ("order", "bits", "radius"):
        assert now["evidence"][name] == old["evidence"][name]
    if found.plan is not None and found.method != "optimal":
        assert found.verify().holds


def test_a_changed_number_in_the_first_format_is_not_confirmed() -> None:
    old = json.loads(FIRST_FORMAT[0])
    assert not cm.Guarantee.from_json(json.dumps(old | {"epsilon": 0.9 * old["epsilon"]})).verify().holds
    with pytest.raises(InputError, match="unit that was given"):
        cm.Guarantee.from_json(json.dumps(old | {"lower_delta": 0.5}))
    with pytest.raises(InputError, match="incomplete or damaged"):
        cm.Guarantee.from_json(json.dumps({name: value for name, value in old.items() if name != "terms"}))


def damaged() -> dict[str, Any]:
    state = GUARANTEES["one order"].to_dict()
    evidence = state["evidence"]
    term = evidence["terms"][0]
    return {
        "not JSON": "{",
        "a list": [],
        "nothing": {},
        "another format": state | {"format": 3},
        "no format": {name: value for name, value in state.items() if name != "format"},
        "no evidence": {name: value for name, value in state.items() if name != "evidence"},
        "no terms": state | {"evidence": {name: value for name, value in evidence.items() if name != "terms"}},
        "epsilon is a text": state | {"epsilon": "two"},
        "epsilon is not a number": state | {"epsilon": math.nan},
        "epsilon is true": state | {"epsilon": True},
        "delta is null": state | {"delta": None},
        "terms are a number": state | {"evidence": evidence | {"terms": 3}},
        "times is 0": state | {"evidence": evidence | {"terms": [term | {"times": 0}]}},
        "times is half": state | {"evidence": evidence | {"terms": [term | {"times": 0.5}]}},
        "a rigour of its own": state | {"rigour": "certain"},
        "a relation of its own": state | {"relation": "friends"},
        "bits are a text": state | {"evidence": evidence | {"bits": "many"}},
        "assumptions are a text": state | {"assumptions": "none"},
        "a question without a value": state | {"question": {"asked": "delta"}},
        "a plan that is a text": state | {"plan": "by hand"},
        "a run that is none": state | {"run": "Gaussian(sigma=)"},
        "a deep run": state | {"run": "(" * 10_000},
        "deep": "[" * 100_000,
    }


@pytest.mark.parametrize("name", damaged())
def test_what_is_damaged_is_one_sentence(name: str) -> None:
    state = damaged()[name]
    with pytest.raises(InputError):
        cm.Guarantee.from_json(state if isinstance(state, str) else json.dumps(state))


def test_the_schema_has_the_words_of_the_library() -> None:
    words = {name: SCHEMA["properties"][name]["enum"] for name in ("relation", "method", "rigour")}
    assert words == {"relation": [*map(str, cm.Relation)], "method": [*METHOD_NAMES], "rigour": [*RIGOUR]}


def test_the_schema_refuses_what_it_does_not_know() -> None:
    state = GUARANTEES["cone"].to_dict()
    wrongs: list[dict[str, Any]] = [{"epsilon": -1}, {"delta": 2}, {"rigour": "certain"}, {"more": 1}, {"evidence": {}}]
    for wrong in wrongs:
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate(state | wrong, SCHEMA)


@pytest.mark.parametrize(
    "text",
    [
        "PureDP(1) * 5",
        "Gaussian(sigma=2)",
        "Gaussian(sigma=1) @ RandomAllocation(20) * 3",
        "Gaussian(noise_multiplier=1, relation='replace-one') @ ShuffledBatches(batches=10) * 2",
    ],
)
@pytest.mark.parametrize("given", [{"delta": "1e-3"}, {"epsilon": "1"}])
@pytest.mark.parametrize("accuracy", [None, "0.1"])
def test_a_lower_end_that_was_raised_is_not_confirmed(text: str, given: dict[str, str], accuracy: str | None) -> None:
    """Neither by a little nor by much, whatever accuracy the file names."""
    found = cm.parse(text).guarantee(**given)  # type: ignore[arg-type]
    assert found.lower_confirmed()
    assert found.lower
    for factor in (1.003, 1.3):
        state = json.loads(found.to_json()) | {"lower": found.lower * factor}
        if accuracy is not None:
            state["question"]["accuracy"] = accuracy
        assert cm.Guarantee.from_json(json.dumps(state)).lower_confirmed() is False
