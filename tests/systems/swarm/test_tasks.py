"""Tasks without owned goals: the matching against scipy's, where a team should stand, and when it does."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import linear_sum_assignment
from tensordict import TensorDict
from tests.systems.swarm.worlds import swarm

from edgewise.envs.contract import check_graph_env
from edgewise.evaluation.replays.files import check
from edgewise.systems.swarm import dynamics, tasks
from edgewise.systems.swarm.baselines import BASELINES
from edgewise.systems.swarm.matching import min_cost_matching
from edgewise.systems.swarm.render import replay

TASKS = ("coverage", "formation", "line")


@given(st.integers(1, 8), st.integers(0, 10**6), st.booleans())
def test_the_matching_is_as_cheap_as_scipy_s(size, seed, ties):
    cost = torch.rand(5, size, size, generator=torch.Generator().manual_seed(seed)).double()
    cost = (cost * 3).round() if ties else cost
    found = min_cost_matching(cost)
    assert torch.equal(found.sort(-1).values, torch.arange(size).expand(5, size))
    for world in range(5):
        rows, columns = linear_sum_assignment(cost[world].numpy())
        ours = cost[world].gather(1, found[world].unsqueeze(1)).sum()
        assert float(ours) == pytest.approx(float(cost[world][rows, columns].sum()), abs=1e-9)


def test_ties_that_rounding_breaks_leave_no_row_out():
    """Multiples of 0.1 tie but for their last bits, by which a path could return to a column it has seen."""
    cost = (torch.rand(200, 6, 6, generator=torch.Generator().manual_seed(0)) * 7).round() * 0.1
    found = min_cost_matching(cost)
    ours = cost.gather(2, found.unsqueeze(-1)).squeeze(-1).sum(-1)
    best = [matrix[linear_sum_assignment(matrix)].sum() for matrix in cost.numpy()]
    assert torch.equal(found.sort(-1).values, torch.arange(6).expand(200, 6))
    assert ours.tolist() == pytest.approx(best, abs=1e-5)


@pytest.mark.parametrize("agents", [1, 3, 6])
def test_absent_agents_take_no_place(agents):
    torch.manual_seed(agents)
    position, place = torch.rand(16, 6, 2), torch.rand(16, 6, 2)
    active = (torch.arange(6) < agents).expand(16, 6)
    roomy = tasks.assigned_places(position, place, active)[:, :agents]
    exact = tasks.assigned_places(position[:, :agents], place[:, :agents], active[:, :agents])
    way = lambda goal: (goal - position[:, :agents]).norm(dim=-1).sum(-1)  # noqa: E731
    assert torch.allclose(way(roomy), way(exact), atol=1e-6)


def test_a_formation_is_a_regular_polygon_that_turns_with_its_first_agent():
    position = torch.tensor([[[1.0, 1.0], [-3.0, 0.1], [0.2, -2.0], [9.0, 9.0]]])
    active = torch.tensor([[True, True, True, False]])
    centre = torch.tensor([[[0.2, 0.1]]])
    place = tasks.places("formation", position, centre, active)[0, :3]
    assert torch.allclose((place - centre[0]).norm(dim=-1), torch.full((3,), 0.5))
    sides = (place - place.roll(1, 0)).norm(dim=-1)
    assert torch.allclose(sides, torch.full((3,), 0.5 * math.sqrt(3)), atol=1e-6)
    first = math.atan2(0.9, 0.8)
    assert torch.allclose(place[0] - centre[0, 0], 0.5 * torch.tensor([math.cos(first), math.sin(first)]))


def test_large_teams_have_room_on_their_circle():
    position, active = torch.randn(1, 60, 2), torch.ones(1, 60, dtype=torch.bool)
    place = tasks.places("formation", position, torch.zeros(1, 1, 2), active)[0]
    assert (place - place.roll(1, 0)).norm(dim=-1).min() > 0.99 * tasks.SPACING > dynamics.DIAMETER


def test_a_line_is_even_and_ends_at_its_landmarks():
    ends = torch.tensor([[[0.0, 0.0], [0.9, 0.3]]])
    active = torch.ones(1, 4, dtype=torch.bool)
    place = tasks.places("line", torch.zeros(1, 4, 2), ends, active)[0]
    assert torch.allclose(place[[0, -1]], ends[0])
    assert torch.allclose(place.diff(dim=0), torch.tensor([0.3, 0.1]).expand(3, 2))


@pytest.mark.parametrize("task", TASKS)
@pytest.mark.parametrize("agents", [1, 7, 30])
def test_places_are_clear_of_each_other_and_of_obstacles(task, agents):
    env = swarm(num_envs=64, task=task, num_agents=agents, num_obstacles=2, seed=3)
    state = env.reset()["state"]
    place = tasks.places(task, state["position"], state["landmark"], state["active"])
    clear = torch.cdist(place, state["obstacle"]).amin((-1, -2)) >= dynamics.DIAMETER - 1e-5
    assert (clear | (state["crowded"] > 0)).all()
    assert clear.float().mean() > 0.9
    apart = torch.cdist(place, place) + 9 * torch.eye(agents)
    assert (apart.amin((-1, -2)) >= dynamics.DIAMETER - 1e-5).float().mean() > 0.9


@pytest.mark.parametrize("task", TASKS)
def test_a_team_has_arrived_when_all_are_there_at_once(task):
    env = swarm(num_envs=4, task=task, num_agents=3, num_obstacles=0, collision_cost=0.0)
    state = env.reset()["state"]
    place = tasks.places(task, state["position"], state["landmark"], state["active"])
    still = torch.zeros(4, 3, dtype=torch.int64)

    def after(position):
        begun = env.initial_state({**state, "position": position})
        moved = env.advance(TensorDict({**state, **begun}, [4]), still)
        return TensorDict({**state, **moved.state, "step": state["step"] + 1}, [4]), moved.reward

    for order in ([0, 1, 2], [2, 0, 1]):
        there, paid = after(place[:, order])
        assert (env.observe(there)["metrics"]["success"] == 1).all()
        assert (paid == 3 * env.config.goal_reward).all()
    astray = place.clone()
    astray[:, 0] += 0.5 * (place[:, 0] - place[:, 1])
    two_of_three, paid = after(astray)
    assert (env.observe(two_of_three)["metrics"]["success"] == 0).all()
    assert (paid < 3 * env.config.goal_reward).all()


@pytest.mark.parametrize("task", TASKS)
def test_agents_see_landmarks_and_not_who_takes_which(task):
    env = swarm(num_envs=8, task=task, num_agents=(2, 4), num_obstacles=1)
    root = env.reset()
    landmarks = {"coverage": 4, "formation": 1, "line": 2}[task]
    assert env.graph.num_nodes == 4 + landmarks + 1
    shown = root["graph", "pos"][:, 4 : 4 + landmarks]
    assert torch.equal(shown, root["state", "landmark"])
    exists = root["graph", "node_mask"][:, 4 : 4 + landmarks]
    way = root["state", "landmark"].unsqueeze(1) - root["state", "position"].unsqueeze(2)
    nearest = way.norm(dim=-1).masked_fill(~exists.unsqueeze(1), torch.inf).amin(-1)
    seen = root["graph", "x"][:, :4, 2:].norm(dim=-1)
    assert torch.allclose(seen, nearest, atol=1e-6)


@pytest.mark.parametrize("fields", [*({"task": task} for task in TASKS), {"walls": True}, {"ego_view": True}])
def test_the_contract_is_kept(fields):
    check_graph_env(swarm(num_agents=(1, 3), num_obstacles=(0, 2), max_steps=6, **fields))


@pytest.mark.parametrize("task", TASKS)
def test_it_is_drawn_and_steered_by_hand(task):
    env = swarm(num_envs=32, task=task, num_agents=3, num_obstacles=1)
    played = env.rollout(25, BASELINES["cautious"](env))
    distance = played["next", "metrics", "distance"]
    assert distance[:, -1].mean() < 0.5 * distance[:, 0].mean()
    check(replay(played["state"][0]))


def test_walls_push_by_the_law_of_contacts_and_nobody_gets_through():
    half = torch.tensor([1.0], dtype=torch.float64)
    place = torch.tensor([[[1.02, 0.0], [0.0, -1.05], [0.5, 0.5], [1.3, 1.3]]], dtype=torch.float64)
    force = dynamics.wall_force(place, half)[0]
    assert force[0].tolist() == pytest.approx([-2.0, 0.0], abs=1e-6)
    assert force[1].tolist() == pytest.approx([0.0, 5.0], abs=1e-6)
    assert force[2].abs().max() < 1e-12
    assert force[3].tolist() == pytest.approx([-30.0, -30.0], abs=1e-6)
    outside = {}
    for walls in (True, False):
        env = swarm(num_envs=16, num_agents=4, num_obstacles=0, walls=walls, max_steps=100)
        state = env.reset()["state"]
        far = []
        for _ in range(60):
            state.update(env.advance(state, torch.ones(16, 4, dtype=torch.int64)).state)
            far.append(float((state["position"].abs() - 1).max()))
        outside[walls] = max(far)
    assert outside[True] < 0.25
    assert outside[False] > 5


def test_both_ends_of_a_line_are_there_for_a_team_of_one_with_room_for_two():
    root = swarm(num_envs=8, task="line", num_agents=(1, 2), num_obstacles=0).reset()
    assert not root["agents", "active"].all()
    assert root["graph", "node_mask"][:, 2:].all()


@pytest.mark.parametrize("task", TASKS)
def test_rewards_have_the_gradient_of_their_assigned_places(task):
    """Against finite differences: the assignment is constant nearby, but a formation turns with its first
    agent, so that agent's action also moves the places of the others."""
    env = swarm(num_envs=32, task=task, num_obstacles=0, continuous=True, goal_width=0.2, reward="individual")
    state = env.reset()["state"]
    state = state.apply(lambda entry: entry.double() if entry.is_floating_point() else entry)
    action = torch.zeros(32, 3, 2, dtype=torch.float64, requires_grad=True)
    (slope,) = torch.autograd.grad(env.advance(state, action).reward.sum(), action)
    found = torch.zeros_like(slope)
    for agent in range(3):
        for axis in range(2):
            nudge = torch.zeros_like(slope)
            nudge[:, agent, axis] = 1e-6
            up, down = (env.advance(state, sign * nudge).reward.sum(-1) for sign in (1, -1))
            found[:, agent, axis] = (up - down) / 2e-6
    assert torch.allclose(slope, found, atol=1e-5)
