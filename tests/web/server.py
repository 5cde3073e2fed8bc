"""The page as a real server in a thread, and a client of the standard library that sends what it is told."""

from __future__ import annotations

import http.client
import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple
from urllib.parse import urlencode

from cumulant.web.connections import bind_socket, server
from cumulant.web.safety import Application


class Answer(NamedTuple):
    status: int
    headers: dict[str, str]
    text: str

    def json(self) -> Any:
        return json.loads(self.text)


class Client:
    def __init__(self, port: int) -> None:
        self.port = port
        self.address = f"http://127.0.0.1:{port}/"

    def request(
        self, method: str, url: str, content: bytes | None = None, headers: dict[str, str] | None = None
    ) -> Answer:
        line = http.client.HTTPConnection("127.0.0.1", self.port, timeout=120)
        try:
            line.request(method, url, content, headers or {})
            found = line.getresponse()
            names = {name.lower(): value for name, value in found.getheaders()}
            return Answer(found.status, names, found.read().decode())
        finally:
            line.close()

    def get(self, url: str, **asked: str) -> Answer:
        return self.request("GET", f"{url}?{urlencode(asked)}" if asked else url)

    def post(self, url: str, question: Any, **headers: str) -> tuple[int, Any]:
        named = {"content-type": "application/json"} | headers
        found = self.request("POST", url, json.dumps(question).encode(), named)
        return found.status, found.json()


@contextmanager
def served(page: Application) -> Iterator[Client]:
    """The page on a free port of this machine, as `cumulant serve` runs it."""
    running, listening = server(page), bind_socket(0)
    thread = threading.Thread(target=running.run, args=([listening],), daemon=True)
    thread.start()
    while not running.started:
        time.sleep(0.01)
    try:
        yield Client(listening.getsockname()[1])
    finally:
        running.should_exit = True
        thread.join(20)
        listening.close()
