"""Any zCDP mechanism."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import ClassVar

from cumulant.curves.closed import Concentrated
from cumulant.curves.curve import Curve
from cumulant.domains import NONNEGATIVE, Domain, Exact, Number, Several
from cumulant.mechanisms.mechanism import Mechanism, register


@register
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class ZeroConcentrated(Mechanism):
    """Any (xi, rho)-zCDP mechanism: rdp(a) = xi + rho a (Remark 8).

    >>> ZeroConcentrated(rho="1/50").rdp(2)
    0.04
    """

    rho: Number
    xi: Number = 0

    domains: ClassVar[Mapping[str, Domain | Several]] = {"rho": NONNEGATIVE, "xi": NONNEGATIVE}
    defaults: ClassVar[Mapping[str, Number]] = {"xi": 0}

    def key(self) -> Hashable:
        return Exact(self.rho), Exact(self.xi)

    def own_curve(self, bound: str) -> Curve:
        return Concentrated(rho=Exact(self.rho), xi=Exact(self.xi))
