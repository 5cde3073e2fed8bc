"""Small loops with Opacus, for the tests beside this file."""

from typing import Any

import numpy as np
import torch
from opacus import PrivacyEngine
from torch.utils.data import DataLoader, TensorDataset

from cumulant.integrations.opacus import make_private

RECORDS, BATCH, DELTA = 1797, 64, 1e-5
FIXED, POISSON, SHUFFLED = "cumulant-fixed-size", "cumulant", "cumulant-shuffled"


def data(records: int = RECORDS) -> TensorDataset:
    rng = np.random.default_rng(1)
    return TensorDataset(
        torch.tensor(rng.normal(size=(records, 8)), dtype=torch.float32), torch.tensor(rng.integers(0, 3, records))
    )


def model() -> tuple[Any, Any]:
    module = torch.nn.Linear(8, 3)
    return module, torch.optim.SGD(module.parameters(), lr=0.1)


def step(module: Any, optimizer: Any, batch: Any, criterion: Any = torch.nn.functional.cross_entropy) -> None:
    optimizer.zero_grad()
    criterion(module(batch[0]), batch[1]).backward()
    optimizer.step()


def train(module: Any, optimizer: Any, loader: Any, passes: int = 1) -> None:
    for _ in range(passes):
        for batch in loader:
            step(module, optimizer, batch)


def fixed(records: int = RECORDS, limit: Any = None, noise: float = 4.0, **options: Any) -> tuple[Any, ...]:
    engine = PrivacyEngine(accountant=FIXED)
    engine.accountant.limit = limit
    module, optimizer = model()
    arguments = {"sample": BATCH, "noise_multiplier": noise, "max_grad_norm": 1.0, **options}
    return engine, *make_private(engine, module=module, optimizer=optimizer, dataset=data(records), **arguments)


def stock(accountant: str, loader: Any = None, noise: float = 2.0, **options: Any) -> tuple[Any, ...]:
    engine = PrivacyEngine(accountant=accountant)
    module, optimizer = model()
    loader = loader or DataLoader(data(), batch_size=BATCH, shuffle=True)
    return engine, *engine.make_private(
        module=module, optimizer=optimizer, data_loader=loader, noise_multiplier=noise, max_grad_norm=1.0, **options
    )


def weights(module: Any) -> list[float]:
    return [float(x) for parameter in module.parameters() for x in parameter.detach().flatten()]
