"""Analysts who look: the best that choosing mechanisms from earlier answers can reach against a rule, by dynamic programming.

    python -m tests.ledger.adversary --menus 2000 --seed 1

Mechanisms are pairs of laws on two outcomes, so everything is an exact sum in float64. The analyst knows which rule decides,
sees every outcome, chooses the next mechanism among those that the rule still allows, and stops when it likes. Its delta is
the largest mean of (1 - e^{epsilon - L})_+ over all of its strategies. A rule that is beaten by 1e-9 of delta is not valid.
"""

import argparse
import math
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache

import numpy as np

from cumulant.filters.amounts import Amounts
from cumulant.filters.filter import UNIT, Filter, GaussianSum
from cumulant.filters.mixture import Mixture

ORDERS = np.geomspace(0.02, 5000, 1500)
LOG_KAPPA = -ORDERS * np.log1p(1 / ORDERS) - np.log1p(ORDERS)


@dataclass(frozen=True)
class Coin:
    """Heads with probability p under P and p e^-loss under Q."""

    p: float
    loss: float

    @property
    def outcomes(self) -> tuple[tuple[float, float], tuple[float, float]]:
        """The probability under P and the privacy loss of heads and tails."""
        tails = math.log1p(-self.p) - math.log1p(-self.p * math.exp(-self.loss))
        return (self.p, self.loss), (1 - self.p, tails)

    @property
    def pure(self) -> float:
        return max(abs(loss) for _, loss in self.outcomes)

    def cgf(self, orders: np.ndarray) -> np.ndarray:
        """K, the larger one of both directions."""
        forward = [math.log(p) + loss * orders for p, loss in self.outcomes]
        backward = [math.log(p) - loss - loss * orders for p, loss in self.outcomes]
        return np.maximum(np.logaddexp(*forward), np.logaddexp(*backward))


Multiset = tuple[int, ...]
Rule = Callable[[Multiset], bool]


def phi(epsilon: float, loss: float) -> float:
    return -math.expm1(epsilon - loss) if loss > epsilon else 0.0


def exact_delta(menu: Sequence[Coin], counts: Multiset, epsilon: float) -> float:
    """delta of a fixed multiset, the larger one of both directions."""
    law = {0.0: 1.0}
    for coin, count in zip(menu, counts, strict=True):
        for _ in range(count):
            following: dict[float, float] = {}
            for loss, mass in law.items():
                for p, more in coin.outcomes:
                    following[loss + more] = following.get(loss + more, 0.0) + mass * p
            law = following
    forward = math.fsum(mass * phi(epsilon, loss) for loss, mass in law.items())
    return max(forward, math.fsum(mass * math.exp(-loss) * phi(epsilon, -loss) for loss, mass in law.items()))


def best(menu: Sequence[Coin], allowed: Rule, epsilon: float, steps: int) -> float:
    """The delta of the best analyst in at most so many steps."""
    allowed = cache(allowed)

    @cache
    def value(counts: Multiset, loss: float) -> float:
        found = phi(epsilon, loss)
        if sum(counts) == steps:
            return found
        for i, coin in enumerate(menu):
            following = (*counts[:i], counts[i] + 1, *counts[i + 1 :])
            if allowed(following):
                found = max(found, math.fsum(p * value(following, loss + more) for p, more in coin.outcomes))
        return found

    return value((0,) * len(menu), 0.0)


# ---- rules


def by_history(menu: Sequence[Coin], epsilon: float, delta: float) -> Rule:
    """Exact epsilon of the history within the budget: not valid."""
    return lambda counts: exact_delta(menu, counts, epsilon) <= delta


def by_best_order(menu: Sequence[Coin], epsilon: float, delta: float) -> Rule:
    """The best order of the Renyi curve of the history within the budget: not valid."""
    curves = [coin.cgf(ORDERS) for coin in menu]

    def allowed(counts: Multiset) -> bool:
        total = np.sum([count * curve for count, curve in zip(counts, curves, strict=True)], axis=0)
        return bool(np.min(LOG_KAPPA + total - ORDERS * epsilon) <= math.log(delta))

    return allowed


def by_filter(menu: Sequence[Coin], rule: Filter) -> Rule:
    """Theorems 1 and 2, with charges rounded up as the ledger does."""
    charges = [charge(coin, rule) for coin in menu]

    def allowed(counts: Multiset) -> bool:
        total = sum((each * count for each, count in zip(charges, counts, strict=True)), start=rule.zero())
        return rule.certificate(total) is not None

    return allowed


def charge(coin: Coin, rule: Filter) -> Amounts:
    if isinstance(rule, GaussianSum):
        from scipy import stats

        mu = 2 * stats.norm.ppf(math.exp(coin.pure) / (1 + math.exp(coin.pure)))
        return Amounts.of([Fraction(mu**2), 0])
    assert isinstance(rule, Mixture)
    cgf = coin.cgf(np.array(rule.orders, dtype=float))
    return Amounts.of([*(math.ceil(x * UNIT) for x in cgf), math.ceil(coin.pure * UNIT), 0])


def by_plan(plan: Multiset) -> Rule:
    """Theorem 3: members of a plan, each at most as often as planned."""
    return lambda counts: all(count <= most for count, most in zip(counts, plan, strict=True))


def scaled(first: Sequence[Coin], loss: float, allowed: Callable[[Sequence[Coin], Multiset], bool]) -> Coin | None:
    """The likeliest coin with this loss that a rule still allows after these."""
    low, high = -80.0, math.log(0.999)
    menu = [*first, Coin(math.exp(low), loss)]
    if not allowed(menu, (1,) * len(menu)):
        return None
    for _ in range(50):
        middle = (low + high) / 2
        fits = allowed([*first, Coin(math.exp(middle), loss)], (1,) * len(menu))
        low, high = (middle, high) if fits else (low, middle)
    return Coin(math.exp(low), loss)


@cache
def for_budget(epsilon: float, delta: float) -> Mixture:
    return Mixture.for_budget(Fraction(repr(epsilon)), Fraction(repr(delta)))


RULES: dict[str, Callable[[Sequence[Coin], float, float], Rule]] = {
    "history": by_history,
    "best order": by_best_order,
    "mixture": lambda menu, epsilon, delta: by_filter(menu, for_budget(epsilon, delta)),
}


def attack(
    rule: str, epsilon: float, delta: float, first: Sequence[Coin], losses: Sequence[float], steps: int = 2
) -> float:
    """The best analyst who starts with some coins and goes on with one of several, each as likely as the rule allows."""
    make = RULES[rule]
    following = [scaled(first, loss, lambda menu, counts: make(menu, epsilon, delta)(counts)) for loss in losses]
    menu = [*first, *(coin for coin in following if coin is not None)]
    return best(menu, make(menu, epsilon, delta), epsilon, steps) / delta


def draw(rng: np.random.Generator) -> tuple[float, float, list[Coin], list[float], int]:
    epsilon, delta = float(rng.choice([0.5, 1.0, 3.0, 8.0])), float(rng.choice([1e-3, 1e-6, 1e-9]))
    first = [
        Coin(float(10 ** rng.uniform(-9, -0.05)), float(epsilon * 10 ** rng.uniform(-1.5, 0.2)))
        for _ in range(int(rng.integers(1, 3)))
    ]
    losses = [float(epsilon * 10 ** rng.uniform(-1.5, 0.5)) for _ in range(int(rng.integers(1, 4)))]
    return epsilon, delta, first, losses, int(rng.integers(2, 5))


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--menus", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    rng, worst = np.random.default_rng(given.seed), {"mixture": 0.0, "history": 0.0, "best order": 0.0}
    for _ in range(given.menus):
        setting = draw(rng)
        for rule in worst:
            worst[rule] = max(worst[rule], attack(rule, *setting))
    sys.stdout.write("".join(f"{rule}: {ratio:.6f} delta\n" for rule, ratio in worst.items()))
    return int(worst["mixture"] > 1 + 1e-9)


if __name__ == "__main__":
    sys.exit(main())
