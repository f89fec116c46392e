"""Steering by hand: each agent looks where every action would bring it to rest, and takes the best."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import torch
from tensordict import TensorDict
from torch import Tensor

from edgewise.envs.swarm import dynamics
from edgewise.envs.swarm.env import SwarmEnv

Policy = Callable[[TensorDict], TensorDict]
COAST = dynamics.TIME_STEP / dynamics.DAMPING
"""How far a free agent still goes for each unit of speed, after the step it has just made."""
CLEARANCE = 1.5 * dynamics.DIAMETER


def random_steering(env: SwarmEnv) -> Policy:
    """Any action, all alike."""
    return env.rand_action


def straight(env: SwarmEnv) -> Policy:
    """The way to the goal and nothing else: how much there is to lose by not looking around."""
    return _steer(env, caution=0.0)


def cautious(env: SwarmEnv) -> Policy:
    """The way to the goal, less what an agent would come too close to others and obstacles."""
    return _steer(env, caution=20.0)


def _steer(env: SwarmEnv, *, caution: float) -> Policy:
    """The action with the least distance to the goal plus `caution` times the lack of clearance."""
    directions = torch.tensor(dynamics.DIRECTIONS, device=env.device)

    def policy(tensordict: TensorDict) -> TensorDict:
        state = tensordict["state"]
        cost = torch.stack([_cost(state, direction, caution) for direction in directions], -1)
        best = cost.argmin(-1)
        return tensordict.set("action", directions[best] if env.config.continuous else best)

    return policy


def _cost(state: TensorDict, direction: Tensor, caution: float) -> Tensor:
    """What each agent expects of thrust in `direction` `[2]`, the others going on as they are, `[B, A]`."""
    thrust = dynamics.SENSITIVITY * direction + state["contact"]
    position, velocity = dynamics.move(state["position"], state["velocity"], thrust)
    rest = position + COAST * (1.0 - dynamics.DAMPING) * velocity
    left = dynamics.length(state["goal"] - rest)
    if not caution:
        return left
    others = state["position"] + dynamics.TIME_STEP * state["velocity"]
    to_agents = dynamics.length(position.unsqueeze(-2) - others.unsqueeze(-3))
    alone = torch.eye(to_agents.shape[-1], dtype=torch.bool, device=to_agents.device)
    absent = ~state["active"].unsqueeze(-2) | alone
    to_obstacles = dynamics.length(position.unsqueeze(-2) - state["obstacle"].unsqueeze(-3))
    near = _lack(to_agents.masked_fill(absent, torch.inf))
    return left + caution * (
        near + _lack(to_obstacles.masked_fill(~state["obstacle_mask"].unsqueeze(-2), torch.inf))
    )


def _lack(distance: Tensor) -> Tensor:
    """By how much all distances together fall short of the clearance, `[..., K]` to `[...]`."""
    return (CLEARANCE - distance).clamp(min=0.0).sum(-1)


BASELINES: Mapping[str, Callable[[SwarmEnv], Policy]] = {
    "random": random_steering,
    "straight": straight,
    "cautious": cautious,
}
