"""The Trainer of transformers and the loaders of accelerate as they are: what is accounted, stopped and refused."""

import re
import runpy
from pathlib import Path
from typing import Any

import pytest
import torch
from accelerate import Accelerator
from opacus import PrivacyEngine
from torch.utils.data import Dataset
from transformers import Trainer, TrainingArguments

import cumulant as cm
from cumulant.integrations.opacus import DrawsAndSteps, make_private
from cumulant.integrations.transformers import PrivacyCallback
from tests.integrations.loops import DELTA, FIXED, data, fixed, step

RECORDS, SAMPLE, STEPS = 320, 16, 10


class Records(Dataset[dict[str, torch.Tensor]]):
    """Records by the names of arguments, as a Trainer wants them."""

    def __init__(self) -> None:
        self.x, self.labels = data(RECORDS).tensors

    def __len__(self) -> int:
        return RECORDS

    def __getitem__(self, i: int) -> dict[str, torch.Tensor]:
        return {"x": self.x[i], "labels": self.labels[i]}


class Classifier(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = torch.nn.Linear(8, 3)

    def forward(self, x: torch.Tensor, labels: torch.Tensor) -> dict[str, torch.Tensor]:
        scores = self.linear(x)
        return {"loss": torch.nn.functional.cross_entropy(scores, labels), "logits": scores}


def trainer(directory: Path, limit: Any = None, callback: bool = True, **arguments: Any) -> tuple[Any, Any, Any]:
    engine = PrivacyEngine(accountant=FIXED)
    engine.accountant.limit = limit
    module = Classifier()
    module, optimizer, loader = make_private(
        engine,
        module=module,
        optimizer=torch.optim.SGD(module.parameters(), lr=0.1),
        dataset=Records(),
        sample=SAMPLE,
        steps=STEPS,
        noise_multiplier=2.0,
        max_grad_norm=1.0,
    )
    module.accepts_loss_kwargs = False  # the module of Opacus takes every argument, and hands it on to ours

    class Private(Trainer):
        def get_train_dataloader(self) -> Any:
            return loader

    callbacks = [PrivacyCallback(engine, optimizer, DELTA)]
    given = {"num_train_epochs": 2, "report_to": [], "use_cpu": True, "logging_steps": 5, "disable_tqdm": True}
    made = Private(
        model=module,
        args=TrainingArguments(str(directory), **{"save_strategy": "no", **given, **arguments}),
        train_dataset=Records(),
        optimizers=(optimizer, None),
        callbacks=callbacks if callback else [],
    )
    return engine, made, callbacks[0]


def test_a_trainer_trains(tmp_path: Path) -> None:
    engine, made, _ = trainer(tmp_path)
    made.train()
    assert engine.accountant.history == [(2.0, "16/320", 20)]
    logged = [row["epsilon"] for row in made.state.log_history if "epsilon" in row]
    assert logged == sorted(logged)
    assert logged[-1] == engine.accountant.spent(DELTA)["epsilon"]
    seeds = [caveat for caveat in engine.accountant.caveats if "manual_seed" in caveat]
    assert not any("another optimizer" in caveat for caveat in engine.accountant.caveats)
    assert seeds == []  # the Trainer seeds torch with 42; the noise does not follow that


def test_a_trainer_without_the_callback_stops_at_its_second_step(tmp_path: Path) -> None:
    engine, made, _ = trainer(tmp_path, callback=False)
    with pytest.raises(ValueError, match="zero_grad"):
        made.train()
    assert len(engine.accountant) == 1


def test_a_trainer_stops_at_the_limit(tmp_path: Path) -> None:
    engine, made, _ = trainer(tmp_path, limit=("1.2", DELTA))
    made.train()
    most = cm.NoisySGD(batch=SAMPLE, records=RECORDS, steps=1, noise_multiplier=2).steps_within(
        epsilon="1.2", delta=DELTA
    )
    assert 1 < most < 20
    assert len(engine.accountant) == made.state.global_step == most


def test_a_trainer_resumes(tmp_path: Path) -> None:
    _, made, _ = trainer(tmp_path, save_strategy="epoch", save_only_model=True)
    made.train()
    checkpoint = tmp_path / "checkpoint-10"
    other, again, callback = trainer(tmp_path, ignore_data_skip=True)
    callback.restore(checkpoint)
    assert len(other.accountant) == 10
    again.train()
    assert len(other.accountant) == 30
    with pytest.raises(cm.InputError, match="does not exist"):
        callback.restore(tmp_path)


def test_a_trainer_that_resumes_without_the_accountant_is_refused(tmp_path: Path) -> None:
    """It had the epsilon of the steps after the checkpoint alone: 2.16 for 30 steps that need 2.75."""
    _, made, _ = trainer(tmp_path, save_strategy="epoch")
    made.train()
    checkpoint = tmp_path / "checkpoint-20"
    other, again, callback = trainer(tmp_path, ignore_data_skip=True, num_train_epochs=3)
    with pytest.raises(cm.InputError, match="resumes after 20 steps, but 0 were accounted"):
        again.train(resume_from_checkpoint=str(checkpoint))
    assert len(other.accountant) == 0
    callback.restore(checkpoint)
    again.train(resume_from_checkpoint=str(checkpoint))
    assert len(other.accountant) == 30


def test_a_trainer_that_accumulates_is_refused(tmp_path: Path) -> None:
    _, made, _ = trainer(tmp_path, gradient_accumulation_steps=2)
    with pytest.raises(cm.InputError, match="gradient_accumulation_steps=2"):
        made.train()


def test_other_accountants_are_refused() -> None:
    with pytest.raises(cm.InputError, match="not an accountant of cumulant"):
        PrivacyCallback(PrivacyEngine(accountant="rdp"), None, DELTA)


# ---- accelerate


def test_accelerate_may_prepare_module_and_optimizer() -> None:
    engine, module, optimizer, loader = fixed(RECORDS, sample=SAMPLE)
    accelerator = Accelerator(cpu=True)
    module, optimizer = accelerator.prepare(module, optimizer)
    for _ in range(2):
        for x, y in loader:
            optimizer.zero_grad()
            accelerator.backward(torch.nn.functional.cross_entropy(module(x), y))
            optimizer.step()
    assert len(engine.accountant) == 40
    assert not any("another optimizer" in caveat or "changed" in caveat for caveat in engine.accountant.caveats)


def test_a_loader_that_accelerate_prepared_is_refused_at_once() -> None:
    engine, module, optimizer, loader = fixed(RECORDS, sample=SAMPLE)
    prepared = Accelerator(cpu=True).prepare(loader)
    with pytest.raises(DrawsAndSteps, match="accelerate iterates a copy of the accounted loader"):
        for batch in prepared:
            step(module, optimizer, batch)
    assert len(engine.accountant) == 0


def test_the_blocks_of_the_page_run(tmp_path: Path) -> None:
    page = Path(__file__).parents[2] / "docs" / "accounted-loops.md"
    engine, made, _ = trainer(tmp_path)
    found: dict[str, Any] = {
        "engine": engine,
        "module": made.model,
        "optimizer": made.optimizer,
        "loader": made.get_train_dataloader(),
        "args": made.args,
    }
    blocks = re.findall(r"^```python\n(.*?)^```$", page.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    for number, block in enumerate(blocks):
        script = tmp_path / f"block_{number}.py"
        script.write_text(block, encoding="utf-8")
        found = runpy.run_path(str(script), found)
        if number == 0:
            found["trainer"].train()
    assert engine.accountant.history == [(2.0, "16/320", 20)]
    assert found["allocated"].accountant.history == [(2.0, "1/20", 1)]
