"""The attack on triples: it finds nothing, and finds what is broken."""

import numpy as np
import pytest

from benchmarks import hunt_triples
from cumulant.bounds import laplace_budget
from cumulant.exact.adaptive import value_iteration


def test_no_triple_and_no_adversary_is_above_what_is_claimed() -> None:
    found, tried = hunt_triples.hunt(settings=9, seed=1)
    assert len(found) >= 11
    assert all(tried[attack.__name__] for attack in hunt_triples.ATTACKS)
    assert max(found.values()) <= 1 + hunt_triples.TOLERANCE
    assert min(found.values()) > 0.1


def test_a_budget_that_is_too_small_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        hunt_triples, "largest_square", lambda shift, query: 0.9 * (laplace_budget.largest_square(shift, query) or 0)
    )
    rng, found = np.random.default_rng(2), {"square": 0.0}
    for _ in range(20):
        hunt_triples.squares(rng, found)
    assert found["square"] > 1


def test_a_coefficient_that_is_too_small_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    honest = value_iteration._split_to_grid
    monkeypatch.setattr(
        value_iteration,
        "_split_to_grid",
        lambda *given: {place: 0.999 * each for place, each in honest(*given).items()},
    )
    value_iteration._value.cache_clear()
    rng, found = (
        np.random.default_rng(3),
        dict.fromkeys(("value from above", "value from below", "again from above", "again from below"), 0.0),
    )
    for _ in range(10):
        hunt_triples.reports(rng, found)
    value_iteration._value.cache_clear()
    assert found["value from above"] > 1
