"""Send the numbers of a run to MLflow: `--logger mlflow`."""

from __future__ import annotations

import os
import time
from typing import Any

from edgewise.training.callbacks import Callback, Metrics, RunInfo
from edgewise.training.logging.tracking import (
    PROJECT,
    finite_numbers,
    flat,
    import_extra,
    keep_id,
    kept_id,
)

MAX_PARAM = 500
"""Letters of a setting that are logged."""
BATCH = 100
"""Settings that are logged in one request, as many as a server accepts."""


class MLflowLog(Callback):
    """Logs to MLflow with frames as the step; a resumed run continues the same run there.

    MLFLOW_TRACKING_URI says where to, MLFLOW_EXPERIMENT_NAME into which experiment (`edgewise`).

    Raises:
        ConfigError: the package is not installed.
    """

    def __init__(self) -> None:
        self._mlflow = import_extra("mlflow", "mlflow")
        self._run: str | None = None

    def on_start(self, run: RunInfo) -> None:
        """Begin a run with the settings as parameters, or continue that of the run folder."""
        self._client = self._mlflow.MlflowClient()
        known = None if run.checkpoint is None else kept_id(run.path, "mlflow")
        if known is not None:
            self._run = known
            self._client.update_run(known, status="RUNNING")
            return
        self._run = str(self._client.create_run(self._experiment(), run_name=run.path.name).info.run_id)
        keep_id(run.path, "mlflow", self._run)
        param = self._mlflow.entities.Param
        settings = [param(name, str(value)[:MAX_PARAM]) for name, value in flat(run.config)]
        for start in range(0, len(settings), BATCH):
            self._client.log_batch(self._run, params=settings[start : start + BATCH])

    def on_batch(self, frames: int, metrics: Metrics) -> None:
        """Log the numbers of a batch."""
        now, metric = int(time.time() * 1000), self._mlflow.entities.Metric
        numbers = [metric(name, value, now, frames) for name, value in finite_numbers(metrics).items()]
        self._client.log_batch(self._run, metrics=numbers)

    def on_best(self, frames: int, metric: str, value: float) -> None:
        """Log the best evaluation so far."""
        self._client.log_metric(self._run, f"best/{metric}", value, step=frames)

    def on_end(self, frames: int, reason: str) -> None:  # noqa: ARG002 - the last row has the frames
        """End the run: finished, killed by a signal, or failed."""
        if self._run is None:
            return
        is_stopped = reason.startswith("SIG")
        status = "FINISHED" if reason == "done" else "KILLED" if is_stopped else "FAILED"
        self._client.set_tag(self._run, "ended", reason)
        self._client.set_terminated(self._run, status=status)

    def _experiment(self) -> Any:
        """Return the id of the experiment; it is created if there is none of its name."""
        name = os.environ.get("MLFLOW_EXPERIMENT_NAME", PROJECT)
        found = self._client.get_experiment_by_name(name)
        return self._client.create_experiment(name) if found is None else found.experiment_id
