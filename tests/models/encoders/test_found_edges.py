"""Edges found once for all epochs: the same edges in the same order, and so the same numbers."""

import copy

import pytest
import torch
from tensordict import TensorDict
from tests.models.worlds import explicit_spec, radius_spec, random_graph

import edgewise as ew
from edgewise.algorithms.config import PPOConfig
from edgewise.algorithms.ppo import PPO
from edgewise.data.rollout import Rollout
from edgewise.graphs.proximity import Nearest
from edgewise.graphs.ragged import pack
from edgewise.graphs.spec import GraphSpec
from edgewise.models.actor_critic import make_actor_critic
from edgewise.models.bridge import union
from edgewise.models.config import EncoderConfig, ModelConfig
from edgewise.models.encoders import encoder as encoders
from edgewise.models.encoders.found_edges import FOUND, found_edges, with_found_edges
from edgewise.models.encoders.transformer import GraphTransformer


def samples_of(spec, *batch, full=False):
    graph = random_graph(spec, *batch, full=full)
    graph["node_mask"][..., : spec.num_nodes // 2 + 1] = True
    for name in {"x", "pos"} & set(graph.keys()):
        graph[name] = torch.where(graph["node_mask"].unsqueeze(-1), graph[name].nan_to_num(0.3), torch.nan)
    return TensorDict({"graph": graph}, batch_size=batch)


RULES = [
    radius_spec(nodes=9, radius=0.6),
    radius_spec(nodes=250, radius=0.1),
    GraphSpec(9, 3, Nearest(2), position_dim=2),
]


@pytest.mark.parametrize("spec", RULES, ids=lambda spec: f"{spec.num_nodes} nodes")
@pytest.mark.parametrize("batch", [(6,), (3, 2)])
def test_a_union_with_them_is_that_without(spec, batch, monkeypatch):
    """Bit for bit, also of a minibatch, and if they are found in several passes."""
    monkeypatch.setattr("edgewise.models.encoders.found_edges.AT_ONCE", 2 * spec.num_nodes**2)
    samples = samples_of(spec, *batch)
    found = with_found_edges(samples, spec)
    assert FOUND in found["graph"].keys()  # noqa: SIM118
    assert FOUND not in samples["graph"].keys(), "the batch itself is not changed"  # noqa: SIM118
    for part in (slice(None), torch.tensor([2, 0])):
        one = union(samples[part]["graph"], spec, compact=True)
        other = union(samples[part]["graph"], spec, compact=True, edges=found_edges(found[part]["graph"]))
        assert torch.equal(one.edge_index, other.edge_index)
        assert torch.equal(one.edge_attr, other.edge_attr)


def test_where_nothing_is_found_in_advance(monkeypatch):
    stored = samples_of(explicit_spec(), 4)
    assert with_found_edges(stored, explicit_spec()) is stored
    few = radius_spec(nodes=9, radius=0.5)
    samples = samples_of(few, 4)
    samples["graph"]["node_mask"][..., 2:] = False
    assert with_found_edges(samples, few) is samples, "such batches are divided by size"
    packed = pack(samples_of(few, 4), None)
    assert with_found_edges(packed, few) is packed
    none = samples_of(few, 4)[:0]
    assert with_found_edges(none, few) is none
    monkeypatch.setattr("edgewise.models.encoders.found_edges.LARGEST", 1_000)
    many = samples_of(few, 40)
    assert with_found_edges(many, few) is many, "edges would take too much memory"


def test_an_encoder_of_matrices_finds_them_by_itself():
    spec = radius_spec(nodes=9, radius=0.6)
    samples = samples_of(spec, 6)
    for options, is_found in (({}, True), ({"dense": "always"}, False), ({"compact": False}, False)):
        encoder = GraphTransformer(spec, EncoderConfig(hidden=16, **options))
        prepared = encoder.with_edges(samples)
        assert (FOUND in prepared["graph"].keys()) is is_found  # noqa: SIM118
        assert torch.equal(encoder(prepared["graph"]), encoder(samples["graph"]))


def test_learning_is_the_same_and_applies_the_rule_once_per_batch(monkeypatch):
    env = ew.make_env("swarm", num_envs=8, seed=0, num_agents=12, num_obstacles=2)
    torch.manual_seed(0)
    actor_critic = make_actor_critic(env.graph, env.actions, ModelConfig(encoder=EncoderConfig(hidden=16)))
    batch = Rollout(env, actor_critic.actor, rollout_length=8).collect().clone()
    calls, results = [], []
    own = encoders.found_edges
    for reads in (True, False):
        if not reads:
            monkeypatch.setattr(encoders, "found_edges", lambda _: None)
        else:
            monkeypatch.setattr(
                encoders, "found_edges", lambda graph: (calls.append(own(graph) is not None), own(graph))[1]
            )
        algorithm = PPO(copy.deepcopy(actor_critic), PPOConfig(epochs=3, minibatch_size=16), seed=1)
        metrics = algorithm.learn(batch)
        results.append([*metrics.values(), *algorithm.actor_critic.parameters()])
    assert sum(calls) >= 2 * 3 * 4, "actor and critic read them in every minibatch"
    for one, other in zip(*results, strict=True):
        assert torch.equal(one, other)
