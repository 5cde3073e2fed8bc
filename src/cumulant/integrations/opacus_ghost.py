"""Ghost clipping, where the backward pass clips: checks that it saw every part of every gradient."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from types import FrameType
from typing import Any

import torch
from opacus.layers.dp_rnn import DPGRU, DPLSTM, DPRNN, RNNLinear
from opacus.utils.adaptive_clipping.adaptive_clipping_utils import DPTensorFastGradientAdaptiveClipping
from opacus.utils.fast_gradient_clipping_utils import DPTensorFastGradientClipping
from torch.autograd.function import BackwardCFunction
from torch.distributed.fsdp import FSDPModule
from torch.nn.utils.rnn import PackedSequence
from torch.utils._pytree import tree_leaves

from cumulant.errors import InputError

BACKWARD = {DPTensorFastGradientClipping.backward.__code__, DPTensorFastGradientAdaptiveClipping.backward.__code__}
"""The backward passes of Opacus that use the norms of gradients to clip them."""

CONVOLUTIONS = (torch.nn.Conv1d, torch.nn.Conv2d, torch.nn.Conv3d)
"""The layers whose gradients Opacus computes from inputs that it pads with zeros."""

ACCOUNTED_LAYERS: Mapping[type, Mapping[str, Any]] = {
    torch.nn.Linear: {},
    RNNLinear: {},  # the parts of DPLSTM, DPGRU and DPRNN; DPMultiheadAttention has parts of type Linear
    **{kind: {"padding_mode": "zeros"} for kind in CONVOLUTIONS},
    torch.nn.Embedding: {"max_norm": None, "sparse": False},
    torch.nn.LayerNorm: {},
    torch.nn.GroupNorm: {},
    torch.nn.RMSNorm: {},
    torch.nn.InstanceNorm1d: {},
    torch.nn.InstanceNorm2d: {},
    torch.nn.InstanceNorm3d: {},
}
"""Types of layers with the options that ghost clipping needs; tests compare their norms with gradients, record by record."""

RECURRENT = (DPRNN, DPLSTM, DPGRU)
"""The recurrent layers of Opacus; their parts are of type RNNLinear, whose weights they list as their own."""

OWN_WEIGHTS = {"weight", "bias"}
"""The names of the weights whose norms are computed for an accounted layer."""

BACKWARD_OF_TORCH = ("torch.nn.", "torch.distributed.")
"""Modules of torch whose functions in Python hide no weights: hooks of layers, and what gathers shards; read in torch 2.13."""

CHANGED_RESULT = (
    "a forward hook of {} may change its result, which ghost clipping does not see. Remove it, register it before "
    "make_private if it only looks, or use grad_sample_mode='hooks'"
)
"""The refusal of a hook of an accounted layer; the norms are those of what the layer itself computed."""

EXACT_ARITHMETIC = (
    "ghost clipping assumes exact arithmetic: "
    "where parts of a gradient nearly cancel, rounding can exceed the clipping norm"
)
"""The caveat of every run with ghost clipping: its second backward pass rounds anew, and no margin covers that."""

CANCELLATION = 2.0**-16
"""Part of the sum of norms of places that is added to the norm of their sum; derived in `linear_norms`."""
MOST_PRODUCTS = 2**18
"""Roundings of a squared norm; derived: 2^18 of them lose 2^-35 of S^2 in float64, and the norm less than S/2^17."""


def clipping_loss(frame: FrameType | None) -> Any:
    """Return the loss of Opacus whose backward pass asks for norms; None if other code asks."""
    while frame is not None:
        if frame.f_code in BACKWARD:
            return frame.f_locals["self"]
        frame = frame.f_back
    return None


class GhostClipping:
    """The layers of a module whose norms Opacus knows, and how often each used its weights.

    The second backward pass scales the loss of a record by a factor that follows from its norm. So a use of a weight that no
    layer sees, or a norm of an earlier batch, leaves gradients that nobody has clipped.
    """

    def __init__(self, module: Any, optimizer: Any) -> None:
        self._module, self._optimizer = module, optimizer
        self._uses: Counter[Any] = Counter()
        self._norms: list[Any] = []
        self._low: set[torch.dtype] = set()  # low precisions in which layers of this step computed
        self._computed: dict[Any, list[Any]] = {}  # results of layers, as their forward pass left them
        self._hooks: dict[Any, tuple[int, int]] = {}  # the first and the last forward hook of every layer
        self._rows: dict[int, str] = {}  # numbers of rows that layers of this step were given, each with a layer
        self._givens: list[tuple[Any, int]] = []  # inputs of layers with their versions

    def attach(self) -> None:
        """Count the uses of weights in every forward pass of every layer."""
        check_layers(self._module)
        # of this module alone: the table of Opacus is one for all modules of the process
        own = {torch.nn.Linear: linear_norms, torch.nn.Embedding: embedding_norms}
        self._module.NORM_SAMPLERS = {**self._module.NORM_SAMPLERS, **own}
        uses = self._uses

        def note(layer: Any, given: Any, found: Any) -> None:
            self._computed[layer] = versions(found)

        def count(layer: Any, given: Any, options: Any, found: Any) -> None:
            unchanged = self._computed.pop(layer, None) == versions(found)
            if layer.training and torch.is_grad_enabled():
                check_call(layer, given, options)
                if not unchanged:
                    raise InputError(CHANGED_RESULT.format(type(layer).__name__))
                if not isinstance(layer, RNNLinear):  # it sees fewer records where sequences have ended
                    self._rows[len(given[0])] = layer_type(layer).__name__
                self._givens.append((given[0].detach(), given[0]._version))  # Opacus keeps this alias, too
                results, givens = tree_leaves(found), tree_leaves((given, options))
                self._low |= low_precisions(results, givens)
                inside = graph_uses(results, givens)
                own = dict.fromkeys(layer.parameters())
                uses.update({weight: number for weight, number in inside.items() if weight in own})

        def count_records(layer: Any, given: Any) -> None:
            if layer.training and torch.is_grad_enabled():
                self._rows[recurrent_records(layer, given[0])] = type(layer).__name__

        for layer in self._module.iterate_submodules(self._module._module):
            if not isinstance(layer, RECURRENT):  # their parts count: a second count would hide a use outside
                first = layer.register_forward_hook(note, prepend=True)
                last = layer.register_forward_hook(count, with_kwargs=True)
                self._hooks[layer] = first.id, last.id
            else:
                layer.register_forward_pre_hook(count_records)

    def check(self, norms: Any, loss: Any) -> None:
        """Refuse norms that do not bound the gradient of this loss."""
        losses, uses = loss.loss_per_sample, Counter(self._uses)
        self._uses.clear()
        check_layers(self._module)
        for layer, (first, last) in self._hooks.items():
            found = list(layer._forward_hooks)
            if (found[:1], found[-1:]) != ([first], [last]):
                raise InputError(CHANGED_RESULT.format(type(layer).__name__))
        check_frequencies(self._module)
        if losses.shape != norms.shape:
            raise InputError(
                f"the loss has the shape {tuple(losses.shape)}, but ghost clipping scales one number for each of "
                f"{norms.numel()} records. Give a criterion that returns one number for each record"
            )
        self._check_inputs(norms.numel())
        if loss.loss_reduction != self._module.loss_reduction:
            raise InputError(
                f"the criterion has loss_reduction={loss.loss_reduction!r}, but norms were computed for "
                f"{self._module.loss_reduction!r}. Leave it as make_private sets it"
            )
        self._check_fresh()
        low, self._low = self._low | low_precisions([losses]), set()
        if low:
            raise InputError(
                f"gradients are computed in {min(map(str, low))}, which rounds the sum of ghost clipping by more than a record "
                "moves it. Keep weights of float32 and leave out torch.autocast, or use grad_sample_mode='hooks'"
            )
        check_functions([losses])
        used = graph_uses([losses])
        if any(used[weight] > uses[weight] for weight in self._optimizer.params):
            raise InputError(
                "a weight is used outside of its layer, as by a penalty or another layer that shares it. Ghost clipping does "
                "not see that part of its gradient. Use grad_sample_mode='hooks'"
            )

    def _check_inputs(self, records: int) -> None:
        """Refuse layers that had another number of rows than there are records, or inputs that changed after their use."""
        rows, givens, self._rows, self._givens = self._rows, self._givens, {}, []
        for number, layer in rows.items():
            if number != records:
                raise InputError(
                    f"{layer} was given {number} rows for {records} records. Ghost clipping takes row i for record i. "
                    "Give it every record once, or use grad_sample_mode='hooks'"
                )
        for given, version in givens:
            if given._version != version:
                raise InputError(
                    "the input of a layer was changed in place after the layer had used it. Ghost clipping computes norms "
                    "from it. Copy it first, or use grad_sample_mode='hooks'"
                )

    def _check_fresh(self) -> None:
        """Refuse norms of an earlier batch, and weights without a norm."""
        if hasattr(self._module, "trainable_parameters") and not hasattr(self._optimizer, "grad_state"):
            if not set(self._optimizer.params) <= set(self._module.trainable_parameters):
                raise InputError(
                    "a weight is trained that was frozen at make_private, so ghost clipping does not see its gradient. Call "
                    "make_private again after unfreezing, or use grad_sample_mode='hooks'"
                )
            found = [weight._norm_sample for weight in self._module.trainable_parameters]
        else:  # shards: every layer has a list of norms
            layers = self._module.iterate_submodules(self._module._module)
            found = [norm for layer in layers for norm in layer.norm_sample]
        old = {id(norm) for norm in self._norms}
        self._norms = found  # they are kept, so that no new one has the identity of an old one
        if any(id(norm) in old for norm in found):
            raise InputError(
                "a weight has no gradient in this batch, so that norms of an earlier batch would clip instead. "
                "Call make_private again after freezing, or use grad_sample_mode='hooks'"
            )


def versions(found: Any) -> list[Any]:
    """Return what tells the tensors in a result from others, and from themselves after a change in place."""
    tensors = [each for each in tree_leaves(found) if isinstance(each, torch.Tensor)]
    return [part for each in tensors for part in (id(each), each._version, each.grad_fn)]


def layer_type(layer: Any) -> type:
    """Return the type of a layer; of a shard, the type that it had before."""
    return type(layer).__bases__[1] if isinstance(layer, FSDPModule) else type(layer)


def check_layers(module: Any) -> None:
    """Refuse layers whose norms are not known to be those of their gradients."""
    if not getattr(module, "batch_first", True) or getattr(module, "force_functorch", False):
        raise InputError("ghost clipping needs batch_first=True and force_functorch=False. Leave both out")
    inside = getattr(module, "_module", module)
    owners: dict[Any, Any] = {}
    for name, layer in inside.named_modules():
        kind, where = layer_type(layer), f" {name!r}" if name else ""
        parts = layer.modules() if kind in RECURRENT else ()
        shared = {weight for part in parts if type(part) is RNNLinear for weight in part.parameters()}
        trained = {key: weight for key, weight in layer.named_parameters(recurse=False) if weight.requires_grad}
        weights = {key for key, weight in trained.items() if weight not in shared}
        if any(owners.setdefault(trained[key], layer) is not layer for key in weights):
            raise InputError(
                f"the layer{where} of type {kind.__name__} shares a weight with another layer, and ghost clipping sees the "
                "gradient of one. Use grad_sample_mode='hooks'"
            )
        if not weights:
            continue
        if kind not in ACCOUNTED_LAYERS or not weights <= OWN_WEIGHTS or "forward" in vars(layer):
            raise InputError(
                f"ghost clipping does not know the gradient norms of the layer{where} of type {kind.__name__}. "
                "Use grad_sample_mode='hooks'"
            )
        for option, needed in ACCOUNTED_LAYERS[kind].items():
            if getattr(layer, option) != needed:
                raise InputError(
                    f"ghost clipping does not know the gradient norms of the layer{where}: {kind.__name__} has "
                    f"{option}={getattr(layer, option)!r}. Use {option}={needed!r} or grad_sample_mode='hooks'"
                )


def check_call(layer: Any, given: Any, options: Any) -> None:
    """Refuse a call from which Opacus does not see everything that a gradient depends on."""
    if len(given) != 1 or options or not isinstance(given[0], torch.Tensor):
        raise InputError(
            f"{layer_type(layer).__name__} was called with {len(given)} positional and {len(options)} named arguments. "
            "Ghost clipping sees one tensor alone. Give that, or use grad_sample_mode='hooks'"
        )


def recurrent_records(layer: Any, given: Any) -> int:
    """Return the number of records that a recurrent layer of Opacus was given."""
    if isinstance(given, PackedSequence):
        return int(given.batch_sizes[0])
    return int(given.shape[0 if layer.batch_first else 1])


def watch_packed(module: Any) -> None:
    """Refuse packed sequences that a recurrent layer of Opacus sorts, in every forward pass."""
    for layer in module.modules():
        if isinstance(layer, RECURRENT):
            layer.register_forward_pre_hook(check_packed)


def check_packed(layer: Any, given: Any) -> None:
    """Refuse packed sequences whose records were sorted: other layers have their gradients in another order."""
    if any(isinstance(each, PackedSequence) and each.sorted_indices is not None for each in given):
        raise InputError(
            f"{type(layer).__name__} was given records that were sorted by length, and other layers have another order. "
            "Opacus would clip parts of several records together. Sort every batch in the loader, not in the model, and "
            "pack it with enforce_sorted=True"
        )


def check_functions(results: Iterable[Any]) -> None:
    """Refuse functions with a backward pass in Python: a weight that they use inside is not in the graph."""
    for node in graph_nodes(results):
        if isinstance(node, BackwardCFunction):
            function = type(node)._forward_cls
            if not function.__module__.startswith(BACKWARD_OF_TORCH):
                raise InputError(
                    f"{function.__name__} has its own backward pass, which may hide uses of weights from ghost clipping. "
                    "Use grad_sample_mode='hooks'"
                )


def check_frequencies(module: Any) -> None:
    """Refuse embeddings that divide a gradient by counts of the whole batch."""
    for layer in module.modules():
        if getattr(layer, "scale_grad_by_freq", False):
            raise InputError(
                f"{type(layer).__name__} has scale_grad_by_freq=True, which divides gradients by counts of the whole batch, so "
                "that one record changes what others add. Set it to False"
            )


def graph_nodes(results: Iterable[Any], givens: Iterable[Any] = ()) -> Iterator[Any]:
    """Yield the nodes of the graph that computes results, without what was computed before the givens."""
    seen = {given.grad_fn for given in givens if isinstance(given, torch.Tensor)} | {None}
    waiting = [result.grad_fn for result in results if isinstance(result, torch.Tensor)]
    while waiting:
        node = waiting.pop()
        if node in seen:
            continue
        seen.add(node)
        yield node
        waiting.extend(before for before, _ in node.next_functions if not hasattr(before, "variable"))


def graph_uses(results: Iterable[Any], givens: Iterable[Any] = ()) -> Counter[Any]:
    """Count how often results use each weight, without what was computed before the givens."""
    found: Counter[Any] = Counter()
    for node in graph_nodes(results, givens):
        found.update(before.variable for before, _ in node.next_functions if hasattr(before, "variable"))
    return found


def low_precisions(results: Iterable[Any], givens: Iterable[Any] = ()) -> set[torch.dtype]:
    """Return the types below float32 in which a backward pass of these results computes."""
    kinds = {meta.dtype for node in graph_nodes(results, givens) for meta in node._input_metadata}
    exact = torch.finfo(torch.float32).eps
    return {kind for kind in kinds if (kind.is_floating_point or kind.is_complex) and torch.finfo(kind).eps > exact}


def linear_norms(layer: Any, activations: Any, backprops: torch.Tensor) -> dict[Any, torch.Tensor]:
    """Return bounds on the norms of the gradients of one linear layer, for each record.

    A record with places t = 1, ..., T has the gradient G = SUM b_t a_t^T, and |G|^2 = SUM (b_s.b_t)(a_s.a_t). Opacus adds up
    the products in the type of the backward pass. Where they cancel, rounding leaves 0 of a long gradient, which is then not
    clipped. Here float64 adds them up, in whichever of the two forms is shorter. With S = SUM |b_t||a_t| it loses at most
    S/2^17, so that |G| + S/2^16 is a bound. The rest of S/2^16 covers what float32 loses in the backward pass.
    """
    # the gradient is computed from activations of the type of the backward pass
    given = activations[0].to(backprops.dtype)
    if backprops.dim() == 2:
        given, backprops = given[:, None], backprops[:, None]
    inputs, flows = given.flatten(1, -2).double(), backprops.flatten(1, -2).double()
    margin = CANCELLATION if flows.shape[1] > 1 else 0.0  # one place has nothing that cancels
    lengths = flows.norm(dim=2)
    found = {}
    if layer.weight.requires_grad:
        found[layer.weight] = _outer_norms(flows, inputs) + margin * (inputs.norm(dim=2) * lengths).sum(1)
    if layer.bias is not None and layer.bias.requires_grad:
        found[layer.bias] = flows.sum(1).norm(dim=1) + margin * lengths.sum(1)
    return {weight: norms.to(backprops.dtype) for weight, norms in found.items()}


def embedding_norms(layer: Any, activations: Any, backprops: torch.Tensor) -> dict[Any, torch.Tensor]:
    """Return bounds on the norms of the gradients of one embedding, for each record.

    The gradient of a token's row is the sum of what flows back to its places. Float64 adds it up, with the margin of
    `linear_norms` for tokens that come more than once.
    """
    tokens, (records, *_, width) = activations[0], backprops.shape
    flows = backprops.reshape(tokens.numel(), width).double()
    owners = torch.arange(records, device=tokens.device).repeat_interleave(tokens.numel() // max(1, records))
    pairs, places = torch.unique(owners * layer.num_embeddings + tokens.flatten(), return_inverse=True)
    sums = flows.new_zeros(len(pairs), width).index_add(0, places, flows)
    lengths = flows.new_zeros(len(pairs)).index_add(0, places, flows.norm(dim=1))
    repeated = torch.bincount(places, minlength=len(pairs)) > 1
    rows = sums.norm(dim=1) + CANCELLATION * lengths * repeated
    squares = flows.new_zeros(records).index_add(0, pairs // layer.num_embeddings, rows**2)
    return {layer.weight: squares.sqrt().to(backprops.dtype)} if layer.weight.requires_grad else {}


def _outer_norms(flows: torch.Tensor, inputs: torch.Tensor) -> torch.Tensor:
    """Return the norm of SUM b_t a_t^T for each record, up to the rounding of float64."""
    products, (_, outputs), (_, features) = flows.shape[1] ** 2, flows.shape[1:], inputs.shape[1:]
    if not len(flows) or (products <= outputs * features and products + outputs + features <= MOST_PRODUCTS):
        return (torch.bmm(flows, flows.mT) * torch.bmm(inputs, inputs.mT)).sum((1, 2)).clamp(min=0).sqrt()
    # one record after the other, because all gradients together may not fit into memory
    return torch.stack([(flow.mT @ given).norm() for flow, given in zip(flows, inputs, strict=True)])
