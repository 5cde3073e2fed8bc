"""What is fixed when an account opens, and can never be changed: budget, rule, relation, unit, owner, expiry."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, time
from fractions import Fraction
from typing import Any

from cumulant import domains
from cumulant.accounting.filter import Filter, GaussianSum, Plan
from cumulant.accounting.mixture import Mixture
from cumulant.accounting.printed import rounded_up
from cumulant.domains import Exact, Number, spelling
from cumulant.errors import BudgetRefused, InputError, LedgerBroken, RelationError, shown
from cumulant.ledger.entry import name_of
from cumulant.mechanisms.mechanism import Expression
from cumulant.notation import parse
from cumulant.relation import Relation

MODES = ("adaptive", "gaussian", "planned")
UNITS = ("record", "person-day", "person")


@dataclass(frozen=True, slots=True)
class Policy:
    """The policy of one account, as its first entry holds it; numbers are exact decimals or quotients."""

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
    def opened(
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
        """A policy with everything that its rule needs; InputError where it could never allow anything."""
        loss, failure = domains.EPSILON.check("epsilon", epsilon), domains.DELTA.check("delta", delta)
        share = domains.SLACK.check("slack", slack)
        if failure >= 1:
            raise InputError(f"delta={failure} holds for everything and protects nobody; give a delta below 1")
        if share > failure:
            raise InputError(f"slack={share} is a part of delta={failure}, so it cannot exceed it")
        between = Relation.read(relation)
        if between is Relation.ANY:
            raise InputError("relation='any' says nothing about people; choose 'replace-one' or 'add-remove'")
        choices: tuple[tuple[str, Any, tuple[str, ...]], ...] = (("mode", mode, MODES), ("unit", unit, UNITS))
        for name, value, known in choices:
            if not isinstance(value, str) or value not in known:
                raise InputError(f"{name}={shown(value)} is unknown; choose one of {', '.join(known)}")
        wanted, planned = _run("like", like, between), _run("plan", plan, between)
        if (mode == "planned") != (planned is not None):
            raise InputError("a planned account needs plan=…, what may run at most, and no other account takes one")
        orders: tuple[Exact, ...] = ()
        weights: tuple[Exact, ...] = ()
        mu = None
        if mode == "adaptive":
            rule = Mixture.opened(loss, failure, share, None if wanted is None else wanted.curve())
            orders, weights = tuple(map(Exact, rule.orders)), tuple(map(Exact, rule.weights))
        elif mode == "gaussian":
            mu = Exact(GaussianSum.opened(loss, failure, share).mu)
        elif planned is not None:
            if share:
                raise InputError("a planned account takes no slack: its epsilon is that of the plan at all of delta")
            reached = planned.epsilon(delta=failure)
            if planned.estimated or Fraction(reached if reached < float("inf") else 10**400) > loss:
                raise BudgetRefused(
                    f"the plan is proved to have epsilon {rounded_up(reached)} at delta {failure}, above {loss}"
                )
        texts = {
            name: None if value is None else name_of(name, value) for name, value in (("owner", owner), ("data", data))
        }
        return cls(
            loss,
            failure,
            share,
            between,
            unit,
            mode,
            orders,
            weights,
            mu,
            None if planned is None else planned.notation(),
            None if wanted is None else wanted.notation(),
            texts["owner"],
            None if expires is None else moment(expires),
            texts["data"],
            signed,
        )

    def rule(self) -> Filter:
        """The filter that decides."""
        if self.mode == "gaussian" and self.mu is not None:
            return GaussianSum(self.epsilon, self.delta - self.slack, self.slack, self.mu)
        if self.plan is not None:
            return Plan(self.epsilon, tuple(parse(self.plan).terms.items()))
        return Mixture(self.epsilon, self.delta - self.slack, self.slack, self.orders, self.weights)

    def accepts(self, run: Expression) -> None:
        """RelationError where the run makes statements about other neighbours."""
        if run.relation not in (Relation.ANY, self.relation):
            raise RelationError(
                f"{run} is stated for {run.relation} neighbours and the account for {self.relation}; "
                "restate the run, or use an account of its relation"
            )

    def expired(self, now: datetime) -> bool:
        """Whether this moment is past the expiry."""
        return self.expires is not None and now > datetime.fromisoformat(self.expires)

    def to_dict(self) -> dict[str, Any]:
        """As JSON; numbers as texts."""
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
        """What `to_dict` wrote; LedgerBroken where it is not a policy."""
        try:
            found = dict(fields)
            found["relation"] = Relation.read(found["relation"])
            for name in ("epsilon", "delta", "slack"):
                found[name] = Exact(found[name])
            for name in ("orders", "weights"):
                found[name] = tuple(Exact(number) for number in found[name])
            found["mu"] = None if found["mu"] is None else Exact(found["mu"])
            policy = cls(**found)
        except (KeyError, TypeError, ValueError) as error:
            raise LedgerBroken(
                f"the policy of the account cannot be read ({error}); run cumulant ledger verify"
            ) from error
        if sum(policy.weights) > 1 or len(policy.orders) != len(policy.weights) or min(policy.orders, default=1) <= 0:
            raise LedgerBroken("the weights of the account's orders exceed 1, so its rule proves nothing")
        return policy


_THEOREMS = {
    "adaptive": "a mixture over orders, fixed when it was opened (Theorem 1), for any mechanisms chosen from earlier answers",
    "gaussian": "the sum of squared shifts (Theorem 2), for Gaussian and pure mechanisms chosen from earlier answers",
    "planned": "the plan, fixed when it was opened (Theorem 3), for any order and any stopping",
}


def explained(name: str, policy: Policy) -> str:
    """What an account guarantees and what that rests on, a sentence on each line."""
    return "\n".join(
        [
            f"Everything that is charged to {name!r} is together ({policy.epsilon}, {policy.delta})-differentially private for "
            f"{policy.relation.meaning}; the unit of protection is a {policy.unit}.",
            f"It is proved by {_THEOREMS[policy.mode]}; see docs/ledger-proofs.md.",
            "It holds if every run is charged before it touches the data, if what was charged is what ran, and if no parameter "
            "was computed from the data without noise.",
            "It holds for this account: other accounts on the same data, and people with records in several accounts, add up.",
            "A disk that does not sync, a backup that was restored in silence and an owner who rewrites the database are found "
            "by receipts and signatures only.",
        ]
    )


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


def moment(text: str) -> str:
    """A date, which means its end, or a time, which means UTC if it names no zone, as the text that is stored.

    >>> moment("2027-12-31"), moment("2027-12-31T12:00+02:00")
    ('2027-12-31T23:59:59+00:00', '2027-12-31T10:00:00+00:00')
    """
    try:
        found = datetime.fromisoformat(text)
        if len(text) <= 10:
            found = datetime.combine(found.date(), time(23, 59, 59))
        return (found if found.tzinfo else found.replace(tzinfo=UTC)).astimezone(UTC).isoformat(timespec="seconds")
    except (TypeError, ValueError, OverflowError):
        raise InputError(f"expires={shown(text)} must be a date or a time, such as 2027-12-31") from None
