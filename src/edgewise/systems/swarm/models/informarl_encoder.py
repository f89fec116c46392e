"""The InforMARL network as an encoder: each agent's own graph is built from the shared graph."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, Self

import torch
from tensordict import TensorDict
from torch import Tensor, nn

from edgewise.graphs.edges import needs_static_shapes
from edgewise.graphs.proximity import Radius
from edgewise.graphs.spec import GraphSpec
from edgewise.models.config import EncoderConfig
from edgewise.models.encoders.encoder import GraphEncoder
from edgewise.models.heads import orthogonal
from edgewise.systems.swarm.models.informarl import TYPES, InforMARLTrunk

TRUNK = 16
"""Width of the trunk's embeddings, as published."""
AGENT = 0
OBSERVED = 6
"""An agent's own observation beside its graph: velocity, position and offset to the goal."""


class InforMARLEncoder(GraphEncoder):
    """Embeds each agent from a graph of all entities relative to this agent, followed by two layers.

    The graphs are built from the shared one, so rollouts never store a graph for every agent. Agents are the
    nodes of type 0; their features are velocity and offset to the goal. A critic pools an agent's whole graph
    by its mean; an actor uses the agent's own row and its own observation.

    Args:
        graph: graph of a swarm, with goals as nodes and edges within a radius.
        config: `hidden`, `layers`, `heads` and `remedies`.
        reads: the agent's `own` row, or its `whole` graph.
    """

    @classmethod
    def build(cls, graph: GraphSpec, config: EncoderConfig, *, role: Literal["actor", "critic"]) -> Self:
        """Build the encoder of an actor (own row) or of a critic (whole graph)."""
        return cls(graph, config, reads="own" if role == "actor" else "whole")

    def __init__(self, graph: GraphSpec, config: EncoderConfig, *, reads: Literal["own", "whole"]) -> None:
        super().__init__(graph, config)
        shape = (graph.node_features, graph.position_dim, graph.node_types)
        if shape != (OBSERVED - 2, 2, TYPES) or not isinstance(graph.edges, Radius):
            raise ValueError(
                "encoder kind informarl needs the graph of a swarm: nodes with velocity and offset to the "
                f"goal, positions in a plane, three types, edges within a radius; got {graph}"
            )
        self.reads, width = reads, config.hidden
        self.trunk = InforMARLTrunk(
            getattr(config, "remedies", None),
            hidden=TRUNK,
            heads=config.heads,
            layers=config.layers,
            radius=torch.inf,
        )
        inputs = TRUNK + (OBSERVED if reads == "own" else 0)
        gain = nn.init.calculate_gain("tanh")
        self.base = nn.Sequential(
            nn.LayerNorm(inputs),
            orthogonal(nn.Linear(inputs, width), gain),
            nn.Tanh(),
            nn.LayerNorm(width),
            orthogonal(nn.Linear(width, width), gain),
            nn.Tanh(),
            nn.LayerNorm(width),
        )

    def forward(self, graph: TensorDict) -> Tensor:
        """Return embeddings `[*B, N, C]`; zero for absent nodes and for nodes other than agents."""
        lead, flat = graph["node_mask"].shape[:-1], self._flat(graph)
        exists = flat["node_mask"]
        features, distance = self.ego_graphs(flat)
        agents = features.shape[1]
        h = self.trunk(features.flatten(0, 1), _for_each(distance, agents))
        h = h.unflatten(0, (-1, agents))
        if self.reads == "own":
            observed = (flat["x"][..., :2], flat["pos"], flat["x"][..., 2:])
            own = torch.cat([part[:, :agents] for part in observed], -1)
            read = torch.cat((own, h.diagonal(dim1=1, dim2=2).movedim(-1, 1)), -1)
        else:
            present = exists.unsqueeze(1).unsqueeze(-1)
            read = (h * present).sum(2) / present.sum(2).clamp(min=1)
        is_agent = exists[:, :agents] & (flat["node_type"][:, :agents] == AGENT)
        embedded = self.base(read).masked_fill(~is_agent.unsqueeze(-1), 0.0)
        rows = nn.functional.pad(embedded, (0, 0, 0, exists.shape[-1] - agents))
        return rows.view(*lead, *rows.shape[1:])

    def ego_graphs(self, graph: Mapping[str, Tensor]) -> tuple[Tensor, Tensor]:
        """Build the graph of each agent i over all entities j.

        Args:
            graph: entries of graphs of batch `[B]`. Counting the agents synchronises the device; where shapes
                must not depend on data, every entity gets a graph.

        Returns:
            Features `[B, A, E, 7]`: velocity, position and goal of j minus velocity, position and position of
            i, and the type; zero for absent entities. Distances `[B, E, E]` of connected entities, else 0.
        """
        place, exists = graph["pos"], graph["node_mask"]
        velocity, goal = graph["x"][..., :2], place + graph["x"][..., 2:]
        agents = place.shape[1] if needs_static_shapes(place) else int((graph["node_type"][0] == AGENT).sum())
        kind = graph["node_type"].to(place.dtype).unsqueeze(1).unsqueeze(-1)
        seen = [
            part.unsqueeze(1) - from_.unsqueeze(2)[:, :agents]
            for part, from_ in ((velocity, velocity), (place, place), (goal, place))
        ]
        features = torch.cat((*seen, kind.expand(-1, agents, -1, -1)), -1)
        assert isinstance(self.graph.edges, Radius)
        distance = (
            torch.linalg.vector_norm(place.unsqueeze(2) - place.unsqueeze(1), dim=-1)  # cdist is not in ONNX
            if torch.compiler.is_exporting()
            else torch.cdist(place, place, compute_mode="donot_use_mm_for_euclid_dist")
        )
        heard = exists.unsqueeze(1) & exists.unsqueeze(2) & (distance < self.graph.edges.radius)
        return features.masked_fill(~exists[:, None, :, None], 0.0), distance.masked_fill(~heard, 0.0)

    @staticmethod
    def _flat(graph: TensorDict) -> dict[str, Tensor]:
        """Return the entries of graphs `[*B]` as `[B]`, with zero features and positions of absent nodes."""
        nodes = graph["node_mask"].shape[-1]
        flat = {name: graph[name].reshape(-1, nodes) for name in ("node_mask", "node_type")}
        absent = ~flat["node_mask"].unsqueeze(-1)
        rows = {name: graph[name].reshape(-1, nodes, graph[name].shape[-1]) for name in ("x", "pos")}
        return flat | {name: values.masked_fill(absent, 0.0) for name, values in rows.items()}

    @torch.no_grad()
    def attention(self, graph: TensorDict) -> Tensor:
        """Return each agent's attention in the last layer, mean over heads, `[*B, N, N]`; zero elsewhere."""
        features, distance = self.ego_graphs(self._flat(graph))
        agents, nodes = features.shape[1:3]
        _, traces = self.trunk.traced(features.flatten(0, 1), _for_each(distance, agents))
        alpha = traces.alpha[-1].mean(1).unflatten(0, (-1, agents))
        own = alpha.diagonal(dim1=1, dim2=2).movedim(-1, 1)
        return nn.functional.pad(own, (0, 0, 0, nodes - agents)).view(*graph.batch_size, nodes, nodes)

    @torch.no_grad()
    def diagnostics(self, graph: TensorDict) -> dict[str, Tensor]:
        """Return the root mean square of the embeddings and the largest logit of every layer, 0-d each."""
        features, distance = self.ego_graphs(self._flat(graph))
        hearing = _for_each(distance, features.shape[1])
        _, traces = self.trunk.traced(features.flatten(0, 1), hearing)
        logits = {f"layer_{k}/logit_max": each.abs().amax() for k, each in enumerate(traces.logits)}
        return {"embedding/rms": traces.embedding.square().mean().sqrt(), **logits}


def _for_each(distance: Tensor, agents: int) -> Tensor:
    """Return distances `[B, E, E]` once for each agent, `[B * A, E, E]`."""
    return distance.unsqueeze(1).expand(-1, agents, -1, -1).flatten(0, 1)
