"""What a pair must say, and what follows from what it says: a mechanism and its pair, written as a user would."""

import math
import tomllib
from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import ClassVar

import numpy as np
import pytest

import cumulant as cm
from cumulant.curves.closed_form import lemma3, response_cgf, response_kl
from cumulant.curves.curve import Curve
from cumulant.domains import RATE, RESPONSE, Domain, Exact, Number, Several
from cumulant.losses.atoms import AtomLaw
from cumulant.losses.law import Law
from cumulant.mechanisms.mechanism import Mechanism
from cumulant.numerics.arithmetic import FLOATS, Arithmetic, Array, Scalar
from cumulant.pairs.gaussian import GaussianPair
from cumulant.pairs.laplace import LaplacePair
from cumulant.pairs.pair import Pair
from cumulant.pairs.response import PromisePair, ResponsePair
from cumulant.sampling.scheme import Scheme

# ---- randomized response that gives an answer only sometimes: (a p, a (1-p), 1-a) against (a (1-p), a p, 1-a)


@dataclass(frozen=True, slots=True)
class ErasedCurve(Curve):
    """e^K = 1 - a + a e^K0, K0 that of randomized response."""

    p: Fraction
    answers: Fraction

    def _odds(self, on: Arithmetic) -> Scalar:
        return on.log(on.number(self.p / (1 - self.p)))

    def _cgf(self, lam: Array, on: Arithmetic) -> Array:
        return lemma3(response_cgf(self._odds(on), lam, on), on.number(self.answers), on)

    def kl(self, on: Arithmetic = FLOATS) -> Scalar:
        return on.number(self.answers) * response_kl(self._odds(on), on)

    def pure(self, on: Arithmetic = FLOATS) -> Scalar:
        return self._odds(on)


@dataclass(frozen=True, slots=True)
class Quiet(Pair):
    """A pair that says its curve and nothing else."""

    p: Fraction
    answers: Fraction

    def curve(self) -> Curve:
        return ErasedCurve(self.p, self.answers)


@dataclass(frozen=True, slots=True)
class Erased(Quiet):
    """The same, with the law of its loss."""

    symmetric = True

    def laws(self) -> tuple[Law, ...]:
        odds = self.p / (1 - self.p)
        masses = (self.answers * (1 - self.p), self.answers * self.p, 1 - self.answers)
        return (AtomLaw(masses, (odds, 1 / odds, Fraction(1)), equal=1 - self.answers),)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class ErasedResponse(Mechanism):
    """Randomized response that is lost with probability 1 - answers; `told` is whether its pair says more than a curve."""

    p: Number
    answers: Number
    told: bool = True

    domains: ClassVar[Mapping[str, Domain | Several]] = {"p": RESPONSE, "answers": RATE}

    def key(self) -> Hashable:
        return Exact(self.p), Exact(self.answers), self.told

    def own_curve(self, bound: str) -> Curve:
        return self.pair().curve()

    def pair(self) -> Pair:
        return (Erased if self.told else Quiet)(Exact(self.p), Exact(self.answers))


P, ANSWERS = Fraction(3, 5), Fraction(1, 2)
MASSES = (ANSWERS * P, ANSWERS * (1 - P), 1 - ANSWERS)
TRUTH = cm.from_masses([str(m) for m in MASSES], [str(MASSES[i]) for i in (1, 0, 2)])
KNOWN, QUIET = ErasedResponse("0.6", "0.5"), ErasedResponse("0.6", "0.5", told=False)
SCHEMES = [None, cm.WithoutReplacement(rate="0.1"), cm.Poisson(rate="0.1")]


def on(mechanism: cm.Expression, scheme: Scheme | None) -> cm.Expression:
    return mechanism if scheme is None else mechanism @ scheme


@pytest.mark.parametrize("scheme", SCHEMES, ids=str)
def test_a_pair_with_a_law_answers_every_question_as_the_same_masses_do(scheme: Scheme | None) -> None:
    run, truth = (on(mechanism, scheme) * 50 for mechanism in (KNOWN, TRUTH))
    orders = [1, 1.5, 2, 7, 64, math.inf]
    assert run.rdp(orders) == pytest.approx(truth.rdp(orders), rel=1e-9)
    found, known = run.guarantee(delta="1e-6"), truth.guarantee(delta="1e-6")
    assert found.lower is not None
    assert known.lower is not None
    assert found.epsilon == pytest.approx(known.epsilon, rel=2e-3)
    assert found.lower <= known.epsilon
    assert known.lower <= found.epsilon
    assert found.lower == pytest.approx(known.lower, rel=2e-3)
    assert run.delta(epsilon="0.5") == pytest.approx(truth.delta(epsilon="0.5"), rel=2e-2)
    assert run.advantage() == pytest.approx(truth.advantage(), rel=2e-2)
    assert found.verify()
    assert "ErasedResponse" in found.explain()
    for method in ("naive", "strong", "optimal"):
        assert run.epsilon("1e-6", method=method) == pytest.approx(truth.epsilon("1e-6", method=method), rel=1e-6)


@pytest.mark.parametrize("scheme", SCHEMES, ids=str)
def test_a_pair_with_a_curve_alone_answers_from_that(scheme: Scheme | None) -> None:
    run, truth = on(QUIET, scheme) * 50, on(TRUTH, scheme) * 50
    found, known = run.guarantee(delta="1e-6"), truth.guarantee(delta="1e-6")
    assert (found.lower, found.witness) == (None, "")
    assert "known by its curve only" in found.note
    assert known.lower is not None
    assert known.lower <= found.epsilon == run.epsilon("1e-6", method="rdp")
    assert run.delta(epsilon="0.5") >= truth.delta(epsilon="0.5") * (1 - 2e-2)
    assert (run.rdp([2, 7]) >= truth.rdp([2, 7], bound="lower") * (1 - 1e-9)).all()
    assert found.verify()


@pytest.mark.parametrize("bound", ["profile", "poisson", "theorem27", "positive-part", "lower"])
def test_a_named_bound_refuses_what_a_pair_does_not_say(bound: str) -> None:
    scheme = cm.Poisson(rate="0.1") if bound == "poisson" else cm.WithoutReplacement(rate="0.1")
    with pytest.raises(cm.HypothesisError, match=f"{bound} does not apply to ErasedResponse.*it needs the"):
        (QUIET @ scheme).rdp(2, bound=bound)
    if bound not in ("theorem27", "positive-part"):
        assert (KNOWN @ scheme).rdp(2, bound=bound) > 0


def test_with_other_mechanisms_a_run_is_exact_only_if_all_of_it_is() -> None:
    gaussian = cm.Gaussian(sigma=4) @ cm.WithoutReplacement(rate="0.1") * 20
    for mechanism, truth in ((KNOWN, True), (QUIET, False)):
        found = (gaussian + mechanism @ cm.WithoutReplacement(rate="0.1") * 20).guarantee(delta="1e-6")
        assert (found.lower is not None) is truth
    together = (KNOWN + cm.Gaussian(sigma=4)) @ cm.WithoutReplacement(rate="0.1")
    assert together.guarantee(delta="1e-6").lower is None  # no one pair is known of the two on one sample


# ---- what pairs of the library offer


def test_what_is_not_overridden_is_not_offered() -> None:
    quiet = Quiet(P, ANSWERS)
    assert (quiet.laws(), quiet.symmetric_law(), quiet.loss(), quiet.triple(Fraction(1, 2))) == (None, None, None, None)
    assert (quiet.mixture_curve(), quiet.amplified_curve(), quiet.poisson_curve()) == (None, None, None)
    assert (quiet.upper_step(Fraction(1, 2), "symmetric"), quiet.lower_step(Fraction(1, 2), "remove")) == (None, None)
    assert (quiet.has_moments, quiet.has_closed_form, quiet.has_grid_loss) == (False, False, False)
    assert quiet.composed_pair([(quiet, 2)]) is None
    with pytest.raises(cm.HypothesisError, match="Quiet offers no moments"):
        quiet.moments(2)
    with pytest.raises(cm.HypothesisError, match="Quiet offers no profile"):
        quiet.profile(1)


def test_a_pair_with_laws_that_is_not_symmetric_has_a_lower_curve_and_no_profile() -> None:
    """Of one direction nothing follows about both together."""

    class Lopsided(Quiet):
        __slots__ = ()

        def laws(self) -> tuple[Law, ...]:
            first = AtomLaw((Fraction(1, 4), Fraction(3, 4)), (Fraction(2), Fraction(2, 3)))
            return first, AtomLaw((Fraction(1, 2), Fraction(1, 2)), (Fraction(1, 2), Fraction(3, 2)))

    pair = Lopsided(P, ANSWERS)
    assert pair.mixture_curve() is not None
    assert (pair.amplified_curve(), pair.poisson_curve(), pair.loss()) == (None, None, None)


def test_three_values_are_offered_where_the_description_admits_them() -> None:
    rate = Fraction(1, 10)
    assert GaussianPair(Fraction(1)).triple(rate) is not None
    assert GaussianPair(Fraction(1), "ball").triple(rate) is None
    assert LaplacePair(Fraction(1)).triple(rate) is not None
    assert ResponsePair(p=P).triple(rate) is not None
    assert ResponsePair(p=P, one_bit=True).triple(rate) is None


def test_gaussians_compose_to_one_and_to_nothing_with_others() -> None:
    """shift^2 adds up; a rational shift is rounded up, and its partner down, by less than 1e-28."""
    one = GaussianPair(Fraction(3, 5), "ball")
    whole = one.composed_pair([(one, 1), (GaussianPair(Fraction(4, 5)), 1)])
    assert whole == GaussianPair(Fraction(1), "")
    assert whole.lower_pair is whole
    assert whole.triple(Fraction(1, 2)) is None  # queries on one sample may adapt to one another
    twice = one.composed_pair([(one, 2)])
    assert isinstance(twice, GaussianPair)
    assert twice.square == 2 * one.shift**2
    least = twice.lower_pair.gaussian_shift()
    assert least is not None
    assert least**2 < twice.square < twice.shift**2
    assert twice.shift - least < Fraction(1, 10**28)
    assert twice.composed_pair([(twice, 2)]) == GaussianPair(2 * one.shift, "")  # no rounding adds up
    assert one.composed_pair([(one, 1), (LaplacePair(Fraction(1)), 1)]) is None
    assert one.composed_pair([(one, 1), (None, 1)]) is None


def test_the_worst_pair_of_a_promise_leaks_what_it_may() -> None:
    """max(H(P||Q), …) at 0 is leak + (1 - leak) tanh(epsilon/2), the total variation of the two."""
    pair = PromisePair(Fraction(1), Fraction(1, 100))
    loss = pair.loss()
    assert loss is not None
    assert loss.leak == 0.01
    assert loss.distance + loss.leak == pytest.approx(0.01 + 0.99 * math.tanh(0.5), rel=1e-12)
    assert pair.curve().slack() == Fraction(1, 100)
    x, log_q = loss.atoms()
    assert np.exp(log_q).sum() + loss.leak + loss.equal == pytest.approx(1)
    assert x.tolist() == [-1.0, 1.0]


SHARED_BY_PAIRS = {
    "blanket",  # shuffled reports of a finite randomizer, by finitely many losses
    "discrete_laplace",  # the Laplace pair at integers
    "finite_losses",  # a base of pairs with finitely many losses
    "gaussian_replacement",  # the Gaussian pair on a sample with a replaced record
    "integer_noise_replacement",  # the same sample, of noise on the integers
    "laplace_replacement",  # the same sample, of Laplace noise
    "near_gaussian",  # the pair of discrete Gaussian noise, or a Gaussian pair above it
    "pair",  # what may be asked of a pair
    "product",  # a few rounds of finite pairs as one
    "public_choice",  # a mixture of other pairs
    "selection",  # the best of several runs of another pair
    "shuffle",  # reports of another pair in random order
    "worst_triples",  # three values that are worse than a pair
}
"""Files of the package that other pairs import or that import one; every other file is independent."""


@pytest.mark.tree
def test_every_file_of_the_package_is_independent_or_shared_by_pairs() -> None:
    root = Path(__file__).parents[2]
    settings = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))
    contracts = {contract["id"]: contract for contract in settings["tool"]["importlinter"]["contracts"]}
    independent = set(contracts["pairs"]["modules"])
    files = {f"cumulant.pairs.{path.stem}" for path in (root / "src/cumulant/pairs").glob("[!_]*.py")}
    assert independent <= files
    assert {name.rpartition(".")[2] for name in files - independent} <= SHARED_BY_PAIRS
