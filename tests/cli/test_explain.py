"""`cumulant explain`: every bound, method, conversion, scheme, mechanism and word, and the nearest names of others."""

from __future__ import annotations

import json

import pytest

import cumulant as cm
from cumulant.accounting.choices import METHOD_NAMES, RISK_KINDS
from cumulant.cli.app import answer
from cumulant.cli.explain import ATTACKS, COMBINATIONS, METHODS, MODES, known_entries
from cumulant.cli.glossary import GLOSSARY
from cumulant.cli.reports import MEMBERSHIP
from cumulant.conversion.conversions import CONVERSIONS
from cumulant.ledger import policy
from cumulant.mechanisms.mechanism import COMBINATORS, MECHANISMS
from cumulant.sampling.scheme import SCHEMES
from cumulant.training import fedavg, sgd


def test_everything_has_an_explanation() -> None:
    entries = known_entries()
    names = {each.name for each in entries}
    assert names >= {*cm.BOUNDS, *METHOD_NAMES, *CONVERSIONS, *SCHEMES, *MECHANISMS, *GLOSSARY, *COMBINATORS}
    assert names >= {*sgd.SAMPLINGS, *sgd.CORRELATED, *fedavg.SAMPLINGS, *ATTACKS, *MODES}
    assert tuple(METHODS) == METHOD_NAMES
    assert tuple(ATTACKS) == (MEMBERSHIP, *RISK_KINDS)
    assert tuple(MODES) == policy.MODES
    for each in entries:
        label, text = each.rows[0]
        assert label in ("Says", "Does", "Is", "Means")
        assert len(text) > 10, each.name


def test_a_bound_and_a_scheme(capsys: pytest.CaptureFixture[str]) -> None:
    assert answer(["explain", "Theorem 9"]) == 0
    out = " ".join(capsys.readouterr().out.split())
    assert out.startswith("theorem9 an amplification bound Says eps'(a) <= ")
    assert "Proved in Wang, Balle, Kasiviswanathan 2019, Theorem 9 Use --bound theorem9" in out
    assert answer(["explain", "poisson", "--json"]) == 0
    assert [each["kind"] for each in json.loads(capsys.readouterr().out)] == [
        "an amplification bound",
        "a sampling scheme or wrapper",
        "a way to form batches",
        "a way to sample clients",
    ]
    assert answer(["explain", "noise multiplier", "--quiet"]) == 0
    assert capsys.readouterr().out == "The standard deviation of the noise, divided by the clipping norm\n"


def test_a_function_of_python_names_its_help(capsys: pytest.CaptureFixture[str]) -> None:
    """A researcher who asked for from_rdp was sent to from_rdp_points and to record."""
    for name in ("from_rdp", "from_densities"):
        assert answer(["explain", name]) == 2
        assert f"help(cumulant.{name}) explains it" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("name", "near"),
    [
        ("gausian", "did you mean Gaussian, "),
        ("theorem_8", "theorem9"),
        ("DP-FTRL", "did you mean correlated noise?"),
        ("bandmf", "did you mean correlated noise, "),
        ("from_tree", "did you mean correlated noise"),
        ("from_matrix", "did you mean correlated noise"),
    ],
)
def test_an_unknown_name_gets_the_nearest(name: str, near: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert answer(["explain", name]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert near in err


@pytest.mark.parametrize("name", [*sgd.SAMPLINGS, *sgd.CORRELATED, *COMBINATIONS, *ATTACKS, *MODES])
def test_every_name_of_an_option_is_explained(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert answer(["explain", name]) == 0
    assert f"{name}   a" in capsys.readouterr().out


def test_shuffled_says_what_a_loader_of_torch_is(capsys: pytest.CaptureFixture[str]) -> None:
    assert answer(["explain", "shuffled"]) == 0
    out = " ".join(capsys.readouterr().out.split())
    assert "Protects one record replaced by another" in out
    assert "a loader of any other kind is ShuffledBatches(), which is not amplified" in out
    assert "--sampling shuffled" in out
    assert answer(["explain", "DataLoader", "--quiet"]) == 0
    capsys.readouterr()
    assert answer(["explain", "DataLoader"]) == 0
    assert "Account for it as any-order, or use ShuffledSampler." in " ".join(capsys.readouterr().out.split())


def test_without_a_name_all_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert answer(["explain", "--quiet"]) == 0
    assert {"theorem9", "Poisson", "lower end", "rdp"} <= set(capsys.readouterr().out.splitlines())


def test_every_way_to_combine_runs_has_an_expression_that_is_read() -> None:
    for each in known_entries():
        if each.kind == "a way to combine runs":
            assert cm.parse(dict(each.rows)["Use"].partition(": ")[2]).epsilon(delta=1e-6) > 0
