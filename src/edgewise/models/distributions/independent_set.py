"""Sets of nodes with no two adjacent, chosen node by node: log-probabilities are exact and cheap."""

from __future__ import annotations

from typing import ClassVar

import torch
from torch import Generator, Tensor
from torch.distributions import Distribution
from torch.distributions.constraints import Constraint
from torch.nn import functional

from edgewise.models.distributions.masked import Shape


class IndependentSet(Distribution):
    """Nodes are asked in the order of their slots whether to join; those beside a chosen one are not asked.

    Each node that is asked joins with its own odds. Every draw is an independent set and every independent
    set of allowed nodes can be drawn. Because the order is fixed, a set says which nodes were asked (those
    without an earlier chosen neighbour), so its probability is one product: `p(S) = prod over asked i of
    sigmoid(logit_i) if i in S else 1 - sigmoid(logit_i)`. Nothing is summed over orders, and nothing but the
    set need be stored. Sets need not be maximal: a node may decline. An empty mask is no error here, since
    the empty set is always legal.

    The order is part of the model: slots that come first are asked first. Drawing takes N small steps, each
    on the whole batch; log-probabilities take none.

    Args:
        logits: `[*B, N]`.
        allowed: `[*B, N]` bool.
        adjacent: `[*B, N, N]` bool, true where two nodes may not both be chosen; either direction counts.
        entropy_samples: draws behind an entropy, two or more.
    """

    arg_constraints: ClassVar[dict[str, Constraint]] = {}
    has_rsample = False

    def __init__(
        self, logits: Tensor, allowed: Tensor, *, adjacent: Tensor, entropy_samples: int = 2
    ) -> None:
        if entropy_samples < 2:
            raise ValueError(f"an entropy needs two draws or more, got entropy_samples={entropy_samples}")
        self.logits, self.allowed, self.entropy_samples = logits, allowed, entropy_samples
        self.blocks = (adjacent | adjacent.transpose(-1, -2)).triu(1)
        super().__init__(logits.shape[:-1], logits.shape[-1:], validate_args=False)

    @property
    def mode(self) -> Tensor:
        """Each asked node joins where its odds are above one half, `[*B, N]` bool."""
        return self._decide(self.logits > 0)

    @property
    def deterministic_sample(self) -> Tensor:
        """The same as `mode`."""
        return self.mode

    @torch.no_grad()
    def sample(self, sample_shape: Shape = (), generator: Generator | None = None) -> Tensor:
        """`[*sample_shape, *B, N]` bool."""
        odds = torch.sigmoid(self.logits).expand(*sample_shape, *self.logits.shape)
        return self._decide(
            torch.rand(odds.shape, dtype=odds.dtype, device=odds.device, generator=generator) < odds
        )

    def log_prob(self, value: Tensor) -> Tensor:
        """`[*B]` of sets `[*B, N]` bool; of one that is not legal a very large negative number."""
        chosen = value.bool()
        asked = self._asked(chosen)
        signed = torch.where(chosen, self.logits, -self.logits)
        total = functional.logsigmoid(signed).masked_fill(~asked, 0.0).sum(-1)
        return total.masked_fill((chosen & ~asked).any(-1), torch.finfo(total.dtype).min)

    def entropy(self) -> Tensor:
        """`[*B]`, an estimate from a few draws; its mean and the mean of its gradient are exact.

        By the chain rule, the entropy is the expected sum of the asked nodes' own entropies. The gradient
        that comes from which nodes are asked is carried by the log-probability of each draw, with the other
        draws as baseline.
        """
        sets = self.sample((self.entropy_samples,))
        each = functional.softplus(self.logits) - self.logits * torch.sigmoid(self.logits)
        total = each.masked_fill(~self._asked(sets), 0.0).sum(-1)
        detached = total.detach()
        others = (detached.sum(0) - detached) / (self.entropy_samples - 1)
        score = self.log_prob(sets)
        return (total + (detached - others) * (score - score.detach())).mean(0)

    def _asked(self, chosen: Tensor) -> Tensor:
        """Allowed nodes without an earlier chosen neighbour, `[..., N]` bool."""
        return self.allowed & ~(self.blocks & chosen.unsqueeze(-1)).any(-2)

    def _decide(self, willing: Tensor) -> Tensor:
        """The set that results when the willing nodes are asked one after another."""
        willing = willing & self.allowed
        blocked = torch.zeros_like(willing)
        for node in range(willing.shape[-1]):
            joins = willing[..., node : node + 1] & ~blocked[..., node : node + 1]
            blocked = blocked | (self.blocks[..., node, :] & joins)
        return willing & ~blocked
