"""One uneven world for tests of models and layouts: no two sizes are equal, so that no mix-up goes unseen.

Worlds, nodes, agents, features, edges, width and heads all differ. Graphs have spare slots for nodes and
edges, which hold garbage; one has a single node, one has nodes that no path joins; there are two types.
"""

import torch
from tensordict import TensorDict

from edgewise.graphs.edges import Explicit
from edgewise.graphs.spec import GraphSpec
from edgewise.models.config import EncoderConfig

WORLDS, NODES, AGENTS, FEATURES, EDGES, EDGE_FEATURES, GRAPH_FEATURES, TYPES = 5, 8, 3, 6, 17, 4, 1, 2
HIDDEN, HEADS, LAYERS = 14, 7, 2
"""Width of an encoder; a head is 2 wide, which no other size here is."""
COUNTS = (7, 6, 4, 5, 1)
"""Nodes that exist in each world; one slot exists in none."""
LINKS = (
    ((0, 1), (1, 2), (2, 0), (3, 4), (5, 6), (6, 5), (4, 4)),
    ((0, 5), (5, 0), (1, 2), (3, 2)),
    ((0, 1), (1, 0), (2, 3)),
    ((4, 0), (0, 4), (4, 1), (1, 2), (2, 4)),
    ((0, 0),),
)
"""Edges of each world; several nodes cannot be reached from others."""


def uneven_spec(**changes):
    """The shape of the graphs."""
    own = {"node_types": TYPES, "graph_features": GRAPH_FEATURES, **changes}
    return GraphSpec(NODES, FEATURES, Explicit(EDGES, EDGE_FEATURES), **own)


def uneven_encoder(**changes):
    """Settings of an encoder of an odd shape."""
    return EncoderConfig(**{"hidden": HIDDEN, "heads": HEADS, "layers": LAYERS, **changes})


def uneven_root(spec=None, *, seed=0, garbage=torch.nan):
    """An observation `[WORLDS]` with agents, of which some are not active; spare slots hold `garbage`."""
    spec = spec or uneven_spec()
    draw = torch.Generator().manual_seed(seed)
    graph = spec.zeros(WORLDS)
    exists = torch.arange(NODES) < torch.tensor(COUNTS).unsqueeze(-1)
    graph["node_mask"] = exists
    graph["x"] = torch.randn(WORLDS, NODES, FEATURES, generator=draw).masked_fill(
        ~exists.unsqueeze(-1), garbage
    )
    if spec.node_types:
        graph["node_type"] = torch.randint(0, TYPES, (WORLDS, NODES), generator=draw)
    if spec.graph_features:
        graph["u"] = torch.randn(WORLDS, GRAPH_FEATURES, generator=draw)
    index = torch.zeros(WORLDS, 2, EDGES, dtype=torch.int64)
    mask = torch.zeros(WORLDS, EDGES, dtype=torch.bool)
    for world, links in enumerate(LINKS):
        slots = torch.randperm(EDGES, generator=draw)[: len(links)].sort().values
        index[world][:, slots] = torch.tensor(links).T
        mask[world, slots] = True
    graph["edge_index"], graph["edge_mask"] = index, mask
    attr = torch.randn(WORLDS, EDGES, EDGE_FEATURES, generator=draw)
    graph["edge_attr"] = attr.masked_fill(~mask.unsqueeze(-1), garbage)
    active = torch.arange(AGENTS) < torch.tensor(COUNTS).unsqueeze(-1)
    active[0, 1] = False
    return TensorDict({"graph": graph, "agents": TensorDict({"active": active}, [WORLDS])}, [WORLDS])
