"""Sparse vectors: the probability of every pattern of answers by one integral over the threshold."""

import itertools

import numpy as np
import pytest
from scipy import stats

import cumulant as cm
from tests import effort
from tests.mechanisms.brute import Law, renyi, violations

ORDERS = [1.5, 2, 4, 10]


def patterns(answers: Law, noise: str, threshold: float, query: float, hits: int) -> Law:
    """All sequences of above and below that the mechanism can stop with."""
    law = stats.laplace if noise == "laplace" else stats.norm
    t = np.linspace(-25, 25, 2001) * threshold
    weight = law.pdf(t, scale=threshold)
    weight = weight / weight.sum()
    above = law.sf(t[None, :] - answers[:, None], scale=query)
    found = []
    for bits in itertools.product((0, 1), repeat=answers.size):
        stop = next((i + 1 for i in range(answers.size) if sum(bits[: i + 1]) == hits), answers.size)
        if any(bits[stop:]):
            continue
        each = np.prod([above[i] if bits[i] else 1 - above[i] for i in range(stop)], axis=0)
        found.append(float((weight * each).sum()))
    return np.array(found)


def moved(rng: np.random.Generator, answers: Law, monotone: bool) -> Law:
    if monotone:
        return answers + rng.uniform(0, 1, answers.size)
    return answers + (rng.choice([-1, 1], answers.size) if rng.random() < 0.6 else rng.uniform(-1, 1, answers.size))


def test_laplace() -> None:
    rng = np.random.default_rng(9)
    for i in range(effort.drawn(60)):
        threshold, query = (round(float(x), 2) for x in rng.uniform(0.5, 4, 2))
        hits, monotone = int(rng.integers(1, 3)), bool(i % 4 == 0)
        mechanism = cm.SparseVector(threshold=threshold, query=query, hits=hits, monotone=monotone)
        answers = rng.uniform(-3, 3, 3)
        p, q = (patterns(x, "laplace", threshold, query, hits) for x in (answers, moved(rng, answers, monotone)))
        # the sum over the threshold has kinks between its points
        p, q = (p + 1e-5) / (p + 1e-5).sum(), (q + 1e-5) / (q + 1e-5).sum()
        epsilons = [0.0, mechanism.pure() / 2, 0.9 * mechanism.pure()]
        assert not violations(mechanism, [(p, q), (q, p)], epsilons, ORDERS)[0], mechanism


@pytest.mark.parametrize(("threshold", "query", "hits"), [(2.0, 3.0, 1), (1.0, 2.0, 2)])
def test_gaussian(threshold: float, query: float, hits: int) -> None:
    rng = np.random.default_rng(hits)
    mechanism = cm.SparseVector(threshold=threshold, query=query, hits=hits, noise="gaussian", queries=3)
    claimed = mechanism.curve().rdp(ORDERS)
    share = 0.0
    for _ in range(effort.drawn(50)):
        answers = rng.uniform(-3, 6, 3)
        p, q = (patterns(x, "gaussian", threshold, query, hits) for x in (answers, moved(rng, answers, False)))
        for order, value in zip(ORDERS, claimed, strict=True):
            needed = max(renyi(p, q, order), renyi(q, p, order))
            assert needed <= value * (1 + 1e-9)
            share = max(share, needed / value)
    assert share > 0.1


@pytest.mark.parametrize(
    ("given", "order", "value"),
    [
        ({"threshold": 2, "query": 4}, 2, 0.7003038961736159622315826),
        ({"threshold": 10, "query": 20, "hits": 3}, 16, 0.3586645097574190086102011),
        ({"threshold": 10, "query": 20, "noise": "gaussian", "queries": 10}, 10, 0.19769446312062962643),
        ({"threshold": 10, "query": 20, "noise": "gaussian", "queries": 50}, 10, 0.26479359258858227681),
        ({"threshold": 5, "query": 10, "noise": "gaussian", "queries": 10}, 5, 0.40023888858333321809),
    ],
)
def test_reference_divergences(given: dict[str, object], order: float, value: float) -> None:
    found = cm.SparseVector(**given).rdp(order)  # type: ignore[arg-type]
    assert value * (1 - 1e-12) <= found <= value * (1 + 1e-3)


def test_reference_deltas() -> None:
    three = cm.SparseVector(threshold=10, query=20, hits=3)
    assert three.delta("0.39") == pytest.approx(0.004987520807317686647435754, rel=1e-12)
    two = cm.SparseVector(threshold=5, query=5, hits=2, monotone=True)
    assert two.delta("0.5") == pytest.approx(0.04877057549928599090857468, rel=1e-12)
    assert two.pure() == pytest.approx(0.6, rel=1e-12)


def test_against_pure_privacy_and_other_accountants() -> None:
    """Zhu and Wang 2020 say 0.612 at order 10 for 100 queries."""
    gaussian = cm.SparseVector(threshold=10, query=20, noise="gaussian", queries=100)
    assert gaussian.rdp(10) == pytest.approx(0.291, abs=1e-3)
    run = cm.SparseVector(threshold=2, query=4)
    for order in (1.5, 2, 30):
        assert run.rdp(order) <= cm.PureDP(1).rdp(order) * (1 + 1e-12)
    assert run.delta("0.9") < cm.PureDP(1).delta("0.9")
    assert (run * 5).epsilon(1e-6) <= (cm.PureDP(1) * 5).epsilon(1e-6)


def test_more_hits_and_queries_cost_more() -> None:
    assert cm.SparseVector(threshold=5, query=5).rdp(3) < cm.SparseVector(threshold=5, query=5, hits=2).rdp(3)
    few, many = (cm.SparseVector(threshold=5, query=9, noise="gaussian", queries=k).rdp(4) for k in (2, 20))
    assert few < many


def test_what_is_refused() -> None:
    with pytest.raises(cm.InputError, match="needs queries"):
        cm.SparseVector(threshold=1, query=1, noise="gaussian")
    with pytest.raises(cm.InputError, match="choose one of laplace, gaussian"):
        cm.SparseVector(threshold=1, query=1, noise="gumbel")
    with pytest.raises(cm.InputError, match="an integer"):
        cm.SparseVector(threshold=1, query=1, hits="1.5")
    with pytest.raises(cm.RelationError, match="add-remove"):
        cm.SparseVector(threshold=1, query=1, monotone=True) @ cm.WithoutReplacement(rate="0.1")
    run = cm.SparseVector(threshold=1, query=2, hits=2, monotone=True) @ cm.Poisson(rate="0.1") * 3
    assert cm.parse(str(run)) == run
