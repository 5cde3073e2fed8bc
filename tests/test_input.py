"""Bad input: one clear sentence, and nothing is made."""

import math
import operator
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import cumulant as cm
from cumulant.conversion.tradeoff import advantage, true_positive_rate

BAD: list[Any] = [
    math.nan,
    math.inf,
    -math.inf,
    True,
    False,
    None,
    "",
    "abc",
    "1e999999999",
    "1/0",
    "0x10",
    "nan",
    [1],
    {},
    1j,
]
BAD += [np.bool_(True), np.float64("nan"), Decimal("NaN"), Decimal("1e99999"), "١", "1" * 500, 10**2000]


@pytest.mark.parametrize("value", BAD, ids=lambda value: repr(value)[:20])
@pytest.mark.parametrize(
    "make",
    [
        lambda v: cm.Gaussian(sigma=v),
        lambda v: cm.Gaussian(sigma=1, sensitivity=v),
        lambda v: cm.Laplace(scale=v),
        lambda v: cm.RandomizedResponse(p=v),
        lambda v: cm.PureDP(v),
        lambda v: cm.ApproximateDP(1, v),
        lambda v: cm.ZeroConcentrated(rho=v),
        lambda v: cm.WithoutReplacement(rate=v),
        lambda v: cm.WithoutReplacement(sample=v, population=10),
        lambda v: cm.from_rdp_points([2, 3], [v, 1]),
        lambda v: cm.from_masses([v, 0], [1, 0]),
        lambda v: cm.Gaussian.from_clipping(norm=v, noise=1, relation="replace-one"),
        lambda v: cm.Gaussian(sigma=1).epsilon(delta=[v]),
        lambda v: cm.Gaussian(sigma=1).delta(epsilon=[v]),
    ],
)
def test_not_a_number(make: Any, value: Any) -> None:
    with pytest.raises(cm.InputError) as caught:
        make(value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: cm.Gaussian(sigma=-1), r"sigma=-1 must be a number in [0, inf)"),
        (lambda: cm.RandomizedResponse(p=0.4), "p=0.4 must be a number in [0.5, 1)"),
        (lambda: cm.RandomizedResponse(p=1), "p=1 must be a number in [0.5, 1)"),
        (lambda: cm.WithoutReplacement(rate=2), "rate=2 must be a number in [0, 1]"),
        (
            lambda: cm.WithoutReplacement(rate=1.2),
            "rate=1.2 must be a number in [0, 1]; for sample and population sizes use WithoutReplacement(sample=…",
        ),
        (lambda: cm.WithoutReplacement(sample=11, population=10), "sample=11 must be at most population=10"),
        (lambda: cm.WithoutReplacement(sample="1.5", population=10), "sample=1.5 must be an integer in"),
        (lambda: cm.WithoutReplacement(), "takes rate=…, or sample=… and population=…"),
        (lambda: cm.WithoutReplacement(rate=0.1, sample=1), "takes rate=…, or sample=… and population=…"),
        (lambda: cm.Gaussian(sigma=1) * -1, "times=-1 must be an integer in"),
        (lambda: operator.mul(cm.Gaussian(sigma=1), 0.5), "times=0.5 must be an integer in"),
        (lambda: cm.Gaussian(sigma=1).epsilon(delta=-1e-9), "delta=-1e-9 must be a number in [0, 1]"),
        (lambda: cm.Gaussian(sigma=1).rdp(0.5), "order=0.5 must be at least 1"),
        (lambda: cm.Gaussian(sigma=1).rdp(math.nan), "order=nan must be at least 1"),
        (lambda: cm.Gaussian(sigma=1).rdp("x"), "is not a number"),
        (lambda: cm.Gaussian(sigma=1).rdp([True]), "must be a number or a flat sequence of numbers"),
        (
            lambda: cm.Gaussian(sigma=1).rdp(2, bound="theorem8"),
            "bound='theorem8' is unknown (did you mean 'theorem9'?); choose one of caps",
        ),
        (
            lambda: cm.Gaussian(sigma=1).epsilon(1e-5, method="magic"),  # type: ignore[call-overload]
            "method='magic' is unknown",
        ),
        (
            lambda: cm.Gaussian(sigma=1).epsilon(1e-5, conversion="magic"),  # type: ignore[call-overload]
            "conversion='magic' is unknown",
        ),
        (lambda: cm.Gaussian(sigma=1).epsilon(1e-5, method="paper", bound="best"), "fixes bound and conversion"),
        (lambda: cm.Gaussian.from_clipping(1, 1, "sideways"), "relation='sideways' is unknown"),
        (lambda: cm.from_masses([0.5, 0.4], [0.5, 0.5]), "the masses of p must sum to 1, not to 0.9"),
        (lambda: cm.from_masses([1], [0.5, 0.5]), "p and q must have the same length"),
        (lambda: cm.from_rdp_points([3, 2], [1, 1]), "orders must increase"),
        (lambda: cm.from_rdp(rdp=3), "must be a function of the order"),  # type: ignore[arg-type]
        (lambda: cm.from_rdp(rdp=lambda a: -1.0).rdp(2), "never negative"),
    ],
)
def test_sentences(make: Any, sentence: str) -> None:
    with pytest.raises(cm.InputError) as caught:
        make()
    assert sentence in str(caught.value)


@pytest.mark.parametrize("value", [2, 2.0, "2", "2.00", "4/2", Fraction(2), Decimal("2"), np.float64(2), np.int64(2)])
def test_numbers_are_exact_whatever_their_type(value: Any) -> None:
    assert cm.Gaussian(sigma=value) == cm.Gaussian(sigma=2)


def test_a_float_is_the_decimal_it_prints_as() -> None:
    assert cm.WithoutReplacement(rate=0.001) == cm.WithoutReplacement(rate=Fraction(1, 1000))


def test_operators_of_other_types() -> None:
    step: Any = cm.Gaussian(sigma=1)
    assert np.int64(3) * step == step * 3
    wrongs: list[Callable[[], Any]] = [lambda: step + 1, lambda: step @ 0.5, lambda: step @ step]
    for wrong in wrongs:
        with pytest.raises(TypeError):
            wrong()


def test_clipping_doubles_under_replace_one() -> None:
    """E-2: z = 1, rate 0.001, 10,000 rounds, delta 1e-5: 1.336 claimed, 9.02 true; z = 2: 0.531 and 1.336."""
    for noise, wrong, right in ((1, 1.336, 9.02), (2, 0.531, 1.336), (5, 0.233, 0.420)):
        sample = cm.WithoutReplacement(rate=0.001)
        clipped = cm.Gaussian.from_clipping(norm=1, noise=noise, relation="replace-one")
        assert (clipped @ sample * 10_000).epsilon(delta=1e-5, method="paper") == pytest.approx(right, rel=2e-3)
        naive = cm.Gaussian(sigma=noise) @ sample * 10_000
        assert naive.epsilon(delta=1e-5, method="paper") == pytest.approx(wrong, rel=2e-3)
    added = cm.Gaussian.from_clipping(norm=1, noise=2, relation="add-remove")
    assert added.rdp(2) == cm.Gaussian(sigma=2).rdp(2)
    with pytest.raises(cm.RelationError):
        added @ cm.WithoutReplacement(rate=0.1)


def test_points_are_never_extrapolated() -> None:
    """E-8: chords of K between points, nothing beyond."""
    points = cm.from_rdp_points([2, 4, 8], [0.1, 0.3, 0.4])
    k = {1: 0.1, 3: 0.9, 7: 2.8}
    assert points.cgf([0.5, 2, 5]) == pytest.approx([k[1] / 2, (k[1] + k[3]) / 2, (k[3] + k[7]) / 2])
    assert points.rdp([9, math.inf]).tolist() == [math.inf, math.inf]
    assert points.rdp(1) == pytest.approx(0.1)


@pytest.mark.parametrize("delta", [3, "1.0000001", 1.5, Fraction(10, 9), math.inf])
def test_a_delta_above_one_is_no_delta(delta: Any) -> None:
    """An epsilon that landed in its place would come out as epsilon = 0."""
    run = cm.Gaussian(sigma=1) @ cm.WithoutReplacement(rate=0.1)
    questions: list[Callable[[], Any]] = [
        lambda: run.epsilon(delta),
        lambda: run.epsilon([1e-5, delta]),
        lambda: run.epsilon(delta, method="paper"),
        lambda: run.epsilon(delta, method="naive"),
        lambda: run.guarantee(delta=delta),
        lambda: run.epsilon_over([1, 2], delta=delta),
        lambda: cm.calibrate("Gaussian(sigma=?)", epsilon=1, delta=delta),
        lambda: true_positive_rate([0.1], [1], [delta]),
        lambda: advantage([1], [delta]),
    ]
    for question in questions:
        with pytest.raises(cm.InputError, match=r"delta=.* must be a number in \[0, 1\]"):
            question()


def test_a_delta_of_one_is_no_privacy_at_all() -> None:
    run = cm.Gaussian(sigma=1) @ cm.WithoutReplacement(rate=0.1)
    for method in ("best", "exact", "rdp", "paper", "naive", "strong", "optimal"):
        assert run.epsilon(1, method=method) == 0.0
    assert run.epsilon([1, "1.0"]).tolist() == [0.0, 0.0]
    assert run.guarantee(delta=1).epsilon == 0.0
    assert run.epsilon_over([1, 2], delta=1).tolist() == [0.0, 0.0]


def test_what_used_to_be_a_traceback() -> None:
    run: Any = cm.Gaussian(sigma=1)
    wrongs: list[tuple[Callable[[], Any], str]] = [
        (lambda: run.epsilon(1e-5, method=[]), r"method=\[\] must be a name"),
        (lambda: run.trade_off(method=[]), r"method=\[\] must be a name"),
        (lambda: run.epsilon(1e-5, conversion=[]), r"conversion=\[\] must be a name"),
        (lambda: run.epsilon(1e-5, bound=""), "bound='' must be a name"),
        (lambda: run.epsilon_over(5, delta=1e-5), "times=5 must be a list of numbers"),
        (lambda: cm.Gaussian(sigma=Fraction(10**400, 3)), "out of range; magnitudes go from 1e-300 to 1e300"),
        (lambda: cm.Gaussian(sigma=1, sensitivity=Fraction(1, 10**400)), "out of range"),
    ]
    for wrong, sentence in wrongs:
        with pytest.raises(cm.InputError, match=sentence):
            wrong()


def test_several_false_positive_rates() -> None:
    run = cm.PureDP(1)
    several = run.true_positive_rate([0.01, 0.1])
    assert several.tolist() == [run.true_positive_rate(0.01), run.true_positive_rate(0.1)]


def test_an_epsilon_beyond_all_exponentials_is_verified() -> None:
    for delta in (0, 1e-5):
        found = cm.PureDP(1e300).guarantee(delta=delta)
        assert found.epsilon == 1e300
        assert found.verify().holds


class Flattering(float):
    """A number that displays another one."""

    def __repr__(self) -> str:
        return "1000"

    __str__ = __repr__


def test_a_float_counts_by_its_value_and_not_by_what_it_displays() -> None:
    assert cm.Gaussian(sigma=Flattering(2.5)) == cm.Gaussian(sigma=2.5)
    assert str(cm.Gaussian(sigma=Flattering(2.5))) == "Gaussian(sigma=2.5)"


def test_zero_has_no_sign() -> None:
    assert {str(cm.PureDP(zero)) for zero in ("-0", -0.0, 0)} <= {"PureDP(epsilon=0)", "PureDP(epsilon=0.0)"}
