"""Cost of the bridge to PyG: share of a critic's forward pass, static and compact, and PyG's own batching.

    python -m benchmarks.bridge [--json FILE] [--quick]

CPU time of one thread, medians of interleaved runs; ratios transfer to other machines, milliseconds do not.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from benchmarks.program import cpu_seconds, main
from tensordict import TensorDict
from torch import Tensor, nn
from torch_geometric.data import Batch
from torch_geometric.nn import GATv2Conv

from edgewise.graphs.convert import to_pyg
from edgewise.graphs.edges import EdgeSource, Explicit
from edgewise.graphs.proximity import Nearest, Radius
from edgewise.graphs.spec import GraphSpec
from edgewise.graphs.topology import Topology, TopologyBank
from edgewise.models.bridge import union

FEWEST, MOST, FEATURES, DEGREE = 5, 20, 8, 4


class Critic(nn.Module):
    """GATv2 twice, 64 wide with 4 heads, mean over nodes, one value."""

    def __init__(self, spec: GraphSpec) -> None:
        super().__init__()
        edge_dim = spec.edge_features or None
        self.spec = spec
        self.first = GATv2Conv(spec.node_features, 16, heads=4, edge_dim=edge_dim, add_self_loops=False)
        self.second = GATv2Conv(64, 16, heads=4, edge_dim=edge_dim, add_self_loops=False)
        self.value = nn.Linear(64, 1)

    def forward(self, graph: TensorDict, compact: bool | None = None) -> Tensor:
        flat = union(graph, self.spec, compact=compact)
        h = self.first(flat.x, flat.edge_index, flat.edge_attr).relu()
        h = self.second(h, flat.edge_index, flat.edge_attr).relu()
        return self.value(flat.pool(h))


def edge_sources() -> dict[str, EdgeSource]:
    """Build one edge source of each kind with about `DEGREE` neighbours."""
    pairs = torch.cartesian_prod(torch.arange(MOST), torch.arange(MOST)).T
    lists = [pairs[:, torch.randperm(MOST * MOST)[: MOST * DEGREE]] for _ in range(16)]
    return {
        "explicit": Explicit(MOST * DEGREE, 3),
        "topology": Topology(TopologyBank.from_edge_lists(lists)),
        "radius": Radius(0.35),
        "nearest, all pairs": Nearest(DEGREE),
        "nearest, k slots": Nearest(DEGREE, pairs=False),
    }


def ragged(spec: GraphSpec, *lead: int) -> TensorDict:
    """Sample graphs of `FEWEST` to `MOST` nodes, with `DEGREE` edges per node if edges are stored."""
    graph = spec.zeros(*lead)
    size = torch.randint(FEWEST, MOST + 1, (*lead, 1))
    graph["x"] = torch.randn_like(graph["x"])
    graph["pos"] = torch.rand_like(graph["pos"])
    graph["node_mask"] = torch.arange(MOST) < size
    if isinstance(spec.edges, Explicit):
        ends = torch.rand(graph["edge_index"].shape) * size.unsqueeze(-1)
        graph["edge_index"] = ends.long()
        graph["edge_mask"] = torch.arange(spec.edges.num_edges) < size * DEGREE
        graph["edge_attr"] = torch.randn_like(graph["edge_attr"])
    if isinstance(spec.edges, Topology):
        graph["topology"] = torch.randint(len(spec.edges.bank), lead)
    return graph


def measure(edges: EdgeSource, lead: tuple[int, ...], repeats: int) -> dict[str, float]:
    """Measure milliseconds of flattening and of the critic, and their ratios."""
    spec = GraphSpec(MOST, FEATURES, edges=edges, position_dim=2)
    graph, critic = ragged(spec, *lead), Critic(spec)
    found = spec.edges_of(graph)

    def forward(compact: bool) -> Callable[[], object]:
        return torch.no_grad()(lambda: critic(graph, compact=compact))

    seconds = cpu_seconds(
        {
            "edges": lambda: spec.edges_of(graph),
            "flatten_static": lambda: union(graph, spec, compact=False, edges=found),
            "flatten_compact": lambda: union(graph, spec, compact=True, edges=found),
            "forward_static": forward(False),
            "forward_compact": forward(True),
        },
        repeats,
    )
    numbers = {f"{name}_ms": 1e3 * value for name, value in seconds.items()}
    for how in ("static", "compact"):
        flatten, forward_pass = seconds[f"flatten_{how}"], seconds[f"forward_{how}"]
        numbers[f"flatten_share_{how}"] = flatten / forward_pass
        numbers[f"edges_and_flatten_share_{how}"] = (seconds["edges"] + flatten) / forward_pass
    numbers["forward_static_over_compact"] = seconds["forward_static"] / seconds["forward_compact"]
    return numbers


def measure_batching(lead: tuple[int, ...], repeats: int) -> dict[str, float]:
    """Compare PyG's `Batch.from_data_list` on existing Data objects with the bridge on the padded batch."""
    spec = GraphSpec(MOST, FEATURES, edges=Explicit(MOST * DEGREE, 3), position_dim=2)
    graph = ragged(spec, *lead)
    graphs = to_pyg(graph, spec)
    seconds = cpu_seconds(
        {
            "from_data_list": lambda: Batch.from_data_list(graphs),
            "bridge": lambda: union(graph, spec, compact=False),
        },
        repeats,
    )
    numbers = {f"{name}_ms": 1e3 * value for name, value in seconds.items()}
    numbers["from_data_list_over_bridge"] = seconds["from_data_list"] / seconds["bridge"]
    return numbers


def run(quick: bool = False) -> dict[str, dict[str, float]]:
    """Measure everything by edge source, with 64 worlds and 32 steps (8 and 8 with `quick`)."""
    torch.set_num_threads(1)
    torch.manual_seed(0)
    lead, repeats = ((8, 8), 3) if quick else ((64, 32), 5)
    found = {name: measure(edges, lead, repeats) for name, edges in edge_sources().items()}
    found["batching"] = measure_batching(lead, repeats)
    return found


if __name__ == "__main__":
    main(run, __doc__)
