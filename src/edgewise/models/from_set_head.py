"""The policy head that chooses one member of a set of nodes or edges."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from tensordict import NestedKey, TensorDict
from torch import Tensor, nn

from edgewise.graphs.actions import ChooseFromSet
from edgewise.graphs.edges import Edges
from edgewise.graphs.keys import CHOICES, GRAPH, MASK
from edgewise.graphs.spec import GraphSpec
from edgewise.models.config import ModelConfig
from edgewise.models.distributions.masked import MaskedCategorical, check_mask
from edgewise.models.edge_heads import EdgeScore
from edgewise.models.heads import Head, feed_forward
from edgewise.models.vmap_guard import may_compact


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
