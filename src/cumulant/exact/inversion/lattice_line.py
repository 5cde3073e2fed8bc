"""Losses on a lattice: the line folds into a finite sum (docs/line.md, section 6).

If S lies in o + aZ and T = aJ, then with l the next point of the lattice above eps, x = eps - (l - a), z = z_m

    SUM_j e^{lam j T} d(eps + jT) = (1/J) SUM_{m mod J} M(z) e^{-z l} [ 1/(1 - e^{-az}) - e^{-(a-x)} / (1 - e^{-a(1+z)}) ].
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any

import numpy as np

from cumulant.exact.inversion.decay import DecayNotProved, covered
from cumulant.exact.inversion.line import (
    Choice,
    Enclosing,
    Followed,
    Kinds,
    bounded_images,
    found_kind,
    leaked,
    outer,
    powers,
)
from cumulant.exact.inversion.settings import LINE
from cumulant.losses.transform import Lattice
from cumulant.numerics.arithmetic import BALLS, Array


def common_lattice(kinds: Kinds) -> Lattice | None:
    """The lattice that holds the sum of all losses, its offset included.

    Returns None where none is known.
    """
    found: list[tuple[Lattice, int]] = []
    for each, times in kinds:
        lattice = None if each.square is not None else each.lattice()
        if lattice is None:
            return None
        found.append((lattice, times))
    if len(found) == 1:
        (only, times), *_ = found
        return Lattice(BALLS.number(only.spacing), times * BALLS.number(only.offset))
    if not all(each.rational for each, _ in found):
        return None
    whole = math.lcm(*(each.spacing.denominator for each, _ in found))
    spacing = Fraction(math.gcd(*(int(each.spacing * whole) for each, _ in found)), whole)
    offset = sum((times * each.offset for each, times in found), start=Fraction(0))
    return Lattice(BALLS.number(spacing), BALLS.number(offset))


def spacing_of(kinds: Kinds) -> float:
    """The spacing of the lattice that holds all losses, roughly; 0 where there is none."""
    with BALLS.at(64):
        found = common_lattice(kinds)
        return 0.0 if found is None else float(found.spacing.mid())


@dataclass(frozen=True, slots=True)
class Folded(Enclosing):
    """M at the frequencies of a line that folds, and a bound of |M| at those left out."""

    choice: Choice
    lattice: Lattice
    folds: int
    """J, which is odd, so that the frequencies are 0 and (J-1)/2 pairs."""
    values: list[Any]
    silence: Any
    """S_N >= |M(z_m)| for N < m <= (J-1)/2."""
    leak: Any
    outer: Callable[[], Any]
    nodes: int
    smooth: Fraction = Fraction(0)
    """Nothing is smoothed."""
    _kept: dict[str, Any] = field(default_factory=dict, compare=False, repr=False)

    @property
    def frequencies(self) -> int:
        return len(self.values) - 1

    @property
    def period(self) -> Any:
        """T = aJ."""
        return self.lattice.spacing * self.folds

    # ---- in balls

    def place(self, epsilon: Any, down: bool) -> tuple[int, Any]:
        """n and a - x with eps in [o + na, o + (n+1)a].

        Where balls cannot tell, of an epsilon a hair below, or above.
        """
        a, o = self.lattice.spacing, self.lattice.offset
        for hair in (0.0, LINE.lattice_nudge, 2.0**10 * LINE.lattice_nudge):
            at = epsilon + (-hair if down else hair) * (abs(epsilon) + a)
            number = int(float(((at - o) / a).mid().floor()))  # a float of the quotient itself may be the next integer
            x = at - o - number * a
            if x >= 0 and x <= a:
                return number, a - x
        raise DecayNotProved("balls cannot tell between which points of the lattice epsilon lies")

    def _weights(self) -> list[tuple[Any, Any]]:
        """M(z_m) e^{-z_m o} over 1 - e^{-a z_m}, and over 1 - e^{-a (1 + z_m)}."""
        from flint import acb, arb

        if "weights" not in self._kept:
            with BALLS.at(self.choice.bits):  # whoever asks first
                a, lam, width = self.lattice.spacing, arb(self.choice.lam), 2 * arb.pi() / self.period
                found = []
                for m, value in enumerate(self.values):
                    z = acb(lam, width * m)
                    shifted = value * (-z * self.lattice.offset).exp()
                    found.append((shifted / (1 - (-a * z).exp()), shifted / (1 - (-a * (1 + z)).exp())))
            self._kept["weights"] = found
        return self._kept["weights"]  # type: ignore[no-any-return]

    def line(self, number: int, rest: Any) -> Any:
        """The sum over |m| <= N at n and a - x, as a ball."""
        from flint import acb, arb

        a, lam = self.lattice.spacing, arb(self.choice.lam)
        less = (-rest).exp()
        # e^{-z (n+1) a}: its phase is that of a root of unity
        turn, total = -2 * arb.pi() / self.folds, arb(0)
        for m, (first, second) in enumerate(self._weights()):
            at = acb(0, turn * (m * (number + 1) % self.folds)).exp()
            total += (1 if m == 0 else 2) * ((first - less * second) * at).real
        return (-lam * (number + 1) * a).exp() / self.folds * total

    def tail(self, number: int, rest: Any) -> Any:
        """(J - 1 - 2N)/J S_N e^{-lam l} [1/(1 - e^{-a lam}) + e^{-(a-x)}/(1 - e^{-a(1+lam)})].

        |1 - e^{-az}| is not smaller.
        """
        from flint import arb

        left = self.folds - 1 - 2 * self.frequencies
        if left <= 0:
            return arb(0)
        a, lam = self.lattice.spacing, arb(self.choice.lam)
        size = 1 / -(-a * lam).expm1() + (-rest).exp() / -(-a * (1 + lam)).expm1()
        next_one = self.lattice.offset + (number + 1) * a
        return (-lam * next_one).exp() * self.silence * size * left / self.folds

    def images(self, epsilon: Any) -> Any:
        """As those of every line."""
        if "outer" not in self._kept:
            self._kept["outer"] = self.outer()
        return bounded_images(self.choice, self.period, self._kept["outer"], epsilon)

    def ball(self, epsilon: Any, power: int = 1) -> Any:
        return self._ball(epsilon, down=True)

    def _ball(self, epsilon: Any, down: bool) -> Any:
        from flint import arb

        place = self.place(epsilon, down)
        return self.leak + self.line(*place) + self.tail(*place) * arb(0, 1)

    def upper(self, epsilon: Any) -> Any:
        """At least delta(eps): images only add to the line, and delta falls."""
        from flint import arb

        found = self.ball(epsilon)
        return arb(found.upper()) if found.is_finite() else arb("inf")

    def lower(self, epsilon: Any) -> Any:
        """At most delta(eps)."""
        from flint import arb

        found = self._ball(epsilon, down=False) - self.images(epsilon)
        return arb(found.lower()) if found.is_finite() else arb(0)

    # ---- in floats, to search with

    def floats(self, power: int = 1) -> FoldedLine:
        """The same in float64, without its error terms."""
        if "floats" not in self._kept:
            with BALLS.at(self.choice.bits):
                top = self.values[0].real
                scaled = [(first / top, second / top) for first, second in self._weights()]
                shift = float(self.lattice.offset.mid())
                lifted = (BALLS.number(self.choice.lam) * self.lattice.offset).exp()
                weights = np.array([[complex(each * lifted) for each in pair] for pair in scaled])
                self._kept["floats"] = FoldedLine(
                    self.choice.lam,
                    float(top.log().mid()),
                    float(self.lattice.spacing.mid()),
                    shift,
                    self.folds,
                    weights,
                )
        return self._kept["floats"]  # type: ignore[no-any-return]


@dataclass(frozen=True, slots=True)
class FoldedLine(Followed):
    """A line that folds."""

    lam: float
    cgf: float
    spacing: float
    offset: float
    folds: int
    weights: Array

    def log_values(self, epsilons: Array) -> tuple[Array, Array]:
        number = np.floor((epsilons - self.offset) / self.spacing)
        following = self.offset + (number + 1) * self.spacing
        less = np.exp(np.clip(epsilons - following, -self.spacing, 0.0))
        order = np.mod(np.mod(number + 1, self.folds)[:, None] * np.arange(len(self.weights)), self.folds)
        turn = np.exp(-2j * math.pi * order / self.folds)
        turn[:, 1:] *= 2
        first, second = (turn @ self.weights).real.T / self.folds
        total = first - less * second
        with np.errstate(divide="ignore", invalid="ignore"):
            value = np.where(total > 0, self.cgf - self.lam * following + np.log(total), -np.inf)
            return value, -less * second / total


def folded(kinds: Kinds, choice: Choice, work: int = LINE.most_work) -> Folded:
    """The line of all rounds, whose losses lie on one lattice; `Slow` where that takes too long."""
    from flint import arb

    lattice = common_lattice(kinds)
    if lattice is None:
        raise DecayNotProved("the losses lie on no lattice")
    a, lam = float(lattice.spacing.mid()), choice.lam
    number = max(math.ceil(choice.period / a) | 1, 3)
    if not (a > 0 and number <= LINE.most_folds):
        raise DecayNotProved("the lattice of the losses is too fine")
    # what is left out is divided by 1 - e^{-a lam} instead of z
    choice = replace(
        choice, period=a * number, silence=choice.silence + max(0.0, 1.0 - math.log(-math.expm1(-a * lam)))
    )
    known = [found_kind(each, times, choice) for each, times in kinds]
    half, width = (number - 1) // 2, 2 * arb.pi() / (lattice.spacing * number)
    step = 2 * math.pi / choice.period
    count = half
    # everything up to (J-1)/2 is summed, unless silence is shown from some frequency up to there
    start = covered(known, [None] * len(known), lam, choice.silence, Fraction(0), step, step * half * (1 + 1e-9))
    if start < step * half:
        count = max(1, math.ceil(start / step * (1 + 1e-12)) - 1)
        while not width * (count + 1) >= start:
            count += 1
    count = min(count, half)
    values, nodes = powers(known, choice, width, count, step * count * (1 + 1e-12), work)
    if count == half:  # nothing is left out
        choice = replace(choice, silence=math.inf)
    top = values[0].real
    if not (top.is_finite() and top > 0):
        raise DecayNotProved("the transform is not finite")
    silence = top * (-arb(choice.silence)).exp()
    return Folded(
        choice, lattice, number, values, silence, leaked(kinds), lambda: outer(kinds, choice, Fraction(0)), nodes
    )
