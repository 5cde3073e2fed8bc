"""The pair of a release without noise: two laws that share no output."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cumulant.curves.closed_form import Exposed
from cumulant.losses.atoms import AtomLoss
from cumulant.losses.grid import Loss
from cumulant.numerics.arithmetic import Arithmetic, Array
from cumulant.pairs.pair import Pair


@dataclass(frozen=True, slots=True)
class DisjointPair(Pair):
    """P and Q have no output in common: delta is 1 at every epsilon.

    On a sample delta is the probability that the sample holds the record.

    >>> DisjointPair().profile([0, 1])
    array([1., 1.])
    """

    symmetric = True

    def curve(self) -> Exposed:
        return Exposed()

    def loss(self) -> Loss:
        return AtomLoss((), (), 0.0, 1.0)

    def group_pair(self, size: int) -> Pair:
        return self

    def _log_profile(self, epsilons: Array) -> Array:
        return np.zeros(epsilons.shape)

    def _exact_profile(self, epsilons: Array, on: Arithmetic) -> Array:
        return np.array([on.number(1) for _ in epsilons], dtype=object)
