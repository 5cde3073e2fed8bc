"""The history of an Opacus accountant without torch: the law of torch.rand, the length of a loader."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

import cumulant as cm
from cumulant.training.opacus_history import from_opacus, loader_length, torch_rate


def test_the_probability_of_a_float32_comparison() -> None:
    """By counting: torch.rand is k / 2^24, and k / 2^24 < float32(rate) holds for ceil(2^24 float32(rate)) of the k."""
    for rate in (0.1, 1 / 235, 1e-6, 0.5, 1.0):
        grid = np.arange(2**24, dtype=np.float64) / 2**24
        assert torch_rate(rate) == Fraction(int(np.count_nonzero(grid < float(np.float32(rate)))), 2**24)


def test_the_length_of_a_loader() -> None:
    for batch, records in ((64, 1797), (256, 60000), (100, 1000), (1, 1), (7, 7)):
        assert loader_length(batch, records) == math.ceil(Fraction(records, batch))


def test_histories() -> None:
    run = from_opacus({"mechanism": "gdp", "history": [[1.1, 0.25, 4]]})
    assert run == cm.parse('Gaussian(sigma=1.1, relation="add-remove") @ Poisson(rate=0.25) * 4')
    for wrong in ({}, {"mechanism": "rdp", "history": []}, {"mechanism": "mine", "history": [[1, 0.1, 1]]}):
        with pytest.raises(cm.InputError, match="no history of Opacus"):
            from_opacus(wrong)
    with pytest.raises(cm.InputError, match="is no step of a history"):
        from_opacus({"mechanism": "rdp", "history": [["a", "b", "c"]]})
