"""An expression as the exact layer takes it: losses and sampling, or the reason why that is not known."""

from __future__ import annotations

import math
from collections.abc import Mapping
from fractions import Fraction

from cumulant.curves.gaussian import GaussianPair
from cumulant.curves.pair import Pair
from cumulant.exact.losses import loss_of
from cumulant.exact.rounds import Round, Rounds
from cumulant.mechanisms.answers import Answers
from cumulant.mechanisms.base import Expression, Mechanism
from cumulant.mechanisms.sampling import Poisson, Sampled

MOST_ROUNDS = 10**7
"""Beyond it the error terms of a lattice outweigh what it gains."""


def rounds(run: Answers) -> tuple[Rounds | None, str]:
    """All rounds of the run, or None and what stands in the way."""
    parts: list[tuple[Round, int]] = []
    terms = _gathered(run.terms)
    if sum(terms.values()) > MOST_ROUNDS:
        return (
            None,
            f"more than {MOST_ROUNDS:,} rounds leave little to gain over Renyi divergences, which give the answer",
        )
    for mechanism, times in terms.items():
        inner = mechanism.inner if isinstance(mechanism, Sampled) else mechanism
        pair = _pair(inner)
        loss = inner.privacy_loss() if pair is None and isinstance(inner, Mechanism) else pair and loss_of(pair)
        if not loss:
            return None, f"{mechanism} is known by its curve only, so the answer comes from Renyi divergences"
        scheme = mechanism.scheme if isinstance(mechanism, Sampled) else None
        rate = scheme.rate if scheme else Fraction(1)
        parts.append((Round(loss, pair, Fraction(rate), isinstance(scheme, Poisson) and rate < 1), times))
    return Rounds(tuple(parts)), ""


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
