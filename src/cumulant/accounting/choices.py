"""The names that a question may choose from, as types: editors complete them and type checkers refuse others."""

from __future__ import annotations

from typing import Literal, get_args

Method = Literal["best", "exact", "rdp", "paper", "naive", "strong", "optimal"]
"""A way to answer: the rows of METHODS and BASELINES in `question`."""

ConversionName = Literal["classic", "cks"]
"""A conversion from Rényi divergences to (epsilon, delta): the rows of CONVERSIONS in `conversion.conversions`."""

KnownBound = Literal[
    "caps",
    "lemma3",
    "theorem9",
    "theorem9-max",
    "theorem27",
    "theorem27-min",
    "absolute-moment",
    "positive-part",
    "pure-extras",
    "profile",
    "pure-triples",
    "one-bit",
    "laplace-budget",
    "gaussian-diameter",
    "gaussian-ball",
    "best",
    "lower",
    "pure-response",
    "poisson-sum",
    "poisson",
    "replacement",
    "allocation",
    "with-replacement",
    "truncated-poisson",
]
"""An amplification bound of the library: the rows of BOUNDS in `bounds.table`."""

RiskKind = Literal["attribute", "reidentification", "reconstruction", "singling-out"]
"""An attack whose success a prior bounds: the rows of WORDS in `risk`."""

Direction = Literal["both", "remove", "add"]
"""The first data set: either one, the one with the record (which is removed), or the one without it."""

PictureKind = Literal["all", "epsilon", "rounds", "rdp", "trade-off"]
"""The panels of a picture: all of them, or one row of CHARTS in `plotting.charts`."""

METHOD_NAMES: tuple[Method, ...] = get_args(Method)
"""Every method, for the shell, which offers them before it loads anything."""

CONVERSION_NAMES: tuple[ConversionName, ...] = get_args(ConversionName)
"""Every conversion."""

BOUND_NAMES: tuple[KnownBound, ...] = get_args(KnownBound)
"""Every amplification bound of the library."""

RISK_KINDS: tuple[RiskKind, ...] = get_args(RiskKind)
"""Every attack whose success `cumulant risk` bounds from a prior."""

DIRECTIONS: tuple[Direction, ...] = get_args(Direction)
"""Every direction of a privacy loss."""

PICTURE_KINDS: tuple[PictureKind, ...] = get_args(PictureKind)
"""Every choice of panels."""

DEFAULT_METHOD: Method = "best"
"""The method of every question, in Python and in the shell."""

DEFAULT_ACCURACY = 1e-3
"""The part of epsilon that the grid of the exact layer may cost."""

DEFAULT_SLACK = "1e-6"
"""The slack of a reported mu (convention: one default, so that the numbers of two papers compare)."""

GOOD_FIT = 0.01
"""The fit below which mu alone describes a run (convention: Gomez et al. 2025)."""

BoundName = KnownBound | str
"""An amplification bound. A scheme that is defined elsewhere brings rows of its own, so that other texts are allowed."""
