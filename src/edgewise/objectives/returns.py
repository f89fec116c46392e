"""Returns and advantages as pure functions: a first-order recurrence over time, solved in log2(T) steps.

Everywhere `terminated` means that nothing follows, so nothing is bootstrapped; `done` without `terminated` is
a truncation, which bootstraps from its own next value. Both cut the trace: what comes after belongs to
another episode.
"""

from __future__ import annotations

import torch
from torch import Tensor


def discounted_scan(terms: Tensor, decay: Tensor, *, time_dim: int = -1) -> Tensor:
    """Solve `y_t = terms_t + decay_t * y_{t+1}`, with nothing beyond the last step.

    Doubling: after k rounds `y_t` sums the first `2^k` terms and `decay_t` is the product over them, so
        log2(T) rounds
    do. Only products of decays are formed, never quotients, so float32 stays accurate for any T.

    Args:
        terms: `[..., T, ...]`.
        decay: of the same shape; zero where the sum must not reach further.
        time_dim: the dimension of time.
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
    """Generalised advantage estimation (https://arxiv.org/abs/1506.02438).

    `A_t = Σ_l (γλ)^l δ_{t+l}` up to the end of the episode or of the data, `δ_t = r_t + γ V'_t - V_t`, where
    V' is zero at a termination.

    Args:
        reward: `[..., T, ...]`.
        value: of the same shape, of the state before each step.
        next_value: of the same shape, of the state after each step; at a truncation, of the state before the
            reset.
        done: of the same shape, bool.
        terminated: of the same shape, bool.
        gamma: discount.
        lmbda: trace decay λ.
        time_dim: the dimension of time.

    Returns:
        Advantages and value targets (advantage + value), both of the shape of `value`.
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
    """Generalised advantages of a zero-sum game between players 0 and 1, each in the view of the one who
    moved.

    Rewards and values arrive in the view of the player to move in their own state and are turned to player
    0's view for the recursion, so a player may move several times in a row.

    Args:
        reward: `[..., T, ...]`, in the view of the mover.
        value: of the same shape, in the view of `player`.
        next_value: of the same shape, in the view of `next_player`.
        player: of the same shape, int64, who is to move before each step.
        next_player: of the same shape, int64, who is to move after it; anything where the game has ended.
        done: of the same shape, bool.
        terminated: of the same shape, bool.
        gamma: discount.
        lmbda: trace decay λ.
        time_dim: the dimension of time.
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
    """+1 where player 0 is to move, -1 where player 1 is."""
    return 1 - 2 * player.to(dtype)


def lambda_return(
    reward: Tensor,
    next_value: Tensor,
    *,
    done: Tensor,
    terminated: Tensor,
    gamma: float,
    lmbda: float,
    time_dim: int = -1,
) -> Tensor:
    """TD(λ) returns: `G_t = r_t + γ ((1-λ) V'_t + λ G_{t+1})`, with V' alone where the trace is cut.

    With `lmbda=1` these are discounted Monte-Carlo returns, with `lmbda=0` one-step targets. Shapes as in
    `generalized_advantage`.
    """
    bootstrap = gamma * next_value.masked_fill(terminated, 0.0)
    cut = done | terminated | _last_step(done, time_dim)
    terms = reward + bootstrap * torch.where(cut, 1.0, 1.0 - lmbda).to(reward.dtype)
    decay = torch.full_like(terms, gamma * lmbda).masked_fill(cut, 0.0)
    return discounted_scan(terms, decay, time_dim=time_dim)


def n_step_return(
    reward: Tensor,
    next_value: Tensor,
    *,
    done: Tensor,
    terminated: Tensor,
    gamma: float,
    n: int,
    time_dim: int = -1,
) -> Tensor:
    """Sum of the next `n` discounted rewards and the discounted value of the state reached.

    Fewer than `n` where the episode or the data end before; then the value of the last state reached is used,
    none at a termination. Shapes as in `generalized_advantage`.
    """
    if n < 1:
        raise ValueError(f"n must be at least 1, got {n}")
    bootstrap = next_value.masked_fill(terminated, 0.0)
    cut = done | terminated | _last_step(done, time_dim)
    total = reward + gamma * bootstrap
    for _ in range(min(n, reward.shape[time_dim]) - 1):
        total = reward + gamma * torch.where(cut, bootstrap, total.roll(-1, time_dim))
    return total


def _last_step(like: Tensor, time_dim: int) -> Tensor:
    """True on the last step, in a shape that broadcasts against `like`."""
    steps = like.shape[time_dim]
    shape = [1] * like.ndim
    shape[time_dim] = steps
    return (torch.arange(steps, device=like.device) == steps - 1).view(shape)
