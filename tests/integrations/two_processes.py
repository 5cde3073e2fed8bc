"""One of two processes that train together; started by the tests with rank, directory and key, writes what it saw."""

import json
import sys
import warnings
from pathlib import Path
from typing import Any

import torch
from opacus import PrivacyEngine
from opacus.distributed import DifferentiallyPrivateDistributedDataParallel as DPDDP
from opacus.utils.uniform_sampler import DistributedUniformWithReplacementSampler
from torch.distributed.fsdp import fully_shard

from cumulant import InputError
from cumulant.integrations.opacus import make_private

RECORDS, SAMPLE, STEPS = 40, 20, 3
NORM = 0.1  # below the norm of every gradient, so that all of them are clipped to it


class OneHot(torch.utils.data.Dataset[torch.Tensor]):
    """Record i is the i-th unit vector, so a gradient says which records are in it."""

    def __init__(self) -> None:
        self.seen: list[int] = []

    def __len__(self) -> int:
        return RECORDS

    def __getitem__(self, i: int) -> torch.Tensor:
        self.seen.append(int(i))
        return torch.eye(RECORDS)[int(i)]


def refused(rank: int, keys: list[bytes]) -> str:
    """What is said if ranks hold different keys."""
    module = DPDDP(torch.nn.Linear(RECORDS, 1, bias=False))
    optimizer = torch.optim.SGD(module.parameters(), lr=1.0)
    engine = PrivacyEngine(accountant="cumulant-fixed-size")
    try:
        make_private(
            engine,
            module=module,
            optimizer=optimizer,
            dataset=OneHot(),
            sample=SAMPLE,
            noise_multiplier=1.0,
            max_grad_norm=1.0,
            key=keys[rank],
        )
    except InputError as error:
        return str(error)
    return ""


def unlike(rank: int, setting: str, early: bool) -> str:
    """What is said if one process has another setting than the other one, from make_private or from the first step on."""
    module = DPDDP(torch.nn.Linear(RECORDS, 1, bias=False))
    optimizer = torch.optim.SGD(module.parameters(), lr=1.0)
    engine = PrivacyEngine(accountant="cumulant-fixed-size")
    other = {"noise_multiplier": 0.5, "max_grad_norm": 8.0, "loss_reduction": "sum", "expected_batch_size": 1}[setting]
    changed = {setting: other} if rank == 1 else {}
    given: dict[str, Any] = {"noise_multiplier": 2.0, "max_grad_norm": 1.0, **(changed if early else {})}
    try:
        module, optimizer, loader = make_private(
            engine, module=module, optimizer=optimizer, dataset=OneHot(), sample=SAMPLE, key=bytes(32), **given
        )
        vars(optimizer).update(changed)
        optimizer.zero_grad()
        module(next(iter(loader))).mean().backward()
        optimizer.step()
    except InputError as error:
        return str(error) if not len(engine.accountant) else "a step was accounted"
    return ""


def stock_poisson(rank: int) -> str:
    module = DPDDP(torch.nn.Linear(RECORDS, 1, bias=False))
    optimizer = torch.optim.SGD(module.parameters(), lr=1.0)
    loader = torch.utils.data.DataLoader(OneHot(), batch_size=4)
    engine = PrivacyEngine(accountant="cumulant")
    try:
        engine.make_private(
            module=module, optimizer=optimizer, data_loader=loader, noise_multiplier=1.0, max_grad_norm=1.0
        )
    except InputError as error:
        return str(error)
    return ""


def unwrapped(accountant: str) -> str:
    """What is said if two processes train a module that nothing wraps."""
    module = torch.nn.Linear(RECORDS, 1, bias=False)
    optimizer = torch.optim.SGD(module.parameters(), lr=1.0)
    engine = PrivacyEngine(accountant=accountant)
    both = {"module": module, "optimizer": optimizer, "noise_multiplier": 1.0, "max_grad_norm": 1.0}
    loader = torch.utils.data.DataLoader(OneHot(), batch_size=4)
    try:
        if accountant == "cumulant-fixed-size":
            make_private(engine, dataset=OneHot(), sample=SAMPLE, **both)
        else:
            engine.make_private(data_loader=loader, poisson_sampling=accountant == "cumulant", **both)
    except InputError as error:
        return str(error)
    return ""


def part_of_the_processes(rank: int) -> str:
    """What is said if the module is wrapped for one of the two processes."""
    groups = [torch.distributed.new_group([one]) for one in range(2)]
    module = torch.nn.parallel.DistributedDataParallel(
        torch.nn.Linear(RECORDS, 1, bias=False), process_group=groups[rank]
    )
    optimizer = torch.optim.SGD(module.parameters(), lr=1.0)
    engine = PrivacyEngine(accountant="cumulant-fixed-size")
    both = {"module": module, "optimizer": optimizer, "noise_multiplier": 1.0, "max_grad_norm": 1.0}
    try:
        make_private(engine, dataset=OneHot(), sample=SAMPLE, **both)
    except InputError as error:
        return str(error)
    return ""


def sharded(
    mode: str, data: OneHot, factor: float | None = None, late: bool = False
) -> tuple[str, list[list[float]], list[tuple[float, str, int]]]:
    """A module whose weights are sharded: what is said, how the weights move, and what is accounted."""
    torch.manual_seed(0)
    module = fully_shard(torch.nn.Linear(RECORDS, 2, bias=False))
    if factor is not None and not late:
        module.set_gradient_divide_factor(factor)
    sharded_module = module
    optimizer = torch.optim.SGD(module.parameters(), lr=1.0)
    engine = PrivacyEngine(accountant="cumulant-fixed-size")
    both = {"module": module, "optimizer": optimizer, "noise_multiplier": 1e-6, "max_grad_norm": NORM}
    try:
        module, optimizer, criterion, loader = make_private(
            engine,
            dataset=data,
            sample=SAMPLE,
            steps=STEPS,
            grad_sample_mode=mode,
            criterion=torch.nn.CrossEntropyLoss(),
            key=bytes(32),
            **both,
        )
    except InputError as error:
        return str(error), [], []
    moved = []
    for batch in loader:
        before = next(module.parameters()).detach().full_tensor().clone()
        optimizer.zero_grad()
        criterion(module(batch), torch.zeros(len(batch), dtype=torch.long)).backward()
        if factor is not None:
            sharded_module.set_gradient_divide_factor(factor)
            try:
                optimizer.step()
            except InputError as error:
                return str(error), [], engine.accountant.history
        optimizer.step()
        after = next(module.parameters()).detach().full_tensor()
        moved.append((after - before).norm(dim=0).mul(SAMPLE / NORM).tolist())
    return "", moved, engine.accountant.history


def late_group(directory: Path, rank: int) -> str:
    """What is said if the processes meet after make_private, as under Lightning: before, each of them was alone."""
    module = torch.nn.Linear(RECORDS, 1, bias=False)
    optimizer = torch.optim.SGD(module.parameters(), lr=1.0)
    engine = PrivacyEngine(accountant="cumulant-fixed-size")
    both = {"module": module, "optimizer": optimizer, "noise_multiplier": 1.0, "max_grad_norm": 1.0}
    module, optimizer, loader = make_private(engine, dataset=OneHot(), sample=SAMPLE, **both)
    meet(directory, rank)
    try:
        for batch in loader:
            optimizer.zero_grad()
            module(batch).mean().backward()
            optimizer.step()
    except InputError as error:
        return str(error)
    return ""


def meet(directory: Path, rank: int) -> None:
    torch.distributed.init_process_group(
        "gloo", init_method=f"file://{directory / 'rendezvous'}", rank=rank, world_size=2
    )


def local_batches(rank: int, rate: float, seed: int) -> list[list[int]]:
    """What Opacus' own distributed Poisson sampler draws here, as positions in this rank's part."""
    torch.manual_seed(seed)
    sampler = DistributedUniformWithReplacementSampler(
        total_size=RECORDS, sample_rate=rate, shuffle=False, generator=None
    )
    return [[int(i) // 2 for i in batch] for batch in sampler]


def main(rank: int, directory: Path) -> None:
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    late = late_group(directory, rank)
    torch.manual_seed(0)
    data = OneHot()
    module = DPDDP(torch.nn.Linear(RECORDS, 1, bias=False))
    optimizer = torch.optim.SGD(module.parameters(), lr=1.0)
    engine = PrivacyEngine(accountant="cumulant-fixed-size")
    module, optimizer, loader = make_private(
        engine,
        module=module,
        optimizer=optimizer,
        dataset=data,
        sample=SAMPLE,
        steps=STEPS,
        noise_multiplier=1e-6,
        max_grad_norm=1.0,
        key=bytes(32) if rank == 0 else None,
    )
    moved = []
    for batch in loader:
        before = next(module.parameters()).detach().clone()
        optimizer.zero_grad()
        module(batch).mean().backward()
        optimizer.step()
        moved.append((before - next(module.parameters()).detach()).flatten().mul(SAMPLE).tolist())
    shards = OneHot()
    _, moved_shards, history = sharded("ghost_fsdp", shards)
    found = {
        "late": late,
        "unwrapped": [unwrapped(name) for name in ("cumulant-fixed-size", "cumulant", "cumulant-shuffled")],
        "part": part_of_the_processes(rank),
        "shards seen": shards.seen,
        "shards moved": moved_shards,
        "shards history": history,
        "shards that are not averaged": [sharded("ghost_fsdp", OneHot(), 1.0, late)[0] for late in (False, True)],
        "shards with hooks": sharded("hooks", OneHot())[0],
        "seen": data.seen,
        "moved": moved,
        "history": engine.accountant.history,
        "expected": optimizer.expected_batch_size,
        "different keys": refused(rank, [bytes(32), bytes([1]) * 32]),
        "unlike": {
            name: [unlike(rank, name, early) for early in (True, False) if not early or name != "expected_batch_size"]
            for name in ("noise_multiplier", "max_grad_norm", "loss_reduction", "expected_batch_size")
        },
        "stock poisson": stock_poisson(rank),
        "equal seeds": local_batches(rank, 0.3, seed=0),
        "rare": len([b for b in local_batches(rank, 0.05, seed=rank) if b]),
    }
    (directory / f"rank{rank}.json").write_text(json.dumps(found), encoding="utf-8")
    torch.distributed.destroy_process_group()


if __name__ == "__main__":
    main(int(sys.argv[1]), Path(sys.argv[2]))
