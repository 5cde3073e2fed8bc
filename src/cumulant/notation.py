"""Text to expression, the inverse of str().

An own tokenizer and a closed grammar; nothing in the text is executed.

run       := sum ('|' sum)*                                      '|' binds less than '+', as in Python
sum       := term ('+' term)*
term      := [times '*'] atom ('@' scheme | '*' times)*          left to right, as in Python
atom      := NAME '(' parameters ')' | '(' run ')' | 'parallel' '(' run, run, ..., [by="word"], [relation="word"] ')'
scheme    := NAME '(' parameters ')'
parameter := [NAME '='] value                                    values without a name come first, in declared order
value     := scalar | '[' value, ... ']'                         lists of lists are rows of a matrix
scalar    := number | number '%' | number '/' number | "quoted number or word"

Numbers keep their spelling, and a quotient of two is exact, as rate=256/60000 is; there is no other arithmetic.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from fractions import Fraction
from functools import lru_cache
from itertools import takewhile
from typing import Any, NamedTuple, TypeVar

from cumulant.accounting.run import RunRecord, reader
from cumulant.domains import COUNT, SUFFIXES, Exact, Number, spelling, without_suffix
from cumulant.errors import InputError, NotationError
from cumulant.hints import CALLED, EXPLAINED, GREEK, INSTEAD, MEANT, REFUSED
from cumulant.mechanisms.mechanism import COMBINATORS, MECHANISMS, Expression, Mechanism, run
from cumulant.sampling.scheme import SCHEMES, Scheme

LONGEST_TEXT = 1_000_000
DEEPEST_NESTING = 50
MOST_NAMES = 24
"""Names that an error lists; convention: they fit into five lines."""

DEEPEST_LIST = 1
"""Lists inside of a list: the rows of a matrix (convention)."""

_WHOLE = re.compile(r"[0-9_]+")
_PLACE = re.compile(r"at position (\d+)")

_TOKEN = re.compile(
    r"""
    (?P<space>  \s+ )
  | (?P<number> (?: \d(?:_?\d)* (?:\.(?:\d(?:_?\d)*)?)? | \.\d(?:_?\d)* ) (?:[eE][+-]?\d(?:_?\d)*)? )
  | (?P<name>   [A-Za-z_]\w* | [σεδργ] )
  | (?P<quoted> "[^"\\\n]*" | '[^'\\\n]*' )
  | (?P<sign>   [-+*/@()\[\],=?%|] )
    """,
    re.VERBOSE | re.ASCII,
)

_LETTER = re.compile(f"[{''.join(SUFFIXES)}](?!\\w)", re.ASCII)

T = TypeVar("T")


# ---- tokens


class Token(NamedTuple):
    """A piece of text, its kind and its place."""

    kind: str
    text: str
    position: int

    def __str__(self) -> str:
        shown = self.text if len(self.text) <= 40 else self.text[:37] + "..."
        return f"{shown!r} at position {self.position}" if self.kind != "end" else f"end at position {self.position}"


def tokens(text: str) -> Iterator[Token]:
    """Yield the tokens one by one; then the end, for ever.

    So a long text costs nothing behind its first mistake.
    """
    position = 0
    while position < len(text):
        match = _TOKEN.match(text, position)
        if match is None:
            raise NotationError(f"unexpected {text[position]!r} at position {position}{_hint(text[position])}")
        if match.lastgroup == "number" and (letter := _LETTER.match(text, match.end())) is not None:
            raise NotationError(
                f"{match[0]}{letter[0]} at position {position} has a letter behind the number; "
                f"write {without_suffix(match[0], letter[0])}"
            )
        if match.lastgroup != "space":
            yield Token(str(match.lastgroup), GREEK.get(match[0], match[0]), position)
        position = match.end()
    while True:
        yield Token("end", "", position)


def _hint(character: str) -> str:
    """Say what an unexpected character may have been meant to be; empty if nothing is known."""
    match character:
        case '"' | "'":
            return "; the quoted text does not end on its line, or holds a backslash"
        case ".":
            return "; names have no parts, write Gaussian(sigma=5), or what Python prints for Gaussian.from_tree(...)"
    return f"; {MEANT[character]}" if character in MEANT else ""


# ---- the grammar


def parse(text: str, unknown: Number | None = None) -> Expression:
    """Read the expression that this text spells.

    `unknown` is the number that every `?` in it stands for.

    `parse(str(run)) == run`. Whatever is wrong with the text is an InputError of one sentence, with the position.

    >>> parse("Gaussian(sigma=5) @ WithoutReplacement(rate=0.001) * 600_000 + Laplace(scale=2)")
    Gaussian(sigma=5) @ WithoutReplacement(rate=0.001) * 600000 + Laplace(scale=2)
    >>> parse("3 * Laplace(2) @ WithoutReplacement(sample=256, population=60_000)")
    (Laplace(scale=2) * 3) @ WithoutReplacement(sample=256, population=60000)
    >>> parse("Gaussian(sigma=?)", unknown=0.5)
    Gaussian(sigma=0.5)
    """
    return _read(text, None if unknown is None else Exact(unknown).text)[0]


@reader
def parse_record(text: str) -> RunRecord:
    """Read the record of a run from its text; a stored guarantee finds its run by it."""
    return parse(text).record()


class Unknown(NamedTuple):
    """The parameter that a `?` stands for: one of the mechanism or scheme `owner`.

    It is given with others, or is the number of times.
    """

    owner: str
    name: str
    others: Mapping[str, Any]


def find_unknown(text: str) -> Unknown:
    """Find the parameter that the only `?` in this text stands for, whatever its number.

    >>> find_unknown("Laplace(2) @ WithoutReplacement(sample=?, population=60_000) * 10")
    Unknown(owner='WithoutReplacement', name='sample', others={'population': '60000'})
    >>> find_unknown("? * Laplace(2)")
    Unknown(owner='', name='times', others={})
    """
    count = sum(token.text == "?" for token in takewhile(lambda token: token.kind != "end", tokens(text)))
    if count > 1:
        raise NotationError(f"the expression has {count} '?'; leave one and write numbers for the others")
    refused = []
    for number in ("1", "0.5", str(COUNT.high), "1e-9", "0.999999999"):  # with one of them it is an expression, if ever
        try:
            owner, name, given = _read(text, number)[1][0]
            return Unknown(owner, name, {other: value for other, value in given.items() if other != name})
        except NotationError:
            raise
        except InputError as error:
            refused.append(error)
    raise refused[0]


def _read(text: str, unknown: str | None) -> tuple[Expression, list[Unknown]]:
    """Return the expression, and the parameter that each `?` in it stood for."""
    if not isinstance(text, str):
        raise NotationError(f"{type(text).__name__} is not text; give an expression such as 'Gaussian(sigma=5)'")
    if len(text) > LONGEST_TEXT:
        raise NotationError(f"the expression has {len(text)} characters; at most {LONGEST_TEXT} are read")
    if not text.strip():
        raise NotationError("the expression is empty; write for example Gaussian(sigma=5)")
    try:
        parser = _Parser(tokens(text), unknown)
        return parser.expression(), parser.solved
    except InputError as error:  # where it is, for whoever shows the text
        place = _PLACE.search(str(error)) if error.position is None else None
        error.text, error.position = text, int(place[1]) if place else error.position
        raise


class _Parser:
    """One pass over the tokens.

    Every method starts at the next token and consumes what it names.
    """

    def __init__(self, tokens: Iterator[Token], unknown: str | None) -> None:
        self.tokens = tokens
        self.next, self.after = next(tokens), next(tokens)
        self.unknown = unknown
        self.parentheses = 0
        self.reading = Unknown("", "", {})
        self.solved: list[Unknown] = []

    def expression(self) -> Expression:
        found, _ = self.run()
        if self.next.kind != "end":
            raise NotationError(f"unexpected {self.next}; after a mechanism come '@', '*', '+', '|' or the end")
        if self.unknown is not None and not self.solved:
            raise NotationError(
                "the expression has no '?' to solve for; write ? for the number that is looked for, like Laplace(scale=?)"
            )
        return found

    # ---- tokens

    def take(self) -> Token:
        token = self.next
        self.next, self.after = self.after, next(self.tokens)
        return token

    def accept(self, sign: str) -> bool:
        found = self.next.kind == "sign" and self.next.text == sign
        if found:
            self.take()
        return found

    def expect(self, sign: str, where: str) -> None:
        if not self.accept(sign):
            raise NotationError(f"unexpected {self.next}; {where} {sign!r} is expected")

    # ---- grammar; the number beside an expression says how many samples are drawn inside each other

    def run(self) -> tuple[Expression, int]:
        parts = [self.sum()]
        while self.accept("|"):
            parts.append(self.sum())
        return parts[0] if len(parts) == 1 else self.together(parts)

    def parallel(self) -> tuple[Expression, int]:
        """Read the one call with expressions, behind its name."""
        self.expect("(", "after parallel a")
        parts: list[tuple[Expression, int]] = []
        given: dict[str, str] = {}
        while True:
            if self.next.text in ("by", "relation") and self.after.text == "=":
                name = self.take().text
                self.take()
                given[name] = self.scalar()
            else:
                parts.append(self.run())
            if self.accept(")"):
                return self.together(parts, **given)
            self.expect(",", "in parallel ')' or")

    def together(self, parts: list[tuple[Expression, int]], **given: str) -> tuple[Expression, int]:
        return COMBINATORS["parallel"](*(part for part, _ in parts), **given), max(
            (depth for _, depth in parts), default=0
        )

    def sum(self) -> tuple[Expression, int]:
        # One dictionary for all terms: adding run by run would copy it once per term.
        terms: dict[Mechanism, int] = {}
        deepest = 0
        while True:
            part, depth = self.term()
            deepest = max(deepest, depth)
            for mechanism, times in part.terms.items():
                terms[mechanism] = terms.get(mechanism, 0) + times
            if not self.accept("+"):
                return run(terms), deepest

    def term(self) -> tuple[Expression, int]:
        times = 1
        if self.next.kind == "number" or self.next.text == "?":
            times = self.times()
            self.expect("*", "after a number of repetitions")
        found, depth = self.atom()
        if times > 1:
            found = found * times
        while True:
            if self.accept("*"):
                found = found * self.times()
            elif self.next.text == "@":
                depth += 1
                if depth > DEEPEST_NESTING:
                    raise NotationError(f"more than {DEEPEST_NESTING} samples of samples {self.next}")
                self.take()
                found = found @ self.scheme()
            else:
                return found, depth

    def atom(self) -> tuple[Expression, int]:
        start = self.next
        if self.accept("("):
            self.parentheses += 1
            if self.parentheses > DEEPEST_NESTING:
                raise NotationError(f"more than {DEEPEST_NESTING} open parentheses {start}")
            found = self.run()
            self.expect(")", f"for the '(' at position {start.position} a")
            self.parentheses -= 1
            return found
        if start.text == "parallel" and self.after.text == "(":
            self.take()
            return self.parallel()
        if start.text in SCHEMES:
            raise NotationError(f"unexpected {start}: it draws samples; write mechanism @ {start.text}(...)")
        return self.call(MECHANISMS, "a mechanism"), 0

    def scheme(self) -> Scheme:
        if self.next.text in MECHANISMS:
            raise NotationError(f"unexpected {self.next}; after '@' comes a sampling scheme: {', '.join(SCHEMES)}")
        return self.call(SCHEMES, "a sampling scheme")

    def times(self) -> int:
        self.reading = Unknown("", "times", {})
        token = self.take()
        text = (self.replaced(token) if token.text == "?" else token.text).replace("_", "")
        if token.text == "*":
            raise NotationError(
                f"unexpected {token}: there are no powers; write Gaussian(sigma=5) * 1000 for repetitions"
            )
        if token.kind == "name" or token.text == "(":
            raise NotationError(f"unexpected {token}; after '*' comes a number of repetitions, such as 600000")
        if token.kind == "number" and not _WHOLE.fullmatch(text) and Exact(text).denominator == 1:
            text = str(int(Exact(text)))  # 1e3 is a whole number too
        if not _WHOLE.fullmatch(text):
            raise NotationError(f"unexpected {token}; a number of repetitions is a whole number >= 1, such as 600000")
        if self.next.text == ",":
            raise NotationError(
                f"unexpected {self.next}; thousands are not separated by commas, write 600000 or 600_000"
            )
        try:
            return int(COUNT.check("times", text))
        except InputError as error:
            error.position = token.position
            raise

    def replaced(self, token: Token) -> str:
        if self.unknown is None:
            raise NotationError(
                f"unexpected {token}: it stands for an unknown, which only calibrate solves; write a number"
            )
        self.solved.append(self.reading)
        return self.unknown

    # ---- calls

    def call(self, known: Mapping[str, Callable[..., T]], kind: str) -> T:
        name = self.take()
        if name.kind != "name":
            raise NotationError(f"unexpected {name}; {kind} is expected, such as {_example(known)}")
        if name.text not in known and (why := REFUSED.get(name.text.lower())):
            raise NotationError(
                f"there is no {name}: {why}; Shuffle(reports=...) is about reports of local randomizers"
            )
        if name.text not in known:
            raise NotationError(f"unknown name {name}{_suggestion(name.text, known, {**MECHANISMS, **SCHEMES})}")
        declared = _signature(known[name.text])
        self.expect("(", f"after {name.text} a")
        given: dict[str, Any] = {}
        places: dict[str, int] = {}
        ordered = True
        if not self.accept(")"):
            while True:
                start = self.next.position
                ordered = self.parameter(name, declared, given, ordered)
                places[next(reversed(given))] = start
                if self.accept(")"):
                    break
                self.expect(",", "after a parameter ')' or")
        missing = [each for each, required in declared.items() if required and each not in given]
        if missing:
            wanted = ", ".join(f"{each}=..." for each, required in declared.items() if required)
            raise NotationError(f"{name} needs {' and '.join(missing)}; write {name.text}({wanted})")
        try:
            return known[name.text](**given)
        except InputError as error:
            error.position = places.get(str(error).partition("=")[0], name.position)
            raise

    def parameter(self, owner: Token, declared: Mapping[str, bool], given: dict[str, Any], ordered: bool) -> bool:
        """Add one parameter to those given; return whether the next may come without a name."""
        token = self.next
        named = token.kind == "name" and self.after.text == "="
        if named:
            name = self.take().text
            self.take()
            if name not in declared:
                meant = f"; {INSTEAD[name]}" if name in INSTEAD else _suggestion(name, declared, declared)
                raise NotationError(f"{owner.text} has no parameter {token}{meant}")
            if name in given:
                raise NotationError(f"the parameter {token} is given twice")
        else:
            names = list(declared)
            if not ordered:
                raise NotationError(f"the value {token} has no name but follows a named one; write name=value")
            if len(given) == len(names):
                raise NotationError(
                    f"the value {token} is one too many; {owner.text} takes {', '.join(names) or 'none'}"
                )
            name = names[len(given)]
        self.reading = Unknown(owner.text, name, given)
        given[name] = self.value()
        return not named

    def value(self, depth: int = 0) -> Any:
        if depth > DEEPEST_LIST or not self.accept("["):
            return self.scalar()
        values: list[Any] = []
        if self.accept("]"):
            return values
        while True:
            values.append(self.value(depth + 1))
            if self.accept("]"):
                return values
            self.expect(",", "in a list ']' or")

    def scalar(self) -> str:
        token = self.take()
        if token.kind == "sign" and token.text in "+-" and self.next.kind == "number":
            return self.quotient(token.text.replace("+", "") + self.take().text.replace("_", ""))
        match token.kind:
            case "number":
                return self.quotient(token.text.replace("_", ""))
            case "quoted":
                return token.text[1:-1]
            case "name":
                raise NotationError(f'unexpected {token}; a value is a number, and a word is quoted, like "add-remove"')
        if token.text == "?":
            return self.replaced(token)
        raise NotationError(f"unexpected {token}; a value is expected, such as 5, 1e-5 or 256/60000")

    def quotient(self, number: str) -> str:
        """Return the number, or its exact quotient or percentage.

        A quotient is by the number behind a '/', hundredths stand before a '%'.
        """
        if self.accept("%"):
            return spelling(Exact(number) / 100)
        if not self.accept("/"):
            return number
        token = self.take()
        if token.kind != "number":
            raise NotationError(f"unexpected {token}; a quotient is one of two numbers, such as 256/60000")
        divisor = token.text.replace("_", "")
        if self.next.text == "/":
            raise NotationError(f"unexpected {self.next}; a quotient is one of two numbers, such as 256/60000")
        if Exact(divisor) == 0:
            raise NotationError(f"{number}/{divisor} divides by zero at position {token.position}")
        if _WHOLE.fullmatch(divisor):
            return f"{number}/{divisor}"
        return spelling(Fraction(Exact(number)) / Exact(divisor))


@lru_cache(maxsize=256)
def _signature(called: Callable[..., Any]) -> Mapping[str, bool]:
    """Return the parameters in declared order, and whether each must be given."""
    found = inspect.signature(called).parameters
    return {name: each.default is inspect.Parameter.empty for name, each in found.items()}


def _suggestion(name: str, allowed: Iterable[str], similar: Iterable[str]) -> str:
    if name.lower() in EXPLAINED:
        return f"; ask: cumulant explain {name.lower()}"
    names = {each.lower(): each for each in similar}
    if (meant := CALLED.get(name.lower(), "").lower()) in names:
        return f"; did you mean {names[meant]!r}?"
    from difflib import get_close_matches

    close = get_close_matches(name[:60].lower(), names, n=1)
    return f"; did you mean {names[close[0]]!r}?" if close else f"; known are {_shortened(list(allowed))}"


def _shortened(names: list[str]) -> str:
    """Return the names as a list that is short enough to read."""
    shown = names[:MOST_NAMES]
    more = len(names) - len(shown)
    return ", ".join(shown) + (f" and {more} more" if more else "")


def _example(known: Mapping[str, Callable[..., Any]]) -> str:
    return "Gaussian(sigma=5)" if known is MECHANISMS else "WithoutReplacement(rate=0.001)"
