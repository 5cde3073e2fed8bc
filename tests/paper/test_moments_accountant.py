"""The accountant with a fixed list of orders: closed forms, and what it misses."""

from __future__ import annotations

import math

import pytest

import cumulant as cm
from cumulant.paper.moments_accountant import MomentsAccountant


def test_integers_only() -> None:
    """Gaussian, sigma 5, delta 1e-8: eq. (3) is least at lambda = 5 sqrt(2 log 1e8) = 30.35."""
    log = math.log(1e8)

    def objective(lam: float) -> float:
        return (lam * (lam + 1) / 50 + log) / lam

    for highest in (1, 10, 30, 64):
        old = MomentsAccountant(highest)
        old.compose(cm.Gaussian(sigma=5))
        best = min(range(1, highest + 1), key=objective)
        assert old.epsilon(1e-8) == pytest.approx(objective(best), rel=1e-12)
        assert old.epsilon(1e-8) > 1 / 50 + math.sqrt(2 * log) / 5  # the closed form of the best real order
    small = MomentsAccountant(10)
    small.compose(cm.Gaussian(sigma=5))
    assert small.epsilon(1e-8) == pytest.approx(0.22 + log / 10, rel=1e-12)  # 2.06 where 1.234 is proved


def test_many_mechanisms_and_space() -> None:
    old, new = MomentsAccountant(64), cm.Accountant()
    for sigma in (3, 4, 5):
        old.compose(cm.Gaussian(sigma=sigma), times=sigma)
        new.compose(cm.Gaussian(sigma=sigma), times=sigma)
    rho = 3 / 18 + 4 / 32 + 5 / 50
    expected = min(((lam * (lam + 1)) * rho - math.log(1e-5)) / lam for lam in range(1, 65))
    assert old.epsilon("1e-5") == pytest.approx(expected, rel=1e-12)
    assert new.epsilon(1e-5, method="rdp", conversion="classic") <= old.epsilon(1e-5)
    assert old.stored == 64
    assert len(new.terms) == 3


def test_refusals() -> None:
    with pytest.raises(cm.InputError):
        MomentsAccountant(0)
    with pytest.raises(cm.InputError):
        MomentsAccountant(8).compose(cm.Gaussian(sigma=1), times=0)
