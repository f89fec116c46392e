"""Hand-written steering: each agent plans a few steps ahead over all action sequences."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import product

import torch
from tensordict import TensorDict
from torch import Tensor

from edgewise.graphs.policy import Policy
from edgewise.systems.swarm import dynamics
from edgewise.systems.swarm.env import SwarmEnv

HORIZON = 3
"""Steps of a plan."""
COASTING_DISTANCE = (1.0 - dynamics.DAMPING) * dynamics.TIME_STEP / dynamics.DAMPING
"""Distance that a free agent still coasts, per unit of speed."""
CAUTION = 0.2
"""Fraction of the collision cost that a cautious agent counts for each predicted contact."""


def random_steering(env: SwarmEnv) -> Policy:
    """Take uniformly random actions."""
    return env.rand_action


def straight(env: SwarmEnv) -> Policy:
    """Plan for the goal alone, ignoring other agents and obstacles."""
    return _steer(env, caution=0.0)


def cautious(env: SwarmEnv) -> Policy:
    """Plan for the goal and avoid obstacles and other agents, assuming that these coast."""
    return _steer(env, caution=CAUTION * env.config.collision_cost)


def _steer(env: SwarmEnv, *, caution: float) -> Policy:
    """Build a policy that takes the first action of the plan with the highest return."""
    directions = torch.tensor(dynamics.DIRECTIONS, device=env.device)
    first, *_ = plans = torch.tensor(list(product(range(len(directions)), repeat=HORIZON))).T.to(env.device)
    thrusts = dynamics.SENSITIVITY * directions[plans]

    def policy(tensordict: TensorDict) -> TensorDict:
        worth = _plan_returns(tensordict["state"], thrusts, env, caution=caution)
        best = first[worth.argmax(-1)]
        return tensordict.set("action", directions[best] if env.config.continuous else best)

    return policy


def _plan_returns(state: TensorDict, thrusts: Tensor, env: SwarmEnv, *, caution: float) -> Tensor:
    """Compute the return of each plan for each agent, `[B, A, S]`, if all other agents coast.

    Args:
        state: state of the worlds, `[B]`.
        thrusts: thrust of every plan at every step, `[HORIZON, S, 2]`.
        env: environment, for its reward settings.
        caution: cost of a predicted contact.
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
            worth = worth - caution * _num_contacts(position, others, state)
    return worth - 2 * HORIZON * dynamics.length(goal - position - COASTING_DISTANCE * velocity)


def _num_contacts(position: Tensor, others: Tensor, state: TensorDict) -> Tensor:
    """Count the agents and obstacles that an agent would touch at `position` `[B, A, S, 2]`."""
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
