"""`cumulant ledger`: exit codes, JSON, tables, broken states."""

import io
import json
import os
import re
import shlex
import shutil
import sqlite3
import subprocess
import sys
import tracemalloc
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from cumulant.accounting.numbers import percent
from cumulant.cli import app
from cumulant.cli import ledger_tables as tables
from cumulant.ledger.account import Account
from cumulant.ledger.entry import COLUMNS, Entry, canonical
from cumulant.ledger.ledger import Ledger

STEP = "Gaussian(sigma=50)"


@pytest.fixture
def url(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "160")
    return "sqlite:///budget.db"


class Shell:
    def __init__(self, capsys: pytest.CaptureFixture[str], url: str) -> None:
        self.capsys, self.url = capsys, url

    def __call__(self, command: str, *words: str, code: int = 0) -> str:
        found = app.answer(["ledger", command, self.url, *words])
        out = self.capsys.readouterr()
        assert found == code, out.err
        if code not in (0, 4):
            assert out.err.startswith("refused: " if code == 3 else "error: ")
            assert len(out.err.splitlines()) == (3 if "at position" in out.err else 1)  # a text is shown with its place
        return out.out if code in (0, 3) and out.out else out.err

    def json(self, command: str, *words: str, code: int = 0) -> Any:
        return json.loads(self(command, *words, "--json", code=code))


@pytest.fixture
def shell(capsys: pytest.CaptureFixture[str], url: str) -> Shell:
    return Shell(capsys, url)


def test_a_day(shell: Shell, tmp_path: Path) -> None:
    made = shell.json("create", "a", "--epsilon", "1", "--delta", "1e-6", "--like", STEP, "--owner", "dpo")
    assert made["policy"]["epsilon"] == "1"
    assert len(made["policy"]["orders"]) == 13
    receipt = shell.json("spend", "a", f"{STEP} * 20", "--key", "k")
    assert (receipt["seq"], receipt["replayed"]) == (1, False)
    Path("receipts").mkdir()
    Path("receipts/one.json").write_text(json.dumps(receipt) + "\n", encoding="utf-8")
    held = shell.json("hold", "a", f"{STEP} * 90", "--key", "job")
    refused = shell.json("spend", "a", f"{STEP} * 20", code=3)
    assert (refused["would_fit"], refused["asked"]) == (6, 20)
    assert 0 < refused["spent"] < refused["held"] < 1
    status = shell.json("status", "a")
    assert (status["fits"], status["entries"], len(status["holds"])) == (6, 3, 1)
    assert "remaining" not in status
    text = shell("status")
    assert f"held, entry {held['seq']}" in text
    assert " fits " in text
    assert status["head"] in text.replace(" │\n│           │ ", "")
    shell("settle", "a", "--hold", str(held["seq"]), code=2)
    shell("settle", "a", f"{STEP} * 91", "--hold", str(held["seq"]), code=2)
    shell("settle", "a", f"{STEP} * 9", "--hold", str(held["seq"]))
    shell("settle", "a", "--all", "--hold", str(held["seq"]), code=2)
    again = shell.json("hold", "a", STEP)
    shell("release", "a", "--hold", str(again["seq"]), code=2)
    shell("release", "a", "--hold", str(again["seq"]), "--unseen", "--by", "dpo")
    shell("grant", "a", "team", "--share", "1/4")
    shell("spend", "a", f"{STEP} * 30", "--team", "team", code=3)
    shell("spend", "a", STEP, "--team", "team", "--note", "for J. Doe")
    shell("freeze", "a", "--reason", "looking")
    shell("spend", "a", STEP, code=3)
    shell("thaw", "a")
    assert shell("reprice", "a") == "No charge is lower now. Nothing was written.\n"
    assert shell.json("reprice", "a") == []
    shell("close", "a")
    shell("spend", "a", STEP, code=3)
    kinds = [entry["kind"] for entry in shell.json("history", "a")]
    assert kinds == ["open", "spend", "hold", "settle", "hold", "release", "grant", "spend", "freeze", "thaw", "close"]
    told = shell("history", "a")
    assert "Gaussian(sigma=50) * 9 (hold 2)" in told
    assert " (ended by 3)" in told.splitlines()[3]
    assert " (ended by 5)" in told.splitlines()[5]
    assert not re.search("[0-9a-f]{32}", told)  # keys that nobody gave
    head = shell("head", "a").strip()
    assert shell.json("verify", "a", "--recompute", "--head", head, "--receipts", "receipts")["sound"] is True
    assert shell("verify").startswith("The ledger is sound: 11 entries of 1 account; checked: ")
    shell("export", "--out", "copy.jsonl")
    assert shell("export") == Path("copy.jsonl").read_text(encoding="utf-8")
    assert "Gaussian(sigma=50) * 20" in shell("export", "--csv")
    assert app.answer(["ledger", "import", "sqlite:///copy.db", "copy.jsonl"]) == 0
    shell.url = "sqlite:///copy.db"
    shell.capsys.readouterr()
    assert shell.json("status", "a")["state"] == "imported"
    assert "imported (frozen)" in shell("status", "a")
    shell("import", "copy.jsonl", code=1)
    shell("thaw", "a", code=2)


def test_how_many_more_fit(shell: Shell) -> None:
    """A file name is an address; the count is that of the library; whoever writes may say so."""
    shell.url = "plain.db"
    shell("create", "a", "--epsilon", "1", "--delta", "1e-6", "--unit", "one visit", "--owner", "dpo", "--by", "ana")
    said = shell("spend", "a", STEP, "--by", "ben")
    assert said.startswith("Charged to 'a'. Run it once, then publish. Receipt 1:")
    account = Ledger("sqlite:///plain.db").account("a")
    fits = account.would_fit(STEP)
    assert shell("status", "a", STEP).startswith(
        f"About {fits:,} more like this fit into 'a', if nobody else spends.\n"
    )
    assert "Use more noise or fewer rounds, or ask the owner, dpo." in shell("status", "a", "Gaussian(sigma=0.1)")
    assert shell.json("status", "a", STEP)["would_fit"] == fits
    assert [entry.actor for entry in account.history()] == ["ana", "ben"]
    assert account.status().unit == "one visit"
    head = said.split()[-1]
    assert len(head) < 24
    assert shell.json("verify", "a", "--head", head)["sound"] is True
    assert "rolled back" in shell("verify", "a", "--head", head[:-4] + "0000", code=4)
    assert "rolled back" in shell("verify", "a", "--head", head[:12], code=4)


def test_a_printed_receipt_is_a_receipt(shell: Shell) -> None:
    """The sentence of a spend, or its last word, on a line of its own; it does not say which account it is about."""
    shell("create", "a", "--epsilon", "1", "--delta", "1e-6")
    said = shell("spend", "a", STEP)
    Path("printed").write_text(f"{said}{said.split()[-1]}\n", encoding="utf-8")
    assert shell.json("verify", "a", "--receipts", "printed")["sound"] is True
    assert "does not name its account; give NAME" in shell("verify", "--receipts", "printed", code=2)
    Path("forged").write_text(f"{said.strip()[:-4]}0000\n", encoding="utf-8")
    forged = shell("verify", "a", "--receipts", "forged", code=4)
    assert "the ledger was rolled back and written again, or the receipt was changed" in forged
    Path("short").write_text(f"{said.strip()[:-1]}\n", encoding="utf-8")
    assert "is cut short; give all 20 digits" in shell("verify", "a", "--receipts", "short", code=2)
    Path("other").write_text("hello\n", encoding="utf-8")
    assert "is not a receipt" in shell("verify", "a", "--receipts", "other", code=2)
    Path("empty").write_text("\n")
    assert "empty has no receipt" in shell("verify", "a", "--receipts", "empty", code=2)


def test_what_a_sound_ledger_does_not_show_is_said(shell: Shell) -> None:
    shell("create", "a", "--epsilon", "1", "--delta", "1e-6")
    cut = "Newest entries that were cut off are only seen with --head or --receipts."
    assert cut in shell("verify", "a")
    assert cut not in shell("verify", "a", "--head", shell("head", "a").strip())


def test_the_history_shows_the_part_of_each_charge(shell: Shell) -> None:
    shell("create", "a", "--epsilon", "1", "--delta", "1e-6")
    shell("spend", "a", STEP)
    used = Ledger(shell.url).account("a").status().used
    opened, charged, legend = shell("history", "a").splitlines()[1:]
    assert charged.endswith(f"  {percent(used)}  {STEP}")
    assert legend == "part: what the entry would use of the budget alone; parts need not add up"
    assert "%" not in opened
    assert f"{percent(used)} of what its rule counts, which is not epsilon; at 100 %" in shell("status", "a")


def test_a_question_mark_is_led_to_values(shell: Shell) -> None:
    shell("create", "a", "--epsilon", "1", "--delta", "1e-6")
    said = shell("status", "a", "Laplace(scale=?)", code=2)
    assert "try values with cumulant ledger status LEDGER NAME RUN, or cumulant calibrate for an empty account" in said


def test_a_planned_account_counts_its_runs(shell: Shell) -> None:
    """1 of 5 read 20.1 %, and a refusal said that all of epsilon was spent."""
    shell(
        "create", "a", "--epsilon", "1", "--delta", "0", "--mode", "planned", "--plan", "PureDP(0.1) * 5 + PureDP(0.2)"
    )
    shell("spend", "a", "PureDP(0.1)")
    said = shell("status", "a")
    assert "1 of 5 PureDP(epsilon=0.1) charged or held" in said
    assert "0 of 1 PureDP(epsilon=0.2) charged or held" in said
    assert "%" not in said
    assert " 20 %  PureDP" in shell("history", "a")
    refused = shell("spend", "a", "PureDP(0.1) * 5", code=3)
    assert "the plan of account 'a': 4 of 5 planned PureDP(epsilon=0.1) are left, 5 asked for. Nothing" in refused
    assert "is spent" not in refused
    assert shell.json("status", "a")["plan"][0] == {"run": "PureDP(epsilon=0.1)", "planned": 5, "ran": 1}


def test_the_refusal_of_calibrated_noise_says_why(shell: Shell) -> None:
    """Somebody calibrated to the budget, and an empty adaptive account refused without a reason."""
    shell("create", "a", "--epsilon", "1", "--delta", "1e-6")
    said = shell("spend", "a", "Gaussian(sigma=4.22468)", code=3)
    assert "needs more noise than calibrate says, because queries may depend on answers." in said
    assert "Accounts of mode gaussian or planned take calibrated noise." in said
    shell("create", "b", "--epsilon", "1", "--delta", "1e-6", "--mode", "gaussian")
    shell("spend", "b", "Gaussian(sigma=4.22468)")
    assert "calibrate" not in shell("spend", "b", "Gaussian(sigma=4)", code=3)


def test_bars_on_a_terminal(shell: Shell) -> None:
    from cumulant import Ledger
    from cumulant.cli import ledger_tables

    shell("create", "a", "--epsilon", "1", "--delta", "1e-6", "--mode", "gaussian")
    shell("spend", "a", f"{STEP} * 70")
    lines = dict(ledger_tables._lines(Ledger(shell.url).account("a").status(), bars=True))
    assert (
        lines["used"]
        == "█" * 10 + "░" * 10 + " 50 % of the sum of (sensitivity/sigma)^2 that it allows; at 100 % nothing more fits"
    )
    assert "so far" not in lines  # no odometer is proved for a sum of squared shifts


@pytest.mark.parametrize("name", ["[red]x[/red]", "[/foo]", "[bold", ":bomb: a"])
def test_names_are_not_markup(shell: Shell, name: str) -> None:
    """Rich coloured the first name, took a bomb for the last one and ended with a MarkupError at the second."""
    shell("create", name, "--epsilon", "1", "--delta", "1e-6", "--owner", name)
    shell("grant", name, name, "--share", "1/2")
    said = shell("status", name)
    assert said.splitlines()[0].strip() == name
    assert f"allowance of {name}" in said
    assert said.count(name) == 3


def test_what_was_forged_does_not_reach_the_terminal(shell: Shell) -> None:
    """Somebody who writes to the database put commands for the terminal into a hold."""
    shell("create", "a", "--epsilon", "1", "--delta", "1e-6")
    shell("hold", "a", STEP, "--key", "k")
    held = list(Ledger(shell.url).account("a").history())[-1]
    sums = held.sums()
    sums["teams"] = {"\x1b[32mT\nX": {"share": "1/2", "spent": sums["held"], "held": sums["held"]}}
    body = canonical({**held.content(), "actor": "\x1b]0;pwned\x07", "run": "\x1b[2Jrun", "time": "\x1b[5mnow"})
    forged = replace(held, seq=2, key="\x9b1mevil", body=body, state=canonical(sums), prev=held.hash)
    forged = replace(forged, hash=forged.digest())
    with closing(sqlite3.connect("budget.db")) as database, database:
        marks = ", ".join("?" * len(COLUMNS))
        database.execute(f"INSERT INTO entry VALUES ({marks})", [getattr(forged, column) for column in COLUMNS])
    for said in (shell("status"), shell("status", "a", STEP), shell("export", "--csv"), shell("history", "a")):
        assert all(each.isprintable() for line in said.splitlines() for each in line)
    assert "?[2Jrun by ?]0;pwned?" in shell("status")


def test_a_gaussian_account_says_what_is_used(shell: Shell) -> None:
    """3 of 20 tables were spent, and the refusal said that all of epsilon was spent and 17 of 18 would fit."""
    sigma = Ledger(shell.url).create("a", 1, "1e-6", mode="gaussian").policy.mu
    assert sigma is not None
    table = f"Gaussian(sigma={float(20**0.5 / sigma) * (1 + 1e-9)!r})"
    shell("spend", "a", f"{table} * 3")
    refused = shell("spend", "a", f"{table} * 18", code=3)
    assert ": 15 % of the budget is used. Nothing was charged. 17 of 18 would fit" in refused
    assert "is spent" not in refused
    assert shell("status", "a", table).startswith("17 more like this fit into 'a', if nobody else spends.\n")
    assert "15 % of the sum of (sensitivity/sigma)^2 that it allows" in shell("status", "a")
    shell("hold", "a", f"{table} * 5")
    assert "40 % of the budget is used, of which 25 % is held. Nothing" in shell("spend", "a", f"{table} * 18", code=3)
    assert "40 %, of which 25 % is held, of the sum of (sensitivity/sigma)^2" in shell("status", "a")
    assert shell.json("status", "a")["spent"] == 1  # no smaller epsilon is proved
    assert "a: 40 % of the budget is used" in Ledger(shell.url).account("a").status()._repr_html_()
    assert "epsilon 1 " not in Ledger(shell.url).account("a").status()._repr_html_()


def test_a_gaussian_account_hints_at_the_histogram(shell: Shell) -> None:
    for relation, moved in (("replace-one", ", squared_sensitivity=2"), ("add-remove", "")):
        shell("create", relation, "--epsilon", "1", "--delta", "1e-6", "--mode", "gaussian", "--relation", relation)
        cells = [f'Gaussian(sigma={sigma}, relation="add-remove")' for sigma in (20, 30)]
        run = f"parallel({', '.join(cells)}" + (', relation="replace-one")' if moved else ")")
        refused = shell("spend", relation, run, code=3)
        assert f"noise in every cell is one release: Gaussian(sigma=…{moved})" in refused
        shell("spend", relation, f"Gaussian(sigma=20{moved})")
        assert "histogram" not in shell("spend", relation, "ApproximateDP(0.1, 1e-9)", code=3)


def test_create_says_what_the_rule_means(shell: Shell) -> None:
    """The notes are on stderr: what is printed stays a receipt, and JSON stays JSON."""
    wanted = ["--epsilon", "1", "--delta", "1e-6"]
    for name, more, said in (
        (
            "a",
            [],
            "Rule: adaptive. Fewer runs fit than calibrate says. If only Gaussian noise runs, --mode gaussian fits more. "
            "Nothing is spent yet: another account with --mode gaussian is possible.",
        ),
        ("b", ["--mode", "gaussian"], "Rule: gaussian. It takes Gaussian noise and pure mechanisms"),
        ("c", ["--mode", "planned", "--plan", "PureDP(0.1)"], "Rule: planned. It takes what the plan names"),
    ):
        assert app.answer(["ledger", "create", shell.url, name, *wanted, *more]) == 0
        out, err = shell.capsys.readouterr()
        assert err.startswith(said)
        assert len(out.splitlines()) == 1
        others = {
            "a": "",
            "b": "This ledger has another account, 'a'. If it is about the same people, both budgets add up: say",
        }
        assert (
            others.get(name, "This ledger has other accounts, such as 'a'. If they are about the same people, all")
            in err
        )
        assert ("same people" in err) == (name != "a")
    assert "same people" not in _err(shell, "create", "d", *wanted, "--data", "clinic")
    assert _err(shell, "create", "e", *wanted, "--json") == ""


def test_keys_of_requests(shell: Shell) -> None:
    shell("create", "a", "--epsilon", "1", "--delta", "1e-6")
    first = shell.json("spend", "a", STEP, "--key", "k")
    shell("spend", "a", f"{STEP} * 2", "--key", "k", code=2)
    replay = shell.json("spend", "a", STEP, "--key", "k", "--replay")
    assert replay == first | {"replayed": True}
    shell("spend", "a", STEP, "--key", "other", "--replay", code=2)


def test_blocks(shell: Shell) -> None:
    for name in ("b/1", "b/2"):
        shell("create", name, "--epsilon", "1", "--delta", "1e-6", "--data", name)
    shell("spend", "b/1", STEP, "--also", "b/2", "--key", "w")
    assert "has (2, 3.719e-6)" in shell("status", "--union", "b/1,b/2")
    assert shell.json("status", "--union", "b/1,b/2")["epsilon"] == 2
    shell("create", "b/3", "--epsilon", "1", "--delta", "1e-6", "--data", "b/1", code=2)
    said = shell("create", "b/3", "--epsilon", "1", "--delta", "1e-6", "--data", "b/1", "--same-data")
    assert "together: (2, 2e-6)" in said


def test_an_account_without_a_sum_with_others_is_created(shell: Shell) -> None:
    """The account was there, and the command said "error" and ended with 2."""
    shell("create", "records", "--epsilon", "1", "--delta", "1e-6", "--data", "x")
    budget = ("--epsilon", "1", "--delta", "1e-6", "--data", "x", "--same-data", "--unit", "user")
    assert app.answer(["ledger", "create", shell.url, "users", *budget]) == 0
    out, err = shell.capsys.readouterr()
    assert out.startswith("Created account 'users'.")
    assert err.splitlines()[-1].startswith("On data 'x': these accounts have no sum: their budgets are for replace-one")


def test_signed(shell: Shell) -> None:
    Path("keys").write_text("hmac 2026 " + "5a" * 32 + "\n", encoding="ascii")
    shell("create", "a", "--epsilon", "1", "--delta", "1e-6", "--keys", "keys")
    shell("spend", "a", STEP, code=1)
    shell("spend", "a", STEP, "--keys", "keys")
    assert shell.json("verify", "--keys", "keys")["unconfirmed"] == 0
    assert "2 signatures by keys that are not at hand" in shell("verify")
    Path("keys").write_text("nonsense\n", encoding="ascii")
    shell("verify", "--keys", "keys", code=2)
    shell("verify", "--keys", "nowhere", code=2)


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["spend", "b", STEP], 2, "there is no account 'b'"),
        (["spend", "a", "Gausian(1)"], 2, "did you mean"),
        (["spend", "a", f"{STEP} @ Poisson(rate=0.1)"], 2, "add-remove neighbours"),
        (["spend", "a", "Gaussian(sigma=0.001)"], 3, "Nothing was charged. Use more noise, or ask the owner."),
        (["spend", "a", "ApproximateDP(0.1, 1e-9)"], 3, "open an account with a larger slack"),
        (["spend", "expired", STEP], 3, "has expired"),
        (["verify", "a", "--head", "0:ff"], 4, "rolled back"),
        (["verify", "--head", "0:ff"], 2, "SEQ:HASH"),
        (["verify", "a", "--head", "\u00b2:ff"], 2, "SEQ:HASH"),
        (["verify", "a", "--head", f"{'9' * 5000}:ff"], 2, "SEQ:HASH"),
        (["verify", "--receipts", "nowhere"], 2, "cannot be read"),
        (["settle", "a", "--all", "--hold", "7"], 2, "not a hold"),
        (["create", "a", "--epsilon", "1", "--delta", "1e-6"], 2, "already"),
        (["create", "c", "--epsilon", "1", "--delta", "1e-6", "--mode", "odd"], 2, "mode="),
        (
            ["create", "c", "--epsilon", "1", "--delta", "1e-6", "--mode", "planned", "--plan", "PureDP(9)"],
            3,
            "the plan is",
        ),
        (["upgrade", "--spender", "me"], 2, "PostgreSQL"),
        (["import", "nowhere"], 2, "cannot be read"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else None,
)
def test_what_goes_wrong(shell: Shell, words: list[str], code: int, said: str) -> None:
    shell("create", "a", "--epsilon", "1", "--delta", "1e-6")
    shell("create", "expired", "--epsilon", "1", "--delta", "1e-6", "--expires", "2020-01-01")
    before = shell("export")
    assert said in shell(*words, code=code)
    assert shell("export") == before


def test_every_refusal_is_an_answer_in_json(shell: Shell) -> None:
    shell("create", "a", "--epsilon", "1", "--delta", "1e-6")
    shell("close", "a")
    for words in (("freeze", "a"), ("thaw", "a"), ("close", "a"), ("grant", "a", "team", "--share", "1/2")):
        assert "is closed" in json.loads(_out(shell, *words, "--json", code=3))["refused"]


@pytest.mark.parametrize("out", [">&-", "> /dev/full", "| true"])
def test_what_was_written_is_said_where_it_can_be_read(shell: Shell, out: str) -> None:
    """A closed or full standard output is no reason to think that nothing was charged."""
    shell("create", "a", "--epsilon", "1", "--delta", "1e-6")
    command = f"{sys.executable} -m cumulant ledger spend sqlite:///budget.db a 'Gaussian(sigma=50)' --json {out}"
    done = subprocess.run(
        ["bash", "-c", f"{command}; echo ${{PIPESTATUS[0]}} >&2"], capture_output=True, text=True, check=True
    )
    assert done.stderr.rstrip().endswith("0")
    assert len(shell("history", "a", "--json").split('"kind"')) == 3
    if out != "| true":  # that reader may or may not have left before
        assert "It was written, and the answer could not be printed. Receipt: a 1:" in done.stderr


@pytest.mark.parametrize("suffix", ["", "-wal", "-shm", "-journal", ".lock"])
def test_an_export_does_not_damage_its_ledger(shell: Shell, suffix: str) -> None:
    """With --out budget.db-wal, where no such file was left, the export stood where SQLite looks for entries."""
    shell("create", "a", "--epsilon", "1", "--delta", "1e-6")
    shell("create", "b", "--epsilon", "1", "--delta", "1e-6")
    Path(f"budget.db{suffix}").unlink(missing_ok=True) if suffix else None
    assert "name another file for the output" in shell("export", "--out", f"./budget.db{suffix}", code=2)
    assert "2 entries of 2 accounts" in shell("verify")


def test_an_export_does_not_damage_another_ledger(shell: Shell, tmp_path: Path) -> None:
    shell("create", "a", "--epsilon", "1", "--delta", "1e-6")
    with closing(sqlite3.connect("other.db")) as other:
        other.execute("CREATE TABLE t (a)")
    assert "belongs to a database, which would be damaged" in shell("export", "--out", "other.db-journal", code=2)
    assert not Path("other.db-journal").exists()
    shell("export", "--out", "notes-journal")


def test_outputs_that_are_full_or_closed(shell: Shell) -> None:
    """A spend succeeds where nobody can be told; a list that has no room is one sentence."""
    shell("create", "a", "--epsilon", "1", "--delta", "1e-6")
    command = [sys.executable, "-m", "cumulant", "ledger"]
    spend = shlex.join([*command, "spend", shell.url, "a", STEP])
    assert subprocess.run(["bash", "-c", f"{spend} >&- 2>&-"], check=False).returncode == 0
    assert len(shell.json("history", "a")) == 2
    for words in (["history", shell.url, "a"], ["export", shell.url]):
        full = f"{shlex.join([*command, *words])} > /dev/full"
        done = subprocess.run(["bash", "-c", full], capture_output=True, text=True, check=False)
        assert done.returncode == 1
        assert done.stderr.startswith("error: the output could not be written: No space left")
        assert len(done.stderr.splitlines()) == 1


def test_names_on_a_terminal_without_accents(shell: Shell) -> None:
    shell("create", "größe", "--epsilon", "1", "--delta", "1e-6")
    for words in ("status sqlite:///budget.db", "history sqlite:///budget.db größe", "verify sqlite:///budget.db"):
        done = subprocess.run(
            [sys.executable, "-m", "cumulant", "ledger", *words.split()],
            capture_output=True,
            check=True,
            env=os.environ | {"PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"},
        )
        assert done.stderr == b""
        assert done.stdout.isascii()


def test_signatures_by_strangers_and_none(shell: Shell) -> None:
    Path("mine").write_text("hmac mine " + "11" * 32, encoding="ascii")
    Path("theirs").write_text("hmac theirs " + "22" * 32, encoding="ascii")
    shell("create", "signed", "--epsilon", "1", "--delta", "1e-6", "--keys", "theirs")
    assert "not among those given" in shell("verify", "--keys", "mine", code=4)
    assert "1 signatures by keys that are not at hand" in shell("verify", "--keys", "mine", "--allow-unknown-signers")
    shell("create", "plain", "--epsilon", "1", "--delta", "1e-6")
    assert "--allow-unsigned" in shell("spend", "plain", STEP, "--keys", "theirs", code=1)
    shell("spend", "plain", STEP, "--keys", "theirs", "--allow-unsigned")
    assert shell.json("verify", "--keys", "theirs")["unsigned"] == ["plain"]


def test_broken_states(shell: Shell, tmp_path: Path) -> None:
    assert "there is no ledger" in shell("status", code=1)
    shell("create", "a", "--epsilon", "1", "--delta", "1e-6")
    shell("spend", "a", STEP)
    with sqlite3.connect("budget.db") as database:
        database.execute("UPDATE meta SET value = '99' WHERE name = 'schema'")
    database.close()
    assert "schema 99" in shell("status", code=1)
    with sqlite3.connect("budget.db") as database:
        database.execute("UPDATE meta SET value = '2' WHERE name = 'schema'")
        database.execute("DROP TRIGGER entries_stay")
        database.execute("UPDATE entry SET body = replace(body, '50', '51') WHERE seq = 1")
    database.close()
    assert "broken at entry 1 of 'a'" in shell("verify", code=4)
    assert json.loads(_out(shell, "verify", "--json", code=4))["seq"] == 1
    assert "was changed" in shell("spend", "a", STEP, code=4)
    for path in tmp_path.glob("budget.db*"):
        path.unlink()
    Path("budget.db").write_bytes(b"SQLite format 3\0" + os.urandom(4096))
    assert "not a ledger, or damaged" in shell("status", code=4)
    Path("budget.db").write_bytes(b"something else entirely" * 100)
    assert "not a ledger, or damaged" in shell("verify", code=4)


def _out(shell: Shell, *words: str, code: int) -> str:
    assert app.answer(["ledger", words[0], shell.url, *words[1:]]) == code
    return shell.capsys.readouterr().out


def _err(shell: Shell, *words: str) -> str:
    assert app.answer(["ledger", words[0], shell.url, *words[1:]]) == 0
    return shell.capsys.readouterr().err


def test_help_has_examples(capsys: pytest.CaptureFixture[str]) -> None:
    taking, governing = "spend hold settle release", "create grant freeze thaw close reprice upgrade"
    for command in f"{taking} {governing} status history verify export import head".split():
        assert app.answer(["ledger", command, "--help"]) == 0
        out = capsys.readouterr().out
        assert f"cumulant ledger {command}" in out
        assert "--json" in out


# ---- history


@pytest.fixture(scope="module")
def thousands(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A ledger of 2,500 spends, written once; each test gets a copy."""
    path = tmp_path_factory.mktemp("long") / "budget.db"
    ledger = Ledger(f"sqlite:///{path}")
    account = ledger.create("a", epsilon=1, delta="1e-6")
    account.spend_all(["Gaussian(sigma=5000)"] * 2500, keys=[f"k{n}" for n in range(1, 2501)])
    with sqlite3.connect(path) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    connection.close()
    return path


@pytest.fixture
def long(shell: Shell, thousands: Path) -> Account:
    shutil.copy(thousands, "budget.db")
    return Ledger(shell.url).account("a")


def test_a_history_in_parts(shell: Shell, long: Account) -> None:
    *lines, _ = shell("history", "a", "--last", "3").splitlines()
    assert [line.split()[0] for line in lines] == ["entry", "2498", "2499", "2500"]
    assert lines[1].endswith("Gaussian(sigma=5000) (k2498)")
    assert [entry["seq"] for entry in shell.json("history", "a", "--start", "2499")] == [2499, 2500]
    assert [entry["seq"] for entry in shell.json("history", "a", "--start", "2499", "--last", "1")] == [2500]
    assert len(shell.json("history", "a")) == 2501
    assert shell.json("history", "a", "--last", "0") == []
    today = next(long.history()).time
    assert len(shell.json("history", "a", "--since", today)) == 2501
    assert len(shell.json("history", "a", "--since", today[:10])) == 2501
    assert shell.json("history", "a", "--since", "2099-01-01") == []
    assert "since='yesterday' must be a date or a time" in shell("history", "a", "--since", "yesterday", code=2)
    assert "last=-1 must be" in shell("history", "a", "--last", "-1", code=2)
    assert [entry.seq for entry in long.newest()] == list(range(2500, -1, -1))
    assert [entry.seq for entry in long.newest(2)] == [1, 0]


class Sink(io.TextIOBase):
    """A standard output that keeps its first line only."""

    def __init__(self) -> None:
        self.first, self.lines = "", 0

    def write(self, text: str) -> int:
        self.first, self.lines = self.first or text, self.lines + text.count("\n")
        return len(text)


def test_the_first_line_of_a_history_loads_little(shell: Shell, long: Account) -> None:
    """Imports are what the first line waits for; time itself is not asserted."""
    heavy = ["scipy.special", "rich", "numpy.random", "cumulant.training", "cumulant.archives", "cumulant.plotting"]
    words = ["cumulant", "ledger", "history", shell.url, "a"]
    code = (
        f"import sys\nfrom cumulant.cli import main\nsys.argv = {words!r}\n"
        f"try:\n    main()\nexcept SystemExit as end:\n    print(end.code, [name for name in {heavy!r} if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "0 []"


@pytest.mark.parametrize("show", [tables.history, tables.history_json])
def test_a_history_is_printed_as_it_is_read(show: Any, long: Account, monkeypatch: pytest.MonkeyPatch) -> None:
    """Something is out before the second entry is read; twice the entries take no more memory."""
    sink = Sink()
    monkeypatch.setattr("sys.stdout", sink)

    def read(times: int) -> Iterator[Entry]:
        for _ in range(times):
            for number, entry in enumerate(long.history()):
                assert number < 1 or sink.first
                yield entry

    peaks = []
    for times in (1, 2):
        tracemalloc.start()
        parts = (long._writer.policy(long.name)[1].rule.used,) if show is tables.history else ()
        show(read(times), times * 2501, *parts)
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert sink.lines >= 3 * 2500
    assert peaks[1] < 1.2 * peaks[0] < 20_000_000
