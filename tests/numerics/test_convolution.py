"""Direct products of positive sequences: every entry within its error, and no product large enough to wake BLAS threads."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from cumulant.numerics.arithmetic import Array
from cumulant.numerics.convolution import SMALLEST, convolve_positive


@pytest.mark.parametrize("sizes", [(1, 1), (64, 64), (65, 64), (65, 66), (130, 7), (200, 333), (129, 128)])
def test_every_entry_is_within_its_error(sizes: tuple[int, int]) -> None:
    """Masses over 200 orders of magnitude against rational numbers: no entry loses its relative accuracy."""
    draw = np.random.default_rng(sum(sizes))
    a, b = (10.0 ** draw.uniform(-100, 0, size) for size in sizes)
    found, error = convolve_positive(a, b)
    assert found.size == sum(sizes) - 1
    left, right = [Fraction(v) for v in a.tolist()], [Fraction(v) for v in b.tolist()]
    for k in range(0, found.size, 7):
        true = sum(left[j] * right[k - j] for j in range(max(0, k - len(right) + 1), min(k + 1, len(left))))
        assert abs(Fraction(float(found[k])) - true) <= Fraction(error) * true, k


def test_dust_is_set_to_zero() -> None:
    tiny = np.full(100, 1e-150)
    found = convolve_positive(tiny, tiny)[0]
    assert np.all((found == 0) | (found >= SMALLEST))


def test_no_product_is_large_enough_for_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    """With threads of BLAS the laws of an epoch take up to four times the processor time on a busy machine."""
    seen = []
    multiply = np.matmul

    def counted(a: Array, b: Array, out: Array) -> Array:
        seen.append(a.shape[-2] * a.shape[-1] * b.shape[-1])
        return multiply(a, b, out=out)

    monkeypatch.setattr("cumulant.numerics.convolution.np.matmul", counted)
    draw = np.random.default_rng(0)
    for sizes in ((8192, 8192), (100, 8192), (2050, 4097)):
        convolve_positive(*(draw.random(size) for size in sizes))
    assert len(seen) == 3
    assert max(seen) <= 1 << 18
