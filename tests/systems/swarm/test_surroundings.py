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
from edgewise.graphs.proximity import Radius
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
    env = swarm(num_agents=2, num_obstacles=0, edge_features="approach", sensing_radius=0.5)
    state = single(placed(env, agents=[(0, 0), (0, 0.1 + dynamics.DIAMETER)], goals=[(1, 1), (1, 0)]))
    state["velocity"][0, 1, 1] = -dynamics.DIAMETER / (0.075 + 0.05625)  # in contact after two steps
    edges = env.graph.edges(TensorDict(env.observe(state)["graph"], [1]))
    towards = edges.attr[0, _slot(edges, source=1, target=0)]
    relative = [0.0, 0.2, 0.0, float(state["velocity"][0, 1, 1])]
    next_gap = 0.1 - dynamics.DIAMETER * 0.075 / (0.075 + 0.05625)
    near = (ONE_GAP_AWAY, math.exp(-next_gap / 0.1), CONTACT)  # now, after one step, after two
    expected = [part for each in near for part in (0.0, each, each)]
    np.testing.assert_allclose(towards[:-3], [*relative, *expected], atol=1e-5)
    assert towards[-1] == 1.0  # they would meet


@pytest.mark.parametrize(
    ("velocity", "nearest"),
    [
        ((-0.5, 0.0), (0.0, 0.2)),
        ((0.5, 0.0), (0.3, 0.2)),
        ((-0.1, 0.0), (0.2, 0.2)),
        ((0.0, 0.0), (0.3, 0.2)),
    ],
    ids=["passes", "leaves", "is nearest after the foresight", "rests"],
)
def test_the_closest_approach_lies_within_the_foresight(velocity, nearest):
    env = swarm(num_agents=2, num_obstacles=0, edge_features="approach", sensing_radius=0.5)
    state = single(placed(env, agents=[(0, 0), (0.3, 0.2)], goals=[(1, 1), (1, 0)]))
    state["velocity"][0, 1] = torch.tensor(velocity)
    edges = env.graph.edges(TensorDict(env.observe(state)["graph"], [1]))
    found = edges.attr[0, _slot(edges, source=1, target=0), -3:]
    distance = math.hypot(*nearest)
    near = math.exp((0.1 - distance) / 0.1)
    np.testing.assert_allclose(found, [*(near * part / distance for part in nearest), near], atol=1e-5)


def _slot(edges, *, source, target):
    return int(((edges.index[0, 0] == source) & (edges.index[0, 1] == target)).nonzero()[0])


def test_agents_with_no_radius_sense_nothing():
    env = swarm(num_envs=8, num_agents=10, world_size=0.5, sensing_radius=0.0)
    root = env.reset()
    assert not env.graph.edges(root["graph"]).mask.any()
    seeing = swarm(num_envs=8, num_agents=10, world_size=0.5, sensing_radius=0.5)
    assert seeing.graph.edges(seeing.reset()["graph"]).mask.any()


def _gaps(state):
    return dynamics.gaps(*(state[name] for name in ("position", "obstacle", "active", "obstacle_mask")))


def test_the_collision_cost_begins_at_the_margin_and_grows_with_the_overlap():
    """Against the gaps by hand: agents half a margin apart; of two near obstacles only the nearest counts."""
    env = swarm(num_agents=3, num_obstacles=3)
    state = placed(
        env,
        agents=[(0, 0), (0.125, 0), (1, 1)],
        goals=[(0, 0)] * 3,
        obstacles=[(0.125, 0.11), (0.125, -0.12), (1.0, 1.08)],
    )
    pairs = _gaps(state)
    touches = dynamics.touched(pairs)
    shares = dynamics.contact_share(pairs, touches, margin=0.05)
    np.testing.assert_allclose(shares, [[0.5, 0.5 + 0.8, 1.4]], atol=1e-12)
    assert dynamics.contact_share(pairs, touches, margin=0.0).tolist() == [[0, 0, 1]]


def test_without_obstacles_the_margin_concerns_agents_alone():
    env = swarm(num_agents=2, num_obstacles=0)
    pairs = _gaps(placed(env, agents=[(0, 0), (0.08, 0)], goals=[(0, 0)] * 2))
    shares = dynamics.contact_share(pairs, dynamics.touched(pairs), margin=0.05)
    np.testing.assert_allclose(shares, [[1.4, 1.4]], atol=1e-12)


def test_the_margin_is_part_of_the_reward_and_not_of_the_collisions():
    settings = {"num_agents": 2, "num_obstacles": 0, "reward": "individual", "collision_cost": 10.0}
    one, other = swarm(**settings), swarm(**settings, collision_margin=0.05)
    state = placed(one, agents=[(0, 0), (0.12, 0)], goals=[(1, 1), (1, 0)])
    still = torch.zeros(1, 2, dtype=torch.int64)
    plain, careful = one.advance(state, still), other.advance(state, still)
    np.testing.assert_allclose(plain.reward - careful.reward, [[6.0, 6.0]], atol=1e-4)
    assert not careful.state["touches"].any()


def test_a_stage_changes_the_cost_of_contacts():
    env = swarm(num_agents=2, num_obstacles=0, reward="individual", collision_cost=60.0)
    state = placed(env, agents=[(0, 0), (0, 0)], goals=[(1, 1), (1, 0)])  # no direction, no force
    full = env.advance(state, torch.zeros(1, 2, dtype=torch.int64)).reward
    env.apply_stage(collision_cost=10.0)
    cheap = env.advance(state, torch.zeros(1, 2, dtype=torch.int64)).reward
    np.testing.assert_allclose(cheap - full, torch.full_like(full, 50.0))


def test_a_goal_of_some_width_attracts_from_everywhere():
    env = swarm(num_agents=2, num_obstacles=0, reward="individual", goal_reward=2.0, goal_width=0.1)
    state = placed(env, agents=[(0, 0), (1, 0)], goals=[(0.02, 0), (0.5, 0)])
    found = env.advance(state, torch.zeros(1, 2, dtype=torch.int64)).reward
    np.testing.assert_allclose(found, [[2 * math.exp(-0.2) - 0.02, 2 * math.exp(-5.0) - 0.5]], atol=1e-6)


def test_a_body_at_rest_has_a_gradient():
    """Where the length of a velocity or of an offset is 0, its gradient is 0 and not NaN."""
    env = swarm(num_agents=2, num_obstacles=1, continuous=True, goal_width=0.1, collision_margin=0.05)
    state = placed(env, agents=[(0, 0), (0.12, 0)], goals=[(0, 0), (1, 0)], obstacles=[(0.5, 0)])
    action = torch.zeros(1, 2, 2, dtype=state["position"].dtype, requires_grad=True)
    env.advance(state, action).reward.sum().backward()
    assert action.grad.isfinite().all()
    assert action.grad.any()


@pytest.mark.parametrize("wrong", [{"world_size": 0.0}, {"world_size": (0.0, 1.0)}, {"obstacle_speed": -0.1}])
def test_settings_that_make_no_world_are_refused(wrong):
    with pytest.raises(ValidationError, match=next(iter(wrong))):
        SwarmConfig(**wrong)


@pytest.mark.parametrize("features", ["relative", "approach"])
def test_sensed_bodies_have_the_features_that_all_pairs_would_have(features):
    """Against the rule of all pairs, for worlds of several sizes and any batch shape, with gradients."""
    env = swarm(num_envs=6, num_agents=(2, 7), num_obstacles=(0, 4), edge_features=features, one_way=True)
    graph = env.rollout(3, env.rand_action)["graph"]
    rule = env.graph.edges
    everyone = Radius(rule.radius, features=rule.features, receivers=rule.receivers)
    for lead in (graph, graph.reshape(-1), graph[2, 1]):
        sensed, expected = rule(lead), everyone(lead)
        assert torch.equal(sensed.mask, expected.mask)
        assert 0 < sensed.mask.float().mean() < 1
        assert torch.equal(sensed.attr[sensed.mask], expected.attr[sensed.mask])
        assert not sensed.attr[~sensed.mask].any()
    found = []
    for each in (rule, everyone):
        place = graph["pos"].clone().requires_grad_()
        edges = each(graph.clone().set("pos", place))
        edges.attr[edges.mask].square().sum().backward()
        found.append(place.grad)
    torch.testing.assert_close(found[0], found[1])
