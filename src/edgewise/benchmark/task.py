"""What a task of the benchmark is: an environment, a measure, and sets of instances by size and family."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from inspect import cleandoc
from typing import Any

import torch
from tensordict import TensorDict

from edgewise.config.seeds import derive_seed
from edgewise.evaluation.instances import Instances
from edgewise.plugins import Environment, environment

VERSION = "graphs-1"
"""Changes with anything that changes an instance or a measure, so that tables of one version compare."""
SEED = 20_261
"""Random seed that all instances are derived from."""
SMOKE = 8
"""A smoke run has one in so many instances."""
FEWEST = 4
"""Fewest instances of a split."""

Given = Callable[["Task", "Split", int], Sequence[Instances]]
"""Returns the given instances of a task and a split: at most so many."""


@dataclass(frozen=True)
class Split:
    """One set of test instances of a task.

    Args:
        name: `n`, `2n`, `10n` for sizes of the training generator; another word for another source.
        settings: of the environment that differ from those of training.
        count: number of instances.
        given: returns the instances; sampled by the environment if not given. An empty list leaves the split
            out, where a package that holds them is not installed.
        solver: returns the best values, or None where it cannot; see `solvers`.
    """

    name: str
    settings: Mapping[str, Any] = field(default_factory=dict)
    count: int = 32
    given: Given | None = None
    solver: Callable[[Instances], Solved | None] | None = None

    def smaller(self) -> Split:
        """Return the split of a smoke run."""
        return replace(self, count=max(FEWEST, self.count // SMOKE))


@dataclass(frozen=True)
class Solved:
    """What a solver found.

    Args:
        values: the measure of each instance, `[I]`.
        solver: its name.
        proven: number of instances whose value is proven to be optimal.
    """

    values: list[float]
    solver: str
    proven: int


@dataclass(frozen=True)
class Task:
    """A task of the benchmark.

    Args:
        name: on the command line and in tables.
        card: what is decided, what is measured, where the instances are from.
        environment: its name.
        measure: metric of an evaluation that is compared.
        maximise: whether more of it is better.
        settings: of the environment, for training.
        splits: test instances; the first one is of the size and family of training.
        training: settings of a run by section, for every algorithm, such as the number of worlds.
        every: frames between the points of a learning curve.
        smoke: frames that every network trains for in a smoke run.
        group: tasks of one group count as one in aggregates.
    """

    name: str
    card: str
    environment: str
    measure: str
    splits: tuple[Split, ...]
    maximise: bool = False
    settings: Mapping[str, Any] = field(default_factory=dict)
    training: Mapping[str, Any] = field(default_factory=dict)
    every: int = 100_000
    smoke: int = 8_192
    group: str = ""

    def __post_init__(self) -> None:
        object.__setattr__(self, "card", cleandoc(self.card))
        object.__setattr__(self, "group", self.group or self.name)

    @property
    def sign(self) -> float:
        """1 if more is better, else -1."""
        return 1.0 if self.maximise else -1.0

    @cached_property
    def entry(self) -> Environment:
        """The declaration of the environment."""
        return environment(self.environment)

    def smaller(self) -> Task:
        """Return the task of a smoke run, with fewer instances."""
        return replace(self, splits=tuple(split.smaller() for split in self.splits))

    def instances(self, split: Split) -> list[Instances]:
        """Return the instances of a split, one batch after another; none if they are not available."""
        if split.given is not None:
            return list(split.given(self, split, split.count))
        return [self.sampled(split, split.count)]

    def sampled(self, split: Split, count: int) -> Instances:
        """Sample instances from the generator of the environment, by the seed of task and split."""
        config = self.entry.load("config").from_plain(dict(self.settings))
        seed, settings = self.seed_of(split), dict(split.settings)
        return Instances.make(self.entry, config, episodes=count, seed=seed, settings=settings)

    def seed_of(self, split: Split) -> int:
        """Return the random seed of the instances of a split."""
        return derive_seed(SEED, f"{VERSION}/{self.name}/{split.name}")


def starts(instances: Instances) -> TensorDict:
    """Return the states in which the worlds of instances begin."""
    if instances.start is not None:
        return instances.start
    env = instances.env
    env.set_seed(instances.seed)
    state: TensorDict = env.reset()["state"]
    return state


def digest(batches: Sequence[Instances]) -> str:
    """Return the SHA-256 of all that instances are made of: settings, seeds and initial states."""
    found = hashlib.sha256()
    for batch in batches:
        found.update(f"{batch.env.name} {batch.seed} {sorted(batch.env.config.to_plain().items())}".encode())
        state = starts(batch)
        names = sorted(state.keys(include_nested=True, leaves_only=True), key=str)
        for name in names:
            value = state[name].contiguous()
            found.update(f"{name} {value.dtype} {tuple(value.shape)}".encode())
            found.update(value.reshape(-1).view(torch.uint8).numpy().tobytes())
    return found.hexdigest()
