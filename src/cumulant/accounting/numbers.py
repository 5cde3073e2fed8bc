"""Numbers as they are stated and printed.

They are rounded so that no more is claimed than was proved.
"""

from __future__ import annotations

import math
from fractions import Fraction


def rounded_up(value: float, digits: int = 4) -> str:
    """Return the value in decimal, rounded up to this many significant digits.

    So what is printed is still a bound.

    >>> rounded_up(2.02701), rounded_up(1e-8), rounded_up(math.inf), rounded_up(0.0), rounded_up(123456.7)
    ('2.028', '1e-8', 'inf', '0', '123500')
    """
    return _decimal(value, digits, "ROUND_CEILING")


def rounded_down(value: float, digits: int = 4) -> str:
    """The value in decimal, rounded down: what is printed is still a lower bound.

    >>> rounded_down(2.02799)
    '2.027'
    """
    return _decimal(value, digits, "ROUND_FLOOR")


def rounded_nearest(value: float, digits: int = 4) -> str:
    """Return the value in decimal, rounded to the nearest: for numbers of others, with which nothing is claimed.

    >>> rounded_nearest(5.13502), rounded_nearest(5.13906)
    ('5.135', '5.139')
    """
    return _decimal(value, digits, "ROUND_HALF_EVEN")


def percent(share: float) -> str:
    """A share rounded up to three digits.

    >>> percent(0.09236), percent(1.0), percent(0.0)
    ('9.24 %', '100 %', '0 %')
    """
    return f"{rounded_up(min(math.nextafter(100 * share, math.inf) if share else 0.0, 100.0), 3)} %"


def percent_used(share: float) -> str:
    """Return the used part of a budget, rounded up to three digits.

    It is for readers, not for decisions: the last digits of a float are left out, so that 1 of 5 reads 20 %.

    >>> percent_used(0.2), percent_used(0.1), percent_used(1 / 3), percent_used(1e-9)
    ('20 %', '10 %', '33.4 %', '1e-7 %')
    """
    return f"{rounded_up(min(float(f'{100 * share:.12g}'), 100.0), 3)} %"


def brief(text: str, longest: int = 160) -> str:
    """A text with its middle left out where it is too long to read.

    >>> brief("PureDP(epsilon=1)"), len(brief("x" * 10_000))
    ('PureDP(epsilon=1)', 160)
    """
    return text if len(text) <= longest else f"{text[: longest - 43]} … {text[-40:]}"


def fraction(value: Fraction) -> str:
    """An exact number.

    >>> fraction(Fraction(1, 3)), fraction(Fraction(2))
    ('1/3', '2')
    """
    return f"{value.numerator}/{value.denominator}" if value.denominator > 1 else str(value.numerator)


def _decimal(value: float, digits: int, rounding: str) -> str:
    if value == 0 or math.isinf(value):
        return "0" if value == 0 else "inf"
    from decimal import Context, Decimal

    rounded = Context(prec=digits, rounding=rounding).create_decimal(Decimal(repr(value))).normalize()
    exponent = rounded.adjusted()
    if -5 < exponent < 7:
        return f"{rounded:f}"
    return f"{rounded.scaleb(-exponent).normalize():f}e{exponent}"


def first_sentence(text: str) -> str:
    """Return the first sentence of a docstring.

    >>> first_sentence("Noise of a kind.\\n\\nMore about it.")
    'Noise of a kind'
    """
    return " ".join(text.split("\n\n")[0].split()).rstrip(".")
