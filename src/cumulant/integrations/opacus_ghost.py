"""Ghost clipping, where the backward pass clips: checks that it saw every part of every gradient."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from types import FrameType
from typing import Any

import torch
from opacus.utils.adaptive_clipping.adaptive_clipping_utils import DPTensorFastGradientAdaptiveClipping
from opacus.utils.fast_gradient_clipping_utils import DPTensorFastGradientClipping
from torch.utils._pytree import tree_leaves

from cumulant.errors import InputError

BACKWARD = {DPTensorFastGradientClipping.backward.__code__, DPTensorFastGradientAdaptiveClipping.backward.__code__}
"""The backward passes of Opacus that use the norms of gradients to clip them."""

CONVOLUTIONS = (torch.nn.Conv1d, torch.nn.Conv2d, torch.nn.Conv3d)
"""The layers whose gradients Opacus computes from inputs that it pads with zeros."""

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

    def attach(self) -> None:
        """Count the uses of weights in every forward pass of every layer."""
        check_padding(self._module)
        # of this module alone: the table of Opacus is one for all modules of the process
        self._module.NORM_SAMPLERS = {**self._module.NORM_SAMPLERS, torch.nn.Linear: linear_norms}
        uses = self._uses

        def count(layer: Any, given: Any, options: Any, found: Any) -> None:
            if layer.training and torch.is_grad_enabled():
                results, givens = tree_leaves(found), tree_leaves((given, options))
                self._low |= low_precisions(results, givens)
                inside = graph_uses(results, givens)
                own = dict.fromkeys(layer.parameters())
                uses.update({weight: number for weight, number in inside.items() if weight in own})

        for layer in self._module.iterate_submodules(self._module._module):
            layer.register_forward_hook(count, with_kwargs=True)

    def check(self, norms: Any, loss: Any) -> None:
        """Refuse norms that do not bound the gradient of this loss."""
        losses, uses = loss.loss_per_sample, Counter(self._uses)
        self._uses.clear()
        check_padding(self._module)
        check_frequencies(self._module)
        if losses.shape != norms.shape:
            raise InputError(
                f"the loss has the shape {tuple(losses.shape)}, but ghost clipping scales one number for each of "
                f"{norms.numel()} records. Give a criterion that returns one number for each record"
            )
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
        used = graph_uses([losses])
        if any(used[weight] > uses[weight] for weight in self._optimizer.params):
            raise InputError(
                "a weight is used outside of its layer, as by a penalty or another layer that shares it. Ghost clipping does "
                "not see that part of its gradient. Use grad_sample_mode='hooks'"
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


def check_padding(module: Any) -> None:
    """Refuse convolutions whose norms Opacus computes for another padding than the one they use."""
    for layer in module.modules():
        if isinstance(layer, CONVOLUTIONS) and layer.padding_mode != "zeros":
            raise InputError(
                f"{type(layer).__name__} has padding_mode={layer.padding_mode!r}, but Opacus computes norms of gradients for "
                "zeros, so that ghost clipping does not bound them. Use padding_mode='zeros' or grad_sample_mode='hooks'"
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


def _outer_norms(flows: torch.Tensor, inputs: torch.Tensor) -> torch.Tensor:
    """Return the norm of SUM b_t a_t^T for each record, up to the rounding of float64."""
    products, (_, outputs), (_, features) = flows.shape[1] ** 2, flows.shape[1:], inputs.shape[1:]
    if not len(flows) or (products <= outputs * features and products + outputs + features <= MOST_PRODUCTS):
        return (torch.bmm(flows, flows.mT) * torch.bmm(inputs, inputs.mT)).sum((1, 2)).clamp(min=0).sqrt()
    # one record after the other, because all gradients together may not fit into memory
    return torch.stack([(flow.mT @ given).norm() for flow, given in zip(flows, inputs, strict=True)])
