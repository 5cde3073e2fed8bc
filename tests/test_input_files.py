"""Files are read up to a size, and their names are cut where they are long."""

import io
from pathlib import Path

import pytest

from cumulant.errors import InputError
from cumulant.input_files import MEGABYTE, brief_path, lines_of, read_text


def test_a_file_is_read_up_to_its_size(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = tmp_path / "some.txt"
    place.write_bytes(b"1" * MEGABYTE)
    assert read_text(place, largest=MEGABYTE) == "1" * MEGABYTE
    place.write_bytes(b"1" * (MEGABYTE + 1))
    with pytest.raises(InputError, match=r"some.txt is larger than 1 MB; name a smaller file"):
        read_text(place, largest=MEGABYTE)
    monkeypatch.setattr("sys.stdin", io.StringIO("1" * (MEGABYTE + 1)))
    with pytest.raises(InputError, match=r"^the standard input is larger than 1 MB"):
        read_text("-", largest=MEGABYTE)


def test_lines_come_as_they_are(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cumulant.input_files.LONGEST_LINE", 4)
    place = tmp_path / "some.txt"
    place.write_text("one\n\ntwo")
    with place.open() as file:
        assert list(lines_of(file)) == ["one\n", "\n", "two"]
    place.write_text("three\n")
    with place.open() as file, pytest.raises(InputError, match=r"a line of .* is longer than"):
        list(lines_of(file))


def test_a_long_name_is_cut() -> None:
    assert brief_path(Path("a.json")) == "a.json"
    assert len(brief_path("n" * 300)) < 50
