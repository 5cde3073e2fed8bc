"""Combinators of combinators against enumeration on tiny data sets, and faults that are planted for it to find."""

import itertools
import math
import random
from contextlib import suppress

import numpy as np
import pytest

import cumulant as cm
from benchmarks import hunt_combinators as hunt
from benchmarks import hunt_notation
from benchmarks.enumeration import Tiny, generating, neighbours, release, risen
from benchmarks.settings import DRAWS
from cumulant.exact import answer
from cumulant.mechanisms.mechanism import MECHANISMS, Expression
from cumulant.mechanisms.parallel import Parallel
from cumulant.sampling.poisson import Poisson
from cumulant.sampling.scheme import SCHEMES
from cumulant.sampling.with_replacement import WithReplacement
from tests.effort import EFFORT, drawn, share
from tests.laws.strategies import WHOLE_RUNS

FEW = 3
"""Releases of each expression."""

QUICK = ("RandomizedResponse", "PureDP", "GaussianDP")
"""Mechanisms whose curves take no time; the hunt takes all."""

TAKING_PART = {"BallsInBins", "CyclicPoisson", "FixedOrder", "MinSep"}
"""They go around a whole run; tests/mechanisms enumerates them."""


MINUTES = {36}
"""Numbers that take minutes: the best of a Poisson number of passes in batches; the hunt gives them 10 s."""


DRAWN = 12 if EFFORT == 1 else 40
"""Expressions that are drawn; `make hunt` draws on for ten minutes."""


@pytest.mark.parametrize("number", sorted({*range(DRAWN)} - MINUTES))
def test_two_combinators_against_enumeration(number: int) -> None:
    assert not hunt.instances(number, hunt.drawn, FEW)[1]


NESTED = [
    (leaf, outer, inner)
    for outer in range(len(hunt.SAMPLES))
    for inner in range(len(hunt.SAMPLES))
    for leaf in share((0, 10), outer + inner)
]
"""Every sample of every sample, with two mechanisms in turn; `make hunt` asks all mechanisms of all."""


@pytest.mark.parametrize(("leaf", "outer", "inner"), NESTED)
def test_samples_of_samples_against_enumeration(leaf: int, outer: int, inner: int) -> None:
    count = len(hunt.SAMPLES)
    outcome, found = hunt.instances((leaf * count + outer) * count + inner, hunt.nested, FEW)
    assert not found, outcome


def test_both_mechanisms_are_asked_of_every_sample() -> None:
    for place in (1, 2):
        both = {(each[place], each[0]) for each in NESTED}
        assert both == {(sample, leaf) for sample in range(len(hunt.SAMPLES)) for leaf in (0, 10)}


def test_every_scheme_is_hunted() -> None:
    samples = {type(each).__mro__[0].__name__ for each in (*hunt.SAMPLES, *hunt.OTHERS)}
    assert samples >= set(SCHEMES) - TAKING_PART
    differ = set(DRAWS) ^ (set(MECHANISMS) - WHOLE_RUNS)
    assert not differ, (
        f"{differ} is registered or in DRAWS, not both; add it to DRAWS of benchmarks/settings.py, see CONTRIBUTING"
    )
    assert set(hunt_notation.LEAVES) >= set(MECHANISMS)
    texts = accepted(400)
    taken = {scheme for scheme in SCHEMES if any(scheme in text for text in texts)}
    assert taken == set(SCHEMES) - TAKING_PART


def accepted(count: int) -> list[str]:
    """Expressions of the hunt that the library takes."""
    found = []
    for number in range(count):
        with suppress(cm.CumulantError):
            found.append(str(hunt.drawn(number)))
    return found


# ---- the enumeration itself


def test_releases_are_laws_of_what_they_describe() -> None:
    """Masses sum to 1; neighbouring laws of pure mechanisms are as far apart as the definition allows, and no farther."""
    rng = np.random.default_rng(4)
    for run, epsilon in (
        (cm.RandomizedResponse(p="0.75"), math.log(3)),
        (cm.PureDP("0.8"), 0.8),
        (cm.ExponentialMechanism(1), 1.0),
        (cm.DiscreteLaplace(scale=2), 0.5),
    ):
        worst = 0.0
        for relation in (cm.Relation.ADD_REMOVE, cm.Relation.REPLACE_ONE):
            for _ in range(30):
                law = release(run, Tiny(rng, 3, relation))
                for x, y in neighbours(run, relation, 3, 1, 2):
                    assert law(x).sum() == pytest.approx(1, abs=1e-12)
                    worst = max(worst, float(np.abs(np.log(law(x) / law(y))).max()))
        assert 0.8 * epsilon <= worst <= epsilon * (1 + 1e-9)


def test_the_number_of_runs_has_its_mean() -> None:
    for scheme in (
        cm.RepeatAndSelect(mean=3),
        cm.RepeatAndSelect(mean=2, shape=0),
        cm.RepeatAndSelect(mean="2.5", shape=2),
        cm.RepeatAndSelect(mean="1.5", number="poisson"),
    ):
        step = 1e-6
        values = generating(scheme, np.array([0.0, 1 - step, 1.0]))
        assert values[2] == pytest.approx(1)
        assert (values[2] - values[1]) / step == pytest.approx(float(scheme.mean), rel=1e-4)
        assert values[0] == pytest.approx(math.exp(-1.5) if scheme.number == "poisson" else 0)


def test_a_rare_output_of_the_best_run_keeps_its_mass() -> None:
    """A difference of two powers makes 0 of it, and then an enumeration needs an infinite loss."""
    mass = np.array([1e-17])
    for scheme, slope in (
        (cm.RepeatAndSelect(mean=3), 3.0),
        (cm.RepeatAndSelect(mean=2, shape=0), 2.0),
        (cm.RepeatAndSelect(mean="1.5", number="poisson"), 1.5),
    ):
        assert risen(scheme, np.ones(1), mass)[0] == pytest.approx(slope * 1e-17, rel=1e-9)


def test_neighbours() -> None:
    run = cm.Gaussian(sigma=1)
    assert set(neighbours(run, cm.Relation.ADD_REMOVE, 2, 1, 1)) == {((0,), ()), ((1,), ())}
    of_one, of_two = {((0,), (1,)), ((1,), (0,))}, {((0, 0), ()), ((0, 1), ()), ((1, 1), ())}
    swapped = {((0, 0), (0, 1)), ((0, 1), (0, 0)), ((0, 1), (1, 1)), ((1, 1), (0, 1))}
    assert set(neighbours(run, cm.Relation.ADD_REMOVE, 2, 2, 1)) == of_one | of_two | swapped
    replaced = neighbours(run, cm.Relation.REPLACE_ONE, 2, 2, 2)
    assert set(replaced) == {((0, 0), (1, 1)), ((0, 1), (1, 0))}
    stated = neighbours(run @ cm.TruncatedPoisson("0.5", 1, 2), cm.Relation.ADD_REMOVE, 2, 1, 9)
    assert {(len(x), len(y)) for x, y in stated} == {(2, 1), (3, 2)}


# ---- planted faults


def found(run: Expression) -> str:
    """What the hunt says of one expression, however it was found."""
    known = hunt.claims.__wrapped__(run)
    return " ".join(itertools.chain.from_iterable(hunt.faults(run, known, 1, i) for i in range(30)))


def test_a_group_that_changes_one_part_only_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Parallel, "grouped_pair", lambda run, size: run.pair() and run.pair().group_pair(size))
    monkeypatch.setattr(Parallel, "grouped_curve", cm.Mechanism.grouped_curve)
    response = cm.RandomizedResponse(p="0.7501")
    for run in (response | response, cm.parallel(response, response, by="position")):
        text = found(run @ cm.Group(size=2))
        assert "delta(0.7)" in text
        assert "epsilon(0)" in text
        assert "rdp(2.0)" in text


def test_a_stated_size_on_a_random_sample_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Poisson, "fixed", True)
    run = cm.Gaussian(sigma=1) @ cm.TruncatedPoisson("0.9", limit=1, population=2) @ cm.Poisson(rate="0.9")
    run_larger = cm.Gaussian(sigma=1) @ cm.TruncatedPoisson("0.9", limit=1, population=50) @ cm.Poisson(rate="0.9")
    assert "delta" in found(run) + found(run_larger)


def test_copies_that_are_not_counted_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(WithReplacement, "copies", 1)
    assert "gaussian_mu" in found(cm.Gaussian(sigma=1) @ cm.WithReplacement(sample=2, population=2))


def test_a_direction_that_is_left_out_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(answer, "_directed_terms", lambda rounds, direction: [list(rounds.upper())[direction]])
    run = cm.Gaussian(sigma=1) @ cm.TruncatedPoisson("0.9", limit=1, population=1)
    assert "privacy_loss" in found(run)


# ---- laws that need no truth


RUNS: list[Expression] = [
    cm.Gaussian(sigma=2) @ cm.Poisson(rate="0.1"),
    cm.Laplace(scale=3) @ cm.WithoutReplacement(rate="0.2") * 3,
    cm.PureDP("0.7") @ cm.WithReplacement(sample=3, population=50),
    cm.Gaussian(sigma=3) @ cm.TruncatedPoisson("0.2", limit=5, population=50),
    cm.KaryResponse(values=4, p="0.5") @ cm.WithoutReplacement(rate="0.3"),
    cm.PureDP("0.3") @ cm.Shuffle(reports=100),
    (cm.RandomizedResponse(p="0.7") | cm.RandomizedResponse(p="0.6")) @ cm.Group(size=2),
    cm.parallel(cm.Laplace(scale=2), cm.Laplace(scale=3), relation="replace-one"),
    cm.ApproximateDP("0.1", "1e-4") * 5 + cm.ExponentialMechanism("0.3"),
]


@pytest.mark.parametrize("run", RUNS, ids=str)
def test_laws_of_runs(run: Expression) -> None:
    assert not [*hunt_notation.disorder(run), *hunt_notation.falling(run), *hunt_notation.printed(run)]


NUMBERS = range(7_000_000, 7_000_000 + drawn(10))
"""Expressions that the tests draw; the hunt draws others."""

CHEAP = (7_000_001, 7_000_002, 7_000_005, 7_000_006)
"""Those whose interval takes a fraction of a second; the others are parallel parts."""


def quick(rng: random.Random) -> Expression:
    """A mechanism whose curve is a formula."""
    return hunt_notation.LEAVES[rng.choice(QUICK)](rng)


@pytest.mark.parametrize("number", CHEAP)
def test_drawn_expressions_obey_the_laws(number: int) -> None:
    found, rng = hunt_notation.drawn(number, quick), random.Random(number)
    assert not [*hunt_notation.interval(found.run, rng), *hunt_notation.same(number, found, rng, quick)]


def test_equal_runs_have_equal_curves() -> None:
    for number in NUMBERS:
        assert not [*hunt_notation.foreign(number)]


def test_refusals_are_sentences() -> None:
    refused = [said for number in NUMBERS for said in hunt_notation.drawn(number).refused]
    assert len(refused) > len(NUMBERS)
    assert not [fault for said in refused for fault in hunt_notation.unreadable(said)]
    assert [*hunt_notation.unreadable(cm.InputError("<class 'int'> is wrong"))]


def test_equality_by_text_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def twice(factor: int) -> Expression:
        mine = cm.from_rdp(rdp=lambda order: order * factor / 10**5, name="mine")
        return cm.parallel(mine, mine, relation="replace-one")

    assert not [*hunt_notation.two_functions(twice(1), twice(1000))]
    monkeypatch.setattr(Parallel, "key", lambda run: (str(run), run.by, run.moved))
    assert [*hunt_notation.two_functions(twice(1), twice(1000))]


def test_a_bound_below_a_lower_end_is_found() -> None:
    run = cm.Gaussian(sigma=1)
    low = hunt_notation.floor(run, "1e-6")
    assert low is not None
    assert not [*low.exceeds(run.epsilon("1e-6"), "epsilon")]
    assert [*low.exceeds(cm.Gaussian(sigma=2).epsilon("1e-6"), "epsilon")]
    private = hunt_notation.more_private(run, random.Random(1))
    assert private is not None
    assert private.epsilon("1e-6") < run.epsilon("1e-6")
