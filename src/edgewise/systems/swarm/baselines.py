"""Hand-written steering: each agent plans a few steps ahead, over what its actions can do."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

import torch
from tensordict import TensorDict
from torch import Tensor

from edgewise.envs.policy import Policy
from edgewise.systems.swarm import double_integrator, dynamics, thrust
from edgewise.systems.swarm.env import SwarmEnv

HORIZON = 3
"""Steps of a plan."""
COASTING_DISTANCE = (1.0 - dynamics.DAMPING) * dynamics.TIME_STEP / dynamics.DAMPING
"""Distance that a free agent still coasts, per unit of speed."""
CAUTION = 0.2
"""Fraction of the collision cost that a cautious agent counts for each predicted contact."""

HEADINGS = 16
"""Directions of full force that a cautious double integrator tries."""
FORESIGHT = 0.4
"""Seconds for which it looks ahead."""
MARGIN = 0.02
"""Gap that it keeps to other bodies."""
TOUCHING = 1000.0
"""Cost of a unit of overlap, against the squared distance to the reference action."""


def random_steering(env: SwarmEnv) -> Policy:
    """Take uniformly random actions."""
    return env.rand_action


def straight(env: SwarmEnv) -> Policy:
    """Plan for the goal alone, ignoring other agents and obstacles."""
    if env.config.dynamics == "double_integrator":
        return _regulated(env, avoids=False)
    if env.config.continuous:
        return _thrusting(env, avoids=False)
    return _steer(env, caution=0.0)


def cautious(env: SwarmEnv) -> Policy:
    """Plan for the goal and avoid obstacles and other agents, assuming that these coast."""
    if env.config.dynamics == "double_integrator":
        return _regulated(env, avoids=True)
    if env.config.continuous:
        return _thrusting(env, avoids=True)
    return _steer(env, caution=CAUTION * env.config.collision_cost)


def _thrusting(env: SwarmEnv, *, avoids: bool) -> Policy:
    """Build a policy with continuous thrust: it drives at the goal, or plans to keep clear as well."""
    config = env.config
    reward = {"goal_reward": config.goal_reward, "goal_threshold": config.goal_threshold}

    def policy(tensordict: TensorDict) -> TensorDict:
        state = tensordict["state"]
        if avoids:
            action = thrust.plan(state, collision_cost=config.collision_cost, **reward)
        else:
            action = thrust.drive(state["position"], state["velocity"], state["goal"])
        return tensordict.set("action", action)

    return policy


def _steer(env: SwarmEnv, *, caution: float) -> Policy:
    """Build a policy that takes the first action of the plan with the highest return."""
    thrusts = dynamics.SENSITIVITY * torch.tensor(dynamics.DIRECTIONS, device=env.device)
    plans_of_first = len(thrusts) ** (HORIZON - 1)

    def policy(tensordict: TensorDict) -> TensorDict:
        worth = _plan_returns(tensordict["state"], thrusts, env, caution=caution)
        return tensordict.set("action", worth.argmax(-1) // plans_of_first)

    return policy


def _plan_returns(state: TensorDict, thrusts: Tensor, env: SwarmEnv, *, caution: float) -> Tensor:
    """Compute the return of each plan for each agent, `[B, A, D ** HORIZON]`, if all other agents coast.

    Plans are in lexicographic order of their thrusts. Those that begin alike share their first steps.

    Args:
        state: state of the worlds, `[B]`.
        thrusts: to choose from at every step, `[D, 2]`.
        env: environment, for its reward settings.
        caution: cost of a predicted contact.
    """
    config, goal = env.config, state["goal"].unsqueeze(-2)
    position, velocity = (state[name].unsqueeze(-2) for name in ("position", "velocity"))
    others, drift = state["position"], state["velocity"]
    worth = torch.zeros_like(position[..., 0])
    for step in range(HORIZON):
        pushed = thrusts + state["contact"].unsqueeze(-2).unsqueeze(-2) if step == 0 else thrusts
        moved = dynamics.move(position.unsqueeze(-2), velocity.unsqueeze(-2), pushed)
        position, velocity = (each.flatten(-3, -2) for each in moved)
        left = dynamics.length(goal - position)
        worth = worth.repeat_interleave(len(thrusts), -1) + torch.where(
            left < config.goal_threshold, config.goal_reward, -left
        )
        if caution:
            drift = (1.0 - dynamics.DAMPING) * drift
            others = others + dynamics.TIME_STEP * drift
            obstacles = _obstacles_after((step + 1) * dynamics.TIME_STEP, state)
            worth = worth - caution * _num_contacts(position, others, obstacles, state)
    return worth - 2 * HORIZON * dynamics.length(goal - position - COASTING_DISTANCE * velocity)


def _obstacles_after(seconds: float, state: TensorDict) -> Tensor:
    """Return where obstacles will be, `[B, O, 2]`, unless they turn back before."""
    velocity = state.get("obstacle_velocity", None)
    obstacle: Tensor = state["obstacle"]
    return obstacle if velocity is None else obstacle + seconds * velocity


def _num_contacts(position: Tensor, others: Tensor, obstacles: Tensor, state: TensorDict) -> Tensor:
    """Count the agents and obstacles that an agent would touch at `position` `[B, A, S, 2]`."""
    bodies = torch.cat((others, obstacles), -2)
    exists = torch.cat((state["active"], state["obstacle_mask"]), -1)
    alone = torch.eye(others.shape[-2], bodies.shape[-2], dtype=torch.bool, device=bodies.device)
    distance = dynamics.length(position.unsqueeze(-2) - bodies.unsqueeze(-3).unsqueeze(-3))
    counted = exists[:, None, None] & ~alone[:, None]
    return ((distance < dynamics.DIAMETER) & counted).sum(-1)


def _regulated(env: SwarmEnv, *, avoids: bool) -> Policy:
    """Build a policy for the double integrator: its reference controller, or the nearest action to it.

    Among the reference, no force and full force in `HEADINGS` directions, one that avoids takes the action
    nearest to the reference that keeps it clear for `FORESIGHT`, if all bodies keep their velocity.
    """
    angle = torch.arange(HEADINGS, device=env.device) * (2 * math.pi / HEADINGS)
    full = torch.stack((angle.cos(), angle.sin()), -1) / angle.cos().abs().maximum(angle.sin().abs())[:, None]
    fixed = torch.cat((torch.zeros(1, 2, device=env.device), full))

    def policy(tensordict: TensorDict) -> TensorDict:
        state = tensordict["state"]
        wanted = double_integrator.reference_action(state["position"], state["velocity"], state["goal"])
        if not avoids:
            return tensordict.set("action", wanted)
        choices = torch.cat((wanted.unsqueeze(-2), fixed.expand(*wanted.shape[:-1], -1, -1)), -2)
        worth = -(choices - wanted.unsqueeze(-2)).square().sum(-1) - TOUCHING * _overlap(state, choices)
        best = worth.argmax(-1).view(*wanted.shape[:-1], 1, 1).expand(*wanted.shape[:-1], 1, 2)
        return tensordict.set("action", choices.gather(-2, best).squeeze(-2))

    return policy


def _overlap(state: TensorDict, choices: Tensor) -> Tensor:
    """Return how far each choice `[B, A, S, 2]` gets an agent into other bodies, summed over them."""
    rest = torch.zeros_like(state["obstacle"])
    bodies = torch.cat((state["position"], state["obstacle"]), -2)
    drift = torch.cat((state["velocity"], state.get("obstacle_velocity", rest)), -2)
    position, velocity = double_integrator.move(
        state["position"].unsqueeze(-2), state["velocity"].unsqueeze(-2), choices
    )
    apart = position.unsqueeze(-2) - (bodies + double_integrator.TIME_STEP * drift)[:, None, None]
    closing = velocity.unsqueeze(-2) - drift[:, None, None]
    soonest = dynamics.time_of_closest_approach(apart, closing)
    nearest = dynamics.length(apart + soonest.clamp(0.0, FORESIGHT).unsqueeze(-1) * closing)
    counted = torch.cat((state["active"], state["obstacle_mask"]), -1)[:, None, None]
    alone = torch.eye(apart.shape[1], bodies.shape[-2], dtype=torch.bool, device=bodies.device)[:, None]
    depth = (dynamics.DIAMETER + MARGIN - nearest).clamp(min=0.0)
    return depth.masked_fill(~counted | alone, 0.0).sum(-1)


BASELINES: Mapping[str, Callable[[SwarmEnv], Policy]] = {
    "random": random_steering,
    "straight": straight,
    "cautious": cautious,
}
