"""`cumulant serve`: the page, on this machine only."""

from __future__ import annotations

import json
import secrets
from typing import Annotated

import typer

from cumulant.errors import CumulantError, InputError

_LARGEST_PORT = 65535


def serve(
    port: Annotated[int, typer.Option(help="The port on 127.0.0.1.")] = 8417,
    ledger: Annotated[str | None, typer.Option(metavar="LEDGER", help="Show this ledger, such as budget.db.")] = None,
    allow_spend: Annotated[
        bool, typer.Option("--allow-spend", help="Let those spend who know the token that is printed.")
    ] = False,
    open_: Annotated[bool, typer.Option("--open", help="Open a browser.")] = False,
    seconds: Annotated[float, typer.Option(help="Stop a question after so many seconds.")] = 30.0,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print one JSON object with the address and the token, before it listens.")
    ] = False,
    quiet: Annotated[
        bool, typer.Option("--quiet", help="Print the address alone, and the token if there is one.")
    ] = False,
) -> None:
    """Open the page in a browser, on this machine only.

    Choose or type a run, see its interval and charts, compare, calibrate. Needs cumulant[web].

    It listens on 127.0.0.1 only and needs no network. Other programs ask it by JSON: see /openapi.json.

    \b
    Examples:
      cumulant serve --open
      cumulant serve --port 9000 --ledger budget.db
      curl -H 'content-type: application/json' -d '{"run": "PureDP(1)", "delta": 0}' http://127.0.0.1:8417/api/epsilon
    """
    if not 0 < port <= _LARGEST_PORT:
        raise InputError(f"port={port} must be between 1 and {_LARGEST_PORT}")
    if not 0 < seconds <= 86400:
        raise InputError(f"seconds={seconds:g} must be between 0 and 86400")
    if allow_spend and ledger is None:
        raise InputError("--allow-spend needs a --ledger to spend from")
    try:
        from cumulant.web.app import application
        from cumulant.web.connections import bind_socket, server
        from cumulant.web.workers import Workers
    except ImportError:
        raise CumulantError(
            "the page needs FastAPI and uvicorn; install them with: pip install 'cumulant[web]'"
        ) from None
    token = secrets.token_urlsafe(24) if allow_spend else None
    page = server(application(ledger, token, Workers(seconds=seconds)))
    listening = bind_socket(port)
    address = f"http://127.0.0.1:{port}/"
    if as_json:
        typer.echo(json.dumps({"address": address, "token": token}))
    else:
        typer.echo(address if quiet else f"{address} (stop it by Ctrl-C)")
        if token is not None:
            typer.echo(token if quiet else f"token for spending: {token}")
    if open_:
        import threading
        import webbrowser

        threading.Timer(1.0, webbrowser.open, [address]).start()
    with listening:
        page.run(sockets=[listening])
    if not page.started:
        raise CumulantError("the page could not be started; please report it with the command")
