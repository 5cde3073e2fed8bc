"""A grid of settings, each answered as it would be alone.

One row per setting, on any executor, resumable.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from hashlib import sha256
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cumulant import domains, plot_registry
from cumulant.accounting.choices import BoundName, ConversionName, Method
from cumulant.accounting.question import DEFAULT_ACCURACY, DEFAULT_METHOD, Question, read_given
from cumulant.domains import Exact, Number
from cumulant.errors import CumulantError, InputError, shown
from cumulant.notation import parse
from cumulant.output import open_output
from cumulant.progress import watched

if TYPE_CHECKING:
    from concurrent.futures import Executor

_RESERVED = ("run", "epsilon", "delta", "error")
_CHUNK = 8
"""Settings that go to a worker at once."""

Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Sweep:
    """The rows of a sweep, in the order of the grid.

    A row has its parameters, the run, epsilon, delta, and what went wrong, if anything.

    A setting that cannot be answered has None for the number that was asked for, and a sentence in `error`.

    >>> import cumulant as cm
    >>> found = cm.sweep("Gaussian(sigma={sigma}) * {steps}", sigma=[1, 2, -1], steps=[10], delta=1e-5)
    >>> [(row["sigma"], row["epsilon"]) for row in found if not row["error"]]
    [('1', 17.85), ('2', 7.511)]
    >>> found.failures
    1
    """

    parameters: tuple[str, ...]
    rows: tuple[Row, ...]
    found: str = "epsilon"  # or "delta": what was asked for
    expression: str = ""

    def __len__(self) -> int:
        return len(self.rows)

    def __iter__(self) -> Iterator[Row]:
        return iter(self.rows)

    @property
    def names(self) -> tuple[str, ...]:
        """Return the names of the columns."""
        return (*self.parameters, *_RESERVED)

    @property
    def failures(self) -> int:
        """Return how many settings have no answer."""
        return sum(bool(row["error"]) for row in self.rows)

    def columns(self) -> dict[str, list[Any]]:
        """Return a list per column, as pandas.DataFrame and polars.DataFrame take it.

        Settings that are numbers are numbers there.

        Rows keep how a setting was spelled, so that 1/3 is not rounded; where a name is among them a column stays as it is.

        >>> import cumulant as cm
        >>> cm.sweep("PureDP(epsilon={e}) * {k}", e=["1/8", "0.5"], k=[1], delta=0).columns()["e"]
        [0.125, 0.5]
        """
        columns = {name: [row[name] for row in self.rows] for name in self.names}
        return columns | {name: _numbers(columns[name]) for name in self.parameters}

    def to_csv(self, path: str | Path) -> None:
        """Write comma-separated values; a missing number is empty, infinity is `inf`."""
        import csv

        with open_output(path) as file:
            writer = csv.DictWriter(file, self.names)
            writer.writeheader()
            writer.writerows({name: "" if row[name] is None else row[name] for name in self.names} for row in self.rows)

    def to_parquet(self, path: str | Path) -> None:
        """Write the table as Parquet; needs the extra `parquet`."""
        try:
            from pyarrow import parquet, table
        except ImportError as error:
            raise InputError("to_parquet needs pyarrow; install cumulant[parquet]") from error
        with open_output(path, binary=True) as file:
            parquet.write_table(table(self.columns()), file)

    def plot(self, out: str | Path | None = None, *, kind: str | None = None) -> Any:
        """Draw a line where one setting varies, a heat map where two do, panels where more do.

        Needs cumulant[plot].

        `kind="lines"` draws two settings as several lines. Gives a matplotlib figure, which a notebook shows; a file `out` is
        written as PNG, SVG or PDF, with the table as CSV beside it.

        >>> import cumulant as cm
        >>> figure = cm.sweep("PureDP(epsilon={e}) * {k}", e=["0.1", "0.2"], k=[1, 10, 100], delta=0).plot()
        >>> figure.axes[0].get_xlabel(), figure.axes[0].get_ylabel()
        ('e', 'k')
        """
        return plot_registry.drawn("sweep", self, out, kind)


def sweep(
    expression: str,
    *,
    delta: Number | None = None,
    epsilon: Number | None = None,
    method: Method = DEFAULT_METHOD,
    bound: BoundName | None = None,
    conversion: ConversionName | None = None,
    accuracy: Number = DEFAULT_ACCURACY,
    executor: Executor | None = None,
    journal: str | Path | None = None,
    **parameters: Iterable[Number],
) -> Sweep:
    """Ask every combination of the parameters for epsilon at this delta, or delta at epsilon.

    The expression is a template: `{sigma}` stands for each of `sigma=[...]`. Each row is exactly what the same question about
    that run alone gives, whatever the executor: None works here, otherwise any executor of `concurrent.futures`, such as
    `ProcessPoolExecutor()`, or `client.get_executor()` of Dask. One failing setting is a row with its error.

    `journal` names a file of JSON lines to which every answered setting is appended at once; a sweep that was killed continues
    from it where it was, keyed by the exact values of its parameters.

    >>> import cumulant as cm
    >>> text = "Gaussian(sigma={sigma}) @ WithoutReplacement(rate={rate}) * {steps}"
    >>> table = cm.sweep(text, sigma=[4, 5], rate=["1/1000"], steps=[600_000], delta=1e-8)
    >>> [row["epsilon"] for row in table]
    [1.03, 0.807]
    """
    asked, value = read_given(delta, epsilon)
    question = Question.parse_query(method, bound, conversion, accuracy, asked).with_value(value)
    grid = _grid(expression, parameters)
    known = _Journal.open_file(journal, expression, question) if journal is not None else None
    done = {} if known is None else dict(known.rows)
    todo = [setting for setting in grid if setting.key not in done]
    chunks = [todo[i : i + _CHUNK] for i in range(0, len(todo), _CHUNK)]
    for part in _run_chunks(chunks, question, executor):
        for key, row, kept in part:
            done[key] = row
            if known is not None and kept:
                known.write(key, row)
    rows = tuple(dict(setting.texts) | done[setting.key] for setting in grid)
    return Sweep(tuple(parameters), rows, "epsilon" if asked == "delta" else "delta", expression)


@dataclass(frozen=True, slots=True)
class _Setting:
    """One point of the grid.

    It has the spelling of each parameter, the text of the run, and what makes it the same setting.
    """

    texts: tuple[tuple[str, str], ...]
    run: str
    key: str


def _grid(expression: str, parameters: Mapping[str, Iterable[Number]]) -> list[_Setting]:
    if not isinstance(expression, str):
        raise InputError(f"expression={shown(expression)} must be a text with {{names}} in braces")
    values: dict[str, list[_Value]] = {}
    for name, listed in parameters.items():
        if name in _RESERVED:
            raise InputError(f"a parameter named {name!r} would hide a column; choose another name in the braces")
        if "{" + name + "}" not in expression:
            raise InputError(f"{name}=... has no place in the expression; write {{{name}}} where it belongs")
        values[name] = [_value(name, each) for each in domains.listed(name, listed)]
    settings = []
    for point in product(*values.values()):
        run, named = expression, dict(zip(values, point, strict=True))
        for name, value in named.items():
            run = run.replace("{" + name + "}", value.notation)
        key = json.dumps({name: value.exact for name, value in named.items()}, sort_keys=True)
        settings.append(_Setting(tuple((name, value.text) for name, value in named.items()), run, key))
    return settings


@dataclass(frozen=True, slots=True)
class _Value:
    """One value of a parameter: as spelled, as it stands in an expression, and exactly.

    0.001 and "1/1000" are one.
    """

    text: str
    notation: str
    exact: str


def _value(name: str, value: Any) -> _Value:
    try:
        number = Exact(value)
    except InputError as error:
        if isinstance(value, str):
            return _Value(value, value, value)  # a name, such as that of a geometry
        raise InputError(f"{name}={shown(value)} must be a number or a text: {error}") from None
    return _Value(number.text, number.notation, str(Fraction(number)))


def _numbers(texts: list[str]) -> list[Any]:
    """Convert to whole numbers that fit into 64 bits, to floats, or leave as they are."""
    try:
        numbers = [Exact(text) for text in texts]
    except InputError:
        return list(texts)
    whole = all(number.denominator == 1 and abs(number) < 2**63 for number in numbers)
    return [int(number) if whole else float(number) for number in numbers]


Answered = tuple[str, Row, bool]
"""Key, row, and whether the row is a fact about the setting and not about a worker."""


def _run_chunks(
    chunks: Sequence[list[_Setting]], question: Question, executor: Executor | None
) -> Iterator[list[Answered]]:
    if executor is None:
        for chunk in watched(chunks, "parts of the sweep"):
            yield _answers(chunk, question)
        return
    from concurrent.futures import as_completed

    futures = {executor.submit(_answers, chunk, question): chunk for chunk in chunks}
    finished = as_completed(futures)
    for _ in watched(chunks, "parts of the sweep"):
        future = next(finished)
        try:
            yield future.result()
        except Exception as error:  # a worker that died, or an executor that was closed
            yield [
                (setting.key, _row(setting.run, question, None, _sentence(error)), False) for setting in futures[future]
            ]


def _answers(chunk: list[_Setting], question: Question) -> list[Answered]:
    """Return the rows of some settings; a failing one has its error."""
    found = []
    for setting in chunk:
        try:
            run = parse(setting.run)
            ask = run.epsilon if question.asked == "delta" else run.delta
            value = ask(
                question.value,
                method=question.method,
                bound=question.bound,
                conversion=question.conversion,
                accuracy=question.accuracy,
            )
            found.append((setting.key, _row(str(run), question, float(value), ""), True))
        except CumulantError as error:
            found.append((setting.key, _row(setting.run, question, None, _sentence(error)), True))
    return found


def _row(run: str, question: Question, value: float | None, error: str) -> Row:
    stated = question.as_float
    epsilon, delta = (stated, value) if question.asked == "epsilon" else (value, stated)
    return {"run": run, "epsilon": epsilon, "delta": delta, "error": error}


def _sentence(error: BaseException) -> str:
    text = " ".join(str(error).split())
    return text if isinstance(error, CumulantError) else f"{type(error).__name__}: {text}"


@dataclass(frozen=True, slots=True)
class _Journal:
    """A file of JSON lines: the question, then each answered setting with its digest."""

    path: Path
    rows: dict[str, Row]
    head: Mapping[str, Any]

    @classmethod
    def open_file(cls, path: str | Path, expression: str, question: Question) -> _Journal:
        """Open the journal of this sweep, a new one or what is left of a killed one.

        An unfinished last line is cut off.
        """
        from importlib.metadata import version

        path = Path(path)
        head = {
            "sweep": expression,
            "asked": question.asked,
            "value": str(question.value),
            "method": question.method,
            "bound": question.bound,
            "conversion": question.conversion,
            "accuracy": str(question.accuracy),
            "cumulant": version("cumulant"),
        }
        try:
            lines = path.read_bytes().splitlines(keepends=True) if path.exists() else []
        except OSError as error:
            raise InputError(f"journal={shown(str(path))} cannot be read: {error}") from error
        whole = [line for line in lines if line.endswith(b"\n")]
        if not whole:
            with open_output(path, binary=True) as file:
                file.write(_line(head))
            return cls(path, {}, head)
        try:
            first, *others = (json.loads(line) for line in whole)
            rows = {each["key"]: _read(each["row"]) for each in others}
            for number, each in enumerate(others, 2):
                if each["digest"] != _digest(first, each["key"], each["row"]):
                    raise ValueError(f"line {number} was changed")
        except (ValueError, KeyError, TypeError) as error:
            raise InputError(f"journal={shown(str(path))} is damaged ({error!r}); remove it to start afresh") from error
        if first != head:
            raise InputError(
                f"journal={shown(str(path))} belongs to another sweep, or to another release; remove it to start afresh"
            )
        if len(whole) < len(lines):
            with open_output(path, binary=True) as file:
                file.write(b"".join(whole))
        return cls(path, rows, head)

    def write(self, key: str, row: Row) -> None:
        plain = {name: _plain(value) for name, value in row.items()}
        with self.path.open("ab") as file:
            file.write(_line({"key": key, "row": plain, "digest": _digest(self.head, key, plain)}))


def _digest(head: Mapping[str, Any], key: str, row: Mapping[str, Any]) -> str:
    """Return SHA-256 of a row together with its question.

    A number that was edited, or comes from elsewhere, is not believed.
    """
    return sha256(json.dumps([head, key, row], sort_keys=True).encode()).hexdigest()


def _line(state: Mapping[str, Any]) -> bytes:
    return (json.dumps(state) + "\n").encode()


def _plain(value: Any) -> Any:
    return "inf" if isinstance(value, float) and math.isinf(value) else value


def _read(row: Mapping[str, Any]) -> Row:
    return {name: math.inf if row[name] == "inf" and name in ("epsilon", "delta") else row[name] for name in _RESERVED}
