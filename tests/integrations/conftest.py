"""One thread, one seed, and no word from Opacus about its generator."""

import warnings
from collections.abc import Iterator

import pytest
import torch


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    torch.manual_seed(0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield
    torch.set_num_threads(threads)
