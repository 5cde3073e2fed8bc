"""The table of the theorems about random allocation: what each says, what it assumes, what it proves."""

from __future__ import annotations

from cumulant.bounds.allocation import allocation
from cumulant.bounds.bound import Bound, no_slack, nothing

_EPOCH = (
    "every record is in one step of the epoch, chosen uniformly and independently of the others, add/remove neighbours"
)
_HERE = "docs/mechanisms/random-allocation.md"

ALLOCATION: dict[str, Bound] = {
    row.name: row
    for row in (
        Bound(
            "caps",
            "eps'(a) <= eps(a)",
            _EPOCH,
            f"joint convexity, {_HERE}",
            lambda base, pair, rate: base,
            nothing,
        ),
        Bound(
            "allocation",
            "eps'(a) is the larger of log E (S/t)^a / (a-1) and log E (S/t)^(1-a) / (a-1), S/t the mean of t ratios p/q",
            _EPOCH,
            f"Chua et al. 2024, Feldman and Shenfeld 2025; {_HERE}",
            allocation,
            no_slack,
            tight=True,
        ),
        Bound("best", "the smallest of all bounds that apply", _EPOCH, "all of the above", None, nothing),
    )
}
"""The rows, from the one that holds for every mechanism to the one that knows more."""
