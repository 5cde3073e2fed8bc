"""The page on JAX runs as it stands, with the real jax, optax and JAX Privacy on the digits data."""

import runpy
from pathlib import Path
from typing import Any

import dp_accounting
import jax.numpy as jnp
import numpy as np
import pytest

import cumulant as cm
from tests.docs.test_tutorial import ROOT, agrees, blocks, checked


@pytest.fixture(scope="module")
def names(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    directory = tmp_path_factory.mktemp("jax")
    found: dict[str, Any] = {"_agrees": agrees}
    for number, source in enumerate(blocks(ROOT / "docs" / "how-to-train-jax.md", "python")):
        script = Path(directory / f"block_{number}.py")
        script.write_text(checked(source), encoding="utf-8")
        found = runpy.run_path(str(script), found)
    return found


def test_it_learns_within_its_budget(names: dict[str, Any]) -> None:
    assert 0.84 < names["accuracy"] < 0.97
    assert names["plan"].epsilon(1e-5) <= 3
    assert names["per_example"]._cache_size() == 1


def test_what_fills_up_a_batch_counts_as_nothing(names: dict[str, Any]) -> None:
    """The gradient of a padded batch is that of its records alone, whatever record fills it up."""
    weights = jnp.asarray(np.random.default_rng(1).normal(size=(10, 65)), dtype=jnp.float32)
    x, y = names["x"], names["y"]
    indices, mask = np.array([5, 9, 0, 0]), np.array([True, True, False, False])
    padded = np.asarray(names["per_example"](weights, x[indices], y[indices], mask))
    alone = np.asarray(names["per_example"](weights, x[[5, 9]], y[[5, 9]], np.array([True, True])))
    assert np.allclose(padded[:2], alone, atol=1e-6)
    assert not padded[2:].any()
    assert cm.training.clipped(padded, 1)[2:].sum() == 0


def test_the_plan_of_jax_privacy_has_the_noise_of_its_own_accountant(names: dict[str, Any]) -> None:
    """1.2867859427148378 is what PLDAccountant of dp_accounting 0.6.0 makes of the same plan, in more than twice the time."""
    event = names["event"]
    assert isinstance(event, dp_accounting.SelfComposedDpEvent)
    assert event.count == 200
    noise = event.event.event.noise_multiplier
    assert noise == pytest.approx(1.2867859427148378, rel=1e-6)
    assert noise == pytest.approx(float(names["plan"].noise_multiplier), rel=1e-5)
