"""Lets a baseline take over from the policy of a run where its config asks for it, in training and after."""

from __future__ import annotations

from typing import Any, Protocol, runtime_checkable

from tensordict import TensorDictBase
from torch import Tensor

from edgewise.algorithms.config import PPOConfig
from edgewise.config.errors import ConfigError
from edgewise.config.model import Config
from edgewise.data.intervention import Intervention
from edgewise.envs.base import GraphEnv
from edgewise.envs.registry import EnvEntry
from edgewise.evaluation.evaluate import Policy


@runtime_checkable
class Strained(Protocol):
    """An environment that says how hard-pressed its worlds are."""

    def strain(self, state: TensorDictBase) -> Tensor:
        """One number for each world, `[B]`; more is worse."""


def overseen(policy: Policy, env: GraphEnv[Any], *, algorithm: Config, line: EnvEntry) -> Policy:
    """The policy, or its mixture with the baseline that `algorithm.intervention` names.

    Args:
        policy: of the run.
        env: in which it will act; the baseline is made for it.
        algorithm: the config of the algorithm; one without interventions leaves the policy as it is.
        line: of the environment in the registry.

    Raises:
        ConfigError: the baseline does not exist, or the environment cannot say when it is needed.
    """
    if not isinstance(algorithm, PPOConfig) or algorithm.intervention is None:
        return policy
    known, name = line.baselines(), algorithm.intervention
    if name not in known:
        raise ConfigError(
            f"algorithm.intervention: got {name}, which is no baseline of {env.name}",
            hint=f"it has {', '.join(sorted(known))}",
        )
    if not isinstance(env, Strained):
        raise ConfigError(
            f"algorithm.intervention: {env.name} cannot say when its worlds are under strain",
            hint="leave intervention out",
        )
    return Intervention(
        policy,
        known[name](env),
        strain=lambda root: env.strain(root["state"]),
        above=algorithm.intervention_above,
    )
