"""The password of a database appears nowhere: addresses made by hypothesis, quoted and raw, in all places."""

from pathlib import Path
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

import cumulant as cm
from cumulant.cli import app
from cumulant.errors import CumulantError, LedgerError
from cumulant.ledger import writing
from cumulant.ledger.password import may_be_quoted, without_password

TOKENS = ("s3cret", "hunter2", "Pa55w0rd")
PASSWORDS = st.lists(st.sampled_from([*TOKENS, *"@:/?#%&=+ ;,[]|~$'\"\\é", "%40", "%zz"]), min_size=1, max_size=6).map(
    lambda parts: "".join(parts) + TOKENS[0]
)
SCHEMES = st.sampled_from(["postgresql", "postgres", "postgresql+psycopg", "mysql", "jdbc:postgresql"])


@st.composite
def addresses(draw: st.DrawFn) -> str:
    """An address with a password before its host, or among its options, quoted as it should be or not."""
    password = draw(PASSWORDS)
    written = quote(password, safe="") if draw(st.booleans()) else password
    user = draw(st.sampled_from(["me", "", "me%40firm", "me@firm"]))
    host = draw(st.sampled_from(["127.0.0.1:1", "localhost:1", "[::1]:1", "127.0.0.1:1,127.0.0.1:2", ""]))
    option = draw(st.sampled_from(["password", "sslpassword", "PASSWORD", "p%61ssword", "passwrd", ""]))
    place = draw(st.sampled_from(["user", "option"]))
    other = draw(st.sampled_from(["", "sslmode=disable", "connect_timeout=1"]))
    end = draw(st.sampled_from(["/db", "", "/"]))
    if place == "user":
        return f"{draw(SCHEMES)}://{user}:{written}@{host}{end}" + (f"?{other}" if other else "")
    named = f"{option}={written}" if option else written
    return f"{draw(SCHEMES)}://{user + '@' if user else ''}{host}{end}?{'&'.join(filter(None, [other, named]))}"


def leaked(text: str) -> list[str]:
    return [token for token in TOKENS if token in text]


@given(addresses())
def test_no_part_of_it_is_shown(url: str) -> None:
    assert leaked(without_password(url)) == []


@given(addresses())
def test_no_part_of_it_is_in_a_repr_or_an_error(url: str) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(writing, "_ATTEMPTS", 1)
        try:
            ledger = cm.Ledger(url)
            assert leaked(repr(ledger)) == []
            ledger.accounts()
        except CumulantError as error:
            chain: BaseException | None = error
            while chain is not None:
                assert leaked(str(chain)) == [], type(chain)
                chain = chain.__cause__


@pytest.mark.parametrize(
    "url",
    [
        "me:s3cret@host/db",
        "me:s3cret@host",
        "host=db password=s3cret",
        "host=db/x password = s3cret",
        "dbname=x.db password=s3cret",
        "host=db/x sslpassword=s3cret",
        "host=db/x pwd=s3cret",
        "PGPASSWORD=s3cret budget.db",
        "host=db/x pass=s3cret",
        "postgresql://me:hunter2 s3cret@127.0.0.1:1/db",
        "postgresql://127.0.0.1:1/db?user=me&password=hunter2 s3cret",
        "postgresql://me:hunter2\u00a0s3cret@127.0.0.1:1/db",
        "host=db;password=s3cret",
        "mysql://me:s3cret@db",
    ],
)
def test_what_is_no_address(url: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(writing, "_ATTEMPTS", 1)
        assert app.answer(["ledger", "status", url]) == (1 if url.startswith("postgresql") else 2)
    assert leaked(capsys.readouterr().err) == []


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("postgresql://db/budget", "postgresql://db/budget"),
        ("postgresql://me@db/budget", "postgresql://…@db/budget"),
        ("postgresql://me:p%40ss@db/budget", "postgresql://…@db/budget"),
        ("postgresql://me:a?b@db/budget", "postgresql://…@db/budget"),
        (
            "postgresql://a:1,b:2/budget?target_session_attrs=any",
            "postgresql://a:1,b:2/budget?target_session_attrs=any",
        ),
        ("postgresql:///budget?host=%2Frun&user=me&password=x", "postgresql:///budget?host=%2Frun"),
        ("postgresql://[::1]:5432/budget", "postgresql://[::1]:5432/budget"),
        ("sqlite:///me:x@home.db?password=1", "sqlite:///me:x@home.db?password=1"),
        ("budget.db", "budget.db"),
    ],
)
def test_the_rest_is_shown(url: str, expected: str) -> None:
    assert without_password(url) == expected


def test_a_server_that_is_away_is_said() -> None:
    with pytest.raises(LedgerError, match=r"127.0.0.1:1/db cannot be reached: .*refused"):
        cm.Ledger("postgresql://me:s3cret@127.0.0.1:1/db").accounts()
    assert not may_be_quoted("postgresql://me:s3cret@hunter2@127.0.0.1:1/db")
    with pytest.raises(LedgerError, match=r"cannot be reached; write @ : / .* of the password as %40") as found:
        cm.Ledger("postgresql://me:s3cret@hunter2@127.0.0.1:1/db").accounts()
    assert found.value.__cause__ is None


@pytest.mark.parametrize("url", ["host=db.org dbname=x", "dbname = budget.db", "user=me host=/run"])
def test_keywords_are_not_taken_for_a_file(url: str) -> None:
    with pytest.raises(cm.InputError, match="is an address by keywords, which is not read; give postgresql://"):
        cm.Ledger(url)


@pytest.mark.parametrize("start", ["", "sqlite:///"])
def test_a_file_may_have_such_a_name(start: str, tmp_path: Path) -> None:
    url = f"{start}{tmp_path / 'my_password=1.db'}"
    cm.Ledger(url).create("patients", epsilon=1, delta=0, unit="person")
    assert cm.Ledger(url).accounts() == ["patients"]
