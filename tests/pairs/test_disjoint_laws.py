"""What is released without noise: on a sample delta is the probability that the record is there."""

from __future__ import annotations

import pytest

import cumulant as cm


@pytest.mark.parametrize("mechanism", [cm.Gaussian(sigma=0), cm.Laplace(scale=0)], ids=str)
@pytest.mark.parametrize("scheme", [cm.Poisson(rate="0.1"), cm.WithoutReplacement(rate="0.1")], ids=str)
def test_the_record_is_seen_or_not(mechanism: cm.Mechanism, scheme: cm.Poisson) -> None:
    """k rounds leave it unseen with probability 0.9^k; then nothing is lost at an epsilon above that of all coins."""
    run = mechanism @ scheme
    for found in (run.delta(1), run.delta(0), run.delta(50), run.advantage()):
        assert 0.1 <= found <= 0.1 * (1 + 1e-15)
    assert run.epsilon("0.1001") == 0
    assert run.epsilon("0.0999") == run.epsilon(0) == float("inf")
    assert (run * 2).delta(1) == pytest.approx(0.19, rel=1e-9)
    assert (run * 2).epsilon("0.18") == float("inf")
    assert run.rdp(2) == float("inf")


@pytest.mark.parametrize("mechanism", [cm.Gaussian(sigma=0), cm.Laplace(scale=0)], ids=str)
def test_without_a_sample_nothing_is_private(mechanism: cm.Mechanism) -> None:
    for run in (mechanism, mechanism * 3, mechanism + cm.Gaussian(sigma=1), mechanism @ cm.Group(size=2)):
        assert run.delta(7) == 1
        assert run.epsilon("0.5") == float("inf")
    assert mechanism.gaussian_mu() == float("inf")
