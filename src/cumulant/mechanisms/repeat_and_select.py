"""The best of a random number of runs: hyper-parameter tuning."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import lru_cache
from typing import Any, ClassVar

from cumulant.accounting.answer import has_closed_form
from cumulant.bounds.bound import Bound
from cumulant.curves.curve import Curve
from cumulant.domains import NONNEGATIVE, POSITIVE, Domain, Exact, Number, one_of
from cumulant.errors import InputError
from cumulant.mechanisms.mechanism import Expression, Mechanism, Wrapper
from cumulant.numerics.arithmetic import BALLS
from cumulant.numerics.enclosure import BOUNDED, FAR
from cumulant.numerics.rounding import U, rounded_down
from cumulant.numerics.search import bisect
from cumulant.pairs.pair import Pair
from cumulant.parameters import declared
from cumulant.relation import Relation
from cumulant.sampling.scheme import Scheme, register_scheme

NUMBERS = ("negative-binomial", "poisson")
_POINTS = 22
"""Intervals between the points of a profile that has no closed form."""

_CLOSED_POINTS = 96
"""Intervals between the points of a profile in closed form."""

_ASKED = (1e-3, 1e-5, 1e-6, 1e-8)
"""Deltas that are met by points of their own, because they are asked for."""

_SMALLEST = Fraction(1, 10**14)
"""The delta of the last point."""

_SMALL = Fraction(1, 10**11)
"""The delta up to which there are many points, where no closed form is known."""

_POWERS = (-12, 10)
"""Powers of two between which the epsilon is looked for by which the others are moved."""

_ROUNDS = 6
"""Times that this epsilon is looked for closer by."""

_PARTS: tuple[float, ...] = (0.6, 0.7, 0.8, 0.9, 1.0, 1.1)
"""Multiples of the epsilon that Rényi divergences find, at which delta is asked first; chosen by hand."""

_NEARLY: tuple[float, ...] = (1 - 1e-12, 1 + 1e-12, 1 + 1e-9, 1 + 1e-3)
"""Multiples of the epsilon that Rényi divergences or floats find, at which the least one may be; chosen by hand."""

_NEXT = (-0.02, 0.0, 0.02, 0.1)
"""Distances from the guessed place at which delta is asked, as parts of the bracket; chosen by hand."""

_BENT = 0.75
"""Points are closer together far out, where delta falls faster."""

_FARTHEST = Fraction(280)
"""Epsilon beyond which no point of a profile counts; chosen by hand."""

_BEYOND = 0.005
"""Part of the distance of two points by which a new one lies beyond the cubic's; by hand: delta is a little smaller there."""

_HALVINGS = 200
"""Halvings in which floats find the parameter of a mean."""

_LEAST_LOGARITHM = -744.0
"""The logarithm of the smallest positive float, nearly."""

_BITS = 256
"""The precision of balls."""


@register_scheme
@dataclass(frozen=True, slots=True, init=False, eq=False, repr=False)
class RepeatAndSelect(Scheme):
    """K runs of an expression, each on all the data, of which only the best is published.

    Its score is published too.

    K is secret and exactly as named: negative binomial, at least 1, with this mean and shape (1 is geometric, 0 logarithmic),
    or with `number="poisson"` Poisson of this mean, perhaps 0. A cap on K breaks the theorem. Ties go by a fixed order or by
    lot. See docs/mechanisms/repeat-and-select.md.

    >>> import cumulant as cm
    >>> (cm.Gaussian(sigma=10) @ RepeatAndSelect(mean=10)).epsilon(delta=1e-6)
    0.627...
    """

    mean: Exact
    shape: Exact
    number: str

    relation: ClassVar[Relation] = Relation.ANY
    bounds: ClassVar[Mapping[str, Bound]] = {}
    draws: ClassVar[bool] = False

    def __init__(self, mean: Number, shape: Number = 1, number: str = "negative-binomial") -> None:
        checked, kind = POSITIVE.check("mean", mean), one_of("number", number, NUMBERS)
        if kind == NUMBERS[0] and checked < 1:
            raise InputError(
                f'mean={checked} must be at least 1, because at least one run is made; or say number="poisson"'
            )
        if kind == NUMBERS[1] and Exact(shape) != 1:
            raise InputError(f"shape={shape} is that of negative binomial numbers; a Poisson number has none")
        for name, value in (("mean", checked), ("shape", NONNEGATIVE.check("shape", shape)), ("number", kind)):
            object.__setattr__(self, name, value)

    @classmethod
    def unknowns(cls, others: Mapping[str, str]) -> Mapping[str, Domain]:
        return {"mean": Domain(Fraction(1), None, low_closed=True)}

    def wrap(self, inner: Any) -> Expression:
        return inner if self.number == NUMBERS[0] and self.mean == 1 else Selected(inner, self)

    def least_share(self) -> Fraction:
        """Return a number not above the success probability g.

        The mean falls with g, and at this one it is certainly large enough.
        """
        if self.shape == 1:
            return 1 / self.mean
        shape = float(self.shape)
        low, _ = bisect(lambda x: _float_mean(x, shape) < self.mean, _LEAST_LOGARITHM, 0.0, halvings=_HALVINGS)
        with BALLS.at(_BITS):
            for margin in (2.0**-k for k in range(50, 0, -2)):
                g = Fraction(math.exp(low)) * (1 - Fraction(margin))
                if enclosed_mean(g, self.shape) >= BALLS.number(self.mean):
                    return g
        raise InputError(f"mean={self.mean} with shape={self.shape} is too large; nothing of so many runs is private")

    def __eq__(self, other: object) -> bool:
        return isinstance(other, RepeatAndSelect) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def _key(self) -> Hashable:
        return self.mean, self.shape, self.number

    def __str__(self) -> str:
        shape = "" if self.shape == 1 else f", shape={self.shape.notation}"
        number = "" if self.number == NUMBERS[0] else f', number="{self.number}"'
        return f"RepeatAndSelect(mean={self.mean.notation}{shape}{number})"

    def __repr__(self) -> str:
        return str(self)


@declared
class Selected(Wrapper):
    """The best of a random number of runs of an expression."""

    inner: Expression
    scheme: RepeatAndSelect

    def ungrouped(self) -> str:
        return next((refused for mechanism in self.inner.terms if (refused := mechanism.ungrouped())), "")

    def unsampled(self) -> str:
        return "the runs see all the data and their number is secret; write the sample inside, expr @ sample @ RepeatAndSelect"

    def _slack(self) -> Fraction:
        # the curve of the best of several runs takes seconds, its slack is known without it
        return min(self.scheme.mean * self.inner.curve().slack(), Fraction(1))

    def own_curve(self, bound: str) -> Curve:
        from cumulant.curves.selection import Excess, by_divergences, by_poisson

        base, scheme = self.inner.curve(), self.scheme
        if scheme.number == "poisson":
            # an unbounded loss has no enclosure: 0 times infinity would be its radius
            bounded = not base.slack() and math.isfinite(float(base.pure()))
            pure = float(base.at_infinity(BOUNDED).upper()) if bounded else math.inf
            return by_poisson(base, scheme.mean, Excess.of(self._deltas, pure, scheme.mean))
        return by_divergences(base, scheme.mean, scheme.shape, scheme.least_share())

    def _deltas(self, epsilons: list[float]) -> list[float]:
        """Return upper bounds on delta of one run at each epsilon.

        Asked together they share what is computed.
        """
        asked = [Fraction(epsilon) for epsilon in epsilons]  # floats are what is meant, not the decimals they print as
        return [float(delta) for delta in self.inner.delta(epsilon=asked)]

    def _epsilon_shift(self, closed: Pair | None, deltas: Deltas, steps: list[float]) -> Fraction | None:
        """Return the amount that is added to epsilon; None if it is infinite.

        It is (1 + eta) e, e the least with delta(e) <= g (e^e - 1) / (1 - g); or mean * delta(0).

        The steps are asked together with what is needed first.
        """
        if self.scheme.number == "poisson":
            return self.scheme.mean * Fraction(deltas([0.0, *steps])[0])
        share = self.scheme.least_share()
        powers = [2.0**k for k in range(*_POWERS)]
        if closed is not None:  # floats are as good as exact, but for the last digits
            guide = smallest_covering(lambda epsilons: list(closed.profile(epsilons)), share, powers, _ROUNDS)
            parts, rounds = _NEARLY, 0
        else:
            guide, parts, rounds = self._guide(share, powers), _PARTS, 1
        if guide == math.inf:
            return None
        first = [guide * part for part in parts]
        deltas([*first, *steps])
        found = smallest_covering(deltas, share, first, rounds)
        return (1 + self.scheme.shape) * Fraction(found) if math.isfinite(found) else None

    def _guide(self, share: Fraction, powers: list[float]) -> float:
        """Estimate the e of `_epsilon_shift` from Rényi divergences.

        epsilon(delta) meets it for delta = g (e^e - 1)/(1 - g).
        """
        asked = [min(share / (1 - share) * Fraction(math.expm1(x)), Fraction(1, 2)) for x in powers]
        found = list(self.inner.epsilon(delta=asked, method="rdp"))
        enough = [epsilon <= x for epsilon, x in zip(found, powers, strict=True)]
        if not any(enough):
            return math.inf
        i = enough.index(True)
        if not i or not 0 < found[i] <= found[i - 1] < math.inf:
            return powers[i]
        above, below = math.log(found[i - 1] / powers[i - 1]), math.log(found[i] / powers[i])
        return powers[i - 1] * 2 ** (above / (above - below))

    @property
    def rests_on_floats(self) -> bool:  # type: ignore[override]
        return self.inner.rests_on_floats or (self.scheme.number == "poisson" and self._asks_floats())

    def _asks_floats(self) -> bool:
        """Return True if the deltas of one run are answers in floats: only a closed form is evaluated in balls."""
        return not has_closed_form(self.inner.record())

    def pair(self) -> Pair | None:
        return None if not self.frozen or self.estimated else _cached_pair(self)

    def _pair(self) -> Pair | None:
        from cumulant.pairs.polygon import PolygonPair, convex_corners
        from cumulant.pairs.selection import SelectedPair

        own = self.inner.pair() if isinstance(self.inner, Mechanism) and not self.inner.amplified else None
        closed = own if own is not None and own.has_closed_form else None
        mean, known = Fraction(self.scheme.mean), DeltaCache(self._deltas)
        steps = self._steps(closed, max(mean, Fraction(1)))
        moved = self._epsilon_shift(closed, known, steps)
        if moved is None or moved > 250:
            return None
        if closed is None:
            known(interpolate_epsilons(known.found, [delta / float(mean) for delta in _ASKED]))
        every = [(moved + Fraction(x), mean * Fraction(delta)) for x, delta in sorted(known.found.items())]
        points = [(epsilon, delta) for epsilon, delta in every if delta < 1 and epsilon <= _FARTHEST]
        if not points:
            return None
        polygon = PolygonPair(*convex_corners(*zip(*points, strict=True)), bounded=self._asks_floats())
        return SelectedPair(polygon, closed, moved, mean)

    def _steps(self, closed: Pair | None, mean: Fraction) -> list[float]:
        """Return the epsilons at which delta is computed.

        Up to where Rényi divergences say that it is small, and where it is smallest.
        """
        span = [float(x) for x in self.inner.epsilon(delta=[_SMALL / mean, _SMALLEST / mean], method="rdp")]
        near, far = (min(x if math.isfinite(x) else 20.0, float(_FARTHEST)) for x in span)
        count, last = (_POINTS, near) if closed is None else (_CLOSED_POINTS, far)
        return [*(last * (i / count) ** _BENT for i in range(count + 1)), far]


def _float_mean(log_share: float, shape: float) -> float:
    """Estimate the mean of K in floats, to find where to look."""
    less = -math.expm1(log_share)
    return math.exp(-log_share) * (less / -log_share if not shape else shape * less / -math.expm1(shape * log_share))


def enclosed_mean(g: Fraction, shape: Fraction) -> Any:
    """Enclose the mean of K: (1/g - 1)/log(1/g) at shape 0, else eta (1 - g) / (g (1 - g^eta))."""
    log_share, eta = BALLS.number(g).log(), BALLS.number(shape)
    less = -(eta * log_share).expm1() / eta if shape else -log_share
    return BALLS.number((1 - g) / g) / less


Deltas = Callable[[list[float]], list[float]]
"""Returns the delta of one run at each of these epsilons, from above."""


def smallest_covering(deltas: Deltas, share: Fraction, first: Sequence[float], rounds: int) -> float:
    """Find an e with delta(e) <= g (e^e - 1) / (1 - g); +inf if none of the first is enough.

    One side falls, the other grows.

    After the first epsilons in each round some are asked next to where the two sides meet, if they are exponentials.
    """
    odds = rounded_down(share / (1 - share))
    low, high, left, right = 0.0, math.inf, math.inf, 0.0
    asked = sorted(first)
    for _ in range(rounds + 1):
        for epsilon, delta in zip(asked, deltas(asked), strict=True):
            # one function, and its product with a float that is not above the odds
            allowed = math.expm1(epsilon) * odds * (1 - FAR - 2 * U)
            gap = math.log(delta / allowed) if delta > 0 < allowed else math.copysign(math.inf, delta - allowed)
            if delta <= allowed:
                high, right = epsilon, gap
                break
            low, left = epsilon, gap
        if math.isinf(high):
            break
        place = left / (left - right) if 0 < left < math.inf and -math.inf < right < 0 else 0.5
        asked = [low + (high - low) * min(max(place + away, 0.0), 1.0) for away in _NEXT]
    return high


@dataclass(frozen=True, slots=True)
class DeltaCache:
    """Upper bounds on delta of one run at epsilons, each computed once."""

    deltas: Deltas
    found: dict[float, float] = field(default_factory=dict)

    def __call__(self, epsilons: list[float]) -> list[float]:
        new = [x for x in dict.fromkeys(epsilons) if x not in self.found]
        self.found.update(zip(new, self.deltas(new) if new else [], strict=True))
        return [self.found[x] for x in epsilons]


def interpolate_epsilons(known: Mapping[float, float], wanted: Sequence[float]) -> list[float]:
    """Estimate where delta falls to each of the wanted values.

    By the cubic through four logarithms around it, and a little beyond.
    """
    places = [(math.log(delta), x) for x, delta in sorted(known.items()) if 0 < delta < 1]
    found = []
    for target in map(math.log, wanted):
        i = sum(log > target for log, _ in places)
        if not 0 < i < len(places):
            continue
        near = places[max(i - 2, 0) : i + 2]
        cubic = sum(
            x * math.prod((target - other) / (log - other) for other, _ in near if other != log) for log, x in near
        )
        low, high = places[i - 1][1], places[i][1]
        x = cubic + _BEYOND * (high - low)
        found.append(x if low < x < high else (low + high) / 2)
    return found


@lru_cache(maxsize=64)
def _cached_pair(selected: Selected) -> Pair | None:
    """Remember the pair: its points take many questions about one run."""
    return selected._pair()
