"""The policy of an account, fixed at its start: budget, rule, relation, unit, owner, expiry."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from dataclasses import fields as dataclass_fields
from datetime import UTC, date, datetime, time
from fractions import Fraction
from functools import lru_cache
from typing import Any

from cumulant import domains
from cumulant.accounting.numbers import rounded_up
from cumulant.domains import Domain, Exact, Number, spelling
from cumulant.errors import BudgetRefused, CumulantError, InputError, LedgerBroken, RelationError, shown
from cumulant.filters.filter import MOST_EPSILON, Filter, GaussianSum, Plan
from cumulant.filters.mixture import Mixture
from cumulant.ledger.entry import name_of
from cumulant.mechanisms.mechanism import Expression
from cumulant.notation import parse
from cumulant.relation import Relation

MODES = ("adaptive", "gaussian", "planned")
_ORDER = domains.POSITIVE
_WEIGHT = Domain(Fraction(0), Fraction(1), high_closed=True)
_MOST_ORDERS = 1000
"""Convention: an account is opened with 13 orders; more than this only cost time."""
_LONGEST_ORDERS = 10_000
"""Characters of all orders, or of all weights. Convention: accounts are opened with 220; 10**6 keep a reader busy for 9 s."""
_LARGEST_MU = 10**4
"""The end of the search in `GaussianSum.for_budget`."""


@dataclass(frozen=True, slots=True)
class Policy:
    """The policy of one account, as its first entry holds it.

    Numbers are exact decimals or quotients.
    """

    epsilon: Exact
    delta: Exact
    slack: Exact
    relation: Relation
    unit: str
    mode: str
    orders: tuple[Exact, ...] = ()
    weights: tuple[Exact, ...] = ()
    mu: Exact | None = None
    plan: str | None = None
    like: str | None = None
    owner: str | None = None
    expires: str | None = None
    data: str | None = None
    signed: bool = False

    @classmethod
    def create(
        cls,
        epsilon: Number,
        delta: Number,
        relation: Relation | str,
        unit: str,
        mode: str,
        slack: Number,
        like: Expression | str | None,
        plan: Expression | str | None,
        owner: str | None,
        expires: str | None,
        data: str | None,
        signed: bool,
    ) -> Policy:
        """Create a policy with everything that its rule needs.

        InputError where it could never allow anything.
        """
        between = Relation.read(relation)
        stated = cls(
            domains.EPSILON.check("epsilon", epsilon),
            domains.DELTA.check("delta", delta),
            domains.SLACK.check("slack", slack),
            between,
            unit,
            mode,
            owner=owner,
            expires=None if expires is None else moment(expires),
            data=data,
            signed=signed,
        )
        stated._check_statement()
        wanted, planned = _run("like", like, between), _run("plan", plan, between)
        policy = replace(
            stated,
            plan=None if planned is None else planned.notation(),
            like=None if wanted is None else wanted.notation(),
        )
        policy._check_plan()
        if mode == "adaptive":
            curve = None if wanted is None else wanted.curve()
            rule = Mixture.for_budget(policy.epsilon, policy.delta, policy.slack, curve)
            policy = replace(policy, orders=tuple(map(Exact, rule.orders)), weights=tuple(map(Exact, rule.weights)))
        elif mode == "gaussian":
            policy = replace(policy, mu=Exact(GaussianSum.for_budget(policy.epsilon, policy.delta, policy.slack).mu))
        policy.check()
        policy.prove()
        return policy

    # ---- the checks of whoever opens an account are those of whoever reads one

    def check(self) -> None:
        """Raise InputError where no account can be opened with this policy.

        Also where it promises more than is proved.
        """
        self._check_statement()
        for name, text in (("like", self.like), ("plan", self.plan)):
            _run(name, text, self.relation)
        self._check_plan()
        self._check_orders()
        if (self.mode == "gaussian") != (self.mu is not None):
            raise InputError("a Gaussian account has a mu, and no other account has one")
        if self.mu is not None:
            if not 0 < self.mu <= _LARGEST_MU:
                raise InputError(f"mu={self.mu} must be a number above 0 and at most {_LARGEST_MU}")
            if not GaussianSum(self.epsilon, self.delta - self.slack, self.slack, self.mu).holds():
                raise InputError(f"mu={self.mu} is not proved to have delta {self.delta} at epsilon {self.epsilon}")

    def prove(self) -> None:
        """Raise BudgetRefused unless the plan is proved to fit into the budget.

        This may take seconds.

        Mu is proved by `check` already: one formula in balls.
        """
        if self.plan is None:
            return
        reached = _plan_epsilon(self.plan, self.delta)
        if Fraction(reached if reached < math.inf else 10**400) > self.epsilon:
            raise BudgetRefused(
                f"the plan is proved to have epsilon {rounded_up(reached)} at delta {self.delta}, above {self.epsilon}; plan "
                "fewer runs, or more noise"
            )

    def _check_statement(self) -> None:
        for name, domain in (("epsilon", domains.EPSILON), ("delta", domains.DELTA), ("slack", domains.SLACK)):
            domain.check(name, getattr(self, name))
        if self.delta >= 1:
            raise InputError(f"delta={self.delta} holds for everything and protects nobody; give a delta below 1")
        if self.slack > self.delta:
            raise InputError(f"slack={self.slack} is a part of delta={self.delta}, so it cannot exceed it")
        if self.relation is Relation.ANY:
            raise InputError(f"relation='any' says nothing about people; choose {Relation.choices()}")
        mode: Any = self.mode
        if not isinstance(mode, str) or mode not in MODES:
            raise InputError(f"mode={shown(mode)} is unknown; choose one of {', '.join(MODES)}")
        domains.plain_words("unit", name_of("unit", self.unit))
        for name, value in (("owner", self.owner), ("data", self.data)):
            if value is not None:
                name_of(name, value)
        if self.expires is not None and moment(self.expires) != self.expires:
            raise InputError(f"expires={shown(self.expires)} must be a time in UTC, such as 2027-12-31T23:59:59+00:00")
        if not isinstance(self.signed, bool):
            raise InputError(f"signed={shown(self.signed)} must be true or false")

    def _check_plan(self) -> None:
        if (self.mode == "planned") != (self.plan is not None):
            raise InputError("a planned account needs plan=…, what may run at most, and no other account takes one")
        if self.plan is not None and self.slack:
            raise InputError("a planned account takes no slack: its epsilon is that of the plan at all of delta")

    def _check_orders(self) -> None:
        some = self.mode == "adaptive" and self.delta > self.slack
        if len(self.orders) != len(self.weights) or bool(self.orders) != some or len(self.orders) > _MOST_ORDERS:
            raise InputError(
                "an adaptive account with a delta has as many weights as orders, and no other account has any"
            )
        if self.mode == "adaptive" and self.epsilon > MOST_EPSILON:
            raise InputError(f"epsilon={self.epsilon} protects nobody; give at most 1e6")
        for name, domain, values in (("orders", _ORDER, self.orders), ("weights", _WEIGHT, self.weights)):
            for value in values:
                domain.check(name, value)
        if sum(self.weights) > 1:
            raise InputError("the weights of the account's orders exceed 1, so its rule proves nothing")

    def rule(self) -> Filter:
        """Return the filter that decides."""
        if self.mode == "gaussian" and self.mu is not None:
            return GaussianSum(self.epsilon, self.delta - self.slack, self.slack, self.mu)
        if self.plan is not None:
            return Plan(self.epsilon, tuple(parse(self.plan).terms.items()))
        return Mixture(self.epsilon, self.delta - self.slack, self.slack, self.orders, self.weights)

    def accepts(self, run: Expression) -> None:
        """Raise RelationError if the run makes statements about other neighbours."""
        if run.relation not in (Relation.ANY, self.relation):
            raise RelationError(
                f"{run} is stated for {run.relation} neighbours and the account for {self.relation}; "
                "restate the run, or use an account of its relation"
            )

    def expired(self, now: datetime) -> bool:
        """Return True if this moment is past the expiry."""
        return self.expires is not None and now > datetime.fromisoformat(self.expires)

    def to_dict(self) -> dict[str, Any]:
        """Return the policy as JSON, with numbers as texts."""
        return {
            "epsilon": str(self.epsilon),
            "delta": str(self.delta),
            "slack": str(self.slack),
            "relation": str(self.relation),
            "unit": self.unit,
            "mode": self.mode,
            "orders": [spelling(order) for order in self.orders],
            "weights": [spelling(weight) for weight in self.weights],
            "mu": None if self.mu is None else spelling(self.mu),
            "plan": self.plan,
            "like": self.like,
            "owner": self.owner,
            "expires": self.expires,
            "data": self.data,
            "signed": self.signed,
        }

    @classmethod
    def from_dict(cls, fields: Mapping[str, Any]) -> Policy:
        """Read what `to_dict` wrote; LedgerBroken where no account can be opened with it."""
        try:
            if set(fields) != {field.name for field in dataclass_fields(cls)}:
                raise InputError("it has other fields than a policy")
            found = dict(fields)
            found["relation"] = Relation.read(_text(found["relation"]))
            for name in ("epsilon", "delta", "slack"):
                found[name] = Exact(_text(found[name]))
            for name in ("orders", "weights"):
                if not isinstance(found[name], list):
                    raise InputError(f"{name}={shown(found[name])} must be a list")
                if sum(map(len, found[name])) > _LONGEST_ORDERS:
                    raise InputError(f"the {name} of an account have at most {_LONGEST_ORDERS} characters")
                found[name] = tuple(Exact(_text(number)) for number in found[name])
            found["mu"] = None if found["mu"] is None else Exact(_text(found["mu"]))
            for name in ("plan", "like"):
                found[name] = None if found[name] is None else _text(found[name])
            policy = cls(**found)
            policy.check()
        except (KeyError, TypeError, ValueError, RecursionError, CumulantError) as error:
            raise LedgerBroken(
                f"the policy of the account is not one that can be opened: {error}; run cumulant ledger verify"
            ) from error
        return policy


_THEOREMS = {
    "adaptive": "a mixture over orders, fixed when it was opened (Theorem 1), for any mechanisms chosen from earlier answers",
    "gaussian": "the sum of squared shifts (Theorem 2), for Gaussian and pure mechanisms chosen from earlier answers",
    "planned": "the plan, fixed when it was opened (Theorem 3), for any order and any stopping",
}


def explain_policy(name: str, policy: Policy) -> str:
    """Explain what an account guarantees and what that rests on, a sentence on each line."""
    return "\n".join(
        [
            f"Everything that is charged to {name!r} is together ({policy.epsilon}, {policy.delta})-differentially private for "
            f"{policy.relation.meaning}; the unit of protection is one {policy.unit}.",
            f"It is proved by {_THEOREMS[policy.mode]}; see docs/ledger-proofs.md.",
            "It holds if every run is charged before it touches the data, if what was charged is what ran, and if no parameter "
            "was computed from the data without noise.",
            "It holds for this account: other accounts on the same data, and people with records in several accounts, add up.",
            "A disk that does not sync, a backup that was restored unnoticed and an owner who rewrites the database are found "
            "by receipts and signatures only.",
        ]
    )


@lru_cache(maxsize=64)
def _plan_epsilon(plan: str, delta: Exact) -> float:
    """Return the epsilon that is proved for a plan at delta.

    Returns infinity for a plan that rests on a function that is only sampled.
    """
    run = parse(plan)
    return math.inf if run.estimated else run.epsilon(delta=delta)


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise InputError(f"{shown(value)} must be a text")
    return value


def _run(name: str, value: Expression | str | None, between: Relation) -> Expression | None:
    if value is None:
        return None
    run = parse(value) if isinstance(value, str) else value
    if not isinstance(run, Expression):
        raise InputError(f"{name}={shown(value)} is not a mechanism, a run or a text that describes one")
    run.notation()
    if run.relation not in (Relation.ANY, between):
        raise RelationError(f"{name}={run} is stated for {run.relation} neighbours and the account for {between}")
    return run


def _is_date(text: str) -> bool:
    """Return True for a date without a time."""
    try:
        date.fromisoformat(text)
    except ValueError:
        return False
    return True


def moment(text: str, what: str = "expires", at_its_end: bool = True) -> str:
    """Return a date or time as the text that is stored.

    A date means its end or its beginning; a time is in UTC if it names no zone.

    >>> moment("2027-12-31"), moment("2027-12-31T12:00+02:00")
    ('2027-12-31T23:59:59+00:00', '2027-12-31T10:00:00+00:00')
    """
    try:
        found = datetime.fromisoformat(text)
        if _is_date(text):
            found = datetime.combine(found.date(), time(23, 59, 59) if at_its_end else time())
        return (found if found.tzinfo else found.replace(tzinfo=UTC)).astimezone(UTC).isoformat(timespec="seconds")
    except (TypeError, ValueError, OverflowError):
        raise InputError(f"{what}={shown(text)} must be a date or a time, such as 2027-12-31") from None
