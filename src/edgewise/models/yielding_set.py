"""Independent sets whose nodes give way to open neighbours: never wasteful in order, exact in probability."""

from __future__ import annotations

import torch
from torch import Generator, Tensor
from torch.nn import functional

from edgewise.models.distributions import Shape
from edgewise.models.independent_set import IndependentSet


class YieldingSet(IndependentSet):
    """Nodes are asked by rank whether to join, and know which neighbours they would keep out.

    A node that is asked joins with log-odds `logit_i - Σ yields_j` over its rivals j: neighbours that come
    later and are still open, that is allowed and beside no chosen node. A node without rivals keeps nobody
    out and joins for certain. So what one node does depends on what those before it did, as in a schedule
    that a person would make, though the network ran once.

    The order depends on the state alone, so a set still says who was asked, what rivals it then had and what
    it answered: its probability is one product, exact, with nothing to sum and nothing but the set to store.
    Every maximal set of allowed nodes can be drawn. A drawn set need not be maximal: a node may give way to
    a rival that is later kept out by another.

    Drawing takes N small steps; log-probabilities take none but products of `[N, N]` matrices. With
    equivariant inputs and ranks the distribution is equivariant, but for nodes of equal rank, which are asked
    in the order of their slots.

    Args:
        logits: `[*B, N]`.
        allowed: `[*B, N]` bool.
        adjacent: `[*B, N, N]` bool, true where two nodes may not both be chosen; either direction counts.
        yields: `[*B, N]`, how far a node in the way lowers the log-odds of a neighbour.
        rank: `[*B, N]`, larger ones are asked earlier; slot order if not given.
        entropy_samples: draws behind an entropy, two or more.
    """

    def __init__(
        self,
        logits: Tensor,
        allowed: Tensor,
        *,
        adjacent: Tensor,
        yields: Tensor,
        rank: Tensor | None = None,
        entropy_samples: int = 2,
    ) -> None:
        rank = torch.zeros_like(logits) if rank is None else rank.detach()
        self.order = rank.masked_fill(~allowed, -torch.inf).argsort(dim=-1, descending=True, stable=True)
        self.place = self.order.argsort(-1)
        across = self.order.unsqueeze(-2).expand_as(adjacent)
        joined = (adjacent | adjacent.transpose(-1, -2)).gather(-1, across)
        joined = joined.gather(-2, self.order.unsqueeze(-1).expand_as(adjacent))
        self.yields = yields.masked_fill(~allowed, 0.0).gather(-1, self.order)
        super().__init__(
            logits.masked_fill(~allowed, 0.0).gather(-1, self.order),
            allowed.gather(-1, self.order),
            adjacent=joined,
            entropy_samples=entropy_samples,
        )

    @property
    def mode(self) -> Tensor:
        """Each asked node joins where its odds are above one half, `[*B, N]` bool."""
        return self._by_slot(self._answer(torch.full_like(self.logits, 0.5)))

    @torch.no_grad()
    def sample(self, sample_shape: Shape = (), generator: Generator | None = None) -> Tensor:
        """`[*sample_shape, *B, N]` bool."""
        return self._by_slot(self._drawn(sample_shape, generator))

    def log_prob(self, value: Tensor) -> Tensor:
        """`[*B]` of sets `[*B, N]` bool; of one that cannot be drawn a very large negative number."""
        order = self.order.expand(value.shape)
        return self._log_prob(value.bool().gather(-1, order))

    def entropy(self) -> Tensor:
        """`[*B]`, an estimate from a few draws; its mean and the mean of its gradient are exact."""
        sets = self._drawn((self.entropy_samples,), None)
        logits, asked, sure = self._questions(sets)
        each = functional.softplus(logits) - logits * torch.sigmoid(logits)
        total = each.masked_fill(~asked | sure, 0.0).sum(-1)
        detached = total.detach()
        others = (detached.sum(0) - detached) / (self.entropy_samples - 1)
        score = self._log_prob(sets)
        return (total + (detached - others) * (score - score.detach())).mean(0)

    def _log_prob(self, chosen: Tensor) -> Tensor:
        """`[...]` of sets `[..., N]` in the order of asking."""
        logits, asked, sure = self._questions(chosen)
        each = functional.logsigmoid(torch.where(chosen, logits, -logits))
        total = each.masked_fill(~asked | sure, 0.0).sum(-1)
        impossible = (chosen & ~asked) | (asked & sure & ~chosen)
        return total.masked_fill(impossible.any(-1), torch.finfo(total.dtype).min)

    def _questions(self, chosen: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """How those before let each node be met: its log-odds, if it is asked, if it is sure, `[..., N]`."""
        beside, dtype = self.blocks | self.blocks.transpose(-1, -2), self.logits.dtype
        before = chosen.unsqueeze(-2).expand(*chosen.shape, chosen.shape[-1]).tril(-1)
        kept_out = (before.to(dtype) @ beside.to(dtype)) > 0
        rivals = self.blocks & self.allowed.unsqueeze(-2) & ~kept_out
        logits = self.logits - (rivals.to(dtype) @ self.yields.unsqueeze(-1)).squeeze(-1)
        asked = self.allowed & ~kept_out.diagonal(dim1=-2, dim2=-1)
        return logits, asked, ~rivals.any(-1)

    def _drawn(self, sample_shape: Shape, generator: Generator | None) -> Tensor:
        """Sets `[*sample_shape, *B, N]` in the order of asking."""
        like = self.logits.expand(*sample_shape, *self.logits.shape)
        return self._answer(torch.rand(like.shape, dtype=like.dtype, device=like.device, generator=generator))

    def _answer(self, luck: Tensor) -> Tensor:
        """The set in the order of asking that results when nodes join whose odds exceed their luck."""
        beside = self.blocks | self.blocks.transpose(-1, -2)
        open_nodes, chosen = self.allowed.expand(luck.shape), []
        for node in range(luck.shape[-1]):
            rivals = open_nodes & self.blocks[..., node, :]
            logit = self.logits[..., node] - (rivals * self.yields).sum(-1)
            willing = (luck[..., node] < torch.sigmoid(logit)) | ~rivals.any(-1)
            chosen.append(willing & open_nodes[..., node])
            open_nodes = open_nodes & ~(beside[..., node, :] & chosen[-1].unsqueeze(-1))
        return torch.stack(chosen, -1)

    def _by_slot(self, chosen: Tensor) -> Tensor:
        """From the order of asking to that of slots."""
        return chosen.gather(-1, self.place.expand(chosen.shape))
