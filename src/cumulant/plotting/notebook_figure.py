"""A matplotlib figure that a notebook shows as it is, without `%matplotlib inline`."""

from __future__ import annotations

from io import BytesIO

from matplotlib.figure import Figure

NOTEBOOK_DPI = 80
"""Pixels per inch in a notebook; convention: two panels fill a cell, and the file stays small."""


class NotebookFigure(Figure):
    """A figure that draws itself as PNG where a notebook asks for it."""

    def _repr_png_(self) -> bytes:
        drawn = BytesIO()
        self.savefig(drawn, format="png", dpi=NOTEBOOK_DPI, metadata={"Software": None}, pil_kwargs={"optimize": True})
        return drawn.getvalue()
