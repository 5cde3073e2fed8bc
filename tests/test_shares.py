"""Budgets that are split over several unknowns."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest

import cumulant as cm
from cumulant.cli import app
from cumulant.filters.mixture import Mixture

TEXT = "Gaussian(sigma=?a) * 100 + Laplace(scale=?b)"
TARGET: dict[str, Any] = {"epsilon": 1, "delta": "1e-6"}


def test_one_name_is_the_calibration_of_one_unknown() -> None:
    plain = cm.calibrate("Gaussian(sigma=?) * 10", **TARGET)
    named = cm.calibrate("Gaussian(sigma=?x) * 10", **TARGET, shares={"x": 5})
    assert named.values == {"x": plain.value}
    assert named.shares == {"x": 1.0}


def test_shares_are_realised_and_the_target_is_met() -> None:
    found = cm.calibrate(TEXT, **TARGET, shares={"a": 3, "b": 1}, digits=4)
    assert found.shares["a"] == pytest.approx(0.75, abs=2e-3)
    assert 0.999 < found.guarantee.epsilon <= 1
    run = cm.parse(TEXT.replace("?a", str(found.values["a"])).replace("?b", str(found.values["b"])))
    assert run == found.run
    # K at one order, by its closed forms: 3 to 1
    lam = float(Mixture.for_budget(Fraction(1), Fraction(1, 10**6)).orders[0])
    gaussian = 100 * lam * (lam + 1) / 2 / float(found.values["a"]) ** 2
    laplace = cm.Laplace(scale=found.values["b"]).cgf(lam)
    assert gaussian / laplace == pytest.approx(3, rel=2e-3)


def test_the_order_of_terms_and_the_size_of_shares_do_not_matter() -> None:
    one = cm.calibrate(TEXT, **TARGET, shares={"a": 3, "b": 1}, digits=3)
    other = cm.calibrate(
        "Laplace(scale=?b) + Gaussian(sigma=?a) * 100", **TARGET, shares={"b": "0.5", "a": "1.5"}, digits=3
    )
    assert one.values == other.values


def test_one_name_twice_is_one_value() -> None:
    text = "Gaussian(sigma=?a) * 2 + Laplace(scale=?b) + Gaussian(sigma=?a) @ Poisson(rate=0.1)"
    found = cm.calibrate(text, **TARGET, shares={"a": 1, "b": 1}, digits=3, method="rdp")
    assert str(found.run).count(f"sigma={found.values['a']}") == 2


def test_other_targets() -> None:
    found = cm.calibrate(TEXT, mu=1, slack="1e-3", shares={"a": 1, "b": 1}, digits=2)
    assert found.run.gaussian_mu(slack="1e-3") <= 1
    assert found.to_dict()["values"].keys() == {"a", "b"}


@pytest.mark.parametrize(
    ("text", "shares", "said"),
    [
        (TEXT, None, "need shares"),
        (TEXT, {}, "need shares"),
        (TEXT, {"a": 1}, "has no share"),
        (TEXT, {"a": 1, "b": 1, "c": 1}, "for no unknown"),
        (TEXT, {"a": 0, "b": 1}, "above 0"),
        (TEXT, {"a": -1, "b": 1}, "above 0"),
        (TEXT, {"a": "many", "b": 1}, "above 0"),
        (TEXT, {"a": True, "b": 1}, "above 0"),
        ("Gaussian(sigma=?a) @ Poisson(rate=?b)", {"a": 1, "b": 1}, "term of its own"),
        ("Gaussian(sigma=?a) + Laplace(scale=?)", {"a": 1}, "name every unknown"),
        ("Gaussian(sigma=?)", {"a": 1}, r"\?a and \?b"),
        ("Gaussian(sigma=?a) + Laplace(scale=1) @ Poisson(rate=?a)", {"a": 1}, "different domains"),
    ],
)
def test_bad_input(text: str, shares: Any, said: str) -> None:
    with pytest.raises(cm.InputError, match=said):
        cm.calibrate(text, **TARGET, shares=shares)


def test_in_the_shell(capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["calibrate", TEXT, "--epsilon", "1", "--delta", "1e-6", "--digits", "3"]
    assert app.answer([*arguments, "--share", "a=3", "--share", "b=1"]) == 0
    out = capsys.readouterr().out
    assert out.startswith("  a = 49.")
    assert "Budget       a has 74.9 %, b has 25.1 %" in out
    assert app.answer([*arguments, "--share", "a"]) == 2
    assert "--share a=3" in capsys.readouterr().err
