"""Adds interventions by a baseline to the policy of a run, where its config asks for them."""

from __future__ import annotations

from typing import Any, Protocol, runtime_checkable

from tensordict import TensorDictBase
from torch import Tensor

from edgewise.algorithms.config import PPOConfig
from edgewise.config.errors import ConfigError
from edgewise.config.model import Config
from edgewise.data.intervention import Intervention
from edgewise.envs.base import GraphEnv
from edgewise.envs.policy import Policy
from edgewise.plugins import Environment


@runtime_checkable
class HasLoad(Protocol):
    """An environment that measures how loaded its worlds are."""

    def load(self, state: TensorDictBase) -> Tensor:
        """Return the load of each world, `[B]`; more is worse."""


def with_intervention(policy: Policy, env: GraphEnv[Any], *, algorithm: Config, entry: Environment) -> Policy:
    """Return the policy, mixed with the baseline that `algorithm.intervention` names, if it names one.

    Args:
        policy: of the run.
        env: in which it will act; the baseline is built for it.
        algorithm: config of the algorithm; one without interventions leaves the policy unchanged.
        entry: the declaration of the environment.

    Raises:
        ConfigError: the baseline does not exist, or the environment does not measure its load.
    """
    if not isinstance(algorithm, PPOConfig) or algorithm.intervention is None:
        return policy
    known, name = entry.load_baselines(), algorithm.intervention
    if name not in known:
        raise ConfigError(
            f"algorithm.intervention: got {name}, which is no baseline of {env.name}",
            hint=f"it has {', '.join(known.names())}",
        )
    if not isinstance(env, HasLoad):
        raise ConfigError(
            f"algorithm.intervention: {env.name} does not measure how loaded its worlds are",
            hint="leave intervention out",
        )
    return Intervention(
        policy,
        known[name](env),
        load=lambda root: env.load(root["state"]),
        above=algorithm.intervention_above,
    )
