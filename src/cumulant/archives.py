"""A guarantee in a folder of its own: its statement, its proof, a picture, versions.

The folder also says how to prove it again.
"""

from __future__ import annotations

import json
import platform
import secrets
import shlex
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from hashlib import sha256
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from cumulant.accounting import text as statement
from cumulant.accounting.check import Check
from cumulant.accounting.choices import Method
from cumulant.accounting.guarantee import Guarantee
from cumulant.accounting.question import DEFAULT_ACCURACY, DEFAULT_METHOD
from cumulant.conversion.verify import Verification
from cumulant.domains import Number, plain_words
from cumulant.errors import CumulantError, InputError, shown
from cumulant.mechanisms.mechanism import Expression
from cumulant.notation import parse
from cumulant.output import sync_folder, write_output
from cumulant.plotting.sheet import picture

# Names of the files in an archive; convention: archives of earlier releases have them too.

GUARANTEE = "guarantee.json"
"""The guarantee with its plan, from which it is proved again."""

CLAIM = "claim.json"
"""The verdict about a claim; only where one was given."""

UNIT = "unit.json"
"""The file with the name of one record; an archive has it if its writer gave a name."""

STATEMENT = "statement.txt"
"""The guarantee in words, for a reader without the package."""

VERSIONS = "versions.json"
"""The versions of the packages that computed it."""

PROOF_SCRIPT = "again.sh"
"""The commands that prove it again."""

CONTENTS = "contents.json"
"""The SHA-256 of every other file, so that a change is seen; written last."""

_PACKAGES = ("cumulant", "numpy", "scipy", "python-flint")
"""Packages whose versions are stored: those that compute (convention)."""

_PICTURED = "1e-8"
"""The delta of a picture, where an epsilon was given."""


@dataclass(frozen=True, slots=True)
class Verified:
    """The result of opening an archive again.

    It has the guarantee, proved once more, and the files that were changed.
    """

    guarantee: Guarantee
    check: Verification
    lower: bool | None
    changed: tuple[str, ...]
    release: str = ""
    """The release that wrote it, if it is another one: its words were not compared with those of this release."""
    claim: Check | None = None
    """The claim that the archive judges, judged again; None if it has none."""
    unit: str = ""
    """The name of one record, such as "client"; empty if nobody gave one."""
    mismatched: tuple[str, ...] = ()
    """Files that are as their SHA-256 says, and that do not say what the guarantee leads to."""

    @property
    def holds(self) -> bool:
        """Return True if the guarantee is confirmed, no file was changed and all say what it leads to."""
        return self.check.holds and self.lower is not False and not self.changed and not self.mismatched


def archive(
    run: Expression | str,
    out: str | Path,
    *,
    delta: Number | None = None,
    epsilon: Number | None = None,
    claim: Number | None = None,
    unit: str | None = None,
    method: Method = DEFAULT_METHOD,
    accuracy: Number = DEFAULT_ACCURACY,
    plot: bool = True,
) -> Guarantee:
    """Put the guarantee of a run into a new folder `out`.

    The folder has everything that a reader needs in years.

    The folder holds the statement in words, the guarantee as JSON, a picture with its numbers (`plot=False` leaves it out), the
    versions of what computed it, a command that proves it again, and the SHA-256 of each file. `cumulant verify DIR`, or
    `cumulant.archives.verified`, reads it. `claim` is an epsilon of somebody else at `delta`: the folder then also holds the
    verdict about it, as JSON, in the statement and in the picture. `unit` says what one record is, such as "client".

    >>> import cumulant as cm, tempfile, os
    >>> folder = tempfile.mkdtemp() + "/pure"
    >>> found = cm.archive("PureDP(1) * 3", folder, delta=0, plot=False)
    >>> sorted(os.listdir(folder))
    ['again.sh', 'contents.json', 'guarantee.json', 'statement.txt', 'versions.json']
    >>> from cumulant.archives import verified
    >>> verified(folder).holds
    True
    """
    described = parse(run) if isinstance(run, str) else run
    if not isinstance(described, Expression):
        raise InputError(f"{type(run).__name__} is nothing that ran; give a run, or its text")
    described.notation()  # what has no text cannot be proved again
    if not isinstance(out, str | Path):
        raise InputError(f"out={shown(out)} must be the name of a folder")
    folder = Path(out)
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise InputError(f"out={shown(str(out))} is there already and not empty; name a new folder")
    if claim is not None and delta is None:
        raise InputError("claim=… is an epsilon at a delta; add delta=…")
    named = "" if unit is None else plain_words("unit", unit)
    found = described.guarantee(delta=delta, epsilon=epsilon, method=method, accuracy=accuracy)
    judged = None if claim is None or delta is None else described.check(epsilon=claim, delta=delta, accuracy=accuracy)
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with _new_folder(folder) as part:
            write_output(part / GUARANTEE, found.to_json() + "\n")
            if judged is not None:
                write_output(part / CLAIM, judged.to_json() + "\n")
            if named:
                write_output(part / UNIT, json.dumps({"unit": named}) + "\n")
            write_output(part / STATEMENT, _statement(found, judged, named))
            write_output(part / VERSIONS, json.dumps(_versions(), indent=1) + "\n")
            write_output(part / PROOF_SCRIPT, _proof_script(found, method, judged))
            if plot:
                given = found.delta if 0 < found.delta < 1 and found.asked == "delta" else _PICTURED
                picture(described, given, "all", part / "plot.png", claim=claim)
            digests = {file.name: _digest(file) for file in sorted(part.iterdir())}
            write_output(part / CONTENTS, json.dumps(digests, indent=1) + "\n")
    except (OSError, ValueError) as error:
        if isinstance(error, CumulantError):
            raise
        raise InputError(f"out={shown(str(out))} cannot be written: {error}; name another folder") from error
    return found


@contextmanager
def _new_folder(folder: Path) -> Iterator[Path]:
    """Make a folder that takes the place of its target, whole, when the block ends.

    An exception leaves the target as it was.
    """
    part = folder.with_name(f".{secrets.token_hex(8)}.part")
    part.mkdir()
    try:
        yield part
        if (
            folder.exists()
        ):  # and empty: it may be a place that cannot be renamed, so files move, the list of contents last
            for file in sorted(part.iterdir(), key=lambda file: file.name == CONTENTS):
                file.replace(folder / file.name)
            part.rmdir()
        else:
            part.replace(folder)
    except BaseException:
        shutil.rmtree(part, ignore_errors=True)
        raise
    sync_folder(folder.parent)


def verified(folder: str | Path) -> Verified:
    """Prove the guarantee of an archive again and compare every file with its SHA-256.

    The proof starts from the exact inputs.

    The statement and the script are also compared with those that the proved guarantee leads to, if this release wrote them.
    """
    if not isinstance(folder, str | Path):
        raise InputError(f"folder={shown(folder)} must be the name of a folder")
    place = Path(folder)
    try:
        listed: Any = json.loads(_text(place / CONTENTS))
        text = _text(place / GUARANTEE)
        if not isinstance(listed, dict):
            raise ValueError("its list of contents is no list of files")
        here = {file.name for file in place.iterdir() if file.is_file()} - {CONTENTS}
        same = {name for name in here & listed.keys() if _digest(place / name) == listed[name]}
    except (OSError, ValueError, RecursionError) as error:
        raise InputError(f"{place} is no archive ({error}); give a folder that cumulant archive wrote") from error
    found = Guarantee.from_json(text)
    changed = (here | listed.keys()) - same
    mismatched: set[str] = set()
    release = json.loads(text).get("cumulant")
    ours = release == version("cumulant")
    judged = _judged_again(place / CLAIM, found) if CLAIM in here else None
    if judged is not None and judged[1] is False:
        mismatched.add(CLAIM)
    claim = None if judged is None else judged[0]
    unit = _read_unit(place / UNIT) if UNIT in here else ""
    expected = (
        {STATEMENT: _statement(found, claim, unit), PROOF_SCRIPT: _proof_script(found, found.method, claim)}
        if ours
        else {}
    )
    mismatched |= {name for name, words in expected.items() if name not in here or _read(place / name) != words}
    other = "" if ours else str(release)
    return Verified(
        found,
        found.verify(),
        found.lower_confirmed(),
        tuple(sorted(map(str, changed))),
        other,
        claim,
        unit,
        tuple(sorted(mismatched - changed)),
    )


def _judged_again(file: Path, found: Guarantee) -> tuple[Check, bool]:
    """Judge the stored claim again, about the run and at the delta of the guarantee; False if the file says otherwise."""
    question = found.proof.question
    try:
        stored: Any = json.loads(_text(file))
        claimed = stored["claimed"]
        if found.asked != "delta" or isinstance(claimed, bool) or not isinstance(claimed, int | float):
            raise ValueError("its claim is no epsilon at a delta")
    except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
        raise InputError(f"{file} is no claim ({error}); give a folder that cumulant archive wrote") from error
    judged = parse(found.run).check(epsilon=claimed, delta=question.value, accuracy=question.accuracy)
    same = ("verdict", "claimed", "delta", "relation", "run")
    return judged, all(stored.get(name) == judged.to_dict()[name] for name in same)


def _read_unit(file: Path) -> str:
    """Return the unit that an archive names; InputError where the file is none."""
    try:
        return plain_words("unit", json.loads(_text(file))["unit"])
    except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
        raise InputError(f"{file} is no unit ({error}); give a folder that cumulant archive wrote") from error


def describe_unit(unit: str) -> str:
    """Return what one record is, as a sentence; empty if nobody said.

    >>> describe_unit("client"), describe_unit("one hospital visit"), describe_unit("")
    ('One record is one client.', 'One record is one hospital visit.', '')
    """
    return f"One record is one {unit.removeprefix('one ')}." if unit else ""


def _statement(found: Guarantee, claim: Check | None, unit: str = "") -> str:
    """Return the words of an archive: those of the guarantee, after the verdict about a claim, and the unit."""
    verdict = "" if claim is None else " ".join(describe_claim(claim)) + "\n\n"
    named = f"{describe_unit(unit)}\n" if unit else ""
    return f"{verdict}{found.explain()}\n{named}"


def describe_claim(claim: Check) -> list[str]:
    """Describe the verdict about a claim, and its reason, in sentences."""
    numbers = (claim.claimed, claim.delta, claim.epsilon, claim.lower)
    return list(statement.verdict(claim.verdict, *numbers, claim.witness, claim.rigour))


def describe_files(found: Verified) -> list[str]:
    """Describe which files were changed and which no longer say what the guarantee does; empty if all are as written."""
    said = [f"CHANGED since written, or missing: {', '.join(found.changed)}"] if found.changed else []
    return said + [f"{name} no longer matches {GUARANTEE}" for name in found.mismatched]


def describe_result(found: Verified) -> list[str]:
    """Describe the result of opening an archive in sentences."""
    sentences = list(statement.confirmation(found.guarantee.proof, found.check, found.lower))
    files = describe_files(found)
    sentences[:0] = [f"{each}." for each in files] or ["Every file is as it was written."]
    if found.release:
        sentences.insert(
            max(len(files), 1),
            f"cumulant {shown(found.release)} wrote it: its words were not compared with its numbers.",
        )
    if found.claim is not None:
        sentences[:0] = describe_claim(found.claim)
    return [*sentences, describe_unit(found.unit)] if found.unit else sentences


def _text(file: Path) -> str:
    """Read an ordinary file; a pipe or a device would be waited for without end."""
    if not file.is_file():
        raise ValueError(f"{file.name} is missing or not an ordinary file")
    return file.read_text(encoding="utf-8")


def _read(file: Path) -> str | None:
    try:
        return file.read_text(encoding="utf-8")
    except ValueError:
        return None


def _digest(file: Path) -> str:
    return sha256(file.read_bytes()).hexdigest()


def _versions() -> dict[str, str]:
    known = {"python": sys.version.split()[0], "platform": platform.platform()}
    for name in _PACKAGES:
        try:
            known[name] = version(name)
        except PackageNotFoundError:
            known[name] = "unknown"
    return known


def _proof_script(found: Guarantee, method: str, claim: Check | None = None) -> str:
    """Return a script that proves the stored guarantee again, and asks the question anew."""
    question = found.proof.question
    ask = shlex.join(
        [
            "cumulant",
            question.wanted,
            found.run,
            f"--{question.asked}",
            question.value.text,
            "--method",
            method,
            "--accuracy",
            question.accuracy.text,
        ]
    )
    said = "# Proves the guarantee in this folder again, then asks the same question anew."
    judge = ""
    if claim is not None:
        given = ["--epsilon", repr(claim.claimed), "--delta", question.value.text, "--accuracy", question.accuracy.text]
        judge = shlex.join(["cumulant", "check", found.run, *given]) + "\n"
    return f'#!/bin/sh\n{said}\ncumulant verify "$(dirname "$0")"\n{ask}\n{judge}'
