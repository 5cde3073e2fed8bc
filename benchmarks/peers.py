"""How the peers are asked for the same work: the fastest documented way of each that we found."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import dp_accounting
import numpy as np
from autodp import mechanism_zoo, transformer_zoo
from dp_accounting import pld as google_pld
from dp_accounting import rdp as google_rdp

Floats = np.ndarray[Any, np.dtype[np.float64]]

POPULATION = 10**6
"""dp_accounting takes sample sizes; every rate used here is a whole number of records of so many."""


@dataclass(frozen=True, slots=True)
class Noise:
    """One sampled mechanism in plain numbers; kind is Gaussian, Laplace or RandomizedResponse."""

    kind: str
    parameter: float
    rate: float


# ---- dp_accounting: RDP of the Gaussian only, always at a fixed list of orders


GOOGLE_ORDERS = tuple(float(order) for order in google_rdp.RdpAccountant().orders)
"""dp_accounting's list of 156 orders."""


def google_accountant(orders: Sequence[float] | None = None) -> Any:
    """An empty accountant for replace-one neighbours."""
    relation = dp_accounting.NeighboringRelation.REPLACE_ONE
    return google_rdp.RdpAccountant(orders=orders, neighboring_relation=relation)


def google_event(noise: Noise) -> Any:
    """The Gaussian on a sample without replacement."""
    gaussian = dp_accounting.GaussianDpEvent(noise.parameter)
    return dp_accounting.SampledWithoutReplacementDpEvent(POPULATION, round(noise.rate * POPULATION), gaussian)


def google_curve(noise: Noise, orders: Sequence[float] | None = None) -> Floats:
    """Theorem 27, per term at most Theorem 9, of one sampled Gaussian."""
    accountant = google_accountant(orders)
    accountant.compose(google_event(noise))
    return np.asarray(accountant.rdp)


def google_epsilons(noise: Noise, counts: Sequence[int], delta: float) -> Floats:
    """One curve, then one conversion for each number of rounds."""
    curve = google_curve(noise)
    return np.array([google_rdp.compute_epsilon(GOOGLE_ORDERS, k * curve, delta)[0] for k in counts])


def google_poisson_curve(noise: Noise, orders: Sequence[float]) -> Floats:
    """The Poisson-sampled Gaussian."""
    accountant = google_rdp.RdpAccountant(orders=orders)
    gaussian = dp_accounting.GaussianDpEvent(noise.parameter)
    accountant.compose(dp_accounting.PoissonSampledDpEvent(noise.rate, gaussian))
    return np.asarray(accountant.rdp)


def google_truncated_poisson(records: int, rate: float, limit: int, noise: float, epsilon: float) -> float:
    """delta of one Gaussian step on a Poisson sample that is cut to a limit."""
    accountant = google_pld.PLDAccountant(dp_accounting.NeighboringRelation.ADD_OR_REMOVE_ONE)
    accountant.compose(dp_accounting.dp_event.TruncatedSubsampledGaussianDpEvent(records, rate, limit, noise))
    return float(accountant.get_delta(epsilon))


# ---- autodp: any mechanism


def autodp_mechanism(noise: Noise, tight: bool = False) -> Any:
    """Theorem 9, or autodp's improved bound (Theorem 27, which its user has to vouch for)."""
    base = {
        "Gaussian": mechanism_zoo.ExactGaussianMechanism,
        "Laplace": mechanism_zoo.LaplaceMechanism,
        "RandomizedResponse": mechanism_zoo.RandresponseMechanism,
    }[noise.kind](noise.parameter)
    base.neighboring = "replace_one"
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        sample = transformer_zoo.AmplificationBySampling(PoissonSampling=False)
        return sample(base, noise.rate, improved_bound_flag=tight)


def autodp_curve(noise: Noise, orders: Sequence[int], tight: bool = False) -> Floats:
    """One sampled mechanism, order by order."""
    mechanism = autodp_mechanism(noise, tight)
    with np.errstate(all="ignore"):
        return np.array([mechanism.RenyiDP(order) for order in orders])


def autodp_epsilon(mechanisms: Sequence[Any], counts: Sequence[int], delta: float) -> float:
    """The composition of sampled mechanisms, asked for one epsilon."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        return float(transformer_zoo.Composition()(list(mechanisms), list(counts)).get_approxDP(delta))


# ---- Opacus: the Poisson-sampled Gaussian only; needs torch, so it is compared only where it is installed


def prv_missing() -> str:
    """Why prv_accountant cannot be asked here; empty when it can."""
    try:
        import prv_accountant  # noqa: F401
    except ImportError as error:
        return f"prv_accountant is left out: {error}"
    return ""


def opacus_missing() -> str:
    """Why Opacus cannot be asked here; empty when it can."""
    try:
        import opacus.accountants.analysis.rdp  # noqa: F401
    except ImportError as error:
        return f"Opacus is left out: {error}"
    return ""


def opacus_poisson_curve(noise: Noise, orders: Sequence[float]) -> Floats:
    """The Poisson-sampled Gaussian."""
    from opacus.accountants.analysis.rdp import compute_rdp

    return np.asarray(compute_rdp(q=noise.rate, noise_multiplier=noise.parameter, steps=1, orders=list(orders)))
