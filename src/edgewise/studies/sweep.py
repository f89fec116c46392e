"""Search settings: trials are runs in child processes, proposed and stopped early by their evaluations."""

from __future__ import annotations

import json
import logging
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from edgewise.config import files
from edgewise.config.errors import CheckpointError, ConfigError, ProcessLost
from edgewise.config.layers import Problem, config_error
from edgewise.config.run import AnyRun
from edgewise.studies import proposals
from edgewise.studies.folder import Plan, StudyFolder, first_difference, open_study
from edgewise.studies.listed_jobs import last_line
from edgewise.studies.run_state import RunState, read_state
from edgewise.studies.scheduler import Job, Program, run_jobs
from edgewise.studies.space import Space, as_flags, describe
from edgewise.studies.sweep_page import write_sweep_page
from edgewise.studies.trials import Trial, Trials

log = logging.getLogger(__name__)

KIND = "sweep"
BEST = "best.json"


@dataclass(frozen=True)
class Sweep:
    """What is searched.

    Args:
        config: of the runs, before the values of a trial.
        words: of `edgewise train` for this config.
        space: settings and their values.
        prune: whether trials are stopped early.
    """

    config: AnyRun
    words: tuple[str, ...]
    space: Space
    prune: bool = True

    @property
    def plan(self) -> Plan:
        """What must be equal for a sweep to be continued."""
        return {
            "kind": KIND,
            "config": self.config.to_plain(),
            "space": describe(self.space),
            "prune": self.prune,
        }


@dataclass(frozen=True)
class SweepResult:
    """The result of a sweep.

    Args:
        folder: of the sweep.
        trials: all of them.
        best: the best of those that are complete; None if there is none.
        best_config: file with its config, for `edgewise train`.
        importances: share of each setting.
        report: the page.
    """

    folder: Path
    trials: list[Trial]
    best: Trial | None
    best_config: Path | None
    importances: dict[str, float]
    report: Path


def check_space(space: Space, load: Callable[[Sequence[tuple[str, str]]], AnyRun]) -> None:
    """Check that a config accepts both ends of every range and every choice.

    Args:
        space: of the sweep.
        load: returns the config with further flags, or raises ConfigError.

    Raises:
        ConfigError: lists every value that is not accepted.
    """
    problems: list[Problem] = []
    for name, dimension in space.items():
        for value in dimension.extremes:
            try:
                load(as_flags({name: value}))
            except ConfigError as error:
                problems += error.problems or [Problem(f"--set {name}", (), error.message)]
    if problems:
        raise config_error(problems)


def run_sweep(sweep: Sweep, *, trials: int, jobs: int, out: Path | None, program: Program) -> SweepResult:
    """Run trials until there are `trials` of them, or continue where that was interrupted.

    Raises:
        ConfigError: Optuna is not installed, or the folder holds another sweep.
        Interrupted: on a signal; every run was saved.
        ProcessLost: a trial was killed; the others are finished.
    """
    proposals.check_optuna()

    def differs(other: Plan) -> str | None:
        return first_difference(sweep.plan, {name: other.get(name) for name in sweep.plan})

    folder = open_study(out, sweep.plan, name=f"{sweep.config.name}-sweep", differs=differs)
    with folder.locked():
        source = TrialSource(sweep, folder, planned=trials)
        try:
            run_jobs(source, folder, program, jobs=jobs)
        finally:
            result = _result(sweep, folder, source.trials.all)
    if source.killed:
        raise ProcessLost(
            f"{', '.join(source.killed)} of {folder.path} were killed, and are not finished",
            hint="the same command continues them from their last checkpoints",
        )
    return result


class TrialSource:
    """The trials of a sweep as jobs: those that are not finished first, then new ones.

    Args:
        sweep: what is searched.
        folder: of the sweep.
        planned: number of trials in all.
    """

    def __init__(self, sweep: Sweep, folder: StudyFolder, *, planned: int) -> None:
        self._sweep, self._folder = sweep, folder
        self._metric, self._maximise = sweep.config.evaluation.metric, sweep.config.evaluation.maximise
        self.trials = Trials(folder, sweep.space)
        self.planned = max(planned, len(self.trials.all))
        for trial in self.trials.all:
            self._observe(trial.number, read_state(folder.run(trial.name)))
        self.killed: list[str] = []
        self._waiting = [trial for trial in self.trials.all if trial.state == "running"]

    @property
    def note(self) -> str:
        """The best value so far."""
        best = proposals.best_trial(self.trials.all, maximise=self._maximise)
        return "" if best is None else f"best {self._metric} {best.value:.4g} in {best.name}"

    def next_job(self) -> Job | None:
        """Return the job of a trial that is not finished, or of a new one, which is recorded first."""
        while self._waiting:
            trial = self._waiting.pop(0)
            state = read_state(self._folder.run(trial.name))
            if not state.is_done:
                return self._job(trial)
            self._finish(trial.number, state)
        if len(self.trials.all) >= self.planned:
            return None
        params = proposals.propose(
            self._sweep.space, self.trials.all, maximise=self._maximise, seed=self._sweep.config.seed
        )
        return self._job(self.trials.add(params))

    def ended(self) -> list[tuple[Job, RunState]]:
        """Return the trials that have ended."""
        return [(self._job(trial), RunState()) for trial in self.trials.all if trial.state != "running"]

    def should_stop(self, job: Job, state: RunState) -> bool:
        """Return whether the trial is worse than the median so far; it is recorded as pruned first."""
        number = self._number(job)
        if self.trials.all[number].state == "pruned":
            return True
        if not self._sweep.prune or state.is_done or not self._observe(number, state):
            return False
        if not proposals.should_prune(self._sweep.space, self.trials.all, number, maximise=self._maximise):
            return False
        self.trials.end(number, "pruned", value=state.last(self._metric), frames=state.frames)
        return True

    def on_end(self, job: Job, state: RunState, code: int) -> None:
        """Record the value of a trial, or why it failed; one that was killed is not over."""
        number = self._number(job)
        if self.trials.all[number].state == "pruned":
            return
        if state.is_done:
            self._finish(number, state)
        elif code < 0:
            self.killed.append(job.name)
            log.warning("%s was killed by signal %d; the same command continues it", job.name, -code)
        else:
            reason = f"exit code {code}: {last_line(self._folder, job.name)}"
            self.trials.end(number, "failed", frames=state.frames, reason=reason)

    def _finish(self, number: int, state: RunState) -> None:
        """Record a finished run; without a value of the metric it counts as failed."""
        self._observe(number, state)
        value = state.last(self._metric)
        if value is None or not math.isfinite(value):
            reason = f"{self._metric} is not defined in the last evaluation"
            self.trials.end(number, "failed", frames=state.frames, reason=reason)
        else:
            self.trials.end(number, "complete", value=value, frames=state.frames)

    def _observe(self, number: int, state: RunState) -> bool:
        """Keep the evaluations of a trial by their index; return whether there are new ones."""
        every = self._sweep.config.evaluation.every
        found = {
            (index if every is None else frames // every): measures[self._metric]
            for index, (frames, measures) in enumerate(state.evaluations.items())
            if self._metric in measures
        }
        is_new = found.keys() != self.trials.all[number].evaluations.keys()
        if is_new:
            self.trials.observe(number, found)
        return is_new

    def _job(self, trial: Trial) -> Job:
        flags = [f"{name}={value}" for name, value in as_flags(trial.params)]
        return Job(trial.name, (*self._sweep.words, *flags), self._sweep.config.training.total_frames)

    def _number(self, job: Job) -> int:
        return int(job.name.rpartition("-")[2])


def _result(sweep: Sweep, folder: StudyFolder, trials: Sequence[Trial]) -> SweepResult:
    """Write the best config and the page, and return the result."""
    maximise = sweep.config.evaluation.maximise
    best = proposals.best_trial(trials, maximise=maximise)
    best_config = None
    if best is not None:
        file = folder.run(best.name) / "config.json"
        try:
            config = files.read_json(file)
        except ValueError as error:
            raise CheckpointError(f"{file} is damaged: {error}", hint="the run was the best") from error
        best_config = folder.write(BEST, json.dumps(config, indent=2) + "\n")
    shares = proposals.importances(sweep.space, trials, maximise=maximise)
    report = write_sweep_page(
        folder, sweep.space, trials, best=best, importances=shares, metric=sweep.config.evaluation.metric
    )
    return SweepResult(folder.path, list(trials), best, best_config, shares, report)
