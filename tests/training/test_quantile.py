"""The quantile table against an independent one in many digits."""

import numpy as np
from scipy import special

from cumulant.numerics.arithmetic import BALLS
from cumulant.training.quantile import LARGEST, LEAST, PIECES, table


def words_of_every_piece() -> list[int]:
    found = []
    for octave in range(LEAST, LARGEST):
        length = 2**octave // PIECES
        for piece in range(PIECES):
            start = 2**octave + piece * length
            found += [start, start + 1, start + length // 2, start + length // 3, start + length - 1]
    return found


def test_every_piece_keeps_its_error_at_both_ends_of_the_cell() -> None:
    from flint import arb

    words = words_of_every_piece()
    values, errors = table()(np.array(words, dtype=np.uint64))
    with BALLS.at(200):
        for word, value, error in zip(words, values.tolist(), errors.tolist(), strict=True):
            for end in (word, word + 1):
                # erfc(Q / sqrt 2) / 2 = p decides on which side of p a number lies; the inverse is not asked
                for shifted, above in ((value - error, False), (value + error, True)):
                    tail = (arb(shifted) / arb(2).sqrt()).erfc() / 2
                    p = arb(end) / arb(2) ** 64
                    assert tail <= p if above else tail >= p, (word, value, error)


def test_errors_are_small_and_values_are_those_of_scipy() -> None:
    words = np.array(words_of_every_piece(), dtype=np.uint64)
    values, errors = table()(words)
    assert errors.max() < 2.0**-42
    np.testing.assert_allclose(values, -special.ndtri(np.ldexp(words.astype(float), -64)), rtol=1e-13, atol=1e-15)
