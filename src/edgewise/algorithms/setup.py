"""The arguments of `Algorithm.from_setup`: environment, configs, and builders of models and baselines."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

from edgewise.config.model import Config
from edgewise.envs.base import GraphEnv
from edgewise.envs.policy import Policy
from edgewise.scale.processes.group import ALONE, Group


class MakeBaseline(Protocol):
    """Builds a baseline of the environment; `field` is the setting that names it, for errors."""

    def __call__(self, name: str, *, field: str) -> Policy:
        """Return the policy."""


@dataclass(frozen=True)
class Setup:
    """Everything that `Algorithm.from_setup` may use.

    Args:
        env: the training environment.
        config: of the algorithm.
        model: config of the model.
        make_model: builds the model of `model` for `env`.
        make_baseline: builds a baseline of `env` by its name.
        seed: random seed of the algorithm.
        device: of the model.
        group: the processes that train together. An algorithm that can be one of several keeps it as its
            attribute `group`; others are refused if there are several.
    """

    env: GraphEnv[Any]
    config: Any
    model: Config
    make_model: Callable[[], Any]
    make_baseline: MakeBaseline
    seed: int
    device: str = "cpu"
    group: Group = ALONE
