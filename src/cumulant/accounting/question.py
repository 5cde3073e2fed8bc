"""One question, resolved once.

What is given, by which method, and the rows of the tables that this means.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from cumulant import domains
from cumulant.accounting.choices import DEFAULT_ACCURACY as DEFAULT_ACCURACY
from cumulant.accounting.choices import DEFAULT_METHOD as DEFAULT_METHOD
from cumulant.accounting.choices import ConversionName, Method
from cumulant.bounds.table import OWN
from cumulant.bounds.table import row as bound_row
from cumulant.conversion.conversions import CONVERSIONS, Conversion
from cumulant.conversion.conversions import conversion as conversion_row
from cumulant.conversion.query import Query
from cumulant.domains import ACCURACY, Domain, Exact, Number, listed
from cumulant.errors import InputError, shown
from cumulant.numerics.rounding import stated

CURVES: dict[str, tuple[str, str]] = {"rdp": ("best", "cks"), "paper": ("theorem9", "classic")}
"""The bound and conversion of each method that asks a curve, where the caller names none."""

METHODS = ("best", "exact", *CURVES)
"""The smaller of the exact answer and the curve's; loss distributions; Rényi divergences; the paper's accountant."""

BASELINES = ("naive", "strong", "optimal")
"""Composition theorems for (epsilon, delta), which answer epsilon only."""

DISTANCE = "total variation"
"""The way of a delta that holds at every epsilon: the distance that the whole curve leaves, where no conversion is named."""


GUIDE: Method = "rdp"
"""The method whose answers come fast, and show where the exact layer is worth asking."""

EXACT_BOUNDS = ("best", "profile", "poisson", "replacement", "allocation", "with-replacement", "truncated-poisson")
"""The bounds that loss distributions exist for: what an exact answer may name."""

_NOTHING = Exact(0)
"""The value of a question whose number is not yet given."""

_EXAMPLES = {"method": DEFAULT_METHOD, "bound": "best", "conversion": "cks"}
"""A valid name of each kind, for error messages."""


@dataclass(frozen=True, slots=True)
class Question:
    """A question: `asked` is the given number, "delta" or "epsilon"; the other is found.

    `value` is its exact value.

    `method`, `bound`, `conversion` and `accuracy` are what the caller said; `row` and `converted` are the bound and the
    conversion of the curve that this means, "" where a composition theorem answers.
    """

    method: Method
    bound: str | None
    conversion: ConversionName | None
    accuracy: Exact
    row: str
    converted: str
    asked: str = "delta"
    value: Exact = _NOTHING
    prove: bool = False
    """True if balls must answer, however long they take."""
    two_sided: bool = False
    """True if the exact layer takes part."""
    theorem_b: bool = False
    """True if the exact layer may use Theorem B besides the profile: no other bound is named."""

    @classmethod
    def parse_query(
        cls,
        method: Method,
        bound: str | None,
        conversion: ConversionName | None,
        accuracy: Number,
        asked: str,
        prove: bool = False,
    ) -> Question:
        """Return a question without the number that is given.

        InputError says what there is to choose.
        """
        check_names(method=method, bound=bound, conversion=conversion)
        if type(prove) is not bool:
            raise InputError(
                f"prove={shown(prove)} must be True or False; True asks for a proof, however long it takes"
            )
        two_sided = two_sided_method(method, bound, conversion)
        if prove and not two_sided:
            raise InputError(
                'prove=True is for method="exact", and for method="best" without a bound; leave it out with the others'
            )
        fine = ACCURACY.check("accuracy", accuracy)
        if method in BASELINES and asked == "delta":
            if bound or conversion:
                raise InputError(f"method={method!r} takes no bound and no conversion")
            return cls(method, bound, conversion, fine, "", "", asked)
        by = "rdp" if method == "best" else method
        if two_sided:
            by, row = "rdp", bound if method == "exact" else None
            curve, free = rows(by, row, None), bound in (None, "best")
            return cls(method, bound, None, fine, *curve, asked, prove=prove, two_sided=True, theorem_b=free)
        return cls(method, bound, conversion, fine, *rows(by, bound, conversion), asked)

    def with_value(self, value: Exact) -> Question:
        """Return the question with this number given."""
        return replace(self, value=value)

    @property
    def query(self) -> Query:
        """Return the given number as the engines ask for it."""
        return Query("delta" if self.asked == "delta" else "epsilon", self.value)

    @property
    def has_composition(self) -> bool:
        """Return True if there is something to compose for.

        Pure privacy and a delta of 1 are known from the curve.
        """
        return self.asked == "epsilon" or 0 < self.value < 1

    @property
    def whole_curve(self) -> bool:
        """Return True if the curve may be used at all its orders together.

        Then no conversion is named.
        """
        return self.conversion is None and self.method in ("best", "rdp", "exact")

    @property
    def formula(self) -> Conversion:
        """Return the conversion of the curve."""
        return CONVERSIONS[self.converted]

    @property
    def wanted(self) -> str:
        """Return the name of the number that is wanted, "epsilon" or "delta"."""
        return "delta" if self.asked == "epsilon" else "epsilon"

    @property
    def as_float(self) -> float:
        """Return the given number as a float that claims no more."""
        return stated(self.value)

    def exact_statement(self, epsilon: float, delta: float) -> tuple[Fraction, Fraction]:
        """Return the finite epsilon and the delta that these floats state.

        The one that was given means its exact value.
        """
        given, found = (epsilon, delta) if self.asked == "epsilon" else (delta, epsilon)
        value = self.value if given == self.as_float else Fraction(repr(given))
        return (value, Fraction(found)) if self.asked == "epsilon" else (Fraction(found), value)


def read_given(delta: Number | None, epsilon: Number | None) -> tuple[str, Exact]:
    """Return the name of the given number, "delta" or "epsilon", and its exact value."""
    if epsilon is None and delta is not None:
        return "delta", domains.DELTA.check("delta", delta)
    if delta is None and epsilon is not None:
        return "epsilon", domains.GUARANTEED.check("epsilon", epsilon)
    raise InputError(
        f"a guarantee is asked for with exactly one of delta and epsilon, not {'both' if delta is not None else 'none'}: "
        "guarantee(delta=1e-6) finds epsilon, guarantee(epsilon=1) finds delta"
    )


def two_sided_method(method: str, bound: str | None, conversion: str | None) -> bool:
    """Return True if the exact layer is asked.

    By method "exact", or by "best" if no row of the curve's tables was named.
    """
    if method == "exact":
        if conversion is not None:
            raise InputError(
                'method="exact" converts nothing, so it takes no conversion; use method="rdp" to choose one'
            )
        if bound is not None and bound not in EXACT_BOUNDS and bound not in OWN:
            raise InputError(
                f'method="exact" takes no bound={bound!r}; choose one of {", ".join(EXACT_BOUNDS)}, or method="rdp"'
            )
        return True
    return method == "best" and bound is None and conversion is None


def check_names(**given: object) -> None:
    """Raise InputError for a method, bound or conversion that is no name.

    A bound and a conversion may be left out.
    """
    for name, value in given.items():
        if not (isinstance(value, str) and value) and not (value is None and name != "method"):
            raise InputError(f"{name}={shown(value)} must be a name, such as {_EXAMPLES[name]!r}")


def rows(method: str, bound: str | None, conversion: str | None) -> tuple[str, str]:
    """Return the bound and the conversion a method uses.

    An InputError says what there is to choose.
    """
    if method not in CURVES:
        if method in BASELINES:
            raise InputError(f'method={method!r} answers epsilon(delta) only; use method="rdp" or "paper" here')
        raise InputError(f"method={method!r} is unknown; choose one of {', '.join((*METHODS, *BASELINES))}")
    fixed_bound, fixed_conversion = CURVES[method]
    if method == "paper" and (bound or fixed_bound, conversion or fixed_conversion) != CURVES[method]:
        raise InputError('method="paper" fixes bound and conversion; use method="rdp" to choose them')
    if bound is not None and not bound_row(bound).upper:
        raise InputError(
            f"bound={bound!r} is a lower bound, which proves no epsilon; ask for it with rdp(order, bound={bound!r})"
        )
    if conversion is not None:
        conversion_row(conversion)  # says what there is to choose
    return bound or fixed_bound, conversion or fixed_conversion


def check_values(name: str, value: Any, domain: Domain) -> tuple[list[Exact], bool]:
    """Return the exact values of a number or a list of numbers, and True if it was one number."""
    if isinstance(value, str | bytes) or not isinstance(value, Iterable) or not getattr(value, "ndim", True):
        return [domain.check(name, value)], True
    return [domain.check(name, each) for each in listed(name, value)], False
