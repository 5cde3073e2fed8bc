"""What the exact layer may use of a way of sampling."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Sampling:
    """What a way of sampling makes of the dominating pair of whatever runs on the sample; only what is said here is used.

    `directions` are the pairs, as `Mixture` names them, of which the largest composition bounds the run; `triples` says that
    three values in general position are neighbours of its relation, `cone` that Theorem B is about it.
    """

    directions: tuple[str, ...]
    triples: bool
    cone: bool


WITHOUT_REPLACEMENT = Sampling(("symmetric",), triples=True, cone=True)
POISSON = Sampling(("remove", "add"), triples=False, cone=False)
