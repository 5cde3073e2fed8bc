"""The best of a random number of runs: hyper-parameter tuning."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any, ClassVar

from cumulant.bounds.bound import Bound
from cumulant.curves.curve import Curve
from cumulant.domains import NONNEGATIVE, POSITIVE, Domain, Exact, Number, one_of
from cumulant.errors import InputError
from cumulant.mechanisms.mechanism import Expression, Mechanism
from cumulant.pairs.pair import Pair
from cumulant.relation import Relation
from cumulant.sampling.scheme import Scheme, known

NUMBERS = ("negative-binomial", "poisson")
_POINTS = 16
_SMALLEST = Fraction(1, 10**14)


@known
@dataclass(frozen=True, slots=True, init=False, eq=False, repr=False)
class RepeatAndSelect(Scheme):
    """The expression runs K times, each on all the data, and only the best of the K outputs is published, its score included.

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

    def around(self, inner: Any) -> Expression:
        return inner if self.number == NUMBERS[0] and self.mean == 1 else Selected(inner, self)

    def least_share(self) -> float:
        """A number not above the success probability g: the mean falls with g."""
        mean, eta = float(self.mean), float(self.shape)
        if eta == 1:
            return (1 - 1e-15) / mean

        def expected(g: float) -> float:
            if not eta:
                return (1 / g - 1) / math.log(1 / g)
            return eta * (1 - g) / (g * -math.expm1(eta * math.log(g)))

        low, high = 1e-300, 1 - 1e-12
        for _ in range(200):
            middle = math.sqrt(low * high)
            low, high = (low, middle) if expected(middle) < mean else (middle, high)
        return low * (1 - 1e-9)

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


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Selected(Mechanism):
    """The best of a random number of runs of an expression."""

    inner: Expression
    scheme: RepeatAndSelect

    @property
    def relation(self) -> Relation:
        return self.inner.relation

    @property
    def estimated(self) -> bool:
        return self.inner.estimated

    @property
    def frozen(self) -> bool:
        return self.inner.frozen

    def key(self) -> Hashable:
        return self.inner, self.scheme

    def unsampled(self) -> str:
        return "the runs see all the data and their number is secret; write the sample inside, expr @ sample @ RepeatAndSelect"

    def own_curve(self, bound: str) -> Curve:
        from cumulant.curves.selected import by_divergences, by_poisson

        base, scheme = self.inner.curve(), self.scheme
        if scheme.number == "poisson":
            return by_poisson(base, scheme.mean, self._delta(Fraction(0)))
        return by_divergences(base, scheme.mean, scheme.shape, scheme.least_share())

    def _delta(self, epsilon: Fraction) -> float:
        """What one run needs, from above."""
        return float(self.inner.delta(epsilon=epsilon))

    def _moved(self, halvings: int) -> Fraction:
        """By how much epsilon is moved: (1 + eta) e, e the least with delta(e) <= g (e^e - 1) / (1 - g); or mean * delta(0)."""
        if self.scheme.number == "poisson":
            return self.scheme.mean * Fraction(self._delta(Fraction(0)))
        return (1 + self.scheme.shape) * Fraction(covering(self._float_delta, self.scheme.least_share(), halvings))

    def _float_delta(self, epsilon: float) -> float:
        return self._delta(Fraction(epsilon))

    def pair(self) -> Pair | None:
        return None if not self.frozen or self.estimated else _remembered(self)

    def _pair(self) -> Pair | None:
        from cumulant.pairs.polygon import PolygonPair, corners
        from cumulant.pairs.selected import SelectedPair

        own = self.inner.pair() if isinstance(self.inner, Mechanism) and not self.inner.amplified else None
        closed = own if own is not None and own.closed else None
        moved, mean = self._moved(40 if closed else 14), Fraction(self.scheme.mean)
        if moved > 250:
            return None
        span = self.inner.epsilon(delta=float(_SMALLEST / max(mean, Fraction(1))))
        far = min(span if math.isfinite(span) else 20.0, 280.0 - float(moved))
        count = 4 * _POINTS if closed else _POINTS
        steps = [Fraction(far) * Fraction(i, count) for i in range(count + 1)]
        deltas = [min(mean * Fraction(self._delta(step)), Fraction(1)) for step in steps]
        points = [(moved + step, delta) for step, delta in zip(steps, deltas, strict=True) if delta < 1]
        if not points:
            return None
        return SelectedPair(PolygonPair(*corners(*zip(*points, strict=True))), closed, moved, mean)

    def arguments(self) -> Mapping[str, str]:
        return {}

    def __str__(self) -> str:
        inner = f"{self.inner}" if isinstance(self.inner, Mechanism) else f"({self.inner})"
        return f"{inner} @ {self.scheme}"


def covering(delta: Callable[[float], float], share: float, halvings: int) -> float:
    """An e with delta(e) <= g (e^e - 1) / (1 - g), the least but for so many halvings of an interval."""

    def enough(epsilon: float) -> bool:
        return delta(epsilon) <= share * math.expm1(epsilon) / (1 - share) * (1 - 1e-12)

    high = 1e-3
    while not enough(high) and high < 1e4:
        high *= 2
    low = high / 2 if high > 1e-3 else 0.0
    for _ in range(halvings):
        middle = (low + high) / 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high


@lru_cache(maxsize=64)
def _remembered(selected: Selected) -> Pair | None:
    """Its points take many questions about one run."""
    return selected._pair()
