"""Draw docs/figures/shuffled-batches.png: `python docs/shuffled_batches_figure.py [FILE]`.

Epsilon of one shuffled epoch over the number of batches, from both ends, for three noise multipliers at delta = 1e-6.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import cumulant as cm

DELTA = "1e-6"
NOISES = {"2": "#d55e00", "4": "#0072b2", "8": "#009e73"}
BATCHES = (10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10_000, 20_000, 50_000, 100_000)


def ends(noise: str, batches: tuple[int, ...] = BATCHES) -> list[tuple[int, float, float]]:
    """Return the number of batches with the upper and the lower end of epsilon."""
    step, found = cm.Gaussian(noise_multiplier=noise, relation=cm.Relation.REPLACE_ONE), []
    for count in batches:
        answer = (step @ cm.ShuffledBatches(batches=count)).guarantee(delta=DELTA)
        found.append((count, answer.epsilon, answer.lower or 0.0))
    return found


def draw(path: Path, batches: tuple[int, ...] = BATCHES) -> Any:
    """Draw all noises into one file and return the figure."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7, 4.2), layout="constrained")
    axes = figure.subplots()
    for noise, colour in NOISES.items():
        rows = ends(noise, batches)
        counts, upper, lower = ([row[i] for row in rows] for i in range(3))
        axes.fill_between(counts, lower, upper, color=colour, alpha=0.15, linewidth=0)
        axes.plot(counts, upper, color=colour, label=f"noise multiplier {noise}")
        axes.plot(counts, lower, color=colour, linestyle="--")
    axes.set(xscale="log", yscale="log", xlabel="batches of one epoch", ylabel=f"epsilon at delta = {DELTA}")
    axes.legend(title="solid: upper end, dashed: lower end", frameon=False)
    figure.savefig(path, dpi=150)
    return figure


if __name__ == "__main__":
    default = Path(__file__).parent / "figures" / "shuffled-batches.png"
    draw(Path(sys.argv[1]) if len(sys.argv) > 1 else default)
