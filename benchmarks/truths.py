"""What is true of a run, from the definition: delta of explicit neighbouring data sets, without a formula of the library.

delta(eps) is the largest P(S) - e^eps Q(S) over events S. Where the loss grows with the output, the best S is a half-line,
whose ends are evaluated in balls; finitely many outputs are enumerated; a few rounds of anything else are convolved on a
grid of losses that are rounded down, or up. Every truth is an interval; its lower end is what a claim must not be below.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
from flint import arb, ctx, fmpq
from scipy import special

import cumulant as cm
from cumulant.mechanisms.from_masses import ByMasses

Interval = tuple[float, float]
Truth = Callable[[Fraction], Interval]
"""The interval of delta at an exact epsilon."""

_BITS = 512
_MOST_OUTPUTS = 600
_MOST_ROUNDS = 6
_POINTS = 3000
_REACH = 12.0  # standard deviations; what lies beyond counts as nothing from below, as certain from above
_FLOATS = 1e-9  # relative error of a convolution of positive floats, generously


@contextmanager
def precise(bits: int = _BITS) -> Iterator[None]:
    """Balls of so many bits."""
    before, ctx.prec = ctx.prec, bits
    try:
        yield
    finally:
        ctx.prec = before


def ball(value: Fraction) -> Any:
    """A ball around a rational."""
    return arb(fmpq(value.numerator, value.denominator))


def interval(value: Any) -> Interval:
    """Floats around a ball that is a probability."""
    low, high = (float(end) for end in (value.lower(), value.upper()))
    return max(math.nextafter(low, -1.0), 0.0), min(math.nextafter(high, 2.0), 1.0)


def truth(run: cm.Expression) -> Truth | None:
    """The truth about the worst known neighbours of a run that is one mechanism, repeated, or Gaussian noise of several
    sizes; None where it is not known.

    A class of mechanisms is no better than its members: zCDP holds Gaussian noise, epsilon-DP randomized response.
    """
    if len(run.terms) != 1:
        return _normals(run)
    ((mechanism, times),) = run.terms.items()
    inner: cm.Expression = mechanism
    rate = Fraction(1)
    if isinstance(mechanism, cm.Sampled):
        inner, rate = mechanism.inner, mechanism.scheme.by_lemma3()
    (base, *others) = inner.terms
    if others or inner.terms[base] != 1:
        return None
    match base:
        case cm.Gaussian():
            return _normal((Fraction(base.sensitivity) / Fraction(base.sigma)) ** 2, rate, times)
        case cm.ZeroConcentrated():
            return _normal(2 * Fraction(base.rho), rate, times) if base.rho else None
        case cm.Laplace():
            return _laplace(Fraction(base.sensitivity) / Fraction(base.scale), rate, times)
    found = _outputs(base)
    if found is None or math.comb(times + found[0] - 1, found[0] - 1) > _MOST_OUTPUTS:
        return None
    return lambda epsilon: _finite(found[1], rate, times, epsilon)


def _normals(run: cm.Expression) -> Truth | None:
    """Gaussian noise of several sizes without a sample: the squared shifts add up."""
    squared = Fraction(0)
    for each, times in run.terms.items():
        if type(each) is not cm.Gaussian:
            return None
        squared += times * (Fraction(each.sensitivity) / Fraction(each.sigma)) ** 2
    return _normal(squared, Fraction(1), 1)


def _largest(found: Iterable[Interval]) -> Interval:
    ends = list(found)
    return max(low for low, _ in ends), max(high for _, high in ends)


# ---- finitely many outputs

Outputs = Callable[[], list[tuple[Any, Any]]]
"""(P-mass, Q-mass) of each output, as balls of the precision that is set."""


def _outputs(base: cm.Mechanism) -> tuple[int, Outputs] | None:
    """How many outputs there are, and their masses."""
    match base:
        case cm.RandomizedResponse():
            p = Fraction(base.p)
            return 2, lambda: [(ball(p), ball(1 - p)), (ball(1 - p), ball(p))]
        case cm.PureDP():
            return 2, partial(_promise, Fraction(base.loss), Fraction(0))
        case cm.ApproximateDP():
            return 4, partial(_promise, Fraction(base.loss), Fraction(base.failure))
        case ByMasses():
            first, second = ([Fraction(mass) / sum(masses) for mass in masses] for masses in (base.p, base.q))
            return len(first), lambda: [(ball(x), ball(y)) for x, y in zip(first, second, strict=True)]
    return None


def _promise(epsilon: Fraction, leak: Fraction) -> list[tuple[Any, Any]]:
    """Randomized response that tells all with probability `leak`: the worst (epsilon, leak)-DP mechanism."""
    own = (1 - ball(leak)) / (1 + (-ball(epsilon)).exp())
    other = (
        1 - ball(leak) - own
        if epsilon < 1
        else (1 - ball(leak)) * (-ball(epsilon)).exp() / (1 + (-ball(epsilon)).exp())
    )
    answers = [(own, other), (other, own)]
    return [*answers, (ball(leak), arb(0)), (arb(0), ball(leak))] if leak else answers


def _finite(outputs: Outputs, rate: Fraction, times: int, epsilon: Fraction) -> Interval:
    """(1-g)Q + gP against Q, both directions and with P and Q swapped, every multiset of outputs enumerated."""
    with precise(_BITS + 4 * min(math.ceil(epsilon), 10**4)):
        alpha, g, pairs = ball(epsilon).exp(), ball(rate), outputs()
        totals = [arb(0)] * 4
        powers = [
            [[_powers(p, times), _powers((1 - g) * p + g * q, times)] for p, q in way]
            for way in (pairs, [(q, p) for p, q in pairs])
        ]
        for counts in _multisets(times, len(pairs)):
            weight = arb(_multinomial(counts))
            for i, way in enumerate(powers):
                plain, mixed = weight, weight
                for count, (one, other) in zip(counts, way, strict=True):
                    plain, mixed = plain * one[count], mixed * other[count]
                totals[2 * i] += _positive(mixed - alpha * plain)
                totals[2 * i + 1] += _positive(plain - alpha * mixed)
        return _largest(map(interval, totals))


def _powers(value: Any, times: int) -> list[Any]:
    found = [arb(1)]
    for _ in range(times):
        found.append(found[-1] * value)
    return found


def _positive(value: Any) -> Any:
    return (value + abs(value)) / 2


def _multisets(times: int, kinds: int) -> Iterator[tuple[int, ...]]:
    if kinds == 1:
        yield (times,)
        return
    for first in range(times + 1):
        for rest in _multisets(times - first, kinds - 1):
            yield (first, *rest)


def _multinomial(counts: Sequence[int]) -> int:
    found, left = 1, sum(counts)
    for count in counts:
        found, left = found * math.comb(left, count), left - count
    return found


# ---- noise: the loss grows with the output, N(0) is Q and N(t) is P


def _normal(squared: Fraction, rate: Fraction, times: int) -> Truth | None:
    """Gaussian noise of this squared shift; k unsampled ones are one with k times it."""
    if rate == 1 or times == 1:
        return lambda epsilon: _half_lines(_normal_tail, lambda: ball(squared * times).sqrt(), rate, epsilon)
    return _convolved(True, math.sqrt(squared), rate, times)


def _laplace(shift: Fraction, rate: Fraction, times: int) -> Truth | None:
    if times == 1:
        return lambda epsilon: _half_lines(_laplace_tail, lambda: ball(shift), rate, epsilon)
    return _convolved(False, float(shift), rate, times)


def _normal_tail(x: Any) -> Any:
    """P(Z > x)."""
    return (x / arb(2).sqrt()).erfc() / 2


def _laplace_tail(x: Any) -> Any:
    return (-x).exp() / 2 if x > 0 else 1 - x.exp() / 2


def _half_lines(tail: Callable[[Any], Any], shift: Callable[[], Any], rate: Fraction, epsilon: Fraction) -> Interval:
    """One round, the larger of both directions."""
    with precise(_BITS + 4 * min(math.ceil(epsilon), 10**4)):
        t, g, alpha = shift(), ball(rate), ball(epsilon).exp()
        # above x the mixture is more than alpha times N(0): log(p/q) there is at least log(1 + (alpha - 1)/g)
        x = _place(tail, t, (1 + (alpha - 1) / g).log())
        remove = arb(0) if x is None else (1 - g) * tail(x) + g * tail(x - t) - alpha * tail(x)
        # below y it is less than N(0)/alpha: log(p/q) is at most log(1 - (1 - 1/alpha)/g), if that exists
        least = 1 - (1 - 1 / alpha) / g
        y = _place(tail, t, least.log()) if least > 0 else None
        add = arb(0) if y is None else tail(-y) - alpha * ((1 - g) * tail(-y) + g * tail(t - y))
        return _largest(interval(_positive(each)) for each in (remove, add))


def _place(tail: Callable[[Any], Any], t: Any, loss: Any) -> Any:
    """Where log(p/q) is this loss; None where it never is. Of Laplace noise the loss is clipped to [-t, t]."""
    if tail is _normal_tail:
        return loss / t + t / 2
    if loss > t or loss < -t:
        return None
    return (loss + t) / 2


def _convolved(normal: bool, shift: float, rate: Fraction, times: int) -> Truth | None:
    """A few rounds in each direction, losses rounded down and up."""
    if times > _MOST_ROUNDS or not (1e-3 <= shift <= 20 and rate >= 1e-6):
        return None
    laws = [_law(normal, shift, float(rate), float(1 - rate), sign) for sign in (1, -1)]

    def at(epsilon: Fraction) -> Interval:
        return _largest(
            _composed(masses, first, step, beyond, times, float(epsilon)) for masses, first, step, beyond in laws
        )

    return at


def _law(normal: bool, shift: float, g: float, kept: float, sign: int) -> tuple[np.ndarray, int, float, float]:
    """P-masses of the cells of the loss, the index of the first, their step, and a bound of the mass that is not in them.

    sign 1 is (1-g)N(0) + gN(t) against N(0), -1 the other way round.
    """
    reach = _REACH if normal else 0.0
    low, high = (shift * x - shift * shift / 2 for x in (-reach, reach + shift)) if normal else (-shift, shift)
    ends = sorted(sign * math.log(kept + g * math.exp(x)) for x in (low, high))
    step = (ends[1] - ends[0]) / _POINTS
    first = math.floor(ends[0] / step) - 1
    edges = step * (first + np.arange(_POINTS + 4))
    # P(loss >= edge) or P(loss <= edge) of the base output: x at the edge
    with np.errstate(divide="ignore", invalid="ignore"):
        base = np.log(np.maximum((np.exp(sign * edges) - kept) / g, 0.0))
    if normal:
        x = base / shift + shift / 2
        masses = np.abs(_differences(x)), np.abs(_differences(x - shift))
    else:
        masses = _laplace_masses(base, shift, sign)
    law = kept * masses[0] + g * masses[1] if sign == 1 else masses[0]
    beyond = 4 * special.ndtr(-reach) if normal else 0.0
    return law, first, step, beyond


def _differences(x: np.ndarray) -> np.ndarray:
    """Normal masses between neighbours, from the side on which nothing cancels."""
    a, b = np.minimum(x[:-1], x[1:]), np.maximum(x[:-1], x[1:])
    flip = a + b > 0
    low, high = np.where(flip, -b, a), np.where(flip, -a, b)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(special.ndtr(high) - special.ndtr(low))


def _laplace_masses(base: np.ndarray, t: float, sign: int) -> tuple[np.ndarray, np.ndarray]:
    """Masses of cells [edge, edge') under N(0) and N(t); the atoms lie at base losses -t and t."""

    def below(x: np.ndarray, centre: float) -> np.ndarray:  # P(base loss < x), atoms at the ends
        place = (np.clip(x, -t, t) + t) / 2 - centre
        inside = np.where(place < 0, np.exp(place) / 2, 1 - np.exp(-place) / 2)
        return np.where(x <= -t, 0.0, np.where(x > t, 1.0, inside))

    def at_most(x: np.ndarray, centre: float) -> np.ndarray:
        place = (np.clip(x, -t, t) + t) / 2 - centre
        inside = np.where(place < 0, np.exp(place) / 2, 1 - np.exp(-place) / 2)
        return np.where(x < -t, 0.0, np.where(x >= t, 1.0, inside))

    cumulated = below if sign == 1 else at_most  # of the mirrored loss a cell is (edge, edge'] in x
    return tuple(np.abs(np.diff(cumulated(base, centre))) for centre in (0.0, t))  # type: ignore[return-value]


def _composed(law: np.ndarray, first: int, step: float, beyond: float, times: int, epsilon: float) -> Interval:
    mass = np.ones(1)
    for _ in range(times):
        mass = np.convolve(mass, law)
    down = step * (times * first + np.arange(mass.size))
    ends = []
    apart = _FLOATS * (1 + np.abs(down))  # where the losses are is rounded too
    for loss in (down - apart, down + times * step + apart):
        ends.append(math.fsum(mass * -np.expm1(np.minimum(epsilon - loss, 0.0))))
    return ends[0] * (1 - _FLOATS), min(ends[1] * (1 + _FLOATS) + times * beyond + 1e-15, 1.0)
