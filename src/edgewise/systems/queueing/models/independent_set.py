"""A distribution over independent sets of nodes, sampled node by node, with exact log-probabilities."""

from __future__ import annotations

from typing import ClassVar

import torch
from torch import Generator, Tensor
from torch.distributions import Distribution
from torch.distributions.constraints import Constraint
from torch.nn import functional

from edgewise.models.distributions.masked import Shape, check_finite


class IndependentSet(Distribution):
    """Independent sets sampled node by node, in the order of the node indices.

    A node is skipped if it is not allowed or a neighbour was chosen before; otherwise it is chosen with
    probability `sigmoid(logit)`. Every sample is an independent set, and every independent set of allowed
    nodes can be sampled. Since the order is fixed, a set determines which nodes were not skipped, so its
    log-probability is exact: `p(S) = Π sigmoid(logit_i) if i in S else 1 - sigmoid(logit_i)` over these
    nodes. Sets need not be maximal. An empty mask is no error, since the empty set is always legal.

    The order is part of the model: nodes with a lower index come first. Sampling takes N small steps, each on
    the whole batch; log-probabilities take one.

    Args:
        logits: `[*B, N]`.
        allowed: `[*B, N]` bool.
        adjacent: `[*B, N, N]` bool, true where two nodes may not both be chosen, in either direction.
        entropy_samples: number of samples of the entropy estimate, at least 2.

    Example:
        >>> everything = torch.ones(1, 2, dtype=torch.bool)
        >>> dist = IndependentSet(torch.zeros(1, 2), everything, adjacent=torch.ones(1, 2, 2).bool())
        >>> dist.log_prob(torch.tensor([[True, False]])).exp(), dist.log_prob(~everything).exp()
        (tensor([0.5000]), tensor([0.2500]))
    """

    arg_constraints: ClassVar[dict[str, Constraint]] = {}
    has_rsample = False

    def __init__(
        self, logits: Tensor, allowed: Tensor, *, adjacent: Tensor, entropy_samples: int = 2
    ) -> None:
        if entropy_samples < 2:
            raise ValueError(f"entropy_samples must be at least 2, got {entropy_samples}")
        check_finite(logits.masked_fill(~allowed, 0.0))
        self.logits, self.allowed, self.entropy_samples = logits, allowed, entropy_samples
        self.blocks = (adjacent | adjacent.transpose(-1, -2)).triu(1)
        super().__init__(logits.shape[:-1], logits.shape[-1:], validate_args=False)

    @property
    def mode(self) -> Tensor:
        """The set of nodes with a probability above one half that are not skipped, `[*B, N]` bool."""
        return self._sequential_set(self.logits > 0)

    @property
    def deterministic_sample(self) -> Tensor:
        """The same as `mode`."""
        return self.mode

    @torch.no_grad()
    def sample(self, sample_shape: Shape = (), generator: Generator | None = None) -> Tensor:
        """Sample sets `[*sample_shape, *B, N]` bool."""
        odds = torch.sigmoid(self.logits).expand(*sample_shape, *self.logits.shape)
        return self._sequential_set(
            torch.rand(odds.shape, dtype=odds.dtype, device=odds.device, generator=generator) < odds
        )

    def log_prob(self, value: Tensor) -> Tensor:
        """Return log-probabilities `[*B]` of sets `[*B, N]`; of illegal ones a very large negative number."""
        chosen = value.bool()
        considered = self._considered(chosen)
        signed = torch.where(chosen, self.logits, -self.logits)
        total = functional.logsigmoid(signed).masked_fill(~considered, 0.0).sum(-1)
        return total.masked_fill((chosen & ~considered).any(-1), torch.finfo(total.dtype).min)

    def entropy(self) -> Tensor:
        """Estimate entropies `[*B]` from a few samples; the estimate and its gradient are unbiased.

        By the chain rule, the entropy is the expected sum of the entropies of the nodes that are not skipped.
        The gradient with respect to which nodes are skipped is a score-function estimate with a leave-one-out
        baseline.
        """
        sets = self.sample((self.entropy_samples,))
        each = functional.softplus(self.logits) - self.logits * torch.sigmoid(self.logits)
        total = each.masked_fill(~self._considered(sets), 0.0).sum(-1)
        detached = total.detach()
        baseline = (detached.sum(0) - detached) / (self.entropy_samples - 1)
        score = self.log_prob(sets)
        return (total + (detached - baseline) * (score - score.detach())).mean(0)

    def _considered(self, chosen: Tensor) -> Tensor:
        """Return the allowed nodes without an earlier chosen neighbour, `[..., N]` bool."""
        return self.allowed & ~(self.blocks & chosen.unsqueeze(-1)).any(-2)

    def _sequential_set(self, candidates: Tensor) -> Tensor:
        """Return the set that takes the candidates one after another, without neighbours of chosen nodes."""
        candidates = candidates & self.allowed
        blocked = torch.zeros_like(candidates)
        for node in range(candidates.shape[-1]):
            joins = candidates[..., node : node + 1] & ~blocked[..., node : node + 1]
            blocked = blocked | (self.blocks[..., node, :] & joins)
        return candidates & ~blocked
