"""The sidebar of the site, from docs/map.toml, and the pages of a folder below its README."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import NamedTuple

from sphinx.application import Sphinx

MAP = Path(__file__).resolve().parents[1] / "map.toml"
FOLDERS = ("docs/bounds/README", "docs/mechanisms/README")


class Group(NamedTuple):
    """A group of pages: its title, the question its readers come with, and the pages."""

    title: str
    question: str
    pages: tuple[str, ...]


def groups() -> list[Group]:
    """Return the groups of the map in their order."""
    found = tomllib.loads(MAP.read_text(encoding="utf-8"))["group"]
    return [Group(each["title"], each["question"], tuple(each["pages"])) for each in found]


def add_contents(app: Sphinx, name: str, source: list[str]) -> None:
    """Append hidden tables of contents to the home page and to the README of a folder."""
    if name == app.config.root_doc:
        for group in groups():
            pages = "\n".join("/" + page.removesuffix(".md").removesuffix(".ipynb") for page in group.pages)
            source[0] += f"\n\n```{{toctree}}\n:hidden:\n:titlesonly:\n:caption: {group.title}\n\n{pages}\n```\n"
    elif name in FOLDERS:
        source[0] += "\n\n```{toctree}\n:hidden:\n:titlesonly:\n:glob:\n\n*\n```\n"


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the tables of contents."""
    app.connect("source-read", add_contents)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
