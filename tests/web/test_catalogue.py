"""What can be chosen is what is registered, and every choice works as it is offered."""

from __future__ import annotations

from typing import Any

import cumulant as cm
from cumulant.mechanisms.mechanism import MECHANISMS
from cumulant.sampling.scheme import SCHEMES
from cumulant.web.catalogue import COMMON, catalogue


def written(entry: dict[str, Any]) -> str:
    given = ", ".join(f"{each['name']}={each['value']}" for each in entry["parameters"])
    return f"{entry['name']}({given})"


def test_everything_that_is_registered_can_be_chosen() -> None:
    found = catalogue()
    assert {each["name"] for each in found["mechanisms"]} == MECHANISMS.keys()
    assert {each["name"] for each in found["schemes"]} == SCHEMES.keys()


def test_every_choice_is_a_run_under_the_relation_that_it_names() -> None:
    for entry in catalogue()["mechanisms"]:
        assert type(next(iter(cm.parse(written(entry)).terms))) is MECHANISMS[entry["name"]], entry
        assert entry["about"]
    for entry in catalogue()["schemes"]:
        whole = entry["name"] in {
            "BallsInBins",
            "CyclicPoisson",
            "FixedOrder",
            "MinSep",
        }  # of a run with correlated noise
        inner = "MatrixMechanism(bands=[1], steps=1000, sigma=4)" if whole else "PureDP(epsilon=1)"
        run = cm.parse(f"{inner} @ {written(entry)}")
        assert str(run.relation) == entry["relation"]


def test_common_choices_come_first_and_no_parameter_is_hidden() -> None:
    found = catalogue()
    for entries in found.values():
        common = [each["common"] for each in entries]
        assert common == sorted(common, reverse=True)
        assert any(common)
        assert not all(common)
    by_name = {each["name"]: each for entries in found.values() for each in entries}
    assert set(COMMON) <= by_name.keys()
    gaussian = by_name["Gaussian"]
    names = {each["name"] for each in (*gaussian["parameters"], *gaussian["more"])}
    assert {"sigma", "sensitivity", "relation", "noise_multiplier", "clip", "averaged_over"} <= names
    assert {each["name"] for each in by_name["ShuffledBatches"]["more"]} >= {"batch", "records", "batches"}
    assert "matrix" not in {each["name"] for each in by_name["MatrixMechanism"]["more"]}  # an array has no text


def test_a_new_mechanism_is_offered_without_another_line(monkeypatch: Any) -> None:
    class Fresh(cm.PureDP):
        """A mechanism that was written today. And more.

        >>> Fresh(epsilon=3)
        """

    monkeypatch.setitem(MECHANISMS, "Fresh", Fresh)
    catalogue.cache_clear()
    try:
        (entry,) = (each for each in catalogue()["mechanisms"] if each["name"] == "Fresh")
    finally:
        catalogue.cache_clear()
    assert entry["about"] == "A mechanism that was written today"
    assert written(entry) == "Fresh(epsilon=3)"
