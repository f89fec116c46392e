"""Rewards, ends and masks in the shape of the values they go with, of graphs or of agents."""

from __future__ import annotations

from torch import Tensor


def fit(signal: Tensor, to: Tensor, *, batch_dims: int, name: str) -> Tensor:
    """`signal` in the shape of `to`, where one entry may stand for all agents.

    Args:
        signal: `[*B, ...]`, with or without a trailing 1.
        to: `[*B, ...]`, values or log-probabilities.
        batch_dims: how many dimensions `*B` are.
        name: what to call the signal where it does not fit.
    """
    fitted = signal
    while fitted.ndim > to.ndim and fitted.shape[-1] == 1:
        fitted = fitted.squeeze(-1)
    while fitted.ndim < to.ndim:
        fitted = fitted.unsqueeze(-1)
    try:
        return fitted.expand_as(to)
    except RuntimeError:
        inner, outer = tuple(signal.shape[batch_dims:]), tuple(to.shape[batch_dims:])
        raise ValueError(
            f"{name} has shape {inner} in each state, which does not fit {outer}: use a critic with one "
            "value per agent where agents are rewarded, and one per graph where the world is"
        ) from None


def of_agents(mark: Tensor | None, value: Tensor, *, batch_dims: int) -> Tensor | None:
    """A mark of agents `[*B, A]` in the shape of `value`; None without a mark or without values of agents."""
    if mark is None or mark.shape[batch_dims:].numel() != value.shape[batch_dims:].numel():
        return None
    return mark.reshape(value.shape)
