"""A sampler that takes Poisson samples from one part of the data after the other."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from cumulant.domains import RATE, Exact, Number
from cumulant.errors import InputError
from cumulant.sampling.poisson import Poisson
from cumulant.training.sampler import Sampler, checked_key, checked_whole, uniform_numbers


class CyclicPoissonSampler(Sampler):
    """Poisson samples of `rate` from one of `cycle` parts of the data, which take turns.

    For noise that is correlated.

    Every record is in one part, chosen uniformly, independently of the others and once for the whole run; step t draws from
    part t mod `cycle`. So a record can be drawn once in `cycle` steps, and two of its steps are at least `cycle` apart. Given
    the parts, which need not be secret, a run is a composition of Poisson samples of this rate, one for each started cycle:
    that is its `law` where the noise of different steps is independent. With correlated noise of at most `cycle` bands a run is
    `MatrixMechanism(...) @ CyclicPoisson(cycle=cycle, rate=rate)`. A batch has rate * population / cycle records on
    average. Divide sums by a constant that was chosen without looking at the number of records.

    `partition` are the bytes that the parts follow from; they are part of every state, so that a resumed run keeps its parts.

    >>> sampler = CyclicPoissonSampler(population=1000, rate="1/2", cycle=10, steps=20, key=bytes(32))
    >>> sampler.law
    Poisson(rate="1/2")
    >>> set(sampler.draw(0)) & set(sampler.draw(1))
    set()
    >>> import cumulant as cm
    >>> sampler.accounted_run(cm.Gaussian.from_clipping(norm=1, noise=2, relation="add-remove"), steps=25)
    Gaussian(sigma=2, relation="add-remove") @ Poisson(rate="1/2") * 3
    """

    def __init__(
        self,
        population: int,
        rate: Number,
        cycle: int,
        steps: int | None = None,
        key: bytes | None = None,
        *,
        partition: bytes | None = None,
        rank: int = 0,
        world: int = 1,
    ) -> None:
        self._rate = RATE.check("rate", rate)
        self._cycle = checked_whole("cycle", cycle)
        super().__init__(population, self._cycle if steps is None else steps, key, rank, world)
        self._partition = self._stream(0, "partition", 16) if partition is None else checked_key(partition)
        self._parts: list[np.ndarray[Any, np.dtype[np.int64]]] | None = None

    @property
    def rate(self) -> Exact:
        """Return the probability of a record to be drawn when it is the turn of its part."""
        return self._rate

    @property
    def cycle(self) -> int:
        """Return the number of parts, and of steps from one turn of a part to the next."""
        return self._cycle

    @property
    def law(self) -> Poisson:
        return Poisson(rate=self._rate)

    @property
    def _steps_of_release(self) -> int:
        return self._cycle

    @property
    def inclusion(self) -> float:
        return float(self._rate) / self._cycle

    def _sizes(self) -> dict[str, Any]:
        return {"rate": f"{self._rate.numerator}/{self._rate.denominator}", "cycle": self._cycle}

    def fingerprint(self) -> str:
        """Return a hash of key, parts, sizes and step: equal on all ranks of one run."""
        return f"{super().fingerprint()}{self._partition.hex()}"

    def mark(self) -> str:
        """Return a hash by which the key with these parts is recognised.

        It tells nothing of the key.
        """
        return f"{super().mark()}{self._partition.hex()}"

    def _draw(self, step: int) -> list[int]:
        if self._parts is None:
            part = uniform_numbers(self._partition, f"{self._population} parts", self._cycle, self._population)
            order = np.argsort(part, kind="stable")
            self._parts = np.split(order, np.searchsorted(part[order], np.arange(1, self._cycle)))
        return self._poisson(step, self._parts[step % self._cycle], self._rate)

    # ---- resuming

    def state_dict(self, secret: bool = False) -> dict[str, Any]:
        """Return the position and the seed of the parts; the key only if it is asked for.

        >>> sorted(CyclicPoissonSampler(population=100, rate="1/2", cycle=4).state_dict())
        ['cycle', 'partition', 'population', 'rate', 'sampler', 'step']
        """
        with self._lock:
            return {**super().state_dict(secret), "partition": self._partition.hex()}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on from a state with its parts: with its key bit for bit, without it by a new key."""
        try:
            partition = checked_key(bytes.fromhex(state["partition"]))
        except (KeyError, TypeError, ValueError) as error:
            raise InputError(
                f"this is not the state of a sampler ({error}); give what state_dict() returned"
            ) from error
        with self._lock:
            self._earlier = self._whole_releases(self._count())  # parts may have their turn again
            self._restart_count(self._step)
            before, self._partition = self._partition, partition  # the mark of the key follows from both
            try:
                super().load_state_dict(state)
            except InputError:
                self._partition = before
                raise
            self._parts = None
