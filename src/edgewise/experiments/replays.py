"""Builds the function that draws a replay of an episode, with what the policy attended to or expected."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from inspect import signature
from typing import Any, Protocol

import torch
from tensordict import TensorDict
from torch import Tensor

from edgewise.algorithms.learner_policy import LearnerPolicy
from edgewise.envs.base import GraphEnv
from edgewise.envs.policy import Policy, acting_in
from edgewise.evaluation.replays.graph_replay import frame_times, graph_replay
from edgewise.graphs.keys import ACTIVE, GRAPH, MASK
from edgewise.models.actor_critic import Actor
from edgewise.plugins import Environment

Draw = Callable[..., dict[str, Any]]


class Replay(Protocol):
    """Turns one recorded episode into a replay."""

    def __call__(self, states: TensorDict, steps: TensorDict | None = None, /) -> dict[str, Any]:
        """Build the replay from the states `[T + 1]` and, where recorded, the steps `[T]` of an episode."""


def replay_function(policy: Policy, env: GraphEnv[Any], *, entry: Environment) -> Replay:
    """Return the function that turns the states of one episode into a replay.

    It is that of the environment, or one that draws the observed graph if the environment has none.

    Args:
        policy: whose attention or quantiles of returns are shown, if it has any.
        env: in which the episodes were played.
        entry: the declaration of the environment. Its `replay` may take `env`, `attention` `[T + 1, N, N]`
            or `returns` `[T + 1, A, Q]`.
    """
    draw = entry.load("replay")
    if draw is None:
        return partial(_default_replay, env)
    takes = signature(draw).parameters
    if "env" in takes:
        draw = partial(draw, env=env)
    if isinstance(policy, LearnerPolicy) and policy.per_agent and "returns" in takes:
        return _with_returns(draw, policy, env=env)
    if isinstance(policy, Actor) and "attention" in takes:
        return _with_attention(draw, policy, env=env)
    return lambda states, steps=None, /: draw(states)  # noqa: ARG005


def _default_replay(
    env: GraphEnv[Any], states: TensorDict, steps: TensorDict | None = None, /
) -> dict[str, Any]:
    """Draw the observed graph of an environment without a replay function of its own."""
    times = frame_times(len(states))
    return graph_replay(
        _observations(env, states[times].to(env.device)),
        env.graph,
        env.actions,
        title=env.name,
        times=times,
        action=None if steps is None else steps["action"][times[:-1]],
        returns=None if steps is None else _returns_at(times, steps["return"]),
    )


def _observations(env: GraphEnv[Any], states: TensorDict) -> TensorDict:
    """Return what the policy observes in each state, with the mask and the flags of agents."""
    seen = TensorDict(env.whole_observation(states), states.batch_size)
    mask = env.mask(states)
    mask = env.actions.default_mask(seen[GRAPH]) if mask is None else mask
    if mask is not None:
        seen[MASK] = mask
    if env.num_agents:
        seen[ACTIVE] = states["active"]
    return seen


def _returns_at(times: list[int], returns: Tensor) -> Tensor:
    """Return the return before each step in `times`, from the returns after each step."""
    before = torch.cat((torch.zeros_like(returns[:1]), returns))
    return before[times]


def _with_attention(draw: Draw, policy: Actor, *, env: GraphEnv[Any]) -> Replay:
    """Add the attention weights of the policy's encoder."""

    def replay(states: TensorDict, steps: TensorDict | None = None, /) -> dict[str, Any]:  # noqa: ARG001
        seen = env.whole_observation(states.to(env.device))
        graph = TensorDict(dict(seen[GRAPH]), batch_size=states.batch_size)
        with acting_in(policy, env):
            attention = policy.encoder.attention(graph)
        return draw(states, attention=None if attention is None else attention.cpu())

    return replay


def _with_returns(draw: Draw, policy: LearnerPolicy, *, env: GraphEnv[Any]) -> Replay:
    """Add the distribution of returns that each agent expects."""

    def replay(states: TensorDict, steps: TensorDict | None = None, /) -> dict[str, Any]:  # noqa: ARG001
        seen = env.observe(states.to(env.device))["agents"]["ego"]
        time, agents = seen["mask"].shape[:2]
        ego = TensorDict({name: value.flatten(0, 1) for name, value in seen.items()}, [time * agents])
        returns = policy.return_quantiles(ego)
        shown = None if returns is None else returns.unflatten(0, (time, agents)).cpu()
        return draw(states, returns=shown)

    return replay
