"""The risk of one record in an attacker's words: attribute inference, re-identification, reconstruction and singling out.

Everything but the record is known to the attacker. `prior` is the best success without the release and with all side knowledge.
One function bounds the success with the release: R(x), the largest true positive rate at the false positive rate x.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, fields, replace
from fractions import Fraction
from typing import Any

from cumulant.accounting import attacks, numbers
from cumulant.accounting.choices import Method
from cumulant.accounting.numbers import percent
from cumulant.accounting.question import DEFAULT_METHOD
from cumulant.accounting.run import RunRecord
from cumulant.accounting.serialization import plain
from cumulant.domains import COUNT, Domain, Exact, Number, one_of
from cumulant.errors import InputError
from cumulant.numerics.rounding import as_printed, rounded_up, stated
from cumulant.relation import Relation

PRIOR = Domain(
    Fraction(0),
    Fraction(1),
    hint="it is the best success without the release, with all side knowledge; only you know it, so it has no default",
)
"""The success of an attack without the release, strictly between 0 and 1."""

CANDIDATES = Domain(Fraction(2), Fraction(10**300), low_closed=True, high_closed=True, integer=True)
"""Numbers of persons among whom one is named; derived: the prior 1/n must be a float."""


@dataclass(frozen=True, slots=True)
class _Word:
    """The words of one kind of attack: what is done without the release and with it, and over what the average is."""

    without: str
    with_it: str
    over: str
    side_knowledge: str
    named: bool
    """True if success is that one value is named, so that at most one guess is right."""


WORDS = {
    "attribute": _Word(
        "guess the attribute",
        "guesses it",
        "what it may be",
        "all other attributes, all other records and public knowledge",
        True,
    ),
    "reidentification": _Word(
        "name the right person",
        "names it",
        "who it may be",
        "every public data set that can be linked",
        True,
    ),
    "reconstruction": _Word(
        "reconstruct the record within the tolerance",
        "reconstructs it",
        "what it may be",
        "the best blind guess of all points of the domain, not the mean one",
        False,
    ),
    "singling-out": _Word(
        "single out a record by a description",
        "singles it out",
        "what it may be",
        "the weight of the description for a record, given all other records and public knowledge",
        False,
    ),
}
"""The kinds of attack on the value of a record (convention: Kulynych et al. 2025)."""

KINDS = tuple(WORDS)
"""The names of these kinds."""


@dataclass(frozen=True, slots=True)
class Risk:
    """The largest success of an attack on one record, on average over what the record may be.

    `prior` is the success without the release, `gain` what the release adds at most. Nothing is said about one fixed
    value, about several records at once, or about facts that hold without the record.

    >>> import cumulant as cm
    >>> found = cm.Gaussian(sigma=1, relation="replace-one").attribute(prior="0.01")
    >>> found.success, found.kind, str(found.relation)
    (0.08743, 'attribute', 'replace-one')
    """

    success: float
    prior: float
    gain: float
    kind: str
    relation: str
    rigour: str

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as JSON values."""
        return {each.name: plain(getattr(self, each.name)) for each in fields(self)}

    def to_json(self) -> str:
        """Return the fields as one JSON object."""
        return json.dumps(self.to_dict())

    def __str__(self) -> str:
        word = WORDS[self.kind]
        return (
            f"Without the release, an attacker who knows everything else would {word.without} with probability "
            f"{share_text(self.prior)}. With it, the attacker {word.with_it} with at most {percent(self.success)}, on "
            f"average over {word.over}."
        )

    @property
    def caveat(self) -> str:
        """The sentence about the prior, without which the number is wrong."""
        return f"The {share_text(self.prior)} must include all side knowledge: {WORDS[self.kind].side_knowledge}."


def risk(run: RunRecord, kind: str, prior: Number, method: Method = DEFAULT_METHOD) -> Risk:
    """Bound the success of an attack of this kind from above.

    A named value under replace-one neighbours: success p has p <= R(prior (1 - p) / (1 - prior)). Else success is at most
    R(prior).

    >>> import cumulant as cm
    >>> risk(cm.Gaussian(sigma=1).record(), "reconstruction", "0.01").success  # Phi(Phi^-1(0.01) + 1)
    0.09236
    """
    share, which = PRIOR.check("prior", prior), one_of("kind", kind, KINDS)
    success = _success(run, which, share, method)
    gain = rounded_up(max(Fraction(success) - share, Fraction(0)))
    rigour = "estimated" if run.estimated else "bounded"
    return Risk(success, stated(share), gain, which, run.relation, rigour)


def reidentification(run: RunRecord, prior: Number | None, candidates: int | None) -> Risk:
    """Bound the success of re-identification among so many candidates, or with this prior; exactly one is given."""
    if (prior is None) == (candidates is None):
        raise InputError(
            "give candidates=100 if all are equally likely, or prior= with the largest probability of one of them"
        )
    if prior is None:
        prior = Exact(Fraction(1, int(CANDIDATES.check("candidates", candidates))))
    return risk(run, "reidentification", prior)


def singling_out(run: RunRecord, weight: Number, records: int = 1) -> Risk:
    """Bound the success of singling out one of so many records by a description of this weight.

    Success for one record is at most R(weight), and for one of n records at most n times that.
    """
    count = int(COUNT.check("records", records))
    one = risk(run, "singling-out", PRIOR.check("weight", weight))
    if count == 1:
        return one
    share = min(count * Fraction(Exact(weight)), Fraction(1))
    success = min(rounded_up(count * Fraction(one.success)), 1.0)
    return replace(
        one,
        success=success,
        prior=stated(Exact(share)),
        gain=rounded_up(max(Fraction(success) - share, Fraction(0))),
    )


def _success(run: RunRecord, kind: str, prior: Exact, method: Method) -> float:
    if WORDS[kind].named and run.relation is Relation.REPLACE_ONE:
        found = attacks.named_success(run, prior, method)
    else:
        found = float(attacks.true_positive_rate(run, prior, method))
    return max(min(found, 1.0), rounded_up(prior))


def share_text(share: float) -> str:
    """Return a probability in per cent, the decimal it prints as rounded up to three digits.

    >>> share_text(0.01), share_text(1 / 3)
    ('1 %', '33.4 %')
    """
    return f"{numbers.rounded_up(float(100 * as_printed(share)), 3)} %"
