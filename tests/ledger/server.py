"""A real PostgreSQL for tests: $CUMULANT_TEST_POSTGRES, else Debian's binaries, else those of the wheel `pgserver`.

Where there is none the tests fail. They are never skipped: a store that nobody tried is not a store.
"""

import importlib.util
import os
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit
from uuid import uuid4

VARIABLE = "CUMULANT_TEST_POSTGRES"


def binaries() -> Path:
    """The directory of initdb and pg_ctl."""
    installed = sorted(
        Path("/usr/lib/postgresql").glob("*/bin/initdb"), key=lambda path: int(path.parts[-3].split(".")[0])
    )
    if installed:
        return installed[-1].parent
    if found := shutil.which("initdb"):
        return Path(found).resolve().parent
    wheel = importlib.util.find_spec("pgserver")  # its import warns, and only its files are needed
    if wheel is None or wheel.origin is None:
        raise RuntimeError(
            f"no PostgreSQL: set {VARIABLE}, install Debian's package postgresql, or pip install pgserver"
        )
    return Path(wheel.origin).parent / "pginstall" / "bin"


class Server:
    """A server of our own on a free port, in a directory of its own, which can be stopped in any mode."""

    def __init__(self) -> None:
        self.bin = binaries()
        self.folder = Path(tempfile.mkdtemp(prefix="cumulant-pg-", dir="/tmp"))
        self.folder.chmod(0o755)
        self.data = self.folder / "data"
        self.data.mkdir()
        self.user = None
        if os.geteuid() == 0:  # PostgreSQL refuses to run as root
            self.user = "postgres" if _known("postgres") else "nobody"
            shutil.chown(self.data, self.user)
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self._run("initdb", "-D", str(self.data), "-A", "trust", "-U", "postgres", "--no-sync", "-E", "UTF8")
        self.start()

    def _run(self, program: str, *arguments: str) -> None:
        done = subprocess.run(
            [str(self.bin / program), *arguments],
            user=self.user,
            cwd=self.data,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
            env={"LC_ALL": "C", "PATH": os.environ.get("PATH", "")},
        )
        if done.returncode:
            raise RuntimeError(f"{program} failed: {done.stderr}")

    def start(self) -> None:
        options = f"-c listen_addresses=127.0.0.1 -p {self.port} -k {self.data} -c max_connections=60"
        self._run("pg_ctl", "-D", str(self.data), "-o", options, "-l", str(self.data / "log"), "-w", "start")

    def stop(self, mode: str = "fast") -> None:
        self._run("pg_ctl", "-D", str(self.data), "-m", mode, "-w", "stop")

    @property
    def url(self) -> str:
        return f"postgresql://postgres@127.0.0.1:{self.port}/postgres"

    def close(self) -> None:
        self.stop("immediate")
        shutil.rmtree(self.folder, ignore_errors=True)


def _known(user: str) -> bool:
    import pwd

    return any(entry.pw_name == user for entry in pwd.getpwall())


@contextmanager
def address() -> Iterator[str]:
    """The address of a server on which databases may be made."""
    if given := os.environ.get(VARIABLE):
        yield given
        return
    server = Server()
    try:
        yield server.url
    finally:
        server.close()


def database(server: str) -> str:
    """The address of a new, empty schema on a server: as good as a database of its own, and made in no time."""
    import psycopg

    name = f"ledger_{uuid4().hex[:12]}"
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute(f"CREATE SCHEMA {name}")  # type: ignore[call-overload,unused-ignore]
    parts = urlsplit(server)
    return urlunsplit(parts._replace(query="&".join(filter(None, (parts.query, f"options=-csearch_path%3D{name}")))))


def schema(url: str) -> str:
    """Its name."""
    return url.rpartition("%3D")[2]
