"""What many pages of a build share, computed once: stems of words for the search, and the sidebar of the reference."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.search.en import SearchEnglish

BEFORE_THEME = 400
"""Priority of a handler that the theme's own one, at 500, follows; convention of Sphinx."""


class CachedEnglish(SearchEnglish):
    """Stems of English words; a word that stands on a hundred pages is taken apart once."""

    def __init__(self, options: dict[str, str]) -> None:
        super().__init__(options)
        self.stem = cache(super().stem)  # type: ignore[method-assign]


def share_sidebar(app: Sphinx, name: str, template: str, context: dict[str, Any], tree: nodes.document | None) -> None:
    """Let pages of one folder that stand in no table of contents share one sidebar.

    Its links are relative to the folder, and only a page that stands in it would be marked as the current one.
    """
    if "toctree" in context and "orphan" in app.env.metadata.get(name, {}):
        context["toctree"] = sidebar_of(app, name.rpartition("/")[0], context["toctree"])


def sidebar_of(app: Sphinx, folder: str, write: Callable[..., str]) -> Callable[..., str]:
    """Return the function that writes a table of contents, or recalls the one of this folder and these options."""
    sidebars: dict[Any, str] = app.__dict__.setdefault("cumulant_sidebars", {})

    def recall(**options: Any) -> str:
        key = folder, *sorted(options.items())
        if key not in sidebars:
            sidebars[key] = write(**options)
        return sidebars[key]

    return recall


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the search language and the handler."""
    app.add_search_language(CachedEnglish)
    app.connect("html-page-context", share_sidebar, priority=BEFORE_THEME)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
