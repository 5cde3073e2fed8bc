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

LEAST = 40
"""First octave of w in the table, 2^40 <= w < 2^63; balls answer for smaller w, one in 2^23."""

LARGEST = 63
"""Octave after the last one in the table; derived: w has 63 bits."""

QUICK_LEAST = 16
"""The first octave of the parabolas: 2^16 <= m < 2^31. Smaller m, one in 2^15, are left to 64 bits."""

QUICK_BITS = 10
"""Bits of m, after its first, that number a piece; measured: the cut is then as small as the cell of 32 bits."""

QUICK_BLOCK = 2**14
"""Draws that are rounded together, so that intermediate arrays stay in the cache; measured: 2^13 to 2^15 are as fast."""

PIECES = 32
DEGREE = 8
BITS = 128

Floats = np.ndarray[Any, np.dtype[np.float64]]
Words = np.ndarray[Any, np.dtype[np.uint64]]


@dataclass(frozen=True, slots=True)
class Table:
    """Coefficients of every piece in x = (w - centre) / 2^octave, with error bounds.

    The bounds say how far the float and any p in the cell may be off.
    """

    coefficients: Floats
    errors: Floats

    def __call__(self, words: Words) -> tuple[Floats, Floats]:
        """Return Q at the cells [w, w + 1] / 2^64 and a bound on the distance to Q in them.

        2^40 <= w < 2^63.
        """
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


@dataclass(frozen=True, slots=True)
class Parabolas:
    """sigma Q as a parabola in each of many short pieces.

    It is fast, and exact enough for 32 bits of most draws.

    Of a draw 32 bits are known: its sign and m < 2^31, which say that p lies in [m, m + 1] / 2^32. Pieces are numbered by the
    exponent and the first bits of m as a float. Row 0 stands for all m below 2^16, which are never decided here.
    """

    values: Floats
    slopes: Floats
    curvatures: Floats
    decided_below: float
    """A distance to the nearest integer plus a cell that is smaller than this decides the rounding."""

    @classmethod
    def scaled(cls, sigma: float) -> Parabolas:
        """Compute the parabolas for one sigma, from the proved table, in milliseconds."""
        octave = np.repeat(np.arange(QUICK_LEAST, 31), 1 << QUICK_BITS)
        first = np.ldexp(1 + np.tile(np.arange(1 << QUICK_BITS), 31 - QUICK_LEAST) * 2.0**-QUICK_BITS, octave)
        q, error = table()(first.astype(np.uint64) << np.uint64(32))
        # Q' = -sqrt(2 pi) e^{Q^2/2}; the next derivatives are Q Q'^2 and Q'^3 (1 + 2 Q^2); all fall in size as p grows to 1/2
        slope = -np.sqrt(2 * np.pi) * np.exp(q * q / 2) * 2.0**-32
        cut = np.abs(slope) ** 3 * (1 + 2 * q * q) / 6 * np.ldexp(1.0, 3 * (octave - QUICK_BITS))
        # |Q| < 5 and |Q' x| < 2^-10: an exponential that is right to 36 bits moves sigma Q by less than 2^-45 sigma, and the
        # 20 roundings of coefficients and of Horner's rule by less than 20 * 5 * 2^-53 sigma < 2^-46 sigma
        off = sigma * (float(np.max(cut + error)) * (1 + 2.0**-20) + 2.0**-44) + 2.0**-50
        rows = (sigma * q, sigma * slope, sigma * (q * slope * slope / 2))
        values, slopes, curvatures = (
            np.concatenate([[unknown], row]) for unknown, row in zip((0.0, -1.0, 0.0), rows, strict=True)
        )
        return cls(values, slopes, curvatures, 0.5 - off)

    def round_into(self, words: Any, noise: Any, start: int, end: int) -> Any:
        """Write the nearest integers to sigma Z for words from start to end.

        Returns the places that are not decided.
        """
        undecided = [np.empty(0, dtype=np.int64)]
        length = min(QUICK_BLOCK, max(1, end - start))
        whole, m, row, low, value, slope, other = (
            np.empty(length, dtype=kind) for kind in (np.int32, np.float64, np.int64, *[np.float64] * 4)
        )
        for at in range(start, end, length):
            if end - at < length:
                whole, m, row, low, value, slope, other = (
                    part[: end - at] for part in (whole, m, row, low, value, slope, other)
                )
            word = words[at : at + len(m)]
            np.bitwise_and(word, 2**31 - 1, out=whole)
            m[:] = whole
            bits = m.view(np.int64)
            np.right_shift(bits, 52 - QUICK_BITS, out=row)
            np.subtract(row, ((1023 + QUICK_LEAST) << QUICK_BITS) - 1, out=row)  # row 1 begins at 2^QUICK_LEAST
            np.bitwise_and(bits, -(1 << (52 - QUICK_BITS)), out=low.view(np.int64))
            np.subtract(m, low, out=m)  # exact: both are whole
            np.take(self.curvatures, row, out=value, mode="clip")  # rows below 0 are row 0
            np.take(self.slopes, row, out=slope, mode="clip")
            np.take(self.values, row, out=other, mode="clip")
            value *= m
            value += slope
            value *= m
            value += other
            np.rint(value, out=other)
            value -= other
            np.abs(value, out=value)
            value -= slope  # Q falls by less than this within the cell of one m
            undecided.append(np.flatnonzero(~(value < self.decided_below)) + at)
            np.copysign(other, word, out=other)
            noise[at : at + len(m)] = other
        return np.concatenate(undecided)


@lru_cache(maxsize=1)
def table() -> Table:
    """Return the table; it is made and certified on first use, in about half a second."""
    pieces = [(octave, piece) for octave in range(LEAST, LARGEST) for piece in range(PIECES)]
    with BALLS.at(BITS):
        found = [_piece(octave, piece) for octave, piece in pieces]
    return Table(np.array([row for row, _ in found]).T.copy(), np.array([error for _, error in found]))


def _piece(octave: int, piece: int) -> tuple[list[float], float]:
    """Return the Taylor coefficients at the centre of one piece, and an error bound.

    The bound holds for their evaluation anywhere in it.
    """
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
    """Compute Q(p) in balls at the present precision: sqrt(2) erfc^-1(2 p)."""
    from flint import arb

    return arb(2).sqrt() * (2 * p).erfcinv()


def _series(y: arb, scale: arb) -> list[arb]:
    """Return the Taylor coefficients in x of y(x) = Q(p0 + scale x) with y(0) = y.

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
