"""Random padded graphs with garbage in their padding, for tests of models."""

import torch
from tensordict import TensorDict

from edgewise.graphs.edges import Explicit
from edgewise.graphs.pair_features import Displacement, Distance
from edgewise.graphs.proximity import Radius
from edgewise.graphs.spec import GraphSpec

NODES, FEATURES, TYPES = 7, 3, 3


def explicit_spec(*, nodes=NODES, edges=20, edge_features=2):
    return GraphSpec(nodes, FEATURES, Explicit(edges, edge_features), node_types=TYPES)


def radius_spec(*, nodes=NODES, radius=1.0):
    rule = Radius(radius, features=(Displacement(), Distance()))
    return GraphSpec(nodes, FEATURES, rule, position_dim=2, node_types=TYPES)


def random_graph(spec, *lead, seed=0, dtype=torch.float32, full=False):
    """Simple graphs of one to N nodes (all N if `full`), whose absent entries hold NaN and wild indices."""
    generator = torch.Generator().manual_seed(seed)
    nodes = spec.num_nodes
    graph = spec.zeros(*lead)
    count = torch.randint(nodes if full else 1, nodes + 1, (*lead, 1), generator=generator)
    exists = torch.arange(nodes) < count
    graph["node_mask"] = exists
    absent = ~exists.unsqueeze(-1)
    for key in sorted({"x", "pos"} & set(graph.keys())):
        draw = torch.rand(graph[key].shape, generator=generator) * 2 - 1
        graph[key] = draw.masked_fill(absent, torch.nan).to(dtype)
    graph["node_type"] = torch.randint(0, TYPES, (*lead, nodes), generator=generator)
    if isinstance(spec.edges, Explicit):
        _draw_edges(graph, spec, generator, dtype)
    return graph


def _draw_edges(graph, spec, generator, dtype):
    """Distinct ordered pairs of existing nodes, in as many slots as there are such pairs."""
    lead, nodes = tuple(graph.batch_size), spec.num_nodes
    exists = graph["node_mask"]
    pair = exists.unsqueeze(-1) & exists.unsqueeze(-2) & ~torch.eye(nodes, dtype=torch.bool)
    order = torch.rand(*lead, nodes * nodes, generator=generator).masked_fill(~pair.flatten(-2), 2.0)
    slot = order.argsort(-1)[..., : spec.edges.num_edges]
    mask = order.gather(-1, slot) < 0.7
    index = torch.stack((slot // nodes, slot % nodes), -2)
    graph["edge_index"] = index.masked_fill(~mask.unsqueeze(-2), 0)
    graph["edge_mask"] = mask
    if spec.edges.num_features:
        draw = torch.rand(*mask.shape, spec.edges.num_features, generator=generator) * 2 - 1
        graph["edge_attr"] = draw.masked_fill(~mask.unsqueeze(-1), torch.nan).to(dtype)


def swarm(agents, *, worlds=16, seed=0):
    """Agents, their goals and 3 obstacles in a square of side 2 with sensing radius 1: spec and graphs."""
    nodes = 2 * agents + 3
    spec = GraphSpec(nodes, 6, Radius(1.0), position_dim=2, node_types=3)
    generator = torch.Generator().manual_seed(seed)
    pos = torch.rand(worlds, nodes, 2, generator=generator) * 2 - 1
    target = pos.clone()
    target[:, :agents] = pos[:, agents : 2 * agents]
    velocity = torch.randn(worlds, nodes, 2, generator=generator)
    velocity[:, agents:] = 0
    kinds = torch.tensor([0] * agents + [1] * agents + [2] * 3)
    graph = TensorDict(
        {
            "x": torch.cat((velocity, pos, target - pos), -1),
            "pos": pos,
            "node_type": kinds.expand(worlds, nodes),
            "node_mask": torch.ones(worlds, nodes, dtype=torch.bool),
        },
        [worlds],
    )
    return spec, graph


def observation(spec, *lead, seed=0, agents=0, full=True):
    """What a policy sees: the graph and, where agents act, which of them are active."""
    graph = random_graph(spec, *lead, seed=seed, full=full)
    seen = TensorDict({"graph": graph}, lead)
    if agents:
        seen["agents"] = TensorDict({"active": torch.ones(*lead, agents, dtype=torch.bool)}, lead)
    return seen
