"""Parameter domains, declared once.

For checks, messages, documentation and Hypothesis strategies.

Numbers are exact. Text, int, Fraction and Decimal mean what they say; a float means the decimal it prints as, so that
0.001 is 1/1000 in Python as in the shell.
"""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np

from cumulant.errors import InputError, shown

Number = int | float | Fraction | Decimal | str
"""A number as every numeric parameter accepts it."""

_TEXT = re.compile(r"[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE]([+-]?\d+))?(?:/\d+)?")
_UNDERSCORES = re.compile(r"(?<=[0-9])_(?=[0-9])")
_LONGEST_TEXT = 400
"""Characters of a decimal, at most."""

_LONGEST_QUOTIENT = 2500
"""Characters of a quotient, at most: every fraction that is short enough reads back from its own text."""

SUFFIXES = {"k": 3, "K": 3, "M": 6, "G": 9, "B": 9}
"""Letters that people write behind a number, and the powers of ten that they stand for (convention)."""

_SUFFIXED = re.compile(r"(?:\d{1,99}/)?(\d{1,99}(?:\.\d{1,99})?)([kKMGB])")

_LARGEST_EXPONENT = 400
_MOST_BITS = 4096
_FLOATS = 2**1023
_MOST_DIGITS = 24


class Exact(Fraction):
    """A rational number that remembers how it was spelled.

    Equality and hash are those of the value.

    >>> Exact("0.50") == Exact("1/2") == Exact(0.5)
    True
    >>> Exact(0.001), float(Exact("256/60000"))
    (Exact('0.001'), 0.004266666666666667)
    """

    __slots__ = ("text",)
    text: str

    def __new__(cls, value: Number, denominator: int = 1) -> Exact:
        if isinstance(value, Exact) and denominator == 1:
            return value
        # Fraction builds cls(numerator, denominator) when it compares with a float
        fraction, text = _read(value if denominator == 1 else Fraction(value, denominator))  # type: ignore[arg-type]
        self = super().__new__(cls, fraction)
        self.text = text if fraction else text.removeprefix("-")
        return self

    def __repr__(self) -> str:
        return f"Exact({self.text!r})"

    def __str__(self) -> str:
        return self.text

    def __reduce__(self) -> tuple[type[Exact], tuple[str]]:
        return Exact, (self.text,)

    def __copy__(self) -> Exact:
        return self

    def __deepcopy__(self, memo: object) -> Exact:
        return self

    @property
    def notation(self) -> str:
        """Return the spelling as it stands in an expression.

        A quotient is quoted, because the notation has no arithmetic.
        """
        return f'"{self.text}"' if "/" in self.text else self.text


def _read(value: Any) -> tuple[Fraction, str]:
    """Return the exact value and its spelling; else InputError with an example of a number."""
    match value:
        case bool() | np.bool_():
            raise InputError(f"{shown(value)} is a truth value, not a number")
        case int() | np.integer():
            value = operator.index(value)
            if value.bit_length() > _MOST_BITS:
                raise InputError(f"an integer of {value.bit_length()} bits is too long; at most {_MOST_BITS} bits")
            return Fraction(value), str(value)
        case float() | np.floating():
            if not math.isfinite(value):
                raise InputError(f"{float(value)} is not a finite number")
            # a subclass may display another number than it has, so floats are asked for their own spelling
            text = float.__repr__(value) if isinstance(value, float) else str(value)
            return Fraction(text), _tidy(text)
        case str():
            return _read_text(value)
        case Decimal():
            if not value.is_finite():
                raise InputError(f"{value} is not a finite number")
            return _read_text(str(value))
        case Fraction():
            return _short(value), spelling(value)
    raise InputError(f"{shown(value)} is not a number; give an int, float, Fraction, Decimal or text such as '1/3'")


def _short(value: Fraction) -> Fraction:
    """Return the value, if it is not too long."""
    if max(value.numerator.bit_length(), value.denominator.bit_length()) > _MOST_BITS:
        raise InputError(f"a fraction of more than {_MOST_BITS} bits is too long")
    return value


def _read_text(text: str) -> tuple[Fraction, str]:
    stripped = _UNDERSCORES.sub("", text.strip())
    if stripped.endswith("%"):
        share = _short(_read_text(stripped[:-1])[0] / 100)
        return share, spelling(share)
    longest = _LONGEST_QUOTIENT if "/" in stripped else _LONGEST_TEXT
    shape = _TEXT.fullmatch(stripped) if len(stripped) <= longest else None
    if shape is None or not stripped.isascii():
        raise InputError(f"{text[:40]!r} is not a number; {_meant(stripped)}write it like 5, 0.001, 1e-5 or 256/60000")
    if shape[1] is not None and (len(shape[1]) > 5 or abs(int(shape[1])) > _LARGEST_EXPONENT):
        raise InputError(
            f"{stripped[:40]} is out of range; exponents go from -{_LARGEST_EXPONENT} to {_LARGEST_EXPONENT}"
        )
    numerator, _, denominator = stripped.partition("/")
    if denominator and int(denominator) == 0:
        raise InputError(f"{stripped[:40]} divides by zero")
    return _short(Fraction(numerator) / int(denominator or 1)), stripped


def _meant(text: str) -> str:
    """Suggest what else the text may have been meant to be."""
    if "^" in text or "**" in text:
        return "powers of ten are written with e; "
    if (short := _SUFFIXED.fullmatch(text)) is not None:
        return f"{short[1]}{short[2]} is {without_suffix(short[1], short[2])}; "
    return "a decimal has a point, and thousands are not separated; " if re.fullmatch(r"[\d.,]{1,99}", text) else ""


def without_suffix(number: str, letter: str) -> str:
    """Return the number in full that people write with a letter behind it.

    >>> without_suffix("1.2", "M"), without_suffix("10", "k")
    ('1200000', '10000')
    """
    value = Fraction(number.replace("_", "")) * 10 ** SUFFIXES[letter]
    return spelling(value)


def _tidy(text: str) -> str:
    """Shorten Python's spelling of a float: 1e-06 is 1e-6, 5.0 is 5."""
    return re.sub(r"e\+?(-?)0*", r"e\1", text).removesuffix(".0")


def spelling(value: Fraction) -> str:
    """Return the shortest exact spelling.

    A decimal where it terminates within 24 digits, else a quotient.

    >>> spelling(Fraction(1, 8)), spelling(Fraction(1, 3)), spelling(Fraction(1, 10**7)), spelling(Fraction(6000))
    ('0.125', '1/3', '1e-7', '6000')
    """
    if value.denominator == 1:
        return str(value.numerator)
    if -_FLOATS < value < _FLOATS and Fraction(shortest := repr(float(value))) == value:
        return _tidy(shortest)
    for digits in range(1, _MOST_DIGITS + 1) if 10**_MOST_DIGITS % value.denominator == 0 else ():
        if (value * 10**digits).denominator == 1:
            sign, whole = ("-" if value < 0 else ""), abs(value * 10**digits).numerator
            body = str(whole).rjust(digits + 1, "0")
            return f"{sign}{body[:-digits]}.{body[-digits:]}"
    return f"{value.numerator}/{value.denominator}"


def quotient_spelling(part: int, whole: int) -> str:
    """Return a rate as it was given, unless it is a short decimal.

    >>> quotient_spelling(256, 60000), quotient_spelling(512, 50000)
    ('256/60000', '0.01024')
    """
    found = spelling(Fraction(part, whole))
    return f"{part}/{whole}" if "/" in found else found


@dataclass(frozen=True, slots=True)
class Domain:
    """An interval of numbers for a parameter, with the hint that an error message ends with.

    >>> POSITIVE.check("sigma", "0.5")
    Exact('0.5')
    >>> str(RATE)
    'a number in (0, 1]'
    """

    low: Fraction | None
    high: Fraction | None
    low_closed: bool = False
    high_closed: bool = False
    integer: bool = False
    hint: str = ""
    extreme: bool = False  # whether magnitudes outside [1e-300, 1e300] make sense

    accepted: ClassVar[str] = "Number"
    """The type of what `check` takes, as a signature shows it."""

    def __str__(self) -> str:
        left, right = "[" if self.low_closed else "(", "]" if self.high_closed else ")"
        low = "-inf" if self.low is None else spelling(self.low)
        high = "inf" if self.high is None else spelling(self.high)
        return f"{'an integer' if self.integer else 'a number'} in {left}{low}, {high}{right}"

    def __contains__(self, value: Fraction) -> bool:
        above = self.low is None or value > self.low or (self.low_closed and value == self.low)
        below = self.high is None or value < self.high or (self.high_closed and value == self.high)
        return above and below and (not self.integer or value.denominator == 1)

    def check(self, name: str, value: Any) -> Exact:
        """Return the exact number, or raise an InputError of one sentence."""
        try:
            number = Exact(value)
        except InputError as error:
            raise InputError(f"{name}={shown(value)} must be {self}: {error}") from None
        if not self.extreme and number and not _TINY <= abs(number) <= _HUGE:
            raise InputError(f"{name}={shown(value)} is out of range; magnitudes go from 1e-300 to 1e300")
        if number not in self:
            raise InputError(f"{name}={number} must be {self}" + (f"; {self.hint}" if self.hint else ""))
        return number


class ExactTuple(tuple[Exact, ...]):
    """Several exact numbers, as one parameter."""

    __slots__ = ()

    @property
    def notation(self) -> str:
        """Return the spelling as it stands in an expression."""
        return f"[{', '.join(number.notation for number in self)}]"


@dataclass(frozen=True, slots=True)
class Several:
    """A list of numbers that each lie in one domain.

    >>> Several(POSITIVE).check("orders", ["2", 3.5]).notation
    '[2, 3.5]'
    """

    each: Domain

    accepted: ClassVar[str] = "Sequence[Number]"

    def __str__(self) -> str:
        return f"a list, each {self.each}"

    def check(self, name: str, value: Any) -> ExactTuple:
        """Return the exact numbers, or raise an InputError of one sentence."""
        if not isinstance(value, list | tuple | np.ndarray) or not getattr(value, "ndim", 1) or not len(value):
            raise InputError(f"{name}={shown(value)} must be {self}; write one such as [1, 0.5]")
        return ExactTuple(self.each.check(f"{name}[{i}]", item) for i, item in enumerate(value))


@dataclass(frozen=True, slots=True)
class Less:
    """A joint constraint: the parameter `low` is below the parameter `high`, or `equal` to it.

    >>> Less("q", "p").check({"q": Exact("0.2"), "p": Exact("0.7")})
    >>> str(Less("q", "p").narrowed("q", PROBABILITY, {"p": Exact("0.7")}))
    'a number in [0, 0.7)'
    """

    low: str
    high: str
    equal: bool = False

    def check(self, values: Mapping[str, Any]) -> None:
        """Raise InputError where the parameters break the constraint."""
        low, high = values[self.low], values[self.high]
        if not (low < high or (self.equal and low == high)):
            rule = "at most" if self.equal else "below"
            raise InputError(f"{self.low}={low} must be {rule} {self.high}={high}")

    def narrowed(self, name: str, domain: Domain, others: Mapping[str, Exact]) -> Domain:
        """Return the rest of the domain of one parameter, the others being given."""
        if name == self.low and self.high in others and (domain.high is None or others[self.high] <= domain.high):
            closed = self.equal and others[self.high] in domain
            return replace(domain, high=Fraction(others[self.high]), high_closed=closed)
        if name == self.high and self.low in others and (domain.low is None or others[self.low] >= domain.low):
            closed = self.equal and others[self.low] in domain
            return replace(domain, low=Fraction(others[self.low]), low_closed=closed)
        return domain


_MARKUP = frozenset("<>&\"'`\\")
"""Characters that no name of a unit needs, and that mean something to pages and shells; convention."""

_LONGEST_WORDS = 200
"""Characters of a name, at most; convention, as for names in a ledger."""


def plain_words(name: str, value: Any) -> str:
    """Return the name of a unit without spaces around it; InputError unless it is a line of plain words.

    >>> plain_words("unit", "hospital visit")
    'hospital visit'
    """
    plain = isinstance(value, str) and value.isprintable() and 0 < len(value.strip()) <= _LONGEST_WORDS
    if not plain or not _MARKUP.isdisjoint(value):
        raise InputError(f"{name}={shown(value)} must be plain words, such as person or hospital visit")
    return str(value).strip()


def one_of(name: str, value: Any, choices: tuple[str, ...]) -> str:
    """Return a word that is one of these, or raise an InputError of one sentence.

    >>> one_of("noise", "laplace", ("laplace", "gaussian"))
    'laplace'
    """
    return Choice(choices).check(name, value)


@dataclass(frozen=True, slots=True)
class Choice:
    """A choice of words.

    >>> Choice(("laplace", "gaussian")).check("noise", "laplace")
    'laplace'
    """

    words: tuple[str, ...]

    accepted: ClassVar[str] = "str"

    def check(self, name: str, value: Any) -> str:
        """Return the word, or raise an InputError of one sentence."""
        if not isinstance(value, str) or value not in self.words:
            raise InputError(f"{name}={shown(value)} is unknown; choose one of {', '.join(self.words)}")
        return value


@dataclass(frozen=True, slots=True)
class Truth:
    """True or False, in text "yes" or "no".

    >>> Truth().check("monotone", "yes"), Truth().check("monotone", False)
    (True, False)
    """

    accepted: ClassVar[str] = "bool | str"

    def check(self, name: str, value: Any) -> bool:
        """Return the truth value, or raise an InputError of one sentence."""
        if isinstance(value, str) and value in ("yes", "no"):
            return value == "yes"
        if not isinstance(value, bool):
            raise InputError(f'{name}={shown(value)} must be True or False, in text "yes" or "no"')
        return value


@dataclass(frozen=True, slots=True)
class Switch:
    """A switch that the notation writes as 1 or 0; `meaning` says what 1 stands for.

    >>> Switch("it rains").check("rain", "1"), Switch("it rains").check("rain", 0)
    (True, False)
    """

    meaning: str

    def check(self, name: str, value: Any) -> bool:
        """Return the switch as a truth value, or raise an InputError of one sentence."""
        if getattr(value, "ndim", 0) or value not in (True, False, "0", "1"):  # an array has no truth value
            raise InputError(f"{name}={shown(value)} must be 1, where {self.meaning}, or 0")
        return value in (True, "1")


@dataclass(frozen=True, slots=True)
class Line:
    """A text on one line, without quotes, so that the notation can hold it.

    >>> Line().check("assumed", "the start is public")
    'the start is public'
    """

    accepted: ClassVar[str] = "str"

    def check(self, name: str, value: Any) -> str:
        """Return the text, or raise an InputError of one sentence."""
        if not isinstance(value, str) or '"' in value or "\\" in value or not (value.isprintable() or not value):
            raise InputError(f"{name}={shown(value)} must be a text on one line, without quotes")
        return value


TRUTH = Truth()
"""True or False."""

LINE = Line()
"""A text on one line, without quotes."""


@dataclass(frozen=True, slots=True)
class Checked:
    """Values that a function checks, where no other kind of parameter fits; `accepted` is what it takes.

    >>> Checked("int", lambda name, value: int(value)).check("steps", "3")
    3
    """

    accepted: str
    check: Callable[[str, Any], Any]


def listed(name: str, value: Any, items: str = "numbers, such as [2, 3]") -> list[Any]:
    """Return the items of any iterable but text, or raise an InputError of one sentence.

    The caller checks the items one by one. Errors of an iterator pass: they belong to its owner, or to the handler of a signal.

    >>> listed("orders", range(2, 5))
    [2, 3, 4]
    """
    try:
        if isinstance(value, str | bytes | Mapping):
            raise TypeError(f"{type(value).__name__} is not a list")
        iterator = iter(value)
    except TypeError as error:
        raise InputError(f"{name}={shown(value)} must be a list of {items}: {error}") from error
    return list(iterator)


_ZERO = Fraction(0)
_ONE = Fraction(1)

_TINY = Fraction(1, 10**300)
"""Smallest size of a number other than 0, unless its domain is `extreme`; derived: floats end at 2.2e-308."""

_HUGE = Fraction(10**300)
"""Largest size of a number, unless its domain is `extreme`; derived: floats end at 1.8e308."""

POSITIVE = Domain(_ZERO, None)
NONNEGATIVE = Domain(_ZERO, None, low_closed=True)
RATE = Domain(
    _ZERO,
    _ONE,
    high_closed=True,
    hint="for sample and population sizes use WithoutReplacement(sample=…, population=…)",
)
SHARE = replace(RATE, low_closed=True)
ORDER = Domain(_ONE, None)
_MOST_TIMES = 10**30
COUNT = Domain(_ONE, Fraction(_MOST_TIMES), low_closed=True, high_closed=True, integer=True)
RESPONSE = Domain(Fraction(1, 2), _ONE, low_closed=True, hint="p is the probability of the true answer")
CHANCE = Domain(_ZERO, _ONE)
MANY = Domain(Fraction(2), Fraction(_MOST_TIMES), low_closed=True, high_closed=True, integer=True)
PROMISED = Domain(_ZERO, Fraction(300), low_closed=True, high_closed=True, hint="beyond it nothing is protected")
GROUP = Domain(_ONE, Fraction(10**6), low_closed=True, high_closed=True, integer=True)
FEW = Domain(_ONE, Fraction(10**4), low_closed=True, high_closed=True, integer=True)
PROBABILITY = Domain(_ZERO, _ONE, low_closed=True, high_closed=True)
SLACK = Domain(_ZERO, _ONE, low_closed=True)
DELTA = Domain(
    _ZERO,
    _ONE,
    low_closed=True,
    high_closed=True,
    hint="delta is a probability; about an epsilon ask run.delta(epsilon=…), or cumulant delta",
    extreme=True,
)
EPSILON = Domain(_ZERO, None, low_closed=True, extreme=True)
ANY_EPSILON = Domain(None, None, extreme=True)
GUARANTEED = replace(EPSILON, hint="guarantees are about epsilon >= 0; below it run.delta(epsilon=…) has the delta")
ACCURACY = Domain(
    Fraction(1, 10**12),
    Fraction(1, 10),
    low_closed=True,
    high_closed=True,
    hint="it is the share of epsilon that the computation may add",
)


def times(value: Any, name: str = "times") -> int:
    """Return an integer number of repetitions, at least 1.

    >>> times(600_000)
    600000
    >>> times(True)
    Traceback (most recent call last):
    ...
    cumulant.errors.InputError: times=True must be an integer in [1, 1000000000000000000000000000000]
    """
    if type(value) is int and 1 <= value <= _MOST_TIMES:
        return value
    try:
        if isinstance(value, bool | np.bool_):
            raise TypeError
        number = operator.index(value)
    except TypeError:
        raise InputError(f"{name}={shown(value)} must be {COUNT}") from None
    return number if 1 <= number <= _MOST_TIMES else int(COUNT.check(name, number))


def _order(value: Any) -> float:
    """Return an order as a float; a number too large for a float counts as infinity.

    Every divergence is largest there.
    """
    named = isinstance(value, str | float | np.floating) and value in ("inf", math.inf)
    if named or (isinstance(value, Decimal) and value.is_infinite() and value > 0):
        return math.inf
    try:
        return float(Exact(value))
    except OverflowError:
        return math.inf


def limit(name: str, value: Number) -> Exact | None:
    """Return the exact value of a bound, None for infinity.

    >>> limit("pure", math.inf), limit("pure", 2)
    (None, Exact('2'))
    """
    return None if isinstance(value, float) and value == math.inf else NONNEGATIVE.check(name, value)


def orders(value: Any, name: str = "order", low: float = 1.0) -> tuple[np.ndarray[Any, np.dtype[np.float64]], bool]:
    """Return a flat float64 array of orders in [low, inf], and whether one scalar was given.

    >>> orders([2, 3.5])
    (array([2. , 3.5]), False)
    """
    if isinstance(value, str | Fraction | Decimal):
        value = _order(value)
    try:
        array = np.asarray(value)
        if array.dtype == object:
            array = np.array([_order(x) for x in array.ravel()]).reshape(array.shape)
        if array.dtype.kind not in "iuf" or array.ndim > 1:
            raise InputError(f"{name}={shown(value)} must be a number or a flat sequence of numbers")
    except (TypeError, ValueError, InputError):
        raise InputError(f"{name}={shown(value)} must be a number or a flat sequence of numbers") from None
    array = array.astype(np.float64)
    wrong = array[~(array >= low)]
    if wrong.size:
        raise InputError(f"{name}={wrong.flat[0]:g} must be at least {low:g}; order 1 is KL and inf is pure")
    return np.atleast_1d(array), array.ndim == 0
