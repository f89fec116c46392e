"""Moving obstacles, squares of sampled sizes, and what agents sense of the bodies near them."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError
from tensordict import TensorDict
from tests.systems.swarm.worlds import placed, single, swarm

from edgewise.evaluation.replays.files import check
from edgewise.systems.swarm import dynamics
from edgewise.systems.swarm.config import SwarmConfig
from edgewise.systems.swarm.render import replay

CONTACT, ONE_GAP_AWAY = 1.0, math.exp(-1.0)


@given(st.floats(-1, 1), st.floats(-2, 2), st.integers(1, 30))
def test_an_obstacle_goes_to_and_fro_between_the_sides(start, speed, steps):
    """Against the same obstacle one axis at a time, in plain numbers."""
    place, velocity = start, speed
    tensors = torch.tensor([[[start, 0.3]]]).double(), torch.tensor([[[speed, 0.0]]]).double()
    for _ in range(steps):
        place += 0.1 * velocity
        if abs(place) > 1:
            place, velocity = math.copysign(1, place), -math.copysign(velocity, place)
        tensors = dynamics.move_obstacles(*tensors, half_side=torch.ones(1).double(), step=0.1)
    np.testing.assert_allclose(tensors[0][0, 0], [place, 0.3], atol=1e-6)
    assert torch.equal(tensors[0][0, 0, 1], torch.tensor(0.3).double())


def test_moving_obstacles_keep_their_speed_and_are_seen_with_it():
    env = swarm(num_envs=4, num_agents=2, num_obstacles=3, obstacle_speed=(0.2, 0.6))
    batch = env.rollout(20, env.rand_action)
    speed = dynamics.length(batch["state", "obstacle_velocity"])
    assert torch.allclose(speed, speed[:, :1].expand_as(speed))
    assert speed.min() >= 0.2
    assert speed.max() <= 0.6
    assert torch.equal(batch["graph", "x"][..., 2:, :2], batch["state", "obstacle_velocity"])
    obstacles = batch["state", "obstacle"]
    inside = obstacles.abs().amax(-1) < 1
    travelled = dynamics.length(obstacles[:, 1:] - obstacles[:, :-1])
    assert torch.allclose(travelled[inside[:, 1:]], 0.1 * speed[:, 1:][inside[:, 1:]], atol=1e-6)


def test_a_replay_shows_moving_obstacles():
    env = swarm(num_agents=2, num_obstacles=2, obstacle_speed=0.5)
    states = env.rollout(5, env.rand_action)["state"][0]
    shown = replay(states)
    check(shown)
    assert shown["frames"][0]["obstacles"]["x"] != shown["frames"][4]["obstacles"]["x"]


def test_the_side_of_a_square_is_sampled():
    reach = swarm(num_envs=500, world_size=(0.8, 2.0)).reset()["state", "position"].abs().amax((-1, -2))
    assert reach.max() <= 1.0
    assert reach.max() > 0.9
    assert reach.min() < 0.4
    narrow = swarm(num_envs=500, world_size=0.8).reset()["state", "position"]
    assert narrow.abs().max() <= 0.4


def test_nearness_is_one_at_contact_and_falls_with_the_gap():
    env = swarm(num_agents=2, num_obstacles=0, edge_features="nearness", sensing_radius=0.5)
    state = single(placed(env, agents=[(0, 0), (0, 0.1 + dynamics.DIAMETER)], goals=[(1, 1), (1, 0)]))
    state["velocity"][0, 1, 1] = -dynamics.DIAMETER / (0.075 + 0.05625)  # in contact after two steps
    edges = env.graph.edges(TensorDict(env.observe(state)["graph"], [1]))
    towards = edges.attr[0, _slot(edges, source=1, target=0)]
    relative = [0.0, 0.2, 0.0, float(state["velocity"][0, 1, 1])]
    np.testing.assert_allclose(towards, [*relative, 0.0, ONE_GAP_AWAY, 0.0, CONTACT], atol=1e-5)


def _slot(edges, *, source, target):
    return int(((edges.index[0, 0] == source) & (edges.index[0, 1] == target)).nonzero()[0])


def test_agents_with_no_radius_sense_nothing():
    env = swarm(num_envs=8, num_agents=10, world_size=0.5, sensing_radius=0.0)
    root = env.reset()
    assert not env.graph.edges(root["graph"]).mask.any()
    seeing = swarm(num_envs=8, num_agents=10, world_size=0.5, sensing_radius=0.5)
    assert seeing.graph.edges(seeing.reset()["graph"]).mask.any()


@pytest.mark.parametrize("wrong", [{"world_size": 0.0}, {"world_size": (0.0, 1.0)}, {"obstacle_speed": -0.1}])
def test_settings_that_make_no_world_are_refused(wrong):
    with pytest.raises(ValidationError, match=next(iter(wrong))):
        SwarmConfig(**wrong)
