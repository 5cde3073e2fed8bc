"""Tests that are slow, so that `make test-fast` leaves them out.

`make test-times` measures every test by processor time, which does not depend on what else the machine does, and writes
tests/slow.txt anew: a function is slow if one of its cases takes longer than LIMIT, and a whole file if one takes longer
than FIXTURE, because that may be a fixture which the next test would pay for.
"""

import os
import resource
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

LIMIT = 0.05
"""Seconds of processor time; what is faster than that takes 41 s together, without collection (measured)."""

FIXTURE = 5.0
"""Seconds of processor time; the slowest fixture of a file that is not listed takes less."""

LIST = Path(__file__).with_name("slow.txt")
VARIABLE = "CUMULANT_TIMES"
"""Names the folder into which each process writes the times of its tests."""


def function(test: str) -> str:
    """Return the name of a test without the case."""
    return test.partition("[")[0]


def is_slow(test: str) -> bool:
    """Return True if the function or the file of a test is listed."""
    return not listed().isdisjoint((function(test), test.partition("::")[0]))


def is_long(test: str) -> bool:
    """Return True if the whole file of a test is listed."""
    return test.partition("::")[0] in listed()


@cache
def listed() -> frozenset[str]:
    """Return the functions that are slow."""
    return frozenset(LIST.read_text(encoding="utf-8").splitlines()) if LIST.exists() else frozenset()


def processor_time() -> float:
    """Return the seconds that this process and its children have used."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(each.ru_utime + each.ru_stime for each in used)


def timed(test: str) -> Iterator[None]:
    """Write down the processor time of a test, if that is asked for."""
    folder = os.environ.get(VARIABLE)
    start = processor_time() if folder else 0.0
    yield
    if folder:
        with (Path(folder) / f"{os.getpid()}.txt").open("a", encoding="utf-8") as file:
            file.write(f"{processor_time() - start:.3f}\t{test}\n")


def main(folder: str) -> None:
    """Write the list from the times in a folder."""
    lines = [line.split("\t") for path in Path(folder).glob("*.txt") for line in path.read_text("utf-8").splitlines()]
    whole = {test.partition("::")[0] for seconds, test in lines if float(seconds) > FIXTURE}
    slow = {
        function(test) for seconds, test in lines if float(seconds) > LIMIT and test.partition("::")[0] not in whole
    }
    slow |= whole
    LIST.write_text("".join(f"{each}\n" for each in sorted(slow)), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1])
