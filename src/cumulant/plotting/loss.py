"""A picture of a privacy loss: its tail and its hockey-stick divergence."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from cumulant.accounting.privacy_loss import PrivacyLoss
from cumulant.domains import Exact
from cumulant.errors import InputError, shown
from cumulant.plotting.charts import Chart, Curve
from cumulant.plotting.drawing import canvas
from cumulant.plotting.sheet import check_writable, draw_charts, write

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_POINTS = 25
"""Points of a curve; convention."""

_FARTHEST = Exact("1e-8")
"""Delta up to whose epsilon the curve reaches; convention."""


def picture(loss: PrivacyLoss, out: str | Path | None = None) -> Figure:
    """Draw the tail and the divergence against the loss.

    Up to where the divergence is 1e-8; written to a file, with its numbers, if one is named.
    """
    if not isinstance(out, str | Path | None):
        raise InputError(f"out={shown(out)} must be the name of a file")
    path = None if out is None else check_writable(Path(out))
    canvas()  # what is missing is said before the work, not after it
    end = loss.epsilon(_FARTHEST)
    x = (end if 0 < end < math.inf else 1.0) * np.geomspace(1e-2, 1.0, _POINTS)
    curves = {"tail": Curve(x, np.asarray(loss.tail(x))), "hockey-stick": Curve(x, np.asarray(loss.hockey_stick(x)))}
    chart = Chart(f"privacy loss, {loss.direction}", "loss", "at most", curves)
    figure = draw_charts([chart], loss.run.text)
    if path is not None:
        write(figure, [chart], path)
    return figure
