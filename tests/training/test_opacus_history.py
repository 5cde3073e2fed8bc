"""The history of an Opacus accountant without torch: the law of torch.rand, the length of a loader."""

from __future__ import annotations

import json
import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import cumulant as cm
from cumulant.training.opacus_history import EXAMPLE, from_opacus, loader_length, torch_rate


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
    step = [[1, 0.1, 1]]
    wrongs: list[tuple[dict[str, Any], str]] = [
        ({}, "'mechanism' is missing"),
        ({"mechanism": "rdp"}, "'history' is missing"),
        ({"mechanism": "rdp", "history": []}, "'history' has no steps"),
        ({"mechanism": "rdp", "history": 5}, "'history' has no steps"),
        ({"mechanism": "mine", "history": step}, "mechanism='mine'; it must be one of rdp, prv, gdp"),
        ({"mechanism": [], "history": step}, "must be one of rdp"),
    ]
    for wrong, said in wrongs:
        with pytest.raises(cm.InputError, match=f"no history of Opacus: .*{said}"):
            from_opacus(wrong)
    assert from_opacus(json.loads(EXAMPLE)).relation == "add-remove"
    with pytest.raises(cm.InputError, match="is no step of a history"):
        from_opacus({"mechanism": "rdp", "history": [["a", "b", "c"]]})
