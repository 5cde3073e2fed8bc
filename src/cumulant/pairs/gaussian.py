"""The Gaussian pair: N(t, 1) against N(0, 1), t = sensitivity / sigma."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from operator import methodcaller
from typing import Any

import numpy as np

from cumulant.curves.closed_form import Concentrated
from cumulant.losses.gaussian_law import GaussianLaw
from cumulant.losses.gaussian_transform import GaussianBase, UnsampledGaussian
from cumulant.losses.grid import Loss, Step
from cumulant.losses.law import Law
from cumulant.losses.sampled_curve import LARGEST_SHIFT
from cumulant.losses.transform import SLIGHTEST, STRONGEST, Mixed, Transform
from cumulant.numerics.arithmetic import BALLS, FAR, FLOATS, Arithmetic, Array, ball_erfc, root
from cumulant.numerics.differences import differences, escalated, good_bits, leading_differences
from cumulant.numerics.lazy_scipy import special
from cumulant.numerics.quadrature import log_concave
from cumulant.numerics.rounding import ENVELOPE
from cumulant.pairs.pair import Pair
from cumulant.pairs.worst_triples import BINS, Masses, Triple, products

_NONNEGATIVE_PART = np.frompyfunc(methodcaller("nonnegative_part"), 1, 1)
"""The part of each ball that is not negative; convention: a profile is never negative."""

_ERF = np.frompyfunc(methodcaller("erf"), 1, 1)
"""The error function of each ball; convention."""

_ERFC = np.frompyfunc(methodcaller("erfc"), 1, 1)
"""The complementary error function of each ball; convention."""

_FAR_ERFC = np.frompyfunc(ball_erfc, 1, 1)
"""This function where some balls are far out; convention."""


@dataclass(frozen=True, slots=True)
class GaussianSettings:
    """Tuning constants of the moments of the Gaussian pair; validity does not depend on them."""

    highest_order: int = 2**14
    """Order up to which moments are evaluated in balls; beyond it they take too long and are NaN."""

    few_orders: int = 48
    """Order up to which all differences are taken at once; finding out which terms matter would take longer."""

    least_shift: float = 1e-9
    """Shift above which that is done; below it too many bits cancel."""


SETTINGS = GaussianSettings()
"""The settings in force; a test may replace them."""

TINY = float(np.finfo(np.float64).tiny)
"""The least normal float; it replaces smaller shifts, and every quantity grows with the shift."""

HUGE = float(np.finfo(np.float64).max)
"""The largest float; it replaces larger epsilons, and the profile falls with epsilon."""


@dataclass(frozen=True, slots=True)
class GaussianPair(Pair):
    """P = N(shift, 1), Q = N(0, 1); reflection swaps them, so both directions agree.

    It dominates the Gaussian mechanism in any dimension, by data processing (E-17). `geometry` says what is known about
    the values of the query: their pairwise distances ("diameter"), a ball that holds them ("ball"), or neither, because
    there are several queries and each may depend on the answers before it (""). `square` is the squared shift, where its root
    is not rational and `shift` was rounded up.

    >>> GaussianPair(Fraction(1)).moments([1, 2, 3])
    array([-0.26676915,  0.54132485,  2.66043763])
    >>> GaussianPair(Fraction(1)).profile([0, 1, 10])
    array([3.82924923e-01, 1.26936738e-01, 9.81270583e-23])
    """

    shift: Fraction
    geometry: str = "diameter"
    square: Fraction | None = None

    symmetric = True
    chained = True

    @property
    def promise(self) -> bool:
        """Return True if the pair has no geometry.

        It is then what is promised of any mechanism, or of several queries together.
        """
        return not self.geometry

    @classmethod
    def of_square(cls, square: Fraction, geometry: str = "diameter") -> GaussianPair:
        """Return the pair of this squared shift.

        >>> GaussianPair.of_square(Fraction(9, 4)), GaussianPair.of_square(Fraction(2)).shift ** 2 > 2
        (GaussianPair(shift=Fraction(3, 2), geometry='diameter', square=None), True)
        """
        least, shift = root(square)
        return cls(shift, geometry, None if least == shift else square)

    def gaussian_shift(self) -> Fraction:
        return self.shift

    def curve(self) -> Concentrated:
        return Concentrated(rho=self._squared() / 2)

    def _squared(self) -> Fraction:
        return self.shift**2 if self.square is None else self.square

    def _attained_square(self) -> Fraction | None:
        """Return the squared shift of a pair that some neighbours dominate; None if not known."""
        return self._squared()

    def laws(self) -> tuple[Law, ...]:
        return (GaussianLaw(self.shift),)

    def loss(self) -> Loss | None:
        return GaussianLaw(self.shift).on_grid()

    def triple(self, rate: Fraction) -> Step | None:
        if self.geometry != "diameter":
            return None
        return GaussianTriple(float(self.shift), float(rate), float(1 - rate))

    def transform(self, rate: Fraction, direction: str) -> Transform | None:
        if not SLIGHTEST <= self.shift <= STRONGEST:
            return None
        return UnsampledGaussian(self.shift) if rate == 1 else Mixed(GaussianBase(self.shift), rate, direction)

    def group_pair(self, size: int) -> Pair:
        return GaussianPair.of_square(self._squared() * size**2, "")

    def replacement(self, rate: Fraction) -> Pair | None:
        if not self.geometry:  # several queries on one sample tell more than one about who is in it
            return None
        half = Fraction(1, 2) if self.geometry == "ball" else Fraction(1)
        if rate == 1:
            return GaussianPair.of_square(self._squared() * (2 * half) ** 2, "ball")
        from cumulant.pairs.gaussian_replacement import GaussianReplacementPair

        least = None if self.square is None else half * root(self.square)[0]
        return GaussianReplacementPair(half * self.shift, rate, least)

    @property
    def integrable(self) -> bool:
        return self.shift <= LARGEST_SHIFT

    @property
    def lower_pair(self) -> Pair:
        return self if self.square is None else GaussianPair(root(self.square)[0], self.geometry)

    def composed_pair(self, parts: Sequence[tuple[Pair | None, int]]) -> Pair | None:
        """Return one Gaussian pair for all parts: squared shifts add, also for adaptive queries.

        Returns None if a part is not Gaussian.
        """
        square = least = Fraction(0)
        exact = known = True
        for pair, times in parts:
            if not isinstance(pair, GaussianPair):
                return None
            lower = pair._attained_square()
            square += times * pair._squared()
            least += times * (lower or 0)
            exact = exact and lower == pair._squared()
            known = known and lower is not None
        return GaussianPair.of_square(square, "") if exact else NearGaussianPair.of_squares(square, least * known)

    def taylor(self, at: Fraction, count: int) -> list[Any] | None:
        # K = lambda (lambda + 1) t^2 / 2
        rho = self._squared() / 2
        return [BALLS.number(each) for each in (at * (at + 1) * rho, (2 * at + 1) * rho, rho, *[Fraction(0)] * count)][
            :count
        ]

    def _log_moments(self, orders: Array, on: Arithmetic) -> Array:
        """Return log E_q |p/q - 1|^l.

        Floats: two positive integrals. Balls: Delta^(l)[M](0), M erf(x/sqrt 2) for odd l.
        """
        if on.exact or on.enclosing:
            return self._proved_moments(orders, on, both=True)
        power, t = orders.astype(np.float64), self._scale()
        # E_q (1 - p/q)_+^l = E (1 - e^-y)_+^l, y ~ N(t^2/2, t^2)
        below = _log_shortfall(power, np.full_like(power, t / 2), t)
        return np.logaddexp(self._log_positive_moments(orders, on), below)

    def _log_positive_moments(self, orders: Array, on: Arithmetic) -> Array:
        """Return log E_q (p/q - 1)_+^l.

        Floats: one positive integral. Balls: Delta^(l)[M Phi(x)](0), x_i = (i - 1/2) t.
        """
        if on.exact or on.enclosing:
            return self._proved_moments(orders, on, both=False)
        power, t = orders.astype(np.float64), self._scale()
        # E_q (p/q - 1)_+^l = M_l E (1 - e^-y)_+^l, y ~ N((l - 1/2) t^2, t^2), M_l = e^{l (l-1) t^2 / 2}
        with np.errstate(over="ignore", invalid="ignore"):
            log_m = np.where(orders == 1, 0.0, power * (power - 1) * (t * t / 2))
            return np.asarray(log_m + _log_shortfall(power, (power - 0.5) * t, t))

    def _exact_moments(self, orders: Array, on: Arithmetic, both: bool) -> Array:
        if not both:
            return self._differences(orders, on, both, lambda x: _cdf(x, on))
        value, odd = np.empty(orders.shape, dtype=object), orders % 2 == 1
        for some, weight in ((odd, lambda x: _erf(x, on)), (~odd, None)):
            if some.any():
                value[some] = self._differences(orders[some], on, both, weight)
        return value

    def _differences(self, orders: Array, on: Arithmetic, both: bool, weight: Callable[[Array], Array] | None) -> Array:
        """Return log Delta^(l)[M w(x)](0), |w| <= 1; NaN if that would take too long."""

        def f(i: Array) -> Array:
            t, i = on.number(self.shift), on.asarray(i.astype(object))
            m = on.exp(i * (i - 1) * t * t / 2)
            return m if weight is None else m * weight((i - on.number(Fraction(1, 2))) * t)

        top, t = int(orders.max(initial=0)), self._scale()
        if top <= SETTINGS.few_orders and t > SETTINGS.least_shift:  # which terms matter would take longer to find out
            j = np.arange(1.0, top + 1)
            lost = np.max(j * np.log2(4 / t / np.sqrt(j + 1)) - j * (j - 1) * (t * t / math.log(4)), initial=0.0)
            bits = good_bits(on) + 14 + math.ceil(lost)
            return escalated(lambda: leading_differences(f(np.arange(top + 1)), on)[orders], on, on.log, bits=bits)
        value, near = np.full(orders.shape, on.number(np.nan)), orders <= SETTINGS.highest_order
        if near.any():
            i = np.arange(int(orders[near].max()) + 1.0)
            log_size = self._log_envelope(orders[near], both, slack=0.0)
            value[near] = differences(orders[near], f, i * (i - 1) * (t * t / 2), log_size, on)
        return value

    def _log_envelope(self, orders: Array, both: bool, slack: float = ENVELOPE) -> Array:
        """Return a bound above the log moment in closed form (Lemma 8 of docs/rounding.md).

        For the positive part it is too large by about log(3/2) at most.

        log(1 - e^{-tz}) is concave, so at most its tangent at any z0 > 0: E (1 - e^{-tz})_+^l, z ~ N(c, 1), is at most
        e^{l log(1 - e^{-t z0}) + l r (c - z0) + (l r)^2 / 2} with r = t / (e^{t z0} - 1). The best z0 is the mode.
        """
        power, t = orders.astype(np.float64), self._scale()
        with np.errstate(all="ignore"):
            centre = (power - 0.5) * t
            z = centre + _mode(power, centre, t, steps=1)[0]
            pull = power * (t / np.expm1(t * z))
            log_m, tangent = power * (power - 1) * (t * t / 2), power * np.log(-np.expm1(-t * z))
            above = log_m + tangent + pull * (centre - z + pull / 2)
            # far more than rounding can have changed
            above += slack * (power + log_m + np.abs(tangent) + (1 + t * z) * pull * (centre + z + pull))
            above = np.where(np.isnan(above), np.inf, above)
            # E_q (1 - p/q)_+^l = E_q (p/q - 1)_+^l (q/p)^{l-1} by symmetry, and it is below 1
            return np.logaddexp(above, np.minimum(above, 0.0)) + slack * np.abs(above) if both else above

    def _log_profile(self, epsilons: Array) -> Array:
        """Return log delta, delta = E (1 - e^{eps-y})_+ with y ~ N(t^2/2, t^2).

        It is a positive integral, so nothing cancels.
        """
        t = self._scale()
        with np.errstate(over="ignore"):
            value = _log_shortfall(np.ones_like(epsilons), t / 2 - np.minimum(epsilons, HUGE) / t, t)
        return np.where(epsilons == np.inf, -np.inf, value)

    def _exact_profile(self, epsilons: Array, on: Arithmetic) -> Array:
        """Return Phi(t/2 - eps/t) - e^eps Phi(-t/2 - eps/t): exact for the Gaussian (E-23)."""

        def evaluate() -> Array:
            eps, t = on.asarray(epsilons), on.number(self.shift)
            return np.asarray(_cdf(t / 2 - eps / t, on) - on.exp(eps) * _cdf(-t / 2 - eps / t, on))

        return np.asarray(escalated(evaluate, on, _NONNEGATIVE_PART, negligible=4096))

    def _scale(self) -> float:
        # every quantity here grows with the shift, so a shift below the smallest float may be replaced by it
        return max(FLOATS.number(self.shift), TINY)


@dataclass(frozen=True, slots=True)
class NearGaussianPair(GaussianPair):
    """A Gaussian pair that dominates nearly Gaussian noise, as discrete Gaussian noise is.

    Some neighbouring data sets have laws that dominate the Gaussian pair of the shift `least`, so that lower ends use it; 0 if
    that is not known.

    >>> NearGaussianPair.of_squares(Fraction(4), Fraction(1)).lower_pair
    GaussianPair(shift=Fraction(1, 1), geometry='', square=None)
    """

    least: Fraction = Fraction(0)

    attained = False

    @classmethod
    def of_squares(cls, square: Fraction, least: Fraction) -> NearGaussianPair:
        """Return the pair of these squared shifts, the first rounded up, the second down."""
        return cls(root(square)[1], "", square, root(least)[0])

    def group_pair(self, size: int) -> Pair:
        # the trade-off function of a shift mu bounds that of a group by the shift k mu; from below nothing is known
        return NearGaussianPair.of_squares(self._squared() * size**2, Fraction(0))

    @property
    def lower_pair(self) -> Pair:
        return GaussianPair(self.least, "") if self.least else self

    def _attained_square(self) -> Fraction | None:
        return self.least**2 if self.least else None


def _erf(x: Array, on: Arithmetic) -> Array:
    """Return 2 Phi(x) - 1 = erf(x / sqrt 2) in balls."""
    return np.asarray(_ERF(x / on.number(2).sqrt()))


def _cdf(x: Array, on: Arithmetic) -> Array:
    """Return Phi(x) = erfc(-x / sqrt 2) / 2 in balls."""
    z = np.asarray(-x / on.number(2).sqrt())
    return np.asarray((_FAR_ERFC if (z > FAR).any() else _ERFC)(z) / 2)


def _mode(power: Array, centre: Array, t: float, steps: int = 100) -> tuple[Array, Array]:
    """Return w = z - max(c, 0) at the mode of the integrand, and the curvature there.

    The integrand is (1 - e^{-tz})^l e^{-(z-c)^2/2}; its mode solves l t / (e^{tz} - 1) = z - c.
    """
    right, left = np.maximum(centre, 0.0), np.minimum(centre, 0.0)
    # x / (e^x - 1) >= 1 - x/2 puts the root of z^2 - (c - l t/2) z - l = 0 left of the mode. From the left Newton's
    # steps increase to it, because the equation is convex; the rational start makes them few.
    b = centre - power * t / 2
    z = (b + np.sqrt(b * b + 4 * power)) / 2
    z = np.where(b < 0, 2 * power / (np.sqrt(b * b + 4 * power) - b), z)
    w = np.maximum(z - right, 0.0)
    for _ in range(steps):
        z = right + w
        pull = power * t / np.expm1(t * z)
        curvature = 1 - pull * t / np.expm1(-t * z)
        step = (pull - w + left) / curvature
        w = np.maximum(w + step, 0.0)
        if not (np.abs(step) > 1e-9 * (w + 1e-300)).any():
            break
    return w, curvature


def _log_shortfall(power: Array, centre: Array, t: float) -> Array:
    """Return log E (1 - e^{-tz})_+^l, z ~ N(c, 1): a log-concave integrand.

    Written in w = z - max(c, 0), so that neither a far centre nor a far tail costs digits. It is an expectation
    of something below 1, which is the answer where floats overflow.
    """
    right, left = np.maximum(centre, 0.0), np.minimum(centre, 0.0)
    with np.errstate(all="ignore"):
        w, curvature = _mode(power, centre, t)
        root_two_pi = 0.5 * np.log(2 * np.pi)

        def log_f(points: Array, rows: Any) -> Array:
            shortfall = power[rows, None] * np.log(-np.expm1(-t * (right[rows, None] + points)))
            return shortfall + (left[rows, None] - points / 2) * points

        value = log_concave(log_f, w, 1 / np.sqrt(curvature), -right, np.inf) - left * left / 2 - root_two_pi
    return np.where(np.isnan(value), 0.0, np.minimum(value, 0.0))


# ---- three values that are worse than two


@dataclass(frozen=True, slots=True)
class GaussianTriple(Triple):
    """An equilateral triangle in the plane, of side t = shift."""

    shift: float
    rate: float
    kept: float

    def masses(self, log_mass: float) -> Masses:
        """Return the bins of r = 0 and p, q = t (sqrt(3)/2, ±1/2)."""
        t = self.shift
        reach, height = math.sqrt(2 * max(-log_mass, 8.0)), t * math.sqrt(0.75)
        x = np.linspace(-reach, reach + height, BINS + 1)
        y = np.linspace(-reach - t / 2, reach + t / 2, BINS + 1)
        along = _bins(x), _bins(x - height)
        return products(along, (_bins(y), _bins(y - t / 2), _bins(y + t / 2)))


def _bins(edges: Array) -> Array:
    """Return log of the standard normal mass of each bin, from the side where nothing cancels."""
    low, high = edges[:-1], edges[1:]
    flip = low + high > 0
    a, b = np.where(flip, -high, low), np.where(flip, -low, high)
    log_b = special.log_ndtr(b)
    return np.asarray(log_b + np.log(-np.expm1(special.log_ndtr(a) - log_b)))
