"""The public names and their signatures: what a release may not change without a deprecation."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from enum import Enum
from pathlib import Path
from typing import Any

import pytest

import cumulant as cm
import cumulant.training
from cumulant.accounting.choices import (
    BOUND_NAMES,
    CONVERSION_NAMES,
    DIRECTIONS,
    METHOD_NAMES,
    PICTURE_KINDS,
    RISK_KINDS,
)
from cumulant.ledger.account import Account, Hold, Status
from cumulant.ledger.chain import Verdict
from cumulant.ledger.entry import Entry, Receipt
from cumulant.mechanisms.mechanism import MECHANISMS
from cumulant.sampling.participation import Participation
from cumulant.sampling.rated import Rated, Sized
from cumulant.sampling.scheme import SCHEMES, Scheme
from cumulant.training.card import Statement
from cumulant.training.individual import Promise
from cumulant.training.sampler import PaddedBatch

pytestmark = pytest.mark.tree

SIGNATURES = Path(__file__).with_name("api.txt")
"""Every public signature, one per line."""

AGAIN = "python -m tests.test_api"
"""Writes the file of signatures anew; run it at the root of the repository."""

TABLES = {"BOUNDS", "__version__"}
"""Public names that are data."""

WORDS: dict[str, tuple[str, ...]] = {
    "method": METHOD_NAMES,
    "conversion": CONVERSION_NAMES,
    "bound": BOUND_NAMES,
    "calibrate kind": RISK_KINDS,
    "direction": DIRECTIONS,
    "plot kind": PICTURE_KINDS,
}
"""Words that a public parameter takes; signatures show only the name of their type."""

RESULTS = {
    "ledger": (Account, Entry, Hold, Receipt, Status, Verdict),
    "training": (PaddedBatch, Promise, Statement),
}
"""Classes that public calls return and nobody makes: their methods and attributes are public, their names are not."""

INTERNAL = (Scheme, Rated, Sized, Participation, cm.Mechanism)
"""Bases whose members are how schemes and mechanisms are defined, not how they are used."""

HOOK = re.compile(
    r"\b(?:Batches|BinGram|Branch|Chain|Curve|Factor|MatrixRun|Pair|Pieces|Plan|Projection|Range|RunRecord)\b"
)
"""Internal types: a method that takes or returns one is how the library is built, and no release promises to keep it."""


def public_names() -> Iterator[tuple[str, Any]]:
    """Yield every public name of the library and of the training loops, with its object."""
    yield from ((name, getattr(cm, name)) for name in cm.__all__)
    yield from ((f"training.{name}", getattr(cm.training, name)) for name in cumulant.training.__all__)
    audit = vars(cumulant.training.audit).items()
    own = ((name, value) for name, value in audit if getattr(value, "__module__", "") == "cumulant.training.audit")
    yield from ((f"training.audit.{name}", value) for name, value in own if not name.startswith("_"))


def signature(value: Any) -> str:
    """Return how a function or class is called; nothing if Python cannot tell."""
    try:
        return re.sub(r"<function (\w+) at 0x\w+>", r"\1", str(inspect.signature(value)))
    except (TypeError, ValueError):
        return ""


def members(name: str, owner: type[Any], documented: set[type[Any]]) -> Iterator[str]:
    """Yield the methods and attributes that a class adds to the public classes from which it derives, or calls otherwise."""
    known = [base for base in owner.__mro__ if base in INTERNAL or (base in documented and base is not owner)]
    for member in dir(owner):
        called = signature(getattr(owner, member))
        inherited = (base for base in known if hasattr(base, member))
        if member.startswith("_") or any(
            base in INTERNAL or signature(getattr(base, member)) == called for base in inherited
        ):
            continue
        home = next(base for base in owner.__mro__ if member in vars(base))
        value = vars(home)[member]
        if not home.__module__.startswith("cumulant"):
            continue
        if isinstance(value, classmethod | staticmethod) or inspect.isfunction(value):
            if not HOOK.search(called):
                yield f"{name}.{member}{called}"
        elif inspect.isdatadescriptor(value):
            yield f"{name}.{member}"


def signatures() -> list[str]:
    """Return one line for every public function, class, method and attribute."""
    found = [f"{parameter}={word!r}" for parameter, words in WORDS.items() for word in words]
    documented = {value for _, value in public_names() if inspect.isclass(value)}
    for place, classes in RESULTS.items():
        for each in classes:
            found += members(f"{place}.{each.__name__}", each, documented)
    for name, value in public_names():
        if name in TABLES or inspect.ismodule(value):
            found.append(name)
        elif not inspect.isclass(value):
            found.append(f"{name}{signature(value)}")
        elif issubclass(value, Enum):
            found += [name, *(f"{name}.{each.name}" for each in value)]
        else:
            found.append(name if issubclass(value, Exception) else f"{name}{signature(value)}")
            found += members(name, value, documented)
    return sorted(found)


def test_the_public_signatures_are_the_committed_ones() -> None:
    written = SIGNATURES.read_text(encoding="utf-8").splitlines()
    gone, new = sorted(set(written) - set(signatures())), sorted(set(signatures()) - set(written))
    assert (gone, new) == ([], []), f"the public API changed; if that is meant, run {AGAIN} and note it in CHANGELOG.md"


def test_dir_shows_exactly_the_public_names() -> None:
    assert dir(cm) == sorted(cm.__all__)
    assert sorted(set(cm.__all__)) == sorted(cm.__all__)
    assert {*MECHANISMS, *SCHEMES, "Ledger", "LedgerError", "LedgerBroken", "KeyConflict", "NoisySGD"} <= set(dir(cm))


@pytest.mark.parametrize("name", sorted(set(cm.__all__) - TABLES))
def test_every_public_name_has_an_example(name: str) -> None:
    assert ">>>" in (getattr(cm, name).__doc__ or "")  # its own: Python does not inherit the docstrings of classes


if __name__ == "__main__":
    SIGNATURES.write_text("\n".join(signatures()) + "\n", encoding="utf-8")
