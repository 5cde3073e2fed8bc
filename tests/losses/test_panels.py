"""Integrals with a proved error: the bounds that decide about cells, in the complex plane, and what the panels enclose."""

import itertools
import math
import random
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
import pytest

from cumulant.bounds.gaussian_theorems import Diameter
from cumulant.curves.closed_form import Concentrated, Response
from cumulant.losses import gaussian_law
from cumulant.losses import panels as panels_module
from cumulant.losses.atoms import AtomLaw
from cumulant.losses.gaussian_law import GaussianLaw
from cumulant.losses.law import Law
from cumulant.losses.panels import Line, Orders, _bounds, _log_size, panels
from cumulant.losses.sampled_curve import SampledPair
from cumulant.losses.subsampled import PAIR, PROFILE, Kernel, Rate
from cumulant.numerics.arithmetic import BALLS
from cumulant.numerics.enclosure import BOUNDED
from cumulant.pairs.laplace import LaplaceLaw
from cumulant.pairs.response import ResponseLaw
from tests.effort import drawn

FARTHEST_ORDER, WIDTH = 256.0, 1e-12


def decimal(generator: random.Random, low: float, high: float) -> Fraction:
    return Fraction(f"{10 ** generator.uniform(math.log10(low), math.log10(high)):.4e}")


def rate_of(generator: random.Random) -> Fraction:
    return decimal(generator, 1e-12, 0.9) if generator.random() < 0.7 else 1 - decimal(generator, 1e-6, 0.9)


def density(line: Line, s: Any) -> Any:
    from flint import arb

    t = BALLS.number(line.shift)
    if isinstance(line, GaussianLaw):
        return (-((s + t / 2) ** 2) / 2).exp() / (2 * arb.pi()).sqrt()
    return (-t * (s + 1) / 2).exp() * t / 4


def continued(w: Any, x: Any, g: Any) -> Any:
    """log w, continued from the real line: with |c| < 1 w is g e^x (1 + c) or (1-g)(1 + c), and log(1 + c) is principal."""
    kept = 1 - g
    far = x.real > (kept / g).log()
    return x + g.log() + (kept / g * (-x).exp() + 1).log() if far else kept.log() + (w / kept).log()


def integrand(line: Line, rate: Fraction, lam: Fraction, folded: bool, s: Any, analytic: bool | None = None) -> Any:
    """f_a, or f_a + f_{1-a}, times the density, at a complex ball, or for acb.integral, which says `analytic`."""
    x, g, order = BALLS.number(line.shift) * s, BALLS.number(rate), BALLS.number(lam + 1)
    w = 1 - g + g * x.exp()
    L = continued(w, x, g) if analytic is None else w.log(analytic=analytic)
    powers = [order, 1 - order] if folded else [order]
    return sum(((b * L).exp() - 1 - b * (w - 1) for b in powers), start=BALLS.number(0)) * density(line, s)


@pytest.mark.parametrize("folded", [False, True], ids=["pair", "profile"])
@pytest.mark.parametrize("kind", [GaussianLaw, LaplaceLaw])
def test_the_bound_of_a_rectangle_holds_at_every_complex_point(kind: type[Line], folded: bool) -> None:
    from flint import acb

    generator = random.Random(f"{kind.__name__}{folded}")
    tight = checked = 0
    while checked < drawn(250):
        shift, rate, lam = decimal(generator, 1e-2, 30), rate_of(generator), decimal(generator, 1e-6, 1e3)
        line = kind(shift)  # type: ignore[call-arg]
        reach = 12.0 if kind is GaussianLaw else 1.0
        low = generator.uniform(-0.1 if folded else -1, 1) * reach
        high = low + generator.uniform(0, 2) * reach / 4
        y = generator.choice([0.0, 0.1, 0.5, 1.0, 2.0, 5.0]) * reach / 12
        if generator.random() < 0.4:  # beside the point where w = 0
            place = math.log(1 / rate - 1) / float(shift)
            low, high, y = (
                place - generator.random() / 5,
                place + generator.random() / 5,
                generator.uniform(2, 3.1) / shift,
            )
            y = float(y)
            if (folded and low < -0.1) or abs(place) > reach:
                continue
        orders = Orders(np.array([float(lam)]), Rate.of(rate), not folded)
        with np.errstate(all="ignore"):
            bound = float(_log_size(line, orders, *(np.array([v]) for v in (low, high, y)))[0])
        if bound == math.inf:
            continue
        for _ in range(4):
            where = acb(
                generator.choice([low, high, generator.uniform(low, high)]), generator.choice([y, -y, 0, y / 2])
            )
            with BALLS.at(2000):
                value = abs(integrand(line, rate, lam, folded, where))
                assert value.log() <= BALLS.number(bound), (line, rate, lam, folded, low, high, y, where)
                tight += bool(value.log() > BALLS.number(bound) - 8)
            checked += 1
    assert tight > checked / 20


@pytest.mark.parametrize("folded", [False, True], ids=["pair", "profile"])
@pytest.mark.parametrize("kind", [GaussianLaw, LaplaceLaw])
def test_what_a_cell_holds_and_the_error_of_its_rule_are_bounded(kind: type[Line], folded: bool) -> None:
    from flint import acb, arb

    generator = random.Random(f"{folded}{kind.__name__}")
    seen = 0
    while seen < 60:
        shift, rate, lam = decimal(generator, 1e-2, 5), rate_of(generator), decimal(generator, 1e-3, 60)
        line = kind(shift)  # type: ignore[call-arg]
        scale = 1.0 if kind is GaussianLaw else 0.125
        low = generator.randint(0 if folded else -8, 8) * scale
        high = low + generator.choice([2.0, 4.0, 8.0]) * scale
        orders = Orders(np.array([float(lam)]), Rate.of(rate), not folded)
        with np.errstate(all="ignore"):
            held, error = (float(v[0]) for v in _bounds(line, orders, np.array([low]), np.array([high])))
        if not error < held - 3:
            continue
        seen += 1
        with BALLS.at(300):
            tolerance = {"abs_tol": BALLS.number(error).exp() * arb(2) ** -40, "rel_tol": arb(2) ** -250}
            f = partial(integrand, line, rate, lam, folded)
            exact = acb.integral(f, arb(low), arb(high), **tolerance).real
            assert exact.log() <= BALLS.number(held)
            rule, middle, half = arb(0), arb((low + high) / 2), arb((high - low) / 2)
            for k in range(32):
                node, weight = arb.legendre_p_root(32, k, True)
                rule += half * weight * f(acb(middle + half * node)).real
            assert abs(rule - exact).upper() <= BALLS.number(error).exp().lower(), (line, rate, lam, folded, low, high)


def test_panels_and_what_is_left_out_are_the_whole_line() -> None:
    lam = np.array([1e-6, 0.5, 3.0, 40.0, 900.0])
    for line in (GaussianLaw(Fraction(1, 2)), LaplaceLaw(Fraction(3))):
        for folded in (False, True):
            curve = SampledPair(line, Concentrated(Fraction(1)), Fraction(1, 100), PROFILE if folded else PAIR)
            with np.errstate(all="ignore"):
                row, middle, half, left_out = panels(
                    line, Orders(lam, Rate.of(Fraction(1, 100)), not folded), curve.log_excess(lam)
                )
            for i in range(lam.size):
                mine = sorted(zip(middle[row == i].tolist(), half[row == i].tolist(), strict=True))
                assert all(m + h <= n - k for (m, h), (n, k) in itertools.pairwise(mine))  # exact, no overlap
                assert len(mine) < 20
            assert (np.exp(left_out - curve.log_excess(lam)) < 1e-15).all()


def laws(generator: random.Random, shift: Fraction) -> list[Law]:
    masses = [generator.randint(1, 50) for _ in range(5)]
    ratios = [Fraction(generator.randint(1, 30), 10) for _ in range(5)]
    return [
        GaussianLaw(shift),
        LaplaceLaw(shift),
        ResponseLaw(Response(epsilon=shift)),
        AtomLaw(tuple(Fraction(m, sum(masses)) for m in masses), tuple(ratios)),
    ]


@pytest.mark.parametrize("extreme", [False, True], ids=["common", "extreme"])
def test_enclosures_hold_the_balls(extreme: bool) -> None:
    """The whole of it: law, kernel, rate and order at random, against acb.integral and exact sums."""
    generator = random.Random(17 + extreme)
    widths: list[float] = []
    for _ in range(drawn(9)):
        shift = decimal(generator, 1e-6, 1e3) if extreme else decimal(generator, 1e-2, 10)
        rate = rate_of(generator)
        for law in laws(generator, shift):
            whole = generator.random() < 0.5
            curve = SampledPair(law, Concentrated(shift * shift / 2), rate, PAIR if whole else PROFILE)
            lam = np.array(
                [float(decimal(generator, *((1e-9, 1e4) if extreme else (1e-2, FARTHEST_ORDER)))) for _ in range(2)]
            )
            with np.errstate(all="ignore"):
                found, at_one = curve.cgf(lam, BOUNDED), curve.at_one(BOUNDED)
            with BALLS.at(200):
                if shift < 300:
                    divergence = curve.kl(BALLS)
                    ends = (BALLS.number(float(end)) for end in (at_one.lower(), at_one.upper()))
                    assert next(ends) <= divergence <= next(ends), (law, rate, whole, divergence, at_one)
                    widths.append(float(at_one.upper() / at_one.mid - 1))
                for i, x in enumerate(lam.tolist()):
                    exact = curve.cgf(np.array([Fraction(x)], dtype=object), BALLS)[0]
                    case = (law, rate, whole, x, exact, found[i])
                    assert not exact.is_finite() or exact.lower() >= BALLS.number(float(found.lower()[i])), case
                    assert not exact.is_finite() or exact.upper() <= BALLS.number(float(found.upper()[i])), case
                    assert np.isfinite(found.upper()[i]), case
                    widths.append(float(found.upper()[i] / found.mid[i] - 1))
    assert max(widths) < (1e-9 if extreme else WIDTH)


def test_what_panels_leave_out_is_part_of_the_radius(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(panels_module, "LEFT_OUT", -12.0)
    monkeypatch.setattr(gaussian_law, "LEFT_OUT", -12.0)
    lam, moved = np.array([0.01, 0.7, 5.0, 60.0]), 0.0
    for law in (GaussianLaw(Fraction(2)), GaussianLaw(Fraction(1, 10)), LaplaceLaw(Fraction(3))):
        curve = SampledPair(law, Concentrated(Fraction(1)), Fraction(1, 50), PAIR)
        with np.errstate(all="ignore"):
            found = curve.cgf(lam, BOUNDED)
        with BALLS.at(200):
            for i, x in enumerate(lam.tolist()):
                exact = curve.cgf(np.array([Fraction(x)], dtype=object), BALLS)[0]
                assert BALLS.number(float(found.lower()[i])) <= exact <= BALLS.number(float(found.upper()[i]))
                moved = max(moved, float(abs(exact / BALLS.number(float(found.mid[i])) - 1)))
    assert 1e-12 < moved < 1e-2


def test_the_diameter_is_enclosed_with_its_constant() -> None:
    pair = SampledPair(GaussianLaw(Fraction(1, 2)), Concentrated(Fraction(1, 8)), Fraction(1, 100), PAIR)
    for rate in (Fraction(1, 100), Fraction(2, 3)):
        curve = Diameter(pair, Fraction(1, 2), rate)
        lam = np.array([0.01, 1.0, 63.5])
        with np.errstate(all="ignore"):
            found, at_one = curve.cgf(lam, BOUNDED), curve.at_one(BOUNDED)
        with BALLS.at(200):
            assert BALLS.number(float(at_one.lower())) <= curve.kl(BALLS) <= BALLS.number(float(at_one.upper()))
            for i, x in enumerate(lam.tolist()):
                exact = curve.cgf(np.array([Fraction(x)], dtype=object), BALLS)[0]
                assert BALLS.number(float(found.lower()[i])) <= exact <= BALLS.number(float(found.upper()[i]))
        assert (found.upper() / found.mid - 1 < WIDTH).all()


@pytest.mark.parametrize("kernel", [PAIR, PROFILE], ids=["pair", "profile"])
@pytest.mark.parametrize(
    ("shift", "order"), [("1", "9e5"), ("1", "2e6"), ("1", "1e9"), ("100", "1e5"), ("0.001", "1e12")]
)
def test_far_out_closed_forms_panels_and_integrals_agree(kernel: Kernel, shift: str, order: str) -> None:
    """Balls change from the integral to Lemma 7 at 1e6 = order times shift, enclosures from panels at 2^21."""
    rate, t = Fraction(1, 50), Fraction(shift)
    curve = SampledPair(GaussianLaw(t), Concentrated(t * t / 2), rate, kernel)
    lam = float(Fraction(order)) - 1
    with np.errstate(all="ignore"):
        found = curve.cgf(np.array([lam]), BOUNDED)
    with BALLS.at(200):
        exact = curve.cgf(np.array([Fraction(lam)], dtype=object), BALLS)[0]
        least = BALLS.number(Fraction(lam) + 1) * (BALLS.number(rate).log() + BALLS.number(t * t / 2 * Fraction(lam)))
        assert abs(exact - least).upper() < exact * BALLS.number(1e-12)
        assert BALLS.number(float(found.lower()[0])) <= exact <= BALLS.number(float(found.upper()[0]))
    assert found.upper()[0] / found.mid[0] - 1 < WIDTH


def test_what_no_float_can_carry_has_a_closed_form() -> None:
    for rate, shift in ((Fraction(1, 10**200), Fraction(1)), (Fraction(1, 3), Fraction(1, 10**200))):
        curve = SampledPair(GaussianLaw(shift), Concentrated(shift * shift / 2), rate, PAIR)
        with np.errstate(all="ignore"):
            found = curve.cgf(np.array([1.0]), BOUNDED)
        # at order 2 it is log(1 + g^2 (e^s - 1)), and joint convexity says log(1 + g (e^s - 1))
        whole = math.expm1(float(shift) ** 2)
        assert found.lower()[0] <= whole * float(rate) ** 2
        assert found.upper()[0] == pytest.approx(whole * float(rate), rel=1e-9, abs=1e-290)
