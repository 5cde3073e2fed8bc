"""The bar appears where someone looks and work takes long, and nowhere else."""

import io
import sys

import pytest

from cumulant import progress


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("stream", "patience", "seen"), [(Terminal, 0.0, True), (Terminal, 1e9, False), (io.StringIO, 0.0, False)]
)
def test_a_bar_for_the_patient_at_a_terminal(
    monkeypatch: pytest.MonkeyPatch, stream: type[io.StringIO], patience: float, seen: bool
) -> None:
    written = stream()
    monkeypatch.setattr(sys, "stderr", written)
    monkeypatch.setattr(progress, "PATIENCE", patience)
    assert list(progress.watched([3, 1, 2], "counts")) == [3, 1, 2]
    assert ("2 of 3 counts" in written.getvalue()) is seen
    assert bool(written.getvalue()) is seen


def test_without_a_stream_nothing_is_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", None)
    assert list(progress.watched("ab", "letters")) == ["a", "b"]
