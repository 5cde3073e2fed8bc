"""Files are written whole or not at all, never onto an input, and by one function only."""

import ast
import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

import cumulant as cm
from cumulant.cli import app
from cumulant.output import open_output, write_output

SOURCE = Path(__file__).parents[1] / "src" / "cumulant"


def left(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


@pytest.mark.parametrize("error", [KeyboardInterrupt, OSError(28, "no space"), cm.InputError("no")])
def test_a_failure_leaves_what_was_there(tmp_path: Path, error: BaseException) -> None:
    place = tmp_path / "backup"
    place.write_text("old")

    def fail() -> None:
        with open_output(place) as file:
            file.write("new")
            file.flush()
            assert place.read_text() == "old"
            raise error

    with pytest.raises((KeyboardInterrupt, OSError, cm.InputError)):
        fail()
    assert (place.read_text(), left(tmp_path)) == ("old", ["backup"])


def test_a_kill_leaves_what_was_there(tmp_path: Path) -> None:
    place = tmp_path / "backup"
    place.write_text("old")
    program = (
        "import os, sys; from cumulant.output import open_output\n"
        "with open_output(sys.argv[1]) as file: file.write('new'); file.flush(); os.kill(os.getpid(), 9)"
    )
    assert subprocess.run([sys.executable, "-c", program, str(place)], check=False).returncode == -9
    assert place.read_text() == "old"


def test_a_full_disk_leaves_what_was_there(tmp_path: Path) -> None:
    place = tmp_path / "backup"
    place.write_text("old")
    program = (
        "import resource, signal, sys; from cumulant.output import write_output\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN); resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))\n"
        "try: write_output(sys.argv[1], 'new' * 1000)\n"
        "except OSError: sys.exit(5)"
    )
    assert subprocess.run([sys.executable, "-c", program, str(place)], check=False).returncode == 5
    assert (place.read_text(), left(tmp_path)) == ("old", ["backup"])


def test_modes_and_links_stay(tmp_path: Path) -> None:
    place, link = tmp_path / "one", tmp_path / "link"
    place.write_text("old")
    place.chmod(0o640)
    link.symlink_to(place)
    write_output(link, "new")
    assert link.is_symlink()
    assert (place.read_text(), stat.S_IMODE(place.stat().st_mode)) == ("new", 0o640)


def test_a_new_file_follows_the_umask(tmp_path: Path) -> None:
    before = os.umask(0o027)
    try:
        write_output(tmp_path / "file", "")
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "file").stat().st_mode) == 0o640


def test_a_pipe_is_written_to(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    reader = subprocess.Popen(["cat", str(tmp_path / "pipe")], stdout=subprocess.PIPE, text=True)
    write_output(tmp_path / "pipe", "new\n")
    assert reader.communicate(timeout=20)[0] == "new\n"
    assert stat.S_ISFIFO((tmp_path / "pipe").stat().st_mode)
    write_output("/dev/null", "new")
    assert stat.S_ISCHR(os.stat("/dev/null").st_mode)


def test_an_input_is_not_written_onto(tmp_path: Path) -> None:
    place, twin = tmp_path / "data", tmp_path / "twin"
    place.write_text("old")
    os.link(place, twin)
    for target in (place, twin, tmp_path / "." / "data"):
        with pytest.raises(cm.InputError, match="read by the same command"):
            write_output(target, "new", inputs=[place])
    assert place.read_text() == "old"


def test_a_place_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    with pytest.raises(cm.InputError, match="nowhere/file cannot be written: No such file"):
        write_output(tmp_path / "nowhere" / "file", "")


# ---- those who write


def test_an_export_does_not_empty_its_ledger(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    url = f"sqlite:///{tmp_path}/budget.db"
    ledger = cm.Ledger(url)
    ledger.create("patients", 1, "1e-6").spend("Gaussian(sigma=20)")
    other = cm.Ledger(f"sqlite:///{tmp_path}/other.db")
    other.create("patients", 1, "1e-6")
    (tmp_path / "keys").write_text("hmac a " + "07" * 32)
    for target in ("budget.db", "budget.db-wal", "budget.db-shm", "budget.db.lock", "other.db", "keys"):
        found = app.answer(["ledger", "export", url, "--out", str(tmp_path / target), "--keys", str(tmp_path / "keys")])
        assert found == 2, target
        assert "name another file" in capsys.readouterr().err
    assert ledger.verify()
    assert len(list(ledger.account("patients").history())) == 2


def test_a_typo_does_not_empty_the_last_backup(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    backup = tmp_path / "backup.jsonl"
    backup.write_text("the only copy")
    for url in (f"sqlite:///{tmp_path}/typo.db", "postgresql://127.0.0.1:1/typo", "typo"):
        assert app.answer(["ledger", "export", url, "--out", str(backup)]) in (1, 2)
    assert backup.read_text() == "the only copy"
    assert left(tmp_path) == ["backup.jsonl"]


def test_an_audit_does_not_write_its_numbers_onto_its_scores(tmp_path: Path) -> None:
    scores = tmp_path / "scores.csv"
    scores.write_text("member,score\n" + "1,0.5\n0,0.4\n" * 20)
    before = scores.read_text()
    assert app.answer(["audit", str(scores), "PureDP(1)", "--out", str(tmp_path / "scores.png")]) == 2
    assert scores.read_text() == before
    assert left(tmp_path) == ["scores.csv"]


def test_an_archive_that_fails_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("cumulant.archives.picture", full)
    with pytest.raises(cm.InputError, match="cannot be written"):
        cm.archive("PureDP(1)", tmp_path / "release", delta=0)
    assert left(tmp_path) == []
    monkeypatch.undo()
    (tmp_path / "empty").mkdir()
    for name in ("release", "empty"):
        cm.archive("PureDP(1)", tmp_path / name, delta=0, plot=False)
        assert "contents.json" in left(tmp_path / name)
    assert left(tmp_path) == ["empty", "release"]


# ---- nobody else


def writes(tree: ast.AST) -> list[int]:
    """Lines that write a file by other means: open for writing, write_text, write_bytes, or a picture to a path."""
    found = []
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call):
            continue
        name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        values = [
            each.value for each in [*node.args, *(k.value for k in node.keywords)] if isinstance(each, ast.Constant)
        ]
        modes = [
            value for value in values if isinstance(value, str) and len(value) <= 3 and set(value) <= set("rwaxbt+")
        ]
        if name in ("write_text", "write_bytes") or (
            name in ("open", "fdopen") and any(set(m) & set("wx+") for m in modes)
        ):
            found.append(node.lineno)
    return found


def test_one_function_writes_every_file() -> None:
    assert writes(
        ast.parse("from pathlib import Path\nPath('x').open('w')\nopen('y', mode='xb')\nPath('z').write_text('')")
    )
    found = {
        f"{path.relative_to(SOURCE)}:{line}"
        for path in sorted(SOURCE.rglob("*.py"))
        if path.name != "output.py"
        for line in writes(ast.parse(path.read_text(encoding="utf-8")))
    }
    assert found == set()
