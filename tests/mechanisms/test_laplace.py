"""Laplace noise on clipped sums and on means."""

import math

import pytest

import cumulant as cm


def printed(order: float, shift: float) -> float:
    """Item 39 as printed, b = 1/shift."""
    near, far = order / (2 * order - 1), (order - 1) / (2 * order - 1)
    return math.log(near * math.exp((order - 1) * shift) + far * math.exp(-order * shift)) / (order - 1)


def test_noise_on_a_mean_of_clipped_numbers() -> None:
    """1,000 numbers in [-1, 1], scale 0.01 on their mean: replacing one moves it by 2/1000, a fifth of the scale."""
    mean = cm.Laplace.from_clipping(norm=1, noise="0.01", relation="replace-one", averaged_over=1000)
    assert mean.pure() == pytest.approx(0.2, rel=1e-12)
    assert mean.rdp(3) == pytest.approx(printed(3, 0.2), rel=1e-12)
    assert mean.relation is cm.Relation.REPLACE_ONE
    assert cm.parse(str(mean)) == mean


def test_relations_of_clipped_sums() -> None:
    replaced, added = (cm.Laplace.from_clipping(1, 2, relation) for relation in ("replace-one", "add-remove"))
    assert (replaced.pure(), added.pure()) == (1.0, 0.5)
    assert added.relation is cm.Relation.ADD_REMOVE
    for run in (replaced, added, added @ cm.Poisson(rate=0.1), replaced @ cm.WithoutReplacement(rate=0.1) * 3):
        assert cm.parse(str(run)) == run
        assert cm.parse(str(run)).relation is run.relation
    with pytest.raises(cm.RelationError):
        replaced @ cm.Poisson(rate=0.1)
    with pytest.raises(cm.RelationError, match="averaged_over=10"):
        cm.Laplace.from_clipping(1, 2, "add-remove", averaged_over=10)
    with pytest.raises(cm.InputError, match="does not fix the sensitivity"):
        cm.Laplace.from_clipping(1, 2, cm.Relation.ANY)
    with pytest.raises(cm.InputError, match="averaged_over"):
        cm.Laplace(scale=1, averaged_over="2.5")


def test_a_number_and_a_vector_are_different_queries() -> None:
    """From two coordinates on nothing more is known than of all dimensions."""
    number, vector = cm.Laplace(scale=2, dimension=1), cm.Laplace(scale=2)
    assert number != vector == cm.Laplace(scale=2, dimension=5)
    assert hash(vector) == hash(cm.Laplace(scale=2, dimension=5))
    assert str(number) == "Laplace(scale=2, dimension=1)"
    for run in (number, vector, cm.Laplace(scale=2, dimension=5), number @ cm.WithoutReplacement(rate=0.1) * 3):
        assert cm.parse(str(run)) == run
    assert (number.pure(), number.rdp(3)) == (vector.pure(), vector.rdp(3))
    for wrong in (0, "1.5", -1):
        with pytest.raises(cm.InputError, match="dimension"):
            cm.Laplace(scale=2, dimension=wrong)


def test_witnesses_of_numbers_and_of_vectors() -> None:
    """With little noise the corner r = 0, p = (t, 0), q = (t/2, t/2) needs more than three values at equal distances."""
    sample = cm.WithoutReplacement(rate="0.001")
    vector = (cm.Laplace(scale="0.25") @ sample * 10_000).guarantee(delta=1e-8)
    number = (cm.Laplace(scale="0.25", dimension=1) @ sample * 10_000).guarantee(delta=1e-8)
    assert vector.lower is not None
    assert number.lower is not None
    assert 3.84 <= vector.lower <= vector.epsilon
    assert "half way" in vector.witness
    assert number.lower < 3.5
    assert "Proposition 11" in number.witness
