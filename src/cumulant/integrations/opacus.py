"""Accounting for Opacus: five accountants, and loaders whose law they read.

Importing this module registers accountants for `PrivacyEngine(accountant=…)`: "cumulant" (Poisson samples, add/remove),
"cumulant-fixed-size" (replace-one), "cumulant-balls-in-bins" and "cumulant-cyclic-poisson" (add/remove) and "cumulant-shuffled"
(shuffled epochs, replace-one, amplified where our sampler drew them). Clipping and noise stay those of Opacus, in floating
point: the guarantees are for ideal ones (`CAVEATS`).
"""

from __future__ import annotations

import hashlib
import math
import secrets
from collections.abc import Mapping
from fractions import Fraction
from typing import Any

try:
    import torch
    from opacus.accountants import register_accountant
    from opacus.data_loader import dtype_safe, shape_safe, wrap_collate_with_empty
    from opacus.optimizers import DPOptimizer
    from torch.utils.data import DataLoader, default_collate
except ModuleNotFoundError as missing:
    raise ModuleNotFoundError(
        "cumulant.integrations.opacus needs torch and Opacus: pip install 'cumulant[opacus]'", name=missing.name
    ) from None

from cumulant.calibrate import calibrate
from cumulant.domains import POSITIVE, Number
from cumulant.errors import InputError, shown
from cumulant.integrations.opacus_accountants import (
    BallsInBinsAccountant,
    CyclicPoissonAccountant,
    FixedSizeAccountant,
    PoissonAccountant,
    ShuffledAccountant,
)
from cumulant.integrations.opacus_accounting import ADAPTIVE, CAVEATS, GIVEN_KEY, RANDOM_ROWS, Accountant
from cumulant.integrations.opacus_loading import DrawsAndSteps
from cumulant.integrations.opacus_steps import check_shards, compare_ranks, processes, secret_generator, unwrapped
from cumulant.mechanisms.gaussian import Gaussian
from cumulant.mechanisms.mechanism import Expression
from cumulant.training.balls_in_bins import BallsInBinsSampler
from cumulant.training.cyclic_poisson import CyclicPoissonSampler
from cumulant.training.opacus_history import from_opacus, torch_rate
from cumulant.training.sampler import KEY_BYTES, FixedSizeSampler, PoissonSampler, Sampler
from cumulant.training.shuffled_sampler import ShuffledSampler

__all__ = [
    "CAVEATS",
    "BallsInBinsAccountant",
    "CyclicPoissonAccountant",
    "DrawsAndSteps",
    "FixedSizeAccountant",
    "PoissonAccountant",
    "ShuffledAccountant",
    "from_opacus",
    "make_private",
    "make_private_with_epsilon",
    "torch_rate",
]

for _name in ("attach_step_hook", "accumulated_iterations", "params", "clip_and_accumulate", "add_noise", "pre_step"):
    if not hasattr(DPOptimizer, _name):
        raise ImportError(f"this release of Opacus has no DPOptimizer.{_name}; install opacus>=1.6,<1.7")

for _accountant in (
    PoissonAccountant,
    FixedSizeAccountant,
    BallsInBinsAccountant,
    CyclicPoissonAccountant,
    ShuffledAccountant,
):
    register_accountant(_accountant.name, _accountant, force=True)


def make_private(
    engine: Any,
    *,
    module: Any,
    optimizer: Any,
    dataset: Any,
    noise_multiplier: float,
    max_grad_norm: Any,
    sample: int | None = None,
    rate: Number | None = None,
    bins: int | None = None,
    cycle: int | None = None,
    batch: int | None = None,
    steps: int | None = None,
    key: bytes | None = None,
    loader: Mapping[str, Any] | None = None,
    **options: Any,
) -> tuple[Any, ...]:
    """Return module, optimizer and loader that draw what is accounted.

    | law | arguments | accountant of the engine |
    |---|---|---|
    | samples of fixed size | `sample` | "cumulant-fixed-size" |
    | Poisson samples | `rate` | "cumulant" |
    | every record in one of `bins` steps of a pass | `bins` | "cumulant-balls-in-bins" |
    | Poisson samples from `cycle` parts that take turns | `rate`, `cycle` | "cumulant-cyclic-poisson" |
    | a fresh secret permutation per pass, cut into batches | `batch` | "cumulant-shuffled" |

    One pass over the loader has `steps` draws. `loader` has further arguments of the DataLoader, `options` those of Opacus'
    make_private. With several processes each takes its part of the one shared draw; rank 0 makes the key and sends it.

    Every step must use one draw of the loader, and all of it; DrawsAndSteps says what it did instead. Noise comes from a
    generator with a secret state, whatever torch.manual_seed was told, unless `noise_generator=…` is given.
    """
    accountant = engine.accountant
    if not isinstance(accountant, Accountant):
        raise InputError(
            f"{type(accountant).__name__} does not know this loader; make the engine by "
            'PrivacyEngine(accountant="cumulant-fixed-size"), or "cumulant" for Poisson samples'
        )
    for fixed in ("poisson_sampling", "data_loader"):
        if fixed in options:
            raise InputError(
                f"{fixed} is not yours to choose here: the loader is made from the data set and sample or rate"
            )
    if not POSITIVE.check("noise_multiplier", float(noise_multiplier)):
        raise InputError(f"noise_multiplier={shown(noise_multiplier)} must be positive")
    if options.get("rand_on_empty"):
        raise InputError(RANDOM_ROWS)
    world = _world(module, options.get("grad_sample_mode", "hooks"))
    rank = torch.distributed.get_rank() if world > 1 else 0
    given_key = key is not None
    key = _shared_key(key) if world > 1 else key
    law = _sampler(len(dataset), sample, rate, bins, cycle, batch, steps, key, rank, world)
    if world > 1:
        _compare(law)
        shared = {
            "noise_multiplier": float(noise_multiplier),
            "max_grad_norm": max_grad_norm,
            "len(dataset)": len(dataset),
        }
        named = {name: options.get(name) for name in ("loss_reduction", "grad_sample_mode", "clipping")}
        compare_ranks({name: repr(value) for name, value in (shared | named).items()})
    given = dict(loader or {})
    if sample is None:
        given["collate_fn"] = _empty_safe_collate(dataset, given.get("collate_fn", default_collate))
        if options.get("clipping") == "adaptive":
            raise InputError(ADAPTIVE)
    accountant.text(law)  # the accountant must be the one of this law
    before = accountant.law, accountant.generator, accountant.divisor
    expected = float(sample) if sample is not None else law.inclusion * len(dataset)
    accountant.law, accountant.divisor = law, expected / world
    if options.get("noise_generator") is None and not getattr(engine, "secure_mode", False):
        options["noise_generator"] = accountant.generator = secret_generator(next(iter(module.parameters())).device)
    try:
        found = engine.make_private(
            module=module,
            optimizer=optimizer,
            data_loader=DataLoader(dataset, batch_sampler=law, **given),
            noise_multiplier=noise_multiplier,
            max_grad_norm=max_grad_norm,
            poisson_sampling=False,
            **options,
        )
    finally:
        accountant.law, accountant.generator, accountant.divisor = before
    if given_key:
        accountant.notice(GIVEN_KEY)
    found[0].forbid_grad_accumulation()
    found[1].expected_batch_size = expected / world
    return tuple(found)


def _sampler(
    records: int,
    sample: int | None,
    rate: Number | None,
    bins: int | None,
    cycle: int | None,
    batch: int | None,
    steps: int | None,
    key: bytes | None = None,
    rank: int = 0,
    world: int = 1,
) -> Sampler:
    """Return the sampler that these arguments name; InputError if they name none or two."""
    if sum(value is not None for value in (sample, rate, bins, batch)) != 1 or (cycle is not None and rate is None):
        raise InputError(
            "give sample=… (fixed size), rate=… (Poisson), bins=… (balls in bins) or batch=… (shuffled passes), one of them; "
            "cycle=… goes with rate=…"
        )
    if batch is not None:
        law = ShuffledSampler(records, batch, key, rank=rank, world=world)
        if steps not in (None, len(law)):
            raise InputError(f"steps={steps} but a pass of batches of {batch} has {len(law)}; leave steps=… out")
        return law
    if sample is not None:
        return FixedSizeSampler(records, sample, steps, key, rank=rank, world=world)
    if bins is not None:
        if steps not in (None, bins):
            raise InputError(f"steps={steps} but bins={bins}: a pass has one step for each bin; leave steps=… out")
        return BallsInBinsSampler(records, bins, key, rank=rank, world=world)
    if cycle is not None:
        return CyclicPoissonSampler(records, rate or 0, cycle, steps, key, rank=rank, world=world)
    return PoissonSampler(records, rate or 0, steps, key, rank=rank, world=world)


def make_private_with_epsilon(
    engine: Any,
    *,
    dataset: Any,
    epsilon: Number,
    delta: Number,
    steps: int,
    sample: int | None = None,
    rate: Number | None = None,
    bins: int | None = None,
    cycle: int | None = None,
    batch: int | None = None,
    **options: Any,
) -> tuple[Any, ...]:
    """Call make_private with the noise multiplier that meets (epsilon, delta).

    It is met after so many steps.

    Opacus' own search would use 1 / len(loader) for the rate. `steps` is the total number; `per_pass=…` may be given for the
    number of draws in one pass over the loader.
    """
    if len(engine.accountant):
        raise InputError("steps were accounted already, and the search starts from none; use a new engine")
    law = _sampler(len(dataset), sample, rate, bins, cycle, batch, None)

    def run(noise: Any) -> Expression:
        return law.accounted_run(Gaussian.from_clipping(norm=1, noise=noise, relation=law.law.relation), steps)

    found = calibrate(run, epsilon=epsilon, delta=delta)
    per_pass = options.pop("per_pass", len(law) if bins is not None or batch is not None else min(steps, len(law)))
    return make_private(
        engine,
        dataset=dataset,
        sample=sample,
        rate=rate,
        bins=bins,
        cycle=cycle,
        batch=batch,
        steps=per_pass,
        noise_multiplier=_rounded_up(found.value),
        **options,
    )


def _rounded_up(value: Any) -> float:
    """Return the smallest float that is at least a number: more noise, never less."""
    nearest = float(value)
    return nearest if Fraction(nearest) >= Fraction(value) else math.nextafter(nearest, math.inf)


def _empty_safe_collate(dataset: Any, collate: Any) -> Any:
    """Return a collate function for batches that may be empty, the first one too.

    Empty batches have the shapes that a record has.
    """
    record = dataset[0]
    parts = record if isinstance(record, tuple | list) else (record,)
    shapes, kinds = [(0, *shape_safe(part)) for part in parts], [dtype_safe(part) for part in parts]
    return wrap_collate_with_empty(collate_fn=collate, sample_empty_shapes=shapes, dtypes=kinds)


# ---- several processes


def _world(module: Any, mode: str) -> int:
    """Return the number of processes that sum their gradients for this module.

    InputError if they are not all there are.
    """
    from opacus.distributed import DifferentiallyPrivateDistributedDataParallel
    from torch.distributed.fsdp import FSDPModule
    from torch.nn.parallel import DistributedDataParallel

    world = processes()
    if world == 1:
        return 1
    if isinstance(module, FSDPModule):
        if mode != "ghost_fsdp":
            raise InputError(
                f"grad_sample_mode={shown(mode)} does not add up shards; use 'ghost_fsdp' with fully_shard"
            )
        check_shards(module)
        meshes = {getattr(parameter, "device_mesh", None) for parameter in module.parameters()}
        together = min((1 if mesh is None else mesh.size() for mesh in meshes), default=1)
    elif isinstance(module, DistributedDataParallel):
        together = torch.distributed.get_world_size(module.process_group)
    else:
        together = world if isinstance(module, DifferentiallyPrivateDistributedDataParallel) else 1
    if together != world:
        raise InputError(unwrapped(world))
    return world


def _shared_key(key: bytes | None) -> bytes:
    """Agree on one key on all ranks: the one that any rank was given, or a new one of rank 0.

    All ranks refuse two keys.
    """
    marks: list[str | None] = [None] * torch.distributed.get_world_size()
    torch.distributed.all_gather_object(marks, None if key is None else hashlib.sha256(key).hexdigest())
    if len(set(marks) - {None}) > 1:
        raise InputError(
            "ranks were given different keys, so that a record could sit on two of them; give all the same key"
        )
    holder = next((rank for rank, mark in enumerate(marks) if mark is not None), 0)
    mine = torch.distributed.get_rank() == holder
    sent: list[bytes | None] = [(key or secrets.token_bytes(KEY_BYTES)) if mine else None]
    torch.distributed.broadcast_object_list(sent, src=holder)
    return sent[0] or b""


def _compare(sampler: Sampler) -> None:
    """Check that all ranks draw from one stream, from the same step on."""
    found: list[Any] = [None] * sampler.world
    torch.distributed.all_gather_object(found, sampler.fingerprint())
    if len(set(found)) > 1:
        raise InputError(
            "ranks draw different samples, so that a record could sit on two of them; give all the same key"
        )
