"""Formulas as they are written in these pages, in plain letters, to MathML: what a browser sets without any script or font.

    eps'(a) <= 1/(a-1) log( 1 + SUM_{j=2}^{a} C(a,j) g^j c_j )

Names of Greek letters are those letters; SUM, PROD and INT are the signs; C(a,j) is a binomial coefficient, sqrt( ) a root;
x/y without spaces is a fraction, with spaces a stroke; words are words.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from html import escape

_LETTERS = (
    "alpha α beta β gamma γ delta δ Delta Δ epsilon ε eps ε zeta ζ eta η theta θ lambda λ lam λ Lam Λ mu μ xi ξ pi π "
    "rho ρ sigma σ tau τ phi φ Phi Φ chi χ psi ψ Psi Ψ omega ω inf ∞ Kbar K̄"
)
GREEK = dict(re.findall(r"(\w+) (\S+)", _LETTERS))
FUNCTIONS = re.compile(
    r"log|exp|min|max|sup|sin|cos|tan|atan|sinh|cosh|tanh|coth|erf|arg|KL|excess|mean|floor|ceil|TV|sgn|Pr|pure"
)
LARGE = {"SUM": "∑", "PROD": "∏", "INT": "∫"}
SIGNS = {"<=": "≤", ">=": "≥", "->": "→", "!=": "≠", "||": "∥", "-": "−", "*": "∗", "<": "&lt;", ">": "&gt;", "'": "′"}
SHORT_WORDS = ("of", "at", "to", "or", "in", "is", "on", "as", "by", "if", "and", "for", "the", "all", "one", "let")
ROUNDED = {"floor": ("⌊", "⌋"), "ceil": ("⌈", "⌉")}
CLOSING = {"(": ")", "[": "]", "{": "}", "|": "|"}

_THIN = '<mspace width="0.17em"></mspace>'
_TOKEN = re.compile(
    r"(?P<space>\s+)|(?P<number>\d+(?:[.,]\d+)*(?:e-?\d+)?)|(?P<name>[^\W\d_]+\d*)"
    r"|(?P<sign><=|>=|->|!=|\|\||[-+*/=<>^_'(){}\[\],;:.|!]|[^\w\s])"
)


class Unset(ValueError):
    """A formula that cannot be set; the text says where."""


def block(text: str) -> str:
    """A formula, or several lines of them, on its own."""
    lines = [f"<mtr><mtd>{''.join(_Line(each).row())}</mtd></mtr>" for each in text.rstrip().splitlines()]
    return (
        '<math display="block"><semantics>'
        f'<mtable displaystyle="true">{"".join(lines)}</mtable>'
        f'<annotation encoding="text/plain">{escape(text.rstrip())}</annotation></semantics></math>'
    )


def inline(text: str) -> str:
    """A formula in a line of text.

    >>> inline("e^eps")
    '<math><msup><mi>e</mi><mi>ε</mi></msup></math>'
    """
    return f"<math>{''.join(_Line(text).row())}</math>"


class _Line:
    """One line, read from left to right."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.tokens: list[tuple[str, str]] = []
        place = 0
        while place < len(text):
            found = _TOKEN.match(text, place)
            if found is None or found.lastgroup is None:
                raise Unset(f"{text!r}: nothing is known of {text[place]!r}")
            self.tokens += _split(found.lastgroup, found[0])
            place = found.end()
        self.at = 0

    # ---- reading

    def _next(self, ahead: int = 0) -> tuple[str, str]:
        place = self.at + ahead
        return self.tokens[place] if place < len(self.tokens) else ("end", "")

    def row(self, closing: str = "") -> list[str]:
        """Everything up to a closing bracket, or to the end."""
        parts: list[str] = []
        while True:
            kind, token = self._next()
            if kind == "end":
                if closing:
                    raise Unset(f"{self.text!r}: {closing} is missing")
                return parts
            if closing and token == closing:
                self.at += 1
                return parts
            if kind == "space":
                self.at += 1
                if len(token) > 1:
                    parts.append(f'<mspace width="{min(len(token), 6) * 0.45:g}em"></mspace>')
            elif kind == "word":
                parts.append(self._words())
            elif kind == "sign" and token not in CLOSING:
                self.at += 1
                if token in ")]}":
                    raise Unset(f"{self.text!r}: {token} closes nothing")
                parts.append(_sign(token))
            else:
                parts.append(self._term())

    def _words(self) -> str:
        """Words that follow one another, with the spaces around them."""
        before = "&nbsp;" if self.at and self._next(-1)[0] == "space" else ""
        said = []
        while self._next()[0] == "word" or (self._next()[0] == "space" and self._next(1)[0] == "word"):
            kind, token = self._next()
            self.at += 1
            if kind == "word":
                said.append(token)
        after = "&nbsp;" if self._next()[0] == "space" else ""
        return self._scripts(f"<mtext>{before}{escape(' '.join(said))}{after}</mtext>")

    def _term(self) -> str:
        """An atom with its scripts; a quotient of two of them where the stroke has no spaces."""
        top, bare = self._factor()
        if self._next() == ("sign", "/") and self._next(1)[0] not in ("space", "end"):
            self.at += 1
            number = self._next()[0] == "number"
            below, plain = self._factor()
            if number and self._next()[0] == "name":
                raise Unset(f"{self.text!r}: a number and a letter below a stroke need brackets, as in 1/(2 pi)")
            return f"<mfrac>{bare or top}{plain or below}</mfrac>"
        return top

    def _factor(self) -> tuple[str, str]:
        """An atom with what is called with it: f(x); and, of a group in parentheses alone, its inside."""
        kind, token = self._next()
        if kind == "sign" and token in CLOSING:
            return self._group(token)
        self.at += 1
        if kind == "number":
            return self._scripts(f"<mn>{escape(token)}</mn>"), ""
        if kind == "large":
            return self._limits(LARGE[token]), ""
        if token == "sqrt" and self._bracket() == "(":
            self.at += 1
            return f"<msqrt>{''.join(self.row(')'))}</msqrt>", ""
        if token in ROUNDED and self._bracket() == "(":
            self.at += 1
            left, right = ROUNDED[token]
            return self._scripts(f"<mrow><mo>{left}</mo>{''.join(self.row(')'))}<mo>{right}</mo></mrow>"), ""
        if token == "C" and self._next() == ("sign", "("):
            self.at += 1
            inside = self.row(")")
            if "<mo>,</mo>" in inside:
                cut = inside.index("<mo>,</mo>")
                over, under = "".join(inside[:cut]), "".join(inside[cut + 1 :])
                stacked = f'<mfrac linethickness="0"><mrow>{over}</mrow><mrow>{under}</mrow></mfrac>'
                return f"<mrow><mo>(</mo>{stacked}<mo>)</mo></mrow>", ""
            return f"<mrow><mi>C</mi><mo>(</mo>{''.join(inside)}<mo>)</mo></mrow>", ""
        upright = FUNCTIONS.fullmatch(token) is not None
        name = f'<mi mathvariant="normal">{token}</mi>' if upright else f"<mi>{escape(GREEK.get(token, token))}</mi>"
        found = self._scripts(name)
        if upright and self.at > 1:
            found = _THIN + found
        if self._next() in (("sign", "("), ("sign", "[")):  # what is called with it is part of it
            group, _ = self._group(self._next()[1])
            return f"<mrow>{found}{group}</mrow>", ""
        return found + (_THIN if upright and self._next()[0] == "space" else ""), ""

    def _bracket(self) -> str:
        return self._next()[1] if self._next()[0] == "sign" else ""

    def _group(self, opening: str) -> tuple[str, str]:
        self.at += 1
        closing = CLOSING[opening]
        inside = "".join(self.row(closing))
        fence = ("|", "|") if opening == "|" else (opening, closing)
        whole = f"<mrow><mo>{fence[0]}</mo>{inside}<mo>{fence[1]}</mo></mrow>"
        scripted = self._scripts(whole)
        return scripted, f"<mrow>{inside}</mrow>" if scripted == whole and opening == "(" else ""

    def _limits(self, sign: str) -> str:
        below, above = self._raised("_"), self._raised("^")
        large = f'<mo largeop="true">{sign}</mo>'
        if below and above:
            kind = "msubsup" if sign == "∫" else "munderover"
            return f"<{kind}>{large}{below}{above}</{kind}>"
        if below:
            return f"<munder>{large}{below}</munder>" if sign != "∫" else f"<msub>{large}{below}</msub>"
        return large

    def _scripts(self, base: str) -> str:
        primes = ""
        while self._next() == ("sign", "'"):
            self.at += 1
            primes += "′"
        if primes:  # fonts raise the sign by themselves
            base = f'<mrow>{base}<mo lspace="0" rspace="0">{primes}</mo></mrow>'
        below, above = self._raised("_"), self._raised("^")
        if below and above:
            return f"<msubsup>{base}{below}{above}</msubsup>"
        if below:
            return f"<msub>{base}{below}</msub>"
        return f"<msup>{base}{above}</msup>" if above else base

    def _raised(self, which: str) -> str:
        """What stands behind _ or ^: a group, whose brackets are left out, or one atom with its sign."""
        if self._next() != ("sign", which):
            return ""
        self.at += 1
        kind, token = self._next()
        if kind == "sign" and token in "{(":
            self.at += 1
            return f"<mrow>{''.join(self.row(CLOSING[token]))}</mrow>"
        if kind == "sign" and token in "+-*":
            self.at += 1
            following = self._next()[0] in ("name", "number") and token == "-"
            return f"<mrow>{_sign(token)}{self._atom()}</mrow>" if following else _sign(token)
        return self._atom()

    def _atom(self) -> str:
        kind, token = self._next()
        if kind not in ("name", "number", "word"):
            raise Unset(f"{self.text!r}: {token or 'the end'} cannot be raised or lowered")
        self.at += 1
        if kind == "number":
            return f"<mn>{escape(token)}</mn>"
        atom = f"<mtext>{escape(token)}</mtext>" if kind == "word" else f"<mi>{escape(GREEK.get(token, token))}</mi>"
        if token == "eps" and self._next() == ("sign", "("):  # a curve: e^eps(2) is e to the eps(2)
            return f"<mrow>{atom}{self._group('(')[0]}</mrow>"
        return self._scripts(atom) if self._next() in (("sign", "'"), ("sign", "_")) else atom


def _split(kind: str, token: str) -> Sequence[tuple[str, str]]:
    """Names are Greek letters, functions, words, or letters side by side; digits behind a letter are its index."""
    if kind != "name":
        return [(kind, token)]
    if token in LARGE:
        return [("large", token)]
    letters = token.rstrip("0123456789")
    index: list[tuple[str, str]] = [("sign", "_"), ("number", token[len(letters) :])] if token != letters else []
    if letters in GREEK or FUNCTIONS.fullmatch(letters) or letters == "sqrt":
        return [("name", letters), *index]
    if len(letters) > 2 or letters in SHORT_WORDS:
        return [("word", letters), *index]
    return [*(("name", letter) for letter in letters), *index]


def _sign(token: str) -> str:
    return f"<mo>{SIGNS.get(token, escape(token))}</mo>"
