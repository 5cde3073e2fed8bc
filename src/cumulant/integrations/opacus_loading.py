"""Loaders that hand out numbered draws, of which every accounted step uses up exactly one."""

from __future__ import annotations

import hashlib
import itertools
import operator
import sys
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import FrameType
from typing import Any

import numpy as np
import torch
from opacus.utils.batch_memory_manager import BatchSplittingSampler
from torch.utils.data import BatchSampler, ConcatDataset, DataLoader, RandomSampler, SequentialSampler, Subset

from cumulant.errors import CumulantError, InputError
from cumulant.lock import Lock
from cumulant.training.sampler import Indices, Sampler

STATE_BYTES = 16
"""Bytes of the hash of a state of a generator: two of 2^40 steps are equal by chance once in 2^49 runs."""
_PASSES = itertools.count(1)
"""Numbers of passes, unique in this process: two loaders of one engine never share one."""
_LOADERS = itertools.count(1)
"""Numbers of loaders, unique in this process."""
_UNUSED: dict[int, int] = {}
"""Loaders that handed out a draw of which no step has used any, by number, with their number of records."""


def generator_state(generator: Any) -> bytes:
    """Return a hash of the state of a generator of torch."""
    return hashlib.blake2b(generator.get_state().numpy().tobytes(), digest_size=STATE_BYTES).digest()


class DrawsAndSteps(CumulantError):
    """Raised when the drawn batches and the accounted steps differ.

    Then the law of the sampler is not what ran.
    """


@dataclass(frozen=True, slots=True)
class Draw:
    """One drawn batch: its number, its pass, and its records on this process."""

    number: int
    pass_number: int
    records: tuple[int, ...]
    mark: str = ""
    """The mark of the key that drew it, where the sampler is one of ours."""

    def __str__(self) -> str:
        return f"batch {self.number + 1} ({len(self.records)} records)"


@dataclass(slots=True)
class Pass:
    """One pass over a loader: its number, its pending draws, and all records so far.

    Pending draws were made and not yet handed out.
    """

    number: int
    queue: deque[Draw] = field(default_factory=deque)
    records: set[int] = field(default_factory=set)


class Draws:
    """The draws of one loader: which the loop got, and which of them a step has used.

    At most one draw is open: handed out and not used. The next one is handed out when a step has used it. A pass that is
    broken off before the step leaves its draw open, and the next pass begins with it: so step k always uses draw k, and no
    draw can be rejected for what is in it.
    """

    def __init__(self, ahead: int, sampler: Sampler | None = None, records: int = 0) -> None:
        self._sampler = sampler
        self._number, self._records = next(_LOADERS), records
        self._rejected = {number for number, size in _UNUSED.items() if size == records}
        self.ahead = ahead
        """The number of batches that workers may have drawn before they are handed out."""
        self.handed = 0
        """The number of draws that were handed out to the loop."""
        self.used = 0
        """The number of draws that a step has used."""
        self.pending: Callable[[], bool] | None = None
        """Tells whether gradients were computed that no step has used; it chooses the words of a refusal."""
        self.opened: Callable[[], None] | None = None
        """Called when a draw is handed out, before its batch is seen."""
        self._open: Draw | None = None
        self._loose = False  # the iterator that handed out the open draw is gone, so a new pass may begin with it
        self._again = False
        self._last: Draw | None = None
        self._split: Pass | None = None
        self._lock = Lock()

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "pending": None, "opened": None}

    @property
    def unused(self) -> int:
        """Return the number of draws that the loop got and no step has used: 0 or 1."""
        return int(self._open is not None)

    @property
    def chosen(self) -> bool:
        """Check that another loader of as many records handed out draws before, and no step used them."""
        return not self._rejected.isdisjoint(_UNUSED)

    def fingerprint(self) -> str:
        """Return a hash that is equal on all processes which draw alike; empty where the sampler is not one of ours."""
        return "" if self._sampler is None else self._sampler.fingerprint()

    # ---- handing out

    def begin_pass(self, splitter: Any) -> tuple[Pass, Draw | None]:
        """Start a pass and return it with the draw that the pass before left open.

        `splitter` is that of a memory manager.
        """
        with self._lock:
            begun = Pass(next(_PASSES))
            if self._split is not None and self._split.queue:
                raise DrawsAndSteps(
                    f"a pass over the loader of BatchMemoryManager was broken off: {self._split.queue[0]} has no step. Its "
                    "physical batches cannot be told apart from those of the next pass. Let every such pass end, or break "
                    "after a whole batch and with num_workers=0"
                )
            left = self._open if self._loose else None
            if left is not None and self._again:
                raise DrawsAndSteps(
                    f"{left} was handed out in two passes, and no step used it. Rejecting a batch changes the law of the "
                    "sample. Call optimizer.step() for every batch, also for small or empty ones"
                )
            if left is not None:
                self._open, self._again = None, True
            self._split = None if splitter is None else begun
            return begun, left

    def check_ahead(self, begun: Pass) -> None:
        """Refuse to draw for a memory manager if an earlier draw was not used.

        Its loader does not ask `check_used`.
        """
        with self._lock:
            if len(begun.queue) > self.ahead:
                raise self._unused(begun.queue[0])
            if self.opened is not None and not self.ahead:
                self.opened()

    def check_used(self) -> None:
        """Refuse to hand out a draw while another one is open."""
        with self._lock:
            if self._open is not None and not self._loose:
                raise self._unused(self._open)

    def loosen(self, draw: Draw | None) -> None:
        """Note that the iterator that handed out a draw is gone."""
        with self._lock:
            self._loose = self._loose or (draw is not None and draw is self._open)

    def hand_out(self, begun: Pass) -> Draw:
        """Open the next draw of a pass."""
        with self._lock:
            if self._open is not None:
                raise self._unused(self._open)
            if (
                self.opened is not None and begun is not self._split
            ):  # physical batches were opened when they were drawn
                self.opened()
            self._open, self._loose = begun.queue.popleft(), False
            self.handed += 1
            if not self.used:
                _UNUSED[self._number] = self._records
            if self._sampler is not None:  # its state counts what was handed out, not what workers drew
                self._sampler.count_draw(self._open.number)
            return self._open

    def _unused(self, draw: Draw) -> DrawsAndSteps:
        if self.pending is not None and self.pending():
            return DrawsAndSteps(
                f"the next batch was asked for before a step used the gradients of {draw}. Gradients that are accumulated "
                "over batches have no proof. Call optimizer.step() after every batch, or use BatchMemoryManager"
            )
        return DrawsAndSteps(
            f"the next batch was asked for, but no accounted step used {draw}. A batch that is skipped changes the law of the "
            "sample. Call optimizer.step() for every batch, also for small or empty ones, and evaluate on another loader"
        )

    # ---- using up

    def match(self, rows: int) -> Draw:
        """Return the open draw, for a step that clipped so many gradients.

        DrawsAndSteps if the step used anything else.
        """
        with self._lock:
            if self._open is None and self._split is not None and self._split.queue:
                self.hand_out(self._split)
            if self._open is None:
                raise self._none(rows)
            if rows != len(self._open.records):
                raise DrawsAndSteps(
                    f"this step clipped {rows} gradients, but {self._open} is what was drawn for it. Every record must have "
                    "one gradient. Use the whole batch and nothing else, and keep one row per record"
                )
            return self._open

    def use(self, draw: Draw) -> None:
        """Close a draw: a step was accounted for it."""
        with self._lock:
            self._open, self._last, self._again = None, draw, False
            self.used += 1
            _UNUSED.pop(self._number, None)

    def _none(self, rows: int) -> DrawsAndSteps:
        if self._last is None:
            return DrawsAndSteps(
                f"this step used {rows} records that the accounted loader has not handed out. Iterate over the loader that "
                "make_private returned, not over another one or the data set"
            )
        if rows == len(self._last.records):
            return DrawsAndSteps(
                f"{self._last} was used by a step already. A second step on one batch needs a second draw. Call "
                "optimizer.step() once for every batch of the loader that make_private returned"
            )
        return DrawsAndSteps(
            f"this step used {rows} records, and the accounted loader has handed out none since {self._last}. Iterate over "
            "the loader that make_private returned, not over another one or the data set"
        )


class AccountedSampler:
    """The batch sampler of an accounted loader: it numbers the draws of a sampler.

    Only its own loader and BatchMemoryManager may iterate it. A framework that rebuilds the loader would draw ahead, split
    draws among processes or repeat them, so it is refused.
    """

    def __init__(self, sampler: Any, draws: Draws, once: bool, fresh: bool) -> None:
        self._sampler, self._once, self._fresh = sampler, once, fresh
        self._states: set[bytes] = set()
        self._rate = getattr(sampler, "sample_rate", None)
        self.draws = draws
        self.current: Pass | None = None
        self._permitted = False
        self._drawn = 0

    @property
    def sampler(self) -> Any:
        """Return the sampler whose draws are numbered."""
        return self._sampler

    @contextmanager
    def permit(self) -> Iterator[None]:
        """Let the loader iterate."""
        self._permitted = True
        try:
            yield
        finally:
            self._permitted = False

    def __iter__(self) -> Iterator[list[int]]:
        splitter = None
        if not self._permitted:
            caller = sys._getframe(1)
            splitter = caller.f_locals.get("self")
            if not isinstance(splitter, BatchSplittingSampler):
                raise DrawsAndSteps(
                    f"{_outsider(caller)} iterates a copy of the accounted loader, so its draws cannot be compared with steps. "
                    "Do not let it prepare or rebuild this loader. Iterate over the loader that make_private returned"
                )
        return self._pass(splitter)

    def _pass(self, splitter: Any) -> Iterator[list[int]]:
        begun, left = self.draws.begin_pass(splitter)
        self.current = begun
        if splitter is not None and splitter.optimizer._step_skip_queue:
            raise DrawsAndSteps(
                "BatchMemoryManager has told the optimizer of physical batches that never came, because a pass was broken "
                "off. Let every such pass end, or break after a whole batch and with num_workers=0"
            )
        for draw in itertools.islice(self._numbered(begun, left), len(self)):
            if splitter is not None:
                self.draws.check_ahead(begun)
            begun.queue.append(draw)
            yield list(draw.records)

    def _numbered(self, begun: Pass, left: Draw | None) -> Iterator[Draw]:
        if left is not None:
            yield left
        if isinstance(self.sampler, Sampler):
            for number in itertools.count(self.sampler.step):
                yield Draw(number, begun.number, tuple(self.sampler.draw(number)), self.sampler.mark())
        drawn = iter(self.sampler)
        while True:
            state = generator_state(getattr(self.sampler, "generator", None) or torch.default_generator)
            self.check_rate()
            records = next(drawn, None)
            if records is None:
                return
            if self._fresh and state in self._states:
                raise DrawsAndSteps(
                    "the state of the generator of samples was set back, so that an earlier sample would come again. Seed "
                    "generators once, before the first step"
                )
            self._states.add(state)
            if self._once:
                if len(set(records)) < len(records) or not begun.records.isdisjoint(records):
                    raise DrawsAndSteps(
                        "the loader draws a record for the second time in one pass, but a pass is accounted as visiting each "
                        "record once. Use shuffle=True or shuffle=False without a sampler of your own"
                    )
                begun.records.update(records)
            number, self._drawn = self._drawn, self._drawn + 1
            yield Draw(number, begun.number, tuple(records))

    def check_rate(self) -> None:
        """Refuse a sampler whose rate was changed."""
        rate = getattr(self.sampler, "sample_rate", None)
        if rate != self._rate:
            raise InputError(f"the rate of the sampler was {self._rate} and is {rate} now; make a new loader")

    def __len__(self) -> int:
        return len(self.sampler)


class AccountedLoader(DataLoader[Any]):
    """A DataLoader that hands out the next batch after one step has used the last one."""

    _accounted_records: int

    def __iter__(self) -> Iterator[Any]:
        if len(self.dataset) != self._accounted_records:
            raise InputError(
                f"the data set has {len(self.dataset)} records now, and {self._accounted_records} when it was made private: "
                "neighbours have one size; call make_private again with a new engine"
            )
        sampler: Any = self.batch_sampler
        before = sampler.current
        with sampler.permit():
            iterator = super().__iter__()
        begun = sampler.current if sampler.current is not before else None
        return self._handed_out(sampler, iterator, begun)

    def _handed_out(self, sampler: AccountedSampler, iterator: Iterator[Any], begun: Pass | None) -> Iterator[Any]:
        draw = None
        try:
            while True:
                sampler.draws.check_used()
                try:
                    batch = next(iterator)
                except StopIteration:
                    return
                begun = begun or sampler.current  # without workers a pass begins with its first batch
                if begun is not None:
                    draw = sampler.draws.hand_out(begun)
                yield batch
        finally:
            sampler.draws.loosen(draw)


def account_loader(loader: DataLoader[Any], once: bool = False, fresh: bool = True) -> Draws:
    """Make a loader an accounted one, in place, and return its draws.

    `once` if no record may come twice in a pass, `fresh` if every draw must be a new one.
    """
    sampler: Any = loader.batch_sampler
    if isinstance(sampler, AccountedSampler):
        raise InputError("this loader is accounted already; make a new one for every engine")
    if not getattr(loader, "in_order", True):
        raise InputError("in_order=False hands out batches in another order than they were drawn; leave it out")
    check_distinct(loader.dataset)
    ours = sampler if isinstance(sampler, Sampler) else None
    draws = Draws(loader.num_workers * (loader.prefetch_factor or 1), ours, len(loader.dataset))
    kind = type(loader)
    loader.__class__ = type(f"Accounted{kind.__name__}", (AccountedLoader, kind), {})
    # torch forbids to assign these to a loader that exists; they are read anew at every pass
    vars(loader)["batch_sampler"] = AccountedSampler(sampler, draws, once, fresh)
    vars(loader)["_accounted_records"] = len(loader.dataset)
    return draws


def check_distinct(dataset: Any) -> None:
    """Refuse a data set of torch that has one record at several numbers.

    Each number would count as a record.
    """
    if not isinstance(dataset, Subset | ConcatDataset):
        return
    kind = type(dataset).__name__
    bases: dict[int, Any] = {}
    try:
        sources, places = _origins(dataset, bases)
    except TypeError as error:  # names instead of numbers, or no length
        raise InputError(
            f"{kind} cannot be searched for records that come twice ({error}). Give integers as indices, and data sets that "
            "have a length"
        ) from error
    order = np.lexsort((places, sources))
    same = (np.diff(sources[order]) == 0) & (np.diff(places[order]) == 0)
    if same.any():
        first = order[int(np.argmax(same))]
        whose = type(list(bases.values())[sources[first]]).__name__
        raise InputError(
            f"{kind} has record {places[first]} of {whose} more than once, and every copy would count as a record of its own. "
            "Give each record once, or clip the sum of all copies as one record"
        )


def _origins(dataset: Any, bases: dict[int, Any]) -> tuple[Indices, Indices]:
    """Return for every record of a data set the number of its base, and its place there; bases are added by identity."""
    if isinstance(dataset, ConcatDataset):
        parts = [_origins(part, bases) for part in dataset.datasets]
        return np.concatenate([one for one, _ in parts]), np.concatenate([other for _, other in parts])
    if isinstance(dataset, Subset):
        sources, places = _origins(dataset.dataset, bases)
        numbers: Any = dataset.indices
        numbers = numbers.tolist() if hasattr(numbers, "tolist") else numbers
        chosen = np.fromiter(map(operator.index, numbers), dtype=np.int64)
        if chosen.size and not -len(places) <= chosen.min() <= chosen.max() < len(places):
            raise InputError(f"Subset has numbers beyond the {len(places)} records of its data set; leave them out")
        return sources[chosen], places[chosen]  # a number below zero counts from the end, as in the data set
    bases.setdefault(id(dataset), dataset)
    count = len(dataset)
    return np.full(count, list(bases).index(id(dataset))), np.arange(count)


def check_shuffled(loader: DataLoader[Any]) -> None:
    """Refuse a loader that may visit a record more than once in a pass."""
    batches: Any = loader.batch_sampler
    inner = getattr(batches, "sampler", None)
    if isinstance(batches, AccountedSampler):
        raise InputError("this loader is accounted already; make a new one for every engine")
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


def _outsider(frame: FrameType | None) -> str:
    """Name the package that iterates.

    It is the first one in the stack that is neither torch nor this library.
    """
    while frame is not None:
        package = str(frame.f_globals.get("__name__", "")).partition(".")[0]
        if package not in ("torch", "cumulant", "contextlib", ""):
            return "this code" if package == "__main__" else f"{package}"
        frame = frame.f_back
    return "another loader"
