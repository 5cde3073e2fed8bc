"""Ghost clipping: loops in which the backward pass does not see every part of every gradient are refused."""

import copy
from collections.abc import Callable
from typing import Any

import pytest
import torch
from opacus import PrivacyEngine
from opacus.layers import DPGRU, DPLSTM, DPRNN, DPMultiheadAttention
from opacus.utils.adaptive_clipping.adaptive_clipping_utils import PrivacyEngineAdaptiveClipping
from opacus.utils.batch_memory_manager import BatchMemoryManager
from torch.utils.checkpoint import checkpoint
from torch.utils.data import TensorDataset

import cumulant as cm
from cumulant.integrations.opacus import make_private
from cumulant.integrations.opacus_ghost import ACCOUNTED_LAYERS, EXACT_ARITHMETIC, graph_uses, linear_norms
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
    """A layer of one's own, which is accounted in the mode 'hooks' alone."""

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


class With(torch.nn.Module):
    """A layer, and how it is called."""

    def __init__(self, layer: Any, call: Callable[[Any, torch.Tensor], torch.Tensor]) -> None:
        super().__init__()
        self.layer, self.call = layer, call

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.call(self.layer, x)


class Squares:
    """A criterion whose gradients flow back to every number of the output, with unlike weights."""

    reduction = "mean"

    def __call__(self, found: torch.Tensor, label: Any) -> torch.Tensor:
        flat = found.flatten(1)
        losses = (flat**2 + flat * torch.arange(flat.shape[1])).sum(1)
        return losses if self.reduction == "none" else losses.mean()


def tokens(layer: Any, x: torch.Tensor) -> torch.Tensor:
    found: torch.Tensor = layer((x.abs() * 2).long().clamp(max=4))
    return found


def first(layer: Any, x: torch.Tensor) -> torch.Tensor:
    found: torch.Tensor = layer(x)[0]
    return found


def attention(layer: Any, x: torch.Tensor) -> torch.Tensor:
    found: torch.Tensor = layer(x, x, x)[0]
    return found


def packed(layer: Any, x: torch.Tensor) -> torch.Tensor:
    lengths = [5, 5, 4, 2, 2, 1][: len(x)]
    hidden: torch.Tensor = layer(torch.nn.utils.rnn.pack_padded_sequence(x, lengths, batch_first=True))[1]
    return hidden[-1]


def twice(layer: Any, x: torch.Tensor) -> torch.Tensor:
    found: torch.Tensor = layer(torch.tanh(layer(x)))
    return found


EXACT: dict[str, tuple[Any, tuple[int, ...], float]] = {
    "linear": (Linear(4, 3), (4,), 1.0),
    "linear on a sequence": (Linear(4, 3), (5, 4), 1.001),
    "lstm": (With(DPLSTM(4, 3, batch_first=True, num_layers=2, bidirectional=True), first), (5, 4), 1.0),
    "lstm, one output": (With(DPLSTM(4, 3, batch_first=True), lambda layer, x: layer(x)[0][:, 0]), (5, 4), 1.0),
    "gru": (With(DPGRU(4, 3, batch_first=True), first), (5, 4), 1.0),
    "rnn": (With(DPRNN(4, 3, batch_first=True), first), (5, 4), 1.0),
    "attention": (With(DPMultiheadAttention(4, 2, batch_first=True), attention), (5, 4), 1.001),
    "embedding": (With(torch.nn.Embedding(5, 3), tokens), (7,), 1.001),
    "embedding of one token": (With(torch.nn.Embedding(5, 3), tokens), (), 1.0),
    "embedding of tables": (With(torch.nn.Embedding(5, 3), tokens), (2, 4), 1.001),
    "embedding with padding": (With(torch.nn.Embedding(5, 3, padding_idx=0), tokens), (7,), 10.0),
    "layer norm": (torch.nn.LayerNorm((5, 4)), (3, 5, 4), 1.0),
    "group norm": (torch.nn.GroupNorm(2, 4), (4, 5), 1.0),
    "root mean square": (torch.nn.RMSNorm(4, eps=0.1), (5, 4), 1.0),
    "instance norm 1": (torch.nn.InstanceNorm1d(4, affine=True), (4, 5), 1.0),
    "instance norm 2": (torch.nn.InstanceNorm2d(4, affine=True), (4, 5, 3), 1.0),
    "instance norm 3": (torch.nn.InstanceNorm3d(4, affine=True), (4, 2, 5, 3), 1.0),
    "a convolution twice": (With(torch.nn.Conv1d(2, 2, 3, padding=1), twice), (2, 6), 1.0),
    **{
        f"convolution {dimensions} {options}": (
            convolution(4, 6, **{"kernel_size": 3, **options}),
            (4, 7, 8, 9)[: dimensions + 1],
            1.0,
        )
        for dimensions, convolution in enumerate((torch.nn.Conv1d, torch.nn.Conv2d, torch.nn.Conv3d), 1)
        for options in (
            {"stride": 2, "bias": False},
            {"padding": 1, "dilation": 2},
            {"groups": 2},
            {"padding": "same", "kernel_size": 2},
            {"padding": "same", "dilation": 2},
            {"padding": "valid"},
            {"stride": 2, "padding": 1, "dilation": 2, "groups": 2},
        )
    },
}


@pytest.mark.parametrize("name", EXACT)
def test_norms_of_accounted_layers_are_those_of_their_gradients(name: str) -> None:
    """Every type in the table of accounted layers, against gradients of one record at a time."""
    module, shape, most = EXACT[name]
    torch.manual_seed(0)
    compare_norms(copy.deepcopy(module), torch.randn(6, *shape), most)


def compare_norms(module: Any, x: torch.Tensor, most: float) -> None:
    trained = list(module.parameters())
    true = [torch.autograd.grad(Squares()(module(x[i : i + 1]), None), trained) for i in range(len(x))]
    lengths = torch.stack([torch.cat([part.flatten() for part in parts]).norm() for parts in true])
    made = ghost(module, criterion=Squares(), dataset=TensorDataset(x, torch.zeros(len(x))), sample=len(x))
    _, module, _, criterion, _ = made
    criterion(module(x), None).backward()
    found = module.per_sample_gradient_norms / lengths
    assert float(found.min()) >= 1 - 1e-5
    assert float(found.max()) <= most + 1e-5


def test_every_accounted_type_is_compared() -> None:
    compared = {type(part) for module, _, _ in EXACT.values() for part in module.modules()}
    assert set(ACCOUNTED_LAYERS) <= compared


def test_norms_of_packed_sequences_in_the_order_of_the_batch() -> None:
    """The lengths are those of places in the batch, so a record alone has the length of the first one."""
    torch.manual_seed(0)
    layer, x = DPGRU(4, 3, batch_first=True), torch.randn(6, 5, 4)
    x[2, 4:], x[3:5, 2:], x[5, 1:] = 0.0, 0.0, 0.0
    trained = [weight for part in layer.modules() if isinstance(part, Linear) for weight in part.parameters()]
    lengths = []
    for record, length in zip(x, [5, 5, 4, 2, 2, 1], strict=True):
        parts = torch.autograd.grad(Squares()(layer(record[None, :length])[1][-1], None), trained)
        lengths.append(torch.cat([part.flatten() for part in parts]).norm())
    made = ghost(With(layer, packed), criterion=Squares(), dataset=TensorDataset(x, torch.zeros(6)), sample=6)
    made[3](made[1](x), None).backward()
    torch.testing.assert_close(made[1].per_sample_gradient_norms, torch.stack(lengths))


class Gate(torch.nn.Module):
    """Scales by a number of each record; Opacus computes norms from the first argument alone."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(1))

    def forward(self, x: torch.Tensor, scale: Any = 1.0) -> torch.Tensor:
        return x * self.weight * scale


class Subclass(torch.nn.Linear):
    """A linear layer that does more than its base class."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return 100 * super().forward(x)


def replaced() -> Any:
    layer: Any = Linear(8, 3)
    layer.forward = lambda x: 100 * torch.nn.Linear.forward(layer, x)
    return layer


def enlarged() -> Any:
    layer = Linear(8, 3)
    layer.scale = torch.nn.Parameter(torch.ones(1))
    return layer


UNKNOWN: dict[str, Callable[[], Any]] = {
    "Gate": Gate,
    "Bilinear": lambda: torch.nn.Bilinear(8, 8, 3),
    "EmbeddingBag": lambda: torch.nn.EmbeddingBag(10, 3, mode="sum"),
    "Subclass": lambda: Subclass(8, 3),
    "PReLU": torch.nn.PReLU,
    "SequenceBias": lambda: DPMultiheadAttention(4, 2, batch_first=True, add_bias_kv=True),
    "ParametrizedLinear": lambda: torch.nn.utils.parametrizations.weight_norm(Linear(8, 3)),
    "Linear": replaced,
    "Linear ": enlarged,
}


@pytest.mark.parametrize("name", UNKNOWN)
def test_layers_whose_norms_are_not_known(name: str) -> None:
    """A second argument of `Gate` moved the sum by 150 norms: 9.997 was said, 11,888 is needed."""
    engine = PrivacyEngine(accountant=FIXED)
    said = f"gradient norms of the layer '.+' of type {name.strip()}. Use grad_sample_mode='hooks'"
    with pytest.raises(cm.InputError, match=said):
        ghost(torch.nn.Sequential(Linear(8, 8), UNKNOWN[name]()), engine)
    assert not len(engine.accountant)


def test_a_layer_of_ones_own_in_the_mode_hooks() -> None:
    engine = PrivacyEngine(accountant=FIXED)
    module, optimizer, loader = (
        each
        for each in ghost(torch.nn.Sequential(Linear(8, 8), Scale(), Linear(8, 3)), engine, grad_sample_mode="hooks")[
            1:
        ]
    )
    for features, label in loader:
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(module(features), label).backward()
        optimizer.step()
    assert engine.accountant.history == [(NOISE, "16/320", 4)]
    assert EXACT_ARITHMETIC not in engine.accountant.caveats


@pytest.mark.parametrize("options", [{"max_norm": 1.0}, {"sparse": True}])
def test_embeddings_with_options(options: Any) -> None:
    with pytest.raises(cm.InputError, match=f"Embedding has {next(iter(options))}="):
        ghost(torch.nn.Embedding(10, 8, **options))


def test_records_in_the_second_dimension() -> None:
    with pytest.raises(cm.InputError, match="ghost clipping needs batch_first=True"):
        ghost(Linear(8, 3), batch_first=False)


def test_a_named_argument() -> None:
    made = ghost(With(Linear(8, 3), lambda layer, x: layer(input=x)))
    refused(made, "called with 0 positional and 1 named arguments", lambda: train(made))


@pytest.mark.parametrize("late", [False, True])
@pytest.mark.parametrize("place", [False, True])
def test_a_forward_hook_that_changes_a_result(late: bool, place: bool) -> None:
    """The factor of the hook was not in the norms, so that a record moved the sum by 100 norms."""
    layer = Linear(8, 3)

    def enlarge(module: Any, given: Any, found: torch.Tensor) -> torch.Tensor:
        return found.mul_(100) if place else found * 100

    if not late:
        layer.register_forward_hook(enlarge)
    made = ghost(torch.nn.Sequential(layer))
    if late:
        made[1]._module[0].register_forward_hook(enlarge)
    refused(made, "a forward hook of Linear may change its result", lambda: train(made))


def test_a_forward_hook_that_only_looks() -> None:
    layer = Linear(8, 3)
    seen: list[Any] = []
    layer.register_forward_hook(lambda module, given, found: seen.append(found))
    made = ghost(torch.nn.Sequential(layer))
    train(made)
    assert len(made[0].accountant) == len(seen) == 4


@pytest.mark.parametrize("mode", ["ghost", "hooks"])
def test_packed_sequences_that_the_layer_sorts(mode: str) -> None:
    """Rows of several records were clipped together: the length of one record moved the sum of 64 by 17 norms."""

    def unsorted(layer: Any, x: torch.Tensor) -> torch.Tensor:
        lengths = torch.arange(len(x)) % 4 + 1
        given = torch.nn.utils.rnn.pack_padded_sequence(
            x.reshape(-1, 4, 2), lengths, batch_first=True, enforce_sorted=False
        )
        hidden: torch.Tensor = layer(given)[1]
        return hidden[-1]

    made = ghost(With(DPGRU(2, 3, batch_first=True), unsorted), grad_sample_mode=mode)
    with pytest.raises(cm.InputError, match="DPGRU was given records that were sorted by length"):
        made[1](next(iter(made[-1]))[0])


@pytest.mark.parametrize("convolution", [torch.nn.Conv1d, torch.nn.Conv2d, torch.nn.Conv3d])
@pytest.mark.parametrize("padding", ["circular", "reflect", "replicate"])
def test_norms_for_another_padding(convolution: Any, padding: str) -> None:
    """A record with sums of taps that vanish except for zeros moved the sum by 7 norms: 2.057 was said, 15.98 is needed."""
    engine = PrivacyEngine(accountant=FIXED)
    with pytest.raises(cm.InputError, match=f"has padding_mode='{padding}'. Use padding_mode='zeros' or"):
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
    refused(made, "has padding_mode='circular'", lambda: step(made, next(batches)), accounted=1)


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


def test_autocast_between_layers_is_refused() -> None:
    class Rounded(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return (x.bfloat16() * 2).float()

    made = ghost(torch.nn.Sequential(Linear(8, 8), Rounded(), Linear(8, 3)))
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


def test_cancelling_parts_of_an_embedding_are_clipped() -> None:
    """In float32 the sum of three long parts has another rounding in each backward pass: it moved 52.6 norms."""
    x = torch.zeros(RECORDS, 3)
    x[:] = torch.tensor([1070272896.0, -1070272832.0, -62.18217468261719])
    layer = torch.nn.Embedding(4, 1)

    def weighted(embedding: Any, x: torch.Tensor) -> torch.Tensor:
        found: torch.Tensor = (embedding(torch.zeros_like(x, dtype=torch.long))[:, :, 0] * x).sum(1)
        return found

    class Sum(Squares):
        def __call__(self, found: torch.Tensor, label: Any) -> torch.Tensor:
            return found if self.reduction == "none" else found.mean()

    made = ghost(With(layer, weighted), criterion=Sum(), dataset=TensorDataset(x, torch.zeros(RECORDS)), sample=1)
    _, module, optimizer, criterion, loader = made
    for features, label in loader:
        optimizer.zero_grad()
        criterion(module(features), label).backward()
        assert float(layer.weight.grad.norm()) <= 1.01
        optimizer.step()


def test_every_run_has_the_caveat_of_rounding() -> None:
    made = ghost(Linear(8, 3))
    train(made)
    assert made[0].accountant.caveats.count(EXACT_ARITHMETIC) == 1


# ---- uses that no layer sees


def test_a_weight_within_a_checkpoint() -> None:
    """Its graph is not that of the loss: a record moved the sum by 200 norms."""

    class Checkpointed(Shared):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            def use(z: torch.Tensor) -> torch.Tensor:
                return torch.nn.functional.linear(z, self.first.weight)

            return self.last(self.first(x) + checkpoint(use, x.clone().requires_grad_(), use_reentrant=True))

    made = ghost(Checkpointed())
    refused(made, "CheckpointFunction has its own backward pass", lambda: train(made))


def test_a_weight_of_a_recurrent_layer_that_a_function_uses_too() -> None:
    """DPLSTM lists the weights of its parts as its own, so that their uses were counted twice."""

    class Penalised(Sequence):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return super().forward(x) + self.recurrent.weight_hh_l0.pow(2).sum()

    made = ghost(Penalised())
    refused(made, "a weight is used outside of its layer", lambda: train(made))


class Tied(torch.nn.Module):
    """A linear layer and a norm that share a bias, which Opacus notices in the other order alone."""

    def __init__(self) -> None:
        super().__init__()
        self.linear, self.norm = Linear(8, 3), torch.nn.LayerNorm(3)
        self.norm.bias = self.linear.bias

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        found: torch.Tensor = self.linear(x)
        return found + self.norm(found) * x[:, :1]


def test_layers_that_share_a_weight() -> None:
    """A record moved the sum by 39 norms."""
    with pytest.raises(cm.InputError, match="'norm' of type LayerNorm shares a weight with another layer"):
        ghost(Tied())


class Part(torch.nn.Module):
    """A layer that runs a second time, on some of the records."""

    def __init__(self, layer: Any, use: Callable[[Any, torch.Tensor], torch.Tensor]) -> None:
        super().__init__()
        self.layer, self.use = layer, use

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        found, again = self.use(self.layer, x), self.use(self.layer, x[1:])
        return found + torch.nn.functional.pad(again, (0, 0, 1, 0))


@pytest.mark.parametrize(
    "part",
    [
        Part(torch.nn.Conv1d(1, 1, 6), lambda layer, x: layer(x[:, None])[:, 0]),
        Part(DPGRU(8, 3, batch_first=True), lambda layer, x: layer(x[:, None])[0][:, 0]),
    ],
)
def test_a_layer_that_runs_on_some_of_the_records(part: Any) -> None:
    """Opacus takes its first row for the first record: a record moved the sum by 22 norms."""
    made = ghost(part)
    refused(made, "was given 15 rows for 16 records", lambda: train(made))


def test_an_input_that_changes_in_place() -> None:
    """Autograd has a copy, and Opacus the changed tensor: a record moved the sum by 18 norms."""

    class Clamped(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.linear = Linear(8, 3)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            x = x.clone()
            found: torch.Tensor = self.linear(x) * 1.0
            x.clamp_(max=0.5)
            return found

    made = ghost(Clamped())
    with torch.autograd.graph.saved_tensors_hooks(lambda each: each.clone(), lambda each: each):
        refused(made, "was changed in place after the layer had used it", lambda: train(made))


@pytest.mark.parametrize("mode", ["ghost", "hooks"])
def test_that_rows_are_records_is_said(mode: str) -> None:
    """Rows in another order, or of places instead of records, look like rows of records."""
    engine, *_ = ghost(Linear(8, 3), grad_sample_mode=mode)
    assert any("rows were taken for records" in each for each in engine.accountant.caveats)


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
