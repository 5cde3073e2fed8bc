"""Kill -9, stopped servers, power cuts: what was answered is there, once."""

import json
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

import cumulant as cm
from cumulant.ledger.entry import Receipt

ROOT = Path(__file__).parents[2]


TRIALS = {
    "sqlite": ["--url", "sqlite", "--seconds", "5"],
    "postgresql": ["--url", "postgresql", "--seconds", "5"],
    "server": ["--url", "postgresql", "--seconds", "6", "--crash-server"],
}


@pytest.fixture(scope="module")
def trials() -> Iterator[dict[str, subprocess.Popen[str]]]:
    """Start all trials at once: most of their time is pauses, which leave the processors to others."""
    command = [sys.executable, "-m", "tests.ledger.kill", "--writers", "8", "--pause", "0.1"]
    running = {
        name: subprocess.Popen([*command, *rest], cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        for name, rest in TRIALS.items()
    }
    yield running
    for each in running.values():
        each.kill()
        each.communicate()


@pytest.mark.parametrize("name", TRIALS)
def test_killed_writers(name: str, trials: dict[str, subprocess.Popen[str]]) -> None:
    """The hunt has no pauses, and ten minutes."""
    out, err = trials[name].communicate()
    assert out, err
    outcome = json.loads(out)
    assert (outcome["lost"], outcome["twice"], outcome["sums"], outcome["sound"]) == (0, 0, True, True), outcome
    assert outcome["answered"] > 50
    assert name == "server" or outcome["kills"] > 10
    assert trials[name].returncode == 0, err


def test_a_copy_of_the_files_at_any_moment_has_every_answer(tmp_path: Path) -> None:
    """A power cut leaves what was synced: here the files as they are while a writer works, copied and opened elsewhere."""
    ledger = cm.Ledger(f"sqlite:///{tmp_path}/budget.db")
    account = ledger.create("a", epsilon=1, delta=1e-6)
    answered: list[Receipt] = []
    done = threading.Event()

    def work() -> None:
        mine = ledger.account("a")
        while not done.is_set():
            answered.append(mine.spend(cm.Gaussian(sigma=20_000)))

    worker = threading.Thread(target=work)
    worker.start()
    try:
        for number in range(12):
            while len(answered) < 5 * number:
                done.wait(0.005)
            before = list(answered)
            copy = tmp_path / str(number)
            copy.mkdir()
            for name in ("budget.db", "budget.db-wal"):  # the index of the log is rebuilt from it
                shutil.copy(tmp_path / name, copy / name)
            wal = copy / "budget.db-wal"
            with wal.open("ab") as torn:
                torn.write(b"\x5a" * 1000)  # half of a page that was never synced
            verdict = cm.Ledger(f"sqlite:///{copy}/budget.db").verify(receipts=before)
            assert verdict, str(verdict)
            assert verdict.entries > len(before)
    finally:
        done.set()
        worker.join()
    assert account.verify(answered)
