"""A callback for the Trainer of Hugging Face transformers.

It clears gradients, logs epsilon and stops at the limit.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from transformers import TrainerCallback

from cumulant.domains import Number
from cumulant.errors import InputError
from cumulant.integrations.opacus_accounting import Accountant
from cumulant.output import write_output

__all__ = ["PrivacyCallback"]

STATE = "privacy_accountant.json"
"""The name of the file in a checkpoint that has the state of the accountant."""


class PrivacyCallback(TrainerCallback):
    """A callback that lets a Trainer train with what Opacus' `make_private` returns.

    See `cumulant.integrations.opacus.make_private`.

    The Trainer clears gradients of the module alone and not those that Opacus keeps, so its second step would fail. This
    callback clears both after every step. It logs epsilon, stops before a step that would exceed the limit of the accountant,
    and writes the state of the accountant into every checkpoint.

    Set `module.accepts_loss_kwargs = False`, because the module of Opacus hands on every argument of the Trainer to yours.
    Let `get_train_dataloader` return the loader as it is: a loader that accelerate prepares is refused. Resume with
    `ignore_data_skip=True`, and call `restore(checkpoint)` before.
    """

    def __init__(self, engine: Any, optimizer: Any, delta: Number) -> None:
        accountant = engine.accountant
        if not isinstance(accountant, Accountant):
            raise InputError(
                f"{type(accountant).__name__} is not an accountant of cumulant; make the engine by "
                'PrivacyEngine(accountant="cumulant-fixed-size")'
            )
        self._accountant, self._optimizer, self._delta = accountant, optimizer, delta

    def on_train_begin(self, args: Any, state: Any, control: Any, **given: Any) -> None:
        """Refuse settings that make one step of several batches, or skip batches, and steps that were not accounted."""
        if args.gradient_accumulation_steps != 1:
            raise InputError(
                f"gradient_accumulation_steps={args.gradient_accumulation_steps} makes one step of several batches, and "
                "nothing is proved for that; give 1 and a larger sample"
            )
        if state.global_step and not args.ignore_data_skip:
            raise InputError("a resumed Trainer skips batches that were seen before; give ignore_data_skip=True")
        if state.global_step > len(self._accountant):
            raise InputError(
                f"the Trainer resumes after {state.global_step} steps, but {len(self._accountant)} were accounted: the others "
                "still count. Call restore(checkpoint) of this callback before train(...)"
            )

    def on_step_begin(self, args: Any, state: Any, control: Any, **given: Any) -> None:
        """Clear the gradients that the step before has left."""
        self._optimizer.zero_grad()

    def on_optimizer_step(self, args: Any, state: Any, control: Any, **given: Any) -> None:
        """Clear the gradients that Opacus keeps, which the Trainer does not know."""
        self._optimizer.zero_grad()

    def on_step_end(self, args: Any, state: Any, control: Any, **given: Any) -> Any:
        """Stop if one more step would exceed the limit."""
        if self._accountant.per_step and not self._accountant.fits():
            control.should_training_stop = True
        return control

    def on_epoch_end(self, args: Any, state: Any, control: Any, **given: Any) -> Any:
        """Stop if one more pass would exceed the limit."""
        if not self._accountant.fits():
            control.should_training_stop = True
        return control

    def on_log(self, args: Any, state: Any, control: Any, logs: Any = None, **given: Any) -> None:
        """Add epsilon to the logs."""
        if logs is not None:
            spent = self._accountant.spent(self._delta)
            logs["epsilon"] = spent["epsilon"]
            if state.log_history:
                state.log_history[-1]["epsilon"] = spent["epsilon"]

    def on_save(self, args: Any, state: Any, control: Any, **given: Any) -> None:
        """Write the state of the accountant into the checkpoint."""
        directory = Path(args.output_dir) / f"checkpoint-{state.global_step}"
        write_output(directory / STATE, json.dumps(self._accountant.state_dict()))

    def restore(self, checkpoint: str | Path) -> None:
        """Load the state of the accountant from a checkpoint of the Trainer."""
        file = Path(checkpoint) / STATE
        if not file.exists():
            raise InputError(f"{file} does not exist; the checkpoint was written without this callback")
        self._accountant.load_state_dict(json.loads(file.read_text(encoding="utf-8")))
