"""Poisson sampling: the definition itself on finite laws, high-precision integrals, and sums in closed form."""

import itertools
import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from flint import acb, arb, ctx
from scipy import integrate

import cumulant as cm
from tests import effort
from tests.oracles import reference

Array = np.ndarray[tuple[int, ...], np.dtype[np.float64]]

ORDERS = np.array([1.0, 1.2, 2.0, 2.5, 3.0, 5.0, 11.0, 40.5])
PANELS = reference.load("figure1")["panels"]


def divergence(p: Array, q: Array, order: float) -> float:
    """D_a(p || q) by the definition."""
    if order == 1:
        return float(np.sum(p * np.log(p / q)))
    return math.log(float(np.sum(p**order * q ** (1 - order)))) / (order - 1)


def both_directions(p: Array, q: Array, rate: float, order: float) -> list[float]:
    """A record that is removed, and one that is added."""
    mixed = (1 - rate) * q + rate * p
    return [divergence(mixed, q, order), divergence(q, mixed, order)]


# ---- the exact curve of a pair


@pytest.mark.parametrize("seed", range(effort.drawn(6)))
def test_finite_pairs_by_the_definition(seed: int) -> None:
    rng = np.random.default_rng(seed)
    size, rate = int(rng.integers(2, 6)), float(rng.choice([0.01, 0.2, 0.7, 0.99]))
    counts = rng.integers(1, rng.choice([3, 40, 1000]) + 1, size=(2, size))
    p, q = ([Fraction(int(x), int(row.sum())) for x in row] for row in counts)
    run = cm.from_masses(p, q) @ cm.Poisson(rate=rate)
    a, b = np.array(p, dtype=float), np.array(q, dtype=float)
    truth = [max(both_directions(a, b, rate, order) + both_directions(b, a, rate, order)) for order in ORDERS]
    for bound in ("poisson", "best", "lower"):
        assert run.rdp(ORDERS, bound=bound) == pytest.approx(truth, rel=1e-7, abs=1e-15), bound
    mixed, swapped = (1 - rate) * b + rate * a, (1 - rate) * a + rate * b
    worst = max(float(np.max(np.abs(np.log(x / y)))) for x, y in ((mixed, b), (swapped, a)))
    assert run.pure() == pytest.approx(worst, rel=1e-9, abs=1e-12)


def test_an_added_record_can_be_worse_than_a_removed_one() -> None:
    """Of (P, Q) alone, with P never above 1.1 Q but zero almost everywhere: only the added direction is large."""
    p, q = [Fraction(1), Fraction(0)], [Fraction(10, 11), Fraction(1, 11)]
    removed, added = both_directions(np.array([1.0, 1e-300]), np.array(q, dtype=float), 0.9, 20.0)
    assert added > 3 * removed
    # the other role of the pair has mass where its partner has none
    assert (cm.from_masses(p, q) @ cm.Poisson(rate="0.9")).rdp(20) == math.inf


@pytest.mark.parametrize("seed", range(effort.drawn(4)))
def test_symmetric_pairs_lose_more_by_removal(seed: int) -> None:
    """Why the curve of a symmetric pair is one integral: D(Q || (1-q)Q + qP) never exceeds it."""
    rng = np.random.default_rng(seed)
    for _ in range(50):
        p = rng.dirichlet(np.full(int(rng.integers(2, 7)), rng.choice([0.3, 1.0, 20.0]))) + 1e-6
        p /= p.sum()
        for order in ORDERS:
            removed, added = both_directions(p, p[::-1], float(rng.uniform(0.001, 1)), order)
            assert added <= removed * (1 + 1e-9) + 1e-14


def moment(sigma: str, rate: Fraction, order: Fraction, added: bool) -> Any:
    """log E_Q[w^a] or log E_Q[w^(1-a)] of the Gaussian pair, by plain quadrature at 160 bits."""
    with ctx.workprec(160):
        g, s, a = arb(rate.numerator) / rate.denominator, 1 / arb(sigma), arb(order.numerator) / order.denominator
        exponent = 1 - a if added else a

        def integrand(z: Any, analytic: bool) -> Any:
            w = 1 - g + g * (s * z - s * s / 2).exp()
            return (exponent * w.log(analytic=analytic) - z * z / 2).exp()

        edge = 26 + math.ceil(float(order) / float(sigma))
        points = [-edge, *range(-20, edge, 10), edge]
        parts = [acb.integral(integrand, a, b).real for a, b in itertools.pairwise(points)]
        return (sum(parts, start=arb(0)) / (2 * arb.pi()).sqrt()).log()


@pytest.mark.parametrize("sigma", ["0.5", "1", "5"])
@pytest.mark.parametrize("rate", ["1e-6", "0.01", "0.3", "0.95"])
@pytest.mark.parametrize("order", ["1.001", "1.5", "2", "7.3", "30"])
def test_gaussian_against_high_precision(sigma: str, rate: str, order: str) -> None:
    a = Fraction(order)
    removed, added = (moment(sigma, Fraction(rate), a, direction) for direction in (False, True))
    assert added < removed
    run = cm.Gaussian(sigma=sigma) @ cm.Poisson(rate=rate)
    assert run.cgf(a - 1) == pytest.approx(float(removed.mid()), rel=1e-11)


@pytest.mark.parametrize(("sigma", "rate"), [("0.7", "0.2"), ("1", "256/60000"), ("4", "0.01"), ("20", "0.5")])
def test_gaussian_at_integers_is_the_sum_of_proposition_11(sigma: str, rate: str) -> None:
    g, s = Fraction(rate), 1 / Fraction(sigma) ** 2
    run = cm.Gaussian(sigma=sigma) @ cm.Poisson(rate=rate)
    for a in (2, 3, 10, 64, 200):
        with ctx.workprec(300):
            total = arb(0)
            for j in range(2, a + 1):
                weight = math.comb(a, j) * g**j * (1 - g) ** (a - j)
                power = Fraction(j * (j - 1), 2) * s
                gain = (arb(power.numerator) / power.denominator).expm1()
                total += arb(weight.numerator) / weight.denominator * gain
            expected = float((total.log1p() / (a - 1)).mid())
        assert run.rdp(a) == pytest.approx(expected, rel=1e-11)


@pytest.mark.parametrize("name", PANELS)
def test_the_lower_bounds_of_the_paper_are_the_truth_here(name: str) -> None:
    run = reference.panel(name) @ cm.Poisson(rate=0.001)
    rows = {int(order): row for order, row in PANELS[name]["alpha"].items() if "lower" in row}
    assert run.rdp(list(rows)) == pytest.approx([float(row["lower"]) for row in rows.values()], rel=1e-11)


def test_private_training_as_published() -> None:
    """TensorFlow Privacy's example: 60 epochs of 60,000 in batches of 256, noise 1.12, eq. (3): 2.92 at order 9."""
    step = cm.Gaussian.from_clipping(norm=1, noise="1.12", relation="add-remove") @ cm.Poisson(rate="256/60000")
    found = (step * 14_063).guarantee(delta=1e-5, method="rdp", conversion="classic")
    assert found.epsilon == pytest.approx(2.92, abs=0.006)
    assert found.evidence.order == pytest.approx(9, abs=0.5)
    training = cm.Gaussian(sigma=1) @ cm.Poisson(rate="256/60000") * 23_400
    assert training.epsilon(delta=1e-5, method="rdp") == pytest.approx(4.065, abs=0.001)  # the exact answer is 3.741


@pytest.mark.parametrize(("sigma", "rate"), [("1e6", "0.5"), ("1e6", "1e-12"), ("3", "1e-12"), ("1", "1e-9")])
def test_small_losses_keep_all_digits(sigma: str, rate: str) -> None:
    """D_a = a/2 q^2 (e^s - 1) to leading order."""
    chi_square = math.expm1(float(sigma) ** -2)
    run = cm.Gaussian(sigma=sigma) @ cm.Poisson(rate=rate)
    for order in (1.0, 1 + 1e-9, 1.5, 2.0, 3.0):
        assert run.rdp(order) == pytest.approx(order / 2 * float(rate) ** 2 * chi_square, rel=1e-6)


@pytest.mark.parametrize("sigma", ["1e-3", "1", "1000"])
def test_far_out_the_whole_mechanism_remains(sigma: str) -> None:
    """D_a = a s/2 - a/(a-1) log(1/q) once the sample's protection is lost."""
    run = cm.Gaussian(sigma=sigma) @ cm.Poisson(rate="0.01")
    expected = 1e9 / 2 / float(sigma) ** 2 - 1e9 / (1e9 - 1) * math.log(100)
    assert run.rdp(1e9) == pytest.approx(expected, rel=1e-9)
    assert run.rdp(1e9) >= expected * (1 - 1e-12)


# ---- densities


def exponential(mean: float) -> Any:
    return lambda x: -x / mean - math.log(mean)


def exponential_divergence(mean_p: float, mean_q: float, rate: float, order: float, added: bool) -> float:
    """Of (1-q)Q + qP and Q, or the other way round, for exponential laws with these means."""

    def integrand(x: float) -> float:
        w = 1 - rate + rate * math.exp(x / mean_q - x / mean_p) * mean_q / mean_p
        return float(math.exp(-x / mean_q) / mean_q * w ** (1 - order if added else order))

    return math.log(integrate.quad(integrand, 0, 400, epsabs=1e-13, limit=400)[0]) / (order - 1)


def test_densities_that_are_not_symmetric() -> None:
    pair = cm.from_densities(exponential(1.5), exponential(1.0), support=(0, math.inf))
    run = pair @ cm.Poisson(rate=0.2)
    for order in (1.5, 2.0, 2.5):
        roles = itertools.product(((1.5, 1.0), (1.0, 1.5)), (False, True))
        truth = max(exponential_divergence(*means, 0.2, order, added) for means, added in roles)
        assert run.rdp(order) == pytest.approx(truth, rel=1e-7)
    assert run.rdp(3.5) == math.inf  # E_Q (p/q)^a diverges from order 3 on
    assert run.estimated


def test_an_output_of_one_density_alone_gives_it_away() -> None:
    inside = lambda x: np.where(x < 1, 0.0, -np.inf)  # noqa: E731
    pair = cm.from_densities(inside, lambda x: np.full_like(x, -math.log(2)), support=(0, 2))
    assert (pair @ cm.Poisson(rate=0.1)).rdp(2) == math.inf


def normal(x: Any) -> Any:
    return -(x**2) / 2 - math.log(2 * math.pi) / 2


def test_densities_keep_small_rates() -> None:
    pair = cm.from_densities(lambda x: normal(x - 1), normal)
    for rate in ("0.3", "1e-3", "1e-12"):
        expected = (cm.Gaussian(sigma=1) @ cm.Poisson(rate=rate)).rdp(ORDERS)
        assert (pair @ cm.Poisson(rate=rate)).rdp(ORDERS) == pytest.approx(expected, rel=1e-8)


# ---- mechanisms of which only a curve is known


class FiniteMechanism:
    """A law on a few outputs for every subset of some records; neighbours differ by one record."""

    def __init__(self, rng: np.random.Generator, records: int) -> None:
        subsets = [frozenset(s) for k in range(records + 1) for s in itertools.combinations(range(records), k)]
        spread = rng.choice([0.3, 1.0, 50.0])
        laws = rng.dirichlet(np.full(int(rng.integers(2, 5)), spread), size=len(subsets)) + rng.choice([1e-5, 0.05])
        self.law = dict(zip(subsets, laws / laws.sum(axis=1, keepdims=True), strict=True))
        self.records = records
        near = [(a, b) for a in subsets for b in subsets if len(a ^ b) == 1]
        self.log_p = np.log([self.law[a] for a, _ in near])
        self.log_q = np.log([self.law[b] for _, b in near])

    def rdp(self, order: float) -> float:
        exponent = order * self.log_p + (1 - order) * self.log_q
        top = exponent.max(axis=1)
        return float(np.max(top + np.log(np.exp(exponent - top[:, None]).sum(axis=1))) / (order - 1))

    def pure(self) -> float:
        return float(np.max(np.abs(self.log_p - self.log_q)))

    def sampled(self, rate: float, record: int) -> tuple[Array, Array]:
        """The output laws with the record and without it, averaged over Poisson samples."""
        others = [i for i in range(self.records) if i != record]
        with_it, without = 0.0, 0.0
        for k in range(len(others) + 1):
            for chosen in map(frozenset, itertools.combinations(others, k)):
                weight = rate**k * (1 - rate) ** (len(others) - k)
                missed, hit = self.law[chosen], self.law[chosen | {record}]
                without = without + weight * missed
                with_it = with_it + weight * ((1 - rate) * missed + rate * hit)
        return np.asarray(with_it), np.asarray(without)


@pytest.mark.parametrize("seed", range(effort.drawn(4)))
def test_random_mechanisms_stay_below_every_bound(seed: int) -> None:
    rng = np.random.default_rng(seed)
    for _ in range(2):
        mechanism = FiniteMechanism(rng, int(rng.integers(1, 4)))
        rate = round(float(rng.choice([rng.uniform(0.001, 0.05), rng.uniform(0.05, 0.99)])), 6)
        described = cm.from_rdp(rdp=mechanism.rdp, pure=mechanism.pure() * (1 + 1e-12)) @ cm.Poisson(rate=rate)
        laws = [mechanism.sampled(rate, record) for record in range(mechanism.records)]
        truth = [max(divergence(*d, order) for p, q in laws for d in ((p, q), (q, p))) for order in ORDERS]
        for bound in ("poisson-sum", "pure-response", "caps", "lemma3", "best"):
            assert (described.rdp(ORDERS, bound=bound) >= np.array(truth) * (1 - 1e-7) - 1e-14).all(), bound
        worst = max(float(np.max(np.abs(np.log(p / q)))) for p, q in laws)
        assert described.pure() >= worst * (1 - 1e-9)


@pytest.mark.parametrize(
    ("loss", "delta", "rate"), [("0.5", "0.01", "0.2"), ("3", "1e-4", "0.01"), ("1", "0.1", "0.9")]
)
def test_slack_shrinks_with_the_rate(loss: str, delta: str, rate: str) -> None:
    """The worst (epsilon, delta) mechanism has four outputs; sampled, its exact deltas stay below the answer."""
    e, d, q = math.exp(float(loss)), float(delta), float(rate)
    top, low = (1 - d) * e / (1 + e), (1 - d) / (1 + e)
    with_it, without = np.array([d, top, low, 0.0]), np.array([0.0, low, top, d])
    mixed = (1 - q) * without + q * with_it
    for bound in ("pure-response", "lemma3", "caps", "best"):
        run = cm.ApproximateDP(loss, delta) @ cm.Poisson(rate=rate)
        assert run.curve(bound).slack() == Fraction(delta) * Fraction(rate)
        for epsilon in (0.0, 0.01, 0.1, 0.5, 2.0):
            for a, b in ((mixed, without), (without, mixed)):
                exact = float(np.maximum(a - math.exp(epsilon) * b, 0).sum())
                assert run.delta(epsilon=epsilon, bound=bound) >= exact * (1 - 1e-9)


def test_the_sum_against_a_direct_one() -> None:
    rho, q, a = 0.02, 0.05, 30
    j = np.arange(2, a + 1)
    total = sum(math.comb(a, k) * q**k * math.expm1(k * (k - 1) * rho) for k in j.tolist())
    run = cm.ZeroConcentrated(rho="0.02") @ cm.Poisson(rate="0.05")
    assert run.rdp(a, bound="poisson-sum") == pytest.approx(math.log1p(total) / (a - 1), rel=1e-12)
    # never worse than the general bound of Zhu and Wang (2019), which has a factor 3 from the third term on
    general = sum(3 * math.comb(a, k) * (1 - q) ** (a - k) * q**k * math.exp(k * (k - 1) * rho) for k in j.tolist())
    assert run.rdp(a) <= math.log((1 - q) ** (a - 1) * (1 + (a - 1) * q) + general) / (a - 1)


def test_a_curve_is_nearly_as_good_as_its_pair() -> None:
    promise, noise = (m @ cm.Poisson(rate=0.001) for m in (cm.ZeroConcentrated(rho="1/50"), cm.Gaussian(sigma=5)))
    for order in (2, 8, 100):
        assert 1 - 1e-9 <= promise.rdp(order) / noise.rdp(order) <= 1.25


def test_pure_mechanisms_inside_a_sample() -> None:
    """Five answers of 1-DP on one sample: a post-processing of randomized response with log-odds 5."""
    run = (cm.PureDP(1) * 5) @ cm.Poisson(rate="0.01")
    alone = cm.PureDP(5) @ cm.Poisson(rate="0.01")
    assert run.rdp(ORDERS, bound="pure-response") == pytest.approx(alone.rdp(ORDERS), rel=1e-12)
    assert run.rdp(2, bound="pure-response") < 0.03 * run.rdp(2, bound="lemma3")
