"""Lower convex hulls and lower envelopes of lines, in linear time after sorting."""

from __future__ import annotations

import numpy as np

from cumulant.numerics.arithmetic import Array


def lower_hull(x: Array, y: Array) -> Array:
    """Indices of the corners of the lower convex hull of points with increasing x.

    >>> import numpy as np
    >>> lower_hull(np.array([0.0, 1.0, 2.0, 3.0]), np.array([0.0, 2.0, 1.0, 4.0]))
    array([0, 2, 3])
    """
    corners: list[int] = []
    points_x, points_y = x.tolist(), y.tolist()
    for i, (xi, yi) in enumerate(zip(points_x, points_y, strict=True)):
        while len(corners) > 1:
            a, b = corners[-2], corners[-1]
            # b stays only if it lies strictly below the chord from a to i
            rise = (points_y[b] - points_y[a]) * (xi - points_x[a])
            if rise < (yi - points_y[a]) * (points_x[b] - points_x[a]):
                break
            corners.pop()
        corners.append(i)
    return np.array(corners, dtype=np.int64)


def lower_envelope(slope: Array, height: Array, at: Array) -> Array:
    """min_i (slope_i x + height_i) at each x: lines and points are dual, so the lines that count form a convex hull.

    >>> import numpy as np
    >>> lower_envelope(np.array([0.0, 1.0]), np.array([3.0, 0.0]), np.array([1.0, 2.0, 5.0]))
    array([1., 2., 3.])
    """
    if not slope.size:
        return np.full(at.shape, np.inf)
    order = np.lexsort((height, slope))
    slope, height = slope[order], height[order]
    first = np.append(True, np.diff(slope) > 0)
    slope, height = slope[first], height[first]
    corners = lower_hull(slope, height)
    slope, height = slope[corners], height[corners]
    # the line with slope s_i is lowest between these crossings, which decrease along the hull
    crossing = -np.diff(height) / np.diff(slope)
    index = (
        slope.size - 1 - np.searchsorted(crossing[::-1], at, side="right")
        if slope.size > 1
        else np.zeros(at.shape, int)
    )
    return slope[index] * at + height[index]
