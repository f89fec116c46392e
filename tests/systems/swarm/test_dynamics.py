"""The swarm's physics against closed forms and its laws: damping, speed limit, contacts, symmetry."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from tests.systems.swarm.worlds import follow, placed, swarm

from edgewise.systems.swarm import dynamics

FAR = [[50.0, 50.0]]
PLACE = st.floats(-1, 1, width=32)


@pytest.mark.parametrize(
    ("action", "direction"), [(0, (0, 0)), (1, (1, 0)), (2, (-1, 0)), (3, (0, 1)), (4, (0, -1))]
)
def test_thrust_follows_the_closed_form_to_the_terminal_speed(action, direction):
    env = swarm(num_agents=1, num_obstacles=0)
    state = placed(env, [[0.0, 0.0]], FAR)
    terminal = dynamics.SENSITIVITY * dynamics.TIME_STEP / dynamics.DAMPING
    assert terminal == dynamics.MAX_SPEED
    for step, (after, _) in enumerate(follow(env, state, [[action]] * 40), 1):
        speed = terminal * (1 - 0.75**step)
        way = 0.1 * terminal * (step - 3 * (1 - 0.75**step))
        assert after["velocity"][0, 0] == pytest.approx([speed * d for d in direction], abs=1e-12)
        assert after["position"][0, 0] == pytest.approx([way * d for d in direction], abs=1e-12)


def test_without_thrust_an_agent_coasts_a_tenth_over_a_quarter_of_its_speed():
    position, velocity = torch.zeros(1, 2), torch.tensor([[1.2, -0.4]])
    for _ in range(200):
        position, velocity = dynamics.move(position, velocity, torch.zeros(1, 2))
    assert position[0] == pytest.approx([1.2 * 0.3, -0.4 * 0.3], abs=1e-6)


@given(st.tuples(*[st.floats(-200, 200, width=32)] * 4))
def test_nobody_is_faster_than_the_limit_and_direction_stays(numbers):
    velocity, force = torch.tensor(numbers, dtype=torch.float64).view(2, 1, 2).unbind(0)
    _, moved = dynamics.move(torch.zeros(1, 2, dtype=torch.float64), velocity, force)
    free = 0.75 * velocity + 0.1 * force
    assert dynamics.length(moved)[0] == pytest.approx(min(2.0, float(dynamics.length(free)[0])), rel=1e-12)
    cross = moved[0, 0] * free[0, 1] - moved[0, 1] * free[0, 0]
    assert abs(float(cross)) < 1e-9


@pytest.mark.parametrize("distance", [0.02, 0.095, 0.0999, 0.1, 0.1001, 0.105, 0.2])
def test_contact_is_the_soft_force_of_the_reference(distance):
    env = swarm(num_agents=2, num_obstacles=0)
    state = placed(env, [[0.0, 0.0], [distance, 0.0]], FAR * 2)
    depth = (0.1 - distance) / 1e-3
    softplus = depth + math.log1p(math.exp(-depth)) if depth > 0 else math.log1p(math.exp(depth))
    expected = 100 * 1e-3 * softplus
    assert state["contact"][0, 0] == pytest.approx([-expected, 0.0], rel=1e-9, abs=1e-12)
    assert state["contact"][0, 1] == pytest.approx([expected, 0.0], rel=1e-9, abs=1e-12)


@given(st.lists(st.tuples(PLACE, PLACE), min_size=2, max_size=6, unique=True))
def test_agents_push_each_other_equally_and_oppositely(places):
    env = swarm(num_agents=len(places), num_obstacles=0)
    state = placed(env, [list(place) for place in places], FAR * len(places))
    largest = float(state["contact"].abs().max())
    assert float(state["contact"].sum(1).abs().max()) <= 1e-9 * max(1.0, largest)


def test_obstacles_push_and_do_not_move():
    env = swarm(num_agents=1, num_obstacles=1)
    state = placed(env, [[0.0, 0.0]], FAR, [[0.08, 0.0]])
    passed = follow(env, state, [[0]] * 10)
    assert all(torch.equal(after["obstacle"], state["obstacle"]) for after, _ in passed)
    assert float(passed[-1][0]["position"][0, 0, 0]) < -0.02
    assert float(passed[-1][0]["position"][0, 0, 1]) == 0.0


def test_bodies_in_one_place_give_no_nan():
    env = swarm(num_agents=3, num_obstacles=2, continuous=True)
    state = placed(env, [[0.0, 0.0]] * 3, [[0.0, 0.0]] * 3, [[0.0, 0.0]] * 2)
    for after, reward in follow(env, state, [[[0.0, 0.0]] * 3] * 3):
        assert after["position"].isfinite().all()
        assert after["velocity"].isfinite().all()
        assert after["contact"].isfinite().all()
        assert reward.isfinite().all()


def test_discrete_thrust_is_continuous_thrust_along_the_axes():
    discrete = swarm(num_envs=32, num_agents=4, seed=1)
    continuous = swarm(num_envs=32, num_agents=4, seed=1, continuous=True)
    state = discrete.reset()["state"]
    action = torch.randint(5, (32, 4), generator=torch.Generator().manual_seed(0))
    ours = discrete.advance(state, action)
    theirs = continuous.advance(state, torch.tensor(dynamics.DIRECTIONS)[action])
    for name in ("position", "velocity", "contact"):
        assert torch.equal(ours.state[name], theirs.state[name])
    assert torch.equal(ours.reward, theirs.reward)


@given(st.permutations(range(5)), st.integers(0, 2**32))
def test_agents_in_another_order_live_the_same_lives(order, seed):
    env = swarm(num_envs=4, num_agents=5, seed=seed, world_size=0.8, reward="individual")
    state = env.reset()["state"]
    shuffled = state.clone()
    for name in ("position", "velocity", "goal", "active", "contact", "arrival"):
        shuffled[name] = state[name][:, order]
    action = torch.randint(5, (4, 5), generator=torch.Generator().manual_seed(seed))
    ours, theirs = env.advance(state, action), env.advance(shuffled, action[:, order])
    assert torch.allclose(ours.reward[:, order], theirs.reward, atol=1e-5)
    assert torch.allclose(ours.state["position"][:, order], theirs.state["position"], atol=1e-5)
    assert torch.allclose(ours.state["touches"], theirs.state["touches"])


def test_absent_agents_and_obstacles_neither_push_nor_score():
    env = swarm(num_envs=64, num_agents=(1, 3), num_obstacles=(0, 2), max_agents=6, max_obstacles=5, seed=2)
    state = env.reset()["state"]
    crowd = state.clone()
    crowd["position"] = torch.where(state["active"].unsqueeze(-1), state["position"], 0.0)
    crowd["goal"] = torch.where(state["active"].unsqueeze(-1), state["goal"], 0.0)
    crowd["obstacle"] = torch.where(state["obstacle_mask"].unsqueeze(-1), state["obstacle"], 0.0)
    action = torch.randint(5, (64, 6), generator=torch.Generator().manual_seed(0))
    ours, theirs = env.advance(state, action), env.advance(crowd, action)
    present = state["active"]
    assert torch.equal(ours.state["position"][present], theirs.state["position"][present])
    assert torch.equal(ours.state["contact"][present], theirs.state["contact"][present])
    assert torch.equal(ours.reward[present], theirs.reward[present])
    assert torch.equal(ours.state["earned"], theirs.state["earned"])
    assert torch.equal(ours.state["touches"], theirs.state["touches"])
