"""Parameters that are declared once: arguments, checks, text, equality and pickles follow from one line."""

from __future__ import annotations

import inspect
import pickle
from dataclasses import FrozenInstanceError, InitVar, field
from typing import Any

import pytest

import cumulant as cm
from cumulant.curves.closed_form import Concentrated
from cumulant.curves.curve import Curve
from cumulant.domains import COUNT, LINE, POSITIVE, TRUTH, Choice, Exact, Less, Number, Several
from cumulant.mechanisms.mechanism import MECHANISMS, Mechanism
from cumulant.parameters import Declared, Flag, Neighbours, OptionalReal, Real, Reals, Word, declared, parameter
from cumulant.relation import RELATION, Relation


@declared
class Toy(Mechanism):
    """A mechanism with a parameter of every kind."""

    scale: Real = parameter(POSITIVE)
    loss: Real = parameter(POSITIVE, alias="epsilon", default=2)
    words: Word = parameter(Choice(("one", "two")), default="one")
    size: OptionalReal = parameter(COUNT, default=None)
    many: Reals = parameter(Several(POSITIVE), default=(1, 2))
    flag: Flag = parameter(TRUTH, default=False)
    relation: Neighbours = parameter(RELATION, default=Relation.ANY)
    half: InitVar[Number | None] = None
    said: Word = parameter(LINE, default="", kw_only=True)
    double: int = field(init=False)

    joint = (Less("epsilon", "scale", equal=True),)

    @classmethod
    def _prepare(cls, given: dict[str, Any]) -> dict[str, Any]:
        return given if given["half"] is None else given | {"scale": 2 * Exact(given["half"])}

    def _validate(self) -> None:
        object.__setattr__(self, "double", int(2 * self.scale))

    def own_curve(self, bound: str) -> Curve:
        return Concentrated(rho=1 / self.scale)

    def unsampled(self) -> str:
        return super().unsampled() + "toy"


def test_the_signature_says_what_may_be_given() -> None:
    assert str(inspect.signature(Toy)) == (
        "(scale: 'Number', epsilon: 'Number' = 2, words: 'str' = 'one', size: 'Number | None' = None, many: "
        "'Sequence[Number]' = (1, 2), flag: 'bool | str' = False, relation: 'Relation | str' = <Relation.ANY: 'any'>, half: "
        "'InitVar[Number | None]' = None, *, said: 'str' = '') -> None"
    )


def test_values_are_kept_exact_and_frozen() -> None:
    toy = Toy("5/2", many=[1, "1/3"], flag="yes", relation="add_remove")
    assert (toy.loss, toy.double) == (Exact(2), 5)
    assert isinstance(toy.scale, Exact)
    assert toy.many == (1, Exact("1/3"))
    assert toy.flag is True
    assert toy.relation is Relation.ADD_REMOVE
    assert not hasattr(toy, "__dict__")
    with pytest.raises(FrozenInstanceError):
        toy.scale = 3  # type: ignore[misc]


def test_what_is_given_by_another_name_is_prepared() -> None:
    assert Toy(1, half="3/2").scale == 3


def test_numbers_are_written_first_and_defaults_never() -> None:
    toy = Toy(words="two", scale=5, flag=True, size=7, many=[1, "1/3"], said="so", relation=Relation.REPLACE_ONE)
    assert str(toy) == (
        'Toy(scale=5, many=[1, "1/3"], words="two", size=7, flag="yes", relation="replace-one", said="so")'
    )
    assert str(Toy(3)) == "Toy(scale=3)"


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"scale": 0}, r"scale=0 must be a number in \(0, inf\)"),
        ({"scale": 1}, "epsilon=2 must be at most scale=1"),
        ({"scale": 3, "epsilon": -1}, r"epsilon=-1 must be a number in \(0, inf\)"),
        ({"scale": 3, "words": "three"}, "words='three' is unknown; choose one of one, two"),
        ({"scale": 3, "size": "1/2"}, "size=1/2 must be an integer"),
        ({"scale": 3, "flag": 1}, "flag=1 must be True or False"),
        ({"scale": 3, "relation": "friends"}, "relation='friends' is unknown"),
        ({"scale": 3, "said": 'a "quote"'}, "said=.* must be a text on one line, without quotes"),
    ],
)
def test_every_parameter_is_checked_by_the_name_of_its_argument(given: dict[str, Any], message: str) -> None:
    with pytest.raises(cm.InputError, match=message):
        Toy(**given)


def test_equality_means_every_argument_that_is_kept() -> None:
    toy = Toy(3, size=4)
    assert toy == Toy("3.0", size="4")
    assert hash(toy) == hash(Toy(3, size=4))
    assert toy != Toy(3)
    assert toy.key() == (3, 2, "one", 4, (1, 2), False, Relation.ANY, "")
    assert pickle.loads(pickle.dumps(toy)) == toy


def test_super_finds_the_class_with_slots() -> None:
    assert Toy(3).unsampled() == "toy"


def test_missing_and_unknown_arguments_are_type_errors() -> None:
    with pytest.raises(TypeError, match=r"Toy.__init__\(\) missing 1 required positional argument: 'scale'"):
        Toy()  # type: ignore[call-arg]
    with pytest.raises(TypeError, match=r"Toy.__init__\(\) got an unexpected keyword argument 'loss'"):
        Toy(3, loss=1)  # type: ignore[call-arg]


def test_a_class_that_is_not_declared_has_no_key_by_itself() -> None:
    class Bare(Declared):
        pass

    with pytest.raises(TypeError, match="Bare is not declared"):
        Bare().key()


@pytest.mark.parametrize("name", sorted(MECHANISMS))
def test_every_argument_of_a_mechanism_is_declared(name: str) -> None:
    kind = MECHANISMS[name]
    loose = set(inspect.signature(kind).parameters) - set(kind.parameters)
    assert loose == ({"noise_multiplier", "clip"} if name == "Gaussian" else set())
    assert set(kind.domains) <= set(kind.parameters)


@pytest.mark.parametrize(
    ("text", "name"), [("Laplace(scale=2, averaged_over=?)", "averaged_over"), ("GaussianDP(mu=?)", "mu")]
)
def test_calibrate_solves_for_every_declared_number(text: str, name: str) -> None:
    found = cm.calibrate(text, epsilon=1, delta=0 if "Laplace" in text else 1e-6)
    assert found.parameter == name


def test_calibrate_refuses_a_text() -> None:
    with pytest.raises(cm.InputError, match=r"assumed=.* of GaussianDP is nothing that calibrate can search"):
        cm.calibrate("GaussianDP(mu=1, assumed=?)", epsilon=1, delta=1e-6)
