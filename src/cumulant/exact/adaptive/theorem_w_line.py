"""Theorem W along a line, in balls.

Floats choose the order n, the reference, the line and the gap d, one ball answers.

delta(eps) <= C E_P[g_n(S - eps0); S > eps0],  eps0 = eps - log R,  and g_n has the transform 1/(z (1+z) (1 + z/n)), so that
Theorem L0 holds with it; S is the sum of the losses of the reference, a positive measure. On a lattice the line folds,

    SUM_j e^{lam j T} E g_n(S - eps0 - jT) = (1/J) SUM_{m mod J} M(z) e^{-z l} F(z),   T = aJ,   r = l - eps0 in [0, a],
    F(z) = 1/(1 - e^{-az}) - n/(n-1) e^-r / (1 - e^{-a(1+z)}) + 1/(n-1) e^-nr / (1 - e^{-a(n+z)})      (docs/test-orders.md),

l the next point of the lattice above eps0. All terms on the left are >= 0, so from above the images j != 0 are left out.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any

import numpy as np

from cumulant.exact.adaptive import theorem_w
from cumulant.exact.adaptive.theorem_w import Chosen
from cumulant.exact.inversion.bracket import refine_root, smallest_proved_epsilon
from cumulant.exact.inversion.choose import Side, at_orders, cone_deltas, cone_epsilons
from cumulant.exact.inversion.decay import DecayNotProved
from cumulant.exact.inversion.lattice_line import Folded, folded, spacing_of
from cumulant.exact.inversion.line import Choice, FloatLine, Followed, Spectrum, spectrum
from cumulant.exact.inversion.settings import LINE
from cumulant.exact.rounds import Rounds
from cumulant.numerics.arithmetic import BALLS, Array
from cumulant.numerics.rounding import at_least, rounded_down, rounded_up


@dataclass(frozen=True, slots=True)
class Proved:
    """An epsilon or delta that balls show to be enough for the reference, the order lam + 1 of the line and its size.

    `holds`: the reference is proved to dominate, so that the number is.
    """

    value: float
    order: float
    frequencies: int
    bits: int
    radius: float
    holds: bool


class Tested(ABC):
    """E_P[g_n(S - eps0); S > eps0] along one line, and its images."""

    __slots__ = ()
    order: float

    @property
    @abstractmethod
    def built(self) -> Folded | Spectrum:
        """M at the frequencies of the line."""

    @property
    def choice(self) -> Choice:
        return self.built.choice

    @property
    @abstractmethod
    def frequencies(self) -> int:
        """How many are summed, besides 0."""

    @abstractmethod
    def ball(self, start: Any) -> Any:
        """At this eps0, the leak and what lies beyond the last frequency included."""

    @abstractmethod
    def floats(self) -> Followed:
        """The same in float64, without its error terms and without the leak."""

    def bound(self, epsilon: Any, gap: Any) -> Any:
        """C E[g_n(S - eps + log R)] at this gap d > 0, as a ball."""
        log_ratio, constant = exact_constants(self.order, gap)
        return constant * self.ball(epsilon - log_ratio)

    def upper(self, epsilon: Any, gap: Any) -> Any:
        """At least delta(eps)."""
        from flint import arb

        found = self.bound(epsilon, gap)
        return arb(found.upper()) if found.is_finite() else arb("inf")


def exact_constants(order: float, gap: Any) -> tuple[Any, Any]:
    """log R and C at the ball d > 0: (y - R)_+ <= C n f_n(y) for all y, with equality at y = e^d.

    N is not 1.
    """
    n = BALLS.number(order)
    # C = 1/(1 - e^-nd),  R = n/(n-1) (1 - e^{(1-n)d}) C
    constant = -1 / (-n * gap).expm1()
    return (n / (1 - n) * ((1 - n) * gap).expm1() * constant).log(), constant


# ---- on a lattice


@dataclass(frozen=True, slots=True)
class OnLattice(Tested):
    """A line that folds."""

    folded: Folded
    order: float
    loud: list[tuple[int, Any]]
    """m and M(z_m) where that is summed."""
    hushed: Any
    """A bound of the sum of |M(z_m)| over all others, m mod J."""
    _kept: dict[str, Any] = field(default_factory=dict, compare=False, repr=False)

    @classmethod
    def of(cls, found: Folded, order: float, silence: float) -> OnLattice:
        """Few rounds of few losses are loud again and again.

        What is silent in between is not summed.
        """
        from flint import arb

        beyond = (found.folds - 1 - 2 * found.frequencies) * found.silence
        floor = found.values[0].real * (-arb(silence) - arb(found.folds).log()).exp()
        loud = [(m, value) for m, value in enumerate(found.values) if m == 0 or not abs(value) <= floor]
        return cls(found, order, loud, beyond + 2 * (len(found.values) - len(loud)) * floor)

    @property
    def built(self) -> Folded:
        return self.folded

    @property
    def frequencies(self) -> int:
        return len(self.loud) - 1

    def _weights(self) -> list[tuple[Any, Any, Any]]:
        """M(z_m) e^{-z_m o} over 1 - e^{-a (c + z_m)} for c = 0, 1, n."""
        from flint import acb, arb

        if "weights" not in self._kept:
            with BALLS.at(self.choice.bits):  # whoever asks first
                a, o, lam = self.folded.lattice.spacing, self.folded.lattice.offset, arb(self.choice.lam)
                width, n = 2 * arb.pi() / self.folded.period, arb(self.order)
                found = []
                for m, value in self.loud:
                    z = acb(lam, width * m)
                    shifted = value * (-z * o).exp()
                    found.append(tuple(shifted / (1 - (-a * (c + z)).exp()) for c in (arb(0), arb(1), n)))
            self._kept["weights"] = found
        return self._kept["weights"]  # type: ignore[no-any-return]

    def _parts(self, rest: Any) -> tuple[Any, Any]:
        """What the second and the third sum are multiplied by: -n/(n-1) e^-r and e^-nr/(n-1)."""
        n = BALLS.number(self.order)
        return -n / (n - 1) * (-rest).exp(), (-n * rest).exp() / (n - 1)

    def line(self, number: int, rest: Any) -> Any:
        """The sum over loud m where l = o + (number + 1) a and r = `rest`, as a ball."""
        from flint import acb, arb

        second, third = self._parts(rest)
        # e^{-z (number + 1) a}: its phase is that of a root of unity
        turn, total = -2 * arb.pi() / self.folded.folds, arb(0)
        for (m, _), (at_0, at_1, at_n) in zip(self.loud, self._weights(), strict=True):
            phase = acb(0, turn * (m * (number + 1) % self.folded.folds)).exp()
            total += (1 if m == 0 else 2) * ((at_0 + second * at_1 + third * at_n) * phase).real
        return self._lowered(number) / self.folded.folds * total

    def _lowered(self, number: int) -> Any:
        """e^{-lam (number + 1) a}."""
        return (-BALLS.number(self.choice.lam) * (number + 1) * self.folded.lattice.spacing).exp()

    def tail(self, number: int, rest: Any) -> Any:
        """What is not summed: F(z) = SUM_{i >= 0} e^{-azi} g_n(r + ai), so that |F(z)| <= F(lam)."""
        from flint import arb

        a, o, lam = self.folded.lattice.spacing, self.folded.lattice.offset, arb(self.choice.lam)
        second, third = self._parts(rest)
        summed = [-1 / (-a * (lam + c)).expm1() for c in (arb(0), arb(1), arb(self.order))]
        size = summed[0] + second * summed[1] + third * summed[2]
        return self._lowered(number) * (-lam * o).exp() * self.hushed * size / self.folded.folds

    def ball(self, start: Any) -> Any:
        from flint import arb

        place = self.folded.place(start, down=True)  # the expectation falls in eps0
        return self.folded.leak + self.line(*place) + self.tail(*place) * arb(0, 1)

    def floats(self) -> Followed:
        if "floats" not in self._kept:
            with BALLS.at(self.choice.bits):
                lattice, top = self.folded.lattice, self.folded.values[0].real
                scale = (BALLS.number(self.choice.lam) * lattice.offset).exp() / top
                weights = np.array([[complex(each * scale) for each in three] for three in self._weights()])
                self._kept["floats"] = FoldedFloats(
                    self.choice.lam,
                    float(top.log().mid()),
                    self.order,
                    float(lattice.spacing.mid()),
                    float(lattice.offset.mid()),
                    self.folded.folds,
                    np.array([m for m, _ in self.loud], dtype=np.float64),
                    weights,
                )
        return self._kept["floats"]  # type: ignore[no-any-return]


@dataclass(frozen=True, slots=True)
class FoldedFloats(Followed):
    """The same in float64, at eps0."""

    lam: float
    cgf: float
    order: float
    spacing: float
    offset: float
    folds: int
    loud: Array
    weights: Array

    @np.errstate(all="ignore")
    def log_values(self, epsilons: Array) -> tuple[Array, Array]:
        number = np.floor((epsilons - self.offset) / self.spacing) + 1
        following = self.offset + number * self.spacing
        rest, n = np.clip(following - epsilons, 0.0, self.spacing), self.order
        # a product of integers that floats hold
        turns = np.mod(np.mod(number, self.folds)[:, None] * self.loud, self.folds)
        turn = np.exp(-2j * math.pi * turns / self.folds)
        turn[:, 1:] *= 2
        at_0, at_1, at_n = (turn @ self.weights).real.T / self.folds
        second, third = n / (n - 1) * np.exp(-rest) * at_1, np.exp(-n * rest) / (n - 1) * at_n
        total = at_0 - second + third
        value = np.where(total > 0, self.cgf - self.lam * following + np.log(total), -np.inf)
        return value, (n * third - second) / total


# ---- not on a lattice


@dataclass(frozen=True, slots=True)
class OnLine(Tested):
    """A line whose losses have a density, or are smoothed.

    A Gaussian more dominates in profiles, and so here.
    """

    spectrum: Spectrum
    order: float
    _kept: dict[str, Any] = field(default_factory=dict, compare=False, repr=False)

    @property
    def built(self) -> Spectrum:
        return self.spectrum

    @property
    def frequencies(self) -> int:
        return self.spectrum.frequencies

    def _weights(self) -> list[Any]:
        """M(z_m) / (z_m (1 + z_m) (1 + z_m/n))."""
        from flint import acb, arb

        if "weights" not in self._kept:
            with BALLS.at(self.choice.bits):  # whoever asks first
                lam, step, n = arb(self.choice.lam), 2 * arb.pi() / arb(self.choice.period), arb(self.order)
                points = [(acb(lam, step * m), value) for m, value in enumerate(self.spectrum.values)]
                self._kept["weights"] = [value / (z * (1 + z) * (1 + z / n)) for z, value in points]
        return self._kept["weights"]  # type: ignore[no-any-return]

    def ball(self, start: Any) -> Any:
        from flint import acb, arb

        lam, period = arb(self.choice.lam), arb(self.choice.period)
        turn = -2 * arb.pi() / period * start
        first, *others = self._weights()
        total = first.real
        for m, weight in enumerate(others, start=1):
            total += 2 * (weight * acb(0, m * turn).exp()).real
        # |1 + z/n| >= 1, so that the tail is at most that of Theorem L0
        return self.spectrum.leak + (-lam * start).exp() / period * total + self.spectrum.tail(start) * arb(0, 1)

    def floats(self) -> Followed:
        if "floats" not in self._kept:
            top = self.spectrum.values[0].real
            with BALLS.at(self.choice.bits):
                weights = np.array([complex(weight / top) for weight in self._weights()])
            frequencies = 2 * math.pi / self.choice.period * np.arange(len(weights))
            cgf = float(top.log().mid())
            self._kept["floats"] = FloatLine(self.choice.lam, self.choice.period, cgf, weights, frequencies)
        return self._kept["floats"]  # type: ignore[no-any-return]


# ---- questions


def along_line(at: Chosen, again: bool = False) -> Tested | None:
    """The line of a reference, built for the question it was chosen for.

    Returns None where balls show no silence.

    `again`: of another period, with twice the bits.
    """
    kinds = at.kinds()
    if kinds is None or at.order == 1:
        return None
    spacing, guess = spacing_of(kinds), at.guess
    choice = at_orders(Side(at.terms, kinds), guess.lam, guess.start, guess.size, LINE.lattice_accuracy, spacing)
    if choice is None:
        return None
    if again:
        choice = replace(choice, period=LINE.second_period * choice.period, bits=2 * choice.bits)
    # in epsilon it costs (lam + 1) tau^2 / 2
    smooth = Fraction(2 * LINE.theorem_w_smoothing * max(guess.epsilon, LINE.smallest_epsilon) / (choice.lam + 1))
    for build in (
        lambda: OnLattice.of(folded(kinds, choice), at.order, choice.silence),
        lambda: OnLine(spectrum(kinds, choice), at.order),
        lambda: OnLine(spectrum(kinds, choice, smooth=smooth, work=LINE.theorem_w_smoothing_work), at.order),
    ):
        try:
            with BALLS.at(choice.bits):
                return build()
        except (DecayNotProved, ArithmeticError):
            continue
    return None


def epsilon(rounds: Rounds, delta: Fraction) -> Proved | None:
    """The least epsilon that is found to be enough at this delta in (0, 1).

    Returns None where the line has no answer.
    """
    at = theorem_w.chosen(rounds, math.log(rounded_down(delta)))
    tested = None if at is None else along_line(at)
    return None if at is None or tested is None else _epsilon(tested, at, delta)


def _epsilon(tested: Tested, at: Chosen, delta: Fraction) -> Proved | None:
    line, lam = tested.floats(), tested.choice.lam
    with BALLS.at(tested.choice.bits):
        asked = BALLS.number(delta)
        left = asked - tested.built.leak
        if not left > 0:
            return None
        found, gaps = cone_epsilons(line, np.array([float(left.log().mid())]), at.constants)
        if not (math.isfinite(found[0]) and gaps[0] > 0):
            return None
        gap = BALLS.number(float(gaps[0]))
        start = refine_root(lambda e: tested.upper(e, gap), max(float(found[0]), 0.0), asked, lam)
        if not math.isfinite(start):
            return None
        value = smallest_proved_epsilon(lambda e: tested.upper(e, gap) <= asked, start, lam, LINE.lattice_accuracy)
        if value is None:
            return None
        radius = float(tested.bound(BALLS.number(value), gap).rad())
    slope = abs(line.log_value(value - float(at.constants(gaps)[0][0]))[1]) * rounded_down(delta)
    return _proved(tested, at, value, radius / slope if slope > 0 else math.inf)


def delta(rounds: Rounds, epsilon: Fraction, log_delta: float) -> Proved | None:
    """The least delta that is found to be enough at this epsilon, where e^log_delta is known to be."""

    def ask(at: Chosen) -> tuple[float, Proved] | None:
        tested = along_line(at)
        found = None if tested is None else delta_along(tested, at, epsilon)
        return None if found is None else (found.value, found)

    return theorem_w.least(rounds, rounded_down(epsilon), log_delta, ask)


def delta_along(tested: Tested, at: Chosen, epsilon: Fraction) -> Proved | None:
    """The least delta over the gap at this epsilon, along one line."""
    _, gaps = cone_deltas(tested.floats(), np.array([float(epsilon)]), at.constants)
    with BALLS.at(tested.choice.bits):
        found = tested.bound(BALLS.number(epsilon), BALLS.number(float(gaps[0])))
        if not (gaps[0] > 0 and found.is_finite()):
            return None
        value, radius = min(rounded_up(at_least(found.upper())), 1.0), float(found.rad())
    return _proved(tested, at, value, radius) if value > 0 else None


def _proved(tested: Tested, at: Chosen, value: float, radius: float) -> Proved:
    choice = tested.choice
    return Proved(value, choice.lam + 1, tested.frequencies, choice.bits, radius, at.proved)
