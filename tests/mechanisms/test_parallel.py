"""Parallel runs: one record changes one part, and what a replacement would do to two."""

import itertools
import math
from typing import Any

import numpy as np
import pytest

import cumulant as cm
from tests import effort
from tests.mechanisms.brute import hockey_stick, product


def test_the_largest_part_counts() -> None:
    run = cm.PureDP(1) | cm.PureDP("0.5")
    assert run.epsilon(0) == pytest.approx(1, rel=1e-12)
    assert run.relation is cm.Relation.ADD_REMOVE
    for order in (1.5, 2, 20):
        assert run.rdp(order) == pytest.approx(cm.PureDP(1).rdp(order), rel=1e-12)
    mixed = cm.Gaussian(sigma=2) | cm.Laplace(scale=3)
    for x in ("0.1", "0.3", "1"):
        larger = max(cm.Gaussian(sigma=2).delta(x), cm.Laplace(scale=3).delta(x))
        assert larger <= mixed.delta(x) <= larger * 1.05 + 1e-9
    assert (cm.Gaussian(sigma=2) | cm.Gaussian(sigma=2)).epsilon(1e-6) == cm.Gaussian(sigma=2).epsilon(1e-6)
    assert (mixed * 3).epsilon(1e-6) >= (cm.Gaussian(sigma=2) * 3).epsilon(1e-6)


def test_counts_and_slack_of_parts() -> None:
    run = cm.PureDP("0.1") * 3 | cm.ApproximateDP("0.2", "1e-3")
    assert run.delta(epsilon="0.3") >= 1e-3
    assert run.epsilon(delta=0) == math.inf
    assert run.epsilon("0.01") >= (cm.PureDP("0.1") * 3).epsilon("0.01")


def test_random_histograms() -> None:
    """Two parts by the value of the record, each a response about its own part: add or remove a record of either."""
    rng = np.random.default_rng(2)
    for _ in range(effort.drawn(100)):
        p, q = sorted(float(x) for x in rng.uniform(0.5, 0.95, 2))
        one, other = np.array([p, 1 - p]), np.array([q, 1 - q])
        epsilons = (0.0, 0.3, float(rng.uniform(0, 2)))
        curves = [cm.RandomizedResponse(p=round(x, 12)) for x in (p, q)]
        claimed = cm.parallel(*curves).own_curve("best").rdp([2.0])[0]
        for changed, kept in ((one, other), (other, one)):
            laws = product([changed, kept]), product([changed[::-1], kept])
            needed = math.log(float((laws[0] ** 2 / laws[1]).sum()))
            assert needed <= claimed * (1 + 1e-9) + 1e-12
            for x in epsilons:
                assert hockey_stick(*laws, x) <= max(float(c.pair().profile(x)) for c in curves) + 1e-9


def test_a_replaced_record_may_move() -> None:
    """A sum of values in [-1, 1] beside a part of epsilon 0.1: the largest part alone is not enough under replace-one."""
    stated = cm.Laplace.from_clipping(norm=1, noise=1, relation="replace-one")
    with pytest.raises(cm.RelationError, match="a removal and an addition"):
        stated | cm.PureDP("0.1")
    placed = cm.parallel(stated, cm.PureDP("0.1"), by="position")
    assert placed.relation is cm.Relation.REPLACE_ONE
    assert placed.epsilon(0) == pytest.approx(2, rel=1e-9)
    added = cm.Laplace.from_clipping(norm=1, noise=1, relation="add-remove") | cm.PureDP("0.1")
    assert (added @ cm.Group(size=2)).epsilon(0) >= 2 * (1 - 1e-9)
    with pytest.raises(cm.RelationError):
        added + cm.PureDP(1) @ cm.WithoutReplacement(rate="0.1")


def test_a_place_is_no_place_where_a_record_is_removed() -> None:
    """Without the first of three records each later one is one place further on: two parts change, not one."""
    first = cm.Gaussian(sigma=1, relation=cm.Relation.ADD_REMOVE)
    for parts in (
        (first, cm.PureDP(1)),
        (cm.PureDP(1), first),
        (cm.PureDP(1) @ cm.Poisson(rate="0.1"), cm.PureDP(1)),
        (cm.PureDP(1) | cm.PureDP(2), cm.PureDP(3)),
        (cm.NoisyMax(scale=2, monotone=True), cm.PureDP(1)),
    ):
        with pytest.raises(cm.RelationError, match="moves all later ones"):
            cm.parallel(*parts, by="position")
    placed = cm.parallel(cm.PureDP(1), cm.PureDP("0.5"), by="position")  # stated for neither
    assert placed.relation is cm.Relation.REPLACE_ONE
    assert cm.parse(str(placed)) == placed
    for other in (first, cm.PureDP(1) @ cm.Poisson(rate="0.1"), cm.PureDP(1) | cm.PureDP(2)):
        with pytest.raises(cm.RelationError):
            placed + other
    with pytest.raises(cm.RelationError):
        placed | cm.PureDP(1)
    accountant = cm.Accountant()
    accountant.compose(first)
    with pytest.raises(cm.RelationError):
        accountant.compose(placed)

    def law(data: tuple[int, ...]) -> Any:
        """Each place is a part of its own, and answers about its bit by randomized response."""
        return product([np.array([0.25, 0.75])[:: 1 if bit else -1] for bit in data])

    with_it, without = law((1, 0, 1)), law((0, 1))  # places 1 and 2 change, and place 3 is empty
    merged = with_it.reshape(4, 2).sum(axis=1)  # what the first two places answer
    assert math.log(float((merged / without).max())) == pytest.approx(2 * math.log(3))  # one part alone has log 3


def test_the_words_say_when_a_part_is_fixed() -> None:
    found = (cm.PureDP(1) | cm.PureDP(2)).guarantee(delta=0).explain()
    assert "the part of every record is fixed before the mechanisms of that part start" in found


def test_text() -> None:
    a, b, c = cm.PureDP(1), cm.Laplace(scale=2) * 3, cm.Gaussian(sigma=2) @ cm.Poisson(rate="0.1")
    for run in (a | b, (a | b) * 3 + a, a | b | c, cm.parallel(a, b, by="position"), (a | b) @ cm.Group(size=2)):
        assert cm.parse(str(run)) == run
    assert cm.parse("PureDP(1) + Laplace(2) | PureDP(2)") == (cm.PureDP(1) + cm.Laplace(2)) | cm.PureDP(2)
    assert a | b == b | a
    assert (a | b) | c == a | (b | c)
    with pytest.raises(cm.InputError, match="put the sample into each part"):
        (a | b) @ cm.Poisson(rate="0.1")
    with pytest.raises(cm.InputError, match="choose one of value, position"):
        cm.parallel(a, b, by="name")
    with pytest.raises(cm.InputError, match="two runs or more"):
        cm.parallel(a)


def test_replaced_records_by_enumeration() -> None:
    """Two parts by value, each a response about any bit of its own records: one record stays or moves."""
    rng, reached = np.random.default_rng(6), 0.0
    values = [(part, value) for part in (0, 1) for value in (0, 1)]
    epsilons = [0.0, 0.4, 1.0]
    known = {}
    for both in ((0.6, 0.8), (0.8, 0.8)):
        run = cm.parallel(*(cm.RandomizedResponse(p=x) for x in both), relation="replace-one")
        known[both] = run.delta(epsilons), run.rdp(3.0)
    for i in range(effort.drawn(100)):
        chances = list(known)[i % 2]
        bits = {(part, a, b): int(rng.integers(2)) for part in (0, 1) for a in range(4) for b in range(4)}

        def law(data: list[tuple[int, int]], chances: Any = chances, bits: dict[Any, int] = bits) -> Any:
            laws = []
            for part, p in enumerate(chances):
                seen = [value for at, value in data if at == part]
                bit = bits[part, seen.count(0), seen.count(1)]
                laws.append(np.array([p, 1 - p])[:: 1 if bit else -1])
            return product(laws)

        other = [values[i] for i in rng.integers(0, 4, 2)]
        claimed, divergence = known[chances]
        for x, y in itertools.permutations(values, 2):
            p, q = law([*other, x]), law([*other, y])
            for epsilon, most in zip(epsilons, claimed, strict=True):
                needed = hockey_stick(p, q, epsilon)
                assert needed <= most * (1 + 1e-9) + 1e-12
                reached = max(reached, needed / most) if most > 1e-9 else reached
            assert math.log(float((p**3 / q**2).sum())) / 2 <= divergence * (1 + 1e-9)
    assert reached > 0.8


def test_replaced_records_against_closed_forms() -> None:
    laplace = cm.Laplace.from_clipping(norm=1, noise=1, relation="add-remove")
    run = cm.parallel(laplace, cm.PureDP("0.1"), relation="replace-one")
    assert run.relation is cm.Relation.REPLACE_ONE
    assert run.epsilon(0) == pytest.approx(2, rel=1e-12)  # neither 1.1 nor 1
    far = cm.parallel(cm.PureDP(1), cm.PureDP("0.9"), cm.PureDP("0.2"), relation="replace-one")
    assert far.epsilon(0) == pytest.approx(2, rel=1e-12)
    gaussian = cm.parallel(cm.Gaussian(sigma=2), cm.Gaussian(sigma=3), relation="replace-one")
    assert gaussian.rdp(2) == pytest.approx(cm.Gaussian(sigma=1).rdp(2))
    assert gaussian.epsilon(1e-6) == pytest.approx(cm.Gaussian(sigma=1).epsilon(1e-6), rel=2e-2)
    assert cm.parse(str(gaussian * 3)) == gaussian * 3
    assert gaussian != cm.Gaussian(sigma=2) | cm.Gaussian(sigma=3)
    sampled = cm.parallel(*(cm.Gaussian(sigma=s) @ cm.Poisson(rate="0.1") for s in (1, 2)), relation="replace-one")
    assert sampled.pair() is None
    assert sampled.epsilon(1e-6) >= (cm.Gaussian(sigma=1) @ cm.Poisson(rate="0.1")).epsilon(1e-6)
    with pytest.raises(cm.InputError, match="leave relation out"):
        cm.parallel(cm.PureDP(1), cm.PureDP(1), by="position", relation="replace-one")


def test_a_removal_beside_an_addition_is_no_profile_of_two_removals() -> None:
    mixture = cm.GaussianMixture(sigma=1, shifts=[0, 2], weights=["0.5", "0.5"])
    assert cm.parallel(mixture, mixture, relation="replace-one").pair() is None
    assert cm.parallel(cm.Laplace(2), cm.Laplace(3), relation="replace-one").pair() is not None


REPORTS = [
    cm.RandomizedResponse(p="0.75"),
    cm.KaryResponse(values=3, p="0.5"),
    cm.KaryResponse(values=2, p="0.7"),
    cm.SubsetSelection(values=4, size=2, epsilon=1),
    cm.UnaryEncoding(p="0.75", q="0.25"),
]


@pytest.mark.parametrize("report", REPORTS, ids=str)
@pytest.mark.parametrize("size", [2, 3])
def test_a_group_in_several_parts_changes_all_their_reports(report: cm.Mechanism, size: int) -> None:
    """Three people report, and two or three of them change: the losses of their reports add up."""
    run = cm.parallel(report, report, report, by="position") @ cm.Group(size=size)
    several = report * size
    assert run.epsilon(0) >= several.epsilon(0) * (1 - 1e-9)
    for x in effort.share(("0.5", "1", "2"), REPORTS.index(report) + size):
        assert run.delta(epsilon=x) >= (several.guarantee(epsilon=x).lower or 0.0)
    assert run.rdp(2) >= several.rdp(2) * (1 - 1e-9)
    assert run.advantage() >= (several.guarantee(epsilon=0).lower or 0.0)
    assert run.gaussian_mu() >= report.gaussian_mu() * size**0.5 * (1 - 1e-9)
    with pytest.raises(cm.BudgetRefused):
        cm.Accountant(limit=(several.pure() * 0.6, "1e-9")).compose(run)


def test_a_group_of_two_responses_by_definition() -> None:
    response = cm.RandomizedResponse(p="0.75")
    run = (response | response) @ cm.Group(size=2)
    p = np.array([0.75, 0.25])
    first, second = product([p, p]), product([p[::-1], p[::-1]])
    for epsilon in (0.0, 1.0, 2.0):
        assert run.delta(epsilon=epsilon) >= hockey_stick(first, second, epsilon)
    assert run.epsilon(0) == pytest.approx(2 * math.log(3), rel=1e-12)


def _enumerated(parts: list[list[np.ndarray[Any, Any]]], changes: int, epsilon: float) -> float:
    """Return the largest hockey stick over all choices of so many parts and of two inputs of each."""
    found = 0.0
    for chosen in itertools.combinations(parts, min(changes, len(parts))):
        for inputs in itertools.product(*(itertools.permutations(laws, 2) for laws in chosen)):
            first, second = product([p for p, _ in inputs]), product([q for _, q in inputs])
            found = max(found, hockey_stick(first, second, epsilon))
    return found


FLIPPED = [np.array([0.75, 0.25]), np.array([0.25, 0.75])]
RARELY = [np.array([0.9, 0.1]), np.array([0.1, 0.9])]
THREE = [np.array([0.2 + 0.4 * (i == j) for i in range(3)]) for j in range(3)]
often, rarely = cm.RandomizedResponse(p="0.75"), cm.RandomizedResponse(p="0.9")
three = cm.KaryResponse(values=3, p="0.6")

SPREAD = [
    (often | often, 2, [FLIPPED, FLIPPED], 2),
    (often | often | often, 3, [FLIPPED] * 3, 3),
    (often | often, 3, [FLIPPED, FLIPPED], 3),
    (often | rarely, 2, [FLIPPED, RARELY], 2),
    (cm.parallel(three, often, by="position"), 2, [THREE, FLIPPED], 2),
    (cm.parallel(often, rarely, often, relation="replace-one"), 1, [FLIPPED, RARELY, FLIPPED], 2),
    (cm.parallel(often, rarely, often, relation="replace-one"), 2, [FLIPPED, RARELY, FLIPPED], 4),
]


@pytest.mark.parametrize(("run", "size", "laws", "changes"), SPREAD)
def test_groups_spread_over_parts_need_what_enumeration_says(
    run: cm.Expression, size: int, laws: list[list[np.ndarray[Any, Any]]], changes: int
) -> None:
    grouped = run @ cm.Group(size=size)
    for epsilon in effort.share((0.0, 0.3, 1.0, 2.0, 3.0), size + changes, 3):
        true, found = _enumerated(laws, changes, epsilon), grouped.delta(epsilon=epsilon)
        assert true * (1 - 1e-12) <= found <= true * 1.005 + 1e-12


def test_the_number_of_equal_parts_matters_to_groups() -> None:
    """Two flipped answers and three are different runs: an answer remembered for one is not that of the other."""
    two, several = (often | often) @ cm.Group(size=3), (often | often | often) @ cm.Group(size=3)
    assert two != several
    assert two.delta(epsilon=3) == 0
    assert several.delta(epsilon=3) == pytest.approx(_enumerated([FLIPPED] * 3, 3, 3.0), rel=1e-9)


def test_a_group_over_noise_without_a_largest_loss_has_no_pure_epsilon() -> None:
    """The polygon of the largest profile leaks beyond its last corner, and the curve must not forget that."""
    run = (cm.Gaussian(sigma=1) | cm.Gaussian(sigma=2)) @ cm.Group(size=2)
    assert run.epsilon(0) == math.inf
    assert run.epsilon(1e-6) >= cm.Gaussian(sigma="0.5").epsilon(1e-6) * (1 - 1e-12)
    assert run.rdp(2) >= 4
    mixed = (cm.Laplace(scale=2) | cm.PureDP(1)) @ cm.Group(size=2)
    assert mixed.epsilon(0) == 2


def test_noise_of_groups_is_the_worst_in_one_part() -> None:
    """A chain of k neighbours moves noise by k shifts, wherever its steps are: nothing is lost by the parts."""
    for one in (cm.Gaussian(sigma=4), cm.Laplace(scale=4), cm.PureDP("0.3"), cm.DiscreteLaplace(scale=3)):
        assert ((one | one) @ cm.Group(size=2)).epsilon(1e-6) == (one @ cm.Group(size=2)).epsilon(1e-6)


def test_a_part_is_not_about_a_group() -> None:
    grouped = cm.RandomizedResponse(p="0.75") @ cm.Group(size=2)
    for part in (grouped, grouped @ cm.RepeatAndSelect(mean=2), grouped + cm.PureDP(1)):
        with pytest.raises(cm.InputError, match="write Group last"):
            part | cm.PureDP(1)


def test_runs_of_one_name_are_not_equal() -> None:
    """(A + B) was 1.159 where (B + A) was 190.1: two functions that are called the same are two."""
    small, large = cm.from_rdp(rdp=lambda order: order / 2000), cm.from_rdp(rdp=lambda order: order * 20)
    a, b = (cm.parallel(m, m, relation="replace-one") for m in (small, large))
    assert str(a) == str(b)
    assert a != b
    assert (a + b).epsilon("1e-5") == (b + a).epsilon("1e-5") > 150
    accountant = cm.Accountant()
    accountant.compose(a)
    accountant.compose(b)
    assert len(accountant.terms) == 2
    assert cm.parallel(small, small, relation="replace-one") == a
    assert cm.parallel(small, small, small, relation="replace-one") != a


def test_equal_parts_that_only_other_runs_bound_are_one_part(monkeypatch: pytest.MonkeyPatch) -> None:
    """A polygon through 49 deltas took 31 s, and its epsilon of 0.0005997 was 7 % too large."""
    drawn: list[Any] = []
    monkeypatch.setattr("cumulant.mechanisms.parallel._largest", lambda cases: drawn.append(cases))
    correlated = cm.MatrixMechanism(bands=[1], steps=5, sigma="2.335")
    one = correlated @ cm.MinSep(separation=2, rate="1.948e-4")
    run, alone = (one | one | one).guarantee(delta="1e-6"), one.guarantee(delta="1e-6")
    assert (run.epsilon, run.lower, run.rigour) == (alone.epsilon, alone.lower, alone.rigour)
    assert run.verify().holds
    assert ((one | one) * 2 + cm.Laplace(9)).epsilon("1e-6") == (one * 2 + cm.Laplace(9)).epsilon("1e-6")
    assert ((one * 2) | (one * 2)).epsilon("1e-6") == (one * 2).epsilon("1e-6")
    assert ((one | one) @ cm.Group(size=2)).epsilon("1e-6") >= alone.epsilon
    assert not drawn
    other = correlated @ cm.MinSep(separation=2, rate="2e-4")
    assert (one | other).epsilon("1e-6") >= alone.epsilon
    assert drawn == [(one, other)]


def test_a_move_between_unlike_parts_of_correlated_noise_has_no_profile_of_two_removals() -> None:
    """The rounds that dominate it are samples: its deltas add two removals or two additions, and a move is one of each."""
    unlike = [cm.MatrixMechanism(bands=[1], steps=5, sigma=s) @ cm.MinSep(separation=2, rate="0.05") for s in (1, 2)]
    moved = cm.parallel(*unlike, relation="replace-one")
    assert moved.pair() is None
    assert moved.epsilon("1e-4") == moved.epsilon("1e-4", method="rdp")


def test_balls_that_start_from_answers_in_floats_prove_nothing() -> None:
    unlike = cm.GaussianMixture(1, [0, 1], [".9", ".1"]) * 3 | cm.Laplace(scale=2)
    closed = cm.Gaussian(sigma=1, relation="add-remove") | cm.Laplace(scale=2, relation="add-remove")
    found = (unlike * 3).guarantee(delta="1e-5")
    assert (found.rigour, (closed * 3).guarantee(delta="1e-5").rigour) == ("bounded", "proved")
    assert found.verify().holds
    assert cm.Guarantee.from_json(found.to_json()).rigour == "bounded"
    assert (unlike * 3).guarantee(delta="1e-5", method="rdp").rigour == "proved"
    pair = cm.Gaussian(sigma=9, relation="add-remove") * 3 | cm.Laplace(scale=20, relation="add-remove")
    group = (pair @ cm.Group(size=2)).guarantee(delta="1e-5", method="exact")
    assert group.rigour == "bounded"
    assert group.epsilon < 3
