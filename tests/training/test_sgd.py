"""DP-SGD in words against runs that are written out, and against published numbers."""

import itertools
import math
from dataclasses import replace
from typing import Any

import pytest
from scipy.stats import norm

import cumulant as cm
from cumulant.domains import Exact
from cumulant.numerics.search import largest_integer
from cumulant.training.sgd import CORRELATED, SAMPLINGS

MNIST: dict[str, Any] = {"batch": 256, "records": 60_000, "epochs": 30, "noise_multiplier": "1.1"}


@pytest.mark.parametrize(
    ("sampling", "expected"),
    [
        (
            "fixed-size",
            'Gaussian(sigma=1.1, sensitivity=2, geometry="ball") @ WithoutReplacement(sample=256, population=60000) * 7032',
        ),
        ("poisson", 'Gaussian(sigma=1.1) @ Poisson(rate="256/60000") * 7032'),
        ("balls-in-bins", "Gaussian(sigma=1.1) @ RandomAllocation(steps=234) * 30"),
        ("shuffled", 'Gaussian(sigma=1.1, sensitivity=2, geometry="ball") @ ShuffledBatches() * 30'),
    ],
)
def test_what_is_accounted(sampling: str, expected: str) -> None:
    sgd = cm.NoisySGD(**MNIST, sampling=sampling)
    written = cm.parse(expected)
    assert sgd.epsilon(1e-5, method="rdp") == written.epsilon(1e-5, method="rdp")
    assert sgd.relation == sgd.run.relation
    assert sgd.relation == {"fixed-size": "replace-one", "shuffled": "replace-one"}.get(sampling, "add-remove")
    assert sampling in str(sgd)
    assert str(sgd.relation) in str(sgd)


def test_the_factor_two_is_in_the_run() -> None:
    """With noise multiplier z the noisy sum has rdp(a) = 2 a / z^2 under replace-one, a / (2 z^2) under add/remove."""
    assert replace(cm.NoisySGD(**MNIST)).noisy_sum.rdp(2) == pytest.approx(4 / 1.1**2)
    assert cm.NoisySGD(**MNIST, sampling="poisson").noisy_sum.rdp(2) == pytest.approx(1 / 1.1**2)


def test_numbers_of_the_digits() -> None:
    fixed = cm.NoisySGD(batch=64, records=1797, steps=84, noise_multiplier=4).guarantee(delta=1e-5)
    assert fixed.lower is not None
    assert 0.695 < fixed.lower <= fixed.epsilon < 0.7212
    poisson = cm.NoisySGD(batch=64, records=1856, steps=58, noise_multiplier=2, sampling="poisson")  # rate 1/29
    assert poisson.epsilon(1e-5, method="rdp") == pytest.approx(0.6344, abs=1e-4)
    assert poisson.epsilon(1e-5) == pytest.approx(0.5616, abs=2e-4)
    shuffled = cm.NoisySGD(batch=64, records=1797, epochs=2, noise_multiplier=2, sampling="shuffled")
    assert shuffled.epsilon(1e-5, method="rdp") == pytest.approx(7.08, abs=0.01)
    mu = math.sqrt(2)  # two Gaussians of sensitivity 2 and noise 2: one of shift sqrt 2
    found = shuffled.epsilon(1e-5)
    assert norm.cdf(mu / 2 - found / mu) - math.exp(found) * norm.cdf(-mu / 2 - found / mu) == pytest.approx(
        1e-5, rel=1e-6
    )


def test_steps_and_passes_are_rounded_up() -> None:
    assert cm.NoisySGD(batch=64, records=1797, epochs=2, noise_multiplier=1).total_steps == math.ceil(2 * 1797 / 64)
    assert cm.NoisySGD(batch=64, records=1797, epochs="0.1", noise_multiplier=1).total_steps == 3
    shuffled = cm.NoisySGD(batch=64, records=1797, steps=29, noise_multiplier=1, sampling="shuffled")
    assert shuffled.passes(28) == 1
    assert shuffled.passes(29) == 2  # a pass that drops its last batch has 28 steps
    assert replace(shuffled, steps=None, epochs="1.5").passes(43) == 2


@pytest.mark.parametrize("sampling", ["balls-in-bins", "shuffled", "any-order"])
def test_what_is_accounted_covers_every_pass_that_may_be_begun(sampling: str) -> None:
    """All tiny plans: batch 100 of 199 records, 10 epochs had 18, 19, 10 and 21 passes in 18 to 21 steps."""
    for records, batch in itertools.combinations_with_replacement(range(9, 0, -1), 2):
        for epochs in ("0.5", "1", "1.5", "2", "3"):
            plan = cm.NoisySGD(batch=batch, records=records, epochs=epochs, noise_multiplier=1, sampling=sampling)
            dropped, kept = records // batch, math.ceil(records / batch)
            counts = [plan.passes(steps) for steps in range(4 * kept + 1)]
            assert counts == sorted(counts)
            for steps, passes in enumerate(counts):
                for length in (dropped, kept):
                    assert passes >= len({step // length for step in range(steps)})
            assert plan.passes(plan.total_steps) == plan.planned_passes == math.ceil(float(epochs))
            assert plan.run == plan.after(1) * plan.planned_passes


@pytest.mark.parametrize("sampling", ["fixed-order", "min-sep"])
@pytest.mark.parametrize("bands", [[1], [1, 1], [1, "0.5", "0.25"], [1, 1, 1, 1, 1, 1]])
def test_correlated_noise_covers_epochs_that_keep_or_drop_a_short_batch(sampling: str, bands: list[Any]) -> None:
    """The largest move of all steps that a loader makes, over every place of a record, is at most the accounted one."""
    for records, batch, epochs in ((5, 2, 2), (7, 3, 3), (5, 4, 3), (4, 2, 2)):
        plan = cm.NoisySGD(
            batch=batch, records=records, epochs=epochs, noise_multiplier=1, noise_bands=bands, sampling=sampling
        )
        accounted = plan.epsilon("1e-5")
        for length in {records // batch, math.ceil(records / batch)}:
            if sampling == "min-sep" and length < len(bands):
                continue  # a record would come again within the bands
            steps = epochs * length
            loop = cm.MatrixMechanism(bands=bands, steps=steps, sigma=1, relation="replace-special")
            assert (loop @ cm.FixedOrder(every=length)).epsilon("1e-5") <= accounted * (1 + 1e-9)


def test_one_draw_has_whole_passes_of_full_batches_and_cyclic_samples_have_an_average() -> None:
    plan: dict[str, Any] = {
        "batch": 64,
        "records": 1797,
        "epochs": 2,
        "noise_multiplier": 4,
        "noise_bands": [1, "0.5"],
    }
    totals = {name: cm.NoisySGD(**plan, sampling=name).total_steps for name in CORRELATED}
    assert totals == {"balls-in-bins, one draw": 56, "cyclic-poisson": 57, "fixed-order": 56, "min-sep": 56}
    assert "steps=58" in str(cm.NoisySGD(**plan, sampling="min-sep").run)  # 29 steps if a short last batch is kept
    assert cm.NoisySGD(**plan, sampling="min-sep").planned_passes == 2


def test_what_each_epoch_has_spent() -> None:
    sgd = cm.NoisySGD(batch=64, records=1797, epochs=3, noise_multiplier=4)
    rows = sgd.per_epoch(1e-5)
    assert [row["step"] for row in rows] == [29, 57, 85]
    assert all(list(row) == ["epoch", "step", "epsilon", "epsilon_lower", "delta", "relation"] for row in rows)
    alone = [sgd.after(k).epsilon(1e-5) for k in (29, 57, 85)]
    assert [row["epsilon"] for row in rows] == pytest.approx(alone, rel=1e-6)
    assert rows[-1]["epsilon"] == sgd.epsilon(1e-5)
    divergences = sgd.per_epoch(1e-5, method="rdp")
    assert divergences[-1]["epsilon"] == sgd.epsilon(1e-5, method="rdp") > rows[-1]["epsilon"]
    assert rows[0]["relation"] == "replace-one"


@pytest.mark.parametrize("sampling", ["shuffled", "balls-in-bins"])
def test_a_pass_that_was_broken_off_has_no_lower_end(sampling: str) -> None:
    """One of ten steps had the lower end of a whole pass, 2.19, where 1.69 is enough."""
    sgd = cm.NoisySGD(batch=10, records=100, epochs=2, noise_multiplier=1, sampling=sampling)
    spent = {steps: sgd.spent(steps, delta="1e-5", method="best") for steps in (1, 3, 10, 13, 20)}
    assert [steps for steps, row in spent.items() if row["epsilon_lower"] is None] == [1, 3, 13]
    every = cm.NoisySGD(batch=10, records=100, epochs=2, noise_multiplier=1, sampling="poisson")
    assert every.spent(3, delta="1e-5", method="best")["epsilon_lower"] is not None


@pytest.mark.parametrize("sampling", ["shuffled", "any-order", "balls-in-bins"])
def test_epoch_k_of_a_plan_is_the_plan_of_k_epochs(sampling: str) -> None:
    """Epoch 1 was counted as two passes where a loader may drop its last batch, and the last two epochs were equal."""
    sgd = cm.NoisySGD(batch=512, records=45000, epochs=4, noise_multiplier="0.9", sampling=sampling)
    rows = sgd.per_epoch("1e-5")
    assert [row["epoch"] for row in rows] == [1, 2, 3, 4]
    alone = [replace(sgd, epochs=k).epsilon("1e-5") for k in (1, 2, 3, 4)]
    assert [row["epsilon"] for row in rows] == pytest.approx(alone, rel=1e-6)
    by_steps = replace(sgd, epochs=None, steps=88).per_epoch("1e-5")
    assert by_steps[-1]["epsilon"] >= alone[1] * (1 - 1e-6)  # 88 steps may have started a second pass


@pytest.mark.parametrize("sampling", list(SAMPLINGS))
def test_the_last_epoch_has_the_epsilon_of_the_run(sampling: str) -> None:
    sgd = cm.NoisySGD(batch=64, records=640, epochs="2.5", noise_multiplier=2, sampling=sampling)
    rows = sgd.per_epoch("1e-5")
    assert rows[-1]["epsilon"] == sgd.epsilon("1e-5") == sgd.guarantee(delta="1e-5").epsilon
    assert [row["epsilon"] for row in rows] == sorted(row["epsilon"] for row in rows)


def test_a_loop_of_whole_passes_has_both_ends_and_a_broken_one_only_the_upper() -> None:
    for sampling in ("shuffled", "balls-in-bins"):
        sgd = cm.NoisySGD(batch=64, records=1797, epochs=1, noise_multiplier=4, sampling=sampling)
        found = sgd.guarantee(delta=1e-5)
        assert found.lower is not None
        assert 0 < found.lower <= found.epsilon
        assert sgd.per_epoch(1e-5, method="best")[0]["epsilon_lower"] is None
        assert replace(sgd, epochs=None, steps=10).guarantee(delta=1e-5).lower is None
    assert cm.NoisySGD(64, 1797, 4, 1, sampling="shuffled").epsilon(1e-5) < 1.73
    assert cm.NoisySGD(64, 1797, 4, 1, sampling="shuffled").unamplified().epsilon(1e-5) > 1.99


def test_balls_in_bins_state_the_steps_that_their_lower_end_is_for() -> None:
    """The statement said "at least" so many steps; with one more the lower end does not hold."""
    plan = cm.NoisySGD(batch=64, records=1797, epochs=1, noise_multiplier="0.8", sampling="balls-in-bins")
    lower = plan.guarantee(delta=1e-5).lower
    longer = plan.noisy_sum @ cm.RandomAllocation(steps=29)
    assert lower is not None
    assert lower > longer.epsilon(1e-5)
    assert plan.run == plan.noisy_sum @ cm.RandomAllocation(steps=28)
    assert "an epoch has records // batch steps" in plan.loop.assumes


@pytest.mark.parametrize("sampling", ["shuffled", "balls-in-bins"])
def test_a_broken_pass_refutes_no_claim(sampling: str) -> None:
    """A pass that was broken off counts in full from above, but it may have seen less of the record."""
    whole = cm.NoisySGD(batch=64, records=1797, epochs=2, noise_multiplier=4, sampling=sampling)
    broken = replace(whole, epochs=None, steps=50)
    assert broken.run == whole.run
    refuted = whole.check(epsilon="0.1", delta=1e-5)
    assert (refuted.verdict, refuted.witness == "") == ("false", False)
    left_open = broken.check(epsilon="0.1", delta=1e-5)
    assert (left_open.verdict, left_open.lower, left_open.witness) == ("open", None, "")
    assert broken.check(epsilon=3, delta=1e-5).verdict == "holds"


def test_what_is_false_for_a_secret_order_is_false_for_every_order() -> None:
    """A guarantee for every order holds for a random one, so data sets that refute the second refute the first."""
    any_order = cm.NoisySGD(batch=64, records=6400, epochs=2, noise_multiplier=6, sampling="any-order")
    secret = replace(any_order, sampling="shuffled")
    refuted = any_order.check(epsilon="0.1", delta=1e-5)
    assert (refuted.verdict, refuted.lower) == ("false", secret.check(epsilon="0.1", delta=1e-5).lower)
    between = any_order.check(epsilon=1, delta=1e-5)  # enough for a secret order, and not proved for others
    assert (between.verdict, between.lower) == ("open", None)
    assert secret.check(epsilon=1, delta=1e-5).verdict == "holds"
    assert replace(any_order, epochs=None, steps=50).check(epsilon="0.1", delta=1e-5).verdict == "open"


@pytest.mark.parametrize("sampling", list(SAMPLINGS))
def test_calibration_meets_its_target(sampling: str) -> None:
    plan = cm.NoisySGD(batch=64, records=640, steps=30, noise_multiplier=1, sampling=sampling)
    found = plan.calibrated(epsilon=3, delta=1e-5)
    assert 3 * 0.9999 < found.epsilon(1e-5) <= 3
    smaller = Exact(found.noise_multiplier) - Exact("0.0001")
    assert replace(found, noise_multiplier=smaller).epsilon(1e-5) > 3
    assert Exact(found.noise_multiplier) < Exact(plan.calibrated(epsilon=1, delta=1e-5, digits=2).noise_multiplier)


@pytest.mark.parametrize(("sampling", "left"), [("poisson", 0.599), ("balls-in-bins", 0.550), ("shuffled", 0.915)])
def test_calibration_leaves_nothing_of_its_target_unused(sampling: str, left: float) -> None:
    """Rényi divergences alone stop at `left` of the target 1 here."""
    plan = cm.NoisySGD(batch=256, records=60_000, epochs=3, noise_multiplier=1, sampling=sampling)
    found = plan.calibrated(epsilon=1, delta=1e-5)
    assert left < 0.9999 < found.epsilon(1e-5) <= 1


def test_steps_that_fit_and_the_next_that_does_not() -> None:
    plan = cm.NoisySGD(batch=64, records=1797, steps=1, noise_multiplier=4)
    steps = plan.steps_within(epsilon=1, delta=1e-5)
    assert plan.after(steps).epsilon(1e-5) <= 1 < plan.after(steps + 1).epsilon(1e-5)
    assert replace(plan, noise_multiplier="0.01").steps_within(epsilon=1, delta=1e-5) == 0
    assert largest_integer(lambda k: k <= 1) == 1


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"batch": 0}, "batch=0"),
        ({"batch": 70_000}, "at most records"),
        ({"epochs": None}, "epochs=… or steps=…"),
        ({"steps": 5}, "one of them"),
        ({"noise_multiplier": 0}, "noise_multiplier=0"),
        ({"sampling": "random"}, "'fixed-size', 'poisson'"),
        ({"clip": -1}, "clip"),
    ],
)
def test_what_is_wrong_is_refused(changed: dict[str, Any], said: str) -> None:
    with pytest.raises(cm.InputError, match=said):
        cm.NoisySGD(**{**MNIST, **changed})


# ---- schedules


def test_a_schedule_is_the_sum_of_its_segments() -> None:
    sgd = cm.NoisySGD(batch=64, records=1797, noise_multiplier=2, schedule=[("1.5", 100), (1, 40)], sampling="poisson")
    assert sgd.total_steps == 140
    one, two = (cm.NoisySGD(batch=64, records=1797, steps=1, noise_multiplier=z, sampling="poisson") for z in (3, 2))
    assert sgd.run == one.after(100) + two.after(40)
    assert sgd.after(100) == one.after(100)
    assert sgd.after(120) == one.after(100) + two.after(20)
    best = sgd.epsilon(1e-5)
    assert one.after(140).epsilon(1e-5) < best < two.after(140).epsilon(1e-5)
    with pytest.raises(cm.InputError, match="at most 140"):
        sgd.after(141)
    rows = sgd.per_epoch(1e-5, method="rdp")
    assert rows[-1]["step"] == 140
    assert rows[-1]["epsilon"] == pytest.approx(sgd.epsilon(1e-5, method="rdp"))
    assert "3 for 100 steps, then 2 for 40 steps" in str(sgd)


def test_a_schedule_is_calibrated_as_a_whole_and_kept_by_a_budget() -> None:
    sgd = cm.NoisySGD(batch=64, records=1797, noise_multiplier=1, schedule=[(2, 50), (1, 50)]).calibrated(
        epsilon=2, delta=1e-5
    )
    assert 1.999 < sgd.epsilon(1e-5) <= 2
    (first, _), (second, _) = sgd.segments
    assert first == 2 * second
    budget = cm.training.Budget(2, 1e-5)
    assert [budget.allow(sgd) for _ in range(100)][-1] == 100
    with pytest.raises(cm.BudgetRefused):
        budget.allow(sgd)
    within = 1.0001 * sgd.after(70).epsilon(1e-5)
    assert cm.training.Budget(within, 1e-5).most(sgd) == sgd.steps_within(epsilon=within, delta=1e-5) == 70
    with pytest.raises(cm.InputError, match="schedule of its own"):
        cm.training.Budget(2, 1e-5, adaptive=True).allow(sgd)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"schedule": [(1, 10)], "steps": 11}, "leave epochs"),
        ({"schedule": [(1, 10)], "epochs": 1}, "leave epochs"),
        ({"schedule": []}, "leave epochs"),
        ({"schedule": [(0, 10)]}, "schedule=0"),
        ({"schedule": [(1, "x")]}, "schedule"),
        ({"schedule": [1, 2]}, "pairs"),
        ({"schedule": [(1, 10)], "sampling": "shuffled"}, "whole passes"),
        ({"schedule": [(1, 10)], "sampling": "balls-in-bins"}, "whole passes"),
    ],
)
def test_what_is_no_schedule_is_refused(given: dict[str, Any], said: str) -> None:
    with pytest.raises(cm.InputError, match=said):
        cm.NoisySGD(batch=64, records=1797, noise_multiplier=1, **given)


def test_noise_bands_ask_for_their_ways_to_form_batches() -> None:
    """The error was "sampling='fixed-size' is unknown", which nobody had written."""
    with pytest.raises(
        cm.InputError, match=r"^noise_bands=… needs sampling=…; choose one of 'balls-in-bins, one draw', "
    ):
        cm.NoisySGD(batch=60, records=600, noise_multiplier=4, epochs=2, noise_bands=[1, "0.5"])
    with pytest.raises(cm.InputError, match="sampling='x' is unknown; choose one of 'fixed-size', 'poisson'"):
        cm.NoisySGD(batch=60, records=600, noise_multiplier=4, epochs=2, sampling="x")


def test_a_plan_in_words_has_its_noise_bands() -> None:
    plan = cm.NoisySGD(batch=60, records=600, noise_multiplier=4, epochs=2, noise_bands=[1, "0.5"], sampling="min-sep")
    assert "noise multiplier 4, noise bands 1, 0.5, min-sep batches" in str(plan)
    assert "bands" not in str(cm.NoisySGD(batch=60, records=600, noise_multiplier=4, epochs=2))


def test_a_rate_keeps_the_numbers_that_were_given() -> None:
    """It was "8/1875", in which nobody finds the batch and the records again."""
    run = cm.NoisySGD(batch=256, records=60000, noise_multiplier=1, epochs=3, sampling="poisson").run
    assert 'Poisson(rate="256/60000")' in str(run)
    assert cm.parse(str(run)) == run == cm.Gaussian(sigma=1, relation="add-remove") @ cm.Poisson(rate="8/1875") * 704
    assert "rate=0.01024" in str(cm.NoisySGD(512, 50000, 1, 60, sampling="poisson").run)
