"""The page and its HTTP interface: paths, their input and their output."""

from __future__ import annotations

import json
import math
import os
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from hmac import compare_digest
from importlib.resources import files
from pathlib import Path
from typing import Annotated, Any
from uuid import uuid4

from fastapi import FastAPI, Header, Query
from fastapi.exceptions import RequestValidationError
from fastapi.responses import Response
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field
from starlette.exceptions import HTTPException

from cumulant.ledger.ledger import Ledger
from cumulant.ledger.writing import nonce
from cumulant.web.catalogue import catalogue
from cumulant.web.safety import Application, RequestGuard, RequestRefused
from cumulant.web.workers import Workers

SCRIPTS = ("chart.js", "picture.js", "form.js", "ledger.js", "page.js")
"""The scripts of the page, in the order in which they run."""

STATIC = {"": "text/html", "page.css": "text/css", **dict.fromkeys(SCRIPTS, "text/javascript")}
"""Every file that is given away, and as what; nothing else is."""

_LONGEST = 20_000
"""Characters of a text in a question."""
_MOST_LISTED = 1000
"""Names or receipts in one question."""

Text = Annotated[str, Field(max_length=_LONGEST)]


def _no_truth(value: Any) -> Any:
    """Refuse null, and true and false, which Python would take for 1 and 0."""
    if isinstance(value, bool) or value is None:
        raise ValueError("true, false and null are no numbers; give one such as 1e-6, or its text")
    return value


Number = Annotated[
    int | float | str,
    BeforeValidator(_no_truth),
    Field(description="a number, or its exact text such as 1e-6 or 1/3"),
]


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
    """A run and an (epsilon, delta), with the accountant to use."""

    method: str | None = None


class AtSlack(_Question):
    """A run and the slack of mu."""

    slack: Annotated[Number | None, Field(examples=["1e-6"])] = None


class Attack(_Question):
    """A run, a kind of attack and its success without the release, with all side knowledge.

    For membership the prior is the rate of false alarms.
    """

    kind: Annotated[Text, Field(examples=["attribute"])]
    prior: Annotated[Number, Field(examples=["0.01"])]


class Training(BaseModel):
    """A training run in the words of its loop; `sampling` says how batches are drawn.

    With `claim`, an epsilon that is claimed at `delta`, the answer has a verdict.
    """

    model_config = ConfigDict(extra="forbid")
    batch: Annotated[Number, Field(examples=[512])]
    records: Annotated[Number, Field(examples=[50000])]
    epochs: Annotated[Number, Field(examples=[60])]
    noise_multiplier: Annotated[Number, Field(examples=["1.1"])]
    sampling: Annotated[Text, Field(examples=["poisson"])]
    claim: Annotated[Number | None, Field(examples=[3])] = None
    delta: Annotated[Number | None, Field(examples=["1e-5"])] = None


class Drawing(_Question):
    """A run, a delta and the chart to draw: rounds, epsilon or attack."""

    delta: Number
    kind: str


class Spending(_Question):
    """A run to charge to an account, and the key of the request.

    A second request with the same key is the same one.
    """

    account: Text
    key: Text | None = None


class Accounts(BaseModel):
    """The accounts to verify, all if none is named, and receipts as JSON text.

    Somebody has kept the receipts.
    """

    model_config = ConfigDict(extra="forbid")
    accounts: Annotated[list[Text], Field(max_length=_MOST_LISTED)] = []
    receipts: Annotated[list[Text], Field(max_length=_MOST_LISTED)] = []


_LATE = {
    "accounts": "the ledger did not answer within {seconds:g} seconds; ask cumulant ledger status in the shell",
    "spenders": "the ledger did not answer within {seconds:g} seconds; ask cumulant ledger history in the shell",
    "history": "the ledger did not answer within {seconds:g} seconds; ask cumulant ledger history in the shell",
    "verify": "checking took more than {seconds:g} seconds and was stopped; run cumulant ledger verify in the shell",
    "spend": "the ledger did not answer within {seconds:g} seconds; look for key {key} in the history before you ask again",
}
"""The sentence about each question to the ledger that was stopped."""


def application(ledger: str | None = None, token: str | None = None, workers: Workers | None = None) -> Application:
    """Return the page, with the ledger at this address if one is named.

    Only those who know the token may spend; nobody may without one.
    """
    asking = workers or Workers()
    if ledger is not None:
        Ledger(ledger)  # an address that leads nowhere is said at once

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
        sentence = f"the question is not right: {where or 'JSON'}: {str(first['msg']).removeprefix('Value error, ')}"
        return _json(422, {"error": sentence[:400], "position": None})

    @app.exception_handler(HTTPException)
    @app.exception_handler(404)
    @app.exception_handler(405)
    async def not_found(_: Any, error: Any) -> Response:
        sentences = {404: "there is nothing here", 405: "method not allowed"}
        sentence = sentences.get(error.status_code, "the question cannot be read")
        return _json(error.status_code, {"error": f"{sentence}; see /openapi.json", "position": None})

    def ask(kind: str, question: BaseModel) -> Response:
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
        """Return every mechanism and sampling scheme, with parameters that work."""
        return _json(200, catalogue())

    @app.post("/api/epsilon")
    def epsilon(question: AtDelta) -> Response:
        """Return the smallest epsilon that is known at this delta: the JSON of a guarantee."""
        return ask("epsilon", question)

    @app.post("/api/delta")
    def delta(question: AtEpsilon) -> Response:
        """Return the smallest delta that is known at this epsilon: the JSON of a guarantee."""
        return ask("delta", question)

    @app.post("/api/check")
    def check(question: Claim) -> Response:
        """Check a claim: it holds, is false, or is open."""
        return ask("check", question)

    @app.post("/api/calibrate")
    def calibrate(question: Target) -> Response:
        """Find the value of the parameter '?' that just meets this epsilon at this delta."""
        return ask("calibrate", question)

    @app.post("/api/mu")
    def mu(question: AtSlack) -> Response:
        """The mu of Gaussian privacy, always with its slack."""
        return ask("mu", question)

    @app.post("/api/risk")
    def risk(question: Attack) -> Response:
        """Compute the gain of an attacker from the release, in the words of the attack."""
        return ask("risk", question)

    @app.post("/api/training")
    def training(question: Training) -> Response:
        """Return the expression of a training run in the words of its loop, and the verdict on a claim about it."""
        return ask("training", question)

    @app.post("/api/explore")
    def explore(question: AtDelta) -> Response:
        """Return a guarantee with its sentences, as the page shows it."""
        return ask("explore", question)

    @app.post("/api/chart")
    def chart(question: Drawing) -> Response:
        """Return the numbers of a chart."""
        return ask("chart", question)

    # ---- the ledger

    def ask_ledger(kind: str, **asked: Any) -> Response:
        if ledger is None:
            raise RequestRefused(
                404, "this page was started without a ledger; start it with cumulant serve --ledger URL"
            )
        status, found = asking.ask(kind, {"ledger": ledger, **asked})
        if status == 504:
            found = {"error": _LATE[kind].format(seconds=asking.seconds, **asked), "position": None}
        for sentence in {"error", "said"} & found.keys():
            found = {**found, sentence: without_folder(str(found[sentence]), ledger)}
        return _json(
            status, {**found, "spending": token is not None} if kind == "accounts" and status == 200 else found
        )

    @app.exception_handler(RequestRefused)
    async def refused(_: Any, error: RequestRefused) -> Response:
        return _json(error.status, {"error": str(error), "position": None})

    @app.get("/api/ledger")
    def accounts() -> Response:
        """Return the status of the first 200 accounts, how many there are in all, and whether this page may spend."""
        return ask_ledger("accounts")

    @app.get("/api/ledger/history")
    def history(
        account: Annotated[str, Query(max_length=_LONGEST)],
        search: Annotated[str, Query(max_length=_LONGEST)] = "",
        before: Annotated[int | None, Query(ge=0, lt=2**63)] = None,
    ) -> Response:
        """Return the entries of an account that contain a text, newest first, below `before`.

        `next` is the number to go on from.
        """
        return ask_ledger("history", account=account, search=search, before=before)

    @app.get("/api/ledger/spenders")
    def spenders(account: Annotated[str, Query(max_length=_LONGEST)]) -> Response:
        """Return who spent what of an account, the largest part first."""
        return ask_ledger("spenders", account=account)

    @app.post("/api/ledger/verify")
    def verify(asked: Accounts) -> Response:
        """Check the chain of every entry."""
        return ask_ledger("verify", accounts=asked.accounts, receipts=asked.receipts)

    @app.post("/api/ledger/spend")
    def spend(asked: Spending, authorization: Annotated[str, Header()] = "") -> Response:
        """Charge an account, for those who know the token of the page.

        The page must have been started with --allow-spend.
        """
        if token is None:
            raise RequestRefused(403, "this page may not spend; start it with --allow-spend")
        if not compare_digest(authorization.encode(), f"Bearer {token}".encode()):
            raise RequestRefused(401, "spending needs the token that cumulant serve has printed")
        key = uuid4().hex if asked.key is None else asked.key
        return ask_ledger("spend", account=asked.account, run=asked.run, key=key, nonce=nonce())

    return RequestGuard(app)


def without_folder(text: str, ledger: str) -> str:
    """Return a message without the folder of the ledger: those who see the page need not know it."""
    path = ledger.removeprefix("sqlite:///")
    folders = {
        os.path.dirname(os.path.realpath(path)),
        os.path.dirname(os.path.abspath(path)),
        str(Path(path).absolute().parent),  # as the store says it: with .. in it
    }
    for folder in sorted(folders - {os.sep}, key=len, reverse=True):
        text = re.sub(rf"(?<![\w.-]){re.escape(folder)}({re.escape(os.sep)}|(?![\w-]|\.\w))", _shortened, text)
    return text if "://" in path else text.replace(path, os.path.basename(path))


def _shortened(folder: re.Match[str]) -> str:
    """Return nothing before the name of a file, and words for a folder that stands alone."""
    return "" if folder[1] else "its folder"


def _json(status: int, fields: dict[str, Any]) -> Response:
    later = {"Retry-After": "1"} if status in (429, 503) else None
    return Response(json.dumps(_finite(fields)), status, later, "application/json")


def _finite(value: Any) -> Any:
    """Replace infinity, which JSON does not have, by the text "inf"."""
    if isinstance(value, dict):
        return {name: _finite(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(each) for each in value]
    return "inf" if isinstance(value, float) and math.isinf(value) else None if value != value else value
