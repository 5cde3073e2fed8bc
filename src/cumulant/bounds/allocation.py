"""Random allocation: in one epoch of t steps every record goes into one step, chosen uniformly and for it alone.

With W_1, ..., W_t independent ratios p/q under Q, one step each, and S their sum, removing the record has the moments
E_Q (S/t)^a and adding it E_Q (S/t)^(1-a). The proofs are in docs/mechanisms/random-allocation.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from cumulant.bounds.bound import Bound, no_slack, nothing
from cumulant.curves.curve import Curve, Lowest, Wrapped
from cumulant.curves.maximum import Highest
from cumulant.errors import CertificateError
from cumulant.numerics.arithmetic import FLOATS, Arithmetic, Array, Scalar
from cumulant.numerics.enclosure import BOUNDED, Enclosure
from cumulant.numerics.lazy_scipy import special
from cumulant.numerics.logspace import log_sum
from cumulant.numerics.rounding import U
from cumulant.pairs.pair import Pair

if TYPE_CHECKING:
    from cumulant.losses.ratio_law import Ratios

MOST = 512
"""The largest order that is expanded; above it the mechanism itself is the bound."""

MOST_STEPS = 10**9
"""Largest number of steps that is counted; of more steps only so many are, because more are never worse."""


@dataclass(frozen=True, slots=True)
class IntegralSettings:
    """Constants of the integral for the direction that adds a record; chosen by hand, they trade time for tightness."""

    lambdas: tuple[int, ...] = (8, 64, 256)
    """Largest lambda of each table of the integrand. A larger one needs a finer step; beyond the last there is no bound."""

    least_lambda: float = 0.5
    """Least lambda at which the integral is computed; below it a chord from K(0) = 0 bounds the convex K."""

    points: int = 1 << 12
    """Points of the law of the ratios; more of them are slower and tighter."""

    log_out_small_u: float = -80.0
    """Log of the mass left out of the law for small u; the bound counts it in full."""

    log_out_large_u: float = -200.0
    """Log of the mass left out for large u, where only the rare small ratios count."""

    largest_small_u: float = 30.0
    """Largest u at which the excess over W = 1 is summed as such; beyond it the exponents themselves are."""

    first_node: float = 1e-6
    """The u of the first node, times the steps; a closed bound covers the integral below it."""

    widest_strip: float = 1.2
    """Largest d, in radians, of the error of the trapezoid rule; derived: any d < pi/2 holds, and cos(d) must stay off 0."""

    most_nodes: int = 1 << 14
    """Nodes beyond which the integral is not offered, for memory; the averaged curve then bounds alone."""

    chunk: int = 1 << 16
    """Numbers of a table that is in memory at once (512 kB), so that it stays in the cache of a processor."""


SETTINGS = IntegralSettings()
"""The settings in force."""


def allocation(base: Curve, pair: Pair | None, rate: Fraction) -> Curve:
    """The larger of both directions, each step having this curve and perhaps this dominating pair, 1 / rate steps."""
    steps = min(int(1 / rate), MOST_STEPS)
    removed, added = Removed(base, steps), Averaged(base, steps)
    loss = pair.loss() if pair is not None and pair.symmetric else None
    if pair is None or loss is None or loss.leak:
        return Highest((added, removed))
    return Highest((Lowest((added, Added(pair, steps))), removed))


@dataclass(frozen=True, slots=True)
class Removed(Curve):
    """e^K(a-1) = a! t^-a [z^a] ( SUM_k M_k z^k / k! )^t at integers a, M_k = E_Q W^k = e^{(k-1) D_k}; chords between them.

    Given what was released before, each step has moments that are not above M_k, so that the steps may be adaptive.
    """

    base: Curve
    steps: int
    _known: dict[Any, Any] = field(default_factory=dict, compare=False, repr=False)

    integral = True

    @property
    def estimated(self) -> bool:  # type: ignore[override]
        return self.base.estimated

    def _cgf(self, lam: Array, on: Arithmetic) -> Array:
        near = np.array([x <= MOST - 1 for x in lam], dtype=bool)
        below = np.array([int(x // 1) if here else 0 for x, here in zip(lam, near, strict=True)], dtype=np.int64)
        above = np.array([-int(-x // 1) if here else 0 for x, here in zip(lam, near, strict=True)], dtype=np.int64)
        known = self._series(int(above.max(initial=0)), on)
        x = on.asarray(lam)
        left, right, share = known[below], known[above], x - on.asarray(below.astype(object if on.exact else float))
        chord = np.where(above == below, left, (1 - share) * left + share * right)
        return np.where(near, chord, on.asarray(np.full(len(lam), 0)) + on.number(math.inf))

    def _series(self, top: int, on: Arithmetic) -> Array:
        """Return K at the integers from 0 to `top` at least, remembered."""
        size = 1 << max(3, top.bit_length())
        key = on.exact, on.precision()
        known = self._known.get(key)
        if known is None or len(known) <= top:
            known = _balls(self.base, self.steps, size, on) if on.exact else _floats(self.base, self.steps, size)
            self._known[key] = known
        return known

    def kl(self, on: Arithmetic = FLOATS) -> Scalar:
        return self._cgf(np.array([1], dtype=object if on.exact else float), on)[0]


def _floats(base: Curve, steps: int, size: int) -> Array:
    """Return K at 0, 1, … in floats.

    With f = e^(z/t) + d, f^t - e^z is a sum of positive terms, by binary powers of (e, d).
    """
    k = np.arange(size + 1.0)
    log_factorial = special.gammaln(k + 1)
    moments = np.append([-np.inf, -np.inf], FLOATS.log_expm1(base.cgf(k[2:] - 1)))
    moments[np.isnan(moments)] = np.inf
    known = np.argmax(np.append(moments, np.inf) == np.inf)
    moments[known:] = -np.inf

    def plain(count: int) -> Array:
        return k * math.log(count / steps) - log_factorial

    one, made, difference = moments - k * math.log(steps) - log_factorial, 0, np.full(size + 1, -np.inf)
    for bit in bin(steps)[2:]:
        if made:
            # (e + d)^2 - e^2 = d (2 e + d)
            difference = _product(difference, np.logaddexp(math.log(2) + plain(made), difference))
            made *= 2
        if bit == "1":
            with np.errstate(divide="ignore"):
                before = plain(made) if made else np.where(k == 0, 0.0, -np.inf)
            more = _product(difference, np.logaddexp(plain(1), one))
            difference, made = np.logaddexp(more, _product(before, one)), made + 1
    with np.errstate(over="ignore"):
        found = np.logaddexp(0.0, log_factorial + difference)[1:]
        found = np.where(
            log_factorial[1:] + difference[1:] < 0, np.log1p(np.exp(log_factorial + difference)[1:]), found
        )
    found[max(known - 1, 0) :] = np.inf
    return found


def _product(a: Array, b: Array) -> Array:
    """log of the product of two power series, as far as they go."""
    size = a.size
    padded = np.concatenate([np.full(size - 1, -np.inf), b])
    shifted = np.lib.stride_tricks.sliding_window_view(padded, size)[:, ::-1]
    return log_sum(a + shifted)


def _balls(base: Curve, steps: int, size: int, on: Arithmetic) -> Array:
    """Return the coefficients of the series in balls."""
    from flint import arb, arb_poly

    lam = np.array([Fraction(k) for k in range(1, size)], dtype=object)
    factorial = [arb(1)]
    for k in range(1, size + 1):
        factorial.append(factorial[-1] * k)
    moments = [arb(1), arb(1), *(value.exp() for value in base._cgf(lam, on))]
    finite = next((k for k, moment in enumerate(moments) if not moment.is_finite()), len(moments))
    t = arb(steps)
    one = arb_poly([moment / t**k / factorial[k] for k, moment in enumerate(moments[:finite])])
    power = arb_poly([1])
    for bit in bin(steps)[2:]:
        power = (power * power).truncate(finite)
        if bit == "1":
            power = (power * one).truncate(finite)
    found = [(value * factorial[a + 1]).log() for a, value in enumerate(power.coeffs()[1:])]
    found[:1] = [arb(0)]
    return np.array([*found, *[on.number(math.inf)] * (size - len(found))], dtype=object)


@dataclass(frozen=True, slots=True)
class Averaged(Wrapped):
    """K(lambda) <= t K(lambda / t) of one step, adding the record: the mean of the ratios is not below their geometric mean."""

    steps: int = 1

    def _cgf(self, lam: Array, on: Arithmetic) -> Array:
        if on.exact:
            return on.number(self.steps) * self.curve.cgf(np.array([Fraction(x) / self.steps for x in lam]), on)
        # the divergence grows with the order, so that an order that was rounded up will do
        return on.number(self.steps) * self.curve.cgf(np.nextafter(lam / self.steps, np.inf), on)

    def concentration(self) -> tuple[Fraction, Fraction] | None:
        return None


@dataclass(frozen=True, slots=True)
class Added(Curve):
    """e^K(lambda) = t^lambda E_Q S^-lambda = t^lambda / Gamma(lambda) INT_0^inf u^(lambda-1) phi(u)^t du, phi(u) = E_Q e^(-uW).

    In v = log u the trapezoid rule is wrong by a part 2 cos(d)^-lambda / (e^(2 pi d / h) - 1) at most, for every d < pi/2,
    because |phi(e^(v+iy))| <= phi(e^v cos y). W is replaced by finitely many ratios above it in convex order.
    """

    pair: Pair
    steps: int
    _known: dict[Any, Any] = field(default_factory=dict, compare=False, repr=False)

    enclosed = True

    def _cgf(self, lam: Array, on: Arithmetic) -> Array:
        if on.exact:
            raise CertificateError("the integral of random allocation is bounded in floats")
        value = np.full(lam.shape, np.inf)
        least = SETTINGS.least_lambda
        x = np.maximum(lam, least)
        for low, high in zip((0, *SETTINGS.lambdas), SETTINGS.lambdas, strict=False):
            some = (x > low) & (x <= high)
            if some.any():
                value[some] = self._block(high).cgf(x[some])
        # K(0) = 0, and K is convex
        value = np.where(lam < least, value * (lam / least) * (1 + 4 * U), value)
        return Enclosure(value) if on.enclosing else value

    def _block(self, most: int) -> Integral:
        if most not in self._known:
            self._known[most] = integral(self.pair, self.steps, most)
        found: Integral = self._known[most]
        return found

    def kl(self, on: Arithmetic = FLOATS) -> Scalar:
        return self._cgf(np.array([SETTINGS.least_lambda]), on)[0] / SETTINGS.least_lambda


@dataclass(frozen=True, slots=True, eq=False)
class Integral:
    """The integrand without u^lambda and without that of W = 1, from above, in logarithms at nodes v of step h."""

    steps: int
    nodes: Array
    step: float
    log_excess: Array
    rounding: Array
    small: float
    far: float
    log_far: float
    slip: float

    def cgf(self, lam: Array) -> Array:
        """Return K at each lambda, rounded up."""
        if not self.nodes.size:
            return np.full(lam.shape, np.inf)
        h, v, t, x = self.step, self.nodes, self.steps, lam[:, None]
        scale = lam * math.log(t) - special.gammaln(lam)
        lifted = x * v + self.log_excess
        lifted += self.rounding + 8 * U * (np.abs(x * v) + np.abs(scale)[:, None] + np.abs(self.log_excess))
        inside = log_sum(lifted + scale[:, None]) + math.log(h)
        below = scale + self.small + (lam + 2) * v[0] - np.log(lam + 2)
        above = scale + self.log_far + (lam - self.far) * v[-1] - np.log(self.far - lam)
        total = np.exp(np.logaddexp(inside, np.logaddexp(below, above))) * (1 + U * (64 + 8 * np.abs(scale)))
        d = np.minimum(SETTINGS.widest_strip, 2 * math.pi / (h * lam))
        wrong = 2.001 * np.exp(-lam * np.log(np.cos(d)) - 2 * math.pi * d / h)
        with np.errstate(invalid="ignore"):
            found = np.log1p((total + 2 * wrong) / (1 - wrong)) * (1 + 8 * U) + lam * self.slip
        return np.where((wrong < 0.5) & ~np.isnan(found), found, np.inf)


_NOTHING = Integral(1, np.zeros(0), 0.0, np.zeros(0), np.zeros(0), 0.0, 0.0, 0.0, 0.0)
"""The integral without nodes, whose bound is +inf: it is returned where floats do not reach far enough."""


def integral(pair: Pair, steps: int, most: int) -> Integral:
    """The integrand for orders up to most + 1; nothing where floats do not reach that far."""
    from cumulant.losses.ratio_law import ratios

    loss, far = pair.loss(), 2.0 * most + 20
    ends = pair.curve().cgf(np.array([far / steps, 1.0]), BOUNDED).upper()
    # phi(u) <= (s / (e u))^s E_Q W^-s for every s, here far / steps, and E_Q W^-s = e^K(s) of a symmetric pair
    divergence = steps * ends[0] / far
    step = min(0.7 / math.sqrt(most), 0.15)
    first, last = math.log(SETTINGS.first_node / steps), math.log(far / steps) + 2 * divergence + 2
    count = (last - first) / step
    if loss is None or not count <= SETTINGS.most_nodes or not ends[1] < 600:
        return _NOTHING
    try:
        near = ratios(loss, SETTINGS.points, SETTINGS.log_out_small_u)
        far_out = ratios(loss, SETTINGS.points, SETTINGS.log_out_large_u)
    except (OverflowError, MemoryError):
        return _NOTHING
    v = first + step * np.arange(math.ceil(count) + 1)
    u = np.exp(v)
    small_u = u <= SETTINGS.largest_small_u
    y = np.concatenate([_log_excess(near, u[small_u]), _log_mean(far_out, u[~small_u])])
    error, slip = max(near.error, far_out.error), max(near.slip, far_out.slip)
    with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
        ty = steps * y
        log_excess = np.where(ty < 30, np.log(np.expm1(np.minimum(ty, 30.0))), ty + np.log1p(-np.exp(-ty))) - steps * u
    rounding = error * (1 + ty) + 8 * U * (ty + steps * u)
    # e^-x - 1 + x <= e^u x^2 / 2 for x >= -u, so that (e^ty - 1) is below t u^2 var / 2 times what is hardly above 1
    variance = math.expm1(ends[1])
    top = steps * u[0] ** 2 * variance / 2 * math.exp(u[0])
    small = math.log(steps * variance / 2) + u[0] + top if variance > 0 else -math.inf
    log_far = far * (math.log(far / steps) - 1 + divergence)
    log_far += 16 * U * far * (abs(math.log(far / steps)) + 1 + divergence)
    return Integral(steps, v, step, log_excess, rounding, small + 16 * U * abs(small), far, log_far, slip)


def _log_excess(law: Ratios, u: Array) -> Array:
    """log E e^{-u(W-1)} from above at small u: log1p of SUM q (e^-x - 1 + x), x = u (w - 1)."""
    q, w = np.exp(law.log_mass), np.expm1(law.log_ratio)
    lost = u * (law.slip + law.out) + law.out * np.exp(u)
    found = np.concatenate([np.sum(FLOATS.excess(-some[:, None] * w) * q, axis=1) for some in _chunks(u, q.size)])
    return np.log1p(found * (1 + 2 * U * q.size) + lost)


def _log_mean(law: Ratios, u: Array) -> Array:
    """Return log E e^{-u(W-1)} from above at large u, from the exponents themselves."""
    w = np.expm1(law.log_ratio)
    found = np.concatenate([log_sum(law.log_mass - some[:, None] * w) for some in _chunks(u, w.size)])
    found = np.logaddexp(found, u + math.log(law.out or 5e-324))
    return found + u * (law.slip + law.error) + 16 * U * (np.abs(found) + u)


def _chunks(u: Array, size: int) -> list[Array]:
    return np.array_split(u, max(1, u.size * size // SETTINGS.chunk))


# The table of the theorems about random allocation: what each says, what it assumes, what it proves.

_EPOCH = (
    "every record is in one step of the epoch, chosen uniformly and independently of the others, add/remove neighbours"
)
"""The hypotheses of all rows."""

_HERE = "docs/mechanisms/random-allocation.md"
"""The page with the proofs."""

ALLOCATION: dict[str, Bound] = {
    row.name: row
    for row in (
        Bound(
            "caps",
            "eps'(a) <= eps(a)",
            _EPOCH,
            f"joint convexity, {_HERE}",
            lambda base, pair, rate: base,
            nothing,
        ),
        Bound(
            "allocation",
            "eps'(a) is the larger of log E (S/t)^a / (a-1) and log E (S/t)^(1-a) / (a-1), S/t the mean of t ratios p/q",
            _EPOCH,
            f"Chua et al. 2024, Feldman and Shenfeld 2025; {_HERE}",
            allocation,
            no_slack,
            tight=True,
        ),
        Bound("best", "the smallest of all bounds that apply", _EPOCH, "all of the above", None, nothing),
    )
}
"""The rows, from the one that holds for every mechanism to the one that knows more."""
