"""Returns of whole episodes that follow one another, and baselines for them, as pure functions."""

from __future__ import annotations

import torch
from torch import Tensor


def episode_index(done: Tensor) -> Tensor:
    """Return the number of the episode that each step belongs to, `[S]` int64, from 0 on.

    Args:
        done: `[S]` bool, true at the last step of each episode.

    Example:
        >>> episode_index(torch.tensor([False, True, True, False, True]))
        tensor([0, 0, 1, 2, 2])
    """
    return done.long().cumsum(0) - done.long()


def episode_returns(
    reward: Tensor, done: Tensor, *, active: Tensor | None = None, gamma: float
) -> tuple[Tensor, Tensor]:
    """Compute the discounted return `Σ_t γ^t r_t` of every episode from its first step on.

    The result has as many rows as there are steps, so that its shape does not depend on data; rows beyond
    the number of episodes are zero.

    Args:
        reward: `[S]`, or `[S, A]` where each agent is rewarded.
        done: `[S]` bool, true at the last step of each episode.
        active: `[S, A]` bool, agents that acted; rewards of others do not count. None if all do.
        gamma: discount factor.

    Returns:
        Returns in the shape of `reward`, one row per episode; and where an agent acted in that episode, bool
        of the same shape.

    Example:
        >>> reward, done = torch.tensor([1.0, 2.0, 4.0]), torch.tensor([False, True, True])
        >>> episode_returns(reward, done, gamma=0.5)[0]
        tensor([2., 4., 0.])
    """
    episode, place = episode_index(done), torch.arange(len(done), device=done.device)
    begins = torch.ones_like(done)
    begins[1:] = done[:-1]
    since = place - torch.where(begins, place, 0).cummax(0).values
    counts = torch.ones_like(reward, dtype=torch.bool)
    if active is not None and reward.ndim > 1:
        counts = active
    discount = (gamma ** since.to(reward.dtype)).reshape(-1, *[1] * (reward.ndim - 1))
    terms = torch.where(counts, discount * reward, 0.0)
    returns = torch.zeros_like(reward).index_add(0, episode, terms)
    acted = torch.zeros_like(reward).index_add(0, episode, counts.to(reward.dtype)) > 0
    return returns, acted


def mean_over_instance(returns: Tensor, acted: Tensor, instance: Tensor) -> Tensor:
    """Return the mean of all returns of the same instance, in the shape of `returns`.

    Args:
        returns: `[E]`, or `[E, A]` for agents, whose means are taken separately.
        acted: same shape, bool; other entries do not count.
        instance: `[E]` int64, below E.

    Example:
        >>> returns, instance = torch.tensor([1.0, 3.0, 10.0]), torch.tensor([0, 0, 1])
        >>> mean_over_instance(returns, torch.ones(3, dtype=torch.bool), instance)
        tensor([ 2.,  2., 10.])
    """
    zeros = torch.zeros_like(returns)
    total = zeros.index_add(0, instance, torch.where(acted, returns, 0.0))
    count = zeros.index_add(0, instance, acted.to(returns.dtype))
    return (total / count.clamp_min(1))[instance]


def is_best_of_instance(returns: Tensor, instance: Tensor) -> Tensor:
    """Return which episode of each instance has the highest return, `[E]` bool; of equal ones the first.

    Args:
        returns: `[E]`, or `[E, A]` for agents, which are summed.
        instance: `[E]` int64, below E.

    Example:
        >>> is_best_of_instance(torch.tensor([1.0, 3.0, 3.0, 2.0]), torch.tensor([0, 0, 0, 1]))
        tensor([False,  True, False,  True])
    """
    total = returns if returns.ndim == 1 else returns.sum(-1)
    lowest = torch.full_like(total, -torch.inf)
    highest = lowest.scatter_reduce(0, instance, total, "amax")[instance]
    place = torch.arange(len(total), device=total.device)
    first = torch.full_like(place, len(place)).scatter_reduce(
        0, instance, place.masked_fill(total < highest, len(place)), "amin"
    )
    return place == first[instance]
