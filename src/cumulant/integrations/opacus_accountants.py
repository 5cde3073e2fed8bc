"""Accountants for Opacus, one for each of five ways to draw batches.

Each reads the law from the loader.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from opacus.utils.uniform_sampler import UniformWithReplacementSampler

from cumulant.domains import Exact, spelling
from cumulant.errors import InputError, shown
from cumulant.integrations.opacus_accounting import ADAPTIVE, PUBLIC_SIZES, Accountant, PassAccountant
from cumulant.integrations.opacus_loading import Draw, check_shuffled
from cumulant.mechanisms.gaussian import Gaussian
from cumulant.mechanisms.mechanism import Expression
from cumulant.mechanisms.shuffled_batches import ShuffledBatches
from cumulant.sampling.poisson import Poisson
from cumulant.sampling.random_allocation import RandomAllocation
from cumulant.sampling.without_replacement import WithoutReplacement
from cumulant.training.balls_in_bins import BallsInBinsSampler
from cumulant.training.cyclic_poisson import CyclicPoissonSampler
from cumulant.training.opacus_history import torch_rate
from cumulant.training.sampler import FixedSizeSampler, PoissonSampler, Sampler
from cumulant.training.sgd import ANY_ORDER, SAMPLINGS
from cumulant.training.shuffled_sampler import ShuffledSampler


class PoissonAccountant(Accountant):
    """Poisson samples and add/remove neighbours.

    This is the stock `make_private` of Opacus, on one process.

    The rate is that of the sampler, and where `torch.rand` decides it is the probability of that, not its argument.
    """

    name = "cumulant"
    assumes = SAMPLINGS["poisson"].assumes
    adaptive = False
    secret_sizes = True

    @property
    def caveats(self) -> tuple[str, ...]:
        return (*super().caveats, PUBLIC_SIZES)

    def noisy(self, noise: float, rate: float | str) -> Expression:
        exact = Exact(rate) if isinstance(rate, str) else torch_rate(rate)
        gaussian = Gaussian.from_clipping(norm=1, noise=noise, relation="add-remove")
        return gaussian @ Poisson(rate=spelling(Fraction(exact)))

    def _stock(self, caller: Mapping[str, Any], rate: float) -> float | str:
        loader = caller["data_loader"]
        if not caller["poisson_sampling"]:
            raise InputError(
                "poisson_sampling=False: these batches are no Poisson samples, so they have another epsilon; use "
                'PrivacyEngine(accountant="cumulant-shuffled"), or make_private of cumulant.integrations.opacus with sample=…'
            )
        if caller["distributed"]:
            raise InputError(
                "Opacus draws on each process from its own seed and skips empty samples. Records are then neither drawn "
                "independently nor with this rate; use make_private of cumulant.integrations.opacus with sample=…"
            )
        if caller["clipping"] == "adaptive":
            raise InputError(ADAPTIVE)
        if type(loader.batch_sampler) is not UniformWithReplacementSampler:
            raise InputError(f"{type(loader.batch_sampler).__name__} is no Poisson sampler that this accountant knows")
        exact = torch_rate(loader.batch_sampler.sample_rate)
        return f"{exact.numerator}/{exact.denominator}"

    def text(self, sampler: Sampler) -> str:
        if not isinstance(sampler, PoissonSampler):
            return super().text(sampler)
        return f"{sampler.rate.numerator}/{sampler.rate.denominator}"


class FixedSizeAccountant(Accountant):
    """Uniform samples of a fixed size and replace-one neighbours, drawn by our sampler.

    See `make_private`.
    """

    name = "cumulant-fixed-size"
    assumes = SAMPLINGS["fixed-size"].assumes

    def noisy(self, noise: float, rate: float | str) -> Expression:
        sample, slash, population = rate.partition("/") if isinstance(rate, str) else ("", "", "")
        if not slash:
            raise InputError(
                f"sample_rate={shown(rate)} does not say how many of how many records are drawn; use make_private or "
                "make_private_with_epsilon of cumulant.integrations.opacus, or give it as text like '64/1797'"
            )
        gaussian = Gaussian.from_clipping(norm=1, noise=noise, relation="replace-one")
        return gaussian @ WithoutReplacement(sample=sample, population=population)

    def _check(self, noise: float, rate: float | str) -> None:
        records = {str(seen).partition("/")[2] for _, seen, _ in self.history} | {str(rate).partition("/")[2]}
        if len(records) > 1:
            raise InputError(
                f"the data set had {' and '.join(sorted(records))} records: replace-one neighbours have one size, and a "
                "history is about one data set; use a new engine"
            )

    def _stock(self, caller: Mapping[str, Any], rate: float) -> float | str:
        raise InputError(
            "PrivacyEngine.make_private keeps a loader that does not draw samples of fixed size afresh; use make_private of "
            "cumulant.integrations.opacus with sample=…"
        )

    def text(self, sampler: Sampler) -> str:
        if not isinstance(sampler, FixedSizeSampler):
            return super().text(sampler)
        return f"{sampler.sample}/{sampler.population}"


class ShuffledAccountant(PassAccountant):
    """Loaders that visit each record at most once per pass, and replace-one neighbours.

    Only passes that our ShuffledSampler draws are amplified (`make_private` with batch=…).

    Every pass that was started counts as one whole pass. Of a loader of the user nothing is known but that no record comes
    twice: it counts as one noisy sum of sensitivity 2C. Given the order, neighbours differ in one batch of the pass; steps
    before it agree, steps after it use its noisy output only. Mixtures over orders keep every bound. The rate in the history
    is "pass" for such loaders, and for ours text like "64 of 1797", with "full 64 of 1797" where a short batch is dropped.
    """

    name = "cumulant-shuffled"
    PASS = "pass"
    FULL = "full "

    secret_samples = False

    @property
    def assumes(self) -> str:  # type: ignore[override]
        """Return what is assumed of the loaders that ran."""
        kinds = {rate == self.PASS for _, rate, _ in self.history}
        return " ".join(ANY_ORDER if foreign else SAMPLINGS["shuffled"].assumes for foreign in sorted(kinds or {True}))

    def noisy(self, noise: float, rate: float | str) -> Expression:
        gaussian = Gaussian.from_clipping(norm=1, noise=noise, relation="replace-one")
        law = self._law(rate)
        return gaussian @ (ShuffledBatches() if law is None else law)

    def _law(self, rate: float | str) -> ShuffledBatches | None:
        """Return how a permutation of ours was cut; None for other loaders."""
        if not isinstance(rate, str) or " of " not in rate:
            return None
        batch, _, records = rate.removeprefix(self.FULL).partition(" of ")
        return ShuffledBatches(batch=batch, records=records, drop_last=rate.startswith(self.FULL))

    def run(self) -> Expression | None:
        whole: Expression | None = None
        for noise, rate, count in self._whole_history():
            # Opacus calibrates with (noise, 1 / len(loader), steps)
            known = rate == self.PASS or self._law(rate) is not None
            passes = count if known else -(-count // max(1, round(1 / float(rate))))
            part = self.noisy(noise, rate) * passes
            whole = part if whole is None else whole + part
        return whole

    def step(self, *, noise_multiplier: float, sample_rate: float | str) -> None:
        super().step(noise_multiplier=noise_multiplier, sample_rate=self.PASS)

    def _check(self, noise: float, rate: float | str) -> None:
        if self.history and self.history[-1][0] != noise:
            raise InputError(
                f"noise_multiplier={noise} after {self.history[-1][0]}: passes may overlap, so one noise for all of them is "
                "accounted; use a new engine and add the two guarantees"
            )

    def _pass_of(self, rate: float | str, draw: Draw) -> Any:
        steps = self._steps_of(rate)
        return draw.pass_number if steps is None else (draw.mark, draw.number // steps)

    def _steps_of(self, rate: float | str) -> int | None:
        law = self._law(rate)
        cut = None if law is None else law.cut()
        return None if cut is None else cut.released

    def text(self, sampler: Sampler) -> str:
        if not isinstance(sampler, ShuffledSampler):
            return super().text(sampler)
        law = sampler.law
        return f"{self.FULL if law.drop_last else ''}{law.batch} of {law.records}"

    def _stock(self, caller: Mapping[str, Any], rate: float) -> float | str:
        if caller["poisson_sampling"] or caller["distributed"]:
            raise InputError(
                "the shuffled accountant takes poisson_sampling=False on one process; for Poisson samples use "
                "accountant='cumulant'"
            )
        check_shuffled(caller["data_loader"])
        return self.PASS


class SecretSizesAccountant(PassAccountant):
    """An accountant of passes whose batches have secret sizes, for add/remove neighbours.

    One of our samplers draws the batches.
    """

    adaptive = False
    secret_sizes = True
    arguments = ""
    """The arguments of `make_private` that choose the sampler."""

    @property
    def caveats(self) -> tuple[str, ...]:
        return (*super().caveats, PUBLIC_SIZES)

    def _unknown(self, rate: object) -> InputError:
        return InputError(
            f"sample_rate={shown(rate)} does not say how a pass is drawn; use make_private or make_private_with_epsilon of "
            f"cumulant.integrations.opacus with {self.arguments}"
        )

    def _stock(self, caller: Mapping[str, Any], rate: float) -> float | str:
        raise InputError(
            "PrivacyEngine.make_private keeps a loader that does not draw by this law; use make_private of "
            f"cumulant.integrations.opacus with {self.arguments}"
        )


class BallsInBinsAccountant(SecretSizesAccountant):
    """Passes in which every record is in one step, chosen uniformly and afresh.

    For add/remove neighbours.

    A pass that was started counts as one whole pass. The rate in the history is 1 / steps of a pass, as text.
    """

    name = "cumulant-balls-in-bins"
    assumes = SAMPLINGS["balls-in-bins"].assumes.replace("records // batch steps", "the steps of BallsInBinsSampler")
    arguments = "bins=…"

    def noisy(self, noise: float, rate: float | str) -> Expression:
        one, _, steps = rate.partition("/") if isinstance(rate, str) else ("", "", "")
        if one != "1" or not steps.isdecimal():
            raise self._unknown(rate)
        gaussian = Gaussian.from_clipping(norm=1, noise=noise, relation="add-remove")
        return gaussian @ RandomAllocation(steps=int(steps))

    def _pass_of(self, rate: float | str, draw: Draw) -> tuple[str, int]:
        return draw.mark, draw.number // self._steps_of(rate)

    def _steps_of(self, rate: float | str) -> int:
        return int(str(rate).partition("/")[2])

    def text(self, sampler: Sampler) -> str:
        if not isinstance(sampler, BallsInBinsSampler):
            return super().text(sampler)
        return f"1/{sampler.steps}"


class CyclicPoissonAccountant(SecretSizesAccountant):
    """Poisson samples from parts of the data that take turns, for add/remove neighbours.

    A record has one turn in every cycle, so every cycle that was started counts as one Poisson sample. The rate in the
    history is that of a turn with the number of parts, as text like "1/2 of 10".
    """

    name = "cumulant-cyclic-poisson"
    arguments = "rate=… and cycle=…"
    assumes = (
        "every record is in one part of the data, chosen without looking at it; parts take turns, and a step takes each record "
        "of its part independently with the rate and keeps secret which; empty batches run too, and the sum is divided by a "
        "constant; a cycle that was started counts as a whole one (cumulant.training.CyclicPoissonSampler)"
    )

    def noisy(self, noise: float, rate: float | str) -> Expression:
        turn, _, cycle = rate.partition(" of ") if isinstance(rate, str) else ("", "", "")
        if not cycle.isdecimal():
            raise self._unknown(rate)
        gaussian = Gaussian.from_clipping(norm=1, noise=noise, relation="add-remove")
        return gaussian @ Poisson(rate=spelling(Fraction(Exact(turn))))

    def _pass_of(self, rate: float | str, draw: Draw) -> tuple[str, int]:
        return draw.mark, draw.number // self._steps_of(rate)

    def _steps_of(self, rate: float | str) -> int:
        return int(str(rate).partition(" of ")[2])

    def text(self, sampler: Sampler) -> str:
        if not isinstance(sampler, CyclicPoissonSampler):
            return super().text(sampler)
        return f"{sampler.rate.numerator}/{sampler.rate.denominator} of {sampler.cycle}"
