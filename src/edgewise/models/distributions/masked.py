"""Categorical distributions with action masks and exact log-probabilities, without GPU synchronisation.

All are subclasses of `torch.distributions.Distribution`, so they work with TorchRL's losses. They sample from
torch's global generator, which checkpoints save, unless a generator is given.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import ClassVar

import torch
from torch import Generator, Size, Tensor
from torch.distributions import Distribution
from torch.distributions.constraints import Constraint

from edgewise.config.errors import NoLegalActionError, NumericalStop
from edgewise.graphs.masks import unless_all

Shape = Size | list[int] | tuple[int, ...]


_checks_masks = ContextVar("checks_masks", default=True)


@contextmanager
def without_mask_checks() -> Iterator[None]:
    """Allow worlds without a legal action inside the context, as exported programs do."""
    token = _checks_masks.set(False)
    try:
        yield
    finally:
        _checks_masks.reset(token)


def check_mask(mask: Tensor, *, needed: Tensor | None = None, what: str = "node") -> None:
    """Raise an error if a world, or one of its agents, has no allowed action.

    On a CPU this is a ValueError that names the world. On a GPU it is a device-side assertion, which does not
    synchronise; run the batch on a CPU to find the world. Compiled code does not check.

    Args:
        mask: `[*B, K]` bool, or `[*B, A, K]` if `needed` is given.
        needed: `[*B, A]` bool, the rows that need an allowed action; None for all rows.
        what: name of the elements of the last dimension, for the message.

    Raises:
        NoLegalActionError: a row has no allowed action; a ValueError and a ConfigError.
    """
    if torch.compiler.is_compiling() or not _checks_masks.get():
        return
    has_action = mask.any(-1)
    if needed is not None:
        has_action = has_action | ~needed
    if has_action.is_cuda:
        torch._assert_async(has_action.all(), f"a world has no allowed {what}: its action mask is all false")
    elif has_action.device.type == "cpu" and not has_action.all():
        rows = has_action.reshape(len(has_action) if has_action.dim() else 1, -1).all(-1)
        world = int((~rows).nonzero()[0])
        message = _no_action_message(has_action, what=what, has_rows=needed is not None)
        raise NoLegalActionError(message, world=world)


def check_finite(values: Tensor, *, what: str = "logits") -> None:
    """Raise an error if a parameter of a distribution is NaN or infinite.

    Otherwise sampling would return an arbitrary action, also an illegal one, with a finite log-probability.
    On a GPU this is a device-side assertion, which does not synchronise. Compiled code does not check.

    Args:
        values: parameters of the choices that are allowed; masked entries must be filled already.
        what: their name, for the message.

    Raises:
        NumericalStop: a value is not finite.
    """
    if torch.compiler.is_compiling():
        return
    values = values.detach()
    if values.is_cuda:
        torch._assert_async(values.isfinite().all(), f"{what} of the policy are not finite")
    elif values.device.type == "cpu" and values.numel() and not math.isfinite(values.abs().max()):
        bad = int((~values.isfinite()).sum())
        raise NumericalStop(
            f"{what} of the policy are not finite: {bad} of {values.numel()} are NaN or infinite",
            hint="the weights or the observations are broken; go back to an earlier checkpoint",
        )


def _no_action_message(has_action: Tensor, *, what: str, has_rows: bool) -> str:
    """Return an error message with the first world and row without an allowed action."""
    first = (~has_action).nonzero()[0].tolist()
    row = first.pop() if has_rows else None
    world = "the world" if not first else f"world {first[0] if len(first) == 1 else first}"
    where = world if row is None else f"row {row} of {world}"
    count = int((~has_action).sum())
    return (
        f"{where} has no allowed {what}: its action_mask is all false ({count} of {has_action.numel()} rows)"
    )


def gumbel_argmax(logits: Tensor, generator: Generator | None = None) -> Tensor:
    """Sample from `softmax(logits)` over the last dimension with the Gumbel-max trick."""
    return (logits + gumbel_like(logits, generator)).argmax(-1)


def gumbel_like(logits: Tensor, generator: Generator | None = None) -> Tensor:
    """Sample finite standard Gumbel noise in the shape of `logits`."""
    noise = torch.empty_like(logits).exponential_(generator=generator)
    return -noise.clamp_(min=torch.finfo(logits.dtype).tiny).log_()


class MaskedCategorical(Distribution):
    """A categorical distribution with an action mask; masked choices have probability zero.

    Args:
        logits: `[*B, K]`.
        mask: `[*B, K]` bool, true where allowed; None allows all.
        counted: `[*B]` bool; a row that is false (a padded or inactive agent) always gives choice 0, with
            log-probability and entropy 0 and without gradient.

    Example:
        >>> dist = MaskedCategorical(torch.zeros(1, 3), torch.tensor([[True, False, True]]))
        >>> dist.probs
        tensor([[0.5000, 0.0000, 0.5000]])
    """

    arg_constraints: ClassVar[dict[str, Constraint]] = {}
    has_rsample = False

    def __init__(self, logits: Tensor, mask: Tensor | None = None, *, counted: Tensor | None = None) -> None:
        mask, counted = unless_all(mask), unless_all(counted)
        if mask is not None:
            logits = logits.masked_fill(~mask, torch.finfo(logits.dtype).min)
        check_finite(logits if counted is None else logits.masked_fill(~counted.unsqueeze(-1), 0.0))
        self.logits = logits.log_softmax(-1)
        self.counted = counted
        super().__init__(logits.shape[:-1], validate_args=False)

    @property
    def probs(self) -> Tensor:
        """The probabilities, `[*B, K]`."""
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
        """Sample choices `[*sample_shape, *B]` int64."""
        logits = self.logits.expand(*sample_shape, *self.logits.shape)
        return self._only_counted(gumbel_argmax(logits, generator))

    def log_prob(self, value: Tensor) -> Tensor:
        """Return log-probabilities `[*B]`; for a masked choice a very large negative number."""
        logits = self.logits.expand(*value.shape, self.logits.shape[-1])
        return self._only_counted(logits.gather(-1, value.unsqueeze(-1)).squeeze(-1))

    def entropy(self) -> Tensor:
        """Return entropies `[*B]`."""
        # The logits of masked choices are very low but finite, so that zero times them is zero.
        return self._only_counted(-(self.logits.exp() * self.logits).sum(-1))

    def _only_counted(self, rows: Tensor) -> Tensor:
        return rows if self.counted is None else rows.masked_fill(~self.counted, 0)


class InverseCategorical(MaskedCategorical):
    """A masked categorical distribution that samples by the inverse of its distribution function.

    It draws one random number per row instead of one per choice, which is several times faster on a CPU.

    Args:
        logits: `[*B, K]`.
        mask: `[*B, K]` bool, true where allowed; None allows all.
        counted: `[*B]` bool; see `MaskedCategorical`.
    """

    @torch.no_grad()
    def sample(self, sample_shape: Shape = (), generator: Generator | None = None) -> Tensor:
        """Sample choices `[*sample_shape, *B]` int64."""
        below = self.logits.softmax(-1).cumsum(-1)
        total = below[..., -1]
        shape = (*sample_shape, *total.shape)
        level = torch.rand(shape, generator=generator, device=total.device, dtype=total.dtype) * total
        # Below the total, the first larger sum is that of a choice with a positive probability.
        level = torch.minimum(level, torch.nextafter(total, torch.zeros_like(total)))
        return self._only_counted((below <= level.unsqueeze(-1)).sum(-1))

    def entropy(self) -> Tensor:
        """Return entropies `[*B]`; a softmax is faster than the exponential of very low logits."""
        return self._only_counted(-(self.logits.softmax(-1) * self.logits).sum(-1))


class JointCategorical(MaskedCategorical):
    """A joint action `[*B, R]` of independent choices in R rows; log-probabilities are summed over rows.

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
        """Return log-probabilities `[*B]`."""
        return super().log_prob(value).sum(-1)

    def entropy(self) -> Tensor:
        """Return entropies `[*B]`."""
        return super().entropy().sum(-1)
