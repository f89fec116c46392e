"""Steering by hand: each agent looks a few steps ahead, at all it could do, and takes the best beginning."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import product

import torch
from tensordict import TensorDict
from torch import Tensor

from edgewise.graphs.policy import Policy
from edgewise.systems.swarm import dynamics
from edgewise.systems.swarm.env import SwarmEnv

AHEAD = 3
"""Steps that are looked ahead."""
COAST = (1.0 - dynamics.DAMPING) * dynamics.TIME_STEP / dynamics.DAMPING
"""How far a free agent still goes for each unit of speed that it has after a step."""
CAUTION = 0.2
"""Share of a collision's cost that a cautious agent counts for each touch ahead: it may yet be avoided."""


def random_steering(env: SwarmEnv) -> Policy:
    """Any action, all alike."""
    return env.rand_action


def straight(env: SwarmEnv) -> Policy:
    """The way to the goal and nothing else: how much there is to lose by not looking around."""
    return _steer(env, caution=0.0)


def cautious(env: SwarmEnv) -> Policy:
    """The way to the goal, and clear of obstacles and of others, if they go on as they are."""
    return _steer(env, caution=CAUTION * env.config.collision_cost)


def _steer(env: SwarmEnv, *, caution: float) -> Policy:
    """The first action of the plan that earns most on its way and comes to rest nearest to the goal."""
    directions = torch.tensor(dynamics.DIRECTIONS, device=env.device)
    first, *_ = plans = torch.tensor(list(product(range(len(directions)), repeat=AHEAD))).T.to(env.device)
    thrusts = dynamics.SENSITIVITY * directions[plans]

    def policy(tensordict: TensorDict) -> TensorDict:
        worth = _worth(tensordict["state"], thrusts, env, caution=caution)
        best = first[worth.argmax(-1)]
        return tensordict.set("action", directions[best] if env.config.continuous else best)

    return policy


def _worth(state: TensorDict, thrusts: Tensor, env: SwarmEnv, *, caution: float) -> Tensor:
    """What each agent may expect of each plan, `[B, A, S]`, if everybody else goes on without thrust.

    Args:
        state: the worlds, `[B]`.
        thrusts: of every plan at every step, `[AHEAD, S, 2]`.
        env: says what a step at the goal is worth.
        caution: cost of touching somebody or something.
    """
    config, goal = env.config, state["goal"].unsqueeze(-2)
    position, velocity = (state[name].unsqueeze(-2) for name in ("position", "velocity"))
    others, drift = state["position"], state["velocity"]
    worth = torch.zeros((), device=goal.device)
    for step, thrust in enumerate(thrusts):
        pushed = thrust + state["contact"].unsqueeze(-2) if step == 0 else thrust
        position, velocity = dynamics.move(position, velocity, pushed)
        left = dynamics.length(goal - position)
        worth = worth + torch.where(left < config.goal_threshold, config.goal_reward, -left)
        if caution:
            drift = (1.0 - dynamics.DAMPING) * drift
            others = others + dynamics.TIME_STEP * drift
            worth = worth - caution * _crowding(position, others, state)
    return worth - 2 * AHEAD * dynamics.length(goal - position - COAST * velocity)


def _crowding(position: Tensor, others: Tensor, state: TensorDict) -> Tensor:
    """How many of the others and of the obstacles one would touch at `position` `[B, A, S, 2]`."""
    bodies = torch.cat((others, state["obstacle"]), -2)
    exists = torch.cat((state["active"], state["obstacle_mask"]), -1)
    alone = torch.eye(others.shape[-2], bodies.shape[-2], dtype=torch.bool, device=bodies.device)
    distance = dynamics.length(position.unsqueeze(-2) - bodies.unsqueeze(-3).unsqueeze(-3))
    counted = exists[:, None, None] & ~alone[:, None]
    return ((distance < dynamics.DIAMETER) & counted).sum(-1)


BASELINES: Mapping[str, Callable[[SwarmEnv], Policy]] = {
    "random": random_steering,
    "straight": straight,
    "cautious": cautious,
}
