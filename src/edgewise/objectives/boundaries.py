"""Find the next-states of a rollout whose value must be computed separately for bootstrapping."""

from __future__ import annotations

import torch
from torch import Tensor
from torch._subclasses.fake_tensor import FakeTensor


def bootstrap_mask(done: Tensor, terminated: Tensor, *, batch_dims: int, time_dim: int) -> Tensor:
    """Mark the steps at which an episode or the rollout ends without termination, `[*B, T]` bool.

    Args:
        done: `[*B, T]`, or with any trailing dimensions, bool; one done entry makes a boundary.
        terminated: same shape; no next value is needed if all entries are terminated.
        batch_dims: number of dimensions of `[*B, T]`.
        time_dim: the dimension of time.
    """
    ended = done if done.ndim == batch_dims else done.flatten(batch_dims).any(-1)
    over = terminated if terminated.ndim == batch_dims else terminated.flatten(batch_dims).all(-1)
    needed = ended.clone()
    needed.select(time_dim, -1).fill_(True)
    return needed & ~over


def bootstrap_positions(needed: Tensor, *, time_dim: int, budget: int | None) -> Tensor | None:
    """Return the positions in the flattened batch whose next-states need a value, `[K]`; None for all.

    Args:
        needed: `[*B, T]` bool, see `bootstrap_mask`.
        time_dim: the dimension of time.
        budget: None to find exactly the needed positions by index. A number to take the last step of each row
            and at most that many earlier steps, in order; then sizes do not depend on data.
    """
    if budget is not None:
        return _first_in_each_row(needed, time_dim=time_dim, budget=budget)
    if isinstance(needed, FakeTensor) or torch.compiler.is_compiling():
        return None
    return needed.reshape(-1).nonzero().squeeze(-1)


def _first_in_each_row(needed: Tensor, *, time_dim: int, budget: int) -> Tensor:
    positions = torch.arange(needed.numel(), device=needed.device).view(needed.shape).movedim(time_dim, -1)
    steps = needed.shape[time_dim]
    rank = torch.arange(steps, 1, -1, device=needed.device) * needed.movedim(time_dim, -1)[..., :-1]
    first = rank.topk(min(budget, steps - 1), dim=-1).indices
    return torch.cat([positions.gather(-1, first), positions[..., -1:]], -1).reshape(-1)
