"""Every row of the tables of amplification bounds by its name."""

from __future__ import annotations

from cumulant.bounds.allocation import ALLOCATION
from cumulant.bounds.bound import Bound
from cumulant.bounds.draws import TRUNCATED_POISSON, WITH_REPLACEMENT
from cumulant.bounds.poisson import POISSON
from cumulant.bounds.poisson_replacement import REPLACEMENT
from cumulant.bounds.without_replacement import WITHOUT_REPLACEMENT
from cumulant.errors import InputError, shown
from cumulant.hints import nearest
from cumulant.html_box import table_box


class BoundTable(dict[str, Bound]):
    """Bounds by name; a notebook shows them as a table."""

    def __repr__(self) -> str:
        return f"<{len(self)} bounds: {', '.join(self)}>"

    def _repr_html_(self) -> str:
        rows = [[name, "upper" if bound.upper else "lower", bound.citation] for name, bound in self.items()]
        return table_box(f"{len(self)} bounds", ["name", "bound", "from"], rows)


BOUNDS = BoundTable(WITHOUT_REPLACEMENT)
"""Every row by its name; a name that two tables have is that of the first."""

for _table in (POISSON, REPLACEMENT, ALLOCATION, WITH_REPLACEMENT, TRUNCATED_POISSON):
    BOUNDS |= {name: bound for name, bound in _table.items() if name not in BOUNDS}
"""Every row by name; a name that several have is here with its statement about sampling without replacement."""

OWN: dict[str, Bound] = {}
"""Rows of schemes that are written elsewhere, by name: the scheme says them when its class is made."""


def row(name: str) -> Bound:
    """The row of this name.

    >>> row("theorem9").citation
    'Wang, Balle, Kasiviswanathan 2019, Theorem 9'
    """
    try:
        return BOUNDS[name] if name in BOUNDS else OWN[name]
    except (KeyError, TypeError):
        raise InputError(
            f"bound={shown(name)} is unknown{nearest(name, BOUNDS)}; choose one of {', '.join(BOUNDS)}"
        ) from None
