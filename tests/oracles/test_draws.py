"""Reference values of ways to draw records, and of the mixtures that they make, computed at high precision."""

import math
import re
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import cumulant as cm
from tests.oracles.reference import load

ROWS = load("draws")["values"]


def rows(word: str) -> list[dict[str, Any]]:
    return [row for row in ROWS if word in row["mechanism"]]


def name(row: dict[str, Any]) -> str:
    return "-".join([row["mechanism"], *row["parameters"].values(), row["quantity"], *row["at"].values()])


def close(found: float, expected: float) -> bool:
    """Never below the reference value, and hardly above it."""
    return expected * (1 - 1e-14) <= found <= expected * (1 + 1e-12) + 1e-300


@pytest.mark.parametrize("row", rows("GaussianMixture"), ids=name)
def test_mixtures(row: dict[str, Any]) -> None:
    found = re.fullmatch(r"Binomial\((\d+),(.*)\)", row["parameters"]["weights"])
    assert found is not None
    count, rate = int(found[1]), Fraction(found[2])
    weights = [math.comb(count, k) * rate**k * (1 - rate) ** (count - k) for k in range(count + 1)]
    mixture = cm.GaussianMixture(row["parameters"]["sigma"], list(range(count + 1)), weights)
    kind, direction = row["quantity"].split(", ")
    expected = float(row["value"])
    if kind == "rdp":
        curve = mixture.pair().directions[direction == "add"]
        assert curve.rdp([float(row["at"]["order"])])[0] == pytest.approx(expected, rel=1e-12)
        assert mixture.rdp(row["at"]["order"]) >= expected * (1 - 1e-14)
        return
    epsilon = row["at"]["epsilon"]
    larger = max(float(each["value"]) for each in ROWS if each["parameters"] == row["parameters"]
                 and each["quantity"].startswith("delta") and each["at"] == row["at"])  # fmt: skip
    claimed = mixture.delta(epsilon=epsilon)
    assert claimed >= expected * (1 - 1e-14)
    if direction == "remove":
        assert close(claimed, larger)
    else:  # the smaller one, integrated by hand over what the other direction cannot reach
        z = np.linspace(-12, 12, 200_001)
        ratio = sum(float(w) * np.exp(k * s * z - (k * s) ** 2 / 2) for k, w in enumerate(weights)
                    for s in [1 / float(row["parameters"]["sigma"])])  # fmt: skip
        density = np.exp(-z * z / 2) / math.sqrt(2 * math.pi) * (z[1] - z[0])
        by_hand = float((density * np.maximum(1 - math.exp(float(epsilon)) * ratio, 0)).sum())
        assert by_hand == pytest.approx(expected, rel=1e-6, abs=1e-12)
