"""Random symmetric finite mechanisms on small populations: the truth never exceeds an answer."""

import itertools
import math

import numpy as np
import pytest

import cumulant as cm
from tests.effort import drawn

Array = np.ndarray[tuple[int, ...], np.dtype[np.float64]]

RECORDS = 3
ORDERS = np.array([1.0, 1.2, 2.0, 2.5, 3.0, 5.0, 11.0])
EPSILONS = np.array([0.0, 0.05, 0.3, 1.0])


def divergences(p: Array, q: Array, orders: Array) -> Array:
    """D_a(p || q) for each order, by the definition."""
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.log(p) - np.log(q)
        out = []
        for order in orders:
            if order == 1:
                value = np.nansum(np.where(p > 0, p * ratio, 0.0))
            elif order == math.inf:
                value = np.nanmax(np.where(p > 0, ratio, -np.inf))
            else:
                value = np.log(np.nansum(np.where(p > 0, q * np.exp(order * ratio), 0.0))) / (order - 1)
                if ((p > 0) & (q == 0)).any():
                    value = np.inf
            out.append(value)
    return np.array(out)


def hockey_stick(p: Array, q: Array, epsilons: Array) -> Array:
    return np.asarray(np.maximum(p - np.exp(epsilons)[:, None] * q, 0).sum(axis=1))


class FiniteMechanism:
    """A law on a few outputs for every multiset of `size` records."""

    def __init__(self, rng: np.random.Generator, size: int) -> None:
        self.multisets = list(itertools.combinations_with_replacement(range(RECORDS), size))
        weights = rng.dirichlet(np.full(rng.integers(2, 5), rng.choice([0.3, 1.0, 20.0])), size=len(self.multisets))
        weights = np.maximum(weights, 1e-6)
        self.law = dict(zip(self.multisets, weights / weights.sum(axis=1, keepdims=True), strict=True))

        counts = {a: np.bincount(a, minlength=RECORDS) for a in self.multisets}
        pairs = [
            (self.law[a], self.law[b])
            for a, b in itertools.permutations(self.multisets, 2)
            if (counts[a] - counts[b]).clip(0).sum() == 1
        ]
        self.log_p, self.log_q = np.log(np.array(pairs)).transpose(1, 0, 2)
        integers = np.arange(2, 4097)
        exponent = self.log_q + integers[:, None, None] * (self.log_p - self.log_q)
        top = exponent.max(axis=(1, 2), keepdims=True)
        log_moment = top[:, 0, 0] + np.log(np.exp(exponent - top).sum(axis=2).max(axis=1))
        self.at_integers: dict[float, float] = dict(
            zip(integers.tolist(), (log_moment / (integers - 1)).tolist(), strict=True)
        )

    def rdp(self, order: float) -> float:
        """The largest divergence of all ordered replace-one neighbours."""
        if order in self.at_integers:
            return self.at_integers[order]
        ratio = self.log_p - self.log_q
        if order == 1:
            return float((np.exp(self.log_p) * ratio).sum(axis=1).max())
        if order == math.inf:
            return float(ratio.max())
        exponent = self.log_q + order * ratio
        top = exponent.max()
        return float((top + np.log(np.exp(exponent - top).sum(axis=1)).max()) / (order - 1))

    def sampled(self, data: tuple[int, ...], size: int) -> Array:
        subsets = [self.law[tuple(sorted(subset))] for subset in itertools.combinations(data, size)]
        return np.asarray(np.mean(subsets, axis=0))


@pytest.mark.parametrize("seed", range(drawn(5)))
def test_the_truth_never_exceeds_the_answer(seed: int) -> None:
    rng = np.random.default_rng(seed)
    size = int(rng.integers(1, 4))
    population = int(rng.integers(size + 1, 6))
    finite = FiniteMechanism(rng, size)
    base = cm.from_rdp(
        rdp=finite.rdp, pure=finite.rdp(math.inf) * (1 + 1e-12), kl=finite.rdp(1) * (1 + 1e-12), name="finite"
    )
    run = base @ cm.WithoutReplacement(sample=size, population=population)
    rest = tuple(int(r) for r in rng.integers(0, RECORDS, size=population - 1))
    laws = [finite.sampled((record, *rest), size) for record in range(RECORDS)]
    pairs = list(itertools.permutations(laws, 2))
    truth = np.max([divergences(p, q, ORDERS) for p, q in pairs], axis=0)
    true_delta = np.max([hockey_stick(p, q, EPSILONS) for p, q in pairs], axis=0)
    for bound in ("theorem9", "pure-extras", "caps", "best"):
        assert (truth <= run.rdp(ORDERS, bound=bound) * (1 + 1e-9)).all(), bound
    assert np.max([divergences(p, q, np.array([math.inf])) for p, q in pairs]) <= run.pure() * (1 + 1e-9)
    for method in ("paper", "rdp"):
        assert (true_delta <= run.delta(EPSILONS, method=method) * (1 + 1e-9)).all()
        for delta in (1e-3, 0.05):
            epsilon = run.epsilon(delta=delta, method=method)
            worst = max(hockey_stick(p, q, np.array([epsilon]))[0] for p, q in pairs)
            assert worst <= delta * (1 + 1e-9)
