"""Returns and advantages as pure functions, computed by a parallel scan in log2(T) steps.

`terminated` marks the end of an episode without bootstrapping. `done` without `terminated` is a truncation,
which bootstraps from its next value. Both cut the trace, since the next step belongs to another episode.
"""

from __future__ import annotations

import torch
from torch import Tensor


def discounted_scan(terms: Tensor, decay: Tensor, *, time_dim: int = -1) -> Tensor:
    """Solve `y_t = terms_t + decay_t * y_{t+1}` over time, with `y_T = 0`.

    After k rounds of doubling, `y_t` is the sum of the first `2^k` terms and `decay_t` is the product of
    their decays, so log2(T) rounds are enough. Only products of decays are formed, never quotients, so
    float32 is accurate for any T.

    Args:
        terms: `[..., T, ...]`.
        decay: same shape; zero where the sum stops.
        time_dim: the dimension of time.

    Example:
        >>> discounted_scan(torch.ones(4), torch.tensor([0.5, 0.5, 0.0, 0.5]))
        tensor([1.7500, 1.5000, 1.0000, 1.0000])
    """
    steps = terms.shape[time_dim]
    total, reach = terms, 1
    while reach < steps:
        ahead = steps - reach
        near, far = decay.narrow(time_dim, 0, ahead), total.narrow(time_dim, reach, ahead)
        head = torch.addcmul(total.narrow(time_dim, 0, ahead), near, far)
        total = torch.cat([head, total.narrow(time_dim, ahead, reach)], time_dim)
        if 2 * reach < steps:
            tail = decay.narrow(time_dim, ahead, reach)
            decay = torch.cat([near * decay.narrow(time_dim, reach, ahead), tail], time_dim)
        reach *= 2
    return total


def generalized_advantage(
    reward: Tensor,
    value: Tensor,
    *,
    next_value: Tensor,
    done: Tensor,
    terminated: Tensor,
    gamma: float,
    lmbda: float,
    time_dim: int = -1,
) -> tuple[Tensor, Tensor]:
    """Compute generalised advantage estimates (https://arxiv.org/abs/1506.02438).

    `A_t = Σ_l (γλ)^l δ_{t+l}` up to the end of the episode or of the data, with `δ_t = r_t + γ V'_t - V_t`,
    where V' is zero at a termination.

    Args:
        reward: `[..., T, ...]`.
        value: same shape, of the state before each step.
        next_value: same shape, of the state after each step; at a truncation, of the last state of the
            episode, not of the state after the reset.
        done: same shape, bool.
        terminated: same shape, bool.
        gamma: discount factor.
        lmbda: trace decay λ.
        time_dim: the dimension of time.

    Returns:
        Advantages and value targets (advantage + value), both in the shape of `value`.

    Example:
        >>> zeros, never = torch.zeros(3), torch.zeros(3, dtype=torch.bool)
        >>> advantage, target = generalized_advantage(
        ...     torch.ones(3), zeros, next_value=zeros, done=never, terminated=never, gamma=0.5, lmbda=1.0
        ... )
        >>> advantage
        tensor([1.7500, 1.5000, 1.0000])
    """
    error = reward + gamma * next_value.masked_fill(terminated, 0.0) - value
    decay = torch.full_like(error, gamma * lmbda).masked_fill(done | terminated, 0.0)
    advantage = discounted_scan(error, decay, time_dim=time_dim)
    return advantage, advantage + value


def two_player_advantage(
    reward: Tensor,
    value: Tensor,
    *,
    next_value: Tensor,
    player: Tensor,
    next_player: Tensor,
    done: Tensor,
    terminated: Tensor,
    gamma: float,
    lmbda: float,
    time_dim: int = -1,
) -> tuple[Tensor, Tensor]:
    """Compute generalised advantages of a two-player zero-sum game, from the perspective of the mover.

    Rewards and values are given from the perspective of the player to move. The recursion converts them to
    the perspective of player 0, so a player may move several times in a row.

    Args:
        reward: `[..., T, ...]`, from the perspective of `player`.
        value: same shape, from the perspective of `player`.
        next_value: same shape, from the perspective of `next_player`.
        player: same shape, int64, the player to move before each step: 0 or 1.
        next_player: same shape, int64, the player to move after it; ignored at a termination.
        done: same shape, bool.
        terminated: same shape, bool.
        gamma: discount factor.
        lmbda: trace decay λ.
        time_dim: the dimension of time.

    Returns:
        Advantages and value targets, both in the shape of `value` and from the perspective of `player`.
    """
    sign, next_sign = mover_sign(player, value.dtype), mover_sign(next_player, value.dtype)
    advantage, _ = generalized_advantage(
        sign * reward,
        sign * value,
        next_value=next_sign * next_value,
        done=done,
        terminated=terminated,
        gamma=gamma,
        lmbda=lmbda,
        time_dim=time_dim,
    )
    advantage = sign * advantage
    return advantage, advantage + value


def mover_sign(player: Tensor, dtype: torch.dtype = torch.float32) -> Tensor:
    """Return +1 where player 0 is to move and -1 where player 1 is."""
    return 1 - 2 * player.to(dtype)
