"""A mechanism that runs on a fresh sample."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

from cumulant.curves.curve import Curve
from cumulant.domains import Exact
from cumulant.errors import InputError, RelationError
from cumulant.mechanisms.mechanism import Expression, Mechanism
from cumulant.relation import Relation
from cumulant.sampling.scheme import Scheme


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
        return self.scheme.sizes()[1]

    def unsampled(self) -> tuple[Expression, Fraction]:
        return self.inner, self.scheme.rate

    def by_lemma3(self) -> tuple[Expression, Fraction]:
        self.scheme.theorem("lemma3")
        return self.unsampled()

    def key(self) -> Hashable:
        return self.inner, self.scheme

    def own_curve(self, bound: str) -> Curve:
        # A composition may be adaptive within the sample, so only a single mechanism brings its dominating pair along.
        pair = self.inner.pair() if isinstance(self.inner, Mechanism) else None
        return self.scheme.curve(self.inner.curve, pair, bound, str(self.inner))

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
    size, _ = scheme.sizes()
    for mechanism in inner.terms:
        stated = mechanism.data_size()
        if None not in (stated, size) and stated != size:
            raise InputError(
                f"{mechanism} is stated for {stated} records but runs on samples of {size}; give records={size}"
            )
    if isinstance(inner, Sampled) and (single := scheme.of(inner.scheme)) is not None:
        return sampled(inner.inner, single)
    return Sampled(inner, scheme)
