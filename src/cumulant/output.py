"""Files that are written whole or not at all.

They are written beside their target, synced, then renamed onto it.
"""

from __future__ import annotations

import os
import secrets
import stat
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from io import TextIOWrapper
from pathlib import Path
from typing import Any

from cumulant.errors import InputError

_MODE = 0o666
"""The mode of a new file, before the umask of the process; convention of POSIX."""
_DATABASE = b"SQLite format 3\0"
_BESIDE = ("-wal", "-shm", "-journal")
"""Endings of the files that SQLite keeps beside a database, and may read or delete at any time."""
_STREAMS = ("/dev/", "/proc/")
"""Places that name something else than a file: /dev/stdout, /dev/fd/3."""


@contextmanager
def open_output(path: str | Path, inputs: Iterable[str | Path] = (), *, binary: bool = False) -> Iterator[Any]:
    """Open a new file that takes the place of `path` when the block ends without an exception.

    Until then, and after an exception, what was there stays as it was. `inputs` are files that are being read: writing onto
    one of them is an InputError, and so is writing onto a database. Text is UTF-8 with line ends as they are written.

    >>> import tempfile
    >>> place = Path(tempfile.mkdtemp()) / "numbers.txt"
    >>> with open_output(place) as file:
    ...     _ = file.write("1 2 3")
    >>> with open_output(place) as file:
    ...     raise ValueError("half of it")
    Traceback (most recent call last):
    ...
    ValueError: half of it
    >>> place.read_text(), len(list(place.parent.iterdir()))
    ('1 2 3', 1)
    """
    target = Path(os.path.realpath(path))  # a link stays a link
    there = _status(path)
    check_target(path, inputs)
    if there is not None and (not stat.S_ISREG(there.st_mode) or str(path).startswith(_STREAMS)):
        # a pipe or a terminal cannot be replaced, only written to
        with open(path, "ab") as raw, _encoded(raw, binary) as file:
            yield file
        return
    part = target.with_name(f".{secrets.token_hex(8)}.part")
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_CLOEXEC", 0)
    try:
        descriptor = os.open(part, flags, _MODE)
    except OSError as error:
        raise InputError(f"{path} cannot be written: {error.strerror}; name another place") from error
    try:
        with os.fdopen(descriptor, "wb") as raw:
            if there is not None:
                with suppress(OSError):
                    os.chmod(part, stat.S_IMODE(there.st_mode))
            with _encoded(raw, binary) as file:
                yield file
            raw.flush()
            os.fsync(raw.fileno())
        os.replace(part, target)
    except BaseException:
        with suppress(OSError):
            os.unlink(part)
        raise
    sync_folder(target.parent)


def write_output(path: str | Path, text: str, inputs: Iterable[str | Path] = ()) -> None:
    """Write a text as a whole file; see `open_output`."""
    with open_output(path, inputs) as file:
        file.write(text)


def check_target(path: str | Path, inputs: Iterable[str | Path] = ()) -> None:
    """Raise InputError if `path` names one of these inputs, a database, or a file that SQLite keeps beside one."""
    there, place = _status(path), os.path.realpath(path)
    if there is not None and not stat.S_ISREG(there.st_mode):
        return
    if place in {os.path.realpath(each) for each in inputs}:  # also where it does not exist yet
        raise InputError(f"{path} is read by the same command; name another file for the output")
    for suffix in _BESIDE:
        if place.endswith(suffix) and _is_database(Path(place.removesuffix(suffix))):
            raise InputError(f"{path} belongs to a database, which would be damaged; name another file for the output")
    if there is None:
        return
    for each in inputs:
        read = _status(each)
        if read is not None and (read.st_dev, read.st_ino) == (there.st_dev, there.st_ino):
            raise InputError(f"{path} is read by the same command; name another file for the output")
    if _is_database(Path(path)):
        raise InputError(f"{path} is a database, which would be lost; name another file for the output")


def _is_database(path: Path) -> bool:
    """Check that there is an SQLite database in a file, without opening it where -wal or -shm says so.

    This process may be using it.

    Closing any handle of such a file would end the locks that this process has on it.
    """
    if not path.is_file():
        return False
    if any(Path(f"{path}{suffix}").exists() for suffix in ("-wal", "-shm")):
        return True
    try:
        with open(path, "rb") as file:
            return file.read(len(_DATABASE)) == _DATABASE
    except OSError:
        return False


def sync_folder(folder: Path) -> None:
    """Make a rename in a folder survive a power cut, where the system can."""
    with suppress(OSError):  # Windows opens no folders
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def _status(path: str | Path) -> os.stat_result | None:
    try:
        return os.stat(path)
    except (FileNotFoundError, NotADirectoryError):
        return None


@contextmanager
def _encoded(raw: Any, binary: bool) -> Iterator[Any]:
    """Yield the file as it is, or as UTF-8 text."""
    if binary:
        yield raw
        return
    text = TextIOWrapper(raw, encoding="utf-8", newline="")
    try:
        yield text
        text.flush()
    finally:
        with suppress(OSError, ValueError):  # what could not be flushed is lost with the file
            text.detach()
