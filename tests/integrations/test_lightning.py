"""Lightning as it is: what is accounted, stopped and refused."""

from pathlib import Path
from typing import Any

import pytest
import torch
from lightning.pytorch import LightningModule, Trainer
from opacus import PrivacyEngine
from torch.utils.data import DataLoader

import cumulant as cm
from cumulant.integrations.lightning import PrivacyCallback
from cumulant.integrations.opacus import DrawsAndSteps, make_private
from tests.integrations.loops import DELTA, FIXED, SHUFFLED, data, model

RECORDS, SAMPLE = 320, 16


class Classifier(LightningModule):
    def __init__(self, module: Any, optimizer: Any, loader: Any) -> None:
        super().__init__()
        self.module, self.private, self.loader = module, optimizer, loader

    def training_step(self, batch: Any, batch_idx: int) -> Any:
        return torch.nn.functional.cross_entropy(self.module(batch[0]), batch[1])

    def configure_optimizers(self) -> Any:
        return self.private

    def train_dataloader(self) -> Any:
        return self.loader


def fitted(directory: Path, accountant: str = FIXED, limit: Any = None, **options: Any) -> tuple[Any, Any, Any]:
    engine = PrivacyEngine(accountant=accountant)
    engine.accountant.limit = limit
    module, optimizer = model()
    both: dict[str, Any] = {"module": module, "optimizer": optimizer, "noise_multiplier": 2.0, "max_grad_norm": 1.0}
    if accountant == SHUFFLED:
        loader = DataLoader(data(RECORDS), batch_size=SAMPLE, shuffle=True)
        made = engine.make_private(data_loader=loader, poisson_sampling=False, **both)
    else:
        made = make_private(engine, dataset=data(RECORDS), sample=SAMPLE, **both)
    quiet: dict[str, Any] = {"logger": False, "enable_progress_bar": False, "enable_model_summary": False}
    trainer = Trainer(
        accelerator="cpu",
        devices=1,
        default_root_dir=directory,
        callbacks=[PrivacyCallback(engine, DELTA)],
        **{"max_epochs": 2, "enable_checkpointing": False, **quiet, **options},
    )
    return engine, trainer, Classifier(*made)


@pytest.mark.parametrize(("accountant", "history"), [(FIXED, (2.0, "16/320", 40)), (SHUFFLED, (2.0, "pass", 2))])
def test_lightning_trains(accountant: str, history: Any, tmp_path: Path) -> None:
    engine, trainer, module = fitted(tmp_path, accountant)
    trainer.fit(module)
    assert engine.accountant.history == [history]
    assert len(engine.accountant) == 40
    assert not any("another optimizer" in caveat or "changed" in caveat for caveat in engine.accountant.caveats)
    assert float(trainer.callback_metrics["epsilon"]) == pytest.approx(engine.accountant.spent(DELTA)["epsilon"])


def test_lightning_stops_at_the_limit(tmp_path: Path) -> None:
    engine, trainer, module = fitted(tmp_path, limit=("1.2", DELTA))
    trainer.fit(module)
    most = cm.NoisySGD(batch=SAMPLE, records=RECORDS, steps=1, noise_multiplier=2).steps_within(
        epsilon="1.2", delta=DELTA
    )
    assert len(engine.accountant) == most < 40


def test_lightning_stops_before_a_pass_that_does_not_fit(tmp_path: Path) -> None:
    engine, trainer, module = fitted(tmp_path, SHUFFLED, limit=(5, DELTA), max_epochs=9)
    trainer.fit(module)
    assert engine.accountant.history == [(2.0, "pass", 1)]
    assert engine.get_epsilon(DELTA) <= 5


def test_checkpoints_have_the_accountant(tmp_path: Path) -> None:
    engine, trainer, module = fitted(tmp_path, enable_checkpointing=True)
    trainer.fit(module)
    trainer.save_checkpoint(tmp_path / "last.ckpt")
    other, again, module = fitted(tmp_path, max_epochs=3)
    again.fit(module, ckpt_path=tmp_path / "last.ckpt", weights_only=True)
    assert engine.accountant.history == [(2.0, "16/320", 40)]
    assert other.accountant.history == [(2.0, "16/320", 60)]


def test_a_checkpoint_without_the_accountant_is_refused(tmp_path: Path) -> None:
    _, trainer, module = fitted(tmp_path, enable_checkpointing=True)
    trainer.callbacks = [each for each in trainer.callbacks if not isinstance(each, PrivacyCallback)]
    trainer.fit(module)
    trainer.save_checkpoint(tmp_path / "last.ckpt")
    other, again, module = fitted(tmp_path, max_epochs=3)
    with pytest.raises(cm.InputError, match="resumes after 40 steps, but 0 were accounted"):
        again.fit(module, ckpt_path=tmp_path / "last.ckpt", weights_only=True)
    assert len(other.accountant) == 0


def test_accumulated_gradients_are_refused(tmp_path: Path) -> None:
    _, trainer, module = fitted(tmp_path, accumulate_grad_batches=2)
    with pytest.raises(cm.InputError, match="accumulate_grad_batches=2"):
        trainer.fit(module)
    engine, trainer, module = fitted(tmp_path, accumulate_grad_batches=2)
    trainer.callbacks = [each for each in trainer.callbacks if not isinstance(each, PrivacyCallback)]
    with pytest.raises(DrawsAndSteps, match="gradients of batch 1"):
        trainer.fit(module)
    assert len(engine.accountant) == 0


def test_several_devices_are_refused(tmp_path: Path) -> None:
    class Two:
        accumulate_grad_batches, world_size = 1, 2

    callback = PrivacyCallback(PrivacyEngine(accountant=FIXED), DELTA)
    with pytest.raises(cm.InputError, match="2 devices"):
        callback.on_fit_start(Two(), None)


def test_other_accountants_are_refused() -> None:
    with pytest.raises(cm.InputError, match="not an accountant of cumulant"):
        PrivacyCallback(PrivacyEngine(accountant="rdp"), DELTA)
