"""What boats keep: who has ended stays ended, noise is as said, timeouts are no ends, metrics are counts."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.systems.marine.worlds import QUIET, marine, placed, step, still

from edgewise.config.errors import ConfigError
from edgewise.envs.contract import check_graph_env
from edgewise.envs.registry import make_env
from edgewise.systems.marine import sensing

CROWD = {"num_robots": (2, 5), "num_obstacles": (0, 4), "num_cores": (0, 3), "min_start_goal_dis": 5.0}
PILE = [(10, 10 + 8 * i, 0, 40, 10 + 8 * i, 1, 0, 0, 200, 200) for i in range(3)]


def driven(env, steps, seed=0):
    """Roots and nexts of random driving, full ahead more often than not so that boats get somewhere."""
    generator, root = torch.Generator().manual_seed(seed), env.reset()
    for _ in range(steps):
        action = torch.rand(env.action_spec.shape, generator=generator).mul_(3.0).sub_(1.0).clamp_(-1.0, 1.0)
        stepped, root = env.step_and_maybe_reset(root.set("action", action))
        yield stepped.exclude("next"), stepped["next"]


@pytest.mark.parametrize(
    "fields",
    [
        {"actions": "discrete", **CROWD},
        {"graph_edges": False, "normalise": False, "end_at_first_collision": True, "max_objects": 9, **QUIET},
    ],
    ids=["discrete", "ego alone"],
)
def test_the_contract_is_kept_by_other_settings(fields):
    check_graph_env(make_env("marine", **fields))


def test_who_has_ended_never_moves_nor_earns_nor_is_seen():
    env = marine(num_envs=12, seed=1, detection_range=1e6, num_robots=5, min_start_goal_dis=0.0)
    ended = 0
    for root, following in driven(env, 60):
        gone = ~root["agents", "active"]
        ended += int((gone & root["agents", "terminated"]).sum())
        for name in ("position", "heading", "through_water", "over_ground", "thrust"):
            assert torch.equal(root["state", name][gone], following["state", name][gone])
        assert not following["reward"][gone].any()
        assert not following["agents", "ego", "mask"][gone].any()
        sees = following["graph", "edge_mask"].view(12, 5, 5)
        assert not sees[gone].any()
        assert not sees.mT[gone].any()
        together = (~gone).unsqueeze(-1) & (~gone).unsqueeze(-2) & ~torch.eye(5, dtype=torch.bool)
        assert torch.equal(sees, together)
    assert ended > 50


def test_the_graph_joins_all_that_is_detected_and_the_list_its_nearest():
    env = marine(num_envs=6, seed=2, num_robots=6, num_obstacles=4, max_objects=3, normalise=False)
    for _, following in driven(env, 5):
        graph, ego = following["graph"], following["agents", "ego"]
        attr, seen = graph["edge_attr"].view(6, 6, 10, 5), graph["edge_mask"].view(6, 6, 10)
        source, target = graph["edge_index"][0]
        assert source.view(6, 10).tolist() == [list(range(10))] * 6
        assert target.view(6, 10).tolist() == [[robot] * 10 for robot in range(6)]
        for world in range(6):
            for robot in range(6):
                rows = attr[world, robot][seen[world, robot]]
                gap = rows[:, :2].norm(dim=-1) - rows[:, 4]
                assert (gap <= 20.0 + 1e-4).all()
                nearest = rows[gap.argsort()][:3]
                assert torch.equal(nearest, ego["objects"][world, robot][: len(nearest)])
                assert int(ego["mask"][world, robot].sum()) == len(nearest)
        assert torch.equal(graph["x"][:, :6], ego["self"])
    assert int(seen.sum(-1).max()) > 3


def test_numbers_are_scaled_by_what_the_card_says():
    raw, scaled = (marine(num_envs=4, num_robots=4, normalise=flag) for flag in (False, True))
    for (_, metres), (_, ones) in zip(driven(raw, 3), driven(scaled, 3), strict=True):
        own, objects = metres["agents", "ego", "self"], metres["agents", "ego", "objects"]
        scale = torch.tensor([20.0, 20.0, 2.0, 2.0, 0.5, 1000.0, 1000.0])
        assert torch.allclose(ones["agents", "ego", "self"], own / scale)
        seen = objects / torch.tensor([20.0, 20.0, 2.0, 2.0, 2.0])
        assert torch.allclose(ones["agents", "ego", "objects"], seen)


def test_noise_is_fresh_for_every_observer_object_and_step():
    env = marine(num_envs=400, seed=0, num_robots=2, num_obstacles=1, detection_range=100.0, normalise=False)
    root = env.reset()
    looks = []
    for _ in range(3):
        root["action"] = torch.zeros(400, 2, 2)
        looks.append(env.step(root)["next", "state"])
    errors = torch.stack([_errors(look) for look in looks])
    assert errors.flatten(0, -2).std(0).tolist() == pytest.approx([0.05] * 4, rel=0.05)
    assert errors.flatten(0, -2).mean(0).tolist() == pytest.approx([0.0] * 4, abs=2e-3)
    flat = errors.movedim(1, -1).flatten(0, -2)
    assert (flat.corrcoef().abs() - torch.eye(len(flat))).max() < 0.25
    part = looks[0]["seen"][..., 0, 4][:, 1] / (0.5 * math.hypot(5.0, 2.5))
    assert 0.6 < float(part.min()) < 0.65
    assert 0.95 < float(part.max()) < 1.0


def _errors(state):
    """What each robot's view of the other and of the obstacle is off by in world axes, `[B, A, 2, 4]`."""
    cos, sin = state["heading"].cos(), state["heading"].sin()
    turn = torch.stack((torch.stack((cos, -sin), -1), torch.stack((sin, cos), -1)), -2)
    true = torch.cat((state["position"], state["obstacle"]), 1)
    moves = torch.cat((state["over_ground"][..., :2], torch.zeros_like(state["obstacle"])), 1)
    found = []
    for robot in range(2):
        rows = state["seen"][:, robot, [1 - robot, 2]]
        place = rows[..., :2] @ turn[:, robot].mT + state["position"][:, robot, None]
        speed = rows[..., 2:4] @ turn[:, robot].mT
        found.append(torch.cat((place - true[:, [1 - robot, 2]], speed - moves[:, [1 - robot, 2]]), -1))
    return torch.stack(found, 1)


def test_radii_are_seen_as_von_mises_has_them():
    """The table's quantiles against the distribution function, integrated anew: no two differ by 1e-3."""
    angle = (sensing.size_table(torch.device("cpu")).double() - 0.8) * math.pi / 0.2
    grid = torch.linspace(-math.pi, math.pi, 20001, dtype=torch.float64)
    density = torch.exp(grid.cos()) / (2 * math.pi * torch.special.i0(torch.ones((), dtype=torch.float64)))
    below = torch.stack([torch.trapezoid(density[grid <= a], grid[grid <= a]) for a in angle[::64]])
    assert (below - (torch.arange(0, 4096, 64) + 0.5) / 4096).abs().max() < 1e-3


def test_a_timeout_is_cut_off_and_the_references_is_an_end():
    for parity in (False, True):
        env = still(PILE[:1], max_steps=2, parity=parity)
        state, outcome = step(env, placed(env, PILE[:1]), [(0.0, 0.0)])
        assert not outcome["done"]
        state, outcome = step(env, state, [(0.0, 0.0)])
        assert bool(outcome["terminated"]) is parity
        assert bool(outcome["truncated"]) is not parity
        assert state["terminated"].tolist() == [[parity]]
        assert env.observe(state)["metrics"]["timeout"].tolist() == [1.0]


def test_in_the_step_of_a_timeout_the_reference_counts_neither_goal_nor_collision():
    robot = (10, 10, 0, 13.4, 10, 3, 0, 0, 800, 800)
    for parity, bonus in ((False, 10.0), (True, 0.0)):
        env = still([robot], max_steps=1, parity=parity)
        _, outcome = step(env, placed(env, [robot]), [(0.0, 0.0)])
        assert float(outcome["reward"]) == pytest.approx(1.389353809 + bonus, abs=1e-8)


def test_evaluation_ends_with_the_first_collision():
    robots = [*PILE[:1], (10.0, 14.0, 0, 40, 12, 1, 0, 0, 200, 200), (40, 40, 0, 10, 10, 1, 0, 0, 0, 0)]
    for first in (False, True):
        env = still(robots, end_at_first_collision=first)
        state, outcome = step(env, placed(env, robots), [(0.0, 0.0)] * 3)
        assert state["collided"].tolist() == [[True, True, False]]
        assert state["active"].tolist() == [[False, False, True]]
        assert bool(outcome["terminated"]) is first


def test_who_collides_at_its_goal_has_not_arrived():
    robots = [(10, 10, 0, 10.5, 10, 0, 0, 0, 0, 0), (10, 15, 0, 40, 12, 0, 0, 0, 0, 0)]
    for parity in (False, True):
        env = still(robots, parity=parity)
        state, outcome = step(env, placed(env, robots), [(0.0, 0.0)] * 2)
        assert float(outcome["reward"][0, 0]) == pytest.approx(-5.1)
        assert state["reached"].tolist() == [[parity, False]]


def test_boats_start_with_the_current_unless_the_reference_is_asked_for():
    here, there = (
        marine(num_envs=4, num_cores=4, parity=parity).reset()["state"] for parity in (False, True)
    )
    assert here["over_ground"][..., :2].abs().min() > 0
    assert not there["over_ground"].any()


@settings(max_examples=25)
@given(st.integers(0, 2**32))
def test_metrics_are_what_counting_gives(seed):
    env = marine(num_envs=4, seed=seed, max_steps=12, **CROWD)
    paid, spent, time = torch.zeros(4), torch.zeros(4), torch.zeros(4)
    for root, following in driven(env, 12, seed=seed % 2**31):
        if root["state", "step"].min() < int(root["state", "step"].max()):
            break
        active = root["agents", "active"]
        paid += following["reward"].squeeze(-1).sum(-1)
        spent += (following["state", "thrust"].abs().sum(-1) * active).sum(-1) * 0.5
        time += active.sum(-1) * 0.5
        metrics, state = following["metrics"], following["state"]
        exists = state["active"] | state["terminated"]
        robots = exists.sum(-1)
        assert torch.allclose(metrics["reward"] * robots, paid, atol=1e-3)
        assert torch.allclose(metrics["energy"] * robots, spent, rtol=1e-4)
        assert torch.allclose(metrics["time"] * robots, time)
        left = (state["goal"] - state["position"]).norm(dim=-1)
        there = (left <= 2.0) & state["terminated"] & ~state["collided"]
        assert torch.allclose(metrics["reached"] * robots, there.sum(-1).float())
        assert metrics["success"].bool().tolist() == (there == exists).all(-1).tolist()
        assert torch.equal(state["terminated"], there | state["collided"])


def test_stages_that_do_not_fit_are_refused_with_the_remedy():
    env = marine(num_robots=(3, 4))
    env.apply_stage(num_robots=4)
    with pytest.raises(ConfigError, match="room for 4") as caught:
        env.apply_stage(num_robots=5)
    assert "max_robots=5" in str(caught.value.hint)


@pytest.mark.parametrize(
    "fields",
    [
        {"num_robots": 0},
        {"num_cores": -1},
        {"num_obstacles": 3, "max_obstacles": 2},
        {"min_start_goal_dis": 70.0},
    ],
)
def test_worlds_that_cannot_be_are_refused(fields):
    with pytest.raises(ConfigError):
        make_env("marine", **fields)
