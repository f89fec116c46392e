"""Builds the function that draws a replay of an episode, with what the policy attended to or expected."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from inspect import signature
from typing import Any

from tensordict import TensorDict

from edgewise.algorithms.ego_policy import EgoPolicy
from edgewise.config.plugins import Environment
from edgewise.envs.base import GraphEnv
from edgewise.graphs.policy import Policy, acting_in
from edgewise.models.actor_critic import Actor

Replay = Callable[[TensorDict], dict[str, Any]]


def replay_function(policy: Policy, env: GraphEnv[Any], *, entry: Environment) -> Replay | None:
    """Return the function that turns the states of one episode into a replay, or None if there is none.

    Args:
        policy: whose attention or quantiles of returns are shown, if it has any.
        env: in which the episodes were played.
        entry: the declaration of the environment. Its `replay` may take `env`, `attention` `[T + 1, N, N]`
            or `returns` `[T + 1, A, Q]`.
    """
    draw = entry.load("replay")
    if draw is None:
        return None
    takes = signature(draw).parameters
    if "env" in takes:
        draw = partial(draw, env=env)
    if isinstance(policy, EgoPolicy) and "returns" in takes:
        return _with_returns(draw, policy, env=env)
    if isinstance(policy, Actor) and "attention" in takes:
        return _with_attention(draw, policy, env=env)
    return draw


def _with_attention(draw: Callable[..., dict[str, Any]], policy: Actor, *, env: GraphEnv[Any]) -> Replay:
    """Add the attention weights of the policy's encoder."""

    def replay(states: TensorDict) -> dict[str, Any]:
        graph = TensorDict(dict(env.observe(states.to(env.device))["graph"]), batch_size=states.batch_size)
        with acting_in(policy, env):
            attention = policy.encoder.attention(graph)
        return draw(states, attention=None if attention is None else attention.cpu())

    return replay


def _with_returns(draw: Callable[..., dict[str, Any]], policy: EgoPolicy, *, env: GraphEnv[Any]) -> Replay:
    """Add the distribution of returns that each agent expects."""

    def replay(states: TensorDict) -> dict[str, Any]:
        seen = env.observe(states.to(env.device))["agents"]["ego"]
        time, agents = seen["mask"].shape[:2]
        ego = TensorDict({name: value.flatten(0, 1) for name, value in seen.items()}, [time * agents])
        returns = policy.return_quantiles(ego)
        shown = None if returns is None else returns.unflatten(0, (time, agents)).cpu()
        return draw(states, returns=shown)

    return replay
