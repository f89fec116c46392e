"""Continuous thrust: braking distances by hand, plans against a loop, and what keeping clear is worth."""

import pytest
import torch

from edgewise.envs.registry import make_env
from edgewise.evaluation.evaluate import evaluate
from edgewise.systems.swarm import dynamics, thrust
from edgewise.systems.swarm.baselines import BASELINES


def way_to_rest(speed):
    """The way of an agent that has this speed after a step and then brakes as hard as it can."""
    way = 0.0
    while speed > 1e-12:
        way += dynamics.TIME_STEP * speed
        speed = max(0.0, (1 - dynamics.DAMPING) * speed - dynamics.TIME_STEP * dynamics.SENSITIVITY)
    return way


@pytest.mark.parametrize("distance", [0.0, 0.01, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.32])
def test_the_speed_is_the_largest_that_can_still_brake(distance):
    speed = float(thrust._speed_for(torch.tensor([distance], dtype=torch.float64)))
    assert way_to_rest(speed) == pytest.approx(distance, abs=1e-9)
    assert float(thrust._speed_for(torch.tensor([5.0]))) == dynamics.MAX_SPEED


def test_an_agent_alone_arrives_soonest_and_stays():
    """Along one axis: full thrust, full speed, then braking without overshooting the goal."""
    position, velocity = torch.zeros(1, 2), torch.zeros(1, 2)
    goal = torch.tensor([[1.5, 0.0]])
    places = []
    for _ in range(25):
        push = thrust.drive(position, velocity, goal)
        assert push.abs().max() <= 1.0
        position, velocity = dynamics.move(position, velocity, dynamics.SENSITIVITY * push)
        places.append(float(position[0, 0]))
    assert max(places) <= 1.5 + 1e-5
    assert places[-1] == pytest.approx(1.5, abs=1e-4)
    arrived = next(step for step, place in enumerate(places, 1) if place > 1.45)
    # Speeds by full thrust alone are .5, .875, 1.16, ..., at most 2: nobody is there before step 11.
    reached, speed, fastest = 0.0, 0.0, 0
    while reached <= 1.45:
        speed = min(2.0, 0.75 * speed + 0.5)
        reached, fastest = reached + 0.1 * speed, fastest + 1
    assert fastest <= arrived <= fastest + 1


def test_a_plan_keeps_clear_of_what_is_in_the_way():
    env = make_env("swarm", num_envs=1, seed=0, num_agents=1, num_obstacles=1, continuous=True)
    root = env.reset()
    for name, place in (("position", [[0.0, 0.0]]), ("goal", [[0.9, 0.0]]), ("obstacle", [[0.45, 0.01]])):
        root["state", name][:] = torch.tensor(place)
    touched = {}
    for name in ("straight", "cautious"):
        state, count = root.clone(), 0
        for _ in range(15):
            state = env.step(BASELINES[name](env)(state))["next"].clone()
            gap = dynamics.length(state["state", "position"] - state["state", "obstacle"])
            count += int((gap < dynamics.DIAMETER).sum())
        touched[name] = count
        assert dynamics.length(state["state", "position"] - state["state", "goal"]).item() < 0.05
    assert touched["straight"] > 0 == touched["cautious"]


def test_every_plan_is_worth_what_a_loop_finds(monkeypatch):
    """Without others, the plan taken has the highest sum of rewards less the distance at its end."""
    env = make_env("swarm", num_envs=6, seed=1, num_agents=1, num_obstacles=0, continuous=True)
    state = env.reset()["state"]
    found = thrust.plan(state, goal_reward=5.0, goal_threshold=0.05, collision_cost=5.0)
    thrusts = thrust._thrusts(state["position"], state["velocity"], state["goal"])
    assert thrusts.shape[-2] * len(thrust.HOLDS) == 147
    for world in range(6):
        best = None
        for choice in thrusts[world, 0]:
            for hold in thrust.HOLDS:
                place, speed, goal = (state[name][world] for name in ("position", "velocity", "goal"))
                worth = 0.0
                for step in range(len(thrust.UNSURE)):
                    push = choice[None] if step < hold else thrust.drive(place, speed, goal)
                    place, speed = dynamics.move(place, speed, dynamics.SENSITIVITY * push)
                    left = float(dynamics.length(goal - place))
                    worth += 5.0 if left < 0.05 else -left
                worth -= thrust.PER_DISTANCE * left
                best = max(best, (worth, choice)) if best and best[0] != worth else best or (worth, choice)
        assert torch.allclose(found[world, 0], best[1], atol=1e-6)


def test_keeping_clear_earns_more_and_touches_less():
    env = make_env("swarm", num_envs=64, seed=0, num_agents=7, num_obstacles=5, continuous=True)
    found = {
        name: evaluate(env, BASELINES[name](env), episodes=64, seed=11).metrics
        for name in ("straight", "cautious")
    }
    assert found["cautious"]["reward"].mean() > found["straight"]["reward"].mean() > 75
    assert found["cautious"]["collisions"].mean() < 0.4 * found["straight"]["collisions"].mean()
    assert found["cautious"]["success"].mean() > 0.95
