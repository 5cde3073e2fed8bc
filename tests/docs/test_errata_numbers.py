"""The numbers of docs/errata.md, computed here from the definitions and the printed formulas; the library is asked for none."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import flint
import numpy as np
import pytest
from scipy import optimize, special, stats

import cumulant as cm

PAGE = (Path(__file__).parents[2] / "docs" / "errata.md").read_text(encoding="utf-8")
Cgf = Callable[[float], float]


def part(name: str) -> str:
    """The text of one erratum, or of the parts A and C, without line breaks and in ASCII letters."""
    found = re.search(rf"^## {name}: .*?(?=^## E-|^# Part|\Z)", PAGE, re.MULTILINE | re.DOTALL)
    text = PAGE if name in ("A", "C") else found.group(0) if found else ""
    assert text
    return " ".join(text.split()).replace("ε", "eps").replace("≤", "<=").replace("≥", ">=")


def gaussian(sigma: float) -> Cgf:
    return lambda lam: lam * (lam + 1) / (2 * sigma**2)


def laplace(scale: float) -> Cgf:
    def cgf(lam: float) -> float:
        a = lam + 1
        return math.log(a / (2 * a - 1) * math.exp(lam / scale) + lam / (2 * a - 1) * math.exp(-a / scale))

    return cgf


def log_terms(order: int, rate: float, cgf: Cgf, pure: float = math.inf) -> list[float]:
    """Theorem 9, term by term: log C(a,j) g^j min(2, E^j) M_j, and 4 (M_2 - 1) at j = 2."""
    found = []
    for j in range(2, order + 1):
        growth = math.inf if pure == math.inf else j * math.log(math.expm1(pure))
        log_c = min(math.log(2), growth) + cgf(j - 1)
        if j == 2:
            log_c = min(log_c, math.log(4 * math.expm1(cgf(1))))
        log_choose = math.lgamma(order + 1) - math.lgamma(j + 1) - math.lgamma(order - j + 1)
        found.append(log_choose + j * math.log(rate) + log_c)
    return found


def theorem9(order: int, rate: float, cgf: Cgf, pure: float = math.inf) -> float:
    return float(np.logaddexp(0.0, special.logsumexp(log_terms(order, rate, cgf, pure)))) / (order - 1)


def eq3(orders: range, rounds: int, rate: float, cgf: Cgf, delta: float) -> list[float]:
    return [rounds * theorem9(a, rate, cgf) - math.log(delta) / (a - 1) for a in orders]


def difference(moments: list[float], order: int) -> float:
    return math.fsum((-1) ** (order - i) * math.comb(order, i) * moments[i] for i in range(order + 1))


def moments(sigma: float, top: int) -> list[float]:
    return [math.exp(i * (i - 1) / (2 * sigma**2)) for i in range(top + 1)]


def test_e1_one_direction() -> None:
    p, q, rate = (0.1, 0.9), (0.0001, 0.9999), 0.01
    one = sum(y * y / x for x, y in zip(p, q, strict=True))  # e^{D_2(Q||P)}
    claim = rate**2 * min(4 * (one - 1), 2 * one)
    truth = math.log1p(rate**2 * (sum(x * x / y for x, y in zip(p, q, strict=True)) - 1))
    assert math.log1p(claim) == pytest.approx(4.4e-5, rel=0.02)
    assert truth == pytest.approx(9.9e-3, rel=0.01)
    assert "claims 4.4e-5 at order 2; the truth is 9.9e-3" in part("E-1")


def test_e2_clipping() -> None:
    right, wrong = (min(eq3(range(2, 60), 10_000, 0.001, gaussian(sigma), 1e-5)) for sigma in (0.5, 1.0))
    assert f"that is {right:.2f}, not {wrong:.2f}" in part("E-2")


def test_e4_lemma_31() -> None:
    assert math.log1p(2**2 / 1) == pytest.approx(1.61, abs=5e-3)
    assert "order 2: eps > 1.61" in part("E-4")


def test_e5_leading_orders() -> None:
    text = part("E-5")
    for sigma, shown in ((5.0, "0.0204 and 0.020405"), (1.0, "0.75 and 0.859"), (0.5, "6 and 26.8")):
        first, second = 1 / (2 * sigma**2) + 1 / (4 * sigma**4), math.expm1(1 / sigma**2) / 2
        assert f"{shown} at s = {sigma:g}" in text
        assert [float(x) for x in shown.split(" and ")] == pytest.approx([first, second], rel=1e-3)
    for sigma, factor in ((5.0, 491), (0.5, 167)):
        n, rate = 100_000, 0.001
        top = sigma**2 * n / (rate * (n - 1)) + 1
        quadratic, log = 2 * rate**2 / (2 * sigma**2), math.log((top - 1) / top) / 2
        printed = quadratic * top / (top - 2) + log + math.log(top / (top - 2)) / 2
        right = quadratic * (top - 1) / (top - 2) + log + math.log((top - 1) / (top - 2)) / 2
        assert printed / right == pytest.approx(factor, rel=5e-3)
        assert str(factor) in text


def test_e6_exponential_laws() -> None:
    def divergence(order: float, first: float, second: float) -> float:
        mixed = order * first + (1 - order) * second
        return (order * math.log(first) + (1 - order) * math.log(second) - math.log(mixed)) / (order - 1)

    truth, claim = divergence(5, 1.0, 1.2), 5 * (1 / 0.8**2) * 0.2**2 / 2  # A'' = 1/rate^2, at radius 0.2 from rate 1
    assert f"{claim:.3f} claimed, {truth:.3f} true" in part("E-6")
    assert 2 * 1 / (2 * 2**2) == 0.25  # the Gaussian mean, s = 2, order 2
    assert 2 * (1 / 8) / 2 == 0.125  # (C) as printed has L = 1/8
    assert "0.125 claimed, 0.25 true" in part("E-6")
    assert "0.5 where 0.25 is true" in part("A")  # a L D^2 with the Hessian bound L = 1/4


def test_e7_a_quotient_of_log_partition_functions() -> None:
    def log_partition(eta: float) -> float:
        return math.log1p(math.exp(eta))

    first, second = math.log(0.3 / 0.7), math.log(0.6 / 0.4)
    printed = math.log(log_partition(2 * first - second) / (log_partition(first) ** 2 / log_partition(second)))
    assert f"{printed:.3f} instead of {math.log(0.3**2 / 0.6 + 0.7**2 / 0.4):.3f}" in part("E-7")


def test_e9_theorem_27_is_often_worse() -> None:
    exact = moments(0.5, 4)
    terms = [3 * 1e-6 * min(4 * math.expm1(4), 2 * math.exp(4))]
    terms.append(1e-9 * 4 * math.sqrt(difference(exact, 2) * difference(exact, 4)))
    printed, nine = math.log1p(sum(terms)) / 2, theorem9(3, 0.001, gaussian(0.5))
    assert f"it gives {printed:.2e}".replace("e-03", "e-3") in part("E-9")
    assert f"Theorem 9 gives {nine:.2e}".replace("e-04", "e-4") in part("E-9")


def test_e11_caps() -> None:
    assert f"{theorem9(2, 0.9, gaussian(5)):.3f} against 0.04" in part("E-11")
    closed = 2 * math.log1p(0.001 * math.exp(laplace(2)(1)) * math.expm1(0.5))
    assert closed == pytest.approx(1.6e-3, rel=0.03)
    assert theorem9(2, 0.001, laplace(2), 0.5) == pytest.approx(5.1e-7, rel=0.01)
    assert "1.6e-3, where Theorem 9 says 5.1e-7" in part("E-11")


def test_e13_the_transition() -> None:
    text, found = part("E-13"), []
    for sigma in (5.0, 1.0, 0.5):
        rule = optimize.brentq(lambda a, s=sigma: math.log(0.001 * a) + a / (2 * s * s), 1.01, 1000)
        curve = [theorem9(a, 0.001, gaussian(sigma)) for a in range(2, round(2 * sigma**2 * 7) + 10)]
        steps = [after / before for before, after in pairwise(curve)]
        found.append((2 * sigma**2 * math.log(1000), rule, steps.index(max(steps)) + 2, max(steps)))
    places, said, jumps, factors = zip(*found, strict=True)
    assert [round(x, 1) for x in places] == [345.4, 13.8, 3.5]
    assert "345.4, 13.8, 3.45" in text
    assert f"says {said[0]:.1f}, {said[1]:.2f}, {said[2]:.2f}" in text
    assert (
        f"after order {jumps[0]}, {jumps[1]}, {jumps[2]}, by a factor {factors[0]:.0f}, {factors[1]:.0f}, {factors[2]:.0f}"
        in text
    )
    early = []
    for sigma in (5.0, 10.0):
        curve = [theorem9(a, 0.001, gaussian(sigma)) for a in range(2, 300)]
        early.append(next(a for a, value in enumerate(curve, start=2) if value > 2 * curve[0] * a / 2))
    rule = optimize.brentq(lambda a: math.log(0.001 * a) + a / 200, 1.01, 1000)
    assert (
        f"from order {early[0]} (s = 5) and {early[1]} (s = 10) on, where the printed rule says {rule:.0f} at s = 10"
        in text
    )
    assert early[1] < rule
    assert f"stays {-math.log(0.001):.2f} below" in text
    pure = math.log(9)
    assert f"{math.log1p(0.001 * math.expm1(pure)) / (0.001 * pure):.2f} times g eps(inf)" in text


def test_e14_the_search() -> None:
    text, log = part("E-14"), math.log(1e8)
    wrong = optimize.minimize_scalar(lambda x: (1e8 + gaussian(5)(x)) / x, bounds=(1, 1e7), method="bounded").x
    there = (log + gaussian(5)(wrong)) / wrong
    right = 5 * math.sqrt(2 * log)
    assert f"lambda = {wrong:,.0f} with eps = {there:.0f}" in text
    assert f"lambda = {right:.2f} gives {(log + gaussian(5)(right)) / right:.3f}" in text
    best = 0.1 * math.sqrt(2 * math.log(1e5))
    low, high = ((math.log(1e5) + gaussian(0.1)(x)) / x for x in (best, 1.0))
    assert f"lambda at {best:.2f}, eps = {low:.1f} instead of {high:.1f}" in text
    assert f"up to k = {math.floor(log / math.log(2))} for Laplace" in text
    assert f"up to k = {math.floor(log / -math.log(0.6))} for randomized response" in text
    values = eq3(range(2, 200), 10, 0.5, gaussian(5), 1e-5)
    minima = [a for a in range(3, 199) if values[a - 2] < min(values[a - 3], values[a - 1])]
    assert (
        f"at order {minima[0]}, {values[minima[0] - 2]:.2f}, and at order {minima[1]}, {values[minima[1] - 2]:.2f}"
        in text
    )
    chord = (laplace(2)(1) + laplace(2)(2) / 2) / 2
    assert f"{chord:.5f} < {laplace(2)(1.5) / 1.5:.5f}" in text
    assert f"lambda\\* = {right:.2f}" in part("A")


def test_e15_large_orders() -> None:
    text = part("E-15")
    for cgf, pure, shown in ((gaussian(5), math.inf, "3,895"), (laplace(2), 0.5, "1,758")):
        loose = (max(0.0, *log_terms(100, 0.001, cgf, pure)) + math.log(100)) / 99
        assert f"{loose / theorem9(100, 0.001, cgf, pure):,.0f}" == shown
        assert shown in text

    def stirling(n: int) -> float:
        return n * math.log(n) - n + math.log(2 * math.pi * n) / 2

    excess = {
        (a, j): stirling(a) - stirling(j) - stirling(a - j) - math.log(math.comb(a, j))
        for a in range(2, 80)
        for j in range(1, a)
    }
    assert min(excess.values()) > 0
    assert 0.08 < max(value for (a, _), value in excess.items() if a >= 5) < 0.09
    assert excess[2, 1] == pytest.approx(0.12, abs=5e-3)
    assert "at most 0.09" in text


def test_e16_theorem_13_against_the_exact_value() -> None:
    """The exact optimum of k rounds of randomized response, from the binomial law of its flips, in logarithms."""

    def least(epsilon: float, rounds: int, log_delta: float) -> float:
        flips = np.arange(rounds + 1)
        loss = (rounds - 2 * flips) * epsilon
        log_p = stats.binom.logpmf(flips, rounds, special.expit(-epsilon))
        log_q = np.logaddexp.accumulate(log_p - loss)
        above = np.logaddexp.accumulate(log_p) - log_delta
        inside = above > 0
        return float(np.max(log_delta + np.log(np.expm1(above[inside])) - log_q[inside]))

    text = part("E-16")
    for log10, said, rounds in ((-8, 1.26, 31192), (-12, 1.17, 16336), (-250, 1.01, 31192)):
        log_delta = log10 * math.log(10)
        printed = 0.001 * math.sqrt(-2 * rounds * log_delta) + 2 * rounds * 0.001**2
        assert said <= printed / least(0.001, rounds, log_delta) <= said + 0.01
        assert f"{said} times" in text


def test_e17_finite_differences() -> None:
    text, exact = part("E-17"), moments(5, 6)
    assert f"{difference(exact, 4):.2e}".replace("e-03", "e-3") == "6.13e-3"
    moved = [*exact[:3], math.exp(2 * 0.06 * 1.01), *exact[4:]]
    assert (
        f"B(4) = 6.13e-3 into {difference(moved, 4):.1e} and B(6) into {difference(moved, 6):.3f}".replace(
            "e-04", "e-4"
        )
        in text
    )
    flat = [1.0, 1.0, *(math.exp((i - 1) * min(i / 50, 0.1)) for i in range(2, 7))]
    assert f"has B(6) = {difference(flat, 6):.2f}" in text
    under_p = difference([math.exp(i * (i + 1) / 2) for i in range(3)], 2)
    assert f"s = 1, l = 2: {under_p:.2f} instead of {math.expm1(1):.3f}" in text
    # Lemma 30: E_q (p/q - 1)^2 = e^{t^2} - 1 grows with the shift
    assert f"{math.expm1(0.25):.4f} at half the shift, {math.expm1(1):.4f} at the whole" in part("A")


def test_e18_order_1_of_a_sample() -> None:
    """KL of (1-g)Q + gP against Q is at most g KL, and at most the order-2 divergence; three finite laws."""
    random = np.random.default_rng(18)
    for _ in range(50):
        p, q = random.dirichlet(np.ones(4), size=2)
        rate = float(random.uniform(0.01, 1))
        mixed = (1 - rate) * q + rate * p
        kl = float(np.sum(special.rel_entr(mixed, q)))
        assert kl <= rate * float(np.sum(special.rel_entr(p, q))) + 1e-12
        assert kl <= math.log(float(np.sum(mixed**2 / q))) + 1e-12
    run = cm.from_masses(["0.5", "0.5"], ["0.25", "0.75"]) @ cm.WithoutReplacement(rate="0.25")
    whole = max(0.5 * math.log(2) + 0.5 * math.log(2 / 3), 0.25 * math.log(0.5) + 0.75 * math.log(1.5))
    assert run.kl() <= 0.25 * whole * (1 + 1e-9)


def test_e19_the_leading_one() -> None:
    terms = [0.0, *log_terms(2, 1e-8, gaussian(5))]
    top = max(terms)
    assert top + math.log(sum(math.exp(term - top) for term in terms)) == 0.0
    assert "returns eps' = 0 at s = 5, g = 1e-8" in part("E-19")
    assert math.log1p(math.exp(special.logsumexp(terms[1:]))) > 1e-17


def test_e22_printed_forms_cancel() -> None:
    """The printed Laplace formula in floats at b = 1e9, order 2, against 300 bits."""
    t, order = 1e-9, 2
    near, far = order / (2 * order - 1), (order - 1) / (2 * order - 1)
    printed = math.log(near * math.exp((order - 1) * t) + far * math.exp(-order * t)) / (order - 1)
    with flint.ctx.workprec(300):
        x = flint.arb(1) / 10**9
        exact = float((flint.arb(2) / 3 * x.exp() + flint.arb(1) / 3 * (-2 * x).exp()).log())
    assert not 0.5 < printed / exact < 2  # not one digit; the last bits of log and exp decide which number it is
    assert "not one digit is right" in part("E-22")
    assert cm.Laplace(scale=10**9).rdp(2) == pytest.approx(exact, rel=1e-12)


def test_e23_the_classical_calibration() -> None:
    def log_delta(epsilon: float, sigma: float) -> float:
        first, second = (special.log_ndtr(sign / (2 * sigma) - epsilon * sigma) for sign in (1, -1))
        return float(first + np.log(-np.expm1(epsilon + second - first)))

    for sigma, words in (
        (0.5, "(delta 1e-8: eps {:.2f} claimed, {:.2f} true)"),
        (1.0, "(eps {:.2f} claimed at 1e-8, {:.2f} true)"),
    ):
        true = optimize.brentq(lambda x, s=sigma: log_delta(x, s) - math.log(1e-8), 1, 40)
        assert words.format(math.sqrt(2 * math.log(1.25e8)) / sigma, true) in part("E-23")
    with flint.ctx.workprec(400):
        holds = []
        for digits in range(1, 37):
            delta = flint.arb(10) ** -digits
            epsilon = (2 * (flint.arb("1.25") / delta).log()).sqrt()
            upper, lower = (
                ((epsilon - flint.arb(shift)) / flint.arb(2).sqrt()).erfc() / 2 for shift in ("0.5", "-0.5")
            )
            holds.append(bool(upper - epsilon.exp() * lower <= delta))
    assert holds == [True] * 35 + [False]
    assert "true down to delta = 1e-35" in part("E-23")


def test_e24_squares() -> None:
    once = 4 * math.expm1(0.04)
    assert f"{once**2:.4f} instead of {once:.3f}" in part("E-24")


def test_e25_what_must_not_be_mixed() -> None:
    """Two rates are two keys; two relations are refused; a composition on one sample has no pair for Theorem 27."""
    accountant = cm.Accountant()
    for rate in ("0.1", "0.2"):
        accountant.compose(cm.Gaussian(sigma=1) @ cm.WithoutReplacement(rate=rate))
    assert len(accountant.terms) == 2
    with pytest.raises(cm.RelationError):
        accountant.compose(cm.Gaussian(sigma=1) @ cm.Poisson(rate=0.1))
    several = (cm.Gaussian(sigma=1) + cm.Laplace(scale=1)) @ cm.WithoutReplacement(rate="0.1")
    with pytest.raises(cm.HypothesisError):
        several.rdp(3, bound="theorem27")
    assert math.isfinite(several.rdp(3, bound="theorem9"))
    nested = cm.Gaussian(sigma=1) @ cm.WithoutReplacement(rate="0.1") @ cm.WithoutReplacement(rate="0.5")
    assert nested == cm.Gaussian(sigma=1) @ cm.WithoutReplacement(rate="0.05")
    table = cm.from_rdp_points([2, 3], [0.1, 0.2]) @ cm.WithoutReplacement(rate="0.1")
    assert math.isfinite(table.rdp(3, bound="theorem9"))
    assert table.rdp(4, bound="theorem9") == math.inf


def test_e26_hypotheses_that_lack_a_word() -> None:
    text = part("E-26")
    x = np.linspace(0, 6, 6001)
    falling, rising = np.exp(-x), x / 4 + 0.06 * np.sin(4 * x)
    assert (np.diff(falling) < 0).all()
    assert (np.diff(rising) > 0).all()
    total = falling + rising
    assert np.sum((total[1:-1] < total[:-2]) & (total[1:-1] < total[2:])) == 3
    assert f"{math.log(0.5):.4f}" in text  # K(-1) = log Q(p > 0)
    cubes = [n**3 + 1 for n in range(8)]
    causal = np.convolve(cubes, [-1, 3, -3, 1], mode="full")
    assert causal[3] == -6  # Delta^3 of n^3 is 6, at x = 0: three places later, and with the other sign
    second = 6 * -1.0  # the second derivative of x^3/y^2 in x at x = -1, y = 1
    assert second < 0
    line = [max(0.0, lam - 1) + 0.2 for lam in np.linspace(0.1, 3, 30)]  # a kink, and no tangent through the origin
    slopes = [value / lam for value, lam in zip(line, np.linspace(0.1, 3, 30), strict=True)]
    assert 0 < int(np.argmin(slopes)) < 29


def test_part_a_numbers() -> None:
    text = part("A")
    c = math.exp(0.5)
    assert f"zeta(2) <= {(c - 1) / math.sqrt(c):.6f}" in text
    assert f"xi(2) = {math.sqrt(math.expm1(1)):.6f}, s = 5: {math.sqrt(math.expm1(0.04)):.6f}" in text
    assert 3 * 2 * (1 + 1) == 12
    assert "0 and 12" in text


def test_part_c_numbers() -> None:
    text = part("C")
    ratios = []
    for epsilon in (1, 5, 10):
        delta = stats.norm.cdf(0.5 - epsilon) - math.exp(epsilon) * stats.norm.cdf(-0.5 - epsilon)
        ratios.append(stats.norm.sf(epsilon - 0.5) / delta)
    assert f"{ratios[0]:.2f} at eps = 1, {ratios[1]:.2f} at eps = 5 and {ratios[2]:.1f} at eps = 10" in text
    lower = math.log1p(1e-6 * math.expm1(0.04))
    assert f"a factor {theorem9(2, 0.001, gaussian(5)) / lower:.1f} at order 2" in text
    paper = min(eq3(range(2, 80), 600_000, 0.001, gaussian(5), 1e-8))
    assert f"epsilon {paper:.2f} instead of" in text
