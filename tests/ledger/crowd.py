"""Many processes at once, each with connections of its own: started from a clean server process, so threads do no harm."""

import multiprocessing
from collections.abc import Callable, Sequence
from typing import Any

import cumulant as cm
from cumulant.errors import KeyConflict

PURE = cm.PureDP("0.01")


def crowd(work: Callable[..., Any], arguments: Sequence[tuple[Any, ...]]) -> list[Any]:
    """What each call returns, all of them at once in processes of their own."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["cumulant.ledger", "tests.ledger.crowd", "flint"])
    with context.Pool(len(arguments)) as pool:
        return [result.get(timeout=120) for result in [pool.apply_async(work, each) for each in arguments]]


def spend_until_refused(url: str, name: str) -> int:
    account, accepted = cm.Ledger(url).account(name), 0
    while True:
        try:
            account.spend(PURE)
            accepted += 1
        except cm.BudgetRefused:
            return accepted


def spend_in_both(url: str, names: list[str], times: int) -> int:
    ledger = cm.Ledger(url)
    for _ in range(times):
        ledger.spend(cm.PureDP("1e-6"), accounts=names)
    return times


def spend_with_one_key(url: str, name: str) -> str:
    try:
        return "answered" if not cm.Ledger(url).account(name).spend(PURE, key="the key").replayed else "replayed"
    except KeyConflict:
        return "conflict"


def create(url: str, name: str) -> str:
    cm.Ledger(url).create(name, epsilon=1, delta="1e-6")
    return name


def settle(url: str, name: str, hold: int) -> bool:
    try:
        cm.Ledger(url).account(name).settle(hold)
        return True
    except cm.InputError:
        return False
