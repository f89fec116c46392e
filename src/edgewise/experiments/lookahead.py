"""Builds players that search before they move, with the networks of a trained run."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torch import Tensor

from edgewise.algorithms.clone import Clone
from edgewise.config.errors import ConfigError
from edgewise.envs.base import GraphEnv
from edgewise.models.actor_critic import ActorCritic
from edgewise.search.mcts import MCTS
from edgewise.search.network import network_evaluator

Networks = tuple[ActorCritic, Callable[[Tensor], Tensor] | None]
"""An actor and a critic, and what converts the critic's predictions to returns, if anything does."""


def networks_of(algorithm: object) -> Networks | None:
    """Return the actor and the critic of a trained algorithm, in evaluation mode; None without a critic."""
    networks, norm = getattr(algorithm, "actor_critic", None), getattr(algorithm, "value_norm", None)
    # Behaviour cloning has a critic that was never trained.
    if not isinstance(networks, ActorCritic) or isinstance(algorithm, Clone):
        return None
    networks.eval()
    return networks, None if norm is None else norm.denormalise


def mcts_policy(env: GraphEnv[Any], algorithm: object, *, simulations: int) -> MCTS:
    """Build the player that searches with the actor and the critic of `algorithm`.

    Args:
        env: shows positions as the networks learnt to see them; of any number of worlds.
        algorithm: a trained algorithm with a policy over single moves and a critic.
        simulations: positions evaluated before each move.
    """
    found = networks_of(algorithm)
    if found is None:
        name = type(algorithm).__name__
        raise ConfigError(f"{name} has no policy and value to search with", hint="play it without --search")
    networks, denormalise = found
    return MCTS(env, network_evaluator(networks, denormalise=denormalise), simulations=simulations)
