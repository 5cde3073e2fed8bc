"""The version of a checkout that is not released has its commit, read from files alone."""

from __future__ import annotations

from importlib.metadata import version
from pathlib import Path

import pytest

from cumulant.cli.app import answer
from cumulant.cli.version import head_commit, version_stamp

NUMBER = version("cumulant")
COMMIT = "0123456789abcdef0123456789abcdef01234567"


def checkout(root: Path, head: str = "ref: refs/heads/main", state: str = "unreleased") -> Path:
    (root / ".git" / "refs" / "heads").mkdir(parents=True)
    (root / ".git" / "HEAD").write_text(f"{head}\n")
    (root / "CHANGELOG.md").write_text(f"# Changelog\n\n## [{NUMBER}] - {state}\n")
    return root


def test_a_branch_a_packed_branch_and_a_commit(tmp_path: Path) -> None:
    branch = checkout(tmp_path / "branch")
    (branch / ".git" / "refs" / "heads" / "main").write_text(f"{COMMIT}\n")
    assert version_stamp(branch) == f"{NUMBER}+g0123456"
    packed = checkout(tmp_path / "packed")
    (packed / ".git" / "packed-refs").write_text(
        f"# pack-refs\n{'f' * 40} refs/heads/mainly\n{COMMIT} refs/heads/main\n"
    )
    assert version_stamp(packed) == f"{NUMBER}+g0123456"
    assert version_stamp(checkout(tmp_path / "detached", COMMIT)) == f"{NUMBER}+g0123456"


def test_a_worktree(tmp_path: Path) -> None:
    main = checkout(tmp_path / "main")
    (main / ".git" / "refs" / "heads" / "side").write_text(COMMIT)
    inner = main / ".git" / "worktrees" / "side"
    inner.mkdir(parents=True)
    (inner / "HEAD").write_text("ref: refs/heads/side\n")
    (inner / "commondir").write_text("../..\n")
    side = tmp_path / "side"
    side.mkdir()
    (side / ".git").write_text(f"gitdir: {inner}\n")
    assert head_commit(side / ".git") == COMMIT


@pytest.mark.parametrize("broken", ["", "ref: refs/heads/none", "no commit"])
def test_what_git_does_not_say_is_left_out(broken: str, tmp_path: Path) -> None:
    assert version_stamp(checkout(tmp_path / "broken", broken)) == NUMBER


def test_a_release_and_a_package_have_no_commit(tmp_path: Path) -> None:
    assert version_stamp(checkout(tmp_path / "released", COMMIT, "2027-01-01")) == NUMBER
    assert version_stamp(tmp_path) == NUMBER


def test_the_shell_prints_it(capsys: pytest.CaptureFixture[str]) -> None:
    assert answer(["--version"]) == 0
    assert capsys.readouterr().out == f"cumulant {version_stamp()}\n"
