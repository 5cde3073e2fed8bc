"""One of two processes that train together; started by the tests with rank, directory and key, writes what it saw."""

import json
import sys
import warnings
from pathlib import Path

import torch
from opacus import PrivacyEngine
from opacus.distributed import DifferentiallyPrivateDistributedDataParallel as DPDDP
from opacus.utils.uniform_sampler import DistributedUniformWithReplacementSampler

from cumulant import InputError
from cumulant.integrations.opacus import make_private

RECORDS, SAMPLE, STEPS = 40, 20, 3


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
    torch.distributed.init_process_group(
        "gloo", init_method=f"file://{directory / 'rendezvous'}", rank=rank, world_size=2
    )
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
    found = {
        "seen": data.seen,
        "moved": moved,
        "history": engine.accountant.history,
        "expected": optimizer.expected_batch_size,
        "different keys": refused(rank, [bytes(32), bytes([1]) * 32]),
        "stock poisson": stock_poisson(rank),
        "equal seeds": local_batches(rank, 0.3, seed=0),
        "rare": len([b for b in local_batches(rank, 0.05, seed=rank) if b]),
    }
    (directory / f"rank{rank}.json").write_text(json.dumps(found), encoding="utf-8")
    torch.distributed.destroy_process_group()


if __name__ == "__main__":
    main(int(sys.argv[1]), Path(sys.argv[2]))
