"""The page of the exact layer states the error constants that the code has."""

import math
import re
from pathlib import Path

import pytest

from cumulant.exact import closed_form, test_functions
from cumulant.exact.grid import fft
from cumulant.exact.grid.settings import GRID
from cumulant.exact.inversion import decay, line
from cumulant.exact.verification import VERIFICATION
from cumulant.losses import cells, gaussian_transform, grid, strip_rule, transform
from cumulant.numerics.rounding import U

LINE_MODULES = (line, decay, transform, gaussian_transform, strip_rule, test_functions)

PAGE = " ".join((Path(__file__).parents[2] / "docs" / "exact.md").read_text(encoding="utf-8").split())


@pytest.mark.parametrize(
    "said",
    [
        f"width at most {grid._PANEL:g} / r",
        f"an error below {grid.QUADRATURE:g} of the mass",
        f"in each round {grid.QUADRATURE:g} for the masses",
        f"({fft.TRANSFORM:g} u log2 n + {fft.POWER:g} u) ||x||_2",
        f"(E1 + 2 · {fft.TRANSFORM:g} u log2 n ||x||_2) + $e^{{{GRID.negligible_log_spectrum:g}}}$",
        f"+ 2 e^{{-{fft.FAR:g}}} \\right]",
        f"at most $e^{{-{GRID.cut:g}}}$ of delta",
        f"by {cells.rounding_slip(0.0, 0.0) / U:g} u (1 + |l|)",
        f"at most 2^{math.log2(GRID.most_points):g} points in the window, 2^{math.log2(GRID.most_points_fine):g}",
        f"where the accuracy is below {GRID.usual_accuracy:g}".replace("0.0001", "1e-4"),
        f"plus {VERIFICATION.tolerance:g};".replace("1e-09", "1e-9"),
    ],
)
def test_constants(said: str) -> None:
    assert said in PAGE


def test_closed_forms_are_checked_at_four_times_the_precision() -> None:
    assert VERIFICATION.closed_form_bits == 4 * closed_form.BITS
    assert "in balls of four times the precision" in PAGE


def test_the_letters_of_the_line_stand_in_the_code() -> None:
    """Every name in the table of letters is a class with that attribute, a constant or a function."""
    page = (Path(__file__).parents[2] / "docs" / "line.md").read_text(encoding="utf-8")
    table = page[page.index("| letter | meaning | in the code |") : page.index("## 1. The identity")]
    names = [name for row in table.splitlines()[2:] for name in re.findall(r"`([^`]+)`", row.rpartition(" | ")[2])]
    assert len(names) > 25
    for name in names:
        owner, _, attribute = name.partition(".")
        found = next(getattr(module, owner) for module in LINE_MODULES if hasattr(module, owner))
        assert not attribute or hasattr(found, attribute) or attribute in found.__dataclass_fields__, name
