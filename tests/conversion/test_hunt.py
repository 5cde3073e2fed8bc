"""A slice of `make hunt`: certified numbers against their own plans at four times the precision."""

import random
from fractions import Fraction

import pytest

import cumulant as cm
from benchmarks import hunt_certificates as hunt
from benchmarks import settings
from cumulant.conversion import certificate
from cumulant.mechanisms.base import MECHANISMS
from cumulant.numerics.rounding import rounded_down, rounded_up

CHEAP = ("unsampled", "caps", "lemma3", "theorem9", "pure-extras", "one-bit", "profile")


@pytest.mark.parametrize("bound", CHEAP)
def test_certified_numbers_are_at_least_their_plan_at_four_times_the_precision(bound: str) -> None:
    tallies = [hunt.batch(bound, seed=3, number=number, size=20)[1] for number in (1, 2)]
    assert [fault for tally in tallies for fault in tally.faults] == []
    assert sum(tally.proved for tally in tallies) > 30
    assert max(tally.largest for tally in tallies) < hunt.MOST_ULPS


@pytest.mark.parametrize("bound", ["gaussian-ball", "best", "theorem27-min", "positive-part"])
def test_integrals_and_moments_too(bound: str) -> None:
    _, tally = hunt.batch(bound, seed=3, number=1, size=4)
    assert tally.settings == 4
    assert tally.faults == []


def test_a_number_that_is_rounded_down_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(certificate, "rounded_up", rounded_down)
    _, tally = hunt.batch("caps", seed=3, number=1, size=16)
    assert tally.faults
    assert tally.faults[0].startswith("cm.parse(")


def test_a_number_that_is_too_large_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(certificate, "rounded_up", lambda value: rounded_up(value * (1 + Fraction(1, 10**12))))
    assert hunt.batch("caps", seed=3, number=1, size=16)[1].faults


def test_every_registered_mechanism_and_every_upper_bound_is_hunted() -> None:
    assert set(settings.DRAWS) == set(MECHANISMS)
    assert set(hunt.shares(1000)) == {"unsampled"} | {name for name, row in cm.BOUNDS.items() if row.upper}
    assert sum(hunt.shares(100_000).values()) == 100_000
    rng = random.Random(1)
    drawn = {settings.mechanism(rng).name() for _ in range(400)}
    assert drawn == set(MECHANISMS)


def test_the_report_counts_every_setting() -> None:
    found = hunt.hunt(settings=36, seed=2)
    assert sum(tally.settings for tally in found.values()) == 36
    assert hunt.report(found).splitlines()[-1].split()[:2] == ["all", "36"]
