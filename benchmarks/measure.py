"""Timings of the same work done by several libraries, and the ratios between them."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from statistics import median
from typing import Any


@dataclass(frozen=True, slots=True)
class Timing:
    """The median seconds of one library for one piece of work; `note` says what was not done in full."""

    library: str
    seconds: float
    repetitions: int
    first: float
    note: str = ""


@dataclass(frozen=True, slots=True)
class Comparison:
    """One piece of work in this library and in its peers; `expected` is the least wanted ratio, if one is stated."""

    work: str
    ours: Timing
    peers: tuple[Timing, ...]
    agreement: tuple[str, ...] = ()
    expected: float | None = None

    @property
    def ratio(self) -> float | None:
        """Seconds of the fastest peer over ours; larger than 1 means that this library is faster."""
        return min(peer.seconds for peer in self.peers) / self.ours.seconds if self.peers else None

    def as_json(self) -> dict[str, Any]:
        def timing(of: Timing) -> dict[str, Any]:
            return {name: getattr(of, name) for name in Timing.__slots__}

        return {
            "work": self.work,
            "ours": timing(self.ours),
            "peers": [timing(peer) for peer in self.peers],
            "ratio": self.ratio,
            "expected": self.expected,
            "agreement": list(self.agreement),
        }

    def __str__(self) -> str:
        width = max(len(each.library) for each in (self.ours, *self.peers))
        lines = [self.work]
        for each in (self.ours, *self.peers):
            repetitions = f"median of {each.repetitions}" if each.repetitions > 1 else "once"
            first = f", first call {_seconds(each.first).strip()}" if each.repetitions > 1 else ""
            note = f"; {each.note}" if each.note else ""
            lines.append(f"  {each.library:<{width}}  {_seconds(each.seconds)}  ({repetitions}{first}{note})")
        if self.ratio is not None:
            wanted = f", at least {self.expected:g} expected" if self.expected else ""
            lines.append(f"  ratio, fastest peer / cumulant: {self.ratio:.4g}{wanted}")
        lines.extend(f"  {line}" for line in self.agreement)
        return "\n".join(lines)


@dataclass(frozen=True, slots=True)
class Fact:
    """A count or a ratio of its own, with the limit it should stay under."""

    work: str
    value: float
    limit: float | None
    detail: str

    def as_json(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in Fact.__slots__}

    def __str__(self) -> str:
        limit = f" (less than {self.limit:g} expected)" if self.limit is not None else ""
        return f"{self.work}\n  {self.value:.4g}{limit}; {self.detail}"


@dataclass(frozen=True, slots=True)
class LeftOut:
    """Work that could not be done here, and why."""

    work: str
    reason: str

    def as_json(self) -> dict[str, Any]:
        return {"work": self.work, "left out": self.reason}

    def __str__(self) -> str:
        return f"{self.work}\n  left out: {self.reason}"


def timed(library: str, work: Callable[[int], object], repetitions: int, note: str = "") -> Timing:
    """The median over work(0), work(1), …; work(i) must not profit from work(i - 1)."""
    seconds = []
    for i in range(repetitions):
        start = time.perf_counter()
        work(i)
        seconds.append(time.perf_counter() - start)
    return Timing(library, median(seconds), repetitions, seconds[0], note)


def _seconds(value: float) -> str:
    return f"{value * 1e3:9.3f} ms" if value < 1 else f"{value:9.3f} s "
