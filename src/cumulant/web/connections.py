"""Connections of the page: late headers are refused, and idle clients make way for others."""

from __future__ import annotations

import asyncio
import json
import socket
from contextlib import suppress
from typing import Any

import h11
import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from cumulant.errors import CumulantError
from cumulant.web.safety import Application

HEADER_SECONDS = 5.0
"""Seconds in which a connection must have sent the whole header of a request; convention, a browser takes milliseconds."""
MOST_CONNECTIONS = 64
"""Connections at once, of all clients: all of them are on this machine and have one address. A browser opens six."""
READER_SECONDS = 10.0
"""Seconds in which a client must have read what was written for it; convention, as for the arrival of a request."""
STOPPING_SECONDS = 2
"""Seconds that answers may still take after Ctrl-C, then their workers are stopped."""


class Connection(H11Protocol):
    """A connection that is closed with a sentence if its header is late or others wait."""

    _late: asyncio.TimerHandle | None = None
    _unread: asyncio.TimerHandle | None = None
    _since = 0.0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override,unused-ignore]
        super().connection_made(transport)
        self._since = self.loop.time()
        self._watch()
        if len(self.connections) <= MOST_CONNECTIONS:
            return
        others: list[Any] = [each for each in self.connections if each is not self and getattr(each, "idle", False)]
        if others:
            min(others, key=lambda each: each._since).give_up(
                503, "too many connections were open, and this one was idle"
            )
        else:
            self.give_up(503, f"{MOST_CONNECTIONS} requests are being answered already; ask again in a moment")

    @property
    def silent(self) -> bool:
        """Return True while no request is being answered and no whole header has arrived."""
        return self.conn.their_state is h11.IDLE and (self.cycle is None or self.cycle.response_complete)

    @property
    def idle(self) -> bool:
        """Return True while no request is being answered.

        The header or the body has not arrived, or the connection is closing.
        """
        return self.silent or self.conn.their_state is h11.SEND_BODY or self.transport.is_closing()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._watch()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_watching()
        self._stop_waiting()
        super().connection_lost(exc)

    def pause_writing(self) -> None:
        """Drop a client that asks and does not read.

        Its answers would keep the place of others for ever.
        """
        super().pause_writing()
        self._unread = self._unread or self.loop.call_later(READER_SECONDS, self.transport.abort)

    def resume_writing(self) -> None:
        """Keep a client that reads."""
        super().resume_writing()
        self._stop_waiting()

    def _stop_waiting(self) -> None:
        if self._unread is not None:
            self._unread.cancel()
            self._unread = None

    def _watch(self) -> None:
        """Count the seconds while a header is not complete.

        A part of it that arrives does not prolong them.
        """
        if not self.silent:
            self._stop_watching()
        elif self._late is None:
            sentence = f"the header of the request did not arrive within {HEADER_SECONDS:g} seconds"
            self._late = self.loop.call_later(HEADER_SECONDS, self.give_up, 408, sentence)

    def _stop_watching(self) -> None:
        if self._late is not None:
            self._late.cancel()
            self._late = None

    def give_up(self, status: int, sentence: str) -> None:
        """Answer with a sentence as JSON, and close; a connection that is closing already is cut."""
        self._stop_watching()
        if self.transport.is_closing():
            self.transport.abort()
            return
        self.transport.write(_answer(status, sentence))
        self.transport.close()

    def send_400_response(self, msg: str) -> None:
        """Refuse a message that is not HTTP."""
        self.give_up(400, "this is no HTTP request that can be read; see /openapi.json")


def _answer(status: int, sentence: str) -> bytes:
    reasons = {400: "Bad Request", 408: "Request Timeout", 503: "Service Unavailable"}
    body = json.dumps({"error": sentence, "position": None}).encode()
    later = "Retry-After: 1\r\n" if status == 503 else ""
    head = f"HTTP/1.1 {status} {reasons[status]}\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n"
    return f"{head}{later}Connection: close\r\n\r\n".encode() + body


def server(page: Application) -> uvicorn.Server:
    """Return a server for the page, which is not running yet."""
    return uvicorn.Server(
        uvicorn.Config(
            page,
            http=Connection,
            ws="none",
            log_level="error",
            timeout_keep_alive=5,
            timeout_graceful_shutdown=STOPPING_SECONDS,
            server_header=False,
            access_log=False,
        )
    )


def bind_socket(port: int) -> socket.socket:
    """Return a socket on a port of this machine; CumulantError if it is taken."""
    found = socket.socket()
    try:
        with suppress(OSError):  # a server that has just ended does not keep its port
            found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        found.bind(("127.0.0.1", port))
        found.listen(2 * MOST_CONNECTIONS)
    except OSError as error:
        found.close()
        raise CumulantError(
            f"port {port} of 127.0.0.1 cannot be used: {error.strerror}; choose another one by --port"
        ) from None
    return found
