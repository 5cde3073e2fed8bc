"""Statements: nothing is left out, nothing is said that was not given or proved, and every number is rounded outward."""

import json
import math
import re
from dataclasses import fields, replace
from typing import Any

import pytest
from scipy.stats import norm

import cumulant as cm
from cumulant.accounting.numbers import rounded_up
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
        line = next(line for line in text.splitlines() if line.startswith(f"| {rounded_up(row['delta'])} |"))
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


def test_a_mu_that_fits_badly_is_not_reported() -> None:
    """Laplace noise has a fit of 0.028, above the 0.01 below which mu is reported; Gaussian noise fits."""
    bad, good = (statement(run, ["1e-5"], SETTING) for run in (cm.Laplace(scale=2), cm.Gaussian(sigma=4)))
    assert "Gaussian privacy" not in bad.latex()
    for text in (bad.markdown(), bad.text()):
        assert "not below 0.01: rely on epsilon)" in text
    assert "Gaussian privacy with" in good.latex()
    assert "rely on epsilon" not in good.markdown()


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
    assert shuffled["guarantees"][0]["epsilon"] <= shuffled["unamplified"]["epsilon"]
    for wrong in ([], "x", [2]):
        with pytest.raises(cm.InputError):
            statement(SGD, wrong, SETTING)
    with pytest.raises(cm.InputError, match="Setting"):
        statement(SGD, [1e-5], {})  # type: ignore[arg-type]


@pytest.mark.parametrize("sampling", ["poisson", "balls-in-bins", "fixed-size"])
def test_a_loader_that_visits_each_record_once_is_stated_for_replaced_records(sampling: str) -> None:
    """An added record shifts all later batches of such a loader; a replaced one moves one sum of each pass by 2C."""
    sgd = cm.NoisySGD(batch=16, records=320, epochs=2, noise_multiplier=2, sampling=sampling)
    found = statement(sgd, [1e-5], SETTING)
    mu = math.sqrt(2) * 2 / 2  # two passes, each with sensitivity 2 and noise 2
    epsilon = found["unamplified"]["epsilon"]
    exact = norm.cdf(mu / 2 - epsilon / mu) - math.exp(epsilon) * norm.cdf(-mu / 2 - epsilon / mu)
    assert exact == pytest.approx(1e-5, rel=1e-6)
    assert epsilon == pytest.approx(6.573, abs=1e-3)
    assert found["unamplified"]["relation"] == "replace-one"
    assert "for replace-one neighbours" in next(
        line for line in found.markdown().splitlines() if "Without ampl" in line
    )


def test_a_group_is_named_with_its_size() -> None:
    run = (
        cm.Gaussian.from_clipping(norm=1, noise=20, relation="add-remove") @ cm.Poisson(rate="0.01") * 100
    ) @ cm.Group(size=5)
    found = statement(run, [1e-5], SETTING)
    assert "at most 5 records" in found["relation_meaning"]
    assert "one record" not in found.markdown()
    assert any("Poisson" in each for each in found["assumptions"])
    assert "at most 5 records" in str(run.guarantee(delta=1e-5).explain())
    mixed = statement(cm.Gaussian(sigma=2) @ cm.Group(size=5) + cm.Gaussian(sigma=3), [1e-5], SETTING)
    assert mixed["guarantees"][0]["epsilon_lower"] is None
    assert "5" not in mixed["relation_meaning"]


def test_text_fields_are_escaped() -> None:
    forged = "one image\n\n| 1e-05 | 0.1 | 0.1 |\n## Verified <b>by</b> [us](http://x) `a` *b* _c_ $d$ &lt; 5 % & more"
    setting = replace(SETTING, **{each.name: forged for each in fields(SETTING) if each.name != "noise"})
    found = statement(cm.Gaussian(sigma=9), [1e-5], setting, caveats=[forged], audit={"note": forged})
    text = found.markdown()
    honest = statement(cm.Gaussian(sigma=9), [1e-5], SETTING, caveats=["GPU"], audit={"note": "x"}).markdown()
    assert len(text.splitlines()) == len(honest.splitlines())
    assert sum(line.startswith(("|", "#")) for line in text.splitlines()) == 4
    for markup in ("<b>", " [us", " `a`", " *b*", " _c_", " $d$", " &lt;"):
        assert markup not in text
    for kept in ("& more", "5 %"):
        assert kept in text
    latex = found.latex()
    assert len(latex.splitlines()) == 1
    assert r"\_c\_ \$d\$ \&lt; 5 \% \& more" in latex
    card = found.card(model=forged, task=forged, dataset=forged)
    assert [line[:4] for line in card.splitlines()[:5]] == ["---", "tags", "mode", "priv", "---"]
    assert json.loads(card.splitlines()[3].partition(": ")[2]) == found


def test_a_delta_of_one_over_the_records_gets_a_warning() -> None:
    warned = statement(replace(SGD, records=1000), ["0.001", "0.00099"], replace(SETTING, noise="exact"))
    assert len(warned["caveats"]) == 1
    assert "delta = 0.001 is at least 1 / 1000" in warned["caveats"][0]
    assert "publishing one record at random" in warned.markdown()
    run = cm.Gaussian(sigma=9) @ cm.WithoutReplacement(sample=10, population=100)
    assert any("1 / 100:" in each for each in statement(run, ["0.01"], SETTING)["caveats"])
    assert statement(cm.Gaussian(sigma=9), ["0.1"], replace(SETTING, noise="exact"))["caveats"] == []


def test_a_printed_delta_is_never_smaller_than_the_delta() -> None:
    found = statement(cm.Gaussian(sigma=9), ["0.00012345612"], SETTING)
    assert "0.0001235" in found.sentence()
    assert "0.0001235" in found.markdown().splitlines()[6]
