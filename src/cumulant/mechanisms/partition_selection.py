"""Partition selection: which keys of a table may be released, when a key that nobody has is never shown."""

from __future__ import annotations

import math
from dataclasses import field
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from cumulant.curves.curve import Curve
from cumulant.domains import CHANCE, FEW, POSITIVE, PROMISED, Domain, Exact, Number
from cumulant.errors import InputError
from cumulant.mechanisms.mechanism import MECHANISMS, Expression, Mechanism, register
from cumulant.numerics.arithmetic import BALLS
from cumulant.numerics.rounding import at_least, decimal_above
from cumulant.parameters import Real, parameter
from cumulant.relation import Relation

if TYPE_CHECKING:
    from cumulant.pairs.polygon import PolygonPair

MOST_USERS = 20_000
"""Numbers of users that are looked at; beyond it the promised (epsilon, delta) alone is used (measured: 0.1 s)."""

POINTS = 64
"""Epsilons of the profile besides the promised one (measured: more change no delta by 1 %)."""

ROUNDED = 2.0**-40
"""The part by which deltas of the profile are raised; a thousand operations on floats lose less."""

ABSOLUTE = 1e-15
"""Slack added to deltas of the profile; derived: differences of probabilities lose a few 1e-16 each at most."""

_DIGITS = 12
"""Significant digits of the chance to show a key, rounded up (convention)."""

_BITS = 128
"""Bits of the balls; convention: 75 more than a float has."""

_THRESHOLD = Domain(
    Fraction(1), None, low_closed=True, hint="a key of one user must be rare; Laplace and Gaussian need at least 1"
)


@register
class PartitionSelection(Mechanism):
    """The rule that releases keys most often, for one user in one partition (Desfontaines, Voss, Gipson, Mandayam 2022).

    A key of n users is released with probability pi_n: pi_0 = 0, pi_{n+1} = min(e^eps pi_n + delta, 1 - e^-eps (1 - pi_n
    - delta), 1). No rule with this epsilon and delta releases any key more often. For add/remove neighbours: a user joins
    or leaves. A user in up to k partitions is `* k`. Which partitions a user keeps must depend on that user's data and
    coins alone.

    >>> rule = PartitionSelection(epsilon=1, delta="1e-5")
    >>> rule.epsilon(delta="1e-5"), rule.release_probability(12) > 0.5
    (1.0, True)
    """

    loss: Real = parameter(PROMISED, alias="epsilon")
    failure: Real = parameter(CHANCE, alias="delta")
    polygon: PolygonPair = field(init=False)

    relation = Relation.ADD_REMOVE

    def _validate(self) -> None:
        from cumulant.pairs.polygon import PolygonPair, convex_corners

        # the envelope over all numbers of users, which no two neighbours have
        corners = convex_corners(*_profile(self.loss, self.failure))
        object.__setattr__(self, "polygon", PolygonPair(*corners, attained=False))

    @classmethod
    def truncated_geometric(cls, epsilon: Number, delta: Number) -> PartitionSelection:
        """Return the rule that releases most, for this (epsilon, delta)."""
        return cls(epsilon, delta)

    @classmethod
    def laplace(cls, scale: Number, threshold: Number) -> Expression:
        """Return Laplace noise on every count and keys above a threshold, both released: (1/scale, e^{-(T-1)/scale} / 2).

        >>> run = PartitionSelection.laplace(scale=1, threshold=PartitionSelection.threshold_for("1e-5", scale=1))
        >>> run.epsilon(delta="1e-5"), str(run.relation)
        (1.0, 'add-remove')
        """
        b, limit = POSITIVE.check("scale", scale), _THRESHOLD.check("threshold", threshold)
        with BALLS.at(_BITS):
            leak = at_least(((-(BALLS.number(limit - 1) / BALLS.number(b))).exp() / 2).upper())
        noise = MECHANISMS["Laplace"](scale=b, relation=Relation.ADD_REMOVE)  # type: ignore[call-arg]
        return noise + cls(0, decimal_above(leak, _DIGITS))

    @classmethod
    def gaussian(cls, sigma: Number, threshold: Number, partitions: int = 1) -> Expression:
        """Return Gaussian noise on every count and keys above a threshold, for a user in at most so many partitions at once.

        The noise of all old keys and the leak of all new ones together bound every mix of old and new keys.

        >>> PartitionSelection.gaussian(sigma=2, threshold=10, partitions=3).delta(epsilon=1)
        0.082551
        """
        s, limit = POSITIVE.check("sigma", sigma), _THRESHOLD.check("threshold", threshold)
        many = FEW.check("partitions", partitions)
        with BALLS.at(_BITS):
            tail = (BALLS.number(limit - 1) / (BALLS.number(s) * BALLS.number(2).sqrt())).erfc() / 2
            leak = at_least((1 - (1 - tail) ** int(many)).upper())
        noise = MECHANISMS["Gaussian"](sigma=s, squared_sensitivity=many, relation=Relation.ADD_REMOVE)  # type: ignore[call-arg]
        return noise + cls(0, decimal_above(leak, _DIGITS))

    @staticmethod
    def threshold_for(
        delta: Number, *, scale: Number | None = None, sigma: Number | None = None, partitions: int = 1
    ) -> Exact:
        """Return a threshold at which keys of one user leak with probability delta at most, rounded up to six decimals.

        >>> PartitionSelection.threshold_for("1e-5", scale=1)  # 1 + log(1 / (2 delta))
        Exact('11.819779')
        """
        leak, many = CHANCE.check("delta", delta), FEW.check("partitions", partitions)
        if (scale is None) == (sigma is None):
            raise InputError("give scale= for Laplace noise or sigma= for Gaussian noise, one of them")
        with BALLS.at(_BITS):
            if scale is not None:
                if many != 1:
                    raise InputError("partitions= is for Gaussian noise; with Laplace noise repeat the rule: run * k")
                place = 1 - BALLS.number(POSITIVE.check("scale", scale)) * BALLS.log(BALLS.number(2 * leak))
            else:
                # each of k keys may leak 1 - (1 - delta)^{1/k}, at least delta / k
                tail = BALLS.number(leak / many)
                place = (
                    1
                    + BALLS.number(POSITIVE.check("sigma", sigma or 1)) * BALLS.number(2).sqrt() * (2 * tail).erfcinv()
                )
            found = max(at_least(place.upper()), Fraction(1))
        return Exact(Fraction(math.ceil(found * 10**6), 10**6))

    def release_probability(self, users: int) -> float:
        """Return the probability with which a key of so many users is released.

        >>> [PartitionSelection(1, "1e-5").release_probability(n) for n in (0, 1, 2, 23)]
        [0.0, 1e-05, 3.718281e-05, 1.0]
        """
        if type(users) is not int or users < 0:
            raise InputError(f"users={users!r} must be a number of users, 0 or more")
        chances = probabilities(float(self.loss), float(self.failure), min(users, 10**6))
        return float(chances[min(users, len(chances) - 1)])

    def own_curve(self, bound: str) -> Curve:
        return self.polygon.curve()

    def pair(self) -> PolygonPair:
        return self.polygon


def probabilities(epsilon: float, delta: float, most: int = MOST_USERS) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """Return pi_0, pi_1, … up to the first that is 1, or up to so many users."""
    grown, shrunk, found = math.exp(epsilon), math.exp(-epsilon), [0.0]
    while found[-1] < 1 and len(found) <= most:
        pi = found[-1]
        found.append(min(grown * pi + delta, 1 - shrunk * (1 - pi - delta), 1.0))
    return np.array(found)


def _profile(epsilon: Exact, delta: Exact) -> tuple[list[Fraction], list[Fraction]]:
    """Return epsilons and deltas that all hold: the promised pair, and smaller epsilons with the worst step n to n + 1."""
    epsilons, deltas = [Fraction(epsilon)], [Fraction(delta)]
    pi = probabilities(float(epsilon), float(delta))
    if epsilon == 0 or pi[-1] < 1:
        return epsilons, deltas
    fewer, more = pi[:-1], pi[1:]
    for place in range(POINTS):
        at = Exact(f"{float(epsilon) * place / POINTS:.9g}")
        a = math.exp(float(at))
        key, none = np.maximum(more - a * fewer, 0), np.maximum((1 - fewer) - a * (1 - more), 0)
        # both orders, each the sum over both answers: the key is shown, or not
        shown = key + np.maximum((1 - more) - a * (1 - fewer), 0)
        hidden = none + np.maximum(fewer - a * more, 0)
        largest = max(float(shown.max()), float(hidden.max()))
        epsilons.append(Fraction(at))
        deltas.append(min(Fraction(largest * (1 + ROUNDED) + ABSOLUTE), Fraction(1)))
    return epsilons, deltas
