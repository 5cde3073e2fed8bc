"""Random settings along the line, against the lattice and against itself at four times the precision.

    python -m benchmarks.hunt_line [--seed 1] [--settings 200]

For each direction of each run the proved interval of epsilon must meet that of the lattice, and the proved ends must hold
when they are evaluated again at another order, with another period and four times the bits. Prints what crosses, and counts.
"""

from __future__ import annotations

import argparse
import dataclasses
import math
import random
import sys
import time
from collections import Counter
from fractions import Fraction

import cumulant as cm
from cumulant.accounting.losses import rounds
from cumulant.errors import CumulantError
from cumulant.lattice import grids, line
from cumulant.lattice.choosing import Side, chosen, epsilon_guess
from cumulant.lattice.folded import folded, spacing_of
from cumulant.lattice.line import Effort, Proved
from cumulant.lattice.silence import Loud
from cumulant.lattice.spectrum import Enclosing, spectrum
from cumulant.numerics.arithmetic import BALLS

DENSITIES = ("Gaussian(sigma={noise})", "Laplace(scale={noise})", "ExponentialMechanism(epsilon={loss})")
ATOMS = (
    "RandomizedResponse(p={told})",
    "PureDP(epsilon={loss})",
    "ApproximateDP(epsilon={loss}, delta={leak})",
    "KaryResponse(values=5, epsilon={loss})",
    "DiscreteLaplace(scale={noise})",
    "DiscreteGaussian(sigma={wide}, dimension=1)",
    "from_masses(p=[0.5, 0.3, 0.2], q=[0.2, 0.31, 0.49])",
)
CHORDS = "ExponentialMechanism"
"""Its lattice is of a law that is larger than that of its line."""

SCHEMES = (" @ WithoutReplacement(rate={rate})", " @ Poisson(rate={rate})", "")
_FARTHEST = 10**6
"""Rounds beyond which the lattice is not asked."""

_FINE, _SMOOTH, _AGAIN = 1e-9, 1e-3, 1e-5
"""Accuracies without and with smoothing, and what smoothing may cost the second time."""

_COMPARED = 0.3
"""How often it is."""


def run(generator: random.Random) -> str:
    """The text of a run of one to three kinds."""
    scheme = generator.choice(SCHEMES)
    kinds = []
    for _ in range(generator.choice((1, 1, 1, 2, 3))):
        numbers = {
            "noise": f"{10 ** generator.uniform(-0.4, 1.2):.3g}",
            "wide": f"{10 ** generator.uniform(0, 1.2):.3g}",
            "rate": f"{10 ** generator.uniform(-4, -0.1):.3g}",
            "loss": f"{10 ** generator.uniform(-2, 0.3):.2g}",
            "told": f"{generator.uniform(0.51, 0.95):.3g}",
            "leak": f"{10 ** generator.uniform(-14, -3):.2g}",
        }
        times = int(10 ** generator.uniform(0, generator.choice((2, 4, 6, 8))))
        base = generator.choice(generator.choice((DENSITIES, ATOMS, ATOMS, ATOMS)))
        kinds.append((base + scheme).format(**numbers) + f" * {times}")
    if generator.random() < 0.2:
        kinds.append(f"Gaussian(sigma={10 ** generator.uniform(0, 1.5):.3g})")
    return " + ".join(kinds)


def smoothed(side: Side) -> bool:
    """Whether nothing but smoothing shows silence."""
    return not spacing_of(side.kinds) and all(each.mixture() is None and not each.square for each, _ in side.kinds)


def again(side: Side, delta: Fraction, proved: Proved) -> Enclosing | None:
    """Another order and period, and four times the bits; None where that line has no answer."""
    spacing = spacing_of(side.kinds)
    choice = chosen(side, math.log(delta), None, 1e-12, spacing)
    if choice is None:
        return None
    other = dataclasses.replace(choice, lam=0.9 * choice.lam, period=1.3 * choice.period, silence=choice.silence + 8)
    other = dataclasses.replace(other, bits=4 * choice.bits)
    smooth = Fraction(_AGAIN * max(proved.value, 1e-9) / (1 + other.lam)) if proved.smoothed else Fraction(0)
    try:
        with BALLS.at(other.bits):
            return folded(side.kinds, other) if spacing else spectrum(side.kinds, other, smooth=smooth)
    except (Loud, ArithmeticError):
        return None


def main() -> int:
    """Count and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--settings", type=int, default=200)
    options = parser.parse_args()
    generator, counted, bad = random.Random(options.seed), Counter[str](), 0
    spent = {"line": 0.0, "lattice": 0.0, "again": 0.0}
    for _ in range(options.settings):
        text, exponent = run(generator), generator.choice((0, 1, 3, 6, 12, 40, 99))
        delta = Fraction(f"{10 ** generator.uniform(-1, 0):.2g}e-{exponent}")
        try:
            ran = cm.parse(text).ran()
            found, _ = rounds(ran)
        except CumulantError:
            counted["refused"] += 1
            continue
        counted["settings"] += 1
        for terms, kinds in () if found is None else found.lines():
            if kinds is None:
                counted["not offered"] += 1
                continue
            side, start = Side(terms, kinds), time.process_time()
            known = line._certain(side, Effort()) or epsilon_guess(side, delta) is not None
            accuracy = _SMOOTH if smoothed(side) else _FINE
            upper, lower = (line._epsilon(side, delta, accuracy, upper=end) if known else None for end in (True, False))
            spent["line"] += time.process_time() - start
            if upper is None or lower is None:
                counted["no line"] += 1
                continue
            start = time.process_time()
            below, above = 0.0, math.inf
            if sum(times for _, times in terms) <= _FARTHEST and generator.random() < _COMPARED:
                above, below = (grids.grid_epsilon(terms, math.log(delta), 4e-3, end).value for end in (True, False))
                if CHORDS in text:
                    below = 0.0
                counted["lattice asked"] += 1
            spent["lattice"] += time.process_time() - start
            start = time.process_time()
            other, holds = again(side, delta, upper), True
            if other is not None:
                with BALLS.at(other.choice.bits):
                    try:
                        asked = BALLS.number(delta)
                        # the opposite bound contradicts a wrong end
                        holds = not other.lower(BALLS.number(upper.value)) > asked
                        holds = holds and not (lower.value > 0 and other.upper(BALLS.number(lower.value)) < asked)
                        counted["evaluated again"] += 1
                    except Loud:
                        pass
            spent["again"] += time.process_time() - start
            wrong = lower.value > upper.value or below > upper.value or lower.value > above or not holds
            counted["smoothed"] += upper.smoothed
            counted["wide"] += not upper.smoothed and upper.value > lower.value * (1 + 1e-6) + 1e-12
            counted["wrong" if wrong else "enclosed"] += 1
            if wrong:
                bad += 1
                ends = lower.value, upper.value, below, above
                print(f"{text}\n  delta {float(delta):g}: line and lattice {ends}, again {holds}", flush=True)
    print(dict(counted), {name: round(seconds, 1) for name, seconds in spent.items()}, flush=True)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
