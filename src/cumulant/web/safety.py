"""Checks that every request must pass.

It comes from this machine and from the page itself, is small, and arrives in time.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
Application = Callable[[Scope, Receive, Send], Awaitable[None]]

HOST = re.compile(r"(127\.0\.0\.1|localhost|\[::1\])(:[0-9]{1,5})?", re.IGNORECASE)
"""Names of this machine, with or without a port, and nothing around them."""
LARGEST = 100_000
"""Bytes of a request."""

PATIENCE = 10.0
"""Seconds in which a request must have arrived."""

HEADERS = {
    "content-security-policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "cache-control": "no-store",
}


class RequestRefused(Exception):
    """Raised for a refused request, with the status and the sentence."""

    def __init__(self, status: int, sentence: str) -> None:
        super().__init__(sentence)
        self.status = status


class RequestGuard:
    """An application behind these checks; any exception becomes one sentence."""

    def __init__(self, inner: Application) -> None:
        self.inner = inner

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            if scope["type"] == "lifespan":
                await self.inner(scope, receive, send)
            return
        started = False

        async def answer(message: MutableMapping[str, Any]) -> None:
            nonlocal started
            if message["type"] == "http.response.start":
                started = True
                added = [(name.encode(), value.encode()) for name, value in HEADERS.items()]
                message = {**message, "headers": [*message.get("headers", []), *added]}
            await send(message)

        try:
            check(scope)
            await self.inner(scope, await self._receive_all(receive), answer)
        except RequestRefused as refused:
            await _refuse(answer, refused.status, str(refused))
        except Exception as error:
            if not started:
                await _refuse(answer, 500, f"unexpected {type(error).__name__}; please report it with the request")

    async def _receive_all(self, receive: Receive) -> Receive:
        """Receive the whole request before anything is done with it."""
        body, more = b"", True
        try:
            async with asyncio.timeout(PATIENCE):
                while more:
                    message = await receive()
                    if message["type"] == "http.disconnect":
                        raise RequestRefused(400, "the request ended before it was complete")
                    body += message.get("body", b"")
                    more = message.get("more_body", False)
                    if len(body) > LARGEST:
                        raise RequestRefused(413, f"a request has at most {LARGEST} bytes; ask a shorter question")
        except TimeoutError:
            raise RequestRefused(408, f"the request did not arrive within {PATIENCE:g} seconds") from None
        given = False

        async def replay() -> MutableMapping[str, Any]:
            nonlocal given
            if given:
                return await receive()
            given = True
            return {"type": "http.request", "body": body, "more_body": False}

        return replay


def check(scope: Scope) -> None:
    """Raise Refused unless the request names this host and comes from no other page."""
    headers = {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in scope["headers"]}
    host = headers.get("host", "")
    if not HOST.fullmatch(host):
        raise RequestRefused(421, "this page answers to 127.0.0.1 and localhost only")
    origin = headers.get("origin")
    if origin is not None and origin not in (f"http://{host}", f"https://{host}"):
        raise RequestRefused(403, "another page may not ask this one")
    if headers.get("sec-fetch-site", "none") not in ("none", "same-origin"):
        raise RequestRefused(403, "another page may not ask this one")
    if scope["method"] not in ("GET", "HEAD", "POST"):
        raise RequestRefused(405, "ask by GET or POST")
    if scope["method"] == "POST" and headers.get("content-type", "").split(";")[0].strip() != "application/json":
        raise RequestRefused(415, "a question is JSON; send it with content-type: application/json")
    length = headers.get("content-length", "0")
    if not length.isdigit() or int(length[:20]) > LARGEST:
        raise RequestRefused(413, f"a request has at most {LARGEST} bytes; ask a shorter question")


async def _refuse(send: Send, status: int, sentence: str) -> None:
    body = json.dumps({"error": sentence, "position": None}).encode()
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
