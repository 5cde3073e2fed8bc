"""The accountant for Flower, asked through objects with the fields and methods of Flower's protocol."""

import copy
import json
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Protocol

import pytest

import cumulant as cm
from cumulant.integrations.flower import CumulantAccountant


class Neighbours(StrEnum):
    ADD = "add-or-remove-one"
    REPLACE = "replace-one"


class Sampling(StrEnum):
    POISSON = "poisson"
    FIXED = "without-replacement"
    ALL = "no-amplification"


@dataclass(frozen=True)
class Config:
    target_delta: float
    population_size: int
    neighboring_relation: Neighbours
    sampling_method: Sampling
    max_epsilon: float | None = None


@dataclass(frozen=True)
class Event:
    noise_multiplier: float
    sample_size: int
    population_size: int


class Accountant(Protocol):
    """The methods that Flower 1.42 asks for, by name."""

    @property
    def config(self) -> Any: ...
    @property
    def num_releases(self) -> int: ...
    def compose(self, event: Any, count: int = 1) -> None: ...
    def get_epsilon(self, delta: float) -> float: ...
    def get_delta(self, epsilon: float) -> float: ...
    def get_privacy_spent(self, delta: float | None = None) -> Any: ...
    def would_exceed(self, event: Any, max_epsilon: float | None = None, count: int = 1) -> bool: ...
    def state_dict(self) -> dict[str, object]: ...
    def load_state_dict(self, state: dict[str, object]) -> None: ...


POISSON = Config(1e-5, 1000, Neighbours.ADD, Sampling.POISSON, 2.0)
EVENT = Event(1.0, 10, 1000)


def test_answers_are_those_of_the_expression() -> None:
    accountant: Accountant = CumulantAccountant(POISSON)
    assert accountant.get_epsilon(1e-5) == 0.0
    accountant.compose(EVENT, 30)
    accountant.compose(EVENT)
    run = cm.Gaussian(noise_multiplier=1, relation=cm.Relation.ADD_REMOVE) @ cm.Poisson(rate="1/100") * 31
    assert accountant.get_epsilon(1e-5) == run.epsilon(1e-5)
    assert accountant.get_delta(0.5) == run.delta("0.5")
    spent = accountant.get_privacy_spent()
    assert (spent.epsilon, spent.delta, spent.num_releases) == (run.epsilon(1e-5), 1e-5, 31)
    assert (spent.accounting_method, spent.optimal_order) == ("cumulant", None)


def test_replaced_clients_move_the_sum_twice_as_far() -> None:
    """Flower's own number 1.305 counts the shift once, and lies below what neighbouring data sets need."""
    accountant = CumulantAccountant(Config(1e-5, 60_000, Neighbours.REPLACE, Sampling.FIXED))
    accountant.compose(Event(2.0, 256, 60_000), 4687)
    assert 1.568 <= accountant.get_epsilon(1e-5) <= 1.617
    assert accountant.run is not None
    lower = accountant.run.guarantee(delta=1e-5).lower
    assert lower is not None
    assert lower > 1.305


def test_no_amplification_is_the_mechanism_itself() -> None:
    accountant = CumulantAccountant(Config(1e-5, 100, Neighbours.ADD, Sampling.ALL))
    accountant.compose(Event(3.0, 10, 100), 2)
    assert accountant.get_epsilon(1e-5) == (cm.Gaussian(sigma=3, relation=cm.Relation.ADD_REMOVE) * 2).epsilon(1e-5)


def test_asking_in_advance_composes_nothing() -> None:
    accountant = CumulantAccountant(POISSON)
    accountant.compose(EVENT, 100)
    before = accountant.state_dict()
    spent = accountant.get_epsilon(1e-5)
    assert accountant.would_exceed(EVENT, max_epsilon=spent)
    assert not accountant.would_exceed(EVENT, max_epsilon=spent + 0.1)
    assert accountant.would_exceed(EVENT, count=10**6)
    assert accountant.state_dict() == before


def test_state_goes_round_by_json() -> None:
    accountant = CumulantAccountant(POISSON)
    accountant.compose(EVENT, 5)
    state = json.loads(json.dumps(accountant.state_dict()))
    assert (state["schema_version"], state["backend"], state["orders"]) == (1, "cumulant", [])
    other = CumulantAccountant(POISSON)
    other.load_state_dict(state)
    assert (other.run, other.num_releases) == (accountant.run, 5)
    changes: list[dict[str, Any]] = [{"schema_version": 2}, {"backend": "rdp"}, {"config": {}}, {"compositions": [{}]}]
    for change in changes:
        with pytest.raises(ValueError, match=r"state|schema"):
            other.load_state_dict({**state, **change})
    assert other.num_releases == 5


def test_a_state_never_forgets_releases() -> None:
    """A state from before the first release set epsilon back to 0, after 500 releases that clients saw."""
    accountant = CumulantAccountant(POISSON)
    start = accountant.state_dict()
    accountant.compose(EVENT, 5)
    accountant.compose(Event(2.0, 10, 1000))
    state = accountant.state_dict()
    other = CumulantAccountant(POISSON)
    other.compose(EVENT, 6)
    for earlier in (start, other.state_dict()):
        with pytest.raises(ValueError, match="still count"):
            accountant.load_state_dict(earlier)
    assert accountant.num_releases == 6
    accountant.load_state_dict(state)
    other = CumulantAccountant(POISSON)
    other.compose(EVENT, 3)
    other.load_state_dict(state)  # has these three, and more
    assert (other.run, other.num_releases) == (accountant.run, 6)


@pytest.mark.parametrize(
    "ask",
    [
        lambda a: a.compose(Event(1.0, 10, 999)),
        lambda a: a.compose(EVENT, 0),
        lambda a: a.compose(EVENT, True),
        lambda a: a.compose(Event(0.0, 10, 1000)).get_epsilon(1e-5),
        lambda a: a.compose(Event(1.0, 2000, 1000)),
        lambda a: a.get_epsilon(0),
        lambda a: a.get_epsilon(float("nan")),
        lambda a: a.get_delta(-1),
        lambda a: a.would_exceed(EVENT, max_epsilon=-1),
        lambda a: a.compose(object()),
        lambda a: CumulantAccountant(object()),
        lambda a: CumulantAccountant(Config(1e-5, 10, Neighbours.REPLACE, Sampling.POISSON)),
        lambda a: CumulantAccountant(Config(1e-5, 10, Neighbours.ADD, Sampling.POISSON)).would_exceed(
            Event(1.0, 1, 10)
        ),
    ],
)
def test_bad_input_is_a_value_error(ask: Any) -> None:
    with pytest.raises((ValueError, AttributeError)):
        ask(CumulantAccountant(POISSON))


def test_threads_share_an_accountant() -> None:
    """Eight threads lost releases: each added its own to the run that it had read."""
    shared, before = CumulantAccountant(POISSON), sys.getswitchinterval()

    def compose(_: int) -> None:
        for _ in range(50):
            shared.compose(EVENT)

    sys.setswitchinterval(1e-6)

    def work(_: int) -> None:
        for _ in range(50):
            shared.compose(EVENT)

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(work, range(8)))
    sys.setswitchinterval(before)
    one = CumulantAccountant(POISSON)
    one.compose(EVENT, 400)
    assert (shared.num_releases, shared.run) == (400, one.run)
    twin = copy.deepcopy(shared)
    twin.compose(EVENT)
    assert (twin.num_releases, shared.num_releases) == (401, 400)
