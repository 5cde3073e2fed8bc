"""Eight processes on one budget: exactly what fits is accepted; locks, first opens, forks, connections that are cut."""

import os
import select
import socket
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import urlsplit, urlunsplit

import pytest

import cumulant as cm
from tests.ledger import crowd, server

EIGHT = 8


def test_exactly_as_many_as_fit(ledger: cm.Ledger, url: str) -> None:
    account = ledger.create("a", epsilon=1, delta="1e-40")
    accepted = crowd.crowd(crowd.spend_until_refused, [(url, "a")] * EIGHT)
    assert sum(accepted) == 100
    assert account.head().seq == 100
    assert ledger.verify()


def test_locks_in_opposite_order_never_deadlock(ledger: cm.Ledger, url: str) -> None:
    for name in ("a", "b", "c"):
        ledger.create(name, epsilon=1, delta="1e-6")
    orders = [["a", "b"], ["b", "a"], ["c", "a"], ["b", "c"], ["c", "b", "a"], ["a", "b", "c"], ["a", "c"], ["c", "b"]]
    assert crowd.crowd(crowd.spend_in_both, [(url, names, 6) for names in orders]) == [6] * EIGHT
    for name in ("a", "b", "c"):
        assert ledger.account(name).head().seq == 6 * sum(name in names for names in orders)
    assert ledger.verify()


def test_one_key_is_charged_once(ledger: cm.Ledger, url: str) -> None:
    ledger.create("a", epsilon=1, delta="1e-6")
    found = crowd.crowd(crowd.spend_with_one_key, [(url, "a")] * EIGHT)
    assert sorted(found) == ["answered", *["conflict"] * 7]
    assert ledger.account("a").head().seq == 1


def test_a_hold_ends_once(ledger: cm.Ledger, url: str) -> None:
    hold = ledger.create("a", epsilon=1, delta="1e-6").hold(crowd.PURE)
    assert sum(crowd.crowd(crowd.settle, [(url, "a", hold.seq)] * EIGHT)) == 1
    assert ledger.verify()


def test_parallel_first_opens(url: str) -> None:
    names = [f"account {i}" for i in range(EIGHT)]
    assert crowd.crowd(crowd.create, [(url, name) for name in names]) == names
    ledger = cm.Ledger(url)
    assert ledger.accounts() == names
    assert ledger.verify()


def test_threads_and_forks(ledger: cm.Ledger, url: str) -> None:
    """Each thread and each child has a connection of its own; the nonce of a child is not that of its parent."""
    account = ledger.create("a", epsilon=1, delta="1e-6")
    threads = [threading.Thread(target=lambda: [account.spend(crowd.PURE) for _ in range(3)]) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    account.spend(crowd.PURE, key="mine")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # newer Pythons warn where there are threads
        child = os.fork()
    if child == 0:
        code = 1
        try:
            try:
                account.spend(crowd.PURE, key="mine")
            except cm.InputError:  # it is another process
                account.spend(crowd.PURE, key="of the child")
                code = 0
        finally:
            os._exit(code)
    assert os.waitpid(child, 0)[1] == 0
    account.spend(crowd.PURE)
    assert account.head().seq == 4 * 3 + 3
    assert account.verify()


# ---- connections that are cut


class Proxy:
    """A door to the server that shuts at the next COMMIT: before it is passed on, or after it was carried out."""

    def __init__(self, target: tuple[str, int]) -> None:
        self.target, self.armed, self.cuts = target, "", 0
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self._pass, args=(client,), daemon=True).start()

    def _pass(self, client: socket.socket) -> None:
        with client, socket.create_connection(self.target) as database:
            while True:
                ready, _, _ = select.select([client, database], [], [], 30)
                for source in ready:
                    data = source.recv(65536)
                    if not data:
                        return
                    if source is client and b"COMMIT" in data and self.armed:
                        when, self.armed = self.armed, ""
                        self.cuts += 1
                        if when == "after":
                            database.sendall(data)
                            database.recv(65536)
                        return
                    (database if source is client else client).sendall(data)
                if not ready:
                    return


@contextmanager
def through(url: str) -> Iterator[tuple[str, Proxy]]:
    parts = urlsplit(url)
    proxy = Proxy((parts.hostname or "127.0.0.1", parts.port or 5432))
    try:
        yield urlunsplit(parts._replace(netloc=f"{parts.username}@127.0.0.1:{proxy.port}")), proxy
    finally:
        proxy.listener.close()


@pytest.mark.parametrize("when", ["before", "after"])
def test_a_connection_that_is_cut_at_commit(postgres: str, when: str) -> None:
    url = server.database(postgres)
    with through(url) as (door, proxy):
        account = cm.Ledger(door).create("a", epsilon=1, delta="1e-6")
        proxy.armed = when
        receipt = account.spend(crowd.PURE, key="k")
        assert proxy.cuts == 1
        assert (receipt.seq, receipt.replayed) == (1, False)  # this very call wrote it, so it may run
        assert account.spend(crowd.PURE, key="k").replayed
        proxy.armed = when
        hold = account.hold(crowd.PURE, key="h")
        proxy.armed = when
        hold.settle()
        assert proxy.cuts == 3
        account._ledger.close()
    assert [entry.kind for entry in cm.Ledger(url).account("a").history()] == ["open", "spend", "hold", "settle"]
    assert cm.Ledger(url).verify()
