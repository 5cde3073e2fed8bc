"""Random settings along the line, against the lattice, closed forms, floats, and itself at four times the precision.

    python -m benchmarks.hunt_line [--seed 1] [--settings 200]

For each direction of each run the proved interval of epsilon must meet that of the lattice, and the proved ends must hold
when they are evaluated again at another order, with another period and four times the bits. Where delta is known in closed
form or by enumeration, it must lie between them; what floats say in arrays must not be below, nor above by more than their
accuracy; and Theorem B must not say less than some data sets need. Prints what crosses, what is wide, and counts.
"""

from __future__ import annotations

import argparse
import dataclasses
import math
import random
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from fractions import Fraction
from typing import Any

import cumulant as cm
from benchmarks.truths import truth
from cumulant.accounting.rounds import rounds
from cumulant.conversion.query import Query
from cumulant.errors import CumulantError
from cumulant.exact.grid import refine
from cumulant.exact.inversion import batch, solver
from cumulant.exact.inversion.choose import Side, choose_line, guess, sides
from cumulant.exact.inversion.decay import DecayNotProved
from cumulant.exact.inversion.lattice_line import build_lattice_line
from cumulant.exact.inversion.line import Line, build_line, spacing_of
from cumulant.exact.inversion.solver import Effort, ProvedEnd
from cumulant.exact.rounds import Rounds, RoundTypes
from cumulant.exact.test_functions import THEOREM_B
from cumulant.losses.grid import Terms, leak_of
from cumulant.numerics.arithmetic import BALLS

DENSITIES = (
    "Gaussian(sigma={noise})",
    "Gaussian(sigma={noise})",
    "Laplace(scale={noise})",
    "ExponentialMechanism(epsilon={loss})",
)
ATOMS = (
    "RandomizedResponse(p={told})",
    "PureDP(epsilon={loss})",
    "ApproximateDP(epsilon={loss}, delta={leak})",
    "DiscreteLaplace(scale={noise})",
    "DiscreteLaplace(scale={wide}, sensitivity=2)",
    "from_masses(p=[0.5, 0.3, 0.2], q=[0.2, 0.31, 0.49])",
)
REPLACED = ("KaryResponse(values=5, epsilon={loss})", 'Gaussian(sigma={noise}, geometry="ball")')
WHOLE = ("DiscreteGaussian(sigma={wide}, dimension=1)", "GaussianDP(mu={loss})")
POISSON = " @ Poisson(rate={rate})"
SCHEMES = {
    " @ WithoutReplacement(rate={rate})": (DENSITIES, DENSITIES, ATOMS, REPLACED),
    POISSON: (DENSITIES, ATOMS),
    ' @ Poisson(rate={rate}, relation="replace-one")': (REPLACED[1:],),
    ' @ WithoutReplacement(rate={rate}, relation="add-remove")': (DENSITIES, ATOMS, REPLACED),
    "": (ATOMS, REPLACED, WHOLE, WHOLE),
}
_WEIGHTS = (6, 6, 1, 1, 4)
_GAUSSIANS = 0.08
"""How often all noise is Gaussian and nothing is sampled: then delta has a closed form."""

CHORDS = "ExponentialMechanism"
"""Its lattice is of a law that is larger than that of its line."""

_FARTHEST = 10**6
"""Rounds beyond which the lattice is not asked."""

_FINE, _SMOOTH, _AGAIN, _ARRAY = 1e-9, 1e-3, 1e-5, 1e-3
"""Accuracies without and with smoothing, what smoothing may cost the second time, and that of arrays."""

_WIDE = 1e-6
_LATTICE, _PUBLIC = 0.3, 0.02
"""How often the lattice, and the public methods, are asked."""

_EVERY = 250


def run(generator: random.Random) -> str:
    """The text of a run of one to three kinds."""
    gaussians = generator.random() < _GAUSSIANS
    scheme = "" if gaussians else generator.choices(list(SCHEMES), _WEIGHTS)[0]
    round_types = []
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
        if gaussians:
            base = f"Gaussian(sigma={10 ** (generator.uniform(-0.4, 1.5) + math.log10(times) / 2):.3g})"
        else:
            base = generator.choice(generator.choice(SCHEMES[scheme]))
        round_types.append((base + scheme).format(**numbers) + f" * {times}")
    if generator.random() < 0.2 and not gaussians and "replace-one" not in scheme:
        round_types.append(f"Gaussian(sigma={10 ** generator.uniform(0, 1.5):.3g})")
    return " + ".join(round_types)


@dataclasses.dataclass(frozen=True)
class Found:
    """What the line and, where it was asked, the lattice say of one direction, and the line once more."""

    side: Side
    upper: ProvedEnd
    lower: ProvedEnd
    lattice: tuple[float, float]
    other: Line | None


class Hunt:
    """Settings one after the other; what was counted, and the time that it took."""

    def __init__(self, seed: int) -> None:
        self.generator = random.Random(seed)
        self.counted, self.spent = Counter[str](), Counter[str]()
        self.text, self.delta = "", Fraction(1)

    @property
    def query(self) -> Query:
        """The epsilon at this delta."""
        return Query("delta", self.delta)

    @contextmanager
    def timed(self, name: str) -> Iterator[None]:
        start = time.process_time()
        yield
        self.spent[name] += time.process_time() - start

    def said(self, what: str, *numbers: object) -> None:
        print(f"{what}: {self.text}\n  delta {float(self.delta):g}:", *numbers, flush=True)

    def holds(self, name: str, condition: bool, *numbers: object) -> None:
        """Count what was compared, and print what crosses."""
        self.counted[name] += 1
        if not condition:
            self.counted["crossing"] += 1
            self.said(f"CROSSING, {name}", *numbers)

    def setting(self) -> None:
        """One run at one delta."""
        generator = self.generator
        self.text, exponent = run(generator), generator.choice((0, 1, 3, 6, 12, 40, 99))
        self.delta = Fraction(f"{10 ** generator.uniform(-1, 0):.2g}e-{exponent}")
        try:
            ran = cm.parse(self.text)
            found, _ = rounds(ran.record())
        except CumulantError:
            self.counted["refused"] += 1
            return
        self.counted["settings"] += 1
        if found is None:
            self.counted["without losses"] += 1
            return
        before = self.counted["crossing"]
        asked = generator.random() < _LATTICE and sum(times for _, times in found.parts) <= _FARTHEST
        known = [self.direction(terms, round_types, asked) for terms, round_types in found.lines()]
        ends = [each for each in known if each is not None]
        if not known:  # a closed form is all there is
            guarantee = ran.guarantee(delta=self.delta)
            self.closed_form(ran, guarantee.lower or 0.0, guarantee.epsilon)
        elif len(ends) == len(known):
            self.counted["enclosed"] += 1
            self.closed_form(ran, max(each.lower.value for each in ends), max(each.upper.value for each in ends))
            self.floats(found, ends)
        elif asked:
            with self.timed("lattice"):
                above, below = (
                    max(refine.grid_epsilon(terms, math.log(self.delta), 4e-3, end).value for terms, _ in found.lines())
                    for end in (True, False)
                )
            self.closed_form(ran, 0.0 if CHORDS in self.text else below, above)
        self.cone(found)
        if generator.random() < _PUBLIC:
            self.public(ran, ends if len(ends) == len(known) else [])
        self.counted["settings with a crossing"] += self.counted["crossing"] > before

    def direction(self, terms: Terms, round_types: RoundTypes | None, lattice: bool) -> Found | None:
        """One direction: the line at both ends, the lattice, and the line again."""
        if round_types is None:
            self.counted["directions: not offered"] += 1
            return None
        side = Side(terms, round_types)
        with self.timed("line"):
            known = solver._skips_guess(side, Effort()) or guess(side, self.query) is not None
            accuracy = _SMOOTH if smoothed(side) else _FINE
            upper, lower = (
                solver.side_end(side, self.query, accuracy, upper=end) if known else None for end in (True, False)
            )
        if upper is None or lower is None:
            self.counted["directions: no line"] += 1
            return None
        self.counted["directions: smoothed" if upper.smoothed else "directions: enclosed"] += 1
        low, high = lower.value, upper.value
        self.holds("ends", low <= high, low, high)
        wide = _SMOOTH * 10 if upper.smoothed else _WIDE
        if high > low * (1 + wide) + 1e-12:
            self.counted["directions: wide"] += 1
            self.said("wide", low, high, high / max(low, 1e-300) - 1, upper.smoothed, upper.choice)
        below, above = 0.0, math.inf
        if lattice:
            with self.timed("lattice"):
                above, below = (
                    refine.grid_epsilon(side.terms, math.log(self.delta), 4e-3, end).value for end in (True, False)
                )
            below = 0.0 if CHORDS in self.text else below
            self.holds("lattice", below <= high and low <= above, (low, high), (below, above))
        with self.timed("again"):
            other = again(side, self.delta, upper)
            self.checked_again(other, low, high)
        return Found(side, upper, lower, (below, above), other)

    def checked_again(self, other: Line | None, low: float, high: float) -> None:
        """The opposite bound contradicts a wrong end."""
        if other is None:
            self.counted["directions: not again"] += 1
            return
        with BALLS.at(other.choice.bits):
            asked = BALLS.number(self.delta)
            try:
                above = not other.lower(BALLS.number(high)) > asked
                below = not (low > 0 and other.upper(BALLS.number(low)) < asked)
            except DecayNotProved:
                self.counted["directions: not again"] += 1
                return
        self.holds("four times the precision", above and below, low, high, above, below)

    def closed_form(self, ran: cm.Expression, low: float, high: float) -> None:
        """Delta by a formula or by enumeration: that of the run itself, which a sample's profile may be above of."""
        known = truth(ran)
        if known is None or "add-remove" in self.text or "replace-one" in self.text or not math.isfinite(high):
            return
        with self.timed("closed forms"):
            least, _ = known(Fraction(high))
            _, most = known(Fraction(low))
        # of samples without replacement, and of a pair that is not symmetric, a dominating pair is composed
        alike = (POISSON.split("(")[0] in self.text or " @ " not in self.text) and "from_masses" not in self.text
        tight = alike or self.text.endswith(" * 1")
        fine = least <= self.delta and (low <= 0 or most >= self.delta or not tight)
        self.holds("closed form" if tight else "closed form, from above", fine, (low, high), (least, most))

    def floats(self, found: Rounds, ends: list[Found]) -> None:
        """Arrays: among others, not below what is proved and not above it by more than the accuracy."""
        low, high = max(each.lower.value for each in ends), max(each.upper.value for each in ends)
        deltas = (1, self.delta), (1, min(10 * self.delta, Fraction(1, 2))), (3, self.delta), (1, self.delta / 1000)
        others = [(times, Query("delta", each)) for times, each in deltas]
        given = Query("epsilon", Fraction(high))
        with self.timed("floats"):
            value = batch.float_ends(found, others, _ARRAY, theorem_b=False)[0]
            back = batch.float_ends(found, [(1, given), (3, given)], _ARRAY, theorem_b=False)[0]
        if value is not None:
            fine = low <= value.value <= high * (1 + _ARRAY) + 1e-12
            self.holds("array of epsilons", fine, value.value, (low, high))
        lines = [each.other for each in ends if each.other is not None]
        if back is None or len(lines) < len(ends):
            return
        try:
            with BALLS.at(max(each.choice.bits for each in lines)):
                at = BALLS.number(high)
                least, most = max(each.lower(at) for each in lines), max(each.upper(at) for each in lines)
                fine = least <= BALLS.number(back.value) <= most * (1 + _ARRAY)
        except DecayNotProved:
            return
        self.holds("array of deltas", bool(fine), back.value, least, most)

    def cone(self, found: Rounds) -> None:
        """Theorem B: again at another order, and not below what some data sets need."""
        offered = sides(found, True)
        if offered is None or offered[1] is None:
            return
        side = offered[1]
        with self.timed("cone"):
            if guess(side, self.query) is None:
                return
            upper = solver.side_end(side, self.query, _FINE)
            if upper is None:
                return
            other = again(side, self.delta, upper)
            if other is not None:
                with BALLS.at(other.choice.bits):
                    asked, at = BALLS.number(self.delta), BALLS.number(upper.value)
                    needed = least_theorem_b(other, at)
                    self.holds("Theorem B again", not needed > asked * (1 + BALLS.number(1e-6)), upper.value, needed)
                    if upper.value > 0 and least_theorem_b(other, at * (1 - BALLS.number(_WIDE))) < asked:
                        self.counted["Theorem B: wide"] += 1
                        self.said("wide by Theorem B", upper.value, needed, upper.choice)
            for name, terms, round_types in found.witnesses():
                if round_types is not None:
                    lower = solver.lower_end(found, terms, round_types, self.query, _FINE)
                    if lower is not None:
                        fine = lower.value <= upper.value
                        self.holds("Theorem B and data sets", fine, name, lower.value, upper.value)

    def public(self, ran: cm.Expression, ends: list[Found]) -> None:
        """What a user is told: one number by every method, between the proved ends."""
        with self.timed("public"):
            guarantee = ran.guarantee(delta=self.delta)
            alone, array = ran.epsilon(delta=self.delta), float(ran.epsilon([self.delta])[0])
        value, lower = guarantee.epsilon, guarantee.lower or 0.0
        self.holds("guarantee and epsilon", value == alone >= lower, value, alone, lower)
        near = value == array or abs(array - value) <= 2 * _ARRAY * max(value, 1e-9)
        self.holds("array and epsilon", array >= lower and near, array, value, lower)
        if ends:
            high = max(each.upper.value for each in ends)
            fine = lower <= high * (1 + 1e-12) and value <= high * (1 + 2 * _ARRAY) + 1e-12
            self.holds("public and line", fine, (lower, value), high)


def smoothed(side: Side) -> bool:
    """Whether nothing but smoothing shows silence."""
    return not spacing_of(side.round_types) and all(
        each.density_law() is None and not each.square for each, _ in side.round_types
    )


def again(side: Side, delta: Fraction, proved: ProvedEnd) -> Line | None:
    """Another order and period, and four times the bits; None where that line has no answer."""
    spacing = spacing_of(side.round_types)
    left = float(delta) - leak_of(side.terms)
    choice = choose_line(side, math.log(left), None, _FINE / 100, spacing) if left > 0 else None
    if choice is None:
        return None
    other = dataclasses.replace(
        choice, lam=0.9 * choice.lam, period=1.3 * choice.period, decay_exponent=choice.decay_exponent + 8
    )
    other = dataclasses.replace(other, bits=4 * proved.bits)
    smooth = Fraction(_AGAIN * max(proved.value, 1e-9) / (1 + other.lam)) if proved.smoothed else Fraction(0)
    try:
        with BALLS.at(other.bits):
            return (
                build_lattice_line(side.round_types, other)
                if spacing
                else build_line(side.round_types, other, side.extra, smooth)
            )
    except (DecayNotProved, ArithmeticError):
        return None


def least_theorem_b(other: Line, epsilon: Any) -> Any:
    """Theorem B at about the best gap, as a ball: balls have digits where floats have none left."""

    def at(log_gap: float) -> Any:
        return other.bound(epsilon, THEOREM_B, BALLS.number(math.exp(log_gap)))

    centre, width = math.log(3 / other.choice.lam), 0.5
    for _ in range(40):  # downhill, in steps that shrink where it is a valley
        left, middle, right = (at(centre + move * width).mid() for move in (-1, 0, 1))
        if middle <= left and middle <= right:
            width /= 4
            if width < 1e-5:
                break
        else:
            centre += width if right < left else -width
    return at(centre)


def main() -> int:
    """Count and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--settings", type=int, default=200)
    options = parser.parse_args()
    hunt = Hunt(options.seed)
    for i in range(options.settings):
        hunt.setting()
        if (i + 1) % _EVERY == 0 or i + 1 == options.settings:
            seconds = {name: round(value, 1) for name, value in hunt.spent.items()}
            print(f"after {i + 1}:", dict(sorted(hunt.counted.items())), seconds, flush=True)
    return 1 if hunt.counted["crossing"] else 0


if __name__ == "__main__":
    sys.exit(main())
