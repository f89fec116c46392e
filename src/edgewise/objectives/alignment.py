"""Broadcast rewards, done flags and masks to the shape of values per graph or per agent."""

from __future__ import annotations

from torch import Tensor


def match_shape(signal: Tensor, to: Tensor, *, batch_dims: int, name: str) -> Tensor:
    """Expand `signal` to the shape of `to`; one entry per world applies to all its agents.

    Args:
        signal: `[*B, ...]`, with or without a trailing dimension of size 1.
        to: `[*B, ...]`, values or log-probabilities.
        batch_dims: number of dimensions of `*B`.
        name: name of the signal in error messages.

    Raises:
        ValueError: the shapes do not broadcast.

    Example:
        >>> import torch
        >>> reward, value = torch.ones(8, 1), torch.zeros(8, 3, 1)
        >>> match_shape(reward, value, batch_dims=1, name="reward").shape
        torch.Size([8, 3, 1])
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
            "value per agent if rewards are per agent, and one value per graph if they are per world"
        ) from None


def match_log_ratio(log_ratio: Tensor, value: Tensor, *, batch_dims: int) -> Tensor:
    """Return the log-ratio of the decisions that a value depends on, in the shape of `value`.

    Args:
        log_ratio: `[*B, ...]`, one per decision.
        value: `[*B, ...]`: with as many entries in each state, each goes with its own decision; otherwise all
            go with the joint decision, whose log-ratio is the sum.
        batch_dims: number of dimensions of `*B`.
    """
    if log_ratio.shape[batch_dims:].numel() == value.shape[batch_dims:].numel():
        return log_ratio.reshape(value.shape)
    joint = log_ratio.flatten(batch_dims).sum(-1) if log_ratio.ndim > batch_dims else log_ratio
    return joint.reshape(*joint.shape, *[1] * (value.ndim - batch_dims)).expand_as(value)


def expand_agent_mask(mask: Tensor | None, value: Tensor, *, batch_dims: int) -> Tensor | None:
    """Reshape a mask of agents `[*B, A]` to the shape of `value`.

    Returns:
        The mask in the shape of `value`; None without a mask, or if `value` has no entry per agent.
    """
    if mask is None or mask.shape[batch_dims:].numel() != value.shape[batch_dims:].numel():
        return None
    return mask.reshape(value.shape)
