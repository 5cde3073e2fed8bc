"""Federated averaging in its own words: expressions, shares of noise, refusals."""

from typing import Any

import numpy as np
import pytest

import cumulant as cm
from cumulant.training import Budget, FedAvg, NoisySGD


def test_the_two_ways_to_sample_clients() -> None:
    poisson = FedAvg(clients=60_000, clients_per_round=256, rounds=1000, noise_multiplier=2)
    step = cm.Gaussian(noise_multiplier=2, relation=cm.Relation.ADD_REMOVE)
    assert poisson.run == step @ cm.Poisson(rate="256/60000") * 1000
    fixed = FedAvg(60_000, 256, 4687, 2, sampling="fixed-size")
    assert 1.568 <= fixed.epsilon("1e-5") <= 1.617
    assert (str(poisson.relation), str(fixed.relation)) == ("add-remove", "replace-one")


def test_shares_of_noise_count_the_survivors() -> None:
    """Sixty shares of deviation 0.2 have the variance of one of deviation sqrt(2.4)."""
    shares = FedAvg(10_000, 100, 50, "0.2", sampling="fixed-size", survivors=60)
    one = cm.Gaussian(
        sigma=1, squared_sensitivity=cm.domains.Exact(4) / cm.domains.Exact("2.4"), relation=cm.Relation.REPLACE_ONE
    )
    assert shares.epsilon("1e-5") == pytest.approx(
        (one @ cm.WithoutReplacement(sample=100, population=10_000) * 50).epsilon("1e-5"), rel=1e-9
    )
    fewer = FedAvg(10_000, 100, 50, "0.2", sampling="fixed-size", survivors=30)
    assert fewer.epsilon("1e-5") > shares.epsilon("1e-5")


def test_integer_shares_are_skellam() -> None:
    fed = FedAvg(10_000, 100, 10, "0.5", sampling="fixed-size", noise="skellam", grid="1/100", survivors=50)
    assert fed.noisy_sum == cm.Skellam(variance=50 * 50 * 50, sensitivity=200, relation=cm.Relation.REPLACE_ONE)
    central = FedAvg(10_000, 100, 10, 2, noise="discrete-gaussian", grid="1/100")
    assert central.noisy_sum == cm.DiscreteGaussian(sigma=200, sensitivity=100, relation=cm.Relation.ADD_REMOVE)


def test_assumptions_are_those_of_the_noise() -> None:
    """Rounding may lengthen a clipped update, and shares that depend on data change the deviation of the noise."""
    plain = FedAvg(10_000, 100, 10, 2).assumes
    assert "grid" not in plain
    assert "share" not in plain
    shares = FedAvg(10_000, 100, 10, "0.5", sampling="fixed-size", noise="skellam", grid="1/100", survivors=50).assumes
    assert "rounded to the grid before it is clipped" in shares
    assert "at least 50 honest clients add their share in each round; who takes part or drops out does not" in shares


@pytest.mark.parametrize("noise", ["discrete-gaussian", "skellam"])
@pytest.mark.parametrize("sampling", ["fixed-size", "poisson"])
def test_updates_that_never_reach_the_clip_refute_nothing(noise: str, sampling: str) -> None:
    """At 3/2 units an integer is -1, 0 or 1, so one client moves the sum by 2 or 1 and not by 3 or 1.5."""
    plan: dict[str, Any] = {"rounds": 1, "noise_multiplier": 1, "noise": noise, "sampling": sampling, "grid": "2/3"}
    line = FedAvg(10, 10, **plan, dimension=1)
    assert line.noisy_sum.sensitivity == (2 if sampling == "fixed-size" else 1)  # type: ignore[attr-defined]
    found = line.guarantee(delta="1e-3")
    if (noise, sampling) == ("discrete-gaussian", "fixed-size"):
        assert [found.lower, found.epsilon] == pytest.approx([4.404379249858] * 2, rel=1e-12)
    for dimension in (None, 2):
        fed = FedAvg(10, 10, **plan, dimension=dimension)
        assert fed.guarantee(delta="1e-3").lower is None
        assert fed.check(epsilon="0.1", delta="1e-3").verdict == "open"
        assert fed.check(epsilon=50, delta="1e-3").verdict == "holds"
    whole = FedAvg(10, 10, **plan | {"grid": "1/2", "noise": "discrete-gaussian"})
    assert whole.check(epsilon="0.1", delta="1e-3").verdict == "false"


def test_calibration_meets_its_target() -> None:
    fed = FedAvg(clients=5000, clients_per_round=50, rounds=100, noise_multiplier=1).calibrated(
        epsilon=2, delta="1e-5", digits=3
    )
    assert fed.epsilon("1e-5") <= 2


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"clients_per_round": 200}, "at most clients"),
        ({"sampling": "shuffled"}, "sampling"),
        ({"noise": "laplace"}, "noise"),
        ({"survivors": 5}, "fixed-size"),
        ({"survivors": 50, "sampling": "fixed-size"}, "survivors=50"),
        ({"noise": "skellam"}, "grid"),
        ({"grid": "1/100"}, "grid"),
        ({"noise": "skellam", "grid": 10}, "at most clip=1"),
        ({"noise": "skellam", "grid": "1/10", "clip": "1/20"}, "at most clip"),
        ({"noise": "skellam", "grid": -1}, "grid"),
        ({"survivors": 5, "sampling": "fixed-size", "noise": "discrete-gaussian", "grid": "1/10"}, "skellam"),
        ({"noise_multiplier": 0}, "noise_multiplier"),
    ],
)
def test_what_is_not_covered_is_refused(given: dict[str, Any], said: str) -> None:
    plan = {"clients": 100, "clients_per_round": 10, "rounds": 5, "noise_multiplier": 1, **given}
    with pytest.raises(cm.InputError, match=said):
        FedAvg(**plan)


# ---- users in NoisySGD


def test_users_of_several_records() -> None:
    plan = NoisySGD(
        batch=600, records=60_000, steps=1000, noise_multiplier=2, sampling="poisson", unit="user", records_per_user=5
    )
    assert 4.2002 <= plan.epsilon("1e-6") <= 4.2010
    fixed = NoisySGD(batch=256, records=60_000, steps=1000, noise_multiplier=2, unit="user", records_per_user=5)
    assert str(fixed.relation) == "add-remove"
    assert 4.9843 <= fixed.epsilon("1e-6") <= 4.9860
    alone = NoisySGD(batch=256, records=60_000, steps=1000, noise_multiplier=2, unit="user")
    assert alone.run == NoisySGD(batch=256, records=60_000, steps=1000, noise_multiplier=2).run
    bins = NoisySGD(
        batch=10, records=100, epochs=2, noise_multiplier=9, sampling="balls-in-bins", unit="user", records_per_user=2
    )
    assert "Group(size=2)" in str(bins.run)


def test_units_are_checked() -> None:
    with pytest.raises(cm.InputError, match="unit"):
        NoisySGD(batch=2, records=10, steps=1, noise_multiplier=1, unit="house")
    with pytest.raises(cm.InputError, match='unit="user"'):
        NoisySGD(batch=2, records=10, steps=1, noise_multiplier=1, records_per_user=2)


def test_correlated_noise_has_rows_of_its_own() -> None:
    plan = {"batch": 60, "records": 6000, "epochs": 10, "noise_multiplier": 4, "noise_bands": [1, "0.5"]}
    meant = {
        "balls-in-bins, one draw": cm.BallsInBins(100),
        "cyclic-poisson": cm.CyclicPoisson(2, "0.02"),
        "fixed-order": cm.FixedOrder(every=100),
        "min-sep": cm.MinSep(2, most=10),
    }
    for sampling, scheme in meant.items():
        relation = cm.Relation.ADD_REMOVE if scheme.secret else cm.Relation.REPLACE_SPECIAL
        matrix = cm.MatrixMechanism(bands=[1, "0.5"], steps=1000, sigma=4, relation=relation)
        found = NoisySGD(**plan, sampling=sampling)  # type: ignore[arg-type]
        assert found.run == matrix @ scheme
        assert found.relation is relation  # without a record of a fixed order all later batches would change
    half = NoisySGD(**plan, sampling="fixed-order").after(500)  # type: ignore[arg-type]
    special = cm.Relation.REPLACE_SPECIAL
    short = cm.MatrixMechanism(bands=[1, "0.5"], steps=500, sigma=4, relation=special)
    assert half == short @ cm.FixedOrder(every=100)
    with pytest.raises(cm.InputError, match="correlated noise"):
        NoisySGD(**plan, sampling="poisson")  # type: ignore[arg-type]
    with pytest.raises(cm.InputError, match="fewer bands"):
        _ = NoisySGD(**{**plan, "batch": 4000}, sampling="cyclic-poisson").run  # type: ignore[arg-type]


@pytest.mark.parametrize("bands", [[1, 0, 0, 0, 1], [1, 0, 0, 1], [1, "1/2", "1/4"]])
def test_epochs_with_a_short_last_batch_have_one_of_two_lengths(bands: list[int | str]) -> None:
    """Thirteen records in batches of four: an epoch has four steps, or three if the short batch is dropped.

    Columns four apart share noise in the first matrix, and those three apart do not: 9 where steps three apart need 7.
    """
    plan = NoisySGD(batch=4, records=13, steps=12, noise_multiplier=4, noise_bands=bands, sampling="fixed-order")
    column = [float(each) if isinstance(each, int) else float(cm.domains.Exact(each)) for each in bands] + [0.0] * 12
    dense = np.array([[column[i - t] if i >= t else 0.0 for t in range(12)] for i in range(12)])
    products = np.abs(dense.T @ dense)
    needed = max(products[j::gap, j::gap].sum() for gap in (3, 4) for j in range(gap))
    assert float(plan.run.squared_sensitivity) >= needed  # type: ignore[attr-defined]


@pytest.mark.parametrize("sampling", ["fixed-order", "min-sep"])
def test_epochs_with_a_short_last_batch_refute_nothing(sampling: str) -> None:
    """Two epochs of three or four steps, bands (1, 0, 0, 1): no loop has more than 5, and 6 was called needed.

    Steps three apart share noise where the short batch is dropped; then the run has six steps, which cut the second column.
    """
    plan = NoisySGD(batch=4, records=13, epochs=2, noise_multiplier=4, noise_bands=[1, 0, 0, 1], sampling=sampling)
    square = 5 if sampling == "fixed-order" else 3  # a claim that was called false, and one that nobody refutes now
    enough = cm.Gaussian(sigma=4, squared_sensitivity=square).epsilon("1e-5")
    assert plan.check(epsilon=cm.domains.Exact(repr(enough)), delta="1e-5").verdict == "open"
    assert plan.check(epsilon=9, delta="1e-5").verdict == "holds"
    assert plan.guarantee(delta="1e-5").lower is None
    whole = NoisySGD(batch=4, records=12, epochs=2, noise_multiplier=4, noise_bands=[1, 0, 0, 1], sampling=sampling)
    assert whole.check(epsilon=1, delta="1e-5").verdict == "false"


def test_the_first_steps_of_one_draw_need_no_more_than_its_epoch() -> None:
    """One step was accounted as if all records were in it, so that no step fitted into a budget that fits two epochs."""
    plan = NoisySGD(
        batch=25, records=105, epochs=2, noise_multiplier=3, noise_bands=[1, "1/2"], sampling="balls-in-bins, one draw"
    )
    assert plan.after(1) == plan.after(4)
    assert plan.spent(3, delta="1e-5")["epsilon_lower"] is None
    assert Budget("1.54", "1e-5").allow(plan, 8) == 8  # the whole run needs 1.536, and its first epoch 1.02
