"""An environment with any source of edges and any action layout, to export every combination."""

from typing import Literal

import torch

import edgewise as ew
from edgewise.graphs.topology import TopologyBank

NODES, EDGES = 5, 8
PAIRS = ((0, 1), (1, 0), (1, 2), (2, 3), (3, 1), (0, 4), (4, 4), (2, 0))
SOURCES = {
    "explicit": lambda: ew.Explicit(EDGES),
    "explicit with features": lambda: ew.Explicit(EDGES, 2),
    "topology": lambda: ew.Topology(TopologyBank.from_edge_lists([PAIRS, PAIRS[:5]])),
    "radius": lambda: ew.Radius(0.6),
    "nearest": lambda: ew.Nearest(3),
    "nearest in slots": lambda: ew.Nearest(2, pairs=False),
}
LAYOUTS = {
    "node": ew.ChooseNode,
    "edge": ew.ChooseEdge,
    "member": lambda: ew.ChooseFromSet(3),
    "edge member": lambda: ew.ChooseFromSet(3, members="edges"),
    "groups": lambda: ew.ChooseEdgePerGroup(2, 2),
    "edges": lambda: ew.EdgesDiscrete(2),
    "agents": lambda: ew.AgentsDiscrete(2, 3),
    "agents with numbers": lambda: ew.AgentsContinuous(2, 2),
    "option": lambda: ew.Category(3),
    "amount": lambda: ew.Amount(-1, 1, dim=2),
    "amounts of nodes": lambda: ew.PerNode(ew.Amount()),
    "amounts of edges": lambda: ew.PerEdge(ew.Amount()),
    "options of edges": lambda: ew.PerEdge(ew.Category(2)),
    "node, then amount": lambda: ew.Then(node=ew.ChooseNode(), amount=ew.Amount()),
    "node, then edge": lambda: ew.Then(node=ew.ChooseNode(), edge=ew.ChooseEdge(), amount=ew.Amount()),
    "node and options": lambda: ew.Joint(node=ew.ChooseNode(), kinds=ew.PerNode(ew.Category(2))),
}


class AnyConfig(ew.Config):
    """Settings."""

    edges: str = "explicit"
    layout: str = "node"
    graph_features: Literal[0, 2] = 0
    max_steps: int = 3


class AnyEnv(ew.GraphEnv[AnyConfig]):
    """Random graphs, in which nothing that is done matters."""

    stage_settings = ()

    def setup(self):
        edges = SOURCES[self.config.edges]()
        features = self.config.graph_features
        self.graph = ew.GraphSpec(
            NODES, 2, edges=edges, position_dim=2, node_types=2, graph_features=features
        )
        self.actions = LAYOUTS[self.config.layout]()

    def spawn(self, count):
        exists = torch.rand(count, NODES, generator=self.generator) < 0.8
        exists[:, : max(2, self.num_agents)] = True
        if self.config.edges == "topology":
            exists[:] = True
        place = torch.rand(count, NODES, 2, generator=self.generator)
        return {"exists": exists, "place": place, "x": torch.randn(count, NODES, 2, generator=self.generator)}

    def advance(self, state, action):
        shape = (len(state["x"]), self.num_agents) if self.num_agents else (len(state["x"]),)
        return ew.Transition({"x": -state["x"]}, reward=torch.zeros(shape))

    def observe(self, state):
        seen = {"graph": self.seen(state)}
        if isinstance(self.actions, ew.ChooseFromSet):
            seen["choices"] = self.filled(state).long().argsort(dim=-1, descending=True, stable=True)[:, :3]
        return seen

    def seen(self, state):
        graph = {"x": state["x"], "node_mask": state["exists"], "pos": state["place"]}
        graph["node_type"] = (torch.arange(NODES) >= 2).long().expand(len(state["x"]), -1)
        pairs = torch.tensor(PAIRS)
        if isinstance(self.graph.edges, ew.Explicit):
            graph["edge_index"] = pairs.T.expand(len(state["x"]), -1, -1)
            graph["edge_mask"] = state["exists"][:, pairs].all(-1)
            if self.graph.edges.num_features:
                graph["edge_attr"] = state["place"][:, pairs[:, 0]]
        if isinstance(self.graph.edges, ew.Topology):
            graph["topology"] = (state["place"][:, 0, 0] > 0.5).long()
        if self.graph.graph_features:
            graph["u"] = state["x"][:, 0]
        return graph

    def linked(self, state):
        return self.graph.edges_of(self.seen(state)).mask

    def filled(self, state):
        return self.linked(state) if self.config.layout == "edge member" else state["exists"]

    def mask(self, state):
        match self.config.layout:
            case "node":
                return state["exists"]
            case "member" | "edge member":
                return torch.arange(3) < self.filled(state).sum(-1, keepdim=True)
            case "groups":
                edges = self.linked(state)[:, :4].unflatten(-1, (2, 2))
                return torch.cat((torch.ones(len(edges), 2, 1, dtype=torch.bool), edges), -1)
            case "node, then edge":
                edges = self.linked(state).unsqueeze(1).expand(-1, NODES, -1)
                return {"node": state["exists"], "edge": edges}
        return None
