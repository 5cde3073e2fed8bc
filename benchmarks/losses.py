"""The exact layer against loss-distribution accountants: DP-SGD with Poisson samples at equal accuracy.

Accuracy is what the answers turn out to have, against the known truth: the grids of the peers are chosen so that their
answers are as far above it as ours, or as near as they can get in a few seconds for the saddle line.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from fractions import Fraction
from functools import partial

import peers
from measure import Comparison, LeftOut, timed

import cumulant as cm
from cumulant.exact.inversion import saddle
from cumulant.losses.gaussian_law import GaussianLaw
from cumulant.losses.grid import Mixture

SIGMA, SAMPLE, POPULATION, STEPS, DELTA = 1.0, 256, 60_000, 23_400, 1e-5
EXACT = 3.741394737858
ACCURACY = 1e-3
EQUAL, FINEST = 2.4e-4, 2e-5
"""dp_accounting's grid with the error of our bounded answer (1.7e-4), and one with an error of 1e-6."""


def loss_distributions(quick: bool) -> Iterator[Comparison | LeftOut]:
    """sigma 1, 256 of 60,000, 23,400 steps, delta 1e-5, add/remove."""
    work = f"DP-SGD, Poisson: sigma {SIGMA:g}, {SAMPLE}/{POPULATION}, {STEPS:,} steps, delta {DELTA:g}"
    if "Poisson" not in dir(cm):
        yield LeftOut(work, "this version has no Poisson samples")
        return

    def bounded(shift: int) -> float:
        step = cm.Gaussian(sigma=Fraction(1) + Fraction(shift, 10**9)) @ cm.Poisson(rate=f"{SAMPLE}/{POPULATION}")
        return (step * STEPS).epsilon(delta=DELTA, method="exact", accuracy=ACCURACY)

    def line(shift: int) -> float:
        rate = SAMPLE / POPULATION
        terms = ((Mixture(GaussianLaw(Fraction(1 / (1 + shift * 1e-9))), rate, 1 - rate, "remove"), STEPS),)
        found = saddle.saddle_epsilon(terms, math.log(DELTA))
        return math.nan if found is None else found[1]

    repetitions = 3 if quick else 7
    for name, ask, interval, wanted in (("bounded", bounded, EQUAL, 3.0), ("saddle line", line, FINEST, 50.0)):
        others: list[tuple[str, Callable[[], float]]] = [("dp_accounting", partial(google, interval))]
        if reason := peers.prv_missing():
            yield LeftOut(work, reason)
        else:
            others.append(("prv_accountant", prv))
        timings = tuple(timed(peer, lambda _, ask=ask: ask(), repetitions) for peer, ask in others)
        values = [(peer, ask()) for peer, ask in [("cumulant", partial(ask, 0)), *others]]
        shown = tuple(f"{peer} {value:.9f}, relative error {value / EXACT - 1:.1e}" for peer, value in values)
        ours = timed(f"cumulant, {name}", lambda i, ask=ask: ask(i + 1), 5 * repetitions)
        yield Comparison(f"{work}: {name}", ours, timings, shown, wanted)


def google(interval: float) -> float:
    """The privacy loss distribution of dp_accounting, from above, on a grid of this interval."""
    from dp_accounting.pld import privacy_loss_distribution

    pld = privacy_loss_distribution.from_gaussian_mechanism(
        SIGMA, sampling_prob=SAMPLE / POPULATION, value_discretization_interval=interval, use_connect_dots=True
    )
    return float(pld.self_compose(STEPS).get_epsilon_for_delta(DELTA))


def prv() -> float:
    """The upper end of prv_accountant's interval, its error set to 1e-3 of epsilon."""
    from prv_accountant import PoissonSubsampledGaussianMechanism, PRVAccountant

    mechanism = PoissonSubsampledGaussianMechanism(sampling_probability=SAMPLE / POPULATION, noise_multiplier=SIGMA)
    accountant = PRVAccountant(
        prvs=[mechanism], max_self_compositions=[STEPS], eps_error=ACCURACY * EXACT, delta_error=DELTA * 1e-3
    )
    return float(accountant.compute_epsilon(delta=DELTA, num_self_compositions=[STEPS])[2])
