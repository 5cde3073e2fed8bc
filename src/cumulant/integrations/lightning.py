"""A callback for Lightning.

It logs epsilon, stops at the limit and puts the accountant into checkpoints.
"""

from __future__ import annotations

from typing import Any

from lightning.pytorch import Callback

from cumulant.domains import Number
from cumulant.errors import InputError
from cumulant.integrations.opacus_accounting import Accountant

__all__ = ["PrivacyCallback"]


class PrivacyCallback(Callback):
    """A callback that lets a Lightning Trainer train with what Opacus' `make_private` returns.

    See `cumulant.integrations.opacus.make_private`.

    Let `configure_optimizers` return the optimizer and `train_dataloader` the loader, as they are. The callback refuses
    accumulated gradients and several devices before the first step, logs epsilon after every epoch, stops before a step that
    would exceed the limit of the accountant, and keeps the state of the accountant in every checkpoint.
    """

    def __init__(self, engine: Any, delta: Number) -> None:
        accountant = engine.accountant
        if not isinstance(accountant, Accountant):
            raise InputError(
                f"{type(accountant).__name__} is not an accountant of cumulant; make the engine by "
                'PrivacyEngine(accountant="cumulant-fixed-size")'
            )
        self._accountant, self._delta = accountant, delta

    def on_fit_start(self, trainer: Any, pl_module: Any) -> None:
        """Refuse settings under which a step is not one draw of one loader."""
        if trainer.accumulate_grad_batches != 1:
            raise InputError(
                f"accumulate_grad_batches={trainer.accumulate_grad_batches} makes one step of several batches, and "
                "nothing is proved for that; give 1 and a larger sample"
            )
        if trainer.world_size != 1:
            raise InputError(
                f"{trainer.world_size} devices: Lightning wraps the module after make_private, so each would train on samples "
                "of its own; give devices=1"
            )

    def on_train_start(self, trainer: Any, pl_module: Any) -> None:
        """Refuse to resume after steps that were not accounted."""
        if trainer.global_step > len(self._accountant):
            raise InputError(
                f"the Trainer resumes after {trainer.global_step} steps, but {len(self._accountant)} were accounted: the "
                "others still count. Resume from a checkpoint that was saved with this callback, or load its weights alone if "
                "they were trained without these records"
            )

    def on_train_batch_end(self, trainer: Any, pl_module: Any, outputs: Any, batch: Any, batch_idx: int) -> None:
        """Stop if one more step would exceed the limit."""
        if self._accountant.per_step and not self._accountant.fits():
            trainer.should_stop = True

    def on_train_epoch_end(self, trainer: Any, pl_module: Any) -> None:
        """Log epsilon, and stop if one more pass would exceed the limit."""
        pl_module.log("epsilon", self._accountant.spent(self._delta)["epsilon"])
        if not self._accountant.fits():
            trainer.should_stop = True

    def state_dict(self) -> dict[str, Any]:
        """Return the state of the accountant, for the checkpoint."""
        return dict(self._accountant.state_dict())

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Go on from the state of a checkpoint."""
        self._accountant.load_state_dict(state_dict)
