"""Loops that run something else than what is accounted: each is refused with its cause, or accounted as what it is."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from opacus import PrivacyEngine
from opacus.schedulers import ExponentialGradClip
from opacus.utils.batch_memory_manager import BatchMemoryManager
from torch.utils.data import DataLoader, TensorDataset

import cumulant as cm
from cumulant.integrations.opacus import DrawsAndSteps, make_private, make_private_with_epsilon
from cumulant.integrations.opacus_steps import secret_generator
from cumulant.training.budget import Budget
from tests.integrations.loops import DELTA, FIXED, POISSON, SHUFFLED, data, model, step, train, weights

RECORDS, SAMPLE, NOISE = 320, 16, 2.0


def made(accountant: str, ours: bool = True, **options: Any) -> tuple[Any, ...]:
    """Engine, module, optimizer and loader; the loader is ours, or that of the stock call of Opacus."""
    engine = PrivacyEngine(accountant=accountant)
    module, optimizer = model()
    both: dict[str, Any] = {"module": module, "optimizer": optimizer, "noise_multiplier": NOISE, "max_grad_norm": 1.0}
    if ours and accountant != SHUFFLED:
        law = {"sample": SAMPLE} if accountant == FIXED else {"rate": f"{SAMPLE}/{RECORDS}"}
        return engine, *make_private(engine, dataset=data(RECORDS), **both, **law, **options)
    loader = DataLoader(data(RECORDS), batch_size=SAMPLE, shuffle=True, **options.pop("loader", {}))
    poisson = {} if accountant == POISSON else {"poisson_sampling": False}
    return engine, *engine.make_private(data_loader=loader, **both, **poisson, **options)


EVERY = [(FIXED, True), (POISSON, True), (POISSON, False), (SHUFFLED, False)]


@pytest.fixture(params=EVERY, ids=[f"{name}-{'ours' if ours else 'stock'}" for name, ours in EVERY])
def loop(request: pytest.FixtureRequest) -> tuple[Any, ...]:
    return made(*request.param)


def refused(loop: tuple[Any, ...], run: Callable[[], object], said: str, accounted: int) -> None:
    """The weights stay as they were at the last accounted step, and no gradient is left behind."""
    engine, module, optimizer, _ = loop
    seen: list[list[float]] = []
    real = optimizer.original_optimizer.step

    def counted(*given: Any) -> None:
        real(*given)
        seen.append(weights(module))

    optimizer.original_optimizer.step = counted
    before = weights(module)
    with pytest.raises(DrawsAndSteps, match=said):
        run()
    assert weights(module) == (seen[-1] if seen else before)
    assert len(engine.accountant) == len(seen) == accounted


# ---- steps without a draw


def test_training_on_the_whole_data_set(loop: tuple[Any, ...]) -> None:
    _, module, optimizer, _ = loop
    whole = data(RECORDS).tensors
    refused(loop, lambda: step(module, optimizer, whole), "320 records that the accounted loader has not handed out", 0)
    assert all(parameter.grad is None for parameter in optimizer.params)


def test_training_on_the_whole_data_set_at_every_batch(loop: tuple[Any, ...]) -> None:
    _, module, optimizer, loader = loop
    whole = data(RECORDS).tensors

    def run() -> None:
        for _ in loader:
            step(module, optimizer, whole)

    refused(loop, run, "clipped 320 gradients", 0)


def test_another_loader(loop: tuple[Any, ...]) -> None:
    _, module, optimizer, _ = loop
    other = DataLoader(data(RECORDS), batch_size=SAMPLE, shuffle=True)
    refused(loop, lambda: train(module, optimizer, other), "has not handed out", 0)


def test_a_new_loader_for_every_epoch_after_the_first(loop: tuple[Any, ...]) -> None:
    _, module, optimizer, loader = loop

    def run() -> None:
        train(module, optimizer, loader)
        train(module, optimizer, DataLoader(data(RECORDS), batch_size=40, shuffle=True))

    refused(loop, run, "handed out none since batch 20", 20)


def test_two_steps_on_one_batch(loop: tuple[Any, ...]) -> None:
    _, module, optimizer, loader = loop

    def run() -> None:
        for batch in loader:
            for _ in range(10):
                step(module, optimizer, batch)

    refused(loop, run, "was used by a step already", 1)


def test_several_rows_for_one_record() -> None:
    """Tokens as rows: each is clipped to the norm, so that one record moves the sum by several norms."""
    found = made(FIXED)
    _, module, optimizer, loader = found

    def run() -> None:
        for x, y in loader:
            step(module, optimizer, (torch.cat([x, x]), torch.cat([y, y])))

    refused(found, run, "keep one row per record", 0)


# ---- draws without a step


def test_three_draws_in_one_step(loop: tuple[Any, ...]) -> None:
    _, module, optimizer, loader = loop

    def run() -> None:
        batches = iter(loader)
        three = [next(batches) for _ in range(3)]
        step(module, optimizer, [torch.cat(parts) for parts in zip(*three, strict=True)])

    refused(loop, run, "no accounted step used batch 1", 0)


def test_three_iterators_in_one_step(loop: tuple[Any, ...]) -> None:
    loader = loop[-1]
    refused(loop, lambda: next(zip(loader, loader, loader, strict=False)), "no accounted step used batch 1", 0)


def test_accumulated_gradients(loop: tuple[Any, ...]) -> None:
    _, module, optimizer, loader = loop

    def run() -> None:
        for number, (x, y) in enumerate(loader):
            torch.nn.functional.cross_entropy(module(x), y).backward()
            if number % 3 == 2:
                optimizer.step()

    refused(loop, run, "before a step used the gradients of batch 1", 0)


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize(("accountant", "ours"), [(POISSON, True), (POISSON, False), (FIXED, True), (SHUFFLED, False)])
def test_skipped_batches(accountant: str, ours: bool, workers: int) -> None:
    found = made(accountant, ours, loader={"num_workers": workers})
    _, module, optimizer, loader = found

    def run() -> None:
        for number, batch in enumerate(loader):
            if number != 3:
                step(module, optimizer, batch)

    refused(found, run, "no accounted step used batch 4", 3)


def test_the_last_batch_is_skipped(loop: tuple[Any, ...]) -> None:
    _, module, optimizer, loader = loop

    def run() -> None:
        for number, batch in enumerate(loader):
            if number < 19:
                step(module, optimizer, batch)

    refused(loop, run, "no accounted step used batch 20", 19)


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize(("accountant", "ours"), [(POISSON, True), (POISSON, False), (FIXED, True), (SHUFFLED, False)])
def test_batches_that_are_rejected_by_break(accountant: str, ours: bool, workers: int) -> None:
    """A batch that was not used comes again; it cannot be exchanged for a better one."""
    found = made(accountant, ours, loader={"num_workers": workers})
    _, module, optimizer, loader = found
    rejected: list[Any] = []

    def run() -> None:
        while True:
            for x, y in loader:
                if len(rejected) != 1 and len(weights(module)):
                    rejected.append(x)
                    break
                rejected.append(x)
                step(module, optimizer, (x, y))

    refused(found, run, "handed out in two passes", 1)
    assert torch.equal(rejected[0], rejected[1])
    assert torch.equal(rejected[2], rejected[3])


@pytest.mark.parametrize("workers", [0, 2])
def test_breaking_before_the_step_changes_nothing(workers: int) -> None:
    engine, module, optimizer, loader = made(FIXED, loader={"num_workers": workers}, key=bytes(32))
    seen = []
    for _ in range(3):
        for number, batch in enumerate(loader):
            if number == 5:
                break
            seen.append(batch[0])
            step(module, optimizer, batch)
    expected = cm.training.FixedSizeSampler(RECORDS, SAMPLE, key=bytes(32))
    for number, x in enumerate(seen):
        assert torch.equal(x, data(RECORDS).tensors[0][expected.draw(number)])
    assert engine.accountant.history == [(NOISE, "16/320", 15)]
    assert loader.batch_sampler.sampler.state_dict()["step"] == 16
    assert any("1 batches were handed out that no step used" in caveat for caveat in engine.accountant.caveats)


@pytest.mark.parametrize("workers", [0, 3])
def test_the_state_of_a_sampler_counts_what_was_handed_out(workers: int) -> None:
    _, module, optimizer, loader = made(FIXED, loader={"num_workers": workers})
    sampler = loader.batch_sampler.sampler
    for number, batch in enumerate(loader, start=1):
        assert sampler.state_dict()["step"] == number
        step(module, optimizer, batch)
    assert sampler.step == 20


def test_the_optimizer_inside_does_not_count(loop: tuple[Any, ...]) -> None:
    """Steps of the wrapped optimizer have no noise, so they do not run."""
    engine, module, optimizer, loader = loop
    with pytest.raises(cm.InputError, match="the optimizer inside was asked for a step"):
        for x, y in loader:
            torch.nn.functional.cross_entropy(module(x), y).backward()
            optimizer.original_optimizer.step()
    assert len(engine.accountant) == 0


def test_a_replaced_hook_is_accounted_all_the_same(loop: tuple[Any, ...]) -> None:
    engine, module, optimizer, loader = loop
    called: list[Any] = []
    optimizer.attach_step_hook(called.append)
    train(module, optimizer, loader)
    assert len(called) == len(engine.accountant) == 20
    optimizer.step_hook = None
    train(module, optimizer, loader)
    assert len(engine.accountant) == 40
    assert engine.get_epsilon(DELTA) > 0


def test_a_hook_is_for_one_optimizer() -> None:
    _, _, optimizer, _ = made(FIXED)
    *_, other, _ = made(FIXED)
    with pytest.raises(cm.InputError, match="another optimizer"):
        optimizer.step_hook(other)


def test_a_list_of_the_loader_is_refused(loop: tuple[Any, ...]) -> None:
    engine, *_, loader = loop
    with pytest.raises(DrawsAndSteps, match="no accounted step used batch 1"):
        list(loader)
    with pytest.raises(DrawsAndSteps, match="iterates a copy"):
        list(loader.batch_sampler)
    with pytest.raises(DrawsAndSteps, match="iterates a copy"):
        next(iter(DataLoader(loader.dataset, batch_sampler=loader.batch_sampler)))
    assert len(engine.accountant) == 0


# ---- memory manager


@pytest.mark.parametrize(("accountant", "ours"), EVERY)
@pytest.mark.parametrize("workers", [0, 2])
def test_physical_batches_add_up(accountant: str, ours: bool, workers: int) -> None:
    engine, module, optimizer, loader = made(accountant, ours, loader={"num_workers": workers})
    for _ in range(2):
        with BatchMemoryManager(data_loader=loader, max_physical_batch_size=5, optimizer=optimizer) as small:
            train(module, optimizer, small)
    assert len(engine.accountant) == 40


@pytest.mark.parametrize("workers", [0, 2])
def test_a_physical_batch_that_is_skipped(workers: int) -> None:
    found = made(POISSON, loader={"num_workers": workers})
    _, module, optimizer, loader = found

    def run() -> None:
        with BatchMemoryManager(data_loader=loader, max_physical_batch_size=5, optimizer=optimizer) as small:
            for number, batch in enumerate(small):
                if number != 1:
                    step(module, optimizer, batch)

    with pytest.raises(DrawsAndSteps):
        run()
    assert len(found[0].accountant) < 20


def test_a_pass_of_the_memory_manager_that_was_broken_off() -> None:
    found = made(FIXED, loader={"num_workers": 2})
    _, module, optimizer, loader = found

    def run() -> None:
        for _ in range(2):
            with BatchMemoryManager(data_loader=loader, max_physical_batch_size=8, optimizer=optimizer) as small:
                for number, batch in enumerate(small):
                    step(module, optimizer, batch)
                    if number == 3:
                        break

    refused(found, run, "BatchMemoryManager was broken off", 2)


# ---- clipping, noise


def test_ghost_clipping_with_a_scheduler_of_the_norm() -> None:
    """The scheduler changes the norm of the noise alone: the module goes on clipping to the old one."""
    engine = PrivacyEngine(accountant=FIXED)
    module, optimizer = model()
    module, optimizer, criterion, loader = make_private(
        engine,
        module=module,
        optimizer=optimizer,
        dataset=data(RECORDS),
        sample=SAMPLE,
        noise_multiplier=NOISE,
        max_grad_norm=1.0,
        grad_sample_mode="ghost",
        criterion=torch.nn.CrossEntropyLoss(),
    )
    scheduler = ExponentialGradClip(optimizer, gamma=0.5)
    with pytest.raises(cm.InputError, match=r"clipped to the norm 1, but the noise was made for the norm 0\.5"):
        for batch in loader:
            step(module, optimizer, batch, criterion)
            scheduler.step()
    assert len(engine.accountant) == 1


@pytest.mark.parametrize("clipping", ["flat", "per_layer"])
def test_a_norm_that_changes_within_a_batch(clipping: str) -> None:
    norm: Any = 1.0 if clipping == "flat" else [0.6, 0.8]
    engine = PrivacyEngine(accountant=FIXED)
    module, optimizer = model()
    options: dict[str, Any] = {"noise_multiplier": NOISE, "max_grad_norm": norm, "clipping": clipping, "sample": SAMPLE}
    module, optimizer, loader = make_private(
        engine, module=module, optimizer=optimizer, dataset=data(RECORDS), **options
    )
    scheduler = ExponentialGradClip(optimizer, gamma=0.5)
    with pytest.raises(cm.InputError, match="but the noise was made for the norm"):  # noqa: SIM117
        with BatchMemoryManager(data_loader=loader, max_physical_batch_size=8, optimizer=optimizer) as small:
            for batch in small:
                step(module, optimizer, batch)
                scheduler.step()
    assert len(engine.accountant) == 0


def test_a_norm_that_changes_between_steps_is_fine() -> None:
    engine, module, optimizer, loader = made(FIXED)
    scheduler = ExponentialGradClip(optimizer, gamma=0.9)
    for batch in loader:
        step(module, optimizer, batch)
        scheduler.step()
    assert engine.accountant.history == [(NOISE, "16/320", 20)]


@pytest.mark.parametrize("ours", [True, False])
def test_random_records_in_empty_batches(ours: bool) -> None:
    with pytest.raises(cm.InputError, match="rand_on_empty"):
        made(POISSON, ours, rand_on_empty=True)


def test_noise_and_samples_say_where_they_come_from() -> None:
    def noticed(accountant: str, ours: bool, **options: Any) -> str:
        engine, module, optimizer, loader = made(accountant, ours, **options)
        step(module, optimizer, next(iter(loader)))
        return "; ".join(engine.accountant.caveats)

    torch.manual_seed(17)
    assert "noise came from torch's generator with a secret state" in noticed(FIXED, True)
    assert "noise came from torch's generator after torch.manual_seed" in noticed(POISSON, False)
    assert "samples came from torch's generator after torch.manual_seed" in noticed(POISSON, False)
    assert "samples came" not in noticed(POISSON, True)
    assert "samples came" not in noticed(SHUFFLED, False)
    torch.seed()
    assert "noise came from torch's generator, which starts from 32 random bits" in noticed(POISSON, False)
    generator = torch.Generator()
    assert "noise came from a torch generator that was given" in noticed(FIXED, True, noise_generator=generator)
    assert "noise came from a torch generator that was given" in noticed(SHUFFLED, False, noise_generator=generator)
    loader = {"generator": torch.Generator()}
    assert "samples came from a torch generator that was given" in noticed(POISSON, False, loader=loader)


def test_caveats_go_into_checkpoints_and_statements() -> None:
    engine, module, optimizer, loader = made(POISSON, False)
    step(module, optimizer, next(iter(loader)))
    other = PrivacyEngine(accountant=POISSON)
    other.accountant.load_state_dict(engine.accountant.state_dict())
    assert set(other.accountant.caveats) == set(engine.accountant.caveats)
    setting = cm.training.Setting(
        unit="one row", released="the weights", tuning="none", not_covered="none", noise="float", sampler="a loader"
    )
    assert any("torch.manual_seed" in each for each in other.accountant.statement([DELTA], setting)["caveats"])


def test_noise_does_not_follow_the_seed_of_torch() -> None:
    """torch.manual_seed(s) and torch.manual_seed(s + 2^32) are the same stream on a CPU; a secret state has no seed."""
    torch.manual_seed(3)
    first = torch.randn(5)
    torch.manual_seed(3 + 2**32)
    assert torch.equal(first, torch.randn(5))

    def moved() -> list[float]:
        torch.manual_seed(3)
        _, module, optimizer, loader = made(FIXED, key=bytes(32))
        step(module, optimizer, next(iter(loader)))
        return weights(module)

    assert moved() != moved()
    draws = torch.normal(0.0, 1.0, (200_000,), generator=secret_generator("cpu"))
    assert abs(float(draws.mean())) < 0.02
    assert abs(float(draws.std()) - 1) < 0.02


# ---- checkpoints


@pytest.mark.parametrize("accountant", [FIXED, POISSON, SHUFFLED])
def test_a_shorter_history_is_refused(accountant: str, tmp_path: Path) -> None:
    """Going back to an earlier checkpoint: the steps since then were seen by whoever decided to go back."""
    engine, module, optimizer, loader = made(accountant)
    train(module, optimizer, loader)
    engine.save_checkpoint(path=tmp_path / "state.pt", module=module, optimizer=optimizer)
    train(module, optimizer, loader)
    spent = engine.get_epsilon(DELTA)
    with pytest.raises(cm.InputError, match="forget=True"):
        engine.load_checkpoint(path=tmp_path / "state.pt", module=module, optimizer=optimizer)
    assert engine.get_epsilon(DELTA) == spent
    engine.accountant.load_state_dict(engine.accountant.state_dict())
    assert engine.get_epsilon(DELTA) == spent
    state = torch.load(tmp_path / "state.pt", weights_only=True)["privacy_accountant_state_dict"]
    engine.accountant.load_state_dict(state, forget=True)
    assert engine.get_epsilon(DELTA) < spent


def test_another_history_is_no_longer_one() -> None:
    engine, module, optimizer, loader = made(FIXED)
    train(module, optimizer, loader)
    state = {"mechanism": FIXED, "history": [(200.0, "16/320", 5000)]}
    with pytest.raises(cm.InputError, match="still"):
        engine.accountant.load_state_dict(state)


STEP = cm.NoisySGD(batch=SAMPLE, records=RECORDS, steps=1, noise_multiplier=NOISE).run


@pytest.mark.parametrize(
    "limit",
    [("1.5", DELTA), Budget("1.5", DELTA), Budget(3, DELTA, adaptive=True), Budget(3, DELTA, schedule=[(STEP, 30)])],
)
def test_a_limit_is_part_of_the_checkpoint(limit: Any, tmp_path: Path) -> None:
    engine, module, optimizer, loader = made(FIXED)
    engine.accountant.limit = limit
    batches = iter(loader)
    for _ in range(3):
        step(module, optimizer, next(batches))
    engine.save_checkpoint(path=tmp_path / "state.pt", module=module, optimizer=optimizer)
    torch.load(tmp_path / "state.pt", weights_only=True)
    other, module, optimizer, loader = made(FIXED, steps=400)
    other.load_checkpoint(path=tmp_path / "state.pt", module=module, optimizer=optimizer)
    with pytest.raises(cm.BudgetRefused):
        train(module, optimizer, loader)
    assert 3 < len(other.accountant) < 300
    if isinstance(limit, tuple):
        assert other.get_epsilon(DELTA) <= 1.5
    third = PrivacyEngine(accountant=FIXED).accountant
    third.limit = (5, DELTA)
    with pytest.raises(cm.InputError, match="trained under the limit"):
        third.load_state_dict(engine.accountant.state_dict())
    third.load_state_dict(engine.accountant.state_dict(), forget=True)
    assert third.limit == (5, DELTA)


# ---- two optimizers, noise for Poisson samples


@pytest.mark.parametrize("accountant", [FIXED, POISSON, SHUFFLED])
def test_two_optimizers_on_one_engine(accountant: str) -> None:
    """Each has a loader of its own; all steps of both are accounted, and neither may use a batch of the other."""
    engine, *one = made(accountant)
    module, optimizer = model()
    both: dict[str, Any] = {"module": module, "optimizer": optimizer, "noise_multiplier": NOISE, "max_grad_norm": 1.0}
    if accountant == SHUFFLED:
        loader = DataLoader(data(RECORDS), batch_size=SAMPLE, shuffle=True)
        other = engine.make_private(data_loader=loader, poisson_sampling=False, **both)
    else:
        law: dict[str, Any] = {"sample": SAMPLE} if accountant == FIXED else {"rate": "1/20"}
        other = make_private(engine, dataset=data(RECORDS), **both, **law)
    for first, second in zip(one[2], other[2], strict=True):
        step(one[0], one[1], first)
        step(other[0], other[1], second)
    assert len(engine.accountant) == 40
    assert engine.accountant.history[0][2] == (2 if accountant == SHUFFLED else 40)
    with pytest.raises(DrawsAndSteps, match=r"used by a step already|handed out none since"):
        for batch in one[2]:
            step(one[0], one[1], batch)
            step(other[0], other[1], batch)


def test_our_search_for_noise_of_poisson_samples() -> None:
    engine = PrivacyEngine(accountant=POISSON)
    module, optimizer = model()
    module, optimizer, loader = make_private_with_epsilon(
        engine,
        module=module,
        optimizer=optimizer,
        dataset=data(RECORDS),
        rate="1/20",
        epsilon=2,
        delta=DELTA,
        steps=60,
        max_grad_norm=1.0,
    )
    assert len(loader) == 20
    plan = cm.NoisySGD(batch=16, records=320, steps=60, noise_multiplier=1, sampling="poisson")
    assert optimizer.noise_multiplier == pytest.approx(
        float(plan.calibrated(epsilon=2, delta=DELTA).noise_multiplier), rel=1e-4
    )
    train(module, optimizer, loader, 3)
    assert 1.99 < engine.get_epsilon(DELTA) <= 2
    laws: list[dict[str, Any]] = [{}, {"sample": 16, "rate": "1/20"}]
    for law in laws:
        with pytest.raises(cm.InputError, match="one of them"):
            make_private_with_epsilon(
                PrivacyEngine(accountant=POISSON), dataset=data(RECORDS), epsilon=2, delta=DELTA, steps=60, **law
            )


def test_a_loader_belongs_to_one_engine() -> None:
    engine, *_, loader = made(SHUFFLED)
    module, optimizer = model()
    with pytest.raises(cm.InputError, match="accounted already"):
        engine.make_private(
            module=module,
            optimizer=optimizer,
            data_loader=loader,
            noise_multiplier=NOISE,
            max_grad_norm=1.0,
            poisson_sampling=False,
        )


def test_batches_out_of_order_are_refused() -> None:
    with pytest.raises(cm.InputError, match="in_order"):
        made(FIXED, loader={"num_workers": 2, "in_order": False})


def test_empty_batches_are_steps_too() -> None:
    engine = PrivacyEngine(accountant=POISSON)
    module, optimizer = model()
    module, optimizer, loader = make_private(
        engine,
        module=module,
        optimizer=optimizer,
        dataset=TensorDataset(*data(20).tensors),
        rate="1/1000000",
        steps=3,
        noise_multiplier=NOISE,
        max_grad_norm=1.0,
    )
    train(module, optimizer, loader)
    assert len(engine.accountant) == 3


def test_a_sampler_that_is_changed_afterwards() -> None:
    engine, module, optimizer, loader = made(POISSON, ours=False)
    loader.batch_sampler.sampler.sample_rate = 0.5
    with pytest.raises(cm.InputError, match=r"was 0\.05 and is 0\.5 now"):
        train(module, optimizer, loader)
    assert len(engine.accountant) == 0
    for accountant in (FIXED, POISSON, SHUFFLED):
        *_, loader = made(accountant)
        with pytest.raises(AttributeError):
            loader.batch_sampler.sampler = range(3)


def test_a_pass_that_draws_a_record_twice() -> None:
    found = made(SHUFFLED)
    _, module, optimizer, loader = found
    loader.batch_sampler.sampler.sampler = [7] * RECORDS
    refused(found, lambda: train(module, optimizer, loader), "second time in one pass", 0)
    found = made(SHUFFLED)
    _, module, optimizer, loader = found
    loader.batch_sampler.sampler.sampler = list(range(SAMPLE)) * 2
    refused(found, lambda: train(module, optimizer, loader), "second time in one pass", 1)


def test_noise_that_is_switched_off_after_the_first_step() -> None:
    engine, module, optimizer, loader = made(FIXED)
    batches = iter(loader)
    step(module, optimizer, next(batches))

    def add_none() -> None:
        for parameter in optimizer.params:
            parameter.grad = parameter.summed_grad

    optimizer.add_noise = add_none
    with pytest.raises(cm.InputError, match="adds no noise"):
        step(module, optimizer, next(batches))
    assert len(engine.accountant) == 1


@pytest.mark.parametrize("norm", [0.0, float("inf")])
def test_norms_that_clip_nothing(norm: float) -> None:
    engine, module, optimizer, loader = made(FIXED)
    optimizer.max_grad_norm = norm
    with pytest.raises(cm.InputError, match="max_grad_norm"):
        train(module, optimizer, loader)
    assert len(engine.accountant) == 0


def test_a_step_that_trains_nothing() -> None:
    engine, module, optimizer, loader = made(FIXED)
    for parameter in module.parameters():
        parameter.requires_grad_(False)
    with pytest.raises(cm.InputError, match="no parameter is trained"):
        for _ in loader:
            optimizer.step()
    assert len(engine.accountant) == 0


@pytest.mark.parametrize("hooks", [True, False])
def test_another_loss_beside_the_one_that_clips(hooks: bool) -> None:
    """Ghost clipping keeps sums in p.grad: a plain loss adds gradients to them that nobody has clipped."""
    engine = PrivacyEngine(accountant=FIXED)
    module, optimizer = model()
    module, optimizer, criterion, loader = make_private(
        engine,
        module=module,
        optimizer=optimizer,
        dataset=data(RECORDS),
        sample=SAMPLE,
        noise_multiplier=NOISE,
        max_grad_norm=1.0,
        grad_sample_mode="ghost",
        criterion=torch.nn.CrossEntropyLoss(),
    )
    batches = iter(loader)
    step(module, optimizer, next(batches), criterion)
    with BatchMemoryManager(data_loader=loader, max_physical_batch_size=8, optimizer=optimizer) as small:
        del batches
        for batch in small:
            step(module, optimizer, batch, criterion)
    assert len(engine.accountant) == 21
    before = weights(module)
    with pytest.raises(cm.InputError, match="added or changed after clipping"):
        for x, y in loader:
            optimizer.zero_grad()
            criterion(module(x), y).backward()
            if not hooks:
                module.disable_hooks()
            torch.nn.functional.cross_entropy(module(x), y).backward()
            optimizer.step()
    assert weights(module) == before
    assert len(engine.accountant) == 21
