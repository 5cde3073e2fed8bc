"""The interface of a sampling scheme; a scheme claims only what it states."""

from __future__ import annotations

from abc import ABC
from collections.abc import Callable, Iterator, Mapping
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from cumulant.bounds.bound import Bound, proved
from cumulant.bounds.table import BOUNDS, OWN, row
from cumulant.curves.closed_form import lemma3
from cumulant.curves.curve import Curve
from cumulant.domains import Domain, Exact
from cumulant.errors import HypothesisError
from cumulant.numerics.enclosure import BOUNDED
from cumulant.pairs.pair import Pair
from cumulant.registry import Registry
from cumulant.relation import Relation

if TYPE_CHECKING:
    from cumulant.exact.witnesses import Neighbours
    from cumulant.losses.grid import Step
    from cumulant.losses.transform import Transform


class Scheme(ABC):
    """A way to draw the sample that a mechanism sees.

    It is one file, and nothing else asks for its type.

    A scheme says for which neighbours its statements are, and has a table of theorems about its samples. That is enough for
    every answer from Rényi divergences. Everything else has a default that claims nothing: no loss distributions, no lower
    end, no amplified (epsilon, delta), no closed form. A scheme with a rate derives from `Rated`.
    """

    __slots__ = ()

    relation: ClassVar[Relation]
    """The neighbours that its statements compare."""

    bounds: ClassVar[Mapping[str, Bound]]
    """The theorems about its samples, by name; "best" is among them."""

    assumed: ClassVar[str] = ""
    """The assumption about the samples that no theorem can check."""

    checked: ClassVar[str] = "every sample was drawn as the scheme says, in secret"
    """The fact to check about the samples, in a few words."""

    displaces: ClassVar[str] = ""
    """Why what runs is stated for other neighbours than the samples, where that is so."""

    draws: ClassVar[bool] = True
    """True if the mechanism sees a part of the data; one that may not run on a sample is then refused."""

    sharpened: ClassVar[str] = "best"
    """The row of its table that loss distributions are the sharp form of: what a guarantee from them names."""

    fixed: ClassVar[bool] = False
    """True if every sample has one public size; otherwise nothing that is stated for one size may run on it."""

    spans_pass: ClassVar[bool] = False
    """True if the scheme is about all steps of a pass over the data, and not about one step."""

    surrogate: ClassVar[bool] = False
    """True if the sample only bounds what ran, so that nothing is known from below."""

    gridded: ClassVar[bool] = False
    """True if it states anything about loss distributions: it has `steps_of` of its own; set when the class is made."""

    announced: ClassVar[bool] = False
    """True if the mechanism, once on all the data, is no more private: post-processing undoes what was drawn."""

    blocks: tuple[tuple[Scheme, int], ...] = ()
    """Epochs with one pick each that are together no more private, with their numbers; () if none are known."""

    @property
    def shorter(self) -> Scheme | None:
        """Return the scheme with about half as many steps; None where there is none.

        Fewer steps are no more private.
        """
        return None

    @property
    def step_rate(self) -> Fraction:
        """Return the probability that a given step of an epoch has the record; 0 for a scheme without epochs."""
        return Fraction(0)

    @property
    def averaged(self) -> Fraction:
        """Return the part of a Gaussian's squared shift that the sum of all its outputs keeps; 0 where none is known."""
        return Fraction(0)

    @property
    def sized(self) -> bool:
        """True if its statements are for data sets of one size."""
        return self.sizes()[1] is not None

    @property
    def copies(self) -> int | None:
        """Return in how many records samples of neighbours differ at most; None if unknown.

        Records are counted as `takes` counts them.
        """
        return None

    def __init_subclass__(cls, **given: Any) -> None:
        super().__init_subclass__(**given)
        cls.gridded = cls.steps_of is not Scheme.steps_of
        for table in cls.tables():
            OWN.update({name: each for name, each in table.items() if name not in BOUNDS})

    @classmethod
    def tables(cls) -> tuple[Mapping[str, Bound], ...]:
        """Return every table of theorems that the scheme has."""
        return (getattr(cls, "bounds", {}),)

    @property
    def called(self) -> str:
        """Return the word that the notation has for this scheme."""
        return type(self).__name__

    @property
    def takes(self) -> Relation:
        """Return the neighbours for which a mechanism on its samples is stated."""
        return self.relation

    @property
    def data_independent(self) -> bool:
        """Return True if no record is ever in a sample."""
        return False

    def accepts(self, relation: Relation) -> bool:
        """Return True if a mechanism on its samples may be stated for these neighbours."""
        return relation in (Relation.ANY, self.takes)

    def alternative(self, pair: Pair | None, stated: Relation) -> str:
        """Say how to write the scheme for the neighbours of a run that it does not accept; empty if it cannot be.

        The arguments are those of `refuses`.
        """
        return ""

    def refuses(self, pair: Pair | None, stated: Relation) -> str:
        """Say why a pair may not run on its samples; empty if it may.

        The pair is None for several mechanisms together.

        `stated` is the relation of its sensitivity.
        """
        return ""

    @classmethod
    def unknowns(cls, others: Mapping[str, str]) -> Mapping[str, Domain]:
        """Return the parameters that calibrate may solve for, with their domains.

        They may depend on the text of the other parameters.
        """
        return {}

    def numbers(self) -> Mapping[str, Fraction]:
        """Return its exact parameters by name, as a proof shows them."""
        return {}

    @property
    def frozen(self) -> bool:
        """Return True if the scheme is data alone, as all are that the notation can spell."""
        return SCHEMES.get(type(self).__name__) is type(self)

    def sizes(self) -> tuple[Exact | None, Exact | None]:
        """Return the sizes of the sample and of the data set, where they are fixed and public."""
        return None, None

    def merge(self, inner: Scheme) -> Scheme | None:
        """Return the one scheme that samples by `inner` from a sample of this one; None if there is none."""
        return None

    def wrap(self, inner: Any) -> Any:
        """Return the expression for `inner` on its samples; None if it is an ordinary `Sampled`."""
        return None

    def user_counts(self, records: int) -> tuple[Fraction, ...] | None:
        """Return the law of how many records of a user who joins or leaves are in one sample; None where it is not claimed."""
        return None

    def group_counts(self, size: int) -> tuple[Fraction, ...] | None:
        """Return the law of how many records of a group are in one sample, for samples that differ in these only.

        Neighbours may be mixed, and the sample without any of the group is the same for both data sets. None where it is not
        claimed.
        """
        return None

    def describe(self, ran: str, times: int) -> str:
        """Describe so many rounds in which one mechanism ran."""
        if times == 1:
            return f"{ran} runs on one sample drawn by {self}"
        return f"{ran} runs {times:,} times, each time on a fresh sample drawn by {self}"

    # ---- curves

    def theorem(self, bound: str) -> str:
        """Return the name of a row of its table.

        HypothesisError where that is no theorem about its samples.
        """
        name = row(bound).name
        if name not in self.bounds:
            known = ", ".join(self.bounds)
            raise HypothesisError(
                f"{name} does not apply to {self.called} samples; use one of {known}, or leave method and bound out for "
                "the best of them"
            )
        return name

    def curve(self, base: Callable[[str], Curve], pair: Pair | None, bound: str, subject: str) -> Curve:
        """Return the curve on one sample of a mechanism.

        The mechanism has this curve by each bound and, if it is known, this dominating pair.

        Without a rate the rows of the table are handed the rate 1, at which nothing is amplified.
        """
        name = self.theorem(bound)
        return proved(self.bounds, name, base(name if row(name).upper else "best"), pair, Fraction(1), subject)

    # ---- statements of one (epsilon, delta)

    def by_lemma3(self) -> Fraction:
        """Return the rate g of Lemma 3; HypothesisError where Lemma 3 is not claimed.

        Lemma 3 is (e, d) -> (log(1 + g (e^e - 1)), g d).
        """
        raise HypothesisError(
            f"this method needs the (epsilon, delta) of one sample, which is not known for {self.called} samples; use "
            'method="best"'
        )

    def amplified(self, epsilon: Fraction, delta: Fraction) -> tuple[float, Fraction]:
        """Amplify an (epsilon, delta) statement by Lemma 3, epsilon rounded up."""
        rate = self.by_lemma3()
        return float(lemma3(BOUNDED.number(epsilon), BOUNDED.number(rate), BOUNDED).upper()), rate * delta

    # ---- loss distributions

    def steps_of(self, pair: Pair) -> tuple[Step, ...] | None:
        """Return the steps that a sample makes of a dominating pair.

        The larger of their compositions bounds the run.

        One step for both orders of every pair of neighbours; or two, the first for the data set with the record against
        the one without it, the second for the reverse. None: no grid is asked, or none can hold the loss.
        """
        return None

    def transforms_of(self, pair: Pair) -> tuple[Transform, ...] | None:
        """Return the transforms of the steps, one for each; None if the line cannot be used."""
        return None

    def witnesses(self, pair: Pair) -> Iterator[Neighbours]:
        """Yield explicit neighbouring data sets with their output laws, for lower bounds."""
        return iter(())

    def triples(self) -> Fraction | None:
        """Return the rate g if a round is (1-g)R + gP against (1-g)R + gQ, or a mixture of such.

        R, P and Q are pairwise neighbours.
        """
        return None

    def closed_form(self, pair: Pair) -> tuple[Pair, Fraction | None]:
        """Return a pair and the share g by which the profile of one round is exactly amplified; None if it is not.

        The profile is then g d(log(1 + (e^eps - 1)/g)), d that of the pair. It is the pair of the mechanism, unless samples
        make another pair of it.
        """
        return pair, None

    def theorem_b_rate(self, pair: Pair) -> Fraction | None:
        """Return the rate at which Theorem B holds for Gaussian noise on its samples, or None."""
        return None


SCHEMES: Registry[type[Scheme]] = Registry()
"""Every sampling scheme the notation knows, by name."""

S = TypeVar("S", bound=type[Scheme])
"""A class of schemes."""


def register_scheme(scheme: S) -> S:
    """Register a scheme for the notation and the laws."""
    SCHEMES[scheme.__name__] = scheme
    return scheme
