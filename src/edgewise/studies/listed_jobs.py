"""Jobs that are all known beforehand, as those of seeds and grids."""

from __future__ import annotations

from collections.abc import Sequence

from edgewise.config import files
from edgewise.config.errors import EdgewiseError, ProcessLost
from edgewise.studies.folder import StudyFolder
from edgewise.studies.run_state import RunState, read_state
from edgewise.studies.scheduler import Job


class ListedJobs:
    """Jobs in a fixed order; those whose run is finished already are not started.

    Args:
        jobs: all jobs of the study.
        folder: of the study.

    Attributes:
        planned: number of jobs.
        failed: names of the jobs that ended before all their frames were trained, with their exit codes.
    """

    def __init__(self, jobs: Sequence[Job], folder: StudyFolder) -> None:
        self.planned, self.failed = len(jobs), dict[str, int]()
        self._folder = folder
        states = [(job, read_state(folder.run(job.name))) for job in jobs]
        self._ended = [(job, state) for job, state in states if state.is_done]
        self._waiting = [job for job, state in states if not state.is_done]

    @property
    def note(self) -> str:
        """Nothing: the number of runs says all."""
        return ""

    def next_job(self) -> Job | None:
        """Return the next job that is not finished."""
        return self._waiting.pop(0) if self._waiting else None

    def ended(self) -> list[tuple[Job, RunState]]:
        """Return the jobs that have ended."""
        return self._ended

    def should_stop(self, job: Job, state: RunState) -> bool:  # noqa: ARG002 - none is stopped
        """Return False: every job runs to its end."""
        return False

    def on_end(self, job: Job, state: RunState, code: int) -> None:
        """Keep a finished job, and note one that failed."""
        self._ended.append((job, state))
        if not state.is_done:
            self.failed[job.name] = code

    def check(self) -> None:
        """Raise an error if a job failed, with the last line of its output."""
        if not self.failed:
            return
        lines = [
            f"  {name}: {last_line(self._folder, name)} (exit code {code}; {self._folder.log(name)})"
            for name, code in self.failed.items()
        ]
        kind = ProcessLost if min(self.failed.values()) < 0 else EdgewiseError
        raise kind(
            f"{len(self.failed)} of {self.planned} runs failed:\n" + "\n".join(lines),
            hint="the same command tries them again from their last checkpoints",
        )


def last_line(folder: StudyFolder, name: str) -> str:
    """Return the last line of a run's output that names an error; the last line if none does."""
    try:
        content = files.read_bytes(folder.log(name), largest=files.LARGEST_TABLE)
    except OSError:
        return "no output"
    text = content.decode(errors="replace")
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    errors = [line for line in lines if "error" in line.lower()]
    return (errors or lines or ["no output"])[-1][:300]
