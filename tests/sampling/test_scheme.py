"""What runs on one sample: adaptive queries, sizes that are stated, schemes that a user writes."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
import pytest
from scipy import fft, special

import cumulant as cm
from cumulant.accounting.choices import Method
from cumulant.bounds.bound import nothing
from cumulant.losses.grid import Step
from cumulant.pairs.finite import DiscretePair
from cumulant.pairs.gaussian import GaussianPair
from cumulant.pairs.laplace import LaplacePair
from cumulant.pairs.pair import Pair
from cumulant.sampling.rated import Rated
from cumulant.sampling.scheme import SCHEMES, Scheme

# ---- two queries on one sample, the second chosen after the first answer

BINS, REACH = 300, 9.0
STEP, POINTS = 1e-3, 1 << 21
FOURIER = 1e-9  # a power of a spectrum of size 1 is wrong by a few ulp for each round, the sum by less than this


def masses(edges: np.ndarray, centre: float) -> np.ndarray:
    """Normal masses of the bins, from the side on which nothing cancels."""
    low, high = edges[:-1] - centre, edges[1:] - centre
    flip = low + high > 0
    return np.asarray(special.ndtr(np.where(flip, -low, high)) - special.ndtr(np.where(flip, -high, low)))


def adversary(shift: float, rate: float) -> tuple[np.ndarray, np.ndarray]:
    """The laws of two binned answers on the data sets r … r p and r … r q.

    The record r moves nothing. The first query moves by `shift` with p only; the second with p only where the first answer
    was large, so that p is likely to be in the sample, and otherwise with q only. Both have sensitivity `shift`.
    """
    inner = np.linspace(-REACH - shift, REACH + shift, BINS)
    edges = np.concatenate([[-np.inf], inner, [np.inf]])
    rest, moved = masses(edges, 0.0), masses(edges, shift)
    large = np.concatenate([[False], inner >= shift / 4])[:, None]
    without = np.outer(rest, rest)
    with_p = moved[:, None] * np.where(large, moved, rest)
    with_q = rest[:, None] * np.where(large, rest, moved)
    return ((1 - rate) * without + rate * with_p).ravel(), ((1 - rate) * without + rate * with_q).ravel()


@dataclass(frozen=True)
class Composed:
    """k rounds of an adversary: losses rounded down, outputs dropped, so that its delta is a lower bound."""

    losses: np.ndarray
    mass: np.ndarray
    outside: float

    def delta(self, epsilon: float) -> float:
        found = float(self.mass @ -np.expm1(np.minimum(epsilon - self.losses, 0.0)))
        return found - self.outside - FOURIER


def composed(p: np.ndarray, q: np.ndarray, times: int) -> Composed:
    there = (p > 1e-30) & (q > 1e-30)
    p, q = p[there], q[there]
    place = np.floor(np.log(p / q) / STEP).astype(np.int64)
    law = np.bincount(place - place.min(), p)
    loss = STEP * (place.min() + np.arange(law.size))
    window = np.zeros(POINTS)
    np.add.at(window, (place.min() + np.arange(law.size)) % POINTS, law)
    mass = fft.irfft(fft.rfft(window) ** times, POINTS)
    mean = float(law @ loss)
    start = round(times * mean / STEP) - POINTS // 2
    # what lies outside of the window is counted inside of it: Bernstein's inequality
    room, spread = STEP * (POINTS // 2 - 1), times * float(law @ (loss - mean) ** 2)
    largest = float(np.max(np.abs(loss - mean)))
    outside = 2 * math.exp(-(room**2) / (2 * spread + 2 * largest * room / 3))
    return Composed(STEP * (start + np.arange(POINTS)), np.roll(mass, -(start % POINTS)), outside)


def test_the_adversary_is_made_of_queries_of_this_sensitivity() -> None:
    p, q = adversary(1.0, 0.5)
    assert (p.sum(), q.sum()) == pytest.approx((1, 1), abs=1e-12)
    # without sampling the two queries are one Gaussian of shift sqrt(2), whatever the second one depends on
    p, q = adversary(1.0, 1.0)
    exact = cm.Gaussian(sigma=1, sensitivity="1.41421356237309504880168872420969808").delta(1)
    assert float(np.sum(np.maximum(p - math.e * q, 0.0))) == pytest.approx(exact, rel=2e-3)


@pytest.mark.parametrize(
    ("sigma", "rate", "times", "once"),
    [
        (1, "0.5", 10_000, 3404.27),
        (1, "0.5", 500, 243.96),
        ("0.7", "0.5", 2_000, 1677.35),
        (2, "0.6", 10_000, 1135.96),
        (1, "0.2", 10_000, 888.63),
        (1, "0.8", 10_000, 7219.96),
    ],
)
def test_no_claim_is_below_what_adaptive_queries_on_one_sample_need(
    sigma: int | str, rate: str, times: int, once: float
) -> None:
    """Theorems A, B and C are about one query on each sample; two that adapt need more than one with the summed shift.

    `once` is what Theorem B says of that one.
    """
    p, q = adversary(1 / float(Fraction(sigma)), float(Fraction(rate)))
    reached = composed(p, q, times)
    assert reached.delta(once) > 1e-5
    for geometry in ("diameter", "ball"):
        run = (cm.Gaussian(sigma=sigma, geometry=geometry) * 2) @ cm.WithoutReplacement(rate=rate) * times
        for method in ("best", "exact", "rdp"):
            assert reached.delta(run.epsilon("1e-5", method=method)) <= 1e-5, (geometry, method)
        assert run.delta(once) >= reached.delta(once)


def test_a_run_that_needs_more_than_3610() -> None:
    p, q = adversary(1.0, 0.5)
    assert composed(p, q, 10_000).delta(3610.0) > 1e-5
    assert ((cm.Gaussian(sigma=1) * 2) @ cm.WithoutReplacement(rate="0.5") * 10_000).epsilon("1e-5") > 3610


# ---- schemes that a user writes


@dataclass(frozen=True, repr=False)
class Block(Scheme):
    """The first records of the data set: nothing is amplified, because everybody knows who is among them. It has no rate."""

    records: int = 100

    relation: ClassVar[cm.Relation] = cm.Relation.REPLACE_ONE
    bounds: ClassVar[Mapping[str, cm.Bound]] = {
        "best": cm.Bound("best", "eps'(a) <= eps(a)", "nothing", "trivial", lambda base, *_: base, nothing)
    }

    def __str__(self) -> str:
        return f"Block(records={self.records})"


@dataclass(frozen=True, repr=False)
class Grouped(Block):
    """A block that tells the lattice what a run on it is made of, and nothing from below."""

    def steps_of(self, pair: Pair) -> tuple[Step, ...] | None:
        step = pair.upper_step(Fraction(1), "symmetric")
        return None if step is None else (step,)


@pytest.mark.parametrize("method", ["best", "exact", "rdp", "paper", "naive", "strong", "optimal"])
@pytest.mark.parametrize(
    "base",
    [cm.Gaussian(sigma=1), cm.Laplace(scale=1), cm.RandomizedResponse(p="0.9"), cm.ApproximateDP(1, "1e-3")],
    ids=str,
)
def test_a_scheme_is_composed_by_its_own_table_only(base: cm.Mechanism, method: Method) -> None:
    """What a scheme does not say is not claimed: no amplification, no lattice, no lower end."""
    run, needed = base @ Block() * 10, (base * 10).guarantee(delta="0.02").lower
    assert needed is not None
    try:
        claimed = run.epsilon("0.02", method=method)
    except cm.CumulantError:
        return
    assert claimed >= needed


@pytest.mark.parametrize("base", [cm.Gaussian(sigma=1), cm.Laplace(scale=1)], ids=str)
def test_a_scheme_that_says_nothing_about_pairs_has_no_witness(base: cm.Mechanism) -> None:
    run, plain = base @ Block() * 10, base * 10
    found = run.guarantee(delta="1e-5")
    assert found.epsilon >= plain.epsilon("1e-5")
    assert found.lower is None
    assert found.note
    assert run.delta(1) >= plain.delta(1) * (1 - 1e-3)
    assert run.advantage() >= plain.advantage() * (1 - 1e-3)
    assert run.true_positive_rate("0.01") >= plain.true_positive_rate("0.01") * (1 - 1e-3)
    mixed = run + cm.Gaussian(sigma=2) @ cm.WithoutReplacement(rate="0.1")
    assert mixed.epsilon("1e-5") >= plain.epsilon("1e-5")
    assert mixed.guarantee(delta="1e-5").lower is None


@pytest.mark.parametrize("base", [cm.Gaussian(sigma=1), cm.Laplace(scale=1)], ids=str)
def test_a_scheme_without_a_rate_is_explained_and_verified(base: cm.Mechanism) -> None:
    run = base @ Block() * 10
    assert run.rdp([2, 8]) == pytest.approx((base * 10).rdp([2, 8]), rel=1e-9)
    found = run.guarantee(delta="1e-5")
    assert "every sample is drawn as Block(records=100) says" in found.explain()
    assert "Block says nothing about loss distributions" in found.note
    assert found.verify()
    with pytest.raises(cm.HypothesisError, match="theorem9 does not apply to Block samples"):
        run.epsilon("1e-5", method="paper")
    for method in ("naive", "strong", "optimal"):
        with pytest.raises(cm.HypothesisError, match="not known for Block samples; use method="):
            run.epsilon("1e-5", method=method)


def test_what_a_scheme_does_not_say_is_not_claimed() -> None:
    plain, pair = Block(), GaussianPair(Fraction(1))
    assert (plain.steps_of(pair), list(plain.witnesses(pair))) == (None, [])
    assert (plain.closed_form(pair), plain.theorem_b_rate(pair), plain.merge(plain), plain.unknowns({})) == (
        (pair, None),
        None,
        None,
        {},
    )
    assert (plain.numbers(), plain.sizes(), plain.gridded) == ({}, (None, None), False)
    with pytest.raises(cm.HypothesisError, match="which is not known for "):
        plain.amplified(Fraction(1), Fraction(0))


def test_a_scheme_may_bound_from_above_and_say_nothing_from_below() -> None:
    run, plain = cm.Laplace(scale=1) @ Grouped() * 10, cm.Laplace(scale=1) * 10
    found, known = run.guarantee(delta="1e-5"), plain.guarantee(delta="1e-5")
    assert (found.route, found.epsilon) == (known.route, known.epsilon)
    assert found.evidence.bound == "best"  # the row of its own table, not that of another scheme
    assert known.lower is not None
    assert (found.lower, found.witness) == (None, "")
    assert run.epsilon("1e-5") < (cm.Laplace(scale=1) @ Block() * 10).epsilon("1e-5")
    one = cm.Laplace(scale=1) @ Grouped()  # no closed form is claimed of one round either
    assert one.guarantee(delta="1e-5").route != "closed form"
    assert one.epsilon("1e-5") >= cm.Laplace(scale=1).epsilon("1e-5")


# ---- what the schemes of the library say


@pytest.mark.parametrize("scheme", [cm.WithoutReplacement, cm.Poisson])
@pytest.mark.parametrize("rate", [Fraction(1, 1000), Fraction(3, 10), Fraction(1)], ids=str)
def test_a_statement_is_amplified_by_lemma_3(
    scheme: type[cm.WithoutReplacement] | type[cm.Poisson], rate: Fraction
) -> None:
    for epsilon in (Fraction(1, 100), Fraction(1), Fraction(20)):
        found, delta = scheme(rate=rate).amplified(epsilon, Fraction(1, 10**6))
        exact = math.log1p(float(rate) * math.expm1(float(epsilon)))
        assert exact * (1 - 1e-14) <= found <= exact * (1 + 1e-12)
        assert delta == rate / 10**6


def test_steps_and_witnesses_of_the_schemes_of_the_library() -> None:
    """Replace-one neighbours are either order in every round, add/remove ones have a direction for the whole run."""
    rate = Fraction(1, 10)
    lopsided = DiscretePair((Fraction(1, 10), Fraction(9, 10)), (Fraction(1, 5), Fraction(4, 5)))
    for pair, triples in ((GaussianPair(Fraction(1)), True), (LaplacePair(Fraction(1)), True), (lopsided, False)):
        fixed, poisson = cm.WithoutReplacement(rate=rate), cm.Poisson(rate=rate)
        assert [step.direction for step in fixed.steps_of(pair) or ()] == ["symmetric"]  # type: ignore[attr-defined]
        assert [step.direction for step in poisson.steps_of(pair) or ()] == ["remove", "add"]  # type: ignore[attr-defined]
        first, second, third, *corners = fixed.witnesses(pair)
        assert (first.covered, second.covered, third.covered) == (False, pair.symmetric, not triples)
        assert [corner.covered for corner in corners] == [pair.corners(rate) is None] * 2
        assert [each.name for each in poisson.witnesses(pair)] == [first.name, second.name]
        for scheme in (cm.WithoutReplacement(rate=1), cm.Poisson(rate=1)):
            assert len(scheme.steps_of(pair) or ()) == 1
    assert cm.WithoutReplacement(rate=rate).theorem_b_rate(GaussianPair(Fraction(1))) == rate
    assert cm.WithoutReplacement(rate=rate).theorem_b_rate(GaussianPair(Fraction(1), "")) is None
    assert cm.Poisson(rate=rate).theorem_b_rate(GaussianPair(Fraction(1))) is None


@pytest.mark.parametrize("name", sorted(SCHEMES.keys() - {"ShuffledBatches"}))  # which has no parameter
def test_a_scheme_says_what_calibrate_may_solve_for(name: str) -> None:
    unknowns = SCHEMES[name].unknowns({"population": "100", "sample": "10"})
    assert unknowns
    assert "rate" in unknowns or not issubclass(SCHEMES[name], Rated)
    if "sample" in unknowns and issubclass(SCHEMES[name], Rated):  # with replacement there is no limit
        assert (unknowns["sample"].high, unknowns["population"].low) == (Fraction(100), Fraction(10))
        assert {"sample", "population"}.isdisjoint(SCHEMES[name].unknowns({}))


# ---- sizes that are stated


def test_a_statement_about_so_many_records_runs_on_samples_of_that_size() -> None:
    draw = cm.GaussianMeanPosterior(diameter=1, variance=1, records=100)
    assert (draw @ cm.WithoutReplacement(sample=100, population=10_000)).rdp(2) > 0
    assert (draw @ cm.WithoutReplacement(rate="0.01")).rdp(2) > 0  # of a rate no size is known
    for size in (99, 101):
        with pytest.raises(
            cm.InputError, match=f"stated for 100 records but runs on samples of {size}; state it for {size} records"
        ):
            draw @ cm.WithoutReplacement(sample=size, population=10_000)
    with pytest.raises(cm.InputError, match="stated for 100 records but runs on samples of 200"):
        (cm.Gaussian(sigma=1) + draw * 3) @ cm.WithoutReplacement(sample=200, population=10_000)


def test_a_sample_of_a_sample_is_drawn_from_as_many_records_as_there_are() -> None:
    inner = cm.Gaussian(sigma=1) @ cm.WithoutReplacement(sample=10, population=100)
    assert inner @ cm.WithoutReplacement(sample=100, population=1000) == cm.Gaussian(sigma=1) @ cm.WithoutReplacement(
        "0.01"
    )
    with pytest.raises(cm.InputError, match="stated for 100 records but runs on samples of 50"):
        inner @ cm.WithoutReplacement(sample=50, population=1000)


STATED = [
    cm.Gaussian(sigma=1) @ cm.TruncatedPoisson(rate=".99", limit=1, population=50),
    cm.Gaussian(sigma=1) @ cm.WithoutReplacement(rate="0.1", relation="add-remove"),
    cm.Gaussian(sigma=1) @ cm.WithoutReplacement(sample=5, population=50, relation="add-remove"),
]
RANDOM = [
    cm.Poisson(rate=".9"),
    cm.Poisson(sample=45, population=50),
    cm.TruncatedPoisson(rate=".9", limit=10, population=50),
    cm.RandomAllocation(steps=3),
    cm.RandomAllocation(steps=5, picks=2),
]


@pytest.mark.parametrize("scheme", RANDOM, ids=str)
@pytest.mark.parametrize("inner", STATED, ids=str)
def test_what_is_stated_for_one_size_is_refused_on_samples_of_random_size(inner: cm.Mechanism, scheme: Scheme) -> None:
    with pytest.raises(cm.InputError, match=r"samples of .* have random sizes"):
        inner @ scheme
    with pytest.raises(cm.InputError, match=r"samples of .* have random sizes"):
        (cm.Gaussian(sigma=1) + inner * 2) @ scheme


@pytest.mark.parametrize("inner", STATED, ids=str)
def test_a_stated_size_says_nothing_of_a_group(inner: cm.Mechanism) -> None:
    """From 50 records to 52 there is a step from 51 to 52, about which a statement for 50 says nothing."""
    for run in (inner, inner * 3 + cm.PureDP(1), inner | cm.PureDP(1), inner @ cm.RepeatAndSelect(mean=2)):
        with pytest.raises(cm.HypothesisError, match="size"):
            run @ cm.Group(size=2)
    moved = cm.parallel(inner, cm.PureDP(1), relation="replace-one")
    assert moved.epsilon(1e-3) > 0
    with pytest.raises(cm.HypothesisError, match="change both sizes"):
        moved @ cm.Group(size=2)


def test_two_numbers_of_records_are_not_composed_by_their_order() -> None:
    """50 records and one more are 51 and one less, so that the cases of both statements do not match one by one."""
    one, other = (cm.Gaussian(sigma=1) @ cm.TruncatedPoisson(rate="0.9", limit=1, population=n) for n in (1, 2))
    for epsilon in (1, 2):
        assert (one + other).delta(epsilon) >= max(one.delta(epsilon), other.delta(epsilon))
    assert "do not match" in (one + other).guarantee(epsilon=1).note


# ---- a scheme of one's own has rows of its own


class Halved(Scheme):
    """All the data or nothing, by a fair coin: at most what runs, and the table says so under a name of its own."""

    relation: ClassVar[cm.Relation] = cm.Relation.REPLACE_ONE
    bounds: ClassVar[Mapping[str, cm.Bound]] = {
        name: cm.Bound(name, "eps'(a) <= eps(a)", "a coin", "a test", lambda base, pair, rate: base, nothing)
        for name in ("mine", "best")
    }


def test_the_row_of_a_scheme_of_ones_own_is_accepted_by_name() -> None:
    """bound="mine" was an unknown name, although the guarantee had named it."""
    run = cm.Gaussian(sigma=2) @ Halved() * 3
    assert run.rdp(2, bound="mine") == (cm.Gaussian(sigma=2) * 3).rdp(2)
    assert run.epsilon("1e-5", method="rdp", bound="mine") == (cm.Gaussian(sigma=2) * 3).epsilon("1e-5", method="rdp")
    found = run.guarantee(delta="1e-5", bound="mine")
    assert found.evidence.bound == "mine"
    assert "mine" in found.explain()
    with pytest.raises(cm.HypothesisError, match="mine does not apply to Poisson samples"):
        (cm.Gaussian(sigma=2) @ cm.Poisson(rate="0.1")).rdp(2, bound="mine")
    with pytest.raises(cm.InputError, match="unknown"):
        run.rdp(2, bound="yours")
    assert "mine" not in cm.BOUNDS


@pytest.mark.parametrize(
    "scheme",
    [
        cm.Poisson(rate="0.1"),
        cm.WithoutReplacement(rate="0.1"),
        cm.WithoutReplacement(rate="0.1", relation="add-remove"),
        cm.RandomAllocation(steps=10),
        cm.WithReplacement(sample=9, population=90),
        cm.TruncatedPoisson(rate="0.1", limit=20, population=90),
    ],
    ids=str,
)
def test_the_row_that_an_exact_answer_names_can_be_asked_for(scheme: Scheme) -> None:
    run = cm.Gaussian(sigma=3) @ scheme * 2
    named = run.guarantee(delta="1e-5", method="exact", accuracy="0.1").evidence.bound
    assert run.epsilon("1e-5", method="exact", bound=scheme.sharpened, accuracy="0.1") > 0
    assert named in ("gaussian-cone", scheme.sharpened)


def test_a_sample_that_displaces_says_what_to_do() -> None:
    scheme = cm.WithoutReplacement(rate="0.1", relation="add-remove")
    with pytest.raises(
        cm.RelationError, match="a fixed-size sample displaces a record, so give the mechanism for replace"
    ) as told:
        cm.Gaussian(sigma=1, relation=cm.Relation.ADD_REMOVE) @ scheme
    assert "WithoutReplacement" in str(told.value)
    with pytest.raises(cm.HypothesisError, match="does not apply to WithoutReplacement samples"):
        (cm.Gaussian(sigma=1) @ scheme).rdp(2, bound="theorem9")


@pytest.mark.parametrize(
    "scheme",
    [
        cm.Poisson(rate="1/4"),
        cm.WithoutReplacement(rate="1/4"),
        cm.WithReplacement(sample=2, population=9),
        cm.TruncatedPoisson(rate="1/4", limit=3, population=9),
        cm.RandomAllocation(steps=7, picks=2),
        cm.ShuffledBatches(batch=2, records=9, drop_last=True),
        cm.BallsInBins(bins=3),
        cm.CyclicPoisson(cycle=2, rate="1/4"),
        cm.FixedOrder(every=3),
        cm.MinSep(separation=3, most=2),
    ],
    ids=str,
)
def test_a_scheme_shows_its_parameters_by_their_names(scheme: Any) -> None:
    """`RandomAllocation(steps=7).steps` is 7: what is written can be asked for."""
    shown = scheme.numbers()
    assert shown
    for name, value in shown.items():
        assert getattr(scheme, name) == value
