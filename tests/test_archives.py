"""A folder that proves itself, and says which of its files were changed."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

import cumulant as cm
from cumulant.archives import verified
from cumulant.cli.app import answer

RUN = "Gaussian(sigma=2) @ Poisson(rate=1%) * 100"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("archive") / "release"
    assert answer(["archive", RUN, "--delta", "1e-6", "--out", str(place)]) == 0
    return place


def copied(folder: Path, to: Path) -> Path:
    to.mkdir()
    for file in folder.iterdir():
        (to / file.name).write_bytes(file.read_bytes())
    return to


def test_everything_is_in_the_folder(folder: Path) -> None:
    names = {"guarantee.json", "statement.txt", "versions.json", "again.sh", "contents.json", "plot.png", "plot.csv"}
    assert {file.name for file in folder.iterdir()} == names
    found = cm.Guarantee.from_json((folder / "guarantee.json").read_text())
    assert found == cm.parse(RUN).guarantee(delta="1e-6")
    assert (folder / "statement.txt").read_text() == found.explain() + "\n"
    assert json.loads((folder / "versions.json").read_text())["cumulant"] == cm.__version__
    assert (folder / "plot.png").read_bytes().startswith(b"\x89PNG")
    again = (folder / "again.sh").read_text()
    assert f"cumulant epsilon '{cm.parse(RUN)}' --delta 1e-6 --method best --accuracy 0.001\n" in again
    assert subprocess.run(["sh", "-n", str(folder / "again.sh")], check=False).returncode == 0


def test_it_is_verified(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert verified(folder).holds
    assert answer(["verify", str(folder)]) == 0
    out = capsys.readouterr().out
    assert out.startswith("  Confirmed: ε = ")
    assert "  Files        all as written\n" in out
    assert answer(["verify", str(folder), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["changed"] == []


@pytest.mark.parametrize("name", ["statement.txt", "plot.csv", "again.sh"])
def test_a_changed_file_is_named(folder: Path, tmp_path: Path, name: str, capsys: pytest.CaptureFixture[str]) -> None:
    place = copied(folder, tmp_path / "copy")
    (place / name).write_text((place / name).read_text() + "\n")
    assert answer(["verify", str(place)]) == 1
    assert f"CHANGED since written, or missing: {name}\n" in capsys.readouterr().out
    (place / name).unlink()
    (place / "more.txt").write_text("x")
    assert verified(place).changed == tuple(sorted((name, "more.txt")))


def test_a_statement_beside_a_changed_guarantee_is_not_called_changed(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    place = copied(folder, tmp_path / "copy")
    state = json.loads((place / "guarantee.json").read_text())
    (place / "guarantee.json").write_text(json.dumps(state | {"epsilon": state["epsilon"] + 1}))
    assert answer(["verify", str(place)]) == 1
    said = " ".join(capsys.readouterr().out.split())
    assert "CHANGED since written, or missing: guarantee.json ▸ statement.txt no longer matches guarantee.json" in said
    found = verified(place)
    assert (found.changed, found.mismatched) == (("guarantee.json",), ("statement.txt",))


@pytest.mark.parametrize("name", ["statement.txt", "again.sh"])
def test_words_that_were_changed_are_found_behind_repaired_digests(folder: Path, tmp_path: Path, name: str) -> None:
    from hashlib import sha256

    from cumulant.archives import describe_result

    place = copied(folder, tmp_path / "copy")
    (place / name).write_text("epsilon = 0.01\n")
    contents = json.loads((place / "contents.json").read_text())
    contents[name] = sha256((place / name).read_bytes()).hexdigest()
    (place / "contents.json").write_text(json.dumps(contents))
    found = verified(place)
    assert not found.holds
    assert (found.changed, found.mismatched) == ((), (name,))
    state = json.loads((place / "guarantee.json").read_text()) | {"cumulant": "0.0.1"}
    (place / "guarantee.json").write_text(json.dumps(state))
    contents["guarantee.json"] = sha256((place / "guarantee.json").read_bytes()).hexdigest()
    (place / "contents.json").write_text(json.dumps(contents))
    assert any(
        "its words were not compared with its numbers" in sentence for sentence in describe_result(verified(place))
    )


@pytest.mark.parametrize("name", ["contents.json", "guarantee.json"])
def test_a_pipe_is_not_waited_for(folder: Path, tmp_path: Path, name: str) -> None:
    import os

    place = copied(folder, tmp_path / "copy")
    (place / name).unlink()
    os.mkfifo(place / name)
    with pytest.raises(cm.InputError, match="not an ordinary file"):
        verified(place)


def test_a_smaller_epsilon_is_not_confirmed(folder: Path, tmp_path: Path) -> None:
    place = copied(folder, tmp_path / "copy")
    state = json.loads((place / "guarantee.json").read_text())
    state["epsilon"] *= 0.9
    (place / "guarantee.json").write_text(json.dumps(state))
    assert not verified(place).check.holds


CLAIMED = "Gaussian(sigma=4) * 10"  # 3.7472 at 1e-6: one Gaussian of sigma 4 / sqrt(10)


@pytest.mark.parametrize(("claim", "verdict", "code"), [("3", "false", 1), ("5", "holds", 0)])
def test_a_claim_is_judged_and_kept(
    claim: str, verdict: str, code: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    place = tmp_path / "review"
    line = ["archive", CLAIMED, "--delta", "1e-6", "--claim", claim, "--out", str(place), "--no-plot"]
    assert answer(line) == code
    assert f"Claim        ε = {claim} {'is ' if code else ''}{verdict}" in capsys.readouterr().out
    stored = json.loads((place / "claim.json").read_text())
    assert (stored["verdict"], stored["claimed"], stored["run"]) == (verdict, float(claim), CLAIMED)
    assert (place / "statement.txt").read_text().startswith(f"{verdict.capitalize()}: ({claim}, 1e-6)")
    assert f"cumulant check '{CLAIMED}' --epsilon {claim}.0 --delta 1e-6" in (place / "again.sh").read_text()
    found = verified(place)
    assert found.holds
    assert found.claim is not None
    assert found.claim.verdict == verdict
    assert answer(["verify", str(place)]) == 0
    assert f"ε = {claim} {'is ' if code else ''}{verdict}" in capsys.readouterr().out
    assert answer(["verify", str(place), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["claim"]["verdict"] == verdict


@pytest.mark.parametrize(
    ("name", "value"), [("verdict", "holds"), ("claimed", 5.0), ("run", "PureDP(1)"), ("delta", 1.0)]
)
def test_a_forged_verdict_is_found_behind_repaired_digests(name: str, value: object, tmp_path: Path) -> None:
    from hashlib import sha256

    place = tmp_path / "review"
    cm.archive(CLAIMED, place, delta="1e-6", claim=3, plot=False)
    forged = json.loads((place / "claim.json").read_text()) | {name: value}
    (place / "claim.json").write_text(json.dumps(forged))
    contents = json.loads((place / "contents.json").read_text())
    contents["claim.json"] = sha256((place / "claim.json").read_bytes()).hexdigest()
    (place / "contents.json").write_text(json.dumps(contents))
    found = verified(place)
    assert not found.holds
    assert (found.changed, "claim.json" in found.mismatched) == ((), True)


def test_a_claim_that_is_none(tmp_path: Path) -> None:
    with pytest.raises(cm.InputError, match="add delta="):
        cm.archive(CLAIMED, tmp_path / "x", epsilon=1, claim=3, plot=False)
    with pytest.raises(cm.InputError, match="epsilon=-1"):
        cm.archive(CLAIMED, tmp_path / "x", delta="1e-6", claim=-1, plot=False)
    cm.archive(CLAIMED, tmp_path / "y", delta="1e-6", claim=3, plot=False)
    for text in ("[]", "{}", "no", '{"claimed": true}', '{"claimed": "3"}'):
        (tmp_path / "y" / "claim.json").write_text(text)
        with pytest.raises(cm.InputError, match="is no claim"):
            verified(tmp_path / "y")
    assert not (tmp_path / "x").exists()


def test_refusals(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for arguments, said in (
        (["archive", "PureDP(1)", "--delta", "0", "--out", str(folder)], "is there already and not empty"),
        (["archive", "PureDP(1)", "--out", str(tmp_path / "x")], "exactly one of delta and epsilon"),
        (["archive", "PureDP(1)", "--delta", "0", "--out", "/dev/null/x"], "cannot be written"),
        (["verify", str(tmp_path)], "is no archive"),
    ):
        assert answer(arguments) == 2
        assert said in capsys.readouterr().err
    with pytest.raises(cm.NotationError):
        cm.archive(cm.from_rdp(rdp=lambda order: order, name="mine"), tmp_path / "y", delta=0.1)
    assert not list(tmp_path.iterdir())


def test_an_archive_says_what_one_record_is(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """As an account of the ledger does; the words are checked like every other file."""
    folder = tmp_path / "a"
    assert (
        answer(["archive", "PureDP(1) * 3", "--delta", "0", "--unit", "client", "--out", str(folder), "--no-plot"]) == 0
    )
    assert "one record is one client" in capsys.readouterr().out
    assert (folder / "statement.txt").read_text(encoding="utf-8").endswith("One record is one client.\n")
    assert verified(folder).holds
    assert verified(folder).unit == "client"
    assert answer(["verify", str(folder), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["unit"] == "client"
    (folder / "unit.json").write_text('{"unit": "user"}\n', encoding="utf-8")
    assert (verified(folder).changed, verified(folder).mismatched) == (("unit.json",), ("statement.txt",))
    (folder / "unit.json").write_text('{"unit": "<b>"}\n', encoding="utf-8")
    with pytest.raises(cm.InputError, match="is no unit"):
        verified(folder)
    for wrong in ("", " ", "<b>", "a\nb", 3):
        with pytest.raises(cm.InputError, match="must be plain words"):
            cm.archive("PureDP(1)", tmp_path / "b", delta=0, unit=wrong)  # type: ignore[arg-type]
