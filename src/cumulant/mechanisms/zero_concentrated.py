"""Any zCDP mechanism."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import ClassVar

from cumulant.curves.closed_form import Concentrated, Slackened, Truncated
from cumulant.curves.curve import Curve
from cumulant.domains import NONNEGATIVE, ORDER, SLACK, Domain, Exact, Number, Several
from cumulant.mechanisms.mechanism import Mechanism, register


@register
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class ZeroConcentrated(Mechanism):
    """Any (xi, rho)-zCDP mechanism: rdp(a) = xi + rho a (Remark 8).

    Truncated: at orders a < omega only.

    A finite omega above 1 is tCDP (Bun, Dwork, Rothblum, Steinke 2018); nothing is known from omega on. With `slack=s` it is
    s-approximate zCDP (Bun and Steinke 2016, Definition 8.1): all that except with probability s on either data set.

    >>> ZeroConcentrated(rho="1/50").rdp(2)
    0.04
    >>> ZeroConcentrated(rho="1/50", slack="1e-6").epsilon(1e-5) > ZeroConcentrated(rho="1/50").epsilon(1e-5)
    True
    """

    rho: Number
    xi: Number = 0
    omega: Number | None = None
    slack: Number = 0

    domains: ClassVar[Mapping[str, Domain | Several]] = {"rho": NONNEGATIVE, "xi": NONNEGATIVE, "slack": SLACK}
    defaults: ClassVar[Mapping[str, Number]] = {"xi": 0, "slack": 0}

    def __post_init__(self) -> None:
        Mechanism.__post_init__(self)
        infinite = self.omega is None or (isinstance(self.omega, float | str) and self.omega in (math.inf, "inf"))
        object.__setattr__(self, "omega", None if infinite else ORDER.check("omega", self.omega))

    def key(self) -> Hashable:
        return Exact(self.rho), Exact(self.xi), self.omega, Exact(self.slack)

    def arguments(self) -> Mapping[str, str]:
        truncated = {} if self.omega is None else {"omega": Exact(self.omega).notation}
        return {**Mechanism.arguments(self), **truncated}

    def own_curve(self, bound: str) -> Curve:
        curve: Curve = Concentrated(rho=Exact(self.rho), xi=Exact(self.xi))
        if self.omega is not None:
            curve = Truncated(curve, Exact(self.omega))
        return Slackened(curve, Exact(self.slack)) if self.slack else curve
