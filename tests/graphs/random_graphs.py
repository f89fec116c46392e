"""Graphs to test with: ragged, and with junk in every place that must not be looked at."""

import torch
from hypothesis import strategies as st
from torch_geometric.nn import GATv2Conv

from edgewise.graphs.edges import Explicit
from edgewise.graphs.proximity import Nearest, Radius
from edgewise.graphs.spec import GraphSpec
from edgewise.graphs.topology import Topology, TopologyBank
from edgewise.models.bridge import union

seeds = st.integers(0, 2**31 - 1)
leads = st.sampled_from([(), (1,), (3,), (2, 3), (3, 2), (2, 1, 2), (0,), (2, 0)])
sizes = st.integers(1, 7)


def draw(*shape, generator, dtype=torch.float64):
    return torch.randn(*shape, generator=generator, dtype=dtype)


def random_bank(num_nodes, *, generator, graphs=3, features=2):
    lists = [
        torch.randint(num_nodes, (2, int(torch.randint(0, 9, (), generator=generator))), generator=generator)
        for _ in range(graphs)
    ]
    attributes = [draw(edges.shape[1], features, generator=generator) for edges in lists]
    return TopologyBank.from_edge_lists(lists, attributes if features else None)


def random_source(kind, num_nodes, *, generator):
    return {
        "explicit": lambda: Explicit(9, 2),
        "bare": lambda: Explicit(5),
        "radius": lambda: Radius(1.5),
        "nearest": lambda: Nearest(2),
        "nearest slots": lambda: Nearest(3, pairs=False),
        "topology": lambda: Topology(random_bank(num_nodes, generator=generator)),
    }[kind]()


kinds = st.sampled_from(["explicit", "bare", "radius", "nearest", "nearest slots", "topology"])


def random_graph(spec, lead=(), *, seed=0, keep=0.7, junk=True):
    """A graph of float64, absent nodes and edges anywhere, with NaN and stray ends where nothing exists."""
    generator = torch.Generator().manual_seed(seed)
    graph = spec.zeros(*lead)
    mask = torch.rand(*lead, spec.num_nodes, generator=generator) < keep
    graph["node_mask"] = mask
    graph["x"] = draw(*lead, spec.num_nodes, spec.node_features, generator=generator)
    if spec.position_dim:
        graph["pos"] = draw(*lead, spec.num_nodes, spec.position_dim, generator=generator)
    if spec.node_types:
        graph["node_type"] = torch.randint(spec.node_types, mask.shape, generator=generator)
    if isinstance(spec.edges, Explicit):
        shape = (*lead, 2, spec.edges.num_edges)
        graph["edge_index"] = torch.randint(spec.num_nodes, shape, generator=generator)
        graph["edge_mask"] = torch.rand(*lead, spec.edges.num_edges, generator=generator) < keep
        if spec.edge_features:
            graph["edge_attr"] = draw(*lead, spec.edges.num_edges, spec.edge_features, generator=generator)
    if isinstance(spec.edges, Topology):
        graph["topology"] = torch.randint(len(spec.edges.bank), lead, generator=generator)
    return spoil(graph) if junk else graph


def spoil(graph):
    """The same graph, with junk in its padding."""
    absent = ~graph["node_mask"]
    for key in ("x", "pos"):
        if key in graph:
            graph[key] = graph[key].masked_fill(absent.unsqueeze(-1), torch.nan)
    if "node_type" in graph:
        graph["node_type"] = graph["node_type"].masked_fill(absent, 10**6)
    if "edge_index" in graph:
        gone = ~graph["edge_mask"]
        graph["edge_index"] = graph["edge_index"].masked_fill(gone.unsqueeze(-2), -(10**6))
        if "edge_attr" in graph:
            graph["edge_attr"] = graph["edge_attr"].masked_fill(gone.unsqueeze(-1), torch.inf)
    return graph


def random_spec(kind, num_nodes=6, *, seed=0, node_types=0):
    generator = torch.Generator().manual_seed(seed)
    return GraphSpec(
        num_nodes,
        3,
        edges=random_source(kind, num_nodes, generator=generator),
        position_dim=2,
        node_types=node_types,
    )


class Attention(torch.nn.Module):
    """Two GATv2 layers in float64, from a graph to its nodes and its pooled value."""

    def __init__(self, spec):
        super().__init__()
        self.spec = spec
        width = spec.edge_features or None
        self.first = GATv2Conv(spec.node_features, 4, heads=2, edge_dim=width, add_self_loops=False)
        self.second = GATv2Conv(8, 3, edge_dim=width, add_self_loops=False)
        self.double()

    def forward(self, graph, compact=None):
        flat = union(graph, self.spec, compact=compact)
        h = self.first(flat.x, flat.edge_index, flat.edge_attr).tanh()
        h = self.second(h, flat.edge_index, flat.edge_attr)
        return flat.nodes(h), flat.pool(h)
