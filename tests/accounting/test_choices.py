"""The types of method, bound and conversion name exactly the rows of the tables."""

from typing import get_args

from cumulant.accounting.choices import ConversionName, KnownBound, Method
from cumulant.accounting.question import BASELINES, METHODS
from cumulant.bounds.table import BOUNDS
from cumulant.conversion.conversions import CONVERSIONS


def test_the_types_name_the_rows_of_the_tables() -> None:
    assert get_args(Method) == (*METHODS, *BASELINES)
    assert get_args(KnownBound) == tuple(BOUNDS)
    assert get_args(ConversionName) == tuple(CONVERSIONS)
