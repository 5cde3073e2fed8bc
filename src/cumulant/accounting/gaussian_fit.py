"""The mu of Gaussian privacy with a slack: delta(eps) <= delta_mu(eps) + slack at every eps >= 0.

Floats choose mu from deltas on a grid; balls then prove every cell of the grid, and with the cells all epsilons.
Equivalently no attack finds more members than one on N(mu, 1) against N(0, 1), but for the slack, at every false positive
rate.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import dataclass, field, fields
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np

from cumulant.accounting import answer
from cumulant.accounting import attacks as attack
from cumulant.accounting.choices import DEFAULT_SLACK as DEFAULT_SLACK
from cumulant.accounting.choices import Method
from cumulant.accounting.group_lemma import one_record
from cumulant.accounting.numbers import rounded_down as shown_down
from cumulant.accounting.numbers import rounded_up as shown_up
from cumulant.accounting.question import DEFAULT_ACCURACY, DEFAULT_METHOD, GUIDE, Question
from cumulant.accounting.rounds import rounds_of
from cumulant.accounting.run import RunRecord
from cumulant.accounting.serialization import plain
from cumulant.accounting.weaker_run import announced_run
from cumulant.domains import Domain, Exact, Number
from cumulant.numerics.arithmetic import BALLS, ball_erfc
from cumulant.numerics.lazy_scipy import special
from cumulant.numerics.rounding import as_printed, rounded_down, rounded_up, stated

SLACK = Domain(
    Fraction(0),
    Fraction(1),
    hint="it is the part of members that an attack may find beyond N(mu, 1); for slack 0 use gaussian_mu()",
)
"""The slack of a fit, strictly between 0 and 1."""

CELLS = 256
"""Cells of the first grid (measured: 64 cells cost 6e-4 of mu, 256 cost 4e-5, and deltas come as one array)."""

FEW_CELLS = 24
"""Cells where every delta is an answer of its own: groups, and epochs of steps (measured: 0.1 s each)."""

NEARLY = 1e-4
"""The part by which mu is lowered to see which cells bind; those are split (measured: what is left is below 1e-5)."""

PARTS = 8
"""Parts that a binding cell is split into (measured)."""

MOST_SPLIT = 48
"""The most cells that are split in one round (measured)."""

ROUNDS = 2
"""Rounds of splitting (measured)."""

BITS = 128
"""The precision of the proof, in bits (deltas down to 1e-30 keep eight digits)."""

WIDENINGS = (0.0, 1e-12, 1e-9, 1e-6, 1e-3)
"""Parts by which mu is raised until balls prove every cell; the last one has never been needed."""

WITNESSED = 3
"""Cells at which the lower delta is asked for; one where no neighbours attain the bound (measured: 1.5 s each there)."""

ATTAINED = 0.98
"""The part of a delta that neighbours must need so that more lower deltas are asked for (they say little otherwise)."""

CUTS = 6
"""Lower deltas that bound the fit from above, each where the bound is largest (measured: 6 leave a tenth of the fit)."""

LARGEST_MU = 2.0**40
"""The mu at which the search gives up; convention: so large a mu protects nobody."""

Floats = np.ndarray[Any, np.dtype[np.float64]]


@dataclass(frozen=True, slots=True)
class GaussianFit:
    """A run is (mu, slack)-Gaussian private: delta(eps) <= delta_mu(eps) + slack at every eps >= 0.

    No attack finds more members than one that tells N(mu, 1) from N(0, 1), but for a part `slack`, at every false
    positive rate. `lower` is a mu below which this is false, None where no lower end is known. `fit` bounds from above by
    how much mu overstates the success of an attacker, over all prior beliefs; `fit_lower` bounds it from below. Report mu
    if the fit is below 0.01, and the whole profile otherwise. `rigour` is that of the deltas.

    >>> import cumulant as cm
    >>> found = (cm.Gaussian(sigma="1.1") @ cm.Poisson(rate="0.01") * 1000).gaussian_fit(slack="1e-6")
    >>> found.mu, found.slack
    (0.38858, 1e-06)
    """

    mu: float
    lower: float | None
    slack: float
    fit: float | None
    fit_lower: float
    rigour: str
    relation: str

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as JSON values; infinity is the text "inf"."""
        return {each.name: plain(getattr(self, each.name)) for each in fields(self)}

    def to_json(self) -> str:
        """Return the fields as one JSON object."""
        return json.dumps(self.to_dict())

    def __str__(self) -> str:
        slack = f"slack {shown_up(self.slack)}"
        if math.isinf(self.mu):
            return f"mu = inf at {slack}: no finite mu is known; ask for epsilon at a delta instead"
        mu, least = shown_up(self.mu), "" if not self.lower else f" (at least {shown_down(self.lower)})"
        attack = f"no attack does better than telling N({mu}, 1) from N(0, 1), but for {shown_up(self.slack)}"
        return f"mu = {mu} at {slack}{least}: {attack}; {self.fit_text}"

    @property
    def fit_text(self) -> str:
        """The fit in words: from above where it is known, else from below."""
        if self.fit is None:
            return f"fit at least {shown_down(self.fit_lower, 2)}"
        return f"fit {shown_up(self.fit, 2)}"


def gaussian_fit(run: RunRecord, slack: Number) -> GaussianFit:
    """Find the least mu for which a run is (mu, slack)-Gaussian private, from above, with its lower end and its fit.

    >>> import cumulant as cm
    >>> str(gaussian_fit(cm.Gaussian(sigma=2).record(), "1e-6"))[:34]
    'mu = 0.5 at slack 1e-6 (at least 0'
    """
    part = SLACK.check("slack", slack)
    return run.answer(("gaussian fit", part), partial(_gaussian_fit, run, part))


def _gaussian_fit(run: RunRecord, part: Exact) -> GaussianFit:
    """Find the fit; `gaussian_fit` remembers it."""
    strict = attack.gaussian(run)
    if strict == 0:
        return GaussianFit(0.0, 0.0, stated(part), 0.0, 0.0, _rigour(run), run.relation)
    if _only_gaussian(run):
        places = [0.0, strict * strict / 2]
        lower = _lower(run, part, places)
        rounds = rounds_of(run)[0]
        fit = 0.0 if rounds is not None and rounds.attained and not run.surrogate else None
        return GaussianFit(strict, lower, stated(part), fit, 0.0, _rigour(run, "proved"), run.relation)
    grid = Grid.of(run, part)
    mu = strict if grid is None else min(grid.mu(), strict)
    if grid is None or math.isinf(mu):
        return GaussianFit(mu, None, stated(part), None, 0.0, _rigour(run), run.relation)
    places = grid.binding(mu)
    close = grid.nearly_attained(places[0])
    lower = _lower(run, part, places if close else places[:1])
    fit = grid.fit(mu) if close else None
    return GaussianFit(mu, lower, stated(part), fit, grid.fit_lower(mu), _rigour(run), run.relation)


def mu_with_slack(run: RunRecord, slack: Number, method: Method = DEFAULT_METHOD) -> float:
    """Return the mu of `gaussian_fit` without its lower end and fit, which take most of the time.

    By `method="rdp"` the mu is larger and comes at once, also where a run has an epsilon of thousands.
    """
    part = SLACK.check("slack", slack)
    strict = attack.gaussian(run)
    if strict == 0 or _only_gaussian(run):
        return strict
    grid = Grid.of(run, part, method)
    return strict if grid is None else min(grid.mu(), strict)


def _rigour(run: RunRecord, best: str = "bounded") -> str:
    return "estimated" if run.estimated else best


def _only_gaussian(run: RunRecord) -> bool:
    """Return True if only Gaussian noise runs, without samples: the strict mu is then the mu of the run."""
    return all(
        part.inner is None and part.scheme is None and part.pair is not None and part.pair.gaussian_shift() is not None
        for part in run.parts
    )


# ---- the profile of N(mu, 1) against N(0, 1), in floats and in balls


@dataclass(frozen=True, slots=True)
class _Normal:
    """The functions that the profile needs, of one arithmetic."""

    number: Callable[[Any], Any]
    array: Callable[[Any], Any]
    cdf: Callable[[Any], Any]
    log_cdf: Callable[[Any], Any]
    exp: Callable[[Any], Any]
    expm1: Callable[[Any], Any]
    log: Callable[[Any], Any]
    log1p: Callable[[Any], Any]


def _ball_cdf(x: Any) -> Any:
    return ball_erfc(-x / BALLS.number(2).sqrt()) / 2


_IN_FLOATS = _Normal(
    float,
    lambda values: np.array([float(each) for each in values]),
    lambda x: special.ndtr(x),
    lambda x: special.log_ndtr(x),
    np.exp,
    np.expm1,
    np.log,
    np.log1p,
)
"""The normal law in floats, to search with."""

_IN_BALLS = _Normal(
    BALLS.number,
    lambda values: np.array([BALLS.number(Fraction(each)) for each in values], dtype=object),
    np.frompyfunc(_ball_cdf, 1, 1),
    np.frompyfunc(lambda x: _ball_cdf(x).log(), 1, 1),
    np.frompyfunc(lambda x: x.exp(), 1, 1),
    np.frompyfunc(lambda x: x.expm1(), 1, 1),
    np.frompyfunc(lambda x: x.log(), 1, 1),
    np.frompyfunc(lambda x: x.log1p(), 1, 1),
)
"""The normal law in balls, to prove with."""


def _profile(mu: Any, epsilons: Any, on: _Normal) -> Any:
    """delta_mu(eps) = Phi(mu/2 - eps/mu) - e^eps Phi(-mu/2 - eps/mu)."""
    return on.cdf(mu / 2 - epsilons / mu) - on.exp(epsilons + on.log_cdf(-mu / 2 - epsilons / mu))


def cells_hold(mu: Any, slack: Any, epsilons: Any, deltas: Any, on: _Normal) -> Any:
    """Return for every cell of the grid whether delta <= delta_mu + slack follows on it from the deltas at its ends.

    (i) delta falls and is at most the slack at the left end; (ii) it is at most delta_mu + slack at the right end; (iii)
    the chord of delta lies below the tangent of delta_mu at the middle m of the cell, in a = e^eps, where both functions
    are convex.
    """
    left, right, high, low = epsilons[:-1], epsilons[1:], deltas[:-1], deltas[1:]
    # m = (a_i + a_{i+1}) / 2; t = delta_mu(log m); the slope of delta_mu in a is -k, k = Phi(-mu/2 - log(m)/mu)
    width = right - left
    middle = left + on.log1p(on.expm1(width) / 2)
    t = _profile(mu, middle, on)
    # k (m - a_i) = k (a_{i+1} - m) = k (a_{i+1} - a_i) / 2
    rise = on.exp(on.log_cdf(-mu / 2 - middle / mu) + left + on.log(on.expm1(width) / 2))
    chord = (high <= t + rise + slack) & (low <= t - rise + slack)
    return (high <= slack) | (high <= _profile(mu, right, on) + slack) | chord


# ---- the grid


@dataclass(slots=True)
class Grid:
    """Epsilons 0 = e_0 < ... < e_n with deltas that hold there; at e_n delta is at most the slack."""

    run: RunRecord
    slack: Exact
    epsilons: Floats
    deltas: list[Fraction]
    method: Method = DEFAULT_METHOD
    _highs: Floats = field(default_factory=lambda: np.zeros(0))

    @property
    def highs(self) -> Floats:
        """The deltas as floats, to choose with."""
        if self._highs.size != len(self.deltas):
            self._highs = np.array([float(each) for each in self.deltas])
        return self._highs

    def nearly_attained(self, epsilon: float) -> bool:
        """Return True if explicit neighbours need nearly the delta that is known at this epsilon of the grid."""
        known = self.deltas[int(np.searchsorted(self.epsilons, epsilon))]
        found = _lower_delta(self.run, epsilon)
        return found is not None and found >= ATTAINED * known

    @classmethod
    def of(cls, run: RunRecord, slack: Exact, method: Method = DEFAULT_METHOD) -> Grid | None:
        """Ask the first grid; None where no finite epsilon is known at a delta of this slack."""
        question = Question.parse_query(method, None, None, DEFAULT_ACCURACY, "delta")
        # an array is answered in floats, which is enough here and takes a tenth of the time
        last = float(np.atleast_1d(answer.epsilon(run, [slack], question))[0])
        if math.isinf(last):
            return None
        last = max(last, float(np.finfo(np.float64).tiny) * 2**60)
        singly = method == GUIDE or one_record(run) is not None or announced_run(run) is not None
        found = cls(run, slack, np.zeros(0), [], method)
        found.ask(np.linspace(0.0, last, (FEW_CELLS if singly else CELLS) + 1))
        # epsilon at a delta of the slack is e_n, so delta at e_n is at most the slack, whatever another question said
        found.deltas[-1] = min(found.deltas[-1], Fraction(slack))
        return found

    def ask(self, epsilons: Floats) -> None:
        """Learn the deltas at further epsilons, and keep all in order; a delta holds at every larger epsilon too."""
        new = np.setdiff1d(epsilons, self.epsilons)
        question = Question.parse_query(self.method, None, None, DEFAULT_ACCURACY, "epsilon")
        found = np.atleast_1d(answer.delta(self.run, new.tolist(), question))
        known = dict(zip(self.epsilons.tolist(), self.deltas, strict=True))
        known |= {e: Fraction(d) for e, d in zip(new.tolist(), found.tolist(), strict=True)}
        self.epsilons, least = np.array(sorted(known)), Fraction(1)
        self.deltas = [least := min(least, known[e]) for e in self.epsilons.tolist()]
        self._highs = np.zeros(0)

    def hold(self, mu: float) -> np.ndarray[Any, np.dtype[np.bool_]]:
        """Return for every cell whether floats find that it holds at this mu."""
        with np.errstate(all="ignore"):
            found = cells_hold(mu, float(self.slack), self.epsilons, self.highs, _IN_FLOATS)
        return np.asarray(found, dtype=bool)

    def proved(self, mu: float) -> bool:
        """Return True if balls prove every cell at this mu, read as it prints, and the end beyond the last epsilon."""
        if self.deltas[-1] > self.slack:
            return False
        with BALLS.at(BITS):
            exact = [as_printed(each) for each in self.epsilons.tolist()]
            number = BALLS.number(as_printed(mu))
            found = cells_hold(
                number,
                BALLS.number(Fraction(self.slack)),
                _IN_BALLS.array(exact),
                _IN_BALLS.array(self.deltas),
                _IN_BALLS,
            )
            return all(bool(each) for each in found)

    def mu(self) -> float:
        """Return the least mu that the grid proves, after splitting the cells that bind; inf if none is found."""
        for split in range(ROUNDS + 1):
            found = self._least()
            if math.isinf(found) or split == ROUNDS or len(self.epsilons) <= FEW_CELLS + 1:
                break
            self._split(found)
        for wider in WIDENINGS:
            tried = float(f"{found * (1 + wider):.12g}")
            tried = tried if tried >= found else float(f"{found * (1 + wider + 1e-12):.12g}")
            if math.isfinite(tried) and self.proved(tried):
                return tried
        return math.inf

    def _least(self) -> float:
        """Bisect for the least mu at which floats find that all cells hold; inf if none is below 2^40."""
        high = 1.0
        while not self.hold(high).all():
            high *= 2
            if high > LARGEST_MU:
                return math.inf
        low = high / 2 if high > 1 else 0.0
        for _ in range(64):
            middle = (low + high) / 2 if low else high / 8
            if middle <= 1e-300:
                break
            low, high = (low, middle) if self.hold(middle).all() else (middle, high)
            if high - low <= 1e-14 * high:
                break
        return high

    def _split(self, mu: float) -> None:
        """Ask within the cells that a slightly smaller mu breaks."""
        broken = np.flatnonzero(~self.hold(mu * (1 - NEARLY)))[:MOST_SPLIT]
        new = [np.linspace(self.epsilons[i], self.epsilons[i + 1], PARTS + 1)[1:-1] for i in broken]
        if new:
            self.ask(np.concatenate(new))

    def binding(self, mu: float) -> list[float]:
        """Return the epsilons at which the largest mu is needed, apart from one another, the largest first."""
        with np.errstate(all="ignore"):
            gap = self.highs - float(self.slack) - _profile(mu, self.epsilons, _IN_FLOATS)
            # d delta_mu / d mu = phi(mu/2 - eps/mu): the gap in units of mu
            density = np.exp(-((mu / 2 - self.epsilons / mu) ** 2) / 2)
            needed = np.where(density > 0, gap / density, -np.inf)
        needed = np.where(np.isnan(needed), -np.inf, needed)
        chosen: list[float] = []
        apart = self.epsilons[-1] / CELLS
        for i in np.argsort(-needed):
            e = float(self.epsilons[i])
            if all(abs(e - other) >= apart for other in chosen):
                chosen.append(e)
            if len(chosen) == WITNESSED:
                break
        return chosen

    def fit_lower(self, mu: float) -> float:
        """Return max of (delta_mu(e_i) - d_i) / (1 + e^{e_i}), rounded down: the fit is at least that."""
        with np.errstate(all="ignore"):
            excess = (_profile(mu, self.epsilons, _IN_FLOATS) - self.highs) / (1 + np.exp(self.epsilons))
        best = int(np.nanargmax(np.where(np.isnan(excess), -np.inf, excess)))
        with BALLS.at(BITS):
            at = BALLS.number(as_printed(float(self.epsilons[best])))
            known = _profile(BALLS.number(as_printed(mu)), at, _IN_BALLS) - BALLS.number(self.deltas[best])
            return max(_below(known / (1 + at.exp())), 0.0)

    def fit(self, mu: float) -> float | None:
        """Bound the fit from above with a few lower deltas; None where the run has no lower end.

        delta is convex in a = e^eps, so the line through a lower delta at one place and a delta at another one bounds it
        from below beyond the first.
        """
        low: dict[int, float] = {}
        last = len(self.epsilons) - 1
        bounds = self._fit_bounds(mu, low)
        for _ in range(CUTS):
            worst = min(int(np.argmax(bounds)) + 1, last)
            worst = worst if worst not in low else worst - 1
            if worst in low:
                break
            found = _lower_delta(self.run, float(self.epsilons[worst]))
            if found is None and not low:
                return None
            low[worst] = 0.0 if found is None else rounded_down(found)
            bounds = np.minimum(bounds, self._fit_bounds(mu, low))
        return float(min(np.max(bounds) * (1 + 1e-9) + 1e-15, 1.0))

    def _fit_bounds(self, mu: float, low: dict[int, float]) -> Floats:
        """Bound (delta_mu - delta) / (1 + e^eps) on every cell and beyond the last, by lines below delta."""
        e = self.epsilons
        with np.errstate(all="ignore"):
            a = np.exp(e)
            upper = np.array([rounded_up(each) for each in self.deltas])
            below = np.zeros(e.size)
            for j, value in low.items():
                below[: j + 1] = np.maximum(below[: j + 1], value)  # delta falls
                for k in {max(j - step, 0) for step in (1, 2, 4, 8, 16, 32)} - {j}:
                    slope = min((value - upper[k]) / (a[j] - a[k]), 0.0) * (1 + 1e-12)
                    below[j:] = np.maximum(below[j:], value + slope * (a[j:] - a[j]) - 1e-13)
                for k in {min(j + step, e.size - 1) for step in (1, 2, 4, 8, 16, 32)} - {j}:
                    slope = min((upper[k] - value) / (a[k] - a[j]), 0.0) * (1 - 1e-12)
                    # left of j delta lies above the line through (j, lower) and (k, upper), k > j
                    below[:j] = np.maximum(below[:j], value + slope * (a[:j] - a[j]) - 1e-13)
            profile = _profile(mu, e, _IN_FLOATS)
            cells = (profile[:-1] - np.minimum(below[1:], upper[1:])) / (1 + a[:-1])
            found = np.append(cells, profile[-1] / (1 + a[-1]))
        return np.where(np.isnan(found), 1.0, np.maximum(found, 0.0))


def _below(ball: Any) -> float:
    """Return a float that is not above a ball."""
    end = ball.lower()
    mantissa, exponent = (int(part) for part in end.man_exp())
    return rounded_down(Fraction(mantissa) * Fraction(2) ** exponent)


def _lower(run: RunRecord, slack: Exact, epsilons: list[float]) -> float | None:
    """Return a mu that is too small by the lower deltas at these epsilons; None where the run has no lower end."""
    known = [(epsilon, _lower_delta(run, epsilon)) for epsilon in epsilons]
    return max((_refuted_mu(epsilon, low - slack) for epsilon, low in known if low is not None), default=None)


def _lower_delta(run: RunRecord, epsilon: float) -> Fraction | None:
    """Return the delta that explicit neighbours need at this epsilon; None where the run has no lower end."""
    question = Question.parse_query(DEFAULT_METHOD, None, None, DEFAULT_ACCURACY, "epsilon")
    found = answer.lower(run, question.with_value(Exact(epsilon)), 1.0)[0]
    return None if found is None else Fraction(found)


def _refuted_mu(epsilon: float, delta: Fraction) -> float:
    """Return a mu with delta_mu(epsilon) < delta, nearly the largest one, proved in balls; 0 if there is none."""
    if delta <= 0:
        return 0.0
    low, high, wanted = 0.0, 1.0, float(delta)
    with np.errstate(all="ignore"):
        while float(_profile(high, np.float64(epsilon), _IN_FLOATS)) < wanted and high < LARGEST_MU:
            high *= 2
        for _ in range(80):
            middle = (low + high) / 2
            below = float(_profile(middle, np.float64(epsilon), _IN_FLOATS)) < wanted if middle > 0 else True
            low, high = (middle, high) if below else (low, middle)
    for smaller in WIDENINGS[1:]:
        tried = float(f"{low * (1 - smaller):.12g}")
        with BALLS.at(BITS):
            if tried > 0 and bool(
                _profile(BALLS.number(as_printed(tried)), BALLS.number(as_printed(epsilon)), _IN_BALLS)
                < BALLS.number(delta)
            ):
                return tried
    return 0.0
