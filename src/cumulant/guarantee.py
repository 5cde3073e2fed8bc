"""The answer, and where it came from."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Term:
    """One component of a run and what it contributed: K at the chosen order, all repetitions together."""

    mechanism: str
    times: int
    bound: str
    nodes: tuple[float, ...]
    value: float


@dataclass(frozen=True, slots=True)
class Guarantee:
    """(epsilon, delta)-differential privacy with its provenance.

    >>> import cumulant as cm
    >>> run = cm.Gaussian(sigma=5) @ cm.WithoutReplacement(rate=0.001) * 600_000
    >>> answer = run.guarantee(delta=1e-8)
    >>> answer.order, answer.conversion, str(answer.relation)
    (35.6, 'cks', 'replace-one')
    """

    epsilon: float
    delta: float
    lower: float | None
    order: float | None
    method: str
    bound: str
    conversion: str
    rigour: str
    relation: str
    run: str
    terms: tuple[Term, ...]

    def to_dict(self) -> dict[str, Any]:
        """The fields as JSON values; infinity is the text "inf"."""
        return _plain(self)  # type: ignore[no-any-return]

    def to_json(self) -> str:
        """The fields as one JSON object."""
        return json.dumps(self.to_dict())


def _plain(value: Any) -> Any:
    match value:
        case Guarantee() | Term():
            return {name: _plain(getattr(value, name)) for name in value.__slots__}
        case tuple():
            return [_plain(item) for item in value]
        case float() if math.isinf(value):
            return "inf"
        case float() if math.isnan(value):
            return None
        case str():
            return str(value)
    return value


def rounded_up(value: float, digits: int = 4) -> str:
    """The value in decimal, rounded up to this many significant digits, so that what is printed is still a bound.

    >>> rounded_up(2.02701), rounded_up(1e-8), rounded_up(math.inf), rounded_up(0.0), rounded_up(123456.7)
    ('2.028', '1e-8', 'inf', '0', '123500')
    """
    return _decimal(value, digits, "ROUND_CEILING")


def rounded_down(value: float, digits: int = 4) -> str:
    """The value in decimal, rounded down: what is printed is still a lower bound.

    >>> rounded_down(2.02799)
    '2.027'
    """
    return _decimal(value, digits, "ROUND_FLOOR")


def _decimal(value: float, digits: int, rounding: str) -> str:
    if value == 0 or math.isinf(value):
        return "0" if value == 0 else "inf"
    from decimal import Context, Decimal

    rounded = Context(prec=digits, rounding=rounding).create_decimal(Decimal(repr(value))).normalize()
    exponent = rounded.adjusted()
    if -5 < exponent < 7:
        return f"{rounded:f}"
    return f"{rounded.scaleb(-exponent).normalize():f}e{exponent}"
