"""The published network as a trainable preset: its size, what it sees, padding, and its first ratio."""

import pytest
import torch
from tensordict import TensorDict
from tests.systems.swarm.worlds import padded, swarm

from edgewise.algorithms.config import PPOConfig
from edgewise.algorithms.ppo import PPO
from edgewise.data.rollout import Rollout
from edgewise.models.actor_critic import make_actor_critic
from edgewise.systems.swarm import observe
from edgewise.systems.swarm.models.config import FAITHFUL, Remedies

UNUSED = 64 * 64 + 64 + 2 * 64
"""A layer that the published code creates in every head and never calls."""
STATISTICS = 4
"""Of PopArt, which are parameters there and buffers of the value normalisation here."""
SWITCHES = {
    "aggregation": "mean",
    "embed": "node",
    "embed_norm": True,
    "layer_norm": True,
    "graph_norm": True,
    "residual": 0.1,
    "beta": True,
    "depth_init": True,
    "soft_cap": 10.0,
    "logit_clip": 10.0,
    "clamp": 10.0,
}


def published(env, **remedies):
    torch.manual_seed(0)
    encoder = FAITHFUL.encoder.model_copy(update={"remedies": Remedies(**remedies)})
    return make_actor_critic(env.graph, env.actions, FAITHFUL.model_copy(update={"encoder": encoder}))


def size(module):
    return sum(parameter.numel() for parameter in module.parameters())


def test_it_is_as_large_as_published():
    model = published(swarm(goal_nodes=True))
    assert size(model.actor) == 44_407 - UNUSED
    assert size(model.critic) == 43_755 - UNUSED - STATISTICS
    assert size(model.actor.encoder.trunk) == 8_774


def test_each_agent_s_graph_is_the_reference_s_view():
    env = swarm(num_envs=4, num_agents=5, num_obstacles=2, goal_nodes=True)
    root = env.rollout(6, env.rand_action, break_when_any_done=False)[:, -1]
    features, distance = published(env).actor.encoder.ego_graphs(root["graph"])
    expected, apart = observe.ego_view(root["state"], env.config.task)
    assert torch.allclose(features, expected, atol=1e-6)
    assert torch.allclose(distance, apart * (apart < env.config.sensing_radius), atol=1e-6)


def test_what_is_absent_changes_nothing():
    exact = swarm(num_envs=6, num_agents=3, num_obstacles=2, seed=4, goal_nodes=True)
    root = exact.reset()
    room = {"max_agents": 9, "max_obstacles": 6}
    roomy = swarm(num_envs=6, num_agents=3, num_obstacles=2, seed=4, goal_nodes=True, **room)
    wide = TensorDict(roomy.observe(TensorDict(padded(root["state"]), [6]))["graph"], [6])
    model = published(exact)
    for encoder in (model.actor.encoder, model.critic.encoder):
        narrow, wider = encoder(root["graph"]), encoder(wide)
        assert torch.allclose(narrow[:, :3], wider[:, :3], atol=1e-5)
        assert (wider[:, 3:] == 0).all()


def test_its_attention_is_that_of_each_agent_in_its_own_graph():
    env = swarm(num_envs=3, num_agents=4, num_obstacles=2, goal_nodes=True)
    graph, encoder = env.reset()["graph"], published(env).actor.encoder
    seen = encoder.attention(graph)
    features, distance = encoder.ego_graphs(graph)
    _, traces = encoder.trunk.traced(features[1], distance[1].expand(4, -1, -1))
    for agent in range(4):
        assert torch.allclose(seen[1, agent], traces.alpha[-1][agent, :, agent].mean(0), atol=1e-6)
    assert (seen[:, 4:] == 0).all()
    assert (seen[..., :4, :][distance[:, :4] == 0] == 0).all()


@pytest.mark.parametrize("switch", [{}, *({name: value} for name, value in SWITCHES.items())], ids=str)
def test_it_learns_from_its_own_rollouts(switch):
    env = swarm(num_envs=4, num_agents=(2, 3), goal_nodes=True, max_steps=4)
    algorithm = PPO(published(env, **switch), PPOConfig(epochs=1, minibatch_size=10))
    rollout = Rollout(env, algorithm.policy, rollout_length=5)
    before = [parameter.clone() for parameter in algorithm.actor_critic.parameters()]
    for _ in range(2):
        metrics = algorithm.learn(rollout.collect())
        assert metrics["ratio_start"] == 1.0
        assert metrics["ratio_first"] == pytest.approx(1.0, abs=1e-5)
        assert all(value.isfinite() for value in metrics.values())
    moved = [not torch.equal(a, b) for a, b in zip(before, algorithm.actor_critic.parameters(), strict=True)]
    assert sum(moved) > 0.9 * len(moved)


def test_it_says_what_it_can_read():
    env = swarm(num_envs=1)
    narrow = type(env.graph)(5, 3, edges=env.graph.edges, position_dim=2, node_types=3)
    with pytest.raises(ValueError, match="informarl needs the graph of a swarm"):
        make_actor_critic(narrow, env.actions, FAITHFUL)


@pytest.mark.parametrize("half", ["actor", "critic"])
def test_what_absent_agents_hold_reaches_neither_outputs_nor_gradients(half):
    env = swarm(num_envs=6, num_agents=(1, 3), num_obstacles=(0, 2), goal_nodes=True)
    graph = env.reset()["graph"]
    encoder = getattr(published(env), half).encoder
    expected, absent = encoder(graph), ~graph["node_mask"].unsqueeze(-1)
    assert absent[:, :3].any()
    found = encoder(graph.clone().update({k: graph[k].masked_fill(absent, torch.nan) for k in ("x", "pos")}))
    assert torch.equal(found, expected)
    found.square().sum().backward()
    assert all(parameter.grad.isfinite().all() for parameter in encoder.parameters())
