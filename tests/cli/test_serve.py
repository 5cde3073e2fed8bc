"""`cumulant serve`: what it refuses before it listens, and that it answers on this machine only."""

from __future__ import annotations

import json
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request

import pytest

from cumulant.cli.app import answer


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--port", "0"], "port=0 must be between 1 and 65535"),
        (["--port", "99999"], "port=99999 must be between 1 and 65535"),
        (["--seconds", "0"], "seconds=0 must be between 0 and 86400"),
        (["--allow-spend"], "--allow-spend needs a --ledger to spend from"),
    ],
)
def test_refusals(capsys: pytest.CaptureFixture[str], arguments: list[str], said: str) -> None:
    assert answer(["serve", *arguments]) == 2
    assert said in capsys.readouterr().err


def test_without_the_extra(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    monkeypatch.delitem(sys.modules, "cumulant.web.connections", raising=False)  # another test may have imported it
    assert answer(["serve"]) == 1
    assert "pip install 'cumulant[web]'" in capsys.readouterr().err


def test_it_answers_and_stops() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "cumulant", "serve", "--port", str(port)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        try:
            assert server.stdout is not None
            assert server.stdout.readline().startswith(f"http://127.0.0.1:{port}/")
            asked = urllib.request.Request(
                f"http://127.0.0.1:{port}/api/epsilon",
                b'{"run": "PureDP(1) * 3", "delta": 0}',
                {"content-type": "application/json"},
            )
            for _ in range(600):
                try:
                    with urllib.request.urlopen(asked, timeout=60) as found:
                        assert json.load(found)["epsilon"] == 3
                    break
                except ConnectionError:
                    time.sleep(0.1)
                except urllib.error.URLError:  # not listening yet
                    time.sleep(0.1)
            else:
                pytest.fail("the page did not answer")
        finally:
            server.terminate()
        server.wait(30)


def test_a_port_that_is_taken(capsys: pytest.CaptureFixture[str]) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        assert answer(["serve", "--port", str(port)]) == 1  # 3 is for what a budget refuses
    found = capsys.readouterr()
    assert (
        found.err
        == f"error: port {port} of 127.0.0.1 cannot be used: Address already in use; choose another one by --port\n"
    )
    assert found.out == ""


def test_it_stops_while_questions_are_being_answered() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "cumulant", "serve", "--port", str(port), "--seconds", "600"]
    slow = {"run": "Gaussian(sigma=1) @ WithoutReplacement(rate=0.01) * 1000 + " * 200 + "PureDP(1)", "delta": 1e-6}
    body = json.dumps(slow | {"kind": "attack"}).encode()
    head = (
        f"POST /api/chart HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: application/json\r\ncontent-length: {len(body)}"
    )
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        server.stdout.readline()
        with socket.create_connection(("127.0.0.1", port), timeout=60) as line:
            line.sendall(f"{head}\r\n\r\n".encode() + body)
            time.sleep(3)
            server.send_signal(signal.SIGINT)
            assert server.wait(60) in (0, 130, -2)
