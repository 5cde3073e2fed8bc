"""The mu of Gaussian privacy with a slack, against stored values, the definition, and profiles made to break a cell."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import special

import cumulant as cm
from cumulant.accounting import answer, attacks
from cumulant.accounting import gaussian_fit as module
from cumulant.accounting.dominating_runs import dominating_deltas
from cumulant.accounting.gaussian_fit import Grid, cells_hold
from cumulant.domains import Exact

ROWS = json.loads((Path(__file__).parents[1] / "oracles" / "reports.json").read_text())["mu"]
SGD = "Gaussian(sigma=1.1) @ Poisson(rate=0.01) * 1000"


def profile(mu: float, epsilon: Any) -> Any:
    """delta of N(mu, 1) against N(0, 1)."""
    return special.ndtr(mu / 2 - epsilon / mu) - np.exp(epsilon + special.log_ndtr(-mu / 2 - epsilon / mu))


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row['run']} {row['slack']}")
def test_stored_values(row: dict[str, Any]) -> None:
    found = cm.parse(row["run"]).gaussian_fit(slack=row["slack"])
    assert found.mu == pytest.approx(row["mu"], abs=row["tolerance"])
    assert found.lower is not None
    assert found.lower < found.mu
    assert found.fit_lower == pytest.approx(row["fit_about"], abs=2e-5)
    assert found.fit is None or found.fit_lower <= found.fit <= row["fit_about"] + 6e-3
    assert found.rigour == "bounded"


def test_it_holds_between_the_places_that_were_asked() -> None:
    run = cm.parse(SGD)
    mu, slack = run.gaussian_mu(slack="1e-6"), 1e-6
    epsilons = np.linspace(0, 1.2 * run.epsilon(delta=slack), 4001)
    excess = run.delta(epsilons) - profile(mu, epsilons) - slack
    assert excess.max() <= 1e-13
    assert (run.delta(epsilons) - profile(mu * 0.9999, epsilons) - slack).max() > 0  # and nothing much smaller does


def test_it_is_monotone_and_below_the_strict_one() -> None:
    run = cm.Laplace(scale=2)
    found = [run.gaussian_mu(slack=slack) for slack in ("0.1", "1e-3", "1e-6", "1e-12")]
    assert found == sorted(found)
    assert found[-1] <= run.gaussian_mu()
    more = [(run * times).gaussian_mu(slack="1e-6") for times in (1, 2, 5)]
    assert more == sorted(more)


def test_runs_that_dominate_a_run_are_asked_for_all_epsilons_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """One epsilon at a time took 33 seconds of the processor."""
    asked: list[int] = []

    def counted(runs: Any, value: Any, *others: Any) -> Any:
        asked.append(len(value))
        return dominating_deltas(runs, value, *others)

    monkeypatch.setattr(answer, "dominating_deltas", counted)
    run = cm.MatrixMechanism(bands=[1, "1/2"], steps=100, sigma=4) @ cm.CyclicPoisson(cycle=2, rate="0.02")
    same = cm.Gaussian(sigma=4, squared_sensitivity="5/4", relation="add-remove") @ cm.Poisson(rate="0.02") * 50
    assert run.gaussian_mu(slack="1e-5") == same.gaussian_mu(slack="1e-5")
    assert len(asked) < 10
    assert max(asked) > 10


def test_two_runs_compose_by_squares_and_slacks() -> None:
    """(mu, s) and (mu', s') are (sqrt(mu^2 + mu'^2), s + s'): what is known of the whole run is no worse."""
    one, other = cm.Laplace(scale=2), cm.RandomizedResponse(p="0.6")
    apart = math.hypot(one.gaussian_mu(slack="1e-4"), other.gaussian_mu(slack="2e-4"))
    assert (one + other).gaussian_mu(slack="3e-4") <= apart * (1 + 1e-6)


def test_gaussian_noise_alone_is_itself() -> None:
    found = (cm.Gaussian(sigma=2) * 4).gaussian_fit(slack="1e-6")
    assert (found.mu, found.fit, found.fit_lower, found.rigour) == (1.0, 0.0, 0.0, "proved")
    # with a slack s the least mu is smaller by about s / phi(0), at epsilon = mu^2 / 2
    assert found.lower == pytest.approx(1 - 1e-6 * math.sqrt(2 * math.pi), abs=2e-9)


def test_what_needs_no_mu_at_this_slack() -> None:
    assert cm.PureDP("1e-9").gaussian_mu(slack="1e-3") < 1e-6
    assert cm.ApproximateDP(1, "0.01").gaussian_fit(slack="0.001").mu == math.inf
    found = cm.ApproximateDP(1, "0.01").gaussian_fit(slack="0.001")
    assert found.lower is None
    assert "no finite mu is known" in str(found)
    assert cm.ApproximateDP(1, "0.01").gaussian_fit(slack="0.02").mu < math.inf


def test_the_fit_is_the_shift_between_trade_offs() -> None:
    """Lemma 1d: the fit is inf {D: f(x + D) - D <= G_mu(x) for all x}, on a polygon, by bisection on the definition."""
    p = 0.6
    run = cm.RandomizedResponse(p=p) * 4
    found = run.gaussian_fit(slack="1e-6")
    k = np.arange(5)
    choose = np.array([math.comb(4, int(i)) for i in k])
    member, other = choose * p**k * (1 - p) ** (4 - k), choose * p ** (4 - k) * (1 - p) ** k
    alarms = np.concatenate([[0], np.cumsum(other[::-1])])
    missed = 1 - np.concatenate(
        [[0], np.cumsum(member[::-1])]
    )  # the trade-off f: false negatives at each false alarm rate
    x = np.linspace(0, 1, 200_001)[1:-1]
    gaussian = special.ndtr(special.ndtri(1 - x) - found.mu)
    low, high = 0.0, 1.0
    for _ in range(40):
        shift = (low + high) / 2
        within = np.where(x + shift < 1, np.interp(np.minimum(x + shift, 1), alarms, missed), 0.0) - shift <= gaussian
        low, high = (low, shift) if within.all() else (shift, high)
    assert found.fit is not None
    assert found.fit_lower <= high + 1e-7
    assert high <= found.fit + 1e-7
    assert found.fit - found.fit_lower < 0.1 * found.fit


# ---- the cells, against profiles that are as large as the deltas allow


def test_no_cell_holds_that_a_convex_profile_breaks() -> None:
    """A polygon through the deltas is a privacy profile: where all cells hold, it is below delta_mu + slack everywhere."""
    draws = np.random.default_rng(5)
    held = broken = 0
    for _ in range(600):
        mu, slack, count = draws.uniform(0.3, 3), 10 ** draws.uniform(-6, -2), int(draws.integers(2, 7))
        true = mu * draws.uniform(0.97, 1.0)
        epsilons = np.sort(np.concatenate([[0.0], draws.uniform(0, 2 * mu, count)]))
        # deltas of a smaller Gaussian, plus the slack: their polygon is convex and falls
        deltas = profile(true, epsilons) + slack * draws.uniform(0.9, 1.0)
        holds = cells_hold(mu, slack, epsilons, deltas, module._IN_FLOATS)
        for i, hold in enumerate(holds):
            inside = np.linspace(np.exp(epsilons[i]), np.exp(epsilons[i + 1]), 60)
            chord = np.interp(inside, np.exp(epsilons[i : i + 2]), deltas[i : i + 2])
            exceeded = (chord > profile(mu, np.log(inside)) + slack + 1e-12).any()
            assert not (hold and exceeded)
            held, broken = held + bool(hold), broken + bool(exceeded)
    assert held > 300
    assert broken > 300


@pytest.mark.parametrize("place", [0.0, 0.3, 0.7])
def test_a_step_inside_a_cell_is_not_overlooked(place: float) -> None:
    """A delta that stays where it was until the right end holds only against delta_mu at the right end."""
    mu, slack = 1.0, 1e-6
    epsilons = np.array([place, place + 0.2])
    high = float(profile(mu, place + 0.1))  # above delta_mu in the right half of the cell
    found = cells_hold(mu, slack, epsilons, np.array([high, high]), module._IN_FLOATS)
    assert not found.any()


def test_both_ends_of_a_chord_are_looked_at() -> None:
    """Touching the tangent on one end is not enough, whichever end it is."""
    mu, slack, epsilons = 1.0, 1e-6, np.array([0.4, 0.8])
    curve = profile(mu, epsilons)
    for left, right in ((curve[0] - 0.05, curve[1] + 0.002), (curve[0] + 0.002, curve[1] - 0.05)):
        assert not cells_hold(mu, slack, epsilons, np.array([left, max(right, 0.0)]), module._IN_FLOATS).any()


def test_the_end_beyond_the_last_epsilon_is_part_of_the_proof() -> None:
    """A leak above the slack shows beyond every epsilon."""
    run = cm.ApproximateDP(1, "0.01")
    epsilons = np.linspace(0, 1, 33)
    deltas = [Fraction(float(each)) for each in run.delta(epsilons)]
    grid = Grid(run.record(), Exact("0.001"), epsilons, deltas)
    assert not grid.proved(50.0)
    assert Grid(run.record(), Exact("0.011"), epsilons, deltas).proved(50.0)


def test_a_one_sided_mechanism_is_judged_in_both_orders() -> None:
    """P never shows what Q shows often: the order with the leak needs the larger mu."""
    run = cm.from_masses(["0.01", "0.99"], [0, 1])
    mu = run.gaussian_mu(slack="1e-3")
    p, q = np.array([0.01, 0.99]), np.array([0.0, 1.0])
    for first, second in ((p, q), (q, p)):
        for epsilon in np.linspace(0, 3, 301):
            needed = np.maximum(first - math.exp(epsilon) * second, 0).sum()
            assert needed <= (profile(mu, epsilon) if math.isfinite(mu) else 1.0) + 1e-3 + 1e-12


# ---- what is refused


@pytest.mark.parametrize("slack", [0, 1, -0.1, 2, math.nan, math.inf, True, "little", None, []])
def test_a_slack_that_is_none(slack: Any) -> None:
    with pytest.raises(cm.InputError, match="slack"):
        cm.PureDP(1).gaussian_fit(slack=slack)


def test_slack_zero_is_the_strict_mu() -> None:
    assert cm.PureDP(1).gaussian_mu(slack=0) == cm.PureDP(1).gaussian_mu()
    with pytest.raises(cm.InputError, match="gaussian_mu"):
        cm.PureDP(1).gaussian_fit(slack=0)


def test_a_mu_is_never_printed_without_its_slack() -> None:
    found = cm.Laplace(scale=2).gaussian_fit(slack="1e-6")
    text = str(found)
    assert text.startswith(
        "mu = 0.5618 at slack 1e-6 (at least 0.5617): no attack does better than telling N(0.5618, 1)"
    )
    assert found.to_dict()["slack"] == 1e-6
    assert json.loads(found.to_json())["mu"] == found.mu


def test_a_calibration_to_mu() -> None:
    found = cm.calibrate("Laplace(scale=?)", mu="0.5", slack="1e-3", digits=3)
    assert found.run.gaussian_mu(slack="1e-3") <= 0.5
    assert found.fails is not None
    assert cm.Laplace(scale=found.fails).gaussian_mu(slack="1e-3") > 0.5
    with pytest.raises(cm.InputError, match="one target"):
        cm.calibrate("Laplace(scale=?)", mu=1, epsilon=1, delta="1e-6")


def test_equal_runs_are_fitted_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """A claim that is judged for five samplers, as text and as JSON, asked for each fit and each attack twice."""
    calls: list[str] = []

    def counted(name: str, find: Callable[..., Any]) -> Callable[..., Any]:
        def found(*asked: Any) -> Any:
            calls.append(name)
            return find(*asked)

        return found

    for where, name in ((module, "_gaussian_fit"), (attacks, "_bounds")):
        monkeypatch.setattr(where, name, counted(name, getattr(where, name)))
    for times in (3, 3, 4):
        run = cm.RandomizedResponse(p="0.6") * times
        assert run.gaussian_fit(slack="1e-3") == run.gaussian_fit(slack="0.001")
        assert run.membership("0.01") == run.true_positive_rate(["0.01"])[0]
    assert sorted(calls) == ["_bounds"] * 2 + ["_gaussian_fit"] * 2
    rates = run.true_positive_rate(["0.01"])
    rates[0] = 1.0  # what is remembered is not what was handed out
    assert run.membership("0.01") < 1
