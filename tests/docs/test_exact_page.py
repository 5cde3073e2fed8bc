"""The page of the exact layer states the error constants that the code has."""

import math
from pathlib import Path

import pytest

from cumulant.lattice import grids as search
from cumulant.lattice import lattice, single
from cumulant.lattice import other_route as verification
from cumulant.numerics.rounding import U
from cumulant.pairs import cells, step

PAGE = " ".join((Path(__file__).parents[2] / "docs" / "exact.md").read_text(encoding="utf-8").split())


@pytest.mark.parametrize(
    "said",
    [
        f"width at most {step._PANEL:g} / r",
        f"an error below {step.QUADRATURE:g} of the mass",
        f"in each round {step.QUADRATURE:g} for the masses",
        f"({lattice.TRANSFORM:g} u log2 n + {lattice.POWER:g} u) ||x||_2",
        f"(E1 + 2 · {lattice.TRANSFORM:g} u log2 n ||x||_2) + e^{lattice._SILENT:g}",
        f"+ 2 e^-{lattice.FAR:g} ]",
        f"at most e^-{search._CUT:g} of delta",
        f"by {cells.misplaced(0.0, 0.0) / U:g} u (1 + |l|)",
        f"at most 2^{math.log2(search._MOST_POINTS):g} points in the window, 2^{math.log2(search._MOST_POINTS_EVER):g}",
        f"where the accuracy is below {search._USUAL_ACCURACY:g}".replace("0.0001", "1e-4"),
        f"plus {verification._TOLERANCE:g};".replace("1e-09", "1e-9"),
    ],
)
def test_constants(said: str) -> None:
    assert said in PAGE


def test_closed_forms_are_checked_at_four_times_the_precision() -> None:
    assert verification._BITS == 4 * single.BITS
    assert "in balls of four times the precision" in PAGE
