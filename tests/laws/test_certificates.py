"""A slice of `make hunt`: certified numbers against their own plans at four times the precision."""

import random
from fractions import Fraction
from typing import Any

import pytest

import cumulant as cm
from benchmarks import hunt_certificates as hunt
from benchmarks import settings
from cumulant.conversion import certify, order_search
from cumulant.mechanisms.mechanism import MECHANISMS
from cumulant.numerics.arithmetic import BALLS
from cumulant.numerics.rounding import at_least, rounded_down, rounded_up
from tests.laws.strategies import WHOLE_RUNS

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


LAPLACE = cm.Laplace(scale="7.217e-2") @ cm.Poisson(rate="2.314e-3") * 1_803_000_000
GAUSSIAN = cm.Gaussian(sigma="7.438e-2", geometry="ball") @ cm.WithoutReplacement(rate="3.588e-1") * 7_956_000_000
ONCE_TOO_SMALL = [
    settings.Setting(LAPLACE, "poisson", "classic", "delta", Fraction(24_440_000)),
    settings.Setting(GAUSSIAN, "gaussian-ball", "classic", "delta", Fraction(252_900_000_000)),
    settings.Setting(GAUSSIAN, "gaussian-ball", "cks", "delta", Fraction(252_900_000_000)),
]
"""Billions of rounds magnify what rounding does to one of them: float64 moved up by 2^-42 was below these deltas."""


@pytest.mark.parametrize("setting", ONCE_TOO_SMALL, ids=lambda each: f"{each.bound}-{each.conversion}")
def test_deltas_that_were_once_too_small(setting: settings.Setting, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each answer against balls at its own order: which one the search finds depends on the orders it remembers."""
    outcome = hunt.checked(setting)
    assert outcome is not None
    assert outcome.fault == ""
    searched, search = [], order_search.best_delta

    def recorded(*given: Any) -> order_search.Minimum:
        searched.append(search(*given))
        return searched[-1]

    monkeypatch.setattr(order_search, "best_delta", recorded)
    curve = setting.run.curve(setting.bound)
    asked: dict[str, Any] = {"bound": setting.bound, "conversion": setting.conversion}

    def least(order: Fraction) -> Fraction:
        with BALLS.at(hunt.TIMES_THE_BITS * certify.FIRST_BITS):
            return -at_least(-hunt.evaluated(setting, curve, order).lower())

    delta = Fraction(setting.run.delta(setting.asked, **asked))
    assert delta >= least(Fraction(repr(float(searched[-1].order[0])))) > 0
    searched.clear()
    delta = Fraction(setting.run.delta([setting.asked], **asked)[0])
    assert delta >= least(Fraction(searched[-1].order[0] - 1) + 1) > 0


def test_the_delta_of_billions_of_laplace_rounds() -> None:
    asked: dict[str, Any] = {"bound": "poisson", "conversion": "classic"}
    assert LAPLACE.delta(epsilon=24_440_000, **asked) >= 0.23405325225951  # the least over all orders, to 14 digits
    assert (
        LAPLACE.delta(epsilon=[24_440_000], **asked)[0] >= 0.23405325225951
    )  # the least over all orders, to 14 digits


def test_a_number_that_is_rounded_down_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(certify, "rounded_up", rounded_down)
    _, tally = hunt.batch("caps", seed=3, number=1, size=16)
    assert tally.faults
    assert tally.faults[0].startswith("cm.parse(")


def test_a_number_that_is_too_large_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(certify, "rounded_up", lambda value: rounded_up(value * (1 + Fraction(1, 10**12))))
    assert hunt.batch("caps", seed=3, number=1, size=16)[1].faults


def test_every_registered_mechanism_and_every_upper_bound_is_hunted() -> None:
    differ = set(settings.DRAWS) ^ (set(MECHANISMS) - WHOLE_RUNS)
    assert not differ, (
        f"{differ} is registered or in DRAWS, not both; add it to DRAWS of benchmarks/settings.py, see CONTRIBUTING"
    )
    assert set(hunt.shares(1000)) == {"unsampled"} | {name for name, row in cm.BOUNDS.items() if row.upper}
    assert sum(hunt.shares(100_000).values()) == 100_000
    rng = random.Random(1)
    drawn = {settings.mechanism(rng).name() for _ in range(1000)}
    assert drawn == set(MECHANISMS) - WHOLE_RUNS


def test_the_report_counts_every_setting() -> None:
    found = hunt.hunt(settings=50, seed=2)
    assert sum(tally.settings for tally in found.values()) == 50
    assert hunt.report(found).splitlines()[-1].split()[:2] == ["all", "50"]
