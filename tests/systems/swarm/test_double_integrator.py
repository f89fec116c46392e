"""The double integrator against a plain simulation, its regulator against value iteration, its rates."""

import numpy as np
import pytest
import torch
from pydantic import ValidationError
from tests.systems.swarm.worlds import placed, single, swarm

from edgewise.evaluation.evaluate import evaluate
from edgewise.systems.swarm import double_integrator
from edgewise.systems.swarm.baselines import cautious, straight
from edgewise.systems.swarm.config import SwarmConfig

FREE = {"dynamics": "double_integrator", "continuous": True, "reward": "individual", "num_obstacles": 0}


def free_swarm(**fields):
    return swarm(**{**FREE, "goal_threshold": 0.1, "world_size": 4.0, "max_steps": 256, **fields})


def test_a_step_accelerates_by_force_over_mass_and_moves_by_the_velocity_before():
    env = free_swarm(num_agents=1)
    state = placed(env, agents=[(0.0, 0.0)], goals=[(1.0, 1.0)])
    position, velocity = np.zeros(2), np.zeros(2)
    for action in ([1.0, -0.5], [1.0, 0.25], [-1.0, 1.0], [0.1, 0.0]):
        moved = env.advance(state, torch.tensor([[action]], dtype=torch.float64)).state
        position = position + 0.03 * velocity
        velocity = np.clip(velocity + 0.03 * np.array(action) / 0.1, -0.5, 0.5)
        np.testing.assert_allclose(moved["position"][0, 0], position, atol=1e-12)
        np.testing.assert_allclose(moved["velocity"][0, 0], velocity, atol=1e-12)
        state = state.update(moved)


def test_bodies_pass_through_each_other_and_touching_counts():
    env = free_swarm(num_agents=2)
    state = placed(env, agents=[(0.0, 0.0), (0.06, 0.0)], goals=[(1.0, 0.0), (1.0, 1.0)])
    moved = env.advance(state, torch.zeros(1, 2, 2, dtype=torch.float64)).state
    assert torch.equal(moved["position"], state["position"])
    assert moved["touched"].all()
    assert float(moved["touches"]) == 1.0


def test_the_regulator_minimises_its_quadratic_cost():
    """Gains by iterating the Riccati recursion for one axis."""
    step, force = np.array([[1, 0.03], [0, 1]]), np.array([[0], [0.3]])
    cost = np.zeros((2, 2))
    for _ in range(5000):
        gain = np.linalg.solve(force.T @ cost @ force + 1.0, force.T @ cost @ step)
        cost = 5 * np.eye(2) + step.T @ cost @ (step - force @ gain)
    np.testing.assert_allclose(double_integrator.gains(), gain[0], rtol=1e-6)


def test_agents_and_goals_start_two_diameters_apart():
    state = free_swarm(num_envs=32, num_agents=8).reset()["state"]
    for name in ("position", "goal"):
        apart = torch.cdist(state[name], state[name]) + 9 * torch.eye(8)
        assert apart.min() >= 0.2
    assert state["goal"].abs().max() > 1.7  # in the whole square


def test_safe_and_finish_are_rates_of_agents():
    """Two agents whose straight ways cross, and one alone."""
    env = free_swarm(num_agents=3)
    agents, goals = [(-0.4, 0.0), (0.4, 0.01), (1.5, 1.5)], [(0.4, 0.0), (-0.4, 0.01), (1.5, -1.9)]
    state = env.reset()["state"].update(single(placed(env, agents=agents, goals=goals)))
    rates = {}
    for name, baseline in (("straight", straight), ("cautious", cautious)):
        metrics = evaluate(env, baseline(env), episodes=1, seed=0, start=state, max_steps=120).metrics
        rates[name] = {key: round(float(metrics[key][0]), 3) for key in ("safe", "finish", "safe_finish")}
    assert rates["straight"] == {"safe": 0.333, "finish": 0.667, "safe_finish": 0.0}
    assert rates["cautious"] == {"safe": 1.0, "finish": 0.667, "safe_finish": 0.667}


@pytest.mark.parametrize("wrong", [{"continuous": False}, {"walls": True}])
def test_what_it_needs_is_said(wrong):
    with pytest.raises(ValidationError, match="double_integrator needs"):
        SwarmConfig(**{**FREE, **wrong})
