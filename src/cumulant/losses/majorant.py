"""The functions of a majorant, on balls and on arrays of floats: a bound is written once."""

from __future__ import annotations

from typing import Any

import numpy as np

from cumulant.numerics.arithmetic import BALLS


class _Exact:
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
    chosen = staticmethod(lambda condition, x, y: x if condition else y)
    maximum = staticmethod(lambda x, y: x.max(y))
    minimum = staticmethod(lambda x, y: x.min(y))


class _Floats:
    """The same on arrays of floats."""

    number = staticmethod(float)
    exp, expm1, log, sin, cos, atan = np.exp, np.expm1, np.log, np.sin, np.cos, np.arctan
    chosen, maximum, minimum = staticmethod(np.where), np.maximum, np.minimum


ON_BALLS = _Exact()
ON_FLOATS = _Floats()
