"""What ran, as data: expressions that compose (`+`, `*`) and are sampled (`@`); the questions they answer are in `answers`."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Hashable, Mapping
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from cumulant import domains
from cumulant.accounting.answers import Answers
from cumulant.accounting.proof import curve_of
from cumulant.bounds.table import row as bound_row
from cumulant.curves.curve import Curve, compose
from cumulant.domains import Domain, Exact, Number, Several
from cumulant.errors import NotationError
from cumulant.pairs.pair import Pair
from cumulant.relation import Relation, common

if TYPE_CHECKING:
    from cumulant.lattice.losses import Loss
    from cumulant.mechanisms.sampled import Sampled
    from cumulant.sampling.scheme import Scheme


class Expression(Answers):
    """Something that ran on one data set: how it is put together, and every question that can be asked about it."""

    __slots__ = ()
    __array_ufunc__ = None  # numpy scalars must not take over `3 * m`

    # ---- what it is made of

    @property
    def relation(self) -> Relation:
        """The neighbouring relation of every statement about this expression."""
        return common((mechanism.relation, mechanism) for mechanism in self.terms)

    @property
    def estimated(self) -> bool:
        """Whether a number about it rests on a user's Python function that can only be sampled in floats."""
        return any(mechanism.estimated for mechanism in self.terms)

    @property
    def frozen(self) -> bool:
        """Whether it is data alone, so that what is known about it stays true; a Python object in it may change."""
        return all(mechanism.frozen for mechanism in self.terms)

    def curve(self, bound: str = "best") -> Curve:
        """What is proved about it: the sum of the curves of its terms, each amplified by this bound.

        A curve keeps what it has computed. Where it rests on a Python object, ask for another one after that has changed.
        """
        bound = bound_row(bound).name
        parts = sorted(self.terms.items(), key=lambda item: item[0].rank())
        return compose((curve_of(mechanism, bound), times) for mechanism, times in parts)

    def notation(self) -> str:
        """The text that `parse` reads back; NotationError where a Python function is part of the description."""
        if not self.terms:
            raise NotationError("nothing ran, and nothing has no text; compose something first")
        for mechanism in self.terms:
            if not mechanism.frozen:
                raise NotationError(
                    f"{mechanism} holds a Python function or is unknown to the notation, so it cannot be written as text"
                )
        return str(self)

    # ---- operators

    def __mul__(self, times: int) -> Expression:
        from cumulant.mechanisms.run import run

        count = domains.times(times)
        return run({mechanism: count * each for mechanism, each in self.terms.items()})

    __rmul__ = __mul__

    def __add__(self, other: Expression) -> Expression:
        from cumulant.mechanisms.run import run

        if not isinstance(other, Expression):
            return NotImplemented
        terms = dict(self.terms)
        for mechanism, times in other.terms.items():
            terms[mechanism] = terms.get(mechanism, 0) + times
        return run(terms)

    def __matmul__(self, scheme: Scheme) -> Sampled:
        from cumulant.mechanisms.sampled import sampled
        from cumulant.sampling.scheme import Scheme

        return sampled(self, scheme) if isinstance(scheme, Scheme) else NotImplemented  # type: ignore[redundant-expr]


class Mechanism(Expression):
    """One mechanism: frozen data with a domain for each parameter, a curve, and a dominating pair if it has one."""

    __slots__ = ("_hash", "_rank")
    _hash: int
    _rank: tuple[str, str]

    domains: ClassVar[Mapping[str, Domain | Several]] = {}
    defaults: ClassVar[Mapping[str, Number]] = {}
    attributes: ClassVar[Mapping[str, str]] = {}  # parameters whose name is taken by a question: name -> attribute
    amplified: ClassVar[bool] = False

    def __post_init__(self) -> None:
        self._set(**{name: getattr(self, name) for name in self.domains})

    def _set(self, **parameters: Any) -> None:
        """Check every parameter, then keep them all as exact numbers."""
        checked = {name: domain.check(name, parameters[name]) for name, domain in self.domains.items()}
        for name, value in checked.items():
            object.__setattr__(self, self.attributes.get(name, name), value)

    @property
    def terms(self) -> Mapping[Mechanism, int]:
        return {self: 1}

    @property
    def estimated(self) -> bool:
        return False

    @property
    def frozen(self) -> bool:
        return MECHANISMS.get(self.name()) is type(
            self
        )  # what the notation can spell is data; of others nothing is known

    @property
    def relation(self) -> Relation:
        return Relation.ANY

    @abstractmethod
    def key(self) -> Hashable:
        """Everything that equality means: exact values, not spellings."""

    @abstractmethod
    def own_curve(self, bound: str) -> Curve:
        """What is proved about one run of it; `bound` matters only to sampled mechanisms."""

    def pair(self) -> Pair | None:
        """The dominating pair, if it is known."""
        return None

    def privacy_loss(self) -> Loss | None:
        """The law of the privacy loss of its dominating pair, for those that are known by it and by no `pair`."""
        return None

    def unsampled(self) -> tuple[Expression, Fraction]:
        """What runs on each sample, and the rate at which the sample is drawn."""
        return self, Fraction(1)

    def by_lemma3(self) -> tuple[Expression, Fraction]:
        """The same, for composition theorems that amplify by Lemma 3; HypothesisError where that is not about its samples."""
        return self.unsampled()

    def data_size(self) -> Exact | None:
        """The number of records its statement is for, where it depends on that."""
        return getattr(self, "records", None)

    def arguments(self) -> Mapping[str, str]:
        """Parameter names and their spelling in the notation, defaults left out."""
        values = {name: getattr(self, self.attributes.get(name, name)) for name in self.domains}
        return {name: value.notation for name, value in values.items() if value != self.defaults.get(name)}

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Mechanism) and type(self) is type(other) and self.key() == other.key()

    def __hash__(self) -> int:
        try:
            return self._hash
        except AttributeError:  # hashing fractions is slow, and every composition hashes
            object.__setattr__(self, "_hash", hash((type(self), self.key())))
            return self._hash

    def __str__(self) -> str:
        return f"{self.name()}({', '.join(f'{name}={text}' for name, text in self.arguments().items())})"

    def __repr__(self) -> str:
        return str(self)

    @classmethod
    def name(cls) -> str:
        """What the notation calls it."""
        return cls.__name__

    def rank(self) -> tuple[str, str]:
        """A place in the one order in which terms are added, so that permuting a sum changes nothing."""
        try:
            return self._rank
        except AttributeError:
            object.__setattr__(self, "_rank", (type(self).__name__, canonical(self.key())))
            return self._rank


def canonical(key: Any) -> str:
    """A key as text that does not depend on how its numbers were spelled or in which order a sum was written."""
    match key:
        case Fraction():
            return f"{key.numerator}/{key.denominator}"
        case tuple():
            return f"({', '.join(canonical(item) for item in key)})"
        case Expression():
            return str(sorted((mechanism.rank(), times) for mechanism, times in key.terms.items()))
    return repr(key)


MECHANISMS: dict[str, type[Mechanism]] = {}
"""Every mechanism the notation knows, by name; the laws in the tests run over all of them."""

M = TypeVar("M", bound=type[Mechanism])


def register(mechanism: M) -> M:
    """Make a mechanism part of the notation and of the laws."""
    MECHANISMS[mechanism.name()] = mechanism
    return mechanism
