"""The transform M(z) = E_P[e^{zL}; L < inf] of one round along a vertical line, in balls.

Letters: t = shift, g = rate, x = log(p0/q0) = t v, w = 1 - g + g e^x, L = log w, z = lam + iu. Weights are tilted by e^{lam L},
nodes and weights do not depend on u, and what is left out is bounded for all |u| up to a top frequency (docs/line.md).
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from operator import methodcaller
from typing import TYPE_CHECKING, Any

import numpy as np

from cumulant.losses.subsampled import enclosed_loss, sampled_loss
from cumulant.numerics.arithmetic import BALLS, Array, Scalar
from cumulant.numerics.enclosure import BOUNDED, Enclosure
from cumulant.numerics.quadrature import legendre_balls

if TYPE_CHECKING:
    from cumulant.losses.atom_transform import Points

NODES = 32
"""Gauss nodes of a panel; chosen by hand: with rho = 4.5 the rule errs by e^-94 of the largest value (Lemma Q)."""

RHO = np.array([1.6, 2.0, 2.6, 3.4, 4.5, 6.0, 9.0, 14.0, 20.0])
"""Sums of the half axes of the ellipses on which a panel may be bounded; the best one counts (Lemma Q)."""


@dataclass(frozen=True, slots=True)
class TransformSettings:
    """Tuning constants of the panels in balls.

    Lemma Q bounds each error, so validity does not depend on them.
    """

    most_panels: int = 400
    """Panels of one round; beyond it the transform is refused and the grid answers."""

    most_cells: int = 4000
    """Cells of Lemma S3; beyond it the transform is refused."""

    cell_width: float = 0.2
    """Width of a cell of v in Lemma S3, on which each factor is taken at its larger end."""


SETTINGS = TransformSettings()
"""The settings in force; a test may replace them."""

WIDEST_ANGLE = 0.999 * math.pi
"""Largest |Im x| on an ellipse; at pi w may be 0 (docs/line.md, section 3)."""

LEAST_COSINE = 0.0015
"""Below cos(WIDEST_ANGLE / 2) = 0.00157, so |w| is at least this times its real part's value; derived."""

SLIGHTEST = Fraction(1, 10**6)
"""Least shift for which a pair offers its transform; below it the scales of the loss are too far apart for one rule.
Chosen by hand."""

STRONGEST = Fraction(100)
"""Largest shift for which a pair offers its transform; beyond it the scales of the loss are too far apart for one
rule. Chosen by hand."""

LOG_MARGIN = 1e-9
"""Added to logarithms that floats choose by; balls decide, so validity does not depend on it."""


# ---- two function tables, so that a majorant is written once


class _BallFunctions:
    """The functions of a majorant on balls."""

    number = staticmethod(BALLS.number)
    exp, expm1, log = methodcaller("exp"), methodcaller("expm1"), methodcaller("log")
    sin, cos, atan = methodcaller("sin"), methodcaller("cos"), methodcaller("atan")
    where = staticmethod(lambda condition, x, y: x if condition else y)
    maximum = staticmethod(lambda x, y: x.max(y))
    minimum = staticmethod(lambda x, y: x.min(y))


class _FloatFunctions:
    """The functions of a majorant on arrays of floats."""

    number = staticmethod(float)
    exp, expm1, log, sin, cos, atan = np.exp, np.expm1, np.log, np.sin, np.cos, np.arctan
    where, maximum, minimum = staticmethod(np.where), np.maximum, np.minimum


ON_BALLS = _BallFunctions()
"""The function table for balls."""

ON_FLOATS = _FloatFunctions()
"""The function table for arrays of floats."""


@dataclass(frozen=True, slots=True)
class Lattice:
    """The set offset + spacing Z; fractions if both are rational, else balls."""

    spacing: Any
    offset: Any

    @property
    def rational(self) -> bool:
        return isinstance(self.spacing, Fraction) and isinstance(self.offset, Fraction)


class Transform:
    """The law of the loss of one round under P, in one direction.

    A method that a subclass does not override is not offered.
    """

    __slots__ = ()

    square: Fraction | None = None
    """s if M(z) = e^{(z + z^2) s / 2}, as for Gaussian noise without a sample; else None."""

    @property
    def unsampled_points(self) -> Points | None:
        """The atoms of a symmetric pair without a sample; None for every other transform."""
        return None

    def leak(self) -> Scalar:
        """Return the P-mass of infinite loss, as a ball."""
        return BALLS.number(0)

    def atoms(self, lam: float, log_error: float) -> Rule | None:
        """Return the law tilted by e^{lam L} as atoms; None if it has a density.

        About e^log_error of the law may be left out; `Rule.beyond` bounds it.
        """
        return None

    def lattice(self) -> Lattice | None:
        """Return the lattice that holds all finite losses; None if there is none."""
        return None

    def density_law(self) -> DensityLaw | None:
        """Return the law by its density; None if it has none."""
        return None


class Base(ABC):
    """A symmetric pair in the coordinate v = x/t, in which the density of Q0 is analytic."""

    __slots__ = ()

    @property
    @abstractmethod
    def shift(self) -> Fraction:
        """t > 0, the largest loss or the shift over the noise."""

    @abstractmethod
    def distance(self) -> Scalar:
        """The total variation distance of the pair, as a ball."""

    @abstractmethod
    def density(self, on: Any) -> Callable[[Any], Any]:
        """Return log of the density of v under Q0 as a function on balls, floats or enclosures."""

    @abstractmethod
    def log_top(self, centre: Any, half: Any, height: Any, on: Any) -> Any:
        """Return log of the largest |density| for |Re v - centre| <= half, |Im v| <= height."""

    def growth(self, height: Any, on: Any) -> Any:
        """Return log of a bound of |density(v + i height)| / |density(v)|.

        Returns None unless the density is analytic everywhere; panels then replace the strip rule.
        """
        return None

    @abstractmethod
    def span(self, lam: float, rate: float, kept: float, whole: bool, log_error: float) -> tuple[float, float]:
        """Choose the interval of v so that `ends` are about e^log_error; floats decide."""

    @abstractmethod
    def ends(self, lam: Scalar, rate: Fraction, span: tuple[float, float], whole: bool, sign: int) -> Scalar:
        """Bound the integral of q0 w^{1+lam} (sign 1) or q0 w^-lam (sign -1) beyond the span.

        If there is a `growth`, it also bounds a sum over equidistant v times their distance.
        """

    def atoms(self, whole: bool) -> list[tuple[Scalar, Scalar]]:
        """Return the losses x of positive Q0-mass with their masses; x > 0 only unless `whole`."""
        return []

    @abstractmethod
    def peaks(self, power: float) -> int:
        """Return a bound of the number of local maxima, ends included, of L's density times w^power."""


@dataclass(frozen=True, slots=True)
class Panels:
    """Ends of panels, the rho of each, and log of its error by Lemma Q for the worse sign."""

    low: Array
    high: Array
    rho: Array
    log_error: Array

    @property
    def points(self) -> int:
        return NODES * int(self.low.size)


@dataclass(frozen=True, slots=True)
class Panel:
    """A Gauss rule between two floats: losses, tilted weights of L and -L, and its errors.

    The errors hold for all |u| <= top.
    """

    low: float
    high: float
    losses: list[Any]
    plus: list[Any]
    minus: list[Any]
    error: Any
    square_error: Any
    """The error of the integral of (L - c)^2 is at most this times (1 + c^2)."""


@dataclass(frozen=True, slots=True)
class Rule:
    """The tilted law as points: panels, atoms (loss and weight), and the rest beyond the panels."""

    panels: list[Panel]
    atoms: list[tuple[Any, Any]]
    beyond: Any

    @property
    def size(self) -> int:
        count = len(self.atoms)
        for panel in self.panels:
            count += len(panel.losses)
        return count

    @property
    def error(self) -> Any:
        """The error of M(z), valid at every |u| <= top."""
        total = self.beyond
        for panel in self.panels:
            total = total + panel.error
        return total

    def mass(self) -> Any:
        """Return M(lam), the mass of the tilted law, ends included."""
        from flint import arb

        total = arb(0)
        for _, weight in self.atoms:
            total += weight
        for panel in self.panels:
            total += sum(panel.plus, start=arb(0)) + sum(panel.minus, start=arb(0))
        return total + self.error * arb(0, 1)

    def smooth(self) -> Any:
        """Return the tilted mass of all panels as a ball, without the atoms."""
        from flint import arb

        total = arb(0)
        for panel in self.panels:
            total += sum(panel.plus, start=arb(0)) + sum(panel.minus, start=arb(0)) + panel.error * arb(0, 1)
        return total

    def points(self) -> Iterator[tuple[Any, Any]]:
        """Yield the signed losses with their weights."""
        yield from self.atoms
        for panel in self.panels:
            yield from zip(panel.losses, panel.plus, strict=False)
            for loss, weight in zip(panel.losses, panel.minus, strict=False):
                yield -loss, weight


class DensityLaw(Transform, ABC):
    """A law of the loss that has a density in a coordinate v, apart from a few atoms.

    L = L(v) increases, and q is the density of v under Q. In the direction of sign 1 the loss L has the P-density q e^L,
    in that of sign -1 the loss -L has the P-density q.
    """

    __slots__ = ()

    def density_law(self) -> DensityLaw:
        return self

    def strip_law(self) -> Mixed | None:
        """Return the law if equidistant points may serve (Lemma T); else None."""
        return None

    @property
    @abstractmethod
    def signs(self) -> tuple[int, ...]:
        """1 if L with the P-density q e^L is a loss, -1 if -L with the P-density q is one."""

    @property
    @abstractmethod
    def steepness(self) -> float:
        """The largest slope of log(p/q) of the base pair in v."""

    @abstractmethod
    def span(self, lam: float, log_error: float) -> tuple[float, float]:
        """Return the interval of v between which the rule runs; floats choose it."""

    @abstractmethod
    def float_point(self, v: Array) -> tuple[Array, Array]:
        """Return L and log q at v, in floats."""

    @abstractmethod
    def ball_point(self) -> Callable[[Any], tuple[Any, Any]]:
        """Return the function that takes a ball v to L and log q."""

    @abstractmethod
    def enclosed_point(self, v: Enclosure) -> tuple[Enclosure, Enclosure]:
        """Return L and log q at v, in enclosures."""

    @abstractmethod
    def log_majorant(self, sign: int, lam: Any, top: float, centre: Any, half: Any, height: Any, on: Any) -> Any:
        """Return log of a bound of |q e^{(1+z)L}| (sign 1) or |q e^{-zL}| on the rectangle.

        The bound holds for all |u| <= top; it is +inf where none is known, and the panel is then halved.
        """

    @abstractmethod
    def largest_log(self, low: Any, high: Any, on: Any) -> Any:
        """Bound |L| on every rectangle between low and high on which `log_majorant` is finite."""

    @abstractmethod
    def beyond(self, lam: Any, edges: list[float]) -> Any:
        """Bound by how much the law beyond the edges changes M(lam + iu), as a ball."""

    @abstractmethod
    def tilted_atoms(self, lam: Any) -> list[tuple[Any, Any]]:
        """Return the losses of positive probability with their tilted masses, as balls."""

    @abstractmethod
    def variation(self, lam: float, low: float, high: float) -> Any:
        """Bound the total variation of the tilted densities on low <= v <= high (Lemma S3).

        The densities are those of L and -L. The densities are not normalised.
        """

    @abstractmethod
    def float_variation(self, lam: float, low: float, high: float) -> tuple[float, float]:
        """Return log of that bound in floats, and the largest number that enters a logarithm of it."""

    def log_tilted(self, v: Array, lam: float) -> tuple[Array, dict[int, Array]]:
        """Return L at v and, by sign, log of the tilted density in v; in floats."""
        L, log_q = self.float_point(v)
        tilted: dict[int, Array] = {}
        for sign in self.signs:
            tilted[sign] = log_q + (1 + lam) * L if sign > 0 else log_q - lam * L
        return L, tilted

    # ---- Lemma Q: one rule for all |u| <= top

    def panels(self, edges: list[float], lam: float, top: float, log_error: float, pieces: int = 1) -> Panels:
        """Choose panels: each piece is halved until the bound of its error is e^log_error.

        Raises OverflowError if that takes too many panels; the caller falls back to the grid.
        """
        ends = np.interp(np.arange((len(edges) - 1) * pieces + 1) / pieces, np.arange(len(edges)), edges)
        low, high = ends[:-1], ends[1:]
        done: list[Array] = []
        count = 0
        while low.size:
            errors = self._log_errors(low, high, lam, top)
            best = np.argmin(errors, axis=1)
            least = errors[np.arange(low.size), best]
            fits = least <= log_error
            done.append(np.array([low[fits], high[fits], RHO[best[fits]], least[fits]]))
            low, high = low[~fits], high[~fits]
            count += int(fits.sum())
            middle = (low + high) / 2
            if count + low.size > SETTINGS.most_panels or not ((low < middle) & (middle < high)).all():
                raise OverflowError("the transform of one round takes too many nodes")
            low, high = np.concatenate([low, middle]), np.concatenate([middle, high])
        found = np.concatenate(done, axis=1)
        return Panels(*found[:, np.argsort(found[0])])

    @np.errstate(all="ignore")
    def _log_errors(self, low: Array, high: Array, lam: float, top: float) -> Array:
        """Return log of Lemma Q's bound for every panel and every rho, for the worse sign."""
        r, middle = ((high - low) / 2)[:, None], ((low + high) / 2)[:, None]
        half, height = r * (RHO + 1 / RHO) / 2, r * (RHO - 1 / RHO) / 2
        size = np.full_like(half, -np.inf)
        for sign in self.signs:
            size = np.maximum(size, self.log_majorant(sign, lam, top, middle, half, height, ON_FLOATS))
        found = np.log(8 * r / (1 - RHO**-2)) + size - 2 * NODES * np.log(RHO) + LOG_MARGIN
        return np.where(np.isnan(found), np.inf, found)

    def rule(self, lam: float, top: float, log_error: float, edges: list[float], beyond: bool = True) -> Rule:
        """Return the law tilted by e^{lam L} between the edges as points, in balls.

        Each panel is wrong by about e^log_error at most.
        """
        from flint import arb

        exact = BALLS.number(lam)
        chosen = self.panels(edges, lam, top, log_error)
        panels: list[Panel] = []
        for low, high, rho in zip(chosen.low.tolist(), chosen.high.tolist(), chosen.rho.tolist(), strict=True):
            panels.append(self._panel(exact, top, low, high, rho))
        return Rule(panels, self.tilted_atoms(exact), self.beyond(exact, edges) if beyond else arb(0))

    def _panel(self, lam: Any, top: float, low: float, high: float, rho: float) -> Panel:
        """Return one panel in balls with the error of Lemma Q."""
        from flint import arb

        a, b, q = arb(low), arb(high), arb(rho)
        r, centre = (b - a) / 2, (a + b) / 2
        half, height = r * (q + 1 / q) / 2, r * (q - 1 / q) / 2
        losses, plus, minus = [], [], []
        point, forward, backward, power = self.ball_point(), 1 in self.signs, -1 in self.signs, 1 + lam
        for node, weight in legendre_balls(NODES, BALLS.precision()):
            L, log_q = point(centre + r * node)
            size = weight * r
            losses.append(L)
            if forward:
                plus.append(size * (log_q + power * L).exp())
            if backward:
                minus.append(size * (log_q - lam * L).exp())
        # Lemma Q: 8 r M rho^-2n / (1 - rho^-2)
        share = 8 * r * q ** (-2 * NODES) / (1 - q**-2)
        error = arb(0)
        for sign in self.signs:
            error += share * self.log_majorant(sign, lam, top, centre, half, height, ON_BALLS).exp()
        # |L - c|^2 <= 2 R^2 + 2 c^2
        most = self.largest_log(centre - half, centre + half, ON_BALLS)
        return Panel(low, high, losses, plus, minus, error, error * (2 * most * most + 2))

    @np.errstate(all="ignore")
    def farthest(self, panels: Panels) -> Array:
        """Return R >= |L| on the ellipse of each panel, in floats."""
        r, middle = (panels.high - panels.low) / 2, (panels.low + panels.high) / 2
        half = r * (panels.rho + 1 / panels.rho) / 2
        return np.asarray(self.largest_log(middle - half, middle + half, ON_FLOATS))

    def cells(self, lam: float, low: float, high: float) -> Array:
        """Return the edges of cells of v on which the density of the loss hardly moves."""
        count = math.ceil((high - low) / (SETTINGS.cell_width / max(1.0, self.steepness * (lam + 2) / 4)))
        if count > SETTINGS.most_cells:
            raise OverflowError("the density of one round takes too many cells")
        return np.append(low + (high - low) * np.arange(count) / count, high)


@dataclass(frozen=True, slots=True)
class Mixed(DensityLaw):
    """A base pair on a sample: "remove", "add" or "symmetric", as in `Mixture`."""

    base: Base
    rate: Fraction
    direction: str
    signs: tuple[int, ...] = field(init=False, repr=False, compare=False)
    steepness: float = field(init=False, repr=False, compare=False)
    whole: bool = field(init=False, repr=False, compare=False)
    """True if every loss x counts; the symmetric pair takes x > 0 in both directions."""

    def __post_init__(self) -> None:
        signs = {"remove": (1,), "add": (-1,)}.get(self.direction, (1, -1))
        object.__setattr__(self, "signs", signs)
        object.__setattr__(self, "steepness", float(self.base.shift))
        object.__setattr__(self, "whole", len(signs) == 1)

    def strip_law(self) -> Mixed | None:
        return self if self.whole and self.base.growth(0.0, ON_FLOATS) is not None else None

    def _numbers(self, on: Any) -> tuple[Any, Any, Any]:
        """Return t, g and 1 - g."""
        if on is ON_FLOATS:
            (t, of_t), (g, of_g) = self.base.shift.as_integer_ratio(), self.rate.as_integer_ratio()
            return t / of_t, g / of_g, (of_g - g) / of_g  # as float() would round them, and faster
        return on.number(self.base.shift), on.number(self.rate), on.number(1 - self.rate)

    def float_point(self, v: Array) -> tuple[Array, Array]:
        t, g, kept = self._numbers(ON_FLOATS)
        return sampled_loss(t * v, g, kept), self.base.density(np)(v)

    def ball_point(self) -> Callable[[Any], tuple[Any, Any]]:
        t, g, density = BALLS.number(self.base.shift), BALLS.number(self.rate), self.base.density(ON_BALLS)
        return lambda v: ((g * (t * v).expm1()).log1p(), density(v))

    def enclosed_point(self, v: Enclosure) -> tuple[Enclosure, Enclosure]:
        loss = enclosed_loss(v * BOUNDED.number(self.base.shift), self.rate)
        return loss, self.base.density(BOUNDED)(v)

    def span(self, lam: float, log_error: float) -> tuple[float, float]:
        _, g, kept = self._numbers(ON_FLOATS)
        return self.base.span(lam, g, kept, self.whole, log_error)

    def log_majorant(self, sign: int, lam: Any, top: float, centre: Any, half: Any, height: Any, on: Any) -> Any:
        t, g, kept = self._numbers(on)
        angle = t * height
        left, right = g * on.exp(t * (centre - half)), g * on.exp(t * (centre + half))
        # |w| <= 1 - g + g e^xr, and |w| >= (1 - g + g e^xl) cos(theta/2)
        most, least = on.log(kept + right), on.log(kept + left) + on.log(on.cos(angle / 2))
        log_power = (lam + 1) * most if sign > 0 else -lam * least
        # below pi/2 the argument of w grows with the angle and with e^x
        slope = right * on.sin(angle) / (kept + right * on.cos(angle))
        turn = on.where(angle <= 1.5, on.atan(slope), angle)
        found = self.base.log_top(centre, half, height, on) + log_power + on.number(top) * turn
        return on.where(angle <= WIDEST_ANGLE, found, on.number(math.inf))

    def largest_log(self, low: Any, high: Any, on: Any) -> Any:
        # R >= |log|w|| + pi
        t, g, kept = self._numbers(on)
        right, left = on.log(kept + g * on.exp(t * high)), on.log(kept + g * on.exp(t * low))
        return on.maximum(abs(right), abs(left + on.log(on.number(LEAST_COSINE)))) + 4

    def beyond(self, lam: Any, edges: list[float]) -> Any:
        from flint import arb

        total = arb(0)
        for sign in self.signs:
            total += self.base.ends(lam, self.rate, (edges[0], edges[-1]), self.whole, sign)
        return total

    def tilted_atoms(self, lam: Any) -> list[tuple[Any, Any]]:
        from flint import arb

        g, kept, tilted_atoms = BALLS.number(self.rate), BALLS.number(1 - self.rate), []
        for x, mass in self.base.atoms(self.whole):
            L = (g * x.expm1()).log1p()
            for sign in self.signs:
                tilted_atoms.append((sign * L, mass * ((1 + lam) * L if sign > 0 else -lam * L).exp()))
        if not self.whole and self.rate < 1:  # the loss 0 of C_g
            tilted_atoms.append((arb(0), kept * self.base.distance()))
        return tilted_atoms

    # ---- Lemma S3: the largest density of the tilted loss

    def variation(self, lam: float, low: float, high: float) -> Any:
        from flint import arb

        t, g, kept = BALLS.number(self.base.shift), BALLS.number(self.rate), BALLS.number(1 - self.rate)
        exact, total = BALLS.number(lam), arb(0)
        edges = self.cells(lam, low, high).tolist()
        count = len(edges) - 1
        logs = []
        for edge in edges:
            x = t * arb(edge)
            logs.append((x, (kept + g * x.exp()).log()))
        for sign in self.signs:
            # f = q0 w^{p+1} / (g e^x t), p = lam + 1 or -lam; on a cell each factor at its larger end
            power = exact + 2 if sign > 0 else 1 - exact
            tops = []
            for i in range(count):
                a, b = arb(edges[i]), arb(edges[i + 1])
                log_q = self.base.log_top((a + b) / 2, (b - a) / 2, arb(0), ON_BALLS)
                tops.append(log_q + power * (logs[i + 1][1] if power >= 0 else logs[i][1]) - logs[i][0])
            largest = tops[0]
            for each in tops[1:]:
                largest = arb.max(largest, each)
            total += 2 * self.base.peaks(lam + 1 if sign > 0 else -lam) * largest.exp() / (g * t)
        return total

    def float_variation(self, lam: float, low: float, high: float) -> tuple[float, float]:
        t, g, kept = self._numbers(ON_FLOATS)
        edges = self.cells(lam, low, high)
        x = t * edges
        log_w = np.log(kept + g * np.exp(x))
        middle, half = (edges[1:] + edges[:-1]) / 2, np.diff(edges) / 2 * (1 + LOG_MARGIN)
        log_q = self.base.log_top(middle, half, np.zeros_like(middle), ON_FLOATS)
        sides = []
        for sign in self.signs:
            # f = q0 w^{p+1} / (g e^x t), p = lam + 1 or -lam; on a cell each factor at its larger end
            power = lam + 2 if sign > 0 else 1 - lam
            largest = float(np.max(log_q + power * (log_w[1:] if power >= 0 else log_w[:-1]) - x[:-1]))
            sides.append(math.log(2 * self.base.peaks(lam + 1 if sign > 0 else -lam) / (g * t)) + largest)
        size = (lam + 2) * float(np.abs(log_w).max()) + float(np.abs(x).max()) + float(np.abs(log_q).max())
        return float(np.logaddexp.reduce(sides)), size
