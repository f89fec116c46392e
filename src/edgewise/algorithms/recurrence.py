"""Value learning with a memory, from sequences with stored hidden states and burn-in (R2D2)."""

from __future__ import annotations

from typing import Any

import torch
from tensordict import TensorDictBase
from torch import Tensor, nn

from edgewise.algorithms.off_policy_config import SequenceConfig
from edgewise.config.errors import ConfigError
from edgewise.data.sequences import HIDDEN
from edgewise.graphs.keys import RECURRENT
from edgewise.models.graph_features import AgentFeatures

TARGETS = (RECURRENT, "targets")
"""Hidden states of the target networks, which act on no environment."""


def prepare(learner: Any) -> int:
    """Tell the networks of an algorithm of their burn-in, and return the steps a sequence is learnt from.

    Raises:
        ConfigError: the algorithm does not learn from sequences.
    """
    config = learner.config
    if not isinstance(config, SequenceConfig):
        raise ConfigError(
            f"model.recurrent: {type(learner).__name__} learns from single steps",
            hint="use dqn, iqn or ppo, or leave it out",
        )
    if config.n_step > 1 or getattr(config, "retrace", None) is not None:
        raise ConfigError(
            "algorithm.n_step: targets of recurrent models have one step",
            hint="leave n_step and retrace out",
        )
    for networks in (learner.networks, learner.targets):
        for features in _with_memory(networks):
            features.burn_in = config.burn_in
            if networks is learner.targets and features.memory is not None:
                features.memory.key = TARGETS
    return config.chunk_length


@torch.no_grad()
def remember(samples: TensorDictBase, *networks: nn.Module) -> None:
    """Give each next observation the hidden states before it, those of the network that reads it.

    Args:
        samples: sequences `[M, L]` from `Sequences.expand`.
        networks: online and target networks, which begin with the stored hidden state.
    """
    observation, following = samples["observation"], samples["next_observation"]
    for each in networks:
        for features in _with_memory(each):
            assert features.memory is not None
            observation.set(features.memory.key, observation[HIDDEN])
            following.set(features.memory.key, features.remembered(observation))


def learnt_from(counted: Tensor | None, length: int, *, team: bool) -> Tensor:
    """Return the decisions after the burn-in, `[M, L, A]`, or `[M, L]` of teams.

    Args:
        counted: which deciders exist and act, `[M, L, A]` bool.
        length: steps at the end of a sequence that are learnt from.
        team: whether the values of agents become one.
    """
    assert counted is not None
    after = torch.arange(counted.shape[1], device=counted.device) >= counted.shape[1] - length
    return after.expand(counted.shape[:2]) if team else counted & after.unsqueeze(-1)


def _with_memory(networks: nn.Module) -> list[AgentFeatures]:
    found = [module for module in networks.modules() if isinstance(module, AgentFeatures)]
    return [features for features in found if features.memory is not None]
