"""The loss law of an epoch in which every record is in k of t steps, for steps with few ratios, exactly.

Letters: W the ratio of one step under Q, with the values w_1, ..., w_M; n_i the number of steps with value w_i, the type of an
output. Under Q a type has a multinomial mass. The ratio of the epoch is e_k(W_1, ..., W_t) / C(t, k), the mean of the product
of the ratios over all k-subsets of the steps. It is a sum over the numbers j_i of picked steps with value w_i:
SUM PROD C(n_i, j_i) w_i^(j_i) / C(t, k). The proof is in docs/mechanisms/random-allocation.md.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from functools import lru_cache

import numpy as np

from cumulant.losses.grid import Loss
from cumulant.numerics.arithmetic import Array
from cumulant.numerics.rounding import U

MOST_WORK = 4_000_000
"""Types times splits of the picks beyond which blocks answer; about half a second. Chosen by hand."""
MOST_STEPS = 4000
"""Steps beyond which blocks answer: the table of binomials has so many rows. Chosen by hand."""
MOST_BINOMIALS = 300_000
"""Entries of the table of binomials beyond which blocks answer: 100 of 3,000 steps take seconds (measured)."""
LARGEST_LOG = 500.0
"""Largest log of a ratio of the epoch: its power is a float, and so is its mass."""


def type_work(loss: Loss, steps: int, picks: int) -> float:
    """Return the number of types times that of splits of the picks; inf where it is too much, or the ratios are not few."""
    if loss.smooth or not 1 < picks < steps <= MOST_STEPS or picks * steps > MOST_BINOMIALS:
        return math.inf
    x = loss.atoms()[0]
    if not x.size or picks * float(np.abs(x).max()) > LARGEST_LOG:
        return math.inf
    many = x.size + (loss.equal > 0) + (loss.leak > 0)
    work = math.comb(steps + many - 1, many - 1) * math.comb(picks + many - 1, many - 1)
    return float(work) if work <= MOST_WORK else math.inf


@lru_cache(maxsize=16)
def type_law(loss: Loss, steps: int, picks: int) -> tuple[Array, Array, float, float]:
    """Return logs of ratios in increasing order, log Q-masses, the Q-mass of ratio 0, and the error of all logs."""
    x, log_q = loss.atoms()
    if loss.equal > 0:
        x, log_q = np.append(x, 0.0), np.append(log_q, math.log(loss.equal))
    if loss.leak > 0:  # where Q alone has mass the ratio is 0
        x, log_q = np.append(x, -np.inf), np.append(log_q, math.log(loss.leak))
    types = np.array(list(_compositions(steps, x.size)), dtype=np.int64)
    log_factorial = np.array([_log(math.factorial(n)) for n in range(steps + 1)])
    log_m = log_factorial[steps] - log_factorial[types].sum(axis=1) + types @ log_q
    choose = np.array([[_log(math.comb(n, j)) for j in range(picks + 1)] for n in range(steps + 1)])
    ratio = np.zeros(len(types))
    splits = 0
    for picked in _compositions(picks, x.size):
        # a picked step with ratio 0 makes the product 0
        shift = math.fsum(j * value for j, value in zip(picked, x.tolist(), strict=True) if j)
        if shift == -math.inf:
            continue
        log_term = sum(choose[types[:, i], j] for i, j in enumerate(picked)) + (shift - choose[steps, picks])
        ratio += np.exp(log_term)
        splits += 1
    # each log is a sum of fewer than 2 M + 3 numbers, none larger than these
    finite = np.abs(x[np.isfinite(x)])
    size = 3 * float(log_factorial[steps]) + steps * float(np.abs(log_q).max()) + picks * float(finite.max())
    error = U * (64 + splits + 4 * (2 * x.size + 3) * (1 + size))
    there = ratio > 0
    none = float(np.exp(log_m[~there]).sum()) * (1 + 2 * error)
    log_ratio = np.log(ratio[there])
    order = np.argsort(log_ratio, kind="stable")
    return log_ratio[order], log_m[there][order], none, error


def _compositions(total: int, parts: int) -> Iterator[tuple[int, ...]]:
    """Yield all tuples of so many nonnegative integers with this sum."""
    for bars in itertools.combinations(range(total + parts - 1), parts - 1):
        ends = (-1, *bars, total + parts - 1)
        yield tuple(b - a - 1 for a, b in itertools.pairwise(ends))


def _log(number: int) -> float:
    return math.log(number) if number else -math.inf
