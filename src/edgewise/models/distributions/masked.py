"""Distributions over actions on graphs: exact log-probabilities, masks, and no host round-trip on a GPU.

All are `torch.distributions.Distribution`s, so TorchRL's losses take them. Samples come from torch's global
generator, which checkpoints restore, unless one is given.
"""

from __future__ import annotations

from typing import ClassVar

import torch
from torch import Generator, Size, Tensor
from torch.distributions import Distribution
from torch.distributions.constraints import Constraint

Shape = Size | list[int] | tuple[int, ...]


def check_mask(mask: Tensor, *, needed: Tensor | None = None, what: str = "node") -> None:
    """Raise where a world (or one of its agents) has no allowed action.

    On a CPU this is a ValueError naming the world. On a GPU it is a device-side assertion, so that no step
    waits for the device; run the batch on a CPU to learn which world it was. Compiled code does not check.

    Args:
        mask: `[*B, K]` bool, or `[*B, A, K]` where `needed` is given.
        needed: `[*B, A]` bool, the rows that must have an allowed action; all of them if None.
        what: what the last dimension counts, for the message.
    """
    if torch.compiler.is_compiling():
        return
    fine = mask.any(-1)
    if needed is not None:
        fine = fine | ~needed
    if fine.is_cuda:
        torch._assert_async(fine.all(), f"a world has no allowed {what}: its action mask is all false")
    elif fine.device.type == "cpu" and not fine.all():
        raise ValueError(_complaint(fine, what=what, has_rows=needed is not None))


def _complaint(fine: Tensor, *, what: str, has_rows: bool) -> str:
    """Names the first world, and the row in it, that has no allowed action."""
    first = (~fine).nonzero()[0].tolist()
    row = first.pop() if has_rows else None
    world = "the world" if not first else f"world {first[0] if len(first) == 1 else first}"
    where = world if row is None else f"row {row} of {world}"
    count = int((~fine).sum())
    return (
        f"{where} has no allowed {what}: its action_mask is all false ({count} of {fine.numel()} rows are so)"
    )


def gumbel_argmax(logits: Tensor, generator: Generator | None = None) -> Tensor:
    """One draw from `softmax(logits)` over the last dimension, by the largest logit plus Gumbel noise."""
    return (logits + gumbel_like(logits, generator)).argmax(-1)


def gumbel_like(logits: Tensor, generator: Generator | None = None) -> Tensor:
    """Standard Gumbel noise, finite, of the shape of `logits`."""
    noise = torch.empty_like(logits).exponential_(generator=generator)
    return -noise.clamp_(min=torch.finfo(logits.dtype).tiny).log_()


class MaskedCategorical(Distribution):
    """One of K choices in each row; a choice that is not allowed has probability zero.

    Args:
        logits: `[*B, K]`.
        mask: `[*B, K]` bool, true where allowed; None allows all.
        counted: `[*B]` bool; a row that is not counted (an absent or finished agent) always gives choice 0,
            with log-probability and entropy 0 and no gradient.
    """

    arg_constraints: ClassVar[dict[str, Constraint]] = {}
    has_rsample = False

    def __init__(self, logits: Tensor, mask: Tensor | None = None, *, counted: Tensor | None = None) -> None:
        if mask is not None:
            logits = logits.masked_fill(~mask, torch.finfo(logits.dtype).min)
        self.logits = logits.log_softmax(-1)
        self.counted = counted
        super().__init__(logits.shape[:-1], validate_args=False)

    @property
    def probs(self) -> Tensor:
        """Probabilities `[*B, K]`."""
        return self.logits.exp()

    @property
    def mode(self) -> Tensor:
        """The most probable choice, `[*B]`."""
        return self._only_counted(self.logits.argmax(-1))

    @property
    def deterministic_sample(self) -> Tensor:
        """The mode."""
        return self.mode

    @torch.no_grad()
    def sample(self, sample_shape: Shape = (), generator: Generator | None = None) -> Tensor:
        """`[*sample_shape, *B]` int64."""
        logits = self.logits.expand(*sample_shape, *self.logits.shape)
        return self._only_counted(gumbel_argmax(logits, generator))

    def log_prob(self, value: Tensor) -> Tensor:
        """`[*B]`; for a choice that is not allowed a very large negative number."""
        logits = self.logits.expand(*value.shape, self.logits.shape[-1])
        return self._only_counted(logits.gather(-1, value.unsqueeze(-1)).squeeze(-1))

    def entropy(self) -> Tensor:
        """`[*B]`."""
        probs = self.logits.exp()
        surprise = -(probs * self.logits.masked_fill(probs == 0, 0.0))
        return self._only_counted(surprise.sum(-1))

    def _only_counted(self, rows: Tensor) -> Tensor:
        return rows if self.counted is None else rows.masked_fill(~self.counted, 0)


class JointCategorical(MaskedCategorical):
    """A choice in each of R rows as one action `[*B, R]`; its log-probability sums those of counted rows.

    Args:
        logits: `[*B, R, K]`.
        mask: `[*B, R, K]` bool; None allows all.
        counted: `[*B, R]` bool; None counts all.
    """

    def __init__(self, logits: Tensor, mask: Tensor | None = None, *, counted: Tensor | None = None) -> None:
        super().__init__(logits, mask, counted=counted)
        rows = self._batch_shape
        self._batch_shape, self._event_shape = rows[:-1], rows[-1:]

    def log_prob(self, value: Tensor) -> Tensor:
        """`[*B]`."""
        return super().log_prob(value).sum(-1)

    def entropy(self) -> Tensor:
        """`[*B]`."""
        return super().entropy().sum(-1)
