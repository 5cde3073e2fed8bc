"""What rounds say is composed only where all of them say it."""

import math
from fractions import Fraction

import cumulant as cm
from cumulant.conversion.query import Query
from cumulant.exact.limits import basic_composition
from cumulant.exact.rounds import Round, Rounds, StatedSteps
from cumulant.exact.witnesses import PAIR, SWAPPED, TRIPLE, Neighbours
from cumulant.pairs.finite import DiscretePair
from cumulant.pairs.gaussian import GaussianPair
from cumulant.pairs.pair import Pair
from cumulant.sampling.scheme import Scheme
from cumulant.sampling.without_replacement import WHOLE

RATE = Fraction(1, 10)
FIXED, POISSON = cm.WithoutReplacement(rate=RATE), cm.Poisson(rate=RATE)
GAUSSIAN = GaussianPair(Fraction(1))
LOPSIDED = DiscretePair((Fraction(1, 10), Fraction(9, 10)), (Fraction(1, 5), Fraction(4, 5)))


def one(pair: Pair, scheme: Scheme) -> tuple[Round, int]:
    return Round(pair, scheme), 3


def names(*parts: tuple[Round, int]) -> list[str]:
    return [name for name, _, _ in Rounds(parts).witnesses()]


def test_data_sets_that_are_known_to_need_less_are_left_out() -> None:
    assert names(one(GAUSSIAN, FIXED)) == [PAIR, TRIPLE]
    assert names(one(GAUSSIAN, POISSON)) == [PAIR]
    assert names(one(LOPSIDED, POISSON)) == [PAIR, SWAPPED]
    assert names(one(LOPSIDED, FIXED), one(GAUSSIAN, WHOLE)) == [PAIR, SWAPPED]
    assert names(one(LOPSIDED, FIXED), one(GAUSSIAN, FIXED)) == [PAIR, SWAPPED, TRIPLE]


def test_data_sets_that_one_round_says_nothing_about_are_left_out() -> None:
    """Rounds on samples that know other data sets cannot be composed with them; without a sample any data sets will do."""
    (own,) = (each for each in FIXED.witnesses(GAUSSIAN) if each.name == PAIR)
    strange = Round(GAUSSIAN, StatedSteps(FIXED.steps_of(GAUSSIAN), (Neighbours("others", own.step),)))
    assert names((strange, 1)) == ["others"]
    assert names((strange, 1), one(GAUSSIAN, FIXED)) == []
    assert names((strange, 1), one(GAUSSIAN, WHOLE)) == ["others"]
    stated = Round(GAUSSIAN, StatedSteps(FIXED.steps_of(GAUSSIAN)))
    assert names((stated, 1), one(GAUSSIAN, WHOLE)) == []
    assert names((stated, 1), one(GAUSSIAN, FIXED)) == []


def test_each_direction_is_one_composition() -> None:
    both = Rounds((one(GAUSSIAN, POISSON), one(LOPSIDED, POISSON), one(GAUSSIAN, WHOLE)))
    assert [[step.direction for step, _ in terms] for terms in both.upper()] == [  # type: ignore[attr-defined]
        ["remove", "remove", "symmetric"],
        ["add", "add", "symmetric"],
    ]
    assert len(list(Rounds((one(GAUSSIAN, FIXED),)).upper())) == 1


def test_directions_that_do_not_match_are_not_composed() -> None:
    step = (POISSON.steps_of(GAUSSIAN) or ())[0]
    three = Round(GAUSSIAN, StatedSteps((step, step, step)))
    assert Rounds(((three, 1), one(GAUSSIAN, WHOLE))).aligned
    assert not Rounds(((three, 1), one(GAUSSIAN, POISSON))).aligned


def test_the_bound_that_is_named_is_that_of_the_samples() -> None:
    stated = Round(GAUSSIAN, StatedSteps(FIXED.steps_of(GAUSSIAN)))
    assert Rounds((one(GAUSSIAN, WHOLE), one(GAUSSIAN, POISSON))).bound_name("line") == "poisson"
    assert Rounds((one(GAUSSIAN, WHOLE), one(GAUSSIAN, FIXED))).bound_name("line") == "profile"
    assert Rounds((one(GAUSSIAN, WHOLE),)).bound_name("line") == "profile"
    assert Rounds(((stated, 1),)).bound_name("line") == "best"
    assert Rounds((one(GAUSSIAN, FIXED), (stated, 1))).bound_name("line") == "mixed"


def test_closed_forms_and_theorem_b_are_for_what_claims_them() -> None:
    stated = Round(GAUSSIAN, StatedSteps(FIXED.steps_of(GAUSSIAN)))
    assert Rounds(((stated, 1),)).single() is None
    assert basic_composition(Rounds(((stated, 1),)), Query("delta", Fraction("1e-6"))) == math.inf
    assert Rounds(((stated, 1),)).theorem_b is None
    assert Rounds((one(GAUSSIAN, FIXED), (stated, 1))).theorem_b is None
    assert Rounds((one(GAUSSIAN, FIXED),)).theorem_b is not None
    assert Rounds((one(GAUSSIAN, WHOLE),)).theorem_b is None  # without a sample there is nothing to gain
    several = GAUSSIAN.composed_pair([(GAUSSIAN, 2)])
    assert several is not None
    assert Rounds((one(several, FIXED),)).theorem_b is None  # on one sample they may adapt to one another
    assert Rounds((one(several, WHOLE), one(GAUSSIAN, FIXED))).theorem_b is not None


def test_theorem_b_takes_other_rounds_by_the_pair_that_dominates_them() -> None:
    mixed = Rounds((one(GAUSSIAN, FIXED), one(LOPSIDED, FIXED)))
    assert mixed.theorem_b is not None
    assert [step for step, _ in mixed.theorem_b.terms][1] == (FIXED.steps_of(LOPSIDED) or ())[0]
    assert mixed.theorem_b_on_grid is None  # grids bound the losses beyond their ends for Gaussian pairs only
    assert Rounds((one(GAUSSIAN, FIXED),)).theorem_b_on_grid is not None
    assert Rounds((one(LOPSIDED, FIXED), one(GAUSSIAN, WHOLE))).theorem_b is None  # no Gaussian on a sample
    leaking = cm.ApproximateDP(1, "1e-6").pair()
    assert leaking is not None
    assert (
        Rounds((one(GAUSSIAN, FIXED), one(leaking, FIXED))).theorem_b is None
    )  # an infinite loss, an unbounded function
    two = Round(LOPSIDED, StatedSteps((FIXED.steps_of(LOPSIDED) or ()) * 2))
    assert Rounds((one(GAUSSIAN, FIXED), (two, 1))).theorem_b is None
