"""The numbers behind pictures of audits: the claim, and the measurements."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy import special

from cumulant.numerics.search import bisect_integers
from cumulant.plotting.charts import Chart, Curve
from cumulant.training.audit import Claim, p_value
from cumulant.training.canaries import OneRun

RATES = np.geomspace(1e-4, 1.0, 81)


def rates(claim: Claim, members: Sequence[Any], scores: Sequence[float]) -> Chart:
    """Return the claimed trade-off, and the measured rates of every threshold.

    They are from the half of the runs on which no threshold was chosen.
    """
    half = len(scores) // 2
    coins, values = np.asarray(members)[half:].astype(bool), np.asarray(scores, dtype=np.float64)[half:]
    falling = np.argsort(-values, kind="stable")
    hits = np.cumsum(coins[falling]) / max(1, int(coins.sum()))
    alarms = np.cumsum(~coins[falling]) / max(1, int((~coins).sum()))
    seen = alarms > 0
    curves = {
        "claimed": Curve(RATES, claim.true_positive_rate(RATES)),
        "measured": Curve(alarms[seen], hits[seen]),
        "guess": Curve(RATES, RATES),
    }
    return Chart("no attack is above what is claimed", "false positive rate", "true positive rate", curves)


def guesses(claim: Claim, found: OneRun, level: float) -> Chart:
    """Return the measured share of right guesses, and the least share that refutes the claim."""
    counts = np.array(found.guesses, dtype=np.float64)
    limits = np.array([_refuting_count(claim, found.canaries, count, level / len(counts)) for count in found.guesses])
    order = np.argsort(counts)
    curves = {
        "claimed": Curve(counts[order], (limits / counts)[order]),
        "measured": Curve(counts[order], (np.array(found.correct) / counts)[order]),
        "guess": Curve(counts[order], np.full(len(counts), 0.5)),
    }
    return Chart("right guesses; above the claim it is refuted", "guesses", "share", curves, logarithmic=False)


def _refuting_count(claim: Claim, canaries: int, count: int, level: float) -> float:
    """Return the least number of right guesses that refutes the claim; NaN where none does."""

    def refuted(correct: int) -> bool:
        return p_value(claim, canaries=canaries, guesses=count, correct=correct) <= level

    if not refuted(count):
        return math.nan
    return float(bisect_integers(refuted, 0, count))


def coverage(batches: Sequence[Sequence[int]], population: int, sample: int) -> Chart:
    """Count how often records were drawn, from the rarest to the most frequent one.

    The counts stand against those of fresh samples.
    """
    drawn = np.sort(np.bincount(np.concatenate([np.asarray(b, dtype=np.int64) for b in batches]), minlength=population))
    share = (np.arange(population) + 0.5) / population
    mean, rate = len(batches) * sample / population, sample / population
    expected = mean + np.sqrt(mean * (1 - rate)) * special.ndtri(share)
    curves = {"claimed": Curve(share, np.maximum(expected, 0)), "measured": Curve(share, drawn.astype(np.float64))}
    return Chart("how often each record was drawn", "share of the records", "draws", curves, logarithmic=False)


def overlap(batches: Sequence[Sequence[int]], population: int) -> Chart:
    """Sum up the records that consecutive batches share, against the mean of fresh samples."""
    sets = [set(batch) for batch in batches]
    shared = np.cumsum([len(one & other) for one, other in itertools.pairwise(sets)])
    mean = np.cumsum([len(one) * len(other) / population for one, other in itertools.pairwise(sets)])
    steps = np.arange(1, len(shared) + 1, dtype=np.float64)
    curves = {"claimed": Curve(steps, mean), "measured": Curve(steps, shared.astype(np.float64))}
    return Chart("records shared by consecutive batches", "batches", "records, summed", curves, logarithmic=False)
