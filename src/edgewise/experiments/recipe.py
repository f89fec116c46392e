"""A recipe is a preset: the settings of a run that reproduces a result, with a name. Never imports torch."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, cast

from edgewise import plugins
from edgewise.config.errors import ConfigError
from edgewise.config.model import Config
from edgewise.config.run import (
    AnyRun,
    CheckpointConfig,
    EvaluationConfig,
    LoggingConfig,
    RunConfig,
    TrainingConfig,
)
from edgewise.models.config import ModelConfig
from edgewise.plugins.declarations import config_class_of


@dataclass(frozen=True)
class Recipe:
    """One reproducible result. `dataclasses.replace` makes a variant of one.

    Args:
        name: what users call it.
        summary: one line on what it shows.
        env: settings of the environment, whose name follows from their class.
        algorithm: settings of the algorithm, whose name follows from their class.
        model: settings of the model.
        training: length of training, batch sizes, schedules and curriculum.
        evaluation: evaluation on fixed instances.
        checkpoint: when checkpoints are saved.
        logging: what the run records.

    Example:
        >>> import edgewise as ew
        >>> env = ew.make_env("graphwalk").config
        >>> Recipe("walk", "a short walk", env=env, algorithm=ew.PPOConfig(epochs=2)).config.env_name
        'graphwalk'
    """

    name: str
    summary: str
    env: Config
    algorithm: Config
    model: Config = field(default_factory=ModelConfig)
    training: TrainingConfig | Mapping[str, Any] = field(default_factory=TrainingConfig)
    evaluation: EvaluationConfig | Mapping[str, Any] = field(default_factory=EvaluationConfig)
    checkpoint: CheckpointConfig | Mapping[str, Any] = field(default_factory=CheckpointConfig)
    logging: LoggingConfig | Mapping[str, Any] = field(default_factory=LoggingConfig)

    @cached_property
    def config(self) -> AnyRun:
        """Every setting of the run; files and flags change it.

        Raises:
            ConfigError: no environment or algorithm has settings of these classes.
        """
        settings: dict[str, Any] = {part: getattr(self, part) for part in PARTS}
        classes = type(self.env), type(self.model), type(self.algorithm)
        schema = cast(type[AnyRun], RunConfig.__class_getitem__(classes))
        return schema(
            recipe=self.name,
            name=self.name,
            env_name=_env_name(classes[0]),
            algorithm_name=_algorithm_name(classes[2]),
            **settings,
        )

    @property
    def schema(self) -> type[AnyRun]:
        """The class of its config, which has the fields of environment, model and algorithm."""
        return type(self.config)


PARTS = ("env", "model", "algorithm", "training", "evaluation", "checkpoint", "logging")


def _env_name(config: type[Config]) -> str:
    """Return the name of the environment that has these settings."""
    for name, entry in plugins.environments().items():
        if entry.config in (config, _address(config)):
            return name
        if entry.config is None and isinstance(entry.env, type) and config_class_of(entry.env) is config:
            return name
    raise _unknown("environment", config)


def _algorithm_name(config: type[Config]) -> str:
    """Return the name of the algorithm that has these settings, alone or in games of two players."""
    for name, entry in plugins.algorithms().items():
        own = None if entry.config or not isinstance(entry.algorithm, type) else entry.load("config")
        if {config, _address(config)} & {entry.config, entry.self_play_config, own}:
            return name
    raise _unknown("algorithm", config)


def _address(config: type[Config]) -> str:
    return f"{config.__module__}:{config.__qualname__}"


def _unknown(kind: str, config: type[Config]) -> ConfigError:
    return ConfigError(f"no {kind} has settings of class {config.__name__}", hint=f"ew.register the {kind}")
