"""A short trial of writers that are stopped, linked and robbed of their files; `make hunt-ledger` makes a long one."""

from pathlib import Path

from tests.ledger.disturbance import problems, removed, stopped_and_linked


def test_nothing_goes_unnoticed(tmp_path: Path) -> None:
    one = stopped_and_linked(tmp_path, seconds=3, count=3, seed=2)
    many = [removed(tmp_path, count=3, seed=3)]
    assert problems(one, many) == [], (one, many)


def test_what_would_go_unnoticed_is_a_problem() -> None:
    good = {"receipts": 5, "twice": 0, "entries beyond receipts": 0, "sound": True, "second name spent": 0, "broken": 0}
    quiet = {"running": 0, "receipts of one writer after it": 1}
    assert problems(good, [quiet]) == []
    for wrong in ({"twice": 1}, {"second name spent": 1}, {"sound": False}, {"receipts": 0}):
        assert problems(good | wrong, [quiet])
    assert problems(good, [quiet | {"running": 1}])
    assert problems(good, [quiet | {"receipts of one writer after it": 2}])
