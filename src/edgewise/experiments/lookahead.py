"""Builds players that search before they move, with the networks of a trained run."""

from __future__ import annotations

from typing import Any

from edgewise.algorithms.ppo import PPO
from edgewise.config.errors import ConfigError
from edgewise.envs.base import GraphEnv
from edgewise.search.mcts import MCTS
from edgewise.search.network import network_evaluator


def mcts_policy(env: GraphEnv[Any], algorithm: object, *, simulations: int) -> MCTS:
    """Build the player that searches with the actor and the critic of `algorithm`.

    Args:
        env: shows positions as the networks learnt to see them; of any number of worlds.
        algorithm: a trained algorithm with a policy over single moves and a critic.
        simulations: positions evaluated before each move.
    """
    if not isinstance(algorithm, PPO):
        name = type(algorithm).__name__
        raise ConfigError(f"{name} has no policy and value to search with", hint="play it without --search")
    algorithm.actor_critic.eval()
    norm = algorithm.value_norm
    evaluator = network_evaluator(
        algorithm.actor_critic, denormalise=None if norm is None else norm.denormalise
    )
    return MCTS(env, evaluator, simulations=simulations)
