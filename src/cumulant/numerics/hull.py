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


def lowest_lines(slope: Array, height: Array, at: Array) -> Array:
    """Return the i that minimises slope_i x + height_i at each x.

    Lines and points are dual, so the lines that count form a convex hull.

    >>> import numpy as np
    >>> lowest_lines(np.array([0.0, 1.0]), np.array([3.0, 0.0]), np.array([1.0, 2.0, 5.0]))
    array([1, 1, 0])
    """
    order = np.lexsort((height, slope))
    order = order[np.isfinite(slope[order]) & np.isfinite(height[order])]
    if not order.size:
        return np.zeros(at.shape, dtype=np.int64)
    order = order[np.append(True, np.diff(slope[order]) > 0)]
    order = order[lower_hull(slope[order], height[order])]
    # the line with slope s_i is lowest between these crossings, which decrease along the hull
    crossing = -np.diff(height[order]) / np.diff(slope[order])
    return order[order.size - 1 - np.searchsorted(crossing[::-1], at, side="right")]
