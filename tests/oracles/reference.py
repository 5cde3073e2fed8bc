"""Certified reference values, and the mechanisms they speak of."""

import json
from pathlib import Path
from typing import Any

import cumulant as cm

_HERE = Path(__file__).parent


def load(name: str) -> Any:
    return json.loads((_HERE / f"{name}.json").read_text())


def mechanism(name: str, value: Any) -> cm.Mechanism:
    """The mechanism a reference row names; parameters stay text, so they are exact."""
    text = str(value)
    match name:
        case "gaussian":
            return cm.Gaussian(sigma=text)
        case "laplace":
            return cm.Laplace(scale=text)
        case "rr":
            return cm.RandomizedResponse(p=text)
    raise KeyError(name)


def panel(name: str) -> cm.Mechanism:
    """The mechanism of a panel of the paper's figures, such as gaussian_sigma5 or b_laplace_b2."""
    *_, family, parameter = name.split("_")
    number = parameter.lstrip("abcdefghijklmnopqrstuvwxyz")
    return mechanism({"randresp": "rr"}.get(family, family), number)
