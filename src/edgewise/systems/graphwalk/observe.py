"""What the walker sees: the whole graph, with its own node and the goal marked."""

from __future__ import annotations

import torch
from tensordict import TensorDict
from torch import Tensor

from edgewise.graphs.edges import Explicit
from edgewise.graphs.spec import GraphSpec

NODE_FEATURES = 2
"""Whether a node is the walker's, and whether it is the goal."""


def graph_spec(capacity: int, extra_edges: int) -> GraphSpec:
    """The shape of graphs with room for `capacity` nodes and `extra_edges` beside a tree."""
    further = min(extra_edges, capacity * (capacity - 1) // 2)
    return GraphSpec(capacity, NODE_FEATURES, edges=Explicit(num_edges=2 * (capacity - 1 + further)))


def graph(state: TensorDict) -> dict[str, Tensor]:
    """The graph of the worlds in `state`, `[B]`."""
    node = torch.arange(state["node_mask"].shape[-1], device=state.device)
    marked = torch.stack((state["current"], state["goal"]), -1).unsqueeze(-2)
    return {
        "x": (node.unsqueeze(-1) == marked).float(),
        "node_mask": state["node_mask"],
        "edge_index": state["edge_index"],
        "edge_mask": state["edge_mask"],
    }


def metrics(state: TensorDict) -> dict[str, Tensor]:
    """Of the walk so far, each `[B]`: whether it arrived, and if so the share of its steps that it needed."""
    arrived = (state["current"] == state["goal"]).float()
    return {"success": arrived, "efficiency": arrived * state["shortest"] / state["step"].clamp(min=1)}
