"""Loops that a hostile reader wrote to get an epsilon for something that did not run."""

import copy
import itertools
import json
import multiprocessing
from typing import Any

import pytest
import torch
from opacus import PrivacyEngine
from opacus.utils.batch_memory_manager import BatchMemoryManager
from torch.utils.data import ConcatDataset, DataLoader, Subset

import cumulant as cm
from cumulant.integrations.opacus import DrawsAndSteps, make_private
from cumulant.integrations.opacus_loading import check_distinct
from tests.integrations.loops import DELTA, FIXED, POISSON, SHUFFLED, data, model, step, train, weights
from tests.integrations.test_opacus_steps import EVERY, NOISE, RECORDS, SAMPLE, made

COMMON: dict[str, Any] = {"noise_multiplier": NOISE, "max_grad_norm": 1.0}


@pytest.fixture(params=EVERY, ids=[f"{name}-{'ours' if ours else 'stock'}" for name, ours in EVERY])
def loop(request: pytest.FixtureRequest) -> tuple[Any, ...]:
    return made(*request.param)


def backward(module: Any, optimizer: Any, batch: Any) -> None:
    optimizer.zero_grad()
    torch.nn.functional.cross_entropy(module(batch[0]), batch[1]).backward()


# ---- weights that move without noise


def test_the_optimizer_inside_steps_before_the_accounted_one(loop: tuple[Any, ...]) -> None:
    engine, module, optimizer, loader = loop
    with pytest.raises(cm.InputError, match="the optimizer inside was asked for a step"):
        for batch in loader:
            backward(module, optimizer, batch)
            optimizer.original_optimizer.step()  # raw gradients
            optimizer.step()
    assert len(engine.accountant) == 0


def test_weights_that_are_changed_behind_the_back_of_autograd(loop: tuple[Any, ...]) -> None:
    engine, module, optimizer, loader = loop
    with pytest.raises(cm.InputError, match="weights changed between a draw and its step"):
        for batch in loader:
            backward(module, optimizer, batch)
            for parameter in module.parameters():
                parameter.data.sub_(parameter.grad)
            optimizer.step()
    assert len(engine.accountant) == 0


def test_weights_that_change_places(loop: tuple[Any, ...]) -> None:
    """Sums of bits did not see it: which of two weights is which can tell of a record."""
    engine, module, optimizer, loader = loop
    with pytest.raises(cm.InputError, match="weights changed between a draw and its step"):
        for batch in loader:
            backward(module, optimizer, batch)
            for parameter in module.parameters():
                parameter.data.copy_(parameter.data.flatten().roll(1).reshape(parameter.shape))
            optimizer.step()
    assert len(engine.accountant) == 0


def test_noise_that_is_used_twice(loop: tuple[Any, ...]) -> None:
    engine, module, optimizer, loader = loop
    generator = optimizer.generator or torch.default_generator
    state = generator.get_state()
    with pytest.raises(cm.InputError, match="noise generator was set back"):
        for batch in loader:
            generator.set_state(state)
            step(module, optimizer, batch)
    assert len(engine.accountant) == 1


def test_draws_that_are_chosen() -> None:
    engine, module, optimizer, loader = made(FIXED)
    sampler = loader.batch_sampler.sampler
    with pytest.raises(DrawsAndSteps, match="comes after draws of the same key that no step used"):
        for _ in range(20):
            state = sampler.state_dict(secret=True)
            number = next(k for k in itertools.count(state["step"]) if 0 in sampler.draw(k))
            sampler.load_state_dict({**state, "step": number})
            step(module, optimizer, next(iter(loader)))
    assert len(engine.accountant) < 20


def test_a_plain_optimizer_steps_before_the_accounted_one_in_ghost_mode() -> None:
    engine = PrivacyEngine(accountant=FIXED)
    module, optimizer = model()
    module, optimizer, criterion, loader = make_private(
        engine,
        module=module,
        optimizer=optimizer,
        dataset=data(RECORDS),
        sample=SAMPLE,
        criterion=torch.nn.CrossEntropyLoss(),
        grad_sample_mode="ghost",
        **COMMON,
    )
    plain = torch.optim.SGD(module.parameters(), lr=0.1)
    with pytest.raises(cm.InputError, match="weights changed between a draw and its step"):
        for batch in loader:
            optimizer.zero_grad()
            criterion(module(batch[0]), batch[1]).backward()
            plain.step()  # clipped, without noise
            optimizer.step()
    assert len(engine.accountant) == 0


def test_a_plain_optimizer_trains_what_the_accounted_one_does_not(loop: tuple[Any, ...]) -> None:
    engine = PrivacyEngine(accountant=POISSON)
    module = torch.nn.Sequential(torch.nn.Linear(8, 4), torch.nn.Linear(4, 3))
    head = torch.optim.SGD(module[1].parameters(), lr=0.1)
    module, optimizer, loader = make_private(
        engine,
        module=module,
        optimizer=torch.optim.SGD(module[0].parameters(), lr=0.1),
        dataset=data(RECORDS),
        rate=f"{SAMPLE}/{RECORDS}",
        **COMMON,
    )
    with pytest.raises(cm.InputError, match="trained by no accounted optimizer"):
        for batch in loader:
            step(module, optimizer, batch)
            head.step()  # raw gradients
    assert len(engine.accountant) == 1


def test_weights_that_change_between_steps_are_a_caveat(loop: tuple[Any, ...]) -> None:
    engine, module, optimizer, loader = loop
    batches = iter(loader)
    step(module, optimizer, next(batches))
    step(module, optimizer, next(batches))
    assert not any("weights changed between two steps" in caveat for caveat in engine.accountant.caveats)
    with torch.no_grad():
        next(module.parameters()).mul_(0.5)
    step(module, optimizer, next(batches))
    assert any("weights changed between two steps" in caveat for caveat in engine.accountant.caveats)


def test_a_weight_that_is_frozen_between_backward_and_step(loop: tuple[Any, ...]) -> None:
    engine, module, optimizer, loader = loop
    with pytest.raises(cm.InputError, match="has a gradient without noise"):
        for batch in loader:
            backward(module, optimizer, batch)
            next(module.parameters()).requires_grad_(False)
            optimizer.step()
    assert len(engine.accountant) == 0


def test_a_weight_that_is_frozen_between_steps_is_fine(loop: tuple[Any, ...]) -> None:
    engine, module, optimizer, loader = loop
    for number, batch in enumerate(loader):
        step(module, optimizer, batch)
        if number == 3:
            next(module.parameters()).requires_grad_(False)
    assert len(engine.accountant) == 20


# ---- sums that are not what the noise is made for


class Tokens(torch.nn.Module):
    """Every record becomes four rows of the second layer."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = torch.nn.Linear(8, 8, bias=False), torch.nn.Linear(2, 3, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.second(self.first(x).reshape(-1, 2)).reshape(len(x), 4, 3).sum(dim=1)


def refused_per_layer(
    accountant: str, module: torch.nn.Module, norms: list[float], match: str, **sampling: Any
) -> None:
    """Train with one clipping norm per layer, and expect that the first step is refused."""
    engine = PrivacyEngine(accountant=accountant)
    module, optimizer, loader = make_private(
        engine,
        module=module,
        optimizer=torch.optim.SGD(module.parameters(), lr=0.1),
        dataset=data(RECORDS),
        clipping="per_layer",
        noise_multiplier=NOISE,
        max_grad_norm=norms,
        **sampling,
    )
    with pytest.raises(DrawsAndSteps, match=match):
        train(module, optimizer, loader)
    assert len(engine.accountant) == 0


def test_clipping_per_layer_with_several_rows_for_one_record() -> None:
    refused_per_layer(FIXED, Tokens(), [0.6, 0.8], "others 64", sample=SAMPLE)


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_a_gradient_that_is_not_finite(loop: tuple[Any, ...], value: float) -> None:
    engine, module, optimizer, loader = loop
    before = weights(module)
    with pytest.raises(cm.InputError, match="not finite"):
        for x, y in loader:
            x[0, 0] = value  # one record of the batch
            step(module, optimizer, (x, y))
    assert len(engine.accountant) == 0
    assert weights(module) == before


def test_an_error_within_a_virtual_batch_leaves_no_sum_behind() -> None:
    engine, module, optimizer, loader = made(FIXED)
    x, y = next(batches := iter(loader))
    optimizer.signal_skip_step(True)
    step(module, optimizer, (x[:8], y[:8]))
    optimizer.zero_grad()
    with pytest.raises(ValueError, match="not initialized"):
        optimizer.step()  # no gradient is there
    optimizer._step_skip_queue.clear()
    step(module, optimizer, (x, y))
    assert len(engine.accountant) == 1
    assert all(float(p.summed_grad.norm()) <= SAMPLE for p in optimizer.params)
    del batches


@pytest.mark.parametrize("ours", [True, False])
def test_a_divisor_that_follows_the_sample(ours: bool) -> None:
    engine, module, optimizer, loader = made(POISSON, ours)
    with pytest.raises(cm.InputError, match="expected_batch_size"):
        for batch in loader:
            optimizer.expected_batch_size = len(batch[0]) + 0.5
            step(module, optimizer, batch)
    assert len(engine.accountant) == 0


@pytest.mark.parametrize("kind", [torch.bfloat16, torch.float16])
def test_weights_of_low_precision(kind: torch.dtype) -> None:
    engine = PrivacyEngine(accountant=FIXED)
    module = torch.nn.Linear(8, 3).to(kind)
    module, optimizer, loader = make_private(
        engine,
        module=module,
        optimizer=torch.optim.SGD(module.parameters(), lr=0.1),
        dataset=data(RECORDS),
        sample=SAMPLE,
        **COMMON,
    )
    with pytest.raises(cm.InputError, match="round the sum"):
        for x, y in loader:
            step(module, optimizer, (x.to(kind), y))
    assert len(engine.accountant) == 0


def test_autocast_is_a_caveat_if_gradients_are_of_low_precision(loop: tuple[Any, ...]) -> None:
    engine, module, optimizer, loader = loop
    for x, y in loader:
        optimizer.zero_grad()
        with torch.autocast("cpu", dtype=torch.bfloat16):
            torch.nn.functional.cross_entropy(module(x), y).backward()
        low = {parameter.grad_sample.dtype for parameter in optimizer.params} - {torch.float32}
        optimizer.step()
        break
    assert any("bfloat16" in caveat for caveat in engine.accountant.caveats) == bool(low)


# ---- draws that are used twice


def test_a_sampler_that_is_set_back(loop: tuple[Any, ...]) -> None:
    engine, module, optimizer, loader = made(FIXED)
    sampler = loader.batch_sampler.sampler
    start = sampler.state_dict(secret=True)
    train(module, optimizer, loader)
    sampler.load_state_dict(start)
    with pytest.raises(DrawsAndSteps, match="was drawn by the same key before"):
        train(module, optimizer, loader)
    assert len(engine.accountant) == 20


def test_two_loaders_with_one_key() -> None:
    engine = PrivacyEngine(accountant=FIXED)
    for number in range(2):
        module, optimizer = model()
        module, optimizer, loader = make_private(
            engine,
            module=module,
            optimizer=optimizer,
            dataset=data(RECORDS),
            sample=SAMPLE,
            key=bytes(range(32)),
            **COMMON,
        )
        if number == 0:
            train(module, optimizer, loader)
    with pytest.raises(DrawsAndSteps, match="was drawn by the same key before"):
        train(module, optimizer, loader)
    assert any("key that was given" in caveat for caveat in engine.accountant.caveats)


def test_a_resumed_run_with_the_same_key_starts_where_it_ended() -> None:
    key: dict[str, Any] = {"key": bytes(range(32))}
    engine, module, optimizer, loader = made(FIXED, **key)
    train(module, optimizer, loader)
    sampler, state = loader.batch_sampler.sampler.state_dict(secret=True), engine.accountant.state_dict()
    engine, module, optimizer, loader = made(FIXED, **key)
    engine.accountant.load_state_dict(state)
    with pytest.raises(DrawsAndSteps, match="was drawn by the same key before"):
        train(module, optimizer, loader)
    engine, module, optimizer, loader = made(FIXED, **key)
    engine.accountant.load_state_dict(state)
    loader.batch_sampler.sampler.load_state_dict(sampler)
    train(module, optimizer, loader)
    assert len(engine.accountant) == 40


WHOLE = data(RECORDS)


@pytest.mark.parametrize(
    "dataset",
    [
        Subset(WHOLE, [*range(RECORDS), 0]),
        Subset(WHOLE, [*range(RECORDS), -1]),
        Subset(Subset(WHOLE, range(40)), [*range(20), -40]),
        ConcatDataset([WHOLE] * 2),
        ConcatDataset([WHOLE, Subset(WHOLE, range(40))]),
        ConcatDataset([Subset(WHOLE, range(200)), Subset(WHOLE, range(199, RECORDS))]),
        ConcatDataset([ConcatDataset([WHOLE]), WHOLE]),
        Subset(ConcatDataset([data(RECORDS), WHOLE, ConcatDataset([WHOLE])]), [*range(20), RECORDS, 2 * RECORDS]),
    ],
    ids=["subset", "negative", "nested", "concat", "minority", "overlap", "nested concat", "subset of concat"],
)
@pytest.mark.parametrize("accountant", [FIXED, POISSON, SHUFFLED])
def test_a_data_set_that_has_a_record_twice(accountant: str, dataset: Any) -> None:
    engine = PrivacyEngine(accountant=accountant)
    module, optimizer = model()
    both = {"module": module, "optimizer": optimizer, **COMMON}
    with pytest.raises(cm.InputError, match="more than once"):
        if accountant == SHUFFLED:
            engine.make_private(data_loader=DataLoader(dataset, batch_size=SAMPLE), poisson_sampling=False, **both)
        else:
            law: dict[str, Any] = {"sample": SAMPLE} if accountant == FIXED else {"rate": "1/20"}
            make_private(engine, dataset=dataset, **both, **law)


def test_parts_of_a_data_set_that_do_not_overlap() -> None:
    parts = torch.utils.data.random_split(WHOLE, [200, RECORDS - 200])
    check_distinct(ConcatDataset([*parts, data(RECORDS), Subset(data(RECORDS), [])]))
    check_distinct(Subset(ConcatDataset([WHOLE, WHOLE]), torch.arange(RECORDS - 8, 2 * RECORDS - 8)))
    with pytest.raises(cm.InputError, match="beyond the"):
        check_distinct(Subset(WHOLE, [RECORDS]))
    with pytest.raises(cm.InputError, match="Give integers"):
        check_distinct(Subset(WHOLE, ["one"]))


# ---- copies and processes


def test_a_copied_optimizer(loop: tuple[Any, ...]) -> None:
    _, _, optimizer, _ = loop
    with pytest.raises(cm.InputError, match="copy"):
        copy.deepcopy(optimizer)


def test_a_forked_process_does_not_train(loop: tuple[Any, ...]) -> None:
    _, _, optimizer, loader = loop
    mine, other = multiprocessing.Pipe()

    def train_in_child() -> None:
        rows = len(next(iter(loader))[0])
        for parameter in optimizer.params:  # torch has no backward pass in a forked process
            parameter.grad_sample = torch.zeros(rows, *parameter.shape)
        try:
            optimizer.step()
            other.send("ran")
        except Exception as error:
            other.send(str(error))

    child = multiprocessing.get_context("fork").Process(target=train_in_child)
    child.start()
    assert mine.poll(60)
    assert "was forked" in mine.recv()
    child.join()


# ---- histories


def test_a_longer_history_of_another_run() -> None:
    other, module, optimizer, loader = made(FIXED)
    train(module, optimizer, loader, passes=2)
    engine, *rest = made(FIXED)
    train(*rest)
    with pytest.raises(cm.InputError, match="were accounted here"):
        engine.accountant.load_state_dict(other.accountant.state_dict())
    engine.accountant.load_state_dict(engine.accountant.state_dict())
    assert len(engine.accountant) == 20


def test_a_shuffled_history_keeps_every_entry() -> None:
    engine, *rest = made(SHUFFLED, False)
    state = engine.accountant.state_dict()
    state["history"] = [(4.0, "pass", 3), (NOISE, "pass", 1)]
    engine.accountant.load_state_dict(state)
    train(*rest)
    assert engine.accountant.history == [(4.0, "pass", 3), (NOISE, "pass", 2)]


def test_a_limit_that_is_lowered_later(loop: tuple[Any, ...]) -> None:
    engine, module, optimizer, loader = loop
    engine.accountant.limit = (100, DELTA)
    batches = iter(loader)
    step(module, optimizer, next(batches))
    engine.accountant.limit = (0.1, DELTA)
    with pytest.raises(cm.BudgetRefused):
        train(module, optimizer, batches)
        train(module, optimizer, loader)


def test_a_module_of_two_engines_is_a_caveat() -> None:
    _, module, optimizer, loader = made(FIXED)
    train(module, optimizer, loader)
    engine = PrivacyEngine(accountant=FIXED)
    module, optimizer, loader = make_private(
        engine,
        module=module,
        optimizer=torch.optim.SGD(module.parameters(), lr=0.1),
        dataset=data(RECORDS),
        sample=SAMPLE,
        **COMMON,
    )
    train(module, optimizer, loader)
    assert any("another engine" in caveat for caveat in engine.accountant.caveats)


def test_the_memory_manager_and_the_optimizer_inside() -> None:
    engine, module, optimizer, loader = made(FIXED)
    with (
        pytest.raises(cm.InputError, match="the optimizer inside was asked for a step"),
        BatchMemoryManager(data_loader=loader, max_physical_batch_size=4, optimizer=optimizer) as physical,
    ):
        for batch in physical:
            backward(module, optimizer, batch)
            optimizer.original_optimizer.step()
            optimizer.step()
    assert len(engine.accountant) == 0


# ---- sums, noise and buffers


def test_a_sum_that_is_multiplied_after_clipping(loop: tuple[Any, ...]) -> None:
    engine, module, optimizer, loader = loop
    clip = optimizer.clip_and_accumulate

    def multiplied() -> None:
        clip()
        for parameter in optimizer.params:
            parameter.summed_grad.data.mul_(100)

    optimizer.clip_and_accumulate = multiplied
    with pytest.raises(cm.InputError, match="the sum of clipped gradients was changed"):
        train(module, optimizer, loader)
    assert len(engine.accountant) == 0


def test_noise_that_is_replaced_by_the_sum(loop: tuple[Any, ...]) -> None:
    engine, module, optimizer, loader = loop
    add = optimizer.add_noise

    def replaced() -> None:
        raw = [parameter.summed_grad.clone() for parameter in optimizer.params]
        add()
        for parameter, found in zip(optimizer.params, raw, strict=True):
            parameter.grad = found

    optimizer.add_noise = replaced
    with pytest.raises(cm.InputError, match="the noisy gradient was changed"):
        train(module, optimizer, loader)
    assert len(engine.accountant) == 0


class RunningMean(torch.nn.Module):
    """Subtracts the mean of all records so far, or counts its calls."""

    mean: torch.Tensor

    def __init__(self, counts: bool, how: str = "in place") -> None:
        super().__init__()
        self.counts, self.how = counts, how
        self.register_buffer("mean", torch.zeros(8))
        self.register_buffer("calls", torch.zeros((), dtype=torch.long))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if self.counts:
            self.calls += 1
        elif len(x) and self.how == "replaced":
            self.mean = 0.9 * self.mean + 0.1 * x.detach().mean(0)
        elif len(x) and self.how == "added":
            self.register_buffer("late", x.detach().mean(0))
        elif len(x):
            self.mean.mul_(0.9).add_(0.1 * x.detach().mean(0))
        return x - self.mean


@pytest.mark.parametrize(("counts", "how"), [(True, ""), (False, "in place"), (False, "replaced"), (False, "added")])
def test_buffers_that_hold_statistics_of_records(counts: bool, how: str) -> None:
    """Also where a statement like `self.mean = ...` puts a new tensor into the place of a buffer."""
    engine = PrivacyEngine(accountant=FIXED)
    module = torch.nn.Sequential(RunningMean(counts, how), torch.nn.Linear(8, 3))
    module, optimizer, loader = make_private(
        engine,
        module=module,
        optimizer=torch.optim.SGD(module.parameters(), lr=0.1),
        dataset=data(RECORDS),
        sample=SAMPLE,
        **COMMON,
    )
    if counts:
        train(module, optimizer, loader)
        assert len(engine.accountant) == 20
        return
    with pytest.raises(cm.InputError, match="a buffer of the module changed"):
        train(module, optimizer, loader)
    assert len(engine.accountant) == 0


class OneRow(torch.nn.Module):
    """A layer sees one row for the whole batch, so that its gradient is clipped once for all records."""

    def __init__(self) -> None:
        super().__init__()
        self.shift, self.last = torch.nn.Embedding(1, 8), torch.nn.Linear(8, 3, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.last(x + self.shift(torch.zeros(1, dtype=torch.long)))


def test_clipping_per_layer_with_one_row_for_all_records() -> None:
    refused_per_layer(POISSON, OneRow(), [1.0, 1.0], "some weights have 1 gradients", rate=f"{SAMPLE}/{RECORDS}")


def test_entries_of_a_history_that_were_changed(loop: tuple[Any, ...]) -> None:
    engine, module, optimizer, loader = loop
    train(module, optimizer, loader)
    _, rate, count = engine.accountant.history[0]
    engine.accountant.history[0] = (50.0, rate, count)
    with pytest.raises(cm.InputError, match="entries of the history were changed"):
        engine.get_epsilon(DELTA)


# ---- samples that come again, and samples that are chosen


def test_samples_that_are_seeded_in_every_pass() -> None:
    engine = PrivacyEngine(accountant=POISSON)
    module, optimizer = model()
    module, optimizer, loader = engine.make_private(
        module=module,
        optimizer=optimizer,
        data_loader=DataLoader(data(RECORDS), batch_size=SAMPLE),
        noise_generator=torch.Generator().manual_seed(1),
        **COMMON,
    )
    with pytest.raises(DrawsAndSteps, match="the generator of samples was set back"):
        for _ in range(3):
            torch.manual_seed(0)  # noise has a generator of its own
            train(module, optimizer, loader)
    assert len(engine.accountant) == len(loader)


def test_loaders_that_are_thrown_away_until_a_sample_suits() -> None:
    records = 333  # a number that no other test has

    def again() -> tuple[Any, ...]:
        engine = PrivacyEngine(accountant=FIXED)
        module, optimizer = model()
        return engine, *make_private(
            engine, module=module, optimizer=optimizer, dataset=data(records), sample=9, steps=3, **COMMON
        )

    engine, wrapped, accounted, loader = again()
    train(wrapped, accounted, loader)
    assert not any("another loader" in caveat for caveat in engine.accountant.caveats)
    next(iter(again()[3]))
    engine, wrapped, accounted, loader = again()
    train(wrapped, accounted, loader)
    assert any("another loader of as many records" in caveat for caveat in engine.accountant.caveats)


def test_an_optimizer_that_is_made_private_twice() -> None:
    module, optimizer = model()
    given: dict[str, Any] = {"optimizer": optimizer, "dataset": data(RECORDS), "sample": SAMPLE, **COMMON}
    make_private(PrivacyEngine(accountant=FIXED), module=module, **given)
    module.autograd_grad_sample_hooks.clear()
    del module.autograd_grad_sample_hooks
    with pytest.raises(cm.InputError, match="this optimizer was made private before"):
        make_private(PrivacyEngine(accountant=FIXED), module=module, **given)


# ---- what else is trained


def test_a_plain_step_after_the_last_one_is_a_caveat(loop: tuple[Any, ...]) -> None:
    engine, module, optimizer, loader = loop
    train(module, optimizer, loader)
    assert not any("after the last step" in caveat for caveat in engine.accountant.caveats)
    with torch.no_grad():
        next(module.parameters()).sub_(0.1)
    assert any("weights changed after the last step" in caveat for caveat in engine.accountant.caveats)


def test_a_weight_outside_of_the_module_is_a_caveat(loop: tuple[Any, ...]) -> None:
    engine, module, optimizer, loader = loop
    shift = torch.nn.Parameter(torch.zeros(3))
    plain = torch.optim.SGD([shift], lr=0.1)
    plain.step()  # before the run
    batches = iter(loader)
    step(module, optimizer, next(batches))
    assert not any("another optimizer" in caveat for caveat in engine.accountant.caveats)
    features, label = next(batches)
    optimizer.zero_grad()
    torch.nn.functional.cross_entropy(module(features) + shift, label).backward()
    optimizer.step()
    plain.step()  # raw gradients
    step(module, optimizer, next(batches))
    assert any("another optimizer took steps during the run" in caveat for caveat in engine.accountant.caveats)
    assert any("only weights of the module were watched" in caveat for caveat in engine.accountant.caveats)


def test_a_weight_that_is_replaced_in_the_module() -> None:
    engine = PrivacyEngine(accountant=FIXED)
    module = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.Linear(8, 3))
    module[0].requires_grad_(False)
    module, optimizer, loader = make_private(
        engine,
        module=module,
        optimizer=torch.optim.SGD(module[1].parameters(), lr=0.1),
        dataset=data(RECORDS),
        sample=SAMPLE,
        **COMMON,
    )
    frozen = module._module[0]

    def replace(batch: Any) -> None:
        frozen.weight = torch.nn.Parameter(frozen.weight + batch[0].mean(0), requires_grad=False)

    batches = iter(loader)
    for _ in range(2):
        batch = next(batches)
        step(module, optimizer, batch)
        assert not any("weights changed" in caveat for caveat in engine.accountant.caveats)
    replace(batch)
    assert any("weights changed after the last step" in caveat for caveat in engine.accountant.caveats)
    step(module, optimizer, next(batches))
    assert any("weights changed between two steps" in caveat for caveat in engine.accountant.caveats)
    batch = next(batches)
    backward(module, optimizer, batch)
    replace(batch)
    with pytest.raises(cm.InputError, match="weights changed between a draw and its step"):
        optimizer.step()
    assert len(engine.accountant) == 3


def test_a_rate_that_is_changed_while_a_sample_is_drawn() -> None:
    engine, module, optimizer, loader = made(POISSON, ours=False)
    sampler = loader.batch_sampler.sampler
    rate, batches = sampler.sample_rate, iter(loader)
    sampler.sample_rate = 1.0
    with pytest.raises(cm.InputError, match="the rate of the sampler was"):
        next(batches)
    sampler.sample_rate = rate
    step(module, optimizer, next(iter(loader)))
    assert len(engine.accountant) == 1


def test_a_clipping_norm_that_follows_from_records_is_a_caveat(loop: tuple[Any, ...]) -> None:
    engine, module, optimizer, loader = loop
    batches = iter(loader)
    step(module, optimizer, next(batches))
    assert not any("clipping norm changed" in caveat for caveat in engine.accountant.caveats)
    backward(module, optimizer, next(batches))
    optimizer.max_grad_norm = 0.1 + float(next(module.parameters()).grad_sample.norm())
    optimizer.step()
    assert any("the clipping norm changed during the run" in caveat for caveat in engine.accountant.caveats)


# ---- further passes, older states, copies


def test_a_second_forward_pass_with_other_records_is_a_caveat(loop: tuple[Any, ...]) -> None:
    """Opacus adds the gradients of both passes row by row; with ghost clipping it refuses a second pass itself."""
    engine, module, optimizer, loader = loop
    batches, others = iter(loader), data(RECORDS).tensors[0]
    batch = next(batches)
    with torch.no_grad():
        module(others)  # no gradient comes from it
    step(module, optimizer, batch)
    assert not any("ran several times" in caveat for caveat in engine.accountant.caveats)
    features, label = next(batches)
    optimizer.zero_grad()
    torch.nn.functional.cross_entropy(module(features) + module(others[: len(features)]), label).backward()
    optimizer.step()
    assert any("the module ran several times for one step" in caveat for caveat in engine.accountant.caveats)


def test_physical_batches_are_one_pass_each() -> None:
    engine, module, optimizer, loader = made(FIXED)
    with BatchMemoryManager(data_loader=loader, max_physical_batch_size=4, optimizer=optimizer) as physical:
        train(module, optimizer, physical)
    assert len(engine.accountant) == 20
    assert not any("ran several times" in caveat for caveat in engine.accountant.caveats)


@pytest.mark.parametrize("later", [0, 5])
def test_weights_that_are_younger_than_the_loaded_state_are_a_caveat(later: int) -> None:
    """The state of step 5 with the weights of step 10: in a new process nothing else tells."""
    engine, module, optimizer, loader = made(FIXED)
    batches = iter(loader)
    for _ in range(5):
        step(module, optimizer, next(batches))
    state = json.loads(json.dumps(engine.accountant.state_dict()))
    for _ in range(later):
        step(module, optimizer, next(batches))
    resumed, other, accounted, loader = made(FIXED)
    other.load_state_dict(module.state_dict())
    resumed.accountant.load_state_dict(state)
    assert resumed.accountant.state_dict()["weights"] == state["weights"]
    step(other, accounted, next(iter(loader)))
    assert len(resumed.accountant) == 6
    found = any("were not those of the loaded state" in caveat for caveat in resumed.accountant.caveats)
    assert found == bool(later)


def test_a_copy_of_a_module_that_another_engine_trained_is_a_caveat() -> None:
    first, module, optimizer, loader = made(FIXED)
    train(module, optimizer, loader)
    copied, plain = model()
    copied.load_state_dict(module._module.state_dict())
    engine = PrivacyEngine(accountant=FIXED)
    make_private(
        engine,
        module=copied,
        optimizer=plain,
        dataset=data(RECORDS),
        sample=SAMPLE,
        **COMMON,
    )
    assert any("another engine" in caveat for caveat in engine.accountant.caveats)
    assert not any("another engine" in caveat for caveat in first.accountant.caveats)
    assert not any("another engine" in caveat for caveat in made(FIXED)[0].accountant.caveats)


def test_noise_that_follows_from_records_is_a_caveat() -> None:
    """Composition is about parameters that were fixed in advance; what outputs or records choose needs a filter."""
    engine, module, optimizer, loader = made(FIXED)
    batches = iter(loader)
    features, label = next(batches)
    step(module, optimizer, (features, label))
    assert not any("noise or the sampling changed" in caveat for caveat in engine.accountant.caveats)
    optimizer.noise_multiplier = 2 + float(features.abs().mean())
    step(module, optimizer, next(batches))
    assert any("the noise or the sampling changed during the run" in caveat for caveat in engine.accountant.caveats)
