"""Calibration: the value of one parameter at which a run just meets its target.

And the neighbour that does not.
"""

from __future__ import annotations

import inspect
import json
import math
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from fractions import Fraction
from itertools import pairwise
from typing import Any

from cumulant.accounting.choices import BoundName, ConversionName, Method, RiskKind
from cumulant.accounting.guarantee import Guarantee
from cumulant.accounting.numbers import brief, rounded_up
from cumulant.accounting.question import DEFAULT_ACCURACY, DEFAULT_METHOD, GUIDE, check_names, two_sided_method
from cumulant.accounting.target import Target
from cumulant.domains import COUNT, POSITIVE, Domain, Exact, Number, spelling
from cumulant.errors import CumulantError, InputError, shown
from cumulant.filters.mixture import Mixture
from cumulant.html_box import facts_box
from cumulant.mechanisms.mechanism import MECHANISMS, Expression
from cumulant.notation import find_unknown, parse
from cumulant.numerics import rounding
from cumulant.numerics.ranks import Ranks
from cumulant.sampling.scheme import SCHEMES
from cumulant.shares import Shares, names_in

_MOST_PROBED = 1 << 30
"""Numbers up to which the end of an integer domain is looked for; chosen by hand."""
_DIGITS = Domain(Fraction(1), Fraction(15), low_closed=True, high_closed=True, integer=True)
_NOISE = 2 * DEFAULT_ACCURACY
"""The part of itself, and of the target, by which epsilon may move the wrong way, as grids do, and still count as monotone."""

_NEARBY = 16  # the part of a decade, or of an integer, by which a boundary is first left that another method found
_PATIENCE = 8  # interpolations that may fail to halve the bracket before it is only halved
_BEYOND = 1.05  # how far to go towards an interpolated root, so as to land behind it


@dataclass(frozen=True, slots=True)
class Calibration:
    """A value that meets the target, its run and guarantee, and the neighbour that fails.

    `guarantee.epsilon`, which is an upper bound, is at most the target. `fails` is the next integer, or the next decimal
    of as many digits, and its epsilon is above the target; None where the domain ends.

    >>> found = calibrate(
    ...     "Gaussian(sigma=5) @ WithoutReplacement(rate=0.001) * ?", epsilon=2, delta=1e-8, method="paper"
    ... )
    >>> found.parameter, found.value, found.fails
    ('times', Exact('583854'), Exact('583855'))
    >>> found.run
    Gaussian(sigma=5) @ WithoutReplacement(rate=0.001) * 583854
    """

    parameter: str
    value: Exact
    run: Expression
    guarantee: Guarantee
    fails: Exact | None
    values: Mapping[str, Exact] = field(default_factory=dict)
    """With shares: the value of every unknown; `value` and `fails` are then theta, what all shares are multiplied by."""
    shares: Mapping[str, float] = field(default_factory=dict)
    """With shares: the part of the budget that each unknown has, as realised."""

    def __repr__(self) -> str:
        return (
            f"Calibration({self.parameter}={spelling(self.value)}, epsilon={self.guarantee.epsilon!r}, "
            f"delta={self.guarantee.delta!r}, run={brief(str(self.run))!r})"
        )

    def _repr_html_(self) -> str:
        shares = {f"{name} has": f"{100 * part:.3g} % of the budget" for name, part in self.shares.items()}
        several = {name: spelling(value) for name, value in self.values.items()}
        return facts_box(
            f"{self.parameter} = {spelling(self.value)}",
            {
                "guarantee": str(self.guarantee),
                "fails": "" if self.fails is None else f"{self.parameter} = {spelling(self.fails)}",
                **several,
                **shares,
                "run": brief(str(self.run)),
            },
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as JSON values; the run is its text."""
        return {
            "parameter": self.parameter,
            "value": _plain(self.value),
            "fails": None if self.fails is None else _plain(self.fails),
            "run": str(self.run),
            "guarantee": self.guarantee.to_dict(),
            **({"values": {name: _plain(each) for name, each in self.values.items()}} if self.values else {}),
            **({"shares": dict(self.shares)} if self.shares else {}),
        }

    def to_json(self) -> str:
        """Return the fields as one JSON object."""
        return json.dumps(self.to_dict())


def calibrate(
    run: str | Callable[[Any], Expression],
    *,
    epsilon: Number | None = None,
    delta: Number | None = None,
    domain: tuple[Number, Number] | range | None = None,
    digits: int = 6,
    method: Method = DEFAULT_METHOD,
    bound: BoundName | None = None,
    conversion: ConversionName | None = None,
    advantage: Number | None = None,
    tpr: Number | None = None,
    fpr: Number | None = None,
    mu: Number | None = None,
    slack: Number | None = None,
    kind: RiskKind | None = None,
    success: Number | None = None,
    prior: Number | None = None,
    shares: Mapping[str, Number] | None = None,
) -> Calibration:
    """Find the value of one parameter at which the run just meets (epsilon, delta).

    And the neighbour that does not.

    The target may also be the `advantage` of the best attack, its true positive rate `tpr` at a false one `fpr`, a
    Gaussian `mu` with its `slack`, or the `success` of an attack of one `kind` ("attribute", "reidentification",
    "reconstruction") from a `prior`; the guarantee is then that at epsilon = 0, whose delta is the advantage.

    The run is a text in which `?` stands for the unknown, or a function of it. A function is searched over `domain`: a
    pair (low, high) means decimals of this many significant digits, a range means integers; without one, all positive
    decimals. A text knows the domain of its parameter, and `domain` may narrow it. Which way epsilon moves is found by
    trying, so any parameter will do on which epsilon depends monotonically.

    What is proved is the guarantee of the value that is returned, by the same bounds and conversions as `run.epsilon`; its
    epsilon, a float, is at most the exact target. The search asks for many epsilons. Where the exact layer takes part, as it
    does by default, Rényi divergences first find about where to ask it; `method="rdp"` asks only them, which is faster and
    leaves some of the target unused.

    >>> found = calibrate("Gaussian(sigma=?) * 10", epsilon=1, delta="1e-6")
    >>> found.value, found.fails, found.guarantee.epsilon <= 1
    (Exact('13.3597'), Exact('13.3596'), True)
    >>> calibrate("Gaussian(sigma=?) * 10", advantage="0.1").value
    Exact('12.5826')
    >>> calibrate("Gaussian(sigma=?) * 4", mu=1, slack="1e-6").value
    Exact('2')

    Several unknowns have names, and `shares` of the budget, measured by K at the order at which Gaussian noise exhausts it:

    >>> found = calibrate(
    ...     "Gaussian(sigma=?a) * 100 + Laplace(scale=?b)",
    ...     epsilon=1,
    ...     delta="1e-6",
    ...     shares={"a": 3, "b": 1},
    ...     digits=3,
    ... )
    >>> found.values["a"] > found.values["b"], round(found.shares["a"], 2)
    (True, 0.75)
    >>> from cumulant.mechanisms.laplace import Laplace
    >>> calibrate(lambda k: Laplace(scale=10) * k, epsilon=1, delta="1e-6", domain=range(1, 1000)).value
    Exact('10')
    """
    check_names(method=method, bound=bound, conversion=conversion)
    target = Target.read(
        epsilon, delta, advantage, tpr, fpr, mu=mu, slack=slack, kind=kind, success=success, prior=prior
    )
    places = int(_DIGITS.check("digits", digits))
    if isinstance(run, str) and names_in(run):
        if domain is not None:
            raise InputError("domain= is for one unknown; with several, each has the domain of its parameter")
        how = {"method": method, "bound": bound, "conversion": conversion}
        aim = {"advantage": advantage, "tpr": tpr, "fpr": fpr, "mu": mu, "slack": slack}
        aim |= {"kind": kind, "success": success, "prior": prior}
        return _shared(run, shares, target, places, {"epsilon": epsilon, "delta": delta, **how, **aim})
    if shares is not None:
        raise InputError("shares= splits a budget over named unknowns; write them ?a and ?b in the expression")
    limits = None if domain is None else _limits(domain)
    if isinstance(run, str):
        name, declared = _unknown(run)
        declared = replace(declared, integer=declared.integer or (limits or declared).integer)
    elif callable(run):
        name, declared = _argument(run), limits or POSITIVE
    else:
        raise InputError(f"{type(run).__name__} has no unknown; give a text with '?' or a function of one number")
    grid = Ranks.over(declared, limits, places)

    def build(rank: int) -> Expression:
        value = grid.value(rank)
        found = (
            parse(run, unknown=value)
            if isinstance(run, str)
            else call_function(run, int(value) if grid.integer else value)
        )
        if not isinstance(found, Expression):
            raise InputError(
                f"the function returned {type(found).__name__} at {name}={value}; it must return what runs"
            )
        return found

    def search(
        by: Method, row: str | None = None, converted: ConversionName | None = None, quick: bool = False
    ) -> _Search:
        ask = target.nearly if quick else target.ask
        return _Search(name, grid, lambda rank: ask(build(rank), by, row, converted), target)

    from_ends, near = limits is not None, None
    exactly = two_sided_method(method, bound, conversion)
    if exactly:
        with suppress(InputError):  # what Rényi divergences do not reach the exact layer may
            near = search(GUIDE).boundary(from_ends)
    meets, fails = search(method, bound, conversion, quick=exactly).boundary(from_ends, near)
    run_found = build(meets)
    proved = target.guarantee(run_found, method, bound, conversion)
    if exactly and not target.met(proved):  # floats and balls disagreed after all
        meets, fails = search(method, bound, conversion).boundary(from_ends, (meets, fails))
        run_found = build(meets)
        proved = target.guarantee(run_found, method, bound, conversion)
    return Calibration(name, grid.value(meets), run_found, proved, None if fails is None else grid.value(fails))


def _shared(
    text: str, shares: Mapping[str, Number] | None, target: Target, digits: int, how: dict[str, Any]
) -> Calibration:
    """Calibrate theta, what all shares are multiplied by; every unknown follows from it."""
    lam = Fraction(1)
    if target.by_statement and target.at > 0:
        lam = Mixture.for_budget(Fraction(target.most), Fraction(target.at)).orders[0] if target.most > 0 else lam
    split = Shares.read(text, shares, lam, digits, lambda term: _unknown(term)[1])

    def build(theta: Exact) -> Expression:
        return split.build(split.solve(theta))

    found = calibrate(build, **how, digits=min(digits + 2, 15))
    values = split.solve(found.value)
    return replace(found, parameter="theta", values=values, shares=split.realised(values))


def call_function(function: Callable[[Any], Any], value: Exact | int) -> Any:
    """Call the user's function with this value; raise its errors as InputError.

    The InputError has their cause.
    """
    try:
        return function(value)
    except CumulantError:
        raise
    except Exception as error:
        raise InputError(
            f"the function raised {type(error).__name__} at {value}: {error}; mend it, or give a domain where it works"
        ) from error


def _plain(value: Exact) -> int | float:
    return int(value) if value.denominator == 1 else float(value)


# ---- what the unknown is


def _limits(domain: tuple[Number, Number] | range) -> Domain:
    """Return the domain that a caller gives, both ends included."""
    if isinstance(domain, range) and domain.step == 1 and len(domain):
        return Domain(Fraction(domain[0]), Fraction(domain[-1]), True, True, integer=True)
    if isinstance(domain, tuple) and len(domain) == 2:
        low, high = Exact(domain[0]), Exact(domain[1])
        if low < high:
            return Domain(low, high, True, True)
    raise InputError(f"domain={shown(domain)} must be (low, high) with low < high, or for integers a range with step 1")


def _argument(function: Callable[..., object]) -> str:
    """Return the function's name for its unknown."""
    try:
        return next(iter(inspect.signature(function).parameters), "value")
    except (TypeError, ValueError):
        return "value"


def _unknown(text: str) -> tuple[str, Domain]:
    """Return the parameter that `?` stands for, and its domain."""
    owner, name, others = find_unknown(text)
    if not owner:
        return name, COUNT
    if owner not in SCHEMES:
        return name, MECHANISMS[owner].domain(name, others)
    unknowns = SCHEMES[owner].unknowns(others)
    if name not in unknowns:
        solved = f"it solves for {' or '.join(unknowns)}" if unknowns else "it solves for none of its parameters"
        raise InputError(f"{name}=? of {owner} is nothing that calibrate can search; {solved}")
    scheme = SCHEMES[owner]
    return name, _buildable(text, unknowns[name]) if hasattr(scheme, "check") else unknowns[name]


def _buildable(text: str, domain: Domain) -> Domain:
    """Return an integer domain without the numbers that the rest of the run refuses, such as more bins than steps."""

    def builds(number: int) -> bool:
        try:
            parse(text, unknown=Exact(number))
        except InputError:
            return False
        return True

    if not domain.integer or domain.low is None or not builds(low := math.ceil(domain.low)):
        return domain
    high = 2 * low
    while builds(high):
        low, high = high, 2 * high
        if high > _MOST_PROBED:
            return domain
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if builds(middle) else (low, middle)
    return replace(domain, high=Fraction(low), high_closed=True)


# ---- the search


@dataclass(slots=True)
class _Search:
    """A search that brackets the boundary between numbers that meet the target and that fail.

    Then it closes the bracket.
    """

    name: str
    grid: Ranks
    ask: Callable[[int], float]
    target: Target
    tried: dict[int, float] = field(default_factory=dict)

    def boundary(self, from_ends: bool, near: tuple[int, int | None] | None = None) -> tuple[int, int | None]:
        """Return the last rank that meets the target, and its neighbour that fails or None.

        `near` is the boundary by another method, from which this one is looked for.
        """
        if near is not None and near[1] is not None:
            low, high = self.bracket_near(near[0], near[1])
        elif from_ends:
            low, high = self.grid.first, self.grid.last
            if self.meets(low) == self.meets(high):  # one look between them, for what is not monotone
                self.epsilon(self.grid.below((self.grid.value(low) + self.grid.value(high)) / 2))
        else:
            low, high = self.bracket()
        if self.meets(low) == self.meets(high):
            return self.one_sided(low, high), None
        low, high = self.close_bracket(low, high)
        return (low, high) if self.meets(low) else (high, low)

    def epsilon(self, rank: int) -> float:
        if rank not in self.tried:
            self.tried[rank] = self.ask(rank)
            self.check_monotone()
        return self.tried[rank]

    def meets(self, rank: int) -> bool:
        return self.target.most >= self.epsilon(rank)  # exactly: neither side is rounded

    def bracket(self) -> tuple[int, int]:
        """Return two ranks between which the answer changes, or else the ends.

        In steps that grow, the way epsilon points.
        """
        grid = self.grid
        low = high = min(max(grid.below(Fraction(1)), grid.first), grid.last)
        factors = {False: 4, True: 4}
        up = True
        while self.meets(low) == self.meets(high) and (low > grid.first or high < grid.last):
            if self.epsilon(low) != self.epsilon(high):
                up = (self.epsilon(low) < self.epsilon(high)) == self.meets(low)
                if (high == grid.last) if up else (low == grid.first):
                    break
            elif (high == grid.last) if up else (low == grid.first):
                up = not up
            if up:
                high = min(max(grid.below(grid.value(high) * factors[up]), high + 1), grid.last)
            else:
                low = max(min(grid.below(grid.value(low) / factors[up]), low - 1), grid.first)
            factors[up] **= 2
            up = not up
        return low, high

    def bracket_near(self, meets: int, fails: int) -> tuple[int, int]:
        """Return two ranks between which the answer changes, or else an end.

        In steps that grow, towards `fails` while it meets.
        """
        grid, here = self.grid, meets
        step = max((abs(meets) if grid.integer else 9 * 10 ** (grid.digits - 1)) // _NEARBY, 1)
        way = (fails - meets) if self.meets(meets) else (meets - fails)
        while True:
            after = min(max(here + way * step, grid.first), grid.last)
            if after == here:
                return min(meets, here), max(meets, here)
            if self.meets(after) != self.meets(meets):
                return min(here, after), max(here, after)
            here, step = after, 2 * step

    def close_bracket(self, low: int, high: int) -> tuple[int, int]:
        """Return neighbours between which the answer changes.

        By interpolation, and halving where that does not help.
        """
        patience = _PATIENCE
        while high - low > 1:
            before = high - low
            root = self.root(low, high) if patience else None
            rank = self.half(low, high) if root is None else min(max(root, low + 1), high - 1)
            if self.meets(rank) == self.meets(low):
                low = rank
            else:
                high = rank
            patience -= root is not None and 2 * (high - low) > before
        return low, high

    def half(self, low: int, high: int) -> int:
        """Return the middle; far apart integers are halved like decimals, by their length."""
        return math.isqrt(low * high) if self.grid.integer and 0 < 4 * low < high else (low + high) // 2

    def root(self, low: int, high: int) -> int | None:
        """Return a rank a little beyond where the power law through the two best trials meets.

        It meets the target there, so that the bracket closes from both sides; log epsilon is nearly linear in the
        logarithm of most parameters.
        """
        distance = {rank: self.distance(rank) for rank in self.tried}
        near, next_best = sorted(distance, key=lambda rank: abs(distance[rank]))[:2]
        slope = distance[next_best] - distance[near]
        if not (math.isfinite(slope) and slope):
            return None
        share = -_BEYOND * distance[near] / slope
        if min(low, near, next_best) <= 0:
            return near + round(share * (next_best - near))
        start, stop = (math.log(self.grid.value(rank)) for rank in (near, next_best))
        limits = (math.log(self.grid.value(rank)) for rank in (low, high))
        return self.grid.below(Fraction(math.exp(sorted((*limits, start + share * (stop - start)))[1])))

    def distance(self, rank: int) -> float:
        """Return log(epsilon / target), infinite where that is nothing to interpolate."""
        goal = rounding.rounded_down(self.target.most)
        ratio = self.epsilon(rank) / goal if goal > 0 else math.inf
        return math.log(ratio) if ratio > 0 else math.inf

    # ---- what can be said when there is no answer

    def check_monotone(self) -> None:
        """Raise InputError if epsilon went down and up again among the trials."""
        ranks = sorted(self.tried)
        found = [self.tried[rank] for rank in ranks]
        rising, near = found[0] <= found[-1], _NOISE * rounding.rounded_down(self.target.most)
        for i, (one, other) in enumerate(pairwise(found)):
            if other < one * (1 - _NOISE) - near if rising else other > one * (1 + _NOISE) + near:
                shown = dict.fromkeys((ranks[0], ranks[i], ranks[i + 1], ranks[-1]))
                points = ", ".join(f"{rounded_up(self.epsilon(rank))} at {self.at(rank)}" for rank in shown)
                what = f"{self.target.quantity} is not monotone in {self.name}"
                raise InputError(f"{what}: it is {points}; give a domain where it is")

    def one_sided(self, low: int, high: int) -> int:
        """Return the end of the domain with the largest epsilon, if all trials meet the target."""
        for end, endless in zip((self.grid.first, self.grid.last), self.grid.endless, strict=True):
            if self.grid.integer and not endless:
                self.epsilon(end)  # raises InputError where epsilon turns beyond the trials
        goal = self.target.goal
        tried = f"{len(self.tried)} values tried from {self.at(min(self.tried))} to {self.at(max(self.tried))}"
        if not self.meets(low):
            best = min(self.tried, key=self.epsilon)
            reached = rounded_up(self.epsilon(best))
            if reached == str(self.target.most):
                reached += " (as a float, which is more)"
            least = f"the smallest {self.target.quantity} is {reached} at {self.at(best)}"
            raise InputError(f"no value of {self.name} meets {goal}: {least}, of {tried}")
        end = low if self.epsilon(low) > self.epsilon(high) else high
        flat = low < high and self.epsilon(low) == self.epsilon(high)
        if flat or self.grid.endless[end == high]:
            raise InputError(
                f"every value of {self.name} meets {goal}, so there is nothing to calibrate: of {tried}, none fails"
            )
        return end

    def at(self, rank: int) -> str:
        value = self.grid.value(rank)
        return f"{self.name}={value if self.grid.integer else rounded_up(float(value), 15)}"
