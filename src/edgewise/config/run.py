"""The configuration of one run: recipes define it, files and flags change it, run folders store it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Generic, Literal, Self, TypeVar

from pydantic import Field, JsonValue, field_validator, model_validator
from pydantic_core import PydanticCustomError

from edgewise.config.bounds import FRAMES, REAL, ROWS, Real
from edgewise.config.cluster import CLUSTER
from edgewise.config.model import AppliesIf, Config
from edgewise.config.overrides import override_problems
from edgewise.config.schedules import Schedule

EnvT = TypeVar("EnvT", bound=Config)
ModelT = TypeVar("ModelT", bound=Config)
AlgorithmT = TypeVar("AlgorithmT", bound=Config)

OVERRIDE_ERROR = "override_error"
"""Type of the validation error for an invalid schedule, stage or evaluation setting."""


class Until(Config):
    """When a stage ends: after some frames, when a metric reaches a value, or at the first of both."""

    frames: int | None = Field(None, gt=0, le=FRAMES)
    """Frames of this stage."""
    metric: str | None = None
    """Name of a metric, as in metrics.csv."""
    at_least: Real | None = None
    """End the stage when the metric is at least this."""
    at_most: Real | None = None
    """End the stage when the metric is at most this."""

    @model_validator(mode="after")
    def _has_a_condition(self) -> Self:
        if self.frames is None and self.metric is None:
            raise ValueError("give frames, or a metric with at_least or at_most")
        if (self.metric is not None) != ((self.at_least is not None) + (self.at_most is not None) == 1):
            raise ValueError("a metric goes with exactly one of at_least and at_most")
        return self


class Stage(Config):
    """A stage of a curriculum: environment settings that each world applies at its next reset."""

    name: str = Field(min_length=1)
    """Name in logs and in the report."""
    env: dict[str, JsonValue] = Field(default_factory=dict)
    """Environment settings that override those of the run during this stage."""
    until: Until | None = None
    """When the next stage begins; none for the last stage."""


class TrainingConfig(Config):
    """Length of training, batch sizes, schedules and curriculum."""

    total_frames: int = Field(1_000_000, gt=0, le=FRAMES)
    """Number of frames to train on; a frame is one step of one world."""
    minutes: float | None = Field(None, gt=0, le=REAL)
    """Minutes of collecting and learning after which training ends, instead of `total_frames`; evaluations
    and checkpoints are not counted. Schedules follow the share of the time that is used."""
    cpu_minutes: float | None = Field(None, gt=0, le=REAL)
    """The same in minutes of CPU time of this process, so that other programs on the machine do not count."""
    num_envs: int = Field(64, gt=0, le=ROWS)
    """Number of worlds that are stepped as one batch."""
    rollout_length: int = Field(64, gt=0, le=ROWS)
    """Steps of each world per batch."""
    schedules: dict[str, Schedule] = Field(default_factory=dict)
    """Schedules of the algorithm's numbers by field name, such as `learning_rate`."""
    curriculum: tuple[Stage, ...] = ()
    """Stages in order; empty to keep the environment as configured."""
    compile: bool | Literal["auto"] = False
    """Whether to compile the message passing of the model: learning is up to a quarter faster after half a
    minute of compiling. `auto` compiles if the run is long enough to gain from it. Needs a C++ compiler."""

    @model_validator(mode="after")
    def _one_budget(self) -> Self:
        if self.minutes is not None and self.cpu_minutes is not None:
            raise ValueError("minutes and cpu_minutes are two budgets; give one of them")
        return self

    @model_validator(mode="after")
    def _every_stage_but_the_last_ends(self) -> Self:
        endless = [stage.name for stage in self.curriculum[:-1] if stage.until is None]
        if endless:
            raise ValueError(f"only the last stage may have no `until`, but {', '.join(endless)} has none")
        names = [stage.name for stage in self.curriculum]
        if len(set(names)) < len(names):
            raise ValueError(f"stages need different names, got {', '.join(names)}")
        return self


class EvaluationStage(Config):
    """A named group of evaluation instances with its own settings."""

    name: str = Field(min_length=1)
    """Name in tables."""
    episodes: int = Field(gt=0, le=FRAMES)
    """Number of instances in this group."""
    settings: dict[str, JsonValue] = Field(default_factory=dict)
    """Environment settings of this group, out of those that a curriculum may change."""


IF_ONE_STAGE = AppliesIf("there are no evaluation.stages", lambda _, own: not own.stages)


class EvaluationConfig(Config):
    """The fixed instances on which policies are evaluated, independent of the curriculum."""

    every: int | None = Field(50_000, gt=0, le=FRAMES)
    """Frames between evaluations; none to evaluate only at the end, the baselines too."""
    episodes: Annotated[int, IF_ONE_STAGE] = Field(64, gt=0, le=FRAMES)
    """Number of instances; they are sampled once from `seed` and evaluated as one batch."""
    seed: int = Field(1_000_003, ge=0, lt=2**63)
    """Random seed of the instances, separate from the seed of the run."""
    settings: dict[str, JsonValue] = Field(default_factory=dict)
    """Environment settings that override those of the run on these instances."""
    stages: tuple[EvaluationStage, ...] = ()
    """Groups of instances that are evaluated as one batch and reported separately. They replace `episodes`;
    their settings override `settings`."""
    baselines: tuple[str, ...] = ()
    """Baselines of the environment to evaluate for comparison; `all`, or `quick` for those that do not take
    over a millisecond per decision."""
    metric: str = Field("return", min_length=1)
    """Evaluation metric that selects the best checkpoint."""
    maximise: bool = True
    """Whether higher values of that metric are better."""


class CheckpointConfig(Config):
    """When checkpoints are saved, and how many are kept."""

    every: int | None = Field(100_000, gt=0, le=FRAMES)
    """Frames between checkpoints; none to save by time only."""
    minutes: float | None = Field(10.0, gt=0, le=REAL)
    """Minutes between checkpoints; none to save by frames only."""
    keep_last: int = Field(3, ge=1, le=FRAMES)
    """Number of latest checkpoints to keep, in addition to the best one."""


class LoggingConfig(Config):
    """What a run records during training."""

    every: int = Field(1, gt=0, le=FRAMES)
    """Batches between rows of metrics.csv."""
    tensorboard: bool = True
    """Whether to write TensorBoard events."""
    replays: int = Field(1, ge=0, le=ROWS)
    """Number of evaluation episodes to record as replays for the report."""


class RayConfig(Config):
    """How the workers of a run are reached, and what happens when they are late."""

    address: str | None = None
    """Address of a Ray cluster, host:port, or auto for the one of this machine; none to start Ray on this
    machine for this run alone, reachable by nobody else."""
    cpus: float = Field(1.0, gt=0, le=REAL)
    """CPUs of the cluster that each worker occupies."""
    timeout: float = Field(600.0, gt=0, le=REAL)
    """Seconds in which a worker must collect a batch or evaluate; one that is late is replaced, and its work
    repeated."""
    start_timeout: float = Field(600.0, gt=0, le=REAL)
    """Seconds to wait while no worker runs, such as for the first one to start."""
    attempts: int = Field(10, gt=0, le=ROWS)
    """How often the same work is tried, on different workers, before the run stops."""
    max_staleness: int = Field(0, ge=0, le=64)
    """Updates by which the weights that collect a batch may be older than those that learn from it. 0 waits
    for the new weights; 1 or more collects while the run learns, and V-trace corrects PPO for that."""

    @field_validator("address")
    @classmethod
    def _names_a_cluster(cls, address: str | None) -> str | None:
        if address is None or CLUSTER.fullmatch(address):
            return address
        raise ValueError(f'got "{address}", expected host:port, or auto for the cluster of this machine')


class RunConfig(Config, Generic[EnvT, ModelT, AlgorithmT]):
    """Configuration of one run. On a CPU, equal configurations give bit-equal runs."""

    decided: ClassVar[tuple[str, ...]] = ("recipe", "env_name", "algorithm_name")

    recipe: str | None = None
    """Recipe that the run started from; none where environment and algorithm were chosen by themselves."""
    env_name: str = ""
    """Name or address of the environment."""
    algorithm_name: str = ""
    """Name or address of the algorithm."""
    name: str
    """Prefix of the run folder's name: letters, digits, dots, dashes and underscores."""
    seed: int = Field(0, ge=0, lt=2**63)
    """Random seed."""
    device: str = "cpu"
    """Device: cpu, cuda, cuda:1 or mps."""
    threads: int = Field(1, gt=0, le=1024)
    """Threads per tensor operation; one is fastest on a shared machine."""
    processes: int = Field(1, gt=0, le=1024)
    """Processes that train together. Each has an equal share of the worlds, of every minibatch and of the
    collected data, so other settings keep their meaning."""
    workers: int = Field(0, ge=0, le=65536)
    """Workers on a Ray cluster that collect and evaluate, each with an equal share of the worlds; 0 does both
    in the process that learns. Needs `pip install edgewise[ray]`."""
    env: EnvT
    """Settings of the environment."""
    model: ModelT
    """Settings of the model."""
    algorithm: AlgorithmT
    """Settings of the algorithm."""
    training: TrainingConfig = TrainingConfig()
    """Length of training, batch sizes, schedules and curriculum."""
    evaluation: EvaluationConfig = EvaluationConfig()
    """Evaluation on fixed instances."""
    checkpoint: CheckpointConfig = CheckpointConfig()
    """When checkpoints are saved."""
    logging: LoggingConfig = LoggingConfig()
    """What the run records."""
    ray: RayConfig | None = None
    """The cluster of the workers; only for a run with `workers`."""

    @classmethod
    def from_plain(cls, values: Mapping[str, Any]) -> Self:
        """Validate plain values; a run with workers has a section `ray`."""
        needs_ray = values.get("workers") and values.get("ray") is None
        return super().from_plain({**values, "ray": {}} if needs_ray else values)

    @model_validator(mode="after")
    def _a_cluster_is_for_workers(self) -> Self:
        if self.ray is not None and not self.workers:
            raise ValueError("ray: has no effect without workers; give --workers N too, or leave it out")
        return self

    @property
    def cluster(self) -> RayConfig:
        """How workers are reached."""
        return self.ray or RayConfig()

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
        problems = override_problems(
            self.model_dump(mode="json"), env=type(self.env), algorithm=type(self.algorithm)
        )
        if problems:
            lines = "; ".join(f"{'.'.join(map(str, problem.path))}: {problem.reason}" for problem in problems)
            raise PydanticCustomError(OVERRIDE_ERROR, "{lines}", {"lines": lines, "problems": problems})
        return self


AnyRun = RunConfig[Any, Any, Any]
"""The config of a run, whatever its environment, model and algorithm."""
