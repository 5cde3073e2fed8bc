"""Local randomizers by the laws of their reports: known ones, their divergences, and bad input."""

from __future__ import annotations

from typing import Any

import pytest

import cumulant as cm


def test_two_inputs_are_their_pair() -> None:
    one, other = cm.LocalRandomizer(inputs=2, masses=["3/4", "1/4", "1/4", "3/4"]), cm.RandomizedResponse(p="3/4")
    assert one.rdp(3) == pytest.approx(other.rdp(3))
    assert one.delta(epsilon="0.3") == pytest.approx(other.delta(epsilon="0.3"))
    assert one.relation is cm.Relation.REPLACE_ONE


def test_three_inputs_take_the_worst_two() -> None:
    laws = [["1/2", "1/4", "1/4"], ["1/4", "1/2", "1/4"], ["1/10", "1/10", "4/5"]]
    report = cm.LocalRandomizer(inputs=3, masses=[mass for law in laws for mass in law])
    pairs = [cm.from_masses(laws[i], laws[j]) for i in range(3) for j in range(i)]
    for order in (1.5, 2, 20):
        assert report.rdp(order) == pytest.approx(max(pair.rdp(order) for pair in pairs))
    assert cm.parse(str(report)) == report


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: cm.LocalRandomizer(inputs=2, masses=["1/2", "1/2", 1]), "no multiple"),
        (lambda: cm.LocalRandomizer(inputs=2, masses=["1/2", "1/2", "1/2", "1/4"]), "must sum to 1"),
        (lambda: cm.LocalRandomizer(inputs=1, masses=["1/2", "1/2"]), "inputs=1 must be"),
        (lambda: cm.LocalRandomizer(inputs=2, masses=["3/2", "-1/2", 1, 0]), "masses"),
    ],
)
def test_what_is_refused(make: Any, words: str) -> None:
    with pytest.raises(cm.InputError, match=words):
        make()
