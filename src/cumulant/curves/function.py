"""A curve given by the user's own function of the order."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np

from cumulant.curves.curve import Curve
from cumulant.errors import CertificateError, InputError
from cumulant.numerics.arithmetic import FLOATS, Arithmetic, Array, Scalar


@dataclass(frozen=True, slots=True)
class Function(Curve):
    """rdp(order) by a Python function that is asked one finite order > 1 at a time; what it says is believed.

    NaN and overflow mean unknown, so +inf. KL is at most the divergence at any order, so an unknown one is taken at order 3/2.
    """

    function: Callable[[float], float]
    known_kl: Fraction | None = None
    known_pure: Fraction | None = None
    _values: dict[float, float] = field(default_factory=dict, compare=False, repr=False)

    def _cgf(self, lam: Array, on: Arithmetic) -> Array:
        if on.exact:
            raise CertificateError("a mechanism given by a Python function cannot be evaluated in ball arithmetic")
        value = lam * np.array([self._at(x + 1) for x in lam.tolist()])
        return np.minimum(value, lam * self.pure())

    def _at(self, order: float) -> float:
        if order not in self._values:
            try:
                value = float(self.function(order))
            except OverflowError:
                value = math.inf
            except (TypeError, ValueError) as error:
                raise InputError(f"the rdp function gave no number at order {order}: {error}") from None
            if value < 0:
                raise InputError(f"the rdp function returned {value} at order {order}; a divergence is never negative")
            self._values[order] = math.inf if math.isnan(value) else value
        return self._values[order]

    def kl(self, on: Arithmetic = FLOATS) -> Scalar:
        value = self._at(1.5) if self.known_kl is None else on.number(self.known_kl)
        return min(value, self.pure(on))

    def pure(self, on: Arithmetic = FLOATS) -> Scalar:
        return on.number(np.inf if self.known_pure is None else self.known_pure)
