"""No forged field of any entry is both accepted by verify and over the budget; the long hunt is make hunt-ledger."""

import random
from pathlib import Path

import pytest

from cumulant.ledger.entry import Entry
from cumulant.ledger.policy import Policy
from tests.ledger import forgery


def test_no_mutant_is_accepted_and_over_budget() -> None:
    counts, wrong = forgery.hunt(250, seed=2)
    assert wrong == []
    assert counts["refused"] > 150
    assert counts["accepted"] > 10  # names, hosts and the like change no budget


def test_every_field_of_every_kind_is_tried(tmp_path: Path) -> None:
    entries = forgery.originals(str(tmp_path))
    every = forgery.fields(entries)
    for name in (
        "policy",
        "run",
        "charge",
        "certificates",
        "prices",
        "old",
        "of",
        "share",
        "team",
        "note",
        "time",
        "format",
    ):
        assert any(field.path[:1] == (name,) for field in every), name
    for name in Policy.__dataclass_fields__:
        assert any(field.path[:2] == ("policy", name) for field in every), name


@pytest.mark.parametrize(
    ("account", "field", "value"), [("gaussian", "mu", "100"), ("adaptive", "weights", ["1000000"] * 13)]
)
def test_the_hunt_would_find_what_reading_did_not_check(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, account: str, field: str, value: object
) -> None:
    entries = forgery.originals(str(tmp_path))[account]
    place = forgery.Field(account, 0, "body", ("policy", field))
    monkeypatch.setattr(forgery, "mutated", lambda *_: value)

    def made() -> list[Entry]:
        rng = random.Random(1)
        rng.random()  # the first draw decides whether the field is left out
        return forgery.forge(entries, place, rng, [])

    assert not forgery.check(made())
    monkeypatch.setattr(Policy, "check", lambda policy: None)
    assert forgery.check(made())
    assert forgery.excess(made()) > forgery.ROOM
