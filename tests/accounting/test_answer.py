"""A guarantee for a given epsilon: the delta of `run.delta`, and a proof of that very statement."""

import dataclasses
import json
import math
import pickle
from fractions import Fraction
from typing import Any, cast

import numpy as np
import pytest

import cumulant as cm
from cumulant.accounting.cache import forget
from cumulant.accounting.choices import Method
from cumulant.accounting.numbers import rounded_up
from cumulant.conversion import array_answers
from cumulant.errors import CertificateError, InputError
from cumulant.numerics.arithmetic import BALLS
from tests.effort import share

W = cm.WithoutReplacement
RUNS: dict[str, cm.Expression] = {
    "closed form": cm.Gaussian(sigma=2) * 7,
    "one sample": cm.Laplace(scale=1) @ W(rate="1/3"),
    "cone": cm.Gaussian(sigma=5) @ W(rate=0.001) * 600_000,
    "lattice": cm.Laplace(scale=2) @ W(rate=0.01) * 1000,
    "response": cm.RandomizedResponse(p=0.6) @ W(rate=0.1) * 50,
    "poisson": cm.Gaussian(sigma=1) @ cm.Poisson(rate=0.01) * 1000,
    "leaking": cm.ApproximateDP("0.1", "1e-8") @ W(rate=0.1) * 40,
    "curve": cm.Gaussian(sigma=3) * 2 + cm.ZeroConcentrated(rho="0.01"),
    "pure": cm.PureDP("1/3") * 3,
}
EPSILONS = ("0.1", "2/3", "2")


QUESTIONS = [(run, asked) for run in RUNS for asked in ({}, {"method": "rdp"}, {"bound": "best"})]
QUESTIONS += [(run, {"method": "paper"}) for run in RUNS if run not in ("poisson", "leaking")]  # not of Theorem 9


@pytest.mark.parametrize(("run", "asked"), QUESTIONS)
def test_the_delta_of_a_guarantee_is_the_one_of_the_run_and_verifies(run: str, asked: dict[str, Any]) -> None:
    for epsilon in share(EPSILONS, QUESTIONS.index((run, asked))):
        found = RUNS[run].guarantee(epsilon=epsilon, **asked)
        assert found.asked == "epsilon"
        assert found.delta == RUNS[run].delta(epsilon, **asked)
        assert Fraction(repr(found.epsilon)) >= Fraction(cm.domains.Exact(epsilon))
        assert found.epsilon == pytest.approx(float(Fraction(epsilon)), rel=1e-15)
        assert found.lower is None or 0 <= found.lower <= found.delta
        assert (found.lower is None) == (bool(asked) or run == "curve")
        check = found.verify()
        assert check, f"{epsilon}: {check}"
        assert (check.epsilon, check.delta) == (found.epsilon, found.delta)
        if 0 < found.delta < 1:
            assert not dataclasses.replace(found, delta=0.9 * found.delta).verify()
        text = found.explain()
        assert text.startswith(f"delta = {rounded_up(found.delta)} (rounded up from {found.delta!r}) at eps")
        assert f"at epsilon = {epsilon}" in text
        twin = pickle.loads(pickle.dumps(found))
        assert (twin, twin.explain(), twin.verify()) == (found, text, check)


def test_what_is_proved_about_a_gaussian_encloses_its_profile() -> None:
    """delta = Phi(s/2 - eps/s) - e^eps Phi(-s/2 - eps/s), s the shift."""
    for shift, epsilon in ((Fraction(1), Fraction(1)), (Fraction(1, 3), Fraction(1, 10)), (Fraction(3), Fraction(20))):
        found = cm.Gaussian(sigma=1 / shift).guarantee(epsilon=epsilon)
        with BALLS.at(300):
            s, e, two = (BALLS.number(value) for value in (shift, epsilon, Fraction(2)))
            near, far = ((-(half * s / two - e / s) / two.sqrt()).erfc() / two for half in (1, -1))
            truth = near - e.exp() * far
            assert found.lower is not None
            assert BALLS.number(Fraction(found.lower)) <= truth <= BALLS.number(Fraction(found.delta))
        assert found.lower >= found.delta * (1 - 1e-14)
        assert (found.route, found.rigour) == ("closed form", "proved")


@pytest.mark.parametrize(("run", "epsilon", "delta"), [
    (cm.PureDP("1/3") * 3, 1, 0.0),
    (cm.Laplace(scale=3) * 3, 1, 0.0),
    (cm.RandomizedResponse(p="3/4"), "1.0986122886681098", 0.0),
    (cm.ApproximateDP(1, "0.125"), 1, 0.125),
])  # fmt: skip
def test_at_order_infinity_delta_is_the_slack(run: cm.Expression, epsilon: Any, delta: float) -> None:
    found = run.guarantee(epsilon=epsilon, method="rdp")
    assert (found.delta, found.evidence.order) == (delta, math.inf)
    check = found.verify()
    assert check
    assert check.arithmetic in ("fractions", "decimal", "balls")
    assert not dataclasses.replace(found, epsilon=found.epsilon * (1 - 1e-9)).verify()
    if delta:
        assert not dataclasses.replace(found, delta=delta * (1 - 1e-15)).verify()


def test_a_delta_that_nothing_is_proved_about() -> None:
    found = cm.from_masses([0, 1], [1, 0]).guarantee(epsilon=1)
    assert found.delta == 1
    assert found.verify()
    assert "protects nobody" in found.explain() or "Rigour" in found.explain()


def test_exactly_one_number_is_asked_for() -> None:
    run = cm.Gaussian(sigma=1)
    for given in ({}, {"delta": 1e-6, "epsilon": 1}):
        with pytest.raises(InputError, match="exactly one of delta and epsilon"):
            run.guarantee(**given)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="epsilon=-1 must be"):
        run.guarantee(epsilon=-1)
    with pytest.raises(InputError, match="answers epsilon"):
        run.guarantee(epsilon=1, method="strong")
    assert run.guarantee(delta=1e-6).asked == "delta"


def test_an_accountant_answers_both_questions() -> None:
    accountant = cm.Accountant()
    accountant.compose(cm.Laplace(scale=3), 5)
    found = accountant.guarantee(epsilon=1)
    accountant.compose(cm.Laplace(scale=3), 50)
    assert found == (cm.Laplace(scale=3) * 5).guarantee(epsilon=1)
    assert found.verify()


def test_both_guarantees_have_the_same_fields_in_json() -> None:
    run = RUNS["lattice"]
    by_delta, by_epsilon = (
        json.loads(run.guarantee(delta=1e-6).to_json()),
        json.loads(run.guarantee(epsilon=1).to_json()),
    )
    assert list(by_delta) == list(by_epsilon)
    assert (by_delta["asked"], by_epsilon["asked"]) == ("delta", "epsilon")
    assert 0 < by_delta["lower"] <= by_delta["epsilon"]
    assert 0 < by_epsilon["lower"] <= by_epsilon["delta"]


def test_a_named_bound_of_the_exact_layer_is_the_one_that_delta_uses() -> None:
    """Theorem B is not a consequence of the profile."""
    found = RUNS["cone"].guarantee(epsilon="0.8", method="exact", bound="profile")
    assert (found.route, found.rigour) == ("line", "proved")
    assert found.delta > RUNS["cone"].delta("0.8")


def test_functions_stay_behind_when_pickled() -> None:
    found = cm.from_rdp(rdp=lambda order: order / 18, name="mine").guarantee(epsilon=1)
    assert found.verify()
    twin = pickle.loads(pickle.dumps(found))
    assert "at epsilon = 1.0" in twin.explain()
    with pytest.raises(CertificateError, match="was not pickled"):
        twin.verify()


@pytest.mark.parametrize(
    "change", [{"epsilon": -1.0}, {"epsilon": math.nan}, {"delta": -0.5}, {"delta": math.nan}, {"delta": 2.0}]
)
def test_what_is_no_statement_is_not_confirmed(change: dict[str, Any]) -> None:
    for run in (cm.Gaussian(sigma=1), cm.Gaussian(sigma=1) @ cm.WithoutReplacement(rate=0.1) * 100):
        for asked in cast("list[dict[str, Any]]", [{"delta": 1e-6}, {"epsilon": 1}]):
            with pytest.raises(cm.CertificateError, match="no statement about privacy"):
                dataclasses.replace(run.guarantee(**asked), **change).verify()


def test_a_delta_below_every_float_and_a_promise_that_hardly_ever_holds() -> None:
    tiny = Fraction(1, 10**400)
    step = cm.Gaussian(sigma=1) @ cm.WithoutReplacement(rate="0.5")
    assert step.epsilon(tiny) > step.epsilon(1e-300)
    assert (step * 2).epsilon(tiny) > (step * 2).epsilon(1e-300)
    promise = cm.ApproximateDP(1, "0.99999999999999999") * 2
    assert promise.epsilon(0.5) == math.inf
    nearly = cm.ApproximateDP(1, "0.9999999999999997") * 2
    assert nearly.epsilon(0.5) == math.inf


def test_what_may_fail_has_no_finite_divergence() -> None:
    """With probability delta everything may be told, so that one law has mass where the other has none."""
    for run in (cm.ApproximateDP(1, "0.1"), cm.ApproximateDP(0, "0.1") * 3, cm.ApproximateDP(1, "0.1") @ W(rate="0.5")):
        assert run.rdp([1, 1.5, 2, math.inf]).tolist() == [math.inf] * 4
        assert run.cgf([0, 1]).tolist() == [0.0, math.inf]
        assert run.kl() == run.pure() == run.epsilon(delta=0) == math.inf
    assert cm.ApproximateDP(1, 0).pure() == 1.0


def test_the_lower_end_of_gathered_gaussians_is_not_rounded_up() -> None:
    """erf(1/2) = 0.52049987781304653768274665389196452873645…: from that delta on no epsilon is needed."""
    for delta in ("0.5204998778130465376827466538919646", "0.520499877813046537682746653892"):
        for run in (
            cm.Gaussian(sigma=1) * 2,
            cm.Gaussian(sigma=1) + cm.Gaussian(sigma=1, sensitivity=1, geometry="ball"),
        ):
            assert (run.guarantee(delta=delta).lower or 0.0) == 0.0


def test_runs_of_nothing_are_verified() -> None:
    nothing: list[Any] = [cm.Accountant(), cm.PureDP(0) @ W(rate=0.5) * 3, cm.PureDP(0) @ cm.Poisson(rate=0.5) * 3]
    for run in nothing:
        for asked in cast("list[dict[str, Any]]", [{"delta": 1e-2}, {"epsilon": 1}]):
            assert run.guarantee(**asked).verify()


@pytest.mark.parametrize("method", ["naive", "strong", "optimal", "rdp", "best", "exact"])
def test_a_delta_of_one_needs_no_epsilon(method: Method) -> None:
    assert cm.ApproximateDP("0.1", "0.01").epsilon(1, method=method) == 0.0
    assert (cm.ApproximateDP("0.1", "0.01") * 3 + cm.PureDP(1)).epsilon(1, method=method) == 0.0


def test_delta_is_at_most_the_distance_that_the_curve_leaves() -> None:
    """Pinsker's inequality bounds the total variation distance by sqrt(rho / 2), and that delta at every epsilon."""
    run, pinsker = cm.ZeroConcentrated(rho="1e-13"), math.sqrt(1e-13 / 2)
    found = run.guarantee(epsilon="5e-30")
    assert pinsker / 1.01 < found.delta <= pinsker * (1 + 1e-9)
    assert (found.route, found.rigour) == ("total variation", "bounded")
    assert "total variation distance" in found.explain()
    assert run.delta(["5e-30"], method="rdp")[0] == run.delta("5e-30", method="rdp") == found.delta
    assert run.epsilon(pinsker * 1.001) == 0.0 == run.epsilon([pinsker * 1.001], method="rdp")[0]
    assert run.epsilon(pinsker * 0.98) > 0
    assert run.delta("5e-30", conversion="cks") > 2.7e-7  # what the conversion alone says
    # Gaussian noise of this rho has the distance 2 Phi(sqrt(2 rho) / 2) - 1, which no bound may undercut
    for rho in (0.01, 0.5, 2.0):
        truth = math.erf(math.sqrt(2 * rho) / 2 / math.sqrt(2))
        assert cm.ZeroConcentrated(rho=rho).delta(0) >= truth


def test_numbers_that_underflow_are_not_nothing() -> None:
    assert (cm.Gaussian(sigma="1e90") @ cm.Poisson(rate="1e-290") * 2).delta(1) > 0
    leaking = cm.ApproximateDP(0, "1e-300") @ cm.Poisson(rate="1e-300") * 2
    assert leaking.delta(0) > 0
    assert leaking.advantage() > 0
    masses = cm.from_masses(["0.5", "0.5", 0], ["0.5", "0.49", "0.01"]) @ cm.Poisson(rate="1e-300") * 2
    assert masses.true_positive_rate(0) > 0


def test_distances_are_coupled_round_by_round() -> None:
    """1 - (1 - d)^k, where a grid gives up at small epsilon; for disjoint laws that is the truth."""
    disjoint = cm.from_masses([1, 0], [0, 1]) @ cm.Poisson(rate="0.3") * 2
    assert 0.51 <= disjoint.delta(0) <= 0.51 * (1 + 1e-9)
    for sigma in ("0.08", "0.09", "0.1"):
        run = cm.Gaussian(sigma=sigma) @ cm.Poisson(rate="0.5") * 3
        assert 0.87 < run.delta(0) <= 0.875 * (1 + 1e-9)
    assert run.advantage() <= 0.875 * (1 + 1e-9)


def test_a_function_without_divergence_leaves_no_advantage() -> None:
    nothing = cm.from_rdp(lambda order: order * 0)
    assert nothing.epsilon(1e-5) == 0
    assert nothing.advantage() < 1e-100
    assert nothing.true_positive_rate(0.1) < 0.1 + 1e-12


def test_an_answer_that_misses_its_accuracy_says_so() -> None:
    """Each of 7e8 losses of 3e-12 is rounded by some 1e-14: the grid's answer holds, and is far from what is needed."""
    run = cm.parse("RandomizedResponse(p=0.5000001) @ Poisson(rate=7.8e-6) * 692100000")
    found = run.guarantee(delta="1.877e-8", method="exact")
    assert found.note == "rounding so many losses costs more than the accuracy that was asked for"
    assert found.epsilon > run.guarantee(delta="1.877e-8").epsilon
    assert run.guarantee(delta="1.877e-8").note == ""
    assert (cm.Gaussian(sigma=5) @ cm.WithoutReplacement(rate=0.001) * 600_000).guarantee(
        delta=1e-8, method="exact"
    ).note == ""


@pytest.mark.parametrize(
    "run",
    [cm.Laplace(scale=1) * 20, cm.Gaussian(sigma=1) @ cm.Poisson(rate="0.1") * 20, cm.RandomizedResponse(p="0.6") * 30],
    ids=str,
)
def test_a_proof_is_had_for_the_asking(run: cm.Expression) -> None:
    """The proved number lies between the bounded ends, up to the accuracy; every question gives the same one."""
    found, proved = run.guarantee(delta="1e-6", method="exact"), run.guarantee(delta="1e-6", method="exact", prove=True)
    assert (proved.rigour, proved.lower_rigour) == ("proved", "proved")
    assert found.lower is not None
    assert proved.lower is not None
    assert found.lower * (1 - 1e-3) <= proved.lower <= proved.epsilon <= found.epsilon * (1 + 1e-3)
    assert found.lower <= proved.epsilon
    assert proved.lower <= found.epsilon
    assert proved.epsilon == run.epsilon("1e-6", method="exact", prove=True)
    assert run.delta(1, method="exact", prove=True) == run.guarantee(epsilon=1, method="exact", prove=True).delta
    assert proved.evidence.radius is not None
    assert 0 < proved.evidence.radius < 1e-9


def test_what_would_take_too_long_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    from cumulant.exact.inversion import solver

    run = cm.Gaussian(sigma=1) @ cm.Poisson(rate="0.01") * 1000
    usual = run.guarantee(delta="1e-6")
    monkeypatch.setattr(solver.Effort, "__init__", _hasty(solver.Effort.__init__))
    forget()
    hasty = run.guarantee(delta="1e-6")
    assert (usual.rigour, usual.note) == ("proved", "")
    assert hasty.rigour == "bounded"
    assert hasty.note.startswith("bounded, not proved: a proof would take ")
    assert hasty.note.endswith("prove=True asks for it anyway")
    assert usual.lower is not None
    assert (
        usual.lower <= hasty.epsilon <= usual.epsilon * (1 + 1e-3)
    )  # floats may be sharper than the accuracy of balls
    assert run.guarantee(delta="1e-6", prove=True).epsilon == usual.epsilon


def _hasty(made: Any) -> Any:
    """Efforts that end at once, unless patience was asked for."""

    def init(self: Any, work: int = 100, smoothing: int = 0, patient: bool = False, **given: Any) -> None:
        made(self, work, smoothing, patient, **given)

    return init


def test_proofs_are_asked_of_the_exact_layer_only() -> None:
    with pytest.raises(cm.InputError, match="prove=True is for method="):
        cm.Laplace(scale=1).epsilon("1e-6", method="rdp", prove=True)
    with pytest.raises(cm.InputError, match="prove=1 must be True or False"):
        cm.Laplace(scale=1).epsilon("1e-6", prove=1)  # type: ignore[call-overload]
    stubborn = (cm.from_masses(["0.5", "0.3", "0.2"], ["0.2", "0.31", "0.49"]) * 2).guarantee(
        delta="1e-9", method="exact", prove=True
    )
    assert stubborn.rigour == "proved" or stubborn.note.startswith("asked for a proof, and there is none")


def test_order_infinity_is_lemma_3_whatever_bound_was_asked_for() -> None:
    """Theorem 9 tends to 1.069e-3 for large orders (E-18); the number at order infinity is that of Lemma 3."""
    step = cm.Laplace(scale=2) @ cm.WithoutReplacement(rate="0.001")
    limit = step.rdp(1e8, bound="theorem9")
    for asked in ({"bound": "theorem9"}, {"method": "paper"}, {"bound": "theorem27-min"}, {"bound": "best"}):
        found = step.guarantee(delta=0, **asked)  # type: ignore[arg-type]
        assert found.epsilon == pytest.approx(math.log1p(0.001 * math.expm1(0.5)), rel=1e-12)
        assert found.epsilon < 0.7 * limit
        assert (found.evidence.bound, found.evidence.order) == ("lemma3", math.inf)
        assert [term.bound for term in found.evidence.terms] == ["lemma3"]
        assert "theorem9" not in found.explain()
        assert "Lemma 3" in found.explain()
        assert cm.Guarantee.from_json(found.to_json()) == found
        assert found.verify().holds
    assert step.guarantee(delta="1e-2", bound="theorem9", method="rdp").evidence.bound in ("theorem9", "lemma3")
    assert (step * 100_000).guarantee(delta="1e-6", method="paper").evidence.bound == "theorem9"


def test_optimal_composition_of_too_many_kinds_says_that_it_took_the_closed_form() -> None:
    few = cm.Laplace(scale=20) * 30 + cm.Laplace(scale=9) * 4
    many = cm.Laplace(scale=20) * 9
    for i in range(20):
        many = many + cm.Laplace(scale=21 + i) * 9
    assert few.guarantee(delta="1e-6", method="optimal").note == ""
    assert few.epsilon("1e-6", method="optimal") < few.epsilon("1e-6", method="strong")
    assert "closed form" in many.guarantee(delta="1e-6", method="optimal").note
    assert many.epsilon("1e-6", method="optimal") == many.epsilon("1e-6", method="strong")


# ---- what holds at one number holds at every larger one

SELECTED = cm.TradeOff(alphas=[0, "0.25", 1], betas=[1, "0.25", 0]) @ cm.RepeatAndSelect(mean=5)
BOUNDED_LOSSES = cm.RandomizedResponse(p="0.999") * 2 + SELECTED


def test_pure_privacy_is_a_bound_at_every_delta() -> None:
    """Where the best finite order cannot be certified, order infinity is: 1e-300 needs no more than 0."""
    run = cm.PureDP("1e-9") @ cm.Shuffle(reports=10**6) * 1000
    found = [run.epsilon(delta) for delta in (0, "1e-300", "1e-100", "1e-20", "1e-10")]
    assert found == sorted(found, reverse=True)
    assert found[0] <= 1.0000001e-6


def test_the_distance_of_the_curve_counts_beside_loss_distributions() -> None:
    """The pair of a bound by divergences is loose at epsilon 0: 0.005703, where the curve leaves a distance of 0.005537."""
    run = (cm.GaussianDP(mu="2.503e-4") | cm.ZeroConcentrated(rho="2.023e-5", xi="1.842e-6")) * 3
    by_divergences = run.delta(0, method="rdp")
    assert run.delta(0, method="exact") > by_divergences
    assert run.delta(0) == by_divergences == run.delta([0, 1])[0]
    assert run.guarantee(epsilon=0).verify().holds
    assert run.epsilon("0.0056") == 0


def test_delta_falls_next_to_the_largest_loss() -> None:
    """A grid sees one cell there; the largest loss is 2 log 999 and what selection makes of log 3."""
    top = 16.29841620735894
    at = [16.2, 16.28, *(top * (1 - 10.0**-i) for i in range(3, 15)), 16.2985]
    found = [BOUNDED_LOSSES.delta(each) for each in at]
    assert found == sorted(found, reverse=True)
    assert found[-1] == 0
    # delta is convex in e^epsilon: each is at most the chord from the first one to the largest loss
    for epsilon, delta in zip(at[2:-1], found[2:-1], strict=True):
        chord = found[0] * math.expm1(epsilon - top) / math.expm1(at[0] - top)
        assert delta <= chord * (1 + 1e-2) + 1e-12


def test_the_epsilon_of_pure_privacy_is_the_largest_loss() -> None:
    found = BOUNDED_LOSSES.epsilon(0)
    assert BOUNDED_LOSSES.delta(found * (1 + 1e-12)) == 0
    assert found <= BOUNDED_LOSSES.epsilon(0, method="rdp")
    assert found >= BOUNDED_LOSSES.epsilon("1e-200")
    assert BOUNDED_LOSSES.epsilon([0, "0.1"])[0] == found
    assert BOUNDED_LOSSES.guarantee(delta=0).verify().holds


def test_deltas_that_no_float_holds_are_not_asked_of_divergences(monkeypatch: pytest.MonkeyPatch) -> None:
    """The closed form of an unbounded loss says all; where a loss is bounded its curve may know that delta is 0."""
    asked: list[int] = []
    real = array_answers.least_deltas

    def least_deltas(curve: Any, values: Any, formula: Any) -> Any:
        asked.append(len(values))
        return real(curve, values, formula)

    monkeypatch.setattr(array_answers, "least_deltas", least_deltas)
    assert (cm.Gaussian(sigma="1.01").delta([1, 10, 20, 30, 45, 49]) > 0).all()
    assert asked == []
    assert cm.Laplace(scale="1.01").delta([1, 2])[1] == 0
    assert sum(asked) >= 1


@pytest.mark.parametrize(
    ("text", "delta"),
    [
        # in decimals the sums of integer noise had a range of no outputs
        ("DiscreteGaussian(sigma=61.54, dimension=1) @ WithoutReplacement(sample=46, population=48) * 1000", "1e-6"),
        ('DiscreteGaussian(sigma=1, dimension=1, relation="add-remove") @ Poisson(rate=0.2226) * 10000000', "0.2"),
    ],
)
def test_integer_noise_is_verified_in_decimals(text: str, delta: str) -> None:
    assert cm.parse(text).guarantee(delta=delta, method="rdp").verify()


def test_losses_that_no_grid_holds_are_certain_in_each_direction() -> None:
    run = cm.parse('GaussianDP(mu=2.5, relation="add-remove") @ Group(size=2) * 1000000000')
    assert [run.privacy_loss(way).hockey_stick(1) for way in ("remove", "add")] == [1.0, 1.0]


def test_the_group_of_a_surrogate_is_asked_for_its_divergences_too() -> None:
    """The pair of unsampled noise is no neighbours' own, so that it does not beat the divergences of the sample."""
    run = cm.parse(
        "MatrixMechanism(bands=[1, 0.5], steps=12, sigma=19.85) @ CyclicPoisson(cycle=2, rate=0.1052) @ Group(size=12)"
    )
    for delta in ("0.2", "1e-3"):
        best, divergence = (run.epsilon(delta, method=method) for method in ("best", "rdp"))
        assert best <= divergence  # 1.984 and 5.928 where 0 and 0.6564 are enough
        assert np.array_equal(run.epsilon([delta, "0.9"]) <= divergence, [True, True])


@pytest.mark.parametrize(
    "text", ["ZeroConcentrated(rho=1.375e-7, xi=1.095e-7) @ Group(size=6)", "PureDP(0.1) @ Group(size=3)"]
)
def test_counts_of_a_group_are_as_small_as_each_alone(text: str) -> None:
    run = cm.parse(text)
    together = run.epsilon_over([1, 2, 10], delta="1e-9")
    assert together == pytest.approx([(run * times).epsilon("1e-9") for times in (1, 2, 10)], rel=1e-9)


@pytest.mark.parametrize("method", ["best", "rdp"])
def test_counts_whose_distance_is_below_delta_need_no_epsilon(method: Any) -> None:
    """0.0399 for ten rounds, each of which alone was 0."""
    points = cm.from_rdp_points(
        orders=["1.02", "1.35", "7.8", "311.5"], values=["0.00097", "0.00128", "0.0075", "0.295"]
    )
    run, counts = points @ cm.WithoutReplacement(sample=1, population=46), [1000, 1, 10, 10]
    together = run.epsilon_over(counts, delta="0.01", method=method)
    assert together == pytest.approx([(run * times).epsilon("0.01", method=method) for times in counts], rel=1e-6)
    assert together[1] == together[2] == 0 < together[0]
