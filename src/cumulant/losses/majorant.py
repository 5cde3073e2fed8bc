"""Two function tables, for balls and for float arrays, so that a majorant is written once."""

from __future__ import annotations

from operator import methodcaller

import numpy as np

from cumulant.numerics.arithmetic import BALLS


class _BallFunctions:
    """The functions of a majorant on balls."""

    number = staticmethod(BALLS.number)
    exp, expm1, log = methodcaller("exp"), methodcaller("expm1"), methodcaller("log")
    sin, cos, atan = methodcaller("sin"), methodcaller("cos"), methodcaller("atan")
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
