"""Edges as matrices against a loop over edges."""

import itertools

import torch
from hypothesis import given
from tests.graphs.random_graphs import kinds, leads, random_graph, random_spec, seeds, sizes

from edgewise.graphs.dense import dense_edges, parallel_edges
from edgewise.graphs.edges import Edges


@given(kind=kinds, lead=leads, num_nodes=sizes, seed=seeds)
def test_matrices_hold_every_edge_and_no_other(kind, lead, num_nodes, seed):
    spec = random_spec(kind, num_nodes, seed=seed)
    edges = spec.edges_of(random_graph(spec, lead, seed=seed))
    dense, parallel = dense_edges(edges, num_nodes), parallel_edges(edges, num_nodes)
    assert dense.mask.shape == (*lead, num_nodes, num_nodes)
    assert (dense.attr is None) == (edges.attr is None)
    for world in itertools.product(*(range(size) for size in lead)):
        slots = edges.mask[world].nonzero().flatten().tolist()
        ends = [tuple(edges.index[world][:, slot].tolist()) for slot in slots]
        assert sorted(set(ends)) == list(map(tuple, dense.mask[world].nonzero().tolist()))
        assert bool(parallel[world]) == (len(set(ends)) < len(ends))
        if edges.attr is not None:
            assert dense.attr.shape == (*lead, num_nodes, num_nodes, spec.edge_features)
            for pair, slot in zip(ends, slots, strict=True):
                if ends.count(pair) == 1:
                    assert torch.equal(dense.attr[world][pair], edges.attr[world][slot])


def test_complete_edges_are_viewed_and_not_copied():
    spec = random_spec("radius")
    edges = spec.edges_of(random_graph(spec, (2,)))
    dense = dense_edges(edges, 6)
    assert dense.mask.data_ptr() == edges.mask.data_ptr()
    assert dense.attr.data_ptr() == edges.attr.data_ptr()


def test_gradients_reach_the_edge_features():
    index = torch.tensor([[0, 1, 0], [1, 0, 0]])
    attr = torch.randn(3, 2, requires_grad=True)
    edges = Edges(index, torch.tensor([True, True, False]), attr)
    dense_edges(edges, 2).attr.sum().backward()
    assert attr.grad.tolist() == [[1, 1], [1, 1], [0, 0]]


def test_an_absent_edge_does_not_wipe_out_a_present_one():
    edges = Edges(
        torch.zeros(2, 2, dtype=torch.int64), torch.tensor([True, False]), torch.tensor([[3.0], [7.0]])
    )
    dense = dense_edges(edges, 2)
    assert dense.mask.tolist() == [[True, False], [False, False]]
    assert dense.attr[0, 0].tolist() == [3.0]
