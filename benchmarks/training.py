"""Training loops: epsilon per epoch, the search for noise, a draw and noise, beside Opacus, dp_accounting, numpy and torch."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from measure import Comparison, LeftOut, Timing, timed
from peers import opacus_missing

import cumulant as cm

RECORDS, BATCH, EPOCHS, DELTA = 60_000, 256, 20, 1e-5
PER_EPOCH = RECORDS // BATCH


def training(quick: bool) -> Iterator[Comparison | LeftOut]:
    """Three questions of a training loop with Poisson samples, the law that all peers know, one draw, and noise."""
    if reason := opacus_missing():
        yield LeftOut("training loops", reason)
        return
    repetitions = 3 if quick else 7
    yield _per_epoch(repetitions)
    yield _calibration(1 if quick else 3)
    yield _draws(quick)
    yield _exact_noise(repetitions)


def _noise(i: int) -> float:
    """A noise multiplier that was never asked about."""
    return 1.1 + 0.001 * i


def _plan(noise: float) -> cm.NoisySGD:
    return cm.NoisySGD(BATCH, RECORDS, noise, EPOCHS, sampling="poisson")


def _opacus(name: str, noise: float, steps: int) -> Any:
    from opacus.accountants import create_accountant

    accountant = create_accountant(name)
    accountant.history = [(noise, BATCH / RECORDS, steps)]
    return accountant


def _google(noise: float, steps: int, kind: str) -> Any:
    import dp_accounting
    from dp_accounting import pld, rdp

    event = dp_accounting.PoissonSampledDpEvent(BATCH / RECORDS, dp_accounting.GaussianDpEvent(noise))
    accountant = rdp.RdpAccountant() if kind == "rdp" else pld.PLDAccountant()
    return accountant.compose(event, steps)


def _per_epoch(repetitions: int) -> Comparison:
    counts = [PER_EPOCH * epoch for epoch in range(1, EPOCHS + 1)]

    def ours(i: int) -> object:
        return _plan(_noise(i)).per_epoch(DELTA)

    def opacus(i: int) -> object:
        return [_opacus("rdp", _noise(i), steps).get_epsilon(DELTA) for steps in counts]

    def google(i: int) -> object:
        return [_google(_noise(i), steps, "rdp").get_epsilon(DELTA) for steps in counts]

    last = (
        _plan(1.1).after(counts[-1]).epsilon(DELTA, method="rdp"),
        _opacus("rdp", 1.1, counts[-1]).get_epsilon(DELTA),
    )
    return Comparison(
        f"epsilon after each of {EPOCHS} epochs by Rényi divergences, {BATCH} of {RECORDS:,}, Poisson",
        timed("cumulant", ours, repetitions),
        (timed("opacus", opacus, repetitions), timed("dp_accounting", google, repetitions)),
        (f"after the last epoch: {last[0]:.6g}, Opacus {last[1]:.6g}",),
    )


def _calibration(repetitions: int) -> Comparison:
    import dp_accounting
    from opacus.accountants.utils import get_noise_multiplier

    steps = EPOCHS * PER_EPOCH
    found: dict[str, float] = {}

    def ours(i: int) -> object:
        plan = cm.NoisySGD(BATCH, RECORDS, 1, steps=steps, sampling="poisson")
        found["cumulant"] = float(plan.calibrated(epsilon=_target(i), delta=DELTA).noise_multiplier)
        return found

    def opacus(i: int) -> object:
        found["opacus"] = get_noise_multiplier(
            target_epsilon=_target(i), target_delta=DELTA, sample_rate=BATCH / RECORDS, steps=steps, accountant="prv"
        )
        return found

    def google(i: int) -> object:
        from dp_accounting import pld

        def event(noise: float) -> Any:
            gaussian = dp_accounting.GaussianDpEvent(noise)
            sampled = dp_accounting.PoissonSampledDpEvent(BATCH / RECORDS, gaussian)
            return dp_accounting.SelfComposedDpEvent(sampled, steps)

        found["dp_accounting"] = dp_accounting.calibrate_dp_mechanism(
            pld.PLDAccountant, event, _target(i), DELTA, tol=1e-3
        )
        return found

    timings: list[Timing] = [
        timed("cumulant", ours, repetitions),
        timed("opacus, prv", opacus, repetitions),
        timed("dp_accounting, loss distributions", google, repetitions),
    ]
    return Comparison(
        f"the noise multiplier that meets epsilon 3 after {steps:,} steps, by loss distributions",
        timings[0],
        tuple(timings[1:]),
        (", ".join(f"{name} {value:.4g}" for name, value in found.items()) + " (smaller is better)",),
    )


def _target(i: int) -> float:
    return 3 + 0.01 * i


def _exact_noise(repetitions: int) -> Comparison:
    import torch

    sums = np.zeros(10**6, dtype=np.int64)
    cm.training.rounded_gaussian(sums[:10], sigma=2**20)  # the table is made on first use
    return Comparison(
        "noise for 1,000,000 numbers; ours is the exactly rounded ideal Gaussian, by secret bits",
        timed("cumulant", lambda i: cm.training.rounded_gaussian(sums, sigma=2**20 + i), repetitions),
        (timed("torch, float32", lambda i: torch.normal(0.0, 1.0, (10**6,)), repetitions),),
        ("at most 5 times torch is the aim",),
    )


def _draws(quick: bool) -> Comparison:
    import torch

    sampler = cm.training.FixedSizeSampler(RECORDS, BATCH, steps=1)
    rng = np.random.default_rng(0)
    draws = 200 if quick else 2000

    def poisson(i: int) -> object:
        return (torch.rand(RECORDS) < BATCH / RECORDS).nonzero(as_tuple=False).reshape(-1).tolist()

    return Comparison(
        f"one draw of {BATCH} of {RECORDS:,}; ours by a secret key",
        timed("cumulant, fixed size", sampler.draw, draws),
        (
            timed("torch.randperm", lambda i: torch.randperm(RECORDS)[:BATCH].tolist(), draws),
            timed("numpy choice", lambda i: rng.choice(RECORDS, BATCH, replace=False).tolist(), draws),
            timed("Opacus, Poisson", poisson, draws),
        ),
    )
