"""Where swarms begin: clearances by brute force, crowding reported, squares that grow with the team."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.systems.swarm.worlds import swarm

from edgewise.config.errors import ConfigError


def distances(one, other):
    return torch.cdist(one.double(), other.double())


def too_close(state, name):
    """How many existing bodies called `name` stand too near to an obstacle or to one placed before them."""
    count = 0
    for world in range(len(state)):
        bodies = state[name][world][state["active"][world]]
        obstacles = state["obstacle"][world][state["obstacle_mask"][world]]
        for index, body in enumerate(bodies):
            before = torch.cat((obstacles, bodies[:index]))
            count += int(len(before) and bool((distances(body[None], before) < 0.1).any()))
    return count


@settings(max_examples=40)
@given(st.integers(0, 2**32))
def test_everything_is_born_in_the_square_clear_of_its_like(seed):
    state = swarm(num_envs=8, seed=seed, num_agents=(1, 7), num_obstacles=(0, 10)).reset()["state"]
    assert state["position"].abs().max() <= 1.0
    assert state["goal"].abs().max() <= 0.8
    assert state["obstacle"].abs().max() <= 0.8
    assert (state["velocity"] == 0).all()
    assert too_close(state, "position") + too_close(state, "goal") == int(state["crowded"].sum())
    assert int(state["crowded"].sum()) == 0


def test_where_there_is_no_room_the_count_says_so():
    state = swarm(num_envs=16, num_agents=30, num_obstacles=5, world_size=0.4).reset()["state"]
    crowded = too_close(state, "position") + too_close(state, "goal")
    assert crowded > 16
    assert crowded == int(state["crowded"].sum())


def test_every_number_in_a_range_comes_up_and_masks_count_them():
    state = swarm(num_envs=2000, num_agents=(3, 6), num_obstacles=(0, 4)).reset()["state"]
    agents, obstacles = state["active"].sum(-1), state["obstacle_mask"].sum(-1)
    assert torch.bincount(agents, minlength=7)[3:].min() > 2000 / 4 * 0.8
    assert torch.bincount(agents)[:3].sum() == 0
    assert torch.bincount(obstacles).min() > 2000 / 5 * 0.8


@pytest.mark.parametrize("num_agents", [3, 12, 48])
def test_with_constant_density_the_square_grows_with_the_team(num_agents):
    fields = {"num_agents": num_agents, "constant_density": True, "num_obstacles": 0}
    state = swarm(num_envs=200, **fields).reset()["state"]
    half = (num_agents / 3) ** 0.5
    assert state["position"].abs().max() == pytest.approx(half, rel=0.05)
    assert state["goal"].abs().max() == pytest.approx(0.8 * half, rel=0.05)


def test_teams_change_from_stage_to_stage_within_the_room_there_is():
    env = swarm(num_envs=32, num_agents=3, max_agents=8)
    env.apply_stage(num_agents=[7, 8])
    assert env.reset()["state", "active"].sum(-1).min() >= 7
    with pytest.raises(ConfigError, match="max_agents 8"):
        env.apply_stage(num_agents=9)


@pytest.mark.parametrize(
    ("fields", "complaint"),
    [
        ({"num_agents": 0}, "at least 1 agent"),
        ({"num_obstacles": (-1, 3)}, "negative"),
        ({"num_agents": (3, 9), "max_agents": 5}, "max_agents 5"),
        ({"num_obstacles": 4, "max_obstacles": 2}, "max_obstacles 2"),
    ],
)
def test_what_cannot_be_is_refused(fields, complaint):
    with pytest.raises(ValueError, match=complaint):
        swarm(**fields)
