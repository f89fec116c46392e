"""Measures one column of a task: a rule, a solver, an untrained network, a trained one, and what it lacks."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

from edgewise.benchmark.method import Budget, Method, merged
from edgewise.benchmark.task import Split, Task, digest
from edgewise.config.errors import ConfigError, DataError
from edgewise.config.run import AnyRun
from edgewise.envs.policy import Policy
from edgewise.evaluation.ablation import ablate
from edgewise.evaluation.instances import Instances
from edgewise.experiments.build import Builder
from edgewise.experiments.evaluate import load_trained, without_curriculum
from edgewise.experiments.launch import resume, start
from edgewise.experiments.learning_pays import references_of
from edgewise.experiments.load import load_config
from edgewise.models.encoders.encoder import GraphEncoder
from edgewise.plugins.declarations import RANDOM
from edgewise.studies.run_state import read_state

POINTS = 4
"""Points of the learning curve of a smoke run."""
MLP = {"model": {"encoder": {"kind": "mlp"}}}

Values = dict[str, list[float]]
"""The measure of every instance by split."""


@dataclass(frozen=True)
class Measured:
    """One column of a task, of one seed if it has seeds.

    Args:
        values: by split; a split that the column cannot play is left out.
        notes: facts by split, such as the name of the solver.
        curve: frames and the mean measure at size n, while it trained.
        seconds: of CPU time that training or solving took.
    """

    values: Values
    notes: Mapping[str, Any] = field(default_factory=dict)
    curve: Sequence[tuple[int, float]] = ()
    seconds: float = 0.0


@dataclass(frozen=True)
class Field:
    """The instances of a task, made when they are first asked for."""

    task: Task

    @cached_property
    def batches(self) -> dict[str, list[Instances]]:
        """Instances by split; splits that are not available are left out."""
        made = {split.name: self.task.instances(split) for split in self.task.splits}
        return {name: batches for name, batches in made.items() if batches}

    @property
    def splits(self) -> list[Split]:
        """The splits that are available."""
        return [split for split in self.task.splits if split.name in self.batches]

    def record(self) -> dict[str, Any]:
        """Return number and digest of the instances of every split."""
        return {
            name: {"count": sum(each.env.num_envs for each in batches), "sha256": digest(batches)}
            for name, batches in self.batches.items()
        }

    def play(self, make: Callable[[Instances], Policy | None]) -> Values:
        """Return the measure of a policy on all instances; `make` returns None where it cannot play."""
        found: Values = {}
        for name, batches in self.batches.items():
            values: list[float] = []
            for batch in batches:
                policy = make(batch)
                if policy is None:
                    break
                values += self._values(batch, policy)
            else:
                found[name] = values
        return found

    def _values(self, batch: Instances, policy: Policy) -> list[float]:
        measured = batch(policy).measures()
        if self.task.measure not in measured:
            raise ConfigError(f"{self.task.name}: evaluations have no measure {self.task.measure}")
        values = measured[self.task.measure]
        if not np.isfinite(values).all():
            raise DataError(f"{self.task.name}: {self.task.measure} is not finite on an instance")
        return [float(value) for value in values]


def rule_names(field: Field) -> tuple[str, ...]:
    """Return the rules that count, as the environment declares them, and the random policy."""
    first = next(iter(field.batches.values()))[0]
    return (RANDOM, *references_of(field.task.entry, first).rules)


def by_rule(field: Field, name: str) -> Measured:
    """Measure a rule of the environment, or the random policy."""
    return Measured(field.play(lambda batch: batch.baselines((name,))[name]))


def by_solver(field: Field) -> Measured:
    """Solve the instances of every split that has a solver."""
    values, notes, begin = Values(), dict[str, Any](), time.process_time()
    for split in field.splits:
        solved = [split.solver(batch) if split.solver else None for batch in field.batches[split.name]]
        found = [each for each in solved if each is not None]
        if len(found) == len(solved):
            values[split.name] = [value for each in found for value in each.values]
            notes[split.name] = {"solver": found[0].solver, "proven": sum(each.proven for each in found)}
    return Measured(values, notes, seconds=time.process_time() - begin)


def by_policy(field: Field, method: Method) -> Measured:
    """Measure a hand-written policy."""
    make = method.policy
    assert make is not None
    return Measured(field.play(lambda batch: make(batch.env)))


def by_learner(field: Field, method: Method, seed: int, budget: Budget) -> Measured:
    """Let a method learn by itself, and measure what it returns."""
    assert method.learn is not None
    begin = time.process_time()
    make = method.learn(field.task, seed, budget)
    seconds = time.process_time() - begin
    return Measured(field.play(lambda batch: make(batch.env)), seconds=seconds)


def run_config(task: Task, method: Method, seed: int, budget: Budget) -> AnyRun:
    """Return the config of a run: evaluated on the instances of size n, and never chosen by them."""
    first = task.splits[0]
    every = max(1, task.smoke // POINTS) if budget.smoke else task.every
    length = {"total_frames": task.smoke} if budget.smoke else {"cpu_minutes": budget.minutes}
    evaluation = {
        "every": every,
        "episodes": first.count,
        "seed": task.seed_of(first),
        "settings": dict(first.settings),
        "metric": task.measure,
        "maximise": task.maximise,
        "baselines": [],
    }
    own: dict[str, Any] = {
        "seed": seed,
        "env": dict(task.settings),
        "training": length,
        "evaluation": evaluation,
        "checkpoint": {"every": every, "minutes": 1.0, "keep_last": 1},
        "logging": {"tensorboard": False, "replays": 0},
    }
    try:
        return load_config(
            task.environment,
            algorithm=method.algorithm_for(task),
            keywords=merged(method.settings_for(task), own),
        )
    except ConfigError as error:
        raise ConfigError(
            f"method {method.name}, task {task.name}: {error.message}", hint=error.hint
        ) from error


def untrained(field: Field, config: AnyRun) -> Measured:
    """Measure the network with the initial weights of a seed."""
    policy = initial_policy(config)
    return Measured(field.play(lambda batch: _if_fitting(policy, batch)))


def initial_policy(config: AnyRun) -> Policy:
    """Return the policy with the initial weights of the seed of a run."""
    with torch.random.fork_rng(devices=[]):
        return Builder(without_curriculum(config), num_envs=1).algorithm.policy


def train(config: AnyRun, folder: Path) -> float:
    """Train a run, or continue it where it was interrupted; return the CPU seconds of this process."""
    begin = time.process_time()
    if not (folder / "config.json").is_file():
        start(config, folder=folder)
    elif not read_state(folder).is_done:
        resume(folder)
    return time.process_time() - begin


def trained(field: Field, folder: Path, seconds: float) -> Measured:
    """Measure the newest weights of a run."""
    found = load_trained(folder, which="latest")
    measured = field.play(lambda batch: _if_fitting(found.policy, batch))
    points = read_state(folder).evaluations
    curve = [(frames, means[field.task.measure]) for frames, means in points.items()]
    return Measured(measured, curve=curve, seconds=seconds)


def without_edges(field: Field, folder: Path) -> Measured:
    """Measure the newest weights of a run without any edge; nothing if its network reads none."""
    found = load_trained(folder, which="latest")

    def cut(batch: Instances) -> Policy | None:
        try:
            policy = ablate(found.policy, "edges", batch.env)
        except ConfigError:
            return None
        return _if_fitting(policy, batch)

    return Measured(field.play(cut))


def _if_fitting(policy: Policy, batch: Instances) -> Policy | None:
    """Return the policy; None for a network of one size in graphs of another."""
    modules = policy.modules() if isinstance(policy, nn.Module) else ()
    fixed = [each for each in modules if isinstance(each, GraphEncoder) and not each.any_size]
    is_other = any(each.graph.num_nodes != batch.env.graph.num_nodes for each in fixed)
    return None if is_other else policy
