"""Integer noise on a Poisson sample in which one record is replaced by its opposite.

See docs/samples.md.

Letters: m = distance of a record from an absent one, g = rate, r(x) = mass of the noise, which is symmetric and log-concave,
R(x) = 1 - g + g r(x - m) / r(x), and the loss L(x) = log R(x) - log R(-x), which is odd and increasing.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Protocol

import numpy as np

from cumulant.curves.curve import Curve
from cumulant.losses.atom_transform import point_transform
from cumulant.losses.grid import Loss
from cumulant.losses.transform import Transform
from cumulant.numerics.arithmetic import FLOATS, Arithmetic, Array
from cumulant.pairs.finite_losses import LossPair
from cumulant.pairs.pair import Pair
from cumulant.pairs.public_choice import PublicChoiceCurve

CUT_MASS = Fraction(5e-324)
"""Mass that is cut off on either side at most; derived: both noises have less than e^-745 beyond their last output."""

MOST_TERMS = 4_000
"""Outputs up to which one round has a closed form; measured for Skellam noise, a second in balls."""

MOST_ATOMS = 256
"""Outputs up to which the pair offers a transform; measured: beyond it balls take a second and prove nothing."""


class IntegerNoise(Protocol):
    """A pair of noise on the integers that knows its masses."""

    @property
    def shift(self) -> int:
        """The distance m."""

    def log_masses(self, on: Arithmetic) -> Array | None:
        """Return log r(x) at x = 0, …, n + 2m, n the last output with the mass of a float.

        Returns None if they are too many.
        """

    def group_pair(self, size: int) -> Pair:
        """Return the pair of so many records."""


@dataclass(frozen=True, slots=True)
class NoiseReplacementPair(LossPair):
    """The noise r around 0, and around m in P or -m in Q with probability g.

    `whole` adds what was cut off to the leak; without it the pair bounds from below.
    """

    noise: IntegerNoise
    rate: Fraction
    known: Curve | None = None
    """Its curve, where that is known; else that of joint convexity, which is larger."""
    whole: bool = True

    @property
    def rounded_curve(self) -> bool:  # type: ignore[override]
        return self.known is None

    @property
    def has_closed_form(self) -> bool:
        masses = self.noise.log_masses(FLOATS)
        return masses is not None and len(masses) <= MOST_TERMS

    @property
    def lower_pair(self) -> Pair:
        return replace(self, whole=False)

    @property
    def leak(self) -> Fraction:
        return CUT_MASS if self.whole else Fraction(0)

    def curve(self) -> Curve:
        return self.known or PublicChoiceCurve((self.rate,), (self.noise.group_pair(2).curve(),))

    def losses(self, on: Arithmetic) -> tuple[Array, Array]:
        m, log_r = self.noise.shift, self._masses(on)
        x = np.arange(1, len(log_r) - m)
        log_g, log_kept = on.log(on.number(self.rate)), on.log(on.number(1 - self.rate))
        forward, backward = (
            on.log_add_exp(log_kept, log_g + (log_r[np.abs(x - shift)] - log_r[x])) for shift in (m, -m)
        )
        return forward - backward, log_r[x] + forward

    @property
    def equal(self) -> float:
        log_r = self._masses(FLOATS)
        # r(0) R(0)
        return float(
            (1 - self.rate) * Fraction(np.exp(log_r[0])) + self.rate * Fraction(np.exp(log_r[self.noise.shift]))
        )

    def loss(self) -> Loss | None:
        return None if self.noise.log_masses(FLOATS) is None else LossPair.loss(self)

    def transform(self, rate: Fraction, direction: str) -> Transform | None:
        """Return the transform of the outputs that were kept; None if they are too many.

        The outputs that were cut off leak, and `exact_equal` returns what is then missing to 1. *Proof.* A leak of more than
        they have, taken from where p = q, only tells more. Without a leak, as in `lower_pair`, all of them count as one output
        with p = q: both tails are merged, and reflection swaps them, so the pair is a post-processing. QED
        """
        masses = self.noise.log_masses(FLOATS)
        offered = rate == 1 and masses is not None and len(masses) <= MOST_ATOMS
        return point_transform(self, rate, direction) if offered else None

    def _masses(self, on: Arithmetic) -> Array:
        found = self.noise.log_masses(on)
        if found is None:
            raise OverflowError("noise this wide has too many outputs")
        return found
