"""From tables to pictures: one grid of panels per figure, readable in grey."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cumulant.errors import CumulantError
from cumulant.output import open_output

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True, slots=True)
class Look:
    """The look of one curve; colour, dashes and marker each tell it from the others."""

    column: str
    label: str
    colour: str
    dashes: Any
    marker: str


def save(figure: Figure, path: Path) -> None:
    """Write PNG, SVG or PDF, as the name says; the same numbers give the same file."""
    options: dict[str, Any] = {
        ".svg": {"metadata": {"Date": None, "Creator": None}},
        ".pdf": {"metadata": {"CreationDate": None, "Creator": None, "Producer": None}},
    }.get(path.suffix, {"dpi": 100, "metadata": {"Software": None}, "pil_kwargs": {"optimize": True}})
    with open_output(path, binary=True) as file:
        figure.savefig(file, format=path.suffix[1:], **options)


def canvas(size: tuple[float, float] = (13, 6.4)) -> Figure:
    """Return an empty figure, or raise an error that says what to install."""
    try:
        import matplotlib

        from cumulant.plotting.notebook_figure import NotebookFigure
    except ImportError:
        raise CumulantError("drawing needs matplotlib; install it with: pip install 'cumulant[plot]'") from None
    matplotlib.rcParams["svg.hashsalt"] = "cumulant"
    figure = NotebookFigure(figsize=size)
    figure.subplots_adjust(left=0.055, right=0.99, top=0.9, bottom=0.08, wspace=0.22, hspace=0.36)
    return figure


def grid(axes: Any) -> None:
    """Draw thin lines behind the curves, and small numbers beside them."""
    axes.minorticks_off()
    axes.grid(True, which="major", color="#dddddd", linewidth=0.6)
    axes.tick_params(labelsize=8)


def style(look: Look) -> dict[str, Any]:
    """Return the options of matplotlib for a curve."""
    return {
        "color": look.colour,
        "linestyle": look.dashes,
        "marker": look.marker,
        "linewidth": 1.4,
        "markersize": 4.5,
        "markerfacecolor": "white" if look.marker in "sD" else look.colour,
    }
