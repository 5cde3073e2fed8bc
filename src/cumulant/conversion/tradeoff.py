"""Bounds of attacks from (epsilon, delta) statements: error rates and the advantage.

An attack decides from the output which of two neighbouring data sets was used. Where a run is (epsilon, delta)-DP in both
orders of the pair, an attack of false positive rate a has a true positive rate b with b <= delta + e^epsilon a and, because
being silent is an attack too, 1 - a <= delta + e^epsilon (1 - b). Many statements bound it by the smallest of their bounds.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import Any

import numpy as np

from cumulant.domains import DELTA, EPSILON, PROBABILITY, Number
from cumulant.errors import InputError
from cumulant.numerics.enclosure import BOUNDED, Enclosure

Floats = np.ndarray[Any, np.dtype[np.float64]]


def true_positive_rate(fpr: Iterable[Number], epsilon: Iterable[Number], delta: Iterable[Number]) -> Floats:
    """Return the true positive rate that no attack exceeds, at each false positive rate.

    False positive rates lie in [0, 1]; the result is rounded up.

    The run is (epsilon[i], delta[i])-DP for every i, in both orders of the pair; numbers mean the decimals they print as.

    >>> true_positive_rate([0, 0.01, 0.5], epsilon=[1], delta=[1e-5])
    array([1.00e-05, 2.72e-02, 8.16e-01])
    """
    return np.asarray(np.min(by_statement(fpr, epsilon, delta), axis=1), dtype=np.float64)


def by_statement(fpr: Iterable[Number], epsilon: Iterable[Number], delta: Iterable[Number]) -> Floats:
    """Return the true positive rate by each statement alone, a row for each false positive rate.

    >>> by_statement([0.01], epsilon=[0, 1], delta=[0.1, 1e-5])
    array([[0.11      , 0.02719282]])
    """
    loss, slack = _statements(epsilon, delta)
    rate = BOUNDED.asarray(list(map(partial(PROBABILITY.check, "fpr"), fpr)))[:, None]
    with np.errstate(all="ignore"):
        # b <= delta + e^epsilon a
        rising: Enclosure = slack + np.where(rate.mid == 0, 0.0, BOUNDED.exp(loss) * rate)  # type: ignore[call-overload]
        # b <= 1 - e^-epsilon (1 - delta - a), written without a difference of what is close
        falling = rate - BOUNDED.expm1(-loss) * (1 - rate) + BOUNDED.exp(-loss) * slack
        return np.asarray(np.minimum(np.minimum(rising.upper(), falling.upper()), 1.0), dtype=np.float64)


def advantage(epsilon: Iterable[Number], delta: Iterable[Number]) -> float:
    """Return the largest difference of true and false positive rate, rounded up.

    These statements leave no more to an attack.

    At (0, delta) it is delta, the total variation distance.

    >>> advantage([0], [0.3]), advantage([1, 2], [1e-5, 0])
    (0.3, 0.4621)
    """
    loss, slack = _statements(epsilon, delta)
    with np.errstate(all="ignore"):
        # both bounds meet where a + b = 1; there b - a = (e^epsilon - 1 + 2 delta) / (e^epsilon + 1)
        bound = BOUNDED.tanh(loss / 2) + 2 * slack / (1 + BOUNDED.exp(loss))
    return float(min(np.min(bound.upper()), 1.0))


def _statements(epsilon: Iterable[Number], delta: Iterable[Number]) -> tuple[Enclosure, Enclosure]:
    losses = list(map(partial(EPSILON.check, "epsilon"), epsilon))
    slacks = list(map(partial(DELTA.check, "delta"), delta))
    if not losses or len(losses) != len(slacks):
        raise InputError(f"epsilon has {len(losses)} numbers and delta {len(slacks)}; give one delta for each epsilon")
    return BOUNDED.asarray(losses), BOUNDED.asarray(slacks)
