"""Self-checked quadrature of two densities that are given as Python functions."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, TypeVar

import numpy as np

from cumulant.curves.cache import recall, user_code
from cumulant.curves.user_function import numbers
from cumulant.errors import CertificateError, InputError
from cumulant.numerics.arithmetic import FLOATS, Arithmetic, Array
from cumulant.numerics.logspace import log_sum
from cumulant.numerics.quadrature import PANEL_POINTS, legendre, log_integrals, maxima

# A pair of densities as many small pieces, each with its mass under both laws: profiles at thousands of epsilons at once.
#
# One integral per epsilon asks the densities again at every point; here they are asked once, and each profile is a difference
# of two tails. Pieces are halved until both masses are settled and the loss varies little on them, so that the one in which it
# passes epsilon hardly matters.

LogDensities = Callable[[Array], tuple[Array, Array, Array]]
"""s -> log p, log q and the log of the Jacobian."""


@dataclass(frozen=True, slots=True)
class DensitySettings:
    """Tuning constants of the quadrature of user densities.

    Every answer is estimated, so none affects a proof.
    """

    piece_nodes: int = 16
    """Gauss nodes of a piece; chosen by hand: more nodes for fewer pieces."""

    log_least_tail_mass: float = -95.0
    """Logarithm of the least mass of a piece of the tails; e^-95 is far below every delta that is asked for."""

    tail_variation: float = 0.05
    """Largest variation of the loss (nats) on a piece of the tails; trades pieces against the error of delta."""

    tail_stride: int = 4
    """Every fourth point of the scan begins a piece of the tails; trades pieces against halvings."""

    largest_loss: float = 200.0
    """Losses (nats) are clipped here when their variation is measured; beyond it no piece matters."""

    settled: float = 1e-11
    """Relative change of a mass on halving below which a piece is settled; a little above float rounding."""

    most_halvings: int = 48
    """Halvings of a piece, after which it is taken as it is; a float has 52 bits of a step."""

    missing_mass: float = 1e-9
    """Mass that pieces may lack of 1 before they are refused: a peak between the scanned points was missed."""

    most_pieces: int = 1 << 20
    """Nodes of all pieces in memory at once; a bound of memory (8 MB an array)."""

    normalisation: float = 1e-6
    """Largest |log mass| of a density that is accepted; convention: densities are usually rounded to 1e-6 or better."""

    most_facts: int = 16
    """Facts that a pair remembers; there are fewer names than that."""

    few_orders: int = 6
    """Parameters up to which each is integrated by itself; finding pieces costs more."""

    agreement: float = 1e-3
    """Largest slack of log delta with which the tails are used instead of the quadrature."""

    piece_error: float = 1e-9
    """Largest difference of log integrals with which the pieces are used instead of the quadrature."""

    piece_stride: int = 32
    """Every 32nd point of the grid begins a piece, which 32 nodes then see at least; trades pieces against halvings."""

    variation: float = 0.25
    """Largest variation of the loss (nats) on a piece for smooth integrals; measured: they are then exact to about
    1e-11."""

    crossing: float = 1 / 64
    """Part of that variation with which a piece may contain the loss 0, where the integrand of an amplified profile has
    a kink; measured: errors of 5e-10 fall to 5e-12."""

    highest_order: float = 64.0
    """Order up to which the first pieces serve: e^{64 * 0.25 t} has an error of 1e-14 with 16 nodes (derived)."""

    level_ratio: float = 8.0
    """Finer pieces are so many times smaller in loss, and serve orders so many times as large."""

    levels: int = 3
    """Levels of pieces: they serve orders up to 64, 512 and 4,096, the end of every first scan."""

    most_fine_pieces: int = 1 << 15
    """Nodes of a level but the first, beyond which an integral for each order is cheaper; measured."""

    separated_mass: float = 1e-9
    """Mass of one law where the other has none, above which all divergences are infinite."""

    ended: float = 45.0
    """Nats below the integral at which the integrand counts as ended; e^-45 is below float rounding."""

    fringe: float = 20.0
    """Nats above `LOG_LEAST_MASS` within which a piece belongs to the fringe, where the end is looked for."""

    negligible: float = 60.0
    """Nats below the sum at which a piece is left out; e^-60 of a million pieces is far below float rounding."""

    block_terms: int = 1 << 19
    """Terms that are in memory at once (4 MB an array)."""

    block_orders: int = 16
    """Orders that are summed at once; the more of them, the fewer pieces are negligible for all."""

    most_known_panels: int = 1 << 14
    """Panels whose densities are kept; a bound of memory (7 MB)."""


SETTINGS = DensitySettings()
"""The settings in force; a test may replace them."""

LOG_LEAST_MASS = -690.0
"""Logarithm of the smallest masses that pieces can have; derived: e^-690 is the order of the least normal float."""


@dataclass(frozen=True, slots=True)
class Tails:
    """The losses of all pieces in increasing order, with the masses of P and Q from each one on."""

    loss: Array
    p: Array
    q: Array

    def profile(self, epsilons: Array) -> Array:
        """Return delta(eps) = P(y > eps) - e^eps Q(y > eps) at each epsilon."""
        first = np.searchsorted(self.loss, epsilons, side="right")
        with np.errstate(over="ignore", invalid="ignore"):
            growth = np.where(self.q[first] > 0, np.exp(epsilons) * self.q[first], 0.0)
        return np.maximum(self.p[first] - growth, 0.0)


def both_tails(densities: LogDensities, grid: Array) -> tuple[Tails, Tails] | None:
    """Return the tails of P against Q and of Q against P, with s cut at the points of the grid.

    Returns None if that takes too many pieces; the caller then integrates each epsilon.
    """
    found = pieces(
        densities,
        np.append(grid[: -1 : SETTINGS.tail_stride], grid[-1]),
        Fineness(SETTINGS.tail_variation, SETTINGS.tail_variation, SETTINGS.log_least_tail_mass),
    )
    if found is None:
        return None
    log_p, log_q = found
    return _tails(log_p, log_q), _tails(log_q, log_p)


def _tails(log_p: Array, log_q: Array) -> Tails:
    """Return the losses of P against Q, and the masses of both laws above each."""
    with np.errstate(invalid="ignore"):
        loss = log_p - log_q
    place = np.argsort(loss, kind="stable")

    def sums(log_mass: Array) -> Array:
        return np.append(np.cumsum(np.exp(log_mass[place])[::-1])[::-1], 0.0)

    return Tails(loss[place], sums(log_p), sums(log_q))


@dataclass(frozen=True, slots=True)
class Fineness:
    """The fineness of the pieces of two laws."""

    variation: float
    """Largest variation of the loss on a piece."""

    crossing: float
    """Largest variation of the loss on a piece that contains the loss 0."""

    least: float = LOG_LEAST_MASS
    """Pieces with less than e^least of both masses are left out."""

    most: int = SETTINGS.most_pieces
    """Nodes of all pieces; laws that need more have no pieces."""


def pieces(densities: LogDensities, grid: Array, fineness: Fineness) -> tuple[Array, Array] | None:
    """Return the logarithms of the masses of P and Q on pieces where the loss varies little.

    Returns None if there are too many pieces, or if a peak between the points of the grid was missed; the caller then
    integrates each parameter.
    """
    with np.errstate(all="ignore"):
        return _pieces(densities, grid, fineness)


def _pieces(densities: LogDensities, grid: Array, fineness: Fineness) -> tuple[Array, Array] | None:
    """Return log masses of both laws on pieces, halved until they settle.

    Returns None if too many pieces are needed, or mass is missing.
    """
    least = fineness.least
    nodes, weights = legendre(SETTINGS.piece_nodes)

    def masses(low: Array, width: Array) -> tuple[Array, Array]:
        log_p, log_q, log_jacobian = densities(low[:, None] + width[:, None] * nodes)
        log_width = log_jacobian + np.log(width)[:, None] + np.log(weights)
        return log_p + log_width, log_q + log_width

    low, width = grid[:-1], np.diff(grid)
    at_grid = densities(grid)
    height = np.maximum(at_grid[0], at_grid[1]) + at_grid[2]
    seen = np.maximum(height[:-1], height[1:]) > least
    seen = seen | np.append(False, seen[:-1]) | np.append(seen[1:], False)
    low, width = low[seen], width[seen]
    p, q = masses(low, width)
    before = np.stack([np.exp(p).sum(axis=1), np.exp(q).sum(axis=1)])
    kept: list[tuple[Array, Array]] = []
    count = 0
    for depth in range(SETTINGS.most_halvings):
        if count + 2 * low.size * SETTINGS.piece_nodes > fineness.most:
            return None
        half = width / 2
        low, width = np.stack([low, low + half], axis=1).ravel(), np.repeat(half, 2)
        p, q = masses(low, width)
        now = np.stack([np.exp(p).sum(axis=1), np.exp(q).sum(axis=1)])
        off = np.abs(now[:, ::2] + now[:, 1::2] - before)
        settled = np.repeat((off <= SETTINGS.settled * before + np.exp(least)).all(axis=0), 2)
        done = settled & _loss_varies_little(p, q, now.max(axis=0), fineness) | (depth == SETTINGS.most_halvings - 1)
        some = np.maximum(p[done], q[done]) > -np.inf
        kept.append((p[done][some], q[done][some]))
        count += int(some.sum())
        low, width, before = low[~done], width[~done], now[:, ~done]
        if not low.size:
            break
    log_p, log_q = np.concatenate([p for p, _ in kept]), np.concatenate([q for _, q in kept])
    whole = all(abs(np.exp(side).sum() - 1) <= SETTINGS.missing_mass for side in (log_p, log_q))
    return (log_p, log_q) if whole else None


def _loss_varies_little(p: Array, q: Array, mass: Array, fineness: Fineness) -> Array:
    """Return where the loss varies little on a piece, or the piece has too little mass."""
    loss = p - q
    loss = np.where(np.isnan(loss), 0.0, np.clip(loss, -SETTINGS.largest_loss, SETTINGS.largest_loss))
    low, high = loss.min(axis=1), loss.max(axis=1)
    most = np.where((low < 0) & (high > 0), fineness.crossing, fineness.variation)
    return (high - low <= most) | (mass < np.exp(fineness.least))


LogDensity = Callable[[Any], Any]
Integrand = Callable[[Array, Array, Array], Array]
"""(log p, log q, parameter) -> log of what is integrated."""

VECTOR = "all points in one call"
"""The way to call a user's function that takes arrays."""

SCALAR = "one point at a time"
"""The way to call a user's function that takes single numbers."""

T = TypeVar("T")
"""The type of a remembered fact."""


@dataclass(frozen=True, slots=True, eq=False)
class Densities:
    """Two log-densities on an interval; the object remembers what it finds out about them.

    The functions must not change while the object lives.
    """

    log_p: LogDensity
    log_q: LogDensity
    support: tuple[float, float] = (-math.inf, math.inf)
    pure: float = math.inf
    _facts: dict[Hashable, Any] = field(default_factory=dict, repr=False)

    def __post_init__(self) -> None:
        low, high = self.support
        if not low < high:
            raise InputError(f"support=({low}, {high}) must be an interval (low, high) with low < high")
        for name in ("log_p", "log_q"):
            density: Integrand = (lambda p, q, _: p) if name == "log_p" else (lambda p, q, _: q)
            log_mass = self._integrate(density, np.zeros(1))[0]
            if not abs(log_mass) <= SETTINGS.normalisation:
                found = f"to {math.exp(log_mass):.9g}" if log_mass < 700 else "to no number that can be trusted"
                rule = "a density integrates to 1; return its logarithm"
                raise InputError(f"{name} integrates {found} on ({low:g}, {high:g}); {rule}")
        if self.pure < math.inf:
            log_p, log_q, _ = self.losses(_grid(self.support))
            with np.errstate(invalid="ignore"):
                # far out both logarithms are large and their rounding is not a loss
                loss = np.abs(log_p - log_q) - 1e-15 * (np.abs(log_p) + np.abs(log_q))
            worst = np.max(loss[np.isfinite(loss)], initial=0.0)
            if worst > self.pure + 1e-9 * (1 + self.pure):
                raise InputError(f"pure={self.pure:g} must bound |log p - log q|, which reaches {worst:.9g}")

    def tails(self) -> tuple[Tails, Tails] | None:
        """Return both laws in pieces; None if their profile disagrees with the quadrature."""

        def found() -> tuple[tuple[Tails, Tails] | None]:
            tails = both_tails(self.losses, self.scan())
            return (tails if tails is not None and self.slack(tails) <= SETTINGS.agreement else None,)

        return self.remember("tails", found)[0]

    def slack(self, tails: tuple[Tails, Tails]) -> float:
        """Return a bound of how far log delta of the pieces is too small.

        It is twice the largest gap to the quadrature at a few epsilons.
        """

        def found() -> float:
            scanned = np.concatenate([[0.0], np.geomspace(1e-6, 100.0, 400)])
            delta = larger_profile(tails, scanned)
            places = [int(np.argmin(delta > part * delta[0])) for part in (0.9, 0.5, 1e-2, 1e-5, 1e-10, 1e-20)]
            asked = scanned[[place for place in dict.fromkeys([0, *places]) if delta[place] > 0]]
            if not asked.size:
                return math.inf
            gaps = np.abs(self.larger_direction(log_hockey_stick, asked, FLOATS) - np.log(larger_profile(tails, asked)))
            return 2 * float(np.max(gaps)) + 1e-12

        return self.remember("slack", found)

    def is_separated(self) -> bool:
        """True if one law produces what the other cannot, so that every divergence is infinite."""

        def found() -> tuple[bool]:
            pieces = self._pieces()
            if pieces is None:
                return (False,)
            log_p, log_q = pieces
            alone = [np.sum(np.exp(a[b == -np.inf])) for a, b in ((log_p, log_q), (log_q, log_p))]
            return (bool(max(alone) > SETTINGS.separated_mass),)

        return self.remember("separated", found)[0]

    def larger_direction(self, integrand: Integrand, parameters: Any, on: Arithmetic, family: Hashable = None) -> Array:
        """Return the log of an integral for (P, Q) or (Q, P), whichever is larger; see `integrals`."""
        if on.exact:
            raise CertificateError(
                "densities given as Python functions cannot be certified; use from_masses or float64"
            )
        parameters = np.asarray(parameters, dtype=np.float64)
        return np.maximum(*self.both_directions(integrand, parameters.ravel(), family)).reshape(parameters.shape)

    def both_directions(self, integrand: Integrand, parameters: Array, family: Hashable = None) -> tuple[Array, Array]:
        """Return the log of an integral for (P, Q) and for (Q, P); see `integrals`."""
        back = None if family is None else (family, "back")
        return (
            self.integrals(integrand, parameters, family),
            self.integrals(lambda p, q, parameter: integrand(q, p, parameter), parameters, back),
        )

    def integrals(self, integrand: Integrand, parameters: Array, family: Hashable = None) -> Array:
        """Return the log of an integral at each parameter.

        Smooth integrands have a `family`, the name under which their checks are remembered. They are summed over pieces
        of the laws, which are found once; if that sum disagrees with the quadrature, the quadrature answers. Such an
        integrand is homogeneous: with the logarithms of masses in place of those of densities it gives the log of its
        integral.
        """
        if family is None or parameters.size <= SETTINGS.few_orders:
            return self._integrate(integrand, parameters)
        value, rest = np.empty(parameters.size), np.ones(parameters.size, dtype=bool)
        for level in range(SETTINGS.levels):
            served = np.flatnonzero(rest & (parameters <= SETTINGS.highest_order * SETTINGS.level_ratio**level))
            if not served.size:
                continue
            pieces = self._pieces(level)
            if pieces is None:
                break
            found, known = _sum_over_pieces(integrand, *pieces, parameters[served])
            served, found = served[known], found[known]
            gap = self._gap(integrand, parameters[served], found, (family, level)) if served.size else math.inf
            if gap <= SETTINGS.piece_error:
                value[served], rest[served] = found + 2 * gap, False
        if rest.any():
            value[rest] = self._integrate(integrand, parameters[rest])
        return value

    def _gap(self, integrand: Integrand, parameters: Array, found: Array, checks: Hashable) -> float:
        """Return the largest difference of some sums over pieces from the quadrature.

        The least, the middle and the largest parameter are compared, once for all parameters between them.
        """
        memory: dict[Hashable, tuple[float, float, float]] = self.remember("checks", dict)
        low, high, gap = memory.get(checks, (math.inf, -math.inf, 0.0))
        if parameters.min() < low or parameters.max() > high:
            chosen = np.argsort(parameters)[[0, parameters.size // 2, -1]]
            gap = max(gap, float(np.max(np.abs(self._integrate(integrand, parameters[chosen]) - found[chosen]))))
            low, high = min(low, float(parameters.min())), max(high, float(parameters.max()))
            memory[checks] = low, high, gap
        return gap

    def _pieces(self, level: int = 0) -> tuple[Array, Array] | None:
        """Return both laws in pieces on which smooth integrals are exact to about 1e-11.

        Each level has finer pieces, which serve larger orders. Returns None if there are no such pieces, or too many of
        them; the caller then integrates each parameter.
        """
        grid = _grid(self.support)
        first = np.append(grid[: -1 : SETTINGS.piece_stride], grid[-1])
        variation = SETTINGS.variation / SETTINGS.level_ratio**level
        most = SETTINGS.most_pieces if level == 0 else SETTINGS.most_fine_pieces
        fineness = Fineness(variation, SETTINGS.crossing * variation, most=most)
        return self.remember(("pieces", level), lambda: (pieces(self.losses, first, fineness),))[0]

    def _integrate(self, integrand: Integrand, parameters: Array) -> Array:
        def log_f(s: Array, rows: Array) -> Array:
            log_p, log_q, log_jacobian = self._shared_losses(s)
            value = integrand(log_p, log_q, parameters[rows, None])
            # where neither law has mass there is nothing to integrate
            return np.where((log_p == -np.inf) & (log_q == -np.inf), -np.inf, value + log_jacobian)

        return log_integrals(log_f, len(parameters), self.scan())

    def _shared_losses(self, s: Array) -> tuple[Array, Array, Array]:
        """Return `losses` of rows of points; all integrals share those of the scan and of panels.

        The nodes of a panel follow from its ends, which are the last two points of its row.
        """
        if s.shape[0] == 1 and np.array_equal(s[0], self.scan()):
            return self.remember("at the scan", lambda: self.losses(s))
        if s.shape[1] != PANEL_POINTS or not s.size:
            return self.losses(s)
        memory: dict[complex, Array] = self.remember("panels", dict)
        ends, first, place = np.unique(s[:, -2] + 1j * s[:, -1], return_index=True, return_inverse=True)
        known = [memory.get(panel) for panel in ends.tolist()]  # another thread may empty the memory
        new = [i for i, values in enumerate(known) if values is None]
        if new:
            for i, values in zip(new, np.stack(self.losses(s[first[new]]), axis=1), strict=True):
                known[i] = values
            if len(memory) + len(new) > SETTINGS.most_known_panels:
                memory.clear()
            memory.update(zip(ends[new].tolist(), (known[i] for i in new), strict=True))
        log_p, log_q, log_jacobian = np.array(known).transpose(1, 0, 2)[:, place]
        return log_p, log_q, log_jacobian

    def scan(self) -> Array:
        """Return the first points at which both densities are evaluated, in units of s."""
        return self.remember("scan", lambda: _scan(self))

    def remember(self, name: Hashable, value: Callable[[], T]) -> T:
        """Return a fact about this pair; `value` computes it once."""
        return recall(self._facts, name, value, SETTINGS.most_facts)

    def losses(self, s: Array) -> tuple[Array, Array, Array]:
        """Return log p, log q and the log of the Jacobian dx/ds at the mapped points."""
        low, high = self.support
        if math.isinf(low) and math.isinf(high):
            x, log_jacobian = 1e-6 * np.sinh(s), math.log(1e-6) + FLOATS.log_cosh(s)
        elif math.isinf(high):
            x, log_jacobian = np.maximum(low + np.exp(s), np.nextafter(low, math.inf)), s
        elif math.isinf(low):
            x, log_jacobian = np.minimum(high - np.exp(-s), np.nextafter(high, -math.inf)), -s
        else:
            # from the nearer end, so that points close to an end of the interval stay distinct
            part = np.exp(-np.logaddexp(0.0, np.abs(s)))
            x = np.where(s < 0, low + (high - low) * part, high - (high - low) * part)
            x = np.clip(x, np.nextafter(low, math.inf), np.nextafter(high, -math.inf))
            log_jacobian = math.log(high - low) - np.logaddexp(0.0, s) - np.logaddexp(0.0, -s)
        return self._evaluate(self.log_p, "log_p", x), self._evaluate(self.log_q, "log_q", x), log_jacobian

    def _evaluate(self, function: LogDensity, name: str, x: Array) -> Array:
        """Evaluate the function at an array: in one call if it takes arrays, else point by point."""
        values = None
        with np.errstate(all="ignore"):
            if self._facts.get(name) is not SCALAR:
                values = _in_one_call(function, x)
                if values is not None and name not in self._facts and x.size:
                    values = values if _agrees_pointwise(function, x, values) else None
                    self._facts[name] = SCALAR if values is None else VECTOR
            if values is None:
                values = np.array(numbers(function, x.ravel().tolist(), name), dtype=np.float64).reshape(x.shape)
        if np.isnan(values).any():
            raise InputError(
                f"{name} is not a number at x={x[np.isnan(values)][0]:g}; give -inf where the density is 0"
            )
        return values


def _grid(support: tuple[float, float]) -> Array:
    """Return the points at which s is scanned.

    x is 1e-6 sinh s on the line, low + e^s on a half-line, a logistic function of s on an interval.

    A peak is found if it shows at the scanned points: steps of 1 % of |x| where densities usually live, 5 % beyond.
    """
    low, high = support
    if math.isinf(low) and math.isinf(high):
        near, far = np.linspace(0, 7, 140, endpoint=False), np.arange(30.05, 75, 0.05)
        right = np.concatenate([near, np.linspace(7, 30, 2300), far])
        return np.concatenate([-right[:0:-1], right])
    if math.isinf(low) or math.isinf(high):
        grid = np.concatenate([np.arange(-60, -7, 0.05), np.linspace(-7, 14, 2100), np.arange(14.05, 60, 0.05)])
        return grid if math.isinf(high) else -grid[::-1]
    return np.linspace(-37, 37, 4001)


def _scan(pair: Densities) -> Array:
    """Return the grid with the points where the loss is largest in either direction.

    Without these points the quadrature could overlook a narrow set {y > eps}.
    """
    grid = _grid(pair.support)

    def loss(s: Array, rows: Array) -> Array:
        log_p, log_q, _ = pair.losses(s)
        y = np.where(np.maximum(log_p, log_q) > -700, log_p - log_q, 0.0)  # where there is mass at all
        return np.where(np.isnan(y), 0.0, np.where(rows[:, None] == 0, y, -y))

    rows = np.arange(2)
    with np.errstate(invalid="ignore"):
        modes, _ = maxima(loss, rows, grid, loss(grid[None, :], rows))
    return np.unique(np.concatenate([grid, modes.ravel()]))


def _in_one_call(function: LogDensity, x: Array) -> Array | None:
    with suppress(Exception), user_code():  # a scalar function, such as one written with math.log or with an if
        values = np.asarray(function(x))
        if values.shape == x.shape and values.dtype.kind in "fiu":
            return values.astype(np.float64)
    return None


def _agrees_pointwise(function: LogDensity, x: Array, values: Array) -> bool:
    """True if a few values of the array equal those of single calls."""
    places = [0, x.size // 3, x.size // 2, x.size - 1]
    with suppress(Exception), user_code():
        alone = [float(function(float(x.flat[place]))) for place in places]
        return np.allclose(values.ravel()[places], alone, rtol=1e-9, atol=1e-9, equal_nan=True)
    return False


def _sum_over_pieces(integrand: Integrand, log_p: Array, log_q: Array, parameters: Array) -> tuple[Array, Array]:
    """Return the log of the sum over all pieces, and whether the tails end before the pieces do.

    Smooth integrands rise with the order. So between two orders no piece matters whose term at the larger one is
    negligible beside the sum at the smaller one.
    """
    fringe = np.maximum(log_p, log_q) < LOG_LEAST_MASS + SETTINGS.fringe
    value, beyond = np.empty(parameters.size), np.full(parameters.size, -np.inf)
    rows = min(max(1, SETTINGS.block_terms // max(log_p.size, 1)), SETTINGS.block_orders)
    rising = np.argsort(parameters, kind="stable")
    with np.errstate(all="ignore"):
        for start in range(0, parameters.size, rows):
            some = rising[start : start + rows]
            kept = np.ones(log_p.size, dtype=bool)
            if some.size > 2:
                low, high = integrand(log_p, log_q, parameters[some[[0, -1]], None])
                kept = ~(high <= log_sum(low) - SETTINGS.negligible)
            terms = integrand(log_p[kept], log_q[kept], parameters[some, None])
            value[some] = log_sum(terms)
            beyond[some] = np.max(terms[:, fringe[kept]], axis=1, initial=-np.inf)
    return value, np.isfinite(value) & (beyond < value - SETTINGS.ended)


def larger_profile(tails: tuple[Tails, Tails], epsilons: Array) -> Array:
    """Return delta(eps) from both laws in pieces, the larger of both directions."""
    return np.maximum(tails[0].profile(epsilons), tails[1].profile(epsilons))


def log_hockey_stick(log_p: Array, log_q: Array, epsilon: Array) -> Array:
    """Return log of p (1 - e^{eps - y})_+, the integrand of delta at eps; -inf where y <= eps."""
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        y = log_p - log_q
        return np.where(y > epsilon, log_p + np.log(-np.expm1(epsilon - y)), -np.inf)
