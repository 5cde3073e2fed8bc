"""Opacus accounts for what ran: three accountants, and loaders whose law they read.

Importing this module registers "cumulant" (Poisson samples, add/remove), "cumulant-fixed-size" (replace-one) and
"cumulant-shuffled" (shuffled epochs, replace-one, no amplification) for `PrivacyEngine(accountant=…)`. Clipping and noise stay
those of Opacus, in floating point: the guarantees are for ideal ones (`CAVEATS`).
"""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Mapping
from fractions import Fraction
from typing import Any

import torch
from opacus.accountants import register_accountant
from opacus.data_loader import dtype_safe, shape_safe, wrap_collate_with_empty
from opacus.optimizers import DPOptimizer
from torch.utils.data import default_collate

from cumulant.domains import POSITIVE, Number, spelling
from cumulant.errors import InputError, shown
from cumulant.integrations.opacus_accountants import (
    ADAPTIVE,
    CAVEATS,
    Accountant,
    FixedSizeAccountant,
    PoissonAccountant,
    ShuffledAccountant,
    torch_rate,
)
from cumulant.integrations.opacus_loading import AccountedLoader, DrawsAndSteps
from cumulant.mechanisms.gaussian import Gaussian
from cumulant.mechanisms.mechanism import Expression
from cumulant.sampling.poisson import Poisson
from cumulant.training.sampler import KEY_BYTES, FixedSizeSampler, PoissonSampler, Sampler
from cumulant.training.sgd import NoisySGD

__all__ = [
    "CAVEATS",
    "DrawsAndSteps",
    "FixedSizeAccountant",
    "PoissonAccountant",
    "ShuffledAccountant",
    "from_opacus",
    "make_private",
    "make_private_with_epsilon",
    "torch_rate",
]

OPACUS = ("rdp", "prv", "gdp")

for _name in ("attach_step_hook", "accumulated_iterations", "params"):
    if not hasattr(DPOptimizer, _name):
        raise ImportError(f"this release of Opacus has no DPOptimizer.{_name}; install opacus>=1.6,<1.7")

for _accountant in (PoissonAccountant, FixedSizeAccountant, ShuffledAccountant):
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
    steps: int | None = None,
    key: bytes | None = None,
    loader: Mapping[str, Any] | None = None,
    **options: Any,
) -> tuple[Any, ...]:
    """Module, optimizer and loader that draw what is accounted: `sample` records of fixed size, or Poisson samples of `rate`.

    `engine` is PrivacyEngine(accountant="cumulant-fixed-size") for samples of fixed size, "cumulant" for Poisson samples. One
    pass over the loader has `steps` draws. `loader` has further arguments of the DataLoader, `options` those of Opacus'
    make_private. With several processes each takes its part of the one shared draw; rank 0 makes the key and sends it.

    What is drawn and what is accounted are compared at every batch; DrawsAndSteps if they differ.
    """
    accountant = engine.accountant
    if not isinstance(accountant, Accountant):
        raise InputError(
            f"{type(accountant).__name__} does not know this loader; make the engine by "
            'PrivacyEngine(accountant="cumulant-fixed-size"), or "cumulant" for Poisson samples'
        )
    if (sample is None) == (rate is None):
        raise InputError("give sample=… for samples of fixed size, or rate=… for Poisson samples, one of them")
    for fixed in ("poisson_sampling", "data_loader"):
        if fixed in options:
            raise InputError(
                f"{fixed} is not yours to choose here: the loader is made from the data set and sample or rate"
            )
    if not POSITIVE.check("noise_multiplier", float(noise_multiplier)):
        raise InputError(f"noise_multiplier={shown(noise_multiplier)} must be positive")
    world = _world(module)
    rank = torch.distributed.get_rank() if world > 1 else 0
    key = _shared_key(key) if world > 1 else key
    records = len(dataset)
    law: Sampler
    if sample is not None:
        law, expected = FixedSizeSampler(records, sample, steps, key, rank=rank, world=world), sample / world
    else:
        law = PoissonSampler(records, rate or 0, steps, key, rank=rank, world=world)
        expected = float(law.rate * records) / world
    if world > 1:
        _compare(law)
    given = dict(loader or {})
    if rate is not None:
        given["collate_fn"] = _collated(dataset, given.get("collate_fn", default_collate))
        if options.get("clipping") == "adaptive":
            raise InputError(ADAPTIVE)
    private = AccountedLoader(dataset, law, accountant, **given)
    accountant.text(law)  # the accountant must be the one of this law
    before, accountant.law = accountant.law, law
    try:
        found = engine.make_private(
            module=module,
            optimizer=optimizer,
            data_loader=private,
            noise_multiplier=noise_multiplier,
            max_grad_norm=max_grad_norm,
            poisson_sampling=False,
            **options,
        )
    finally:
        accountant.law = before
    found[0].forbid_grad_accumulation()
    found[1].expected_batch_size = expected
    return tuple(found)


def make_private_with_epsilon(
    engine: Any, *, dataset: Any, sample: int, epsilon: Number, delta: Number, steps: int, **options: Any
) -> tuple[Any, ...]:
    """The same with the noise multiplier that meets (epsilon, delta) after so many steps of samples of fixed size.

    Opacus' own search would use 1 / len(loader) for the rate. `steps` is the total number; `per_pass=…` may be given for the
    number of draws in one pass over the loader.
    """
    if len(engine.accountant):
        raise InputError("steps were accounted already, and the search starts from none; use a new engine")
    plan = NoisySGD(batch=sample, records=len(dataset), steps=steps, noise_multiplier=1)
    found = plan.calibrated(epsilon, delta)
    per_pass = options.pop("per_pass", min(steps, max(1, len(dataset) // sample)))
    return make_private(
        engine,
        dataset=dataset,
        sample=sample,
        steps=per_pass,
        noise_multiplier=float(found.noise_multiplier),
        **options,
    )


def from_opacus(state_dict: Mapping[str, Any]) -> Expression:
    """What the history of Opacus' own accountants says, as an expression: Poisson samples at the rates it wrote down.

    That is what was accounted, not what ran: of the loader nothing is known, and with poisson_sampling=False it drew
    something else.

    >>> from_opacus({"mechanism": "rdp", "history": [(2.0, 0.125, 58)]})
    Gaussian(sigma=2, relation="add-remove") @ Poisson(rate=0.125) * 58
    """
    if state_dict.get("mechanism") not in OPACUS or not state_dict.get("history"):
        raise InputError(f"this is no history of Opacus; give the state_dict of an accountant of {', '.join(OPACUS)}")
    whole: Expression | None = None
    for noise, rate, count in state_dict["history"]:
        gaussian = Gaussian.from_clipping(norm=1, noise=float(noise), relation="add-remove")
        part = gaussian @ Poisson(rate=spelling(Fraction(torch_rate(float(rate))))) * int(count)
        whole = part if whole is None else whole + part
    if whole is None:
        raise InputError("this history is empty")
    return whole


def _collated(dataset: Any, collate: Any) -> Any:
    """Batches that may be empty, the first one too: then of the shapes that a record has."""
    record = dataset[0]
    parts = record if isinstance(record, tuple | list) else (record,)
    shapes, kinds = [(0, *shape_safe(part)) for part in parts], [dtype_safe(part) for part in parts]
    return wrap_collate_with_empty(collate_fn=collate, sample_empty_shapes=shapes, dtypes=kinds)


# ---- several processes


def _world(module: Any) -> int:
    from opacus.distributed import DifferentiallyPrivateDistributedDataParallel
    from torch.nn.parallel import DistributedDataParallel

    if not isinstance(module, DifferentiallyPrivateDistributedDataParallel | DistributedDataParallel):
        return 1
    return int(torch.distributed.get_world_size())


def _shared_key(key: bytes | None) -> bytes:
    """The one key that any rank was given, or a new one of rank 0, on all ranks; all of them refuse two keys."""
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
    """Whether all ranks draw from one stream, from the same step on."""
    found: list[Any] = [None] * sampler.world
    torch.distributed.all_gather_object(found, sampler.fingerprint())
    if len(set(found)) > 1:
        raise InputError(
            "ranks draw different samples, so that a record could sit on two of them; give all the same key"
        )
