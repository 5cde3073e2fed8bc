"""A mechanism that users bring by two densities.

They are those of its laws on a worst pair of data sets.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Mapping
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from cumulant.curves.cache import once
from cumulant.curves.curve import Curve
from cumulant.curves.user_function import identity
from cumulant.domains import Exact, Number, limit
from cumulant.errors import InputError, shown
from cumulant.mechanisms.mechanism import Mechanism
from cumulant.parameters import declared

if TYPE_CHECKING:
    from cumulant.pairs.densities import DensityPair


def from_densities(
    log_p: Callable[[Any], Any],
    log_q: Callable[[Any], Any],
    support: tuple[float, float] = (-math.inf, math.inf),
    pure: Number = math.inf,
) -> Mechanism:
    """Return a mechanism whose output laws on the worst pair have these log densities.

    Both directions are covered (E-1).

    The pair must dominate every neighbouring pair. `pure` is the largest |log p - log q|, if it is finite and known.

    Guarantees are `estimated`, because functions are evaluated in floats at single points. For `proved` ones give `from_masses`
    exact masses, or `from_rdp` a formula that runs in balls.

    >>> shifted = from_densities(lambda x: -abs(x - 1) / 2 - math.log(4), lambda x: -abs(x) / 2 - math.log(4))
    >>> abs(shifted.rdp(2) - 0.200303896173615962) < 1e-9
    True
    """
    for name, density in (("log_p", log_p), ("log_q", log_q)):
        if not callable(density):
            raise InputError(f"{name}={shown(density)} must be a function of the output, the logarithm of its density")
    made = ByDensities(log_p, log_q, _interval(support), limit("pure", pure))
    made.pair()
    return made


def _interval(support: tuple[float, float]) -> tuple[float, float]:
    """Return the ends of the support; infinite ones are floats."""
    try:
        low, high = (end if end in (-math.inf, math.inf) else float(Exact(end)) for end in support)
    except (TypeError, ValueError) as error:
        raise InputError(
            f"support={shown(support)} must be an interval (low, high) with low < high: {error}"
        ) from error
    return float(low), float(high)


@declared
class ByDensities(Mechanism):
    """A mechanism known by two densities, as `from_densities` makes it."""

    log_p: Callable[[Any], Any]
    log_q: Callable[[Any], Any]
    support: tuple[float, float]
    known_pure: Fraction | None

    estimated = True

    def key(self) -> Hashable:
        return identity(self.log_p), identity(self.log_q), self.support, self.known_pure

    def own_curve(self, bound: str) -> Curve:
        return self.pair().curve()

    def pair(self) -> DensityPair:
        """Check the densities as they are now and return their pair.

        Once in each question, since they may change after it.
        """
        from cumulant.pairs.densities import DensityPair

        limit = math.inf if self.known_pure is None else float(self.known_pure)
        return once((self, "pair"), lambda: DensityPair(self.log_p, self.log_q, self.support, limit))

    def arguments(self) -> Mapping[str, str]:
        return {"support": str(self.support)}

    @classmethod
    def name(cls) -> str:
        return "from_densities"
