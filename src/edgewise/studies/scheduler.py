"""Run the jobs of a study in child processes, a few at a time, and stop them with a save.

Each job is `edgewise train`, or `edgewise resume` where its run folder exists. The children end, with a save,
when this process is told to stop and also when it is killed: each watches the pipe that is its stdin.
"""

from __future__ import annotations

import logging
import os
import subprocess
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

from edgewise.config import files
from edgewise.config.errors import Interrupted
from edgewise.plugins import Address
from edgewise.runs.lock import writer_of
from edgewise.studies.display import Display, Status, make_display
from edgewise.studies.folder import StudyFolder
from edgewise.studies.run_state import RunState, read_state
from edgewise.training.interrupt import StopRequest

POLL = 0.2
"""Seconds between two looks at the running jobs."""

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Job:
    """One planned run.

    Args:
        name: of its run folder.
        words: what `edgewise train` is given, without `--out`.
        total_frames: to train.
    """

    name: str
    words: tuple[str, ...]
    total_frames: int


@dataclass(frozen=True)
class Program:
    """How a child process is started.

    Args:
        command: that takes the words of an `edgewise` command line after it.
        plugins: that the user named, which every child may import too.
        loggers: that every run sends its numbers to.
    """

    command: tuple[str, ...]
    plugins: tuple[str, ...] = ()
    loggers: tuple[str, ...] = ()

    def words(self, job: Job, folder: StudyFolder) -> list[str]:
        """Return the command line of a job: a new run, or the one that exists, continued."""
        run = folder.run(job.name)
        plugins, loggers = list(self.plugins), [f"--logger={name}" for name in self.loggers]
        if not run.exists():
            verb = ["train", *job.words, f"--out={run}"]
        else:
            # A run folder grants nothing: only what the user typed is imported and connected to.
            plugins += [word for word in map(_value, job.words) if Address.parse(word) is not None]
            verb = ["resume", str(run), *(word for word in job.words if word.startswith("--ray.address="))]
        return [*self.command, *verb, *loggers, *(f"--plugin={each}" for each in dict.fromkeys(plugins))]


class JobSource(Protocol):
    """Where jobs come from, and who is told how they go."""

    planned: int
    """Number of runs in all."""

    @property
    def note(self) -> str:
        """Text beside the progress."""

    def next_job(self) -> Job | None:
        """Return the next job to start; None if there is none now."""

    def ended(self) -> list[tuple[Job, RunState]]:
        """Return the jobs that have ended, those of earlier processes included."""

    def should_stop(self, job: Job, state: RunState) -> bool:
        """Return whether a running job is to be stopped."""

    def on_end(self, job: Job, state: RunState, code: int) -> None:
        """Called when a job has ended with an exit code, though not if the study was interrupted."""


@dataclass
class _Child:
    """A job that is to run; its process once it does."""

    job: Job
    process: subprocess.Popen[bytes] | None = None
    is_stopping: bool = False
    state: RunState = field(default_factory=RunState)

    def stop(self) -> None:
        if self.process is not None and not self.is_stopping:
            self.process.terminate()
            self.is_stopping = True


def run_jobs(
    source: JobSource,
    folder: StudyFolder,
    program: Program,
    *,
    jobs: int,
    display: Display | None = None,
) -> None:
    """Run all jobs of a source, `jobs` at a time.

    Raises:
        Interrupted: on SIGINT, SIGTERM or SIGHUP; every run was saved.
    """
    shown = display or make_display()
    children: list[_Child] = []
    shown.start(folder.path.name)
    try:
        with StopRequest("the current batch of every run") as stop:
            while True:
                _fill(children, source, limit=0 if stop.received else jobs)
                if not children:
                    break
                for child in children:
                    _look_after(child, source, folder, program, is_stopped=stop.received is not None)
                _take_out_ended(children, source, folder, is_stopped=stop.received is not None)
                shown.update(_status(children, source))
                if children:
                    time.sleep(POLL)
    finally:
        shown.close()
        for child in children:
            if child.process is not None and child.process.poll() is None:
                child.process.kill()
    if stop.received is not None:
        raise Interrupted(
            f"stopped by {stop.received}: {len(source.ended())} of {source.planned} runs are finished, the "
            f"others are saved in {folder.path}",
            hint="the same command continues them",
        )


def _fill(children: list[_Child], source: JobSource, *, limit: int) -> None:
    while len(children) < limit:
        job = source.next_job()
        if job is None:
            return
        children.append(_Child(job))


def _look_after(
    child: _Child, source: JobSource, folder: StudyFolder, program: Program, *, is_stopped: bool
) -> None:
    """Start a child, read how far it is, and stop it if that is due."""
    run = folder.run(child.job.name)
    if child.process is None:
        # A child of a killed process may still be saving.
        if not is_stopped and writer_of(run) is None:
            child.process = _start(program.words(child.job, folder), folder, child.job.name)
        return
    child.state = read_state(run)
    if is_stopped or source.should_stop(child.job, child.state):
        child.stop()


def _start(words: Sequence[str], folder: StudyFolder, name: str) -> subprocess.Popen[bytes]:
    with os.fdopen(files.open_to_append(folder.log(name)), "ab") as output:
        # In a session of its own, so that Ctrl-C reaches this process alone, which then stops its children.
        return subprocess.Popen(
            words, stdin=subprocess.PIPE, stdout=output, stderr=output, start_new_session=True
        )


def _take_out_ended(
    children: list[_Child], source: JobSource, folder: StudyFolder, *, is_stopped: bool
) -> None:
    """Remove the children that have ended; a run that was interrupted is not over for its source."""
    for child in list(children):
        if child.process is None:
            if is_stopped:
                children.remove(child)
            continue
        code = child.process.poll()
        if code is None:
            continue
        children.remove(child)
        if child.process.stdin is not None:
            child.process.stdin.close()
        state = read_state(folder.run(child.job.name))
        if state.is_done or not is_stopped:
            source.on_end(child.job, state, code)


def _status(children: Sequence[_Child], source: JobSource) -> Status:
    ended = source.ended()
    running = [(child.job.name, min(1.0, child.state.frames / child.job.total_frames)) for child in children]
    whole = len(ended) + sum(share for _, share in running)
    return Status(whole / max(source.planned, 1), len(ended), source.planned, running, source.note)


def _value(word: str) -> str:
    """Return the value of a word such as `--model.encoder.kind=mine.py:Mine`."""
    return word.partition("=")[2] if word.startswith("--") else word
