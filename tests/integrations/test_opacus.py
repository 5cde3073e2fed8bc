"""Opacus 1.6.0 and torch 2.13.0 as they are: what is accounted, checkpoints, memory manager, two processes."""

import json
import math
import subprocess
import sys
from fractions import Fraction
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest
import torch
from opacus import PrivacyEngine
from opacus.utils.batch_memory_manager import BatchMemoryManager
from torch.utils.data import DataLoader, TensorDataset

import cumulant as cm
from cumulant.integrations.opacus import (
    from_opacus,
    make_private,
    make_private_with_epsilon,
)
from cumulant.training import FixedSizeSampler, conformance
from tests.integrations.loops import (
    BATCH,
    DELTA,
    FIXED,
    POISSON,
    RECORDS,
    SHUFFLED,
    data,
    fixed,
    model,
    step,
    stock,
    train,
)


def test_the_versions_are_the_ones_that_were_read() -> None:
    assert version("torch").partition("+")[0] == "2.13.0"
    assert version("opacus") == "1.6.0"


# ---- what is accounted


def test_fixed_size_is_accounted_by_its_law() -> None:
    engine, module, optimizer, loader = fixed()
    train(module, optimizer, loader, 3)
    assert engine.accountant.history == [(4.0, "64/1797", 84)]
    run = cm.Gaussian.from_clipping(1, 4, "replace-one") @ cm.WithoutReplacement(sample=64, population=1797) * 84
    assert engine.accountant.run() == run
    assert engine.get_epsilon(DELTA) == run.epsilon(DELTA)
    found = engine.accountant.guarantee(DELTA)
    assert found.lower is not None
    assert 0.6959 < found.lower < found.epsilon < 0.7212
    assert found.relation == "replace-one"
    assert optimizer.expected_batch_size == 64
    assert list(engine.accountant.spent(DELTA)) == ["step", "epsilon", "epsilon_lower", "delta", "relation"]


def test_what_the_fixed_size_loader_draws_conforms() -> None:
    engine, *_, loader = fixed(steps=400)
    assert min(conformance(loader.batch_sampler.sampler, RECORDS, BATCH).values()) > 1e-4
    assert len(engine.accountant) == 0


def test_stock_poisson() -> None:
    engine, module, optimizer, loader = stock(POISSON)
    train(module, optimizer, loader, 2)
    assert len(engine.accountant) == 58
    assert engine.accountant.get_epsilon(DELTA, method="rdp") == pytest.approx(0.6344, abs=1e-4)
    assert 0.5605 < engine.get_epsilon(DELTA) < 0.5617
    assert engine.accountant.guarantee(DELTA).relation == "add-remove"
    assert any("public" in caveat for caveat in engine.accountant.caveats)


def test_stock_search_for_noise() -> None:
    engine = PrivacyEngine(accountant=POISSON)
    module, optimizer = model()
    loader = DataLoader(data(), batch_size=BATCH)
    target = {"target_epsilon": 3, "target_delta": DELTA, "epochs": 10, "max_grad_norm": 1.0}
    _, optimizer, _ = engine.make_private_with_epsilon(module=module, optimizer=optimizer, data_loader=loader, **target)
    assert 1.12 < optimizer.noise_multiplier < 1.145  # prv 1.138


def test_our_search_for_noise() -> None:
    engine = PrivacyEngine(accountant=FIXED)
    module, optimizer = model()
    target: dict[str, Any] = {"epsilon": 3, "delta": DELTA, "steps": 560, "max_grad_norm": 1.0}
    module, optimizer, loader = make_private_with_epsilon(
        engine, module=module, optimizer=optimizer, dataset=data(), sample=64, **target
    )
    assert optimizer.noise_multiplier == pytest.approx(2.889, rel=5e-3)
    assert len(loader) == 28
    engine.accountant.history = [(optimizer.noise_multiplier, "64/1797", 560)]
    assert engine.get_epsilon(DELTA) <= 3


def test_our_poisson_sampler_in_opacus() -> None:
    engine = PrivacyEngine(accountant=POISSON)
    module, optimizer = model()
    module, optimizer, loader = make_private(
        engine,
        module=module,
        optimizer=optimizer,
        dataset=data(200),
        rate=Fraction(1, 100),
        steps=40,
        noise_multiplier=2.0,
        max_grad_norm=1.0,
    )
    sizes = []
    for batch in loader:
        sizes.append(len(batch[0]))
        step(module, optimizer, batch)
    assert 0 in sizes  # an empty batch is a step too
    assert engine.accountant.history == [(2.0, "1/100", 40)]
    assert engine.accountant.run() == cm.Gaussian(sigma=2) @ cm.Poisson(rate="1/100") * 40 or str(
        engine.accountant.run()
    ).startswith('Gaussian(sigma=2, relation="add-remove") @ Poisson(rate=0.01) * 40')


def test_a_first_batch_may_be_empty() -> None:
    engine = PrivacyEngine(accountant=POISSON)
    module, optimizer = model()
    records = data(20)
    integers = TensorDataset(records.tensors[0], records.tensors[1])
    module, optimizer, loader = make_private(
        engine,
        module=module,
        optimizer=optimizer,
        dataset=integers,
        rate="1/1000000",
        steps=3,
        noise_multiplier=2.0,
        max_grad_norm=1.0,
    )
    train(module, optimizer, loader)
    assert engine.accountant.history == [(2.0, "1/1000000", 3)]


# ---- checkpoints, memory manager, processes


@pytest.mark.parametrize("accountant", [FIXED, POISSON, SHUFFLED])
def test_checkpoints(accountant: str, tmp_path: Path) -> None:
    def make() -> tuple[Any, ...]:
        return fixed() if accountant == FIXED else stock(accountant, poisson_sampling=accountant == POISSON)

    engine, module, optimizer, loader = make()
    train(module, optimizer, loader)
    engine.save_checkpoint(path=tmp_path / "state.pt", module=module, optimizer=optimizer)
    plain = torch.load(tmp_path / "state.pt", weights_only=True)
    assert plain["privacy_accountant_state_dict"]["mechanism"] == accountant
    other, module, optimizer, loader = make()
    other.load_checkpoint(path=tmp_path / "state.pt", module=module, optimizer=optimizer)
    assert other.get_epsilon(DELTA) == engine.get_epsilon(DELTA)
    assert len(other.accountant) == len(engine.accountant)
    train(module, optimizer, loader)
    assert len(other.accountant) == 2 * len(engine.accountant)
    assert other.get_epsilon(DELTA) > engine.get_epsilon(DELTA)


def test_a_limit_counts_what_a_checkpoint_brought_along() -> None:
    engine, *_ = fixed(limit=("0.5", DELTA))
    engine.accountant.load_state_dict({"mechanism": FIXED, "history": [(4.0, "64/1797", 10_000)]})
    with pytest.raises(cm.BudgetRefused):
        engine.accountant.step(noise_multiplier=4.0, sample_rate="64/1797")


def test_foreign_states_are_refused_and_can_be_read() -> None:
    opacus, module, optimizer, loader = stock("rdp")
    train(module, optimizer, loader)
    state = opacus.accountant.state_dict()
    with pytest.raises(cm.RelationError, match="from_opacus"):
        PrivacyEngine(accountant=FIXED).accountant.load_state_dict(state)
    assert from_opacus(state).epsilon(DELTA, method="rdp") == pytest.approx(opacus.get_epsilon(DELTA), rel=5e-3)
    with pytest.raises(cm.InputError, match="not the state"):
        PrivacyEngine(accountant=FIXED).accountant.load_state_dict({})
    with pytest.raises(cm.InputError, match="no history"):
        from_opacus({"mechanism": FIXED, "history": []})


@pytest.mark.parametrize("workers", [0, 2])
def test_the_batch_memory_manager_adds_logical_steps(workers: int) -> None:
    engine, module, optimizer, loader = fixed(loader={"num_workers": workers})
    physical = 0
    with BatchMemoryManager(data_loader=loader, max_physical_batch_size=16, optimizer=optimizer) as small:
        for batch in small:
            physical += 1
            step(module, optimizer, batch)
    assert physical == 112
    assert engine.accountant.history == [(4.0, "64/1797", 28)]


def test_a_pass_that_is_broken_off_goes_on() -> None:
    engine, module, optimizer, loader = fixed(loader={"num_workers": 2})
    for _ in range(3):
        for number, batch in enumerate(loader):
            step(module, optimizer, batch)
            if number == 4:
                break
    assert len(engine.accountant) == 15


@pytest.fixture(scope="module")
def processes(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    directory = tmp_path_factory.mktemp("gloo")
    script = Path(__file__).with_name("two_processes.py")
    started = [
        subprocess.Popen([sys.executable, str(script), str(rank), str(directory)], stderr=subprocess.PIPE, text=True)
        for rank in range(2)
    ]
    for process in started:
        _, error = process.communicate(timeout=600)  # for a hang, not for a slow machine
        assert process.returncode == 0, error
    return [json.loads((directory / f"rank{rank}.json").read_text(encoding="utf-8")) for rank in range(2)]


def test_two_processes_share_one_draw(processes: list[dict[str, Any]]) -> None:
    whole = FixedSizeSampler(40, 20, steps=3, key=bytes(32))
    for step_number in range(3):
        parts = [process["seen"][10 * step_number : 10 * step_number + 10] for process in processes]
        assert sorted(parts[0] + parts[1]) == sorted(whole.draw(step_number))
        moved = processes[0]["moved"][step_number]
        assert moved == processes[1]["moved"][step_number]
        for record, weight in enumerate(moved):
            assert weight == pytest.approx(float(record in whole.draw(step_number)), abs=1e-3)
    for process in processes:
        assert process["history"] == [[1e-6, "20/40", 3]]
        assert process["expected"] == 10


def test_two_processes_with_sharded_weights_share_one_draw(processes: list[dict[str, Any]]) -> None:
    whole = FixedSizeSampler(40, 20, steps=3, key=bytes(32))
    for step_number in range(3):
        parts = [process["shards seen"][10 * step_number : 10 * step_number + 10] for process in processes]
        assert sorted(parts[0] + parts[1]) == sorted(whole.draw(step_number))
        for record, weight in enumerate(processes[0]["shards moved"][step_number]):
            assert weight == pytest.approx(float(record in whole.draw(step_number)), abs=1e-3)
    for process in processes:
        assert process["shards history"] == [[1e-6, "20/40", 3]]
        assert "ghost_fsdp" in process["shards with hooks"]


def test_shards_that_are_not_averaged_are_refused(processes: list[dict[str, Any]]) -> None:
    for found in processes:
        for said in found["shards that are not averaged"]:
            assert "not averaged over all processes" in said


def test_two_processes_without_a_wrapper_are_refused(processes: list[dict[str, Any]]) -> None:
    for process in processes:
        for said in (process["late"], process["part"], *process["unwrapped"]):
            assert "2 processes are running" in said


def test_two_processes_refuse(processes: list[dict[str, Any]]) -> None:
    assert "different keys" in processes[1]["different keys"]
    for process in processes:
        assert "neither drawn independently nor with this rate" in process["stock poisson"]


def test_two_processes_with_unlike_settings_are_refused(processes: list[dict[str, Any]]) -> None:
    """One process that clips to 8 moves the sum by 8 norms, and the other one reported the epsilon of 1."""
    for process in processes:
        for name, found in process["unlike"].items():
            for said in found:
                assert f"{name} differs between processes" in said


def test_trap_distributed_poisson_of_opacus(processes: list[dict[str, Any]]) -> None:
    one, other = (process["equal seeds"] for process in processes)
    assert one == other  # equal seeds choose equal positions on all ranks
    assert (
        len({process["rare"] for process in processes}) == 2
    )  # empty batches are left out: ranks have different numbers
    assert max(process["rare"] for process in processes) < 20


def test_epsilon_is_never_below_that_of_the_law() -> None:
    for noise, steps in ((1.0, 3), (2.5, 100)):
        accountant = PrivacyEngine(accountant=FIXED).accountant
        accountant.history = [(noise, "64/1797", steps)]
        lower = accountant.guarantee(DELTA).lower
        assert lower is not None
        assert lower <= accountant.get_epsilon(DELTA) < math.inf
