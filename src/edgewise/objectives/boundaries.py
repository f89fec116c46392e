"""Which next-states of a rollout must be valued on their own: those that bootstrap and are nobody's root."""

from __future__ import annotations

import torch
from torch import Tensor
from torch._subclasses.fake_tensor import FakeTensor


def needed_next(done: Tensor, terminated: Tensor, *, batch_dims: int, time_dim: int) -> Tensor:
    """True where an episode or the rollout ends without termination, `[*B, T]`.

    Args:
        done: `[*B, T]`, or with any trailing dimensions, bool; one entry that is done makes a boundary.
        terminated: likewise; only where all entries are terminated is no next value needed.
        batch_dims: how many dimensions `[*B, T]` are.
        time_dim: which of them is time.
    """
    ended = done if done.ndim == batch_dims else done.flatten(batch_dims).any(-1)
    over = terminated if terminated.ndim == batch_dims else terminated.flatten(batch_dims).all(-1)
    needed = ended.clone()
    needed.select(time_dim, -1).fill_(True)
    return needed & ~over


def next_positions(needed: Tensor, *, time_dim: int, budget: int | None) -> Tensor | None:
    """Positions in the flattened batch whose next-states are to be valued, `[K]`; None for all of them.

    Args:
        needed: `[*B, T]` bool.
        time_dim: which dimension is time.
        budget: None for exactly those needed, found by index; a number for the last step of each row and at
            most that many of the earlier ones, first come first: sizes then do not depend on data.
    """
    if budget is not None:
        return _first_in_each_row(needed, time_dim=time_dim, budget=budget)
    if isinstance(needed, FakeTensor) or torch.compiler.is_compiling():
        return None
    return needed.reshape(-1).nonzero().squeeze(-1)


def _first_in_each_row(needed: Tensor, *, time_dim: int, budget: int) -> Tensor:
    places = torch.arange(needed.numel(), device=needed.device).view(needed.shape).movedim(time_dim, -1)
    steps = needed.shape[time_dim]
    rank = torch.arange(steps, 1, -1, device=needed.device) * needed.movedim(time_dim, -1)[..., :-1]
    first = rank.topk(min(budget, steps - 1), dim=-1).indices
    return torch.cat([places.gather(-1, first), places[..., -1:]], -1).reshape(-1)
