"""The benchmark of agents runs, and names every agent beside its published figure."""

import torch
from benchmarks.agents import PUBLISHED, Products, run
from tests.algorithms.sea import AGENTS


def test_it_measures_every_agent_with_both_encoders():
    figures = run(quick=True)
    assert set(PUBLISHED) == set(AGENTS)
    assert set(figures) == {"published at 64", "flat, 64", "graph, 64", "20 nodes, 64"}
    for kind in ("flat, 64", "graph, 64"):
        assert {f"{name}_ms" for name in AGENTS} <= set(figures[kind])
        assert all(value > 0 for value in figures[kind].values())
    on_graphs = figures["20 nodes, 64"]
    assert on_graphs["dqn on 20 nodes_bytes"] > on_graphs["dqn on agents.ego_bytes"] > 0


def test_products_are_those_of_forward_and_backward():
    network = torch.nn.Sequential(torch.nn.Linear(5, 7), torch.nn.ReLU(), torch.nn.Linear(7, 2))
    with Products() as products:
        network(torch.randn(3, 5)).sum().backward()
    shapes = [[tuple(factor.shape) for factor in factors[-2:]] for _, factors in products.recorded]
    forward = [[(3, 5), (5, 7)], [(3, 7), (7, 2)]]
    # Both weights, and the output of the first layer; the input needs no gradient.
    backward = [[(2, 3), (3, 7)], [(3, 2), (2, 7)], [(7, 3), (3, 5)]]
    assert shapes[:2] == forward
    assert sorted(shapes[2:]) == sorted(backward)
    products()
