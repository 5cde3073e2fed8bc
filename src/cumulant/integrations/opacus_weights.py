"""The weights of modules that an accountant of Opacus watches, and what tells that something else changed them."""

from __future__ import annotations

import hashlib
from functools import lru_cache
from typing import Any

import numpy as np
import torch
from torch.distributed.fsdp import FSDPModule

from cumulant.errors import InputError

INTEGERS = {1: torch.int8, 2: torch.int16, 4: torch.int32, 8: torch.int32}
"""Integers that hold the bits of a number of so many bytes; two for one of 8, whose low bits are often 0."""
BLOCK = 2**16
"""Numbers that are summed together, so that products stay in the cache (measured: as fast as a sum without factors)."""
BLOCK_FACTOR = 0x1E3779B97F4A7C15
"""An odd number that tells blocks apart (derived: bits of the golden ratio)."""


class Weights:
    """The weights that one accountant watches, each with a checksum.

    The checksum is that of what the last accounted step left.
    """

    def __init__(self) -> None:
        self._sums: dict[Any, int] = {}
        self._states: list[int] = []
        self._optimizers: list[Any] = []
        self._modules: list[Any] = []
        self._buffered: list[Any] = []
        self._buffer_sums: list[int] = []

    def watch(self, module: Any, optimizer: Any) -> None:
        """Watch all weights of a module, whichever optimizer trains them."""
        self._optimizers.append(optimizer)
        if not any(isinstance(part, FSDPModule) for part in module.modules()):  # shards are swapped for whole weights
            self._modules.append(module)
        every = dict.fromkeys((*module.parameters(), *params(optimizer, frozen=True)))
        self._sums.update(zip(every, checksums(list(every)), strict=True))
        self._buffered.append(module)
        self.note()

    def note(self) -> None:
        """Remember the weights, the buffers and the states of the optimizers as they are now."""
        self._sums.update(dict.fromkeys(self._new_weights(), 0))
        self._sums = dict(zip(self._sums, checksums(list(self._sums)), strict=True))
        self._states, self._buffer_sums = self._state_sums(), self._sums_of_buffers()

    def buffers_changed(self) -> bool:
        """Check that a buffer of a module was changed, replaced by another one or added since the last note."""
        return self._sums_of_buffers() != self._buffer_sums

    def _sums_of_buffers(self) -> list[int]:
        """Return checksums of the buffers that the modules have now, whichever tensors hold them."""
        every = [each for module in self._buffered for each in module.buffers()]
        # a whole number by itself counts steps; everything else may hold statistics of records
        return checksums([each for each in every if each.is_floating_point() or each.numel() > 1])

    def weights_changed(self) -> bool:
        """Check that any weight was changed or replaced since the last note, whoever trains it."""
        return bool(self._new_weights()) or checksums(list(self._sums)) != list(self._sums.values())

    def fingerprints(self) -> list[int]:
        """Return one number for the weights of each watched module; shards have none."""
        return [sum(checksums(list(module.parameters()))) for module in self._modules]

    def _new_weights(self) -> list[Any]:
        """Return the weights that were put into a module since it was watched."""
        return [weight for module in self._modules for weight in module.parameters() if weight not in self._sums]

    def state_changed(self) -> bool:
        """Check that the state of an optimizer, such as its momentum, was changed since the last note."""
        return self._state_sums() != self._states

    def _state_sums(self) -> list[int]:
        held = [
            value for optimizer in self._optimizers for state in optimizer.state.values() for value in state.values()
        ]
        return checksums([value for value in held if isinstance(value, torch.Tensor)])

    def changed(self) -> bool:
        """Check that any weight was changed since the last note.

        InputError if no accounted optimizer trains it.
        """
        now = checksums(list(self._sums))
        moved = [weight for (weight, old), new in zip(self._sums.items(), now, strict=True) if new != old]
        moved += self._new_weights()
        accounted = {weight for optimizer in self._optimizers for weight in params(optimizer, frozen=True)}
        if any(weight.requires_grad and weight not in accounted for weight in moved):
            raise InputError(
                "weights of the module changed that are trained by no accounted optimizer, so they have no noise. Give all "
                "trained weights to the optimizer of make_private, and freeze the others"
            )
        return bool(moved)


def checksums(weights: list[Any]) -> list[int]:
    """Return sums of the bits of each weight as integers, each of them times an odd factor of its place.

    They are exact modulo 2^64, so that no order of summation matters. Without the factors numbers could change places.
    """
    found: dict[Any, list[tuple[int, torch.Tensor]]] = {}
    for place, weight in enumerate(weights):
        held = weight.detach()
        local = held.to_local() if hasattr(held, "to_local") else held
        real = torch.view_as_real(local) if local.is_complex() else local
        bits = _placed_sum(real.reshape(-1).view(INTEGERS[real.element_size()]))
        found.setdefault(bits.device, []).append((place, bits))
    sums = [0] * len(weights)
    for parts in found.values():  # one transfer for each device
        for (place, _), value in zip(parts, torch.stack([bits for _, bits in parts]).tolist(), strict=True):
            sums[place] = value
    return sums


def _placed_sum(bits: torch.Tensor) -> torch.Tensor:
    """Return the sum of integers times the factors of their places, modulo 2^64."""
    factors, total = _factors(bits.device), torch.zeros((), dtype=torch.int64, device=bits.device)
    for part in bits.split(BLOCK):
        total = total * BLOCK_FACTOR + (part * factors[: part.numel()]).sum()
    return total


@lru_cache(maxsize=8)
def _factors(device: torch.device) -> torch.Tensor:
    """Return mixed odd numbers, one for each place of a block, which are the same in every process."""
    words = np.frombuffer(hashlib.shake_256(b"cumulant checksums").digest(8 * BLOCK), dtype="<i8").astype(np.int64)
    return torch.from_numpy(words | 1).to(device)


def params(optimizer: Any, frozen: bool = False) -> list[Any]:
    """Return the weights of an optimizer.

    With `frozen` also those that have requires_grad=False now.
    """
    every = [weight for group in optimizer.param_groups for weight in group["params"]]
    return [weight for weight in every if frozen or weight.requires_grad]
