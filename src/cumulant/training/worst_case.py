"""Audits of DP-SGD by many runs.

The data set on which one record shows most, and scores of what such runs release.

Run the loop on `worst_case_data`, keep the noisy sums of all steps along the first axis, and score them. Each score finds
other errors: see docs/how-to-audit.md.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import special

from cumulant.domains import COUNT, Exact
from cumulant.errors import InputError
from cumulant.relation import Relation
from cumulant.training.sgd import NoisySGD

Floats = np.ndarray[Any, np.dtype[np.float64]]


def worst_case_data(plan: NoisySGD, *, member: bool, dimension: int = 1) -> Floats:
    """Return one gradient per record on which record 0 shows as much as clipping allows.

    C is the clipping norm.

    Replaced records: all others have the gradient -C, record 0 has +C if it is a member and -C if not. Added records: all
    others have the gradient 0, record 0 has +C if it is a member; a record that is absent adds nothing, so its gradient is 0.
    A model w with the loss <w, x> has the gradient x, so the rows can be used as data of a real loop.

    >>> plan = NoisySGD(batch=2, records=4, steps=3, noise_multiplier=1)
    >>> worst_case_data(plan, member=True).ravel().tolist()
    [1.0, -1.0, -1.0, -1.0]
    """
    size = float(Exact(plan.clip))
    rows = np.zeros((plan.records, int(COUNT.check("dimension", dimension))))
    if plan.relation is Relation.REPLACE_ONE:
        rows[:, 0] = -size
        rows[0, 0] = size if member else -size
    elif member:
        rows[0, 0] = size
    return rows


def likelihood_ratio_scores(plan: NoisySGD, sums: Any) -> Floats:
    """Return the log likelihood ratio of member against not, of the noisy sums of runs.

    The runs are on `worst_case_data`.

    The last axis of `sums` are the steps of one run. This is the best score if the loop does what the plan says, and sees
    too little noise, a forgotten factor 2 or missing clipping. It does not know the order of a loader, nor noise that repeats.

    >>> plan = NoisySGD(batch=2, records=4, steps=3, noise_multiplier=1)
    >>> likelihood_ratio_scores(plan, [[-2, -2, -2], [0, -2, 0]]).round(2).tolist()
    [-1.7, 2.29]
    """
    ratios = _log_ratios(plan, sums)
    if plan.loop.per_step:
        rate = plan.batch / plan.records
        return np.asarray(np.sum(np.log1p(rate * np.expm1(np.minimum(ratios, LARGEST_RATIO))), axis=-1))
    # in every pass the record is in one step, which is uniform
    length = plan.steps_of_a_pass
    score = np.zeros(ratios.shape[:-1])
    for start in range(0, ratios.shape[-1], length):
        steps = ratios[..., start : start + length]
        missing = length - steps.shape[-1]  # steps of a pass that was broken off, in which it may have been
        weights = np.concatenate([steps, np.zeros((*steps.shape[:-1], missing))], axis=-1)
        score = score + special.logsumexp(weights, axis=-1) - np.log(length)
    return np.asarray(score)


def known_order_scores(plan: NoisySGD, sums: Any, holds: Any) -> Floats:
    """Return the log likelihood ratio for an attacker who knows the steps of record 0.

    `holds` says for each step whether it has the record.

    It sees loaders whose order is known or can be guessed, such as shuffle=False or a published seed.

    >>> plan = NoisySGD(batch=2, records=4, steps=3, noise_multiplier=1)
    >>> known_order_scores(plan, [0, -2, 0], [True, False, True]).item()
    4.0
    """
    ratios = _log_ratios(plan, sums)
    return np.asarray(np.sum(np.where(np.asarray(holds, dtype=bool), ratios, 0.0), axis=-1))


def spread_scores(sums: Any) -> Floats:
    """Return the standard deviation of the noisy sums over the steps of each run.

    It alone sees noise that repeats, for instance from a seed that is set anew in every step: what repeats cancels in the
    differences of steps, and what is left is whether record 0 was there.

    >>> spread_scores([[5.0, 5.0, 5.0], [5.0, 7.0, 5.0]]).round(2).tolist()
    [0.0, 0.94]
    """
    return np.asarray(np.std(_steps(sums), axis=-1))


LARGEST_RATIO = 700.0
"""A log ratio whose exponential is still a float; larger ones are cut, which keeps the score a score."""


def _log_ratios(plan: NoisySGD, sums: Any) -> Floats:
    """Return for each step the log ratio of the Gaussian densities with and without record 0."""
    size = float(Exact(plan.clip))
    replaced = plan.relation is Relation.REPLACE_ONE
    shift, base = (2 * size, -plan.batch * size) if replaced else (size, 0.0)
    found = _steps(sums)
    noises = [float(noise) for noise, count in plan.segments for _ in range(min(count, found.shape[-1]))]
    noises += [noises[-1]] * (found.shape[-1] - len(noises))
    deviation = np.array(noises[: found.shape[-1]]) * size
    return np.asarray((shift * (found - base) - shift * shift / 2) / deviation**2)


def _steps(sums: Any) -> Floats:
    try:
        found = np.asarray(sums, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InputError(f"sums must be numbers, the steps of a run along the last axis: {error}") from error
    if found.ndim == 0 or not np.all(np.isfinite(found)):
        raise InputError("sums must be finite numbers, the steps of a run along the last axis")
    return found
