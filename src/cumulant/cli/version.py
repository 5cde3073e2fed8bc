"""The version that `cumulant --version` prints: with its commit in a checkout of a version that is not released."""

from __future__ import annotations

import re
from importlib.metadata import version
from pathlib import Path

COMMIT_DIGITS = 7
"""Hexadecimal digits of a commit that are shown (convention: as many as git shows)."""

_HEAD_BYTES = 4096
"""Bytes of the changelog that are read: the newest release stands at its beginning."""


def version_stamp(root: Path | None = None) -> str:
    """Return the version of the package; an unreleased checkout adds its commit, such as 1.0.0rc1+gabc1234.

    Files alone are read, so it works without git. An installed package has no checkout, and its version is printed as it is.
    """
    place = Path(__file__).resolve().parents[3] if root is None else root
    number = version("cumulant")
    try:
        with (place / "CHANGELOG.md").open(encoding="utf-8") as file:
            unreleased = f"## [{number}] - unreleased" in file.read(_HEAD_BYTES)
        commit = head_commit(place / ".git") if unreleased else ""
    except (OSError, ValueError):
        return number
    return f"{number}+g{commit[:COMMIT_DIGITS]}" if commit else number


def head_commit(git: Path) -> str:
    """Return the commit that is checked out, from the files of git; empty where they do not say it."""
    if git.is_file():  # a worktree has a file that names its folder
        git = git.parent / git.read_text(encoding="utf-8").strip().removeprefix("gitdir: ")
    head = (git / "HEAD").read_text(encoding="utf-8").strip()
    if not head.startswith("ref: "):
        return _as_commit(head)
    name = head.removeprefix("ref: ")
    shared = git / "commondir"
    homes = [git, git / shared.read_text(encoding="utf-8").strip()] if shared.is_file() else [git]
    for home in homes:
        if (home / name).is_file():
            return _as_commit((home / name).read_text(encoding="utf-8").strip())
        if (home / "packed-refs").is_file():
            packed = (home / "packed-refs").read_text(encoding="utf-8")
            if (found := re.search(rf"^([0-9a-f]+) {re.escape(name)}$", packed, re.MULTILINE)) is not None:
                return _as_commit(found[1])
    return ""


def _as_commit(text: str) -> str:
    """Return the text if it is a whole commit; else nothing.

    >>> _as_commit("0123456789" * 4)[:7], _as_commit("ref: refs/heads/main")
    ('0123456', '')
    """
    return text if re.fullmatch(r"[0-9a-f]{40,64}", text) else ""
