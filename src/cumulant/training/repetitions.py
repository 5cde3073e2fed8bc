"""The secret number of runs of which the best is released.

For hyper-parameter tuning by `RepeatAndSelect`.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache
from typing import Any

from cumulant.errors import CertificateError, InputError, shown
from cumulant.mechanisms.repeat_and_select import NUMBERS, RepeatAndSelect, enclosed_mean
from cumulant.numerics.arithmetic import BALLS
from cumulant.training.noise import secret_bytes

FIRST_BITS = 64
MOST_BITS = 4096
"""More bits than any honest source needs for one decision."""


def draw_repetitions(scheme: RepeatAndSelect, source: Callable[[int], bytes] = secret_bytes) -> int:
    """Draw K, the number of runs, exactly by the law of the scheme.

    Only the best of these runs is released.

    K is the smallest k at which the distribution function exceeds a uniform U, of which as many secret bits are taken as the
    comparison needs. Keep K secret, run the whole training K times, and release the best run alone. A cap on K, or stopping
    when a run is good enough, breaks the theorem. A Poisson number may be 0: then nothing is released.

    >>> import cumulant as cm
    >>> scheme = cm.RepeatAndSelect(mean=10)
    >>> draw_repetitions(scheme) >= 1
    True
    """
    if getattr(scheme, "number", None) not in NUMBERS:
        raise InputError(f"scheme={shown(scheme)} must be a RepeatAndSelect(mean=…): it says how K is drawn")
    bits, drawn = FIRST_BITS, int.from_bytes(source(FIRST_BITS // 8), "little")
    share = None if scheme.number == "poisson" else _largest_share(scheme)
    while bits <= MOST_BITS:
        found = _smallest_above(scheme, share, drawn, bits)
        if found is not None:
            return found
        drawn, bits = (drawn << FIRST_BITS) | int.from_bytes(source(FIRST_BITS // 8), "little"), bits + FIRST_BITS
    raise CertificateError(f"{MOST_BITS} random bits did not decide one number; the source of randomness is broken")


def _smallest_above(scheme: RepeatAndSelect, share: Fraction | None, drawn: int, bits: int) -> int | None:
    """Return the smallest k with U < P[K <= k]; None if these bits do not decide it.

    It holds for all U in [drawn, drawn + 1] / 2^bits.
    """
    with BALLS.at(bits + 64):
        low, high = (BALLS.number(Fraction(end, 2**bits)) for end in (drawn, drawn + 1))
        eta, mean = BALLS.number(scheme.shape), BALLS.number(scheme.mean)
        k, mass, total = _first(scheme, share)
        while not total > high:
            if not total <= low:
                return None
            # P[k + 1] / P[k] is m / (k + 1) for Poisson numbers, else (1 - g) (k + eta) / (k + 1)
            factor = mean if share is None else BALLS.number(1 - share) * (k + eta)
            mass, k = mass * factor / (k + 1), k + 1
            if mass < BALLS.number(Fraction(1, 2 ** (bits + 32))) and k > 4 * scheme.mean + 64:
                return None  # U is so near to 1 that these bits do not tell where it ends
            total = total + mass
        return k


def _first(scheme: RepeatAndSelect, share: Fraction | None) -> tuple[int, Any, Any]:
    """Return the smallest value of K, its probability, and the distribution function there."""
    if share is None:
        mass = (-BALLS.number(scheme.mean)).exp()
        return 0, mass, mass
    log_share, eta = BALLS.number(share).log(), BALLS.number(scheme.shape)
    # eta (1 - g) / (g^-eta - 1), and its limit (1 - g) / log(1/g) at shape 0
    mass = BALLS.number(1 - share) / ((-eta * log_share).expm1() / eta if scheme.shape else -log_share)
    return 1, mass, mass


@lru_cache(maxsize=16)
def _largest_share(scheme: RepeatAndSelect) -> Fraction:
    """Return a success probability at which the mean is not above that of the scheme.

    It is hardly below.

    With a larger g and a smaller mean both hypotheses of the theorem hold all the more.
    """
    if scheme.shape == 1:
        return Fraction(1 / scheme.mean)
    with BALLS.at(256):
        for margin in (2.0**-k for k in range(46, 0, -2)):
            g = min(Fraction(1), scheme.least_share() * (1 + Fraction(margin)))
            if g < 1 and enclosed_mean(g, scheme.shape) <= BALLS.number(scheme.mean):
                return g
    raise InputError(f"{scheme} has nearly always K = 1, so there is nothing to draw; run once")
