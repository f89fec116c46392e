"""From named attributes to features: which become positions, types and columns, and what is refused."""

import pytest
import torch

from edgewise.config.errors import DataError
from edgewise.graphs.raw_graph import RawGraph, to_data


def raw(nodes, edges=(), *, directed=True, where="g", **own):
    labels = [chr(97 + number) for number in range(len(nodes))]
    return RawGraph(where, labels, nodes, edges, directed, own)


@pytest.mark.parametrize(
    ("attributes", "pos", "columns"),
    [
        ({"x": 1.0, "y": 2.0}, [1.0, 2.0], ()),
        ({"x": 1.0, "y": 2.0, "z": 3.0}, [1.0, 2.0, 3.0], ()),
        ({"pos": [4.0, 5.0], "x": 1.0, "y": 2.0}, [4.0, 5.0], ("x", "y")),
        ({"x": 1.0}, None, ("x",)),
        ({"y": 1.0, "z": 2.0}, None, ("y", "z")),
        ({"x": "a", "y": 1.0}, None, ("y",)),
    ],
)
def test_where_nodes_are(attributes, pos, columns):
    (found,), names = to_data([raw([attributes, attributes])])
    assert (found.pos is None) == (pos is None)
    if pos is not None:
        assert found.pos.tolist() == [pos, pos]
    assert names.node_features == columns
    assert (found.x is None) == (not columns)


def test_columns_are_in_the_order_of_their_names_and_widths_are_said():
    nodes = [{"b": 1, "a": [2, 3], "c": True}, {"c": False, "a": [4, 5], "b": 6}]
    edges = [(0, 1, {"w": 7, "cost": [8, 9]})]
    (found,), names = to_data([raw(nodes, edges, size=10, name="x")])
    assert names.node_features == ("a[0]", "a[1]", "b", "c")
    assert found.x.tolist() == [[2.0, 3.0, 1.0, 1.0], [4.0, 5.0, 6.0, 0.0]]
    assert names.edge_features == ("cost[0]", "cost[1]", "w")
    assert found.edge_attr.tolist() == [[8.0, 9.0, 7.0]]
    assert names.graph_features == ("size",)
    assert found.u.tolist() == [[10.0]]


def test_an_undirected_edge_goes_both_ways_and_a_loop_once():
    edges = [(0, 1, {"w": 1.0}), (2, 2, {"w": 2.0}), (1, 2, {"w": 3.0})]
    (found,), _ = to_data([raw([{}, {}, {}], edges, directed=False)])
    assert found.edge_index.T.tolist() == [[0, 1], [2, 2], [1, 2], [1, 0], [2, 1]]
    assert found.edge_attr.squeeze(-1).tolist() == [1.0, 2.0, 3.0, 1.0, 3.0]


def test_types_are_ids_or_names_over_all_graphs():
    one = raw([{"type": "tree"}, {"type": "house"}], [(0, 1, {"type": 2})])
    other = raw([{"type": "house"}], [(0, 0, {"type": 0})])
    (first, second), names = to_data([one, other])
    assert names.node_types == ("house", "tree")
    assert first.node_type.tolist() == [1, 0]
    assert second.node_type.tolist() == [0]
    assert names.edge_features == ("type=0", "type=1", "type=2")
    assert first.edge_attr.tolist() == [[0.0, 0.0, 1.0]]
    assert second.edge_attr.tolist() == [[1.0, 0.0, 0.0]]
    (both,), names = to_data([raw([{"node_type": 1, "type": 0.5}, {"node_type": 0, "type": 1.5}])])
    assert both.node_type.tolist() == [1, 0]
    assert both.x.squeeze(-1).tolist() == [0.5, 1.5]


def test_equal_names_and_numbers_are_one_type():
    (found,), names = to_data([raw([{"type": "1"}, {"type": 1}, {"type": "b"}])])
    assert names.node_types == ("1", "b")
    assert found.node_type.tolist() == [0, 0, 1]


@pytest.mark.parametrize("kind", [True, None, 0.5, ["a"], {"a": 1}])
def test_what_is_no_type_is_refused_with_its_place(kind):
    with pytest.raises(DataError, match=r"g: type of node b is .*, which is no type"):
        to_data([raw([{"type": "a"}, {"type": kind}])])
    with pytest.raises(DataError, match=r"g: type of edge 1 is .*, which is no type"):
        to_data([raw([{}, {}], [(0, 1, {"type": "a"}), (1, 0, {"type": kind})])])


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ("7" * 5, None),
        (10**400, "not a number or a list of numbers|not finite"),
        pytest.param(10**5000, "too long to show, not a number or a list of numbers", id="long"),
        (float("nan"), "not finite"),
        (3.5e38, "larger than 3.4e"),
        ([1, [2]], "not a number or a list of numbers"),
        ([None], "not a number or a list of numbers"),
    ],
)
def test_numbers_that_cannot_be_features(value, words):
    if words is None:
        (found,), _ = to_data([raw([{"w": value}])])
        assert found.x is None
        return
    with pytest.raises(DataError, match=rf"g: w of node a is .*({words})"):
        to_data([raw([{"w": value}])])


def test_all_or_none_have_an_attribute():
    with pytest.raises(DataError, match="node b has no w, which others have"):
        to_data([raw([{"w": 1.0}, {}])])
    with pytest.raises(DataError, match="edge a → b has no w"):
        to_data([raw([{}, {}], [(1, 0, {"w": 1.0}), (0, 1, {})])])
    with pytest.raises(DataError, match="node b has 1 numbers, others have 2"):
        to_data([raw([{"w": [1.0, 2.0]}, {"w": 1.0}])])
    assert torch.equal(to_data([raw([{}])])[0][0].edge_index, torch.zeros(2, 0, dtype=torch.int64))
