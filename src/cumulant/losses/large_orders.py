"""K of a sampled pair at orders whose integrals are out of reach: closed forms.

Letters: g = rate, a = lambda + 1, x = log(p/q), w = 1 - g + g e^x, K0 the curve of the pair itself. The moment lies between

    M <= 1 + g (e^K0 - 1),  M <= (max w)^lambda                      joint convexity; Lemma 3
    M >= 1,  M >= E (g e^x)^a,  M >= E e^{a g x},  M >= mass (max w)^a      w >= g e^x;  log w >= g x;  one atom

and the profile's moment is at least that of Proposition 11's pair, which its pair dominates.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from cumulant.curves.closed_form import lemma3
from cumulant.curves.curve import Curve
from cumulant.numerics.arithmetic import Arithmetic, Array, Scalar
from cumulant.numerics.enclosure import Enclosure
from cumulant.numerics.rounding import MANY, U, lowered

if TYPE_CHECKING:
    from cumulant.losses.law import Law

LogGap = Callable[[Array], Array]
"""The logarithm of what is added to the moment at each lambda."""


def closed_form(
    law: Law, base: Curve, rate: Fraction, lam: Array, on: Arithmetic, log_gap: LogGap | None = None
) -> Array:
    """Return log(M + gap): an enclosure of both bounds; the upper bound in floats and balls.

    The enclosure is NaN where the upper bound overflows.
    """
    low, high = _ends(law, base, rate, lam, on)
    if log_gap is not None:
        gap = log_gap(lam)
        low, high = on.log_add_exp(low, gap), on.log_add_exp(high, gap)
    if not on.enclosing:
        return np.asarray(high)
    start, end = np.maximum(low.lower(), 0.0), high.upper()
    end = np.where(end < np.inf, end, np.nan)
    return Enclosure((start + end) / 2, (end - start) / 2 + 4 * U * end)


def closed_kl(base: Curve, rate: Fraction, on: Arithmetic) -> Scalar:
    """Return the KL divergence likewise; it is at most g times that of the pair."""
    high = on.number(rate) * base.at_one(on)
    return Enclosure(high.upper() / 2, high.upper() / 2) if on.enclosing else high


def _ends(law: Law, base: Curve, rate: Fraction, lam: Array, on: Arithmetic) -> tuple[Array, Array]:
    """Return bounds of K from below and above at each lambda; far out they are one closed form."""
    g, order = on.number(rate), on.asarray(lam) + 1
    whole = base.cgf(lam, on)
    high, low = lemma3(whole, g, on), on.maximum(whole + order * on.log(g), on.asarray(lam) * 0)
    inner = (lam.astype(np.float64) + 1) * lowered(float(rate), MANY) - 1
    some = inner > 0
    if some.any():
        points = np.array([Fraction(x) for x in inner[some]], dtype=object) if on.exact else inner[some]
        low[some] = on.maximum(low[some], base.cgf(points, on))
    if base.pure() < np.inf:
        largest = lemma3(base.at_infinity(on), g, on)
        high = on.minimum(high, on.asarray(lam) * largest)
        low = on.maximum(low, law.log_top_mass(on) + order * largest)
    sharp = law.far_cgf(rate, lam, on)
    if sharp is not None:
        where, value = sharp
        low[where] = high[where] = value[where]
    return low, high
