"""Kill -9, stopped servers, power cuts: what was answered is there, once."""

import json
import shutil
import subprocess
import sys
import threading
from pathlib import Path

import pytest

import cumulant as cm
from cumulant.ledger.entry import Receipt

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize(
    ("arguments", "seconds"),
    [(["--url", "sqlite"], 5), (["--url", "postgresql"], 5), (["--url", "postgresql", "--crash-server"], 6)],
    ids=["sqlite", "postgresql", "server"],
)
def test_killed_writers(arguments: list[str], seconds: int) -> None:
    """With pauses, which leave the processors to other tests; the hunt has none, and ten minutes."""
    trial = ["--seconds", str(seconds), "--writers", "8", "--pause", "0.1"]
    found = subprocess.run(
        [sys.executable, "-m", "tests.ledger.kill", *trial, *arguments],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert found.stdout, found.stderr
    outcome = json.loads(found.stdout)
    assert (outcome["lost"], outcome["twice"], outcome["sums"], outcome["sound"]) == (0, 0, True, True), outcome
    assert outcome["answered"] > 50
    assert "--crash-server" in arguments or outcome["kills"] > 10
    assert found.returncode == 0, found.stderr


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
