"""The reference law of Theorem W: it dominates what it must, and every condition of its check, broken on purpose, is missed."""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import cumulant as cm
from cumulant.exact.adaptive import reference_law as references
from cumulant.exact.adaptive.constraints import BITS, Constraint, LaplaceConstraint, ReportConstraint, integrals
from cumulant.exact.adaptive.reference_law import Reference, is_proved, reference, rows_between
from cumulant.exact.adaptive.settings import THEOREM_W
from cumulant.numerics.arithmetic import BALLS, Scalar
from tests.oracles.triples import Laws, binned_laplace, demanded, random_l1_triples, random_pure_triples

LAPLACE = LaplaceConstraint(Fraction(2), "vector", Fraction(1, 100))
SIZE = (14, 120)


def reports(mechanism: cm.Mechanism, rate: str) -> ReportConstraint:
    pair = mechanism.pair()
    extremes = None if pair is None else pair.extremes()
    assert extremes is not None
    return ReportConstraint(extremes, Fraction(rate))


PURE = reports(cm.PureDP(1), "0.01")


def found(constraint: Constraint, order: float, lam: float = 4.0, size: tuple[int, int] = SIZE) -> Reference:
    law = reference(constraint, order, lam, *size)
    assert law is not None
    assert law.proved
    return law


def laws_of(law: Reference) -> tuple[Laws, Laws]:
    """Under the first law and under the second."""
    masses = np.array(law.masses)
    return masses * np.exp(law.width * np.array(law.places)), masses


def rows_of(law: Reference, order: float, rows: Laws) -> list[Scalar]:
    """G* at the rows, in balls; the caller holds them."""
    width = BALLS.number(law.width)
    return integrals(
        order, rows, [(width * i, BALLS.number(m)) for i, m in zip(law.places, law.masses, strict=True) if i]
    )


# ---- what it says


def test_what_a_reference_says() -> None:
    law = found(LAPLACE, 2.0)
    losses, log_p = law.outputs(0.0)
    assert 0 in law.places
    assert sum(map(Fraction, law.masses)) >= 1
    assert losses == pytest.approx(law.width * np.array(law.places), rel=1e-15)
    assert np.exp(log_p - losses) == pytest.approx(law.masses, rel=1e-12)
    assert (law.anchor(), law.exact_lattice, law.leak, law.complete) == (law.width, True, 0.0, True)
    assert reference(LAPLACE, 2.0, 4.0, *SIZE) is law  # remembered
    proposal = references.propose_reference(LAPLACE, 2.0, 4.0, *SIZE)
    assert proposal is not None
    assert not proposal.proved  # a programme shows nothing


# ---- against triples


@pytest.mark.parametrize("order", THEOREM_W.orders)
def test_triples_demand_less_than_is_said_and_that_less_than_is_held(order: float) -> None:
    """G of random triples in one to three dimensions <= S <= G*, at random x0; in all some 200 of them, and pure ones."""
    rng = np.random.default_rng(int(100 * order))
    for dimension in (1, 2, 3):
        shift, rate = (("1", "0.05"), ("2", "0.01"), ("4", "0.02"))[(dimension + int(order)) % 3]
        g, constraint = (
            float(rate),
            LaplaceConstraint(Fraction(shift), "scalar" if dimension == 1 else "vector", Fraction(rate)),
        )
        p, q = laws_of(found(constraint, order))
        starts = np.sort(rng.uniform(-1, 0.95, 8)) * constraint.top
        rows = np.unique(np.concatenate([rows_between(constraint.top, 120), starts]))
        with BALLS.at(BITS):
            balls = constraint.required_integrals(order, rows)
            assert balls is not None
            said = np.array([float(each.upper()) for each in balls])[np.searchsorted(rows, starts)]
        held = np.array([float(demanded(order, x0, p, q)) for x0 in starts])
        assert (said <= held * (1 + 1e-9)).all()
        for triple in np.stack(random_l1_triples(rng, float(shift), 7, dimension), axis=1):
            laws = binned_laplace(triple, (100, 20, 6)[dimension - 1])
            a, b = (1 - g) * laws[0] + g * laws[1], (1 - g) * laws[0] + g * laws[2]
            assert (np.array([float(demanded(order, x0, a, b)) for x0 in starts]) <= said).all()
    g, pure = 0.05, reports(cm.PureDP(2), "0.05")
    r, one, other = random_pure_triples(rng, 2.0, 50)
    p, q = laws_of(found(pure, order))
    for x0 in np.append(rng.uniform(-1.2, 0.9, 12), -5.0) * pure.top:
        most = float(demanded(order, float(x0), p, q))
        assert demanded(order, float(x0), (1 - g) * r + g * one, (1 - g) * r + g * other).max() <= most * (1 + 1e-9)


@pytest.mark.parametrize("order", THEOREM_W.orders)
def test_the_widest_rounds(order: float) -> None:
    """Losses of a round up to 3: where there is a reference it holds between its rows; beyond there is none."""
    for constraint in (reports(cm.PureDP(6), "0.047"), LaplaceConstraint(Fraction(6), "vector", Fraction("0.047"))):
        assert 2.9 < constraint.top < 3
        law = reference(constraint, order, 1.0, *SIZE)
        if law is None:  # at large n floats do not propose one
            assert order > 8
            continue
        p, q = laws_of(law)
        rows = rows_between(constraint.top, 333)
        with BALLS.at(BITS):
            said = constraint.required_integrals(order, rows)
            assert said is not None
            for x0, each in list(zip(rows, said, strict=True))[:-40:50]:
                assert float(each.lower()) <= float(demanded(order, float(x0), p, q)) * (1 + 1e-9)
    assert reference(reports(cm.PureDP(6), "0.05"), order, 1.0, *SIZE) is None


@pytest.mark.parametrize("order", [0.5, 2.0, 16.0])
def test_a_reference_dominates_between_its_rows_too(order: float) -> None:
    for constraint in (PURE, LAPLACE):
        p, q = laws_of(found(constraint, order))
        assert (q.sum(), p.sum()) == (pytest.approx(1, abs=1e-9), pytest.approx(1, abs=1e-9))
        starts = np.sort(np.random.default_rng(4).uniform(-1.0, 0.999, 60)) * constraint.top
        rows = np.unique(np.concatenate([rows_between(constraint.top, 300), starts]))
        with BALLS.at(BITS):
            balls = constraint.required_integrals(order, rows)
            assert balls is not None
            said = np.array([float(each.upper()) for each in balls])
        for x0 in starts:
            assert float(demanded(order, float(x0), p, q)) >= said[np.searchsorted(rows, x0)] * (1 - 1e-6)
        assert float(demanded(order, -2 * constraint.top, p, q)) >= said[0] * (1 - 1e-6)


# ---- what is refused


def moved(law: Reference, places: dict[int, float]) -> Reference:
    """The law with these masses added, at places it may or may not have."""
    masses = dict(zip(law.places, law.masses, strict=True))
    for place, mass in places.items():
        masses[place] = masses.get(place, 0.0) + mass
    kept = sorted(place for place, mass in masses.items() if mass != 0)
    return replace(law, places=tuple(kept), masses=tuple(masses[place] for place in kept))


def mean(law: Reference) -> float:
    """E (T* - 1)."""
    with BALLS.at(BITS):
        width = BALLS.number(law.width)
        return float(
            sum(
                (BALLS.number(m) * (width * i).expm1() for i, m in zip(law.places, law.masses, strict=True)),
                BALLS.number(0),
            ).mid()
        )


@pytest.mark.parametrize("constraint", [PURE, LAPLACE], ids=["pure", "laplace"])
def test_a_mean_or_a_mass_below_one_is_refused(constraint: Constraint) -> None:
    law, rows = found(constraint, 2.0), rows_between(constraint.top, SIZE[1])
    assert is_proved(law, constraint, 2.0, rows)
    # 1e-12 less than 1: mass moves from the heaviest ratio above 1 to 1, far less than any row has to spare
    up = max((i for i in law.places if i > 0), key=lambda i: law.masses[law.places.index(i)])
    for less, fine in ((0.0, True), (1e-12, False)):
        taken = (mean(law) + less) / math.expm1(law.width * up) * (1 - 1e-3 if fine else 1)
        assert is_proved(moved(law, {up: -taken, 0: taken * 1.0001}), constraint, 2.0, rows) is fine
    # one unit in the last place of the mass at 1
    total = sum(map(Fraction, law.masses))
    spare = float(total - 1)
    assert not is_proved(moved(law, {0: -spare - 2.0**-52}), constraint, 2.0, rows)
    # more than 1 beside the ratio 1, and less than nothing anywhere, though all else holds
    assert not is_proved(moved(law, {1: 0.6, -1: 0.6}), constraint, 2.0, rows)
    assert not is_proved(moved(law, {law.places[0] - 1: -1e-12, 0: 2e-12}), constraint, 2.0, rows)
    assert is_proved(moved(law, {law.places[-1] + 1: 1e-12, 0: 2e-12}), constraint, 2.0, rows)


@dataclass(frozen=True, slots=True)
class Raised(Constraint):
    """A demand with one row raised or lowered to a part of what a law holds there."""

    base: Constraint
    law: Reference
    row: int
    part: float

    def largest_loss(self) -> Scalar:
        return self.base.largest_loss()

    def required_integrals(self, order: float, starts: Laws) -> list[Scalar] | None:
        said = self.base.required_integrals(order, starts)
        assert said is not None
        said[self.row] = rows_of(self.law, order, starts)[self.row + 1] * BALLS.number(self.part)
        return said


@pytest.mark.parametrize("constraint", [PURE, LAPLACE], ids=["pure", "laplace"])
def test_one_row_that_lacks_a_billionth_is_refused(constraint: Constraint) -> None:
    law, rows = found(constraint, 2.0), rows_between(constraint.top, SIZE[1])
    for row in (0, 1, SIZE[1] - 1, SIZE[1], 2 * SIZE[1], rows.size - 3, rows.size - 2):
        assert is_proved(law, Raised(constraint, law, row, 1 - 1e-9), 2.0, rows)
        assert not is_proved(law, Raised(constraint, law, row, 1 + 1e-9), 2.0, rows)
        assert not is_proved(law, Raised(constraint, law, row, math.nan), 2.0, rows)


@pytest.mark.parametrize("constraint", [PURE, LAPLACE], ids=["pure", "laplace"])
def test_a_law_that_lacks_a_millionth_is_refused(constraint: Constraint) -> None:
    """All masses but that at 1: those of a proposal exceed the least that is enough by 1e-6."""
    law, rows = found(constraint, 2.0), rows_between(constraint.top, SIZE[1])
    lower = {place: -mass * 2e-6 for place, mass in zip(law.places, law.masses, strict=True) if place}
    assert not is_proved(moved(law, lower | {0: -sum(lower.values()) * 1.01}), constraint, 2.0, rows)


@pytest.mark.parametrize(
    "cut",
    [
        lambda rows: rows[:-1],
        lambda rows: rows[1:],
        lambda rows: rows[rows != 0],
        lambda rows: np.append(rows, rows[-1]),
        lambda rows: rows[::-1],
        lambda rows: np.where(rows == rows[5], np.nan, rows),
    ],
    ids=["tail", "head", "no zero", "twice", "falling", "nan"],
)
def test_rows_that_do_not_cover_everything_are_refused(cut: Callable[[Laws], Laws]) -> None:
    law, rows = found(LAPLACE, 2.0), rows_between(LAPLACE.top, SIZE[1])
    assert not is_proved(law, LAPLACE, 2.0, cut(rows))


def test_a_tail_below_a_ten_millionth_of_the_largest_row_counts() -> None:
    """Without its last atoms the law holds every row above 1e-7 of the largest one, and none near the top."""
    constraint, order = LaplaceConstraint(Fraction(6), "vector", Fraction("0.04")), 16.0
    law, rows = found(constraint, order, 1.0), rows_between(constraint.top, SIZE[1])
    last = [place for place in law.places if law.width * place > 0.9 * constraint.top]
    rest = max(place for place in law.places if place not in last)
    gone = {place: -law.masses[law.places.index(place)] for place in last}
    lost = -sum(mass * math.expm1(law.width * place) for place, mass in gone.items())
    less = moved(law, gone | {rest: lost / math.expm1(law.width * rest) * (1 + 1e-12), 0: -sum(gone.values())})
    less = replace(
        less,
        masses=tuple(
            mass * (1 + 1e-15) if place == 0 else mass for place, mass in zip(less.places, less.masses, strict=True)
        ),
    )
    assert mean(less) >= 0
    with BALLS.at(BITS):
        said, held = constraint.required_integrals(order, rows), rows_of(less, order, rows)
        assert said is not None
        missed = [j for j in range(rows.size - 1) if not held[j + 1] >= said[j]]
        assert missed
        assert all(float(said[j].mid()) < 1e-7 * float(said[0].mid()) for j in missed)
    assert is_proved(law, constraint, order, rows)
    assert not is_proved(less, constraint, order, rows)


@pytest.mark.parametrize("mass", [0.0, -0.1, math.nan, math.inf])
def test_what_is_no_mass_is_refused(mass: float) -> None:
    law, rows = found(PURE, 2.0), rows_between(PURE.top, SIZE[1])
    assert not is_proved(replace(law, masses=(mass, *law.masses[1:])), PURE, 2.0, rows)
    assert not is_proved(replace(law, width=mass), PURE, 2.0, rows)
    assert not is_proved(replace(law, places=tuple(i + 100 for i in law.places)), PURE, 2.0, rows)


def test_a_proposal_that_is_too_small_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """The programme is not trusted: whatever it says, the rows are checked."""
    import scipy.optimize

    constraint = reports(cm.PureDP(1), "0.02")
    honest: Any = scipy.optimize.linprog

    def lying(*arguments: Any, **named: Any) -> Any:
        answer = honest(*arguments, **named)
        answer.x = answer.x * (1 - 1e-4)
        return answer

    assert reference(constraint, 4.0, 5.0, *SIZE) is not None
    monkeypatch.setattr(scipy.optimize, "linprog", lying)
    for each in (reference, references.propose_reference):
        each.cache_clear()
    assert reference(constraint, 4.0, 5.0, *SIZE) is None
    for each in (reference, references.propose_reference):
        each.cache_clear()


def test_a_demand_that_is_not_known_has_no_reference() -> None:
    assert reference(LaplaceConstraint(Fraction(1), "", Fraction(1, 100)), 2.0, 4.0, *SIZE) is None
    assert reference(reports(cm.PureDP("1e-6"), "0.01"), 2.0, 4.0, *SIZE) is None
