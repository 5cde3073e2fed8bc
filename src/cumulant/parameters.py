"""Parameters of mechanisms, each declared once: `sigma: Real = parameter(POSITIVE)`.

From that line follow the argument and its check, the attribute, the text in the notation, equality, the numbers that
calibrations may solve for and the values that the laws in the tests draw.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import MISSING, InitVar, dataclass, field, fields, make_dataclass, replace
from operator import attrgetter
from typing import Any, ClassVar, Generic, Protocol, TypeVar, cast, dataclass_transform

from cumulant.domains import Domain, Exact, ExactTuple, Less, Number, Several
from cumulant.relation import Relation

Kept = TypeVar("Kept", covariant=True)
Given = TypeVar("Given", contravariant=True)
C = TypeVar("C", bound=type)


class Parameter(Generic[Kept, Given]):
    """The type of a declared parameter: a type checker sees what may be given, and what is kept.

    It is no object: declared classes keep their parameters in slots.
    """

    def __get__(self, owner: object, kind: Any = None) -> Kept:
        raise NotImplementedError

    def __set__(self, owner: object, value: Given) -> None:
        raise NotImplementedError


Real = Parameter[Exact, Number]
OptionalReal = Parameter[Exact | None, Number | None]
Reals = Parameter[ExactTuple, Sequence[Number]]
OptionalReals = Parameter[ExactTuple | None, Sequence[Number] | None]
Word = Parameter[str, str]
Flag = Parameter[bool, bool | str]
Neighbours = Parameter[Relation, Relation | str]


class Kind(Protocol):
    """A set of values that a parameter may have: a Domain, a list of numbers, a choice of words, …"""

    @property
    def accepted(self) -> str:
        """Return the type of what may be given, as the signature shows it."""

    def check(self, name: str, value: Any) -> Any:
        """Return the value as it is kept, or raise an InputError of one sentence."""


@dataclass(frozen=True, slots=True)
class Declaration:
    """One parameter as it was declared; `argument` is the name by which it is given."""

    kind: Kind
    default: Any
    argument: str
    attribute: str
    free: bool
    kw_only: bool
    kept_default: Any
    """The default as it is kept: a number is exact."""

    @property
    def annotation(self) -> str:
        """Return the type in the signature."""
        optional = self.default is None and self.kind.accepted != "Any"
        return f"{self.kind.accepted} | None" if optional else self.kind.accepted

    def check(self, value: Any) -> Any:
        """Return the value as it is kept; a default was checked when it was declared."""
        return self.kept_default if value is self.default else self.kind.check(self.argument, value)


def parameter(
    kind: Kind, *, default: Any = MISSING, alias: str = "", free: bool | None = None, kw_only: bool = False
) -> Any:
    """Declare a parameter of this kind.

    `alias` is the name of its argument, where a question of the class has that name, as `epsilon`. A `free` parameter is one
    that the laws in the tests vary, and that an expression shows first: every number but those with the default None, unless
    it is said. Facts that choose a theorem, such as a dimension, are not free.
    """
    varied = isinstance(kind, Domain | Several) and default is not None if free is None else free
    kept = kind.check("default", default) if isinstance(kind, Domain) and isinstance(default, int) else default
    return Declaration(kind, default, alias, "", varied, kw_only, kept)


@dataclass_transform(frozen_default=True, eq_default=False, field_specifiers=(parameter, field))
def declared(cls: C) -> C:
    """Make a frozen class with slots of the parameters that are declared in it.

    Arguments are handed to `__post_init__` in their order. A class without declared parameters is a plain frozen dataclass.
    """
    given: Any = cls
    found = {
        name: replace(each, argument=each.argument or name, attribute=name)
        for name, each in vars(cls).items()
        if isinstance(each, Declaration)
    }
    arguments = [_argument(name, str(text), found, cls) for name, text in cls.__annotations__.items()]
    for name, each in found.items():
        given.__annotations__[name] = each.annotation
        setattr(given, name, field(default=each.default))
    made: Any = dataclass(frozen=True, slots=True, eq=False, repr=False, init=not found)(given)
    _rebind(cls, made)
    made.kept = tuple(each.name for each in fields(made) if each.init)
    if found:
        made.arguments_given = tuple(each[0] for each in arguments if each is not None)
        made.parameters = {each.argument: each for each in sorted(found.values(), key=lambda each: not each.free)}
        made.__init__ = _initialiser(made, [each for each in arguments if each is not None])
    return cast("C", made)


def _rebind(cls: type, made: type) -> None:
    """Let `super()` in the methods of a class find the class with slots that was made of it."""
    for value in vars(cls).values():
        function = getattr(value, "__func__", getattr(value, "fget", value))
        names = getattr(getattr(function, "__code__", None), "co_freevars", ())
        if "__class__" in names:
            function.__closure__[names.index("__class__")].cell_contents = made


Argument = tuple[str, str, Any, bool]
"""The name, the type, the default and whether it is given by keyword only."""


def _argument(name: str, text: str, found: Mapping[str, Declaration], cls: type) -> Argument | None:
    """Return the argument that one annotation of the class makes; None for class variables and what is computed."""
    if (each := found.get(name)) is not None:
        return each.argument, each.annotation, each.default, each.kw_only
    return (name, text, vars(cls).get(name, MISSING), False) if text.startswith("InitVar") else None


def _initialiser(cls: type, arguments: Sequence[Argument]) -> Callable[..., None]:
    """Return an `__init__` with these arguments that hands their values to `__post_init__`."""
    # arguments of a dataclass that are all InitVars are handed over and not kept, so that its __init__ serves any class
    init_only = [(name, InitVar[Any], field(default=default, kw_only=only)) for name, _, default, only in arguments]
    called = {"__post_init__": Declared.__post_init__}
    made: Callable[..., None] = vars(make_dataclass(cls.__name__, init_only, namespace=called))["__init__"]
    made.__annotations__ = {**{name: text for name, text, _, _ in arguments}, "return": None}
    made.__qualname__, made.__module__ = f"{cls.__qualname__}.__init__", cls.__module__
    return made


def spelled(value: Any) -> str:
    """Return the text of a parameter in the notation.

    >>> spelled((Exact("1/3"), Exact(2))), spelled(True), spelled("ball")
    ('["1/3", 2]', '"yes"', '"ball"')
    """
    if isinstance(value, tuple):
        return f"[{', '.join(spelled(each) for each in value)}]"
    if isinstance(value, Exact):
        return value.notation
    return f'"{"yes" if value is True else value}"'


class Declared:
    """The part of a class that checks its declared parameters, keeps them, and spells them."""

    __slots__ = ()

    parameters: ClassVar[Mapping[str, Declaration]] = {}
    """Every declared parameter by the name of its argument, free ones first; `declared` fills it in."""

    arguments_given: ClassVar[tuple[str, ...]] = ()
    """The names of the arguments, in the order of the signature; `declared` fills it in."""

    kept: ClassVar[tuple[str, ...] | None] = None
    """The attributes that make an object, computed ones left out; None for a class that is not declared."""

    joint: ClassVar[tuple[Less, ...]] = ()
    """Constraints on several parameters together; laws and calibrations keep to them."""

    def __post_init__(self, *given: Any) -> None:
        """Check every parameter, then keep them all."""
        if given:
            raw = self._prepare(dict(zip(self.arguments_given, given, strict=True)))
            checked = {}
            for name, each in self.parameters.items():
                checked[name] = each.check(raw[name])
                object.__setattr__(self, each.attribute, checked[name])
            for constraint in self.joint:
                constraint.check(checked)
        self._validate()

    @classmethod
    def _prepare(cls, given: dict[str, Any]) -> dict[str, Any]:
        """Return the arguments before each is checked alone: refused or filled in where they depend on one another."""
        return given

    def _validate(self) -> None:
        """Raise an error where the parameters contradict one another, each of them being checked and kept."""

    def _implied(self) -> Mapping[str, Any]:
        """Return the values that need not be written, because other parameters imply them, by argument."""
        return {}

    def arguments(self) -> Mapping[str, str]:
        """Return the arguments and their spelling in the notation, defaults left out."""
        usual = {name: each.default for name, each in self.parameters.items()} | dict(self._implied())
        values = {name: getattr(self, each.attribute) for name, each in self.parameters.items()}
        return {name: spelled(value) for name, value in values.items() if value != usual[name]}

    def key(self) -> Hashable:
        """Return everything that equality means: exact values, not spellings."""
        if self.kept is None:
            raise TypeError(f"{type(self).__name__} is not declared; decorate it with register, or give it a key()")
        # of one name this is its value, of several a tuple
        found: Hashable = attrgetter(*self.kept)(self) if self.kept else ()
        return found
