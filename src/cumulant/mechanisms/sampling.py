"""Sampling schemes, and a mechanism that runs on a fresh sample."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

from cumulant.bounds.bound import Bound
from cumulant.bounds.poisson import POISSON
from cumulant.bounds.table import WITHOUT_REPLACEMENT, amplified, row
from cumulant.curves.curve import Curve
from cumulant.domains import COUNT, RATE, Exact, Number, spelling
from cumulant.errors import HypothesisError, InputError, RelationError
from cumulant.lattice import sampling as sampling_laws
from cumulant.lattice.sampling import Sampling
from cumulant.mechanisms.mechanism import Expression, Mechanism
from cumulant.relation import Relation


class Scheme(ABC):
    """A way to draw the sample that a mechanism sees."""

    __slots__ = ()

    relation: ClassVar[Relation]
    bounds: ClassVar[Mapping[str, Bound]]
    candidates: ClassVar[tuple[str, ...]]
    sampling: ClassVar[Sampling | None] = None  # what the exact layer may use; None: it is not asked
    assumed: ClassVar[str] = ""  # what must be true of the samples, and no theorem can know
    rate: Exact

    @abstractmethod
    def __init__(self, rate: Number) -> None:
        """Every scheme may be given by its rate."""

    @property
    def frozen(self) -> bool:
        """Whether it is data alone, as all are that the notation can spell."""
        return SCHEMES.get(type(self).__name__) is type(self)

    def theorem(self, bound: str) -> str:
        """The name of a row of its table; HypothesisError where that is no theorem about its samples."""
        name = row(bound).name
        if self.rate < 1 and name not in self.bounds:
            kind = type(self).__name__
            raise HypothesisError(f"{name} is not a theorem about {kind} samples; use one of {', '.join(self.bounds)}")
        return name

    def curve(self, inner: Expression, bound: str) -> Curve:
        """The curve of `inner` run on one sample."""
        name = self.theorem(bound)
        # A composition may be adaptive within the sample, so only a single mechanism brings its dominating pair along.
        pair = inner.pair() if isinstance(inner, Mechanism) else None
        base = inner.curve(name if row(name).upper else "best")
        return amplified(base, pair, self.rate, name, str(inner), self.bounds)

    @abstractmethod
    def of(self, inner: Scheme) -> Scheme | None:
        """The single scheme that draws a sample by `inner` from a sample drawn by this one, if there is one."""


@dataclass(frozen=True, slots=True, init=False, eq=False)
class WithoutReplacement(Scheme):
    """A uniform sample without replacement: every subset of `sample` records of the `population` is equally likely.

    Give the rate, or sample and population. Statements are for replace-one neighbours: data sets of the same, public
    size that differ in one record. The theorems assume that the mechanism ignores the order of its sample, or that the
    sample reaches it shuffled; with a sample in data-set order Theorem 9 and even Lemma 3 fail. Clipping to norm C has
    replace-one sensitivity 2C.

    >>> WithoutReplacement(sample=256, population=60_000) == WithoutReplacement(rate="256/60000")
    True
    """

    rate: Exact
    sample: Exact | None
    population: Exact | None

    relation: ClassVar[Relation] = Relation.REPLACE_ONE
    bounds: ClassVar[Mapping[str, Bound]] = WITHOUT_REPLACEMENT
    # fmt: off
    candidates: ClassVar[tuple[str, ...]] = (
        "gaussian-ball", "gaussian-diameter", "one-bit", "profile", "pure-extras", "theorem9", "lemma3", "caps",
    )
    # fmt: on
    sampling: ClassVar[Sampling] = sampling_laws.WITHOUT_REPLACEMENT
    assumed: ClassVar[str] = (
        "every sample is uniform, smaller than the data set, and shuffled unless the mechanism ignores its order"
    )

    def __init__(
        self, rate: Number | None = None, *, sample: Number | None = None, population: Number | None = None
    ) -> None:
        if rate is not None and sample is None and population is None:
            checked, size, total = RATE.check("rate", rate), None, None
        elif rate is None and sample is not None and population is not None:
            size, total = COUNT.check("sample", sample), COUNT.check("population", population)
            if size > total:
                raise InputError(f"sample={size} must be at most population={total}")
            checked = Exact(Fraction(size) / total)
        else:
            raise InputError("WithoutReplacement takes rate=…, or sample=… and population=…")
        for name, value in (("rate", checked), ("sample", size), ("population", total)):
            object.__setattr__(self, name, value)

    def of(self, inner: Scheme) -> Scheme | None:
        if not isinstance(inner, WithoutReplacement):
            return None
        return WithoutReplacement(rate=spelling(self.rate * inner.rate))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, WithoutReplacement) and self.rate == other.rate

    def __hash__(self) -> int:
        return hash((WithoutReplacement, self.rate))

    def __str__(self) -> str:
        if self.sample is not None and self.population is not None:
            return f"WithoutReplacement(sample={self.sample.notation}, population={self.population.notation})"
        return f"WithoutReplacement(rate={self.rate.notation})"

    def __repr__(self) -> str:
        return str(self)


@dataclass(frozen=True, slots=True, init=False, repr=False)
class Poisson(Scheme):
    """A Poisson sample: every record is in it independently with probability `rate`, so that its size is random.

    Statements are for add/remove neighbours: data sets of which one has one record more. Sensitivities are add/remove
    too, C for sums of vectors clipped to norm C, and hold for samples of every size, the empty one included.

    >>> import cumulant as cm
    >>> step = cm.Gaussian.from_clipping(norm=1, noise=1, relation="add-remove") @ cm.Poisson(rate=0.01)
    >>> step.rdp([2, 2.5])
    array([0.00017181, 0.00021758])
    >>> cm.Gaussian(sigma=1) @ Poisson(rate=0.1) @ Poisson(rate=0.1) == cm.Gaussian(sigma=1) @ Poisson(rate=0.01)
    True
    """

    rate: Exact

    relation: ClassVar[Relation] = Relation.ADD_REMOVE
    bounds: ClassVar[Mapping[str, Bound]] = POISSON
    candidates: ClassVar[tuple[str, ...]] = ("poisson", "poisson-sum", "pure-response", "lemma3", "caps")
    sampling: ClassVar[Sampling] = sampling_laws.POISSON
    assumed: ClassVar[str] = "every record enters each Poisson sample independently of the others"

    def __init__(self, rate: Number) -> None:
        object.__setattr__(self, "rate", RATE.check("rate", rate))

    def of(self, inner: Scheme) -> Scheme | None:
        return Poisson(rate=spelling(self.rate * inner.rate)) if isinstance(inner, Poisson) else None

    def __str__(self) -> str:
        return f"Poisson(rate={self.rate.notation})"

    def __repr__(self) -> str:
        return str(self)


SCHEMES: dict[str, type[Scheme]] = {"WithoutReplacement": WithoutReplacement, "Poisson": Poisson}
"""Every sampling scheme the notation knows, by name."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Sampled(Mechanism):
    """An expression that runs on one sample drawn by the scheme."""

    inner: Expression
    scheme: Scheme

    amplified: ClassVar[bool] = True

    @property
    def relation(self) -> Relation:
        return self.scheme.relation

    @property
    def estimated(self) -> bool:
        return self.inner.estimated

    @property
    def frozen(self) -> bool:
        return self.inner.frozen and self.scheme.frozen

    def data_size(self) -> Exact | None:
        return getattr(self.scheme, "population", None)

    def unsampled(self) -> tuple[Expression, Fraction]:
        return self.inner, self.scheme.rate

    def by_lemma3(self) -> tuple[Expression, Fraction]:
        self.scheme.theorem("lemma3")
        return self.unsampled()

    def key(self) -> Hashable:
        return self.inner, self.scheme

    def own_curve(self, bound: str) -> Curve:
        return self.scheme.curve(self.inner, bound)

    def candidates(self) -> tuple[str, ...]:
        return self.scheme.candidates

    def arguments(self) -> Mapping[str, str]:
        return {}

    def __str__(self) -> str:
        inner = f"{self.inner}" if isinstance(self.inner, Mechanism) else f"({self.inner})"
        return f"{inner} @ {self.scheme}"


def sampled(inner: Expression, scheme: Scheme) -> Sampled:
    """`inner @ scheme`, with a sample of a sample normalised to one sample where that is the same law."""
    if inner.relation not in (Relation.ANY, scheme.relation):
        raise RelationError(
            f"{type(scheme).__name__} makes {scheme.relation} statements but {inner} is stated for {inner.relation}; "
            "state every sensitivity under one relation, that of a clipped sum by "
            f'Gaussian.from_clipping(norm, noise, relation="{scheme.relation}")'
        )
    size = getattr(scheme, "sample", None)
    for mechanism in inner.terms:
        stated = mechanism.data_size()
        if None not in (stated, size) and stated != size:
            raise InputError(
                f"{mechanism} is stated for {stated} records but runs on samples of {size}; give records={size}"
            )
    if isinstance(inner, Sampled) and (single := scheme.of(inner.scheme)) is not None:
        return sampled(inner.inner, single)
    return Sampled(inner, scheme)
