"""Guarantees that are written, read back in another process, tampered with, and checked against the schema."""

import json
import math
import subprocess
import sys
from importlib.resources import files
from typing import Any

import jsonschema
import pytest

import cumulant as cm
from cumulant.errors import CertificateError, InputError

W, P = cm.WithoutReplacement, cm.Poisson
SCHEMA = json.loads((files("cumulant.accounting") / "guarantee.schema.json").read_text())
GUARANTEES = {
    "closed form": cm.Gaussian(sigma="1/3").guarantee("1/7"),
    "cone": (cm.Gaussian(sigma=5) @ W(rate=0.001) * 6000).guarantee(1e-8),
    "lattice": (cm.Laplace(scale=2) @ P(rate="0.01") * 100).guarantee("1e-6"),
    "one order": (cm.Laplace(scale=2) @ W(sample=256, population=60_000) * 900).guarantee(1e-6, method="rdp"),
    "paper": (cm.Gaussian(sigma=5) @ W(rate=0.001) * 6000).guarantee(1e-8, method="paper"),
    "pure": (cm.PureDP(1) + cm.RandomizedResponse(p=0.6)).guarantee(0),
    "infinite": cm.Gaussian(sigma=1).guarantee(0),
    "one": cm.Gaussian(sigma=1).guarantee(1),
    "delta": (cm.Gaussian(sigma=2) * 4).guarantee(epsilon="3/2"),
    "distance": cm.ZeroConcentrated(rho="1e-13").guarantee(epsilon="5e-30"),
    "several on a sample": ((cm.Gaussian(sigma=1) + cm.Laplace(scale=2)) @ W(rate=0.1) * 3).guarantee(1e-5),
    "slack": (cm.ApproximateDP(0.1, 1e-9) * 3).guarantee(1e-6, method="rdp"),
    "composed": (cm.Gaussian(sigma=5) @ W(rate=0.001) * 100).guarantee(1e-6, method="optimal"),
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
    assert not cm.Guarantee.from_json(json.dumps(state | {"delta": 0.5 * state["delta"]})).verify().holds


def test_another_run_is_noticed() -> None:
    state = GUARANTEES["cone"].to_dict()
    with pytest.raises(InputError, match="not those of its run"):
        cm.Guarantee.from_json(json.dumps(state | {"run": "Gaussian(sigma=9) @ WithoutReplacement(rate=0.001) * 6000"}))
    weaker = json.loads(json.dumps(state).replace("sigma=5", "sigma=4"))
    assert not cm.Guarantee.from_json(json.dumps(weaker)).verify().holds


def test_a_python_function_stays_behind() -> None:
    found = cm.mechanism(rdp=lambda order: order / 18, name="mine").guarantee(1e-6)
    jsonschema.validate(found.to_dict(), SCHEMA)
    twin = cm.Guarantee.from_json(found.to_json())
    assert twin == found
    with pytest.raises(CertificateError, match="where it was made"):
        twin.verify()


def damaged() -> dict[str, Any]:
    state = GUARANTEES["one order"].to_dict()
    term = state["terms"][0]
    return {
        "not JSON": "{",
        "a list": [],
        "nothing": {},
        "another format": state | {"format": 2},
        "no format": {name: value for name, value in state.items() if name != "format"},
        "no terms": {name: value for name, value in state.items() if name != "terms"},
        "epsilon is a text": state | {"epsilon": "two"},
        "epsilon is not a number": state | {"epsilon": math.nan},
        "epsilon is true": state | {"epsilon": True},
        "delta is null": state | {"delta": None},
        "terms are a number": state | {"terms": 3},
        "times is 0": state | {"terms": [term | {"times": 0}]},
        "times is half": state | {"terms": [term | {"times": 0.5}]},
        "a rigour of its own": state | {"rigour": "certain"},
        "a relation of its own": state | {"relation": "friends"},
        "bits are a text": state | {"bits": "many"},
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


def test_the_schema_refuses_what_it_does_not_know() -> None:
    state = GUARANTEES["cone"].to_dict()
    wrongs: list[dict[str, Any]] = [{"epsilon": -1}, {"delta": 2}, {"rigour": "certain"}, {"more": 1}, {"terms": [{}]}]
    for wrong in wrongs:
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate(state | wrong, SCHEMA)
