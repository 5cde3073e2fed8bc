"""Shuffled reports: reference values, laws, and histograms of reports enumerated from the definition."""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from scipy.stats import binom

import cumulant as cm
from cumulant.accounting import shuffled_passes
from cumulant.numerics.arithmetic import BALLS
from cumulant.pairs.shuffle import ShuffledPair
from tests.oracles.reference import load

ROWS = load("shuffle")["values"]
CLONES = [row for row in ROWS if "e^-eps0" in row["parameters"].get("kind", "")]


def local(row: dict[str, Any]) -> cm.Mechanism:
    text = row["parameters"]["local"]
    return cm.parse(text if "(" in text else f"PureDP({text})")  # type: ignore[return-value]


def named(row: dict[str, Any]) -> str:
    given = row["parameters"]
    return f"{given['reports']}-{given['local']}-{row['quantity']}-{'-'.join(row['at'].values())}".replace(" ", "")


@pytest.mark.parametrize("row", [row for row in ROWS if row not in CLONES], ids=named)
def test_reference(row: dict[str, Any]) -> None:
    run = local(row) @ cm.Shuffle(reports=row["parameters"]["reports"])
    expected = float(row["value"])
    if "delta" in row["quantity"]:
        found = run.guarantee(epsilon=row["at"]["epsilon"])
        assert found.rigour == "proved"
        assert (found.lower is None) == isinstance(local(row), cm.PureDP)
        assert found.lower is None or found.lower <= found.delta
        assert expected * (1 - 1e-15) <= found.delta <= expected * (1 + 1e-14)
    else:
        assert expected * (1 - 1e-14) <= run.rdp(float(row["at"]["order"])) <= expected * (1 + 1e-10)


def cloned(n: int, e0: float, share: float) -> tuple[Any, Any]:
    """P- and Q-masses of blankets in which each other report is A or B with this probability: a double sum."""
    p, q = [], []
    for size in range(1, n + 1):
        a = np.arange(size + 1)
        mass = binom.pmf(size - 1, n - 1, share) * binom.pmf(a, size, 0.5) * 2 / (size * (1 + math.exp(e0)))
        p.append(mass * (math.exp(e0) * a + size - a))
        q.append(mass * (a + math.exp(e0) * (size - a)))
    return np.concatenate(p), np.concatenate(q)


@pytest.mark.parametrize("row", CLONES, ids=named)
def test_the_older_clone_is_above(row: dict[str, Any]) -> None:
    n, e0, expected = int(row["parameters"]["reports"]), float(row["parameters"]["local"]), float(row["value"])
    p, q = cloned(n, e0, math.exp(-e0))
    run = local(row) @ cm.Shuffle(reports=n)
    if "delta" in row["quantity"]:
        epsilon = float(row["at"]["epsilon"])
        assert np.maximum(p - math.exp(epsilon) * q, 0).sum() == pytest.approx(expected, rel=1e-9)
        assert run.delta(epsilon=row["at"]["epsilon"]) < expected
    else:
        order = float(row["at"]["order"])
        with np.errstate(over="ignore", invalid="ignore"):
            moment = np.nansum(
                np.exp(order * np.log(np.maximum(p, 1e-300)) + (1 - order) * np.log(np.maximum(q, 1e-300)))
            )
        assert math.log(moment) / (order - 1) == pytest.approx(expected, rel=1e-9)
        assert run.rdp(order) < expected


def test_a_thousand_reports() -> None:
    p, q = cloned(1000, 1.0, math.exp(-1))
    assert np.maximum(p - math.exp(0.1) * q, 0).sum() == pytest.approx(3.5e-4, rel=0.02)
    assert (cm.PureDP(1) @ cm.Shuffle(reports=1000)).delta(epsilon="0.1") == pytest.approx(8.2e-5, rel=1e-3)


@pytest.mark.parametrize(
    ("n", "e0", "epsilon"), [(2, "1", "0.3"), (37, "1/2", "0"), (300, "2", "0.4"), (3000, "1", "0.05")]
)
def test_floats_and_balls_are_two_sums(n: int, e0: str, epsilon: str) -> None:
    """In balls a binomial and its tail for each size, in floats all atoms; and both of them the double sum."""
    pair = ShuffledPair(n, epsilon=Fraction(e0))
    with BALLS.at(128):
        exact = pair.profile(Fraction(epsilon), BALLS)
        assert exact.rel_accuracy_bits() > 60
    value = float(exact.mid())
    assert value * (1 - 1e-9) <= float(pair.profile([float(epsilon)])[0]) <= value * (1 + 1e-3)
    if n <= 300:
        p, q = cloned(n, float(Fraction(e0)), 2 / (1 + math.exp(float(Fraction(e0)))))
        assert np.maximum(p - math.exp(float(epsilon)) * q, 0).sum() == pytest.approx(value, rel=1e-10)


# ---- laws


def test_one_report_is_itself_and_more_are_better() -> None:
    base = cm.PureDP(1)
    assert base @ cm.Shuffle(reports=1) == base
    before = base.delta(epsilon="0.01")
    for reports in (2, 3, 10, 100, 1000, 10**5):
        after = (base @ cm.Shuffle(reports=reports)).delta(epsilon="0.01")
        assert after <= before * (1 + 1e-9)
        before = after
    assert before < 1e-2


def test_which_randomizers_are_better() -> None:
    pure, response, kary = (
        each @ cm.Shuffle(reports=40)
        for each in (cm.PureDP(epsilon=2), cm.KaryResponse(values=2, epsilon=2), cm.KaryResponse(values=5, epsilon=2))
    )
    for epsilon in ("0", "0.3", "1", "1.9"):
        assert pure.delta(epsilon=epsilon) == pytest.approx(response.delta(epsilon=epsilon), rel=1e-12)
        assert kary.delta(epsilon=epsilon) < pure.delta(epsilon=epsilon)
    assert pure.delta(epsilon=2) == 0
    assert pure.epsilon(0) == 2
    turned = cm.KaryResponse(values=3, p="1/10") @ cm.Shuffle(reports=10)  # the own value is the least likely
    odds = cm.PureDP(epsilon=math.log(4.5)) @ cm.Shuffle(reports=10)
    assert turned.delta(epsilon="0.5") < odds.delta(epsilon="0.5")


def test_rounds_are_composed() -> None:
    run = cm.RandomizedResponse(p="3/4") @ cm.Shuffle(reports=3)
    p, q = cloned(3, math.log(3), 0.5)
    both, other = np.multiply.outer(p, p).ravel(), np.multiply.outer(q, q).ravel()
    exact = float(np.maximum(both - math.exp(0.4) * other, 0).sum())
    assert exact * (1 - 1e-12) <= (run * 2).delta(epsilon="0.4") <= exact * (1 + 1e-3)
    assert (run * 2).rdp(3) == pytest.approx(2 * run.rdp(3))


def test_text_words_and_calibrate() -> None:
    run = cm.KaryResponse(values=4, epsilon=2) @ cm.Shuffle(reports=30) * 5
    assert cm.parse(str(run)) == run
    accountant = cm.Accountant()
    accountant.compose(run)
    assert cm.Accountant.from_json(accountant.to_json()) == accountant
    assert run.relation is cm.Relation.REPLACE_ONE
    assert "the same randomizer" in run.guarantee(delta=1e-3, method="rdp").explain()
    found = cm.calibrate("PureDP(1) @ Shuffle(reports=?)", epsilon="0.5", delta=1e-4, method="rdp")
    assert (cm.PureDP(1) @ cm.Shuffle(reports=found.value)).epsilon(1e-4, method="rdp") <= 0.5


@pytest.mark.parametrize(
    ("text", "message"),
    {
        "PureDP(1) @ Shuffle(reports=0)": "reports=0 must be an integer",
        "PureDP(1) @ Shuffle(reports=1.5)": "reports=1.5 must be an integer",
        "PureDP(1000) @ Shuffle(reports=5)": "protect nobody, shuffled or not",
        "ZeroConcentrated(2) @ Shuffle(reports=10)": r"@ ShuffledBatches\(batches=...\).*RandomAllocation\(steps=...\)",
        "(PureDP(1) * 2) @ Shuffle(reports=10)": "one local randomizer",
        "ZeroConcentrated(1) @ Shuffle(reports=10)": r"as PureDP\(epsilon=…\)",
        "PureDP(1) @ Poisson(0.1) @ Shuffle(reports=10)": "one local randomizer",
        "PureDP(1) @ Shuffle(reports=10) @ WithoutReplacement(0.1)": "all reports are shuffled together",
        "PureDP(1) @ Shuffle(reports=10) + Laplace(1) @ Poisson(0.1)": "a run has one relation",
        "Gaussian(1) @ Shuffled(batch=10)": r"there is no 'Shuffled'.*\* epochs.*RandomAllocation.*shuffled-batches.md",
        "Shuffled(1)": r"ShuffledBatches\(batches=...\)",
    }.items(),
)
def test_what_is_refused(text: str, message: str) -> None:
    with pytest.raises(cm.CumulantError, match=message):
        cm.parse(text)


# ---- reports from the definition


def randomizers(rng: np.random.Generator, e0: float, count: int, inputs: int, outputs: int) -> Any:
    """Random channels that are e0-DP and no better: a mixture with their mean, by bisection."""
    channel = rng.dirichlet(np.full(outputs, 0.4), (count, inputs)) + 1e-12
    channel /= channel.sum(axis=2, keepdims=True)
    mean = channel.mean(axis=1, keepdims=True)
    low, high = np.zeros((count, 1, 1)), np.ones((count, 1, 1))
    for _ in range(60):
        middle = (low + high) / 2
        mixed = (1 - middle) * mean + middle * channel
        fits = (mixed.max(axis=1) / mixed.min(axis=1)).max(axis=1)[:, None, None] <= math.exp(e0)
        low, high = np.where(fits, middle, low), np.where(fits, high, middle)
    return (1 - low) * mean + low * channel


def histograms(laws: Any) -> Any:
    """The law of how often each of three outputs is reported, users one after the other."""
    count, n, _ = laws.shape
    found = np.zeros((count, n + 1, n + 1))
    found[:, 0, 0] = 1.0
    for user in range(n):
        one = laws[:, user, :, None, None]
        after = found * one[:, 2]
        after[:, 1:] += found[:, :-1] * one[:, 0]
        after[:, :, 1:] += found[:, :, :-1] * one[:, 1]
        found = after
    return found.reshape(count, -1)


@pytest.mark.parametrize("e0", [0.5, 1.0, 2.5])
def test_enumerated_reports(e0: float) -> None:
    rng, share = np.random.default_rng(31), 0.0
    for n in (2, 3, 6):
        channel = randomizers(rng, e0, 80, 3, 3)
        if n == 2:
            channel[0] = np.array([[math.exp(e0), 1, 0], [1, math.exp(e0), 0], [1, math.exp(e0), 0]]) / (
                1 + math.exp(e0)
            )
        data = rng.integers(0, 3, (80, n))
        data[:, 0], data[0] = 0, [0] + [1] * (n - 1)
        changed = data.copy()
        changed[:, 0] = 1
        p, q = (histograms(np.take_along_axis(channel, each[:, :, None], axis=1)) for each in (data, changed))
        pair = ShuffledPair(n, epsilon=Fraction(e0))
        for epsilon in (0.0, 0.3 * e0, 0.8 * e0):
            claimed = float(pair.profile([epsilon])[0])
            for one, other in ((p, q), (q, p)):
                needed = np.maximum(one - math.exp(epsilon) * other, 0).sum(axis=1)
                assert (needed <= claimed * (1 + 1e-9) + 1e-15).all()
                share = max(share, float(needed.max()) / claimed)
        for order in (1.5, 4.0):
            with np.errstate(divide="ignore", invalid="ignore"):
                needed = np.log((p**order * q ** (1 - order)).sum(axis=1, where=p > 0)) / (order - 1)
            assert (needed <= float(pair.curve().rdp([order])[0]) * (1 + 1e-9)).all()
    assert share > 0.8  # so a bound that is too small by a quarter would be found


def test_what_the_blanket_tells_is_needed_by_nobody_less() -> None:
    """With the labels seen k-ary response needs the bound itself: n = 2, from the laws of two reports."""
    for values, e0 in ((2, 1.0), (3, 1.0), (5, 2.0)):
        e = math.exp(e0)
        on = values / (e + values - 1)  # whether the other report is uniform
        own = {0: np.full(values, 1.0), 1: np.full(values, 1.0)}
        own[0][0], own[1][1] = e, e
        laws = []
        for bit in (0, 1):
            mine = own[bit] / (e + values - 1)
            seen = np.zeros((values, values))
            for a in range(values):
                for b in range(values):
                    seen[min(a, b), max(a, b)] += mine[a] * on / values
            laws.append(np.append(seen.ravel(), mine * (1 - on)))
        for epsilon in (0.1, 0.5):
            exact = float(np.maximum(laws[0] - math.exp(epsilon) * laws[1], 0).sum())
            found = float(ShuffledPair(2, epsilon=Fraction(e0), values=values).profile([epsilon])[0])
            assert found == pytest.approx(exact, rel=1e-12)
            if values > 2:
                assert exact > float(ShuffledPair(3, epsilon=Fraction(e0), values=values).profile([epsilon])[0])


def test_different_randomizers_break_it() -> None:
    """Disjoint alphabets hide nothing, which is why equal randomizers are assumed and said."""
    alone = math.tanh(0.5)  # total variation of one report, which is told apart from all others
    assert alone == pytest.approx(0.462, abs=1e-3)
    assert (cm.PureDP(1) @ cm.Shuffle(reports=2)).delta(epsilon=0) == pytest.approx(0.338, abs=1e-3)


def test_shuffled_reports_have_no_members(capsys: pytest.CaptureFixture[str]) -> None:
    """Everybody reports: an attacker finds reports that were changed."""
    from cumulant.cli.app import answer

    run = "RandomizedResponse(p=0.75) @ Shuffle(reports=1000)"
    for more in ([], ["--explain"]):
        assert answer(["epsilon", run, "--delta", "1e-6", *more]) == 0
        said = " ".join(capsys.readouterr().out.split())  # wherever a line ends
        assert "changed reports" in said
        assert "members" not in said


def test_a_slack_is_not_lost_where_floats_cannot_hold_e_to_the_epsilon() -> None:
    """The slack of 3e-315 is added (1 + e^epsilon) times, which is far above delta at epsilon 310,736."""
    noise = cm.Skellam(variance="811.6")
    many = noise @ cm.Shuffle(reports=3) * 660_000_000
    found = many.guarantee(delta="0.2")
    assert found.epsilon == (noise * 660_000_000).epsilon("0.2")
    assert found.verify()


@pytest.mark.parametrize(("slack", "epsilon"), [(3e-315, 1e5), (1e-300, 701.0), (1e-310, 690.0), (1e-9, 3.0)])
def test_what_a_slack_adds_is_rounded_up(slack: float, epsilon: float) -> None:
    grown = shuffled_passes._grown_slack(slack, epsilon)
    assert Decimal(grown) >= Decimal(slack) * (1 + Decimal(epsilon).exp())
    assert shuffled_passes._grown_slack(0.0, epsilon) == 0
