"""Adagrad for sparse gradients that updates only the used rows of a table."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim import Optimizer


class RowAdagrad(Optimizer):
    """Adagrad (Duchi et al., 2011) for tables with sparse gradients.

    Args:
        parameters: tables `[rows, d]`.
        lr: learning rate.
        eps: added to the square root of the sum of squares.
    """

    def __init__(self, parameters: Iterable[nn.Parameter], lr: float, *, eps: float = 1e-10) -> None:
        super().__init__(parameters, {"lr": lr, "eps": eps})

    @torch.no_grad()
    def step(self, closure: Callable[[], float] | None = None) -> None:  # type: ignore[override]
        """Update the rows that have a gradient."""
        assert closure is None
        for group in self.param_groups:
            for table in group["params"]:
                if table.grad is not None:
                    self._update(table, table.grad.coalesce(), lr=group["lr"], eps=group["eps"])

    def _update(self, table: Tensor, gradient: Tensor, *, lr: float, eps: float) -> None:
        state: dict[str, Any] = self.state[table]
        if not state:
            state["sum"] = torch.zeros_like(table)
        rows, values = gradient.indices()[0], gradient.values()
        sums = state["sum"].index_select(0, rows).addcmul_(values, values)
        state["sum"].index_copy_(0, rows, sums)
        table.index_add_(0, rows, values / sums.sqrt_().add_(eps), alpha=-lr)
