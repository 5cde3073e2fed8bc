"""Entries for the registry of deployments against its published schema, and the checklist of NIST SP 800-226."""

from __future__ import annotations

import importlib
import json
import random
from pathlib import Path
from typing import Any

import jsonschema
import pytest

import cumulant as cm
from cumulant.training import Deployment, Setting, statement
from cumulant.training import registry as module
from cumulant.training.registry import checklist, registry_entry

SCHEMA = json.loads((Path(__file__).parents[1] / "oracles" / "deployments-schema.json").read_text())
FORMATS = jsonschema.FormatChecker(["date"])

SETTING = Setting(
    unit="one image",
    released="the final weights",
    tuning='public data; "EDA" on none',
    not_covered="the number of records",
    noise="exact",
    sampler="cumulant.training.PoissonSampler",
)
REQUIRED: dict[str, Any] = {
    "url_slug": "uni_taps_2026",
    "name": "Water taps: where # they drip",
    "data_curators": ["University of Somewhere"],
    "description": "A classifier.\nIt has two lines: \"quotes\", 'more', \\ and Ünïcode.",
    "intended_use": "Research",
    "data_product_type": "Machine learning model",
    "data_product_region": "Everywhere",
    "publication_date": "2026-11-17",
    "registry_authors": ["A. Author", "yes"],
}
TIER_2 = {
    "model_name": "Central",
    "release_type": "One release",
    "data_source_type": "Static",
    "access_type": "Non-interactive",
}
TIER_3 = {"data_domain": "images", "actors": "the public", "justification": "habit"}


@pytest.fixture(scope="module")
def found() -> Any:
    run = cm.Gaussian(noise_multiplier=4, relation=cm.Relation.ADD_REMOVE) @ cm.Poisson(rate="0.01") * 100
    return statement(run, ["1e-5"], SETTING, priors={"attribute": "0.01"})


def valid(entry: dict[str, Any]) -> None:
    jsonschema.validate(entry, SCHEMA, format_checker=FORMATS)


def test_the_schema_refuses_what_it_should() -> None:
    """The stored copy is the published schema: what its own tests call bad is bad here."""
    good: dict[str, Any] = {
        "url_slug": "x",
        "status": "Draft",
        "tier": 1,
        "deployment": {"basic": {k: v for k, v in REQUIRED.items() if k not in ("url_slug", "registry_authors")}},
    }
    valid(good)
    basic = good["deployment"]["basic"]
    bad: list[dict[str, Any]] = [
        {**good, "tier": 0},
        {**good, "surprise": 1},
        {k: v for k, v in good.items() if k != "status"},
        {**good, "deployment": {"basic": {**basic, "publication_date": "1/1/2026"}}},
    ]
    for each in bad:
        with pytest.raises(jsonschema.ValidationError):
            valid(each)


def test_twenty_entries_are_valid_and_survive_a_reader(found: Any) -> None:
    draws, yaml = random.Random(1), importlib.import_module("yaml")
    for number in range(20):
        given = {
            **REQUIRED,
            "data_product_type": module.PRODUCTS[number % len(module.PRODUCTS)],
            **{name: draws.choice(words) for name, words in module._ENUMS.items() if draws.random() < 0.7},
            **{name: "yes: # no" for name in ("notes", "sources", *TIER_3) if draws.random() < 0.5},
        }
        text = found.registry(Deployment.read(given))
        entry = yaml.safe_load(text)
        valid(entry)
        assert entry == registry_entry(found, Deployment.read(given))
        assert entry["status"] == "Draft"
        assert entry["deployment"]["basic"]["description"] == REQUIRED["description"]


def test_every_word_of_the_schema_is_known() -> None:
    parts = SCHEMA["properties"]["deployment"]["properties"]
    for name, words in module._ENUMS.items():
        part = "basic" if name.startswith("data_product") else "deployment_model"
        assert set(words) == set(parts[part]["properties"][name]["enum"]) - {"Varies"}


def test_tiers(found: Any) -> None:
    assert registry_entry(found, Deployment.read(REQUIRED))["tier"] == 1
    assert registry_entry(found, Deployment.read(REQUIRED | TIER_2))["tier"] == 2
    assert registry_entry(found, Deployment.read(REQUIRED | TIER_2 | TIER_3))["tier"] == 3
    assert registry_entry(found, Deployment.read(REQUIRED | TIER_3))["tier"] == 1


def test_what_an_entry_says(found: Any) -> None:
    body = registry_entry(found, Deployment.read(REQUIRED))["deployment"]
    assert body["dp_variant"]["variant_name"] == "Approximate DP"
    loss = body["privacy_loss"]
    row = found["guarantees"][0]
    assert row["epsilon"] <= loss["privacy_parameters"]["epsilon"] <= row["epsilon"] * 1.001
    assert loss["privacy_parameters"]["delta"] == 1e-5
    assert loss["privacy_unit"] == "one image"
    details = loss["privacy_parameters_details"]
    for part in ("No claim below", "at slack 1e-6", "1 % false alarms", "guess the attribute", "all side knowledge"):
        assert part in details
    assert body["implementation"]["preprocessing_and_hyperparameter_tuning"] == SETTING.tuning
    assert "whatever is computed from the released outputs" in body["accounting"]["post_processing"]


def test_pure_and_infinite() -> None:
    pure = registry_entry(statement(cm.PureDP(1), [0], SETTING), Deployment.read(REQUIRED))["deployment"]
    assert pure["dp_variant"]["variant_name"] == "Pure DP"
    assert pure["privacy_loss"]["privacy_parameters"] == {"epsilon": 1.0}
    with pytest.raises(cm.InputError, match="infinite"):
        statement(cm.ApproximateDP(1, "0.1"), ["0.01"], SETTING).registry(Deployment.read(REQUIRED))


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"url_slug": "Not A Slug"}, "url_slug"),
        ({"publication_date": "1/1/2026"}, "2026-11-17"),
        ({"publication_date": "20261117"}, "2026-11-17"),
        ({"data_product_type": "Soup"}, "Summary statistics"),
        ({"model_name": "Varies"}, "Central"),
        ({"data_curators": []}, "at least one"),
        ({"data_curators": "me"}, "list"),
        ({"name": " "}, "in words"),
        ({"name": 3}, "in words"),
        ({"colour": "red"}, "no word of a deployment"),
    ],
)
def test_what_is_refused(changed: dict[str, Any], said: str) -> None:
    with pytest.raises(cm.InputError, match=said):
        Deployment.read(REQUIRED | changed)


def test_all_that_is_missing_is_named() -> None:
    with pytest.raises(cm.InputError, match=r"url_slug.*registry_authors"):
        Deployment.read({})
    with pytest.raises(cm.InputError, match="must be a Deployment"):
        statement(cm.PureDP(1), [0], SETTING).registry(REQUIRED)  # type: ignore[arg-type]


def test_the_checklist_never_fills_in_an_answer(found: Any) -> None:
    lines = found.checklist().splitlines()
    assert len(lines) == 11
    assert {line.split(":")[0] for line in lines if line.endswith("not said")} == {
        "trust model",
        "data collection",
        "access control",
        "bias",
    }
    more = checklist(found, Deployment.read(REQUIRED | TIER_2))
    assert "trust model: Central\n" in more
    assert "neighbours: unbounded (one record is added or removed)\n" in more


def test_mu_stands_in_every_form_with_its_slack(found: Any) -> None:
    forms = [found.markdown(), found.latex(), found.card(model="m", task="t", dataset="d"), found.json()]
    forms.append(found.registry(Deployment.read(REQUIRED)))
    for text in forms:
        assert "mu" in text
        assert "slack" in text
    assert found["gaussian"]["slack"] == 1e-6


def test_a_slack_that_may_expose_a_record() -> None:
    run = cm.Gaussian(sigma=9) @ cm.WithoutReplacement(sample=10, population=1000)
    caveats = statement(run, ["1e-9"], SETTING, slack="1e-3")["caveats"]
    assert any("may expose a record" in each for each in caveats)
    assert not any("may expose" in each for each in statement(run, ["1e-9"], SETTING)["caveats"])


def test_priors_that_are_none() -> None:
    with pytest.raises(cm.InputError, match="priors"):
        statement(cm.PureDP(1), [0], SETTING, priors="0.1")  # type: ignore[arg-type]
    with pytest.raises(cm.InputError, match="kind"):
        statement(cm.PureDP(1), [0], SETTING, priors={"theft": "0.1"})
