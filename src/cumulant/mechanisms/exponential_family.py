"""One draw from an exponential family whose parameter depends on the data (item 42)."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Mapping
from typing import Any, ClassVar

from cumulant.curves.curve import Curve
from cumulant.curves.user_function import identity
from cumulant.domains import COUNT, NONNEGATIVE, POSITIVE, Domain, Exact, Number
from cumulant.errors import InputError
from cumulant.mechanisms.mechanism import Mechanism, register
from cumulant.numerics.rounding import rounded_up
from cumulant.parameters import OptionalReal, Parameter, Real, parameter
from cumulant.relation import Relation

Radial = Callable[[float], float]
Limit = Exact | Radial
"""A constant, or a nondecreasing function of the radius."""

RadialLimit = Parameter[Limit | None, Number | Radial | None]


class NumberOrFunction(Domain):
    """A domain of numbers in which a function of the radius may stand instead."""

    accepted: ClassVar[str] = "Number | Callable[[float], float]"

    def check(self, name: str, value: Any) -> Any:
        return value if callable(value) else Domain.check(self, name, value)


_LIMIT = NumberOrFunction(NONNEGATIVE.low, NONNEGATIVE.high, low_closed=True)


@register
class ExponentialFamilyMechanism(Mechanism):
    """A draw from p_eta(x) ~ exp(<eta, T(x)> - A(eta)), eta a function of the data.

    Proposition 38, corrected (E-6).

    It assumes (A) neighbouring data sets have parameters at most `diameter` apart; (B) within `radius` of every parameter
    in use (None: everywhere) there are only parameters, and the log-partition function A has Lipschitz constant at most
    `lipschitz`, up to a common linear function; (C) there its Hessian has norm at most `hessian`: the Hessian, not half
    of it. At least one of `lipschitz` and `hessian` is given, as a constant or as a function of the distance that does
    not decrease; it is called with one number at a time. Orders a with (a-1) diameter > radius are +inf.

    With `records`, the assumptions are those for replace-one neighbours of that many records: of the sample, if it runs
    on one. A mechanism that holds a Python function is estimated and has no text.

    >>> ExponentialFamilyMechanism(diameter=1, hessian="1/4").rdp(2)  # the Gaussian of sigma = 2
    0.25
    >>> rates = ExponentialFamilyMechanism(diameter="0.2", radius="0.99", hessian=lambda r: 1 / (1 - r) ** 2)
    >>> rates.rdp(5)  # exponential laws of rate at least 1; the truth is 0.220
    2.03125
    """

    diameter: Real = parameter(NONNEGATIVE)
    hessian: RadialLimit = parameter(_LIMIT, default=None, free=True)
    lipschitz: RadialLimit = parameter(_LIMIT, default=None, free=True)
    radius: OptionalReal = parameter(POSITIVE, default=None, free=True)
    records: OptionalReal = parameter(COUNT, default=None, free=True)

    @classmethod
    def _prepare(cls, given: dict[str, Any]) -> dict[str, Any]:
        if given["hessian"] is None and given["lipschitz"] is None:
            raise InputError("ExponentialFamilyMechanism needs hessian or lipschitz; write hessian=… or lipschitz=…")
        return given

    @property
    def estimated(self) -> bool:  # type: ignore[override]
        return callable(self.hessian) or callable(self.lipschitz)

    @property
    def frozen(self) -> bool:
        return type(self) is ExponentialFamilyMechanism and not self.estimated

    @property
    def relation(self) -> Relation:
        return Relation.ANY if self.records is None else Relation.REPLACE_ONE

    def key(self) -> Hashable:
        limits = (identity(limit) if callable(limit) else limit for limit in (self.hessian, self.lipschitz))
        return self.diameter, *limits, self.radius, self.records

    def own_curve(self, bound: str) -> Curve:
        from cumulant.curves.posteriors import SmoothFamily

        return SmoothFamily(self.diameter, self.radius, _radial(self.lipschitz), _radial(self.hessian)).projected()

    def arguments(self) -> Mapping[str, str]:
        values = {name: getattr(self, name) for name in self.parameters}
        return {
            name: value.notation if isinstance(value, Exact) else getattr(value, "__name__", "function")
            for name, value in values.items()
            if value is not None
        }


def _radial(limit: Limit | None) -> Radial:
    """Return the bound at each radius; without a limit nothing is known.

    A constant is rounded up.
    """
    if limit is None:
        return lambda radius: math.inf
    if not isinstance(limit, Exact):
        return limit
    constant = rounded_up(limit)
    return lambda radius: constant
