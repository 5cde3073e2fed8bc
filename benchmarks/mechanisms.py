"""What analysts run, value and time beside peers: one line per mechanism, our epsilon over the best of theirs.

Where a release of a peer has no such event, its published rule is written down here and evaluated by its own conversion.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator

import dp_accounting
import numpy as np
from autodp import mechanism_zoo, rdp_bank, transformer_zoo
from dp_accounting import pld
from dp_accounting import rdp as google_rdp
from measure import Fact, LeftOut

import cumulant as cm

DELTA = 1e-6
ORDERS = np.array(google_rdp.RdpAccountant().orders)


def mechanisms(quick: bool) -> Iterator[Fact | LeftOut]:
    """The exponential mechanism, the best of several runs, discrete Gaussian noise, sparse vectors; each once, from nothing."""
    yield _line(
        "exponential mechanism, epsilon 1, 20 rounds",
        lambda: (cm.ExponentialMechanism(1) * 20).epsilon(DELTA),
        {
            "dp_accounting (zCDP of bounded range, OpenDP's rule)": lambda: _google(dp_accounting.ZCDpEvent(1 / 8), 20),
            "dp_accounting PLD (as randomized response, HEAD's and PipelineDP's rule)": lambda: _google_pld(1.0, 20),
            "autodp": lambda: _autodp(mechanism_zoo.ExponentialMechanism(1.0), 20),
        },
        0.95,
    )
    yield _line(
        "best of a geometric number of runs, mean 10, sigma 10",
        lambda: (cm.Gaussian(sigma=10) @ cm.RepeatAndSelect(mean=10)).epsilon(DELTA),
        {"dp_accounting HEAD's rule (Papernot, Steinke 2022, Theorem 2)": lambda: _selected(10.0, 10.0)},
        0.75,
    )
    run = (cm.Gaussian(sigma=5) @ cm.Poisson(rate="0.01") * 1000) @ cm.RepeatAndSelect(mean=10)
    yield _line(
        "the same of 1000 sampled rounds, sigma 5, rate 0.01",
        lambda: run.epsilon(DELTA),
        {"the same rule": lambda: _selected_samples(5.0, 0.01, 1000, 10.0)},
        0.95,
    )
    for sigma in ("0.3", "0.5"):
        yield _line(
            f"discrete Gaussian noise on a number, sigma {sigma}",
            lambda sigma=sigma: cm.DiscreteGaussian(sigma=sigma, dimension=1).epsilon(DELTA),
            {
                "dp_accounting (zCDP)": lambda sigma=sigma: _google(
                    dp_accounting.ZCDpEvent(1 / (2 * float(sigma) ** 2)), 1
                ),
                "autodp": lambda sigma=sigma: _autodp(mechanism_zoo.DiscreteGaussianMechanism(float(sigma)), 1),
            },
            0.9,
        )
    yield _line(
        "sparse vector with Gaussian noise, scales 10 and 20, 100 queries, one hit",
        lambda: cm.SparseVector(threshold=10, query=20, noise="gaussian", queries=100).epsilon(DELTA),
        {"autodp (Zhu, Wang 2020)": lambda: _sparse_vector(10.0, 20.0, 100)},
        0.95,
    )


def _line(work: str, ours: Callable[[], float], peers: dict[str, Callable[[], float]], limit: float) -> Fact:
    start = time.perf_counter()
    found = ours()
    seconds = time.perf_counter() - start
    told, best = [f"ours {found:.4f} in {seconds:.2f} s"], math.inf
    for name, peer in peers.items():
        start = time.perf_counter()
        value = peer()
        told.append(f"{name} {value:.4f} in {time.perf_counter() - start:.2f} s")
        best = min(best, value)
    return Fact(f"{work}, delta 1e-6: our epsilon over the best peer's", found / best, limit, "; ".join(told))


def _google(event: dp_accounting.DpEvent, times: int) -> float:
    accountant = google_rdp.RdpAccountant()
    accountant.compose(event, times)
    return float(accountant.get_epsilon(DELTA))


def _google_pld(epsilon: float, times: int) -> float:
    """One round as randomized response of log-odds epsilon."""
    noise = 2 / (1 + math.exp(epsilon))
    one = pld.privacy_loss_distribution.from_randomized_response(noise, 2)
    return float(one.self_compose(times).get_epsilon_for_delta(DELTA))


def _autodp(mechanism: mechanism_zoo.Mechanism, times: int) -> float:
    return float(transformer_zoo.Composition()([mechanism], [times]).get_approxDP(DELTA))


def _converted(rdp: np.ndarray) -> float:
    return float(google_rdp.compute_epsilon(ORDERS, rdp, DELTA)[0])


def _selected(sigma: float, mean: float) -> float:
    return _best_of(ORDERS / (2 * sigma**2), mean)


def _selected_samples(sigma: float, rate: float, times: int, mean: float) -> float:
    accountant = google_rdp.RdpAccountant(orders=ORDERS)
    accountant.compose(dp_accounting.PoissonSampledDpEvent(rate, dp_accounting.GaussianDpEvent(sigma)), times)
    return _best_of(np.asarray(accountant._rdp), mean)


def _best_of(rdp: np.ndarray, mean: float) -> float:
    """D_a + 2 ((1 - 1/b) D_b + log(mean) / b) + log(mean) / (a - 1), the best b among the orders."""
    added = float(np.min(2 * ((1 - 1 / ORDERS) * rdp + math.log(mean) / ORDERS)))
    return _converted(rdp + added + math.log(mean) / (ORDERS - 1))


def _sparse_vector(threshold: float, query: float, queries: int) -> float:
    given = {"sigma": threshold, "sigma_nu": query, "k": queries, "margin": 0.0, "Delta": 1.0}
    return _converted(np.array([rdp_bank.RDP_gaussian_svt_c1(given, float(order)) for order in ORDERS]))
