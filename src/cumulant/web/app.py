"""The page and its questions as an application: paths, what they take and what they give back."""

from __future__ import annotations

import json
import math
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from hmac import compare_digest
from importlib.resources import files
from typing import Annotated, Any

from fastapi import FastAPI, Header
from fastapi.exceptions import RequestValidationError
from fastapi.responses import Response
from pydantic import BaseModel, ConfigDict, Field
from starlette.exceptions import HTTPException

from cumulant.errors import BudgetRefused, CumulantError, InputError, LedgerBroken
from cumulant.ledger.account import Account
from cumulant.ledger.entry import Receipt
from cumulant.ledger.ledger import Ledger
from cumulant.web.catalogue import catalogue
from cumulant.web.safety import Application, Guarded, Refused
from cumulant.web.workers import Workers

STATIC = {"": "text/html", "page.js": "text/javascript", "chart.js": "text/javascript", "page.css": "text/css"}
"""Every file that is given away, and as what; nothing else is."""

MOST_ENTRIES = 200
_LONGEST = 20_000

Text = Annotated[str, Field(max_length=_LONGEST)]
Number = Annotated[int | float | str, Field(description="a number, or its exact text such as 1e-6 or 1/3")]


class _Question(BaseModel):
    model_config = ConfigDict(extra="forbid")
    run: Annotated[Text, Field(description="what ran, in the notation", examples=["Gaussian(sigma=5) * 10"])]


class AtDelta(_Question):
    """A run and a delta."""

    delta: Annotated[Number, Field(examples=["1e-6"])]
    method: str | None = None


class AtEpsilon(_Question):
    """A run and an epsilon."""

    epsilon: Annotated[Number, Field(examples=[1])]
    method: str | None = None


class Claim(_Question):
    """A run, and an (epsilon, delta) that is claimed or aimed at."""

    epsilon: Number
    delta: Number


class Target(Claim):
    """The same with the accountant that is asked."""

    method: str | None = None


class Drawing(_Question):
    """A run, a delta and what is drawn: rounds, epsilon or attack."""

    delta: Number
    kind: str


class Spending(_Question):
    """A run that an account is charged for, under a key that makes a second request the same one."""

    account: str
    key: str | None = None


class Accounts(BaseModel):
    """The accounts that are verified, all without names; and receipts that somebody has kept, as JSON text."""

    model_config = ConfigDict(extra="forbid")
    accounts: list[str] = []
    receipts: list[Text] = []


def application(ledger: str | None = None, token: str | None = None, workers: Workers | None = None) -> Application:
    """The page, with the ledger at this address if one is named; only who knows the token may spend, nobody without one."""
    asking = workers or Workers()
    book = None if ledger is None else Ledger(ledger)

    @asynccontextmanager
    async def life(_: FastAPI) -> AsyncIterator[None]:
        yield
        asking.close()

    app = FastAPI(
        title="cumulant", description=__doc__, docs_url=None, redoc_url=None, lifespan=life, version="1", debug=False
    )

    @app.exception_handler(RequestValidationError)
    async def invalid(_: Any, error: RequestValidationError) -> Response:
        first = error.errors()[0] if error.errors() else {"loc": (), "msg": "it cannot be read"}
        where = ".".join(str(each)[:40] for each in first["loc"] if each != "body")
        told = f"the question is not right: {where or 'JSON'}: {first['msg']}"
        return _json(422, {"error": told[:400], "position": None})

    @app.exception_handler(HTTPException)
    @app.exception_handler(404)
    @app.exception_handler(405)
    async def elsewhere(_: Any, error: Any) -> Response:
        told = {404: "there is nothing here", 405: "this is asked in another way"}
        sentence = told.get(error.status_code, "the question cannot be read")
        return _json(error.status_code, {"error": f"{sentence}; see /openapi.json", "position": None})

    def ask(kind: str, question: _Question) -> Response:
        return _json(*asking.ask(kind, question.model_dump()))

    # ---- files

    def given(name: str) -> Response:
        file = files("cumulant.web").joinpath("static", name or "index.html")
        return Response(file.read_bytes(), media_type=f"{STATIC[name]}; charset=utf-8")

    for each in STATIC:
        app.add_api_route(f"/{each}", lambda name=each: given(name), methods=["GET"], include_in_schema=False)

    # ---- questions

    @app.get("/api/catalogue")
    def chosen_from() -> Response:
        """Every mechanism and sampling scheme that can be chosen, with parameters that work."""
        return _json(200, catalogue())

    @app.post("/api/epsilon")
    def epsilon(question: AtDelta) -> Response:
        """The smallest epsilon that is known at this delta: the JSON of a guarantee."""
        return ask("epsilon", question)

    @app.post("/api/delta")
    def delta(question: AtEpsilon) -> Response:
        """The smallest delta that is known at this epsilon: the JSON of a guarantee."""
        return ask("delta", question)

    @app.post("/api/check")
    def check(question: Claim) -> Response:
        """Whether a claim holds, is false, or is open."""
        return ask("check", question)

    @app.post("/api/calibrate")
    def calibrate(question: Target) -> Response:
        """The value of the parameter '?' that just meets this epsilon at this delta."""
        return ask("calibrate", question)

    @app.post("/api/explore")
    def explore(question: AtDelta) -> Response:
        """A guarantee with its sentences, as the page shows it."""
        return ask("explore", question)

    @app.post("/api/chart")
    def chart(question: Drawing) -> Response:
        """The numbers of a chart."""
        return ask("chart", question)

    # ---- the ledger

    def opened() -> Ledger:
        if book is None:
            raise Refused(404, "this page was started without a ledger; start it with cumulant serve --ledger URL")
        return book

    @app.exception_handler(Refused)
    async def refused(_: Any, error: Refused) -> Response:
        return _json(error.status, {"error": str(error), "position": None})

    @app.exception_handler(CumulantError)
    async def wrong(_: Any, error: CumulantError) -> Response:
        codes = ((BudgetRefused, 409), (LedgerBroken, 500), (InputError, 400))
        code = next((code for kind, code in codes if isinstance(error, kind)), 503)
        return _json(code, {"error": str(error), "position": None})

    @app.get("/api/ledger")
    def accounts() -> Response:
        """Where every account stands, and whether this page may spend."""
        book = opened()
        rows = [Account(book, name).status().to_dict() for name in book.accounts()[:MOST_ENTRIES]]
        return _json(200, {"accounts": rows, "spending": token is not None})

    @app.get("/api/ledger/history")
    def history(account: str, search: str = "", start: int = 0) -> Response:
        """The entries of an account that contain a text, the last ones first."""
        entries = list(opened().account(account).history(max(start, 0)))
        found = [
            {"seq": e.seq, "kind": e.kind, "time": e.time, "actor": e.actor, "run": e.run, "key": e.key, "hash": e.hash}
            for e in entries
        ]
        match = [row for row in found if search.lower() in json.dumps(row, ensure_ascii=False).lower()]
        return _json(200, {"entries": match[::-1][:MOST_ENTRIES], "matching": len(match), "all": len(found)})

    @app.post("/api/ledger/verify")
    def verify(asked: Accounts) -> Response:
        """Whether the chain of every entry is whole."""
        verdict = opened().verify(asked.accounts, [Receipt.from_json(each) for each in asked.receipts])
        return _json(200, {"whole": bool(verdict), "said": str(verdict)[:2000]})

    @app.post("/api/ledger/spend")
    def spend(asked: Spending, authorization: Annotated[str, Header()] = "") -> Response:
        """Charge an account, where the page was started with --allow-spend, for those who know its token."""
        if token is None:
            raise Refused(403, "this page may not spend; start it with --allow-spend")
        if not compare_digest(authorization.encode(), f"Bearer {token}".encode()):
            raise Refused(401, "spending needs the token that cumulant serve has printed")
        receipt = opened().account(asked.account).spend(asked.run, key=asked.key)
        return _json(200, json.loads(receipt.to_json()))

    return Guarded(app)


def _json(status: int, fields: dict[str, Any]) -> Response:
    later = {"Retry-After": "1"} if status == 429 else None
    return Response(json.dumps(_finite(fields)), status, later, "application/json")


def _finite(value: Any) -> Any:
    """JSON has no infinity: it is the text "inf"."""
    if isinstance(value, dict):
        return {name: _finite(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(each) for each in value]
    return "inf" if isinstance(value, float) and math.isinf(value) else None if value != value else value
