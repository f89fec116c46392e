"""The spec of a graph: what TorchRL is told is what graphs are."""

import doctest
import importlib
import pkgutil

import pytest
import torch
from hypothesis import given
from tests.graphs.random_graphs import kinds, random_graph, random_spec, seeds, sizes
from torchrl.data import Composite

import edgewise.graphs
from edgewise.graphs.edges import Explicit, ends_exist
from edgewise.graphs.spec import GraphSpec


@given(kind=kinds, num_nodes=sizes, seed=seeds)
def test_graphs_and_only_graphs_are_in_the_composite(kind, num_nodes, seed):
    spec = random_spec(kind, num_nodes, seed=seed, node_types=2)
    composite = spec.composite((2, 3))
    assert isinstance(composite, Composite)
    graph = random_graph(spec, (2, 3), seed=seed, junk=False)
    single = graph.apply(lambda value: value.float() if value.is_floating_point() else value)
    assert composite.is_in(single)
    assert composite.is_in(spec.zeros(2, 3))
    assert not composite.is_in(single[0])
    assert set(composite.keys()) == set(graph.keys())


@given(kind=kinds, num_nodes=sizes, seed=seeds)
def test_random_members_of_the_composite_have_edges(kind, num_nodes, seed):
    spec = random_spec(kind, num_nodes, seed=seed)
    graph = spec.composite((2,)).rand()
    edges = spec.edges_of(graph)
    assert edges.index.shape == (2, 2, edges.mask.shape[-1])
    assert edges.index.dtype == torch.int64
    assert not edges.index.numel() or 0 <= edges.index.min() <= edges.index.max() < num_nodes


def test_an_empty_graph_has_nothing():
    spec = GraphSpec(3, 2, edges=Explicit(4, 1))
    graph = spec.zeros(5)
    assert graph.batch_size == (5,)
    assert not graph["node_mask"].any()
    assert not spec.edges_of(graph).mask.any()
    graph["node_mask"][0] = True
    assert not graph["node_mask"][1:].any()


def test_features_of_absent_nodes_are_masked():
    spec = GraphSpec(3, 2, edges=Explicit(1))
    graph = spec.zeros(1)
    graph["node_mask"][0, :2] = True
    graph["x"][:] = 7.0
    assert spec.mask_padding(graph).tolist() == [[[7.0, 7.0], [7.0, 7.0], [0.0, 0.0]]]
    assert (graph["x"] == 7.0).all()


def test_ends_exist_looks_at_both_ends():
    index = torch.tensor([[0, 0, 2, 2], [0, 2, 0, 2]])
    assert ends_exist(index, torch.tensor([True, True, False])).tolist() == [True, False, False, False]


@pytest.mark.parametrize("module", [entry.name for entry in pkgutil.iter_modules(edgewise.graphs.__path__)])
def test_examples_in_docstrings_run(module):
    found = importlib.import_module(f"edgewise.graphs.{module}")
    assert doctest.testmod(found).failed == 0
