"""How a question is put: which bound and conversion it means, and what numbers it may contain."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from cumulant.bounds.table import row as bound_row
from cumulant.conversion import baselines
from cumulant.domains import Domain, Exact, listed
from cumulant.errors import InputError, shown

CURVES: dict[str, tuple[str, str]] = {"rdp": ("best", "cks"), "paper": ("theorem9", "classic")}
"""The bound and conversion of each method that asks a curve, where the caller names none."""

METHODS = ("best", "exact", *CURVES)
"""The smaller of the exact answer and the curve's; loss distributions; Renyi divergences; the paper's accountant."""

DISTANCE = "total variation"
"""The way of a delta that holds at every epsilon: the distance that the whole curve leaves, where no conversion is named."""

DEFAULT_METHOD = "best"
"""Of every question, in Python and in the shell."""

GUIDE = "rdp"
"""The method whose answers come fast, and show where the exact layer is worth asking."""

DEFAULT_ACCURACY = 1e-3
"""The part of epsilon that the grid of the exact layer may cost."""

_EXAMPLES = {"method": DEFAULT_METHOD, "bound": "best", "conversion": "cks"}

EXACT_BOUNDS = ("best", "profile", "poisson")
"""The bounds that loss distributions exist for."""


def two_sided_method(method: str, bound: str | None, conversion: str | None) -> bool:
    """Whether the exact layer is asked: by method "exact", or by "best" if no row of the curve's tables was named."""
    if method == "exact":
        if conversion is not None:
            raise InputError(
                'method="exact" converts nothing, so it takes no conversion; use method="rdp" to choose one'
            )
        if bound is not None and bound not in EXACT_BOUNDS:
            raise InputError(
                f'method="exact" takes no bound={bound!r}; choose one of {", ".join(EXACT_BOUNDS)}, or method="rdp"'
            )
        return True
    return method == "best" and bound is None and conversion is None


def named(**given: object) -> None:
    """InputError for a method, bound or conversion that is no name; a bound and a conversion may be left out."""
    for name, value in given.items():
        if not (isinstance(value, str) and value) and not (value is None and name != "method"):
            raise InputError(f"{name}={shown(value)} must be a name, such as {_EXAMPLES[name]!r}")


def exact_cone(bound: str | None) -> bool:
    """Whether Theorem B may be used besides the profile."""
    return bound in (None, "best")


def rows(method: str, bound: str | None, conversion: str | None) -> tuple[str, str]:
    """The bound and the conversion a method uses, or an InputError that says what there is to choose."""
    if method not in CURVES:
        if method in baselines.BASELINES:
            raise InputError(f'method={method!r} answers epsilon(delta) only; use method="rdp" or "paper" here')
        raise InputError(f"method={method!r} is unknown; choose one of {', '.join((*METHODS, *baselines.BASELINES))}")
    fixed_bound, fixed_conversion = CURVES[method]
    if method == "paper" and (bound or fixed_bound, conversion or fixed_conversion) != CURVES[method]:
        raise InputError('method="paper" fixes bound and conversion; use method="rdp" to choose them')
    if bound is not None and not bound_row(bound).upper:
        raise InputError(
            f"bound={bound!r} is a lower bound, which proves no epsilon; ask for it with rdp(order, bound={bound!r})"
        )
    return bound or fixed_bound, conversion or fixed_conversion


def checked(name: str, value: Any, domain: Domain) -> tuple[list[Exact], bool]:
    """Checked questions, and whether one scalar was given."""
    if isinstance(value, str | bytes) or not isinstance(value, Iterable) or not getattr(value, "ndim", True):
        return [domain.check(name, value)], True
    return [domain.check(name, each) for each in listed(name, value)], False
