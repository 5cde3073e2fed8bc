"""Whatever is handed to a ledger, what comes out is an answer or a CumulantError of one sentence."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import cumulant as cm
from cumulant.ledger.account import Account
from tests.test_wrong_types import WRONG

PURE = "PureDP(1e-9)"

CALLS: dict[str, tuple[Callable[[Account], Callable[..., Any]], dict[str, Any]]] = {
    "Ledger": (lambda account: cm.Ledger, {"url": "sqlite:///none.db", "keys": None, "actor": "a"}),
    "create": (
        lambda account: account._ledger.create,
        {
            "name": "taken",
            "epsilon": 1,
            "delta": "1e-6",
            "relation": "add-remove",
            "unit": "person",
            "mode": "adaptive",
            "like": PURE,
            "plan": None,
            "slack": "1e-7",
            "owner": "me",
            "expires": "2999-01-01",
            "data": "d",
            "same_data": True,
        },
    ),
    "account": (lambda account: account._ledger.account, {"name": "taken"}),
    "spend": (lambda account: account.spend, {"run": PURE, "key": "k", "team": None, "note": "n"}),
    "ledger.spend": (lambda account: account._ledger.spend, {"run": PURE, "accounts": ["taken"], "key": "l"}),
    "spend_all": (lambda account: account.spend_all, {"runs": [PURE], "keys": ["m"], "team": None}),
    "hold": (lambda account: account.hold, {"run": PURE, "key": "n"}),
    "held": (lambda account: account.held, {"hold": 1}),
    "settle": (lambda account: account.settle, {"hold": 1, "run": PURE, "key": "s"}),
    "release": (lambda account: account.release, {"hold": 2, "unseen": True, "by": "me", "key": "r"}),
    "grant": (lambda account: account.grant, {"team": "t", "share": "1/2", "key": "g"}),
    "thaw": (lambda account: account.thaw, {"source_closed": True, "reason": "r", "key": "t"}),
    "would_fit": (lambda account: account.would_fit, {"run": PURE, "team": None}),
    "history": (lambda account: account.history, {"start": 0}),
    "find": (lambda account: account.find, {"key": "k"}),
    "note": (lambda account: account.note, {"seq": 0}),
    "reprice": (lambda account: lambda entry: account.reprice(entry), {"entry": 3}),
    "verify": (lambda account: account._ledger.verify, {"accounts": ["taken"], "receipts": [], "recompute": True}),
    "union": (lambda account: account._ledger.union, {"accounts": ["taken"]}),
    "import_lines": (lambda account: account._ledger.import_lines, {"lines": ['{"cumulant-ledger":1}']}),
}


@pytest.fixture(scope="module")
def account(tmp_path_factory: pytest.TempPathFactory) -> Account:
    folder: Path = tmp_path_factory.mktemp("wrong")
    account = cm.Ledger(f"sqlite:///{folder}/budget.db").create("taken", epsilon=1, delta="1e-6", data="d")
    account.hold(PURE)
    account.hold(PURE)
    account.spend(PURE)
    return account


@pytest.mark.parametrize("name", CALLS)
def test_wrong_types(name: str, account: Account) -> None:
    method, right = CALLS[name]
    call, escaped = method(account), {}
    for argument in right:
        for wrong, value in WRONG.items():
            try:
                call(**right | {argument: value})
            except cm.CumulantError:
                continue
            except Exception as error:
                escaped[f"{argument}: {wrong}"] = f"{type(error).__name__}: {str(error)[:80]}"
    assert not escaped
    assert account.verify()
