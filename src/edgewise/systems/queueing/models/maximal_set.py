"""A distribution over maximal independent sets: the score of a set is the sum of its members' logits."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import torch
from torch import Generator, Tensor, nn
from torch.distributions import Distribution
from torch.distributions.constraints import Constraint
from torch.nn import functional

from edgewise.models.distributions.masked import MaskedCategorical, Shape
from edgewise.systems.queueing.sets.bits import WORD, pack, unpack


class SetLists(nn.Module):
    """All maximal independent sets of each of G graphs.

    Args:
        adjacency: `[G, N, N]` bool, symmetric, no loops.
        sets: `[S, N]` bool for each graph, from `maximal_sets`.

    Attributes:
        words: `[G, S, W]` int64, the sets as bits.
        listed: `[G, S]` bool, false for padding.
        neighbours: `[G, N, W]` int64, the neighbours of each node.
        lower: `[N, W]` int64, the nodes with a lower index than each node.
        alone: `[N, W]` int64, each node itself.
    """

    words: Tensor
    listed: Tensor
    neighbours: Tensor
    lower: Tensor
    alone: Tensor

    def __init__(self, adjacency: Tensor, sets: Sequence[Tensor]) -> None:
        super().__init__()
        found = [pack(each) for each in sets]
        most = max(map(len, found))
        square = torch.ones(adjacency.shape[1:], dtype=torch.bool)
        tables = {
            "words": torch.stack([functional.pad(one, (0, 0, 0, most - len(one))) for one in found]),
            "listed": torch.stack([torch.arange(most) < len(one) for one in found]),
            "neighbours": pack(adjacency),
            "lower": pack(square.tril(-1)),
            "alone": pack(square.tril().triu()),
        }
        for name, table in tables.items():
            self.register_buffer(name, table, persistent=False)

    def distribution(self, logits: Tensor, allowed: Tensor, *, graph: Tensor) -> MaximalSet:
        """Return the distribution over the sets of allowed nodes; see `MaximalSet`."""
        return MaximalSet(logits, allowed, lists=self, graph=graph)


class MaximalSet(Distribution):
    """A distribution over the maximal independent sets of the allowed nodes, `p(S) ∝ exp(Σ logits of S)`.

    The maximal independent sets of the allowed nodes are the intersections of the listed sets of the whole
    graph with the allowed nodes. If several listed sets have the same intersection, only one counts: the one
    that adds nodes that are not allowed greedily, in the order of their indices. So probabilities, entropies
    and the mode are exact, and with equivariant logits the distribution is equivariant. Ties of the mode are
    broken by the order of the list. If no node is allowed, the empty set has probability 1.

    The constructor takes N small steps, each on the lists of the whole batch.

    Args:
        logits: `[*B, N]`; ignored for nodes that are not allowed.
        allowed: `[*B, N]` bool.
        lists: the maximal independent sets of some graphs.
        graph: `[*B]` int64, the graph of each world.
    """

    arg_constraints: ClassVar[dict[str, Constraint]] = {}
    has_rsample = False

    def __init__(self, logits: Tensor, allowed: Tensor, *, lists: SetLists, graph: Tensor) -> None:
        words, open_nodes = lists.words[graph], pack(allowed).unsqueeze(-2)
        # An allowed node is blocked by allowed members; any other also by members of lower index.
        blockers = open_nodes | torch.where(allowed.unsqueeze(-1), 0, lists.lower)
        blockers = (lists.neighbours[graph] & blockers) | lists.alone
        logits = logits.masked_fill(~allowed, 0.0)
        counted, scores = lists.listed[graph], logits.new_zeros(words.shape[:-1])
        for node in range(logits.shape[-1]):
            counted = counted & (words & blockers[..., node, None, :]).any(-1)
            member = (words[..., node // WORD] >> node % WORD & 1).to(scores.dtype)
            scores = torch.addcmul(scores, member, logits[..., node, None])
        self.words = words & open_nodes
        self.places = MaskedCategorical(scores, counted)
        super().__init__(logits.shape[:-1], logits.shape[-1:], validate_args=False)

    @property
    def mode(self) -> Tensor:
        """The most probable set, `[*B, N]` bool."""
        return self._sets_at(self.places.mode)

    @property
    def deterministic_sample(self) -> Tensor:
        """The same as `mode`."""
        return self.mode

    def sample(self, sample_shape: Shape = (), generator: Generator | None = None) -> Tensor:
        """Sample sets `[*sample_shape, *B, N]` bool."""
        return self._sets_at(self.places.sample(sample_shape, generator))

    def log_prob(self, value: Tensor) -> Tensor:
        """Return log-probabilities `[*B]` of sets `[*B, N]` bool; of others a very large negative number."""
        same = (self.words == pack(value.bool()).unsqueeze(-2)).all(-1)
        impossible = torch.finfo(self.places.logits.dtype).min
        return self.places.logits.masked_fill(~same, impossible).amax(-1)

    def entropy(self) -> Tensor:
        """Return entropies `[*B]`."""
        return self.places.entropy()

    def _sets_at(self, place: Tensor) -> Tensor:
        """Return the sets at positions `[..., *B]` of the lists, `[..., *B, N]` bool."""
        words = self.words.expand(*place.shape, *self.words.shape[-2:])
        index = place[..., None, None].expand(*place.shape, 1, words.shape[-1])
        return unpack(words.gather(-2, index).squeeze(-2), self._event_shape[0])
