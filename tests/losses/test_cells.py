"""One round on a grid, from above and from below: hockey-stick curves of both against the law itself."""

import math
from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest
from flint import arb, ctx

from cumulant.exact.grid.dominated import LEFT, RIGHT, sweep_law
from cumulant.losses.cells import Cells, Grid, place_atoms
from cumulant.losses.gaussian_law import GaussianLaw
from cumulant.losses.grid import Loss, Mixture
from cumulant.losses.subsampled import unsampled_loss
from cumulant.numerics.rounding import U
from cumulant.pairs.finite import Finite
from cumulant.pairs.gaussian import GaussianPair
from cumulant.pairs.laplace import LaplaceLaw, LaplacePair
from tests.exact.brute import DIRECTIONS, RATES, Composed, hockey_stick, law_of, random_pair, sampled

CUT = -60.0


def above(cells: Cells) -> np.ndarray:
    """log P-masses of the dominating pair."""
    ends = np.logaddexp(np.append(cells.left, -np.inf), np.append(-np.inf, cells.right))
    return np.asarray(np.logaddexp(ends, cells.atoms))


@pytest.mark.parametrize("direction", DIRECTIONS)
def test_random_atoms_dominate_and_are_dominated_at_every_alpha(direction: str) -> None:
    rng = np.random.default_rng(3)
    close = 0
    for _ in range(100):
        pair, rate = random_pair(rng, 4), RATES[int(rng.integers(len(RATES)))]
        step, truth = (
            Mixture(law_of(pair), float(rate), float(1 - rate), direction),
            Composed([(sampled(pair, rate, direction), 1)]),
        )
        if step.leak == 1:
            continue
        low, high = step.span(CUT)
        width = max(high - low, 1e-9) * float(rng.choice([0.4, 0.06, 0.007])) * (0.5 + float(rng.random()))
        cells = step.cells(width, CUT)
        points = cells.grid.points()
        log_alpha = np.concatenate([rng.uniform(low - width, high + width, 60), points[:60], [low, high, 0.0]])
        exact = np.array([float(truth.delta(value)) for value in log_alpha]) - step.leak
        upper = hockey_stick(above(cells), points, log_alpha - cells.slip)
        tolerance = 1e-14 + 8 * cells.slip
        assert (exact <= upper * (1 + tolerance) + 1e-16).all(), (step, width)
        for log_p, lost in (sweep_law(cells, CUT, sign) for sign in (LEFT, RIGHT)):
            lower = hockey_stick(log_p, points, log_alpha + cells.slip) - lost
            assert (lower <= exact * (1 + tolerance) + 1e-16).all(), (step, width)
            close += bool((lower[exact > 1e-3] > 0.9 * upper[exact > 1e-3]).all())
    assert close > 40


@pytest.mark.parametrize(
    ("law", "profile"),
    [
        (GaussianLaw(Fraction(1.0)), GaussianPair(Fraction(1)).log_profile),
        (GaussianLaw(Fraction(0.2)), GaussianPair(Fraction(1, 5)).log_profile),
        (LaplaceLaw(Fraction(0.5)), LaplacePair(Fraction(1, 2)).log_profile),
    ],
)
@pytest.mark.parametrize("rate", [1.0, 0.01])
def test_smooth_laws_keep_the_amplified_profile_between_them(
    law: Loss, profile: Callable[[float], float], rate: float
) -> None:
    step = Mixture(law, rate, 1 - rate, "symmetric")
    high = step.span(CUT)[1]
    for width in (high / 40, high / 700):
        cells = step.cells(width, CUT)
        points, epsilons = cells.grid.points(), np.linspace(0, 0.6, 25) * high
        exact = rate * np.exp([profile(math.log1p(math.expm1(e) / rate)) for e in epsilons])
        upper = hockey_stick(above(cells), points, epsilons - cells.slip) + math.exp(CUT)
        assert (exact <= upper * (1 + 1e-12)).all()
        for log_p, lost in (sweep_law(cells, CUT, sign) for sign in (LEFT, RIGHT)):
            assert (hockey_stick(log_p, points, epsilons + cells.slip) - lost <= exact * (1 + 1e-12)).all()


def test_masses_of_both_laws_are_kept() -> None:
    for direction in DIRECTIONS:
        for law in (GaussianLaw(Fraction(1.5)), LaplaceLaw(Fraction(2.0))):
            cells = Mixture(law, 0.3, 0.7, direction).cells(0.05, CUT)
            log_p, points = above(cells), cells.grid.points()
            assert math.fsum(np.exp(log_p)) == pytest.approx(1, abs=1e-13)
            assert math.fsum(np.exp(log_p - points)) == pytest.approx(1, abs=1e-13)


@pytest.mark.parametrize("scale", [0.0, -900.0])
def test_crowded_atoms_add_up_to_what_fractions_say(scale: float) -> None:
    """On a grid of step log 2 every share is rational: a loss of log 3/2 sends 2/3 of its mass to the right."""
    step, count = math.log(2), 20_000
    grid, masses = Grid(step, 0.0, 0, 4), [Fraction(i % 97 + 1, 2**40) for i in range(count)]
    left, right, atoms = np.full(3, -np.inf), np.full(3, -np.inf), np.full(4, -np.inf)
    loss = np.where(np.arange(count) % 2, math.log(1.5), step)
    log_p = np.log([float(mass) for mass in masses]) + scale
    slip, error = place_atoms(loss, log_p, grid, left, right, atoms)
    between, on = sum(masses[1::2], start=Fraction(0)), sum(masses[::2], start=Fraction(0))
    exact = [on, between * Fraction(2, 3), between * Fraction(1, 3)]
    found = np.array([atoms[1], right[0], left[0]])
    assert slip == 0
    assert error == count / 2 * U
    wrong = np.abs(found - scale - [math.log(mass) for mass in exact])
    assert (wrong <= error + 8 * U * (1 + abs(scale))).all()
    assert (np.exp(np.concatenate([atoms[[0, 2, 3]], right[1:], left[1:]])) == 0).all()


def test_outputs_bound_from_below_at_every_alpha() -> None:
    rng = np.random.default_rng(17)
    for _ in range(100):
        pair, rate = random_pair(rng, 6), RATES[int(rng.integers(len(RATES)))]
        direction = str(rng.choice(["remove", "add"]))
        step = Finite.sampled([p for p, _ in pair], [q for _, q in pair], rate, direction)
        truth = Composed([(sampled(pair, rate, direction), 1)])
        low, high = step.span(CUT)
        width = max(high - low, 1e-9) * float(rng.choice([0.4, 0.06, 0.007])) * (0.5 + float(rng.random()))
        cells = step.cells(width, CUT)
        log_alpha = np.concatenate([rng.uniform(low - width, high + width, 60), cells.grid.points()[:60], [low, high]])
        exact = np.array([float(truth.delta(value)) for value in log_alpha]) - step.leak
        for log_p, lost in (sweep_law(cells, CUT, sign) for sign in (LEFT, RIGHT)):
            moved = cells.slip + 2 * cells.error
            lower = hockey_stick(log_p, cells.grid.points(), log_alpha + moved) * (1 - cells.error) - lost
            assert (lower <= exact + 1e-16).all(), (step, width)


def test_the_symmetric_pair_has_the_larger_of_both_profiles() -> None:
    rng = np.random.default_rng(5)
    for _ in range(200):
        p, q = ([Fraction(int(v)) + (i == 0) for i, v in enumerate(rng.integers(0, 50, 5))] for _ in range(2))
        p, q = [v / sum(p) for v in p], [v / sum(q) for v in q]
        law = law_of(list(zip(p, q, strict=True)))
        x, mass = np.array(law.losses), np.exp(np.array(law.log_masses))
        for alpha in (Fraction(1), Fraction(11, 10), Fraction(3, 2), Fraction(4), Fraction(100)):
            exact = max(
                sum(max(a - alpha * b, Fraction(0)) for a, b in zip(u, v, strict=True)) for u, v in ((p, q), (q, p))
            )
            found = law.leak + float(np.sum(mass * np.maximum(np.exp(x) - float(alpha), 0.0)))
            assert found == pytest.approx(float(exact), rel=1e-12, abs=1e-15)
        total = law.leak + law.equal + float(np.sum(mass * (1 + np.exp(x))))
        assert total == pytest.approx(1, abs=1e-14)
        assert law.equal >= 0
        assert law.distance + law.leak == pytest.approx(
            float(sum(max(a - b, Fraction(0)) for a, b in zip(p, q, strict=True))), abs=1e-14
        )


@pytest.mark.parametrize("kept", ["1e-12", "1e-6", "0.001", "0.5", "0.999", "0.999999999999"])
def test_the_unsampled_loss_is_that_of_a_loss_nearby(kept: str) -> None:
    """Backward stable, also where the rate is close to 1 and the loss close to its least value, log(1 - g)."""
    exact_kept = Fraction(kept)
    g, rest = float(1 - exact_kept), float(exact_kept)
    least = math.log(rest)
    losses = np.concatenate([least + np.geomspace(1e-9, 1.0, 60), np.linspace(-3.0, 60.0, 200)])
    losses = losses[losses > least]
    found = unsampled_loss(losses, g, rest)
    before, ctx.prec = ctx.prec, 300
    try:
        for loss, x in zip(losses.tolist(), found.tolist(), strict=True):
            k = arb(exact_kept.numerator) / arb(exact_kept.denominator)
            back = float((k + (1 - k) * arb(x).exp()).log())
            assert abs(back - loss) <= 8 * U * (1 + abs(loss))
    finally:
        ctx.prec = before
