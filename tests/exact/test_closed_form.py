"""One round in closed form, against the definition of the profile in 60 digits: no scale at which it gives up."""

import math
from collections.abc import Callable
from fractions import Fraction

import pytest
from flint import arb, ctx

import cumulant as cm
from cumulant.exact import closed_form
from cumulant.pairs.gaussian import GaussianPair
from cumulant.pairs.laplace import LaplacePair
from cumulant.pairs.pair import Pair
from cumulant.pairs.response import ResponsePair

SHIFTS = ["1e-58", "1e-6", "0.01", "1", "30", "1e5"]


def exact(value: Fraction) -> arb:
    return arb(value.numerator) / arb(value.denominator)


def gaussian(t: Fraction, e0: arb) -> arb:
    """P(x > eps) - e^eps Q(x > eps), the loss x = t z - t^2/2 under N(t, 1) and N(0, 1)."""
    shift, root = exact(t), arb(2).sqrt()
    cut = e0 / shift + shift / 2
    return ((cut - shift) / root).erfc() / 2 - e0.exp() * (cut / root).erfc() / 2


def laplace(t: Fraction, e0: arb) -> arb:
    return -((e0 - exact(t)) / 2).expm1()


def response(t: Fraction, e0: arb) -> arb:
    return -(e0 - exact(t)).expm1() / (1 + (-exact(t)).exp())


KINDS: list[tuple[Callable[[Fraction], Pair], Callable[[Fraction, arb], arb]]] = [
    (GaussianPair, gaussian),
    (LaplacePair, laplace),
    (lambda t: ResponsePair(epsilon=t), response),
]


@pytest.mark.parametrize("kind", range(len(KINDS)), ids=["gaussian", "laplace", "response"])
@pytest.mark.parametrize("shift", SHIFTS)
@pytest.mark.parametrize("rate", [Fraction(1), Fraction(1, 10**3), Fraction(1, 10**12)])
@pytest.mark.parametrize("share", ["1e-200", "1e-5", "0.5", "0.95", "0.999", "0.9999999999"])
def test_both_ends_meet_at_the_truth(kind: int, shift: str, rate: Fraction, share: str) -> None:
    pair_of, profile = KINDS[kind]
    pair, t = pair_of(Fraction(shift)), Fraction(shift)
    before, ctx.prec = ctx.prec, 4000
    try:
        distance = exact(rate) * profile(t, arb(0))
        delta = Fraction(float(distance)) * Fraction(share)
        low, high = closed_form.single_lower_epsilon(pair, rate, delta), closed_form.single_epsilon(pair, rate, delta)
        assert low is not None
        assert 0 <= low < high < math.inf
        # the definition, at both ends: enough above, not enough below
        for epsilon, enough in ((high, True), (low, False)):
            e0 = (1 + (exact(Fraction(epsilon)).expm1()) / exact(rate)).log()
            needed = exact(rate) * profile(t, e0)
            assert (needed <= exact(delta)) if enough else (needed >= exact(delta))
        assert high - low <= 1e-12 * high
    finally:
        ctx.prec = before


def test_delta_is_rounded_up_and_tight_at_every_scale() -> None:
    before, ctx.prec = ctx.prec, 4000
    try:
        for shift in SHIFTS:
            for place in ("1e-3", "0.5", "1", "3"):
                t, rate = Fraction(shift), Fraction(1, 100)
                epsilon = Fraction(place) * t * max(t, Fraction(1))
                e0 = (1 + exact(epsilon).expm1() / exact(rate)).log()
                truth = exact(rate) * gaussian(t, e0)
                found = closed_form.single_delta(GaussianPair(t), rate, epsilon)
                assert exact(Fraction(found)) >= truth
                assert found <= float(truth) * (1 + 1e-14) + 1e-320
    finally:
        ctx.prec = before


@pytest.mark.parametrize(
    ("run", "delta", "truth"),
    [
        ("Gaussian(sigma=1)", "0.38", 0.00948640596108),
        ("Gaussian(sigma=0.5) @ WithoutReplacement(rate=0.001)", "0.000669036", 8.8942610084e-05),
        ("Gaussian(sigma=390000)", "1e-6", 4.61898314159e-08),
        ("PureDP(1)", "0.46211715726", 3.6284861843e-14),
    ],
)
def test_just_below_the_total_variation(run: str, delta: str, truth: float) -> None:
    found = cm.parse(run).guarantee(delta=delta)
    assert found.lower is not None
    assert found.lower == pytest.approx(truth, rel=1e-9)
    assert found.epsilon == pytest.approx(truth, rel=1e-9)
    assert found.lower <= found.epsilon
    assert found.rigour == "proved"


def test_what_cannot_be_shown_is_not_a_witness(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where no comparison is decided the answer is infinite from above and nothing from below."""
    monkeypatch.setattr(closed_form, "_log_excess", lambda *_: (None, math.nan))
    pair = GaussianPair(Fraction(1))
    assert closed_form.single_epsilon(pair, Fraction(1), Fraction(1, 100)) == math.inf
    assert closed_form.single_lower_epsilon(pair, Fraction(1), Fraction(1, 100)) is None
    found = cm.Gaussian(sigma=1).guarantee(delta="0.01")
    assert found.lower is None
    assert math.isfinite(found.epsilon)  # by Renyi divergences
    assert "no grid" in found.note or found.route == "cks"


@pytest.mark.parametrize("sigma", ["1e-3", "1e-5", "0.02"])
def test_noise_far_below_the_sensitivity(sigma: str) -> None:
    """Where the Renyi answer is up to 1.0035 times the truth."""
    run = cm.Gaussian(sigma=sigma)
    found = run.guarantee(delta=1e-5)
    assert found.route == "closed form"
    assert found.epsilon < run.epsilon(1e-5, method="rdp")


def test_many_gaussians_without_a_sample_are_one() -> None:
    run = cm.Gaussian(sigma=5) * 600_000
    found = run.guarantee(delta=1e-8)
    assert found.route == "closed form"
    assert found.note == ""
    assert found.epsilon == pytest.approx(12868.4251937, rel=1e-10)  # t = sqrt(600000)/5: t^2/2 + 5.6 t, nearly
    assert (cm.Gaussian(sigma=1_000_000) * 10**12).guarantee(delta=1e-6).epsilon == pytest.approx(
        cm.Gaussian(sigma=1).guarantee(delta=1e-6).epsilon, rel=1e-12
    )


@pytest.mark.parametrize("delta", [1e-3, 1e-5, 1e-9])
def test_one_poisson_round_has_a_closed_form(delta: float) -> None:
    """The profile of ((1-q)Q + qP, Q), by the definition, and of its reverse, which needs less."""
    q, run = 0.01, cm.Gaussian(sigma=1) @ cm.Poisson(rate="0.01")
    found = run.guarantee(delta=delta)
    assert found.route == "closed form"
    before, ctx.prec = ctx.prec, 400
    try:
        a = arb(found.epsilon).exp()
        removed = arb(q) * gaussian(Fraction(1), (1 + (a - 1) / arb(q)).log())
        assert float(removed) == pytest.approx(delta, rel=1e-9)
        rest = 1 - a * (1 - arb(q))
        added = rest * gaussian(Fraction(1), (a * arb(q) / rest).log()) if rest > 0 else arb(0)
        assert added <= removed
    finally:
        ctx.prec = before


def test_many_epsilons_are_one_call_of_the_profile(monkeypatch: pytest.MonkeyPatch) -> None:
    """Questions cost as much as their profiles: no call of its own for each of them."""
    calls: list[int] = []
    real = GaussianPair.profile

    def profile(self: GaussianPair, epsilons: object, on: object) -> object:
        calls.append(1)
        return real(self, epsilons, on)  # type: ignore[arg-type]

    monkeypatch.setattr(GaussianPair, "profile", profile)
    epsilons = [Fraction(i, 10) for i in range(100)] + [Fraction(10) ** 30]
    for rate in (Fraction(1), Fraction(1, 7)):
        found = closed_form.single_deltas(GaussianPair(Fraction(1)), rate, epsilons)
        assert len(calls) == 1
        calls.clear()
        ends = [closed_form.enclosed_delta(GaussianPair(Fraction(1)), rate, epsilon) for epsilon in epsilons]
        assert all(
            low <= value <= high * (1 + Fraction(1, 2**51)) or value <= 5e-324
            for value, (low, high) in zip(found, ends, strict=True)
        )
        calls.clear()
    run = cm.Gaussian(sigma=1)
    assert list(run.delta([0, 1, 2])) == [run.delta(0), run.delta(1), run.delta(2)]
