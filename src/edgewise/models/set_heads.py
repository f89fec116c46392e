"""Policy heads in which edges act, a set of nodes is chosen, or one member of a set is chosen."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from tensordict import NestedKey, TensorDict
from torch import Tensor, nn
from torch.distributions import Distribution
from torch.nn import functional

from edgewise.config.errors import ConfigError
from edgewise.graphs.actions import ActionLayout, ChooseFromSet, EdgesDiscrete
from edgewise.graphs.dense import dense_edges
from edgewise.graphs.edges import Edges
from edgewise.graphs.keys import GRAPH, MASK
from edgewise.graphs.spec import GraphSpec
from edgewise.graphs.topology import Topology
from edgewise.models.config import ModelConfig
from edgewise.models.distributions.independent_set import IndependentSet
from edgewise.models.distributions.masked import JointCategorical, MaskedCategorical, check_mask
from edgewise.models.distributions.set_tables import SetTables, set_tables
from edgewise.models.heads import Head, allowed_nodes, feed_forward, orthogonal
from edgewise.models.set_decoding import best_maximal_set, take_in_turn
from edgewise.models.vmap_guard import may_compact

CHOICES = "choices"


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


class ChooseIndependentSetHead(Head):
    """One logit per node; nodes that an edge joins in either direction are never chosen together.

    With `config.sets` of `whole`, `build` returns a `MaximalSetHead` instead.
    """

    outputs = {"logits": "logit of each node's probability, given that no neighbour was taken before it"}  # noqa: RUF012
    decoding = (
        "Go through the allowed nodes in order, and take a node if its logit is positive, or for a random "
        "action with the probability sigmoid(logit), unless an edge joins it to a node that was taken before."
    )
    decode = staticmethod(take_in_turn)
    takes_prior = True

    def __init__(self, graph: GraphSpec, config: ModelConfig, *, layout: ActionLayout) -> None:
        super().__init__(graph, config, layout=layout)
        self.score = feed_forward(config.encoder.hidden, config.head_hidden, 1, gain=config.policy_gain)

    @classmethod
    def build(cls, graph: GraphSpec, config: ModelConfig, *, layout: ActionLayout) -> Head:
        """Build the head that `config.sets` names."""
        return (MaximalSetHead if config.sets == "whole" else cls)(graph, config, layout=layout)

    def forward(self, h: Tensor, tensordict: TensorDict) -> IndependentSet:
        """Return a distribution over sets `[*B, N]` bool, batch `[*B]`."""
        edges = self.graph.edges_of(tensordict.get(GRAPH))
        adjacent = dense_edges(Edges(edges.index, edges.mask, None, edges.complete), h.shape[-2]).mask
        logits = self.tensors(h, tensordict)["logits"]
        return IndependentSet(logits, allowed_nodes(tensordict), adjacent=adjacent)

    def tensors(self, h: Tensor, tensordict: TensorDict) -> dict[str, Tensor]:
        """Return the logits of nodes; sets are taken from them outside of the network."""
        return {"logits": self.with_prior(self.score(h).squeeze(-1), tensordict)}


class MaximalSetHead(Head):
    """One logit per node; the logit of a maximal set is the sum over its members, see `MaximalSet`.

    The sets of every topology are listed, or put into a diagram, when the head is built; see `set_tables`. So
    the graphs need `Topology` edges.
    """

    outputs = {"logits": "logit of each node; that of a set is the sum over its members"}  # noqa: RUF012
    decoding = (
        "A maximal set is a set of allowed nodes of which no two are joined by an edge and to which no "
        "further allowed node can be added. Take the one with the largest sum of logits, or for a random "
        "action sample one with the softmax of these sums."
    )
    decode = staticmethod(best_maximal_set)
    takes_prior = True

    def __init__(self, graph: GraphSpec, config: ModelConfig, *, layout: ActionLayout) -> None:
        super().__init__(graph, config, layout=layout)
        self.score = feed_forward(config.encoder.hidden, config.head_hidden, 1, gain=config.policy_gain)
        self.set_graph(graph)

    def set_graph(self, graph: GraphSpec) -> None:
        """Prepare the maximal sets of other topologies."""
        super().set_graph(graph)
        tables: SetTables = set_tables(_adjacency(graph))
        self.tables = tables.to(next(self.score.parameters()).device)

    def forward(self, h: Tensor, tensordict: TensorDict) -> Distribution:
        """Return a distribution over sets `[*B, N]` bool, batch `[*B]`."""
        logits, graph = self.tensors(h, tensordict)["logits"], tensordict.get(GRAPH).get("topology")
        return self.tables.distribution(logits, allowed_nodes(tensordict), graph=graph)

    def tensors(self, h: Tensor, tensordict: TensorDict) -> dict[str, Tensor]:
        """Return the logits of nodes; sets are taken from them outside of the network."""
        return {"logits": self.with_prior(self.score(h).squeeze(-1), tensordict)}


def _adjacency(graph: GraphSpec) -> Tensor:
    """Return which nodes of each topology an edge joins in either direction, `[K, N, N]` bool."""
    if not isinstance(graph.edges, Topology):
        raise ConfigError(
            "maximal sets are prepared in advance, which needs graphs with Topology edges, "
            f"not {type(graph.edges).__name__}",
            hint="set model.sets to in_turn",
        )
    bank = graph.edges.bank
    one_way = dense_edges(Edges(bank.index, bank.mask, None), graph.num_nodes).mask
    return one_way | one_way.transpose(-1, -2)


class ChooseFromSetHead(Head):
    """One logit per member of the set that an environment offers.

    The members are `choices [*B, K]` int64: node slots or edge slots, depending on the layout. `action_mask`
    `[*B, K]` is true where a place is filled. For sets without padding, see `RaggedCategorical`.

    Args:
        graph: shape and edge source of the graphs.
        config: widths and gain.
        layout: whether the members are nodes or edges.
    """

    in_keys: Sequence[NestedKey] = (GRAPH, MASK, CHOICES)
    takes_prior = True

    def __init__(self, graph: GraphSpec, config: ModelConfig, *, layout: ChooseFromSet) -> None:
        super().__init__(graph, config, layout=layout)
        self.of_edges = layout.members == "edges"
        width, gain = config.encoder.hidden, config.policy_gain
        self.score: nn.Module = (
            EdgeScore(graph, config, outputs=1)
            if self.of_edges
            else feed_forward(width, config.head_hidden, 1, gain=gain)
        )

    def forward(self, h: Tensor, tensordict: TensorDict) -> MaskedCategorical:
        """Return a distribution over places in the set, batch `[*B]`."""
        mask, choices = tensordict.get(MASK), tensordict.get(CHOICES)
        check_mask(mask, what="choice")
        place = torch.where(mask, choices, 0)
        if self.of_edges:
            scores = self._edge_scores(h, self.graph.edges_of(tensordict.get(GRAPH)), place, mask)
        else:
            scores = self.score(h).squeeze(-1).gather(-1, place)
        return MaskedCategorical(self.with_prior(scores, tensordict), mask)

    def _edge_scores(self, h: Tensor, edges: Edges, place: Tensor, mask: Tensor) -> Tensor:
        """Score the edges at `place` `[*B, K]`, `[*B, K]`; zero where `mask` is false, if padding is dropped.

        The batch becomes one list of edges between the nodes of all graphs.
        """
        nodes, slots = h.shape[-2], edges.mask.shape[-1]
        flat = mask.flatten()
        # Sizes that are traced stay symbolic: neither `len` nor `Size.numel` would keep them.
        count = flat.shape[0]
        graphs = torch.arange(mask[..., 0].numel(), device=h.device).view(*mask.shape[:-1], 1)
        compact = may_compact(self, h)
        chosen = flat.nonzero().squeeze(-1) if compact else torch.arange(count, device=h.device)
        graph = graphs.expand_as(mask).flatten().index_select(0, chosen)
        edge = graph * slots + place.flatten().index_select(0, chosen)
        source, target = (end.flatten().index_select(0, edge) for end in edges.index.unbind(-2))
        attr = None if edges.attr is None else edges.attr.flatten(0, -2).index_select(0, edge)
        index = torch.stack((source, target)) + graph * nodes
        listed = Edges(index, torch.ones_like(edge, dtype=torch.bool), attr)
        scores = self.score(h.reshape(-1, h.shape[-1]), listed).squeeze(-1)
        if not compact:
            return scores.view_as(mask)
        return scores.new_zeros(count).index_copy(0, chosen, scores).view_as(mask)
