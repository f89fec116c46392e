"""The InforMARL network as an encoder: each agent's own graph is built from the shared graph."""

from __future__ import annotations

from typing import Literal, Self

import torch
from tensordict import TensorDict
from torch import Tensor, nn

from edgewise.graphs.rules import Radius
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
        lead, flat = graph.batch_size, self._zero_absent(graph.reshape(-1))
        exists = flat["node_mask"]
        features, distance = self.ego_graphs(flat)
        agents = features.shape[1]
        h = self.trunk(features.flatten(0, 1), distance.repeat_interleave(agents, 0))
        h = h.unflatten(0, (-1, agents))
        if self.reads == "own":
            observed = (flat["x"][..., :2], flat["pos"], flat["x"][..., 2:])
            own = torch.cat([part[:, :agents] for part in observed], -1)
            read = torch.cat((own, h.diagonal(dim1=1, dim2=2).movedim(-1, 1)), -1)
        else:
            present = exists.unsqueeze(1).unsqueeze(-1)
            read = (h * present).sum(2) / present.sum(2).clamp(min=1)
        embedded = self.base(read).masked_fill(~exists[:, :agents].unsqueeze(-1), 0.0)
        rows = nn.functional.pad(embedded, (0, 0, 0, exists.shape[-1] - agents))
        return rows.view(*lead, *rows.shape[1:])

    def ego_graphs(self, graph: TensorDict) -> tuple[Tensor, Tensor]:
        """Build the graph of each agent i over all entities j.

        Args:
            graph: graphs of batch `[B]`. Counting the agents synchronises the device.

        Returns:
            Features `[B, A, E, 7]`: velocity, position and goal of j minus velocity, position and position of
            i, and the type; zero for absent entities. Distances `[B, E, E]` of connected entities, else 0.
        """
        place, exists = graph["pos"], graph["node_mask"]
        velocity, goal = graph["x"][..., :2], place + graph["x"][..., 2:]
        agents = int((graph["node_type"][0] == AGENT).sum())
        kind = graph["node_type"].to(place.dtype).view(len(place), 1, -1, 1)
        seen = [
            part.unsqueeze(1) - from_.unsqueeze(2)[:, :agents]
            for part, from_ in ((velocity, velocity), (place, place), (goal, place))
        ]
        features = torch.cat((*seen, kind.expand(-1, agents, -1, -1)), -1)
        assert isinstance(self.graph.edges, Radius)
        distance = torch.cdist(place, place, compute_mode="donot_use_mm_for_euclid_dist")
        heard = exists.unsqueeze(1) & exists.unsqueeze(2) & (distance < self.graph.edges.radius)
        return features.masked_fill(~exists[:, None, :, None], 0.0), distance.masked_fill(~heard, 0.0)

    @staticmethod
    def _zero_absent(graph: TensorDict) -> TensorDict:
        """Return the graphs `[B]` with features and positions of absent nodes set to zero."""
        absent = ~graph["node_mask"].unsqueeze(-1)
        return graph.copy().update({name: graph[name].masked_fill(absent, 0.0) for name in ("x", "pos")})

    @torch.no_grad()
    def attention(self, graph: TensorDict) -> Tensor:
        """Return each agent's attention in the last layer, mean over heads, `[*B, N, N]`; zero elsewhere."""
        features, distance = self.ego_graphs(self._zero_absent(graph.reshape(-1)))
        agents, nodes = features.shape[1:3]
        _, traces = self.trunk.traced(features.flatten(0, 1), distance.repeat_interleave(agents, 0))
        alpha = traces.alpha[-1].mean(1).unflatten(0, (-1, agents))
        own = alpha.diagonal(dim1=1, dim2=2).movedim(-1, 1)
        return nn.functional.pad(own, (0, 0, 0, nodes - agents)).view(*graph.batch_size, nodes, nodes)

    @torch.no_grad()
    def diagnostics(self, graph: TensorDict) -> dict[str, Tensor]:
        """Return the root mean square of the embeddings and the largest logit of every layer, 0-d each."""
        features, distance = self.ego_graphs(self._zero_absent(graph.reshape(-1)))
        hearing = distance.repeat_interleave(features.shape[1], 0)
        _, traces = self.trunk.traced(features.flatten(0, 1), hearing)
        logits = {f"layer_{k}/logit_max": each.abs().amax() for k, each in enumerate(traces.logits)}
        return {"embedding/rms": traces.embedding.square().mean().sqrt(), **logits}
