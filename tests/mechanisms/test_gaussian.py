"""Gaussian noise: clipped sums carry the relation of their sensitivity."""

import pytest

import cumulant as cm

REPLACED = cm.Gaussian.from_clipping(norm=1, noise=2, relation="replace-one")
ADDED = cm.Gaussian.from_clipping(norm=1, noise=2, relation="add-remove")


def test_a_clipped_sum_carries_its_relation() -> None:
    assert REPLACED.relation is cm.Relation.REPLACE_ONE
    assert (REPLACED.sensitivity, REPLACED.geometry) == (2, "ball")
    assert ADDED.relation is cm.Relation.ADD_REMOVE
    assert (ADDED.sensitivity, ADDED.geometry) == (1, "diameter")


@pytest.mark.parametrize("clipped", [REPLACED, cm.Gaussian(sigma=1, geometry="ball"), REPLACED * 3], ids=str)
def test_a_replace_one_sensitivity_is_refused_under_poisson(clipped: cm.Expression) -> None:
    with pytest.raises(cm.RelationError, match=r'from_clipping\(norm, noise, relation="add-remove"\)'):
        clipped @ cm.Poisson(rate=0.1)
    with pytest.raises(cm.RelationError, match="a run has one relation"):
        clipped + cm.Gaussian(sigma=1) @ cm.Poisson(rate=0.1)
    accountant = cm.Accountant()
    accountant.compose(ADDED @ cm.Poisson(rate=0.1))
    with pytest.raises(cm.RelationError, match="a run has one relation"):
        accountant.compose(clipped)
    assert (ADDED @ cm.Poisson(rate=0.1)).relation is cm.Relation.ADD_REMOVE


def test_an_add_remove_sensitivity_is_refused_without_replacement() -> None:
    with pytest.raises(cm.RelationError, match=r'from_clipping\(norm, noise, relation="replace-one"\)'):
        ADDED @ cm.WithoutReplacement(rate=0.1)
    with pytest.raises(cm.RelationError, match="replace-one"):
        cm.Gaussian(sigma=1, geometry="ball", relation="add-remove")  # type: ignore[arg-type]


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
