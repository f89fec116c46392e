"""Categorical distributions over sets of different sizes, without padding."""

from __future__ import annotations

from typing import ClassVar

import torch
from torch import Generator, Size, Tensor
from torch.distributions import Distribution
from torch.distributions.constraints import Constraint

from edgewise.models.distributions.masked import Shape, check_finite, check_mask, gumbel_like


class RaggedCategorical(Distribution):
    """A categorical distribution over each of S sets, which are concatenated in one flat tensor.

    It equals `MaskedCategorical` on the padded sets.

    Args:
        logits: `[L]`, the members of set 0, then of set 1, and so on.
        segment: `[L]` int64, the set of each member, never decreasing; S, at the end, for padding.
        num_segments: S.

    Example:
        >>> dist = RaggedCategorical(torch.zeros(3), torch.tensor([0, 0, 1]), num_segments=2)
        >>> dist.log_prob(torch.tensor([1, 0])).exp()
        tensor([0.5000, 1.0000])
    """

    arg_constraints: ClassVar[dict[str, Constraint]] = {}
    has_rsample = False

    def __init__(self, logits: Tensor, segment: Tensor, *, num_segments: int) -> None:
        self.segment, sets = segment, num_segments + 1
        counts = torch.zeros(sets, dtype=torch.int64, device=segment.device)
        counts = counts.index_add(0, segment, torch.ones_like(segment))
        self.counts, self._first = counts[:-1], counts.cumsum(0) - counts
        check_mask((self.counts > 0).unsqueeze(-1), what="choice")
        check_finite(logits.masked_fill(segment == num_segments, 0.0))
        self.logits = segment_log_softmax(logits, segment, sets)
        super().__init__(Size((num_segments,)), validate_args=False)

    @property
    def mode(self) -> Tensor:
        """The most probable member of each set, `[S]` int64, as its position in the set."""
        return self._best(self.logits)

    @property
    def deterministic_sample(self) -> Tensor:
        """The same as `mode`."""
        return self.mode

    @torch.no_grad()
    def sample(self, sample_shape: Shape = (), generator: Generator | None = None) -> Tensor:
        """Sample positions in the sets, `[*sample_shape, S]` int64."""
        logits = self.logits.expand(*sample_shape, *self.logits.shape)
        noisy = logits + gumbel_like(logits, generator)
        return self._best(noisy)

    def log_prob(self, value: Tensor) -> Tensor:
        """Return log-probabilities `[S]` of positions `[S]`; outside the set a very large negative number."""
        inside = (value >= 0) & (value < self.counts)
        flat = self._first[:-1] + torch.where(inside, value, 0)
        return self.logits[flat].masked_fill(~inside, torch.finfo(self.logits.dtype).min)

    def entropy(self) -> Tensor:
        """Return entropies `[S]`."""
        entropy_terms = -self.logits.exp() * self.logits
        total = torch.zeros_like(self._first, dtype=entropy_terms.dtype).index_add(
            0, self.segment, entropy_terms
        )
        return total[:-1]

    def _best(self, scores: Tensor) -> Tensor:
        """Return the position of the largest of the scores `[..., L]` in each set, the first of equals."""
        index = self.segment.expand_as(scores)
        shape = (*scores.shape[:-1], self._first.shape[0])
        highest = scores.new_full(shape, -torch.inf).scatter_reduce(-1, index, scores, "amax")
        place = torch.arange(scores.shape[-1], device=scores.device) - self._first[self.segment]
        place = torch.where(scores == highest.gather(-1, index), place, scores.shape[-1])
        first = torch.full(shape, scores.shape[-1], dtype=torch.int64, device=scores.device)
        return first.scatter_reduce(-1, index, place, "amin")[..., :-1]


def segment_log_softmax(logits: Tensor, segment: Tensor, num_segments: int) -> Tensor:
    """Compute the log-softmax of `logits [L]` within each segment; `segment [L]` int64."""
    highest = logits.new_full((num_segments,), -torch.inf)
    highest = highest.scatter_reduce(0, segment, logits.detach(), "amax")
    centred = logits - highest[segment]
    total = torch.zeros_like(highest).index_add(0, segment, centred.exp())
    return centred - total.log()[segment]
