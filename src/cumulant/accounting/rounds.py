"""What ran as the exact layer takes it: losses and sampling, or the reason why that is not known."""

from __future__ import annotations

import math
from fractions import Fraction

from cumulant.accounting.parts import Part, Ran
from cumulant.lattice.losses import loss_of
from cumulant.lattice.rounds import Round, Rounds
from cumulant.lattice.sampling import WITHOUT_REPLACEMENT
from cumulant.pairs.gaussian import GaussianPair
from cumulant.pairs.pair import Pair

MOST_ROUNDS = 10**9
"""More are more than any grid resolves; Gaussians without a sample count as one."""

_FALLBACK = "so the answer comes from Renyi divergences"


def rounds(run: Ran) -> tuple[Rounds | None, str]:
    """All rounds of the run, or None and what stands in the way."""
    parts: list[tuple[Round, int]] = []
    gathered = Fraction(0)
    for part in run.sorted:
        sampling = WITHOUT_REPLACEMENT if part.scheme is None else part.scheme.sampling
        if sampling is None:
            return None, f"{type(part.scheme).__name__} says nothing about loss distributions, {_FALLBACK}"
        pair, below = _pairs(part)
        if part.scheme is None and isinstance(pair, GaussianPair):
            gathered += part.times * pair.shift**2  # k of them are one with sqrt(k) times the shift
            continue
        loss = part.loss() if pair is None else loss_of(pair)
        if pair is None and loss is None:
            return None, f"{part.name} is known by its curve only, {_FALLBACK}"
        rate = Fraction(part.scheme.rate if part.scheme is not None else 1)
        parts.append((Round(loss, pair, rate, sampling, part.lone, below), part.times))
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


def _pairs(part: Part) -> tuple[Pair | None, Pair | None]:
    """The dominating pair of what runs on one sample and one that it dominates: of one mechanism its own, of Gaussians
    together Gaussian ones."""
    if part.lone or part.inner is None:
        return part.pair, part.pair
    pairs = [(each.pair, each.times) for each in part.inner.parts if each.scheme is None]
    if len(pairs) < len(part.inner.parts) or not all(isinstance(pair, GaussianPair) for pair, _ in pairs):
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
