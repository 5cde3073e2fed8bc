"""Statements: nothing is left out, nothing is said that was not given or proved, and every number is rounded outward."""

import json
import re
from dataclasses import fields, replace
from typing import Any

import pytest

import cumulant as cm
from cumulant.training.card import Setting, Statement, statement

SETTING = Setting(
    unit="one image",
    released="the final weights & 50 % of the checkpoints",
    tuning="10 learning rates on public data",
    not_covered="none",
    noise="float",
    sampler="cumulant.training.FixedSizeSampler",
)
SGD = cm.NoisySGD(batch=64, records=1797, epochs=3, noise_multiplier=4)


@pytest.fixture(scope="module")
def found() -> Statement:
    return statement(SGD, [1e-5, "1e-6"], SETTING, caveats=["GPU"], audit={"refuted": False, "p_value": 0.4})


def test_nothing_about_the_setting_has_a_default() -> None:
    given = {each.name: getattr(SETTING, each.name) for each in fields(SETTING)}
    for name in given:
        with pytest.raises(TypeError):
            Setting(**{key: value for key, value in given.items() if key != name})
        with pytest.raises(cm.InputError, match=name):
            replace(SETTING, **{name: "  "})
    with pytest.raises(cm.InputError, match="exact"):
        replace(SETTING, noise="gaussian")


def test_the_numbers_are_those_of_the_run(found: Statement) -> None:
    for row, delta in zip(found["guarantees"], (1e-5, 1e-6), strict=True):
        assert row["epsilon"] == SGD.epsilon(delta)
        assert row["epsilon_lower"] <= row["epsilon"]
    assert found["relation"] == "replace-one"
    assert cm.parse(found["run"]) == SGD.run
    unamplified = cm.Gaussian(sigma=4, sensitivity=2) * 3
    assert found["unamplified"]["epsilon"] == pytest.approx(unamplified.epsilon(1e-5), rel=1e-9)
    assert any("floating point" in caveat for caveat in found["caveats"])
    assert "GPU" in found["caveats"]
    assert any("fresh" in each or "afresh" in each for each in found["assumptions"])
    assert json.loads(found.json()) == found


def test_printed_numbers_are_rounded_up(found: Statement) -> None:
    text = found.markdown()
    for row in found["guarantees"]:
        line = next(line for line in text.splitlines() if line.startswith(f"| {row['delta']:g} |"))
        upper, lower = (float(cell) for cell in line.split("|")[2:4])
        assert row["epsilon"] <= upper <= row["epsilon"] * 1.001
        assert row["epsilon_lower"] * 0.999 <= lower <= row["epsilon_lower"]
    shown = re.findall(r"([\d.]+) % at", text)
    for each, printed in zip(found["attack"]["rates"], shown, strict=True):
        assert 100 * each["true_positive_rate"] <= float(printed)
    for words in (SETTING.unit, SETTING.released, SETTING.tuning, SETTING.sampler, "Not covered", "Audit", "p_value"):
        assert words in text
    assert "verified" not in text


def test_latex(found: Statement) -> None:
    text = found.latex()
    assert r"\delta = 10^{-5}" in text
    assert r"geometry=" in text
    assert "%" not in text.replace(r"\%", "")
    assert "_" not in text.replace(r"\_", "")
    number = re.search(r"varepsilon = ([\d.]+)\$", text)
    assert number is not None
    assert float(number[1]) >= found["guarantees"][0]["epsilon"]


def test_a_model_card_is_markdown_with_yaml_of_which_every_value_is_json(found: Statement) -> None:
    card = found.card(model="digits", task="image-classification", dataset="digits")
    _, top, body = card.split("---\n", 2)
    keys: dict[str, Any] = {}
    for line in top.splitlines():
        key, _, value = line.partition(": ")
        keys[key] = json.loads(value)
    assert keys["tags"] == ["differential-privacy"]
    assert keys["privacy"] == found
    metric = keys["model-index"][0]["results"][0]["metrics"][0]
    assert metric["value"] >= found["guarantees"][0]["epsilon"]
    assert "replace-one" in metric["name"]
    assert body.strip().startswith("## Privacy")


def test_other_runs() -> None:
    plain = statement(cm.Gaussian(sigma=1) * 3, [0.1, 0], replace(SETTING, noise="exact"))
    assert plain["unamplified"] is None
    assert plain["caveats"] == []
    assert plain["guarantees"][1]["epsilon"] == "inf"
    assert "inf" in plain.markdown()
    assert "none" in plain.markdown()
    shuffled = statement(replace(SGD, sampling="shuffled"), [1e-5], SETTING)
    assert shuffled["guarantees"][0]["epsilon_lower"] is None
    for wrong in ([], "x", [2]):
        with pytest.raises(cm.InputError):
            statement(SGD, wrong, SETTING)
    with pytest.raises(cm.InputError, match="Setting"):
        statement(SGD, [1e-5], {})  # type: ignore[arg-type]
