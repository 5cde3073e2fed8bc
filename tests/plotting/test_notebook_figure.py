"""A notebook shows a figure without any command, and a figure survives pickling."""

from __future__ import annotations

import pickle

from cumulant.plotting.drawing import canvas


def test_a_figure_is_png_to_a_notebook() -> None:
    figure = canvas((2, 1))
    assert figure._repr_png_().startswith(b"\x89PNG")  # type: ignore[attr-defined]
    assert pickle.loads(pickle.dumps(figure))._repr_png_().startswith(b"\x89PNG")
