"""Ways to draw records: what is claimed for one step, here and by a peer."""

from __future__ import annotations

from collections.abc import Iterator

import peers
from measure import Comparison, Fact, LeftOut

import cumulant as cm


def draws(quick: bool) -> Iterator[Comparison | Fact | LeftOut]:
    """The truncated Poisson sample of 20 of 100."""
    step = cm.Gaussian(sigma=2) @ cm.TruncatedPoisson(rate="1/4", limit=20, population=100)
    ours = step.delta(epsilon="0.1")
    theirs = peers.google_truncated_poisson(records=100, rate=0.25, limit=20, noise=2.0, epsilon=0.1)
    yield Fact(
        "delta of a Poisson sample cut to a limit, as a part of what dp_accounting says",
        ours / theirs,
        0.6,
        f"{ours:.4f} against {theirs:.4f}: 100 records, rate 1/4, limit 20, noise 2, epsilon 0.1",
    )
