"""Loops that change the gradient between noise and update, or choose keys of samplers."""

from typing import Any

import pytest
import torch
from opacus import PrivacyEngine
from torch.optim.optimizer import register_optimizer_step_pre_hook

import cumulant as cm
from cumulant.integrations.opacus import DrawsAndSteps, make_private
from tests.integrations.loops import FIXED, data, model, step, train, weights
from tests.integrations.test_opacus_steps import EVERY, NOISE, RECORDS, SAMPLE, made

CHANGED = "the noisy gradient was changed after noise was added"


@pytest.fixture(params=EVERY, ids=[f"{name}-{'ours' if ours else 'stock'}" for name, ours in EVERY])
def loop(request: pytest.FixtureRequest) -> tuple[Any, ...]:
    return made(*request.param)


def without_noise(module: Any) -> None:
    """Put the clipped sum, which has no noise, in the place of the noisy gradient."""
    for weight in module.parameters():
        weight.grad = weight.summed_grad.clone()


def test_a_hook_of_the_optimizer_inside_takes_the_noise_away(loop: tuple[Any, ...]) -> None:
    _, module, optimizer, loader = loop
    batches = iter(loader)
    step(module, optimizer, next(batches))
    before = weights(module)
    optimizer.original_optimizer.register_step_pre_hook(lambda *given: without_noise(module))
    with pytest.raises(cm.InputError, match=CHANGED):
        step(module, optimizer, next(batches))
    assert weights(module) == before
    assert all(weight.grad is None for weight in module.parameters())


def test_a_hook_of_all_optimizers_takes_the_noise_away(loop: tuple[Any, ...]) -> None:
    _, module, optimizer, loader = loop
    before = weights(module)
    handle = register_optimizer_step_pre_hook(lambda *given: without_noise(module))
    try:
        with pytest.raises(cm.InputError, match=CHANGED):
            step(module, optimizer, next(iter(loader)))
    finally:
        handle.remove()
    assert weights(module) == before


@pytest.mark.parametrize("wrapped", [True, False])
def test_a_step_hook_takes_the_noise_away(loop: tuple[Any, ...], wrapped: bool) -> None:
    _, module, optimizer, loader = loop
    ours, before = optimizer.step_hook, weights(module)

    def hook(given: Any) -> None:
        if wrapped:
            ours(given)
        for weight in module.parameters():
            weight.grad.data.copy_(weight.summed_grad)  # no version of the gradient counts this

    optimizer.attach_step_hook(hook)
    with pytest.raises(cm.InputError, match=CHANGED):
        step(module, optimizer, next(iter(loader)))
    assert weights(module) == before


def test_the_optimizer_inside_is_replaced(loop: tuple[Any, ...]) -> None:
    _, module, optimizer, loader = loop
    before = weights(module)
    optimizer.original_optimizer = torch.optim.SGD(module.parameters(), lr=0.1)
    with pytest.raises(cm.InputError, match="original_optimizer was replaced"):
        step(module, optimizer, next(iter(loader)))
    assert weights(module) == before


def test_the_optimizer_inside_steps_after_the_accounted_one(loop: tuple[Any, ...]) -> None:
    engine, module, optimizer, loader = loop
    step(module, optimizer, next(iter(loader)))
    before = weights(module)
    without_noise(module)
    with pytest.raises(cm.InputError, match="the optimizer inside was asked for a step"):
        optimizer.original_optimizer.step()
    assert weights(module) == before
    assert len(engine.accountant) == 1


def test_hooks_that_only_look_are_fine(loop: tuple[Any, ...]) -> None:
    engine, module, optimizer, loader = loop
    seen, inner = list[float](), next(module.parameters())
    optimizer.original_optimizer.register_step_pre_hook(lambda *given: seen.append(float(inner.grad.norm())))
    train(module, optimizer, loader)
    assert len(seen) == len(engine.accountant) == 20


# ---- states of optimizers, histories


def with_momentum() -> tuple[Any, ...]:
    engine = PrivacyEngine(accountant=FIXED)
    module = torch.nn.Linear(8, 3)
    optimizer = torch.optim.SGD(module.parameters(), lr=0.1, momentum=0.9)
    arguments: dict[str, Any] = {"sample": SAMPLE, "noise_multiplier": NOISE, "max_grad_norm": 1.0}
    return engine, *make_private(engine, module=module, optimizer=optimizer, dataset=data(RECORDS), **arguments)


def test_raw_gradients_in_the_momentum() -> None:
    engine, module, optimizer, loader = with_momentum()
    train(module, optimizer, loader)
    before = weights(module)
    batch = next(iter(loader))
    optimizer.zero_grad()
    torch.nn.functional.cross_entropy(module(batch[0]), batch[1]).backward()
    for weight in module.parameters():
        optimizer.state[weight]["momentum_buffer"].add_(1000 * weight.grad)
    with pytest.raises(cm.InputError, match="the state of the optimizer changed between a draw and its step"):
        optimizer.step()
    assert weights(module) == before
    assert len(engine.accountant) == 20


def test_momentum_that_is_cleared_between_steps_is_a_caveat() -> None:
    engine, module, optimizer, loader = with_momentum()
    train(module, optimizer, loader)
    assert not any("state of the optimizer" in caveat for caveat in engine.accountant.caveats)
    for weight in module.parameters():
        optimizer.state[weight]["momentum_buffer"].zero_()
    train(module, optimizer, loader)
    assert any("state of the optimizer changed between two steps" in caveat for caveat in engine.accountant.caveats)


def test_a_history_that_was_shortened(loop: tuple[Any, ...]) -> None:
    engine, module, optimizer, loader = loop
    train(module, optimizer, loader, passes=2)
    engine.accountant.history.clear()
    with pytest.raises(cm.InputError, match="steps were removed from it"):
        engine.get_epsilon(1e-5)


@pytest.mark.parametrize("mode", ["hooks", "ghost"])
def test_a_module_without_a_wrapper(mode: str) -> None:
    with pytest.raises(cm.InputError, match="wrap_model=False leaves nothing that could be watched"):
        made(FIXED, grad_sample_mode=mode, wrap_model=False)


# ---- hooks of weights with ghost clipping, where gradients are clipped by the backward pass


def ghost() -> tuple[Any, ...]:
    engine = PrivacyEngine(accountant=FIXED)
    module, optimizer = model()
    return engine, *make_private(
        engine,
        module=module,
        optimizer=optimizer,
        dataset=data(RECORDS),
        sample=SAMPLE,
        criterion=torch.nn.CrossEntropyLoss(),
        grad_sample_mode="ghost",
        noise_multiplier=NOISE,
        max_grad_norm=1.0,
    )


def enlarge(weight: Any) -> None:
    weight.grad.mul_(100)


@pytest.mark.parametrize("late", [True, False])
def test_a_hook_of_a_weight_multiplies_what_was_clipped(late: bool) -> None:
    engine, module, optimizer, criterion, loader = ghost()
    weight, before = next(module.parameters()), weights(module)
    if late:
        weight.register_post_accumulate_grad_hook(enlarge)
    else:
        weight.register_hook(lambda gradient: 100 * gradient)
    batch = next(iter(loader))
    optimizer.zero_grad()
    with pytest.raises(cm.InputError, match="a hook of a weight may change"):
        criterion(module(batch[0]), batch[1]).backward()
    with pytest.raises(cm.InputError, match="a hook of a weight may change its gradient after clipping"):
        optimizer.step()
    assert weights(module) == before
    assert len(engine.accountant) == 0


def test_a_layer_that_bounds_what_flows_back_undoes_ghost_clipping() -> None:
    """The second backward pass scales losses down by the norm, and a bound per number does not follow."""
    engine, module, optimizer, criterion, loader = ghost()
    batch = next(iter(loader))
    optimizer.zero_grad()
    output = module(30 * batch[0])
    output.register_hook(torch.sign)
    criterion(output, batch[1]).backward()
    with pytest.raises(cm.InputError, match="sum of clipped gradients is longer than"):
        optimizer.step()
    assert len(engine.accountant) == 0


# ---- keys


def test_new_keys_until_a_sample_suits() -> None:
    engine, module, optimizer, loader = made(FIXED)
    sampler = loader.batch_sampler.sampler
    while 0 not in sampler.draw(sampler.step):
        sampler.load_state_dict(sampler.state_dict())
    step(module, optimizer, next(iter(loader)))
    sampler.load_state_dict(sampler.state_dict())
    while 0 not in sampler.draw(sampler.step):
        sampler.load_state_dict(sampler.state_dict())
    with pytest.raises(DrawsAndSteps, match="comes from another key than the draws before"):
        step(module, optimizer, next(iter(loader)))
    assert len(engine.accountant) == 1


def test_a_key_that_is_loaded_before_the_first_step_is_a_caveat() -> None:
    engine, module, optimizer, loader = made(FIXED)
    train(module, optimizer, loader)
    assert not any("after make_private" in caveat for caveat in engine.accountant.caveats)
    engine, module, optimizer, loader = made(FIXED)
    sampler = loader.batch_sampler.sampler
    sampler.load_state_dict(sampler.state_dict())
    train(module, optimizer, loader)
    assert any("a key that was set after make_private" in caveat for caveat in engine.accountant.caveats)
