"""Writers that are killed at any moment, and servers that stop: nothing that was answered is lost, nothing is charged twice.

    python -m tests.ledger.kill --seconds 30 --writers 8 --url sqlite
    python -m tests.ledger.kill --seconds 30 --writers 8 --url postgresql [--crash-server]

Each writer notes in a file what it is about to ask and what it was answered. It is killed by SIGKILL, and its successor asks
again for what was not answered, as a restarted job would.
"""

import argparse
import atexit
import json
import os
import random
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import cumulant as cm
from cumulant.errors import KeyConflict
from cumulant.filters.amounts import Amounts
from cumulant.ledger.account import Account
from cumulant.ledger.entry import Receipt
from tests.ledger.server import Server, address, database

STEP = cm.Gaussian(sigma=20_000)
NAME = "trial"


def write(ledger: cm.Ledger, journal: Path, writer: int, pause: float) -> None:
    """Spend, hold and settle until killed, with pauses up to so many seconds; first what the predecessor was not answered."""
    account, draw = ledger.account(NAME), random.Random()
    asked, answered = read(journal)
    with journal.open("a", buffering=1, encoding="utf-8") as file:

        def ask(key: str, kind: str) -> None:
            file.write(json.dumps(["ask", key, kind]) + "\n")
            answer(key, kind)

        def answer(key: str, kind: str) -> None:
            try:
                receipt = carry_out(account, key, kind)
            except KeyConflict as conflict:  # it was written, and the answer was lost
                receipt = found if isinstance(found := conflict.receipt, Receipt) else account.head()
            file.write(json.dumps(["answer", key, json.loads(receipt.to_json())]) + "\n")

        for key, kind in asked.items():
            if key not in answered:
                answer(key, kind)
        number = len(asked)
        while True:
            time.sleep(pause * draw.random())
            number += 1
            key = f"{writer}/{number}"
            if draw.random() < 0.7:
                ask(key, "spend")
            else:
                ask(key, "hold")
                if draw.random() < 0.8:
                    ask(f"{key}/end", "settle")


def carry_out(account: Account, key: str, kind: str) -> Receipt:
    if kind == "spend":
        return account.spend(STEP * 2, key=key)
    if kind == "hold":
        return account.hold(STEP * 5, key=key).receipt
    held = account.find(key.removesuffix("/end"))
    assert held is not None
    end = account.find(key)
    return end.receipt(replayed=True) if end else account.settle(held.seq, STEP * 3, key=key)


def read(journal: Path) -> tuple[dict[str, str], dict[str, Receipt]]:
    asked: dict[str, str] = {}
    answered: dict[str, Receipt] = {}
    for line in journal.read_text(encoding="utf-8").splitlines() if journal.exists() else ():
        try:
            word, key, what = json.loads(line)
        except ValueError:
            continue  # the writer was killed while it wrote the line
        if word == "ask":
            asked[key] = what
        else:
            answered[key] = Receipt.from_json(json.dumps(what))
    return asked, answered


def fork(ledger: cm.Ledger, journal: Path, writer: int, pause: float) -> int:
    process = os.fork()
    if process:
        return process
    try:
        write(ledger, journal, writer, pause)
    except BaseException as error:
        sys.stderr.write(f"writer {writer}: {type(error).__name__}: {error}\n")
    finally:
        os._exit(1)


def trial(url: str, seconds: float, writers: int, server: Server | None = None, pause: float = 0.0) -> dict[str, Any]:
    """Run it and count."""
    ledger = cm.Ledger(url)
    account = ledger.create(NAME, epsilon=1, delta="1e-6")
    account.would_fit(STEP)  # the price is known before anybody takes a lock
    folder, kills, failed, draw = Path(tempfile.mkdtemp()), 0, 0, random.Random(1)
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    journals = [folder / f"{writer}.jsonl" for writer in range(writers)]
    running = {fork(ledger, journals[writer], writer, pause): writer for writer in range(writers)}
    end, crash = time.monotonic() + seconds, time.monotonic() + seconds / 3
    while time.monotonic() < end:
        time.sleep(0.25 * draw.random())
        if server is not None and time.monotonic() > crash:
            server.stop("immediate")
            time.sleep(0.3)
            server.start()
            crash += seconds / 3
            continue
        if server is None:
            process = draw.choice(list(running))
            os.kill(process, signal.SIGKILL)
            kills += 1
        while True:
            gone, how = os.waitpid(-1, 0 if server is None and len(running) == writers else os.WNOHANG)
            if not gone:
                break
            failed += os.WIFEXITED(how)
            writer = running.pop(gone)
            running[fork(ledger, journals[writer], writer, pause)] = writer
            break
    for process in running:
        os.kill(process, signal.SIGKILL)
        os.waitpid(process, 0)
    return outcome(cm.Ledger(url), journals) | {"kills": kills, "failed": failed}


def outcome(ledger: cm.Ledger, journals: list[Path]) -> dict[str, Any]:
    """What the ledger holds against what was asked and answered."""
    account = ledger.account(NAME)
    entries = {entry.key: entry for entry in account.history()}
    asked: dict[str, str] = {}
    answered: dict[str, Receipt] = {}
    for journal in journals:
        mine, receipts = read(journal)
        asked, answered = asked | mine, answered | receipts
    lost = sum(key not in entries or entries[key].hash != receipt.hash for key, receipt in answered.items())
    twice = len(list(account.history())) - len(entries) + len(set(entries) - set(asked) - {"open"})
    spent = held = Amounts.of([0] * 15)
    by_seq = {entry.seq: entry for entry in entries.values()}
    for entry in entries.values():
        if entry.kind in ("spend", "settle"):
            spent = spent + Amounts.read(entry.content()["charge"])
        if entry.kind == "hold":
            held = held + Amounts.read(entry.content()["charge"])
        if entry.hold is not None:
            held = held - Amounts.read(by_seq[entry.hold].content()["charge"])
    sums = account._writer.position(NAME).state
    verdict = ledger.verify(receipts=answered.values())
    return {
        "entries": len(entries),
        "answered": len(answered),
        "replayed": sum(receipt.replayed for receipt in answered.values()),
        "lost": lost,
        "twice": twice,
        "sums": (sums.spent, sums.held) == (spent, held),
        "sound": bool(verdict),
        "verdict": str(verdict),
    }


@contextmanager
def place(kind: str, crash: bool) -> Iterator[tuple[str, Server | None]]:
    """A new ledger's address; with a server of our own if that is to be stopped."""
    with ExitStack() as stack:
        if kind == "sqlite":
            yield f"sqlite:///{stack.enter_context(tempfile.TemporaryDirectory())}/budget.db", None
        elif crash:
            server = Server()
            stack.callback(server.close)
            yield database(server.url), server
        else:
            yield database(stack.enter_context(address())), None


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=float, default=30)
    parser.add_argument("--writers", type=int, default=8)
    parser.add_argument("--url", choices=("sqlite", "postgresql"), default="sqlite")
    parser.add_argument("--crash-server", action="store_true")
    parser.add_argument("--pause", type=float, default=0.0, help="seconds at most between two requests of a writer")
    given = parser.parse_args()
    with place(given.url, given.crash_server) as (url, server):
        found = trial(url, given.seconds, given.writers, server, given.pause)
    sys.stdout.write(json.dumps(found) + "\n")
    return int(found["lost"] or found["twice"] or not found["sums"] or not found["sound"] or found["entries"] < 10)


if __name__ == "__main__":
    sys.exit(main())
