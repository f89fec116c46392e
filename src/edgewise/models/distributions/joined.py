"""One distribution of a batch whose rows are evaluated in several parts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import torch
from torch import Generator, Size, Tensor
from torch.distributions import Distribution
from torch.distributions.constraints import Constraint
from torch.nn import functional

from edgewise.models.distributions.masked import Shape


class Joined(Distribution):
    """A distribution `[*B]` of which every part gives some rows.

    Args:
        parts: rows `[M]` of the flat batch, and their distribution, batch `[M]` or `[M, A]`.
        shape: B.
        num_choices: K of the whole batch, for `logits`; None if actions are not choices.
    """

    arg_constraints: ClassVar[dict[str, Constraint]] = {}

    def __init__(
        self, parts: list[tuple[Tensor, Distribution]], shape: Size, *, num_choices: int | None = None
    ) -> None:
        self._num_choices = num_choices
        self._rows = [rows for rows, _ in parts]
        self._parts: list[Any] = [part for _, part in parts]
        self._lead = shape
        self._back = torch.cat(self._rows).argsort()
        super().__init__(Size((*shape, *self._parts[0].batch_shape[1:])), validate_args=False)

    @property
    def mode(self) -> Tensor:
        """The most probable action."""
        return self._join(lambda part, _: part.mode)

    @property
    def deterministic_sample(self) -> Tensor:
        """The mode."""
        return self.mode

    @property
    def logits(self) -> Tensor:
        """Log-probabilities of choices `[*B, K]`; the lowest number where a part has fewer choices."""
        logits = [part.logits for part in self._parts]
        width, lowest = self._num_choices or logits[0].shape[-1], torch.finfo(logits[0].dtype).min
        return self._place([functional.pad(row, (0, width - row.shape[-1]), value=lowest) for row in logits])

    @property
    def probs(self) -> Tensor:
        """Probabilities of choices, `[*B, K]`."""
        return self.logits.exp()

    @torch.no_grad()
    def sample(self, sample_shape: Shape = (), generator: Generator | None = None) -> Tensor:
        """Sample actions `[*sample_shape, *B, ...]`."""
        if len(sample_shape):
            count = Size(sample_shape).numel()
            return torch.stack([self.sample((), generator) for _ in range(count)]).unflatten(0, sample_shape)
        if generator is None:
            return self._join(lambda part, _: part.sample())
        return self._join(lambda part, _: part.sample((), generator=generator))

    def rsample(self, sample_shape: Shape = ()) -> Tensor:
        """Sample actions with gradients."""
        if len(sample_shape):
            count = Size(sample_shape).numel()
            return torch.stack([self.rsample() for _ in range(count)]).unflatten(0, sample_shape)
        return self._join(lambda part, _: part.rsample())

    def log_prob(self, value: Tensor) -> Tensor:
        """Return log-probabilities of actions of every row."""
        flat = value.flatten(0, len(self._lead) - 1) if self._lead else value.unsqueeze(0)
        return self._join(lambda part, rows: part.log_prob(flat[rows]))

    def entropy(self) -> Tensor:
        """Return entropies of every row."""
        return self._join(lambda part, _: part.entropy())

    def _join(self, of: Callable[[Any, Tensor], Tensor]) -> Tensor:
        return self._place([of(part, rows) for part, rows in zip(self._parts, self._rows, strict=True)])

    def _place(self, values: list[Tensor]) -> Tensor:
        """Put the rows of all parts back in their order."""
        found = torch.cat(values).index_select(0, self._back)
        return found.reshape(*self._lead, *found.shape[1:])
