"""What a scheduler sees: the conflict graph with its queues and channels, and how the episode goes."""

from __future__ import annotations

import torch
from tensordict import TensorDict
from torch import Tensor

from edgewise.envs.symlog import symlog
from edgewise.graphs.spec import GraphSpec
from edgewise.graphs.topology import Topology, TopologyBank
from edgewise.systems.queueing.graphs import ConflictGraphs

NODE_FEATURES = 7
"""Queue, channel, their product, its sum over neighbours, their number, all compressed; rate, priority."""


def graph_spec(graphs: ConflictGraphs) -> GraphSpec:
    """The shape of the observed graphs; both directions of every conflict, looked up by id."""
    bank = TopologyBank.from_edge_lists([graph.pairs for graph in graphs.graphs], both_ways=True)
    return GraphSpec(graphs.num_nodes, NODE_FEATURES, edges=Topology(bank))


def graph(state: TensorDict, *, adjacency: Tensor) -> dict[str, Tensor]:
    """The conflict graphs of the worlds in `state`, `[B]`.

    Args:
        state: of the worlds.
        adjacency: `[G, N, N]` float, of every conflict graph.
    """
    queues, service, beside = state["queues"], state["service"], adjacency[state["conflict_graph"]]
    weight = queues * service
    # Attention takes means: how much is in a node's way, and how many are, it could not tell by itself.
    rivals = (beside @ weight.unsqueeze(-1)).squeeze(-1)
    compressed = symlog(torch.stack((queues, service, weight, rivals, beside.sum(-1)), -1))
    plain = torch.stack((state["arrival_rate"], state["priority"]), -1)
    return {
        "x": torch.cat((compressed, plain), -1),
        "node_mask": state["node_mask"],
        "topology": state["conflict_graph"],
    }


def metrics(state: TensorDict) -> dict[str, Tensor]:
    """Of the episode so far, each `[B]`: mean backlog per slot, and whether it overflowed."""
    mean = state["backlog_sum"] / state["step"].clamp_min(1)
    return {"backlog": mean.float(), "overflow": state["overflow"].float()}
