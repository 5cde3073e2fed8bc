"""Runs as data: expressions that compose (`+`, `*`) and are sampled (`@`).

They hand their components over to the accounting.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import MISSING, field, replace
from fractions import Fraction
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar, dataclass_transform, overload

from cumulant import domains, plot_registry
from cumulant.accounting.cache import curve_of
from cumulant.accounting.choices import PictureKind
from cumulant.accounting.numbers import brief, first_sentence
from cumulant.accounting.queries import Answers
from cumulant.accounting.run import Component, RunRecord
from cumulant.curves.curve import Curve
from cumulant.domains import Domain, Exact, Number, Several
from cumulant.errors import HypothesisError, InputError, NotationError, RelationError
from cumulant.pairs.pair import Pair
from cumulant.parameters import Declared, declared, parameter
from cumulant.registry import Registry
from cumulant.relation import Relation, agreed
from cumulant.sampling.rated import Rated
from cumulant.sampling.scheme import Scheme

if TYPE_CHECKING:
    from cumulant.exact.shuffled_reports import Randomizer

COMBINATORS: Registry[Callable[..., Expression]] = Registry()
"""Functions that make one run of several; the operator `|` is `parallel`."""


class Expression(Answers):
    """A run on one data set: its components, and every question about it.

    >>> import cumulant as cm
    >>> run = cm.Gaussian(sigma=5) * 3 + cm.Laplace(scale=2)
    >>> isinstance(run, cm.Expression), run.epsilon(delta=1e-6) <= run.epsilon(delta=1e-9)
    (True, True)
    """

    __slots__ = ()
    __array_ufunc__ = None  # numpy scalars must not take over `3 * m`

    # ---- what it is made of

    @property
    @abstractmethod
    def terms(self) -> Mapping[Mechanism, int]:
        """Return each distinct mechanism and how often it ran."""

    def record(self) -> RunRecord:
        parts: list[Component] = []
        for mechanism, times in self.terms.items():
            parts.append(mechanism.part(times))
        return RunRecord(tuple(parts), self.relation, self)

    @property
    def relation(self) -> Relation:
        """Return the neighbouring relation of every statement about this expression."""
        return agreed(self.terms)[0]

    @property
    def estimated(self) -> bool:
        """Return True if a number about it rests on a function that is only sampled in floats.

        Such a function is a user's Python function.
        """
        return any(mechanism.estimated for mechanism in self.terms)

    @property
    def surrogate(self) -> bool:
        """Return True for a surrogate, which bounds the run from above only: it has no lower end."""
        return any(mechanism.surrogate for mechanism in self.terms)

    @property
    def rests_on_floats(self) -> bool:
        """Return True if its curve uses answers in floats about other runs, so that nothing from the curve is proved."""
        return any(mechanism.rests_on_floats for mechanism in self.terms)

    @property
    def frozen(self) -> bool:
        """Return True if it is data alone, so that what is known about it stays true.

        A Python object in it may change.
        """
        return all(mechanism.frozen for mechanism in self.terms)

    @property
    def records_changed(self) -> int:
        """Return in how many records the compared data sets differ: the least of all components.

        It is 1 unless Group is around all of them.
        """
        return min((mechanism.records_changed for mechanism in self.terms), default=1)

    @property
    def sized(self) -> bool:
        """Return True if its statements are for data sets of one size.

        Then it cannot run on a sample of random size.
        """
        return any(mechanism.sized for mechanism in self.terms)

    @property
    def spans_pass(self) -> bool:
        """Return True if a part of it is a whole pass over the data in several steps."""
        return any(mechanism.spans_pass for mechanism in self.terms)

    @property
    def spans_run(self) -> bool:
        """Return True if a part of it is a whole run whose steps share noise."""
        return any(mechanism.spans_run for mechanism in self.terms)

    def notation(self) -> str:
        """Return the text that `parse` reads back.

        NotationError where a Python function is part of the description.
        """
        if not self.terms:
            raise NotationError("nothing ran, so there is nothing to write; compose something first")
        for mechanism in self.terms:
            if not mechanism.frozen:
                raise NotationError(
                    f"{mechanism} holds a Python function or is unknown to the notation, so it cannot be written as text"
                )
        return str(self)

    # ---- how it is shown

    def __repr__(self) -> str:
        return brief(str(self))

    def __format__(self, spec: str) -> str:
        return format(str(self), spec)

    def _repr_html_(self) -> str | None:
        from cumulant.accounting import notebook

        return notebook.run(self.record()) if self.terms else None

    def plot(
        self,
        delta: Number = "1e-8",
        *,
        kind: PictureKind = "all",
        out: Any = None,
        bounds: str = "best",
        title: str | None = None,
        claim: Number | None = None,
    ) -> Any:
        """Draw "epsilon" against delta, "rounds", "rdp", "trade-off", or "all" of them.

        Needs cumulant[plot].

        Gives a matplotlib figure, which a notebook shows; a file `out` is written as PNG, SVG or PDF, with the numbers as CSV
        beside it. `bounds="all"` shows every bound of the divergences that applies. `title` stands above instead of the run.
        `claim` is an epsilon of somebody else, drawn as a line.

        >>> import cumulant as cm
        >>> figure = cm.PureDP(1).plot(delta=1e-6, kind="rdp")
        >>> figure.axes[0].get_xlabel()
        'order α'
        """
        return plot_registry.drawn("run", self, delta, kind, out, bounds, title, claim)

    # ---- operators

    def __mul__(self, times: int) -> Expression:
        return run(self.terms, domains.times(times))

    __rmul__ = __mul__

    def __add__(self, other: Expression) -> Expression:
        if not isinstance(other, Expression):
            return NotImplemented
        terms = dict(self.terms)
        for mechanism, times in other.terms.items():
            terms[mechanism] = terms.get(mechanism, 0) + times
        return run(terms)

    def __radd__(self, other: object) -> Expression:
        return self if type(other) is int and other == 0 else NotImplemented  # sum() starts from 0

    def __or__(self, other: Expression) -> Expression:
        return COMBINATORS["parallel"](self, other) if isinstance(other, Expression) else NotImplemented  # type: ignore[redundant-expr]

    @overload
    def __matmul__(self, scheme: Rated) -> Sampled: ...
    @overload
    def __matmul__(self, scheme: Scheme) -> Expression: ...
    def __matmul__(self, scheme: Scheme) -> Expression:
        return sampled(self, scheme) if isinstance(scheme, Scheme) else NotImplemented  # type: ignore[redundant-expr]


class Run(Expression):
    """A sum of mechanisms, each with the number of times it ran.

    Two runs are equal when their terms are.

    >>> import cumulant as cm
    >>> list((cm.PureDP(1) * 3 + cm.PureDP(2)).terms.values())
    [3, 1]
    """

    __slots__ = ("_hash", "_terms", "relation")
    relation: Relation

    def __init__(self, terms: Mapping[Mechanism, int]) -> None:
        self._terms = dict(terms)
        self._hash = hash(frozenset(self._terms.items()))
        self.relation = agreed(self._terms)[0]

    @property
    def terms(self) -> Mapping[Mechanism, int]:
        return dict(self._terms)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Run) and self._terms == other._terms

    def __hash__(self) -> int:
        return self._hash

    def __reduce__(self) -> tuple[type[Run], tuple[dict[Mechanism, int]]]:
        return Run, (self._terms,)  # hashes of text differ from process to process

    def __str__(self) -> str:
        return " + ".join(f"{m} * {times}" if times > 1 else str(m) for m, times in self._terms.items()) or "nothing"


def run(terms: Mapping[Mechanism, int], repeated: int = 1) -> Expression:
    """Return the run with these terms, repeated so many times; a single mechanism that ran once is itself."""
    counted: dict[Mechanism, int] = {}
    for mechanism, times in terms.items():
        counted[mechanism] = domains.times(repeated * times)
    return next(iter(counted)) if list(counted.values()) == [1] else Run(counted)


class Mechanism(Declared, Expression):
    """One mechanism: frozen data with a domain for each parameter, and a curve.

    It has a dominating pair if one is known.

    >>> import cumulant as cm
    >>> isinstance(cm.Laplace(scale=2), cm.Mechanism), list(cm.Laplace.domains)
    (True, ['scale', 'sensitivity'])
    """

    __slots__ = ("_hash", "_rank")
    _hash: int
    _rank: tuple[str, str]

    domains: ClassVar[Mapping[str, Domain | Several]] = {}
    """The domains of the numbers that the laws in the tests vary; `register` takes them from the declared parameters."""
    amplified: ClassVar[bool] = False
    scaled_to_norm: bool = False
    """True if its noise is scaled to a norm, as sums of clipped vectors need it."""
    estimated: bool = False
    """True if a number about it rests on a function that is only sampled in floats."""
    surrogate: bool = False
    """True if it bounds what ran from above only, so that it has no lower end."""
    rests_on_floats: bool = False
    """True if its curve uses answers in floats about other runs, so that nothing from the curve is proved."""
    attacked: str = "members"
    """The plural of what a membership attack finds."""

    @property
    def spans_pass(self) -> bool:
        return False

    @property
    def spans_run(self) -> bool:
        return False

    @classmethod
    def domain(cls, name: str, others: Mapping[str, Number]) -> Domain:
        """Return the domain of one parameter, the others being given as they are written."""
        numeric = {each: declared.kind for each, declared in cls.parameters.items()}
        kind = numeric.get(name)
        found = kind.each if isinstance(kind, Several) else kind
        if not isinstance(found, Domain):
            known = " or ".join(each for each, kind in numeric.items() if isinstance(kind, Domain | Several))
            raise InputError(f"{name}=? of {cls.name()} is nothing that calibrate can search; it solves for {known}")
        given = {each: declared.default for each, declared in cls.parameters.items()} | dict(others)
        involved = {each for constraint in cls.joint for each in (constraint.low, constraint.high)} - {name}
        values = {each: Exact(given[each]) for each in involved if given[each] is not MISSING}
        for constraint in cls.joint:
            found = constraint.narrowed(name, found, values)
        return found

    @property
    def terms(self) -> Mapping[Mechanism, int]:
        return {self: 1}

    def record(self) -> RunRecord:
        return RunRecord((self.part(1),), self.relation, self)

    @property
    def frozen(self) -> bool:
        # what the notation can spell is data; of others nothing is known
        return MECHANISMS.get(self.name()) is type(self)

    @property
    def relation(self) -> Relation:
        return Relation.ANY

    @property
    def records_changed(self) -> int:
        return 1

    @property
    def partitioned(self) -> bool:
        """Return True if it runs on disjoint parts of the data."""
        return False

    @property
    def sized(self) -> bool:
        return self.data_size() is not None

    def part(self, times: int) -> Component:
        """Return the component that the mathematics uses, for so many runs."""
        return Component(
            source=self,
            times=times,
            curve=partial(curve_of, self),
            pair=self.pair(),
            estimated=self.estimated,
            key=self,
            written=self.frozen,
            data_independent=self.data_independent,
            surrogate=self.surrogate,
            bounded=self.rests_on_floats,
        )

    def description(self) -> str:
        """Describe the mechanism in a sentence."""
        return f"{type(self).__name__} ({first_sentence(type(self).__doc__ or '')})"

    def rests_on_sensitivity(self) -> bool:
        """Return True if its statement rests on a sensitivity."""
        return "sensitivity" in self.domains

    def clipped_form(self) -> str:
        """Return the text of a sum of clipped vectors with the same noise over norm; empty if it is the same."""
        return ""

    def assumption(self) -> str:
        """Say what must be true of it, and no theorem can know; empty if there is nothing."""
        return ""

    def lower_end_hint(self) -> str:
        """Say how to describe it so that a lower end is known; empty if nothing more can be said."""
        return ""

    @property
    def data_independent(self) -> bool:
        """Return True if its output does not depend on the data."""
        return False

    @abstractmethod
    def own_curve(self, bound: str) -> Curve:
        """Return the proved curve of one run; `bound` matters only to sampled mechanisms."""

    def pair(self) -> Pair | None:
        """Return the dominating pair, if it is known."""
        return None

    def local_randomizer(self) -> Randomizer | None:
        """Return the laws of its reports, where it is a local randomizer with known ones; what is shuffled uses them."""
        return None

    def grouped_pair(self, size: int) -> Pair | None:
        """Return the dominating pair of data sets that differ in so many records, if it is known."""
        pair = None if self.amplified else self.pair()
        return None if pair is None else pair.group_pair(size)

    def _slack(self) -> Fraction:
        """Return the slack of its curve; a mechanism that knows it without the curve overrides this."""
        return self.own_curve("best").slack()

    def grouped_curve(self, size: int) -> Curve | None:
        """Return the curve for data sets that differ in so many records; None if only a chain bounds it."""
        pair = self.grouped_pair(size)
        return None if pair is None else pair.curve()

    @property
    def grouped_attained(self) -> bool:
        """True unless the pair of a group is a bound that no data sets attain, so that it has no lower end."""
        return True

    @property
    def user_attained(self) -> bool:
        """True unless the pair of a user was rounded, so that it has no lower end."""
        return True

    def user_pair(self, records: int) -> Pair | None:
        """Return the dominating pair of a user who joins or leaves with so many records, if it is known."""
        return self.grouped_pair(records)

    def unsampled(self) -> str:
        """Say why it may not run on a sample; empty if it may."""
        return ""

    def refused_sample(self, scheme: Scheme) -> str:
        """Say why it may not run on a sample of this scheme; empty if it may."""
        return self.unsampled()

    def ungrouped(self) -> str:
        """Say why nothing is known of a group of records; empty if something may be."""
        if not self.sized or self.relation is not Relation.ADD_REMOVE:
            return ""
        return (
            "it is stated for a data set of one size and one record more or less, and a group changes the size by more"
        )

    def data_size(self) -> Exact | None:
        """Return the number of records its statement is for, where it depends on that."""
        return getattr(self, "records", None)

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

    @classmethod
    def name(cls) -> str:
        """Return the word that the notation has for this mechanism."""
        return cls.__name__

    def rank(self) -> tuple[str, str]:
        """Return a place in the one order in which terms are added.

        So permuting a sum changes nothing.
        """
        try:
            return self._rank
        except AttributeError:
            object.__setattr__(self, "_rank", (type(self).__name__, canonical(self.key())))
            return self._rank


class Wrapper(Mechanism):
    """A mechanism that is made of another expression: what it does not say, `inner` says for it.

    Its text is `inner @ scheme`. Subclasses are declared with the fields `inner` and, mostly, `scheme`.
    """

    __slots__ = ()

    inner: Expression
    scheme: Scheme

    @property
    def relation(self) -> Relation:
        return self.inner.relation

    @property
    def estimated(self) -> bool:  # type: ignore[override]
        return self.inner.estimated

    @property
    def surrogate(self) -> bool:  # type: ignore[override]
        return self.inner.surrogate

    @property
    def rests_on_floats(self) -> bool:  # type: ignore[override]
        return self.inner.rests_on_floats

    @property
    def frozen(self) -> bool:
        return self.inner.frozen

    @property
    def records_changed(self) -> int:
        return self.inner.records_changed

    @property
    def sized(self) -> bool:
        return self.inner.sized

    @property
    def spans_pass(self) -> bool:
        return self.inner.spans_pass

    @property
    def spans_run(self) -> bool:
        return self.inner.spans_run

    def lower_end_hint(self) -> str:
        return next((said for mechanism in self.inner.terms if (said := mechanism.lower_end_hint())), "")

    @property
    def scaled_to_norm(self) -> bool:  # type: ignore[override]
        return any(part.source.scaled_to_norm for part in self.inner.record().nested())

    def _nested_sensitivity(self) -> bool:
        """Return True if a statement about anything inside rests on a sensitivity."""
        return any(part.source.rests_on_sensitivity() for part in self.inner.record().nested())

    def _nested_assumption(self) -> str:
        """Return what must be true of everything inside, each sentence once."""
        nested = list(self.inner.record().nested())
        said = [part.scheme.assumed for part in nested if part.scheme is not None] + [
            part.source.assumption() for part in nested
        ]
        return "; ".join(dict.fromkeys(each for each in said if each))

    def _applied(self) -> str:
        """Return the text behind `@`."""
        return str(self.scheme)

    def __str__(self) -> str:
        inner = f"{self.inner}" if isinstance(self.inner, Mechanism) else f"({self.inner})"
        return f"{inner} @ {self._applied()}"


@declared
class Sampled(Wrapper):
    """An expression that runs on one sample drawn by the scheme.

    >>> import cumulant as cm
    >>> (cm.PureDP(1) @ cm.Poisson(rate="1/2")).inner
    PureDP(epsilon=1)
    """

    inner: Expression
    scheme: Scheme

    amplified: ClassVar[bool] = True

    @property
    def spans_pass(self) -> bool:
        return self.scheme.spans_pass or self.inner.spans_pass

    @property
    def relation(self) -> Relation:
        return self.scheme.relation

    @property
    def surrogate(self) -> bool:  # type: ignore[override]
        return self.inner.surrogate or self.scheme.surrogate

    @property
    def frozen(self) -> bool:
        return self.inner.frozen and self.scheme.frozen

    @property
    def data_independent(self) -> bool:
        return self.scheme.data_independent or all(mechanism.data_independent for mechanism in self.inner.terms)

    @property
    def sized(self) -> bool:
        return self.scheme.sized

    def data_size(self) -> Exact | None:
        return self.scheme.sizes()[1]

    def part(self, times: int) -> Component:
        inner = self.inner.record()
        found = Component(
            source=self, times=times, curve=partial(curve_of, self), scheme=self.scheme, inner=inner, key=self
        )
        # every fact about it is the scheme's, or that of what runs on the samples
        estimated, written, surrogate = False, self.scheme.frozen, self.scheme.surrogate
        data_independent, bounded = True, False
        for each in inner.parts:
            estimated, written = estimated or each.estimated, written and each.written
            surrogate, data_independent = surrogate or each.surrogate, data_independent and each.data_independent
            bounded = bounded or each.bounded
        return replace(
            found,
            pair=inner.parts[0].pair if found.lone and inner.parts[0].scheme is None else None,
            estimated=estimated,
            written=written,
            data_independent=data_independent or self.scheme.data_independent,
            surrogate=surrogate,
            bounded=bounded,
        )

    def own_curve(self, bound: str) -> Curve:
        # A composition may be adaptive within the sample, so only a single mechanism brings its dominating pair along (E-25).
        pair = self.inner.pair() if isinstance(self.inner, Mechanism) else None
        return self.scheme.curve(self.inner.curve, pair, bound, str(self.inner))

    def _lone_pair(self) -> Pair | None:
        """Return the pair of the only mechanism, if it runs on all of each sample; None otherwise."""
        return self.inner.pair() if isinstance(self.inner, Mechanism) and not self.inner.amplified else None

    def grouped_pair(self, size: int) -> Pair | None:
        """Return the pair for a group, from the law of how many of its records are in the sample; None if none is known.

        The number is revealed, and bounds how many neighbours the samples are apart.
        """
        from cumulant.pairs.public_choice import count_pair

        pair, counts = self._lone_pair(), self.scheme.group_counts(size)
        return None if pair is None or counts is None else count_pair(pair, counts)

    @property
    def user_attained(self) -> bool:
        pair = self._lone_pair()
        return pair is not None and pair.attained and pair.lower_pair is pair

    def user_pair(self, records: int) -> Pair | None:
        """Return the pair of a user who joins or leaves with so many records, each of which is sampled alone.

        It is Gaussian noise around a random number of shifts, which is attained. For other symmetric noise the number is
        revealed. Returns None if no pair is known.
        """
        from cumulant.pairs.public_choice import count_pair

        pair, counts = self._lone_pair(), self.scheme.user_counts(records)
        if pair is None or counts is None or not pair.symmetric or not counts[0] < 1:
            return None
        # (the law of a mixture needs noise on a sum; of Gaussian-DP promises every count has a post-processing of its own)
        if (shift := pair.gaussian_shift()) is not None and pair.geometry:
            from cumulant.curves.gaussian_mixture import Shifts
            from cumulant.pairs.gaussian_mixture import GaussianMixturePair

            return GaussianMixturePair(Shifts.of([i * shift for i in range(records + 1)], counts))
        return count_pair(pair, counts)


def sampled(inner: Expression, scheme: Scheme) -> Expression:
    """Return `inner @ scheme`.

    A sample of a sample is normalised to one sample where that is the same law.
    """
    for mechanism in inner.terms if scheme.draws else ():
        if refused := mechanism.refused_sample(scheme):
            raise InputError(f"{mechanism} on a {scheme.called} sample: {refused}")
    made: Expression | None = scheme.wrap(inner)
    if made is not None:
        return made
    pair = inner.pair() if isinstance(inner, Mechanism) else None
    if not scheme.accepts(inner.relation):
        if scheme.displaces:
            raise RelationError(f"{inner} is stated for {inner.relation}, and {scheme} needs more: {scheme.displaces}")
        said = f"{scheme.called} makes {scheme.relation} statements but {inner} is stated for {inner.relation}"
        clipped = f'that of a clipped sum by Gaussian(noise_multiplier=…, relation="{scheme.takes}")'
        other = scheme.alternative(pair, inner.relation)
        raise RelationError(f"{said}; state every sensitivity under one relation, {clipped}{other}")
    size, _ = scheme.sizes()
    for mechanism in inner.terms:
        if not scheme.fixed and mechanism.sized:
            raise InputError(
                f"{mechanism} is stated for data sets of one size, but samples of {scheme} have random sizes; "
                "state it without a size, or draw samples of a fixed size around it"
            )
        stated = mechanism.data_size()
        if None not in (stated, size) and stated != size:
            said = f"{mechanism} is stated for {stated} records but runs on samples of {size}"
            raise InputError(f"{said}; state it for {size} records")
    if isinstance(inner, Sampled) and (single := scheme.merge(inner.scheme)) is not None:
        return sampled(inner.inner, single)
    if refused := scheme.refuses(pair, inner.relation):
        raise HypothesisError(f"{inner}: {refused}")
    return Sampled(inner, scheme)


def canonical(key: Any) -> str:
    """Return a key as text that does not depend on spelling or on the order of a sum.

    That is how its numbers were spelled, and in which order a sum was written.
    """
    match key:
        case Fraction():
            return f"{key.numerator}/{key.denominator}"
        case tuple():
            return f"({', '.join(canonical(item) for item in key)})"
        case frozenset():
            return (
                f"{{{', '.join(sorted(canonical(item) for item in key))}}}"  # its own order differs between processes
            )
        case Expression():
            return str(sorted((mechanism.rank(), times) for mechanism, times in key.terms.items()))
    return repr(key)


MECHANISMS: Registry[type[Mechanism]] = Registry()
"""Every mechanism the notation knows, by name; the laws in the tests run over all of them."""

M = TypeVar("M", bound=type[Mechanism])


@dataclass_transform(frozen_default=True, eq_default=False, field_specifiers=(parameter, field))
def register(mechanism: M) -> M:
    """Make a frozen class of the declared parameters, and part of the notation and of the laws."""
    made = declared(mechanism)
    made.domains = {
        name: each.kind
        for name, each in made.parameters.items()
        if each.free and isinstance(each.kind, Domain | Several)
    }
    MECHANISMS[made.name()] = made
    return made
