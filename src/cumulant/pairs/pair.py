"""Dominating pairs: the fact that the sharper theorems ask for (E-17)."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np

from cumulant import domains
from cumulant.curves.curve import Curve
from cumulant.errors import CertificateError, InputError
from cumulant.numerics.arithmetic import BALLS, FLOATS, Arithmetic, Array
from cumulant.numerics.enclosure import BOUNDED, UPPER

_BITS = 128

LARGEST_SHIFT = 10**4
"""Sensitivity over noise; beyond it nothing is protected, and integrals over the loss span too many scales."""


class Pair(ABC):
    """Laws (P, Q) such that every ordered neighbouring pair of output laws is a post-processing of (P, Q) or of (Q, P).

    Every divergence of a neighbouring pair is then at most the larger of the two directions of (P, Q); each method
    below returns that larger value.
    """

    __slots__ = ()

    one_bit: bool = False
    """The output law sees one bit of the data only, so that the ternary divergence is the binary one (E-10)."""

    geometry: str = ""
    """What is known of the values that Gaussian noise is added to, "diameter" or "ball"; empty for other noise."""

    symmetric: bool = False
    """(P, Q) and (Q, P) are the same pair up to a bijection of the outputs."""

    estimated: bool = False
    """The numbers are self-checked quadrature, not bounds: true for densities given as Python functions."""

    @property
    def integrable(self) -> bool:
        """Whether integrals over the loss are within reach of the quadrature."""
        return bool(getattr(self, "shift", 0) <= LARGEST_SHIFT)

    @property
    def summable(self) -> bool:
        """Whether sums over thousands of its moments are within reach."""
        return True

    def gaussian_shift(self) -> Fraction | None:
        """mu if N(mu, 1) against N(0, 1) is the pair up to a bijection of the outputs; None where that is not said."""
        return None

    @abstractmethod
    def curve(self) -> Curve:
        """The Rényi divergence at every order, KL and pure included."""

    def moments(self, orders: Any, on: Arithmetic = FLOATS) -> Any:
        """log E_q |p/q - 1|^l at integer orders l >= 1; in floats at every real one."""
        return self._answered(self._log_moments, orders, on)

    def positive_moments(self, orders: Any, on: Arithmetic = FLOATS) -> Any:
        """log E_q (p/q - 1)_+^l at integer orders l >= 1; in floats at every real one."""
        return self._answered(self._log_positive_moments, orders, on)

    def log_profile(self, epsilons: Any) -> Any:
        """log delta(eps) at eps >= 0, in float64: full relative accuracy also where delta underflows; -inf for 0."""
        epsilons = np.asarray(epsilons, dtype=np.float64)
        if not (epsilons >= 0).all():
            raise InputError(f"epsilon={epsilons[~(epsilons >= 0)].flat[0]:g} must be at least 0")
        value = self._log_profile(epsilons.ravel()).reshape(epsilons.shape)
        return value if value.ndim else float(value)

    def profile(self, epsilons: Any, on: Arithmetic = FLOATS) -> Any:
        """delta(eps) = E_q (p/q - e^eps)_+ at eps >= 0; on balls eps is exact."""
        if not on.exact:
            value = np.exp(self.log_profile(epsilons))
            return value if np.ndim(value) else float(value)
        epsilons = np.asarray(epsilons, dtype=object)
        value = self._exact_profile(epsilons.ravel(), on).reshape(epsilons.shape)
        return value if value.ndim else value[()]

    def _answered(self, moments: Callable[[Array, Arithmetic], Array], orders: Any, on: Arithmetic) -> Any:
        """A number for a number, an array for a sequence; what is proved about moments is proved at whole orders."""
        numbers, scalar = domains.orders(orders)
        whole = (numbers == np.floor(numbers)) & (numbers <= 2**53)
        if not whole.all():
            if on is not FLOATS or np.isinf(numbers).any():
                wrong = numbers[~whole][0]
                raise InputError(
                    f"order={wrong:g} must be an integer; in between and in floats every finite order has a moment"
                )
            value = moments(numbers, on)
            return value[0] if scalar else value
        integers = numbers.astype(np.int64)
        measured = on.enclosing and self.estimated
        value = BOUNDED.measured(moments(integers, FLOATS)) if measured else moments(integers, on)
        return value[0] if scalar else value

    @abstractmethod
    def _log_moments(self, orders: Array, on: Arithmetic) -> Array:
        """The moments at a flat array of integers."""

    @abstractmethod
    def _log_positive_moments(self, orders: Array, on: Arithmetic) -> Array:
        """The positive moments at a flat array of integers."""

    def _proved_moments(self, orders: Array, on: Arithmetic, both: bool) -> Array:
        """From balls; from above in closed form where only upper ends are asked for."""
        if on is UPPER:
            return UPPER.above(self._log_envelope(orders, both))
        if on is BOUNDED:
            with BALLS.at(_BITS):
                return BOUNDED.of_balls(self._exact_moments(orders, BALLS, both))
        if on is not BALLS:
            raise CertificateError(f"the moments of {type(self).__name__} are evaluated in balls only")
        return self._exact_moments(orders, on, both)

    def _exact_moments(self, orders: Array, on: Arithmetic, both: bool) -> Array:
        """The positive moments in balls, or those of `both` sides."""
        raise NotImplementedError

    def _log_envelope(self, orders: Array, both: bool) -> Array:
        """Floats above their logarithms, in closed form."""
        raise NotImplementedError

    @abstractmethod
    def _log_profile(self, epsilons: Array) -> Array:
        """log delta at a flat float64 array."""

    @abstractmethod
    def _exact_profile(self, epsilons: Array, on: Arithmetic) -> Array:
        """delta at a flat array of exact numbers, as balls."""
