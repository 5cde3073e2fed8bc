"""Draw the picture of every page in docs/bounds: `python docs/plots.py [DIRECTORY [FORMAT]]`.

Each shows bounds on a sampled mechanism divided by Proposition 11's lower bound, against the order; 1 is perfect.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

import cumulant as cm
from cumulant.bounds.caps import WorstPure
from cumulant.bounds.large_orders import log_block_sum
from cumulant.bounds.without_replacement import theorem9
from cumulant.numerics.arithmetic import FLOATS
from cumulant.numerics.hull import lower_hull
from cumulant.numerics.logspace import log_binomials

BLUE, ORANGE, GREEN, GREY = "#0072b2", "#d55e00", "#009e73", "#8c8c8c"


@dataclass(frozen=True, slots=True)
class Picture:
    """One page: the row it is about, what is sampled at which rate, up to which order, and the rows to compare with."""

    row: str
    mechanism: cm.Mechanism
    rate: str
    top: int
    rows: tuple[str, ...]
    scale: str = "linear"
    witness: cm.Mechanism | None = None  # carries the pair of the lower bound, where the mechanism carries none


PICTURES = (
    Picture("theorem9", cm.ZeroConcentrated(rho="1/2"), "0.001", 60, ("best",), witness=cm.Gaussian(sigma=1)),
    Picture("theorem27", cm.Gaussian(sigma=20), "0.001", 1000, ("theorem9", "theorem27-min", "best"), "log"),
    Picture("absolute-moment", cm.Gaussian(sigma=2), "0.1", 60, ("theorem9", "theorem27-min", "best")),
    Picture("positive-part", cm.Gaussian(sigma=5), "0.001", 700, ("theorem9", "theorem27-min", "best")),
    Picture("pure-extras", cm.Laplace(scale=2), "0.001", 8000, ("theorem9", "best")),
    Picture("one-bit", cm.RandomizedResponse(p="0.6"), "0.001", 8000, ("theorem9", "best")),
    Picture(
        "caps",
        cm.ZeroConcentrated(rho="1/50"),
        "0.9",
        300,
        ("theorem9", "best"),
        "log",
        cm.Gaussian(sigma=5),
    ),
    Picture("pure-triples", cm.PureDP(1), "0.01", 8000, ("theorem9", "profile", "best")),
    Picture("profile", cm.Laplace(scale="0.5"), "0.001", 8000, ("theorem9", "best")),
    Picture("laplace-budget", cm.Laplace(scale="0.5"), "0.001", 8000, ("theorem9", "profile", "best")),
    Picture("gaussian-diameter", cm.Gaussian(sigma=1), "0.001", 100, ("theorem9", "profile", "best")),
    Picture(
        "gaussian-ball",
        cm.Gaussian(sigma=1, geometry="ball"),
        "0.001",
        100,
        ("theorem9", "gaussian-diameter", "best"),
    ),
)


def integers(top: int, count: int = 90) -> Any:
    """Orders from 2 up, evenly spaced on a logarithmic axis."""
    return np.unique(np.round(np.geomspace(2, top, count))).astype(int)


def ticks(low: float, high: float) -> list[int]:
    """Round numbers for a logarithmic axis."""
    found = [n * 10**power for power in range(5) for n in (1, 2, 5) if low <= n * 10**power <= high]
    return found if len(found) < 9 else found[::3]


def comparison(axes: Any, picture: Picture) -> None:
    """The rows of a picture over the lower bound."""
    scheme = cm.WithoutReplacement(rate=picture.rate)
    orders = integers(picture.top)
    lower = ((picture.witness or picture.mechanism) @ scheme).rdp(orders, bound="lower")
    run = picture.mechanism @ scheme
    colours = iter((BLUE, GREEN))
    for row in (picture.row, *picture.rows):
        style: dict[str, Any] = {
            "best": {"color": "black", "linestyle": "--", "linewidth": 1.3},
            "theorem9": {"color": GREY, "linewidth": 1.6},
            picture.row: {"color": ORANGE, "linewidth": 2.6},
        }.get(row) or {"color": next(colours), "linewidth": 1.4}
        axes.plot(orders, run.rdp(orders, bound=row) / lower, label=row, **style)
    axes.set(xscale="log", yscale=picture.scale, xlabel="order", ylabel="bound / lower bound", ylim=(0.95, None))
    if picture.scale == "log":
        axes.set_yticks(ticks(*axes.get_ylim()), minor=False)
        axes.set_yticks([], minor=True)
        axes.yaxis.set_major_formatter("{x:g}")
    axes.set_title(str(run), fontsize=8)


def lemma3(axes: Any) -> None:
    """The curve that is part of `best` but no row."""
    run = cm.Laplace(scale=2) @ cm.WithoutReplacement(rate="0.001")
    orders = integers(8000)
    lower = run.rdp(orders, bound="lower")
    worst = WorstPure(cm.Laplace(scale=2).curve(), run.scheme.rate)
    axes.plot(orders, worst.rdp(orders) / lower, label="Lemma 3, worst pure", color=ORANGE, linewidth=2.6)
    axes.plot(orders, run.rdp(orders, bound="theorem9") / lower, label="theorem9", color=GREY, linewidth=1.6)
    axes.plot(orders, run.rdp(orders, bound="pure-extras") / lower, label="pure-extras", color=BLUE, linewidth=1.4)
    axes.plot(orders, run.rdp(orders) / lower, label="best", color="black", linestyle="--", linewidth=1.3)
    axes.set(xscale="log", xlabel="order", ylabel="bound / lower bound", ylim=(0.95, None))
    axes.set_title(str(run), fontsize=8)


def lower(axes: Any) -> None:
    """The transition, where the upper bounds meet the lower one."""
    run = cm.Gaussian(sigma=5) @ cm.WithoutReplacement(rate="0.001")
    orders = integers(2000)
    axes.plot(orders, run.rdp(orders, bound="theorem9"), label="theorem9", color=GREY, linewidth=1.6)
    axes.plot(orders, run.rdp(orders, bound="lower"), label="lower", color=ORANGE, linewidth=2.6)
    axes.plot(orders, run.rdp(orders), label="best", color="black", linestyle="--", linewidth=1.3)
    axes.plot(orders, cm.Gaussian(sigma=5).rdp(orders), label="without sampling", color=BLUE, linewidth=1.4)
    axes.set(xscale="log", yscale="log", xlabel="order", ylabel="Rényi divergence")
    axes.set_title(str(run), fontsize=8)


def large_orders(axes: Any) -> None:
    """What max + log(a), the text's suggestion, makes of the sum of Theorem 9, and what the blocks make of it."""
    run = cm.Gaussian(sigma=5) @ cm.WithoutReplacement(rate="0.001")
    orders = integers(8000, 60)
    orders = orders[orders > 64]
    coefficients = theorem9(cm.Gaussian(sigma=5).curve())
    whole = run.cgf(orders - 1, bound="theorem9")
    blocks = np.logaddexp(0.0, [log_block_sum(int(a), Fraction(1, 1000), coefficients) for a in orders])
    largest = []
    for order in orders:
        j = np.arange(2.0, order + 1)
        log_c = np.min([coefficient(j, FLOATS) for coefficient in coefficients], axis=0)
        largest.append(max(0.0, np.max(log_binomials(int(order)) + j * np.log(0.001) + log_c)))
    axes.plot(
        orders, (np.array(largest) + np.log(orders)) / whole, label="largest term + log a", color=BLUE, linewidth=1.6
    )
    axes.plot(orders, blocks / whole, label="blocks", color=ORANGE, linewidth=2.6)
    axes.set(xscale="log", yscale="log", xlabel="order", ylabel="bound / sum of all terms")
    axes.set_title(str(run), fontsize=8)


def projection(axes: Any) -> None:
    """Theorem 9 at a large rate is not convex in K, and falls with the order; its hull does neither."""
    run = cm.Gaussian(sigma=5) @ cm.WithoutReplacement(rate="0.5")
    orders = np.arange(2, 41)
    lam = np.arange(0.0, 40.0)
    bound = run.cgf(lam, bound="theorem9")
    corners = lower_hull(lam, bound)
    hull = np.interp(lam, lam[corners], bound[corners])[1:] / lam[1:]
    axes.plot(orders, run.rdp(orders, bound="theorem9"), label="theorem9", color=GREY, linewidth=1.6)
    axes.plot(orders, hull, label="projection", color=ORANGE, linewidth=2.6)
    axes.plot(orders, run.rdp(orders), label="best", color="black", linestyle="--", linewidth=1.3)
    axes.set(xscale="log", xlabel="order", ylabel="Rényi divergence")
    axes.set_title(str(run), fontsize=8)


OTHERS = {"lemma3": lemma3, "lower": lower, "large-orders": large_orders, "projection": projection}
"""The pictures that are not rows over the lower bound."""

NAMES = (*(picture.row for picture in PICTURES), *OTHERS)


def draw(name: str, directory: Path, form: str) -> Path:
    """Write one picture as DIRECTORY/NAME.FORMAT."""
    import matplotlib
    from matplotlib.figure import Figure

    settings: Any = {"svg.hashsalt": "cumulant", "font.size": 9, "axes.grid": True, "grid.alpha": 0.25}
    with matplotlib.rc_context(settings):
        figure = Figure(figsize=(5.2, 3.0), layout="constrained")
        axes = figure.subplots()
        if name in OTHERS:
            OTHERS[name](axes)
        else:
            comparison(axes, next(picture for picture in PICTURES if picture.row == name))
        axes.spines[["top", "right"]].set_visible(False)
        axes.set_xticks(ticks(*axes.get_xlim()), minor=False)
        axes.set_xticks([], minor=True)
        axes.xaxis.set_major_formatter("{x:g}")
        figure.legend(loc="outside lower center", ncols=4, fontsize=8, frameon=False)
        path = directory / f"{name}.{form}"
        figure.savefig(path, dpi=110, metadata={"Date": None} if form == "svg" else None)
    return path


def main(directory: Path, form: str) -> None:
    """Write every picture."""
    directory.mkdir(parents=True, exist_ok=True)
    for name in NAMES:
        draw(name, directory, form)


if __name__ == "__main__":
    arguments = sys.argv[1:]
    main(Path(arguments[0]) if arguments else Path(__file__).parent / "bounds" / "img", (arguments[1:] or ["svg"])[0])
