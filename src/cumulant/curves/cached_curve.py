"""A curve with a memory."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from typing import Any

from cumulant.curves.cache import recall
from cumulant.curves.curve import Curve, Wrapped
from cumulant.numerics.arithmetic import FLOATS, Arithmetic, Array, Scalar

CACHE_SIZE = 256
"""Answers that a curve keeps; chosen by hand, a bound of memory."""


@dataclass(frozen=True, slots=True)
class Remembered(Wrapped):
    """A curve that keeps its latest answers: one search asks many runs for the same orders."""

    _answers: dict[Hashable, Any] = field(default_factory=dict, compare=False, repr=False)

    @property
    def integral(self) -> bool:  # type: ignore[override]
        return self.curve.integral

    @property
    def remembered(self) -> bool:  # type: ignore[override]
        # a Python function may change, and is asked as little as possible; of densities there is a new curve in each question
        return not self.curve.estimated or self.curve.integrated

    def _cgf(self, lam: Array, on: Arithmetic) -> Array:
        if on.exact:
            return self._recall((on.precision(), *lam), lambda: self.curve._cgf(lam, on))
        return self._recall((on.enclosing, lam.tobytes()), lambda: self.curve.cgf(lam, on))

    def kl(self, on: Arithmetic = FLOATS) -> Scalar:
        return self._recall(("kl", on.exact, on.enclosing, on.precision()), lambda: self.curve.at_one(on))

    def pure(self, on: Arithmetic = FLOATS) -> Scalar:
        return self._recall(("pure", on.exact, on.enclosing, on.precision()), lambda: self.curve.at_infinity(on))

    def strict(self) -> Curve:
        return self.curve.strict() if self.slack() else self

    def _recall(self, key: Hashable, value: Callable[[], Any]) -> Any:
        return recall(self._answers, key, value, CACHE_SIZE)
