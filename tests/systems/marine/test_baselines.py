"""Experts drive as they should: alone they arrive, together they are better than not looking around."""

import pytest
import torch
from tests.systems.marine.worlds import marine

from edgewise.evaluation.evaluate import evaluate
from edgewise.evaluation.replays.files import check
from edgewise.systems.marine.baselines import BASELINES, nearest_choice, steer
from edgewise.systems.marine.render import replay


def rate(name, *, worlds=24, **fields):
    """Success, collisions and time of a baseline, means over worlds."""
    env = marine(num_envs=worlds, seed=5, max_steps=150, graph_edges=False, **fields)
    found = evaluate(env, BASELINES[name](env), episodes=worlds, seed=5, record=1)
    return {key: found.metrics[key].mean() for key in ("success", "collisions", "time")}, found


@pytest.mark.parametrize("actions", ["continuous", "discrete"])
@pytest.mark.parametrize("name", ["apf", "rvo"])
def test_alone_an_expert_always_arrives(name, actions):
    found, _ = rate(name, worlds=12, num_robots=1, actions=actions)
    assert found["success"] == 1.0
    assert found["time"] < 30


def test_velocity_obstacles_bring_teams_home():
    found, evaluation = rate("rvo", num_robots=3, end_at_first_collision=True)
    assert found["success"] >= 0.8
    for recording in evaluation.recordings:
        check(replay(recording))


def test_looking_around_is_worth_it():
    blind, _ = rate("rvo", num_robots=5, detection_range=1.0, end_at_first_collision=True)
    seeing, _ = rate("rvo", num_robots=5, end_at_first_collision=True)
    assert seeing["success"] > blind["success"] + 0.2


def test_the_law_settles_at_the_velocity_it_is_told():
    env = marine(num_robots=1, position_noise=0.0, normalise=False)
    root, wanted = env.reset(), torch.tensor([2.0, -1.0])
    for _ in range(40):
        heading = root["state", "heading"][..., None]
        cos, sin = heading.cos(), heading.sin()
        body = torch.cat((cos * wanted[0] + sin * wanted[1], cos * wanted[1] - sin * wanted[0]), -1)
        root["action"] = steer(root["state", "own"], body)
        root = env.step_mdp(env.step(root))
        if root["done"].any():
            root = env.reset()
    assert root["state", "over_ground"][0, 0, :2].tolist() == pytest.approx([2.0, -1.0], abs=0.15)


def test_discrete_actions_are_the_nearest():
    exact = torch.tensor([[0.0, 0.0], [-0.5, 1.0], [0.3, -0.9]])
    assert nearest_choice(exact).tolist() == [0, 9, 17]


def test_more_clearance_is_safer():
    close, _ = rate("rvo", num_robots=5, end_at_first_collision=True)
    wide, _ = rate("wide_rvo", num_robots=5, end_at_first_collision=True)
    assert wide["collisions"] < close["collisions"]
    assert wide["success"] > close["success"]
