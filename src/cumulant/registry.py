"""Classes by the name that the notation has for them, each loaded with its file."""

from __future__ import annotations

import re
from collections.abc import Iterator, MutableMapping
from functools import cache
from importlib import import_module
from typing import TypeVar

C = TypeVar("C")

FOLDERS = ("cumulant.sampling", "cumulant.mechanisms")
"""The packages whose files register a class, in the order in which names are listed."""


class Registry(MutableMapping[str, C]):
    """Registered classes by name: a name loads its file, and a list of all names loads every file.

    `ZeroConcentrated` is in `zero_concentrated.py`. A name without a file of its own, as `DirichletPosterior`, loads them all.
    """

    def __init__(self) -> None:
        self._known: dict[str, C] = {}

    def __setitem__(self, name: str, registered: C) -> None:
        self._known[name] = registered

    def __delitem__(self, name: str) -> None:
        del self._known[name]

    def __getitem__(self, name: str) -> C:
        if name not in self._known:
            _load(name)
        return self._known[name]

    def __iter__(self) -> Iterator[str]:
        _load_all()
        return iter(sorted(self._known, key=lambda name: _place(self._known[name])))

    def __len__(self) -> int:
        _load_all()
        return len(self._known)


@cache
def _files() -> dict[str, str]:
    """Return the module of every file in the folders, by the name of the file."""
    from pkgutil import iter_modules

    found = {folder: iter_modules(import_module(folder).__path__) for folder in FOLDERS}
    return {each.name: f"{folder}.{each.name}" for folder, files in found.items() for each in files}


def _load(name: str) -> None:
    """Load the file that is named after a class; all files if there is none."""
    file = re.sub("(?<=[a-z])(?=[A-Z])", "_", name).lower()
    if file in _files():
        import_module(_files()[file])
    else:
        _load_all()


def _load_all() -> None:
    for module in _files().values():
        import_module(module)


def _place(registered: object) -> int:
    """Return the place of a class in a list: that of its file; classes from elsewhere come last."""
    modules = list(_files().values())
    return modules.index(registered.__module__) if registered.__module__ in modules else len(modules)
