"""The last iterate against stored values, against exact quadratics by recursion, and every refusal."""

from __future__ import annotations

import json
import math
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.optimize import minimize

import cumulant as cm
from cumulant.mechanisms.last_iterate import REFUSED

STORED = json.loads((Path(__file__).parents[1] / "oracles" / "reports.json").read_text())
PLAN: dict[str, Any] = {
    "steps": 100,
    "step_size": 1,
    "noise": "0.01",
    "lipschitz": 1,
    "smoothness": "0.25",
    "strong_convexity": "0.01",
    "records": 1000,
    "relation": "add-remove",
}


def of(row: dict[str, Any], **more: Any) -> float:
    """mu for a contraction, a number of steps, a shift and a deviation, with step size 1 and one record per batch."""
    convex = 1 - Fraction(str(row["c"]))
    batches = row.get("batches", 1)
    found = cm.last_iterate(
        steps=row["steps"],
        step_size=1,
        noise=str(row["sd"]),
        lipschitz=str(row["shift"]),
        smoothness=convex or 1,
        strong_convexity=convex,
        records=batches,
        batches=batches,
        relation="add-remove",
        **more,
    )
    return found.gaussian_mu()


def near(found: float, value: float) -> bool:
    """Not below what is true, and above it by the rounding to twelve digits only."""
    return value * (1 - 1e-15) <= found <= value * (1 + 2e-11)


@pytest.mark.parametrize("row", STORED["last_iterate"] + STORED["cyclic"], ids=str)
def test_stored_values(row: dict[str, Any]) -> None:
    assert near(of(row), row["mu"])


@pytest.mark.parametrize("row", STORED["bounded"], ids=str)
def test_stored_values_in_a_domain(row: dict[str, Any]) -> None:
    assert near(of(row, diameter=str(row["diameter"])), row["mu"])
    assert of(row, diameter="1e9") == of(row)


@pytest.mark.parametrize(
    ("c", "steps", "shift", "sd"), [(0.9, 50, 0.1, 1.0), (0.5, 7, 1.0, 2.0), (0.99, 300, 0.02, 0.5)]
)
def test_attained_on_quadratics(c: float, steps: int, shift: float, sd: float) -> None:
    """w <- c w + shift + noise: mean and variance by recursion; the last iterate is Gaussian, and mu is their quotient."""
    mean = variance = 0.0
    for _ in range(steps):
        mean, variance = c * mean + shift, c * c * variance + sd * sd
    assert of({"c": c, "steps": steps, "shift": shift, "sd": sd}) == pytest.approx(
        mean / math.sqrt(variance), rel=1e-11
    )


def test_a_cyclic_order_is_above_every_quadratic() -> None:
    """The record is seen once per epoch, at any place: the bound is at least what the quadratic loss needs there."""
    c, steps, batches, shift = 0.9, 20, 5, 0.3
    found = of({"c": c, "steps": steps, "batches": batches, "shift": shift, "sd": 1})
    for place in range(batches):
        mean = variance = 0.0
        for t in range(steps):
            mean, variance = c * mean + (shift if t % batches == place else 0.0), c * c * variance + 1
        assert mean / math.sqrt(variance) <= found
    assert found < shift * math.sqrt(steps / batches)  # and less than composition


def squares(values: Any) -> float:
    return float((values**2).sum())


def test_a_cyclic_order_by_brute_force() -> None:
    """Noise may hide a shift when it comes or later: the least sum of squares, by projected gradient on the definition."""
    c, steps, batches, shift = 0.7, 9, 3, 0.3
    weights = np.array([c ** (steps - i) for i in range(1, steps + 1)])
    worst = 0.0
    precise: Any = {"maxiter": 500, "ftol": 1e-14}
    for place in range(batches):
        moved = np.array([shift if i % batches == place else 0.0 for i in range(steps)])
        limits = np.cumsum(weights * moved)
        constraints: Any = [
            {"type": "ineq", "fun": lambda a, k=k, limits=limits: limits[k] - (weights * a)[: k + 1].sum()}
            for k in range(steps - 1)
        ] + [{"type": "eq", "fun": lambda a, limits=limits: limits[-1] - (weights * a).sum()}]
        solved = minimize(squares, moved, constraints=constraints, options=precise)
        worst = max(worst, math.sqrt(float(solved.fun)))
    assert of({"c": c, "steps": steps, "batches": batches, "shift": shift, "sd": 1}) == pytest.approx(worst, rel=1e-5)


def test_limits() -> None:
    one = cm.last_iterate(**PLAN | {"steps": 1})
    assert near(one.gaussian_mu(), 1 / 1000 / 0.01)  # one step is one Gaussian
    values = [cm.last_iterate(**PLAN | {"steps": steps}).gaussian_mu() for steps in (1, 10, 100, 1000, 10**6, 10**9)]
    assert values == sorted(values)
    assert values[-1] == pytest.approx(values[-2], rel=1e-9)  # it stays there for ever
    more = [cm.last_iterate(**PLAN | {"strong_convexity": m}).gaussian_mu() for m in ("0.1", "0.01", "1e-20", 0)]
    assert more == sorted(more)
    assert more[-1] == pytest.approx(more[-2], rel=1e-9)  # and c -> 1 is continuous
    assert near(more[-1], math.sqrt(100) / 1000 / 0.01)
    replaced = cm.last_iterate(**PLAN | {"relation": "replace-one"})
    assert replaced.gaussian_mu() == pytest.approx(2 * cm.last_iterate(**PLAN).gaussian_mu(), rel=1e-11)
    # step size and noise scale alike: eta enters the shift and the deviation
    half = {"step_size": "0.5", "strong_convexity": "0.02", "smoothness": "0.5"}
    assert cm.last_iterate(**PLAN | half).gaussian_mu() == pytest.approx(
        cm.last_iterate(**PLAN).gaussian_mu(), rel=1e-11
    )


def test_it_composes_and_is_written() -> None:
    found = cm.last_iterate(**PLAN)
    assert cm.parse(str(found)) == found
    assert str((found * 4).relation) == "add-remove"
    assert (found * 4).gaussian_mu() == pytest.approx(2 * found.gaussian_mu(), rel=1e-11)
    text = found.guarantee(delta=1e-5).explain()
    for part in ("only the last of 100 gradient steps", "lipschitz 1", "nothing is clipped"):
        assert part in text
    with pytest.raises(cm.InputError, match="whole run"):
        found @ cm.Poisson(rate="0.1")
    assert (cm.GaussianDP(mu=1) @ cm.Poisson(rate="0.1")).epsilon(delta=1e-5) < 4
    assert found != cm.GaussianDP(mu=found.mu)  # type: ignore[attr-defined]


@pytest.mark.parametrize("word", REFUSED)
def test_what_people_add_is_refused_with_the_reason(word: str) -> None:
    with pytest.raises(cm.HypothesisError, match=word):
        cm.last_iterate(**PLAN | {word: 1})


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"step_size": 8}, "make it smaller"),
        ({"steps": 0}, "steps"),
        ({"steps": 1.5}, "steps"),
        ({"noise": 0}, "noise"),
        ({"noise": math.nan}, "noise"),
        ({"lipschitz": -1}, "lipschitz"),
        ({"smoothness": math.inf}, "smoothness"),
        ({"records": True}, "records"),
        ({"batches": 7}, "must divide"),
        ({"batches": 10, "diameter": 1}, "full batches"),
        ({"batches": 500, "steps": 10_000}, "give fewer"),
        ({"diameter": 0}, "diameter"),
        ({"relation": "any"}, "choose"),
        ({"relation": "friends"}, "relation"),
        ({"colour": "red"}, "no such word"),
    ],
)
def test_bad_input(changed: dict[str, Any], said: str) -> None:
    with pytest.raises(cm.InputError, match=said):
        cm.last_iterate(**PLAN | changed)
