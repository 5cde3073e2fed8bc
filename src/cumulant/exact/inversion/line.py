"""Inversion line: the moment function of all rounds at some frequencies, and delta from it.

Everything is computed in balls.

Theorem L0 (docs/line.md): with z_m = lam + 2 pi i m / T and a test function g whose transform is 1/D(z),

    SUM_j e^{lam j T} E g(S - eps - jT) = (1/T) SUM_m M(z_m) e^{-z_m eps} / D(z_m).

The first N frequencies, a bound on those beyond them, and the images j != 0, which are not negative, enclose E g(S - eps); for
the hockey stick that is delta without the leak. If S lies on a lattice o + aZ and T = aJ the sum is finite: with l the next
lattice point above eps and r = l - eps,

    SUM_j e^{lam j T} E g(S - eps - jT) = (1/J) SUM_{m mod J} M(z_m) e^{-z_m l} F(z_m),
    F(z) = SUM_{i >= 0} e^{-azi} g(r + ai).
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np

from cumulant.exact.inversion.decay import DecayNotProved, DecayTooSlow, TiltedType, decay_frequency
from cumulant.exact.inversion.settings import LINE
from cumulant.exact.rounds import RoundTypes
from cumulant.exact.test_functions import HOCKEY_STICK, TestFunction
from cumulant.losses.strip_rule import whole_rule
from cumulant.losses.transform import Lattice, Rule, Transform
from cumulant.numerics.arithmetic import BALLS, Array


@dataclass(frozen=True, slots=True)
class Choice:
    """Order, period, exponents and precision of a line, as floats choose them.

    Every choice is valid; a bad one makes balls wide, or the proof of decay fail.
    """

    lam: float
    """The real part of the line; the Rényi order is lam + 1."""
    period: float
    """T, the distance of two images."""
    decay_exponent: float
    """The exponent b of the decay: |M| <= M(lam) e^-b beyond the last frequency."""
    image_exponent: float
    """The exponent B: images are below e^-B delta."""
    epsilon: float
    """A guess of epsilon."""
    log_delta: float
    """A guess of log delta."""
    image_order: float
    """The order t > lam by which images on the right are bounded."""
    bits: int
    """Precision of the balls."""
    cost: float = 0.0
    """About the number of frequencies."""


# ---- the composed transform


def composed_transform(
    known: Sequence[TiltedType], choice: Choice, width: Any, count: int, last: float, work: int
) -> tuple[list[Any], int]:
    """Return PROD M_i(z_m)^k_i for m = 0, ..., count, and the number of nodes.

    Raises DecayTooSlow if frequencies times nodes exceed the work.
    """
    from flint import acb

    if count > work:
        raise DecayTooSlow(f"a proof would take {count:,} frequencies")
    values, nodes = [acb(1)] * (count + 1), 0
    for round_type in known:
        goal = round_type.log_mass - choice.decay_exponent - math.log(round_type.times) - 6
        law = round_type.law
        rule = round_type.atoms if law is None else whole_rule(law, choice.lam, last, goal)
        if rule is None:
            raise DecayNotProved("a law without density and without atoms has no line")
        nodes += rule.size
        if nodes * count > work:
            raise DecayTooSlow(f"a proof would take {count:,} frequencies at {nodes:,} nodes")
        for m, value in enumerate(transform_values(rule, width, count)):
            values[m] *= value**round_type.times
    return values, nodes


def leak_probability(round_types: RoundTypes) -> Any:
    """Return the probability that some loss is infinite: 1 - PROD (1 - leak_i)^k_i."""
    from flint import arb

    total = arb(0)
    for each, times in round_types:
        leak = each.leak()
        if not leak.is_zero():
            total += times * (-leak).log1p()
    return -total.expm1()


def common_lattice(round_types: RoundTypes) -> Lattice | None:
    """Return the lattice that holds the sum of all losses, offset included.

    Returns None if none is known.
    """
    found: list[tuple[Lattice, int]] = []
    for each, times in round_types:
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


def spacing_of(round_types: RoundTypes) -> float:
    """Return the spacing of the lattice that holds all losses, roughly; 0 if there is none."""
    with BALLS.at(64):
        found = common_lattice(round_types)
        return 0.0 if found is None else float(found.spacing.mid())


def moment_ball(round_types: RoundTypes, choice: Choice, square: Fraction) -> Any:
    """Return M(t) of all rounds at the image order as a ball; infinite if it is out of reach."""
    from flint import arb

    t = BALLS.number(choice.image_order)
    total = ((t + t * t) * BALLS.number(square) / 2).exp()
    try:
        for each, times in round_types:
            if each.square is None:
                total *= _mass(each, choice.image_order, -30.0 - math.log(times))[0] ** times
    except OverflowError:  # images are then unbounded, and lower ends are 0
        return arb("inf")
    return total


def right_tail_bound(t: Any, mass: Any, epsilon: Any) -> Any:
    """Return c(t) M(t) e^{-t eps} >= delta(eps) - leak,  c(t) = t^t / (1+t)^{1+t}."""
    return (t * t.log() - (1 + t) * (1 + t).log() - t * epsilon).exp() * mass


def image_bound(choice: Choice, period: Any, moment: Any, epsilon: Any) -> Any:
    """Return a bound on the hockey stick's images.

    1/(e^{lam T} - 1) + c(t) M(t) e^{-t eps} / (e^{(t-lam)T} - 1): the images on the left and on the right.
    """
    lam, t = BALLS.number(choice.lam), BALLS.number(choice.image_order)
    return 1 / (lam * period).expm1() + right_tail_bound(t, moment, epsilon) / ((t - lam) * period).expm1()


def gaussian_square(round_types: RoundTypes) -> Fraction:
    """Return SUM k t^2 of the unsampled Gaussians."""
    total = Fraction(0)
    for each, times in round_types:
        total += (each.square or 0) * times
    return total


def tilted_type(each: Transform, times: int, choice: Choice) -> TiltedType:
    """Return one round type at the order of the line.

    Raises DecayNotProved if M(lam) is not finite.
    """
    mass, atoms = _mass(each, choice.lam, -choice.decay_exponent - math.log(times) - 6)
    if not (mass.is_finite() and mass > 0):
        raise DecayNotProved("the transform of one round is not finite")
    return TiltedType(times, mass, float(mass.log().mid()), each.density_law(), atoms)


def _mass(each: Transform, lam: float, log_error: float) -> tuple[Any, Rule | None]:
    """Return M(lam) as a ball at a real order, and the atoms if the law has no density."""
    law = each.density_law()
    rule = each.atoms(lam, log_error) if law is None else whole_rule(law, lam, 0.0, log_error)
    if rule is None:
        raise DecayNotProved("a law without density and without atoms has no line")
    return rule.mass(), rule if law is None else None


def transform_values(rule: Rule, width: Any, count: int) -> list[Any]:
    """Return M at lam + i m width for m = 0, ..., count.

    Coarse times fine phases need sqrt(count) exponentials per node instead of count; one product of matrices multiplies them.
    """
    from flint import acb, acb_mat, arb

    error = rule.error
    blur = acb(error * arb(0, 1), error * arb(0, 1))
    fine = math.isqrt(count) + 1
    coarse = -(-(count + 1) // fine)
    found = [acb(0)] * (coarse * fine)
    for side in ("plus", "minus"):
        points: list[tuple[Any, Any]] = []
        for panel in rule.panels:
            points += zip(panel.losses, getattr(panel, side), strict=False)  # a side without weights has no points
        if side == "plus":
            points += rule.atoms
        if not points:
            continue
        columns: list[Any] = []
        rows: list[Any] = []
        for loss, weight in points:
            rows += map(acb(weight).__mul__, _powers(acb(0, width * fine * loss).exp(), coarse))
            columns += _powers(acb(0, width * loss).exp(), fine)
        product = acb_mat(len(points), coarse, rows).transpose() * acb_mat(len(points), fine, columns)
        for m, entry in enumerate(product.entries()):
            found[m] += entry if side == "plus" else entry.conjugate()
    for m in range(count + 1):
        found[m] += blur
    return found[: count + 1]


def _powers(phase: Any, count: int) -> list[Any]:
    """Return the powers 0 to count - 1 of a phase, each the product of two of about half its exponent.

    A ball that is multiplied by one phase per step grows by up to sqrt 2 each time: 2^200 after 400 steps. Here it grows so
    once per halving.
    """
    powers = [phase**0, phase][:count]
    for m in range(2, count):
        powers.append(powers[m // 2] * powers[m - m // 2])
    return powers


# ---- the line in floats, to search along


class SearchLine(ABC):
    """A line in float64 that a search follows; nothing is claimed from it."""

    __slots__ = ()

    lam: float
    cgf: float

    def log_value(self, epsilon: float) -> tuple[float, float]:
        """Return log of the sum at epsilon, without the leak, and its derivative.

        Returns -inf if the sum is not positive.
        """
        value, slope = self.log_values(np.array([epsilon]))
        return float(value[0]), float(slope[0])

    @abstractmethod
    def log_values(self, epsilons: Array) -> tuple[Array, Array]:
        """Return log of the sum at each epsilon, without the leak, and its derivative.

        Returns -inf if it is not positive.
        """


@dataclass(frozen=True, slots=True)
class FloatLine(SearchLine):
    """A line in float64 of losses that lie on no lattice."""

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


@dataclass(frozen=True, slots=True)
class FloatLatticeLine(SearchLine):
    """A line in float64 of losses on a lattice."""

    test: TestFunction
    lam: float
    cgf: float
    spacing: float
    offset: float
    folds: int
    indices: Array
    """The m that are summed, as floats."""
    weights: Array
    """One row per m, one column per lattice sum of the test function."""

    @np.errstate(all="ignore")
    def log_values(self, epsilons: Array) -> tuple[Array, Array]:
        number = np.floor((epsilons - self.offset) / self.spacing) + 1
        following = self.offset + number * self.spacing
        rest = np.clip(following - epsilons, 0.0, self.spacing)
        # The phase of e^{-z l} is a root of unity: integers are reduced modulo J, so that large l lose no digits.
        turns = np.mod(np.mod(number, self.folds)[:, None] * self.indices, self.folds)
        phases = np.exp(-2j * math.pi * turns / self.folds)
        phases[:, 1:] *= 2
        sums = (phases @ self.weights).real.T / self.folds
        factors, derivatives = self.test.float_lattice_factors(rest)
        total = sum((factor * part for factor, part in zip(factors, sums, strict=True)), start=np.zeros_like(rest))
        slope = sum((factor * part for factor, part in zip(derivatives, sums, strict=True)), start=np.zeros_like(rest))
        value = np.where(total > 0, self.cgf - self.lam * following + np.log(total), -np.inf)
        return value, slope / total


# ---- the line in balls


@dataclass(frozen=True, slots=True)
class Line:
    """M at the frequencies of a line, and a bound on |M| at all others.

    It encloses the expectation of a test function.
    """

    choice: Choice
    values: list[Any]
    """M(z_m) as complex balls, m = 0, 1, ..., N, or the m in `indices`."""
    beyond: Any
    """A bound on the rest of M.

    Without a lattice: at least |M(lam + iu)| for all u >= u_{N+1}. On a lattice: at least the sum of |M(z_m)| over all m mod J
    that are not summed.
    """
    leak: Any
    """The probability of an infinite loss."""
    image_moment: Callable[[], Any]
    """Returns M(t) as a ball, for images on the right."""
    nodes: int
    """Quadrature nodes that were used."""
    square: Fraction = Fraction(0)
    """s if all unsampled Gaussians have the transform e^{(z + z^2) s / 2}."""
    smooth: Fraction = Fraction(0)
    """tau^2, the part of s that was added to prove the decay (Theorems L-upper and L-lower); 0 on a lattice."""
    lattice: Lattice | None = None
    """Spacing a and offset o of the losses; None if they lie on no lattice."""
    folds: int = 0
    """J, which is odd, so that the frequencies are 0 and (J-1)/2 pairs; 0 without a lattice."""
    indices: tuple[int, ...] = ()
    """The m that are summed; empty if they are 0, ..., N."""
    _cache: dict[str, Any] = field(default_factory=dict, compare=False, repr=False)

    @property
    def frequencies(self) -> int:
        """Return the number of frequencies that are summed, besides 0."""
        return len(self.values) - 1

    @property
    def period(self) -> Any:
        """Return T as a ball: aJ on a lattice."""
        return BALLS.number(self.choice.period) if self.lattice is None else self.lattice.spacing * self.folds

    def _weights(self, test: TestFunction) -> list[Any]:
        """Return M(z_m) / D(z_m), or on a lattice M(z_m) e^{-z_m o} times each lattice sum.

        It is computed once per test function.
        """
        from flint import acb, arb

        name = f"weights {test.name}"
        if name not in self._cache:
            with BALLS.at(self.choice.bits):  # the precision of the line, whatever that of the first caller is
                if self.lattice is not None:
                    found = self._lattice_weights(test, self.lattice)
                else:
                    lam, width, found = arb(self.choice.lam), 2 * arb.pi() / self.period, []
                    for m, value in enumerate(self.values):
                        found.append(value / test.denominator(acb(lam, width * m), BALLS.number))
            self._cache[name] = found
        return self._cache[name]  # type: ignore[no-any-return]

    def _lattice_weights(self, test: TestFunction, lattice: Lattice) -> list[Any]:
        """Return M(z_m) e^{-z_m o} times each lattice sum; e^{-a z_m} is e^{-a lam} times a root of unity."""
        from flint import acb, arb

        lam, turn = arb(self.choice.lam), -2 * arb.pi() / self.period * lattice.offset
        least, start = (-lam * lattice.spacing).exp(), (-lam * lattice.offset).exp()
        decays, root, found = test.column_decays(lattice.spacing), self._root_of_unity(), []
        for m, value in zip(self.indices or range(len(self.values)), self.values, strict=True):
            shifted = value * start if lattice.offset.is_zero() else value * (acb(0, turn * m).exp() * start)
            found.append([shifted * each for each in test.lattice_sums(least * root(m), lattice.spacing, decays)])
        return found

    def _root_of_unity(self) -> Callable[[int], Any]:
        """Return the function m -> e^{-2 pi i m / J}.

        It looks into a table of half of them, computed once, unless few of them are asked for.
        """
        from flint import acb, arb

        folds, half = self.folds, self.folds // 2
        if 4 * len(self.values) < half:
            turn = -2 * arb.pi() / folds
            return lambda m: acb(0, turn * (m % folds)).exp()
        if "roots" not in self._cache:
            with BALLS.at(self.choice.bits + LINE.root_bits):  # halving loses a bit per level and one per doubling
                self._cache["roots"] = _powers(acb(0, -2 * arb.pi() / folds).exp(), half + 1)
        roots = self._cache["roots"]

        def root(m: int) -> Any:
            m %= folds
            return roots[m] if m <= half else roots[folds - m].conjugate()

        return root

    # ---- without a lattice

    def _trapezoid(self, epsilon: Any, weights: list[Any]) -> Any:
        """Return e^{-lam eps}/T [ c_0 + 2 Re SUM_{m=1}^N c_m e^{-i u_m eps} ] as a ball."""
        from flint import acb, arb

        lam, period = arb(self.choice.lam), arb(self.choice.period)
        turn = -2 * arb.pi() / period * epsilon
        total = weights[0].real
        for m, weight in enumerate(weights[1:], start=1):
            # Each phase is computed by itself: a ball that is multiplied by one phase per step grows by up to sqrt 2 each time.
            total += 2 * (weight * acb(0, m * turn).exp()).real
        return (-lam * epsilon).exp() / period * total

    def density_sum(self, epsilon: Any) -> Any:
        """Return the trapezoid sum with the weight 1 instead of 1/D(z).

        It is the density of the smoothed loss and its images.
        """
        return self._trapezoid(epsilon, self.values)

    # ---- on a lattice

    def place(self, epsilon: Any, down: bool) -> tuple[int, Any]:
        """Return n and r with l = o + na the next lattice point above eps, and r = l - eps.

        If balls cannot tell, epsilon is moved a little down, or up: delta falls, so the caller gets an upper, or lower, bound.
        """
        if self.lattice is None:
            raise DecayNotProved("the losses lie on no lattice")
        a, o = self.lattice.spacing, self.lattice.offset
        for nudge in (0.0, LINE.lattice_nudge, 2.0**10 * LINE.lattice_nudge):
            moved = epsilon + (-nudge if down else nudge) * (abs(epsilon) + a)
            number = int(
                float(((moved - o) / a).mid().floor())
            )  # a float of the quotient itself may be the next integer
            x = moved - o - number * a
            if x >= 0 and x <= a:
                return number + 1, a - x
        raise DecayNotProved("balls cannot tell between which points of the lattice epsilon lies")

    def _folded_sum(self, number: int, rest: Any, test: TestFunction) -> Any:
        """Return the sum over the chosen m as a ball, at l = o + `number` a and r = `rest`."""
        columns = self._cell_columns(number, test)
        total = sum((factor * each for factor, each in zip(test.lattice_factors(rest), columns, strict=True)), start=0)
        return self._lowered(number) / self.folds * total

    def _cell_columns(self, number: int, test: TestFunction) -> list[Any]:
        """Return the sum over m of each column of the test function, which is the same in a whole cell of the lattice.

        The last two cells are kept: a search ends within one, or at the border of two.
        """
        from flint import arb

        asked = test.name, number, BALLS.precision()
        kept = self._cache.get("cells", ())  # replaced whole, so that threads see a cell with its own sums
        for cell, totals in kept:
            if cell == asked:
                return totals  # type: ignore[no-any-return]
        # e^{-z na} without the real part: its phase is a root of unity, so that large n lose no bits
        root, totals = self._root_of_unity(), [arb(0) for _ in test.columns]
        for m, sums in zip(self.indices or range(len(self.values)), self._weights(test), strict=True):
            phase = root(m * number)
            if m:
                phase *= 2
            for column, each in enumerate(sums):
                totals[column] += (each * phase).real
        self._cache["cells"] = ((asked, totals), *kept[:1])
        return totals

    def _lowered(self, number: int) -> Any:
        """Return e^{-lam n a}."""
        spacing = BALLS.number(0) if self.lattice is None else self.lattice.spacing
        return (-BALLS.number(self.choice.lam) * number * spacing).exp()

    def _folded_tail(self, number: int, rest: Any, test: TestFunction) -> Any:
        """Return a bound on the frequencies that are not summed.

        Because F(z) = SUM e^{-azi} g(r + ai) with g >= 0, |F(z)| <= F(lam).
        """
        if self.lattice is None or self.beyond == 0:
            return BALLS.number(0)
        a, lam = self.lattice.spacing, BALLS.number(self.choice.lam)
        largest = test.lattice_sums((-lam * a).exp(), a, test.column_decays(a))
        sums = zip(test.lattice_factors(rest), largest, strict=True)
        size = sum((factor * each for factor, each in sums), start=BALLS.number(0))
        return self._lowered(number) * (-lam * self.lattice.offset).exp() * self.beyond * size / self.folds

    # ---- the expectation of a test function

    def partial_sum(self, epsilon: Any, test: TestFunction = HOCKEY_STICK, down: bool = True) -> Any:
        """Return the sum over the frequencies that are summed, as a ball, without the leak."""
        if self.lattice is None:
            return self._trapezoid(epsilon, self._weights(test))
        return self._folded_sum(*self.place(epsilon, down), test)

    def tail(self, epsilon: Any, test: TestFunction = HOCKEY_STICK, down: bool = True) -> Any:
        """Return a bound on the frequencies that are not summed.

        Without a lattice it is e^{-lam eps} S_N / ((q - 1) pi u_N^{q-1}), because |D(z)| >= u^q and
        SUM_{m>N} m^-q <= N^{1-q} / (q - 1).
        """
        from flint import arb

        if self.lattice is not None:
            return self._folded_tail(*self.place(epsilon, down), test)
        last = 2 * arb.pi() / arb(self.choice.period) * self.frequencies
        less = test.tail_power - 1
        return (-arb(self.choice.lam) * epsilon).exp() * self.beyond / (less * arb.pi() * last**less)

    def ball(self, epsilon: Any, test: TestFunction = HOCKEY_STICK, down: bool = True) -> Any:
        """Return the whole sum as a ball: E g(S - eps) and its images, leak and tail included.

        It is infinite if g is unbounded and some loss may be infinite. `down` says to which side a lattice rounds epsilon.
        """
        from flint import arb

        if self.lattice is None:
            inside, outside = self._trapezoid(epsilon, self._weights(test)), self.tail(epsilon, test)
        else:
            place = self.place(epsilon, down)
            inside, outside = self._folded_sum(*place, test), self._folded_tail(*place, test)
        leak = arb(0) if self.leak == 0 else self.leak * arb(test.limit)
        return leak + inside + outside * arb(0, 1)

    def images(self, epsilon: Any) -> Any:
        """Return a bound on the hockey stick's images."""
        if "image moment" not in self._cache:
            self._cache["image moment"] = self.image_moment()
        return image_bound(self.choice, self.period, self._cache["image moment"], epsilon)

    def smoothing_error(self, epsilon: Any) -> Any:
        """Return a bound on C_tau - delta: tau^2 e^{tau^2/8} D_tau (Theorem L-lower).

        D_tau is the sum with the weight 1, and beyond u_N at most (1/pi) [ S_N (U - u_N) + M(lam) e^{-V^2 s/2} / (V s) ],
        V = U - 2 pi/T, for every U > u_N + 2 pi/T.
        """
        from flint import arb

        tau, s, width = BALLS.number(self.smooth), BALLS.number(self.square), 2 * arb.pi() / arb(self.choice.period)
        last = width * self.frequencies
        far = arb((last + (2 * arb(self.choice.decay_exponent) / s).sqrt()).upper()) + 2 * width
        near = far - width
        beyond = self.beyond * (far - last) + self.values[0].real * (-near * near * s / 2).exp() / (near * s)
        density = self.density_sum(epsilon) + (-arb(self.choice.lam) * epsilon).exp() * beyond / arb.pi()
        return tau * (tau / 8).exp() * density

    # ---- bounds on delta

    def bound(self, epsilon: Any, test: TestFunction = HOCKEY_STICK, gap: Any = None) -> Any:
        """Return a ball whose upper end bounds delta(eps).

        It is C E[g(S - eps + log R)] at this gap d > 0, images included.
        """
        if test.ball_constants is None:
            return self.ball(epsilon, test)
        log_ratio, constant = test.ball_constants(gap)
        return constant * self.ball(epsilon - log_ratio, test)

    def upper(self, epsilon: Any, test: TestFunction = HOCKEY_STICK, gap: Any = None) -> Any:
        """Return an upper bound on delta(eps): images and smoothing only add (Theorem L-upper).

        Returns inf if balls overflow.
        """
        from flint import arb

        found = self.bound(epsilon, test, gap)
        return arb(found.upper()) if found.is_finite() else arb("inf")

    def lower(self, epsilon: Any) -> Any:
        """Return a lower bound on delta(eps): images and smoothing are subtracted.

        Returns 0 if balls overflow.
        """
        from flint import arb

        found = self.ball(epsilon, down=False) - self.images(epsilon)
        if self.smooth:
            found -= arb(self.smoothing_error(epsilon).upper())
        return arb(found.lower()) if found.is_finite() else arb(0)

    def floats(self, test: TestFunction = HOCKEY_STICK) -> SearchLine:
        """Return the line in float64 without its error terms, to search along.

        It is computed once per test function.
        """
        name = f"floats {test.name}"
        if name not in self._cache:
            top, lam, found = self.values[0].real, self.choice.lam, []
            with BALLS.at(self.choice.bits):
                cgf = float(top.log().mid())
                if self.lattice is None:
                    for weight in self._weights(test):
                        found.append(complex(weight / top))
                    frequencies = 2 * math.pi / self.choice.period * np.arange(len(found))
                    self._cache[name] = FloatLine(lam, self.choice.period, cgf, np.array(found), frequencies)
                else:
                    self._cache[name] = self._float_lattice_line(test, self.lattice, cgf)
        return self._cache[name]  # type: ignore[no-any-return]

    def _float_lattice_line(self, test: TestFunction, lattice: Lattice, cgf: float) -> FloatLatticeLine:
        """Return the weights on a lattice, divided by M(lam), in float64."""
        scale = (BALLS.number(self.choice.lam) * lattice.offset).exp() / self.values[0].real
        weights = np.array([[complex(each * scale) for each in sums] for sums in self._weights(test)])
        spacing, offset = float(lattice.spacing.mid()), float(lattice.offset.mid())
        indices = np.array(self.indices or range(len(self.values)), dtype=np.float64)
        return FloatLatticeLine(test, self.choice.lam, cgf, spacing, offset, self.folds, indices, weights)


# ---- building a line


def build_line(
    round_types: RoundTypes,
    choice: Choice,
    extra: Fraction = Fraction(0),
    smooth: Fraction = Fraction(0),
    work: int = LINE.most_work,
) -> Line:
    """Build the line of all rounds without using a lattice.

    Balls have the precision of the choice.

    `extra` is the squared shift of unsampled Gaussians besides those among the round types. `smooth` is tau^2 of one more that
    no round has: its cost is known, and it proves the decay if nothing else does. Raises DecayNotProved if no decay is proved,
    DecayTooSlow if that exceeds the work.
    """
    from flint import acb, arb

    square, known = extra + smooth, []
    for each, times in round_types:
        if each.square is None:
            known.append(tilted_type(each, times, choice))
        else:
            square += each.square * times
    lam, step = choice.lam, 2 * math.pi / choice.period
    start = decay_frequency(known, lam, choice.decay_exponent, square / 2, step)
    count = max(1, math.ceil(start / step * (1 + 1e-12)) - 1)
    while not 2 * arb.pi() / arb(choice.period) * (count + 1) >= start:
        count += 1
    width = 2 * arb.pi() / arb(choice.period)
    values, nodes = composed_transform(known, choice, width, count, step * count * (1 + 1e-12), work)
    if square:
        # e^{(z + z^2) s / 2}
        half, exact = BALLS.number(square) / 2, arb(lam)
        for m in range(count + 1):
            z = acb(exact, width * m)
            values[m] *= ((z + z * z) * half).exp()
    top = values[0].real
    beyond = top * (-arb(choice.decay_exponent)).exp()
    if not (top.is_finite() and top > 0):
        raise DecayNotProved("the transform is not finite")
    return Line(
        choice,
        values,
        beyond,
        leak_probability(round_types),
        partial(moment_ball, round_types, choice, square),
        nodes,
        square,
        smooth,
    )
