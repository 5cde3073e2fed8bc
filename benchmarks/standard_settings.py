"""Epsilons of twelve standard settings by every peer that is installed: `python benchmarks/standard_settings.py`.

It adds what it finds to `peer_epsilons.json`, so that peers that need different environments can be asked in turn.
The page docs/comparison.md shows these numbers; tests/docs/test_comparison.py computes ours anew.
"""

from __future__ import annotations

import json
import logging
import math
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

ANSWERS = Path(__file__).with_name("peer_epsilons.json")


@dataclass(frozen=True, slots=True)
class Setting:
    """One run in plain numbers: the noise, the sampler, how often, and the delta that is asked about."""

    name: str
    noise: str  # "Gaussian" or "Laplace"
    parameter: float  # sigma or scale, for sensitivity 1
    sampler: str  # "poisson", "fixed-size" or "none"
    sample: int
    population: int
    steps: int
    delta: str

    @property
    def rate(self) -> float:
        """The sampling probability."""
        return self.sample / self.population

    @property
    def expression(self) -> str:
        """The run in the notation of cumulant."""
        relation = ', relation="add-remove"' if self.sampler == "poisson" else ""
        base = f"Gaussian(sigma={self.parameter:g}{relation})"
        if self.noise == "Laplace":
            base = f"Laplace(scale={self.parameter:g})"
        rate = f'"{self.sample}/{self.population}"'
        drawn = {
            "poisson": f" @ Poisson(rate={rate})",
            "fixed-size": f" @ WithoutReplacement(sample={self.sample}, population={self.population})",
            "none": "",
        }[self.sampler]
        return base + drawn + (f" * {self.steps}" if self.steps > 1 else "")


SETTINGS = (
    Setting("MNIST, 15 epochs", "Gaussian", 1.1, "poisson", 256, 60_000, 3516, "1e-5"),
    Setting("MNIST, 60 epochs", "Gaussian", 1.1, "poisson", 256, 60_000, 14_063, "1e-5"),
    Setting("CIFAR-10, 60 epochs", "Gaussian", 1.0, "poisson", 512, 50_000, 5860, "1e-5"),
    Setting("CIFAR-10, large batches", "Gaussian", 3.0, "poisson", 4096, 50_000, 2468, "1e-5"),
    Setting("ImageNet, large batches", "Gaussian", 2.5, "poisson", 16_384, 1_281_167, 72_000, "8e-7"),
    Setting("IMDB, 20 epochs, little noise", "Gaussian", 0.56, "poisson", 512, 25_000, 977, "1e-5"),
    Setting("a thousand steps on 1 %", "Gaussian", 1.1, "poisson", 1, 100, 1000, "1e-6"),
    Setting("a language model of 763,430 users", "Gaussian", 1.0, "poisson", 5000, 763_430, 4120, "1e-9"),
    Setting("a hundred full batches", "Gaussian", 10.0, "none", 1, 1, 100, "1e-6"),
    Setting("one Gaussian release", "Gaussian", 1.0, "none", 1, 1, 1, "1e-5"),
    Setting("twelve tables with Laplace noise", "Laplace", 10.0, "none", 1, 1, 12, "1e-6"),
    Setting("the paper's run, fixed-size samples", "Gaussian", 5.0, "fixed-size", 1, 1000, 600_000, "1e-8"),
)
"""Settings of published models and tutorials, three runs without samples, and the run of the paper's Figure 2."""


def opacus_rdp(one: Setting) -> float | None:
    """Opacus' default accountant."""
    from opacus.accountants import RDPAccountant

    return _opacus(one, RDPAccountant())


def opacus_prv(one: Setting) -> float | None:
    """Opacus' accountant of loss distributions, with its default errors."""
    from opacus.accountants import PRVAccountant

    return _opacus(one, PRVAccountant())


def _opacus(one: Setting, accountant: Any) -> float | None:
    if one.noise != "Gaussian" or one.sampler == "fixed-size":
        return None
    accountant.history = [(one.parameter, one.rate, one.steps)]
    return float(accountant.get_epsilon(delta=float(one.delta)))


def google_rdp(one: Setting) -> float | None:
    """dp_accounting by Rényi divergences."""
    import dp_accounting
    from dp_accounting.rdp import RdpAccountant

    relations = dp_accounting.NeighboringRelation
    relation = relations.REPLACE_ONE if one.sampler == "fixed-size" else relations.ADD_OR_REMOVE_ONE
    return _google(one, RdpAccountant(neighboring_relation=relation))


def google_pld(one: Setting) -> float | None:
    """dp_accounting by loss distributions."""
    from dp_accounting.pld import PLDAccountant

    return None if one.sampler == "fixed-size" else _google(one, PLDAccountant())


def _google(one: Setting, accountant: Any) -> float | None:
    import dp_accounting as dp

    event: Any = dp.GaussianDpEvent(one.parameter) if one.noise == "Gaussian" else dp.LaplaceDpEvent(one.parameter)
    if one.sampler == "poisson":
        event = dp.PoissonSampledDpEvent(one.rate, event)
    elif one.sampler == "fixed-size":
        event = dp.SampledWithoutReplacementDpEvent(one.population, one.sample, event)
    accountant.compose(event, one.steps)
    return float(accountant.get_epsilon(float(one.delta)))


def autodp(one: Setting) -> float | None:
    """autodp: its closed form for one release, else Rényi divergences."""
    from autodp import mechanism_zoo, transformer_zoo

    base = {"Gaussian": mechanism_zoo.ExactGaussianMechanism, "Laplace": mechanism_zoo.LaplaceMechanism}[one.noise](
        one.parameter
    )
    if one.sampler != "none":
        poisson = one.sampler == "poisson"
        base.neighboring = "add_remove" if poisson else "replace_one"
        base = transformer_zoo.AmplificationBySampling(PoissonSampling=poisson)(
            base, one.rate, improved_bound_flag=poisson
        )
    if one.steps == 1:
        return float(base.get_approxDP(float(one.delta)))
    return float(transformer_zoo.Composition()([base], [one.steps]).get_approxDP(float(one.delta)))


def prv_accountant(one: Setting) -> float | None:
    """prv_accountant, upper end, with an error of 0.01 in epsilon."""
    from prv_accountant import LaplaceMechanism, PoissonSubsampledGaussianMechanism, PRVAccountant

    if one.sampler == "fixed-size":
        return None
    law = (
        PoissonSubsampledGaussianMechanism(noise_multiplier=one.parameter, sampling_probability=one.rate)
        if one.noise == "Gaussian"
        else LaplaceMechanism(mu=1 / one.parameter)
    )
    found = PRVAccountant(
        prvs=[law], max_self_compositions=[one.steps], eps_error=0.01, delta_error=float(one.delta) / 1000
    )
    return float(found.compute_epsilon(delta=float(one.delta), num_self_compositions=[one.steps])[2])


PEERS: dict[str, tuple[str, Callable[[Setting], float | None]]] = {
    "Opacus, RDP": ("opacus", opacus_rdp),
    "Opacus, PRV": ("opacus", opacus_prv),
    "dp_accounting, RDP": ("dp-accounting", google_rdp),
    "dp_accounting, PLD": ("dp-accounting", google_pld),
    "autodp": ("autodp", autodp),
    "prv_accountant": ("prv-accountant", prv_accountant),
}
"""The column of the page, the package it needs, and the question."""


def main() -> None:
    """Ask every peer that is installed, and write the answers after each of them."""
    logging.disable(logging.WARNING)
    warnings.simplefilter("ignore")
    known: dict[str, Any] = json.loads(ANSWERS.read_text()) if ANSWERS.exists() else {}
    for peer, (package, ask) in PEERS.items():
        try:
            number = version(package)
        except ImportError:
            print(f"{peer}: not installed here")
            continue
        found: dict[str, float | str | None] = {}
        for one in SETTINGS:
            try:
                epsilon = ask(one)
            except Exception as error:
                found[one.name] = type(error).__name__
            else:
                found[one.name] = epsilon if epsilon is None or math.isfinite(epsilon) else "inf"
            print(peer, one.name, found[one.name], flush=True)
        today = datetime.now(UTC).date().isoformat()
        known[peer] = {"package": package, "version": number, "date": today, "epsilon": found}
        ANSWERS.write_text(json.dumps(known, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
