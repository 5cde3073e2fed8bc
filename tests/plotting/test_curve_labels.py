"""Names of curves stand beside their curves and meet neither one another nor another curve."""

from __future__ import annotations

import numpy as np
from matplotlib.figure import Figure

from cumulant.plotting.curve_labels import Area, label_area, label_curves


def test_rectangles_meet() -> None:
    area = Area(0.2, 0.4, 0.2, 0.3)
    assert area.meets(Area(0.3, 0.5, 0.25, 0.5))
    assert not area.meets(Area(0.4, 0.5, 0.2, 0.3))
    assert not area.meets(Area(0.2, 0.4, 0.3, 0.4))
    assert area.meets(label_area(0.3, 0.25, "x"))


def test_labels_of_two_lines_lie_apart_and_inside() -> None:
    figure = Figure(figsize=(6.2, 4.2))
    axes = figure.subplots()
    x = np.geomspace(1, 100, 30)
    (first,), (second,) = axes.loglog(x, x), axes.loglog(x, 3 * x)
    taken = label_area(0.5, 0.8, "taken")
    label_curves(axes, [(first, "the lower line"), (second, "the upper line")], [taken])
    figure.draw_without_rendering()
    panel = axes.get_window_extent()
    boxes = [text.get_window_extent() for text in axes.texts]
    assert not boxes[0].overlaps(boxes[1])
    for box, line in zip(boxes, (first, second), strict=True):
        assert panel.x0 < box.x0 < box.x1 < panel.x1
        assert panel.y0 < box.y0 < box.y1 < panel.y1
        for other in (first, second):
            points = axes.transData.transform(np.column_stack(other.get_data()))
            assert not any(box.contains(*point) for point in points)
        middle = axes.transData.inverted().transform(((box.x0 + box.x1) / 2, (box.y0 + box.y1) / 2))
        assert (
            0.3 < middle[1] / np.interp(middle[0], x, np.asarray(line.get_ydata(), dtype=np.float64)) < 3
        )  # nearer to its own line
    assert not any(label_area(*text.get_position(), text.get_text()).meets(taken) for text in axes.texts)
