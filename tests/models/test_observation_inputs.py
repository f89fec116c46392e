"""Observations as named tensors: names, sizes, there and back, and random inputs that are possible."""

import pytest
import torch

from edgewise.envs.registry import make_env
from edgewise.models.observation_inputs import AGENTS, EDGES, GRAPHS, NODES, ObservationInputs

ENVS = {
    "graphwalk": ({"num_nodes": 6}, ["graph", "action_mask"]),
    "swarm": ({"num_agents": 4, "num_obstacles": 2}, ["graph", "agents"]),
    "hex": ({"size": 4}, ["graph", "action_mask"]),
    "multihop": ({}, ["graph", "action_mask"]),
    "queueing": ({}, ["graph", "action_mask"]),
    "marine": ({}, ["graph", "action_mask", "agents"]),
    "tsp": ({"num_cities": 5}, ["graph", "action_mask", "step"]),
}


def made(name, *, worlds=3, any_size=True):
    settings, keys = ENVS[name]
    env = make_env(name, num_envs=worlds, seed=0, **settings)
    return env, ObservationInputs(env, [*keys, "absent"], any_size=any_size)


def dims(info, sizes):
    return tuple(sizes[each] if isinstance(each, str) else each for each in info.shape)


@pytest.mark.parametrize("name", ENVS)
def test_inputs_have_the_shapes_that_they_say_and_lead_back(name):
    env, observed = made(name)
    root = env.reset()
    inputs = observed.of(root)
    assert list(inputs) == [info.name for info in observed.infos]
    for info in observed.infos:
        assert inputs[info.name].dtype == info.dtype
        assert tuple(inputs[info.name].shape) == dims(info, observed.sizes), info.name
        assert info.shape[0] == GRAPHS
        assert inputs[info.name].is_contiguous()
        assert info.meaning
    back = observed.root(inputs)
    assert back.batch_size == root.batch_size
    assert back["graph", "x"].nan_to_num().equal(root["graph", "x"].nan_to_num())
    edges, own = observed.graph.edges_of(back["graph"]), env.graph.edges_of(root["graph"])
    assert edges.mask.equal(own.mask)
    assert edges.index.masked_fill(~edges.mask.unsqueeze(-2), 0).equal(
        own.index.masked_fill(~own.mask.unsqueeze(-2), 0)
    )
    if "action_mask" in inputs:
        assert back["action_mask"].equal(root["action_mask"])
    assert observed.sizes[GRAPHS] == 3


@pytest.mark.parametrize("name", ENVS)
def test_edges_by_a_rule_are_computed_and_others_given(name):
    _, observed = made(name)
    names = {info.name for info in observed.infos}
    assert observed.is_rule == ("edge_index" not in names)
    assert observed.is_rule == ("pos" in names and name in ("swarm", "marine", "tsp")) or not observed.is_rule
    if not observed.is_rule:
        index = next(info for info in observed.infos if info.name == "edge_index")
        assert index.shape == (GRAPHS, 2, EDGES)
        assert index.below == NODES


@pytest.mark.parametrize("name", ENVS)
def test_random_inputs_are_possible_at_other_sizes(name):
    env, observed = made(name)
    generator = torch.Generator().manual_seed(0)
    sizes = observed.fit({each: size + 3 for each, size in observed.sizes.items()})
    found = observed.sample(sizes, generator)
    for info in observed.infos:
        assert tuple(found[info.name].shape) == dims(info, sizes), info.name
    if "edge_index" in found:
        nodes = sizes.get(NODES, env.graph.num_nodes)
        assert int(found["edge_index"].max()) < nodes
        assert int(found["edge_index"].min()) >= 0
        for index, mask in zip(found["edge_index"], found["edge_mask"], strict=True):
            pairs = index[:, mask].T.tolist()
            assert len(set(map(tuple, pairs))) == len(pairs)
        assert found["edge_index"][:, :, 0].eq(0).all()
    if "node_type" in found and AGENTS in sizes:
        assert found["node_type"][:, : sizes[AGENTS]].eq(0).all()
        assert found["node_type"][:, sizes[AGENTS] :].ge(min(1, env.graph.node_types - 1)).all()


def test_agents_are_nodes():
    _, observed = made("swarm")
    assert observed.fit({NODES: 2, AGENTS: 9, GRAPHS: 1})[NODES] == 9
    assert observed.fit({NODES: 12, AGENTS: 9})[NODES] == 12
    nodes = observed.own.num_nodes
    assert observed.fit({AGENTS: nodes + 5})[AGENTS] == nodes
    assert observed.fit({AGENTS: 1})[AGENTS] == 1


def test_edges_are_as_many_as_the_rule_gives():
    env, observed = made("swarm")
    for nodes in (4, 11):
        fitted = observed.fit({NODES: nodes, EDGES: 1})
        assert fitted[EDGES] > 1
        assert fitted[EDGES] <= nodes * nodes
    assert observed.fit({EDGES: 3})[EDGES] == observed.fit({NODES: env.graph.num_nodes, EDGES: 3})[EDGES]


@pytest.mark.parametrize("name", ENVS)
def test_a_fixed_size_is_a_number(name):
    env, fixed = made(name, any_size=False)
    for info in fixed.infos:
        assert NODES not in info.shape
        assert info.below != NODES
    node_mask = next(info for info in fixed.infos if info.name == "node_mask")
    assert node_mask.shape == (GRAPHS, env.graph.num_nodes)
    assert NODES not in fixed.sizes
