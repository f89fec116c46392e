"""Builds players that search before they move, with the networks of a trained run."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torch import Tensor

from edgewise.algorithms.clone import Clone
from edgewise.algorithms.expert_iteration_config import ExpertIterationConfig
from edgewise.config.errors import ConfigError
from edgewise.envs.base import GraphEnv
from edgewise.models.actor_critic import ActorCritic
from edgewise.models.instance_actor import InstanceActorCritic
from edgewise.search.gumbel import GumbelSearch
from edgewise.search.mcts import MCTS
from edgewise.search.network import NetworkEvaluator

Networks = tuple[ActorCritic | InstanceActorCritic, Callable[[Tensor], Tensor] | None]
"""An actor and a critic, and what converts the critic's predictions to returns, if anything does."""


def networks_of(algorithm: object) -> Networks | None:
    """Return the actor and the critic of a trained algorithm, in evaluation mode; None without a critic."""
    networks, norm = getattr(algorithm, "actor_critic", None), getattr(algorithm, "value_norm", None)
    # Behaviour cloning has a critic that was never trained.
    if not isinstance(networks, ActorCritic | InstanceActorCritic) or isinstance(algorithm, Clone):
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
    return MCTS(env, _evaluator(algorithm, hint="play it without --search"), simulations=simulations)


def search_policy(env: GraphEnv[Any], algorithm: object, *, simulations: int) -> GumbelSearch:
    """Build the policy of one player that searches with the actor and the critic of `algorithm`.

    Args:
        env: of any number of worlds, with deterministic transitions.
        algorithm: a trained algorithm with a policy over single choices and a critic.
        simulations: states evaluated before each choice.
    """
    hint = "search with a run of ppo or expert_iteration, or decode by guided:K"
    evaluator, config = _evaluator(algorithm, hint=hint), getattr(algorithm, "config", None)
    scale = getattr(config, "value_scale", ExpertIterationConfig().value_scale)
    return GumbelSearch(env, evaluator, simulations=simulations, value_scale=scale)


def _evaluator(algorithm: object, *, hint: str) -> NetworkEvaluator:
    found = networks_of(algorithm)
    if found is None:
        raise ConfigError(f"{type(algorithm).__name__} has no policy and value to search with", hint=hint)
    networks, denormalise = found
    return NetworkEvaluator(networks, denormalise=denormalise)
