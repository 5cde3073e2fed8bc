"""Decay and the other error terms of the line, each against what it bounds, so closely that a broken one is seen."""

import dataclasses
import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from cumulant.exact.inversion import decay, line
from cumulant.exact.inversion.decay import TiltedType
from cumulant.exact.inversion.line import Choice, Line
from cumulant.exact.test_functions import HOCKEY_STICK, THEOREM_B
from cumulant.losses.transform import NODES, ON_BALLS, Lattice, Mixed
from cumulant.numerics.arithmetic import BALLS
from cumulant.numerics.search import falling_threshold
from cumulant.pairs.gaussian import GaussianPair
from cumulant.pairs.laplace import LaplacePair
from cumulant.pairs.logistic import LogisticPair

covered_from: Any = decay._cover_downwards
window_of: Any = decay._build_window
last_of: Any = decay._last_check_point


def two_points(part: str = "9/10") -> Any:
    """The losses -1 and 1 of a law of which so much is in the window, and s_A, all of them exact."""
    from flint import arb

    a = BALLS.number(Fraction(part))
    points = [(arb(1), a / 2), (arb(-1), a / 2)]
    numbers = float(a), float(a)
    return decay._Window(10, points, arb(0), a, a, a, np.array([1.0, -1.0]), np.full(2, float(a) / 2), numbers)


# ---- Lemmas S1 and S2


@pytest.mark.parametrize(("v", "h"), [("1/10", "1/20"), ("1/10", "9/100"), ("1/5", "1/50"), ("1/2", "1/100")])
def test_an_interval_is_bounded_by_its_check_point(v: str, h: str) -> None:
    """|phi_A| = a cos u is largest at v - h; the lemma is sharp there, so that s_A may not be less by more than a little."""
    with BALLS.at(128):
        window, centre, half = two_points(), BALLS.number(Fraction(v)), BALLS.number(Fraction(h))
        a = window.least
        truth = (1 - a + a * (centre - half).cos()).log()
        found = window.bound(centre, half)
        assert truth <= found <= truth + 1e-3
        less = {"1/10": "0.98", "1/5": "0.9", "1/2": "0.3"}[v]
        assert (
            dataclasses.replace(window, spread=window.spread * BALLS.number(Fraction(less))).bound(centre, half) < truth
        )


def test_what_the_window_leaves_out_is_counted() -> None:
    """Where the window vanishes only the rest of the law is left: a tenth, at another loss."""
    with BALLS.at(128):
        window, centre, half = two_points(), BALLS.number(Fraction(157, 100)), BALLS.number(Fraction(1, 10**9))
        bound = window.bound(centre, half).exp()
        rest = 0.1 - 0.9 * abs(math.cos(1.57))
        assert 0.1 <= bound <= 0.102
        whole = dataclasses.replace(window, least=BALLS.number(1), most=BALLS.number(1))
        assert whole.bound(centre, half).exp() < rest


def test_where_the_lemma_says_nothing_nothing_is_claimed() -> None:
    with BALLS.at(128):
        window = two_points()
        assert window.bound(BALLS.number(0), BALLS.number(Fraction(1, 100))) is None  # f = a
        assert window.bound(BALLS.number(Fraction(1, 10)), BALLS.number(Fraction(1, 5))) is None  # r < s_A h
        # an error of the points is an error of f
        blurred = dataclasses.replace(window, error=BALLS.number(Fraction(1, 100)))
        at = BALLS.number(1), BALLS.number(Fraction(1, 100))
        assert blurred.bound(*at) > window.bound(*at)


LAWS = {
    "gauss": (GaussianPair(Fraction(1)), Fraction(1, 10), 3.0),
    "strong gauss": (GaussianPair(Fraction(3)), Fraction(1, 100), 2.0),
    "laplace": (LaplacePair(Fraction(1)), Fraction(1, 5), 4.0),
    "logistic": (LogisticPair(Fraction(2)), Fraction(1, 5), 4.0),
}


def kind_of(name: str, direction: str, times: int = 1000) -> tuple[TiltedType, Mixed, float]:
    pair, rate, lam = LAWS[name]
    law: Any = pair.transform(rate, direction)
    mass = law.rule(lam, 0.0, -60.0, list(law.span(lam, -60.0))).mass()
    return TiltedType(times, mass, float(mass.log().mid()), law), law, lam


def tilted(law: Mixed, lam: float, low: float, high: float, kind: TiltedType) -> tuple[Any, Any, Any]:
    """Losses, masses and densities of the loss on a fine grid of v, signed, in floats; atoms are left out."""
    v = np.linspace(low, high, 200_001)
    L, logs = law.log_tilted(v, lam)
    slope, cell = np.gradient(L, v), np.full(v.size, v[1] - v[0])
    cell[[0, -1]] /= 2
    found = []
    for sign, each in logs.items():
        f = np.exp(each - kind.log_mass)
        with np.errstate(divide="ignore"):
            found.append((sign * L, f * cell, f / slope))
    return tuple(np.concatenate(parts) for parts in zip(*found, strict=True))  # type: ignore[return-value]


@pytest.mark.parametrize("direction", ["remove", "add", "symmetric"])
@pytest.mark.parametrize("name", LAWS)
def test_the_constants_of_a_window_are_those_of_the_law(name: str, direction: str) -> None:
    """a from both sides, and s_A^2 = a INT (L - c)^2 from above by no more than a per cent."""
    with BALLS.at(128):
        kind, law, lam = kind_of(name, direction)
        profile = decay.tilted_profile(kind, law, lam, 20.0)
        window = window_of(kind, profile, lam, 30.0, 20.0, 0.1)
        low, high = float(profile.v[0]), profile.upper_quantile(0.1)
        L, mass, _ = tilted(law, lam, low, high, kind)
        atoms = [
            (float(x.mid()), float((w / kind.mass).mid())) for x, w in law.rule(lam, 0.0, -30.0, [low, high]).atoms
        ]
        L = np.append(L, [x for x, _ in atoms])
        mass = np.append(mass, [w for _, w in atoms])
        a = mass.sum()
        assert float(window.least) <= a + 1e-6
        assert float(window.most) >= a - 1e-6
        assert float(window.most) - float(window.least) < 1e-3
        centre = mass @ L / a
        spread = math.sqrt(a * (mass @ (L - centre) ** 2))
        assert spread * (1 - 1e-4) <= float(window.spread) <= 1.05 * spread + 1e-3


# ---- Lemma S3


@pytest.mark.parametrize("direction", ["remove", "add"])
@pytest.mark.parametrize("name", LAWS)
def test_the_variation_is_not_below_that_of_the_density(name: str, direction: str) -> None:
    """Jumps at the ends included; for one maximum it is twice that, up to the width of the cells, else at most four times."""
    with BALLS.at(128):
        kind, law, lam = kind_of(name, direction)
        profile = decay.tilted_profile(kind, law, lam, 20.0)
        low, high = profile.densest_window(20.0, 1000)
        _, _, density = tilted(law, lam, low, high, kind)
        truth = abs(density[0]) + abs(density[-1]) + np.abs(np.diff(density)).sum()
        found = float((law.variation(lam, low, high) / kind.mass).mid())
        peaks = law.base.peaks(lam + 1 if direction == "remove" else -lam)
        assert truth * (1 - 1e-3) <= found
        assert found <= 2 * peaks * density.max() * 2.5
        # |phi_A(u)| <= V/u
        L, mass, _ = tilted(law, lam, low, high, kind)
        for u in (50.0, 200.0, 1000.0):
            assert abs(np.sum(mass * np.exp(1j * u * L))) <= found / u * (1 + 1e-3)


@pytest.mark.parametrize("direction", ["remove", "add"])
@pytest.mark.parametrize("name", sorted(LAWS))
def test_beyond_the_last_check_point_the_lemma_is_enough_and_not_by_far(name: str, direction: str) -> None:
    with BALLS.at(128):
        kind, law, lam = kind_of(name, direction)
        for exponent in (20.0, 60.0):
            profile = decay.tilted_profile(kind, law, lam, exponent)
            last = last_of([kind], [profile], lam, exponent, Fraction(0))
            low, high = profile.densest_window(exponent, kind.times)
            V = float((law.variation(lam, low, high) / kind.mass).mid())
            rest = 1 - float((law.rule(lam, 0.0, -40.0, [low, high], beyond=False).smooth() / kind.mass).mid())
            assert kind.times * math.log(rest + V / last) <= -exponent
            assert kind.times * math.log(rest + V / (0.995 * last)) > -exponent


@pytest.mark.parametrize("name", ["gauss", "laplace"])
def test_balls_do_not_believe_floats_that_stop_too_early(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    right = falling_threshold
    monkeypatch.setattr(decay, "falling_threshold", lambda *given: 0.99 * right(*given))
    with BALLS.at(128):
        kind, law, lam = kind_of(name, "remove")
        profile = decay.tilted_profile(kind, law, lam, 20.0)
        with pytest.raises(decay.DecayNotProved, match="not far enough"):
            last_of([kind], [profile], lam, 20.0, Fraction(0))


def test_gaussians_alone_decay_where_their_exponent_says() -> None:
    with BALLS.at(128):
        for gauss, exponent in ((Fraction(1, 2), 20.0), (Fraction(3), 50.0)):
            last = last_of([], [], 1.0, exponent, gauss)
            assert gauss * Fraction(last) ** 2 >= Fraction(exponent)
            assert float(gauss) * last**2 <= exponent * (1 + 1e-6)
            window = two_points()
            # |phi|^10 e^{-gauss (v-h)^2} at the near end of the interval
            centre, half = BALLS.number(3), BALLS.number(Fraction(1, 100))
            total = 10 * window.bound(centre, half) - BALLS.number(gauss) * (centre - half) ** 2
            assert decay._decay_is_proved([window], centre, half, float(-total) * (1 - 1e-7), gauss)
            assert not decay._decay_is_proved([window], centre, half, float(-total) * (1 + 1e-6), gauss)


def test_intervals_leave_no_gap(monkeypatch: pytest.MonkeyPatch) -> None:
    """From the last check point down to the frequency that is claimed every point is inside an interval that balls passed."""
    passed: list[tuple[Fraction, Fraction]] = []
    is_proved = decay._decay_is_proved

    def noted(windows: Any, centre: Any, half: Any, *given: Any) -> bool:
        found = is_proved(windows, centre, half, *given)
        if found:
            passed.append((Fraction(float(centre)), Fraction(float(half))))
        return found

    monkeypatch.setattr(decay, "_decay_is_proved", noted)
    with BALLS.at(128):
        kind, law, lam = kind_of("laplace", "remove", 3000)
        profile = decay.tilted_profile(kind, law, lam, 20.0)
        last = last_of([kind], [profile], lam, 20.0, Fraction(0))
        start = decay.decay_frequency([kind], lam, 20.0, Fraction(0), 0.05)
    assert start < last / 3
    assert len(passed) > 2
    wider = 1 + Fraction(1, 2**30)  # what is added to the half width, for the rounding of the centre
    reached = Fraction(last)
    for centre, half in passed:
        assert centre + half * wider >= reached
        reached = min(reached, centre - half * wider)
    assert reached <= Fraction(start)


# ---- the tail, the images and the identity


def flat(lam: float, period: float, count: int, outer: float = 5.0) -> Line:
    """|M| = 1 everywhere."""
    from flint import acb, arb

    choice = Choice(lam, period, 1.0, 1.0, 0.0, 0.0, outer, 128)
    return Line(choice, [acb(1)] * (count + 1), arb(1), arb(0), lambda: arb(1), 0)


@pytest.mark.parametrize("power", [1, 2])
def test_the_tail_is_the_sum_of_what_was_left_out(power: int) -> None:
    """(2/T) SUM_{m>N} |z(1+z)|^-p for |M| = 1: not above the bound, and nearly it, where u is large."""
    with BALLS.at(128):
        found, epsilon = flat(0.01, 2 * math.pi / 10, 40), BALLS.number(Fraction(1, 2))
        z = 0.01 + 10j * np.arange(41, 200_000)
        sizes = 2 / (2 * math.pi / 10) * np.sum(np.abs(z * (1 + z)) ** -float(power)) * math.exp(-0.005)
        bound = float(found.tail(epsilon, HOCKEY_STICK if power == 1 else THEOREM_B))
        assert sizes <= bound <= sizes * 1.05


@pytest.mark.parametrize("epsilon", ["1/5", "1", "3"])
def test_the_identity_holds_with_all_images(epsilon: str) -> None:
    """Theorem L0 for a law of two losses and a period so short that images count: the finite sum is that of all of them."""
    from flint import arb

    with BALLS.at(192):
        a, o, J, lam = arb(1), arb("-1.5"), 3, 0.5
        masses = [
            (arb("-1.5"), arb("0.2")),
            (arb("-0.5"), arb("0.3")),
            (arb("0.5"), arb("0.1")),
            (arb("1.5"), arb("0.4")),
        ]
        T = a * J

        def d(eps: Any) -> Any:
            return sum((p * (-(eps - s).expm1()).nonnegative_part() for s, p in masses), start=arb(0))

        at, order = BALLS.number(Fraction(epsilon)), arb(lam)
        images = sum(((order * j * T).exp() * d(at + j * T) for j in range(-120, 4) if j), start=arb(0))
        from flint import acb

        values = []
        for m in range(2):
            z = acb(order, 2 * arb.pi() * m / T)
            values.append(sum((p * (z * s).exp() for s, p in masses), start=acb(0)))
        choice = Choice(lam, 3.0, math.inf, 1.0, 0.0, 0.0, 2.0, 192)
        top = sum((p * (2 * s).exp() for s, p in masses), start=arb(0))
        found = Line(choice, values, arb(0), arb(0), lambda: top, 0, lattice=Lattice(a, o), folds=J)
        assert abs(found.partial_sum(at) - d(at) - images) < 1e-24
        assert images > 0.05
        assert images <= found.images(at)
        # from below the images are taken out, and more than all of them
        assert found.lower(at) <= d(at) <= found.upper(at)


def test_images_on_the_right_are_as_large_as_their_bound() -> None:
    """One loss where (1 - e^-y) e^{-ty} is largest: c(t) may not be less."""
    from flint import arb

    with BALLS.at(128):
        lam, t, period = 1.0, 4.0, 6.0
        y = BALLS.number(Fraction(5, 4)).log()  # e^y = 1 + 1/t
        epsilon = BALLS.number(Fraction(1, 3))
        s = epsilon + period + y
        choice = Choice(lam, period, 1.0, 1.0, 0.0, 0.0, t, 128)
        left = 1 / (BALLS.number(lam) * period).expm1()
        bound = line.image_bound(choice, arb(period), (t * s).exp(), epsilon) - left
        truth = (BALLS.number(lam) * period).exp() * -(-y).expm1()
        assert truth <= bound <= truth * (1 + 1e-7)
        # on the left d is at most 1, and 1 for a loss far out
        ones = sum(((-BALLS.number(lam) * period * j).exp() for j in range(1, 60)), start=arb(0))
        assert abs(left - ones) < 1e-30


# ---- the transform of one round


@pytest.mark.parametrize("rate", ["1/10", "999/1000", "1"])
def test_the_ends_are_what_lies_beyond(rate: str) -> None:
    """Gaussian noise in both directions, cut off on either side alone: not below what is missing, and of its size."""
    base: Any = LAWS["gauss"][0].transform(Fraction(1, 2), "remove")
    with BALLS.at(128):
        for direction in ("remove", "add"):
            law, lam = Mixed(base.base, Fraction(rate), direction), 1.5
            wide = list(law.span(lam, -80.0))
            whole = law.rule(lam, 0.0, -80.0, wide).mass()
            for side, (low, high) in (("left", (-5.0, wide[1])), ("right", (wide[0], 6.0))):
                kept = law.rule(lam, 0.0, -80.0, [low, high], beyond=False).mass()
                missing, bound = whole - kept, law.beyond(BALLS.number(lam), [low, high])
                assert missing <= bound
                if (side == "right") == (direction == "remove") or (rate == "1/10" and direction == "remove"):
                    assert bound <= 4 * missing  # elsewhere w is far from what bounds it


@pytest.mark.parametrize("name", LAWS)
@pytest.mark.parametrize("direction", ["remove", "add"])
def test_no_point_of_the_rectangle_is_above_the_majorant(name: str, direction: str) -> None:
    """|q0 w^{1+z}| or |q0 w^{-z}| on a fine grid of its boundary, for all |u| up to the top, wide angles included."""
    with BALLS.at(128):
        _, law, lam = kind_of(name, direction)
        t, g = float(law.base.shift), float(law.rate)
        sign = 1 if direction == "remove" else -1
        top = 8.0
        for centre, half, height in ((0.5, 0.4, 0.3), (0.2, 0.3, 0.9 / t), (0.6, 0.3, 2.5 / t)):
            sides = [BALLS.number(x) for x in (centre, half, height)]
            found = float(law.log_majorant(sign, lam, top, sides[0], sides[1], sides[2], ON_BALLS))
            edge = np.linspace(-1, 1, 801)
            v = np.concatenate([centre + half * edge + 1j * height, centre + half + 1j * height * edge])
            v = np.concatenate([v, centre - half + 1j * height * edge])
            w = 1 - g + g * np.exp(t * v)
            power = lam + 1 if sign > 0 else -lam
            q = _log_density(name, v, t)
            size = q + power * np.log(np.abs(w)) + top * np.abs(np.angle(w))
            assert size.max() <= found + 1e-9
            if t * height < 1.5:  # beyond it the angle of w is that of e^x
                assert found - size.max() < 3
        # and the error of a panel is 8 r M rho^-2n / (1 - rho^-2)
        panel = law._panel(BALLS.number(lam), top, 0.0, 0.5, 3.4)
        sides = [BALLS.number(x) for x in (0.25, 0.25 * (3.4 + 1 / 3.4) / 2, 0.25 * (3.4 - 1 / 3.4) / 2)]
        size = float(law.log_majorant(sign, BALLS.number(lam), top, sides[0], sides[1], sides[2], ON_BALLS))
        expected = math.log(8 * 0.25) + size - 2 * NODES * math.log(3.4) - math.log1p(-(3.4**-2))
        assert float(panel.error.log()) == pytest.approx(expected, abs=1e-9)


def test_with_a_wide_angle_w_may_be_small() -> None:
    """g = 1/2 at x = i theta: |w| is cos(theta/2), and the power -z of it the larger."""
    with BALLS.at(128):
        base: Any = LAWS["laplace"][0].transform(Fraction(1, 2), "add")
        lam, height = 4.0, 2.5
        sides = [BALLS.number(x) for x in (0.0, 1e-9, height)]
        found = float(base.log_majorant(-1, lam, 0.0, sides[0], sides[1], sides[2], ON_BALLS))
        truth = math.log(1 / 4) - 0.5 - lam * math.log(math.cos(height / 2))
        assert truth <= found <= truth + 1e-6


@pytest.mark.parametrize("name", ["gauss", "laplace"])
def test_the_second_moment_has_its_own_error(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """Four nodes on one wide panel: the error of INT (L - c)^2 is at most what is stated, and is there."""
    with BALLS.at(128):
        _, law, lam = kind_of(name, "remove")
        fine, c = law.rule(lam, 0.0, -60.0, [0.0, 1.0], beyond=False), BALLS.number(Fraction(1, 3))

        def second(panels: Any) -> Any:
            pairs = [pair for panel in panels for pair in zip(panel.losses, panel.plus, strict=True)]
            return sum((weight * (loss - c) ** 2 for loss, weight in pairs), start=BALLS.number(0))

        truth = second(fine.panels)
        monkeypatch.setattr("cumulant.losses.transform.NODES", 2)
        monkeypatch.setattr("cumulant.losses.transform.legendre_balls", lambda *_: _gauss(2))
        coarse = law._panel(BALLS.number(lam), 0.0, 0.0, 1.0, 2.6)
        missed = abs(second([coarse]) - truth)
        assert missed > 1e-9
        assert missed <= coarse.square_error * (1 + c * c)
        assert coarse.square_error >= 2 * coarse.error


def _gauss(count: int) -> list[Any]:
    from flint import arb

    return [arb.legendre_p_root(count, k, weight=True) for k in range(count)]


def test_the_price_of_smoothing_has_what_lies_beyond_every_frequency() -> None:
    """M = e^{-u^2 s/2}: with few frequencies most of D_tau lies beyond the last, and both parts of its bound are needed."""
    from flint import acb, arb

    with BALLS.at(128):
        s, T, N = 0.02, 20.0, 4
        values = [acb((-arb(s) * (2 * arb.pi() * m / T) ** 2 / 2).exp()) for m in range(400)]
        choice = Choice(1.0, T, 0.0, 1.0, 0.0, 0.0, 3.0, 128)
        tau = Fraction(1, 100)
        given = arb(1), arb(0), lambda: arb(1), 0, Fraction(s), tau
        whole = Line(choice, values, *given)
        few = Line(choice, values[: N + 1], abs(values[N + 1]), *given[1:])
        at = arb(0)
        factor = BALLS.number(tau) * (BALLS.number(tau) / 8).exp()
        assert whole.density_sum(at) > 3 * few.density_sum(at)
        assert few.smoothing_error(at) >= factor * whole.density_sum(at)


def _log_density(name: str, v: Any, t: float) -> Any:
    """log of |q0| in v, from the definition of the noise."""
    if "gauss" in name:
        return ((-((v + t / 2) ** 2)) / 2).real - math.log(2 * math.pi) / 2
    constant = math.log(t / 4) if name == "laplace" else math.log(t / 2 / -math.expm1(-t))
    return constant - t * (v.real + 1) / 2


def test_powers_take_every_round_and_every_kind() -> None:
    with BALLS.at(128):
        laws = [LAWS[name][0].transform(LAWS[name][1], "remove") for name in ("gauss", "laplace")]
        choice = Choice(2.0, 20.0, 20.0, 20.0, 1.0, -10.0, 4.0, 128)
        round_types = [
            line.tilted_type(law, times, choice) for law, times in zip(laws, (5, 7), strict=True) if law is not None
        ]
        width = 2 * BALLS.number(math.pi) / 20
        values, nodes = line.composed_transform(round_types, choice, width, 3, 1.0, 10**6)
        truth = round_types[0].mass ** 5 * round_types[1].mass ** 7
        assert values[0].real.overlaps(truth)
        assert nodes > 32
        with pytest.raises(decay.DecayTooSlow, match="would take 3 frequencies at"):
            line.composed_transform(round_types, choice, width, 3, 1.0, 10)
        with pytest.raises(decay.DecayTooSlow, match="would take 1,000,000,000,000 frequencies"):
            line.composed_transform(round_types, choice, width, 10**12, 1.0, 10)
