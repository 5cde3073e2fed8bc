"""Composition theorems for (epsilon, delta) alone: the baselines of Figure 2.

Item 47 and E-16 of the paper.

Each round is stated at a delta of its own, by eq. (3) for the mechanism and Lemma 3 for its sample, both in enclosures, and
that delta is chosen so that the total is least.

`naive`      epsilons and deltas add. The best choice spends everything on the rounds: delta / (k g) at each.
`strong`     Kairouz, Oh and Viswanath, Theorems 3.4 and 3.5: their closed form, which also improves on Theorem 13.
`optimal`    Kairouz, Oh and Viswanath, Theorem 3.3, exact: no better number follows from (epsilon, delta) alone. For
             too many different rounds it is `strong`, and the guarantee says so in its note.
"""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction

import numpy as np

from cumulant.conversion import array_answers, composition
from cumulant.conversion.composition import Method, Round, Step
from cumulant.conversion.conversions import conversion
from cumulant.curves.curve import Curve
from cumulant.errors import InputError, shown
from cumulant.numerics.arithmetic import Array
from cumulant.numerics.rounding import rounded_up

BASELINES: dict[str, Method] = {
    "naive": composition.naive,
    "strong": composition.simplified,
    "optimal": composition.optimal,
}
"""Each baseline's composition theorem."""


def baseline_epsilon(steps: Iterable[Step], delta: float, method: str) -> float:
    """Return the least epsilon that the named baseline proves for all these steps, rounded up.

    It is at a total delta.

    >>> from cumulant.curves.closed_form import Concentrated
    >>> gaussian = step(Concentrated(Fraction(1, 50)), Fraction(1, 1000), 600_000)  # sigma = 5
    >>> [round(baseline_epsilon([gaussian], 1e-8, method), 2) for method in BASELINES]
    [1901.81, 18.68, 17.04]
    """
    return baseline_rounds(steps, delta, method)[0]


def baseline_rounds(steps: Iterable[Step], delta: float, method: str) -> tuple[float, tuple[Round, ...]]:
    """Return that epsilon with the (epsilon, delta) at which it states a round of each step.

    There are no rounds if the epsilon is infinite.
    """
    try:
        theorem = BASELINES[method]
    except (KeyError, TypeError):
        raise InputError(f"method={shown(method)} is unknown; choose one of {', '.join(BASELINES)}") from None
    return composition.optimised_rounds(steps, delta, theorem)


def step(curve: Curve, rate: Fraction, times: int) -> Step:
    """Return a mechanism with this curve that runs so often on a sample of this rate.

    The rate 1 is all the data.

    >>> from cumulant.curves.closed_form import Response
    >>> step(Response(epsilon=Fraction(1, 2)), Fraction(1), 3)[0](np.array([0.0, 1e-9]))
    array([0.5, 0.5])
    """

    def epsilon_of_delta(delta: Array) -> Array:
        exact = [Fraction(each) for each in np.atleast_1d(delta).tolist()]
        return array_answers.least_epsilons(curve, exact, conversion("classic")).reshape(np.shape(delta))

    # a larger rate means a smaller delta for the mechanism and a larger epsilon by Lemma 3
    return epsilon_of_delta, rounded_up(rate), times, rounded_up(curve.slack())
