"""Everything one run is made of: a recipe fills it, a file and flags change it, the run folder keeps it."""

from __future__ import annotations

import re
from typing import Annotated, Generic, Literal, Self, TypeVar

from pydantic import Field, JsonValue, field_validator, model_validator
from pydantic_core import PydanticCustomError

from edgewise.config.model import Config
from edgewise.config.overrides import misfits
from edgewise.config.schedules import Schedule

EnvT = TypeVar("EnvT", bound=Config)
ModelT = TypeVar("ModelT", bound=Config)
AlgorithmT = TypeVar("AlgorithmT", bound=Config)

MISFIT = "misfit"
"""The kind of error that a setting which varies within a run raises when its name or value does not fit."""


class Until(Config):
    """When a stage ends: after some frames, when a metric is reached, or whichever comes first."""

    frames: int | None = Field(None, gt=0)
    """Frames spent in this stage."""
    metric: str | None = None
    """Name of a metric of the run, as in metrics.csv."""
    at_least: float | None = None
    """The metric must reach this value or more."""
    at_most: float | None = None
    """The metric must fall to this value or less."""

    @model_validator(mode="after")
    def _says_something(self) -> Self:
        if self.frames is None and self.metric is None:
            raise ValueError("give frames, or a metric with at_least or at_most")
        if (self.metric is not None) != ((self.at_least is not None) + (self.at_most is not None) == 1):
            raise ValueError("a metric goes with exactly one of at_least and at_most")
        return self

    def reached(self, frames_in_stage: int, metrics: dict[str, float]) -> bool:
        """Whether the stage is over after `frames_in_stage`, given the newest value of each metric."""
        if self.frames is not None and frames_in_stage >= self.frames:
            return True
        value = metrics.get(self.metric) if self.metric is not None else None
        if value is None:
            return False
        if self.at_least is not None:
            return value >= self.at_least
        return self.at_most is not None and value <= self.at_most


class Stage(Config):
    """One step of a curriculum: settings of the environment that each world takes up at its next reset."""

    name: str = Field(min_length=1)
    """What logs and the report call it."""
    env: dict[str, JsonValue] = Field(default_factory=dict)
    """Fields of the environment's config that differ from the run's own while the stage lasts."""
    until: Until | None = None
    """When the next stage begins; the last stage has none."""


class TrainingConfig(Config):
    """How much is collected, in what portions, and what changes on the way."""

    total_frames: int = Field(1_000_000, gt=0)
    """Frames to train on; one frame is one step of one world."""
    num_envs: Annotated[int, Field(gt=0)] | Literal["auto"] = 64
    """Worlds that step side by side; `auto` probes memory and throughput."""
    rollout_length: int = Field(64, gt=0)
    """Steps of every world in one batch."""
    schedules: dict[str, Schedule] = Field(default_factory=dict)
    """Numbers of the algorithm that change over the run, by field name, such as `learning_rate`."""
    curriculum: tuple[Stage, ...] = ()
    """Stages in order; without any, the environment stays as configured."""
    compile: bool = False
    """Whether to compile the model (needs a C++ compiler; two to three times faster after a slow start)."""

    @model_validator(mode="after")
    def _every_stage_but_the_last_ends(self) -> Self:
        endless = [stage.name for stage in self.curriculum[:-1] if stage.until is None]
        if endless:
            raise ValueError(f"only the last stage may go without `until`, but {', '.join(endless)} has none")
        names = [stage.name for stage in self.curriculum]
        if len(set(names)) < len(names):
            raise ValueError(f"stages need different names, got {', '.join(names)}")
        return self


class EvaluationStage(Config):
    """Some of the fixed instances, of one kind."""

    name: str = Field(min_length=1)
    """What tables call it."""
    episodes: int = Field(gt=0)
    """How many instances of this kind there are."""
    settings: dict[str, JsonValue] = Field(default_factory=dict)
    """Fields of the environment's config that differ on these instances, of those a curriculum may change."""


class EvaluationConfig(Config):
    """The fixed instances on which a policy is measured, whatever the curriculum does."""

    every: int | None = Field(50_000, gt=0)
    """Frames between evaluations; none for one at the end alone."""
    episodes: int = Field(64, gt=0)
    """Instances, drawn once from `seed` and played as one batch."""
    seed: int = Field(1_000_003, ge=0, lt=2**63)
    """Seed of the instances, apart from the run's own."""
    settings: dict[str, JsonValue] = Field(default_factory=dict)
    """Fields of the environment's config that differ from the run's own on these instances."""
    stages: tuple[EvaluationStage, ...] = ()
    """Instances of several kinds, all played as one batch and told apart in the results; they take the place
    of `episodes`, and their settings come over `settings`."""
    baselines: tuple[str, ...] = ()
    """Hand-written policies of the environment to measure beside."""
    metric: str = Field("return", min_length=1)
    """Which evaluation metric decides what the best checkpoint is."""
    maximise: bool = True
    """Whether more of that metric is better."""


class CheckpointConfig(Config):
    """When a run saves itself, and how many checkpoints it keeps."""

    every: int | None = Field(100_000, gt=0)
    """Frames between checkpoints; none to go by minutes alone."""
    minutes: float | None = Field(10.0, gt=0)
    """Minutes after which a run saves itself besides; none to go by frames alone."""
    keep_last: int = Field(3, ge=1)
    """Newest checkpoints that stay; the best one stays besides."""


class LoggingConfig(Config):
    """What a run writes down while it trains."""

    every: int = Field(1, gt=0)
    """Batches between rows of metrics.csv."""
    tensorboard: bool = True
    """Whether to write TensorBoard events too."""
    replays: int = Field(1, ge=0)
    """Evaluation episodes kept for the report's replay."""


class RunConfig(Config, Generic[EnvT, ModelT, AlgorithmT]):
    """One run, whole: the same values give the same run, bit for bit on a CPU."""

    recipe: str
    """The recipe this run is made from; it names the environment and the algorithm."""
    name: str
    """Begins the name of the run folder: letters, digits, dots, dashes and underscores."""
    seed: int = Field(0, ge=0, lt=2**63)
    """Everything random follows from it."""
    device: str = "cpu"
    """Where tensors live: cpu, cuda, cuda:1 or mps."""
    threads: int = Field(1, gt=0)
    """Threads of each tensor operation; one is fastest on a shared machine."""
    env: EnvT
    """The problem."""
    model: ModelT
    """The network."""
    algorithm: AlgorithmT
    """The way it learns."""
    training: TrainingConfig = TrainingConfig()
    """How long, in what portions, and what changes on the way."""
    evaluation: EvaluationConfig = EvaluationConfig()
    """The fixed instances it is measured on."""
    checkpoint: CheckpointConfig = CheckpointConfig()
    """When it is saved."""
    logging: LoggingConfig = LoggingConfig()
    """What it writes down."""

    @field_validator("name")
    @classmethod
    def _names_a_folder(cls, name: str) -> str:
        if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}", name):
            raise ValueError(
                f'got "{name}", expected up to 100 letters, digits, dots, dashes and underscores'
            )
        return name

    @field_validator("device")
    @classmethod
    def _names_a_device(cls, device: str) -> str:
        if not re.fullmatch(r"cpu|cuda(:[0-9]+)?|mps", device):
            raise ValueError(f'got "{device}", expected cpu, cuda, cuda:1 (any number) or mps')
        return device

    @model_validator(mode="after")
    def _overrides_fit(self) -> Self:
        found = misfits(self.model_dump(mode="json"), env=type(self.env), algorithm=type(self.algorithm))
        if found:
            lines = "; ".join(f"{'.'.join(map(str, misfit.path))}: {misfit.reason}" for misfit in found)
            raise PydanticCustomError(MISFIT, "{lines}", {"lines": lines, "misfits": found})
        return self
