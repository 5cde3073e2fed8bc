"""Flower's privacy accounting: an accountant that implements its protocol and answers with what this library proves.

Flower 1.42 describes releases by `PrivacyConfig` and `GaussianPrivacyEvent` and asks any object with the methods of its
`PrivacyAccountant` protocol. Objects are read by their fields, so that Flower itself need not be installed.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from cumulant.errors import InputError, shown
from cumulant.lock import Lock
from cumulant.mechanisms.gaussian import Gaussian
from cumulant.mechanisms.mechanism import Expression
from cumulant.relation import Relation
from cumulant.sampling.poisson import Poisson
from cumulant.sampling.without_replacement import WithoutReplacement

SCHEMA = 1
"""The version of Flower's state (convention of Flower)."""

BACKEND = "cumulant"

MODELS = {
    ("poisson", "add-or-remove-one"): Relation.ADD_REMOVE,
    ("without-replacement", "replace-one"): Relation.REPLACE_ONE,
    ("no-amplification", "add-or-remove-one"): Relation.ADD_REMOVE,
}
"""Pairs of a way to sample clients and a neighbouring relation, as Flower knows them."""

_CONFIG = ("target_delta", "population_size", "neighboring_relation", "sampling_method", "max_epsilon")
_EVENT = ("noise_multiplier", "sample_size", "population_size")


@dataclass(frozen=True)
class PrivacySpent:
    """The privacy that was spent, with the fields of Flower's record of this name.

    >>> PrivacySpent(1.5, 1e-5, 10, "cumulant").optimal_order is None
    True
    """

    epsilon: float
    delta: float
    num_releases: int
    accounting_method: str
    optimal_order: float | None = None


class CumulantAccountant:
    """A privacy accountant for Flower: compose events, ask for epsilon and delta, keep and restore its state.

    `config` and events are Flower's, or objects with the same fields. Clients are the records: a sum of clipped updates moves
    by the clipping norm if a client is added or removed, and by twice that if one is replaced.

    >>> from types import SimpleNamespace as Record
    >>> config = Record(
    ...     target_delta=1e-5,
    ...     population_size=1000,
    ...     neighboring_relation="add-or-remove-one",
    ...     sampling_method="poisson",
    ...     max_epsilon=2.0,
    ... )
    >>> accountant = CumulantAccountant(config)
    >>> accountant.compose(Record(noise_multiplier=1.0, sample_size=10, population_size=1000), count=50)
    >>> accountant.num_releases, round(accountant.get_epsilon(1e-5), 2)
    (50, 0.58)
    """

    def __init__(self, config: Any) -> None:
        self._config = config
        self._read = _fields(config)
        model = (self._read["sampling_method"], self._read["neighboring_relation"])
        if model not in MODELS:
            known = " or ".join(f"{sampling} with {relation}" for sampling, relation in MODELS)
            raise InputError(f"{model[0]} with {model[1]} is no model of privacy accounting; choose {known}")
        self._relation = MODELS[model]
        self._compositions: list[tuple[dict[str, Any], int]] = []
        self._run: Expression | None = None
        self._lock = Lock()

    @property
    def config(self) -> Any:
        """The configuration, as it was given."""
        return self._config

    @property
    def num_releases(self) -> int:
        """The number of composed releases."""
        return sum(count for _, count in self._compositions)

    @property
    def run(self) -> Expression | None:
        """All that was composed, as an expression; None before the first release."""
        return self._run

    def compose(self, event: Any, count: int = 1) -> None:
        """Add one release, or several identical ones."""
        with self._lock:  # otherwise two threads would add to the same run, and one release would be lost
            run = self._after(event, count)
            self._compositions.append((_event_fields(event), count))
            self._run = run

    def get_epsilon(self, delta: float) -> float:
        """Return the epsilon that holds at this delta."""
        if not _number(delta) or not 0 < delta < 1:
            raise ValueError(f"delta={shown(delta)} must be finite and strictly between 0 and 1")
        return 0.0 if self._run is None else self._run.epsilon(delta)

    def get_delta(self, epsilon: float) -> float:
        """Return the delta that holds at this epsilon."""
        if not _number(epsilon) or not 0 <= epsilon < math.inf:
            raise ValueError(f"epsilon={shown(epsilon)} must be non-negative and finite")
        return 0.0 if self._run is None else self._run.delta(epsilon)

    def get_privacy_spent(self, delta: float | None = None) -> PrivacySpent:
        """Return what was spent at this delta, or at that of the configuration."""
        at = self._read["target_delta"] if delta is None else delta
        with self._lock:  # epsilon and the number of releases are about one run
            return PrivacySpent(self.get_epsilon(at), float(at), self.num_releases, BACKEND)

    def would_exceed(self, event: Any, max_epsilon: float | None = None, count: int = 1) -> bool:
        """Return True if these further releases would exceed the limit; nothing is composed and nothing is replayed."""
        limit = self._read["max_epsilon"] if max_epsilon is None else max_epsilon
        if limit is None:
            raise ValueError("max_epsilon must be given in the configuration or to would_exceed()")
        if not _number(limit) or not 0 < limit < math.inf:
            raise ValueError(f"max_epsilon={shown(limit)} must be positive and finite")
        return bool(self._after(event, count).epsilon(self._read["target_delta"]) > limit)

    def state_dict(self) -> dict[str, object]:
        """Return what can be written as JSON: configuration and releases, in Flower's schema."""
        return {
            "schema_version": SCHEMA,
            "backend": BACKEND,
            "config": dict(self._read),
            "orders": [],
            "compositions": [{"event": dict(event), "count": count} for event, count in tuple(self._compositions)],
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on from a state of an accountant with the same configuration; nothing changes if it is refused.

        A state without all releases that were composed here is refused: clients saw them, so they still count.
        """
        if state.get("schema_version") != SCHEMA:
            raise ValueError(f"schema_version={shown(state.get('schema_version'))} is unknown; this reads {SCHEMA}")
        if state.get("backend") != BACKEND:
            raise ValueError(f"the state is of the backend {shown(state.get('backend'))}, not of {BACKEND}")
        if state.get("config") != self._read:
            raise ValueError("the state has another privacy configuration than this accountant")
        fresh = CumulantAccountant(self._config)
        try:
            for each in state["compositions"]:
                fresh.compose(_Event(**{name: each["event"][name] for name in _EVENT}), each["count"])
        except (KeyError, TypeError) as error:
            raise ValueError(f"the compositions of the state cannot be read: {error}") from error
        with self._lock:
            missing = _counted(self._compositions) - _counted(fresh._compositions)
            if missing:
                raise ValueError(
                    f"the state lacks {missing.total()} of the {self.num_releases} releases that were composed here, and they "
                    "still count; load a state before the first release, or make a new accountant for a new run"
                )
            self._compositions, self._run = fresh._compositions, fresh._run

    def _after(self, event: Any, count: int) -> Expression:
        """The run with so many further releases."""
        given: object = count
        if isinstance(given, bool) or not isinstance(given, int) or given <= 0:
            raise ValueError(f"count={shown(count)} must be a positive integer")
        further = self._step(_event_fields(event)) * count
        return further if self._run is None else self._run + further

    def _step(self, event: Mapping[str, Any]) -> Expression:
        population = self._read["population_size"]
        if event["population_size"] != population:
            raise ValueError(
                f"population_size={event['population_size']} of the event is not that of the configuration, {population}"
            )
        noise = Gaussian.from_clipping(norm=1, noise=event["noise_multiplier"], relation=self._relation)
        match self._read["sampling_method"]:
            case "poisson":
                return noise @ Poisson(sample=event["sample_size"], population=population)
            case "without-replacement":
                return noise @ WithoutReplacement(sample=event["sample_size"], population=population)
        return noise


@dataclass(frozen=True)
class _Event:
    noise_multiplier: float
    sample_size: int
    population_size: int


def _counted(compositions: Iterable[tuple[Mapping[str, Any], int]]) -> Counter[tuple[Any, ...]]:
    """Return how often each event was composed."""
    found: Counter[tuple[Any, ...]] = Counter()
    for event, count in compositions:
        found[tuple(event[name] for name in _EVENT)] += count
    return found


def _number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _fields(config: Any) -> dict[str, Any]:
    """The configuration as plain values; words of enumerations by their value."""
    try:
        found = {name: getattr(config, name) for name in _CONFIG}
    except AttributeError as error:
        raise InputError(f"config={shown(config)} is no PrivacyConfig of Flower: {error}") from None
    return {name: getattr(value, "value", value) for name, value in found.items()}


def _event_fields(event: Any) -> dict[str, Any]:
    try:
        return {name: getattr(event, name) for name in _EVENT}
    except AttributeError as error:
        raise InputError(f"event={shown(event)} is no GaussianPrivacyEvent of Flower: {error}") from None
