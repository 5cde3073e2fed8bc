"""Samplers whose law is known exactly: they draw what is accounted.

Step t is a function of a secret key and of t alone: SHAKE-256 of both gives a stream of words, and the stream gives the draw.
So a draw can be repeated, taken out of order, resumed and split among processes without shared state. The laws below are
exact if the words are uniform and independent, that is up to SHAKE-256 being a pseudorandom function of its key.
"""

from __future__ import annotations

import hashlib
import math
import operator
import os
import secrets
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np

from cumulant.domains import COUNT, RATE, Exact, Number
from cumulant.errors import InputError, shown
from cumulant.lock import Lock
from cumulant.mechanisms.mechanism import Expression
from cumulant.sampling.poisson import Poisson
from cumulant.sampling.scheme import Scheme
from cumulant.sampling.without_replacement import WithoutReplacement

KEY_BYTES = 32
SHORTEST_KEY = 16
MOST_RECORDS = 2**40
"""Indices are cut from words of 64 bits, and a draw must fit into memory."""

USUAL_DEVIATIONS = 5
"""Standard deviations above the mean to which batches are padded: a larger draw, one in 10^6, costs one compilation."""

Words = np.ndarray[Any, np.dtype[np.uint64]]
Indices = np.ndarray[Any, np.dtype[np.int64]]


class PaddedBatch(NamedTuple):
    """A draw in an array of fixed length: record numbers and a mask.

    The mask is False where the array was filled up.
    """

    indices: Indices
    mask: np.ndarray[Any, np.dtype[np.bool_]]


class Sampler(ABC):
    """Batches of record numbers, one per step, drawn afresh.

    The accounting can read the law of the draws from the sampler.

    It is a `batch_sampler` for `torch.utils.data.DataLoader` and a batch selection strategy for JAX Privacy. It is on
    purpose no subclass of torch's BatchSampler and has no `batch_size` and no `drop_last`: a framework that would rebuild
    it from such attributes, and change the law by that, fails instead.

    **The key is as secret as the data**: who has it knows every sample, and amplification is gone. `state_dict()` leaves it
    out; resuming from that draws a new key, which is as valid because steps are independent. `state_dict(secret=True)` is
    for repeating a run bit for bit and must not go into a published checkpoint. Never run one (key, step) twice with new
    noise, and derive no noise from the key. Pickles and copies leave the key out as well, and a forked process does not use
    it: each of them draws a new one, so that no two runs share their samples.

    With several processes all of them hold one key and each takes its slice of the one shared draw.
    """

    def __init__(self, population: int, steps: int, key: bytes | None, rank: int, world: int) -> None:
        self._population = checked_whole("population", population)
        self._steps = checked_whole("steps", steps)
        self._world = checked_whole("world", world)
        self._rank = checked_whole("rank", rank, least=0)
        if self._population > MOST_RECORDS:
            raise InputError(f"population={self._population} must be at most 2^40 records")
        if self._rank >= self._world:
            raise InputError(f"rank={self._rank} must be below world={self._world}; ranks count from 0")
        if self._world > 1 and key is None:
            raise InputError(
                f"world={self._world} without a key: every process would draw a key and a sample of its own; make one key with "
                "secrets.token_bytes(32), send it to all processes and give it as key=…"
            )
        self._lock = Lock()
        self._step = self._earlier = 0  # draws that were counted before the present state was loaded
        self._key_start = 0  # the first draw of the present key that is counted with the draws before the step
        self._repeated = False
        self._drawn_until: dict[str, int] = {}  # of every key, by its mark, the number after its last draw
        self._repeated_below = 0  # draws of the present key below this number are used again: its state was set back
        self._restart_count(0)
        self._hold(secrets.token_bytes(KEY_BYTES) if key is None else checked_key(key))

    # ---- the key

    def _hold(self, key: bytes | None) -> None:
        """Keep a key for this process alone."""
        self._key, self._process = key, os.getpid()

    def _held(self) -> bytes:
        """Return the key; a new one in a forked process.

        InputError if other processes must share it.
        """
        if self._key is None or self._process != os.getpid():
            if self._world > 1:
                raise InputError(
                    "this sampler was copied from another process, and copies leave the key out; make it anew in every "
                    "process, with the same key=…"
                )
            self._renew(secrets.token_bytes(KEY_BYTES))
        return self._key or b""

    def _renew(self, key: bytes) -> None:
        """Go on with another key: what it draws is new, whatever the number of the step."""
        self._earlier = self._counted_for_another_key(self._count(), self._step)
        self._restart_count(self._step)
        self._key_start = self._step
        self._hold(key)
        self._repeated_below = self._drawn_until.get(self.mark(), 0)  # a seed may give a key of earlier draws

    def __getstate__(self) -> dict[str, Any]:
        """Return the state for pickles and copies: everything but the key."""
        with self._lock:
            return {name: value for name, value in vars(self).items() if name != "_key"}

    def __setstate__(self, state: Mapping[str, Any]) -> None:
        vars(self).update(state, _drawn_until=dict(state["_drawn_until"]))
        self._hold(None)  # drawn at the first use, by the process that uses it

    # ---- the law

    @property
    @abstractmethod
    def law(self) -> Scheme:
        """Return the sampling scheme that the draws follow, for the accounting."""

    def releases(self, steps: int) -> int:
        """Return how often the law applies in the first so many steps.

        It is once per step, unless the law is about whole passes.
        """
        return -(-checked_whole("steps", steps, least=0) // self._steps_of_release)

    @property
    def _steps_of_release(self) -> int:
        """Return the number of consecutive steps that the law is about: 1, or a pass, or a cycle."""
        return 1

    def _whole_releases(self, draws: int) -> int:
        """Return a number of draws, rounded up to whole releases."""
        return self.releases(draws) * self._steps_of_release

    def _counted_for_another_key(self, draws: int, step: int) -> int:
        """Return what draws of earlier keys count, if another key goes on from this step.

        Draws of all steps before this one go on where they ended. After any others a record may have its turn again, so
        that they count as whole releases.
        """
        return draws if draws == step else self._whole_releases(draws)

    def accounted_run(self, mechanism: Expression, steps: int | None = None) -> Expression:
        """Return the accounted run if every step ran `mechanism` on its draw.

        By default `steps` are all that were handed out, also by earlier keys and before the state was set back. A draw that
        was asked for by its number counts with all draws before it. InputError if the state was set back with its key and a
        draw was handed out again: two steps on one sample are not two samples. Give `steps` if the same noise came again too.

        >>> import cumulant as cm
        >>> sampler = FixedSizeSampler(population=100, sample=5, steps=10)
        >>> sampler.accounted_run(cm.Gaussian.from_clipping(norm=1, noise=2, relation="replace-one"), steps=10)
        Gaussian(sigma=2, sensitivity=2, geometry="ball") @ WithoutReplacement(sample=5, population=100) * 10
        """
        if steps is None and self._repeated:
            raise InputError(
                "the sampler was set back with its key, so that two steps had the same sample, and nothing is proved for that. "
                "Set it back by a state without the key; or give steps=… if the run was repeated with the same noise"
            )
        counted = max(self._step, self._count()) if steps is None else steps
        if steps is None and not counted:
            raise InputError("no draw was handed out yet, so nothing ran; give steps=… for a plan")
        return mechanism @ self.law * self.releases(counted)

    def _count(self) -> int:
        """Return the number of draws so far, also by earlier keys and before the state was set back."""
        return self._earlier + max(self._handed, self._asked - self._base) + self._whole_releases(self._before)

    def _restart_count(self, step: int) -> None:
        """Count draws anew from this step on."""
        self._handed, self._asked, self._base = 0, step, step
        self._before = 0  # draws of a new key whose numbers are below that step

    def _note(self, number: int) -> None:
        """Count the draw of a step, and all draws of the present key before it."""
        self._asked = max(self._asked, number + 1)
        if number < self._key_start:
            self._before = max(self._before, number + 1)
        self._repeated = self._repeated or number < self._repeated_below
        mark = self.mark()
        self._drawn_until[mark] = max(number + 1, self._drawn_until.get(mark, 0))

    @property
    def population(self) -> int:
        """Return the number of records it draws from."""
        return self._population

    @property
    def steps(self) -> int:
        """Return the number of draws in one pass over it."""
        return self._steps

    @property
    def rank(self) -> int:
        """Return the number of the slice of each draw that this process takes."""
        return self._rank

    @property
    def world(self) -> int:
        """Return the number of processes among which each draw is split."""
        return self._world

    # ---- drawing

    @property
    def step(self) -> int:
        """Return the number of draws handed out so far: the next one is `draw(step)`."""
        return self._step

    def draw(self, step: int) -> list[int]:
        """Return this process's part of the draw of a step, in order.

        Asking changes nothing.

        >>> sampler = FixedSizeSampler(population=100, sample=3, steps=10, key=bytes(32))
        >>> sampler.draw(7) == sampler.draw(7), len(set(sampler.draw(7))), sampler.step
        (True, 3, 0)
        """
        number = checked_whole("step", step, least=0)
        with self._lock:  # another key in the middle of a draw would change its law
            found = self._draw(number)[self._rank :: self._world]
            self._note(number)
            return found

    @abstractmethod
    def _draw(self, step: int) -> list[int]:
        """Return the whole draw of a step."""

    def __iter__(self) -> Iterator[list[int]]:
        """Yield one pass: `steps` draws, from the present step on.

        A pass that is broken off goes on at the next one.
        """
        for _ in range(self._steps):
            with self._lock:  # no step is drawn twice, whoever iterates
                self._held()  # a new key counts from this step on, so it is drawn before the step is counted
                step, self._step = self._step, self._step + 1  # counted before it is seen, whatever becomes of it
                self._handed += 1
                batch = self.draw(step)
            yield batch

    def count_draw(self, step: int) -> None:
        """Count the draw of a step as handed out, for a loader whose workers draw ahead of the loop.

        >>> sampler = FixedSizeSampler(population=100, sample=5, steps=2)
        >>> sampler.count_draw(0)
        >>> sampler.step
        1
        """
        number = checked_whole("step", step, least=0)
        with self._lock:
            self._step = max(self._step, number + 1)
            self._note(number)

    def __len__(self) -> int:
        return self._steps

    def batch_iterator(self, num_examples: int, rng: Any = None) -> Iterator[Indices]:
        """Yield one pass as arrays, with the signature of JAX Privacy's batch strategies.

        `rng`, a numpy generator or a seed of one, replaces the secret key by one that is drawn from it. A seed that others
        know, or can try out, gives all samples away: leave it out unless a run must be repeated.

        >>> sampler = FixedSizeSampler(population=100, sample=5, steps=2)
        >>> [batch.shape for batch in sampler.batch_iterator(100)]
        [(5,), (5,)]
        """
        if num_examples != self._population:
            raise InputError(
                f"num_examples={shown(num_examples)} but this sampler draws from population={self._population}"
            )
        if rng is not None:
            try:
                key = np.random.default_rng(rng).bytes(KEY_BYTES)
            except (TypeError, ValueError) as error:
                raise InputError(f"rng={shown(rng)} must be a numpy generator or a seed of one: {error}") from error
            with self._lock:
                self._renew(key)
        return (np.array(batch, dtype=np.int64) for batch in self)

    def padded_batches(self, size: int | None = None) -> Iterator[PaddedBatch]:
        """Yield one pass as pairs of record numbers and mask, of a fixed shape.

        Compiled code then sees one shape only.

        The mask is True for what was drawn; what fills up the shape is record 0 with mask False, whose clipped gradient must
        be multiplied by 0. Nothing of a draw is left out: one that exceeds `size` is padded to a multiple of it. By default
        `size` is that of a fixed sample, else one that about one draw in a million exceeds.

        >>> sampler = FixedSizeSampler(population=100, sample=5, steps=1)
        >>> [(batch.indices.shape, batch.mask.tolist()) for batch in sampler.padded_batches(8)]
        [((8,), [True, True, True, True, True, False, False, False])]
        """
        shape = self._usual_size() if size is None else checked_whole("size", size)
        for batch in self:
            length = max(1, -(-len(batch) // shape)) * shape
            indices = np.zeros(length, dtype=np.int64)
            indices[: len(batch)] = batch
            yield PaddedBatch(indices, np.arange(length) < len(batch))

    @property
    @abstractmethod
    def inclusion(self) -> float:
        """Return the probability of a record to be in one draw."""

    def _usual_size(self) -> int:
        """Return a multiple of 8 that this process's part of a draw exceeds once in a million."""
        mean = self._population * self.inclusion
        most = mean + USUAL_DEVIATIONS * math.sqrt(mean * (1 - self.inclusion)) + USUAL_DEVIATIONS
        return -(-math.ceil(min(most, self._population) / self._world) // 8) * 8

    def fingerprint(self) -> str:
        """Return a hash of key, sizes and step: equal on all ranks of one run.

        It tells nothing of the key.

        >>> one, other = (
        ...     FixedSizeSampler(population=8, sample=4, key=bytes(32), rank=rank, world=2) for rank in (0, 1)
        ... )
        >>> one.fingerprint() == other.fingerprint()
        True
        """
        with self._lock:
            return self._stream(self._step, "fingerprint", 16).hex()

    def mark(self) -> str:
        """Return a hash by which the key is recognised, also in a later process.

        It tells nothing of the key.

        >>> FixedSizeSampler(population=8, sample=4).mark() == FixedSizeSampler(population=8, sample=4).mark()
        False
        """
        with self._lock:
            return self._stream(0, "mark", 16).hex()

    # ---- resuming

    def state_dict(self, secret: bool = False) -> dict[str, Any]:
        """Return the step and what the draws depend on; the key only if it is asked for.

        >>> FixedSizeSampler(population=100, sample=5, steps=2).state_dict()
        {'sampler': 'FixedSizeSampler', 'population': 100, 'sample': 5, 'step': 0}
        """
        with self._lock:
            key = self._held().hex() if secret else ""  # a new key may change the count
            step, counted, start = self._step, self._count(), self._key_start
            drawn = {mark: until for mark, until in self._drawn_until.items() if until}
        state = {"sampler": type(self).__name__, "population": self._population, **self._sizes(), "step": step}
        if counted > step:
            state["counted"] = counted
        if self._repeated:
            state["repeated"] = True
        if drawn:
            state["drawn"] = drawn
        if secret and start:
            state["start"] = start
        return {**state, "key": key} if secret else state

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on from a state: with its key bit for bit, without it by a new key.

        A key that several processes share must be in the state. If this sampler and the state each know draws that the other
        does not know, the draws of both count.

        >>> sampler = FixedSizeSampler(population=100, sample=5, steps=2)
        >>> before = [sampler.draw(step) for step in (3, 4)]
        >>> other = FixedSizeSampler(population=100, sample=5, steps=2)
        >>> other.load_state_dict({**sampler.state_dict(secret=True), "step": 3})
        >>> list(other) == before
        True
        """
        expected = {"sampler": type(self).__name__, "population": self._population, **self._sizes()}
        try:
            found = {name: state[name] for name in expected}
            step = checked_whole("step", state["step"], least=0)
            counted = checked_whole("counted", state.get("counted", step), least=0)
            start = checked_whole("start", state.get("start", 0), least=0)
            drawn = {str(mark): checked_whole("drawn", until) for mark, until in dict(state.get("drawn", {})).items()}
            key = state.get("key")
            secret = None if key is None else checked_key(bytes.fromhex(key))
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise InputError(
                f"this is not the state of a sampler ({error}); give what state_dict() returned"
            ) from error
        if found != expected:
            raise InputError(
                f"this is the state of {found}, but this sampler is {expected}; make it with the same sizes"
            )
        if secret is None and self._world > 1:
            raise InputError(
                "the state has no key, and each process would go on with another one; make a new key with "
                "secrets.token_bytes(32), send it to all processes, and put its text key.hex() into the state"
            )
        with self._lock:
            own = self._count()
            theirs = not _covers(self._drawn_until, drawn) or (counted and not drawn)
            if theirs and not _covers(
                drawn, self._drawn_until
            ):  # another run: what both know counts twice, never too little
                counted = self._whole_releases(counted) + self._whole_releases(own)
            self._hold(secrets.token_bytes(KEY_BYTES) if secret is None else secret)
            if secret is None:
                counted = self._counted_for_another_key(counted, step)
            self._step, self._earlier = step, max(counted, own)
            self._key_start = step if secret is None else start
            self._restart_count(step)
            self._repeated = self._repeated or bool(state.get("repeated"))
            for mark, until in drawn.items():
                self._drawn_until[mark] = max(until, self._drawn_until.get(mark, 0))
            self._repeated_below = 0
            if secret is not None:
                mark = self.mark()
                self._repeated_below = self._drawn_until.get(mark, 0)
                self._drawn_until[mark] = max(step, self._repeated_below)  # the steps before were drawn by this key

    @abstractmethod
    def _sizes(self) -> dict[str, Any]:
        """Return what a draw depends on besides the population."""

    # ---- words

    def _stream(self, step: int, label: str, size: int) -> bytes:
        """Return the first bytes of the stream of a step; longer streams continue shorter ones."""
        about = f"cumulant 1 {type(self).__name__} {self._population} {self._sizes()} {label} {step}".encode()
        key = self._held()
        return hashlib.shake_256(len(key).to_bytes(8, "big") + key + about).digest(size)

    def _uniform(self, step: int, label: str, bound: int, count: int) -> Indices:
        """Return independent uniform integers below a bound."""
        return uniform_numbers(self._held(), f"{type(self).__name__} {self._sizes()} {label} {step}", bound, count)

    def _poisson(self, step: int, records: Indices, rate: Exact) -> list[int]:
        """Draw each of these records with this exact probability, in ascending order."""
        open_records = records
        chosen: list[int] = []
        rest, level = rate.numerator, 0
        while open_records.size and rest:
            # rest / denominator is what is left of the rate below the bits that were equal to its own
            threshold, rest = divmod(rest << 32, rate.denominator)
            drawn = np.frombuffer(self._stream(step, f"bits {level}", 4 * open_records.size), dtype="<u4")
            chosen.extend(open_records[drawn < threshold].tolist())
            open_records = open_records[drawn == threshold]
            level += 1
        return sorted(chosen)

    def __repr__(self) -> str:
        sizes = ", ".join(f"{name}={value}" for name, value in self._sizes().items())
        return f"{type(self).__name__}(population={self._population}, {sizes}, steps={self._steps})"  # never the key


def _covers(known: Mapping[str, int], drawn: Mapping[str, int]) -> bool:
    """Check that known draws of every key reach as far as these draws do."""
    return all(known.get(mark, 0) >= until for mark, until in drawn.items())


class FixedSizeSampler(Sampler):
    """Uniform samples of a fixed size without replacement, in uniform order.

    This is the law of `WithoutReplacement`.

    Where the sample is at most half of the population, record numbers are drawn uniformly and independently and repeats are
    dropped as they come. A permutation of the numbers permutes such a stream into one that is as likely, so all *ordered*
    tuples of distinct numbers are equally likely. Otherwise every record gets a word of 64 bits, all of them anew if two
    are equal, and the sample is the records of the smallest words: all orders of distinct independent words are equally
    likely. Numbers are cut from words by rejection of the last, partial multiple, so no remainder is favoured.

    Divide sums by `sample`, which is fixed and public. With `world` processes, `draw` gives every world-th record of the
    one shared draw.

    >>> sampler = FixedSizeSampler(population=60_000, sample=256, steps=234)
    >>> sampler.law
    WithoutReplacement(sample=256, population=60000)
    >>> len(sampler), len(sampler.draw(0)) == len(set(sampler.draw(0))) == 256
    (234, True)
    """

    def __init__(
        self,
        population: int,
        sample: int,
        steps: int | None = None,
        key: bytes | None = None,
        *,
        rank: int = 0,
        world: int = 1,
    ) -> None:
        self._sample = checked_whole("sample", sample)
        records = checked_whole("population", population)
        if self._sample > records:
            raise InputError(f"sample={self._sample} must be at most population={records}")
        super().__init__(records, records // self._sample if steps is None else steps, key, rank, world)
        if self._sample % self._world:
            raise InputError(
                f"sample={self._sample} must be a multiple of world={self._world}: all slices have one size"
            )

    @property
    def sample(self) -> int:
        """Return the size of every sample, all processes together."""
        return self._sample

    @property
    def law(self) -> WithoutReplacement:
        return WithoutReplacement(sample=self._sample, population=self._population)

    @property
    def inclusion(self) -> float:
        return self._sample / self._population

    def _usual_size(self) -> int:
        return self._sample // self._world

    def _sizes(self) -> dict[str, Any]:
        return {"sample": self._sample}

    def _draw(self, step: int) -> list[int]:
        return self._without_repeats(step) if 2 * self._sample <= self._population else self._by_ranks(step)

    def _without_repeats(self, step: int) -> list[int]:
        least = 2**64 % self._population  # words below it are too many: the rest is a multiple of the population
        words = self._sample + self._sample * self._sample // self._population + 16
        while True:
            drawn = _words(self._stream(step, "words", 8 * words))
            numbers = dict.fromkeys((drawn[drawn >= least] % np.uint64(self._population)).tolist())
            if len(numbers) >= self._sample:
                return list(numbers)[: self._sample]
            words *= 2

    def _by_ranks(self, step: int) -> list[int]:
        attempt = 0
        while True:
            drawn = _words(self._stream(step, f"ranks {attempt}", 8 * self._population))
            order = np.argsort(drawn, kind="stable")
            if np.all(np.diff(drawn[order])):
                return [int(record) for record in order[: self._sample]]
            attempt += 1


class PoissonSampler(Sampler):
    """Every record independently with the same probability.

    This is the law of `Poisson`, with the exact rate.

    A record is in if a uniform number U is below the rate: its first 32 bits decide unless they are those of the rate, then
    the next 32 do, and so on; so the probability is the rate itself and no float near it. The sample has a random size and
    may be empty; such a step runs too, on noise alone. Divide sums by a constant that was chosen without looking at the
    number of records, which add/remove neighbours keep secret.

    >>> sampler = PoissonSampler(population=1000, rate="1/100", steps=5)
    >>> sampler.law
    Poisson(rate="1/100")
    >>> all(0 <= record < 1000 for record in sampler.draw(0))
    True
    """

    def __init__(
        self,
        population: int,
        rate: Number,
        steps: int | None = None,
        key: bytes | None = None,
        *,
        rank: int = 0,
        world: int = 1,
    ) -> None:
        self._rate = RATE.check("rate", rate)
        super().__init__(population, max(1, int(1 / self._rate)) if steps is None else steps, key, rank, world)

    @property
    def rate(self) -> Exact:
        """Return the probability of every record to be in a sample."""
        return self._rate

    @property
    def law(self) -> Poisson:
        return Poisson(rate=self._rate)

    @property
    def inclusion(self) -> float:
        return float(self._rate)

    def _sizes(self) -> dict[str, Any]:
        return {"rate": f"{self._rate.numerator}/{self._rate.denominator}"}

    def _draw(self, step: int) -> list[int]:
        return self._poisson(step, np.arange(self._population), self._rate)


def uniform_numbers(key: bytes, label: str, bound: int, count: int) -> Indices:
    """Return so many independent uniform numbers below a bound.

    They follow from a key and a label.

    They are remainders of words of 64 bits. Words below 2^64 mod bound are drawn anew, so that no remainder is favoured.
    """
    least = 2**64 % bound
    numbers = np.zeros(count, dtype=np.int64)
    missing, level = np.arange(count), 0
    while missing.size:
        about = len(key).to_bytes(8, "big") + key + f"cumulant 1 numbers {label} {level}".encode()
        drawn = _words(hashlib.shake_256(about).digest(8 * missing.size))
        numbers[missing] = (drawn % np.uint64(bound)).astype(np.int64)
        missing, level = missing[drawn < least], level + 1
    return numbers


def _words(stream: bytes) -> Words:
    return np.frombuffer(stream, dtype="<u8").astype(np.uint64, copy=False)


def checked_whole(name: str, value: Any, least: int = 1) -> int:
    """Return a whole number of at least this; else InputError."""
    try:
        if isinstance(value, bool | np.bool_):
            raise TypeError
        number = operator.index(value)
    except TypeError:
        raise InputError(f"{name}={shown(value)} must be a whole number, at least {least}") from None
    if number < least:
        raise InputError(f"{name}={number} must be a whole number, at least {least}")
    return number if number == 0 else int(COUNT.check(name, number))


def checked_key(key: object) -> bytes:
    """Return the key as bytes; InputError if it is too short to be secret."""
    if not isinstance(key, bytes | bytearray | memoryview) or len(bytes(key)) < SHORTEST_KEY:
        raise InputError(
            f"the key must be at least {SHORTEST_KEY} secret bytes; leave it out, or make one with secrets.token_bytes(32)"
        )
    return bytes(key)
