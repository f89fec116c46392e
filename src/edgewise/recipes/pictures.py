"""Replays of what a policy did, with what it attended to or expected where the picture has room for it."""

from __future__ import annotations

from collections.abc import Callable
from inspect import signature
from typing import Any

from tensordict import TensorDict

from edgewise.algorithms.ego_policy import EgoPolicy
from edgewise.envs.base import GraphEnv
from edgewise.envs.registry import EnvEntry
from edgewise.evaluation.evaluate import Policy
from edgewise.models.actor_critic import Actor

Replay = Callable[[TensorDict], dict[str, Any]]


def drawn_for(policy: Policy, env: GraphEnv[Any], *, line: EnvEntry) -> Replay:
    """What turns the states of one episode into a replay.

    Args:
        policy: whose attention, or whose quantiles of returns, are shown, if it has any.
        env: where the episodes were played.
        line: the environment's line in the registry; its `replay` may take `attention`, `[T + 1, N, N]`, or
            `returns`, `[T + 1, A, Q]`.
    """
    draw = line.replay()
    if isinstance(policy, EgoPolicy) and "returns" in signature(draw).parameters:
        return _with_returns(draw, policy, env=env)
    if not isinstance(policy, Actor) or "attention" not in signature(draw).parameters:
        return draw

    def replay(states: TensorDict) -> dict[str, Any]:
        graph = TensorDict(dict(env.observe(states.to(env.device))["graph"]), batch_size=states.batch_size)
        with policy.on(env.graph):
            attention = policy.encoder.attention(graph)
        return draw(states, attention=None if attention is None else attention.cpu())  # type: ignore[call-arg]

    return replay


def _with_returns(draw: Replay, policy: EgoPolicy, *, env: GraphEnv[Any]) -> Replay:
    """Robots with what they expect of what they do, from agents that learn whole distributions."""

    def replay(states: TensorDict) -> dict[str, Any]:
        seen = env.observe(states.to(env.device))["agents"]["ego"]
        time, robots = seen["mask"].shape[:2]
        ego = TensorDict({name: value.flatten(0, 1) for name, value in seen.items()}, [time * robots])
        returns = policy.returns(ego)
        shown = None if returns is None else returns.unflatten(0, (time, robots)).cpu()
        return draw(states, returns=shown)  # type: ignore[call-arg]

    return replay
