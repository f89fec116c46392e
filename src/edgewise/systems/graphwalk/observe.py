"""The observation: the whole graph, with the walker and the goal as node features."""

from __future__ import annotations

import torch
from tensordict import TensorDict
from torch import Tensor

from edgewise.graphs.edges import Explicit
from edgewise.graphs.spec import GraphSpec

NODE_FEATURES = 2
"""Whether the walker is at a node, and whether the node is the goal."""


def graph_spec(capacity: int, extra_edges: int) -> GraphSpec:
    """Return the shape of graphs with `capacity` node slots and `extra_edges` besides a spanning tree."""
    added = min(extra_edges, capacity * (capacity - 1) // 2)
    return GraphSpec(capacity, NODE_FEATURES, edges=Explicit(num_edges=2 * (capacity - 1 + added)))


def given_graph_spec(given: GraphSpec) -> GraphSpec:
    """Return the shape of observed graphs with the nodes and edges of given ones."""
    assert isinstance(given.edges, Explicit)
    return GraphSpec(given.num_nodes, NODE_FEATURES, edges=Explicit(num_edges=given.edges.num_edges))


def graph(state: TensorDict) -> dict[str, Tensor]:
    """Return the observed graphs of the worlds in `state`, batch size `[B]`."""
    node = torch.arange(state["node_mask"].shape[-1], device=state.device)
    marked = torch.stack((state["current"], state["goal"]), -1).unsqueeze(-2)
    return {
        "x": (node.unsqueeze(-1) == marked).float(),
        "node_mask": state["node_mask"],
        "edge_index": state["edge_index"],
        "edge_mask": state["edge_mask"],
    }


def metrics(state: TensorDict) -> dict[str, Tensor]:
    """Compute `success` and `efficiency`, the shortest path length over the steps taken, each `[B]`."""
    arrived = (state["current"] == state["goal"]).float()
    return {"success": arrived, "efficiency": arrived * state["shortest"] / state["step"].clamp(min=1)}
