"""Any zCDP mechanism."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import ClassVar

from cumulant.curves.closed import Concentrated, Truncated
from cumulant.curves.curve import Curve
from cumulant.domains import NONNEGATIVE, ORDER, Domain, Exact, Number, Several
from cumulant.mechanisms.mechanism import Mechanism, register


@register
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class ZeroConcentrated(Mechanism):
    """Any (xi, rho)-zCDP mechanism: rdp(a) = xi + rho a (Remark 8), truncated: at orders a < omega only.

    A finite omega above 1 is tCDP (Bun, Dwork, Rothblum, Steinke 2018); nothing is known from omega on.

    >>> ZeroConcentrated(rho="1/50").rdp(2)
    0.04
    """

    rho: Number
    xi: Number = 0
    omega: Number | None = None

    domains: ClassVar[Mapping[str, Domain | Several]] = {"rho": NONNEGATIVE, "xi": NONNEGATIVE}
    defaults: ClassVar[Mapping[str, Number]] = {"xi": 0}

    def __post_init__(self) -> None:
        Mechanism.__post_init__(self)
        infinite = self.omega is None or (isinstance(self.omega, float | str) and self.omega in (math.inf, "inf"))
        object.__setattr__(self, "omega", None if infinite else ORDER.check("omega", self.omega))

    def key(self) -> Hashable:
        return Exact(self.rho), Exact(self.xi), self.omega

    def arguments(self) -> Mapping[str, str]:
        truncated = {} if self.omega is None else {"omega": Exact(self.omega).notation}
        return {**Mechanism.arguments(self), **truncated}

    def own_curve(self, bound: str) -> Curve:
        curve = Concentrated(rho=Exact(self.rho), xi=Exact(self.xi))
        return curve if self.omega is None else Truncated(curve, Exact(self.omega))
