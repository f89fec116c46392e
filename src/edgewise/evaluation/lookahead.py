"""A trained policy that looks ahead before it moves, guided by its own chances and values."""

from __future__ import annotations

from typing import Any

from tensordict import TensorDictBase
from torch import Tensor

from edgewise.algorithms.ppo import PPO
from edgewise.config.errors import ConfigError
from edgewise.envs.base import GraphEnv
from edgewise.envs.search import Judge, Search
from edgewise.models.distributions import MaskedCategorical


def looking_ahead(env: GraphEnv[Any], algorithm: object, *, simulations: int) -> Search:
    """The player that searches with the networks of `algorithm`.

    Args:
        env: shows positions as the networks learnt to see them; of any number of worlds.
        algorithm: what learnt; it must have a policy over single moves and a critic.
        simulations: positions looked at before a move.
    """
    if not isinstance(algorithm, PPO):
        name = type(algorithm).__name__
        raise ConfigError(f"{name} has no chances and values to search with", hint="play it without --search")
    algorithm.actor_critic.eval()
    return Search(env, judged_by(algorithm), simulations=simulations)


def judged_by(algorithm: PPO) -> Judge:
    """The actor's chances and the critic's values, in rewards whatever the critic predicts in."""
    networks, norm = algorithm.actor_critic, algorithm.value_norm

    def judge(root: TensorDictBase) -> tuple[Tensor, Tensor]:
        distribution, value = networks.evaluate(root)
        assert isinstance(distribution, MaskedCategorical)
        value = value if norm is None else norm.denormalise(value)
        return distribution.probs, value.squeeze(-1).clamp(-1.0, 1.0)

    return judge
