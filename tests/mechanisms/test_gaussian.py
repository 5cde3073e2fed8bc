"""Gaussian noise: clipped sums carry the relation of their sensitivity."""

from fractions import Fraction

import pytest

import cumulant as cm

REPLACED = cm.Gaussian.from_clipping(norm=1, noise=2, relation="replace-one")
ADDED = cm.Gaussian.from_clipping(norm=1, noise=2, relation="add-remove")


def test_a_clipped_sum_carries_its_relation() -> None:
    assert REPLACED.relation is cm.Relation.REPLACE_ONE
    assert REPLACED.sensitivity == 2
    assert REPLACED.geometry == "ball"
    assert ADDED.relation is cm.Relation.ADD_REMOVE
    assert ADDED.sensitivity == 1
    assert ADDED.geometry == "diameter"


@pytest.mark.parametrize("clipped", [REPLACED, cm.Gaussian(sigma=1, geometry="ball"), REPLACED * 3], ids=str)
def test_a_replace_one_sensitivity_is_refused_under_poisson(clipped: cm.Expression) -> None:
    with pytest.raises(cm.RelationError, match=r'Gaussian\(noise_multiplier=…, relation="add-remove"\)'):
        clipped @ cm.Poisson(rate=0.1)
    with pytest.raises(cm.RelationError, match="a run has one relation"):
        clipped + cm.Gaussian(sigma=1) @ cm.Poisson(rate=0.1)
    accountant = cm.Accountant()
    accountant.compose(ADDED @ cm.Poisson(rate=0.1))
    with pytest.raises(cm.RelationError, match="a run has one relation"):
        accountant.compose(clipped)
    assert (ADDED @ cm.Poisson(rate=0.1)).relation is cm.Relation.ADD_REMOVE


def test_an_add_remove_sensitivity_is_refused_without_replacement() -> None:
    with pytest.raises(cm.RelationError, match=r'Gaussian\(noise_multiplier=…, relation="replace-one"\)'):
        ADDED @ cm.WithoutReplacement(rate=0.1)
    with pytest.raises(cm.RelationError, match="replace-one"):
        cm.Gaussian(sigma=1, geometry="ball", relation="add-remove")


@pytest.mark.parametrize(
    "run",
    [
        REPLACED,
        ADDED,
        REPLACED @ cm.WithoutReplacement(rate=0.1) * 5,
        cm.Gaussian(sigma=1, relation=cm.Relation.REPLACE_ONE) + cm.Laplace(scale=2),
    ],
    ids=str,
)
def test_text_and_state_keep_the_relation(run: cm.Expression) -> None:
    read = cm.parse(str(run))
    assert read == run
    assert read.relation is run.relation
    accountant = cm.Accountant()
    accountant.compose(run)
    again = cm.Accountant.from_json(accountant.to_json())
    assert again == accountant
    assert again.relation is run.relation


def test_the_text_of_earlier_releases_is_still_a_clipped_sum() -> None:
    assert cm.parse('Gaussian(sigma=2, sensitivity=2, geometry="ball")') == REPLACED


def test_one_step_of_eq_1_as_it_stands() -> None:
    """theta + eta (mean of m clipped gradients + N(0, sigma^2)): the noise multiplier is sigma m / (2 C) (E-20)."""
    m, clip, sigma = 256, 3.0, 0.05
    mean = cm.Gaussian.from_clipping(norm=3, noise="0.05", relation="replace-one", averaged_over=m)
    multiplier = sigma * m / (2 * clip)
    assert mean.rdp(7) == pytest.approx(7 / (2 * multiplier**2), rel=1e-12)
    step = mean @ cm.WithoutReplacement(sample=m, population=60_000)
    same = cm.Gaussian(sigma="32/15", geometry="ball") @ cm.WithoutReplacement(
        sample=m, population=60_000
    )  # 0.05*256/6
    assert step.rdp([2, 30]).tolist() == same.rdp([2, 30]).tolist()
    assert (step * 1000).epsilon(1e-5) == (same * 1000).epsilon(1e-5)
    # read as noise on the sum, as a program that forgets to divide would, it is another number altogether
    assert cm.Gaussian.from_clipping(norm=3, noise="0.05", relation="replace-one").rdp(7) == pytest.approx(
        7 * 120**2 / 2, rel=1e-12
    )
    assert cm.parse(str(step * 1000)) == step * 1000
    assert mean != cm.Gaussian(sigma="32/15", geometry="ball")  # it is about 256 records


def test_a_mean_is_about_as_many_records_as_it_says() -> None:
    """Dividing by the population where the sample is averaged would claim too little."""
    mean = cm.Gaussian.from_clipping(norm=1, noise=1, relation="replace-one", averaged_over=60_000)
    with pytest.raises(cm.InputError, match="stated for 60000 records but runs on samples of 256"):
        mean @ cm.WithoutReplacement(sample=256, population=60_000)
    assert (mean @ cm.WithoutReplacement(rate="0.01")).relation is cm.Relation.REPLACE_ONE
    for refused in (
        lambda: cm.Gaussian.from_clipping(norm=1, noise=1, relation="add-remove", averaged_over=2),
        lambda: cm.Gaussian(sigma=1, averaged_over=2, relation=cm.Relation.ADD_REMOVE),
        lambda: cm.Gaussian(sigma=1, averaged_over=2) @ cm.Poisson(rate=0.1),
    ):
        with pytest.raises(cm.RelationError):
            refused()
    assert cm.Gaussian(sigma=1, averaged_over=1) == cm.Gaussian(sigma=1)
    for wrong in (0, "2.5", -3):
        with pytest.raises(cm.InputError, match="averaged_over"):
            cm.Gaussian(sigma=1, averaged_over=wrong)


def test_trees() -> None:
    """The nodes that a record is in, counted: node (level, i) holds the steps i 2^level, ..., and is complete at their last."""
    for steps in (1, 2, 3, 7, 8, 9, 100):
        most = max(
            sum((leaf // 2**level + 1) * 2**level <= steps for level in range(10) if 2**level <= steps)
            for leaf in range(steps)
        )
        assert cm.Gaussian.from_tree(sigma=3, steps=steps) == cm.Gaussian(sigma=3, correlated=True) * most
    assert cm.Gaussian.from_tree(sigma=3, steps=100, restarts=4) == cm.Gaussian.from_tree(sigma=3, steps=25)
    with pytest.raises(cm.InputError, match="steps"):
        cm.Gaussian.from_tree(sigma=3, steps=0)


def test_squared_sensitivity() -> None:
    """sqrt(2), said exactly: two rounds are those of sensitivity 2, and the curve is a / sigma^2."""
    votes = cm.Gaussian(sigma=3, squared_sensitivity=2)
    assert votes.curve().concentration() == (Fraction(0), Fraction(1, 9))
    assert (votes * 2).epsilon(1e-6) == cm.Gaussian(sigma=3, sensitivity=2).epsilon(1e-6)
    assert (votes * 2).guarantee(delta=1e-6).lower == cm.Gaussian(sigma=3, sensitivity=2).guarantee(delta=1e-6).lower
    assert cm.Gaussian(sigma=3, squared_sensitivity="9/4") == cm.Gaussian(sigma=2)
    assert (
        cm.Gaussian(sigma=6, squared_sensitivity=8) == votes != cm.Gaussian(sigma=3, sensitivity="1.41421356237309505")
    )
    assert str(votes) == "Gaussian(sigma=3, squared_sensitivity=2)"
    for run in (votes, votes @ cm.Poisson(rate="0.1") * 3, votes @ cm.WithoutReplacement(rate="0.1")):
        assert cm.parse(str(run)) == run
        below, above = (
            cm.parse(str(run).replace("squared_sensitivity=2", f"sensitivity={root}"))
            for root in ("1.414213562", "1.414213563")
        )
        assert below.epsilon(1e-6) <= run.epsilon(1e-6) <= above.epsilon(1e-6)
    found = votes.guarantee(delta=1e-6)
    assert found.lower is not None
    assert found.lower <= found.epsilon <= found.lower * (1 + 1e-12)
    with pytest.raises(cm.InputError, match="leave one of them out"):
        cm.Gaussian(sigma=1, sensitivity=2, squared_sensitivity=2)
    with pytest.raises(cm.InputError, match="squared_sensitivity=-1 must be"):
        cm.Gaussian(sigma=1, squared_sensitivity=-1)
    with pytest.raises(cm.InputError, match="leave those out"):
        cm.Gaussian(noise_multiplier=1, squared_sensitivity=2, relation=cm.Relation.ADD_REMOVE)
