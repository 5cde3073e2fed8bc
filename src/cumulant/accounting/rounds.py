"""An expression as the exact layer takes it: losses and sampling, or the reason why that is not known."""

from __future__ import annotations

import math
from fractions import Fraction

from cumulant.accounting.answers import Answers
from cumulant.lattice.losses import loss_of
from cumulant.lattice.rounds import Round, Rounds
from cumulant.lattice.sampling import WITHOUT_REPLACEMENT
from cumulant.mechanisms.mechanism import Expression, Mechanism
from cumulant.mechanisms.sampled import Sampled
from cumulant.pairs.gaussian import GaussianPair
from cumulant.pairs.pair import Pair

MOST_ROUNDS = 10**9
"""More are more than any grid resolves; Gaussians without a sample count as one."""

_FALLBACK = "so the answer comes from Renyi divergences"


def rounds(run: Answers) -> tuple[Rounds | None, str]:
    """All rounds of the run, or None and what stands in the way."""
    parts: list[tuple[Round, int]] = []
    gathered = Fraction(0)
    for mechanism, times in sorted(run.terms.items(), key=lambda item: item[0].rank()):
        inner, scheme = (mechanism.inner, mechanism.scheme) if isinstance(mechanism, Sampled) else (mechanism, None)
        sampling = WITHOUT_REPLACEMENT if scheme is None else scheme.sampling
        if sampling is None:
            return None, f"{type(scheme).__name__} says nothing about loss distributions, {_FALLBACK}"
        pair, below = _pairs(inner)
        if scheme is None and isinstance(pair, GaussianPair):
            gathered += times * pair.shift**2  # k of them are one with sqrt(k) times the shift
            continue
        loss = loss_of(pair) if pair is not None else inner.privacy_loss() if isinstance(inner, Mechanism) else None
        if pair is None and loss is None:
            return None, f"{mechanism} is known by its curve only, {_FALLBACK}"
        rate = Fraction(scheme.rate if scheme is not None else 1)
        parts.append((Round(loss, pair, rate, sampling, isinstance(inner, Mechanism), below), times))
    if gathered:
        pair, below = _gaussians(gathered)
        parts.insert(0, (Round(loss_of(pair), pair, Fraction(1), WITHOUT_REPLACEMENT, below=below), 1))
    found = Rounds(tuple(parts))
    if found.single() is not None:
        return found, ""
    if sum(times for _, times in parts) > MOST_ROUNDS:
        return None, f"more than {MOST_ROUNDS:,} rounds are more than a grid resolves, {_FALLBACK}"
    if any(one.loss is None for one, _ in parts):
        return None, f"noise this far from the sensitivity spans too many scales for a grid, {_FALLBACK}"
    return found, ""


def _pairs(inner: Expression) -> tuple[Pair | None, Pair | None]:
    """The dominating pair of what runs on one sample and one that it dominates: of one mechanism its own, of Gaussians
    together Gaussian ones."""
    if isinstance(inner, Mechanism):
        pair = inner.pair()
        return pair, pair
    pairs = [(mechanism.pair(), times) for mechanism, times in inner.terms.items()]
    if not all(isinstance(pair, GaussianPair) for pair, _ in pairs):
        return None, None
    return _gaussians(
        sum((times * pair.shift**2 for pair, times in pairs if isinstance(pair, GaussianPair)), Fraction(0))
    )


def _gaussians(square: Fraction) -> tuple[GaussianPair, GaussianPair]:
    """The pair with a rational shift just above the root of this square, by about 30 digits, and one just below.

    A perfect square has one pair.
    """
    top, bottom = math.isqrt(square.numerator), math.isqrt(square.denominator)
    if top * top == square.numerator and bottom * bottom == square.denominator:
        return GaussianPair(Fraction(top, bottom)), GaussianPair(Fraction(top, bottom))
    digits = max(0, 30 - (len(str(square.numerator)) - len(str(square.denominator))) // 2)
    scale = 10**digits
    root = math.isqrt(square.numerator * scale * scale // square.denominator)
    return GaussianPair(Fraction(root + 1, scale)), GaussianPair(Fraction(root, scale))
