"""Observations of the queueing environment: the conflict graph with queues and channels, and the metrics."""

from __future__ import annotations

import torch
from tensordict import TensorDict
from torch import Tensor

from edgewise.envs.symlog import symlog
from edgewise.graphs.spec import GraphSpec
from edgewise.graphs.topology import Topology, TopologyBank
from edgewise.systems.queueing.graphs import ConflictGraphs

NODE_FEATURES = 7
"""Symlog of queue, channel, their product, its sum over neighbours and the degree; then rate and priority."""


def graph_spec(graphs: ConflictGraphs) -> GraphSpec:
    """Describe the observed graphs: both directions of every conflict, looked up by topology id."""
    bank = TopologyBank.from_edge_lists([graph.pairs for graph in graphs.graphs], both_ways=True)
    return GraphSpec(graphs.num_nodes, NODE_FEATURES, edges=Topology(bank))


def graph(state: TensorDict, *, adjacency: Tensor) -> dict[str, Tensor]:
    """Build the graphs of a batch of worlds.

    Args:
        state: state of the environment, batch `[B]`.
        adjacency: `[G, N, N]` float, of every conflict graph.
    """
    queues, service, beside = state["queues"], state["service"], adjacency[state["conflict_graph"]]
    weight = queues * service
    # Attention averages over neighbours, so it cannot recover sums and degrees: give them as features.
    rivals = (beside @ weight.unsqueeze(-1)).squeeze(-1)
    compressed = symlog(torch.stack((queues, service, weight, rivals, beside.sum(-1)), -1))
    plain = torch.stack((state["arrival_rate"], state["priority"]), -1)
    return {
        "x": torch.cat((compressed, plain), -1),
        "node_mask": state["node_mask"],
        "topology": state["conflict_graph"],
    }


def metrics(state: TensorDict) -> dict[str, Tensor]:
    """Return the metrics of the episode so far, each `[B]`: mean backlog per slot, and overflow."""
    mean = state["backlog_sum"] / state["step"].clamp_min(1)
    return {"backlog": mean.float(), "overflow": state["overflow"].float()}
