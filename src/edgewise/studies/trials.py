"""The trials of a sweep: one file, replaced atomically, that says what was proposed and how it ended."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Literal, get_args

from edgewise.config import files
from edgewise.config.errors import CheckpointError
from edgewise.studies.folder import StudyFolder
from edgewise.studies.space import Space, Value, contains

FILE = "trials.json"
FORMAT = "edgewise-trials/1"
State = Literal["running", "complete", "pruned", "failed"]


@dataclass(frozen=True)
class Trial:
    """One trial.

    Args:
        number: of the trial, from 0.
        params: the proposed values by dotted path.
        state: `running` until its run has ended, also while nobody works on the sweep.
        value: of the metric in the last evaluation; None if there was none.
        frames: trained.
        reason: why it failed.
        evaluations: index of an evaluation to the metric; kept while the process works on the sweep, and read
            again from the run folder.
    """

    number: int
    params: Mapping[str, Value]
    state: State = "running"
    value: float | None = None
    frames: int = 0
    reason: str = ""
    evaluations: Mapping[int, float] = field(default_factory=dict, compare=False)

    @property
    def name(self) -> str:
        """Name of its run folder."""
        return f"trial-{self.number:04d}"


class Trials:
    """All trials of a sweep, in order; every change is on disk before it returns.

    Args:
        folder: of the sweep.
        space: that the sweep searches. Children get the values of a trial as flags, so a file with other
            settings or values is refused: a folder must not name code that the user did not type.

    Raises:
        CheckpointError: the file is damaged.
    """

    def __init__(self, folder: StudyFolder, space: Space) -> None:
        self._folder = folder
        self.all: list[Trial] = _read(folder, space) if (folder.path / FILE).exists() else []

    def add(self, params: Mapping[str, Value]) -> Trial:
        """Add a trial with the next number."""
        trial = Trial(len(self.all), dict(params))
        self.all.append(trial)
        self._write()
        return trial

    def end(
        self, number: int, state: State, *, value: float | None = None, frames: int = 0, reason: str = ""
    ) -> None:
        """Record how a trial ended."""
        self.all[number] = replace(self.all[number], state=state, value=value, frames=frames, reason=reason)
        self._write()

    def observe(self, number: int, evaluations: Mapping[int, float]) -> None:
        """Keep the evaluations of a trial, which are in its run folder too."""
        self.all[number] = replace(self.all[number], evaluations=dict(evaluations))

    def _write(self) -> None:
        plain = [asdict(trial) for trial in self.all]
        for trial in plain:
            del trial["evaluations"]
        self._folder.write(FILE, json.dumps({"format": FORMAT, "trials": plain}, indent=1) + "\n")


def _read(folder: StudyFolder, space: Space) -> list[Trial]:
    file = folder.path / FILE
    try:
        document: Any = files.read_json(file)
        if document["format"] != FORMAT:
            raise ValueError(f"format {document['format']!r} is not {FORMAT!r}")
        trials = [Trial(**entry) for entry in document["trials"]]
        for number, trial in enumerate(trials):
            if trial.number != number or not _is_valid(trial):
                raise ValueError(f"trial {number} is not valid")
            if not contains(space, trial.params):
                raise ValueError(f"trial {number} has settings or values that this sweep does not search")
    except OSError as error:
        raise CheckpointError(f"{file} cannot be read: {error.strerror}") from error
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise CheckpointError(
            f"{file} is damaged: {error}", hint="restore it, or begin the sweep in another folder"
        ) from error
    return trials


def _is_valid(trial: Trial) -> bool:
    """Return whether a trial could have ended so."""
    return (
        trial.state in get_args(State)
        and (isinstance(trial.value, float) or (trial.value is None and trial.state != "complete"))
        and isinstance(trial.frames, int)
        and isinstance(trial.reason, str)
        and trial.evaluations == {}
    )
