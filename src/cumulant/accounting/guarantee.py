"""The answer, and where it came from."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any, Protocol

from cumulant.conversion.verify import Verification
from cumulant.errors import CertificateError
from cumulant.numerics import rounding


@dataclass(frozen=True, slots=True)
class Term:
    """One component of a run and what it contributed: K at the chosen order, all repetitions together."""

    mechanism: str
    times: int
    bound: str
    nodes: tuple[float, ...]
    value: float | None  # None where no order is involved


class Proof(Protocol):
    """What a guarantee keeps in order to be checked and explained later: exact data, and no result of the search."""

    def verify(self, epsilon: float, delta: float) -> Verification:
        """Whether a second evaluation confirms this epsilon and delta, of which the one that was asked for is exact."""

    def explain(self, found: Guarantee) -> str:
        """What proves the guarantee, in words, one paragraph per line."""


@dataclass(frozen=True, slots=True)
class Guarantee:
    """(epsilon, delta)-differential privacy with its provenance.

    >>> import cumulant as cm
    >>> run = cm.Gaussian(sigma=5) @ cm.WithoutReplacement(rate=0.001) * 600_000
    >>> answer = run.guarantee(delta=1e-8)
    >>> answer.lower, answer.epsilon, answer.conversion, str(answer.relation)
    (0.7925, 0.807, 'cone', 'replace-one')
    >>> by_curve = run.guarantee(delta=1e-8, method="rdp")
    >>> by_curve.order, by_curve.conversion, by_curve.rigour, by_curve.verify().holds
    (35.6, 'cks', 'proved', True)

    `asked` is "delta" or "epsilon": which of the two was given; the other one was found, and rounded up. `lower` is the epsilon
    that no claim at this delta can undercut, shown by the data sets named in `witness`; None where no pair is known. Where an
    epsilon was asked for, `lower_delta` is the delta that no claim at this epsilon can undercut, and `lower` is None.

    >>> found = run.guarantee(epsilon=1)
    >>> found.asked, found.epsilon, found.lower_delta <= found.delta == run.delta(epsilon=1)
    ('epsilon', 1.0, True)

    `note` says why the answer does not come from where it was asked for. `bits` and `radius` tell how the certificate was
    computed: the precision and the radius of the ball. A guarantee can be pickled; a Python function in the run stays behind,
    and then it can no longer be verified.
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
    witness: str = ""
    note: str = ""
    asked: str = "delta"
    lower_delta: float | None = None
    bits: int | None = field(default=None, compare=False, repr=False)
    radius: float | None = field(default=None, compare=False, repr=False)
    plan: Proof | None = field(default=None, compare=False, repr=False)

    def verify(self) -> Verification:
        """Evaluate the statement again by another route than the one that found it, from the stored plan and the exact inputs.

        Of Rényi bounds, finite sums and closed forms are evaluated in decimal intervals of the standard library, others in
        balls at four times the precision. Of the exact layer, closed forms are evaluated in balls at four times the precision,
        lattices and Theorem B along the saddle line, which shares neither grid nor transform with them and is self-checked.
        Where its spectrum does not decay, as with few rounds and with losses on a lattice, no second route is open: the same
        code runs on a finer grid, and the result says so, `independent` is False, and `note` names the lower end and the
        Rényi bound between which the answer lies. CertificateError where nothing was proved.

        >>> import cumulant as cm
        >>> check = cm.Laplace(scale=2).guarantee(delta=1e-6, method="rdp").verify()
        >>> bool(check), check.arithmetic
        (True, 'decimal')
        >>> run = cm.Gaussian(sigma=5) @ cm.WithoutReplacement(rate=0.001) * 600_000
        >>> check = run.guarantee(delta=1e-8).verify()
        >>> bool(check), check.arithmetic, check.independent
        (True, 'saddle line', True)
        """
        if not (self.epsilon >= 0 and 0 <= self.delta <= 1):
            raise CertificateError(
                f"epsilon={self.epsilon!r} with delta={self.delta!r} is no statement about privacy: epsilon is at least 0 and "
                "delta a probability"
            )
        found = self._proof().verify(self.epsilon, self.delta)
        return replace(found, epsilon=self.epsilon, delta=self.delta)

    def explain(self) -> str:
        """What proves the guarantee, in words: theorems, order, conversion, arithmetic, exact inputs, assumptions, rigour.

        >>> import cumulant as cm
        >>> print(cm.PureDP(1).guarantee(delta=0).explain().splitlines()[-1])
        Rigour: proved, which means: every step was enclosed, rounding included, so the exact value ... at most this number.
        """
        return self._proof().explain(self)

    def _proof(self) -> Proof:
        if self.plan is None:
            raise CertificateError("this guarantee came without its plan; ask the run for it again")
        return self.plan

    def to_dict(self) -> dict[str, Any]:
        """The fields as JSON values; infinity is the text "inf"."""
        return _plain(self)  # type: ignore[no-any-return]

    def to_json(self) -> str:
        """The fields as one JSON object."""
        return json.dumps(self.to_dict())


def _plain(value: Any) -> Any:
    match value:
        case Guarantee() | Term():
            return {name: _plain(getattr(value, name)) for name in value.__slots__ if name != "plan"}
        case tuple():
            return [_plain(item) for item in value]
        case float() if math.isinf(value):
            return "inf"
        case float() if math.isnan(value):
            return None
        case str():
            return str(value)
    return value


def stated(value: Fraction) -> float:
    """The float that states a delta or an epsilon: the decimal it prints as is not below the exact one, so no more is claimed.

    >>> (
    ...     stated(Fraction(1, 10**8)),
    ...     Fraction(repr(stated(Fraction(1, 3)))) >= Fraction(1, 3),
    ...     stated(Fraction(10) ** 400),
    ... )
    (1e-08, True, inf)
    """
    above = rounding.rounded_up(value)
    below = math.nextafter(above, 0.0)
    return below if Fraction(repr(below)) >= value else above


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
