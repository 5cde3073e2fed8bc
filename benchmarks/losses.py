"""The exact layer against loss-distribution accountants: DP-SGD with Poisson samples at equal accuracy."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from fractions import Fraction

import peers
from measure import Comparison, LeftOut, timed

import cumulant as cm
from cumulant.exact import saddle
from cumulant.exact.losses import GaussianLoss
from cumulant.exact.steps import Mixture

SIGMA, SAMPLE, POPULATION, STEPS, DELTA = 1.0, 256, 60_000, 23_400, 1e-5
EXACT = 3.741394737858
ACCURACY = 1e-3


def loss_distributions(quick: bool) -> Iterator[Comparison | LeftOut]:
    """sigma 1, 256 of 60,000, 23,400 steps, delta 1e-5, add/remove; every answer within 1e-3 of the truth."""
    work = f"DP-SGD, Poisson: sigma {SIGMA:g}, {SAMPLE}/{POPULATION}, {STEPS:,} steps, delta {DELTA:g}, within {ACCURACY:g}"
    if "Poisson" not in dir(cm):
        yield LeftOut(work, "this version has no Poisson samples")
        return

    def bounded(shift: int) -> float:
        step = cm.Gaussian(sigma=Fraction(1) + Fraction(shift, 10**9)) @ cm.Poisson(rate=f"{SAMPLE}/{POPULATION}")
        return (step * STEPS).epsilon(delta=DELTA, method="exact", accuracy=ACCURACY)

    def line(shift: int) -> float:
        rate = SAMPLE / POPULATION
        terms = ((Mixture(GaussianLoss(1 / (1 + shift * 1e-9)), rate, 1 - rate, "remove"), STEPS),)
        found = saddle.epsilon(terms, math.log(DELTA))
        return math.nan if found is None else found[1]

    repetitions = 3 if quick else 7
    others: list[tuple[str, Callable[[], float]]] = [("dp_accounting", google)]
    if reason := peers.prv_missing():
        yield LeftOut(work, reason)
    else:
        others.append(("prv_accountant", prv))
    timings = tuple(timed(name, lambda _, ask=ask: ask(), repetitions) for name, ask in others)
    values = [f"{name} {ask():.9f}" for name, ask in others]
    for name, ask, wanted in (("bounded", bounded, 3.0), ("saddle line", line, 50.0)):
        found = ask(0)
        shown = (f"cumulant {found:.9f}, truth {EXACT}, relative error {found / EXACT - 1:.1e}", *values)
        ours = timed(f"cumulant, {name}", lambda i, ask=ask: ask(i + 1), 5 * repetitions)
        yield Comparison(f"{work}: {name}", ours, timings, shown, wanted)


def google() -> float:
    """The privacy loss distribution of dp_accounting, on the grid that gives this accuracy from above."""
    from dp_accounting.pld import privacy_loss_distribution

    pld = privacy_loss_distribution.from_gaussian_mechanism(
        SIGMA, sampling_prob=SAMPLE / POPULATION, value_discretization_interval=6e-4, use_connect_dots=True
    )
    return float(pld.self_compose(STEPS).get_epsilon_for_delta(DELTA))


def prv() -> float:
    """The upper end of prv_accountant's interval, its error set to what this accuracy allows."""
    from prv_accountant import PoissonSubsampledGaussianMechanism, PRVAccountant

    mechanism = PoissonSubsampledGaussianMechanism(sampling_probability=SAMPLE / POPULATION, noise_multiplier=SIGMA)
    accountant = PRVAccountant(
        prvs=[mechanism], max_self_compositions=[STEPS], eps_error=ACCURACY * EXACT, delta_error=DELTA * 1e-3
    )
    return float(accountant.compute_epsilon(delta=DELTA, num_self_compositions=[STEPS])[2])
