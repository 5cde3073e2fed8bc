"""The default answer as an interval: reference values, fallbacks, laws that hold between the methods."""

import dataclasses
import json
import math
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import cumulant as cm
from cumulant.conversion.query import Answer
from cumulant.errors import HypothesisError, InputError, RelationError
from tests.effort import share

ROWS: list[dict[str, Any]] = json.loads((Path(__file__).parents[1] / "oracles" / "two_sided.json").read_text())[
    "values"
]
FEW = [row for row in ROWS if row["k"] in (1, 10, 100, 10_000)]  # tests/exact asks the lattices about all of them


def described(row: dict[str, Any]) -> cm.Expression:
    parameter = next(iter(row["params"].values()))
    base: cm.Mechanism
    match row["mechanism"]:
        case "gaussian":
            base = cm.Gaussian(sigma=parameter)
        case "laplace":
            base = cm.Laplace(scale=parameter)
        case _:
            p = Fraction(str(parameter))
            base = cm.PureDP(math.log(p / (1 - p)))
    rate = "256/60000" if abs(row["gamma"] - 256 / 60000) < 1e-9 else row["gamma"]
    times: int = row["k"]
    return base @ cm.WithoutReplacement(rate=rate) * times


@pytest.mark.parametrize("row", FEW, ids=lambda row: f"{row['mechanism']}-{row['params']}-{row['k']}-{row['delta']:g}")
def test_reference(row: dict[str, Any]) -> None:
    run, delta = described(row), row["delta"]
    top = row.get("eps_contour_sym", row["eps_upper"])
    profile = run.epsilon(delta, method="exact", bound="profile")
    digits = 4e-9 if "eps_contour_sym" in row else 1e-4  # an upper end of a grid is within 1e-4 of the truth
    assert top * (1 - digits) <= profile <= top * (1 + 1e-3)
    exact, found = run.epsilon(delta, method="exact"), run.guarantee(delta=delta)
    assert row["eps_lower"] * (1 - 1e-9) <= found.epsilon <= exact <= profile
    assert found.lower is not None
    assert row["eps_lower"] * (1 - 1e-3) <= found.lower <= found.epsilon
    assert found.epsilon / found.lower <= 1.25
    assert found.epsilon <= run.epsilon(delta, method="rdp")


@pytest.mark.parametrize(
    ("geometry", "sigma", "times", "expected"),
    [
        ("diameter", 1, 10_000, 0.7826),
        ("ball", 1, 10_000, 0.7128),
        ("diameter", 1, 600_000, 6.75616),
        ("ball", 1, 600_000, 5.999),
        ("diameter", 5, 600_000, 0.807),
        ("ball", 5, 600_000, 0.8028),
    ],
)
def test_theorem_b(geometry: str, sigma: int, times: int, expected: float) -> None:
    run = cm.Gaussian(sigma=sigma, geometry=geometry) @ cm.WithoutReplacement(rate=0.001) * times
    found = run.guarantee(delta=1e-8)
    assert expected * (1 - 1e-4) <= found.epsilon <= expected * 1.005
    assert found.route == "cone"
    assert found.lower is not None
    assert found.epsilon / 1.07 <= found.lower <= found.epsilon


def test_poisson_training_run() -> None:
    run = cm.Gaussian(sigma=1) @ cm.Poisson(rate="256/60000") * 23_400
    truth = 3.741394737858
    assert 0 <= run.epsilon(1e-5, method="exact") / truth - 1 <= 1e-3
    assert 0 <= run.epsilon(1e-5, method="exact", accuracy="2e-7") - truth <= 1e-6
    found = run.guarantee(delta=1e-5)
    assert found.lower is not None
    assert 0 <= 1 - found.lower / truth <= 1e-3
    assert found.relation == "add-remove"


RUNS = [
    cm.Gaussian(sigma=2) * 5,
    cm.Laplace(scale=2) @ cm.WithoutReplacement(rate=0.01) * 1000,
    cm.RandomizedResponse(p="0.6") @ cm.WithoutReplacement(rate=0.1) * 50,
    cm.Laplace(scale=1) + cm.Gaussian(sigma=2) * 10 + cm.PureDP("0.2") * 5,
    cm.Gaussian(sigma=1) @ cm.Poisson(rate=0.01) * 100 + cm.Laplace(scale=3),
    cm.from_masses(["0.5", "0.3", "0.2"], ["0.2", "0.2", "0.6"]) * 7,
    cm.from_masses(["0.5", "0.5", 0], ["0.25", "0.5", "0.25"]) @ cm.WithoutReplacement(rate="0.001") * 3,
    (cm.Gaussian(sigma=3) * 4) @ cm.WithoutReplacement(rate=0.01) * 100,
    cm.ApproximateDP("0.1", "1e-8") @ cm.WithoutReplacement(rate=0.1) * 40,
]


@pytest.mark.parametrize(
    ("run", "delta"), [(run, delta) for i, run in enumerate(RUNS) for delta in share(("1e-5", "0.01"), i)], ids=str
)
def test_best_is_the_smaller_one_and_above_what_is_needed(run: cm.Expression, delta: str) -> None:
    found = run.guarantee(delta=delta)
    exact, by_curve = run.epsilon(delta, method="exact"), run.epsilon(delta, method="rdp")
    assert found.epsilon == min(exact, by_curve) == run.epsilon(delta)
    assert found.lower is not None
    assert 0 <= found.lower <= found.epsilon
    if math.isfinite(found.epsilon):
        assert run.delta(found.epsilon) <= float(delta) * (1 + 1e-2)
        assert found.verify().holds
    assert "Rigour" in found.explain()
    assert json.loads(found.to_json())["lower"] is not None


@pytest.mark.parametrize("run", [*RUNS, cm.ZeroConcentrated(rho="0.1") * 3], ids=str)
def test_arrays_of_deltas_are_the_smaller_of_both_too(run: cm.Expression) -> None:
    epsilons: list[str] = ["0.1", "0.5", "2"]
    found, exact, by_curve = (run.delta(epsilons, method=method) for method in ("best", "exact", "rdp"))
    assert (found == np.minimum(exact, by_curve)).all()
    assert found == pytest.approx([run.delta(epsilon) for epsilon in epsilons], rel=1e-6)


def test_an_understated_epsilon_does_not_verify() -> None:
    found = (cm.Laplace(scale=2) @ cm.WithoutReplacement(rate=0.01) * 1000).guarantee(delta=1e-6)
    assert found.verify().holds
    assert not dataclasses.replace(found, epsilon=found.epsilon * 0.99).verify().holds


def test_a_curve_alone_has_no_loss_distribution() -> None:
    run = cm.Gaussian(sigma=1) * 3 + cm.ZeroConcentrated(rho="0.1")
    for method in ("best", "exact"):
        found = run.guarantee(delta=1e-5, method=method)
        assert found.epsilon == run.epsilon(1e-5, method="rdp")
        assert found.lower is None
        assert "ZeroConcentrated(rho=0.1)" in found.note


def test_gaussians_without_a_sample_are_one_gaussian() -> None:
    """The profile of N(5/3) against N(0): 1/9 + 4 * 2/3 = 25/9."""
    many = cm.Gaussian(sigma=3) + cm.Gaussian(sigma=3, sensitivity=2, geometry="ball") * 6
    found = many.guarantee(delta="1e-6")
    assert (found.route, found.rigour) == ("closed form", "proved")
    one = cm.Gaussian(sigma=3, sensitivity=5)
    assert found.epsilon == one.epsilon("1e-6")
    assert one.delta(found.epsilon) <= 1e-6
    pair = one.pair()
    assert pair is not None
    assert pair.profile(found.epsilon * (1 - 1e-9)) > 1e-6


def test_questions_that_make_no_sense() -> None:
    run = cm.Gaussian(sigma=1) @ cm.WithoutReplacement(rate=0.01) * 10
    with pytest.raises(InputError, match="takes no conversion"):
        run.epsilon(1e-5, method="exact", conversion="cks")
    with pytest.raises(InputError, match="takes no bound='theorem9'"):
        run.epsilon(1e-5, method="exact", bound="theorem9")
    with pytest.raises(InputError, match="accuracy=0 must be"):
        run.epsilon(1e-5, accuracy=0)
    with pytest.raises(RelationError):
        run + cm.Gaussian(sigma=1) @ cm.Poisson(rate=0.01)
    with pytest.raises(HypothesisError, match="does not apply to Poisson samples"):
        (cm.Gaussian(sigma=1) @ cm.Poisson(rate=0.01)).epsilon(1e-5, bound="theorem9")


# ---- where layers meet


def test_several_queries_on_one_sample_bring_no_geometry() -> None:
    """Theorems A, B and C are about one Gaussian per sample; several may be adaptive within it."""
    several = (cm.Gaussian(sigma=1) * 2) @ cm.WithoutReplacement(rate=0.5) * 10_000
    one = cm.Gaussian(sigma=1, sensitivity="1.4142135623730951") @ cm.WithoutReplacement(rate=0.5) * 10_000
    assert one.epsilon(1e-5) < 3405  # Theorem B, which an adaptive adversary on one sample exceeds by 200
    found = several.guarantee(delta=1e-5)
    assert found.route in ("lattice", "line")
    assert found.epsilon > 3610
    assert several.epsilon(1e-5) == several.epsilon(1e-5, bound="profile", method="exact")


def test_delta_of_a_poisson_run_falls_where_the_added_direction_ends() -> None:
    """-rounds log(1 - rate) is the largest loss of that direction; nothing happens to the other one there."""
    run = cm.Gaussian(sigma=1) @ cm.Poisson(rate="0.01") * 100
    epsilons = [0.9, 0.98, 0.99, 0.995, 1, 1.004, 1.00503, 1.01, 1.1]
    found = run.delta(epsilons)
    assert (np.diff(found) < 0).all()
    line = run.delta([1.0])[0]
    assert 6.6e-7 < line < 6.75e-7  # the saddle line says 6.689e-7


@pytest.mark.parametrize(
    ("run", "delta"),
    [
        ("Gaussian(sigma=2) @ WithoutReplacement(rate=0.001) * 1000", 1e-6),
        ("Gaussian(sigma=2) @ WithoutReplacement(rate=0.01) * 3000", 1e-6),
        ("Laplace(scale=2) @ WithoutReplacement(rate=0.01) * 500", 1e-6),
        ("Gaussian(sigma=1) @ WithoutReplacement(rate=0.001) * 10", 1e-8),
        ("Gaussian(sigma=1) @ Poisson(rate=0.01) * 100", 1e-6),
    ],
)
def test_more_accuracy_is_never_worse(run: str, delta: float) -> None:
    parsed = cm.parse(run)
    coarse, usual, fine, finest = (parsed.epsilon(delta, accuracy=a) for a in ("1e-2", "1e-3", "1e-5", "1e-9"))
    assert finest <= fine <= usual <= coarse * (1 + 1e-9)
    assert usual <= finest * (1 + 1e-3)
    assert coarse <= finest * (1 + 1e-2)


def test_more_accuracy_than_a_line_affords_is_never_worse() -> None:
    run = cm.parse("Gaussian(sigma=2) @ Poisson(rate=0.1) * 10")
    assert run.delta(epsilon=0.5, accuracy="1e-9") <= run.delta(epsilon=0.5)
    assert run.epsilon(delta=1e-5, accuracy="1e-9") <= run.epsilon(delta=1e-5)


@pytest.mark.parametrize(
    "run",
    [
        "Gaussian(sigma=0.005) @ WithoutReplacement(rate=0.01) * 10",
        "Laplace(scale=0.005) @ WithoutReplacement(rate=0.01) * 100",
        "PureDP(300) @ WithoutReplacement(rate=0.001) * 1000",
        "PureDP(1e-4) * 100000000",
        "Laplace(scale=100000) * 1000000000",
    ],
)
def test_wide_losses_and_very_many_rounds_have_an_exact_answer(run: str) -> None:
    parsed = cm.parse(run)
    found = parsed.guarantee(delta=1e-6)
    assert found.route in ("lattice", "line", "cone")
    assert found.lower is not None
    assert found.lower <= found.epsilon < parsed.epsilon(1e-6, method="rdp")
    assert found.epsilon / found.lower < 1.03


def test_what_no_grid_resolves_falls_back_and_says_so() -> None:
    many = (cm.Laplace(scale=100_000) * 10**10).guarantee(delta=1e-6)
    assert many.route == "cks"
    assert "more than a grid resolves" in many.note
    wide = (cm.Gaussian(sigma="1e-4") @ cm.WithoutReplacement(rate=0.01) * 2).guarantee(delta=1e-6)
    assert wide.route == "cks"
    assert "too many scales for a grid" in wide.note


def test_a_contradiction_is_an_error_and_not_hidden(monkeypatch: pytest.MonkeyPatch) -> None:
    from cumulant.exact import answer

    witness = Answer(1e9, None, "bounded", way="nobody")
    monkeypatch.setattr(answer, "lower_end", lambda *_: witness)
    with pytest.raises(cm.CertificateError, match="please report"):
        (cm.Gaussian(sigma=1) @ cm.Poisson(rate="0.01") * 10).guarantee(delta=1e-5)
