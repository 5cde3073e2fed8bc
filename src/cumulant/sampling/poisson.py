"""Poisson sampling."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from fractions import Fraction
from typing import TYPE_CHECKING, ClassVar

from cumulant.bounds.bound import amplified
from cumulant.bounds.poisson import POISSON
from cumulant.bounds.poisson_replacement import BALL_REPLACEMENT, REPLACEMENT
from cumulant.curves.curve import Curve
from cumulant.domains import spelling
from cumulant.errors import HypothesisError
from cumulant.exact.witnesses import OPPOSITE, Neighbours
from cumulant.numerics.binomials import MOST_COUNTED, binomial_masses
from cumulant.relation import Relation
from cumulant.sampling.rated import Directions, Sized, Statement, proposition11
from cumulant.sampling.scheme import Scheme, register_scheme

if TYPE_CHECKING:
    from cumulant.pairs.pair import Pair


@register_scheme
class Poisson(Sized):
    """A Poisson sample: every record is in it independently with probability `rate`.

    Its size is random.

    Give the rate, or by `sample` and `population` the quotient of the size that is expected and the number of records.

    Statements are for add/remove neighbours: data sets of which one has one record more. Sensitivities are add/remove
    too, C for sums of vectors clipped to norm C, and hold for samples of every size, the empty one included. With
    `relation="replace-one"` they are for a record that is replaced, and for sums with log-concave noise; with
    `relation="replace-special"` for one that a record which adds nothing replaces (docs/samples.md).

    >>> import cumulant as cm
    >>> step = cm.Gaussian.from_clipping(norm=1, noise=1, relation="add-remove") @ cm.Poisson(rate=0.01)
    >>> step.rdp([2, 2.5])
    array([0.00017181, 0.00021758])
    >>> cm.Gaussian(sigma=1) @ Poisson(rate=0.1) @ Poisson(rate=0.1) == cm.Gaussian(sigma=1) @ Poisson(rate=0.01)
    True
    >>> Poisson(sample=256, population=60_000) == Poisson(rate="256/60000")
    True
    >>> step = cm.Gaussian.from_clipping(norm=1, noise=1, relation="replace-one")
    >>> step @ Poisson(rate=0.01, relation="replace-one")
    Gaussian(sigma=1, sensitivity=2, geometry="ball") @ Poisson(rate=0.01, relation="replace-one")
    """

    __slots__ = ()

    word: ClassVar[str] = "Poisson"
    meant: ClassVar[str] = ", the size that is expected and all records"
    checked: ClassVar[str] = "each record is sampled independently, in secret"
    statements: ClassVar[Mapping[Relation, Statement]] = {
        Relation.ADD_REMOVE: Statement(
            POISSON, "poisson", "every record enters each Poisson sample independently of the others"
        ),
        # Given who else is in the sample the output is (1-g) N(s) + g N(s + u), u the record, on one data set, and with v on
        # the other: noise around the centre, and at both ends. Opposite records at the largest distance from 0 are worst for
        # every epsilon and in every dimension (docs/samples.md).
        Relation.REPLACE_ONE: Statement(
            BALL_REPLACEMENT,
            "replacement",
            "every record enters each Poisson sample independently of the others, and one that is absent adds nothing to the "
            'sum: its sensitivity is for a record added or removed, or with geometry="ball" 0 is the centre of the ball',
        ),
        # A sample with the special record is released as the sample without it, so that the two laws are those of a record
        # removed from the data, or added to it (docs/samples.md).
        Relation.REPLACE_SPECIAL: Statement(
            POISSON,
            "poisson",
            "every record enters each Poisson sample independently of the others, and a sample with the special record is "
            "released as the one without it",
        ),
    }

    @property
    def _replaces(self) -> bool:
        """Return True if the record is replaced by another, which every mechanism sees."""
        return self.stated is Relation.REPLACE_ONE

    def _replaced(self, pair: Pair) -> Pair | None:
        """Return the pair of a record that is replaced; None if it is not known."""
        return pair.replacement(self.rate) if self.rate else pair

    # ---- what may run on its samples

    @property
    def takes(self) -> Relation:
        return Relation.ADD_REMOVE if self._replaces else self.stated

    def accepts(self, relation: Relation) -> bool:
        """Accept all relations for a record that is replaced; `refuses` looks at the pair too."""
        return self._replaces or super().accepts(relation)

    def alternative(self, pair: Pair | None, stated: Relation) -> str:
        if type(self) is not Poisson or stated is not Relation.REPLACE_ONE:
            return ""
        if Poisson(rate=self.rate, relation=Relation.REPLACE_ONE).refuses(pair, stated):
            return ""
        return f', or the sample by {self.called}(rate=…, relation="{Relation.REPLACE_ONE}")'

    def refuses(self, pair: Pair | None, stated: Relation) -> str:
        if not self._replaces:
            return ""
        known = pair is not None and self._replaced(pair) is not None
        if (known and stated is Relation.ADD_REMOVE) or (pair is not None and pair.geometry == "ball"):
            return ""
        if known:
            return (
                "a Poisson sample with a record replaced needs the distance of a record from an absent one; "
                'state the sensitivity of a record added or removed and say so by relation="add-remove"'
            )
        return (
            "a Poisson sample with a record replaced covers one sum with log-concave noise on each sample; "
            'state it by Gaussian(noise_multiplier=…, relation="add-remove"), or leave relation out of Poisson'
        )

    def merge(self, inner: Scheme) -> Scheme | None:
        if not isinstance(inner, Poisson) or type(inner) is not type(self) or inner.stated is not self.stated:
            return None
        return type(self)(rate=spelling(self.rate * inner.rate), relation=self.stated)

    # ---- curves and statements of one (epsilon, delta)

    def curve(self, base: Callable[[str], Curve], pair: Pair | None, bound: str, subject: str) -> Curve:
        if not self._replaces or not self.rate:
            return super().curve(base, pair, bound, subject)
        name = self.theorem(bound)
        whole = None if pair is None else pair.replacement(Fraction(1))
        if pair is None or whole is None:
            raise HypothesisError(f"{subject}: {self.refuses(None, self.stated)}")
        rows = BALL_REPLACEMENT if pair.geometry == "ball" else REPLACEMENT
        if name not in rows:
            raise HypothesisError(
                f'{name} does not apply to {subject}: it needs Gaussian noise with geometry="ball"; use bound="best"'
            )
        return amplified(rows, name, whole.curve(), pair, self.rate, subject) if self.rate < 1 else whole.curve()

    def by_lemma3(self) -> Fraction:
        if self._replaces:
            raise HypothesisError(
                "this method needs the epsilon of a replaced record, which is not known on a Poisson sample; use "
                'method="best"'
            )
        return super().by_lemma3()

    # ---- loss distributions

    def drawn(self, pair: Pair) -> tuple[Pair, Fraction, Directions] | None:
        """Return the pair with the record removed and added, or the pair of a record that is replaced.

        A record that is not replaced is in one of the data sets, and the run sees it removed or added throughout.
        Returns None if no pair is known for a record that is replaced.
        """
        if self._replaces:
            replaced = self._replaced(pair)
            return None if replaced is None else (replaced, Fraction(1), ("symmetric",))
        return pair, self.rate, ("remove", "add") if self.rate < 1 else ("symmetric",)

    def witnesses(self, pair: Pair) -> Iterator[Neighbours]:
        if not self._replaces:
            return proposition11(pair, self.rate)
        replaced = self._replaced(pair)
        return iter(()) if replaced is None else _opposite(replaced)

    def closed_form(self, pair: Pair) -> tuple[Pair, Fraction | None]:
        if self._replaces:
            replaced = self._replaced(pair)
            return (pair, None) if replaced is None else (replaced, Fraction(1))
        return pair.poisson_profile(self.rate)

    def theorem_b_rate(self, pair: Pair) -> Fraction | None:
        return self.rate if self.rate == 1 and not self._replaces else None

    # ---- several records

    def user_counts(self, records: int) -> tuple[Fraction, ...] | None:
        return None if self._replaces else binomial_masses(records, self.rate)

    def group_counts(self, size: int) -> tuple[Fraction, ...] | None:
        return None if self._replaces or size > MOST_COUNTED else binomial_masses(size, self.rate)


def _opposite(pair: Pair) -> Iterator[Neighbours]:
    """Yield the laws of a Poisson sample in which a record is replaced by its opposite."""
    step = pair.lower_step(Fraction(1), "symmetric")
    if step is not None:
        yield Neighbours(OPPOSITE, step, transform=pair.lower_transform(Fraction(1), "symmetric"))
