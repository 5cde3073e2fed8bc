"""Events of dp_accounting about draws.

Mixtures of Gaussians, truncated Poisson samples, samples with replacement.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import dp_accounting as dpa
from dp_accounting import NeighboringRelation

from cumulant.domains import Exact
from cumulant.errors import InputError
from cumulant.mechanisms.gaussian import Gaussian
from cumulant.mechanisms.gaussian_mixture import GaussianMixture
from cumulant.mechanisms.mechanism import Expression
from cumulant.relation import Relation
from cumulant.sampling.poisson import Poisson
from cumulant.sampling.truncated_poisson import TruncatedPoisson
from cumulant.sampling.with_replacement import WithReplacement

_ROUNDED = Fraction(1, 10**9)
"""By how much probabilities that are floats may miss 1."""


def mixture(event: Any, relation: Any) -> Expression:
    """Convert a mixture: a coin chooses the sensitivity of the record, or no record.

    Probability that floats lose goes to the largest sensitivity.

    >>> mixture(
    ...     dpa.dp_event.MixtureOfGaussiansDpEvent(2.0, [0.0, 1.0], [0.9, 0.1]), NeighboringRelation.ADD_OR_REMOVE_ONE
    ... )
    GaussianMixture(sigma=2, shifts=[0, 1], weights=[0.9, 0.1])
    """
    if relation is NeighboringRelation.REPLACE_ONE:
        raise InputError("a mixture of Gaussians says what one record adds; nothing is proved under REPLACE_ONE")
    shifts, weights = ([Exact(float(x)) for x in each] for each in (event.sensitivities, event.sampling_probs))
    missing = 1 - sum((Fraction(weight) for weight in weights), start=Fraction(0))
    if missing and abs(missing) <= _ROUNDED and len(shifts) == len(weights):
        order = sorted(range(len(shifts)), key=lambda i: shifts[i])
        place = order[-1] if missing > 0 else next((i for i in order if weights[i] >= -missing), order[0])
        weights[place] = Exact(weights[place] + missing)
    special = relation is NeighboringRelation.REPLACE_SPECIAL
    stated = Relation.REPLACE_SPECIAL if special else Relation.ADD_REMOVE
    return GaussianMixture(sigma=float(event.standard_deviation), shifts=shifts, weights=weights, relation=stated)


def mixture_event(mechanism: GaussianMixture, relation: Relation) -> Any:
    """Return the event of a mixture, if its numbers are floats."""
    numbers = [[float(Exact(x)) for x in each] for each in (mechanism.shifts, mechanism.weights)]
    event = dpa.dp_event.MixtureOfGaussiansDpEvent(float(Exact(mechanism.sigma)), *numbers)
    special = mechanism.relation is Relation.REPLACE_SPECIAL
    named = NeighboringRelation.REPLACE_SPECIAL if special else NeighboringRelation.ADD_OR_REMOVE_ONE
    if mixture(event, named) != mechanism:
        raise InputError(f"{mechanism} has numbers that are no floats, and so no event in dp_accounting")
    return event


def truncated(event: Any, relation: Any) -> Expression:
    """Convert a noisy sum of vectors of norm 1 on a Poisson sample that is cut to a limit.

    >>> event = dpa.dp_event.TruncatedSubsampledGaussianDpEvent(100, 0.25, 20, 2.0)
    >>> truncated(event, NeighboringRelation.ADD_OR_REMOVE_ONE)
    Gaussian(sigma=2, relation="add-remove") @ TruncatedPoisson(rate=0.25, limit=20, population=100)
    """
    if relation is not NeighboringRelation.ADD_OR_REMOVE_ONE:
        raise InputError(f"truncated Poisson samples are accounted under ADD_OR_REMOVE_ONE, not {relation.name}")
    base = Gaussian.from_clipping(norm=1, noise=float(event.noise_multiplier), relation=Relation.ADD_REMOVE)
    rate, limit, records = float(event.sampling_probability), event.truncated_batch_size, event.dataset_size
    if limit > records:
        return base @ Poisson(rate=rate)
    return base @ TruncatedPoisson(rate=rate, limit=limit, population=records)


def with_replacement(event: Any, relation: Any, read: Callable[[Any, Any], Expression | None]) -> Expression | None:
    """Convert an event on a sample that is drawn with replacement."""
    if relation is not NeighboringRelation.REPLACE_ONE:
        raise InputError(f"samples with replacement are accounted under REPLACE_ONE, not {relation.name}")
    inner = read(event.event, relation) if event.sample_size else None
    return None if inner is None else inner @ WithReplacement(event.sample_size, event.source_dataset_size)
