"""All logs of a run: metrics, timings, TensorBoard events and the event log."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from edgewise.config.run import LoggingConfig
from edgewise.training.logging.event_log import EventLog
from edgewise.training.logging.metrics_log import MetricsLog, Row

if TYPE_CHECKING:
    from edgewise.training.logging.tensorboard import TensorBoardLog


class RunLog:
    """The logs of one run folder.

    Times go to timing.csv and never to metrics.csv, whose rows do not depend on how often a run was killed
    and resumed.

    Args:
        folder: of the run.
        config: logging settings.
    """

    def __init__(self, folder: Path, config: LoggingConfig) -> None:
        self._folder, self._config = folder, config
        self._metrics = MetricsLog(folder / "metrics.csv")
        self._timing = MetricsLog(folder / "timing.csv")
        self._events = EventLog(folder / "events.jsonl")
        self._tensorboard: TensorBoardLog | None = None

    def row(self, metrics: Row, timing: Row, *, frames: int) -> None:
        """Write one row of metrics and one of timings."""
        self._metrics.append(metrics)
        self._timing.append(timing)
        if self._config.tensorboard:
            self._board(frames).write({**metrics, **timing}, step=frames)

    def event(self, name: str, fields: Mapping[str, Any]) -> None:
        """Log an event."""
        self._events.write(name, fields)

    def sync(self) -> None:
        """Flush all rows to disk; called before a checkpoint is written."""
        self._metrics.sync()
        self._timing.sync()

    def close(self) -> None:
        """Close all files."""
        self._metrics.close()
        self._timing.close()
        if self._tensorboard is not None:
            self._tensorboard.close()

    def state_dict(self) -> dict[str, Any]:
        """Return the number of rows and the columns of both files."""
        return {"metrics": self._metrics.state_dict(), "timing": self._timing.state_dict()}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Remove the rows that were written after `state`."""
        self._metrics.load_state_dict(state["metrics"])
        self._timing.load_state_dict(state["timing"])

    def clear(self) -> None:
        """Remove all rows: the run starts from the beginning."""
        for rows in (self._metrics, self._timing):
            rows.load_state_dict({"rows": 0, "columns": []})

    def _board(self, frames: int) -> TensorBoardLog:
        if self._tensorboard is None:
            from edgewise.training.logging.tensorboard import TensorBoardLog

            self._tensorboard = TensorBoardLog(self._folder / "tensorboard", step=frames)
        return self._tensorboard
