"""Loaders that know what was drawn from them, so that draws can be compared with the steps that were accounted."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Protocol

from torch.utils.data import BatchSampler, DataLoader, RandomSampler, SequentialSampler

from cumulant.errors import CumulantError, InputError
from cumulant.training.sampler import Sampler


class Steps(Protocol):
    """What counts the steps that were accounted in this process."""

    taken: int


class DrawsAndSteps(CumulantError):
    """Batches that were drawn and steps that were accounted are not the same: the law of the sampler is not what ran."""


def _differ(drawn: int, stepped: int) -> DrawsAndSteps:
    return DrawsAndSteps(
        f"{drawn} batches were drawn but {stepped} steps accounted: every draw must be used by exactly one step, whatever is "
        "in it. Do not accumulate gradients over batches (use BatchMemoryManager), skip batches, step twice on one, evaluate "
        "on this loader, or let accelerate prepare it"
    )


class AccountedSampler:
    """The batch sampler of an accounted loader: draws of a sampler, compared with steps wherever that is possible.

    At the end of a pass if no worker draws ahead, and at the start of the next one in any case: after a complete pass draws
    and steps are equal; a pass that was broken off may have drawn batches that nobody used.
    """

    def __init__(self, sampler: Sampler, steps: Steps, ahead: bool) -> None:
        self.sampler = sampler
        self._steps, self._ahead = steps, ahead
        self._drawn = self._before = 0
        self._started = self._complete = False

    def __iter__(self) -> Iterator[list[int]]:
        self.reconcile()
        self._drawn, self._before, self._started, self._complete = 0, self._steps.taken, True, False
        for batch in self.sampler:
            self._drawn += 1
            yield batch
        self._complete = True
        if not self._ahead:
            self.reconcile()

    def reconcile(self) -> None:
        """DrawsAndSteps if the last pass did not account for what it drew."""
        stepped = self._steps.taken - self._before
        if self._started and (stepped > self._drawn or (self._complete and stepped < self._drawn)):
            raise _differ(self._drawn, stepped)

    def __len__(self) -> int:
        return len(self.sampler)


class AccountedLoader(DataLoader[Any]):
    """A DataLoader that hands out the next batch only if the last one was followed by exactly one accounted step."""

    def __init__(self, dataset: Any, sampler: Sampler, steps: Steps, **options: Any) -> None:
        ahead = bool(options.get("num_workers", 0))
        super().__init__(dataset, batch_sampler=AccountedSampler(sampler, steps, ahead), **options)
        self._accounted, self._records = steps, sampler.population

    def __iter__(self) -> Iterator[Any]:
        if len(self.dataset) != self._records:
            raise InputError(
                f"the data set has {len(self.dataset)} records now, and {self._records} when it was made private: "
                "neighbours have one size; call make_private again with a new engine"
            )
        before = self._accounted.taken
        for handed, batch in enumerate(super().__iter__(), start=1):
            yield batch
            stepped = self._accounted.taken - before
            if stepped != handed:
                raise _differ(handed, stepped)


class Passes(Protocol):
    """What counts passes over a loader."""

    def start_pass(self) -> None:
        """Count one more pass."""


class CountedSampler:
    """The sampler of a shuffled loader, counting every pass that is started, broken off or not."""

    def __init__(self, sampler: Any, passes: Passes) -> None:
        self.sampler, self._passes = sampler, passes

    def __iter__(self) -> Iterator[int]:
        self._passes.start_pass()
        return iter(self.sampler)

    def __len__(self) -> int:
        return len(self.sampler)


def count_passes(loader: DataLoader[Any], passes: Passes) -> None:
    """Count the passes over a loader that visits every record at most once in each; InputError if it may do otherwise."""
    batches = loader.batch_sampler
    inner = getattr(batches, "sampler", None)
    if isinstance(inner, CountedSampler):
        raise InputError("this loader is counted already; make a new one for every engine")
    if type(batches) is not BatchSampler or type(inner) not in (RandomSampler, SequentialSampler):
        raise InputError(
            f"{type(batches).__name__} over {type(inner).__name__} may draw a record twice in one pass (DistributedSampler "
            "pads, WeightedRandomSampler repeats); the shuffled accountant takes shuffle=True or shuffle=False on one process, "
            "or use cumulant.integrations.opacus.make_private with sample=…"
        )
    if isinstance(inner, RandomSampler) and (inner.replacement or inner.num_samples > len(loader.dataset)):
        raise InputError(
            "RandomSampler with replacement or num_samples above the number of records draws records twice"
        )
    batches.sampler = CountedSampler(inner, passes)
