"""Partition selection from the definition: every number of users, both orders."""

from __future__ import annotations

import json
import math
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import integrate, special

import cumulant as cm
from cumulant.mechanisms.partition_selection import probabilities

STORED = json.loads((Path(__file__).parents[1] / "oracles" / "reports.json").read_text())["truncated_geometric"]


@pytest.mark.parametrize("row", STORED, ids=str)
def test_stored_values(row: dict[str, Any]) -> None:
    found = probabilities(row["epsilon"], row["delta"])
    assert found[1:6] == pytest.approx(row["first"], rel=1e-14)
    assert int(np.argmax(found >= 0.5)) == row["half_at"]
    assert int(np.argmax(found >= 1)) == row["one_at"]


@pytest.mark.parametrize(("epsilon", "delta"), [(1.0, 1e-5), (3.0, 1e-3), (0.5, 1e-2)])
def test_the_profile_holds_for_every_number_of_users(epsilon: float, delta: float) -> None:
    """H of two coins, in both orders, at many epsilons; at the promised one it is delta, attained at no user and one."""
    run = cm.PartitionSelection(epsilon, delta)
    pi = probabilities(epsilon, delta)
    at = np.linspace(0, 1.3 * epsilon, 41)
    known = run.delta(at.tolist())
    for few, more in pairwise(pi):
        for p, q in ((more, few), (few, more)):
            needed = np.maximum(p - np.exp(at) * q, 0) + np.maximum((1 - p) - np.exp(at) * (1 - q), 0)
            assert (needed <= known + 1e-15).all()
    assert run.delta(epsilon) == pytest.approx(delta, rel=1e-9)
    largest = max(float(np.maximum(more - few, few - more)) for few, more in pairwise(pi))
    assert run.delta(0) == pytest.approx(largest, rel=1e-6)  # and the profile is close
    assert run.delta(0) < cm.ApproximateDP(str(epsilon), str(delta)).delta(0)


def test_no_larger_probability_keeps_the_promise() -> None:
    """One part in a thousand more at any number of users breaks epsilon and delta."""
    epsilon, delta = 1.0, 1e-5
    pi, a = probabilities(epsilon, delta), math.exp(epsilon)
    for n in range(1, len(pi) - 1):
        p, q = min(pi[n] * 1.001, 1.0), pi[n - 1]
        needed = max(
            max(p - a * q, 0) + max((1 - p) - a * (1 - q), 0), max(q - a * p, 0) + max((1 - q) - a * (1 - p), 0)
        )
        assert needed > delta * (1 + 1e-9) or p == 1


def test_without_the_middle_branch_the_promise_breaks() -> None:
    """The rule that forgets 1 - e^-eps (1 - pi - delta): the chance of hiding a key falls too fast."""
    epsilon, delta, a = 1.0, 1e-5, math.e
    pi = [0.0]
    while pi[-1] < 1:
        pi.append(min(a * pi[-1] + delta, 1.0))
    worst = max((1 - few) - a * (1 - more) for few, more in pairwise(pi))
    assert worst > 100 * delta
    kept = probabilities(epsilon, delta)
    assert max((1 - few) - a * (1 - more) for few, more in pairwise(kept)) <= delta * (1 + 1e-9)


@pytest.mark.parametrize(("scale", "threshold"), [(1.0, 5.0), (2.0, 12.0), (0.7, 1.0)])
def test_laplace_thresholds_by_quadrature(scale: float, threshold: float) -> None:
    """n users and n + 1: key and noisy count are seen at the threshold or above, in both orders."""
    run = cm.PartitionSelection.laplace(scale, threshold)
    leak = math.exp(-(threshold - 1) / scale) / 2
    for x in (0.0, 0.3 / scale, 1 / scale, 1.5 / scale):
        known, a = run.delta(x), math.exp(x)
        assert known >= leak * (1 - 1e-9)  # from 0 to 1 the key is a leak
        for n in (1, 2, int(threshold), int(threshold) + 4):
            for mean, other in ((n + 1, n), (n, n + 1)):

                def seen(y: float, mean: float = mean, other: float = other, a: float = a) -> float:
                    p, q = (math.exp(-abs(y - m) / scale) / (2 * scale) for m in (mean, other))
                    return max(p - a * q, 0.0)

                hidden = [_below(threshold - m, scale) for m in (mean, other)]
                above, _ = integrate.quad(seen, threshold, threshold + 60 * scale, points=[n, n + 1], limit=300)
                assert above + max(hidden[0] - a * hidden[1], 0) <= known + 1e-8
    assert run.epsilon(delta=leak * 1.0001) <= 1 / scale * (1 + 1e-9)


def _below(x: float, scale: float) -> float:
    return 0.5 * math.exp(x / scale) if x < 0 else 1 - 0.5 * math.exp(-x / scale)


def test_gaussian_thresholds_bound_every_mix_of_keys() -> None:
    """j old keys and k - j new ones: leak + (1 - leak) H and the other order, for every j."""
    sigma, threshold, k = 2.0, 10.0, 3
    run = cm.PartitionSelection.gaussian(sigma, threshold, partitions=k)

    def gaussian(mu: float, a: float) -> float:
        if mu == 0:
            return max(1 - a, 0.0)
        x = math.log(a)
        return float(special.ndtr(mu / 2 - x / mu) - a * special.ndtr(-mu / 2 - x / mu))

    for x, known in zip((0.5, 1.0, 2.0), (0.18516, 0.082551, 0.0077784), strict=True):
        a, found = math.exp(x), run.delta(x)
        assert found == pytest.approx(known, rel=2e-5)
        for j in range(k + 1):
            leak = 1 - special.ndtr((threshold - 1) / sigma) ** (k - j)
            mu = math.sqrt(j) / sigma
            assert leak + (1 - leak) * gaussian(mu, a / (1 - leak)) <= found * (1 + 1e-12)
            assert gaussian(mu, a * (1 - leak)) <= found * (1 + 1e-12)


def test_thresholds() -> None:
    threshold = cm.PartitionSelection.threshold_for
    assert float(threshold("1e-5", scale=1)) == pytest.approx(1 + math.log(1 / 2e-5), abs=1e-6)
    for partitions in (1, 5):
        run = cm.PartitionSelection.gaussian(
            2, threshold("1e-5", sigma=2, partitions=partitions), partitions=partitions
        )
        leak = float(list(run.terms)[1].failure)  # type: ignore[attr-defined]
        assert 0.99e-5 < leak <= 1e-5


def test_relations_and_text() -> None:
    run = cm.PartitionSelection(1, "1e-5")
    assert cm.parse(str(run)) == run
    for each in (run, cm.PartitionSelection.laplace(1, 5), cm.PartitionSelection.gaussian(1, 5)):
        assert str(each.relation) == "add-remove"
        with pytest.raises(cm.RelationError):
            each @ cm.WithoutReplacement(rate="0.1")
    with pytest.raises(cm.HypothesisError, match="ApproximateDP"):
        run @ cm.Group(size=2)
    # a user who changes partitions leaves one and joins another
    assert (cm.ApproximateDP(1, "1e-5") @ cm.Group(size=2)).epsilon(delta="1e-3") == pytest.approx(2, rel=1e-2)


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda p: p(-1, "1e-5"), "epsilon"),
        (lambda p: p(1, 0), "delta"),
        (lambda p: p(1, 1), "delta"),
        (lambda p: p(math.nan, "1e-5"), "epsilon"),
        (lambda p: p(True, "1e-5"), "epsilon"),
        (lambda p: p.laplace(0, 5), "scale"),
        (lambda p: p.laplace(1, "0.5"), "threshold"),
        (lambda p: p.gaussian(1, 5, partitions=0), "partitions"),
        (lambda p: p.gaussian(math.inf, 5), "sigma"),
        (lambda p: p.threshold_for("1e-5"), "scale"),
        (lambda p: p.threshold_for("1e-5", scale=1, sigma=1), "one of them"),
        (lambda p: p.threshold_for("1e-5", scale=1, partitions=3), "repeat the rule"),
        (lambda p: p(1, "1e-5").release_probability(-1), "users"),
    ],
)
def test_bad_input(call: Any, said: str) -> None:
    with pytest.raises(cm.InputError, match=said):
        call(cm.PartitionSelection)


@pytest.mark.parametrize("times", [1, 2])
def test_the_envelope_over_all_numbers_of_users_has_no_lower_end(times: int) -> None:
    """A user of n others has one of their steps, the envelope the worst at every epsilon; check must not refute by it."""
    run = cm.PartitionSelection(1, "0.3") * times
    assert run.guarantee(epsilon=1).lower is None
    assert run.check(epsilon=1, delta="0.6" if times == 2 else "0.29999").verdict != "false"


@pytest.mark.parametrize(
    "run",
    [
        cm.PartitionSelection.laplace(scale=2, threshold=2),
        cm.PartitionSelection.gaussian(sigma=2, threshold=10, partitions=3),
    ],
    ids=str,
)
def test_noise_and_a_threshold_have_no_lower_end(run: cm.Expression) -> None:
    """An old key has the noise and a new one the leak, never both."""
    assert run.guarantee(epsilon=0).lower is None
    assert cm.parse(str(run)) == run
