"""A sampler that allocates every record to one step of each pass.

Balls in bins, drawn afresh in every pass.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from cumulant.errors import InputError
from cumulant.sampling.random_allocation import RandomAllocation
from cumulant.training.sampler import Sampler


class PassSampler(Sampler):
    """Passes of `steps` steps that are drawn as a whole, afresh in every pass.

    A pass is one release: `law` is about all of its steps, and a pass that was started counts as a whole one. The rest of a
    pass can be drawn only by the key that began it. So a sampler that goes on with another key (a state without the key, a
    copy, a forked process) leaves the rest of the pass out and begins the next one.
    """

    def __init__(self, population: int, steps: int, key: bytes | None, rank: int, world: int) -> None:
        self._first = 0
        self._allocation: tuple[bytes, int, list[list[int]]] | None = None
        super().__init__(population, steps, key, rank, world)

    @abstractmethod
    def _allocate(self, number: int) -> list[list[int]]:
        """Return the records of every step of the pass of this number."""

    @property
    def _steps_of_release(self) -> int:
        return self._steps

    # ---- drawing

    def _draw(self, step: int) -> list[int]:
        key = self._held()
        if step < self._first:
            raise InputError(
                f"step={step} is in a pass that another key began, and only that key knows where its records are; go on with "
                f"step {self._first}, or load a state with its key"
            )
        number, place = divmod(step, self._steps)
        if self._allocation is None or self._allocation[:2] != (key, number):
            self._allocation = key, number, self._allocate(number)
        return list(self._allocation[2][place])

    def __iter__(self) -> Iterator[list[int]]:
        """Yield `steps` draws from the present step on.

        After another key began, they start at the next pass.
        """
        with self._lock:
            self._held()
            self._step = max(self._step, self._first)
        yield from super().__iter__()

    # ---- keys

    def _hold(self, key: bytes | None) -> None:
        super()._hold(key)
        self._allocation = None
        self._first = self._key_start = self._whole_releases(self._step)
        self._earlier = self._whole_releases(self._count())  # a started pass counts as a whole one
        self._restart_count(self._first)

    def __getstate__(self) -> dict[str, Any]:
        """Return the state for pickles and copies.

        It has neither the key nor the draws of the present pass.
        """
        return {**super().__getstate__(), "_allocation": None}

    def state_dict(self, secret: bool = False) -> dict[str, Any]:
        """Return the position and a mark of the key; the key itself only if asked for.

        The mark recognises the key of the present pass.

        >>> sorted(BallsInBinsSampler(population=100, steps=5).state_dict())
        ['mark', 'population', 'sampler', 'step', 'steps']
        """
        with self._lock:
            self._held()
            self._step = max(self._step, self._first)  # the rest of a pass that another key began is left out
            return {**super().state_dict(secret), "mark": self.mark()}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on from a state: with its key bit for bit, else at the start of the next pass.

        >>> sampler = BallsInBinsSampler(population=100, steps=5)
        >>> first = next(iter(sampler))
        >>> sampler.load_state_dict(sampler.state_dict())
        >>> next(iter(sampler)) == sampler.draw(5)
        True
        """
        with self._lock:
            super().load_state_dict(state)
            if state.get("mark") == self.mark():
                self._first = 0
            else:
                self._step = self._first = self._key_start = self._whole_releases(self._step)
                self._earlier = self._whole_releases(self._earlier)
                self._restart_count(self._first)


class BallsInBinsSampler(PassSampler):
    """Passes of `steps` steps in which every record is in one step, chosen uniformly: the law of `RandomAllocation`.

    Every record gets a uniform number of a step, independently of the other records and afresh in every pass. Batches have
    random sizes and may be empty; an empty step runs too, on noise alone. Divide sums by a constant that was chosen without
    looking at the number of records, which add/remove neighbours keep secret.

    A pass is one release: `law` is about all of its steps, and a pass that was started counts as a whole one. The rest of a
    pass can be drawn only by the key that began it. So a sampler that goes on with another key (a state without the key, a
    copy, a forked process) leaves the rest of the pass out and begins the next one.

    One draw that all passes use again is `BallsInBins`, another scheme with a larger epsilon, so `redraw=False` is refused.

    >>> sampler = BallsInBinsSampler(population=1000, steps=10, key=bytes(32))
    >>> sampler.law
    RandomAllocation(steps=10)
    >>> sorted(record for batch in sampler for record in batch) == list(range(1000))
    True
    >>> import cumulant as cm
    >>> sampler.accounted_run(cm.Gaussian.from_clipping(norm=1, noise=2, relation="add-remove"), steps=25)
    Gaussian(sigma=2, relation="add-remove") @ RandomAllocation(steps=10) * 3
    """

    def __init__(
        self,
        population: int,
        steps: int,
        key: bytes | None = None,
        *,
        rank: int = 0,
        world: int = 1,
        redraw: bool = True,
    ) -> None:
        if redraw is not True:
            raise InputError(
                f"redraw={redraw!r}: one draw for all passes is another scheme, whose epsilon is larger. Account for it by "
                "MatrixMechanism(...) @ BallsInBins(bins=...), or draw afresh in every pass"
            )
        super().__init__(population, steps, key, rank, world)

    @property
    def law(self) -> RandomAllocation:
        return RandomAllocation(steps=self._steps)

    @property
    def inclusion(self) -> float:
        return 1 / self._steps

    def _sizes(self) -> dict[str, Any]:
        return {"steps": self._steps}

    def __repr__(self) -> str:
        return f"BallsInBinsSampler(population={self._population}, steps={self._steps})"

    def _allocate(self, number: int) -> list[list[int]]:
        bins = self._uniform(number, "bins", self._steps, self._population)
        order = np.argsort(bins, kind="stable")
        ends = np.searchsorted(bins[order], np.arange(1, self._steps))
        return [part.tolist() for part in np.split(order, ends)]
