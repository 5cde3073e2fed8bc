"""Guarantees that are checked again, explained and sent elsewhere."""

import dataclasses
import math
import pickle
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from decimal import Context, Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import cumulant as cm
from cumulant.accounting.cache import forget_answers
from cumulant.accounting.choices import ConversionName, Method
from cumulant.conversion import certify, renyi_to_dp
from cumulant.conversion.certify import epsilon_on
from cumulant.conversion.conversions import conversion
from cumulant.conversion.verify import Verification, verify
from cumulant.curves.closed_form import Concentrated
from cumulant.curves.curve import Curve
from cumulant.errors import CertificateError, HypothesisError, NotationError
from cumulant.numerics.arithmetic import BALLS
from cumulant.numerics.decimals import Decimals, Interval, decimals
from cumulant.numerics.rounding import stated
from tests.effort import share

W = cm.WithoutReplacement
RUNS: dict[str, cm.Expression] = {
    "gaussian": cm.Gaussian(sigma=2) * 7,
    "sampled gaussian": cm.Gaussian(sigma=5) @ W(rate=0.001) * 600_000,
    "sampled ball": cm.Gaussian(sigma=2, geometry="ball") @ W(rate="1/3") * 3,
    "sampled laplace": cm.Laplace(scale=2) @ W(sample=256, population=60_000) * 9000,
    "sampled response": cm.RandomizedResponse(p=0.6) @ W(rate=0.01) * 100,
    "pure": cm.PureDP("1/3") * 3,
    "slack": cm.ApproximateDP(0.1, "1e-300") * 2 + cm.ZeroConcentrated(rho="0.01", xi="0.001"),
    "sampled promise": cm.ApproximateDP(0.5, 1e-9) @ W(rate=0.1) * 20,
    "points": cm.from_rdp_points([2, 4, "8.5"], [0.1, 0.3, 0.7]) * 2,
    "masses": cm.from_masses(["0.7", "0.2", "0.1"], ["0.2", "0.3", "0.5"]) @ W(rate="0.05") * 5,
    "separated": cm.from_masses(["0.5", "0.5"], ["1", "0"]),
    "mixed": cm.Gaussian(sigma=3) * 2 + cm.Laplace(scale=5) @ W(rate=0.02) * 50 + cm.PureDP(0.05),
    "family": cm.ExponentialFamilyMechanism(diameter=1, hessian="1/4", lipschitz=2) * 3,
    "posterior": cm.PosteriorSampling.dirichlet(prior=[3, 3, 3], records=50),
}
DELTAS = ("1e-300", "1e-40", "1e-8", "0.5", "0", "1")
BOUNDS = ("theorem9", "pure-extras", "one-bit", "theorem27", "caps", "lemma3", "profile", "best")


def applies(run: str, bound: str) -> bool:
    try:
        RUNS[run].curve(bound)
    except HypothesisError:
        return False
    return True


PAIRS = [(run, bound) for run in RUNS for bound in BOUNDS if applies(run, bound)]


def guarantee(run: str, delta: str, bound: str, formula: ConversionName) -> cm.Guarantee:
    return RUNS[run].guarantee(delta=delta, bound=bound, conversion=formula)


@pytest.mark.parametrize("formula", ["classic", "cks"])
@pytest.mark.parametrize(("run", "bound"), PAIRS)
def test_what_was_proved_verifies_and_what_is_less_does_not(run: str, bound: str, formula: ConversionName) -> None:
    place = PAIRS.index((run, bound)) + (formula == "cks")  # one formula gets the first half, the other one the second
    for delta in share(DELTAS, place, 3) if bound in ("theorem9", "caps", "best") else DELTAS[2:3]:
        found = guarantee(run, delta, bound, formula)
        check = found.verify()
        assert check.holds, f"{delta}: {check}"
        assert check.epsilon == found.epsilon
        if 0 < found.epsilon < math.inf:
            assert check.lower <= check.upper <= found.epsilon
            assert 0 <= check.ulps < 4
            smaller = dataclasses.replace(found, epsilon=found.epsilon * (1 - 1e-15)).verify()
            assert not smaller.holds
            assert smaller.ulps < 0
            assert smaller.lower >= smaller.epsilon


@pytest.mark.parametrize("bound", ["theorem9", "pure-extras", "one-bit", "caps", "lemma3"])
def test_finite_sums_and_closed_forms_are_checked_in_decimals(bound: str) -> None:
    check = guarantee("sampled response", "1e-8", bound, "cks").verify()
    assert (check.arithmetic, check.precision) == ("decimal", 24)


@pytest.mark.parametrize("run", ["gaussian", "pure", "slack", "points", "family", "sampled promise"])
def test_closed_form_curves_are_checked_in_decimals(run: str) -> None:
    assert guarantee(run, "1e-8", "best", "cks").verify().arithmetic == "decimal"


@pytest.mark.parametrize(
    ("run", "bound"), [("sampled gaussian", "best"), ("sampled laplace", "theorem27"), ("posterior", "best")]
)
def test_integrals_and_gamma_functions_are_checked_in_balls_at_four_times_the_bits(run: str, bound: str) -> None:
    found = guarantee(run, "1e-8", bound, "cks")
    check = found.verify()
    assert found.evidence.bits is not None
    assert check.arithmetic == "balls"
    assert check.precision >= 4 * found.evidence.bits


def test_far_orders_are_checked_in_balls() -> None:
    run = cm.Gaussian(sigma=1000) @ W(rate=0.001)
    found = run.guarantee(delta=1e-300, bound="theorem9")
    assert found.evidence.order is not None
    assert found.evidence.order > 2**13
    assert found.verify().holds
    assert found.verify().arithmetic == "balls"


def test_the_gaussian_in_decimals_is_the_closed_form() -> None:
    """eq. (3) at order 5: 4 + log(1/delta) / 4 for sigma^2 = 5/8, by hand with 50 digits."""
    curve = Concentrated(rho=Fraction(4, 5))
    value = epsilon_on(decimals(60), curve, Fraction(5), Fraction(1, 10**6), conversion("classic"))
    fifty = Context(prec=50)
    truth = Fraction(fifty.divide(fifty.ln(Decimal(10**6)), Decimal(4))) + 4
    assert isinstance(value, Interval)
    assert all(abs(Fraction(end) - truth) < Fraction(1, 10**48) for end in (value.low, value.high))


def test_a_number_that_is_itself_a_float_verifies() -> None:
    found = cm.PureDP(Fraction(1, 2**300)).guarantee(delta=0)  # 2^-300 has 210 digits, more than the first try
    assert found.epsilon == 2.0**-300
    check = found.verify()
    assert check.holds
    assert check.ulps == 0
    assert check.precision > 60


def test_a_smaller_delta_than_the_proved_one_is_noticed() -> None:
    found = RUNS["gaussian"].guarantee(delta="1e-8")
    assert found.delta == 1e-8
    assert not dataclasses.replace(found, delta=9.99e-9).verify().holds
    assert dataclasses.replace(found, delta=2e-8).verify().holds


def test_a_delta_below_the_slack_refutes_every_epsilon() -> None:
    found = (cm.ApproximateDP(0.1, 1e-6) * 3).guarantee(delta=1e-6)
    assert found.epsilon == math.inf
    assert found.verify().holds
    assert not dataclasses.replace(found, epsilon=1e300).verify().holds


@pytest.mark.parametrize("value", ["1e-8", "1/3", "2/3", "1e-400", "0", "0.1", "0.3", "1", "5", "1e300"])
def test_a_stated_number_never_claims_more(value: str) -> None:
    exact = Fraction(cm.domains.Exact(value))
    assert exact <= Fraction(repr(stated(exact)))
    if exact > 0:
        assert Fraction(repr(math.nextafter(stated(exact), 0))) < exact


def test_verification_does_not_listen_to_what_is_remembered() -> None:
    """A memory that was tampered with changes certificates, and the check finds out."""
    run = cm.Gaussian(sigma="3.25") @ W(rate="0.0125") * 77
    curve = next(iter(run.terms)).curve("theorem9")
    found = run.guarantee(delta=1e-6, bound="theorem9")
    answers: dict[Any, Any] = curve._answers  # type: ignore[attr-defined]
    for key, value in list(answers.items()):
        if isinstance(value, np.ndarray) and value.dtype.kind == "O":  # balls
            with BALLS.at(128):
                answers[key] = value / 2
    forget_answers()  # the answer itself is remembered too
    wrong = run.guarantee(delta=1e-6, bound="theorem9")
    assert wrong.epsilon < found.epsilon
    assert found.verify().holds
    assert not wrong.verify().holds
    answers.clear()


def test_decimals_and_balls_enclose_the_same_number() -> None:
    for run in ("gaussian", "sampled gaussian", "sampled laplace", "mixed"):
        curve, order = RUNS[run].curve("theorem9"), Fraction("17.25")
        interval = epsilon_on(decimals(60), curve, order, Fraction(1, 10**9), conversion("cks"))
        with BALLS.at(600):
            ball = epsilon_on(BALLS, curve, order, Fraction(1, 10**9), conversion("cks"))
            low, high = (BALLS.number(Fraction(end)) for end in (interval.low, interval.high))
            assert low <= ball <= high
            assert high - low < abs(ball) * BALLS.number(Fraction(1, 10**50))


@pytest.mark.parametrize("method", ["naive", "strong", "optimal"])
def test_baselines_say_that_they_cannot_be_verified(method: Method) -> None:
    found = RUNS["sampled gaussian"].guarantee(delta=1e-8, method=method)
    assert "composition of (epsilon, delta) guarantees" in found.explain()
    with pytest.raises(CertificateError, match="only a bound at one order can be verified"):
        pickle.loads(pickle.dumps(found)).verify()


def test_estimated_and_bounded_guarantees_say_that_they_cannot_be_verified(monkeypatch: pytest.MonkeyPatch) -> None:
    estimated = cm.from_rdp(rdp=lambda order: math.sqrt(order)).guarantee(delta=1e-5)
    with pytest.raises(CertificateError, match="is estimated, not proved"):
        estimated.verify()

    def refused(*_: Any) -> None:
        raise CertificateError("wide")

    monkeypatch.setattr(certify, "certified_epsilon", refused)
    bounded = RUNS["sampled gaussian"].guarantee(delta=1e-8, bound="theorem9")
    with pytest.raises(CertificateError, match="is bounded, not proved"):
        bounded.verify()
    with pytest.raises(CertificateError, match="without its plan"):
        dataclasses.replace(estimated, plan=None).verify()


# ---- sent elsewhere


@pytest.mark.parametrize("run", RUNS)
def test_guarantees_survive_pickling(run: str) -> None:
    found = RUNS[run].guarantee(delta="1e-8")
    twin = pickle.loads(pickle.dumps(found))
    assert twin == found
    assert twin.to_json() == found.to_json()
    assert twin.explain() == found.explain()
    assert twin.verify() == found.verify()
    assert len(pickle.dumps(found)) < 3000


def test_another_process_verifies_without_any_memory() -> None:
    sent = pickle.dumps(
        [RUNS[run].guarantee(delta="1e-8") for run in ("sampled gaussian", "sampled response", "mixed")]
    )
    script = "import pickle, sys; print([g.verify().holds for g in pickle.load(sys.stdin.buffer)])"
    done = subprocess.run([sys.executable, "-c", script], input=sent, capture_output=True, check=True)
    assert done.stdout.decode().strip() == "[True, True, True]"


def test_an_accountant_may_go_on_after_a_guarantee() -> None:
    accountant = cm.Accountant()
    accountant.compose(cm.Laplace(scale=3), 5)
    found = accountant.guarantee(delta=1e-6)
    accountant.compose(cm.Laplace(scale=3), 50)
    assert found.verify().holds
    assert "runs 5 times" in found.explain()


def test_threads_verify_alike() -> None:
    found = [RUNS[run].guarantee(delta="1e-8") for run in ("sampled gaussian", "sampled response", "pure", "mixed")] * 2
    expected: list[Verification] = [each.verify() for each in found]
    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(cm.Guarantee.verify, found)) == expected


# ---- explained


def test_an_explanation_names_every_theorem_of_a_mixed_run() -> None:
    found = RUNS["mixed"].guarantee(delta="1e-8", method="rdp")
    text = found.explain()
    for term in found.evidence.terms:
        assert term.mechanism in text
        if term.bound:
            assert cm.BOUNDS[term.bound].citation in text
            assert cm.BOUNDS[term.bound].statement in text
    assert f"order {found.evidence.order:g}" in text
    assert "Proposition 12" in text
    assert f"balls of {found.evidence.bits} bits" in text
    assert f"radius {found.evidence.radius:.2g}" in text
    assert "rate = 1/50" in text
    assert "delta = 1/100000000" in text
    assert "data sets of the same size that differ in one record" in text
    assert "smaller than the data set" in text
    assert "sensitivities are replace-one" in text


def test_explanations_of_the_ends() -> None:
    assert "order infinity is pure differential privacy" in RUNS["pure"].guarantee(delta=0).explain()
    assert "protects nobody" in RUNS["pure"].guarantee(delta=1).explain()
    assert "epsilon = inf" in RUNS["gaussian"].guarantee(delta=0).explain()
    assert (
        "1999999999/1000000000000000000 is what the promises"
        in (cm.ApproximateDP(1, 1e-9) * 2).guarantee(delta=1e-8, method="rdp").explain()
    )


def test_an_explanation_of_many_terms_stays_short() -> None:
    run = sum((cm.Laplace(scale=k) for k in range(2, 40)), start=cm.Gaussian(sigma=1))
    assert "31 further mechanisms" in run.guarantee(delta=1e-6).explain()


# ---- functions of the user


def test_a_function_that_takes_balls_is_proved() -> None:
    mine = cm.from_rdp(rdp=lambda order: order / 18, name="mine")
    assert not mine.estimated
    found, twin = (mine * 3).guarantee(delta=1e-6), (cm.Gaussian(sigma=3) * 3).guarantee(delta=1e-6, method="rdp")
    assert (found.rigour, found.epsilon) == ("proved", twin.epsilon)
    check = found.verify()
    assert check.holds
    assert check.arithmetic == "balls"
    assert 'what the Python function of from_rdp(name="mine") says is true' in found.explain()
    assert not dataclasses.replace(found, epsilon=found.epsilon * (1 - 1e-15)).verify().holds
    sampled = (mine @ W(rate=0.01) * 9).guarantee(delta=1e-6, bound="theorem9")
    gaussian = (cm.Gaussian(sigma=3) @ W(rate=0.01) * 9).guarantee(delta=1e-6, bound="theorem9")
    assert (sampled.rigour, sampled.epsilon) == ("proved", gaussian.epsilon)


@pytest.mark.parametrize("rdp", [lambda order: np.log(order) + order / 18, lambda order: order.log() + order / 18])
def test_functions_may_use_numpy_or_the_methods_of_balls(rdp: Any) -> None:
    found = cm.from_rdp(rdp=rdp).guarantee(delta=1e-6)
    assert found.rigour == "proved"
    assert found.verify().holds


@pytest.mark.parametrize(
    "rdp",
    [
        lambda order: math.log(order) + 1,
        lambda order: order + math.log(order + 1),  # a ball comes out, but a float went in
        lambda order: order * float(order),
        lambda order: 0.5,
        lambda order: [order][int(order > 1) - 2] if isinstance(order, float) else None,
    ],
)
def test_functions_that_leave_ball_arithmetic_are_estimated(rdp: Any) -> None:
    mine = cm.from_rdp(rdp=rdp)
    assert mine.estimated
    assert mine.guarantee(delta=1e-6).rigour == "estimated"


def test_a_function_that_takes_balls_at_some_orders_only_is_estimated_at_the_others() -> None:
    mine = cm.from_rdp(rdp=lambda order: order / 18 if order < 3 else order * math.sqrt(order) / 18)
    assert not mine.estimated
    found = mine.guarantee(delta=1e-6)
    assert found.evidence.order is not None
    assert found.evidence.order > 3
    assert found.rigour == "estimated"


def test_a_function_that_takes_balls_still_has_no_text_and_stays_behind_when_pickled() -> None:
    mine = cm.from_rdp(rdp=lambda order: order / 18, name="mine")
    for run in (mine, mine * 2, mine @ W(rate=0.1), (mine + cm.PureDP(1)) @ W(rate=0.1)):
        with pytest.raises(NotationError, match="holds a Python function"):
            run.notation()
    found = mine.guarantee(delta=1e-6)
    twin = pickle.loads(pickle.dumps(found))
    assert twin == found
    assert "was not pickled" in twin.explain()
    with pytest.raises(CertificateError, match="was not pickled"):
        twin.verify()


@dataclasses.dataclass(frozen=True, slots=True)
class Wide(Curve):
    """K = 2 to four digits."""

    def _cgf(self, lam: Any, on: Any) -> Any:
        return np.array([Interval(Decimal("1.9999"), Decimal("2.0001"), on)], dtype=object)


@pytest.mark.parametrize(("epsilon", "word"), [(2.0001, "holds"), (2.0, "is not confirmed"), (1.999, "does not hold")])
def test_an_enclosure_that_contains_epsilon_confirms_nothing(epsilon: float, word: str) -> None:
    # eq. (3) at order 2: K - log delta, and delta a little above 1/e takes 1 away
    delta = Fraction(cm.domains.Exact("0.36787944117144233"))
    check = verify(Wide(), Fraction(2), delta, conversion("classic"), epsilon + 1)
    assert check.holds is (word == "holds")
    assert f"{epsilon + 1!r} {word}:" in str(check)


def test_slack_is_taken_from_delta() -> None:
    promise, pure = cm.ApproximateDP(2, "1e-7") * 5, cm.PureDP(2) * 5
    slack = 1 - (1 - Fraction(1, 10**7)) ** 5
    left = (Fraction(1, 10**6) - slack) / (1 - slack)
    assert promise.guarantee(delta="1e-6", method="rdp").epsilon == pure.guarantee(delta=left, method="rdp").epsilon


def test_verify_by_hand() -> None:
    """Order infinity of a curve that has none: nothing is proved, at whatever epsilon."""
    check = verify(Concentrated(rho=Fraction(1)), None, Fraction(0), conversion("cks"), 1e300)
    assert not check.holds
    assert check.upper == math.inf
    assert "does not hold" in str(check) or "is not confirmed" in str(check)


def test_an_integral_narrower_than_a_float_but_not_than_sixty_bits_is_proved() -> None:
    run = cm.Gaussian(sigma="6.324e-2", geometry="ball") @ W(rate="1.728e-4") * 2_866_000
    answer = renyi_to_dp.proved_delta(run.curve("gaussian-ball"), Fraction(65000), conversion("cks"))
    assert answer.rigour == "proved"
    assert answer.proof is not None
    assert answer.order is not None
    lam = renyi_to_dp.rational_order(answer.order) - 1
    with BALLS.at(600):  # delta = e^{K - lam eps + c}
        cgf = run.curve("gaussian-ball").cgf([lam], BALLS)[0]
        x = BALLS.number(lam)
        truth = (cgf - x * 65000 - x * (1 / x).log1p() - x.log1p()).exp()
        assert BALLS.number(Fraction(answer.value)) >= truth
        assert answer.value < (1 + 1e-15) * float(truth)


def test_a_sum_of_thousands_of_terms_is_verified_with_few_logarithms_per_term(monkeypatch: pytest.MonkeyPatch) -> None:
    counts = {"log_at": 0, "exp_at": 0}
    for name in counts:
        original = getattr(Decimals, name)

        def counted(self: Any, x: Any, name: str = name, original: Any = original) -> Any:
            counts[name] += 1
            return original(self, x)

        monkeypatch.setattr(Decimals, name, counted)
    order, curve = Fraction(2000), (cm.RandomizedResponse(p="0.6") @ W(rate="1e-4") * 1000).curve("theorem9")
    proof = certify.certified_epsilon(curve, order, Fraction(1, 10**8), conversion("cks"))
    assert verify(curve, order, Fraction(1, 10**8), conversion("cks"), proof.value).holds
    # log cosh, log1p and half a binomial coefficient; two exponentials, unless tanh is 1, and those of the largest terms
    assert counts["log_at"] < 2.6 * order
    assert counts["exp_at"] < 2.6 * order


@pytest.mark.parametrize("delta", ["1e-5", "1e-3"])
@pytest.mark.parametrize("sampled", [False, True])
def test_an_integral_that_decimals_cannot_evaluate_is_verified_in_balls(delta: str, sampled: bool) -> None:
    mixture = cm.GaussianMixture(sigma=1, shifts=[0, 1], weights=["0.9", "0.1"])
    run = mixture @ cm.Poisson(rate="0.1") if sampled else mixture
    guarantee = run.guarantee(delta=delta, method="rdp")
    check = guarantee.verify()
    assert check.holds
    assert (check.arithmetic, check.quantity) == ("balls", "epsilon")
    assert check.lower > (1 - 1e-12) * check.epsilon


def test_a_check_is_said_without_units_in_the_last_place() -> None:
    """It said "1e+08 ulp below it" of a number that was rounded to be read."""
    told = str(cm.Laplace(scale=2).guarantee(delta=1e-6, method="rdp").verify())
    assert "holds: evaluated again" in told
    assert "ulp" not in told
