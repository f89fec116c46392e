"""Baselines that plan: the returns of all plans are those of each plan by itself."""

from itertools import product

import torch

from edgewise.envs.registry import make_env
from edgewise.systems.swarm import baselines, dynamics


def test_plans_that_share_their_first_steps_have_the_returns_of_each_by_itself():
    env = make_env("swarm", num_envs=4, seed=0, num_agents=3)
    state = env.reset()["state"]
    thrusts = dynamics.SENSITIVITY * torch.tensor(dynamics.DIRECTIONS)
    found = baselines._plan_returns(state, thrusts, env, caution=0.0)
    plans = list(product(range(len(thrusts)), repeat=baselines.HORIZON))
    assert found.shape == (4, 3, len(plans))
    for number, plan in list(enumerate(plans))[::7]:
        position, velocity, worth = state["position"], state["velocity"], 0.0
        for step, choice in enumerate(plan):
            force = thrusts[choice] + (state["contact"] if step == 0 else 0.0)
            position, velocity = dynamics.move(position, velocity, force)
            left = dynamics.length(state["goal"] - position)
            worth = worth + torch.where(left < env.config.goal_threshold, env.config.goal_reward, -left)
        coasting = state["goal"] - position - baselines.COASTING_DISTANCE * velocity
        worth = worth - 2 * baselines.HORIZON * dynamics.length(coasting)
        torch.testing.assert_close(found[..., number], worth)


def test_the_first_thrust_of_the_best_plan_is_taken():
    env = make_env("swarm", num_envs=16, seed=0, num_agents=3)
    root = env.reset()
    thrusts = dynamics.SENSITIVITY * torch.tensor(dynamics.DIRECTIONS)
    worth = baselines._plan_returns(root["state"], thrusts, env, caution=0.0)
    plans = torch.tensor(list(product(range(len(thrusts)), repeat=baselines.HORIZON)))
    action = baselines.BASELINES["straight"](env)(root)["action"]
    assert torch.equal(action, plans[worth.argmax(-1), 0])
