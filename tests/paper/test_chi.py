"""|chi|^a divergences of random finite laws: definitions, four lemmas, Proposition 16 and eq. (9) by brute force."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction
from functools import partial

import numpy as np
import pytest
from scipy import special

from cumulant.errors import InputError
from cumulant.paper.chi import (
    Binary,
    Ternary,
    binary_divergence,
    binary_root,
    close_difference_moment,
    difference_moment,
    holder_moment,
    ternary_divergence,
    ternary_from_binary,
    ternary_root,
)
from cumulant.paper.chi_curve import chi_curve

RNG = np.random.default_rng(17)
ORDERS = (1.0, 1.5, 2.0, 3.0, 4.0, 8.0)


def laws(count: int, size: int = 4, weight: float = 0.5) -> np.ndarray:
    drawn = RNG.dirichlet(np.full(size, weight), size=count) + 1e-4
    return np.asarray(drawn / drawn.sum(axis=1, keepdims=True))


def renyi(p: np.ndarray, q: np.ndarray, order: float) -> float:
    if order == math.inf:
        return float(np.max(np.log(p / q)))
    if order == 1:
        return float(np.sum(special.rel_entr(p, q)))
    return float(math.log(np.sum(p**order * q ** (1 - order))) / (order - 1))


def moment(p: np.ndarray, q: np.ndarray, r: np.ndarray, order: float) -> float:
    return float(np.sum(r * np.abs((p - q) / r) ** order))


def test_definitions() -> None:
    for _ in range(50):
        p, q, r = laws(3)
        for order in ORDERS:
            assert ternary_divergence(p, q, r, order) == pytest.approx(moment(p, q, r, order), rel=1e-9)
            assert binary_root(p, q, order) == pytest.approx(moment(p, q, q, order) ** (1 / order), rel=1e-9)
        assert binary_divergence(p, q, 1) == pytest.approx(np.abs(p - q).sum(), rel=1e-12)  # twice total variation
        assert binary_divergence(p, q, 2) == pytest.approx(np.sum(p * p / q) - 1, rel=1e-9)  # chi-square
        assert ternary_root(p, q, r, np.inf) == np.max(np.abs(p - q) / r)
        assert ternary_root(p, q, r, 1e5) == pytest.approx(np.max(np.abs(p - q) / r), rel=1e-3)


def test_no_common_support() -> None:
    p, q, r = [0.5, 0.5, 0.0], [0.5, 0.0, 0.5], [1.0, 0.0, 0.0]
    assert ternary_root(p, q, r, [1, 1.5, np.inf]).tolist() == [1.0, math.inf, math.inf]
    assert binary_root(p, p, [1, 2, np.inf]).tolist() == [0.0, 0.0, 0.0]


def test_bad_laws_are_refused() -> None:
    with pytest.raises(InputError, match="sum to 1"):
        binary_root([0.5, 0.6], [0.5, 0.5], 2)
    with pytest.raises(InputError, match="different lengths"):
        binary_root([0.5, 0.5], [1.0], 2)
    with pytest.raises(InputError, match="ternary_root"):
        binary_divergence([0.5, 0.5], [0.5, 0.5], np.inf)


def test_lemma_17_and_its_constant() -> None:
    for _ in range(2000):
        p, q, r = laws(3, weight=0.2)
        for j in (1.0, 2.0, 5.0):
            log_binary = max(math.log(moment(x, y, y, j)) for x, y in itertools.permutations((p, q, r), 2))
            assert math.log(moment(p, q, r, j)) <= ternary_from_binary(log_binary)
    # E-10: the constant is above 2
    p = np.array([0.01284, 0.16689, 0.69399, 0.12628])
    q = np.array([0.00112, 0.20803, 0.16564, 0.62522])
    r = np.array([0.00096, 0.67742, 0.19543, 0.12619])
    log_binary = max(math.log(moment(x, y, y, 4)) for x, y in itertools.permutations((p, q, r), 2))
    assert math.log(moment(p, q, r, 4)) > math.log(2) + log_binary


def test_lemmas_18_and_19() -> None:
    for _ in range(500):
        weights = RNG.dirichlet(np.ones(5))
        x, y = RNG.exponential(size=(2, 5))
        epsilon = float(np.max(np.abs(np.log(x / y))))
        for j in (1.0, 2.0, 3.5):
            truth = math.log(weights @ np.abs(x - y) ** j)
            assert truth <= difference_moment(math.log(weights @ x**j), math.log(weights @ y**j))
            assert truth <= close_difference_moment(math.log(weights @ y**j), j, epsilon) + 1e-12
    assert close_difference_moment(0.0, 2, 0.0) == -math.inf
    assert difference_moment(-math.inf, 1.0) == 1.0


def test_lemma_18_is_attained_and_jensen_loses_a_power_of_two() -> None:
    """The remark after the lemma: X = (1, 0), Y = (0, 1) on two equal outcomes, j = 4."""
    x, y = np.array([1.0, 0.0]), np.array([0.0, 1.0])
    log_x, log_y = (math.log(np.mean(each**4)) for each in (x, y))
    assert math.exp(difference_moment(log_x, log_y)) == pytest.approx(np.mean(np.abs(x - y) ** 4), rel=1e-14) == 1.0
    assert 2**3 * np.mean(x**4 + y**4) == 8.0
    # signed variables do need the power: X = -Y
    assert np.mean(np.abs(x - (-x)) ** 4) == 2**4 * np.mean(x**4) > np.mean(x**4) + np.mean(x**4)


def test_lemma_20_joint_convexity_and_its_eigenvalues() -> None:
    """f = x^j / y^{j-1}: midpoints lie below, and the Hessian has eigenvalues 0 and (j^2-j) x^j/y^{j+1} (1 + y^2/x^2)."""
    for j in (1.0, 1.5, 2.0, 3.0, 7.0):
        for _ in range(200):
            (x, y), (s, t) = RNG.exponential(size=(2, 2)) + 1e-3
            middle = ((x + s) / 2) ** j / ((y + t) / 2) ** (j - 1)
            assert middle <= (x**j / y ** (j - 1) + s**j / t ** (j - 1)) / 2 * (1 + 1e-12)
            second = (
                j
                * (j - 1)
                * np.array(
                    [
                        [x ** (j - 2) * y ** (1 - j), -(x ** (j - 1)) * y**-j],
                        [-(x ** (j - 1)) * y**-j, x**j * y ** (-j - 1)],
                    ]
                )
            )
            largest = (j * j - j) * x**j / y ** (j + 1) * (1 + y * y / (x * x))
            low, high = np.linalg.eigvalsh(second)
            assert high == pytest.approx(largest, rel=1e-9, abs=1e-300)
            assert abs(low) <= 1e-9 * (largest + 1e-300)
    assert (3**2 - 3) * (1 + 1) == 12  # x = y = 1, j = 3


def test_lemma_32_for_every_conjugate_pair() -> None:
    for _ in range(300):
        p, q, r = laws(3)
        for j in (2.0, 3.0, 4.5):
            for u in (1.0, 1.3, 2.0, 5.0, math.inf):
                bound = holder_moment(j, u, partial(renyi, q, r), partial(binary_root, p, q))
                assert math.log(moment(p, q, r, j)) <= bound + 1e-12
        # u = 2: e^{(j-1) D_{2j-1}} sqrt(E (p/q - 1)^{2j})
        special_case = 2 * renyi(q, r, 5.0) + math.log(moment(p, q, q, 6.0)) / 2
        found = holder_moment(3.0, 2.0, partial(renyi, q, r), partial(binary_root, p, q))
        assert found == pytest.approx(special_case, rel=1e-9)
    assert holder_moment(2.0, 2.0, lambda a: math.inf, lambda a: 0.0) == -math.inf
    with pytest.raises(InputError, match=r"u=0\.5"):
        holder_moment(2.0, 0.5, lambda a: 1.0, lambda a: 1.0)


def largest_root(curves: list[Ternary], order: float) -> float:
    return max(float(curve(order)) for curve in curves)


def sampled_law(outputs: dict[tuple[int, ...], np.ndarray], data: tuple[int, ...], size: int) -> np.ndarray:
    """The output law of a symmetric mechanism on a uniform sample of `size` records."""
    samples = [tuple(sorted(s)) for s in itertools.combinations(data, size)]
    return np.asarray(np.mean([outputs[s] for s in samples], axis=0))


def test_proposition_16_and_eq_9_by_brute_force() -> None:
    """Three record values, samples of two of four records: every triple of a random symmetric mechanism."""
    population, size, values = 4, 2, (0, 1, 2)
    rate = Fraction(size, population)
    for _ in range(3):
        outputs = {s: laws(1, size=3)[0] for s in itertools.combinations_with_replacement(values, size)}
        inner = [
            [outputs[tuple(sorted((x, *rest)))] for x in values]
            for rest in itertools.combinations_with_replacement(values, size - 1)
        ]
        base = Ternary(partial(largest_root, [Ternary.of_laws(rows) for rows in inner]))
        sampled = base.subsampled(rate)
        chi_orders, orders = (1.0, 2.0, 3.0, 6.0, math.inf), (1.0, 1.5, 2.0, 3.0, 5.0, 12.0, math.inf)
        roots, bound = sampled(chi_orders), chi_curve(sampled).rdp(orders)
        for rest in itertools.combinations_with_replacement(values, population - 1):
            rows = [sampled_law(outputs, tuple(sorted((x, *rest))), size) for x in values]
            for p, q, r in itertools.product(rows, repeat=3):
                assert (ternary_root(p, q, r, chi_orders) <= roots * (1 + 1e-9)).all()
            for p, q in itertools.permutations(rows, 2):
                truth = np.array([renyi(p, q, order) for order in orders])
                assert (truth <= bound * (1 + 1e-9)).all()


def test_eq_9_is_the_sum() -> None:
    zeta = Ternary(lambda order: 0.3 * order).subsampled("0.2")
    for a in (2, 3, 7):
        total = sum(math.comb(a, j) * (0.2 * 0.3 * j) ** j for j in range(2, a + 1))
        assert chi_curve(zeta).rdp([a])[0] == pytest.approx(math.log1p(total) / (a - 1), rel=1e-12)


def test_roots_are_not_powers() -> None:
    """E-24: 4 (e^eps(2) - 1) is zeta(2)^2; taken for zeta(2) the coefficient would be squared, 0.0266 for 0.163."""
    square = 4 * math.expm1(0.04)
    zeta = Ternary(lambda order: math.sqrt(square))
    assert math.exp(zeta.log_moments(np.array([2.0]))[0]) == pytest.approx(0.163, abs=5e-4)
    assert square**2 == pytest.approx(0.0266, abs=5e-5)


def test_binary_and_ternary_of_one_bit_agree() -> None:
    bit = [[0.9, 0.1], [0.1, 0.9]]
    for order in (1, 2, 5):
        exact = 0.8 * (0.1 ** (1 - order) + 0.9 ** (1 - order)) ** (1 / order)
        assert Ternary.of_laws(bit)(order) == pytest.approx(exact, rel=1e-12)
        assert Binary.of_laws(bit)(order) == pytest.approx(exact, rel=1e-12)
        assert Binary.of_laws(bit).ternary()(order) == pytest.approx(exact * 4 ** (1 / order), rel=1e-12)
        assert Ternary.of_laws(bit).binary()(order) == pytest.approx(exact, rel=1e-12)
    assert Binary.of_laws(bit).ternary()(np.inf) == pytest.approx(8.0)
    assert Ternary.of_laws([[0.5, 0.5]])(2) == 0.0
    assert Ternary(lambda order: math.nan)(2) == math.inf
