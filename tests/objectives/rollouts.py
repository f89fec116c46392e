"""Rollouts of random ragged graphs with episodes that end inside, and a small graph critic to value them."""

import torch
from tensordict import TensorDict
from tensordict.nn import TensorDictModuleBase
from torch import nn
from torch_geometric.nn import GATv2Conv

from edgewise.graphs.edges import Explicit
from edgewise.graphs.spec import GraphSpec
from edgewise.models.bridge import union

SPEC = GraphSpec(num_nodes=6, node_features=3, edges=Explicit(num_edges=9))


def random_graphs(count, *, generator, spec=SPEC, fewest=1):
    """Graphs of `fewest` to N nodes with any number of edges; what is padded holds rubbish."""
    nodes = torch.randint(fewest, spec.num_nodes + 1, (count, 1), generator=generator)
    edges = torch.randint(0, spec.edges.num_edges + 1, (count, 1), generator=generator)
    ends = torch.rand(count, 2, spec.edges.num_edges, generator=generator) * nodes.unsqueeze(-1)
    return TensorDict(
        {
            "x": torch.randn(count, spec.num_nodes, spec.node_features, generator=generator),
            "node_mask": torch.arange(spec.num_nodes) < nodes,
            "edge_index": ends.long(),
            "edge_mask": torch.arange(spec.edges.num_edges) < edges,
        },
        [count],
    )


def random_rollout(rows, steps, *, seed=0, ends=0.3, terminated=0.5, agents=0, spec=SPEC):
    """A rollout `[rows, steps]` where each next graph is the next root unless an episode ends between."""
    generator = torch.Generator().manual_seed(seed)
    lead = (agents,) if agents else ()
    fewest = max(agents, 1)
    root, sequence = random_graphs(rows, generator=generator, spec=spec, fewest=fewest), []
    for _ in range(steps):
        after = random_graphs(rows, generator=generator, spec=spec, fewest=fewest)
        done = torch.rand(rows, 1, generator=generator) < ends
        over = done & (torch.rand(rows, 1, generator=generator) < terminated)
        following = {
            "graph": after,
            "reward": torch.randn(rows, *lead, 1, generator=generator),
            "done": done,
            "terminated": over,
            "truncated": done & ~over,
        }
        sequence.append(TensorDict({"graph": root, "next": following}, [rows]))
        fresh = random_graphs(rows, generator=generator, spec=spec, fewest=fewest)
        root = torch.where(done.squeeze(-1), fresh, after)
    return torch.stack(sequence, 1)


class SmallCritic(TensorDictModuleBase):
    """Two GATv2 layers over the union of all graphs; one value per graph, or one per agent."""

    def __init__(self, *, agents=0, compact=True, trailing=True, hidden=8, heads=2, spec=SPEC):
        super().__init__()
        self.in_keys, self.out_keys = ["graph"], ["state_value"]
        self.agents, self.compact, self.trailing, self.spec = agents, compact, trailing, spec
        options = {"heads": heads, "add_self_loops": False}
        self.first = GATv2Conv(spec.node_features, hidden // heads, **options)
        self.second = GATv2Conv(hidden, hidden // heads, **options)
        self.value = nn.Linear(hidden, 1)
        self.calls = []

    def forward(self, tensordict):
        graph = tensordict["graph"]
        self.calls.append(graph.shape.numel())
        flat = union(graph, self.spec, compact=self.compact)
        h = self.first(flat.x, flat.edge_index).relu()
        h = flat.nodes(self.second(h, flat.edge_index).relu())
        if self.agents:
            value = self.value(h[..., : self.agents, :])
        else:
            value = self.value(h.sum(-2) / graph["node_mask"].sum(-1, keepdim=True).clamp(min=1))
        return tensordict.set("state_value", value if self.trailing else value.squeeze(-1))


def value_of(critic, graphs):
    """Values of a batch of graphs `[B]`, one graph at a time: the loop that no one should run."""
    with torch.no_grad():
        return torch.stack([critic(TensorDict({"graph": graph}, []))["state_value"] for graph in graphs])
