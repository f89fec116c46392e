"""Graphwalk against networkx: graphs are as promised, distances right, and the best policy is the best."""

import networkx as nx
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from edgewise.evaluation.replays.files import check
from edgewise.systems.graphwalk import dynamics
from edgewise.systems.graphwalk.baselines import BASELINES
from edgewise.systems.graphwalk.config import GraphwalkConfig
from edgewise.systems.graphwalk.env import GraphwalkEnv
from edgewise.systems.graphwalk.render import layout, replay


def walk(num_envs=16, seed=0, **fields):
    return GraphwalkEnv(GraphwalkConfig(**fields), num_envs=num_envs, seed=seed)


def graphs(state):
    """Each world's graph in networkx, nodes and edges as the state has them."""
    for world in range(len(state)):
        graph = nx.DiGraph()
        graph.add_nodes_from(state["node_mask"][world].nonzero().flatten().tolist())
        ends = state["edge_index"][world][:, state["edge_mask"][world]].T.tolist()
        assert len({tuple(pair) for pair in ends}) == len(ends), "an edge stands twice"
        graph.add_edges_from(ends)
        yield graph


@given(
    low=st.integers(2, 6),
    more=st.integers(0, 6),
    extra=st.integers(0, 30),
    spare=st.integers(0, 3),
    seed=st.integers(0, 2**32),
)
def test_graphs_are_connected_simple_and_of_the_size_asked_for(low, more, extra, spare, seed):
    fields = {"num_nodes": (low, low + more), "extra_edges": extra, "max_nodes": low + more + spare}
    state = walk(num_envs=8, seed=seed, **fields).reset()["state"]
    for world, graph in enumerate(graphs(state)):
        nodes = graph.number_of_nodes()
        assert low <= nodes <= low + more
        assert set(graph) == set(range(nodes))
        assert nx.is_connected(graph.to_undirected())
        assert all(graph.has_edge(target, source) for source, target in graph.edges)
        assert nx.number_of_selfloops(graph) == 0
        assert graph.number_of_edges() / 2 == min(nodes - 1 + extra, nodes * (nodes - 1) / 2)
        start, goal = int(state["current"][world]), int(state["goal"][world])
        assert start != goal
        assert {start, goal} <= set(graph)


def test_every_size_and_every_pair_of_nodes_comes_up():
    state = walk(num_envs=4000).reset()["state"]
    sizes = state["node_mask"].sum(-1)
    assert torch.bincount(sizes, minlength=13)[4:].min() > 4000 / 9 * 0.75
    small = sizes == 4
    pairs = state["current"][small] * 4 + state["goal"][small]
    counts = torch.bincount(pairs, minlength=16).view(4, 4)
    assert counts.diag().sum() == 0
    assert counts[~torch.eye(4, dtype=torch.bool)].min() > int(small.sum()) / 12 * 0.4


@given(st.integers(0, 2**32))
def test_distances_are_those_of_networkx(seed):
    state = walk(num_envs=6, seed=seed, num_nodes=(2, 15), extra_edges=2).reset()["state"]
    capacity = state["node_mask"].shape[-1]
    edges = {"edge_index": state["edge_index"], "edge_mask": state["edge_mask"]}
    distance = dynamics.distances(state["goal"], num_nodes=capacity, **edges)
    for world, graph in enumerate(graphs(state)):
        expected = nx.single_source_shortest_path_length(graph, int(state["goal"][world]))
        assert {node: int(distance[world, node]) for node in graph} == dict(expected)
        assert int(state["shortest"][world]) == expected[int(state["current"][world])]


def test_no_way_is_farther_than_any_way():
    edge_index, edge_mask = torch.tensor([[[0, 1], [1, 0]]]), torch.tensor([[True, True]])
    distance = dynamics.distances(torch.tensor([0]), edge_index=edge_index, edge_mask=edge_mask, num_nodes=3)
    assert distance.tolist() == [[0, 1, 3]]


def test_the_mask_is_the_neighbourhood_and_other_moves_stay():
    env = walk(num_envs=32)
    env.check_actions = False
    root = env.reset()
    state, mask = root["state"], root["action_mask"]
    for node in range(env.graph.num_nodes):
        moved = env.step(root.copy().set("action", torch.full((32,), node)))["next", "state", "current"]
        assert torch.equal(moved, torch.where(mask[:, node], node, state["current"]))
    for world, graph in enumerate(graphs(state)):
        expected = sorted(graph.successors(int(state["current"][world])))
        assert mask[world].nonzero().flatten().tolist() == expected


def test_the_shortest_path_costs_its_length_and_nothing_does_better():
    env = walk(num_envs=300, num_nodes=(2, 12), extra_edges=1, max_steps=60)
    returns = {}
    for name, factory in BASELINES.items():
        env.set_seed(3)
        root, policy = env.reset(), factory(env)
        shortest, total, playing = (
            root["state", "shortest"],
            torch.zeros(300),
            torch.ones(300, dtype=torch.bool),
        )
        for _ in range(60):
            following = env.step(policy(root))["next"]
            total = total + torch.where(playing, following["reward"].squeeze(-1), 0.0)
            if name == "shortest_path":
                arrived = following["terminated"].squeeze(-1) & playing
                assert (following["metrics", "efficiency"][arrived] == 1).all()
                assert (following["metrics", "success"][arrived] == 1).all()
            playing = playing & ~following["done"].squeeze(-1)
            root = env.step_mdp(root)
        assert not playing.any()
        returns[name] = total
    assert torch.equal(returns["shortest_path"], -shortest.float())
    assert (returns["random"] <= returns["shortest_path"]).all()
    assert returns["random"].mean() < 3 * returns["shortest_path"].mean()


def test_features_mark_the_walker_and_the_goal():
    state, graph = (root := walk().reset())["state"], root["graph"]
    assert torch.equal(graph["x"][..., 0].argmax(-1), state["current"])
    assert torch.equal(graph["x"][..., 1].argmax(-1), state["goal"])
    assert graph["x"].sum() == 32


def test_a_walk_becomes_a_replay():
    env = walk(num_envs=1, seed=5)
    batch = env.rollout(40, BASELINES["random"](env))
    states = torch.cat((batch["state"][0], batch["next", "state"][0, -1:]))
    shown = check(replay(states))
    assert len(shown["frames"]) == len(states)
    assert shown["facts"]["steps"] == len(states) - 1
    nodes = next(layer for layer in shown["layers"] if layer["name"] == "nodes")
    assert len(nodes["x"]) == int(states["node_mask"][0].sum())
    assert nodes["color"].count("good") == 1
    goal = nodes["color"].index("good")
    if batch["next", "terminated"][0, -1]:
        assert shown["frames"][-1]["walker"] == {"x": [nodes["x"][goal]], "y": [nodes["y"][goal]]}


def test_a_path_is_laid_out_straight_and_true_to_length():
    steps = torch.arange(5)
    place = layout((steps - steps.unsqueeze(-1)).abs())
    assert torch.cdist(place, place) == pytest.approx(
        torch.cdist(steps.double()[:, None], steps.double()[:, None]), abs=1e-6
    )
