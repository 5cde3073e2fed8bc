"""The quantile of the standard normal law in float64, with an error that is proved.

Q(p) is the number that a standard normal one exceeds with probability p, for p = w / 2^64 with whole w. Between powers of two
p is cut into equal pieces; in each, Q is a Taylor polynomial whose coefficients and remainder are enclosed in balls when the
table is first made, and whose evaluation in floats is off by no more than Horner's rule is. Nothing is assumed of a library's
own quantile.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from cumulant.errors import CertificateError
from cumulant.numerics.arithmetic import BALLS

if TYPE_CHECKING:
    from flint import arb

LEAST, LARGEST = 40, 63
"""Octaves of w in the table: 2^40 <= w < 2^63. Smaller w, one in 2^23, are left to balls."""

PIECES = 32
DEGREE = 8
BITS = 128

Floats = np.ndarray[Any, np.dtype[np.float64]]
Words = np.ndarray[Any, np.dtype[np.uint64]]


@dataclass(frozen=True, slots=True)
class Table:
    """Coefficients of every piece in x = (w - centre) / 2^octave, and how far the float and any p in the cell may be off."""

    coefficients: Floats
    errors: Floats

    def __call__(self, words: Words) -> tuple[Floats, Floats]:
        """Q at the cells [w, w + 1] / 2^64 and a bound on the distance to Q at any point of them; 2^40 <= w < 2^63."""
        octave = np.frexp(words.astype(np.float64))[1].astype(np.int64) - 1
        octave -= (words >> octave.astype(np.uint64)) == 0  # where the conversion was rounded up to a power of two
        within = words - (np.uint64(1) << octave.astype(np.uint64))
        shift = (octave - PIECES.bit_length() + 1).astype(np.uint64)  # a piece is 2^shift words long
        piece = within >> shift
        offset = (within - (piece << shift)).astype(np.int64) - (np.int64(1) << (shift.astype(np.int64) - 1))
        row = (octave - LEAST) * PIECES + piece.astype(np.int64)
        x = np.ldexp(offset.astype(np.float64), -octave)
        value = self.coefficients[DEGREE][row]
        for power in range(DEGREE - 1, -1, -1):
            value = value * x + self.coefficients[power][row]
        return value, self.errors[row]


@lru_cache(maxsize=1)
def table() -> Table:
    """The table, made and certified on first use, in about half a second."""
    pieces = [(octave, piece) for octave in range(LEAST, LARGEST) for piece in range(PIECES)]
    with BALLS.at(BITS):
        found = [_piece(octave, piece) for octave, piece in pieces]
    return Table(np.array([row for row, _ in found]).T.copy(), np.array([error for _, error in found]))


def _piece(octave: int, piece: int) -> tuple[list[float], float]:
    """Taylor coefficients at the centre of one piece, and the bound on the error of their evaluation anywhere in it."""
    from flint import arb

    scale = arb(2) ** (octave - 64)  # dp/dx
    centre = 1 + (arb(2 * piece) + 1) / (2 * PIECES)
    reach = arb(1) / (2 * PIECES)
    # the last cell ends at the end of the piece, so that all of it lies within the piece
    at_centre = _series(quantile(scale * centre), scale)
    everywhere = _series(
        quantile(scale * (centre - reach)).union(quantile(scale * (centre + reach))), scale
    )  # Taylor coefficients at all points of the piece
    coefficients = [float(value.mid()) for value in at_centre[: DEGREE + 1]]
    remainder = abs(everywhere[DEGREE + 1]) * reach ** (DEGREE + 1)
    rounded = sum(
        (
            abs(value - arb(number)) * reach**power
            for power, (value, number) in enumerate(zip(at_centre, coefficients, strict=False))
        ),
        start=arb(0),
    )
    # Horner: |fl(P(x)) - P(x)| <= gamma SUM |a_k| |x|^k with gamma = 2 d u / (1 - 2 d u), u = 2^-53; and x, whose integer may
    # have more than 53 bits, is off by u of itself, which moves the k-th power by k u: d more
    size = sum((abs(arb(number)) * reach**power for power, number in enumerate(coefficients)), start=arb(0))
    horner = size * arb(3 * DEGREE + 1) * arb(2) ** -53 * (1 + arb(2) ** -40)
    cell = abs(everywhere[1]) * arb(2) ** -octave
    error = remainder + rounded + horner + cell
    above = float(error.upper())
    if not (np.isfinite(above) and np.all(np.isfinite(coefficients)) and above > 0):
        raise CertificateError(f"the quantile could not be enclosed near w = 2^{octave}; please report it")
    return coefficients, float(np.nextafter(above, np.inf))


def quantile(p: arb) -> arb:
    """Q(p) in balls at the present precision: sqrt(2) erfc^-1(2 p)."""
    from flint import arb

    return arb(2).sqrt() * (2 * p).erfcinv()


def _series(y: arb, scale: arb) -> list[arb]:
    """Taylor coefficients in x of y(x) = Q(p0 + scale x) with y(0) = y.

    With c = scale sqrt(2 pi) and E = e^{y^2/2}: y' = -c E and E' = y y' E, coefficient by coefficient.
    """
    from flint import arb

    c = scale * (2 * arb.pi()).sqrt()
    ys, slopes, es, ws = [y], [], [(y * y / 2).exp()], []
    for k in range(DEGREE + 1):
        slopes.append(-c * es[k])
        ws.append(_product(ys, slopes, k))
        es.append(_product(ws, es, k) / (k + 1))
        ys.append(slopes[k] / (k + 1))
    return ys


def _product(one: list[arb], other: list[arb], k: int) -> arb:
    return sum((one[i] * other[k - i] for i in range(1, k + 1)), start=one[0] * other[k])
