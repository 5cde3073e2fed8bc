"""The sums of an account and how each kind of entry moves them.

This is the one place where amounts are added.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from types import MappingProxyType
from typing import Any

from cumulant.domains import Domain
from cumulant.errors import BudgetRefused, InputError, LedgerBroken, shown
from cumulant.filters.amounts import Amounts
from cumulant.filters.filter import UNIT, Filter

OPEN = "open"
"""Status of an account that may spend; stored."""

FROZEN = "frozen"
"""Status of an account that may not spend until it is thawed; stored."""

CLOSED = "closed"
"""Status of an account that never spends again; stored."""

_WHOLE = frozenset([int])
SHARE = Domain(Fraction(0), Fraction(1), high_closed=True)
"""The part of a budget that a team may have."""
Certificates = dict[str, list[int]]


def read_share(text: Any) -> Fraction:
    """Return the share that a writer spelled as a fraction; InputError for any other text.

    >>> read_share("1/2")
    Fraction(1, 2)
    """
    share = Fraction(SHARE.check("share", text))
    if text != str(share):
        raise InputError(f"share={shown(text)} is not spelled as a fraction in lowest terms")
    return share


@dataclass(frozen=True, slots=True)
class Team:
    """An allowance: a part of the budget that a team's own sums must fit into as well.

    It is a limit, not a promise.
    """

    share: Fraction
    spent: Amounts
    held: Amounts


@dataclass(frozen=True, slots=True)
class State:
    """The spent and held amounts after an entry, and the account's status.

    Amounts are kept for all and for each team.
    """

    spent: Amounts
    held: Amounts
    status: str = OPEN
    teams: Mapping[str, Team] = field(default_factory=lambda: MappingProxyType({}))

    @classmethod
    def empty(cls, rule: Filter) -> State:
        """Return the state of an account that has just been opened."""
        return cls(rule.zero(), rule.zero())

    @property
    def total(self) -> Amounts:
        """Return the spent and held amounts that the rule checks.

        What is on hold may have been seen.
        """
        return self.spent + self.held

    def with_amounts(self, spent: Amounts, held: Amounts, team: str | None) -> State:
        """Return the state with these amounts added to what is spent and held.

        They are added for all and for the team; what is taken back is negative.
        """
        teams = dict(self.teams)
        if team is not None:
            mine = self.team(team)
            teams[team] = replace(mine, spent=mine.spent + spent, held=mine.held + held)
        return replace(self, spent=self.spent + spent, held=self.held + held, teams=MappingProxyType(teams))

    def round_sums(self) -> State:
        """Round every sum up to the unit, as entries of format 2 do.

        Sums of exact quotients would grow for ever.
        """
        spent, held = self.spent.rounded_up(UNIT), self.held.rounded_up(UNIT)
        if not self.teams:
            return self if spent is self.spent and held is self.held else replace(self, spent=spent, held=held)
        teams = {
            name: replace(team, spent=team.spent.rounded_up(UNIT), held=team.held.rounded_up(UNIT))
            for name, team in self.teams.items()
        }
        return replace(self, spent=spent, held=held, teams=MappingProxyType(teams))

    def team(self, name: str) -> Team:
        """Return the allowance of a team; InputError if none was granted."""
        if name not in self.teams:
            raise InputError(f"team={shown(name)} has no allowance in this account; its owner grants one")
        return self.teams[name]

    def with_allowance(self, name: str, share: Fraction, rule: Filter) -> State:
        """Return the state with a new or changed allowance for a team."""
        known = self.teams.get(name)
        mine = Team(share, rule.zero(), rule.zero()) if known is None else replace(known, share=share)
        return replace(self, teams=MappingProxyType({**self.teams, name: mine}))

    def certificates(self, rule: Filter, team: str | None) -> Certificates | None:
        """Return proofs that these sums are allowed, for all and for the team; None if not."""
        whole = rule.certificate(self.total)
        if whole is None:
            return None
        if team is None:
            return {"all": list(whole)}
        part = rule.certificate(self._part(team))
        return None if part is None else {"all": list(whole), "team": list(part)}

    def check_certificates(self, rule: Filter, team: str | None, certificates: Any) -> bool:
        """Check that these certificates prove the sums."""
        found = certificates if isinstance(certificates, dict) else {}
        sums = [("all", self.total)] if team is None else [("all", self.total), ("team", self._part(team))]
        return all(_are_whole(found.get(name)) and rule.proves(total, found[name]) for name, total in sums)

    def _part(self, team: str) -> Amounts:
        mine = self.team(team)
        return (mine.spent + mine.held).scaled(1 / mine.share)

    def to_dict(self) -> dict[str, Any]:
        """Return the state as JSON, with amounts as texts."""
        teams = {
            name: {"share": str(team.share), "spent": team.spent.texts(), "held": team.held.texts()}
            for name, team in self.teams.items()
        }
        return {"spent": self.spent.texts(), "held": self.held.texts(), "status": self.status, "teams": teams}

    @classmethod
    def from_dict(cls, fields: Mapping[str, Any]) -> State:
        """Read a state that `to_dict` wrote; LedgerBroken if it is not a state."""
        try:
            teams = {
                name: Team(read_share(team["share"]), Amounts.read(team["spent"]), Amounts.read(team["held"]))
                for name, team in fields["teams"].items()
            }
            status = fields["status"]
            if status not in (OPEN, FROZEN, CLOSED):
                raise ValueError(status)
            return cls(Amounts.read(fields["spent"]), Amounts.read(fields["held"]), status, MappingProxyType(teams))
        except (KeyError, TypeError, ValueError, AttributeError, ZeroDivisionError) as error:
            raise LedgerBroken(
                f"the sums of the account cannot be read ({error}); run cumulant ledger verify"
            ) from error


def _are_whole(numbers: Any) -> bool:
    return isinstance(numbers, list) and _WHOLE.issuperset(map(type, numbers))


def check_status(state: State, kind: str, account: str) -> None:
    """Raise BudgetRefused if a frozen or closed account does not take this kind of entry.

    What is on hold can still be settled or released: that frees or moves budget and takes none.
    """
    if kind in ("settle", "release") or (state.status == FROZEN and kind in ("thaw", "freeze", "close")):
        return
    if state.status == CLOSED:
        raise BudgetRefused(f"account {account!r} is closed; open a new one for new data")
    if state.status == FROZEN:
        raise BudgetRefused(f"account {account!r} is frozen; its owner thaws it by: cumulant ledger thaw")
