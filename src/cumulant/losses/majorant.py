"""Two function tables, for balls and for float arrays, so that a majorant is written once."""

from __future__ import annotations

from typing import Any

import numpy as np

from cumulant.numerics.arithmetic import BALLS


class _BallFunctions:
    """The functions of a majorant on balls."""

    @staticmethod
    def number(value: Any) -> Any:
        return BALLS.number(value)

    exp = staticmethod(lambda x: x.exp())
    expm1 = staticmethod(lambda x: x.expm1())
    log = staticmethod(lambda x: x.log())
    sin = staticmethod(lambda x: x.sin())
    cos = staticmethod(lambda x: x.cos())
    atan = staticmethod(lambda x: x.atan())
    where = staticmethod(lambda condition, x, y: x if condition else y)
    maximum = staticmethod(lambda x, y: x.max(y))
    minimum = staticmethod(lambda x, y: x.min(y))


class _FloatFunctions:
    """The functions of a majorant on arrays of floats."""

    number = staticmethod(float)
    exp, expm1, log, sin, cos, atan = np.exp, np.expm1, np.log, np.sin, np.cos, np.arctan
    where, maximum, minimum = staticmethod(np.where), np.maximum, np.minimum


ON_BALLS = _BallFunctions()
"""The function table for balls."""

ON_FLOATS = _FloatFunctions()
"""The function table for arrays of floats."""
