"""A sampler that cuts a fresh uniform permutation into batches in every pass: what shuffled batches are accounted as."""

from __future__ import annotations

from typing import Any

import numpy as np

from cumulant.errors import InputError
from cumulant.mechanisms.shuffled_batches import ONCE, ShuffledBatches
from cumulant.training.balls_in_bins import PassSampler
from cumulant.training.sampler import checked_whole


class ShuffledSampler(PassSampler):
    """Passes over all records in batches of a fixed size, in a fresh secret order: the law of `ShuffledBatches`.

    Every pass draws a uniform permutation and cuts it into batches of `batch` records. A last batch that is not full is kept,
    or left out with `drop_last=True`. Add noise to sums and divide by the constant `batch`, also in a short last batch; let no
    step see a record's number, and keep no state but what was released. A pass is one release, and a started pass counts as a
    whole one. One permutation for all passes is another scheme, so `redraw=False` is refused.

    >>> sampler = ShuffledSampler(population=1000, batch=64, key=bytes(32))
    >>> sampler.law
    ShuffledBatches(batch=64, records=1000)
    >>> [len(batch) for batch in sampler][-2:]
    [64, 40]
    >>> import cumulant as cm
    >>> sampler.accounted_run(cm.Gaussian.from_clipping(norm=1, noise=4, relation="replace-one"), steps=20)
    Gaussian(sigma=4, sensitivity=2, geometry="ball") @ ShuffledBatches(batch=64, records=1000) * 2
    """

    def __init__(
        self,
        population: int,
        batch: int,
        key: bytes | None = None,
        *,
        drop_last: bool = False,
        rank: int = 0,
        world: int = 1,
        redraw: bool = True,
    ) -> None:
        if redraw is not True:
            raise InputError(f"redraw={redraw!r}: {ONCE}")
        records, self._size, self._drop = (
            checked_whole("population", population),
            checked_whole("batch", batch),
            bool(drop_last),
        )
        if self._size > records:
            raise InputError(f"batch={batch} must be at most population={population}")
        super().__init__(records, records // self._size if drop_last else -(-records // self._size), key, rank, world)

    @property
    def law(self) -> ShuffledBatches:
        return ShuffledBatches(batch=self._size, records=self._population, drop_last=self._drop)

    @property
    def inclusion(self) -> float:
        return self._size / self._population

    def _usual_size(self) -> int:
        return self._size

    def _sizes(self) -> dict[str, Any]:
        return {"batch": self._size, "drop": self._drop}

    def __repr__(self) -> str:
        return f"ShuffledSampler(population={self._population}, batch={self._size}, drop_last={self._drop})"

    def _allocate(self, number: int) -> list[list[int]]:
        """Order the records by random words; words that are equal are drawn anew, so that every order is as likely."""
        attempt = 0
        while True:
            words = np.frombuffer(self._stream(number, f"order {attempt}", 8 * self._population), dtype="<u8")
            order = np.argsort(words, kind="stable")
            if np.all(np.diff(words[order])):
                break
            attempt += 1
        cut = [order[i : i + self._size].tolist() for i in range(0, self._population, self._size)]
        return cut[: self._steps]
