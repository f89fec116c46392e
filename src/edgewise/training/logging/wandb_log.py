"""Send the numbers of a run to Weights & Biases, online or offline: `--logger wandb`."""

from __future__ import annotations

import os
from typing import Any

from edgewise.training.callbacks import Callback, Metrics, RunInfo
from edgewise.training.logging.tracking import PROJECT, finite_numbers, import_extra, keep_id, kept_id


class WandbLog(Callback):
    """Logs to Weights & Biases over frames; a resumed run continues the same run there.

    WANDB_PROJECT, WANDB_ENTITY, WANDB_MODE and the other variables of the package apply. The package cannot
    continue an offline run, so a resumed one begins a new run in the same group.

    Raises:
        ConfigError: the package is not installed.
    """

    def __init__(self) -> None:
        self._wandb = import_extra("wandb", "wandb")
        self._run: Any = None

    def on_start(self, run: RunInfo) -> None:
        """Begin a run, or continue that of the run folder."""
        known = None if run.checkpoint is None else kept_id(run.path, "wandb")
        is_offline = os.environ.get("WANDB_MODE", "") == "offline"
        self._run = self._wandb.init(
            project=os.environ.get("WANDB_PROJECT", PROJECT),
            name=run.path.name,
            group=str(run.config.get("name", run.name)),
            config=dict(run.config),
            id=None if is_offline else known,
            resume="allow" if known and not is_offline else None,
        )
        keep_id(run.path, "wandb", str(self._run.id))
        self._run.define_metric("*", step_metric="frames")

    def on_batch(self, frames: int, metrics: Metrics) -> None:
        """Log the numbers of a batch."""
        self._run.log({**finite_numbers(metrics), "frames": frames})

    def on_best(self, frames: int, metric: str, value: float) -> None:
        """Keep the best evaluation in the summary."""
        self._run.summary[f"best/{metric}"] = value
        self._run.summary["best/frames"] = frames

    def on_end(self, frames: int, reason: str) -> None:  # noqa: ARG002 - the last row has the frames
        """Finish the run; one that did not train all frames is marked as failed."""
        if self._run is not None:
            self._run.summary["ended"] = reason
            self._run.finish(exit_code=0 if reason == "done" else 1)
