"""Maximal independent sets weighed as a whole: a set's log-odds are the sum of its members' logits."""

from __future__ import annotations

from typing import ClassVar

import torch
from torch import Generator, Tensor
from torch.distributions import Distribution
from torch.distributions.constraints import Constraint

from edgewise.models.distributions import MaskedCategorical, Shape


class MaximalSet(Distribution):
    """One of the sets of allowed nodes that no further allowed node can join, `p(S) ∝ exp(Σ logits of S)`.

    The sets of the whole graph are listed beforehand; what they leave of the allowed nodes are the sets of
    those. Of listed sets that leave the same only one counts: that which takes up nodes that are not allowed
    in the order of their slots. So probabilities, entropies and the most likely set are exact, and with
    equivariant logits the distribution is equivariant. Of equally likely sets the mode is the one that is
    listed first. Where no node is allowed, the empty set is certain.

    Args:
        logits: `[*B, N]`; what they are where a node is not allowed does not matter.
        allowed: `[*B, N]` bool.
        adjacent: `[*B, N, N]` bool, symmetric, true where two nodes may not both be chosen.
        sets: `[*B, S, N]` bool, all maximal sets of each graph.
        listed: `[*B, S]` bool, which places of the list are filled.
    """

    arg_constraints: ClassVar[dict[str, Constraint]] = {}
    has_rsample = False

    def __init__(
        self, logits: Tensor, allowed: Tensor, *, adjacent: Tensor, sets: Tensor, listed: Tensor
    ) -> None:
        closed, dtype = ~allowed.unsqueeze(-2), logits.dtype
        self.sets, filler, beside = sets & ~closed, sets & closed, adjacent.to(dtype)
        # An allowed node is kept out by an allowed member; any other also by a filler of a lower slot.
        kept_out = (self.sets.to(dtype) @ beside) > 0
        kept_out = kept_out | (closed & ((filler.to(dtype) @ beside.triu(1)) > 0))
        scores = (self.sets.to(dtype) @ logits.masked_fill(~allowed, 0.0).unsqueeze(-1)).squeeze(-1)
        self.places = MaskedCategorical(scores, listed & (sets | kept_out).all(-1))
        super().__init__(logits.shape[:-1], logits.shape[-1:], validate_args=False)

    @property
    def mode(self) -> Tensor:
        """The most likely set, `[*B, N]` bool."""
        return self._sets_at(self.places.mode)

    @property
    def deterministic_sample(self) -> Tensor:
        """The same as `mode`."""
        return self.mode

    def sample(self, sample_shape: Shape = (), generator: Generator | None = None) -> Tensor:
        """`[*sample_shape, *B, N]` bool."""
        return self._sets_at(self.places.sample(sample_shape, generator))

    def log_prob(self, value: Tensor) -> Tensor:
        """`[*B]` of sets `[*B, N]` bool; of one that cannot be drawn a very large negative number."""
        same = (self.sets == value.bool().unsqueeze(-2)).all(-1)
        impossible = torch.finfo(self.places.logits.dtype).min
        return self.places.logits.masked_fill(~same, impossible).amax(-1)

    def entropy(self) -> Tensor:
        """`[*B]`."""
        return self.places.entropy()

    def _sets_at(self, place: Tensor) -> Tensor:
        """The sets at places `[..., *B]` of the list, `[..., *B, N]` bool."""
        shape = (*place.shape, 1, self.sets.shape[-1])
        sets = self.sets.expand(*place.shape, *self.sets.shape[-2:])
        return sets.gather(-2, place[..., None, None].expand(shape)).squeeze(-2)
