"""Finite pairs in exact rationals, what sampling makes of them, and their compositions output by output."""

import math
from collections.abc import Iterable
from fractions import Fraction

import numpy as np

from cumulant.losses.atoms import AtomLoss
from cumulant.pairs.finite import symmetrised

Pairs = list[tuple[Fraction, Fraction]]
"""Outputs as (P-mass, Q-mass)."""

RATES = (Fraction(1), Fraction(1, 2), Fraction(9, 10), Fraction(1, 20), Fraction(1, 1000), Fraction(1, 10**9))
DIRECTIONS = ("symmetric", "remove", "add")


def random_pair(rng: np.random.Generator, most: int = 3) -> Pairs:
    """A symmetric pair: with each output (p, q) also (q, p); sometimes one that only one law has, sometimes p = q."""
    scale = int(rng.choice([10, 1000, 10**6]))
    weights: Pairs = []
    for _ in range(int(rng.integers(0 if most > 1 else 1, most))):
        a, b = (Fraction(int(v)) for v in rng.integers(1, scale, 2))
        if rng.random() < 0.3:
            b = a * (1 + Fraction(int(rng.integers(1, 100)), 10**5))  # ratios close to 1
        weights += [(a, b), (b, a)]
    if rng.random() < 0.3:
        a = Fraction(int(rng.integers(1, scale)), int(rng.choice([1, 10**4])))
        weights += [(a, Fraction(0)), (Fraction(0), a)]
    if not weights or rng.random() < 0.5:
        a = Fraction(int(rng.integers(1, scale)))
        weights += [(a, a)]
    total = sum(p for p, _ in weights)
    return [(p / total, q / total) for p, q in weights]


def law_of(pair: Pairs) -> AtomLoss:
    loss = symmetrised([p for p, _ in pair], [q for _, q in pair]).on_grid()
    assert isinstance(loss, AtomLoss)
    return loss


def sampled(pair: Pairs, rate: Fraction, direction: str) -> Pairs:
    """The three pairs that sampling makes of a symmetric one, from their definitions."""
    kept = 1 - rate
    if direction == "remove":
        return [(kept * q + rate * p, q) for p, q in pair]
    if direction == "add":
        return [(q, kept * q + rate * p) for p, q in pair]
    distance = sum((p - q for p, q in pair if p > q), start=Fraction(0))
    equal = kept * distance + sum((p for p, q in pair if p == q), start=Fraction(0))
    larger = [(kept * q + rate * p, q) for p, q in pair if p > q]
    return [*larger, *((q, p) for p, q in larger), (equal, equal)]


class Composed:
    """All outputs of a heterogeneous composition, in extended precision."""

    def __init__(self, terms: Iterable[tuple[Pairs, int]]) -> None:
        p = q = np.ones(1, dtype=np.longdouble)
        for pair, times in terms:
            one = [(x, y) for x, y in pair if x > 0]
            a, b = (np.array([extended(v) for v in masses], dtype=np.longdouble) for masses in zip(*one, strict=True))
            for _ in range(times):
                p, q = np.outer(p, a).ravel(), np.outer(q, b).ravel()
        self.p, self.q = p, q

    def delta(self, epsilon: float) -> np.longdouble:
        return np.longdouble(np.sum(np.maximum(self.p - np.exp(np.longdouble(epsilon)) * self.q, np.longdouble(0))))

    def largest(self) -> float:
        """The largest finite loss."""
        there = self.q > 0
        return float(np.max(np.log(self.p[there] / self.q[there]), initial=0.0))


def extended(value: Fraction) -> np.longdouble:
    """A rational in extended precision."""
    if not value:
        return np.longdouble(0)
    shift = 70 - (value.numerator.bit_length() - value.denominator.bit_length())
    whole = round(value * Fraction(2) ** shift)
    high, low = divmod(whole, 2**35)
    return np.longdouble(np.ldexp(np.longdouble(high) * np.longdouble(2**35) + np.longdouble(low), -shift))


def hockey_stick(log_p: np.ndarray, loss: np.ndarray, log_alpha: np.ndarray) -> np.ndarray:
    """E_P (1 - alpha e^-loss)_+ of a law given by log masses, for many alpha."""
    share = -np.expm1(np.minimum(log_alpha[:, None] - loss, 0.0))
    return np.asarray(np.array([math.fsum(row) for row in np.exp(log_p) * share]))
