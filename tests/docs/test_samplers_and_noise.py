"""The map of samplers, noise and accountants: every loader and strategy has a row, and no cell is empty."""

import re
from pathlib import Path

DOCS = Path(__file__).parents[2] / "docs"
VERDICTS = ("proved", "not amplified", "refused")


def tables(page: str) -> list[list[list[str]]]:
    """The tables of a page, as rows of cells."""
    found: list[list[list[str]]] = [[]]
    for line in (DOCS / page).read_text(encoding="utf-8").splitlines():
        if line.startswith("|"):
            found[-1].append([cell.strip() for cell in re.split(r"(?<!\\)\|", line.strip("|"))])
        elif found[-1]:
            found.append([])
    return [rows for rows in found if rows]


def test_no_cell_is_empty_and_every_answer_is_one_of_three() -> None:
    strategies, loaders = tables("samplers-and-noise.md")
    for head, _, *rows in (strategies, loaders):
        assert len(head) == 4
        assert len(rows) >= 15
        for row in rows:
            assert len(row) == 4
            assert all(row), row
            for answer in row[2:]:
                assert any(word in answer for word in (*VERDICTS, "the same", "that of", "as the loader")), answer
                if "refused" in answer:
                    assert re.search(r"refused[^;]*(: |$| for p)", answer), answer


def names(cell: str) -> set[str]:
    return {
        re.split(r"[.(\[]", name.removeprefix("cumulant.training."))[0] or name
        for name in re.findall(r"`([^`]+)`", cell)
    }


def test_every_loader_of_the_other_page_has_a_row() -> None:
    """By its names in code, or by its words where it has none."""
    known = {name for row in tables("samplers-and-noise.md")[1][2:] for name in names(row[0])}
    words = " ".join(row[0] for row in tables("samplers-and-noise.md")[1][2:])
    (first, *_) = tables("which-sampler.md")
    assert len(first) > 20
    for row in first[2:]:
        if code := names(row[0]):
            assert code & known, row[0]
        else:
            assert row[0].split(",")[0] in words, row[0]
