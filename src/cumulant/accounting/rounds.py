"""An expression as the exact layer takes it: losses and sampling, or the reason why that is not known."""

from __future__ import annotations

import math
from collections.abc import Mapping
from fractions import Fraction

from cumulant.accounting.answers import Answers
from cumulant.lattice.losses import loss_of
from cumulant.lattice.rounds import Round, Rounds
from cumulant.lattice.sampling import WITHOUT_REPLACEMENT
from cumulant.mechanisms.mechanism import Expression, Mechanism
from cumulant.mechanisms.sampling import Sampled
from cumulant.pairs.gaussian import GaussianPair
from cumulant.pairs.pair import Pair

MOST_ROUNDS = 10**9
"""More are more than any grid resolves; Gaussians without a sample count as one."""

_FALLBACK = "so the answer comes from Renyi divergences"


def rounds(run: Answers) -> tuple[Rounds | None, str]:
    """All rounds of the run, or None and what stands in the way."""
    parts: list[tuple[Round, int]] = []
    for mechanism, times in _gathered(run.terms).items():
        inner, scheme = (mechanism.inner, mechanism.scheme) if isinstance(mechanism, Sampled) else (mechanism, None)
        sampling = WITHOUT_REPLACEMENT if scheme is None else scheme.sampling
        if sampling is None:
            return None, f"{type(scheme).__name__} says nothing about loss distributions, {_FALLBACK}"
        pair = _pair(inner)
        loss = loss_of(pair) if pair is not None else inner.privacy_loss() if isinstance(inner, Mechanism) else None
        if pair is None and loss is None:
            return None, f"{mechanism} is known by its curve only, {_FALLBACK}"
        rate = Fraction(scheme.rate if scheme is not None else 1)
        parts.append((Round(loss, pair, rate, sampling, isinstance(inner, Mechanism)), times))
    found = Rounds(tuple(parts))
    if found.single() is not None:
        return found, ""
    if sum(times for _, times in parts) > MOST_ROUNDS:
        return None, f"more than {MOST_ROUNDS:,} rounds are more than a grid resolves, {_FALLBACK}"
    if any(one.loss is None for one, _ in parts):
        return None, f"noise this far from the sensitivity spans too many scales for a grid, {_FALLBACK}"
    return found, ""


def _gathered(terms: Mapping[Mechanism, int]) -> dict[Mechanism, int]:
    """The terms in their one order, Gaussians without a sample put together: k of them are one with sqrt(k) times the shift."""
    ordered = dict(sorted(terms.items(), key=lambda item: item[0].rank()))
    bare = [mechanism for mechanism in ordered if isinstance(mechanism.pair(), GaussianPair)]
    if not bare or (len(bare) == 1 and ordered[bare[0]] == 1):
        return ordered
    from cumulant.mechanisms.gaussian import Gaussian

    total = sum((_squared(mechanism) * ordered[mechanism] for mechanism in bare), start=Fraction(0))
    rest = {mechanism: times for mechanism, times in ordered.items() if mechanism not in bare}
    return {Gaussian(sigma=1, sensitivity=_root(total)): 1, **rest}


def _pair(inner: Expression) -> Pair | None:
    """The dominating pair of what runs on one sample: of one mechanism its own, of Gaussians together a Gaussian one."""
    if isinstance(inner, Mechanism):
        return inner.pair()
    if all(isinstance(mechanism.pair(), GaussianPair) for mechanism in inner.terms):
        return GaussianPair(_root(sum((_squared(m) * times for m, times in inner.terms.items()), start=Fraction(0))))
    return None


def _squared(mechanism: Mechanism) -> Fraction:
    pair = mechanism.pair()
    return pair.shift**2 if isinstance(pair, GaussianPair) else Fraction(0)


def _root(square: Fraction) -> Fraction:
    """A rational just above the square root, by about 30 digits; a perfect square gives its root."""
    top, bottom = math.isqrt(square.numerator), math.isqrt(square.denominator)
    if top * top == square.numerator and bottom * bottom == square.denominator:
        return Fraction(top, bottom)
    digits = max(0, 30 - (len(str(square.numerator)) - len(str(square.denominator))) // 2)
    scale = 10**digits
    return Fraction(math.isqrt(square.numerator * scale * scale // square.denominator) + 1, scale)
