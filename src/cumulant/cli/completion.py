"""Completion on the command line: values of options, names in expressions, accounts of a ledger.

It loads neither numpy nor the library: a shell asks while somebody types.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Any

MECHANISM_NAMES = (
    "ApproximateDP",
    "BoundedLaplace",
    "DirichletPosterior",
    "DiscreteGaussian",
    "DiscreteLaplace",
    "ExponentialFamilyMechanism",
    "ExponentialMechanism",
    "Gaussian",
    "GaussianDP",
    "GaussianMeanPosterior",
    "GaussianMixture",
    "KaryResponse",
    "Laplace",
    "LocalRandomizer",
    "MatrixMechanism",
    "NoisyMax",
    "PartitionSelection",
    "PermuteAndFlip",
    "PrivacyProfile",
    "PureDP",
    "RandomizedResponse",
    "Skellam",
    "SparseVector",
    "SubsetSelection",
    "TradeOff",
    "UnaryEncoding",
    "ZeroConcentrated",
    "from_masses",
    "from_rdp_points",
)
"""Names that an expression may begin with; a test compares them with the registry."""

SCHEME_NAMES = (
    "BallsInBins",
    "CyclicPoisson",
    "FixedOrder",
    "Group",
    "MinSep",
    "Poisson",
    "RandomAllocation",
    "RepeatAndSelect",
    "Shuffle",
    "ShuffledBatches",
    "TruncatedPoisson",
    "User",
    "WithReplacement",
    "WithoutReplacement",
)
"""Names that may stand after '@'; a test compares them with the registries."""

_LAST_NAME = re.compile(r"(?P<sign>@?)\s*(?P<name>\w*)$")
"""The name that is being typed at the end of an expression, and the sign before it."""

_SECONDS = 1.0
"""Seconds that completion waits for a busy database (convention: nobody waits longer for a name)."""


def complete(values: Iterable[str]) -> Callable[[str], list[str]]:
    """Return a function that offers these values.

    >>> complete(["rdp", "paper"])("pa")
    ['paper']
    """
    known = tuple(values)

    def offer(incomplete: str) -> list[str]:
        return [each for each in known if each.startswith(incomplete)]

    return offer


def complete_expression(incomplete: str) -> list[str]:
    """Offer mechanisms for the last name of an expression, and sampling schemes after '@'.

    >>> complete_expression("Gaussian(sigma=1) @ Poi")
    ['Gaussian(sigma=1) @ Poisson(']
    """
    found = _LAST_NAME.search(incomplete)
    if found is None:
        return []
    names = SCHEME_NAMES if found["sign"] else MECHANISM_NAMES
    before = incomplete[: found.start("name")]
    return [f"{before}{each}(" for each in names if each.startswith(found["name"])]


def complete_account(ctx: Any, incomplete: str) -> list[str]:
    """Offer the accounts of the ledger that was typed before, if it is a file that can be read."""
    import sqlite3
    from contextlib import closing
    from pathlib import Path
    from urllib.parse import quote

    place = str(getattr(ctx, "params", {}).get("url") or "")
    path = Path(place.removeprefix("sqlite:///")).absolute()
    if "://" in place.removeprefix("sqlite:///") or not path.is_file():
        return []
    try:
        address = f"file:{quote(str(path))}?mode=ro"
        with closing(sqlite3.connect(address, uri=True, timeout=_SECONDS)) as connection:
            names = [str(name) for (name,) in connection.execute("SELECT account FROM entry WHERE seq = 0")]
    except sqlite3.Error:
        return []
    return sorted(name for name in names if name.startswith(incomplete))
