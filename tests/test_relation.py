"""A relation says what it means, what clipping costs under it, and what is assumed."""

import itertools
import math
import pickle

import numpy as np
import pytest

import cumulant as cm
from cumulant.domains import Exact
from cumulant.relation import Relation, agreed
from cumulant.sampling.scheme import Scheme


def test_a_clipped_sum_moves_by_twice_the_norm_where_a_record_is_replaced() -> None:
    """f(X) = sum of vectors of norm at most C: |x - x'| <= 2C, |x| <= C, both reached (E-2)."""
    assert Relation.REPLACE_ONE.clipped(Exact("1.5")) == 3
    assert Relation.ADD_REMOVE.clipped(Exact("1.5")) == Exact("1.5")
    with pytest.raises(cm.InputError, match="relation='any' does not fix the sensitivity"):
        Relation.ANY.clipped(Exact(1))
    for mechanism in (cm.Gaussian, cm.Laplace):
        replaced, added = (mechanism.from_clipping("1.5", 6, relation) for relation in ("replace-one", "add-remove"))
        assert replaced.rdp(2) == mechanism(6, 3).rdp(2)
        assert added.rdp(2) == mechanism(6, "1.5").rdp(2)


@pytest.mark.parametrize("relation", Relation)
def test_every_relation_speaks_for_itself(relation: Relation) -> None:
    assert relation.meaning in relation.neighbours_for(1)
    assert relation.neighbours_for(1).startswith("for ")
    assert relation.guessed_for(1).startswith("one record")
    assert "clipping to norm C" in relation.assumed
    if relation.clipping is not None:
        assert str(relation) in relation.neighbours_for(1)
        assert relation.assumed.endswith({1: "counts as C", 2: "counts as 2C"}[relation.clipping])


def test_two_relations_have_nothing_in_common() -> None:
    replaced, added = (cm.Gaussian(sigma=1, relation=each) for each in ("replace-one", "add-remove"))
    assert agreed([cm.PureDP(1), added]) == (Relation.ADD_REMOVE, added)
    with pytest.raises(
        cm.RelationError, match=r"Gaussian\(.*\) is stated for replace-one neighbours and .* for add-remove neighbours"
    ):
        agreed([replaced, added])


# ---- a record that a special one replaces

SPECIAL = "replace-special"
NOISY = cm.Gaussian.from_clipping(norm=1, noise=2, relation=SPECIAL)


@pytest.mark.parametrize("rate", [0.3, 1.0])
@pytest.mark.parametrize("scale", [0.7, 2.0])
def test_every_sum_with_a_special_record_is_below_what_is_claimed_and_one_attains_it(rate: float, scale: float) -> None:
    """Poisson samples of three records of -1, 0 or 1, discrete Laplace noise, 0 in the place of one of them."""
    points = np.arange(-60, 61)

    def law(records: tuple[int, ...]) -> np.ndarray:
        found = np.zeros(len(points))
        for drawn in itertools.product((0, 1), repeat=len(records)):
            total = sum(value for value, each in zip(records, drawn, strict=True) if each)
            weight = math.prod(rate if each else 1 - rate for each in drawn)
            found += weight * np.exp(-np.abs(points - total) / scale)
        return found * math.tanh(1 / (2 * scale))

    run = cm.DiscreteLaplace(scale=scale, relation=cm.Relation(SPECIAL)) @ cm.Poisson(rate=rate, relation=SPECIAL)
    for epsilon in (0.1, 0.4, 1.0):
        needed = 0.0
        for records in itertools.product((-1, 0, 1), repeat=3):
            zeroed = (0, *records[1:])
            for first, second in ((records, zeroed), (zeroed, records)):
                needed = max(needed, float(np.maximum(law(first) - math.exp(epsilon) * law(second), 0).sum()))
        claimed = run.delta(epsilon)
        assert needed <= claimed + 1e-12
        assert claimed <= needed * (1 + 1e-3) + 1e-9


@pytest.mark.parametrize(
    "run",
    [
        NOISY,
        NOISY @ cm.Poisson(rate="0.01", relation=SPECIAL) * 100,
        cm.Laplace.from_clipping(norm=1, noise=2, relation=SPECIAL),
        cm.DiscreteGaussian(sigma=2, dimension=1, relation=cm.Relation(SPECIAL)),
        cm.GaussianMixture(1, [0, 1], [".9", ".1"], relation=cm.Relation(SPECIAL)) @ cm.Poisson(".5", relation=SPECIAL),
        cm.Gaussian.from_clipping(norm=1, noise=2, relation=SPECIAL, averaged_over=100),
        cm.Gaussian.from_matrix([[1, 0], ["1/2", 1]], sigma=2, relation=SPECIAL),
        cm.parallel(NOISY, cm.PureDP(1), by="position"),
        NOISY @ cm.Group(size=3),
        NOISY @ cm.RepeatAndSelect(mean=3),
    ],
    ids=str,
)
def test_runs_for_special_records_are_told_apart_and_survive(run: cm.Expression) -> None:
    """The numbers are those of a record removed, where that can be written; text, copies and answers keep the relation."""
    assert run.relation is cm.Relation.REPLACE_SPECIAL
    assert cm.parse(run.notation()) == run
    assert pickle.loads(pickle.dumps(run)) == run
    assert SPECIAL in run.guarantee(delta="1e-6").explain()
    with pytest.raises(cm.RelationError, match="restate one of them"):
        run + cm.Gaussian(sigma=1, relation=cm.Relation.ADD_REMOVE)
    if "averaged_over" in str(run) or "position" in str(run):
        return
    removed = cm.parse(run.notation().replace(SPECIAL, "add-remove"))
    assert removed != run
    assert removed.epsilon("1e-6") == run.epsilon("1e-6")


def test_poisson_samples_beside_replaced_records_get_a_spelling() -> None:
    clipped = cm.Gaussian(noise_multiplier=1, relation="replace-one") @ cm.ShuffledBatches()
    sampled = cm.Gaussian(noise_multiplier=1, relation="add-remove") @ cm.Poisson(rate="1%")
    with pytest.raises(cm.RelationError, match=r"@ Poisson\(rate=…, relation='replace-one'\)$"):
        sampled + clipped
    noise = cm.Gaussian(noise_multiplier=1, relation="replace-one")
    assert (noise @ cm.Poisson(rate="1%", relation="replace-one") + clipped).relation is cm.Relation.REPLACE_ONE


def test_a_mean_keeps_its_special_record() -> None:
    """It counts among the records and adds nothing: the mean moves by C / n."""
    mean = cm.Gaussian.from_clipping(norm=1, noise="0.02", relation=SPECIAL, averaged_over=100)
    assert mean.rdp(2) == cm.Gaussian(sigma=2).rdp(2)
    with pytest.raises(cm.InputError, match=r"samples of .* have random sizes"):
        mean @ cm.Poisson(rate="0.1", relation=SPECIAL)


@pytest.mark.parametrize(
    "scheme",
    [
        cm.Poisson(rate="0.1"),
        cm.Poisson(rate="0.1", relation="replace-one"),
        cm.WithoutReplacement(rate="0.1"),
        cm.WithoutReplacement(sample=1, population=10, relation="add-remove"),
        cm.WithReplacement(sample=1, population=10),
        cm.TruncatedPoisson(rate="0.1", limit=3, population=10),
        cm.RandomAllocation(steps=10),
        cm.RandomAllocation(steps=10, picks=3),
        cm.Shuffle(reports=10),
        cm.ShuffledBatches(),
    ],
    ids=str,
)
def test_schemes_whose_statement_has_no_special_record_refuse_it(scheme: Scheme) -> None:
    for run in (NOISY, NOISY * 2, NOISY @ cm.Poisson(rate="0.5", relation=SPECIAL)):
        with pytest.raises(cm.CumulantError):
            run @ scheme


def test_what_a_special_record_is_refused_for_names_the_spelling() -> None:
    with pytest.raises(cm.RelationError, match="leave it out for replace-special"):
        cm.Gaussian(sigma=1, geometry="ball", relation=cm.Relation.REPLACE_SPECIAL)
    with pytest.raises(cm.RelationError, match='by="position" if its place decides'):
        NOISY | NOISY
    with pytest.raises(cm.RelationError, match='by="position" if its place decides'):
        cm.parallel(NOISY, NOISY, relation="replace-one")
    with pytest.raises(cm.InputError, match='for replace-special neighbours say by="position"'):
        cm.parallel(cm.PureDP(1), cm.PureDP(1), relation=SPECIAL)
    with pytest.raises(cm.InputError, match="'add-remove' or 'replace-one' or"):
        cm.Poisson(rate="0.1", relation="any")
    with pytest.raises(cm.RelationError, match="nothing is proved for replace-one"):
        cm.GaussianMixture(1, [0, 1], [".9", ".1"], relation=cm.Relation.REPLACE_ONE)
    with pytest.raises(cm.RelationError, match="stated for replace-one"):
        cm.KaryResponse(values=3, p="0.75") @ cm.Poisson(rate="0.1", relation=SPECIAL)
