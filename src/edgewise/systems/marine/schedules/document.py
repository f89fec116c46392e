"""Format of schedule files, which describe marine runs by lists of stages, seeds and agents. No torch.

The format is that of the published trainer. A file with `training_schedule`, `eval_schedule` or `agent_type`
and without `recipe` is a schedule file. Every value except the two schedules may be a list; all combinations
are trained, one after another.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Annotated, Any, Self, TypeVar

from pydantic import BeforeValidator, Field, model_validator

from edgewise.config.bounds import FRAMES, NODES, REAL, ROWS
from edgewise.config.model import Config

T = TypeVar("T")


def _as_tuple(value: Any) -> Any:
    return tuple(value) if isinstance(value, list | tuple) else (value,)


OneOrMore = Annotated[tuple[T, ...], BeforeValidator(_as_tuple), Field(min_length=1)]
"""A value, or a list of values to try."""

Counts = Annotated[tuple[Annotated[int, Field(ge=0, le=NODES)], ...], Field(min_length=1)]
Frames = Annotated[tuple[Annotated[int, Field(ge=0, le=FRAMES)], ...], Field(min_length=1)]
Metres = Annotated[tuple[Annotated[float, Field(ge=0, le=REAL)], ...], Field(min_length=1)]


class Schedule(Config):
    """Settings of the environment, stage by stage."""

    num_robots: Counts
    """Number of robots."""
    num_cores: Counts
    """Number of vortices."""
    num_obstacles: Counts
    """Number of obstacles."""
    min_start_goal_dis: Metres
    """Minimum distance from start to goal, in metres."""

    @model_validator(mode="after")
    def _equal_lengths(self) -> Self:
        lengths = {name: len(value) for name, value in self}
        if len(set(lengths.values())) > 1:
            listed = ", ".join(f"{name} {length}" for name, length in lengths.items())
            raise ValueError(f"every list needs one entry for each stage, but they have: {listed}")
        return self

    def settings(self, stage: int) -> dict[str, int | float]:
        """Return the settings of the environment in one stage."""
        return {name: getattr(self, name)[stage] for name in Schedule.model_fields}

    def name(self, stage: int) -> str:
        """Return the name of a stage."""
        robots, cores, obstacles, distance = self.settings(stage).values()
        return f"{robots}-robots-{cores}-cores-{obstacles}-obstacles-{distance:g}m"


class TrainingSchedule(Schedule):
    """Stages of training."""

    timesteps: Frames
    """Number of frames at which each stage begins."""

    @model_validator(mode="after")
    def _start_at_zero_and_increase(self) -> Self:
        if self.timesteps[0] != 0:
            raise ValueError(f"timesteps must begin with 0, the first stage; got {self.timesteps[0]}")
        if any(later <= earlier for earlier, later in pairwise(self.timesteps)):
            raise ValueError(f"timesteps must increase, got {list(self.timesteps)}")
        return self


class EvaluationSchedule(Schedule):
    """Stages of evaluation; every evaluation runs all of them."""

    num_episodes: Annotated[tuple[Annotated[int, Field(ge=1, le=ROWS)], ...], Field(min_length=1)]
    """Number of episodes of each stage."""


class ScheduleDocument(Config):
    """A schedule file."""

    agent_type: OneOrMore[str]
    """AC-IQN, IQN, DDPG, DQN, SAC or Rainbow."""
    training_schedule: TrainingSchedule
    """Curriculum of training."""
    eval_schedule: EvaluationSchedule
    """Stages of evaluation."""
    seed: OneOrMore[Annotated[int, Field(ge=0, le=FRAMES)]] = (0,)
    """Random seed of training; the evaluation has a fixed seed of its own."""
    total_timesteps: OneOrMore[Annotated[int, Field(gt=0, le=FRAMES)]] = (6_000_000,)
    """Total number of frames."""
    eval_freq: OneOrMore[Annotated[int, Field(gt=0, le=FRAMES)]] = (60_000,)
    """Number of frames between evaluations; each one saves a checkpoint."""
    imitation_learning: OneOrMore[bool] = (False,)
    """Whether an expert acts and the agent learns from its transitions."""
    save_dir: OneOrMore[str] = ("runs",)
    """Folder of the run folders."""
    load_model: str | None = None
    """Must be empty: weights of other programs cannot be loaded."""

    @model_validator(mode="after")
    def _refuse_load_model(self) -> Self:
        if self.load_model:
            raise ValueError(
                f"load_model {self.load_model}: weights of other programs cannot be loaded; leave it out, or "
                "continue a run of edgewise with `edgewise resume`"
            )
        return self
