"""All files that the command writes: pictures, tables, verdicts."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from cumulant.errors import InputError
from cumulant.output import write_output
from cumulant.paper.figures.claims import claims, markdown
from cumulant.paper.figures.drawing import FIGURE1, FIGURE2, draw
from cumulant.paper.figures.series import Table, divergences, epsilons
from cumulant.paper.figures.settings import PANELS
from cumulant.plotting.drawing import canvas

STEPS = 2 * len(PANELS) + 2
"""Number of messages by which `write` reports its progress."""


def write(out: Path, tell: Callable[[str], None]) -> list[Path]:
    """Write both figures, a table per panel, and claims.md into this directory.

    The figures are in the paper's version and extended.

    `tell` is called before each of the STEPS with what comes next. Returns what was written.
    """
    canvas()  # what is missing is said before the work, not after it
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"--out {out} cannot be made a directory: {error.strerror}") from None
    paths: list[Path] = []
    found: list[list[Table]] = []
    for picture, series in ((FIGURE1, divergences), (FIGURE2, epsilons)):
        tables = []
        for panel in PANELS:
            tell(f"{picture.name}, panel {panel.title}")
            tables.append(series(panel))
            paths.append(out / f"{picture.name}_{panel.name}.csv")
            tables[-1].write(paths[-1])
        tell(f"{picture.name}, drawing")
        for extended in (False, True):
            paths += draw(picture, tables, extended, out)
        found.append(tables)
    paths.append(out / "claims.md")
    write_output(paths[-1], markdown(claims(*found)))
    return paths
