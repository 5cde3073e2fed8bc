"""Several unknowns and how a budget is split over them: `?a` and `?b` in an expression, with a share of each.

A share is one of K, the cumulant generating function of the privacy loss, at one order lam: K adds, so that shares of it
are shares of epsilon in Rényi accounting, whatever the mechanisms are. For theta > 0 each unknown x solves K(lam; x) =
share theta.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction

from cumulant.domains import Domain, Exact, Number
from cumulant.errors import InputError, shown
from cumulant.mechanisms.mechanism import Expression
from cumulant.notation import parse
from cumulant.numerics.ranks import Ranks

NAMED = re.compile(r"\?([A-Za-z_]\w*)")


def names_in(text: str) -> list[str]:
    """Return the names of the unknowns of an expression, in their order.

    >>> names_in("Gaussian(sigma=?a) * 100 + Laplace(scale=?b)"), names_in("Laplace(scale=?)")
    (['a', 'b'], [])
    """
    return list(dict.fromkeys(NAMED.findall(text)))


@dataclass(slots=True)
class Shares:
    """Unknowns with their terms, domains and shares; `solve` finds all of them for one theta."""

    text: str
    lam: Fraction
    shares: Mapping[str, Fraction]
    grids: Mapping[str, Ranks]
    terms: Mapping[str, str]
    _known: dict[tuple[str, int], float] = field(default_factory=dict)

    @classmethod
    def read(
        cls,
        text: str,
        shares: Mapping[str, Number] | None,
        lam: Fraction,
        digits: int,
        domain_of: Callable[[str], Domain],
    ) -> Shares:
        """Check names and shares; InputError says which is missing or too much."""
        names = names_in(text)
        if "?" in NAMED.sub("", text):
            raise InputError("name every unknown, such as ?a and ?b, or leave one '?' alone")
        if not isinstance(shares, Mapping) or not shares:
            said = ", ".join(f"'{name}': 1" for name in names)
            raise InputError(f"the unknowns {', '.join(names)} need shares of the budget, such as shares={{{said}}}")
        for name in names:
            if name not in shares:
                raise InputError(f"the unknown ?{name} has no share; add one, such as {name}=1")
        parts: dict[str, Fraction] = {}
        for name, share in shares.items():
            if name not in names:
                raise InputError(f"the share {shown(name)} is for no unknown; there are {', '.join(names)}")
            try:
                parts[name] = Fraction(Exact(share))
            except InputError as error:
                raise InputError(f"the share of {name} must be a number above 0: {error}") from None
            if parts[name] <= 0:
                raise InputError(f"the share of {name} must be a number above 0, not {shown(share)}")
        terms: dict[str, list[str]] = {name: [] for name in names}
        for term in _terms(text):
            inside = names_in(term)
            if len(inside) > 1:
                raise InputError(
                    f"{' and '.join('?' + name for name in inside)} stand in one term; give each a term of its own"
                )
            for name in inside:
                terms[name].append(term)
        sums = {name: " + ".join(each) for name, each in terms.items()}
        grids = {name: Ranks.over(_domain(each, domain_of), None, digits) for name, each in terms.items()}
        return cls(text, lam, parts, grids, sums)

    def solve(self, theta: Fraction) -> dict[str, Exact]:
        """Return for every unknown the value next to K(lam; x) = share theta at which K is not larger."""
        return {
            name: self.grids[name].value(self._rank(name, float(share * theta))) for name, share in self.shares.items()
        }

    def build(self, values: Mapping[str, Exact]) -> Expression:
        """Return the expression with these values."""
        return parse(NAMED.sub(lambda found: _written(values[found[1]]), self.text))

    def realised(self, values: Mapping[str, Exact]) -> dict[str, float]:
        """Return the part of K(lam) of each unknown that these values have."""
        known = {name: self._cgf(name, values[name]) for name in self.shares}
        total = math.fsum(known.values())
        return {name: each / total if total else math.nan for name, each in known.items()}

    def _cgf(self, name: str, value: Exact) -> float:
        run = parse(NAMED.sub(lambda _: _written(value), self.terms[name]))
        return float(run.cgf(self.lam))

    def _at(self, name: str, rank: int) -> float:
        if (name, rank) not in self._known:
            self._known[name, rank] = self._cgf(name, self.grids[name].value(rank))
        return self._known[name, rank]

    def _rank(self, name: str, most: float) -> int:
        """Bisect for the last rank whose K is at most this, seen from the private end."""
        grid = self.grids[name]
        ends = self._at(name, grid.first), self._at(name, grid.last)
        if min(ends) == math.inf:
            raise InputError(
                f"the curve is infinite at order {float(self.lam) + 1:g} for every value of ?{name}; it can have no share"
            )
        private, weak = (grid.first, grid.last) if ends[0] <= ends[1] else (grid.last, grid.first)
        if self._at(name, private) > most:
            raise InputError(f"no value of ?{name} has a share this small; give it a larger share, or a larger target")
        if self._at(name, weak) <= most:
            return weak
        while abs(weak - private) > 1:
            middle = (private + weak) // 2
            private, weak = (middle, weak) if self._at(name, middle) <= most else (private, middle)
        return private


def _terms(text: str) -> list[str]:
    """Split an expression at every + that stands in no parentheses, brackets or quotes."""
    found, depth, quote, start = [], 0, "", 0
    for place, letter in enumerate(text):
        if quote:
            quote = "" if letter == quote else quote
        elif letter in "\"'":
            quote = letter
        elif letter in "([":
            depth += 1
        elif letter in ")]":
            depth -= 1
        elif letter == "+" and depth == 0:
            found.append(text[start:place])
            start = place + 1
    return [each.strip() for each in (*found, text[start:]) if each.strip()]


def _domain(terms: list[str], domain_of: Callable[[str], Domain]) -> Domain:
    """Return the domain of an unknown; where its name stands in several terms they must agree."""
    domains = [domain_of(NAMED.sub("?", term)) for term in terms]
    if any(each != domains[0] for each in domains):
        raise InputError("one name stands for parameters of different domains; give them different names")
    return domains[0]


def _written(value: Exact) -> str:
    """Return a value as the notation writes it: a quotient is quoted."""
    return value.notation
