"""The pictures of docs/bounds can be drawn, and each page shows one of them."""

import re
import runpy
from pathlib import Path
from typing import Any

import pytest

DOCS = Path(__file__).parents[2] / "docs"


@pytest.fixture(scope="module")
def plots() -> dict[str, Any]:
    pytest.importorskip("matplotlib")
    return runpy.run_path(str(DOCS / "plots.py"))


@pytest.mark.parametrize("name", ["caps", "large-orders"])
def test_a_picture_is_drawn(plots: dict[str, Any], name: str, tmp_path: Path) -> None:
    path = plots["draw"](name, tmp_path, "svg")
    assert path == tmp_path / f"{name}.svg"
    text = path.read_text(encoding="utf-8")
    assert text.rstrip().endswith("</svg>")
    assert 10_000 < len(text) < 100_000


def test_every_page_shows_a_picture_that_exists(plots: dict[str, Any]) -> None:
    shown = set()
    for page in sorted((DOCS / "bounds").glob("*.md")):
        shown.update(re.findall(r"\(img/([\w-]+)\.svg\)", page.read_text(encoding="utf-8")))
    assert shown == set(plots["NAMES"]) == {path.stem for path in (DOCS / "bounds" / "img").glob("*.svg")}


def test_the_picture_of_shuffled_batches(tmp_path: Path) -> None:
    found = runpy.run_path(str(DOCS / "shuffled_batches_figure.py"))
    figure = found["draw"](tmp_path / "picture.png", (50,))
    assert (tmp_path / "picture.png").stat().st_size > 1000
    assert len(figure.axes[0].lines) == 2 * len(found["NOISES"])
    ((_, upper, lower),) = found["ends"]("4", (50,))
    assert 0 < lower < upper < 2.2542
