"""Policy heads in which edges act, and the embeddings of edges."""

from __future__ import annotations

import torch
from tensordict import TensorDict
from torch import Tensor, nn
from torch.nn import functional

from edgewise.graphs.actions import ActionLayout, EdgesDiscrete
from edgewise.graphs.edges import Edges
from edgewise.graphs.keys import GRAPH, MASK
from edgewise.graphs.spec import GraphSpec
from edgewise.models.config import ModelConfig
from edgewise.models.distributions.masked import JointCategorical, MaskedCategorical, check_mask
from edgewise.models.heads import Head, feed_forward, orthogonal


class EdgeEmbedding(nn.Module):
    """Embeddings of edge slots, from the embeddings of both ends and the edge's own features.

    Args:
        graph: shape of the graphs, for the width of edge features.
        channels: width of node embeddings.
        width: of the result.
    """

    def __init__(self, graph: GraphSpec, *, channels: int, width: int) -> None:
        super().__init__()
        self.source = orthogonal(nn.Linear(channels, width), 1.0)
        self.target = orthogonal(nn.Linear(channels, width, bias=False), 1.0)
        features = graph.edge_features
        self.features = orthogonal(nn.Linear(features, width, bias=False), 1.0) if features else None

    def forward(self, h: Tensor, edges: Edges) -> Tensor:
        """Compute `[*B, E, width]` from node embeddings `[*B, N, C]`."""
        source, target = edges.index.unbind(-2)
        mixed = rows_at(self.source(h), source) + rows_at(self.target(h), target)
        if self.features is not None and edges.attr is not None:
            mixed = mixed + self.features(edges.attr.masked_fill(~edges.mask.unsqueeze(-1), 0.0))
        return functional.relu(mixed)


class EdgeScore(EdgeEmbedding):
    """An MLP over edge slots, from the embeddings of both ends and the edge's own features.

    Args:
        graph: shape of the graphs, for the width of edge features.
        config: widths and gain.
        outputs: numbers per edge slot.
    """

    def __init__(self, graph: GraphSpec, config: ModelConfig, *, outputs: int) -> None:
        channels, (width, *rest) = config.encoder.hidden, config.head_hidden or (config.encoder.hidden,)
        super().__init__(graph, channels=channels, width=width)
        self.score = feed_forward(width, rest, outputs, gain=config.policy_gain)

    def forward(self, h: Tensor, edges: Edges) -> Tensor:
        """Compute `[*B, E, outputs]` from node embeddings `[*B, N, C]`."""
        return self.score(super().forward(h, edges))


def rows_at(rows: Tensor, index: Tensor) -> Tensor:
    """Return the rows of `[*B, N, C]` at `index [*B, K]`, `[*B, K, C]`."""
    if index.ndim == 1:
        return rows.index_select(0, index)
    return rows.gather(-2, index.unsqueeze(-1).expand(*index.shape, rows.shape[-1]))


class EdgesDiscreteHead(Head):
    """K logits per edge slot; slots without an edge take action 0.

    The log-probability is that of all edges together.

    Args:
        graph: shape and edge source of the graphs.
        config: widths and gain.
        layout: number of actions.
    """

    def __init__(self, graph: GraphSpec, config: ModelConfig, *, layout: EdgesDiscrete) -> None:
        super().__init__(graph, config, layout=layout)
        self.score = EdgeScore(graph, config, outputs=layout.num_actions)

    def forward(self, h: Tensor, tensordict: TensorDict) -> JointCategorical:
        """Return a distribution over actions `[*B, E]`, batch `[*B]`."""
        edges = self.graph.edges_of(tensordict.get(GRAPH))
        mask = tensordict.get(MASK, None)
        if mask is not None:
            check_mask(mask, needed=edges.mask, what="action of an edge")
        return JointCategorical(self.score(h, edges), mask, counted=edges.mask)


class ChooseEdgeHead(Head):
    """One logit per edge slot; absent edges and those that `action_mask [*B, E]` forbids have none.

    Args:
        graph: shape and edge source of the graphs.
        config: widths and gain.
        layout: the action layout.
    """

    takes_prior = True

    def __init__(self, graph: GraphSpec, config: ModelConfig, *, layout: ActionLayout) -> None:
        super().__init__(graph, config, layout=layout)
        self.score = EdgeScore(graph, config, outputs=1)

    def forward(self, h: Tensor, tensordict: TensorDict) -> MaskedCategorical:
        """Return a distribution over edge slots, batch `[*B]`."""
        edges = self.graph.edges_of(tensordict.get(GRAPH))
        mask = tensordict.get(MASK, None)
        allowed = edges.mask if mask is None else edges.mask & mask
        check_mask(allowed, what="edge")
        scores = self.score(h, edges).squeeze(-1)
        return MaskedCategorical(self.with_prior(scores, tensordict), allowed)


class ChooseEdgePerGroupHead(Head):
    """One logit per edge of a group, and one learned logit for choosing none.

    Groups without an allowed edge choose none with probability one. The log-probability is that of all groups
    together. The number of groups and their size are read from `action_mask [*B, G, 1 + K]`, so a model
    trained on some networks runs on others.
    """

    takes_prior = True

    def __init__(self, graph: GraphSpec, config: ModelConfig, *, layout: ActionLayout) -> None:
        super().__init__(graph, config, layout=layout)
        self.score = EdgeScore(graph, config, outputs=1)
        self.none = nn.Parameter(torch.zeros(1))

    def forward(self, h: Tensor, tensordict: TensorDict) -> JointCategorical:
        """Return a distribution over actions `[*B, G]`, batch `[*B]`."""
        mask = tensordict.get(MASK)
        check_mask(mask, needed=mask.new_ones(mask.shape[:-1]), what="edge of a group")
        groups, size = mask.shape[-2], mask.shape[-1] - 1
        edges = self.graph.edges_of(tensordict.get(GRAPH))
        first = Edges(
            edges.index[..., : groups * size],
            edges.mask[..., : groups * size],
            None if edges.attr is None else edges.attr[..., : groups * size, :],
        )
        scores = self.score(h, first).squeeze(-1).unflatten(-1, (groups, size))
        logits = torch.cat((self.none.to(scores.dtype).expand(*scores.shape[:-1], 1), scores), -1)
        return JointCategorical(self.with_prior(logits, tensordict), mask, counted=mask[..., 1:].any(-1))
