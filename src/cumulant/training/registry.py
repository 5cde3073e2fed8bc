"""A statement as an entry of the registry of deployments (OpenDP and NIST), and as a checklist of NIST SP 800-226.

What only the people who deploy can know has no default. A missing answer is never filled in.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from datetime import date
from typing import Any

from cumulant.accounting.choices import GOOD_FIT
from cumulant.accounting.numbers import percent, rounded_down, rounded_up
from cumulant.errors import InputError, shown

PRODUCTS = (
    "Summary statistics",
    "Machine learning model",
    "Dataset",
    "Synthetic data",
    "Interactive API",
    "SQL queries",
)
SECTORS = ("Technology", "Healthcare", "Education", "Government", "Energy", "Finance")
MODELS = ("Local", "Central", "Shuffle", "Federated")
RELEASES = ("One release", "Many releases")
SOURCES = ("Static", "Dynamic")
ACCESSES = ("Interactive", "Non-interactive")
"""The words that the registry's schema allows (its version of July 2026)."""

DIGITS = 4
"""Significant digits of epsilon and delta, rounded up (convention of the registry: readable numbers)."""

_SLUG = re.compile(r"[a-z0-9]+(?:[_-][a-z0-9]+)*")


@dataclass(frozen=True, slots=True, kw_only=True)
class Deployment:
    """Facts about a deployment that only you know, for the registry. The first nine are required; the others raise the tier.

    >>> Deployment.read({"name": "taps"})
    Traceback (most recent call last):
    ...
    cumulant.errors.InputError: a deployment needs url_slug, data_curators, description, intended_use, ... say them in words
    """

    url_slug: str
    name: str
    data_curators: Sequence[str]
    description: str
    intended_use: str
    data_product_type: str
    data_product_region: str
    publication_date: str
    registry_authors: Sequence[str]
    data_product_sector: str = ""
    data_domain: str = ""
    model_name: str = ""
    model_name_details: str = ""
    actors: str = ""
    release_type: str = ""
    release_type_details: str = ""
    data_source_type: str = ""
    data_source_type_details: str = ""
    access_type: str = ""
    access_type_details: str = ""
    post_processing: str = ""
    justification: str = ""
    sources: str = ""
    notes: str = ""

    def __post_init__(self) -> None:
        for each in fields(self):
            value: object = getattr(self, each.name)
            if each.name in _LISTS:
                whole = isinstance(value, list | tuple) and bool(value)
                if not whole or not all(isinstance(word, str) and word.strip() for word in value):  # type: ignore[attr-defined]
                    raise InputError(f"{each.name}={shown(value)} must be a list of at least one name")
            elif not isinstance(value, str) or (each.name in REQUIRED and not value.strip()):
                raise InputError(f"{each.name}={shown(value)} must be said in words")
        for name, words in _ENUMS.items():
            value = getattr(self, name)
            if value not in (words if name in REQUIRED else (*words, "")):
                raise InputError(f"{name}={shown(value)} is no word of the registry; choose one of {', '.join(words)}")
        if not _SLUG.fullmatch(self.url_slug):
            raise InputError(
                f"url_slug={self.url_slug!r} must be lower case words joined by _ or -, such as uni_taps_2026"
            )
        try:
            found = date.fromisoformat(self.publication_date)
        except ValueError:
            found = None
        if found is None or found.isoformat() != self.publication_date:
            raise InputError(f"publication_date={self.publication_date!r} must be a date such as 2026-11-17")

    @classmethod
    def read(cls, given: Mapping[str, Any]) -> Deployment:
        """Return the deployment that a dict or a JSON object describes; InputError names everything that is missing."""
        known = [each.name for each in fields(cls)]
        missing = [name for name in REQUIRED if name not in given]
        if missing:
            raise InputError(f"a deployment needs {', '.join(missing)}; only you know them, so say them in words")
        unknown = [str(name) for name in given if name not in known]
        if unknown:
            raise InputError(f"{unknown[0]!r} is no word of a deployment; there are {', '.join(known)}")
        return cls(**given)


_LISTS = ("data_curators", "registry_authors")
_ENUMS = {
    "data_product_type": PRODUCTS,
    "data_product_sector": SECTORS,
    "model_name": MODELS,
    "release_type": RELEASES,
    "data_source_type": SOURCES,
    "access_type": ACCESSES,
}
REQUIRED = (
    "url_slug",
    "name",
    "data_curators",
    "description",
    "intended_use",
    "data_product_type",
    "data_product_region",
    "publication_date",
    "registry_authors",
)

_TIERS = {
    2: {
        "dp_variant": ("variant_name",),
        "privacy_loss": ("privacy_unit", "privacy_parameters"),
        "deployment_model": ("model_name", "release_type", "data_source_type", "access_type"),
    },
    3: {
        "dp_variant": ("data_domain", "unprotected_quantities"),
        "privacy_loss": ("privacy_unit_details", "privacy_parameters_details"),
        "deployment_model": ("actors",),
        "accounting": ("composition", "post_processing"),
        "implementation": ("preprocessing_and_hyperparameter_tuning", "mechanisms", "justification"),
    },
}
"""The fields that a tier asks for beyond the tier below."""


def registry_entry(statement: Mapping[str, Any], deployment: Deployment) -> dict[str, Any]:
    """Return the entry as a dict that the registry's schema allows; InputError where epsilon is infinite."""
    if not isinstance(deployment, Deployment):
        raise InputError(f"deployment={shown(deployment)} must be a Deployment(…): it says what no accountant can know")
    first = statement["guarantees"][0]
    if first["epsilon"] == "inf":
        raise InputError("epsilon is infinite, so there is nothing to register; report a larger delta, or more noise")
    pure = first["delta"] == 0
    parameters: dict[str, Any] = {"epsilon": float(rounded_up(float(first["epsilon"]), DIGITS))}
    if not pure:
        parameters["delta"] = float(rounded_up(float(first["delta"]), DIGITS))
    body: dict[str, dict[str, Any]] = {
        "basic": _said(
            deployment,
            "name",
            "data_curators",
            "description",
            "intended_use",
            "data_product_type",
            "data_product_region",
            "publication_date",
            "data_product_sector",
        ),
        "dp_variant": {
            "variant_name": "Pure DP" if pure else "Approximate DP",
            **_said(deployment, "data_domain"),
            "unprotected_quantities": statement["not_covered"],
        },
        "privacy_loss": {
            "privacy_unit": statement["unit"],
            "privacy_unit_details": (
                f"{statement['relation']} neighbours: {statement['relation_meaning']}; distance 1 in this relation."
            ),
            "privacy_parameters": parameters,
            "privacy_parameters_details": _details(statement, first),
        },
        "deployment_model": _said(
            deployment,
            "model_name",
            "model_name_details",
            "actors",
            "release_type",
            "release_type_details",
            "data_source_type",
            "data_source_type_details",
            "access_type",
            "access_type_details",
        ),
        "accounting": {
            "composition": (
                f"{statement['run']}: composed by method {first['method']}, bound {first['bound']}, "
                f"route {first['route']}, with cumulant {statement['version']}."
            ),
            "post_processing": " ".join([f"{_covered(statement)}.", deployment.post_processing]).strip(),
        },
        "implementation": {
            "preprocessing_and_hyperparameter_tuning": statement["tuning"],
            "mechanisms": (
                f"{statement['run']}. Batches: {statement['sampler']}. Noise: {statement['noise']}. "
                f"Assumed: {'; '.join(statement['assumptions'])}."
            ),
            **_said(deployment, "justification"),
        },
        "administrative": _said(deployment, "sources", "notes", "registry_authors"),
    }
    return {
        "url_slug": deployment.url_slug,
        "status": "Draft",  # nobody but the board approves
        "tier": _tier(body),
        "deployment": {name: part for name, part in body.items() if part},
    }


def registry_text(statement: Mapping[str, Any], deployment: Deployment) -> str:
    """Return the entry as YAML; every text and number is JSON, which is valid YAML, so that nothing needs escaping."""
    return "\n".join(_lines(registry_entry(statement, deployment), 0)) + "\n"


def _said(deployment: Deployment, *names: str) -> dict[str, Any]:
    found = {name: getattr(deployment, name) for name in names}
    return {name: list(value) if name in _LISTS else value for name, value in found.items() if value}


def _covered(statement: Mapping[str, Any]) -> str:
    return next((each for each in statement["assumptions"] if each.startswith("post-processing")), "none")


def _tier(body: Mapping[str, Mapping[str, Any]]) -> int:
    """Return the largest tier all of whose fields are filled."""
    reached = 1
    for tier, parts in _TIERS.items():
        if any(not body[part].get(name) for part, names in parts.items() for name in names):
            break
        reached = tier
    return reached


def _details(statement: Mapping[str, Any], first: Mapping[str, Any]) -> str:
    said = [f"epsilon is {first['rigour']} and rounded up."]
    if first["epsilon_lower"] is not None:
        said.append(f"No claim below epsilon = {rounded_down(first['epsilon_lower'])} is true at this delta.")
    said += [gaussian_text(statement["gaussian"]), attack_text(statement["attack"]), *statement["attack"]["risks"]]
    return " ".join(said)


def gaussian_text(found: Mapping[str, Any]) -> str:
    """Return mu with its slack and fit in one sentence.

    >>> gaussian_text({"mu": 0.5, "slack": 1e-6, "fit": 0.002, "fit_lower": 0.001})
    'Gaussian privacy: mu = 0.5 at slack 1e-6 (fit 0.002).'
    >>> gaussian_text({"mu": 0.5, "slack": 1e-6, "fit": 0.02, "fit_lower": 0.01})
    'Gaussian privacy: mu = 0.5 at slack 1e-6 (fit 0.02, not below 0.01: rely on epsilon).'
    """
    if found["mu"] == "inf" or math.isinf(found["mu"]):
        return f"Gaussian privacy: no finite mu is known at slack {rounded_up(found['slack'])}."
    unknown = found["fit"] is None
    fit = f"fit at least {rounded_down(found['fit_lower'], 2)}" if unknown else f"fit {rounded_up(found['fit'], 2)}"
    fit += f", not below {GOOD_FIT}: rely on epsilon" if fits_badly(found) else ""
    return f"Gaussian privacy: mu = {rounded_up(found['mu'])} at slack {rounded_up(found['slack'])} ({fit})."


def fits_badly(found: Mapping[str, Any]) -> bool:
    """Return True if mu is known to overstate attacks by more than a report should; False if its fit is unknown.

    >>> fits_badly({"fit": 0.02, "fit_lower": 0.01}), fits_badly({"fit": None, "fit_lower": 0.003})
    (True, False)
    """
    return float(found["fit_lower"] if found["fit"] is None else found["fit"]) >= GOOD_FIT


def attack_text(found: Mapping[str, Any]) -> str:
    """Return what the best membership attack finds, in one sentence."""
    rate = next(each for each in found["rates"] if each["false_positive_rate"] == 0.01)
    what = found.get("finds", "members")
    return (
        f"A membership attack with 1 % false alarms finds at most {percent(rate['true_positive_rate'])} of the {what}."
    )


def _lines(value: Mapping[str, Any], depth: int) -> list[str]:
    lines = []
    for key, each in value.items():
        if isinstance(each, dict):
            lines += [f"{'  ' * depth}{key}:", *_lines(each, depth + 1)]
        else:
            lines.append(f"{'  ' * depth}{key}: {_scalar(each)}")
    return lines


def _scalar(value: Any) -> str:
    """Return a value as JSON that YAML reads alike: of 1e-05 YAML 1.1 makes a text, of 1.0e-05 a number.

    >>> _scalar(1e-5), _scalar(0.5), _scalar("yes: no")
    ('1.0e-05', '0.5', '"yes: no"')
    """
    text = json.dumps(value)
    return re.sub(r"^(-?\d+)e", r"\1.0e", text) if isinstance(value, float) else text


# ---- NIST SP 800-226

NOT_SAID = "not said"


def checklist(statement: Mapping[str, Any], deployment: Deployment | None = None) -> str:
    """Return eleven lines that NIST SP 800-226 asks an evaluator for, each with the answer or "not said"."""
    first = statement["guarantees"][0]
    bounded = {
        "replace-one": "bounded (one record is replaced)",
        "add-remove": "unbounded (one record is added or removed)",
    }
    said: dict[str, str] = {
        "epsilon": rounded_up(float(first["epsilon"])),
        "delta": rounded_up(float(first["delta"])),
        "unit of privacy": statement["unit"],
        "neighbours": bounded.get(statement["relation"], ""),
        "trust model": "" if deployment is None else deployment.model_name,
        "mechanism": statement["run"],
        "implementation": f"noise: {statement['noise']}; batches: {statement['sampler']}",
        "composition over releases": f"released: {statement['released']}; tuning: {statement['tuning']}",
        "data collection": "" if deployment is None else deployment.data_source_type_details,
        "access control": "" if deployment is None else deployment.access_type_details,
        "bias": "",
    }
    return "\n".join(f"{name}: {' '.join(answer.split()) or NOT_SAID}" for name, answer in said.items()) + "\n"
