"""Draws from exponential families: Proposition 38 against true families, posteriors against all neighbours."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import integrate, special, stats

from cumulant.curves.posteriors import DirichletPosterior, SmoothFamily, gaussian_mean_posterior
from cumulant.errors import InputError
from cumulant.numerics.arithmetic import BALLS
from cumulant.paper.families import Bernoulli, Exponential, GaussianMean
from cumulant.paper.normal import normal_divergence
from tests.effort import drawn


def log_dirichlet(parameters: np.ndarray) -> float:
    """The log-partition function of the Dirichlet law."""
    return float(np.sum(special.gammaln(parameters)) - special.gammaln(np.sum(parameters)))


def dirichlet_divergence(first: np.ndarray, second: np.ndarray, order: float) -> float:
    if order == 1:
        means = special.digamma(first) - special.digamma(np.sum(first))
        return float((first - second) @ means + log_dirichlet(second) - log_dirichlet(first))
    mixed = order * first + (1 - order) * second
    if np.min(mixed) <= 0:
        return math.inf
    value = log_dirichlet(mixed) - order * log_dirichlet(first) - (1 - order) * log_dirichlet(second)
    return value / (order - 1)


def test_dirichlet_divergence_itself_by_quadrature() -> None:
    first, second, order = stats.beta(4.5, 3.0), stats.beta(4.0, 3.5), 2.5
    total = integrate.quad(lambda x: first.pdf(x) ** order * second.pdf(x) ** (1 - order), 0, 1, epsrel=1e-12)[0]
    found = dirichlet_divergence(np.array([4.5, 3.0]), np.array([4.0, 3.5]), order)
    assert found == pytest.approx(math.log(total) / (order - 1), rel=1e-9)


MODELS = [
    ((1, 1), 1, 1),
    ((1, 1), 6, 1),
    (("0.5", "0.5"), 5, "1/10"),
    ((5, "0.7"), 7, "0.5"),
    ((30, 2), 4, "0.3"),
    (("1.5", 2, 4), 4, "0.5"),
    ((1, 1, 1, 1), 3, 1),
    ((3, "0.2", "0.2"), 4, "0.1"),
    ((8, 1, 9), 1, "0.25"),
]


@pytest.mark.parametrize(("prior", "records", "tempering"), MODELS)
def test_every_neighbouring_pair_of_data_sets(prior: tuple[int | str, ...], records: int, tempering: int | str) -> None:
    """The bound is the maximum over all of them, at every order."""
    weights, t = tuple(Fraction(w) for w in prior), Fraction(tempering)
    orders = np.array([1.0, 1.05, 1.5, 2.0, 2.75, 5.0])
    largest = np.zeros_like(orders)
    categories = range(len(prior))
    for rest in itertools.combinations_with_replacement(categories, records - 1):
        counts = np.bincount(np.array(rest, dtype=int), minlength=len(prior))
        posteriors = [
            np.array([float(w) for w in weights]) + float(t) * (counts + np.eye(len(prior))[i]) for i in categories
        ]
        for first, second in itertools.permutations(posteriors, 2):
            largest = np.maximum(largest, [dirichlet_divergence(first, second, a) for a in orders])
    curve = DirichletPosterior(weights, records, t)
    assert curve.rdp(orders) == pytest.approx(largest, rel=1e-9, abs=1e-13)
    assert curve.rdp([np.inf]).tolist() == [math.inf]


@given(
    prior=st.lists(st.fractions(Fraction(1, 20), 40), min_size=2, max_size=4),
    records=st.integers(1, 5),
    tempering=st.fractions(Fraction(1, 20), 2),
    order=st.floats(1.01, 12),
)
@settings(deadline=None, max_examples=drawn(50))
def test_no_data_set_exceeds_the_bound(prior: list[Fraction], records: int, tempering: Fraction, order: float) -> None:
    bound = float(DirichletPosterior(tuple(prior), records, tempering).rdp([order])[0])
    weights = np.array([float(w) for w in prior])
    for rest in itertools.combinations_with_replacement(range(len(prior)), records - 1):
        counts = np.bincount(np.array(rest, dtype=int), minlength=len(prior))
        posteriors = [weights + float(tempering) * (counts + row) for row in np.eye(len(prior))]
        for first, second in itertools.permutations(posteriors, 2):
            if np.min(order * first + (1 - order) * second) > 1e-6:
                assert dirichlet_divergence(first, second, order) <= bound * (1 + 1e-9) + 1e-11


def test_large_posteriors_keep_their_digits() -> None:
    """Prior weights 1e7: D_a is about a t^2 (1/x + 1/y) / 2, where log Gamma would cancel to noise."""
    curve = DirichletPosterior((Fraction(10**7), Fraction(10**7)), 10, Fraction(1))
    assert curve.rdp([1, 2, 50]) == pytest.approx([1e-7, 2e-7, 50e-7], rel=1e-5)
    with BALLS.at(200):
        balls = curve.cgf([Fraction(1), Fraction(49)], BALLS)
        kl = curve.kl(BALLS)
    assert curve.cgf([1.0, 49.0]) == pytest.approx([float(b) for b in balls], rel=1e-12)
    assert float(curve.kl()) == pytest.approx(float(kl), rel=1e-12)


def test_posterior_in_balls() -> None:
    curve = DirichletPosterior((Fraction(2), Fraction(3)), 4, Fraction(1, 2))
    with BALLS.at(128):
        inside, edge, outside = curve.cgf([Fraction(7, 2), Fraction(4), Fraction(9)], BALLS)
        assert inside.rel_accuracy_bits() > 100
        assert float(inside) == pytest.approx(float(curve.cgf([3.5])[0]), rel=1e-12)
        assert float(edge) == float(outside) == math.inf


def test_gaussian_mean_posterior_over_a_grid_of_data_sets() -> None:
    variance, prior_precision, t, n = 2.0, 0.5, 0.8, 3
    curve = gaussian_mean_posterior(Fraction(3), Fraction(2), n, Fraction(1, 2), Fraction(4, 5))
    largest = 0.0
    for rest in itertools.product((-1.0, 0.3, 2.0), repeat=n - 1):
        for x, other in itertools.permutations((-1.0, 0.5, 2.0), 2):
            precision = prior_precision + t * n / variance
            means = [(prior_precision * 0.7 + t * (sum(rest) + y) / variance) / precision for y in (x, other)]
            largest = max(largest, normal_divergence(means[0], 1 / precision, means[1], 1 / precision, 3.0))
    assert float(curve.rdp([3.0])[0]) == pytest.approx(largest, rel=1e-12)


# --- Proposition 38


def test_printed_constant_fails_and_ours_holds() -> None:
    """E-6: (C) as printed, |A(x) - A(y) - ...| <= L |x-y|^2, has L = 1/8 at sigma 2; a L D^2/2 is half the truth."""
    truth = GaussianMean(2.0).divergence(1.0, 0.0, 2)
    assert truth == 0.25
    printed = 2 * (1 / 8) / 2
    assert printed == truth / 2
    ours = SmoothFamily(Fraction(1), None, lambda r: math.inf, lambda r: 1 / 4)
    assert ours.rdp([2]).tolist() == [truth]


def exponential_bounds(low: float) -> SmoothFamily:
    """Exponential laws of rate at least low: |A'| = 1/rate and A'' = 1/rate^2, largest at the rate low - r."""
    return SmoothFamily(Fraction(1, 5), Fraction(99, 100), lambda r: 1 / (low - r), lambda r: 1 / (low - r) ** 2)


def test_hessian_at_the_diameter_only_fails_and_ours_holds() -> None:
    """E-6: rates 1 and 1.2 at order 5. With L(D) in both places the claim is 0.156, the truth 0.220."""
    truth = Exponential().divergence(Exponential.natural(1.0), Exponential.natural(1.2), 5)
    only_near = 5 * (1 / 0.8**2) * 0.2**2 / 2
    assert only_near == pytest.approx(0.156, abs=5e-4)
    assert truth == pytest.approx(0.220, abs=5e-4)
    ours = float(exponential_bounds(1.0).rdp([5])[0])
    assert truth <= ours < math.inf


def test_smooth_family_bounds_the_true_divergence() -> None:
    curve = exponential_bounds(1.0)
    for order in (1.0, 1.3, 2.0, 4.0, 5.9):
        for first, second in ((1.0, 1.2), (1.2, 1.0), (1.05, 1.2)):
            truth = Exponential().divergence(Exponential.natural(first), Exponential.natural(second), order)
            assert truth <= float(curve.rdp([order])[0]) < math.inf
    logits = SmoothFamily(Fraction(1), None, lambda r: 0.5, lambda r: 0.25)  # |A' - 1/2| <= 1/2, A'' <= 1/4
    for order in (1.0, 1.5, 2.0, 5.0, 40.0, math.inf):
        truth = max(Bernoulli().divergence(x + 0.5, x - 0.5, order) for x in (-3.0, -0.4, 0.0, 0.4, 3.0))
        assert truth <= float(logits.rdp([order])[0]) <= 1.0


def test_domain_of_the_smooth_family() -> None:
    """(a-1) D <= kappa and D <= kappa, else nothing is known."""
    flat = lambda r: 1.0  # noqa: E731
    curve = SmoothFamily(Fraction(1, 10), Fraction(1, 2), flat, flat)
    assert np.isfinite(curve.rdp([1, 2, 6, 6.0001, np.inf])).tolist() == [True, True, True, False, False]
    with BALLS.at(64):
        values = curve.cgf([Fraction(5), Fraction(51, 10)], BALLS)
        assert [v.is_finite() for v in values] == [True, False]
    assert not np.isfinite(SmoothFamily(Fraction(1), Fraction(1, 2), flat, flat).rdp([1, 1.2, 2, np.inf])).any()
    assert SmoothFamily(Fraction(0), Fraction(1), flat, flat).rdp([1, 2, np.inf]).tolist() == [0, 0, 0]
    broken = SmoothFamily(Fraction(1), None, lambda r: math.nan, lambda r: math.nan)
    with pytest.raises(InputError, match="nan"):
        broken.rdp([1, 2, np.inf])


def test_smooth_family_formula_by_hand() -> None:
    curve = SmoothFamily(Fraction(1, 2), Fraction(4), lambda r: 1 + r, lambda r: 2 + r)
    for a in (1.5, 2.0, 6.0):
        smooth = ((a - 1) * (2 + (a - 1) / 2) + 2.5) / 8
        bounded = ((1 + (a - 1) / 2) + 1.5) / 2
        assert float(curve.rdp([a])[0]) == pytest.approx(min(smooth, bounded), rel=1e-12)
    with BALLS.at(64):
        ball = curve.cgf([Fraction(5)], BALLS)[0]
    assert float(ball) == pytest.approx(5 * min((5 * 4.5 + 2.5) / 8, (3.5 + 1.5) / 2), rel=1e-12)
    assert float(curve.kl()) == pytest.approx(min(2.5 / 8, (1 + 1.5) / 2), rel=1e-12)
