"""Steps of an Opacus optimizer, watched from clipping to noise.

They are accounted before the weights move.
"""

from __future__ import annotations

import hashlib
import math
import os
import secrets
import sys
import weakref
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NoReturn

import numpy as np
import torch
from opacus.optimizers import AdaClipDPOptimizer
from torch.distributed.fsdp import FSDPModule
from torch.optim.optimizer import register_optimizer_step_post_hook

from cumulant.errors import CumulantError, InputError
from cumulant.integrations.opacus_ghost import (
    EXACT_ARITHMETIC,
    GhostClipping,
    check_frequencies,
    clipping_loss,
    watch_packed,
)
from cumulant.integrations.opacus_loading import STATE_BYTES, Draw, Draws, DrawsAndSteps, generator_state
from cumulant.integrations.opacus_weights import Weights, checksums, params

NORM_TOLERANCE = 1e-6
"""Relative difference of clipping norms that are equal but were computed in float32; derived: a few units in its last place."""
UNSEEDED_BITS = 48
"""A generator that nobody seeded starts from a random 64-bit number; one below 2^48 was given. Wrong once in 65,536 runs."""
MT19937_WORDS = 624
"""Words of 32 bits in the state of torch's generator on a CPU; derived: the definition of MT19937."""
MT19937_OFFSET = 24
"""Bytes before those words in the state of a torch.Generator: its seed, two counters and a flag."""

CLIPPING_ROUNDINGS = 4
"""Roundings of one clipped gradient: norms of layers, the norm of all, the factor, the product; read in Opacus 1.6.0."""
CHANGED = (
    "weights changed between two steps by something else than the accounted optimizer, which must not have used records"
)
SUM_EXCESS = 0.05
"""Part by which rounding may lengthen a sum of clipped gradients; derived: bfloat16 has 1.6 % for each of them."""
STATE_CHANGED = (
    "the state of the optimizer changed between two steps by something else, which must not have used records"
)
CHANGED_AFTER = "weights changed after the last step by something else, which must not have used records"
SEVERAL_PASSES = "the module ran several times for one step: all passes must have used the records of its draw alone"
NORM_CHANGED = "the clipping norm changed during the run, which must not have followed from records"
OTHER_OPTIMIZER = "another optimizer took steps during the run: what it trained is not covered if it used these records"
COUNT_DEVIATION = 1 / 20
"""Deviation of the noise of a count, as a part of the batch, where ghost clipping adapts; read in Opacus 1.6.0."""
SUBTRACTED = "can subtract the noise"
KNOWN = "knows the samples"

Account = Callable[[float, Draw], None]
"""Accounts for a step with this noise multiplier on this draw, or raises."""

_WATCHED: weakref.WeakSet[AccountedSteps] = weakref.WeakSet()
"""The steps that are watched in this process."""
_INSIDE: weakref.WeakSet[Any] = weakref.WeakSet()
"""The optimizers inside of accounted ones."""


def _note_other(optimizer: Any, *given: Any) -> None:
    """Tell all watched steps that an optimizer took a step which nobody accounts for."""
    if optimizer not in _INSIDE:
        for steps in _WATCHED:
            steps.other_moved = True


register_optimizer_step_post_hook(_note_other)


def processes() -> int:
    """Return the number of processes that train together, as far as torch knows."""
    distributed = torch.distributed
    return distributed.get_world_size() if distributed.is_available() and distributed.is_initialized() else 1


def adapts(optimizer: Any) -> bool:
    """Check that an optimizer chooses its clipping norm from the data."""
    return isinstance(optimizer, AdaClipDPOptimizer) or hasattr(optimizer, "_adjusted_noise_multiplier")


def check_new(optimizer: Any) -> None:
    """Refuse an optimizer that was made private before: two accountants would watch the one inside."""
    if optimizer.original_optimizer in _INSIDE:
        raise InputError(
            "this optimizer was made private before, and its steps belong to that run. Make a new optimizer for every call of "
            "make_private"
        )


class ForwardPasses:
    """A hook that counts the forward passes of a module which gradients may come from; copies count for themselves."""

    def __init__(self) -> None:
        self.number = 0

    def __call__(self, module: Any, given: Any) -> None:
        """Count a forward pass."""
        if module.training and torch.is_grad_enabled():
            self.number += 1


class AccountedSteps:
    """The steps of one optimizer, each of which must use one draw of one loader.

    It wraps the methods of the optimizer that clip, add noise and step. So it sees how many gradients were clipped and to
    which norm, also where a memory manager splits a batch, and it accounts for a step even if its hook was replaced.
    """

    def __init__(
        self, module: Any, optimizer: Any, draws: Draws, account: Account, world: int, weights: Weights
    ) -> None:
        self._module, self._optimizer, self._draws = module, optimizer, draws
        self._account, self._world = account, world
        self._weights, self._process = weights, os.getpid()
        self._moving = False  # the accounted step is about to move the weights
        self._inner = optimizer.original_optimizer
        self._ghost = GhostClipping(module, optimizer) if hasattr(module, "get_norm_sample") else None
        self._noisy: list[tuple[int, int]] | None = None
        self._summed: list[tuple[int, int]] | None = None  # sums of clipped gradients, as clipping left them
        self._clipped: list[tuple[int, float]] = []
        self._first_norm: float | None = None
        self._normed: tuple[torch.Tensor, float] | None = None
        self._sums: list[tuple[int, int]] | None = None
        self._foreign = False
        self._noise = (0.0, 0.0)
        self._done = False
        self._passes = ForwardPasses()  # since the last draw or the last clipping
        self._seed: int | None = None
        self.secret: Any = None
        """A generator with a secret state, if the noise comes from one."""
        self.states: set[bytes] = set()
        """Hashes of the states that noise came from, in all steps of the accountant."""
        self.divisor: float | None = None
        """The constant that sums are divided by, where the size of a sample is secret; else None."""
        self.notice: Callable[[str], None] = lambda caveat: None
        """Adds a caveat to the guarantee."""
        self.other_moved = False
        """True if an optimizer that nobody accounts for took a step since the last draw."""

    def attach(self) -> None:
        """Wrap the methods of the optimizer, and of the module where that one clips."""
        optimizer, module = self._optimizer, self._module
        check_frequencies(module)
        watch_packed(module)
        if self._ghost is not None:  # fast gradient clipping and ghost clipping
            self._ghost.attach()
            module.get_norm_sample = self._seeing_norms(module.get_norm_sample, self._ghost)
            module.enable_hooks = self._seeing_gradients(module.enable_hooks)
            optimizer.accumulate = self._seeing_sums(optimizer.accumulate)
        else:
            optimizer.clip_and_accumulate = self._seeing_clips(optimizer.clip_and_accumulate)
        optimizer.add_noise = self._seeing_noise(optimizer.add_noise)
        optimizer.pre_step = self._accounting(optimizer.pre_step)
        optimizer.scale_grad = self._seeing_noisy(optimizer.scale_grad)
        if hasattr(optimizer, "reduce_gradients"):
            optimizer.reduce_gradients = self._seeing_noisy(optimizer.reduce_gradients)
        vars(optimizer)["__deepcopy__"] = _refuse_copy
        module.register_forward_pre_hook(self._passes)
        self._last_look = self._inner.register_step_pre_hook(self._before_move)
        self._inner.register_step_post_hook(self._note_move)
        self._weights.watch(self._module, optimizer)
        _INSIDE.add(self._inner)
        _WATCHED.add(self)
        self._draws.pending, self._draws.opened = self._pending, self._note_weights

    def _end_passes(self) -> None:
        """Begin to count anew; several passes for one clipping are a caveat, because only one batch was drawn."""
        if self._passes.number > 1:
            self.notice(SEVERAL_PASSES)
        self._passes.number = 0

    def use_secret(self, generator: Any) -> None:
        """Say that noise comes from this generator with a secret state; None if it does not."""
        self.secret, self._seed = generator, None if generator is None else generator.initial_seed()

    def hook(self, optimizer: Any) -> None:
        """Account for the step that is about to move the weights; the hook that Opacus attaches."""
        if optimizer is not self._optimizer:
            raise InputError("this hook belongs to another optimizer; call make_private for each optimizer")
        self._step()

    # ---- what is seen

    def _seeing_clips(self, clip: Callable[[], None]) -> Callable[[], None]:
        def clip_and_accumulate() -> None:
            self._check_summed()
            samples = [parameter.grad_sample for parameter in self._optimizer.params]
            rows = {_rows(found) for found in samples if found is not None}
            if len(rows) > 1:  # clipping per layer takes a number of its own for each
                raise DrawsAndSteps(
                    f"some weights have {min(rows)} gradients in this step, and others {max(rows)}. Every record must have one "
                    "gradient for every weight. Keep one row per record in every layer"
                )
            self._notice_precision(samples)
            norms = getattr(self._optimizer, "max_grad_norms", None) or [self._optimizer.max_grad_norm]
            clip()
            self._end_passes()
            self._clipped.append((max(rows, default=0), math.hypot(*map(float, norms))))
            self._summed = self._summed_sums()

        return clip_and_accumulate

    def _seeing_norms(self, norm: Callable[[], Any], ghost: GhostClipping) -> Callable[[], Any]:
        def get_norm_sample() -> Any:
            found = norm()
            loss = clipping_loss(sys._getframe(1))
            if loss is not None:  # else somebody only looks
                ghost.check(found, loss)
                self.notice(EXACT_ARITHMETIC)
                self._normed, self._sums = (found.detach(), float(self._module.max_grad_norm)), None
                self._check_weight_hooks()
            return found

        return get_norm_sample

    def _seeing_gradients(self, enable: Callable[[], None]) -> Callable[[], None]:
        """Note the sums of clipped gradients.

        Opacus enables its hooks when the backward pass that clips has ended.
        """

        def enable_hooks() -> None:
            enable()
            if self._normed is not None and self._sums is None:
                self._sums = self._gradients()

        return enable_hooks

    def _gradients(self) -> list[tuple[int, int]]:
        """Return identities and versions of the gradients: any later change changes a version."""
        found = [parameter.grad for parameter in self._optimizer.params]
        return [(id(gradient), -1 if gradient is None else gradient._version) for gradient in found]

    def _seeing_sums(self, accumulate: Callable[[], None]) -> Callable[[], None]:
        def accumulate_sums() -> None:
            self._check_summed()
            norms, norm = self._normed or (torch.zeros(0), 0.0)
            if adapts(self._optimizer):  # the norm is chosen after the norms were seen, and clips this batch
                norm = float(self._module.max_grad_norm)
            self._foreign = self._foreign or self._gradients() != self._sums
            self._check_weight_hooks()
            if not self._foreign:
                self._check_length(norms, norm)
            self._normed = self._sums = None
            accumulate()
            self._end_passes()
            self._clipped.append((norms.numel(), norm))
            self._summed = self._summed_sums()

        return accumulate_sums

    def _seeing_noise(self, add: Callable[[], None]) -> Callable[[], None]:
        def add_noise() -> None:
            self._check_summed()
            self._check_sums()
            self._check_adjusted()
            self._noise = (float(self._optimizer.noise_multiplier), float(self._optimizer.max_grad_norm))
            state = self._noise_state()
            if state in self.states:
                raise InputError(
                    "the state of the noise generator was set back, so this step would have the noise of an earlier one. "
                    "Seed generators once, before the first step"
                )
            add()
            self._noisy, self._summed = self._noisy_sums(), None
            if state is not None and self._noise_state() != state:  # only the first of several processes may add noise
                self.states.add(state)

        return add_noise

    def _seeing_noisy(self, change: Callable[[], None]) -> Callable[[], None]:
        """Note the noisy gradients after Opacus has divided them or added those of all processes."""

        def change_noisy() -> None:
            if self._noisy is not None:  # else no noise was added, and the step is refused for that
                self._check_noisy()
            change()
            self._noisy = self._noisy_sums()

        return change_noisy

    def _noisy_sums(self) -> list[tuple[int, int]]:
        """Return identities and checksums of the gradients that are about to move the weights."""
        gradients = [weight.grad for weight in params(self._optimizer, frozen=True) if weight.grad is not None]
        return list(zip(map(id, gradients), checksums(gradients), strict=True))

    def _noise_state(self) -> bytes | None:
        """Return a hash of the state that the next noise follows from.

        None for devices whose state is not known.
        """
        device = self._optimizer.params[0].device
        generator = self._optimizer.generator
        if generator is None and device.type == "cpu":
            generator = torch.default_generator
        elif generator is None and device.type == "cuda":
            generator = torch.cuda.default_generators[device.index or 0]
        if generator is None:
            return None
        return generator_state(generator)

    def _accounting(self, pre_step: Callable[..., Any]) -> Callable[..., Any]:
        def accounted_pre_step(*arguments: Any, **options: Any) -> Any:
            self._done, self._noise, self._noisy = (
                False,
                (0.0, 0.0),
                None,
            )  # noise of an earlier step is none of this one
            try:
                moves = pre_step(*arguments, **options)
                if moves and not self._done:  # the hook was replaced
                    self._step()
                if moves:
                    self._check_noisy()
            except BaseException:
                self._clipped, self._foreign, self._summed = [], False, None
                self._clear()  # sums of physical batches that nobody counts any more
                raise
            if moves:
                self._clipped, self._foreign = [], False
            return moves

        return accounted_pre_step

    def _pending(self) -> bool:
        if self._clipped or self._normed is not None:
            return True
        samples = [getattr(parameter, "grad_sample", None) for parameter in self._optimizer.params]
        flat = [part for found in samples for part in (found if isinstance(found, list) else [found])]
        return any(part is not None and not hasattr(part, "_processed") for part in flat)

    # ---- what is checked

    def _note_weights(self) -> None:
        """Remember the weights when a draw is handed out; a change since the last step is a caveat."""
        if self._weights.changed() and self._draws.used:
            self.notice(CHANGED)
        if self._weights.state_changed() and self._draws.used:
            self.notice(STATE_CHANGED)
        if self.other_moved and self._draws.handed:
            self.notice(OTHER_OPTIMIZER)
        self.other_moved = False
        self._passes.number = 0
        self._weights.note()

    def _before_move(self, *given: Any) -> None:
        """Refuse to move the weights by anything else than the noisy gradient; the last hook before they move."""
        if not self._moving:
            raise InputError(
                "the optimizer inside was asked for a step, which has no noise and is not accounted. Call step() of the "
                "optimizer that make_private returned, and nothing else"
            )
        self._check_noisy()

    def _check_noisy(self) -> None:
        """Refuse a gradient that is not the one with noise, and an optimizer that nobody watches."""
        changed = self._noisy_sums() != self._noisy
        if not changed and self._optimizer.original_optimizer is self._inner:
            return
        self._moving = False
        self._clear()
        if changed:
            raise InputError(
                "the noisy gradient was changed after noise was added, perhaps by a hook, which may have used records. Put "
                "what only uses the noisy gradient into the optimizer itself"
            )
        raise InputError(
            "original_optimizer was replaced after make_private, and nobody watches the new one. Call make_private again, "
            "with the new optimizer"
        )

    def _note_move(self, *given: Any) -> None:
        if self._moving:
            self._weights.note()
        self._moving, self._noisy = False, None

    def _notice_precision(self, samples: list[Any]) -> None:
        flat = [part for found in samples for part in (found if isinstance(found, list) else [found])]
        for kind in {part.dtype for part in flat if part is not None} - {torch.float32, torch.float64}:
            excess = CLIPPING_ROUNDINGS * torch.finfo(kind).eps / 2
            self.notice(f"gradients of records were of {kind}: clipped norms may exceed the bound by {excess:.1%}")

    def _clipped_sums(self) -> list[Any]:
        """Return the sums of clipped gradients that Opacus keeps."""
        states = getattr(self._optimizer, "grad_state", {})
        found = [
            states[weight]["summed_grad"] if weight in states else weight.summed_grad
            for weight in self._optimizer.params
        ]
        return [each for each in found if each is not None]

    def _summed_sums(self) -> list[tuple[int, int]]:
        """Return identities and checksums of the sums of clipped gradients."""
        found = self._clipped_sums()
        return list(zip(map(id, found), checksums(found), strict=True))

    def _check_summed(self) -> None:
        """Refuse sums that somebody changed after they were clipped."""
        if self._clipped and self._summed_sums() != self._summed:
            raise InputError(
                "the sum of clipped gradients was changed before noise was added, so that clipping does not bound it. Leave "
                "summed_grad to Opacus"
            )

    def _check_adjusted(self) -> None:
        """Refuse noise that adaptive clipping made for another multiplier than the one that is accounted."""
        adjusted = getattr(self._optimizer, "_adjusted_noise_multiplier", None)
        if adjusted is None:
            return
        counted = 2 * COUNT_DEVIATION * self._clipped[-1][0] * self._world if self._clipped else 0
        made = 0.0 if not (adjusted and counted) else (adjusted**-2 + counted**-2) ** -0.5
        if float(self._optimizer.noise_multiplier) > made * (1 + NORM_TOLERANCE):
            raise InputError(
                f"noise_multiplier={self._optimizer.noise_multiplier}, but adaptive clipping makes noise for {made:.6g}. It "
                "cannot be changed during the run: call make_private again"
            )

    def _check_sums(self) -> None:
        """Refuse sums that clipping does not bound: of weights of low precision, or not finite."""
        for found in self._clipped_sums():
            if found.dtype not in (torch.float32, torch.float64):
                raise InputError(
                    f"weights of {found.dtype} round the sum of gradients by more than a record moves it. Keep weights of "
                    "float32, and use torch.autocast for the forward pass"
                )
            local = found.to_local() if hasattr(found, "to_local") else found
            if not bool(torch.isfinite(local).all()):
                raise InputError(
                    "the gradient of a record is not finite, and clipping does not bound it: noise hides nothing of such a "
                    "sum. Remove such records by a public rule, or make the loss finite for every input"
                )

    def _check_weight_hooks(self) -> None:
        """Refuse hooks of weights where the backward pass clips: they see its sum, and noise is made for what it was."""
        for weight in params(self._optimizer, frozen=True):
            if weight._backward_hooks or getattr(weight, "_post_accumulate_grad_hooks", None):
                raise InputError(
                    "a hook of a weight may change its gradient after clipping, if the backward pass clips. Remove it, or use "
                    "grad_sample_mode='hooks'"
                )

    def _check_length(self, norms: torch.Tensor, norm: float) -> None:
        """Refuse a sum of clipped gradients that is longer than clipping allows."""
        gradients = [weight.grad for weight in self._optimizer.params if weight.grad is not None]
        if any(hasattr(gradient, "to_local") for gradient in gradients):  # a shard has a part of the length
            return
        length = math.hypot(*(float(gradient.detach().norm()) for gradient in gradients))
        # with several processes the gradient is the average over all of them, and their norms are not known here
        most = float(norms.clamp(max=norm).sum()) if self._world == 1 else norms.numel() * norm
        if length > (1 + SUM_EXCESS) * most + NORM_TOLERANCE * norm:
            raise InputError(
                f"the sum of clipped gradients is longer than {norms.numel()} records allow: {length:.3g} instead of "
                f"{most:.3g}. Bounds on what flows back undo ghost clipping. Use grad_sample_mode='hooks'"
            )

    def _check_weights(self) -> None:
        """Refuse weights that moved, or are about to move, without noise."""
        if self._weights.changed():
            raise InputError(
                "weights changed between a draw and its step: another optimizer, or the one inside, used gradients without "
                "noise. Call step() of the optimizer that make_private returned, and nothing else"
            )
        if self._weights.state_changed():
            raise InputError(
                "the state of the optimizer changed between a draw and its step, perhaps by gradients without noise. Leave "
                "momentum and other states to the optimizer"
            )
        if self._weights.buffers_changed():
            raise InputError(
                "a buffer of the module changed between a draw and its step. Statistics of records have no noise, and they are "
                "part of the model. Use a layer without running statistics, such as GroupNorm"
            )
        noisy = set(self._optimizer.params)
        for weight in params(self._optimizer, frozen=True):
            if weight not in noisy and weight.grad is not None and bool(weight.grad.any()):
                raise InputError(
                    "a weight that was frozen after the backward pass has a gradient without noise. Freeze weights between "
                    "steps, and call optimizer.zero_grad()"
                )

    # ---- what is accounted

    def _step(self) -> None:
        try:
            if os.getpid() != self._process:
                raise InputError(
                    "this process was forked from the one that called make_private: both would use the same noise, and neither "
                    "counts the steps of the other. Call make_private in every process"
                )
            if processes() != self._world:
                raise InputError(unwrapped(processes()))
            if self._world > 1:  # before any other check: one that fails on one process lets the others wait for it
                compare_ranks(self._settings(), self._optimizer.params)
            self._check_weights()
            if self.divisor is not None and self._optimizer.expected_batch_size != self.divisor:
                raise InputError(
                    f"expected_batch_size={self._optimizer.expected_batch_size} was {self.divisor:g}: a divisor that follows "
                    "the size of the sample tells who is in it. Leave it as make_private sets it"
                )
            check_shards(self._module)
            if not self._optimizer.params:
                raise InputError(
                    "no parameter is trained, so this step has neither clipping nor noise; train at least one"
                )
            if self._optimizer.accumulated_iterations != 1:
                raise InputError(
                    f"gradients of {self._optimizer.accumulated_iterations} batches were accumulated into one step, and "
                    "nothing is proved for that; use BatchMemoryManager, or a larger sample"
                )
            noise, norm = self._noise
            if not noise > 0:
                raise InputError(f"noise_multiplier={noise} adds no noise, so nothing is private; it must be positive")
            if not 0 < norm < math.inf:
                raise InputError(
                    f"max_grad_norm={norm} clips nothing to a norm that noise can cover; it must be positive"
                )
            if self._foreign:
                raise InputError(
                    "gradients were added or changed after clipping: another loss, or clipping by somebody else. Call backward "
                    "of the criterion that make_private returned, and nothing else"
                )
            for _, clipped in self._clipped:
                if not math.isclose(clipped, norm, rel_tol=NORM_TOLERANCE):
                    raise InputError(
                        f"gradients were clipped to the norm {clipped:g}, but the noise was made for the norm {norm:g}: set "
                        "max_grad_norm of optimizer and module together, and only between steps"
                    )
            draw = self._draws.match(sum(rows for rows, _ in self._clipped))
            self._account(noise, draw)
            self._draws.use(draw)
            if self.other_moved:
                self.notice(OTHER_OPTIMIZER)
                self.other_moved = False
            self._first_norm = self._first_norm or norm
            if not adapts(self._optimizer) and not math.isclose(norm, self._first_norm, rel_tol=NORM_TOLERANCE):
                self.notice(NORM_CHANGED)
        except CumulantError:
            self._clear()
            raise
        self._done = self._moving = True
        self._inner._optimizer_step_pre_hooks.move_to_end(self._last_look.id)  # after hooks that were registered since

    def _settings(self) -> dict[str, str]:
        """Return what must be equal on all processes in a step."""
        noise, norm = self._noise
        return {
            "noise_multiplier": repr(noise),
            "max_grad_norm": repr(norm),
            "expected_batch_size": repr(self._optimizer.expected_batch_size),
            "loss_reduction": repr(self._optimizer.loss_reduction),
            "the draw": self._draws.fingerprint(),
        }

    def _clear(self) -> None:
        """Drop the noisy gradient and the raw sums: neither may be used after a refusal."""
        for parameter in self._optimizer.params:
            parameter.grad = parameter.summed_grad = parameter.grad_sample = None
        for state in getattr(self._optimizer, "grad_state", {}).values():
            state["summed_grad"] = None

    def noise_source(self) -> str:
        """Name the source of the noise, as a caveat."""
        given = self._optimizer.generator
        if given is not None and given is self.secret and given.initial_seed() == self._seed:
            return "noise came from torch's generator with a secret state, which is not cryptographic"
        return random_source("noise", SUBTRACTED, given, self._optimizer.params[0].device)


def _rows(found: Any) -> int:
    return sum(len(part) for part in found) if isinstance(found, list) else 0 if found is None else len(found)


def _refuse_copy(memo: Any) -> NoReturn:
    raise InputError(
        "a copy of an accounted optimizer would step on the gradients of the first one; call make_private for every module"
    )


def random_source(what: str, harm: str, given: Any, device: Any) -> str:
    """Name the generator of torch that noise or samples came from, and the harm it allows."""
    if given is not None:
        return f"{what} came from a torch generator that was given: who knows its seed {harm}"
    cuda = torch.device(device).type == "cuda"
    if (torch.cuda.initial_seed() if cuda else torch.initial_seed()) < 2**UNSEEDED_BITS:
        return f"{what} came from torch's generator after torch.manual_seed: who knows the seed {harm}"
    if cuda:
        return f"{what} came from torch's generator, which is not cryptographic"
    return f"{what} came from torch's generator, which starts from 32 random bits: who tries them all {harm}"


def unwrapped(world: int) -> str:
    """Say why several processes without a wrapper are refused."""
    return (
        f"{world} processes are running, but the module was made private for another number of them: each would train on "
        "samples of its own. Wrap the module in DPDDP, DDP or fully_shard before make_private, or run one process"
    )


def compare_ranks(settings: Mapping[str, str], weights: Sequence[torch.Tensor] = ()) -> None:
    """Refuse settings that differ between processes, on all of them.

    With weights, hashes of the settings are compared first, on the device of the weights, because that is faster.
    """
    distributed = torch.distributed
    world = distributed.get_world_size()
    if weights:
        digest = hashlib.blake2b(repr(sorted(settings.items())).encode(), digest_size=STATE_BYTES).digest()
        mine = torch.frombuffer(bytearray(digest), dtype=torch.uint8).to(weights[0].device)
        hashes = [torch.empty_like(mine) for _ in range(world)]
        distributed.all_gather(hashes, mine)
        if all(torch.equal(each, mine) for each in hashes):
            return
    found: list[Any] = [None] * world
    distributed.all_gather_object(found, dict(settings))
    for name in settings:
        values = list(dict.fromkeys(each.get(name) for each in found))
        if len(values) > 1:
            raise InputError(
                f"{name} differs between processes: {' and '.join(map(str, values))}. One record may then move the sum by more "
                "than the noise is made for. Set it alike on all processes"
            )


def check_shards(module: Any) -> None:
    """Refuse shards whose gradients are not averaged over all processes, because noise is divided by their number."""
    for part in module.modules():
        if not isinstance(part, FSDPModule):
            continue
        state: Any = part._get_fsdp_state()
        groups = getattr(state, "_fsdp_param_groups", None) or [state._fsdp_param_group]
        for group in (each for each in groups if each is not None):
            custom = not type(group._reduce_scatter_comm).__module__.startswith("torch.")
            if group.gradient_divide_factor is not None or group._all_reduce_hook is not None or custom:
                raise InputError(
                    "gradients of fully_shard are not averaged over all processes, but the noise is. Leave out "
                    "set_gradient_divide_factor, set_all_reduce_hook and set_custom_reduce_scatter"
                )


def secret_generator(device: Any) -> torch.Generator:
    """Return a generator of torch with a secret state.

    On a CPU torch.manual_seed uses 32 bits of its seed, which can all be tried; so the whole state is drawn.
    """
    generator = torch.Generator(device)
    generator.manual_seed(secrets.randbits(63))
    if torch.device(device).type == "cpu":
        state = generator.get_state().numpy().copy()
        words = np.frombuffer(secrets.token_bytes(4 * MT19937_WORDS), dtype="<u4").astype("<u8")
        state[MT19937_OFFSET : MT19937_OFFSET + 8 * MT19937_WORDS] = words.view(np.uint8)
        generator.set_state(torch.from_numpy(state))
    return generator
