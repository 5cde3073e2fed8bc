"""Writers of an SQLite ledger that are stopped, whose file gets a second name, or whose -wal and -shm are removed.

    python -m tests.ledger.disturbance --seconds 60 --writers 8 --removals 20

What was acknowledged is there, once; a second name never spends; others name a writer that is stopped and do not wait for ever;
after a removal every writer stops, and what is lost is found by receipts. Exits with 1 otherwise.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import random
import signal
import sys
import tempfile
import time
from contextlib import suppress
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import cumulant as cm
from cumulant.errors import CumulantError, LedgerBroken, LedgerError
from cumulant.ledger import sqlite
from cumulant.ledger.entry import Receipt

RUN = "Gaussian(sigma=100000)"
PATIENCE = 1.0
"""Seconds that a writer waits for the lock here."""


def write(url: str, name: str, line: Connection) -> None:
    """Spend until the line ends or the ledger is broken, and tell each receipt and each error."""
    sqlite.LOCK_SECONDS = PATIENCE
    account, number = cm.Ledger(url).account("one"), 0
    while not line.poll():
        key = f"{name}/{number}"
        try:
            found: Any = account.spend(RUN, key=key).to_json()
            number += 1
        except LedgerBroken as error:
            line.send((time.time(), "broken", str(error)))
            return
        except CumulantError as error:
            found = error
        line.send((time.time(), "receipt", found) if isinstance(found, str) else (time.time(), "error", str(found)))


@dataclass
class Writers:
    """Processes that spend, and what they told."""

    url: str
    count: int
    told: list[list[tuple[float, str, str]]] = field(default_factory=list)

    def __post_init__(self) -> None:
        context = multiprocessing.get_context("spawn")
        self.lines, self.processes = [], []
        for number in range(self.count):
            ours, theirs = context.Pipe()
            process = context.Process(target=write, args=(self.url, f"w{number}", theirs), daemon=True)
            process.start()
            theirs.close()
            self.lines.append(ours)
            self.processes.append(process)
        self.told = [[] for _ in self.lines]
        while not all(self.listen()):
            time.sleep(0.01)

    def listen(self) -> list[list[tuple[float, str, str]]]:
        """Everything that was told until now."""
        for line, told in zip(self.lines, self.told, strict=True):
            with suppress(EOFError, OSError):
                while line.poll():
                    told.append(line.recv())
        return self.told

    def end(self) -> None:
        """Let every writer finish its spend and end."""
        for line, process in zip(self.lines, self.processes, strict=True):
            with suppress(OSError):
                line.send(None)
            while process.is_alive():
                self.listen()
                process.join(0.05)
        self.listen()

    def receipts(self) -> list[Receipt]:
        """Every receipt that was handed out."""
        return [Receipt.from_json(text) for told in self.listen() for _, kind, text in told if kind == "receipt"]

    def sentences(self, kind: str) -> list[str]:
        """Every error of this kind."""
        return [text for told in self.listen() for _, each, text in told if each == kind]


def stopped_and_linked(folder: Path, seconds: float, count: int, seed: int) -> dict[str, Any]:
    """Stop writers and give the file a second name, at random moments."""
    draw, place, twin = random.Random(seed), folder / "budget.db", folder / "twin.db"
    cm.Ledger(f"sqlite:///{place}").create("one", epsilon=1, delta="1e-6")
    writers = Writers(f"sqlite:///{place}", count)
    refused = spent = 0
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        if draw.random() < 0.5:
            process = draw.choice(writers.processes)
            assert process.pid is not None
            os.kill(process.pid, signal.SIGSTOP)
            time.sleep(draw.uniform(0, 2.5 * PATIENCE))
            os.kill(process.pid, signal.SIGCONT)
        else:
            os.link(place, twin)
            try:
                cm.Ledger(f"sqlite:///{twin}").account("one").spend(RUN)
                spent += 1
            except LedgerError:
                refused += 1
            twin.unlink()
        writers.listen()
        time.sleep(draw.uniform(0, 0.3))
    writers.end()
    receipts = writers.receipts()
    verdict = cm.Ledger(f"sqlite:///{place}").verify(receipts=receipts)
    return {
        "receipts": len(receipts),
        "twice": len(receipts) - len({receipt.seq for receipt in receipts}),
        "entries beyond receipts": verdict.entries - 1 - len(receipts),
        "sound": bool(verdict),
        "second name refused": refused,
        "second name spent": spent,
        "stopped writers named": sum("stopped)" in text for text in writers.sentences("error")),
        "broken": len(writers.sentences("broken")),
    }


def removed(folder: Path, count: int, seed: int) -> dict[str, Any]:
    """Remove -wal or -shm under running writers: all stop, and what is lost is found."""
    draw, place = random.Random(seed), folder / f"budget-{seed}.db"
    cm.Ledger(f"sqlite:///{place}").create("one", epsilon=1, delta="1e-6")
    writers = Writers(f"sqlite:///{place}", count)
    time.sleep(draw.uniform(0.0, 0.5))
    moment = time.time()
    for suffix in draw.choice([["-wal"], ["-shm"], ["-wal", "-shm"]]):
        Path(f"{place}{suffix}").unlink()
    until = time.monotonic() + 60
    while any(process.is_alive() for process in writers.processes) and time.monotonic() < until:
        writers.listen()
        time.sleep(0.05)
    running = sum(process.is_alive() for process in writers.processes)
    for process in writers.processes:
        process.kill()
        process.join()
    after = max(sum(t > moment and kind == "receipt" for t, kind, _ in told) for told in writers.listen())
    try:
        found = bool(cm.Ledger(f"sqlite:///{place}").verify(receipts=writers.receipts()))
    except LedgerError:
        found = False
    return {"running": running, "receipts of one writer after it": after, "sound with all receipts": found}


def main() -> int:
    """Disturb, say what became of it, and whether anything went unnoticed."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--writers", type=int, default=8)
    parser.add_argument("--removals", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as place:
        one = stopped_and_linked(Path(place), given.seconds, given.writers, given.seed)
        many = [removed(Path(place), given.writers, given.seed + number) for number in range(given.removals)]
    sys.stdout.write(json.dumps({"disturbed": one, "removed": many}) + "\n")
    return int(bool(problems(one, many)))


def problems(one: dict[str, Any], many: list[dict[str, Any]]) -> list[str]:
    """What must not be."""
    found = [name for name in ("twice", "second name spent", "broken") if one[name]]
    if not one["sound"] or not one["receipts"] or one["entries beyond receipts"] < 0:
        found.append("receipts")
    for each in many:
        if each["running"] or each["receipts of one writer after it"] > 1:
            found.append(str(each))
    return found


if __name__ == "__main__":
    sys.exit(main())
