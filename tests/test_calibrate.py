"""Calibration against closed forms and brute force: the value meets the target, its neighbour fails."""

from __future__ import annotations

import json
import math
import pickle
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import pytest

import cumulant as cm
from cumulant.calibrate import Calibration, calibrate
from cumulant.cli.app import answer as shell
from cumulant.domains import NONNEGATIVE, POSITIVE, Domain, Exact
from cumulant.errors import InputError
from cumulant.exact import answer
from cumulant.numerics.ranks import Ranks

SAMPLE = cm.WithoutReplacement(rate="0.001")
STEP = cm.Gaussian(sigma=5) @ SAMPLE


def verified(found: Calibration, build: Callable[[Any], cm.Expression], target: Any, **asked: Any) -> Calibration:
    """What the result says about itself, asked again from the beginning."""
    asked = {"method": "best", **asked}
    assert found.run == build(found.value)
    assert found.guarantee == found.run.guarantee(**asked)
    assert Fraction(found.guarantee.epsilon) <= Exact(target)
    if found.fails is not None:
        assert Fraction(build(found.fails).guarantee(**asked).epsilon) > Exact(target)
    return found


def ends(found: Calibration) -> tuple[str, str]:
    return str(found.value), str(found.fails)


# ---- one question, one answer


def test_the_default_is_the_best_method_as_in_the_shell(capsys: pytest.CaptureFixture[str]) -> None:
    """sigma 2.25 meets epsilon = 2 by the exact layer; by Renyi divergences alone it takes 2.33."""
    text = "Gaussian(sigma=?) @ WithoutReplacement(rate=0.001) * 600000"
    found = verified(
        calibrate(text, epsilon=2, delta=1e-8),
        lambda sigma: cm.Gaussian(sigma) @ SAMPLE * 600_000,
        2,
        delta=1e-8,
        method="best",
    )
    assert found.guarantee.method == "best"
    assert found.guarantee.epsilon == found.run.epsilon(1e-8)
    assert float(found.value) < 2.3
    assert shell(["calibrate", text, "--epsilon", "2", "--delta", "1e-8", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == json.loads(found.to_json())


@pytest.mark.parametrize("epsilon", ["0.1", "2"])
def test_lattices_are_asked_near_the_answer_only_and_their_lower_ends_once(
    monkeypatch: pytest.MonkeyPatch, epsilon: str
) -> None:
    asked = {"upper_end": 0, "lower_end": 0}
    for name in asked:
        original = getattr(answer, name)

        def counted(*given: Any, name: str = name, original: Any = original) -> Any:
            asked[name] += 1
            return original(*given)

        monkeypatch.setattr(answer, name, counted)
    found = calibrate("Laplace(scale=?) @ WithoutReplacement(rate=0.001) * 1000", epsilon=epsilon, delta="1e-8")
    assert found.fails is not None
    assert asked["lower_end"] == 1
    assert asked["upper_end"] <= 20


def test_a_target_that_only_the_exact_layer_can_meet() -> None:
    """Two rounds give themselves away with probability g/10 each, and otherwise say nothing: 1 - (1 - g/10)^2 <= delta.

    Renyi divergences of separated laws are infinite at every order.
    """
    text = "from_masses(p=[0, 0.9, 0.1], q=[0.1, 0.9, 0]) @ WithoutReplacement(rate=?) * 2"
    with pytest.raises(InputError, match="no value of rate meets"):
        calibrate(text, epsilon=1, delta="0.05", method="rdp")
    assert ends(calibrate(text, epsilon=1, delta="0.05")) == ("0.253205", "0.253206")


# ---- closed forms


@pytest.mark.parametrize("target", ["0.01", "1", "40"])
@pytest.mark.parametrize("times", [1, 1000])
def test_noise_of_a_gaussian(target: str, times: int) -> None:
    # eq. (3) on a line: epsilon = rho + 2 sqrt(rho L), rho = k / (2 sigma^2), L = log(1/delta)
    asked: dict[str, Any] = {"delta": "1e-6", "bound": "best", "conversion": "classic"}
    found = calibrate(f"Gaussian(sigma=?) * {times}", epsilon=target, **asked)
    verified(found, lambda sigma: cm.Gaussian(sigma=sigma) * times, target, **asked)
    length = math.log(1e6)
    sigma = math.sqrt(times / 2) / (math.sqrt(length + float(target)) - math.sqrt(length))
    assert found.parameter == "sigma"
    assert found.fails is not None
    assert float(found.fails) < sigma <= float(found.value)
    assert 0 < found.value - found.fails <= found.value / 10**5


@pytest.mark.parametrize(("digits", "value", "fails"), [(1, "10", "9"), (3, "9.66", "9.65"), (12, None, None)])
def test_digits(digits: int, value: str | None, fails: str | None) -> None:
    # rho + 2 sqrt(rho L) = 0.55 at L = log(1e6): sigma = 9.651...
    found = calibrate("Gaussian(sigma=?)", epsilon=0.55, delta=1e-6, digits=digits, conversion="classic")
    exact = math.sqrt(1 / 2) / (math.sqrt(math.log(1e6) + 0.55) - math.sqrt(math.log(1e6)))
    assert found.fails is not None
    if value is None:
        assert float(found.value) == pytest.approx(exact, rel=1e-10)
        assert found.value - found.fails == Fraction(1, 10**11)
    else:
        assert ends(found) == (value, fails)


def test_repetitions_of_a_pure_mechanism() -> None:
    found = verified(
        calibrate("? * Laplace(10)", epsilon=2.05, delta=0), lambda k: cm.Laplace(10) * int(k), 2.05, delta=0
    )
    assert (found.parameter, *ends(found)) == ("times", "20", "21")


def test_rate_and_sample_size_by_lemma_3() -> None:
    # log(1 + g (e - 1)) <= 1/2
    rate = math.expm1(0.5) / math.expm1(1)
    found = calibrate("PureDP(1) @ WithoutReplacement(?)", epsilon=0.5, delta=0)
    assert found.parameter == "rate"
    assert found.fails is not None
    assert float(found.value) <= rate < float(found.fails)
    found = calibrate("PureDP(1) @ WithoutReplacement(sample=?, population=123457)", epsilon=0.5, delta=0)
    assert ends(found) == (str(math.floor(rate * 123457)), str(math.floor(rate * 123457) + 1))
    found = calibrate("PureDP(1) @ WithoutReplacement(population=?, sample=100)", epsilon=0.5, delta=0)
    assert ends(found) == (str(math.ceil(100 / rate)), str(math.ceil(100 / rate) - 1))


def test_epsilon_and_slack_of_a_promise() -> None:
    found = calibrate("PureDP(?)", epsilon=0.125, delta=0)
    assert (found.parameter, *ends(found)) == ("epsilon", "0.125", "0.125001")
    found = calibrate("ApproximateDP(epsilon=0.125, delta=?)", epsilon=0.125, delta=1e-6)
    assert ends(found) == ("1e-6", "1.00001e-6")
    found = calibrate("RandomizedResponse(p=?)", epsilon=1, delta=0)
    assert found.fails is not None
    assert float(found.value) <= 1 / (1 + math.exp(-1)) < float(found.fails)


def test_the_target_is_exact() -> None:
    """The float nearest to 1/10 lies above it, that nearest to 3/10 below: neither stands for the target."""
    assert Fraction(0.1) > Fraction("0.1")
    assert Fraction(0.3) < Fraction("0.3")
    for target in ("0.1", 0.1):
        found = verified(calibrate("PureDP(?)", epsilon=target, delta=0), cm.PureDP, target, delta=0)
        assert ends(found) == ("0.0999999", "0.1")
        with pytest.raises(
            cm.InputError, match=r"meets epsilon <= 0.1 .* is 0.1 \(as a float, which is more\) at times=1"
        ):
            calibrate("PureDP(0.1) * ?", epsilon=target, delta=0)
    for target in ("0.3", 0.3):  # the bound of PureDP(0.3) is rounded up, to the float above 3/10
        assert ends(calibrate("PureDP(?)", epsilon=target, delta=0)) == ("0.299999", "0.3")
    assert ends(calibrate("PureDP(?)", epsilon=Fraction(0.1), delta=0, digits=2)) == ("0.1", "0.11")


# ---- integers, functions, domains


def test_integers_by_brute_force() -> None:
    def build(k: Any) -> cm.Expression:
        return STEP * (1000 * int(k))

    asked: dict[str, Any] = {"delta": 1e-8, "method": "paper"}
    for target in (0.3, 1.0, 1.7):
        found = verified(calibrate(build, epsilon=target, domain=range(1, 600), **asked), build, target, **asked)
        meeting = [k for k in range(1, 600) if build(k).epsilon(**asked) <= target]
        assert ends(found) == (str(max(meeting)), str(max(meeting) + 1))


def test_a_sum_of_which_one_part_is_unknown() -> None:
    found = calibrate(
        "Gaussian(sigma=5) @ WithoutReplacement(rate=0.001) * 600000 + Laplace(scale=?)", epsilon=1, delta=1e-8
    )
    verified(found, lambda scale: STEP * 600_000 + cm.Laplace(scale), 1, delta=1e-8)


def test_a_function_is_named_after_its_argument_and_may_take_negative_numbers() -> None:
    found = calibrate(lambda power: cm.Gaussian(sigma=2**power), epsilon=3, delta=1e-6, domain=(-5, 5))
    assert found.parameter == "power"
    verified(found, lambda power: cm.Gaussian(sigma=2**power), 3, delta=1e-6)
    mirrored = calibrate(lambda power: cm.Gaussian(sigma=2**-power), epsilon=3, delta=1e-6, domain=(-5, 5))
    assert (mirrored.value, mirrored.fails) == (-found.value, -(found.fails or 0))


def test_a_domain_ends_where_everything_meets() -> None:
    found = calibrate("PureDP(1) @ WithoutReplacement(rate=?)", epsilon=5, delta=0)
    assert ends(found) == ("1", "None")
    found = calibrate("Gaussian(sigma=?)", epsilon=1, delta=1e-5, domain=(10, 20))
    assert ends(found) == ("10", "None")
    assert found.to_dict()["fails"] is None


def test_a_domain_narrows_what_the_text_allows() -> None:
    found = calibrate("Gaussian(sigma=?)", epsilon=1, delta=1e-5, domain=(-5, 20))
    assert found.value == calibrate("Gaussian(sigma=?)", epsilon=1, delta=1e-5).value
    assert calibrate("Gaussian(sigma=?)", epsilon=1, delta=1e-5, domain=range(1, 20)).value == math.ceil(found.value)


@pytest.mark.parametrize(
    ("text", "epsilon", "delta"),
    [("Gaussian(sigma=1) @ Poisson(rate=?) * 3", 0.5, 1e-9), ("RandomizedResponse(p=?) * 4", 0.5, 0.02)],
)
def test_what_grids_do_far_below_the_target_is_not_a_refusal(text: str, epsilon: float, delta: float) -> None:
    """At rate 1e-10 grids err by more than the epsilon they are asked for, a ten thousandth of the target."""
    found = calibrate(text, epsilon=epsilon, delta=delta, digits=3)
    assert found.fails is not None
    meets, fails = (cm.parse(text.replace("?", str(each))).epsilon(delta) for each in (found.value, found.fails))
    assert meets <= epsilon < fails


def test_infinite_epsilons_on_the_way() -> None:
    # nothing is proved while the slack of k promises exceeds delta: 10 k <= 35
    promise = "ApproximateDP(epsilon=0.001, delta=1e-5)"
    found = calibrate(f"{promise} * ?", epsilon=100, delta=3.5e-5)
    assert ends(found) == ("3", "4")


def test_few_evaluations(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []
    guarantee = cm.Expression.guarantee

    def counted(self: cm.Expression, *args: Any, **options: Any) -> cm.Guarantee:
        asked.append(self)
        return guarantee(self, *args, **options)

    monkeypatch.setattr(cm.Expression, "guarantee", counted)
    for text in ("Gaussian(sigma=?) @ WithoutReplacement(rate=0.001) * 600000", "ZeroConcentrated(rho=?) * 7"):
        asked.clear()
        calibrate(text, epsilon=2, delta=1e-8, method="rdp", bound="theorem9" if "@" in text else None)
        assert len(asked) <= 20
    asked.clear()
    calibrate("ApproximateDP(epsilon=0.125, delta=?)", epsilon=0.125, delta=1e-6)  # a step: nothing to interpolate
    assert len(asked) <= 40


def test_the_result_is_data() -> None:
    found = calibrate("Laplace(scale=10) * ?", epsilon=1.05, delta=0)
    fields = json.loads(found.to_json())
    assert (fields["parameter"], fields["value"], fields["fails"]) == ("times", 10, 11)
    assert fields["run"] == "Laplace(scale=10) * 10"
    assert fields["guarantee"] == found.guarantee.to_dict()
    assert pickle.loads(pickle.dumps(found)) == found


# ---- what cannot be answered


@pytest.mark.parametrize(
    ("run", "options", "sentence"),
    [
        ("PureDP(1) * ?", {"epsilon": 0.5}, "no value of times meets .* the smallest epsilon is 1 at times=1,"),
        ("Gaussian(sigma=?)", {}, "no value of sigma meets .* the smallest epsilon is inf .* to sigma=1e30"),
        ("Gaussian(sigma=?)", {"delta": 1}, "every value of sigma meets .* nothing to calibrate"),
        ("Gaussian(sigma=1)", {}, "the expression has no '\\?' to solve for"),
        ("RandomizedResponse(p=?) * ?", {}, "the expression has 2 '\\?'; leave one"),
        ("Gaussian(sigma=?", {}, "unexpected end at position 16"),
        ("Gaussian(sigma=1, geometry=?)", {}, "geometry='1' is unknown"),
        ("Gaussian(sigma=?)", {"domain": (2, 1)}, r"domain=\(2, 1\) must be \(low, high\) with low < high"),
        ("Gaussian(sigma=?)", {"domain": range(1, 9, 2)}, "or for integers a range with step 1"),
        ("Gaussian(sigma=?)", {"domain": (-5, -2)}, "there is no number of 6 digits"),
        ("Gaussian(sigma=?)", {"digits": 0}, "digits=0 must be an integer in"),
        ("Gaussian(sigma=?)", {"epsilon": -1}, "epsilon=-1 must be a number in"),
        (lambda sigma: sigma, {}, "the function returned Exact at sigma=1; it must return what runs"),
        (cm.Laplace(2), {}, "Laplace has no unknown; give a text with '\\?' or a function"),
    ],
)
def test_one_sentence(run: Any, options: dict[str, Any], sentence: str) -> None:
    with pytest.raises(cm.InputError, match=sentence):
        calibrate(run, **{"epsilon": 1, "delta": 0, **options})


def test_what_is_not_monotone() -> None:
    with pytest.raises(cm.InputError, match=r"epsilon is not monotone in x: it is .* give a domain where it is"):
        calibrate(lambda x: cm.Gaussian(sigma=(x - 4) ** 2 + 1), epsilon=1, delta=1e-5, domain=(0, 9))
    assert calibrate(lambda x: cm.Gaussian(sigma=(x - 4) ** 2 + 1), epsilon=1, delta=1e-5, domain=(4, 9)).value > 5


# ---- the numbers that are tried


def test_neighbouring_ranks_are_neighbouring_decimals() -> None:
    grid = Ranks.over(NONNEGATIVE, None, digits=2)
    for spelled, after in [("0.099", "0.1"), ("0.99", "1"), ("1", "1.1"), ("9.9", "10"), ("99", "100"), ("100", "110")]:
        rank = grid.below(Exact(spelled))
        assert (grid.value(rank), grid.value(rank + 1)) == (Exact(spelled), Exact(after))
        assert (grid.value(-rank), grid.value(-rank - 1)) == (-Exact(spelled), -Exact(after))
        assert grid.below(Exact(after) - Fraction(1, 10**9)) == rank
        assert grid.below(-Exact(spelled) - Fraction(1, 10**9)) == -rank - 1
    assert (int(grid.value(grid.first)), int(grid.value(grid.last))) == (0, 10**30)


def test_the_ends_lie_inside() -> None:
    half_open = Domain(Fraction(1, 2), Fraction(1), low_closed=True)
    grid = Ranks.over(half_open, None, digits=3)
    assert (str(grid.value(grid.first)), str(grid.value(grid.last))) == ("0.5", "0.999")
    grid = Ranks.over(POSITIVE, Domain(Fraction("1.2345"), Fraction("6.7891"), True, True), digits=3)
    assert (str(grid.value(grid.first)), str(grid.value(grid.last))) == ("1.24", "6.78")


def test_what_turns_beyond_the_trials_is_not_called_impossible() -> None:
    """Subsets of 9 of 10 values have epsilon 0 at delta 0.1, beyond sizes with 1.75 and 1.80."""
    with pytest.raises(
        cm.InputError, match=r"epsilon is not monotone in size: .* 0 at size=9; give a domain where it is"
    ):
        cm.calibrate("SubsetSelection(values=10, size=?, epsilon=2)", epsilon=1, delta="0.1")
