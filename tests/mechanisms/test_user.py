"""Users with several records on samples: reference values, enumeration from the definition, refusals."""

import json
import math
from itertools import combinations, product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import cumulant as cm

ROWS = json.loads((Path(__file__).parents[1] / "oracles" / "matrix.json").read_text())["users"]
ADD = cm.Relation.ADD_REMOVE


def step_of(row: dict[str, Any]) -> cm.Expression:
    noise = row["noise_multiplier"]
    if row["sampling"] == "poisson":
        return cm.Gaussian(noise_multiplier=noise, clip=1, relation=ADD) @ cm.Poisson(rate=row["rate"])
    scheme = cm.WithoutReplacement(sample=row["sample"], population=row["population"], relation="add-remove")
    return cm.Gaussian(noise_multiplier=noise, clip=1, relation=cm.Relation.REPLACE_ONE) @ scheme


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row['sampling']} {row['records_per_user']}")
def test_reference_intervals(row: dict[str, Any]) -> None:
    run = step_of(row) * row["steps"] @ cm.User(records=row["records_per_user"])
    found = run.guarantee(delta=row["delta"])
    low, high = row["interval"]
    assert low * (1 - 1e-6) <= found.epsilon <= high * (1 + 1e-6)
    assert found.lower is not None
    assert low * (1 - 1e-3) <= found.lower <= found.epsilon
    assert cm.parse(str(run)) == run


@pytest.mark.parametrize("row", [row for row in ROWS if "replace_one_profile_one_step" in row])
def test_replaced_records_of_one_step(row: dict[str, Any]) -> None:
    known = row["replace_one_profile_one_step"]
    sample = cm.WithoutReplacement(sample=row["sample"], population=row["population"])
    run = cm.Gaussian(noise_multiplier=row["noise_multiplier"], relation=cm.Relation.REPLACE_ONE) @ sample
    found = (run @ cm.Group(size=row["records_per_user"])).delta(known["epsilon"], method="exact")
    assert found == pytest.approx(float(known["delta_bound"]), rel=1e-9)


def test_replaced_records_of_a_run() -> None:
    """10.49 where doubling says 9,832."""
    step = cm.Gaussian(noise_multiplier=2, relation=cm.Relation.REPLACE_ONE)
    run = step @ cm.WithoutReplacement(sample=256, population=60_000) * 1000 @ cm.Group(size=5)
    assert run.epsilon(1e-6, method="exact") == pytest.approx(10.49, abs=0.005)
    assert run.epsilon(1e-6) < 10.49


# ---- enumeration from the definition


def hockey_stick(first: list[tuple[float, float]], second: list[tuple[float, float]], epsilon: float) -> float:
    """Of two mixtures of N(x, 1) on a line, by a fine grid."""
    y = np.linspace(-14, 20, 60001)
    p, q = (sum(w * np.exp(-((y - x) ** 2) / 2) for w, x in law) / math.sqrt(2 * math.pi) for law in (first, second))
    return float(np.maximum(p - math.exp(epsilon) * q, 0).sum() * (y[1] - y[0]))


@pytest.mark.parametrize("signs", [(1, 1, 1), (1, -1, 1), (1, 1, 0), (0.5, 1, -1)])
@pytest.mark.parametrize("rate", ["0.1", "0.5"])
def test_poisson_samples_of_three_records(signs: tuple[float, float, float], rate: str) -> None:
    """All subsets of the user's records, each with a value in [-1, 1], against nobody; both directions."""
    g = float(rate)
    law = [
        (
            math.prod(g if there else 1 - g for there in chosen),
            sum(s for s, there in zip(signs, chosen, strict=True) if there),
        )
        for chosen in product((False, True), repeat=3)
    ]
    run = cm.Gaussian(sigma=1, relation=ADD) @ cm.Poisson(rate=rate) @ cm.User(records=3)
    for epsilon in (0.0, 0.3, 1.0):
        truth = max(hockey_stick(law, [(1.0, 0.0)], epsilon), hockey_stick([(1.0, 0.0)], law, epsilon))
        found = run.delta(str(epsilon))
        assert truth <= found * (1 + 1e-6)
        if min(signs) == 1:
            assert found == pytest.approx(truth, rel=1e-6)  # attained


@pytest.mark.parametrize("user", [(1, 1), (1, -1), (1, 0)])
@pytest.mark.parametrize("others", [(-1, -1, -1), (1, -1, 0), (0, 0, 0)])
def test_fixed_size_samples_with_and_without_a_user(
    user: tuple[float, float], others: tuple[float, float, float]
) -> None:
    """Two of five records against two of the three others: every sample is enumerated."""

    def law(values: tuple[float, ...]) -> list[tuple[float, float]]:
        chosen = list(combinations(values, 2))
        return [(1 / len(chosen), float(sum(each))) for each in chosen]

    scheme = cm.WithoutReplacement(sample=2, population=5, relation="add-remove")
    run = cm.Gaussian(noise_multiplier=1, relation=cm.Relation.REPLACE_ONE) @ scheme @ cm.User(records=2)
    for epsilon in (0.0, 0.5, 1.5):
        first, second = law(user + others), law(others)
        truth = max(hockey_stick(first, second, epsilon), hockey_stick(second, first, epsilon))
        found = run.delta(str(epsilon))
        assert truth <= found * (1 + 1e-6)
        if min(user) == 1 and max(others) == -1:
            assert found == pytest.approx(truth, rel=1e-6)  # attained: every record displaces its opposite


@pytest.mark.parametrize("others", [(-1, -1, -1), (1, -1, 0), (0, 0, 0)])
def test_fixed_size_samples_with_two_records_replaced(others: tuple[float, ...]) -> None:
    def law(values: tuple[float, ...]) -> list[tuple[float, float]]:
        chosen = list(combinations(values, 2))
        return [(1 / len(chosen), float(sum(each))) for each in chosen]

    run = cm.Gaussian(noise_multiplier=1, relation=cm.Relation.REPLACE_ONE) @ cm.WithoutReplacement(
        sample=2, population=5
    )
    for epsilon in (0.0, 0.5, 1.5):
        truth = hockey_stick(law((1, 1, *others)), law((-1, -1, *others)), epsilon)
        assert truth <= (run @ cm.Group(size=2)).delta(str(epsilon), method="exact") * (1 + 1e-6)


@pytest.mark.parametrize("counts", [(2, 0), (1, 1), (0, 2)])
def test_a_group_on_poisson_samples_may_mix_additions_and_removals(counts: tuple[int, int]) -> None:
    g, (gone, new) = 0.3, counts
    laws = [
        [(math.comb(k, i) * g**i * (1 - g) ** (k - i), sign * float(i)) for i in range(k + 1)]
        for k, sign in ((gone, 1), (new, -1))
    ]
    run = cm.Gaussian(sigma=1, relation=ADD) @ cm.Poisson(rate="0.3") @ cm.Group(size=2)
    for epsilon in (0.0, 0.5, 1.0):
        assert hockey_stick(laws[0], laws[1], epsilon) <= run.delta(str(epsilon), method="exact") * (1 + 1e-6)


def test_laplace_noise_announces_the_number_of_records() -> None:
    """One record is a Poisson sample, fewer records are below, and the mixture on the line is covered."""
    step = cm.Laplace(scale=2) @ cm.Poisson(rate="0.2")
    run = step @ cm.User(records=2)
    y = np.linspace(-40, 44, 400001)
    q = np.exp(-np.abs(y) / 2) / 4
    p = sum(w * np.exp(-np.abs(y - x) / 2) / 4 for w, x in ((0.64, 0), (0.32, 1), (0.04, 2)))
    for epsilon in (0.05, 0.2):
        for first, second in ((p, q), (q, p)):
            truth = float(np.maximum(first - math.exp(epsilon) * second, 0).sum() * (y[1] - y[0]))
            assert truth <= run.delta(str(epsilon)) * (1 + 1e-6)
    assert run.guarantee(epsilon="0.1").lower is None
    assert step @ cm.User(records=1) == step


def test_fewer_records_are_more_private_and_groups_are_stronger() -> None:
    step = cm.Gaussian(sigma=2, relation=ADD) @ cm.Poisson(rate="0.05") * 20
    found = [(step @ cm.User(records=k)).epsilon("1e-5") for k in (1, 2, 4)]
    assert found == sorted(found)
    assert (step @ cm.Group(size=4)).epsilon("1e-5") >= found[-1]
    assert (step @ cm.Group(size=4)) != (step @ cm.User(records=4))
    assert cm.Gaussian(sigma=2) @ cm.User(records=3) == cm.Gaussian(sigma=2) @ cm.Group(size=3)


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: cm.User(records=0), "records"),
        (lambda: cm.User(records=1.5), "records"),
        (lambda: cm.User(records=10**6), "bound the records"),
        (lambda: _wor() @ cm.User(records=2), r"joins or leaves.*Group\(size=2\)"),
        (lambda: cm.Gaussian(sigma=1) @ cm.RandomAllocation(steps=5) @ cm.User(records=2), r"Group\(size=2\)"),
        (lambda: cm.Gaussian(sigma=1) @ cm.Poisson(rate="0.1") @ cm.User(records=2) @ cm.User(records=2), "once"),
        (lambda: cm.Gaussian(sigma=1) @ cm.Poisson(rate="0.1") @ cm.User(records=2) @ cm.Group(size=2), "one user"),
        (
            lambda: cm.Gaussian(sigma=1) @ cm.Poisson(rate="0.1") @ cm.User(records=2) @ cm.Poisson(rate="0.1"),
            "User last",
        ),
        (lambda: (cm.Gaussian(sigma=1) * 2) @ cm.Poisson(rate="0.1") @ cm.User(records=2), "one mechanism"),
        (lambda: _wor(rate="0.1", relation="add-remove") @ cm.User(records=2), "population"),
        (lambda: _wor(sample=9, population=10, relation="add-remove") @ cm.User(records=2), "enough other records"),
    ],
)
def test_what_is_not_proved_is_refused(make: Any, said: str) -> None:
    with pytest.raises(cm.CumulantError, match=said):
        make()


def _wor(**given: Any) -> cm.Expression:
    scheme = cm.WithoutReplacement(**(given or {"sample": 3, "population": 9}))
    return cm.Gaussian(noise_multiplier=1, relation=cm.Relation.REPLACE_ONE) @ scheme


def test_promises_of_gaussian_privacy_are_no_noise_on_a_sum() -> None:
    """Each number of records may be post-processed in its own way, so that only the announced number bounds it."""
    promise = cm.GaussianDP(mu=1) @ cm.Poisson(rate="0.3") @ cm.User(records=2)
    noise = cm.Gaussian(sigma=1) @ cm.Poisson(rate="0.3") @ cm.User(records=2)
    assert promise.delta("0.5") > noise.delta("0.5")


def test_the_statement_names_the_user() -> None:
    """A user joins or leaves as a whole; of additions mixed with removals nothing is proved."""
    step = cm.Gaussian(sigma=1, relation=ADD) @ cm.Poisson(rate="0.5")
    said = (step @ cm.User(records=2)).guarantee(delta="1e-5").explain()
    assert "one has one user more, with at most 2 records" in said
    assert "adding or removing at most" not in said
    both = step @ cm.Group(size=2) + step @ cm.User(records=2)
    assert "one has one user more, with at most 2 records" in both.guarantee(delta="1e-5", method="rdp").explain()


@pytest.mark.parametrize(("rate", "records"), [("1e-20", 20), ("1e-9", 40)])
def test_many_records_of_one_user_have_a_weight_that_no_float_holds(rate: str, records: int) -> None:
    """All records of the user are in a sample with probability rate^records, here 1e-400 and 1e-360."""
    run = cm.Gaussian(sigma=40, relation="add-remove") @ cm.Poisson(rate=rate) @ cm.User(records=records)
    by_divergences = run.epsilon("1e-5", method="rdp")
    assert 0 <= run.epsilon("1e-5") <= by_divergences < math.inf
    assert run.delta("1e-3") <= min(1.0, records * float(rate))  # the user is in no sample otherwise
    accountant = cm.Accountant(limit=(1, "1e-5"))
    accountant.compose(run)
    assert accountant.terms == run.terms


@pytest.mark.parametrize(
    ("rate", "records", "sigma", "order", "truth"),
    [
        ("0.01", 200, 40, 2, 0.0025038665897946506),
        ("0.01", 200, 40, 10, 0.01264525938525939),
        ("0.001", 160, 5, "1.5", 0.0007860666686259428),
        ("0.99", 160, 40, 2, 15.696648799913632),
    ],
)
def test_divergences_of_many_records_are_those_of_their_mixture(
    rate: str, records: int, sigma: int, order: str, truth: float
) -> None:
    """From integrals with 30 digits; where a weight was no float, the divergence was that of all records in every sample."""
    run = cm.Gaussian(sigma=sigma, relation="add-remove") @ cm.Poisson(rate=rate) @ cm.User(records=records)
    assert truth <= run.rdp(float(order)) <= truth * (1 + 1e-10)
    assert run.rdp(1) <= run.rdp(float(order))
