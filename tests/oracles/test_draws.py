"""Reference values of ways to draw records, and of the mixtures that they make, computed at high precision."""

import math
import re
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import cumulant as cm
from cumulant.pairs.public_choice import PublicChoicePair
from cumulant.sampling.truncated_poisson import shares
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


@pytest.mark.parametrize("row", rows("WithReplacement"), ids=name)
def test_samples_with_replacement(row: dict[str, Any]) -> None:
    given = row["parameters"]
    run = cm.Gaussian(sigma=given["sigma"]) @ cm.WithReplacement(given["sample"], given["population"])
    assert close(run.delta(epsilon=row["at"]["epsilon"]), float(row["value"]))


@pytest.mark.parametrize("row", rows("TruncatedPoisson"), ids=name)
def test_truncated_poisson_samples(row: dict[str, Any]) -> None:
    """The values are for the size of the larger data set; what is answered is the larger of two sizes."""
    given, expected = row["parameters"], float(row["value"])
    records, sigma = int(given["population"]), given.get("sigma", "1")
    if row["mechanism"] == "TruncatedPoisson":
        found = shares(Fraction(given["rate"]), int(given["limit"]), records)
        assert close(float(found[1 if row["quantity"] == "tau" else 2]), expected)
        return
    scheme = cm.TruncatedPoisson(given["rate"], given["limit"], given["population"])
    pair, epsilon = cm.Gaussian(sigma=sigma).pair(), float(row["at"]["epsilon"])
    branches = None if pair is None else scheme.case(pair, records)
    assert branches is not None
    # removing needs more than adding, so that the answer is above both
    assert (cm.Gaussian(sigma=sigma) @ scheme).delta(epsilon=row["at"]["epsilon"]) >= expected * (1 - 1e-14)
    if row["quantity"].endswith("remove"):
        assert PublicChoicePair((branches,), directed=True).profile(epsilon) == pytest.approx(expected, rel=1e-10)
