"""Speed of encoders: compiled and eager, dense and sparse attention, ours and PyG's.

    python -m benchmarks.encoders [--json FILE] [--quick]

CPU time of one thread, minimum of interleaved runs, which a busy machine disturbs least; ratios transfer to
other machines, milliseconds do not. Encoders have width 64, 3 layers and 4 heads; edges have 3 features. The
comparison of dense and sparse attention determines `dense_from`, by which `dense="auto"` chooses. The rows of
teams compare `auto` with both, on agents and 3 obstacles in a square of side 2 with a sensing radius of 1, at
two widths.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping

import torch
from benchmarks.program import cpu_seconds, main
from tensordict import TensorDict

from edgewise.graphs.edges import Explicit
from edgewise.graphs.proximity import Radius
from edgewise.graphs.spec import GraphSpec
from edgewise.models.build import make_encoder
from edgewise.models.config import EncoderConfig
from edgewise.models.encoders.encoder import GraphEncoder

NODE_FEATURES, EDGE_FEATURES = 8, 3
SPARSE, DENSE = {"dense": "never"}, {"dense": "always"}
PYG = {"kind": "gnn", "conv": "TransformerConv"}


def random_graphs(worlds: int, nodes: int, density: float) -> tuple[GraphSpec, TensorDict]:
    """Sample simple graphs with the given share of all ordered pairs as edges, without padding."""
    pairs = nodes * (nodes - 1)
    edges = max(round(density * pairs), 1)
    spec = GraphSpec(nodes, NODE_FEATURES, Explicit(edges, EDGE_FEATURES))
    graph = spec.zeros(worlds)
    pair = torch.rand(worlds, pairs).argsort(-1)[:, :edges]
    source, target = pair // (nodes - 1), pair % (nodes - 1)
    graph["x"] = torch.randn(worlds, nodes, NODE_FEATURES)
    graph["node_mask"] = torch.ones(worlds, nodes, dtype=torch.bool)
    graph["edge_index"] = torch.stack((source, target + (target >= source)), 1)
    graph["edge_mask"] = torch.ones(worlds, edges, dtype=torch.bool)
    graph["edge_attr"] = torch.randn(worlds, edges, EDGE_FEATURES)
    return spec, graph


def forward(encoder: GraphEncoder, graph: TensorDict) -> Callable[[], None]:
    def once() -> None:
        with torch.no_grad():
            encoder(graph)

    return once


def forward_backward(encoder: GraphEncoder, graph: TensorDict) -> Callable[[], None]:
    def once() -> None:
        encoder.zero_grad()
        encoder(graph).square().mean().backward()

    return once


def best(contenders: Mapping[str, Callable[[], None]], repeats: int) -> dict[str, float]:
    """Measure the minimum CPU milliseconds of each contender, interleaved."""
    return {name: 1e3 * found for name, found in cpu_seconds(contenders, repeats, choose=min).items()}


def encoders(spec: GraphSpec, kinds: Mapping[str, Mapping[str, object]]) -> dict[str, GraphEncoder]:
    return {name: make_encoder(spec, EncoderConfig(**options)) for name, options in kinds.items()}


def measure_compilation(
    options: Mapping[str, object], graphs: tuple[GraphSpec, TensorDict], repeats: int
) -> dict[str, float]:
    """Measure eager over compiled, forward and with backward, and the CPU seconds of the first calls."""
    spec, graph = graphs
    both = encoders(spec, {"eager": options, "compiled": {**options, "compile": True}})
    start = time.process_time()
    forward(both["compiled"], graph)()
    forward_backward(both["compiled"], graph)()
    found = {"first calls, s": time.process_time() - start}
    for name, step in (("forward", forward), ("forward+backward", forward_backward)):
        cost = best({key: step(encoder, graph) for key, encoder in both.items()}, repeats)
        found[f"{name}, eager ms"] = cost["eager"]
        found[f"{name}, speed-up"] = cost["eager"] / cost["compiled"]
    return found


def measure_layouts(worlds: int, nodes: int, *, density: float, repeats: int) -> dict[str, float]:
    """Measure sparse over dense and PyG over sparse, forward and with backward."""
    spec, graph = random_graphs(worlds, nodes, density)
    three = encoders(spec, {"sparse": SPARSE, "dense": DENSE, "pyg": PYG})
    found = {"neighbours": density * (nodes - 1)}
    for name, step in (("forward", forward), ("forward+backward", forward_backward)):
        cost = best({key: step(encoder, graph) for key, encoder in three.items()}, repeats)
        found[f"{name}, sparse ms"] = cost["sparse"]
        found[f"{name}, dense speed-up"] = cost["sparse"] / cost["dense"]
        found[f"{name}, over PyG"] = cost["pyg"] / cost["sparse"]
    return found


def measure_choice(agents: int, *, nodes_in_all: int, repeats: int) -> dict[str, float]:
    """Measure dense and `auto` over the better of dense and sparse, forward and backward, at two widths."""
    nodes = agents + OBSTACLES
    spec = GraphSpec(nodes, NODE_FEATURES, Radius(1.0), position_dim=2)
    graph = spec.zeros(max(nodes_in_all // nodes, 1))
    graph["x"] = torch.randn(graph["x"].shape)
    graph["pos"] = 2 * torch.rand(graph["pos"].shape)
    graph["node_mask"][:] = True
    found = {"neighbours": float(spec.edges_of(graph).mask.sum() / graph["node_mask"].sum())}
    for hidden, layers in ((32, 2), (64, 3)):
        size = {"hidden": hidden, "layers": layers}
        three = encoders(spec, {"auto": size, "sparse": {**size, **SPARSE}, "dense": {**size, **DENSE}})
        cost = best({key: forward_backward(encoder, graph) for key, encoder in three.items()}, repeats)
        better = min(cost["sparse"], cost["dense"])
        found[f"width {hidden}, dense over sparse"] = cost["dense"] / cost["sparse"]
        found[f"width {hidden}, auto over the better"] = cost["auto"] / better
    return found


def run(quick: bool = False) -> dict[str, dict[str, float]]:
    """Measure everything; `quick` uses small batches, two sizes and one compilation."""
    torch.set_num_threads(1)
    torch.manual_seed(0)
    worlds, repeats = (8, 3) if quick else (64, 15)
    sizes = [(8, 0.5), (20, 0.5)] if quick else SIZES
    found = {
        f"layouts, {nodes} nodes, density {density}": measure_layouts(
            worlds, nodes, density=density, repeats=repeats
        )
        for nodes, density in sizes
    }
    for agents in TEAMS[:1] if quick else TEAMS:
        found[f"teams, {agents} agents"] = measure_choice(
            agents, nodes_in_all=500 if quick else 8_000, repeats=repeats
        )
    compiled = (
        {"sparse": SPARSE} if quick else {"sparse": SPARSE, "dense": DENSE, "GATv2Conv": {"kind": "gnn"}}
    )
    graphs = random_graphs(worlds, 20, 0.2)
    for name, options in compiled.items():
        found[f"compiled, {name}, 20 nodes"] = measure_compilation(options, graphs, repeats)
    return found


TEAMS = (3, 7, 10, 20, 50)
OBSTACLES = 3

SIZES = [
    (8, 0.25),
    (8, 0.5),
    (8, 1.0),
    (20, 0.1),
    (20, 0.2),
    (20, 0.5),
    (20, 1.0),
    (50, 0.05),
    (50, 0.1),
    (50, 0.2),
    (50, 0.5),
    (100, 0.05),
    (100, 0.1),
    (100, 0.2),
]


if __name__ == "__main__":
    main(run, __doc__)
