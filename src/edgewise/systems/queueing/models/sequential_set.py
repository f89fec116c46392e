"""A distribution over independent sets of any graph, sampled node by node, whose mode is the heaviest set."""

from __future__ import annotations

from typing import ClassVar

import torch
from torch import Generator, Tensor, nn
from torch.distributions import Distribution
from torch.distributions.constraints import Constraint
from torch.nn import functional

from edgewise.models.distributions.masked import Shape, check_finite
from edgewise.systems.queueing.sets.heaviest import heaviest_maximal_set


class SetGraphs(nn.Module):
    """The edges of each of G graphs.

    Args:
        adjacency: `[G, N, N]` bool, symmetric, no loops.
    """

    adjacency: Tensor

    def __init__(self, adjacency: Tensor) -> None:
        super().__init__()
        self.register_buffer("adjacency", adjacency, persistent=False)

    def distribution(self, logits: Tensor, allowed: Tensor, *, graph: Tensor) -> SequentialSet:
        """Return the distribution over the sets of allowed nodes; see `SequentialSet`."""
        return SequentialSet(logits, allowed, adjacent=self.adjacency[graph])


class SequentialSet(Distribution):
    """Independent sets sampled in the order of the nodes, each with the odds of what it would block.

    For graphs whose maximal sets can neither be listed nor put into a diagram. A node is taken with
    probability `sigmoid(logit - Σ m_j)` over the later neighbours that are still free, and
    `m_j = softplus(logit_j - Σ m_k)` over the later neighbours of j. This is exact sampling of
    `exp(Σ logits)` on trees whose nodes come before their children, and an approximation elsewhere. A node
    without a free later neighbour is always taken, so all maximal sets are possible, and few others are.

    Log-probabilities are exact for this way of sampling, so the score-function gradient is. The mode is that
    of `MaximalSet`: the maximal set with the largest sum of logits, from an exact solver, world by world.

    Args:
        logits: `[*B, N]`; ignored for nodes that are not allowed.
        allowed: `[*B, N]` bool.
        adjacent: `[*B, N, N]` bool, symmetric, no loops.
        entropy_samples: number of samples of the entropy estimate, at least 2.
    """

    arg_constraints: ClassVar[dict[str, Constraint]] = {}
    has_rsample = False

    def __init__(
        self, logits: Tensor, allowed: Tensor, *, adjacent: Tensor, entropy_samples: int = 2
    ) -> None:
        logits = logits.masked_fill(~allowed, 0.0)
        check_finite(logits)
        self.logits, self.allowed, self.entropy_samples = logits, allowed, entropy_samples
        self.adjacent = adjacent & allowed.unsqueeze(-1) & allowed.unsqueeze(-2)
        self.later = self.adjacent.triu(1)
        self.messages = self._messages()
        super().__init__(logits.shape[:-1], logits.shape[-1:], validate_args=False)

    def _messages(self) -> Tensor:
        """Return how much each node is worth to those before it, `[*B, N]`."""
        found: list[Tensor] = []
        for node in reversed(range(self.logits.shape[-1])):
            score = self.logits[..., node]
            if found:
                beyond = torch.stack(found, -1)
                score = score - (beyond * self.later[..., node, node + 1 :]).sum(-1)
            found.insert(0, functional.softplus(score).masked_fill(~self.allowed[..., node], 0.0))
        return torch.stack(found, -1)

    @property
    def mode(self) -> Tensor:
        """The heaviest maximal set of allowed nodes, `[*B, N]` bool."""
        size = self.logits.shape[-1]
        parts = (self.adjacent.reshape(-1, size, size), self.logits.reshape(-1, size), self.allowed)
        rows = zip(parts[0].cpu(), parts[1].detach().cpu(), parts[2].reshape(-1, size).cpu(), strict=True)
        found = torch.stack([heaviest_maximal_set(*row) for row in rows])
        return found.view(self.logits.shape).to(self.logits.device)

    @property
    def deterministic_sample(self) -> Tensor:
        """The same as `mode`."""
        return self.mode

    @torch.no_grad()
    def sample(self, sample_shape: Shape = (), generator: Generator | None = None) -> Tensor:
        """Sample sets `[*sample_shape, *B, N]` bool."""
        shape = (*sample_shape, *self.logits.shape)
        draw = torch.rand(shape, dtype=self.logits.dtype, device=self.logits.device, generator=generator)
        free, taken = self.allowed.expand(shape), []
        for node in range(shape[-1]):
            rivals = self.later[..., node, :] & free
            odds = torch.sigmoid(self.logits[..., node] - (self.messages * rivals).sum(-1))
            takes = free[..., node] & ((draw[..., node] < odds) | ~rivals.any(-1))
            free = free & ~(self.adjacent[..., node, :] & takes.unsqueeze(-1))
            taken.append(takes)
        return torch.stack(taken, -1)

    def log_prob(self, value: Tensor) -> Tensor:
        """Return log-probabilities `[*B]` of sets `[*B, N]`; of illegal ones a very large negative number."""
        chosen = value.bool()
        considered, certain, logit = self._decisions(chosen)
        terms = functional.logsigmoid(torch.where(chosen, logit, -logit))
        total = terms.masked_fill(~considered | certain, 0.0).sum(-1)
        illegal = torch.where(chosen, ~considered, considered & certain).any(-1)
        return total.masked_fill(illegal, torch.finfo(total.dtype).min)

    def entropy(self) -> Tensor:
        """Estimate entropies `[*B]` from a few samples; the estimate and its gradient are unbiased."""
        sets = self.sample((self.entropy_samples,))
        considered, certain, logit = self._decisions(sets)
        each = functional.softplus(logit) - logit * torch.sigmoid(logit)
        total = each.masked_fill(~considered | certain, 0.0).sum(-1)
        detached = total.detach()
        baseline = (detached.sum(0) - detached) / (self.entropy_samples - 1)
        score = self.log_prob(sets)
        return (total + (detached - baseline) * (score - score.detach())).mean(0)

    def _decisions(self, chosen: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Return which nodes were considered, which of them are taken for certain, and all logits.

        Each is `[..., N]`. A node is considered if no neighbour was taken before it.
        """
        place = torch.arange(chosen.shape[-1], device=chosen.device)
        takers = self.adjacent & chosen.unsqueeze(-1)
        first = torch.where(takers, place.unsqueeze(-1), len(place)).amin(-2)
        rivals = self.later & (first.unsqueeze(-2) >= place.unsqueeze(-1))
        logit = self.logits - (rivals.to(self.messages.dtype) @ self.messages.unsqueeze(-1)).squeeze(-1)
        return self.allowed & (first > place), ~rivals.any(-1), logit
