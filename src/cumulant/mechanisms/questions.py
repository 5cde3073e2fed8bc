"""How a question is put: which bound and conversion it means, and what numbers it may contain."""

from __future__ import annotations

from typing import Any

import numpy as np

from cumulant.bounds.table import row as bound_row
from cumulant.conversion import baselines
from cumulant.domains import Domain, Exact
from cumulant.errors import InputError

METHODS: dict[str, tuple[str, str]] = {"rdp": ("best", "cks"), "paper": ("theorem9", "classic")}
"""Each method's bound and conversion, where the caller names none."""

DEFAULT_METHOD = "rdp"


def rows(method: str, bound: str | None, conversion: str | None) -> tuple[str, str]:
    """The bound and the conversion a method uses, or an InputError that says what there is to choose."""
    if method not in METHODS:
        if method in baselines.BASELINES:
            raise InputError(f'method={method!r} answers epsilon(delta) only; use method="rdp" or "paper" here')
        raise InputError(f"method={method!r} is unknown; choose one of {', '.join((*METHODS, *baselines.BASELINES))}")
    fixed_bound, fixed_conversion = METHODS[method]
    if method == "paper" and (bound or fixed_bound, conversion or fixed_conversion) != METHODS[method]:
        raise InputError('method="paper" fixes bound and conversion; use method="rdp" to choose them')
    if bound is not None and not bound_row(bound).upper:
        raise InputError(
            f"bound={bound!r} is a lower bound, which proves no epsilon; ask for it with rdp(order, bound={bound!r})"
        )
    return bound or fixed_bound, conversion or fixed_conversion


def checked(name: str, value: Any, domain: Domain) -> tuple[list[Exact], bool]:
    """Checked questions, and whether one scalar was given."""
    if isinstance(value, str) or np.ndim(value) == 0:
        return [domain.check(name, value)], True
    return [domain.check(name, each) for each in value], False
