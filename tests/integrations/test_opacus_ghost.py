"""Ghost clipping: loops in which the backward pass does not see every part of every gradient are refused."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from opacus import PrivacyEngine
from opacus.layers import DPLSTM
from opacus.utils.adaptive_clipping.adaptive_clipping_utils import PrivacyEngineAdaptiveClipping
from opacus.utils.batch_memory_manager import BatchMemoryManager
from torch.utils.data import TensorDataset

import cumulant as cm
from cumulant.integrations.opacus import make_private
from cumulant.integrations.opacus_ghost import graph_uses, linear_norms
from tests.integrations.loops import FIXED, POISSON, data

RECORDS, SAMPLE, NOISE = 320, 16, 2.0
Linear = torch.nn.Linear


def ghost(module: Any, engine: Any = None, criterion: Any = None, dataset: Any = None, **options: Any) -> Any:
    engine = engine or PrivacyEngine(accountant=FIXED)
    law = {"sample": SAMPLE} if engine.accountant.name == FIXED else {"rate": f"{SAMPLE}/{RECORDS}"}
    return engine, *make_private(
        engine,
        module=module,
        optimizer=torch.optim.SGD(module.parameters(), lr=0.1),
        dataset=dataset or data(RECORDS),
        criterion=criterion or torch.nn.CrossEntropyLoss(),
        **{"grad_sample_mode": "ghost", "noise_multiplier": NOISE, "max_grad_norm": 1.0, "steps": 4, **law, **options},
    )


def step(made: Any, batch: Any, extra: Callable[[Any], Any] | None = None) -> None:
    _, module, optimizer, criterion, _ = made
    optimizer.zero_grad()
    loss = criterion(module(batch[0]), batch[1])
    (loss if extra is None else loss + extra(module)).backward()
    optimizer.step()


def train(made: Any, extra: Callable[[Any], Any] | None = None) -> None:
    for batch in made[-1]:
        step(made, batch, extra)


def refused(made: Any, said: str, run: Callable[[], None], accounted: int = 0) -> None:
    with pytest.raises(cm.InputError, match=said):
        run()
    assert len(made[0].accountant) == accounted
    assert made[-1].batch_sampler.draws.used == accounted


class Shared(torch.nn.Module):
    """The first layer is used a second time, by a function that no hook sees."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.last = Linear(8, 8), Linear(8, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.last(torch.nn.functional.linear(self.first(x), self.first.weight))


class Scale(torch.nn.Module):
    """A layer of one's own that uses its weight twice."""

    def __init__(self) -> None:
        super().__init__()
        self.scale = torch.nn.Parameter(torch.ones(8))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * self.scale + self.scale


class Sequence(torch.nn.Module):
    """A recurrent layer uses its weights once for every step of a sequence."""

    def __init__(self) -> None:
        super().__init__()
        self.recurrent, self.last = DPLSTM(2, 5, batch_first=True), Linear(5, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.last(self.recurrent(x.reshape(-1, 4, 2))[0][:, -1])


class Convolution(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = torch.nn.Sequential(
            torch.nn.Conv1d(1, 4, 3), torch.nn.GroupNorm(2, 4), torch.nn.ReLU(), torch.nn.Flatten(), Linear(24, 3)
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.layers(x[:, None])


class Fourier(torch.nn.Module):
    """A layer without weights whose gradients are complex, of float32."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.fft.fft(x).abs()


HONEST = {
    "complex": lambda: torch.nn.Sequential(Linear(8, 8), Fourier(), Linear(8, 3)),
    "linear": lambda: Linear(8, 3),
    "layers": lambda: torch.nn.Sequential(Linear(8, 8), torch.nn.LayerNorm(8), torch.nn.Dropout(0.1), Linear(8, 3)),
    "own layer": lambda: torch.nn.Sequential(Linear(8, 8), Scale(), Linear(8, 3)),
    "recurrent": Sequence,
    "convolution": Convolution,
}


@pytest.mark.parametrize("name", HONEST)
def test_what_opacus_clips_is_accounted(name: str) -> None:
    made = ghost(HONEST[name]())
    train(made)
    assert made[0].accountant.history == [(NOISE, "16/320", 4)]


def test_poisson_samples_and_physical_batches() -> None:
    made = ghost(torch.nn.Sequential(Linear(8, 8), Linear(8, 3)), PrivacyEngine(accountant=POISSON))
    engine, module, optimizer, criterion, loader = made
    with BatchMemoryManager(data_loader=loader, max_physical_batch_size=5, optimizer=optimizer) as physical:
        train((engine, module, optimizer, criterion, physical))
    assert len(engine.accountant) == 4


def test_who_only_looks_at_norms_changes_nothing() -> None:
    made = ghost(Linear(8, 3))
    _, module, optimizer, criterion, loader = made
    for batch in loader:
        optimizer.zero_grad()
        criterion(module(batch[0]), batch[1]).backward()
        assert module.get_norm_sample().shape == (SAMPLE,)
        optimizer.step()
    assert len(made[0].accountant) == 4


# ---- layers whose norms Opacus does not know


@pytest.mark.parametrize("convolution", [torch.nn.Conv1d, torch.nn.Conv2d, torch.nn.Conv3d])
@pytest.mark.parametrize("padding", ["circular", "reflect", "replicate"])
def test_norms_for_another_padding(convolution: Any, padding: str) -> None:
    """A record with sums of taps that vanish except for zeros moved the sum by 7 norms: 2.057 was said, 15.98 is needed."""
    engine = PrivacyEngine(accountant=FIXED)
    with pytest.raises(cm.InputError, match="Opacus computes norms of gradients for zeros"):
        ghost(convolution(1, 4, 3, padding=1, padding_mode=padding), engine)
    assert not len(engine.accountant)


@pytest.mark.parametrize("mode", ["ghost", "hooks"])
@pytest.mark.parametrize("embedding", [torch.nn.Embedding, torch.nn.EmbeddingBag])
def test_gradients_that_are_divided_by_counts_of_the_batch(embedding: Any, mode: str) -> None:
    engine = PrivacyEngine(accountant=FIXED)
    with pytest.raises(cm.InputError, match="counts of the whole batch"):
        ghost(embedding(10, 8, scale_grad_by_freq=True), engine, grad_sample_mode=mode)
    assert not len(engine.accountant)


def test_a_padding_that_changes_during_the_run() -> None:
    convolution = torch.nn.Conv1d(1, 4, 3, padding=1)
    made = ghost(torch.nn.Sequential(torch.nn.Unflatten(1, (1, 8)), convolution, torch.nn.Flatten(), Linear(32, 3)))
    batches = iter(made[-1])
    step(made, next(batches))
    convolution.padding_mode = "circular"
    refused(made, "Opacus computes norms of gradients for zeros", lambda: step(made, next(batches)), accounted=1)


class Difference(torch.nn.Module):
    """Compares two places: the gradients of both are long, and nearly cancel."""

    def __init__(self, low: bool) -> None:
        super().__init__()
        self.map, self.low = Linear(8, 3), low

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=self.low):
            found = self.map(x)
        return (found[:, 0] - found[:, 1]).float()


def places(offset: float) -> TensorDataset:
    torch.manual_seed(0)
    x = 4 * torch.randn(RECORDS, 2, 8)
    x[0], x[0, 0] = offset, offset + 3
    return TensorDataset(x, torch.ones(RECORDS, dtype=torch.long))


@pytest.mark.parametrize("offset", [1e3, 3e4, 1e7])
def test_a_gradient_whose_parts_nearly_cancel_is_clipped(offset: float) -> None:
    """With the norm of Opacus, which is 0 by rounding, a record of norm 10 was not clipped."""
    made = ghost(Difference(low=False), dataset=places(offset), sample=RECORDS, max_grad_norm=1e-3)
    _, module, optimizer, criterion, loader = made
    for x, label in loader:
        first = int((x[:, 0, 0] == offset + 3).nonzero()[0, 0])
        copied = Linear(8, 3).double()
        copied.load_state_dict(module._module.map.state_dict())
        found = copied(x[first].double())
        torch.nn.functional.cross_entropy((found[0] - found[1])[None], label[first : first + 1]).backward()
        length = torch.cat([weight.grad.flatten() for weight in copied.parameters() if weight.grad is not None]).norm()
        optimizer.zero_grad()
        criterion(module(x), label).backward()
        norms = torch.stack([weight._norm_sample for weight in module.parameters()]).norm(dim=0)
        assert float(norms[first]) >= float(length) * (1 - 1e-6)
        optimizer.step()
    assert len(made[0].accountant) == 4


def test_autocast_is_refused() -> None:
    """The sum of clipped gradients is rounded to bfloat16; 2.974 was said, 25.4 is needed."""
    made = ghost(Difference(low=True), dataset=places(128.0))
    refused(made, "gradients are computed in torch.bfloat16", lambda: train(made))


def test_autocast_within_a_layer_is_refused() -> None:
    class Own(Scale):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return (x.bfloat16() * self.scale.bfloat16()).float()

    made = ghost(torch.nn.Sequential(Linear(8, 8), Own(), Linear(8, 3)))
    refused(made, "gradients are computed in torch.bfloat16", lambda: train(made))


@pytest.mark.parametrize("shape", [(5,), (7, 5), (2, 3, 5), (40, 5), (1, 5)])
@pytest.mark.parametrize("records", [0, 6])
def test_norms_of_linear_layers_bound_their_gradients(shape: tuple[int, ...], records: int) -> None:
    torch.manual_seed(0)
    layer = Linear(5, 3)
    inputs, flows = torch.randn(records, *shape), torch.randn(records, *shape[:-1], 3)
    found = linear_norms(layer, [inputs], flows)
    one_by_one = zip(flows.double(), inputs.double(), strict=True)
    parts = [(b.reshape(-1, 3), a.reshape(-1, 5)) for b, a in one_by_one]
    for weight, norms in (
        (layer.weight, [(b.mT @ a).norm() for b, a in parts]),
        (layer.bias, [b.sum(0).norm() for b, _ in parts]),
    ):
        assert found[weight].shape == (records,)
        for got, true in zip(found[weight], norms, strict=True):
            assert true * (1 - 1e-6) <= got <= true * 1.01


# ---- uses that no layer sees


def test_a_weight_that_a_function_uses_too() -> None:
    made = ghost(Shared())
    refused(made, "a weight is used outside of its layer", lambda: train(made))


def test_a_penalty_on_weights() -> None:
    made = ghost(Linear(8, 3))

    def penalty(module: Any) -> Any:
        return 0.01 * sum(weight.pow(2).sum() for weight in module.parameters())

    refused(made, "a weight is used outside of its layer", lambda: train(made, penalty))


def test_uses_are_counted_by_edges() -> None:
    weight, x = torch.ones(3, requires_grad=True), torch.ones(3, requires_grad=True)
    given = weight * x
    result = given * weight + weight
    assert graph_uses([result])[weight] == 3
    assert graph_uses([result], [given])[weight] == 2


# ---- norms that are not those of this batch


def test_a_layer_that_is_unfrozen_later() -> None:
    module = torch.nn.Sequential(Linear(8, 8), Linear(8, 3))
    module[0].requires_grad_(False)
    made = ghost(module)
    batches = iter(made[-1])
    step(made, next(batches))
    made[1]._module[0].requires_grad_(True)
    refused(made, "was frozen at make_private", lambda: step(made, next(batches)), 1)


def test_a_layer_that_is_frozen_later() -> None:
    made = ghost(torch.nn.Sequential(Linear(8, 8), Linear(8, 3)))
    batches = iter(made[-1])
    step(made, next(batches))
    made[1]._module[0].requires_grad_(False)
    refused(made, "norms of an earlier batch would clip instead", lambda: step(made, next(batches)), 1)


# ---- losses that are not scaled record by record


def test_a_loss_with_a_second_dimension_is_scaled_by_the_sum_of_all_factors() -> None:
    dataset = TensorDataset(torch.randn(RECORDS, 8), 0.01 * torch.randn(RECORDS, 1))
    module = Linear(8, 1)
    torch.nn.init.zeros_(module.weight)
    made = ghost(module, criterion=torch.nn.MSELoss(), dataset=dataset)
    refused(made, "the loss has the shape", lambda: train(made))


def test_a_criterion_with_another_reduction() -> None:
    made = ghost(Linear(8, 3), criterion=torch.nn.CrossEntropyLoss(reduction="sum"), loss_reduction="sum")
    made[3].loss_reduction = "mean"
    refused(made, "norms were computed for 'sum'", lambda: train(made))


def test_two_passes_by_hand_that_leave_the_factors_out() -> None:
    made = ghost(Linear(8, 3))
    _, module, optimizer, _, loader = made

    def run() -> None:
        for features, label in loader:
            losses = torch.nn.functional.cross_entropy(module(features), label, reduction="none")
            losses.mean().backward(retain_graph=True)
            optimizer.zero_grad()
            module.get_clipping_coef()
            module.disable_hooks()
            (0.1 * losses.sum()).backward()
            module.enable_hooks()
            optimizer.step()

    refused(made, "gradients were added or changed after clipping", run)


# ---- adaptive clipping


class OneByOne:
    """A criterion that returns one number for each record."""

    def __call__(self, logits: Any, label: Any) -> Any:
        return torch.nn.functional.cross_entropy(logits, label, reduction="none")


def adaptive(criterion: Any) -> Any:
    return ghost(
        Linear(8, 3),
        PrivacyEngineAdaptiveClipping(accountant=FIXED),
        criterion,
        sample=64,
        noise_multiplier=1.0,
        min_clipbound=0.1,
        max_clipbound=10.0,
    )


def test_adaptive_ghost_clipping_is_accounted_where_it_clips() -> None:
    made = adaptive(OneByOne())
    train(made)
    assert made[0].accountant.history == [(1.0, "64/320", 4)]


def test_adaptive_ghost_clipping_of_a_mean_clips_nobody() -> None:
    made = adaptive(torch.nn.CrossEntropyLoss())  # Opacus 1.6.0 scales the mean of all losses by the sum of all factors
    refused(made, "the loss has the shape", lambda: train(made))


def test_a_noise_that_is_changed_under_adaptive_ghost_clipping() -> None:
    made = adaptive(OneByOne())
    made[2].noise_multiplier = 20.0
    refused(made, "adaptive clipping makes noise for 1", lambda: train(made))
