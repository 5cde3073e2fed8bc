"""The history of an Opacus accountant as an expression, and the rate at which stock Opacus samples; torch is not needed."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from cumulant.domains import spelling
from cumulant.errors import InputError, shown
from cumulant.mechanisms.gaussian import Gaussian
from cumulant.mechanisms.mechanism import Expression
from cumulant.sampling.poisson import Poisson

OPACUS = ("rdp", "prv", "gdp")
"""Names of the accountants of Opacus whose histories can be read."""

EXAMPLE = '{"history": [[0.9, 0.01136, 3520]], "mechanism": "rdp"}'
"""A state_dict of an accountant of Opacus as JSON: noise multiplier, rate and steps."""


def torch_rate(rate: float) -> Fraction:
    """Return the probability of `torch.rand(n) < rate`.

    rand is a multiple of 2^-24, and the rate is compared as a float32.

    >>> float(torch_rate(0.001) / Fraction(1, 1000) - 1)
    4.7e-05
    """
    return Fraction(math.ceil(Fraction(float(np.float32(rate))) * 2**24), 2**24)


def loader_length(batch: int, records: int) -> int:
    """Return the steps of one epoch of a loader that keeps its last batch: stock Opacus samples at 1 / this number.

    >>> loader_length(256, 60000)
    235
    """
    return -(-records // batch)


def from_opacus(state_dict: Mapping[str, Any]) -> Expression:
    """Convert the history of Opacus' own accountants to an expression.

    It has Poisson samples at the rates that the history states.

    That is what was accounted, not what ran: of the loader nothing is known, and with poisson_sampling=False it drew
    something else.

    >>> from_opacus({"mechanism": "rdp", "history": [(2.0, 0.125, 58)]})
    Gaussian(sigma=2, relation="add-remove") @ Poisson(rate=0.125) * 58
    """
    for key in ("mechanism", "history"):
        if key not in state_dict:
            raise InputError(f"this is no history of Opacus: {key!r} is missing; its state is {EXAMPLE}")
    if state_dict["mechanism"] not in OPACUS:
        known = ", ".join(OPACUS)
        raise InputError(
            f"this is no history of Opacus: mechanism={shown(state_dict['mechanism'])}; it must be one of {known}"
        )
    if not isinstance(state_dict["history"], Sequence) or not state_dict["history"]:
        raise InputError(f"this is no history of Opacus: 'history' has no steps; its state is {EXAMPLE}")
    whole: Expression | None = None
    for row in state_dict["history"]:
        try:
            noise, rate, count = float(row[0]), float(row[1]), int(row[2])
        except (TypeError, ValueError, LookupError):
            raise InputError(
                f"{shown(row)} is no step of a history; a step is [noise multiplier, rate, steps], such as [1.1, 0.01, 100]"
            ) from None
        gaussian = Gaussian.from_clipping(norm=1, noise=noise, relation="add-remove")
        part = gaussian @ Poisson(rate=spelling(torch_rate(rate))) * count
        whole = part if whole is None else whole + part
    assert whole is not None  # the history has steps
    return whole
