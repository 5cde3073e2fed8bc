"""Gaussian pairs around discrete Gaussian noise, against sums over the integers."""

import math
from fractions import Fraction

import numpy as np

import cumulant as cm
from cumulant.pairs.near_gaussian import near_gaussian_pair


def log_sum(sigma: float, shift: int, epsilon: float) -> float:
    """Return log of SUM (p - e^eps q)_+ over the integers; the terms are positive, so that nothing cancels."""
    x = np.arange(-3, math.ceil(60 * sigma + epsilon * sigma**2 / shift) + shift)
    log_p, log_q = (-((x - c) ** 2) / (2 * sigma**2) for c in (shift, 0))
    above = log_p - log_q > epsilon
    if not above.any():
        return -math.inf
    terms = log_p[above] + np.log(-np.expm1(epsilon - (log_p - log_q)[above]))
    theta = np.exp(-(np.arange(-60 * sigma, 60 * sigma + 1) ** 2) / (2 * sigma**2)).sum()
    return float(np.logaddexp.reduce(terms) - np.log(theta))


def test_two_gaussians_enclose_the_sums() -> None:
    """Theorem D on one integer against the sums, from delta near 1 down to 1e-200."""
    narrowest = math.inf
    for sigma, shift in ((3, 1), (3, 4), (4, 7), (6, 1), (11, 2), (25, 3), (25, 200)):
        pair = near_gaussian_pair(shift**2, Fraction(sigma**2), 1)
        assert pair is not None
        assert not pair.attained
        assert pair.dominated is not pair
        mu = shift / sigma
        for step in range(-12, 220):
            epsilon = max(0.0, mu * mu / 2 + mu * step / 8)
            true = log_sum(sigma, shift, epsilon)
            above, below = pair.log_profile(epsilon), pair.dominated.log_profile(epsilon)
            assert below - 1e-9 <= true <= above + 1e-9, (sigma, shift, epsilon)
            narrowest = min(narrowest, above - true, true - below)
    assert narrowest < 1e-3  # the two are not far apart


def test_a_group_has_no_lower_pair() -> None:
    """Nothing is known of a group from below, nor of a sum with one."""
    pair = near_gaussian_pair(4, Fraction(100), 3)
    assert pair is not None
    group = pair.grouped(3)
    assert not group.attained
    assert group.dominated is group
    joined = cm.Gaussian(sigma=10).pair()
    assert joined is not None
    whole = joined.composed([(joined, 5), (group, 2)])
    assert whole is not None
    assert not whole.attained
    assert not whole.dominated.attained
