"""Any zCDP mechanism."""

from __future__ import annotations

import math
from typing import Any

from cumulant.curves.closed_form import Concentrated, Slackened, Truncated
from cumulant.curves.curve import Curve
from cumulant.domains import NONNEGATIVE, ORDER, SLACK
from cumulant.mechanisms.mechanism import Mechanism, register
from cumulant.parameters import OptionalReal, Real, parameter


@register
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

    rho: Real = parameter(NONNEGATIVE)
    xi: Real = parameter(NONNEGATIVE, default=0)
    omega: OptionalReal = parameter(ORDER, default=None)
    slack: Real = parameter(SLACK, default=0)

    @classmethod
    def _prepare(cls, given: dict[str, Any]) -> dict[str, Any]:
        infinite = isinstance(given["omega"], float | str) and given["omega"] in (math.inf, "inf")
        return given | {"omega": None} if infinite else given

    def own_curve(self, bound: str) -> Curve:
        curve: Curve = Concentrated(rho=self.rho, xi=self.xi)
        if self.omega is not None:
            curve = Truncated(curve, self.omega)
        return Slackened(curve, self.slack) if self.slack else curve
