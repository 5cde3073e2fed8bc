"""The composed transform at the frequencies of one line, in balls, and delta from it, from above and from below.

Theorem L0 (docs/line.md): with z_m = lam + 2 pi i m / T

    SUM_j e^{lam j T} d(eps + jT) = (1/T) SUM_m M(z_m) e^{-z_m eps} / (z_m (1 + z_m)),    delta = leak + d,

so that the first N frequencies, what lies beyond them, and the images j != 0, which are not negative, enclose delta.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np

from cumulant.exact.inversion.decay import DecayNotProved, DecayTooSlow, Kind, decay_frequency
from cumulant.exact.inversion.settings import LINE
from cumulant.losses.strip_rule import whole_rule
from cumulant.losses.transform import Rule, Transform
from cumulant.numerics.arithmetic import BALLS, Array

# The transforms of all rounds at the frequencies of one line, in balls: what every line is made of.

Kinds = Sequence[tuple[Transform, int]]


@dataclass(frozen=True, slots=True)
class Choice:
    """What floats have chosen.

    The order lam, the period T, the exponents b of silence and B of the images; a guess of epsilon.

    Every choice is valid; a bad one makes balls wide, or the proof of silence fail.
    """

    lam: float
    period: float
    silence: float
    images: float
    epsilon: float
    log_delta: float
    outer: float
    """The order t > lam by which images on the right are bounded."""

    bits: int
    cost: float = 0.0
    """About the number of its frequencies."""


def powers(
    known: Sequence[Kind], choice: Choice, width: Any, count: int, last: float, work: int
) -> tuple[list[Any], int]:
    """The product of all M_i(z_m)^k_i for m = 0, ..., count, and the number of nodes.

    `Slow` where that exceeds the work.
    """
    from flint import acb

    if count > work:
        raise DecayTooSlow(f"a proof would take {count:,} frequencies")
    values, nodes = [acb(1)] * (count + 1), 0
    for kind in known:
        rule = _rule(kind, choice.lam, last, kind.log_mass - choice.silence - math.log(kind.times) - 6)
        nodes += rule.size
        if nodes * count > work:
            raise DecayTooSlow(f"a proof would take {count:,} frequencies at {nodes:,} nodes")
        values = [value * one**kind.times for value, one in zip(values, transforms(rule, width, count), strict=True)]
    return values, nodes


def leaked(kinds: Kinds) -> Any:
    """The probability that some loss is infinite: 1 - PROD (1 - leak_i)^k_i."""
    from flint import arb

    leaks = [(each.leak(), times) for each, times in kinds if not each.leak().is_zero()]
    return -sum((times * (-leak).log1p() for leak, times in leaks), start=arb(0)).expm1()


def outer(kinds: Kinds, choice: Choice, square: Fraction) -> Any:
    """M(t) of all rounds as a ball, infinite where it is out of reach."""
    from flint import arb

    t = BALLS.number(choice.outer)
    total = ((t + t * t) * BALLS.number(square) / 2).exp()
    try:
        for each, times in kinds:
            if each.square is None:
                total *= _mass(each, choice.outer, -30.0 - math.log(times))[0] ** times
    except OverflowError:  # then nothing is known from below
        return arb("inf")
    return total


def right_tail(t: Any, mass: Any, epsilon: Any) -> Any:
    """c(t) M(t) e^{-t eps} >= d(eps),  c(t) = t^t / (1+t)^{1+t}."""
    return (t * t.log() - (1 + t) * (1 + t).log() - t * epsilon).exp() * mass


def squared(kinds: Kinds) -> Fraction:
    """SUM k t^2 of the Gaussians without a sample among the kinds."""
    return sum((each.square * times for each, times in kinds if each.square is not None), start=Fraction(0))


def found_kind(each: Transform, times: int, choice: Choice) -> Kind:
    """One kind of round at the order of the line."""
    mass, atoms = _mass(each, choice.lam, -choice.silence - math.log(times) - 6)
    if not (mass.is_finite() and mass > 0):
        raise DecayNotProved("the transform of one round is not finite")
    return Kind(times, mass, float(mass.log().mid()), each.mixture(), atoms)


def _mass(each: Transform, lam: float, log_error: float) -> tuple[Any, Rule | None]:
    """M(lam) as a ball, at a real order, and the atoms where it is made of them."""
    law = each.mixture()
    rule = each.atoms(lam, log_error) if law is None else whole_rule(law, lam, 0.0, log_error)
    if rule is None:
        raise DecayNotProved("a law without density and without atoms has no line")
    return rule.mass(), rule if law is None else None


def _rule(kind: Kind, lam: float, last: float, goal: float) -> Rule:
    """The law up to the last frequency."""
    if kind.law is not None:
        return whole_rule(kind.law, lam, last, goal)
    if kind.atoms is None:
        raise DecayNotProved("a law without density and without atoms has no line")
    return kind.atoms


def transforms(rule: Rule, width: Any, count: int) -> list[Any]:
    """M at lam + i m width for m = 0, ..., count.

    Coarse times fine phases, in one product of matrices.
    """
    from flint import acb, acb_mat, arb

    error = rule.error
    blur = acb(error * arb(0, 1), error * arb(0, 1))
    fine = math.isqrt(count) + 1
    coarse = -(-(count + 1) // fine)
    losses = [loss for panel in rule.panels for loss in panel.losses]
    found = [acb(0)] * (coarse * fine)
    for side in ("plus", "minus"):
        weights = [weight for panel in rule.panels for weight in getattr(panel, side)]
        points = list(zip(losses, weights, strict=True)) if weights else []
        if side == "plus":
            points = points + rule.atoms
        if not points:
            continue
        steps = [acb(0, width * loss).exp() for loss, _ in points]
        leaps = [acb(0, width * fine * loss).exp() for loss, _ in points]
        rows: list[Any] = []
        at = [acb(weight) for _, weight in points]
        for _ in range(coarse):
            rows += at
            at = [a * leap for a, leap in zip(at, leaps, strict=True)]
        columns: list[Any] = []
        for one in steps:
            power = acb(1)
            for _ in range(fine):
                columns.append(power)
                power *= one
        product = acb_mat(coarse, len(points), rows) * acb_mat(len(points), fine, columns)
        entries = product.entries()
        if side == "minus":
            entries = [entry.conjugate() for entry in entries]
        found = [a + b for a, b in zip(found, entries, strict=True)]
    return [value + blur for value in found[: count + 1]]


class Followed(ABC):
    """A line in float64: what a search follows, and nothing is claimed from."""

    __slots__ = ()

    lam: float
    cgf: float

    def log_value(self, epsilon: float) -> tuple[float, float]:
        """log of the line at epsilon, the leak left out, and its derivative.

        Returns -inf where the sum is not positive.
        """
        value, slope = self.log_values(np.array([epsilon]))
        return float(value[0]), float(slope[0])

    @abstractmethod
    def log_values(self, epsilons: Array) -> tuple[Array, Array]:
        """The same at several epsilons."""


class Enclosing(ABC):
    """A line that encloses delta."""

    __slots__ = ()
    choice: Choice
    smooth: Fraction

    @property
    @abstractmethod
    def frequencies(self) -> int: ...

    @abstractmethod
    def upper(self, epsilon: Any) -> Any:
        """At least delta(eps)."""

    @abstractmethod
    def lower(self, epsilon: Any) -> Any:
        """At most delta(eps)."""

    @abstractmethod
    def ball(self, epsilon: Any, power: int = 1) -> Any:
        """delta and its images as a ball, and what smoothing adds."""

    @abstractmethod
    def images(self, epsilon: Any) -> Any:
        """What the images add at most."""

    @abstractmethod
    def floats(self, power: int = 1) -> Followed:
        """The same in float64, without its error terms."""

    def cone(self, epsilon: Any, gap: Any) -> Any:
        """At least delta(eps) by Theorem B; not offered unless overridden."""
        return BALLS.number(math.inf)


@dataclass(frozen=True, slots=True)
class Spectrum(Enclosing):
    """M at the frequencies of a line, and a bound of |M| beyond them."""

    choice: Choice
    values: list[Any]
    """M(z_0), ..., M(z_N) as complex balls."""
    silence: Any
    """S_N >= |M(lam + iu)| for all u >= u_{N+1}."""
    leak: Any
    outer: Callable[[], Any]
    """M(t) as a ball, for images on the right."""
    nodes: int
    square: Fraction = Fraction(0)
    """s if all Gaussians without a sample have the transform e^{(z + z^2) s / 2}."""
    smooth: Fraction = Fraction(0)
    """tau^2, the part of s that was added to show silence (Theorems L-upper and L-lower)."""
    _kept: dict[str, Any] = field(default_factory=dict, compare=False, repr=False)

    @property
    def frequencies(self) -> int:
        return len(self.values) - 1

    # ---- in balls

    def _weights(self, power: int) -> list[Any]:
        """M(z_m) / (z_m (1 + z_m))^power."""
        from flint import acb, arb

        name = f"weights {power}"
        if name not in self._kept:
            with BALLS.at(self.choice.bits):  # whoever asks first
                lam, step = arb(self.choice.lam), 2 * arb.pi() / arb(self.choice.period)
                found = []
                for m, value in enumerate(self.values):
                    z = acb(lam, step * m)
                    found.append(value / (z * (1 + z)) ** power)
            self._kept[name] = found
        return self._kept[name]  # type: ignore[no-any-return]

    def line(self, epsilon: Any, power: int = 1) -> Any:
        """Line_N = e^{-lam eps}/T [ c_0 + 2 Re SUM_{m=1}^N c_m e^{-i u_m eps} ], as a ball."""
        from flint import acb, arb

        weights = self._weights(power)
        lam, period = arb(self.choice.lam), arb(self.choice.period)
        turn = -2 * arb.pi() / period * epsilon
        total = weights[0].real
        for m, weight in enumerate(weights[1:], start=1):
            # each phase by itself: a ball that is turned again and again grows by up to sqrt 2 each time
            total += 2 * (weight * acb(0, m * turn).exp()).real
        return (-lam * epsilon).exp() / period * total

    def tail(self, epsilon: Any, power: int = 1) -> Any:
        """|tail| <= e^{-lam eps} S_N / ((2p - 1) pi u_N^{2p-1}).

        |z(1+z)| >= u^2 and SUM_{m>N} m^-2p <= N^{1-2p} / (2p-1).
        """
        from flint import arb

        last = 2 * arb.pi() / arb(self.choice.period) * self.frequencies
        odd = 2 * power - 1
        return (-arb(self.choice.lam) * epsilon).exp() * self.silence / (odd * arb.pi() * last**odd)

    def images(self, epsilon: Any) -> Any:
        """0 <= images <= 1/(e^{lam T} - 1) + c(t) e^{K(t) - t eps} / (e^{(t-lam)T} - 1),  c(t) = t^t / (1+t)^{1+t}."""
        from flint import arb

        if "outer" not in self._kept:
            self._kept["outer"] = self.outer()
        return bounded_images(self.choice, arb(self.choice.period), self._kept["outer"], epsilon)

    def ball(self, epsilon: Any, power: int = 1) -> Any:
        """The whole sum, the leak and what lies beyond the last frequency included.

        Delta and its images.
        """
        from flint import arb

        beyond = self.tail(epsilon, power) * arb(0, 1)
        return (self.leak if power == 1 else 0) + self.line(epsilon, power) + beyond

    def price(self, epsilon: Any) -> Any:
        """0 <= C_tau - delta <= tau^2 e^{tau^2/8} D_tau (Theorem L-lower).

        D_tau is the sum with the weight 1, and beyond u_N at most (1/pi) [ S_N (U - u_N) + M(lam) e^{-V^2 s/2} / (V s) ],
        V = U - 2 pi/T, for every U > u_N + 2 pi/T.
        """
        from flint import arb

        tau, s, width = BALLS.number(self.smooth), BALLS.number(self.square), 2 * arb.pi() / arb(self.choice.period)
        last = width * self.frequencies
        far = arb((last + (2 * arb(self.choice.silence) / s).sqrt()).upper()) + 2 * width
        near = far - width
        beyond = self.silence * (far - last) + self.values[0].real * (-near * near * s / 2).exp() / (near * s)
        density = self.line(epsilon, 0) + (-arb(self.choice.lam) * epsilon).exp() * beyond / arb.pi()
        return tau * (tau / 8).exp() * density

    def upper(self, epsilon: Any) -> Any:
        """At least delta(eps): images only add to the line, and smoothing too (Theorem L-upper)."""
        from flint import arb

        found = self.ball(epsilon)
        return arb(found.upper()) if found.is_finite() else arb("inf")

    def lower(self, epsilon: Any) -> Any:
        """At most delta(eps)."""
        from flint import arb

        found = self.ball(epsilon) - self.images(epsilon)
        if self.smooth:
            found -= arb(self.price(epsilon).upper())
        return arb(found.lower()) if found.is_finite() else arb(0)

    def cone(self, epsilon: Any, gap: Any) -> Any:
        """At least delta(eps) by Theorem B.

        C(d) E[g(S - eps0)], eps0 = eps - log R(d), every gap d > 0 (Theorem L-cone).
        """
        from flint import arb

        log_ratio, constant = cone_constants(gap)
        start = epsilon - log_ratio
        found = constant * self.ball(start, 2)
        return arb(found.upper()) if found.is_finite() else arb("inf")

    # ---- in floats, to search with

    def floats(self, power: int = 1) -> FloatLine:
        """The same line in float64, without its error terms."""
        name = f"floats {power}"
        if name not in self._kept:
            top = self.values[0].real
            weights = [weight / top for weight in self._weights(power)]
            numbers = np.array([complex(weight) for weight in weights])
            frequencies = 2 * math.pi / self.choice.period * np.arange(len(numbers))
            self._kept[name] = FloatLine(
                self.choice.lam, self.choice.period, float(top.log().mid()), numbers, frequencies
            )
        return self._kept[name]  # type: ignore[no-any-return]


@dataclass(frozen=True, slots=True)
class FloatLine(Followed):
    """A line that does not fold."""

    lam: float
    period: float
    cgf: float
    weights: Array
    frequencies: Array

    def log_values(self, epsilons: Array) -> tuple[Array, Array]:
        u = self.frequencies
        terms = self.weights * np.exp(-1j * epsilons[:, None] * u)
        terms[:, 1:] *= 2
        total = terms.real.sum(axis=1) / self.period
        slope = -(self.lam * terms.real - u * terms.imag).sum(axis=1) / self.period
        with np.errstate(divide="ignore", invalid="ignore"):
            value = np.where(total > 0, self.cgf - self.lam * epsilons + np.log(total), -np.inf)
            return value, slope / total


def bounded_images(choice: Choice, period: Any, outer: Any, epsilon: Any) -> Any:
    """1/(e^{lam T} - 1) + c(t) M(t) e^{-t eps} / (e^{(t-lam)T} - 1),  c(t) = t^t / (1+t)^{1+t}."""
    from flint import arb

    lam, t = arb(choice.lam), arb(choice.outer)
    return 1 / (lam * period).expm1() + right_tail(t, outer, epsilon) / ((t - lam) * period).expm1()


def cone_constants(gap: Any) -> tuple[Any, Any]:
    """log R and C of Theorem L-cone at the ball d > 0.

    (y - R)_+ <= C f(y) for all y, with equality at y = e^d.
    """
    # C = 1/(d - 1 + e^-d),  R = e^d (1 - (1+d) e^-d) C
    with BALLS.at(BALLS.precision() + 64):  # both cancel to d^2/2
        slope = gap + (-gap).expm1()
        log_ratio = gap + (-(-gap).expm1() - gap * (-gap).exp()).log() - slope.log()
        return log_ratio, 1 / slope


# ---- from kinds to a spectrum


def spectrum(
    kinds: Kinds,
    choice: Choice,
    extra: Fraction = Fraction(0),
    smooth: Fraction = Fraction(0),
    work: int = LINE.most_work,
) -> Spectrum:
    """The line of all rounds.

    `extra` is the squared shift of Gaussians without a sample besides those among the kinds.

    `smooth` is tau^2 of one more that no round has: what it adds is known, and its decay shows silence where nothing else does.
    `Loud` where no decay is shown or it would take too long. Holds at the precision of the choice.
    """
    from flint import acb, arb

    square = extra + smooth + squared(kinds)
    known = [found_kind(each, times, choice) for each, times in kinds if each.square is None]
    lam, step = choice.lam, 2 * math.pi / choice.period
    start = decay_frequency(known, lam, choice.silence, square / 2, step)
    count = max(1, math.ceil(start / step * (1 + 1e-12)) - 1)
    while not 2 * arb.pi() / arb(choice.period) * (count + 1) >= start:
        count += 1
    width = 2 * arb.pi() / arb(choice.period)
    values, nodes = powers(known, choice, width, count, step * count * (1 + 1e-12), work)
    if square:
        # e^{(z + z^2) s / 2}
        half, exact = BALLS.number(square) / 2, arb(lam)
        for m in range(count + 1):
            z = acb(exact, width * m)
            values[m] *= ((z + z * z) * half).exp()
    top = values[0].real
    silence = top * (-arb(choice.silence)).exp()
    if not (top.is_finite() and top > 0):
        raise DecayNotProved("the transform is not finite")
    return Spectrum(choice, values, silence, leaked(kinds), lambda: outer(kinds, choice, square), nodes, square, smooth)
