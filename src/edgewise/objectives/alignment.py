"""Rewards, ends and masks in the shape of the values they go with, of graphs or of agents."""

from __future__ import annotations

from tensordict import TensorDictBase
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


def with_agents_ends(batch: TensorDictBase) -> TensorDictBase:
    """A copy of `batch` in which `done` and `terminated` under `next` have the shape of the reward.

    TorchRL's temporal-difference losses want it so where agents are rewarded: an agent is done when its world
    is or when it has ended by itself. Nothing but these entries is copied.
    """
    batch, following = batch.copy(), batch.get("next").copy()
    reward, lead = following.get("reward"), batch.batch_dims
    gone = of_agents(following.get(("agents", "terminated"), None), reward, batch_dims=lead)
    for name in ("done", "terminated"):
        ends = fit(following.get(name), reward, batch_dims=lead, name=name)
        following.set(name, ends.clone() if gone is None else ends | gone)
    return batch.set("next", following)
