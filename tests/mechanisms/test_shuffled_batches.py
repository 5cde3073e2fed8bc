"""Passes in batches of fixed sizes: the bound holds by enumeration, and nothing is ever said from below."""

import itertools
import json
import math
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import cumulant as cm
from cumulant.accounting import shuffled_passes, text
from cumulant.cli import app

NOISE = cm.Gaussian(noise_multiplier=2, relation=cm.Relation.REPLACE_ONE)
LOOP = NOISE @ cm.ShuffledBatches() * 2

AROUND = {
    "itself": LOOP,
    "repeated": LOOP * 3,
    "sum": LOOP + NOISE,
    "sum on the right": NOISE + LOOP,
    "group": LOOP @ cm.Group(size=2),
    "select": LOOP @ cm.RepeatAndSelect(mean=3),
    "select one": LOOP @ cm.RepeatAndSelect(mean=1),
    "position": cm.parallel(LOOP, NOISE, by="position"),
    "group of a selection": LOOP @ cm.RepeatAndSelect(mean=2, number="poisson") @ cm.Group(size=2),
    "sample on a batch": NOISE @ cm.WithoutReplacement(rate="0.1") @ cm.ShuffledBatches() * 9,
    "training": cm.NoisySGD(batch=64, records=1797, epochs=2, noise_multiplier=2, sampling="shuffled").unamplified(),
}


@pytest.mark.parametrize("name", AROUND)
def test_the_mark_survives_every_combinator_and_every_text(name: str) -> None:
    run = AROUND[name]
    assert run.surrogate
    again = cm.parse(str(run))
    assert again == run
    assert again.surrogate
    found = run.guarantee(delta="1e-5")
    assert found.lower is None
    assert found.witness == ""
    stored = cm.Guarantee.from_json(found.to_json())
    assert stored == found
    assert stored.plan is not None
    assert stored.plan.run.surrogate
    assert run.guarantee(epsilon="0.5").lower is None


@pytest.mark.parametrize("name", AROUND)
def test_a_claim_below_the_bound_is_open(name: str) -> None:
    run = AROUND[name]
    for delta in ("1e-5", "0"):
        assert run.check(epsilon="1e-3", delta=delta).verdict == "open"
    assert run.check(epsilon=200, delta="1e-5").verdict == "holds"
    with pytest.raises(cm.HypothesisError, match="from above only"):
        run.rdp(2, bound="lower")
    with pytest.raises(cm.HypothesisError, match="from above only"):
        run.gap(2)
    assert "lower" not in run.rdp_table([2])


def test_a_bare_gaussian_stays_what_it_says() -> None:
    plain = NOISE * 2
    assert plain.epsilon("1e-5") == LOOP.epsilon("1e-5")
    assert plain.check(epsilon=1, delta="1e-5").verdict == "false"
    assert plain != LOOP
    assert (plain + LOOP).terms == {NOISE: 2, NOISE @ cm.ShuffledBatches(): 2}


def test_every_way_to_build_a_shuffled_loop_has_the_mark() -> None:
    sgd = cm.NoisySGD(batch=64, records=1797, epochs=3, noise_multiplier="0.3", sampling="shuffled")
    assert sgd.run.surrogate
    assert sgd.after(30).surrogate
    assert sgd.unamplified().check(epsilon=10, delta="1e-5").verdict == "open"
    found = sgd.guarantee(delta="1e-5")
    assert found.lower is not None
    assert found.lower < found.epsilon  # 157.8 was once called needed
    assert sgd.run.check(epsilon="110", delta="1e-5").verdict == "open"
    for sampling in ("fixed-size", "poisson"):
        assert not replace(sgd, sampling=sampling).run.surrogate


def test_what_is_refused() -> None:
    with pytest.raises(cm.RelationError, match="moves all later ones"):
        cm.Gaussian(sigma=1, relation=cm.Relation.ADD_REMOVE) @ cm.ShuffledBatches()
    with pytest.raises(cm.RelationError, match="moves all later ones"):
        cm.Gaussian(sigma=1) @ cm.Poisson(rate="0.1") @ cm.ShuffledBatches()
    for scheme in (cm.Poisson(rate="0.1"), cm.WithoutReplacement(rate="0.1"), cm.RandomAllocation(steps=1)):
        with pytest.raises(cm.CumulantError):
            LOOP @ scheme
    with pytest.raises(cm.InputError, match="a pass sees all the data"):
        LOOP @ cm.ShuffledBatches()
    with pytest.raises(cm.RelationError):
        LOOP + cm.Gaussian(sigma=1) @ cm.Poisson(rate="0.1")
    with pytest.raises(cm.HypothesisError):
        LOOP @ cm.Shuffle(reports=9)


def test_the_words_say_that_nothing_is_known_from_below(capsys: pytest.CaptureFixture[str]) -> None:
    assert app.answer(["epsilon", str(LOOP), "--delta", "1e-5"]) == 0
    told = " ".join(capsys.readouterr().out.split())
    assert "no lower end is known" in told
    assert "uses no record twice" in told
    assert app.answer(["check", str(LOOP), "--epsilon", "1", "--delta", "1e-5"]) != 0
    told = " ".join(capsys.readouterr().out.split())
    assert "Open:" in told
    assert "accuracy" not in told
    assert app.answer(["epsilon", str(LOOP), "--delta", "1e-5", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["lower"] is None
    counted = NOISE @ cm.ShuffledBatches(batch=5, records=50)
    assert app.answer(["epsilon", str(counted), "--delta", "1e-5"]) == 0
    told = " ".join(capsys.readouterr().out.split())
    assert "no lower end" not in told  # the JSON has one, and `check` calls smaller claims false by it
    assert "no accountant can report less than" in told
    careful = text.doubled((cm.Gaussian(sigma=2) @ cm.ShuffledBatches()).record())
    assert careful.startswith("CAREFUL, FACTOR 2")
    assert not text.doubled(LOOP.record())


# ---- from the definition

STAY = Fraction(3, 4)


def reported(bit: int, answer: int) -> Fraction:
    return STAY if bit == answer else 1 - STAY


def law(data: tuple[int, ...], batch: int) -> dict[tuple[int, ...], Fraction]:
    """All answers of one shuffled pass: each batch answers by randomized response about a query that adapts.

    The first batch is asked for the parity of its records. After the answer 1 the next ones are asked whether all are 1.
    """
    found: dict[tuple[int, ...], Fraction] = {}
    orders = list(itertools.permutations(range(len(data))))
    for order in orders:
        batches = [order[i : i + batch] for i in range(0, len(order), batch)]
        for answers in itertools.product((0, 1), repeat=len(batches)):
            weight = Fraction(1, len(orders))
            for i, (members, answer) in enumerate(zip(batches, answers, strict=True)):
                seen = [data[j] for j in members]
                bit = int(all(seen)) if i and answers[i - 1] else sum(seen) % 2
                weight *= reported(bit, answer)
            found[answers] = found.get(answers, Fraction(0)) + weight
    return found


@pytest.mark.parametrize("batch", [1, 2, 3])
def test_the_bound_holds_by_enumeration_of_every_order(batch: int) -> None:
    run = cm.RandomizedResponse(p="0.75") @ cm.ShuffledBatches()
    worst = dict.fromkeys(("0", "0.3", "0.8", "1"), 0.0)
    for rest in itertools.product((0, 1), repeat=3):
        one, two = law((0, *rest), batch), law((1, *rest), batch)
        for p, q in ((one, two), (two, one)):
            for epsilon in worst:
                grown = math.exp(float(epsilon))
                needed = sum(max(float(p[key]) - grown * float(q[key]), 0.0) for key in p)
                worst[epsilon] = max(worst[epsilon], needed)
    for epsilon, needed in worst.items():
        assert needed <= run.delta(epsilon=epsilon) * (1 + 1e-12)
    assert worst["0"] > 0.1


def test_a_group_may_be_in_several_batches() -> None:
    """Two records in two batches are two reports, which the pair of a group of one report would miss."""
    run = cm.RandomizedResponse(p="0.75") @ cm.ShuffledBatches() @ cm.Group(size=2)
    one, two = law((0, 0), 1), law((1, 1), 1)
    for epsilon in ("0", "1", "1.5", "2"):
        grown = math.exp(float(epsilon))
        needed = sum(max(float(one[key]) - grown * float(two[key]), 0.0) for key in one)
        assert needed <= run.delta(epsilon=epsilon) * (1 + 1e-12)
    assert run.epsilon(delta=0) == pytest.approx(2 * math.log(3), rel=1e-12)


@pytest.mark.parametrize("where", AROUND)
def test_a_pass_without_its_batches_says_how_to_get_a_lower_end(where: str) -> None:
    hints = [part.source.lower_end_hint() for part in AROUND[where].record().parts]
    assert any("ShuffledBatches(batch=, records=)" in hint for hint in hints)


@pytest.mark.parametrize("run", [NOISE @ cm.ShuffledBatches(batches=4), NOISE @ cm.Group(size=2), NOISE * 3])
def test_other_runs_have_no_such_hint(run: cm.Expression) -> None:
    assert [part.source.lower_end_hint() for part in run.record().parts] == [""]


@pytest.mark.parametrize("epsilon", ["0.01", "1", "50"])
def test_ten_thousand_passes_that_are_not_private_are_not_searched(
    epsilon: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every delta is nearly 1 there. The search for a slack took minutes."""

    def searched(search: object, place: float) -> None:
        raise AssertionError(f"a slack is sought at {place}")

    monkeypatch.setattr(shuffled_passes._Search, "least", searched)
    run = cm.KaryResponse(3, "0.5") @ cm.ShuffledBatches(batch=2, records=38) * 10_000
    assert run.delta(epsilon) == 1


def test_ten_thousand_passes_are_still_amplified() -> None:
    """Where delta is clearly below 1 the permutations count as before."""
    run = cm.KaryResponse(3, "0.5") @ cm.ShuffledBatches(batch=2, records=38) * 10_000
    assert run.delta("180") < 0.417
    assert run.delta("230") < 0.0021


@pytest.mark.parametrize("around", [cm.ShuffledBatches(batches=3), cm.Shuffle(reports=3)], ids=str)
@pytest.mark.parametrize(
    ("inner", "leak"),
    [
        (cm.ApproximateDP(epsilon=0, delta="0.1"), 0.1),
        (cm.from_masses(p=[0, 1], q=["0.5", "0.5"]), 0.5),
        (cm.from_masses(p=["0.5", "0.5"], q=["0.5", "0.5"]), 0.0),
        (cm.RandomizedResponse(p="1/2"), 0.0),
        (cm.KaryResponse(values=2, p="1/2"), 0.0),
        (cm.PureDP(0), 0.0),
        (cm.ExponentialMechanism(0), 0.0),
        (cm.DiscreteLaplace(scale=1, sensitivity="0.5"), 0.0),
    ],
    ids=str,
)
def test_nothing_to_amplify_is_answered_all_the_same(around: Any, inner: cm.Mechanism, leak: float) -> None:
    """Losses that are 0 or infinite: a division by the largest loss, and empty lists of losses."""
    for times in (1, 3):
        run, most = inner @ around * times, 1 - (1 - leak) ** times
        assert run.delta("0.3") == pytest.approx(most, rel=1e-9, abs=1e-15)
        assert float(run.delta([0.1, 0.3])[1]) == pytest.approx(most, rel=1e-9, abs=1e-15)
        assert run.true_positive_rate("0.1") <= 0.1 + most + 1e-9
        assert run.epsilon("0.9") == pytest.approx(0, abs=1e-12)
        assert run.guarantee(epsilon="0.3").verify()


@pytest.mark.parametrize("inner", [cm.ZeroConcentrated(rho=0), cm.Laplace(scale=1, sensitivity=0)], ids=str)
def test_reports_that_say_nothing(inner: cm.Mechanism) -> None:
    run = inner @ cm.Shuffle(reports=3) * 2
    assert (run.epsilon("1e-6"), run.delta("0.3"), run.rdp(3)) == (0, 0, 0)
    assert run.guarantee(delta="1e-6").verify()


@pytest.mark.parametrize("run", [cm.KaryResponse(values=2, p="1/2"), cm.KaryResponse(values=3, p="1/3") * 3], ids=str)
def test_losses_that_are_all_zero_have_a_guarantee(run: cm.Expression) -> None:
    found = run.guarantee(epsilon="0.3")
    assert found.delta == 0
    assert found.verify()


@pytest.mark.parametrize(
    ("text", "delta"),
    [
        ("KaryResponse(values=6, p=0.1) @ ShuffledBatches(batch=2, records=18) * 1000", "0.4"),
        ("KaryResponse(values=6, p=0.00626373) @ ShuffledBatches(batch=2, records=18) * 100", "0.612"),
    ],
)
def test_many_passes_that_mostly_say_nothing_still_cost(text: str, delta: str) -> None:
    """Where delta is needed at epsilon 0, a smaller one needs an epsilon above 0: by every method, and as verified."""
    run = cm.parse(text)
    needed = run.guarantee(epsilon=0).lower
    assert needed is not None
    assert needed > float(delta)
    for method in ("best", "exact", "rdp"):
        assert run.epsilon(delta, method=method) > 0
    assert run.guarantee(delta=delta).verify()


def test_delta_is_found_among_the_steps_without_a_slack() -> None:
    """Reports of a largest loss have steps of several kinds without a slack; epsilon and delta find the same ones."""
    run = cm.parse("KaryResponse(values=6, p=0.1) @ ShuffledBatches(batch=2, records=18) * 10")
    assert run.epsilon("0.2") == 0
    needed = run.guarantee(epsilon=0).lower
    assert needed is not None
    assert needed <= run.delta(epsilon=0) <= 0.2
    assert run.delta(epsilon=1) < 0.003  # 0.042 by local amplification alone


@pytest.mark.parametrize(
    "wrong", [{"batches": 5, "fresh": np.ones(2)}, {"batch": 5, "records": 9, "drop_last": np.ones(2)}]
)
def test_an_array_is_no_switch(wrong: dict[str, Any]) -> None:
    with pytest.raises(cm.CumulantError, match=r"array\(\[1\., 1\.\]\)"):
        cm.ShuffledBatches(**wrong)
