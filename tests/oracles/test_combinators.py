"""Reference values of sparse vectors, promises, the best of several runs, and of the pair of the exponential mechanism."""

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import cumulant as cm
from cumulant.numerics.arithmetic import FLOATS
from tests.oracles.reference import load

ROWS = load("combinators")["values"]


def described(row: dict[str, Any]) -> cm.Expression:
    """What a row speaks of; numbers stay text, so they are exact."""
    name, given = row["mechanism"], dict(row["parameters"])
    if name == "SparseVector":
        return cm.SparseVector(**{**given, "monotone": given["monotone"] == "True"})
    if name == "PrivacyProfile":
        points = [point.strip("()").split(",") for point in given["points"].split()]
        return cm.PrivacyProfile([x for x, _ in points], [y for _, y in points])
    if name == "RepeatAndSelect":
        return cm.parse(given["base"]) @ cm.RepeatAndSelect(mean=given["mean"], shape=given["shape"])
    if name.startswith("GaussianDP @"):
        return cm.GaussianDP(mu=given["mu"]) @ cm.WithoutReplacement(rate="1/100")
    kind: type[cm.Mechanism] = getattr(cm, name)
    return kind(**given)


def name(row: dict[str, Any]) -> str:
    return "-".join([row["mechanism"], *row["parameters"].values(), row["quantity"], *row["at"].values()])


@pytest.mark.parametrize("row", ROWS, ids=name)
def test_reference(row: dict[str, Any]) -> None:
    """Bounds are equal to the formula of their page, or smaller where a sharper proof is used."""
    run, at, expected = described(row), row["at"], float(row["value"])
    if "lam" in at:  # the pair is composed by its chords, which are a little more
        x, log_p = run.pair().losses(FLOATS)  # type: ignore[attr-defined]
        lam = float(at["lam"])
        found = float(np.log1p(np.sum(np.exp(log_p) * np.expm1(lam * x) * -np.expm1(-(lam + 1) * x))))
        assert expected * (1 - 1e-12) <= found <= expected * (1 + 1e-3)
        return
    if "order" in at:
        found = float(run.rdp(float(at["order"])))
        gaussian = row["parameters"].get("noise") == "gaussian"
        # sparse vectors with Gaussian noise round outward; at a small order a larger one may say less
        assert found <= expected * (1 + (1e-3 if gaussian else 1e-8))
        if row["mechanism"] == "SparseVector":
            pure = Fraction(row["parameters"]["sensitivity"]) if not gaussian else None
            assert found >= expected * (1 - 1e-12) or (pure is not None and found <= run.pure())
        return
    found = run.delta(epsilon=at["epsilon"])
    assert found <= expected * (1 + 1e-5) + 1e-300
    # where delta is large the convex minorant of the points and their mirror images says less than the formula
    assert found >= expected * (1 - 1e-5) - 1e-300 or expected > 0.05
