"""The Gaussian pair: certified references, ball arithmetic, quadrature in balls."""

from __future__ import annotations

import json
import math
from fractions import Fraction
from pathlib import Path
from typing import Any

import flint
import numpy as np
import pytest
from scipy.special import log_ndtr

import cumulant as cm
from cumulant.curves.closed_form import Concentrated
from cumulant.errors import InputError
from cumulant.numerics.arithmetic import BALLS
from cumulant.pairs.gaussian import GaussianPair

ORACLES = Path(__file__).parents[1] / "oracles"
MOMENTS = json.loads((ORACLES / "moments_and_queries.json").read_text())["moments"]
FIGURE1 = json.loads((ORACLES / "figure1.json").read_text())["panels"]
SHIFTS = [Fraction(x) for x in ("1/1000000", "1/1000", "1/20", "1/5", "1", "3", "6", "10", "18", "1000")]


def scaled_error(value: Any, reference: Any) -> float:
    value, reference = np.asarray(value, dtype=np.float64), np.asarray([float(x) for x in reference])
    assert np.isfinite(value).all()
    assert np.isfinite(reference).all()
    return float(np.max(np.abs(value - reference) / np.maximum(1, np.abs(reference))))


def test_moments_against_the_certified_table() -> None:
    rows = [row for row in MOMENTS if row["mechanism"] == "gaussian"]
    assert len(rows) == 30
    for row in rows:
        pair = GaussianPair(1 / Fraction(row["value"]))
        assert scaled_error(pair.moments([row["l"]]), [row["log_abs"]]) <= 1e-12
        assert scaled_error(pair.positive_moments([row["l"]]), [row["log_pos"]]) <= 1e-12


@pytest.mark.parametrize("sigma", ["5", "1", "0.5"])
def test_even_moments_against_figure_1(sigma: str) -> None:
    table = FIGURE1[f"gaussian_sigma{sigma}"]["B_even"]
    orders = [int(order) for order in table]
    with BALLS.at(256):
        logs = []
        for text in table.values():
            mantissa, _, exponent = text.partition("e")
            logs.append(BALLS.number(Fraction(mantissa) * Fraction(10) ** int(exponent or 0)).log())
    assert scaled_error(GaussianPair(1 / Fraction(sigma)).moments(orders), logs) <= 1e-11


@pytest.mark.parametrize("shift", SHIFTS)
def test_floats_agree_with_the_alternating_sums(shift: Fraction) -> None:
    pair, orders = GaussianPair(shift), [1, 2, 3, 7, 10, 11, 40, 99]
    assert scaled_error(pair.moments(orders), pair.moments(orders, BALLS)) < 1e-13
    assert scaled_error(pair.positive_moments(orders), pair.positive_moments(orders, BALLS)) < 1e-13


@pytest.mark.parametrize(("shift", "order"), [("1/5", 3), ("1", 5), ("2", 1)])
def test_odd_moments_by_integration_in_balls(shift: str, order: int) -> None:
    t = Fraction(shift)
    with BALLS.at(128):
        mean = BALLS.number(t)
        density = (2 * flint.arb.pi()).sqrt()

        def integrand(x: Any, analytic: Any) -> Any:
            return (mean * x - mean * mean / 2).expm1() ** order * (-x * x / 2).exp() / density

        middle, far = mean / 2, BALLS.number(40)
        above = flint.acb.integral(integrand, middle, far + 10).real
        below = flint.acb.integral(integrand, -far, middle).real
        expected = [(above - below).log(), above.log()]
    pair = GaussianPair(t)
    assert scaled_error([pair.moments([order])[0], pair.positive_moments([order])[0]], expected) < 1e-13


def test_first_moment_is_twice_the_total_variation() -> None:
    for shift in (1e-6, 0.2, 1.0, 4.0):
        expected = math.log(2 * math.erf(shift / math.sqrt(8)))
        assert GaussianPair(Fraction(shift)).moments([1])[0] == pytest.approx(expected, rel=1e-13, abs=1e-13)


@pytest.mark.parametrize("shift", SHIFTS)
def test_extreme_orders_are_finite_and_ordered(shift: Fraction) -> None:
    orders = [1, 2, 1000, 10**5, 10**6]
    pair = GaussianPair(shift)
    both, above = pair.moments(orders), pair.positive_moments(orders)
    assert np.isfinite(both).all()
    assert (above <= both).all()
    # E (p/q - 1)_+^l <= M_l, and Jensen from the first moment
    log_m = np.array([float(order * (order - 1) * shift**2 / 2) for order in orders])
    assert (above <= log_m + 1e-9 * (1 + log_m)).all()
    assert (both >= np.array(orders) * both[0] - 1e-9 * (1 + np.abs(both))).all()


@pytest.mark.parametrize("shift", ["1e-300", "1e-20", "37", "1e8", "1e200"])
def test_absurd_shifts_give_bounds_and_no_nan(shift: str) -> None:
    pair = GaussianPair(Fraction(shift))
    for values in (pair.moments([1, 2, 10**9]), pair.positive_moments([1, 2, 10**9])):
        assert not np.isnan(values).any()
        assert (values > -np.inf).all()
    # 2 TV = 4 Phi(t/2) - 2, about t sqrt(2 / pi) for small t and 2 for large t
    t = float(shift)
    assert pair.moments(1) == pytest.approx(
        math.log(2) if t > 20 else math.log(t) + math.log(2 / math.pi) / 2, rel=1e-12
    )
    logs = pair.log_profile([0, 1e-9, 1, 1e300])
    assert not np.isnan(logs).any()
    assert (logs <= 0).all()


def test_thousand_orders_at_once_equal_one_at_a_time() -> None:
    pair = GaussianPair(Fraction(1, 5))
    together = pair.moments(np.arange(1, 1001))
    assert together.shape == (1000,)
    alone = np.concatenate([pair.moments([order]) for order in (1, 42, 1000)])
    # numpy takes the logarithm of several numbers at once where the processor can, so the last bits may differ
    np.testing.assert_allclose(together[[0, 41, 999]], alone, rtol=1e-14)


@pytest.mark.parametrize("shift", SHIFTS)
def test_profile_against_balls(shift: Fraction) -> None:
    pair = GaussianPair(shift)
    epsilons = [Fraction(0), Fraction(1, 10**9), Fraction(1, 100), Fraction(1), Fraction(20)]
    with BALLS.at(256):
        balls = pair.profile(epsilons, BALLS)
        known = [i for i, ball in enumerate(balls) if ball.lower() > 0]
        logs = [balls[i].log() for i in known]
    assert len(known) >= 3
    assert scaled_error(pair.log_profile([float(epsilons[i]) for i in known]), logs) < 1e-13


def test_profile_is_the_formula_of_balle_and_wang() -> None:
    t, eps = 1.5, np.array([0.0, 0.3, 2.0])
    expected = np.exp(log_ndtr(t / 2 - eps / t)) - np.exp(eps + log_ndtr(-t / 2 - eps / t))
    assert GaussianPair(Fraction(3, 2)).profile(eps) == pytest.approx(expected, rel=1e-13)
    # E-23: for sigma = 0.5 the classical calibration at delta = 1e-8 gives eps = 12.213, whose true delta is 4.4e-8
    assert GaussianPair(Fraction(2)).profile([12.213])[0] == pytest.approx(4.4e-8, rel=0.01)
    assert GaussianPair(Fraction(2)).profile([12.749])[0] == pytest.approx(1e-8, rel=0.01)


def test_profile_keeps_its_digits_far_out_and_stays_in_range() -> None:
    pair = GaussianPair(Fraction(1))
    eps = np.array([0.0, 30.0, 37.0, 700.0, 1e12, np.inf])
    logs = pair.log_profile(eps)
    assert (np.diff(logs) < 0).all()
    assert logs[-1] == -np.inf
    # Mills: delta = phi(x) (R(x) - R(x + t)), about phi(x) t / x^2 at x = eps - 1/2
    assert logs[3] == pytest.approx(-(699.5**2) / 2 - math.log(2 * math.pi) / 2 - 2 * math.log(699.5), rel=1e-7)
    assert (pair.profile(eps) <= 1).all()


def test_numbers_in_numbers_out_and_refusals() -> None:
    pair = GaussianPair(Fraction(1))
    assert isinstance(pair.log_profile(0.5), float)
    assert isinstance(pair.profile(0.5), float)
    assert pair.profile([[0.5, 1.0], [2.0, 3.0]]).shape == (2, 2)
    assert pair.moments(2) == pytest.approx(math.log(math.e - 1), rel=1e-13)
    assert float(pair.moments(2, BALLS)) == pytest.approx(math.log(math.e - 1), rel=1e-15)
    assert float(pair.profile(Fraction(1), BALLS)) == pytest.approx(pair.profile(1.0), rel=1e-13)
    for orders in (0, [1, 0.5], np.inf):
        with pytest.raises(InputError, match="order="):
            pair.moments(orders)
    # mpmath, 30 digits: INT phi(x) |e^{x - 1/2} - 1|^{5/2} dx; balls know whole orders
    assert pair.moments(2.5) == pytest.approx(2.5 * math.log(1.788194714339678677), rel=1e-13)
    with pytest.raises(InputError, match=r"order=2\.5"):
        pair.moments(2.5, BALLS)
    for epsilon in (-0.1, math.nan):
        with pytest.raises(InputError, match="epsilon="):
            pair.profile(epsilon)


def test_curve_and_equality() -> None:
    assert GaussianPair(Fraction(1, 5)).curve() == Concentrated(Fraction(1, 50))
    assert GaussianPair(Fraction(1)) == GaussianPair(Fraction(2, 2))
    assert GaussianPair(Fraction(1), "ball") != GaussianPair(Fraction(1))
    assert not GaussianPair(Fraction(1)).one_bit
    assert not GaussianPair(Fraction(1)).estimated


def test_a_shift_beyond_any_privacy_keeps_its_digits() -> None:
    """Both ends are neighbours, and epsilon is not above what Rényi divergences prove."""
    run = cm.GaussianDP(mu="0.3172") * 10**14
    found = run.guarantee(delta="0.2")
    assert found.lower is not None
    assert found.lower <= found.epsilon <= found.lower * (1 + 1e-15)
    assert found.epsilon <= run.epsilon("0.2", method="rdp")
