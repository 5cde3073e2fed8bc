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
from cumulant.lattice.silence import Loud
from cumulant.lattice.spectrum import spectrum
from cumulant.numerics.arithmetic import BALLS

BASES = ("Gaussian(sigma={noise})", "Laplace(scale={noise})")
SCHEMES = (" @ WithoutReplacement(rate={rate})", " @ Poisson(rate={rate})")


def run(generator: random.Random) -> str:
    """The text of a run of one to three kinds."""
    scheme = generator.choice(SCHEMES)
    kinds = []
    for _ in range(generator.choice((1, 1, 1, 2, 3))):
        numbers = {
            "noise": f"{10 ** generator.uniform(-0.4, 1.2):.3g}",
            "rate": f"{10 ** generator.uniform(-4, -0.1):.3g}",
        }
        times = int(10 ** generator.uniform(0.5, 6))
        kinds.append((generator.choice(BASES) + scheme).format(**numbers) + f" * {times}")
    if generator.random() < 0.2:
        kinds.append(f"Gaussian(sigma={10 ** generator.uniform(0, 1.5):.3g})")
    return " + ".join(kinds)


def again(side: Side, delta: Fraction, epsilon: float, upper: bool) -> bool | None:
    """Whether a proved end holds at another order and period and four times the bits; None where that line has no answer."""
    choice = chosen(side, math.log(delta), None, 1e-12)
    if choice is None:
        return None
    other = dataclasses.replace(choice, lam=0.9 * choice.lam, period=1.3 * choice.period, silence=choice.silence + 8)
    try:
        with BALLS.at(4 * choice.bits):
            found, at, asked = spectrum(side.kinds, other), BALLS.number(epsilon), BALLS.number(delta)
            # the opposite bound contradicts a wrong end
            return not (found.lower(at) > asked if upper else found.upper(at) < asked)
    except (Loud, OverflowError, ZeroDivisionError):
        return None


def main() -> int:
    """Count and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--settings", type=int, default=200)
    options = parser.parse_args()
    generator, counted, bad = random.Random(options.seed), Counter[str](), 0
    spent = {"line": 0.0, "lattice": 0.0}
    for _ in range(options.settings):
        text, delta = (
            run(generator),
            Fraction(f"{10 ** generator.uniform(-2, 0):.2g}e-{generator.choice((0, 3, 6, 12, 40, 90))}"),
        )
        try:
            found, _ = rounds(cm.parse(text).ran())
        except CumulantError:
            counted["refused"] += 1
            continue
        for terms, kinds in () if found is None else found.lines():
            if kinds is None:
                counted["not offered"] += 1
                continue
            side, start = Side(terms, kinds), time.process_time()
            known = epsilon_guess(side, delta) is not None
            upper = line._epsilon(side, delta, 1e-9) if known else None
            lower = line._epsilon(side, delta, 1e-9, upper=False) if known else None
            spent["line"] += time.process_time() - start
            if upper is None or lower is None:
                counted["no line"] += 1
                continue
            start = time.process_time()
            above, below = (grids.grid_epsilon(terms, math.log(delta), 1e-3, end) for end in (True, False))
            spent["lattice"] += time.process_time() - start
            verdicts = (
                again(side, delta, upper.value, True),
                again(side, delta, lower.value, False) if lower.value > 0 else True,
            )
            wrong = (
                lower.value > upper.value or below.value > upper.value or lower.value > above.value or False in verdicts
            )
            counted["wide"] += upper.value > lower.value * (1 + 1e-6) + 1e-12
            counted["wrong" if wrong else "enclosed"] += 1
            counted["evaluated again"] += None not in verdicts
            if wrong:
                bad += 1
                known = lower.value, upper.value, below.value, above.value
                print(f"{text}\n  delta {float(delta):g}: line and lattice {known}, again {verdicts}", flush=True)
    print(dict(counted), {name: round(seconds, 1) for name, seconds in spent.items()})
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
