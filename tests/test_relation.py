"""A relation says what it means, what clipping costs under it, and what is assumed."""

import pytest

import cumulant as cm
from cumulant.domains import Exact
from cumulant.relation import Relation, common


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
    assert common([(Relation.ANY, "a"), (Relation.ADD_REMOVE, "b")]) is Relation.ADD_REMOVE
    with pytest.raises(
        cm.RelationError, match="a is stated for replace-one neighbours and b for add-remove neighbours"
    ):
        common([(Relation.REPLACE_ONE, "a"), (Relation.ADD_REMOVE, "b")])
