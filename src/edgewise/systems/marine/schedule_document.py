"""Files that describe marine runs by lists of stages, with several seeds or agents: what they may say.

The format is that of earlier trainers of these boats. A file with `training_schedule` or `agent_type` and
without `recipe` is taken for one. Every value beside the two schedules may be a list; all combinations are
run, one after another. Torch is not imported here.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Annotated, Any, Self, TypeVar

from pydantic import BeforeValidator, Field, model_validator

from edgewise.config.model import Config

T = TypeVar("T")


def _as_tuple(value: Any) -> Any:
    return tuple(value) if isinstance(value, list | tuple) else (value,)


OneOrMore = Annotated[tuple[T, ...], BeforeValidator(_as_tuple), Field(min_length=1)]
"""A value, or a list of values to try."""

Counts = Annotated[tuple[Annotated[int, Field(ge=0)], ...], Field(min_length=1)]
Metres = Annotated[tuple[Annotated[float, Field(ge=0)], ...], Field(min_length=1)]


class Schedule(Config):
    """What worlds are like, stage by stage."""

    num_robots: Counts
    """Robots of a world."""
    num_cores: Counts
    """Vortices of a world."""
    num_obstacles: Counts
    """Obstacles of a world."""
    min_start_goal_dis: Metres
    """Least distance from start to goal."""

    @model_validator(mode="after")
    def _alike_long(self) -> Self:
        lengths = {name: len(value) for name, value in self}
        if len(set(lengths.values())) > 1:
            told = ", ".join(f"{name} {length}" for name, length in lengths.items())
            raise ValueError(f"every list needs one entry for each stage, but they have: {told}")
        return self

    def settings(self, stage: int) -> dict[str, int | float]:
        """Fields of the environment in one stage."""
        return {name: getattr(self, name)[stage] for name in Schedule.model_fields}

    def name(self, stage: int) -> str:
        """What logs call a stage."""
        robots, cores, obstacles, distance = self.settings(stage).values()
        return f"{robots}-robots-{cores}-cores-{obstacles}-obstacles-{distance:g}m"


class TrainingSchedule(Schedule):
    """The stages of training; each begins when so many steps of a world have been made."""

    timesteps: Counts
    """Steps of worlds at which each stage begins."""

    @model_validator(mode="after")
    def _begin_and_rise(self) -> Self:
        if self.timesteps[0] != 0:
            raise ValueError(f"timesteps begin with 0, the first stage; got {self.timesteps[0]}")
        if any(later <= earlier for earlier, later in pairwise(self.timesteps)):
            raise ValueError(f"timesteps must rise, got {list(self.timesteps)}")
        return self


class EvaluationSchedule(Schedule):
    """The kinds of worlds that a policy is measured on, all of them in every evaluation."""

    num_episodes: Annotated[tuple[Annotated[int, Field(ge=1)], ...], Field(min_length=1)]
    """Worlds of each kind."""


class ScheduleDocument(Config):
    """A whole file."""

    agent_type: OneOrMore[str]
    """AC-IQN, IQN, DDPG, DQN, SAC or Rainbow."""
    training_schedule: TrainingSchedule
    """The curriculum."""
    eval_schedule: EvaluationSchedule
    """What is measured."""
    seed: OneOrMore[Annotated[int, Field(ge=0)]] = (0,)
    """Everything random in training follows from it; the worlds of the evaluation do not."""
    total_timesteps: OneOrMore[Annotated[int, Field(gt=0)]] = (6_000_000,)
    """Steps of worlds in all."""
    eval_freq: OneOrMore[Annotated[int, Field(gt=0)]] = (60_000,)
    """Steps of worlds between evaluations, each of which is saved."""
    imitation_learning: OneOrMore[bool] = (False,)
    """Whether an expert leads, and the agent learns from what it does."""
    save_dir: OneOrMore[str] = ("runs",)
    """Where run folders go."""
    load_model: str | None = None
    """Nothing: weights of other programs cannot be loaded."""

    @model_validator(mode="after")
    def _loads_nothing(self) -> Self:
        if self.load_model:
            raise ValueError(
                f"load_model {self.load_model}: weights of other programs cannot be loaded; leave it out, or "
                "go on with a run of edgewise by `edgewise resume`"
            )
        return self
