"""What ran, as data: expressions that compose (`+`, `*`), are sampled (`@`) and answer questions, all in one place."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Hashable, Iterable, Mapping
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar, overload

import numpy as np

from cumulant import domains
from cumulant.bounds.table import row as bound_row
from cumulant.conversion import answers, arrays
from cumulant.curves.curve import Curve, compose
from cumulant.curves.pair import Pair
from cumulant.domains import Domain, Exact, Number, Several
from cumulant.errors import NotationError
from cumulant.guarantee import Guarantee
from cumulant.mechanisms import answering, attack
from cumulant.mechanisms.answering import Question
from cumulant.mechanisms.attack import TradeOff
from cumulant.mechanisms.proof import curve_of
from cumulant.mechanisms.questions import DEFAULT_ACCURACY, DEFAULT_METHOD
from cumulant.mechanisms.relation import Relation, common

if TYPE_CHECKING:
    from cumulant.exact.losses import Loss
    from cumulant.mechanisms.sampling import Sampled, Scheme

Floats = np.ndarray[Any, np.dtype[np.float64]]


class Expression(ABC):
    """Something that ran on one data set, and every question that can be asked about it."""

    __slots__ = ()
    __array_ufunc__ = None  # numpy scalars must not take over `3 * m`

    # ---- what it is made of

    @property
    @abstractmethod
    def terms(self) -> Mapping[Mechanism, int]:
        """Each distinct mechanism and how often it ran."""

    @property
    def relation(self) -> Relation:
        """The neighbouring relation of every statement about this expression."""
        return common((mechanism.relation, mechanism) for mechanism in self.terms)

    @property
    def estimated(self) -> bool:
        """Whether a number about it rests on a user's Python function."""
        return any(mechanism.estimated for mechanism in self.terms)

    def curve(self, bound: str = "best") -> Curve:
        """What is proved about it: the sum of the curves of its terms, each amplified by this bound."""
        bound = bound_row(bound).name
        parts = sorted(self.terms.items(), key=lambda item: item[0].rank())
        return compose((curve_of(mechanism, bound), times) for mechanism, times in parts)

    def notation(self) -> str:
        """The text that `parse` reads back; NotationError where a Python function is part of the description."""
        for mechanism in self.terms:
            inner, _ = mechanism.unsampled()
            if inner is not self:
                inner.notation()
            elif mechanism.estimated:
                raise NotationError(f"{mechanism} holds a Python function, so it cannot be written as text")
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
        from cumulant.mechanisms.sampling import Scheme, sampled

        return sampled(self, scheme) if isinstance(scheme, Scheme) else NotImplemented  # type: ignore[redundant-expr]

    # ---- questions

    @overload
    def epsilon(  # type: ignore[overload-overlap]
        self,
        delta: Number,
        method: str = ...,
        bound: str | None = ...,
        conversion: str | None = ...,
        accuracy: Number = ...,
    ) -> float: ...
    @overload
    def epsilon(
        self,
        delta: Iterable[Number],
        method: str = ...,
        bound: str | None = ...,
        conversion: str | None = ...,
        accuracy: Number = ...,
    ) -> Floats: ...
    def epsilon(
        self,
        delta: Number | Iterable[Number],
        method: str = DEFAULT_METHOD,
        bound: str | None = None,
        conversion: str | None = None,
        accuracy: Number = DEFAULT_ACCURACY,
    ) -> float | Floats:
        """The smallest epsilon that this library proves at this delta, rounded up.

        `method="exact"` composes loss distributions on a grid that costs at most the relative `accuracy`; `method="rdp"`
        takes the best bound and conversion of Renyi divergences unless `bound=` and `conversion=` name rows of the tables;
        `method="best"` is the smaller of the two. `method="paper"` is the literal accountant of the paper (Theorem 9,
        eq. 3). The composition theorems the paper compares with are `method="naive"`, `"strong"` and `"optimal"`.

        >>> import cumulant as cm
        >>> run = cm.Gaussian(sigma=5) @ cm.WithoutReplacement(rate=0.001) * 600_000
        >>> run.epsilon(delta=1e-8, method="paper"), run.epsilon(delta=1e-8)
        (2.02701, 0.807)
        >>> cm.Laplace(scale=2).epsilon(delta=0)
        0.5
        """
        return answering.epsilon(self, delta, Question(method, bound, conversion, accuracy))

    @overload
    def delta(  # type: ignore[overload-overlap]
        self,
        epsilon: Number,
        method: str = ...,
        bound: str | None = ...,
        conversion: str | None = ...,
        accuracy: Number = ...,
    ) -> float: ...
    @overload
    def delta(
        self,
        epsilon: Iterable[Number],
        method: str = ...,
        bound: str | None = ...,
        conversion: str | None = ...,
        accuracy: Number = ...,
    ) -> Floats: ...
    def delta(
        self,
        epsilon: Number | Iterable[Number],
        method: str = DEFAULT_METHOD,
        bound: str | None = None,
        conversion: str | None = None,
        accuracy: Number = DEFAULT_ACCURACY,
    ) -> float | Floats:
        """The smallest delta that this library proves at this epsilon, rounded up (eq. 4).

        >>> import cumulant as cm
        >>> cm.Gaussian(sigma=2).delta(epsilon=1, method="paper"), cm.Gaussian(sigma=2).delta(epsilon=1)
        (0.216265, 0.0068)
        """
        return answering.delta(self, epsilon, Question(method, bound, conversion, accuracy))

    def guarantee(
        self,
        delta: Number,
        method: str = DEFAULT_METHOD,
        bound: str | None = None,
        conversion: str | None = None,
        accuracy: Number = DEFAULT_ACCURACY,
    ) -> Guarantee:
        """The epsilon at this delta together with what proves it, and from below what no proof can undercut.

        >>> import cumulant as cm
        >>> found = cm.Gaussian(sigma=1).guarantee(delta=1e-5)
        >>> found.lower <= found.epsilon, found.epsilon
        (True, 4.377)
        """
        return answering.guarantee(self, delta, Question(method, bound, conversion, accuracy))

    def epsilon_over(
        self,
        times: Iterable[int],
        delta: Number,
        method: str = "rdp",
        bound: str | None = None,
        conversion: str | None = None,
        accuracy: Number = DEFAULT_ACCURACY,
    ) -> Floats:
        """epsilon of `self * k` for every k in `times`.

        By Renyi divergences all counts together are the lower envelope of one line in k per order; with
        `method="best"` or `"exact"` each count is asked for on its own.

        >>> import cumulant as cm
        >>> step = cm.Gaussian(sigma=5) @ cm.WithoutReplacement(rate=0.001)
        >>> step.epsilon_over([1000, 600_000], delta=1e-8, method="paper")
        array([0.119, 2.027])
        """
        return answering.epsilon_over(self, times, delta, Question(method, bound, conversion, accuracy))

    def trade_off(self, fpr: Iterable[Number] | None = None, method: str = DEFAULT_METHOD) -> TradeOff:
        """The best attack: the largest true positive rate at each false positive rate; see `attack.trade_off`."""
        return attack.trade_off(self, fpr, method)

    def true_positive_rate(self, fpr: Number, method: str = DEFAULT_METHOD) -> float:
        """The largest part of the members that an attack finds which has this false positive rate.

        >>> import cumulant as cm
        >>> cm.PureDP(1).true_positive_rate(0.01)
        0.02719
        """
        return float(attack.true_positive_rate(self, fpr, method))

    @property
    def advantage(self) -> float:
        """The largest difference of true and false positive rate that any attack has."""
        return attack.advantage(self)

    @overload
    def rdp(self, order: Number, bound: str = ...) -> float: ...  # type: ignore[overload-overlap]
    @overload
    def rdp(self, order: Iterable[Number], bound: str = ...) -> Floats: ...
    def rdp(self, order: Number | Iterable[Number], bound: str = "best") -> float | Floats:
        """The Rényi divergence bound at orders in [1, inf]; order 1 is KL, inf is pure.

        >>> import cumulant as cm
        >>> cm.Gaussian(sigma=5).rdp([1, 2, 64.5])
        array([0.02, 0.04, 1.29])
        """
        value, scalar = domains.orders(order)
        answer = arrays.rdp(self.curve(bound), value, bound_row(bound).upper)
        return float(answer[0]) if scalar else answer

    def gap(self, order: Number | Iterable[Number], bound: str = "best") -> float | Floats:
        """How much room a bound leaves: its value over the lower bound of Proposition 11; 1 means that it is exact.

        >>> import cumulant as cm
        >>> run = cm.Gaussian(sigma=5) @ cm.WithoutReplacement(rate=0.001)
        >>> run.gap(2, bound="theorem9"), run.gap(2, bound="profile")
        (4.0, 1.16)
        """
        value, scalar = domains.orders(order)
        upper, lower = self.curve(bound).rdp(value), self.curve("lower").rdp(value)
        with np.errstate(invalid="ignore", divide="ignore"):
            answer: Floats = np.where(upper == lower, 1.0, upper / lower)  # 0 / 0 and inf / inf leave no room either
        return float(answer[0]) if scalar else answer

    @overload
    def cgf(self, lam: Number, bound: str = ...) -> float: ...  # type: ignore[overload-overlap]
    @overload
    def cgf(self, lam: Iterable[Number], bound: str = ...) -> Floats: ...
    def cgf(self, lam: Number | Iterable[Number], bound: str = "best") -> float | Floats:
        """K(lam) = lam * rdp(lam + 1), the cumulant generating function of the privacy loss, at lam >= 0.

        >>> import cumulant as cm
        >>> cm.Gaussian(sigma=1).cgf(1)
        1.0
        """
        value, scalar = domains.orders(lam, "lam", low=0.0)
        curve = self.curve(bound)
        answer = np.where(value == 0, 0.0, np.inf)
        inside = (value > 0) & np.isfinite(value)
        answer[inside] = arrays.cgf(curve, value[inside], bound_row(bound).upper)
        return float(answer[0]) if scalar else answer

    @property
    def kl(self) -> float:
        """Order 1: the largest Kullback-Leibler divergence."""
        return self.rdp(1)

    @property
    def pure(self) -> float:
        """Order infinity: the epsilon of pure differential privacy."""
        return answers.pure(self.curve(), self.estimated)


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

    def candidates(self) -> tuple[str, ...]:
        """The bounds of which `best` is the smallest, the ones that usually are first; none without a sample."""
        return ()

    def privacy_loss(self) -> Loss | None:
        """The law of the privacy loss of its dominating pair, for those that are known by it and by no `pair`."""
        return None

    def unsampled(self) -> tuple[Expression, Fraction]:
        """What runs on each sample, and the rate at which the sample is drawn."""
        return self, Fraction(1)

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
