"""Replays of what a policy did, with what it attended to where the environment's picture has room for it."""

from __future__ import annotations

from collections.abc import Callable
from inspect import signature
from typing import Any

from tensordict import TensorDict

from edgewise.envs.base import GraphEnv
from edgewise.envs.registry import EnvEntry
from edgewise.evaluation.evaluate import Policy
from edgewise.models.actor_critic import Actor

Replay = Callable[[TensorDict], dict[str, Any]]


def drawn_for(policy: Policy, env: GraphEnv[Any], *, line: EnvEntry) -> Replay:
    """What turns the states of one episode into a replay.

    Args:
        policy: whose attention is shown, if it has any.
        env: where the episodes were played.
        line: the environment's line in the registry; its `replay` may take `attention`, `[T + 1, N, N]`.
    """
    draw = line.replay()
    if not isinstance(policy, Actor) or "attention" not in signature(draw).parameters:
        return draw

    def replay(states: TensorDict) -> dict[str, Any]:
        graph = TensorDict(dict(env.observe(states.to(env.device))["graph"]), batch_size=states.batch_size)
        with policy.on(env.graph):
            attention = policy.encoder.attention(graph)
        return draw(states, attention=None if attention is None else attention.cpu())  # type: ignore[call-arg]

    return replay
