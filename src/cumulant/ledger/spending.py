"""The jobs that take budget and give it back: spend, hold, settle, release, reprice."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from cumulant.accounting.numbers import percent_used, rounded_up
from cumulant.errors import BudgetRefused, InputError, LedgerBroken, LedgerError
from cumulant.filters.amounts import Amounts
from cumulant.filters.filter import Filter, Plan
from cumulant.ledger.charge import Quote, expression, settle_hold, would_fit
from cumulant.ledger.entry import Entry, Receipt, number_of
from cumulant.ledger.state import State
from cumulant.ledger.writing import Change, Job, Position, Writer
from cumulant.mechanisms.mechanism import Expression

MORE_NOISE = (
    "An adaptive account needs more noise than calibrate says, because queries may depend on answers. "
    "Accounts of mode gaussian or planned take calibrated noise. "
    "To try a run without a charge: cumulant ledger status LEDGER NAME RUN"
)
"""Why calibrated noise is refused by an adaptive account, and what to do."""

UNSEEN = (
    "no output of any step, nor whether or how it failed, was seen by a person or used by a program, and the decision to "
    "release depends on none"
)
"""The fact that must be true of a released hold: to hold, run, look, release and try again would cost a multiple of delta."""


class _BudgetFull(Exception):
    """Raised when the budget does not allow a job.

    The message is worked out when the lock is free again.
    """

    def __init__(self, account: str, position: Position, quoted: Quote, team: str | None) -> None:
        super().__init__()
        self.account, self.position, self.quoted, self.team = account, position, quoted, team


def take_budget(
    writer: Writer, kind: str, runs: Sequence[tuple[str, str, Expression]], team: str | None, note: str | None
) -> list[Receipt]:
    """Spend or hold runs, all or none; return their receipts in order.

    Each run is given by account, key and expression.
    """
    jobs = []
    names = sorted({account for account, _, _ in runs})
    together = names if len(names) > 1 else None
    for account, key, run in runs:
        quoted = writer.quote(account, run)
        asked = {"run": quoted.run, "team": team}
        jobs.append(Job(account, kind, key, asked, _take_change(account, kind, quoted, team, together), note))
        note = None  # it is kept once
    try:
        return writer.write(jobs)
    except _BudgetFull as full:
        raise _refusal(full) from None


def _take_change(account: str, kind: str, quoted: Quote, team: str | None, together: list[str] | None) -> Any:
    def change(position: Position) -> Change:
        rule, state, zero = position.tariff.rule, position.state, position.tariff.rule.zero()
        spends = kind == "spend"
        after = state.with_amounts(
            quoted.charge if spends else zero, zero if spends else quoted.charge, team
        ).round_sums()
        certificates = after.certificates(rule, team)
        if certificates is None:
            raise _BudgetFull(account, position, quoted, team)
        body: dict[str, Any] = {
            "run": quoted.run,
            "charge": quoted.charge.texts(),
            "certificates": certificates,
            "rigour": "proved",
        }
        if not spends:
            body["prices"] = quoted.prices()
        if team is not None:
            body["team"] = team
        if together is not None:
            body["accounts"] = together
        return Change(body, after)

    return change


def _refusal(full: _BudgetFull) -> BudgetRefused:
    """Return the refusal: the request, the spent and held budget, and what would fit."""
    rule, state = full.position.tariff.rule, full.position.state
    spent, held = rule.odometer(state.spent), rule.odometer(state.total)
    policy, charge = full.position.policy, full.quoted.charge
    fits, asked = would_fit(rule, state.total, full.quoted.terms)
    if isinstance(rule, Plan) and full.team is None:
        left = _left_of_plan(rule, state.total, charge)
        return BudgetRefused(
            f"{full.quoted.run} does not fit into the plan of account {full.account!r}: {left}. "
            "Nothing was charged. Run fewer, or open an adaptive account for the rest.",
            requested=full.quoted.run,
            spent=spent,
            held=held,
            would_fit=fits,
            asked=asked,
        )
    why, then = "does not fit", "Use more noise, or ask the owner"
    if full.team is not None and rule.certificate(state.total + charge) is not None:
        mine = state.team(full.team)
        fits, why = 0, f"is more than the allowance of {full.team!r}, {mine.share} of the budget,"
        then = "Use more noise, or ask the owner for a larger share"
    elif policy.mode == "adaptive" and all(charge.infinite[:-1]):
        why = "has an infinite charge at every order and can never fit"
    elif fits:
        then = f"{fits:,} of {asked:,} would fit: run fewer, use more noise, or ask the owner"
    owner = f", {policy.owner}" if policy.owner else ""
    calibrated = policy.mode == "adaptive" and not all(charge.infinite[:-1]) and full.team is None
    then = f"{then}{owner}." + (f" {MORE_NOISE}" if calibrated else "")
    spends = _spent_words(policy.mode, rule, state)
    return BudgetRefused(
        f"{full.quoted.run} {why} into account {full.account!r} of epsilon {policy.epsilon}, delta {policy.delta}: {spends}. "
        f"Nothing was charged. {then}",
        requested=full.quoted.run,
        spent=spent,
        held=held,
        would_fit=fits,
        asked=asked,
    )


def _spent_words(mode: str, rule: Filter, state: State) -> str:
    """Return what is spent and held.

    Only an adaptive account has an epsilon so far; the others say which part of the budget is used.
    """
    if mode == "adaptive":
        spent, together = rounded_up(rule.odometer(state.spent)), rounded_up(rule.odometer(state.total))
        return f"epsilon {spent} is spent" + ("" if together == spent else f", {together} with what is held")
    used = rule.used(state.total)
    held = used - rule.used(state.spent)
    return f"{percent_used(used)} of the budget is used" + (
        "" if held <= 0 else f", of which {percent_used(held)} is held"
    )


def _left_of_plan(rule: Plan, total: Amounts, charge: Amounts) -> str:
    """Return how many of each planned run are left, of those that are asked for too often."""
    planned = zip(rule.members, total.values, charge.values, strict=True)
    return "; ".join(
        f"{times - int(ran):,} of {times:,} planned {member} are left, {int(asked):,} asked for"
        for (member, times), ran, asked in planned
        if ran + asked > times
    )


# ---- the end of a hold


def end_hold(
    writer: Writer, kind: str, account: str, hold: int, key: str, run: Expression | str | None, fields: dict[str, Any]
) -> list[Receipt]:
    """Settle or release a hold, in every account that it is in."""
    entry = _find_hold(writer, account, hold)
    what = None if run is None else expression(run)
    jobs = []
    for name in entry.content().get("accounts", [account]):
        twin = entry if name == account else writer.store.by_key(name, entry.key)
        if twin is None:
            raise LedgerError(f"the hold is missing in {name!r}; run cumulant ledger verify")
        asked = {"hold": twin.seq, "run": None if what is None else what.notation()}
        jobs.append(Job(name, kind, key, asked, _end_change(writer, kind, twin, what, fields)))
    return writer.write(jobs)


def _find_hold(writer: Writer, account: str, hold: int) -> Entry:
    writer.policy(account)
    entry = writer.store.entry_at(account, number_of("hold", hold))
    if entry is None or entry.kind != "hold":
        raise InputError(f"entry {hold} of {account!r} is not a hold; see cumulant ledger status")
    return entry


def _end_change(writer: Writer, kind: str, entry: Entry, run: Expression | None, fields: dict[str, Any]) -> Any:
    def change(position: Position) -> Change:
        end = writer.store.end_of_hold(entry.account, entry.seq)
        if end is not None:
            raise InputError(
                f"hold {entry.seq} of {entry.account!r} was ended by entry {end.seq}, a {end.kind}; what ran under it must not "
                "be published unless that entry is its settlement"
            )
        lost = writer.store.end_in_rows(entry.account, entry.seq)
        if lost is not None:  # a damaged index would free what is held twice
            raise LedgerBroken(
                f"hold {entry.seq} of {entry.account!r} was ended by entry {lost.seq}, which an index of the database does not "
                "find; freeze the account and run cumulant ledger verify"
            )
        held, rule = entry.content(), position.tariff.rule
        body: dict[str, Any] = dict(fields)
        charge = rule.zero()
        if kind == "settle":
            text, charge = settle_hold(rule, held, run)
            body |= {"run": text, "charge": charge.texts()}
        for name in ("team", "accounts"):
            if name in held:
                body[name] = held[name]
        after = position.state.with_amounts(charge, rule.zero() - Amounts.read(held["charge"]), held.get("team"))
        return Change(body, after, entry.seq)

    return change


def lower_prices(writer: Writer, account: str, seqs: Sequence[int], key: str) -> list[Receipt]:
    """Enter the lower prices that this library proves today for what was spent.

    Prices that are not lower are left out.
    """
    rule = writer.policy(account)[1].rule
    current: dict[int, Amounts] = {}
    targets: dict[int, Entry] = {}
    seen = 0
    for entry in writer.store.scan(account):
        seen = entry.seq
        if entry.kind in ("spend", "settle"):
            targets[entry.seq], current[entry.seq] = entry, Amounts.read(entry.content()["charge"])
        elif entry.kind == "reprice":
            current[entry.content()["of"]] = Amounts.read(entry.content()["charge"])
    jobs = []
    for seq in seqs or sorted(targets):
        if seq not in targets:
            raise InputError(f"entry {seq} of {account!r} is not a spend or a settlement, so it has no price")
        new = rule.cheaper(current[seq], writer.quote(account, expression(str(targets[seq].run))).charge)
        if new != current[seq]:
            team = targets[seq].content().get("team")
            body = {"of": seq, "run": targets[seq].run, "old": current[seq].texts(), "charge": new.texts()}
            jobs.append(
                Job(account, "reprice", f"{key}/{seq}", {"of": seq}, _reprice_change(writer, account, body, team, seen))
            )
    return writer.write(jobs) if jobs else []


def _reprice_change(writer: Writer, account: str, body: dict[str, Any], team: str | None, seen: int) -> Any:
    difference = Amounts.read(body["charge"]) - Amounts.read(body["old"])

    def change(position: Position) -> Change:
        for entry in writer.store.scan(account, seen + 1):  # of two at once only one may take the difference
            if entry.kind == "reprice" and entry.content()["of"] == body["of"]:
                raise InputError(
                    f"entry {body['of']} of {account!r} was repriced by somebody else meanwhile; ask again"
                )
        fields = body if team is None else body | {"team": team}
        return Change(fields, position.state.with_amounts(difference, position.tariff.rule.zero(), team))

    return change


def mark_status(status: str, fields: dict[str, Any]) -> Any:
    """Return the change that freezes, thaws or closes an account."""

    def change(position: Position) -> Change:
        state: State = replace(position.state, status=status)
        return Change(fields, state)

    return change
