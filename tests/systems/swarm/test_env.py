"""The swarm's view, rewards, metrics, baselines and replay, each against what it says of itself."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tensordict import TensorDict
from tests.systems.swarm.worlds import follow, placed, swarm

from edgewise.evaluation.evaluate import evaluate
from edgewise.evaluation.replays.files import check
from edgewise.experiments.replays import replay_function
from edgewise.models.actor_critic import make_actor_critic
from edgewise.plugins import environment
from edgewise.systems.swarm import observe
from edgewise.systems.swarm.baselines import BASELINES
from edgewise.systems.swarm.recipes.mappo import RECIPE
from edgewise.systems.swarm.render import replay


def episode(env, seed=0):
    """States `[B, T + 1]` and rewards `[B, T, A]` of one episode of random steering."""
    torch.manual_seed(seed)
    batch = env.rollout(env.config.max_steps, env.rand_action, break_when_any_done=False)
    states = torch.cat((batch["state"], batch["next", "state"][:, -1:]), 1)
    return states, batch["next", "reward"].squeeze(-1)


def own_rewards(states, threshold=0.05):
    """What each agent earns at each step, one agent after another, `[B, T, A]`."""
    worlds, steps, agents = states["active"].shape
    earned = np.zeros((worlds, steps - 1, agents))
    touches = np.zeros((worlds, steps - 1))
    for world, step, agent in np.ndindex(worlds, steps - 1, agents):
        state = states[world, step + 1]
        if not state["active"][agent]:
            continue
        place = state["position"][agent]
        left = float((place - state["goal"][agent]).norm())
        others = [o for o in range(agents) if o != agent and state["active"][o]]
        touched = sum(float((place - state["position"][o]).norm()) < 0.1 for o in others)
        hit = any(float((place - o).norm()) < 0.1 for o in state["obstacle"][state["obstacle_mask"]])
        earned[world, step, agent] = (5.0 if left < threshold else -left) - 5.0 * touched - 5.0 * hit
        touches[world, step] += touched / 2 + hit
    return earned, touches


CROWDED = {"num_agents": (2, 4), "num_obstacles": (0, 3), "world_size": 0.7, "max_steps": 12}


@pytest.mark.parametrize("reward", ["shared", "mean", "individual"])
def test_rewards_are_what_counting_one_by_one_gives(reward):
    states, paid = episode(swarm(num_envs=6, reward=reward, goal_threshold=0.1, **CROWDED))
    earned, touches = own_rewards(states, threshold=0.1)
    assert (touches > 0).any()
    assert (earned > 4).any()
    team = earned.sum(-1, keepdims=True) + 0 * earned
    active = states["active"][:, 1:].numpy()
    expected = {"shared": team, "mean": team / active.sum(-1, keepdims=True), "individual": earned}[reward]
    assert paid.numpy()[active] == pytest.approx(expected[active], abs=1e-4)


@settings(max_examples=40)
@given(st.integers(0, 2**32))
def test_metrics_are_what_counting_one_by_one_gives(seed):
    env = swarm(num_envs=2, seed=seed, goal_threshold=0.15, **CROWDED)
    states, _ = episode(env, seed)
    earned, touches = own_rewards(states, threshold=0.15)
    found = observe.metrics(states[:, -1], max_steps=12)
    for world in range(2):
        active = states["active"][world, 0]
        left = (states["position"][world] - states["goal"][world]).norm(dim=-1)[1:, active]
        arrivals = [next((t + 1 for t, d in enumerate(way) if d < 0.15), None) for way in left.T]
        expected = {
            "success": float(all(arrival is not None for arrival in arrivals)),
            "time": np.mean([(arrival or 12) / 12 for arrival in arrivals]),
            "collisions": touches[world].sum() / int(active.sum()),
            "reward": earned[world].sum() / int(active.sum()),
            "distance": float(left[-1].mean()),
        }
        for name, value in expected.items():
            assert float(found[name][world]) == pytest.approx(value, abs=1e-3), name


def test_a_goal_pays_every_step_and_arriving_once_is_enough():
    env = swarm(num_agents=1, num_obstacles=0)
    passed = follow(env, placed(env, [[0.0, 0.0]], [[0.0, 0.0]]), [[0], [0], [1], [1], [1]])
    assert [float(reward) == 5.0 for _, reward in passed] == [True, True, False, False, False]
    metrics = observe.metrics(passed[-1][0], max_steps=25)
    assert float(metrics["success"]) == 1.0
    assert float(metrics["time"]) == pytest.approx(1 / 25)


def test_episodes_are_cut_off_not_ended():
    batch = swarm(num_envs=3).rollout(25, break_when_any_done=False)
    assert batch["next", "truncated"][:, -1].all()
    assert not batch["next", "truncated"][:, :-1].any()
    assert not batch["next", "terminated"].any()


def test_edges_join_what_is_nearer_than_the_radius_and_carry_relative_features():
    env = swarm(num_envs=16, num_agents=(2, 5), num_obstacles=(0, 3), goal_nodes=True)
    graph = env.rollout(6)[:, -1]["graph"]
    edges = env.graph.edges_of(graph)
    for world in range(16):
        exists = graph["node_mask"][world]
        distance = torch.cdist(graph["pos"][world].double(), graph["pos"][world].double())
        linked = (distance < 1.0) & exists & exists.unsqueeze(-1) & ~torch.eye(len(exists), dtype=torch.bool)
        kept = edges.mask[world]
        source, target = edges.index[world][:, kept]
        found = torch.zeros_like(linked)
        found[source, target] = True
        assert torch.equal(found, linked)
        attr, pos, velocity = edges.attr[world][kept], graph["pos"][world], graph["x"][world, :, :2]
        offset, relative = pos[source] - pos[target], velocity[source] - velocity[target]
        expected = torch.cat((offset, offset.norm(dim=-1, keepdim=True), relative), -1)
        assert torch.allclose(attr, expected, atol=1e-6)


def test_one_way_edges_lead_to_agents_alone():
    env = swarm(num_envs=8, num_agents=4, one_way=True)
    graph = env.reset()["graph"]
    edges = env.graph.edges_of(graph)
    target = edges.index[:, 1][edges.mask]
    assert int(target.max()) < 4
    both = swarm(num_envs=8, num_agents=4)
    assert int(both.graph.edges_of(graph).index[:, 1][both.graph.edges_of(graph).mask].max()) >= 4


def test_more_than_32_neighbours_are_all_heard():
    env = swarm(num_envs=2, num_agents=50, world_size=0.6)
    edges = env.graph.edges_of(env.reset()["graph"])
    degree = torch.bincount(edges.index[0, 1][edges.mask[0]], minlength=53)
    assert degree.tolist() == [52] * 53


def test_baselines_are_ordered_by_what_they_look_at():
    reward = {}
    for name, factory in BASELINES.items():
        env = swarm(num_envs=100, num_agents=7, num_obstacles=5, reward="individual")
        result = evaluate(env, factory(env), episodes=100, seed=11)
        reward[name] = float(result.metrics["reward"].mean())
        collisions = float(result.metrics["collisions"].mean())
        if name == "straight":
            reckless = collisions
        if name == "cautious":
            assert collisions < reckless
    assert reward["random"] < 0 < reward["straight"] < reward["cautious"]


def test_an_episode_becomes_a_replay():
    env = swarm(num_envs=1, num_agents=(2, 4), max_agents=6)
    states, _ = episode(env)
    shown = check(replay(states[0]))
    agents = int(states["active"][0, 0].sum())
    assert len(shown["frames"]) == 26
    assert all(len(frame["agents"]["x"]) == agents for frame in shown["frames"])
    layers = {layer["name"]: layer for layer in shown["layers"]}
    assert len(layers["goals"]["x"]) == agents
    assert len(layers["obstacles"]["x"]) == 3


def test_attention_is_the_width_of_edges():
    env = swarm(num_envs=1, num_agents=3, max_agents=5, num_obstacles=2, max_obstacles=4)
    states, _ = episode(env)
    attention = torch.zeros(len(states[0]), env.graph.num_nodes, env.graph.num_nodes)
    attention[:, 0, 2], attention[:, 1, 6], attention[:, 1, 0], attention[:, 2, 3] = 0.4, 0.6, 0.01, 0.9
    shown = check(replay(states[0], attention))
    for frame in shown["frames"]:
        assert (frame["heard"]["source"], frame["heard"]["target"]) == ([0], [2])
        assert frame["heard"]["width"] == pytest.approx([2.0])
        assert (frame["watched"]["source"], frame["watched"]["target"]) == ([1], [1])
        assert frame["watched"]["width"] == pytest.approx([3.0])


def test_a_run_s_replay_shows_what_its_policy_attends_to():
    env = swarm(num_envs=2, num_agents=4)
    actor = make_actor_critic(env.graph, env.actions, RECIPE.config.model).actor
    states, _ = episode(env)
    root = env.observe(states[0])
    attention = actor.encoder.attention(TensorDict(root["graph"], states[0].batch_size))
    assert attention.shape == (len(states[0]), env.graph.num_nodes, env.graph.num_nodes)
    total = attention.sum(-1)
    assert torch.allclose(total[total > 0], torch.ones(()), atol=1e-5)
    assert (attention.diagonal(dim1=-2, dim2=-1) == 0).all()
    shown = check(replay_function(actor, env, entry=environment("swarm"))(states[0]))
    assert shown["caption"].endswith("attention.")
    assert shown["frames"] == check(replay(states[0], attention))["frames"]
