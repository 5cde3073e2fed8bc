"""Hints for signs and names that people type instead of those of the notation."""

from __future__ import annotations

from collections.abc import Iterable

GREEK = {"σ": "sigma", "ε": "epsilon", "δ": "delta", "ρ": "rho", "γ": "rate"}
"""Letters that stand for names."""

MEANT = {
    "×": "repetitions are written with *, like Gaussian(sigma=5) * 1000",
    "·": "repetitions are written with *, like Gaussian(sigma=5) * 1000",
    "^": "there are no powers; write 1e-5 for a small number, and Gaussian(sigma=5) * 1000 for a thousand repetitions",
    "−": "this is a typographic minus sign; write -, as in 1e-5",
    "–": "this is a dash; write -, as in 1e-5",
    "“": 'these are typographic quotes; write "',
    "”": 'these are typographic quotes; write "',
    "’": "these are typographic quotes; write '",
    "‘": "these are typographic quotes; write '",
    "{": "parentheses are round, like Gaussian(sigma=5)",
    ":": "a parameter is given by =, like Gaussian(sigma=5)",
    ";": "what ran is joined by +, like Gaussian(sigma=5) + Laplace(scale=2)",
    "&": "what ran is joined by +, like Gaussian(sigma=5) + Laplace(scale=2)",
    "µ": "there are no Greek units; write the number, like 1e-6",
    "∞": "a parameter is a finite number",
}
"""The meaning of signs that are typed where the notation has another one."""

CALLED = {
    "normal": "Gaussian",
    "noise": "Gaussian",
    "dpsgd": "Gaussian",
    "exponential": "PureDP",
    "epsilondp": "PureDP",
    "zcdp": "ZeroConcentrated",
    "rr": "RandomizedResponse",
    "subsample": "WithoutReplacement",
    "sample": "WithoutReplacement",
    "uniform": "WithoutReplacement",
    "fixedsize": "WithoutReplacement",
    "bernoulli": "Poisson",
    "ballsinbins": "RandomAllocation",
    "ballsandbins": "RandomAllocation",
    "allocation": "RandomAllocation",
    "std": "sigma",
    "stddev": "sigma",
    "deviation": "sigma",
    "noise_scale": "sigma",
    "b": "scale",
    "eps": "epsilon",
    "z": "noise_multiplier",
    "multiplier": "noise_multiplier",
    "clipping": "clip",
    "max_grad_norm": "clip",
    "norm": "clip",
    "q": "rate",
    "probability": "rate",
    "sampling_rate": "rate",
    "sample_rate": "rate",
    "batch": "sample",
    "batch_size": "sample",
    "size": "population",
    "n": "population",
    "records": "population",
}
"""Names that others give to a mechanism, a scheme or a parameter, in lower case, with ours."""

EXPLAINED = frozenset({"histogram"})
"""Words that people write as a mechanism, in lower case; `cumulant explain` says how to write what they mean."""

INSTEAD = {
    "epsilon": "noise has a scale: Laplace(scale=S/epsilon) is epsilon-DP at sensitivity S; PureDP(epsilon=...) is a promise",
    "delta": "a delta is asked at, with --delta or delta=...; ApproximateDP(epsilon=..., delta=...) is a promise",
    "steps": "repetitions are written with *, like Gaussian(sigma=5) * 1000",
    "rounds": "repetitions are written with *, like Gaussian(sigma=5) * 1000",
    "epochs": "repetitions are written with *, one for each step, or use cumulant dpsgd",
}
"""Advice on a parameter that something does not have, and that is often looked for there."""


def nearest(name: object, known: Iterable[str]) -> str:
    """Suggest the nearest known name, in brackets; empty where nothing is close.

    >>> nearest("theorem_9", ["theorem9", "theorem27"])
    " (did you mean 'theorem9'?)"
    >>> nearest("x", ["theorem9"])
    ''
    """
    from difflib import get_close_matches

    if not isinstance(name, str):
        return ""
    names = {each.lower(): each for each in known}
    close = get_close_matches(name[:60].lower(), names, n=1)
    return f" (did you mean {names[close[0]]!r}?)" if close else ""


BATCHES = (
    "records that are shuffled and cut into batches of a fixed size are "
    'Gaussian(..., relation="replace-one") @ ShuffledBatches(batches=...) * epochs; RandomAllocation(steps=...) is the loop '
    "in which every record goes into a step chosen for it alone, so that batches have random sizes (docs/shuffled-batches.md)"
)
"""The answer to those who ask for the privacy of shuffled batches."""

REFUSED = dict.fromkeys(
    ("shuffled", "shuffledbatch", "shuffling", "reshuffle", "reshuffled", "permutation", "permuted"), BATCHES
) | {"dataloader": "DataLoader(shuffle=True) is ShuffledBatches(), any order of the records, which is not amplified"}
"""Why there is nothing of this name, in lower case."""
