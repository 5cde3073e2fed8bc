"""Draw the pictures of the home page, the news and the gallery: `python docs/pictures.py [NAME …]`.

They go into docs/figures. Peers' epsilons are those of benchmarks/peer_epsilons.json; ours are computed anew.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

import cumulant as cm
from cumulant.accounting.numbers import rounded_nearest, rounded_up
from cumulant.plotting.curve_labels import label_curves
from cumulant.plotting.drawing import canvas, grid, save
from cumulant.plotting.sheet import label_ticks

ROOT = Path(__file__).resolve().parents[1]
FIGURES = ROOT / "docs" / "figures"
BLUE, ORANGE, GREY, BLACK = "#0050a0", "#e07000", "#808080", "#101010"
HOME_RUN = 'Gaussian(sigma=1, relation="add-remove") @ Poisson(rate="512/50000") * 5860'
"""The run of the README: 60 epochs on CIFAR-10 with batches of 512."""


def interval() -> Any:
    """Epsilons of one run by all accountants on one axis, and the part of it that no accountant can reach."""
    found = cm.parse(HOME_RUN).guarantee(delta="1e-5")
    peers = json.loads((ROOT / "benchmarks" / "peer_epsilons.json").read_text())
    rows = [(name, each["epsilon"]["CIFAR-10, 60 epochs"], BLUE) for name, each in peers.items()]
    rows = [*sorted(rows, key=lambda row: -row[1]), ("cumulant", found.epsilon, ORANGE)]
    figure = canvas((8.4, 3.2))
    figure.set_layout_engine("constrained")
    axes = figure.subplots()
    for place, (name, epsilon, colour) in enumerate(reversed(rows)):
        axes.plot([epsilon], [place], "o", color=colour, markersize=8, zorder=3)
        shown = rounded_up(epsilon) if name == "cumulant" else rounded_nearest(epsilon)
        axes.text(epsilon + 0.012, place, f"{name}: {shown}", va="center", fontsize=9, color=colour)
    low = found.lower or 0.0
    axes.axvspan(4.55, low, color=GREY, alpha=0.18, linewidth=0)
    axes.text(4.56, len(rows) - 1, "impossible:\nno accountant can\nreport less", va="top", fontsize=9, color="#505050")
    axes.axvline(low, color=BLACK, linewidth=1)
    axes.set(xlim=(4.55, 5.4), ylim=(-0.7, len(rows) - 0.3), yticks=[], xlabel="ε at δ = 1e-5")
    axes.set_title("One DP-SGD run (σ = 1, batches of 512 of 50,000, 60 epochs), seven accountants", fontsize=10)
    axes.spines[["top", "right", "left"]].set_visible(False)
    return figure


def _panel(title: str, across: str, logarithmic: bool = True) -> tuple[Any, Any]:
    figure = canvas((6.2, 3.6))
    figure.set_layout_engine("constrained")
    axes = figure.subplots()
    axes.set_title(title, fontsize=10)
    axes.set(xscale="log", yscale="log" if logarithmic else "linear", xlabel=across, ylabel="ε at δ = 1e-6")
    return figure, axes


def _band(axes: Any, x: Sequence[int], guarantees: list[cm.Guarantee], colour: str, name: str) -> tuple[Any, str]:
    """Draw the interval of each guarantee as a band; return its upper line and its name."""
    upper = np.array([each.epsilon for each in guarantees])
    lower = np.array([each.lower or each.epsilon for each in guarantees])
    axes.fill_between(x, lower, upper, color=colour, alpha=0.25, linewidth=3)
    (line,) = axes.plot(x, upper, color=colour, linewidth=1.4)
    return line, name


def _level(axes: Any, x: Sequence[int], epsilon: float, name: str) -> tuple[Any, str]:
    """Draw one epsilon as a dashed line; return it and its name."""
    (line,) = axes.plot([x[0], x[-1]], [epsilon, epsilon], color="#505050", linestyle="--", linewidth=1)
    return line, name


def _finish(axes: Any, lines: list[tuple[Any, str]]) -> None:
    """Name the lines on the lines."""
    axes.margins(y=0.15)
    grid(axes)
    label_ticks(axes)
    label_curves(axes, lines)


STEPS = (10, 30, 100, 300, 1000)
"""Steps of the one pass over the data that is drawn."""


def allocation() -> Any:
    """Random allocation against Poisson samples of the same expected size."""
    figure, axes = _panel("Each record in one random step of the pass (σ = 1)", "steps of the pass")
    noise = cm.parse('Gaussian(sigma=1, relation="add-remove")')
    allocated = [(noise @ cm.RandomAllocation(steps=t)).guarantee(delta="1e-6") for t in STEPS]
    poisson = [(noise @ cm.Poisson(rate=Fraction(1, t)) * t).guarantee(delta="1e-6") for t in STEPS]
    lines = [
        _band(axes, STEPS, poisson, BLUE, "Poisson samples"),
        _band(axes, STEPS, allocated, ORANGE, "random allocation"),
        _level(axes, STEPS, noise.epsilon(delta="1e-6"), "the step is known"),
    ]
    _finish(axes, lines)
    return figure


BATCHES = (10, 30, 100, 300, 1000, 3000, 10_000)
"""Batches of the one epoch that is drawn."""


def shuffled() -> Any:
    """One shuffled epoch with its two ends, against one release."""
    figure, axes = _panel("One shuffled epoch, replace-one (σ = 4 times the norm)", "batches of the epoch")
    noise = cm.parse('Gaussian(noise_multiplier=4, relation="replace-one")')
    found = [(noise @ cm.ShuffledBatches(batches=t)).guarantee(delta="1e-6") for t in BATCHES]
    lines = [
        _band(axes, BATCHES, found, ORANGE, "the truth lies in this band"),
        _level(axes, BATCHES, noise.epsilon(delta="1e-6"), "the order is known: one release"),
    ]
    _finish(axes, lines)
    return figure


BANDS = (1, 2, 4, 8, 16)
"""Numbers of bands of the correlated noise that are drawn."""

CORRELATED_STEPS = 256
ERROR = 10.0
"""The root mean square error of the running sums, in clipping norms, that all noise has."""


def bands(count: int) -> list[Fraction]:
    """The first coefficients of (1 - x)^(-1/2): the factor of the running sum, cut off."""
    found = [Fraction(1)]
    for k in range(1, count):
        found.append(found[-1] * Fraction(2 * k - 1, 2 * k))
    return found


def noise(count: int) -> float:
    """The noise over the clipping norm at which the running sums of all steps have the error ERROR on average."""
    n = CORRELATED_STEPS
    column = np.zeros(n)
    column[:count] = [float(each) for each in bands(count)]
    factor = np.array([[column[i - j] if i >= j else 0.0 for j in range(n)] for i in range(n)])
    left = np.tril(np.ones((n, n))) @ np.linalg.inv(factor)
    return float(ERROR * np.sqrt(n) / np.linalg.norm(left))


def correlated() -> Any:
    """Epsilon at one error of the running sums, against the number of bands."""
    figure, axes = _panel("Correlated noise at equal error of the running sums", "bands of the noise", False)
    schemes = ((cm.FixedOrder, BLUE, "records in a fixed order"), (cm.CyclicPoisson, ORANGE, "cyclic Poisson samples"))
    lines = []
    for scheme, colour, name in schemes:
        found = [correlated_run(count, scheme).guarantee(delta="1e-6") for count in BANDS]
        lines.append(_band(axes, BANDS, found, colour, name))
    _finish(axes, lines)
    axes.set_xticks(BANDS, [str(each) for each in BANDS])
    return figure


def correlated_run(count: int, scheme: Any) -> cm.Expression:
    """One pass of 256 steps with so many bands, whose noise gives the error ERROR."""
    sigma = Fraction(f"{noise(count):.6g}")
    matrix: Any = cm.MatrixMechanism(bands=bands(count), steps=CORRELATED_STEPS, sigma=sigma)
    if scheme is cm.FixedOrder:
        return matrix @ cm.FixedOrder(epochs=1)
    return matrix @ cm.CyclicPoisson(cycle=count, rate=Fraction(count, CORRELATED_STEPS))


def run() -> Any:
    """All panels of a run."""
    return cm.parse(HOME_RUN).plot(delta="1e-5", title="60 epochs on CIFAR-10: noise multiplier 1, batches of 512")


def sweep() -> Any:
    """Epsilon over noise and epochs."""
    return cm.sweep(
        'Gaussian(noise_multiplier={noise}, relation="add-remove") @ Poisson(rate=1%) * {steps}',
        noise=["0.8", "1", "1.5", "2"],
        steps=[100, 1000, 10_000],
        delta="1e-6",
    ).plot()


def loss() -> Any:
    """The privacy loss of one Gaussian release."""
    return cm.Gaussian(sigma=2).privacy_loss().plot()


PICTURES: dict[str, Callable[[], Any]] = {
    "interval": interval,
    "new-allocation": allocation,
    "new-shuffled": shuffled,
    "new-correlated": correlated,
    "run": run,
    "sweep": sweep,
    "loss": loss,
}

if __name__ == "__main__":
    for each in sys.argv[1:] or PICTURES:
        save(PICTURES[each](), FIGURES / f"{each}.png")
