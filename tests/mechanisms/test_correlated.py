"""Runs whose steps share noise: they may be repeated and added, and every sample of them is refused."""

import copy
import dataclasses
import math
import pickle

import numpy as np
import pytest

import cumulant as cm
from cumulant.sampling.scheme import SCHEMES

ADD = cm.Relation.ADD_REMOVE
MATRIX = cm.Gaussian.from_matrix([[1, 0], ["1/2", 1]], sigma=2, relation="add-remove")
TREE = cm.Gaussian.from_tree(sigma=5, steps=100)
SAME = cm.Gaussian(sigma=2, squared_sensitivity="1.25", relation=ADD)

SAMPLES = {
    "Poisson": cm.Poisson(rate="0.1"),
    "Poisson of all": cm.Poisson(rate=1),
    "replace-special Poisson": cm.Poisson(rate="0.1", relation="replace-special"),
    "replace-one Poisson": cm.Poisson(rate="0.1", relation="replace-one"),
    "WithoutReplacement": cm.WithoutReplacement(rate="0.1"),
    "WithoutReplacement of all": cm.WithoutReplacement(rate=1),
    "displacing": cm.WithoutReplacement(rate="0.1", relation="add-remove"),
    "WithReplacement": cm.WithReplacement(sample=3, population=90),
    "TruncatedPoisson": cm.TruncatedPoisson(rate="0.1", limit=20, population=90),
    "RandomAllocation": cm.RandomAllocation(steps=9),
    "RandomAllocation of one step": cm.RandomAllocation(steps=1),
    "RandomAllocation, all picked": cm.RandomAllocation(steps=3, picks=3),
    "RandomAllocation, some picked": cm.RandomAllocation(steps=5, picks=2),
    "ShuffledBatches": cm.ShuffledBatches(),
}

RUNS = {
    "matrix": MATRIX,
    "tree": TREE,
    "repeated": MATRIX * 3,
    "a sum with another": MATRIX + cm.PureDP(1),
    "a sum with an equal one": SAME + MATRIX,
    "an equal one first": MATRIX + SAME,
    "a sum of three": SAME + SAME + MATRIX,
    "group": MATRIX @ cm.Group(size=2),
    "selection": MATRIX @ cm.RepeatAndSelect(mean=3),
    "parallel": MATRIX | cm.PureDP(1),
    "parallel, moved": cm.parallel(MATRIX, MATRIX, relation="replace-one"),
    "group of a selection": MATRIX @ cm.RepeatAndSelect(mean=2) @ cm.Group(size=2),
    "special": cm.Gaussian.from_matrix([[1, 0], ["1/2", 1]], sigma=2, relation="replace-special"),
    "group of one": MATRIX @ cm.Group(size=1),
    "selection of one": MATRIX @ cm.RepeatAndSelect(mean=1),
}


def test_every_scheme_that_draws_is_tried() -> None:
    drawing = {name for name, scheme in SCHEMES.items() if scheme.draws}
    assert drawing == {getattr(scheme, "word", type(scheme).__name__) for scheme in SAMPLES.values()}


@pytest.mark.parametrize("sample", SAMPLES)
@pytest.mark.parametrize("name", RUNS)
def test_every_sample_is_refused(name: str, sample: str) -> None:
    for run in (RUNS[name], cm.parse(str(RUNS[name]))):
        with pytest.raises(cm.CumulantError):
            run @ SAMPLES[sample]
        with pytest.raises(cm.CumulantError):
            cm.parse(f"({run}) @ {SAMPLES[sample]}")


def test_the_refusal_has_the_right_spelling() -> None:
    for run in (MATRIX, TREE * 2, SAME + MATRIX):
        with pytest.raises(
            cm.InputError,
            match=r"one release of correlated rows.*BallsInBins\(bins=.*CyclicPoisson\(cycle=.*FixedOrder\(",
        ):
            run @ cm.Poisson(rate="0.1")
    recipe = SAME @ cm.Poisson(rate="0.1") * 3  # what CyclicPoisson composes
    new = cm.MatrixMechanism(bands=[1, "1/2"], steps=6, sigma=2) @ cm.CyclicPoisson(cycle=2, rate="0.1")
    assert recipe.epsilon("1e-6") == new.epsilon("1e-6") > 0


@pytest.mark.parametrize("name", RUNS)
def test_the_mark_survives_text_and_json(name: str) -> None:
    run = RUNS[name]
    again = cm.parse(str(run))
    assert again == run
    assert 'correlated="yes"' in str(again)
    found = run.guarantee(delta="1e-5", method="rdp")
    stored = cm.Guarantee.from_json(found.to_json())
    assert stored == found
    assert stored.run == str(run)


@pytest.mark.parametrize("name", RUNS)
def test_the_mark_survives_copies_and_accountants(name: str) -> None:
    run, accountant = RUNS[name], cm.Accountant()
    accountant.compose(run, 2)
    copies: list[cm.Expression] = [copy.copy(run), copy.deepcopy(run), pickle.loads(pickle.dumps(run)), run + run]
    copies += [accountant, copy.copy(accountant), pickle.loads(pickle.dumps(accountant))]
    copies += [cm.Accountant.from_json(accountant.to_json()), accountant + cm.PureDP(1)]
    for each in copies:
        with pytest.raises(cm.CumulantError):
            each @ cm.Poisson(rate="0.1", relation=str(run.relation) if name == "special" else None)


def test_the_mark_survives_other_parameters() -> None:
    (node,) = TREE.terms
    assert isinstance(node, cm.Gaussian)
    changed = dataclasses.replace(node, sigma=3)
    found = cm.calibrate(str(MATRIX).replace("sigma=2", "sigma=?"), epsilon=1, delta="1e-5").run
    for each in (changed, found):
        with pytest.raises(cm.InputError, match="one release of correlated rows"):
            each @ cm.Poisson(rate="0.1")
    with pytest.raises(cm.InputError, match="one release of correlated rows"):
        cm.calibrate(f"({str(MATRIX).replace('sigma=2', 'sigma=?')}) @ Poisson(0.1)", epsilon=1, delta="1e-5")


def test_answers_without_a_sample_are_those_of_the_noise() -> None:
    for marked, plain in ((MATRIX, SAME), (MATRIX * 3, SAME * 3), (TREE, cm.Gaussian(sigma=5) * 7)):
        assert marked.epsilon("1e-6") == plain.epsilon("1e-6")
        assert marked.guarantee(delta="1e-6").lower == plain.guarantee(delta="1e-6").lower
        assert marked.rdp(3) == plain.rdp(3)
        assert marked.gaussian_mu() == plain.gaussian_mu()
        assert marked != plain
    assert (MATRIX + SAME).epsilon("1e-6") == (SAME * 2).epsilon("1e-6")
    assert (MATRIX @ cm.Group(size=2)).epsilon("1e-6") == (SAME @ cm.Group(size=2)).epsilon("1e-6")
    for wrong in (1, "true", None):
        with pytest.raises(cm.InputError, match="correlated="):
            cm.Gaussian(sigma=1, correlated=wrong)  # type: ignore[arg-type]


def test_a_sample_of_the_run_is_not_a_sample_per_step() -> None:
    """Prefix sums of two steps, the record in one of them by a fair coin: more than the sampled sensitivity says.

    The truth is a mixture of N((1, 1)) and N((0, 1)) against N(0), by a sum over a fine grid of the plane.
    """
    sigma, epsilon = 2.0, 0.5
    matrix = cm.Gaussian.from_matrix([[1, 0], [1, 1]], sigma=2, relation="add-remove")
    with pytest.raises(cm.InputError):
        matrix @ cm.RandomAllocation(steps=2)
    x = np.arange(-16, 18, 0.02)
    one, two = np.meshgrid(x, x)

    def density(a: float, b: float) -> np.ndarray:
        return np.asarray(np.exp(-((one - a) ** 2 + (two - b) ** 2) / (2 * sigma**2)) / (2 * math.pi * sigma**2))

    mixture = (density(1, 1) + density(0, 1)) / 2
    truth = float(np.maximum(mixture - math.exp(epsilon) * density(0, 0), 0).sum() * 0.02**2)
    trap = cm.Gaussian(sigma=2, squared_sensitivity=2, relation=ADD) @ cm.RandomAllocation(steps=2)
    assert trap.delta(epsilon="0.5") < 0.9 * truth
    assert truth < matrix.delta(epsilon="0.5")
